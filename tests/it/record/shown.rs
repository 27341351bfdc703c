//! Programs of archives with a record, and with a mailbox that embody completed: Chromium shows pages from pywb, and mailbagit
//! packages the mailbox (docs/archives.md).

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::browser::{Pixel, chromium, page};
use crate::common::filter::{filter, open};
use crate::common::programs::{embody_in, program, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::warc::{records, replaying};

const COLOUR: Pixel = [20, 120, 220];
const SIDE: usize = 40;

fn picture() -> Vec<u8> {
    let mut octets = Vec::new();
    let side = u32::try_from(SIDE).unwrap();
    let mut encoder = png::Encoder::new(&mut octets, side, side);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer
        .write_image_data(&COLOUR.repeat(SIDE * SIDE))
        .unwrap();
    writer.finish().unwrap();
    octets
}

fn server() -> Raw {
    Raw::http(|_, stream| {
        let _ = stream.write_all(&ok("image/png", &picture()));
    })
}

fn letter(server: &Raw) -> String {
    format!(
        "From: a@example.org\nTo: b@example.org\nSubject: shown\nMessage-ID: <1@example.org>\n\
         Date: Sat, 3 May 2003 12:00:00 +0000\nMIME-Version: 1.0\nContent-Type: text/html\n\n<p>text</p><img src=\"{}\">\n",
        server.url("/a.png")
    )
}

#[test]
fn chromium_shows_a_recorded_picture_out_of_pywb() {
    const TEST: &str = "chromium_shows_a_recorded_picture_out_of_pywb";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.warc.gz");
    let options = format!(
        "{} --embed remote --record {}",
        open(&[server.address.port()]),
        file.display()
    );
    let ran = filter(&options, letter(&server).as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (Some(chromium), Some(records), Some(pywb)) = (
        chromium(TEST),
        records(TEST, &file),
        replaying(TEST, &[&file]),
    ) else {
        return;
    };
    let is_mail = |url: &&str| url.starts_with("http://mail.invalid/");
    let url = records
        .iter()
        .map(|record| record.url.as_str())
        .find(is_mail)
        .expect("a page");
    let asked = server.count();
    let shown = |url: &str| {
        let outer = format!(
            "<body style=\"margin:0\"><iframe width=390 height=400 src=\"http://127.0.0.1:{}/web/2099mp_/{url}\"></iframe>",
            pywb.port
        );
        let hosts = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
        page(&chromium, "html", url, outer.as_bytes(), hosts).count(COLOUR)
    };
    assert_eq!(shown(url), SIDE * SIDE);
    // As a control: a page that was not recorded is not shown.
    assert_eq!(shown("http://mail.invalid/another"), 0);
    assert_eq!(server.count(), asked, "the server was asked");
}

/// `.ci/peers` installs mailbagit and sets the variable. Its packages have 85 MB, so the test may be skipped elsewhere.
#[test]
fn mailbagit_packages_what_embody_completed() {
    if program("mailbagit").is_none() {
        let may_miss = std::env::var_os("EMBODY_REQUIRE_MAILBAGIT").is_none();
        assert!(may_miss, "there is no mailbagit");
        return println!("mailbagit: skipped, there is none");
    }
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let mbox = format!(
        "From a@example.org Sat May  3 12:00:00 2003\n{}\n",
        letter(&server)
    );
    fs::write(folder.path().join("accession.mbox"), mbox).unwrap();
    fs::create_dir(folder.path().join("whole")).unwrap();
    // The options are those in docs/archives.md.
    let options = "embed accession.mbox --output whole/accession.mbox --trackers blank --provenance --report whole/report.jsonl";
    let allowed = open(&[server.address.port()]);
    let arguments: Vec<&str> = options
        .split(' ')
        .chain(allowed.split_whitespace())
        .collect();
    let ran = embody_in(folder.path(), &arguments);
    assert!(ran.status.success(), "{}", stderr(&ran));
    let asked = server.count();
    let ran = |program: &str, arguments: &str| {
        let ran = Command::new(program)
            .args(arguments.split(' '))
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{program}: {ran:?}");
    };
    ran(
        "mailbagit",
        "whole -i mbox -d html txt -m bag --keep --companion-files",
    );
    ran("bagit.py", "--validate whole/bag");
    let data = folder.path().join("whole/bag/data");
    let is_picture = |file: &Path| fs::read(file).is_ok_and(|octets| octets == picture());
    let attachments = fs::read_dir(data.join("attachments/1")).unwrap();
    let pictures = attachments.flatten().filter(|it| is_picture(&it.path()));
    assert_eq!(pictures.count(), 1);
    let html = fs::read_to_string(data.join("html/accession/1.html")).unwrap();
    assert!(html.contains("<img src=\"cid:"), "{html}");
    assert!(!html.contains(&server.address.to_string()), "{html}");
    assert_eq!(server.count(), asked, "the server was asked");
}
