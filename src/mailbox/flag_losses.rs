//! Flags and keywords that the result of a run cannot store. Each is reported once, with the number of messages that had it.

use std::collections::BTreeMap;

use crate::mailbox::Observer;
use crate::mailbox::event::MailboxFact;

/// Maximum number of flags and keywords that are named. The names of keywords are untrusted input.
const MOST: usize = 1000;

#[derive(Default, Debug)]
pub(crate) struct FlagLosses {
    named: BTreeMap<String, u64>,
    others: u64,
}

impl FlagLosses {
    /// Counts a message. `what` names the flag and says why it is lost.
    pub(crate) fn count(&mut self, what: String) {
        self.count_all(what, 1);
    }

    /// Counts several messages, if there are any.
    pub(crate) fn count_all(&mut self, what: String, messages: u64) {
        if messages == 0 {
            return;
        }
        if self.named.len() < MOST || self.named.contains_key(&what) {
            *self.named.entry(what).or_default() += messages;
        } else {
            self.others += messages;
        }
    }

    pub(crate) fn report<S>(self, observer: &dyn Observer<S>) {
        self.each(&mut |what, count| {
            observer.event(MailboxFact::LostFlags(what.to_owned(), count).into())
        });
    }

    /// Calls `take` with each flag and the number of its messages.
    pub(crate) fn each(self, take: &mut dyn FnMut(&str, u64)) {
        for (what, count) in self.named {
            take(&what, count);
        }
        if self.others > 0 {
            take("keywords that are not named here", self.others);
        }
    }
}
