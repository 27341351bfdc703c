//! The interface of a form of references: functions that tell the prefilter which bytes occur in mail with such
//! references, and functions that find the references in a message. The
//! [facts](crate::engine::external_body::reference::Facts) about a form, on which planning and editing depend, are in a
//! module of a lower level.

use std::collections::HashSet;

use crate::engine::external_body::ExternalBody;
use crate::engine::external_body::reference::ReferenceReader;
use crate::engine::policy::{Follow, Followed, ReferenceParse};
use crate::engine::search_words::PrefilterWord;
use crate::mime::{MessageTree, PartId};

/// A search of bytes from an offset. Returns the position of the first match.
pub(crate) type Search = fn(&[u8], usize) -> Option<usize>;

/// The bytes by which the prefilter recognises a message that may have references of a form. If a message has none of them, it
/// is not parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needles {
    /// Words of which at least one occurs in the header of each part with a reference. All words of all forms are searched for
    /// at once.
    Words(&'static [PrefilterWord]),
    /// Words that are searched for only in the mailboxes of one mail program, which stores attachments as files next to its
    /// mailboxes.
    Beside(Follow, &'static [PrefilterWord]),
    /// A search of the header of a part. It runs only if `--follow` includes one of the kinds in the list.
    Header(&'static [Follow], Search),
    /// A search of the body of a part. It runs only if `--follow` includes one of the kinds in the list.
    Body(&'static [Follow], Search),
    /// The references are links in documents. The function returns true if a document may have a link of the followed kinds.
    Documents(&'static [Follow], fn(&[u8], Followed) -> bool),
}

/// A form of references, such as the notes of Mailman: one program's way to say that an attachment is stored elsewhere.
///
/// All methods return nothing by default. A form implements those that it needs.
pub(crate) trait ReferenceForm: Sync {
    /// Returns the byte strings that the prefilter searches for.
    fn needles(&self) -> Needles;

    /// Reads a part that is a reference as a whole.
    fn of_part<'a>(&self, _reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        None
    }

    /// Reads a part of the type `message/external-body` that has no access type. Some programs write such parts, and put a
    /// shortcut file with the URL into the body.
    fn of_external_body<'a>(&self, _reader: &ReferenceReader<'a, '_>) -> Option<ExternalBody<'a>> {
        None
    }

    /// Finds the references in the texts and documents of a message. The parts in `known` are skipped, because they are
    /// references as a whole.
    fn in_texts<'a>(
        &self,
        _tree: &MessageTree<'a>,
        _reading: &ReferenceParse,
        _known: &HashSet<PartId>,
    ) -> Vec<ExternalBody<'a>> {
        Vec::new()
    }

    /// Whether a text contains a reference of this form. Such a text must not become a text of the message, because a
    /// later run would then change it.
    fn is_in_text(&self, _tree: &MessageTree<'_>, _text: &[u8]) -> bool {
        false
    }

    /// Returns true if parts of this media type are references of this form.
    fn is_reference_type(&self, _essence: &str) -> bool {
        false
    }

    /// Returns the names of the header fields that make a part a reference. They are removed when the content is inserted.
    fn reference_fields(&self) -> &'static [&'static str] {
        &[]
    }
}
