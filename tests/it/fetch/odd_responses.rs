//! Responses whose heads browsers and curl accept although RFC 9112 does not permit them, and those that stay refused.

use std::io::{Read as _, Write as _};

use embody::fetch::{Fetch as _, Fetcher};
use embody::report::Reason;

use crate::common::raw::{Raw, exact_head, redirect};
use crate::common::world::{fetch, policy, refused, request};

fn response(status: &str, fields: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nConnection: close\r\n{fields}\r\ncontent"
    )
    .into_bytes()
}

#[test]
fn content_after_odd_fields_is_retrieved() {
    let many = |line: fn(usize) -> String| (0..1000).map(line).collect::<String>();
    let one_long = format!(
        "Content-Security-Policy: {}\r\n",
        "img-src x; ".repeat(7000)
    );
    for fields in [
        "X-Robots: noindex,\r\n nofollow\r\n",
        "X-Robots:\r\n\tnoindex\r\n \r\n",
        "X-Powered-By : PHP\r\n",
        "PHP Warning: PHP Startup: unable to load in Unknown on line 0\r\n",
        "no field at all\r\n",
        ": x\r\n",
        "M\u{fc}ll: x\r\nA(b): c\r\n",
        "A: b\x01\r\n",
        "A: b\nC: d\n",
        "Content-Length : 7\r\n",
        "Transfer-Encoding: identity\r\n",
        &many(|number| format!("Set-Cookie: c{number}=1\r\n")),
        &many(|number| format!("X-{number}: y\r\n")),
        &one_long,
    ] {
        let server = Raw::saying(response("200 OK", fields));
        let got = fetch(&policy(&[server.address.port()]), &server.url("/a"));
        let start = &fields[..20.min(fields.len())];
        assert_eq!(got.unwrap().bytes().as_ref(), b"content", "{start:?}");
    }
}

#[test]
fn content_after_odd_fields_is_complete_however_the_head_arrives() {
    let whole = response("200 OK", "A : b,\r\n c\r\nno field\r\n");
    let sent = [b"HTTP/1.1 103 Early Hints\r\nA : b\r\n\r\n", &whole[..]].concat();
    let server = Raw::http(move |_, stream| {
        for octet in &sent {
            let _ = stream.write_all(&[*octet]).and_then(|()| stream.flush());
            std::thread::yield_now();
        }
    });
    let got = fetch(&policy(&[server.address.port()]), &server.url("/a"));
    assert_eq!(got.unwrap().bytes().as_ref(), b"content");
}

#[test]
fn response_with_a_doubtful_end_is_refused() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
    for fields in [
        "Content-Length: 7\r\nContent-Length: 5\r\n",
        "Content-Length: 7\r\nContent-Length : 5\r\n",
        "Content-Length: 7, 5\r\n",
        "Content-Length: 7\r\n 5\r\n",
        "Content-Length: x\r\n",
        "Content-Length: 7\0\r\n",
        "Content-Length\0: 7\r\n",
        "Content Length: 7\r\nContent-Length: 7\r\n Content-Len gth: 5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\x01\r\n",
    ] {
        let server = Raw::saying(format!("{head}{fields}\r\ncontent"));
        let why = refused(&policy(&[server.address.port()]), &server.url("/a"));
        assert_eq!(why.reason, Reason::BadResponse, "{fields:?}");
    }
    for sent in [
        "HTTP/1.1 200 OK\r\nA: ".to_owned() + &"x".repeat(400_000),
        "SSH-2.0-x\r\n".into(),
    ] {
        let server = Raw::saying(sent);
        let why = refused(&policy(&[server.address.port()]), &server.url("/a"));
        assert_eq!(why.reason, Reason::BadResponse);
    }
    let server = Raw::saying(format!("{head}Content-Length : 70\r\n\r\ncontent"));
    let why = refused(&policy(&[server.address.port()]), &server.url("/a"));
    assert_eq!(why.reason, Reason::IncompleteBody);
}

#[test]
fn bytes_after_a_response_are_not_the_next_response() {
    let server = Raw::connections(|mut stream| {
        while let Some(head) = exact_head(&mut stream) {
            let body = if head.contains("/first") {
                "first"
            } else {
                "other"
            };
            let forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
            let sent = format!("HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n{body}{forged}");
            if stream.write_all(sent.as_bytes()).is_err() {
                return;
            }
        }
        let _ = stream.read(&mut [0]);
    });
    let fetcher = Fetcher::new(policy(&[server.address.port()])).unwrap();
    for (path, expected) in [
        ("/first", "first"),
        ("/second", "other"),
        ("/third", "other"),
    ] {
        let got = fetcher.fetch(&request(&server.url(path))).unwrap();
        assert_eq!(got.bytes().as_ref(), expected.as_bytes());
    }
}

#[test]
fn redirect_with_odd_fields_is_followed() {
    for location in [
        &b"/gr\xfc\xdfe?\xe9=\xe8"[..],
        "/gr\u{fc}\u{df}e".as_bytes(),
        b"\r\n /x",
    ] {
        let moved = [b"HTTP/1.1 302 Found\r\nX y\r\nLocation : ", location].concat();
        let moved = [
            &moved[..],
            b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ]
        .concat();
        let server = Raw::http(move |path, stream| {
            let is_first = path == "/a";
            let sent = if is_first {
                moved.clone()
            } else {
                response("200 OK", "")
            };
            let _ = stream.write_all(&sent);
        });
        let got = fetch(&policy(&[server.address.port()]), &server.url("/a"));
        assert_eq!(got.unwrap().bytes().as_ref(), b"content");
        let expected = match location {
            b"\r\n /x" => "GET /x ",
            _ if location.contains(&0xfc) => "GET /gr%FC%DFe?%E9=%E8 ",
            _ => "GET /gr%C3%BC%C3%9Fe ",
        };
        assert!(
            server.heads()[1].starts_with(expected),
            "{:?}",
            server.heads()
        );
    }
}

#[test]
fn response_that_a_proxy_changed_is_a_success() {
    let changed = "203 Non-Authoritative Information";
    let server = Raw::http(move |path, stream| {
        let sent = match path {
            "/a" => redirect("/b"),
            _ => response(changed, ""),
        };
        let _ = stream.write_all(&sent);
    });
    let got = fetch(&policy(&[server.address.port()]), &server.url("/a"));
    assert_eq!(got.unwrap().bytes().as_ref(), b"content");
    for status in ["201 Created", "206 Partial Content"] {
        let server = Raw::saying(response(status, ""));
        let why = refused(&policy(&[server.address.port()]), &server.url("/a"));
        assert_eq!(why.reason, Reason::HttpStatus);
    }
}
