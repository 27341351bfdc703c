//! Re-encodes a decoded mail into the charsets that its parts declare. A program that saves a mail as UTF-16 decodes
//! all of it, so its text no longer has the charset that the header declares.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::mime::charset::encoding_of;
use crate::mime::{MediaType, MessageTree, PartId, PartKind, ScanLimits, scan};

/// Returns the mail `decoded`, which is in UTF-8, with the text of each part in the charset that the part declares. The
/// fields of headers stay in UTF-8 (RFC 6532). Returns `None` if this is `decoded` itself.
///
/// # Errors
/// Returns the reason if a part declares no charset for its text, or one that cannot encode its characters exactly.
pub(crate) fn in_declared_charsets(decoded: &[u8]) -> Result<Option<Vec<u8>>, String> {
    if decoded.is_ascii() {
        return Ok(None);
    }
    let tree = scan(decoded, &ScanLimits::default());
    let mut mail = Vec::with_capacity(decoded.len());
    let mut copied = 0;
    for id in tree.ids() {
        let part = tree.part(id);
        let body = part.body.of(decoded);
        let is_container = matches!(part.content, PartKind::Multipart(_) | PartKind::Message);
        if is_container || body.is_ascii() {
            continue;
        }
        let encoded = encoded(&tree, id, body)?;
        mail.extend_from_slice(decoded.get(copied..part.body.start).unwrap_or_default());
        mail.extend_from_slice(&encoded);
        copied = part.body.end;
    }
    if copied == 0 {
        return Ok(None);
    }
    mail.extend_from_slice(decoded.get(copied..).unwrap_or_default());
    Ok(Some(mail))
}

fn encoded<'b>(
    tree: &MessageTree<'_>,
    id: PartId,
    body: &'b [u8],
) -> Result<Cow<'b, [u8]>, String> {
    let value = tree.value(id, "Content-Type");
    let label = value.and_then(|value| MediaType::parse(value).parameter("charset"));
    let is_text = tree.part(id).essence.starts_with("text/");
    let Some(label) = label.filter(|_| is_text) else {
        let what = if is_text {
            "a text with characters that are not ASCII declares no charset"
        } else {
            "a part that is not text contains characters that are not ASCII"
        };
        return Err(what.to_owned());
    };
    let (encoding, text) = (encoding_of(&label), std::str::from_utf8(body));
    let exact = |encoding: &'static Encoding, text: &'b str| {
        let (bytes, _, is_lossy) = encoding.encode(text);
        let (again, is_damaged) = encoding.decode_without_bom_handling(&bytes);
        let is_same = !is_lossy && !is_damaged && again == text;
        is_same.then_some(bytes)
    };
    match (encoding, text) {
        // encoding_rs has no UTF-16 encoder (it would silently produce UTF-8), so text with a UTF-16 label cannot be
        // re-encoded.
        (Some(encoding), _) if encoding == UTF_16LE || encoding == UTF_16BE => None,
        (Some(encoding), Ok(text)) if encoding == UTF_8 => Some(Cow::Borrowed(text.as_bytes())),
        // In the Encoding Standard, the label US-ASCII means windows-1252. Mail programs read it as ASCII, so non-ASCII
        // text does not fit.
        (Some(_), _) if crate::mime::charset::is_ascii_label(&label) => None,
        (Some(encoding), Ok(text)) => exact(encoding, text),
        _ => None,
    }
    .ok_or_else(|| {
        let label = String::from_utf8_lossy(&label);
        format!(
            "a text has characters that its charset {} does not have",
            label.escape_debug()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_each_part_gets_the_charset_that_it_declares() {
        let mail = |one: &[u8], two: &[u8]| {
            let parts: [&[u8]; 7] = [
                "Subject: \u{e9}\nContent-Type: multipart/mixed; boundary=b\n\n--b\n".as_bytes(),
                b"Content-Type: text/plain; charset=iso-8859-2\n\n",
                one,
                b"\n--b\nContent-Type: text/html; charset=utf-8\n\n",
                two,
                b"\n--b\n\nplain\n",
                b"--b--\n",
            ];
            parts.concat()
        };
        let decoded = mail("\u{159}".as_bytes(), "\u{4e2d}".as_bytes());
        let expected = mail(b"\xf8", "\u{4e2d}".as_bytes());
        assert_eq!(in_declared_charsets(&decoded), Ok(Some(expected)));
        let ascii = mail(b"r", b"c");
        assert_eq!(in_declared_charsets(&ascii), Ok(None));
        let gone = mail("\u{4e2d}".as_bytes(), b"");
        let why = in_declared_charsets(&gone).unwrap_err();
        assert!(why.contains("iso-8859-2"), "{why}");
    }

    #[test]
    fn text_without_a_fitting_charset_is_an_error() {
        for header in [
            "Subject: s",
            "Content-Type: text/plain",
            "Content-Type: text/plain; charset=us-ascii",
            "Content-Type: text/plain; charset=utf-16",
            "Content-Type: text/plain; charset=unknown",
            "Content-Type: image/gif",
        ] {
            let mail = format!("{header}\n\n\u{e9}\n");
            assert!(in_declared_charsets(mail.as_bytes()).is_err(), "{header}");
        }
    }
}
