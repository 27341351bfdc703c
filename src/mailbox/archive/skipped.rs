//! The members of an archive that are not read as mail, and the counts of all members.

use std::collections::BTreeMap;

use super::places::MemberPlaces;
use super::spooled::SpooledFile;
use crate::mailbox::FileCounts;
use crate::mailbox::flag_losses::FlagLosses;

/// Maximum number of skipped members that are reported by name. Further members are only counted, because an archive
/// can contain millions of them.
const NAMED: usize = 10_000;

#[derive(Default, Debug)]
pub(crate) struct SkippedMember {
    /// All members by verdict, as far as the archive was read.
    pub(crate) files: FileCounts,
    pub(crate) named: Vec<(String, &'static str)>,
    pub(crate) others: BTreeMap<&'static str, u64>,
    pub(crate) spooled: Vec<SpooledFile>,
    /// Flags and keywords of messages in the archive that are not kept.
    pub(crate) lost: FlagLosses,
    /// Number of messages whose mbox entries do not contain the text before their headers.
    pub(crate) prologues: u64,
    /// Folders of the members that are read.
    pub(crate) places: MemberPlaces,
}

impl SkippedMember {
    pub(super) fn add(&mut self, name: String, what: &'static str) {
        if self.named.len() < NAMED {
            self.named.push((name, what))
        } else {
            *self.others.entry(what).or_default() += 1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_members_beyond_the_list_of_names_are_only_counted() {
        let mut skipped = SkippedMember::default();
        for _ in 0..NAMED + 7 {
            skipped.add("x".to_owned(), "text");
        }
        let SkippedMember { named, others, .. } = skipped;
        assert_eq!((named.len(), others["text"]), (NAMED, 7));
    }
}
