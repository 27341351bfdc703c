//! `--archive FILE`: which capture is used, and when none is (docs/archive.md).

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::warcs::{
    DATE, MAIL_DATE, OFFLINE, URL, answer, gzip, members, record, response, sha256, text,
};
use crate::common::filter::{Ran, filled, filter, mail, reference};
use crate::common::programs::{embody_in, stderr};
use crate::common::raw::{Raw, ok};

fn of(date: &str, parts: &[String]) -> Vec<u8> {
    [date.as_bytes(), &mail(parts)].concat()
}

/// Filters a mail with a part for each URL, with these records as the archive.
fn ran(records: &[Vec<u8>], options: &str, urls: &[&str]) -> (Ran, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc.gz");
    fs::write(&file, members(records)).unwrap();
    let parts: Vec<String> = urls
        .iter()
        .map(|url| reference(url, "text/plain"))
        .collect();
    let options = format!("{OFFLINE} {} {options}", file.display());
    (filter(&options, &of(MAIL_DATE, &parts)), parts)
}

/// Compresses each record as a frame of zstd.
fn frames(records: &[Vec<u8>], dictionary: &[u8]) -> Vec<u8> {
    let frame = |record: &Vec<u8>| {
        let mut encoder =
            zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, dictionary).unwrap();
        encoder.write_all(record).unwrap();
        encoder.finish().unwrap()
    };
    records.iter().flat_map(frame).collect()
}

#[test]
fn files_of_every_form_give_the_same_mail() {
    let other = "https://gone.example/b.txt";
    let one = [response(URL, DATE, &text("of May"))];
    let two = [response(other, DATE, &text("of the other"))];
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let all = [one[0].clone(), two[0].clone()];
    fs::write(at("plain.warc"), all.concat()).unwrap();
    fs::write(at("members.warc.gz"), members(&all)).unwrap();
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("folder/one.warc"), &one[0]).unwrap();
    fs::write(at("folder/two.warc.gz"), members(&two)).unwrap();
    fs::write(at("folder/notes.txt"), "not read").unwrap();
    let zip = "import sys, zipfile\n\
        for name, method in ('stored', zipfile.ZIP_STORED), ('deflated', zipfile.ZIP_DEFLATED):\n\
        \x20   with zipfile.ZipFile(name + '.wacz', 'w', method) as wacz:\n\
        \x20       wacz.write('plain.warc', 'archive/plain.warc')\n\
        \x20       wacz.writestr('datapackage.json', '{}')\n\
        with zipfile.ZipFile('members.wacz', 'w') as wacz:\n\
        \x20   wacz.write('members.warc.gz', 'archive/members.warc.gz')\n\
        \x20   wacz.writestr('elsewhere/bad.warc.gz', 'not read')\n";
    let python = std::process::Command::new("python3")
        .args(["-c", zip])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(python.success());
    fs::write(at("frames.warc.zst"), frames(&all, b"")).unwrap();
    let skippable = |content: &[u8]| {
        let length = u8::try_from(content.len()).unwrap();
        [&[0x5d, 0x2a, 0x4d, 0x18, length, 0, 0, 0][..], content].concat()
    };
    let (words, known) = (URL.as_bytes(), frames(&all, URL.as_bytes()));
    let packed = frames(&[words.to_vec()], b"");
    fs::write(
        at("dictionary.warc.zst"),
        [skippable(words), known.clone()].concat(),
    )
    .unwrap();
    fs::write(at("packed.warc.zst"), [skippable(&packed), known].concat()).unwrap();
    // The records before the truncated end are used.
    let torn = frames(&[all.concat(), one[0].clone()], b"");
    fs::write(at("torn.warc.zst"), &torn[..torn.len() - 9]).unwrap();
    let parts = [URL, other].map(|url| reference(url, "text/plain"));
    let before = of(MAIL_DATE, &parts);
    let after = of(
        MAIL_DATE,
        &[
            filled(Some(URL), "text/plain", b"of May"),
            filled(Some(other), "text/plain", b"of the other"),
        ],
    );
    for name in [
        "plain.warc",
        "members.warc.gz",
        "folder",
        "stored.wacz",
        "deflated.wacz",
        "members.wacz",
        "frames.warc.zst",
        "dictionary.warc.zst",
        "packed.warc.zst",
        "torn.warc.zst",
    ] {
        let ran = filter(&format!("{OFFLINE} {}", at(name).display()), &before);
        ran.gives(&after);
        assert_eq!(ran.column("from"), ["archive", "archive"], "{name}");
        assert_eq!(ran.column("captured_at"), [DATE, DATE], "{name}");
        assert_eq!(ran.column("status"), ["200", "200"], "{name}");
        assert!(ran.column("record")[0].starts_with("urn:uuid:"), "{name}");
        // A second run changes nothing.
        filter(&format!("{OFFLINE} {}", at(name).display()), &after).gives(&after);
    }
}

#[test]
fn the_nearest_capture_is_put_in_however_far_it_is() {
    let records = [
        "1999-01-01T00:00:00Z",
        "2003-04-01T00:00:00Z",
        "2020-01-01T00:00:00Z",
    ]
    .map(|date| response(URL, date, &text(&date[..4])));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc");
    fs::write(&file, records.concat()).unwrap();
    let part = reference(URL, "text/plain");
    let with = |year: &str| filled(Some(URL), "text/plain", year.as_bytes());
    let offline = format!("{OFFLINE} {}", file.display());
    let day = |year: u16| format!("Date: Fri, 02 May {year} 12:00:00 +0000\n");
    for (date, year) in [
        (day(1985), "1999"),
        (day(2000), "1999"),
        (day(2003), "2003"),
        (day(2024), "2020"),
        // If the mail has no date, the earliest capture is used.
        (String::new(), "1999"),
    ] {
        let ran = filter(&offline, &of(&date, std::slice::from_ref(&part)));
        ran.gives(&of(&date, &[with(year)]));
    }
    let narrow = format!("{offline} --archive-window 90d,400d");
    filter(&narrow, &of(&day(2003), std::slice::from_ref(&part)))
        .gives(&of(&day(2003), &[with("2003")]));
    for date in [day(2006), String::new()] {
        let before = of(&date, std::slice::from_ref(&part));
        filter(&narrow, &before).leaves(&before, &["not-archived"]);
    }
}

/// Returns records without usable content, each with a word of the reason.
fn useless() -> Vec<(Vec<u8>, &'static str)> {
    let plain = "Content-Type: text/plain\r\n";
    let http = "Content-Type: application/http; msgtype=response\r\n";
    let with = |fields: &str, body: &[u8]| {
        let fields = format!("{plain}{fields}");
        response(URL, DATE, &answer("200 OK", &fields, body))
    };
    let said = |more: &str| {
        record(
            "response",
            URL,
            DATE,
            &format!("{http}{more}"),
            &text("of May"),
        )
    };
    let moved = |to: &str| {
        let fields = format!("Location: {to}\r\nContent-Length: 0\r\n");
        response(URL, DATE, &answer("302 Found", &fields, b""))
    };
    vec![
        (
            response(URL, DATE, &answer("404 Not Found", plain, b"no")),
            "a response with the status 404",
        ),
        (
            response(URL, DATE, &answer("500 Trouble", plain, b"no")),
            "a response with the status 500",
        ),
        (
            response(URL, DATE, &answer("206 Partial", plain, b"of")),
            "a response with the status 206",
        ),
        (response(URL, DATE, b"no answer at all"), "is incomplete"),
        (said("WARC-Truncated: length\r\n"), "is incomplete"),
        (
            said("WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"),
            "does not match its WARC-Payload-Digest",
        ),
        (
            said("WARC-Payload-Digest: sha256:00\r\n"),
            "does not match its WARC-Payload-Digest",
        ),
        (
            said("").escape_digest(),
            "does not match its WARC-Block-Digest",
        ),
        (
            with("Content-Length: 7\r\n", b"of May"),
            "differs from its Content-Length field",
        ),
        (
            with("Content-Length: 5\r\n", b"of May"),
            "differs from its Content-Length field",
        ),
        (
            with("Content-Length: -1\r\n", b"of May"),
            "differs from its Content-Length field",
        ),
        (
            with("Transfer-Encoding: chunked\r\n", b"6\r\nof May\r\n"),
            "are damaged or incomplete",
        ),
        (
            with(
                "Transfer-Encoding: chunked\r\n",
                b"ffffffffffffffff\r\nof May\r\n0\r\n\r\n",
            ),
            "are damaged or incomplete",
        ),
        (
            with("Transfer-Encoding: chunked\r\n", b"of May"),
            "are damaged or incomplete",
        ),
        (
            with("Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
            "Transfer-Encoding other than chunked",
        ),
        (
            with("Content-Encoding: br\r\n", b"of May"),
            "content coding br, which embody did not request",
        ),
        (
            with("Content-Encoding: gzip\r\n", b"of May"),
            "content is damaged",
        ),
        (
            with("Content-Encoding: gzip\r\n", &gzip(b"of May")[..20]),
            "content is damaged",
        ),
        (with("", b""), "where the content ends"),
        (moved("/elsewhere"), "has no capture"),
        (moved("/dir/a.txt"), "in a circle"),
        (moved("https://denied.example/"), "denied.example is denied"),
        (moved("file:///etc/passwd"), "redirects to file"),
        (moved(""), "without a Location"),
        (
            record(
                "revisit",
                URL,
                DATE,
                "WARC-Refers-To-Target-URI: http://gone.example/c\r\n",
                b"",
            ),
            "not in these files",
        ),
        (
            record("metadata", URL, DATE, http, &text("of May")),
            "has no capture",
        ),
        (
            record("request", URL, DATE, http, &text("of May")),
            "has no capture",
        ),
        (response("urn:x:y", DATE, &text("of May")), "has no capture"),
        (response(URL, "then", &text("of May")), "has no capture"),
    ]
}

trait Escaped {
    fn escape_digest(self) -> Self;
}

impl Escaped for Vec<u8> {
    /// Changes the content, but keeps the digest.
    fn escape_digest(self) -> Self {
        String::from_utf8(self)
            .unwrap()
            .replace("of May", "of Mai")
            .into_bytes()
    }
}

#[test]
fn incomplete_capture_is_skipped_and_a_complete_farther_capture_is_used() {
    let far = response(URL, "2010-01-01T00:00:00Z", &text("of 2010"));
    let rows = useless();
    assert!(rows.len() > 20);
    for (number, (record, why)) in rows.into_iter().enumerate() {
        let options = "--deny-host denied.example";
        let (left, parts) = ran(std::slice::from_ref(&record), options, &[URL]);
        left.gives(&of(MAIL_DATE, &parts));
        assert_eq!(left.column("outcome"), ["left"], "row {number}");
        assert!(
            left.stderr.contains(why),
            "row {number}: {why}: {}",
            left.stderr
        );
        // A redirect shows the content of that time, so a later capture is not used instead.
        if !record.windows(5).any(|octets| octets == b" 302 ") {
            let (filled_in, _) = ran(&[record, far.clone()], options, &[URL]);
            let part = filled(Some(URL), "text/plain", b"of 2010");
            filled_in.gives(&of(MAIL_DATE, &[part]));
        }
    }
}

#[test]
fn chunked_and_compressed_captures_are_decoded() {
    let chunks = b"3;x=y\r\nof \r\n3\r\nMay\r\n0\r\nTrailer: x\r\n\r\n";
    let zipped = gzip(b"of May");
    let chunked_gzip = [
        format!("{:x}\r\n", zipped.len()).as_bytes(),
        &zipped,
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let zlib = {
        use std::io::Write as _;
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"of May").unwrap();
        encoder.finish().unwrap()
    };
    let http = "Content-Type: application/http; msgtype=response\r\n";
    let rows: [(&str, &[u8]); 7] = [
        ("", b"of May"),
        ("Content-Length: 6\r\nX: y\r\n folded\r\n", b"of May"),
        ("Transfer-Encoding: chunked\r\n", chunks),
        ("Content-Encoding: gzip\r\n", &zipped),
        (
            "Content-Encoding: x-gzip\r\nTransfer-Encoding: chunked\r\n",
            &chunked_gzip,
        ),
        ("Content-Encoding: deflate\r\n", &zlib),
        ("Content-Encoding: deflate\r\n", &zlib[2..zlib.len() - 4]),
    ];
    let after = of(MAIL_DATE, &[filled(Some(URL), "text/plain", b"of May")]);
    for (fields, body) in rows {
        let block = answer(
            "200 OK",
            &format!("Content-Type: text/plain\r\n{fields}"),
            body,
        );
        // Programs differ in whether the framing of chunks is part of the payload.
        let digests = [body, b"of May"]
            .map(|payload| format!("{http}WARC-Payload-Digest: sha256:{}\r\n", sha256(payload)));
        let is_coded = fields.contains("Encoding: gzip")
            || fields.contains("gzip")
            || fields.contains("deflate");
        for more in [http, &digests[0], &digests[1]]
            .iter()
            .take(if is_coded { 2 } else { 3 })
        {
            let (ran, _) = ran(&[record("response", URL, DATE, more, &block)], "", &[URL]);
            ran.gives(&after);
        }
    }
    let resource = record(
        "resource",
        URL,
        DATE,
        "Content-Type: text/plain\r\n",
        b"of May",
    );
    ran(&[resource], "", &[URL]).0.gives(&after);
    let ftp = "ftp://gone.example/a.txt";
    let resource = record(
        "resource",
        ftp,
        DATE,
        "Content-Type: application/octet-stream\r\n",
        b"of May",
    );
    ran(&[resource], "", &[ftp]).0.gives(&of(
        MAIL_DATE,
        &[filled(Some(ftp), "text/plain", b"of May")],
    ));
}

#[test]
fn revisit_record_gives_the_content_of_its_target() {
    let there = "http://gone.example/there";
    let payload = format!("WARC-Payload-Digest: sha256:{}\r\n", sha256(b"of May"));
    let http = "Content-Type: application/http; msgtype=response\r\n";
    let original = record(
        "response",
        there,
        "2001-01-01T00:00:00Z",
        &format!("{http}{payload}"),
        &text("of May"),
    );
    let head = answer(
        "200 OK",
        "Content-Type: text/plain\r\nContent-Length: 6\r\n",
        b"",
    );
    let by_date = format!(
        "WARC-Refers-To-Target-URI: {there}\r\nWARC-Refers-To-Date: 2001-01-01T00:00:00Z\r\n"
    );
    let after = of(MAIL_DATE, &[filled(Some(URL), "text/plain", b"of May")]);
    for (more, block) in [
        (format!("{http}{payload}{by_date}"), &head[..]),
        (format!("{http}{payload}"), &head),
        (by_date.clone(), b""),
        (payload.clone(), b""),
    ] {
        let revisit = record("revisit", URL, DATE, &more, block);
        let (found, _) = ran(&[original.clone(), revisit.clone()], "", &[URL]);
        found.gives(&after);
        // The order of the records makes no difference.
        ran(&[revisit, original.clone()], "", &[URL])
            .0
            .gives(&after);
    }
    // A revisit with another digest than the record to which it refers.
    let wrong = format!(
        "{http}WARC-Payload-Digest: sha256:{}\r\n{by_date}",
        sha256(b"else")
    );
    let (left, parts) = ran(
        &[
            original.clone(),
            record("revisit", URL, DATE, &wrong, &head),
        ],
        "",
        &[URL],
    );
    left.leaves(&of(MAIL_DATE, &parts), &["not-archived"]);
    // A revisit that refers to a revisit has no content.
    let by_itself = format!("WARC-Refers-To-Target-URI: {URL}\r\nWARC-Refers-To-Date: {DATE}\r\n");
    let (left, parts) = ran(
        &[record("revisit", URL, DATE, &by_itself, &head)],
        "",
        &[URL],
    );
    left.leaves(&of(MAIL_DATE, &parts), &["not-archived"]);
}

#[test]
fn redirects_are_followed_within_the_captures() {
    let moved = |url: &str, to: &str| {
        let fields = format!("Location: {to}\r\nContent-Length: 0\r\n");
        response(url, DATE, &answer("301 Moved", &fields, b""))
    };
    let records = [
        moved(URL, "../b"),
        moved("http://gone.example/b", "https://new.example/c#part"),
        response("https://new.example/c", DATE, &text("of May")),
    ];
    let (ran, parts) = ran(&records, "", &[URL]);
    ran.gives(&of(
        MAIL_DATE,
        &[filled(
            Some("https://new.example/c"),
            "text/plain",
            b"of May",
        )],
    ));
    assert_eq!(ran.column("final_url"), ["https://new.example/c"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc");
    fs::write(&file, records.concat()).unwrap();
    let few = filter(
        &format!("{OFFLINE} {} --max-redirects 1", file.display()),
        &of(MAIL_DATE, &parts),
    );
    few.leaves(&of(MAIL_DATE, &parts), &["not-archived"]);
}

#[test]
fn answers_to_other_methods_are_no_content() {
    let id = |record: &[u8]| {
        let text = String::from_utf8_lossy(record).into_owned();
        text.split("WARC-Record-ID: ")
            .nth(1)
            .unwrap()
            .split("\r\n")
            .next()
            .unwrap()
            .to_owned()
    };
    let far = "2010-01-01T00:00:00Z";
    let good = response(URL, far, &text("of 2010"));
    for method in ["POST", "HEAD", "PUT"] {
        let posted = response(URL, DATE, &text("of May"));
        let request = |more: &str| {
            let block = format!("{method} /dir/a.txt HTTP/1.1\r\nHost: gone.example\r\n\r\n");
            record("request", URL, DATE, more, block.as_bytes())
        };
        let behind = request(&format!("WARC-Concurrent-To: {}\r\n", id(&posted)));
        let before = request("");
        let named = record(
            "response",
            URL,
            DATE,
            &format!("WARC-Concurrent-To: {}\r\n", id(&before)),
            &text("of May"),
        );
        let after = of(MAIL_DATE, &[filled(Some(URL), "text/plain", b"of 2010")]);
        for records in [
            vec![posted.clone(), behind.clone(), good.clone()],
            vec![behind, posted, good.clone()],
            vec![before, named, good.clone()],
        ] {
            ran(&records, "", &[URL]).0.gives(&after);
        }
    }
}

#[test]
fn exact_url_wins_and_records_of_embody_match_only_exact_urls() {
    let with = |url: &str, records: &[Vec<u8>]| {
        let (ran, _) = ran(records, "", &[url]);
        let text = String::from_utf8(ran.stdout).unwrap();
        let is_in = |word: &str| text.contains(word).then(|| word.to_owned());
        is_in("of May")
            .or_else(|| is_in("of the other"))
            .unwrap_or_default()
    };
    let other = response(
        "https://www.gone.example/dir/a.txt",
        DATE,
        &text("of the other"),
    );
    let same = response(URL, "1999-01-01T00:00:00Z", &text("of May"));
    let gone = response(
        URL,
        DATE,
        &answer("404 Not Found", "Content-Length: 0\r\n", b""),
    );
    let ours = record(
        "warcinfo",
        "",
        DATE,
        "",
        b"software: embody 0.4.0\r\nformat: WARC File Format 1.1\r\n",
    );
    let rows: [(&str, &[&Vec<u8>], &str); 8] = [
        (URL, &[&other], "of the other"),
        (URL, &[&other, &same], "of May"),
        (URL, &[&other, &gone], "of the other"),
        (URL, &[&ours, &other], ""),
        (URL, &[&ours, &other, &gone], ""),
        (URL, &[&ours, &other, &same], "of May"),
        (
            "http://GONE.example:80/dir/../dir/a.txt#x",
            &[&ours, &same],
            "of May",
        ),
        ("http://gone.example/dir/A.txt", &[&same, &other], ""),
    ];
    for (number, (url, records, expected)) in rows.into_iter().enumerate() {
        let records: Vec<Vec<u8>> = records.iter().map(|it| (*it).clone()).collect();
        assert_eq!(with(url, &records), expected, "row {number}");
    }
}

#[test]
fn mail_stored_in_a_record_is_never_used_as_content() {
    for scheme in ["http", "https"] {
        let url = format!("{scheme}://mail.invalid/1/2");
        let html = record(
            "resource",
            &url,
            DATE,
            "Content-Type: text/plain\r\n",
            b"somebody's mail",
        );
        let (ran, parts) = ran(&[html], "", &[&url]);
        ran.leaves(&of(MAIL_DATE, &parts), &["not-archived"]);
    }
}

#[test]
fn the_source_is_asked_first_unless_it_is_said_otherwise_and_never_offline() {
    let live = Raw::http(|path, stream| {
        use std::io::Write as _;
        let _ = match path {
            "/here" => stream.write_all(&ok("text/plain", b"of today")),
            _ => stream
                .write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
        };
    });
    let urls = ["/here", "/gone"].map(|path| live.url(path));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc");
    fs::write(
        &file,
        urls.each_ref()
            .map(|url| response(url, DATE, &text("of then")))
            .concat(),
    )
    .unwrap();
    let open = format!(
        "--fetch http --allow-net 127.0.0.0/8 --allow-port {} --archive {}",
        live.address.port(),
        file.display()
    );
    let before = of(
        MAIL_DATE,
        &urls.each_ref().map(|url| reference(url, "text/plain")),
    );
    let with = |text: [&str; 2]| {
        let parts = [0, 1].map(|at| filled(Some(&urls[at]), "text/plain", text[at].as_bytes()));
        of(MAIL_DATE, &parts)
    };
    filter(&open, &before).gives(&with(["of today", "of then"]));
    let count = live.count();
    for options in ["--archive-first", "--offline", "--archive-first --offline"] {
        filter(&format!("{open} {options}"), &before).gives(&with(["of then", "of then"]));
    }
    assert_eq!(live.count(), count);
    // The policy applies as it does to servers.
    let closed = open.replace("--fetch http ", "--fetch https ");
    filter(&closed, &before).leaves(&before, &["scheme-not-allowed", "scheme-not-allowed"]);
    let denied = format!("{open} --archive-first --deny-host 127.0.0.1");
    filter(&denied, &before).leaves(&before, &["host-not-allowed", "host-not-allowed"]);
    let small = format!("{open} --offline --max-body 3");
    filter(&small, &before).leaves(&before, &["too-large", "too-large"]);
    let typed = format!("{open} --offline --deny-type text/*");
    filter(&typed, &before).leaves(&before, &["type-not-allowed", "type-not-allowed"]);
    assert_eq!(live.count(), count);
}

#[test]
fn convert_and_inspect_find_content_in_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(
        at("a.warc.gz"),
        members(&[response(URL, DATE, &text("of May"))]),
    )
    .unwrap();
    let other = "http://gone.example/b.txt";
    let parts = [URL, other].map(|url| reference(url, "text/plain"));
    let letter = of(MAIL_DATE, &parts);
    let mbox = [
        &b"From a@example.org Fri May  2 12:00:00 2003\n"[..],
        &letter,
        b"\n\n",
    ]
    .concat();
    fs::write(at("in.mbox"), &mbox).unwrap();
    let offline = ["--fetch", "http", "--offline", "--archive"];
    let ran = embody_in(
        folder.path(),
        &[
            &[
                "convert",
                &at("in.mbox"),
                "--output",
                &at("out.mbox"),
                "--archive-first",
            ],
            &offline[..],
            &[&at("a.warc.gz")],
        ]
        .concat(),
    );
    assert!(ran.status.success(), "{}", stderr(&ran));
    let out = fs::read_to_string(at("out.mbox")).unwrap();
    assert!(out.contains("\n\nof May\n") && out.contains(other), "{out}");
    let ran = embody_in(
        folder.path(),
        &[
            &["inspect", "--json", &at("in.mbox")],
            &offline[..],
            &[&at("a.warc.gz")],
        ]
        .concat(),
    );
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(
        said.contains("\"in-archive\"") && said.contains("\"not-archived\""),
        "{said}{}",
        stderr(&ran)
    );
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("a.txt"), "no archive").unwrap();
    fs::write(at("a.warc"), response(URL, DATE, &text("of May"))).unwrap();
    fs::write(at("empty.warc"), "").unwrap();
    let refused = |options: &[&str], word: &str| {
        let source = at("in.eml");
        fs::write(&source, "Subject: x\n\nx\n").unwrap();
        let output = at("out.eml");
        let _ = fs::remove_file(&output);
        let all = [
            &["convert", &source, "--output", &output, "--fetch", "http"],
            options,
        ]
        .concat();
        let ran = embody_in(folder.path(), &all);
        assert!(stderr(&ran).contains(word), "{options:?}: {}", stderr(&ran));
        assert!(!Path::new(&output).exists());
        assert!(!ran.status.success());
    };
    refused(&["--offline"], "--offline makes no requests");
    refused(
        &["--offline", "--archive", "http://a.example/{date}/{url}"],
        "--offline makes no requests",
    );
    refused(&["--archive", &at("missing.warc")], "missing.warc");
    refused(&["--archive", &at("a.txt")], "not a WARC file, a WACZ file");
    refused(&["--archive", "https://a.example/"], "{date}");
    refused(
        &["--archive", &at("a.warc"), "--archive-any"],
        "--archive names files",
    );
    let ran = filter(
        &format!("{OFFLINE} {}", at("empty.warc")),
        &of(MAIL_DATE, &[reference(URL, "text/plain")]),
    );
    ran.leaves(
        &of(MAIL_DATE, &[reference(URL, "text/plain")]),
        &["not-archived"],
    );
}
