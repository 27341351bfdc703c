//! Commands and their options. What comments say with three slashes is help text, which a struct of options has none of: it would
//! stand in place of its command's.
//!
//! No struct is a group of clap's (`group(skip)`): groups would cost every run of `filter`.

mod detach;
#[cfg(all(unix, feature = "imap"))]
mod imap;
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
#[cfg(all(unix, feature = "milter"))]
pub(super) use self::milter::MilterArgs;
pub(super) use self::policy::PolicyArgs;
use self::policy::{Common, FailureArgs};
pub(super) use self::retrieval::{ArchiveArgs, ArchivePlace, CacheArgs};
use self::walk::CompressedArgs;
pub(super) use self::walk::{ProgressOption, ResumeArgs, SayingArgs, Volume, WalkArgs};
use super::pages::{self, whole};
use super::streams::is_standard;
use super::survey::Group;
use super::values::{expected, range, short, size};
use crate::error::Error;
use crate::mailbox::{Format, Options};
use crate::policy::{Policy, Trackers};

/// Puts attachments that a mail only refers to back into the mail.
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

const FILTER_ABOUT: &str = "Read one message, write it with what it refers to put in";
const FILTER_HELP: &str = "Example: embody filter --fetch https < in.eml > out.eml\n\
    Exit status: 0 with a whole message on stdout, else 75 and nothing on stdout.";

/// Options that are built once their command is the one to run.
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
    /// Process whole mailboxes: mbox, Maildir, MH, archives
    #[command(after_help = "Example: embody convert --in-place --backup .old ~/Mail/archive.mbox", after_long_help = whole(pages::CONVERT))]
    Convert(Deferred<ConvertArgs>),
    /// Keep the pictures that HTML mail shows: put them into the mail
    #[command(after_help = "Example: embody embed ~/Mail/archive.mbox --output kept.mbox", after_long_help = whole(pages::EMBED))]
    Embed(Deferred<EmbedArgs>),
    /// Put missing attachments back: from links, notes and other programs' folders
    #[command(after_help = "Example: embody recover ~/Mail/archive.mbox --output whole.mbox", after_long_help = whole(pages::RECOVER))]
    Recover(Deferred<RecoverArgs>),
    /// Move large attachments into a store; what is left refers to them
    #[command(after_help = "Example: embody detach --store /srv/store < in.eml > out.eml", after_long_help = whole(pages::DETACH))]
    Detach(Deferred<DetachArgs>),
    /// Put back, byte for byte, what detach moved into a store
    #[command(after_help = "Example: embody restore --store /srv/store < in.eml > out.eml", after_long_help = whole(pages::RESTORE))]
    Restore(Deferred<RestoreArgs>),
    /// Show what a mailbox holds and what would change
    #[command(after_help = "Example: embody inspect --fetch https message.eml", after_long_help = whole(pages::INSPECT))]
    Inspect(Deferred<InspectArgs>),
    /// Prove that one mailbox has all the mail of another
    #[command(after_help = "Example: embody compare archive.mbox kept.mbox", after_long_help = whole(pages::COMPARE))]
    Compare(Deferred<CompareArgs>),
    /// Run as a milter for Postfix and Sendmail
    #[cfg(all(unix, feature = "milter"))]
    #[command(after_help = "Example: embody milter --listen inet:8891 --fetch https", after_long_help = whole(pages::MILTER))]
    Milter(Deferred<Box<MilterArgs>>),
    /// Run as a milter for Postfix and Sendmail: not on this system
    #[cfg(all(not(unix), feature = "milter"))]
    Milter {
        /// What the milter would be told
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Say where to cut mboxes for convert --range, as JSON lines
    #[command(after_help = "Example: embody split --size 128M ~/Mail > ranges.jsonl", after_long_help = whole(pages::SPLIT))]
    Split(Deferred<SplitArgs>),
    /// Check a store of attachments, or find what nobody uses
    #[command(after_help = "Example: embody store check /var/store ~/Maildir ~/Mail", after_long_help = pages::STORE)]
    Store(Deferred<StoreArgs>),
    /// Print the table of access types and URL schemes
    #[command(after_help = "Example: embody schemes > schemes.md", after_long_help = pages::SCHEMES)]
    Schemes,
    /// Write the manual pages
    #[command(after_help = "Example: embody man /usr/local/share/man/man1", after_long_help = pages::MAN)]
    Man {
        /// Where embody.1 and a page for each command go; without it embody(1) is printed
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

// A program of its own: building the other commands' options would take as long as filtering.
#[derive(Parser, Default, Debug)]
#[command(
    name = "filter",
    bin_name = "embody filter",
    version,
    max_term_width = 80,
    args_override_self = true
)]
#[command(about = FILTER_ABOUT, after_help = FILTER_HELP, after_long_help = whole(pages::FILTER))]
#[command(mut_args(short(&["on_failure"])))]
#[group(skip)]
pub(super) struct FilterArgs {
    /// The message; standard input if not given
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
#[command(mut_args(short(&[])))]
pub(super) struct ConvertArgs {
    /// mbox files, Maildirs, MH folders, messages, or folders of them, compressed ones too; with
    /// --output zip and tar archives of mboxes, and imaps: URLs
    #[arg(required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) walk: WalkArgs,
    /// With --dry-run: ask each source whether it answers, HEAD or GET [default: off]
    #[arg(long, requires = "dry_run")]
    probe: bool,
    /// Only the messages of an mbox that begin in these bytes, from A up to but not B [default: all]
    ///
    /// Parts of ranges that lie side by side, put together, are byte for byte what one run writes, wherever the
    /// cuts are; embody split names such ranges. Messages count from 1 in each. See docs/scale.md.
    #[arg(long, value_name = "A-B", conflicts_with = "in_place", value_parser = range)]
    range: Option<Range<u64>>,
    /// Refuse a SOURCE that is not so long, or was modified since [default: none]
    ///
    /// The seconds are those that embody split writes, with nine digits behind the point.
    #[arg(long, value_name = "LENGTH[:SECONDS]", requires = "range", value_parser = expected)]
    expect: Option<(u64, Option<SystemTime>)>,
    /// Set by `recover`: it is an error if --attachments has none of the files.
    #[arg(skip)]
    pub(super) needs_attachments: bool,
    #[command(flatten)]
    pub(super) resume: ResumeArgs,
    #[command(flatten)]
    pub(super) common: Common,
}

impl ConvertArgs {
    pub(super) fn asking(&self) -> Asking {
        // With --offline the cache alone is asked.
        let probes = self.probe || self.common.policy.cache.offline;
        match (self.walk.dry_run, probes) {
            (false, _) => Asking::ForContent,
            (true, false) => Asking::Nobody,
            (true, true) => Asking::WhetherThereIsAnAnswer,
        }
    }

    pub(super) fn options(&self, policy: &Policy) -> Result<Options, Error> {
        let why = match self.sources.as_slice() {
            [source] if self.range.is_some() && is_standard(source) => {
                "--range is for a file; standard input cannot be read from its middle"
            }
            [_, _, ..] if self.range.is_some() => "--range is for one mbox; run it once for each",
            _ => {
                return Ok(Options {
                    range: self.range.clone(),
                    length: self.expect.map(|(length, _)| length),
                    modified: self.expect.and_then(|(_, modified)| modified),
                    ..self.walk.options(policy)
                });
            }
        };
        Err(Error::Usage(why.into()))
    }
}

// `convert`, or `filter` for one message, with other defaults.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct PresetArgs {
    /// One message, or with --output or --in-place mboxes, Maildirs, folders, imaps: URLs;
    /// standard input if none is given
    #[arg(value_name = "FILE|SOURCE")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) walk: WalkArgs,
    #[command(flatten)]
    failure: FailureArgs,
    /// With --dry-run: ask each source whether it answers, HEAD or GET [default: off]
    #[arg(long, requires = "dry_run")]
    probe: bool,
    #[command(flatten)]
    resume: ResumeArgs,
    #[command(flatten)]
    common: Common,
}

// With `--embed data,remote --fetch http,https`.
#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("embed", |option| option.help(EMBEDDED).long_help(EMBEDDED)))]
#[command(mut_arg("fetch", |option| option.help(RETRIEVED_FROM)))]
#[command(mut_arg("links", |option| option.hide_short_help(true)))]
#[command(mut_arg("max_body", |option| option.hide_short_help(true)))]
#[command(mut_arg("on_failure", |option| option.hide_short_help(true)))]
#[command(mut_args(short(&[])))]
pub(super) struct EmbedArgs {
    #[command(flatten)]
    pub(super) preset: PresetArgs,
}

// With `--fetch http,https` and `--follow` of all forms that stand for an attachment.
#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("attachments", |option| option.help(ATTACHMENTS).long_help(ATTACHMENTS)))]
#[command(mut_arg("follow", |option| option.help(RECOVERED).long_help(RECOVERED)))]
#[command(mut_arg("offline", |option| option.help(OFFLINE)))]
#[command(mut_arg("fetch", |option| option.help(RETRIEVED_FROM)))]
#[command(mut_arg("embed", |option| option.hide_short_help(true)))]
#[command(mut_arg("links", |option| option.hide_short_help(true)))]
#[command(mut_arg("max_body", |option| option.hide_short_help(true)))]
#[command(mut_arg("on_failure", |option| option.hide_short_help(true)))]
#[command(mut_args(short(&["attachments", "offline"])))]
pub(super) struct RecoverArgs {
    #[command(flatten)]
    pub(super) preset: PresetArgs,
}

const EMBEDDED: &str = "Pictures of HTML from data, remote [default: data,remote]";
const RETRIEVED_FROM: &str = "Retrieve by: http, https, ... as filter has it [default: http,https]";
const ATTACHMENTS: &str = "Look here first, by the end of a file's URL [default: none]";
const OFFLINE: &str = "Make no network requests: only files, --cache and --archive [default: off]";
const RECOVERED: &str = "What stands for an attachment; besides these there are links and shortcuts (.url files), which are \
    the sender's own words, all and none; -NAME takes one away \
    [default: thunderbird,exchange,apple,eudora,mailman,mailman-digests,sympa,gmail,outlook,mail-drop,filelink]";

impl EmbedArgs {
    /// Over mailboxes, the options of `convert`.
    pub(super) fn convert(self) -> Result<ConvertArgs, Error> {
        self.preset.convert(Common::embedding)
    }

    /// Of one message, the options of `filter`.
    pub(super) fn filter(self) -> Result<FilterArgs, Error> {
        self.preset.filter(Common::embedding)
    }
}

impl RecoverArgs {
    /// Over mailboxes, the options of `convert`.
    pub(super) fn convert(self) -> Result<ConvertArgs, Error> {
        let args = self.preset.convert(Common::recovering)?;
        Ok(ConvertArgs {
            needs_attachments: true,
            ..args
        })
    }

    /// Of one message, the options of `filter`.
    pub(super) fn filter(self) -> Result<FilterArgs, Error> {
        self.preset.filter(Common::recovering)
    }
}

impl PresetArgs {
    fn convert(self, preset: impl FnOnce(Common) -> Common) -> Result<ConvertArgs, Error> {
        let what = match (self.failure.on_failure, self.sources.is_empty()) {
            (Some(_), _) => "--on-failure is for one message, which a mail system tries again",
            (None, true) => "name mboxes, Maildirs or messages",
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
#[command(mut_args(short(&["json", "html", "probe"])))]
pub(super) struct InspectArgs {
    /// Messages, mboxes, Maildirs, folders, archives, compressed ones too, imaps: URLs; standard
    /// input if none is given
    #[arg(value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Print JSON lines, one per reference [default: off]
    ///
    /// Of mailboxes, or with --by or --embed, a last line has the survey, {"survey":{...}}: docs/survey.md
    /// says what each field is.
    #[arg(long)]
    pub(super) json: bool,
    /// Write the survey as a page [default: none]
    ///
    /// It opens offline. An earlier page of that name is replaced, and nothing else; - is standard output.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Print the messages themselves, for programs, in place of what they hold [default: off]
    ///
    /// Before each stands a JSON line with its source, its index and its bytes, and so many bytes and a line end follow. They are
    /// those of the source, with the quoting of an mbox undone; nothing is put in.
    #[arg(long, conflicts_with_all = ["json", "html", "by", "larger_than", "probe"])]
    pub(super) messages: bool,
    /// Survey by host, type, year, sender, outcome [default: none]
    #[arg(
        long,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "WHAT,..."
    )]
    pub(super) by: Vec<Group>,
    /// Survey what detach would do with attachments of so many bytes in the mail [default: 100k]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) larger_than: Option<u64>,
    /// Name files that hold no mail on stderr [default: off]
    #[arg(long)]
    pub(super) verbose: bool,
    /// Ask each source whether it answers [default: off]
    ///
    /// HEAD, or GET where that is not understood; content is retrieved only where a server names a wrong type, such as a
    /// web page in place of a picture. Pictures that HTML shows are asked for, too, under the same policy; trackers and what one clicks
    /// never.
    #[arg(long)]
    probe: bool,
    /// What the sources are
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
#[command(mut_args(short(&["json", "quiet"])))]
pub(super) struct CompareArgs {
    /// The mail as it was: an mbox, a Maildir, a folder, an archive, a message, an imaps: URL
    #[arg(value_name = "OLD")]
    pub(super) old: PathBuf,
    /// The mail as it is now, in a mailbox of any kind
    #[arg(value_name = "NEW")]
    pub(super) new: PathBuf,
    /// Print JSON lines, one for each message that is missing or altered [default: off]
    ///
    /// A last line has the counts, {"compare":{...}}.
    #[arg(long)]
    pub(super) json: bool,
    /// Name messages that are missing or altered, and print nothing else [default: off]
    #[arg(long)]
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
#[command(mut_args(short(&["size", "count"])))]
pub(super) struct SplitArgs {
    /// mbox files and messages, or folders of them
    #[arg(required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// How long a range is, but for the end of its last message [default: 128M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) size: Option<u64>,
    /// Count the messages of each range; all of the mail is read [default: off]
    #[arg(long)]
    pub(super) count: bool,
    #[command(flatten)]
    pub(super) compressed: CompressedArgs,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct StoreArgs {
    /// check: is every object whole, has every reference its object?
    /// gc: which objects does nothing refer to?
    #[arg(value_name = "check|gc", hide_possible_values = true)]
    pub(super) action: StoreAction,
    /// The store
    #[arg(value_name = "DIR")]
    pub(super) folder: PathBuf,
    /// Mailboxes; for gc: all that may refer to the store
    #[arg(value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Write problems only: check writes nothing if all is well, and gc no sum [default: off]
    #[arg(long)]
    pub(super) quiet: bool,
    /// With gc: remove what is not used and older than a day [default: off]
    #[arg(long)]
    pub(super) delete: bool,
    /// With gc: whoever put something into the store, all mail that may refer to it is named [default: off]
    ///
    /// Without it nothing is removed while the store's list of users has a mailbox that was not named and read, or
    /// standard input.
    #[arg(long)]
    pub(super) all_mail_is_here: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum StoreAction {
    Check,
    Gc,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asking {
    Nobody,
    /// `--probe`.
    WhetherThereIsAnAnswer,
    ForContent,
}

impl InspectArgs {
    pub(super) fn asking(&self) -> Asking {
        match self.probe || self.policy.cache.offline {
            true => Asking::WhetherThereIsAnAnswer,
            false => Asking::Nobody,
        }
    }

    /// With --probe pictures are asked for besides, and never trackers.
    pub(super) fn asking_policy(&self) -> Policy {
        let mut policy = self.policy.policy();
        policy.tells_unfollowed = true;
        if self.probe {
            policy.embed.remote = true;
            policy.embed.trackers = Trackers::Leave;
        }
        policy
    }
}
