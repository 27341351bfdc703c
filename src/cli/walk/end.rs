//! Texts at the end of a run: what another run needs, commands that check the result, and advice after a stop.

use std::path::{Path, PathBuf};

use super::super::overlap::compare_arguments;
#[cfg(all(unix, feature = "imap"))]
use super::super::remote;
use super::super::say::shown;
use super::super::streams::is_standard;
use super::super::survey::{RunContext, in_units};
use super::super::totals::Totals;
use super::Walk;
use crate::engine::Mode;
use crate::mailbox::find::StartKind;
use crate::mailbox::{Format, Source, Summary, folder_of};
use crate::platform::free_space;

/// Maximum number of sources for which the summary contains check commands. With more of them, the summary would be too
/// long.
const PROOFS: usize = 3;

impl Walk<'_> {
    /// Returns the `embody compare` commands that check whether the results contain all mail of the sources.
    ///
    /// Returns no commands where `compare` could not give a correct answer: for mail on a server (which needs further
    /// options), for a part of a mailbox, and if duplicate messages of the source were written only once.
    /// `without_mail` are the indices of the sources without mail, which have no result.
    pub(super) fn proofs(
        &self,
        summary: &Summary,
        (targets, without_mail): (&[PathBuf], &[usize]),
    ) -> Vec<String> {
        let options = &self.options;
        let is_other_form = options.output_format != Format::Auto || options.by_label.is_some();
        let is_whole = options.read.range.is_none() && summary.repeated + summary.damaged == 0;
        let is_changed = is_whole && (summary.changed > 0 || is_other_form);
        if !options.writes || options.read.format != Format::Auto || !is_changed {
            return Vec::new();
        }
        let new = |target: &'_ Path| match self.output {
            // A folder of a tree can consist of a file and a directory in the output directory, so the command names
            // the whole output directory.
            Some(output) if options.output_format.is_tree() => output.to_owned(),
            _ => target.to_owned(),
        };
        let ignored = &self.args.compressed.ignore;
        let pairs: Option<Vec<String>> = self
            .known_sources()
            .iter()
            .zip(targets)
            .enumerate()
            .filter(|(index, _)| !without_mail.contains(index))
            .map(|(_, (source, target))| {
                let is_file = is_named_file(source) && !is_standard(target);
                let pair = [source.path().to_owned(), new(target)];
                let [old, new] = pair.each_ref().map(|path| path.to_str());
                let has_control = |path: &str| path.chars().any(char::is_control);
                let words = [old?, new?];
                let is_plain = is_file && !words.iter().any(|it| has_control(it));
                let [old, new] = words;
                is_plain.then(|| compare_arguments(old, new, ignored))
            })
            .collect();
        pairs
            .filter(|pairs| (1..=PROOFS).contains(&pairs.len()))
            .unwrap_or_default()
            .into_iter()
            .map(|arguments| format!("embody compare {arguments}"))
            .collect()
    }

    /// Returns how to continue after this run, as the end of a sentence. If the run wrote a new mailbox, this is the command on
    /// the page of the run, which reads that mailbox: no run overwrites a result.
    pub(super) fn again(&self, context: &RunContext<'_>) -> String {
        let result = self.output.filter(|output| !is_standard(output));
        match (result.filter(|_| self.options.writes), context.again()) {
            (Some(_), Some(command)) => format!("run: {command}"),
            (Some(output), None) => {
                format!("remove {}, and run the same command again.", shown(output))
            }
            (None, _) => "run the same command again.".to_owned(),
        }
    }

    /// Returns whether the run ends with a forecast: what a real run would do with pictures, and how much space the
    /// result would need.
    pub(super) fn plans_pictures(&self) -> bool {
        !self.options.writes && self.policy.embed.is_on()
    }

    /// Returns the forecast. `size` is the size of all sources, or `None` if [`plans_pictures`](Self::plans_pictures)
    /// is false.
    pub(super) fn plans(&self, counts: &Totals, size: Option<u64>) -> String {
        let Some(size) = size else {
            return String::new();
        };
        let mut text = counts.forecast.lines(self.policy, true);
        let output = self
            .output
            .filter(|output| !is_standard(output) && !text.is_empty());
        let place = output.map(|output| {
            if output.is_dir() {
                output
            } else {
                folder_of(output)
            }
        });
        if let Some(free) = place.and_then(|place| free_space(place).ok()) {
            let [free, size] = [free, size].map(in_units);
            text += &format!(
                "The sources contain {size}; the disk of the output has {free} of free space.\n"
            );
        }
        text
    }

    pub(super) fn stopped(&self, summary: &Summary) -> String {
        let (messages, changed) = (summary.messages, summary.changed);
        match (self.mode, &self.args.output) {
            (Mode::Probe | Mode::DryRun, _) => {
                "stopped by a signal; nothing was written".to_owned()
            }
            (Mode::Run, None) => {
                format!(
                    "stopped by a signal; {changed} messages were changed, and the other messages are unchanged; run the same command again to continue"
                )
            }
            (Mode::Run, Some(_)) => {
                format!(
                    "stopped by a signal; {messages} messages were written, and {changed} of these were changed; run the same command again"
                )
            }
        }
    }
}

/// Returns whether the source is a file or directory that `compare` can compare with its result. Standard input and
/// servers are not. Eudora mailboxes are not either: all messages are converted to MIME, so none is the same as before.
fn is_named_file(source: &Source) -> bool {
    let path = source.path();
    #[cfg(all(unix, feature = "imap"))]
    if remote::is_remote(path) {
        return false;
    }
    let is_file = || source.kind().is_some_and(|kind| kind != StartKind::Eudora);
    !is_standard(path) && (path.is_dir() || is_file())
}
