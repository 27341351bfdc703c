//! Finds the parts that belong to the text of a message: those to which a document refers by Content-ID or Content-Location,
//! and inline pictures next to HTML. If they were detached, mail clients would not show them.
//!
//! The search accepts more than [`siblings`](super::siblings): ids and locations in any message of the mail, ids of several
//! parts, and ids in upper or lower case. Keeping a part without need costs only bytes, but detaching a picture that is shown
//! breaks the mail. So a document that cannot be read, for example in UTF-16, counts as referring to every such part.

use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;

use super::document::LinkedDocument;
use super::link_text::{base_url, cleaned, is_data, scheme};
use super::{Documents, LONGEST};
use crate::engine::external_body::identifier;
use crate::engine::ledger::Ledger;
use crate::engine::policy::Policy;
use crate::link::url::{
    Relation, absolute_as_browser, equivalence_key, relation, resolve_as_browser, without_fragment,
};
use crate::mime::{MessageTree, PartId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DisplayState {
    /// A document refers to the part. Contains the first such document.
    By(PartId),
    /// This document may refer to the part, but cannot be read.
    PerhapsBy(PartId),
    /// Unknown, because the Content-Location is too long to be compared with links.
    Unknown,
    /// The part is an inline picture in a message with HTML. Mail clients show such a picture even if no document
    /// refers to it.
    Beside,
}

impl DisplayState {
    pub(crate) fn words(self, tree: &MessageTree<'_>) -> String {
        match self {
            Self::By(document) => format!("part {} refers to this part", tree.number(document)),
            Self::PerhapsBy(document) => {
                let number = tree.number(document);
                format!("part {number} cannot be read, and may refer to this part")
            }
            Self::Unknown => {
                "the Content-Location of the part is too long to search for links to it".to_owned()
            }
            Self::Beside => "the part is an inline picture next to HTML".to_owned(),
        }
    }
}

pub(crate) fn shown_inline(
    tree: &MessageTree<'_>,
    policy: &Policy,
    parts: &[PartId],
) -> HashMap<PartId, DisplayState> {
    let mut shown = HashMap::new();
    let mut ledger = Ledger::new(&policy.limits, tree.original.len());
    let mut documents = Documents::new(tree, policy);
    if parts.is_empty() {
        return shown;
    }
    let is_document = |part: &PartId| documents.language(*part).is_some();
    let all: Vec<PartId> = tree.ids().filter(is_document).collect();
    if all.is_empty() {
        return shown;
    }
    let mut names = documents.names_of(parts, &mut ledger, &mut shown);
    let mut unread: HashMap<PartId, PartId> = HashMap::new();
    for &document in &all {
        if names.is_empty() {
            break;
        }
        let mut refer = |part| {
            shown.entry(part).or_insert(DisplayState::By(document));
        };
        let known = (&mut ledger, &mut names);
        if documents.refer(document, known, &mut refer).is_none() {
            unread.insert(tree.message_of(document), document);
        }
    }
    for part in names.rest() {
        if let Some(&document) = unread.get(&tree.message_of(part)) {
            shown
                .entry(part)
                .or_insert(DisplayState::PerhapsBy(document));
        }
    }
    let is_html = |part: &&PartId| {
        let language = documents.language(**part);
        language.is_some_and(|language| language.markup().is_some())
    };
    let html: HashSet<PartId> = all
        .iter()
        .filter(is_html)
        .map(|it| tree.message_of(*it))
        .collect();
    for &part in parts {
        let is_picture = tree.part(part).essence.starts_with("image/");
        if is_picture
            && tree.has_disposition(part, "inline")
            && html.contains(&tree.message_of(part))
        {
            shown.entry(part).or_insert(DisplayState::Beside);
        }
    }
    shown
}

/// Names (ids and locations) of parts to which no document is known to refer. The first reference removes a name, so
/// that ten thousand parts with the same name are visited once, and not for each reference.
#[derive(Default)]
struct UnusedNames {
    /// Parts by their Content-ID in lower case.
    ids: HashMap<String, Vec<PartId>>,
    /// Parts by their absolute location, in a form that is the same for equivalent URLs.
    locations: HashMap<String, Vec<PartId>>,
}

impl UnusedNames {
    fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.locations.is_empty()
    }

    fn take(&mut self, url: &str) -> Vec<PartId> {
        let mut parts = Vec::new();
        if !self.ids.is_empty()
            && let Some((scheme, rest)) = url.split_once(':')
        {
            let id = match scheme {
                _ if scheme.eq_ignore_ascii_case("cid") => Some(rest),
                // A `mid:` URL also contains the Message-ID (RFC 2392).
                _ if scheme.eq_ignore_ascii_case("mid") => rest.split_once('/').map(|(_, id)| id),
                _ => None,
            };
            // Some programs do not escape `#` in an id, so the id is looked up with and without the text after it.
            for id in id.into_iter().flat_map(|id| [id, without_fragment(id)]) {
                let decoded: Vec<u8> = percent_decode_str(id).collect();
                for id in [id.as_bytes(), &decoded] {
                    parts.extend(self.ids.remove(&folded(id)).into_iter().flatten());
                }
            }
        }
        if !self.locations.is_empty() {
            let key = equivalence_key(without_fragment(url));
            parts.extend(self.locations.remove(&key).into_iter().flatten());
        }
        parts
    }

    fn rest(self) -> impl Iterator<Item = PartId> {
        let locations = self.locations.into_values();
        self.ids.into_values().chain(locations).flatten()
    }
}

fn folded(id: &[u8]) -> String {
    identifier(id).to_lowercase()
}

impl Documents<'_> {
    /// Returns the names of `parts`. A part whose location is too long to be compared is added to `shown`.
    fn names_of(
        &mut self,
        parts: &[PartId],
        ledger: &mut Ledger,
        shown: &mut HashMap<PartId, DisplayState>,
    ) -> UnusedNames {
        let mut names = UnusedNames::default();
        for &part in parts {
            if let Some(value) = self.tree.value(part, "Content-ID") {
                names.ids.entry(folded(value)).or_default().push(part);
            }
            let Some(url) = self.location_of(part) else {
                continue;
            };
            if ledger.work(url.len()).is_err() || url.len() > ledger.room_for_urls() {
                shown.insert(part, DisplayState::Unknown);
                continue;
            }
            ledger.hold_urls(url.len());
            let key = equivalence_key(without_fragment(&url));
            names.locations.entry(key).or_default().push(part);
        }
        names
    }

    fn refer(
        &mut self,
        part: PartId,
        (ledger, names): (&mut Ledger, &mut UnusedNames),
        found: &mut dyn FnMut(PartId),
    ) -> Option<()> {
        let language = self.language(part)?;
        let charset = self.charset(part).ok()?;
        let entity = self.tree.part(part);
        // The document is decoded and searched, so three times its length counts as work.
        ledger.work(entity.body.len() * 3).ok()?;
        let octets = entity.encoding.decode(entity.body.of(self.tree.original))?;
        if is_wide(&octets) {
            return None;
        }
        let document = LinkedDocument::read(part, language, &octets, (charset, None));
        let base = document.base_within(self.base_of(part));
        let base_url = base_url(base.as_deref());
        let scheme = scheme(&base_url);
        let mut is_whole = document.refusal(entity.encoding).is_none();
        for link in document.links.iter() {
            if names.is_empty() {
                return Some(());
            }
            let Some(value) = document.value(&link) else {
                // The link cannot be read byte by byte, because a byte may be the second half of a Shift_JIS character.
                // It cannot be a Content-ID, but it may be the location of a part. So if there are parts with locations
                // left, the document counts as unreadable.
                is_whole &= names.locations.is_empty();
                continue;
            };
            let reference = cleaned(value.trim_ascii());
            if is_data(&reference) || reference.len() > LONGEST {
                continue;
            }
            let parts = match relation(scheme, &reference) {
                Relation::Absolute => names.take(&absolute_as_browser(reference)),
                Relation::Relative if !names.locations.is_empty() => {
                    // The URL is made absolute, normalised and compared, so three times the length of the base counts as work.
                    ledger.work(base_url.len() * 3).ok()?;
                    match resolve_as_browser(&base_url, &reference) {
                        Ok(absolute) => names.take(&absolute),
                        Err(_) => continue,
                    }
                }
                _ => continue,
            };
            parts.into_iter().for_each(&mut *found);
        }
        is_whole.then_some(())
    }
}

/// Returns true if the text is in UTF-16 or UTF-32: it begins with a byte order mark, which has priority over the label (HTML
/// standard §13.2.3.2), or it contains a NUL, which text in other charsets does not contain.
fn is_wide(octets: &[u8]) -> bool {
    octets.starts_with(b"\xff\xfe")
        || octets.starts_with(b"\xfe\xff")
        || memchr::memchr(0, octets).is_some()
}
