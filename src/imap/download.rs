//! Downloads the selected folders of an account into Maildirs, one for each folder. Messages that were already saved are not
//! downloaded again.
//!
//! Other programs can move mail between folders during the run, from a folder that is not yet read into one that was already
//! read. So the folders are compared with STATUS at the end, and new messages are downloaded. This is done once, because some
//! folders receive new mail all the time.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::account::{Account, FolderChoice};
use super::backup::Backup;
use super::directories::{AccountName, FolderDirectory, directories, owner};
use super::doubts::Doubts;
use super::failure::ImapFailure;
use super::listing::Criteria;
use super::names::shown;
use super::place::{ABSENT, ReadFolder, message_url};
use super::reading::{BrokenMessage, ReadResult, Sessions, open_same};
use super::same_account::{AccountCheck, AccountEvidence};
use super::saved_name::numbers;
use super::session::{Metadata, RemoteFolder, SelectResponse, Structure};
use super::status::FolderStatus;
use super::unchanged::COMPARED;
use crate::error::Error;
use crate::mailbox::{
    ExternalMessage, ExternalMessages, Observer, Options, Stop, Summary, Transform,
};
use crate::mailbox::{MailboxEvent, MailboxFact};

/// Number of messages whose metadata is kept in memory at a time.
const AT_A_TIME: usize = 5000;

/// Report for a folder from which messages disappeared during each reading.
const RESTLESS: &str = "messages disappeared each time embody read the folder; the messages may have a new UID or be in another folder; run the same command again";

/// Settings for the download of an account.
pub(crate) struct Download<'d, S> {
    pub(crate) account: &'d Account,
    /// Directory in which the Maildirs are created.
    pub(crate) output: &'d Path,
    pub(crate) options: &'d Options,
    pub(crate) transform: &'d dyn Transform<S>,
    pub(crate) observer: &'d dyn Observer<S>,
    pub(crate) stop: &'d Stop,
}

/// Returns the URL of a message (RFC 5092) that was downloaded into the file `saved`. Returns `None` for any other file.
pub(crate) fn url_of_saved(account: &Account, saved: &Path) -> Option<String> {
    let (uidvalidity, uid) = numbers(saved.file_name()?.to_str()?)?;
    let folder = owner(saved.parent()?.parent()?).ok()??;
    let url = account.url(&folder.name);
    Some(format!("{url};UIDVALIDITY={uidvalidity}/;UID={uid}"))
}

/// A folder that was read, and its state when it was opened.
struct SeenFolder {
    folder: RemoteFolder,
    uidvalidity: u32,
    /// UIDs of new messages are at least this number.
    uidnext: u32,
    exists: u32,
    /// Whether messages disappeared from the folder while it was listed or read. They may have a new UID in the same folder.
    has_lost: bool,
    /// Whether messages disappeared after they were listed.
    has_lost_listed: bool,
}

/// A folder that is being read.
struct FolderDownload<'f> {
    folder: &'f RemoteFolder,
    url: &'f Path,
    directory: Option<&'f FolderDirectory>,
    /// Messages with a lower UID are not read again.
    from: u32,
}

impl<S: Send> Download<'_, S> {
    /// Downloads all selected folders. A folder that cannot be read is reported as damaged, and the run continues with the next
    /// one.
    ///
    /// # Errors
    /// Failures that end the run, such as a failed login or a full disk. Messages that were already written are kept, and the
    /// next run continues after them.
    pub(crate) fn run(&self) -> Result<Summary, ImapFailure> {
        let sessions = Sessions::new(self.account, self.stop);
        let chosen = sessions.again(|session| session.folders(&self.account.choice))?;
        let _lock = if self.options.writes {
            Some(locked(self.output)?)
        } else {
            None
        };
        let mut summary = Summary::default();
        let account = PathBuf::from(self.account.url(""));
        for why in chosen.unreadable.iter().chain(&chosen.absent) {
            self.observer
                .event(MailboxEvent::damaged(&account, why.as_str()));
            summary.damaged += 1;
        }
        let directories = if self.options.writes {
            let found = directories(self.output, &chosen.all);
            found.map_err(Error::cannot_read(self.output.display()))?
        } else {
            HashMap::new()
        };
        self.check_account(&sessions, &chosen.folders, &directories)?;
        let mut seen = Vec::new();
        for folder in &chosen.folders {
            let directory = directories.get(&folder.name);
            seen.extend(self.read(&sessions, folder, directory, 0, &mut summary)?);
        }
        // The last folder need not be read again: mail that leaves it during the run can only have moved to a folder
        // that was read before. The exception is mail that got a new UID in the same folder.
        seen.pop_if(|last| !last.has_lost);
        if self.options.writes {
            self.look_again(&sessions, &seen, &directories, &mut summary)?;
        }
        sessions.end();
        Ok(summary)
    }

    /// Returns an error if the directories contain the mail of a different account. If only the name of the account changed,
    /// this is reported, and the run continues.
    fn check_account(
        &self,
        sessions: &Sessions<'_>,
        folders: &[RemoteFolder],
        directories: &HashMap<String, FolderDirectory>,
    ) -> Result<(), ImapFailure> {
        let account = AccountName::of(self.account);
        let mut check = AccountCheck::new(sessions, &account, self.output);
        for folder in folders {
            if let Some(directory) = directories.get(&folder.name) {
                check.add(folder, directory)?;
            }
        }
        match check.evidence() {
            AccountEvidence::NotNeeded => Ok(()),
            AccountEvidence::SameAccount(before) => {
                let what = format!(
                    "the backup was made from the account {} at {}, and the account {} at {} contains the same messages, so embody continues the backup",
                    before.user, before.host, account.user, account.host
                );
                self.observer
                    .event(MailboxFact::Noted(self.output.to_owned(), what).into());
                Ok(())
            }
            AccountEvidence::OtherAccount(before) => {
                let what = format!(
                    "{} contains the mail of {} at {}, not of {} at {}; nothing was changed; name another directory for the backup (if both are the same account, delete the lines \"user\" and \"host\" in the files embody-folder)",
                    self.output.display(),
                    before.user,
                    before.host,
                    account.user,
                    account.host
                );
                Err(Error::Usage(what.into()).into())
            }
        }
    }

    /// Reads a folder. Returns its state when it was opened, or `None` if the folder could not be read, which is reported.
    fn read(
        &self,
        sessions: &Sessions<'_>,
        folder: &RemoteFolder,
        directory: Option<&FolderDirectory>,
        from: u32,
        sum: &mut Summary,
    ) -> Result<Option<SeenFolder>, ImapFailure> {
        self.stop.check()?;
        let url = PathBuf::from(self.account.url(&folder.name));
        self.observer.event(MailboxEvent::Begin(url.clone()));
        let place = FolderDownload {
            folder,
            url: &url,
            directory,
            from,
        };
        let mut summary = Summary::of(|sum| sum.mailboxes = u64::from(from == 0));
        let read = self.folder(sessions, &place, &mut summary);
        let done = match read.map_err(|why| sessions.connecting.of_folder(why)) {
            Err(why) if why.costs_one_folder() => {
                self.observer
                    .event(MailboxEvent::damaged(url, why.to_string()));
                summary.damaged += 1;
                Ok(None)
            }
            done => done.map(Some),
        };
        if from > 0 {
            // This is the second reading of the folder, and the first one already counted the saved messages.
            summary.made = 0;
        }
        self.observer.event(MailboxEvent::done(&summary));
        sum.add(&summary);
        done
    }

    /// Reads the messages that arrived in folders after they were read.
    fn look_again(
        &self,
        sessions: &Sessions<'_>,
        seen: &[SeenFolder],
        directories: &HashMap<String, FolderDirectory>,
        sum: &mut Summary,
    ) -> Result<(), ImapFailure> {
        let names: Vec<&str> = seen.iter().map(|it| it.folder.name.as_str()).collect();
        let now = match sessions.again(|session| session.statuses(&names)) {
            // If STATUS fails, each folder is opened again instead.
            Err(why) if why.is_break() || why.costs_one_folder() => vec![None; names.len()],
            now => now?,
        };
        for (seen, now) in seen.iter().zip(now) {
            let from = match now {
                Some(FolderStatus { uidvalidity, .. })
                    if uidvalidity != 0 && uidvalidity != seen.uidvalidity =>
                {
                    0
                }
                // The server announced too few messages when the folder was opened.
                Some(FolderStatus {
                    uidnext, messages, ..
                }) if uidnext == seen.uidnext && messages > seen.exists => 0,
                Some(FolderStatus { uidnext, .. }) if uidnext != 0 && uidnext <= seen.uidnext => {
                    continue;
                }
                Some(FolderStatus {
                    uidnext: 0,
                    messages,
                    ..
                }) if messages <= seen.exists => continue,
                _ => seen.uidnext,
            };
            let directory = directories.get(&seen.folder.name);
            let again = self.read(sessions, &seen.folder, directory, from, sum)?;
            if again.is_some_and(|again| again.has_lost_listed) {
                let url = PathBuf::from(self.account.url(&seen.folder.name));
                self.observer.event(MailboxEvent::damaged(url, RESTLESS));
                sum.damaged += 1;
            }
        }
        Ok(())
    }

    /// Reads a folder and adds to the counts, also if it returns an error.
    fn folder(
        &self,
        sessions: &Sessions<'_>,
        read: &FolderDownload<'_>,
        summary: &mut Summary,
    ) -> Result<SeenFolder, ImapFailure> {
        let (url, directory) = (read.url, read.directory);
        let choice = &self.account.choice;
        let (selected, mut listing) = sessions.again(|session| {
            let selected = session.examine(&read.folder.name)?;
            check_uidvalidity(choice, &selected)?;
            let listing = session.list_messages(&selected, &Criteria::of(choice))?;
            Ok((selected, listing))
        })?;
        let place = ReadFolder {
            selected: &selected,
            url,
        };
        if let Some(uid) = listing.absent(choice) {
            self.damaged(&place, uid, ABSENT, summary);
        }
        let highest = listing.uids.last().max(listing.all.last()).copied();
        let mut seen = SeenFolder {
            folder: read.folder.clone(),
            uidvalidity: selected.uidvalidity,
            uidnext: match selected.uidnext {
                0 => highest.unwrap_or(0).saturating_add(1),
                uidnext => uidnext,
            },
            exists: selected.exists,
            // Messages that the server announced but did not list (`missing`) are reported separately.
            has_lost: listing.missing == 0
                && listing.uids.len().max(listing.all.len()) < selected.exists as usize,
            has_lost_listed: false,
        };
        listing.uids.retain(|uid| *uid >= read.from);
        let account = AccountName::of(self.account);
        // A dry run has no directory, so nothing is written.
        let mut backup = match directory {
            Some(directory) => Some(Backup::open(
                self.output,
                directory,
                &account,
                selected.uidvalidity,
            )?),
            None => None,
        };
        let mut missing = Vec::new();
        let mut doubts = Doubts::default();
        let is_all = read.from == 0 && choice.is_all_messages();
        let settled = match &backup {
            Some(backup) if is_all => settled(sessions, &selected, backup, &listing.uids)?,
            _ => HashSet::new(),
        };
        let damaged_before = summary.damaged;
        let (later, first): (Vec<u32>, Vec<u32>) =
            listing.uids.iter().partition(|uid| settled.contains(uid));
        for (uids, is_settled) in [(first, false), (later, true)] {
            if is_settled && !doubts.is_restored {
                summary.made += uids.len() as u64;
                continue;
            }
            for uids in uids.chunks(AT_A_TIME) {
                let found = DownloadFindings {
                    missing: &mut missing,
                    doubts: &mut doubts,
                    summary,
                };
                self.update(sessions, &place, uids, backup.as_mut(), found)?;
            }
        }
        let is_complete = is_all && missing.is_empty() && listing.missing == 0;
        // Messages below `from` were read before, and are not among those of the listing.
        let mut overlooked = self.name_missing(sessions, &place, &listing, &missing, summary)?;
        overlooked.retain(|uid| *uid >= read.from);
        if !overlooked.is_empty() {
            let mut missing_again = Vec::new();
            let found = DownloadFindings {
                missing: &mut missing_again,
                doubts: &mut doubts,
                summary,
            };
            self.update(sessions, &place, &overlooked, backup.as_mut(), found)?;
            listing.uids.extend(overlooked);
            listing.uids.sort_unstable();
            self.name_missing(sessions, &place, &listing, &missing_again, summary)?;
        }
        if let Some(backup) = &mut backup {
            if backup.without_letter > 0 {
                let messages = backup.without_letter;
                let why = format!(
                    "{messages} messages were saved without some of their keywords, because a Maildir can store only 26 different keywords"
                );
                self.observer.event(MailboxEvent::damaged(url, why));
                summary.damaged += 1;
            }
            summary.damaged += self.told_doubts(&doubts, &place, backup)?;
        }
        seen.has_lost_listed = !missing.is_empty();
        seen.has_lost |= seen.has_lost_listed;
        if let (Some(backup), Some(directory)) = (&mut backup, directory)
            && is_complete
            && summary.damaged == damaged_before
        {
            backup.record_state(directory, &account, &selected)?;
        }
        Ok(seen)
    }

    /// Compares some messages of a folder with the backup, and downloads those that were not saved.
    fn update(
        &self,
        sessions: &Sessions<'_>,
        place: &ReadFolder<'_>,
        uids: &[u32],
        backup: Option<&mut Backup>,
        found: DownloadFindings<'_>,
    ) -> Result<(), ImapFailure> {
        self.stop.check()?;
        let DownloadFindings {
            missing,
            doubts,
            summary,
        } = found;
        let (mut metadata, broken) = metadata(sessions, place.selected, uids)?;
        summary.damaged += self.name_odd_keywords(place.url, &metadata);
        let broken = self.named(place, broken, backup.as_deref(), summary);
        let Some(backup) = backup else {
            for message in metadata.values() {
                summary.messages += 1;
                summary.bytes_in += message.size;
                summary.bytes_out += message.size;
            }
            let is_missing = |uid: &&u32| !metadata.contains_key(uid) && !broken.contains(uid);
            missing.extend(uids.iter().filter(is_missing));
            return Ok(());
        };
        let mut wanted = Vec::new();
        for uid in uids.iter().filter(|uid| !broken.contains(uid)) {
            let message = match metadata.entry(*uid) {
                Entry::Occupied(told) => told.into_mut(),
                // The server returned no metadata for this message, but an earlier run saved it. The saved message and
                // its flags are kept.
                Entry::Vacant(_) if backup.has_uid(*uid) => {
                    summary.made += 1;
                    continue;
                }
                Entry::Vacant(untold) => {
                    doubts.untold.insert(*uid);
                    untold.insert(Metadata::unknown(*uid))
                }
            };
            let is_known = backup.has_uid(*uid);
            if backup.has(message)? {
                doubts.remember(message, backup.size_of(*uid));
                summary.made += 1;
            } else {
                doubts.is_restored |= is_known;
                wanted.push((message.uid, message.size))
            }
        }
        self.observer.event(MailboxEvent::Expects(
            wanted.iter().map(|(_, size)| *size).sum(),
        ));
        let found = DownloadFindings {
            missing,
            doubts,
            summary,
        };
        let done = self.messages(sessions, place, wanted, &metadata, backup, found);
        // Messages that were already downloaded are kept, even if a later one fails.
        backup.finish()?;
        done
    }

    fn messages(
        &self,
        sessions: &Sessions<'_>,
        place: &ReadFolder<'_>,
        wanted: Vec<(u32, u64)>,
        metadata: &HashMap<u32, Metadata>,
        backup: &mut Backup,
        found: DownloadFindings<'_>,
    ) -> Result<(), ImapFailure> {
        let DownloadFindings {
            missing,
            doubts,
            summary,
        } = found;
        if wanted.is_empty() {
            return Ok(());
        }
        let most = self.options.read.max_message;
        let mut unread = Summary::default();
        let (not_read, saved) = (&mut unread, &mut *summary);
        let done = sessions.read(place.selected, wanted, most, |arrivals| {
            let next = move || {
                loop {
                    let Some(fetched) = arrivals.next()? else {
                        return Ok(None);
                    };
                    let (uid, content) = match fetched {
                        ReadResult::Whole { uid, content } => (uid, content),
                        ReadResult::Gone(uid) => {
                            missing.push(uid);
                            continue;
                        }
                        ReadResult::TooLarge(uid) => {
                            let why =
                                format!("the message has more than {most} bytes and was not saved");
                            self.damaged(place, uid, &why, not_read);
                            continue;
                        }
                        ReadResult::Broken(message) => {
                            let why = message.report("the message was not saved");
                            self.damaged(place, message.uid, &why, not_read);
                            continue;
                        }
                    };
                    let Some(about) = metadata.get(&uid) else {
                        continue;
                    };
                    doubts.judge(about, &content);
                    return Ok(Some(ExternalMessage {
                        about,
                        number: u64::from(uid),
                        source: message_url(place.url, place.selected, uid),
                        content,
                    }));
                }
            };
            let messages = ExternalMessages {
                options: self.options,
                transform: self.transform,
                observer: self.observer,
                stop: self.stop,
            };
            messages.run(next, |message, new| {
                let content = &message.content;
                let saved_content = new.unwrap_or(content);
                backup.put(message.about, content, saved_content)?;
                // Counted immediately, so that the count is right even if a later message cannot be written.
                saved.messages += 1;
                saved.changed += u64::from(new.is_some());
                saved.bytes_in += content.len() as u64;
                saved.bytes_out += saved_content.len() as u64;
                Ok(())
            })
        });
        summary.add(&unread);
        done.map(drop)
    }
}

/// Findings of a download: missing messages, doubtful messages, and counts of the saved ones.
struct DownloadFindings<'f> {
    missing: &'f mut Vec<u32>,
    doubts: &'f mut Doubts,
    summary: &'f mut Summary,
}

/// Requests the metadata of messages. Also returns the messages at which the server ends the connection.
fn metadata(
    sessions: &Sessions<'_>,
    selected: &SelectResponse,
    uids: &[u32],
) -> Result<(HashMap<u32, Metadata>, Vec<BrokenMessage>), ImapFailure> {
    let mut found = HashMap::with_capacity(uids.len());
    let broken = sessions.narrowed(
        selected,
        uids,
        &mut found,
        |session, uids, found| {
            session.fetch_metadata(uids, Structure::NotWanted, &mut |message| {
                found.insert(message.uid, message);
                Ok(())
            })
        },
        |found, uid| found.contains_key(&uid),
    )?;
    Ok((found, broken))
}

/// Returns the saved messages that did not change since the last complete update, without the newest ones.
fn settled(
    sessions: &Sessions<'_>,
    selected: &SelectResponse,
    backup: &Backup,
    uids: &[u32],
) -> Result<HashSet<u32>, ImapFailure> {
    let Some(modseq) = backup
        .modseq_before(selected)
        .filter(|_| uids.len() > COMPARED)
    else {
        return Ok(HashSet::new());
    };
    let answer = sessions.again(|session| {
        open_same(session, selected)?;
        session.changed_since(modseq)
    });
    let changed = match answer {
        Ok(Some(changed)) => changed,
        // Without a usable answer, all messages are compared.
        Ok(None) => return Ok(HashSet::new()),
        Err(why) if why.is_break() => return Ok(HashSet::new()),
        Err(why) => return Err(why),
    };
    let is_settled = |uid: &u32| backup.has_uid(*uid) && !changed.contains(uid);
    let mut settled: Vec<u32> = uids.iter().copied().filter(is_settled).collect();
    settled.truncate(settled.len().saturating_sub(COMPARED));
    Ok(settled.into_iter().collect())
}

/// Returns an error if the URL contains a UIDVALIDITY that differs from that of the folder.
pub(super) fn check_uidvalidity(
    choice: &FolderChoice,
    selected: &SelectResponse,
) -> Result<(), ImapFailure> {
    match choice.uidvalidity {
        Some(wanted) if wanted != selected.uidvalidity => Err(ImapFailure::OutdatedUrl {
            folder: shown(&selected.folder),
            wanted,
            now: selected.uidvalidity,
        }),
        _ => Ok(()),
    }
}

/// Creates the output directory if necessary, and locks it against other runs.
fn locked(output: &Path) -> Result<File, Error> {
    let failed = |source| Error::Write {
        what: output.display().to_string(),
        source,
    };
    match std::fs::create_dir(output) {
        Err(why) if why.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(why)),
        _ => {}
    }
    let folder = File::open(output).map_err(failed)?;
    let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    match rustix::fs::flock(&folder, operation) {
        Ok(()) => Ok(folder),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked {
            path: output.to_owned(),
            lock: output.to_owned(),
        }),
        Err(why) => Err(failed(why.into())),
    }
}
