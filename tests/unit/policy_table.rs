//! The table of refusals: requests that a hostile mail may cause, and the reasons for refusing them.
//!
//! These tests use no sockets, read no files and resolve no names.

use std::path::PathBuf;

use embody::policy::{Host, HostPattern, HostPatterns, Mapping, Policy, Proxy, Scheme};
use embody::report::{Reason, Setting};

/// Allows everything that an option can allow, except what the rows of the table test.
fn open_policy() -> Policy {
    Policy {
        fetch: Scheme::ALL.into_iter().collect(),
        file_roots: vec![PathBuf::from("/srv/files")],
        ..Policy::default()
    }
}

const REFUSED: &[(&str, Reason)] = &[
    // Numeric forms of one loopback address.
    ("http://127.0.0.1/", Reason::PrivateAddress),
    ("http://127.0.0.1./", Reason::PrivateAddress),
    ("http://127.1/", Reason::PrivateAddress),
    ("http://127.0.1/", Reason::PrivateAddress),
    ("http://0x7f.1/", Reason::PrivateAddress),
    ("http://0x7f000001/", Reason::PrivateAddress),
    ("http://0X7F.0.0.1/", Reason::PrivateAddress),
    ("http://2130706433/", Reason::PrivateAddress),
    ("http://017700000001/", Reason::PrivateAddress),
    ("http://0177.0.0.1/", Reason::PrivateAddress),
    ("http://127.0.0.0x1/", Reason::PrivateAddress),
    ("http://%31%32%37.0.0.1/", Reason::PrivateAddress),
    ("http://127%2e0%2e0%2e1/", Reason::PrivateAddress),
    ("http://１２７.０.０.１/", Reason::PrivateAddress),
    ("http://127。0。0。1/", Reason::PrivateAddress),
    ("http://①②⑦.0.0.1/", Reason::PrivateAddress),
    ("HTTP://127.0.0.1/", Reason::PrivateAddress),
    ("https://127.0.0.1/", Reason::PrivateAddress),
    ("ftp://127.0.0.1/f", Reason::PrivateAddress),
    ("ftp://0x7f.1/f", Reason::PrivateAddress),
    // The special networks of IPv4.
    ("http://0.0.0.0/", Reason::PrivateAddress),
    ("http://0/", Reason::PrivateAddress),
    ("http://0.1.2.3/", Reason::PrivateAddress),
    ("http://10.0.0.1/", Reason::PrivateAddress),
    ("http://10.255.255.255/", Reason::PrivateAddress),
    ("http://100.64.0.1/", Reason::PrivateAddress),
    ("http://100.127.255.255/", Reason::PrivateAddress),
    ("http://127.255.255.254/", Reason::PrivateAddress),
    (
        "http://169.254.169.254/latest/meta-data/",
        Reason::PrivateAddress,
    ),
    ("http://172.16.0.1/", Reason::PrivateAddress),
    ("http://172.31.255.255/", Reason::PrivateAddress),
    ("http://192.0.0.8/", Reason::PrivateAddress),
    ("http://192.0.2.1/", Reason::PrivateAddress),
    ("http://192.88.99.1/", Reason::PrivateAddress),
    ("http://192.168.0.1/", Reason::PrivateAddress),
    ("http://198.18.0.1/", Reason::PrivateAddress),
    ("http://198.19.255.255/", Reason::PrivateAddress),
    ("http://198.51.100.7/", Reason::PrivateAddress),
    ("http://203.0.113.7/", Reason::PrivateAddress),
    ("http://224.0.0.1/", Reason::PrivateAddress),
    ("http://239.255.255.250/", Reason::PrivateAddress),
    ("http://240.0.0.1/", Reason::PrivateAddress),
    ("http://255.255.255.255/", Reason::PrivateAddress),
    // The special networks of IPv6, and IPv4 addresses inside IPv6.
    ("http://[::]/", Reason::PrivateAddress),
    ("http://[::1]/", Reason::PrivateAddress),
    ("http://[0:0:0:0:0:0:0:1]/", Reason::PrivateAddress),
    ("http://[::127.0.0.1]/", Reason::PrivateAddress),
    ("http://[::8.8.8.8]/", Reason::PrivateAddress),
    ("http://[::ffff:127.0.0.1]/", Reason::PrivateAddress),
    ("http://[::ffff:7f00:1]/", Reason::PrivateAddress),
    ("http://[::ffff:10.0.0.1]/", Reason::PrivateAddress),
    ("http://[::ffff:0:127.0.0.1]/", Reason::PrivateAddress),
    ("http://[64:ff9b::7f00:1]/", Reason::PrivateAddress),
    ("http://[64:ff9b::10.0.0.1]/", Reason::PrivateAddress),
    ("http://[64:ff9b:1::8.8.8.8]/", Reason::PrivateAddress),
    ("http://[2002:7f00:1::]/", Reason::PrivateAddress),
    ("http://[2002:a00:1::1]/", Reason::PrivateAddress),
    (
        "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
        Reason::PrivateAddress,
    ),
    (
        "http://[2606:4700::5efe:127.0.0.1]/",
        Reason::PrivateAddress,
    ),
    (
        "http://[2606:4700::200:5efe:10.0.0.1]/",
        Reason::PrivateAddress,
    ),
    ("http://[100::1]/", Reason::PrivateAddress),
    ("http://[2001:db8::1]/", Reason::PrivateAddress),
    ("http://[3fff::1]/", Reason::PrivateAddress),
    ("http://[5f00::1]/", Reason::PrivateAddress),
    ("http://[4000::1]/", Reason::PrivateAddress),
    ("http://[fc00::1]/", Reason::PrivateAddress),
    ("http://[fd12:3456::1]/", Reason::PrivateAddress),
    ("http://[fe80::1]/", Reason::PrivateAddress),
    ("http://[fe80::1%eth0]/", Reason::PrivateAddress),
    ("http://[fe80::1%25eth0]/", Reason::PrivateAddress),
    ("http://[fec0::1]/", Reason::PrivateAddress),
    ("http://[ff02::1]/", Reason::PrivateAddress),
    // Names of this machine.
    ("http://localhost/", Reason::PrivateAddress),
    ("http://localhost./", Reason::PrivateAddress),
    ("http://LocalHost/", Reason::PrivateAddress),
    ("http://loc%61lhost/", Reason::PrivateAddress),
    ("http://printer.localhost/", Reason::PrivateAddress),
    // User names and passwords, and user names that look like a host.
    (
        "http://user:pass@www.example.org/",
        Reason::UserinfoNotAllowed,
    ),
    ("http://user@www.example.org/", Reason::UserinfoNotAllowed),
    ("http://:pass@www.example.org/", Reason::UserinfoNotAllowed),
    ("http://good@127.0.0.1/", Reason::UserinfoNotAllowed),
    ("http://good%40@127.0.0.1/", Reason::UserinfoNotAllowed),
    (
        "ftp://user:pass@ftp.example.org/f",
        Reason::UserinfoNotAllowed,
    ),
    // Ports that are not allowed.
    ("http://www.example.org:8080/", Reason::PortNotAllowed),
    ("http://www.example.org:0/", Reason::PortNotAllowed),
    ("http://www.example.org:443/", Reason::PortNotAllowed),
    ("http://www.example.org:25/", Reason::PortNotAllowed),
    ("https://www.example.org:80/", Reason::PortNotAllowed),
    ("ftp://ftp.example.org:22/f", Reason::PortNotAllowed),
    // Characters that are not allowed in a URL.
    ("ftp://ftp.example.org/a%0d%0aDELE%20b", Reason::BadUrl),
    ("ftp://ftp.example.org/a%0A", Reason::BadUrl),
    ("ftp://ftp.example.org/a%00b", Reason::BadUrl),
    ("ftp://ftp.example.org/a%0db", Reason::BadUrl),
    ("http://www.example.org/a\nb", Reason::BadUrl),
    ("http://www.example.org/a b", Reason::BadUrl),
    ("http://www.example.org/a\u{7f}", Reason::BadUrl),
    ("http://www.exa\tmple.org/", Reason::BadUrl),
    // Texts that are not URLs.
    ("-V", Reason::BadUrl),
    ("--upload-file=/etc/passwd", Reason::BadUrl),
    ("", Reason::BadUrl),
    (":", Reason::BadUrl),
    ("1http://www.example.org/", Reason::BadUrl),
    ("//www.example.org/", Reason::BadUrl),
    ("/etc/passwd", Reason::BadUrl),
    ("www.example.org/a", Reason::BadUrl),
    ("http:", Reason::BadUrl),
    ("http:/", Reason::BadUrl),
    ("http://", Reason::BadUrl),
    ("http:127.0.0.1/", Reason::BadUrl),
    ("http:/127.0.0.1/", Reason::BadUrl),
    ("http:///127.0.0.1/", Reason::BadUrl),
    ("http:\\\\127.0.0.1/", Reason::BadUrl),
    ("http://256.256.256.256/", Reason::BadUrl),
    ("http://1.2.3.4.5/", Reason::BadUrl),
    ("http://exa<mple.org/", Reason::BadUrl),
    ("http://[::1/", Reason::BadUrl),
    ("http://www.example.org:99999/", Reason::BadUrl),
    ("http://www.example.org:8o/", Reason::BadUrl),
    // Schemes that are not allowed.
    ("gopher://www.example.org/", Reason::SchemeNotAllowed),
    ("javascript:alert(1)", Reason::SchemeNotAllowed),
    ("data:,x", Reason::SchemeNotAllowed),
    ("mailto:a@example.org", Reason::SchemeNotAllowed),
    ("dict://127.0.0.1:11211/", Reason::SchemeNotAllowed),
    ("ldap://127.0.0.1/", Reason::SchemeNotAllowed),
    // Files outside of the allowed directories.
    ("file:///etc/passwd", Reason::OutsideFileRoot),
    ("file:/etc/passwd", Reason::OutsideFileRoot),
    ("file://localhost/etc/passwd", Reason::OutsideFileRoot),
    ("file:///srv/files-too/a", Reason::OutsideFileRoot),
    (
        "file:///srv/files/../../etc/passwd",
        Reason::OutsideFileRoot,
    ),
    ("file:///srv/files/%2e%2e/secret", Reason::OutsideFileRoot),
    ("file:///srv/files/%2E./secret", Reason::OutsideFileRoot),
    (
        "file:///srv/files/a%2f..%2f..%2fsecret",
        Reason::OutsideFileRoot,
    ),
    ("file:///srv/files/..", Reason::OutsideFileRoot),
    ("file:///srv/files/a%00.png", Reason::BadUrl),
    ("file:///srv/files/a?b", Reason::BadUrl),
    ("file:srv/files/a", Reason::BadUrl),
    ("file:", Reason::BadUrl),
    ("file://", Reason::BadUrl),
    ("file://fileserver/srv/files/a", Reason::UnsupportedScheme),
    ("file://127.0.0.1/srv/files/a", Reason::UnsupportedScheme),
];

#[test]
fn every_row_of_the_refusal_table_is_refused_with_its_own_reason() {
    assert!(REFUSED.len() >= 60, "{} rows", REFUSED.len());
    let policy = open_policy();
    let wrong: Vec<_> = REFUSED
        .iter()
        .filter_map(|(url, reason)| match policy.judge_url(url) {
            Err(refusal) if refusal.reason == *reason => None,
            other => Some(format!("{url}: wanted {reason:?}, got {other:?}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn refusals_repeat_no_password() {
    let policy = open_policy();
    for url in [
        "http://user:secret@www.example.org/",
        "http://user:secret@127.0.0.1/",
        "http://user:secret@[::1",
        "gopher://user:secret@h/",
        "file://user:secret@h/x",
    ] {
        let refusal = policy.judge_url(url).expect_err(url);
        assert!(!refusal.detail.contains("secret"), "{url}: {refusal:?}");
    }
}

#[test]
fn the_default_policy_retrieves_nothing() {
    let policy = Policy::default();
    for url in [
        "http://www.example.org/",
        "https://www.example.org/",
        "ftp://ftp.example.org/f",
        "file:///srv/files/a",
        "file://fileserver/srv/files/a",
        "gopher://www.example.org/",
        "mailto:a@example.org",
        "news:comp.mail.mime",
        "mid:a@example.org",
        "x-foo:bar",
    ] {
        let refusal = policy.judge_url(url).expect_err(url);
        assert_eq!(refusal.reason, Reason::SchemeNotAllowed, "{url}");
        assert!(
            refusal.detail.settings().eq([Setting::Fetch]),
            "{url}: {refusal:?}"
        );
    }
}

#[test]
fn ordinary_urls_are_allowed_and_name_what_they_seem_to_name() {
    let policy = open_policy();
    for (url, host, port, sent) in [
        (
            "http://www.example.org",
            "www.example.org",
            80,
            "http://www.example.org/",
        ),
        (
            "HTTPS://WWW.Example.ORG:443/A%2fb?c=d#e",
            "www.example.org",
            443,
            "https://www.example.org/A%2fb?c=d",
        ),
        (
            "http://www.example.org:80/x",
            "www.example.org",
            80,
            "http://www.example.org/x",
        ),
        (
            "ftp://ftp.example.org/%2Fetc/motd;type=a",
            "ftp.example.org",
            21,
            "ftp://ftp.example.org/%2Fetc/motd;type=a",
        ),
        ("http://8.8.8.8/", "8.8.8.8", 80, "http://8.8.8.8/"),
        ("http://134744072/", "8.8.8.8", 80, "http://8.8.8.8/"),
        (
            "http://[2606:4700::1111]/",
            "2606:4700::1111",
            80,
            "http://[2606:4700::1111]/",
        ),
        (
            "http://[64:ff9b::808:808]/",
            "64:ff9b::808:808",
            80,
            "http://[64:ff9b::808:808]/",
        ),
        (
            "http://[::ffff:8.8.8.8]/",
            "::ffff:8.8.8.8",
            80,
            "http://[::ffff:808:808]/",
        ),
        (
            "http://bücher.example/",
            "xn--bcher-kva.example",
            80,
            "http://xn--bcher-kva.example/",
        ),
        (
            "http://good.example\\@127.0.0.1/",
            "good.example",
            80,
            "http://good.example/@127.0.0.1/",
        ),
        (
            "http://good.example#@127.0.0.1/",
            "good.example",
            80,
            "http://good.example/",
        ),
    ] {
        let target = policy.judge_url(url).expect(url);
        assert_eq!(
            target.host().map(|host| host.to_string()).as_deref(),
            Some(host),
            "{url}"
        );
        assert_eq!(target.port(), Some(port), "{url}");
        assert_eq!(target.request_url(), sent, "{url}");
    }
    let target = policy
        .judge_url("file:///srv/files/a%20b%2520c#top")
        .expect("a file");
    assert_eq!(
        target.path(),
        Some(PathBuf::from("/srv/files/a b%20c").as_path())
    );
    assert_eq!(target.public_url(), "file:///srv/files/a%20b%2520c");
}

#[test]
fn a_net_opens_its_addresses_and_no_others() {
    let mut policy = open_policy();
    policy.allow_nets = vec!["127.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
    for url in [
        "http://127.1/",
        "http://localhost/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fd00::1]/",
    ] {
        policy.judge_url(url).expect(url);
    }
    for url in [
        "http://10.0.0.1/",
        "http://[::1]/",
        "http://[2002:7f00:1::]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fc00::1]/",
    ] {
        assert_eq!(
            policy.judge_url(url).expect_err(url).reason,
            Reason::PrivateAddress,
            "{url}"
        );
    }
}

#[test]
fn an_allowed_host_does_not_open_a_private_address() {
    let mut policy = open_policy();
    policy.allow_hosts =
        HostPatterns::from_iter(["127.0.0.1", "localhost"].map(|it| it.parse().unwrap()));
    for url in ["http://127.0.0.1/", "http://localhost/"] {
        assert_eq!(
            policy.judge_url(url).expect_err(url).reason,
            Reason::PrivateAddress,
            "{url}"
        );
    }
}

#[test]
fn deny_wins_and_case_and_trailing_dots_do_not_matter() {
    let mut policy = open_policy();
    policy.allow_hosts =
        HostPatterns::from_iter(["*.Example.org.", "example.net"].map(|it| it.parse().unwrap()));
    policy.deny_hosts =
        HostPatterns::from_iter(["EVIL.example.org", "8.8.8.8"].map(|it| it.parse().unwrap()));
    for url in [
        "http://www.example.org/",
        "http://WWW.EXAMPLE.ORG./",
        "http://a.b.example.org/",
        "http://example.net./",
    ] {
        policy.judge_url(url).expect(url);
    }
    for url in [
        "http://example.org/",
        "http://badexample.org/",
        "http://example.org.evil.example/",
        "http://www.example.net/",
        "http://evil.example.org/",
        "http://Evil.Example.Org./",
        "http://134744072/",
    ] {
        assert_eq!(
            policy.judge_url(url).expect_err(url).reason,
            Reason::HostNotAllowed,
            "{url}"
        );
    }
}

#[test]
fn ports_and_credentials_can_be_allowed() {
    let mut policy = open_policy();
    policy.allow_ports = [8080].into();
    policy.allow_userinfo = true;
    let target = policy
        .judge_url("http://us%65r:p%40ss@www.example.org:8080/a#b")
        .unwrap();
    assert_eq!(target.port(), Some(8080));
    assert_eq!(
        target.userinfo(),
        Some((b"user".to_vec(), b"p@ss".to_vec()))
    );
    assert_eq!(target.request_url(), "http://www.example.org:8080/a");
    assert_eq!(target.public_url(), "http://us%65r@www.example.org:8080/a");
    assert_eq!(
        policy
            .judge_url("http://www.example.org:8081/")
            .unwrap_err()
            .reason,
        Reason::PortNotAllowed
    );
}

#[test]
fn a_redirect_is_judged_like_a_first_url() {
    let mut policy = open_policy();
    policy.fetch = [Scheme::Http, Scheme::Https].into();
    let from = policy.judge_url("http://www.example.org/a/b").unwrap();
    for (location, sent) in [
        ("c", "http://www.example.org/a/c"),
        ("/c?d", "http://www.example.org/c?d"),
        ("//example.net/", "http://example.net/"),
        ("https://example.net/", "https://example.net/"),
    ] {
        assert_eq!(
            policy
                .judge_redirect(&from, location)
                .unwrap()
                .request_url(),
            sent
        );
    }
    let mut rows = 0;
    for (url, reason) in REFUSED.iter().filter(|(url, _)| url.contains("://")) {
        let refusal = policy
            .judge_redirect(&from, url)
            .map(|target| target.request_url());
        let scheme = url.split(':').next().unwrap_or("").to_ascii_lowercase();
        match refusal {
            // A redirect to files, ftp or other schemes is refused for this reason, whatever else is wrong.
            Err(refusal) if !matches!(&*scheme, "http" | "https") => {
                assert_eq!(refusal.reason, Reason::RedirectRefused, "{url}");
            }
            Err(refusal) if *reason == Reason::BadUrl => {
                assert!(
                    matches!(
                        refusal.reason,
                        Reason::RedirectRefused | Reason::BadUrl | Reason::PrivateAddress
                    ),
                    "{url}: {refusal:?}"
                );
            }
            // With a zone id, the Location is not a valid URL.
            Err(refusal) if url.contains('%') && url.contains('[') => {
                assert_eq!(refusal.reason, Reason::RedirectRefused, "{url}");
            }
            Err(refusal) => assert_eq!(refusal.reason, *reason, "{url}"),
            // Browsers remove or escape invalid characters in a Location.
            Ok(sent) => assert!(
                *reason == Reason::BadUrl && sent.contains(".example.org/"),
                "{url} became {sent}"
            ),
        }
        rows += 1;
    }
    assert!(rows > 60, "{rows} redirects");
}

#[test]
fn no_redirect_leaves_https_or_http() {
    let mut policy = open_policy();
    let from = policy.judge_url("https://www.example.org/").unwrap();
    for location in [
        "http://www.example.org/",
        "file:///srv/files/a",
        "data:,x",
        "ftp://ftp.example.org/f",
        "javascript:alert(1)",
        "http://",
    ] {
        let refusal = policy.judge_redirect(&from, location).expect_err(location);
        assert_eq!(refusal.reason, Reason::RedirectRefused, "{location}");
    }
    policy.fetch = [Scheme::Http].into();
    let from = policy.judge_url("http://www.example.org/").unwrap();
    let refusal = policy
        .judge_redirect(&from, "https://www.example.org/")
        .unwrap_err();
    assert_eq!(refusal.reason, Reason::RedirectRefused);
}

#[test]
fn longest_url_map_wins_and_matches_only_whole_host_names() {
    let mut policy = open_policy();
    for text in [
        "ftp://ftp.ietf.org/=https://www.ietf.org/other/",
        "ftp://ftp.ietf.org/internet-drafts/=https://www.ietf.org/archive/id/",
        "http://old.example=https://new.example",
        "http://q.example/?a=b&c=https://r.example/?d=e",
    ] {
        policy.maps.push(text.parse().expect(text));
    }
    for (url, mapped) in [
        (
            "FTP://FTP.ietf.org/internet-drafts/x.txt",
            "https://www.ietf.org/archive/id/x.txt",
        ),
        (
            "ftp://ftp.ietf.org/rfc/x.txt",
            "https://www.ietf.org/other/rfc/x.txt",
        ),
        (
            "ftp://ftp.ietf.org/Internet-Drafts/x",
            "https://www.ietf.org/other/Internet-Drafts/x",
        ),
        ("http://old.example/a", "https://new.example/a"),
        ("http://old.example", "https://new.example"),
        ("http://old.example.evil/a", "http://old.example.evil/a"),
        ("http://q.example/?a=b&cx", "https://r.example/?d=ex"),
        ("http://ö", "http://ö"),
    ] {
        assert_eq!(policy.map(url), mapped);
    }
    for text in [
        // The text after the slash would become the end of the host name.
        "http://a/=https://new.example",
        "http://a/=https://user@new.example:80",
        "http://a/b=https://new.example",
        "cid:x=http://new.example",
        "http://a/=https://",
        "http://a/=https:",
        "http://a=https:",
        "http:=https://",
        "http://=https://new.example.",
        "",
        "=",
        "a=b",
        "http://a/",
        "http://a/=b",
        "=http://a/",
        "http://a /=http://b/",
    ] {
        assert!(text.parse::<Mapping>().is_err(), "{text}");
    }
}

#[test]
fn url_map_may_replace_a_scheme_a_host_or_a_path_prefix() {
    for (map, url, mapped) in [
        ("http:=https:", "http://a.example/x", "https://a.example/x"),
        ("http://=https://", "HTTP://a.example", "https://a.example"),
        (
            "http://a.example=https://b.example",
            "http://a.example?x",
            "https://b.example?x",
        ),
        (
            "x-old:=http://b.example/?id=",
            "x-old:7",
            "http://b.example/?id=7",
        ),
        (
            "file:///C:/=file:///home/",
            "file:///C:/x",
            "file:///home/x",
        ),
    ] {
        let mut policy = open_policy();
        policy.maps.push(map.parse().expect(map));
        assert_eq!(policy.map(url), mapped, "{map}");
    }
}

#[test]
fn a_denied_host_is_denied_under_every_spelling_that_reaches_it() {
    let denying = |pattern: &str| {
        let mut policy = open_policy();
        policy.deny_hosts.extend([pattern.parse().expect(pattern)]);
        policy
    };
    for (pattern, url) in [
        ("evil.example", "http://evil.example./"),
        ("evil.example", "http://evil.example../"),
        ("evil.example..", "http://EVIL.example/"),
        (".evil.example", "http://www.evil.example./"),
        ("93.184.216.34", "http://[64:ff9b::93.184.216.34]/"),
        ("93.184.216.34", "http://[64:ff9b::5db8:d822]/"),
        ("93.184.216.34", "http://[::ffff:93.184.216.34]/"),
        ("[64:ff9b::5db8:d822]", "http://93.184.216.34/"),
        ("93.184.216.34", "http://0x5db8d822/"),
    ] {
        let reason = denying(pattern)
            .judge_url(url)
            .map_err(|refusal| refusal.reason);
        // A name with an empty label may already be refused for that reason.
        assert!(
            matches!(reason, Err(Reason::HostNotAllowed | Reason::BadUrl)),
            "{pattern} {url}: {reason:?}"
        );
    }
    let policy = denying(".evil.example");
    assert!(
        policy.judge_url("http://evil.example/").is_ok(),
        "as with *.evil.example"
    );
    assert!(policy.judge_url("http://notevil.example/").is_ok());
    // The addresses of a name are also checked.
    let refusal = denying("93.184.216.34").judge_address("93.184.216.34".parse().unwrap());
    assert_eq!(refusal.unwrap_err().reason, Reason::HostNotAllowed);
}

#[test]
fn options_that_make_no_sense_are_refused_with_a_sentence() {
    for text in [
        "",
        "*",
        "*.",
        ".",
        "..example.org",
        "*..example.org",
        "*.*.org",
        "a*.example.org",
        "http://a/",
        "a/b",
        "*.127.0.0.1",
        "a b",
    ] {
        assert!(text.parse::<HostPattern>().is_err(), "{text}");
    }
    let loopback = HostPatterns::from_iter(["::1".parse().unwrap()]);
    assert!(loopback.matches(&Host::Address("::1".parse().unwrap())));
    for text in ["", "proxy", "socks5://h:1", "ftp://h/"] {
        assert!(text.parse::<Proxy>().is_err(), "{text}");
    }
    let proxy: Proxy = "http://user:secret@proxy.example:3128".parse().unwrap();
    assert!(!format!("{proxy:?}").contains("secret"));
}

#[test]
fn behind_a_proxy_names_of_the_own_network_are_refused_unless_they_are_named() {
    let direct = Policy {
        fetch: [Scheme::Http, Scheme::Https, Scheme::Ftp].into(),
        ..Policy::default()
    };
    let proxied = Policy {
        proxy: Some("http://proxy.example:3128".parse().unwrap()),
        ..direct.clone()
    };
    let named = Policy {
        allow_hosts: HostPatterns::from_iter(["wiki", "*.internal"].map(|it| it.parse().unwrap())),
        ..proxied.clone()
    };
    for (url, is_named) in [
        ("http://wiki/", true),
        ("https://WIKI./a", true),
        ("http://metadata.google.internal/a", true),
        ("http://nas.local/", false),
        ("http://nas.home.arpa/", false),
    ] {
        assert!(direct.judge_url(url).is_ok(), "{url}");
        let refusal = proxied.judge_url(url).unwrap_err();
        assert_eq!(refusal.reason, Reason::PrivateAddress, "{url}");
        assert_eq!(named.judge_url(url).is_ok(), is_named, "{url}");
    }
    for url in ["http://www.example.org/", "http://8.8.8.8/", "ftp://wiki/a"] {
        assert!(proxied.judge_url(url).is_ok(), "{url}");
    }
    let from = proxied.judge_url("http://www.example.org/").unwrap();
    assert!(proxied.judge_redirect(&from, "http://wiki/").is_err());
}
