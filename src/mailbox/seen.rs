//! Remembers the state of the files and directories of a search, to detect later changes.

use std::fs::{self, Metadata};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use crate::mailbox::identity::FileIdentity;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct SeenFiles {
    /// State of each directory, or of the source if it is a file.
    places: Vec<(PathBuf, FileIdentity)>,
    /// Sum of a hash of each file in the directories. The paths of the files are in other lists, so keeping the sum is
    /// enough.
    files: u64,
}

impl SeenFiles {
    /// Adds a directory, or a source that is a file. `metadata` must have been read before the directory was listed or
    /// the file was read; otherwise a change in between would go unnoticed.
    pub(crate) fn add_place(&mut self, path: &Path, metadata: &Metadata) {
        self.places
            .push((path.to_owned(), FileIdentity::of(metadata)));
    }

    /// Adds a regular file that is in a directory.
    pub(crate) fn add_file(&mut self, path: &Path, metadata: &Metadata) {
        self.files = self.files.wrapping_add(hash_of(path, metadata));
    }

    /// Returns whether a directory or file has changed. `paths` must contain all paths that were passed to
    /// [`add_file`](Self::add_file), and no other regular files.
    pub(crate) fn has_changed<'p>(&self, paths: impl Iterator<Item = &'p Path>) -> bool {
        let is_same = |(path, before): &(PathBuf, FileIdentity)| {
            fs::metadata(path).is_ok_and(|now| FileIdentity::of(&now) == *before)
        };
        if !self.places.iter().all(is_same) {
            return true;
        }
        // A source that is a file was added with `add_place`, so it is not part of the sum.
        let source = match self.places.as_slice() {
            [(source, _)] => Some(source.as_path()),
            _ => None,
        };
        let files = paths.filter(|path| Some(*path) != source);
        let hashes = files.filter_map(|path| {
            let found = fs::symlink_metadata(path).ok();
            let file = found.filter(Metadata::is_file)?;
            Some(hash_of(path, &file))
        });
        hashes.fold(0, u64::wrapping_add) != self.files
    }
}

fn hash_of(path: &Path, metadata: &Metadata) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((path, FileIdentity::of(metadata)))
}
