//! `embody inspect` for a single message: lists its parts with their references.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::say::{self, harmless};
use super::wording;
use crate::engine::forms::TextLink;
use crate::engine::plan::Bases;
use crate::engine::policy::Policy;
use crate::engine::protection::opaque_details;
use crate::engine::report::{Outcome, Report, Row};
use crate::link::url::masked;
use crate::mime::{MessageTree, PartId, PartKind};

/// Returns the parts of a message with their references. What is missing is in the survey, which is printed after the
/// parts.
pub(super) fn outline(
    tree: &MessageTree<'_>,
    report: &Report,
    policy: &Policy,
    text_links: &[(PartId, TextLink)],
) -> String {
    let mut bases = Bases::default();
    let mut text = String::new();
    // Maps each part to its rows. A message can have thousands of parts and rows, so searching all rows for each part
    // would be too slow.
    let mut rows: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in &report.rows {
        rows.entry(&row.part).or_default().push(row);
    }
    for id in tree.ids() {
        let part = tree.part(id);
        let indent = "  ".repeat(part.depth);
        let number = tree.number(id);
        let label = match (number.as_str(), id) {
            ("", PartId::ROOT) => "message",
            ("", _) => "-",
            (number, _) => number,
        };
        let size = match &part.content {
            PartKind::Leaf | PartKind::Opaque(_) => {
                let encoding = tree.encoding_word(id);
                let bytes = wording::counted(part.body.len() as u64, "byte");
                format!("{}, {bytes}", harmless(&encoding))
            }
            PartKind::Message => "a message".to_owned(),
            PartKind::Multipart(_) => wording::counted(part.children.len() as u64, "part"),
        };
        let essence = harmless(&part.essence);
        let _ = writeln!(text, "{indent}{label}  {essence}  ({size})");
        if let Some(base) = bases.of(tree, id) {
            let (url, origin) = (masked(&base.url), &base.origin);
            let _ = writeln!(text, "{indent}    base {} ({origin})", harmless(&url));
        }
        let is_multipart = matches!(part.content, PartKind::Multipart(_) | PartKind::Message);
        let rows = rows.get(number.as_str()).filter(|_| !is_multipart);
        for row in rows.into_iter().flatten() {
            let full = say::line(row, policy);
            let line = full
                .strip_prefix(&format!("part {number}: "))
                .unwrap_or(&full);
            let kind = row.kind.as_str();
            let declared = row
                .media_type
                .as_ref()
                .map(|named| format!(" of {}", harmless(named)))
                .unwrap_or_default();
            let _ = writeln!(text, "{indent}    {kind}{declared}\n{indent}    {line}");
        }
        for (_, link) in text_links.iter().filter(|(part, _)| *part == id) {
            let _ = writeln!(text, "{indent}    {}", say::text_link(link));
        }
    }
    for detail in opaque_details(tree) {
        let _ = writeln!(text, "{}", wording::detail(&detail));
    }
    text.push_str(&summary(report));
    text
}

fn summary(report: &Report) -> String {
    let is_document = |row: &&Row| row.kind.is_of_links();
    let (documents, references): (Vec<&Row>, Vec<&Row>) = report.rows.iter().partition(is_document);
    let mut text = String::new();
    for (rows, name, done) in [
        (references, "reference", "followed"),
        (documents, "document", "rewritten"),
    ] {
        let all = rows.len();
        let left = rows.iter().filter(|it| it.outcome == Outcome::Left).count();
        if all > 0 {
            let would = all - left;
            let all = wording::counted(all as u64, name);
            let _ = writeln!(
                text,
                "{all}: {would} would be {done}, {left} would stay unchanged"
            );
        }
    }
    text
}
