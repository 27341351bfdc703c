//! The guide: the result of an earlier run, indexed for look-ups.

use std::collections::HashMap;
use std::sync::OnceLock;

use bytes::Bytes;

use super::names::digits_of;
use super::part::GuidePart;
use super::stand_in::StandIns;
use crate::engine::Content;
use crate::engine::external_body::ExternalBody;
use crate::engine::forms::references;
use crate::engine::plan::documents::WrittenLink;
use crate::engine::policy::{Followed, Policy};
#[cfg(feature = "cli")]
use crate::engine::same::ContentFacts;
use crate::key::Key;

/// Result of an earlier run, which supplies the content when `compare` repeats that run.
#[derive(Debug)]
pub(in crate::engine) struct Guide {
    /// Parts of the mail, in its order.
    pub(in crate::engine) parts: Vec<GuidePart>,
    pub(super) by_id: HashMap<String, Vec<usize>>,
    pub(super) documents: Vec<GuideDocument>,
    /// References that are still in the mail: how often each occurs, by its digest.
    pub(super) references: HashMap<u64, usize>,
    /// Only the first `limit` parts can be content that the repeated run inserted. A later run added the parts after
    /// them.
    pub(super) limit: usize,
    pub(in crate::engine) stand_ins: StandIns,
    /// The whole mail, and descriptions of its parts, which are only needed for content from copies.
    pub(super) mail: Bytes,
    #[cfg(feature = "cli")]
    pub(super) contents: OnceLock<ContentFacts>,
}

/// The links of one document of the guide.
#[derive(Debug)]
pub(super) struct GuideDocument {
    /// Content-ID of an embedded style sheet. `None` for documents that embody did not add.
    pub(super) content_id: Option<String>,
    pub(super) links: Vec<WrittenLink>,
}

impl Guide {
    pub(super) fn ours(&self, content_id: &str) -> Option<usize> {
        digits_of(content_id)?;
        self.by_id.get(content_id)?.first().copied()
    }

    /// Returns whether `recover --copies` could have taken the content of a part for a note. Only the command line program has
    /// guides.
    #[cfg(not(feature = "cli"))]
    pub(super) fn can_be_copied(&self, _: &GuidePart, note: &ExternalBody<'_>) -> bool {
        note.text_note.is_none()
    }

    /// Returns whether `recover --copies` could have taken the content of a part for a note in a text from a copy of the mail.
    #[cfg(feature = "cli")]
    pub(super) fn can_be_copied(&self, part: &GuidePart, note: &ExternalBody<'_>) -> bool {
        let contents = self.contents.get_or_init(|| {
            let policy = Policy {
                follow: Followed::all(),
                ..Policy::default()
            };
            let reading = references::with_parts_in_files(policy.reading());
            ContentFacts::of(&self.mail, &reading, &policy.limits.scan())
        });
        note.text_note.is_none() || contents.can_fill(&part.number, note)
    }

    /// Returns the content whose SHA-256 is `sha256`, in hexadecimal digits.
    pub(in crate::engine) fn object(&self, sha256: &str) -> Option<Content> {
        let mut forms = self.parts.iter().flat_map(GuidePart::forms);
        let known = forms.find(|content| content.sha256() == sha256);
        known.or_else(|| {
            let key = Key::parse(sha256)?;
            let stand_in = self.stand_ins.iter().find(|it| it.key == key)?;
            Some(stand_in.content(None))
        })
    }
}
