//! The addresses on which the service listens: `host:port`, or a socket in the file system.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::platform::{SocketFile, bind_socket};

/// Mode of a socket file: only the user of the process can connect.
const MODE: u32 = 0o600;

/// Mode of a socket file with a group of its own.
const GROUP_MODE: u32 = 0o660;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ServeAddress {
    Unix(PathBuf),
    Tcp { host: String, port: u16 },
}

impl FromStr for ServeAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not host:port or unix:/path");
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err(wrong()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_wrong = match inner {
            Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_err(),
            None => host.is_empty() || host.contains([':', '/', '[', ']']),
        };
        if is_wrong {
            return Err(wrong());
        }
        let host = inner.unwrap_or(host).to_owned();
        Ok(Self::Tcp { host, port })
    }
}

impl fmt::Display for ServeAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => {
                write!(formatter, "[{host}]:{port}")
            }
            Self::Tcp { host, port } => write!(formatter, "{host}:{port}"),
        }
    }
}

impl ServeAddress {
    /// Sends a request for `/healthz` to the service that listens on this address.
    ///
    /// # Errors
    /// No service responds within `patience`, or the service does not accept requests.
    pub(crate) fn check(&self, patience: Duration) -> io::Result<()> {
        let answer = match self {
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(patience))?;
                asked(stream)?
            }
            Self::Tcp { host, port } => {
                let host = match host.as_str() {
                    "0.0.0.0" => "127.0.0.1",
                    "::" => "::1",
                    host => host,
                };
                let stream = TcpStream::connect((host, *port))?;
                stream.set_read_timeout(Some(patience))?;
                asked(stream)?
            }
        };
        if answer.starts_with(b"HTTP/1.1 200 ") {
            return Ok(());
        }
        let mut lines = answer.split(|byte| *byte == b'\r');
        let status = String::from_utf8_lossy(lines.next().unwrap_or_default());
        let why = format!("the service at {self} does not accept requests: {status}");
        Err(io::Error::other(why))
    }
}

/// Sends a request for `/healthz`, and returns the start of the response.
fn asked(mut stream: impl Read + Write) -> io::Result<Vec<u8>> {
    const LONGEST: u64 = 4 << 10;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    Ok(answer)
}

#[derive(Debug)]
pub(super) enum ServeSocket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) socket: ServeSocket,
    /// The socket file. Dropping it removes it.
    pub(super) file: Option<SocketFile>,
    /// Host name in `--listen`, and the address to which it resolved. `None` for a socket in the file system.
    pub(super) at: Option<(String, SocketAddr)>,
}

impl Listener {
    /// Creates the socket. If the port is 0, the system chooses one.
    ///
    /// # Errors
    /// The address is in use, or cannot be used on this machine.
    pub(crate) fn bind(address: &ServeAddress, group: Option<u32>) -> io::Result<Self> {
        match address {
            ServeAddress::Unix(path) => {
                let mode = group.map_or(MODE, |_| GROUP_MODE);
                let (socket, file) = bind_socket(path, mode, group)?;
                socket.set_nonblocking(true)?;
                Ok(Self {
                    socket: ServeSocket::Unix(socket),
                    file: Some(file),
                    at: None,
                })
            }
            ServeAddress::Tcp { host, port } => {
                let addresses: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.collect();
                let socket = TcpListener::bind(addresses.as_slice())?;
                socket.set_nonblocking(true)?;
                let at = Some((host.clone(), socket.local_addr()?));
                Ok(Self {
                    socket: ServeSocket::Tcp(socket),
                    file: None,
                    at,
                })
            }
        }
    }

    /// Returns whether only this machine can connect.
    pub(crate) fn is_local(&self) -> bool {
        self.at.as_ref().is_none_or(|(_, at)| match at.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
            }
        })
    }

    /// Returns the address with the port that the system has chosen.
    pub(crate) fn address(&self, given: &ServeAddress) -> ServeAddress {
        match (given, &self.at) {
            (ServeAddress::Tcp { host, .. }, Some((_, at))) => ServeAddress::Tcp {
                host: host.clone(),
                port: at.port(),
            },
            _ => given.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serve_addresses_are_parsed_and_malformed_ones_refused() {
        let tcp = |host: &str, port| {
            Ok(ServeAddress::Tcp {
                host: host.to_owned(),
                port,
            })
        };
        assert_eq!("127.0.0.1:9997".parse(), tcp("127.0.0.1", 9997));
        assert_eq!("[::1]:80".parse(), tcp("::1", 80));
        assert_eq!("localhost:0".parse(), tcp("localhost", 0));
        assert_eq!(
            "unix:/run/x".parse(),
            Ok(ServeAddress::Unix("/run/x".into()))
        );
        assert_eq!(
            "[::1]:80".parse::<ServeAddress>().unwrap().to_string(),
            "[::1]:80"
        );
        for wrong in [
            "",
            "9997",
            ":9997",
            "host:",
            "host:x",
            "host:65536",
            "unix:",
            "::1:80",
            "[::1]",
            "http://host:80",
            "[x]:80",
            "/run/x",
        ] {
            assert!(wrong.parse::<ServeAddress>().is_err(), "{wrong}");
        }
    }
}
