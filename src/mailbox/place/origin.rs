//! Fingerprints for the journal of a run: of the source of a result, and of the result itself.

use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use crate::mailbox::finds::SourceFind;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::place::folder::MessageFolder;
use crate::mailbox::temporary;
use crate::mailbox::{Format, Options};
use crate::platform::{MetadataExt as _, OsStrExt as _, absent};

/// A 128-bit hash that is much faster than SHA-256, because a run can have as many results as messages. It need not be
/// collision-resistant: the journal belongs to this user, so other users cannot choose the hashed bytes.
#[derive(Default)]
pub(super) struct Fingerprint([DefaultHasher; 2]);

impl Fingerprint {
    pub(super) fn of(pieces: &[&[u8]]) -> u128 {
        let mut fingerprint = Self::default();
        pieces.iter().for_each(|piece| fingerprint.add(piece));
        fingerprint.finish()
    }

    fn add(&mut self, piece: &[u8]) {
        let [one, other] = &mut self.0;
        one.write(piece);
        other.write(piece);
    }

    fn finish(self) -> u128 {
        let [one, mut other] = self.0;
        // Both hashers got the same bytes. The extra byte makes their hashes differ.
        other.write_u8(1);
        u128::from(one.finish()) << 64 | u128::from(other.finish())
    }
}

/// Source of a result, with everything that shows whether the source has changed.
#[derive(Clone, Debug)]
pub(crate) struct ResultOrigin(pub(super) Vec<u8>);

impl ResultOrigin {
    /// Returns the origin of a result from one file. Several results can come from the same file, such as the folders
    /// of an Outlook mailbox; `name` distinguishes them.
    pub(crate) fn of_file(name: &Path, read: &FileIdentity) -> Self {
        let [device, inode] = [read.device, read.inode];
        let (length, (seconds, nanoseconds)) = (read.length, read.modified);
        let mut text = format!("{device} {inode} {length} {seconds} {nanoseconds} ").into_bytes();
        text.extend(name.as_os_str().as_bytes());
        Self(text)
    }

    /// Returns the origin of a mailbox that is made from several mailboxes or messages. Returns `None` if one of them
    /// cannot be read.
    pub(crate) fn of_group<'f>(
        founds: impl IntoIterator<Item = &'f SourceFind>,
        options: &Options,
    ) -> Option<Self> {
        let mut digest = Fingerprint::default();
        for found in founds {
            let metadata = fs::metadata(found.file()).ok()?;
            // The metadata of a pipe do not show whether its content has changed.
            if !metadata.is_file() && !metadata.is_dir() {
                return None;
            }
            add(&mut digest, &found.path, &metadata);
            if found.kind.is_folder() {
                add_messages(&mut digest, found, options.read.format)?;
            }
        }
        Some(Self(digest.finish().to_be_bytes().to_vec()))
    }
}

fn add(digest: &mut Fingerprint, path: &Path, found: &Metadata) {
    let name = path.as_os_str().as_bytes();
    digest.add(&(name.len() as u64).to_be_bytes());
    digest.add(name);
    // The modification time of a directory is left out: it also changes with files that are not read, such as indexes.
    // The messages of the directory are added one by one.
    let text = if found.is_dir() {
        format!("{} {}\n", found.dev(), found.ino())
    } else {
        format!("{:?}\n", FileIdentity::of(found))
    };
    digest.add(text.as_bytes());
}

/// Adds the messages of a Maildir or an MH folder, and its keyword files.
fn add_messages(digest: &mut Fingerprint, found: &SourceFind, format: Format) -> Option<()> {
    let place = MessageFolder::of(&found.path, found.kind, format);
    let mut folders = place.synced_in(&place.folder);
    let keywords = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        memchr::memmem::find(name.as_bytes(), b"keywords").is_some()
    };
    let beside = sorted(&place.folder)?.into_iter().filter(keywords);
    folders.retain(|folder| folder.is_dir());
    let listed = folders.iter().map(|folder| sorted(folder));
    let messages: Vec<Vec<PathBuf>> = listed.collect::<Option<_>>()?;
    for path in beside.chain(messages.into_iter().flatten()) {
        // If another program renames the message at this moment, the digest changes, and the next run reads the mailbox
        // again.
        if let Ok(found) = fs::symlink_metadata(&path) {
            add(digest, &path, &found);
        }
    }
    Some(())
}

/// Returns the entries of a directory sorted by name, except temporary files of embody.
fn sorted(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        if !temporary::is_temporary(&entry.file_name()) {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable();
    Some(paths)
}

pub(super) fn identity(found: &Metadata) -> String {
    let modified = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    let (device, inode, length) = (found.dev(), found.ino(), found.len());
    format!("{device}:{inode}:{length}:{modified}")
}

pub(super) fn identity_of(target: &Path, is_other: &dyn Fn(&Path) -> bool) -> io::Result<String> {
    let found = fs::symlink_metadata(target)?;
    if found.is_dir() {
        identity_of_tree(target, is_other)
    } else {
        Ok(identity(&found))
    }
}

/// Returns a digest of the names and identities (not the contents) of all files in a directory. Temporary files of
/// embody are left out, and directories for which `is_other` returns true, because these are the mailboxes of
/// subfolders. Directories count only through their files, because an interrupted run may have left an empty one.
pub(super) fn identity_of_tree(
    folder: &Path,
    is_other: &dyn Fn(&Path) -> bool,
) -> io::Result<String> {
    let mut digest = Fingerprint::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(relative) = folders.pop() {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder.join(&relative))? {
            let entry = entry?;
            if !temporary::is_temporary(&entry.file_name()) {
                entries.push((entry.file_name(), entry));
            }
        }
        entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (name, entry) in entries {
            let path = relative.join(name);
            let Some(found) = absent(entry.metadata())? else {
                continue;
            };
            if !found.is_dir() {
                add(&mut digest, &path, &found);
            } else if !is_other(&folder.join(&path)) {
                folders.push(path);
            }
        }
    }
    Ok(format!("tree:{:032x}", digest.finish()))
}
