//! Works on all messages of a source with the worker pool.

use std::path::Path;
use std::sync::Arc;

use super::letters::{LetterFacts, Letters, MailboxReader};
use super::open::open_reader;
use super::sequence::{SourceSequence, SourceStep};
use crate::error::Error;
use crate::mailbox::event::{EventLog, MailboxEvent};
use crate::mailbox::{Message, Options, ReadOptions, Stop, Summary};
use crate::pool;

/// The work on each message of a source.
pub(crate) struct LetterWork<'w, D> {
    /// Several threads call this function at the same time. An error ends the run.
    pub(crate) work: &'w (dyn Fn(&Message<'_>) -> Result<D, Error> + Sync),
    /// Returns the memory that the result of a message needs until it is passed on, in bytes.
    pub(crate) weight: &'w (dyn Fn(&D) -> usize + Sync),
}

/// Function that gets the events of a run, in the order of the messages. An error ends the run.
type OnEvent<'e, D> = &'e mut (dyn FnMut(MailboxEvent<D>) -> Result<(), Error> + Send);

/// Does the work on each message of a source. Several messages are worked on at the same time. `on` gets the results and the
/// facts, in the order of the messages.
///
/// # Errors
/// Returns the first error of the work or of `on`, and [`Error::NotAMailbox`], [`Error::Read`], [`Error::Unreadable`] or
/// [`Error::Changed`] if the source cannot be read. Returns [`Error::Interrupted`] after a request to stop.
pub(crate) fn read_source<D: Send>(
    source: &Path,
    (options, stop): (&ReadOptions, &Stop),
    work: &LetterWork<'_, D>,
    on: OnEvent<'_, D>,
) -> Result<Summary, Error> {
    let settings = Arc::new(Options::for_reading(options.clone()));
    let (mut sequence, facts) = SourceSequence::begin(source, &settings, stop)?;
    let mut sum = Summary::default();
    tell(facts, &mut sum, on)?;
    while let Some(step) = sequence.next()? {
        match step {
            SourceStep::Facts(facts) => tell(facts, &mut sum, on)?,
            SourceStep::Files(mut reader) => {
                sum.add(&map(&mut reader, (options, stop), work, on)?);
            }
            SourceStep::Mailbox(context, kind) => {
                on(MailboxEvent::Begin(context.path.clone()))?;
                let read = open_reader(&context, kind)
                    .and_then(|mut reader| map(&mut *reader, (options, stop), work, on));
                let log = EventLog::new();
                let counts = context.job(&log).judged(kind, read)?;
                let events = log.into_events();
                tell(LetterFacts { counts, events }, &mut sum, on)?;
            }
        }
    }
    Ok(sum)
}

/// Calls `work` for each message of a mailbox, in parallel.
fn map<D: Send>(
    reader: &mut dyn MailboxReader,
    (options, stop): (&ReadOptions, &Stop),
    work: &LetterWork<'_, D>,
    on: OnEvent<'_, D>,
) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    tell(reader.begin(), &mut summary, on)?;
    pool::run(
        reader.limits(options.pool_limits()),
        stop,
        || {
            let letters = reader.next()?;
            Ok(letters.map(|letters| {
                let weight = letters.weight();
                (letters, weight)
            }))
        },
        |letters| (0..letters.count()).collect(),
        // An error is passed on in the order of the messages, after the results of the messages before it.
        |letters, index| Ok(result_of(letters.as_ref(), index, work, stop)),
        |letters, done| {
            let results = done.iter().filter_map(|(_, done)| match done {
                Some(Ok((result, _))) => result.as_ref(),
                _ => None,
            });
            let weight: usize = results.map(work.weight).sum();
            Some(letters.discard() + weight)
        },
        |mut letters, done| {
            tell(letters.facts_before(), &mut summary, on)?;
            for (_, done) in done {
                let (result, facts) = done?;
                if let Some(result) = result {
                    on(MailboxEvent::Message(result, false))?;
                }
                tell(facts, &mut summary, on)?;
            }
            tell(letters.facts_after(), &mut summary, on)
        },
    )?;
    let events = reader.end(&mut summary)?;
    let facts = LetterFacts {
        events,
        ..LetterFacts::default()
    };
    tell(facts, &mut summary, on)?;
    Ok(summary)
}

/// Returns the result of the work on a message, and the facts about the message. The result is `None` if the message cannot be
/// read.
fn result_of<D>(
    letters: &dyn Letters,
    index: usize,
    work: &LetterWork<'_, D>,
    stop: &Stop,
) -> Result<(Option<D>, LetterFacts), Error> {
    let mut result = None;
    let facts = letters.open(index, &mut |letter| {
        result = Some((work.work)(&letter.message)?);
        // Work that was stopped may have skipped requests, so its result may be incomplete and is not used.
        stop.check()
    })?;
    Ok((result, facts))
}

fn tell<D>(facts: LetterFacts, sum: &mut Summary, on: OnEvent<'_, D>) -> Result<(), Error> {
    sum.add(&facts.counts);
    let mut events = facts.events.into_iter().map(MailboxEvent::of_run);
    events.try_for_each(on)
}
