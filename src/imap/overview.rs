//! Summarises the contents of an account, and estimates how much `detach` could move out of it.
//!
//! Only sizes and structures are read: EXAMINE, RFC822.SIZE of all messages, and BODYSTRUCTURE of the large ones. No message is
//! downloaded or changed. Signed and encrypted parts, and text that is part of the message, are not counted, because `detach`
//! keeps them. Attachments to which the HTML refers are counted, although `detach` keeps them by default: only the content
//! would show them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::account::Account;
use super::download::check_uidvalidity;
use super::failure::ImapFailure;
use super::listing::Criteria;
use super::names::shown;
use super::place::ABSENT;
use super::reading::{BrokenMessage, Sessions};
use super::session::{Metadata, SelectResponse, Structure};
use super::structure::BodyPart;
use crate::error::Error;
use crate::mailbox::Stop;
use crate::pool;

/// Settings of the summary of an account.
pub(crate) struct Overview<'o> {
    pub(crate) account: &'o Account,
    /// Encoded size in bytes. `detach` would move attachments that are larger.
    pub(crate) larger_than: u64,
    pub(crate) stop: &'o Stop,
}

/// The overview of a folder.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct FolderOverview {
    /// Name of the folder, decoded from modified UTF-7.
    pub(crate) folder: String,
    pub(crate) uidvalidity: u32,
    pub(crate) messages: u64,
    /// Size of all messages in bytes, as the server reports it.
    pub(crate) bytes: u64,
    /// Number of messages that `detach` would change.
    pub(crate) detachable_messages: u64,
    /// Number of attachments that `detach` would move.
    pub(crate) detachable_attachments: u64,
    /// Encoded size of the attachments that `detach` would move, in bytes.
    pub(crate) detachable_bytes: u64,
    /// Number of messages for which the server returned no valid structure, so that their attachments are not counted.
    pub(crate) unknown: u64,
}

/// Summary of an account: the sums over its folders, the quota, and the folders that could not be read.
#[derive(Default, Debug)]
pub(crate) struct AccountOverview {
    pub(crate) sum: FolderOverview,
    /// Used and allowed bytes.
    pub(crate) quota: Option<(u64, u64)>,
    /// Folders that could not be read completely, each with the reason.
    pub(crate) failed: Vec<(PathBuf, String)>,
}

/// Receives the overview of each folder.
pub(crate) type EachFolder<'e> = dyn FnMut(&FolderOverview) -> Result<(), ImapFailure> + Send + 'e;

impl AccountOverview {
    /// Adds the overview of the folder with this URL, and passes it to `each`. A failure that affects only this folder is
    /// added to `failed`.
    ///
    /// # Errors
    /// Failures that affect the whole account, and errors of `each`.
    fn add(
        &mut self,
        url: PathBuf,
        found: Result<(FolderOverview, Vec<String>), ImapFailure>,
        each: &mut EachFolder<'_>,
    ) -> Result<(), ImapFailure> {
        let (found, remarks) = match found {
            Ok(found) => found,
            Err(why) if why.costs_one_folder() => {
                self.failed.push((url, why.to_string()));
                return Ok(());
            }
            Err(why) => return Err(why),
        };
        if found.unknown > 0 {
            let why = format!(
                "the attachments of {} messages are not counted, because the server does not describe the structure of these messages correctly",
                found.unknown
            );
            self.failed.push((url.clone(), why));
        }
        each(&found)?;
        self.sum.add(&found);
        let remarks = remarks.into_iter().map(|why| (url.clone(), why));
        self.failed.extend(remarks);
        Ok(())
    }
}

impl Overview<'_> {
    /// Summarises all folders. `each` is called for each folder, in the order of their names.
    ///
    /// # Errors
    /// Failures that affect the whole account, and errors of `each`.
    pub(crate) fn run(&self, each: &mut EachFolder<'_>) -> Result<AccountOverview, ImapFailure> {
        let sessions = Sessions::new(self.account, self.stop);
        let chosen = sessions.again(|session| session.folders(&self.account.choice))?;
        let folders = chosen.folders;
        let mut whole = AccountOverview::default();
        for why in chosen.unreadable.into_iter().chain(chosen.absent) {
            let url = PathBuf::from(self.account.url(""));
            whole.failed.push((url, why));
        }
        let most = self.account.connections.min(folders.len());
        let more = (1..most).take_while(|_| sessions.try_open());
        let limits = pool::PoolLimits {
            workers: 1 + more.count(),
            // The overview of a folder is small. Any number of finished overviews may wait in memory until that of an
            // earlier folder is finished.
            budget: usize::MAX,
        };
        let mut failure = None;
        let mut next = folders.iter();
        let done = pool::run(
            limits,
            self.stop,
            || Ok(next.next().map(|folder| (folder, 1))),
            |_| vec![0],
            |folder, _| {
                let found = self.folder(&sessions, &folder.name);
                Ok(found.map_err(|why| sessions.connecting.of_folder(why)))
            },
            |_, _| None,
            |folder, found| {
                let url = PathBuf::from(self.account.url(&folder.name));
                for (_, found) in found {
                    if let Err(why) = whole.add(url.clone(), found, each) {
                        failure = Some(why);
                        // `Interrupted` only makes the worker pool end. The actual error is in `failure`, and is
                        // returned after the pool has ended.
                        return Err(Error::Interrupted);
                    }
                }
                Ok(())
            },
        );
        if let Some(why) = failure {
            return Err(why);
        }
        done?;
        if let Some(folder) = folders.first() {
            let quota = sessions.again(|session| session.quota(&folder.name));
            // If the server refuses only the quota, the summary is still returned without it.
            whole.quota = quota.or_else(|why| {
                if why.costs_one_folder() {
                    Ok(None)
                } else {
                    Err(why)
                }
            })?;
        }
        sessions.end();
        Ok(whole)
    }

    /// Summarises a folder. Also returns the problems with single messages, as texts for the report.
    fn folder(
        &self,
        sessions: &Sessions<'_>,
        name: &str,
    ) -> Result<(FolderOverview, Vec<String>), ImapFailure> {
        let (found, remarks, is_overlooked) = self.folder_once(sessions, name)?;
        if !is_overlooked {
            return Ok((found, remarks));
        }
        let (found, remarks, _) = self.folder_once(sessions, name)?;
        Ok((found, remarks))
    }

    /// Summarises a folder. Also returns whether the list of its messages contained wrong UIDs in place of some messages.
    fn folder_once(
        &self,
        sessions: &Sessions<'_>,
        name: &str,
    ) -> Result<(FolderOverview, Vec<String>, bool), ImapFailure> {
        let choice = &self.account.choice;
        let (selected, listing) = sessions.again(|session| {
            let selected = session.examine(name)?;
            check_uidvalidity(choice, &selected)?;
            let listing = session.list_messages(&selected, &Criteria::of(choice))?;
            Ok((selected, listing))
        })?;
        let mut found = FolderOverview {
            folder: shown(name),
            uidvalidity: selected.uidvalidity,
            ..FolderOverview::default()
        };
        let mut remarks = Vec::new();
        if let Some(uid) = listing.absent(choice) {
            remarks.push(format!("UID {uid}: {ABSENT}"));
        }
        let (sizes, mut broken) = sizes(sessions, &selected, &listing.uids)?;
        let mut is_broken: BTreeSet<u32> = broken.iter().map(|it| it.uid).collect();
        let mut looked_at = Vec::new();
        // UIDs of messages whose metadata was requested but has not arrived.
        let mut untold: BTreeSet<u32> = BTreeSet::new();
        for uid in listing.uids.iter().filter(|uid| !is_broken.contains(uid)) {
            let size = sizes.get(uid).copied().unwrap_or(0);
            // An attachment is smaller than its message. So the structure is requested only for messages that are larger
            // than the limit, and for messages of unknown size (0).
            if size == 0 || size > self.larger_than {
                looked_at.push(*uid);
                untold.insert(*uid);
            } else {
                found.messages += 1;
                found.bytes = found.bytes.saturating_add(size);
            }
        }
        let least = self.larger_than;
        let mut structures = (untold, found);
        let more = sessions.narrowed(
            &selected,
            &looked_at,
            &mut structures,
            |session, uids, (untold, found)| {
                session.fetch_metadata(uids, Structure::Wanted, &mut |message| {
                    if untold.remove(&message.uid) {
                        let size = sizes.get(&message.uid).copied();
                        found.add_message(&message, size.unwrap_or(message.size), least);
                    }
                    Ok(())
                })
            },
            |(untold, _), uid| !untold.contains(&uid),
        )?;
        let (untold, mut found) = structures;
        is_broken.extend(more.iter().map(|it| it.uid));
        broken.extend(more);
        for message in &broken {
            found.messages += 1;
            found.bytes += sizes.get(&message.uid).copied().unwrap_or(0);
            found.unknown += 1;
            let why = message.report("the attachments of the message are not counted");
            remarks.push(format!("UID {}: {why}", message.uid));
        }
        let again = if untold.is_subset(&is_broken) && listing.missing == 0 {
            None
        } else {
            // Some messages are missing in the responses. They may have been deleted during the run, so the folder is
            // listed again to see which of them still exist.
            Some(sessions.again(|session| {
                let selected = session.examine(name)?;
                session.list_messages(&selected, &Criteria::default())
            })?)
        };
        let is_new = |uid: &u32| listing.uids.binary_search(uid).is_err();
        let is_overlooked = choice.is_all_messages()
            && again
                .as_ref()
                .is_some_and(|again| again.uids.iter().any(is_new));
        let listing = again.unwrap_or(listing);
        for uid in untold.difference(&is_broken) {
            let is_there = listing.uids.binary_search(uid).is_ok();
            let size = sizes.get(uid);
            if is_there || size.is_some() {
                found.messages += 1;
                found.bytes += size.copied().unwrap_or(0);
                found.unknown += 1;
            }
            if is_there && size.is_none() {
                remarks.push(format!(
                    "UID {uid}: the server lists the message, but does not report the size; the sums do not include this message"
                ));
            }
        }
        remarks.extend(listing.about_missing());
        Ok((found, remarks, is_overlooked))
    }
}

/// Requests the sizes of messages. Also returns the messages at which the server ends the connection.
fn sizes(
    sessions: &Sessions<'_>,
    selected: &SelectResponse,
    uids: &[u32],
) -> Result<(BTreeMap<u32, u64>, Vec<BrokenMessage>), ImapFailure> {
    let mut sizes = BTreeMap::new();
    let broken = sessions.narrowed(
        selected,
        uids,
        &mut sizes,
        |session, uids, sizes| {
            sizes.extend(session.fetch_sizes(uids)?);
            Ok(())
        },
        |sizes, uid| sizes.contains_key(&uid),
    )?;
    Ok((sizes, broken))
}

impl FolderOverview {
    /// Counts a message. `size` is 0 if the server did not return the size. `least` is the minimum size of an attachment that
    /// `detach` would move.
    fn add_message(&mut self, message: &Metadata, size: u64, least: u64) {
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(size);
        let Some(structure) = &message.structure else {
            self.unknown += 1;
            return;
        };
        if size == 0 {
            // The server did not return the size of the message. The sum of the sizes of its parts is used instead, which is
            // slightly smaller.
            let parts = structure.all().into_iter();
            let leaves = parts.filter(|part| part.children.is_empty());
            let size = leaves.fold(0_u64, |sum, part| sum.saturating_add(part.size));
            self.bytes = self.bytes.saturating_add(size);
        }
        let is_deleted = |flag: &String| flag.eq_ignore_ascii_case("\\Deleted");
        if message.flags.iter().any(is_deleted) {
            return;
        }
        let (mut count, mut octets) = (0, 0);
        detachable(structure, least, &mut |part| {
            count += 1;
            octets += part.size;
        });
        self.detachable_messages += u64::from(count > 0);
        self.detachable_attachments += count;
        self.detachable_bytes += octets;
    }

    fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.detachable_messages += other.detachable_messages;
        self.detachable_attachments += other.detachable_attachments;
        self.detachable_bytes += other.detachable_bytes;
        self.unknown += other.unknown;
    }
}

/// Calls `each` for the parts that `detach` would move. The recursion is safe, because the depth of a structure is limited.
fn detachable(part: &BodyPart, least: u64, each: &mut dyn FnMut(&BodyPart)) {
    let media_type = part.media_type.as_str();
    let is_protected = matches!(
        media_type,
        "multipart/signed"
            | "multipart/encrypted"
            | "application/pkcs7-mime"
            | "application/x-pkcs7-mime"
    );
    if is_protected {
        return;
    }
    for child in &part.children {
        detachable(child, least, each);
    }
    let is_composite = media_type.starts_with("multipart/") || media_type.starts_with("message/");
    let is_text = media_type.starts_with("text/") || media_type == "application/xhtml+xml";
    let is_attached = part.disposition.as_deref() == Some("attachment");
    if !is_composite && part.size >= least && (!is_text || is_attached) {
        each(part);
    }
}
