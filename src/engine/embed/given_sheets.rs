//! External style sheets: retrieves the sheets and everything that they show, level by level, and adds the sheets to the
//! message as parts.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::container::Container;
use super::fallbacks::{self, Lost};
use super::places::{LinkUse, PicturePlace};
use super::style;
use super::wanted::{Instead, PictureNeed, SHEET};
use super::{GivenPicture, PendingPicture};
use crate::engine::Content;
use crate::engine::guide::{PictureChoice, not_in_mail};
use crate::engine::plan::documents::{Fallbacks, cid_escaped, sheet_with_urls};
use crate::engine::report::{Reason, Refusal};
use crate::mime::PartId;
use crate::mime::transfer::base64_length;

const OUR_URL: usize = 64;

const FIELDS: usize = 400;

impl PendingPicture<'_, '_> {
    /// Retrieves all pictures and style sheets, then the URLs inside these sheets, until no new URL is found. Each URL is
    /// requested only once, so style sheets that import each other do not cause an endless loop.
    pub(super) fn retrieve(&mut self) {
        let mut asked = 0;
        loop {
            let new = || self.places.urls.iter().skip(asked);
            if let Some(guide) = self.session.guide {
                let of_later_run = self.places.of_later_run();
                let later: HashSet<usize> = of_later_run.filter(|_| guide.is_earlier()).collect();
                for (number, wanted) in self.places.urls.iter().enumerate().skip(asked) {
                    let found = || guide.located(&wanted.source);
                    let answer = if later.contains(&number) {
                        Err(not_in_mail())
                    } else {
                        wanted.answer().unwrap_or_else(found)
                    };
                    let answers = &mut self.session.answers;
                    answers.insert(wanted.need(), answer.map(Into::into));
                }
            }
            self.session.ask(new().map(PictureNeed::need));
            if self.session.is_stopped() {
                return;
            }
            let now = asked..self.places.urls.len();
            asked = self.places.urls.len();
            self.try_otherwise(now);
            self.look_into_sheets(asked);
            if asked == self.places.urls.len() {
                return;
            }
        }
    }

    fn try_otherwise(&mut self, asked: Range<usize>) {
        for number in asked {
            let Some(wanted) = self.places.urls.get(number).cloned() else {
                continue;
            };
            let mut rest = wanted.otherwise.as_slice();
            let refusal = match self.session.retrieved.get(&wanted.need()) {
                Some(Err(refusal)) => Some(refusal.clone()),
                // The response may be a page of the link-wrapping server instead of the content. Over http, that server
                // would return the same page, so only the unwrapped original is tried next.
                Some(Ok(Some(_))) => {
                    let is_original = |it: &&Instead| it.original.is_some();
                    let first = rest.iter().take_while(|it| !is_original(it)).count();
                    rest = rest.get(first..).unwrap_or_default();
                    let is_wrapped = !rest.is_empty();
                    is_wrapped.then(|| self.answer(number)?.err()).flatten()
                }
                _ => None,
            };
            let Some((next, further)) = rest.split_first() else {
                continue;
            };
            if refusal.is_none_or(|refusal| refuses_all(&refusal, next)) {
                continue;
            }
            self.answers.remove(&number);
            let other = self.places.number(PictureNeed {
                url: next.url.clone(),
                source: next.source.clone(),
                is_sheet: wanted.is_sheet,
                otherwise: further.to_vec(),
                original: next.original.clone(),
                refused_original: wanted.refused_original,
                choice: wanted.choice,
            });
            self.places.instead.insert(number, other);
        }
    }

    /// Searches the retrieved style sheets for URLs. The URLs with a number below `asked` have been requested, and each
    /// has content or a refusal. Style sheets with other URLs are kept for the next round of requests.
    fn look_into_sheets(&mut self, asked: usize) {
        let mut later = Vec::new();
        while let Some(beside) = self.places.sheets.pop_front() {
            let number = match beside.0 {
                LinkUse::Picture(number) => Some(number),
                // This style sheet has not been requested yet. Its URL was found in this round, or its URL failed
                // and another one replaces it. The next round requests it, so the sheet is kept until then.
                LinkUse::Url(url) if self.places.last_instead(url) >= asked => {
                    later.push(beside);
                    continue;
                }
                LinkUse::Url(url) => self.answer(url).and_then(Result::ok),
                _ => None,
            };
            if let Some(number) = number {
                self.look_into((beside.1, beside.2), number);
            }
        }
        self.places.sheets.extend(later);
    }

    /// Searches one style sheet for URLs, once for each container (the multipart with a document and its pictures). The
    /// same relative URL in the sheet can refer to different parts of the message in different containers.
    fn look_into(&mut self, (document, steps): (PartId, usize), number: usize) {
        let Ok(container) = Container::of(self.tree, document) else {
            return;
        };
        let Entry::Vacant(entry) = self.sheets.entry((container, number)) else {
            return;
        };
        let Some((octets, charset)) = self.pictures.text(number) else {
            return;
        };
        self.places.most_nested = self.session.ledger.room_for_nested();
        let mut found = Vec::new();
        let from = (document, steps + 1, 0);
        let looked = self.documents.shown_in_sheet(
            document,
            &mut self.session.ledger,
            (octets.bytes(), charset.as_deref()),
            |shown| {
                let guide = self.session.guide;
                let choice = guide.map(|guide| guide.choice_in_sheet(&shown.absolute));
                self.places.choice = choice.unwrap_or_default();
                found.extend(self.places.place(shown, from, &mut self.pictures));
            },
        );
        self.places.choice = PictureChoice::Usual;
        found.extend(self.places.unseen(0));
        entry.insert(looked.map(|()| found));
    }

    fn shown_by(&self, container: Container, number: usize) -> Result<&[PicturePlace], Refusal> {
        match self.sheets.get(&(container, number)) {
            Some(Ok(found)) => Ok(found),
            Some(Err(refusal)) => Err(refusal.clone()),
            None => Ok(&[]),
        }
    }

    /// Adds the style sheet `first`, and the sheets that it imports, as parts. Returns the `cid:` URL of `first`. In the
    /// document, this URL replaces a URL of `replaced` bytes.
    pub(super) fn give_sheet(
        &mut self,
        within: (PartId, Container),
        (first, replaced): (usize, usize),
    ) -> GivenPicture {
        let mut accepted = HashSet::new();
        let url = match self.accept(within.1, (first, replaced), &mut accepted) {
            Ok(url) => url,
            Err(refusal) => return GivenPicture::Refused(refusal),
        };
        let mut waiting: Vec<usize> = accepted.iter().copied().collect();
        while let Some(number) = waiting.pop() {
            let found = self.shown_by(within.1, number).unwrap_or_default().to_vec();
            let mut urls: HashMap<usize, String> = HashMap::new();
            let (mut told, mut lost) = (HashSet::new(), Lost::new());
            for place in &found {
                let child = match place.meaning {
                    LinkUse::Picture(number) => Some(number),
                    LinkUse::Url(url) => self.answer(url).and_then(Result::ok),
                    _ => None,
                };
                let given = match child.filter(|&child| self.pictures.is(child, SHEET)) {
                    Some(child) => {
                        let before = accepted.len();
                        match self.accept(within.1, (child, place.octets), &mut accepted) {
                            Ok(url) => {
                                if accepted.len() > before {
                                    waiting.push(child);
                                }
                                GivenPicture::Url(url)
                            }
                            Err(refusal) => GivenPicture::Refused(refusal),
                        }
                    }
                    None => self.give((within.0, Ok(&within.1)), place),
                };
                if let GivenPicture::Refused(refusal) = &given
                    && fallbacks::is_lost(place, refusal)
                {
                    lost.insert(place.ordinal);
                }
                if told.insert((place.meaning.clone(), place.shown.clone()))
                    && let Some(mut row) = self.row(within.0, place, &given)
                {
                    row.remark("the link is in a style sheet");
                    self.inner_rows.push(row);
                }
                if matches!(given, GivenPicture::Awaited) {
                    // In the dry run, the URL in the sheet cannot be replaced yet, and its final length is unknown. The sheet
                    // is written in base64, which lengthens a URL by a third and adds line endings. Twice the length of a
                    // `cid:` URL is an upper bound.
                    self.embedding.unresolved += 2 * OUR_URL as u64;
                }
                if let GivenPicture::Url(url) = given {
                    if let LinkUse::Part(part, _) = place.meaning {
                        self.inner_named.push(part);
                    }
                    urls.insert(place.ordinal, url);
                }
            }
            let mut fallbacks = Fallbacks::new();
            fallbacks::point_options(&found, &lost, &mut urls, &mut fallbacks);
            self.put_sheet(within.1, number, (&urls, &fallbacks));
        }
        GivenPicture::Url(url)
    }

    /// Reserves memory and growth for a style sheet, and returns its `cid:` URL. Two sheets can import each other, so
    /// each must have its URL before either of them is written.
    fn accept(
        &mut self,
        container: Container,
        (number, replaced): (usize, usize),
        accepted: &mut HashSet<usize>,
    ) -> Result<String, Refusal> {
        let (content_id, is_there) = self.pictures.identity(container, number);
        let url = format!("cid:{}", cid_escaped(&content_id));
        let is_held = self.held.contains(&(container, number));
        if is_there || is_held || accepted.contains(&number) {
            return Ok(url);
        }
        // The accepted style sheets will become parts but are not written yet, so their number is subtracted from the
        // limit on parts.
        let parts = self.session.policy().limits.parts;
        self.judge_parts(container, parts.saturating_sub(accepted.len()))?;
        // Thousands of places can refer to a style sheet that does not fit, and the sheet is read again for each of
        // them. The length of the sheet therefore counts as work.
        let octets = self.pictures.octets(number).len();
        self.session.ledger.work(octets * 3)?;
        let most = self.most(container, number)?;
        let cost = self.cost(container, most) + OUR_URL;
        self.session.ledger.grow(cost as i64 - replaced as i64)?;
        accepted.insert(number);
        Ok(url)
    }

    fn most(&self, container: Container, number: usize) -> Result<usize, Refusal> {
        let gained: usize = self
            .shown_by(container, number)?
            .iter()
            .map(|place| OUR_URL.saturating_sub(place.octets))
            .sum();
        let octets = self.pictures.octets(number).len();
        let body = base64_length(octets + gained, self.tree.newline);
        Ok(body + FIELDS + self.pictures.source_length(number) * 2)
    }

    fn put_sheet(
        &mut self,
        container: Container,
        number: usize,
        (urls, fallbacks): (&HashMap<usize, String>, &Fallbacks),
    ) {
        let Some((octets, charset)) = self.pictures.text(number) else {
            return;
        };
        let shown = if urls.is_empty() {
            number
        } else {
            let written = sheet_with_urls(octets.bytes(), charset.as_deref(), urls, fallbacks);
            let text = Content::of_message(written);
            self.pictures.add_text(text, (style::kind(), charset), None)
        };
        let new = self.pictures.new_part(container, number, shown);
        if let Ok(most) = self.most(container, number) {
            self.session.ledger.lose(most as i64 - new.len() as i64);
        }
        self.put_part(container, new);
    }
}

/// Whether the refusal also applies to the fallback URL `next`, which then need not be requested.
fn refuses_all(refusal: &Refusal, next: &Instead) -> bool {
    match refusal.reason {
        Reason::TooLarge | Reason::Tracker | Reason::TypeNotAllowed => true,
        // An unwrapped original is on another host, whose address may be public.
        Reason::PrivateAddress => next.original.is_none(),
        reason => reason.is_bound(),
    }
}
