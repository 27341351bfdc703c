//! The work on a message, and whether the result may go on.
//!
//! A message with trouble goes on unchanged, and a line says why. Only `--on-failure defer` makes the mail system try
//! again later, and nothing refuses mail.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::changes::Changes;
use super::codec::Reply;
use super::draft::{Incoming, Left};
use crate::edit::Edits;
use crate::error::Error;
use crate::expand::{Asking, Expander};
use crate::report::{Detail, Report, Setting};

#[derive(Debug)]
pub enum Verdict {
    Unchanged(Left),
    Changed(Edits, Changes),
    Later(Detail),
}

impl Verdict {
    pub fn write(&self, incoming: &Incoming, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Later(_) => return Reply::TryLater.write(to),
            Self::Changed(edits, changes) => {
                changes.write(&edits.splice(&incoming.bytes), incoming.newline, to)?;
            }
            Self::Unchanged(_) => {}
        }
        Reply::Continue.write(to)
    }
}

pub(super) fn most(expander: &Expander) -> usize {
    let most = expander.policy().limits.message;
    most.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    })
}

pub fn judge(expander: &Expander, incoming: &Incoming, keeps_blanks: bool) -> (Verdict, Report) {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let (bytes, searched) = (&incoming.bytes, incoming.searched);
        let prefilter = expander.prefilter();
        let kinds = prefilter.kinds_in_all(bytes, searched, incoming.kinds);
        match expander.run(bytes, kinds, &incoming.queue_id, Asking::Sources, None) {
            Ok(expansion) => {
                let verdict = verdict(expander, incoming, expansion.edits, keeps_blanks)?;
                Ok((verdict, expansion.report))
            }
            Err(Error::Deferred(why)) => Ok((Verdict::Later(why), Report::default())),
            Err(error) => Err(Left::Trouble(error.to_string())),
        }
    }));
    let defect = || Left::Trouble("a defect in embody".to_owned());
    // The report would name changes that were not made.
    judged
        .unwrap_or_else(|_| Err(defect()))
        .unwrap_or_else(|left| (Verdict::Unchanged(left), Report::default()))
}

fn verdict(
    expander: &Expander,
    incoming: &Incoming,
    edits: Edits,
    keeps_blanks: bool,
) -> Result<Verdict, Left> {
    if edits.is_empty() {
        return Ok(Verdict::Unchanged(Left::AsItIs));
    }
    // The ledger counts what is put in; a mark comes on top.
    let length = edits.splice(&incoming.bytes).len();
    let most = most(expander);
    if length > most && length > incoming.bytes.len() {
        return Err(Left::TooLarge(
            Detail::from(format!("it would have {length} bytes; "))
                .naming(Setting::Message)
                .measuring(most as u64, length as u64)
                .then(format!(" is {}", most)),
        ));
    }
    let changes = Changes::of(incoming, &edits, keeps_blanks)?;
    Ok(match changes.is_empty() {
        true => Verdict::Unchanged(Left::AsItIs),
        false => Verdict::Changed(edits, changes),
    })
}
