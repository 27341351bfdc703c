//! The places of a message in which no part declares binary data: headers, texts, encoded bodies, and everything after the
//! last part. Raw data of another format do not belong there.

use crate::mime::{MediaType, MessageTree, PartId, PartKind, ScanLimits, TransferEncoding, scan};
use crate::prologue::starts_mail;
use crate::span::{Span, front, is_from_line};

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

/// Number of bytes at the start of a header that show whether it is that of a mail.
const NEAR: usize = 4096;

/// The places of a message in which an appended text is outside of its parts, and the last part of a multipart without a
/// closing boundary line.
pub(crate) struct AppendedText<'m> {
    tree: MessageTree<'m>,
    ids: Vec<PartId>,
    /// Cache: a span that ends at a boundary line, and the offset of the last text in it that declares this boundary.
    declared_again: Option<(Span, Option<usize>)>,
}

impl<'m> AppendedText<'m> {
    pub(crate) fn of(message: &'m [u8]) -> Self {
        let tree = scan(message, &ScanLimits::default());
        Self {
            ids: tree.ids().collect(),
            tree,
            declared_again: None,
        }
    }

    /// Returns whether the text from `at` on, which begins like a mailbox, was appended to the message. It was if it is in the
    /// body of a single text or of encoded data, after the last part of a multipart, or in the last part of a multipart without
    /// a closing boundary line. It was not if a boundary line follows that belongs to the message.
    pub(crate) fn contains(&mut self, at: usize) -> bool {
        let Some(id) = self.innermost(at) else {
            return false;
        };
        let part = self.tree.part(id);
        if let PartKind::Multipart(multipart) = &part.content
            && (part.body.start..multipart.preamble.end).contains(&at)
        {
            // No boundary line is between the header and the mailbox.
            let preamble = multipart.preamble;
            return if preamble.end == part.span.end {
                self.is_end(id, at)
            } else {
                self.declares_again(preamble, Some(id), at)
            };
        }
        let may_be = if at < part.body.start {
            self.may_end_in_header(id, at)
        } else {
            match &part.content {
                PartKind::Multipart(multipart) => multipart.is_closed_before(at),
                PartKind::Leaf => self.may_be_appended_to(id),
                PartKind::Opaque(_) | PartKind::Message => false,
            }
        };
        may_be && self.is_end(id, at)
    }

    /// Returns whether the mail from `at` on, which has no separator, was appended to the message. A text can quote the header of
    /// a mail, so only a mail after the last part of a multipart, or after data in base64, counts.
    pub(crate) fn contains_mail(&mut self, at: usize) -> bool {
        let Some(id) = self.innermost(at) else {
            return false;
        };
        let part = self.tree.part(id);
        let is_place = match &part.content {
            PartKind::Multipart(multipart) => multipart.is_closed_before(at),
            PartKind::Leaf => {
                let body = Span::new(part.body.start, at).of(self.tree.original);
                part.encoding == TransferEncoding::Base64 && starts_with_base64(body)
            }
            PartKind::Opaque(_) | PartKind::Message => false,
        };
        is_place && self.is_end(id, at)
    }

    /// Returns the innermost part around `at`.
    fn innermost(&self, at: usize) -> Option<PartId> {
        let started = self
            .ids
            .partition_point(|id| self.tree.part(*id).span.start <= at);
        let mut id = *self.ids.get(started.checked_sub(1)?)?;
        while self.tree.part(id).span.end <= at {
            id = self.tree.part(id).parent?;
        }
        Some(id)
    }

    /// Returns whether the message can end at an offset in the header of a part, without an empty line. In a message, fields must
    /// precede the offset. A part of a digest begins with the header of its message.
    fn may_end_in_header(&self, id: PartId, at: usize) -> bool {
        let part = self.tree.part(id);
        let fields = Span::new(part.envelope.end, at).of(self.tree.original);
        let parent = part.parent.map(|parent| self.tree.part(parent));
        match parent.map(|parent| (&parent.content, &*parent.essence)) {
            Some((PartKind::Multipart(_), essence)) => essence != "multipart/digest",
            _ => starts_mail(front(fields, NEAR)) && !is_from_line(fields),
        }
    }

    /// Returns whether a mailbox in the body of a part can have been appended. The body of an attached mailbox begins with its
    /// first separator.
    fn may_be_appended_to(&self, id: PartId) -> bool {
        let part = self.tree.part(id);
        let body = part.body.of(self.tree.original).trim_ascii_start();
        let kind = DeclaredKind::of(&self.tree, id);
        match kind {
            DeclaredKind::Binary => false,
            DeclaredKind::Text => {
                !is_from_line(body) || matches!(&*part.essence, "text/plain" | "text/html")
            }
            DeclaredKind::Encoded => true,
            DeclaredKind::TextFile => !is_from_line(body),
        }
    }

    /// Returns whether no boundary line after a part belongs to the message.
    fn is_end(&mut self, id: PartId, at: usize) -> bool {
        let span = self.tree.part(id).span;
        let mut around = std::iter::successors(Some(id), |id| self.tree.part(*id).parent);
        let ended_by = around.find(|id| self.tree.part(*id).span.end > span.end);
        span.end == self.tree.original.len() || self.declares_again(span, ended_by, at)
    }

    /// Returns whether the boundary line at the end of `span` belongs to a mail in a mailbox that begins at `at`: the header of this
    /// mail declares the same boundary as the part `ended_by`. The mailbox can contain another copy of the message.
    fn declares_again(&mut self, span: Span, ended_by: Option<PartId>, at: usize) -> bool {
        let last = match self.declared_again {
            Some((cached, last)) if cached == span => last,
            _ => {
                let boundary = ended_by.and_then(|id| self.tree.part(id).content.boundary());
                boundary.and_then(|it| last_declaration(span, it, self.tree.original))
            }
        };
        self.declared_again = Some((span, last));
        last.is_some_and(|last| last > at)
    }
}

/// Returns whether a body begins with data in base64. Some programs declare base64 for text that they did not encode.
fn starts_with_base64(body: &[u8]) -> bool {
    const LINES: usize = 1024;
    let is_base64 = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n')
    };
    !body.is_empty() && front(body, LINES).iter().all(is_base64)
}

/// Returns the offset of the last text in `span` that declares a boundary as a header does.
fn last_declaration(span: Span, boundary: &[u8], message: &[u8]) -> Option<usize> {
    let text = span.of(message);
    let is_declared = |at: &usize| {
        let before = front(text, *at);
        let unquoted = before.strip_suffix(b"\"").unwrap_or(before);
        let name = unquoted.strip_suffix(b"=").map(<[u8]>::trim_ascii_end);
        let next = text.get(at + boundary.len());
        let is_whole =
            next.is_none_or(|byte| matches!(byte, b'"' | b';' | b' ' | b'\t' | b'\r' | b'\n'));
        is_whole
            && name
                .and_then(|name| name.last_chunk())
                .is_some_and(|name: &[u8; 8]| name.eq_ignore_ascii_case(b"boundary"))
    };
    let found = memchr::memmem::rfind_iter(text, boundary).find(is_declared);
    found.map(|at| span.start + at)
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
    match DeclaredKind::of(tree, id) {
        DeclaredKind::Encoded | DeclaredKind::Text => None,
        DeclaredKind::TextFile | DeclaredKind::Binary => Some(part.body),
    }
}

/// Content of a part without inner parts, as its header declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DeclaredKind {
    /// Data in a transfer encoding, which contains only ASCII.
    Encoded,
    Text,
    /// Text that is sent as a file.
    TextFile,
    /// Data that are no text, and text in an encoding of two or four bytes.
    Binary,
}

impl DeclaredKind {
    fn of(tree: &MessageTree<'_>, id: PartId) -> Self {
        let part = tree.part(id);
        let (kind, _) = part.essence.split_once('/').unwrap_or_default();
        let is_text = matches!(kind, "text" | "message" | "multipart");
        match () {
            () if part.encoding.is_encoded() => Self::Encoded,
            () if !is_text || is_wide(tree, id) => Self::Binary,
            () if is_file(tree, id) => Self::TextFile,
            () => Self::Text,
        }
    }
}

/// Returns whether a text is in an encoding of two or four bytes.
fn is_wide(tree: &MessageTree<'_>, id: PartId) -> bool {
    let content_type = tree.value(id, "Content-Type").map(MediaType::parse);
    let parameter = content_type.and_then(|it| it.parameter("charset"));
    let charset = parameter.unwrap_or_default().to_ascii_lowercase();
    [
        &b"utf-16"[..],
        b"utf16",
        b"utf-32",
        b"utf32",
        b"ucs-",
        b"iso-10646",
        b"unicode",
    ]
    .iter()
    .any(|name| charset.starts_with(name))
}

/// Returns whether a part is an attachment, or declares the name of a file.
fn is_file(tree: &MessageTree<'_>, id: PartId) -> bool {
    let declares = |field, name| {
        let value = tree.value(id, field).map(MediaType::parse);
        value.is_some_and(|it| it.parameter(name).is_some())
    };
    declares("Content-Type", "name")
        || declares("Content-Disposition", "filename")
        || tree.has_disposition(id, "attachment")
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
