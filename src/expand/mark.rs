//! The `X-Embody` field that `--mark` adds, and what the message's own header says of signatures.

use super::settings::MARK_FIELD;
use super::state::State;
use crate::edit::{Edit, Edits, Group};
use crate::mime::{self, Content, Header, Limit, PartId, ScanLimits};
use crate::report::{Kind, Report, Row};
use crate::span::Newline;

/// Whether the message is signed by its sender's domain (RFC 6376).
pub(super) fn has_dkim_signature(message: &[u8]) -> bool {
    let fields = Header::of_message(message, 1 << 20).fields;
    fields.first(message, "DKIM-Signature").is_some()
}

/// Whether the message's header has the field.
pub(super) fn has_mark(message: &[u8]) -> bool {
    let fields = Header::of_message(message, usize::MAX).fields;
    fields.first(message, MARK_FIELD).is_some()
}

/// The edits with the field added, if there is something to say, and those that were there removed: only
/// what this run did may stand there.
pub(super) fn marked(
    message: &[u8],
    edits: Edits,
    report: &Report<State>,
    limits: &ScanLimits,
) -> Edits {
    // The header is all that is looked at.
    let header_of = |front: &[u8]| Header::of_message(front, limits.header);
    let output = edits
        .splice(message)
        .front(|front| header_of(front).body_start());
    let tree = mime::scan(&output, limits);
    let root = tree.root();
    let fields = tree.fields(PartId::ROOT).iter(&output);
    let mut group: Group = fields
        .filter(|field| field.is(&output, MARK_FIELD))
        .map(|field| Edit::remove(field.whole))
        .collect();
    // Behind a header that was not read to its end, the field might stand within another.
    let is_cut = root.content == Content::Opaque(Limit::HeaderTooLarge);
    let ends = root.header.of(&output).ends_with(b"\n") && !is_cut;
    if !report.rows.is_empty() && ends {
        let count =
            |is: &dyn Fn(&Row<State>) -> bool| report.rows.iter().filter(|row| is(row)).count();
        let field = format!(
            "{MARK_FIELD}: expanded={} left={} links={}",
            count(&|row| row.outcome == State::Expanded),
            count(&|row| row.outcome == State::Left && row.kind != Kind::Link),
            report.links()
        );
        let field = [field.as_bytes(), Newline::of_first_line(message).bytes()].concat();
        match group.first_mut() {
            Some(first) => first.replacement = field.into(),
            None => group.push(Edit::insert(root.header.end, field)),
        }
    }
    // Different fields do not overlap.
    edits.then(message.len(), Edits::of(group).unwrap_or_default())
}
