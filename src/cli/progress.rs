//! How far a conversion has come: a bar on a terminal, lines elsewhere.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::ProgressOption;
use super::totals::Totals;

/// How often a line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A progress display.
pub(super) enum Display {
    /// A bar.
    Bar(ProgressBar),
    /// Lines.
    Lines(Mutex<Lines>),
    /// Nothing.
    Off,
}

pub(super) struct Lines {
    total: u64,
    bytes: u64,
    messages: u64,
    start: Instant,
    next: Instant,
    every: Duration,
}

impl Display {
    /// A display for `total` bytes.
    pub(super) fn new(option: ProgressOption, total: u64) -> Self {
        let terminal = io::stderr().is_terminal();
        match option {
            ProgressOption::Never => Self::Off,
            ProgressOption::Auto | ProgressOption::Always if terminal => {
                let bar = ProgressBar::with_draw_target(
                    Some(total),
                    ProgressDrawTarget::stderr_with_hz(5),
                );
                if let Ok(style) = ProgressStyle::with_template(
                    "{bar:24} {bytes}/{total_bytes} {bytes_per_sec} {msg} {eta} to go",
                ) {
                    bar.set_style(style);
                }
                Self::Bar(bar)
            }
            ProgressOption::Auto => Self::lines(total, LINE_EVERY),
            ProgressOption::Always => Self::lines(total, LINE_EVERY / 10),
        }
    }

    fn lines(total: u64, every: Duration) -> Self {
        let start = Instant::now();
        Self::Lines(Mutex::new(Lines {
            total,
            bytes: 0,
            messages: 0,
            start,
            next: start + every,
            every,
        }))
    }

    /// That much more is done.
    pub(super) fn advance(&self, bytes: u64, messages: u64, totals: &Totals) {
        match self {
            Self::Off => {}
            Self::Bar(bar) => {
                bar.inc(bytes);
                bar.set_message(format!(
                    "{} expanded, {} left,",
                    totals.expanded, totals.left
                ));
            }
            Self::Lines(lines) => {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.bytes += bytes;
                lines.messages += messages;
                let now = Instant::now();
                if now >= lines.next {
                    lines.next = now + lines.every;
                    eprintln!("embody: {}", lines.line(totals));
                }
            }
        }
    }

    /// Takes the bar away, so that what comes stands on lines of its own.
    pub(super) fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }

    /// Writes a line without tearing the bar.
    pub(super) fn say(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| eprintln!("embody: {line}")),
            Self::Lines(_) | Self::Off => eprintln!("embody: {line}"),
        }
    }
}

impl Lines {
    fn line(&self, totals: &Totals) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        let left = self.total.saturating_sub(self.bytes) as f64;
        let to_go = if self.bytes == 0 {
            0.0
        } else {
            left * seconds / self.bytes as f64
        };
        format!(
            "{} of {} bytes, {} messages, {} expanded, {} left, {to_go:.0} s to go",
            self.bytes, self.total, self.messages, totals.expanded, totals.left
        )
    }
}
