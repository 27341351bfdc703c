//! What several commands share, each option once, and the one crossing from options to [`Policy`].

use std::path::PathBuf;

use clap::{ArgAction, Args};
use url::Url;

use super::retrieval::{ArchiveArgs, CacheArgs, KEPT, RetrievalArgs, TimeArgs};
use super::walk::SayingArgs;
use crate::cli::values::{at_least_one, base_url, choice, size, word};
use crate::error::Error;
use crate::expand::Mark;
use crate::policy::marked::words;
use crate::policy::{
    Embed, Follow, Followed, Limits, Links, OnFailure, Policy, Protected, Scheme, Trackers,
    TypePattern,
};

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = None::<&'static str>)]
pub struct Common {
    /// Add one header field, X-Embody, to messages that hold references [default: off]
    #[arg(long, action = ArgAction::SetTrue, value_parser = choice([Mark::Off, Mark::Field]))]
    pub mark: Mark,
    #[command(flatten)]
    pub saying: SayingArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl Common {
    /// The same with `--fetch http,https`, unless others are given, and `--follow` of all forms that stand for an
    /// attachment, which the words that are given change. With `--offline` nothing has to be kept: files may be enough.
    pub fn recovering(mut self) -> Self {
        let forms = Follow::ALL.into_iter().filter(|form| form.is_attachment());
        let forms = forms.map(|form| form.as_str().to_owned());
        self.policy.content.follow = forms.chain(self.policy.content.follow).collect();
        self.policy.cache.may_keep_nothing = true;
        self.fetching()
    }

    fn fetching(mut self) -> Self {
        let fetch = &mut self.policy.retrieval.fetch;
        if fetch.is_empty() {
            *fetch = vec![Scheme::Http, Scheme::Https];
        }
        self
    }

    /// The same with `--embed data,remote` and `--fetch http,https`, unless others are given.
    pub fn embedding(mut self) -> Self {
        let embed = &mut self.policy.content.embed;
        if embed.is_empty() {
            *embed = ["data", "remote"].map(str::to_owned).to_vec();
        }
        self.fetching()
    }
}

// Of commands that deliver mail, which a mail system may try again.
#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = None::<&'static str>)]
pub struct FailureArgs {
    /// Temporary failure: leave or defer [default: leave]
    #[arg(long, value_parser = word::<OnFailure>(), hide_possible_values = true, value_name = "WHAT")]
    pub on_failure: Option<OnFailure>,
}

impl FailureArgs {
    pub fn added_to(&self, mut policy: Policy) -> Policy {
        policy.on_failure = self.on_failure.unwrap_or_default();
        policy
    }
}

type Program = Vec<String>;

const DETACHED: &str = "What was detached";

// No option has a `default_value`: clap parses each as if it were given, for every message. The defaults
// are the policy's; a test holds the words of the help to them.
#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "What may be retrieved")]
pub struct PolicyArgs {
    #[command(flatten)]
    retrieval: RetrievalArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    #[command(flatten)]
    pub archive: ArchiveArgs,
    /// Append requests and answers, and which mail used them, to this WARC file; {pid} in its name, or a folder, is a file a
    /// process [default: none]
    #[arg(long, value_name = "FILE.warc.gz", help_heading = KEPT)]
    pub record: Option<PathBuf>,
    /// At how many bytes the next file begins, FILE-1.warc.gz [default: none]
    #[arg(long, value_name = "SIZE", requires = "record", help_heading = KEPT, value_parser = size)]
    pub record_max: Option<u64>,
    /// Put back what detach moved into this store: --fetch file, --file-root DIR and a --map from --base-url
    /// [default: none]
    #[arg(long, value_name = "DIR", help_heading = DETACHED, value_parser = super::retrieval::file_root)]
    store: Option<PathBuf>,
    /// What the URLs of that store begin with [default: none]
    #[arg(long, value_name = "URL", requires = "store", help_heading = DETACHED, value_parser = base_url)]
    base_url: Option<String>,
    /// Look for what Mailman took out, and what Thunderbird detached, beneath this folder, by the end of its URL; needs
    /// no --fetch [default: none]
    #[arg(long, value_name = "DIR", help_heading = "What may be retrieved", value_parser = super::retrieval::file_root)]
    attachments: Vec<PathBuf>,
    /// A program for files in clouds that want a sign-in; needs no --fetch [default: none]
    ///
    /// It is started, without a shell, for each file that a mail shows a link to and that was not retrieved. It reads one
    /// line of JSON, with url, name and provider, and writes the file; or it ends with another status than 0, and says why.
    #[arg(long, value_name = "CMD", conflicts_with = "offline", help_heading = "What may be retrieved", value_parser = words)]
    pub resolver: Option<Program>,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl PolicyArgs {
    pub fn policy(&self) -> Policy {
        let mut policy = Policy {
            limits: self.limits.limits(),
            attachments: self.attachments.clone(),
            resolver: self.resolver.clone().unwrap_or_default(),
            ..self.content.added_to(self.retrieval.policy())
        };
        if let Some(store) = &self.store {
            // Its files are allowed, and its URLs as names of them.
            policy.fetch.insert(Scheme::File);
            policy.file_roots.push(store.clone());
            if let (Some(url), Ok(folder)) = (&self.base_url, Url::from_directory_path(store))
                && let Ok(map) = format!("{url}={folder}").parse()
            {
                policy.maps.push(map);
            }
        }
        policy
    }

    pub fn store(&self) -> Option<(String, Option<&str>)> {
        let store = self.store.as_deref()?.to_str()?.to_owned();
        Some((store, self.base_url.as_deref()))
    }

    /// The start of the URLs of the store, or of one that stands for it.
    pub fn store_url(&self) -> String {
        let usual = "/srv/store".as_ref();
        let folder = Url::from_directory_path(self.store.as_deref().unwrap_or(usual));
        let base_url = self.base_url.clone();
        base_url.unwrap_or_else(|| folder.map(String::from).unwrap_or_default())
    }
}

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "What may be put in")]
struct ContentArgs {
    /// Only these media types, e.g. image/*; for data: URLs too [default: all]
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    allow_type: Vec<TypePattern>,
    /// Never these media types; wins over --allow-type [default: none]
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    deny_type: Vec<TypePattern>,
    /// Put in content whose type is not the declared one [default: off]
    #[arg(long)]
    accept_mismatch: bool,
    /// Signed or encrypted: leave or rewrite [default: leave]
    #[arg(long, value_parser = word::<Protected>(), hide_possible_values = true, value_name = "WHAT")]
    signed: Option<Protected>,
    /// Relative links: resolve or keep [default: resolve]
    #[arg(long, value_parser = word::<Links>(), hide_possible_values = true, value_name = "WHAT")]
    links: Option<Links>,
    /// References besides message/external-body: thunderbird, exchange (shortcuts that it sends), shortcuts (.url
    /// files), apple, eudora (attachments beside the mailboxes of these programs), mailman, mailman-digests, sympa, gmail,
    /// outlook, mail-drop, filelink, links (to files in clouds), all, none; -NAME takes one away
    /// [default: thunderbird,exchange,apple,eudora]
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', allow_hyphen_values = true, value_parser = follow)]
    follow: Vec<String>,
    /// What --follow was called before.
    #[arg(hide = true, long, value_parser = shortcuts)]
    shortcuts: Option<String>,
    /// Pictures of HTML from data, remote [default: none]
    ///
    /// What HTML shows becomes a part of the mail: from data: URLs, and from the web, which needs --fetch.
    #[arg(
        long,
        value_parser = ["data", "remote"],
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "WHAT,..."
    )]
    embed: Vec<String>,
    /// Which of it: image, font, media, style (style sheets, and what they show) [default: image]
    #[arg(
        long,
        value_parser = ["image", "font", "media", "style"],
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "KIND,..."
    )]
    embed_kinds: Vec<String>,
    /// Remote pictures of at most 3 by 3, or hidden: leave, blank (one transparent picture for all; nobody is
    /// asked) or fetch (which tells the sender that the mail was read) [default: leave]
    #[arg(long, value_parser = word::<Trackers>(), hide_possible_values = true, value_name = "WHAT")]
    trackers: Option<Trackers>,
    /// Say in each part that comes in from where and when, in a field X-Embody-Source [default: off]
    #[arg(long)]
    provenance: bool,
}

fn follow(word: &str) -> Result<String, Error> {
    Followed::none().told(word)?;
    Ok(word.to_owned())
}

fn shortcuts(which: &str) -> Result<String, String> {
    let now = match which {
        "all" => "--follow shortcuts",
        _ => "--follow exchange, which is the default",
    };
    Err(format!("it is part of --follow now: write {now}"))
}

impl ContentArgs {
    fn added_to(&self, policy: Policy) -> Policy {
        let embeds = |from: &str| self.embed.iter().any(|word| word == from);
        // Each was a word when it was read.
        let follow = self.follow.iter();
        let follow = follow.fold(Followed::default(), |forms, word| {
            forms.told(word).unwrap_or(forms)
        });
        let is_kind = |kind: &str| self.embed_kinds.iter().any(|word| word == kind);
        Policy {
            allow_types: self.allow_type.clone(),
            deny_types: self.deny_type.clone(),
            accept_mismatch: self.accept_mismatch,
            protected: self.signed.unwrap_or_default(),
            links: self.links.unwrap_or_default(),
            follow,
            provenance: self.provenance,
            embed: Embed {
                data: embeds("data"),
                remote: embeds("remote"),
                fonts: is_kind("font"),
                media: is_kind("media"),
                styles: is_kind("style"),
                pictures: self.embed_kinds.is_empty() || is_kind("image"),
                trackers: self.trackers.unwrap_or_default(),
            },
            ..policy
        }
    }
}

#[derive(Args, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// One retrieved body, after decompression [default: 25M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_body: Option<u64>,
    /// What one message may gain [default: 50M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_growth: Option<u64>,
    /// A message with everything put in; what no longer fits is left [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_message: Option<u64>,
    /// Retrievals for one message [default: 32]
    #[arg(long, value_name = "N")]
    max_fetches: Option<u32>,
    /// Redirects for one retrieval [default: 5]
    #[arg(long, value_name = "N")]
    max_redirects: Option<u32>,
    /// Retrievals at the same time, over all messages of a run [default: 8]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
    #[command(flatten)]
    time: TimeArgs,
    /// Levels of nesting; what is deeper stays unchanged [default: 64]
    #[arg(long, value_name = "N")]
    max_depth: Option<usize>,
    /// Parts of one message; those behind stay unchanged [default: 10000]
    #[arg(long, value_name = "N")]
    max_parts: Option<usize>,
    /// One header section [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_header: Option<u64>,
    /// How many times the bytes of a message, and of what was put into it, may be read [default: 32]
    #[arg(long, value_name = "N")]
    max_work: Option<u64>,
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            body: self.max_body.unwrap_or(default.body),
            growth: self.max_growth.unwrap_or(default.growth),
            message: self.max_message,
            fetches: self.max_fetches.unwrap_or(default.fetches),
            redirects: self.max_redirects.unwrap_or(default.redirects),
            timeout: self.time.timeout.unwrap_or(default.timeout),
            deadline: self.time.deadline.unwrap_or(default.deadline),
            in_flight: self.max_in_flight.unwrap_or(default.in_flight),
            depth: self.max_depth.unwrap_or(default.depth),
            parts: self.max_parts.unwrap_or(default.parts).max(1),
            header: self.max_header.map_or(default.header, |octets| {
                usize::try_from(octets).unwrap_or(usize::MAX)
            }),
            work: self.max_work.unwrap_or(default.work),
        }
    }
}
