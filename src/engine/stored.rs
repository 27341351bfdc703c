//! Attachments that embody detached and whose content is in a store.

use super::Need;
use crate::engine::plan::{Item, Step};
use crate::engine::report::Reason;

/// Makes a detached attachment a need for an object of a store, whatever the policy says about its URL.
pub(super) fn by_hash(item: &mut Item<'_>) {
    let is_about_part = |reason| {
        use Reason::{BadNote, Encrypted, HeaderTooLarge, InsideReport, Signed, TypeNotAllowed};
        matches!(
            reason,
            BadNote | Encrypted | HeaderTooLarge | InsideReport | Signed | TypeNotAllowed
        )
    };
    let Some(note) = item.body.note() else { return };
    if !matches!(&item.step, Step::Leave(refusal) if is_about_part(refusal.reason)) {
        item.step = Step::Retrieve(Need::Object {
            sha256: note.sha256.clone(),
        });
    }
}
