//! Finds the items in a FETCH response by their names.

use crate::imap::failure::ImapFailure;
use crate::imap::response::{ResponseValue, ServerResponse, fetch_items};

/// Returns the items of a FETCH response as pairs of a name and a value. Returns `None` for any other response.
pub(in crate::imap) fn items<'r>(
    read: &ServerResponse<'r>,
) -> Result<Option<Vec<[ResponseValue<'r>; 2]>>, ImapFailure> {
    let ServerResponse::Numbered(_, name, rest) = read else {
        return Ok(None);
    };
    if name != "FETCH" {
        return Ok(None);
    }
    fetch_items(rest).map(Some).map_err(ImapFailure::Unreadable)
}

pub(in crate::imap) fn item<'i, 'r>(
    items: &'i [[ResponseValue<'r>; 2]],
    name: &str,
) -> Option<&'i ResponseValue<'r>> {
    let is_meant = |[key, _]: &&[ResponseValue<'_>; 2]| matches!(key, ResponseValue::Atom(key) if key.eq_ignore_ascii_case(name.as_bytes()));
    items.iter().find(is_meant).map(|[_, value]| value)
}

pub(in crate::imap) fn uid(items: &[[ResponseValue<'_>; 2]]) -> Option<u32> {
    let number = item(items, "UID")?.number()?;
    u32::try_from(number).ok().filter(|uid| *uid > 0)
}
