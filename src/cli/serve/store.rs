//! The store of the service. It is open for writing only while messages are detached, because `store gc` has to wait
//! while a store is open.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::super::detach::open;
use crate::engine::policy::Policy;
use crate::error::{Error, unpoisoned};
use crate::fetch::store::{Mail, Store, StorePurpose, User};
use crate::platform;

/// Idle time after which the store is closed.
const IDLE: Duration = Duration::from_secs(1);

const TICK: Duration = Duration::from_millis(250);

pub(super) struct ServedStore {
    name: String,
    policy: Policy,
    pub(super) reading: Arc<dyn Store>,
    writing: Arc<Mutex<Option<StoreWriter>>>,
}

struct StoreWriter {
    store: Arc<dyn Store>,
    used: Instant,
}

/// Returns a warning for each directory that is not writable. The service starts anyway, because it can do other work.
pub(super) fn warnings(store: Option<&str>, spool: &Path) -> Vec<String> {
    let warning = |(path, option, request): (&Path, &str, &str)| {
        let why = platform::check_writable(path).err()?;
        Some(format!(
            "cannot write to the directory {} of {option} ({why}), so {request} fails; make it writable for the user id {}",
            path.display(),
            platform::user()
        ))
    };
    let is_local = |store: &&str| !store.contains("://");
    let of_spool = (spool, "--spool", "/v1/messages");
    store
        .filter(is_local)
        .map(|store| (Path::new(store), "--store", "/v1/detach"))
        .into_iter()
        .chain([of_spool])
        .filter_map(warning)
        .collect()
}

impl ServedStore {
    /// Opens the store, and creates it if it is missing.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub(super) fn open(name: &str, policy: &Policy) -> Result<Self, Error> {
        let is_local = !name.contains("://");
        if is_local && super::super::detach::is_missing(name) {
            drop(open(name, StorePurpose::Put, policy)?);
        }
        let served = Self {
            name: name.to_owned(),
            policy: policy.clone(),
            reading: open(name, StorePurpose::Read, policy)?,
            writing: Arc::default(),
        };
        let writing = Arc::downgrade(&served.writing);
        let closing = move || {
            while let Some(writing) = writing.upgrade() {
                let is_idle = |writing: &mut StoreWriter| {
                    Arc::strong_count(&writing.store) == 1 && writing.used.elapsed() >= IDLE
                };
                drop(unpoisoned(writing.lock()).take_if(is_idle));
                drop(writing);
                thread::sleep(TICK);
            }
        };
        let started = thread::Builder::new()
            .name("store".to_owned())
            .spawn(closing);
        started.map_err(Error::cannot_read("the store"))?;
        Ok(served)
    }

    /// Returns the store for writing. It stays open as long as the caller keeps it, and a little longer.
    ///
    /// # Errors
    /// The store cannot be written, or a garbage collection has locked it.
    pub(super) fn to_write(&self) -> Result<Arc<dyn Store>, Error> {
        let mut writing = unpoisoned(self.writing.lock());
        if let Some(writing) = writing.as_mut() {
            writing.used = Instant::now();
            return Ok(Arc::clone(&writing.store));
        }
        let store = open(&self.name, StorePurpose::Put, &self.policy)?;
        store.puts_from(User::this(Mail::Filtered));
        *writing = Some(StoreWriter {
            store: Arc::clone(&store),
            used: Instant::now(),
        });
        Ok(store)
    }
}
