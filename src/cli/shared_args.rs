//! Options that several commands have: what is said, and how mailboxes are walked.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::values::{at_least_one, backup_suffix, size};
use crate::mailbox::{self, Effect, Format, Locking};
use crate::policy::{OnFailure, Policy};

/// What a command that takes mailboxes may be told about them.
#[derive(Args, Debug)]
pub(super) struct WalkArgs {
    /// The result: a new file or folder [default: none]
    ///
    /// A file whose name ends with .gz, .zst, .bz2 or .xz is compressed so.
    #[arg(long, value_name = "DEST")]
    pub(super) output: Option<PathBuf>,
    /// Replace each source, under lock [default: off]
    #[arg(long)]
    pub(super) in_place: bool,
    #[command(flatten)]
    format: FormatArgs,
    /// Threads for the processor's work [default: one for each core]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// With --in-place: keep the old file; its name ends with this [default: none]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SUFFIX",
        conflicts_with = "output",
        value_parser = OsStringValueParser::new().try_map(backup_suffix)
    )]
    backup: Option<std::ffi::OsString>,
    /// Write nothing, retrieve nothing; say what would be done [default: off]
    #[arg(hide_short_help = true, long)]
    pub(super) dry_run: bool,
    /// A progress bar on a terminal, lines elsewhere
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub(super) progress: ProgressOption,
    #[command(flatten)]
    compressed: CompressedArgs,
}

/// What the sources are said to be.
#[derive(Args, Debug)]
pub(super) struct FormatArgs {
    /// What the sources are
    #[arg(
        long,
        value_parser = format(),
        value_name = "WHAT",
        default_value = "auto",
        hide_short_help = true
    )]
    pub(super) format: Format,
}

/// How what is compressed is read.
#[derive(Args, Debug)]
pub(super) struct CompressedArgs {
    /// What one compressed file may expand to [default: 64G]
    ///
    /// It may also expand to 1000 times what it is at most, once that is more than 64M. What is beyond is said, and not
    /// read; the exit status is 1, and such a file is never replaced.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_expanded: Option<u64>,
}

impl CompressedArgs {
    /// `options` with these.
    pub(super) fn added_to(&self, options: mailbox::Options) -> mailbox::Options {
        let max_expanded = self.max_expanded.unwrap_or(options.max_expanded);
        mailbox::Options {
            max_expanded,
            ..options
        }
    }
}

/// When progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ProgressOption {
    /// A bar on a terminal, a line now and then elsewhere.
    Auto,
    /// A bar, or lines where there is no terminal, at once.
    Always,
    /// Nothing.
    Never,
}

/// Formats, with their names and what the help says of each.
const FORMATS: [(&str, Format, &str); 6] = [
    ("auto", Format::Auto, "What each is, is seen in it"),
    ("mbox", Format::Mbox, "mbox files"),
    (
        "mmdf",
        Format::Mmdf,
        "Files of messages between lines of four Control-A",
    ),
    ("maildir", Format::Maildir, "Folders with cur and new"),
    (
        "mh",
        Format::Mh,
        "Folders of messages with numbers for names",
    ),
    ("eml", Format::Eml, "Files that are a message each"),
];

fn format() -> impl TypedValueParser<Value = Format> {
    let values = FORMATS.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).map(|given| {
        let row = FORMATS.iter().find(|(name, ..)| *name == given);
        row.map_or(Format::Auto, |(_, format, _)| *format)
    })
}

impl WalkArgs {
    /// Whether anything is said that only mailboxes need.
    pub(super) fn is_told_more(&self) -> bool {
        self.jobs.is_some()
            || self.backup.is_some()
            || self.format.format != Format::Auto
            || self.progress != ProgressOption::Auto
            || self.compressed.max_expanded.is_some()
    }

    /// How the mailbox module is to work. While messages wait for a network, more of them are worked
    /// on than there are cores.
    pub(super) fn options(&self, policy: &Policy) -> mailbox::Options {
        let defaults = mailbox::Options::default();
        let jobs = self.jobs.unwrap_or(defaults.jobs);
        self.compressed.added_to(mailbox::Options {
            format: self.format.format,
            jobs,
            max_in_flight: if policy.fetch.is_empty() {
                jobs
            } else {
                policy.limits.in_flight.max(jobs)
            },
            backup: self.backup.clone(),
            locking: if policy.fetch.is_empty() {
                Locking::Throughout
            } else {
                Locking::AtBothEnds
            },
            effect: if self.dry_run {
                Effect::DryRun
            } else {
                Effect::Write
            },
            ..defaults
        })
    }
}

#[derive(Args, Default, Debug)]
pub(super) struct SayingArgs {
    /// Append JSON lines; - is stderr [default: none]
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Say nothing on stderr but errors [default: off]
    #[arg(hide_short_help = true, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more on stderr: every line, Message-ID, Subject, totals [default: off]
    #[arg(hide_short_help = true, long)]
    verbose: bool,
}

/// How much is said on stderr.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Volume {
    /// Errors only.
    Quiet,
    /// One line per reference.
    Normal,
    /// Structure and a sum besides.
    Verbose,
}

impl SayingArgs {
    pub(super) fn volume(&self) -> Volume {
        match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (false, true) => Volume::Verbose,
            (false, false) => Volume::Normal,
        }
    }
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
pub(super) enum OnFailureOption {
    #[default]
    Leave,
    Defer,
}

impl From<OnFailureOption> for OnFailure {
    fn from(option: OnFailureOption) -> Self {
        match option {
            OnFailureOption::Leave => Self::Leave,
            OnFailureOption::Defer => Self::Defer,
        }
    }
}
