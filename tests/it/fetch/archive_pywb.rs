//! `--archive` with pywb and WARC files: which capture is used, and when none is (docs/archive.md).

use std::io::Write as _;

use crate::common::filter::{filled, filter, mail, reference};
use crate::common::programs::Served;
use crate::common::pywb::{Capture, GIF, HTML, Nearest, TEXT, archive, asked, pywb};
use crate::common::raw::{Raw, ok};

/// A URL on a host that is gone.
const URL: &str = "http://gone.example/dir/a.txt";

/// Returns the options for this archive and its index.
fn index(server: &Served) -> String {
    format!(
        "{} --archive-cdx http://127.0.0.1:{}/web/cdx?url={{url}}&closest={{date}}&limit=20",
        archive(server),
        server.port
    )
}

/// Returns a mail of this day with these parts.
fn of(date: &str, parts: &[String]) -> Vec<u8> {
    let front = format!("Date: {date} 12:00:00 +0000\n").into_bytes();
    [front, mail(parts)].concat()
}

/// Returns a mail of this day, with one text from [`URL`].
fn letter(date: &str) -> Vec<u8> {
    of(date, &[reference(URL, "text/plain")])
}

fn letter_with(date: &str, text: &[u8]) -> Vec<u8> {
    of(date, &[filled(Some(URL), "text/plain", text)])
}

#[test]
fn the_capture_nearest_to_the_mail_is_put_in() {
    let captures = [
        Capture::of(URL, "20030301000000", TEXT, b"of March"),
        Capture {
            is_gzip: true,
            ..Capture::of(URL, "20030901000000", TEXT, b"of September")
        },
    ];
    for nearest in [Nearest::AtOnce, Nearest::Redirect] {
        let Some(server) = pywb(
            "the_capture_nearest_to_the_mail_is_put_in",
            &captures,
            nearest,
        ) else {
            return;
        };
        let march = Some(("of March", "2003-03-01T00:00:00Z"));
        let september = Some(("of September", "2003-09-01T00:00:00Z"));
        let rows = [
            // 400 days before the first capture, and more than 400 days.
            ("Fri, 01 Feb 2002", march),
            ("Tue, 01 Jan 2002", None),
            ("Sat, 01 Mar 2003", march),
            ("Fri, 02 May 2003", march),
            ("Tue, 01 Jul 2003", september),
            // 90 days after the last capture, and more than 90 days.
            ("Thu, 27 Nov 2003", september),
            ("Mon, 01 Dec 2003", None),
        ];
        for (date, expected) in rows {
            let before = letter(date);
            let ran = filter(&archive(&server), &before);
            match expected {
                Some((text, time)) => {
                    ran.gives(&letter_with(date, text.as_bytes()));
                    assert_eq!(ran.column("archive"), [time], "{date}");
                    assert_eq!(ran.column("url"), [URL]);
                    assert!(ran.stderr.contains("from the archive"), "{}", ran.stderr);
                }
                None => {
                    ran.leaves(&before, &["not-archived"]);
                    assert!(ran.stderr.contains("--archive-window"), "{}", ran.stderr);
                }
            }
        }
        let narrow = format!("{} --archive-window 0,30d", archive(&server));
        filter(&narrow, &letter("Fri, 02 May 2003"))
            .leaves(&letter("Fri, 02 May 2003"), &["not-archived"]);
        filter(&narrow, &letter("Sun, 10 Aug 2003"))
            .gives(&letter_with("Sun, 10 Aug 2003", b"of September"));
        // The time at which a mail was received has precedence over its Date field.
        let received = |mail: Vec<u8>| {
            [
                b"Received: from a by b; Fri, 2 May 2003 14:00:00 +0200\n".to_vec(),
                mail,
            ]
            .concat()
        };
        filter(&archive(&server), &received(letter("Thu, 01 Jan 2015")))
            .gives(&received(letter_with("Thu, 01 Jan 2015", b"of March")));
        let undated = mail(&[reference(URL, "text/plain")]);
        let ran = filter(&archive(&server), &undated);
        ran.leaves(&undated, &["not-archived"]);
        assert!(ran.stderr.contains("has no date"), "{}", ran.stderr);
    }
}

#[test]
fn redirects_of_then_are_followed_in_the_archive_only() {
    let live = Raw::saying(ok("text/plain", b"of today"));
    let there = live.url("/there.txt");
    let to = |location| [("Location", location)];
    let (relative, absolute, circle, back, away, file) = (
        to("/dir/a.txt"),
        to(&*there),
        to("http://gone.example/other"),
        to("http://gone.example/circle"),
        to("https://denied.example/x"),
        to("file:///etc/passwd"),
    );
    let moved = |url, headers| Capture {
        status: "301 Moved",
        ..Capture::of(url, "20030302000000", headers, b"")
    };
    let captures = [
        Capture::of(URL, "20030301000000", TEXT, b"of March"),
        Capture::of(&there, "20030303000000", TEXT, b"of then"),
        moved("http://gone.example/relative", &relative),
        moved("http://gone.example/absolute", &absolute),
        moved("http://gone.example/circle", &circle),
        moved("http://gone.example/other", &back),
        moved("http://gone.example/away", &away),
        moved("http://gone.example/file", &file),
    ];
    for nearest in [Nearest::AtOnce, Nearest::Redirect] {
        let Some(server) = pywb(
            "redirects_of_then_are_followed_in_the_archive_only",
            &captures,
            nearest,
        ) else {
            return;
        };
        let options = format!(
            "{} --allow-port {} --deny-host denied.example",
            archive(&server),
            live.address.port()
        );
        let names = ["relative", "absolute", "circle", "away", "file"];
        let parts =
            names.map(|name| reference(&format!("http://gone.example/{name}"), "text/plain"));
        let ran = filter(&options, &of("Sun, 02 Mar 2003", &parts));
        let [_, _, circle, away, file] = parts;
        ran.gives(&of(
            "Sun, 02 Mar 2003",
            &[
                filled(Some(URL), "text/plain", b"of March"),
                filled(Some(&there), "text/plain", b"of then"),
                circle,
                away,
                file,
            ],
        ));
        assert_eq!(
            ran.column("reason"),
            ["-", "-", "not-archived", "name-not-found", "name-not-found"],
            "{}",
            ran.stderr
        );
        for word in [
            "circle",
            "denied.example is denied by --deny-host",
            "/etc/passwd is not in a directory of",
        ] {
            assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
        }
        assert_eq!(live.count(), 0, "somebody was asked live");
        assert!(
            !asked(&server)
                .iter()
                .any(|path| path.contains("denied") || path.contains("passwd"))
        );
    }
}

#[test]
fn an_error_that_is_nearer_gives_way_to_what_the_index_knows() {
    const TEST: &str = "an_error_that_is_nearer_gives_way_to_what_the_index_knows";
    let picture = "http://gone.example/a.gif";
    let error = |url, stamp, status| Capture {
        status,
        ..Capture::of(url, stamp, HTML, b"<p>no</p>")
    };
    let captures = [
        error(URL, "20030501000000", "404 Not Found"),
        error(URL, "20030503000000", "429 Too Many Requests"),
        Capture::of(URL, "20030401000000", TEXT, b"of April"),
        Capture::of(URL, "20030801000000", TEXT, b"of August"),
        // An error page with the status 200.
        error(picture, "20030501000000", "200 OK"),
        Capture::of(picture, "20030801000000", GIF, b"GIF of August"),
        error("http://gone.example/b", "20030501000000", "404 Not Found"),
    ];
    let Some(server) = pywb(TEST, &captures, Nearest::Redirect) else {
        return;
    };
    let date = "Sat, 03 May 2003";
    let parts = [
        reference(URL, "text/plain"),
        reference(picture, "image/gif"),
        reference("http://gone.example/b", "text/plain"),
    ];
    let before = of(date, &parts);
    let ran = filter(&archive(&server), &before);
    ran.leaves(&before, &["not-archived", "type-mismatch", "not-archived"]);
    assert!(
        ran.stderr
            .contains("from 2003-05-03T00:00:00Z, is a response with the status 429"),
        "{}",
        ran.stderr
    );
    assert!(!asked(&server).iter().any(|path| path.contains("cdx")));
    let ran = filter(&index(&server), &before);
    ran.gives(&of(
        date,
        &[
            filled(Some(URL), "text/plain", b"of April"),
            filled(Some(picture), "image/gif", b"GIF of August"),
            reference("http://gone.example/b", "text/plain"),
        ],
    ));
    assert_eq!(ran.column("reason"), ["-", "-", "not-archived"]);
    // One request for each URL. The rate limit for archives determines when it is sent, not the time-out.
    let questions = asked(&server)
        .iter()
        .filter(|path| path.contains("cdx"))
        .count();
    assert_eq!(questions, 3);
    assert!(
        ran.took >= std::time::Duration::from_secs(5),
        "{:?}",
        ran.took
    );
}

#[test]
fn reference_without_a_capture_is_left_and_secret_urls_are_not_sent_to_the_archive() {
    const TEST: &str =
        "reference_without_a_capture_is_left_and_secret_urls_are_not_sent_to_the_archive";
    let secret = "http://gone.example/9e107d9d372bb6826bd81d3542a419d6.txt";
    let captures = [Capture::of(secret, "20030501000000", TEXT, b"of May")];
    let Some(server) = pywb(TEST, &captures, Nearest::AtOnce) else {
        return;
    };
    let date = "Sat, 03 May 2003";
    let never = of(
        date,
        &[reference("http://gone.example/never", "text/plain")],
    );
    let options = archive(&server);
    filter(&options, &never).leaves(&never, &["not-archived"]);
    // The file will not be in the archive later, either, so the mail is not deferred.
    let ran = filter(&format!("{options} --on-failure defer"), &never);
    ran.leaves(&never, &["not-archived"]);
    let before = of(date, &[reference(secret, "text/plain")]);
    for options in [options.clone(), format!("{options} --archive-first")] {
        let ran = filter(&options, &before);
        ran.leaves(&before, &["secret-url"]);
        assert!(ran.stderr.contains("--archive-any"), "{}", ran.stderr);
    }
    assert!(!asked(&server).iter().any(|path| path.contains("9e107d9d")));
    filter(&format!("{options} --archive-any"), &before)
        .gives(&of(date, &[filled(Some(secret), "text/plain", b"of May")]));
    // If the policy does not allow it, neither the archive nor the host gets a request.
    let count = asked(&server).len();
    let ran = filter(
        &format!("{options} --deny-host gone.example"),
        &letter(date),
    );
    ran.leaves(&letter(date), &["host-not-allowed"]);
    let ran = filter(&format!("{options} --deny-host 127.0.0.1"), &letter(date));
    ran.leaves(&letter(date), &["name-not-found"]);
    assert!(
        ran.stderr
            .contains("the archive cannot be used: 127.0.0.1 is denied"),
        "{}",
        ran.stderr
    );
    let shut = options.replace(" --allow-net 127.0.0.0/8", "");
    filter(&shut, &letter(date)).leaves(&letter(date), &["name-not-found"]);
    assert_eq!(asked(&server).len(), count);
}

#[test]
fn the_source_is_asked_first_unless_it_is_said_otherwise() {
    const TEST: &str = "the_source_is_asked_first_unless_it_is_said_otherwise";
    let live = Raw::http(|path, stream| {
        let status = match path {
            "/here" => return drop(stream.write_all(&ok("text/plain", b"of today"))),
            "/404" => "404 Not Found",
            "/410" => "410 Gone",
            "/403" => "403 Forbidden",
            _ => "500 Trouble",
        };
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    });
    let names = ["here", "404", "410", "403", "500"];
    let urls = names.map(|name| live.url(&format!("/{name}")));
    let captures: Vec<Capture<'_>> = urls
        .iter()
        .map(|url| Capture::of(url, "20030501000000", TEXT, b"of then"))
        .collect();
    let Some(server) = pywb(TEST, &captures, Nearest::AtOnce) else {
        return;
    };
    let port = live.address.port();
    let options = format!("{} --allow-port {port}", archive(&server));
    let date = "Sat, 03 May 2003";
    let parts = |urls: &[String]| -> Vec<String> {
        urls.iter()
            .map(|url| reference(url, "text/plain"))
            .collect()
    };
    let now = |url: &str| filled(Some(url), "text/plain", b"of today");
    let then = |url: &str| filled(Some(url), "text/plain", b"of then");
    let before = of(date, &parts(&urls));
    let ran = filter(&options, &before);
    ran.gives(&of(
        date,
        &[
            now(&urls[0]),
            then(&urls[1]),
            then(&urls[2]),
            reference(&urls[3], "text/plain"),
            reference(&urls[4], "text/plain"),
        ],
    ));
    assert_eq!(
        ran.column("reason"),
        ["-", "-", "-", "http-status", "http-status"]
    );
    let count = live.count();
    let first = format!("{options} --archive-first");
    filter(&first, &before).gives(&of(date, &urls.each_ref().map(|url| then(url))));
    assert_eq!(live.count(), count, "the archive had all");
    // The source may have a file that the archive lacks.
    let other = live.url("/here?2");
    let before = of(
        date,
        &[
            reference(&other, "text/plain"),
            reference(&urls[0], "text/plain"),
        ],
    );
    let ran = filter(&first, &before);
    ran.gives(&of(
        date,
        &[reference(&other, "text/plain"), then(&urls[0])],
    ));
    assert_eq!(ran.column("reason"), ["http-status", "-"], "{}", ran.stderr);
}
