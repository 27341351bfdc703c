//! Unwraps the links of a message (`--unwrap`): a URL of a mail filter or picture proxy becomes the original URL that
//! it contains. No request is sent.

use super::embed::EmbedPass;
use super::part_edits::PartEdits;
use super::pass::Pass;
use super::session::Session;
use crate::edit::{Edit, Edits};
use crate::engine::plan::documents::{Documents, UnwrappedLinks};
use crate::engine::plan::shown_url;
use crate::engine::report::{Kind, Outcome, Reason, Refusal, Row};
use crate::mime::MessageTree;

/// Unwraps the links of all documents and texts, in their order. A document or text is either changed as a whole, or stays
/// unchanged and gets a row with the reason.
pub(super) fn unwrapped(
    session: &mut Session<'_>,
    tree: &MessageTree<'_>,
    outcomes: &mut Pass,
    embedding: &EmbedPass,
) -> Edits {
    let mut documents = Documents::new(tree, session.policy());
    let mut edits = PartEdits::new(tree);
    for part in tree.ids() {
        let Some(found) = documents.unwrapped(part, &mut session.ledger).transpose() else {
            continue;
        };
        let number = embedding.number_before(&tree.number(part)).to_owned();
        let row = || {
            let name = session.context.name();
            let mut row = Row::new(name, number.clone(), Kind::Wrapped, Outcome::Left);
            row.media_type = Some(tree.part(part).essence.clone());
            row
        };
        let made = found.and_then(|mut found| {
            let group = std::mem::take(&mut found.edits);
            let growth: i64 = group.iter().map(Edit::growth).sum();
            if !group.is_empty() {
                edits
                    .change(group, [])
                    .inspect_err(|_| session.ledger.lose(growth))?;
            }
            Ok(found)
        });
        let rows = &mut outcomes.report.rows;
        match made {
            Ok(found) => tell(&found, row, rows),
            Err(refusal) => {
                let mut row = row();
                row.tell_refusal(refusal);
                rows.push(row);
            }
        }
    }
    edits.edits
}

fn tell(found: &UnwrappedLinks, row: impl Fn() -> Row, rows: &mut Vec<Row>) {
    let first = rows.len();
    for (wrapped, unwrapped, count) in &found.links {
        let mut row = row();
        row.outcome = Outcome::Rewritten;
        row.url = Some(shown_url(wrapped));
        let (service, original) = (unwrapped.service, shown_url(&unwrapped.original));
        row.detail =
            format!("the link is no longer wrapped by {service}; the link is now {original}")
                .into();
        if *count > 1 {
            row.remark(&format!("the link occurs {count} times"));
        }
        rows.push(row);
    }
    if found.further > 0 {
        let mut row = row();
        row.outcome = Outcome::Rewritten;
        row.detail = format!("{} further links are no longer wrapped", found.further).into();
        rows.push(row);
    }
    if let Some(row) = rows.get_mut(first)
        && let Some(digest) = found.digest
    {
        row.remark(digest);
    }
    if found.cut > 0 {
        let mut row = row();
        let detail = format!(
            "{} wrapped links end at the end of a line and may continue on the next line, so the original URLs are not certain",
            found.cut
        );
        row.tell_refusal(Refusal::lasting(Reason::BadUrl, detail));
        rows.push(row);
    }
}
