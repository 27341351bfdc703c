//! Result of the comparison, as text and as JSON Lines.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use super::super::args::CompareArgs;
use super::super::exit::ProgramStatus;
use super::super::report_file::{json, not_read};
use super::super::say;
use super::super::totals::files;
use super::reading::{LostMessage, UnreadSource};
use crate::engine::prove::{Changes, Unproven};
use crate::mailbox::FileCounts;

#[derive(Default)]
pub(super) struct Verdict {
    pub(super) old: u64,
    pub(super) new: u64,
    pub(super) identical: u64,
    pub(super) changed: u64,
    pub(super) changes: Changes,
    /// Number of contents in NEW that came from a server, a file or another copy of the mail, so that OLD cannot prove
    /// them.
    pub(super) unchecked: usize,
    /// Number of messages that disappeared from OLD during the run.
    pub(super) gone: u64,
    /// Length of the temporary file, in bytes.
    pub(super) spooled: u64,
    /// The messages that are missing, changed, or lack flags in NEW.
    pub(super) lost: Vec<(LostMessage, Loss)>,
    pub(super) is_damaged: bool,
    /// Files of OLD and of NEW, by verdict.
    pub(super) files: [FileCounts; 2],
    /// Files and messages of OLD and NEW that could not be read.
    pub(super) not_read: Vec<UnreadSource>,
}

pub(super) enum Loss {
    Missing,
    Altered(Unproven),
    /// Flags and keywords that are missing in NEW, described in words.
    Flags(Vec<String>),
}

impl Verdict {
    pub(super) fn status(&self) -> ProgramStatus {
        if self.is_whole() {
            ProgramStatus::Success
        } else {
            ProgramStatus::Trouble
        }
    }

    fn is_whole(&self) -> bool {
        self.lost.is_empty() && self.gone == 0 && !self.is_damaged
    }

    fn counts(&self) -> (u64, u64, u64) {
        let mut counts = (self.gone, 0, 0);
        for (_, loss) in &self.lost {
            match loss {
                Loss::Missing => counts.0 += 1,
                Loss::Altered(_) => counts.1 += 1,
                Loss::Flags(_) => counts.2 += 1,
            }
        }
        counts
    }

    pub(super) fn text(&self, args: &CompareArgs) -> String {
        let mut text = String::new();
        let (missing, altered, flags) = self.counts();
        if !args.quiet {
            let (old, new) = (say::shown(&args.old), say::shown(&args.new));
            let _ = writeln!(
                text,
                "{} in {old}, {} in {new}.",
                messages(self.old),
                messages(self.new)
            );
            let _ = writeln!(
                text,
                "{} identical. {} with changes that embody makes{}.{}",
                self.identical,
                self.changed,
                of_changes(&self.changes),
                of_unchecked(self.unchecked)
            );
            if self.is_whole() {
                let _ = writeln!(text, "No message is missing or has other changes.");
            } else {
                let _ = writeln!(
                    text,
                    "{missing} missing. {altered} with other changes. {flags} with lost flags."
                );
            }
            for (side, counts) in [&old, &new].into_iter().zip(&self.files) {
                let counts = files(counts);
                if !counts.is_empty() {
                    let _ = write!(text, "{side}: {counts}");
                }
            }
            if self.is_damaged {
                let _ = writeln!(
                    text,
                    "Some files or messages could not be read, and were not compared."
                );
            }
        }
        for (named, loss) in &self.lost {
            let place = format!("{}, message {}", say::harmless(&named.source), named.index);
            let called = say::harmless_within(&named.called);
            let _ = match loss {
                Loss::Missing => writeln!(text, "missing: {called}: {place}"),
                Loss::Altered(why) => writeln!(text, "altered: {called}: {why}: {place}"),
                Loss::Flags(flags) => {
                    writeln!(text, "flags: {called}: {} lost: {place}", flag_names(flags))
                }
            };
        }
        if self.gone > 0 {
            let source = say::shown(&args.old);
            let count = messages(self.gone);
            let _ = writeln!(
                text,
                "missing: {count} left {source} during the run and could not be compared; run the command again"
            );
        }
        text
    }

    pub(super) fn json(&self) -> io::Result<Vec<u8>> {
        #[derive(Serialize)]
        struct VerdictRow<'r> {
            kind: &'static str,
            #[serde(flatten)]
            named: &'r LostMessage,
            outcome: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            detail: Option<String>,
        }
        #[derive(Serialize)]
        struct Counts {
            old: u64,
            new: u64,
            identical: u64,
            changed: u64,
            missing: u64,
            altered: u64,
            lost_flags: u64,
            /// Number of contents that OLD cannot prove.
            unchecked: usize,
            /// Number of messages that disappeared from OLD during the run. They are also counted as missing.
            gone: u64,
            /// Length of the temporary file, in bytes.
            temporary: u64,
            changes: Changes,
            is_whole: bool,
            files: Files,
        }
        #[derive(Serialize)]
        struct Files {
            old: FileCounts,
            new: FileCounts,
        }
        #[derive(Serialize)]
        struct Whole {
            kind: &'static str,
            compare: Counts,
        }
        let mut lines = Vec::new();
        for (named, loss) in &self.lost {
            let (outcome, detail) = match loss {
                Loss::Missing => ("missing", None),
                Loss::Altered(why) => ("altered", Some(why.to_string())),
                Loss::Flags(flags) => ("lost-flags", Some(flag_names(flags))),
            };
            lines.extend(json(&VerdictRow {
                kind: "difference",
                named,
                outcome,
                detail,
            })?);
        }
        for file in &self.not_read {
            lines.extend(json(&not_read(&file.path, &file.why))?);
        }
        let (missing, altered, lost_flags) = self.counts();
        let [old, new] = self.files;
        lines.extend(json(&Whole {
            kind: "compare",
            compare: Counts {
                old: self.old,
                new: self.new,
                identical: self.identical,
                changed: self.changed,
                missing,
                altered,
                lost_flags,
                unchecked: self.unchecked,
                gone: self.gone,
                temporary: self.spooled,
                changes: self.changes,
                is_whole: self.status() == ProgramStatus::Success,
                files: Files { old, new },
            },
        })?);
        Ok(lines)
    }
}

fn messages(count: u64) -> String {
    match count {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

/// Returns the counts as text, which is empty if all counts are zero.
fn of_changes(changes: &Changes) -> String {
    let counts = [
        (changes.embedded, "picture embedded", "pictures embedded"),
        (
            changes.detached,
            "attachment detached",
            "attachments detached",
        ),
        (
            changes.restored,
            "attachment restored",
            "attachments restored",
        ),
        (changes.filled, "reference filled", "references filled"),
        (
            changes.resolved,
            "document with links made absolute",
            "documents with links made absolute",
        ),
        (
            changes.unwrapped,
            "wrapped link replaced with its original",
            "wrapped links replaced with their originals",
        ),
        (
            changes.opened,
            "message with winmail.dat or another packed part opened",
            "messages with winmail.dat or other packed parts opened",
        ),
        (
            changes.unmarked,
            "Eudora message converted back to MIME",
            "Eudora messages converted back to MIME",
        ),
        (
            changes.merged,
            "message replaced by another copy of the mail",
            "messages replaced by another copy of the mail",
        ),
    ];
    let words: Vec<String> = counts
        .iter()
        .filter_map(|(count, one, several)| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {several}")),
        })
        .collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}

/// Returns a sentence about the contents that OLD cannot prove.
fn of_unchecked(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " The content of 1 reference came from a server or a file, so OLD does not contain this content.".to_owned(),
        count => format!(" The content of {count} references came from servers or files, so OLD does not contain this content."),
    }
}

fn flag_names(flags: &[String]) -> String {
    let names = flags
        .iter()
        .map(|name| name.strip_prefix("flag ").unwrap_or(name));
    names.collect::<Vec<_>>().join(", ")
}
