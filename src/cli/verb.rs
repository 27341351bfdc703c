//! The transforms of the commands: how each command processes one message, alone or in a mailbox.

use super::origin::Origin;
use super::survey::{Listed, Survey};
use crate::edit::Edits;
use crate::engine::Mode;
use crate::engine::lengths::Lengths;
use crate::engine::report::{Detail, Outcome, Reason, Report, Row};
use crate::error::Error;
use crate::expand::detach::Detacher;
use crate::expand::{Expander, envelope};
use crate::fetch::record::WarcRecorder;
use crate::mailbox::{Envelope, Message, Transform};
use crate::mime::Tree;

pub(super) struct Said {
    pub(super) origin: Option<Origin>,
    pub(super) report: Report,
    pub(super) survey: Option<Box<Survey>>,
    pub(super) listed: Vec<Listed>,
}

impl Said {
    /// Creates the record of a message. It contains the origin of the message if rows are printed, and always if the
    /// mailbox has files next to it, because the table of missing files names each message.
    pub(super) fn of(message: &Message<'_>, report: Report, tells_rows: bool) -> Self {
        let is_named = !report.rows.is_empty() && (tells_rows || message.beside.is_some());
        Self {
            origin: is_named.then(|| origin(message)),
            report,
            survey: None,
            listed: Vec::new(),
        }
    }

    /// Returns the memory in bytes that this record occupies until its message is written.
    fn weight(&self) -> usize {
        let rows: usize = self.report.rows.iter().map(Row::weight).sum();
        let notes: usize = self.report.notes.iter().map(String::len).sum();
        let survey = self.survey.as_deref().map_or(0, size_of_val);
        let listed = self.listed.len() * size_of::<Listed>();
        size_of_val(self) + rows + notes + survey + listed
    }

    pub(super) fn list(&mut self, message: &Message<'_>, listed: Vec<Listed>) {
        self.origin.get_or_insert_with(|| origin(message));
        self.listed = listed;
    }

    pub(super) fn name(&mut self, name: &str) {
        for row in &mut self.report.rows {
            name.clone_into(&mut row.message);
        }
        for listed in &mut self.listed {
            name.clone_into(&mut listed.message);
        }
    }

    pub(super) fn leave_for_separator(&mut self) {
        let mut detail = Detail::from(Reason::HoldsSeparator.meaning());
        detail.push("; the message was not changed");
        self.leave(Reason::HoldsSeparator, &detail);
    }

    pub(super) fn leave(&mut self, reason: Reason, detail: &Detail) {
        for row in &mut self.report.rows {
            if !matches!(row.outcome, Outcome::Left | Outcome::WouldFetch) {
                row.outcome = Outcome::Left;
                row.reason = Some(reason);
                row.detail = detail.clone();
                (row.bytes, row.links) = (None, None);
            }
        }
    }
}

fn origin(message: &Message<'_>) -> Origin {
    let source = message.source.display().to_string();
    Origin::new(&source, message.number, message.content)
}

pub(super) struct Expanding {
    pub(super) expander: Expander,
    pub(super) mode: Mode,
    pub(super) lengths: Lengths,
    pub(super) recorder: Option<WarcRecorder>,
    /// Whether rows are printed. Otherwise the origin of a mail is not read, because that takes as long as reading its
    /// references.
    pub(super) tells_rows: bool,
}

impl Transform<Said> for Expanding {
    fn ahead(&self, message: &Message<'_>) {
        self.expander.see(message);
    }

    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.expander.first_touch(bytes)
    }

    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        self.expander.touched_messages(bytes, ends)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Said), Error> {
        self.expand(message, None)
    }

    fn weight(&self, said: &Said) -> usize {
        said.weight()
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }

    fn lengths(&self) -> Lengths {
        self.lengths
    }
}

impl Expanding {
    /// Expands one message. If the caller has already parsed the message, with the limits of the policy, `parts` is the result.
    /// Then the message is not parsed again.
    pub(super) fn expand(
        &self,
        message: &Message<'_>,
        parts: Option<&Tree<'_>>,
    ) -> Result<(Edits, Said), Error> {
        let (expander, content) = (&self.expander, message.content);
        let beside = expander.beside(message);
        let expansion = match parts {
            Some(parts) => expander.expand_parsed(parts, beside.as_ref(), self.mode),
            None => expander.expand_beside(content, "", beside.as_ref(), self.mode),
        }?;
        let report = if self.mode.writes() {
            expansion.report
        } else {
            expansion.report.would()
        };
        let tells_rows = self.tells_rows || self.recorder.is_some();
        let said = Said::of(message, report, tells_rows);
        if let (Some(recorder), Some(origin)) = (&self.recorder, &said.origin) {
            let limits = expander.policy().limits.scan();
            recorder.mail(&origin.mailed(content), &said.report.rows, &limits);
        }
        Ok((expansion.edits, said))
    }
}

pub(super) struct Detaching(pub(super) Detacher);

impl Transform<Said> for Detaching {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.0.first_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, Said), Error> {
        let detachment = self.0.detach(message.content, "")?;
        Ok((detachment.edits, Said::of(message, detachment.report, true)))
    }

    fn weight(&self, said: &Said) -> usize {
        said.weight()
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }

    fn lengths(&self) -> Lengths {
        Transform::lengths(&self.0)
    }
}
