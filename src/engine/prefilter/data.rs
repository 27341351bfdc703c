//! Whether a document may show something from a `data:` URL, told without parsing. A document may hide the scheme by
//! blanks that are dropped from a URL, which are read, and by character references and escapes of CSS: of these, one
//! that may stand for one of the scheme's octets is enough.

use memchr::memchr3_iter;

/// The last octet first; what is dropped from URLs, and the other half of characters in UTF-16.
const REVERSED: &[u8] = b"atad";
const DROPPED: &[u8] = b"\t\n\r\0";

/// Longer numeric references count as found.
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

/// Anything between the letters may be dropped.
fn ends_in_scheme(before: &[u8]) -> bool {
    // A megabyte of line ends in front of many colons would be read for each.
    const LONGEST: usize = 64;
    let start = before.len().saturating_sub(LONGEST);
    let mut octets = before.get(start..).unwrap_or_default().iter().rev();
    let mut octets = octets.by_ref().filter(|octet| !DROPPED.contains(octet));
    let found = |wanted: &u8, octet: Option<&u8>| match octet {
        Some(octet) => octet.eq_ignore_ascii_case(wanted),
        // More is dropped than is looked at; or the text begins here.
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
    let is_digit = |octet: &&u8| char::from(**octet).is_digit(radix);
    let length = digits.iter().take(DIGITS + 1).take_while(is_digit).count();
    if length > DIGITS {
        return true;
    }
    let digits = digits.get(..length).unwrap_or_default();
    let value = std::str::from_utf8(digits).ok();
    let value = value.and_then(|digits| u64::from_str_radix(digits, radix).ok());
    let octet = value.and_then(|value| u8::try_from(value).ok());
    octet.is_some_and(|octet| {
        octet == b':' || DROPPED.contains(&octet) || REVERSED.contains(&octet.to_ascii_lowercase())
    })
}

/// `escape` stands behind its `\`; it may also stand for nothing.
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
    fn most_text_shows_none() {
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
