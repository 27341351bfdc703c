//! Attachments that Apple Mail stores in separate files next to the message (`N.partial.emlx`). No document describes this
//! form, so the following is how the program behaves.
//!
//! The part keeps its header and has no body. `X-Apple-Content-Length` is the length of the encoded body with LF line endings.
//! The file is `../Attachments/N/PART/NAME`, relative to the directory of the message, and PART is the part number of IMAP
//! (RFC 9051 §6.4.5). The file contains the decoded content. On a part that has a body, the field has no meaning.
//!
//! Apple Mail sometimes loses the last `-` of a closing boundary line. Then the damaged line is in the body of the last part.

use crate::engine::external_body::facts::Facts;
use crate::engine::external_body::listing::name_of;
use crate::engine::external_body::reference::{Reader, own_content};
use crate::engine::external_body::{ExternalBody, Follow, Form, Referent};
use crate::engine::report::Kind;
use crate::mime::header::SectionEnd;
use crate::mime::{MediaType, PartId, PartKind, Tree};
use crate::span::Span;

pub const LENGTH_FIELD: &str = "X-Apple-Content-Length";

/// Facts about parts whose content Apple Mail stored in a file next to the mailbox.
pub(crate) const FACTS: Facts = Facts::of_whole_part(Kind::Apple);

impl<'a> Reader<'a, '_> {
    pub(in crate::engine) fn apple(&self) -> Option<ExternalBody<'a>> {
        let (tree, part) = (self.tree, self.part);
        let (entity, fields) = (tree.part(part), tree.fields(part));
        let text = entity.body.of(tree.original).trim_ascii();
        let is_torn = |torn: Span| torn.of(tree.original) == text;
        let is_empty = text.is_empty() || torn_delimiter(tree, part).is_some_and(is_torn);
        if self.reading.beside != Some(Follow::Apple)
            || fields.first(tree.original, LENGTH_FIELD).is_none()
            || !is_empty
        {
            return None;
        }
        let target = match entity.content {
            PartKind::Leaf | PartKind::Message => Ok(Referent::Beside {
                folder: tree.number(part),
                name: name_of(tree.original, fields).text(),
            }),
            _ => Err(own_content("it is a multipart or contains other parts")),
        };
        let phantom = self.phantom(fields.clone(), SectionEnd::Regular);
        let mut body = ExternalBody::with(tree, part, Form::Apple, target, phantom);
        // Without a declared type, the part is text/plain (RFC 2045 §5.2). Its Content-ID is removed from the reference:
        // references with the same id would count as alternative sources of one attachment.
        body.declared
            .get_or_insert_with(|| MediaType::parse(b"text/plain"));
        body.content_id = None;
        Some(body)
    }
}

pub fn torn_delimiter(tree: &Tree<'_>, part: PartId) -> Option<Span> {
    let above = tree.part(tree.part(part).parent?);
    let PartKind::Multipart(multipart) = &above.content else {
        return None;
    };
    if multipart.close.is_some() || above.children.last() != Some(&part) {
        return None;
    }
    let body = tree.part(part).body;
    let text = body.of(tree.original).trim_ascii_end();
    let line = text
        .strip_suffix(b"-")?
        .strip_suffix(multipart.boundary.as_slice())?;
    let front = line.strip_suffix(b"--")?;
    let is_line = front.is_empty() || front.ends_with(b"\n");
    is_line.then(|| Span::new(body.start + front.len(), body.start + text.len()))
}
