//! How mailboxes are walked, and what is said.

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

#[cfg(all(unix, feature = "imap"))]
use super::imap::{ImapArgs, ReplacingArgs};
use crate::cli::values::{at_least_one, output_format, size};
use crate::error::Error;
use crate::mailbox::{self, ByLabel, Effect, Format, check_backup_suffix};
use crate::policy::Policy;

#[derive(Args, Debug)]
#[group(skip)]
#[command(next_help_heading = "How mailboxes are read and written")]
pub struct WalkArgs {
    /// The result: a new file or folder [default: none]
    ///
    /// A file whose name ends with .gz, .zst, .bz2 or .xz is compressed so.
    #[arg(long, value_name = "DEST", help_heading = None::<&'static str>)]
    pub output: Option<PathBuf>,
    /// Replace each source, under lock [default: off]
    #[arg(long, help_heading = None::<&'static str>)]
    pub in_place: bool,
    /// What the sources are
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    format: Format,
    /// What the result is to be: auto, mbox, maildir or eml [default: auto, as the source]
    ///
    /// eml is a folder of messages, each in a file of its own; of one message it is a file. docs/mailboxes.md says what
    /// becomes of flags and dates.
    #[arg(long, value_name = "WHAT", conflicts_with = "in_place", value_parser = output_format)]
    output_format: Option<Format>,
    /// Make a mailbox for each label of Google Takeout (X-Gmail-Labels) [default: off]
    ///
    /// DEST is a folder of them. A mail with several labels stands once in each; with --by-label=first only in that of
    /// its first.
    #[arg(
        long,
        value_name = "all|first",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
        hide_possible_values = true,
        conflicts_with = "in_place"
    )]
    by_label: Option<ByLabel>,
    /// Threads for the processor's work [default: one for each core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// With --in-place: keep the old file; its name ends with this [default: none]
    #[arg(
        long,
        value_name = "SUFFIX",
        conflicts_with = "output",
        value_parser = OsStringValueParser::new().try_map(|it| check_backup_suffix(&it).map(|()| it))
    )]
    backup: Option<std::ffi::OsString>,
    /// Write nothing, retrieve nothing; say what would be done [default: off]
    #[arg(long, help_heading = None::<&'static str>)]
    pub dry_run: bool,
    /// A progress bar on a terminal, lines elsewhere
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub progress: ProgressOption,
    #[command(flatten)]
    compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub imap: ImapArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub replacing: ReplacingArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
pub struct CompressedArgs {
    /// What one compressed file may expand to [default: 64G]
    ///
    /// It may also expand to 1000 times what it is at most, once that is more than 64M. What is beyond is said, and not
    /// read; the exit status is 1, and such a file is never replaced.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_expanded: Option<u64>,
}

impl CompressedArgs {
    pub fn added_to(&self, options: mailbox::Options) -> mailbox::Options {
        mailbox::Options {
            max_expanded: self.max_expanded.unwrap_or(options.max_expanded),
            ..options
        }
    }
}

/// When progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProgressOption {
    /// A bar on a terminal, a line now and then elsewhere.
    Auto,
    /// A bar, or lines where there is no terminal, at once.
    Always,
    /// Nothing.
    Never,
}

impl WalkArgs {
    pub fn walks(&self) -> bool {
        self.in_place || self.output.is_some() || self.dry_run
    }

    /// The file that such a command filters, if one is named.
    pub fn one_message<'s>(
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
            || self.progress != ProgressOption::Auto
            || self.compressed.max_expanded.is_some();
        let what = match sources {
            [_, _, ..] => "one message at a time; name --output or --in-place for several sources",
            _ if is_told_more => {
                "--format, --output-format, --by-label, --jobs, --backup, --progress, --max-expanded and --no-resume go with --output or --in-place"
            }
            _ => return Ok(sources.first().map(PathBuf::as_path)),
        };
        Err(Error::Usage(what.into()))
    }

    #[cfg(all(unix, feature = "imap"))]
    pub fn check_replacing(&self, are_remote: bool) -> Result<(), Error> {
        let what = match are_remote && self.output.is_none() {
            true if self.format != Format::Auto || self.backup.is_some() => {
                "--format and --backup are of files, and an account has none"
            }
            false if self.replacing != ReplacingArgs::default() => {
                "--state, --trash and --replace go with imaps: sources and --in-place"
            }
            _ => return Ok(()),
        };
        Err(Error::Usage(what.into()))
    }

    /// While messages wait for a network, more of them are worked on than there are cores.
    pub fn options(&self, policy: &Policy) -> mailbox::Options {
        let defaults = mailbox::Options::default();
        let jobs = self.jobs.unwrap_or(defaults.jobs);
        let waits = !policy.fetch.is_empty();
        self.compressed.added_to(mailbox::Options {
            format: self.format,
            output_format: self.output_format.unwrap_or_default(),
            by_label: self.by_label,
            jobs,
            max_in_flight: match waits {
                true => policy.limits.in_flight.max(jobs),
                false => jobs,
            },
            backup: self.backup.clone(),
            waits,
            effect: match self.dry_run {
                true => Effect::DryRun,
                false => Effect::Write,
            },
            ..defaults
        })
    }
}

#[derive(Args, Default, Debug)]
#[group(skip)]
pub struct ResumeArgs {
    /// Keep no answers beside --output; a run that is stopped begins anew [default: off]
    ///
    /// Without it what servers answer is kept in DEST.embody-resume until the output is whole, and the same command
    /// goes on with it: docs/cache.md.
    #[arg(long, help_heading = "How mailboxes are read and written")]
    pub no_resume: bool,
}

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = None::<&'static str>)]
pub struct SayingArgs {
    /// Append JSON lines; - is stderr [default: none]
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Say nothing on stderr but errors [default: off]
    #[arg(long, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more on stderr: every line, Message-ID, Subject, totals [default: off]
    #[arg(long)]
    verbose: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Volume {
    /// Errors only.
    Quiet,
    /// One line per reference of one message; over mailboxes a sum.
    Normal,
    /// Structure and a sum besides.
    Verbose,
}

impl SayingArgs {
    pub fn tells_rows(&self) -> bool {
        self.report.is_some() || self.verbose
    }

    pub fn volume(&self) -> Volume {
        match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (false, true) => Volume::Verbose,
            (false, false) => Volume::Normal,
        }
    }
}
