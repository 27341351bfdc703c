//! A part of a mail in the forms from which programs compute digests, for example with CRLF line endings.

use std::borrow::Cow;

use md5::{Digest as _, Md5};
use sha2::Sha256;

use crate::engine::lengths::is_length;
use crate::engine::same::Digest;
use crate::engine::text_lines::unquoted_text;
use crate::mime::header::{Field, has_control_character, unfold};
use crate::mime::transfer::{canonical_text, with_newlines};
use crate::mime::{self, MessageTree, PartId, PartKind, ScanLimits, TransferEncoding, scan};
use crate::span::{Newline, Span};

/// A part of a copy.
pub(super) struct CopyPart {
    pub(super) content: Vec<u8>,
    /// Value of the Content-Type field of the part. `None` if the content was found by its digest, possibly in an unrelated
    /// mail: the digest proves the content, but not the type that the sender of that mail declared.
    pub(super) media_type: Option<String>,
    /// Header fields of the part that describe its content, except the transfer encoding.
    pub(super) fields: Vec<u8>,
}

/// Digests of one canonical form of a part's content, for example with CRLF line endings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PartDigests {
    pub(super) sha256: [u8; 32],
    pub(super) md5: [u8; 16],
}

impl PartDigests {
    fn of(content: &[u8]) -> Self {
        Self {
            sha256: Sha256::digest(content).into(),
            md5: Md5::digest(content).into(),
        }
    }

    /// Returns the first half of the SHA-256, which saves memory in the index.
    pub(super) fn short(&self) -> [u8; 16] {
        *self.sha256.first_chunk().unwrap_or(&[0; 16])
    }
}

/// Cache of the parts of one mail, in the order of their ids. A mail can lack a thousand parts that one copy has, and
/// this copy is scanned only once.
#[derive(Default)]
pub(super) struct Parts(Vec<PartLocation>);

struct PartLocation {
    id: PartId,
    body: Span,
    kind: PartKind,
    encoding: TransferEncoding,
    is_text: bool,
    media_type: String,
    fields: Vec<u8>,
}

impl PartLocation {
    fn content<'m>(&self, mail: &'m [u8]) -> Option<Cow<'m, [u8]>> {
        content_of(&self.kind, self.encoding, self.body.of(mail))
    }

    fn with(&self, content: Vec<u8>) -> CopyPart {
        CopyPart {
            content,
            media_type: Some(self.media_type.clone()),
            fields: self.fields.clone(),
        }
    }
}

impl Parts {
    pub(super) fn of(mail: &[u8], limits: &ScanLimits) -> Self {
        let tree = scan(mail, limits);
        let located = tree.ids().map(|id| {
            let part = tree.part(id);
            PartLocation {
                id,
                body: part.body,
                kind: part.content.clone(),
                encoding: part.encoding,
                is_text: is_text(part),
                media_type: media_type(&tree, id),
                fields: fields(&tree, id),
            }
        });
        Self(located.collect())
    }

    fn get(&self, id: PartId) -> Option<&PartLocation> {
        let at = self.0.binary_search_by_key(&id, |part| part.id).ok()?;
        self.0.get(at)
    }

    /// Returns the part with this number in `mail`. Parts are counted from 0 in the order of the mail. The content is the
    /// first of its [`forms`] whose digests `is_wanted` accepts. Returns `None` if it accepts no form.
    pub(super) fn with_digest(
        &self,
        mail: &[u8],
        number: u32,
        is_wanted: impl Fn(&PartDigests) -> bool,
    ) -> Option<CopyPart> {
        let part = self.0.get(usize::try_from(number).ok()?)?;
        let content = forms(part.content(mail)?, part.is_text, part.encoding)
            .into_iter()
            .find(|form| is_wanted(&PartDigests::of(form)))?;
        Some(CopyPart {
            media_type: None,
            ..part.with(content.into_owned())
        })
    }
}

/// Returns the part `id` of a mail, or `None` if the mail has no such part. `mail` contains the bytes of the mail in
/// its mailbox. `plain` is the plain form of the same mail: the bytes without the quoting and the header fields that a
/// mailbox adds. `digest` is the digest of the part's content in `plain`.
///
/// If the content of the part in `mail` has the digest `digest`, this content is returned unchanged. Otherwise the
/// lines of the returned content end with LF, unless base64 or quoted-printable protects the line endings.
pub(super) fn of_mail(
    (mail, parts): (&[u8], &Parts),
    (plain, plain_parts): (&[u8], &Parts),
    (id, digest): (PartId, Digest),
) -> Option<CopyPart> {
    let original = parts.get(id);
    let own = original.and_then(|part| part.content(mail));
    // If the content in `mail` has this digest, its own bytes are used. The digest of a text is that of the plain form,
    // with LF line endings, so it often differs.
    if let Some(part) = original
        && let Some(content) = own.as_deref().filter(|it| Digest::of(it) == digest)
    {
        return Some(part.with(content.to_vec()));
    }
    let of_plain = plain_parts.get(id)?;
    let content = of_plain.content(plain)?;
    // The plain form lacks details: `>` before `From `, and line endings at the end of the mail. If the content in
    // `mail` differs only in these, it is more faithful to the author's text and is used instead.
    let is_same = |own: &Cow<'_, [u8]>| unquoted_text(own) == unquoted_text(&content);
    let more_complete = own
        .filter(|_| !is_protected(of_plain.encoding))
        .map(|own| Cow::Owned(with_newlines(own.into_owned(), Newline::Lf)))
        .filter(is_same);
    Some(of_plain.with(more_complete.unwrap_or(content).into_owned()))
}

/// Returns the digests of all parts of a mail, in each form of their content. Each entry begins with the number of the part,
/// counted from 0 in the order of the mail.
pub(super) fn digests(mail: &[u8], limits: &ScanLimits) -> Vec<(u32, PartDigests)> {
    let tree = scan(mail, limits);
    let mut all = Vec::new();
    for (number, id) in (0..).zip(tree.ids()) {
        let part = tree.part(id);
        if part.content == PartKind::Leaf
            && let Some(content) = content(&tree, id)
        {
            let forms = forms(content, is_text(part), part.encoding);
            all.extend(forms.iter().map(|form| (number, PartDigests::of(form))));
        }
    }
    all
}

/// Returns the forms of a content of which programs compute digests: the bytes as they are, and for a text the same bytes with
/// LF and with CRLF line endings.
fn forms(content: Cow<'_, [u8]>, is_text: bool, encoding: TransferEncoding) -> Vec<Cow<'_, [u8]>> {
    if content.is_empty() {
        return Vec::new();
    }
    let mut forms = vec![content];
    let is_open = !matches!(
        encoding,
        TransferEncoding::Base64 | TransferEncoding::Binary
    );
    if let Some(content) = forms.first().cloned().filter(|_| is_text || is_open) {
        let lines = with_newlines(content.clone().into_owned(), Newline::Lf);
        let canonical = canonical_text(&content).into_owned();
        for form in [lines, canonical] {
            if forms.iter().all(|known| **known != *form) {
                forms.push(Cow::Owned(form));
            }
        }
    }
    forms
}

fn is_text(part: &mime::Part) -> bool {
    part.essence.starts_with("text/")
}

/// Returns the decoded content of a part. For an enclosed message, this is the whole message. Returns `None` for a multipart.
fn content<'t>(tree: &MessageTree<'t>, id: PartId) -> Option<Cow<'t, [u8]>> {
    let part = tree.part(id);
    content_of(&part.content, part.encoding, part.body.of(tree.original))
}

fn content_of<'m>(
    kind: &PartKind,
    encoding: TransferEncoding,
    body: &'m [u8],
) -> Option<Cow<'m, [u8]>> {
    match kind {
        PartKind::Leaf => encoding.decode(body),
        PartKind::Message => Some(Cow::Borrowed(body)),
        PartKind::Multipart(_) | PartKind::Opaque(_) => None,
    }
}

fn is_protected(encoding: TransferEncoding) -> bool {
    matches!(
        encoding,
        TransferEncoding::Base64 | TransferEncoding::QuotedPrintable
    )
}

fn media_type(tree: &MessageTree<'_>, id: PartId) -> String {
    match tree.value(id, "Content-Type").map(unfold) {
        Some(value) => String::from_utf8_lossy(value.trim_ascii()).into_owned(),
        None => tree.part(id).essence.clone(),
    }
}

/// Returns the header fields of a part. For a whole mail, only the fields that describe its content are returned. Fields with
/// control characters are left out, because programs read them differently. If there are several Content-Type fields, only the
/// type that was parsed is returned.
fn fields(tree: &MessageTree<'_>, id: PartId) -> Vec<u8> {
    let original = tree.original;
    let is_message = tree.is_message(id);
    let stays = |field: &Field| {
        let of_transport = ["Content-Transfer-Encoding", "Content-MD5", "MIME-Version"];
        let name = field.name.of(original);
        !name.is_empty()
            && !of_transport.iter().any(|it| field.is(original, it))
            && !is_length(original, field)
            && (!is_message || field.is_content(original))
            && !has_control_character(field.whole.of(original))
    };
    let mut fields = Vec::new();
    let mut types = 0;
    for field in tree.fields(id).iter(original).filter(stays) {
        types += usize::from(field.is(original, "Content-Type"));
        fields.extend_from_slice(field.whole.of(original).trim_ascii_end());
        fields.push(b'\n');
    }
    let type_of = |essence: &str| format!("Content-Type: {essence}\n").into_bytes();
    let fields = match types {
        0 => [type_of(&tree.part(id).essence), fields].concat(),
        1 => fields,
        _ => type_of(&tree.part(id).essence),
    };
    with_newlines(fields, Newline::CrLf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::same::plain;

    const LIMITS: ScanLimits = ScanLimits {
        depth: 64,
        parts: 10_000,
        header: 1 << 20,
    };

    fn mail(part: &str) -> Vec<u8> {
        format!(
            "Subject: a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhello\n--b\n{part}\n--b--\n"
        )
        .into_bytes()
    }

    fn last(mail: &[u8]) -> CopyPart {
        let plain = plain(mail);
        let tree = scan(&plain, &LIMITS);
        let id = tree.ids().last().unwrap();
        let digest = Digest::of(&content(&tree, id).unwrap());
        let (parts, plain_parts) = (Parts::of(mail, &LIMITS), Parts::of(&plain, &LIMITS));
        let of = |digest| of_mail((mail, &parts), (&plain, &plain_parts), (id, digest)).unwrap();
        let (part, other) = (of(digest), of(Digest::of(b"as of a text")));
        assert_eq!(part.content, other.content);
        part
    }

    #[test]
    fn content_is_decoded_and_fields_are_those_that_describe_it() {
        let text = "Content-Type: application/pdf;\n name=a.pdf\nContent-Transfer-Encoding: base64\n\
            Content-ID: <x@y>\nContent-MD5: x\nLines: 3\n\nAAEC";
        let part = last(&mail(text));
        assert_eq!(part.content, [0, 1, 2]);
        assert_eq!(part.media_type.unwrap(), "application/pdf; name=a.pdf");
        let fields = "Content-Type: application/pdf;\r\n name=a.pdf\r\nContent-ID: <x@y>\r\n";
        assert_eq!(String::from_utf8(part.fields).unwrap(), fields);
    }

    #[test]
    fn text_keeps_quotation_marks_that_its_author_wrote() {
        let text = mail("Content-Type: text/x-diff\n\na\n>From here\n>>From there");
        assert_eq!(last(&text).content, b"a\n>From here\n>>From there");
        let crlf = String::from_utf8(text).unwrap().replace('\n', "\r\n");
        let part = last(crlf.as_bytes());
        assert_eq!(part.content, b"a\n>From here\n>>From there");
    }

    #[test]
    fn part_without_a_type_gets_its_default_and_one_with_two_types_only_the_first() {
        assert_eq!(
            last(&mail("\nhello")).fields,
            b"Content-Type: text/plain\r\n"
        );
        let two = mail("Content-Type: image/png\nContent-ID: <a@b>\nContent-Type: text/html\n\nx");
        assert_eq!(last(&two).fields, b"Content-Type: image/png\r\n");
    }

    #[test]
    fn text_is_found_by_the_digest_of_each_form_of_its_lines() {
        let mail = mail("Content-Type: text/plain; name=a.txt\n\na\nb");
        for form in [b"a\nb".as_slice(), b"a\r\nb"] {
            let wanted = PartDigests::of(form);
            assert!(digests(&mail, &LIMITS).contains(&(2, wanted.clone())));
            let parts = Parts::of(&mail, &LIMITS);
            let part = |number| parts.with_digest(&mail, number, |it| it.md5 == wanted.md5);
            assert_eq!(part(2).unwrap().content, form);
            assert!(part(1).is_none() && part(9).is_none());
        }
    }
}
