//! Copies an mbox to another mbox: to a new file, to an open file, or in place.
//!
//! Only changed messages get different bytes. Everything else is copied as it is, including the bytes outside of messages.

use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::forms::imap_backup::LengthChange;
use crate::mailbox::letter_work::{EditedForm, LetterResults, WorkedLetter};
use crate::mailbox::read::sink::Sink;
use crate::mailbox::reader::{MboxLetters, MboxPart};

/// Function that gets the bytes of an mbox, in order.
type SeeBytes<'c> = &'c mut (dyn FnMut(&[u8]) + Send);

/// A copy of an mbox that is being written.
pub(crate) struct MboxCopy<'c, 's> {
    pub(crate) sink: &'c mut Sink<'s>,
    /// Gets all bytes that were read. `None` if they are not needed.
    pub(crate) seen: Option<SeeBytes<'c>>,
    /// Gets the messages whose lengths differ in the copy, in the order of the mbox. `None` if their lengths are not needed.
    pub(crate) changes: Option<&'c mut Vec<LengthChange>>,
}

impl<'c, 's> MboxCopy<'c, 's> {
    pub(crate) fn to(sink: &'c mut Sink<'s>) -> Self {
        Self {
            sink,
            seen: None,
            changes: None,
        }
    }

    /// Writes the bytes of letters with their changed messages. `at` is their offset in the mbox. Returns the counts of the
    /// result.
    fn add<S>(
        &mut self,
        letters: &MboxLetters,
        at: u64,
        done: &[(usize, WorkedLetter<S>)],
    ) -> Result<Summary, Error> {
        let bytes = letters.bytes();
        if let Some(seen) = &mut self.seen {
            seen(bytes);
        }
        let mut result = Summary::of(|sum| sum.bytes_out = bytes.len() as u64);
        let mut copied = 0;
        for (index, worked) in done {
            let Some(new) = worked.done.as_ref().and_then(|done| done.new.as_deref()) else {
                continue;
            };
            let range = letters.range(*index);
            let (before, after) = (range.len() as u64, new.len() as u64);
            self.sink.keep(&bytes[copied..range.start])?;
            self.sink.put(new)?;
            result.bytes_out += after;
            result.bytes_out -= before;
            result.changed += 1;
            copied = range.end;
            if let Some(changes) = &mut self.changes {
                changes.push(LengthChange {
                    offset: at + range.start as u64,
                    before,
                    after,
                });
            }
        }
        self.sink.keep(&bytes[copied..])?;
        Ok(result)
    }
}

impl<S: Send> MailboxJob<'_, S> {
    /// Copies the messages of one part of a source. Returns the part after its last message.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read or the copy cannot be written, and the errors of the transform.
    pub(crate) fn copy_part(
        &self,
        mut part: MboxPart,
        copy: &mut MboxCopy<'_, '_>,
        summary: &mut Summary,
    ) -> Result<MboxPart, Error> {
        summary.mailboxes = 1;
        let run = self.message_transform();
        run.transform_letters(
            self.options.read.pool_limits(),
            || part.next(),
            EditedForm::Entry,
            |letters: &MboxLetters, done: LetterResults<S>, summary: &mut Summary| {
                let finished = done
                    .into_iter()
                    .map(|(index, worked)| Ok((index, worked?)))
                    .collect::<Result<Vec<_>, Error>>()?;
                summary.add(&copy.add(letters, summary.bytes_in, &finished)?);
                for (_, worked) in finished {
                    if let Some(done) = worked.done {
                        done.tell(self.observer);
                    }
                }
                Ok(())
            },
            summary,
        )?;
        Ok(part)
    }
}
