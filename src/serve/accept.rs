//! Content negotiation (RFC 9110 §12).

use hyper::header::ACCEPT;
use hyper::http::request::Parts;

/// Returns whether a client accepts a media type that the service sends only if it is requested.
pub(super) fn accepts(parts: &Parts, kind: &str) -> bool {
    let values = parts.headers.get_all(ACCEPT).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(|range| {
        let mut words = range.split(';').map(str::trim);
        let is_kind = words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(kind));
        let is_refused = |word: &str| {
            let quality = word.strip_prefix("q=").or_else(|| word.strip_prefix("Q="));
            quality.is_some_and(|quality| quality.parse() == Ok(0.0))
        };
        is_kind && !words.any(is_refused)
    })
}
