//! `data:` URLs (RFC 2397), read with the algorithm of WHATWG Fetch (§data: URL processor).
//!
//! The questions that Sapin's draft left open, and Fetch's answers:
//! * *A comma in a quoted string?* The first one splits, quoted or not: of `text/plain;a="b,c",d` the data is `c",d`.
//! * *How strictly does `;base64` match?* It must end the type, in any case, white space ignored; `%62ase64` is not it.
//! * *Which base64 is invalid?* WHATWG's forgiving-base64 decides, after percent-decoding: white
//!   space is ignored, every other byte outside the alphabet is a failure (also the URL and filename safe one's), so is a
//!   lone last symbol. Padding is absent or exact; bits left over are dropped.
//! * *The query?* `?` is a byte of the data like any other; only a fragment is cut.
//! * *No media type?* `text/plain;charset=US-ASCII`; parameters alone belong to `text/plain`. A
//!   media type that cannot be read counts as none.
//!
//! Deviations from Fetch, all wanted by the mail documents:
//! 1. Space, TAB, CR and LF are removed wherever they stand, also inside an escape (RFC 2017 §3.1). Fetch keeps a
//!    space, so that `data:,A brief note` gives `Abriefnote` here. A URL has no spaces of its own: they are `%20`.
//! 2. `%xx` in type, subtype, parameter names and values is decoded (RFC 2397 §3), unless the result could not stand
//!    there: a name that is no token, a value with controls or not UTF-8. Those keep their escapes, so that no line
//!    end gets into a header.
//! 3. The URL parser in front is not run, which would judge `//host:port/` and remove dot segments: they are text.
//! 4. Parameters beyond the `MAX_PARAMETERS`th are dropped.

mod body;
mod media_type;

use std::borrow::Cow;

use memchr::memchr2;
use percent_encoding::percent_encode_byte;

use self::body::{decode_base64, is_folding, pieces, skip_folding};
#[cfg(any(test, feature = "internals"))]
pub use self::media_type::MAX_PARAMETERS;
pub use self::media_type::MediaTypeText;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataUrlError {
    #[error("not a data: URL")]
    NotADataUrl,
    /// A comma in the fragment does not count.
    #[error("data: URL without a comma")]
    NoComma,
    #[error("data: URL with invalid base64")]
    InvalidBase64,
    #[error("data: URL of {size} bytes, above the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataUrl<'a> {
    /// What stands before the comma, without `;base64` and white space; octets that no URL may hold are escaped.
    pub declared: Cow<'a, str>,
    /// `;base64`: the symbols may themselves be percent-escaped; else the data is percent-escaped octets.
    pub is_base64: bool,
    body: &'a [u8],
}

impl<'a> DataUrl<'a> {
    /// Splits `url`, which may be the raw content of a folded parameter, at its first comma, in linear time.
    /// Surrounding controls and blanks are ignored, quotes and `<>` are the caller's to remove.
    ///
    /// # Errors
    /// [`DataUrlError::NotADataUrl`] and [`DataUrlError::NoComma`].
    pub fn parse(url: &'a [u8]) -> Result<Self, DataUrlError> {
        let after_colon = strip_scheme(trim_controls(url)).ok_or(DataUrlError::NotADataUrl)?;
        let end = memchr2(b',', b'#', after_colon).unwrap_or(after_colon.len());
        let (header, [b',', body @ ..]) = after_colon.split_at(end) else {
            return Err(DataUrlError::NoComma);
        };
        let mut declared = header_text(header);
        let suffix = declared.as_bytes().last_chunk::<7>();
        let is_base64 = suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b";base64"));
        if is_base64 {
            let length = declared.len() - b";base64".len();
            match &mut declared {
                Cow::Borrowed(text) => *text = text.get(..length).unwrap_or_default(),
                Cow::Owned(text) => text.truncate(length),
            }
        }
        Ok(Self {
            declared,
            is_base64,
            body,
        })
    }

    /// With RFC 2397's defaults, and `%xx` decoded (deviation 2).
    pub fn media_type(&self) -> MediaTypeText {
        MediaTypeText::of_data_url(&self.declared)
    }

    pub fn decoded_len_estimate(&self) -> u64 {
        let length = self.body.len() as u64;
        match self.is_base64 {
            true => decoded_from(length),
            false => length,
        }
    }

    /// In octets, exact if the data is valid; reads the data, allocates nothing.
    pub fn decoded_len(&self) -> u64 {
        let pieces = pieces(self.body);
        if !self.is_base64 {
            return pieces.map(|piece| piece.len() as u64).sum();
        }
        let is_symbol = |byte: &&u8| **byte != b'=' && !byte.is_ascii_whitespace();
        let symbols = pieces.map(|piece| piece.iter().filter(is_symbol).count() as u64);
        decoded_from(symbols.sum())
    }

    /// One allocation; pages that white space made superfluous are never touched. What is above `limit` octets is
    /// neither allocated nor decoded.
    ///
    /// # Errors
    /// [`DataUrlError::TooLarge`] and [`DataUrlError::InvalidBase64`].
    pub fn decode(&self, limit: u64) -> Result<Vec<u8>, DataUrlError> {
        let mut capacity = self.decoded_len_estimate();
        if capacity > limit {
            capacity = self.decoded_len();
        }
        if capacity > limit {
            let size = capacity;
            return Err(DataUrlError::TooLarge { size, limit });
        }
        // Never above the length of a slice that is in memory, so the conversion holds.
        let mut content = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        if self.is_base64 {
            decode_base64(self.body, &mut content).ok_or(DataUrlError::InvalidBase64)?;
        } else {
            pieces(self.body).for_each(|piece| content.extend_from_slice(piece));
        }
        Ok(content)
    }
}

/// The bits of an incomplete octet are dropped.
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

/// As a URL parser shows it: no white space; controls, non-ASCII and what no query may hold behind `?` are escaped.
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
