//! The options of `detach` and `restore`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::cache_args::CacheArgs;
use super::policy_args::RetrievalArgs;
use super::shared_args::{OnFailureOption, SayingArgs, WalkArgs};
use super::values::{at_least_one, base_url, duration_or_none, file, size};
use crate::detach::{Choice, Form};
use crate::external_body::Wanted;
use crate::policy::{Limits, Links, OnFailure, Policy, Proxy, TypePattern};

/// What leaves if nothing else is said: 100k.
pub(super) const LARGER_THAN: u64 = 100 << 10;

/// What may come back if nothing else is said: 256M. More than mail systems take in one message, and less than a
/// mail could ask for whose writer knows the hash of one large attachment and names it a thousand times.
const RESTORED: u64 = 256 << 20;

#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
pub(super) struct DetachArgs {
    /// One message, or with --output or --in-place mboxes, Maildirs, messages or folders of them;
    /// standard input if none is given
    #[arg(hide_short_help = true, value_name = "FILE|SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Where attachments go: a folder, s3://BUCKET/PREFIX or https://HOST/PATH [default: none]
    #[arg(long, value_name = "DIR|URL")]
    pub(super) store: String,
    /// What their URLs begin with [default: the file: URL of the store]
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(super) base_url: Option<String>,
    /// Only what has so many octets in the mail [default: 100k]
    ///
    /// Counted as the attachment is encoded there.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    larger_than: Option<u64>,
    /// Only these media types, e.g. video/* [default: all]
    #[arg(long = "type", value_name = "PAT,...", value_delimiter = ',', value_parser = TypePattern::parse)]
    types: Vec<TypePattern>,
    /// Also the pictures that the mail shows [default: off]
    ///
    /// Parts to which its HTML or CSS refers, and inline pictures beside HTML. Readers will show broken pictures.
    #[arg(long)]
    inline: bool,
    /// What is left in their place [default: external-body]
    #[arg(long, value_enum, value_name = "FORM")]
    form: Option<FormOption>,
    /// Add a text to the mail that names what left [default: off]
    ///
    /// With sizes and URLs.
    #[arg(long)]
    note: bool,
    /// The store fails for a while: leave or defer [default: leave]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT"
    )]
    on_failure: Option<OnFailureOption>,
    /// Go through this proxy to a store that is a server [default: none]
    #[arg(hide_short_help = true, long, value_name = "URL")]
    proxy: Option<Proxy>,
    /// Trust these certificates besides the system's [default: none]
    #[arg(hide_short_help = true, long, value_name = "PEM", value_parser = file())]
    ca_file: Option<PathBuf>,
    /// One request to a store that is a server; 0 is no limit [default: 20s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration_or_none)]
    timeout: Option<Duration>,
    /// Options in TOML; those given here win [default: none]
    #[arg(hide_short_help = true, long, value_name = "FILE", value_parser = file())]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) walk: WalkArgs,
    #[command(flatten)]
    pub(super) saying: SayingArgs,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum FormOption {
    /// message/external-body with a URL (RFC 2017)
    #[default]
    ExternalBody,
    /// As Thunderbird detaches, which shows a link
    Thunderbird,
}

impl DetachArgs {
    /// How a store is asked that is a server. Nothing else of the policy counts.
    pub(super) fn policy(&self) -> Policy {
        let default = Limits::default();
        Policy {
            proxy: self.proxy.clone(),
            ca_file: self.ca_file.clone(),
            limits: Limits {
                timeout: self.timeout.unwrap_or(default.timeout),
                ..default
            },
            ..Policy::default()
        }
    }

    pub(super) fn choice(&self) -> Choice {
        Choice {
            larger_than: self.larger_than.unwrap_or(LARGER_THAN),
            types: self.types.clone(),
            takes_shown: self.inline,
        }
    }

    pub(super) fn form(&self) -> Form {
        match self.form.unwrap_or_default() {
            FormOption::ExternalBody => Form::ExternalBody,
            FormOption::Thunderbird => Form::Thunderbird,
        }
    }

    pub(super) fn text(&self) -> Wanted {
        match self.note {
            true => Wanted::New,
            false => Wanted::Kept,
        }
    }

    pub(super) fn on_failure(&self) -> OnFailure {
        self.on_failure.unwrap_or_default().into()
    }
}

#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("where").args(["output", "in_place"])))]
#[command(override_usage = "embody restore [OPTIONS] [--store <DIR|URL>] [FILE|SOURCE]...")]
#[command(group(clap::ArgGroup::new("from").required(true).multiple(true).args(["store", "fetch"])))]
pub(super) struct RestoreArgs {
    /// One message, or with --output or --in-place mboxes, Maildirs, messages or folders of them;
    /// standard input if none is given
    #[arg(hide_short_help = true, value_name = "FILE|SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Where the attachments are, whatever their URLs; without it --fetch says how these are retrieved
    /// [default: none]
    #[arg(long, value_name = "DIR|URL")]
    pub(super) store: Option<String>,
    /// The store or a server fails for a while: leave or defer [default: leave]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT"
    )]
    on_failure: Option<OnFailureOption>,
    #[command(flatten)]
    pub(super) walk: WalkArgs,
    #[command(flatten)]
    pub(super) saying: SayingArgs,
    #[command(flatten)]
    retrieval: RetrievalArgs,
    /// What may come back into one message; what no longer fits is left [default: 256M]
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_growth: Option<u64>,
    /// One retrieval; 0 is no limit [default: 20s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration_or_none)]
    timeout: Option<Duration>,
    /// All retrievals of one message; 0 is no limit [default: 60s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration_or_none)]
    deadline: Option<Duration>,
    /// Retrievals at the same time, over all messages of a run [default: 8]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
}

impl RestoreArgs {
    pub(super) fn cache(&self) -> &CacheArgs {
        &self.retrieval.cache
    }

    /// What was in the mail may be put back, in any number: only time has a bound, and what one message gains.
    pub(super) fn policy(&self) -> Policy {
        let default = Limits::default();
        let growth = self.max_growth.unwrap_or(RESTORED);
        Policy {
            links: Links::Keep,
            on_failure: self.on_failure.unwrap_or_default().into(),
            limits: Limits {
                body: growth,
                growth,
                fetches: u32::MAX,
                timeout: self.timeout.unwrap_or(default.timeout),
                deadline: self.deadline.unwrap_or(default.deadline),
                in_flight: self.max_in_flight.unwrap_or(default.in_flight),
                ..default
            },
            ..self.retrieval.policy()
        }
    }
}
