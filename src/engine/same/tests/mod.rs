//! Compares copies of mails, row by row of the table in docs/merge.md.

mod copies;
mod limits;
mod notes;
mod other_mails;

use base64::Engine as _;

use super::{CoverDifference, CutPlace, MailCopy, covers, plain};

const PDF: &[u8] = b"%PDF-1.4 a file of some bytes, and one more line of them\n\0\x01\x02";

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

const FIELDS: &str = "From: Ann B <ann@example.org>\nTo: dev@lists.example.org\nSubject: a test\n\
    Date: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\n";

const LIST: &str = "List-Id: <dev.lists.example.org>\n";

const HEADER: &str = "Content-Type: multipart/mixed; boundary=b\n";

fn attached(encoding: &str, body: &str) -> String {
    format!(
        "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: {encoding}\n\n{body}\n"
    )
}

fn parts(fields: &str, text: &str, file: &str) -> String {
    format!("{fields}{HEADER}\n--b\nContent-Type: text/plain\n\n{text}\n--b\n{file}--b--\n")
}

fn whole() -> String {
    parts(FIELDS, "hello\n", &attached("base64", &base64(PDF)))
}

fn text(body: &str) -> String {
    format!("{FIELDS}\n{body}")
}

/// Returns whether the second mail covers the first one, and whether the first one covers the second.
fn relation(one: &str, other: &str) -> [Result<(), CoverDifference>; 2] {
    let [one, other] = [one, other].map(|mail| plain(mail.as_bytes()));
    let places: Vec<CutPlace> = [&one, &other]
        .into_iter()
        .filter_map(|it| MailCopy::of(it, &[]).cut_at())
        .collect();
    let [one, other] = [one, other].map(|it| MailCopy::of(&it, &places));
    [covers(&other, &one), covers(&one, &other)]
}

/// Asserts that the two mails of each case are different mails, in both directions.
fn assert_others(cases: &[(&str, String, String)]) {
    for (what, one, other) in cases {
        assert_ne!(one, other, "{what}");
        let [there, back] = relation(one, other);
        assert!(
            there.is_err() && back.is_err(),
            "{what}: {there:?} {back:?}\n{one}\n{other}"
        );
    }
}

fn mixed(kind: &str, body: &str) -> String {
    format!("{FIELDS}Content-Type: multipart/{kind}; boundary=b\n\n{body}")
}

const LINE: &str = "________________________________________";
