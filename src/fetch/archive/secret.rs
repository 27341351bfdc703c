//! Recognizes URLs that must not be sent to an archive. Some personal pages are protected only by their secret URL, which an
//! archive could publish, and the host names of a private network should not leave it.

use std::net::IpAddr;

use crate::engine::policy::{Host, Policy, Target};
use crate::link::url::holds_token;

pub(super) fn why(target: &Target) -> Option<&'static str> {
    if target.has_userinfo() {
        return Some("the URL contains a user name");
    }
    if !target.host().is_some_and(|host| is_public(&host)) {
        return Some("the host belongs to a private network");
    }
    let url = target.request_url();
    let (_, behind) = url.split_once("://").unwrap_or_default();
    if holds_mail_address(behind) {
        return Some("the URL may contain an email address");
    }
    holds_token(behind).then_some("the URL may contain a secret token")
}

/// Returns whether a host is on the public internet. Loopback addresses count as public, because tests use servers on
/// this computer. This is safe: a loopback address tells an archive nothing about a private network.
fn is_public(host: &Host) -> bool {
    match host.known_addresses() {
        Some(addresses) => {
            let world = Policy::default();
            let is_public = |it: &IpAddr| it.is_loopback() || world.judge_address(*it).is_ok();
            addresses.iter().all(is_public)
        }
        None => !host.is_own_name(),
    }
}

/// Returns whether the URL contains an address such as `joe@example.org`. `photos/12345@N00/` is not one.
fn holds_mail_address(url: &str) -> bool {
    let url = url.to_ascii_lowercase().replace("%40", "@");
    let is_end = |at: char| "/?&=;:,@".contains(at);
    let mut pieces = url.split('@');
    let mut before = pieces.next().unwrap_or_default();
    for behind in pieces {
        let domain = behind.split(is_end).next().unwrap_or_default();
        if !before.is_empty() && !before.ends_with(is_end) && domain.contains('.') {
            return true;
        }
        before = behind;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::policy::{Policy, Scheme};

    #[test]
    fn url_with_an_unguessable_or_personal_part_counts_as_secret() {
        let policy = Policy {
            fetch: [Scheme::Http].into(),
            allow_userinfo: true,
            allow_ports: [8080].into(),
            allow_nets: ["127.0.0.0/8", "10.0.0.0/8"]
                .map(|it| it.parse().unwrap())
                .into(),
            ..Policy::default()
        };
        let told = [
            "http://www.example.org/",
            "http://www.example.org/images/logo.gif?width=100&height=20",
            "http://www.example.org/2003/05/02/summer-holiday-pictures-of-2003-rome-and-paris.jpg",
            "http://www.example.org/img/20030502101112_0001.jpg?v=1051870272",
            "http://pictures.example.org:8080/~joe/DSC00012.JPG",
            "http://www.example.org/Summer_Holiday_Pictures_2003/Rome-And-Paris_DSC00012.JPG",
            "http://www.example.org/photos/12345@N00/678",
            "http://www.example.org/@joe.smith/a.gif",
            "http://www.example.org/t/1051870272123456.gif",
            "http://8.8.8.8/a.gif",
            "http://127.0.0.1/a.gif",
            "http://localhost/a.gif",
        ];
        for url in told {
            assert_eq!(why(&policy.judge_url(url).unwrap()), None, "{url}");
        }
        let secret = [
            "http://me@www.example.org/a.gif",
            "http://me:pw@www.example.org/a.gif",
            "http://intranet/a.gif",
            "http://nas.local/a.gif",
            "http://a.b.internal./a.gif",
            "http://10.1.2.3/a.gif",
            "http://0x0a010203/a.gif",
            "http://8d3f0b6a1c2e4f5a9b7c8d6e5f4a3b2c1d0e9f8a.example.org/a.gif",
            "http://www.example.org/t/10518702721234567890.gif",
            "http://www.example.org/u?m=joe@example.org",
            "http://www.example.org/u/joe%40example.org",
            "http://www.example.org/o/9e107d9d372bb6826bd81d3542a419d6.gif",
            "http://www.example.org/a.gif?id=f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "http://www.example.org/t/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0",
            "http://www.example.org/t?k=Ab3-d_Ef9%2BGh1_kL-mN0pQ-rS7tU_vW2",
            "http://www.example.org/t?k=abcdefghijklmnopqrstuvwxyzabcdefghijklmnop",
        ];
        for url in secret {
            assert!(why(&policy.judge_url(url).unwrap()).is_some(), "{url}");
        }
    }
}
