//! Attachments that embody detached and whose content is in a store.

use super::Need;
use crate::engine::plan::{PlanItem, PlanStep};
use crate::engine::report::Reason;

/// Plans that the content of a detached attachment is read from the store, by its SHA-256. The URL in the mail is not used, so
/// it does not matter whether the policy allows this URL. If the part itself must stay unchanged, for example because it is
/// signed, the plan for the part is kept.
pub(super) fn by_hash(item: &mut PlanItem<'_>) {
    let is_about_part = |reason| {
        use Reason::{BadNote, Encrypted, HeaderTooLarge, InsideReport, Signed, TypeNotAllowed};
        matches!(
            reason,
            BadNote | Encrypted | HeaderTooLarge | InsideReport | Signed | TypeNotAllowed
        )
    };
    let Some(note) = item.body.note() else { return };
    if !matches!(&item.step, PlanStep::Leave(refusal) if is_about_part(refusal.reason)) {
        item.step = PlanStep::Retrieve(Need::Object {
            sha256: note.sha256.clone(),
        });
    }
}
