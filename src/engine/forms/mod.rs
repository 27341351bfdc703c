//! The forms in which content is in a message without being a part that mail programs can read: one directory each.
//!
//! A form finds its parts in the tree, reads their content, and says what the message becomes. [`place`] puts the new
//! parts where the old one was. No form needs anything but the message.

mod handled;
mod marks;
#[cfg(feature = "outlook")]
pub mod msg;
mod opening;
mod place;
pub mod rtf_body;
pub mod uuencode;
pub mod winmail;

use std::sync::LazyLock;

use bytes::Bytes;

use self::handled::Handled;
use self::marks::{Mark, Marks};
use self::opening::Opening;
use crate::edit::Edits;
use crate::engine::ledger::Ledger;
use crate::external_body::Follow;
use crate::lengths::{Lengths, corrected};
use crate::mime::{self, PartId, Tree};
use crate::policy::Policy;
use crate::report::{Kind, Outcome, Refusal, Row};

/// One form.
pub struct Form {
    /// The word of the policy that selects it.
    pub follow: Follow,
    /// The kind of its rows.
    kind: Kind,
    /// Returns the place of the first of the `marks`, at or after an offset. They are in other messages as well.
    pub first: fn(&[u8], usize) -> Option<usize>,
    /// The byte strings, one of which is in each message that has such a part.
    marks: fn() -> Vec<Mark>,
    /// Whether a part may be of this form.
    is_of: fn(&Tree<'_>, PartId) -> bool,
    /// Opens a part. `Ok(false)`: it is not of this form after all, or was opened before, and there is nothing to tell.
    open: fn(&mut Opening<'_>, PartId, &mut Row) -> Result<bool, Refusal>,
}

/// All forms. A new one is a directory and a row here.
pub const FORMS: &[Form] = &[
    Form {
        follow: Follow::Winmail,
        kind: Kind::Tnef,
        first: winmail::first,
        marks: winmail::marks,
        is_of: winmail::is_tnef,
        open: winmail::open,
    },
    Form {
        follow: Follow::RtfBody,
        kind: Kind::Rtf,
        first: rtf_body::first,
        marks: rtf_body::marks,
        is_of: rtf_body::is_rtf,
        open: rtf_body::open,
    },
    #[cfg(feature = "outlook")]
    Form {
        follow: Follow::Msg,
        kind: Kind::Msg,
        first: msg::first,
        marks: msg::marks,
        is_of: msg::is_msg,
        open: msg::open,
    },
    Form {
        follow: Follow::Uuencode,
        kind: Kind::Uuencode,
        first: uuencode::first,
        marks: uuencode::marks,
        is_of: uuencode::is_text,
        open: uuencode::open,
    },
];

static MARKS: LazyLock<Marks> =
    LazyLock::new(|| Marks::new(FORMS.iter().flat_map(|form| (form.marks)())));

/// Returns the place of the first mark of any form, at or after `from`: one search in place of one for each form.
pub fn first_of_any(bytes: &[u8], from: usize) -> Option<usize> {
    MARKS.first(bytes, from)
}

impl Form {
    /// Opens the parts of a message, and returns the edits and a row for each part.
    fn pass(&self, opening: &mut Opening<'_>, name: &str) -> Vec<Row> {
        let tree = opening.tree;
        let mut rows = Vec::new();
        for part in tree.ids().filter(|id| (self.is_of)(tree, *id)) {
            let mut row = Row::new(name, tree.number(part), self.kind, Outcome::Left);
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

/// Whether rows of this kind are of a form.
pub fn is_kind(kind: Kind) -> bool {
    FORMS.iter().any(|form| form.kind == kind)
}

/// A message whose parts were opened.
#[derive(Default, Debug)]
pub struct Opened {
    /// The message with the edits made. `None`: it is the original.
    pub made: Option<Bytes>,
    pub edits: Edits,
    pub rows: Vec<Row>,
}

impl Opened {
    /// Opens the parts of `message`, to which the edits of `self` were made before. New parts are looked at again, because
    /// a message within may have such parts.
    #[must_use]
    pub fn further(
        mut self,
        message: &[u8],
        policy: &Policy,
        ledger: &mut Ledger,
        name: &str,
    ) -> Self {
        let told = policy.reading_to_tell().forms;
        let limits = policy.limits.scan();
        // Most messages have nothing of any form.
        if first_of_any(self.made.as_deref().unwrap_or(message), 0).is_none() {
            return self;
        }
        for form in FORMS.iter().filter(|form| told.contains(form.follow)) {
            let mut handled = Handled::default();
            for level in 0..=policy.limits.depth {
                let current = self.made.as_deref().unwrap_or(message);
                // Most messages have nothing of the form, and need no scan.
                if (form.first)(current, 0).is_none() {
                    break;
                }
                if level == 0 {
                    ledger.spend(current.len());
                } else if ledger.work(current.len()).is_err() {
                    break;
                }
                let tree = mime::scan(current, &limits);
                let mut opening = Opening::new(&tree, policy, ledger, &mut handled);
                let rows = form.pass(&mut opening, name);
                let edits = opening.edits;
                handled.end_pass();
                // Parts that were left are looked at again in the next pass.
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
