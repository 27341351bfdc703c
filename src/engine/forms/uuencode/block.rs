//! Finds and decodes uuencoded files in a text.

use crate::span::{Span, SpanLines};

/// Start of the line that begins a block.
pub(super) const BEGIN: &[u8] = b"begin ";

pub(super) struct UuBlock {
    /// All lines of the block, with their line endings.
    pub(super) span: Span,
    /// Name of the file, in the bytes of the text.
    pub(super) name: Span,
    pub(super) bytes: Vec<u8>,
}

/// Finds the blocks of a text. The time is linear in the length of the text.
pub(super) fn blocks(text: &[u8]) -> Vec<UuBlock> {
    let mut blocks = Vec::new();
    let mut lines = SpanLines::new(text, Span::new(0, text.len())).peekable();
    while let Some(line) = lines.next() {
        let Some(at) = begins(line.content.of(text)) else {
            continue;
        };
        let name = Span::new(line.content.start + at, line.content.end);
        let start = line.whole.start;
        let mut bytes = Vec::new();
        let mut is_ended = false;
        let (mut is_short, mut has_grave) = (false, false);
        // A line that is not data may begin another block. It is not consumed here, so that the outer loop reads it.
        while let Some(next) = lines.peek() {
            let content = next.content.of(text);
            if is_ended {
                // A short data line usually lost trailing blanks, which encode zeros and can be added again. If the
                // encoder wrote grave accents instead of blanks, other data is missing, and the block is not decoded.
                let is_cut = is_short && has_grave;
                if content.trim_ascii_end() == b"end" && !is_cut {
                    let span = Span::new(start, next.whole.end);
                    blocks.push(UuBlock { span, name, bytes });
                    lines.next();
                }
                break;
            }
            match data(content, &mut bytes) {
                Some((0, _)) => is_ended = true,
                Some((_, short)) => {
                    is_short |= short;
                    has_grave |= content.contains(&b'`');
                }
                None => break,
            }
            lines.next();
        }
    }
    blocks
}

/// Returns the position of the file name if a line begins a block: `begin`, three or four octal digits, and the name.
fn begins(line: &[u8]) -> Option<usize> {
    let rest = line.strip_prefix(BEGIN)?;
    let digits = rest
        .iter()
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .count();
    let name = rest.get(digits..)?.strip_prefix(b" ")?;
    let is_fit = (3..=4).contains(&digits) && !name.trim_ascii().is_empty();
    is_fit.then(|| line.len() - name.len())
}

/// Decodes a line of data into `bytes`. Returns the number of decoded bytes, and true if symbols are missing at the end of the
/// line. Returns `None` if the line is not data.
fn data(line: &[u8], bytes: &mut Vec<u8>) -> Option<(usize, bool)> {
    let value = |byte: u8| match byte {
        b' '..=b'`' => Some((byte - b' ') & 63),
        _ => None,
    };
    // A line of data with the length 0 consists of a single blank. If the line is empty, a mail program has removed the blank.
    let Some((first, symbols)) = line.split_first() else {
        return Some((0, false));
    };
    let length = usize::from(value(*first)?);
    let wanted = length.div_ceil(3) * 4;
    // The line may be shorter than its length says, because mail programs remove blanks at the ends of lines. It may be longer
    // by one symbol, because some encoders append a checksum.
    if symbols.len() > wanted + 1 || symbols.iter().any(|byte| value(*byte).is_none()) {
        return None;
    }
    let is_short = symbols.len() < wanted;
    let start = bytes.len();
    let mut symbols = symbols.iter().copied().chain(std::iter::repeat(b' '));
    for _ in 0..length.div_ceil(3) {
        let mut group = [0; 4];
        for symbol in &mut group {
            *symbol = value(symbols.next()?)?;
        }
        let [a, b, c, d] = group;
        bytes.extend([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
    }
    bytes.truncate(start + length);
    Some((length, is_short))
}
