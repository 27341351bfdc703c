//! Finds the places of the documents that show pictures, and decides what each place needs. Nothing is retrieved here.

mod meaning;

use std::collections::{HashMap, VecDeque};

use super::super::prefilter::may_show_data;
use super::container::Container;
use super::pictures::Pictures;
use super::wanted::{Key, PictureNeed};
use crate::engine::guide::{Guide, PictureChoice};
use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::{DocumentText, Documents};
use crate::engine::policy::Embed;
use crate::engine::protection::protection;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::link::url::{equivalence_key, masked, without_fragment};
use crate::link::value::{Grammar, ImageSet, LinkRole};
use crate::link::wrapper::unwrapped_link;
use crate::mime::{MessageTree, PartId};

const SHOWN_DATA: usize = 48;

/// Memory for one place until the document is written, in bytes, including its new URL and its edits. `THING` is the
/// memory for one picture, including its row and its new part, but not the content. Both values were measured and
/// rounded up.
const PLACE: usize = 400;
const THING: usize = 1_900;

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) enum LinkUse {
    #[default]
    Nothing,
    Part(PartId, String),
    /// A picture that is available, by its number in [`Pictures`].
    Picture(usize),
    /// The blank picture that replaces a tracker, by its number in [`Pictures`]. The tracker itself is not requested.
    Blank(usize),
    /// Content that must be retrieved, by the number of its URL in [`PicturePlaces::urls`].
    Url(usize),
    Refused(Box<Refusal>),
}

impl From<Refusal> for LinkUse {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

#[derive(Clone, Default, Debug)]
pub(super) struct PicturePlace {
    pub(super) ordinal: usize,
    pub(super) meaning: LinkUse,
    pub(super) octets: usize,
    /// Upper bound for the length of the link in bytes after it is made absolute. Zero if it is not made absolute.
    pub(super) absolute: usize,
    pub(super) tag: usize,
    /// True for the `src` of a tag that may also have candidates in `srcset`.
    pub(super) is_source: bool,
    pub(super) is_candidate: bool,
    pub(super) image_set: Option<usize>,
    pub(super) has_fragment: bool,
    pub(super) shown: Option<String>,
    /// True for a blank picture in a visible place. Only `compare` finds it: the server sent a picture that is too
    /// small to see.
    pub(super) is_visible_blank: bool,
}

#[derive(Default)]
pub(super) struct PicturePlaces {
    pub(super) documents: Vec<(PartId, Result<Vec<PicturePlace>, Refusal>)>,
    pub(super) urls: Vec<PictureNeed>,
    numbers: HashMap<Key, usize>,
    /// Queue of style sheets in which URLs were not searched yet. Each entry has the document that uses the sheet, and the
    /// nesting depth of the sheet.
    pub(super) sheets: VecDeque<(LinkUse, PartId, usize)>,
    pub(super) instead: HashMap<usize, usize>,
    pub(super) made: HashMap<PartId, String>,
    image_sets: usize,
    nested: usize,
    pub(super) most_nested: usize,
    room: usize,
    /// Number of places that are not recorded, because the recorded places already use all of the permitted memory.
    unseen: usize,
    first_unseen: usize,
    refused: Option<Refusal>,
    is_protected: bool,
    /// Picture that `compare` found in the new mail at the current place. [`PictureChoice::Usual`] in every other run.
    pub(super) choice: PictureChoice,
}

impl PicturePlaces {
    pub(super) fn find(
        (ledger, guide): (&mut Ledger, Option<&Guide>),
        documents: &mut Documents<'_>,
        pictures: &mut Pictures<'_>,
    ) -> Self {
        let (tree, policy) = (pictures.tree, pictures.policy);
        let mut places = Self {
            room: ledger.room_for_places(),
            ..Self::default()
        };
        let choices = match guide {
            Some(guide) => guide.choices(documents, ledger),
            None => HashMap::new(),
        };
        for part in tree.ids() {
            if tree.part(part).essence == "text/x-amp-html" {
                if policy.embed.is_only_data() {
                    continue;
                }
                let detail = "pictures are not embedded into AMP documents";
                let refusal = Refusal::lasting(Reason::UnsupportedDocument, detail);
                places.documents.push((part, Err(refusal)));
                continue;
            }
            let protected = protection(tree, part, policy);
            places.is_protected = protected.is_some();
            places.refused = protected.or_else(|| Container::of(tree, part).err());
            let (urls, sheets) = (places.urls.len(), places.sheets.len());
            let mut found: Vec<PicturePlace> = Vec::new();
            let mut tag = 0;
            let of_part = choices.get(&part).map_or(&[][..], Vec::as_slice);
            let looked = documents.shown(part, ledger, |shown| {
                places.choice = of_part.get(shown.ordinal).cloned().unwrap_or_default();
                tag += usize::from(shown.link.opens_tag);
                found.extend(places.place(shown, (part, 1, tag), pictures));
            });
            found.extend(places.unseen(tag));
            match looked {
                Ok(()) if found.iter().any(|it| it.meaning != LinkUse::Nothing) => {
                    places.documents.push((part, Ok(found)));
                }
                Ok(()) => {}
                Err(refusal) => {
                    // The document cannot be processed, so its URLs are removed from the list again and are not
                    // requested.
                    for wanted in places.urls.drain(urls..) {
                        places.numbers.remove(&wanted.key());
                    }
                    places.sheets.truncate(sheets);
                    // If only `data:` URLs are embedded, messages without such URLs are not processed, so their
                    // documents get no row. A document without `data:` URLs in another message gets no row either, so
                    // that every command reports the same rows.
                    if !policy.embed.is_only_data() || may_hold_data(tree, part) {
                        places.documents.push((part, Err(refusal)));
                    }
                }
            }
        }
        places.refused = None;
        places.is_protected = false;
        places.choice = PictureChoice::Usual;
        let found = places.documents.iter_mut();
        for found in found.filter_map(|(_, found)| found.as_mut().ok()) {
            show_trackers(found, &places.urls);
        }
        places
    }

    pub(super) fn place(
        &mut self,
        shown: DocumentText<'_>,
        (document, steps, tag): (PartId, usize, usize),
        pictures: &mut Pictures<'_>,
    ) -> Option<PicturePlace> {
        let policy = pictures.policy;
        let known = (pictures.len(), self.urls.len());
        let link = shown.link;
        let is_wanted = is_wanted(policy.embed, link.role);
        if self.room == 0 {
            if self.unseen == 0 {
                self.first_unseen = shown.ordinal;
            }
            self.unseen += usize::from(is_wanted);
            return None;
        }
        let has_fragment = has_fragment(&shown.absolute);
        self.image_sets += usize::from(link.image_set == ImageSet::First);
        let image_set = (link.image_set != ImageSet::Outside).then_some(self.image_sets);
        let absolute = match shown.relative {
            // In quoted-printable, each byte of the URL can need three bytes.
            Some(true) if is_wanted => shown.link.encoded(&*shown.absolute).len() * 3,
            _ => 0,
        };
        let is_sheet = link.role == LinkRole::StyleSheet;
        let (meaning, url) = if !is_wanted {
            (LinkUse::Nothing, None)
        } else if is_sheet && steps > policy.limits.depth {
            let detail =
                Detail::from("the style sheet is nested more deeply in @import rules than ")
                    .naming(Setting::Depth)
                    .then(" allows");
            let refusal = Refusal::lasting(Reason::TooDeep, detail);
            let url = masked(&shown.absolute).into_owned();
            (refusal.into(), Some(shortened(&url)))
        } else {
            self.meaning(&shown, steps, pictures)
        };
        if is_sheet && matches!(meaning, LinkUse::Picture(_) | LinkUse::Url(_)) {
            self.sheets.push_back((meaning.clone(), document, steps));
        }
        let place = PicturePlace {
            ordinal: shown.ordinal,
            octets: shown.link.span.len(),
            absolute,
            tag,
            is_source: is_wanted && link.place == "src",
            is_candidate: is_wanted && link.grammar == Grammar::Srcset,
            image_set: image_set.filter(|_| is_wanted),
            has_fragment,
            shown: url,
            is_visible_blank: matches!(meaning, LinkUse::Blank(_)) && !link.hidden,
            meaning,
        };
        let is_alone = !place.is_candidate && place.image_set.is_none();
        if place.meaning == LinkUse::Nothing && is_alone {
            return None;
        }
        let is_new = known != (pictures.len(), self.urls.len())
            || matches!(place.meaning, LinkUse::Refused(_) | LinkUse::Part(..));
        let names = place.shown.as_ref().map_or(0, String::len);
        let thing = if is_new { THING + 2 * names } else { names };
        self.room = self.room.saturating_sub(PLACE + thing);
        Some(place)
    }

    pub(super) fn unseen(&mut self, tag: usize) -> Option<PicturePlace> {
        let unseen = std::mem::take(&mut self.unseen);
        let detail = format!(
            "{unseen} further links to pictures are unchanged, because embedding them would need more memory than the size of the message allows"
        );
        (unseen > 0).then(|| PicturePlace {
            ordinal: self.first_unseen,
            meaning: Refusal::lasting(Reason::TooMuchWork, detail).into(),
            tag: tag + 1,
            ..PicturePlace::default()
        })
    }

    /// Returns the last fallback that was requested for the URL `number`: every URL before it in the chain failed.
    pub(super) fn last_instead(&self, mut number: usize) -> usize {
        while let Some(&other) = self.instead.get(&number) {
            number = other;
        }
        number
    }

    /// Returns the URLs that must belong to a later run than the one that added their part: a run gives a part the URL of its
    /// first link, and the part has the URL of another link after them.
    pub(super) fn of_later_run(&self) -> impl Iterator<Item = usize> {
        let mut owners: HashMap<usize, usize> = HashMap::new();
        let located = self.urls.iter().map(PictureNeed::located).enumerate();
        for (number, located) in located.clone() {
            if let Some((part, true)) = located {
                owners.entry(part).or_insert(number);
            }
        }
        located.filter_map(move |(number, located)| match located? {
            (part, false) if owners.get(&part).is_some_and(|owner| *owner > number) => Some(number),
            _ => None,
        })
    }

    pub(super) fn number(&mut self, wanted: PictureNeed) -> usize {
        let next = self.urls.len();
        let number = *self.numbers.entry(wanted.key()).or_insert(next);
        if number == next {
            self.urls.push(wanted);
        } else if let Some(known) = self.urls.get_mut(number)
            && known.choice < wanted.choice
        {
            known.choice = wanted.choice;
        }
        number
    }
}

/// Treats a tracker like a normal picture if the document also shows its URL in a visible place. The URL is requested for that
/// place anyway. If the tracker were left, a second run would find the picture in the message and change the tracker.
fn show_trackers(found: &mut [PicturePlace], urls: &[PictureNeed]) {
    let is_tracker = |place: &PicturePlace| match &place.meaning {
        LinkUse::Refused(refusal) => refusal.reason == Reason::Tracker,
        _ => false,
    };
    if !found.iter().any(is_tracker) {
        return;
    }
    let asked: HashMap<String, usize> = found
        .iter()
        .filter_map(|place| match place.meaning {
            LinkUse::Url(number) => Some((urls.get(number)?, number)),
            _ => None,
        })
        .filter(|(wanted, _)| !wanted.is_sheet)
        .map(|(wanted, number)| (equivalence_key(&wanted.source), number))
        .collect();
    for place in found.iter_mut().filter(|place| is_tracker(place)) {
        let url = place.shown.as_deref().unwrap_or_default();
        if let Some(&number) = asked.get(&equivalence_key(without_fragment(url))) {
            place.meaning = LinkUse::Url(number);
        }
    }
}

fn may_hold_data(tree: &MessageTree<'_>, part: PartId) -> bool {
    let entity = tree.part(part);
    let octets = entity.encoding.decode(entity.body.of(tree.original));
    octets.is_none_or(|octets| may_show_data(&octets))
}

fn is_wanted(embed: Embed, role: LinkRole) -> bool {
    match role {
        LinkRole::Picture => embed.pictures,
        LinkRole::Font => embed.fonts,
        LinkRole::Media => embed.media,
        LinkRole::StyleSheet => embed.styles,
        _ => false,
    }
}

/// Returns true if the URL of a picture has a fragment, which can select a part of an SVG. The picture proxy of Gmail writes
/// the original URL as the fragment, so then the fragment of the original counts.
fn has_fragment(url: &str) -> bool {
    !fragment(url).is_empty()
        && unwrapped_link(url).is_none_or(|unwrapped| !fragment(&unwrapped.original).is_empty())
}

fn fragment(url: &str) -> &str {
    url.split_once('#').map_or("", |(_, fragment)| fragment)
}

fn shortened(url: &str) -> String {
    let text: String = url.chars().take(SHOWN_DATA).collect();
    if text.len() < url.len() {
        format!("{text}... ({} bytes)", url.len())
    } else {
        text
    }
}
