//! A cache for systems other than Unix: opening one is always an error, because the real code needs file descriptors, owners
//! and locks of Unix.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::the_cache;
use crate::error::Error;
use crate::key::Key;
use crate::platform::disk::layout::Area;

/// A cache directory. No value of this type exists, because opening a cache fails on this system.
#[derive(Debug)]
pub struct CacheFolder(Infallible);

impl CacheFolder {
    /// Returns an error, because this system is not supported.
    ///
    /// # Errors
    /// Always [`Error::Usage`].
    pub fn open(path: &Path, _at_most: Option<u64>) -> Result<Self, Error> {
        let why = format!(
            "{} works only on Linux, macOS and other Unix systems; leave the option out",
            the_cache(path)
        );
        Err(Error::Usage(why.into()))
    }

    /// Returns an error, because this system is not supported.
    ///
    /// # Errors
    /// Always [`Error::Usage`].
    pub fn open_to_read(path: &Path, at_most: Option<u64>) -> Result<Self, Error> {
        Self::open(path, at_most)
    }

    /// This method is never called, because no value of the type exists. The same is true of the methods below.
    pub fn trouble(&self) -> Option<&str> {
        match self.0 {}
    }

    pub(super) fn read(&self, _area: Area, _key: &Key, _at_most: u64) -> Option<Vec<u8>> {
        match self.0 {}
    }

    pub(super) fn write(&self, _area: Area, _key: &Key, _octets: &[u8]) -> bool {
        match self.0 {}
    }

    pub(super) fn path(&self, _area: Area, _key: &Key) -> PathBuf {
        match self.0 {}
    }

    pub(super) fn remove(&self, _area: Area, _key: &Key) {
        match self.0 {}
    }
}

pub(crate) struct RunFolder {
    pub(crate) cache: Arc<CacheFolder>,
    pub(crate) path: PathBuf,
    pub(crate) has_earlier_run: bool,
    never: Infallible,
}

impl RunFolder {
    pub(crate) fn open(path: &Path, _leaves: Option<u64>) -> Result<Self, Error> {
        let why = io::Error::new(
            io::ErrorKind::Unsupported,
            "the cache works only on Linux, macOS and other Unix systems",
        );
        Err(Error::cannot_write(the_cache(path))(why))
    }

    pub(crate) fn journal(&self) -> (Option<File>, Option<File>) {
        match self.never {}
    }

    pub(crate) fn answers(&self) -> usize {
        match self.never {}
    }

    pub(crate) fn remove(&self) -> bool {
        match self.never {}
    }
}
