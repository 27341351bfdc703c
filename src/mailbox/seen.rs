//! The state of the files and directories that a search has seen, which shows later whether they have changed.

use std::fs::{self, Metadata};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use crate::mailbox::identity::FileIdentity;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct SeenFiles {
    /// The directories, and the source itself if it is a file.
    places: Vec<(PathBuf, FileIdentity)>,
    /// Sum of a hash for each file in the directories. The paths of these files are in other lists, so only the sum is kept.
    files: u64,
}

impl SeenFiles {
    /// Adds a directory, or the source. `metadata` must be from before the directory was listed or the file was read.
    pub(crate) fn add_place(&mut self, path: &Path, metadata: &Metadata) {
        self.places
            .push((path.to_owned(), FileIdentity::of(metadata)));
    }

    /// Adds a regular file in a directory.
    pub(crate) fn add_file(&mut self, path: &Path, metadata: &Metadata) {
        self.files = self.files.wrapping_add(hash_of(path, metadata));
    }

    /// Returns whether a directory or file has changed. `paths` contains all paths that [`add_file`](Self::add_file) got. Other
    /// paths in it must not be those of regular files.
    pub(crate) fn has_changed<'p>(&self, paths: impl Iterator<Item = &'p Path>) -> bool {
        let is_same = |(path, before): &(PathBuf, FileIdentity)| {
            fs::metadata(path).is_ok_and(|now| FileIdentity::of(&now) == *before)
        };
        if !self.places.iter().all(is_same) {
            return true;
        }
        // If the source is a file, its state is that of the only place.
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
