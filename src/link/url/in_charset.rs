//! Percent-encoding of queries in a document that is not UTF-8 (URL standard §4.4).

use encoding_rs::Encoding;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use super::browser::scheme_and_rest;
use super::clean::without_fragment;

/// Percent-encodes the query of a URL from a document that is not UTF-8, in the charset of this document (`encoding`).
/// Browsers do the same for http, https and ftp (URL standard §4.4, "query state"), and the server expects it. A
/// character that the charset lacks becomes a decimal character reference, which is percent-encoded as well (§1.3,
/// "percent-encode after encoding"). ASCII is not changed. `encoding` must not be a charset with shift states such as
/// ISO-2022-JP.
pub(crate) fn with_query_in(url: String, encoding: &'static Encoding) -> String {
    let end = without_fragment(&url).len();
    let (Some(start), true) = (
        url.get(..end).and_then(|url| url.find('?')),
        is_special(&url),
    ) else {
        return url;
    };
    let (front, rest) = url.split_at(start);
    let (query, fragment) = rest.split_at(end - start);
    if query.is_ascii() {
        return url;
    }
    const BARE: AsciiSet = CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'#')
        .add(b'<')
        .add(b'>')
        .add(b'\'');
    let mut text = front.to_owned();
    for symbol in query.chars() {
        if symbol.is_ascii() {
            text.push(symbol);
            continue;
        }
        let mut symbol_bytes = [0; 4];
        let (octets, _, is_missing) = encoding.encode(symbol.encode_utf8(&mut symbol_bytes));
        if is_missing {
            text.push_str(&format!("%26%23{}%3B", u32::from(symbol)))
        } else {
            text.extend(percent_encode(&octets, &BARE))
        }
    }
    text + fragment
}

/// Returns whether browsers encode the query of the URL in the charset of the document. They do so for relative URLs
/// and for the schemes http, https and ftp.
fn is_special(url: &str) -> bool {
    scheme_and_rest(url).is_none_or(|(scheme, _)| {
        let is = |name: &&str| scheme.eq_ignore_ascii_case(name);
        ["http", "https", "ftp"].iter().any(is)
    })
}
