//! The options of `detach` and `restore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::levels::levels;
use super::policy::FailureArgs;
use super::retrieval::{CacheArgs, RetrievalArgs, ServerArgs, TimeArgs};
use super::walk::{ResumeArgs, SayingArgs, WalkArgs};
use crate::cli::values::{at_least_one, base_url, duration_or_none, file, size};
use crate::engine::policy::{Limits, Links, Policy, TypePattern};
use crate::expand::detach::{Choice, Stub};

/// Default of `restore --max-growth`, in bytes. It is more than mail systems accept in one message. The limit is
/// needed, because a sender who knows the hash of one large attachment could refer to it a thousand times.
const RESTORED: u64 = 256 << 20;

const STORE_FAILS: &str = "Action while the store is unavailable: leave or defer [default: leave]";
const FAILS: &str = "Action while content is unavailable: leave or defer [default: leave]";
const PROXY: &str = "Use this proxy for a store that is a server";

// The options that choose the attachments for `detach`, and the form of what replaces them.
#[derive(Args, Default, Debug)]
#[group(skip)]
pub(crate) struct SelectionArgs {
    /// Move only attachments of at least this size [default: 100k]
    ///
    /// This is the encoded size in the mail, which in base64 is about a third more than the size of the file.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    larger_than: Option<u64>,
    /// Move only these media types, e.g. video/* [default: all]
    #[arg(long = "type", value_name = "PAT,...", value_delimiter = ',')]
    types: Vec<TypePattern>,
    /// Move pictures that the mail displays, too
    ///
    /// These are parts that HTML or CSS refers to, and inline pictures next to HTML. Mail clients will show broken
    /// pictures.
    #[arg(long)]
    inline: bool,
    /// Form of the part that replaces an attachment: external-body or thunderbird [default: external-body]
    #[arg(long, value_name = "FORM", alias = "form")]
    pub note_format: Option<Stub>,
    /// Add a text to the mail that lists the moved attachments
    ///
    /// The list has their names, sizes and URLs.
    #[arg(long)]
    pub note: bool,
}

impl SelectionArgs {
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            larger_than: self.larger_than.unwrap_or(Choice::LARGER_THAN),
            types: self.types.clone(),
            takes_shown: self.inline,
        }
    }

    /// Returns the options that a request has set, and otherwise those of the start.
    #[cfg(all(unix, feature = "serve"))]
    pub(crate) fn over(self, start: &Self) -> Self {
        let types = match self.types.as_slice() {
            [] => start.types.clone(),
            _ => self.types,
        };
        Self {
            larger_than: self.larger_than.or(start.larger_than),
            types,
            inline: self.inline || start.inline,
            note_format: self.note_format.or(start.note_format),
            note: self.note || start.note,
        }
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("on_failure", |option| option.help(STORE_FAILS)))]
#[command(mut_arg("proxy", |option| option.help(PROXY).long_help(PROXY)))]
#[command(mut_args(levels(
    &["store", "files", "base_url", "larger_than", "types", "inline", "note"],
    &["note_format", "on_failure"]
)))]
pub(crate) struct DetachArgs {
    /// One message [default: standard input]; or, with --output or --in-place, mailboxes, directories and
    /// imaps: URLs
    #[arg(value_name = "FILE|SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Move attachments to DIR, s3://BUCKET/PREFIX or https://HOST/PATH
    #[arg(long, value_name = "DIR|URL")]
    pub store: String,
    /// Write the attachments as files into DIR, too, as in "2020-03-01 Anna - report.pdf"
    ///
    /// DIR/index.csv lists the mail, the name and the SHA-256 of each file. Files that exist are never overwritten.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Beginning of the attachments' URLs [default: the file: URL of the store]
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub base_url: Option<String>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    failure: FailureArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// Time limit for one request to a server; 0 is no limit [default: 20s]
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    timeout: Option<Duration>,
    /// Read options from this TOML file
    ///
    /// Options on the command line override those in the file.
    #[arg(long, value_name = "FILE", value_parser = file())]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub resume: ResumeArgs,
    #[command(flatten)]
    pub saying: SayingArgs,
}

impl DetachArgs {
    /// Returns a text with the options that determine the result.
    pub(crate) fn kept(&self) -> String {
        let notes = (self.selection.note_format, self.selection.note);
        format!("{:?}", (&self.store, &self.base_url, self.choice(), notes))
    }

    /// Returns the policy for requests to a store on a server. Only its server and timeout options are used.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = self.failure.added_to(self.server.policy());
        policy.limits.timeout = self.timeout.unwrap_or(policy.limits.timeout);
        policy
    }

    pub(crate) fn choice(&self) -> Choice {
        self.selection.choice()
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(override_usage = "embody restore [OPTIONS] [--store <DIR|URL>] [FILE|SOURCE]...")]
#[command(group(clap::ArgGroup::new("from").required(true).multiple(true).args(["store", "fetch"])))]
#[command(mut_arg("on_failure", |option| option.help(FAILS)))]
#[command(mut_args(levels(&["store"], &["on_failure"])))]
pub(crate) struct RestoreArgs {
    /// One message [default: standard input]; or, with --output or --in-place, mailboxes, directories and
    /// imaps: URLs
    #[arg(value_name = "FILE|SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Get the attachments from this store
    ///
    /// The store is used for all attachments that detach moved, whatever their URLs are. Without --store, --fetch sets
    /// how the URLs may be retrieved.
    #[arg(long, value_name = "DIR|URL")]
    pub store: Option<String>,
    #[command(flatten)]
    failure: FailureArgs,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub saying: SayingArgs,
    #[command(flatten)]
    retrieval: RetrievalArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    #[command(flatten)]
    pub resume: ResumeArgs,
    /// Maximum growth of one message [default: 256M]
    ///
    /// Attachments that no longer fit are not put back.
    #[arg(long, value_name = "SIZE", help_heading = "Limits", value_parser = size)]
    max_growth: Option<u64>,
    #[command(flatten)]
    time: TimeArgs,
    /// Number of parallel retrievals, in the whole run [default: 8]
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
}

impl RestoreArgs {
    /// Returns the policy. The number of attachments to restore is not limited, only the time and the growth of one
    /// message.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = self.failure.added_to(self.retrieval.policy());
        policy.limits = Limits {
            timeout: self.time.timeout.unwrap_or(policy.limits.timeout),
            deadline: self.time.deadline.unwrap_or(policy.limits.deadline),
            in_flight: self.max_in_flight.unwrap_or(policy.limits.in_flight),
            ..policy.limits
        };
        restoring(policy, self.max_growth)
    }
}

/// Returns a policy for restoring attachments. The number of attachments is not limited.
pub(crate) fn restoring(mut policy: Policy, max_growth: Option<u64>) -> Policy {
    let growth = max_growth.unwrap_or(RESTORED);
    policy.links = Links::Keep;
    policy.limits = Limits {
        body: growth,
        growth,
        fetches: u32::MAX,
        ..policy.limits
    };
    policy
}
