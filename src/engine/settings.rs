use std::sync::Arc;

use super::mark::Mark;
use super::prefilter::Prefilter;
use crate::engine::policy::Policy;

/// Options of the user that apply to all messages of a run.
#[derive(Clone, Debug)]
pub(super) struct EngineSettings {
    pub(super) policy: Arc<Policy>,
    pub(super) mark: Mark,
    /// True if the run only restores attachments that embody detached.
    pub(super) detached_only: bool,
    /// True if the content of a detached attachment is read from a store by its hash, whatever URL the part contains.
    pub(super) store: bool,
    pub(super) prefilter: Prefilter,
}
