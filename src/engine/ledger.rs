//! Counts what one message uses of its limits: its growth, the number of retrievals, and the bytes that are read for it.
//!
//! References reach a limit in the order of the document, and the same message always reaches the same limits. Only the time
//! limit ([`Ledger::until`]) depends on the machine. It is for messages that are slow although they are within all other
//! limits.

use std::sync::Arc;

use crate::engine::policy::Limits;
use crate::engine::report::{Detail, Reason, Refusal, Setting};

/// A function that returns true if the time for a message is over.
pub(crate) type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Ledger {
    limits: Limits,
    gained: i64,
    retrievals: u32,
    retrieved: u64,
    work: u64,
    message: u64,
    /// Growth of the message in bytes at the last call of [`Ledger::keep`], which records that edits were applied.
    kept: u64,
    urls: usize,
    is_over: Option<IsOver>,
    /// Amount of work, in bytes, after which the clock is checked next. Checking it for each piece of work would cost
    /// more than the work.
    next_look: u64,
}

const BETWEEN_LOOKS: u64 = 64 << 10;

/// Minimum, in bytes, for limits that are otherwise proportional to the size of the message. Without it, a small
/// message could not have deeply nested content or a long base URL.
const FREE: u64 = 1 << 20;

/// Number of bytes that all rounds over a message may read together, however small the message is. In a chain of
/// enclosed messages, each message needs a round, and each round reads all of them.
const FREE_ROUNDS: u64 = 64 << 20;

impl Ledger {
    pub(crate) fn new(limits: &Limits, message: usize) -> Self {
        Self {
            limits: limits.clone(),
            message: message as u64,
            ..Self::default()
        }
    }

    /// Refuses further work when `is_over` returns true.
    pub(crate) fn until(self, is_over: &IsOver) -> Self {
        Self {
            is_over: Some(Arc::clone(is_over)),
            ..self
        }
    }

    /// Adds `octets` to the growth of the message. If this exceeds a limit, it returns a refusal and counts nothing.
    pub(crate) fn grow(&mut self, octets: i64) -> Result<(), Refusal> {
        self.would_fit(octets)?;
        self.gained = self.gained.saturating_add(octets);
        Ok(())
    }

    pub(crate) fn would_fit(&self, octets: i64) -> Result<(), Refusal> {
        let total = self.gained.saturating_add(octets);
        if octets > 0 && total > signed(self.limits.growth) {
            return Err(self.too_much_growth(&format!("the content has {octets} bytes and")));
        }
        let result = signed(self.message).saturating_add(total);
        if let Some(most) = self.limits.message
            && octets > 0
            && result > signed(most)
        {
            let detail = Detail::from(format!(
                "with the content, the message would have {result} bytes; "
            ))
            .naming(Setting::Message)
            .measuring(most, result.unsigned_abs())
            .then(format!(" is {most}"));
            return Err(Refusal::lasting(Reason::MessageLimit, detail));
        }
        Ok(())
    }

    pub(crate) fn too_much_growth(&self, what: &str) -> Refusal {
        let (most, gained) = (self.limits.growth, self.gained);
        let detail = Detail::from(format!("{what} would make the message grow by more than "))
            .naming(Setting::Growth)
            .then(format!(
                ", {most} bytes; earlier content has already added {gained} bytes"
            ));
        Refusal::lasting(Reason::GrowthLimit, detail)
    }

    pub(crate) fn gained(&self) -> i64 {
        self.gained
    }

    /// Resets the growth to `before`, an earlier result of [`Ledger::gained`], after the edits since then were
    /// discarded.
    pub(crate) fn restore_gained(&mut self, before: i64) {
        self.gained = before;
    }

    pub(crate) fn lose(&mut self, octets: i64) {
        self.gained = self.gained.saturating_sub(octets);
    }

    pub(crate) fn room(&self) -> u64 {
        let room = signed(self.limits.growth).saturating_sub(self.gained);
        u64::try_from(room).unwrap_or_default()
    }

    pub(crate) fn retrieve(&mut self) -> Result<(), Refusal> {
        if self.retrievals >= self.limits.fetches {
            return Err(self.enough_retrievals());
        }
        self.retrievals += 1;
        Ok(())
    }

    pub(crate) fn enough_retrievals(&self) -> Refusal {
        let most = self.limits.fetches;
        let why = format!(
            " is {most}, and earlier references in the message have already used all of these retrievals"
        );
        let detail = Detail::default().naming(Setting::Fetches).then(why);
        Refusal::lasting(Reason::TooManyFetches, detail)
    }

    /// Returns how many more bytes of content may be held in memory. Content beyond the growth limit could not be
    /// inserted, so retrieval stops there.
    pub(crate) fn room_for_bodies(&self) -> u64 {
        self.limits.growth.saturating_sub(self.retrieved)
    }

    pub(crate) fn hold(&mut self, octets: usize) {
        self.retrieved = self.retrieved.saturating_add(octets as u64);
    }

    /// Records that the edits were applied. Only applied edits raise the work limit, so content that was decoded but
    /// not inserted does not.
    pub(crate) fn keep(&mut self) {
        let gained = u64::try_from(self.gained).unwrap_or_default();
        self.kept = self.kept.max(gained);
    }

    /// Counts `octets` bytes of work, or refuses them if a limit would be exceeded. This must be called before bytes are read
    /// that a hostile message can make embody read many times.
    pub(crate) fn work(&mut self, octets: usize) -> Result<(), Refusal> {
        self.in_time()?;
        let total = self.work.saturating_add(octets as u64);
        if total <= self.most_work() {
            self.work = total;
            return Ok(());
        }
        Err(self.too_much_work())
    }

    /// Refuses another round if the earlier rounds together have read `spent` bytes and this is too much: more than one
    /// round may read, and more than [`FREE_ROUNDS`].
    pub(crate) fn judge_rounds(&self, spent: u64) -> Result<(), Refusal> {
        if spent <= self.most_work().max(FREE_ROUNDS) {
            Ok(())
        } else {
            Err(self.too_much_work())
        }
    }

    fn too_much_work(&self) -> Refusal {
        let most = self.limits.work;
        let what = format!(
            "embody would have to process more than {most} times the size of the message, the limit of "
        );
        let detail = Detail::from(what).naming(Setting::Work);
        Refusal::lasting(Reason::TooMuchWork, detail)
    }

    pub(crate) fn in_time(&mut self) -> Result<(), Refusal> {
        if self.work < self.next_look {
            return Ok(());
        }
        let Some(is_over) = &self.is_over else {
            return Ok(());
        };
        if is_over() {
            let detail = Detail::from("the work on the message did not end within ")
                .naming(Setting::Deadline);
            return Err(Refusal::temporary(Reason::Deadline, detail));
        }
        self.next_look = self.work.saturating_add(BETWEEN_LOOKS);
        Ok(())
    }

    /// Refuses content that is nested in other retrieved content if it would need too much memory: `octets`, the size
    /// of all levels together, must not exceed twice the size of the message and of all retrieved content.
    pub(crate) fn judge_held(&self, octets: usize) -> Result<(), Refusal> {
        let most = self.material().saturating_mul(2);
        if octets as u64 <= most.max(FREE) {
            return Ok(());
        }
        let detail = "the content and the part that contains the content would together need more memory than twice the size of the message";
        Err(Refusal::lasting(Reason::TooMuchWork, detail))
    }

    fn most_work(&self) -> u64 {
        let most = self.material().saturating_add(self.kept);
        most.saturating_mul(self.limits.work)
            .saturating_add(self.limits.growth)
    }

    fn material(&self) -> u64 {
        self.message.saturating_add(self.retrieved)
    }

    /// Returns how many more bytes may be used for URLs that were made absolute with a base URL. The limit exists
    /// because these URLs are held in memory, and creating them takes time.
    pub(crate) fn room_for_urls(&self) -> usize {
        let most_held = self.message.saturating_mul(2).saturating_add(FREE);
        let memory = most_held.saturating_sub(self.urls as u64);
        let work = self.most_work().saturating_sub(self.work);
        usize::try_from(memory.min(work)).unwrap_or(usize::MAX)
    }

    pub(crate) fn room_for_places(&self) -> usize {
        // Memory in bytes that is allowed even for a small message. It is enough to store where five thousand pictures
        // are used in HTML and CSS.
        const FREE: u64 = 12 << 20;
        usize::try_from(self.message.max(FREE)).unwrap_or(usize::MAX)
    }

    /// Returns the maximum total length in bytes of the `data:` URLs in style sheets. A limit is necessary, because
    /// such a URL can contain another style sheet with `data:` URLs, and each level contains all inner levels once
    /// more.
    pub(crate) fn room_for_nested(&self) -> usize {
        usize::try_from(self.material().max(FREE)).unwrap_or(usize::MAX)
    }

    pub(crate) fn hold_urls(&mut self, octets: usize) {
        self.urls = self.urls.saturating_add(octets);
    }

    pub(crate) fn release_urls(&mut self, octets: usize) {
        self.urls = self.urls.saturating_sub(octets);
    }

    /// Counts work without checking the limit. Used for the first reading of a message, which is always allowed.
    pub(crate) fn spend(&mut self, octets: usize) {
        self.work = self.work.saturating_add(octets as u64);
    }

    pub(crate) fn spent(&self) -> u64 {
        self.work
    }
}

fn signed(octets: u64) -> i64 {
    i64::try_from(octets).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn limits() -> Limits {
        Limits {
            growth: 100,
            fetches: 2,
            work: 3,
            ..Limits::default()
        }
    }

    #[test]
    fn smaller_growth_is_admitted_after_a_larger_one_was_refused() {
        let mut ledger = Ledger::new(&limits(), 10);
        assert!(ledger.grow(90).is_ok());
        assert!(ledger.grow(11).is_err());
        assert!(ledger.grow(10).is_ok());
        assert!(ledger.grow(1).is_err());
        assert!(ledger.grow(-5).is_ok());
        assert!(ledger.grow(5).is_ok());
        assert_eq!(ledger.room(), 0);
    }

    #[test]
    fn work_is_in_proportion_to_the_message_and_what_came_in() {
        let mut ledger = Ledger::new(&limits(), 10);
        assert!(ledger.work(129).is_ok());
        assert!(ledger.work(2).is_err());
        assert!(ledger.work(1).is_ok(), "what was refused is not counted");
        assert!(ledger.work(1).is_err());
        ledger.hold(10);
        assert!(ledger.work(30).is_ok());
        assert!(ledger.work(1).is_err());
        assert!(ledger.grow(10).is_ok());
        assert!(ledger.work(1).is_err(), "it may be restored yet");
        ledger.keep();
        assert!(ledger.work(30).is_ok());
        assert!(ledger.work(1).is_err());
        ledger.spend(5);
        assert_eq!(ledger.spent(), 195);
    }

    #[test]
    fn no_work_is_admitted_after_the_deadline() {
        let unlimited = Limits {
            work: 1 << 40,
            ..limits()
        };
        let ledger = || Ledger::new(&unlimited, 1 << 20);
        let mut late = ledger().until(&(Arc::new(|| true) as IsOver));
        let refusal = late.work(1).expect_err("it is over");
        assert_eq!(refusal.reason, Reason::Deadline);
        assert_eq!(late.spent(), 0);
        let is_late = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_late);
        let is_over: IsOver = Arc::new(move || asked.load(Ordering::Relaxed));
        let mut soon = ledger().until(&is_over);
        assert!(soon.work(1 << 20).is_ok());
        is_late.store(true, Ordering::Relaxed);
        assert!(soon.work(1).is_err() && soon.in_time().is_err());
    }

    #[test]
    fn retrievals_are_counted() {
        let mut ledger = Ledger::new(&limits(), 10);
        assert!(ledger.retrieve().is_ok() && ledger.retrieve().is_ok());
        let refusal = ledger.retrieve().expect_err("that is one too many");
        assert_eq!(refusal.reason, Reason::TooManyFetches);
    }
}
