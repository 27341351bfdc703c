//! Forms in which a message contains content that mail programs cannot read, such as winmail.dat. Each form has a directory.
//!
//! A form finds its parts in the tree, reads their content, and decides what replaces them. [`place`] inserts the new parts in
//! the place of the old one. All content is in the message, so a form makes no requests.

pub(crate) mod apple;
pub(crate) mod eudora;
mod handled;
pub(crate) mod hosted;
mod known;
pub(crate) mod mailman;
mod marks;
#[cfg(feature = "outlook")]
pub(crate) mod msg;
mod opening;
mod place;
mod placing;
pub(crate) mod reference_form;
pub(crate) mod references;
mod rfc2046;
pub(crate) mod rtf_body;
pub(crate) mod shortcut;
pub(crate) mod sympa;
pub(crate) mod thunderbird;
pub(crate) mod uuencode;
pub(crate) mod winmail;
pub(crate) mod yahoo;

use std::sync::LazyLock;

use bytes::Bytes;

use self::handled::HandledParts;
#[cfg(feature = "cli")]
pub(crate) use self::hosted::{TextLink, links_in_text as cloud_links_in_text};
#[cfg(feature = "cli")]
pub(crate) use self::mailman::notes_without_proof;
use self::marks::{FormMark, Marks};
use self::opening::FormOpener;
use crate::edit::Edits;
use crate::engine::external_body::file_names::file_name;
use crate::engine::ledger::Ledger;
use crate::engine::lengths::{Lengths, corrected};
use crate::engine::policy::{Follow, Policy};
use crate::engine::report::{Kind, Outcome, Refusal, Row};
use crate::engine::search_words::PrefilterWord;
use crate::mime::{self, MessageTree, PartId};

/// One form in which a message can contain content that mail programs cannot read, such as winmail.dat: its names, and the
/// functions that find and open its parts.
pub(crate) struct ContentForm {
    /// The word of the option `--follow` that selects this form.
    pub follow: Follow,
    /// Kind of the report rows for this form.
    kind: Kind,
    /// Function that searches a message, from an offset, for byte strings that belong to this form (marks). It returns
    /// the position of the first one. A mark alone does not prove that the message has a part of this form.
    pub first: fn(&[u8], usize) -> Option<usize>,
    /// Function that returns the marks: byte strings of which at least one occurs in every message with a part of this
    /// form.
    marks: fn() -> Vec<FormMark>,
    /// Words in the header of parts of this form, for which the prefilter always searches. See
    /// [`Needles::Words`](reference_form::Needles::Words).
    pub words: &'static [PrefilterWord],
    /// Words of the media types that parts of this form have. If every part of this form has one of them, messages of a
    /// mailbox are searched for marks only if they contain such a word, which is much faster. Empty if a part of this
    /// form can have other media types.
    pub types: &'static [PrefilterWord],
    /// Function that returns true if a part may be of this form.
    is_of: fn(&MessageTree<'_>, PartId) -> bool,
    /// Function that opens a part. It returns `Ok(false)` if the part gets no row in the report, because the part is
    /// not of this form or was opened before.
    open: fn(&mut FormOpener<'_>, PartId, &mut Row) -> Result<bool, Refusal>,
}

/// All forms. To add a form, create a directory and add an entry here.
pub(crate) const FORMS: &[ContentForm] = &[
    // Parts in the transfer encoding `x-uuencode` come first, because their decoded content can be any other form. The
    // last form has the same kind, so its rows replace those of the parts that stay unchanged here.
    ContentForm {
        follow: Follow::Uuencode,
        kind: Kind::Uuencode,
        first: uuencode::first,
        marks: uuencode::marks,
        words: &[],
        types: &[],
        is_of: uuencode::encoded_part::is_encoded_part,
        open: uuencode::encoded_part::open,
    },
    ContentForm {
        follow: Follow::Winmail,
        kind: Kind::Tnef,
        first: winmail::first,
        marks: winmail::marks,
        words: &winmail::WORDS,
        types: &winmail::TYPES,
        is_of: winmail::is_tnef,
        open: winmail::open,
    },
    ContentForm {
        follow: Follow::RtfBody,
        kind: Kind::Rtf,
        first: rtf_body::first,
        marks: rtf_body::marks,
        words: &[],
        types: &[],
        is_of: rtf_body::is_rtf,
        open: rtf_body::open,
    },
    #[cfg(feature = "outlook")]
    ContentForm {
        follow: Follow::Msg,
        kind: Kind::Msg,
        first: msg::first,
        marks: msg::marks,
        words: &[],
        types: &[],
        is_of: msg::is_msg,
        open: msg::open,
    },
    ContentForm {
        follow: Follow::Uuencode,
        kind: Kind::Uuencode,
        first: uuencode::first,
        marks: uuencode::marks,
        words: &[],
        types: &[],
        is_of: uuencode::is_uuencoded,
        open: uuencode::open,
    },
];

static MARKS: LazyLock<Marks> =
    LazyLock::new(|| Marks::new(FORMS.iter().flat_map(|form| (form.marks)())));

/// Returns the position at or after `from` of the first byte string that may belong to a part of any form (a mark). One
/// search for all forms is faster than one search for each.
pub(crate) fn first_of_any(bytes: &[u8], from: usize) -> Option<usize> {
    MARKS.first(bytes, from)
}

impl ContentForm {
    /// Opens all parts of this form in a message, and returns a row for each.
    fn pass(&self, opening: &mut FormOpener<'_>, name: &str) -> Vec<Row> {
        let tree = opening.tree;
        let mut rows = Vec::new();
        for part in tree.ids().filter(|id| (self.is_of)(tree, *id)) {
            let mut row = Row::new(name, tree.number(part), self.kind, Outcome::Left);
            row.name = file_name(tree.original, tree.fields(part));
            row.media_type = Some(tree.part(part).essence.clone());
            row.bytes = Some(tree.part(part).body.len() as u64);
            match (self.open)(opening, part, &mut row) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(refusal) => row.tell_refusal(refusal),
            }
            rows.push(row);
        }
        rows
    }
}

/// Whether rows of this kind describe opened parts, such as winmail.dat. Parts are opened before references are
/// followed.
pub(crate) fn is_kind(kind: Kind) -> bool {
    kind == eudora::KIND || FORMS.iter().any(|form| form.kind == kind)
}

/// Whether a part may be of one of these forms. Opening such a part can remove it from the message.
#[cfg(feature = "cli")]
pub(crate) fn may_open(tree: &MessageTree<'_>, part: PartId) -> bool {
    FORMS.iter().any(|form| (form.is_of)(tree, part))
}

/// Returns the forms whose parts a run opened, according to its report.
#[cfg(feature = "cli")]
pub(crate) fn opened_by(rows: &[Row]) -> Vec<Follow> {
    let is_opened = |form: &&ContentForm| {
        rows.iter()
            .any(|row| row.kind == form.kind && row.outcome == Outcome::Expanded)
    };
    let mut opened: Vec<Follow> = FORMS
        .iter()
        .filter(is_opened)
        .map(|form| form.follow)
        .collect();
    opened.dedup();
    opened
}

/// Whether mailboxes of this kind store messages in a form other than MIME, as Eudora does, which stores attachments as
/// files. Each message is then converted to MIME first, even if the prefilter finds nothing in it.
pub(crate) fn converts_messages(beside: Follow) -> bool {
    beside == eudora::FOLLOW
}

/// Progress of opening the parts of a message: the message so far, the edits and the rows.
#[derive(Default, Debug)]
pub(crate) struct OpenResult {
    /// The message after the edits so far, or `None` if it is unchanged.
    pub made: Option<Bytes>,
    pub edits: Edits,
    pub rows: Vec<Row>,
}

impl OpenResult {
    /// Opens the parts of `message`, to which the edits in `self` were already applied. The result is searched again, because
    /// an opened message can itself contain parts of a form.
    #[must_use]
    pub(crate) fn further(
        mut self,
        message: &[u8],
        policy: &Policy,
        ledger: &mut Ledger,
        name: &str,
    ) -> Self {
        let told = policy.reading_to_tell().forms;
        let limits = policy.limits.scan();
        // Most messages do not contain any byte string that belongs to a form. Such a message is returned without being
        // parsed.
        if first_of_any(self.made.as_deref().unwrap_or(message), 0).is_none() {
            return self;
        }
        for form in FORMS.iter().filter(|form| told.contains(form.follow)) {
            let mut handled = HandledParts::default();
            for level in 0..=policy.limits.depth {
                let current = self.made.as_deref().unwrap_or(message);
                // The message contains no byte string of this form, so it has no part of this form and need not be
                // parsed.
                if (form.first)(current, 0).is_none() {
                    break;
                }
                if level == 0 {
                    ledger.spend(current.len());
                } else if ledger.work(current.len()).is_err() {
                    break;
                }
                let tree = mime::scan(current, &limits);
                let mut opening = FormOpener::new(&tree, policy, ledger, &mut handled);
                let rows = form.pass(&mut opening, name);
                let edits = opening.edits;
                handled.end_pass();
                // Unchanged parts were examined again in this pass and got new rows, so the rows of the last pass are
                // dropped.
                let is_settled = |row: &Row| row.kind != form.kind || row.outcome != Outcome::Left;
                self.rows.retain(is_settled);
                self.rows.extend(rows);
                if edits.is_empty() || !policy.follow.contains(form.follow) {
                    break;
                }
                let edits = corrected(&tree, edits, Lengths::Corrected, &limits).0;
                ledger.keep();
                drop(self.made.take());
                let all = std::mem::take(&mut self.edits).then(message.len(), edits);
                (self.made, self.edits) = all.put_together(message);
            }
        }
        self
    }
}
