//! The progress of a conversion: a line that is overwritten on a terminal, or a new line every few seconds elsewhere.
//!
//! We do not use the crate indicatif, because it pulls in libm (for `pow`). The loader would map libm for every message
//! of `embody filter`, which costs a tenth of the run time of `cat`. So the progress line is ours, and the crate
//! `console` controls the terminal.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use console::Term;

use super::args::ProgressOption;
use super::say::{duration, tell};
use super::totals::Totals;
use crate::error::unpoisoned;

const BAR_EVERY: Duration = Duration::from_millis(200);

const LINE_EVERY: Duration = Duration::from_secs(10);

/// Maximum length of a progress line outside of a terminal, without its prefix `embody: `.
const LINE_COLUMNS: usize = 80 - 8;

/// Maximum length of a folder name in the line, in characters.
const FOLDER_COLUMNS: usize = 24;

/// Elapsed time, or percentage, from which on the remaining time is shown. An earlier estimate could be wrong by orders
/// of magnitude: the first messages of a folder may be small, and the first requests have to open connections.
const FIRST_ESTIMATE: (Duration, u128) = (Duration::from_secs(3), 5);

const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 8..=26;

pub(super) struct Display {
    terminal: Option<Term>,
    progress: Mutex<ProgressLine>,
}

struct ProgressLine {
    /// Name of the current folder of an account, followed by `: `. Each folder has its own progress, because the sizes
    /// of later folders are not known yet.
    folder: String,
    /// Bytes to read, and bytes read so far. For an account, these are the bytes of the current folder.
    total: u64,
    bytes: u64,
    messages: u64,
    start: Instant,
    next: Option<Instant>,
    every: Duration,
    /// Whether a progress bar is on the terminal. It must be removed before other text is written.
    drawn: bool,
}

impl Display {
    pub(super) fn new(option: ProgressOption, total: u64) -> Self {
        let can_draw = io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let is_drawn = can_draw && option != ProgressOption::Never;
        let every = match option {
            _ if is_drawn => BAR_EVERY,
            ProgressOption::Always => LINE_EVERY / 10,
            ProgressOption::Auto | ProgressOption::Never => LINE_EVERY,
        };
        let start = Instant::now();
        let progress = Mutex::new(ProgressLine {
            folder: String::new(),
            total,
            bytes: 0,
            messages: 0,
            start,
            next: match option {
                ProgressOption::Always => Some(start),
                ProgressOption::Auto => Some(start + every),
                ProgressOption::Never => None,
            },
            every,
            drawn: false,
        });
        Self {
            terminal: is_drawn.then(Term::buffered_stderr),
            progress,
        }
    }

    pub(super) fn expect(&self, bytes: u64) {
        let mut progress = unpoisoned(self.progress.lock());
        progress.total += bytes;
    }

    #[cfg(all(unix, feature = "imap"))]
    pub(super) fn within(&self, folder: &str) {
        let mut progress = unpoisoned(self.progress.lock());
        let is_long = folder.chars().count() > FOLDER_COLUMNS;
        let name: String = folder.chars().take(FOLDER_COLUMNS).collect();
        progress.folder = format!("{name}{}: ", if is_long { "..." } else { "" });
        (progress.total, progress.bytes, progress.start) = (0, 0, Instant::now());
    }

    pub(super) fn advance(&self, bytes: u64, messages: u64, totals: [&Totals; 2]) {
        let mut progress = unpoisoned(self.progress.lock());
        progress.bytes += bytes;
        progress.messages += messages;
        let now = Instant::now();
        if progress.next.is_none_or(|next| now < next) {
            return;
        }
        progress.next = Some(now + progress.every);
        let elapsed = progress.start.elapsed();
        match &self.terminal {
            Some(terminal) => {
                let (_, columns) = terminal.size();
                let columns = usize::from(columns);
                let text = progress.text(elapsed, totals, columns.saturating_sub(1));
                let line = progress.bar(&text, columns);
                // An error means that the terminal was closed. The run continues without progress.
                let _ = terminal.clear_line();
                let _ = terminal.write_str(&line);
                let _ = terminal.flush();
                progress.drawn = true;
            }
            None => tell(&progress.text(elapsed, totals, LINE_COLUMNS)),
        }
    }

    pub(super) fn say(&self, line: &str) {
        let mut progress = unpoisoned(self.progress.lock());
        if self.clear(&mut progress) {
            progress.next = Some(Instant::now());
        }
        tell(line);
    }

    fn clear(&self, progress: &mut ProgressLine) -> bool {
        let drawn = std::mem::take(&mut progress.drawn);
        if let Some(terminal) = &self.terminal
            && drawn
        {
            let _ = terminal.clear_line();
            let _ = terminal.flush();
        }
        drawn
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let mut progress = unpoisoned(self.progress.lock());
        self.clear(&mut progress);
    }
}

impl ProgressLine {
    /// Returns the progress line. Counts that do not fit into the line are left out.
    fn text(&self, elapsed: Duration, totals: [&Totals; 2], room: usize) -> String {
        let (unit, name) = unit(self.total.max(self.bytes));
        let in_units = |bytes: u64| bytes as f64 / unit as f64;
        let (mut percent, mut of, mut left) = (String::new(), String::new(), String::new());
        let mut can_estimate = elapsed >= FIRST_ESTIMATE.0;
        // The length of a stream is unknown (0), so no percentage is shown for it.
        if self.total > 0 {
            let done = u128::from(self.bytes.min(self.total)) * 100 / u128::from(self.total);
            percent = format!("{done} %, ");
            can_estimate |= done >= FIRST_ESTIMATE.1;
            of = format!(" of {:.1}", in_units(self.total));
        }
        if self.bytes > 0 && self.total > 0 && can_estimate {
            let rest = self.total.saturating_sub(self.bytes) as f64;
            let seconds = elapsed.as_secs_f64() * rest / self.bytes as f64;
            left = format!(", {} to go", duration(seconds));
        }
        let mut text = format!(
            "{}{percent}{:.1}{of} {name}",
            self.folder,
            in_units(self.bytes)
        );
        let messages = format!(", {} messages", self.messages);
        for count in std::iter::once(messages).chain(Totals::so_far(totals)) {
            if text.chars().count() + count.len() + left.len() > room {
                break;
            }
            text.push_str(&count);
        }
        text + &left
    }

    fn bar(&self, text: &str, columns: usize) -> String {
        // The last column is left free, because some terminals wrap the line after a character in it.
        let room = columns.saturating_sub(1);
        let bar = room.saturating_sub(text.len() + 1).min(*BAR_COLUMNS.end());
        if !BAR_COLUMNS.contains(&bar) || self.total == 0 {
            return text.chars().take(room).collect();
        }
        let inside = bar - 2;
        let done = self.bytes.min(self.total) as f64 / self.total as f64;
        let full = ((done * inside as f64) as usize).min(inside);
        format!("[{}{}] {text}", "#".repeat(full), " ".repeat(inside - full))
    }
}

fn unit(bytes: u64) -> (u64, &'static str) {
    match bytes {
        0..0x40_0000 => (1 << 10, "KiB"),
        0x40_0000..0x1_0000_0000 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::totals::TotalClass;

    fn progress(total: u64, bytes: u64) -> ProgressLine {
        let now = Instant::now();
        ProgressLine {
            folder: String::new(),
            total,
            bytes,
            messages: 12,
            start: now,
            next: None,
            every: BAR_EVERY,
            drawn: false,
        }
    }

    #[test]
    fn the_text_says_what_is_done_and_how_long_it_will_take() {
        let [mut done, mut totals] = [Totals::default(), Totals::default()];
        done.rows.count(TotalClass::FilledIn, 0);
        totals.rows.count_several(TotalClass::FilledIn, 2);
        totals.rows.count_several(TotalClass::Left, 4);
        assert!(Totals::so_far([&Totals::default(); 2]).is_empty());
        let minute = Duration::from_secs(60);
        for (total, bytes, text) in [
            (
                2048,
                512,
                "25 %, 0.5 of 2.0 KiB, 12 messages, 3 filled in, 4 unchanged, 3 min to go",
            ),
            (
                5 << 20,
                4 << 20,
                "80 %, 4.0 of 5.0 MiB, 12 messages, 3 filled in, 4 unchanged, 15 s to go",
            ),
            (
                500 << 30,
                1 << 30,
                "0 %, 1.0 of 500.0 GiB, 12 messages, 3 filled in, 4 unchanged, 8 h to go",
            ),
            // More bytes were read than expected, because the mailbox grew during the run. The progress stays at 100 %.
            (
                1024,
                2048,
                "100 %, 2.0 of 1.0 KiB, 12 messages, 3 filled in, 4 unchanged, 0 s to go",
            ),
            (0, 512, "0.5 KiB, 12 messages, 3 filled in, 4 unchanged"),
            (
                1024,
                0,
                "0 %, 0.0 of 1.0 KiB, 12 messages, 3 filled in, 4 unchanged",
            ),
        ] {
            let progress = progress(total, bytes);
            assert_eq!(progress.text(minute, [&done, &totals], 100), text);
        }
    }

    #[test]
    fn time_to_go_is_left_out_until_it_can_be_estimated() {
        let empty = Totals::default();
        let totals = [&empty; 2];
        let second = Duration::from_secs(1);
        for (elapsed, bytes, is_shown) in [
            (second, 1, false),
            (second, 499, false),
            (second, 500, true),
            (3 * second, 1, true),
            (3 * second, 0, false),
        ] {
            let text = progress(10_000, bytes).text(elapsed, totals, 80);
            assert_eq!(text.contains(" to go"), is_shown, "{bytes}: {text}");
        }
    }

    #[test]
    fn counts_that_do_not_fit_are_left_out_and_the_time_stays() {
        let mut totals = Totals::default();
        totals.rows.count_several(TotalClass::FilledIn, 1_234_567);
        totals.rows.count_several(TotalClass::Left, 7_654_321);
        let minute = Duration::from_secs(60);
        let mut half = progress(1 << 40, 1 << 39);
        half.messages = 12_345_678;
        for (room, text) in [
            (
                80,
                "50 %, 512.0 of 1024.0 GiB, 12345678 messages, 1234567 filled in, 60 s to go",
            ),
            (
                LINE_COLUMNS,
                "50 %, 512.0 of 1024.0 GiB, 12345678 messages, 60 s to go",
            ),
            (40, "50 %, 512.0 of 1024.0 GiB, 60 s to go"),
        ] {
            let line = half.text(minute, [&Totals::default(), &totals], room);
            assert_eq!(line, text);
            assert!(line.len() <= room, "{line}");
        }
    }

    #[test]
    fn the_bar_takes_the_room_that_the_text_leaves() {
        let half = progress(1000, 500);
        assert_eq!(
            half.bar("text", 200),
            format!("[{0}{1}] text", "#".repeat(12), " ".repeat(12))
        );
        assert_eq!(half.bar("text", 16), "[####    ] text");
        assert_eq!(half.bar("text", 14), "[###   ] text");
        assert_eq!(half.bar("text", 13), "text");
        assert_eq!(half.bar("text", 4), "tex");
        assert_eq!(half.bar("text", 0), "");
        assert_eq!(progress(1000, 9000).bar("text", 14), "[######] text");
        assert_eq!(progress(0, 10).bar("text", 80), "text");
    }
}
