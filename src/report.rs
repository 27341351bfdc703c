//! What became of each reference, and why.
//!
//! One [`Row`] per reference and per rewritten document, in the order of the message. A row that
//! says `left` always carries a [`Reason`]; [`Reason`] is the one list of them, and a test
//! compares it with docs/reasons.md. Rows hold the text of the mail: whoever prints one to a terminal
//! removes control characters there (`cli/say.rs`). Passwords are masked before a row is made.

use std::time::{SystemTime, UNIX_EPOCH};

use mail_parser::DateTime;
use serde::Serialize;

pub use crate::detail::{Detail, Setting};

/// What kind of reference a row is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A `message/external-body` part (RFC 2046 §5.2.3, RFC 2017).
    ExternalBody,
    /// An attachment that Thunderbird or a relative detached.
    Detached,
    /// An `[InternetShortcut]` file, as Exchange writes them.
    Shortcut,
    /// The links of one HTML or CSS document.
    Link,
    /// Content embedded into HTML.
    Embed,
    /// An attachment that `detach` moves into a store, or one that it moved there.
    Attachment,
}

impl Kind {
    /// The word used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ExternalBody => "external-body",
            Self::Detached => "detached",
            Self::Shortcut => "shortcut",
            Self::Link => "link",
            Self::Embed => "embed",
            Self::Attachment => "attachment",
        }
    }
}

/// What became of a reference, or, in a forecast and a dry run, what would.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// The content stands where the reference was.
    Expanded,
    /// Links of a document were changed, or a rival part was removed.
    Rewritten,
    /// The content was moved into a store, and the part refers to it.
    Detached,
    /// The part is what it was before its content was moved into a store.
    Restored,
    /// The content is in the message itself and would be put in.
    WouldExpand,
    /// The policy allows a retrieval; whether it succeeds is not known.
    WouldFetch,
    /// Bytes of the document would change, or the rival part would be removed.
    WouldRewrite,
    /// The content would be moved into a store.
    WouldDetach,
    /// The content is in the store, and the part would be what it was.
    WouldRestore,
    /// Every byte of it is unchanged, or would be.
    Left,
}

impl Outcome {
    /// The word used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expanded => "expanded",
            Self::Rewritten => "rewritten",
            Self::Detached => "detached",
            Self::Restored => "restored",
            Self::WouldExpand => "would-expand",
            Self::WouldFetch => "would-fetch",
            Self::WouldRewrite => "would-rewrite",
            Self::WouldDetach => "would-detach",
            Self::WouldRestore => "would-restore",
            Self::Left => "left",
        }
    }

    /// The same of a run that writes nothing.
    #[must_use]
    pub fn would(self) -> Self {
        match self {
            Self::Expanded => Self::WouldExpand,
            Self::Rewritten => Self::WouldRewrite,
            Self::Detached => Self::WouldDetach,
            Self::Restored => Self::WouldRestore,
            other => other,
        }
    }
}

/// A setting by its name, or `none`.
macro_rules! remedy {
    (none) => {
        None
    };
    ($setting:ident) => {
        Some(Setting::$setting)
    };
}

macro_rules! reasons {
    ($($variant:ident $word:literal $remedy:ident $meaning:literal;)*) => {
        /// Why a part was left unchanged: the one list. Words are stable.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = concat!("`", $word, "`: ", $meaning)] $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of the table in docs/reasons.md.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The stable kebab-case word.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// What it means, as a sentence without a full stop.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// The setting that would have allowed it; none where none would.
            #[must_use]
            pub fn remedy(self) -> Option<Setting> {
                match self { $(Self::$variant => remedy!($remedy),)* }
            }
        }
    };
}

reasons! {
    SchemeNotAllowed "scheme-not-allowed" Fetch "the URL's scheme is not among those that may be retrieved";
    NotRetrieved "not-retrieved" none "a dry run retrieves nothing; a probe only asks whether the source answers";
    Offline "offline" none "the run is offline: only the cache is asked, and it does not have this";
    InArchive "in-archive" none "a dry run retrieves nothing; the source is gone, and the archive has a capture of it";
    NotArchived "not-archived" none "the source is gone, and the archive has no capture of it that could be put in: none at all, none near enough to the mail, or only one of an error";
    ArchiveBusy "archive-busy" none "the source is gone, and the archive is not asked now: it asked for a pause, or others are before";
    SecretUrl "secret-url" ArchiveAny "the source is gone, and the archive is not told of a URL that looks like a secret or names no public host";
    UnsupportedScheme "unsupported-scheme" none "the scheme can be retrieved, but not in this case: ftp through a proxy, a folder, a file of another machine";
    HostNotAllowed "host-not-allowed" AllowHost "the host is denied, or not among the allowed ones";
    PrivateAddress "private-address" AllowNet "the host is, or resolves to, an address that is not globally reachable";
    PortNotAllowed "port-not-allowed" AllowPort "the port is not the scheme's own";
    UserinfoNotAllowed "userinfo-not-allowed" AllowUserinfo "the URL carries a user name or password";
    OutsideFileRoot "outside-file-root" FileRoot "the file is not beneath an allowed folder";
    NotARegularFile "not-a-regular-file" none "the file is a directory, a device, a pipe or a socket";
    FileNotReadable "file-not-readable" none "the file does not exist or cannot be read";
    TypeNotAllowed "type-not-allowed" AllowType "the media type is denied, or not among the allowed ones";
    TypeMismatch "type-mismatch" AcceptMismatch "the content's type is not the declared one";
    DigestMismatch "digest-mismatch" none "the content does not have the declared Content-MD5, or the SHA-256 of the note that detach left";
    TooLarge "too-large" Body "the content, or its declared size, is above the limit of one body";
    GrowthLimit "growth-limit" Growth "the message would gain more than it may";
    MessageLimit "message-limit" Message "the message would be larger than it may";
    TooMuchWork "too-much-work" Work "this would mean reading more bytes than the limit of work allows, or holding more than is in proportion to the message, which no option changes";
    TooManyFetches "too-many-fetches" Fetches "the message asks for more retrievals than it may";
    TooManyRedirects "too-many-redirects" Redirects "more redirects than are allowed, or a redirect loop";
    RedirectRefused "redirect-refused" Fetch "a redirect leads to a scheme that is not allowed, from https to http, or nowhere";
    Timeout "timeout" Timeout "the retrieval took longer than one may";
    Deadline "deadline" Deadline "the retrievals of the message, or the work on it, took longer than they may together";
    ConnectionFailed "connection-failed" none "no connection could be made, or it broke";
    NameNotFound "name-not-found" none "the host's name does not resolve";
    TlsFailed "tls-failed" CaFile "the server's certificate or TLS handshake was not acceptable";
    HttpStatus "http-status" none "the server answered with another status than 200";
    FtpStatus "ftp-status" none "the FTP server refused a command";
    IncompleteBody "incomplete-body" none "the content ended before it was whole: the server closed the connection, or the part referred to was cut off";
    BadResponse "bad-response" none "the server's answer could not be understood";
    BadUrl "bad-url" none "the URL cannot be understood, or holds what may not stand in it";
    BadDataUrl "bad-data-url" none "the data: URL has no comma, or its base64 is damaged";
    NoBase "no-base" none "the URL is relative and no base is declared";
    MissingUrl "missing-url" none "access-type=URL without a URL parameter";
    MissingParameter "missing-parameter" none "a parameter that the access type needs is missing";
    NoAccessType "no-access-type" none "message/external-body without an access-type";
    UnsupportedAccessType "unsupported-access-type" none "the access type is known, but embody does not retrieve by it";
    UnknownAccessType "unknown-access-type" none "the access type is unknown";
    UnsupportedDocument "unsupported-document" none "pictures are not embedded into this kind of document: AMP";
    Tracker "tracker" Trackers "the picture is at most 3 by 3 or hidden: it is there to be asked for";
    NotAnImage "not-an-image" none "the content is none that may be embedded, or an SVG that runs scripts or refers elsewhere";
    Deleted "deleted" none "the attachment was deleted, not detached: there is nothing to retrieve";
    ContentIdNotFound "content-id-not-found" none "no other part of the message has this Content-ID";
    ReferenceLoop "reference-loop" none "the reference leads back to itself, or to a part that it is inside of";
    CompositeTarget "composite-target" none "the Content-ID belongs to a multipart or a message, which is not copied";
    BoundaryCollision "boundary-collision" none "the content holds a line that is a boundary of the message it would be put into, or is a multipart that would swallow the parts that follow";
    UnfitComposite "unfit-composite" none "the content is a multipart or a message that cannot stand here without an encoding: it has no boundary, 8-bit bytes or lines that are too long, or is itself an external body";
    ControlCharacter "control-character" none "a phantom header field, or a multipart or message that would be put in, holds a bare CR or a NUL, which other readers take for a line end";
    Signed "signed" Protected "the part is signed, or inside a signed part";
    Encrypted "encrypted" Protected "the part is encrypted, or inside an encrypted part";
    InsideReport "inside-report" none "the part is inside a multipart/report, which is kept as evidence";
    EncodedReference "encoded-reference" none "the external-body part is itself base64 or quoted-printable encoded";
    CharsetNotSupported "charset-not-supported" none "the text is in a charset that is not a superset of ASCII";
    UndecodableBody "undecodable-body" none "the body's transfer encoding is damaged";
    LooksEncoded "looks-encoded" none "the text looks quoted-printable, but is not labelled so";
    LineTooLong "line-too-long" none "the change would make a line of a 7bit or 8bit body longer than 998 bytes";
    RivalExpanded "rival-expanded" none "another source of the same object was put in, and this one was removed";
    TooDeep "too-deep" Depth "the part is nested deeper than is looked into";
    TooManyParts "too-many-parts" Parts "the message has more parts than are looked at";
    HoldsSeparator "holds-separator" none "what would change holds a line that starts with \"From \", where another message of the mailbox may start";
    ShownInline "shown-inline" Inline "a document of the mail shows the part or refers to it, or may do so but cannot be read; or it is an inline picture beside HTML: detach leaves it";
    NotRestorable "not-restorable" none "the part could not be put back byte for byte: detach leaves it";
    StoreFailed "store-failed" none "the store of detached attachments could not be written, or read";
    NotInStore "not-in-store" none "the store does not have the content of the attachment";
    BadNote "bad-note" none "the note that detach left, X-Embody-Detached, cannot be read or does not fit the part";
    HeaderTooLarge "header-too-large" Header "a header section is larger than is read";
}

impl Reason {
    /// Whether a limit of the message was reached: a later run may do what was left.
    #[must_use]
    pub fn is_bound(self) -> bool {
        matches!(
            self,
            Self::GrowthLimit
                | Self::MessageLimit
                | Self::TooManyFetches
                | Self::TooMuchWork
                | Self::Deadline
        )
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One reference, or one rewritten document: what became of it, or would.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// Which message: its number in a mailbox, counted from 1, or a file's name.
    pub message: String,
    /// Which part, as IMAP numbers them: `1.2.1`; empty for the message itself.
    pub part: String,
    /// What kind of reference.
    pub kind: Kind,
    /// The absolute URL where one is known, the password masked; `data:` URLs are shortened.
    pub url: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it was left; always there when `outcome` says so.
    pub reason: Option<Reason>,
    /// A sentence for a person.
    pub detail: Detail,
    /// The media type that was put in or found, `type/subtype`.
    pub media_type: Option<String>,
    /// Octets of the content, decoded.
    pub bytes: Option<u64>,
    /// Milliseconds the retrieval took.
    pub ms: Option<u64>,
    /// For a document: how many links changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
    /// For what an archive gave: when it captured that, as in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
}

impl Row {
    /// A row that says no more yet.
    pub(crate) fn new(message: &str, part: String, kind: Kind, outcome: Outcome) -> Self {
        Self {
            message: message.to_owned(),
            part,
            kind,
            url: None,
            outcome,
            reason: None,
            detail: Detail::default(),
            media_type: None,
            bytes: None,
            ms: None,
            links: None,
            archive: None,
        }
    }

    /// Says why.
    pub(crate) fn tell_refusal(&mut self, refusal: Refusal) {
        self.reason = Some(refusal.reason);
        self.detail = refusal.detail;
    }

    /// What a mail waits for that is to be tried later.
    pub(crate) fn waiting_for(&self, detail: &Detail) -> Detail {
        let url = self.url.as_ref().map(|url| format!(" <{url}>"));
        let detail = Detail::from(format!("part {}: ", self.part)).then(detail.clone());
        detail.then(url.unwrap_or_default())
    }

    /// Says that the content is from an archive.
    pub(crate) fn tell_capture(&mut self, captured: Option<SystemTime>) {
        let Some(captured) = captured else { return };
        let seconds = captured
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let time = DateTime::from_timestamp(i64::try_from(seconds).unwrap_or(0)).to_rfc3339();
        self.remark(&format!("from the archive, captured {time}"));
        self.archive = Some(time);
    }

    /// The word of its outcome, with the reason.
    #[cfg(feature = "cli")]
    pub(crate) fn outcome_and_reason(&self) -> String {
        let outcome = self.outcome.as_str();
        match self.reason {
            Some(reason) => format!("{outcome}: {}", reason.as_str()),
            None => outcome.to_owned(),
        }
    }

    /// Adds a remark to the detail: something worth knowing that changed nothing.
    pub fn remark(&mut self, note: &str) {
        self.detail.push("; ");
        self.detail.push(note);
    }
}

/// Why one reference could not be followed; becomes a [`Row`] that says `left`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// A sentence for a person, without a full stop; may quote the mail. It knows which settings refused it.
    pub detail: Detail,
    /// Whether trying later may help (time-outs, refused connections, 408, 429, 5xx).
    pub retry: Retry,
    /// Whether the source is gone, as far as an archive is concerned: 404, 410, no such host, nobody at the port.
    pub(crate) is_gone: bool,
}

/// Whether trying again may help.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retry {
    /// The same answer is expected the next time.
    Never,
    /// A later try may succeed; [`OnFailure::Defer`](crate::policy::OnFailure::Defer) asks for one.
    Later,
}

impl Refusal {
    /// A refusal that will be the same the next time.
    pub fn lasting(reason: Reason, detail: impl Into<Detail>) -> Self {
        Self {
            reason,
            detail: detail.into(),
            retry: Retry::Never,
            is_gone: false,
        }
    }

    /// A failure that may be over the next time.
    pub fn temporary(reason: Reason, detail: impl Into<Detail>) -> Self {
        Self {
            reason,
            detail: detail.into(),
            retry: Retry::Later,
            is_gone: false,
        }
    }
}

/// Everything a run has to say about one message, or would have.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// One row per reference and per document, in the order of the message.
    pub rows: Vec<Row>,
    /// Things worth knowing that changed nothing: a size that disagrees, a DKIM signature that
    /// will not verify any more. Each names its part; the details of rows say the same.
    pub notes: Vec<String>,
    /// Octets that the message gained. In a forecast, those that it would gain at most by what is in it; what would
    /// be retrieved comes on top.
    pub gained: i64,
}

impl Report {
    /// Links that changed, over all documents.
    #[must_use]
    pub fn links(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.links).sum()
    }

    /// The report of a run that writes nothing: what was left only because nothing is retrieved would be retrieved.
    #[must_use]
    pub(crate) fn would(mut self) -> Self {
        for row in &mut self.rows {
            match row.reason {
                Some(Reason::NotRetrieved) => {
                    (row.outcome, row.reason) = (Outcome::WouldFetch, None);
                }
                Some(Reason::InArchive) => row.outcome = Outcome::WouldFetch,
                _ => row.outcome = row.outcome.would(),
            }
        }
        self
    }

    /// References whose content was put in.
    #[must_use]
    pub fn expanded(&self) -> usize {
        self.count(Outcome::Expanded)
    }

    /// Attachments that were moved into a store.
    #[must_use]
    pub fn detached(&self) -> usize {
        self.count(Outcome::Detached)
    }

    /// Attachments that came back from a store.
    #[must_use]
    pub fn restored(&self) -> usize {
        self.count(Outcome::Restored)
    }

    /// References that were left, documents not counted.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rows
            .iter()
            .filter(|row| row.outcome == Outcome::Left && row.kind != Kind::Link)
            .count()
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.rows
            .iter()
            .filter(|row| row.outcome == outcome)
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_distinct_kebab_case_words() {
        let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert!(words.iter().all(|word| {
            word.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        }));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Reason::ALL.len());
    }
}
