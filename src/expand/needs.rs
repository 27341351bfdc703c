//! The interface between a round of the engine and its driver: content that the message needs, and content that the
//! driver has retrieved for it.
//!
//! A round never retrieves anything. It lists the content that it lacks, and the driver begins another round when it has
//! an answer for each need. A round with the same answers always lists the same needs.

use std::collections::HashMap;

use crate::engine::{Content, Need};
use crate::report::Refusal;

/// The first batch of needs that a round has no answers for.
#[derive(Debug)]
pub(super) struct Needs {
    /// In document order. They are independent of each other.
    pub(super) batch: Vec<Need>,
    /// Bytes that the contents may have together. A content beyond that is refused, whatever its source.
    pub(super) room: u64,
}

/// `Ok(None)` in a forecast, and in a round that cannot go on: the content is not there.
pub(super) type Found<T> = Result<Option<T>, Refusal>;

/// An answer for each need that was retrieved so far. A file that a forecast only looked at has the answer `Ok(None)`.
pub(super) type Answers = HashMap<Need, Found<Content>>;

/// The reaction of a round to a need without an answer.
#[derive(Clone, Debug)]
pub(super) enum Unanswered {
    /// The round ends. Its driver retrieves the content and begins another one.
    Stops,
    /// The round goes on. The reference counts as one that would be retrieved: this makes a forecast. Only for a file next to the
    /// mailbox it ends, because its driver looks at the file.
    IsLeftOpen,
    /// The round goes on. The reference is left for this reason: no further round is allowed.
    IsRefused(Refusal),
}
