//! A URL as it stands in a parameter or a header field → [`Referent`] (RFC 2017 §3.1, RFC 2392, the draft's
//! appendix E).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::Referent;
use super::unusable::{bad_value, missing_url};
use crate::link::url::with_octets_escaped;
use crate::report::Refusal;

/// Octets of a URL, at most, other than of a `data:` URL: no server takes as many, and plans and reports
/// hold it several times.
const LONGEST: usize = 64 << 10;

pub fn read_url(value: Cow<'_, [u8]>) -> Result<Referent<'_>, Refusal> {
    if starts_with_scheme(&value, b"data:") {
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
            "the URL holds the control character U+{:04X}",
            u32::from(control)
        )));
    }
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    let (message_id, content_id) = if scheme.eq_ignore_ascii_case("cid") {
        (None, rest)
    } else if scheme.eq_ignore_ascii_case("mid") {
        let (message_id, content_id) = rest.split_once('/').ok_or_else(|| {
            bad_value("the mid: URL names a whole message, not a part of this one")
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

/// Whether a folded value starts with this scheme, past white space, `<` and `URL:`.
fn starts_with_scheme(value: &[u8], scheme: &[u8]) -> bool {
    let mut start = value
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .skip_while(|&byte| byte == b'<')
        .map(|byte| byte.to_ascii_lowercase())
        .take(16)
        .collect::<Vec<_>>();
    if start.starts_with(b"url:") {
        start.drain(..4);
    }
    start.starts_with(scheme)
}

/// A `data:` URL without the `<>` and `URL:` around it (the draft, appendix E); folds stay.
fn unwrap_data(value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let Some(start) = memchr::memchr2(b'd', b'D', &value) else {
        return value;
    };
    // A bare URL may end in `>`; one behind `<` has to.
    let wrapped = value
        .get(..start)
        .is_some_and(|front| front.contains(&b'<'));
    let end = match value.trim_ascii_end() {
        [inner @ .., b'>'] if wrapped => inner.len(),
        whole => whole.len(),
    };
    match value {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(start..end).unwrap_or_default()),
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
    use crate::report::Reason;

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
