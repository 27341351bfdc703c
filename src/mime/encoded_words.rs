//! Encoded words (RFC 2047), as mail has them. Linear: what opens no word is looked at once.
//!
//! Deviations, because mail has them:
//! * words may be of any length, and stand in quotes and right beside other text (against §5);
//! * a character may be split between two words of one charset (against §5), and blanks may stand in the text of a word
//!   in the "Q" encoding;
//! * a language may stand behind the charset (RFC 2231 §5), and is not used.

use mail_parser::decoders::charsets::map::charset_decoder;
use memchr::{memchr, memmem};

use super::quoted_printable::Sign;
use super::transfer::TransferEncoding;

/// What cannot be undone stays.
pub fn decoded_words(text: &[u8]) -> String {
    let mut decoded = Decoded::default();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((charset, octets, behind)) = word(rest) {
            decoded.take_word(charset, &octets);
            rest = behind;
            continue;
        }
        let next = memmem::find(rest.get(1..).unwrap_or_default(), b"=?");
        let (plain, behind) = rest.split_at(next.map_or(rest.len(), |at| at + 1));
        decoded.take_text(plain);
        rest = behind;
    }
    decoded.end_word();
    decoded.text + &String::from_utf8_lossy(decoded.blanks)
}

#[derive(Default)]
struct Decoded<'t> {
    text: String,
    /// The octets are not characters yet.
    charset: &'t [u8],
    octets: Vec<u8>,
    /// They count if no other word follows (§6.2).
    blanks: &'t [u8],
}

impl<'t> Decoded<'t> {
    fn take_word(&mut self, charset: &'t [u8], octets: &[u8]) {
        if !self.charset.eq_ignore_ascii_case(charset) {
            self.end_word();
            self.charset = charset;
        }
        self.octets.extend_from_slice(octets);
        self.blanks = b"";
    }

    fn take_text(&mut self, text: &'t [u8]) {
        let is_behind_word = !self.charset.is_empty();
        if is_behind_word && text.iter().all(u8::is_ascii_whitespace) && self.blanks.is_empty() {
            self.blanks = text;
            return;
        }
        self.end_word();
        self.text.push_str(&String::from_utf8_lossy(self.blanks));
        self.text.push_str(&String::from_utf8_lossy(text));
        self.blanks = b"";
    }

    fn end_word(&mut self) {
        let octets = std::mem::take(&mut self.octets);
        let charset = std::mem::take(&mut self.charset).to_ascii_lowercase();
        match charset_decoder(&charset) {
            Some(decode) if charset != b"utf-8" && charset != b"us-ascii" => {
                self.text.push_str(&decode(&octets));
            }
            _ => self.text.push_str(&String::from_utf8_lossy(&octets)),
        }
    }
}

fn word(text: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    const LONGEST_LABEL: usize = 80;
    let label = text.strip_prefix(b"=?")?;
    let end = memchr(b'?', label.get(..LONGEST_LABEL).unwrap_or(label))?;
    let (label, encoded) = label.split_at(end);
    let [b'?', encoding, b'?', encoded @ ..] = encoded else {
        return None;
    };
    let charset = label.split(|&octet| octet == b'*').next()?;
    // No question mark stands in a word, so the search ends before the next one begins.
    let end = memchr(b'?', encoded)?;
    let (encoded, behind) = encoded.split_at(end);
    let behind = behind.strip_prefix(b"?=").filter(|_| !charset.is_empty())?;
    let octets = match encoding {
        b'b' | b'B' => TransferEncoding::Base64.decode(encoded)?.into_owned(),
        b'q' | b'Q' => quoted(encoded),
        _ => return None,
    };
    Some((charset, octets, behind))
}

/// §4.2; an escape that is none stays.
fn quoted(mut text: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        text = rest;
        octets.push(match first {
            b'_' => b' ',
            b'=' => match Sign::read(rest) {
                (Sign::Escape(octet), digits) => {
                    text = rest.get(digits..).unwrap_or_default();
                    octet
                }
                _ => b'=',
            },
            octet => *octet,
        });
    }
    octets
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encoded_words_are_undone_and_other_text_is_not() {
        for (text, decoded) in [
            (
                "=?utf-8?B?QmVyaWNodCBmw7xyLnVybA==?=",
                "Bericht f\u{fc}r.url",
            ),
            (
                "=?iso-8859-1?Q?f=FCr?= =?us-ascii?Q?_x?=.url",
                "f\u{fc}r x.url",
            ),
            ("=?UTF-8?Q?a=C3?=\t=?utf-8?Q?=BC?= b", "a\u{fc} b"),
            ("=?utf-8?q?a?=  =?x?= b", "a  =?x?= b"),
            ("=?utf-8*de?Q?=C3=BC?=", "\u{fc}"),
            ("x=?utf-8?Q?a,_\"b?=,c", "xa, \"b,c"),
            ("=?utf-8?Q?a=2?= =?utf-8?Q?=zz?=", "a=2=zz"),
            ("=?utf-8?Q?not closed", "=?utf-8?Q?not closed"),
            ("=?utf-8?X?a?= =??Q?a?= =?", "=?utf-8?X?a?= =??Q?a?= =?"),
            ("=?x-unknown?Q?a=FF?=", "a\u{fffd}"),
            ("a =? b.url", "a =? b.url"),
            ("Report (1).url", "Report (1).url"),
            ("", ""),
        ] {
            assert_eq!(decoded_words(text.as_bytes()), decoded, "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_without_words_stays_and_any_octets_are_text(
            text in "[ =?a-zA-Z0-9_,\"*]{0,60}", octets in proptest::collection::vec(any::<u8>(), 0..80)
        ) {
            if !text.contains("?=") {
                prop_assert_eq!(decoded_words(text.as_bytes()), text);
            }
            prop_assert!(decoded_words(&octets).len() <= octets.len() * 3 + 3);
        }
    }
}
