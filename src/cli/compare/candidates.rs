//! The messages of OLD for which NEW has no identical message, and the search for what embody made of them.
//!
//! A temporary file has a record of each message: its place in OLD, where its content is read again. Content that cannot be
//! read again, because it is compressed or in an archive, is in the temporary file too.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::reading::{LostMessage, MessageResult};
use crate::engine::prove::{Budget, Proof, Unproven, prove};
use crate::engine::same::{
    CutPlace, Digest, MOST_COMPARED, MailCopy, change_key, copy_key, covers, identity, plain,
};
use crate::error::{Error, unpoisoned};
use crate::mailbox::{Flags, Keywords, MessageFlags};

/// A message of OLD without an identical message in NEW, as it is stored in the temporary file.
#[derive(Serialize, Deserialize)]
struct Record {
    named: LostMessage,
    stored: StoredMessage,
    flags: Option<(u8, Vec<String>)>,
    /// The description with which copies of the mail are recognised, if the command accepts them.
    copy: Option<MailCopy>,
}

impl Record {
    fn flags(&self) -> Option<MessageFlags> {
        let (flags, keywords) = self.flags.as_ref()?;
        let keywords = Keywords::of_names(keywords.iter().map(String::as_str));
        Some(MessageFlags::new(Flags::of_byte(*flags), keywords))
    }
}

/// The content of a message.
#[derive(Serialize, Deserialize)]
enum StoredMessage {
    File { path: PathBuf, at: u64, length: u64 },
    Spooled { at: u64, length: u64 },
}

/// State of a message of OLD.
struct CandidateEntry {
    identity: Digest,
    /// Position of the record in the temporary file.
    at: u64,
    result: CandidateMatch,
}

/// The result of the search for one message.
#[derive(Clone)]
pub(super) enum CandidateMatch {
    /// NEW has no message with this Message-ID.
    Nothing,
    /// NEW has messages with this Message-ID, but embody did not make them. The value is the reason for the first one.
    Altered(u64, Unproven),
    Changed {
        proof: Proof,
        /// Flags and keywords that the message in NEW lacks, in words.
        lost_flags: Vec<String>,
    },
    /// A copy of the mail is in NEW, with these lost flags.
    Merged { lost_flags: Vec<String> },
}

/// A message of OLD with the result of the search for it.
pub(super) struct CandidateOutcome {
    pub(super) named: LostMessage,
    pub(super) found: CandidateMatch,
}

/// Messages of OLD for which NEW has no identical message. Several threads search in it.
pub(super) struct MessageCandidates {
    entries: Mutex<Vec<CandidateEntry>>,
    by_key: HashMap<Digest, Vec<u32>>,
    file: Mutex<Spool>,
    is_merged: bool,
    /// Number of messages of NEW with one digest that may still be the result of a change, if OLD has identical messages, too.
    surplus: Mutex<HashMap<Digest, u32>>,
    /// Positions at which truncated copies in OLD end, by their key.
    cuts: HashMap<Digest, Vec<CutPlace>>,
}

struct Spool {
    writer: BufWriter<File>,
    end: u64,
}

impl Spool {
    fn push(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.end;
        self.writer.write_all(bytes)?;
        self.end += bytes.len() as u64;
        Ok(at)
    }

    fn read(&mut self, at: u64, length: u64) -> io::Result<Vec<u8>> {
        self.writer.flush()?;
        read_at(self.writer.get_mut(), at, length)
    }
}

fn read_at(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl MessageCandidates {
    /// `surplus` contains the messages of NEW of which OLD has fewer identical messages.
    pub(super) fn new(is_merged: bool, surplus: HashMap<Digest, u32>) -> Result<Self, Error> {
        let file = tempfile::tempfile().map_err(temporary)?;
        Ok(Self {
            entries: Mutex::default(),
            by_key: HashMap::new(),
            file: Mutex::new(Spool {
                writer: BufWriter::new(file),
                end: 0,
            }),
            is_merged,
            surplus: Mutex::new(surplus),
            cuts: HashMap::new(),
        })
    }

    /// Stores a message of OLD, and returns what [`MessageCandidates::add`] needs.
    pub(super) fn store(&self, message: &MessageResult<'_>) -> Result<AddedMessage, Error> {
        let length = message.content.len() as u64;
        let stored = match message.at {
            Some(at) => StoredMessage::File {
                path: PathBuf::from(&message.named.source),
                at,
                length,
            },
            None => {
                let mut file = unpoisoned(self.file.lock());
                StoredMessage::Spooled {
                    at: file.push(message.content).map_err(temporary)?,
                    length,
                }
            }
        };
        let copy = self.is_merged.then(|| MailCopy::of(message.plain, &[]));
        let keys = keys_of(message.plain, self.is_merged);
        let cut = copy.as_ref().and_then(MailCopy::cut_at);
        let record = Record {
            named: message.named.clone(),
            stored,
            flags: message.seen.flags.as_ref().map(|flags| {
                let keywords = flags.keywords.names().map(str::to_owned);
                (flags.system.to_byte(), keywords.collect())
            }),
            copy,
        };
        let bytes = serde_json::to_vec(&record).map_err(|error| temporary(error.into()))?;
        let mut file = unpoisoned(self.file.lock());
        let at = file
            .push(&(bytes.len() as u64).to_be_bytes())
            .map_err(temporary)?;
        file.push(&bytes).map_err(temporary)?;
        Ok(AddedMessage { at, keys, cut })
    }

    /// Adds a message that was [stored](Candidates::store), in the order of OLD.
    pub(super) fn add(&mut self, identity: Digest, added: AddedMessage) {
        let entries = unpoisoned(self.entries.get_mut());
        let Ok(number) = u32::try_from(entries.len()) else {
            return;
        };
        if let (Some(place), Some(key)) = (added.cut, added.keys.last()) {
            let places = self.cuts.entry(*key).or_default();
            places.extend(Some(place).filter(|_| places.len() < MOST_COMPARED));
        }
        for key in added.keys {
            self.by_key.entry(key).or_default().push(number);
        }
        entries.push(CandidateEntry {
            identity,
            at: added.at,
            result: CandidateMatch::Nothing,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns true if NEW has more messages with this digest than OLD.
    pub(super) fn has_surplus(&self, identity: &Digest) -> bool {
        unpoisoned(self.surplus.lock()).contains_key(identity)
    }

    /// Finds the messages of OLD that a message of NEW replaces: the message from which embody made it, and, if copies are
    /// accepted, all messages of which it is a copy. `number` is the position of the message in NEW.
    pub(super) fn place(&self, number: u64, new: &MessageResult<'_>) -> Result<(), Error> {
        let keys = keys_of(new.plain, self.is_merged);
        let mut candidates: Vec<u32> = Vec::new();
        for key in &keys {
            candidates.extend(self.by_key.get(key).into_iter().flatten());
        }
        candidates.sort_unstable();
        candidates.dedup();
        if candidates.is_empty() {
            return Ok(());
        }
        if !self.is_merged && self.is_used_up(&new.seen.identity) {
            return Ok(());
        }
        let mut proved_copy = None;
        for candidate in self.open(&candidates) {
            let record = self.record(candidate).map_err(temporary)?;
            // A message that left OLD during the run, or was changed, has no result.
            let Some(old) = self.content(candidate, &record.stored).map_err(temporary)? else {
                continue;
            };
            let mut budget = Budget::of(old.len(), new.content.len());
            match prove(&old, new.content, &mut budget) {
                Ok(proof) => {
                    let lost_flags = lost(&record.flags(), &new.seen.flags, self.is_merged);
                    if self.claim(
                        candidate,
                        &new.seen.identity,
                        CandidateMatch::Changed { proof, lost_flags },
                    ) {
                        proved_copy = record.copy;
                        break;
                    }
                }
                Err(why) => self.note(candidate, number, why),
            }
        }
        if self.is_merged {
            self.place_copies(&candidates, new, proved_copy.as_ref())?;
        }
        Ok(())
    }

    fn place_copies(
        &self,
        candidates: &[u32],
        new: &MessageResult<'_>,
        proved: Option<&MailCopy>,
    ) -> Result<(), Error> {
        let cuts = self.cuts.get(&copy_key(new.plain));
        let places = cuts.map_or(&[][..], Vec::as_slice);
        let of_new = MailCopy::of(new.plain, places);
        for candidate in self.open(candidates) {
            let record = self.record(candidate).map_err(temporary)?;
            let Some(copy) = &record.copy else { continue };
            // The message of NEW is a copy, or embody made it from a copy.
            let is_of_proved = || proved.is_some_and(|proved| covers(proved, copy).is_ok());
            if covers(&of_new, copy).is_ok() || is_of_proved() {
                let lost_flags = lost(&record.flags(), &new.seen.flags, true);
                self.claim(
                    candidate,
                    &new.seen.identity,
                    CandidateMatch::Merged { lost_flags },
                );
            }
        }
        Ok(())
    }

    /// Returns the candidates without a result, at most [`MOST_COMPARED`]. Otherwise the time would grow with the square of
    /// their number if a million messages have the same Message-ID.
    fn open(&self, candidates: &[u32]) -> Vec<u32> {
        let entries = unpoisoned(self.entries.lock());
        let is_open = |number: &&u32| {
            let entry = entries.get(**number as usize);
            entry.is_some_and(|entry| !entry.result.is_found())
        };
        let open = candidates.iter().filter(is_open);
        open.take(MOST_COMPARED).copied().collect()
    }

    fn is_used_up(&self, identity: &Digest) -> bool {
        unpoisoned(self.surplus.lock()).get(identity) == Some(&0)
    }

    /// Sets the result for a message of OLD. Returns false if it has one already, or if all messages of NEW with this digest
    /// are already the results of other messages.
    fn claim(&self, candidate: u32, identity: &Digest, found: CandidateMatch) -> bool {
        let mut surplus = unpoisoned(self.surplus.lock());
        let mut entries = unpoisoned(self.entries.lock());
        let Some(entry) = entries.get_mut(candidate as usize) else {
            return false;
        };
        if entry.result.is_found() {
            return false;
        }
        if let Some(left) = surplus.get_mut(identity)
            && !self.is_merged
        {
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => return false,
            }
        }
        entry.result = found;
        true
    }

    /// Records why a message of NEW was not made from a message of OLD. Of several reasons, the one for the first message of
    /// NEW is kept.
    fn note(&self, candidate: u32, number: u64, why: Unproven) {
        let mut entries = unpoisoned(self.entries.lock());
        let Some(entry) = entries.get_mut(candidate as usize) else {
            return;
        };
        let is_earlier = match &entry.result {
            CandidateMatch::Nothing => true,
            CandidateMatch::Altered(of, _) => number < *of,
            CandidateMatch::Changed { .. } | CandidateMatch::Merged { .. } => false,
        };
        if is_earlier {
            entry.result = CandidateMatch::Altered(number, why);
        }
    }

    fn record(&self, candidate: u32) -> io::Result<Record> {
        let at = {
            let entries = unpoisoned(self.entries.lock());
            entries.get(candidate as usize).map_or(0, |entry| entry.at)
        };
        let mut file = unpoisoned(self.file.lock());
        let length = file.read(at, 8)?.try_into().unwrap_or_default();
        let bytes = file.read(at + 8, u64::from_be_bytes(length))?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Reads a message of OLD again. Returns `None` if it is not there any more, or has changed.
    fn content(&self, candidate: u32, stored: &StoredMessage) -> io::Result<Option<Vec<u8>>> {
        let content = match stored {
            StoredMessage::Spooled { at, length } => {
                return unpoisoned(self.file.lock()).read(*at, *length).map(Some);
            }
            StoredMessage::File { path, at, length } => {
                let read = File::open(path).and_then(|mut file| read_at(&mut file, *at, *length));
                match read {
                    Ok(content) => content,
                    Err(_) => return Ok(None),
                }
            }
        };
        let entries = unpoisoned(self.entries.lock());
        let known = entries.get(candidate as usize).map(|entry| entry.identity);
        drop(entries);
        let is_same = known == Some(identity(&plain(&content)));
        Ok(is_same.then_some(content))
    }

    /// Returns the results, in the order of OLD.
    pub(super) fn results(self) -> Result<Vec<CandidateOutcome>, Error> {
        let count = unpoisoned(self.entries.lock()).len();
        let mut results = Vec::new();
        for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            let found = {
                let entries = unpoisoned(self.entries.lock());
                entries
                    .get(number as usize)
                    .map(|entry| entry.result.clone())
            };
            let Some(found) = found else { continue };
            let named = self.record(number).map_err(temporary)?.named;
            results.push(CandidateOutcome { named, found });
        }
        Ok(results)
    }
}

impl CandidateMatch {
    fn is_found(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::Merged { .. })
    }
}

/// A message that was stored, with the keys by which it is found.
pub(super) struct AddedMessage {
    at: u64,
    /// The key for changes, and the key for copies, if they are accepted and it is another one.
    keys: Vec<Digest>,
    cut: Option<CutPlace>,
}

fn keys_of(plain: &[u8], is_merged: bool) -> Vec<Digest> {
    let mut keys = vec![change_key(plain)];
    let of_copies = is_merged.then(|| copy_key(plain));
    keys.extend(of_copies.filter(|key| !keys.contains(key)));
    keys
}

/// Returns the flags and keywords that `new` lacks, in words. Nothing is lost if one of the formats cannot store flags. A copy
/// that `merge` keeps is marked as deleted only if all copies are.
pub(super) fn lost(
    old: &Option<MessageFlags>,
    new: &Option<MessageFlags>,
    is_merged: bool,
) -> Vec<String> {
    let (Some(old), Some(new)) = (old, new) else {
        return Vec::new();
    };
    let mut lost = old.missing_in(new);
    lost.retain(|flag| !(is_merged && flag == "flag deleted"));
    lost
}

pub(super) fn temporary(error: io::Error) -> Error {
    Error::cannot_write("a temporary file")(error)
}
