//! `data:` URLs: RFC 2397, read with the algorithm of WHATWG Fetch (§data: URL processor), which is
//! where Sapin's draft ended up.
//!
//! A [`DataUrl`] borrows the URL as the mail had it, folded words and all; nothing is copied until
//! [`DataUrl::decode`], which allocates the body once. This module fetches nothing, judges no
//! policy but the limit it is given, and writes no header field: it hands out decoded pairs.
//!
//! The questions that Sapin's draft left open, and the answers here:
//!
//! * *A comma in a quoted string?* The first comma splits, quoted or not (Fetch): of
//!   `text/plain;foo="bar,baz";charset=utf8,body` the data is `baz";charset=utf8,body`.
//! * *How strictly does `;base64` match?* It must end the media type, in any case, white space
//!   ignored; `%62ase64` is not it.
//! * *Which base64 is invalid?* WHATWG's forgiving-base64 decides, after percent-decoding: white
//!   space is ignored, every other byte outside the alphabet is a failure, so is a lone last symbol.
//! * *The URL and filename safe alphabet, or a mix?* A failure, both.
//! * *Padding?* None at all or exactly the right amount; bits left over are dropped.
//! * *The query?* `?` is a byte of the data like any other; only a fragment is cut.
//! * *No media type?* `text/plain;charset=US-ASCII`; parameters alone belong to `text/plain`. A
//!   media type that cannot be read counts as none.
//! * *A length limit?* None but the caller's.
//!
//! Deviations from Fetch, all wanted by the mail documents:
//!
//! 1. Space, TAB, CR and LF are removed wherever they stand, also inside an escape (RFC 2017 §3.1:
//!    white space in the parameter is not part of the URL). Fetch keeps a space, so that
//!    `data:,A brief note` gives `Abriefnote` here. A URL has no spaces of its own: they are `%20`.
//! 2. `%xx` in type, subtype, parameter names and values is decoded (RFC 2397 §3), unless the result
//!    could not stand there: a name that is no token, a value with controls or not UTF-8. Those
//!    keep their escapes, so that no line end can get into a header this way.
//! 3. The URL parser in front of Fetch's algorithm is not run: `//host:port/` and dot segments are
//!    text like any other, where it would judge or remove them.
//! 4. Parameters beyond the [`MAX_PARAMETERS`]th are dropped.

mod media_type;

use std::borrow::Cow;

use base64_simd::{STANDARD_NO_PAD, forgiving_decode_inplace};
use memchr::{memchr, memchr2};
use percent_encoding::percent_encode_byte;

pub use self::media_type::{MAX_PARAMETERS, MediaTypeText, Origin};

/// Symbols collected before they are decoded. Small enough for the first-level cache and for a
/// thread with a small stack; a multiple of four.
const STAGE: usize = 4096;

/// Octets copied at once: a word of RFC 2017 or a line of base64 in mail.
const BLOCK: usize = 80;

/// Symbols decoded at once where they need no collecting: bounds what is decoded twice when a
/// `%` or a blank turns up in the middle.
const STRETCH: usize = 16 * STAGE;

/// Why a `data:` URL gave no content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataUrlError {
    /// The scheme is another one.
    #[error("not a data: URL")]
    NotADataUrl,
    /// Nothing separates the media type from the data (the fragment does not count).
    #[error("data: URL without a comma")]
    NoComma,
    /// The data is not forgiving-base64.
    #[error("data: URL with invalid base64")]
    InvalidBase64,
    /// The decoded content would be larger than the limit.
    #[error("data: URL of {size} octets, above the limit of {limit}")]
    TooLarge {
        /// Octets after decoding.
        size: u64,
        /// The limit given to [`DataUrl::decode`].
        limit: u64,
    },
}

/// How the data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Percent-escaped octets.
    Percent,
    /// `;base64`: base64 symbols, which may themselves be percent-escaped.
    Base64,
}

/// A `data:` URL taken apart, its data not yet decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataUrl<'a> {
    declared: Cow<'a, str>,
    encoding: Encoding,
    /// Everything behind the comma, white space and fragment included.
    body: &'a [u8],
}

impl<'a> DataUrl<'a> {
    /// Splits `url` at its first comma. Time is linear in what stands before the comma.
    ///
    /// `url` is the URL or the raw content of a folded parameter, with its blanks and line ends;
    /// surrounding controls and blanks are ignored, quotes and `<>` are the caller's to remove.
    ///
    /// # Errors
    /// [`DataUrlError::NotADataUrl`] and [`DataUrlError::NoComma`].
    pub fn parse(url: &'a [u8]) -> Result<Self, DataUrlError> {
        let after_colon = strip_scheme(trim_controls(url)).ok_or(DataUrlError::NotADataUrl)?;
        let (header, body) = match memchr2(b',', b'#', after_colon) {
            Some(at) => match after_colon.split_at(at) {
                (header, [b',', body @ ..]) => (header, body),
                _ => return Err(DataUrlError::NoComma),
            },
            None => return Err(DataUrlError::NoComma),
        };
        let declared = header_text(header);
        let (declared, encoding) = match without_base64_suffix(&declared) {
            None => (declared, Encoding::Percent),
            Some(length) => (truncated(declared, length), Encoding::Base64),
        };
        Ok(Self {
            declared,
            encoding,
            body,
        })
    }

    /// What stands before the comma, `;base64` and white space removed; octets that a URL cannot
    /// hold are percent-escaped. Empty if there is nothing.
    #[must_use]
    pub fn declared(&self) -> &str {
        &self.declared
    }

    /// How the data is written.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The media type, with RFC 2397's defaults filled in and `%xx` decoded (deviation 2).
    #[must_use]
    pub fn media_type(&self) -> MediaTypeText {
        MediaTypeText::of_data_url(&self.declared)
    }

    /// Whether the URL itself names a type: one that does not, or that names none that can be read,
    /// agrees with whatever the phantom header declares.
    #[must_use]
    pub fn essence_declared(&self) -> bool {
        self.media_type().origin() == Origin::Declared
    }

    /// An upper bound of the decoded size in octets, without looking at the data.
    ///
    /// White space, escapes, padding and a fragment make the true size smaller; folding in words
    /// of 40 alone by a fifteenth.
    #[must_use]
    pub fn decoded_len_estimate(&self) -> u64 {
        let length = self.body.len() as u64;
        match self.encoding {
            Encoding::Percent => length,
            Encoding::Base64 => decoded_from(length),
        }
    }

    /// The decoded size in octets, exact if the data is valid; reads the data, allocates nothing.
    #[must_use]
    pub fn decoded_len(&self) -> u64 {
        let pieces = Pieces::of(self.body);
        match self.encoding {
            Encoding::Percent => pieces.map(|piece| piece.as_slice().len() as u64).sum(),
            Encoding::Base64 => decoded_from(
                pieces
                    .map(|piece| {
                        let symbols = piece.as_slice().iter();
                        symbols
                            .filter(|byte| **byte != b'=' && !byte.is_ascii_whitespace())
                            .count() as u64
                    })
                    .sum(),
            ),
        }
    }

    /// The content. One allocation, of [`decoded_len_estimate`](Self::decoded_len_estimate) octets
    /// at most; pages that white space made superfluous are never touched.
    ///
    /// Size is judged first: what is above `limit` octets is neither allocated nor decoded.
    ///
    /// base64-simd decodes: in `benches/data_url.rs` it takes a quarter of the time of base64 on
    /// one line. Its own white space removal goes byte by byte, hence the stage in here.
    ///
    /// # Errors
    /// [`DataUrlError::TooLarge`] and [`DataUrlError::InvalidBase64`].
    pub fn decode(&self, limit: u64) -> Result<Vec<u8>, DataUrlError> {
        let mut capacity = self.decoded_len_estimate();
        if capacity > limit {
            capacity = self.decoded_len();
            if capacity > limit {
                let size = capacity;
                return Err(DataUrlError::TooLarge { size, limit });
            }
        }
        // Never above the length of a slice that is in memory, so the conversion holds.
        let mut content = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        match self.encoding {
            Encoding::Percent => {
                for piece in Pieces::of(self.body) {
                    content.extend_from_slice(piece.as_slice());
                }
            }
            Encoding::Base64 => decode_base64(self.body, &mut content)?,
        }
        Ok(content)
    }
}

/// Octets in `symbols` base64 symbols; the bits of an incomplete octet are dropped.
fn decoded_from(symbols: u64) -> u64 {
    symbols / 4 * 3 + symbols % 4 * 3 / 4
}

/// The white space of a folded header parameter, which is no part of a URL (RFC 2017 §3.1).
fn is_folding(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn skip_folding(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_folding(*first)
    {
        bytes = rest;
    }
    bytes
}

fn trim_folding_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., last] = bytes
        && is_folding(*last)
    {
        bytes = rest;
    }
    bytes
}

/// The URL parser's first step: "C0 control or space" goes at both ends.
fn trim_controls(mut url: &[u8]) -> &[u8] {
    while let [b'\0'..=b' ', rest @ ..] | [rest @ .., b'\0'..=b' '] = url {
        url = rest;
    }
    url
}

fn strip_scheme(url: &[u8]) -> Option<&[u8]> {
    let mut rest = url;
    for expected in b"data:" {
        let (first, behind) = skip_folding(rest).split_first()?;
        if first.to_ascii_lowercase() != *expected {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

/// The media type as the URL parser would show it: without white space, with controls and non-ASCII
/// octets escaped, and behind a `?` what may not stand in a query. Borrowed if nothing is to do.
fn header_text(header: &[u8]) -> Cow<'_, str> {
    if header
        .iter()
        .all(|byte| matches!(byte, b'!'..=b'~') && *byte != b'?')
        && let Ok(text) = str::from_utf8(header)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(header.len());
    let mut in_query = false;
    for &byte in header {
        match byte {
            _ if is_folding(byte) => {}
            b'"' | b'<' | b'>' if in_query => text.push_str(percent_encode_byte(byte)),
            b'!'..=b'~' => {
                in_query |= byte == b'?';
                text.push(char::from(byte));
            }
            _ => text.push_str(percent_encode_byte(byte)),
        }
    }
    Cow::Owned(text)
}

/// Where the media type ends if `;base64` follows it.
fn without_base64_suffix(text: &str) -> Option<usize> {
    let at = text.len().checked_sub(";base64".len())?;
    let suffix = text.as_bytes().get(at..)?;
    suffix.eq_ignore_ascii_case(b";base64").then_some(at)
}

fn truncated(text: Cow<'_, str>, length: usize) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..length).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.truncate(length);
            Cow::Owned(text)
        }
    }
}

/// Decodes forgiving-base64 at the end of `content`, which has room for it.
///
/// First on the assumption that white space stands only around line ends, as folding puts it, and
/// without looking inside the lines: the decoder refuses whatever is no symbol. At the first
/// refusal the rest is walked piece by piece.
fn decode_base64(body: &[u8], content: &mut Vec<u8>) -> Result<(), DataUrlError> {
    let mut stage = Stage::default();
    match decode_lines(body, &mut stage, content) {
        Ok(()) => Ok(()),
        Err(rest) => decode_pieces(rest, &mut stage, content).ok_or(DataUrlError::InvalidBase64),
    }
}

/// # Errors
/// The part of `body` of which nothing has been decoded yet.
fn decode_lines<'a>(
    body: &'a [u8],
    stage: &mut Stage,
    content: &mut Vec<u8>,
) -> Result<(), &'a [u8]> {
    let mut rest = skip_folding(body);
    let mut word = 0;
    loop {
        let undecoded = rest;
        stage.clear();
        while !rest.is_empty() && !stage.is_full() {
            let reach = if stage.is_empty() {
                STRETCH
            } else {
                stage.room()
            };
            // The limit keeps one endless line from being searched again for each stage.
            let ahead = rest.get(..reach).unwrap_or(rest);
            // Folding makes words of one length: look for the blank behind the next one there
            // first. Should another stand before it, the decoder will refuse it.
            if !ahead.get(word).is_some_and(|byte| is_folding(*byte)) {
                let line = memchr(b'\n', ahead).and_then(|end| ahead.get(..end));
                word = trim_folding_end(line.unwrap_or(ahead)).len();
            }
            if stage.is_empty() && word > STAGE {
                // All but the last symbols, which may be padding.
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
    stage.clear();
    for piece in Pieces::of(body) {
        let mut symbols = match &piece {
            // White space that was escaped, and form feeds, are ignored in base64 only.
            Piece::Octet([octet]) if octet.is_ascii_whitespace() => continue,
            piece => piece.as_slice(),
        };
        while !symbols.is_empty() {
            if stage.is_full() {
                stage.flush(content)?;
            }
            let taken = stage.take(symbols, symbols.len());
            symbols = symbols.get(taken..).unwrap_or_default();
        }
    }
    stage.finish(content)
}

/// Decodes a multiple of four symbols; padding is none.
fn decode_whole(symbols: &[u8], content: &mut Vec<u8>) -> Option<()> {
    STANDARD_NO_PAD.decode_append(symbols, content).ok()
}

/// Symbols waiting until there are enough for the decoder to run at speed.
struct Stage {
    symbols: [u8; STAGE + BLOCK],
    length: usize,
}

impl Default for Stage {
    fn default() -> Self {
        Self {
            symbols: [0; STAGE + BLOCK],
            length: 0,
        }
    }
}

impl Stage {
    fn clear(&mut self) {
        self.length = 0;
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn is_full(&self) -> bool {
        self.length == STAGE
    }

    fn room(&self) -> usize {
        STAGE - self.length
    }

    /// Copies the first `count` of `symbols`, or as many as there is room for, and says how many.
    fn take(&mut self, symbols: &[u8], count: usize) -> usize {
        let count = count.min(self.room()).min(symbols.len());
        let end = self.length + count;
        // A copy of fixed length is a few moves, one of any length is a call, which counts for
        // words of 40. What is copied too much is overwritten later, or lies in the slack.
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

    /// Decodes what is here while more is to come: whole quanta, without padding.
    fn flush(&mut self, content: &mut Vec<u8>) -> Option<()> {
        let symbols = self.symbols.get(..self.length)?;
        self.length = 0;
        decode_whole(symbols, content)
    }

    /// Decodes what is here as the end of the data, forgivingly.
    fn finish(&mut self, content: &mut Vec<u8>) -> Option<()> {
        let symbols = self.symbols.get_mut(..self.length)?;
        let last = forgiving_decode_inplace(symbols).ok()?;
        content.extend_from_slice(last);
        Some(())
    }
}

/// A run of octets of the data, decoded.
enum Piece<'a> {
    Run(&'a [u8]),
    Octet([u8; 1]),
}

impl Piece<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Run(run) => run,
            Self::Octet(octet) => octet,
        }
    }
}

/// Walks data up to its fragment: white space goes, escapes are decoded, bad ones stay. Controls
/// come one by one, never within a run.
struct Pieces<'a> {
    rest: &'a [u8],
}

impl<'a> Pieces<'a> {
    fn of(rest: &'a [u8]) -> Self {
        Self { rest }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        self.rest = skip_folding(self.rest);
        let (first, behind) = self.rest.split_first()?;
        match first {
            b'#' => None,
            b'%' => {
                let (octet, length) = escaped(behind).unwrap_or((b'%', 0));
                self.rest = behind.get(length..).unwrap_or_default();
                Some(Piece::Octet([octet]))
            }
            b'\0'..=b' ' => {
                self.rest = behind;
                Some(Piece::Octet([*first]))
            }
            _ => {
                let (run, rest) = self.rest.split_at_checked(run_length(self.rest))?;
                self.rest = rest;
                Some(Piece::Run(run))
            }
        }
    }
}

/// Octets up to the first control, blank, `#` or `%`.
///
/// Six needles are too many for memchr, and two searches a word too slow. Blocks are asked as a
/// whole, which the compiler does in vectors, then the octets of the block that has one.
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

/// The octet of an escape behind its `%`, and the length of its digits with the white space between, which
/// the percent-encoding crate would not know.
fn escaped(behind: &[u8]) -> Option<(u8, usize)> {
    let mut rest = behind;
    let mut octet = 0;
    for _ in 0..2 {
        let (digit, after) = skip_folding(rest).split_first()?;
        octet = octet << 4 | hex_value(*digit)?;
        rest = after;
    }
    Some((octet, behind.len() - rest.len()))
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
