//! Options, and the one crossing from options to [`Policy`].

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::values::{at_least_one, backup_suffix, duration, scheme, size};
use crate::expand::Mark;
use crate::mailbox::{self, Effect, Format, Locking};
use crate::policy::{
    Cidr, HostPattern, Limits, Links, Mapping, Mismatch, OnFailure, Policy, Protected, Proxy,
    Scheme, Shortcuts, TypePattern, Userinfo, parse_file_root, parse_port,
};

/// A mail filter that gives external bodies their body.
#[derive(Parser, Debug)]
#[command(
    name = "embody",
    version,
    propagate_version = true,
    max_term_width = 80,
    after_help = "Example: embody filter --fetch https < in.eml > out.eml"
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// `embody filter` alone: it runs once per message, and building the other commands' options would
/// take as long as filtering.
#[derive(Parser, Debug)]
#[command(
    name = "filter",
    bin_name = "embody filter",
    version,
    max_term_width = 80
)]
#[command(about = FILTER_ABOUT, after_help = FILTER_HELP)]
pub(super) struct FilterCli {
    #[command(flatten)]
    pub(super) args: FilterArgs,
}

const FILTER_ABOUT: &str = "Read one message, write it with its external bodies in place";
const FILTER_HELP: &str = "Example: embody filter --fetch https < in.eml > out.eml\n\
    Exit status: 0 with a whole message on stdout, else 75 and nothing on stdout.";

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    #[command(about = FILTER_ABOUT, after_help = FILTER_HELP)]
    Filter(FilterArgs),
    /// Convert mboxes, Maildirs, .eml files and folders of them
    #[command(after_help = "Example: embody convert --in-place --backup .old ~/Mail/archive.mbox")]
    Convert(ConvertArgs),
    /// Say what is in there, and what the same options would do; never fetches
    #[command(after_help = "Example: embody inspect --fetch https message.eml")]
    Inspect(InspectArgs),
    /// Print the table of access types and URL schemes
    #[command(after_help = "Example: embody schemes > schemes.md")]
    Schemes(SchemesArgs),
    /// Write the manual pages
    #[command(after_help = "Example: embody man /usr/local/share/man/man1")]
    Man(ManArgs),
    /// Write the completions for a shell
    #[command(after_help = "Example: embody completions zsh > ~/.zfunc/_embody")]
    Completions(CompletionsArgs),
}

#[derive(Args, Debug)]
pub(super) struct FilterArgs {
    /// The message; standard input if not given
    #[arg(hide_short_help = true)]
    pub(super) file: Option<PathBuf>,
    /// Temporary trouble: leave or defer [default: leave]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "WHAT")]
    on_failure: Option<OnFailureOption>,
    /// Add one header field, X-Embody, to messages that hold references
    #[arg(hide_short_help = true, long)]
    mark: bool,
    #[command(flatten)]
    pub(super) saying: SayingArgs,
    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["output", "in_place"])))]
pub(super) struct ConvertArgs {
    /// mbox files, Maildirs, messages, or folders of them
    #[arg(hide_short_help = true, required = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// The result: a new file or folder
    #[arg(long, value_name = "DEST")]
    pub(super) output: Option<PathBuf>,
    /// Replace each source by the result, under lock
    #[arg(long)]
    in_place: bool,
    /// What the sources are
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        default_value = "auto",
        hide_short_help = true
    )]
    format: FormatOption,
    /// Threads for the processor's work; as many as there are cores if not said
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<usize>,
    /// In place: keep the old file under its name with this behind it
    #[arg(
        hide_short_help = true,
        long,
        value_name = "SUFFIX",
        conflicts_with = "output",
        value_parser = OsStringValueParser::new().try_map(backup_suffix)
    )]
    backup: Option<std::ffi::OsString>,
    /// Do everything but write
    #[arg(hide_short_help = true, long)]
    dry_run: bool,
    /// A progress bar on a terminal, lines elsewhere
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub(super) progress: ProgressOption,
    /// Add one header field, X-Embody, to messages that hold references
    #[arg(hide_short_help = true, long)]
    mark: bool,
    #[command(flatten)]
    pub(super) saying: SayingArgs,
    #[command(flatten)]
    policy: PolicyArgs,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatOption {
    Auto,
    Mbox,
    Maildir,
    Eml,
}

impl ConvertArgs {
    pub(super) fn policy(&self) -> Policy {
        self.policy.policy()
    }

    pub(super) fn mark(&self) -> Mark {
        if self.mark { Mark::Field } else { Mark::Off }
    }

    /// How the mailbox room is to work. While messages wait for a network, more of them are worked
    /// on than there are cores.
    pub(super) fn options(&self) -> mailbox::Options {
        let defaults = mailbox::Options::default();
        let jobs = self.jobs.unwrap_or(defaults.jobs);
        let policy = self.policy();
        mailbox::Options {
            format: match self.format {
                FormatOption::Auto => Format::Auto,
                FormatOption::Mbox => Format::Mbox,
                FormatOption::Maildir => Format::Maildir,
                FormatOption::Eml => Format::Eml,
            },
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
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct InspectArgs {
    /// Messages, mboxes, Maildirs, folders; standard input if none is given
    #[arg(hide_short_help = true, value_name = "SOURCE")]
    pub(super) sources: Vec<PathBuf>,
    /// Print JSON lines, one per reference
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(Args, Debug)]
pub(super) struct SchemesArgs {}

#[derive(Args, Debug)]
pub(super) struct ManArgs {
    /// Where embody.1 and a page for each command go; without it embody(1) is printed
    #[arg(value_name = "DIR")]
    pub(super) folder: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(super) struct SayingArgs {
    /// Append JSON lines, one per reference; - is stderr
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
    /// Say nothing on stderr but errors
    #[arg(hide_short_help = true, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more on stderr
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

/// What may be done.
///
/// No option has a `default_value`: clap parses each as if it were given, for every message. The defaults
/// are the policy's; a test holds the words of the help to them.
#[derive(Args, Debug)]
#[command(next_help_heading = "What may be retrieved")]
struct PolicyArgs {
    /// Options in TOML; those given here win
    #[arg(long, value_name = "FILE", help_heading = None::<&'static str>)]
    config: Option<PathBuf>,
    /// What may be asked: http, https, ftp, file
    #[arg(long, value_name = "SCHEME,...", value_delimiter = ',', value_parser = scheme)]
    fetch: Vec<Scheme>,
    /// Ask only these hosts: a name, or *.example.org
    #[arg(long, value_name = "PAT")]
    allow_host: Vec<HostPattern>,
    /// Never ask these hosts; wins over --allow-host
    #[arg(hide_short_help = true, long, value_name = "PAT")]
    deny_host: Vec<HostPattern>,
    /// Also ask addresses that are not globally reachable, e.g. 10.1.0.0/16
    #[arg(hide_short_help = true, long, value_name = "CIDR")]
    allow_net: Vec<Cidr>,
    /// Ports besides the scheme's own
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = parse_port)]
    allow_port: Vec<u16>,
    /// Follow URLs with user:password@
    #[arg(hide_short_help = true, long)]
    allow_userinfo: bool,
    /// Read file: and local-file only beneath these folders
    #[arg(hide_short_help = true, long, value_name = "DIR", value_parser = parse_file_root)]
    file_root: Vec<PathBuf>,
    /// Rewrite the start of a reference before it is judged; the longest FROM wins
    #[arg(hide_short_help = true, long, value_name = "FROM=TO")]
    map: Vec<Mapping>,
    /// Go through this proxy for http and https
    #[arg(hide_short_help = true, long, value_name = "URL")]
    proxy: Option<Proxy>,
    /// Trust these certificates besides the system's
    #[arg(hide_short_help = true, long, value_name = "PEM")]
    ca_file: Option<PathBuf>,
    /// Only these media types, e.g. image/*; for data: URLs too
    #[arg(hide_short_help = true, long, value_name = "PAT", value_parser = TypePattern::parse, help_heading = "What may be put in")]
    allow_type: Vec<TypePattern>,
    /// Never these media types; wins over --allow-type
    #[arg(hide_short_help = true, long, value_name = "PAT", value_parser = TypePattern::parse, help_heading = "What may be put in")]
    deny_type: Vec<TypePattern>,
    /// Take content whose type is not the declared one
    #[arg(hide_short_help = true, long, help_heading = "What may be put in")]
    accept_mismatch: bool,
    /// Signed or encrypted: leave or rewrite [default: leave]
    #[arg(
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
    #[command(flatten)]
    limits: LimitArgs,
}

/// How much one message may cost. What is not given is as in [`Limits::default`].
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// One retrieved body, after decompression [default: 25M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_body: Option<u64>,
    /// What one message may gain [default: 50M]
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_growth: Option<u64>,
    /// Retrievals for one message [default: 32]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_fetches: Option<u32>,
    /// Redirects for one retrieval [default: 5]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_redirects: Option<u32>,
    /// Retrievals at the same time [default: 8]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = at_least_one)]
    max_in_flight: Option<usize>,
    /// One retrieval [default: 20s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration)]
    timeout: Option<Duration>,
    /// All retrievals of one message [default: 60s]
    #[arg(hide_short_help = true, long, value_name = "DUR", value_parser = duration)]
    deadline: Option<Duration>,
    /// Nesting that is looked into [default: 64]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_depth: Option<usize>,
    /// Parts of one message that are looked at [default: 10000]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_parts: Option<usize>,
    /// One header section [default: 64M]
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = size)]
    max_header: Option<u64>,
    /// How many times the octets of a message, and of what was put into it, may be looked at [default: 32]
    #[arg(hide_short_help = true, long, value_name = "N")]
    max_work: Option<u64>,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum OnFailureOption {
    #[default]
    Leave,
    Defer,
}

#[derive(Clone, Copy, Default, Debug, ValueEnum)]
enum LinksOption {
    #[default]
    Resolve,
    Keep,
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

impl FilterArgs {
    pub(super) fn policy(&self) -> Policy {
        Policy {
            on_failure: match self.on_failure.unwrap_or_default() {
                OnFailureOption::Leave => OnFailure::Leave,
                OnFailureOption::Defer => OnFailure::Defer,
            },
            ..self.policy.policy()
        }
    }

    pub(super) fn mark(&self) -> Mark {
        if self.mark { Mark::Field } else { Mark::Off }
    }
}

impl InspectArgs {
    pub(super) fn policy(&self) -> Policy {
        self.policy.policy()
    }
}

impl PolicyArgs {
    fn policy(&self) -> Policy {
        Policy {
            fetch: self.fetch.iter().copied().collect(),
            allow_hosts: self.allow_host.clone(),
            deny_hosts: self.deny_host.clone(),
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
            on_failure: OnFailure::default(),
            limits: self.limits.limits(),
        }
    }
}

impl LimitArgs {
    fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            body: self.max_body.unwrap_or(default.body),
            growth: self.max_growth.unwrap_or(default.growth),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn policy_of(arguments: &[&str]) -> Policy {
        let arguments = [&["filter"], arguments].concat();
        let cli = FilterCli::try_parse_from(arguments).expect("these are options");
        cli.args.policy()
    }

    #[test]
    fn the_defaults_are_those_of_the_policy() {
        assert_eq!(
            format!("{:?}", policy_of(&[])),
            format!("{:?}", Policy::default())
        );
    }

    /// clap does not write them, because it does not know them.
    #[test]
    fn the_help_says_the_defaults() {
        let mut said = 0;
        for option in FilterCli::command().get_arguments() {
            let help = option
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let Some((_, behind)) = help.split_once("[default: ") else {
                let is_setting = option
                    .get_long()
                    .is_some_and(|name| name.starts_with("max-"));
                assert!(!is_setting, "{option} does not say its default");
                continue;
            };
            let (value, _) = behind.split_once(']').expect("a bracket is closed");
            let name = option.get_long().expect("an option has a name");
            assert_eq!(
                format!("{:?}", policy_of(&[&format!("--{name}"), value])),
                format!("{:?}", Policy::default()),
                "--{name} {value}"
            );
            said += 1;
        }
        assert_eq!(said, 15);
    }
}
