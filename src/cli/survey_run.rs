//! The transform of `inspect`: expands each message in a dry run or a probe, and surveys it.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use super::named_files::{NamedFiles, SavedAttachment};
use super::survey::MessageSurveyor;
use super::tally::CountedRow;
use super::verb::{ExpandRun, VerbReport};
use crate::edit::Edits;
use crate::engine::detach::is_attachment;
use crate::engine::lengths::Lengths;
use crate::engine::report::{Kind, Outcome, Provenance, Row};
use crate::error::Error;
use crate::fetch::store::Key;
use crate::mailbox::{Message, Transform};
use crate::mime::{MessageTree, ScanLimits, scan};

pub(super) struct SurveyRun {
    pub(super) expanding: ExpandRun,
    surveyor: MessageSurveyor,
    pub(super) tells_embeds: bool,
    /// The directory of `--save-attachments`.
    pub(super) files: Option<NamedFiles>,
    /// Number of winmail.dat attachments and other attachments in a format of Outlook. `--save-attachments` saves them
    /// unopened; `convert` opens them.
    packed: AtomicU64,
}

impl SurveyRun {
    pub(super) fn new(
        expanding: ExpandRun,
        larger_than: u64,
        base_url: String,
        tells_embeds: bool,
    ) -> Self {
        let surveyor = MessageSurveyor::new(larger_than, base_url)
            .with_probe(expanding.mode.asks_servers())
            .with_list(expanding.tells_rows);
        Self {
            expanding,
            surveyor,
            tells_embeds,
            files: None,
            packed: AtomicU64::new(0),
        }
    }

    /// Returns a sentence about the saved files that only Outlook opens, or `None` if there are no such files.
    pub(super) fn packed_files(&self) -> Option<String> {
        let count = self.packed.load(Ordering::Relaxed);
        let (start, them) = match count {
            0 => return None,
            1 => ("1 file is".to_owned(), "it"),
            _ => (format!("{count} files are"), "them"),
        };
        Some(format!(
            "{start} in an Outlook format, such as winmail.dat, that most programs cannot open; embody convert MAILBOX --output NEW opens {them} in the mail"
        ))
    }

    /// Writes all attachments of a message to files (`--save-attachments`).
    fn saved(
        &self,
        message: &Message<'_>,
        (tree, limits): (&MessageTree<'_>, &ScanLimits),
    ) -> Vec<SavedAttachment> {
        let Some(files) = &self.files else {
            return Vec::new();
        };
        let attachments = tree.ids().filter(|part| is_attachment(tree, *part, limits));
        let saved = attachments.filter_map(|part| {
            let entity = tree.part(part);
            let Some(octets) = entity.encoding.decode(entity.body.of(tree.original)) else {
                let what = format!("the {} encoding is damaged", tree.encoding_word(part));
                files.fail(&tree.number(part), &what);
                return None;
            };
            let identity = (Key::of(&octets), octets.len() as u64);
            files.keep(message, (tree, part), identity, |file| {
                file.write_all(&octets)
            })
        });
        saved.collect()
    }
}

impl Transform<VerbReport> for SurveyRun {
    fn ahead(&self, message: &Message<'_>) {
        self.expanding.ahead(message);
    }

    /// The survey counts each message, also an empty file in a Maildir.
    fn next_touch(&self, _: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, VerbReport), Error> {
        let limits = self.expanding.expander.policy().limits.scan();
        let tree = scan(message.content, &limits);
        let mut said = self.expanding.expand(message, Some(&tree))?.1;
        if !self.tells_embeds {
            said.report.rows.retain(|row| {
                // Rows of pictures are kept only if a request was made for the picture. `WouldExpand` means that embody
                // has the content: a probe sometimes retrieves it to find out whether it is available, and only then is
                // it from the network.
                let is_asked_for = match row.outcome {
                    Outcome::WouldExpand => row.from == Provenance::Network,
                    Outcome::WouldBlank => false,
                    _ => true,
                };
                row.kind != Kind::Embed
                    || is_asked_for && CountedRow::of(row).host_of_absolute().is_some()
            });
        }
        let expander = &self.expanding.expander;
        let (edits, survey, listed) =
            self.surveyor
                .survey(expander, message, (&tree, &limits), &said.report);
        said.survey = Some(survey);
        said.files = self.saved(message, (&tree, &limits));
        if self.files.is_some() {
            let is_packed = |row: &&Row| matches!(row.kind, Kind::Tnef | Kind::Msg);
            let packed = said.report.rows.iter().filter(is_packed).count();
            self.packed.fetch_add(packed as u64, Ordering::Relaxed);
        }
        if !listed.is_empty() {
            said.list(message, listed);
        }
        Ok((edits, said))
    }

    fn weight(&self, said: &VerbReport) -> usize {
        self.expanding.weight(said)
    }

    fn lengths(&self) -> Lengths {
        self.expanding.lengths
    }
}

#[cfg(test)]
mod tests;
