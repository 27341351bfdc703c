use std::io;
use std::path::Path;

use crate::edit::Edits;
use crate::error::Error;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::failure::cannot_write;
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::forms::rewrite::{RewriteRefusal, Rewritten};
use crate::mailbox::{Message, Observer, Program, Stop, Transform};

pub(crate) struct TransformResult<S> {
    pub(crate) new: Option<Vec<u8>>,
    said: S,
    is_refused: bool,
}

impl<S> TransformResult<S> {
    /// Returns the memory that is needed until the message is written, in bytes.
    pub(crate) fn weight(&self, transform: Option<&dyn Transform<S>>) -> usize {
        let new = self.new.as_ref().map_or(0, Vec::len);
        new + transform.map_or(0, |transform| transform.weight(&self.said))
    }

    pub(crate) fn tell(self, observer: &dyn Observer<S>) {
        observer.event(MailboxEvent::Message(self.said, self.is_refused));
    }
}

/// The transform of a run.
pub(crate) struct MessageTransform<'a, S> {
    /// `None` if the run only reads.
    pub(crate) transform: Option<&'a dyn Transform<S>>,
    pub(crate) observer: &'a dyn Observer<S>,
    pub(crate) stop: &'a Stop,
}

impl<'a, S> MailboxJob<'a, S> {
    pub(crate) fn message_transform(&self) -> MessageTransform<'a, S> {
        MessageTransform {
            transform: self.transform,
            observer: self.observer,
            stop: self.stop,
        }
    }

    pub(crate) fn single(
        &self,
        place: (u64, &Path),
        content: &[u8],
        beside: Option<Program>,
        splice: fn(&[u8], &Edits) -> Rewritten,
    ) -> Result<Option<TransformResult<S>>, Error> {
        let run = self.message_transform();
        run.single(place, content, beside, splice)
    }
}

impl<S> MessageTransform<'_, S> {
    /// Transforms a message that is not in an mbox. Returns `None` if no change is possible.
    pub(crate) fn single(
        &self,
        (number, source): (u64, &Path),
        content: &[u8],
        beside: Option<Program>,
        splice: fn(&[u8], &Edits) -> Rewritten,
    ) -> Result<Option<TransformResult<S>>, Error> {
        match self.transform {
            // If attachments are in files next to the mailbox, the message may refer to them without any search word,
            // so it is always transformed.
            Some(transform) if beside.is_some() || transform.next_touch(content).is_some() => {
                let message = Message {
                    number,
                    source,
                    content,
                    at: None,
                    quoting: Quoting::None,
                    beside,
                };
                let splice = |edits: &Edits| splice(content, edits);
                self.transformed(transform, &message, splice).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Transforms a message. `splice` applies the edits.
    pub(crate) fn transformed(
        &self,
        transform: &dyn Transform<S>,
        message: &Message<'_>,
        splice: impl FnOnce(&Edits) -> Rewritten,
    ) -> Result<TransformResult<S>, Error> {
        let (edits, said) = transform.transform(message)?;
        // A transform that was stopped may have skipped its requests, so its result may be incomplete and is not used.
        self.stop.check()?;
        let (new, is_refused) = match splice(&edits) {
            Ok(new) => (new, false),
            Err(RewriteRefusal::Separator) => (None, true),
            Err(RewriteRefusal::Misfit) => {
                let number = message.number;
                let what = format!(
                    "cannot change message {number}: a change would affect bytes outside the message; this is a defect of embody, please report it"
                );
                return Err(cannot_write(message.source)(io::Error::other(what)));
            }
        };
        Ok(TransformResult {
            new,
            said,
            is_refused,
        })
    }
}
