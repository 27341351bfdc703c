//! Lists the objects of a store in a directory and all unknown files in it, and removes objects.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, RawMode};

use super::batch::verified;
use super::folder::Folder;
use super::{StoreError, StoreObject, User, users};
use crate::key::Key;
use crate::platform::disk::layout::{STORE_LOCK, STORE_TEMPORARIES, STORE_USERS, is_of_keys};
use crate::platform::disk::{names, open_folder};

impl Folder {
    pub(crate) fn objects(&self) -> Result<(Vec<StoreObject>, Vec<String>), StoreError> {
        let (mut objects, mut strangers) = (Vec::new(), Vec::new());
        for outer in self.places.at("", names(&self.places.root))? {
            if [STORE_LOCK, STORE_TEMPORARIES, STORE_USERS].contains(&outer.as_str()) {
                continue;
            }
            let Some(at) = self.inner(&self.places.root, &outer, &outer, &mut strangers)? else {
                continue;
            };
            for inner in self.places.at(&outer, names(&at))? {
                let place = format!("{outer}/{inner}");
                let Some(at) = self.inner(&at, &inner, &place, &mut strangers)? else {
                    continue;
                };
                for name in self.places.at(&place, names(&at))? {
                    match self.object(&at, &place, &name)? {
                        Some(object) => objects.push(object),
                        None => strangers.push(format!("{place}/{name}")),
                    }
                }
            }
        }
        objects.sort_unstable_by_key(|object| object.key);
        strangers.sort_unstable();
        Ok((objects, strangers))
    }

    pub(crate) fn users(&self) -> Result<Option<Vec<(User, PathBuf)>>, StoreError> {
        users::all(&self.places)
    }

    fn inner(
        &self,
        at: &OwnedFd,
        name: &str,
        path: &str,
        strangers: &mut Vec<String>,
    ) -> Result<Option<OwnedFd>, StoreError> {
        if is_of_keys(name.as_bytes()) {
            let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
            let mode = self.places.at(path, stat)?.st_mode;
            if FileType::from_raw_mode(mode as RawMode) == FileType::Directory {
                return self.places.at(path, open_folder(at, name).map(Some));
            }
        }
        strangers.push(path.to_owned());
        Ok(None)
    }

    fn object(
        &self,
        at: &OwnedFd,
        place: &str,
        name: &str,
    ) -> Result<Option<StoreObject>, StoreError> {
        let Some(key) = Key::parse(name).filter(|key| key.path() == format!("{place}/{name}"))
        else {
            return Ok(None);
        };
        let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = self.places.at(&key.path(), found)?;
        let is_file = FileType::from_raw_mode(stat.st_mode as RawMode) == FileType::RegularFile;
        // A negative time, which is before 1970, counts as 1970.
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        Ok(is_file.then(|| StoreObject {
            key,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
        }))
    }

    pub(crate) fn verify(&self, key: &Key) -> Result<(), StoreError> {
        if verified(&self.places, key)?.is_none() {
            self.places.check()?;
            return Err(missing(key));
        }
        Ok(())
    }

    pub(crate) fn pieces(&self, key: &Key, each: &mut dyn FnMut(&[u8])) -> Result<(), StoreError> {
        let mut file = self.places.object(key)?.ok_or_else(|| missing(key))?;
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => each(&piece[..read]),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(self.places.trouble(&key.path(), why)),
            }
        }
    }

    pub(crate) fn remove(&self, key: &Key, before: SystemTime) -> Result<bool, StoreError> {
        if !self.is_alone() {
            return Err(StoreError::lasting(
                "cannot remove an object, because another process may be using the store; run the command again when it has ended",
            ));
        }
        let Some(folder) = self.places.existing(key)? else {
            return Ok(false);
        };
        let name = key.to_string();
        let object = self.object(&folder, &key.folders().join("/"), &name)?;
        if object.is_none_or(|object| object.modified >= before) {
            return Ok(false);
        }
        let removed = rustix::fs::unlinkat(&folder, &name, AtFlags::empty());
        self.places.at(&key.path(), removed.map(|()| true))
    }
}

fn missing(key: &Key) -> StoreError {
    StoreError::lasting(format!(
        "{}: the store does not contain this object",
        key.path()
    ))
}
