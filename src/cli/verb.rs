//! Transforms of the commands: how each command processes a message, alone or in a mailbox.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use super::named_files::{NamedFiles, SavedAttachment};
use super::origin::RunOrigin;
use super::picture_watch::PictureWatch;
use super::survey::{JsonList, Survey};
use crate::edit::Edits;
use crate::engine::Mode;
use crate::engine::detach::Detachment;
use crate::engine::lengths::Lengths;
use crate::engine::report::{Detail, Outcome, Reason, Report, Row};
use crate::error::Error;
use crate::expand::detach::Detacher;
use crate::expand::{Expander, envelope};
use crate::fetch::record::WarcRecorder;
use crate::mailbox::{Envelope, Message, Transform};
use crate::mime::{MessageTree, PartId, ScanLimits, scan};

pub(super) struct VerbReport {
    pub(super) origin: Option<RunOrigin>,
    pub(super) report: Report,
    pub(super) survey: Option<Box<Survey>>,
    pub(super) listed: Vec<JsonList>,
    /// Attachments that get their file names when the message is reported.
    pub(super) files: Vec<SavedAttachment>,
}

impl VerbReport {
    /// Creates the report of a message. The origin of the message is only read if rows are printed, or if the mailbox
    /// keeps files next to it, because the table of missing files names the message.
    pub(super) fn of(message: &Message<'_>, report: Report, tells_rows: bool) -> Self {
        let is_named = !report.rows.is_empty() && (tells_rows || message.beside.is_some());
        Self {
            origin: is_named.then(|| origin(message)),
            report,
            survey: None,
            listed: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Returns the memory in bytes that this record occupies until its message is written.
    fn weight(&self) -> usize {
        let rows: usize = self.report.rows.iter().map(Row::weight).sum();
        let notes: usize = self.report.notes.iter().map(String::len).sum();
        let survey = self.survey.as_deref().map_or(0, size_of_val);
        let listed = self.listed.len() * size_of::<JsonList>();
        let files: usize = self.files.iter().map(SavedAttachment::weight).sum();
        size_of_val(self) + rows + notes + survey + listed + files
    }

    pub(super) fn list(&mut self, message: &Message<'_>, listed: Vec<JsonList>) {
        self.origin.get_or_insert_with(|| origin(message));
        self.listed = listed;
    }

    pub(super) fn name(&mut self, name: &str) {
        for row in &mut self.report.rows {
            name.clone_into(&mut row.message);
        }
        for listed in &mut self.listed {
            listed.name(name);
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

fn origin(message: &Message<'_>) -> RunOrigin {
    let source = message.source.display().to_string();
    RunOrigin::new(&source, message.number, message.content)
}

pub(super) struct ExpandRun {
    pub(super) expander: Expander,
    pub(super) mode: Mode,
    pub(super) lengths: Lengths,
    pub(super) recorder: Option<WarcRecorder>,
    /// Whether rows are printed. If not, the origin of a mail is not read, because reading it takes as long as reading
    /// the references.
    pub(super) tells_rows: bool,
    pub(super) pictures: PictureWatch,
}

impl Transform<VerbReport> for ExpandRun {
    fn ahead(&self, message: &Message<'_>) {
        self.expander.see(message);
    }

    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        let touched = self.expander.first_touch(bytes);
        match self.pictures.first_tag(bytes) {
            Some(tag) => Some(touched.map_or(tag, |touched| touched.min(tag))),
            None => touched,
        }
    }

    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        let mut touched = self.expander.touched_messages(bytes, ends);
        if let Some(tag) = self.pictures.first_tag(bytes) {
            let shown = ends.partition_point(|end| *end <= tag);
            if shown < ends.len()
                && let Err(place) = touched.binary_search(&shown)
            {
                touched.insert(place, shown);
            }
        }
        touched
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, VerbReport), Error> {
        self.expand(message, None)
    }

    fn weight(&self, said: &VerbReport) -> usize {
        said.weight()
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }

    fn lengths(&self) -> Lengths {
        self.lengths
    }
}

impl ExpandRun {
    /// Expands one message. `parts` is the parsed message if the caller has already parsed it with the limits of the
    /// policy, so that it is not parsed twice.
    pub(super) fn expand(
        &self,
        message: &Message<'_>,
        parts: Option<&MessageTree<'_>>,
    ) -> Result<(Edits, VerbReport), Error> {
        let (expander, content) = (&self.expander, message.content);
        self.pictures.meets(expander.policy(), content);
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
        let said = VerbReport::of(message, report, tells_rows);
        if let (Some(recorder), Some(origin)) = (&self.recorder, &said.origin) {
            let limits = expander.policy().limits.scan();
            recorder.mail(&origin.mailed(content), &said.report.rows, &limits);
        }
        Ok((expansion.edits, said))
    }
}

pub(super) struct DetachRun {
    pub(super) detacher: Detacher,
    /// Directory of `--files`, and the objects directory of a local store.
    pub(super) files: Option<(Arc<NamedFiles>, Option<PathBuf>)>,
}

impl DetachRun {
    /// Writes the detached contents of a message to files (`--files`).
    fn kept(&self, message: &Message<'_>, detachment: &Detachment) -> Vec<SavedAttachment> {
        let Some((files, objects)) = &self.files else {
            return Vec::new();
        };
        let limits = ScanLimits::default();
        let tree = scan(message.content, &limits);
        let numbers: HashMap<String, PartId> =
            tree.ids().map(|part| (tree.number(part), part)).collect();
        let attachments = detachment.report.rows.iter().zip(&detachment.attachments);
        let moved = attachments.filter_map(|(row, attachment)| {
            Some((*numbers.get(&row.part)?, row.bytes?, attachment.key?))
        });
        let kept = moved.filter_map(|(part, octets, key)| {
            files.keep(message, (&tree, part), (key, octets), |file| {
                // A file of the store is preferred to the content in memory, because its copy can share its disk
                // blocks.
                let object = objects.as_ref().map(|objects| objects.join(key.path()));
                if let Some(Ok(mut object)) = object.map(File::open)
                    && object.metadata()?.len() == octets
                {
                    io::copy(&mut object, file)?;
                    return Ok(());
                }
                let mut contents = detachment.objects.iter();
                let object = contents.find(|object| object.key == key);
                let content = object.map(|object| object.content(message.content));
                match content {
                    Some(Ok(content)) => file.write_all(&content),
                    _ => Err(io::Error::other(
                        "the content of the attachment cannot be decoded",
                    )),
                }
            })
        });
        kept.collect()
    }
}

impl Transform<VerbReport> for DetachRun {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.detacher.first_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, VerbReport), Error> {
        let detachment = self.detacher.detach(message.content, "")?;
        let files = self.kept(message, &detachment);
        let said = VerbReport::of(message, detachment.report, true);
        Ok((detachment.edits, VerbReport { files, ..said }))
    }

    fn weight(&self, said: &VerbReport) -> usize {
        said.weight()
    }

    fn envelope(&self, separator: &[u8], content: &[u8]) -> Envelope {
        envelope::of(separator, content)
    }

    fn lengths(&self) -> Lengths {
        Transform::lengths(&self.detacher)
    }
}
