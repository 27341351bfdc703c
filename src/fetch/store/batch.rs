//! Makes a batch of new objects durable in a store in a directory.
//!
//! After a crash, every object has the content that its name promises: the content is synced, read back and hashed, then the
//! file is renamed, and the directory is synced. The objects of a batch are processed in parallel, because a file system writes
//! its journal once for all threads that wait for it. All objects of a batch are renamed before the first directory is synced,
//! so each directory is synced once.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::time::SystemTime;

use rustix::io::Errno;

use super::places::StorePlaces;
use super::{StoreError, again};
use crate::key::Key;
use crate::platform::disk::{Temporary, sync};

const SIDE_BY_SIDE: usize = 16;

#[derive(Debug)]
pub(super) enum ObjectFile {
    Written(Temporary),
    Reused(File),
}

pub(super) fn commit(
    places: &StorePlaces,
    batch: HashMap<Key, ObjectFile>,
) -> HashMap<Key, StoreError> {
    let mut failed = HashMap::new();
    let (keys, pending): (Vec<Key>, Vec<ObjectFile>) = batch.into_iter().unzip();
    let written = side_by_side(&pending, content_is_durable);
    let mut folders: BTreeMap<String, PendingSync> = BTreeMap::new();
    for ((key, pending), read_back) in keys.iter().zip(pending).zip(written) {
        match placed(places, key, pending, read_back) {
            Ok(made) => must_sync(places, key, made, &mut folders),
            Err(why) => {
                failed.insert(*key, why);
            }
        }
    }
    let folders: Vec<_> = folders.into_values().collect();
    let synced = side_by_side(&folders, |unsynced| match &unsynced.folder {
        Some(folder) => sync(folder),
        None => sync(&places.root),
    });
    let all_there = places.check();
    for (unsynced, synced) in folders.into_iter().zip(synced) {
        for key in unsynced.keys {
            let why = match (&synced, &all_there) {
                (Err(why), _) => places.trouble(&key.path(), again(why)),
                (_, Err(why)) => why.again(),
                (Ok(()), Ok(())) => continue,
            };
            failed.insert(key, why);
        }
        if synced.is_ok() {
            for name in unsynced.names {
                places.set_durable(name);
            }
        }
    }
    failed
}

/// A directory that must be synced.
#[derive(Default)]
struct PendingSync {
    /// Handle of the directory. `None` for the store itself.
    folder: Option<OwnedFd>,
    /// Objects that become durable with this sync.
    keys: Vec<Key>,
    /// Subdirectories that become durable with this sync.
    names: Vec<String>,
}

/// Adds the directories that must be synced for an object: its own, and those around it that this process has not synced
/// yet.
fn must_sync(
    places: &StorePlaces,
    key: &Key,
    [at, folder]: [OwnedFd; 2],
    folders: &mut BTreeMap<String, PendingSync>,
) {
    let [outer, inner] = key.folders();
    let place = format!("{outer}/{inner}");
    if !places.is_durable(&outer) {
        let root = folders.entry(String::new()).or_default();
        root.keys.push(*key);
        root.names.push(outer.clone());
    }
    if !places.is_durable(&place) {
        let around = folders.entry(outer).or_default();
        around.folder.get_or_insert(at);
        around.keys.push(*key);
        around.names.push(place.clone());
    }
    let own = folders.entry(place).or_default();
    own.folder.get_or_insert(folder);
    own.keys.push(*key);
}

fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let share = items.len().div_ceil(SIDE_BY_SIDE).max(1);
    let all = |items: &[T]| items.iter().map(&work).collect::<Vec<R>>();
    std::thread::scope(|scope| {
        let started: Vec<_> = items
            .chunks(share)
            .map(|items| {
                let thread = std::thread::Builder::new();
                (items, thread.spawn_scoped(scope, move || all(items)))
            })
            .collect();
        let done = started
            .into_iter()
            .flat_map(|(items, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|why| resume_unwind(why)),
                Err(_) => all(items),
            });
        done.collect()
    })
}

fn content_is_durable(pending: &ObjectFile) -> io::Result<Option<Key>> {
    match pending {
        ObjectFile::Reused(file) => sync(file).map(|()| None),
        ObjectFile::Written(temporary) => {
            sync(&temporary.file)?;
            // Drops the file from the page cache first, so that the hash is that of the bytes on the disk.
            #[cfg(target_os = "linux")]
            let _ = rustix::fs::fadvise(&temporary.file, 0, None, rustix::fs::Advice::DontNeed);
            Key::of_file(&temporary.file).map(Some)
        }
    }
}

/// Renames a new object to its final name. An existing file is never replaced.
fn placed(
    places: &StorePlaces,
    key: &Key,
    pending: ObjectFile,
    read_back: io::Result<Option<Key>>,
) -> Result<[OwnedFd; 2], StoreError> {
    let path = key.path();
    if places
        .at(&path, read_back)?
        .is_some_and(|read| read != *key)
    {
        let path = places.path.join(path);
        let what = "the bytes read back differ from those written";
        return Err(StoreError::temporary(format!("{}: {what}", path.display())));
    }
    let made = places.made(key)?;
    let [_, folder] = &made;
    if let ObjectFile::Written(temporary) = pending
        && !places.at(&path, temporary.become_new(folder, &key.to_string()))?
    {
        // Another process has created the object in the meantime. That object is verified and used.
        match reuse(places, key)? {
            Some(there) => places.at(&path, sync(&there))?,
            None => return places.at(&path, Err(Errno::NOENT)),
        }
    }
    Ok(made)
}

/// Verifies an existing object and updates its modification time. A garbage collection removes only objects with an old
/// modification time, so it keeps this one. Returns `None` if the object does not exist.
pub(super) fn reuse(places: &StorePlaces, key: &Key) -> Result<Option<File>, StoreError> {
    let there = verified(places, key)?;
    if let Some(file) = &there {
        places.at(&key.path(), file.set_modified(SystemTime::now()))?;
    }
    Ok(there)
}

pub(super) fn verified(places: &StorePlaces, key: &Key) -> Result<Option<File>, StoreError> {
    let Some(file) = places.object(key)? else {
        return Ok(None);
    };
    if places.at(&key.path(), Key::of_file(&file))? == *key {
        Ok(Some(file))
    } else {
        Err(places.not_its_name(&key.path()))
    }
}
