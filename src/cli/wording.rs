//! Inserts the names of command-line options into messages. The messages of the library only name the setting.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;

use serde::Serialize;

use crate::engine::PAGE_INSTEAD;
use crate::engine::policy::{Host, IpNet, Policy, Scheme};
use crate::engine::report::{Detail, Kind, Outcome, Reason, Row, Setting};
use crate::error::Error;
use crate::link::url::{UrlReference, masked};
use crate::mailbox::CompressionDamage;

pub(super) fn detail(detail: &Detail) -> String {
    detail.worded(option)
}

/// A row of a report with the options of the program.
#[derive(Serialize)]
pub(super) struct WordedRow<'r> {
    #[serde(flatten)]
    row: Cow<'r, Row>,
    /// Options that would have allowed the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_by: Option<String>,
}

/// Returns the rows as a report contains them. Without a `policy`, they do not name the options that would have allowed a
/// reference: clients of a service cannot set all of them.
pub(super) fn rows<'r>(
    rows: &'r [Row],
    policy: Option<&'r Policy>,
) -> impl Iterator<Item = WordedRow<'r>> {
    rows.iter().map(move |row| WordedRow {
        row: match row.detail.settings().next() {
            None => Cow::Borrowed(row),
            Some(_) => Cow::Owned(Row {
                detail: detail(&row.detail).into(),
                ..row.clone()
            }),
        },
        allowed_by: policy.and_then(|policy| remedy(row, policy)),
    })
}

pub(super) fn error(error: &(dyn StdError + 'static)) -> String {
    if let Some(error) = error.downcast_ref::<Error>() {
        return detail(&error.detail());
    }
    let failed = error.downcast_ref::<io::Error>();
    let held = failed.and_then(io::Error::get_ref);
    match held.and_then(|held| held.downcast_ref::<CompressionDamage>()) {
        Some(damage) => detail(&damage.detail()),
        None => error.to_string(),
    }
}

/// Returns an error for a source that is a URL, or `None` if the source is not a URL.
pub(super) fn not_a_file(source: &str) -> Option<String> {
    let (scheme, _) = source.split_once("://")?;
    let is_scheme = |it: char| it.is_ascii_alphanumeric() || "+-.".contains(it);
    if scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return None;
    }
    let advice = if scheme.eq_ignore_ascii_case("file") {
        "name the path of the file without file://"
    } else {
        "download the file first, and name the copy"
    };
    Some(format!(
        "cannot read {}: embody reads mail from files, directories and IMAP accounts (imaps://USER@HOST/), not from this URL; {advice}",
        masked(source)
    ))
}

pub(super) fn words(setting: Setting) -> &'static str {
    match setting {
        Setting::Body => "--max-body SIZE",
        Setting::Growth => "--max-growth SIZE",
        Setting::Message => "--max-message SIZE",
        Setting::Fetches => "--max-fetches N",
        Setting::Redirects => "--max-redirects N",
        Setting::Timeout => "--timeout DURATION",
        Setting::Deadline => "--deadline DURATION",
        Setting::Depth => "--max-depth N",
        Setting::Parts => "--max-parts N",
        Setting::Header => "--max-header SIZE",
        Setting::Work => "--max-work N",
        Setting::Fetch => "--fetch SCHEME",
        Setting::AllowHost => "--allow-host HOST",
        Setting::DenyHost => "--deny-host HOST",
        Setting::DenyHostFile => "--deny-host-file FILE",
        Setting::AllowNet => "--allow-net CIDR",
        Setting::AllowPort => "--allow-port PORT",
        Setting::AllowUserinfo => "--allow-userinfo",
        Setting::CaFile => "--ca-file PEM",
        Setting::AllowType => "--allow-type TYPE",
        Setting::DenyType => "--deny-type TYPE",
        Setting::AcceptMismatch => "--accept-mismatch",
        Setting::Protected => "--signed rewrite",
        Setting::Trackers => "--trackers fetch",
        Setting::Inline => "--inline",
        Setting::Follow => "--follow NAME",
        Setting::FileRoot => "--file-root DIR",
        Setting::Attachments => "--attachments DIR",
        Setting::Copies => "--copies MAILBOX",
        Setting::Resolver => "--resolver CMD",
        Setting::Proxy => "--proxy URL",
        Setting::Cache => "--cache DIR",
        Setting::ArchiveAny => "--archive-any",
        Setting::ArchiveWindow => "--archive-window BEFORE,AFTER",
        Setting::Expanded => "--max-expanded SIZE",
        Setting::Format => "--format WHAT",
        Setting::OutputFormat => "--output-format WHAT",
        Setting::InPlace => "--in-place",
        Setting::Output => "--output DEST",
        Setting::Range => "--range A-B",
        Setting::Backup => "--backup SUFFIX",
        Setting::Expect => "--expect LENGTH",
        Setting::Trash => "--trash FOLDER",
    }
}

pub(super) fn counted(count: u64, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

pub(super) fn option(setting: Setting) -> &'static str {
    let words = words(setting);
    words.split_once(' ').map_or(words, |(option, _)| option)
}

pub(crate) fn would_allow(reason: Reason) -> Option<&'static str> {
    reason.remedy().map(words)
}

pub(super) fn follow(row: &Row) -> Option<String> {
    let form = row.detail.split(' ').next()?;
    (row.reason == Some(Reason::NotFollowed)).then(|| format!("--follow {form}"))
}

/// Returns the options that would have allowed a refused reference. Each option is tested, because `--deny-host` has
/// precedence over `--allow-host`. The test resolves no host names and follows no redirects.
pub(super) fn remedy(row: &Row, policy: &Policy) -> Option<String> {
    let reason = row.reason.filter(|_| row.outcome == Outcome::Left)?;
    match reason {
        // `--signed rewrite` allows references and pictures only. No option detaches a signed or encrypted attachment.
        Reason::Signed | Reason::Encrypted if row.kind == Kind::Attachment => None,
        // `--accept-mismatch` does not help, because only a picture can replace a picture.
        Reason::TypeMismatch if row.kind == Kind::Embed => None,
        // The message exceeded a memory limit rather than `--max-work`. The memory limit depends on the size of the
        // message and cannot be set.
        Reason::TooMuchWork if !speaks_of(row, Setting::Work) => None,
        // The redirects form a loop, so a higher `--max-redirects` would not help.
        Reason::TooManyRedirects if !speaks_of(row, Setting::Redirects) => None,
        // A reference without a URL is a relative path. It is outside of all directories, so `--file-root` does not
        // help.
        Reason::OutsideFileRoot if row.url.is_none() => None,
        // No directory of Unix contains the drive, so `--file-root` does not help.
        Reason::SchemeNotAllowed | Reason::OutsideFileRoot if is_on_windows_drive(row) => None,
        Reason::RedirectRefused => redirect(row, policy),
        Reason::SchemeNotAllowed
        | Reason::HostNotAllowed
        | Reason::PrivateAddress
        | Reason::PortNotAllowed
        | Reason::UserinfoNotAllowed
        | Reason::OutsideFileRoot
        | Reason::TypeNotAllowed
        | Reason::NotFollowed
        | Reason::Signed
        | Reason::Encrypted => opening(row, reason, policy),
        _ => would_allow(reason).map(str::to_owned),
    }
}

/// Whether the row refers to a file on a drive of Windows, such as `file:///C:/Users/a.pdf`, and the program runs on another
/// system.
fn is_on_windows_drive(row: &Row) -> bool {
    let reference = UrlReference::split(row.url.as_deref().unwrap_or_default());
    let path = reference.path.trim_start_matches('/').as_bytes();
    let has_drive =
        matches!(path, [letter, b':' | b'|', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    cfg!(unix) && reference.has_scheme("file") && has_drive
}

/// Returns whether the server of the row no longer has the content, so that an archive may have it.
pub(super) fn is_gone(row: &Row) -> bool {
    row.outcome == Outcome::Left
        && match row.reason {
            Some(Reason::HttpStatus) => matches!(row.status, Some(404 | 410)),
            reason => reason == Some(Reason::NameNotFound),
        }
}

/// Advice about a reference whose content could not be retrieved, although the options allow it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Advice {
    /// Whether the server was not asked, because the run is offline.
    is_offline: bool,
    /// Whether an archive may have the content.
    archive: bool,
    /// Whether an archive may have the content, although the server responds with a web page and not with an error. Such an
    /// archive is used only if it gets the first request.
    archive_first: bool,
    /// Whether a directory of the user may contain the file.
    directory: bool,
    /// Whether other copies of the mail may contain the part.
    copies: bool,
}

impl Advice {
    /// Returns the advice for a row. `None` if nothing can be advised, or if an [option](remedy) would allow the
    /// reference.
    pub(super) fn of(row: &Row, policy: &Policy) -> Option<Self> {
        let reason = row.reason.filter(|_| row.outcome == Outcome::Left)?;
        let is_elsewhere = matches!(reason, Reason::SchemeNotAllowed | Reason::OutsideFileRoot)
            && is_on_windows_drive(row);
        let is_missing = matches!(
            reason,
            Reason::Offline
                | Reason::NotArchived
                | Reason::ArchiveBusy
                | Reason::FileNotReadable
                | Reason::ConnectionFailed
                | Reason::NameNotFound
                | Reason::NameServerFailed
                | Reason::HttpStatus
                | Reason::FtpStatus
                | Reason::IncompleteBody
                | Reason::BadResponse
                | Reason::WebPage
                | Reason::Deleted
        );
        let is_page = row.kind == Kind::Embed && row.detail == PAGE_INSTEAD;
        let url = UrlReference::split(row.url.as_deref().unwrap_or_default());
        let mut schemes = ["http", "https", "ftp"].into_iter();
        let advice = Self {
            is_offline: reason == Reason::Offline && schemes.any(|it| url.has_scheme(it)),
            archive: is_gone(row),
            archive_first: is_page,
            directory: row.sources.directory
                && policy.attachments.is_empty()
                && reason != Reason::Deleted,
            copies: row.sources.copies && policy.copies.is_empty(),
        };
        let is_some = advice.is_offline || !advice.options().is_empty();
        ((is_missing || is_elsewhere || is_page) && is_some && remedy(row, policy).is_none())
            .then_some(advice)
    }

    /// Removes the archive from the advice. Returns `None` if nothing else is left.
    pub(super) fn without_archive(self) -> Option<Self> {
        let advice = Self {
            archive: false,
            archive_first: false,
            ..self
        };
        (advice.is_offline || !advice.options().is_empty()).then_some(advice)
    }

    fn options(self) -> Vec<&'static str> {
        [
            (self.archive, "--archive URL|FILE"),
            (self.archive_first, "--archive URL|FILE --archive-first"),
            (self.directory, words(Setting::Attachments)),
            (self.copies, words(Setting::Copies)),
        ]
        .into_iter()
        .filter_map(|(is_wanted, words)| is_wanted.then_some(words))
        .collect()
    }

    /// Returns the advice as a part of a sentence.
    pub(super) fn text(self) -> String {
        let online = self
            .is_offline
            .then(|| "a run without --offline would request it from its server".to_owned());
        let options = self.options();
        let others = options.split_last().map(|(last, before)| match before {
            [] => format!("{last} may provide it"),
            before => format!("{} or {last} may provide it", before.join(", ")),
        });
        let parts: Vec<String> = online.into_iter().chain(others).collect();
        parts.join(", and ")
    }
}

fn given(setting: Setting, value: impl Display) -> String {
    format!("{} {value}", option(setting))
}

fn speaks_of(row: &Row, setting: Setting) -> bool {
    row.detail.settings().any(|it| it == setting)
}

/// Returns the options with which the policy would allow the reference of the row, or `None` if no option helps. It
/// finds them by changing a copy of the policy until the reference is allowed.
fn opening(row: &Row, reason: Reason, policy: &Policy) -> Option<String> {
    let url = &*policy.map(row.url.as_deref().unwrap_or_default());
    let has_denied_hosts = !(policy.deny_hosts.is_empty() && policy.listed_hosts.is_empty());
    let mut policy = policy.clone();
    let mut words = Vec::new();
    match reason {
        Reason::Signed | Reason::Encrypted => {
            words.extend(would_allow(Reason::Signed).map(str::to_owned));
        }
        Reason::NotFollowed => words.extend(follow(row)),
        _ => {}
    }
    let reference = UrlReference::split(url);
    let is_within_message = ["data", "cid", "mid"].map(|it| reference.has_scheme(it));
    let is_in_directory = row.sources.directory && !policy.attachments.is_empty();
    let is_only_followed =
        reason == Reason::NotFollowed && (is_in_directory || is_on_windows_drive(row));
    let is_retrieved =
        reference.scheme.is_some() && !is_within_message.contains(&true) && !is_only_followed;
    let mut tried: Vec<Reason> = Vec::new();
    while is_retrieved && let Err(refusal) = policy.judge_url(url) {
        if tried.contains(&refusal.reason) {
            return None;
        }
        words.push(open(&mut policy, refusal.reason, &reference)?);
        tried.push(refusal.reason);
    }
    if reference.has_scheme("ftp") && policy.proxy.is_some() {
        return None;
    }
    if let Some(media_type) = &row.media_type
        && policy.judge_type(media_type).is_err()
    {
        policy.allow_types.push(media_type.parse().ok()?);
        policy.judge_type(media_type).ok()?;
        words.push(given(Setting::AllowType, media_type));
    } else if reason == Reason::TypeNotAllowed && !policy.deny_types.is_empty() {
        return None;
    }
    match words.is_empty() {
        false => Some(words.join(" ")),
        // The policy allows the URL of the row, so it must have refused something that the row does not contain: the
        // address of the host, or the target of a redirect. This target can be a host of `--deny-host`, for which no
        // option helps. So no option is named if there are such hosts.
        true if reason != Reason::TypeNotAllowed && has_denied_hosts => None,
        true => match address_in(row).filter(|_| reason == Reason::PrivateAddress) {
            Some(address) => Some(given(Setting::AllowNet, IpNet::from(address))),
            None => would_allow(reason).map(str::to_owned),
        },
    }
}

/// Returns the address of the host, if the detail of a row names it.
fn address_in(row: &Row) -> Option<IpAddr> {
    let detail = detail(&row.detail);
    let mut words = detail.split_whitespace();
    words.find_map(|word| word.trim_matches(',').parse().ok())
}

fn open(policy: &mut Policy, reason: Reason, reference: &UrlReference<'_>) -> Option<String> {
    let site = reference.site();
    Some(match reason {
        Reason::SchemeNotAllowed => {
            let scheme = Scheme::from_name(reference.scheme?.as_bytes())?;
            fetch_also(policy, scheme)
        }
        Reason::HostNotAllowed => {
            let host = site?.host.to_ascii_lowercase();
            policy.allow_hosts.extend([host.parse().ok()?]);
            given(Setting::AllowHost, host)
        }
        Reason::PrivateAddress => {
            let host = Host::parse(site?.host)?;
            if host.is_own_name() && policy.proxy.is_some() {
                policy.allow_hosts.extend([host.to_string().parse().ok()?]);
                return Some(given(Setting::AllowHost, host));
            }
            let opened = IpNet::from(*host.known_addresses()?.first()?);
            policy.allow_nets.push(opened);
            given(Setting::AllowNet, opened)
        }
        Reason::PortNotAllowed => {
            let port: u16 = site?.port?.parse().ok()?;
            policy.allow_ports.insert(port);
            given(Setting::AllowPort, port)
        }
        Reason::UserinfoNotAllowed => {
            policy.allow_userinfo = true;
            would_allow(reason)?.to_owned()
        }
        Reason::OutsideFileRoot => {
            policy.file_roots.push("/".into());
            would_allow(reason)?.to_owned()
        }
        _ => return None,
    })
}

/// Adds a scheme to the policy, and returns the `--fetch` option of this policy. The option contains all schemes of the
/// policy: `--fetch ftp` alone would forbid http and https, which `embed` allows by default.
fn fetch_also(policy: &mut Policy, scheme: Scheme) -> String {
    policy.fetch.insert(scheme);
    let schemes: Vec<&str> = policy.fetch.iter().map(|it| it.as_str()).collect();
    given(Setting::Fetch, schemes.join(","))
}

/// Returns the option that would have allowed a redirect. Redirects can lead only to http or https, so the missing
/// scheme is the one that `--fetch` does not contain. No option allows a redirect from https to http.
fn redirect(row: &Row, policy: &Policy) -> Option<String> {
    if !speaks_of(row, Setting::Fetch) {
        return None;
    }
    let mut schemes = [Scheme::Http, Scheme::Https].into_iter();
    let scheme = schemes.find(|scheme| !policy.fetch.contains(scheme))?;
    let from = UrlReference::split(row.url.as_deref()?);
    let is_downward = from.has_scheme("https") && scheme == Scheme::Http;
    (!is_downward).then(|| fetch_also(&mut policy.clone(), scheme))
}

/// Returns the word that users see for an outcome. The JSON report calls unchanged references "left", which could also
/// mean that something was removed, so users see "unchanged".
pub(super) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Left => "unchanged",
        outcome => outcome.as_str(),
    }
}

pub(super) fn outcome_and_reason(row: &Row) -> String {
    let outcome = outcome(row.outcome);
    match row.reason {
        Some(reason) => format!("{outcome}: {}", reason.as_str()),
        None => outcome.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn each_setting_names_an_option_of_the_program() {
        let mut known = BTreeSet::new();
        let mut program = Cli::command();
        program.build();
        for command in program.get_subcommands() {
            known.extend(
                command
                    .get_arguments()
                    .filter_map(|it| it.get_long().map(str::to_owned)),
            );
        }
        for setting in Setting::ALL {
            let name = option(*setting).strip_prefix("--");
            assert!(name.is_some_and(|name| known.contains(name)), "{name:?}");
        }
    }

    #[test]
    fn the_page_of_reasons_quotes_the_advice() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reasons.md");
        let page = fs::read_to_string(path).unwrap().replace("\\|", "|");
        let none = Advice {
            is_offline: false,
            archive: false,
            archive_first: false,
            directory: false,
            copies: false,
        };
        let online = Advice {
            is_offline: true,
            ..none
        };
        let archive = Advice {
            archive: true,
            ..none
        };
        let archive_first = Advice {
            archive_first: true,
            ..none
        };
        for advice in [online, archive, archive_first] {
            let text = advice.text();
            assert!(page.contains(&format!("`{text}`")), "{text}");
        }
        let other = Advice {
            directory: true,
            copies: true,
            ..none
        };
        for option in other.options() {
            assert!(page.contains(&format!("`{option}`")), "{option}");
        }
    }

    #[test]
    fn the_table_of_reasons_is_the_list_of_reasons() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reasons.md");
        let page = fs::read_to_string(path).unwrap();
        let shown: Vec<&str> = page
            .lines()
            .skip_while(|line| !line.starts_with("| reason |"))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .collect();
        let row = |reason: &Reason| {
            let remedy = would_allow(*reason).map_or_else(String::new, |it| format!("`{it}`"));
            let (word, meaning) = (reason.as_str(), reason.meaning());
            format!("| `{word}` | {meaning} | {remedy} |")
        };
        let rows: Vec<String> = Reason::ALL.iter().map(row).collect();
        assert_eq!(shown, rows);
    }
}
