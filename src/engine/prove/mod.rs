//! Proves that embody turned one mail into another one: runs the engine on the old mail again, with the answers that the new
//! mail contains, and requires the bytes of the new mail (docs/compare.md).
//!
//! [`Engine::run`](super::Engine::run) is a pure function of the mail, the policy and the answers. So there is no need to judge
//! whether a difference looks like a change of embody: every byte of the new mail either follows from the old mail, or is
//! content that a run inserted in the place of a reference. Such content is not in the old mail, so nothing here shows that it
//! is right. [`Proof::unchecked`] counts it.
//!
//! Two mails are compared in their plain form (`same::plain`), and the boundaries that embody writes are numbered, because
//! a run keeps the boundaries of an earlier run. Everything else must be equal.

mod detached;
mod difference;
mod eudora;
mod made;
mod outcome;
mod respelled;
mod store_url;
mod target;
mod variant;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use self::detached::DetachNotes;
use self::difference::Difference;
use self::made::{InsertedPart, ResultParts};
pub use self::outcome::{Budget, Changes, Proof, Unproven};
use self::target::ProofTarget;
use self::variant::{Beside, Variant};
use super::context::Context;
use super::engine::Engine;
use super::guide::{Guide, LaterParts, StandIns, digest_of_part, not_in_mail};
use super::mode::Mode;
use super::needs::Answers;
use super::report::{Outcome, Row};
use crate::engine::forms::{is_kind, may_open};
use crate::mime::{self, MessageTree, PartKind};

/// Minimum size of an attachment that must be in the new mail before the engine is run at all, in bytes. A run over a large
/// mail takes time, and a large attachment is often the difference.
const LARGE: usize = 64 << 10;

/// Proves that embody turned the mail `old` into the mail `new`, in one or several runs with any options. `budget` limits the
/// work.
///
/// # Errors
/// Returns [`Unproven`] with the first difference if no run gives the bytes of `new`. Another version of embody may have written
/// `new`.
pub fn prove(old: &[u8], new: &[u8], budget: &mut Budget) -> Result<Proof, Unproven> {
    let mut target = ProofTarget::of(new);
    if target.is_identical(old) {
        return Ok(Proof::default());
    }
    let policy = Variant::default().policy();
    let tree = mime::scan(old, &policy.limits.scan());
    let guide = Guide::of(&tree, new, &policy);
    target.set_new(guide.parts.iter().map(|part| part.is_new));
    let mut prover = Prover {
        old,
        target: &target,
        budget,
        nearest: None,
    };
    if let Some(found) = prover.search(&tree, &guide) {
        return Ok(found.into_proof(old));
    }
    let unproven = prover.unproven(new);
    let Some(respelled) = respelled::respelled(&tree, new) else {
        return Err(unproven);
    };
    let guide = Guide::of(&tree, &respelled, &policy);
    let mut target = ProofTarget::of(&respelled);
    target.set_new(guide.parts.iter().map(|part| part.is_new));
    let mut prover = Prover {
        old,
        target: &target,
        budget,
        nearest: None,
    };
    let found = prover.search(&tree, &guide);
    found.map(|found| found.into_proof(old)).ok_or(unproven)
}

/// Maximum number of runs in a row that are tried.
const MOST_RUNS: usize = 4;

/// Successive runs, and the parts that later ones added.
struct RunRow {
    has_twins: bool,
    later: LaterParts,
    /// The result so far.
    done: ResultParts,
}

/// The last one of successive runs, which can have had other options.
struct LastRun {
    before: ResultParts,
    guide: Arc<Guide>,
    variants: Vec<Variant>,
}

/// Returns the parts that later runs than the next one added. Returns `None` if one run can have added all of them.
fn later_parts(guide: &Guide, has_twins: bool) -> Option<LaterParts> {
    let shared = || guide.has_shared_parts().then(LaterParts::default);
    guide.later_parts(has_twins).or_else(shared)
}

struct Prover<'p> {
    old: &'p [u8],
    target: &'p ProofTarget<'p>,
    budget: &'p mut Budget,
    /// The difference of the result that has the most bytes in common with the new mail.
    nearest: Option<Difference>,
}

impl Prover<'_> {
    fn search(&mut self, tree: &MessageTree<'_>, guide: &Arc<Guide>) -> Option<ResultParts> {
        let (old, target) = (self.old, self.target);
        let policy = Variant::default().policy();
        let difference = lost_attachment(tree, target)
            .or_else(|| store_url::foreign_url(tree, target.mail, &policy));
        if let Some(difference) = difference {
            self.nearest = Some(difference);
            return None;
        }
        let notes = DetachNotes::added(tree, target.mail, &policy);
        if !notes.is_empty() {
            for made in self.detached(old, &notes, target) {
                if target.is(&made.mail) {
                    return Some(made);
                }
            }
        }
        let start = Variant::first(tree, target.mail);
        let (first, rows) = self.run_with_rows(old, guide, &start)?;
        if self.see(&first, target) {
            return Some(first);
        }
        // A run that inserts content detaches nothing, so trying its other options first would use up the budget.
        if !notes.is_empty()
            && let Some(made) = self.detached_and_changed(tree, &notes, &first)
        {
            return Some(made);
        }
        // No single run adds parts in this order, so its options need not be tried.
        let has_later_run = guide.later_parts(false).is_some();
        if has_later_run && let Some(made) = self.later_runs(guide, target) {
            return Some(made);
        }
        let variants = start.others(tree, &rows);
        if let Some(made) = self.variants(old, guide, target, variants) {
            return Some(made);
        }
        if let Some(made) = self.two_runs(tree, &notes) {
            return Some(made);
        }
        if has_later_run {
            return None;
        }
        self.later_runs(guide, target)
    }

    /// Proves a mail that was changed and from which attachments were detached, in any order.
    fn detached_and_changed(
        &mut self,
        tree: &MessageTree<'_>,
        notes: &DetachNotes,
        first: &ResultParts,
    ) -> Option<ResultParts> {
        let target = self.target;
        let policy = Variant::default().policy();
        let limits = policy.limits.scan();
        for made in self.detached(self.old, notes, target) {
            let tree = mime::scan(&made.mail, &limits);
            let guide = Guide::of(&tree, target.mail, &policy);
            if let Some(next) = self.runs(&made.mail, &guide, target) {
                return Some(made.clone().then(next));
            }
        }
        // The detached attachments are put back with the content of the old mail, and of the result of the first run: it can
        // contain attachments that were encoded in another form before, such as uuencoded files. If a run retrieved the
        // content, only the store has it.
        let of_first = mime::scan(&first.mail, &limits);
        let stand_ins = notes.stand_ins(&[tree, &of_first], self.budget);
        // The result of the first run usually has the attachments of the old mail, too.
        for source in [&*first.mail, self.old] {
            let restored = self.restored(target.mail, source, &stand_ins)?;
            let whole = ProofTarget::of(&restored);
            let guide = Guide::standing(tree, &restored, &policy, &stand_ins);
            let made = self.runs(self.old, &guide, &whole);
            let Some(made) = made.or_else(|| self.later_runs(&guide, &whole)) else {
                continue;
            };
            for next in notes.detach(&made.mail, &stand_ins, self.budget) {
                if self.see(&next, target) {
                    return Some(made.then(next));
                }
            }
        }
        None
    }

    /// Proves a mail that two runs changed: the first one without any content.
    fn two_runs(&mut self, tree: &MessageTree<'_>, notes: &DetachNotes) -> Option<ResultParts> {
        let target = self.target;
        let policy = Variant::default().policy();
        let nothing = Guide::of(tree, self.old, &policy);
        let variant = Variant::first(tree, target.mail);
        let made = self.run(self.old, &nothing, &variant)?;
        if made.mail == self.old {
            return None;
        }
        let limits = policy.limits.scan();
        let changed = mime::scan(&made.mail, &limits);
        let next = Guide::of(&changed, target.mail, &policy);
        if let Some(next) = self.runs(&made.mail, &next, target) {
            return Some(made.clone().then(next));
        }
        if !notes.is_empty() {
            let notes = DetachNotes::added(&changed, target.mail, &policy);
            for next in self.detached(&made.mail, &notes, target) {
                if target.is(&next.mail) {
                    return Some(made.then(next));
                }
            }
        }
        None
    }

    /// Proves a mail to which several runs added pictures: a server was not available during the first one, for example.
    fn later_runs(&mut self, guide: &Arc<Guide>, target: &ProofTarget<'_>) -> Option<ResultParts> {
        let start = |has_twins| {
            Some(RunRow {
                has_twins,
                later: later_parts(guide, has_twins)?,
                done: ResultParts {
                    mail: self.old.to_vec(),
                    ..ResultParts::default()
                },
            })
        };
        let mut rows: Vec<RunRow> = [false, true].into_iter().filter_map(start).collect();
        rows.dedup_by(|one, other| one.later == other.later);
        let mut tried = Vec::new();
        // Two runs are more likely than three, so all ways to divide the parts among two runs are tried first.
        for _ in 1..MOST_RUNS {
            let mut longer = Vec::new();
            for row in rows {
                match self.continue_row(row, guide, target, &mut tried) {
                    Some(Ok(made)) => return Some(made),
                    Some(Err(row)) => longer.push(row),
                    None => {}
                }
            }
            rows = longer;
        }
        // Other options are rare, and trying them first would use up the budget.
        for last in tried {
            let (from, variants) = (&last.before.mail, last.variants);
            if let Some(next) = self.variants(from, &last.guide, target, variants) {
                return Some(last.before.then(next));
            }
        }
        None
    }

    /// Adds a run to successive runs. Returns its result together with a last run if this is the target, and the longer row
    /// otherwise. Adds the last run to `tried`.
    fn continue_row(
        &mut self,
        row: RunRow,
        guide: &Arc<Guide>,
        target: &ProofTarget<'_>,
        tried: &mut Vec<LastRun>,
    ) -> Option<Result<ResultParts, RunRow>> {
        let policy = Variant::default().policy();
        let limits = policy.limits.scan();
        let mut done = row.done;
        let from = std::mem::take(&mut done.mail);
        let tree = mime::scan(&from, &limits);
        let stand_ins = &guide.stand_ins;
        let earlier = Guide::earlier(&tree, target.mail, &policy, (row.later, stand_ins));
        let made = self.run(&from, &earlier, &Variant::first(&tree, target.mail))?;
        if made.mail == from {
            return None;
        }
        done = done.then(made);
        let tree = mime::scan(&done.mail, &limits);
        let next = Guide::standing(&tree, target.mail, &policy, stand_ins);
        let start = Variant::first(&tree, target.mail);
        let (made, rows) = self.run_with_rows(&done.mail, &next, &start)?;
        if self.see(&made, target) {
            return Some(Ok(done.then(made)));
        }
        tried.push(LastRun {
            variants: start.others(&tree, &rows),
            before: done.clone(),
            guide: Arc::clone(&next),
        });
        let later = later_parts(&next, row.has_twins)?;
        Some(Err(RunRow { later, done, ..row }))
    }

    /// Runs the engine with each combination of choices that may matter, until the result is `target`.
    fn runs(
        &mut self,
        from: &[u8],
        guide: &Arc<Guide>,
        target: &ProofTarget<'_>,
    ) -> Option<ResultParts> {
        let limits = Variant::default().policy().limits.scan();
        let tree = mime::scan(from, &limits);
        let start = Variant::first(&tree, target.mail);
        let (made, rows) = self.run_with_rows(from, guide, &start)?;
        if self.see(&made, target) {
            return Some(made);
        }
        self.variants(from, guide, target, start.others(&tree, &rows))
    }

    /// Runs the engine with each of these choices, until the result is `target`.
    fn variants(
        &mut self,
        from: &[u8],
        guide: &Arc<Guide>,
        target: &ProofTarget<'_>,
        variants: Vec<Variant>,
    ) -> Option<ResultParts> {
        for variant in variants {
            let made = self.run(from, guide, &variant)?;
            if self.see(&made, target) {
                return Some(made);
            }
        }
        None
    }

    /// Compares a result with the target, and keeps the difference if it is the nearest one.
    fn see(&mut self, made: &ResultParts, target: &ProofTarget<'_>) -> bool {
        match target.difference(&made.mail) {
            None => true,
            Some(difference) => {
                if std::ptr::eq(target, self.target) {
                    self.keep(difference);
                }
                false
            }
        }
    }

    fn keep(&mut self, difference: Difference) {
        let is_nearer = |nearest: &Difference| difference.at > nearest.at;
        if self.nearest.as_ref().is_none_or(is_nearer) {
            self.nearest = Some(difference);
        }
    }

    fn run(&mut self, from: &[u8], guide: &Arc<Guide>, variant: &Variant) -> Option<ResultParts> {
        let made = self.run_with_rows(from, guide, variant);
        made.map(|(made, _)| made)
    }

    /// Runs the engine once. Returns `None` if the budget is exhausted.
    fn run_with_rows(
        &mut self,
        from: &[u8],
        guide: &Arc<Guide>,
        variant: &Variant,
    ) -> Option<(ResultParts, Vec<Row>)> {
        self.budget.take(from.len() + self.target.mail.len())?;
        let engine = variant.engine();
        let mut answers = Answers::new();
        let context = Context::new("", SystemTime::UNIX_EPOCH);
        let context = match variant.beside {
            Beside::Nothing => context,
            Beside::Apple => context.beside(Some(eudora::of_apple())),
            Beside::Eudora => context.beside(Some(eudora::files(
                from,
                engine.policy(),
                guide,
                &mut answers,
            ))),
        };
        let outcome = round((&engine, guide), from, &context, answers);
        let rows = outcome.report.rows.clone();
        let mail = outcome.output().into_bytes().into_owned();
        let made = ResultParts {
            mail,
            changes: changes_of(&rows),
            inserted: inserted(&rows, guide),
        };
        Some((made, rows))
    }

    fn restored(&mut self, mail: &[u8], source: &[u8], stand_ins: &StandIns) -> Option<Vec<u8>> {
        let variant = Variant::restoring();
        let policy = variant.policy();
        let tree = mime::scan(mail, &policy.limits.scan());
        let guide = Guide::standing(&tree, source, &policy, stand_ins);
        Some(self.run(mail, &guide, &variant)?.mail)
    }

    fn detached(
        &mut self,
        mail: &[u8],
        notes: &DetachNotes,
        target: &ProofTarget<'_>,
    ) -> Vec<ResultParts> {
        let mut found = Vec::new();
        for made in notes.detach(mail, &StandIns::default(), self.budget) {
            if self.see(&made, target) {
                return vec![made];
            }
            found.push(made);
        }
        found
    }

    fn unproven(self, new: &[u8]) -> Unproven {
        let is_spent = self.budget.is_spent();
        let detail = match &self.nearest {
            Some(nearest) => nearest.words(),
            None => "the mail is different".to_owned(),
        };
        let traces = |mail: &[u8]| -> usize {
            let traces = [&b"=_embody_"[..], b"@embody", b"X-Embody"].into_iter();
            traces
                .map(|trace| memchr::memmem::find_iter(mail, trace).count())
                .sum()
        };
        Unproven {
            detail,
            is_spent,
            may_be_of_other_version: traces(new) > traces(self.old),
        }
    }
}

fn round<'m>(
    (engine, guide): (&Engine, &Guide),
    mail: &'m [u8],
    context: &Context,
    answers: Answers,
) -> super::EngineOutcome<'m> {
    let kinds = engine.kinds(mail, context);
    let parts = engine.parts(mail, kinds);
    let how = (Mode::Run, Some(not_in_mail()));
    let from = (parts.as_ref(), Some(guide));
    engine.guided_round(mail, kinds, context, answers, how, from)
}

fn changes_of(rows: &[Row]) -> Changes {
    use super::report::Kind;

    let mut changes = Changes::default();
    for row in rows {
        match (row.kind, row.outcome) {
            (Kind::Embed, Outcome::Expanded | Outcome::Blanked) => changes.embedded += 1,
            (Kind::Link, Outcome::Rewritten) => changes.resolved += 1,
            (Kind::Wrapped, Outcome::Rewritten) => changes.unwrapped += 1,
            (Kind::Attachment, Outcome::Restored) => changes.restored += 1,
            (Kind::Eudora, Outcome::Expanded | Outcome::Rewritten) => changes.unmarked = 1,
            (kind, Outcome::Expanded) if is_kind(kind) => changes.opened = 1,
            (_, Outcome::Expanded) => changes.filled += 1,
            _ => {}
        }
    }
    changes
}

/// Returns the inserted contents that do not come from the old mail, and of which the old mail has no length and no hash.
fn inserted(rows: &[Row], guide: &Guide) -> Vec<InsertedPart> {
    use super::report::Provenance;

    let is_inserted = |row: &&Row| {
        let is_from_outside = !matches!(row.from, Provenance::Message | Provenance::None);
        let is_in = matches!(row.outcome, Outcome::Expanded | Outcome::Blanked);
        is_in && is_from_outside && !row.proved
    };
    let mut inserted: Vec<InsertedPart> = Vec::new();
    for row in rows.iter().filter(is_inserted) {
        // A blank picture in place of a visible one has no digest, so its URL counts.
        let Some(sha256) = row.sha256.as_ref().or(row.url.as_ref()) else {
            continue;
        };
        if !inserted.iter().any(|known| known.sha256 == *sha256) {
            let content = guide.object(sha256);
            let encode = |md5: &[u8; 16]| {
                use base64::Engine as _;
                base64::engine::general_purpose::STANDARD.encode(md5)
            };
            let md5 =
                content.map(|content| [encode(content.md5()), encode(content.canonical_md5())]);
            inserted.push(InsertedPart {
                sha256: sha256.clone(),
                md5: md5.unwrap_or_else(|| [sha256.clone(), sha256.clone()]),
            });
        }
    }
    inserted
}

/// Returns the difference if a large attachment of the old mail is neither in the new one nor noted in it.
fn lost_attachment(tree: &MessageTree<'_>, target: &ProofTarget<'_>) -> Option<Difference> {
    let policy = Variant::default().policy();
    let large = tree.ids().filter(|&part| {
        let entity = tree.part(part);
        entity.content == PartKind::Leaf
            && entity.body.len() >= LARGE
            && !entity.essence.starts_with("text/")
            && !entity.essence.starts_with("message/")
            && !entity.essence.ends_with("xml")
            && !may_open(tree, part)
    });
    let new = mime::scan(target.mail, &policy.limits.scan());
    let mut known: Option<HashSet<u64>> = None;
    for part in large {
        let known =
            known.get_or_insert_with(|| new.ids().map(|part| digest_of_part(&new, part)).collect());
        if known.contains(&digest_of_part(tree, part)) {
            continue;
        }
        if !detached::is_noted(tree, part, target.mail) {
            return Some(Difference::of_part(tree, part));
        }
    }
    None
}
