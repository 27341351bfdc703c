//! The three forms of links of Proofpoint URL Defense.
//!
//! | version | form |
//! |---|---|
//! | 1 | `/v1/url?u=URL&k=...`, where URL is percent-encoded |
//! | 2 | `/v2/url?u=URL&d=...`, where URL is percent-encoded with `-` for `%` and `_` for `/` |
//! | 3 | `/v3/__URL__;BYTES!!ORGANISATION!SIGNATURE$`, where `*` in URL stands for the next byte of BYTES, which are in base64, and `**` with a letter for several bytes |

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::layer::{WrappedLayer, parameter, percent_decoded};
use crate::link::url::UrlReference;

pub(super) fn layer(url: &UrlReference<'_>) -> WrappedLayer {
    match url.path {
        "/v1/url" => parameter(url, &["u"], percent_decoded),
        "/v2/url" => parameter(url, &["u"], |value| {
            percent_decoded(&value.replace('-', "%").replace('_', "/"))
        }),
        path if path.starts_with("/v3/__") => {
            // The original can contain `?` and `#`, so the path, the query and the fragment belong together here.
            let whole = url.recompose();
            let inside = whole.split_once("/v3/__").map(|(_, inside)| inside);
            let read = inside.and_then(|inside| {
                let (text, octets) = version_three(inside)?;
                filled(text, &octets)
            });
            read.map_or(WrappedLayer::Unclear, WrappedLayer::Original)
        }
        _ => WrappedLayer::Token,
    }
}

/// Returns the text and the bytes of a link of version 3, without their wrapping.
fn version_three(inside: &str) -> Option<(&str, Vec<u8>)> {
    let mut from = 0;
    loop {
        let at = from + inside.get(from..)?.find("__;")?;
        let (encoded, _) = inside.get(at + 3..)?.split_once('!')?;
        let encoded = encoded.trim_end_matches('=');
        if let Ok(octets) = URL_SAFE_NO_PAD.decode(encoded) {
            return Some((inside.get(..at)?, octets));
        }
        from = at + 1;
    }
}

/// Puts the bytes back into the text. Each `*` stands for one byte. `**` and a letter stand for 2 bytes (`A`) to 65
/// bytes (`_`). The numbers count bytes, so a character of two bytes can be divided between two of these marks.
fn filled(text: &str, octets: &[u8]) -> Option<Vec<u8>> {
    let mut octets = octets.iter().copied();
    let mut written = Vec::with_capacity(text.len() + octets.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'*' {
            written.push(byte);
            continue;
        }
        let mut run = 1;
        let mut ahead = rest.clone();
        if ahead.next() == Some(b'*') {
            run = run_length(ahead.next()?)?;
            rest = ahead;
        }
        for _ in 0..run {
            written.push(octets.next()?);
        }
    }
    // If bytes are left, the text is damaged: a program removed some of its asterisks, which it took for emphasis.
    octets.next().is_none().then_some(written)
}

fn run_length(letter: u8) -> Option<usize> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    Some(memchr::memchr(letter, LETTERS)? + 2)
}
