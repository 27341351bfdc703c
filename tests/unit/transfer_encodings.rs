//! Content-Transfer-Encoding fields that cannot be right, on every kind of part, and base64 in several pieces. The
//! results are compared with Python's `email`.

use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::fetch::Canned;
use serde_json::Value;

use super::detach::there_and_back;
use super::embed::{policy, run};
use crate::engine::report::{Kind, Outcome, Row};
use crate::expand::detach::Stub;
use crate::mime::{self, ScanLimits, TransferEncoding};

/// Values that mean that the text is not encoded, or that mean nothing.
const IDENTITY: [&str; 29] = [
    "",
    ";",
    "(none)",
    "8bits",
    "8-bit",
    "8 bit",
    "8_bit",
    "\"8bit\"",
    "'8bit'",
    "8bit;",
    "8BITS",
    "7bits",
    "7-bit",
    "7 bit",
    "\"7bit\"",
    "7bit;",
    "7-bits",
    "utf-8",
    "UTF8",
    "none",
    "None",
    "us-ascii",
    "iso-8859-1",
    "identity",
    "text/plain",
    "8bit/7bit",
    "plain",
    "x-unknown",
    "binary;",
];

/// Values that mean base64 and quoted-printable.
const BASE64: [&str; 7] = [
    "\"base64\"",
    "'base64'",
    "base-64",
    "base_64",
    "Base 64",
    "x-base64",
    "<base64>",
];
const QUOTED_PRINTABLE: [&str; 6] = [
    "\"quoted-printable\"",
    "quoted_printable",
    "quotedprintable",
    "Quoted Printable",
    "x-quoted-printable",
    "'Quoted-Printable'",
];
/// Correct values, which are wrong for a multipart or a message.
const RIGHT: [&str; 4] = [
    "base64",
    "quoted-printable",
    "BASE64",
    "Quoted-Printable (x)",
];

const GIF: &str = "R0lGODlhCQAJAIAAAAAAAP///ywAAAAAAQABAAACAkQBADs=";

fn document() -> String {
    format!("<html><body><p>caf\u{e9}</p><img src=\"data:image/gif;base64,{GIF}\"></body></html>\n")
}

/// Returns the types of all parts, and the text of the first HTML part, as Python reads them.
fn python(mails: &[Vec<u8>]) -> Option<Vec<(Vec<String>, String)>> {
    let script = "import email, json, sys\nfor line in json.load(sys.stdin):\n    mail = email.message_from_bytes(bytes(line))\n    types = [part.get_content_type() for part in mail.walk()]\n    html = [part.get_payload(decode=True) for part in mail.walk() if part.get_content_type() == 'text/html']\n    print(json.dumps([types, (html or [b''])[0].decode('utf-8', 'replace')]))";
    let started = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = started else {
        assert!(
            std::env::var_os("EMBODY_REQUIRE_ALL").is_none(),
            "python3 is required"
        );
        println!("skipped: no python3");
        return None;
    };
    serde_json::to_writer(python.stdin.take().unwrap(), mails).unwrap();
    let output = python.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let read = lines.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        let types = value[0]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect();
        (types, value[1].as_str().unwrap().to_owned())
    });
    Some(read.collect())
}

fn types(mail: &[u8]) -> Vec<String> {
    let tree = mime::scan(mail, &ScanLimits::default());
    tree.ids().map(|id| tree.part(id).essence.clone()).collect()
}

/// Returns a mail for each composite type, with the field, and with HTML inside.
fn composites(value: &str) -> Vec<Vec<u8>> {
    let html = format!(
        "Content-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{}",
        document()
    );
    let field = format!("Content-Transfer-Encoding: {value}\n");
    let mixed = format!(
        "Content-Type: multipart/mixed; boundary=b\n{field}\npreamble\n--b\nContent-Type: text/plain\n\nhello\n--b\n{html}\n--b--\n"
    );
    let alternative = format!(
        "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=\"b\"\n{field}\n--b\n{html}\n--b--\n\n--o--\n"
    );
    let message = format!(
        "Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: message/rfc822\n{field}\nSubject: inner\nMIME-Version: 1.0\n{html}\n--o--\n"
    );
    let nested = format!("Content-Type: message/rfc822\n{field}\nFrom: a@example.org\n{mixed}");
    [mixed, alternative, message, nested]
        .iter()
        .map(|text| format!("From: a@example.org\nMIME-Version: 1.0\n{text}").into_bytes())
        .collect()
}

fn all_values() -> impl Iterator<Item = &'static str> {
    let values = [&IDENTITY[..], &BASE64, &QUOTED_PRINTABLE, &RIGHT];
    values.into_iter().flatten().copied()
}

fn embedded(mail: &[u8]) -> (Vec<u8>, usize) {
    let (output, report) = run(policy(), &Canned::new(), mail);
    let is_embedded = |row: &&Row| row.kind == Kind::Embed && row.outcome == Outcome::Expanded;
    let count = report.rows.iter().filter(is_embedded).count();
    (output, count)
}

#[test]
fn false_encoding_on_a_composite_is_ignored_as_python_does() {
    let mails: Vec<Vec<u8>> = all_values().flat_map(composites).collect();
    assert_eq!(mails.len(), 46 * 4);
    let Some(read) = python(&mails) else { return };
    for (mail, (theirs, _)) in mails.iter().zip(read) {
        assert_eq!(types(mail), theirs, "{}", mail.escape_ascii());
    }
}

#[test]
fn picture_inside_a_composite_with_a_false_encoding_is_embedded_for_all_readers() {
    let mails: Vec<Vec<u8>> = all_values().flat_map(composites).collect();
    let mut outputs = Vec::new();
    for mail in &mails {
        let (output, count) = embedded(mail);
        assert_eq!(count, 1, "{}", mail.escape_ascii());
        outputs.push(output);
    }
    let Some(read) = python(&outputs) else { return };
    for (output, (theirs, html)) in outputs.iter().zip(read) {
        assert_eq!(types(output), theirs, "{}", output.escape_ascii());
        assert!(theirs.iter().any(|it| it == "image/gif"), "{theirs:?}");
        assert!(html.contains("src=\"cid:"), "{html}");
    }
}

#[test]
fn text_with_a_false_encoding_is_read_and_its_field_corrected() {
    let text = |value: &str, body: &str| {
        format!("From: a@example.org\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: {value}\n\n{body}").into_bytes()
    };
    let raw = document();
    let lines = |text: &str| {
        let symbols = STANDARD.encode(text);
        let lines = symbols
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line) + "\n");
        lines.collect::<String>()
    };
    let printable = raw.replace('=', "=3D").replace('\u{e9}', "=C3=A9");
    let mut mails = Vec::new();
    for value in IDENTITY {
        mails.push(text(value, &raw));
    }
    for value in BASE64 {
        mails.push(text(value, &lines(&raw)));
        // The body is not in the declared encoding.
        mails.push(text(value, &raw));
    }
    for value in QUOTED_PRINTABLE {
        mails.push(text(value, &printable));
        mails.push(text(value, &raw));
    }
    let mut outputs = Vec::new();
    for mail in &mails {
        let (output, count) = embedded(mail);
        assert_eq!(count, 1, "{}", mail.escape_ascii());
        outputs.push(output);
    }
    let Some(read) = python(&outputs) else { return };
    for (output, (_, html)) in outputs.iter().zip(read) {
        let is_read = html.contains("src=\"cid:") && html.contains("caf\u{e9}");
        assert!(is_read, "{html}\n{}", output.escape_ascii());
    }
}

#[test]
fn text_in_uuencode_yenc_or_binhex_is_left_unchanged() {
    for value in ["x-uuencode", "uuencode", "X-UUE", "yenc", "mac-binhex40"] {
        let mail = format!(
            "From: a@example.org\nContent-Type: text/html\nContent-Transfer-Encoding: {value}\n\n{}",
            document()
        );
        let (output, report) = run(policy(), &Canned::new(), mail.as_bytes());
        assert_eq!(output, mail.as_bytes());
        for row in &report.rows {
            assert_eq!(row.outcome, Outcome::Left);
            let detail = row.detail.to_string();
            assert!(detail.contains(&format!("'{value}'")), "{detail}");
        }
    }
}

#[test]
fn attachment_in_a_part_with_a_false_encoding_comes_back_byte_for_byte() {
    let octets: Vec<u8> = (0..3000_u32).map(|at| (at * at % 251) as u8).collect();
    let symbols = STANDARD.encode(&octets);
    let lines: String = symbols
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line) + "\n")
        .collect();
    for value in all_values() {
        let around = format!(
            "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\nContent-Transfer-Encoding: {value}\n\n--b\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{lines}--b--\n"
        );
        // The field is on the part itself, whose body is base64 or text.
        let own = |essence: &str, body: &str| {
            format!(
                "From: a@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: {essence}; name=a\nContent-Disposition: attachment\nContent-Transfer-Encoding: {value}\n\n{body}--b--\n"
            )
        };
        let text = "a line of text\n".repeat(99);
        let mails = [
            around,
            own("application/pdf", &lines),
            own("text/csv", &text),
            own("text/csv", &lines),
        ];
        for (number, mail) in mails.iter().enumerate() {
            for form in [Stub::ExternalBody, Stub::Thunderbird] {
                let (detached, report, restored) = there_and_back(mail.as_bytes(), form);
                assert_eq!(
                    restored.escape_ascii().to_string(),
                    mail.as_bytes().escape_ascii().to_string()
                );
                let left = report
                    .rows
                    .iter()
                    .filter(|row| row.outcome == Outcome::Detached);
                if number == 0 {
                    assert_eq!(left.count(), 1, "{value}");
                    assert!(detached.len() < mail.len() / 2);
                }
            }
        }
    }
}

fn html_in(body: &str) -> Vec<u8> {
    format!("From: a@example.org\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: base64\n\n{body}").into_bytes()
}

#[test]
fn base64_with_padding_in_the_middle_is_decoded_piece_by_piece() {
    let document = document();
    let footer = STANDARD.encode("<hr>a mailing list\n");
    for blanks in ["", "\n", "\n\n"] {
        let whole = format!("{document}{blanks}");
        let first = STANDARD.encode(&whole);
        let folded: String = first
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line) + "\n")
            .collect();
        let each: String = whole
            .as_bytes()
            .chunks(55)
            .map(|line| STANDARD.encode(line) + "\n")
            .collect();
        for body in [
            format!("{folded}{footer}\n"),
            format!("{first}{footer}\n"),
            format!("{each}{footer}\n"),
        ] {
            let decoded = TransferEncoding::Base64.decode(body.as_bytes()).unwrap();
            let expected = format!("{whole}<hr>a mailing list\n");
            assert_eq!(decoded.as_ref(), expected.as_bytes(), "{body}");
            let (output, count) = embedded(&html_in(&body));
            assert_eq!(count, 1, "{body}");
            let Some(read) = python(&[output]) else {
                return;
            };
            let (_, html) = &read[0];
            assert!(
                html.contains("src=\"cid:") && html.ends_with("a mailing list\n"),
                "{html}"
            );
        }
    }
}

/// Python stops decoding at the first padding.
#[test]
fn change_after_the_first_piece_of_base64_is_seen_by_readers_that_stop_at_padding() {
    let front = STANDARD.encode("<html><body><p>x</p");
    assert!(front.ends_with('='));
    let picture = format!("><img src=\"data:image/gif;base64,{GIF}\"></body></html>");
    let body = format!("{front}\n{}\n", STANDARD.encode(picture));
    let (output, count) = embedded(&html_in(&body));
    assert_eq!(count, 1);
    let Some(read) = python(&[output]) else {
        return;
    };
    let (_, html) = &read[0];
    assert!(html.contains("src=\"cid:"), "{html}");
}

#[test]
fn footer_in_plain_text_after_base64_stays_as_it_is() {
    let document = document();
    for footer in [
        "_______________________________________________\nlist mailing list\nlist@example.org\n",
        "_______________________________________________\nlist mailing lists\nlist@example.org\nhttps://lists.example.org/x\n",
        "-- \nYou are on a list\n",
        "\n\nTo leave, write to leave@example.org.\n",
        "list@example.org\n",
    ] {
        for padding in 0..3 {
            let text = format!("{document}{}", " ".repeat(padding));
            let symbols = STANDARD.encode(&text);
            let folded: String = symbols
                .as_bytes()
                .chunks(76)
                .map(|line| String::from_utf8_lossy(line) + "\n")
                .collect();
            let body = format!("{folded}{footer}");
            let decoded = TransferEncoding::Base64.decode(body.as_bytes()).unwrap();
            assert_eq!(decoded.as_ref(), text.as_bytes(), "{footer}");
            let (output, count) = embedded(&html_in(&body));
            assert_eq!(count, 1, "{footer}");
            let output = String::from_utf8(output).unwrap();
            assert!(output.contains(&format!("\n{footer}")), "{output}");
        }
    }
}

#[test]
fn base64_that_is_cut_within_a_group_is_damaged() {
    for body in ["TWFuT", "TWFu\nTWFuT\n", "T=Q=", "TWFuTQ==\nT\n"] {
        assert_eq!(
            TransferEncoding::Base64.decode(body.as_bytes()),
            None,
            "{body}"
        );
    }
    for (body, text) in [
        ("TWFuTQ", "ManM"),
        ("TWFu\nTQ", "ManM"),
        ("TQ=", "M"),
        ("TQ==TQ==", "MM"),
        ("====TQ", "M"),
    ] {
        let decoded = TransferEncoding::Base64.decode(body.as_bytes());
        assert_eq!(decoded.as_deref(), Some(text.as_bytes()), "{body}");
    }
}

#[test]
fn padded_base64_with_a_footer_is_not_detached_or_comes_back() {
    let octets: Vec<u8> = (0..3000_u32).map(|at| (at * 7 % 253) as u8).collect();
    let each: String = octets
        .chunks(56)
        .map(|line| STANDARD.encode(line) + "\n")
        .collect();
    for footer in ["", "PGhyPmxpc3Q=\n", "_____\nlist mailing list\n"] {
        let mail = format!(
            "From: a@example.org\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: application/pdf\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{each}{footer}--b--\n"
        );
        let (_, _, restored) = there_and_back(mail.as_bytes(), Stub::ExternalBody);
        assert_eq!(restored, mail.as_bytes());
    }
}
