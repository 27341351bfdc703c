//! Processes content that is itself a message or a multipart in a separate pass before it is inserted, one level
//! deeper. A reference to a URL is refused if the content around the reference was retrieved from the same URL, because
//! processing would never end.

use super::{Pass, PassPosition, PassStop, PendingReference, pass, too_deep};
use crate::engine::Need;
use crate::engine::plan::{PlanItem, PlanStep};
use crate::engine::report::{Reason, Refusal};
use crate::engine::substitute::Substitute;
use crate::link::url::{UrlReference, equivalence_key, without_fragment};
use crate::mime::ScanLimits;

impl PendingReference<'_, '_, '_> {
    pub(super) fn composite(
        &mut self,
        item: &PlanItem<'_>,
        substitute: &mut Substitute<'_>,
    ) -> Result<(Vec<u8>, Pass), PassStop> {
        let mut trail = self.place.trail.clone();
        let mut base = self.progress.bases.of(self.tree, item.body.part);
        let is_of_note = item.body.text_note.is_some();
        let mut led_to = None;
        if let PlanStep::Retrieve(need) = &item.step {
            let location = substitute.location();
            led_to = location.map(str::to_owned);
            self.judge_circle(item, need, location)?;
            trail.push(need.source_name().into_owned());
            trail.extend(location.map(str::to_owned));
            if !is_of_note {
                base = substitute.base_around(base);
            }
        }
        // The content is copied and read several times when it is checked, so twice its length counts as work.
        let octets = substitute.octets();
        self.session.ledger.work(octets * 2)?;
        let body = substitute.composite_body();
        let part = self.tree.part(item.body.part);
        let growth = body.len() as i64 - part.span.len() as i64;
        self.session.ledger.grow(growth)?;
        if !self.session.settings.prefilter.external_bodies(&body) {
            return Ok((body, Pass::default()));
        }
        let held = self.place.held.saturating_add(body.len());
        self.session.ledger.judge_held(held)?;
        let limits = self.place.limits;
        let place = PassPosition {
            prefix: self.place.number(&substitute.number()),
            limits: ScanLimits {
                depth: limits.depth.saturating_sub(part.depth + 1),
                ..limits
            },
            level: self.place.level + 1,
            base,
            trail,
            is_of_note: self.place.is_of_note || is_of_note,
            held,
        };
        if place.level > self.session.policy().limits.depth || limits.depth <= part.depth {
            return Err(too_deep().into());
        }
        self.session.ledger.work(body.len() * 2)?;
        let header = substitute.header_of_multipart();
        let mut entity = body;
        if !header.is_empty() {
            entity.splice(..0, header.iter().copied());
        }
        let pass = match (pass(self.session, &entity, &place, None), &item.step) {
            (Ok(pass), _) => pass,
            (Err(PassStop::Circle(to)), PlanStep::Retrieve(need))
                if need.source_name() == to || led_to.as_ref() == Some(&to) =>
            {
                return Err(leads_back(need).into());
            }
            (Err(stop), _) => return Err(stop),
        };
        let mut body = pass.edits.splice(&entity).into_bytes().into_owned();
        body.drain(..header.len());
        // Nested content is read again at every level around it, so each reading counts as work.
        self.session.ledger.work(body.len() * 2)?;
        Ok((body, pass))
    }

    /// Refuses a reference to a URL from which the content around the reference was retrieved, because this cycle would
    /// never end.
    ///
    /// For content from the network, a second run finds the URL in the Content-Location of the surrounding part, and
    /// refuses the same reference again. The path of a local file is not written into the mail, and neither is the URL
    /// of a Mailman note. A second run could not detect the cycle. So in this case, the reference that leads into the
    /// cycle is left unchanged.
    fn judge_circle(
        &mut self,
        item: &PlanItem<'_>,
        need: &Need,
        location: Option<&str>,
    ) -> Result<(), PassStop> {
        let around = self.place.trail.iter().map(String::len).sum::<usize>();
        self.session.ledger.work(around)?;
        let name = need.source_name();
        let key = |url: &str| equivalence_key(without_fragment(url));
        let keys: Vec<String> = location.into_iter().chain([&*name]).map(key).collect();
        let mut trail = self.place.trail.iter();
        if let Some(entered) = trail.find(|before| keys.contains(&key(before))) {
            if self.place.is_of_note || UrlReference::split(entered).has_scheme("file") {
                return Err(PassStop::Circle(entered.clone()));
            }
            return Err(leads_back(need).into());
        }
        for above in self.tree.ancestors(item.body.part) {
            let Some(base) = self.progress.bases.of(self.tree, above) else {
                continue;
            };
            self.session.ledger.work(base.url.len())?;
            if keys.contains(&key(&base.url)) {
                return Err(leads_back(need).into());
            }
        }
        Ok(())
    }
}

fn leads_back(need: &Need) -> Refusal {
    let name = need.source_name();
    let url = crate::link::url::masked(need.url().unwrap_or(&name));
    Refusal::lasting(
        Reason::ReferenceLoop,
        format!("the content of {url} contains a reference to the same URL"),
    )
}
