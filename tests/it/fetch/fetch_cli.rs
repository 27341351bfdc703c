//! `embody filter` with real servers: what is retrieved, with which requests, and which messages are printed (docs/design.md,
//! "Retrieval"; docs/reasons.md). Errors are tested in fetch_cli_hostile.rs.

use std::hash::BuildHasher as _;
use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;

use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{ftp, nginx};
use crate::common::raw::{Raw, ok, redirect};

const GIF: &[u8] =
    b"GIF89a\0\r\nnot a picture, but nobody looks at that; long enough for two lines of base64";
const TEXT: &[u8] = b"hello, hello, hello\nworld";
const FILES: &[(&str, &[u8])] = &[
    ("dot.gif", GIF),
    ("hello.txt", TEXT),
    ("404.html", b"<h1>nothing here</h1>"),
    ("page.html", b"<h1>not a picture</h1>"),
];

/// Returns a server that sends the same response to each request, and the options that allow it.
fn saying(media_type: &str, body: &[u8]) -> (Raw, String) {
    let server = Raw::saying(ok(media_type, body));
    let options = open(&[server.address.port()]);
    (server, options)
}

#[test]
fn http_and_https_bring_the_body_compressed_and_redirected() {
    let Some(server) = nginx(
        "http_and_https_bring_the_body_compressed_and_redirected",
        FILES,
    ) else {
        return;
    };
    let plain = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    let secure = |path: &str| format!("https://127.0.0.1:{}{path}", server.secure);
    let options = format!(
        "{} --ca-file {}",
        open(&[server.port, server.secure]),
        server.folder.path().join("ca.pem").display()
    );
    let rows: &[(String, String, &str, &[u8])] = &[
        (plain("/dot.gif"), plain("/dot.gif"), "image/gif", GIF),
        (
            plain("/hello.txt#top"),
            plain("/hello.txt"),
            "text/plain",
            TEXT,
        ),
        (plain("/moved"), plain("/hello.txt"), "text/plain", TEXT),
        (plain("/secure"), secure("/hello.txt"), "text/plain", TEXT),
        (secure("/dot.gif"), secure("/dot.gif"), "image/gif", GIF),
        (secure("/moved"), secure("/hello.txt"), "text/plain", TEXT),
    ];
    let before: Vec<_> = rows
        .iter()
        .map(|(url, _, declared, _)| reference(url, declared))
        .collect();
    let after: Vec<_> = rows
        .iter()
        .map(|(_, location, declared, body)| filled(Some(location), declared, body))
        .collect();
    let (before, after) = (mail(&before), mail(&after));
    filter(&options, &before).gives(&after);
    filter(&options, &after).gives(&after);
    let crlf = |lf: &[u8]| {
        // The picture is in base64, so neither text contains a line feed of the picture.
        String::from_utf8(lf.to_vec())
            .unwrap()
            .replace('\n', "\r\n")
            .into_bytes()
    };
    filter(&options, &crlf(&before)).gives(&crlf(&after));

    let stranger = mail(&[reference(&secure("/dot.gif"), "image/gif")]);
    let ran = filter(&open(&[server.secure]), &stranger);
    ran.leaves(&stranger, &["tls-failed"]);
    assert!(
        ran.stderr.contains("--ca-file PEM would allow it"),
        "{}",
        ran.stderr
    );
    let downwards = mail(&[reference(&secure("/insecure"), "text/plain")]);
    filter(&options, &downwards).leaves(&downwards, &["redirect-refused"]);
}

#[test]
fn ftp_and_files_bring_the_body() {
    let Some(server) = ftp("ftp_and_files_bring_the_body", FILES, "") else {
        return;
    };
    let root = server.folder.path().join("root");
    let url = format!("ftp://127.0.0.1:{}/dot.gif", server.port);
    let classic = format!(
        "Content-Type: message/external-body; access-type=local-file;\n name=\"{}/hello.txt\"\n\nContent-Type: text/plain\n\n\n",
        root.display()
    );
    let before = mail(&[
        reference(&url, "image/gif"),
        reference(&format!("file://{}/dot.gif", root.display()), "image/gif"),
        classic,
    ]);
    let after = mail(&[
        filled(Some(&url), "image/gif", GIF),
        filled(None, "image/gif", GIF),
        filled(None, "text/plain", TEXT),
    ]);
    let options = open(&[server.port]);
    filter(
        &format!("{options} --file-root {}", root.display()),
        &before,
    )
    .gives(&after);
    let ran = filter(
        &options,
        &mail(&[reference("file:///etc/passwd", "text/plain")]),
    );
    assert_eq!(ran.column("reason"), ["outside-file-root"]);
    let ran = filter(&open(&[]), &before);
    ran.leaves(
        &before,
        &["port-not-allowed", "outside-file-root", "outside-file-root"],
    );
}

#[test]
fn without_options_no_request_is_made_and_nothing_changes() {
    let (server, options) = saying("image/gif", GIF);
    let port = server.address.port();
    let before = mail(&[reference(&server.url("/"), "image/gif")]);
    let opened = format!("--allow-net 127.0.0.1/32 --allow-port {port} would allow it");
    for (options, reason, remedy) in [
        (
            String::new(),
            "scheme-not-allowed",
            format!("; --fetch http {opened}"),
        ),
        (
            "--fetch https,ftp,file".to_owned(),
            "scheme-not-allowed",
            format!("; --fetch http,https,ftp,file {opened}"),
        ),
        (
            "--deny-host 127.0.0.1".to_owned(),
            "scheme-not-allowed",
            "/>".to_owned(),
        ),
        (
            format!("--fetch http --allow-port {port}"),
            "private-address",
            "; --allow-net 127.0.0.1/32 would allow it".to_owned(),
        ),
        (
            format!("--fetch http --allow-net 10.0.0.0/8 --allow-port {port}"),
            "private-address",
            "; --allow-net 127.0.0.1/32 would allow it".to_owned(),
        ),
        // A denied host stays denied, even if another option allows it.
        (
            format!("{options} --deny-host 127.0.0.1"),
            "host-not-allowed",
            "/>".to_owned(),
        ),
        (
            format!("{options} --allow-host *.example.org"),
            "host-not-allowed",
            "; --allow-host 127.0.0.1 would allow it".to_owned(),
        ),
        (
            "--fetch http --allow-net 127.0.0.0/8".to_owned(),
            "port-not-allowed",
            format!("; --allow-port {port} would allow it"),
        ),
        (
            format!("{options} --deny-type image/*"),
            "type-not-allowed",
            "/>".to_owned(),
        ),
        (
            format!("{options} --allow-type text/*"),
            "type-not-allowed",
            "; --allow-type image/gif would allow it".to_owned(),
        ),
    ] {
        let ran = filter(&options, &before);
        ran.leaves(&before, &[reason]);
        let said = ran.stderr.trim_end();
        assert!(said.ends_with(&remedy), "{options}: {said}");
    }
    assert_eq!(server.count(), 0, "not one connection was made");
    filter(&options, &before).gives(&mail(&[filled(Some(&server.url("/")), "image/gif", GIF)]));
    assert_eq!(server.count(), 1);
}

#[test]
fn every_other_scheme_is_left_with_a_line_that_names_fetch() {
    let urls = [
        "http://www.example.org/",
        "https://www.example.org/",
        "ftp://ftp.example.org/a",
        "file:///etc/passwd",
        "gopher://gopher.example.org/1",
        "mailto:a@example.org",
        "news:comp.mail.mime",
        "imap://mail.example.org/inbox",
        "x-foo:bar",
        "javascript:alert(1)",
    ];
    let before = mail(&urls.map(|url| reference(url, "text/plain")));
    let ran = filter("", &before);
    ran.leaves(&before, &["scheme-not-allowed"; 10]);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), urls.len());
    assert!(
        lines.iter().all(|line| line.contains("--fetch")),
        "{}",
        ran.stderr
    );
}

#[test]
fn unlike_nmh_a_404_page_is_not_stored_as_the_body() {
    let Some(server) = nginx("unlike_nmh_a_404_page_is_not_stored_as_the_body", FILES) else {
        return;
    };
    let url = format!("http://127.0.0.1:{}/missing.html", server.port);
    for declared in ["text/html", "image/gif", "application/octet-stream"] {
        let before = mail(&[reference(&url, declared)]);
        filter(&open(&[server.port]), &before).leaves(&before, &["http-status"]);
    }
}

#[test]
fn unlike_nmh_text_html_is_not_taken_for_a_declared_image_gif() {
    let name = "unlike_nmh_text_html_is_not_taken_for_a_declared_image_gif";
    let Some(server) = nginx(name, FILES) else {
        return;
    };
    let url = format!("http://127.0.0.1:{}/page.html", server.port);
    let before = mail(&[reference(&url, "image/gif")]);
    let ran = filter(&open(&[server.port]), &before);
    ran.leaves(&before, &["type-mismatch"]);
    assert!(
        ran.stderr.contains("--accept-mismatch would allow it"),
        "{}",
        ran.stderr
    );
    let after = mail(&[filled(Some(&url), "image/gif", FILES[3].1)]);
    filter(
        &format!("{} --accept-mismatch", open(&[server.port])),
        &before,
    )
    .gives(&after);
}

#[test]
fn whoever_answers_first_the_parts_stand_in_the_order_of_the_message() {
    let server = Raw::http(|path, stream| {
        // The delays are different in every run, and later requests usually get their responses first.
        let jitter = std::hash::RandomState::new().hash_one(path) % 40;
        let number: u64 = path[1..].parse().unwrap();
        sleep(Duration::from_millis(jitter + (24 - number) * 5));
        let _ = stream.write_all(&ok("image/gif", format!("picture {number}").as_bytes()));
    });
    let url = |number: u64| server.url(&format!("/{number}"));
    let before: Vec<_> = (0..24)
        .map(|number| reference(&url(number), "image/gif"))
        .collect();
    let after: Vec<_> = (0..24)
        .map(|number| {
            filled(
                Some(&url(number)),
                "image/gif",
                format!("picture {number}").as_bytes(),
            )
        })
        .collect();
    for in_flight in [1, 7, 24] {
        let options = format!(
            "{} --max-in-flight {in_flight}",
            open(&[server.address.port()])
        );
        let ran = filter(&options, &mail(&before));
        ran.gives(&mail(&after));
        let parts: Vec<_> = (1..=24).map(|number: u32| number.to_string()).collect();
        assert_eq!(ran.column("part"), parts);
    }
}

#[test]
fn the_same_url_is_asked_for_once_per_run_and_once_per_declared_type() {
    let (server, options) = saying("application/octet-stream", GIF);
    let (url, fragment) = (server.url("/a"), server.url("/a#b"));
    let before = mail(&[
        reference(&url, "image/gif"),
        reference(&fragment, "image/gif"),
        reference(&url, "image/gif"),
    ]);
    let part = filled(Some(&url), "image/gif", GIF);
    // A URL with several references counts as a single retrieval.
    let options = format!("{options} --max-fetches 2");
    filter(&options, &before).gives(&mail(&[part.clone(), part.clone(), part.clone()]));
    assert_eq!(server.count(), 1);
    let before = mail(&[reference(&url, "image/gif"), reference(&url, "image/png")]);
    filter(&options, &before).gives(&mail(&[part, filled(Some(&url), "image/png", GIF)]));
    assert_eq!(server.count(), 3);
    let accepted: Vec<_> = server
        .heads()
        .iter()
        .flat_map(|head| {
            head.lines()
                .map(str::to_ascii_lowercase)
                .collect::<Vec<_>>()
        })
        .filter(|line| line.starts_with("accept:"))
        .collect();
    assert_eq!(
        accepted
            .iter()
            .filter(|line| *line == "accept: image/gif")
            .count(),
        2
    );
    assert_eq!(
        accepted
            .iter()
            .filter(|line| *line == "accept: image/png")
            .count(),
        1
    );
}

#[test]
fn a_server_learns_the_type_our_name_and_nothing_else() {
    let (server, options) = saying("text/plain", TEXT);
    let untyped = format!(
        "Content-Type: message/external-body; access-type=URL;\n URL=\"{}\"\n\n\n\n",
        server.url("/untyped")
    );
    let ran = filter(&options, &mail(&[untyped]));
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    filter(
        &options,
        &mail(&[reference(
            &server.url("/typed"),
            "TEXT/Plain; charset=us-ascii",
        )]),
    );
    let heads: Vec<String> = server
        .heads()
        .iter()
        .map(|head| head.to_ascii_lowercase())
        .collect();
    assert!(heads[0].contains("\naccept: */*\r"), "{heads:?}");
    assert!(heads[1].contains("\naccept: text/plain\r"), "{heads:?}");
    for head in heads {
        let version = env!("CARGO_PKG_VERSION");
        assert!(
            head.contains(&format!("\nuser-agent: embody/{version}\r")),
            "{head}"
        );
        for silent in [
            "cookie",
            "referer",
            "authorization",
            "from:",
            "parts from elsewhere",
        ] {
            assert!(!head.contains(silent), "{head}");
        }
    }
}

#[test]
fn what_comes_behind_the_last_retrieval_that_is_allowed_is_left() {
    let (server, options) = saying("image/gif", GIF);
    let urls = [1, 2, 3].map(|number| server.url(&format!("/{number}")));
    let before = mail(&urls.each_ref().map(|url| reference(url, "image/gif")));
    let ran = filter(&format!("{options} --max-fetches 2"), &before);
    let mut some = urls
        .each_ref()
        .map(|url| filled(Some(url), "image/gif", GIF));
    some[2] = reference(&urls[2], "image/gif");
    ran.gives(&mail(&some));
    assert_eq!(ran.column("reason"), ["-", "-", "too-many-fetches"]);
    assert_eq!(server.count(), 2);
    let after = mail(
        &urls
            .each_ref()
            .map(|url| filled(Some(url), "image/gif", GIF)),
    );
    filter(&format!("{options} --max-fetches 3"), &before).gives(&after);
}

#[test]
fn rows_tell_time_size_type_and_the_reason() {
    let server = Raw::http(|path, stream| {
        sleep(Duration::from_millis(30));
        let answer = match path {
            "/gone" => b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n".to_vec(),
            _ => ok("image/gif; q=1", GIF),
        };
        let _ = stream.write_all(&answer);
    });
    let before = mail(&[
        reference(&server.url("/a"), "image/gif"),
        reference(&server.url("/gone"), "image/gif"),
    ]);
    let ran = filter(&open(&[server.address.port()]), &before);
    assert_eq!(ran.column("message"), ["-", "-"]);
    assert_eq!(ran.column("part"), ["1", "2"]);
    assert_eq!(ran.column("kind"), ["external-body"; 2]);
    assert_eq!(ran.column("url"), [server.url("/a"), server.url("/gone")]);
    assert_eq!(ran.column("outcome"), ["expanded", "left"]);
    assert_eq!(ran.column("reason"), ["-", "http-status"]);
    assert_eq!(ran.column("media_type"), ["image/gif"; 2]);
    assert_eq!(ran.column("bytes"), [GIF.len().to_string(), "-".to_owned()]);
    let ms = ran.rows[0]["ms"].as_u64().unwrap();
    assert!((30..5000).contains(&ms), "{ms} ms");
    assert!(ran.rows[1]["detail"].as_str().unwrap().contains("410"));
    assert_eq!(ran.stderr.lines().count(), 2);
    let quiet = filter(
        &format!("{} --quiet", open(&[server.address.port()])),
        &before,
    );
    assert_eq!((quiet.stderr.as_str(), quiet.rows.len()), ("", 2));
}

#[test]
fn passwords_show_up_nowhere_and_redirects_leave_the_final_url() {
    let server = Raw::http(|path, stream| {
        let answer = match path {
            "/from" => redirect("/to"),
            "/private" => redirect("http://user:secret@10.0.0.1/"),
            _ => ok("image/gif", GIF),
        };
        let _ = stream.write_all(&answer);
    });
    let with = |path: &str| server.url(path).replace("//", "//user:secret@");
    let before =
        mail(&["/from", "/to", "/private"].map(|path| reference(&with(path), "image/gif")));
    let after = mail(&[
        filled(Some(&server.url("/to")), "image/gif", GIF),
        filled(
            Some(&server.url("/to").replace("//", "//user@")),
            "image/gif",
            GIF,
        ),
        reference(&with("/private"), "image/gif"),
    ]);
    let options = open(&[server.address.port()]);
    let ran = filter(&format!("{options} --allow-userinfo --verbose"), &before);
    ran.gives(&after);
    assert_eq!(ran.column("reason"), ["-", "-", "private-address"]);
    let refused = filter(&options, &before);
    refused.leaves(&before, &["userinfo-not-allowed"; 3]);
    for ran in [ran, refused] {
        let said = format!("{}{:?}", ran.stderr, ran.rows);
        assert!(said.contains("user"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
    let broken = mail(&[
        reference("http://user:secret@[::1", "image/gif"),
        reference("gopher://user:secret@h/", "image/gif"),
    ]);
    let ran = filter(&options, &broken);
    ran.gives(&broken);
    assert!(
        !format!("{}{:?}", ran.stderr, ran.rows).contains("secret"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_map_leads_to_another_server_before_anything_is_judged() {
    let (server, options) = saying("text/plain", TEXT);
    let before = mail(&[reference(
        "ftp://FTP.ietf.example/internet-drafts/draft-x.txt",
        "text/plain",
    )]);
    let map = format!(
        "--map ftp://ftp.ietf.example/internet-drafts/={}",
        server.url("/archive/id/")
    );
    // The mail keeps the original URL, because the target of a map may be confidential.
    let location = "ftp://ftp.ietf.example/internet-drafts/draft-x.txt";
    filter(&format!("{options} {map}"), &before).gives(&mail(&[filled(
        Some(location),
        "text/plain",
        TEXT,
    )]));
    assert!(server.heads()[0].starts_with("GET /archive/id/draft-x.txt "));
    // The target of a map is checked like any other URL.
    let ran = filter(&format!("--fetch http {map}"), &before);
    ran.leaves(&before, &["private-address"]);
    // If the target redirects, the mail names the URL from which the content came.
    let server = Raw::http(|path, stream| {
        let answer = match path {
            "/there" => ok("text/plain", TEXT),
            _ => redirect("/there"),
        };
        let _ = stream.write_all(&answer);
    });
    let map = format!(
        "{} --map ftp://ftp.ietf.example/internet-drafts/={}",
        open(&[server.address.port()]),
        server.url("/id/")
    );
    filter(&map, &before).gives(&mail(&[filled(
        Some(&server.url("/there")),
        "text/plain",
        TEXT,
    )]));
}
