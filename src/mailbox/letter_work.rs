//! Transforms the messages of a reader in parallel, and passes the results on in order.

use std::path::Path;

use crate::error::Error;
use crate::mailbox::forms::rewrite;
use crate::mailbox::place::delivery::StoredState;
use crate::mailbox::read::messages::{MessageTransform, TransformResult};
use crate::mailbox::reader::{Letter, LetterFacts, LetterPlace, Letters};
use crate::mailbox::{Program, Summary};
use crate::pool::{self, PoolLimits};

/// The form of a message that the transform has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EditedForm {
    /// The message alone: without a separator and without the quoting of an mbox.
    Plain,
    /// The message as its mailbox contains it.
    Entry,
}

/// Result of the work on a message.
pub(super) struct WorkedLetter<S> {
    /// The message, unless its letters keep it.
    pub(super) read: Option<ReadLetter>,
    /// `None` if the message needed no transform.
    pub(super) done: Option<TransformResult<S>>,
    /// Facts about the message. If the letters keep the message in memory, it is opened a second time, which returns the same
    /// facts again.
    pub(super) facts: LetterFacts,
}

/// A message of a file that was read.
pub(super) struct ReadLetter {
    /// Original content of the message. Empty if the transform has changed the message: [`WorkedLetter::done`] then contains
    /// the new content.
    pub(super) content: Vec<u8>,
    pub(super) stored: StoredState,
}

/// Results of the work on letters, by index. Messages that needed no work have no result. An error is passed on in the order of
/// the messages, after the results of the messages before it.
pub(super) type LetterResults<S> = Vec<(usize, Result<WorkedLetter<S>, Error>)>;

impl<S: Send> MessageTransform<'_, S> {
    /// Transforms the letters that `next` returns, several messages at a time, and passes them to `take` in order. Reports the
    /// facts about them, and adds the counts of the facts to `summary`, without the bytes of the result.
    ///
    /// # Errors
    /// Returns the errors of `next`, of `take` and of the transform.
    pub(super) fn transform_letters<L: Letters + ?Sized>(
        &self,
        limits: PoolLimits,
        mut next: impl FnMut() -> Result<Option<Box<L>>, Error> + Send,
        form: EditedForm,
        mut take: impl FnMut(&L, LetterResults<S>, &mut Summary) -> Result<(), Error> + Send,
        summary: &mut Summary,
    ) -> Result<(), Error> {
        let search = |bytes: &[u8], ends: &[usize]| match self.transform {
            Some(transform) => transform.touched(bytes, ends),
            None => Vec::new(),
        };
        let none = Summary::default();
        pool::run(
            limits,
            self.stop,
            || {
                let letters = next()?;
                if let Some(letters) = &letters {
                    self.see_ahead(&**letters)?;
                }
                Ok(letters.map(|letters| {
                    let weight = letters.weight();
                    (letters, weight)
                }))
            },
            |letters| letters.touched(&search),
            |letters, index| Ok(self.work(&**letters, index, form)),
            |letters, done| {
                let results = done.iter().filter_map(|(_, worked)| match worked {
                    Some(Ok(worked)) => worked.done.as_ref(),
                    _ => None,
                });
                let weight: usize = results.map(|done| done.weight(self.transform)).sum();
                letters.let_go().map(|of_letters| of_letters + weight)
            },
            |mut letters, done| {
                letters.read_again()?;
                self.tell_facts(letters.facts_before(), &none, summary);
                take(&letters, done, summary)?;
                self.tell_facts(letters.facts_after(), &none, summary);
                Ok(())
            },
        )
    }

    fn see_ahead<L: Letters + ?Sized>(&self, letters: &L) -> Result<(), Error> {
        if let Some(transform) = self.transform
            && letters.are_of_eudora()
        {
            for index in 0..letters.count() {
                letters.open(index, &mut |letter| {
                    transform.ahead(&letter.message);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Reads and transforms a message.
    fn work<L: Letters + ?Sized>(
        &self,
        letters: &L,
        index: usize,
        form: EditedForm,
    ) -> Result<WorkedLetter<S>, Error> {
        let (mut read, mut done) = (None, None);
        let facts = letters.open(index, &mut |letter| {
            done = self.transform_letter(&letter, form)?;
            if !letters.are_kept() {
                let is_new = done.as_ref().is_some_and(|done| done.new.is_some());
                let content = (!is_new).then(|| letter.message.content.to_owned());
                read = Some(ReadLetter {
                    content: content.unwrap_or_default(),
                    stored: letter.stored,
                });
            }
            Ok(())
        })?;
        Ok(WorkedLetter { read, done, facts })
    }

    fn transform_letter(
        &self,
        letter: &Letter<'_>,
        form: EditedForm,
    ) -> Result<Option<TransformResult<S>>, Error> {
        let message = &letter.message;
        let content = message.content;
        let splice = match &letter.place {
            LetterPlace::Folder => rewrite::spliced,
            LetterPlace::File => rewrite::spliced_in_file,
            LetterPlace::Mbox(mbox) => {
                let Some(transform) = self.transform else {
                    return Ok(None);
                };
                let done = self.transformed(transform, message, |edits| match form {
                    _ if message.beside == Some(Program::Eudora) => {
                        rewrite::spliced(content, edits)
                    }
                    EditedForm::Plain => rewrite::unquoted(content, edits, mbox.quoting),
                    EditedForm::Entry => mbox.entry.rewritten(edits, transform.lengths()),
                });
                return done.map(Some);
            }
        };
        let place: (u64, &Path) = (message.number, message.source);
        self.single(place, content, message.beside, splice)
    }

    /// Reports facts, and adds the counts of the facts and of the result to `summary`.
    pub(super) fn tell_facts(&self, facts: LetterFacts, result: &Summary, summary: &mut Summary) {
        let facts = facts.with_result(result);
        summary.add(&facts.counts);
        for event in facts.events {
            self.observer.event(event.of_run());
        }
    }
}
