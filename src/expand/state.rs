//! What became of a reference, as a run sees it. Whoever asked for the run gets an [`Outcome`] or a [`Forecast`] of it,
//! so that nothing that only would be done stands in the report of what was.

use crate::report::{Forecast, Outcome, Reason, Report, Row};

/// What became of a reference, or would.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Expanded,
    Rewritten,
    Restored,
    Left,
    /// It would be retrieved, and nobody was asked.
    Unasked,
}

impl State {
    /// What a plan says of a row.
    pub(super) fn planned(row: Row<Forecast>) -> Row<Self> {
        let state = match row.outcome {
            Forecast::WouldExpand => Self::Expanded,
            Forecast::WouldRewrite => Self::Rewritten,
            Forecast::WouldRestore => Self::Restored,
            Forecast::WouldFetch => Self::Unasked,
            // Nothing is detached by an expander.
            Forecast::WouldDetach | Forecast::Left => Self::Left,
        };
        row.with(state)
    }
}

/// The report of a run that changed the message.
pub(super) fn done(report: Report<State>) -> Report {
    report.map(|mut row| {
        let outcome = match row.outcome {
            State::Expanded => Outcome::Expanded,
            State::Rewritten => Outcome::Rewritten,
            State::Restored => Outcome::Restored,
            State::Left => Outcome::Left,
            State::Unasked => {
                row.reason = Some(Reason::NotRetrieved);
                Outcome::Left
            }
        };
        row.with(outcome)
    })
}

/// The report of one that only looked.
pub(super) fn forecast(report: Report<State>) -> Report<Forecast> {
    report.map(|row| {
        let forecast = match row.outcome {
            State::Expanded => Forecast::WouldExpand,
            State::Rewritten => Forecast::WouldRewrite,
            State::Restored => Forecast::WouldRestore,
            State::Left => Forecast::Left,
            State::Unasked => Forecast::WouldFetch,
        };
        row.with(forecast)
    })
}
