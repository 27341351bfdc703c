//! A message as `embody inspect` shows it: its parts, and what would become of each reference.

use std::collections::HashMap;

use super::say::{self, harmless};
use super::wording;
use crate::link::url::masked;
use crate::mime::{Content, PartId, Tree};
use crate::plan::{Bases, opaque_details};
use crate::policy::Policy;
use crate::report::Kind as RowKind;
use crate::report::{Outcome, Report, Row};

pub(super) fn outline(tree: &Tree<'_>, report: &Report, policy: &Policy) -> String {
    let mut bases = Bases::default();
    let mut text = String::new();
    // There may be as many rows as parts.
    let mut rows: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in &report.rows {
        rows.entry(&row.part).or_default().push(row);
    }
    for id in tree.ids() {
        let part = tree.part(id);
        let indent = "  ".repeat(part.depth);
        let number = tree.number(id);
        let label = match id {
            PartId::ROOT if number.is_empty() => "message".to_owned(),
            _ if number.is_empty() => "-".to_owned(),
            _ => number.clone(),
        };
        let size = match &part.content {
            Content::Leaf | Content::Opaque(_) => {
                format!("{}, {} bytes", part.encoding.as_str(), part.body.len())
            }
            Content::Message => "a message".to_owned(),
            Content::Multipart(_) => format!("{} parts", part.children.len()),
        };
        text.push_str(&format!(
            "{indent}{label}  {}  ({size})\n",
            harmless(&part.essence)
        ));
        if let Some(base) = bases.of(tree, id) {
            text.push_str(&format!(
                "{indent}    base {} ({})\n",
                harmless(&masked(&base.url)),
                base.origin
            ));
        }
        let is_multipart = matches!(part.content, Content::Multipart(_) | Content::Message);
        let rows = rows.get(number.as_str()).filter(|_| !is_multipart);
        for row in rows.into_iter().flatten() {
            let mut line = say::line(row, policy);
            if let Some(behind) = line.strip_prefix(&format!("part {number}: ")) {
                line = behind.to_owned();
            }
            let declared = row
                .media_type
                .as_ref()
                .map_or_else(String::new, |named| format!(" of {}", harmless(named)));
            text.push_str(&format!(
                "{indent}    {}{declared}\n{indent}    {line}\n",
                row.kind.as_str()
            ));
        }
    }
    for detail in opaque_details(tree) {
        text.push_str(&format!("{}\n", wording::detail(&detail)));
    }
    text.push_str(&summary(report));
    text
}

fn summary(report: &Report) -> String {
    if report.rows.is_empty() {
        return "nothing to do\n".to_owned();
    }
    let count = |is_document: bool, is_left: bool| {
        let rows = report.rows.iter().filter(|row| {
            (row.kind == RowKind::Link) == is_document && (row.outcome == Outcome::Left) == is_left
        });
        rows.count()
    };
    let mut text = String::new();
    for (is_document, name, done) in [
        (false, "references", "followed"),
        (true, "documents", "rewritten"),
    ] {
        let (would, left) = (count(is_document, false), count(is_document, true));
        if would + left > 0 {
            let all = would + left;
            text.push_str(&format!(
                "{all} {name}: {would} would be {done}, {left} left\n"
            ));
        }
    }
    text
}
