//! What became of each reference, and why: one [`Row`] per reference and per rewritten document, in the order of the message.
//!
//! A row that says `left` always carries a [`Reason`]; a test compares their list with docs/reasons.md. Rows hold the
//! text of the mail: code that prints one to a terminal removes control characters there (`cli/say.rs`). Passwords are
//! masked before a row is made.

mod reason;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mail_parser::DateTime;
use serde::Serialize;

pub use self::reason::Reason;
use crate::detail::words;
pub use crate::detail::{Detail, Setting};

words! {
    /// What kind of reference a row is about.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        ExternalBody "external-body" "A `message/external-body` part (RFC 2046 §5.2.3, RFC 2017).";
        Detached "detached" "An attachment that Thunderbird or a similar mail program detached.";
        Shortcut "shortcut" "An `[InternetShortcut]` file with the URL of the content, as Exchange writes it.";
        Mailman "mailman" "An attachment that Mailman removed from a message to a mailing list.";
        Hosted "hosted" "A file in cloud storage that a mail links to instead of attaching it.";
        Apple "apple" "An attachment that Apple Mail stores in a separate file.";
        Eudora "eudora" "An attachment that Eudora stores in a separate file, or text that Eudora marked without MIME.";
        Tnef "tnef" "A `winmail.dat` of Outlook, which contains the text or the attachments of the mail.";
        Rtf "rtf" "RTF in place of the HTML or the text of the mail.";
        Msg "msg" "An attached message of Outlook (`.msg`).";
        Uuencode "uuencode" "uuencoded files in a text.";
        Link "link" "The links in one HTML or CSS document.";
        Embed "embed" "Content embedded into HTML.";
        Attachment "attachment" "An attachment that `detach` moves, or has moved, into a store.";
    }
}

/// Where content came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Provenance {
    /// A server.
    Network,
    /// A cache on a disk, which had it from a server.
    Cache,
    /// A web archive.
    Archive,
    /// A file of this machine.
    File,
    /// The program that gets what needs a sign-in.
    Resolver,
    /// The store that it was detached into.
    Store,
    /// The message itself.
    Message,
    /// No content came.
    #[default]
    None,
}

/// What a mail says of a file that a cloud keeps. All of it is the writer's claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct HostedFile {
    /// Who keeps it: `google-drive`, `onedrive`, `sharepoint`, `mail-drop`, `dropbox`, `box`, `nextcloud`, `filelink` for another cloud
    /// of Thunderbird's, `sympa`.
    pub provider: &'static str,
    /// Its name.
    pub name: Option<String>,
    /// The URL that the mail shows, the password masked.
    pub link: String,
    /// Until when it is there: as in RFC 3339, or as the mail says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

words! {
    /// What became of a reference, or, in a forecast and a dry run, what would.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum Outcome {
        Expanded "expanded" "The content replaces the reference.";
        Rewritten "rewritten" "Links in a document were changed, or an alternative version of the inserted content was removed.";
        Detached "detached" "The content was moved into a store, and the part refers to it.";
        Restored "restored" "The attachment is back in the part, exactly as it was before `detach` moved it into a store.";
        Blanked "blanked" "A blank picture replaces the tracker.";
        WouldExpand "would-expand" "The content is already in the message and would replace the reference.";
        WouldFetch "would-fetch" "The policy allows a retrieval; whether it succeeds is not known.";
        WouldRewrite "would-rewrite" "Links in the document would change, or an alternative version of the inserted content would be removed.";
        WouldDetach "would-detach" "The content would be moved into a store.";
        WouldRestore "would-restore" "The content is in the store, and the attachment would be put back exactly.";
        WouldBlank "would-blank" "A blank picture would replace the tracker.";
        Left "left" "The reference is unchanged, or would be unchanged, byte for byte.";
    }
}

impl Outcome {
    /// The same of a run that writes nothing.
    pub fn would(self) -> Self {
        match self {
            Self::Expanded => Self::WouldExpand,
            Self::Rewritten => Self::WouldRewrite,
            Self::Detached => Self::WouldDetach,
            Self::Restored => Self::WouldRestore,
            Self::Blanked => Self::WouldBlank,
            other => other,
        }
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
    /// Where the content came from.
    pub from: Provenance,
    /// The status of the answer, or the reply of an FTP server; also of one that gave no content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The URL that gave the content, after redirects, the password masked.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub final_url: Option<Arc<str>>,
    /// SHA-256 of the content that was retrieved or detached, decoded, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// When the source gave the content, as in RFC 3339; of a cache, when its source gave or last confirmed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieved_at: Option<String>,
    /// When an archive captured the content, as in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<String>,
    /// The record of the answer, `urn:uuid:...`, where all that is retrieved is recorded.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub record: Option<Arc<str>>,
    /// Of a file in a cloud, what the mail says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted: Option<Box<HostedFile>>,
    /// Whether figures that the mail notes of the content hold: of Apple's Mail, the length of the encoded body;
    /// of Eudora, the hash of what the HTML refers to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub proved: bool,
}

fn shared<S: serde::Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

impl Row {
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
            from: Provenance::None,
            status: None,
            final_url: None,
            sha256: None,
            retrieved_at: None,
            captured_at: None,
            record: None,
            hosted: None,
            proved: false,
        }
    }

    /// Memory that the row needs, in bytes. Text that several rows share is not counted.
    #[cfg(feature = "cli")]
    pub(crate) fn weight(&self) -> usize {
        let texts = [
            Some(&self.message),
            Some(&self.part),
            self.url.as_ref(),
            self.media_type.as_ref(),
            self.sha256.as_ref(),
            self.retrieved_at.as_ref(),
            self.captured_at.as_ref(),
        ];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let hosted = self
            .hosted
            .as_ref()
            .map_or(0, |it| size_of_val(&**it) + it.link.len());
        size_of_val(self) + texts + self.detail.len() + hosted
    }

    pub(crate) fn tell_refusal(&mut self, refusal: Refusal) {
        self.outcome = Outcome::Left;
        self.reason = Some(refusal.reason);
        self.detail = refusal.detail;
        if self.from == Provenance::Message {
            self.from = Provenance::None;
        }
        self.status = refusal.status.or(self.status);
    }

    pub(crate) fn waiting_for(&self, detail: &Detail) -> Detail {
        let url = self.url.as_ref().map(|url| format!(" <{url}>"));
        let detail = Detail::from(format!("part {}: ", self.part)).then(detail.clone());
        detail.then(url.unwrap_or_default())
    }

    pub(crate) fn tell_capture(&mut self) {
        if let Some(time) = self.captured_at.clone() {
            self.remark(&format!("from the archive, captured {time}"));
            self.archive = Some(time);
        }
    }

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

pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    DateTime::from_timestamp(i64::try_from(seconds).unwrap_or(0)).to_rfc3339()
}

/// Why one reference could not be followed; becomes a [`Row`] that says `left`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// A sentence for a person, without a full stop; may quote the mail. It knows which settings refused it.
    pub detail: Detail,
    /// Whether trying later may help (time-outs, refused connections, 408, 429, 5xx).
    pub retry: Retry,
    /// The status with which a server refused, if it did: of HTTP, or the reply of FTP.
    pub status: Option<u16>,
    /// As far as an archive is concerned: 404, 410, no such host, nobody at the port.
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
            status: None,
            is_gone: false,
        }
    }

    /// A failure that may be over the next time.
    pub fn temporary(reason: Reason, detail: impl Into<Detail>) -> Self {
        Self {
            retry: Retry::Later,
            ..Self::lasting(reason, detail)
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn of_status(self, status: u16) -> Self {
        Self {
            status: Some(status),
            ..self
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
    pub fn links(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.links).sum()
    }

    /// What was left only because nothing is retrieved would be retrieved.
    #[cfg(any(unix, windows))]
    pub(crate) fn would(mut self) -> Self {
        for row in &mut self.rows {
            row.outcome = row.outcome.would();
        }
        self
    }

    /// References whose content was put in, and trackers that were blanked.
    pub fn expanded(&self) -> usize {
        self.count(Outcome::Expanded) + self.count(Outcome::Blanked)
    }

    /// Attachments that were moved into a store.
    pub fn detached(&self) -> usize {
        self.count(Outcome::Detached)
    }

    /// Attachments that came back from a store.
    pub fn restored(&self) -> usize {
        self.count(Outcome::Restored)
    }

    /// References that were left, documents not counted.
    pub fn left(&self) -> usize {
        let is_left = |row: &&Row| row.outcome == Outcome::Left && row.kind != Kind::Link;
        self.rows.iter().filter(is_left).count()
    }

    fn count(&self, outcome: Outcome) -> usize {
        let is_of = |row: &&Row| row.outcome == outcome;
        self.rows.iter().filter(is_of).count()
    }
}
