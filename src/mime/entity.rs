//! Header fields and boundaries for new parts. They depend only on the content, not on the time or on random numbers,
//! so that the same input gives the same output.

use std::collections::HashSet;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

use crate::span::{Newline, Span, SpanLines};

/// ASCII characters that are not allowed in a URI (RFC 3986 §2). Browsers accept them in links, so they are
/// percent-encoded in header fields.
const NOT_OF_URI: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

const COLUMNS: usize = 76;

pub fn sha256(octets: &[u8]) -> String {
    format!("{:x}", Sha256::digest(octets))
}

/// Appends a header field. The value must not contain a line ending.
pub fn push_field(header: &mut Vec<u8>, name: &str, value: &str, newline: Newline) {
    for piece in [name.as_bytes(), b": ", value.as_bytes(), newline.bytes()] {
        header.extend_from_slice(piece);
    }
}

pub fn uri(url: &str) -> String {
    utf8_percent_encode(url, NOT_OF_URI).to_string()
}

/// Returns a field with a URL. A long URL is folded like the URL parameter of RFC 2017: white space inside such a field
/// has no meaning (draft-fielding-url-syntax-05 §5.1.1). Characters that are not allowed in a URI are percent-encoded.
pub fn folded_url(name: &str, url: &str, newline: Newline) -> Vec<u8> {
    let mut field = name.as_bytes().to_vec();
    field.push(b':');
    let escaped = uri(url);
    let mut column = field.len();
    for (index, word) in escaped.as_bytes().chunks(COLUMNS - 2).enumerate() {
        if index > 0 || column + 1 + word.len() > COLUMNS {
            field.extend_from_slice(newline.bytes());
            column = 0;
        }
        field.push(b' ');
        field.extend_from_slice(word);
        column += 1 + word.len();
    }
    field.extend_from_slice(newline.bytes());
    field
}

/// Returns a boundary for a new multipart, derived from `seed`. No line in `content` can be mistaken for its boundary
/// line. It does not begin with a boundary in `around` (the outer multiparts), and no boundary in `around` begins with
/// it. It contains `=_`, which cannot occur in base64 and quoted-printable.
pub fn boundary(seed: &[u8], content: &[u8], around: &[&[u8]]) -> String {
    let hash = sha256(seed);
    let first = format!("=_embody_{hash:.24}");
    // A boundary that is taken gets a number. The sender can predict this, and write a million lines with the numbers
    // that would be tried. The numbers in all lines are therefore collected first, instead of searching the content
    // once for each number.
    let taken: HashSet<&[u8]> = SpanLines::new(content, Span::new(0, content.len()))
        .filter_map(|line| line.content.of(content).strip_prefix(b"--"))
        .filter_map(|line| line.strip_prefix(first.as_bytes()))
        .flat_map(fronts)
        .collect();
    let meets = |boundary: &[u8]| {
        let mut around = around.iter();
        around.any(|other| other.starts_with(boundary) || boundary.starts_with(other))
    };
    let (mut end, mut further) = (String::new(), 0_u32);
    loop {
        let boundary = format!("{first}{end}");
        if !taken.contains(end.as_bytes()) && !meets(boundary.as_bytes()) {
            return boundary;
        }
        further += 1;
        end = format!("_{further}");
    }
}

/// Returns the ends of generated boundaries with which `text` begins. `text` is the rest of a line of the content after
/// the fixed start of generated boundaries, so a boundary with one of these ends would match the line. The end of a
/// boundary is empty, or `_` and a number. For `_12x` the result is the empty text, `_1` and `_12`.
fn fronts(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    // A generated boundary ends with a `u32`, which has at most 10 digits, so more digits need not be compared.
    const DIGITS: usize = 10;
    let digits = text
        .strip_prefix(b"_")
        .unwrap_or_default()
        .iter()
        .take(DIGITS)
        .take_while(|digit| digit.is_ascii_digit())
        .count();
    let numbered = (1..=digits).filter_map(|length| text.get(..=length));
    std::iter::once(&b""[..]).chain(numbered)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::mime::transfer::has_boundary;

    #[test]
    fn new_boundary_occurs_in_no_line_and_differs_from_outer_boundaries() {
        let first = boundary(b"seed", b"", &[]);
        assert_eq!(first, boundary(b"seed", b"other content\n", &[]));
        let content = format!("x\n--{first}\n");
        let second = boundary(b"seed", content.as_bytes(), &[]);
        assert_ne!(first, second);
        assert!(!content.contains(&second));
        // The boundary must not be the beginning of an outer boundary, because its line would then end the outer multipart.
        let longer = format!("{first}x");
        let third = boundary(b"seed", b"", &[longer.as_bytes()]);
        assert!(!longer.starts_with(&third) && !third.starts_with(&longer));
    }

    proptest! {
        #[test]
        fn a_boundary_is_the_first_that_no_line_begins_with(
            ends in prop::collection::vec("(_[1-4]{0,2})?x?", 0..12),
        ) {
            let hash = sha256(b"seed");
            let first = format!("=_embody_{}", &hash[..24]);
            let content: String = ends.iter().map(|end| format!("--{first}{end}\n")).collect();
            let further = (1..).map(|further| format!("{first}_{further}"));
            let expected = std::iter::once(first.clone()).chain(further).find(|boundary| {
                !has_boundary(content.as_bytes(), &[boundary.as_bytes()])
            });
            prop_assert_eq!(Some(boundary(b"seed", content.as_bytes(), &[])), expected);
        }
    }

    #[test]
    fn free_boundary_is_found_fast_among_100000_taken_ones() {
        let first = boundary(b"seed", b"", &[]);
        let content: String = (1..100_000)
            .map(|further| format!("--{first}_{further}\n"))
            .collect();
        let begun = Instant::now();
        let found = boundary(b"seed", content.as_bytes(), &[]);
        assert_eq!(found, format!("{first}_100000"));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_part_is_written_in_the_lines_of_its_message() {
        let url = format!("http://h/{}", "x".repeat(80));
        let mut header = folded_url("Content-Location", &url, Newline::CrLf);
        push_field(&mut header, "Content-Type", "image/gif", Newline::CrLf);
        let text = String::from_utf8(header).expect("it is ASCII");
        assert!(text.ends_with("\r\nContent-Type: image/gif\r\n"));
        assert!(text.split("\r\n").all(|line| line.len() <= 76), "{text}");
    }
}
