//! The places of a message in which no part declares binary data: headers, texts, encoded bodies, and everything after the
//! last part. Raw data of another format do not belong there.

use crate::mime::{MediaType, MessageTree, PartId, PartKind, ScanLimits, scan};
use crate::span::Span;

/// Returns the places in their order. Text that declares UTF-16 or UTF-32, and text that is sent as a file, can contain any
/// bytes, and does not count.
pub(crate) fn undeclared_spans(message: &[u8]) -> Vec<Span> {
    let tree = scan(message, &ScanLimits::default());
    let mut spans = Vec::new();
    let mut start = 0;
    for id in tree.ids() {
        let Some(declared) = declared(&tree, id) else {
            continue;
        };
        // The end of a part in a part that was not read is the end of the part around it.
        if declared.start > start {
            spans.push(Span::new(start, declared.start));
        }
        start = start.max(declared.end);
    }
    if start < message.len() {
        spans.push(Span::new(start, message.len()));
    }
    spans
}

/// Returns the place of text that was appended to a message, outside of its parts: the body of a single text or of encoded data,
/// or the text after the last part of a multipart. Returns `None` if the end of the last part is unknown, or if the message
/// declares binary data or a file.
pub(crate) fn place_of_appended(message: &[u8]) -> Option<Span> {
    let tree = scan(message, &ScanLimits::default());
    let mut ids = tree.ids();
    let mut id = ids.next()?;
    loop {
        let part = tree.part(id);
        match &part.content {
            PartKind::Multipart(multipart) => {
                let is_ended = multipart.close.is_some() && multipart.overflow.is_none();
                return is_ended.then_some(multipart.epilogue);
            }
            PartKind::Leaf => return declared(&tree, id).is_none().then_some(part.body),
            PartKind::Opaque(_) => return None,
            PartKind::Message => id = ids.find(|inner| tree.part(*inner).parent == Some(id))?,
        }
    }
}

/// Returns the place in which a part declares binary data.
fn declared(tree: &MessageTree<'_>, id: PartId) -> Option<Span> {
    let part = tree.part(id);
    match &part.content {
        PartKind::Multipart(multipart) => {
            return multipart.overflow.map(|_| multipart.epilogue);
        }
        PartKind::Opaque(_) => return Some(part.body),
        PartKind::Message => return None,
        PartKind::Leaf => {}
    }
    if part.encoding.is_encoded() {
        return None;
    }
    let (kind, _) = part.essence.split_once('/').unwrap_or_default();
    let is_text = matches!(kind, "text" | "message" | "multipart");
    (!is_text || may_be_binary(tree, id)).then_some(part.body)
}

/// Returns whether a text can contain any bytes, because it is in an encoding of two or four bytes, or because it is a file.
fn may_be_binary(tree: &MessageTree<'_>, id: PartId) -> bool {
    let content_type = tree.value(id, "Content-Type").map(MediaType::parse);
    let parameter = |name| content_type.as_ref().and_then(|it| it.parameter(name));
    let charset = parameter("charset")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_wide = [
        &b"utf-16"[..],
        b"utf16",
        b"utf-32",
        b"utf32",
        b"ucs-",
        b"iso-10646",
        b"unicode",
    ]
    .iter()
    .any(|name| charset.starts_with(name));
    let disposition = tree.value(id, "Content-Disposition").map(MediaType::parse);
    let is_named = parameter("name").is_some()
        || disposition.is_some_and(|it| it.parameter("filename").is_some());
    is_wide || is_named || tree.has_disposition(id, "attachment")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undeclared(message: &str) -> String {
        let spans = undeclared_spans(message.as_bytes());
        let texts = spans.iter().map(|span| span.of(message.as_bytes()));
        String::from_utf8_lossy(&texts.collect::<Vec<_>>().join(&b"|"[..])).into_owned()
    }

    #[test]
    fn texts_encoded_bodies_and_the_epilogue_are_undeclared() {
        let plain = "Subject: x\n\ntext";
        assert_eq!(undeclared(plain), plain);
        assert_eq!(undeclared(""), "");
        let encoded = "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\nAAAA\n";
        assert_eq!(undeclared(encoded), encoded);
        let multipart = "Content-Type: multipart/mixed; boundary=b\n\npreamble\n--b\n\ntext\n--b\n\
                         Content-Type: application/gzip\n\nBINARY\n--b--\nepilogue";
        assert_eq!(undeclared(multipart), multipart.replace("BINARY", "|"));
    }

    #[test]
    fn declared_binary_data_are_not_undeclared() {
        for fields in [
            "Content-Type: application/gzip\n",
            "Content-Type: image/png\nContent-Transfer-Encoding: binary\n",
            "Content-Type: text/plain; charset=UTF-16LE\n",
            "Content-Type: text/plain; name=\"x.gz\"\nContent-Transfer-Encoding: 8bit\n",
            "Content-Transfer-Encoding: binary\nContent-Disposition: attachment\n",
        ] {
            let message = format!("{fields}\nBINARY");
            assert_eq!(undeclared(&message), format!("{fields}\n"), "{fields}");
        }
    }
}
