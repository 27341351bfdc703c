//! The address on which the server listens: a socket in the file system, or a TCP port.

use std::io::{self, Read, Write};
use std::net::{TcpListener, ToSocketAddrs as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SendFlags, Shutdown, send};

use crate::platform::{NO_SIGNAL, SocketFile, acknowledge_at_once, bind_socket, no_signals};

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
pub struct MilterListener {
    socket: OwnedFd,
    /// The socket file that this process created. Dropping the listener removes it.
    _file: Option<SocketFile>,
}

impl<S: Into<OwnedFd>> From<S> for MilterListener {
    fn from(socket: S) -> Self {
        let (socket, _file) = (socket.into(), None);
        Self { socket, _file }
    }
}

impl MilterListener {
    /// Creates the socket. A socket in the file system gets its mode and group before another user can connect.
    pub fn bind(address: &Address, mode: u32, group: Option<u32>) -> io::Result<Self> {
        match address {
            Address::Inet(name) => Address::bind_port(name).map(Self::from),
            Address::Unix(path) => {
                let (socket, file) = bind_socket(path, mode, group)?;
                Ok(Self {
                    socket: socket.into(),
                    _file: Some(file),
                })
            }
        }
    }

    pub(super) fn accept(&self) -> io::Result<MilterStream> {
        let (socket, peer) = rustix::net::acceptfrom(&self.socket)?;
        let is_tcp = peer.is_some_and(|peer| peer.address_family() != AddressFamily::UNIX);
        rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&socket, false)?;
        if is_tcp {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        no_signals(&socket)?;
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(WRITING))?;
        Ok(MilterStream { socket, is_tcp })
    }
}

impl AsFd for MilterListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[derive(Debug)]
pub(super) struct MilterStream {
    socket: OwnedFd,
    is_tcp: bool,
}

impl MilterStream {
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
impl Read for &MilterStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = rustix::io::read(&self.socket, buffer)?;
        if self.is_tcp {
            acknowledge_at_once(&self.socket);
        }
        Ok(length)
    }
}

impl Write for &MilterStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.socket, bytes, NO_SIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
}
