//! What is done to a message: the expander's work, and whether the result may go on.
//!
//! Trouble leaves the message: it goes on unchanged, and a line says why. Only `--on-failure defer` makes the mail
//! system try again later, and nothing refuses mail.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::changes::{Changes, Unsaid, Values};
use super::codec::Reply;
use super::draft::{Incoming, Untouched};
use super::session::Interest;
use crate::edit::Edits;
use crate::error::Error;
use crate::expand::{Expander, Kinds};
use crate::report::{Detail, Report, Setting};

/// An expander, and how large a message may become.
#[derive(Debug)]
pub struct Service {
    expander: Expander,
    most: usize,
}

/// What became of a message.
#[derive(Debug)]
pub struct Judged {
    /// What is told the mail system.
    pub verdict: Verdict,
    /// What was done and what was not.
    pub report: Report,
    /// How long it took.
    pub elapsed: Duration,
}

/// What is told the mail system.
#[derive(Debug)]
pub enum Verdict {
    /// The message goes on unchanged.
    Unchanged(Left),
    /// It is to be changed.
    Changed(Edits, Changes),
    /// It is to be tried again later; why.
    Later(Detail),
}

/// Why a message goes on unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Left {
    /// Nothing in it is to be changed.
    AsItIs,
    /// It is too large, or would be.
    TooLarge(Detail),
    /// Something is wrong: with its header, or with embody.
    Trouble(String),
}

impl Verdict {
    /// Writes what the mail system is told about this message.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(
        &self,
        incoming: &Incoming,
        values: Values,
        to: &mut impl Write,
    ) -> io::Result<()> {
        match self {
            Self::Later(_) => return Reply::TryLater.write(to),
            Self::Changed(edits, changes) => {
                let output = edits.splice(&incoming.bytes);
                changes.write(&output, incoming.newline, values, to)?;
            }
            Self::Unchanged(_) => {}
        }
        Reply::Continue.write(to)
    }
}

impl Service {
    /// A service. The largest message is that of the expander's policy.
    #[must_use]
    pub fn new(expander: Expander) -> Self {
        let most = expander.policy().limits.message.unwrap_or(u64::MAX);
        Self {
            most: usize::try_from(most).unwrap_or(usize::MAX),
            expander,
        }
    }

    /// What a message that was not held is left for.
    #[must_use]
    pub fn untouched(&self, why: &Untouched) -> Left {
        match why {
            Untouched::NothingToDo => Left::AsItIs,
            Untouched::TooLarge => Left::TooLarge(
                Detail::from(format!("it has more than {} bytes, which is ", self.most))
                    .naming(Setting::Message),
            ),
            Untouched::OddHeader(what) => Left::Trouble((*what).to_owned()),
        }
    }

    /// Works on a message.
    #[must_use]
    pub fn judge(&self, incoming: &Incoming) -> Judged {
        let begun = Instant::now();
        let expanded = catch_unwind(AssertUnwindSafe(|| {
            let (bytes, searched) = (&incoming.bytes, incoming.searched);
            let prefilter = self.expander.prefilter();
            let kinds = prefilter.kinds_in_all(bytes, searched, incoming.kinds);
            let name = &incoming.queue_id;
            let expansion = self.expander.expand_known(bytes, kinds, name)?;
            Ok((expansion.edits, expansion.report))
        }));
        let (verdict, report) = match expanded {
            Ok(Ok((edits, report))) => match self.verdict(incoming, edits) {
                Ok(verdict) => (verdict, report),
                // Nothing of what the report says was done.
                Err(left) => (Verdict::Unchanged(left), Report::default()),
            },
            Ok(Err(Error::Deferred(why))) => (Verdict::Later(why), Report::default()),
            Ok(Err(error)) => {
                let left = Left::Trouble(error.to_string());
                (Verdict::Unchanged(left), Report::default())
            }
            Err(_) => {
                let left = Left::Trouble("a defect in embody".to_owned());
                (Verdict::Unchanged(left), Report::default())
            }
        };
        Judged {
            verdict,
            report,
            elapsed: begun.elapsed(),
        }
    }

    fn verdict(&self, incoming: &Incoming, edits: Edits) -> Result<Verdict, Left> {
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
        let changes = catch_unwind(AssertUnwindSafe(|| Changes::of(incoming, &edits)));
        match changes {
            Ok(Ok(changes)) if changes.is_empty() => Ok(Verdict::Unchanged(Left::AsItIs)),
            Ok(Ok(changes)) => Ok(Verdict::Changed(edits, changes)),
            Ok(Err(Unsaid::Odd(what))) => Err(Left::Trouble(what.to_owned())),
            Ok(Err(Unsaid::TooMuch(what))) => Err(Left::TooLarge(what.into())),
            Ok(Err(Unsaid::Defect(what))) => {
                Err(Left::Trouble(format!("a defect in embody: {what}")))
            }
            Err(_) => Err(Left::Trouble("a defect in embody".to_owned())),
        }
    }
}

impl Interest for Service {
    fn most(&self) -> usize {
        self.most
    }

    fn matters(&self, header: &[u8]) -> bool {
        self.expander.body_matters(header)
    }

    fn kinds(&self, bytes: &[u8], searched: usize, known: Kinds) -> Kinds {
        let prefilter = self.expander.prefilter();
        prefilter.kinds_so_far(bytes, searched, known)
    }
}
