//! Attachments that Apple Mail stores in separate files next to the message (`N.partial.emlx`). No document describes this
//! form, so the following is how the program behaves.
//!
//! The part keeps its header and has no body. `X-Apple-Content-Length` is the length of the encoded body with LF line endings.
//! The file is `../Attachments/N/PART/NAME`, relative to the directory of the message, and PART is the part number of IMAP
//! (RFC 9051 §6.4.5). The file contains the decoded content. On a part that has a body, the field has no meaning.

mod part;
mod refill;

pub(crate) use self::part::LENGTH_FIELD;
use self::part::torn_delimiter;

use crate::engine::external_body::file_names::name_of;
use crate::engine::external_body::reference::{Facts, Insertion};
use crate::engine::external_body::reference::{ReferenceReader, own_content};
use crate::engine::external_body::{ExternalBody, ReferenceShape, Referent};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::Follow;
use crate::engine::report::Kind;
use crate::engine::search_words::{PrefilterWord, word};
use crate::mime::header::SectionEnd;
use crate::mime::{MediaType, PartKind};
use crate::span::Span;

/// Facts about parts whose content Apple Mail stored in a file next to the mailbox.
static FACTS: Facts = Facts {
    insertion: Insertion::Body(refill::refilled),
    may_be_in_copies: true,
    ..Facts::of_whole_part(ReferenceShape::Apple, Kind::Apple, Some(Follow::Apple))
};

/// Parts whose content Apple Mail stored in a file.
pub(crate) struct Apple;

impl ReferenceForm for Apple {
    fn needles(&self) -> Needles {
        static WORDS: [PrefilterWord; 1] = [word("x-apple-content-length", 1)];
        Needles::Beside(Follow::Apple, &WORDS)
    }

    fn of_part<'a>(&self, reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        reader.apple()
    }
}

impl<'a> ReferenceReader<'a, '_> {
    fn apple(&self) -> Option<ExternalBody<'a>> {
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
            _ => Err(own_content(
                "the part is a multipart or contains other parts",
            )),
        };
        let phantom = self.phantom(fields.clone(), SectionEnd::Regular);
        let mut body = ExternalBody::with(tree, part, &FACTS, target, phantom);
        // Without a declared type, the part is text/plain (RFC 2045 §5.2). The Content-ID is dropped because references
        // with the same id count as alternative sources of one attachment, which these are not.
        body.declared
            .get_or_insert_with(|| MediaType::parse(b"text/plain"));
        body.content_id = None;
        Some(body)
    }
}
