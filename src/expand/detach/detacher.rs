//! The loop around the [planner](crate::engine::detach): it stores the content that a plan moves out of a message.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use crate::engine::Mode;
use crate::engine::detach::{Choice, Detachment, Object, Planner, Refused, Stub};
use crate::engine::policy::OnFailure;
use crate::engine::report::Refusal;
use crate::error::{Error, unpoisoned};
use crate::expand::refusal_of;
use crate::fetch::store::{Key, Store, StoreError};

/// Where the content goes, which attachments are detached, and which references replace them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The destination of the content. `None` for a dry run.
    pub store: Option<Arc<dyn Store>>,
    /// Start of the URL of every object, up to and including the slash before the object's path.
    pub base_url: String,
    /// The rule that decides which parts are moved out.
    pub choice: Choice,
    /// The form of the reference that replaces a part.
    pub form: Stub,
    /// Whether to add a text to the mail that names the detached attachments. A text that an earlier run added is
    /// updated even if this is false.
    pub text: bool,
    /// Whether to report an error for the whole message if the store fails temporarily.
    pub on_failure: OnFailure,
}

impl Settings {
    /// Returns settings that move attachments of the [default](Choice::default) choice into `store`, and replace them
    /// by message/external-body parts with URLs of this store.
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

/// Moves attachments of messages into a store.
#[derive(Debug)]
pub struct Detacher {
    planner: Planner,
    store: Option<Arc<dyn Store>>,
    on_failure: OnFailure,
    /// Length, in bytes, of each object that a dry run would store.
    foreseen: Mutex<HashMap<Key, u64>>,
}

impl Detacher {
    /// Creates a detacher with these settings.
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

    /// Returns the number and the total bytes of the objects that a dry run would store. Returns (0, 0) for a run with
    /// a store.
    pub fn foreseen(&self) -> (u64, u64) {
        let foreseen = unpoisoned(self.foreseen.lock());
        (foreseen.len() as u64, foreseen.values().sum())
    }

    /// Returns the position of the first byte that [`Detacher::detach`] could change. `bytes` contains whole messages.
    /// `None` proves that no message has a part to detach. This is much faster than parsing the messages.
    pub fn first_touch(&self, bytes: &[u8]) -> Option<usize> {
        self.planner.first_touch(bytes)
    }

    /// Detaches the attachments of one message. `name` is the name of the message in the report. Without a store, the
    /// result contains the edits that a real run would make, and the outcomes in its report begin with `would-`.
    ///
    /// # Errors
    /// [`Error::Deferred`] if the store failed temporarily and the settings request that the whole message is tried
    /// again later.
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

    /// Plans the message, and stores the content to be moved out. If the store rejects an object, its part stays in the
    /// mail, and the message is planned again without it. The loop ends, because each round rejects at least one more
    /// object.
    fn store_objects(&self, store: &dyn Store, message: &[u8], name: &str) -> Detachment {
        let mut refused = Refused::new();
        let mut stored = HashSet::new();
        loop {
            let detachment = self.planner.plan(message, name, &refused);
            let before = refused.len();
            for object in &detachment.objects {
                // Two parts can have the same content, which is offered to the store once.
                if !stored.contains(&object.key) && !refused.contains_key(&object.key) {
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

/// Decodes and stores one object. Only one object of a message is in memory at a time.
fn put(store: &dyn Store, object: &Object, message: &[u8]) -> Result<(), Refusal> {
    let content = object.content(message)?;
    match store.put(&content) {
        Ok(key) if key == object.key => Ok(()),
        Ok(key) => {
            let what = format!(
                "the store returned the name {key} for content with the SHA-256 {}; use a store that names content by its SHA-256",
                object.key
            );
            Err(refusal_of(&StoreError::lasting(what)))
        }
        Err(error) => Err(refusal_of(&error)),
    }
}
