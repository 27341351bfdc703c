//! Each response is recorded with exactly the bytes that the server sent. warcio finds no errors in the record, and pywb
//! replays it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rcgen::generate_simple_self_signed;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{ftp, skipped};
use crate::common::raw::{Raw, head, ok, redirect};
use crate::common::warc::{Record, check, records, replayed, replaying};

const TEXT: &str = "text/plain";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn chunked(fields: &str, pieces: &[&[u8]]) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n{fields}Transfer-Encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for piece in pieces {
        answer.extend(format!("{:x}\r\n", piece.len()).bytes());
        answer.extend_from_slice(piece);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    answer
}

fn saying(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into()
}

/// Returns the response of the server for each path.
fn answer(path: &str) -> Vec<u8> {
    match path {
        "/plain" | "/double" => ok(TEXT, b"the same text"),
        "/chunked" => chunked("", &[b"one ", b"and two"]),
        "/gzip" => {
            let packed = gzip(b"text that was packed");
            let (one, other) = packed.split_at(7);
            chunked("Content-Encoding: gzip\r\n", &[one, other])
        }
        "/moved" => redirect("/plain?moved"),
        "/plain?moved" => ok(TEXT, b"text that moved"),
        "/missing" => saying("404 Not Found", "<p>nothing here</p>"),
        "/busy" => saying("503 Busy", "<p>later</p>"),
        "/cut" => {
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nless than"
                .to_vec()
        }
        "/large" => ok(TEXT, &b"large".repeat(200_000)),
        "/early" => [
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec(),
            ok(TEXT, b"late"),
        ]
        .concat(),
        "/more" => [ok(TEXT, b"all of it"), b"and more".to_vec()].concat(),
        "/page" => ok("text/html", b"<p>no text/plain</p>"),
        _ => saying("404 Not Found", ""),
    }
}

fn server() -> Raw {
    Raw::http(|path, stream: &mut TcpStream| {
        let _ = stream.write_all(&answer(path));
    })
}

const PATHS: [&str; 12] = [
    "/plain", "/chunked", "/gzip", "/moved", "/missing", "/busy", "/cut", "/large", "/early",
    "/more", "/page", "/double",
];

fn of<'r>(records: &'r [Record], kind: &str, url: &str) -> Vec<&'r Record> {
    let found = records.iter();
    found
        .filter(|record| record.kind == kind && record.url == url)
        .collect()
}

#[test]
fn what_a_server_sent_is_in_the_record_octet_by_octet() {
    const TEST: &str = "what_a_server_sent_is_in_the_record_octet_by_octet";
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    let parts = PATHS.map(|path| reference(&server.url(path), TEXT));
    let before = mail(&parts);
    // One request at a time, so that of two equal responses the later one is recorded as a duplicate.
    let options = format!(
        "{} --max-body 10k --max-in-flight 1",
        open(&[server.address.port()])
    );
    let plain = filter(&options, &before);
    let ran = filter(&format!("{options} --record {}", file.display()), &before);
    ran.gives(&plain.stdout);
    assert_eq!(ran.column("reason"), plain.column("reason"));
    assert_eq!(plain.stderr, ran.stderr);
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    assert_eq!(records[0].kind, "warcinfo");
    for (path, body) in [
        ("/plain", None),
        ("/chunked", None),
        ("/gzip", None),
        ("/moved", None),
        ("/plain?moved", None),
        ("/missing", None),
        ("/busy", None),
        ("/cut", None),
        ("/page", None),
        ("/early", Some(ok(TEXT, b"late"))),
        ("/more", Some(ok(TEXT, b"all of it"))),
    ] {
        let url = server.url(path);
        let found = of(&records, "response", &url);
        assert_eq!(found.len(), 1, "{path}");
        assert!(
            found[0].block == body.unwrap_or_else(|| answer(path)),
            "{path}: {}",
            found[0].text()
        );
        let cut = found[0].value("WARC-Truncated");
        assert_eq!(cut.is_some(), path == "/cut", "{path}: {cut:?}");
        assert_eq!(found[0].value("WARC-IP-Address"), Some("127.0.0.1"));
        // If a connection broke before the response, the request was sent again. Both requests are in the record.
        let requests = of(&records, "request", &url);
        let answered = |it: &&&Record| it.value("WARC-Concurrent-To") == Some(found[0].id());
        let request = requests.iter().find(answered).expect(path);
        assert!(
            request
                .text()
                .starts_with(&format!("GET {path} HTTP/1.1\r\n"))
        );
        assert!(server.heads().contains(&request.text()), "{path}");
    }
    // The response was refused before it was complete. The record contains the bytes that were read.
    let large = of(&records, "response", &server.url("/large"))[0];
    assert_eq!(large.value("WARC-Truncated"), Some("length"));
    assert!(answer("/large").starts_with(&large.block) && large.block.len() > 50);
    let double = of(&records, "revisit", &server.url("/double"))[0];
    let first = of(&records, "response", &server.url("/plain"))[0];
    let same = |name: &str| assert_eq!(double.value(name), first.value(name), "{name}");
    same("WARC-Payload-Digest");
    assert_eq!(double.value("WARC-Refers-To"), Some(first.id()));
    assert_eq!(
        double.value("WARC-Refers-To-Target-URI"),
        Some(first.url.as_str())
    );
    assert_eq!(
        double.value("WARC-Refers-To-Date"),
        first.value("WARC-Date")
    );
    assert!(answer("/double").starts_with(&double.block) && double.text().ends_with("\r\n\r\n"));
    // The rows contain the ids of the records.
    let ids: Vec<String> = records
        .iter()
        .map(|record| record.id().trim_matches(['<', '>']).to_owned())
        .collect();
    let named = ran.column("record");
    assert_eq!(
        named.iter().filter(|id| ids.contains(id)).count(),
        8,
        "{named:?}"
    );

    let Some(pywb) = replaying(TEST, &[&file]) else {
        return;
    };
    let whole = [
        "/plain",
        "/chunked",
        "/gzip",
        "/plain?moved",
        "/missing",
        "/busy",
        "/early",
        "/more",
        "/page",
        "/double",
    ];
    let urls = whole.map(|path| server.url(path));
    let expected: [(u64, &[u8]); 10] = [
        (200, b"the same text"),
        (200, b"one and two"),
        (200, b"text that was packed"),
        (200, b"text that moved"),
        (404, b"<p>nothing here</p>"),
        (503, b"<p>later</p>"),
        (200, b"late"),
        (200, b"all of it"),
        (200, b"<p>no text/plain</p>"),
        (200, b"the same text"),
    ];
    for ((url, (status, body)), expected) in urls.iter().zip(replayed(&pywb, &urls)).zip(expected) {
        assert_eq!(
            (status, String::from_utf8_lossy(&body)),
            (expected.0, String::from_utf8_lossy(expected.1)),
            "{url}"
        );
    }
    let moved = replayed(&pywb, &[server.url("/moved")]);
    assert_eq!(moved[0].0, 302);
}

/// Starts a TLS server that sends this response on each connection. Returns the server, and a file with its certificate.
fn secure(answer: Vec<u8>, folder: &Path) -> (Raw, PathBuf) {
    let signed = generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = folder.join("ca.pem");
    fs::write(&file, signed.cert.pem()).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls_config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key.into())
        .unwrap();
    let config = Arc::new(tls_config);
    let server = Raw::connections(move |stream| {
        let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(tls, stream);
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            let mut octet = [0];
            if stream.read_exact(&mut octet).is_err() {
                return;
            }
            asked.extend_from_slice(&octet);
        }
        let _ = stream.write_all(&answer);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    (server, file)
}

#[test]
fn record_of_https_holds_the_decrypted_response() {
    const TEST: &str = "record_of_https_holds_the_decrypted_response";
    let folder = tempfile::tempdir().unwrap();
    let answer = chunked("X-One: two\r\n", &[b"over ", b"TLS"]);
    let (server, ca) = secure(answer.clone(), folder.path());
    let file = folder.path().join("a.warc.gz");
    let url = format!("https://{}/a.txt", server.address);
    let options = format!(
        "{} --ca-file {} --record {}",
        open(&[server.address.port()]),
        ca.display(),
        file.display()
    );
    let ran = filter(&options, &mail(&[reference(&url, TEXT)]));
    ran.gives(&mail(&[filled(Some(&url), TEXT, b"over TLS")]));
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let response = of(&records, "response", &url)[0];
    assert!(response.block == answer, "{}", response.text());
    assert_eq!(response.value("WARC-IP-Address"), Some("127.0.0.1"));
    let request = of(&records, "request", &url)[0].text();
    assert!(request.starts_with("GET /a.txt HTTP/1.1\r\n"), "{request}");
    // A later run returns the content without the server.
    let options = options.replace("--record", "--offline --archive");
    let asked = server.count();
    filter(&options, &mail(&[reference(&url, TEXT)])).gives(&ran.stdout);
    assert_eq!(server.count(), asked);
}

#[test]
fn answers_on_a_reused_connection_are_recorded_separately() {
    const TEST: &str = "answers_on_a_reused_connection_are_recorded_separately";
    let said = |number: usize| {
        let body = format!("/{number}").repeat(number);
        match number % 3 {
            0 => chunked("", &[body.as_bytes()]),
            1 => saying("404 Not Found", &body),
            _ => saying("200 OK", &body),
        }
    };
    let server = Raw::connections(move |mut stream| {
        while let Some(head) = head(&stream) {
            let path = head.split(' ').nth(1).unwrap();
            let number: usize = path.trim_start_matches('/').parse().unwrap();
            if stream.write_all(&said(number)).is_err() {
                return;
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    let urls: Vec<String> = (1..=30)
        .map(|number| server.url(&format!("/{number}")))
        .collect();
    let parts: Vec<String> = urls.iter().map(|url| reference(url, TEXT)).collect();
    let options = format!(
        "{} --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let ran = filter(&options, &mail(&parts));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(server.count() < 20, "{} connections", server.count());
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    for (url, number) in urls.iter().zip(1..) {
        let found = of(&records, "response", url);
        assert_eq!(found.len(), 1, "{url}");
        assert_eq!(found[0].value("WARC-Truncated"), None, "{url}");
        assert!(found[0].block == said(number), "{}", found[0].text());
    }
}

#[test]
fn cached_response_references_its_original_record() {
    const TEST: &str = "cached_response_references_its_original_record";
    let server = Raw::saying(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=9999\r\nContent-Length: 4\r\n\r\ntext"
            .to_vec(),
    );
    let folder = tempfile::tempdir().unwrap();
    let [one, two, three] =
        ["1", "2", "3"].map(|name| folder.path().join(format!("{name}.warc.gz")));
    let url = server.url("/a");
    let unrecorded = server.url("/b");
    let run = |url: &str, file: Option<&Path>| {
        let cache = folder.path().join("cache");
        let mut options = format!(
            "{} --cache {}",
            open(&[server.address.port()]),
            cache.display()
        );
        if let Some(file) = file {
            options.push_str(&format!(" --record {}", file.display()));
        }
        let ran = filter(&options, &mail(&[reference(url, TEXT)]));
        ran.gives(&mail(&[filled(Some(url), TEXT, b"text")]));
    };
    run(&url, Some(&one));
    run(&url, Some(&two));
    run(&unrecorded, None);
    run(&unrecorded, Some(&three));
    assert_eq!(server.count(), 2);
    let Some(first) = records(TEST, &one) else {
        return;
    };
    let first = of(&first, "response", &url)[0].clone();
    check(&two);
    let second = records(TEST, &two).unwrap();
    let revisit = of(&second, "revisit", &url)[0];
    assert_eq!(revisit.value("WARC-Refers-To"), Some(first.id()));
    assert_eq!(
        revisit.value("WARC-Refers-To-Date"),
        first.value("WARC-Date")
    );
    assert_eq!(
        revisit.value("WARC-Payload-Digest"),
        first.value("WARC-Payload-Digest")
    );
    assert!(of(&second, "request", &url).is_empty());
    // The response was cached without a record, so its content is recorded now.
    check(&three);
    let third = records(TEST, &three).unwrap();
    assert_eq!(of(&third, "resource", &unrecorded)[0].block, b"text");
    let Some(pywb) = replaying(TEST, &[&one, &two, &three]) else {
        return;
    };
    for (status, body) in replayed(&pywb, &[url, unrecorded]) {
        assert_eq!((status, body.as_slice()), (200, &b"text"[..]));
    }
}

#[test]
fn passwords_are_masked_and_what_is_forbidden_leaves_nothing() {
    const TEST: &str = "passwords_are_masked_and_what_is_forbidden_leaves_nothing";
    let server = Raw::saying(ok(TEXT, b"text"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    let url = server.url("/a").replace("http://", "http://me:sesame@");
    let forbidden = "http://127.0.0.2:9/never";
    let parts = [reference(&url, TEXT), reference(forbidden, TEXT)];
    let options = format!(
        "{} --allow-userinfo --deny-host 127.0.0.2 --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let ran = filter(&options, &mail(&parts));
    assert_eq!(
        ran.column("reason"),
        ["-", "host-not-allowed"],
        "{}",
        ran.stderr
    );
    assert!(
        server.heads()[0].contains("bWU6c2VzYW1l"),
        "the server is not told"
    );
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let secrets = ["sesame", "bWU6c2VzYW1l", "127.0.0.2"];
    for record in &records {
        // Secrets must not occur in the record, except in the text of the mail itself.
        let text = format!("{record:?}{}", record.text());
        let is_said = secrets.iter().any(|secret| text.contains(secret));
        assert!(!is_said, "{text}");
    }
    let request = of(&records, "request", &server.url("/a"))[0];
    assert!(
        request
            .text()
            .to_lowercase()
            .contains("\r\nauthorization: basic masked-by-embody\r\n"),
        "{}",
        request.text()
    );
    assert_eq!(request.value("X-Embody-Masked"), Some("Authorization"));
    assert!(records[0].text().contains("passwords are masked-by-embody"));
}

#[test]
fn record_contains_neither_the_proxy_nor_its_password() {
    const TEST: &str = "record_contains_neither_the_proxy_nor_its_password";
    let server = server();
    let proxy = Raw::proxy("www.example.test", server.address);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    let url = "http://www.example.test/plain";
    let options = format!(
        "--fetch http --proxy http://me:sesame@{} --record {}",
        proxy.address,
        file.display()
    );
    let ran = filter(&options, &mail(&[reference(url, TEXT)]));
    ran.gives(&mail(&[filled(Some(url), TEXT, b"the same text")]));
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let request = of(&records, "request", url)[0].text();
    assert!(request.starts_with("GET /plain HTTP/1.1\r\n"), "{request}");
    assert!(
        !request.to_lowercase().contains("proxy-authorization"),
        "{request}"
    );
    let response = of(&records, "response", url)[0];
    assert_eq!(response.value("WARC-IP-Address"), None);
    assert!(response.block == answer("/plain"));
}

#[test]
fn response_at_the_reserved_url_of_a_mail_is_not_recorded() {
    const TEST: &str = "response_at_the_reserved_url_of_a_mail_is_not_recorded";
    // A proxy, or a resolver that resolves every name.
    let proxy = Raw::saying(ok(TEXT, b"another mail"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    let options = format!(
        "--fetch http --proxy http://{} --record {}",
        proxy.address,
        file.display()
    );
    let urls = ["http://mail.invalid/0/1.html", "http://other.example/"];
    let ran = filter(&options, &mail(&urls.map(|url| reference(url, TEXT))));
    assert_eq!(ran.column("outcome"), ["expanded"; 2], "{}", ran.stderr);
    assert_eq!(ran.column("record")[0], "-");
    let Some(records) = records(TEST, &file) else {
        return;
    };
    let found: Vec<&str> = records
        .iter()
        .map(|record| record.url.as_str())
        .filter(|url| *url == urls[0])
        .collect();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(of(&records, "response", urls[1]).len(), 1);
}

#[test]
fn non_http_content_is_recorded_as_a_resource_record() {
    const TEST: &str = "non_http_content_is_recorded_as_a_resource_record";
    let Some(server) = ftp(TEST, &[("a.txt", b"by ftp")], "") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    fs::write(folder.path().join("b.txt"), "of a file").unwrap();
    let urls = [
        format!("ftp://127.0.0.1:{}/a.txt", server.port),
        format!("file://{}/b.txt", folder.path().display()),
    ];
    let parts = urls.each_ref().map(|url| reference(url, TEXT));
    let options = format!(
        "{} --file-root {} --record {}",
        open(&[server.port]),
        folder.path().display(),
        file.display()
    );
    let ran = filter(&options, &mail(&parts));
    assert_eq!(ran.column("reason"), ["-", "-"], "{}", ran.stderr);
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let by_ftp = of(&records, "resource", &urls[0])[0];
    assert_eq!(by_ftp.block, b"by ftp");
    assert_eq!(by_ftp.value("WARC-IP-Address"), Some("127.0.0.1"));
    assert_eq!(of(&records, "resource", &urls[1])[0].block, b"of a file");
}

#[test]
fn a_server_that_never_ends_costs_no_more_than_the_limits() {
    const TEST: &str = "a_server_that_never_ends_costs_no_more_than_the_limits";
    // An error page without an end, and a header without an end.
    let server = Raw::http(|path, stream| {
        let start = match path {
            "/error" => "HTTP/1.1 404 Not Found\r\nContent-Length: 999999999\r\n\r\n",
            "/drip" => "HTTP/1.1 404 Not Found\r\nContent-Length: 999999999\r\n\r\nx",
            _ => "HTTP/1.1 200 OK\r\n",
        };
        let _ = stream.write_all(start.as_bytes());
        if path == "/drip" {
            return std::thread::sleep(Duration::from_secs(60));
        }
        while stream.write_all(&b"X: y\r\n".repeat(1000)).is_ok() {}
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    let parts = ["/error", "/drip", "/head"].map(|path| reference(&server.url(path), TEXT));
    let options = format!(
        "{} --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let ran = filter(&options, &mail(&parts));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.took < Duration::from_secs(12), "{:?}", ran.took);
    let Some(records) = records(TEST, &file) else {
        return;
    };
    check(&file);
    for path in ["/error", "/drip"] {
        let found = of(&records, "response", &server.url(path))[0];
        assert!(found.value("WARC-Truncated").is_some(), "{path}");
        assert!(found.block.len() < 2 << 20, "{path}");
    }
}

#[test]
fn an_answer_to_head_does_not_replay() {
    const TEST: &str = "an_answer_to_head_does_not_replay";
    let server = Raw::saying(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n".to_vec(),
    );
    let folder = tempfile::tempdir().unwrap();
    let [file, source] = ["a.warc.gz", "in.eml"].map(|name| folder.path().join(name));
    let url = server.url("/a");
    fs::write(&source, mail(&[reference(&url, TEXT)])).unwrap();
    let ran = crate::common::programs::embody()
        .args(["inspect", "--probe", "--record"])
        .arg(&file)
        .args(open(&[server.address.port()]).split_whitespace())
        .arg(&source)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let Some(records) = records(TEST, &file) else {
        return skipped(TEST, "warcio");
    };
    check(&file);
    let answer = of(&records, "metadata", &url)[0];
    assert_eq!(
        answer.value("Content-Type"),
        Some("application/http; msgtype=response")
    );
    assert!(
        of(&records, "request", &url)[0]
            .text()
            .starts_with("HEAD /a ")
    );
    assert!(records.iter().all(|record| record.kind != "response"));
}
