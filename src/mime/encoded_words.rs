//! Decoding of encoded words (RFC 2047) as they occur in mail. The time is linear.
//!
//! The decoder also accepts words that violate the RFC, because they occur in mail:
//! * words of any length, in quotes, and directly next to other text (against §5);
//! * a character that is split between two words in the same charset (against §5), and spaces in the text of a word in
//!   the "Q" encoding;
//! * a language after the charset (RFC 2231 §5), which is ignored.

use std::borrow::Cow;

use memchr::{memchr, memmem};

use super::charset;
use super::quoted_printable::Sign;
use super::transfer::TransferEncoding;
use crate::span::front;

/// Returns the text for display. A word in an unsupported charset is not decoded, and bytes that are not part of a
/// character become U+FFFD.
pub fn decoded_words(text: &[u8]) -> String {
    decoded(text, None).0
}

/// Like [`decoded_words`]. Text outside of encoded words that is not UTF-8 is decoded with the charset `label`.
#[cfg(any(test, feature = "cli", feature = "view"))]
pub fn decoded_text(text: &[u8], label: Option<&[u8]>) -> String {
    decoded(text, label).0
}

/// Returns the text for a name that is written into mail or looked up. Returns `None` if a word is in an unsupported
/// charset or if a byte is not part of a character, because the result would be a different name.
pub fn decoded_name(text: &[u8]) -> Option<String> {
    let (name, is_whole) = decoded(text, None);
    (is_whole && !name.contains(char::REPLACEMENT_CHARACTER)).then_some(name)
}

fn decoded(text: &[u8], label: Option<&[u8]>) -> (String, bool) {
    let mut decoded = DecodedWord {
        text: String::new(),
        is_whole: true,
        label,
        charset: b"",
        words: Vec::new(),
        written: b"",
        blanks: b"",
    };
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((charset, octets, behind)) = word(rest) {
            decoded.take_word(charset, octets, rest);
            rest = behind;
            continue;
        }
        let next = memmem::find(&rest[1..], b"=?");
        let (plain, behind) = rest.split_at(next.map_or(rest.len(), |at| at + 1));
        decoded.take_text(plain, rest);
        rest = behind;
    }
    decoded.end_word(b"");
    decoded.push_text(decoded.blanks);
    (decoded.text, decoded.is_whole)
}

struct DecodedWord<'t> {
    text: String,
    /// Whether all text so far could be decoded.
    is_whole: bool,
    label: Option<&'t [u8]>,
    /// Charset of the encoded words that are not decoded yet (`words`). They are decoded together, because a character can be
    /// split between two words.
    charset: &'t [u8],
    words: Vec<Vec<u8>>,
    /// Text of the field from the first encoded word in `words` to the end of the field. If the words cannot be
    /// decoded, they are copied from here unchanged.
    written: &'t [u8],
    /// White space after the last word. It is part of the text only if no other word follows (§6.2).
    blanks: &'t [u8],
}

impl<'t> DecodedWord<'t> {
    fn take_word(&mut self, charset: &'t [u8], octets: Vec<u8>, from: &'t [u8]) {
        if !self.charset.eq_ignore_ascii_case(charset) {
            self.end_word(from);
            self.charset = charset;
            self.written = from;
        }
        self.words.push(octets);
        self.blanks = b"";
    }

    fn take_text(&mut self, text: &'t [u8], from: &'t [u8]) {
        let is_behind_word = !self.charset.is_empty();
        if is_behind_word && text.iter().all(u8::is_ascii_whitespace) && self.blanks.is_empty() {
            self.blanks = text;
            return;
        }
        let between = self.blanks.len() + from.len();
        self.end_word_at(between);
        self.push_text(self.blanks);
        self.push_text(text);
        self.blanks = b"";
    }

    /// Decodes the collected words. `rest` begins after them, and white space between two words is not part of the text.
    fn end_word(&mut self, rest: &'t [u8]) {
        self.end_word_at(self.blanks.len() + rest.len());
    }

    /// Decodes the collected words. `behind` is the number of bytes of the field after them.
    fn end_word_at(&mut self, behind: usize) {
        let words = std::mem::take(&mut self.words);
        let label = std::mem::take(&mut self.charset);
        if words.is_empty() {
            return;
        }
        // Two cases conflict: a program may split a character between two words, which can then be decoded only
        // together, or a word may not return to the ASCII state of its charset, so that words can be decoded only one
        // by one. So both are tried.
        let all = words.concat();
        let together = charset::decode(label, &all).map(Cow::into_owned);
        let apart = || {
            let each = words.iter().map(|word| charset::decode(label, word));
            each.collect::<Option<String>>()
        };
        match together.or_else(apart) {
            Some(text) => self.text.push_str(&text),
            None => {
                self.is_whole = false;
                if let Some(shown) = charset::decode_lossily(label, &all) {
                    self.text.push_str(&shown);
                    return;
                }
                let end = self.written.len().saturating_sub(behind);
                let written = String::from_utf8_lossy(&self.written[..end]);
                self.text.push_str(&written);
            }
        }
    }

    fn push_text(&mut self, text: &[u8]) {
        let declared = || charset::decode(self.label?, text);
        match charset::decode_undeclared(text).or_else(declared) {
            Some(known) => self.text.push_str(&known),
            None => {
                self.is_whole = false;
                self.text.push_str(&String::from_utf8_lossy(text));
            }
        }
    }
}

fn word(text: &[u8]) -> Option<(&[u8], Vec<u8>, &[u8])> {
    const LONGEST_LABEL: usize = 80;
    let label = text.strip_prefix(b"=?")?;
    let end = memchr(b'?', front(label, LONGEST_LABEL))?;
    let (label, encoded) = label.split_at(end);
    let [b'?', encoding, b'?', encoded @ ..] = encoded else {
        return None;
    };
    let charset = label.split(|&octet| octet == b'*').next()?;
    // The text of an encoded word cannot contain a question mark. So the search stops at the latest where the next word
    // begins, and the total time is linear.
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

/// Decodes the "Q" encoding (§4.2). A malformed escape is kept.
fn quoted(mut text: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        text = rest;
        octets.push(match first {
            b'_' => b' ',
            b'=' => match Sign::read(rest) {
                (Sign::Escape(octet), behind) => {
                    text = behind;
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
            ("=?x-unknown?Q?a=FF?= b", "=?x-unknown?Q?a=FF?= b"),
            ("a =?utf-7?Q?+AOQ-?=\t=?utf-8?Q?b?=", "a =?utf-7?Q?+AOQ-?=b"),
            ("=?utf-8?Q?a=C3?= =?utf-8?Q?b?= c", "a\u{fffd}b c"),
            (
                "\"=?iso-2022-jp?B?GyRCRnwbKEI=?= =?iso-2022-jp?B?GyRCS1wbKEI=?=\"",
                "\"\u{65e5}\u{672c}\"",
            ),
            (
                "=?iso-2022-jp?B?GyRCRg==?= =?iso-2022-jp?B?fBsoQg==?=",
                "\u{65e5}",
            ),
            ("a =? b.url", "a =? b.url"),
            ("Report (1).url", "Report (1).url"),
            ("", ""),
        ] {
            assert_eq!(decoded_words(text.as_bytes()), decoded, "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_without_encoded_words_is_unchanged_and_any_octets_are_accepted(
            text in "[ =?a-zA-Z0-9_,\"*]{0,60}", octets in proptest::collection::vec(any::<u8>(), 0..80)
        ) {
            if !text.contains("?=") {
                prop_assert_eq!(decoded_words(text.as_bytes()), text);
            }
            prop_assert!(decoded_words(&octets).len() <= octets.len() * 3 + 3);
        }
    }
}
