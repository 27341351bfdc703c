//! The `X-Embody` field that `--mark` adds, and what the message's own header says of signatures.

use super::MARK_FIELD;
use crate::edit::{Edit, Edits, Spliced};
use crate::mime::{self, Content, Limit, PartId, ScanLimits};
use crate::report::Report;
use crate::span::{Newline, Span};

/// Whether the message is signed by its sender's domain (RFC 6376).
pub(super) fn has_dkim_signature(message: &[u8]) -> bool {
    let within = Span::new(0, message.len());
    let header = mime::Header::read(
        message,
        within,
        mime::header::Front::Message,
        1 << 20,
        |_| false,
    );
    mime::header::first(message, &header.fields, "DKIM-Signature").is_some()
}

/// Adds or renews the field. A message without references is not marked, and one that did not
/// change keeps the mark it has: running twice must change nothing more.
pub(super) fn add_mark<'m>(
    message: &'m [u8],
    output: Spliced<'m>,
    report: &Report,
    changed: bool,
    limits: &ScanLimits,
) -> Spliced<'m> {
    if report.rows.is_empty() {
        return output;
    }
    let bytes = output.into_bytes();
    let tree = mime::scan(&bytes, limits);
    let root = tree.root();
    let mark = tree.fields(PartId::ROOT).first(&bytes, MARK_FIELD);
    // Behind a header that was not read to its end, the field might stand within another.
    let is_cut = root.content == Content::Opaque(Limit::HeaderTooLarge);
    let ends = root.header.of(&bytes).ends_with(b"\n") && !is_cut;
    if (mark.is_some() && !changed) || !ends {
        return Spliced::from_bytes(bytes);
    }
    let field = format!(
        "{MARK_FIELD}: expanded={} left={} links={}",
        report.expanded(),
        report.left(),
        report.links()
    );
    let field = [field.as_bytes(), Newline::of_first_line(message).bytes()].concat();
    let edit = match mark {
        Some(mark) => Edit::replace(mark.whole, field),
        None => Edit::insert(root.header.end, field),
    };
    let mut edits = Edits::new();
    // One edit overlaps nothing.
    let _ = edits.add(vec![edit]);
    Spliced::edited(bytes, edits)
}
