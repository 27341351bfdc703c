use std::time::SystemTime;

use bytes::Bytes;

use super::bodies::{BodyView, bodies};
use super::failure::ViewError;
use super::links::{LinkView, wrapped_links};
use super::look::{ChosenFiles, LookResults, look, repaired};
use super::parts::{PartView, parts};
use super::protection::{TextProtection, protection};
use super::references::{ReferenceState, ReferenceView, reference};
use super::source::{PartSource, declared_charset, field_text};
use crate::engine::Content;
use crate::engine::policy::Policy;
use crate::engine::report::Provenance;
use crate::mime::{PartId, date, scan};

/// A field of the header, for display.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct HeaderView {
    /// Name of the field, as it is written.
    pub name: String,
    /// The value, decoded and on one line.
    pub value: String,
}

/// One mail as the user sees it. See the [module](super).
#[derive(Debug)]
pub struct MailView {
    mail: Bytes,
    now: SystemTime,
    notes: Vec<String>,
    chosen: ChosenFiles,
    shown: ShownText,
}

/// Result of the engine for the mail, with the files that were chosen so far.
struct ShownText {
    findings: LookResults,
    /// For each reference, the index of its finding in `findings`.
    rows: Vec<usize>,
    header: Vec<HeaderView>,
    date: Option<i64>,
    bodies: Vec<BodyView>,
    protection: Option<TextProtection>,
    sources: Vec<PartSource>,
    parts: Vec<PartView>,
    references: Vec<ReferenceView>,
    links: Vec<LinkView>,
}

impl std::fmt::Debug for ShownText {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Shown")
            .field("header", &self.header)
            .field("bodies", &self.bodies)
            .field("protection", &self.protection)
            .field("parts", &self.parts)
            .field("references", &self.references)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

/// Maximum number of header fields that are shown. Ordinary mail has at most a few hundred.
const MOST_FIELDS: usize = 2000;

impl MailView {
    /// Shows one mail. `now` is the current time, which decides whether a file in cloud storage has expired.
    pub fn new(mail: impl Into<Bytes>, now: SystemTime) -> Self {
        Self::with_notes(mail.into(), now, Vec::new())
    }

    pub(super) fn with_notes(mail: Bytes, now: SystemTime, notes: Vec<String>) -> Self {
        let chosen = ChosenFiles::new();
        let shown = ShownText::of(&mail, now, &chosen);
        Self {
            mail,
            now,
            notes,
            chosen,
            shown,
        }
    }

    /// Returns the mail as it was opened, byte for byte. For a message of Outlook, this is the mail that was made of it.
    pub fn original(&self) -> &Bytes {
        &self.mail
    }

    /// Returns sentences about what could not be read, for example properties of a message of Outlook, or the end of a damaged
    /// one.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns all fields of the header, in their order.
    pub fn header(&self) -> &[HeaderView] {
        &self.shown.header
    }

    /// Returns the value of the first field with this name, decoded. It is empty if there is no such field.
    pub fn field(&self, name: &str) -> &str {
        let mut fields = self.shown.header.iter();
        let field = fields.find(|it| it.name.eq_ignore_ascii_case(name));
        field.map_or("", |field| &field.value)
    }

    /// Returns the subject, decoded.
    pub fn subject(&self) -> &str {
        self.field("Subject")
    }

    /// Returns the time in the Date field, in seconds since 1970.
    pub fn date(&self) -> Option<i64> {
        self.shown.date
    }

    /// Returns the texts of the mail, in their order.
    pub fn bodies(&self) -> &[BodyView] {
        &self.shown.bodies
    }

    /// Returns why texts of the mail cannot be shown: they are encrypted, or inside a signature. Returns `None` if the texts are
    /// in [`bodies`](Self::bodies).
    pub fn protection(&self) -> Option<TextProtection> {
        self.shown.protection
    }

    /// Returns the parts of the mail, also those that were in `winmail.dat`, in texts or in `data:` URLs.
    pub fn parts(&self) -> &[PartView] {
        &self.shown.parts
    }

    /// Returns the decoded content of a part, by its position in [`parts`](Self::parts). The content of a mail inside the mail
    /// is a mail, for [`MailView::new`].
    pub fn content(&self, part: usize) -> Option<Vec<u8>> {
        let source = *self.shown.sources.get(part)?;
        Some(source.content(&self.shown.findings.opened).into_owned())
    }

    /// Returns the references of the mail: content that it lacks, and content in a form that few programs can show.
    pub fn references(&self) -> &[ReferenceView] {
        &self.shown.references
    }

    /// Returns the links that a mail filter or a picture proxy replaced with URLs of its own server, with their targets. The
    /// texts and the repaired mail contain the links as the mail has them.
    pub fn wrapped_links(&self) -> &[LinkView] {
        &self.shown.links
    }

    /// Inserts a file of the user in place of a reference, which is given by its position in
    /// [`references`](Self::references). The lists of parts and references change.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be the content, for example if it does not match the digest in the mail.
    /// The view then stays as it is.
    pub fn fill(
        &mut self,
        reference: usize,
        bytes: impl Into<Bytes>,
        media_type: Option<&str>,
    ) -> Result<(), ViewError> {
        let findings = &self.shown.findings;
        let row = self.shown.rows.get(reference);
        let finding = row.and_then(|row| findings.rows.get(*row));
        let Some(need) = finding.and_then(|finding| finding.need.clone()) else {
            return Err(ViewError::new(
                "no file can be put in the place of this reference",
            ));
        };
        let filled = self.filled();
        let media_type = media_type.filter(|it| !it.is_empty()).map(str::to_owned);
        let mut content = Content::new(need.url().unwrap_or_default(), media_type, bytes);
        content.origin.from = Provenance::File;
        self.chosen.insert(need.clone(), content);
        let shown = ShownText::of(&self.mail, self.now, &self.chosen);
        let before = std::mem::replace(&mut self.shown, shown);
        if self.filled() > filled {
            return Ok(());
        }
        let row = before.rows.get(reference);
        let left = row.and_then(|row| self.shown.findings.rows.get(*row));
        let why = left.map(|it| it.row.detail.to_string()).unwrap_or_default();
        self.chosen.remove(&need);
        self.shown = before;
        Err(ViewError::new(format!(
            "the file cannot be put into the mail: {why}"
        )))
    }

    /// Returns the number of references that a chosen file has replaced.
    fn filled(&self) -> usize {
        let is_filled = |it: &&ReferenceView| it.state == ReferenceState::Filled;
        self.references().iter().filter(is_filled).count()
    }

    /// Returns the repaired mail: content in a form that few programs show is converted, and the chosen files are
    /// inserted. All other bytes stay as they are. Without chosen files, this is the result of `embody filter --follow
    /// all`.
    pub fn repaired(&self) -> Vec<u8> {
        let rows = &self.shown.findings.rows;
        repaired(&self.mail, self.now, &self.chosen, rows)
    }
}

impl ShownText {
    fn of(mail: &Bytes, now: SystemTime, chosen: &ChosenFiles) -> Self {
        let findings = look(mail, now, chosen);
        let tree = scan(&findings.opened, &Policy::default().limits.scan());
        let fields = tree.fields(PartId::ROOT);
        let mut types = tree.ids().filter_map(|id| tree.value(id, "Content-Type"));
        let label = types.find_map(declared_charset);
        let shown_fields = fields
            .iter(tree.original)
            .take(MOST_FIELDS)
            .map(|field| HeaderView {
                name: String::from_utf8_lossy(field.name.of(tree.original)).into_owned(),
                value: field_text(field.value.of(tree.original), label.as_deref()),
            });
        let header = shown_fields.collect();
        let bodies = bodies(&tree);
        let protection = protection(&tree, &bodies);
        let (sources, parts) = parts(&tree, &bodies).into_iter().unzip();
        let date = tree.value(PartId::ROOT, "Date").and_then(date::seconds);
        let numbered = findings.rows.iter().enumerate();
        let (rows, references) = numbered
            .filter_map(|(index, finding)| Some((index, reference(finding)?)))
            .unzip();
        Self {
            rows,
            header,
            date,
            bodies: bodies.into_iter().map(|it| it.body).collect(),
            protection,
            sources,
            parts,
            references,
            links: wrapped_links(&tree),
            findings,
        }
    }
}
