//! Origin of the rows of a report: the message that they belong to, so that a log can be matched with mail.

use std::fs::Metadata;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use super::say::harmless;
use crate::engine::date;
use crate::engine::report::rfc3339;
use crate::fetch::record::RecordedMail;
#[cfg(all(unix, feature = "imap"))]
use crate::imap::place::MessagePlace;
use crate::mime::encoded_words::decoded_text;
use crate::mime::header::unfold;
use crate::mime::{Header, MediaType};
use crate::platform::MetadataExt as _;

const SEARCHED: usize = 1 << 20;

const SUBJECT: usize = 60;

#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(super) struct RunOrigin {
    pub(super) source: String,
    /// Number of the message in its file or folder, counted from 1.
    pub(super) index: u64,
    pub(super) message_id: Option<String>,
    #[serde(skip)]
    subject: Option<String>,
    /// Date of the message, in UTC (RFC 3339).
    date: Option<String>,
    #[cfg(all(unix, feature = "imap"))]
    #[serde(flatten)]
    pub(super) place: Option<MessagePlace>,
}

impl RunOrigin {
    pub(super) fn new(source: &str, index: u64, message: &[u8]) -> Self {
        let fields = Header::of_message(message, SEARCHED).fields;
        // Header fields may only contain ASCII and encoded words, but some subjects contain raw bytes. They are usually
        // in the charset of the message text, so this charset is used to decode them.
        let content_type = fields.value(message, "Content-Type");
        let label = content_type.and_then(|value| MediaType::parse(value).parameter("charset"));
        let value = |name| {
            let text = decoded_text(&unfold(fields.value(message, name)?), label.as_deref());
            (!text.is_empty()).then_some(text)
        };
        Self {
            source: source.to_owned(),
            index,
            message_id: value("Message-ID"),
            subject: value("Subject"),
            date: date::of_fields(message, &fields, SystemTime::now()).map(rfc3339),
            #[cfg(all(unix, feature = "imap"))]
            place: MessagePlace::of_url(source),
        }
    }

    pub(super) fn mailed<'m>(&'m self, content: &'m [u8]) -> RecordedMail<'m> {
        RecordedMail {
            content,
            message_id: self.message_id.as_deref(),
            subject: self.subject.as_deref(),
            date: self.date.as_deref(),
        }
    }

    pub(super) fn called(&self) -> String {
        let day = self.date.as_deref().and_then(|date| date.get(..10));
        let subject = self.subject.as_deref().map(|subject| {
            let short: String = subject.chars().take(SUBJECT).collect();
            let cut = if short.len() < subject.len() {
                "..."
            } else {
                ""
            };
            format!("\"{}{cut}\"", harmless(&short))
        });
        match (subject, day, &self.message_id) {
            (Some(subject), Some(day), _) => format!("{subject} ({day})"),
            (Some(subject), None, _) => subject,
            (None, Some(day), _) => format!("a message without a subject, from {day}"),
            (None, None, Some(id)) => format!("the message {}", harmless(id)),
            (None, None, None) => format!("message {}", self.index),
        }
    }

    pub(super) fn described(&self) -> Option<String> {
        let id = self
            .message_id
            .as_deref()
            .map(|id| format!("Message-ID {}", harmless(id)));
        let subject = self
            .subject
            .as_deref()
            .map(|subject| format!("Subject: {}", harmless(subject)));
        let said: Vec<String> = id.into_iter().chain(subject).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// Start of a run: the time in UTC (RFC 3339), and the part of the file if the run reads only a byte range.
#[derive(Clone, Debug)]
pub(super) struct RunStart {
    pub(super) time: String,
    pub(super) piece: Option<OriginRange>,
}

impl RunStart {
    pub(super) fn now(piece: Option<OriginRange>) -> Self {
        Self {
            time: rfc3339(SystemTime::now()),
            piece,
        }
    }
}

#[derive(Serialize, Debug)]
pub(super) struct OriginEntry<'a, T: Serialize> {
    pub(super) time: &'a str,
    #[serde(flatten)]
    pub(super) origin: &'a RunOrigin,
    #[serde(flatten)]
    pub(super) piece: Option<&'a OriginRange>,
    #[serde(flatten)]
    pub(super) row: T,
}

#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub(super) struct OriginRange {
    range: String,
    length: u64,
    mtime: String,
}

impl OriginRange {
    pub(super) fn of(range: &Range<u64>, source: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(source).ok()?;
        let Range { start, end } = *range;
        Some(Self {
            range: format!("{start}-{}", end.min(metadata.len())),
            length: metadata.len(),
            mtime: mtime(&metadata),
        })
    }
}

/// Returns the time of the last change, in seconds since 1970, with nine digits after the decimal point.
pub(super) fn mtime(metadata: &Metadata) -> String {
    format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec())
}
