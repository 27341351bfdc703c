//! Processes one message: first its references, then the links of its documents, then the field `X-Embody` that marks a
//! changed message.

use super::embed::{self, EmbedPass};
use super::mark::{Mark, has_field, marked};
use super::part_edits::PartEdits;
use super::pass::{Pass, PassPosition, pass};
use super::session::Session;
#[cfg(all(feature = "file", feature = "mailbox"))]
use super::unflatten::unflatten;
use super::unwrap::unwrapped;
use bytes::Bytes;

use crate::edit::{Edit, Edits};
use crate::engine::forms::{OpenResult, is_kind};
use crate::engine::lengths::{Lengths, corrected};
use crate::engine::plan::documents::Documents;
use crate::engine::policy::Links;
use crate::engine::report::{Detail, Kind, Outcome, Reason, Row};
use crate::mime::{self, MessageTree};

/// Processes the message. `parts` is the parsed message, if the caller already has it.
pub(super) fn run(
    session: &mut Session<'_>,
    message: &[u8],
    parts: Option<&MessageTree<'_>>,
) -> Pass {
    let mut outcomes = references(session, message, parts);
    let mut embedding = EmbedPass::default();
    if session.policy().embed.is_on() && !session.is_stopped() {
        let none = (Kind::Embed, "nothing was embedded");
        documents(
            session,
            message,
            parts,
            &mut outcomes,
            none,
            |session, tree, outcomes| embed::embed(session, tree, outcomes, &mut embedding),
        );
    }
    if session.is_stopped() {
        return outcomes;
    }
    // The edits contain all content that was needed, so the retrieved content is dropped.
    session.retrieved.clear();
    session.answers.clear();
    if session.policy().links == Links::Resolve {
        let none = (Kind::Link, "no link was resolved");
        documents(
            session,
            message,
            parts,
            &mut outcomes,
            none,
            |session, tree, outcomes| resolved(session, tree, outcomes, &embedding),
        );
    }
    if session.policy().unwrap {
        let none = (Kind::Wrapped, "no link was unwrapped");
        documents(
            session,
            message,
            parts,
            &mut outcomes,
            none,
            |session, tree, outcomes| unwrapped(session, tree, outcomes, &embedding),
        );
    }
    let report = &mut outcomes.report;
    // Part numbers are sorted as numbers, so that `1.9` comes before `1.10`.
    let step = |step: &str| step.parse::<u64>().unwrap_or(0);
    let number = |row: &Row| row.part.split('.').map(step).collect::<Vec<_>>();
    report.rows.sort_by_cached_key(number);
    let mut rows = report.rows.iter();
    // Reaching the deadline is a temporary failure, because the machine may be faster at another time.
    if let Some(late) = rows.find(|row| row.reason == Some(Reason::Deadline)) {
        let waiting = || late.waiting_for(&late.detail);
        outcomes.temporary.get_or_insert_with(waiting);
    }
    let is_bound = |row: &Row| row.reason.is_some_and(Reason::is_bound);
    if !outcomes.edits.is_empty() && report.rows.iter().any(is_bound) {
        let note = "a limit was reached; run embody again on the result to replace more references";
        report.notes.push(note.to_owned());
    }
    if !outcomes.edits.is_empty() && has_field(message, "DKIM-Signature", 1 << 20) {
        let note = "the message has a DKIM-Signature, which is no longer valid after the change";
        let mut rows = report.rows.iter_mut();
        let is_change = |row: &&mut Row| row.outcome != Outcome::Left;
        if let Some(row) = rows.find(is_change) {
            row.remark(note);
        }
        report.notes.push(note.to_owned());
    }
    if session.settings.mark == Mark::Field {
        let limits = session.policy().limits.scan();
        outcomes.edits = marked(message, outcomes.edits, &outcomes.report, &limits);
    }
    let gained: i64 = outcomes.edits.iter().map(Edit::growth).sum();
    outcomes.report.gained = gained.saturating_add_unsigned(embedding.unresolved);
    outcomes
}

/// Follows references in several passes over the message. Content that one pass inserted may contain the part that another
/// reference names by its Content-ID.
fn references(session: &mut Session<'_>, message: &[u8], parts: Option<&MessageTree<'_>>) -> Pass {
    #[cfg(all(feature = "file", feature = "mailbox"))]
    let mut outcomes = unflatten(session, message);
    #[cfg(not(all(feature = "file", feature = "mailbox")))]
    let mut outcomes = Pass::default();
    if session.is_stopped() {
        return outcomes;
    }
    let (mut made, edits) = std::mem::take(&mut outcomes.edits).put_together(message);
    outcomes.edits = edits;
    if !session.kinds.references {
        return outcomes;
    }
    made = open(session, message, made, &mut outcomes);
    for level in 0..=session.policy().limits.depth {
        let current = made.as_deref().unwrap_or(message);
        // Each pass counts as reading the message twice. The first pass is exempt from the work limit, because
        // otherwise nothing could be processed.
        if level == 0 {
            session.ledger.spend(current.len() * 2);
        } else if session.ledger.work(current.len() * 2).is_err() {
            break;
        }
        let place = PassPosition::message(session.policy().limits.scan(), level);
        let is_as_it_arrived = level == 0 && made.is_none();
        let parts = parts.filter(|_| is_as_it_arrived);
        // The only possible error is missing content, because cycles are refused inside the pass. The round then ends
        // below, so the empty pass is never used.
        let pass: Pass = pass(session, current, &place, parts).unwrap_or_default();
        if session.is_stopped() {
            return outcomes;
        }
        // The next pass examines unchanged references again, so their old rows are dropped.
        let report = &mut outcomes.report;
        let is_settled = |row: &Row| row.outcome != Outcome::Left || is_kind(row.kind);
        report.rows.retain(is_settled);
        report.rows.extend(pass.report.rows);
        report.notes.extend(pass.report.notes);
        outcomes.temporary = outcomes.temporary.take().or(pass.temporary);
        session.ledger.keep();
        if pass.edits.is_empty() {
            break;
        }
        // The message shares memory with the edits that created it. Dropping it before these edits are replaced frees
        // the memory at once.
        drop(made.take());
        outcomes.edits = outcomes.edits.then(message.len(), pass.edits);
        if !pass.waits {
            break;
        }
        (made, outcomes.edits) = std::mem::take(&mut outcomes.edits).put_together(message);
    }
    outcomes
}

/// Opens parts such as winmail.dat in the message as it is after earlier edits: `made`, or `message` if there are none.
/// Returns the message after all edits, or `None` if it is unchanged.
fn open(
    session: &mut Session<'_>,
    message: &[u8],
    made: Option<Bytes>,
    outcomes: &mut Pass,
) -> Option<Bytes> {
    if session.settings.detached_only {
        return made;
    }
    let (policy, name) = (session.policy(), session.context.name());
    let opened = OpenResult {
        made,
        edits: std::mem::take(&mut outcomes.edits),
        rows: Vec::new(),
    }
    .further(message, policy, &mut session.ledger, name);
    outcomes.edits = opened.edits;
    outcomes.report.rows.extend(opened.rows);
    opened.made
}

/// Changes the documents of the message after the edits in `outcomes`. `parts` is the parsed original message, if the
/// caller has it: without edits, it need not be parsed again.
fn documents(
    session: &mut Session<'_>,
    message: &[u8],
    parts: Option<&MessageTree<'_>>,
    outcomes: &mut Pass,
    (kind, not_done): (Kind, &str),
    change: impl FnOnce(&mut Session<'_>, &MessageTree<'_>, &mut Pass) -> Edits,
) {
    let may_hold = if outcomes.edits.is_empty() {
        session.kinds.documents
    } else {
        let output = outcomes.edits.splice(message);
        // The output is a list of chunks. No header field is split between chunks, so each chunk can be searched for
        // media types alone.
        let mut chunks = output.chunks().iter();
        chunks.any(|chunk| session.settings.prefilter.documents(chunk))
    };
    if !may_hold {
        return;
    }
    // From here on, the edits are slices of the output and need no memory of their own.
    let (made, edits) = std::mem::take(&mut outcomes.edits).put_together(message);
    let output = made.as_deref().unwrap_or(message);
    outcomes.edits = edits;
    if let Err(refusal) = session.ledger.work(output.len()) {
        let mut row = Row::new(session.context.name(), String::new(), kind, Outcome::Left);
        row.reason = Some(refusal.reason);
        row.detail = Detail::from(format!("{not_done}: ")).then(refusal.detail);
        outcomes.report.rows.push(row);
        return;
    }
    let limits = session.policy().limits.scan();
    let parsed;
    let tree = match parts.filter(|_| made.is_none()) {
        Some(parts) => parts,
        None => {
            parsed = mime::scan(output, &limits);
            &parsed
        }
    };
    let changes = change(session, tree, outcomes);
    let (edits, _) = corrected(tree, changes, Lengths::Corrected, &limits);
    outcomes.edits = std::mem::take(&mut outcomes.edits).then(message.len(), edits);
}

/// Makes relative links absolute, in the order of the documents. A document is either changed as a whole, or stays unchanged
/// and gets a row with the reason.
fn resolved(
    session: &mut Session<'_>,
    tree: &MessageTree<'_>,
    outcomes: &mut Pass,
    embedding: &EmbedPass,
) -> Edits {
    let given = session.guide.map(|guide| guide.given_ids(tree));
    let mut documents =
        Documents::new(tree, session.policy()).giving_ids(given.unwrap_or_default());
    let mut edits = PartEdits::new(tree);
    for part in tree.ids() {
        let Some(decision) = documents.new_links(part, &mut session.ledger).transpose() else {
            continue;
        };
        let made = decision.and_then(|mut new| {
            let group = std::mem::take(&mut new.edits);
            let growth: i64 = group.iter().map(Edit::growth).sum();
            let identities: Vec<_> = new
                .named
                .iter()
                .map(|named| (*named, documents.identity(*named).clone()))
                .filter(|(_, identity)| identity.is_made)
                .collect();
            let named = identities
                .iter()
                .map(|(part, identity)| (*part, identity.content_id.as_str()));
            edits
                .change(group, named)
                .inspect_err(|_| session.ledger.lose(growth))?;
            Ok(new)
        });
        let entity = tree.part(part);
        let number = embedding.number_before(&tree.number(part)).to_owned();
        let mut row = Row::new(session.context.name(), number, Kind::Link, Outcome::Left);
        row.media_type = Some(entity.essence.clone());
        row.bytes = Some(entity.body.len() as u64);
        match made {
            Ok(new) => new.tell(&mut row),
            Err(refusal) => row.tell_refusal(refusal),
        }
        outcomes.report.rows.push(row);
    }
    edits.edits
}
