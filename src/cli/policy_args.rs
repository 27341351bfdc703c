//! The options that all commands share, and the one crossing from options to [`Policy`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use url::Url;

use super::archive_args::ArchiveArgs;
use super::cache_args::CacheArgs;
use super::values::{
    HostList, at_least_one, base_url, duration_or_none, file, host_list, scheme, size,
};
use crate::policy::{
    Embed, HostPattern, IpNet, Limits, Links, Mapping, Mismatch, Policy, Protected, Proxy, Scheme,
    Shortcuts, Trackers, TypePattern, Userinfo, parse_file_root, parse_network, parse_port,
};

// No option has a `default_value`: clap parses each as if it were given, for every message. The defaults
// are the policy's; a test holds the words of the help to them.
#[derive(Args, Default, Debug)]
#[command(next_help_heading = "What may be retrieved")]
pub(super) struct PolicyArgs {
    #[command(flatten)]
    retrieval: RetrievalArgs,
    #[command(flatten)]
    archive: ArchiveArgs,
    /// Put back what detach moved into this store: --fetch file, --file-root DIR and a --map from --base-url
    /// [default: none]
    #[arg(hide_short_help = true, long, value_name = "DIR", value_parser = parse_file_root)]
    store: Option<PathBuf>,
    /// What the URLs of that store begin with [default: none]
    #[arg(hide_short_help = true, long, value_name = "URL", requires = "store", value_parser = base_url)]
    base_url: Option<String>,
    /// Only these media types, e.g. image/*; for data: URLs too [default: all]
    #[arg(hide_short_help = true, long, value_name = "PAT,...", value_delimiter = ',', value_parser = TypePattern::parse, help_heading = "What may be put in")]
    allow_type: Vec<TypePattern>,
    /// Never these media types; wins over --allow-type [default: none]
    #[arg(hide_short_help = true, long, value_name = "PAT,...", value_delimiter = ',', value_parser = TypePattern::parse, help_heading = "What may be put in")]
    deny_type: Vec<TypePattern>,
    /// Put in content whose type is not the declared one [default: off]
    #[arg(hide_short_help = true, long, help_heading = "What may be put in")]
    accept_mismatch: bool,
    /// Signed or encrypted: leave or rewrite [default: leave]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT",
        help_heading = "What may be put in"
    )]
    signed: Option<SignedOption>,
    /// Relative links: resolve or keep [default: resolve]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT",
        help_heading = "What may be put in"
    )]
    links: Option<LinksOption>,
    /// Shortcuts (.url files) to follow: exchange (those that Exchange sends) or all [default:
    /// exchange]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHICH",
        help_heading = "What may be put in"
    )]
    shortcuts: Option<ShortcutsOption>,
    /// Pictures of HTML from data, remote [default: none]
    ///
    /// What HTML shows becomes a part of the mail: from data: URLs, and from the web, which needs --fetch.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "WHAT,...",
        help_heading = "What may be put in"
    )]
    embed: Vec<EmbedOption>,
    /// Which of it: image, font, media, style (style sheets, and what they show) [default: image]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        value_name = "KIND,...",
        help_heading = "What may be put in"
    )]
    embed_kinds: Vec<KindOption>,
    /// Remote pictures of at most 3 by 3, or hidden: leave, blank (one transparent picture for all; nobody is
    /// asked) or fetch (which tells the sender that the mail was read) [default: leave]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT",
        help_heading = "What may be put in"
    )]
    trackers: Option<TrackersOption>,
    #[command(flatten)]
    limits: LimitArgs,
}

// Where content may be retrieved from.
#[derive(Args, Default, Debug)]
#[command(next_help_heading = "What may be retrieved")]
pub(super) struct RetrievalArgs {
    /// Options in TOML; those given here win [default: none]
    #[arg(long, value_name = "FILE", help_heading = None::<&'static str>, value_parser = file())]
    config: Option<PathBuf>,
    #[arg(
        long, value_name = "SCHEME,...", value_delimiter = ',', value_parser = scheme,
        help = format!("Retrieve by: {} [default: none]", Scheme::names())
    )]
    fetch: Vec<Scheme>,
    /// Only NAME,*.example.org,... [default: all public]
    #[arg(long, value_name = "PAT", value_delimiter = ',')]
    allow_host: Vec<HostPattern>,
    /// Never these hosts; wins over --allow-host [default: none]
    #[arg(
        hide_short_help = true,
        long,
        value_name = "PAT,...",
        value_delimiter = ','
    )]
    deny_host: Vec<HostPattern>,
    /// A file of hosts never to ask: a host or *.host a line, # begins a comment [default: none]
    #[arg(hide_short_help = true, long, value_name = "FILE", value_parser = host_list)]
    deny_host_file: Vec<HostList>,
    /// Also from addresses that are not globally reachable, e.g. 10.1.0.0/16 [default: none]
    #[arg(hide_short_help = true, long, value_name = "CIDR,...", value_delimiter = ',', value_parser = parse_network)]
    allow_net: Vec<IpNet>,
    /// Also from these ports, not only the scheme's own [default: none]
    #[arg(hide_short_help = true, long, value_name = "N,...", value_delimiter = ',', value_parser = parse_port)]
    allow_port: Vec<u16>,
    /// Follow URLs with user:password@ [default: off]
    #[arg(hide_short_help = true, long)]
    allow_userinfo: bool,
    /// Read file: and local-file only beneath these folders [default: none]
    #[arg(hide_short_help = true, long, value_name = "DIR", value_parser = parse_file_root)]
    file_root: Vec<PathBuf>,
    /// Retrieve from TO what refers to FROM; the longest FROM wins [default: none]
    #[arg(hide_short_help = true, long, value_name = "FROM=TO")]
    map: Vec<Mapping>,
    /// Go through this proxy for http and https [default: none]
    ///
    /// It resolves the names behind it, so the addresses behind names are not checked: names of an own
    /// network (without a dot, .local, .internal, .home.arpa) need --allow-host, and what else may not be
    /// reached the proxy has to refuse.
    #[arg(hide_short_help = true, long, value_name = "URL")]
    proxy: Option<Proxy>,
    /// Trust these certificates besides the system's [default: none]
    #[arg(hide_short_help = true, long, value_name = "PEM", value_parser = file())]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cache: CacheArgs,
}

// How much one message may cost. What is not given is as in `Limits::default`.
#[derive(Args, Default, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// One retrieved body, after decompression [default: 25M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_body: Option<u64>,
    /// What one message may gain [default: 50M]
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_growth: Option<u64>,
    /// A message with everything put in; what no longer fits is left [default: none]
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_message: Option<u64>,
    /// Retrievals for one message [default: 32]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_fetches: Option<u32>,
    /// Redirects for one retrieval [default: 5]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_redirects: Option<u32>,
    /// Retrievals at the same time, over all messages of a run [default: 8]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
    /// One retrieval; 0 is no limit [default: 20s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration_or_none)]
    timeout: Option<Duration>,
    /// All retrievals of one message; 0 is no limit [default: 60s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration_or_none)]
    deadline: Option<Duration>,
    /// Levels of nesting; what is deeper stays unchanged [default: 64]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_depth: Option<usize>,
    /// Parts of one message; those behind stay unchanged [default: 10000]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_parts: Option<usize>,
    /// One header section [default: 64M]
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_header: Option<u64>,
    /// How many times the octets of a message, and of what was put into it, may be read [default: 32]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_work: Option<u64>,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum LinksOption {
    #[default]
    Resolve,
    Keep,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum EmbedOption {
    Data,
    Remote,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum KindOption {
    Image,
    Font,
    Media,
    Style,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum TrackersOption {
    #[default]
    Leave,
    Blank,
    Fetch,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum ShortcutsOption {
    #[default]
    Exchange,
    All,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum SignedOption {
    #[default]
    Leave,
    Rewrite,
}

impl PolicyArgs {
    pub(super) fn archive(&self) -> &ArchiveArgs {
        &self.archive
    }

    pub(super) fn cache(&self) -> &CacheArgs {
        &self.retrieval.cache
    }

    /// What the options allow.
    pub(super) fn policy(&self) -> Policy {
        Policy {
            allow_types: self.allow_type.clone(),
            deny_types: self.deny_type.clone(),
            mismatch: if self.accept_mismatch {
                Mismatch::Accept
            } else {
                Mismatch::Refuse
            },
            protected: match self.signed.unwrap_or_default() {
                SignedOption::Leave => Protected::Leave,
                SignedOption::Rewrite => Protected::Rewrite,
            },
            links: match self.links.unwrap_or_default() {
                LinksOption::Resolve => Links::Resolve,
                LinksOption::Keep => Links::Keep,
            },
            shortcuts: match self.shortcuts.unwrap_or_default() {
                ShortcutsOption::Exchange => Shortcuts::Exchange,
                ShortcutsOption::All => Shortcuts::All,
            },
            embed: Embed {
                data: self.embed.contains(&EmbedOption::Data),
                remote: self.embed.contains(&EmbedOption::Remote),
                fonts: self.embed_kinds.contains(&KindOption::Font),
                media: self.embed_kinds.contains(&KindOption::Media),
                styles: self.embed_kinds.contains(&KindOption::Style),
                pictures: self.embed_kinds.is_empty()
                    || self.embed_kinds.contains(&KindOption::Image),
                trackers: match self.trackers.unwrap_or_default() {
                    TrackersOption::Leave => Trackers::Leave,
                    TrackersOption::Blank => Trackers::Blank,
                    TrackersOption::Fetch => Trackers::Fetch,
                },
            },
            limits: self.limits.limits(),
            ..self.retrieval.policy()
        }
        .with_store(self.store.as_deref(), self.base_url.as_deref())
    }
}

impl PolicyArgs {
    /// What the URLs of the store begin with, if there is one.
    pub(super) fn store_url(&self) -> Option<String> {
        let store = self.store.as_deref()?;
        let of_folder = || Url::from_directory_path(store).ok().map(String::from);
        self.base_url.clone().or_else(of_folder)
    }
}

impl RetrievalArgs {
    /// What may be retrieved; nothing else of the policy is other than usual.
    pub(super) fn policy(&self) -> Policy {
        Policy {
            fetch: self.fetch.iter().copied().collect(),
            allow_hosts: self.allow_host.iter().cloned().collect(),
            deny_hosts: self.deny_host.iter().cloned().collect(),
            listed_hosts: self
                .deny_host_file
                .iter()
                .flat_map(|list| &list.0)
                .cloned()
                .collect(),
            allow_nets: self.allow_net.clone(),
            allow_ports: self.allow_port.iter().copied().collect(),
            userinfo: if self.allow_userinfo {
                Userinfo::Allow
            } else {
                Userinfo::Refuse
            },
            file_roots: self.file_root.clone(),
            maps: self.map.clone(),
            proxy: self.proxy.clone(),
            ca_file: self.ca_file.clone(),
            ..Policy::default()
        }
    }
}

impl Policy {
    /// Allows a store of detached attachments: its files, and its URLs as names of them.
    fn with_store(mut self, store: Option<&Path>, base_url: Option<&str>) -> Self {
        let Some(store) = store else { return self };
        self.fetch.insert(Scheme::File);
        self.file_roots.push(store.to_owned());
        if let (Some(base_url), Ok(folder)) = (base_url, Url::from_directory_path(store))
            && let Ok(map) = format!("{base_url}={folder}").parse()
        {
            self.maps.push(map);
        }
        self
    }
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
            timeout: self.timeout.unwrap_or(default.timeout),
            deadline: self.deadline.unwrap_or(default.deadline),
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
