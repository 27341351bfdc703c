use super::Content;
use crate::engine::report::{Detail, Outcome, Reason, Refusal, Row};

/// Response of a source to a request of the engine for content: the content, or a description of it.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The content itself, complete.
    Content(Content),
    /// A description of the content, which was not retrieved because the run is a dry run or a probe.
    Announced(Announcement),
}

/// The type, length and state of content that a source has, but that was not retrieved.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Announcement {
    /// A sentence for the report, such as `the server answered HEAD: image/png, 125 bytes`.
    pub detail: Detail,
    /// Value of the Content-Type field that the source sent, unparsed.
    pub media_type: Option<String>,
    /// Length of the content in bytes, if the source declares it.
    pub length: Option<u64>,
    /// Refusal of the original source, if only a web archive has the content.
    pub instead_of: Option<Refusal>,
}

impl Answer {
    /// Returns the content, or `None` if the source only announced it.
    pub fn content(self) -> Option<Content> {
        match self {
            Self::Content(content) => Some(content),
            Self::Announced(_) => None,
        }
    }
}

impl From<Content> for Answer {
    fn from(content: Content) -> Self {
        Self::Content(content)
    }
}

impl Announcement {
    /// Creates an announcement that consists only of a sentence for the report.
    pub fn new(detail: impl Into<Detail>) -> Self {
        Self {
            detail: detail.into(),
            ..Self::default()
        }
    }

    /// Describes the response of a source. `method` is `HEAD`, `GET`, `cache` or `archive`.
    pub(crate) fn of_source(method: &str, media_type: Option<String>, length: Option<u64>) -> Self {
        let of_type = media_type.as_deref().unwrap_or("no type");
        let start = match method {
            "cache" => "the cache contains a response".to_owned(),
            "archive" => "the archive contains a capture".to_owned(),
            method => format!("the server responded to {method}"),
        };
        let end = match length {
            Some(length) => format!(", {length} bytes"),
            None => ", unknown length".to_owned(),
        };
        Self {
            detail: format!("{start}: {of_type}{end}").into(),
            media_type,
            length,
            instead_of: None,
        }
    }

    /// Creates the announcement for content that was retrieved although the run only checks whether it exists.
    pub(crate) fn of_content(method: &str, content: &Content) -> Self {
        let length = content.len() as u64;
        Self::of_source(method, content.media_type.clone(), Some(length))
    }

    /// Puts `place`, the sentence about a source that was tried before this one, in front of the detail.
    pub(crate) fn after(self, place: Detail) -> Self {
        Self {
            detail: if self.detail.is_empty() {
                place
            } else {
                place.then("; ").then(self.detail)
            },
            ..self
        }
    }

    /// Writes the outcome `WouldFetch` and the sentence about the source into the row of a reference. A
    /// run that writes mail would retrieve this content.
    pub(super) fn describe(&self, row: &mut Row) {
        row.outcome = Outcome::WouldFetch;
        row.detail = self.detail.clone();
        if let Some(refusal) = &self.instead_of {
            row.reason = Some(Reason::InArchive);
            row.status = refusal.status.or(row.status);
        }
    }

    /// Records that a web archive has the content, because its original source refused it.
    pub(crate) fn in_place_of(self, refusal: Refusal) -> Self {
        Self {
            instead_of: Some(refusal.clone()),
            ..self.after(refusal.detail)
        }
    }
}
