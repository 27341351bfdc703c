//! Summary at the end of a run over mailboxes: what was done, what was not done and why, and the option that would help
//! most.

use std::fmt::Write as _;

use super::outcomes::Task;
use super::say::harmless;
use super::sizes::size;
use super::totals::{Totals, files};
use super::wording::counted;
use crate::engine::Mode;
use crate::mailbox::Summary;

/// Formats the duration of a run.
fn elapsed(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..100 => format!("{seconds:.1} s"),
        100..6_000 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3_600, whole / 60 % 60),
    }
}

fn read(summary: &Summary) -> String {
    let messages = counted(summary.messages, "message");
    match summary.mailboxes {
        0 | 1 => format!("{messages} read"),
        mailboxes => format!("{messages} read in {mailboxes} mailboxes"),
    }
}

pub(super) struct RunSummary<'e> {
    pub(super) summary: &'e Summary,
    pub(super) totals: &'e Totals,
    pub(super) task: Task,
    pub(super) mode: Mode,
    pub(super) seconds: f64,
    /// Whether the sources are accounts on servers.
    pub(super) is_remote: bool,
    /// How to repeat the run.
    pub(super) again: &'e str,
    /// Whether a preview of `--embed` follows this text. It contains the numbers of pictures, so the summary leaves
    /// them out.
    pub(super) pictures_follow: bool,
}

impl RunSummary<'_> {
    pub(super) fn text(&self) -> String {
        let Self {
            summary, totals, ..
        } = self;
        let outcomes = &totals.outcomes;
        let mut text = String::new();
        if outcomes.has_no_response() {
            let _ = writeln!(text, "{}", outcomes.no_response(self.again));
        }
        if let Some(failure) = outcomes.store_failure(self.task, self.again) {
            let _ = writeln!(text, "{failure}");
        }
        let would = if !self.mode.writes() { " would be" } else { "" };
        let _ = writeln!(
            text,
            "{}, {}{would} changed.",
            read(summary),
            summary.changed
        );
        text.push_str(&outcomes.sentences(self.task, self.mode, self.pictures_follow));
        let damaged = if self.is_remote {
            [
                "folder or message could not be processed completely, or a message may exist twice; a line above names it",
                "folders or messages could not be processed completely, or may exist twice; lines above name them",
            ]
        } else {
            [
                "file or message could not be processed completely; a line above names this file",
                "files or messages could not be processed completely; lines above name these files",
            ]
        };
        for (count, one, many) in [
            (
                summary.oversized,
                "message is larger than 512 MiB, so it was neither searched nor changed",
                "messages are larger than 512 MiB, so they were neither searched nor changed",
            ),
            (
                summary.late,
                "message arrived while the mailbox was not locked; the next run will process it",
                "messages arrived while the mailbox was not locked; the next run will process them",
            ),
            (
                summary.ambiguous,
                "line started with >From in an mbox with unknown quoting; embody removed the >",
                "lines started with >From in an mbox with unknown quoting; embody removed the >",
            ),
            (
                summary.prologues,
                "message began with text before its header (a separator, a line of another program, empty lines or a byte order mark); embody removed this text",
                "messages began with text before their headers (separators, lines of other programs, empty lines or byte order marks); embody removed this text",
            ),
            (
                summary.deleted,
                "message is marked as deleted and was left out (--skip-deleted)",
                "messages are marked as deleted and were left out (--skip-deleted)",
            ),
            (
                summary.internal,
                "message is not mail, but the state that UW IMAP stores in an mbox; it was not converted",
                "messages are not mail, but the state that UW IMAP stores in mboxes; they were not converted",
            ),
            (
                summary.repeated,
                "message occurs twice with the same label; one copy was written to the mailbox of the label",
                "messages occur twice with the same label; one copy of each was written to the mailbox of the label",
            ),
            (
                summary.overlabelled,
                "message has too many or too long labels, and was written to at least one mailbox",
                "messages have too many or too long labels, and were written to at least one mailbox each",
            ),
            (
                summary.damaged.max(summary.files.not_read),
                damaged[0],
                damaged[1],
            ),
            (
                summary.skipped_files,
                "file contains no mail and was skipped",
                "files contain no mail and were skipped",
            ),
            (
                summary.set_aside,
                "file was skipped: its mail is deleted or not delivered, or a copy of other mail",
                "files were skipped: their mail is deleted or not delivered, or a copy of other mail",
            ),
            (
                summary.made,
                "file was written by the previous run and is not counted above",
                "files were written by the previous run and are not counted above",
            ),
            (
                summary.moved,
                "message was moved or replaced by another program during the run, and stays unchanged; run the same command again",
                "messages were moved or replaced by another program during the run, and stay unchanged; run the same command again",
            ),
        ] {
            if count > 0 {
                let words = if count == 1 { one } else { many };
                let _ = writeln!(text, "{count} {words}.");
            }
        }
        text.push_str(&files(&summary.files));
        let (before, after) = (size(summary.bytes_in), size(summary.bytes_out));
        let time = elapsed(self.seconds);
        let _ = if summary.bytes_in == summary.bytes_out {
            writeln!(text, "{before} in {time}.")
        } else {
            writeln!(text, "{before} -> {after} in {time}.")
        };
        text
    }

    /// Returns the options that would allow the largest number of refused references.
    pub(super) fn remedy(&self) -> String {
        let Some((remedy, count)) = self.totals.best_remedy() else {
            return String::new();
        };
        let references = counted(count, "more reference");
        format!("{} would allow {references}.\n", harmless(&remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_are_seconds_minutes_or_hours() {
        for (seconds, text) in [
            (0.04, "0.0 s"),
            (38.25, "38.2 s"),
            (398.0, "6 min 38 s"),
            (7_260.0, "2 h 1 min"),
        ] {
            assert_eq!(elapsed(seconds), text);
        }
    }
}
