//! Candidates: the messages of OLD without an identical message in NEW. For each message of NEW, the search finds the
//! candidates from which embody made it.
//!
//! A temporary file has a record of each candidate, with its place in OLD, where its content is read again. Content
//! that cannot be read again (from a compressed file or an archive) is copied to the temporary file.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use super::matching::{ProvedPair, matched};
use super::pending::{PendingMessage, PendingMessages};
use super::reading::{LostMessage, MessageResult};
use super::stored::{CandidateRecord, MessageKeys, stored, temporary};
use crate::engine::prove::{Budget, Changes, Proof, Unproven, prove};
use crate::engine::same::{
    CutPlace, Digest, MOST_COMPARED, MailCopy, change_key, copy_key, covers,
};
use crate::error::{Error, unpoisoned};
use crate::mailbox::{MessageFlags, SeenFlags};
use crate::merge::lost_labels;
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
    /// Length of the temporary files, in bytes.
    pub(super) spooled: u64,
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
    /// By digest of a message in both mailboxes: the number of additional copies in NEW. These copies can still be the
    /// results of changes.
    surplus: Mutex<HashMap<Digest, u32>>,
    /// Messages of NEW with more candidates than [`MOST_MATCHED`].
    crowd: PendingMessages,
}

/// Maximum number of candidates with one Message-ID for which all pairs with messages of NEW are tried. If there are
/// more candidates, `crowded` selects the pairs that are tried.
const MOST_MATCHED: usize = 16;

/// A message of NEW that is compared with candidates.
pub(super) struct NewMessage<'n> {
    content: &'n [u8],
    flags: &'n SeenFlags,
    /// `None` if copies are not accepted.
    copy: Option<MailCopy>,
}

/// A candidate that was compared with a message of NEW.
pub(super) struct TriedCandidate {
    candidate: u32,
    /// `None` if embody was not run again.
    proof: Option<Result<Proof, Unproven>>,
    /// Whether the message of NEW is a copy that is at least as complete as the candidate.
    is_copy: bool,
    lost_flags: Vec<String>,
}

impl TriedCandidate {
    /// Returns whether embody made the message of NEW from this candidate, but without some of its flags.
    pub(super) fn lacks_flags(&self) -> bool {
        matches!(self.proof, Some(Ok(_))) && !self.lost_flags.is_empty()
    }
}

/// Result of [`MessageCandidates::place`]: the digest of the message, and its candidates. `None` if nothing was tried.
pub(super) struct PlacedMessage(Option<(Digest, TriedPlaces)>);

enum TriedPlaces {
    Now {
        tried: Vec<TriedCandidate>,
        /// Whether the pairs are selected after all of them are known.
        is_matched: bool,
    },
    /// The message has too many candidates, and is compared after all of NEW was read.
    Later(PendingMessage),
}

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
        let stored = stored(message, &self.file).map_err(temporary)?;
        let copy = self.is_merged.then(|| MailCopy::of(message.plain, &[]));
        let keys = keys_of(message.plain, self.is_merged);
        let place = copy.as_ref().and_then(MailCopy::cut_at);
        let cut = place.map(|place| (copy_key(message.plain), place));
        let record = CandidateRecord::of(message, stored, copy);
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
            crowd: PendingMessages::new()?,
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

    /// Tries the candidates that a message of NEW may replace: the message from which embody made it and, if copies are
    /// accepted, all messages of which it is a copy. Several threads call this function at the same time, so it marks no
    /// candidate as found: [`add`](Self::add) does this in the order of NEW.
    pub(super) fn place(&self, new: &MessageResult<'_>) -> Result<PlacedMessage, Error> {
        let keys = keys_of(new.plain, self.is_merged);
        let candidates = self.with_keys(keys, MOST_MATCHED + 1);
        let tried = if candidates.len() > MOST_MATCHED {
            TriedPlaces::Later(self.crowd.store(keys, new).map_err(temporary)?)
        } else {
            // `add` marks candidates in the order of NEW, so an earlier message was made from this candidate.
            let is_over = |candidate: &u32| !self.is_merged && self.is_complete(*candidate);
            match candidates.as_slice() {
                [] => return Ok(PlacedMessage(None)),
                [one] if is_over(one) => return Ok(PlacedMessage(None)),
                _ => {}
            }
            let message = self.new_message(new.content, new.plain, &new.seen.flags);
            let tried = self.tried(&candidates, &message, candidates.len())?;
            let is_matched = !self.is_merged && candidates.len() > 1;
            TriedPlaces::Now { tried, is_matched }
        };
        Ok(PlacedMessage(Some((new.seen.identity, tried))))
    }

    /// Marks the candidates that a message of NEW replaces. Must be called in the order of NEW; `number` is the position of
    /// the message there.
    pub(super) fn add(&self, number: u64, placed: PlacedMessage) {
        let Some((identity, tried)) = placed.0 else {
            return;
        };
        match tried {
            TriedPlaces::Later(pending) => self.crowd.add(pending.numbered(number)),
            TriedPlaces::Now { tried, is_matched } if is_matched => {
                for tried in tried {
                    match tried.proof {
                        Some(Ok(proof)) => unpoisoned(self.pairs.lock()).push(ProvedPair {
                            number,
                            identity,
                            candidate: tried.candidate,
                            proof,
                            lost_flags: tried.lost_flags,
                        }),
                        Some(Err(why)) => self.note(tried.candidate, number, why),
                        None => {}
                    }
                }
            }
            TriedPlaces::Now { tried, .. } => {
                self.settle(number, &identity, tried);
            }
        }
    }

    /// Returns the candidates with one of the keys in the order of OLD, but at most `most` for each key.
    pub(super) fn with_keys(&self, keys: MessageKeys, most: usize) -> Vec<u32> {
        let keys = keys.into_iter().flatten();
        let mut candidates: Vec<u32> = keys.flat_map(|key| self.with_key(key).take(most)).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    pub(super) fn new_message<'n>(
        &self,
        content: &'n [u8],
        plain: &[u8],
        flags: &'n SeenFlags,
    ) -> NewMessage<'n> {
        let copy = self.is_merged.then(|| {
            let cuts = self.index.cuts.get(&copy_key(plain));
            MailCopy::of(plain, cuts.map_or(&[][..], Vec::as_slice))
        });
        NewMessage {
            content,
            flags,
            copy,
        }
    }

    /// Compares a message of NEW with candidates. For the first `proofs` of them, embody is run again.
    pub(super) fn tried(
        &self,
        candidates: &[u32],
        new: &NewMessage<'_>,
        proofs: usize,
    ) -> Result<Vec<TriedCandidate>, Error> {
        let mut all = Vec::with_capacity(candidates.len());
        let mut copies = Vec::new();
        for (at, &candidate) in candidates.iter().enumerate() {
            let record = self.record(candidate).map_err(temporary)?;
            let mut proof = None;
            // A candidate without content was moved out of OLD or changed during the run, so it cannot be compared.
            if at < proofs
                && let Some(old) = self.content(&record).map_err(temporary)?
            {
                let mut budget = Budget::of(old.len(), new.content.len());
                proof = Some(prove(&old, new.content, &mut budget));
            }
            all.push(TriedCandidate {
                candidate,
                proof,
                is_copy: false,
                lost_flags: lost(&record.flags(), new.flags, self.is_merged),
            });
            copies.push(record.copy);
        }
        let Some(of_new) = &new.copy else {
            return Ok(all);
        };
        // The message of NEW is either a copy itself, or embody made it from a copy.
        let is_proved = |tried: &TriedCandidate| matches!(tried.proof, Some(Ok(_)));
        let proved: Vec<&MailCopy> = all
            .iter()
            .zip(&copies)
            .filter(|(tried, _)| is_proved(tried))
            .filter_map(|(_, copy)| copy.as_ref())
            .collect();
        for (tried, copy) in all.iter_mut().zip(&copies) {
            let Some(copy) = copy else { continue };
            let mut whole = std::iter::once(of_new).chain(proved.iter().copied());
            tried.is_copy = whole.any(|whole| covers(whole, copy).is_ok());
            // `merge` gives the kept copy the labels of all copies.
            if tried.is_copy
                && let Some(old) = self
                    .content(&self.record(tried.candidate).map_err(temporary)?)
                    .map_err(temporary)?
            {
                tried.lost_flags.extend(lost_labels(&old, new.content));
            }
        }
        Ok(all)
    }

    /// Marks the first candidate from which embody made the message of NEW and, if copies are accepted, all candidates of
    /// which it is a copy. Returns the marked candidates.
    pub(super) fn settle(
        &self,
        number: u64,
        identity: &Digest,
        tried: Vec<TriedCandidate>,
    ) -> Vec<u32> {
        let mut claimed = Vec::new();
        let mut is_changed = false;
        let mut copies = Vec::new();
        for tried in tried {
            let candidate = tried.candidate;
            match tried.proof {
                Some(Ok(proof)) if !is_changed => {
                    let found = (CandidateMatch::Changed(proof), tried.lost_flags.clone());
                    is_changed = self.claim(candidate, identity, found);
                    claimed.extend(is_changed.then_some(candidate));
                }
                Some(Err(why)) => self.note(candidate, number, why),
                _ => {}
            }
            if tried.is_copy {
                copies.push((candidate, tried.lost_flags));
            }
        }
        for (candidate, lost_flags) in copies {
            let found = (CandidateMatch::Copied, lost_flags);
            if self.claim(candidate, identity, found) {
                claimed.push(candidate);
            }
        }
        claimed
    }

    /// Records the differences between a message of NEW and candidates, without marking any as found.
    pub(super) fn note_difference(&self, number: u64, tried: Vec<TriedCandidate>) {
        for tried in tried {
            if let Some(Err(why)) = tried.proof {
                self.note(tried.candidate, number, why);
            }
        }
    }

    pub(super) fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// Returns whether OLD has as many messages with this digest as NEW, counting those that were found.
    pub(super) fn is_used_up(&self, identity: &Digest) -> bool {
        unpoisoned(self.surplus.lock()).get(identity) == Some(&0)
    }

    /// Marks a candidate as found. Returns false if it was already found, or if all messages of NEW with this digest
    /// are already used for other candidates. Several messages of NEW can have the flags of a candidate together.
    fn claim(
        &self,
        candidate: u32,
        identity: &Digest,
        (found, lost_flags): (CandidateMatch, Vec<String>),
    ) -> bool {
        let mut surplus = unpoisoned(self.surplus.lock());
        if self.is_found(candidate) {
            self.add_flags(candidate, &lost_flags);
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

    pub(super) fn is_found(&self, candidate: u32) -> bool {
        let entries = unpoisoned(self.entries.lock());
        let entry = entries.get(candidate as usize);
        entry.is_none_or(|entry| entry.result.is_found())
    }

    /// Returns whether the candidate was found with all of its flags.
    fn is_complete(&self, candidate: u32) -> bool {
        let entries = unpoisoned(self.entries.lock());
        let entry = entries.get(candidate as usize);
        entry.is_none_or(|entry| matches!(entry.result, CandidateState::Found))
    }

    /// Removes the flags that another message of NEW has from the lost ones. It lacks `lost_flags`.
    fn add_flags(&self, candidate: u32, lost_flags: &[String]) {
        let mut entries = unpoisoned(self.entries.lock());
        if let Some(entry) = entries.get_mut(candidate as usize)
            && let CandidateState::WithoutFlags(lost) = &mut entry.result
        {
            lost.0.retain(|flag| lost_flags.contains(flag));
            if lost.0.is_empty() {
                entry.result = CandidateState::Found;
            }
        }
    }

    /// Returns whether no message of NEW was compared with this candidate yet.
    pub(super) fn is_untried(&self, candidate: u32) -> bool {
        let entries = unpoisoned(self.entries.lock());
        let entry = entries.get(candidate as usize);
        entry.is_some_and(|entry| matches!(entry.result, CandidateState::Nothing))
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

    pub(super) fn record(&self, candidate: u32) -> io::Result<CandidateRecord> {
        let at = {
            let entries = unpoisoned(self.entries.lock());
            entries.get(candidate as usize).map_or(0, |entry| entry.at)
        };
        self.file.value(at)
    }

    /// Reads the content of a candidate again. Returns `None` if the message was moved or changed since.
    pub(super) fn content(&self, record: &CandidateRecord) -> io::Result<Option<Vec<u8>>> {
        record.content(&self.file)
    }

    /// Returns the messages of NEW with too many candidates, and the temporary file with their records.
    pub(super) fn take_pending(&mut self) -> Result<(Vec<PendingMessage>, Spool), Error> {
        let crowd = std::mem::replace(&mut self.crowd, PendingMessages::new()?);
        self.spooled += crowd.length();
        crowd.finish()
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
        let mut counts = *unpoisoned(self.found.get_mut());
        counts.spooled = self.spooled;
        Ok(counts)
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

fn keys_of(plain: &[u8], is_merged: bool) -> MessageKeys {
    let change = change_key(plain).half();
    let copy = is_merged.then(|| copy_key(plain).half());
    [Some(change), copy.filter(|copy| *copy != change)]
}

/// Returns the flags and keywords that `new` lacks, in words. If one of the formats cannot store flags, only flags in header
/// fields can be lost. In a merged mailbox, a missing "deleted" flag is not lost, because `merge` keeps this flag only if all
/// copies have it, and neither are marks of threads, because `merge` keeps those of one copy.
pub(super) fn lost(old: &SeenFlags, new: &SeenFlags, is_merged: bool) -> Vec<String> {
    let mut lost = match (&old.stored, &new.stored) {
        (Some(old), Some(new)) => old.missing_in(new),
        _ => Vec::new(),
    };
    if !old.fields.is_empty() {
        let none = MessageFlags::default();
        let all = new.stored.as_ref().unwrap_or(&none).clone();
        let mut more = old.fields.missing_in(&all.with(&new.fields));
        more.retain(|flag| !lost.contains(flag));
        lost.extend(more);
    }
    lost.retain(|flag| !(is_merged && (flag == "flag deleted" || flag.starts_with("mark "))));
    lost
}
