//! Base64 (RFC 2045 §6.8): decoding of bodies that may be damaged or have text after them, and encoding.

use base64_simd::AsOut as _;

use super::quoted_printable::ENCODED_COLUMNS;
use crate::span::{Newline, Span, SpanLines};

/// Decodes base64. Returns the content and the end of the last symbol that belongs to it.
///
/// Bytes outside the alphabet are skipped (RFC 2045 §6.8), and missing padding at the end is added. After padding,
/// another piece of base64 may follow, because mailing lists append their footer in this way. Lines of plain text
/// after the last complete piece are a footer that was not encoded, and are ignored. Returns `None` if a single
/// symbol remains after the last group of four.
pub(super) fn decode_base64(body: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut stripped = Vec::with_capacity(body.len());
    if append_letters(body, &mut stripped)
        && let Ok(octets) = base64_simd::forgiving_decode_inplace(&mut stripped)
    {
        let length = octets.len();
        stripped.truncate(length);
        return Some((stripped, last_symbol(body)));
    }
    stripped.clear();
    decode_pieces(body, stripped)
}

/// Returns whether the body consists of lines of base64 symbols, with at least one symbol.
pub(super) fn is_base64(body: &[u8]) -> bool {
    let mut lines = SpanLines::new(body, Span::new(0, body.len()));
    let is_plain = lines.all(|line| {
        let line = line.content.of(body).trim_ascii();
        line.iter().all(|&byte| in_alphabet(byte))
    });
    is_plain && last_symbol(body) > 0 && decode_base64(body).is_some()
}

fn last_symbol(body: &[u8]) -> usize {
    let last = body.iter().rposition(|&byte| in_alphabet(byte));
    last.map_or(0, |last| last + 1)
}

/// Statistics of the lines after the last complete group of four symbols, to tell a plain-text footer from damaged
/// base64.
#[derive(Default)]
struct Base64Rest {
    has_symbols: bool,
    /// Whether there is a byte outside the base64 alphabet.
    has_others: bool,
    /// Whether a line has several words, or no base64 symbol at all (such as `_______`).
    has_text: bool,
}

fn decode_pieces(body: &[u8], mut octets: Vec<u8>) -> Option<(Vec<u8>, usize)> {
    let (mut group, mut symbols, mut is_broken) = (0_u32, 0, false);
    let mut complete: Option<(usize, usize)> = None;
    let mut rest = Base64Rest::default();
    let flush = |octets: &mut Vec<u8>, group: u32, symbols: u32| {
        let bits = group << (6 * (4 - symbols));
        let [_, bytes @ ..] = bits.to_be_bytes();
        octets.extend(bytes.into_iter().take(symbols as usize - 1));
    };
    for line in SpanLines::new(body, Span::new(0, body.len())) {
        let content = line.content.of(body).trim_ascii();
        let mut here = Base64Rest::default();
        for &byte in content {
            here.has_others |= !in_alphabet(byte);
            here.has_text |= matches!(byte, b' ' | b'\t');
            here.has_symbols |= in_alphabet(byte);
            match (value_of(byte), symbols) {
                (Some(value), _) => {
                    group = group << 6 | value;
                    symbols += 1;
                    if symbols == 4 {
                        flush(&mut octets, group, symbols);
                        (group, symbols) = (0, 0);
                    }
                }
                (None, 2 | 3) if byte == b'=' => {
                    flush(&mut octets, group, symbols);
                    (group, symbols) = (0, 0);
                }
                (None, 1) if byte == b'=' => is_broken = true,
                _ => {}
            }
        }
        if here.has_symbols && !here.has_others && symbols == 0 && !is_broken {
            complete = Some((octets.len(), line.content.end));
            rest = Base64Rest::default();
            continue;
        }
        rest.has_symbols |= here.has_symbols;
        rest.has_others |= here.has_others;
        rest.has_text |= here.has_text || (!here.has_symbols && here.has_others);
    }
    let is_incomplete = symbols > 0 || is_broken;
    let is_footer = rest.has_symbols && (rest.has_text || (rest.has_others && is_incomplete));
    if let Some((length, end)) = complete.filter(|_| is_footer) {
        octets.truncate(length);
        return Some((octets, last_symbol(body.get(..end)?)));
    }
    if symbols == 1 || is_broken {
        return None;
    }
    if symbols > 1 {
        flush(&mut octets, group, symbols);
    }
    Some((octets, last_symbol(body)))
}

fn value_of(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Appends the base64 symbols of all lines. Returns false if the lines contain anything else than symbols and white
/// space.
fn append_letters(body: &[u8], letters: &mut Vec<u8>) -> bool {
    let mut is_plain = true;
    for line in SpanLines::new(body, Span::new(0, body.len())) {
        let line = line.content.of(body);
        // Scans the whole line: the vectorised loop is faster than one that stops early.
        let are_all = line.iter().fold(true, |all, &byte| all & in_alphabet(byte));
        if are_all {
            letters.extend_from_slice(line);
        } else {
            let line = line.trim_ascii();
            is_plain &= line.iter().all(|&byte| in_alphabet(byte));
            letters.extend(line.iter().copied().filter(|&byte| in_alphabet(byte)));
        }
    }
    is_plain
}

/// Returns whether the byte is a base64 symbol or padding (RFC 2045 §6.8).
pub(super) fn in_alphabet(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

pub fn base64_length(octets: usize, newline: Newline) -> usize {
    let lines = octets.div_ceil(ENCODED_COLUMNS / 4 * 3);
    octets.div_ceil(3) * 4 + lines.saturating_sub(1) * newline.bytes().len()
}

pub fn append_base64(octets: &[u8], newline: Newline, body: &mut Vec<u8>) {
    push_base64(octets, ENCODED_COLUMNS, newline, |piece| {
        body.extend_from_slice(piece);
        true
    });
}

/// Encodes base64 in pieces until `sink` returns `false`. `line` is the number of columns of a line; 0 means a single line.
pub(super) fn push_base64(
    octets: &[u8],
    line: usize,
    newline: Newline,
    mut sink: impl FnMut(&[u8]) -> bool,
) -> bool {
    // Many lines are encoded at once, which is fast (SIMD), and then divided.
    const STAGED: usize = ENCODED_COLUMNS / 4 * 3 * 64;
    let mut stage = [0; STAGED / 3 * 4];
    let line = if line == 0 { usize::MAX } else { line };
    let mut room = line;
    for block in octets.chunks(STAGED) {
        let encoded = base64_simd::STANDARD.encode(block, stage.as_mut_slice().as_out());
        let mut symbols: &[u8] = encoded;
        while !symbols.is_empty() {
            if room == 0 {
                if !sink(newline.bytes()) {
                    return false;
                }
                room = line;
            }
            let (now, behind) = symbols.split_at(symbols.len().min(room));
            if !sink(now) {
                return false;
            }
            room -= now.len();
            symbols = behind;
        }
    }
    true
}
