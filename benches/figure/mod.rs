//! A figure: what was measured here, beside what, and the goal. A bench prints each as one line in a
//! fixed form, which `cargo bench --bench figures` collects.
// Each bench uses its part.
#![allow(dead_code, unreachable_pub)]

pub mod plot;

use std::fmt;

/// How a figure's line begins.
const FIGURE: &str = "figure";
/// How a line begins that says what could not be measured.
const SKIPPED: &str = "skipped";

/// Whether the bench was asked (`--quick`) to take fewer or smaller rounds.
pub fn quick() -> bool {
    std::env::args().any(|argument| argument == "--quick")
}

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// More is better, and this is enough.
    AtLeast(f64),
    /// Less is better, and this is little enough.
    AtMost(f64),
    /// More is better, and nobody has said how much.
    More,
}

impl Goal {
    /// None where nothing was asked.
    pub fn met(self, ratio: f64) -> Option<bool> {
        match self {
            Self::AtLeast(goal) => Some(ratio >= goal),
            Self::AtMost(goal) => Some(ratio <= goal),
            Self::More => None,
        }
    }

    /// The number of the goal.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::AtLeast(goal) | Self::AtMost(goal) => Some(goal),
            Self::More => None,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(goal) => write!(out, "at least {goal}"),
            Self::AtMost(goal) => write!(out, "at most {goal}"),
            Self::More => write!(out, "none"),
        }
    }
}

/// One row of the table and one bar of the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What is measured; at most 48 characters fit the plot.
    pub what: String,
    /// Ours, with its unit.
    pub ours: String,
    /// The peer's name and its value.
    pub peer: String,
    /// Ours to the peer's: speed to speed, or time to time, or size to size.
    pub ratio: f64,
    /// What the ratio should be.
    pub goal: Goal,
}

impl Figure {
    /// Prints the line of a figure. Speeds are compared so that more is better.
    pub fn say(what: &str, ours: &str, peer: &str, ratio: f64, goal: Goal) {
        let figure = Self {
            what: what.to_owned(),
            ours: ours.to_owned(),
            peer: peer.to_owned(),
            ratio,
            goal,
        };
        println!("{}", figure.line());
    }

    /// `figure | what | ours | peer | ratio | goal`.
    pub fn line(&self) -> String {
        format!(
            "{FIGURE} | {} | {} | {} | {:.4} | {}",
            self.what, self.ours, self.peer, self.ratio, self.goal
        )
    }

    /// What [`line`](Self::line) wrote; None for any other line.
    pub fn read(line: &str) -> Option<Self> {
        let mut cells = line.split(" | ");
        if cells.next()? != FIGURE {
            return None;
        }
        let (what, ours, peer) = (cells.next()?, cells.next()?, cells.next()?);
        let ratio: f64 = cells.next()?.parse().ok()?;
        let goal = cells.next()?;
        let goal = if let Some(number) = goal.strip_prefix("at least ") {
            Goal::AtLeast(number.parse().ok()?)
        } else if let Some(number) = goal.strip_prefix("at most ") {
            Goal::AtMost(number.parse().ok()?)
        } else if goal == "none" {
            Goal::More
        } else {
            return None;
        };
        // A logarithm is taken of it.
        (cells.next().is_none() && ratio.is_finite() && ratio > 0.0).then(|| Self {
            what: what.to_owned(),
            ours: ours.to_owned(),
            peer: peer.to_owned(),
            ratio,
            goal,
        })
    }
}

/// Prints that a figure could not be measured, and why.
pub fn skipped(what: &str, why: &str) {
    println!("{SKIPPED} | {what} | {why}");
}

/// What [`skipped`] wrote: what, and why.
pub fn read_skipped(line: &str) -> Option<(String, String)> {
    let (what, why) = line
        .strip_prefix(SKIPPED)?
        .strip_prefix(" | ")?
        .split_once(" | ")?;
    Some((what.to_owned(), why.to_owned()))
}

/// Three digits or so.
pub fn short(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// The Markdown table.
pub fn table(figures: &[Figure]) -> String {
    let mut out = String::from(
        "| what | embody | beside | ratio | goal | met? |\n|---|---|---|---|---|---|\n",
    );
    for figure in figures {
        let met = match figure.goal.met(figure.ratio) {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        let goal = match figure.goal {
            Goal::More => String::new(),
            goal => goal.to_string(),
        };
        out.push_str(&format!(
            "| {} | {} | {} | {} | {goal} | {met} |\n",
            figure.what,
            figure.ours,
            figure.peer,
            short(figure.ratio)
        ));
    }
    out
}
