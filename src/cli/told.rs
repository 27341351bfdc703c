//! Rows as the program tells them: of what was done, and of what would be.

use serde::Serialize;

use crate::report::{self, Forecast, Kind, Outcome, Reason};

/// What became of a reference, or would.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Told {
    Done(Outcome),
    Would(Forecast),
}

pub(super) type Row = report::Row<Told>;
pub(super) type Report = report::Report<Told>;

impl Told {
    /// The word used in reports.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Done(outcome) => outcome.as_str(),
            Self::Would(forecast) => forecast.as_str(),
        }
    }

    /// Whether nothing of it changes.
    pub(super) fn is_left(self) -> bool {
        matches!(
            self,
            Self::Done(Outcome::Left) | Self::Would(Forecast::Left)
        )
    }
}

/// A row of what was done. In a dry run what was left only because it retrieves nothing is what a run would fetch.
pub(super) fn done(mut row: report::Row) -> Row {
    let told = match row.reason {
        Some(Reason::NotRetrieved) => {
            row.reason = None;
            Told::Would(Forecast::WouldFetch)
        }
        Some(Reason::InArchive) => Told::Would(Forecast::WouldFetch),
        _ => Told::Done(row.outcome),
    };
    row.with(told)
}

/// A row of what was done in a run that writes nothing: it would be.
pub(super) fn rehearsed(row: report::Row) -> Row {
    let row = done(row);
    let told = match row.outcome {
        Told::Done(Outcome::Expanded) => Told::Would(Forecast::WouldExpand),
        Told::Done(Outcome::Rewritten) => Told::Would(Forecast::WouldRewrite),
        Told::Done(Outcome::Detached) => Told::Would(Forecast::WouldDetach),
        Told::Done(Outcome::Restored) => Told::Would(Forecast::WouldRestore),
        Told::Done(Outcome::Left) | Told::Would(_) => row.outcome,
    };
    row.with(told)
}

/// A row of what would be done.
pub(super) fn would(row: report::Row<Forecast>) -> Row {
    let told = Told::Would(row.outcome);
    row.with(told)
}

/// How many rows have this outcome.
pub(super) fn count(report: &Report, outcome: Outcome) -> usize {
    let rows = report.rows.iter();
    rows.filter(|row| row.outcome == Told::Done(outcome))
        .count()
}

/// What became of a row, with the reason.
pub(super) fn outcome(row: &Row) -> String {
    let outcome = row.outcome.as_str();
    match row.reason {
        Some(reason) => format!("{outcome}: {}", reason.as_str()),
        None => outcome.to_owned(),
    }
}

/// References that were left, documents not counted.
pub(super) fn left(report: &Report) -> usize {
    let rows = report.rows.iter();
    let is_left = |row: &&Row| row.outcome.is_left() && row.kind != Kind::Link;
    rows.filter(is_left).count()
}
