//! Reports messages of a folder that a download could not save completely.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::backup::Backup;
use super::command::sequence_set;
use super::doubts::{Doubts, ShortMessage};
use super::download::Download;
use super::failure::ImapFailure;
use super::listing::{Criteria, FolderContents};
use super::place::{ReadFolder, message_url};
use super::reading::{BrokenMessage, Sessions};
use super::session::Metadata;
use super::substitute::SUBSTITUTED;
use crate::mailbox::MailboxEvent;
use crate::mailbox::Summary;

/// Maximum number of ranges of UIDs in a report.
const MOST_RANGES: usize = 40;

impl<S: Send> Download<'_, S> {
    /// Reports the messages that the server lists but does not return, unless they were deleted during the run. Returns the
    /// messages that the folder has now and that were not listed: if a SEARCH response contains wrong UIDs, their number can be
    /// that of all messages, and other messages are missing in it.
    pub(super) fn name_missing(
        &self,
        sessions: &Sessions<'_>,
        place: &ReadFolder<'_>,
        listed: &FolderContents,
        missing: &[u32],
        summary: &mut Summary,
    ) -> Result<Vec<u32>, ImapFailure> {
        if missing.is_empty() && listed.missing == 0 {
            return Ok(Vec::new());
        }
        // The folder is listed again, so that only messages that still exist are reported as missing.
        let listing = sessions.again(|session| {
            let selected = session.examine(&place.selected.folder)?;
            session.list_messages(&selected, &Criteria::of(&self.account.choice))
        })?;
        for uid in missing {
            if listing.uids.binary_search(uid).is_ok() {
                let why =
                    "the server lists the message but does not send it; the message was not saved";
                self.damaged(place, *uid, why, summary);
            }
        }
        if let Some(why) = listing.about_missing() {
            self.observer.event(MailboxEvent::damaged(place.url, why));
            summary.damaged += 1;
        }
        let mut overlooked = listing.uids;
        overlooked.retain(|uid| listed.uids.binary_search(uid).is_err());
        Ok(overlooked)
    }

    /// Reports messages at which the server ends the connection. Returns their UIDs.
    pub(super) fn named(
        &self,
        place: &ReadFolder<'_>,
        broken: Vec<BrokenMessage>,
        backup: Option<&Backup>,
        summary: &mut Summary,
    ) -> HashSet<u32> {
        for message in &broken {
            let then = match backup {
                Some(backup) if backup.has_uid(message.uid) => {
                    "an earlier run saved the message; its flags may have changed"
                }
                _ => "the message was not saved",
            };
            self.damaged(place, message.uid, &message.report(then), summary);
        }
        broken.iter().map(|it| it.uid).collect()
    }

    /// Reports a message, and counts it.
    pub(super) fn damaged(
        &self,
        place: &ReadFolder<'_>,
        uid: u32,
        why: &str,
        summary: &mut Summary,
    ) {
        let path = message_url(place.url, place.selected, uid);
        self.observer.event(MailboxEvent::damaged(path, why));
        summary.damaged += 1;
    }

    /// Reports messages with keywords that are not valid in IMAP, because the saved messages lack these keywords. Returns 1 if
    /// there are any, otherwise 0.
    pub(super) fn name_odd_keywords(&self, url: &Path, metadata: &HashMap<u32, Metadata>) -> u64 {
        let odd = metadata.values().filter(|it| !it.odd_flags.is_empty());
        let mut uids: Vec<u32> = odd.clone().map(|it| it.uid).collect();
        if uids.is_empty() {
            return 0;
        }
        uids.sort_unstable();
        let mut keywords: Vec<&String> = odd.flat_map(|it| &it.odd_flags).collect();
        keywords.sort_unstable();
        keywords.dedup();
        let shown: Vec<&str> = keywords.iter().take(10).map(|it| it.as_str()).collect();
        let more = if keywords.len() > shown.len() {
            " and others"
        } else {
            ""
        };
        let set = shown_ranges(&sequence_set(&uids));
        let why = format!(
            "{} messages (UID {set}) were saved without some of their keywords, because IMAP does not allow keywords with these names: {}{more}",
            uids.len(),
            shown.join(" ")
        );
        self.observer.event(MailboxEvent::damaged(url, why));
        1
    }

    /// Reports messages that were saved but may be incomplete or without flags, and texts that are not the message. Marks the
    /// incomplete messages, so that the next run downloads them again. Returns the number of reports.
    pub(super) fn told_doubts(
        &self,
        doubts: &Doubts,
        place: &ReadFolder<'_>,
        backup: &mut Backup,
    ) -> Result<u64, ImapFailure> {
        let mut count = 0;
        let untold = "the server did not send the flags and the date of the message; the message was saved without flags";
        let substitute = format!("{SUBSTITUTED}; the next run requests the message again");
        for (uids, why) in [
            (&doubts.untold_given, untold),
            (&doubts.substitutes, &substitute),
        ] {
            for uid in uids {
                let path = message_url(place.url, place.selected, *uid);
                self.observer.event(MailboxEvent::damaged(path, why));
                count += 1;
            }
        }
        if doubts.sizes_are_wrong() {
            if !doubts.short.is_empty() {
                let short = doubts.short.len();
                let why = format!(
                    "the check of message sizes, because most sizes that the server announced are wrong; {short} messages were shorter than announced, and were saved as the server sent them"
                );
                self.observer
                    .event(MailboxEvent::passed_over(place.url, &why));
            }
            return Ok(count);
        }
        for short in &doubts.short {
            let ShortMessage {
                uid,
                size,
                given,
                is_closed,
            } = short;
            let path = message_url(place.url, place.selected, *uid);
            let then = match is_closed {
                true => "the structure of the message is complete, so the message was saved",
                false => {
                    "the message was saved incomplete; run the same command again to download it completely"
                }
            };
            let why = format!(
                "the server announced {size} bytes for the message but sent {given}, even after a second request; {then}"
            );
            self.observer.event(MailboxEvent::damaged(path, why));
            if !is_closed {
                backup.mark_short(*uid)?;
            }
            count += 1;
        }
        Ok(count)
    }
}

/// Returns the first [`MOST_RANGES`] ranges of a sequence set, and the number of the ranges that are left out.
fn shown_ranges(set: &str) -> String {
    let ranges: Vec<&str> = set.split(',').collect();
    match ranges.split_at_checked(MOST_RANGES) {
        Some((shown, rest)) if !rest.is_empty() => {
            format!("{} and {} more ranges", shown.join(","), rest.len())
        }
        _ => set.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranges_of_uids_are_cut_between_two_ranges_and_the_rest_is_counted() {
        let ranges: Vec<String> = (1..=40).map(|it| (it * 1000).to_string()).collect();
        assert_eq!(shown_ranges(&ranges.join(",")), ranges.join(","));
        let set = format!("{},90000:90007,95000", ranges.join(","));
        let is = format!("{} and 2 more ranges", ranges.join(","));
        assert_eq!(shown_ranges(&set), is);
        assert_eq!(shown_ranges("7"), "7");
    }
}
