//! Rows and lines of output can be matched to mail, and their number is limited.

use std::fs;

use base64::Engine as _;

use crate::common::filter::filter;
use crate::common::mail::with_url;
use crate::common::programs::{embody, fed, stderr};
use crate::common::reports;
use crate::common::tnef::Tnef;

const MAIL: &str = "From: a@example.org\nMessage-ID:\n <one@example.org>\nSubject: =?utf-8?Q?gr=C3=BCn?=\n\
    MIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
    Content-Type: text/plain\n\n";

fn parsed(text: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(text).unwrap();
    let rows = text.lines().map(reports::object);
    rows.collect()
}

#[track_caller]
fn is_of(row: &serde_json::Value, source: &str, index: u64, id: Option<&str>) {
    assert_eq!(row["source"], source, "{row}");
    assert_eq!(row["index"], index, "{row}");
    assert_eq!(row["message_id"].as_str(), id, "{row}");
    assert!(
        row["message"].is_string() && row["outcome"].is_string(),
        "{row}"
    );
    // RFC 3339 in UTC: 2026-01-31T23:59:59Z.
    let time = row["time"].as_str().unwrap();
    assert_eq!(time.len(), 20, "{time}");
    assert!(time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    let shape: String = time
        .chars()
        .map(|symbol| if symbol.is_ascii_digit() { '0' } else { symbol })
        .collect();
    assert_eq!(shape, "0000-00-00T00:00:00Z");
}

#[test]
fn a_row_says_when_and_of_which_message_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let id = Some("<one@example.org>");

    let report = path("report");
    let filter = fed(
        embody().args(["filter", "--report", &report]),
        MAIL.as_bytes(),
    );
    assert!(filter.status.success());
    is_of(&parsed(&fs::read(&report).unwrap())[0], "-", 1, id);

    fs::write(path("a.eml"), MAIL).unwrap();
    let inspect = embody()
        .args(["inspect", "--json", &path("a.eml")])
        .output()
        .unwrap();
    is_of(&parsed(&inspect.stdout)[0], &path("a.eml"), 1, id);

    let nameless = MAIL.replace("Message-ID:\n <one@example.org>\n", "");
    let separator = "From a@b Sat Jan  1 00:00:00 2022\n";
    let mailbox = [separator, MAIL, "\n", separator, &nameless, "\n"].concat();
    fs::write(path("box"), mailbox).unwrap();
    let inspect = embody()
        .args(["inspect", "--json", &path("box")])
        .output()
        .unwrap();
    let rows = parsed(&inspect.stdout);
    is_of(&rows[0], &path("box"), 1, id);
    is_of(&rows[1], &path("box"), 2, None);
    fs::remove_file(&report).unwrap();
    let convert = embody()
        .args(["convert", "--in-place", "--report", &report, &path("box")])
        .output()
        .unwrap();
    assert!(convert.status.success());
    let rows = parsed(&fs::read(&report).unwrap());
    is_of(&rows[0], &path("box"), 1, id);
    is_of(&rows[1], &path("box"), 2, None);
    assert_eq!(rows[0]["time"], rows[1]["time"], "the start of the run");
}

#[test]
fn a_row_has_the_date_by_which_an_archive_is_asked() {
    for (fields, date) in [
        (
            "Date: Thu, 1 May 2003 12:00:00 +0200\n",
            Some("2003-05-01T10:00:00Z"),
        ),
        (
            "Date: Mon Apr  7 12:43:22 2003\n",
            Some("2003-04-07T12:43:22Z"),
        ),
        (
            "Date: 7 Apr 2003 12:43 MET DST (a comment)\n",
            Some("2003-04-07T12:43:00Z"),
        ),
        // The first Received field was added by the server of the recipient.
        (
            "Received: by mx; Thu, 1 May 2003 10:00:01 +0000\nReceived: by a; Wed, 1 May 2002 10:00:00 +0000\n\
             Date: Fri, 1 Jan 2100 00:00:00 +0000\n",
            Some("2003-05-01T10:00:01Z"),
        ),
        ("Date: yesterday\n", None),
        ("", None),
    ] {
        let mail = format!("{fields}{MAIL}");
        let output = fed(
            embody().args(["filter", "--report", "-", "--quiet"]),
            mail.as_bytes(),
        );
        let rows = parsed(&output.stderr);
        assert_eq!(rows[0]["date"].as_str(), date, "{fields}");
    }
}

#[test]
fn verbose_names_the_message_and_its_subject() {
    let described = "Message-ID <one@example.org>, Subject: gr\u{fc}n";
    let said =
        |options: &[&str]| stderr(&fed(embody().arg("filter").args(options), MAIL.as_bytes()));
    assert!(said(&["--verbose"]).starts_with(&format!("embody: {described}\n")));
    assert!(!said(&[]).contains("Subject"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.eml");
    fs::write(&file, MAIL).unwrap();
    let convert = embody()
        .args(["convert", "--in-place", "--dry-run", "--verbose"])
        .arg(&file)
        .output()
        .unwrap();
    let said = stderr(&convert);
    // With several messages, each is identified by its subject and Message-ID.
    let lines = [
        "embody: \"gr\u{fc}n\", Message-ID <one@example.org>\n",
        "embody: \"gr\u{fc}n\", part 1: would-expand",
    ];
    assert!(said.starts_with(&lines.concat()), "{said}");
}

#[test]
fn report_lines_beyond_one_screen_are_only_counted_without_verbose() {
    let part = "--b\nContent-Type: message/external-body; access-type=x\n\n\n";
    let mail = |parts: usize| {
        let parts = part.repeat(parts);
        format!("Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n")
    };
    let filter = |options: &[&str], parts: usize| {
        let mail = mail(parts);
        stderr(&fed(embody().arg("filter").args(options), mail.as_bytes()))
    };
    assert_eq!(filter(&[], 20).matches(": unchanged: ").count(), 20);
    let said = filter(&[], 25);
    assert_eq!(said.lines().count(), 20, "{said}");
    let last = said.lines().last().unwrap();
    assert_eq!(
        last,
        "embody: and 6 more: 6 unchanged; --verbose shows them"
    );
    assert_eq!(
        filter(&["--verbose"], 25).matches(": unchanged: ").count(),
        25
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.eml");
    fs::write(&file, mail(25)).unwrap();
    // A run over mailboxes prints totals, and names each reference only with --verbose.
    let convert = |options: &[&str]| {
        let mut command = embody();
        command
            .args(["convert", "--in-place"])
            .args(options)
            .arg(&file);
        stderr(&command.output().unwrap())
    };
    let said = convert(&[]);
    assert!(!said.contains(": unchanged: unknown-access-type"), "{said}");
    assert!(
        said.contains("25 could not be: 25 with an unknown access type."),
        "{said}"
    );
    assert!(said.contains("--verbose prints each reference"), "{said}");
    let said = convert(&["--verbose"]);
    assert_eq!(
        said.matches("embody: message 1, part ").count(),
        25,
        "{said}"
    );
}

#[test]
fn the_totals_of_inspect_are_those_of_its_rows() {
    let html = "--b\nContent-Base: http://h.example/a/\nContent-Type: text/html; charset=CHARSET\n\n<a href=\"x\">\n";
    let reference = |url: &str| {
        format!("--b\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\n\n")
    };
    let mail = [
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n",
        &reference("data:,x"),
        &reference("http://h.example/"),
        &html.replace("CHARSET", "utf-8"),
        &html.replace("CHARSET", "utf-16"),
        "--b--\n",
    ]
    .concat();
    let output = fed(embody().arg("inspect"), mail.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(
            "2 references: 1 would be followed, 1 would stay unchanged\n2 documents: 1 would be rewritten, 1 would stay unchanged\n"
        ),
        "{text}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.eml");
    fs::write(&file, mail).unwrap();
    let convert = embody()
        .args(["convert", "--in-place", "--dry-run"])
        .arg(&file)
        .output()
        .unwrap();
    let said = stderr(&convert);
    assert!(
        said.contains("1 attachment would be put into the mail. 1 would not be: "),
        "{said}"
    );
}

#[test]
fn of_a_repeated_option_the_last_wins_and_lists_add_up() {
    let mail = with_url("data:,hello", "Content-Type: text/plain\n");
    let filter = |options: &[&str]| {
        let output = fed(embody().arg("filter").args(options), &mail);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {output:?}");
        output.stdout != mail
    };
    assert!(filter(&["--max-body", "1", "--max-body", "1k"]));
    assert!(!filter(&["--max-body", "1k", "--max-body", "1"]));
    assert!(filter(&["--mark", "--mark", "--quiet", "--quiet"]));
    assert!(filter(&[
        "--allow-type",
        "image/*",
        "--allow-type",
        "text/*"
    ]));
    let output = embody()
        .args([
            "inspect",
            "--json",
            "--json",
            "--max-depth",
            "1",
            "--max-depth",
            "2",
            "/dev/null",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_ca_file_that_is_not_there_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.eml");
    fs::write(&file, "A: b\n\nnothing to do\n").unwrap();
    for (command, status) in [
        (&["filter"][..], 75),
        (&["inspect"], 1),
        (&["convert", "--in-place"], 1),
        (&["convert", "--in-place", "--dry-run"], 1),
    ] {
        for fetch in [&["--fetch", "https"][..], &[]] {
            let output = embody()
                .args(command)
                .args(fetch)
                .args(["--ca-file", "/nonexistent/ca.pem"])
                .arg(&file)
                .output()
                .unwrap();
            assert_eq!(
                output.status.code(),
                Some(status),
                "{command:?}: {output:?}"
            );
            assert!(output.stdout.is_empty());
            assert!(
                stderr(&output).contains("/nonexistent/ca.pem"),
                "{output:?}"
            );
        }
    }
}

#[test]
fn row_contains_the_decoded_name_of_the_attachment() {
    let tnef = Tnef::new().class("IPM.Note").file("a.txt", b"a").bytes();
    let winmail = base64::engine::general_purpose::STANDARD.encode(tnef);
    let mail = format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"https://www.example.org/1\"\n\n\
         Content-Type: application/pdf\nContent-Disposition: attachment;\n filename*=UTF-8''Pl%C3%A4ne.pdf\n\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"https://www.example.org/2\"\n\
         Content-Disposition: attachment; filename=\"outer.zip\"\n\nContent-Type: application/zip\n\n\
         --b\nContent-Type: message/external-body; access-type=URL; URL=\"https://www.example.org/3\"\n\n\
         Content-Type: text/plain\n\n\
         --b\nContent-Type: application/ms-tnef; name=\"winmail.dat\"\nContent-Transfer-Encoding: base64\n\n\
         {winmail}\n--b--\n"
    );
    let ran = filter("--follow winmail", mail.as_bytes());
    let mut names = ran.column("name");
    names.sort();
    assert_eq!(names, ["-", "Pläne.pdf", "outer.zip", "winmail.dat"]);
    let folder = tempfile::tempdir().unwrap();
    // The part is larger than the reference that replaces it.
    let large = base64::engine::general_purpose::STANDARD.encode([0; 6000]);
    let lines: Vec<&str> = large
        .as_bytes()
        .chunks(76)
        .map(|it| str::from_utf8(it).unwrap())
        .collect();
    let plain = format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n\
         --b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\
         Content-Disposition: attachment;\n filename=\"=?utf-8?Q?=C3=BC.pdf?=\"\n\n{}\n--b--\n",
        lines.join("\n")
    );
    let store = folder.path().join("store").display().to_string();
    let options = [
        "detach",
        "--base-url",
        "https://x.example/",
        "--larger-than",
        "1",
        "--store",
    ];
    let report = folder.path().join("report");
    let mut detach = embody();
    detach.args(options).arg(store).arg("--report").arg(&report);
    assert!(fed(&mut detach, plain.as_bytes()).status.success());
    assert_eq!(parsed(&fs::read(&report).unwrap())[0]["name"], "ü.pdf");
}
