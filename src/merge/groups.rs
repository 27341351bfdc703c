//! Decides which of the messages with one Message-ID are copies of one mail, and which copy is the most complete.
//!
//! A copy [covers](crate::engine::same::covers) another one if it contains all of the other's content. A copy is dropped if
//! a more complete copy covers it. Of several copies with the same content, one is kept. A copy that several kept mails
//! cover is also kept, because it could belong to each of them.

use std::collections::{BTreeSet, HashMap};
use std::io;

use super::record::{MessageRecord, SpoolEntry};
use super::spool::CompleteSpool;
use super::words::MailWords;
use crate::engine::forms::references;
use crate::engine::policy::{Followed, Policy};
use crate::engine::same::{
    CoverDifference, CutPlace, Digest, MailCopy, NoteDescription, covers, fillings, plain,
};
use crate::mailbox::Flags;

/// Maximum number of different positions at which copies of one mail were cut off. For each of these positions, the
/// start of every other copy up to it is compared with the cut copy, so the limit bounds the work.
const MOST_PLACES: usize = 16;

/// Maximum number of messages of one candidate whose keywords are still to be read from the temporary file. At this
/// number, the keywords are read, so that the list `waiting` stays short.
const MOST_WAITING: usize = 64;

/// Messages with identical content, which are compared with other messages as one.
pub(super) struct MergeCandidate {
    /// Record of the message that was read first.
    pub(super) record: MessageRecord,
    pub(super) flags: Flags,
    pub(super) folders: BTreeSet<u32>,
    pub(super) sources: BTreeSet<u32>,
    /// Number of messages.
    pub(super) count: u64,
    /// Total length of all messages of the candidate, in bytes.
    pub(super) bytes: u64,
    words: MailWords,
    /// Spool entries of messages whose keywords were not read yet.
    waiting: Vec<SpoolEntry>,
}

impl MergeCandidate {
    pub(super) fn of(record: MessageRecord) -> Self {
        Self {
            flags: record.flags,
            folders: BTreeSet::from([record.folder]),
            sources: BTreeSet::from([record.source]),
            count: 1,
            bytes: record.entry.length,
            words: MailWords::default(),
            waiting: record
                .has_words
                .then_some(record.entry)
                .into_iter()
                .collect(),
            record,
        }
    }

    /// Merges `other`, which has identical content: its flags, keywords, folders and counts are added.
    pub(super) fn absorb(&mut self, other: Self, spooled: &CompleteSpool) -> io::Result<()> {
        self.flags = self.flags.united(other.flags);
        self.folders.extend(other.folders);
        self.sources.extend(other.sources);
        self.count += other.count;
        self.bytes += other.bytes;
        self.record.number = self.record.number.min(other.record.number);
        self.words.unite(other.words);
        self.waiting.extend(other.waiting);
        if self.waiting.len() > MOST_WAITING {
            self.read_words(spooled)
        } else {
            Ok(())
        }
    }

    fn read_words(&mut self, spooled: &CompleteSpool) -> io::Result<()> {
        for entry in self.waiting.drain(..) {
            self.words.unite(spooled.words(entry)?);
        }
        Ok(())
    }

    /// Returns the keywords of all messages of the candidate. `None` for a single message, which needs no others than
    /// its own.
    pub(super) fn united_words(
        &mut self,
        spooled: &CompleteSpool,
    ) -> io::Result<Option<MailWords>> {
        if self.count == 1 {
            return Ok(None);
        }
        self.read_words(spooled)?;
        Ok(Some(std::mem::take(&mut self.words)).filter(|words| !words.is_empty()))
    }
}

/// Outcome for the messages with one Message-ID.
#[derive(Default)]
pub(super) struct GroupDecisions {
    pub(super) kept: Vec<MergeCandidate>,
    /// Number of copies that were dropped although their content is different. For each of them, a copy that is at
    /// least as complete is kept.
    pub(super) dropped: u64,
    /// Number of parts that were missing in a dropped copy and are present in the copy kept in its place.
    pub(super) filled: u64,
    /// Number of dropped truncated copies in whose place a complete copy is kept.
    pub(super) completed: u64,
    /// Number of copies that are kept because they could belong to several mails.
    pub(super) ambiguous: u64,
    /// If several mails with one Message-ID are kept, the differences between the first mail and each of the others.
    pub(super) differences: Vec<CoverDifference>,
}

/// Turns the comparison `verdict` of these candidates into decisions: which are kept, and which are dropped as copies.
pub(super) fn settled(
    candidates: Vec<MergeCandidate>,
    verdict: GroupVerdict,
    spooled: &CompleteSpool,
) -> io::Result<GroupDecisions> {
    if candidates.len() < 2 {
        return Ok(GroupDecisions {
            kept: candidates,
            ..GroupDecisions::default()
        });
    }
    let mut done = GroupDecisions {
        ambiguous: verdict.ambiguous,
        differences: verdict.differences,
        ..GroupDecisions::default()
    };
    let mut kept: Vec<Option<MergeCandidate>> = Vec::new();
    let mut dropped = Vec::new();
    for ((at, candidate), to) in candidates.into_iter().enumerate().zip(&verdict.belongs_to) {
        if *to == at {
            kept.push(Some(candidate))
        } else {
            kept.push(None);
            dropped.push((at, *to, candidate));
        }
    }
    for (at, to, candidate) in dropped {
        let losses = (verdict.losses.get(at), verdict.losses.get(to));
        let (Some(copy), Some(whole)) = losses else {
            continue;
        };
        done.dropped += 1;
        done.filled += copy.missing_parts.saturating_sub(whole.missing_parts) as u64;
        done.completed += u64::from(copy.is_cut && !whole.is_cut);
        if let Some(Some(kept)) = kept.get_mut(to) {
            kept.absorb(candidate, spooled)?;
        }
    }
    done.kept = kept.into_iter().flatten().collect();
    Ok(done)
}

/// Counts the missing parts of all messages whose content `recover --copies` would take from another candidate: at least
/// one candidate is a copy with the content, and all such copies have the same content.
pub(super) fn fillable(candidates: &[MergeCandidate], spooled: &CompleteSpool) -> io::Result<u64> {
    if candidates.len() < 2 {
        return Ok(0);
    }
    let policy = Policy {
        follow: Followed::all(),
        ..Policy::default()
    };
    let reading = references::with_parts_in_files(policy.reading());
    let described: Vec<NoteDescription> = candidates
        .iter()
        .map(|candidate| {
            let content = spooled.content(candidate.record.entry)?;
            let limits = policy.limits.scan();
            Ok(NoteDescription::of(&plain(&content), &reading, &limits))
        })
        .collect::<io::Result<_>>()?;
    let mut sum = 0;
    for (at, (mail, candidate)) in described.iter().zip(candidates).enumerate() {
        if !mail.lacks_part() {
            continue;
        }
        // Content for each note, as a digest. `None` if the copies disagree.
        let mut found: HashMap<(String, usize), Option<Digest>> = HashMap::new();
        let others = described
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        for filling in others
            .filter_map(|(_, other)| fillings(other, mail).ok())
            .flatten()
        {
            let known = found
                .entry((filling.number, filling.note))
                .or_insert(Some(filling.content));
            if *known != Some(filling.content) {
                *known = None;
            }
        }
        sum += candidate.count * found.values().flatten().count() as u64;
    }
    Ok(sum)
}

fn described(candidates: &[MergeCandidate], spooled: &CompleteSpool) -> io::Result<Vec<MailCopy>> {
    let describe = |places: &[CutPlace]| -> io::Result<Vec<MailCopy>> {
        let copies = candidates.iter().map(|candidate| {
            let content = spooled.content(candidate.record.entry)?;
            Ok(MailCopy::of(&plain(&content), places))
        });
        copies.collect()
    };
    let copies = describe(&[])?;
    let all_places: BTreeSet<CutPlace> = copies.iter().filter_map(MailCopy::cut_at).collect();
    if all_places.is_empty() {
        return Ok(copies);
    }
    let places: Vec<CutPlace> = all_places.into_iter().take(MOST_PLACES).collect();
    describe(&places)
}

/// Compares all candidates of a group, which are in the order of reading, with each other. This reads their contents and
/// takes most of the time of a merge whose copies are different, so several threads compare different groups. The work
/// grows with the square of the number of candidates, so the caller passes at most
/// [`MOST_COMPARED`](crate::engine::same::MOST_COMPARED).
pub(super) fn compared(
    candidates: &[MergeCandidate],
    spooled: &CompleteSpool,
) -> io::Result<GroupVerdict> {
    match candidates.len() {
        0 | 1 => Ok(GroupVerdict::default()),
        _ => Ok(verdict(&described(candidates, spooled)?)),
    }
}

/// The result of comparing the candidates of a group.
#[derive(Default)]
pub(super) struct GroupVerdict {
    /// Index of the copy that replaces each copy. A kept copy has its own index.
    belongs_to: Vec<usize>,
    ambiguous: u64,
    differences: Vec<CoverDifference>,
    /// Number of missing parts of each copy, and whether its end is missing.
    losses: Vec<MergeLoss>,
}

struct MergeLoss {
    missing_parts: usize,
    is_cut: bool,
}

/// Compares all copies with each other. Of equally complete copies, the earliest one is kept.
fn verdict(copies: &[MailCopy]) -> GroupVerdict {
    let count = copies.len();
    let all = || 0..count;
    let table: Vec<Vec<Result<(), CoverDifference>>> = copies
        .iter()
        .map(|copy| copies.iter().map(|other| covers(other, copy)).collect())
        .collect();
    let relation = |copy: usize, other: usize| {
        let row = table.get(copy).and_then(|row| row.get(other));
        row.copied().unwrap_or(Ok(()))
    };
    let is_covered = |copy: usize, by: usize| relation(copy, by).is_ok();
    let is_surpassed = |copy: usize| all().any(|it| is_covered(copy, it) && !is_covered(it, copy));
    // Selects the copy to keep from all copies with the same content: the one with the smallest [`MailCopy::rank`], or
    // the earliest of equal rank.
    let best = |copy: usize| {
        let equal = all().filter(|&it| is_covered(copy, it) && is_covered(it, copy));
        equal
            .min_by_key(|&it| (copies.get(it).map(MailCopy::rank), it))
            .unwrap_or(copy)
    };
    let tops: BTreeSet<usize> = all().filter(|&it| !is_surpassed(it)).map(best).collect();
    let mut verdict = GroupVerdict {
        belongs_to: all().collect(),
        ambiguous: 0,
        differences: Vec::new(),
        losses: copies
            .iter()
            .map(|copy| MergeLoss {
                missing_parts: copy.missing(),
                is_cut: copy.is_cut(),
            })
            .collect(),
    };
    for copy in all() {
        let to = if !is_surpassed(copy) {
            best(copy)
        } else {
            let mut fits = tops.iter().copied().filter(|&top| is_covered(copy, top));
            match (fits.next(), fits.next()) {
                (Some(top), None) => top,
                _ => {
                    verdict.ambiguous += 1;
                    copy
                }
            }
        };
        if let Some(place) = verdict.belongs_to.get_mut(copy) {
            *place = to;
        }
    }
    // A copy may be dropped only in favour of a copy that is kept. If its replacement is itself dropped in favour of a
    // third copy, content could be lost, so the first copy is kept, too.
    let belongs_to = verdict.belongs_to.clone();
    for (copy, to) in verdict.belongs_to.iter_mut().enumerate() {
        if belongs_to.get(*to) != Some(to) {
            *to = copy;
            verdict.ambiguous += 1;
        }
    }
    let first = verdict.belongs_to.first().copied().unwrap_or_default();
    for top in tops {
        // The comparison is not symmetric: the difference found may depend on which mail comes first. The later value
        // in the order of [`CoverDifference`] is more precise, so that one is counted.
        let differences = [relation(top, first), relation(first, top)].map(Result::err);
        if top != first {
            verdict
                .differences
                .extend(differences.into_iter().flatten().max());
        }
    }
    verdict
}
