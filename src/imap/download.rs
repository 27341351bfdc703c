//! All that an account's URL means, into Maildirs: a folder for each of the server's. What is there already is not read again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use super::account::{Account, Choice};
use super::backup::{Backup, place, place_beside};
use super::command::sequence_set;
use super::failure::ImapFailure;
use super::names::shown;
use super::reading::{Fetched, Sessions};
use super::session::{Metadata, RemoteFolder, Selected, Structure};
use crate::detail::Detail;
use crate::error::Error;
use crate::mailbox::{Effect, Handed, Observer, Options, Stop, Summary, Transform, convert_handed};

/// Messages whose metadata is held at a time.
const AT_A_TIME: usize = 5000;

/// An account on its way to Maildirs.
pub(crate) struct Download<'d, S> {
    pub(crate) account: &'d Account,
    /// Where the Maildirs go.
    pub(crate) output: &'d Path,
    pub(crate) options: &'d Options,
    pub(crate) transform: &'d dyn Transform<S>,
    pub(crate) observer: &'d dyn Observer<S>,
    pub(crate) stop: &'d Stop,
}

impl<S: Send> Download<'_, S> {
    /// Reads all of it. A folder that cannot be read is told as damage, and the others go on.
    ///
    /// # Errors
    /// What ends the run: no server, no login, a full disk. What was written stays, and the next run goes on behind it.
    pub(crate) fn run(&self) -> Result<Summary, ImapFailure> {
        let sessions = Sessions::new(self.account, self.stop);
        let folders = sessions.again(|session| session.folders(&self.account.choice))?;
        let _lock = match self.options.effect {
            Effect::Write => Some(locked(self.output)?),
            Effect::DryRun => None,
        };
        let mut summary = Summary::default();
        let mut taken = HashSet::new();
        for folder in &folders {
            self.stop.check()?;
            let mut target = place(folder);
            // Some file systems take capitals and small letters for the same.
            if !taken.insert(target.to_string_lossy().to_lowercase()) {
                target = place_beside(folder);
            }
            let url = PathBuf::from(self.account.url(&folder.name));
            self.observer.begin(&url);
            match self.folder(&sessions, folder, &url, &self.output.join(target)) {
                Ok(done) => {
                    self.observer.done(&done);
                    summary.add(&done);
                }
                Err(why @ (ImapFailure::Refused { .. } | ImapFailure::Renumbered { .. })) => {
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
        target: &Path,
    ) -> Result<Summary, ImapFailure> {
        let choice = &self.account.choice;
        let (selected, uids) = sessions.again(|session| {
            let selected = session.examine(&folder.name)?;
            check_uidvalidity(choice, &selected)?;
            let uids = match selected.exists {
                0 => Vec::new(),
                _ => session.search(&criteria(choice))?,
            };
            Ok((selected, uids))
        })?;
        let mut summary = Summary::of(|sum| sum.mailboxes = 1);
        let mut backup = match self.options.effect {
            Effect::Write => Some(Backup::open(target.to_owned(), selected.uidvalidity)?),
            Effect::DryRun => None,
        };
        let mut missing = Vec::new();
        for uids in uids.chunks(AT_A_TIME) {
            self.stop.check()?;
            let metadata = metadata(sessions, &selected, uids)?;
            missing.extend(uids.iter().filter(|uid| !metadata.contains_key(uid)));
            let Some(backup) = &mut backup else {
                for message in metadata.values() {
                    summary.messages += 1;
                    summary.bytes_in += message.size;
                    summary.bytes_out += message.size;
                }
                continue;
            };
            let mut wanted = Vec::new();
            for uid in uids {
                if let Some(message) = metadata.get(uid) {
                    match backup.has(message)? {
                        true => summary.made += 1,
                        false => wanted.push((message.uid, message.size)),
                    }
                }
            }
            self.observer
                .expects(wanted.iter().map(|(_, size)| *size).sum());
            let place = ReadFolder {
                selected: &selected,
                url,
            };
            let done = self.messages(sessions, &place, wanted, &metadata, backup, &mut missing);
            // What came before it stays.
            backup.finish()?;
            summary.add(&done?);
        }
        if let Some(backup) = &backup
            && backup.without_letter > 0
        {
            let messages = backup.without_letter;
            let why = format!(
                "{messages} messages have keywords that got no letter: a Maildir has 26, and these keywords are not in it"
            );
            self.observer.damaged(url, &why.into());
            summary.damaged += 1;
        }
        summary.damaged += self.still_there(sessions, &selected, &missing, url)?;
        Ok(summary)
    }

    /// Messages that the server did not give, and that are there nevertheless: their number.
    fn still_there(
        &self,
        sessions: &Sessions<'_>,
        selected: &Selected,
        missing: &[u32],
        url: &Path,
    ) -> Result<u64, ImapFailure> {
        let mut count = 0;
        for some in missing.chunks(300) {
            let there = sessions.again(|session| {
                session.examine(&selected.folder)?;
                let mut sorted = some.to_vec();
                sorted.sort_unstable();
                session.search(&format!("UID {}", sequence_set(&sorted)))
            })?;
            for uid in there.iter().filter(|uid| some.contains(uid)) {
                let path = message_url(url, selected, *uid);
                let why = "the server lists it, and does not give it; it was left out";
                self.observer.damaged(&path, &Detail::from(why));
                count += 1;
            }
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
        missing: &mut Vec<u32>,
    ) -> Result<Summary, ImapFailure> {
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
                            let why = format!("more than {most} bytes; it was left out");
                            self.observer.damaged(&path, &why.into());
                            *too_large += 1;
                            continue;
                        }
                    };
                    let Some(about) = metadata.get(&uid) else {
                        continue;
                    };
                    return Ok(Some(Handed {
                        about,
                        number: u64::from(uid),
                        source: message_url(place.url, place.selected, uid),
                        content,
                    }));
                }
            };
            convert_handed(
                self.options,
                self.transform,
                self.observer,
                self.stop,
                next,
                |handed, new| backup.put(handed.about, new.unwrap_or(&handed.content)),
            )
        })?;
        Ok(Summary {
            damaged: summary.damaged + damaged,
            ..summary
        })
    }
}

/// A folder, and what rows call it.
struct ReadFolder<'p> {
    selected: &'p Selected,
    url: &'p Path,
}

/// The URL of a message (RFC 5092).
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

/// The criteria of SEARCH for what is to be read.
pub(super) fn criteria(choice: &Choice) -> String {
    let mut criteria = match choice.uid {
        Some(uid) => format!("UID {uid}"),
        None => "ALL".to_owned(),
    };
    for (word, day) in [("SINCE", &choice.since), ("BEFORE", &choice.before)] {
        if let Some(day) = day {
            criteria.push_str(&format!(" {word} {day}"));
        }
    }
    criteria
}

/// What a URL says of UIDVALIDITY has to be so.
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

/// The output for this run alone; it is made if it is not there.
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
