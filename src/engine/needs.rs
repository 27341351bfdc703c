//! The interface between a round of the engine and its driver: content that the message needs, and content that the
//! driver has retrieved for it.
//!
//! A round never retrieves anything. It lists the content that it lacks, and the driver begins another round when it has
//! an answer for each need. A round with the same answers always lists the same needs.

use std::collections::HashMap;

use super::{Content, Need};
use crate::report::{Detail, Reason, Refusal, Setting};

/// The first needs of a message that have no answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Needs {
    /// In document order. They do not depend on each other, so they can be retrieved at the same time.
    pub batch: Vec<Need>,
    /// Number of bytes that the contents may have together. Content beyond it is refused, so a driver may stop retrieving.
    pub room: u64,
}

/// Content, or `Ok(None)`: content that a forecast would retrieve, and content that a stopped round does not have.
pub(crate) type Found<T> = Result<Option<T>, Refusal>;

/// Content or a refusal for each need that a driver was asked for so far.
#[derive(Clone, Default, Debug)]
pub struct Answers(HashMap<Need, Found<Content>>);

impl Answers {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the answer to a need. A later answer replaces an earlier one.
    pub fn insert(&mut self, need: Need, answer: Result<Content, Refusal>) {
        self.0.insert(need, answer.map(Some));
    }

    /// Adds the answer that the content is there and was not read. Only forecasts may use it.
    pub(crate) fn announce(&mut self, need: Need) {
        self.0.insert(need, Ok(None));
    }

    pub(super) fn get(&self, need: &Need) -> Option<&Found<Content>> {
        self.0.get(need)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The refusal of content that has no room after the contents before it. `room` is in bytes.
pub(crate) fn too_much(room: u64) -> Refusal {
    let what = format!(
        "this file and the files retrieved before it are together larger than the {room} bytes that "
    );
    let detail = Detail::from(what).naming(Setting::Growth);
    Refusal::lasting(Reason::GrowthLimit, detail.then(" still allows"))
}

/// The reaction of a round to a need without an answer.
#[derive(Clone, Debug)]
pub(crate) enum Unanswered {
    /// The round ends. Its driver retrieves the content and begins another one.
    Stops,
    /// The round goes on. The reference counts as one that would be retrieved: this makes a forecast. Only for a file next to the
    /// mailbox it ends, because its driver looks at the file.
    IsLeftOpen,
    /// The round goes on. The reference is left for this reason: no further round is allowed.
    IsRefused(Refusal),
}
