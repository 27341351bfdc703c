//! The counts of messages, for the summary of a run.

use std::collections::BTreeMap;

use crate::engine::same::CoverDifference;

/// Maximum number of sources for a mail to be counted in [`Tally::pairs`]: a mail in a thousand sources would count for
/// half a million pairs.
pub(crate) const MOST_SOURCES: usize = 64;

/// The counts of messages, for the summary of the run.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tally {
    /// Number of messages in all sources.
    pub(crate) messages: u64,
    /// Total length of the messages in all sources, in bytes.
    pub(crate) bytes: u64,
    /// Number of mails in the result.
    pub(crate) kept: u64,
    /// Total length of the mails in the result, in bytes.
    pub(crate) kept_bytes: u64,
    /// Number of messages that are identical to an earlier one, apart from fields that mail programs add for their
    /// mailboxes.
    pub(crate) identical: u64,
    /// Number of copies that were dropped although their content is different. For each of them, a copy that is at
    /// least as complete is kept.
    pub(crate) dropped: u64,
    /// Number of parts that were missing in a dropped copy and are present in the copy kept in its place.
    pub(crate) filled: u64,
    /// Number of missing parts, of all messages, whose content `recover --copies` would take from another copy of the
    /// same mail in the sources. `None` if they were not counted.
    pub(crate) fillable: Option<u64>,
    /// Number of dropped copies whose end is missing, while the kept copy is complete.
    pub(crate) completed: u64,
    /// Number of incomplete copies that could belong to several mails. They are kept.
    pub(crate) ambiguous: u64,
    /// Number of mails that were not compared, because too many have the same Message-ID.
    pub(crate) uncompared: u64,
    /// For each kind of difference, the number of mails that have the Message-ID of another mail but differ from it in
    /// this way.
    pub(crate) differences: BTreeMap<CoverDifference, u64>,
    /// Number of mails that are in more than one source.
    pub(crate) shared: u64,
    /// Number of mails that two sources have in common, for each pair of sources. A mail in more than [`MOST_SOURCES`]
    /// sources is counted in `widespread` instead.
    pub(crate) pairs: BTreeMap<(u32, u32), u64>,
    /// Number of mails that are in more than [`MOST_SOURCES`] sources.
    pub(crate) widespread: u64,
}
