//! Candidates: the messages of OLD without an identical message in NEW. For each message of NEW, the search finds the
//! candidates from which embody made it.
//!
//! A temporary file has a record of each candidate, with its place in OLD, where its content is read again. Content
//! that cannot be read again (from a compressed file or an archive) is copied to the temporary file.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use super::matching::{ProvedPair, matched};
use super::reading::{LostMessage, MessageResult};
use super::stored::{CandidateRecord, StoredMessage, read_at};
use crate::engine::prove::{Budget, Changes, Proof, Unproven, prove};
use crate::engine::same::{
    CutPlace, Digest, MOST_COMPARED, MailCopy, change_key, copy_key, covers, identity, plain,
};
use crate::error::{Error, unpoisoned};
use crate::mailbox::MessageFlags;
use crate::spool::{Spool, SpoolWriter};

/// State of a candidate. There can be millions of candidates, so rare data are boxed to keep the entry small.
struct CandidateEntry {
    /// Offset of the candidate's record in the temporary file.
    at: u64,
    result: CandidateState,
}

enum CandidateState {
    /// NEW has no message with this Message-ID.
    Nothing,
    /// NEW has messages with this Message-ID, but embody did not make them from this message. The value is the first
    /// such message of NEW, by number, and the reason.
    Altered(Box<(u64, Unproven)>),
    /// The message is in NEW.
    Found,
    /// The message is in NEW, but lacks some flags and keywords.
    WithoutFlags(Box<LostFlags>),
}

/// Missing flags and keywords, each described in words.
struct LostFlags(Vec<String>);

/// How a message of OLD was found in NEW although it is not identical: changed by embody, or merged into a copy.
enum CandidateMatch {
    Changed(Proof),
    Copied,
}

/// Counts of the candidates that were found in NEW.
#[derive(Clone, Copy, Default)]
pub(super) struct FoundCounts {
    pub(super) changed: u64,
    pub(super) changes: Changes,
    /// Number of contents in NEW that came from outside of OLD, such as from a server, so that OLD cannot prove them.
    pub(super) unchecked: usize,
}

/// Reason why a message of OLD counts as lost: it is missing in NEW, was altered, or lacks flags.
pub(super) enum CandidateLoss {
    Missing,
    Altered(Unproven),
    Flags(Vec<String>),
}

/// Writes candidates to the temporary file. It is shared by several threads.
pub(super) struct CandidateWriter {
    file: Mutex<SpoolWriter>,
    is_merged: bool,
}

/// Collects the candidates in the order of OLD.
pub(super) struct CandidateCollector {
    entries: Vec<CandidateEntry>,
    index: CandidateIndex,
}

/// All candidates, ready to be searched by several threads.
pub(super) struct MessageCandidates {
    entries: Mutex<Vec<CandidateEntry>>,
    index: CandidateIndex,
    found: Mutex<FoundCounts>,
    file: Spool,
    /// Length of `file`, in bytes.
    spooled: u64,
    /// Proved pairs of an OLD and a NEW message. A NEW message can be in pairs with several messages of OLD, so the
    /// final pairs are selected at the end.
    pairs: Mutex<Vec<ProvedPair>>,
    is_merged: bool,
    /// By digest: number of messages of NEW that OLD has identical copies of, but fewer. The surplus messages can still
    /// be the results of changes.
    surplus: Mutex<HashMap<Digest, u32>>,
}

/// Maximum number of candidates with one Message-ID for which all pairs with messages of NEW are tried. If there are
/// more candidates, the first proved pair is used.
const MOST_MATCHED: usize = 16;

/// Index of the candidates by key.
#[derive(Default)]
struct CandidateIndex {
    /// Key and number of each candidate, sorted by key.
    keys: Vec<(u64, u32)>,
    /// By key: the positions at which truncated copies in OLD end.
    cuts: HashMap<Digest, Vec<CutPlace>>,
}

impl CandidateWriter {
    pub(super) fn new(is_merged: bool) -> Result<Self, Error> {
        Ok(Self {
            file: Mutex::new(SpoolWriter::temporary().map_err(temporary)?),
            is_merged,
        })
    }

    /// Stores a message of OLD as a candidate, and returns its entry for [`CandidateCollector::add`].
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
        let place = copy.as_ref().and_then(MailCopy::cut_at);
        let cut = place.map(|place| (copy_key(message.plain), place));
        let record = CandidateRecord {
            identity: message.seen.identity,
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
        let at = file.push_block(&bytes).map_err(temporary)?;
        Ok(AddedMessage { at, keys, cut })
    }
}

impl CandidateCollector {
    /// Creates a collector with memory for `count` messages.
    pub(super) fn new(count: usize) -> Self {
        Self {
            entries: Vec::with_capacity(count),
            index: CandidateIndex {
                keys: Vec::with_capacity(count),
                ..CandidateIndex::default()
            },
        }
    }

    /// Adds a [stored](CandidateWriter::store) message. Messages must be added in the order of OLD.
    pub(super) fn add(&mut self, message: AddedMessage) {
        let Ok(number) = u32::try_from(self.entries.len()) else {
            return;
        };
        if let Some((key, place)) = message.cut {
            let places = self.index.cuts.entry(key).or_default();
            places.extend(Some(place).filter(|_| places.len() < MOST_COMPARED));
        }
        let keys = message.keys.into_iter().flatten();
        self.index.keys.extend(keys.map(|key| (key, number)));
        self.entries.push(CandidateEntry {
            at: message.at,
            result: CandidateState::Nothing,
        });
    }

    /// Prepares the search after all candidates were added. `surplus` is the number of messages of NEW in excess of the
    /// identical messages of OLD, by digest.
    pub(super) fn finish(
        mut self,
        writer: CandidateWriter,
        surplus: HashMap<Digest, u32>,
    ) -> Result<MessageCandidates, Error> {
        self.index.keys.sort_unstable();
        let file = unpoisoned(writer.file.into_inner());
        Ok(MessageCandidates {
            entries: Mutex::new(self.entries),
            index: self.index,
            found: Mutex::default(),
            spooled: file.end(),
            file: file.finish().map_err(temporary)?,
            pairs: Mutex::default(),
            is_merged: writer.is_merged,
            surplus: Mutex::new(surplus),
        })
    }
}

impl MessageCandidates {
    pub(super) fn is_empty(&self) -> bool {
        self.index.keys.is_empty()
    }

    fn with_key(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let start = self.index.keys.partition_point(|(known, _)| *known < key);
        let from = self.index.keys.get(start..).unwrap_or_default().iter();
        from.take_while(move |(known, _)| *known == key)
            .map(|(_, number)| *number)
    }

    /// Returns whether OLD has identical messages with this digest, but fewer than NEW.
    pub(super) fn has_surplus(&self, identity: &Digest) -> bool {
        unpoisoned(self.surplus.lock()).contains_key(identity)
    }

    /// Finds the candidates that a message of NEW replaces: the message from which embody made it and, if copies are
    /// accepted, all messages of which it is a copy. `number` is the position of the message in NEW.
    pub(super) fn place(&self, number: u64, new: &MessageResult<'_>) -> Result<(), Error> {
        let keys = keys_of(new.plain, self.is_merged);
        let mut candidates: Vec<u32> = Vec::new();
        for key in keys.into_iter().flatten() {
            candidates.extend(self.with_key(key));
        }
        candidates.sort_unstable();
        candidates.dedup();
        if candidates.is_empty() {
            return Ok(());
        }
        if !self.is_merged && self.is_used_up(&new.seen.identity) {
            return Ok(());
        }
        let is_matched = !self.is_merged && (2..=MOST_MATCHED).contains(&candidates.len());
        let mut proved_copy = None;
        for candidate in self.open(&candidates) {
            let record = self.record(candidate).map_err(temporary)?;
            // The message was moved out of OLD or changed during the run, so it cannot be compared.
            let Some(old) = self.content(&record).map_err(temporary)? else {
                continue;
            };
            let mut budget = Budget::of(old.len(), new.content.len());
            match prove(&old, new.content, &mut budget) {
                Ok(proof) if is_matched => {
                    let pair = ProvedPair {
                        number,
                        identity: new.seen.identity,
                        candidate,
                        proof,
                        lost_flags: lost(&record.flags(), &new.seen.flags, false),
                    };
                    unpoisoned(self.pairs.lock()).push(pair);
                }
                Ok(proof) => {
                    let lost_flags = lost(&record.flags(), &new.seen.flags, self.is_merged);
                    let found = (CandidateMatch::Changed(proof), lost_flags);
                    if self.claim(candidate, &new.seen.identity, found) {
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
        let cuts = self.index.cuts.get(&copy_key(new.plain));
        let places = cuts.map_or(&[][..], Vec::as_slice);
        let of_new = MailCopy::of(new.plain, places);
        for candidate in self.open(candidates) {
            let record = self.record(candidate).map_err(temporary)?;
            let Some(copy) = &record.copy else { continue };
            // The message of NEW is either a copy itself, or embody made it from a copy.
            let is_of_proved = || proved.is_some_and(|proved| covers(proved, copy).is_ok());
            if covers(&of_new, copy).is_ok() || is_of_proved() {
                let lost_flags = lost(&record.flags(), &new.seen.flags, true);
                let found = (CandidateMatch::Copied, lost_flags);
                self.claim(candidate, &new.seen.identity, found);
            }
        }
        Ok(())
    }

    /// Returns the candidates that were not found yet, but at most [`MOST_COMPARED`]. Without this limit, a million
    /// messages with the same Message-ID would take quadratic time.
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

    /// Marks a candidate as found. Returns false if it was already found, or if all messages of NEW with this digest
    /// are already used for other candidates.
    fn claim(
        &self,
        candidate: u32,
        identity: &Digest,
        (found, lost_flags): (CandidateMatch, Vec<String>),
    ) -> bool {
        let mut surplus = unpoisoned(self.surplus.lock());
        if self.is_found(candidate) {
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
        self.set(candidate, (found, lost_flags));
        true
    }

    fn is_found(&self, candidate: u32) -> bool {
        let entries = unpoisoned(self.entries.lock());
        let entry = entries.get(candidate as usize);
        entry.is_none_or(|entry| entry.result.is_found())
    }

    /// Marks a candidate as found, and counts it.
    fn set(&self, candidate: u32, (found, lost_flags): (CandidateMatch, Vec<String>)) {
        let mut entries = unpoisoned(self.entries.lock());
        let Some(entry) = entries.get_mut(candidate as usize) else {
            return;
        };
        entry.result = if lost_flags.is_empty() {
            CandidateState::Found
        } else {
            CandidateState::WithoutFlags(Box::new(LostFlags(lost_flags)))
        };
        let mut counts = unpoisoned(self.found.lock());
        counts.changed += 1;
        match found {
            CandidateMatch::Changed(proof) => {
                counts.changes.add(proof.changes);
                counts.unchecked += proof.unchecked;
            }
            CandidateMatch::Copied => counts.changes.merged += 1,
        }
    }

    /// Records why a message of NEW was not made from this candidate. If there are several reasons, the one of the
    /// first message of NEW is kept.
    fn note(&self, candidate: u32, number: u64, why: Unproven) {
        let mut entries = unpoisoned(self.entries.lock());
        let Some(entry) = entries.get_mut(candidate as usize) else {
            return;
        };
        let is_earlier = match &entry.result {
            CandidateState::Nothing => true,
            CandidateState::Altered(known) => number < known.0,
            CandidateState::Found | CandidateState::WithoutFlags(_) => false,
        };
        if is_earlier {
            entry.result = CandidateState::Altered(Box::new((number, why)));
        }
    }

    fn record(&self, candidate: u32) -> io::Result<CandidateRecord> {
        let at = {
            let entries = unpoisoned(self.entries.lock());
            entries.get(candidate as usize).map_or(0, |entry| entry.at)
        };
        self.file.value(at)
    }

    /// Reads the content of a candidate again. Returns `None` if the message was moved or changed since.
    fn content(&self, record: &CandidateRecord) -> io::Result<Option<Vec<u8>>> {
        let content = match &record.stored {
            StoredMessage::Spooled { at, length } => {
                return self.file.read(*at, *length).map(Some);
            }
            StoredMessage::File { path, at, length } => match read_at(path, *at, *length) {
                Ok(content) => content,
                Err(_) => return Ok(None),
            },
        };
        let is_same = record.identity == identity(&plain(&content));
        Ok(is_same.then_some(content))
    }

    /// Calls `lose` for each candidate that was not found completely, in the order of OLD, and returns the counts of
    /// the found ones.
    pub(super) fn results(
        mut self,
        mut lose: impl FnMut(LostMessage, CandidateLoss),
    ) -> Result<FoundCounts, Error> {
        let pairs = std::mem::take(unpoisoned(self.pairs.get_mut()));
        for pair in matched(pairs, unpoisoned(self.surplus.get_mut())) {
            let found = (CandidateMatch::Changed(pair.proof), pair.lost_flags);
            self.set(pair.candidate, found);
        }
        let entries = std::mem::take(unpoisoned(self.entries.get_mut()));
        for entry in entries {
            let loss = match entry.result {
                CandidateState::Nothing => CandidateLoss::Missing,
                CandidateState::Altered(why) => CandidateLoss::Altered(why.1),
                CandidateState::Found => continue,
                CandidateState::WithoutFlags(flags) => CandidateLoss::Flags(flags.0),
            };
            let record: CandidateRecord = self.file.value(entry.at).map_err(temporary)?;
            lose(record.named, loss);
        }
        Ok(*unpoisoned(self.found.get_mut()))
    }

    /// Returns the length of the temporary file, in bytes.
    pub(super) fn spooled(&self) -> u64 {
        self.spooled
    }
}

impl CandidateState {
    fn is_found(&self) -> bool {
        matches!(self, Self::Found | Self::WithoutFlags(_))
    }
}

/// Index entry of a stored candidate: its record and its keys.
pub(super) struct AddedMessage {
    at: u64,
    keys: MessageKeys,
    cut: Option<(Digest, CutPlace)>,
}

/// Key for changes and key for copies. The second is `None` if copies are not accepted or if both keys are equal. Keys
/// are half digests: a collision only causes a needless comparison.
type MessageKeys = [Option<u64>; 2];

fn keys_of(plain: &[u8], is_merged: bool) -> MessageKeys {
    let change = change_key(plain).half();
    let copy = is_merged.then(|| copy_key(plain).half());
    [Some(change), copy.filter(|copy| *copy != change)]
}

/// Returns the flags and keywords that `new` lacks, in words. If one of the formats cannot store flags, nothing counts
/// as lost. In a merged mailbox, a missing "deleted" flag is not lost, because `merge` keeps this flag only if all
/// copies have it.
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

fn temporary(error: io::Error) -> Error {
    Error::cannot_write("a temporary file")(error)
}
