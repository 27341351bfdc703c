//! Attachments that embody detached and whose content is in a store.

use super::Need;
use crate::engine::plan::{Item, Step};
use crate::engine::report::Reason;

/// Replaces the step of a detached attachment by a need for the object in the store, whatever the policy says about the URL in
/// the mail. If the part itself must stay unchanged, for example because it is signed, the step is kept.
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
