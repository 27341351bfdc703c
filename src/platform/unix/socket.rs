//! Sockets in the file system, on which a service listens.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::RawMode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, socket};

/// A socket file that this process created. Dropping it removes this file, but not a different file with the same path.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    made: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.made) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Creates a socket file and listens on it. It gets its mode and group before another user can connect. A stale socket
/// file is replaced.
pub(crate) fn bind_socket(
    path: &Path,
    mode: u32,
    group: Option<u32>,
) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    // The new file first belongs to the group of this process, which must not get access. If another group
    // is requested, the file is created without permissions for any group. They are added after the group
    // was set.
    let first = group.map_or(mode, |_| mode & 0o700);
    // The umask restricts the mode of the file from its creation on, so no other user can connect before
    // the mode is set. The number is converted because `RawMode` has 16 bits on some systems.
    let others = rustix::fs::Mode::from_raw_mode((0o777 & !first) as RawMode);
    let before = rustix::process::umask(others);
    let bound = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = bound?;
    let made = identity(path)?;
    let file = SocketFile {
        path: path.to_owned(),
        made,
    };
    if let Some(group) = group {
        give(path, made, group, mode)?;
    }
    Ok((listener, file))
}

/// Sets the group and the mode of the socket. The file is opened first, so that they are not applied to a file that
/// another user put in its place.
#[cfg(target_os = "linux")]
fn give(path: &Path, made: (u64, u64), group: u32, mode: u32) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = fs::File::from(open(path, flags, Mode::empty())?);
    let file = held.metadata()?;
    if (file.dev(), file.ino()) != made {
        return Err(io::Error::other(
            "another program replaced the socket with a different file",
        ));
    }
    // A file that was opened with O_PATH can be changed only through its name in /proc.
    let held = format!("/proc/self/fd/{}", held.as_raw_fd());
    chown(&held, None, Some(group)).map_err(|error| {
        let why = format!("cannot change the group of the socket to {group}: {error}");
        io::Error::new(error.kind(), why)
    })?;
    fs::set_permissions(&held, fs::Permissions::from_mode(mode))
}

#[cfg(not(target_os = "linux"))]
fn give(_: &Path, _: (u64, u64), _: u32, _: u32) -> io::Result<()> {
    let why = "the group of a socket can be set only on Linux";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Removes a socket that no process uses any more, for example after a crash. Any other file with this name is an
/// error.
fn remove_stale(path: &Path) -> io::Result<()> {
    let taken = |what: &str| io::Error::new(io::ErrorKind::AddrInUse, what.to_owned());
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(file) if !file.file_type().is_socket() => Err(taken(
            "a file with the name of the socket exists and is not a socket; remove the file, or choose another name",
        )),
        Ok(_) => match connect(path) {
            Err(Errno::CONNREFUSED) => fs::remove_file(path),
            // AGAIN means that a process uses the socket, but is too busy to accept this connection.
            Ok(()) | Err(Errno::AGAIN) => Err(taken(
                "another process listens on the socket; stop that process, or choose another socket",
            )),
            Err(error) => Err(error.into()),
        },
    }
}

fn connect(path: &Path) -> Result<(), Errno> {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_that_nobody_answers_on_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        fs::write(&path, "a file").expect("it can be written");
        assert!(bind_socket(&path, 0o660, None).is_err());
        assert_eq!(fs::read(&path).expect("it is there"), b"a file");
        fs::remove_file(&path).expect("it can be removed");

        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists(), "it is left behind");
        let listener = bind_socket(&path, 0o640, None).expect("nobody answers");
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o640);
        let second = bind_socket(&path, 0o660, None).expect_err("somebody answers");
        assert!(second.to_string().contains("another process"), "{second}");
        drop(listener);
        assert!(!path.exists(), "it was ours");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_gets_its_group_and_mode_and_nothing_else_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        // Only root can set any group. Without root rights, the test sets the group of its own process.
        let (group, other) = if rustix::process::geteuid().is_root() {
            (4_321, None)
        } else {
            (rustix::process::getegid().as_raw(), Some(0))
        };
        let listener = bind_socket(&path, 0o620, Some(group)).expect("it may be given");
        let made = fs::metadata(&path).expect("it is there");
        assert_eq!((made.mode() & 0o777, made.gid()), (0o620, group));
        drop(listener);
        if let Some(other) = other {
            let error = bind_socket(&path, 0o660, Some(other)).expect_err("not ours");
            assert!(error.to_string().contains("its group cannot"), "{error}");
            assert!(!path.exists(), "it was ours");
        }

        let listener = bind_socket(&path, 0o600, None).expect("nobody is there");
        let file = identity(&path).expect("it is there");
        fs::rename(&path, folder.path().join("moved")).expect("it can be renamed");
        fs::write(&path, "another").expect("it can be written");
        let before = fs::metadata(&path).expect("it is there").mode();
        assert!(give(&path, file, group, 0o666).is_err());
        assert_eq!(fs::metadata(&path).expect("it is there").mode(), before);
        drop(listener);
        assert!(path.exists(), "it is not ours");
    }

    #[test]
    fn busy_listener_is_detected_as_another_process_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let busy = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        let address = SocketAddrUnix::new(&path).expect("an address");
        rustix::net::bind(&busy, &address).expect("nobody is there");
        rustix::net::listen(&busy, 0).expect("it listens");
        let _waiting = UnixStream::connect(&path).expect("one may wait");
        assert_eq!(connect(&path), Err(Errno::AGAIN));
        let error = bind_socket(&path, 0o660, None).expect_err("it is taken");
        assert!(error.to_string().contains("another process"), "{error}");
        assert!(path.exists());
    }
}
