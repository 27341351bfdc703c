//! The options that would have allowed a reference that was left.
//!
//! Whether they would is tried out. Where no option does (`--deny-host` wins over `--allow-host`), none is named. What a name
//! resolves to and where a redirect leads cannot be tried.

use std::fmt::Display;

use super::wording::{option, would_allow};
use crate::link::url::Reference;
use crate::policy::{Host, IpNet, Policy, Scheme};
use crate::report::{Kind, Outcome, Reason, Row, Setting};

/// The `--follow` of a reference that was left because of its form, with which the detail of its row begins.
pub(super) fn follow(row: &Row) -> Option<String> {
    let form = row.detail.split(' ').next();
    let form = form.filter(|_| row.reason == Some(Reason::NotFollowed));
    form.map(|form| format!("--follow {form}"))
}

/// The options with their values, as far as the row has them; none if the row was not left, or no option would do.
pub(super) fn remedy(row: &Row, policy: &Policy) -> Option<String> {
    let reason = row.reason.filter(|_| row.outcome == Outcome::Left)?;
    match reason {
        // No option moves a signed attachment out of its mail.
        Reason::Signed | Reason::Encrypted if row.kind == Kind::Attachment => None,
        // Only what is a picture becomes one.
        Reason::TypeMismatch if row.kind == Kind::Embed => None,
        // The memory for it is bounded by the mail, not by an option.
        Reason::TooMuchWork if !speaks_of(row, Setting::Work) => None,
        // No number of redirects ends a circle.
        Reason::TooManyRedirects if !speaks_of(row, Setting::Redirects) => None,
        // A name that is no absolute path is beneath no folder.
        Reason::OutsideFileRoot if row.url.is_none() => None,
        Reason::NotFollowed => follow(row),
        Reason::RedirectRefused => redirect(row, policy),
        Reason::SchemeNotAllowed
        | Reason::HostNotAllowed
        | Reason::PrivateAddress
        | Reason::PortNotAllowed
        | Reason::UserinfoNotAllowed
        | Reason::OutsideFileRoot
        | Reason::TypeNotAllowed
        | Reason::Signed
        | Reason::Encrypted => opening(row, reason, policy),
        _ => would_allow(reason).map(str::to_owned),
    }
}

fn given(setting: Setting, value: impl Display) -> String {
    format!("{} {value}", option(setting))
}

fn speaks_of(row: &Row, setting: Setting) -> bool {
    row.detail.settings().any(|it| it == setting)
}

/// Opens a copy of the policy until it allows the row's reference. Each option is tried once.
fn opening(row: &Row, reason: Reason, policy: &Policy) -> Option<String> {
    let url = &*policy.map(row.url.as_deref().unwrap_or_default());
    let has_denied_hosts = !(policy.deny_hosts.is_empty() && policy.listed_hosts.is_empty());
    let mut policy = policy.clone();
    let mut words = Vec::new();
    if matches!(reason, Reason::Signed | Reason::Encrypted) {
        words.extend(would_allow(Reason::Signed).map(str::to_owned));
    }
    let reference = Reference::split(url);
    let is_within_message = ["data", "cid", "mid"].map(|it| reference.has_scheme(it));
    let is_retrieved = reference.scheme.is_some() && !is_within_message.contains(&true);
    let mut tried: Vec<Reason> = Vec::new();
    while is_retrieved && let Err(refusal) = policy.judge_url(url) {
        if tried.contains(&refusal.reason) {
            return None;
        }
        words.push(open(&mut policy, refusal.reason, &reference)?);
        tried.push(refusal.reason);
    }
    if reference.has_scheme("ftp") && policy.proxy.is_some() {
        return None;
    }
    if let Some(media_type) = &row.media_type
        && policy.judge_type(media_type).is_err()
    {
        policy.allow_types.push(media_type.parse().ok()?);
        policy.judge_type(media_type).ok()?;
        words.push(given(Setting::AllowType, media_type));
    } else if reason == Reason::TypeNotAllowed && !policy.deny_types.is_empty() {
        return None;
    }
    match words.is_empty() {
        false => Some(words.join(" ")),
        // The policy refuses what came later: an address, where a redirect led.
        true if reason != Reason::TypeNotAllowed && has_denied_hosts => None,
        true => would_allow(reason).map(str::to_owned),
    }
}

/// Gives the policy the option that a reason asks for, and writes it as on a command line.
fn open(policy: &mut Policy, reason: Reason, reference: &Reference<'_>) -> Option<String> {
    let site = reference.site();
    Some(match reason {
        Reason::SchemeNotAllowed => {
            let scheme = Scheme::from_name(reference.scheme?.as_bytes())?;
            policy.fetch.insert(scheme);
            given(Setting::Fetch, scheme.as_str())
        }
        Reason::HostNotAllowed => {
            let host = site?.host.to_ascii_lowercase();
            policy.allow_hosts.extend([host.parse().ok()?]);
            given(Setting::AllowHost, host)
        }
        Reason::PrivateAddress => {
            let host = Host::parse(site?.host)?;
            if host.is_own_name() && policy.proxy.is_some() {
                policy.allow_hosts.extend([host.to_string().parse().ok()?]);
                return Some(given(Setting::AllowHost, host));
            }
            let opened = IpNet::from(*host.known_addresses()?.first()?);
            policy.allow_nets.push(opened);
            given(Setting::AllowNet, opened)
        }
        Reason::PortNotAllowed => {
            let port: u16 = site?.port?.parse().ok()?;
            policy.allow_ports.insert(port);
            given(Setting::AllowPort, port)
        }
        Reason::UserinfoNotAllowed => {
            policy.allow_userinfo = true;
            would_allow(reason)?.to_owned()
        }
        Reason::OutsideFileRoot => {
            policy.file_roots.push("/".into());
            would_allow(reason)?.to_owned()
        }
        _ => return None,
    })
}

/// `--fetch` opens no way from https to http, and no scheme that redirects may not lead to: of the two that they may,
/// one led there, and the other is not allowed.
fn redirect(row: &Row, policy: &Policy) -> Option<String> {
    if !speaks_of(row, Setting::Fetch) {
        return None;
    }
    let mut schemes = [Scheme::Http, Scheme::Https].into_iter();
    let scheme = schemes.find(|scheme| !policy.fetch.contains(scheme))?;
    let from = Reference::split(row.url.as_deref()?);
    let is_downward = from.has_scheme("https") && scheme == Scheme::Http;
    (!is_downward).then(|| given(Setting::Fetch, scheme.as_str()))
}
