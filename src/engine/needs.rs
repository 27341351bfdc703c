//! The interface between the engine and its driver: the content that a message needs, and the content that the driver
//! has retrieved for it.
//!
//! A round (one call of the engine) never retrieves anything. It lists the content that it lacks. The driver begins
//! another round when it has an answer for each of these needs. A round with the same answers always lists the same
//! needs.

use std::collections::HashMap;

use super::{Announcement, Answer, Content, Need, WholeMail};
use crate::engine::report::{Detail, Reason, Refusal, Setting};

/// Content that a message needs next and for which the driver has not given an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Needs {
    /// Needs in document order. No need depends on another one, so all of them can be retrieved at the same time.
    pub batch: Vec<Need>,
    /// Maximum total length in bytes of the contents for this batch. Content that exceeds it is refused, so a driver
    /// may stop a retrieval as soon as the limit is reached.
    pub room: u64,
}

/// Answer to a need, as the engine uses it. `Ok(None)` means that there is no content yet: the run is only a preview,
/// or the round has stopped and will be repeated with the content.
pub(crate) type Found<T> = Result<Option<T>, Refusal>;

/// The answers of the driver so far, one for each need.
#[derive(Clone, Default, Debug)]
pub struct Answers {
    found: HashMap<Need, Found<Content>>,
    announced: HashMap<Need, Announcement>,
    /// The mail whose part is missing. All needs for a copy of a part contain this mail, so it is copied and hashed
    /// once, and not in each round.
    mail: Option<WholeMail>,
}

impl Answers {
    /// No answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the answer to a need. A later answer replaces an earlier one.
    ///
    /// Content that is only announced is not inserted. Its reference gets the outcome
    /// [`WouldFetch`](crate::engine::report::Outcome::WouldFetch).
    pub fn insert(&mut self, need: Need, answer: Result<Answer, Refusal>) {
        let found = match answer {
            Ok(Answer::Content(content)) => Ok(Some(content)),
            Ok(Answer::Announced(announcement)) => {
                self.announced.insert(need.clone(), announcement);
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        };
        self.found.insert(need, found);
    }

    pub(super) fn get(&self, need: &Need) -> Option<&Found<Content>> {
        self.found.get(need)
    }

    /// Returns the facts about the content of a need, if the source only announced the content.
    pub(super) fn announcement(&self, need: &Need) -> Option<&Announcement> {
        self.announced.get(need)
    }

    /// Returns the mail as it is stored in needs for a copy of one of its parts. The mail is copied and hashed only at
    /// the first call for the same mail.
    pub(super) fn mail(&mut self, mail: &[u8]) -> WholeMail {
        match &self.mail {
            Some(known) if known.bytes() == mail => known.clone(),
            _ => self.mail.insert(WholeMail::new(mail.to_vec())).clone(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.found.clear();
        self.announced.clear();
        self.mail = None;
    }
}

/// Returns the refusal for content that exceeds the memory which is left for the contents of this message. `room` is the number
/// of bytes that are left.
pub(crate) fn too_much(room: u64) -> Refusal {
    let what = format!(
        "this file and the files retrieved before it are together larger than the {room} bytes that "
    );
    let detail = Detail::from(what).naming(Setting::Growth);
    Refusal::lasting(Reason::GrowthLimit, detail.then(" still allows"))
}
