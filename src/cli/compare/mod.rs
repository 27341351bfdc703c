//! `embody compare`: proves that one mailbox (NEW) contains all mail of another one (OLD).
//!
//! Both mailboxes are read twice. The first reading computes a digest of each message, and most messages of NEW are
//! identical to one of OLD. The second reading examines the remaining messages: embody is run again on the message of OLD,
//! and must give the message of NEW ([`prove`](crate::engine::prove::prove)). The places of messages of OLD are in a temporary
//! file, so that memory contains less than 100 bytes for each message.

mod candidates;
mod reading;
mod side;
mod verdict;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use self::candidates::{CandidateMatch, MessageCandidates, lost};
use self::reading::{MessageResult, SeenMessages, read};
use self::side::{Side, side};
use self::verdict::{Loss, Verdict};
use super::args::CompareArgs;
use super::exit::{ProgramStatus, Signals};
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::streams::{is_standard, print, write_error};
use crate::engine::Mode;
use crate::engine::prove::Changes;
use crate::engine::same::Digest;
use crate::error::Error;
use crate::mailbox::{Flags, Keywords, MessageFlags, Options, Stop};

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
    let options = &args.compressed.added_to(Options {
        format: args.format,
        mode: Mode::DryRun,
        ..Options::default()
    });
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

/// Counts and flags of the messages of OLD with one digest. These messages are identical to each other.
#[derive(Default)]
struct OldMessages {
    /// Number of messages of OLD with this digest for which NEW has no identical message.
    left: u32,
    /// Number of messages of NEW with this digest for which OLD has no identical message.
    surplus: u32,
    /// Flags of these messages in OLD and in NEW.
    flags: [Flags; 2],
    /// Keywords of these messages in OLD and in NEW. Most messages have none.
    keywords: [Option<Box<Keywords>>; 2],
    /// True if all mailboxes of NEW that contain an identical message can store flags. Otherwise, missing flags are not
    /// reported.
    can_hold_flags: bool,
    is_found: bool,
}

impl OldMessages {
    fn add_flags(&mut self, side: usize, flags: Option<MessageFlags>) {
        let Some(flags) = flags else { return };
        let (Some(known), Some(keywords)) = (self.flags.get_mut(side), self.keywords.get_mut(side))
        else {
            return;
        };
        *known = known.with(flags.system);
        if !flags.keywords.is_empty() {
            let before = keywords.take().map(|known| *known).unwrap_or_default();
            *keywords = Some(Box::new(before.with(&flags.keywords)));
        }
    }

    /// Returns the flags and keywords that NEW lacks, in words.
    fn lost_flags(&self, is_merged: bool) -> Vec<String> {
        if !self.is_found || !self.can_hold_flags {
            return Vec::new();
        }
        let [old, new] = [0, 1].map(|side| {
            let keywords = self.keywords.get(side).and_then(Option::as_deref);
            let flags = self.flags.get(side).copied().unwrap_or_default();
            Some(MessageFlags::new(
                flags,
                keywords.cloned().unwrap_or_default(),
            ))
        });
        lost(&old, &new, is_merged)
    }
}

fn compare(
    old: &Side,
    new: &Side,
    is_merged: bool,
    options: &Options,
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
    let mut others: HashMap<Digest, u32> = HashMap::new();
    let of_new = read(
        &new.path,
        options,
        stop,
        nothing(),
        |seen, _| {
            verdict.new += 1;
            let Some(known) = known.get_mut(&seen.identity) else {
                *others.entry(seen.identity).or_default() += 1;
                return;
            };
            known.can_hold_flags =
                seen.flags.is_some() && (known.can_hold_flags || !known.is_found);
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
    verdict.is_damaged |= of_new.is_damaged;
    verdict.files = [of_old.files, of_new.files];
    verdict.not_read = not_read;
    // Further copies in NEW may be what embody made of other messages: the incomplete copies of the same mail, for example.
    let surplus: HashMap<Digest, u32> = known
        .iter()
        .filter(|(_, known)| known.surplus > 0 || is_merged && known.is_found)
        .map(|(identity, known)| (*identity, known.surplus))
        .collect();
    let mut losses: HashMap<Digest, (u32, Vec<String>)> = known
        .drain()
        .map(|(identity, known)| (identity, (known.left, known.lost_flags(is_merged))))
        .filter(|(_, (left, lost))| *left > 0 || !lost.is_empty())
        .collect();
    drop(known);
    if losses.is_empty() {
        return Ok(verdict);
    }

    let mut candidates = MessageCandidates::new(is_merged, surplus)?;
    let mut added = Vec::new();
    {
        let wanted: HashMap<Digest, bool> = losses
            .iter()
            .map(|(identity, (left, _))| (*identity, *left > 0))
            .collect();
        let is_wanted = |identity: &Digest| wanted.contains_key(identity);
        let store = |message: MessageResult<'_>| {
            let is_stored = wanted.get(&message.seen.identity) == Some(&true);
            let stored = is_stored.then(|| candidates.store(&message)).transpose()?;
            Ok((message.named, stored))
        };
        let mut see = |seen: SeenMessages, examined: Option<(_, _)>| {
            let Some((named, stored)) = examined else {
                return;
            };
            let Some((left, flags)) = losses.get_mut(&seen.identity) else {
                return;
            };
            let none = MessageFlags::default();
            let has_flags = seen
                .flags
                .is_some_and(|of| !of.missing_in(&none).is_empty());
            if !flags.is_empty() && has_flags {
                let flags = std::mem::take(flags);
                verdict.lost.push((named, Loss::Flags(flags)));
            }
            if let (Some(fewer), Some(stored)) = (left.checked_sub(1), stored) {
                *left = fewer;
                added.push((seen.identity, stored));
            }
        };
        let examined = (is_wanted, store);
        let again = read(&old.path, options, stop, examined, &mut see, None)?;
        verdict.is_damaged |= again.is_damaged;
    }
    // These messages were in OLD at the first reading.
    verdict.gone = losses.values().map(|(left, _)| u64::from(*left)).sum();
    drop(losses);
    for (identity, stored) in added {
        candidates.add(identity, stored);
    }
    if !candidates.is_empty() {
        let next = AtomicU64::new(0);
        let is_candidate =
            |identity: &Digest| others.contains_key(identity) || candidates.has_surplus(identity);
        let place = |message: MessageResult<'_>| {
            candidates.place(next.fetch_add(1, Ordering::Relaxed), &message)
        };
        let examined = (is_candidate, place);
        let placed = read(&new.path, options, stop, examined, |_, _| {}, None)?;
        verdict.is_damaged |= placed.is_damaged;
    }
    for outcome in candidates.results()? {
        let (changes, lost_flags) = match outcome.found {
            CandidateMatch::Changed { proof, lost_flags } => {
                verdict.unchecked += proof.unchecked;
                (proof.changes, lost_flags)
            }
            CandidateMatch::Merged { lost_flags } => {
                let merged = Changes {
                    merged: 1,
                    ..Changes::default()
                };
                (merged, lost_flags)
            }
            CandidateMatch::Altered(_, why) => {
                verdict.lost.push((outcome.named, Loss::Altered(why)));
                continue;
            }
            CandidateMatch::Nothing => {
                verdict.lost.push((outcome.named, Loss::Missing));
                continue;
            }
        };
        verdict.changed += 1;
        verdict.changes.add(changes);
        if !lost_flags.is_empty() {
            verdict.lost.push((outcome.named, Loss::Flags(lost_flags)));
        }
    }
    Ok(verdict)
}
