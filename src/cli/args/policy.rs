//! The options that several commands share, and their conversion to a [`Policy`].

use std::path::PathBuf;

use clap::{ArgAction, Args};
use url::Url;

use super::retrieval::{ArchiveArgs, CacheArgs, KEPT, RetrievalArgs, TimeArgs};
use super::walk::SayingArgs;
use crate::cli::values::{at_least_one, base_url, choice, size, word};
use crate::engine::Mark;
use crate::engine::policy::command_line::words;
use crate::engine::policy::{
    Embed, Follow, Followed, Limits, Links, OnFailure, Policy, Protected, Scheme, Trackers,
    TypePattern, UnfollowedKinds,
};
use crate::error::Error;

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = None::<&'static str>)]
pub(crate) struct Common {
    /// Add an X-Embody field to messages that contain references
    #[arg(long, action = ArgAction::SetTrue, value_parser = choice([Mark::Off, Mark::Field]))]
    pub mark: Mark,
    #[command(flatten)]
    pub saying: SayingArgs,
    #[command(flatten)]
    pub policy: PolicyArgs,
}

pub(super) const FOLLOWED: &str =
    "Kinds of references; -NAME removes one [default: thunderbird,exchange,apple,eudora,winmail]";

impl Common {
    /// Returns the options of `recover`. Its defaults are `--fetch http,https` and `--follow` with all forms of
    /// reference that replace an attachment. Forms on the command line are applied after these defaults. With
    /// `--offline`, `recover` may run without a cache, because it can also get content from files.
    pub(crate) fn recovering(mut self) -> Self {
        self.policy.content.follow = Follow::ALL
            .into_iter()
            .filter(|form| form.is_attachment())
            .map(|form| form.as_str().to_owned())
            .chain(self.policy.content.follow)
            .collect();
        self.policy.cache.may_keep_nothing = true;
        self.policy.unfollowed = UnfollowedKinds::Links;
        self.fetching()
    }

    /// Returns the options, extended so that winmail.dat parts are unpacked. Their content is already in the message,
    /// so this needs no request.
    pub(crate) fn opening(mut self) -> Self {
        self.policy.open();
        self
    }

    fn fetching(mut self) -> Self {
        self.policy.fetch_by_default();
        self
    }

    /// Returns the options of `embed`: `--embed data,remote` and `--fetch http,https` by default.
    pub(crate) fn embedding(mut self) -> Self {
        let embed = &mut self.policy.content.embed;
        if embed.is_empty() {
            *embed = ["data", "remote"].map(str::to_owned).to_vec();
        }
        self.opening().fetching()
    }
}

// Options of the commands that a mail system calls (`filter`, `milter`). Other commands do not have them, because only
// a mail system keeps the mail and tries again later.
#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = None::<&'static str>)]
pub(super) struct FailureArgs {
    /// If content is unavailable for a while: leave or defer [default: leave]
    ///
    /// leave keeps the reference and delivers the mail. defer ends with exit status 75, so that the mail system tries
    /// the mail again later.
    #[arg(long, value_parser = word::<OnFailure>(), hide_possible_values = true, value_name = "WHAT")]
    pub on_failure: Option<OnFailure>,
}

impl FailureArgs {
    pub(super) fn added_to(&self, mut policy: Policy) -> Policy {
        policy.on_failure = self.on_failure.unwrap_or_default();
        policy
    }
}

type Program = Vec<String>;

const DETACHED: &str = "Detached attachments";

// No option has a `default_value`, because clap would parse these values in every run of `filter`, that is, for every
// message. The policy contains the defaults instead. A test compares the help texts with them.
#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Retrieval")]
pub(crate) struct PolicyArgs {
    #[command(flatten)]
    retrieval: RetrievalArgs,
    #[command(flatten)]
    pub cache: CacheArgs,
    #[command(flatten)]
    pub archive: ArchiveArgs,
    /// Append all requests and responses to this WARC file
    ///
    /// The file also records which mail used each response. If the name contains {pid}, or is the name of a directory, each
    /// process writes a file of its own.
    #[arg(long, value_name = "FILE.warc.gz", help_heading = KEPT)]
    pub record: Option<PathBuf>,
    /// Begin a further WARC file, FILE-1.warc.gz, at this size
    #[arg(long, value_name = "SIZE", requires = "record", help_heading = KEPT, value_parser = size)]
    pub record_max: Option<u64>,
    /// Put attachments back that detach moved into this directory
    ///
    /// This is short for --fetch file, --file-root DIR and, if --base-url is given, --map with that URL and DIR.
    #[arg(long, value_name = "DIR", help_heading = DETACHED, value_parser = super::retrieval::file_root)]
    store: Option<PathBuf>,
    /// Beginning of the URLs of attachments in --store
    #[arg(long, value_name = "URL", requires = "store", help_heading = DETACHED, value_parser = base_url)]
    base_url: Option<String>,
    /// Look for missing attachments in this directory first
    ///
    /// A file below DIR is used if the end of its path is the end of the URL in the mail. This applies to attachments
    /// that Mailman removed and to those that Thunderbird detached. It needs no --fetch.
    #[arg(long, value_name = "DIR", help_heading = "Retrieval", value_parser = super::retrieval::file_root)]
    attachments: Vec<PathBuf>,
    /// Take missing parts from other copies of the mail in this mailbox
    ///
    /// MAILBOX can be any mailbox that convert reads. A part is taken from another copy of the same mail if the rest of the
    /// two mails is the same, and from any mail if the digest in the reference proves it. If two copies differ, the part
    /// stays as it is. MAILBOX is read once at the start, and is used before --attachments and before any server is
    /// contacted. It needs no --fetch.
    #[arg(long, value_name = "MAILBOX", help_heading = "Retrieval", value_parser = mailbox)]
    copies: Vec<PathBuf>,
    /// Program that downloads cloud files which need a login
    ///
    /// The program is started, without a shell, for each file that a mail links to and that could not be retrieved
    /// otherwise. It reads one line of JSON with url, name and provider from stdin, and writes the file to stdout. If
    /// it cannot, it ends with a status other than 0 and writes the reason to stderr. It needs no --fetch.
    #[arg(long, value_name = "CMD", conflicts_with = "offline", help_heading = "Retrieval", value_parser = words)]
    pub resolver: Option<Program>,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    limits: LimitArgs,
    /// Kinds that the report lists although they are not followed. Only `recover` sets this.
    #[arg(skip)]
    unfollowed: UnfollowedKinds,
}

impl PolicyArgs {
    /// Adds the form `winmail` to `--follow`, before the forms of the command line, so that `--follow -winmail` can
    /// remove it.
    pub(crate) fn open(&mut self) {
        let form = Follow::Winmail.as_str().to_owned();
        self.content.follow.insert(0, form);
    }

    /// Sets `--fetch http,https` unless the command line has a `--fetch`.
    pub(crate) fn fetch_by_default(&mut self) {
        let fetch = &mut self.retrieval.fetch;
        if fetch.is_empty() {
            *fetch = vec![Scheme::Http, Scheme::Https];
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        let mut policy = Policy {
            limits: self.limits.limits(),
            attachments: self.attachments.clone(),
            copies: self.copies.clone(),
            resolver: self.resolver.clone().unwrap_or_default(),
            unfollowed: self.unfollowed,
            ..self.content.added_to(self.retrieval.policy())
        };
        if let Some(store) = &self.store {
            // With `--store`, file: URLs below the store may be read. With `--base-url`, the public URLs of the store
            // are mapped to its files, so that no requests are sent for them.
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

    pub(crate) fn store(&self) -> Option<(String, Option<&str>)> {
        let store = self.store.as_deref()?.to_str()?.to_owned();
        Some((store, self.base_url.as_deref()))
    }

    /// Removes and returns the store if it is on a server. Such a store is not a directory of this policy.
    #[cfg(all(unix, feature = "serve"))]
    pub(crate) fn take_remote_store(&mut self) -> Option<String> {
        let is_remote = |store: &PathBuf| store.to_str().is_some_and(|it| it.contains("://"));
        let store = self.store.take_if(|store| is_remote(store))?;
        store.to_str().map(str::to_owned)
    }

    #[cfg(all(unix, feature = "serve"))]
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref()
    }

    #[cfg(all(unix, feature = "serve"))]
    pub(crate) fn max_growth(&self) -> Option<u64> {
        self.limits.max_growth
    }

    /// Returns the start of the URLs of the store. Without `--store`, returns the URL of an example directory: a survey
    /// estimates the space that `detach` would save, and the length of the URLs is a part of this estimate.
    pub(crate) fn store_url(&self) -> String {
        let usual = "/srv/store".as_ref();
        let folder = Url::from_directory_path(self.store.as_deref().unwrap_or(usual));
        let base_url = self.base_url.clone();
        base_url.unwrap_or_else(|| folder.map(String::from).unwrap_or_default())
    }
}

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "New content")]
struct ContentArgs {
    /// Put in only these media types, e.g. image/* [default: all]
    ///
    /// This applies to data: URLs, too.
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    allow_type: Vec<TypePattern>,
    /// Never put in these media types; overrides --allow-type
    #[arg(long, value_name = "PAT,...", value_delimiter = ',')]
    deny_type: Vec<TypePattern>,
    /// Accept content whose type differs from the declared one
    #[arg(long)]
    accept_mismatch: bool,
    /// Signed or encrypted parts: leave or rewrite [default: leave]
    ///
    /// rewrite changes them, and their signatures become invalid.
    #[arg(long, value_parser = word::<Protected>(), hide_possible_values = true, value_name = "WHAT")]
    signed: Option<Protected>,
    /// Relative links in HTML: resolve or keep [default: resolve]
    #[arg(long, value_parser = word::<Links>(), hide_possible_values = true, value_name = "WHAT")]
    links: Option<Links>,
    /// Make links that a mail filter replaced what they were
    ///
    /// Mail filters and picture proxies replace links with URLs of their own servers: Microsoft SafeLinks, Proofpoint,
    /// Barracuda, Mimecast, Google, Gmail and Yahoo. If such a URL contains the original link, --unwrap writes the
    /// original into HTML and text. It sends no request.
    #[arg(long)]
    unwrap: bool,
    /// Further kinds of references to follow; -NAME removes one [default: thunderbird,exchange,apple,eudora]
    ///
    /// message/external-body parts are always followed. thunderbird: detached attachments. exchange: shortcuts that
    /// Exchange sends in place of attachments. shortcuts: .url files. apple, eudora: attachments that these programs
    /// keep next to their mailboxes. mailman, mailman-digests, sympa, yahoo-groups: attachments that mailing lists
    /// removed. gmail, outlook, mail-drop, filelink: links to cloud files that these programs put in place of
    /// attachments. links: all other links to cloud files. winmail: the text and the attachments in Outlook's
    /// winmail.dat; convert, embed, recover and inspect follow it by default. rtf-body: RTF that readpst attached in
    /// place of HTML or text. msg: attached messages of Outlook. uuencode: uuencoded files in text. The words all and
    /// none mean every kind and no kind.
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', allow_hyphen_values = true, value_parser = follow)]
    follow: Vec<String>,
    /// The former name of --follow.
    #[arg(hide = true, long, value_parser = shortcuts)]
    shortcuts: Option<String>,
    /// Embed pictures of HTML mail: data, remote
    ///
    /// Each picture becomes a part of the mail. data: pictures in data: URLs; remote: pictures on web servers, which
    /// also needs --fetch.
    #[arg(
        long,
        value_parser = ["data", "remote"],
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "WHAT,..."
    )]
    embed: Vec<String>,
    /// Embed image, font, media, style [default: image]
    ///
    /// style means style sheets, and everything that they display.
    #[arg(
        long,
        value_parser = ["image", "font", "media", "style"],
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "KIND,..."
    )]
    embed_kinds: Vec<String>,
    /// Tracking pictures: leave, blank or fetch [default: leave]
    ///
    /// These are remote pictures of at most 3 by 3 pixels, and hidden ones. leave keeps the URL. blank replaces each
    /// with the same transparent picture, without network requests. fetch retrieves them, which tells the sender that
    /// the mail was read.
    #[arg(long, value_parser = word::<Trackers>(), hide_possible_values = true, value_name = "WHAT")]
    trackers: Option<Trackers>,
    /// Write the source and date of retrieval into each new part
    ///
    /// The field is called X-Embody-Source.
    #[arg(long)]
    provenance: bool,
}

/// Parses the value of `--copies`. `-` and URLs are accepted here, although copies must be files: opening the mailbox
/// later gives an error message that explains the reason.
fn mailbox(text: &str) -> Result<PathBuf, String> {
    if text == "-" || text.contains("://") {
        Ok(text.into())
    } else {
        super::retrieval::file_root(text)
    }
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
    Err(format!("--shortcuts was replaced by --follow: write {now}"))
}

impl ContentArgs {
    fn added_to(&self, policy: Policy) -> Policy {
        let embeds = |from: &str| self.embed.iter().any(|word| word == from);
        // The words of `--follow` are applied in order. A word that is not a form of reference is ignored here, because
        // parsing the command line already rejected it.
        let follow = self.follow.iter().fold(Followed::default(), |forms, word| {
            forms.told(word).unwrap_or(forms)
        });
        let is_kind = |kind: &str| self.embed_kinds.iter().any(|word| word == kind);
        Policy {
            allow_types: self.allow_type.clone(),
            deny_types: self.deny_type.clone(),
            accept_mismatch: self.accept_mismatch,
            protected: self.signed.unwrap_or_default(),
            links: self.links.unwrap_or_default(),
            unwrap: self.unwrap,
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

#[derive(Args, Clone, Default, Debug)]
#[group(skip)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Maximum size of one retrieved body [default: 25M]
    ///
    /// The size is that after decompression.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_body: Option<u64>,
    /// Maximum growth of one message [default: 50M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_growth: Option<u64>,
    /// Maximum size of one message, with new content
    ///
    /// Content that no longer fits is not put in.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_message: Option<u64>,
    /// Maximum number of retrievals for one message [default: 32]
    #[arg(long, value_name = "N")]
    max_fetches: Option<u32>,
    /// Maximum number of redirects for one retrieval [default: 5]
    #[arg(long, value_name = "N")]
    max_redirects: Option<u32>,
    /// Number of parallel retrievals, in the whole run [default: 8]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
    #[command(flatten)]
    time: TimeArgs,
    /// Maximum nesting of parts [default: 64]
    ///
    /// Deeper parts stay unchanged.
    #[arg(long, value_name = "N")]
    max_depth: Option<usize>,
    /// Maximum number of parts of one message [default: 10000]
    ///
    /// Further parts stay unchanged.
    #[arg(long, value_name = "N")]
    max_parts: Option<usize>,
    /// Maximum size of one header section [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_header: Option<u64>,
    /// Limit of work on one message [default: 32]
    ///
    /// embody reads at most N times as many bytes as the message and the inserted content have together.
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
