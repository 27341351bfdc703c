//! Decides what one place needs: a part of the message, a picture that is already available, or a retrieval.

use super::super::check::{SVG, part_of_svg};
use super::super::names::is_ours;
use super::super::pictures::{BLANK_PICTURE, Pictures};
use super::super::style;
use super::super::wanted::{Instead, PictureNeed};
use super::{LinkUse, PicturePlaces, fragment, shortened};
use crate::engine::guide::PictureChoice;
use crate::engine::plan::documents::{DocumentText, cid_escaped};
use crate::engine::policy::{Policy, Trackers};
use crate::engine::report::{Reason, Refusal};
use crate::link::url::{UrlReference, equivalence_key, masked, without_fragment};
use crate::link::value::LinkRole;
use crate::link::wrapper::unwrapped_link;

impl PicturePlaces {
    pub(super) fn meaning(
        &mut self,
        shown: &DocumentText<'_>,
        steps: usize,
        pictures: &mut Pictures<'_>,
    ) -> (LinkUse, Option<String>) {
        let policy = pictures.policy;
        let embed = policy.embed;
        let role = shown.link.role;
        if self.choice == PictureChoice::Leave {
            return (LinkUse::Nothing, None);
        }
        // A place that is left unchanged, such as a tracker, must stay unchanged in later runs. A later run can find
        // its picture in the message, because embody embedded the same picture for another place. This part is then not
        // used for this place.
        let is_tracker = shown.link.hidden && embed.trackers == Trackers::Leave;
        let is_left = is_tracker || self.refused.is_some();
        if let Some((part, identity)) = &shown.sibling
            && !(is_left && is_ours(&identity.content_id))
        {
            let url = Some(masked(&shown.absolute).into_owned());
            if self.is_protected
                && let Some(refusal) = &self.refused
            {
                return (refusal.clone().into(), url);
            }
            if pictures.tree.part(*part).essence == SVG && !fragment(&shown.absolute).is_empty() {
                return (part_of_svg().into(), url);
            }
            let content_id = format!("cid:{}", cid_escaped(&identity.content_id));
            if identity.is_made {
                self.made.insert(*part, identity.content_id.clone());
            }
            return (LinkUse::Part(*part, content_id), url);
        }
        let reference = UrlReference::split(&shown.absolute);
        if reference.has_scheme("data") {
            if !embed.data {
                return (LinkUse::Nothing, None);
            }
            if let Some(refusal) = &self.refused {
                return (refusal.clone().into(), Some(shortened(&shown.absolute)));
            }
            // A `data:` URL can be inside a style sheet that is itself a `data:` URL. Each level is stored in memory
            // again, so the total length of nested URLs is limited.
            let nested = self.nested.saturating_add(shown.absolute.len());
            let content = match role {
                _ if shown.holds_octets() => Err(data_of_octets()),
                _ if steps > 1 && nested > self.most_nested => {
                    let detail = "the nested data: URLs in style sheets are together larger than the message";
                    Err(Refusal::lasting(Reason::TooMuchWork, detail))
                }
                LinkRole::StyleSheet => style::of_data(pictures, &shown.absolute),
                _ => pictures.of_data(&shown.absolute, role),
            };
            let meaning = match content {
                Ok(picture) => {
                    if steps > 1 {
                        self.nested = nested;
                    }
                    LinkUse::Picture(picture)
                }
                Err(refusal) => refusal.into(),
            };
            return (meaning, Some(shortened(&shown.absolute)));
        }
        let names_host = shown.candidates().len() > 1;
        let is_web = names_host || reference.has_scheme("http") || reference.has_scheme("https");
        if !is_web || !embed.remote {
            return (LinkUse::Nothing, None);
        }
        let url = shown.candidates().into_iter().next().unwrap_or_default();
        let source = masked(&url).into_owned();
        if let Some(refusal) = &self.refused {
            return (refusal.clone().into(), Some(source));
        }
        let meaning = match embed.trackers {
            Trackers::Leave if shown.link.hidden => {
                let detail = "the HTML hides the picture or makes it too small to see";
                Refusal::lasting(Reason::Tracker, detail).into()
            }
            Trackers::Blank if shown.link.hidden => LinkUse::Blank(pictures.blank()),
            _ if self.choice.is_generated(BLANK_PICTURE) => LinkUse::Blank(pictures.blank()),
            _ => self.retrieval(shown, policy),
        };
        (meaning, Some(source))
    }

    /// Decides which URL is retrieved for a place. For a URL without a scheme (`//host/...`), https is tried first and then
    /// http, if the policy allows both. If a mail filter or a picture proxy wrapped the URL, its original is tried last.
    fn retrieval(&mut self, shown: &DocumentText<'_>, policy: &Policy) -> LinkUse {
        if shown.holds_octets() {
            return not_text(shown.charset).into();
        }
        let mut refusal = None;
        let mut refused_original = None;
        let mut allowed = Vec::new();
        let candidates = shown.candidates();
        let wrapped = candidates.first().and_then(|first| unwrapped_link(first));
        let named = masked(without_fragment(
            candidates.first().map_or("", String::as_str),
        ));
        let originals = wrapped.map(|unwrapped| (unwrapped.original.clone(), Some(unwrapped)));
        let urls = candidates.iter().map(|url| (url.clone(), None));
        for (candidate, original) in urls.chain(originals) {
            let mapped = policy.map(&candidate).into_owned();
            match (policy.judge_url(&mapped), original) {
                (Ok(_), original) => allowed.push(Instead {
                    url: equivalence_key(without_fragment(&mapped)),
                    source: match original {
                        Some(_) => named.clone().into_owned(),
                        None => masked(without_fragment(&candidate)).into_owned(),
                    },
                    original,
                }),
                // The original is judged like any other URL, so a wrapped link cannot widen the policy.
                (Err(why), Some(original)) => refused_original = Some(Box::new((original, why))),
                (Err(why), None) => {
                    refusal.get_or_insert(why);
                }
            }
        }
        let mut allowed = allowed.into_iter();
        let Some(first) = allowed.next() else {
            return refusal.map_or(LinkUse::Nothing, LinkUse::from);
        };
        let number = self.number(PictureNeed {
            url: first.url,
            source: first.source,
            is_sheet: shown.link.role == LinkRole::StyleSheet,
            otherwise: allowed.collect(),
            original: first.original,
            refused_original,
            choice: self.choice.clone(),
        });
        LinkUse::Url(number)
    }
}

/// Returns the refusal for a URL whose bytes are not valid in the charset that the document declares.
fn not_text(charset: Option<&str>) -> Refusal {
    let detail = match charset {
        Some(charset) => {
            format!("the URL contains bytes that are not valid in the charset {charset}")
        }
        None => "the URL is not valid UTF-8, and the document declares no charset".to_owned(),
    };
    Refusal::lasting(Reason::BadUrl, detail)
}

fn data_of_octets() -> Refusal {
    let detail = "the data: URL contains bytes that are not ASCII, and the document is not UTF-8";
    Refusal::lasting(Reason::BadUrl, detail)
}
