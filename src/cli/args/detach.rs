//! The options of `detach` and `restore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::policy::FailureArgs;
use super::retrieval::{CacheArgs, RetrievalArgs, ServerArgs, TimeArgs};
use super::walk::{ResumeArgs, SayingArgs, WalkArgs};
use crate::cli::values::{at_least_one, base_url, duration_or_none, file, short, size};
use crate::detach::{Choice, Stub};
use crate::policy::{Limits, Links, Policy, TypePattern};

/// The default of --max-growth of restore, 256M: more than mail systems take in one message, and less than a mail
/// could ask for whose writer knows the hash of one large attachment and names it a thousand times.
const RESTORED: u64 = 256 << 20;

const STORE_FAILS: &str = "The store fails for a while: leave or defer [default: leave]";
const FAILS: &str = "The store or a server fails for a while: leave or defer [default: leave]";
const PROXY: &str = "Go through this proxy to a store that is a server [default: none]";

#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(mut_arg("on_failure", |option| option.help(STORE_FAILS)))]
#[command(mut_arg("proxy", |option| option.help(PROXY).long_help(PROXY)))]
#[command(mut_args(short(&["store", "base_url", "larger_than", "types", "inline", "form", "note"])))]
pub struct DetachArgs {
    /// One message, or with --output or --in-place mboxes, Maildirs, folders, imaps: URLs;
    /// standard input if none is given
    #[arg(value_name = "FILE|SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Where attachments go: a folder, s3://BUCKET/PREFIX or https://HOST/PATH [default: none]
    #[arg(long, value_name = "DIR|URL")]
    pub store: String,
    /// What their URLs begin with [default: the file: URL of the store]
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub base_url: Option<String>,
    /// Only what has so many bytes in the mail [default: 100k]
    ///
    /// Counted as the attachment is encoded there.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    larger_than: Option<u64>,
    /// Only these media types, e.g. video/* [default: all]
    #[arg(long = "type", value_name = "PAT,...", value_delimiter = ',')]
    types: Vec<TypePattern>,
    /// Also the pictures that the mail shows [default: off]
    ///
    /// Parts to which its HTML or CSS refers, and inline pictures beside HTML. Readers will show broken pictures.
    #[arg(long)]
    inline: bool,
    /// What is left in their place [default: external-body]
    #[arg(long, value_name = "FORM")]
    pub form: Option<Stub>,
    /// Add a text to the mail that names what left [default: off]
    ///
    /// With sizes and URLs.
    #[arg(long)]
    pub note: bool,
    #[command(flatten)]
    failure: FailureArgs,
    #[command(flatten)]
    server: ServerArgs,
    /// One request to a store that is a server; 0 is no limit [default: 20s]
    #[arg(long, value_name = "DUR", value_parser = duration_or_none)]
    timeout: Option<Duration>,
    /// Options in TOML; those given here win [default: none]
    #[arg(hide_short_help = true, long, value_name = "FILE", value_parser = file())]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub saying: SayingArgs,
}

impl DetachArgs {
    /// The policy by which a store is asked that is a server. Nothing else of it counts.
    pub fn policy(&self) -> Policy {
        let mut policy = self.failure.added_to(self.server.policy());
        policy.limits.timeout = self.timeout.unwrap_or(policy.limits.timeout);
        policy
    }

    pub fn choice(&self) -> Choice {
        Choice {
            larger_than: self.larger_than.unwrap_or(Choice::LARGER_THAN),
            types: self.types.clone(),
            takes_shown: self.inline,
        }
    }
}

#[derive(Args, Debug)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(override_usage = "embody restore [OPTIONS] [--store <DIR|URL>] [FILE|SOURCE]...")]
#[command(group(clap::ArgGroup::new("from").required(true).multiple(true).args(["store", "fetch"])))]
#[command(mut_arg("on_failure", |option| option.help(FAILS)))]
#[command(mut_args(short(&["store"])))]
pub struct RestoreArgs {
    /// One message, or with --output or --in-place mboxes, Maildirs, folders, imaps: URLs;
    /// standard input if none is given
    #[arg(value_name = "FILE|SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Where the attachments are, whatever their URLs; without it --fetch says how these are retrieved
    /// [default: none]
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
    /// What may come back into one message; what no longer fits is left [default: 256M]
    #[arg(long, value_name = "SIZE", help_heading = "Limits", value_parser = size)]
    max_growth: Option<u64>,
    #[command(flatten)]
    time: TimeArgs,
    /// Retrievals at the same time, over all messages of a run [default: 8]
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
}

impl RestoreArgs {
    /// Any number of attachments may be put back: only time has a bound, and the growth of one message.
    pub fn policy(&self) -> Policy {
        let mut policy = self.failure.added_to(self.retrieval.policy());
        let growth = self.max_growth.unwrap_or(RESTORED);
        policy.links = Links::Keep;
        policy.limits = Limits {
            body: growth,
            growth,
            fetches: u32::MAX,
            timeout: self.time.timeout.unwrap_or(policy.limits.timeout),
            deadline: self.time.deadline.unwrap_or(policy.limits.deadline),
            in_flight: self.max_in_flight.unwrap_or(policy.limits.in_flight),
            ..policy.limits
        };
        policy
    }
}
