//! Options, and the one crossing from options to [`Policy`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::expand::Mark;
use crate::mailbox::{self, Effect, Format};
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
    /// Temporary trouble: leave or defer
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT",
        default_value = "leave"
    )]
    on_failure: OnFailureOption,
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
        conflicts_with = "output"
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
    /// Signed or encrypted: leave or rewrite
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT",
        default_value = "leave",
        help_heading = "What may be put in"
    )]
    signed: SignedOption,
    /// Relative links: resolve or keep
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHAT",
        default_value = "resolve",
        help_heading = "What may be put in"
    )]
    links: LinksOption,
    /// Shortcuts (.url files) to follow: exchange (those that Exchange sends) or all
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHICH",
        default_value = "exchange",
        help_heading = "What may be put in"
    )]
    shortcuts: ShortcutsOption,
    #[command(flatten)]
    limits: LimitArgs,
}

/// How much one message may cost.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// One retrieved body, after decompression
    #[arg(long, value_name = "SIZE", default_value = "25M", value_parser = size)]
    max_body: u64,
    /// What one message may gain
    #[arg(hide_short_help = true, long, value_name = "SIZE", default_value = "50M", value_parser = size)]
    max_growth: u64,
    /// Retrievals for one message
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 32)]
    max_fetches: u32,
    /// Redirects for one retrieval
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 5)]
    max_redirects: u32,
    /// Retrievals at the same time
    #[arg(hide_short_help = true, long, value_name = "N", default_value = "8", value_parser = at_least_one)]
    max_in_flight: usize,
    /// One retrieval
    #[arg(hide_short_help = true, long, value_name = "DUR", default_value = "20s", value_parser = duration)]
    timeout: Duration,
    /// All retrievals of one message
    #[arg(hide_short_help = true, long, value_name = "DUR", default_value = "60s", value_parser = duration)]
    deadline: Duration,
    /// Nesting that is looked into
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 64)]
    max_depth: usize,
    /// Parts of one message that are looked at
    #[arg(
        hide_short_help = true,
        long,
        value_name = "N",
        default_value_t = 10_000
    )]
    max_parts: usize,
    /// One header section
    #[arg(hide_short_help = true, long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    max_header: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OnFailureOption {
    Leave,
    Defer,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LinksOption {
    Resolve,
    Keep,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShortcutsOption {
    Exchange,
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SignedOption {
    Leave,
    Rewrite,
}

impl FilterArgs {
    pub(super) fn policy(&self) -> Policy {
        Policy {
            on_failure: match self.on_failure {
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
        let limits = &self.limits;
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
            protected: match self.signed {
                SignedOption::Leave => Protected::Leave,
                SignedOption::Rewrite => Protected::Rewrite,
            },
            links: match self.links {
                LinksOption::Resolve => Links::Resolve,
                LinksOption::Keep => Links::Keep,
            },
            shortcuts: match self.shortcuts {
                ShortcutsOption::Exchange => Shortcuts::Exchange,
                ShortcutsOption::All => Shortcuts::All,
            },
            on_failure: OnFailure::default(),
            limits: Limits {
                body: limits.max_body,
                growth: limits.max_growth,
                fetches: limits.max_fetches,
                redirects: limits.max_redirects,
                timeout: limits.timeout,
                deadline: limits.deadline,
                in_flight: limits.max_in_flight,
                depth: limits.max_depth,
                parts: limits.max_parts.max(1),
                header: usize::try_from(limits.max_header).unwrap_or(usize::MAX),
            },
        }
    }
}

fn scheme(text: &str) -> Result<Scheme, String> {
    Scheme::from_name(text.trim().as_bytes())
        .ok_or_else(|| format!("'{text}' is none of http, https, ftp, file"))
}

/// `25M`, `512k`, `1G`, `1000`: octets, in powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size such as 25M, 512k or 1000");
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches("ib").trim_end_matches('b');
    let (digits, shift) = match number.char_indices().next_back() {
        Some((at, 'k')) => (number.get(..at), 10),
        Some((at, 'm')) => (number.get(..at), 20),
        Some((at, 'g')) => (number.get(..at), 30),
        Some((at, 't')) => (number.get(..at), 40),
        _ => (Some(number), 0),
    };
    let value: u64 = digits
        .and_then(|digits| digits.trim().parse().ok())
        .ok_or_else(wrong)?;
    value.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `20s`, `500ms`, `2m`, `1h`, `20`: seconds if nothing is said.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration such as 20s, 500ms or 2m");
    let lower = text.trim().to_ascii_lowercase();
    let digits_end = lower
        .find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits_end);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("'{text}' is not a number from 1 on"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("25M"), Ok(25 << 20));
        assert_eq!(size("512k"), Ok(512 << 10));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("7"), Ok(7));
        for wrong in ["", "M", "-1", "1.5M", "1x", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_said() {
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "s", "-1s", "1d", "1e99h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_policy() {
        let cli = Cli::try_parse_from(["embody", "filter"]).expect("no options are needed");
        let Command::Filter(args) = cli.command else {
            panic!("filter was asked for");
        };
        assert_eq!(args.policy().limits, Limits::default());
        assert!(args.policy().fetch.is_empty());
    }
}
