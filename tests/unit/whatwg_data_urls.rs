//! All rows of WHATWG's published tables (tests/whatwg), also compared with the crate `data-url`.

use super::common::checks::data_url::{peer, read, written};
use embody::link::data::MediaTypeText;
use proptest::prelude::*;
use serde_json::Value;

/// A media type and data, or `None` for a failure.
type Read = Option<(&'static str, &'static [u8])>;

/// Rows for which RFCs about mail require another result: the URL, the media type and data that embody reads, and the
/// reason.
const DEVIATIONS: &[(&str, Read, &str)] = &[
    (
        "data://test:test/,X",
        Some((DEFAULT, b"X")),
        "a data: URL has no authority to judge: the URL parser is not run",
    ),
    ("data:text / html,X", Some(("text/html", b"X")), WHITE_SPACE),
    (
        "data:image/png,X X",
        Some(("image/png", b"XX")),
        WHITE_SPACE,
    ),
    (
        "data:application/javascript,X X",
        Some(("application/javascript", b"XX")),
        WHITE_SPACE,
    ),
    (
        "data:application/xml,X X",
        Some(("application/xml", b"XX")),
        WHITE_SPACE,
    ),
    (
        "data:text/javascript,X X",
        Some(("text/javascript", b"XX")),
        WHITE_SPACE,
    ),
    (
        "data:text/plain,X X",
        Some(("text/plain", b"XX")),
        WHITE_SPACE,
    ),
    (
        "data:unknown/unknown,X X",
        Some(("unknown/unknown", b"XX")),
        WHITE_SPACE,
    ),
    ("data:;base 64,WA", Some((DEFAULT, b"X")), WHITE_SPACE),
    (
        "data:;charset =x,X",
        Some(("text/plain;charset=x", b"X")),
        WHITE_SPACE,
    ),
    (
        "data:;charset= x,X",
        Some(("text/plain;charset=x", b"X")),
        WHITE_SPACE,
    ),
    (
        "data:text/plain;a=%2C,X",
        Some(("text/plain;a=\",\"", b"X")),
        "escapes in parameters are decoded (RFC 2397 §3)",
    ),
];
const WHITE_SPACE: &str = "white space is no part of the URL (RFC 2017 §3.1)";
const DEFAULT: &str = "text/plain;charset=US-ASCII";

fn rows(table: &str) -> Vec<Value> {
    serde_json::from_str(table).expect("a JSON array")
}

fn octets(value: &Value) -> Option<Vec<u8>> {
    let numbers = value.as_array()?.iter();
    Some(
        numbers
            .map(|number| u8::try_from(number.as_u64().expect("a number")).expect("an octet"))
            .collect(),
    )
}

#[test]
fn every_row_of_data_urls_json_holds_or_is_a_known_deviation() {
    let rows = rows(include_str!("../whatwg/data-urls.json"));
    assert_eq!(rows.len(), 78);
    let mut deviations = 0;
    for row in rows {
        let url = row[0].as_str().expect("a URL");
        let published = row[1]
            .as_str()
            .map(|media_type| (media_type.to_owned(), octets(&row[2]).expect("octets")));
        let ours = read(url.as_bytes()).ok();
        match DEVIATIONS.iter().find(|(known, ..)| *known == url) {
            None => assert_eq!(ours, published, "{url}"),
            Some((_, expected, why)) => {
                let expected =
                    expected.map(|(media_type, content)| (media_type.to_owned(), content.to_vec()));
                assert_eq!(ours, expected, "{url}: {why}");
                assert_ne!(ours, published, "{url} is no deviation any more");
                deviations += 1;
            }
        }
    }
    assert_eq!(deviations, DEVIATIONS.len());
}

#[test]
fn every_row_of_base64_json_holds() {
    let rows = rows(include_str!("../whatwg/base64.json"));
    assert_eq!(rows.len(), 80);
    for row in rows {
        let symbols = row[0].as_str().expect("symbols");
        let raw = read(format!("data:;base64,{symbols}").as_bytes()).ok();
        assert_eq!(
            raw.map(|(_, content)| content),
            octets(&row[1]),
            "{symbols:?}"
        );
        let triplets: String = symbols.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let escaped = read(format!("data:;base64,{triplets}").as_bytes()).ok();
        assert_eq!(
            escaped.map(|(_, content)| content),
            octets(&row[1]),
            "{symbols:?} escaped"
        );
    }
}

#[test]
fn every_row_of_the_media_type_tables_holds() {
    let mut tested = [0, 0];
    let tables = [
        include_str!("../whatwg/mime-types.json"),
        include_str!("../whatwg/generated-mime-types.json"),
    ];
    for (table, tested) in tables.into_iter().zip(&mut tested) {
        for row in rows(table).iter().filter(|row| row.is_object()) {
            let input = row["input"].as_str().expect("text");
            let ours = MediaTypeText::parse(input).as_ref().map(written);
            assert_eq!(ours.as_deref(), row["output"].as_str(), "{input:?}");
            *tested += 1;
        }
    }
    assert_eq!(tested, [74, 881]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    // Media types with escapes or non-ASCII bytes are excluded, because embody decodes them and the crate does not.
    #[test]
    fn the_data_url_crate_reads_every_url_without_white_space_alike(
        media_type in prop_oneof![
            r#"([a-zA-Z]{1,4}/[a-z+?()]{1,4})?(;[a-c]{0,2}=?[a-z"\\(=]{0,6}){0,4}"#,
            r#"[a-zA-Z0-9/;="\\?<>'\x01\x0c\x7f-]{0,30}"#,
        ],
        encoding in prop::sample::select(vec!["", ";base64", ";BASE64", ";base6", "base64", ";base64;"]),
        body in prop_oneof![
            r"[A-Za-z0-9+/]{0,40}={0,3}",
            r"([A-Za-z0-9+/]|%2B|%20|%0a|%0C|\x0c){0,40}={0,2}",
            r"([A-Z]{4}){0,3000}[A-Z]{0,4}",
            r"[A-Za-z0-9%+/=#?,.~ä€\x01\x0b\x0c-]{0,60}",
        ],
    ) {
        let url = format!("data:{media_type}{encoding},{body}");
        prop_assert_eq!(read(url.as_bytes()).ok(), peer(&url));
    }
}
