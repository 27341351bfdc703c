//! Choices for the links in documents. The links of the old and the new document are paired. If the new link is a
//! `cid:` URL of a new part, the content of this part is embedded again.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use percent_encoding::percent_decode;

use super::facts::{Guide, GuideDocument};
use super::names::{DIGITS, digits_of, not_in_mail};
use super::part::GuidePart;
use crate::engine::Content;
use crate::engine::content::NotedDigests;
use crate::engine::external_body::identifier;
use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::{Documents, WrittenLink, sheet_values, sheet_with_urls};
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::link::data::DataUrl;
use crate::link::value::{Grammar, ImageSet};
use crate::mime::entity::{sha256, uri};
use crate::mime::{MessageTree, PartId};

/// How an earlier run treated a link, as far as the mail that it wrote shows this.
#[derive(Clone, Default, Debug)]
pub(in crate::engine) enum PictureChoice {
    /// The guide does not decide about this link, so the policy does.
    #[default]
    Usual,
    /// The link stays.
    Leave,
    /// The link was removed, because its server no longer has the content.
    Lost,
    /// The content of a part.
    Given(Arc<GivenPart>),
}

/// Content of a part that an earlier run added.
#[derive(Debug)]
pub(in crate::engine) struct GivenPart {
    content: Content,
    /// Index of the part.
    part: usize,
    /// Content-Location of the part. If several links have this content, it is the URL of the first.
    location: Option<String>,
    /// Whether no earlier link leads to this part.
    is_first: bool,
}

impl PictureChoice {
    fn rank(&self) -> u8 {
        match self {
            Self::Usual => 0,
            Self::Leave => 1,
            Self::Lost => 2,
            Self::Given(_) => 3,
        }
    }

    /// Whether the part contains `octets` that embody generated itself, without a request.
    pub(in crate::engine) fn is_generated(&self, octets: &[u8]) -> bool {
        match self {
            Self::Given(given) => given.location.is_none() && given.content.bytes() == octets,
            _ => false,
        }
    }

    /// Returns the index of the part that is the content of `source`, and whether the part has the URL `source` or one of the
    /// fallbacks `otherwise`. A run gives a part the URL of its first link.
    pub(in crate::engine) fn located(
        &self,
        source: &str,
        otherwise: &[&str],
    ) -> Option<(usize, bool)> {
        let Self::Given(given) = self else {
            return None;
        };
        let location = given.location.as_deref()?;
        let mut urls = std::iter::once(&source).chain(otherwise);
        Some((given.part, urls.any(|url| location == uri(url))))
    }

    /// Returns the response to the request for `source` as the new mail implies it. `otherwise` are the fallback URLs,
    /// which are requested if `source` is refused.
    pub(in crate::engine) fn answer(
        &self,
        source: &str,
        otherwise: &[&str],
    ) -> Option<Result<Content, Refusal>> {
        let given = match self {
            Self::Usual => return None,
            Self::Leave => return Some(Err(not_in_mail())),
            Self::Lost => return Some(Err(lost())),
            Self::Given(given) => given,
        };
        let is_at = |url: &str| given.location.as_deref() == Some(&*uri(url));
        let content = || {
            let mut content = given.content.clone();
            if content.origin.url.is_empty() {
                content.origin.url = source.into();
            }
            content
        };
        Some(if is_at(source) {
            Ok(content())
        } else if otherwise.iter().any(|url| is_at(url)) || given.is_first && !otherwise.is_empty()
        {
            Err(lost())
        } else {
            Ok(content())
        })
    }
}

impl PartialEq for PictureChoice {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl PartialOrd for PictureChoice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.rank().cmp(&other.rank()))
    }
}

fn lost() -> Refusal {
    Refusal::lasting(Reason::HttpStatus, "no server has the content")
}

pub(super) fn of_mail(
    tree: &MessageTree<'_>,
    policy: &Policy,
    ledger: &mut Ledger,
) -> Vec<GuideDocument> {
    let mut documents = Documents::new(tree, policy);
    let parts: Vec<PartId> = tree
        .ids()
        .filter(|&part| documents.is_document(part))
        .collect();
    let read = parts.into_iter().map(|part| GuideDocument {
        content_id: tree
            .value(part, "Content-ID")
            .map(identifier)
            .filter(|content_id| digits_of(content_id).is_some()),
        message: tree.message_of(part),
        links: documents.written(part, ledger).unwrap_or_default(),
    });
    read.collect()
}

impl Guide {
    /// Returns what to do with each link, in the order of the links in each document.
    pub(in crate::engine) fn choices(
        &self,
        documents: &mut Documents<'_>,
        ledger: &mut Ledger,
    ) -> HashMap<PartId, Vec<PictureChoice>> {
        let tree = documents.tree();
        let values = tree.ids().filter_map(|part| tree.value(part, "Content-ID"));
        let ids: HashSet<String> = values.map(identifier).collect();
        // Skips the style sheets that the earlier run embedded: they are documents of the new mail only, so nothing
        // pairs with them.
        let is_old = |document: &&GuideDocument| {
            let content_id = document.content_id.as_ref();
            content_id.is_none_or(|content_id| ids.contains(content_id))
        };
        let of_new: Vec<&GuideDocument> = self.documents.iter().filter(is_old).collect();
        let of_old: Vec<PartId> = tree
            .ids()
            .filter(|&part| documents.is_document(part))
            .collect();
        let mut choices = HashMap::new();
        if of_old.len() != of_new.len() {
            return choices;
        }
        let mut seen = HashSet::new();
        for (part, new) in of_old.into_iter().zip(of_new) {
            let links = documents.written(part, ledger).unwrap_or_default();
            if let Some(of_part) = self.pair(&links, new, &mut seen) {
                choices.insert(part, of_part);
            }
        }
        choices
    }

    fn pair(
        &self,
        old: &[WrittenLink],
        document: &GuideDocument,
        seen: &mut HashSet<usize>,
    ) -> Option<Vec<PictureChoice>> {
        let new = document.links.as_slice();
        let (of_old, of_new) = (lists(old), lists(new));
        if of_old.len() != of_new.len() {
            return None;
        }
        let mut choices = Vec::with_capacity(old.len());
        for (of_old, of_new) in of_old.into_iter().zip(of_new) {
            let (old, new) = (old.get(of_old)?, new.get(of_new)?);
            let mut rest = new.iter().peekable();
            let mut left = old.len();
            for link in old {
                // The earlier run removed candidates of a `srcset` that no server has. The remaining candidates keep
                // their descriptors (such as `2x`), by which they are paired.
                let is_same =
                    |other: &&WrittenLink| old.len() == new.len() || other.behind == link.behind;
                choices.push(match rest.next_if(is_same) {
                    Some(other) => self.choice(link, (other, document.message), seen),
                    None => PictureChoice::Lost,
                });
                left -= 1;
            }
            if rest.next().is_some() {
                // The earlier run replaced the whole list by a single candidate.
                choices.truncate(choices.len() - old.len() + left);
                choices.extend(old.iter().map(|_| PictureChoice::Lost));
            }
        }
        Some(choices)
    }

    fn choice(
        &self,
        old: &WrittenLink,
        (new, message): (&WrittenLink, PartId),
        seen: &mut HashSet<usize>,
    ) -> PictureChoice {
        if is_cid(&old.value) {
            return PictureChoice::Usual;
        }
        if !is_cid(&new.value) {
            return PictureChoice::Leave;
        }
        let Some(part) = self.part_of(&new.value, message) else {
            return PictureChoice::Usual;
        };
        // One run gives no URL to a part with the content of a `data:` URL.
        let has_url = || self.parts.get(part).is_some_and(|it| it.location.is_some());
        if self.is_later(part) || self.is_earlier() && is_data(&old.value) && has_url() {
            return PictureChoice::Leave;
        }
        self.given(part, seen.insert(part))
    }

    /// Returns the parts with an id of embody to which the links of all documents refer, in the order of the links.
    pub(super) fn linked_parts(&self) -> impl Iterator<Item = usize> + '_ {
        self.documents.iter().flat_map(|document| {
            let links = document.links.iter().filter(|link| is_cid(&link.value));
            links.filter_map(|link| self.part_of(&link.value, document.message))
        })
    }

    fn part_of(&self, url: &[u8], message: PartId) -> Option<usize> {
        let escaped = url.get(b"cid:".len()..)?;
        let id = percent_decode(escaped).decode_utf8_lossy();
        self.ours(id.split('#').next()?, message)
    }

    fn given(&self, part: usize, is_first: bool) -> PictureChoice {
        let Some(of) = self.parts.get(part) else {
            return PictureChoice::Usual;
        };
        let location = of.location.clone();
        let url = location.as_deref().unwrap_or_default();
        let mut content = of.retrieved(url);
        if of.essence == "text/css" {
            // The sheet uses a `cid:` id of embody that the mail does not define. A sheet from a server never does, so
            // this part is not what the server sent.
            if self.has_dangling_id(of) {
                return PictureChoice::Leave;
            }
            let mut noted = NotedDigests {
                identity: None,
                sha256: of.source.as_ref().and_then(|source| source.sha256.clone()),
                is_without_source: of.source.is_none(),
            };
            if let Some((sheet, identity)) = self.sheet(part) {
                content = content.with_bytes(sheet);
                noted.identity = Some(identity);
            }
            content.noted = Some(Arc::new(noted));
        }
        PictureChoice::Given(Arc::new(GivenPart {
            content,
            part,
            location,
            is_first,
        }))
    }

    /// Whether an embedded style sheet refers to an embedded picture that the mail does not contain.
    fn has_dangling_id(&self, sheet: &GuidePart) -> bool {
        let values = sheet_values(sheet.content().bytes(), sheet.charset().as_deref());
        values.iter().any(|value| {
            let escaped = value.get(b"cid:".len()..).unwrap_or_default();
            let id = percent_decode(escaped).decode_utf8_lossy();
            is_cid(value) && digits_of(&id).is_some() && self.ours(&id, sheet.message).is_none()
        })
    }

    /// Restores an embedded style sheet: its `cid:` URLs become the original URLs again. Returns `None` if it has no
    /// `cid:` URLs.
    fn sheet(&self, part: usize) -> Option<(Vec<u8>, (String, String))> {
        let part = self.parts.get(part)?;
        let (content, charset) = (part.content(), part.charset());
        let values = sheet_values(content.bytes(), charset.as_deref());
        let mut urls = HashMap::new();
        for (ordinal, value) in values.iter().enumerate() {
            if is_cid(value)
                && let Some(inner) = self.part_of(value, part.message)
                && let Some(inner) = self.parts.get(inner)
            {
                let url = inner.location.clone().unwrap_or_else(|| {
                    let octets = inner.content();
                    let data = base64::Engine::encode(
                        &base64::engine::general_purpose::STANDARD,
                        octets.bytes(),
                    );
                    format!("data:{};base64,{data}", inner.essence)
                });
                urls.insert(ordinal, url);
            }
        }
        if urls.is_empty() {
            return None;
        }
        let none = HashMap::new();
        let written = sheet_with_urls(content.bytes(), charset.as_deref(), &urls, &none);
        Some((written, part.identity()?))
    }

    /// Returns the embedded content whose Content-Location is this URL.
    pub(in crate::engine) fn located(&self, source: &str) -> Result<Content, Refusal> {
        let url = uri(source);
        let is_at = |part: &&GuidePart| {
            part.location.as_deref() == Some(&*url)
                && part.content_id.as_deref().and_then(digits_of).is_some()
        };
        let part = self.parts.iter().position(|part| is_at(&part));
        match part
            .filter(|part| !self.is_later(*part))
            .map(|part| self.given(part, true))
        {
            Some(PictureChoice::Given(given)) => Ok(given.content.clone()),
            _ => Err(not_in_mail()),
        }
    }

    /// Returns what the earlier run did with a URL in a style sheet. A `data:` URL counts as embedded if the mail
    /// contains its picture.
    pub(in crate::engine) fn choice_in_sheet(&self, absolute: &str) -> PictureChoice {
        if !absolute.starts_with("data:") {
            return PictureChoice::Usual;
        }
        let parsed = DataUrl::parse(absolute.as_bytes());
        let octets = parsed.ok().and_then(|url| {
            let essence = url.media_type().essence;
            let is_sheet = essence == "text/css";
            (!is_sheet).then(|| url.decode(u64::MAX).ok())?
        });
        let Some(decoded) = octets else {
            return PictureChoice::Usual;
        };
        let hash = sha256(&decoded);
        let digits = hash.get(..DIGITS).unwrap_or_default();
        let is_held = |content_id: &String| content_id.starts_with(digits);
        if self.by_id.keys().any(is_held) {
            PictureChoice::Usual
        } else {
            PictureChoice::Leave
        }
    }
}

fn is_cid(value: &[u8]) -> bool {
    has_scheme(value, b"cid:")
}

fn is_data(value: &[u8]) -> bool {
    has_scheme(value.trim_ascii_start(), b"data:")
}

fn has_scheme(value: &[u8], scheme: &[u8]) -> bool {
    let front = value.get(..scheme.len()).unwrap_or_default();
    front.eq_ignore_ascii_case(scheme)
}

/// Divides links into lists: the candidates of one `srcset`, the options of one `image-set()`, and every other link alone.
fn lists(links: &[WrittenLink]) -> Vec<Range<usize>> {
    let mut lists: Vec<Range<usize>> = Vec::new();
    for (at, written) in links.iter().enumerate() {
        let link = &written.link;
        let before = at.checked_sub(1).and_then(|before| links.get(before));
        let belongs = before.is_some_and(|before| match link.grammar {
            Grammar::Srcset => before.link.grammar == Grammar::Srcset && !link.opens_tag,
            _ => link.image_set == ImageSet::Further,
        });
        match lists.last_mut().filter(|_| belongs) {
            Some(list) => list.end = at + 1,
            None => lists.push(at..at + 1),
        }
    }
    lists
}
