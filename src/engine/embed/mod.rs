//! Embeds the pictures that HTML shows: each picture becomes a part of the message, and the HTML refers to it by `cid:`.
//!
//! A URL that refers to another part of the message is resolved first, then `data:` URLs, then URLs on the network, within the
//! policy and the limits. The type of a picture is detected from its bytes. Pictures with the same bytes become one part. Ids
//! and boundaries are computed from hashes, so the same input gives the same output. Documents are processed in order:
//! pictures are added until a limit is reached. A picture that fails keeps its URL and gets a row in the report.

mod check;
mod container;
mod fallbacks;
mod given_sheets;
mod names;
mod pictures;
mod places;
mod shape;
mod style;
mod wanted;

use std::collections::{HashMap, HashSet};

#[cfg(feature = "cli")]
pub(crate) use self::check::PAGE_INSTEAD;
use self::check::{SVG, part_of_svg};
use self::container::Container;
use self::fallbacks::Lost;
use self::pictures::{NewPicture, Picture, Pictures};
use self::places::{LinkUse, PicturePlace, PicturePlaces};
use self::wanted::SHEET;
use super::part_edits::PartEdits;
use super::pass::Pass;
use super::session::Session;
use super::wrapped::above;
use crate::edit::{Edits, Group};
use crate::engine::plan::documents::{Documents, Fallbacks, cid_escaped};
use crate::engine::report::{Detail, Kind, Outcome, Provenance, Refusal, Retry, Row, Setting};
use crate::link::url::masked;
use crate::mime::{MessageTree, PartId};

#[derive(Default)]
pub(super) struct EmbedPass {
    /// Margin, in bytes, by which a real run may grow the message more than the dry run computed. The dry run assumes
    /// that each picture can be retrieved. If it cannot, its relative link is made absolute instead, which can be
    /// longer than a `cid:` URL.
    pub(super) unresolved: u64,
    wrapped: HashMap<String, String>,
}

impl EmbedPass {
    /// Returns the number that a part had before embedding. If embedding wrapped a document in a new multipart, the parts of
    /// this multipart count as the document.
    pub(super) fn number_before<'n>(&'n self, now: &'n str) -> &'n str {
        self.wrapped.get(above(now)).map_or(now, String::as_str)
    }
}

pub(super) fn embed(
    session: &mut Session<'_>,
    tree: &MessageTree<'_>,
    outcomes: &mut Pass,
    embedding: &mut EmbedPass,
) -> Edits {
    let mut pictures = Pictures::new(tree, session.policy());
    let given = session.guide.map(|guide| guide.given_ids(tree));
    let mut documents =
        Documents::new(tree, session.policy()).giving_ids(given.unwrap_or_default());
    let guided = (&mut session.ledger, session.guide);
    let mut places = PicturePlaces::find(guided, &mut documents, &mut pictures);
    let found = std::mem::take(&mut places.documents);
    let mut pending = PendingPicture {
        session,
        places,
        tree,
        documents,
        new: Vec::new(),
        held: HashSet::new(),
        present: tree.ids().count(),
        answers: HashMap::new(),
        pictures,
        sheets: HashMap::new(),
        inner_rows: Vec::new(),
        inner_named: Vec::new(),
        edits: PartEdits::new(tree),
        outcomes,
        embedding,
    };
    pending.retrieve();
    if pending.session.is_stopped() {
        return Edits::new();
    }
    for (part, found) in &found {
        match found {
            Ok(found) => pending.document(*part, found),
            Err(refusal) => {
                let mut row = pending.left(*part);
                row.tell_refusal(refusal.clone());
                pending.outcomes.report.rows.push(row);
            }
        }
    }
    pending.edits.edits
}

/// Placeholder as long as the `cid:` URL of content that was not retrieved yet, so that a dry run computes the right size.
const STAND_IN: &str = "cid:00000000000000000000000000000000@embody";

#[derive(Clone, Debug)]
enum GivenPicture {
    Url(String),
    Nothing,
    /// Content that only a real run retrieves. The dry run processes the document as if the content were present.
    Awaited,
    Refused(Refusal),
}

struct PendingPicture<'p, 's> {
    session: &'p mut Session<'s>,
    places: PicturePlaces,
    tree: &'p MessageTree<'p>,
    documents: Documents<'p>,
    new: Vec<(NewPicture, usize)>,
    held: HashSet<(Container, usize)>,
    present: usize,
    /// Result for each URL, by its number in [`PicturePlaces::urls`]: the number of the content in [`Pictures`], or a refusal.
    answers: HashMap<usize, Result<usize, Refusal>>,
    pictures: Pictures<'p>,
    /// For each style sheet that is not part of the message yet: the places in it that show content, or the reason why the
    /// sheet cannot be read.
    sheets: HashMap<(Container, usize), Result<Vec<PicturePlace>, Refusal>>,
    inner_rows: Vec<Row>,
    inner_named: Vec<PartId>,
    edits: PartEdits<'p>,
    outcomes: &'p mut Pass,
    embedding: &'p mut EmbedPass,
}

impl PendingPicture<'_, '_> {
    fn document(&mut self, part: PartId, found: &[PicturePlace]) {
        let gained = self.session.ledger.gained();
        let mut rows: Vec<Row> = Vec::new();
        // Pictures of the document that have a row in the report. A picture gets only one row, even if the document shows it
        // several times.
        let mut told: HashSet<(LinkUse, Option<String>)> = HashSet::new();
        let container = Container::of(self.tree, part);
        self.inner_named.clear();
        let mut values: HashMap<usize, String> = HashMap::new();
        let (mut fallbacks, mut lost) = (Fallbacks::new(), Lost::new());
        for tag in found.chunk_by(|one, next| one.tag == next.tag) {
            let mut of_source: Option<(String, Option<u32>)> = None;
            for place in tag {
                let given = self.give((part, container.as_ref()), place);
                if let GivenPicture::Refused(refusal) = &given
                    && fallbacks::is_lost(place, refusal)
                {
                    lost.insert(place.ordinal);
                }
                // The fragment (after `#`) is not sent to the server, so URLs that differ only in the fragment share
                // one row.
                let shown = match &place.meaning {
                    LinkUse::Url(_) if !place.has_fragment => None,
                    LinkUse::Url(_) if !matches!(given, GivenPicture::Refused(_)) => None,
                    _ => place.shown.clone(),
                };
                if told.insert((place.meaning.clone(), shown))
                    && let Some(row) = self.row(part, place, &given)
                {
                    rows.push(row);
                }
                rows.append(&mut self.inner_rows);
                let given = match given {
                    GivenPicture::Awaited => {
                        let unresolved = place.absolute.saturating_sub(STAND_IN.len());
                        self.embedding.unresolved += unresolved as u64;
                        GivenPicture::Url(STAND_IN.to_owned())
                    }
                    given => given,
                };
                if let GivenPicture::Url(url) = given {
                    if place.is_source {
                        let picture = self.picture(place).map(|(_, picture)| picture);
                        let size = picture.and_then(|picture| picture.kind.size);
                        of_source = Some((url.clone(), size.map(|(width, _)| width)));
                    }
                    values.insert(place.ordinal, url);
                }
            }
            // If a mail client picks a candidate of `srcset` that no server has any more, the client shows nothing, although the
            // message now contains the picture. So these candidates get the URL of the embedded part.
            let candidates = || tag.iter().filter(|place| place.is_candidate);
            let first = || candidates().find_map(|place| values.get(&place.ordinal).cloned());
            if let Some((url, width)) = of_source.or_else(|| Some((first()?, None))) {
                fallbacks::point(
                    (candidates(), &lost),
                    (&url, width),
                    &mut values,
                    &mut fallbacks,
                );
            }
        }
        fallbacks::point_options(found, &lost, &mut values, &mut fallbacks);
        if !values.is_empty() {
            let new: usize = self.new.iter().map(|(_, cost)| cost).sum();
            self.session.ledger.restore_gained(gained);
            let (documents, ledger) = (&mut self.documents, &mut self.session.ledger);
            let rewritten = documents.embedded(part, ledger, &values, &fallbacks);
            let is_kept = |place: &&PicturePlace| values.contains_key(&place.ordinal);
            let kept = found.iter().filter(is_kept);
            let container = container.ok();
            let kept = rewritten.and_then(|group| {
                self.session.ledger.grow(new as i64)?;
                self.keep(container, group, kept)
            });
            if let Err(refusal) = kept {
                self.session.ledger.restore_gained(gained);
                if let Some(container) = container {
                    self.take_back(container);
                }
                let is_put_in =
                    |row: &&mut Row| !matches!(row.outcome, Outcome::Left | Outcome::WouldFetch);
                for row in rows.iter_mut().filter(is_put_in) {
                    row.tell_refusal(refusal.clone());
                }
            }
        }
        self.outcomes.report.rows.extend(rows);
    }

    fn picture(&self, place: &PicturePlace) -> Option<(usize, &Picture)> {
        let number = match &place.meaning {
            LinkUse::Picture(picture) | LinkUse::Blank(picture) => *picture,
            LinkUse::Url(number) => *self.answers.get(number)?.as_ref().ok()?,
            _ => return None,
        };
        Some((number, self.pictures.get(number)?))
    }

    fn keep<'f>(
        &mut self,
        container: Option<Container>,
        group: Group,
        kept: impl Iterator<Item = &'f PicturePlace>,
    ) -> Result<(), Refusal> {
        let group = match container {
            Some(container) => self.with_parts(container, group),
            None => group,
        };
        let meant = kept.filter_map(|place| match place.meaning {
            LinkUse::Part(part, _) => Some(part),
            _ => None,
        });
        let named = meant
            .chain(self.inner_named.drain(..))
            .filter_map(|part| Some((part, self.places.made.get(&part)?.as_str())));
        self.edits.change(group, named)?;
        if let Some(container) = container {
            self.keep_parts(container);
        }
        Ok(())
    }

    fn give(
        &mut self,
        (part, container): (PartId, Result<&Container, &Refusal>),
        place: &PicturePlace,
    ) -> GivenPicture {
        let (container, picture) = match (container, &place.meaning) {
            (_, LinkUse::Nothing) => return GivenPicture::Nothing,
            // The picture is a part of the message already, so no new part is needed.
            (_, LinkUse::Part(_, url)) => return GivenPicture::Url(url.clone()),
            (_, LinkUse::Refused(refusal)) => return GivenPicture::Refused((**refusal).clone()),
            (Err(refusal), _) => return GivenPicture::Refused(refusal.clone()),
            (Ok(container), LinkUse::Picture(picture) | LinkUse::Blank(picture)) => {
                (*container, *picture)
            }
            (Ok(container), LinkUse::Url(url)) => match self.answer(*url) {
                Some(Ok(picture)) => (*container, picture),
                Some(Err(refusal)) => return GivenPicture::Refused(refusal),
                None => return GivenPicture::Awaited,
            },
        };
        if place.has_fragment && self.pictures.is(picture, SVG) {
            return GivenPicture::Refused(part_of_svg());
        }
        if self.pictures.is(picture, SHEET) {
            let within = (part, container);
            return self.give_sheet(within, (picture, place.octets));
        }
        let (content_id, is_there) = self.pictures.identity(container, picture);
        if !is_there && !self.held.contains(&(container, picture)) {
            let parts = self.session.policy().limits.parts;
            if let Err(refusal) = self.judge_parts(container, parts) {
                return GivenPicture::Refused(refusal);
            }
            // An estimate for the limit: the new part and the longest possible `cid:` URL, minus the old URL. The real growth
            // replaces the estimate when the document is written.
            let new = self.pictures.new_part(container, picture, picture);
            let cost = self.cost(container, new.len());
            let longest = content_id.len() + "cid:%40".len();
            let growth = (cost + longest) as i64 - place.octets as i64;
            if let Err(refusal) = self.session.ledger.grow(growth) {
                return GivenPicture::Refused(refusal);
            }
            self.put_part(container, new);
        }
        GivenPicture::Url(format!("cid:{}", cid_escaped(&content_id)))
    }

    fn answer(&mut self, number: usize) -> Option<Result<usize, Refusal>> {
        if let Some(known) = self.answers.get(&number) {
            return Some(known.clone());
        }
        if let Some(&other) = self.places.instead.get(&number) {
            let answer = self.answer(other)?;
            let is_original = (self.places.urls.get(other)).is_some_and(|it| it.original.is_some());
            let may_come = |refusal: &Refusal| is_original && refusal.retry == Retry::Later;
            if answer.is_ok() || answer.as_ref().is_err_and(may_come) {
                self.answers.insert(number, answer.clone());
                return Some(answer);
            }
        }
        let wanted = self.places.urls.get(number)?;
        let result = match self.session.retrieved.get(&wanted.need()) {
            None => Err(self.session.ledger.enough_retrievals()),
            Some(Ok(None)) => return None,
            Some(Err(refusal)) => Err(refusal.clone()),
            Some(Ok(Some(answer))) => {
                let pictures = &mut self.pictures;
                let names = wanted.names();
                if !wanted.is_sheet {
                    pictures.of_answer(answer, names)
                } else {
                    (self.session.ledger.work(answer.len() * 3))
                        .and_then(|()| style::of_answer(pictures, answer, names))
                }
            }
        };
        self.answers.insert(number, result.clone());
        Some(result)
    }

    /// Follows the fallbacks of a URL to the one that returned the content. Returns `number` itself if no fallback was
    /// used.
    fn came(&self, mut number: usize) -> usize {
        while let Some(&other) = self.places.instead.get(&number)
            && let Some(Ok(_)) = self.answers.get(&other)
        {
            number = other;
        }
        number
    }

    fn row(&mut self, part: PartId, place: &PicturePlace, given: &GivenPicture) -> Option<Row> {
        let mut row = self.row_of_outcome(part, place, given)?;
        if let LinkUse::Url(number) = place.meaning {
            self.tell_original(&mut row, number);
        }
        Some(row)
    }

    /// For a wrapped URL, adds to the row whether its unwrapped original was used, and if not, why.
    fn tell_original(&self, row: &mut Row, number: usize) {
        let [came, last] = [self.came(number), self.places.last_instead(number)];
        let of = |number: usize| self.places.urls.get(number);
        let failure = |number: usize| match self.session.retrieved.get(&of(number)?.need()) {
            Some(Err(refusal)) => Some(refusal.detail.clone()),
            _ => match self.answers.get(&number) {
                Some(Err(refusal)) => Some(refusal.detail.clone()),
                _ => None,
            },
        };
        let is_left = row.outcome == Outcome::Left;
        if let Some(original) = of(came)
            .and_then(|it| it.original.as_ref())
            .filter(|_| !is_left)
        {
            let what = if row.outcome == Outcome::WouldFetch {
                "the content would be retrieved"
            } else {
                "the content is"
            };
            row.remark(&format!(
                "{what} from {}, the original of the URL that {} wrapped",
                masked(&original.original),
                original.service
            ));
        } else if let Some(original) = of(last).and_then(|it| it.original.as_ref()) {
            let url = masked(&original.original);
            row.remark(&format!("the original URL {url} failed too"));
            if let Some(detail) = failure(last) {
                row.detail = std::mem::take(&mut row.detail).then(": ").then(detail);
            }
        } else if let Some(refused) = of(last)
            .and_then(|it| it.refused_original.as_ref())
            .filter(|_| is_left)
        {
            let (original, refusal) = &**refused;
            let url = masked(&original.original);
            row.remark(&format!("the original URL {url} was not requested: "));
            row.detail = std::mem::take(&mut row.detail).then(refusal.detail.clone());
        } else if row.outcome == Outcome::WouldFetch
            && let Some(next) = of(number).and_then(|it| it.otherwise.last()?.original.as_ref())
        {
            let url = masked(&next.original);
            row.remark(&format!(
                "if this fails, the original URL {url} is requested"
            ));
        }
    }

    fn row_of_outcome(
        &mut self,
        part: PartId,
        place: &PicturePlace,
        given: &GivenPicture,
    ) -> Option<Row> {
        let mut row = self.left(part);
        row.url.clone_from(&place.shown);
        let mut answer = None;
        if let LinkUse::Url(number) = &place.meaning {
            let wanted = self.places.urls.get(self.came(*number))?;
            row.url = Some(wanted.source.clone());
            row.media_type = wanted.is_sheet.then(|| SHEET.to_owned());
            if let Some(Ok(Some(found))) = self.session.retrieved.get(&wanted.need()) {
                // Each row contains the URL after redirects. A hostile server can redirect a short URL to a very long
                // one, which thousands of rows would repeat. So the length of the URL counts as work.
                let told = self.session.ledger.work(found.names_length());
                answer = told.is_ok().then_some(found);
            }
        }
        match given {
            GivenPicture::Nothing => return None,
            GivenPicture::Refused(refusal) => {
                if refusal.retry == Retry::Later {
                    let detail = row.waiting_for(&refusal.detail);
                    self.outcomes.temporary.get_or_insert(detail);
                }
                if let Some(answer) = answer {
                    answer.describe_source(&mut row);
                }
                row.tell_refusal(refusal.clone());
                return Some(row);
            }
            GivenPicture::Awaited => {
                row.outcome = Outcome::WouldFetch;
                if let LinkUse::Url(number) = &place.meaning
                    && let Some(wanted) = self.places.urls.get(*number)
                    && let Some(announced) = self.session.answers.announcement(&wanted.need())
                {
                    announced.describe(&mut row);
                    return Some(row);
                }
                row.detail = Detail::from(
                    "the content would be retrieved; its size is not known, but is at most ",
                )
                .naming(Setting::Body);
                return Some(row);
            }
            GivenPicture::Url(_) => row.outcome = Outcome::Expanded,
        }
        match &place.meaning {
            LinkUse::Part(sibling, _) => {
                let number = self.tree.number(*sibling);
                row.from = Provenance::Message;
                row.detail = format!("the link leads to part {number} of the mail").into();
            }
            LinkUse::Picture(_) => row.from = Provenance::Message,
            LinkUse::Blank(_) => {
                row.outcome = Outcome::Blanked;
                if place.is_visible_blank {
                    row.from = Provenance::Network;
                }
            }
            _ => {}
        }
        let Some((number, picture)) = self.picture(place) else {
            return Some(row);
        };
        let (essence, octets) = (picture.kind.essence, picture.content.len());
        row.media_type = Some(essence.to_owned());
        row.bytes = Some(octets as u64);
        row.detail = format!("{octets} bytes of {essence}").into();
        match answer {
            Some(answer) if self.pictures.is_blank(number) => {
                row.outcome = Outcome::Blanked;
                answer.describe_source(&mut row);
                row.remark("the retrieved picture is at most 3 by 3 pixels, so a blank picture replaces it");
            }
            Some(answer) => answer.describe(&mut row),
            None if row.outcome == Outcome::Blanked => {
                row.remark("a blank picture replaces the tracker; the tracker was not retrieved");
            }
            None => {}
        }
        Some(row)
    }

    fn left(&self, part: PartId) -> Row {
        let number = self.tree.number(part);
        Row::new(
            self.session.context.name(),
            number,
            Kind::Embed,
            Outcome::Left,
        )
    }
}
