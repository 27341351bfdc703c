//! Delivers the messages of readers to a mailbox of another format, or to a handler. Several messages are read and transformed
//! at the same time.

use std::sync::Arc;

use crate::error::Error;
use crate::mailbox::Summary;
use crate::mailbox::begin::MailboxJob;
use crate::mailbox::finds::SourceFind;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::input::source::InputSource;
use crate::mailbox::letter_work::{EditedForm, ReadLetter, WorkedLetter};
use crate::mailbox::place::delivery::{Batch, Delivery, Handler, ResultForm};
use crate::mailbox::prepare::DeliveredLetter;
use crate::mailbox::reader::{
    FilesReader, Letter, LetterFacts, LetterPlace, Letters, MailboxReader, OpenReader, ReadContext,
    open_reader,
};
use crate::pool;

/// Messages that were read for a handler.
struct LetterBatch {
    /// `None` if no message could be read.
    batch: Option<Box<dyn Batch>>,
    facts: LetterFacts,
}

impl<S: Send> MailboxJob<'_, S> {
    /// Delivers the messages of all mailboxes to a mailbox of another format.
    pub(crate) fn deliver_each(
        &self,
        founds: &[&SourceFind],
        delivery: &mut Delivery,
    ) -> Result<Summary, Error> {
        let mut sum = Summary::default();
        for founds in founds.chunk_by(|one, other| one.is_message() == other.is_message()) {
            let done = if founds.iter().all(|found| found.is_message()) {
                let context = ReadContext::for_other_format(self);
                let files = founds.iter().copied().collect();
                self.deliver_from(&mut FilesReader::new(&context, files), Some(delivery))
            } else {
                self.each(founds.iter().copied(), |job, kind| {
                    job.deliver(kind, Some(delivery))
                })
            };
            sum.add(&done?);
        }
        Ok(sum)
    }

    /// Delivers the messages of a mailbox. Without a delivery, the messages are read and transformed, but not written.
    pub(crate) fn deliver(
        &self,
        kind: StartKind,
        delivery: Option<&mut Delivery>,
    ) -> Result<Summary, Error> {
        let context = Arc::new(ReadContext::for_other_format(self));
        self.deliver_from(&mut *open_reader(&context, kind)?, delivery)
    }

    /// Delivers the messages of a stream.
    pub(crate) fn deliver_source(
        &self,
        source: InputSource,
        kind: StartKind,
        delivery: &mut Delivery,
    ) -> Result<Summary, Error> {
        let context = Arc::new(ReadContext::for_other_format(self));
        let mut reader = OpenReader::new(&context, source, None, kind)?;
        self.deliver_from(&mut reader, Some(delivery))
    }

    fn deliver_from(
        &self,
        reader: &mut dyn MailboxReader,
        delivery: Option<&mut Delivery>,
    ) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let none = Summary::default();
        self.message_transform()
            .tell_facts(reader.begin(), &none, &mut summary);
        let handler = delivery.as_ref().and_then(|delivery| {
            let handler = delivery.handler()?;
            Some((Arc::clone(handler), delivery.message_form()))
        });
        match handler {
            Some((handler, form)) => self.read_for(reader, (&*handler, form), &mut summary)?,
            None => self.transform_from(reader, delivery, &mut summary)?,
        }
        let events = reader.end(&mut summary)?;
        for event in events {
            self.observer.event(event.of_run());
        }
        Ok(summary)
    }

    /// Transforms the messages of a reader, and delivers them in order.
    fn transform_from(
        &self,
        reader: &mut dyn MailboxReader,
        mut delivery: Option<&mut Delivery>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let run = self.message_transform();
        run.transform_letters(
            reader.limits(self.options.read.pool_limits()),
            || reader.next(),
            EditedForm::Plain,
            |letters, done, summary| {
                let mut done = done.into_iter().peekable();
                for index in 0..letters.count() {
                    let finished = done.next_if(|(at, _)| *at == index);
                    let worked = finished.map(|(_, worked)| worked).transpose()?;
                    self.take_letter((letters, index), worked, &mut delivery, summary)?;
                }
                Ok(())
            },
            summary,
        )
    }

    /// Delivers a message. `worked` is the result of the work on the message, or `None` if the message needed no work.
    fn take_letter(
        &self,
        (letters, index): (&dyn Letters, usize),
        worked: Option<WorkedLetter<S>>,
        delivery: &mut Option<&mut Delivery>,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let (mut read, mut done, mut facts) = (None, None, LetterFacts::default());
        if let Some(worked) = worked {
            (read, done, facts) = (worked.read, worked.done, worked.facts);
        }
        let mut result = Summary::default();
        let new = done.as_ref().and_then(|done| done.new.as_deref());
        let mut deliver = |letter: DeliveredLetter<'_>| {
            self.deliver_letter(letter, delivery.as_deref_mut(), &mut result)
        };
        if let Some(ReadLetter { content, stored }) = read.take() {
            deliver(DeliveredLetter {
                number: 1,
                content: &content,
                new,
                stored,
                place: &LetterPlace::File,
            })?;
        } else if letters.are_kept() {
            facts = letters.open(index, &mut |letter| {
                deliver(DeliveredLetter {
                    number: letter.message.number,
                    content: letter.message.content,
                    new,
                    stored: letter.stored,
                    place: &letter.place,
                })
            })?;
        }
        if let Some(done) = done {
            done.tell(self.observer);
        }
        self.message_transform().tell_facts(facts, &result, summary);
        Ok(())
    }

    fn deliver_letter(
        &self,
        letter: DeliveredLetter<'_>,
        delivery: Option<&mut Delivery>,
        result: &mut Summary,
    ) -> Result<(), Error> {
        result.changed += u64::from(letter.new.is_some());
        let Some(delivery) = delivery else {
            result.bytes_out += letter.new.unwrap_or(letter.content).len() as u64;
            return Ok(());
        };
        let (form, mut removed) = (delivery.message_form(), Summary::default());
        self.prepare(letter, form, &mut removed, &mut |mail, lost| {
            for folder in lost {
                delivery.lose_folder(folder);
            }
            delivery.deliver(mail, result)
        })?;
        result.add(&removed);
        Ok(())
    }

    /// Passes the messages of a reader to a handler, without a transform. Several threads fill batches at the same time.
    fn read_for(
        &self,
        reader: &mut dyn MailboxReader,
        handler: (&dyn Handler, ResultForm),
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let (run, none) = (self.message_transform(), Summary::default());
        pool::run(
            reader.limits(self.options.read.pool_limits()),
            self.stop,
            || {
                let letters = reader.next()?;
                Ok(letters.map(|letters| {
                    let weight = letters.weight();
                    (letters, weight)
                }))
            },
            // The work on a message is short, so consecutive messages are not divided.
            |_| vec![0],
            |letters, _| Ok(self.batch(&**letters, handler)),
            // This function frees the memory of letters that wait because the work on earlier ones is slow, for
            // example because a server is slow. Here all work is short, so no memory is freed.
            |_, _| None,
            |mut letters, done| {
                run.tell_facts(letters.facts_before(), &none, summary);
                for (_, done) in done {
                    let LetterBatch { batch, facts } = done?;
                    if let Some(batch) = batch {
                        batch.finish()?;
                    }
                    run.tell_facts(facts, &none, summary);
                }
                run.tell_facts(letters.facts_after(), &none, summary);
                Ok(())
            },
        )
    }

    fn batch(
        &self,
        letters: &dyn Letters,
        (handler, form): (&dyn Handler, ResultForm),
    ) -> Result<LetterBatch, Error> {
        let (mut batch, mut all) = (None, LetterFacts::default());
        let count = letters.count();
        for index in 0..count {
            let mut result = Summary::default();
            let facts = letters.open(index, &mut |letter| {
                let Letter {
                    message,
                    stored,
                    place,
                } = letter;
                let length = match count {
                    1 => message.content.len(),
                    _ => letters.weight(),
                };
                let batch: &mut Box<dyn Batch> = batch.get_or_insert_with(|| handler.batch(length));
                let letter = DeliveredLetter {
                    number: message.number,
                    content: message.content,
                    new: None,
                    stored,
                    place: &place,
                };
                self.prepare(letter, form, &mut result, &mut |mail, _| {
                    batch.add(&mail, form.flags(&mail));
                    Ok(())
                })
            })?;
            all.add(facts.with_result(&result));
        }
        Ok(LetterBatch { batch, facts: all })
    }
}
