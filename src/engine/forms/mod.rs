//! The forms in which content is in a message without being a part that mail programs can read: one directory each.
//!
//! A form finds its parts in the tree, reads their content, and says what the message becomes. [`place`] puts the new
//! parts where the old one was. No form needs anything but the message.

mod handled;
mod place;
pub mod rtf_body;
pub mod uuencode;
pub mod winmail;

use bytes::Bytes;

use self::handled::Handled;
use crate::edit::Edits;
use crate::external_body::Follow;
use crate::ledger::Ledger;
use crate::lengths::{Lengths, corrected};
use crate::mime::{self, Tree};
use crate::policy::Policy;
use crate::report::{Kind, Outcome, Row};

/// A form: the word of its policy, the kind of its rows, and the function that opens its parts.
type Form = (
    Follow,
    Kind,
    fn(&Tree<'_>, &Policy, &mut Ledger, &str, &mut Handled) -> (Edits, Vec<Row>),
);

const FORMS: &[Form] = &[
    (Follow::Winmail, Kind::Tnef, winmail::open),
    (Follow::RtfBody, Kind::Rtf, rtf_body::open),
    (Follow::Uuencode, Kind::Uuencode, uuencode::open),
];

/// Whether rows of this kind are of a form.
pub fn is_kind(kind: Kind) -> bool {
    FORMS.iter().any(|form| form.1 == kind)
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
        for (follow, kind, open) in FORMS.iter().filter(|form| told.contains(form.0)) {
            let mut handled = Handled::default();
            for level in 0..=policy.limits.depth {
                let current = self.made.as_deref().unwrap_or(message);
                if level == 0 {
                    ledger.spend(current.len());
                } else if ledger.work(current.len()).is_err() {
                    break;
                }
                let tree = mime::scan(current, &limits);
                let (edits, rows) = open(&tree, policy, ledger, name, &mut handled);
                handled.end_pass();
                // Parts that were left are looked at again in the next pass.
                let is_settled = |row: &Row| row.kind != *kind || row.outcome != Outcome::Left;
                self.rows.retain(is_settled);
                self.rows.extend(rows);
                if edits.is_empty() || !policy.follow.contains(*follow) {
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
