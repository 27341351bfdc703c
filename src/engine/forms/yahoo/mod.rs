//! Attachments that the archives of Yahoo Groups contain only as a note.
//!
//! Yahoo Groups removed attachments from the mails in its archives, and wrote the same English sentence into the part as its
//! body: `[ Attachment content not displayed ]`. The header of the part stayed, also its Content-Transfer-Encoding, so a part
//! that declares base64 has a body in plain text. Older downloads have the sentence of the web page: `[Attachment content not
//! displayed.]`. Yahoo has deleted all groups, so only another copy of the mail can still have the attachment.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::engine::external_body::file_names::name_of;
use crate::engine::external_body::reference::Facts;
use crate::engine::external_body::reference::ReferenceReader;
use crate::engine::external_body::{ExternalBody, ReferenceShape};
use crate::engine::forms::reference_form::{Needles, ReferenceForm};
use crate::engine::policy::Follow;
use crate::engine::report::{Kind, Reason, Refusal};
use crate::mime::header::SectionEnd;
use crate::mime::{MediaType, PartKind};

const SENTENCE: &[u8] = b"Attachment content not displayed";

/// Facts about notes in the archives of Yahoo Groups. The part keeps its header, and the content gets the encoding that the
/// header declares.
static FACTS: Facts = Facts {
    may_be_in_copies: true,
    quotes_header: true,
    ..Facts::of_whole_part(
        ReferenceShape::YahooGroups,
        Kind::YahooGroups,
        Some(Follow::YahooGroups),
    )
};

/// Notes in the archives of Yahoo Groups.
pub(crate) struct Yahoo;

impl ReferenceForm for Yahoo {
    fn needles(&self) -> Needles {
        Needles::Body(&[Follow::YahooGroups], sentence)
    }

    fn of_part<'a>(&self, reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        reader.yahoo()
    }
}

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(SENTENCE));

fn sentence(bytes: &[u8], from: usize) -> Option<usize> {
    Some(from + FINDER.find(bytes.get(from..)?)?)
}

impl<'a> ReferenceReader<'a, '_> {
    fn yahoo(&self) -> Option<ExternalBody<'a>> {
        let (tree, part) = (self.tree, self.part);
        let (entity, fields) = (tree.part(part), tree.fields(part));
        // The raw body is compared, whatever Content-Transfer-Encoding the part declares: Yahoo did not encode the note.
        if !self.reading.forms.contains(Follow::YahooGroups)
            || matches!(entity.content, PartKind::Multipart(_))
            || !is_note(entity.body.of(tree.original))
        {
            return None;
        }
        // An unnamed text that consists of this sentence may be a mail in which a person quotes it, not a removed
        // attachment.
        let is_file = !entity.essence.starts_with("text/")
            || tree.has_disposition(part, "attachment")
            || name_of(tree.original, fields).text().is_some();
        if !is_file {
            return None;
        }
        let phantom = self.phantom(fields.clone(), SectionEnd::Regular);
        let mut body = ExternalBody::with(tree, part, &FACTS, Err(removed()), phantom);
        body.declared
            .get_or_insert_with(|| MediaType::parse(b"text/plain"));
        // The original Content-ID is dropped: references with the same id would count as alternative sources of one
        // attachment.
        body.content_id = None;
        Some(body)
    }
}

fn removed() -> Refusal {
    let detail = "Yahoo Groups removed the attachment; there is nothing to retrieve";
    Refusal::lasting(Reason::Deleted, detail)
}

/// Returns whether a body is the note: the sentence in brackets, with or without blanks and a full stop.
fn is_note(body: &[u8]) -> bool {
    let body = body.trim_ascii();
    let inner = body
        .strip_prefix(b"[")
        .and_then(|body| body.strip_suffix(b"]"));
    inner.is_some_and(|inner| {
        let inner = inner.trim_ascii();
        inner.strip_suffix(b".").unwrap_or(inner) == SENTENCE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_a_note_only_if_it_contains_nothing_but_the_sentence() {
        for (body, is) in [
            ("[ Attachment content not displayed ]", true),
            ("[ Attachment content not displayed]\r\n", true),
            ("\n[Attachment content not displayed.]\n\n", true),
            ("[Attachment content not displayed]", true),
            ("> [ Attachment content not displayed ]", false),
            ("Attachment content not displayed", false),
            ("[ Attachment content not displayed ]\nWhy?", false),
            ("See: [ Attachment content not displayed ]", false),
            ("[]", false),
            ("", false),
        ] {
            assert_eq!(is_note(body.as_bytes()), is, "{body}");
        }
    }
}
