//! The address on which the server listens: a socket in the file system, or a TCP port.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::RawMode;
use rustix::io::{Errno, FdFlags};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketAddrUnix, SocketType, send, socket};

use crate::platform::{NO_SIGNAL, acknowledge_at_once, no_signals};

const WRITING: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Unix(PathBuf),
    Inet(String),
}

impl FromStr for Address {
    type Err = String;

    /// Parses an address. The forms of libmilter are also accepted: `local:/path`, `inet:port@host`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not unix:/path, inet:host:port or inet:port");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        match kind {
            "unix" | "local" if rest.starts_with('/') => Ok(Self::Unix(PathBuf::from(rest))),
            "inet" | "inet6" => {
                let (host, port) = match (rest.split_once('@'), rest.rsplit_once(':')) {
                    (Some((port, host)), _) | (None, Some((host, port))) => (host, port),
                    (None, None) => ("", rest),
                };
                let _: u16 = port.parse().map_err(|_| wrong())?;
                let host = match (host, kind) {
                    ("", "inet6") => "[::1]".to_owned(),
                    ("", _) => "127.0.0.1".to_owned(),
                    (host, _) if host.contains(':') && !host.starts_with('[') => {
                        format!("[{host}]")
                    }
                    (host, _) => host.to_owned(),
                };
                Ok(Self::Inet(format!("{host}:{port}")))
            }
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Inet(name) => write!(formatter, "inet:{name}"),
        }
    }
}

impl Address {
    pub(super) fn bind_port(name: &str) -> io::Result<TcpListener> {
        let addresses: Vec<_> = name.to_socket_addrs()?.collect();
        TcpListener::bind(addresses.as_slice())
    }
}

#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Path, device and inode of the socket that this process created. Dropping the listener removes this file, but not
    /// a different file with the same path.
    file: Option<(PathBuf, (u64, u64))>,
}

impl<S: Into<OwnedFd>> From<S> for Listener {
    fn from(socket: S) -> Self {
        let (socket, file) = (socket.into(), None);
        Self { socket, file }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((path, made)) = &self.file
            && identity(path).is_ok_and(|file| file == *made)
        {
            let _ = fs::remove_file(path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

impl Listener {
    /// Creates the socket. A socket in the file system gets its mode and group before another user can connect.
    pub fn bind(address: &Address, mode: u32, group: Option<u32>) -> io::Result<Self> {
        match address {
            Address::Inet(name) => Address::bind_port(name).map(Self::from),
            Address::Unix(path) => {
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
                let mut listener = Self::from(bound?);
                let made = identity(path)?;
                listener.file = Some((path.clone(), made));
                if let Some(group) = group {
                    give(path, made, group, mode)?;
                }
                Ok(listener)
            }
        }
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        let (socket, peer) = rustix::net::acceptfrom(&self.socket)?;
        let is_tcp = peer.is_some_and(|peer| peer.address_family() != AddressFamily::UNIX);
        rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&socket, false)?;
        if is_tcp {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        no_signals(&socket)?;
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(WRITING))?;
        Ok(Stream { socket, is_tcp })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
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
            Ok(()) | Err(Errno::AGAIN) => Err(taken("another process answers on the socket")),
            Err(error) => Err(error.into()),
        },
    }
}

fn connect(path: &Path) -> Result<(), Errno> {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
}

#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    is_tcp: bool,
}

impl Stream {
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let socket = self.socket.try_clone()?;
        Ok(Self { socket, ..*self })
    }

    pub(super) fn read_within(&self, silence: Duration) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.socket, Timeout::Recv, Some(silence))?;
        Ok(())
    }

    pub(super) fn say_without_waiting(&self, octets: &[u8]) {
        let flags = SendFlags::DONTWAIT | NO_SIGNAL;
        // The buffer of the socket had room for only a part of the packet. The mail system would misread the packets
        // after it, so the connection is closed.
        if send(&self.socket, octets, flags).is_ok_and(|length| length != octets.len()) {
            self.shut();
        }
    }

    pub(super) fn shut(&self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

/// Reads from the connection, and acknowledges the received bytes immediately. Postfix writes header fields in several
/// small packets without waiting for replies. Over TCP, it would wait 40 ms for each delayed acknowledgement.
impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = rustix::io::read(&self.socket, buffer)?;
        if self.is_tcp {
            acknowledge_at_once(&self.socket);
        }
        Ok(length)
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.socket, bytes, NO_SIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn listen_addresses_are_parsed_and_are_local_without_a_host() {
        let inet = |text: &str| Ok(Address::Inet(text.to_owned()));
        assert_eq!("inet:8891".parse(), inet("127.0.0.1:8891"));
        assert_eq!("inet::8891".parse(), inet("127.0.0.1:8891"));
        assert_eq!("inet6:8891".parse(), inet("[::1]:8891"));
        assert_eq!(
            "inet:mail.example.org:8891".parse(),
            inet("mail.example.org:8891")
        );
        assert_eq!("inet:8891@10.0.0.1".parse(), inet("10.0.0.1:8891"));
        assert_eq!("inet6:8891@::1".parse(), inet("[::1]:8891"));
        assert_eq!("inet:[::1]:8891".parse(), inet("[::1]:8891"));
        let path = Address::Unix(PathBuf::from("/run/embody.sock"));
        assert_eq!("unix:/run/embody.sock".parse(), Ok(path.clone()));
        assert_eq!("local:/run/embody.sock".parse(), Ok(path));
        for wrong in [
            "",
            "unix:embody.sock",
            "inet:",
            "inet:host",
            "inet:host:99999",
            "/run/embody.sock",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_socket_that_nobody_answers_on_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let address = Address::Unix(path.clone());
        fs::write(&path, "a file").expect("it can be written");
        assert!(Listener::bind(&address, 0o660, None).is_err());
        assert_eq!(fs::read(&path).expect("it is there"), b"a file");
        fs::remove_file(&path).expect("it can be removed");

        drop(UnixListener::bind(&path).expect("a socket"));
        assert!(path.exists(), "it is left behind");
        let listener = Listener::bind(&address, 0o640, None).expect("nobody answers");
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o640);
        let second = Listener::bind(&address, 0o660, None).expect_err("somebody answers");
        assert!(second.to_string().contains("another process"), "{second}");
        drop(listener);
        assert!(!path.exists(), "it was ours");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_gets_its_group_and_mode_and_nothing_else_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let address = Address::Unix(path.clone());
        // Only root can set any group. Without root rights, the test sets the group of its own process.
        let (group, other) = if rustix::process::geteuid().is_root() {
            (4_321, None)
        } else {
            (rustix::process::getegid().as_raw(), Some(0))
        };
        let listener = Listener::bind(&address, 0o620, Some(group)).expect("it may be given");
        let made = fs::metadata(&path).expect("it is there");
        assert_eq!((made.mode() & 0o777, made.gid()), (0o620, group));
        drop(listener);
        if let Some(other) = other {
            let error = Listener::bind(&address, 0o660, Some(other)).expect_err("not ours");
            assert!(error.to_string().contains("its group cannot"), "{error}");
            assert!(!path.exists(), "it was ours");
        }

        let listener = Listener::bind(&address, 0o600, None).expect("nobody is there");
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
        let error =
            Listener::bind(&Address::Unix(path.clone()), 0o660, None).expect_err("it is taken");
        assert!(error.to_string().contains("another process"), "{error}");
        assert!(path.exists());
    }
}
