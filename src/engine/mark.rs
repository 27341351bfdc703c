//! The `X-Embody` field that `--mark` adds, and what the message's own header says of signatures.

use crate::edit::{Edit, Edits, Group};
use crate::engine::report::Report;
use crate::mime::{self, Header, Limit, PartId, PartKind, ScanLimits};
use crate::span::Newline;

/// The header field that [`Mark::Field`] adds.
pub const MARK_FIELD: &str = "X-Embody";

/// Whether to say in the message that it was worked on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mark {
    /// Add nothing.
    #[default]
    Off,
    /// Add `X-Embody: expanded=2 left=1 links=14` to messages that hold references, and take away what else is called so.
    /// A run that changes nothing else leaves a mark of this form as it is, whoever wrote it: it is a note, no evidence.
    Field,
}

/// A header that is longer than `most` is not read.
pub(super) fn has_field(message: &[u8], name: &str, most: usize) -> bool {
    let fields = Header::of_message(message, most).fields;
    fields.first(message, name).is_some()
}

/// Of the fields that were there one stays at most: only what this run did may stand there. A run that changes nothing
/// else leaves one that has the form of ours, for it may tell of the run before.
pub(super) fn marked(message: &[u8], edits: Edits, report: &Report, limits: &ScanLimits) -> Edits {
    let header_of = |front: &[u8]| Header::of_message(front, limits.header);
    let output = edits
        .splice(message)
        .front(|front| header_of(front).body_start());
    let tree = mime::scan(&output, limits);
    let root = tree.root();
    // Behind a header that was not read to its end, it might stand in another field; what is not added takes none away.
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
        let field = format!("{MARK_FIELD}: expanded={expanded} left={left} links={links}");
        let field = [field.as_bytes(), Newline::of_first_line(message).bytes()].concat();
        match group.first_mut() {
            Some(first) => first.replacement = field.into(),
            None => group.push(Edit::insert(root.agreed_end, field)),
        }
    }
    match Edits::of(group) {
        Ok(fields) => edits.then(message.len(), fields),
        // Different fields do not overlap; the message is right without a mark.
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
