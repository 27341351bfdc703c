//! Messages of NEW with many candidates: more messages of OLD have the same Message-ID than can all be compared with each
//! other.
//!
//! The messages are compared after all of NEW was read, in the order of NEW, so that the result does not depend on the order
//! in which threads finish. Each message is compared with a few candidates only, so the time is linear: those with the same
//! distinctive lines, and those at the corresponding position in OLD. Messages usually keep their order, so candidates are
//! looked for after the last message that was found, and once more from the end for the messages that are left.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::candidates::{MessageCandidates, TriedCandidate};
use super::pending::PendingMessage;
use super::stored::{CandidateRecord, MessageKeys, temporary};
use crate::engine::same::{MOST_COMPARED, plain};
use crate::error::Error;
use crate::spool::Spool;

/// Maximum number of candidates from which embody is run again for one message of NEW, in each direction.
const MOST_PROVED: usize = 8;

/// Maximum number of candidates that are selected by their lines.
const MOST_ALIKE: usize = 3;

/// Maximum number of candidates that are selected because of the number of messages since the last one that was found.
const MOST_EXPECTED: usize = 2;

/// Maximum number of distinctive pieces of text that are stored for one message of OLD, and for all messages with one key.
const MOST_PIECES: (usize, usize) = (32, 1 << 20);

/// Compares the messages of NEW that were stored because they have too many candidates. Must be called after all other
/// messages of NEW were added.
pub(super) fn compare_crowded(candidates: &mut MessageCandidates) -> Result<(), Error> {
    let (pending, file) = candidates.take_pending()?;
    let mut by_keys: BTreeMap<MessageKeys, Vec<PendingMessage>> = BTreeMap::new();
    for message in pending {
        by_keys.entry(message.keys).or_default().push(message);
    }
    for (keys, messages) in by_keys {
        let mut crowd = CrowdedKey::of(candidates, &file, keys)?;
        let last = messages.last().copied();
        let forward = crowd.pair(messages, SearchOrder::Forward)?;
        let left = crowd.pair(forward, SearchOrder::Backward)?;
        crowd.name_rest(&left, last)?;
    }
    Ok(())
}

/// Order in which messages of NEW, and positions in OLD, are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchOrder {
    Forward,
    Backward,
}

/// The candidates with one key, such as a Message-ID.
struct CrowdedKey<'c> {
    candidates: &'c MessageCandidates,
    /// Temporary file with the records of the messages of NEW.
    file: &'c Spool,
    /// Numbers of the candidates, in the order of OLD.
    olds: Vec<u32>,
    /// Positions in `olds` of the candidates that were not found yet.
    open: BTreeSet<usize>,
    pieces: DistinctPieces,
}

impl<'c> CrowdedKey<'c> {
    fn of(
        candidates: &'c MessageCandidates,
        file: &'c Spool,
        keys: MessageKeys,
    ) -> Result<Self, Error> {
        let mut olds = candidates.with_keys(keys, usize::MAX);
        olds.retain(|candidate| !candidates.is_found(*candidate));
        let mut pieces = DistinctPieces::default();
        for (position, candidate) in olds.iter().enumerate() {
            let record = candidates.record(*candidate).map_err(temporary)?;
            if let Some(content) = candidates.content(&record).map_err(temporary)? {
                pieces.add(position, &plain(&content));
            }
        }
        Ok(Self {
            candidates,
            file,
            open: (0..olds.len()).collect(),
            olds,
            pieces,
        })
    }

    /// Looks for the candidates that messages of NEW replace. Returns the messages that replace none, in the order of NEW.
    fn pair(
        &mut self,
        mut messages: Vec<PendingMessage>,
        order: SearchOrder,
    ) -> Result<Vec<PendingMessage>, Error> {
        if order == SearchOrder::Backward {
            messages.reverse();
        }
        let mut left = Vec::new();
        let mut next = self.start(order);
        // Number of messages of NEW since the last one that was found.
        let mut since = 0;
        for message in messages {
            let replaced = self.place(message, (next, since), order)?;
            match replaced {
                Some(at) if order == SearchOrder::Forward => next = at + 1,
                Some(at) => next = at.saturating_sub(1),
                None => left.push(message),
            }
            since = replaced.map_or(since + 1, |_| 0);
        }
        if order == SearchOrder::Backward {
            left.reverse();
        }
        Ok(left)
    }

    /// Looks for the candidates that one message of NEW replaces. Returns the position of the first one.
    fn place(
        &mut self,
        message: PendingMessage,
        (next, since): (usize, usize),
        order: SearchOrder,
    ) -> Result<Option<usize>, Error> {
        if self.open.is_empty() {
            return Ok(None);
        }
        let record: CandidateRecord = self.file.value(message.at).map_err(temporary)?;
        let is_merged = self.candidates.is_merged();
        if !is_merged && self.candidates.is_used_up(&record.identity) {
            return Ok(None);
        }
        // The message was moved out of NEW or changed during the run, so it cannot be compared.
        let Some(content) = record.content(self.file).map_err(temporary)? else {
            return Ok(None);
        };
        let (plain, flags) = (plain(&content), record.flags());
        let new = self.candidates.new_message(&content, &plain, &flags);
        let places = self.places(&plain, (next, since), order);
        let numbers: Vec<u32> = places
            .iter()
            .filter_map(|at| self.olds.get(*at).copied())
            .collect();
        // With copies, one message can replace several candidates.
        let at_once = if is_merged { MOST_COMPARED } else { 1 };
        let mut without_flags = None;
        for numbers in numbers.chunks(at_once) {
            let tried = self.candidates.tried(numbers, &new, MOST_PROVED)?;
            // Another candidate with the same text can have the flags of this message.
            if !is_merged && tried.iter().any(TriedCandidate::lacks_flags) {
                without_flags = without_flags.or(Some(tried));
                continue;
            }
            let place = self.settle(&message, &record, tried);
            if place.is_some() {
                return Ok(place);
            }
        }
        Ok(without_flags.and_then(|tried| self.settle(&message, &record, tried)))
    }

    /// Marks the candidates that a message of NEW replaces, and returns the position of the first one.
    fn settle(
        &mut self,
        message: &PendingMessage,
        record: &CandidateRecord,
        tried: Vec<TriedCandidate>,
    ) -> Option<usize> {
        let claimed = self
            .candidates
            .settle(message.number, &record.identity, tried);
        let at = |candidate: &u32| self.olds.binary_search(candidate).ok();
        let positions: Vec<usize> = claimed.iter().filter_map(at).collect();
        for position in &positions {
            self.open.remove(position);
        }
        positions.first().copied()
    }

    /// Returns the positions of the candidates that are tried for a message of NEW, the most probable ones first. `next` is
    /// the position after the last candidate that was found, and `since` the number of messages of NEW after that.
    fn places(
        &self,
        plain: &[u8],
        (next, since): (usize, usize),
        order: SearchOrder,
    ) -> Vec<usize> {
        let most = if self.candidates.is_merged() {
            MOST_COMPARED
        } else {
            MOST_PROVED
        };
        let alike = self.pieces.most_alike(plain, &self.open);
        let corresponding = match order {
            SearchOrder::Forward => next.checked_add(since),
            SearchOrder::Backward => next.checked_sub(since),
        };
        let expected = corresponding.map(|at| self.open_from(at, order, MOST_EXPECTED));
        let following = self.open_from(next, order, most);
        let others = self.open_from(self.start(order), order, most);
        let mut seen = BTreeSet::new();
        let mut places = [alike, expected.unwrap_or_default(), following, others].concat();
        places.retain(|at| seen.insert(*at));
        places.truncate(most);
        places
    }

    fn start(&self, order: SearchOrder) -> usize {
        match order {
            SearchOrder::Forward => 0,
            SearchOrder::Backward => self.olds.len().saturating_sub(1),
        }
    }

    /// Returns the open positions from a position on, but at most `most`.
    fn open_from(&self, at: usize, order: SearchOrder, most: usize) -> Vec<usize> {
        match order {
            SearchOrder::Forward => self.open.range(at..).take(most).copied().collect(),
            SearchOrder::Backward => self.open.range(..=at).rev().take(most).copied().collect(),
        }
    }

    /// Compares each candidate that was not compared with any message of NEW yet with the message at the same position
    /// among those that are left, so that it is called altered and not missing: NEW has messages with its Message-ID.
    fn name_rest(
        &self,
        left: &[PendingMessage],
        last: Option<PendingMessage>,
    ) -> Result<(), Error> {
        for (rank, position) in self.open.iter().enumerate() {
            let candidate = self.olds.get(*position);
            let message = left.get(rank).or(left.last()).copied().or(last);
            let (Some(&candidate), Some(message)) = (candidate, message) else {
                continue;
            };
            if !self.candidates.is_untried(candidate) {
                continue;
            }
            let record: CandidateRecord = self.file.value(message.at).map_err(temporary)?;
            let Some(content) = record.content(self.file).map_err(temporary)? else {
                continue;
            };
            let flags = record.flags();
            let new = self
                .candidates
                .new_message(&content, &plain(&content), &flags);
            let tried = self.candidates.tried(&[candidate], &new, 1)?;
            self.candidates.note_difference(message.number, tried);
        }
        Ok(())
    }
}

/// Pieces of text (between line feeds and HTML tags) that occur in only one of several messages. embody keeps most of the
/// text of a message, so they show which message another one was made from.
#[derive(Default)]
struct DistinctPieces {
    /// By the hash of the piece: the position of its message. `None` if it occurs in several messages.
    positions: HashMap<u64, Option<usize>>,
}

impl DistinctPieces {
    fn add(&mut self, position: usize, plain: &[u8]) {
        let mut added = 0;
        for piece in pieces(plain) {
            if let Some(known) = self.positions.get_mut(&piece) {
                *known = known.filter(|known| *known == position);
            } else if added < MOST_PIECES.0 && self.positions.len() < MOST_PIECES.1 {
                self.positions.insert(piece, Some(position));
                added += 1;
            }
        }
    }

    /// Returns the open positions whose messages have the most pieces in common with this one.
    fn most_alike(&self, plain: &[u8], open: &BTreeSet<usize>) -> Vec<usize> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for piece in pieces(plain) {
            if let Some(Some(position)) = self.positions.get(&piece)
                && open.contains(position)
            {
                *counts.entry(*position).or_default() += 1;
            }
        }
        let mut alike: Vec<(usize, usize)> = counts.into_iter().collect();
        alike.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let alike = alike.into_iter().take(MOST_ALIKE);
        alike.map(|(position, _)| position).collect()
    }
}

/// Returns the hashes of the pieces of a message. Lines of base64 are not counted, because embody inserts and removes them.
fn pieces(plain: &[u8]) -> impl Iterator<Item = u64> {
    const LONGEST_WORD: usize = 56;

    let pieces = plain.split(|byte| matches!(byte, b'\n' | b'<' | b'>'));
    let is_text = |piece: &&[u8]| {
        let piece = piece.trim_ascii();
        let is_word = || !piece.iter().any(|byte| matches!(byte, b' ' | b':'));
        !piece.is_empty() && (piece.len() < LONGEST_WORD || !is_word())
    };
    pieces.filter(is_text).map(|piece| {
        let mut hasher = DefaultHasher::new();
        piece.hash(&mut hasher);
        hasher.finish()
    })
}
