//! Decodes UTF-16 text to UTF-8, as a method of the decompressor: mail in UTF-16 is read like a compressed file.

use std::fmt;
use std::io::{self, BufRead as _, Read};

use encoding_rs::{DecoderResult, UTF_16BE, UTF_16LE};

use super::octets::Member;
use crate::mailbox::encoding::ByteOrder;

/// Returns an error text for a message in UTF-16: why it is not read, and what to do.
pub(crate) fn not_encoded(why: impl fmt::Display) -> String {
    format!(
        "the message is in UTF-16 and cannot be decoded exactly, because {why}; convert the file to UTF-8, for example with iconv, and declare this charset in its header"
    )
}

/// Reason why a file in UTF-16 is not changed.
pub(crate) const LEFT_AS_UTF16: &str = "the file is in UTF-16, which embody reads but does not write, so the file was not changed; convert it to another format with ";

/// Number of consecutive UTF-16 characters whose two bytes are both printable ASCII. A run of this length shows that a
/// program appended ASCII mail to a UTF-16 file, because real UTF-16 text practically never contains one.
const ASCII_PAIRS: usize = 24;

/// Maximum UTF-8 length of a character that is one UTF-16 code unit, in bytes.
const LONGEST: usize = 3;

pub(super) fn member<R: Read>(order: ByteOrder) -> Member<R> {
    let encoding = match order {
        ByteOrder::Little => UTF_16LE,
        ByteOrder::Big => UTF_16BE,
    };
    let mut decoder = encoding.new_decoder_with_bom_removal();
    let (mut decoded, mut at) = (String::new(), 0);
    let (mut pairs, mut ended) = (0, None);
    Box::new(move |octets, into| {
        loop {
            let rest = decoded.as_bytes().get(at..).unwrap_or_default();
            if !rest.is_empty() {
                let length = rest.len().min(into.len());
                into[..length].copy_from_slice(&rest[..length]);
                at += length;
                return Ok(length);
            }
            match ended.take() {
                Some(Ok(())) => return Ok(0),
                Some(Err(why)) => return Err(io::Error::other(why)),
                None => {}
            }
            let input = octets.fill_buf()?;
            let is_end = input.is_empty();
            (decoded, at) = (String::with_capacity(input.len() * LONGEST + 16), 0);
            let (result, read) =
                decoder.decode_to_string_without_replacement(input, &mut decoded, is_end);
            octets.consume(read);
            ended = match result {
                _ if has_ascii_pairs(&decoded, &mut pairs) => {
                    decoded.clear();
                    Some(Err("a part of the file is in another encoding"))
                }
                DecoderResult::Malformed(..) => Some(Err("a character is incomplete")),
                DecoderResult::InputEmpty if is_end => Some(Ok(())),
                DecoderResult::InputEmpty | DecoderResult::OutputFull => None,
            };
        }
    })
}

fn has_ascii_pairs(text: &str, pairs: &mut usize) -> bool {
    if text.is_ascii() {
        if !text.is_empty() {
            *pairs = 0;
        }
        return false;
    }
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    text.chars().any(|character| {
        let unit = u16::try_from(u32::from(character)).unwrap_or_default();
        *pairs = if unit.to_be_bytes().into_iter().all(is_text) {
            *pairs + 1
        } else {
            0
        };
        *pairs >= ASCII_PAIRS
    })
}
