//! What holds for every message that an expander works on.

use std::sync::Arc;

use super::prefilter::Prefilter;
#[cfg(all(feature = "file", feature = "mailbox"))]
use crate::fetch::EudoraMailbox;
use crate::policy::Policy;

/// The header field that [`Mark::Field`] adds.
pub const MARK_FIELD: &str = "X-Embody";

/// Whether to say in the message that it was worked on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mark {
    /// Add nothing.
    #[default]
    Off,
    /// Add `X-Embody: expanded=2 left=1 links=14` to messages that hold references, and take away what else is called so.
    /// A run that changes nothing else leaves a mark of this form as it is, whoever wrote it: it is a note, no evidence.
    Field,
}

/// The policy and what else was chosen.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) policy: Arc<Policy>,
    pub(super) mark: Mark,
    /// Whether to work on what embody detached and on nothing else; else on all references, and on links as the policy
    /// says.
    pub(super) detached_only: bool,
    /// Where the content of what was detached is looked up by its hash, whatever URL the part has.
    pub(super) store: bool,
    pub(super) prefilter: Prefilter,
    /// The files beside the mailbox of Eudora that is at work.
    #[cfg(all(feature = "file", feature = "mailbox"))]
    pub(super) eudora: EudoraMailbox,
}

impl Settings {
    pub(super) fn new(policy: Arc<Policy>) -> Self {
        Self {
            prefilter: Prefilter::new(&policy),
            detached_only: false,
            store: false,
            #[cfg(all(feature = "file", feature = "mailbox"))]
            eudora: EudoraMailbox::default(),
            policy,
            mark: Mark::default(),
        }
    }
}
