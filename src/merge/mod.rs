//! Merges several mailboxes into one that contains each mail once, in its most complete copy (docs/merge.md).
//!
//! ```text
//! messages of all sources
//!   -> spool: their contents in a temporary file, identical ones once     spool
//!   -> index: a record of at most 100 bytes for each, sorted on disk      spool::Sorter, record
//!     -> groups of one Message-ID: which are copies of one mail           groups; the relation is same::covers
//!       -> index of the mails that are kept, sorted by date               spool::Sorter
//!         -> their contents, in this order
//! ```
//!
//! Memory does not grow with the number of messages, because all lists of messages are in temporary files. A group of a
//! million mails takes linear time, because only [`MOST_COMPARED`](crate::engine::same::MOST_COMPARED) different mails of a
//! group are compared.
//!
//! The first two files of a large merge have names until the result is complete, so that a stopped run can be continued
//! ([`SavedIndex`]).
//!
//! This module does not depend on the formats of mailboxes or on the command line.

mod finished;
mod groups;
mod index;
mod record;
mod saved;
mod spool;
mod stamp;
mod words;

pub(crate) use self::finished::{FinishedReport, finished, record, remove_record};
pub(crate) use self::index::{
    ArrivalBatch, KeptSelection, MOST_SOURCES, MergeIndex, Numbers, Order, Tally,
};
pub(crate) use self::saved::{ReadSource, SavedIndex};
pub(crate) use self::words::lost_labels;
