//! The loop around the [planner](crate::engine::detach): it stores what a plan moves out of a message.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::engine::Mode;
use crate::engine::detach::{Choice, Detachment, Object, Planner, Refused, Stub};
use crate::error::{Error, unpoisoned};
use crate::expand::refusal_of;
use crate::policy::OnFailure;
use crate::report::Refusal;
use crate::store::{Key, Store, StoreError};

/// Where content goes, which parts leave, and what is left in their places.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where content goes. `None` for a dry run.
    pub store: Option<Arc<dyn Store>>,
    /// The start of an object's URL, up to its path, with its last slash.
    pub base_url: String,
    /// Which parts leave.
    pub choice: Choice,
    /// What is left in the place of a part.
    pub form: Stub,
    /// Whether embody adds a text to the mail that names the parts that left. A text that is there already is kept true in any
    /// case.
    pub text: bool,
    /// What to do if the store fails temporarily.
    pub on_failure: OnFailure,
}

impl Settings {
    /// The [default](Choice::default) choice, to this store, with message/external-body parts that refer to its URLs.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            base_url: store.base_url(),
            store: Some(store),
            choice: Choice::default(),
            form: Stub::default(),
            text: false,
            on_failure: OnFailure::default(),
        }
    }
}

/// Moves attachments into a store.
#[derive(Debug)]
pub struct Detacher {
    planner: Planner,
    store: Option<Arc<dyn Store>>,
    on_failure: OnFailure,
    /// Lengths, in bytes, of the objects that a dry run would store.
    foreseen: Mutex<HashMap<Key, u64>>,
}

impl Detacher {
    /// A detacher with these settings.
    pub fn new(settings: Settings) -> Self {
        let mode = match settings.store {
            Some(_) => Mode::Run,
            None => Mode::DryRun,
        };
        let planner = Planner::new(settings.choice, settings.base_url, mode);
        Self {
            planner: planner.leaving(settings.form, settings.text),
            store: settings.store,
            on_failure: settings.on_failure,
            foreseen: Mutex::default(),
        }
    }

    /// The number of objects that a dry run would store, and their bytes. (0, 0) for a run with a store.
    pub fn foreseen(&self) -> (u64, u64) {
        let foreseen = unpoisoned(self.foreseen.lock());
        (foreseen.len() as u64, foreseen.values().sum())
    }

    /// Position of the first byte of whole messages in `bytes` that [`Detacher::detach`] could change. `None` proves that
    /// nothing in them would leave. This is much faster than reading the messages.
    pub fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.planner.first_touch(bytes)
    }

    /// Detaches the attachments of one message. `name` is the name of the message in the report. Without a store, the edits
    /// are those that would be made, and the rows say so.
    ///
    /// # Errors
    /// [`Error::Deferred`] if the store failed temporarily and the settings say to try the whole message later.
    pub fn detach(&self, message: &[u8], name: &str) -> Result<Detachment, Error> {
        let mut detachment = match &self.store {
            Some(store) => self.store_objects(&**store, message, name),
            None => self.foresee(message, name),
        };
        if self.on_failure == OnFailure::Defer
            && let Some(detail) = detachment.temporary.take()
        {
            return Err(Error::Deferred(detail));
        }
        Ok(detachment)
    }

    fn foresee(&self, message: &[u8], name: &str) -> Detachment {
        let mut detachment = self.planner.plan(message, name, &Refused::new());
        let objects = detachment.objects.iter();
        let lengths = objects.map(|object| (object.key, object.length));
        unpoisoned(self.foreseen.lock()).extend(lengths);
        detachment.report = detachment.report.would();
        detachment
    }

    /// Plans, and stores what the plan moves out. What the store refuses stays in the mail, so the message is planned again
    /// without it. Each round refuses at least one more object, and the first one tries all of them.
    fn store_objects(&self, store: &dyn Store, message: &[u8], name: &str) -> Detachment {
        let mut refused = Refused::new();
        let mut stored = HashSet::new();
        loop {
            let detachment = self.planner.plan(message, name, &refused);
            let before = refused.len();
            for object in &detachment.objects {
                if !stored.contains(&object.key) {
                    match put(store, object, message) {
                        Ok(()) => drop(stored.insert(object.key)),
                        Err(refusal) => drop(refused.insert(object.key, refusal)),
                    }
                }
            }
            if refused.len() > before {
                continue;
            }
            let keys: Vec<Key> = detachment.objects.iter().map(|object| object.key).collect();
            if keys.is_empty() {
                return detachment;
            }
            match store.flush(&keys) {
                Ok(()) => return detachment,
                Err(error) => {
                    let refusal = refusal_of(&error);
                    refused.extend(keys.into_iter().map(|key| (key, refusal.clone())));
                }
            }
        }
    }
}

/// Only one content of a message is in memory at a time.
fn put(store: &dyn Store, object: &Object, message: &[u8]) -> Result<(), Refusal> {
    let content = object.content(message)?;
    match store.put(&content) {
        Ok(key) if key == object.key => Ok(()),
        Ok(key) => {
            let what = format!(
                "the store gave the content with the SHA-256 {} the name {key}; the store is not usable",
                object.key
            );
            Err(refusal_of(&StoreError::lasting(what)))
        }
        Err(error) => Err(refusal_of(&error)),
    }
}
