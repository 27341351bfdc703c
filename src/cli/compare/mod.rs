//! `embody compare`: proves that one mailbox (NEW) contains all mail of another one (OLD).
//!
//! Both mailboxes are read twice. The first reading computes a digest of each message, and most messages of NEW are
//! identical to one of OLD. The second reading examines the remaining messages: embody is run again on the message of OLD,
//! and must give the message of NEW ([`prove`](crate::engine::prove::prove)). The places of messages of OLD are in a temporary
//! file, so that memory contains less than 100 bytes for each message.

mod candidates;
mod crowded;
mod matching;
mod pending;
mod reading;
mod side;
mod stored;
mod verdict;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

use self::candidates::{CandidateCollector, CandidateLoss, CandidateWriter, lost};
use self::crowded::compare_crowded;
use self::reading::{MessageResult, SeenMessages, read};
use self::side::{Side, side};
use self::verdict::{Loss, Verdict};
use super::args::CompareArgs;
use super::exit::{ProgramStatus, Signals};
use super::overlap::{self, check_apart, check_links};
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::streams::{is_standard, print, write_error};
use crate::engine::same::Digest;
use crate::error::Error;
use crate::mailbox::{Flags, Keywords, MessageFlags, ReadOptions, SeenFlags, Stop};

pub(super) fn run(args: &CompareArgs) -> Result<ProgramStatus, Error> {
    let signals = Signals::watch();
    let stop = &signals.stop;
    let sides = [&args.old, &args.new];
    if sides.iter().any(|side| is_standard(side)) {
        let what = "compare reads each mailbox twice, so it cannot read standard input; name a file or a folder";
        return Err(Error::Usage(what.into()));
    }
    #[cfg(all(unix, feature = "imap"))]
    if !sides.iter().any(|side| remote::is_remote(side)) {
        remote::are_remote(&sides.map(Clone::clone), &args.imap)?;
        args.connection.check_unused()?;
    }
    let options = &args.compressed.added_to(ReadOptions {
        format: args.format,
        ..ReadOptions::default()
    });
    check_apart(&args.old, &args.new, options)?;
    #[cfg(all(unix, feature = "imap"))]
    overlap::check_accounts(&args.old, &args.new, args.imap.allow_plaintext)?;
    let done = (|| {
        let [old, new] = [
            side(&args.old, args, options, stop)?,
            side(&args.new, args, options, stop)?,
        ];
        compare(&old, &new, args.merged, options, stop)
    })();
    let verdict = match done {
        Err(Error::Interrupted) => return Ok(signals.status()),
        done => done?,
    };
    let text = if args.json {
        verdict.json().map_err(write_error)?
    } else {
        verdict.text(args).into_bytes()
    };
    print(&text)?;
    Ok(verdict.status())
}

/// Counts and flags of the messages with one digest, which are identical to each other.
#[derive(Default)]
struct OldMessages {
    /// Number of messages of OLD with this digest for which NEW has no identical message.
    left: u32,
    /// Number of messages of NEW with this digest for which OLD has no identical message.
    surplus: u32,
    /// Flags of these messages that OLD and NEW store, and those in header fields.
    flags: [[Flags; 2]; 2],
    /// Keywords of these messages in OLD and in NEW. Most messages have none.
    keywords: Option<Box<[[Keywords; 2]; 2]>>,
    /// Whether a mailbox of NEW with an identical message can store flags. If not, missing flags are not reported.
    can_hold_flags: bool,
    is_found: bool,
}

impl OldMessages {
    fn add_flags(&mut self, side: usize, flags: SeenFlags) {
        let Some(known) = self.flags.get_mut(side) else {
            return;
        };
        let both = [flags.stored.unwrap_or_default(), flags.fields];
        for (at, (known, flags)) in known.iter_mut().zip(both).enumerate() {
            *known = known.with(flags.system);
            if !flags.keywords.is_empty()
                && let Some(of_side) = self.keywords.get_or_insert_default().get_mut(side)
                && let Some(known) = of_side.get_mut(at)
            {
                *known = std::mem::take(known).with(&flags.keywords);
            }
        }
    }

    /// Returns the flags and keywords that NEW lacks, described in words.
    fn lost_flags(&self, is_merged: bool) -> Vec<String> {
        if !self.is_found {
            return Vec::new();
        }
        let keywords = self.keywords.as_deref().cloned().unwrap_or_default();
        let side =
            |[stored, fields]: [Flags; 2], [of_stored, of_fields]: [Keywords; 2]| SeenFlags {
                stored: self
                    .can_hold_flags
                    .then(|| MessageFlags::new(stored, of_stored)),
                fields: MessageFlags::new(fields, of_fields),
            };
        let ([old, new], [of_old, of_new]) = (self.flags, keywords);
        lost(&side(old, of_old), &side(new, of_new), is_merged)
    }
}

/// Messages of OLD that NEW does not have in sufficient number, or not with their flags.
struct Losses {
    /// Number of messages that were not found in NEW yet, by digest, sorted.
    left: Vec<(Digest, AtomicU32)>,
    /// Flags that are missing in NEW, described in words, by digest.
    flags: HashMap<Digest, Vec<String>>,
}

impl Losses {
    fn of(known: HashMap<Digest, OldMessages>, is_merged: bool) -> Self {
        let count = known.values().filter(|known| known.left > 0).count();
        let mut losses = Self {
            left: Vec::with_capacity(count),
            flags: HashMap::new(),
        };
        for (identity, known) in known {
            let flags = known.lost_flags(is_merged);
            if !flags.is_empty() {
                losses.flags.insert(identity, flags);
            }
            if known.left > 0 {
                losses.left.push((identity, AtomicU32::new(known.left)));
            }
        }
        losses.left.sort_unstable_by_key(|(identity, _)| *identity);
        losses
    }

    fn is_empty(&self) -> bool {
        self.left.is_empty() && self.flags.is_empty()
    }

    /// Returns the number of messages that were not found yet.
    fn messages(&self) -> usize {
        let left = self.left.iter();
        left.map(|(_, left)| left.load(Ordering::Relaxed) as usize)
            .sum()
    }

    fn of_digest(&self, identity: &Digest) -> Option<&AtomicU32> {
        let at = self
            .left
            .binary_search_by_key(identity, |(known, _)| *known);
        self.left.get(at.ok()?).map(|(_, left)| left)
    }

    fn contain(&self, identity: &Digest) -> bool {
        self.of_digest(identity).is_some() || self.flags.contains_key(identity)
    }

    fn left(&self, identity: &Digest) -> u32 {
        let left = self.of_digest(identity);
        left.map_or(0, |left| left.load(Ordering::Relaxed))
    }

    /// Counts a message of the second reading of OLD. Returns false if all missing messages with this digest were
    /// already counted.
    fn take(&self, identity: &Digest) -> bool {
        let fewer = |left: u32| left.checked_sub(1);
        self.of_digest(identity).is_some_and(|left| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
                .is_ok()
        })
    }
}

fn compare(
    old: &Side,
    new: &Side,
    is_merged: bool,
    options: &ReadOptions,
    stop: &Stop,
) -> Result<Verdict, Error> {
    let mut verdict = Verdict::default();
    let mut known: HashMap<Digest, OldMessages> = HashMap::new();
    verdict.is_damaged |= old.is_damaged | new.is_damaged;
    let mut not_read = Vec::new();
    let nothing = || (|_: &Digest| false, |_: MessageResult<'_>| Ok(()));
    let of_old = read(
        &old.path,
        options,
        stop,
        nothing(),
        |seen, _| {
            verdict.old += 1;
            let known = known.entry(seen.identity).or_default();
            known.left += 1;
            known.add_flags(0, seen.flags);
        },
        Some(&mut not_read),
    )?;
    verdict.is_damaged |= of_old.is_damaged;
    // Half digests are enough here: a collision only causes a needless comparison.
    let mut others: HashSet<u64> = HashSet::new();
    let of_new = read(
        &new.path,
        options,
        stop,
        nothing(),
        |seen, _| {
            verdict.new += 1;
            let Some(known) = known.get_mut(&seen.identity) else {
                others.insert(seen.identity.half());
                return;
            };
            known.can_hold_flags |= seen.flags.stored.is_some();
            known.is_found = true;
            known.add_flags(1, seen.flags);
            // Each message of OLD is matched with at most one identical message of NEW. Further copies in NEW are not
            // counted, so that the number of identical messages is never larger than the number of messages in OLD.
            match known.left.checked_sub(1) {
                Some(left) => {
                    known.left = left;
                    verdict.identical += 1;
                }
                None => known.surplus += 1,
            }
        },
        Some(&mut not_read),
    )?;
    check_links([&old.path, &new.path], [&of_old.links, &of_new.links])?;
    verdict.is_damaged |= of_new.is_damaged;
    verdict.files = [of_old.files, of_new.files];
    verdict.not_read = not_read;
    // Surplus copies in NEW may be the results of other messages of OLD, for example of incomplete copies of the same
    // mail.
    let surplus: HashMap<Digest, u32> = known
        .iter()
        .filter(|(_, known)| known.surplus > 0 || is_merged && known.is_found)
        .map(|(identity, known)| (*identity, known.surplus))
        .collect();
    let losses = Losses::of(known, is_merged);
    if losses.is_empty() {
        return Ok(verdict);
    }

    let writer = CandidateWriter::new(is_merged)?;
    let mut collector = CandidateCollector::new(losses.messages());
    {
        let store = |message: MessageResult<'_>| {
            let is_stored = losses.left(&message.seen.identity) > 0;
            let stored = is_stored.then(|| writer.store(&message)).transpose()?;
            let has_lost_flags = losses.flags.contains_key(&message.seen.identity);
            Ok((has_lost_flags.then_some(message.named), stored))
        };
        let mut told = HashSet::new();
        let mut see = |seen: SeenMessages, examined: Option<(_, _)>| {
            let Some((named, stored)) = examined else {
                return;
            };
            let none = MessageFlags::default();
            let all = seen.flags.stored.unwrap_or_default();
            let has_flags = !all.with(&seen.flags.fields).missing_in(&none).is_empty();
            let flags = losses.flags.get(&seen.identity);
            if let (Some(named), Some(flags)) = (named, flags)
                && has_flags
                && told.insert(seen.identity)
            {
                let loss = Loss::Flags(flags.clone());
                verdict.lost.push((old.named(named), loss));
            }
            if let Some(stored) = stored
                && losses.take(&seen.identity)
            {
                collector.add(stored);
            }
        };
        let examined = (|identity: &Digest| losses.contain(identity), store);
        let again = read(&old.path, options, stop, examined, &mut see, None)?;
        verdict.is_damaged |= again.is_damaged;
    }
    // The messages that are still left were only in the first reading of OLD, so they disappeared during the run.
    verdict.gone = losses.messages() as u64;
    drop(losses);
    let mut candidates = collector.finish(writer, surplus)?;
    if !candidates.is_empty() {
        let mut number = 0;
        let is_candidate = |identity: &Digest| {
            others.contains(&identity.half()) || candidates.has_surplus(identity)
        };
        let place = |message: MessageResult<'_>| candidates.place(&message);
        let add = |_: SeenMessages, placed| {
            number += 1;
            if let Some(placed) = placed {
                candidates.add(number, placed);
            }
        };
        let placed = read(&new.path, options, stop, (is_candidate, place), add, None)?;
        verdict.is_damaged |= placed.is_damaged;
    }
    compare_crowded(&mut candidates)?;
    let lost = &mut verdict.lost;
    let found = candidates.results(|named, loss| {
        let loss = match loss {
            CandidateLoss::Missing => Loss::Missing,
            CandidateLoss::Altered(why) => Loss::Altered(why),
            CandidateLoss::Flags(flags) => Loss::Flags(flags),
        };
        lost.push((old.named(named), loss));
    })?;
    verdict.changed = found.changed;
    verdict.changes = found.changes;
    verdict.unchecked = found.unchecked;
    verdict.spooled = found.spooled;
    Ok(verdict)
}
