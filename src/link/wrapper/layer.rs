//! Unwraps one layer of a URL whose query contains the original URL as a parameter.

use percent_encoding::percent_decode_str;

use crate::link::url::UrlReference;

/// The original URL in one wrapped URL.
pub(super) enum WrappedLayer {
    /// The bytes of the original URL, not yet checked.
    Original(Vec<u8>),
    /// The URL has the form of the service, but does not contain the original. Only the server knows it.
    Token,
    /// The URL names two different originals, or is damaged.
    Unclear,
}

/// Returns the value of the first of `names` that the query has. The query must not contain the parameter twice, because it
/// is not known which of the two values the server uses.
pub(super) fn parameter(
    url: &UrlReference<'_>,
    names: &[&str],
    decode: fn(&str) -> Vec<u8>,
) -> WrappedLayer {
    for name in names {
        let mut values = url.query.unwrap_or_default().split('&').filter_map(|pair| {
            // In a text that was HTML before, the parameters are separated by `&amp;`.
            let pair = pair.strip_prefix("amp;").unwrap_or(pair);
            let (key, value) = pair.split_once('=')?;
            key.eq_ignore_ascii_case(name).then_some(value)
        });
        match (values.next(), values.next()) {
            (None, _) => {}
            (Some(""), None) => return WrappedLayer::Token,
            (Some(value), None) => return WrappedLayer::Original(decode(value)),
            (Some(_), Some(_)) => return WrappedLayer::Unclear,
        }
    }
    WrappedLayer::Token
}

pub(super) fn percent_decoded(value: &str) -> Vec<u8> {
    percent_decode_str(value).collect()
}
