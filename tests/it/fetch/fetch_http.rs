//! http and https with nginx (docs/design.md, "Retrieval").
//!
//! Connections are made only to 127.0.0.1. The tests determine how names are resolved.

use std::sync::Arc;

use crate::common::programs::{Served, nginx};
use crate::common::world::{Told, fetch, policy, refused, request};
use embody::engine::Need;
use embody::fetch::{Fetch as _, Fetcher};
use embody::policy::{Policy, Scheme};
use embody::report::{Reason, Retry};

const FILES: &[(&str, &[u8])] = &[
    ("hello.txt", b"hello\r\nworld, world, world, world"),
    ("empty.txt", b""),
    ("page.html", b"<p>not an image"),
    ("404.html", b"<h1>Nothing here</h1>"),
    ("a b%c|{d}^.txt", b"odd"),
];

fn started(test: &str) -> Option<(Served, Policy)> {
    let server = nginx(test, FILES)?;
    let mut policy = policy(&[server.port, server.secure]);
    policy = policy.with_ca_file(server.folder.path().join("ca.pem"));
    Some((server, policy))
}

fn plain(server: &Served, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", server.port)
}

fn secure(server: &Served, path: &str) -> String {
    format!("https://127.0.0.1:{}{path}", server.secure)
}

#[test]
fn a_file_comes_whole_and_with_its_type() {
    let Some((server, policy)) = started("a_file_comes_whole_and_with_its_type") else {
        return;
    };
    // nginx sends the text with gzip and chunked encoding, the other files with Content-Length.
    for (path, body, media_type) in [
        ("/hello.txt", FILES[0].1, "text/plain"),
        ("/empty.txt", b"".as_slice(), "text/plain"),
        ("/page.html", FILES[2].1, "text/html"),
        ("/a%20b%25c|{d}^.txt", b"odd".as_slice(), "text/plain"),
    ] {
        for url in [plain(&server, path), secure(&server, path)] {
            let got = fetch(&policy, &format!("{url}#fragment")).expect(&url);
            assert_eq!(got.bytes(), body, "{url}");
            assert_eq!(got.media_type.as_deref(), Some(media_type), "{url}");
            assert_eq!(
                got.origin.url.to_string(),
                url.replace("{d}", "%7Bd%7D"),
                "no fragment, as the URL standard writes it"
            );
        }
    }
}

#[test]
fn url_is_refused_unless_network_port_and_scheme_are_allowed() {
    let Some((server, open)) = started("url_is_refused_unless_network_port_and_scheme_are_allowed")
    else {
        return;
    };
    let url = plain(&server, "/hello.txt");
    assert!(fetch(&open, &url).is_ok());
    let with_ports = Policy::default().with_allow_ports([server.port]);
    let policy = with_ports.clone().with_fetch(Scheme::ALL);
    assert_eq!(refused(&policy, &url).reason, Reason::PrivateAddress);
    let loopback = "127.0.0.0/8".parse().unwrap();
    let policy = Policy::default()
        .with_fetch(Scheme::ALL)
        .with_allow_nets([loopback]);
    assert_eq!(refused(&policy, &url).reason, Reason::PortNotAllowed);
    let policy = with_ports.with_allow_nets([loopback]);
    assert_eq!(refused(&policy, &url).reason, Reason::SchemeNotAllowed);
}

#[test]
fn unlike_nmh_a_404_page_is_not_a_body() {
    let Some((server, policy)) = started("unlike_nmh_a_404_page_is_not_a_body") else {
        return;
    };
    for url in [
        plain(&server, "/nowhere.gif"),
        secure(&server, "/nowhere.gif"),
    ] {
        let refusal = refused(&policy, &url);
        assert_eq!(refusal.reason, Reason::HttpStatus);
        assert_eq!(refusal.retry, Retry::Never);
        assert!(refusal.detail.contains("404"), "{refusal:?}");
    }
}

#[test]
fn unlike_nmh_text_html_is_not_taken_for_a_declared_image_gif() {
    let Some((server, policy)) =
        started("unlike_nmh_text_html_is_not_taken_for_a_declared_image_gif")
    else {
        return;
    };
    let mut asked = request(&plain(&server, "/page.html"));
    asked.need = Need::of_url(asked.url(), Some("image/gif"));
    let got = Fetcher::new(policy.clone()).unwrap().fetch(&asked).unwrap();
    // The expander compares this type with the declared one, so it must be exactly the type that the server sent.
    assert_eq!(got.media_type.as_deref(), Some("text/html"));
}

#[test]
fn only_200_is_an_answer_and_busy_servers_are_temporary() {
    let Some((server, policy)) = started("only_200_is_an_answer_and_busy_servers_are_temporary")
    else {
        return;
    };
    for (path, holds) in [
        ("/gone", Retry::Never),
        ("/none", Retry::Never),
        ("/busy", Retry::Later),
        ("/many", Retry::Later),
    ] {
        let refusal = refused(&policy, &plain(&server, path));
        assert_eq!(refusal.reason, Reason::HttpStatus, "{path}");
        assert_eq!(refusal.retry, holds, "{path}");
    }
}

#[test]
fn redirects_are_followed_upwards_and_never_from_https_to_http() {
    let Some((server, policy)) =
        started("redirects_are_followed_upwards_and_never_from_https_to_http")
    else {
        return;
    };
    for (from, to) in [
        (plain(&server, "/moved"), plain(&server, "/hello.txt")),
        (plain(&server, "/secure"), secure(&server, "/hello.txt")),
        (secure(&server, "/moved"), secure(&server, "/hello.txt")),
        (plain(&server, "/insecure"), plain(&server, "/hello.txt")),
    ] {
        let got = fetch(&policy, &from).expect(&from);
        assert_eq!(
            (got.origin.url.to_string(), &**got.bytes()),
            (to, FILES[0].1)
        );
    }
    let refusal = refused(&policy, &secure(&server, "/insecure"));
    assert_eq!(refusal.reason, Reason::RedirectRefused);
}

#[test]
fn a_server_is_told_the_type_our_name_and_nothing_else() {
    let Some((server, policy)) = started("a_server_is_told_the_type_our_name_and_nothing_else")
    else {
        return;
    };
    let world = Fetcher::new(policy.clone()).unwrap();
    for (accept, sent) in [
        (Some("image/gif"), "image/gif"),
        (None, "*/*"),
        (Some("image/gif\r\nCookie: a"), "*/*"),
    ] {
        let mut asked = request(&plain(&server, "/asked"));
        asked.need = Need::of_url(asked.url(), accept);
        let got = world.fetch(&asked).unwrap();
        let expected = format!("{sent}|embody/{}||||gzip", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8_lossy(got.bytes()), expected);
    }
}

#[test]
fn an_unknown_ca_or_another_name_is_refused() {
    let Some((server, policy)) = started("an_unknown_ca_or_another_name_is_refused") else {
        return;
    };
    let strangers = crate::common::world::policy(&[server.secure]);
    let refusal = refused(&strangers, &secure(&server, "/hello.txt"));
    assert_eq!(refusal.reason, Reason::TlsFailed, "{refusal:?}");

    let names = Told::of(&[
        ("www.example.test", &["127.0.0.1"]),
        ("other.example.test", &["127.0.0.1"]),
    ]);
    let world = Fetcher::with_names(policy.clone(), names).unwrap();
    let url = |host: &str| format!("https://{host}:{}/hello.txt", server.secure);
    let got = world.fetch(&request(&url("www.example.test"))).unwrap();
    assert_eq!(got.bytes(), FILES[0].1);
    let refusal = world
        .fetch(&request(&url("other.example.test")))
        .unwrap_err();
    assert_eq!(refusal.reason, Reason::TlsFailed, "{refusal:?}");
}

#[test]
fn host_is_refused_if_any_resolved_address_is_forbidden() {
    let Some((server, policy)) = started("host_is_refused_if_any_resolved_address_is_forbidden")
    else {
        return;
    };
    let names = Told::of(&[
        ("good.example", &["127.0.0.1", "127.0.0.2"]),
        ("private.example", &["10.0.0.1"]),
        ("metadata.example", &["169.254.169.254"]),
        ("both.example", &["127.0.0.1", "192.168.1.1"]),
        ("six.example", &["::1"]),
        ("mapped.example", &["::ffff:10.0.0.1"]),
        ("nothing.example", &[]),
    ]);
    let world = Fetcher::with_names(policy.clone(), Arc::clone(&names) as _).unwrap();
    let ask = |host: &str| {
        world.fetch(&request(&format!(
            "http://{host}:{}/hello.txt",
            server.port
        )))
    };
    assert_eq!(ask("good.example").unwrap().bytes(), FILES[0].1);
    for host in [
        "private.example",
        "metadata.example",
        "both.example",
        "six.example",
        "mapped.example",
    ] {
        assert_eq!(
            ask(host).unwrap_err().reason,
            Reason::PrivateAddress,
            "{host}"
        );
    }
    for host in ["nothing.example", "unknown.example"] {
        assert_eq!(
            ask(host).unwrap_err().reason,
            Reason::NameNotFound,
            "{host}"
        );
    }
    // localhost is resolved without a lookup (RFC 6761), and a number is not a name.
    assert_eq!(ask("localhost").unwrap().bytes(), FILES[0].1);
    assert_eq!(ask("127.1").unwrap().bytes(), FILES[0].1);
    assert!(
        names
            .asked
            .lock()
            .unwrap()
            .iter()
            .all(|name| name.ends_with(".example"))
    );
}
