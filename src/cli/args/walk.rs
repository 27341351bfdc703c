//! The options for reading mailboxes, and for output about a run.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

#[cfg(all(unix, feature = "imap"))]
use super::imap::{ImapArgs, ReplacingArgs};
use crate::cli::values::{
    OutputFormat, at_least_one, output_format, output_format_details, output_format_help, size,
};
use crate::engine::Mode;
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::mailbox::ReadOptions;
use crate::mailbox::{self, ByLabel, Format, IgnorePatterns, check_backup_suffix};

pub(super) const MAILBOXES: &str = "Mailboxes";

#[derive(Args, Debug)]
#[group(skip)]
#[command(next_help_heading = MAILBOXES)]
pub(crate) struct WalkArgs {
    /// Write the result to this new file or directory
    ///
    /// A file whose name ends with .gz, .zst, .bz2 or .xz is compressed.
    #[arg(short, long, value_name = "DEST", help_heading = None::<&'static str>)]
    pub output: Option<PathBuf>,
    /// Replace each SOURCE with its result
    ///
    /// The source is locked during the run. It is replaced once the result is complete.
    #[arg(long, help_heading = None::<&'static str>)]
    pub in_place: bool,
    /// Format of the sources
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    format: Format,
    #[arg(
        long,
        value_name = "WHAT",
        conflicts_with = "in_place",
        value_parser = output_format,
        help = output_format_help(),
        long_help = format!(
            "{}\n\n{} docs/mailboxes.md describes what becomes of flags and dates.",
            output_format_help(),
            output_format_details()
        )
    )]
    output_format: Option<OutputFormat>,
    /// Leave out messages that are marked as deleted
    ///
    /// Thunderbird keeps deleted messages in its mailboxes until it compacts them, and marks them in X-Mozilla-Status.
    /// Without --output-format, an mbox is then written as mboxrd. Single messages (.eml) are not left out.
    #[arg(long, conflicts_with = "in_place")]
    skip_deleted: bool,
    /// Make one mailbox per label of Google Takeout
    ///
    /// DEST is a directory of mailboxes. The labels are those in X-Gmail-Labels. Each mail is written to one mailbox:
    /// that of the first label that you made, otherwise INBOX, Sent, Drafts, Junk, Trash or Archive. With
    /// --by-label=all, a mail with several labels is written to each of their mailboxes.
    #[arg(
        long,
        value_name = "first|all",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "first",
        hide_possible_values = true,
        conflicts_with = "in_place"
    )]
    by_label: Option<ByLabel>,
    /// Number of threads [default: one for each core]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// With --in-place: keep the old file under a name with this suffix
    #[arg(
        long,
        value_name = "SUFFIX",
        conflicts_with = "output",
        value_parser = OsStringValueParser::new().try_map(|it| check_backup_suffix(&it).map(|()| it))
    )]
    backup: Option<std::ffi::OsString>,
    /// Preview a run: nothing is written or retrieved
    #[arg(short = 'n', long, help_heading = None::<&'static str>)]
    pub dry_run: bool,
    /// Write a page about the run to this HTML file
    ///
    /// The page lists the content that was saved, that is gone, and that a later run may get. The page opens offline. It replaces only an earlier page of embody. Before a run, embody inspect --html shows what
    /// a mailbox contains.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", help_heading = None::<&'static str>)]
    pub html: Option<PathBuf>,
    /// Show progress on stderr
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub progress: ProgressOption,
    #[command(flatten)]
    pub(crate) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub imap: ImapArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub replacing: ReplacingArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct CompressedArgs {
    /// Maximum size of a compressed source after decompression [default: 64G]
    ///
    /// The mail in a .pst file may also be of this size, or of three times the size of the file if that is more. Above 64M, a source may expand to at most 1000 times its size. The rest of a larger source is not read, and
    /// an error message names the source. The exit status is 1, and the source is not replaced.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_expanded: Option<u64>,
    /// Ignore files and directories with this name or path
    ///
    /// The character * matches any characters. A pattern with a slash is a path below the source, otherwise a name. Ignored
    /// files are not opened, and the summary counts them. Use the option for a file that embody cannot read and that you do
    /// not need: such a file otherwise makes the exit status 1.
    #[arg(long, value_name = "PATTERN", action = clap::ArgAction::Append)]
    pub(crate) ignore: Vec<std::ffi::OsString>,
}

impl CompressedArgs {
    pub(crate) fn added_to(&self, options: ReadOptions) -> ReadOptions {
        ReadOptions {
            max_expanded: self.max_expanded.unwrap_or(options.max_expanded),
            ignore: IgnorePatterns::new(&self.ignore),
            ..options
        }
    }
}

/// When progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ProgressOption {
    /// A progress bar on a terminal, otherwise a line every ten seconds.
    Auto,
    /// A progress bar on a terminal, otherwise a line every second.
    Always,
    /// No progress.
    Never,
}

impl WalkArgs {
    pub(crate) fn walks(&self) -> bool {
        self.in_place || self.output.is_some() || self.dry_run
    }

    /// Returns the file of a command that reads one message, if a file was named. Options for mailboxes are an error
    /// here.
    pub(crate) fn one_message<'s>(
        &self,
        sources: &'s [PathBuf],
        no_resume: bool,
    ) -> Result<Option<&'s Path>, Error> {
        let is_told_more = no_resume
            || self.jobs.is_some()
            || self.backup.is_some()
            || self.format != Format::Auto
            || self.output_format.is_some()
            || self.by_label.is_some()
            || self.skip_deleted
            || self.progress != ProgressOption::Auto
            || self.html.is_some()
            || self.compressed.max_expanded.is_some()
            || !self.compressed.ignore.is_empty();
        let what = match sources {
            [_, result] if !result.exists() => {
                return Err(Error::Usage(
                    format!(
                        "this command reads only one message; if {} is the result, write --output before its name",
                        result.display()
                    )
                    .into(),
                ));
            }
            [_, _, ..] => {
                "this command reads only one message; for several sources, name --output or --in-place, as in --output FOLDER"
            }
            _ if is_told_more => {
                "--format, --output-format, --by-label, --skip-deleted, --jobs, --backup, --html, --progress, --max-expanded, --ignore and --no-resume work only with --output or --in-place"
            }
            _ => return Ok(sources.first().map(PathBuf::as_path)),
        };
        Err(Error::Usage(what.into()))
    }

    #[cfg(all(unix, feature = "imap"))]
    pub(crate) fn check_replacing(&self, are_remote: bool) -> Result<(), Error> {
        let what = match are_remote && self.output.is_none() {
            true if self.format != Format::Auto || self.backup.is_some() => {
                "--format and --backup work only with mail in files, not with mail on a server"
            }
            false if self.replacing != ReplacingArgs::default() => {
                "--state, --trash and --replace need --in-place and sources that begin with imaps:"
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(what.into()))
    }

    /// Returns the mode of the run. With `probes`, a dry run checks whether the content is available.
    pub(crate) fn mode(&self, probes: bool) -> Mode {
        match (self.dry_run, probes) {
            (false, _) => Mode::Run,
            (true, false) => Mode::DryRun,
            (true, true) => Mode::Probe,
        }
    }

    /// Returns the options for reading mailboxes. Messages that wait for a server use no core, so more messages than
    /// cores are processed in parallel.
    pub(crate) fn options(&self, policy: &Policy, mode: Mode) -> mailbox::Options {
        let defaults = ReadOptions::default();
        let jobs = self.jobs.unwrap_or(defaults.jobs);
        let waits = !policy.fetch.is_empty();
        let read = self.compressed.added_to(ReadOptions {
            format: self.format,
            jobs,
            max_in_flight: if waits {
                policy.limits.in_flight.max(jobs)
            } else {
                jobs
            },
            ..defaults
        });
        mailbox::Options {
            read,
            output_format: self.output_format.unwrap_or_default().format,
            mbox_variant: self.output_format.and_then(|it| it.variant),
            by_label: self.by_label,
            skip_deleted: self.skip_deleted,
            backup: self.backup.clone(),
            waits,
            writes: mode.writes(),
            ..mailbox::Options::default()
        }
    }
}

#[derive(Args, Default, Debug)]
#[group(skip)]
pub(crate) struct ResumeArgs {
    /// Keep nothing for resuming
    ///
    /// Without this option, a list of the complete files and the responses of servers are kept in DEST.embody-resume
    /// until the output is complete. If the run is stopped, the same command resumes it. See docs/cache.md.
    #[arg(long, help_heading = MAILBOXES)]
    pub no_resume: bool,
}

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = None::<&'static str>)]
pub(crate) struct SayingArgs {
    /// Append one JSON line per reference to this file
    ///
    /// The name - means standard error.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print only errors
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print more: each reference, with Message-ID and Subject
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum OutputVolume {
    /// Errors only.
    Quiet,
    /// For a single message, one line for each reference. For mailboxes, a summary.
    Normal,
    /// In addition, one line for each reference in mailboxes, and more details such as Message-ID and subject.
    Verbose,
}

impl SayingArgs {
    pub(crate) fn tells_rows(&self) -> bool {
        self.report.is_some() || self.verbose
    }

    pub(crate) fn volume(&self) -> OutputVolume {
        match (self.quiet, self.verbose) {
            (true, _) => OutputVolume::Quiet,
            (false, true) => OutputVolume::Verbose,
            (false, false) => OutputVolume::Normal,
        }
    }
}
