//! Counts references by their outcome, and writes the sentences about them in the summary.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::say::{harmless, harmless_sentence};
use super::tally::RowTally;
use super::wording::{self, counted};
use crate::engine::Mode;
use crate::engine::policy::Policy;
use crate::engine::report::{Kind, Outcome, Provenance, Reason, Row, ServerContact};
use crate::span::starts_like;

/// The task of a run, which determines the verbs in the sentences of the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Task {
    FillIn,
    Detach,
    Restore,
}

/// The kinds of references, each with its own sentence in the summary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ReferenceGroup {
    Picture,
    Attachment,
    /// An attachment in the mail that `detach` moves into a store, or would move in a dry run.
    Stored,
    Document,
    /// A link that a mail filter wrapped, or a document with such links.
    Wrapped,
}

impl ReferenceGroup {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Embed => Self::Picture,
            Kind::Attachment => Self::Stored,
            Kind::Link => Self::Document,
            Kind::Wrapped => Self::Wrapped,
            _ => Self::Attachment,
        }
    }
}

/// The classes of rows that the sentences count. A row can have several classes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum OutcomeClass {
    Done(ReferenceGroup),
    WouldFetch(ReferenceGroup),
    /// A reference that was left unchanged, with the reason as a phrase.
    Kept(ReferenceGroup, String),
    Tracker,
    Blanked,
    /// Links that were made absolute.
    Link,
    /// An attachment that is not detached, because the mail displays it.
    Displayed,
    /// A server sent a response.
    Answered,
    /// No server could be reached, for this reason.
    Unreachable(&'static str),
    /// The server no longer has the content: status 404 or 410, or the host does not exist.
    Gone,
    /// An error status that may be from the proxy ([`OF_PROXIES`]).
    OfProxy,
    /// An attachment that could not be written to the store or read from it, for this cause.
    StoreFailure(String),
}

/// Counts of references by their outcome.
#[derive(Default, Debug)]
pub(super) struct Outcomes(RowTally<OutcomeClass>);

/// Maximum number of different causes of failures of the store that are counted.
const MOST_CAUSES: usize = 20;

/// Statuses with which a proxy reports that it cannot reach the server, or does not allow the request. Servers send the
/// same statuses. A status is therefore attributed to the proxy only if no request of the run had any other response.
const OF_PROXIES: [u16; 4] = [403, 502, 503, 504];

fn may_be_of_proxy(row: &Row, policy: &Policy) -> bool {
    let url = row.final_url.as_deref().or(row.url.as_deref());
    // For https, an error status inside the tunnel through the proxy is from the server. If the proxy does not open the
    // tunnel, the connection fails without a status.
    let is_http = url.is_some_and(|url| starts_like(url.as_bytes(), b"http:"));
    let is_error = row
        .status
        .is_some_and(|status| OF_PROXIES.contains(&status));
    policy.proxy.is_some() && is_http && is_error && row.reason == Some(Reason::HttpStatus)
}

/// Returns whether a server sent a response for this row, or could not be reached. `None` if no request was made.
fn response(row: &Row) -> Option<OutcomeClass> {
    match row.contact {
        ServerContact::Responded => return Some(OutcomeClass::Answered),
        ServerContact::Unreachable(reason) => {
            return Some(OutcomeClass::Unreachable(phrase(reason)));
        }
        ServerContact::AsReason => {}
    }
    match row.reason.filter(|_| row.outcome == Outcome::Left) {
        Some(
            reason @ (Reason::ConnectionFailed
            | Reason::NameNotFound
            | Reason::NameServerFailed
            | Reason::TlsFailed
            | Reason::Timeout),
        ) if row.status.is_none() => Some(OutcomeClass::Unreachable(phrase(reason))),
        // With each of these reasons, a server sent a response but no content. The row can lack the status of the
        // response, so the reason alone shows that the server responded.
        Some(
            Reason::BadResponse
            | Reason::HttpStatus
            | Reason::IncompleteBody
            | Reason::RedirectRefused
            | Reason::TooManyRedirects
            | Reason::WebPage,
        ) => Some(OutcomeClass::Answered),
        // The row of a probe contains no content and can lack a status. The outcome `WouldFetch` then shows that a server
        // responded and has the content.
        _ => {
            let came = matches!(row.from, Provenance::Network | Provenance::Archive);
            let is_there = row.outcome == Outcome::WouldFetch;
            (came || is_there || row.status.is_some()).then_some(OutcomeClass::Answered)
        }
    }
}

impl Outcomes {
    pub(super) fn count(&mut self, row: &Row, policy: &Policy) {
        let thing = match row.from {
            // A part from another copy of the mail always counts as an attachment. The kind of its reference may name a
            // store, but the store was not read.
            Provenance::Copy => ReferenceGroup::Attachment,
            _ => ReferenceGroup::of(row.kind),
        };
        let links = row.links.unwrap_or(0);
        self.0.count_several(OutcomeClass::Link, links);
        if may_be_of_proxy(row, policy) {
            self.0.count(OutcomeClass::OfProxy, 0);
        } else if let Some(class) = response(row) {
            self.0.count(class, 0);
        }
        if (row.outcome, row.reason) == (Outcome::Left, Some(Reason::StoreFailed)) {
            // The causes can contain names of objects, so the number of different ones is limited.
            let failure = OutcomeClass::StoreFailure(wording::detail(&row.detail));
            let is_new = !self.0.has(&failure);
            let counted_as = if is_new && self.store_failures().count() >= MOST_CAUSES {
                OutcomeClass::StoreFailure("other causes".to_owned())
            } else {
                failure
            };
            self.0.count(counted_as, 0);
        }
        let class = match (row.outcome, row.reason) {
            (Outcome::Left, Some(Reason::Tracker)) => OutcomeClass::Tracker,
            (Outcome::Left, Some(reason)) => {
                if wording::is_gone(row) {
                    self.0.count(OutcomeClass::Gone, 0);
                }
                if reason == Reason::ShownInline {
                    let octets = row.bytes.unwrap_or(0);
                    self.0.count(OutcomeClass::Displayed, octets);
                }
                OutcomeClass::Kept(thing, because(reason, row))
            }
            (Outcome::Blanked | Outcome::WouldBlank, _) => OutcomeClass::Blanked,
            (Outcome::WouldFetch, _) => OutcomeClass::WouldFetch(thing),
            (Outcome::Rewritten | Outcome::WouldRewrite, _) if thing != ReferenceGroup::Wrapped => {
                return;
            }
            (Outcome::Left, _) => return,
            _ => OutcomeClass::Done(thing),
        };
        self.0.count(class, 0);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0.add(other.0);
    }

    fn store_failures(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.classes().filter_map(|(class, count)| match class {
            OutcomeClass::StoreFailure(cause) => Some((cause.as_str(), count)),
            _ => None,
        })
    }

    fn unreachable(&self) -> BTreeMap<&'static str, u64> {
        let reasons = self.0.classes().filter_map(|(class, count)| match class {
            OutcomeClass::Unreachable(reason) => Some((*reason, count)),
            _ => None,
        });
        reasons.collect()
    }

    /// Returns why references of this group were left unchanged.
    fn kept(&self, thing: ReferenceGroup) -> BTreeMap<&str, u64> {
        let reasons = self.0.classes().filter_map(|(class, count)| match class {
            OutcomeClass::Kept(group, reason) if *group == thing => Some((reason.as_str(), count)),
            _ => None,
        });
        reasons.collect()
    }

    /// Returns whether requests were sent and no server responded.
    pub(super) fn has_no_response(&self) -> bool {
        let has_failed = self.0.has(&OutcomeClass::OfProxy) || !self.unreachable().is_empty();
        has_failed && !self.0.has(&OutcomeClass::Answered)
    }

    /// Returns whether a mail server refused a message, or had no room for it.
    pub(super) fn has_server_refusals(&self) -> bool {
        let words = [Reason::QuotaFull, Reason::ServerRefused].map(phrase);
        self.0.classes().any(|(class, _)| {
            matches!(class, OutcomeClass::Kept(_, reason) if words.contains(&reason.as_str()))
        })
    }

    /// Returns the number of references whose server no longer has the content, or 0 if no server responded.
    pub(super) fn gone(&self) -> u64 {
        if self.has_no_response() {
            0
        } else {
            self.0.of(&OutcomeClass::Gone)
        }
    }

    /// Returns the sentence of the summary for a run in which no server responded. `again` says how to repeat the run.
    pub(super) fn no_response(&self, again: &str) -> String {
        let mut failed = self.unreachable();
        let of_proxy = self.0.of(&OutcomeClass::OfProxy);
        if of_proxy > 0 {
            failed.insert("with an error from the proxy", of_proxy);
        }
        let what = match failed.values().sum() {
            1 => "the only request failed".to_owned(),
            count => format!("all {count} requests failed"),
        };
        format!(
            "No server responded: {what} ({}). Check the network connection and the option --proxy; then {again}",
            listed(&failed)
        )
    }

    /// Returns the sentence of the summary about attachments that could not be written to the store or read from it, or `None`
    /// if there are none. `again` says how to repeat the run.
    pub(super) fn store_failure(&self, task: Task, again: &str) -> Option<String> {
        let (cause, _) = self.store_failures().max_by_key(|(_, count)| *count)?;
        let all = self.store_failures().map(|(_, count)| count).sum();
        let count = counted(all, "attachment");
        let what = match task {
            Task::Detach => {
                format!("{count} could not be written to the store and stayed in the mail")
            }
            Task::Restore | Task::FillIn => format!("{count} could not be read from the store"),
        };
        let cause = harmless_sentence(cause);
        Some(format!(
            "{what}: {cause}. After this problem is solved, {again}"
        ))
    }

    pub(super) fn sentences(&self, task: Task, mode: Mode, pictures_follow: bool) -> String {
        let mut text = String::new();
        for thing in [
            ReferenceGroup::Picture,
            ReferenceGroup::Attachment,
            ReferenceGroup::Stored,
        ] {
            let done = self.0.of(&OutcomeClass::Done(thing));
            if done > 0 || !self.kept(thing).is_empty() {
                let _ = writeln!(text, "{}", self.sentence(thing, done, task, mode));
            }
            let would = self.0.of(&OutcomeClass::WouldFetch(thing));
            if would > 0 && !(thing == ReferenceGroup::Picture && pictures_follow) {
                let name = if thing == ReferenceGroup::Picture {
                    "picture"
                } else {
                    "attachment"
                };
                let _ = writeln!(text, "{} would be retrieved.", counted(would, name));
            }
        }
        let would = if !mode.writes() { "would be" } else { "were" };
        let was = |count: u64| match (mode, count) {
            (Mode::Run, 1) => "was",
            _ => would,
        };
        let blanked = self.0.of(&OutcomeClass::Blanked);
        if blanked > 0 {
            let (trackers, was) = (counted(blanked, "tracking picture"), was(blanked));
            let _ = writeln!(text, "{trackers} {was} replaced with a blank picture.");
        }
        let trackers = self.0.of(&OutcomeClass::Tracker);
        if trackers > 0 {
            let (trackers, was) = (counted(trackers, "tracking picture"), was(trackers));
            let not = if !mode.writes() {
                "would not be touched"
            } else {
                "not touched"
            };
            let was = if !mode.writes() {
                String::new()
            } else {
                format!("{was} ")
            };
            let _ = writeln!(text, "{trackers} {was}{not}.");
        }
        let links = self.0.of(&OutcomeClass::Link);
        if links > 0 {
            let (links, was) = (counted(links, "link"), was(links));
            let _ = writeln!(text, "{links} {was} made absolute.");
        }
        let unwrapped = self.0.of(&OutcomeClass::Done(ReferenceGroup::Wrapped));
        if unwrapped > 0 {
            let (links, was) = (counted(unwrapped, "wrapped link"), was(unwrapped));
            let _ = writeln!(text, "{links} {was} replaced with the original URL.");
        }
        let reasons = self.kept(ReferenceGroup::Wrapped);
        if !reasons.is_empty() {
            let count: u64 = reasons.values().sum();
            let (texts, keep) = (
                counted(count, "text"),
                if count == 1 { "keeps" } else { "keep" },
            );
            let _ = writeln!(text, "{texts} {keep} wrapped links: {}.", listed(&reasons));
        }
        let reasons = self.kept(ReferenceGroup::Document);
        if !reasons.is_empty() {
            let count: u64 = reasons.values().sum();
            let (documents, keep) = (
                counted(count, "document"),
                if count == 1 {
                    "keeps its"
                } else {
                    "keep their"
                },
            );
            let _ = writeln!(
                text,
                "{documents} {keep} relative links: {}.",
                listed(&reasons)
            );
        }
        text
    }

    fn sentence(&self, thing: ReferenceGroup, done: u64, task: Task, mode: Mode) -> String {
        let would = if !mode.writes() { "would be " } else { "" };
        let (name, verb) = match (thing, task) {
            (ReferenceGroup::Picture, _) => ("picture", "saved in the mail"),
            (ReferenceGroup::Stored, Task::Detach) => ("attachment", "moved into the store"),
            (ReferenceGroup::Stored, _) => ("attachment", "put back from the store"),
            _ => ("attachment", "put into the mail"),
        };
        let mut text = format!("{} {would}{verb}.", counted(done, name));
        let reasons = self.kept(thing);
        if !reasons.is_empty() {
            let count: u64 = reasons.values().sum();
            let not = match (thing, task, mode) {
                (ReferenceGroup::Stored, Task::Detach, Mode::Run) => "kept",
                (ReferenceGroup::Stored, Task::Detach, Mode::Probe | Mode::DryRun) => {
                    "would be kept"
                }
                (_, _, Mode::Run) => "could not be",
                (_, _, Mode::Probe | Mode::DryRun) => "would not be",
            };
            let _ = write!(text, " {count} {not}: {}.", listed(&reasons));
            let is_store_empty = reasons.contains_key(phrase(Reason::NotInStore));
            if thing == ReferenceGroup::Stored && done == 0 && is_store_empty {
                text += " The store does not contain these attachments: check that --store names the directory or server that embody detach used.";
            }
            let displayed = self.0.amount(&OutcomeClass::Displayed).octets;
            if displayed > 0 && thing == ReferenceGroup::Stored {
                let size = super::sizes::size(displayed);
                let _ = write!(
                    text,
                    " The attachments that the mail displays have {size} together."
                );
            }
        }
        text
    }
}

/// Lists the reasons, the most frequent one first.
fn listed<K: AsRef<str> + Ord>(reasons: &BTreeMap<K, u64>) -> String {
    const MOST: usize = 8;
    let mut reasons: Vec<(&str, u64)> = reasons
        .iter()
        .map(|(reason, count)| (reason.as_ref(), *count))
        .collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let (shown, others) = reasons.split_at(reasons.len().min(MOST));
    let mut words: Vec<String> = shown
        .iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    if !others.is_empty() {
        let count: u64 = others.iter().map(|(_, count)| count).sum();
        words.push(format!("{count} for other reasons"));
    }
    words.join(", ")
}

fn because(reason: Reason, row: &Row) -> String {
    match (reason, row.status) {
        (Reason::HttpStatus, Some(status @ (404 | 410))) => format!("gone ({status})"),
        (Reason::HttpStatus, Some(status @ (401 | 403))) => format!("forbidden ({status})"),
        (Reason::HttpStatus, Some(status @ 500..)) => format!("with a server error ({status})"),
        (Reason::HttpStatus, Some(status)) => format!("with status {status}"),
        (Reason::FtpStatus, Some(status)) => format!("refused by an FTP server ({status})"),
        (Reason::NotFollowed, _) => match super::wording::follow(row) {
            Some(option) => format!("not followed ({})", harmless(&option)),
            None => phrase(reason).to_owned(),
        },
        _ => phrase(reason).to_owned(),
    }
}

/// Returns a phrase for the reason that can follow a number: "3 timed out".
fn phrase(reason: Reason) -> &'static str {
    match reason {
        Reason::SchemeNotAllowed => "not allowed by --fetch",
        Reason::Offline => "not available offline",
        Reason::InArchive => "only in the archive",
        Reason::NotArchived => "gone and not in the archive",
        Reason::ArchiveBusy => "gone, and the archive is busy",
        Reason::SecretUrl => "gone, with a secret URL",
        Reason::UnsupportedScheme => "not supported",
        Reason::HostNotAllowed => "on hosts that are not allowed",
        Reason::PrivateAddress => "at private addresses",
        Reason::PortNotAllowed => "at ports that are not allowed",
        Reason::UserinfoNotAllowed => "with a user name in the URL",
        Reason::OutsideFileRoot => "outside --file-root",
        Reason::NotARegularFile => "not regular files",
        Reason::FileNotReadable => "missing or unreadable files",
        Reason::AmbiguousFile => "ambiguous (several files match)",
        Reason::NotInCopies => "not in --copies",
        Reason::CopiesDiffer => "different in several copies of the mail",
        Reason::FileTaken => "part of another mail",
        Reason::TypeNotAllowed => "with a type that is not allowed",
        Reason::TypeMismatch => "with a type that differs from the declared one",
        Reason::SizeMismatch => "with a size that differs from the declared one",
        Reason::DigestMismatch => "changed since the mail was written",
        Reason::TooLarge => "too large (--max-body)",
        Reason::GrowthLimit => "above the growth limit (--max-growth)",
        Reason::MessageLimit => "above the message limit (--max-message)",
        Reason::TooMuchWork => "above the work limit (--max-work)",
        Reason::TooManyFetches => "above the retrieval limit (--max-fetches)",
        Reason::TooManyRedirects => "redirected too often",
        Reason::RedirectRefused => "redirected to a URL that is not allowed",
        Reason::Timeout => "timed out",
        Reason::HostUnresponsive => "on hosts that timed out three times in a row",
        Reason::Deadline => "above the time limit (--deadline)",
        Reason::ConnectionFailed => "on servers that did not accept a connection",
        Reason::NameNotFound => "on hosts whose names cannot be resolved",
        Reason::NameServerFailed => "on hosts whose names could not be looked up",
        Reason::TlsFailed => "on servers without a valid certificate",
        Reason::HttpStatus => "refused by the server",
        Reason::FtpStatus => "refused by an FTP server",
        Reason::IncompleteBody => "incomplete",
        Reason::BadResponse => "with a malformed response",
        Reason::BadUrl => "with a malformed URL",
        Reason::BadDataUrl => "with a malformed data: URL",
        Reason::NoBase => "with a relative URL and no base URL",
        Reason::MissingUrl => "without a URL",
        Reason::MissingParameter => "without a required parameter",
        Reason::NoAccessType => "without an access type",
        Reason::UnsupportedAccessType => "with an unsupported access type",
        Reason::UnknownAccessType => "with an unknown access type",
        Reason::NotFollowed => "not followed",
        Reason::UnsupportedDocument => "in AMP documents",
        Reason::Tracker => "tracking pictures",
        Reason::NotAnImage => "not pictures, or unsafe pictures",
        Reason::WebPage => "replaced by a web page",
        Reason::SignIn => "available only after a login",
        Reason::ScanPage => "replaced by a virus scan warning",
        Reason::Expired => "expired",
        Reason::OnlineDocument => "online documents or download pages without a file",
        Reason::ResolverFailed => "not delivered by --resolver",
        Reason::Deleted => "deleted from the mail on purpose",
        Reason::ContentIdNotFound => "with a Content-ID that no part of the mail has",
        Reason::ReferenceLoop => "referring to themselves",
        Reason::CompositeTarget => "referring to a message or multipart",
        Reason::BoundaryCollision => "with a line that is also a boundary line of the mail",
        Reason::UnfitComposite => "multiparts or messages that cannot be inserted",
        Reason::ControlCharacter => "with control characters",
        Reason::Signed => "signed",
        Reason::Encrypted => "encrypted",
        Reason::InsideReport => "in delivery reports",
        Reason::EncodedReference => "encoded references",
        Reason::CharsetNotSupported => "in an unsupported charset",
        Reason::UndecodableBody => "in a damaged or unsupported encoding",
        Reason::LooksEncoded => "in an encoding that differs from the declared encoding",
        Reason::LineTooLong => "with lines that would be too long",
        Reason::RivalExpanded => "replaced by another source",
        Reason::TooDeep => "nested too deeply (--max-depth)",
        Reason::TooManyParts => "above the part limit (--max-parts)",
        Reason::HoldsSeparator => "where a \"From \" line may be the start of another message",
        Reason::ShownInline => "displayed by the mail (--inline moves them)",
        Reason::NotRestorable => "not restorable byte for byte",
        Reason::StoreFailed => "with an error of the store",
        Reason::NotInStore => "not in the store",
        Reason::BadNote => "with a malformed X-Embody-Detached field",
        Reason::AlreadyInMail => "already in the mail, except for data that cannot be extracted",
        Reason::DamagedFile => "damaged",
        Reason::NoCounterpart => {
            "with content for which mail has no counterpart (such as contacts)"
        }
        Reason::HeaderTooLarge => "above the header limit (--max-header)",
        Reason::ChangedMeanwhile => "changed by another program during the run",
        Reason::AlteredByServer => "altered by the server",
        Reason::FlagsNotKept => "with flags that the server cannot store",
        Reason::QuotaFull => "above the quota",
        Reason::ServerRefused => "refused by the mail server",
        Reason::AmbiguousCopy => "with several possible copies on the server",
        Reason::WrongSize => "with a wrong size on the server",
        Reason::NulByte => "with NUL bytes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_phrase_of_its_own() {
        let mut phrases: Vec<&str> = Reason::ALL.iter().map(|reason| phrase(*reason)).collect();
        phrases.sort_unstable();
        phrases.dedup();
        assert_eq!(phrases.len(), Reason::ALL.len());
    }

    #[test]
    fn reasons_are_listed_by_frequency_and_rare_ones_together() {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        reasons.insert("gone (404)".into(), 242);
        reasons.insert("timed out".into(), 29);
        reasons.insert("replaced by a web page".into(), 44);
        assert_eq!(
            listed(&reasons),
            "242 gone (404), 44 replaced by a web page, 29 timed out"
        );
        for number in 0..10 {
            reasons.insert(format!("reason {number}"), 1);
        }
        assert!(listed(&reasons).ends_with(", 5 for other reasons"));
    }
}
