//! `embody compare`: proves that one mailbox (NEW) contains all mail of another one (OLD).
//!
//! Both mailboxes are read twice. The first reading computes a digest of each message, and most messages of NEW are
//! identical to one of OLD. The second reading describes the remaining messages. Two descriptions show whether embody
//! could have changed one message into the other ([`changes`](crate::engine::same::changes)). Descriptions of OLD are in
//! a temporary file, so that memory contains less than 100 bytes for each message.

mod reading;
mod side;
mod spool;
mod verdict;

use std::collections::HashMap;

use self::reading::{Copies, Look, read};
use self::side::{Side, side};
use self::spool::{Entry, Record, Spool, temporary};
use self::verdict::{Loss, Named, Verdict};
use super::args::CompareArgs;
use super::exit::{Signals, Status};
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::streams::{is_standard, print, write_error};
use crate::engine::Mode;
use crate::engine::same::{Digest, MOST_COMPARED, Place};
use crate::error::Error;
use crate::mailbox::{Flags, Options, Stop};

pub(super) fn run(args: &CompareArgs) -> Result<Status, Error> {
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
struct Known {
    /// Number of messages of OLD with this digest for which NEW has no identical message.
    left: u32,
    old_flags: Flags,
    new_flags: Flags,
    /// True if all mailboxes of NEW that contain an identical message can store flags. Otherwise, missing flags are not
    /// reported.
    can_hold_flags: bool,
    is_found: bool,
}

fn compare(
    old: &Side,
    new: &Side,
    is_merged: bool,
    options: &Options,
    stop: &Stop,
) -> Result<Verdict, Error> {
    let mut verdict = Verdict::default();
    let mut known: HashMap<Digest, Known> = HashMap::new();
    verdict.is_damaged |= old.is_damaged | new.is_damaged;
    let mut not_read = Vec::new();
    let of_old = read(
        &old.path,
        options,
        stop,
        (|_| false, Copies::Ignored),
        |look| {
            verdict.old += 1;
            let known = known.entry(look.identity).or_default();
            known.left += 1;
            known.old_flags = known.old_flags.with(look.flags.unwrap_or_default());
        },
        Some(&mut not_read),
    )?;
    verdict.is_damaged |= of_old.is_damaged;
    let mut others: HashMap<Digest, u32> = HashMap::new();
    let of_new = read(
        &new.path,
        options,
        stop,
        (|_| false, Copies::Ignored),
        |look| {
            verdict.new += 1;
            let Some(known) = known.get_mut(&look.identity) else {
                *others.entry(look.identity).or_default() += 1;
                return;
            };
            known.can_hold_flags =
                look.flags.is_some() && (known.can_hold_flags || !known.is_found);
            known.is_found = true;
            known.new_flags = known.new_flags.with(look.flags.unwrap_or_default());
            // Each message of OLD is matched with at most one identical message of NEW. Further copies in NEW are not
            // counted, so that the number of identical messages is never larger than the number of messages in OLD.
            if let Some(left) = known.left.checked_sub(1) {
                known.left = left;
                verdict.identical += 1;
            }
        },
        Some(&mut not_read),
    )?;
    verdict.is_damaged |= of_new.is_damaged;
    verdict.files = [of_old.files, of_new.files];
    verdict.not_read = not_read;
    let lost_flags = |known: &Known| {
        if known.is_found && known.can_hold_flags {
            known.old_flags.without(known.new_flags)
        } else {
            String::new()
        }
    };
    known.retain(|_, known| known.left > 0 || !lost_flags(known).is_empty());
    if known.is_empty() {
        return Ok(verdict);
    }

    let mut spool = Spool::new()?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut failure = None;
    let is_known = |identity: &Digest| known.contains_key(identity);
    let mut losses = HashMap::new();
    for (identity, known) in &known {
        losses.insert(*identity, (known.left, lost_flags(known)));
    }
    let copies = if is_merged {
        Copies::OfDescribed
    } else {
        Copies::Ignored
    };
    let mut cuts: HashMap<Digest, Vec<Place>> = HashMap::new();
    let describe = |look: Look| {
        let Some((left, flags)) = losses.get_mut(&look.identity) else {
            return;
        };
        let Some(described) = look.described else {
            return;
        };
        let key = described.key();
        let named = Named {
            source: described.source,
            index: described.index,
            called: described.called,
        };
        if !flags.is_empty() && look.flags.is_some_and(|of| !of.letters().is_empty()) {
            verdict
                .lost
                .push((named, Loss::Flags(std::mem::take(flags))));
            return;
        }
        let Some(fewer) = left.checked_sub(1) else {
            return;
        };
        *left = fewer;
        if let Some((key, copy)) = &described.copy {
            let places = cuts.entry(*key).or_default();
            places.extend(copy.cut_at().filter(|_| places.len() < MOST_COMPARED));
        }
        let record = Record {
            source: named.source,
            index: named.index,
            called: named.called,
            description: described.description,
            copy: described.copy.map(|(_, copy)| copy),
        };
        match spool.push(&record) {
            Ok(at) => entries.push(Entry {
                key,
                at,
                is_found: false,
                altered: None,
            }),
            Err(error) => failure = Some(error),
        }
    };
    let described = read(&old.path, options, stop, (is_known, copies), describe, None)?;
    verdict.is_damaged |= described.is_damaged;
    drop(losses);
    entries.sort_by_key(|entry| (entry.key, entry.at));
    spool.finish().map_err(temporary)?;
    let is_other = |identity: &Digest| others.contains_key(identity);
    let copies = if is_merged {
        Copies::Of(&cuts)
    } else {
        Copies::Ignored
    };
    let place = |look: Look| {
        if let Some(described) = look.described
            && failure.is_none()
        {
            match spool.place(&mut entries, &described) {
                Ok(found) => {
                    for of_message in found {
                        verdict.changed += 1;
                        verdict.changes.add(of_message);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
    };
    let placed = read(&new.path, options, stop, (is_other, copies), place, None)?;
    verdict.is_damaged |= placed.is_damaged;
    if let Some(failure) = failure {
        return Err(temporary(failure));
    }
    entries.sort_by_key(|entry| entry.at);
    for entry in entries.into_iter().filter(|entry| !entry.is_found) {
        let record = spool.record(entry.at).map_err(temporary)?;
        let named = Named {
            source: record.source,
            index: record.index,
            called: record.called,
        };
        let loss = entry.altered.map_or(Loss::Missing, Loss::Altered);
        verdict.lost.push((named, loss));
    }
    Ok(verdict)
}
