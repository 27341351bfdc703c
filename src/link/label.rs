//! The charset that a document declares itself, which is used if the mail does not declare one. The functions return
//! labels as they are written; [`Charset`](crate::mime::charset::Charset) interprets them.

use crate::span::front;
use memchr::{memchr, memmem};

const LIMIT: usize = 1_024;

/// Returns the charset in `text/html; charset=label`, the value of a `<meta>` (HTML standard §2.5.3).
pub(super) fn in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = front(content, LIMIT);
    loop {
        let at = rest
            .windows(7)
            .position(|word| word.eq_ignore_ascii_case(b"charset"))?;
        rest = rest.get(at + 7..)?.trim_ascii_start();
        if let Some(value) = rest.strip_prefix(b"=") {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
            return unquoted(value.trim_ascii_start(), ends);
        }
    }
}

/// Returns the charset in `<?xml version="1.0" encoding="label"?>` (XML 1.0 §4.3.3).
pub fn in_xml_declaration(document: &[u8]) -> Option<&[u8]> {
    let head = front(document, LIMIT);
    let without_bom = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let rest = without_bom.strip_prefix(b"<?xml")?;
    let declaration = rest.get(..memmem::find(rest, b"?>")?)?;
    let behind = declaration.get(memmem::find(declaration, b"encoding")? + 8..)?;
    let value = behind.trim_ascii_start().strip_prefix(b"=")?;
    unquoted(value.trim_ascii_start(), u8::is_ascii_whitespace)
}

/// Returns the charset in `@charset "label";` (CSS Syntax §3.2). The style sheet must begin with exactly these bytes.
pub fn in_style_sheet(sheet: &[u8]) -> Option<&[u8]> {
    let label = sheet.strip_prefix(b"@charset \"")?;
    label.get(..memchr(b'"', front(label, LIMIT))?)
}

fn unquoted(value: &[u8], ends: impl Fn(&u8) -> bool) -> Option<&[u8]> {
    match value.first()? {
        &quote @ (b'"' | b'\'') => {
            let inner = value.get(1..)?;
            inner.get(..memchr(quote, inner)?)
        }
        _ => value.split(ends).next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_browsers_do() {
        for (content, label) in [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;CHARSET = 'x-sjis' ", Some("x-sjis")),
            ("charset charset=big5;x", Some("big5")),
            ("text/html; charset=\"big5", None),
            ("text/html; charset", None),
            ("charset=", None),
        ] {
            let read = in_content(content.as_bytes());
            assert_eq!(read, label.map(str::as_bytes), "{content}");
        }
        for (document, label) in [
            ("<?xml version='1.0' encoding='gbk'?>", Some("gbk")),
            ("<?xml version=\"1.0\" encoding = \"gbk\" ?>", Some("gbk")),
            ("<?xml version='1.0'?><a encoding='gbk'>", None),
            (" <?xml encoding='gbk'?>", None),
        ] {
            let read = in_xml_declaration(document.as_bytes());
            assert_eq!(read, label.map(str::as_bytes), "{document}");
        }
        assert_eq!(in_style_sheet(b"@charset \"big5\";a{}"), Some(&b"big5"[..]));
        assert_eq!(in_style_sheet(b" @charset \"big5\";"), None);
    }
}
