//! The guide: the result of an earlier run, indexed for look-ups.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::OnceLock;

use bytes::Bytes;

use super::line_endings::LineEndingSearch;
use super::names::digits_of;
use super::part::{GuidePart, url_of};
use super::stand_in::StandIns;
use crate::engine::Content;
use crate::engine::external_body::{ExternalBody, identifier};
use crate::engine::forms::references;
use crate::engine::plan::documents::{WrittenLink, is_made_id};
use crate::engine::policy::{Followed, Policy};
#[cfg(feature = "cli")]
use crate::engine::same::ContentFacts;
use crate::key::Key;
use crate::mime::{MessageTree, PartId};

/// Result of an earlier run, which supplies the content when `compare` repeats that run.
#[derive(Debug)]
pub(in crate::engine) struct Guide {
    /// Parts of the mail, in its order.
    pub(in crate::engine) parts: Vec<GuidePart>,
    pub(super) by_id: HashMap<String, Vec<usize>>,
    pub(super) documents: Vec<GuideDocument>,
    /// References that are still in the mail: how often each occurs, by its digest.
    pub(super) references: HashMap<u64, usize>,
    /// Parts that the repeated run did not insert. `None` if no other run followed. If one followed, a link is left if the
    /// repeated run cannot have given it the part that it has now.
    pub(super) later: Option<LaterParts>,
    pub(super) line_endings: LineEndingSearch,
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
    /// Message that contains the document.
    pub(super) message: PartId,
    pub(super) links: Vec<WrittenLink>,
}

/// Parts that later runs added.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(in crate::engine) struct LaterParts {
    /// Index of a part: later runs added this part and all parts after it.
    pub(super) first: Option<usize>,
    pub(super) others: HashSet<usize>,
}

impl LaterParts {
    pub(super) fn contain(&self, part: usize) -> bool {
        self.first.is_some_and(|first| part >= first) || self.others.contains(&part)
    }
}

impl Guide {
    pub(in crate::engine) fn is_earlier(&self) -> bool {
        self.later.is_some()
    }

    pub(super) fn is_later(&self, part: usize) -> bool {
        self.later.as_ref().is_some_and(|later| later.contain(part))
    }

    /// Returns the part with an id of embody to which a link in `message` refers. Two messages in one mail can have parts with
    /// the same id.
    pub(super) fn ours(&self, content_id: &str, message: PartId) -> Option<usize> {
        digits_of(content_id)?;
        let bearers = self.by_id.get(content_id)?;
        let is_near = |at: &&usize| {
            let part = self.parts.get(**at);
            part.is_some_and(|part| part.message == message)
        };
        bearers.iter().find(is_near).or(bearers.first()).copied()
    }

    /// Returns the Content-IDs that earlier runs gave to the parts of a mail, so that links can refer to them. An id is a hash of
    /// the part and of its number when it was made, and a later run may have changed both. Parts are paired by their
    /// Content-Location, in their order.
    pub(in crate::engine) fn given_ids(&self, tree: &MessageTree<'_>) -> HashMap<PartId, String> {
        let is_embedded = |id: Option<&str>| id.and_then(digits_of).is_some();
        let mut located: HashMap<&str, VecDeque<&GuidePart>> = HashMap::new();
        for part in &self.parts {
            if let Some(location) = part.location.as_deref()
                && !is_embedded(part.content_id.as_deref())
            {
                located.entry(location).or_default().push_back(part);
            }
        }
        let mut given = HashMap::new();
        for part in tree.ids() {
            let own = tree.value(part, "Content-ID").map(identifier);
            let Some(location) = url_of(tree, part, "Content-Location") else {
                continue;
            };
            if is_embedded(own.as_deref()) {
                continue;
            }
            let next = located.get_mut(&*location).and_then(VecDeque::pop_front);
            let id = next
                .filter(|next| self.is_only_bearer(next))
                .and_then(|next| next.content_id.clone());
            if let Some(id) = id.filter(|id| own.is_none() && is_made_id(id)) {
                given.insert(part, id);
            }
        }
        given
    }

    /// Whether no other part of the same message has the Content-ID of this part. Otherwise links to both parts would show the
    /// same one.
    fn is_only_bearer(&self, part: &GuidePart) -> bool {
        let content_id = part.content_id.as_ref();
        let bearers = content_id.and_then(|content_id| self.by_id.get(content_id));
        let of_message = bearers.into_iter().flatten().filter(|at| {
            let bearer = self.parts.get(**at);
            bearer.is_some_and(|bearer| bearer.message == part.message)
        });
        of_message.count() == 1
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
