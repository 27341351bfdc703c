//! The Windows implementation of this module. On Windows, embody reads mail and writes results to new files. It locks
//! no files, and changes no mailbox in place. Stores and caches need Unix.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as Positioned, MetadataExt as Attributes};
use std::os::windows::io::AsHandle;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Names of files as bytes, as on Unix. The bytes are UTF-8, except that a name with unpaired UTF-16 surrogates has the
/// encoding of the standard library for them.
pub trait OsStrExt {
    fn as_bytes(&self) -> &[u8];
    /// Returns the name with these bytes. If they are not valid UTF-8, the whole name becomes U+FFFD, a name that no
    /// file is expected to have.
    fn from_bytes(bytes: &[u8]) -> &Self;
}

impl OsStrExt for OsStr {
    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> &Self {
        Self::new(std::str::from_utf8(bytes).unwrap_or("\u{fffd}"))
    }
}

pub trait OsStringExt {
    fn from_vec(bytes: Vec<u8>) -> Self;
}

impl OsStringExt for OsString {
    fn from_vec(bytes: Vec<u8>) -> Self {
        OsStr::from_bytes(&bytes).to_owned()
    }
}

/// Reads at a given position, as on Unix. On Windows this also moves the current position of the handle, so a caller
/// must not combine these functions with sequential reads of the same handle.
pub trait FileExt {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;
    #[cfg(test)]
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(into, offset)
    }

    fn read_exact_at(&self, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !into.is_empty() {
            match self.seek_read(into, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    into = into.get_mut(read..).unwrap_or_default();
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }

    #[cfg(test)]
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.seek_write(bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
            }
        }
        Ok(())
    }
}

/// Numbers that identify a file, as on Unix. The standard library does not return the file numbers of Windows, so the
/// times of creation and of the last change are used instead. Two files with equal times look like the same file. In
/// that case a command refuses to run, and no data is lost.
pub trait MetadataExt {
    fn dev(&self) -> u64;
    /// Returns the time of the last change of a file, in place of its inode number. Returns 0 for a directory, whose
    /// time changes with each new file.
    fn ino(&self) -> u64;
    fn nlink(&self) -> u64;
    fn mtime(&self) -> i64;
    fn mtime_nsec(&self) -> i64;
    fn ctime(&self) -> i64 {
        self.mtime()
    }
    fn ctime_nsec(&self) -> i64 {
        self.mtime_nsec()
    }
}

impl MetadataExt for Metadata {
    fn dev(&self) -> u64 {
        self.creation_time()
    }

    fn ino(&self) -> u64 {
        match self.is_dir() {
            true => 0,
            false => self.last_write_time(),
        }
    }

    fn nlink(&self) -> u64 {
        1
    }

    fn mtime(&self) -> i64 {
        modified(self).as_secs().cast_signed()
    }

    fn mtime_nsec(&self) -> i64 {
        modified(self).subsec_nanos().into()
    }
}

fn modified(found: &Metadata) -> Duration {
    found
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
        .unwrap_or_default()
}

/// Returns `false`, because the standard library does not return what identifies a file. A file that is renamed back and
/// forth while it is listed may be read twice.
pub fn is_renamed(_one: &Metadata, _other: &Metadata) -> bool {
    false
}

pub trait DirEntryExt {
    fn ino(&self) -> u64;
}

impl DirEntryExt for DirEntry {
    fn ino(&self) -> u64 {
        self.metadata().map_or(0, |found| found.ino())
    }
}

/// The owner of new files. This type has no values, because new files on Windows inherit the access control lists of
/// their directory.
#[derive(Clone, Copy, Debug)]
pub enum Owner {}

pub fn host() -> OsString {
    std::env::var_os("COMPUTERNAME").unwrap_or_default()
}

/// Returns false, because there is no simple way to find out whether a process has ended. The temporary files of a
/// killed run are therefore removed only after a day.
pub fn is_gone(_digits: &[u8]) -> bool {
    false
}

pub fn user() -> u32 {
    0
}

pub fn is_ours(_found: &Metadata) -> bool {
    true
}

pub fn is_private(_found: &Metadata) -> bool {
    false
}

pub fn owner_of_results(_like: Option<&Metadata>) -> Option<Owner> {
    None
}

pub fn own(_file: &File, _owner: Option<Owner>) -> io::Result<()> {
    Ok(())
}

pub fn own_folder(_path: &Path, _owner: Option<Owner>) -> io::Result<()> {
    Ok(())
}

pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

pub fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

pub fn make_private(_folder: &Path) -> io::Result<()> {
    Ok(())
}

pub fn check_writable(path: &Path) -> io::Result<()> {
    match fs::metadata(path)?.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

/// Returns an error, because embody has no implementation of these locks for Windows. So no file is shared between
/// processes there.
pub fn try_lock_handle(_file: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn unlock_handle(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Returns an error, because embody has no implementation of these locks for Windows. So no mailbox is changed in place
/// there.
pub fn try_lock(_file: &File) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn unlock(_file: &File) -> io::Result<()> {
    Ok(())
}

pub fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub fn rename_to_new(old: &Path, new: &Path) -> io::Result<()> {
    fs::hard_link(old, new)?;
    fs::remove_file(old)
}

pub fn rename_folder(old: &Path, new: &Path) -> io::Result<()> {
    super::absent(fs::remove_dir(new))?;
    fs::rename(old, new)
}

pub fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Does nothing. Windows has no call that writes the names in a directory to the disk, and NTFS keeps a journal of
/// changed names.
pub fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

pub fn sync_tree(folder: &Path) -> io::Result<()> {
    super::sync_each(folder)
}

/// Purpose of a new file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewFile {
    Replacement,
    Copy,
}

/// Does nothing, because embody does not change files in place on Windows.
pub fn check_ownership(_new: &File, _like: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Does nothing, because a new file inherits the access control list of its directory.
pub fn dress(_new: &File, _like: &File, _purpose: NewFile) -> io::Result<()> {
    Ok(())
}

pub fn append_without_waiting(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Returns false, because named pipes are not files of the file system on Windows.
pub fn is_unread_pipe(_error: &io::Error) -> bool {
    false
}

pub fn is_character_device(found: &Metadata) -> bool {
    !found.is_file() && !found.is_dir()
}

/// A standard stream. Reads and writes always block on Windows.
#[derive(Debug)]
pub(crate) struct Stream(File);

impl From<File> for Stream {
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl Stream {
    pub(crate) fn into_file(self) -> File {
        self.0
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }
}

impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The system always keeps the exit status of a child process here.
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub(crate) fn keep_exit_statuses() {}

pub(crate) fn stream(of: impl AsHandle) -> io::Result<Stream> {
    stream_or_null(of)
}

pub(crate) fn stream_or_null(of: impl AsHandle) -> io::Result<Stream> {
    Ok(File::from(of.as_handle().try_clone_to_owned()?).into())
}

pub fn free_space(_folder: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
