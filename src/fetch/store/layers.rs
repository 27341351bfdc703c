//! Passes a file to a search piece by piece, both as it is and decoded: from base64, from quoted-printable, and from base64
//! inside them.
//!
//! The search must not miss anything, so no header is read: truncated, quoted and attached messages are decoded, too.

use super::uses::LONGEST;
use crate::mime::quoted_printable::Sign;
use crate::span::split_once;

const DEEPEST: usize = 16;

const PIECE: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Layers {
    depth: usize,
    /// Whether quoted-printable was already decoded, in this layer or an outer one. It is not decoded twice.
    under_quoted_printable: bool,
    window: Vec<u8>,
    block: Base64Block,
    base64: Option<Box<Layers>>,
    quoted_printable: Option<Box<(Vec<u8>, Layers)>>,
}

impl Layers {
    fn within(&self, is_quoted_printable: bool) -> Self {
        Self {
            depth: self.depth + usize::from(!is_quoted_printable),
            under_quoted_printable: self.under_quoted_printable || is_quoted_printable,
            ..Self::default()
        }
    }

    /// Adds bytes. Calls `visit` with windows that overlap by [`LONGEST`] bytes, so that each reference is complete in one of
    /// them. A reference in the overlap is visited twice.
    pub(crate) fn push(&mut self, octets: &[u8], visit: &mut dyn FnMut(&[u8])) {
        self.window.extend_from_slice(octets);
        visit(&self.window);
        if !self.under_quoted_printable {
            if self.quoted_printable.is_none() && has_escapes(&self.window) {
                // Decoding changes nothing before the first escape sequence, so it starts at the first window that has
                // one.
                let layer = Box::new((Vec::new(), self.within(true)));
                self.unquote(layer, &self.window.clone(), visit);
            } else if let Some(layer) = self.quoted_printable.take() {
                self.unquote(layer, octets, visit);
            }
        }
        let old = self.window.len().saturating_sub(LONGEST);
        self.window.drain(..old);
        if self.depth < DEEPEST {
            let mut inner = self
                .base64
                .take()
                .unwrap_or_else(|| Box::new(self.within(false)));
            let show = &mut |decoded: Option<&[u8]>| inner.show(decoded, visit);
            self.block.push(octets, show);
            self.base64 = Some(inner);
        }
    }

    fn unquote(
        &mut self,
        mut layer: Box<(Vec<u8>, Self)>,
        octets: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) {
        let decoded = unquoted(&mut layer.0, octets);
        layer.1.push(&decoded, visit);
        self.quoted_printable = Some(layer);
    }

    fn show(&mut self, decoded: Option<&[u8]>, visit: &mut dyn FnMut(&[u8])) {
        match decoded {
            Some(decoded) => self.push(decoded, visit),
            None => self.finish(visit),
        }
    }

    pub(crate) fn finish(&mut self, visit: &mut dyn FnMut(&[u8])) {
        if self.window.is_empty() {
            return;
        }
        if let Some(layer) = self.quoted_printable.take() {
            let (begun, mut layer) = *layer;
            layer.push(&begun, visit);
            layer.finish(visit);
        }
        if let Some(mut inner) = self.base64.take() {
            self.block.end(&mut |decoded| inner.show(decoded, visit));
            inner.finish(visit);
        }
        *self = Self {
            depth: self.depth,
            under_quoted_printable: self.under_quoted_printable,
            ..Self::default()
        };
    }
}

/// Returns whether the bytes contain an escape sequence of quoted-printable (RFC 2045 §6.7) that can occur in a reference.
fn has_escapes(octets: &[u8]) -> bool {
    let mut rest = octets;
    while let Some((_, behind)) = split_once(b'=', rest) {
        rest = behind;
        match rest {
            [b'\n' | b'\r' | b' ' | b'\t', ..] => return true,
            [b'2'..=b'7', b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..] => return true,
            _ => {}
        }
    }
    false
}

fn unquoted(begun: &mut Vec<u8>, octets: &[u8]) -> Vec<u8> {
    let mut joined = std::mem::take(begun);
    joined.extend_from_slice(octets);
    let mut decoded = Vec::with_capacity(joined.len());
    let mut rest = joined.as_slice();
    while let Some((before, behind)) = split_once(b'=', rest) {
        decoded.extend_from_slice(before);
        let (sign, after) = Sign::read(behind);
        match sign {
            Sign::Escape(octet) => decoded.push(octet),
            Sign::SoftBreak => {}
            Sign::Bare if may_go_on(behind) => {
                *begun = [b"=", behind].concat();
                return decoded;
            }
            Sign::Bare => decoded.push(b'='),
        }
        rest = after;
    }
    decoded.extend_from_slice(rest);
    decoded
}

fn may_go_on(behind: &[u8]) -> bool {
    const MOST_BLANKS: usize = 80;
    let is_blank = |octet: &&u8| matches!(octet, b' ' | b'\t');
    let blanks = behind.iter().take_while(is_blank).count();
    let is_break = blanks <= MOST_BLANKS && matches!(behind.get(blanks..), Some([] | [b'\r']));
    is_break || matches!(behind, [digit] if digit.is_ascii_hexdigit())
}

/// Finds blocks of consecutive lines that begin with characters of base64 (RFC 2045 §6.8), and decodes them.
#[derive(Debug, Default)]
struct Base64Block {
    state: Base64State,
    characters: Vec<u8>,
    length: usize,
    line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Base64State {
    Elsewhere,
    #[default]
    Inside,
    /// Padding was read, so the base64 text is complete. Characters that follow begin another block.
    Padding,
    Blank,
}

impl Base64Block {
    /// Minimum length of a block in characters. The 64 digits of a reference need this many characters of base64.
    const SHORTEST: usize = 64 * 4 / 3;

    fn push(&mut self, octets: &[u8], inner: &mut dyn FnMut(Option<&[u8]>)) {
        let mut rest = octets;
        while let Some((&first, behind)) = rest.split_first() {
            if self.state == Base64State::Elsewhere {
                let Some((_, behind)) = split_once(b'\n', rest) else {
                    return;
                };
                rest = behind;
                (self.state, self.line) = (Base64State::Inside, 0);
                continue;
            }
            match first {
                b'\n' | b'\r' => {
                    // An empty line usually separates two bodies. If the last group of four characters is incomplete, the
                    // block ends here. Otherwise the same block may continue after the line.
                    if first == b'\n' && self.line == 0 && !self.length.is_multiple_of(4) {
                        self.end(inner);
                    }
                    if first == b'\n' {
                        self.line = 0;
                    }
                    if self.state == Base64State::Blank {
                        self.state = Base64State::Inside;
                    }
                    rest = behind;
                }
                b' ' | b'\t' => {
                    if self.line > 0 && self.state == Base64State::Inside {
                        self.state = Base64State::Blank;
                    }
                    rest = behind;
                }
                b'=' if self.state != Base64State::Blank => {
                    self.state = Base64State::Padding;
                    rest = behind;
                }
                _ if is_base64(first) && self.state != Base64State::Blank => {
                    if self.state == Base64State::Padding {
                        self.end(inner);
                    }
                    let run = rest.iter().take_while(|&&b| is_base64(b)).count();
                    let (run, behind) = rest.split_at_checked(run).unwrap_or((rest, &[]));
                    for piece in run.chunks(PIECE) {
                        self.characters.extend_from_slice(piece);
                        self.length += piece.len();
                        self.line += piece.len();
                        if self.characters.len() >= PIECE {
                            self.decode_whole(inner);
                        }
                    }
                    rest = behind;
                }
                _ => {
                    self.end(inner);
                    self.state = Base64State::Elsewhere;
                }
            }
        }
    }

    fn end(&mut self, inner: &mut dyn FnMut(Option<&[u8]>)) {
        if self.length >= Self::SHORTEST {
            self.decode_whole(inner);
            let rest = std::mem::take(&mut self.characters);
            if let Ok(decoded) = base64_simd::forgiving_decode_to_vec(&rest) {
                inner(Some(&decoded));
            }
            inner(None);
        }
        *self = Self::default();
    }

    fn decode_whole(&mut self, inner: &mut dyn FnMut(Option<&[u8]>)) {
        let length = self.characters.len() / 4 * 4;
        let (whole, _) = self.characters.split_at(length);
        if let Ok(decoded) = base64_simd::STANDARD.decode_to_vec(whole) {
            inner(Some(&decoded));
        }
        self.characters.drain(..length);
    }
}

fn is_base64(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'+' || octet == b'/'
}

#[cfg(test)]
mod tests;
