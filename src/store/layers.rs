//! A file as it is and as what it encodes: base64, quoted-printable, and what is within them, piece by piece.
//!
//! For a search that must not miss anything and need not understand what it sees: no header is read, so a message
//! that is cut, quoted or attached is decoded as well as one that is in order. What is decoded besides is noise.

use memchr::memchr;

use super::uses::{LONGEST, hex};

/// Layers of base64 around a use.
const DEEPEST: usize = 16;

/// Octets that are decoded at a time.
const PIECE: usize = 64 << 10;

/// Reads a file, piece by piece, and shows it as it is and as what it encodes.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    outer: Layer,
}

impl Layers {
    /// More of the file. `visit` is shown windows that overlap by [`LONGEST`] octets, so that every use is whole in
    /// one of them; a use may be shown twice.
    pub(crate) fn push(&mut self, octets: &[u8], visit: &mut dyn FnMut(&[u8])) {
        self.outer.push(octets, visit);
    }

    /// The file ends.
    pub(crate) fn finish(&mut self, visit: &mut dyn FnMut(&[u8])) {
        self.outer.finish(visit);
        *self = Self::default();
    }
}

/// One encoding undone, or none.
#[derive(Debug, Default)]
struct Layer {
    depth: usize,
    /// Quoted-printable stands around this one or around what that stands in: it is undone once.
    under_quoted_printable: bool,
    window: Vec<u8>,
    block: Block,
    base64: Option<Box<Layer>>,
    quoted_printable: Option<Box<(SoftBreaks, Layer)>>,
}

impl Layer {
    fn within(&self, is_quoted_printable: bool) -> Self {
        Self {
            depth: self.depth + usize::from(!is_quoted_printable),
            under_quoted_printable: self.under_quoted_printable || is_quoted_printable,
            ..Self::default()
        }
    }

    fn push(&mut self, octets: &[u8], visit: &mut dyn FnMut(&[u8])) {
        self.window.extend_from_slice(octets);
        visit(&self.window);
        if !self.under_quoted_printable {
            if self.quoted_printable.is_none() && has_escapes(&self.window) {
                // What came before the first escape is the same in both.
                let layer = Box::new((SoftBreaks::default(), self.within(true)));
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
            self.block.push(octets, &mut |decoded| match decoded {
                Some(decoded) => inner.push(decoded, visit),
                None => inner.end_of_block(visit),
            });
            self.base64 = Some(inner);
        }
    }

    fn unquote(
        &mut self,
        mut layer: Box<(SoftBreaks, Self)>,
        octets: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) {
        let decoded = layer.0.push(octets);
        layer.1.push(&decoded, visit);
        self.quoted_printable = Some(layer);
    }

    /// What follows has nothing to do with what was before.
    fn end_of_block(&mut self, visit: &mut dyn FnMut(&[u8])) {
        if !self.window.is_empty() {
            self.finish(visit);
            *self = Self {
                depth: self.depth,
                under_quoted_printable: self.under_quoted_printable,
                ..Self::default()
            };
        }
    }

    fn finish(&mut self, visit: &mut dyn FnMut(&[u8])) {
        if let Some(layer) = self.quoted_printable.take() {
            let (mut breaks, mut layer) = *layer;
            let rest = breaks.rest();
            layer.push(&rest, visit);
            layer.finish(visit);
        }
        if let Some(mut inner) = self.base64.take() {
            self.block.end(&mut |decoded| match decoded {
                Some(decoded) => inner.push(decoded, visit),
                None => inner.end_of_block(visit),
            });
            inner.end_of_block(visit);
        }
    }
}

/// Whether something is there that quoted-printable (RFC 2045 §6.7) would change, and that could stand in a use.
fn has_escapes(octets: &[u8]) -> bool {
    let mut rest = octets;
    while let Some(at) = memchr(b'=', rest) {
        rest = rest.get(at + 1..).unwrap_or_default();
        match rest {
            [b'\n' | b'\r' | b' ' | b'\t', ..] => return true,
            [b'2'..=b'7', b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F', ..] => return true,
            _ => {}
        }
    }
    false
}

/// Undoes quoted-printable, piece by piece.
#[derive(Debug, Default)]
struct SoftBreaks {
    /// An escape that the piece before did not end.
    begun: Vec<u8>,
}

impl SoftBreaks {
    /// Blanks between the `=` of a soft line break and its line end.
    const MOST_BLANKS: usize = 80;

    fn push(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut joined = std::mem::take(&mut self.begun);
        joined.extend_from_slice(octets);
        let mut decoded = Vec::with_capacity(joined.len());
        let mut rest = joined.as_slice();
        while let Some(at) = memchr(b'=', rest) {
            decoded.extend_from_slice(rest.get(..at).unwrap_or_default());
            let escape = rest.get(at..).unwrap_or_default();
            let behind = escape.get(1..).unwrap_or_default();
            let blanks = behind
                .iter()
                .take(Self::MOST_BLANKS)
                .take_while(|&&b| b == b' ' || b == b'\t')
                .count();
            let used = match (behind, behind.get(blanks..).unwrap_or_default()) {
                ([high, low, ..], _) if hex(*high).is_some() && hex(*low).is_some() => {
                    let value = hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0);
                    decoded.push(value);
                    3
                }
                (_, [b'\n', ..]) => blanks + 2,
                (_, [b'\r', b'\n', ..]) => blanks + 3,
                // It may go on in the next piece.
                ([], _) | (_, [] | [b'\r']) => {
                    self.begun = escape.to_vec();
                    return decoded;
                }
                ([digit], _) if hex(*digit).is_some() => {
                    self.begun = escape.to_vec();
                    return decoded;
                }
                _ => {
                    decoded.push(b'=');
                    1
                }
            };
            rest = escape.get(used..).unwrap_or_default();
        }
        decoded.extend_from_slice(rest);
        decoded
    }

    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.begun)
    }
}

/// Finds what may be base64 (RFC 2045 §6.8): lines that start with its characters.
#[derive(Debug)]
struct Block {
    state: State,
    /// Characters that are not decoded yet.
    characters: Vec<u8>,
    /// How many there were since the block began.
    length: usize,
    /// Characters of this line.
    line: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In a line that is something else.
    Elsewhere,
    /// In a block.
    Inside,
    /// Behind what ends a block, if more characters come.
    Padding,
    /// Behind a blank in a line: if more comes, it is text.
    Blank,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            state: State::Inside,
            characters: Vec::new(),
            length: 0,
            line: 0,
        }
    }
}

impl Block {
    /// Shorter ones hold no use.
    const SHORTEST: usize = 64 * 4 / 3;

    /// Gives what is decoded to `inner`, and None where a block ends.
    fn push(&mut self, octets: &[u8], inner: &mut dyn FnMut(Option<&[u8]>)) {
        let mut rest = octets;
        while let Some((&first, behind)) = rest.split_first() {
            if self.state == State::Elsewhere {
                let Some(end) = memchr(b'\n', rest) else {
                    return;
                };
                rest = rest.get(end + 1..).unwrap_or_default();
                (self.state, self.line) = (State::Inside, 0);
                continue;
            }
            match first {
                b'\n' | b'\r' => {
                    // What follows an empty line is a body of its own, unless it can be read as more.
                    if first == b'\n' && self.line == 0 && !self.length.is_multiple_of(4) {
                        self.end(inner);
                    }
                    if first == b'\n' {
                        self.line = 0;
                    }
                    if self.state == State::Blank {
                        self.state = State::Inside;
                    }
                    rest = behind;
                }
                b' ' | b'\t' => {
                    if self.line > 0 && self.state == State::Inside {
                        self.state = State::Blank;
                    }
                    rest = behind;
                }
                b'=' if self.state != State::Blank => {
                    self.state = State::Padding;
                    rest = behind;
                }
                _ if is_base64(first) && self.state != State::Blank => {
                    if self.state == State::Padding {
                        // Several that were joined.
                        self.end(inner);
                    }
                    let run = rest.iter().take_while(|&&b| is_base64(b)).count();
                    let (run, behind) = rest.split_at_checked(run).unwrap_or((rest, &[]));
                    for piece in run.chunks(PIECE) {
                        self.characters.extend_from_slice(piece);
                        self.length += piece.len();
                        self.line += piece.len();
                        self.decode(inner);
                    }
                    rest = behind;
                }
                _ => {
                    self.end(inner);
                    self.state = State::Elsewhere;
                }
            }
        }
    }

    /// The block ends.
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

    fn decode(&mut self, inner: &mut dyn FnMut(Option<&[u8]>)) {
        if self.characters.len() >= PIECE {
            self.decode_whole(inner);
        }
    }

    fn decode_whole(&mut self, inner: &mut dyn FnMut(Option<&[u8]>)) {
        let whole = self.characters.len() / 4 * 4;
        let decoded = self
            .characters
            .get(..whole)
            .and_then(|whole| base64_simd::STANDARD.decode_to_vec(whole).ok());
        if let Some(decoded) = decoded {
            inner(Some(&decoded));
        }
        self.characters.drain(..whole);
    }
}

fn is_base64(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'+' || octet == b'/'
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::super::Key;
    use super::super::uses::keys;
    use super::*;

    fn found(octets: &[u8], piece: usize) -> Vec<Key> {
        let mut all = Vec::new();
        let mut layers = Layers::default();
        let mut visit = |window: &[u8]| keys(window, &mut |key, _, _| all.push(key));
        for piece in octets.chunks(piece) {
            layers.push(piece, &mut visit);
        }
        layers.finish(&mut visit);
        all
    }

    /// Lines of 76 characters.
    fn base64(octets: &[u8]) -> Vec<u8> {
        let text = STANDARD.encode(octets);
        let lines: Vec<&[u8]> = text.as_bytes().chunks(76).collect();
        lines.join(&b"\r\n"[..])
    }

    fn quoted(octets: &[u8], all: bool) -> Vec<u8> {
        let mut line = 0;
        let mut text = Vec::new();
        for &octet in octets {
            let plain = !all && octet != b'=' && (octet.is_ascii_graphic() || octet == b' ');
            let word = match (plain, octet) {
                (_, b'\n') => "\n".into(),
                (true, octet) => char::from(octet).to_string(),
                (false, octet) => format!("={octet:02X}"),
            };
            if line + word.len() > 75 {
                text.extend(b"=\r\n");
                line = 0;
            }
            line = if word == "\n" { 0 } else { line + word.len() };
            text.extend(word.bytes());
        }
        text
    }

    fn part(key: &Key) -> Vec<u8> {
        format!(
            "From: a@example.org\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/store/{}\"\n\nContent-Type: image/png\n\n",
            key.path()
        )
        .into_bytes()
    }

    #[test]
    fn a_use_is_found_however_it_is_written() {
        let key = Key::of(b"abc");
        let digits = key.to_string();
        let (start, end) = digits.split_at(23);
        let part = part(&key);
        let utf16: Vec<u8> = digits.bytes().flat_map(|octet| [octet, 0]).collect();
        let attached = |octets: &[u8]| {
            let mut mail = b"Subject: Fwd\nContent-Type: application/octet-stream\nContent-Transfer-Encoding: base64\n\n".to_vec();
            mail.extend(base64(octets));
            mail.extend(b"\n--b--\n");
            mail
        };
        let twice = attached(&attached(&part));
        let inside = [&vec![b'x'; 100_000][..], b"\n", &part].concat();
        for (name, octets) in [
            ("plain", part.clone()),
            ("upper case", digits.to_uppercase().into_bytes()),
            ("folded", format!("{start}\r\n {end}").into_bytes()),
            ("quoted", format!("> {start}\n> {end}").into_bytes()),
            (
                "RFC 2231",
                format!("URL*0=\"a/{start}\";\n URL*1=\"{end}\"").into_bytes(),
            ),
            (
                "RFC 2231 encoded",
                format!("URL*0*=us-ascii''a/{start};\n\turl*12*={end}").into_bytes(),
            ),
            ("among digits", format!("sha256=3D{digits}00").into_bytes()),
            ("UTF-16", utf16.clone()),
            ("soft line break", format!("{start}=\r\n{end}").into_bytes()),
            (
                "soft line break with blanks",
                format!("{start}= \n{end}").into_bytes(),
            ),
            ("quoted-printable", quoted(&part, false)),
            ("all quoted-printable", quoted(&part, true)),
            ("base64", attached(&part)),
            ("base64, a UTF-16 text", attached(&utf16)),
            ("base64 in one line", STANDARD.encode(&part).into_bytes()),
            ("base64 in base64", twice.clone()),
            ("three times", attached(&twice)),
            (
                "base64 in quoted-printable",
                quoted(&attached(&part), false),
            ),
            (
                "quoted-printable in base64",
                attached(&quoted(&part, false)),
            ),
            ("far inside", attached(&inside)),
            (
                "two joined",
                [&base64(b"x")[..], b"\r\n", &base64(&part)].concat(),
            ),
            (
                "double-spaced",
                base64(&part)
                    .split(|&b| b == b'\n')
                    .flat_map(|line| [line, b"\n\n"].concat())
                    .collect(),
            ),
            (
                "blanks behind",
                base64(&part)
                    .split(|&b| b == b'\r')
                    .flat_map(|line| [line, b" \t\r"].concat())
                    .collect(),
            ),
        ] {
            for piece in [octets.len(), 1000, 64, 7, 1] {
                assert!(found(&octets, piece).contains(&key), "{name} by {piece}");
            }
        }
    }

    #[test]
    fn what_is_no_use_is_none() {
        let key = Key::of(b"abc");
        let digits = key.to_string();
        for octets in [
            digits[1..].to_owned(),
            digits.replacen('b', "g", 1),
            format!("{}/{}", &digits[..30], &digits[30..]),
            format!("{}\nUR*1={}", &digits[..30], &digits[30..]),
        ] {
            assert_eq!(found(octets.as_bytes(), octets.len()), [], "{octets}");
        }
    }

    /// A file that is all digits, or all that may stand between, costs what its length says.
    #[test]
    fn hostile_files_cost_what_their_length_says() {
        let long = 4 << 20;
        for octets in [
            vec![b'a'; long],
            vec![b' '; long],
            b"=\n".repeat(long / 2),
            b"=3D".repeat(long / 3),
            b"a\n\n".repeat(long / 3),
            b"QUJD=\n".repeat(long / 6),
            b"url*1=".repeat(long / 6),
            b"u1".repeat(long / 2),
        ] {
            let mut seen = 0;
            let mut layers = Layers::default();
            let mut visit = |window: &[u8]| seen += window.len();
            for piece in octets.chunks(1 << 20) {
                layers.push(piece, &mut visit);
            }
            layers.finish(&mut visit);
            assert!(seen < 20 * long, "{seen}");
        }
    }

    proptest! {
        #[test]
        fn a_use_is_found_wherever_it_stands(
            before in prop::collection::vec(any::<u8>(), 0..3000),
            after in prop::collection::vec(any::<u8>(), 0..3000),
            layers in prop::collection::vec(0..3_u8, 0..4),
            piece in 1..5000_usize,
        ) {
            let key = Key::of(&before);
            let mut octets = [&before[..], b"\n/", key.to_string().as_bytes(), b"\n", &after].concat();
            let mut printable = 0;
            for layer in layers {
                octets = match layer {
                    // Quoted-printable is undone once.
                    0 if printable == 0 => {
                        printable += 1;
                        quoted(&octets, false)
                    }
                    _ => [b"Content-Transfer-Encoding: base64\n\n", &base64(&octets)[..], b"\n--b--"].concat(),
                };
            }
            prop_assert!(found(&octets, piece).contains(&key));
        }
    }
}
