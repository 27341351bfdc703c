use std::sync::Arc;

use super::mark::Mark;
use super::prefilter::Prefilter;
use crate::engine::policy::Policy;

/// The decisions of a user that hold for all messages of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) policy: Arc<Policy>,
    pub(super) mark: Mark,
    /// Whether only attachments that embody detached are restored, and nothing else is done.
    pub(super) detached_only: bool,
    /// Whether the content of a detached attachment is a need for an object of a store, whatever URL the part has.
    pub(super) store: bool,
    pub(super) prefilter: Prefilter,
}
