//! RFC 2397: its examples (§4), its defaults (§2, §3), and folding (RFC 2017 §3.1).

use super::common::checks::data_url::written;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use embody::link::data::{DataUrl, DataUrlError, MAX_PARAMETERS};
use proptest::prelude::*;

const NO_LIMIT: u64 = u64::MAX;

/// The GIF of RFC 2397 §4, in the lines of the RFC.
const LARRY: &str = "data:image/gif;base64,R0lGODdhMAAwAPAAAAAAAP///ywAAAAAMAAw
 AAAC8IyPqcvt3wCcDkiLc7C0qwyGHhSWpjQu5yqmCYsapyuvUUlvONmOZtfzgFz
 ByTB10QgxOR0TqBQejhRNzOfkVJ+5YiUqrXF5Y5lKh/DeuNcP5yLWGsEbtLiOSp
 a/TPg7JpJHxyendzWTBfX0cxOnKPjgBzi4diinWGdkF8kjdfnycQZXZeYGejmJl
 ZeGl9i2icVqaNVailT6F5iJ90m6mvuTS4OK05M0vDk0Q4XUtwvKOzrcd3iq9uis
 F81M1OIcR7lEewwcLp7tuNNkM3uNna3F2JQFo97Vriy/Xl4/f1cf5VWzXyym7PH
 hhx4dbgYKAAA7";

fn decoded(url: &str) -> Vec<u8> {
    parsed(url).decode(NO_LIMIT).expect("valid data")
}

fn parsed(url: &str) -> DataUrl<'_> {
    DataUrl::parse(url.as_bytes()).expect("a data: URL")
}

fn media_type(url: &str) -> String {
    written(&parsed(url).media_type())
}

#[test]
fn a_brief_note_is_ascii_text() {
    let url = parsed("data:,A%20brief%20note");
    assert_eq!(url.decode(NO_LIMIT), Ok(b"A brief note".to_vec()));
    assert_eq!(written(&url.media_type()), "text/plain;charset=US-ASCII");
    assert_eq!(url.media_type().declared_essence(), None);
    assert!(!url.is_base64);
}

#[test]
fn larry_is_a_gif_of_273_octets_though_folded() {
    let url = parsed(LARRY);
    assert_eq!(url.media_type().essence, "image/gif");
    assert!(url.media_type().declared_essence().is_some());
    assert!(url.is_base64);
    let gif = url.decode(NO_LIMIT).expect("valid base64");
    assert!(gif.starts_with(b"GIF87a\x30\x00\x30\x00"));
    assert!(gif.ends_with(b";"));
    // Python's base64.b64decode gives the same number of bytes.
    assert_eq!(gif.len(), 273);
}

#[test]
fn greek_text_keeps_its_octets() {
    let url = "data:text/plain;charset=iso-8859-7,%be%fg%be";
    // %fg is an error in the RFC. An invalid escape stays unchanged.
    assert_eq!(decoded(url), b"\xbe%fg\xbe");
    assert_eq!(
        decoded("data:text/plain;charset=iso-8859-7,%be%d3%be"),
        b"\xbe\xd3\xbe"
    );
    assert_eq!(media_type(url), "text/plain;charset=iso-8859-7");
}

#[test]
fn the_query_example_keeps_its_query() {
    let url = "data:application/vnd-xxx-query,select_vcount,fcol_from_fieldtable/local";
    assert_eq!(decoded(url), b"select_vcount,fcol_from_fieldtable/local");
    assert_eq!(media_type(url), "application/vnd-xxx-query");
    assert_eq!(decoded("data:,a?b=c,d?e#fragment#"), b"a?b=c,d?e");
}

#[test]
fn parameters_alone_belong_to_plain_text() {
    let url = parsed("data:;charset=utf-8,x");
    assert_eq!(written(&url.media_type()), "text/plain;charset=utf-8");
    assert_eq!(url.media_type().declared_essence(), None);
}

#[test]
fn malformed_media_type_of_a_data_url_is_treated_as_absent() {
    for url in [
        "data:garbage,x",
        "data:/,x",
        "data:a b/(c),x",
        "data:text/;charset=x,x",
    ] {
        assert_eq!(media_type(url), "text/plain;charset=US-ASCII", "{url}");
        assert!(
            parsed(url).media_type().declared_essence().is_none(),
            "{url}"
        );
    }
}

#[test]
fn escapes_of_the_media_type_are_decoded_unless_they_could_do_harm() {
    for (url, expected) in [
        ("data:image/svg%2Bxml,x", "image/svg+xml"),
        ("data:IMAGE/%53VG%2bxml,x", "image/svg+xml"),
        (
            "data:text/plain;name=a%20b%3B%22%5C,x",
            r#"text/plain;name="a b;\"\\""#,
        ),
        ("data:text/plain;name=%C3%A4,x", "text/plain;name=\"ä\""),
        ("data:text/plain;n%61me=a;NAME=b,x", "text/plain;name=a"),
        // A parameter cannot add a header field, bytes that are not UTF-8, or a second type.
        (
            "data:text/plain;name=a%0d%0aBcc:b,x",
            "text/plain;name=\"a%0d%0aBcc:b\"",
        ),
        ("data:text/plain;name=%00,x", "text/plain;name=%00"),
        ("data:text/plain;name=%E4,x", "text/plain;name=%E4"),
        ("data:text/plain%2Cx,x", "text/plain%2cx"),
        ("data:text%2Fplain/x,x", "text%2fplain/x"),
        ("data:text/plain;a%3Db=c,x", "text/plain;a%3db=c"),
    ] {
        assert_eq!(media_type(url), expected, "{url}");
    }
}

#[test]
fn parameters_beyond_the_limit_are_dropped() {
    let mut url = "data:a/b".to_owned();
    (0..100_000).for_each(|number| url.push_str(&format!(";p{number}=x")));
    url.push_str(",x");
    assert_eq!(parsed(&url).media_type().parameters.len(), MAX_PARAMETERS);
}

#[test]
fn white_space_is_no_part_of_the_url() {
    assert_eq!(
        decoded("\r\n d\tA\nTa : text / plain , a b\t\r\n %\r\n 4\t1 %\t4g "),
        b"abA%4g"
    );
    assert_eq!(
        media_type("data:text / plain; charset = x; ba\r\n se 64 ,QQ"),
        "text/plain;charset=x"
    );
    assert_eq!(decoded("data:; base\n 64 , Q\tQ = \r\n ="), b"A");
}

#[test]
fn quoted_comma_still_ends_the_media_type_of_a_data_url() {
    let url = "data:text/plain;foo=\"bar,baz\";charset=utf8,body";
    assert_eq!(decoded(url), b"baz\";charset=utf8,body");
    assert_eq!(media_type(url), "text/plain;foo=bar");
}

#[test]
fn malformed_data_url_is_rejected_with_its_reason() {
    for (url, expected) in [
        ("", DataUrlError::NotADataUrl),
        ("data", DataUrlError::NotADataUrl),
        ("date:,x", DataUrlError::NotADataUrl),
        ("xdata:,x", DataUrlError::NotADataUrl),
        ("data:", DataUrlError::NoComma),
        ("data:text/plain;base64", DataUrlError::NoComma),
        ("data:text/plain#,x", DataUrlError::NoComma),
    ] {
        assert_eq!(DataUrl::parse(url.as_bytes()), Err(expected), "{url}");
    }
}

#[test]
fn other_alphabets_and_odd_padding_are_failures_wherever_they_stand() {
    let quanta = "QUJD".repeat(5000);
    for wrong in [
        "-_-_",
        "Q",
        "QQ=",
        "QQ===",
        "=",
        "====",
        "Q=Q=",
        "QQ==QQ==",
        "QU\u{b}JD",
        "QU%JD",
        "ä",
    ] {
        for url in [
            format!("data:;base64,{wrong}"),
            format!("data:;base64,{quanta}{wrong}"),
            format!("data:;base64,{}\r\n {wrong}", fold(&quanta, "\r\n ")),
        ] {
            assert_eq!(
                parsed(&url).decode(NO_LIMIT),
                Err(DataUrlError::InvalidBase64),
                "{wrong}"
            );
        }
    }
}

#[test]
fn content_above_the_limit_is_refused_by_its_true_size() {
    let too_large = |size, limit| Err(DataUrlError::TooLarge { size, limit });
    for (url, size) in [
        ("data:,abcd", 4),
        ("data:,%61 %62\r\n c%64#and a fragment", 4),
        ("data:;base64,YWJjZA==", 4),
        ("data:;base64,Y W J j\t%20%5a%41 = %3d#YWJj", 4),
        ("data:;base64,", 0),
    ] {
        let url = parsed(url);
        assert_eq!(url.decoded_len(), size);
        assert!(url.decoded_len_estimate() >= size);
        assert_eq!(
            url.decode(size).map(|content| content.len() as u64),
            Ok(size)
        );
        if let Some(less) = size.checked_sub(1) {
            assert_eq!(url.decode(less), too_large(size, less));
        }
    }
}

#[test]
fn the_content_is_allocated_once() {
    let content = vec![7; 100_000];
    let text = format!("data:;base64,{}", fold(&STANDARD.encode(&content), "\r\n "));
    let url = parsed(&text);
    for limit in [content.len() as u64, NO_LIMIT] {
        let decoded = url.decode(limit).expect("valid base64");
        let asked_for = url.decoded_len_estimate().min(limit);
        assert_eq!(decoded.capacity() as u64, asked_for, "grown or shrunk");
        assert_eq!(decoded, content);
    }
}

fn fold(text: &str, fold: &str) -> String {
    let words: Vec<&str> = text
        .as_bytes()
        .chunks(40)
        .filter_map(|word| str::from_utf8(word).ok())
        .collect();
    words.join(fold)
}

/// Generates white space as it is used for folding in mail, or as it occurs by mistake. It is usually empty.
fn folding() -> impl Strategy<Value = &'static str> {
    prop_oneof![20 => Just(""), 3 => Just("\r\n "), 2 => Just("\n\t"), 1 => Just(" "), 1 => Just("\r"), 1 => Just("\n")]
}

/// Returns `url` with one of `folds` after each `word` characters.
fn folded(url: &str, folds: &[&str], word: usize) -> String {
    let mut result = String::new();
    for (number, character) in url.chars().enumerate() {
        result.push(character);
        if (number + 1) % word == 0 {
            result.push_str(folds[number / word % folds.len()]);
        }
    }
    result
}

fn some_url() -> impl Strategy<Value = String> {
    prop_oneof![
        r"data:[a-zA-Z/;=%,+\x22.0-9]{0,30},[a-zA-Z0-9%+/=#?,\x01\x0cäö~!-]{0,200}",
        r"data:[a-z]{1,3}/[a-z]{1,3};base64,[A-Za-z0-9+/]{0,400}(%3D|=){0,2}",
        r"data:;base64,([A-Za-z0-9+/]{4}|%2B[A-Z]{3}){0,2000}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decoding_undoes_encoding(
        content in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            proptest::collection::vec(any::<u8>(), 0..9000),
        ],
        fold in prop::sample::select(vec!["", "\r\n ", "\n\t", "\n", " ", "\r\n \t", "%0A", "%20\r\n "]),
        word in 1usize..100,
        padded in any::<bool>(),
    ) {
        let engine = if padded { STANDARD } else { STANDARD_NO_PAD };
        let symbols = folded(&engine.encode(&content), &[fold], word);
        let url = format!("data:x/y;base64,{symbols}");
        prop_assert_eq!(parsed(&url).decoded_len(), content.len() as u64);
        prop_assert!(decoded(&url) == content);
    }

    #[test]
    fn unescaping_undoes_escaping(
        content in proptest::collection::vec(any::<u8>(), 0..500),
        fold in prop::sample::select(vec!["", "\r\n ", "\n\t", " "]),
        word in 1usize..100,
    ) {
        let escaped: String = content.iter().map(|byte| format!("%{byte:02x}")).collect();
        let url = format!("data:,{}", folded(&escaped, &[fold], word));
        prop_assert_eq!(parsed(&url).decoded_len(), content.len() as u64);
        prop_assert!(decoded(&url) == content);
    }

    #[test]
    fn folding_anywhere_changes_nothing(
        url in some_url(),
        folds in proptest::collection::vec(folding(), 1..50),
        word in prop_oneof![Just(1usize), Just(40), 1usize..80],
    ) {
        let with_blanks = folded(&url, &folds, word);
        let (plain, folded) = (DataUrl::parse(url.as_bytes()), DataUrl::parse(with_blanks.as_bytes()));
        prop_assert_eq!(plain.as_ref().err(), folded.as_ref().err());
        if let (Ok(plain), Ok(folded)) = (plain, folded) {
            prop_assert_eq!(&plain.declared, &folded.declared);
            prop_assert_eq!(plain.media_type(), folded.media_type());
            prop_assert_eq!(plain.decoded_len(), folded.decoded_len());
            prop_assert_eq!(plain.decode(NO_LIMIT), folded.decode(NO_LIMIT));
        }
    }

    #[test]
    fn any_data_url_gives_a_result_within_the_limit(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        limit in 0u64..300,
    ) {
        let url = [b"data:".as_slice(), &bytes].concat();
        if let Ok(url) = DataUrl::parse(&url) {
            prop_assert!(!written(&url.media_type()).contains(char::is_control));
            if let Ok(content) = url.decode(limit) {
                prop_assert!(content.len() as u64 <= limit);
                prop_assert_eq!(content.len() as u64, url.decoded_len());
                prop_assert!(content.len() as u64 <= url.decoded_len_estimate());
            }
        }
    }
}
