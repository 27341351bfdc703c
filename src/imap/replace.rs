//! One message in the place of another, in the same folder: as IMAP has no way to change a message, a copy is appended and the
//! old one deleted. Nothing is deleted before the copy was read back.
//!
//! What is done in which order, and what follows from each response, is in [`Machine`]. This file carries its commands out,
//! one after the other, and returns what came of each. In the normal case these are, each announced in the journal before it
//! is taken:
//!
//! 1. APPEND the new octets, with the flags, keywords and INTERNALDATE of the old message. The server says the copy's UID.
//! 2. Fetch the copy back: octets, flags and date must be what they should.
//! 3. Read the flags of the old message again, and carry over what somebody changed meanwhile.
//! 4. Mark the old message `\Deleted`, provided that it did not change since (CONDSTORE). Then read its flags once more, and
//!    expunge this UID alone, or move it to the trash: both are sent at once. Flags that changed up to this reading are carried
//!    over to the copy.
//!
//! The copy is taken away again where it does not hold what it should, or where the old message went meanwhile. What is known
//! not to be ours, or not known to be ours, is never deleted.
//!
//! Not closed: the moment in which a server goes from the last reading to the expunging, as no command does both. Flags that
//! another program sets in it are lost. MOVE to a folder of ours, whose copy could be read at leisure, would have the same
//! moment within it: RFC 6851 asks for a copy that is whole, and not that its flags be those of the last instant; Courier has
//! no MOVE, and a folder more would be in the account of each that a kill left half-made.

use std::time::{Duration, Instant};

use super::failure::ImapFailure;
use super::journal::{Journal, OpenReplacement, Replacement, ReplacementStep};
pub(crate) use super::machine::Fate;
use super::machine::{
    Body, Command, Conclusion, Event, Labelled, Machine, Reading, Refusal, Seen, Sight, Terms,
};
pub(super) use super::machine::{DELETED, has};
use super::names::shown;
use super::session::{GmailMetadata, ImapSession, InternalDate, Metadata, Selected};
use crate::engine::report::Reason;
use crate::error::Error;
use crate::key::Key;
use crate::mailbox::Stop;

/// Octets beyond twice those expected that a copy may have. A server that sends more ends the session.
const MORE: usize = 1 << 20;

/// Longest wait between two looks at whether the run was stopped.
const LOOKS: Duration = Duration::from_millis(50);

/// Replaces messages of the folder that is selected.
pub(super) struct Replacing<'r> {
    pub(super) session: &'r mut ImapSession,
    pub(super) journal: &'r Journal,
    pub(super) selected: &'r Selected,
    /// The folder, as the server spells it, to which old messages go; none: they are expunged.
    pub(super) trash: Option<&'r str>,
    /// Whether REPLACE (RFC 8508) may be used where there is no room for both.
    pub(super) by_replace: bool,
    pub(super) stop: &'r Stop,
}

/// A message, and what is to be in its place.
pub(super) struct Change<'c> {
    pub(super) old: &'c Metadata,
    pub(super) original: &'c [u8],
    pub(super) new: &'c [u8],
    /// The smallest UID that a new message of the folder may get.
    pub(super) least: u32,
}

/// The order in which copies are appended.
pub(super) trait AppendTurn {
    /// Waits until the copy may be appended.
    fn wait(&mut self) -> Result<(), ImapFailure>;
    /// The next copy may be appended.
    fn is_over(&mut self);
}

/// No other message is appended.
struct OnlyTurn;

impl AppendTurn for OnlyTurn {
    fn wait(&mut self) -> Result<(), ImapFailure> {
        Ok(())
    }

    fn is_over(&mut self) {}
}

/// What a machine needs besides its entry.
struct Work<'w> {
    id: u64,
    new: &'w [u8],
    original: &'w [u8],
    turn: &'w mut dyn AppendTurn,
}

impl Replacing<'_> {
    /// Replaces a message. `None`: there is nothing in the journal, and it may be tried afresh.
    ///
    /// # Errors
    /// What ends the session, or the run. Then the journal says how far this one came.
    pub(super) fn replace(
        &mut self,
        change: &Change<'_>,
        turn: &mut dyn AppendTurn,
    ) -> Result<Option<Fate>, ImapFailure> {
        let old = change.old;
        if let Some(flag) = self.cannot_hold(&old.flags) {
            let detail = format!(
                "the folder does not accept new keywords, and the keyword {flag} would be new"
            );
            return Ok(Some(Fate::Left(Reason::FlagsNotKept, detail)));
        }
        let entry = Replacement {
            folder: self.selected.folder.clone(),
            uidvalidity: self.selected.uidvalidity,
            uid: old.uid,
            least: change.least.max(old.uid.saturating_add(1)),
            sha256: Key::of(change.new).to_string(),
            size: change.new.len() as u64,
            original: Some(Key::of(change.original).to_string()),
            original_size: change.original.len() as u64,
            flags: old.flags.clone(),
            labels: Vec::new(),
            date: (old.internal_date.text.clone(), old.internal_date.seconds),
            step: ReplacementStep::Begun,
        };
        let work = Work {
            id: self.journal.next_id(),
            new: change.new,
            original: change.original,
            turn,
        };
        self.run(Machine::new(self.terms(), entry), work)
    }

    /// Goes on with a replacement of an earlier session, or takes it back. None: there is nothing more to do about it.
    pub(super) fn resume(&mut self, open: OpenReplacement) -> Result<Option<Fate>, ImapFailure> {
        let work = Work {
            id: open.id,
            new: &[],
            original: &[],
            turn: &mut OnlyTurn,
        };
        let machine = Machine::resumed(self.terms(), open.replacement, open.doubt);
        self.run(machine, work)
    }

    fn terms(&self) -> Terms {
        Terms {
            is_gmail: self.session.has(GMAIL),
            has_trash: self.trash.is_some(),
            may_replace: self.by_replace && self.session.has("REPLACE"),
            #[cfg(test)]
            without: None,
        }
    }

    fn run(
        &mut self,
        mut machine: Machine,
        mut work: Work<'_>,
    ) -> Result<Option<Fate>, ImapFailure> {
        let mut event = Event::Begin;
        loop {
            let (next, command) = machine.next(event);
            machine = next;
            event = match command {
                Command::Give(Conclusion::Settled(Fate::Both(reason, why))) => {
                    return Ok(Some(Fate::Both(
                        reason,
                        self.with_kept(machine.entry(), why),
                    )));
                }
                Command::Give(Conclusion::Settled(fate)) => return Ok(Some(fate)),
                Command::Give(Conclusion::Nothing) => return Ok(None),
                Command::Give(Conclusion::Unknown(why)) => {
                    return Err(ImapFailure::Unknown(self.with_kept(machine.entry(), why)));
                }
                Command::Give(Conclusion::Stuck(why)) => {
                    let folder = shown(&self.selected.folder);
                    let error = Error::cannot_write(&folder)(std::io::Error::other(why));
                    return Err(ImapFailure::Run(error));
                }
                command => self.perform(command, machine.entry(), &mut work)?,
            };
        }
    }

    /// The sentence, and where the original is, if that is in a file.
    fn with_kept(&self, entry: &Replacement, why: String) -> String {
        let kept = self.journal.kept(entry);
        match entry.original.is_some() && kept.is_file() {
            true => format!("{why} ({})", kept.display()),
            false => why,
        }
    }

    fn perform(
        &mut self,
        command: Command,
        entry: &Replacement,
        work: &mut Work<'_>,
    ) -> Result<Event, ImapFailure> {
        let old = entry.uid;
        Ok(match command {
            Command::Note => {
                self.journal.note(work.id, entry.clone())?;
                Event::Done
            }
            Command::End => {
                self.journal.end(work.id)?;
                Event::Done
            }
            Command::Keep => {
                self.journal.keep(entry, work.original)?;
                Event::Done
            }
            Command::Drop => {
                self.journal.drop_kept(entry)?;
                Event::Done
            }
            Command::Append(Body::New) => {
                work.turn.wait()?;
                let appended = self.append(entry, work.new);
                work.turn.is_over();
                Event::Appended(appended?)
            }
            Command::Append(Body::Original) => {
                let path = self.journal.kept(entry);
                let failed = Error::cannot_read(path.display().to_string());
                let original = std::fs::read(&path).map_err(failed)?;
                Event::Appended(self.append(entry, &original)?)
            }
            Command::Replace => {
                let replaced = self.session.replace(
                    old,
                    &entry.folder,
                    &entry.flags,
                    &entry.internal_date(),
                    work.new,
                );
                self.session.noop_with_next();
                Event::Appended(answer(replaced)?)
            }
            Command::Search(body) => Event::Found(self.copies(entry, body)?),
            Command::Read(uid) => {
                let size = match uid == old {
                    true => entry.original_size,
                    false => entry.size,
                };
                Event::Read(self.digest(uid, size)?)
            }
            Command::Look { copy, is_fresh } => {
                if is_fresh {
                    self.session.noop_with_next();
                }
                let (old, copy) = self.both(old, copy)?;
                Event::Seen(old, copy)
            }
            Command::Store(uid, change, flags) => {
                Event::Answered(answer(self.session.store_flags(uid, change, &flags))?)
            }
            Command::Mark(since) => {
                let marked = self.session.mark_deleted(old, since)?;
                Event::Marked {
                    answer: answer(marked.is_modified)?,
                    flags: marked.flags,
                }
            }
            Command::Remove => {
                let has_labels = self.session.has(GMAIL);
                let (removal, left) = self.session.remove(old, self.trash, has_labels)?;
                Event::Removed {
                    answer: answer(left)?,
                    flags: removal.flags,
                    labels: removal.labels,
                    is_told: removal.is_told,
                }
            }
            Command::TakeAway(uid) => {
                // At Gmail, expunging takes a label away and no message.
                let taken = match self.trash.filter(|_| self.session.has(GMAIL)) {
                    Some(trash) => self.session.uid_move(uid, trash),
                    None => self.session.uid_expunge(uid),
                };
                Event::Answered(answer(taken)?)
            }
            Command::Labels(copy) => {
                let mut found = self.session.fetch_gmail(&[old.min(copy), old.max(copy)])?;
                let mut of = |uid| {
                    let at = found.iter().position(|it: &GmailMetadata| it.uid == uid)?;
                    let GmailMetadata {
                        message_id, labels, ..
                    } = found.swap_remove(at);
                    Some(Labelled { message_id, labels })
                };
                Event::Labels(of(old), of(copy))
            }
            Command::StoreLabels(uid, change, labels) => Event::Answered(answer(
                self.session.store_gmail_labels(uid, change, &labels),
            )?),
            Command::Rest(milliseconds) => {
                self.rest(Duration::from_millis(milliseconds))?;
                Event::Done
            }
            // The loop around this takes it.
            Command::Give(_) => Event::Done,
        })
    }

    fn append(
        &mut self,
        entry: &Replacement,
        octets: &[u8],
    ) -> Result<Result<Option<(u32, u32)>, Refusal>, ImapFailure> {
        let date = entry.internal_date();
        let appended = self
            .session
            .append(&entry.folder, &entry.flags, &date, octets);
        let appended = answer(appended)?;
        // Some servers show a session its own messages only when it asks.
        self.session.noop_with_next();
        Ok(appended)
    }

    fn rest(&self, pause: Duration) -> Result<(), ImapFailure> {
        let begun = Instant::now();
        loop {
            self.stop.check()?;
            match pause.checked_sub(begun.elapsed()) {
                Some(rest) => std::thread::sleep(rest.min(LOOKS)),
                None => return Ok(()),
            }
        }
    }

    /// Reads a whole message. Commands that are refused on the way leave unknown whether it is there.
    fn digest(&mut self, uid: u32, size: u64) -> Result<Reading, ImapFailure> {
        let most = usize::try_from(size).unwrap_or(usize::MAX);
        let most = most.saturating_mul(2).saturating_add(MORE);
        let before = self.session.refusals().0;
        let body = match self.session.fetch_body(uid, size, most) {
            // It is another message than the one that was given.
            Err(ImapFailure::TooLarge(_)) => return Ok(Reading::Digest(String::new())),
            Err(ImapFailure::Refused { .. }) => None,
            body => body?,
        };
        let (after, said) = self.session.refusals();
        Ok(match body {
            Some(octets) => Reading::Digest(Key::of(&octets).to_string()),
            None if after > before => Reading::Unknown(said.to_owned()),
            None => Reading::Nothing,
        })
    }

    fn both(&mut self, old: u32, copy: u32) -> Result<(Sight, Sight), ImapFailure> {
        let uids = [old.min(copy), old.max(copy)];
        // There is no copy yet.
        let uids = match copy {
            0 => &uids[1..],
            _ => &uids[..],
        };
        let (mut found, done) = self.session.look(uids)?;
        let done = answer(done)?;
        let mut of = |uid| match (found.remove(&uid), &done) {
            (Some(glimpse), _) => match glimpse.flags {
                Some(flags) => Sight::Present(Seen {
                    flags,
                    date: glimpse.date,
                    modseq: glimpse.modseq,
                }),
                None => Sight::Unknown(
                    "the server lists the message, but does not send its flags".into(),
                ),
            },
            (None, Ok(())) => Sight::Absent,
            (None, Err(refusal)) => Sight::Unknown(refusal.said()),
        };
        Ok((of(old), of(copy)))
    }

    /// Messages that may be the copy of a replacement whose UID is not known: those with its octets that are new enough. The
    /// inner error says why they are not known.
    fn copies(
        &mut self,
        entry: &Replacement,
        body: Body,
    ) -> Result<Result<Vec<u32>, String>, ImapFailure> {
        let wanted = match body {
            Body::New => Some(&entry.sha256),
            Body::Original => entry.original.as_ref(),
        };
        self.session.noop_with_next();
        let before = self.session.refusals().0;
        let least = entry.least;
        let criteria = format!("UID {least}:* UNDELETED");
        let found = match self.session.search(&criteria) {
            Err(ImapFailure::Refused { text, .. }) => return Ok(Err(text)),
            found => found?,
        };
        // `*` is the last message, whatever its UID.
        let found: Vec<u32> = found.into_iter().filter(|uid| *uid >= least).collect();
        if found.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let sizes = match self.session.fetch_sizes(&found) {
            Err(ImapFailure::Refused { text, .. }) => return Ok(Err(text)),
            sizes => sizes?,
        };
        let (after, said) = self.session.refusals();
        if after > before {
            return Ok(Err(said.to_owned()));
        }
        let mut copies = Vec::new();
        for uid in found {
            let size = sizes.binary_search_by_key(&uid, |(uid, _)| *uid);
            let size = size
                .ok()
                .and_then(|at| sizes.get(at))
                .map(|(_, size)| *size);
            // A message without a size may be any.
            let is_likely = match body {
                Body::New => size.is_none_or(|size| size == entry.size),
                Body::Original => true,
            };
            if !is_likely || self.journal.is_known_copy(entry, uid) {
                continue;
            }
            match self.digest(uid, size.unwrap_or(entry.size))? {
                Reading::Digest(digest) if Some(&digest) == wanted => copies.push(uid),
                Reading::Digest(_) | Reading::Nothing => {}
                Reading::Unknown(why) => return Ok(Err(why)),
            }
        }
        Ok(Ok(copies))
    }

    /// A flag that the folder cannot hold for ever (RFC 3501 §7.1, PERMANENTFLAGS). Servers that do not say it can hold all.
    fn cannot_hold<'f>(&self, flags: &'f [String]) -> Option<&'f String> {
        let permanent = &self.selected.permanent_flags;
        let takes_new = permanent.is_empty() || has(permanent, "\\*");
        flags.iter().find(|flag| {
            let is_keyword = !flag.starts_with('\\');
            !has(permanent, flag) && !(takes_new && (is_keyword || permanent.is_empty()))
        })
    }
}

impl Replacement {
    pub(super) fn internal_date(&self) -> InternalDate {
        InternalDate {
            text: self.date.0.clone(),
            seconds: self.date.1,
        }
    }
}

/// A refusal is an answer; every other failure ends the session.
fn answer<T>(done: Result<T, ImapFailure>) -> Result<Result<T, Refusal>, ImapFailure> {
    match done {
        Err(ImapFailure::Refused {
            command,
            code,
            text,
            ..
        }) => Ok(Err(Refusal {
            command,
            code,
            text,
        })),
        // An answer that cannot be read tells nothing, like a refusal.
        Err(ImapFailure::Unreadable(text)) => Ok(Err(Refusal {
            command: "FETCH",
            code: None,
            text: text.to_string(),
        })),
        done => done.map(Ok),
    }
}

/// Gmail's extensions.
pub(super) const GMAIL: &str = "X-GM-EXT-1";
