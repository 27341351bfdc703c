//! Selects and downloads the messages of a folder that a command may change. A message at which the server ends each connection
//! is found ([`narrowing`](super::narrowing)), reported and skipped, so that all other messages are processed.

use std::collections::BTreeSet;

use super::batch::DownloadedMessage;
use super::candidates::Candidates;
use super::command::sequence_set;
use super::failure::ImapFailure;
use super::in_place::AccountRun;
use super::place::ABSENT;
use super::reading::BrokenMessage;
use super::replace::{DELETED, has};
use super::session::{BodyPiece, Structure};
use super::substitute::{SUBSTITUTED, is_substitute};
use crate::mailbox::MailboxEvent;

/// Number of failures after which the sample of messages not found by the header search is no longer requested: the
/// server may be breaking the connection at one of them.
const SAMPLES: u32 = 2;

/// UID and size of the messages that a command might change, UIDs of messages without metadata that are in the folder, and
/// whether other messages are not in the folder any more.
type DescribedMessages = (Vec<(u32, u64)>, Vec<u32>, bool);

impl<S: Send> AccountRun<'_, S> {
    /// Returns UID and size of the messages that the command might change, and counts the messages of the folder.
    pub(super) fn candidates(&mut self) -> Result<Vec<(u32, u64)>, ImapFailure> {
        let job = self.job;
        let choice = &job.account.choice;
        let mut breaks = 0;
        let listing = self.again(|run| {
            run.session()?;
            let selected = run.selected.clone();
            let session = run.session()?;
            let is_checked = breaks < SAMPLES;
            let found = job.candidates.find(session, &selected, choice, is_checked);
            breaks += u32::from(found.as_ref().is_err_and(ImapFailure::is_break));
            found
        })?;
        let absent = listing.absent(choice);
        self.summary.messages = match choice.uid {
            Some(_) => u64::from(absent.is_none()),
            None => u64::from(self.selected.exists),
        };
        if let Some(uid) = absent {
            self.damaged(uid, ABSENT.to_owned());
        }
        let (mut chosen, mut lost, has_vanished) = self.described(&listing.uids)?;
        // If messages of the list have vanished, the list may have contained wrong UIDs in place of other messages.
        if has_vanished {
            let mut again = self.again(|run| {
                run.session()?;
                let selected = run.selected.clone();
                job.candidates.find(run.session()?, &selected, choice, true)
            })?;
            again
                .uids
                .retain(|uid| listing.uids.binary_search(uid).is_err());
            let (more, more_lost, _) = self.described(&again.uids)?;
            chosen.extend(more);
            lost.extend(more_lost);
        }
        chosen.sort_unstable();
        if let Some(why) = listing.about_missing() {
            let url = self.url_of(&self.selected.folder);
            job.observer.event(MailboxEvent::damaged(url, why));
            self.summary.damaged += 1;
        }
        self.name_lost(&lost);
        Ok(chosen)
    }

    /// Requests the metadata of messages, and reports those at which the server ends the connection. Returns UID and size of the
    /// messages that the command might change, the messages that the server did not describe although they are in the folder, and
    /// whether others are not in the folder any more.
    fn described(&mut self, uids: &[u32]) -> Result<DescribedMessages, ImapFailure> {
        let job = self.job;
        let structure = match job.candidates {
            Candidates::All => Structure::NotWanted,
            _ => Structure::Wanted,
        };
        let lost: BTreeSet<u32> = uids.iter().copied().collect();
        let mut state = (lost, Vec::new());
        let broken = self.narrowed(
            uids,
            &mut state,
            |run, uids, (lost, chosen)| {
                run.session()?
                    .fetch_metadata(uids, structure, &mut |metadata| {
                        let is_new = lost.remove(&metadata.uid);
                        if is_new && job.candidates.include(metadata.structure.as_ref()) {
                            chosen.push((metadata.uid, metadata.size));
                        }
                        Ok(job.stop.check()?)
                    })
            },
            |(lost, _), uid| !lost.contains(uid),
        )?;
        let (mut undescribed, chosen) = state;
        self.name_broken(&broken);
        undescribed.retain(|uid| broken.iter().all(|message| message.uid != *uid));
        let lost = self.again(|run| run.still_there(&undescribed))?;
        let has_vanished = lost.len() < undescribed.len();
        Ok((chosen, lost, has_vanished))
    }

    /// Downloads a batch and the current flags of its messages. Reports the messages that the server did not return.
    pub(super) fn originals(
        &mut self,
        batch: &[(u32, u64)],
    ) -> Result<Vec<DownloadedMessage>, ImapFailure> {
        let mut state = (Vec::with_capacity(batch.len()), Vec::new());
        let broken = self.narrowed(
            batch,
            &mut state,
            |run, group, (items, lost)| {
                let (some, without) = run.fetched(group)?;
                items.extend(some);
                lost.extend(without);
                Ok(())
            },
            // No progress within a group: it is downloaded completely or not at all.
            |_, _| false,
        )?;
        let (mut items, lost) = state;
        self.name_broken(&broken);
        self.name_lost(&lost);
        let is_text =
            |item: &mut DownloadedMessage| is_substitute(&item.content, item.metadata.size);
        let texts: Vec<DownloadedMessage> = items.extract_if(.., is_text).collect();
        for text in texts {
            let why = format!("{SUBSTITUTED}; the message was not changed");
            self.damaged(text.metadata.uid, why);
        }
        Ok(items)
    }

    fn name_broken(&mut self, broken: &[BrokenMessage]) {
        for message in broken {
            self.damaged(message.uid, message.report("the message was not changed"));
        }
    }

    /// Returns which of the `lost` messages are still in the folder, so that they can be reported. The server did not
    /// return these messages: either it cannot read them, or another program has deleted them.
    fn still_there(&mut self, lost: &BTreeSet<u32>) -> Result<Vec<u32>, ImapFailure> {
        let lost: Vec<u32> = lost.iter().copied().collect();
        let mut there = Vec::new();
        for some in lost.chunks(300) {
            let criteria = format!("UNDELETED UID {}", sequence_set(some));
            let found = self.session()?.search(&criteria)?;
            there.extend(found.into_iter().filter(|uid| some.contains(uid)));
        }
        Ok(there)
    }

    /// Downloads a batch and the current flags of its messages. Also returns the UIDs of the messages that are
    /// still in the folder although the server did not return them.
    fn fetched(
        &mut self,
        batch: &[(u32, u64)],
    ) -> Result<(Vec<DownloadedMessage>, Vec<u32>), ImapFailure> {
        let most = self.job.max_message;
        let uids: Vec<u32> = batch.iter().map(|(uid, _)| *uid).collect();
        let mut lost: BTreeSet<u32> = uids.iter().copied().collect();
        let mut items: Vec<DownloadedMessage> = Vec::new();
        let mut oversized = Vec::new();
        let session = self.session()?;
        session.fetch_metadata(&uids, Structure::NotWanted, &mut |metadata| {
            lost.remove(&metadata.uid);
            if metadata.size > most as u64 {
                oversized.push((metadata.uid, metadata.size));
            } else if !has(&metadata.flags, DELETED) && uids.contains(&metadata.uid) {
                items.push(DownloadedMessage {
                    metadata,
                    content: Vec::new(),
                });
            }
            Ok(())
        })?;
        items.sort_by_key(|item| item.metadata.uid);
        items.dedup_by_key(|item| item.metadata.uid);
        let wanted: Vec<(u32, u64)> = items
            .iter()
            .map(|item| (item.metadata.uid, item.metadata.size))
            .collect();
        session.fetch_bodies(&wanted, &mut |uid, piece| {
            let found = items.binary_search_by_key(&uid, |item| item.metadata.uid);
            let Some(item) = found.ok().and_then(|at| items.get_mut(at)) else {
                return Ok(());
            };
            match piece {
                // A message that is longer than the server announced will not be changed, so further bytes of it are discarded.
                BodyPiece::Octets(octets) if item.content.len() as u64 <= item.metadata.size => {
                    item.content.extend_from_slice(octets);
                }
                BodyPiece::Gone => {
                    lost.insert(uid);
                }
                BodyPiece::Octets(_) | BodyPiece::Whole => {}
            }
            Ok(())
        })?;
        items.retain(|item| !lost.contains(&item.metadata.uid));
        let lost = self.still_there(&lost)?;
        oversized.sort_unstable();
        oversized.dedup();
        for (uid, size) in oversized {
            let why = format!(
                "the message has {size} bytes, more than the {most} bytes of the largest message that embody processes; the message was not changed"
            );
            self.damaged(uid, why);
        }
        Ok((items, lost))
    }
}
