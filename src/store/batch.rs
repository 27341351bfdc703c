//! Objects on their way into a folder: written under a temporary name, made durable together, then named.
//!
//! The order is what keeps a crash from leaving a file whose name lies: content synced, read back and hashed, named,
//! the name synced. Objects go through this together, several at a time side by side, because a file system
//! writes its journal once for all that wait for it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use rustix::fs::AtFlags;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::contract::again;
use super::places::{Places, sync};
use super::{Key, StoreError};

/// Threads that wait for the disk at the same time.
const SIDE_BY_SIDE: usize = 16;

/// An object that is not durable yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) file: File,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// Under this name in the folder of temporary files.
    Written(String),
    /// Under its own name before this run; its time was set anew.
    Reused,
}

/// Makes all of them durable; those that could not be made so, and why.
pub(super) fn commit(
    places: &Places,
    temporaries: &OwnedFd,
    batch: HashMap<Key, Pending>,
) -> HashMap<Key, StoreError> {
    let mut failed = HashMap::new();
    let (keys, pending): (Vec<Key>, Vec<Pending>) = batch.into_iter().unzip();
    let written = side_by_side(&pending, content_is_durable);
    let mut folders: BTreeMap<[String; 2], (OwnedFd, Vec<Key>)> = BTreeMap::new();
    for ((key, pending), read_back) in keys.iter().zip(&pending).zip(written) {
        let placed = check(places, key, read_back).and_then(|()| {
            let folder = places.made(key)?;
            if let State::Written(name) = &pending.state {
                place(places, temporaries, name, &folder, key)?;
            }
            Ok(folder)
        });
        match placed {
            Ok(folder) => {
                let (_, keys) = folders
                    .entry(key.folders())
                    .or_insert_with(|| (folder, Vec::new()));
                keys.push(*key);
            }
            Err(why) => {
                failed.insert(*key, why);
            }
        }
        if let State::Written(name) = &pending.state {
            remove(temporaries, name);
        }
    }
    let folders: Vec<_> = folders.into_values().collect();
    let synced = side_by_side(&folders, |(folder, _)| sync(folder));
    let all_there = places.check();
    for ((_, keys), synced) in folders.iter().zip(synced) {
        for key in keys {
            let why = match (&synced, &all_there) {
                (Err(why), _) => places.trouble(&key.path(), again(why)),
                (_, Err(why)) => why.again(),
                (Ok(()), Ok(())) => continue,
            };
            failed.insert(*key, why);
        }
    }
    failed
}

/// Does the same to each, on several threads where there are several; the results are in order.
fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work_on = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let result = work(item);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..items.len().min(SIDE_BY_SIDE) {
            // Where there are no more threads to be had it takes longer.
            if std::thread::Builder::new()
                .spawn_scoped(scope, work_on)
                .is_err()
            {
                break;
            }
        }
        work_on();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Syncs the content; for what was written, reads it back as the disk has it and hashes it.
fn content_is_durable(pending: &Pending) -> io::Result<Option<Key>> {
    sync(&pending.file)?;
    match pending.state {
        State::Reused => Ok(None),
        State::Written(_) => {
            // What is in memory would say nothing about the disk.
            #[cfg(target_os = "linux")]
            let _ = rustix::fs::fadvise(&pending.file, 0, None, rustix::fs::Advice::DontNeed);
            hash_of(&pending.file).map(Some)
        }
    }
}

fn check(places: &Places, key: &Key, read_back: io::Result<Option<Key>>) -> Result<(), StoreError> {
    match read_back.map_err(|why| places.trouble(&key.path(), why))? {
        Some(read) if read != *key => Err(StoreError::temporary(format!(
            "{}: what was written is not what is read back",
            places.path().join(key.path()).display()
        ))),
        _ => Ok(()),
    }
}

/// Gives a written object its name. What has that name is never replaced.
fn place(
    places: &Places,
    temporaries: &OwnedFd,
    name: &str,
    folder: &OwnedFd,
    key: &Key,
) -> Result<(), StoreError> {
    let trouble = |why: Errno| places.trouble(&key.path(), why.into());
    match rename_to_new(temporaries, name, folder, &key.to_string()) {
        // Another process was faster.
        Err(Errno::EXIST) => match reuse(places, key)? {
            Some(there) => sync(&there).map_err(|why| places.trouble(&key.path(), why)),
            None => Err(trouble(Errno::NOENT)),
        },
        done => done.map_err(trouble),
    }
}

#[cfg(target_os = "linux")]
pub(super) fn rename_to_new(
    from: &OwnedFd,
    old: &str,
    to: &OwnedFd,
    new: &str,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, old, to, new, rustix::fs::RenameFlags::NOREPLACE) {
        // File systems of other kinds (NFS).
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(from, old, to, new, AtFlags::empty())
        }
        done => done,
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn rename_to_new(
    from: &OwnedFd,
    old: &str,
    to: &OwnedFd,
    new: &str,
) -> Result<(), Errno> {
    rustix::fs::linkat(from, old, to, new, AtFlags::empty())
}

/// The object that is there already, verified and touched, so that a collection that looks at its age keeps it;
/// none if it is not there.
pub(super) fn reuse(places: &Places, key: &Key) -> Result<Option<File>, StoreError> {
    let there = verified(places, key)?;
    if let Some(file) = &there {
        let touched = file.set_modified(SystemTime::now());
        touched.map_err(|why| places.trouble(&key.path(), why))?;
    }
    Ok(there)
}

/// The object, which is what its name says; none if it is not there.
pub(super) fn verified(places: &Places, key: &Key) -> Result<Option<File>, StoreError> {
    let Some(file) = places.object(key)? else {
        return Ok(None);
    };
    match hash_of(&file).map_err(|why| places.trouble(&key.path(), why))? == *key {
        true => Ok(Some(file)),
        false => Err(places.not_its_name(key)),
    }
}

/// The key of all that a file holds, from its start.
pub(super) fn hash_of(mut file: &File) -> io::Result<Key> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Sha256::new();
    io::copy(&mut BufReader::with_capacity(64 << 10, file), &mut hash)?;
    Ok(Key::finished(hash))
}

/// Takes a temporary file away. Best effort: a later run sweeps what stays.
pub(super) fn remove(temporaries: &OwnedFd, name: &str) {
    let _ = rustix::fs::unlinkat(temporaries, name, AtFlags::empty());
}
