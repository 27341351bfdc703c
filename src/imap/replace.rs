//! Replaces a message by another one in the same folder. IMAP has no command that changes a message, so a new message is
//! appended and the old message is deleted. Nothing is deleted before the new message was read back and compared.
//!
//! The order of the steps, and the reaction to each response, are defined in [`Machine`]. This file executes its commands and
//! returns their results. These are the steps without faults; each is recorded in the journal before it is taken:
//!
//! 1. APPEND the new content with the flags, keywords and INTERNALDATE of the old message. The server returns the UID of the
//!    new message.
//! 2. Read the new message back, and compare its content, flags and date.
//! 3. Read the flags of the old message again, and apply changes that other programs made in the meantime to the new message.
//! 4. Mark the old message as `\Deleted`, unless it has changed (CONDSTORE). Then read its flags once more and expunge only
//!    this UID, or move it to the trash. Both commands are sent together. Flags that changed up to this reading are applied to
//!    the new message.
//!
//! The new message is deleted again if it differs from what was sent, but only while the old message exists. A message is
//! deleted only if it is known to be written or read by embody, and if its size, date and first bytes were still the same in
//! the last command before it was marked.
//!
//! One gap remains: the moment on the server between the last reading of the flags and the expunging, because no command does
//! both. Flags that another program sets in this moment are lost. Moving the old message to a temporary folder first, and
//! reading its flags there, would have the same gap inside MOVE: RFC 6851 requires a complete copy, but not the latest flags.
//! It would also exclude Courier, which has no MOVE, and leave a temporary folder behind after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::failure::ImapFailure;
use super::fetch::{START, message_id};
use super::journal::{OpenReplacement, ReplaceJournal, Replacement, ReplacementStep};
pub(crate) use super::machine::ReplaceResult;
use super::machine::{
    AppendContent, CommandRefusal, Conclusion, LabelReport, Machine, MachineCommand, MachineEvent,
    MessageMetadata, MessageStart, ServerTerms, Sight,
};
pub(super) use super::machine::{DELETED, has};
use super::names::shown;
use super::session::{GmailMetadata, ImapSession, InternalDate, Metadata, SelectResponse};
use crate::engine::report::Reason;
use crate::error::Error;
use crate::fetch::store::Store;
use crate::key::Key;
use crate::mailbox::Stop;

/// Maximum duration of one sleep in a longer pause. After each sleep, the program checks whether the user interrupted
/// the run.
const LOOKS: Duration = Duration::from_millis(50);

/// Replaces messages of the selected folder: executes the commands of a [`Machine`] over one session.
pub(super) struct MessageReplacer<'r> {
    pub(super) session: &'r mut ImapSession,
    pub(super) journal: &'r ReplaceJournal,
    pub(super) selected: &'r SelectResponse,
    /// Folder to which old messages are moved, in the spelling of the server. If it is `None`, old messages are
    /// expunged.
    pub(super) trash: Option<&'r str>,
    /// Whether the command REPLACE (RFC 8508) may be used. It is needed if the quota has no room for the old and the
    /// new message at the same time.
    pub(super) by_replace: bool,
    /// Store of the run with detached attachments. `None` if the command has no store.
    pub(super) objects: Option<&'r dyn Store>,
    pub(super) stop: &'r Stop,
}

/// A message and its new content.
pub(super) struct MessageChange<'c> {
    pub(super) old: &'c Metadata,
    pub(super) original: &'c [u8],
    pub(super) new: &'c [u8],
    /// Smallest UID that the server can give to the new message. A message with a smaller UID existed before the run,
    /// so it cannot be the new message.
    pub(super) least: u32,
}

/// The place of a message in the order of appending. Several connections can work in one folder, so each waits until it
/// may append its new message. The new messages are then in the order of the old ones.
pub(super) trait AppendTurn {
    /// Waits until the new messages before this one were appended.
    fn wait(&mut self) -> Result<(), ImapFailure>;
    /// Lets the next new message be appended, because this message was appended or will not be.
    fn is_over(&mut self);
}

/// Data for executing the commands of a [`Machine`] that the journal entry does not contain.
pub(super) struct ReplaceWork<'w> {
    pub(super) id: u64,
    pub(super) new: &'w [u8],
    pub(super) original: &'w [u8],
    /// Turn in the append order. `None` if only one message is being replaced.
    pub(super) turn: Option<&'w mut dyn AppendTurn>,
    /// First bytes of the messages that were read in this session, by UID. They show whether a UID still belongs to the
    /// same message.
    pub(super) starts: BTreeMap<u32, Vec<u8>>,
    /// References to detached attachments in the messages that were read, by UID. Only a replacement of an earlier
    /// session needs them.
    pub(super) references: BTreeMap<u32, BTreeSet<Key>>,
    /// Message-ID of the old and the new message. `None` as long as neither was read.
    pub(super) message_id: Option<Vec<u8>>,
}

impl ReplaceWork<'_> {
    /// Returns the data for a replacement of an earlier session, whose messages were not read yet.
    pub(super) fn empty(id: u64) -> Self {
        Self {
            id,
            new: &[],
            original: &[],
            turn: None,
            starts: BTreeMap::new(),
            references: BTreeMap::new(),
            message_id: None,
        }
    }

    pub(super) fn was_read(&mut self, uid: u32, content: &[u8]) {
        self.starts.insert(uid, start(content));
        if self.message_id.is_none() {
            self.message_id = message_id(content);
        }
    }
}

impl MessageReplacer<'_> {
    /// Replaces a message. Returns `None` if the replacement was undone, so that the caller can try it again.
    ///
    /// # Errors
    /// Failures that end the session or the run. The journal then contains the last step, so that a later run can
    /// continue.
    pub(super) fn replace(
        &mut self,
        change: &MessageChange<'_>,
        turn: &mut dyn AppendTurn,
    ) -> Result<Option<ReplaceResult>, ImapFailure> {
        let old = change.old;
        if let Some(flag) = self.cannot_hold(&old.flags) {
            let detail = format!(
                "the folder does not accept new keywords, and the folder does not have the keyword {flag} yet"
            );
            return Ok(Some(ReplaceResult::Left(Reason::FlagsNotKept, detail)));
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
        let mut work = ReplaceWork {
            new: change.new,
            original: change.original,
            turn: Some(turn),
            ..ReplaceWork::empty(self.journal.next_id())
        };
        work.was_read(old.uid, change.original);
        self.run(Machine::new(self.terms(), entry), work)
    }

    /// Finishes or undoes a replacement of an earlier session. Returns `None` if nothing is left to report.
    pub(super) fn resume(
        &mut self,
        open: OpenReplacement,
    ) -> Result<Option<ReplaceResult>, ImapFailure> {
        let work = ReplaceWork::empty(open.id);
        let machine = Machine::resumed(self.terms(), open.replacement, open.doubt);
        self.run(machine, work)
    }

    fn terms(&self) -> ServerTerms {
        ServerTerms {
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
        mut work: ReplaceWork<'_>,
    ) -> Result<Option<ReplaceResult>, ImapFailure> {
        let mut event = MachineEvent::Begin;
        loop {
            let (next, command) = machine.next(event);
            machine = next;
            event = match command {
                MachineCommand::Give(Conclusion::Settled(ReplaceResult::Both(reason, why))) => {
                    return Ok(Some(ReplaceResult::Both(
                        reason,
                        self.with_kept(machine.entry(), why),
                    )));
                }
                MachineCommand::Give(Conclusion::Settled(fate)) => return Ok(Some(fate)),
                MachineCommand::Give(Conclusion::Nothing) => return Ok(None),
                MachineCommand::Give(Conclusion::Unknown(why)) => {
                    return Err(ImapFailure::Unknown(self.with_kept(machine.entry(), why)));
                }
                MachineCommand::Give(Conclusion::Stuck(why)) => {
                    let folder = shown(&self.selected.folder);
                    let error = Error::cannot_write(&folder)(std::io::Error::other(why));
                    return Err(ImapFailure::Run(error));
                }
                command => self.perform(command, machine.entry(), &mut work)?,
            };
        }
    }

    /// Adds the path of the file with the old message to `why`, a text for the user. If no such file exists, the text
    /// is returned unchanged.
    fn with_kept(&self, entry: &Replacement, why: String) -> String {
        let kept = self.journal.kept(entry);
        if entry.original.is_some() && kept.is_file() {
            format!("{why} ({})", kept.display())
        } else {
            why
        }
    }

    fn perform(
        &mut self,
        command: MachineCommand,
        entry: &Replacement,
        work: &mut ReplaceWork<'_>,
    ) -> Result<MachineEvent, ImapFailure> {
        let old = entry.uid;
        Ok(match command {
            MachineCommand::Note => {
                self.journal.note(work.id, entry.clone())?;
                MachineEvent::Done
            }
            MachineCommand::End => {
                self.journal.end(work.id)?;
                MachineEvent::Done
            }
            MachineCommand::Name(why) => {
                self.journal.name(work.id, self.with_kept(entry, why))?;
                MachineEvent::Done
            }
            MachineCommand::Keep => {
                self.journal.keep(entry, work.original)?;
                MachineEvent::Done
            }
            MachineCommand::Drop => {
                self.journal.drop_kept(entry)?;
                MachineEvent::Done
            }
            MachineCommand::Append(AppendContent::New) => {
                if let Some(turn) = &mut work.turn {
                    turn.wait()?;
                }
                let appended = self.append(entry, work.new);
                if let Some(turn) = &mut work.turn {
                    turn.is_over();
                }
                MachineEvent::Appended(appended?)
            }
            MachineCommand::Append(AppendContent::Original) => {
                let path = self.journal.kept(entry);
                let failed = Error::cannot_read(path.display().to_string());
                let original = std::fs::read(&path).map_err(failed)?;
                MachineEvent::Appended(self.append(entry, &original)?)
            }
            MachineCommand::Replace => {
                let replaced = self.session.replace(
                    old,
                    &entry.folder,
                    &entry.flags,
                    &entry.internal_date(),
                    work.new,
                );
                self.session.noop_with_next();
                MachineEvent::Appended(answer(replaced)?)
            }
            MachineCommand::Search(body) => MachineEvent::Found(self.copies(entry, body, work)?),
            MachineCommand::FindTwins { copy, with_kin } => {
                MachineEvent::Found(self.twins(entry, copy, with_kin, work)?)
            }
            MachineCommand::Read(uid) => MachineEvent::Read(self.read(uid, entry, work)?),
            MachineCommand::Look { copy } => {
                self.session.noop_with_next();
                let (old, copy) = self.both(old, copy, work)?;
                MachineEvent::Seen(old, copy)
            }
            MachineCommand::CheckObjects { copy } => {
                MachineEvent::Checked(self.check_objects(entry, copy, work))
            }
            MachineCommand::Store(uid, change, flags) => {
                MachineEvent::Answered(answer(self.session.store_flags(uid, change, &flags))?)
            }
            MachineCommand::Mark(since) => {
                let marked = self.session.mark_deleted(old, since)?;
                MachineEvent::Marked {
                    answer: answer(marked.is_modified)?,
                    flags: marked.flags,
                }
            }
            MachineCommand::Remove => {
                let has_labels = self.session.has(GMAIL);
                let (removal, left) = self.session.remove(old, self.trash, has_labels)?;
                MachineEvent::Removed {
                    answer: answer(left)?,
                    flags: removal.flags,
                    labels: removal.labels,
                    is_told: removal.is_told,
                    is_proven: removal.is_moved,
                }
            }
            MachineCommand::TakeAway(uid) => {
                // At Gmail, expunging only removes a label, so the message is moved to the trash.
                let trash = self.trash.filter(|_| self.session.has(GMAIL));
                let (removal, taken) = self.session.remove(uid, trash, false)?;
                MachineEvent::TakenAway {
                    answer: answer(taken)?,
                    is_told: removal.is_told,
                }
            }
            MachineCommand::Labels(copy) => {
                let mut found = self.session.fetch_gmail(&[old.min(copy), old.max(copy)])?;
                let mut of = |uid| {
                    let at = found.iter().position(|it: &GmailMetadata| it.uid == uid)?;
                    let GmailMetadata {
                        message_id, labels, ..
                    } = found.swap_remove(at);
                    Some(LabelReport { message_id, labels })
                };
                MachineEvent::Labels(of(old), of(copy))
            }
            MachineCommand::StoreLabels(uid, change, labels) => MachineEvent::Answered(answer(
                self.session.store_gmail_labels(uid, change, &labels),
            )?),
            MachineCommand::Rest(milliseconds) => {
                self.rest(Duration::from_millis(milliseconds))?;
                MachineEvent::Done
            }
            // `run` ends on the command `Give` and does not call `perform`, so this case never occurs.
            MachineCommand::Give(_) => MachineEvent::Done,
        })
    }

    fn append(
        &mut self,
        entry: &Replacement,
        octets: &[u8],
    ) -> Result<Result<Option<(u32, u32)>, CommandRefusal>, ImapFailure> {
        let date = entry.internal_date();
        let appended = answer(
            self.session
                .append(&entry.folder, &entry.flags, &date, octets),
        )?;
        // Some servers list a new message only after a later command such as NOOP, even in the session that appended
        // it.
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

    fn both(
        &mut self,
        old: u32,
        copy: u32,
        work: &ReplaceWork<'_>,
    ) -> Result<(Sight, Sight), ImapFailure> {
        let uids = [old.min(copy), old.max(copy)];
        // UID 0 means that the new message does not exist yet. Only the old message is then requested.
        let uids = match copy {
            0 => &uids[1..],
            _ => &uids[..],
        };
        let known: Vec<u32> = uids
            .iter()
            .copied()
            .filter(|uid| work.starts.contains_key(uid))
            .collect();
        let (mut found, done) = self.session.look(uids, &known)?;
        let done = answer(done)?;
        let gives_all = self.session.gives_all();
        let mut of = |uid| {
            let Some(glimpse) = found.remove(&uid) else {
                return match &done {
                    Ok(()) => Sight::Absent,
                    Err(refusal) => Sight::Unknown(refusal.said()),
                };
            };
            let start = match (work.starts.get(&uid), &glimpse.start) {
                (None, _) => MessageStart::NotCompared,
                (Some(_), None) if gives_all => MessageStart::NotCompared,
                (Some(_), None) => return Sight::Unknown(NO_CONTENT.into()),
                (Some(known), Some(start)) if is_start(known, start) => MessageStart::Same,
                _ => MessageStart::Different,
            };
            match glimpse.flags {
                Some(flags) => Sight::Present(MessageMetadata {
                    flags,
                    date: glimpse.date,
                    size: glimpse.size,
                    modseq: glimpse.modseq,
                    start,
                }),
                None => Sight::Unknown(
                    "the server lists the message, but does not send its flags".into(),
                ),
            }
        };
        Ok((of(old), of(copy)))
    }

    /// Returns the first of these flags that the folder cannot store permanently (RFC 3501 §7.1, PERMANENTFLAGS). A
    /// message with such a flag is not replaced, because the flag would be lost. A server that does not send
    /// PERMANENTFLAGS can store all flags.
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

pub(super) fn start(content: &[u8]) -> Vec<u8> {
    content.get(..START).unwrap_or(content).to_vec()
}

/// Whether `sent` is the start of the message whose first bytes are `known`.
fn is_start(known: &[u8], sent: &[u8]) -> bool {
    // Fewer than [`START`] known bytes are the whole message, so its length must match, too.
    let is_length = known.len() == START || known.len() == sent.len();
    is_length && sent.starts_with(known)
}

const NO_CONTENT: &str = "the server lists the message, but does not send its content";

/// Separates a refusal, to which [`Machine`] reacts, from a failure that ends the session.
fn answer<T>(done: Result<T, ImapFailure>) -> Result<Result<T, CommandRefusal>, ImapFailure> {
    match done {
        Err(ImapFailure::Refused {
            command,
            code,
            text,
            ..
        }) => Ok(Err(CommandRefusal {
            command,
            code,
            text,
        })),
        // An unreadable response does not show whether the command was executed. It is handled like a refusal, because
        // a refused command may have been executed as well.
        Err(ImapFailure::Unreadable(text)) => Ok(Err(CommandRefusal {
            command: "FETCH",
            code: None,
            text: text.to_string(),
        })),
        done => done.map(Ok),
    }
}

/// Capability of the Gmail extensions.
pub(super) const GMAIL: &str = "X-GM-EXT-1";
