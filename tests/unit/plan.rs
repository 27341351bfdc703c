//! `inspect` prints the plan: each row of a forecast is the row of an item in the plan, unless available content shows
//! that it cannot be inserted.

use super::common::mail::{self, crlf, expander};
use crate::engine::ledger::Ledger;
use crate::engine::plan::Plan;
use crate::expand::Expander;
use crate::mime::{self, ScanLimits};
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

/// Returns the rows of the plan of a message.
fn planned(message: &[u8]) -> Vec<Row> {
    let policy = policy();
    let tree = mime::scan(message, &ScanLimits::default());
    let room = Ledger::new(&policy.limits, message.len()).room_for_urls();
    let plan = Plan::of_references(&tree, &policy, &policy.reading(), None, room);
    let rows = plan.references.iter().map(|item| would(item.row("1")));
    by_part(rows.collect())
}

/// Returns the rows of the links of a message after a run.
fn changed(expander: &Expander, message: &[u8]) -> Vec<Row> {
    let expansion = expander.expand(message, "1").expect("nothing is put off");
    let rows = expansion.report.rows.into_iter();
    by_part(
        rows.filter(|row| row.kind == Kind::Link)
            .map(would)
            .collect(),
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
            let references = planned(&message);
            let said = forecast(&expander, &message, |kind| kind != Kind::Link);
            let is_certain = |row: &&Row| row.outcome != Outcome::WouldExpand;
            for row in references.iter().filter(is_certain) {
                let of_part: Vec<_> = said.iter().filter(|other| other.part == row.part).collect();
                // If a rival succeeds, the other rivals are removed.
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
            let links = changed(&expander, &message);
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
