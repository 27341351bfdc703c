//! The survey counts a picture once for each message that displays it, as `embed` does, and says of packed parts that they are
//! in the mail.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::programs::{embody_in, stderr};
use crate::common::reports;
use crate::common::tnef::usual;

const PICTURES: &str = "<div style=\"background: url(https://a.example/h.png)\"><img src=\"https://a.example/h.png\">\
    <img src=\"https://a.example/h.png#x\"><img src=\"HTTPS://A.example/h.png\"></div>\
    <img src=\"https://a.example/t.gif\" width=1 height=1><img src=\"https://a.example/t.gif\" width=1 height=1>\
    <img src=\"https://b.example/m.png\" width=1 height=1><img src=\"https://b.example/m.png\" width=99 height=99>\
    <img srcset=\"https://a.example/s1.png 1x, https://a.example/s2.png 2x\" src=\"https://a.example/s1.png\">\
    <img src=\"cid:lost@x\"><img src=\"cid:lost@x\">";

/// Returns the last line of `inspect --json`.
fn survey(folder: &Path, arguments: &[&str]) -> Value {
    let output = embody_in(folder, &[&["inspect", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = reports::objects(&output.stdout);
    let last = lines.last().expect("the survey");
    assert_eq!(last["kind"], "survey");
    last["survey"].clone()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = embody_in(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
}

#[test]
fn picture_in_several_places_of_a_message_counts_once() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let one = format!("Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n{PICTURES}\n");
    let document = format!("--b\nContent-Type: text/html\n\n{PICTURES}\n");
    let two = format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{document}{document}--b--\n"
    );
    for (name, mail) in [("one.eml", &one), ("two.eml", &two)] {
        fs::write(at.join(name), mail).unwrap();
        let options = [
            "--by", "host", "--embed", "remote", "--fetch", "https", name,
        ];
        let counts = survey(at, &options);
        let pictures = &counts["pictures"];
        let numbers = ["remote", "trackers", "missing"].map(|it| pictures[it].as_u64());
        assert_eq!(numbers, [Some(4), Some(1), Some(1)], "{name}: {pictures}");
        assert_eq!(pictures["hosts"]["a.example"], 3, "{name}: {pictures}");
        assert_eq!(pictures["hosts"]["b.example"], 1, "{name}: {pictures}");
        assert_eq!(counts["trackers"]["companies"]["a.example"], 1, "{name}");
        let embed = &counts["embed"];
        let foreseen = ["remote", "distinct", "trackers"].map(|it| embed[it].as_u64());
        assert_eq!(foreseen, [Some(4), Some(4), Some(1)], "{name}: {embed}");
        let text = printed(at, &["inspect", name]);
        assert!(
            text.contains("\n4 pictures in this mail are only on the web.\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "\npictures     4 on 2 servers (trackers are not counted here), 1 missing"
            ),
            "{text}"
        );
        let plan = printed(at, &["embed", "--dry-run", name]);
        assert!(
            plan.contains("4 pictures would be retrieved; trackers: 1;"),
            "{plan}"
        );
        assert!(
            plan.contains("1 tracking picture would not be touched."),
            "{plan}"
        );
    }
    // Two messages display the same picture, so each of them needs it.
    let mbox = format!("From a@b Sat Jan  3 01:05:34 1996\n{one}\n").repeat(2);
    fs::write(at.join("both.mbox"), mbox).unwrap();
    let both = survey(at, &["--embed", "remote", "--fetch", "https", "both.mbox"]);
    assert_eq!(both["pictures"]["remote"], 8);
    assert_eq!(
        (&both["embed"]["remote"], &both["embed"]["distinct"]),
        (&8.into(), &4.into())
    );
}

#[test]
fn json_of_one_message_ends_with_the_survey() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let mail = format!("Subject: x\nMIME-Version: 1.0\nContent-Type: text/html\n\n{PICTURES}\n");
    fs::write(at.join("one.eml"), &mail).unwrap();
    fs::write(at.join("two.eml"), &mail).unwrap();
    for (sources, messages) in [(&["one.eml"][..], 1), (&["one.eml", "two.eml"], 2)] {
        let counts = survey(at, sources);
        assert_eq!(counts["messages"], messages);
        assert_eq!(counts["files"]["read"], messages, "{counts}");
        assert_eq!(counts["pictures"]["remote"], 4 * messages);
    }
}

fn with_winmail(tnef: &[u8]) -> Vec<u8> {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(tnef);
    let mut mail = b"Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nx\n--b\n\
        Content-Type: application/ms-tnef; name=\"winmail.dat\"\nContent-Transfer-Encoding: base64\n\
        Content-Disposition: attachment; filename=\"winmail.dat\"\n\n"
        .to_vec();
    for line in text.as_bytes().chunks(76) {
        mail.extend_from_slice(line);
        mail.push(b'\n');
    }
    mail.extend_from_slice(b"--b--\n");
    mail
}

#[test]
fn winmail_dat_is_in_the_mail_and_needs_no_server() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("in.eml"), with_winmail(&usual())).unwrap();
    let text = printed(at, &["inspect", "in.eml"]);
    for wrong in [
        "not in this mail",
        "not in the mail",
        "servers",
        "missing  ",
    ] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    for right in [
        "1 part of this mail is in a form that most mail programs cannot open.",
        "\npacked       1 winmail.dat of Outlook, which most mail programs cannot open (embody convert",
        "Next step: open what most mail programs cannot open\n",
    ] {
        assert!(text.contains(right), "{right}: {text}");
    }
    assert_eq!(survey(at, &["in.eml"])["missing"][0]["way"], "packed");
    let page = at.join("page.html");
    printed(at, &["inspect", "--html", page.to_str().unwrap(), "in.eml"]);
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("Parts that most mail programs cannot open"),
        "{html}"
    );
    assert!(!html.contains("if the servers still have"), "{html}");
    // The file is written as it is, and a line says so.
    let saved = printed(at, &["inspect", "--save-attachments", "files", "in.eml"]);
    assert!(
        saved.contains("1 file is in an Outlook format, such as winmail.dat, that most programs cannot open; embody convert MAILBOX --output NEW opens it"),
        "{saved}"
    );
    let written = fs::read_dir(at.join("files"))
        .unwrap()
        .map(|it| it.unwrap().path());
    let contents: Vec<Vec<u8>> = written.map(|it| fs::read(it).unwrap()).collect();
    assert!(contents.contains(&usual()), "{contents:?}");
}

#[test]
fn winmail_dat_that_embody_cannot_open_is_not_called_missing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // A wrong checksum.
    let damaged = [&usual()[..6], b"\x01\x06\x90\x08\0\x04\0\0\0\0\0\0\x01\0"].concat();
    fs::write(at.join("cut.eml"), with_winmail(&damaged)).unwrap();
    assert_eq!(survey(at, &["cut.eml"])["missing"][0]["way"], "unopened");
    let text = printed(at, &["inspect", "cut.eml"]);
    assert!(text.contains("(embody cannot open them)"), "{text}");
    assert!(
        !text.contains("not in this mail") && !text.contains("come back"),
        "{text}"
    );
}

#[test]
fn content_of_a_signed_part_is_neither_called_lost_nor_recovered() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for (name, url) in [
        ("data.eml", "data:text/plain;base64,aGk="),
        ("web.eml", "https://www.example.org/minutes.txt"),
    ] {
        let mail = format!(
            "From: a@b\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/signed; boundary=s; \
             protocol=\"application/pgp-signature\"\n\n--s\nContent-Type: message/external-body; access-type=URL; \
             URL=\"{url}\"\n\nContent-Type: text/plain\n\n--s\nContent-Type: application/pgp-signature\n\nx\n--s--\n"
        );
        fs::write(at.join(name), mail).unwrap();
        assert_eq!(survey(at, &[name])["missing"][0]["way"], "protected");
        let text = printed(at, &["inspect", name]);
        assert!(
            text.contains("--signed rewrite changes such parts"),
            "{text}"
        );
        assert!(
            !text.contains("come back") && !text.contains("embody recover"),
            "{text}"
        );
    }
}
