//! The loop around the engine: a round says what it needs, the sources give it, and the next round begins anew with all
//! answers so far.
//!
//! The driver has everything that a round must not have: sources, threads, and the clock. It bounds the rounds together as
//! one round is bounded by itself.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

#[cfg(all(feature = "file", feature = "mailbox"))]
use super::context::Beside;
use super::context::Context;
use super::date;
use super::expansion::Expansion;
use super::needs::{Answers, Found, Needs, Unanswered};
use super::prefilter::kinds::Kinds;
use super::session::{Asking, Session, Settings};
use crate::engine::{Content, Need, Neighbour};
use crate::error::Error;
use crate::fetch::{Fetch, Request, Sidecars, fetch_all};
use crate::ledger::Ledger;
use crate::policy::OnFailure;

/// More than any deadline needs, and little enough to be added to any instant.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Time for work after the deadline, at most. Content that arrived shortly before the deadline is still put in.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Driver<'d> {
    pub(super) settings: &'d Settings,
    pub(super) fetch: &'d dyn Fetch,
    pub(super) asking: Asking,
    pub(super) kinds: Kinds,
    pub(super) name: &'d str,
    pub(super) beside: Option<&'d Sidecars>,
}

impl<'d> Driver<'d> {
    /// Runs rounds over one message until none needs further content.
    ///
    /// # Errors
    /// [`Error::Deferred`] if a retrieval failed temporarily and the policy is to try the whole message later.
    pub(super) fn run<'m>(&self, message: &'m [u8]) -> Result<Expansion<'m>, Error> {
        let limits = &self.settings.policy.limits;
        let time = limits.deadline.min(CENTURY);
        let deadline = Instant::now() + time;
        let end = deadline + GRACE.min(time / 4);
        let is_forecast = self.asking == Asking::Nobody;
        let context = Context {
            name: self.name,
            now: SystemTime::now(),
            is_over: Arc::new(move || Instant::now() >= end),
            beside: self.beside.map(|beside| self.settings.context_of(beside)),
        };
        let date = (!is_forecast && self.fetch.heeds_date())
            .then(|| date::of(message, context.now))
            .flatten();
        let mut unanswered = match is_forecast {
            true => Unanswered::IsLeftOpen,
            false => Unanswered::Stops,
        };
        let mut answers = Answers::new();
        let mut spent = 0_u64;
        loop {
            let mut round = Session {
                settings: self.settings,
                kinds: self.kinds,
                context: &context,
                asking: self.asking,
                answers,
                unanswered: unanswered.clone(),
                retrieved: Default::default(),
                needs: None,
                ledger: Ledger::new(limits, message.len()).until(&context.is_over),
            };
            let outcomes = round.run(message);
            let Some(needs) = round.needs.take() else {
                return match outcomes.temporary {
                    Some(detail)
                        if !is_forecast && self.settings.policy.on_failure == OnFailure::Defer =>
                    {
                        Err(Error::Deferred(detail))
                    }
                    _ => Ok(Expansion::new(
                        message,
                        outcomes.edits,
                        outcomes.report,
                        round.ledger.spent(),
                    )),
                };
            };
            drop(outcomes);
            // Each round repeats the work of those before it. Together they may do what one is allowed to do, and the last
            // one as much again.
            spent = spent.saturating_add(round.ledger.spent());
            if let Err(refusal) = round.ledger.judge_rounds(spent) {
                unanswered = Unanswered::IsRefused(refusal);
            }
            answers = round.answers;
            if !matches!(unanswered, Unanswered::IsRefused(_)) {
                self.retrieve(needs, (deadline, date), &context, &mut answers);
            }
        }
    }

    /// Retrieves a batch of needs side by side, and reads the files next to the mailbox, one after the other.
    fn retrieve(
        &self,
        needs: Needs,
        (deadline, date): (Instant, Option<SystemTime>),
        context: &Context<'_>,
        answers: &mut Answers,
    ) {
        let mut requests = Vec::new();
        let mut room = needs.room;
        for need in needs.batch {
            match &need {
                Need::Neighbour(file) => {
                    let found = self.read(file, deadline, context, room);
                    if let Ok(Some(answer)) = &found {
                        room = room.saturating_sub(answer.len() as u64);
                    }
                    answers.insert(need, found);
                }
                _ => requests.push(Request {
                    need,
                    deadline,
                    date,
                }),
            }
        }
        let in_flight = self.settings.policy.limits.in_flight;
        let retrieved = fetch_all(self.fetch, &requests, in_flight, needs.room);
        let retrieved = retrieved.into_iter().map(|answer| answer.map(Some));
        let needs = requests.into_iter().map(|request| request.need);
        answers.extend(needs.zip(retrieved));
    }

    /// Reads a file next to the mailbox, if it has at most `room` bytes. A forecast only looks whether it could be read.
    fn read(
        &self,
        file: &Neighbour,
        deadline: Instant,
        context: &Context<'_>,
        room: u64,
    ) -> Found<Content> {
        let policy = &self.settings.policy;
        let is_forecast = self.asking == Asking::Nobody;
        let read = match file {
            Neighbour::Apple { folder, name } => match self.beside {
                None => None,
                Some(beside) => {
                    let deadline = (!is_forecast).then_some(deadline);
                    beside.read(folder, name.as_deref(), policy, room, deadline)?
                }
            },
            #[cfg(all(feature = "file", feature = "mailbox"))]
            Neighbour::Eudora { folder, name } => match &context.beside {
                Some(Beside {
                    eudora: Some((_, files)),
                    ..
                }) if !is_forecast => {
                    Some(files.read(&(*folder, name.clone()), policy, deadline)?)
                }
                _ => None,
            },
        };
        #[cfg(not(all(feature = "file", feature = "mailbox")))]
        let _ = context;
        Ok(read)
    }
}
