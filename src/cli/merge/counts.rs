//! The counts of `merge` and of `inspect --duplicates`, as text and as JSON.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::report_file::{ReportFields, json, not_read};
use super::super::say;
use super::super::sizes::size;
use super::super::totals::files_by_verdict;
use crate::mailbox::FileCounts;
use crate::merge::{MOST_SOURCES, Tally};

/// Maximum number of pairs of sources for which the summary prints the number of common mails.
const MOST_PAIRS: usize = 10;

/// The counts of a run, and the names of its sources.
pub(crate) struct MergeSummary<'s> {
    pub(crate) sources: &'s [PathBuf],
    pub(crate) tally: &'s Tally,
    /// Files of the sources, by verdict. `None` if unknown.
    pub(crate) files: Option<FileCounts>,
    /// Names of files and messages that were not read completely, each with the reason.
    pub(crate) not_read: &'s [(String, String)],
}

impl MergeSummary<'_> {
    /// Bytes saved by keeping each mail only once.
    fn saved(&self) -> u64 {
        self.tally.bytes.saturating_sub(self.tally.kept_bytes)
    }

    /// Returns the counts as sentences, each on a line of its own. `is_survey` is true for `inspect --duplicates`, which
    /// makes no result.
    pub(crate) fn text(&self, is_survey: bool) -> String {
        let tally = self.tally;
        let mut text = String::new();
        let sources = counted(self.sources.len() as u64, "source", "sources");
        let mails = if is_survey {
            counted(tally.kept, "different mail", "different mails")
        } else {
            format!("{} in the result", counted(tally.kept, "mail", "mails"))
        };
        let _ = writeln!(
            text,
            "{} in {sources}, {mails}.",
            counted(tally.messages, "message", "messages"),
        );
        let left_out = if is_survey {
            "that embody merge would leave out"
        } else {
            "left out"
        };
        if tally.messages > tally.kept {
            let _ = writeln!(
                text,
                "{} ({}) {left_out}: {} identical to another copy, {} different but not more complete.",
                counted(
                    tally.messages - tally.kept,
                    "additional copy",
                    "additional copies"
                ),
                size(self.saved()),
                tally.identical,
                tally.dropped,
            );
        }
        if tally.filled > 0 {
            let _ = writeln!(
                text,
                "{} missing in incomplete copies that embody merge {}; the kept copies of the same mails contain the content.",
                counted(tally.filled, "part is", "parts are"),
                if is_survey {
                    "would leave out"
                } else {
                    "left out"
                },
            );
        }
        if let Some(count @ 1..) = tally.fillable {
            let references = counted(count, "missing part", "missing parts");
            let _ = writeln!(
                text,
                "embody recover --copies would fill {references} from other copies."
            );
        }
        if tally.completed > 0 {
            let _ = writeln!(
                text,
                "{} cut off; another copy contains the complete mail.",
                counted(tally.completed, "copy is", "copies are"),
            );
        }
        for (difference, count) in &tally.differences {
            let _ = writeln!(
                text,
                "{} (difference: {}). All these mails are kept; some of them may be forged or edited.",
                counted(
                    *count,
                    "mail has the Message-ID of another mail, but is a different mail",
                    "mails have the Message-ID of another mail, but are different mails"
                ),
                difference.words(),
            );
        }
        if tally.ambiguous > 0 {
            let _ = writeln!(
                text,
                "{}",
                counted(
                    tally.ambiguous,
                    "incomplete copy could be a copy of several mails with the same Message-ID, so it is kept as a separate mail.",
                    "incomplete copies could each be a copy of several mails with the same Message-ID, so they are kept as separate mails."
                ),
            );
        }
        if tally.uncompared > 0 {
            let _ = writeln!(
                text,
                "{} kept without a comparison, because too many different mails have the same Message-ID. The result may contain some of them more than once.",
                counted(tally.uncompared, "mail was", "mails were"),
            );
        }
        let mut pairs: Vec<_> = tally.pairs.iter().collect();
        if pairs.len() > 1 || tally.widespread > 0 {
            let mails = counted(tally.shared, "mail is", "mails are");
            let _ = writeln!(text, "{mails} in more than one source.");
        }
        pairs.sort_by_key(|(pair, count)| (std::cmp::Reverse(**count), **pair));
        for ((one, other), count) in pairs.iter().take(MOST_PAIRS) {
            let named = |number: u32| self.sources.get(number as usize).map(|it| say::shown(it));
            let [one, other] = [*one, *other].map(|number| named(number).unwrap_or_default());
            let mails = counted(**count, "mail is", "mails are");
            let _ = writeln!(text, "{mails} in both {one} and {other}.");
        }
        if pairs.len() > MOST_PAIRS {
            let more = pairs.len() - MOST_PAIRS;
            let _ = writeln!(
                text,
                "{} mails in common; --json lists all pairs.",
                counted(
                    more as u64,
                    "more pair of sources has",
                    "more pairs of sources have"
                ),
            );
        }
        if tally.widespread > 0 {
            let mails = counted(tally.widespread, "mail is", "mails are");
            let _ = writeln!(
                text,
                "{mails} in more than {MOST_SOURCES} sources, and not counted for the pairs of sources."
            );
        }
        if let Some(counts) = &self.files
            && counts.total() > counts.read
        {
            text.push_str(&files_by_verdict(counts));
        }
        text
    }

    /// Returns JSON Lines: one line for each file that was not read, and a last line with the counts as an object in
    /// the field `name`.
    pub(crate) fn json(&self, name: &'static str) -> io::Result<Vec<u8>> {
        let tally = self.tally;
        #[derive(Serialize)]
        struct Pair {
            sources: [String; 2],
            mails: u64,
        }
        #[derive(Serialize)]
        struct MergeSourceKind {
            difference: &'static str,
            mails: u64,
        }
        #[derive(Serialize)]
        struct MergeCounts {
            messages: u64,
            bytes: u64,
            kept: u64,
            kept_bytes: u64,
            saved_bytes: u64,
            identical: u64,
            dropped: u64,
            filled: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            fillable: Option<u64>,
            completed: u64,
            ambiguous: u64,
            uncompared: u64,
            different: Vec<MergeSourceKind>,
            shared: u64,
            widespread: u64,
            pairs: Vec<Pair>,
            #[serde(skip_serializing_if = "Option::is_none")]
            files: Option<FileCounts>,
        }
        let named = |number: u32| {
            let source = self.sources.get(number as usize);
            source
                .map(|it| it.display().to_string())
                .unwrap_or_default()
        };
        let pairs = tally.pairs.iter().map(|(&(one, other), &mails)| Pair {
            sources: [one, other].map(named),
            mails,
        });
        let different = tally
            .differences
            .iter()
            .map(|(difference, &mails)| MergeSourceKind {
                difference: difference.words(),
                mails,
            });
        let counts = MergeCounts {
            messages: tally.messages,
            bytes: tally.bytes,
            kept: tally.kept,
            kept_bytes: tally.kept_bytes,
            saved_bytes: self.saved(),
            identical: tally.identical,
            dropped: tally.dropped,
            filled: tally.filled,
            fillable: tally.fillable,
            completed: tally.completed,
            ambiguous: tally.ambiguous,
            uncompared: tally.uncompared,
            different: different.collect(),
            shared: tally.shared,
            widespread: tally.widespread,
            pairs: pairs.collect(),
            files: self.files,
        };
        let mut lines = Vec::new();
        for (path, why) in self.not_read {
            lines.extend(json(&not_read(Path::new(path), why))?);
        }
        let fields = ReportFields::default().with("kind", &name);
        lines.extend(json(&fields.with(name, &counts))?);
        Ok(lines)
    }
}

pub(super) fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}
