//! Creates the rows of the report: one for each reference, and one for each part that was not parsed.

use std::collections::HashSet;

use super::{Pass, PendingReference};
use crate::engine::content_source::ContentSource;
use crate::engine::external_body::Referent;
use crate::engine::plan::{PlanItem, PlanStep};
use crate::engine::protection::opaque_parts;
use crate::engine::report::{Kind, Outcome, Reason, Refusal, Retry, Row};
use crate::mime::PartId;

impl PendingReference<'_, '_, '_> {
    pub(super) fn told(&self, item: &PlanItem<'_>, obtained: &ContentSource) -> Pass {
        let mut told = Pass::default();
        let mut row = self.row(item);
        obtained.describe(&mut row);
        let notes = obtained
            .notes
            .iter()
            .map(|note| format!("part {}: {note}", row.part));
        told.report.notes.extend(notes);
        told.report.rows.push(row);
        told
    }

    pub(super) fn row(&self, item: &PlanItem<'_>) -> Row {
        Row {
            part: self.place.number(&item.number),
            ..item.row(self.session.context.name())
        }
    }

    pub(super) fn leave(&mut self, item: &PlanItem<'_>, refusal: Refusal) {
        let mut row = self.row(item);
        // The reference points to a part by its Content-ID. If this part is inserted in place of another reference,
        // another pass can resolve the reference.
        self.progress.pass.waits |= matches!(item.body.target, Ok(Referent::ContentId { .. }))
            && !refusal.reason.is_bound();
        if refusal.retry == Retry::Later {
            let detail = row.waiting_for(&refusal.detail);
            self.progress.pass.temporary.get_or_insert(detail);
        }
        if let PlanStep::Retrieve(need) = &item.step
            && let Some(Ok(Some(answer))) = self.session.retrieved.get(need)
        {
            answer.describe_source(&mut row);
        }
        row.tell_refusal(refusal);
        item.tell_claim(&mut row);
        self.progress.pass.report.rows.push(row);
    }

    /// Adds the row of a reference whose content this run (a dry run or a probe) did not retrieve.
    pub(super) fn await_content(&mut self, item: &PlanItem<'_>) {
        let mut row = self.row(item);
        row.outcome = Outcome::WouldFetch;
        match &item.step {
            PlanStep::Retrieve(need) => {
                if let Some(announced) = self.session.answers.announcement(need) {
                    announced.describe(&mut row);
                    item.tell_claim(&mut row);
                }
            }
            PlanStep::Copy(_) => {
                row.detail =
                    "the content of the part to which this reference points would be retrieved"
                        .into();
            }
            PlanStep::Decode | PlanStep::Read { .. } | PlanStep::Leave(_) => {}
        }
        self.progress.pass.report.rows.push(row);
    }

    pub(super) fn tell_removal(&mut self, item: &PlanItem<'_>, winner: &PlanItem<'_>) {
        let mut row = self.row(item);
        let number = self.place.number(&winner.number);
        row.outcome = Outcome::Rewritten;
        row.reason = Some(Reason::RivalExpanded);
        row.detail = if self.session.mode.writes() {
            format!(
                "this part was removed, because part {number} offered the same content and was used"
            )
        } else {
            format!("this part would be removed, because part {number} offers the same content")
        }
        .into();
        self.progress.pass.report.rows.push(row);
    }

    /// Adds rows for parts that were not parsed because of a limit. They can contain references, so they count as left
    /// unchanged.
    pub(super) fn tell_unseen(&mut self) {
        let references = self.progress.plan.references.iter();
        let known: HashSet<PartId> = references.map(|item| item.body.part).collect();
        for (part, span, refusal) in opaque_parts(self.tree) {
            let octets = span.of(self.tree.original);
            if known.contains(&part) || !self.session.settings.prefilter.external_bodies(octets) {
                continue;
            }
            let number = self.place.number(&self.tree.number(part));
            let mut row = Row::new(
                self.session.context.name(),
                number,
                Kind::ExternalBody,
                Outcome::Left,
            );
            row.bytes = Some(span.len() as u64);
            row.tell_refusal(refusal);
            self.progress.pass.report.rows.push(row);
        }
    }
}
