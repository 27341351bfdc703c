//! What `inspect` says is the plan: every row of a forecast is that of an item, but where content that is at hand shows
//! that it cannot be put in.

use super::common::mail::{self, crlf, expander};
use crate::expand::Expander;
use crate::ledger::Ledger;
use crate::mime::{self, ScanLimits};
use crate::plan::Plan;
use embody::Policy;
use embody::fetch::NoFetch;
use embody::policy::Scheme;
use embody::report::{Kind, Outcome, Row};

fn policy() -> Policy {
    Policy::default().with_fetch([Scheme::Https, Scheme::Http])
}

fn would(row: Row) -> Row {
    Row {
        outcome: row.outcome.would(),
        ..row
    }
}

fn by_part(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| format!("{} {:?}", row.part, row.url));
    rows
}

/// The rows of the plans of a message, and whether anything in it would be put in.
fn planned(message: &[u8]) -> (Vec<Row>, Vec<Row>) {
    let policy = policy();
    let tree = mime::scan(message, &ScanLimits::default());
    let mut ledger = Ledger::new(&policy.limits, message.len());
    let references = Plan::of_references(message, &tree, &policy, None, ledger.room_for_urls());
    let links = Plan::of_links(message, &tree, &policy, &mut ledger);
    (
        by_part(
            references
                .references
                .iter()
                .map(|item| would(item.row("1")))
                .collect(),
        ),
        by_part(
            links
                .links
                .iter()
                .map(|links| would(links.row("1")))
                .collect(),
        ),
    )
}

fn forecast(expander: &Expander, message: &[u8], of: impl Fn(Kind) -> bool) -> Vec<Row> {
    let rows = expander.forecast(message, "1").rows;
    by_part(rows.into_iter().filter(|row| of(row.kind)).collect())
}

#[test]
fn a_forecast_has_the_rows_of_the_plan() {
    let expander = expander(policy(), NoFetch);
    let (mut certain, mut rewritten) = (0, 0);
    let samples = [
        mail::changed_samples(),
        mail::untouched_samples(),
        mail::mhtml_samples(),
    ];
    for sample in samples.into_iter().flatten() {
        for message in [sample.before.clone(), crlf(&sample.before)] {
            let (references, links) = planned(&message);
            let said = forecast(&expander, &message, |kind| kind != Kind::Link);
            let is_certain = |row: &&Row| row.outcome != Outcome::WouldExpand;
            for row in references.iter().filter(is_certain) {
                let of_part: Vec<_> = said.iter().filter(|other| other.part == row.part).collect();
                // Of rivals, one that comes in takes the others away.
                assert!(
                    of_part.contains(&row)
                        || of_part
                            .iter()
                            .all(|other| other.outcome == Outcome::WouldRewrite),
                    "{}: {row:#?}\n{of_part:#?}",
                    sample.name
                );
                certain += 1;
            }
            if references.iter().any(|row| !is_certain(&row)) {
                continue;
            }
            assert_eq!(
                forecast(&expander, &message, |kind| kind == Kind::Link),
                links,
                "{}",
                sample.name
            );
            rewritten += links
                .iter()
                .filter(|row| row.outcome == Outcome::WouldRewrite)
                .count();
        }
    }
    assert!(certain > 9 && rewritten > 9, "{certain} {rewritten}");
}
