//! Decompresses the start of data of compress(1) (`.Z`), to see whether they contain mail.

/// Magic number of compressed data.
pub(super) const MAGIC: &[u8] = b"\x1f\x9d";

/// Code after which the table is empty again, in the mode that all programs use.
const CLEAR: usize = 256;

/// Bits of codes, of which the lowest bit of a byte is the first.
struct CodeReader<'d> {
    data: &'d [u8],
    /// Offset of the next code, in bits.
    at: usize,
    /// Offset of the first code of the current width. The codes of one width fill groups of eight codes.
    begun: usize,
    width: usize,
}

impl CodeReader<'_> {
    fn next(&mut self) -> Option<usize> {
        let mut code = 0;
        for bit in 0..self.width {
            let at = self.at + bit;
            let byte = usize::from(*self.data.get(at / 8)?);
            code |= (byte >> (at % 8) & 1) << bit;
        }
        self.at += self.width;
        Some(code)
    }

    fn widen(&mut self) {
        let group = self.width * 8;
        self.at = self.begun + (self.at - self.begun).next_multiple_of(group);
        self.begun = self.at;
        self.width += 1;
    }
}

/// Returns at least the first `wanted` bytes of the content. Stops earlier at a clear code, or at a code that is not in the
/// table, which data of another format soon contain. Returns `None` if `data` do not start like compressed data.
pub(super) fn start_of_content(data: &[u8], wanted: usize) -> Option<Vec<u8>> {
    let [flags, data @ ..] = data.strip_prefix(MAGIC)? else {
        return None;
    };
    let widest = usize::from(flags & 0x1f);
    let is_block = flags & 0x80 != 0;
    if flags & 0x60 != 0 || !(9..=16).contains(&widest) {
        return None;
    }
    let mut codes = CodeReader {
        data,
        at: 0,
        begun: 0,
        width: 9,
    };
    let first = codes.next().and_then(|code| u8::try_from(code).ok())?;
    let mut content = vec![first];
    // Strings of the codes, as ranges of the content: the string of the previous code, extended by the byte after it.
    let mut strings: Vec<(usize, usize)> = Vec::new();
    let free = CLEAR + usize::from(is_block);
    let mut before = (0, 1);
    while content.len() < wanted {
        // The decoder adds a string after each code but the first, one code later than the encoder.
        if free + strings.len() > (1 << codes.width) - 1 && codes.width < widest {
            codes.widen();
        }
        let Some(code) = codes.next() else { break };
        if is_block && code == CLEAR {
            break;
        }
        let start = content.len();
        if free + strings.len() < 1 << widest {
            strings.push((before.0, before.1 + 1));
        }
        if let Ok(byte) = u8::try_from(code) {
            content.push(byte);
        } else {
            // Other data can follow the last code. They contain a code that is not in the table.
            let string = code.checked_sub(free).and_then(|code| strings.get(code));
            let Some(&(from, to)) = string else { break };
            // The last string can contain its own last byte, so its bytes are copied one by one.
            for at in from..to {
                content.extend(content.get(at).copied());
            }
        }
        before = (start, content.len());
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_of_data_of_compress_is_decompressed() {
        // printf 'abababab' | compress
        let data = b"\x1f\x9d\x90\x61\xc4\x04\x1c\x28\x06";
        assert_eq!(start_of_content(data, 100).unwrap(), b"abababab");
        assert_eq!(start_of_content(data, 2).unwrap(), b"ab");
        for other in [
            &b"\x1f\x9d"[..],
            b"\x1f\x9d\x90",
            b"\x1f\x9d\x88aaa",
            b"\x1f\x9d\x90a\xff\xff",
            b"\x1f\x8b\x08",
        ] {
            assert_eq!(
                start_of_content(other, 100),
                None,
                "{}",
                other.escape_ascii()
            );
        }
    }
}
