//! Compares the prefilter with the real processing: documents in every encoding and in all kinds of places, some with a
//! base, between lines that look like boundaries and fields but are not.

use base64_simd::STANDARD;
use embody::Policy;
use embody::fetch::NoFetch;
use embody::policy::Embed;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::common::mail::expander;

/// Generates the text of a document.
fn text() -> impl Strategy<Value = String> {
    let document = prop_oneof![
        3 => Just("<base href=http://h/><a href=x>"),
        1 => Just("<BaSe href=http://h/a/>\n<a href=x>"),
        3 => Just("<p><a href=x>y</a>"),
        1 => Just("<basefont><a href=x>"),
    ];
    (0_usize..7, document, 0_usize..60).prop_map(|(before, document, behind)| {
        format!(
            "{}{document}{}\n",
            "x".repeat(before),
            " y".repeat(behind / 2)
        )
    })
}

fn escaped(text: &str, every: usize) -> String {
    let octets = text.bytes().enumerate();
    octets
        .map(|(place, byte)| match (place + 1) % every {
            0 => format!("={byte:02x}"),
            1 if byte == b'a' => "=\na".to_owned(),
            _ if byte == b'=' => "=3D".to_owned(),
            _ => char::from(byte).to_string(),
        })
        .collect()
}

/// Returns the lines of a base64 body, with characters that are ignored in it.
fn letters(text: &str, columns: usize, noise: &str) -> String {
    let letters = STANDARD.encode_to_string(text);
    let lines = letters.as_bytes().chunks(columns);
    lines
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)))
        .enumerate()
        .map(|(number, line)| match number {
            1 => line + noise,
            _ => line,
        })
        .collect()
}

/// Generates the header fields and the body of a document.
fn document() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "text/html",
        "text/html",
        "TEXT/ HTML",
        "text/html; charset=utf-16",
        "text/html;\n charset=iso-8859-1",
        "application/xhtml+xml",
        "text/css",
        "text/plain",
    ]);
    let between = prop::sample::select(vec![
        "",
        "",
        "",
        "X: y\n",
        " z\n",
        "no field\n",
        "--a\n",
        "--c: d\n",
    ]);
    let columns = prop::sample::select(vec![76, 7, 1, 5, 200]);
    let noise = prop::sample::select(vec!["", "", " ", "--a\n", "-\n\n", "=", "\u{e9}", "\n"]);
    let mode = 0_usize..7;
    (text(), kind, between, columns, noise, mode, 2_usize..9).prop_map(
        |(text, kind, between, columns, noise, mode, every)| {
            let (encoding, body) = match mode {
                0 => ("", text),
                1 => ("Quoted-Printable", escaped(&text, every)),
                2 => ("", letters(&text, columns, noise)),
                3 => ("(c)BASE64 ", letters(&text, columns, noise)),
                _ => ("base64", letters(&text, columns, noise)),
            };
            let encoding = match encoding {
                "" => String::new(),
                encoding => format!("Content-Transfer-Encoding: {encoding}\n"),
            };
            let kind = format!("Content-Type: {kind}\n");
            let fields = match every % 2 {
                0 => [kind.as_str(), between, &encoding],
                _ => [encoding.as_str(), between, &kind],
            };
            format!("{}\n{body}", fields.concat())
        },
    )
}

/// Generates text around parts that does not belong to any part.
fn stray() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "",
        "",
        "\n",
        "text\n",
        "--a\n",
        "--a\nContent-Type: text/html\n",
        "--b x\n",
        "--\n",
        "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n",
        "--b\nContent-Type: text/plain\n\nbase64\n",
    ])
}

fn entity() -> impl Strategy<Value = String> {
    document().prop_recursive(3, 12, 3, |inner| {
        let boundary = prop::sample::select(vec!["b", "a", "b--", "c: d", "b:", "-", "hc2U"]);
        let part = (stray(), inner.clone(), stray());
        let several = (boundary, prop::collection::vec(part, 1..3)).prop_map(|(boundary, parts)| {
            let parts: String = parts
                .into_iter()
                .map(|(before, part, behind)| format!("{before}--{boundary}\n{part}{behind}"))
                .collect();
            format!("Content-Type: multipart/mixed; boundary=\"{boundary}\"\n\n{parts}--{boundary}--\n")
        });
        let message = inner.prop_map(|inner| {
            format!("Content-Type: message/rfc822\n\nSubject: y\nMIME-Version: 1.0\n{inner}")
        });
        prop_oneof![4 => several, 1 => message]
    })
}

fn message() -> impl Strategy<Value = String> {
    (entity(), stray(), any::<bool>()).prop_map(|(entity, behind, crlf)| {
        let message = format!("From: a\nMIME-Version: 1.0\n{entity}{behind}");
        if crlf {
            message.replace('\n', "\r\n")
        } else {
            message
        }
    })
}

fn policy(data: bool) -> Policy {
    Policy {
        embed: Embed {
            data,
            ..Embed::default()
        },
        ..Policy::default()
    }
}

/// Returns whether the message gets rows, and whether the prefilter passes it on.
fn judged(message: &str, data: bool) -> (bool, bool) {
    let expander = expander(policy(data), NoFetch);
    let rows = expander.forecast(message.as_bytes(), "1").rows;
    let found = expander.prefilter().in_message(message.as_bytes());
    let several = expander
        .prefilter()
        .messages(message.as_bytes(), &[message.len()]);
    assert_eq!(several.len(), usize::from(found), "{message:?}");
    (!rows.is_empty(), found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn prefilter_misses_no_document_that_the_engine_changes(message in message(), data in prop::bool::weighted(0.2)) {
        let (matters, found) = judged(&message, data);
        prop_assert!(found || !matters, "{message:?}");
    }
}

#[test]
fn generated_messages_cover_both_answers_of_the_prefilter() {
    let (mut matter, mut done_with) = (0, 0);
    let mut runner = TestRunner::deterministic();
    for _ in 0..500 {
        let message = message().new_tree(&mut runner).unwrap().current();
        let (matters, found) = judged(&message, false);
        let is_encoded = message.to_ascii_lowercase().contains("encoding: base64");
        matter += u32::from(matters && is_encoded);
        done_with += u32::from(!found && is_encoded);
    }
    assert!(matter > 60, "{matter} matter");
    assert!(done_with > 60, "with {done_with} the prefilter is done");
}

#[test]
fn a_boundary_line_in_what_looks_like_a_header_does_not_end_the_search() {
    let message = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--a\nContent-Type: text/html\n\
                   --b\nContent-Type: text/html\n\n<p>\n--a\n<base href=http://h/><a href=x>\n--b--\n";
    assert_eq!(judged(message, false), (true, true));
}
