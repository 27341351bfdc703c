//! Commands and their options. clap prints comments with three slashes as help texts. The structs of options have no
//! such comments, because clap would print them in place of the text about their command.
//!
//! `group(skip)` keeps clap from creating a group for each struct. Groups would make every run of `filter` slower.

mod detach;
#[cfg(all(unix, feature = "imap"))]
mod imap;
mod levels;
#[cfg(all(unix, feature = "milter"))]
mod milter;
mod policy;
mod retrieval;
#[cfg(test)]
pub(super) mod tests;
mod walk;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};

pub(super) use self::detach::{DetachArgs, RestoreArgs};
#[cfg(all(unix, feature = "imap"))]
pub(super) use self::imap::ImapArgs;
use self::levels::levels;
#[cfg(all(unix, feature = "milter"))]
pub(super) use self::milter::MilterArgs;
pub(super) use self::policy::PolicyArgs;
use self::policy::{Common, FailureArgs};
pub(super) use self::retrieval::{ArchiveArgs, ArchivePlace, CacheArgs};
use self::walk::{CompressedArgs, MAILBOXES};
pub(super) use self::walk::{ProgressOption, ResumeArgs, SayingArgs, Volume, WalkArgs};
use super::pages::{self, whole};
use super::streams::is_standard;
use super::survey::Group;
use super::values::{expected, output_format, range, size};
use crate::engine::Mode;
use crate::engine::policy::{Policy, Trackers};
use crate::error::Error;
use crate::mailbox::{Format, Options};
use crate::merge::Order;

/// Keeps mail whole: puts linked pictures and attachments into the mail.
#[derive(Parser, Debug)]
#[command(
    name = "embody",
    version,
    propagate_version = true,
    max_term_width = 80,
    args_override_self = true,
    after_help = "Examples: embody inspect --html report.html takeout.zip\n          \
        embody recover takeout.zip --output whole.mbox\n          \
        embody embed takeout.zip --output kept.mbox\n          \
        embody filter --fetch https < in.eml > out.eml",
    after_long_help = pages::EMBODY
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const FILTER_ABOUT: &str = "Fill in external content in one message (stdin to stdout)";
const FILTER_HELP: &str = "Example: embody filter --fetch https < in.eml > out.eml\n\
    Exit status: 0 with a complete message on stdout, otherwise 75 and no output.";

/// Options that are defined only when their command is used. Defining the options of all commands would take too long.
#[derive(Debug)]
pub(super) struct Deferred<T>(pub(super) T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    #[command(about = FILTER_ABOUT, after_help = FILTER_HELP, after_long_help = whole(pages::FILTER))]
    Filter(Deferred<FilterArgs>),
    /// Fill in external content in mailboxes: mbox, Maildir, MH, archives
    #[command(after_help = "Example: embody convert --in-place --backup .old ~/Mail/archive.mbox", after_long_help = whole(pages::CONVERT))]
    Convert(Deferred<ConvertArgs>),
    /// Put the pictures that HTML mail displays into the mail
    #[command(after_help = "Example: embody embed ~/Mail/archive.mbox --output kept.mbox", after_long_help = whole(pages::EMBED))]
    Embed(Deferred<EmbedArgs>),
    /// Put missing attachments back into the mail
    #[command(after_help = "Example: embody recover ~/Mail/archive.mbox --output whole.mbox", after_long_help = whole(pages::RECOVER))]
    Recover(Deferred<RecoverArgs>),
    /// Move large attachments into a store, and leave links to them
    #[command(after_help = "Example: embody detach --store /srv/store < in.eml > out.eml", after_long_help = whole(pages::DETACH))]
    Detach(Deferred<DetachArgs>),
    /// Put attachments back that detach moved, byte for byte
    #[command(after_help = "Example: embody restore --store /srv/store < in.eml > out.eml", after_long_help = whole(pages::RESTORE))]
    Restore(Deferred<RestoreArgs>),
    /// Show what mail contains and what embody could do with it
    #[command(after_help = "Example: embody inspect --fetch https message.eml", after_long_help = whole(pages::INSPECT))]
    Inspect(Deferred<InspectArgs>),
    /// Check that one mailbox has all the mail of another
    #[command(after_help = "Example: embody compare archive.mbox kept.mbox", after_long_help = whole(pages::COMPARE))]
    Compare(Deferred<CompareArgs>),
    /// Make one mailbox of several: each mail once, in its most complete copy
    #[command(after_help = "Example: embody merge takeout.zip ~/Mail old.mbox --output all.mbox", after_long_help = whole(pages::MERGE))]
    Merge(Deferred<MergeArgs>),
    /// Run as a milter for Postfix and Sendmail
    #[cfg(all(unix, feature = "milter"))]
    #[command(after_help = "Example: embody milter --listen inet:8891 --fetch https", after_long_help = whole(pages::MILTER))]
    Milter(Deferred<Box<MilterArgs>>),
    /// Run as a milter for Postfix and Sendmail (not on this system)
    #[cfg(all(not(unix), feature = "milter"))]
    Milter {
        /// Options of the milter
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Print byte ranges for convert --range as JSON lines
    #[command(after_help = "Example: embody split --size 128M ~/Mail > ranges.jsonl", after_long_help = whole(pages::SPLIT))]
    Split(Deferred<SplitArgs>),
    /// Verify an attachment store, or list unreferenced objects
    #[command(after_help = "Example: embody store check /var/store ~/Maildir ~/Mail", after_long_help = pages::STORE)]
    Store(Deferred<StoreArgs>),
    /// Print tables of the supported access types and URL schemes
    #[command(after_help = "Example: embody schemes > schemes.md", after_long_help = pages::SCHEMES)]
    Schemes,
    /// Write the manual pages
    #[command(after_help = "Example: embody man /usr/local/share/man/man1", after_long_help = pages::MAN)]
    Man {
        /// Directory for embody.1 and a page for each command; without it, embody(1) is printed
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Write the completions for a shell
    #[command(after_help = "Example: embody completions zsh > ~/.zfunc/_embody", after_long_help = pages::COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

// `filter` has a clap parser of its own, because it runs once for each mail. Building the parser for all commands would
// take as long as filtering the mail.
#[derive(Parser, Default, Debug)]
#[command(
    name = "filter",
    bin_name = "embody filter",
    version,
    max_term_width = 80,
    args_override_self = true
)]
#[command(about = FILTER_ABOUT, after_help = FILTER_HELP, after_long_help = whole(pages::FILTER))]
#[command(mut_args(levels(
    &["follow", "attachments", "embed", "on_failure"],
    &[
        "allow_net",
        "deadline",
        "deny_host",
        "file_root",
        "links",
        "mark",
        "resolver",
        "signed"
    ]
)))]
#[group(skip)]
pub(super) struct FilterArgs {
    /// The message; without it, standard input is read
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    failure: FailureArgs,
    #[command(flatten)]
    pub(super) common: Common,
}

impl FilterArgs {
    pub(super) fn policy(&self) -> Policy {
        self.failure.added_to(self.common.policy.policy())
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["output", "in_place"])))]
#[command(mut_arg("follow", |option| option.help(FOLLOWED)))]
#[command(mut_args(levels(
    &["backup", "follow", "attachments", "embed"],
    &["links", "range"]
)))]
pub(super) struct ConvertArgs {
    /// Mailboxes, messages, directories of them, archives or imaps: URLs
    ///
    /// Mailboxes are mbox, MMDF, Maildir, MH and those of Apple Mail and Eudora, also compressed. Zip and tar archives and
    /// imaps: URLs need --output; an imaps: URL can also be changed with --in-place.
    #[arg(required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) walk: WalkArgs,
    /// With --dry-run: ask each server whether it has the content
    ///
    /// The request is HEAD, or GET for servers that do not support HEAD.
    #[arg(long, requires = "dry_run", help_heading = MAILBOXES)]
    probe: bool,
    /// Only messages of an mbox that begin in the bytes A up to B [default: all]
    ///
    /// The byte B itself is not included. The results of adjacent ranges, concatenated, are identical to the result of
    /// one run, wherever the cuts are. embody split prints such ranges. Messages are numbered from 1 in each range. See
    /// docs/scale.md.
    #[arg(long, value_name = "A-B", help_heading = MAILBOXES, conflicts_with = "in_place", value_parser = range)]
    range: Option<Range<u64>>,
    /// Refuse a SOURCE that has another length or modification time
    ///
    /// The seconds are those that embody split prints, with nine digits after the point.
    #[arg(long, value_name = "LENGTH[:SECONDS]", help_heading = MAILBOXES, requires = "range", value_parser = expected)]
    expect: Option<(u64, Option<SystemTime>)>,
    /// Whether it is an error if the directories of `--attachments` contain none of the missing files. Only `recover`
    /// sets this.
    #[arg(skip)]
    pub(super) needs_attachments: bool,
    #[command(flatten)]
    pub(super) resume: ResumeArgs,
    #[command(flatten)]
    pub(super) common: Common,
}

impl ConvertArgs {
    pub(super) fn mode(&self) -> Mode {
        // With `--offline`, no requests are sent. A dry run can then look up each content in the cache, as a probe
        // does, so its preview says which content is available.
        self.walk
            .mode(self.probe || self.common.policy.cache.offline)
    }

    pub(super) fn options(&self, policy: &Policy) -> Result<Options, Error> {
        let why = match self.sources.as_slice() {
            [source] if self.range.is_some() && is_standard(source) => {
                "--range works only with a file, not with standard input"
            }
            [_, _, ..] if self.range.is_some() => {
                "--range works only for one mbox; run the command once for each mbox"
            }
            _ => {
                return Ok(Options {
                    range: self.range.clone(),
                    length: self.expect.map(|(length, _)| length),
                    modified: self.expect.and_then(|(_, modified)| modified),
                    ..self.walk.options(policy, self.mode())
                });
            }
        };
        Err(Error::Usage(why.into()))
    }
}

// The options of `embed` and `recover`. Both commands run `convert` with other defaults, or `filter` with other defaults if
// the run has neither --output nor --in-place and so processes one message.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct PresetArgs {
    /// One message [default: standard input]; or, with --output or --in-place, mailboxes, directories and
    /// imaps: URLs
    #[arg(value_name = "FILE|SOURCE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) walk: WalkArgs,
    #[command(flatten)]
    failure: FailureArgs,
    /// With --dry-run: ask each server whether it has the content
    ///
    /// The request is HEAD, or GET for servers that do not support HEAD.
    #[arg(long, requires = "dry_run", help_heading = MAILBOXES)]
    probe: bool,
    #[command(flatten)]
    resume: ResumeArgs,
    #[command(flatten)]
    common: Common,
}

// The defaults of `embed` are `--embed data,remote --fetch http,https`.
#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("embed", |option| option.help(EMBEDDED).long_help(EMBEDDED)))]
#[command(mut_arg("fetch", |option| option.help(RETRIEVED_FROM)))]
#[command(mut_arg("follow", |option| option.help(FOLLOWED)))]
#[command(mut_args(levels(&["backup", "embed", "trackers", "embed_kinds"], &[])))]
pub(super) struct EmbedArgs {
    #[command(flatten)]
    pub(super) preset: PresetArgs,
}

// The defaults of `recover` are `--fetch http,https` and `--follow` with all forms of reference that replace an
// attachment.
#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("attachments", |option| option.help(ATTACHMENTS).long_help(ATTACHMENTS)))]
#[command(mut_arg("follow", |option| option.help(RECOVERED).long_help(RECOVERED_KINDS)))]
#[command(mut_arg("offline", |option| option.help(OFFLINE)))]
#[command(mut_arg("fetch", |option| option.help(RETRIEVED_FROM)))]
#[command(mut_args(levels(
    &["backup", "attachments", "copies", "offline"],
    &["resolver"]
)))]
pub(super) struct RecoverArgs {
    #[command(flatten)]
    pub(super) preset: PresetArgs,
}

const EMBEDDED: &str = "Embed pictures of HTML mail: data, remote [default: data,remote]";
const FOLLOWED: &str = "Further kinds of references to follow; -NAME removes one [default: thunderbird,exchange,apple,eudora,winmail]";
const RETRIEVED_FROM: &str =
    "Retrieve over these schemes: http, https, ftp, file [default: http,https]";
const ATTACHMENTS: &str = "Look for missing attachments in this directory first";
const OFFLINE: &str = "Make no network requests: use files, --cache and --archive";
const RECOVERED: &str =
    "Kinds of references to follow; -NAME removes one [default: all that replace an attachment]";
const RECOVERED_KINDS: &str = "Kinds of references to follow; -NAME removes one [default: thunderbird, exchange, apple, eudora, \
    mailman, mailman-digests, sympa, gmail, outlook, mail-drop, filelink, winmail]\n\nFurther ones are links (to cloud files in the text) \
    and shortcuts (.url files), all, and none.";

impl EmbedArgs {
    /// Returns the options of `convert`, which processes mailboxes.
    pub(super) fn convert(self) -> Result<ConvertArgs, Error> {
        self.preset.convert(Common::embedding)
    }

    /// Returns the options of `filter`, which processes one message.
    pub(super) fn filter(self) -> Result<FilterArgs, Error> {
        self.preset.filter(Common::embedding)
    }
}

impl RecoverArgs {
    /// Returns the options of `convert`, which processes mailboxes.
    pub(super) fn convert(self) -> Result<ConvertArgs, Error> {
        let args = self.preset.convert(Common::recovering)?;
        Ok(ConvertArgs {
            needs_attachments: true,
            ..args
        })
    }

    /// Returns the options of `filter`, which processes one message.
    pub(super) fn filter(self) -> Result<FilterArgs, Error> {
        self.preset.filter(Common::recovering)
    }
}

impl PresetArgs {
    fn convert(self, preset: impl FnOnce(Common) -> Common) -> Result<ConvertArgs, Error> {
        let what = match (self.failure.on_failure, self.sources.is_empty()) {
            (Some(_), _) => {
                "--on-failure works only with one message on standard input, which a mail system delivers again later"
            }
            (None, true) => "no source is given: name mboxes, Maildirs or messages",
            (None, false) => {
                return Ok(ConvertArgs {
                    sources: self.sources,
                    walk: self.walk,
                    probe: self.probe,
                    range: None,
                    expect: None,
                    needs_attachments: false,
                    resume: self.resume,
                    common: preset(self.common),
                });
            }
        };
        Err(Error::Usage(what.into()))
    }

    fn filter(self, preset: impl FnOnce(Common) -> Common) -> Result<FilterArgs, Error> {
        let no_resume = self.resume.no_resume;
        let file = self.walk.one_message(&self.sources, no_resume)?;
        Ok(FilterArgs {
            file: file.map(Path::to_owned),
            failure: self.failure,
            common: preset(self.common),
        })
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_arg("follow", |option| option.help(FOLLOWED)))]
#[command(mut_args(levels(
    &["json", "html", "probe", "by", "embed", "duplicates"],
    &["keys", "larger_than", "messages", "links"]
)))]
pub(super) struct InspectArgs {
    /// Messages, mailboxes, archives, directories or imaps: URLs [default: standard input]
    #[arg(value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Print JSON lines, one per reference
    ///
    /// For mailboxes, and with --by or --embed, the last line contains the survey, {"survey":{...}}. docs/survey.md
    /// describes its fields.
    #[arg(long)]
    pub(super) json: bool,
    /// Write the survey to this file as an HTML page
    ///
    /// The page needs no network. An earlier page of embody is overwritten; another existing file is not. The name - means standard output.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Print the messages themselves, for other programs
    ///
    /// Before each message there is a JSON line with its source, its index, and its length in bytes. After the message
    /// there is a line ending. Messages are printed unchanged, apart from the quoting of mboxes, which is undone.
    #[arg(long, conflicts_with_all = ["json", "html", "by", "larger_than", "probe"])]
    pub(super) messages: bool,
    /// Print the keys of all messages, for other programs
    ///
    /// A JSON line for each message contains its source, its index, its length in bytes, its position in the file, and the key
    /// that all copies of the mail have in common. Mails with different keys are never copies of each other.
    #[arg(long, conflicts_with_all = ["json", "html", "by", "larger_than", "messages", "probe"])]
    pub(super) keys: bool,
    /// Count the mails that are in several sources, and the bytes that embody merge would save
    ///
    /// Mails are compared as in embody merge, so a copy may lack parts. For each pair of sources, the number of common mails
    /// is printed, and for all sources the number of missing parts that recover --copies would fill. Nothing is written.
    #[arg(long, conflicts_with_all = ["html", "by", "keys", "larger_than", "messages", "probe", "verbose"])]
    pub(super) duplicates: bool,
    /// Group the survey by host, type, year, sender, outcome
    #[arg(
        long,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "WHAT,..."
    )]
    pub(super) by: Vec<Group>,
    /// Size of attachments that detach would move [default: 100k]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) larger_than: Option<u64>,
    /// Print every count, and name files that contain no mail on stderr
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Ask each server whether it has the content
    ///
    /// The request is HEAD, or GET for servers that do not support HEAD. Content is retrieved only if a server
    /// announces a wrong type, such as a web page in place of a picture. Pictures that HTML displays are included,
    /// under the same policy. Trackers and links that one clicks are not.
    #[arg(long)]
    probe: bool,
    /// Format of the sources
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(super) imap: ImapArgs,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_args(levels(&["json", "merged"], &[])))]
pub(super) struct CompareArgs {
    /// The mailbox before the change: an mbox, Maildir, directory, archive, message or imaps: URL
    #[arg(value_name = "OLD")]
    pub(super) old: PathBuf,
    /// The mailbox after the change, in any of these formats
    #[arg(value_name = "NEW")]
    pub(super) new: PathBuf,
    /// Print JSON lines, one for each message that is missing or altered
    ///
    /// The last line contains the counts, {"compare":{...}}.
    #[arg(long)]
    pub(super) json: bool,
    /// Accept a different copy of a message if that copy is at least as complete
    ///
    /// For the result of embody merge, which keeps one of several copies of a mail. docs/merge.md lists the differences
    /// between copies.
    #[arg(long)]
    pub(super) merged: bool,
    /// Print only messages that are missing or altered
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Format of both mailboxes
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(super) imap: ImapArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_args(levels(&["order", "flat", "output_format", "json"], &[])))]
pub(super) struct MergeArgs {
    /// Mailboxes, directories of mailboxes, archives, messages, or imaps: URLs
    ///
    /// If several copies of a mail are equally complete, the one from the first SOURCE is kept.
    #[arg(required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Write the result to this new file or directory
    ///
    /// A file whose name ends with .gz, .zst, .bz2 or .xz is compressed.
    #[arg(short, long, value_name = "DEST")]
    pub(super) output: PathBuf,
    /// Format of the result: auto, mbox, maildir, eml or thunderbird [default: auto]
    ///
    /// auto is maildir if the first SOURCE is a Maildir or an MH folder, otherwise mbox.
    #[arg(long, value_name = "WHAT", value_parser = output_format)]
    pub(super) output_format: Option<Format>,
    /// Order of the mails: date, or first (the order in which they are read)
    #[arg(
        long,
        value_name = "date|first",
        default_value = "date",
        hide_possible_values = true
    )]
    pub(super) order: Order,
    /// Make one mailbox, even if the sources have several folders
    ///
    /// Without this option, DEST is a directory if a source has several folders. Each mail is then in every folder in
    /// which at least one source has it.
    #[arg(long)]
    pub(super) flat: bool,
    /// Preview a run without writing the result
    #[arg(short = 'n', long)]
    pub(super) dry_run: bool,
    /// Print the counts as a JSON line, {"merge":{...}}
    #[arg(long)]
    pub(super) json: bool,
    /// Print only errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Format of the sources
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(super) format: Format,
    /// Show progress on stderr
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) progress: ProgressOption,
    #[command(flatten)]
    pub(super) compressed: CompressedArgs,
    #[cfg(all(unix, feature = "imap"))]
    #[command(flatten)]
    pub(super) imap: ImapArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(mut_args(levels(&["size", "count"], &[])))]
pub(super) struct SplitArgs {
    /// mbox files and messages, or directories of them
    #[arg(required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Length of a range [default: 128M]
    ///
    /// A range ends with the message that begins in it, so it may be longer.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) size: Option<u64>,
    /// Count the messages of each range, which reads all mail
    #[arg(long)]
    pub(super) count: bool,
    #[command(flatten)]
    pub(super) compressed: CompressedArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct StoreArgs {
    /// check: verify all objects and references; gc: list unreferenced objects
    #[arg(value_name = "check|gc", hide_possible_values = true)]
    pub(super) action: StoreAction,
    /// Directory of the store
    #[arg(value_name = "DIR")]
    pub(super) folder: PathBuf,
    /// Mailboxes; for gc: all mailboxes that may refer to the store
    #[arg(value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Print only problems
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// With gc: remove unreferenced objects that are older than a day
    #[arg(long)]
    pub(super) delete: bool,
    /// With gc: assert that all mail that refers to the store is named
    ///
    /// Without this option, nothing is removed if the store's list of users names a mailbox that was not given and
    /// read, or standard input.
    #[arg(long)]
    pub(super) all_mail_is_here: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum StoreAction {
    Check,
    Gc,
}

impl ConvertArgs {
    /// Returns the options, extended so that winmail.dat parts are unpacked. Their content is already in the message,
    /// so this needs no request.
    pub(super) fn opening(self) -> Self {
        Self {
            common: self.common.opening(),
            ..self
        }
    }
}

impl InspectArgs {
    /// Returns the options, extended so that winmail.dat parts are unpacked. Their content is already in the message,
    /// so this needs no request.
    pub(super) fn opening(mut self) -> Self {
        self.policy.open();
        self
    }

    pub(super) fn mode(&self) -> Mode {
        if self.probe || self.policy.cache.offline {
            Mode::Probe
        } else {
            Mode::DryRun
        }
    }

    /// Returns the policy for a survey. With `--probe`, servers are also asked for pictures and for all missing
    /// attachments, but never for trackers.
    pub(super) fn probing_policy(&self) -> Policy {
        let mut policy = self.policy.policy();
        policy.tells_unfollowed = true;
        if self.probe {
            policy.embed.remote = true;
            policy.embed.trackers = Trackers::Leave;
            // A probe finds missing attachments by the same forms of reference that `recover` follows.
            policy.follow = policy.follow.with_attachments();
        }
        policy
    }
}
