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
//! 4. Parameters beyond the `MAX_PARAMETERS`th are dropped.

mod body;
mod folding;
mod media_type;

use std::borrow::Cow;

use memchr::memchr2;
use percent_encoding::percent_encode_byte;

use self::body::{decode_base64, pieces};
use self::folding::{is_folding, skip_folding};
#[cfg(any(test, feature = "internals"))]
pub use self::media_type::MAX_PARAMETERS;
pub use self::media_type::MediaTypeText;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataUrlError {
    #[error("not a data: URL")]
    NotADataUrl,
    /// Nothing separates the media type from the data (the fragment does not count).
    #[error("data: URL without a comma")]
    NoComma,
    #[error("data: URL with invalid base64")]
    InvalidBase64,
    #[error("data: URL of {size} bytes, above the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
}

/// A `data:` URL taken apart, its data not yet decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataUrl<'a> {
    /// What stands before the comma, `;base64` and white space removed; octets that a URL cannot
    /// hold are percent-escaped. Empty if there is nothing.
    pub declared: Cow<'a, str>,
    /// `;base64`: the data is base64 symbols, which may themselves be percent-escaped; else it is percent-escaped octets.
    pub is_base64: bool,
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
        let length = without_base64_suffix(&declared);
        Ok(Self {
            is_base64: length.is_some(),
            declared: match length {
                None => declared,
                Some(length) => truncated(declared, length),
            },
            body,
        })
    }

    /// The media type, with RFC 2397's defaults filled in and `%xx` decoded (deviation 2).
    pub fn media_type(&self) -> MediaTypeText {
        MediaTypeText::of_data_url(&self.declared)
    }

    /// An upper bound of the decoded size in octets, without looking at the data.
    ///
    /// White space, escapes, padding and a fragment make the true size smaller; folding in words
    /// of 40 alone by a fifteenth.
    pub fn decoded_len_estimate(&self) -> u64 {
        let length = self.body.len() as u64;
        match self.is_base64 {
            true => decoded_from(length),
            false => length,
        }
    }

    /// The decoded size in octets, exact if the data is valid; reads the data, allocates nothing.
    pub fn decoded_len(&self) -> u64 {
        let pieces = pieces(self.body);
        if !self.is_base64 {
            return pieces.map(|piece| piece.len() as u64).sum();
        }
        let is_symbol = |byte: &&u8| **byte != b'=' && !byte.is_ascii_whitespace();
        let symbols = pieces.map(|piece| piece.iter().filter(is_symbol).count() as u64);
        decoded_from(symbols.sum())
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
        if self.is_base64 {
            decode_base64(self.body, &mut content).ok_or(DataUrlError::InvalidBase64)?;
        } else {
            for piece in pieces(self.body) {
                content.extend_from_slice(piece);
            }
        }
        Ok(content)
    }
}

/// Octets in `symbols` base64 symbols; the bits of an incomplete octet are dropped.
fn decoded_from(symbols: u64) -> u64 {
    symbols / 4 * 3 + symbols % 4 * 3 / 4
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
