//! Delivers the messages of a reader to a mailbox of another format. Several messages are read and transformed at the same time.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::event::MailboxEvent;
use crate::mailbox::forms::rewrite;
use crate::mailbox::kind::StartKind;
use crate::mailbox::place::delivery::{Delivery, StoredState};
#[cfg(feature = "outlook")]
use crate::mailbox::pst_file::PstFolder;
use crate::mailbox::read::messages::TransformResult;
#[cfg(feature = "outlook")]
use crate::mailbox::reader::PstReader;
use crate::mailbox::reader::{
    FolderReader, Letter, LetterFacts, Letters, MailboxReader, ReadContext,
};
use crate::pool;

/// A message that was read and transformed.
struct OpenedLetter<S> {
    /// Content of the message, unless the letters keep it or the transform has changed it.
    content: Option<Vec<u8>>,
    done: Option<TransformResult<S>>,
    stored: StoredState,
}

impl<S: Send> MailboxJob<'_, S> {
    /// Delivers the messages of a folder in an Outlook mailbox. Without a delivery, the messages are read and transformed, but
    /// not written.
    #[cfg(feature = "outlook")]
    pub(crate) fn pst_to(
        &self,
        folder: &PstFolder,
        delivery: Option<&mut Delivery>,
    ) -> Result<Summary, Error> {
        let context = Arc::new(ReadContext::of_job(self));
        self.deliver_from(&mut PstReader::new(&context, folder), delivery)
    }

    /// Delivers the messages of a Maildir or MH folder, without nested Maildirs. The messages of a Maildir are delivered in the
    /// order of the delivery times in their file names.
    pub(crate) fn folder_to(
        &self,
        kind: StartKind,
        delivery: &mut Delivery,
    ) -> Result<Summary, Error> {
        let context = Arc::new(ReadContext::of_job(self));
        let mut reader = FolderReader::for_other_format(&context, kind);
        self.deliver_from(&mut reader, Some(delivery))
    }

    fn deliver_from(
        &self,
        reader: &mut dyn MailboxReader,
        mut delivery: Option<&mut Delivery>,
    ) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        self.tell_facts(reader.begin(), &mut summary);
        pool::run(
            reader.limits(self.options.pool_limits()),
            self.stop,
            || {
                let letters = reader.next()?;
                Ok(letters.map(|letters| {
                    let weight = letters.weight();
                    (letters, weight)
                }))
            },
            |letters| (0..letters.count()).collect(),
            |letters, index| self.open_letter(&**letters, index),
            // The content of a message is needed until the message is delivered.
            |_, _| None,
            |mut letters, done| {
                self.tell_facts(letters.facts_before(), &mut summary);
                for (index, (facts, opened)) in done {
                    if let Some(letter) = opened {
                        let content = letters.content(index);
                        self.deliver_letter(
                            content,
                            letter,
                            delivery.as_deref_mut(),
                            &mut summary,
                        )?;
                    }
                    self.tell_facts(facts, &mut summary);
                }
                self.tell_facts(letters.facts_after(), &mut summary);
                Ok(())
            },
        )?;
        let events = reader.end(&mut summary)?;
        self.tell_facts(
            LetterFacts {
                events,
                ..LetterFacts::default()
            },
            &mut summary,
        );
        Ok(summary)
    }

    /// Reads and transforms a message. The message is `None` if it cannot be read.
    fn open_letter(
        &self,
        letters: &dyn Letters,
        index: usize,
    ) -> Result<(LetterFacts, Option<OpenedLetter<S>>), Error> {
        let mut opened = None;
        let is_kept = letters.content(index).is_some();
        let mut facts = letters.open(index, &mut |letter| {
            let Letter { message, stored } = letter;
            let place: (u64, &Path) = (message.number, message.source);
            let splice = rewrite::spliced;
            let done = self.single(place, message.content, message.beside, splice)?;
            let is_new = done.as_ref().is_some_and(|done| done.new.is_some());
            opened = Some(OpenedLetter {
                content: (!is_kept && !is_new).then(|| message.content.to_owned()),
                done,
                stored,
            });
            Ok(())
        })?;
        if opened.is_some() {
            // The bytes of the result are counted when the message is delivered.
            facts.counts.bytes_out = 0;
        }
        Ok((facts, opened))
    }

    fn deliver_letter(
        &self,
        kept: Option<&[u8]>,
        letter: OpenedLetter<S>,
        delivery: Option<&mut Delivery>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let OpenedLetter {
            content,
            done,
            stored,
        } = letter;
        let new = done.as_ref().and_then(|done| done.new.as_deref());
        let content = new.or(content.as_deref()).or(kept).unwrap_or_default();
        summary.changed += u64::from(new.is_some());
        match delivery {
            Some(delivery) => self.deliver_message(content, stored, delivery, summary)?,
            None => summary.bytes_out += content.len() as u64,
        }
        if let Some(done) = done {
            done.tell(self.observer);
        }
        Ok(())
    }

    fn tell_facts(&self, facts: LetterFacts, summary: &mut Summary) {
        summary.add(&facts.counts);
        for event in facts.events {
            MailboxEvent::of_run(event).tell(self.observer);
        }
    }
}
