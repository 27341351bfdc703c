//! Decides whether a document may show content from a `data:` URL, without parsing the document. The document can hide the
//! scheme with blanks, which browsers remove from URLs, or with character references and CSS escapes. Blanks are skipped here.
//! One reference or escape that may be a byte of the scheme is enough for a match.

use crate::span::{front, split_while};
use memchr::memchr3_iter;

/// The scheme `data` in reverse order, because the search starts at the colon and goes backwards. Bytes in `DROPPED`
/// are skipped: browsers ignore them, or they are the zero bytes of UTF-16.
const REVERSED: &[u8] = b"atad";
const DROPPED: &[u8] = b"\t\n\r\0";

/// Maximum number of digits of a numeric character reference. A longer one may be any byte of the scheme, so that no
/// document is missed.
const DIGITS: usize = 12;

pub(in crate::engine) fn may_show_data(text: &[u8]) -> bool {
    memchr3_iter(b':', b'&', b'\\', text).any(|at| {
        let (before, behind) = text.split_at(at);
        match behind.split_first() {
            Some((b':', _)) => ends_in_scheme(before),
            Some((b'&', reference)) => may_refer(reference),
            Some((_, escape)) => may_escape(escape),
            None => false,
        }
    })
}

/// Returns true if the text ends with the letters of `data`. Bytes that browsers drop may be between the letters.
fn ends_in_scheme(before: &[u8]) -> bool {
    // Bound for the bytes read before a colon. Without it, a megabyte of line endings before many colons would be read
    // again for each colon.
    const LONGEST: usize = 64;
    let start = before.len().saturating_sub(LONGEST);
    let mut octets = before[start..]
        .iter()
        .rev()
        .filter(|octet| !DROPPED.contains(octet));
    let found = |wanted: &u8, octet: Option<&u8>| match octet {
        Some(octet) => octet.eq_ignore_ascii_case(wanted),
        // If the search stopped at its limit, the letters may precede the bytes that were read, so this counts as a
        // match. If it stopped at the start of the text, there are no more letters.
        None => start > 0,
    };
    REVERSED.iter().all(|wanted| found(wanted, octets.next()))
}

fn may_refer(reference: &[u8]) -> bool {
    let named = [b"colon".as_slice(), b"Tab", b"NewLine"];
    let Some(number) = reference.strip_prefix(b"#") else {
        return named.iter().any(|name| reference.starts_with(name));
    };
    let (digits, radix) = match number {
        [b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    let is_digit = |octet: &u8| char::from(*octet).is_digit(radix);
    let (digits, _) = split_while(front(digits, DIGITS + 1), is_digit);
    if digits.len() > DIGITS {
        return true;
    }
    let octet = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, radix).ok())
        .and_then(|value| u8::try_from(value).ok());
    octet.is_some_and(|octet| {
        octet == b':' || DROPPED.contains(&octet) || REVERSED.contains(&octet.to_ascii_lowercase())
    })
}

/// Returns true if the text after a `\` may be a CSS escape for a byte of the scheme, or for nothing (a line continuation).
fn may_escape(escape: &[u8]) -> bool {
    let first = escape.first().copied().unwrap_or_default();
    first.is_ascii_hexdigit() || b"tT:\n\r\x0c".contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_the_scheme_is_seen() {
        for text in [
            "<img src=data:image/gif,x>",
            "DaTa:",
            "d\na\tt\r\na:x",
            "data\n:x",
            "dat&#97;:",
            "dat&#x00061;:",
            "d&#0000000000000000000000000000000097;ta:",
            "data&colon;",
            "d&Tab;ata:",
            "url(\\64 ata:x)",
            "url(d\\\nata:x)",
            "da\\ta:",
        ] {
            assert!(may_show_data(text.as_bytes()), "{text}");
        }
        let far = format!("da{}ta:", "\n".repeat(1000));
        assert!(may_show_data(far.as_bytes()));
    }

    #[test]
    fn ordinary_text_is_not_taken_for_a_data_url() {
        for text in [
            "<p style='color:red;data-x: y'>http://h/ metadata; a: &nbsp;&amp;&#160;&#8217; c:\\Windows",
            "ata:",
            ":",
            "data;",
        ] {
            assert!(!may_show_data(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn colons_by_the_million_are_looked_at_once_each() {
        let text = format!("{}:", "\n".repeat(60)).repeat(1 << 14);
        assert!(!may_show_data(text.as_bytes()));
    }
}
