//! Decides about one reference, or about several references that offer the same attachment: takes the content, creates the
//! change, and adds it to the pass.

use std::rc::Rc;

use super::{Pass, PassChange, PassStop, PendingReference, Put};
use crate::edit::Edit;
use crate::engine::content_source::ContentSource;
use crate::engine::external_body::ReferenceShape;
use crate::engine::external_body::reference::Insertion;
use crate::engine::forms::references::is_reference_type;
use crate::engine::lengths::Lengths;
use crate::engine::part_edits::removal;
use crate::engine::plan::PlanItem;
use crate::engine::report::Refusal;
use crate::engine::substitute::Substitute;
use crate::mime::media_type::is_composite;

impl PendingReference<'_, '_, '_> {
    /// Decides about one reference, or about several that offer the same attachment, in the order in which they are
    /// tried.
    pub(super) fn decide(&mut self, members: &[usize]) -> Result<(), PassStop> {
        let plan = Rc::clone(&self.progress.plan);
        let references = &plan.references;
        let items = members
            .iter()
            .filter_map(|&index| Some((index, references.get(index)?)));
        let mut refusals = Vec::new();
        for (index, item) in items.clone() {
            let done = match self.attempt(index, item) {
                Ok(Some((change, told))) => self.put(item, change, told),
                Ok(None) => {
                    self.await_content(item);
                    for (_, other) in items.filter(|(other, _)| *other != index) {
                        self.tell_removal(other, item);
                    }
                    return Ok(());
                }
                Err(PassStop::Left(refusal)) => Err(refusal),
                Err(stop @ (PassStop::Circle(_) | PassStop::Needs)) => return Err(stop),
            };
            match done {
                Ok(()) => {
                    // The parts are removed in document order, so that the span of a part begins where the span of its
                    // removed neighbour ends. In another order, the spans of two neighbours would overlap.
                    let mut others: Vec<_> = items.filter(|(other, _)| *other != index).collect();
                    others.sort_unstable_by_key(|(other, _)| *other);
                    for (_, other) in others {
                        self.remove(other, item);
                    }
                    return Ok(());
                }
                Err(refusal) => {
                    let refusal = self.session.refused_twice(self.tree, item, refusal);
                    refusals.push((item, refusal));
                }
            }
        }
        for (item, refusal) in refusals {
            self.leave(item, refusal);
        }
        Ok(())
    }

    fn attempt(&mut self, index: usize, item: &PlanItem<'_>) -> Result<Option<Put>, PassStop> {
        self.session.ledger.in_time()?;
        let obtained = self.progress.contents.of(self.session, index);
        if self.session.is_stopped() {
            return Err(PassStop::Needs);
        }
        let Some(obtained) = obtained? else {
            return Ok(None);
        };
        let before = self.session.ledger.gained();
        let put = self.substitute(item, obtained);
        self.session.ledger.restore_gained(before);
        let put = put?;
        self.session.ledger.grow(put.0.growth())?;
        Ok(Some(put))
    }

    fn substitute(
        &mut self,
        item: &PlanItem<'_>,
        obtained: ContentSource,
    ) -> Result<Put, PassStop> {
        if let Some(note) = item.body.note() {
            return Ok(self.exactly(item, note, &obtained)?);
        }
        match item.body.facts.insertion {
            Insertion::Note(convert) => return self.noted(item, convert, obtained),
            Insertion::Attachment => return Ok(self.attached(item, obtained)?),
            Insertion::Body(refill) => return Ok(self.refilled(item, refill, &obtained)?),
            Insertion::Part => {}
        }
        let mut told = self.told(item, &obtained);
        // The inserted content can itself be a reference, such as a shortcut file (`.url`). The next pass follows it.
        let is_reference = is_reference_type(&obtained.essence);
        told.waits =
            self.session.may_refer(&obtained) || is_reference && !is_composite(&obtained.essence);
        let part = self.tree.part(item.body.part);
        // Checks the limits before encoding, which counts as work and which a hostile mail can cause many times.
        let octets = obtained.content.len();
        // Text, messages and multiparts may be written in an encoding other than base64. All other content is base64, so
        // its length in the message is already known.
        let is_readable = obtained.essence.starts_with("text/") || is_composite(&obtained.essence);
        let is_exact = item.body.facts.shape == ReferenceShape::ExternalBody && !is_readable;
        let least = obtained.content.least_body(is_exact) as i64 - part.span.len() as i64;
        self.session.ledger.would_fit(least)?;
        self.session.ledger.work(octets)?;
        let mut substitute = Substitute::prepare(self.tree, &item.body, obtained)?;
        let mut body = None;
        if substitute.is_composite() {
            let (whole, inside) = self.composite(item, &mut substitute)?;
            told.add(inside);
            body = Some(whole);
        }
        Ok((PassChange::Edits(substitute.finish(body)?), told))
    }

    fn put(&mut self, item: &PlanItem<'_>, change: PassChange, told: Pass) -> Result<(), Refusal> {
        let growth = change.growth();
        match change {
            PassChange::Filled(part, new) => {
                let start = self.progress.pass.report.rows.len();
                let rows = start..start + told.report.rows.len();
                self.progress
                    .filled
                    .entry(part)
                    .or_default()
                    .push((new, rows));
            }
            PassChange::Edits(group) => {
                if let Err(refusal) = self.progress.edits.change(group, []) {
                    self.session.ledger.lose(growth);
                    return Err(refusal);
                }
                if item.body.note().is_none() {
                    self.progress.lengths = Lengths::Corrected;
                }
            }
        }
        self.progress.pass.add(told);
        Ok(())
    }

    fn remove(&mut self, item: &PlanItem<'_>, winner: &PlanItem<'_>) {
        let removal = removal(self.tree, item.body.part, self.progress.removed_to);
        match self.progress.edits.change(vec![Edit::remove(removal)], []) {
            Ok(()) => {
                self.progress.removed_to = removal.end;
                self.progress.lengths = Lengths::Corrected;
                self.tell_removal(item, winner);
            }
            Err(refusal) => {
                let mut row = self.row(item);
                row.tell_refusal(refusal);
                self.progress.pass.report.rows.push(row);
            }
        }
    }
}
