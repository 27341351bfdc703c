//! A source of content that reads detached attachments from a store.

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::engine::report::{Provenance, Reason, Refusal};
use crate::engine::{Answer, Content, Mode, Need};
use crate::fetch::store::{Key, Store, StoreError};
use crate::fetch::{Fetch, Request};

pub(super) struct FromStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) others: Arc<dyn Fetch>,
    pub(super) at_most: u64,
}

impl Fetch for FromStore {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        match &request.need {
            Need::Object { sha256 } => self.object(sha256),
            _ => self.others.fetch(request),
        }
    }

    /// Reads the object even in a dry run, because only this shows whether the store has it intact.
    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        match &request.need {
            Need::Object { sha256 } => self.object(sha256).map(Answer::Content),
            _ => self.others.answer(request, mode),
        }
    }
}

impl FromStore {
    fn object(&self, sha256: &str) -> Result<Content, Refusal> {
        let begun = Instant::now();
        let Some(key) = Key::parse(sha256) else {
            return Err(Refusal::lasting(
                Reason::BadNote,
                "the X-Embody-Detached field contains no valid SHA-256",
            ));
        };
        match self.store.get(&key, self.at_most) {
            Ok(Some(octets)) => {
                let mut content = Content::new("", None, octets);
                content.origin.from = Provenance::Store;
                content.origin.at = Some(SystemTime::now());
                content.origin.elapsed = begun.elapsed();
                Ok(content)
            }
            Ok(None) => {
                let detail = format!("{} is not in the store", key.path());
                Err(Refusal::lasting(Reason::NotInStore, detail))
            }
            Err(error) => Err(refusal_of(&error)),
        }
    }
}

pub(crate) fn refusal_of(error: &StoreError) -> Refusal {
    let causes: Vec<String> = successors(Some(error as &dyn Error), |&error| error.source())
        .map(ToString::to_string)
        .collect();
    let detail = causes.join(": ");
    if error.is_temporary() {
        Refusal::temporary(Reason::StoreFailed, detail)
    } else {
        Refusal::lasting(Reason::StoreFailed, detail)
    }
}
