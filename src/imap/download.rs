//! Downloads the selected folders of an account into Maildirs, one for each folder. Messages that were already saved are not
//! downloaded again.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::account::{Account, Choice};
use super::backup::Backup;
use super::command::sequence_set;
use super::directories::{FolderDirectory, directories};
use super::failure::ImapFailure;
use super::listing::Criteria;
use super::names::shown;
use super::reading::{Fetched, Sessions};
use super::session::{Metadata, RemoteFolder, Selected, Structure};
use crate::detail::Detail;
use crate::engine::Mode;
use crate::engine::policy::Limits;
use crate::error::Error;
use crate::mailbox::{
    ExternalMessage, ExternalMessages, Observer, Options, Stop, Summary, Transform,
};
use crate::mime;

/// Number of messages whose metadata is kept in memory at a time.
const AT_A_TIME: usize = 5000;

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
        let _lock = match self.options.mode {
            Mode::Run => Some(locked(self.output)?),
            Mode::Probe | Mode::DryRun => None,
        };
        let mut summary = Summary::default();
        let account = PathBuf::from(self.account.url(""));
        for why in &chosen.unreadable {
            self.observer.damaged(&account, &why.as_str().into());
            summary.damaged += 1;
        }
        let directories = match self.options.mode {
            Mode::Run => {
                let found = directories(self.output, &chosen.all);
                found.map_err(Error::cannot_read(self.output.display()))?
            }
            Mode::Probe | Mode::DryRun => HashMap::new(),
        };
        for folder in &chosen.folders {
            self.stop.check()?;
            let directory = directories.get(&folder.name);
            let url = PathBuf::from(self.account.url(&folder.name));
            self.observer.begin(&url);
            match self.folder(&sessions, folder, &url, directory) {
                Ok(done) => {
                    self.observer.done(&done);
                    summary.add(&done);
                }
                Err(why) if why.costs_one_folder() => {
                    self.observer.damaged(&url, &why.to_string().into());
                    summary.damaged += 1;
                }
                Err(why) => return Err(why),
            }
        }
        sessions.end();
        Ok(summary)
    }

    fn folder(
        &self,
        sessions: &Sessions<'_>,
        folder: &RemoteFolder,
        url: &Path,
        directory: Option<&FolderDirectory>,
    ) -> Result<Summary, ImapFailure> {
        let choice = &self.account.choice;
        let (selected, listing) = sessions.again(|session| {
            let selected = session.examine(&folder.name)?;
            check_uidvalidity(choice, &selected)?;
            let listing = session.list_messages(&selected, &Criteria::of(choice))?;
            Ok((selected, listing))
        })?;
        let uids = &listing.uids;
        let mut summary = Summary::of(|sum| sum.mailboxes = 1);
        // A dry run has no directory, so nothing is written.
        let mut backup = match directory {
            Some(directory) => Some(Backup::open(self.output, directory, selected.uidvalidity)?),
            None => None,
        };
        let mut missing = Vec::new();
        let mut doubts = Doubts::default();
        for uids in uids.chunks(AT_A_TIME) {
            self.stop.check()?;
            let mut metadata = metadata(sessions, &selected, uids)?;
            summary.damaged += self.name_odd_keywords(url, &metadata);
            let Some(backup) = &mut backup else {
                for message in metadata.values() {
                    summary.messages += 1;
                    summary.bytes_in += message.size;
                    summary.bytes_out += message.size;
                }
                missing.extend(uids.iter().filter(|uid| !metadata.contains_key(uid)));
                continue;
            };
            let mut wanted = Vec::new();
            for uid in uids {
                let message = match metadata.entry(*uid) {
                    Entry::Occupied(told) => told.into_mut(),
                    // The server returned no metadata of this message, but an earlier run saved the message. The saved message
                    // and its flags are kept.
                    Entry::Vacant(_) if backup.has_uid(*uid) => {
                        summary.made += 1;
                        continue;
                    }
                    Entry::Vacant(untold) => {
                        doubts.untold.insert(*uid);
                        untold.insert(Metadata::unknown(*uid))
                    }
                };
                if backup.has(message)? {
                    doubts.remember(message, backup.size_of(*uid));
                    summary.made += 1;
                } else {
                    wanted.push((message.uid, message.size))
                }
            }
            self.observer
                .expects(wanted.iter().map(|(_, size)| *size).sum());
            let place = ReadFolder {
                selected: &selected,
                url,
            };
            let found = Found {
                missing: &mut missing,
                doubts: &mut doubts,
            };
            let done = self.messages(sessions, &place, wanted, &metadata, backup, found);
            // Messages that were already downloaded are kept, even if a later one fails.
            backup.finish()?;
            summary.add(&done?);
        }
        if let Some(backup) = &backup
            && backup.without_letter > 0
        {
            let messages = backup.without_letter;
            let why = format!(
                "{messages} messages were saved without some of their keywords, because a Maildir can store only 26 different keywords"
            );
            self.observer.damaged(url, &why.into());
            summary.damaged += 1;
        }
        let place = ReadFolder {
            selected: &selected,
            url,
        };
        if let Some(backup) = &mut backup {
            summary.damaged += self.told_doubts(&doubts, &place, backup)?;
        }
        let listing = if missing.is_empty() && listing.missing == 0 {
            listing
        } else {
            // Missing messages may have been deleted during the run. The folder is listed again, so that only messages
            // that still exist are reported as missing.
            sessions.again(|session| {
                let selected = session.examine(&selected.folder)?;
                session.list_messages(&selected, &Criteria::default())
            })?
        };
        for uid in &missing {
            if listing.uids.binary_search(uid).is_ok() {
                let path = message_url(url, &selected, *uid);
                let why =
                    "the server lists the message but does not send it; the message was not saved";
                self.observer.damaged(&path, &Detail::from(why));
                summary.damaged += 1;
            }
        }
        if let Some(why) = listing.about_missing() {
            self.observer.damaged(url, &why.into());
            summary.damaged += 1;
        }
        Ok(summary)
    }

    /// Reports messages with keywords that are not valid in IMAP, because the saved messages lack these keywords. Returns 1 if
    /// there are any, otherwise 0.
    fn name_odd_keywords(&self, url: &Path, metadata: &HashMap<u32, Metadata>) -> u64 {
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
        let mut set = sequence_set(&uids);
        if set.len() > 300 {
            set.truncate(300);
            set.push_str("...");
        }
        let why = format!(
            "{} messages (UID {set}) were saved without keywords that IMAP does not allow: {}{more}",
            uids.len(),
            shown.join(" ")
        );
        self.observer.damaged(url, &why.into());
        1
    }

    /// Reports messages that were saved but may be incomplete or without flags. Marks the incomplete ones, so that the
    /// next run downloads them again. Returns the number of reports.
    fn told_doubts(
        &self,
        doubts: &Doubts,
        place: &ReadFolder<'_>,
        backup: &mut Backup,
    ) -> Result<u64, ImapFailure> {
        let mut count = 0;
        for uid in &doubts.untold_given {
            let path = message_url(place.url, place.selected, *uid);
            let why = "the server did not send the flags and the date of the message; the message was saved without flags";
            self.observer.damaged(&path, &Detail::from(why));
            count += 1;
        }
        if doubts.sizes_are_wrong() {
            if !doubts.short.is_empty() {
                let short = doubts.short.len();
                let why = format!(
                    "the check of message sizes, because most sizes that the server announced are wrong; {short} messages were shorter than announced, and were saved as the server sent them"
                );
                self.observer.passed_over(place.url, &why);
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
            self.observer.damaged(&path, &why.into());
            if !is_closed {
                backup.mark_short(*uid)?;
            }
            count += 1;
        }
        Ok(count)
    }

    fn messages(
        &self,
        sessions: &Sessions<'_>,
        place: &ReadFolder<'_>,
        wanted: Vec<(u32, u64)>,
        metadata: &HashMap<u32, Metadata>,
        backup: &mut Backup,
        found: Found<'_>,
    ) -> Result<Summary, ImapFailure> {
        let Found { missing, doubts } = found;
        if wanted.is_empty() {
            return Ok(Summary::default());
        }
        let most = self.options.max_message;
        let mut damaged = 0;
        let too_large = &mut damaged;
        let summary = sessions.read(place.selected, wanted, most, |arrivals| {
            let next = move || {
                loop {
                    let Some(fetched) = arrivals.next()? else {
                        return Ok(None);
                    };
                    let (uid, content) = match fetched {
                        Fetched::Whole { uid, content } => (uid, content),
                        Fetched::Gone(uid) => {
                            missing.push(uid);
                            continue;
                        }
                        Fetched::TooLarge(uid) => {
                            let path = message_url(place.url, place.selected, uid);
                            let why =
                                format!("the message has more than {most} bytes and was not saved");
                            self.observer.damaged(&path, &why.into());
                            *too_large += 1;
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
                backup.put(message.about, content, new.unwrap_or(content))
            })
        })?;
        Ok(Summary {
            damaged: summary.damaged + damaged,
            ..summary
        })
    }
}

/// Lists of problems that are found while messages are downloaded: missing messages, and messages that may be incomplete.
struct Found<'f> {
    missing: &'f mut Vec<u32>,
    doubts: &'f mut Doubts,
}

/// Data about saved messages that may be incomplete or without flags, for the report.
#[derive(Default)]
struct Doubts {
    /// UIDs of the messages whose metadata the server did not return. `untold_given` contains those whose content the
    /// server returned nevertheless: they are saved without flags, which is reported.
    untold: HashSet<u32>,
    untold_given: Vec<u32>,
    short: Vec<ShortMessage>,
    /// Number of messages whose size is exactly the announced one. `wrong` is the number of complete messages with a
    /// different size. The two numbers show whether the announced sizes can be trusted.
    exact: u64,
    wrong: u64,
}

/// A message that is shorter than the server announced.
struct ShortMessage {
    uid: u32,
    /// Announced size (RFC822.SIZE) in bytes.
    size: u64,
    /// Number of bytes that the server sent.
    given: u64,
    /// Whether the MIME structure shows that the message is complete.
    is_closed: bool,
}

/// Minimum number of complete messages whose announced size is wrong. With fewer, the announced sizes are trusted, and
/// a message that is shorter is reported as incomplete.
const FEW_WRONG: u64 = 3;

impl Doubts {
    fn judge(&mut self, about: &Metadata, content: &[u8]) {
        if self.untold.contains(&about.uid) {
            self.untold_given.push(about.uid);
        }
        let given = content.len() as u64;
        // A size of 0 means that the server did not return the size.
        if about.size == 0 || about.size == given {
            self.exact += u64::from(about.size > 0);
            return;
        }
        let is_longer = given > about.size;
        let is_closed = is_longer || is_closed(content);
        self.wrong += u64::from(is_closed);
        if !is_longer {
            self.short.push(ShortMessage {
                uid: about.uid,
                size: about.size,
                given,
                is_closed,
            });
        }
    }

    /// Compares the announced size of a message with the size of the saved message. The comparison shows whether the
    /// announced sizes of the folder can be trusted.
    fn remember(&mut self, about: &Metadata, saved: Option<u64>) {
        match saved {
            Some(saved) if about.size > 0 && saved != about.size => self.wrong += 1,
            Some(_) => self.exact += 1,
            None => {}
        }
    }

    /// Returns whether the announced sizes are unreliable. Exchange, for example, computes them from a different form of the
    /// message.
    fn sizes_are_wrong(&self) -> bool {
        self.wrong >= FEW_WRONG && self.wrong > self.exact
    }
}

/// Returns whether a message is a multipart with its closing boundary line. Such a message is complete, because mail clients
/// ignore the text after this line.
fn is_closed(message: &[u8]) -> bool {
    let tree = mime::scan(message, &Limits::default().scan());
    let root = tree.ids().next().map(|id| tree.part(id));
    root.is_some_and(|root| match &root.content {
        mime::PartKind::Multipart(multipart) => multipart.close.is_some(),
        _ => false,
    })
}

/// A folder and its URL for reports.
struct ReadFolder<'p> {
    selected: &'p Selected,
    url: &'p Path,
}

/// Returns the URL of a message (RFC 5092).
fn message_url(folder: &Path, selected: &Selected, uid: u32) -> PathBuf {
    let mut url = folder.to_owned();
    let more = format!(";UIDVALIDITY={}/;UID={uid}", selected.uidvalidity);
    url.as_mut_os_string().push(more);
    url
}

fn metadata(
    sessions: &Sessions<'_>,
    selected: &Selected,
    uids: &[u32],
) -> Result<HashMap<u32, Metadata>, ImapFailure> {
    sessions.again(|session| {
        let now = session.examine(&selected.folder)?.uidvalidity;
        if now != selected.uidvalidity {
            return Err(ImapFailure::Renumbered {
                folder: shown(&selected.folder),
                before: selected.uidvalidity,
                now,
            });
        }
        let mut found = HashMap::with_capacity(uids.len());
        session.fetch_metadata(uids, Structure::NotWanted, &mut |message| {
            found.insert(message.uid, message);
            Ok(())
        })?;
        Ok(found)
    })
}

/// Returns an error if the URL contains a UIDVALIDITY that differs from that of the folder.
pub(super) fn check_uidvalidity(choice: &Choice, selected: &Selected) -> Result<(), ImapFailure> {
    match choice.uidvalidity {
        Some(before) if before != selected.uidvalidity => Err(ImapFailure::Renumbered {
            folder: shown(&selected.folder),
            before,
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
