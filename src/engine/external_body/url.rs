//! Reads the URL in a parameter or a header field (RFC 2017 §3.1, RFC 2392, draft-fielding-url-syntax-05 appendix E).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::Referent;
use super::reference::{bad_value, missing_url};
use crate::engine::report::Refusal;
use crate::link::url::with_octets_escaped;

/// Maximum length of a URL in bytes. Servers do not accept longer ones, and plans and reports store each URL several times. A
/// `data:` URL may be longer.
const LONGEST: usize = 64 << 10;

pub(crate) fn read_url(value: Cow<'_, [u8]>) -> Result<Referent<'_>, Refusal> {
    if is_data(&value) {
        return Ok(Referent::Data(unwrap_data(value)));
    }
    let length = value.iter().filter(|byte| !byte.is_ascii_whitespace());
    if length.count() > LONGEST {
        return Err(bad_value(format!("the URL has more than {LONGEST} bytes")));
    }
    let written = with_octets_escaped(&value);
    let text = crate::link::url::from_parameter(&written).into_owned();
    if text.is_empty() {
        return Err(missing_url());
    }
    if let Some(control) = text.chars().find(|symbol| symbol.is_control()) {
        return Err(bad_value(format!(
            "the URL contains the control character U+{:04X}",
            u32::from(control)
        )));
    }
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    let (message_id, content_id) = if scheme.eq_ignore_ascii_case("cid") {
        (None, rest)
    } else if scheme.eq_ignore_ascii_case("mid") {
        let (message_id, content_id) = rest.split_once('/').ok_or_else(|| {
            bad_value("the mid: URL refers to a complete message, but embody can insert only a part of the same message (mid:MESSAGE-ID/CONTENT-ID)")
        })?;
        (Some(percent_decoded(message_id)), content_id)
    } else {
        return Ok(Referent::Url(text));
    };
    Ok(Referent::ContentId {
        content_id: percent_decoded(content_id),
        message_id,
    })
}

/// Returns true if a URL has the scheme `data`. White space, `<` and `URL:` may precede the scheme.
fn is_data(value: &[u8]) -> bool {
    let start: Vec<u8> = value
        .iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .skip_while(|&&byte| byte == b'<')
        .take(16)
        .map(u8::to_ascii_lowercase)
        .collect();
    let url = start.strip_prefix(b"url:").unwrap_or(&start);
    url.starts_with(b"data:")
}

/// Removes `<`, `>` and `URL:` around a data: URL (draft-fielding-url-syntax-05, appendix E). Line breaks inside the URL
/// are kept.
fn unwrap_data(value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let Some(start) = memchr::memchr2(b'd', b'D', &value) else {
        return value;
    };
    // The final `>` is removed only after a `<`, because a bare URL may end with `>`.
    let wrapped = value.iter().take(start).any(|&byte| byte == b'<');
    let end = match value.trim_ascii_end() {
        [inner @ .., b'>'] if wrapped => inner.len(),
        whole => whole.len(),
    };
    match value {
        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..end]),
        Cow::Owned(mut bytes) => {
            bytes.truncate(end);
            bytes.drain(..start);
            Cow::Owned(bytes)
        }
    }
}

fn percent_decoded(text: &str) -> String {
    let octets: Vec<u8> = percent_decode_str(text).collect();
    with_octets_escaped(&octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::report::Reason;

    #[test]
    fn a_url_that_no_server_takes_is_refused_and_a_long_data_url_is_not() {
        let url = |scheme: &str, length| {
            Cow::Owned(format!("{scheme}{}", "x ".repeat(length)).into_bytes())
        };
        assert!(matches!(
            read_url(url("http://h/", LONGEST - 9)),
            Ok(Referent::Url(_))
        ));
        assert!(matches!(
            read_url(url("http://h/", LONGEST)),
            Err(Refusal {
                reason: Reason::BadUrl,
                ..
            })
        ));
        assert!(matches!(
            read_url(url("data:,", LONGEST)),
            Ok(Referent::Data(_))
        ));
    }
}
