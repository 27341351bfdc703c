//! A directory in which a mail client stores files next to a mailbox.
//!
//! The sender of a mail decides which file names it contains, so these names are untrusted. A name from a mail is never opened:
//! it is compared with the names in a directory listing, and the matching entry is opened relative to its directory. Symbolic
//! links are refused, both as files and as directories.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::allowance::RequestAllowance;
use super::system::file::{not_regular, read_regular, regular, unreadable};
use crate::engine::policy::Policy;
use crate::engine::report::Refusal;

#[derive(Clone, Debug)]
pub(crate) struct SidecarFolder {
    path: PathBuf,
    handle: Arc<Dir>,
}

impl SidecarFolder {
    pub(crate) fn open(path: PathBuf) -> Result<Self, Refusal> {
        let handle = Dir::open_ambient_dir(&path, ambient_authority())
            .map_err(|why| unreadable(&path, &why))?
            .into();
        Ok(Self { path, handle })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a subdirectory. Returns `None` if it does not exist, and an error if it is a symbolic link or not a directory.
    pub(crate) fn folder(&self, name: &OsStr) -> Result<Option<Self>, Refusal> {
        let path = self.path.join(name);
        match self.handle.symlink_metadata(name) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(unreadable(&path, &why)),
            Ok(metadata) if !metadata.is_dir() => return Err(not_regular(&path)),
            Ok(_) => {}
        }
        // A symbolic link may replace the directory between the check and this call. It can lead only to another directory
        // inside this one, because `open_dir` does not leave it.
        let handle = self
            .handle
            .open_dir(name)
            .map_err(|why| unreadable(&path, &why))?
            .into();
        Ok(Some(Self { path, handle }))
    }

    /// Returns the names of the files, sorted. Files that macOS creates itself (`.DS_Store`, `._*`) are left out.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, Refusal> {
        let failed = |why| unreadable(&self.path, &why);
        let is_note = |name: &[u8]| name == b".DS_Store" || name.starts_with(b"._");
        let mut names = Vec::new();
        for entry in self.handle.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            let name = entry.file_name();
            if !is_folder && !is_note(name.as_encoded_bytes()) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the length of a file in bytes. A symbolic link is refused.
    pub(crate) fn length(&self, name: &OsStr) -> Result<u64, Refusal> {
        let path = self.path.join(name);
        let metadata = self
            .handle
            .symlink_metadata(name)
            .map_err(|why| unreadable(&path, &why))?;
        regular(&path, &metadata)?;
        Ok(metadata.len())
    }

    pub(crate) fn read(
        &self,
        name: &OsStr,
        policy: &Policy,
        allowance: RequestAllowance,
    ) -> Result<Vec<u8>, Refusal> {
        policy.judge_size(self.length(name)?)?;
        let path = self.path.join(name);
        read_regular(&self.handle, Path::new(name), &path, policy, allowance)
    }
}

/// Converts a name to the form in which macOS stores it: `/` becomes `:`, and accented letters are decomposed (NFD).
pub(super) fn on_disk(name: &str) -> String {
    let decomposed = icu_normalizer::DecomposingNormalizer::new_nfd().normalize(name);
    decomposed.replace('/', ":")
}
