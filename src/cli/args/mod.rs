//! Commands and their options. clap prints comments with three slashes as help texts. The structs of options have no
//! such comments, because clap would print them in place of the text about their command.
//!
//! `group(skip)` keeps clap from creating a group for each struct. Groups would make every run of `filter` slower.

mod compare;
mod convert;
mod detach;
mod filter;
#[cfg(all(unix, feature = "imap"))]
mod imap;
mod inspect;
mod levels;
mod merge;
#[cfg(all(unix, feature = "milter"))]
mod milter;
mod policy;
mod preset;
mod retrieval;
#[cfg(all(unix, feature = "serve"))]
mod serve;
mod split;
mod store;
#[cfg(test)]
pub(super) mod tests;
mod walk;

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand};

pub(super) use self::compare::CompareArgs;
pub(super) use self::convert::ConvertArgs;
pub(super) use self::detach::{DetachArgs, RestoreArgs};
#[cfg(all(unix, feature = "serve"))]
pub(super) use self::detach::{SelectionArgs, restoring};
pub(super) use self::filter::FilterArgs;
use self::filter::{FILTER_ABOUT, FILTER_HELP};
#[cfg(all(unix, feature = "imap"))]
pub(super) use self::imap::ImapArgs;
pub(super) use self::inspect::{InspectArgs, SurveyGroup};
pub(super) use self::levels::with_flags;
pub(super) use self::merge::MergeArgs;
#[cfg(all(unix, feature = "milter"))]
pub(super) use self::milter::MilterArgs;
pub(super) use self::policy::PolicyArgs;
pub(super) use self::preset::{EmbedArgs, RecoverArgs};
pub(super) use self::retrieval::{ArchiveArgs, ArchivePlace, CacheArgs};
#[cfg(all(unix, feature = "serve"))]
pub(super) use self::serve::{MailboxArgs, ServeArgs};
pub(super) use self::split::SplitArgs;
pub(super) use self::store::{StoreAction, StoreArgs};
pub(super) use self::walk::{OutputVolume, ProgressOption, ResumeArgs, SayingArgs, WalkArgs};
use super::pages::{self, whole};

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
        embody embed whole.mbox --output kept.mbox\n          \
        embody filter --fetch https < in.eml > out.eml",
    after_long_help = whole(pages::EMBODY)
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: SubcommandArgs,
}

/// Options that are defined only when their command is used, with `--help` and `--version` after them. Defining the options
/// of all commands would take too long.
#[derive(Debug)]
pub(super) struct DeferredArgs<T>(pub(super) T);

impl<T: Args> Args for DeferredArgs<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(|command| with_flags(T::augment_args(command)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command.defer(|command| with_flags(T::augment_args_for_update(command)))
    }
}

impl<T: FromArgMatches> FromArgMatches for DeferredArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

// The commands by task, as the help lists them: first mail of a person, then mail systems, then everything else.
#[derive(Subcommand, Debug)]
pub(super) enum SubcommandArgs {
    /// Show what mail contains and what embody could do with it
    #[command(after_help = "Example: embody inspect --html report.html takeout.zip", after_long_help = whole(pages::INSPECT))]
    Inspect(DeferredArgs<InspectArgs>),
    /// Put missing attachments back into the mail
    #[command(after_help = "Example: embody recover ~/Mail/archive.mbox --output whole.mbox", after_long_help = whole(pages::RECOVER))]
    Recover(DeferredArgs<RecoverArgs>),
    /// Put the pictures that HTML mail displays into the mail
    #[command(after_help = "Example: embody embed ~/Mail/archive.mbox --output kept.mbox", after_long_help = whole(pages::EMBED))]
    Embed(DeferredArgs<EmbedArgs>),
    /// Check that one mailbox has all the mail of another
    #[command(after_help = "Example: embody compare archive.mbox kept.mbox", after_long_help = whole(pages::COMPARE))]
    Compare(DeferredArgs<CompareArgs>),
    /// Make one mailbox of several: each mail once, in its most complete copy
    #[command(after_help = "Example: embody merge takeout.zip ~/Mail old.mbox --output all.mbox", after_long_help = whole(pages::MERGE))]
    Merge(DeferredArgs<MergeArgs>),
    #[command(about = FILTER_ABOUT, after_help = FILTER_HELP, after_long_help = whole(pages::FILTER))]
    Filter(DeferredArgs<FilterArgs>),
    /// Run as a milter for Postfix and Sendmail
    #[cfg(all(unix, feature = "milter"))]
    #[command(after_help = "Example: embody milter --listen inet:8891 --fetch https", after_long_help = whole(pages::MILTER))]
    Milter(DeferredArgs<Box<MilterArgs>>),
    /// Run as a milter for Postfix and Sendmail (not on this system)
    #[cfg(all(not(unix), feature = "milter"))]
    Milter {
        /// Options of the milter
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Run as an HTTP service for other programs
    #[cfg(all(unix, feature = "serve"))]
    #[command(after_help = "Example: embody serve --store /srv/store", after_long_help = whole(pages::SERVE))]
    Serve(DeferredArgs<Box<ServeArgs>>),
    /// Run as an HTTP service for other programs (not on this system)
    #[cfg(all(not(unix), feature = "serve"))]
    Serve {
        /// Options of the service
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<std::ffi::OsString>,
    },
    /// Fill in external content in mailboxes: mbox, Maildir, MH, archives
    #[command(after_help = "Example: embody convert --in-place --backup .old ~/Mail/archive.mbox", after_long_help = whole(pages::CONVERT))]
    Convert(DeferredArgs<ConvertArgs>),
    /// Move large attachments into a store, and leave links to them
    #[command(after_help = "Example: embody detach --store /srv/store < in.eml > out.eml", after_long_help = whole(pages::DETACH))]
    Detach(DeferredArgs<DetachArgs>),
    /// Put attachments back that detach moved, byte for byte
    #[command(after_help = "Example: embody restore --store /srv/store < in.eml > out.eml", after_long_help = whole(pages::RESTORE))]
    Restore(DeferredArgs<RestoreArgs>),
    /// Print byte ranges for convert --range as JSON lines
    #[command(after_help = "Example: embody split --size 128M ~/Mail > ranges.jsonl", after_long_help = whole(pages::SPLIT))]
    Split(DeferredArgs<SplitArgs>),
    /// Verify an attachment store, or list unreferenced objects
    #[command(after_help = "Example: embody store check /var/store ~/Maildir ~/Mail", after_long_help = whole(pages::STORE))]
    Store(DeferredArgs<StoreArgs>),
    /// Print tables of the supported access types and URL schemes
    #[command(after_help = "Example: embody schemes > schemes.md", after_long_help = whole(pages::SCHEMES))]
    Schemes,
    /// Write the manual pages
    #[command(after_help = "Example: embody man /usr/local/share/man/man1", after_long_help = whole(pages::MAN))]
    Man {
        /// Directory for embody.1 and a page for each command; without it, embody(1) is printed
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Write the completions for a shell
    #[command(after_help = "Example: embody completions zsh > ~/.zfunc/_embody", after_long_help = whole(pages::COMPLETIONS))]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}
