//! http servers that lie, redirect in loops, respond slowly or not at all (docs/design.md, "Retrieval", P5).

use std::io::Write as _;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::programs::again;
use crate::common::raw::{Raw, ok, redirect};
use crate::common::world::{fetch, policy, refused, request};
use embody::fetch::{Fetch as _, Fetcher};
use embody::policy::{Policy, Scheme};
use embody::report::{Reason, Retry};
use flate2::Compression;
use flate2::write::GzEncoder;

fn open(server: &Raw) -> Policy {
    policy(&[server.address.port()])
}

#[track_caller]
fn said(answer: impl Into<Vec<u8>>) -> Result<Vec<u8>, Reason> {
    let server = Raw::saying(answer);
    fetch(&open(&server), &server.url("/"))
        .map(|got| got.bytes().to_vec())
        .map_err(|refusal| refusal.reason)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_body_whose_end_was_not_seen_is_no_body() {
    let start = "HTTP/1.1 200 OK\r\n";
    let whole = gzip(b"content");
    let cut = &whole[..whole.len() - 3];
    let coded = |body: &[u8]| {
        let length = body.len();
        [
            format!("{start}Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n").as_bytes(),
            body,
        ]
        .concat()
    };
    type Answer = (Vec<u8>, Result<&'static [u8], Reason>);
    let rows: Vec<Answer> = vec![
        (
            format!("{start}Content-Length: 5\r\n\r\nhello").into(),
            Ok(b"hello"),
        ),
        (
            format!("{start}Content-Length: 6\r\n\r\nhello").into(),
            Err(Reason::IncompleteBody),
        ),
        (
            format!("{start}Content-Length: 5\r\n\r\n").into(),
            Err(Reason::IncompleteBody),
        ),
        (
            format!("{start}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n").into(),
            Ok(b"hello"),
        ),
        (
            format!("{start}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").into(),
            Err(Reason::IncompleteBody),
        ),
        (
            format!("{start}Transfer-Encoding: chunked\r\n\r\n5\r\nhel").into(),
            Err(Reason::IncompleteBody),
        ),
        (
            format!("{start}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello").into(),
            Err(Reason::BadResponse),
        ),
        (
            format!("{start}\r\nhello").into(),
            Err(Reason::IncompleteBody),
        ),
        (
            "HTTP/1.0 200 OK\r\n\r\nhello".into(),
            Err(Reason::IncompleteBody),
        ),
        (coded(&whole), Ok(b"content")),
        (coded(cut), Err(Reason::IncompleteBody)),
        (coded(b"not gzip at all"), Err(Reason::BadResponse)),
        // The trailer of gzip ends a single member. It does not show whether more members should follow.
        (
            [start.as_bytes(), b"Content-Encoding: gzip\r\n\r\n", &whole].concat(),
            Err(Reason::IncompleteBody),
        ),
        (
            format!("{start}Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx").into(),
            Err(Reason::BadResponse),
        ),
    ];
    for (answer, expected) in rows {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        assert_eq!(said(answer), expected.map(<[u8]>::to_vec), "{shown}");
    }
}

/// Each of these bodies may be the first half of a longer one.
#[test]
fn a_coding_that_does_not_mark_the_end_or_is_not_undone_is_no_body() {
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    for (fields, body) in [
        ("Transfer-Encoding: ", "hello"),
        ("Transfer-Encoding: x", "hello"),
        ("Transfer-Encoding: gzip, chunked", chunks),
        ("Transfer-Encoding: chunked, gzip", chunks),
        ("Transfer-Encoding: chunked, chunked", chunks),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            chunks,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            chunks,
        ),
        ("Transfer-Encoding: \u{e9}", "hello"),
        ("Content-Encoding: br\r\nContent-Length: 5", "hello"),
        ("Content-Encoding: \u{e9}\r\nContent-Length: 5", "hello"),
        ("Content-Encoding: utf-8\r\nContent-Length: 5", "hello"),
        (
            "Content-Encoding: identity, gzip\r\nContent-Length: 12",
            "not gzip ...",
        ),
        (
            "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: 5",
            "hello",
        ),
    ] {
        let got = said(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}"));
        assert_eq!(got, Err(Reason::BadResponse), "{fields}");
    }
    let old = format!("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
    assert_eq!(said(old), Err(Reason::BadResponse));
    for fields in [
        "Transfer-Encoding: Chunked",
        "Transfer-Encoding: chunked\r\nContent-Encoding: identity",
        "Transfer-Encoding: chunked\r\nContent-Encoding:",
    ] {
        let got = said(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{chunks}"));
        assert_eq!(got, Ok(b"hello".to_vec()), "{fields}");
    }
}

#[test]
fn what_is_not_http_is_a_bad_response() {
    assert_eq!(
        said("220 ftp.example.org ready\r\n\r\n"),
        Err(Reason::BadResponse)
    );
    let endless = format!(
        "HTTP/1.1 200 OK\r\n{}",
        "X-Header: 0123456789\r\n".repeat(100_000)
    );
    assert_eq!(said(endless), Err(Reason::BadResponse));
    let server = Raw::http(|_, _| {});
    let refusal = refused(&open(&server), &server.url("/"));
    assert_eq!(
        (refusal.reason, refusal.retry),
        (Reason::ConnectionFailed, Retry::Later)
    );
    assert_eq!(server.count(), 2, "tried once more, no oftener");
}

#[test]
fn refused_connection_is_a_temporary_failure() {
    let port = crate::common::programs::free_port();
    let refusal = refused(&policy(&[port]), &format!("http://127.0.0.1:{port}/"));
    assert_eq!(
        (refusal.reason, refusal.retry),
        (Reason::ConnectionFailed, Retry::Later)
    );
}

#[test]
fn above_the_limit_nothing_is_taken() {
    let mut answer = ok("text/plain", &[b'x'; 1000]);
    let server = Raw::saying(answer.clone());
    let tight = |body| open(&server).map_limits(|limits| limits.with_body(body));
    assert_eq!(
        fetch(&tight(1000), &server.url("/")).unwrap().bytes().len(),
        1000
    );
    assert_eq!(
        refused(&tight(999), &server.url("/")).reason,
        Reason::TooLarge
    );

    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..10 {
        answer.extend_from_slice(format!("64\r\n{}\r\n", "x".repeat(100)).as_bytes());
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    let server = Raw::saying(answer);
    let tight = |body| open(&server).map_limits(|limits| limits.with_body(body));
    assert_eq!(
        fetch(&tight(1000), &server.url("/")).unwrap().bytes().len(),
        1000
    );
    assert_eq!(
        refused(&tight(999), &server.url("/")).reason,
        Reason::TooLarge
    );
}

#[test]
fn a_slow_server_is_left_in_time_wherever_it_is_slow() {
    let drip = |answer: Vec<u8>| {
        Raw::http(move |_, stream| {
            for octet in &answer {
                if stream.write_all(&[*octet]).is_err() {
                    return;
                }
                sleep(Duration::from_millis(100));
            }
        })
    };
    let mut chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let at = chunks.len();
    chunks.extend_from_slice(&b"1\r\nx\r\n".repeat(1000));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = silent.local_addr().unwrap();
    let fast_head = Raw::http(move |_, stream| {
        let _ = stream.write_all(&chunks[..at]);
        for octet in &chunks[at..] {
            if stream.write_all(&[*octet]).is_err() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
    });
    let head_only = drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789".repeat(20));
    let never = Raw::http(|_, _| sleep(Duration::from_secs(60)));
    let redirecting = Raw::http(|path, stream| {
        sleep(Duration::from_millis(300));
        let _ = stream.write_all(&redirect(&format!("{path}x")));
    });
    let secure = Raw::connections(|mut stream| {
        // A slow TLS server: it reads the ClientHello and sends the bytes of a record header slowly.
        for octet in [22_u8, 3, 3, 64, 0].iter().chain(&[0; 500]) {
            if stream.write_all(&[*octet]).is_err() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
    });
    let urls = [
        fast_head.url("/body"),
        head_only.url("/head"),
        never.url("/never"),
        redirecting.url("/redirects"),
        format!("http://{mute}/not-accepted"),
        format!("https://{}/tls", secure.address),
    ];
    let left_in_time = |url: &str, timeout, deadline, reason| {
        let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
        let mut policy = policy(&[port.parse().unwrap()]);
        policy = policy.map_limits(|limits| limits.with_timeout(Duration::from_millis(timeout)));
        policy = policy.map_limits(|limits| limits.with_redirects(1000));
        let world = Fetcher::new(policy.clone()).unwrap();
        let begun = Instant::now();
        let mut asked = request(url);
        asked.deadline = begun + Duration::from_millis(deadline);
        let refusal = world.fetch(&asked).expect_err(url);
        assert_eq!(
            (refusal.reason, refusal.retry),
            (reason, Retry::Later),
            "{url}"
        );
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(20), "{url} took {took:?}");
        assert!(took > Duration::from_millis(900), "{url} took {took:?}");
    };
    std::thread::scope(|scope| {
        for url in &urls {
            scope.spawn(|| left_in_time(url, 1000, 30_000, Reason::Timeout));
            scope.spawn(|| left_in_time(url, 30_000, 1000, Reason::Deadline));
        }
    });
}

#[test]
fn redirect_loops_and_chains_end() {
    let server = Raw::http(|path, stream| {
        let next = match path {
            "/a" => "/b".to_owned(),
            "/b" => "/a".to_owned(),
            "/0" => {
                let _ = stream.write_all(&ok("text/plain", b"there"));
                return;
            }
            "/nowhere" => {
                let _ = stream.write_all(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
                return;
            }
            number => format!("/{}", number[1..].parse::<u32>().unwrap() - 1),
        };
        let _ = stream.write_all(&redirect(&next));
    });
    let policy = open(&server);
    assert_eq!(policy.limits().redirects, 5);
    let got = fetch(&policy, &server.url("/5")).unwrap();
    assert_eq!(
        (got.origin.url.to_string(), got.bytes().to_vec()),
        (server.url("/0"), b"there".to_vec())
    );
    assert_eq!(server.count(), 6);
    assert_eq!(
        refused(&policy, &server.url("/6")).reason,
        Reason::TooManyRedirects
    );
    let before = server.count();
    assert_eq!(
        refused(&policy, &server.url("/a")).reason,
        Reason::TooManyRedirects
    );
    assert_eq!(
        server.count() - before,
        2,
        "a circle is seen when it closes"
    );
    assert_eq!(
        refused(&policy, &server.url("/nowhere")).reason,
        Reason::RedirectRefused
    );
}

#[test]
fn no_redirect_reaches_what_the_mail_itself_may_not_name() {
    let rows = [
        ("http://10.0.0.1/", Reason::PrivateAddress),
        (
            "http://169.254.169.254/latest/meta-data/",
            Reason::PrivateAddress,
        ),
        ("http://172.16.0.1/", Reason::PrivateAddress),
        ("http://192.168.0.1/", Reason::PrivateAddress),
        ("http://100.64.0.1/", Reason::PrivateAddress),
        ("http://198.18.0.1/", Reason::PrivateAddress),
        ("http://192.0.2.1/", Reason::PrivateAddress),
        ("http://0.0.0.0/", Reason::PrivateAddress),
        ("http://224.0.0.1/", Reason::PrivateAddress),
        ("http://255.255.255.255/", Reason::PrivateAddress),
        ("http://167772161/", Reason::PrivateAddress),
        ("http://0xa.1/", Reason::PrivateAddress),
        ("http://[::1]/", Reason::PrivateAddress),
        ("http://[::ffff:10.0.0.1]/", Reason::PrivateAddress),
        ("http://[64:ff9b::7f00:1]/", Reason::PrivateAddress),
        ("http://[2002:7f00:1::]/", Reason::PrivateAddress),
        ("http://[fe80::1]/", Reason::PrivateAddress),
        ("http://[fc00::1]/", Reason::PrivateAddress),
        ("http://[ff02::1]/", Reason::PrivateAddress),
        ("//10.0.0.1/", Reason::PrivateAddress),
        (
            "http://user:pass@www.example.org/",
            Reason::UserinfoNotAllowed,
        ),
        ("http://127.0.0.1:1/", Reason::PortNotAllowed),
        ("file:///etc/passwd", Reason::RedirectRefused),
        ("data:,x", Reason::RedirectRefused),
        ("ftp://127.0.0.1/f", Reason::RedirectRefused),
        ("gopher://127.0.0.1/", Reason::RedirectRefused),
        ("http://", Reason::RedirectRefused),
    ];
    for (location, reason) in rows {
        let server = Raw::saying(redirect(location));
        let refusal = refused(&open(&server), &server.url("/"));
        assert_eq!(refusal.reason, reason, "{location}: {refusal:?}");
        assert_eq!(server.count(), 1);
    }
    let server = Raw::saying(redirect("ftp://127.0.0.1/f"));
    let http_only = Policy::default()
        .with_fetch([Scheme::Http])
        .with_allow_nets(["127.0.0.0/8".parse().unwrap()])
        .with_allow_ports([server.address.port()]);
    assert_eq!(
        refused(&http_only, &server.url("/")).reason,
        Reason::RedirectRefused
    );
}

#[test]
fn credentials_go_to_the_host_they_were_written_for_and_no_further() {
    let server = Raw::http(|path, stream| {
        let answer = match path {
            "/first" => redirect("/second"),
            _ => ok("text/plain", b"x"),
        };
        let _ = stream.write_all(&answer);
    });
    let mut policy = open(&server);
    policy = policy.with_allow_userinfo(true);
    let url = server
        .url("/first")
        .replace("http://", "http://user:p%40ss@");
    let got = fetch(&policy, &url).unwrap();
    assert_eq!(*got.origin.url, server.url("/second"));
    let heads = server.heads();
    assert!(
        heads[0]
            .to_ascii_lowercase()
            .contains("authorization: basic "),
        "{heads:?}"
    );
    assert!(heads[0].contains("dXNlcjpwQHNz"), "{heads:?}");
    assert!(
        !heads[1].to_ascii_lowercase().contains("authorization"),
        "{heads:?}"
    );
    assert!(
        heads
            .iter()
            .all(|head| !head.to_ascii_lowercase().contains("referer"))
    );
}

#[test]
fn a_cookie_is_not_sent_back() {
    let server = Raw::saying(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
    );
    let world = Fetcher::new(open(&server)).unwrap();
    for _ in 0..2 {
        world.fetch(&request(&server.url("/"))).unwrap();
    }
    assert_eq!(server.count(), 2);
    assert!(
        server
            .heads()
            .iter()
            .all(|head| !head.to_ascii_lowercase().contains("cookie"))
    );
}

const CHILD: &str = "EMBODY_TEST_URL";

#[test]
fn environment_proxies_are_ignored() {
    if let Ok(url) = std::env::var(CHILD) {
        let port = url.rsplit(':').next().unwrap().trim_end_matches('/');
        let got = fetch(&policy(&[port.parse().unwrap()]), &url).unwrap();
        assert_eq!(got.bytes(), b"direct".as_slice());
        return;
    }
    let server = Raw::saying(ok("text/plain", b"direct"));
    let mut child = again("fetch::fetch_hostile::environment_proxies_are_ignored");
    for name in [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
    ] {
        child.env(name, "http://127.0.0.1:1");
    }
    let output = child.env(CHILD, server.url("/")).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(server.count(), 1);
}
