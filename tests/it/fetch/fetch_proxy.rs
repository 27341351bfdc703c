//! `--proxy`: http requests are in absolute form (RFC 9112 §3.2.2), https uses CONNECT, and the same checks apply as without a
//! proxy. Real proxies are tested in proxies.rs.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use embody::fetch::{Fetch as _, Fetcher};
use embody::policy::{Policy, Scheme};
use embody::report::{Reason, Retry};

use crate::common::filter::{filled, filter, mail, reference};
use crate::common::programs::{Served, embody, free_port, nginx, nginx_with, program, skipped};
use crate::common::raw::{Raw, exact_head, ok, redirect};
use crate::common::world::{fetch, policy, refused, request};

const TEXT: &[u8] = b"hello, hello, hello\nworld";
const FILES: &[(&str, &[u8])] = &[("dot.gif", b"GIF89a\0 a picture"), ("hello.txt", TEXT)];

/// The credentials "me:secret" in the form of Basic authentication.
const ME: &str = "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n";

/// Returns a policy with this proxy. The only address that is not public is that of the proxy, which the user configured.
fn through(proxy: &Raw) -> Policy {
    Policy::default()
        .with_fetch(Scheme::ALL)
        .with_limits(policy(&[]).limits().clone())
        .with_proxy(format!("http://{}", proxy.address).parse().unwrap())
}

/// Returns a proxy that responds itself, to this number of requests on each connection, and the requests that it got.
fn answering(
    most: usize,
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> (Raw, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    let proxy = Raw::connections(move |mut stream| {
        for _ in 0..most {
            let Some(head) = exact_head(&mut stream) else {
                return;
            };
            let answer = answer(&head);
            seen.lock().unwrap().push(head);
            let _ = stream.write_all(&answer);
        }
    });
    (proxy, heads)
}

/// Returns a response with the status 200 that keeps the connection open.
fn stays(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn first_line(head: &str) -> &str {
    head.lines().next().unwrap()
}

#[test]
fn http_requests_to_a_proxy_have_absolute_form_and_reuse_connections() {
    let (proxy, heads) = answering(9, |head| stays(first_line(head)));
    let policy = through(&proxy)
        .with_allow_ports([8080])
        .with_allow_userinfo(true);
    let fetcher = Fetcher::new(policy).unwrap();
    let long = format!("http://www.example.org/{}", "x".repeat(60_000));
    for url in [
        "http://www.example.org/a?b=http://c/d",
        "http://www.example.org",
        &long,
        "http://www.example.org:8080/%2F#fragment",
        "http://me:pass@www.example.org/in/",
        "http://[2606:4700::1]/x",
    ] {
        let got = fetcher.fetch(&request(url)).unwrap();
        let without_secrets = url.replace("me:pass@", "").replace("#fragment", "");
        let asked = match without_secrets.as_str() {
            "http://www.example.org" => "http://www.example.org/",
            asked => asked,
        };
        assert_eq!(got.bytes(), format!("GET {asked} HTTP/1.1").as_bytes());
    }
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 6);
    for (head, host) in heads.iter().zip([
        "www.example.org",
        "www.example.org",
        "www.example.org",
        "www.example.org:8080",
        "www.example.org",
        "[2606:4700::1]",
    ]) {
        let head = head.to_ascii_lowercase();
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{head}");
        assert!(!head.contains("proxy-"), "{head}");
    }
    assert!(heads[4].contains("Basic bWU6cGFzcw=="), "{}", heads[4]);
    assert_eq!(heads.join("").matches("Basic").count(), 1);
    // One connection for each host and port.
    assert_eq!(proxy.count(), 3);
}

#[test]
fn request_is_repeated_if_the_proxy_closed_an_idle_connection() {
    let (proxy, heads) = answering(1, |head| stays(first_line(head)));
    let fetcher = Fetcher::new(through(&proxy)).unwrap();
    for number in 0..4 {
        let url = format!("http://www.example.org/{number}");
        let got = fetcher.fetch(&request(&url)).unwrap();
        assert_eq!(got.bytes(), format!("GET {url} HTTP/1.1").as_bytes());
    }
    assert_eq!(heads.lock().unwrap().len(), 4);
}

#[test]
fn private_addresses_stay_refused_behind_a_proxy() {
    let (proxy, _) = answering(1, |_| stays("through"));
    let policy = through(&proxy);
    let got = fetch(&policy, "http://www.example.org/x").unwrap();
    assert_eq!(got.bytes(), b"through".as_slice());
    for url in [
        "http://127.0.0.1/x",
        "http://localhost/x",
        "https://[::1]/",
        "http://printer/x",
        "http://nas.local/x",
    ] {
        assert_eq!(
            refused(&policy, url).reason,
            Reason::PrivateAddress,
            "{url}"
        );
    }
    assert_eq!(
        refused(&policy, "ftp://ftp.example.org/x").reason,
        Reason::UnsupportedScheme
    );
    assert_eq!(
        refused(&policy, "http://www.example.org:8080/").reason,
        Reason::PortNotAllowed
    );
    assert_eq!(proxy.count(), 1);
}

#[test]
fn redirects_behind_a_proxy_are_judged_and_followed_in_absolute_form() {
    let (proxy, heads) = answering(9, |head| {
        let location = match first_line(head).split(' ').nth(1).unwrap() {
            "http://www.example.org/private" => "http://127.0.0.1/",
            "http://www.example.org/secure" => "https://www.example.org/",
            "http://www.example.org/on" => "//www.example.net/there",
            "http://www.example.net/there" => return stays("there"),
            other => panic!("{other}"),
        };
        redirect(location)
    });
    let policy = Policy::default()
        .with_fetch([Scheme::Http])
        .with_proxy(format!("http://{}", proxy.address).parse().unwrap());
    for (path, reason) in [
        ("private", Reason::PrivateAddress),
        ("secure", Reason::RedirectRefused),
    ] {
        let refusal = refused(&policy, &format!("http://www.example.org/{path}"));
        assert_eq!(refusal.reason, reason, "{refusal:?}");
    }
    let got = fetch(&policy, "http://www.example.org/on").unwrap();
    assert_eq!(&*got.origin.url, "http://www.example.net/there");
    assert_eq!(heads.lock().unwrap().len(), 4);
}

#[test]
fn a_proxy_that_wants_a_password_is_named_and_mail_waits_for_it() {
    let (proxy, _) = answering(9, |_| {
        b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\
          Content-Length: 6\r\n\r\nsecret"
            .to_vec()
    });
    let policy = through(&proxy);
    for url in ["http://www.example.org/x", "https://www.example.org/x"] {
        let refusal = refused(&policy, url);
        assert_eq!(refusal.reason, Reason::ConnectionFailed, "{url}");
        assert_eq!(refusal.retry, Retry::Later, "{url}");
        let said = refusal.detail.to_string();
        assert!(
            said.contains(&format!("the proxy {}", proxy.address)) && said.contains("407"),
            "{said}"
        );
    }
    // Without a proxy, a 407 is the response of the source itself.
    let server = Raw::saying("HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let refusal = refused(
        &crate::common::world::policy(&[server.address.port()]),
        &server.url("/"),
    );
    assert_eq!(refusal.reason, Reason::HttpStatus);
}

/// Starts an nginx that responds with the request line and the credentials that it got.
fn echoing(test: &str) -> Option<Served> {
    let echo = "location = /echo { default_type text/plain;
        return 200 \"$request|$http_host|$http_authorization|$http_proxy_authorization|\"; }";
    nginx_with(test, FILES, echo)
}

#[test]
fn the_password_of_the_proxy_goes_to_the_proxy_alone() {
    let Some(server) = echoing("the_password_of_the_proxy_goes_to_the_proxy_alone") else {
        return;
    };
    let plain = Raw::proxy("www.example.test", ([127, 0, 0, 1], server.port).into());
    let secure = Raw::proxy("www.example.test", ([127, 0, 0, 1], server.secure).into());
    let ca = server.folder.path().join("ca.pem");
    for (proxy, scheme) in [(&plain, "http"), (&secure, "https")] {
        let options = format!(
            "--fetch http,https --allow-userinfo --ca-file {} --proxy http://me:secret@{}",
            ca.display(),
            proxy.address
        );
        let url = |user| format!("{scheme}://{user}www.example.test/echo");
        for (user, authorization) in [("", ""), ("you:too@", "Basic eW91OnRvbw==")] {
            let before = mail(&[reference(&url(user), "text/plain")]);
            let body = format!("GET /echo HTTP/1.1|www.example.test|{authorization}||");
            let location = url(if user.is_empty() { "" } else { "you@" });
            let after = mail(&[filled(Some(&location), "text/plain", body.as_bytes())]);
            filter(&options, &before).gives(&after);
        }
        let heads = proxy.heads();
        assert_eq!(heads.len(), 2);
        for head in heads {
            assert!(head.contains(ME), "{head}");
            let line = match scheme {
                "http" => "GET http://www.example.test/echo HTTP/1.1\r\n",
                _ => "CONNECT www.example.test:443 HTTP/1.1\r\n",
            };
            assert!(head.starts_with(line), "{head}");
        }
    }
}

#[test]
fn a_proxy_with_tls_is_verified_and_asked_in_absolute_form() {
    let Some(server) = echoing("a_proxy_with_tls_is_verified_and_asked_in_absolute_form") else {
        return;
    };
    // A server that gets a request in absolute form answers like a proxy (RFC 9112 §3.2.2).
    let before = mail(&[reference("http://www.example.test/echo", "text/plain")]);
    let ca = server.folder.path().join("ca.pem");
    let options = |more: &str| {
        format!(
            "--fetch http {more} --proxy https://me:secret@127.0.0.1:{}",
            server.secure
        )
    };
    let said = format!(
        "GET http://www.example.test/echo HTTP/1.1|www.example.test||{}|",
        ME.trim().trim_start_matches("Proxy-Authorization: ")
    );
    let after = mail(&[filled(
        Some("http://www.example.test/echo"),
        "text/plain",
        said.as_bytes(),
    )]);
    filter(&options(&format!("--ca-file {}", ca.display())), &before).gives(&after);
    filter(&options(""), &before).leaves(&before, &["tls-failed"]);
}

#[test]
fn cached_response_is_revalidated_through_the_proxy() {
    let (proxy, heads) = answering(1, |head| {
        let head = head.to_ascii_lowercase();
        if head.contains("if-none-match: \"one\"") {
            "HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\n\r\n".into()
        } else {
            "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nCache-Control: no-cache\r\n\
        Content-Type: text/plain\r\nContent-Length: 4\r\n\r\nkept"
                .into()
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let url = "http://www.example.org/kept";
    let before = mail(&[reference(url, "text/plain")]);
    let after = mail(&[filled(Some(url), "text/plain", b"kept")]);
    let options = format!(
        "--fetch http --cache {} --proxy http://{}",
        folder.path().join("cache").display(),
        proxy.address
    );
    for asked in [1, 2, 3] {
        filter(&options, &before).gives(&after);
        let heads = heads.lock().unwrap();
        assert_eq!(heads.len(), asked);
        let last = heads.last().unwrap();
        assert!(
            last.starts_with(&format!("GET {url} HTTP/1.1\r\n")),
            "{last}"
        );
        let is_question = last.to_ascii_lowercase().contains("if-none-match");
        assert_eq!(is_question, asked > 1, "{last}");
    }
}

#[test]
fn probe_sends_head_requests_through_the_proxy() {
    let (proxy, heads) = answering(1, |_| {
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n".to_vec()
    });
    let mut child = embody()
        .args(["inspect", "--probe", "--fetch", "http", "--proxy"])
        .arg(format!("http://{}", proxy.address))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let before = mail(&[reference("http://www.example.org/x", "text/plain")]);
    child.stdin.take().unwrap().write_all(&before).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("the server responded to HEAD"), "{said}");
    let heads = heads.lock().unwrap();
    assert_eq!(
        first_line(&heads[0]),
        "HEAD http://www.example.org/x HTTP/1.1"
    );
}

/// A store uses the proxy for requests with bodies, too.
#[test]
fn a_store_is_written_and_read_through_the_proxy() {
    let Some(server) = nginx("a_store_is_written_and_read_through_the_proxy", &[]) else {
        return;
    };
    let address = ([127, 0, 0, 1], server.port).into();
    let proxy = Raw::proxy("www.example.test", address);
    let body: Vec<u8> = (0..300_000_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
        .collect();
    let before = mail(&[filled(None, "image/gif", &body)]);
    let ran = |command: &str, mail: &[u8]| {
        let mut child = embody()
            .args([
                command,
                "--store",
                "http://www.example.test/dav/",
                "--proxy",
            ])
            .arg(format!("http://me:secret@{}", proxy.address))
            .env("EMBODY_STORE_USER", "me")
            .env("EMBODY_STORE_PASSWORD", "secret")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mail = mail.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&mail));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let detached = ran("detach", &before);
    assert!(detached.len() < 2000, "{}", detached.len());
    let heads = proxy.heads();
    let begins = |what: &str| heads.iter().any(|head| head.starts_with(what));
    assert!(begins("PUT http://www.example.test/dav/"), "{heads:?}");
    assert!(heads.iter().all(|head| head.contains(ME)), "{heads:?}");
    assert_eq!(ran("restore", &detached), before);
}

/// Compares the requests with those of curl.
#[test]
fn curl_asks_a_proxy_for_the_same() {
    let Some(curl) = program("curl") else {
        return skipped("curl_asks_a_proxy_for_the_same", "curl");
    };
    let (proxy, heads) = answering(1, |head| {
        if head.starts_with("CONNECT") {
            b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
        } else {
            stays("x")
        }
    });
    let address = format!("http://me:se%3acret@{}", proxy.address);
    let mut policy = through(&proxy);
    policy = policy.with_proxy(address.parse().unwrap());
    let policy = policy.with_allow_ports([8080]);
    for url in [
        "http://www.example.org",
        "http://www.example.org:8080/a?b",
        "http://[2606:4700::1]/x",
        "https://www.example.org/x",
        "https://www.example.org:8080/x",
    ] {
        let _ = fetch(&policy, url);
        let status = Command::new(&curl)
            .args(["--silent", "--proxy", &address, url])
            .stdout(Stdio::null())
            .env_remove("no_proxy")
            .env_remove("NO_PROXY")
            .status();
        status.unwrap();
        let heads: Vec<String> = heads.lock().unwrap().drain(..).collect();
        let [ours, curls] = heads.as_slice() else {
            panic!("{heads:?}");
        };
        let told = |head: &str| {
            let lines = head.lines().map(|line| {
                let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                format!("{}: {value}", name.to_ascii_lowercase())
            });
            let mut fields: Vec<String> = lines
                .filter(|line| line.starts_with("host:") || line.starts_with("proxy-auth"))
                .collect();
            fields.sort();
            (first_line(head).to_owned(), fields)
        };
        assert_eq!(told(ours), told(curls), "{url}");
    }
}

#[test]
fn a_proxy_is_used_when_it_is_named_and_its_password_is_not_told() {
    let server = Raw::saying(ok("text/plain", TEXT));
    let proxy = Raw::proxy("www.example.org", server.address);
    let url = "http://www.example.org/x";
    let before = mail(&[
        reference(url, "text/plain"),
        reference("http://127.0.0.1/x", "text/plain"),
        reference("ftp://www.example.org/x", "text/plain"),
    ]);
    let options = format!(
        "--fetch http,ftp --proxy http://user:secret@{}",
        proxy.address
    );
    let ran = filter(&options, &before);
    ran.gives(&mail(&[
        filled(Some(url), "text/plain", TEXT),
        reference("http://127.0.0.1/x", "text/plain"),
        reference("ftp://www.example.org/x", "text/plain"),
    ]));
    assert_eq!(
        ran.column("reason"),
        ["-", "private-address", "unsupported-scheme"]
    );
    assert_eq!(proxy.count(), 1);
    let other = mail(&[reference("http://other.example.org/x", "text/plain")]);
    let refused = filter(&options, &other);
    refused.leaves(&other, &["http-status"]);
    let named = format!(
        "responded with status 403, through the proxy {} <",
        proxy.address
    );
    assert!(refused.stderr.contains(&named), "{}", refused.stderr);
    for ran in [ran, refused] {
        assert!(
            !format!("{}{:?}", ran.stderr, ran.rows).contains("secret"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_proxy_that_is_away_is_named_and_mail_waits_for_it() {
    let url = "http://www.example.org/x";
    let before = mail(&[reference(url, "text/plain")]);
    let port = free_port();
    for proxy in [format!("127.0.0.1:{port}"), "proxy.invalid:3128".to_owned()] {
        let options = format!("--fetch http --proxy http://user:secret@{proxy}");
        let ran = filter(&options, &before);
        ran.leaves(&before, &["connection-failed"]);
        let named = format!("the proxy {proxy}: ");
        assert!(ran.stderr.contains(&named), "{}", ran.stderr);
        let ran = filter(&format!("{options} --on-failure defer"), &before);
        assert_eq!(ran.code, Some(75), "{}", ran.stderr);
        assert!(ran.stderr.contains(&named), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("<{url}>")), "{}", ran.stderr);
        assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    }
}

#[test]
fn an_https_server_is_reached_through_the_proxy_and_verified() {
    let name = "an_https_server_is_reached_through_the_proxy_and_verified";
    let Some(server) = nginx(name, FILES) else {
        return;
    };
    let proxy = Raw::proxy("www.example.org", ([127, 0, 0, 1], server.secure).into());
    let url = "https://www.example.org/dot.gif";
    let before = mail(&[reference(url, "image/gif")]);
    let ca = server.folder.path().join("ca.pem");
    let options = format!(
        "--fetch https --proxy http://{} --ca-file {}",
        proxy.address,
        ca.display()
    );
    // The certificate is only valid for www.example.test.
    filter(&options, &before).leaves(&before, &["tls-failed"]);
}
