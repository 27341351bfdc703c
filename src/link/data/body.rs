//! Decodes the data of a `data:` URL. If the data contains no white space, the crate base64-simd is four times as fast as
//! the crate base64. But base64-simd removes white space byte by byte, which is slow. Therefore this module collects
//! symbols without white space in a buffer, the stage, and base64-simd decodes the buffer.

use crate::span::front;
use base64_simd::{STANDARD_NO_PAD, forgiving_decode_inplace};
use memchr::memchr;

/// Size of the stage (the buffer of symbols), in symbols. It fits into the first-level cache and into the stack of a
/// small thread. It is a multiple of four, because four symbols are decoded together.
const STAGE: usize = 4096;

/// Number of bytes that are copied into the stage (the buffer of symbols) at a time. A line of base64 in mail or a word
/// of a folded URL (RFC 2017) is not longer.
const BLOCK: usize = 80;

/// Maximum number of symbols that are decoded directly from the URL, without copying them to the stage (the buffer of
/// symbols). If a `%` or a space is among them, this fails and they are decoded a second time. A larger number would
/// waste more work then.
const STRETCH: usize = 16 * STAGE;

/// Decodes forgiving-base64. First assumes that white space occurs only around line endings, where folding puts it, so
/// that lines need not be searched for it. At the first byte that is not a symbol, a slower decoder takes over, which
/// accepts white space and escapes everywhere.
pub(super) fn decode_base64(body: &[u8], content: &mut Vec<u8>) -> Option<()> {
    let mut stage = SymbolBuffer {
        symbols: [0; STAGE + BLOCK],
        length: 0,
    };
    match decode_lines(body, &mut stage, content) {
        Ok(()) => Some(()),
        Err(rest) => decode_pieces(rest, &mut stage, content),
    }
}

fn decode_lines<'a>(
    body: &'a [u8],
    stage: &mut SymbolBuffer,
    content: &mut Vec<u8>,
) -> Result<(), &'a [u8]> {
    let mut rest = skip_folding(body);
    let mut word = 0;
    loop {
        let undecoded = rest;
        stage.length = 0;
        while !rest.is_empty() && stage.length < STAGE {
            let reach = match stage.length {
                0 => STRETCH,
                length => STAGE - length,
            };
            // The search is limited to the symbols that are decoded next. Otherwise, one very long line would be
            // searched to its end again and again.
            let ahead = front(rest, reach);
            // Words of a folded URL usually have the same length, so the next space is expected at the same distance.
            // If the guess is wrong, the word contains a space, the decoder rejects it, and `decode_pieces` decodes the
            // rest.
            if !ahead.get(word).is_some_and(|byte| is_folding(*byte)) {
                let line = memchr(b'\n', ahead).and_then(|end| ahead.get(..end));
                let mut octets = line.unwrap_or(ahead).iter();
                let last = octets.rposition(|octet| !is_folding(*octet));
                word = last.map_or(0, |last| last + 1);
            }
            if stage.length == 0 && word > STAGE {
                // The last one to four symbols may be padding, which the fast decoder does not accept, so the stage
                // gets them.
                let (symbols, behind) = rest.split_at((word - 1) / 4 * 4);
                decode_whole(symbols, content).ok_or(undecoded)?;
                rest = behind;
                break;
            }
            // The loop always advances: `rest` begins with a symbol, and the stage has room for at least one symbol.
            let taken = stage.take(rest, word);
            rest = skip_folding(&rest[taken..]);
        }
        if rest.is_empty() {
            return stage.finish(content).ok_or(undecoded);
        }
        stage.flush(content).ok_or(undecoded)?;
    }
}

fn decode_pieces(body: &[u8], stage: &mut SymbolBuffer, content: &mut Vec<u8>) -> Option<()> {
    stage.length = 0;
    for mut symbols in pieces(body) {
        // Base64 ignores white space even if it is percent-encoded. `pieces` returns such white space, because it is
        // data in other `data:` URLs.
        if matches!(symbols, [octet] if octet.is_ascii_whitespace()) {
            continue;
        }
        while !symbols.is_empty() {
            if stage.length == STAGE {
                stage.flush(content)?;
            }
            let taken = stage.take(symbols, symbols.len());
            symbols = &symbols[taken..];
        }
    }
    stage.finish(content)
}

/// Decodes symbols without padding, whose number must be a multiple of four.
fn decode_whole(symbols: &[u8], content: &mut Vec<u8>) -> Option<()> {
    STANDARD_NO_PAD.decode_append(symbols, content).ok()
}

/// Buffer for symbols. The decoder is only fast if it gets many symbols at once.
struct SymbolBuffer {
    symbols: [u8; STAGE + BLOCK],
    length: usize,
}

impl SymbolBuffer {
    fn take(&mut self, symbols: &[u8], count: usize) -> usize {
        let count = count.min(STAGE - self.length).min(symbols.len());
        let end = self.length + count;
        // A copy of a fixed length is faster than a copy of a variable length, which matters for words of 40 bytes. The
        // bytes after `count` are overwritten by the next copy, or are unused.
        let free = self.symbols.get_mut(self.length..);
        if let Some(free) = free.and_then(<[u8]>::first_chunk_mut::<BLOCK>)
            && let Some(block) = symbols.first_chunk::<BLOCK>()
            && count <= BLOCK
        {
            *free = *block;
        } else if let (Some(free), Some(symbols)) =
            (self.symbols.get_mut(self.length..end), symbols.get(..count))
        {
            free.copy_from_slice(symbols);
        }
        self.length = end;
        count
    }

    fn flush(&mut self, content: &mut Vec<u8>) -> Option<()> {
        let symbols = self.symbols.get(..self.length)?;
        self.length = 0;
        decode_whole(symbols, content)
    }

    fn finish(&mut self, content: &mut Vec<u8>) -> Option<()> {
        let symbols = self.symbols.get_mut(..self.length)?;
        let last = forgiving_decode_inplace(symbols).ok()?;
        content.extend_from_slice(last);
        Some(())
    }
}

/// Table of all byte values, so that the byte of an escape such as `%41` can be returned as a slice, like the rest of
/// the URL.
static OCTETS: [u8; 256] = {
    let mut octets = [0; 256];
    let mut octet = 0;
    while octet < octets.len() {
        octets[octet] = octet as u8;
        octet += 1;
    }
    octets
};

/// Returns the data up to the fragment, as slices. White space between them is left out. The byte of a `%xx` is a slice
/// of its own. An invalid escape is kept as it is.
pub(super) fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        rest = skip_folding(rest);
        let (first, behind) = rest.split_first()?;
        match first {
            b'#' => None,
            b'%' => {
                let (octet, behind) = escaped(behind).unwrap_or((b'%', behind));
                rest = behind;
                OCTETS.get(usize::from(octet)..=usize::from(octet))
            }
            _ => {
                let length = run_length(rest).max(1);
                let (run, after) = rest.split_at_checked(length)?;
                rest = after;
                Some(run)
            }
        }
    })
}

/// Returns the number of bytes before the first control character, space, `#` or `%`. memchr cannot search for so many
/// different bytes. Instead, blocks of 16 bytes are tested as a whole, for which the compiler uses vector instructions.
fn run_length(bytes: &[u8]) -> usize {
    let ends_run = |byte: &u8| matches!(byte, b'\0'..=b' ' | b'#' | b'%');
    let mut length = 0;
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        if block
            .iter()
            .fold(false, |found, byte| found | ends_run(byte))
        {
            let within = block.iter().take_while(|byte| !ends_run(byte)).count();
            return length + within;
        }
        length += block.len();
    }
    length + tail.iter().take_while(|byte| !ends_run(byte)).count()
}

/// Returns whether the byte is white space from folding a parameter, which is not part of the URL (RFC 2017 §3.1).
pub(super) fn is_folding(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

pub(super) fn skip_folding(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_folding(*first)
    {
        bytes = rest;
    }
    bytes
}

/// Returns the byte of an escape, and the data after its two digits. The digits may have white space between them, which
/// the crate percent-encoding does not accept.
fn escaped(behind: &[u8]) -> Option<(u8, &[u8])> {
    let mut rest = behind;
    let mut octet = 0;
    for _ in 0..2 {
        let (digit, after) = skip_folding(rest).split_first()?;
        let value = char::from(*digit).to_digit(16)?;
        octet = octet << 4 | u8::try_from(value).ok()?;
        rest = after;
    }
    Some((octet, rest))
}
