//! Report of a run: the outcome of each reference and of each rewritten document, as one [`Row`] each, in the order
//! of the message.
//!
//! A row with the outcome `left` always has a [`Reason`]. A test compares the list of reasons with docs/reasons.md.
//! Rows contain text of the mail, so code that prints a row to a terminal removes control characters (`cli/say.rs`).
//! Passwords are masked before a row is created.

mod reason;
mod refusal;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mail_parser::DateTime;

pub use self::reason::Reason;
pub(crate) use self::refusal::ServerContact;
pub use self::refusal::{Refusal, Retry};
use crate::detail::words;
pub use crate::detail::{Detail, Setting};

words! {
    /// Kind of the reference in a row.
    #[derive(serde::Serialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Kind {
        ExternalBody "external-body" "A `message/external-body` part (RFC 2046 §5.2.3, RFC 2017).";
        Detached "detached" "An attachment that Thunderbird or a similar mail program detached.";
        Shortcut "shortcut" "An `[InternetShortcut]` file with the URL of the content, as Exchange writes it.";
        Mailman "mailman" "An attachment that Mailman removed from a message to a mailing list.";
        YahooGroups "yahoo-groups" "An attachment that an archive of Yahoo Groups contains only as a note.";
        Hosted "hosted" "A file in cloud storage that a mail links to instead of attaching it.";
        Apple "apple" "An attachment that Apple Mail stores in a separate file.";
        Eudora "eudora" "An attachment that Eudora stores in a separate file, or text that Eudora marked without MIME.";
        Tnef "tnef" "A `winmail.dat` of Outlook, which contains the text or the attachments of the mail.";
        Rtf "rtf" "RTF in place of the HTML or the text of the mail.";
        Msg "msg" "An attached message of Outlook (`.msg`).";
        Uuencode "uuencode" "uuencoded files in a text.";
        Link "link" "The links in one HTML or CSS document.";
        Wrapped "wrapped" "A link that a mail filter or a picture proxy replaced with a URL of its own server.";
        Embed "embed" "Content embedded into HTML.";
        Attachment "attachment" "An attachment that `detach` moves, or has moved, into a store.";
    }
}

impl Kind {
    /// Whether the row is about the links of a document, and not about missing content.
    pub(crate) fn is_of_links(self) -> bool {
        matches!(self, Self::Link | Self::Wrapped)
    }
}

#[cfg(feature = "cli")]
impl Kind {
    /// Whether the row is about an attachment that a mail program stored as a file next to the mailbox.
    pub(crate) fn is_beside(self) -> bool {
        matches!(self, Self::Apple | Self::Eudora)
    }

    /// Whether `--attachments` finds files for this kind by name alone, because the mail contains no URL.
    pub(crate) fn is_found_by_name(self) -> bool {
        self == Self::Eudora
    }
}

/// Source of the content that replaced a reference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Provenance {
    /// A server.
    Network,
    /// The response cache on disk, which stored the response of a server.
    Cache,
    /// A web archive.
    Archive,
    /// A file on this computer.
    File,
    /// The resolver program, which retrieves files that require a login.
    Resolver,
    /// The store into which the content was detached.
    Store,
    /// A part of another mail, in a mailbox that the user specified with `--copies`.
    Copy,
    /// The message itself.
    Message,
    /// No content was retrieved.
    #[default]
    None,
}

/// Facts about a file in cloud storage, taken from the mail. The sender wrote them, so they can be wrong.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct HostedFile {
    /// Cloud storage provider: `google-drive`, `onedrive`, `sharepoint`, `mail-drop`, `dropbox`, `box`, `qq-mail`, `netease`,
    /// `wetransfer`, `nextcloud`, `sympa`, or `filelink` for another provider that Thunderbird supports.
    pub provider: &'static str,
    /// Name of the file.
    pub name: Option<String>,
    /// URL that the mail displays, with the password masked.
    pub link: String,
    /// The original of `link`, if a mail filter wrapped it in a URL of its own server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// Time at which the file expires, as in RFC 3339. If the time in the mail cannot be parsed, its text is copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A mail in a mailbox of `--copies`, from which a missing part was taken.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct CopySource {
    /// The file that contains the mail.
    pub source: String,
    /// Position of the mail in this file, from 1.
    pub index: u64,
}

words! {
    /// The outcome for a reference. In the report of a dry run, the outcome that a real run would have.
    #[derive(serde::Serialize)]
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
    /// Returns the corresponding outcome of a dry run, which writes nothing: `would-expand` for `expanded`, for example.
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

/// Outcome for one reference or for one rewritten document.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Row {
    /// The message: its number in the mailbox, counted from 1, or the name of its file.
    pub message: String,
    /// Number of the part as in IMAP, such as `1.2.1`. It is empty for the message itself.
    pub part: String,
    /// Decoded file name of the part, or of the file to which the mail refers, with at most 100 characters. It is untrusted,
    /// and can contain slashes. `None` if there is no name, or if it cannot be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Kind of the reference.
    pub kind: Kind,
    /// Absolute URL if it is known, with the password masked. `data:` URLs are shortened.
    pub url: Option<String>,
    /// Outcome for the reference.
    pub outcome: Outcome,
    /// Reason why the reference was left. It is always present if `outcome` is [`Outcome::Left`].
    pub reason: Option<Reason>,
    /// Explanation for the user.
    pub detail: Detail,
    /// Media type of the content that was inserted or found, as `type/subtype`.
    pub media_type: Option<String>,
    /// Size of the decoded content, in bytes.
    pub bytes: Option<u64>,
    /// Duration of the retrieval, in milliseconds.
    pub ms: Option<u64>,
    /// Number of changed links, in the row of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
    /// Time at which the web archive captured the content, as in RFC 3339. It is set if the content was taken from an archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Source of the content.
    pub from: Provenance,
    /// HTTP status code or FTP reply code of the server. It is set even if the server sent no content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// URL that returned the content, after redirects, with the password masked.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub final_url: Option<Arc<str>>,
    /// SHA-256 of the decoded content that was retrieved or detached, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Time at which the source returned the content, as in RFC 3339. If the content was in the cache, the time at
    /// which the source returned it or last confirmed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrieved_at: Option<String>,
    /// Time at which a web archive captured the content, as in RFC 3339. Unlike `archive`, it is also set if the content was
    /// not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured_at: Option<String>,
    /// Identifier of the WARC record of the response, `urn:uuid:...`, if the run records responses.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "shared")]
    pub record: Option<Arc<str>>,
    /// Facts about the file in cloud storage, such as its name and size, taken from the mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosted: Option<Box<HostedFile>>,
    /// Other mail from which the content was copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopySource>,
    /// Whether the content matches a value in the mail, which proves that it is the original content: in Apple Mail
    /// the length of the encoded body, in Eudora the hash of the URLs in the HTML, for content from another mail the
    /// digest or the length.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub proved: bool,
    /// Whether a server responded, for the sentence that no server of the run did.
    #[serde(skip)]
    pub(crate) contact: ServerContact,
    /// Options that may provide the content, for the advice about a reference that was left.
    #[serde(skip)]
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) sources: OtherSources,
}

/// Places from which the user can provide the content of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) struct OtherSources {
    /// A file in a directory ([`Setting::Attachments`]).
    pub(crate) directory: bool,
    /// Another copy of the mail ([`Setting::Copies`]).
    pub(crate) copies: bool,
}

fn shared<S: serde::Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::Serialize as _;

    text.as_deref().serialize(serializer)
}

impl Row {
    pub(crate) fn new(message: &str, part: String, kind: Kind, outcome: Outcome) -> Self {
        Self {
            message: message.to_owned(),
            part,
            name: None,
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
            copy: None,
            proved: false,
            contact: ServerContact::AsReason,
            sources: OtherSources::default(),
        }
    }

    /// Returns the memory that the row needs, in bytes. Text that several rows share is not counted.
    #[cfg(feature = "cli")]
    pub(crate) fn weight(&self) -> usize {
        let texts: usize = [
            Some(&self.message),
            Some(&self.part),
            self.name.as_ref(),
            self.url.as_ref(),
            self.media_type.as_ref(),
            self.sha256.as_ref(),
            self.retrieved_at.as_ref(),
            self.captured_at.as_ref(),
        ]
        .into_iter()
        .flatten()
        .map(String::len)
        .sum();
        let hosted = self
            .hosted
            .as_ref()
            .map_or(0, |it| size_of_val(&**it) + 2 * it.link.len());
        let copy = self.copy.as_ref().map_or(0, |copy| copy.source.len());
        size_of_val(self) + texts + self.detail.len() + hosted + copy
    }

    /// Adds the facts about a file on a server to which the mail links. `link` is the link as reports show it.
    pub(crate) fn tell_file(&mut self, file: &HostedFile, link: String) {
        self.hosted = Some(Box::new(HostedFile {
            link,
            ..file.clone()
        }));
    }

    pub(crate) fn tell_refusal(&mut self, refusal: Refusal) {
        self.outcome = Outcome::Left;
        self.reason = Some(refusal.reason);
        self.detail = refusal.detail;
        self.contact = refusal.contact;
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

    /// Appends a remark to the detail: something that was noticed but did not affect the outcome.
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

/// Report on one message.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// One row per reference and per document, in the order of the message.
    pub rows: Vec<Row>,
    /// Remarks: things that were noticed but did not affect any outcome, such as a wrong size or a DKIM signature that is no
    /// longer valid. Each remark names its part. The details of the rows contain the same remarks.
    pub notes: Vec<String>,
    /// Number of bytes by which the message grew. A forecast (a report without retrievals) contains an upper bound. The
    /// upper bound includes the content of `data:` URLs, which is in the message, but no content that would have to be
    /// retrieved.
    pub gained: i64,
}

impl Report {
    /// Returns the number of changed links in all documents.
    pub fn links(&self) -> u64 {
        self.rows.iter().filter_map(|row| row.links).sum()
    }

    /// Replaces each outcome with the corresponding outcome of a dry run.
    #[cfg(any(unix, windows))]
    pub(crate) fn would(mut self) -> Self {
        for row in &mut self.rows {
            row.outcome = row.outcome.would();
        }
        self
    }

    /// Returns the number of references that were replaced with their content, and of blanked trackers.
    pub fn expanded(&self) -> usize {
        self.count(Outcome::Expanded) + self.count(Outcome::Blanked)
    }

    /// Returns the number of attachments that were moved into a store.
    pub fn detached(&self) -> usize {
        self.count(Outcome::Detached)
    }

    /// Returns the number of attachments that were restored from a store.
    pub fn restored(&self) -> usize {
        self.count(Outcome::Restored)
    }

    /// Returns the number of references that were left. Documents whose links were left are not counted.
    pub fn left(&self) -> usize {
        let is_left = |row: &&Row| row.outcome == Outcome::Left && !row.kind.is_of_links();
        self.rows.iter().filter(is_left).count()
    }

    fn count(&self, outcome: Outcome) -> usize {
        let is_of = |row: &&Row| row.outcome == outcome;
        self.rows.iter().filter(is_of).count()
    }
}
