//! Where there is no Unix there is no store in a folder, which relies on descriptors, modes and locks; stores on
//! servers are the same everywhere.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Object, Store, StoreError, User};
use crate::disk::Key;

#[derive(Debug)]
pub(crate) enum NoFolder {}

impl NoFolder {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Err(StoreError::lasting(format!(
            "{}: a store in a folder needs Linux, macOS or another Unix; name one on a server, or run embody there",
            path.display()
        )))
    }

    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        Self::open(path)
    }

    pub fn open_alone(path: &Path) -> Result<Self, StoreError> {
        Self::open(path)
    }

    pub fn path(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn objects(&self) -> Result<(Vec<Object>, Vec<String>), StoreError> {
        match *self {}
    }

    pub(crate) fn users(&self) -> Result<Option<Vec<(User, PathBuf)>>, StoreError> {
        match *self {}
    }

    pub(crate) fn verify(&self, _key: &Key) -> Result<(), StoreError> {
        match *self {}
    }

    pub(crate) fn pieces(
        &self,
        _key: &Key,
        _each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        match *self {}
    }

    pub(crate) fn remove(&self, _key: &Key, _before: SystemTime) -> Result<bool, StoreError> {
        match *self {}
    }
}

impl Store for NoFolder {
    fn put(&self, _octets: &[u8]) -> Result<Key, StoreError> {
        match *self {}
    }

    fn flush(&self, _keys: &[Key]) -> Result<(), StoreError> {
        match *self {}
    }

    fn get(&self, _key: &Key, _at_most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match *self {}
    }

    fn base_url(&self) -> String {
        match *self {}
    }
}
