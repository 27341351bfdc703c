//! The Unix implementation of this module. It uses the calls of POSIX, and the additional calls of Linux, macOS or
//! FreeBSD where they exist.

mod children;
mod ownership;
#[cfg(any(feature = "milter", feature = "serve"))]
mod socket;
mod stream;

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, FlockOperation, OFlags};
use rustix::io::Errno;

#[cfg_attr(not(feature = "http"), allow(unused_imports))]
pub(crate) use self::children::keep_exit_statuses;
pub(crate) use self::ownership::{
    NewFile, Owner, check_ownership, dress, own, own_folder, owner_of_results,
};
#[cfg(any(feature = "milter", feature = "serve"))]
pub(crate) use self::socket::{SocketFile, bind_socket};
pub(crate) use self::stream::Stream;
pub(crate) use std::os::unix::ffi::{OsStrExt, OsStringExt};
pub(crate) use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt};

pub(crate) fn host() -> OsString {
    OsStr::from_bytes(rustix::system::uname().nodename().to_bytes()).to_owned()
}

pub(crate) fn is_gone(digits: &[u8]) -> bool {
    let number = || std::str::from_utf8(digits).ok()?.parse().ok();
    let process = number().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|it| rustix::process::test_kill_process(it) == Err(Errno::SRCH))
}

pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(crate) fn is_ours(found: &Metadata) -> bool {
    found.uid() == user()
}

/// Returns whether `one` and `other`, which were read from two names, are one file that was renamed in between. Two
/// hard links to a file are not a renamed file. Size and time are compared too, because some file systems do not number
/// their files uniquely.
pub(crate) fn is_renamed(one: &Metadata, other: &Metadata) -> bool {
    let facts = |file: &Metadata| {
        let time = (file.mtime(), file.mtime_nsec());
        (file.dev(), file.ino(), file.nlink(), file.len(), time)
    };
    one.nlink() == 1 && facts(one) == facts(other)
}

/// Returns whether only the owner can read and change a directory or a file.
pub(crate) fn is_private(found: &Metadata) -> bool {
    found.mode() & 0o077 == 0
}

pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::WRITE_OK)?)
}

/// Locks an open file with flock, and returns false if another process holds the lock. Closing the file and all
/// duplicates of the handle releases the lock.
///
/// # Errors
/// The file system does not support flock.
pub(crate) fn try_lock_handle(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

pub(crate) fn unlock_handle(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::Unlock)?)
}

/// Locks a file with fcntl, and returns false if another process holds the lock. If the file system does not support
/// these locks, this returns true, because no other program can hold a lock there.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(why) if why == Errno::NOLCK || is_unsupported(why) => Ok(true),
        Err(why) => Err(why.into()),
    }
}

pub(crate) fn unlock(file: &File) -> io::Result<()> {
    match rustix::fs::fcntl_lock(file, FlockOperation::Unlock) {
        Err(why) if why == Errno::NOLCK || is_unsupported(why) => Ok(()),
        done => Ok(done?),
    }
}

/// Returns whether an error means that the system or the file system does not support a call. ENOTSUP and EOPNOTSUPP
/// are the same number on Linux, and different ones on macOS.
fn is_unsupported(why: Errno) -> bool {
    [Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&why)
}

/// Exchanges the names of two files in one step. FreeBSD has no such call, so this always returns an error there, and
/// the caller renames the new file over the old one instead.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(Errno::NOSYS.into())
}

/// Renames a file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if a file with the new name exists. That file is never overwritten.
pub(crate) fn rename_to_new(old: &Path, new: &Path) -> io::Result<()> {
    if name_anew(CWD, old, CWD, new)? {
        Ok(())
    } else {
        fs::remove_file(old)
    }
}

pub(crate) fn rename_folder(old: &Path, new: &Path) -> io::Result<()> {
    fs::rename(old, new)
}

/// Gives a file a new name without overwriting another file. Returns false if the file now has both names, because the
/// system or the file system (FreeBSD, NFS) can only create a hard link here. The caller then removes the old name.
pub(crate) fn name_anew(
    from: impl AsFd,
    old: impl rustix::path::Arg + Copy,
    to: impl AsFd,
    new: impl rustix::path::Arg + Copy,
) -> io::Result<bool> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&from, old, &to, new, flags) {
            Err(why) if why == Errno::INVAL || is_unsupported(why) => {}
            done => return Ok(done.map(|()| true)?),
        }
    }
    link_anew(from, old, to, new).map(|()| false)
}

fn link_anew(
    from: impl AsFd,
    old: impl rustix::path::Arg,
    to: impl AsFd,
    new: impl rustix::path::Arg,
) -> io::Result<()> {
    Ok(rustix::fs::linkat(from, old, to, new, AtFlags::empty())?)
}

/// Waits until a file is on the disk. On macOS, fsync leaves the data in the cache of the drive, so F_FULLFSYNC is
/// used. On other systems, fsync also empties this cache.
pub(crate) fn sync(of: impl AsFd) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    match rustix::fs::fcntl_fullfsync(&of) {
        // File servers and external drives can lack F_FULLFSYNC. fsync is used for them.
        Err(why) if is_unsupported(why) || [Errno::INVAL, Errno::NOTTY].contains(&why) => {}
        done => return Ok(done?),
    }
    match rustix::fs::fsync(of) {
        // Some file systems cannot sync a directory. This is not an error: the names of new files are then only as
        // durable as the file system makes them.
        Err(Errno::INVAL) => Ok(()),
        done => Ok(done?),
    }
}

pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    sync(File::open(folder)?)
}

pub(crate) fn sync_tree(folder: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return Ok(rustix::fs::syncfs(File::open(folder)?)?);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    super::sync_each(folder)
}

/// Opens a file or a named pipe for appending, without waiting. If no program reads the pipe, the error is one for
/// which [`is_unread_pipe`] returns true. If the pipe is full, a later write fails instead of waiting.
pub(crate) fn append_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits();
    OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

pub(crate) fn is_unread_pipe(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

pub(crate) fn is_character_device(found: &Metadata) -> bool {
    found.file_type().is_char_device()
}

/// Duplicates a standard stream that carries mail. Fails if the stream was probably closed when the program started:
/// the null device then replaces it, and mail written to it would be lost.
pub(crate) fn stream(of: impl AsFd) -> io::Result<Stream> {
    if is_stand_in(&of) {
        Err(io::Error::other(
            "the stream is closed, or is /dev/null opened for both reading and writing, which embody cannot distinguish from a closed stream; open /dev/null only for reading or only for writing",
        ))
    } else {
        stream_or_null(of)
    }
}

/// Duplicates a standard stream that carries a report. If the stream is closed, the report is written to the null
/// device.
pub(crate) fn stream_or_null(of: impl AsFd) -> io::Result<Stream> {
    Ok(File::from(of.as_fd().try_clone_to_owned()?).into())
}

/// Returns whether the stream was probably closed when the program started. The standard library then opens the null
/// device in its place, for reading *and* writing. `1<>/dev/null` and Python's `subprocess.DEVNULL` look the same, and
/// are refused too: refusing mail only delays it, and writing mail to a closed stream loses it.
fn is_stand_in(descriptor: impl AsFd) -> bool {
    let both_ways = rustix::fs::fcntl_getfl(&descriptor)
        .is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR);
    both_ways
        && match (rustix::fs::fstat(descriptor), rustix::fs::stat("/dev/null")) {
            (Ok(found), Ok(null)) => found.st_rdev == null.st_rdev && found.st_mode == null.st_mode,
            _ => false,
        }
}

pub(crate) fn free_space(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Flag with which a write to a connection that the other side closed returns an error instead of sending SIGPIPE.
/// macOS lacks this flag; [`no_signals`] has the same effect there.
#[cfg(all(feature = "milter", not(target_vendor = "apple")))]
pub(crate) const NO_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::NOSIGNAL;
#[cfg(all(feature = "milter", target_vendor = "apple"))]
pub const NO_SIGNAL: rustix::net::SendFlags = rustix::net::SendFlags::empty();

/// Sets an option of Linux that acknowledges received TCP data immediately. Systems without this option are only
/// slower.
#[cfg(feature = "milter")]
pub(crate) fn acknowledge_at_once(socket: impl AsFd) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::net::sockopt::set_tcp_quickack(&socket, true);
    let _ = socket.as_fd();
}

/// Sets a connection of macOS to report errors without SIGPIPE, because macOS has no flag [`NO_SIGNAL`] for single
/// writes.
#[cfg(feature = "milter")]
pub(crate) fn no_signals(socket: impl AsFd) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    rustix::net::sockopt::set_socket_nosigpipe(&socket, true)?;
    let _ = socket.as_fd().as_raw_fd();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_rename_method_overwrites_an_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, content) in [("one", "1"), ("two", "2"), ("taken", "x")] {
            fs::write(at(name), content).unwrap();
        }
        let taken = |done: io::Result<()>| done.unwrap_err().kind() == io::ErrorKind::AlreadyExists;
        assert!(taken(rename_to_new(&at("one"), &at("taken"))));
        assert!(taken(link_anew(CWD, at("two"), CWD, at("taken"))));
        rename_to_new(&at("one"), &at("1")).unwrap();
        link_anew(CWD, at("two"), CWD, at("2")).unwrap();
        assert!(!at("one").exists() && at("two").exists());
        let read = |name| fs::read_to_string(at(name)).unwrap();
        assert_eq!([read("1"), read("2"), read("taken")], ["1", "2", "x"]);
    }

    #[test]
    fn directory_tree_is_synced_without_syncfs() {
        let folder = tempfile::tempdir().unwrap();
        private_folder(&folder.path().join("cur")).unwrap();
        fs::write(folder.path().join("cur/1:2,S"), "mail").unwrap();
        crate::platform::sync_each(folder.path()).unwrap();
        assert_eq!(crate::platform::before_flags(folder.path()).unwrap(), ':');
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn probe_that_a_killed_run_left_is_removed_and_other_files_with_its_name_are_kept() {
        use crate::platform::{before_flags, folds_names};

        let folder = tempfile::tempdir().unwrap();
        let case = folder
            .path()
            .join(format!(".embody-case-{}", std::process::id()));
        let flags = folder.path().join("embody:2,");
        for content in ["", "mail"] {
            for path in [&case, &flags] {
                fs::write(path, content).unwrap();
            }
            assert_eq!(before_flags(folder.path()).unwrap(), ':');
            assert!(!folds_names(folder.path()).unwrap());
            let left = fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(left, if content.is_empty() { 0 } else { 2 }, "{content}");
        }
    }
}
