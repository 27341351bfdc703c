//! Collects the messages with one Message-ID, and records which of them are kept.

use std::io;

use super::super::groups::{GroupVerdict, MergeCandidate, compared, fillable, settled};
use super::super::record::{self, Details, KEPT_LENGTH, KeptRecord, MessageRecord};
use super::super::spool::CompleteSpool;
use super::kept::{KeptMails, KeptNote, KeptOrder, KeptSelection};
use super::tally::{MOST_SOURCES, Tally};
use super::{LONGEST_BATCH, MergeIndex, Order, cannot_write, temporary};
use crate::engine::same::MOST_COMPARED;
use crate::error::Error;
use crate::mailbox::Stop;
use crate::pool;
use crate::spool::{SortedRecords, Sorter, SpoolWriter};

impl MergeIndex {
    /// Decides which messages are copies of one mail, and which copies are kept. Several threads compare copies. With
    /// `counts_fillable`, also counts [`Tally::fillable`], which reads the copies of each mail once more.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and errors of the temporary files.
    pub(crate) fn decide(
        self,
        order: Order,
        counts_fillable: bool,
        (limits, stop): (pool::PoolLimits, &Stop),
    ) -> Result<KeptSelection, Error> {
        let failed = cannot_write(&self.directory);
        let spooled = self.spool.finish().map_err(&failed)?;
        let mut groups = Groups {
            sorted: self.sorter.sorted().map_err(&failed)?,
            spooled: &spooled,
            group: None,
            identical: 0,
            uncompared: 0,
        };
        let mut deciding = GroupDecider {
            order,
            spooled: &spooled,
            sorter: Sorter::new(temporary(&self.directory)?),
            notes: SpoolWriter::new(temporary(&self.directory)?),
            tally: Tally {
                fillable: counts_fillable.then_some(0),
                ..self.tally
            },
        };
        pool::run(
            limits,
            stop,
            || groups.next_batch().map_err(&failed),
            |_| vec![0],
            |batch, _| {
                let compared = batch
                    .iter()
                    .map(|group| GroupComparison::of(group, counts_fillable, &spooled));
                compared.collect::<io::Result<Vec<_>>>().map_err(&failed)
            },
            |_, _| None,
            |batch: Vec<MessageIdGroup>, done| {
                let compared = done.into_iter().flat_map(|(_, compared)| compared);
                let mut groups = batch.into_iter().zip(compared);
                let settled = groups.try_for_each(|(group, it)| deciding.settle(group, it));
                settled.map_err(&failed)
            },
        )?;
        let GroupDecider {
            sorter,
            notes,
            tally,
            ..
        } = deciding;
        let tally = Tally {
            identical: groups.identical,
            uncompared: groups.uncompared,
            ..tally
        };
        drop(groups);
        Ok(KeptSelection {
            order: KeptOrder {
                sorted: sorter.sorted().map_err(&failed)?,
                directory: self.directory.clone(),
            },
            mails: KeptMails {
                spooled,
                notes: notes.finish().map_err(&failed)?,
                directory: self.directory,
            },
            tally,
        })
    }
}

/// All messages with one Message-ID, which may be copies of one mail.
struct MessageIdGroup {
    key: [u8; 16],
    candidates: Vec<MergeCandidate>,
    /// Candidate beyond [`MOST_COMPARED`], which is kept without a comparison. Identical messages are adjacent in a
    /// group, so only the last one must stay in memory: the next message is either identical to it or new.
    last: Option<MergeCandidate>,
}

impl MessageIdGroup {
    pub(super) fn of(key: [u8; 16], candidate: MergeCandidate) -> Self {
        Self {
            key,
            candidates: vec![candidate],
            last: None,
        }
    }

    /// Returns the memory that the group needs until it is settled, in bytes: the contents, if they are compared, and
    /// the candidates themselves.
    fn weight(&self) -> usize {
        let candidates = self.candidates.len() * size_of::<MergeCandidate>();
        let lengths = self.candidates.iter().map(|it| it.record.entry.length);
        match self.candidates.len() {
            1 => candidates,
            _ => candidates
                .saturating_add(usize::try_from(lengths.sum::<u64>()).unwrap_or(usize::MAX)),
        }
    }
}

/// Returns the messages with one Message-ID together, in batches of several groups.
struct Groups<'g> {
    sorted: SortedRecords<{ record::LENGTH }>,
    spooled: &'g CompleteSpool,
    /// The group whose messages are being read.
    group: Option<MessageIdGroup>,
    identical: u64,
    uncompared: u64,
}

impl Groups<'_> {
    /// Returns the next groups and their weight. Returns `None` after the last one.
    fn next_batch(&mut self) -> io::Result<Option<(Vec<MessageIdGroup>, usize)>> {
        let (mut batch, mut weight) = (Vec::new(), 0_usize);
        while weight < LONGEST_BATCH {
            let next = self.sorted.next()?;
            let is_end = next.is_none();
            let complete = match next {
                Some(bytes) => self.push(MessageRecord::decode(&bytes))?,
                None => self.group.take(),
            };
            if let Some(mut group) = complete {
                weight = weight.saturating_add(group.weight());
                group
                    .candidates
                    .sort_by_key(|candidate| candidate.record.number);
                batch.push(group);
            }
            if is_end {
                break;
            }
        }
        Ok((!batch.is_empty()).then_some((batch, weight)))
    }

    /// Adds a message. Returns a group if no further message belongs to it.
    pub(super) fn push(&mut self, record: MessageRecord) -> io::Result<Option<MessageIdGroup>> {
        let candidate = MergeCandidate::of(record);
        let current = self.group.as_mut().filter(|it| it.key == record.key);
        let Some(group) = current else {
            return Ok(self
                .group
                .replace(MessageIdGroup::of(record.key, candidate)));
        };
        let is_identical = |other: &&mut MergeCandidate| other.record.identity == record.identity;
        let before = group.last.as_mut().or(group.candidates.last_mut());
        if let Some(other) = before.filter(is_identical) {
            self.identical += 1;
            other.absorb(candidate, self.spooled)?;
        } else if group.candidates.len() < MOST_COMPARED {
            group.candidates.push(candidate);
        } else {
            self.uncompared += 1;
            let alone = group.last.replace(candidate);
            return Ok(alone.map(|alone| MessageIdGroup::of(record.key, alone)));
        }
        Ok(None)
    }
}

/// The result of comparing the messages of a group.
struct GroupComparison {
    verdict: GroupVerdict,
    /// Number of missing parts that `recover --copies` would fill. 0 if they are not counted.
    fillable: u64,
}

impl GroupComparison {
    pub(super) fn of(
        group: &MessageIdGroup,
        counts_fillable: bool,
        spooled: &CompleteSpool,
    ) -> io::Result<Self> {
        // `recover --copies` also does not compare a mail with more than `MOST_COMPARED` others.
        let fillable = if counts_fillable && group.last.is_none() {
            fillable(&group.candidates, spooled)?
        } else {
            0
        };
        let verdict = compared(&group.candidates, spooled)?;
        Ok(Self { verdict, fillable })
    }
}

struct GroupDecider<'d> {
    order: Order,
    spooled: &'d CompleteSpool,
    sorter: Sorter<KEPT_LENGTH>,
    notes: SpoolWriter,
    tally: Tally,
}

impl GroupDecider<'_> {
    fn settle(&mut self, group: MessageIdGroup, comparison: GroupComparison) -> io::Result<()> {
        let tally = &mut self.tally;
        if let Some(count) = &mut tally.fillable {
            *count += comparison.fillable;
        }
        let done = settled(group.candidates, comparison.verdict, self.spooled)?;
        tally.dropped += done.dropped;
        tally.filled += done.filled;
        tally.completed += done.completed;
        tally.ambiguous += done.ambiguous;
        for difference in done.differences {
            *tally.differences.entry(difference).or_default() += 1;
        }
        for kept in done.kept.into_iter().chain(group.last) {
            self.keep(kept)?;
        }
        Ok(())
    }

    fn keep(&mut self, mut candidate: MergeCandidate) -> io::Result<()> {
        self.tally.kept += 1;
        self.tally.kept_bytes += candidate.record.entry.length;
        self.tally.shared += u64::from(candidate.sources.len() > 1);
        let sources: Vec<u32> = candidate.sources.iter().copied().collect();
        let counted = if sources.len() > MOST_SOURCES {
            self.tally.widespread += 1;
            &[][..]
        } else {
            sources.as_slice()
        };
        for (at, &one) in counted.iter().enumerate() {
            for &other in counted.iter().skip(at + 1) {
                *self.tally.pairs.entry((one, other)).or_default() += 1;
            }
        }
        let words = candidate.united_words(self.spooled)?;
        let folders: Vec<u32> = candidate.folders.into_iter().collect();
        let details = match (words, folders.as_slice()) {
            (None, &[folder]) => Details::Folder(folder),
            (words, _) => Details::Note(self.notes.push_value(&KeptNote { words, folders })?),
        };
        let record = candidate.record;
        let kept = KeptRecord {
            order: match self.order {
                // A date before 1970 is negative. Inverting the sign bit makes it sort before later dates.
                Order::Date => (record.date as u64) ^ (1 << 63),
                Order::First => 0,
            },
            number: record.number,
            entry: record.entry,
            flags: candidate.flags,
            details,
        };
        self.sorter.push(kept.encode())
    }
}
