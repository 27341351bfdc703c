//! What is done to a message: the expander's work, and whether the result may go on.
//!
//! Trouble leaves the message: it goes on unchanged, and a line says why. Only `--on-failure defer` makes the mail
//! system try again later, and nothing refuses mail.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::changes::Changes;
use super::codec::Reply;
use super::draft::{Incoming, Left};
use crate::edit::Edits;
use crate::error::Error;
use crate::expand::Expander;
use crate::report::{Detail, Report, Setting};

/// An expander, and how large a message may become.
#[derive(Debug)]
pub struct Service {
    pub(super) expander: Expander,
    pub(super) most: usize,
}

/// What is told the mail system.
#[derive(Debug)]
pub enum Verdict {
    Unchanged(Left),
    Changed(Edits, Changes),
    Later(Detail),
}

impl Verdict {
    /// Writes what the mail system is told about this message.
    pub fn write(&self, incoming: &Incoming, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Later(_) => return Reply::TryLater.write(to),
            Self::Changed(edits, changes) => {
                let output = edits.splice(&incoming.bytes);
                changes.write(&output, incoming.newline, to)?;
            }
            Self::Unchanged(_) => {}
        }
        Reply::Continue.write(to)
    }
}

impl Service {
    /// A service. The largest message is that of the expander's policy.
    pub fn new(expander: Expander) -> Self {
        let most = expander.policy().limits.message.unwrap_or(u64::MAX);
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            expander,
        }
    }

    /// Works on a message: what the mail system is told, and what was done and what was not. As to `keeps_blanks`, see
    /// [`Changes::of`].
    pub fn judge(&self, incoming: &Incoming, keeps_blanks: bool) -> (Verdict, Report) {
        let trouble = |what: String| (Verdict::Unchanged(Left::Trouble(what)), Report::default());
        let expanded = catch_unwind(AssertUnwindSafe(|| {
            let (bytes, searched) = (&incoming.bytes, incoming.searched);
            let prefilter = self.expander.prefilter();
            let kinds = prefilter.kinds_in_all(bytes, searched, incoming.kinds);
            let name = &incoming.queue_id;
            let expansion = self.expander.expand_known(bytes, kinds, name)?;
            Ok((expansion.edits, expansion.report))
        }));
        match expanded {
            Ok(Ok((edits, report))) => match self.verdict(incoming, edits, keeps_blanks) {
                Ok(verdict) => (verdict, report),
                // Nothing of what the report says was done.
                Err(left) => (Verdict::Unchanged(left), Report::default()),
            },
            Ok(Err(Error::Deferred(why))) => (Verdict::Later(why), Report::default()),
            Ok(Err(error)) => trouble(error.to_string()),
            Err(_) => trouble("a defect in embody".to_owned()),
        }
    }

    fn verdict(
        &self,
        incoming: &Incoming,
        edits: Edits,
        keeps_blanks: bool,
    ) -> Result<Verdict, Left> {
        if edits.is_empty() {
            return Ok(Verdict::Unchanged(Left::AsItIs));
        }
        // The ledger counts what is put in; a mark, say, comes on top.
        let length = edits.splice(&incoming.bytes).len();
        if length > self.most && length > incoming.bytes.len() {
            return Err(Left::TooLarge(
                Detail::from(format!("it would have {length} bytes; "))
                    .naming(Setting::Message)
                    .measuring(self.most as u64, length as u64)
                    .then(format!(" is {}", self.most)),
            ));
        }
        let changes = || Changes::of(incoming, &edits, keeps_blanks);
        match catch_unwind(AssertUnwindSafe(changes)) {
            Ok(Ok(changes)) if changes.is_empty() => Ok(Verdict::Unchanged(Left::AsItIs)),
            Ok(Ok(changes)) => Ok(Verdict::Changed(edits, changes)),
            Ok(Err(left)) => Err(left),
            Err(_) => Err(Left::Trouble("a defect in embody".to_owned())),
        }
    }
}
