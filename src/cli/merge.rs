//! `embody merge`: merges several mailboxes into one that contains each mail once.
//!
//! Each source is read once. The [`Index`] keeps the messages in temporary files next to the result, decides which of
//! them are copies of one mail, and returns the most complete copies in order.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::args::{MergeArgs, ProgressOption};
use super::exit::{Signals, Status, limits_on_files_are_failed_writes};
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::report_file::json;
use super::say;
use super::streams::{is_standard, print, size, write_error};
use super::survey::quoted;
use super::totals::Totals;
use super::wording;
use crate::edit::Edits;
use crate::engine::Mode;
#[cfg(all(unix, feature = "imap"))]
use crate::engine::policy::Policy;
use crate::engine::report::Detail;
use crate::error::{Error, unpoisoned};
use crate::expand::envelope;
#[cfg(all(unix, feature = "imap"))]
use crate::imap::download::Download;
use crate::mailbox::{
    Envelope, Flags, Format, Handler, Letter, Merged, Message, Observer, Options, Stop, Transform,
    folder_of, looked_at, names_a_file, read_letters,
};
use crate::merge::{Arrived, Index, MOST_SOURCES, Numbers, Tally};

/// Maximum number of pairs of sources for which the summary prints the number of common mails.
const MOST_PAIRS: usize = 10;

/// Maximum number of sources for which the summary contains commands that check the result. For more sources, the
/// summary would be too long with them.
const MOST_PROOFS: usize = 3;

pub(super) fn run(args: &MergeArgs) -> Result<Status, Error> {
    let signals = Signals::watch();
    limits_on_files_are_failed_writes();
    let run = Run {
        args,
        options: args.compressed.added_to(Options {
            format: args.format,
            mode: match args.dry_run {
                true => Mode::DryRun,
                false => Mode::Run,
            },
            ..Options::default()
        }),
        stop: &signals.stop,
    };
    match run.run() {
        Err(Error::Interrupted) => {
            let what = "stopped by a signal; nothing was written; run the same command again";
            say::tell(what);
            Ok(signals.status())
        }
        done => done,
    }
}

struct Run<'r> {
    args: &'r MergeArgs,
    options: Options,
    stop: &'r Stop,
}

/// A source that is read: a path, or the temporary copy of a mailbox on a server.
struct Origin {
    path: PathBuf,
    /// Whether the source has several folders.
    has_folders: bool,
    /// Temporary copy of a mailbox on a server. Dropping it removes the copy.
    _copy: Option<tempfile::TempDir>,
    is_damaged: bool,
}

/// Receiver that adds the messages of all sources to the index.
struct Collecting {
    index: Index,
    source: u32,
    folder: u32,
}

impl Run<'_> {
    fn run(&self) -> Result<Status, Error> {
        let args = self.args;
        self.check()?;
        let directory = folder_of(&args.output);
        let origins = args.sources.iter().map(|source| self.origin(source));
        let origins: Vec<Origin> = origins.collect::<Result<_, Error>>()?;
        let has_folders = !args.flat && origins.iter().any(|origin| origin.has_folders);
        let form = self.form(&origins)?;
        self.check_name(form, has_folders)?;
        let mut is_damaged = origins.iter().any(|origin| origin.is_damaged);

        let total = || {
            origins
                .iter()
                .map(|it| size(&it.path, &self.options, self.stop, true))
        };
        let display = match args.quiet || args.progress == ProgressOption::Never {
            true => Display::new(ProgressOption::Never, 0),
            false => Display::new(args.progress, total().sum()),
        };
        let collecting = Arc::new(Mutex::new(Some(Collecting {
            index: Index::new(directory)?,
            source: 0,
            folder: 0,
        })));
        let receiver = Arc::clone(&collecting);
        let take = move |letter: &Letter<'_>, flags: Flags| {
            let mut collecting = unpoisoned(receiver.lock());
            let Some(collecting) = &mut *collecting else {
                return Ok(());
            };
            collecting.index.add(&Arrived {
                source: collecting.source,
                folder: collecting.folder,
                letter,
                flags,
            })
        };
        let handler: Handler = Arc::new(Mutex::new(take));
        let mut folders = Numbers::default();
        for (number, (origin, source)) in (0..).zip(origins.iter().zip(&args.sources)) {
            let mut enter = |levels: &[String]| {
                let name = match levels {
                    _ if !has_folders => String::new(),
                    [] => named_by(source),
                    levels => levels.join("/"),
                };
                if let Some(collecting) = &mut *unpoisoned(collecting.lock()) {
                    collecting.source = number;
                    collecting.folder = folders.of(&name);
                }
            };
            let reading = Reading { display: &display };
            let done = read_letters(
                &origin.path,
                (form, &self.options),
                (&reading, &reading),
                self.stop,
                &mut enter,
                &handler,
            )?;
            is_damaged |= done.damaged > 0 || done.oversized > 0;
        }
        let Some(Collecting { index, .. }) = unpoisoned(collecting.lock()).take() else {
            return Err(Error::Interrupted);
        };
        let mut kept = index.decide(args.order, self.stop)?;
        let like = origins.first().map_or(Path::new(""), |origin| &origin.path);
        let mut merged = Merged::start(&args.output, form, has_folders, (&self.options, like))?;
        if self.options.mode.writes() {
            while let Some(mail) = kept.next()? {
                self.stop.check()?;
                let labels = match has_folders {
                    true => mail
                        .folders
                        .iter()
                        .map(|&it| folders.name(it).to_owned())
                        .collect(),
                    false => Vec::new(),
                };
                merged.put(Letter {
                    content: &mail.content,
                    flags: Some(mail.flags),
                    envelope: Envelope {
                        sender: mail.sender,
                        date: mail.arrived,
                        labels,
                        states: Vec::new(),
                    },
                    separator: mail.separator.as_deref(),
                })?;
            }
        }
        merged.finish()?;
        drop(display);
        self.tell(&kept.tally, is_damaged)?;
        Ok(match is_damaged {
            true => Status::Trouble,
            false => Status::Success,
        })
    }

    fn check(&self) -> Result<(), Error> {
        let args = self.args;
        if args.sources.iter().any(|source| is_standard(source)) {
            let what = "merge cannot read standard input; name files or directories";
            return Err(Error::Usage(what.into()));
        }
        if is_standard(&args.output) {
            let what = "merge cannot write to standard output; name a new file or directory";
            return Err(Error::Usage(what.into()));
        }
        #[cfg(all(unix, feature = "imap"))]
        if !args.sources.iter().any(|source| remote::is_remote(source)) {
            remote::are_remote(&args.sources, &args.imap)?;
        }
        let failed = |kind, what: String| {
            let error = io::Error::new(kind, what);
            Err(Error::cannot_write(args.output.display())(error))
        };
        let directory = folder_of(&args.output);
        if !directory.is_dir() {
            let what = format!(
                "the directory {} does not exist; create it first",
                directory.display()
            );
            return failed(io::ErrorKind::NotFound, what);
        }
        let is_empty_directory =
            || fs::read_dir(&args.output).is_ok_and(|mut it| it.next().is_none());
        if fs::symlink_metadata(&args.output).is_ok() && !is_empty_directory() {
            let what =
                "it already exists, and merge does not overwrite; name a new file or directory"
                    .to_owned();
            return failed(io::ErrorKind::AlreadyExists, what);
        }
        Ok(())
    }

    fn origin(&self, source: &Path) -> Result<Origin, Error> {
        #[cfg(all(unix, feature = "imap"))]
        if let Some(account) = remote::account(source, &self.args.imap, &Policy::default())? {
            let directory = folder_of(&self.args.output);
            let copy = tempfile::Builder::new()
                .prefix(".embody-")
                .tempdir_in(directory);
            let copy = copy.map_err(Error::cannot_write(directory.display()))?;
            let display = Display::new(ProgressOption::Never, 0);
            let reading = Reading { display: &display };
            let options = &Options {
                mode: Mode::Run,
                ..self.options.clone()
            };
            let download = Download {
                account: &account,
                output: copy.path(),
                options,
                transform: &reading,
                observer: &reading,
                stop: self.stop,
            };
            let done = download.run();
            let summary = done.map_err(|why| remote::error(why, &account))?;
            return Ok(Origin {
                path: copy.path().to_owned(),
                has_folders: true,
                _copy: Some(copy),
                is_damaged: summary.damaged > 0,
            });
        }
        let (_, has_folders) = looked_at(source, &self.options, self.stop)?;
        Ok(Origin {
            path: source.to_owned(),
            has_folders,
            _copy: None,
            is_damaged: false,
        })
    }

    fn form(&self, origins: &[Origin]) -> Result<Format, Error> {
        match (self.args.output_format, origins.first()) {
            (Some(form), _) if form != Format::Auto => Ok(form),
            (_, Some(first)) => Ok(looked_at(&first.path, &self.options, self.stop)?.0),
            (_, None) => Ok(Format::Mbox),
        }
    }

    fn check_name(&self, form: Format, has_folders: bool) -> Result<(), Error> {
        let output = &self.args.output;
        let is_directory = has_folders || form != Format::Mbox;
        let shown = output.display();
        let what = match (is_directory, names_a_file(output)) {
            (true, true) if has_folders => format!(
                "{shown} is the name of a file, but the sources have several folders, so the result would be a directory; name a new directory, or make one mailbox with --flat"
            ),
            (true, true) => format!(
                "{shown} is the name of a file, but the result would be a directory; name a new directory"
            ),
            (false, _) if output.is_dir() => format!(
                "{shown} is a directory, but the result would be an mbox; name a new file, or use --output-format maildir"
            ),
            _ => return Ok(()),
        };
        Err(Error::Usage(what.into()))
    }

    fn tell(&self, tally: &Tally, is_damaged: bool) -> Result<(), Error> {
        let args = self.args;
        if args.json {
            print(&self.json(tally).map_err(write_error)?)?;
        }
        if !args.quiet {
            say::tell(self.text(tally, is_damaged).trim_end());
        }
        Ok(())
    }

    fn text(&self, tally: &Tally, is_damaged: bool) -> String {
        let args = self.args;
        let mut text = String::new();
        if args.dry_run {
            text.push_str("dry run, no result was written: ");
        }
        let sources = counted(args.sources.len() as u64, "source", "sources");
        let _ = writeln!(
            text,
            "{} in {sources}, {} in the result.",
            counted(tally.messages, "message", "messages"),
            counted(tally.kept, "mail", "mails"),
        );
        let saved = tally.bytes.saturating_sub(tally.kept_bytes);
        if tally.messages > tally.kept {
            let _ = writeln!(
                text,
                "{} ({}) left out: {} identical to another copy, {} different but not more complete.",
                counted(
                    tally.messages - tally.kept,
                    "additional copy",
                    "additional copies"
                ),
                say::bytes(saved),
                tally.identical,
                tally.dropped,
            );
        }
        if tally.filled > 0 {
            let _ = writeln!(
                text,
                "{} missing in copies that were left out; the kept copies contain the content.",
                counted(tally.filled, "part is", "parts are"),
            );
        }
        if tally.completed > 0 {
            let _ = writeln!(
                text,
                "{} cut off; the result contains the complete mail.",
                counted(tally.completed, "copy is", "copies are"),
            );
        }
        for (difference, count) in &tally.differences {
            let _ = writeln!(
                text,
                "{} (difference: {}). All are kept; some may be forged or edited.",
                counted(
                    *count,
                    "mail has the Message-ID of another mail, but is a different mail",
                    "mails have the Message-ID of another mail, but are different mails"
                ),
                difference.words(),
            );
        }
        if tally.ambiguous > 0 {
            let _ = writeln!(
                text,
                "{}",
                counted(
                    tally.ambiguous,
                    "incomplete copy fits several mails with its Message-ID, so it is kept as a mail of its own.",
                    "incomplete copies fit several mails with their Message-IDs, so they are kept as mails of their own."
                ),
            );
        }
        if tally.uncompared > 0 {
            let _ = writeln!(
                text,
                "{} kept without a comparison, because too many different mails have the same Message-ID. The result may contain some of them more than once.",
                counted(tally.uncompared, "mail was", "mails were"),
            );
        }
        let mut pairs: Vec<_> = tally.pairs.iter().collect();
        pairs.sort_by_key(|(pair, count)| (std::cmp::Reverse(**count), **pair));
        for ((one, other), count) in pairs.iter().take(MOST_PAIRS) {
            let named = |number: u32| args.sources.get(number as usize).map(|it| say::shown(it));
            let [one, other] = [*one, *other].map(|number| named(number).unwrap_or_default());
            let mails = counted(**count, "mail is", "mails are");
            let _ = writeln!(text, "{mails} in both {one} and {other}.");
        }
        if pairs.len() > MOST_PAIRS {
            let more = pairs.len() - MOST_PAIRS;
            let _ = writeln!(
                text,
                "{} mails in common; --json lists all pairs.",
                counted(
                    more as u64,
                    "more pair of sources has",
                    "more pairs of sources have"
                ),
            );
        }
        if tally.widespread > 0 {
            let mails = counted(tally.widespread, "mail is", "mails are");
            let _ = writeln!(
                text,
                "{mails} in more than {MOST_SOURCES} sources, and not counted in the pairs."
            );
        }
        if is_damaged {
            text.push_str("Some messages could not be read completely; the lines above name them. They are missing or incomplete in the result. Get an undamaged copy of the source, and run merge again with a new DEST.\n");
        }
        if !args.dry_run && !is_damaged {
            text.push_str(&self.proofs());
        }
        text
    }

    /// Returns the commands that check that no mail was lost.
    fn proofs(&self) -> String {
        let args = self.args;
        let is_plain = |path: &Path| {
            path.to_str()
                .is_some_and(|it| !it.chars().any(char::is_control))
        };
        #[cfg(all(unix, feature = "imap"))]
        if args.sources.iter().any(|source| remote::is_remote(source)) {
            return String::new();
        }
        let paths = args.sources.iter().chain([&args.output]);
        if args.sources.len() > MOST_PROOFS || !paths.into_iter().all(|path| is_plain(path)) {
            return String::new();
        }
        let shell = |path: &Path| quoted(&path.display().to_string());
        // For a result with folders in the format of Thunderbird, the mails are in a directory (`.sbd`) next to the
        // output, and the output itself is an empty mbox. The command must then name the directory.
        let mut folders = args.output.clone().into_os_string();
        folders.push(".sbd");
        let folders = PathBuf::from(folders);
        let is_empty = || fs::metadata(&args.output).is_ok_and(|it| it.is_file() && it.len() == 0);
        let new = match folders.is_dir() && is_empty() {
            true => shell(&folders),
            false => shell(&args.output),
        };
        let lines = args.sources.iter().map(|old| {
            format!(
                "to check that no mail was lost: embody compare --merged {} {new}\n",
                shell(old)
            )
        });
        lines.collect()
    }

    fn json(&self, tally: &Tally) -> io::Result<Vec<u8>> {
        #[derive(Serialize)]
        struct Pair {
            sources: [String; 2],
            mails: u64,
        }
        #[derive(Serialize)]
        struct Kind {
            difference: &'static str,
            mails: u64,
        }
        #[derive(Serialize)]
        struct Counts {
            messages: u64,
            bytes: u64,
            kept: u64,
            kept_bytes: u64,
            identical: u64,
            dropped: u64,
            filled: u64,
            completed: u64,
            ambiguous: u64,
            uncompared: u64,
            different: Vec<Kind>,
            widespread: u64,
            pairs: Vec<Pair>,
        }
        #[derive(Serialize)]
        struct Whole {
            merge: Counts,
        }
        let named = |number: u32| {
            let source = self.args.sources.get(number as usize);
            source
                .map(|it| it.display().to_string())
                .unwrap_or_default()
        };
        let pairs = tally.pairs.iter().map(|(&(one, other), &mails)| Pair {
            sources: [one, other].map(named),
            mails,
        });
        let different = tally.differences.iter().map(|(difference, &mails)| Kind {
            difference: difference.words(),
            mails,
        });
        json(&Whole {
            merge: Counts {
                messages: tally.messages,
                bytes: tally.bytes,
                kept: tally.kept,
                kept_bytes: tally.kept_bytes,
                identical: tally.identical,
                dropped: tally.dropped,
                filled: tally.filled,
                completed: tally.completed,
                ambiguous: tally.ambiguous,
                uncompared: tally.uncompared,
                different: different.collect(),
                widespread: tally.widespread,
                pairs: pairs.collect(),
            },
        })
    }
}

/// Returns the name of the new folder for a source that is a single mailbox.
fn named_by(source: &Path) -> String {
    let name = match names_a_file(source) {
        true => source.file_stem(),
        false => source.file_name(),
    };
    let name = name.map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "INBOX".to_owned())
}

fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

/// The transform and the observer for reading a source: messages stay unchanged, and progress and damage are shown.
struct Reading<'r> {
    display: &'r Display,
}

impl Transform<()> for Reading<'_> {
    fn next_touch(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }

    fn transform(&self, _message: &Message<'_>) -> Result<(Edits, ()), Error> {
        Ok((Edits::new(), ()))
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }
}

impl Observer<()> for Reading<'_> {
    fn advance(&self, bytes: u64, messages: u64) {
        let none = Totals::default();
        self.display.advance(bytes, messages, [&none, &none]);
    }

    fn expects(&self, bytes: u64) {
        self.display.expect(bytes);
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        self.display.say(&say::damaged(path, &wording::detail(why)));
    }

    fn skipped(&self, path: &Path, what: &'static str) {
        self.display.say(&say::skipped(path, what));
    }

    fn passed_over(&self, path: &Path, what: &str) {
        self.display.say(&say::skipped(path, what));
    }
}
