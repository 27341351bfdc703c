//! Finds content of a TNEF stream that the reader does not use, so that a `winmail.dat` with such content stays in the mail.

use crate::engine::outlook::properties::{
    Properties, Property, PropertyUse, PropertyValue, id, integer,
};

/// Size in bytes above which an unknown binary property counts as content. Entry ids and search keys, which identify
/// people and messages, have about 100 bytes.
const MOST_BINARY: usize = 256;
/// Size in bytes above which an unknown text with a fixed number counts as content. The preview of a body has 512
/// bytes.
const MOST_TEXT: usize = 1024;
/// Maximum size in bytes of a property that mail does not need, such as a list of entry ids. A longer one counts as
/// content.
const MOST_HOUSEKEEPING: usize = 4096;

/// Returns the maximum length in bytes of an attribute that is not content, such as a date, a number or a name. A
/// longer attribute has a damaged number, and skipping it would lose content. Returns `None` for unknown attributes,
/// and for those whose content is converted anyway.
pub(super) fn longest(number: u16) -> Option<usize> {
    match number {
        0x0006 | 0x0007 | 0x0009 | 0x8005..=0x8007 | 0x800d => Some(32),
        0x8012 | 0x8013 | 0x8020 | 0x9002 | 0x9006 | 0x9007 => Some(32),
        0x0000..=0x0002 | 0x0008 | 0x0600 | 0x8008..=0x800b => Some(256),
        0x8000 | 0x8004 | 0x8010 | 0x9001 => Some(2048),
        _ => None,
    }
}

/// Whether an attribute only describes the item or repeats a property, so that mail needs no place for it.
pub(super) fn is_housekeeping(number: u16) -> bool {
    matches!(
        number,
        0x0000..=0x0002 // owner of a meeting, its organiser, the person who acts for the organiser
            | 0x0008 // appointment id of the owner
            | 0x0009 // response requested
            | 0x0600 // original message class
            | 0x8009..=0x800b // ids of the message, of its parent and of its conversation
            | 0x8011 // picture of the icon of an attachment
            | 0x8020 // time of the last change
            | 0x9006 // version of the format
    )
}

/// Whether a property may be content that the table of properties does not know. Properties named by text are excluded:
/// programs use them for their own notes about a mail, sometimes of many kilobytes.
pub(super) fn is_large_and_unknown(property: &Property<'_>) -> bool {
    let (binary, text) = lengths(&property.value);
    match property.becomes() {
        None => binary > MOST_BINARY || property.name.is_none() && text > MOST_TEXT,
        // Damage can give content the number of a housekeeping property, so a very long one counts as content.
        Some(PropertyUse::Housekeeping) => binary.max(text) > MOST_HOUSEKEEPING,
        Some(_) => false,
    }
}

/// Returns the total lengths of the binary values and of the texts.
fn lengths(value: &PropertyValue<'_>) -> (usize, usize) {
    match value {
        PropertyValue::Bytes(bytes) => (bytes.len(), 0),
        PropertyValue::Narrow(bytes) => (0, bytes.len()),
        PropertyValue::Text(text) => (0, text.len()),
        PropertyValue::Many(values) => values
            .iter()
            .map(lengths)
            .fold((0, 0), |(a, b), (c, d)| (a + c, b + d)),
        _ => (0, 0),
    }
}

/// Whether the item is flagged as having attachments.
pub(super) fn says_attachments(properties: &Properties<'_>) -> bool {
    const HAS_ATTACHMENTS: i64 = 0x10;
    properties.0.iter().any(|it| {
        let number = integer(&it.value).unwrap_or_default();
        it.name.is_none()
            && (it.id == id::HAS_ATTACHMENTS && number != 0
                || it.id == id::FLAGS && number & HAS_ATTACHMENTS != 0)
    })
}

/// Whether a text of the item or the content of an attachment occurs twice, in different versions. Only the first is
/// converted.
pub(super) fn has_second_content(properties: &Properties<'_>) -> bool {
    [id::BODY, id::RTF, id::HTML, id::DATA].iter().any(|id| {
        let is = |it: &&Property<'_>| it.id == *id && it.name.is_none();
        let mut versions = properties.0.iter().filter(is).map(|it| &it.value);
        let first = versions.next();
        let has_many = matches!(first, Some(PropertyValue::Many(values)) if values.len() > 1);
        has_many || versions.any(|other| Some(other) != first)
    })
}
