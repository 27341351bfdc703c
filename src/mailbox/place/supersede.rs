//! Replaces a message of a Maildir or MH folder by its changed version, while other programs move, rename and delete
//! messages.
//!
//! There are two ways: exchanging the files if the name stays the same, or linking the new file to a new name and
//! removing the old one. Both check the result of each step. If the message was moved in the meantime, or a step
//! failed, they undo what they did. No step removes a message that may be the only copy:
//! * The old name is removed only while the new file still has a name, which its link count shows.
//! * If the step is undone, the link of this run is removed, even if another program has renamed it. The link is kept
//!   if the old file was deleted: the other program then treats the new file as the message.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::failure::{cannot_read, cannot_write};
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::place::folder::{base_of, resized, with_flags_of};
use crate::mailbox::place::replace::{CompleteFile, is_same, sync_folder};
use crate::mailbox::temporary::folder_of;
use crate::platform::{
    self, MetadataExt as _, OsStrExt as _, absent, entries_of, exchange, rename_to_new,
};

/// Maximum number of attempts to remove the new file when a replacement is undone. Other programs may rename the file
/// before each attempt.
const SEARCHES: usize = 16;

pub(crate) struct OldFile<'a> {
    pub(crate) path: &'a Path,
    pub(crate) file: &'a File,
    pub(crate) before: &'a FileIdentity,
    pub(crate) twin: Option<&'a Path>,
    pub(crate) folders: &'a [PathBuf],
}

impl OldFile<'_> {
    /// Replaces the old message by the new one, whose content is `new`. Returns false, with nothing changed, if another
    /// program moved the old message in the meantime.
    pub(crate) fn give_way(&self, finished: CompleteFile, new: &[u8]) -> Result<bool, Error> {
        finished.sync()?;
        let renamed = resized(self.path, new);
        if renamed == self.path {
            return self.exchange(finished);
        }
        // A twin is another message file with the same unique name. If a run was killed after it had created the new
        // message, the twin is this new message, and only the old one must be removed. If the name of the twin does not
        // contain the new size, the twin is an old message, even if its content is equal.
        if let Some(twin) = self.twin
            && resized(twin, new) == twin
        {
            match equal(twin, &finished)? {
                EqualityCheck::Yes(file) => return self.leave_to(twin, &file),
                EqualityCheck::Moved => return Ok(false),
                EqualityCheck::No => {}
            }
        }
        if !self.is_there()? {
            return Ok(false);
        }
        let names = self.names()?;
        match fs::hard_link(finished.temporary.path(), &renamed) {
            Ok(()) => {
                let done = self.remove_beside(&finished, &renamed, names);
                if !matches!(done, Ok(true)) {
                    self.take_back(&finished, &renamed)?;
                }
                done
            }
            // The new name exists already: a run was killed before it could remove the old name, or another program
            // created the file. If its content is the new content, only the old message must be removed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match equal(&renamed, &finished)? {
                    EqualityCheck::Yes(file) => self.leave_to(&renamed, &file),
                    EqualityCheck::Moved | EqualityCheck::No => Ok(false),
                }
            }
            Err(error) => Err(cannot_write(&renamed)(error)),
        }
    }

    fn is_there(&self) -> Result<bool, Error> {
        is_still(self.before, self.path)
    }

    fn names(&self) -> Result<u64, Error> {
        let found = self.file.metadata();
        Ok(found.map_err(cannot_read(self.path))?.nlink())
    }

    /// Removes the old name after the new file was linked to `ours`. `names` is the number of links that the old file
    /// had before. Returns false if the old message was moved or replaced, so that the new link must be removed
    /// instead.
    fn remove_beside(
        &self,
        finished: &CompleteFile,
        ours: &Path,
        names: u64,
    ) -> Result<bool, Error> {
        sync_folder(folder_of(ours))?;
        if self.is_there()? {
            return Ok(is_linked(finished)? && self.remove()?);
        }
        let named = absent(fs::symlink_metadata(self.path));
        if named.map_err(cannot_read(self.path))?.is_some() {
            // Another program has replaced the old message by its own version. This version is kept, and the new link
            // is removed.
            return Ok(false);
        }
        let is_deleted = self.names()? < names && self.named_in_folders(self.file)?.is_none();
        Ok(is_deleted && is_linked(finished)?)
    }

    fn remove(&self) -> Result<bool, Error> {
        let removed = absent(fs::remove_file(self.path));
        Ok(removed.map_err(cannot_write(self.path))?.is_some())
    }

    /// Removes the old message, because the file `twin` at `path` already contains the new content. The twin gets the
    /// flags of both messages. Returns false if either of them was moved in the meantime.
    fn leave_to(&self, path: &Path, twin: &File) -> Result<bool, Error> {
        let renamed = with_flags_of(path, self.path);
        if renamed != path {
            let done = absent(rename_to_new(path, &renamed)).map_err(cannot_write(path))?;
            if done.is_none() {
                return Ok(false);
            }
        }
        platform::sync(twin).map_err(cannot_write(&renamed))?;
        sync_folder(folder_of(&renamed))?;
        let names = twin.metadata().map_err(cannot_read(path))?.nlink();
        Ok(names > 0 && self.is_there()? && self.remove()?)
    }

    fn take_back(&self, finished: &CompleteFile, ours: &Path) -> Result<(), Error> {
        let file = finished.temporary.as_file();
        let wanted = file.metadata().map_err(cannot_read(ours))?;
        for _ in 0..SEARCHES {
            if !is_linked(finished)? {
                return Ok(());
            }
            let there = match fs::symlink_metadata(ours) {
                Ok(found) if is_same(&found, &wanted) => Some(ours.to_owned()),
                _ => self.named_in_folders(file)?,
            };
            // The new file is not in any directory of this mailbox: another program moved it to a different mailbox,
            // where it is left.
            let Some(there) = there else { return Ok(()) };
            let removed = absent(fs::remove_file(&there)).map_err(cannot_write(&there))?;
            if removed.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the current path of a message file that other programs may have renamed. Only names with the same unique
    /// part as the old name are checked.
    fn named_in_folders(&self, file: &File) -> Result<Option<PathBuf>, Error> {
        let wanted = file.metadata().map_err(cannot_read(self.path))?;
        let base = self.path.file_name().map(|name| base_of(name.as_bytes()));
        for folder in self.folders {
            // A Maildir may lack one of its directories, which is not an error.
            let entries = entries_of(folder).map_err(cannot_read(folder))?;
            for entry in entries.into_iter().flatten() {
                let entry = entry.map_err(cannot_read(folder))?;
                if Some(base_of(entry.file_name().as_bytes())) == base
                    && entry.metadata().is_ok_and(|found| is_same(&found, &wanted))
                {
                    return Ok(Some(entry.path()));
                }
            }
        }
        Ok(None)
    }

    fn exchange(&self, finished: CompleteFile) -> Result<bool, Error> {
        let temporary = finished.temporary.path();
        match absent(exchange(temporary, self.path)) {
            Ok(Some(())) => {}
            Ok(None) => return Ok(false),
            // The file system cannot exchange files, so the message is checked and then replaced by a rename. A change
            // by another program between the check and the rename would be lost.
            Err(_) if !self.is_there()? => return Ok(false),
            Err(_) => {
                return match finished.replace(self.before, None) {
                    Err(Error::Changed { .. }) => Ok(false),
                    replaced => replaced.map(|_| true),
                };
            }
        }
        let came_out = is_still(self.before, temporary);
        if matches!(came_out, Ok(true)) {
            return Ok(true);
        }
        let back = match absent(exchange(temporary, self.path)) {
            Ok(None) => rename_to_new(temporary, self.path),
            swapped => swapped.map(drop),
        };
        let is_back = names_of(&finished).is_ok_and(|(_, is_ours)| is_ours != Some(false));
        match (back, is_back) {
            (Ok(()), true) => {
                self.take_back(&finished, self.path)?;
                came_out
            }
            (back, _) => Err(finished.kept(back.err())),
        }
    }
}

fn is_still(before: &FileIdentity, path: &Path) -> Result<bool, Error> {
    match before.check(path) {
        Ok(()) => Ok(true),
        Err(Error::Changed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the number of links to the new file, and whether its temporary name still belongs to it. The second value is
/// `None` if the temporary name no longer exists. Together they show whether the new file has a name in the mailbox.
fn names_of(finished: &CompleteFile) -> io::Result<(u64, Option<bool>)> {
    let new = finished.temporary.as_file().metadata()?;
    let named = absent(fs::symlink_metadata(finished.temporary.path()))?;
    Ok((new.nlink(), named.map(|found| is_same(&found, &new))))
}

fn is_linked(finished: &CompleteFile) -> Result<bool, Error> {
    let names = names_of(finished).map_err(cannot_read(&finished.target));
    names.map(|(names, is_ours)| names > u64::from(is_ours == Some(true)))
}

enum EqualityCheck {
    Yes(File),
    No,
    Moved,
}

fn equal(path: &Path, finished: &CompleteFile) -> Result<EqualityCheck, Error> {
    let metadata = finished.temporary.as_file().metadata();
    let wanted = metadata.map_err(cannot_read(&finished.target))?.len();
    let read = || -> io::Result<EqualityCheck> {
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() || found.len() != wanted {
            return Ok(EqualityCheck::No);
        }
        let file = File::open(path)?;
        let mut content = Vec::new();
        (&file).take(wanted + 1).read_to_end(&mut content)?;
        if content == fs::read(finished.temporary.path())? {
            Ok(EqualityCheck::Yes(file))
        } else {
            Ok(EqualityCheck::No)
        }
    };
    let equal = absent(read()).map_err(cannot_read(path))?;
    Ok(equal.unwrap_or(EqualityCheck::Moved))
}
