//! The table of all forms of references to external content. To add a form, create a directory and add it to [`TABLE`].

pub(crate) use super::mailman::divided;
use super::reference_form::{Needles, ReferenceForm};
use super::{apple, hosted, mailman, rfc2046, shortcut, sympa, thunderbird, yahoo};
use crate::engine::external_body::claim::claim_of;
use crate::engine::external_body::reference::ReferenceReader;
use crate::engine::external_body::{ESSENCE, ExternalBody};
use crate::engine::policy::ReferenceParse;
use crate::mime::{Field, MessageTree, PartId};

/// All forms. A part belongs to the first form that reads it.
pub(crate) static TABLE: &[&dyn ReferenceForm] = &[
    &apple::Apple,
    &thunderbird::Thunderbird,
    &shortcut::Shortcut,
    &sympa::Sympa,
    &yahoo::Yahoo,
    &mailman::Mailman,
    &hosted::HostedForm,
];

/// Reads the reference of a part. Returns `None` if the part is not a reference as a whole.
pub fn read<'a>(
    tree: &MessageTree<'a>,
    part: PartId,
    reading: &ReferenceParse,
) -> Option<ExternalBody<'a>> {
    let reader = ReferenceReader {
        tree,
        part,
        reading,
    };
    let mut body = if tree.part(part).essence == ESSENCE {
        let media_type = rfc2046::media_type(&reader);
        // Without an access type, the body of the external-body part names the content. With one, the parameters do.
        match media_type.parameter("access-type") {
            None => TABLE.iter().find_map(|form| form.of_external_body(&reader)),
            Some(_) => None,
        }
        .unwrap_or_else(|| rfc2046::reference(&reader, &media_type))
    } else {
        TABLE.iter().find_map(|form| form.of_part(&reader))?
    };
    body.claim = claim_of(tree, &body);
    Some(body)
}

/// Adds the parts whose content is in a file next to the mailbox, even if the message is not in a mailbox: a message
/// that was moved out still has such parts.
pub(crate) fn with_parts_in_files(reading: ReferenceParse) -> ReferenceParse {
    let beside = TABLE.iter().find_map(|form| match form.needles() {
        Needles::Beside(kind, _) => Some(kind),
        _ => None,
    });
    ReferenceParse { beside, ..reading }
}

/// Returns true for fields that make a part a reference. They are removed when the content is inserted.
pub(crate) fn is_reference_field(original: &[u8], field: &Field) -> bool {
    let names = TABLE.iter().flat_map(|form| form.reference_fields());
    names.into_iter().any(|name| field.is(original, name))
}

/// Returns true if a part of this media type is itself a reference.
pub(crate) fn is_reference_type(essence: &str) -> bool {
    TABLE.iter().any(|form| form.is_reference_type(essence))
}

/// Whether a text contains references. Such a text must not become a text of the message, because a later run would
/// then change it.
pub(crate) fn holds_notes(tree: &MessageTree<'_>, text: &[u8]) -> bool {
    TABLE.iter().any(|form| form.is_in_text(tree, text))
}
