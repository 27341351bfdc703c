//! `--provenance`: the fields of filled parts about the origin of their content (docs/archives.md).

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::warcs::{DATE, MAIL_DATE, OFFLINE, URL, record, response, sha256, text};
use crate::common::filter::{filled, filter, filter_at, mail, open, reference};
use crate::common::programs::{embody_in, stderr};
use crate::common::raw::{Raw, ok};

/// Returns the field as Python's `email` parses it in each part: its URL and its parameters.
fn read(mail: &[u8]) -> Vec<(String, Vec<(String, String)>)> {
    let script = "import email, json, sys, email.utils\n\
        said = []\n\
        for part in email.message_from_bytes(sys.stdin.buffer.read()).walk():\n\
        \x20   for value in part.get_all('X-Embody-Source', []):\n\
        \x20       del part['X-Embody-Source']\n\
        \x20       part['X-Embody-Source'] = value\n\
        \x20       _, *more = part.get_params(header='X-Embody-Source')\n\
        \x20       said.append([''.join(value.partition('>')[0].split()) + '>', [[name, email.utils.collapse_rfc2231_value(text)] for name, text in more]])\n\
        print(json.dumps(said))\n";
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(mail).unwrap();
    let said = python.wait_with_output().unwrap();
    assert!(said.status.success());
    serde_json::from_slice(&said.stdout).unwrap()
}

fn value<'v>(parameters: &'v [(String, String)], name: &str) -> Option<&'v str> {
    let found = parameters.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// Returns whether no line is too long.
fn is_folded(mail: &[u8]) -> bool {
    mail.split(|octet| *octet == b'\n')
        .all(|line| line.len() <= 78)
}

fn gif() -> Vec<u8> {
    let gif: &[u8] =
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    gif.to_vec()
}

fn server() -> Raw {
    Raw::http(|path, stream| {
        let _ = match path.split('?').next().unwrap() {
            "/moved" => stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /there?sig=abc\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            "/big.gif" => stream.write_all(&ok("image/gif", &[gif(), vec![0; 20_000]].concat())),
            "/a.gif" => stream.write_all(&ok("image/gif", &gif())),
            "/kept" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=3600\r\nContent-Length: 4\r\nConnection: close\r\n\r\nkept"),
            _ => stream.write_all(&ok("text/plain", b"of today")),
        };
    })
}

#[test]
fn each_retrieved_part_has_one_provenance_field_even_after_two_runs() {
    let server = server();
    let long = server.url(&format!("/{}", "long/".repeat(300)));
    let moved = server.url("/moved");
    let picture = server.url("/a.gif?token=x&width=9");
    let html = format!(
        "Content-Type: text/html\n\n<img src=\"{picture}\"><img src=\"data:image/gif;base64,R0lGODlhAQABAAAAACw=\">\n\n"
    );
    let before = mail(&[
        reference(&long.replace("long/", "long/ "), "text/plain"),
        reference(&moved, "text/plain"),
        reference("data:,A%20brief%20note", "text/plain"),
        html,
    ]);
    let options = format!(
        "{} --embed data,remote --provenance",
        open(&[server.address.port()])
    );
    for mail in [
        before.clone(),
        String::from_utf8(before.clone())
            .unwrap()
            .replace('\n', "\r\n")
            .into_bytes(),
    ] {
        let ran = filter(&options, &mail);
        let said = read(&ran.stdout);
        assert_eq!(said.len(), 3, "{}", String::from_utf8_lossy(&ran.stdout));
        for (_, parameters) in &said {
            assert_eq!(value(parameters, "status"), Some("200"));
            let at = value(parameters, "retrieved").unwrap();
            assert!(at.len() == 20 && at.ends_with('Z'), "{at}");
            assert_eq!(value(parameters, "captured"), None);
            assert_eq!(value(parameters, "record"), None);
        }
        let hash = sha256(b"of today");
        assert_eq!(said[0].0, format!("<{long}>"));
        assert_eq!(value(&said[0].1, "sha256"), Some(&*hash));
        assert_eq!(value(&said[0].1, "final"), None);
        assert_eq!(said[1].0, format!("<{moved}>"));
        let there = server.url("/there?sig=***");
        assert_eq!(value(&said[1].1, "final"), Some(&*there));
        assert_eq!(
            said[2].0,
            format!("<{}>", server.url("/a.gif?token=***&width=9"))
        );
        assert_eq!(value(&said[2].1, "sha256"), Some(&*sha256(&gif())));
        let count = server.count();
        let again = filter(&options, &ran.stdout);
        again.gives(&ran.stdout);
        assert_eq!(server.count(), count);
        // Without the option, the mail is the same except for the fields.
        let plain = filter(&options.replace(" --provenance", ""), &mail);
        assert!(read(&plain.stdout).is_empty());
        let text = String::from_utf8(ran.stdout).unwrap();
        let mut without = String::new();
        let mut is_field = false;
        for line in text.split_inclusive('\n') {
            is_field =
                line.starts_with("X-Embody-Source:") || (is_field && line.starts_with([' ', '\t']));
            if !is_field {
                without.push_str(line);
            }
        }
        assert_eq!(without.as_bytes(), plain.stdout);
        let fields: String = text
            .lines()
            .filter(|line| !line.contains("src=") && !line.contains("URL="))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(is_folded(fields.as_bytes()), "{fields}");
    }
}

#[test]
fn forged_provenance_field_of_a_filled_part_is_replaced() {
    let server = server();
    let forged = "X-Embody-Source: <https://trusted.example/>; sha256=00\n";
    let part = reference(&server.url("/x"), "text/plain").replace(
        "\n\nContent-Type: text/plain\n",
        &format!("\n{forged}\nContent-Type: text/plain\n{forged}"),
    );
    let other = format!("{forged}Content-Type: text/plain\n\nwritten by a stranger\n");
    let before = mail(&[part, other]);
    let options = open(&[server.address.port()]);
    let ran = filter(&format!("{options} --provenance"), &before);
    let said = read(&ran.stdout);
    assert_eq!(said.len(), 2, "{}", String::from_utf8_lossy(&ran.stdout));
    assert_eq!(said[0].0, format!("<{}>", server.url("/x")));
    // The field in another part belongs to the original mail.
    assert_eq!(said[1].0, "<https://trusted.example/>");
}

#[test]
fn source_field_does_not_contain_the_url_after_map() {
    let server = server();
    let named = "http://NAMED.example/a.gif";
    let before = mail(&[
        reference("http://named.example/x", "text/plain"),
        format!("Content-Type: text/html\n\n<img src=\"{named}\">\n"),
    ]);
    let options = format!(
        "{} --embed remote --provenance --map http://named.example/={} --map http://NAMED.example/={}",
        open(&[server.address.port()]),
        server.url("/"),
        server.url("/")
    );
    let ran = filter(&options, &before);
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(read(&ran.stdout).len(), 2, "{text}{}", ran.stderr);
    assert!(
        !text.contains("127.0.0.1") && !text.contains("final"),
        "{text}"
    );
}

#[test]
fn passwords_are_masked_in_provenance_fields() {
    let server = server();
    let url = server.url("/x").replace("http://", "http://joe:secret@");
    let options = format!(
        "{} --allow-userinfo --provenance",
        open(&[server.address.port()])
    );
    let ran = filter(&options, &mail(&[reference(&url, "text/plain")]));
    let [(named, _)] = &read(&ran.stdout)[..] else {
        panic!("{}", ran.stderr);
    };
    assert_eq!(*named, format!("<{}>", url.replace("secret", "***")));
    assert!(!String::from_utf8(ran.stdout).unwrap().contains("secret"));
}

#[test]
fn a_capture_says_when_it_was_captured_and_in_which_record() {
    let records = response(URL, DATE, &text("of May"));
    let text_of_records = String::from_utf8_lossy(&records).into_owned();
    let id = text_of_records
        .split("WARC-Record-ID: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap()
        .to_owned();
    let ftp = "ftp://gone.example/b.txt";
    let resource = record(
        "resource",
        ftp,
        DATE,
        "Content-Type: text/plain\r\n",
        b"by ftp",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc");
    fs::write(&file, [records, resource].concat()).unwrap();
    let parts = [URL, ftp].map(|url| reference(url, "text/plain"));
    let before = [MAIL_DATE.as_bytes(), &mail(&parts)].concat();
    let options = format!("{OFFLINE} {} --provenance", file.display());
    let ran = filter(&options, &before);
    let said = read(&ran.stdout);
    let (named, parameters) = &said[0];
    assert_eq!(named, &format!("<{URL}>"));
    for name in ["retrieved", "captured"] {
        assert_eq!(value(parameters, name), Some(DATE));
    }
    assert_eq!(
        value(parameters, "record"),
        Some(id.trim_matches(['<', '>']))
    );
    let (named, parameters) = &said[1];
    assert_eq!(named, &format!("<{ftp}>"));
    assert_eq!(
        (value(parameters, "status"), value(parameters, "sha256")),
        (None, Some(&*sha256(b"by ftp")))
    );
    // The captures contain all facts, so any later run writes the same fields.
    assert_eq!(filter(&options, &before).stdout, ran.stdout);
}

#[test]
fn provenance_of_cached_content_gives_the_time_of_its_first_retrieval() {
    const TEST: &str = "provenance_of_cached_content_gives_the_time_of_its_first_retrieval";
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let first = Raw::http(move |_, stream| {
        let head = match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4",
            _ => "304 Not Modified",
        };
        let body = if head.starts_with("200") { "kept" } else { "" };
        let _ = write!(
            stream,
            "HTTP/1.1 {head}\r\nETag: \"1\"\r\nCache-Control: max-age=20\r\nConnection: close\r\n\r\n{body}"
        );
    });
    let folder = tempfile::tempdir().unwrap();
    let options = format!(
        "{} --cache {} --provenance",
        open(&[first.address.port()]),
        folder.path().join("c").display()
    );
    let before = mail(&[reference(&first.url("/x"), "text/plain")]);
    let at = |ran: &[u8]| value(&read(ran)[0].1, "retrieved").unwrap().to_owned();
    let one = filter(&options, &before);
    let Some(two) = filter_at(TEST, "+30s", &options, &before) else {
        return;
    };
    // The server confirmed the stored response, which the row shows.
    assert_eq!(
        (first.count(), two.column("from")),
        (2, vec!["cache".to_owned()])
    );
    assert!(two.column("retrieved_at") > one.column("retrieved_at"));
    assert_eq!(at(&one.stdout), at(&two.stdout));
    assert_eq!(one.stdout, two.stdout);
}

#[test]
fn restored_attachment_keeps_its_original_provenance_field() {
    let server = server();
    let options = format!("{} --provenance", open(&[server.address.port()]));
    let picture = server.url("/big.gif");
    let part = reference(
        &picture,
        "image/gif\nContent-Disposition: attachment; filename=a.gif",
    );
    let ran = filter(&options, &mail(&[part]));
    assert_eq!(read(&ran.stdout).len(), 1);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.eml"), &ran.stdout).unwrap();
    for arguments in [
        &[
            "detach",
            "in.eml",
            "--store",
            "store",
            "--larger-than",
            "1",
            "--output",
            "out.eml",
        ][..],
        &[
            "restore", "out.eml", "--store", "store", "--output", "back.eml",
        ],
        &[
            "convert",
            "out.eml",
            "--store",
            "store",
            "--provenance",
            "--output",
            "again.eml",
        ],
    ] {
        let ran = embody_in(folder.path(), arguments);
        assert!(ran.status.success(), "{}", stderr(&ran));
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(read("out.eml") != ran.stdout);
    for name in ["back.eml", "again.eml"] {
        assert!(
            read(name) == ran.stdout,
            "{}",
            String::from_utf8_lossy(&read(name))
        );
    }
}

#[test]
fn message_that_is_one_reference_gets_one_provenance_field() {
    let server = server();
    let url = server.url("/x");
    let whole = format!(
        "Subject: x\nX-Embody-Source: forged\nContent-Type: message/external-body; access-type=URL;\n URL=\"{url}\"\n\nContent-Type: text/plain\n\n"
    );
    let options = format!("{} --provenance", open(&[server.address.port()]));
    let ran = filter(&options, whole.as_bytes());
    let said = read(&ran.stdout);
    assert_eq!(said.len(), 1, "{}", String::from_utf8_lossy(&ran.stdout));
    assert_eq!(said[0].0, format!("<{url}>"));
    filter(&options, &ran.stdout).gives(&ran.stdout);
    // The expected mails of other tests contain no such field.
    let message = filled(None, "text/plain", b"x");
    assert!(read(message.as_bytes()).is_empty());
}
