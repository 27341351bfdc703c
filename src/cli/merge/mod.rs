//! `embody merge`: merges several mailboxes into one that contains each mail once.
//!
//! Each source is read once. The [`MergeIndex`] keeps the messages in temporary files next to the result, decides which of
//! them are copies of one mail, and returns the most complete copies in order.

mod counts;
mod sources;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) use self::counts::MergeSummary;
use self::counts::counted;
pub(super) use self::sources::{Collector, SourceOrigin, SourceSettings};
use super::args::{MergeArgs, ProgressOption};
use super::exit::{self, ProgramStatus, Signals, limits_on_files_are_failed_writes};
use super::overlap::compare_arguments;
use super::progress::Display;
#[cfg(all(unix, feature = "imap"))]
use super::remote;
use super::say;
use super::streams::{is_standard, print, write_error};
#[cfg(all(unix, feature = "imap"))]
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::mailbox::{
    Envelope, FileCounts, Format, Keywords, MergeResult, Options, PreparedMail, ReadOptions, Stop,
    folder_of, names_a_file, names_an_mbox,
};
use crate::merge::{
    FinishedReport, KeptSelection, MergeIndex, ReadSource, SavedIndex, Tally, finished, record,
    remove_record,
};

/// Maximum number of sources for which the summary contains commands that check the result. For more sources, the
/// summary would be too long with them.
const MOST_PROOFS: usize = 3;

pub(super) fn run(args: &MergeArgs) -> Result<ProgramStatus, Error> {
    let signals = Signals::watch();
    limits_on_files_are_failed_writes();
    let run = MergeRun {
        args,
        options: Options {
            read: args.compressed.added_to(ReadOptions {
                format: args.format,
                may_lack_mail: args.sources.len() > 1,
                ..ReadOptions::default()
            }),
            mbox_variant: args.output_form().1,
            writes: !args.dry_run,
            ..Options::default()
        },
        stop: &signals.stop,
        #[cfg(all(unix, feature = "imap"))]
        policy: args.connection.policy(),
    };
    match run.run() {
        Err(Error::Interrupted) => Ok(signals.status()),
        done => done,
    }
}

/// Returns the sum of the counts, or `None` if one of them is not known.
pub(super) fn united(sum: Option<FileCounts>, more: Option<FileCounts>) -> Option<FileCounts> {
    let mut sum = sum?;
    sum.add(&more?);
    Some(sum)
}

struct MergeRun<'r> {
    args: &'r MergeArgs,
    options: Options,
    stop: &'r Stop,
    /// Options of the connections to servers.
    #[cfg(all(unix, feature = "imap"))]
    policy: Policy,
}

impl MergeRun<'_> {
    fn run(&self) -> Result<ProgramStatus, Error> {
        let args = self.args;
        self.check()?;
        if let Some(report) = self.finished() {
            self.remove_record_at_end();
            return self.tell_again(&report);
        }
        self.check_target()?;
        let directory = folder_of(&args.output);
        let sources = self.sources(directory);
        let origins: Vec<SourceOrigin> = args
            .sources
            .iter()
            .map(|source| sources.origin(source))
            .collect::<Result<_, Error>>()?;
        // A DEST with the name of a file can only be one mailbox.
        let is_flat = args.flat || names_a_file(&args.output);
        let have_folders = origins.iter().any(|origin| origin.has_folders);
        let has_folders = !is_flat && have_folders;
        let form = self.form(&origins, &sources)?;
        self.check_name(form, has_folders)?;
        if have_folders && is_flat && !args.flat && !args.quiet {
            let output = say::shown(&args.output);
            let what = format!(
                "the sources have several folders; {output} will contain the mail of all of them (name a directory to keep the folders)"
            );
            say::tell(&what);
        }
        let mut saved = self.saved(form, has_folders);
        let done = self.merge((&origins, form, has_folders), &sources, saved.as_mut());
        let is_stopped = matches!(done, Err(Error::Interrupted));
        let has_index = saved.is_some();
        let kept = saved.and_then(|saved| saved.end(is_stopped));
        if has_index && kept.is_none() {
            self.remove_record_at_end();
        }
        if is_stopped {
            let what = match kept {
                None => "run the same command again".to_owned(),
                Some(kept) => format!(
                    "run the same command again to continue (the mail that was read is in {}; remove this directory if you do not continue)",
                    say::shown(&kept)
                ),
            };
            say::tell(&format!(
                "stopped by a signal; no result was written; {what}"
            ));
        }
        done
    }

    /// Opens the index that outlasts a stopped run. Returns `None` if nothing can be kept, and the run then uses temporary
    /// files without names.
    fn saved(&self, form: Format, has_folders: bool) -> Option<SavedIndex> {
        let args = self.args;
        #[cfg(all(unix, feature = "imap"))]
        if args.sources.iter().any(|source| remote::is_remote(source)) {
            return None;
        }
        if args.dry_run {
            return None;
        }
        let options = (form, args.format, has_folders, &args.compressed);
        let command = self.command(format_args!("{options:?}"))?;
        SavedIndex::open(&args.output, &command, &args.sources)
    }

    /// Returns a text that is the same for runs with the same options, sources and version of embody.
    fn command(&self, options: fmt::Arguments<'_>) -> Option<String> {
        let absolute = self.args.sources.iter().map(std::path::absolute);
        let sources: Vec<PathBuf> = absolute.collect::<io::Result<_>>().ok()?;
        let version = env!("CARGO_PKG_VERSION");
        Some(format!("{version} {options} {sources:?}"))
    }

    /// Returns everything that determines the result, apart from the files of the sources.
    fn command_of_result(&self) -> Option<String> {
        let args = self.args;
        let how = (args.order, args.output_form(), args.flat, args.format);
        self.command(format_args!("{how:?} {:?}", args.compressed))
    }

    /// Returns the report of an earlier run of this command that was killed after it had finished the result.
    fn finished(&self) -> Option<FinishedReport> {
        let args = self.args;
        if args.dry_run {
            return None;
        }
        finished(&args.output, &self.command_of_result()?, &args.sources)
    }

    fn remove_record_at_end(&self) {
        let output = self.args.output.clone();
        exit::at_end(move || remove_record(&output));
    }

    /// Prints the report of the earlier, stopped run that had already finished the result.
    fn tell_again(&self, report: &FinishedReport) -> Result<ProgramStatus, Error> {
        for line in &report.lines {
            say::tell(line);
        }
        if !self.args.quiet {
            let shown = say::shown(&self.args.output);
            say::tell(&format!(
                "{shown} is complete: a run of the same command wrote it and was then stopped"
            ));
        }
        self.tell(report)
    }

    fn merge(
        &self,
        (origins, form, has_folders): (&[SourceOrigin], Format, bool),
        sources: &SourceSettings<'_>,
        mut saved: Option<&mut SavedIndex>,
    ) -> Result<ProgramStatus, Error> {
        let args = self.args;
        let directory = folder_of(&args.output);
        let mut is_damaged = origins.iter().any(|origin| origin.is_damaged);
        let (index, folders, already) = match &saved {
            None => (MergeIndex::new(directory)?, Vec::new(), Vec::new()),
            Some(saved) => (
                saved.index()?,
                saved.folders().to_vec(),
                saved.sources().to_vec(),
            ),
        };
        for source in &already {
            is_damaged |= !source.is_whole;
        }
        let is_complete = |source: &&ReadSource| source.mailboxes.is_none();
        let complete = already.iter().filter(is_complete).count();
        let remaining = origins.get(complete..).unwrap_or_default();
        let total = || remaining.iter().map(|it| it.source.size(true));
        let display = if args.quiet || args.progress == ProgressOption::Never {
            Display::new(ProgressOption::Never, 0)
        } else {
            Display::new(args.progress, total().sum())
        };
        for line in already.iter().flat_map(|source| &source.lines) {
            display.say(line);
        }
        let partial = already.last().filter(|source| !is_complete(source));
        if !already.is_empty() && !args.quiet {
            let sources = counted(origins.len() as u64, "source", "sources");
            let next = match partial.and_then(|source| source.mailboxes) {
                Some(count) => format!(
                    " and {} of the next one",
                    counted(count as u64, "mailbox", "mailboxes")
                ),
                None => String::new(),
            };
            let line =
                format!("continuing a stopped run that has read {complete} of {sources}{next}");
            display.say(&line);
        }
        let collector = Collector::new(index, has_folders, &folders);
        let mut before = partial.cloned();
        let complete_sources = already.iter().take(complete);
        let (mut files, mut not_read) = (Some(FileCounts::default()), Vec::new());
        let mut without_mail = Vec::new();
        for (number, source) in complete_sources.enumerate() {
            files = united(files, source.files);
            if source.lacks_mail {
                without_mail.push(number);
            }
            not_read.extend(source.not_read.iter().cloned());
        }
        let numbered = origins.iter().zip(&args.sources).enumerate();
        for (number, (origin, source)) in numbered.skip(complete) {
            let before = before.take().unwrap_or(ReadSource::NONE);
            let read = collector.read(
                (number, source),
                (origin, form),
                sources,
                &display,
                (before, saved.as_deref_mut()),
            )?;
            is_damaged |= !read.is_whole;
            files = united(files, read.files);
            not_read.extend(read.not_read);
            if read.lacks_mail {
                without_mail.push(number);
            }
        }
        if let Some(first) = args.sources.first()
            && without_mail.len() == args.sources.len()
        {
            return Err(Error::NotAMailbox {
                path: first.clone(),
                why: say::NO_MAIL.into(),
            });
        }
        let (index, folders) = collector.finish()?;
        let kept = index.decide(
            args.order,
            args.dry_run,
            (self.options.read.pool_limits(), self.stop),
        )?;
        let KeptSelection {
            mut order,
            mails,
            tally,
        } = kept;
        let like = origins.first().map(|origin| origin.source.path());
        let mut merged =
            MergeResult::start(&args.output, form, has_folders, (&self.options, like))?;
        if self.options.writes {
            let next = || order.next_batch();
            merged.add_all((&self.options, self.stop), next, |batch, add| {
                mails.read(batch, |mail| {
                    let labels = if has_folders {
                        mail.folders
                            .iter()
                            .map(|&it| folders.name(it).to_owned())
                            .collect()
                    } else {
                        Vec::new()
                    };
                    add(PreparedMail {
                        content: &mail.content,
                        flags: Some(mail.flags),
                        keywords: Keywords::default(),
                        envelope: Envelope {
                            sender: mail.sender,
                            date: mail.arrived,
                            labels,
                            states: Vec::new(),
                        },
                        separator: mail.separator.as_deref(),
                        member: None,
                    });
                })
            })?;
        }
        let mut lost = Vec::new();
        merged.take_losses(&mut |what, count| lost.push(say::lost_flags(what, count)));
        let report = FinishedReport {
            without_mail,
            ..self.report((&tally, files, &not_read), is_damaged, &lost)?
        };
        merged.finish(&mut |named| {
            if let Some(saved) = &saved
                && let Some(command) = self.command_of_result()
            {
                // Best effort: without the record, a run that is killed from here on cannot be repeated, but the result
                // is complete.
                let _ = record(saved, &command, named, &report);
            }
        })?;
        drop(display);
        self.tell(&report)
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
            args.connection.check_unused()?;
        }
        Ok(())
    }

    /// Checks that the result can be written.
    fn check_target(&self) -> Result<(), Error> {
        let args = self.args;
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
                "the destination already exists, and merge does not overwrite; name a new file or directory"
                    .to_owned();
            return failed(io::ErrorKind::AlreadyExists, what);
        }
        Ok(())
    }

    fn sources<'s>(&'s self, directory: &'s Path) -> SourceSettings<'s> {
        SourceSettings {
            options: &self.options,
            stop: self.stop,
            directory,
            #[cfg(all(unix, feature = "imap"))]
            imap: &self.args.imap,
            #[cfg(all(unix, feature = "imap"))]
            policy: &self.policy,
        }
    }

    fn form(
        &self,
        origins: &[SourceOrigin],
        sources: &SourceSettings<'_>,
    ) -> Result<Format, Error> {
        match (self.args.output_form().0, origins.first()) {
            (form, _) if form != Format::Auto => Ok(form),
            // A DEST with the name of a file can only be one mailbox.
            _ if names_an_mbox(&self.args.output) => Ok(Format::Mbox),
            (_, Some(first)) => sources.form_of(first),
            (_, None) => Ok(Format::Mbox),
        }
    }

    fn check_name(&self, form: Format, has_folders: bool) -> Result<(), Error> {
        let output = &self.args.output;
        let is_directory = has_folders || !form.is_file();
        let shown = output.display();
        let what = match (is_directory, names_a_file(output)) {
            (true, true) => format!(
                "{shown} is the name of a file, but the result would be a directory; name a new directory, or use --output-format mbox"
            ),
            (false, _) if output.is_dir() => format!(
                "{shown} is a directory, but the result would be an mbox; name a new file, or use --output-format maildir"
            ),
            _ => return Ok(()),
        };
        Err(Error::Usage(what.into()))
    }

    fn report(
        &self,
        (tally, files, not_read): (&Tally, Option<FileCounts>, &[(String, String)]),
        is_damaged: bool,
        lost: &[String],
    ) -> Result<FinishedReport, Error> {
        let summary = MergeSummary {
            sources: &self.args.sources,
            tally,
            files,
            not_read,
        };
        let json = summary.json("merge").map_err(write_error)?;
        Ok(FinishedReport {
            lines: Vec::new(),
            text: lost
                .iter()
                .fold(summary.text(false), |text, line| text + line + "\n"),
            json: String::from_utf8_lossy(&json).into_owned(),
            is_damaged,
            without_mail: Vec::new(),
        })
    }

    fn tell(&self, report: &FinishedReport) -> Result<ProgramStatus, Error> {
        let args = self.args;
        let is_damaged = report.is_damaged;
        if args.json {
            print(report.json.as_bytes())?;
        }
        if !args.quiet {
            let mut text = report.text.clone();
            if args.dry_run {
                text.insert_str(0, "dry run, no result was written: ");
            }
            if is_damaged {
                text.push_str("Some files or messages could not be read completely, and are missing or incomplete in the result. Do what the lines above say about them, and run merge again with a new DEST.\n");
            }
            if !args.dry_run && !is_damaged {
                text.push_str(&self.proofs(&report.without_mail));
            }
            say::tell(text.trim_end());
        }
        Ok(if is_damaged {
            ProgramStatus::Trouble
        } else {
            ProgramStatus::Success
        })
    }

    /// Returns the commands that check that no mail was lost. `without_mail` are the indices of the sources without mail,
    /// which `compare` cannot read.
    fn proofs(&self, without_mail: &[usize]) -> String {
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
        let text = |path: &Path| path.display().to_string();
        // For a result with folders in the format of Thunderbird, the mails are in a directory (`.sbd`) next to the
        // output, and the output itself is an empty mbox. The command must then name the directory.
        let mut folders = args.output.clone().into_os_string();
        folders.push(".sbd");
        let folders = PathBuf::from(folders);
        let is_empty = || fs::metadata(&args.output).is_ok_and(|it| it.is_file() && it.len() == 0);
        let new = if folders.is_dir() && is_empty() {
            text(&folders)
        } else {
            text(&args.output)
        };
        let sources = args.sources.iter().enumerate();
        let with_mail = sources.filter(|(index, _)| !without_mail.contains(index));
        let lines = with_mail.map(|(_, old)| {
            let arguments = compare_arguments(&text(old), &new, &args.compressed.ignore);
            format!("to check that no mail was lost: embody compare --merged {arguments}\n")
        });
        lines.collect()
    }
}
