//! `data:` URLs (RFC 2397), read with the algorithm of WHATWG Fetch (section "data: URL processor").
//!
//! The Fetch standard answers these questions, which RFC 2397 leaves open:
//! * *Is a comma in a quoted string part of the type?* No, the first comma always separates type and data: in
//!   `text/plain;a="b,c",d` the data is `c",d`.
//! * *How is `;base64` recognised?* It must be at the end of the type, in any case; white space is ignored. `%62ase64`
//!   is not recognised.
//! * *Which base64 is invalid?* WHATWG's forgiving-base64 is applied after percent-decoding. It ignores white space.
//!   Every other byte outside the alphabet is an error, also `-` and `_` of the URL-safe alphabet, and so is a single
//!   symbol after the last group of four. Padding is either absent or exact. Leftover bits are discarded.
//! * *Is the query part of the data?* Yes, `?` is an ordinary byte of the data. Only a fragment is removed.
//! * *Which media type applies to a URL without a media type?* `text/plain;charset=US-ASCII`. Parameters without a type
//!   belong to `text/plain`. A malformed media type counts as absent.
//!
//! Deviations from Fetch. Except for the last one, the standards of mail require them:
//! 1. Space, TAB, CR and LF are removed everywhere, also within an escape (RFC 2017 §3.1). Fetch keeps spaces, but here
//!    `data:,A brief note` gives `Abriefnote`. A space that belongs to the URL is written as `%20`.
//! 2. `%xx` in the type, the subtype, and the names and values of parameters is decoded (RFC 2397 §3). If the result is
//!    not valid (a name that is not a token, a value with control characters or not in UTF-8), the escapes are kept.
//!    Otherwise a line ending could get into a header.
//! 3. No general URL parser runs before. It would check `//host:port/` and remove dot segments, which are text here.
//! 4. Only the first `MAX_PARAMETERS` parameters are read.

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
    #[error("the URL is not a data: URL")]
    NotADataUrl,
    /// The URL has no comma before its fragment.
    #[error("the data: URL contains no comma")]
    NoComma,
    #[error("the base64 in the data: URL is damaged")]
    InvalidBase64,
    #[error("the data: URL contains {size} bytes, which is more than the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataUrl<'a> {
    /// Text before the comma, without `;base64` and white space. Bytes that are not allowed in a URL are percent-encoded.
    pub declared: Cow<'a, str>,
    /// Whether the data is base64. Symbols of the base64 may be percent-encoded. If false, the data is text in which
    /// bytes may be percent-encoded.
    pub is_base64: bool,
    body: &'a [u8],
}

impl<'a> DataUrl<'a> {
    /// Splits a URL at its first comma. The URL may be the raw value of a folded parameter. Control characters and
    /// spaces around it are ignored, but the caller must remove quotes and `<>`. The time is linear.
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
                Cow::Borrowed(text) => *text = &text[..length],
                Cow::Owned(text) => text.truncate(length),
            }
        }
        Ok(Self {
            declared,
            is_base64,
            body,
        })
    }

    /// Returns the media type, with the default values of RFC 2397. `%xx` in it is decoded, unlike in the Fetch
    /// standard (deviation 2 in the documentation of this module).
    pub fn media_type(&self) -> MediaTypeText {
        MediaTypeText::of_data_url(&self.declared)
    }

    pub fn decoded_len_estimate(&self) -> u64 {
        let length = self.body.len() as u64;
        if self.is_base64 {
            decoded_from(length)
        } else {
            length
        }
    }

    /// Returns the length of the decoded data in bytes. It is exact if the data is valid. The data is read but not
    /// stored, so this needs no memory.
    pub fn decoded_len(&self) -> u64 {
        let pieces = pieces(self.body);
        if !self.is_base64 {
            return pieces.map(|piece| piece.len() as u64).sum();
        }
        let is_symbol = |byte: &&u8| **byte != b'=' && !byte.is_ascii_whitespace();
        let symbols = pieces.map(|piece| piece.iter().filter(is_symbol).count() as u64);
        decoded_from(symbols.sum())
    }

    /// Decodes the data into a single allocation. If the data is longer than `limit` bytes, nothing is allocated or decoded.
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
        // The capacity is not larger than the URL, which is in memory, so it fits into `usize`.
        let mut content = Vec::with_capacity(usize::try_from(capacity).unwrap_or_default());
        if self.is_base64 {
            decode_base64(self.body, &mut content).ok_or(DataUrlError::InvalidBase64)?;
        } else {
            pieces(self.body).for_each(|piece| content.extend_from_slice(piece));
        }
        Ok(content)
    }
}

/// Returns the number of bytes that a number of base64 symbols encode. An incomplete last byte is not counted.
fn decoded_from(symbols: u64) -> u64 {
    symbols / 4 * 3 + symbols % 4 * 3 / 4
}

/// Removes control characters and spaces at both ends, as the first step of a URL parser does.
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

/// Returns the text before the comma as a URL parser would return it. White space is removed. Control characters and
/// bytes above 127 are percent-encoded. After a `?`, quotes, `<` and `>` are percent-encoded as well, because a query
/// must not contain them.
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
