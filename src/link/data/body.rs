//! The octets of a `data:` URL. base64-simd takes a quarter of the time of base64 on one line; its own white space
//! removal goes byte by byte, hence the stage in here.

use base64_simd::{STANDARD_NO_PAD, forgiving_decode_inplace};
use memchr::memchr;

/// Small enough for the first-level cache and for a thread with a small stack; a multiple of four.
const STAGE: usize = 4096;

/// A word of RFC 2017 or a line of base64 in mail.
const BLOCK: usize = 80;

/// Where symbols need no collecting: bounds what is decoded twice when a `%` or a blank turns up in the middle.
const STRETCH: usize = 16 * STAGE;

/// Forgiving-base64, first on the assumption that white space stands only around line ends, as folding puts it, and
/// without looking inside the lines: the decoder refuses whatever is no symbol. Then the rest is walked piece by piece.
pub(super) fn decode_base64(body: &[u8], content: &mut Vec<u8>) -> Option<()> {
    let mut stage = Stage {
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
    stage: &mut Stage,
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
            // The limit keeps one endless line from being searched again for each stage.
            let ahead = rest.get(..reach).unwrap_or(rest);
            // Folded words usually have the same length, so the next blank is expected at the same distance as the last
            // one. If there is another blank before it, the decoder refuses the word, and `decode_pieces` decodes the rest.
            if !ahead.get(word).is_some_and(|byte| is_folding(*byte)) {
                let line = memchr(b'\n', ahead).and_then(|end| ahead.get(..end));
                let mut octets = line.unwrap_or(ahead).iter();
                let last = octets.rposition(|octet| !is_folding(*octet));
                word = last.map_or(0, |last| last + 1);
            }
            if stage.length == 0 && word > STAGE {
                // The last symbols are left out, because they may be padding.
                let symbols = rest.get(..(word - 1) / 4 * 4).unwrap_or_default();
                decode_whole(symbols, content).ok_or(undecoded)?;
                rest = rest.get(symbols.len()..).unwrap_or_default();
                break;
            }
            // This is never empty: a symbol comes first, and the stage has space.
            let taken = stage.take(rest, word);
            rest = skip_folding(rest.get(taken..).unwrap_or_default());
        }
        if rest.is_empty() {
            return stage.finish(content).ok_or(undecoded);
        }
        stage.flush(content).ok_or(undecoded)?;
    }
}

fn decode_pieces(body: &[u8], stage: &mut Stage, content: &mut Vec<u8>) -> Option<()> {
    stage.length = 0;
    for mut symbols in pieces(body) {
        // White space that was escaped, and form feeds, are ignored in base64 only.
        if matches!(symbols, [octet] if octet.is_ascii_whitespace()) {
            continue;
        }
        while !symbols.is_empty() {
            if stage.length == STAGE {
                stage.flush(content)?;
            }
            let taken = stage.take(symbols, symbols.len());
            symbols = symbols.get(taken..).unwrap_or_default();
        }
    }
    stage.finish(content)
}

/// Takes a multiple of four symbols, without padding.
fn decode_whole(symbols: &[u8], content: &mut Vec<u8>) -> Option<()> {
    STANDARD_NO_PAD.decode_append(symbols, content).ok()
}

/// Symbols wait until there are enough for the decoder to run at speed.
struct Stage {
    symbols: [u8; STAGE + BLOCK],
    length: usize,
}

impl Stage {
    fn take(&mut self, symbols: &[u8], count: usize) -> usize {
        let count = count.min(STAGE - self.length).min(symbols.len());
        let end = self.length + count;
        // A copy of fixed length is a few moves, one of any length is a call, which counts for words of 40. Symbols
        // copied too much are overwritten later, or lie in the slack.
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

/// Every octet at its own place: what an escape stands for is a slice of it.
static OCTETS: [u8; 256] = {
    let mut octets = [0; 256];
    let mut octet = 0;
    while octet < octets.len() {
        octets[octet] = octet as u8;
        octet += 1;
    }
    octets
};

/// Ends at the fragment; white space goes, bad escapes stay. Escapes and controls come one by one.
pub(super) fn pieces(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    std::iter::from_fn(move || {
        rest = skip_folding(rest);
        let (first, behind) = rest.split_first()?;
        match first {
            b'#' => None,
            b'%' => {
                let (octet, length) = escaped(behind).unwrap_or((b'%', 0));
                rest = behind.get(length..).unwrap_or_default();
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

/// Up to the first control, blank, `#` or `%`. Six needles are too many for memchr, and two searches a word too slow.
/// Blocks are asked as a whole, which the compiler does in vectors, then the octets of the block that has one.
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

/// White space of a folded parameter is no part of a URL (RFC 2017 §3.1).
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

/// Also the length of the digits with the white space between, which the percent-encoding crate does not take.
fn escaped(behind: &[u8]) -> Option<(u8, usize)> {
    let mut rest = behind;
    let mut octet = 0;
    for _ in 0..2 {
        let (digit, after) = skip_folding(rest).split_first()?;
        let value = char::from(*digit).to_digit(16)?;
        octet = octet << 4 | u8::try_from(value).ok()?;
        rest = after;
    }
    Some((octet, behind.len() - rest.len()))
}
