//! `embody compare`: proves that one mailbox (NEW) contains all mail of another one (OLD).
//!
//! Both mailboxes are read twice. The first reading computes a digest of each message, and most messages of NEW are
//! identical to one of OLD. The second reading describes the remaining messages. Two descriptions show whether embody
//! could have changed one message into the other ([`changes`]). Descriptions of OLD are in a temporary file, so that
//! memory contains less than 100 bytes for each message.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use super::args::CompareArgs;
use super::exit::{Signals, Status};
use super::origin::Origin;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::report_file::json;
use super::say;
use super::streams::{is_standard, print, write_error};
use crate::edit::Edits;
use crate::engine::Mode;
#[cfg(all(unix, feature = "imap"))]
use crate::engine::policy::Policy;
use crate::engine::report::Detail;
use crate::engine::same::{
    Altered, Changes, Description, Digest, MOST_COMPARED, MailCopy, Place, changes, copy_key,
    covers, identity, plain,
};
use crate::error::{Error, unpoisoned};
#[cfg(all(unix, feature = "imap"))]
use crate::imap::download::Download;
use crate::mailbox::{
    Conversion, Flags, Message, Observer, Options, Quoting, Stop, Summary, Transform,
    flags_of_message,
};

pub(super) fn run(args: &CompareArgs) -> Result<Status, Error> {
    let signals = Signals::watch();
    let stop = &signals.stop;
    let sides = [&args.old, &args.new];
    if sides.iter().any(|side| is_standard(side)) {
        let what = "compare reads each mailbox twice, so it cannot read standard input; name a file or a folder";
        return Err(Error::Usage(what.into()));
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

/// One of the two mailboxes of the comparison: OLD or NEW.
struct Side {
    path: PathBuf,
    /// Temporary copy of a mailbox on a server. Dropping it removes the copy.
    _copy: Option<tempfile::TempDir>,
    is_damaged: bool,
}

/// Returns a mailbox to compare. A mailbox on a server is downloaded into a temporary directory, because it is read
/// twice.
fn side(source: &Path, args: &CompareArgs, options: &Options, stop: &Stop) -> Result<Side, Error> {
    #[cfg(all(unix, feature = "imap"))]
    if let Some(account) = remote::account(source, &args.imap, &Policy::default())? {
        let copy = tempfile::tempdir().map_err(Error::cannot_write("a temporary folder"))?;
        let options = &Options {
            mode: Mode::Run,
            ..options.clone()
        };
        let download: Download<'_, ()> = Download {
            account: &account,
            output: copy.path(),
            options,
            transform: &Untouched,
            observer: &Told,
            stop,
        };
        let done = download.run();
        let summary = done.map_err(|why| remote::error(why, &account))?;
        return Ok(Side {
            path: copy.path().to_owned(),
            is_damaged: summary.damaged > 0,
            _copy: Some(copy),
        });
    }
    let _ = (args, options, stop);
    Ok(Side {
        path: source.to_owned(),
        _copy: None,
        is_damaged: false,
    })
}

#[cfg(all(unix, feature = "imap"))]
struct Untouched;

#[cfg(all(unix, feature = "imap"))]
impl Transform<()> for Untouched {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
        Ok((Edits::new(), ()))
    }
}

#[cfg(all(unix, feature = "imap"))]
struct Told;

#[cfg(all(unix, feature = "imap"))]
impl Observer<()> for Told {
    fn damaged(&self, path: &Path, why: &Detail) {
        say::tell(&say::damaged(path, &why.to_string()));
    }
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

/// A message of OLD without an identical message in NEW, as it is stored in the temporary file.
#[derive(Serialize, Deserialize)]
struct Record {
    source: String,
    index: u64,
    called: String,
    description: Description,
    copy: Option<MailCopy>,
}

/// A message of OLD without an identical message in NEW: its position in the temporary file, and whether NEW contains a
/// version of it.
struct Entry {
    key: Digest,
    at: u64,
    is_found: bool,
    /// Reason why a message of NEW is not a version of this message, although both have the same key. If NEW has several
    /// such messages, the reason is about the last one. `None` if NEW has no message with this key.
    altered: Option<Altered>,
}

#[derive(Default)]
struct Verdict {
    old: u64,
    new: u64,
    identical: u64,
    changed: u64,
    changes: Changes,
    /// The messages that are missing, changed, or lack flags in NEW.
    lost: Vec<(Named, Loss)>,
    is_damaged: bool,
}

#[derive(Serialize)]
struct Named {
    source: String,
    index: u64,
    #[serde(rename = "message")]
    called: String,
}

enum Loss {
    Missing,
    Altered(Altered),
    /// Letters of the missing flags, as in the file names of a Maildir.
    Flags(String),
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
    verdict.is_damaged |= read(
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
    )?;
    let mut others: HashMap<Digest, u32> = HashMap::new();
    verdict.is_damaged |= read(
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
    )?;
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
    verdict.is_damaged |= read(&old.path, options, stop, (is_known, copies), |look| {
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
    })?;
    drop(losses);
    entries.sort_by_key(|entry| (entry.key, entry.at));
    spool.finish().map_err(temporary)?;
    let is_other = |identity: &Digest| others.contains_key(identity);
    let copies = if is_merged {
        Copies::Of(&cuts)
    } else {
        Copies::Ignored
    };
    verdict.is_damaged |= read(&new.path, options, stop, (is_other, copies), |look| {
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
    })?;
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

fn temporary(error: io::Error) -> Error {
    Error::cannot_write("a temporary file")(error)
}

/// Writer of [`Record`]s to a temporary file.
struct Spool {
    writer: BufWriter<File>,
    end: u64,
}

impl Spool {
    fn new() -> Result<Self, Error> {
        let file = tempfile::tempfile().map_err(temporary)?;
        Ok(Self {
            writer: BufWriter::new(file),
            end: 0,
        })
    }

    /// Appends a record, and returns its position in the file.
    fn push(&mut self, record: &Record) -> io::Result<u64> {
        let bytes = serde_json::to_vec(record)?;
        let at = self.end;
        self.writer.write_all(&(bytes.len() as u64).to_be_bytes())?;
        self.writer.write_all(&bytes)?;
        self.end += 8 + bytes.len() as u64;
        Ok(at)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn record(&mut self, at: u64) -> io::Result<Record> {
        let file = self.writer.get_mut();
        file.seek(SeekFrom::Start(at))?;
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        file.take(u64::from_be_bytes(length))
            .read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Finds the messages of OLD that `new` replaces: the message from which embody made it, and all messages of which
    /// it is a copy. `entries` are sorted by key.
    fn place(&mut self, entries: &mut [Entry], new: &Described) -> io::Result<Vec<Changes>> {
        let key = new.key();
        let start = entries.partition_point(|entry| entry.key < key);
        let rest = entries.get_mut(start..).unwrap_or_default();
        let count = rest.partition_point(|entry| entry.key == key);
        let candidates = rest.get_mut(..count).unwrap_or_default();
        let mut found = Vec::new();
        // At most [`MOST_COMPARED`] messages are compared. Otherwise the time would grow with the square of their
        // number if a million messages have the same Message-ID.
        for entry in candidates
            .iter_mut()
            .filter(|entry| !entry.is_found)
            .take(MOST_COMPARED)
        {
            let record = self.record(entry.at)?;
            let is_copy = match (&new.copy, &record.copy) {
                (Some((_, new)), Some(old)) => covers(new, old).is_ok(),
                _ => false,
            };
            if is_copy {
                entry.is_found = true;
                found.push(Changes {
                    merged: 1,
                    ..Changes::default()
                });
                continue;
            }
            match changes(&record.description, &new.description) {
                // With `--merged`, a version of the message from which an attachment was detached is not accepted.
                // `merge` drops a copy only if the copy that it keeps is at least as complete, so this result has lost
                // content.
                Ok(_) if new.copy.is_some() => {}
                Ok(changes) => {
                    entry.is_found = true;
                    found.push(changes);
                    return Ok(found);
                }
                Err(altered) => entry.altered = Some(altered),
            }
        }
        Ok(found)
    }
}

/// The messages for which a [`MailCopy`] is computed: a description that shows whether one message is a copy of
/// another.
#[derive(Clone, Copy)]
enum Copies<'c> {
    /// No messages.
    Ignored,
    /// The messages that get a description, because the other mailbox has no identical message.
    OfDescribed,
    /// The messages of `OfDescribed`, and all messages that have the same key as an unmatched message of OLD. The map
    /// contains these keys, and for each key the positions at which truncated copies in OLD end. The complete copy in
    /// NEW is then compared with a truncated one only up to its end.
    Of(&'c HashMap<Digest, Vec<Place>>),
}

/// The results of reading one message.
struct Look {
    identity: Digest,
    /// Flags of the message in its mailbox. `None` if this format of mailbox cannot store flags.
    flags: Option<Flags>,
    described: Option<Described>,
}

struct Described {
    source: String,
    index: u64,
    called: String,
    description: Description,
    /// The key that all copies of the mail have in common, and the description of this copy. `None` if the command does
    /// not accept copies.
    copy: Option<(Digest, MailCopy)>,
}

impl Described {
    fn key(&self) -> Digest {
        match &self.copy {
            Some((key, _)) => *key,
            None => Digest::of(&self.description.key().to_be_bytes()),
        }
    }
}

/// Calls `see` for each message of a mailbox, in order. Messages for whose digest `describes` returns true are also
/// described. Returns whether a part of the mailbox could not be read.
fn read(
    mailbox: &Path,
    options: &Options,
    stop: &Stop,
    (describes, copies): (impl Fn(&Digest) -> bool + Sync, Copies<'_>),
    see: impl FnMut(Look) + Send,
) -> Result<bool, Error> {
    let reading = Reading {
        describes,
        copies,
        see: Mutex::new((see, false)),
    };
    let summary = Conversion::of(mailbox)
        .options(options)
        .stop(stop)
        .run(&reading, &reading)?;
    let (_, is_damaged) = unpoisoned(reading.see.into_inner());
    Ok(is_damaged || summary.damaged > 0)
}

struct Reading<'r, D, S> {
    describes: D,
    copies: Copies<'r>,
    /// The function that receives the messages, and a flag that is true if a part of the mailbox could not be read.
    see: Mutex<(S, bool)>,
}

impl<D, S> Reading<'_, D, S> {
    fn locked(&self) -> MutexGuard<'_, (S, bool)> {
        unpoisoned(self.see.lock())
    }
}

impl<D: Fn(&Digest) -> bool + Sync, S: FnMut(Look) + Send> Transform<Look> for Reading<'_, D, S> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        (!bytes.is_empty()).then_some(0)
    }

    fn touched(&self, _bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        (0..ends.len()).collect()
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Look), Error> {
        let plain = plain(message.content);
        let identity = identity(&plain);
        let (key, places) = match self.copies {
            Copies::Ignored | Copies::OfDescribed => (None, None),
            Copies::Of(cuts) => {
                let key = copy_key(&plain);
                (Some(key), cuts.get(&key))
            }
        };
        let describe = || {
            let copy = || {
                let key = key.unwrap_or_else(|| copy_key(&plain));
                let places = places.map_or(&[][..], Vec::as_slice);
                (key, MailCopy::of(&plain, places))
            };
            let source = message.source.display().to_string();
            let origin = Origin::new(&source, message.number, message.content);
            Described {
                called: origin.called(),
                source,
                index: message.number,
                description: Description::of(&plain),
                copy: (!matches!(self.copies, Copies::Ignored)).then(copy),
            }
        };
        let look = Look {
            identity,
            flags: flags_of_message(
                message.source,
                message.content,
                message.quoting != Quoting::None,
            ),
            described: (places.is_some() || (self.describes)(&identity)).then(describe),
        };
        Ok((Edits::new(), look))
    }
}

impl<D: Fn(&Digest) -> bool + Sync, S: FnMut(Look) + Send> Observer<Look> for Reading<'_, D, S> {
    fn message(&self, look: Look, _is_refused: bool) {
        (self.locked().0)(look);
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        let mut see = self.locked();
        // Each mailbox is read twice, but damage is reported only once.
        if !see.1 {
            say::tell(&say::damaged(path, &super::wording::detail(why)));
        }
        see.1 = true;
    }

    fn done(&self, summary: &Summary) {
        if summary.oversized > 0 {
            self.locked().1 = true;
        }
    }
}

impl Verdict {
    fn status(&self) -> Status {
        if self.lost.is_empty() && !self.is_damaged {
            Status::Success
        } else {
            Status::Trouble
        }
    }

    fn counts(&self) -> (u64, u64, u64) {
        let mut counts = (0, 0, 0);
        for (_, loss) in &self.lost {
            match loss {
                Loss::Missing => counts.0 += 1,
                Loss::Altered(_) => counts.1 += 1,
                Loss::Flags(_) => counts.2 += 1,
            }
        }
        counts
    }

    fn text(&self, args: &CompareArgs) -> String {
        let mut text = String::new();
        let (missing, altered, flags) = self.counts();
        if !args.quiet {
            let (old, new) = (say::shown(&args.old), say::shown(&args.new));
            let _ = writeln!(
                text,
                "{} in {old}, {} in {new}.",
                messages(self.old),
                messages(self.new)
            );
            let _ = writeln!(
                text,
                "{} identical. {} with changes that embody makes{}.",
                self.identical,
                self.changed,
                of_changes(&self.changes)
            );
            if self.lost.is_empty() && !self.is_damaged {
                let _ = writeln!(text, "No message is missing or has other changes.");
            } else {
                let _ = writeln!(
                    text,
                    "{missing} missing. {altered} with other changes. {flags} with lost flags."
                );
            }
            if self.is_damaged {
                let _ = writeln!(
                    text,
                    "Some messages could not be read, and were not compared."
                );
            }
        }
        for (named, loss) in &self.lost {
            let place = format!("{}, message {}", say::harmless(&named.source), named.index);
            let called = say::harmless_within(&named.called);
            let _ = match loss {
                Loss::Missing => writeln!(text, "missing: {called}: {place}"),
                Loss::Altered(why) => writeln!(text, "altered: {called}: {why}: {place}"),
                Loss::Flags(letters) => {
                    writeln!(
                        text,
                        "flags: {called}: {} lost: {place}",
                        flag_names(letters)
                    )
                }
            };
        }
        text
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        #[derive(Serialize)]
        struct Row<'r> {
            #[serde(flatten)]
            named: &'r Named,
            outcome: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            detail: Option<String>,
        }
        #[derive(Serialize)]
        struct Counts {
            old: u64,
            new: u64,
            identical: u64,
            changed: u64,
            missing: u64,
            altered: u64,
            lost_flags: u64,
            is_whole: bool,
        }
        #[derive(Serialize)]
        struct Whole {
            compare: Counts,
        }
        let mut lines = Vec::new();
        for (named, loss) in &self.lost {
            let (outcome, detail) = match loss {
                Loss::Missing => ("missing", None),
                Loss::Altered(why) => ("altered", Some(why.to_string())),
                Loss::Flags(letters) => ("lost-flags", Some(flag_names(letters))),
            };
            lines.extend(json(&Row {
                named,
                outcome,
                detail,
            })?);
        }
        let (missing, altered, lost_flags) = self.counts();
        lines.extend(json(&Whole {
            compare: Counts {
                old: self.old,
                new: self.new,
                identical: self.identical,
                changed: self.changed,
                missing,
                altered,
                lost_flags,
                is_whole: self.status() == Status::Success,
            },
        })?);
        Ok(lines)
    }
}

fn messages(count: u64) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

/// Returns the counts as text, which is empty if all counts are zero.
fn of_changes(changes: &Changes) -> String {
    let counts = [
        (changes.embedded, "picture embedded", "pictures embedded"),
        (
            changes.detached,
            "attachment detached",
            "attachments detached",
        ),
        (
            changes.restored,
            "attachment restored",
            "attachments restored",
        ),
        (changes.filled, "reference filled", "references filled"),
        (
            changes.resolved,
            "document with links made absolute",
            "documents with links made absolute",
        ),
        (
            changes.opened,
            "message with winmail.dat opened",
            "messages with winmail.dat opened",
        ),
        (
            changes.unmarked,
            "message of Eudora converted back to MIME",
            "messages of Eudora converted back to MIME",
        ),
        (
            changes.merged,
            "message replaced by another copy of the mail",
            "messages replaced by another copy of the mail",
        ),
    ];
    let words: Vec<String> = counts
        .iter()
        .filter_map(|(count, one, several)| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {several}")),
        })
        .collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}

fn flag_names(letters: &str) -> String {
    let names = letters.chars().map(|letter| match letter {
        'D' => "draft",
        'F' => "flagged",
        'P' => "forwarded",
        'R' => "replied",
        'S' => "read",
        _ => "deleted",
    });
    names.collect::<Vec<_>>().join(", ")
}
