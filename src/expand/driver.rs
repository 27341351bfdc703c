//! The loop around the engine. A round of the engine returns a list of the content that it needs. The driver retrieves
//! this content, and starts the next round from the original message, with all answers so far.
//!
//! Only the driver uses sources, threads and the clock, so a round depends on its input alone. The engine limits the
//! work of one round, and the driver limits the work of all rounds together.

use std::time::{Duration, Instant, SystemTime};

use crate::engine::policy::OnFailure;
use crate::engine::report::Refusal;
use crate::engine::{
    Answers, Content, Context, Engine, EngineOutcome, Kinds, Mode, Need, Needs, Neighbour,
    NeighbourDirectories, date,
};
use crate::error::Error;
use crate::fetch::{Fetch, Request, Sidecars, answer_all, not_beside};
use crate::mime::MessageTree;

/// Maximum of the deadline, so that adding the deadline to the current time cannot overflow.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Maximum time for work after the deadline. Content that arrived shortly before the deadline is still added to the
/// message.
const GRACE: Duration = Duration::from_secs(5);

pub(super) struct Driver<'d> {
    pub(super) engine: &'d Engine,
    pub(super) fetch: &'d dyn Fetch,
    pub(super) mode: Mode,
    /// The name of the message in the report.
    pub(super) name: &'d str,
    pub(super) beside: Option<&'d Sidecars>,
}

impl Driver<'_> {
    /// Expands one message in rounds: each round of the engine returns the content that it needs, until a round needs no
    /// further content. `kinds` is the result of the prefilter for this message. `parts` contains the parts of the message,
    /// if the caller has parsed it within the limits of the policy.
    ///
    /// # Errors
    /// [`Error::Deferred`] if a retrieval failed temporarily and the policy is to try the whole message again later.
    pub(super) fn run<'m>(
        &self,
        message: &'m [u8],
        kinds: Kinds,
        parts: Option<&MessageTree<'_>>,
    ) -> Result<EngineOutcome<'m>, Error> {
        let policy = self.engine.policy();
        let time = policy.limits.deadline.min(CENTURY);
        let deadline = Instant::now() + time;
        let end = deadline + GRACE.min(time / 4);
        let context = Context::new(self.name, SystemTime::now())
            .until(move || Instant::now() >= end)
            .beside(self.directories(message));
        let date = (self.mode.asks_servers() && self.fetch.heeds_date())
            .then(|| date::of(message, context.now()))
            .flatten();
        let mut last = None;
        let mut answers = Answers::new();
        let parsed = match parts {
            Some(_) => None,
            None => self.engine.parts(message, kinds),
        };
        let parts = parts.or(parsed.as_ref());
        // All rounds share one scan of the message, but each round counts a scan as two readings of the message. This
        // excess is subtracted.
        let scanned = parts.map_or(0, |_| 2 * message.len() as u64);
        let mut spent = scanned;
        loop {
            let how = (self.mode, last.clone());
            let mut outcome = self
                .engine
                .round(message, kinds, &context, answers, how, parts);
            let Some(needs) = outcome.needs.take() else {
                let defers = self.mode.asks_servers() && policy.on_failure == OnFailure::Defer;
                return match outcome.temporary.take() {
                    Some(detail) if defers => Err(Error::Deferred(detail)),
                    _ => Ok(outcome),
                };
            };
            // The work limit applies to one round, but each round can repeat the work of earlier ones. So the work of
            // all rounds is added up, and if the sum exceeds the limit of one round, the next round gets this refusal
            // instead of content.
            spent = spent.saturating_add(outcome.work.saturating_sub(scanned));
            answers = std::mem::take(&mut outcome.answers);
            drop(outcome);
            match self.engine.judge_rounds(message, spent) {
                Ok(()) => self.retrieve(needs, (deadline, date), &mut answers),
                Err(refusal) => last = Some(refusal),
            }
        }
    }

    /// Returns the files that a mail program keeps in directories next to the mailbox.
    fn directories(&self, message: &[u8]) -> Option<NeighbourDirectories> {
        #[cfg(not(all(feature = "file", feature = "mailbox")))]
        let _ = message;
        let beside = self.beside?;
        Some(NeighbourDirectories {
            form: beside.form(),
            #[cfg(all(feature = "file", feature = "mailbox"))]
            named_files: beside.named_files(message, self.engine.policy()),
        })
    }

    /// Retrieves the content that a round needs, from servers in parallel. Files next to the mailbox are read one after
    /// the other.
    fn retrieve(
        &self,
        needs: Needs,
        (deadline, date): (Instant, Option<SystemTime>),
        answers: &mut Answers,
    ) {
        let mut requests = Vec::new();
        let mut room = needs.room;
        for need in needs.batch {
            match &need {
                Need::Neighbour(file) => match self.read(file, deadline, room) {
                    Ok(content) => {
                        room = room.saturating_sub(content.len() as u64);
                        answers.insert(need, Ok(content.into()));
                    }
                    Err(refusal) => answers.insert(need, Err(refusal)),
                },
                _ => requests.push(Request {
                    need,
                    deadline,
                    date,
                }),
            }
        }
        let in_flight = self.engine.policy().limits.in_flight;
        let retrieved = answer_all(self.fetch, &requests, self.mode, in_flight, needs.room);
        for (request, answer) in requests.into_iter().zip(retrieved) {
            answers.insert(request.need, answer);
        }
    }

    /// Reads a file next to the mailbox, if it has at most `room` bytes.
    fn read(&self, file: &Neighbour, deadline: Instant, room: u64) -> Result<Content, Refusal> {
        let beside = self.beside.ok_or_else(not_beside)?;
        beside.read(file, self.engine.policy(), room, deadline)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::policy::{Policy, Scheme};
    use crate::engine::report::Reason;
    use crate::expand::Expander;
    use crate::fetch::Canned;

    /// Further rounds must not count as work of the message. Sixteen parts offer the same file; each failure starts
    /// another round, which processes the large mail again.
    #[test]
    fn trying_sixteen_alternatives_in_a_large_mail_stays_within_the_work_limit() {
        let part = |number: usize| {
            format!(
                "--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"http://host{number}.example.org/file\"\n\n\
                 Content-Type: application/pdf\nContent-ID: <file@example.org>\n\n\n"
            )
        };
        let parts: String = (0..16).map(part).collect();
        let text = "A line of the text of a large mail.\n".repeat(90_000);
        let mail = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\n{text}\n--a\n\
             Content-Type: multipart/alternative; boundary=b\n\n{parts}--b--\n--a--\n"
        );
        let policy = Policy::default()
            .with_fetch([Scheme::Http])
            .map_limits(|limits| limits.with_work(4));
        let source = Canned::new();
        let expander = Expander::builder(policy)
            .fetch(source.clone())
            .build()
            .unwrap();
        let report = expander.expand(mail.as_bytes(), "mail").unwrap().report;
        assert_eq!(source.asked().len(), 16);
        assert_eq!(report.rows.len(), 16);
        let is_work = |reason| reason == Some(Reason::TooMuchWork);
        assert!(!report.rows.iter().any(|row| is_work(row.reason)));
    }
}
