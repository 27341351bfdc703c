//! Adds the `X-Embody` field of `--mark`, and searches the header of a message for fields such as DKIM-Signature.

use crate::edit::{Edit, Edits, Group};
use crate::engine::report::Report;
use crate::mime::{self, Header, Limit, PartId, PartKind, ScanLimits};
use crate::span::Newline;

/// The header field that [`Mark::Field`] adds.
pub const MARK_FIELD: &str = "X-Embody";

/// Whether embody adds a field to a message that says that it was processed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mark {
    /// No field is added.
    #[default]
    Off,
    /// The field `X-Embody: expanded=2 left=1 links=14` is added to messages with references, and other fields of this name
    /// are removed. If a run changes nothing else, it keeps an existing mark of this form. Anyone can write such a field, so
    /// it is not evidence.
    Field,
}

/// Returns true if the header contains a field. Only the first `most` bytes of the header are read.
pub(super) fn has_field(message: &[u8], name: &str, most: usize) -> bool {
    let fields = Header::of_message(message, most).fields;
    fields.first(message, name).is_some()
}

/// Returns the edits together with the edits for the mark. All other fields of this name are removed, because the mark must
/// describe this run. If the run changes nothing else, one existing mark of embody's form stays, because it may describe an
/// earlier run.
pub(super) fn marked(message: &[u8], edits: Edits, report: &Report, limits: &ScanLimits) -> Edits {
    let header_of = |front: &[u8]| Header::of_message(front, limits.header);
    let output = edits
        .splice(message)
        .front(|front| header_of(front).body_start());
    let tree = mime::scan(&output, limits);
    let root = tree.root();
    // If the end of the header is unknown, a new field could become part of another field, so nothing is added or removed.
    if root.content == PartKind::Opaque(Limit::HeaderTooLarge) {
        return edits;
    }
    let mut stays = false;
    let mut group = Group::new();
    for field in tree.fields(PartId::ROOT).iter(&output) {
        if !field.is(&output, MARK_FIELD) {
            continue;
        }
        if edits.is_empty() && !stays && is_ours(field.value.of(&output)) {
            stays = true;
        } else {
            group.push(Edit::remove(field.whole));
        }
    }
    let ends = root.has_stray_lines() || root.header.of(&output).ends_with(b"\n");
    if !stays && !report.rows.is_empty() && ends {
        let (expanded, left, links) = (report.expanded(), report.left(), report.links());
        let line = format!("{MARK_FIELD}: expanded={expanded} left={left} links={links}");
        let field = [line.as_bytes(), Newline::of_first_line(message).bytes()].concat();
        match group.first_mut() {
            Some(first) => first.replacement = field.into(),
            None => group.push(Edit::insert(root.agreed_end, field)),
        }
    }
    match Edits::of(group) {
        Ok(fields) => edits.then(message.len(), fields),
        // Edits of different fields cannot overlap. If they did, a message without the mark would still be correct.
        Err(_) => edits,
    }
}

fn is_ours(value: &[u8]) -> bool {
    let mut words = value.trim_ascii().split(|&byte| byte == b' ');
    let is_count = |name: &str| {
        let count = words
            .next()
            .and_then(|word| word.strip_prefix(name.as_bytes()));
        count.is_some_and(|count| !count.is_empty() && count.iter().all(u8::is_ascii_digit))
    };
    ["expanded=", "left=", "links="].into_iter().all(is_count) && words.next().is_none()
}
