//! Which mail used which responses: the text and the metadata of a mail are in the record, pywb replays its page, and wacz
//! creates a WACZ with a page for each mail.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::filter::{filter, open};
use crate::common::mail_system::MailSystem;
use crate::common::milter::Milter;
use crate::common::mta::{House, eventually};
use crate::common::programs::{embody, has_python, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::warc::{Record, check, records, replayed, replaying};

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

fn server() -> Raw {
    Raw::http(|path, stream| {
        let picture = [GIF, path.as_bytes()].concat();
        let _ = stream.write_all(&ok("image/gif", &picture));
    })
}

fn letter(server: &Raw, number: usize) -> String {
    let url = server.url(&format!("/{number}.gif"));
    format!(
        "Message-ID: <{number}@example.org>\nDate: Sat, 3 May 2003 12:00:{number:02} +0000\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe_{number}?=\n\
         MIME-Version: 1.0\nContent-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
         <p>Gr=FC=DFe</p><img src=3D\"{url}\" width=3D9 height=3D9>\n"
    )
}

fn mails(found: &[Record], kind: &str) -> Vec<Record> {
    let of_mails =
        |record: &&Record| record.kind == kind && record.url.starts_with("http://mail.invalid/");
    found.iter().filter(of_mails).cloned().collect()
}

#[test]
fn mail_with_retrievals_is_recorded_as_a_page_with_its_resources() {
    const TEST: &str = "mail_with_retrievals_is_recorded_as_a_page_with_its_resources";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.warc.gz");
    let options = format!(
        "{} --embed remote --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let ran = filter(&options, letter(&server, 1).as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // A mail without retrievals adds nothing to the record.
    let length = fs::metadata(&file).unwrap().len();
    filter(
        &options,
        b"Content-Type: text/html\n\n<p>no picture, https://a.example/</p><img src=x.gif>\n",
    );
    assert_eq!(fs::metadata(&file).unwrap().len(), length);
    let Some(found) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let pages = mails(&found, "resource");
    assert_eq!(pages.len(), 1);
    assert!(pages[0].url.ends_with("/1.html"), "{}", pages[0].url);
    assert_eq!(
        pages[0].value("Content-Type"),
        Some("text/html; charset=iso-8859-1")
    );
    assert!(pages[0].block.starts_with(b"<p>Gr\xfc\xdfe</p>"));
    let metadata = mails(&found, "metadata");
    let said = metadata[0].text();
    for line in [
        "message-id: <1@example.org>\r\n",
        "date: 2003-05-03T12:00:01Z\r\n",
        "subject: Grüße 1\r\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let picture = found
        .iter()
        .find(|record| record.kind == "response")
        .unwrap();
    let together = metadata[0].values("WARC-Concurrent-To");
    assert_eq!(together, [picture.id(), pages[0].id()]);
    let named = ran.column("record").join(" ");
    assert!(
        named.contains(picture.id().trim_matches(['<', '>'])),
        "{named}"
    );
    let Some(pywb) = replaying(TEST, &[&file]) else {
        return;
    };
    let urls = [pages[0].url.clone(), server.url("/1.gif")];
    let bodies = replayed(&pywb, &urls);
    assert_eq!(bodies[0], (200, pages[0].block.clone()));
    assert_eq!(bodies[1], (200, [GIF, b"/1.gif"].concat()));
}

#[test]
fn mail_text_cannot_inject_a_header_field_into_the_record() {
    const TEST: &str = "mail_text_cannot_inject_a_header_field_into_the_record";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.warc.gz");
    let letter = letter(&server, 1)
        .replace(
            "=?utf-8?q?Gr=C3=BC=C3=9Fe_1?=",
            "=?utf-8?q?a=0D=0Asha256:_0=0D=0A=0D=0AWARC/1.1?=",
        )
        .replace("charset=iso-8859-1", "charset=\"x\\\r y: z\"")
        .replace("/1.gif", "/1.gif?%0d%0aWARC-Type:%20warcinfo");
    let options = format!(
        "{} --embed remote --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let ran = filter(&options, letter.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let Some(found) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let kinds: Vec<&str> = found.iter().map(|record| record.kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["warcinfo", "response", "request", "resource", "metadata"]
    );
    let said = found[4].text();
    assert!(
        said.contains("subject: a  sha256: 0    WARC/1.1\r\n"),
        "{said}"
    );
    assert_eq!(found[3].value("Content-Type"), Some("text/html"));
}

/// Returns the script in docs/record.md.
fn recipe() -> String {
    let page = include_str!("../../../docs/record.md");
    let (_, behind) = page.split_once("```text\nimport json").unwrap();
    format!("import json{}", behind.split_once("```").unwrap().0)
}

#[test]
fn wacz_makes_a_page_of_each_mail() {
    const TEST: &str = "wacz_makes_a_page_of_each_mail";
    if !has_python(TEST, "wacz.main", "wacz") {
        return;
    }
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let mbox: String = (1..=5)
        .map(|number| {
            format!(
                "From a@example.org Sat Jan  3 01:05:34 1996\n{}\n",
                letter(&server, number)
            )
        })
        .collect();
    fs::write(folder.path().join("in.mbox"), mbox).unwrap();
    let ran = embody()
        .current_dir(folder.path())
        .args([
            "convert",
            "in.mbox",
            "--output",
            "out.mbox",
            "--embed",
            "remote",
            "--record",
            "a.warc.gz",
        ])
        .args(open(&[server.address.port()]).split_whitespace())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    let python = |script: &str, arguments: &[&str]| {
        let ran = Command::new("python3")
            .current_dir(folder.path())
            .args(["-c", script])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    let pages = python(&recipe(), &["a.warc.gz"]);
    fs::write(folder.path().join("pages.jsonl"), &pages).unwrap();
    let wacz = "import sys; from wacz.main import main; sys.exit(main(sys.argv[1:]))";
    python(
        wacz,
        &[
            "create",
            "-c",
            "-p",
            "pages.jsonl",
            "-o",
            "a.wacz",
            "a.warc.gz",
        ],
    );
    python(wacz, &["validate", "-f", "a.wacz"]);
    let inside = "import sys, zipfile; sys.stdout.write(zipfile.ZipFile('a.wacz').read('pages/pages.jsonl').decode())";
    let listed = python(inside, &[]);
    let mut lines: Vec<Value> = listed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 6, "{listed}");
    // Mails are recorded in the order in which they were completed.
    lines.sort_by_key(|page| page["ts"].as_str().map(str::to_owned));
    for (number, page) in (1..).zip(&lines[1..]) {
        assert_eq!(page["title"], format!("Grüße {number}"));
        assert_eq!(page["ts"], format!("2003-05-03T12:00:0{number}Z"));
    }
}

#[test]
fn a_milter_records_what_each_mail_used_and_answers_whatever_becomes_of_the_record() {
    const TEST: &str =
        "a_milter_records_what_each_mail_used_and_answers_whatever_becomes_of_the_record";
    let server = server();
    let house = House::new();
    let file = house.path("a.warc.gz");
    let line = format!(
        "{} --embed remote --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let options: Vec<&str> = line.split(' ').collect();
    let listen = format!("unix:{}", house.text("milter.sock"));
    let milter = Milter::start(&house, &listen, &options);
    let mut mail_system = MailSystem::unix(&house.path("milter.sock"));
    mail_system.negotiate();
    let is_embedded = |became: Vec<u8>| memchr::memmem::find(&became, b"\"cid:").is_some();
    for number in 1..=3 {
        let letter = letter(&server, number);
        assert!(is_embedded(
            mail_system.filter("4queue", letter.as_bytes()).message()
        ));
    }
    eventually(60, "the last mail is recorded", || {
        records(TEST, &file).is_none_or(|found| mails(&found, "metadata").len() == 3)
    });
    if file.exists() && records(TEST, &file).is_some() {
        check(&file);
    }
    // The file was truncated during the run: mail is still delivered, and the error is reported once.
    let cut = fs::OpenOptions::new().write(true).open(&file).unwrap();
    cut.set_len(fs::metadata(&file).unwrap().len() - 5).unwrap();
    for number in 4..=6 {
        let letter = letter(&server, number);
        assert!(is_embedded(
            mail_system.filter("4queue", letter.as_bytes()).message()
        ));
    }
    eventually(60, "it is said", || milter.log().contains("is incomplete"));
    assert_eq!(
        milter.log().matches("is incomplete").count(),
        1,
        "{}",
        milter.log()
    );
}
