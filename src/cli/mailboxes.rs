//! What a command does as the mailbox module sees it: [`Transform`] over a [`Verb`], and what is to be said
//! of each message, in the order of the mailbox.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::origin::Origin;
use super::survey::Survey;
use super::totals::Totals;
use super::verb::Verb;
use crate::edit::Edits;
use crate::error::Error;
use crate::lengths::Lengths;
use crate::mailbox::{Message, Progress, Stop, Summary, Transform};
use crate::report::{Detail, Outcome, Reason, Report, Row};

/// Gets rows in the order of the messages.
pub(super) trait Listener: Sync {
    /// A file in a folder holds no mail, but that.
    fn skipped(&self, path: &Path, what: &str);

    /// A store or a cache of embody was skipped, or what lies in one. Each was named to [`Listener::skipped`].
    fn passed_over(&self, path: &Path, what: &str);

    /// Rows of one message; called in order.
    fn rows(&self, origin: &Origin, rows: &[Row]);

    /// That many more bytes and messages are done; the counts so far.
    fn advanced(&self, bytes: u64, messages: u64, totals: &Totals);

    /// Another program holds the lock of a mailbox for long.
    fn waiting(&self, _mailbox: &Path, _lock: &Path) {}

    /// What is compressed there is damaged.
    fn damaged(&self, path: &Path, why: &Detail);
}

/// The filter for mailboxes.
pub(super) struct Filter<'f> {
    verb: &'f dyn Verb,
    /// Whether rows of an mbox name their file besides the message's number.
    several: bool,
    stop: Stop,
    listener: &'f dyn Listener,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The mailbox at work.
    mailbox: PathBuf,
    /// What is known of messages that are done before an earlier one is.
    waiting: BTreeMap<u64, Waiting>,
    /// Messages of this mailbox that are written.
    done: u64,
    /// Counts of everything that was told so far.
    totals: Totals,
    /// Counts of the mailbox at work.
    mailbox_totals: Totals,
    /// Counts and sums of mailboxes that are as they were told to be.
    settled: (Summary, Totals),
}

/// What is known of a message.
struct Waiting {
    /// Nothing, where there are no rows.
    told: Option<(Origin, Report)>,
    survey: Option<Box<Survey>>,
}

impl<'f> Filter<'f> {
    pub(super) fn new(
        verb: &'f dyn Verb,
        several: bool,
        stop: Stop,
        listener: &'f dyn Listener,
    ) -> Self {
        Self {
            verb,
            several,
            stop,
            listener,
            state: Mutex::default(),
        }
    }

    /// What was done that stands: a mailbox that an error or a stop ended does not count.
    pub(super) fn finish(self) -> (Summary, Totals) {
        let state = self.state.into_inner();
        state.unwrap_or_else(PoisonError::into_inner).settled
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over the rows of all messages up to number `through`.
    fn tell(&self, state: &mut State, through: u64) {
        while let Some(entry) = state.waiting.first_entry() {
            if *entry.key() > through {
                break;
            }
            let Waiting { told, survey } = entry.remove();
            if let Some(survey) = survey {
                state.mailbox_totals.survey.add(*survey);
            }
            let Some((origin, report)) = told else {
                continue;
            };
            state.totals.count(&report);
            state.mailbox_totals.count(&report);
            self.listener.rows(&origin, &report.rows);
        }
    }

    /// What reports call a message: a file of its own by its name, one in an mbox by its number.
    fn name(&self, message: &Message<'_>, mailbox: &Path) -> String {
        if message.source != mailbox {
            message.source.display().to_string()
        } else if self.several {
            format!("{}:{}", mailbox.display(), message.number)
        } else {
            message.number.to_string()
        }
    }
}

/// Says of each row that changed its message, or would, that the message was left.
pub(super) fn leave_for_separator(report: &mut Report) {
    for row in &mut report.rows {
        if !matches!(row.outcome, Outcome::Left | Outcome::WouldFetch) {
            row.outcome = Outcome::Left;
            row.reason = Some(Reason::HoldsSeparator);
            row.detail = Reason::HoldsSeparator.meaning().into();
            row.detail.push("; the message was left");
            (row.bytes, row.links) = (None, None);
        }
    }
}

impl Transform for Filter<'_> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.verb.first_touch(bytes)
    }

    fn touched(&self, bytes: &[u8], ends: &[usize]) -> Vec<usize> {
        self.verb.touched(bytes, ends)
    }

    fn transform(&self, message: &Message<'_>) -> Result<Edits, Error> {
        self.stop.check()?;
        let mailbox = self.state().mailbox.clone();
        let name = self.name(message, &mailbox);
        let (edits, report, survey) = self.verb.surveyed(message.content, &name)?;
        // What it would have fetched was not asked for any more.
        self.stop.check()?;
        let told = (!report.rows.is_empty()).then(|| {
            let source = message.source.display().to_string();
            let origin = Origin::new(&source, message.number, message.content);
            (origin, report)
        });
        if told.is_some() || survey.is_some() {
            let waiting = Waiting { told, survey };
            self.state().waiting.insert(message.number, waiting);
        }
        Ok(edits)
    }

    fn lengths(&self) -> Lengths {
        self.verb.lengths()
    }

    fn refused(&self, message: &Message<'_>) {
        let mut state = self.state();
        let waiting = state.waiting.get_mut(&message.number);
        if let Some((_, report)) = waiting.and_then(|waiting| waiting.told.as_mut()) {
            leave_for_separator(report);
        }
    }

    fn discard(&self, number: u64) {
        self.state().waiting.remove(&number);
    }
}

impl Progress for Filter<'_> {
    fn skipped(&self, path: &Path, what: &'static str) {
        let mut state = self.state();
        state.settled.0.skipped_files += 1;
        state.settled.1.count_skipped(what, 1);
        drop(state);
        self.listener.skipped(path, what);
    }

    fn passed_over(&self, path: &Path, what: &str) {
        self.listener.passed_over(path, what);
    }

    fn skipped_others(&self, archive: &Path, what: &'static str, count: u64) {
        let mut state = self.state();
        state.settled.0.skipped_files += count;
        state.settled.1.count_skipped(what, count);
        drop(state);
        let what = format!("{count} more that are not named: {what}");
        self.listener.skipped(archive, &what);
    }

    fn begin(&self, mailbox: &Path) {
        let mut state = self.state();
        // What is left of a mailbox that was not finished was not done.
        state.waiting.clear();
        state.mailbox_totals = Totals::default();
        state.mailbox = mailbox.to_owned();
        state.done = 0;
    }

    fn advance(&self, bytes: u64, messages: u64) {
        let mut state = self.state();
        state.done += messages;
        let done = state.done;
        self.tell(&mut state, done);
        self.listener.advanced(bytes, messages, &state.totals);
    }

    fn done(&self, summary: &Summary) {
        let mut state = self.state();
        self.tell(&mut state, u64::MAX);
        let totals = std::mem::take(&mut state.mailbox_totals);
        state.settled.0.add(summary);
        state.settled.1.add(totals);
    }

    fn waiting(&self, mailbox: &Path, lock: &Path) {
        self.listener.waiting(mailbox, lock);
    }

    fn damaged(&self, path: &Path, why: &Detail) {
        self.listener.damaged(path, why);
    }
}
