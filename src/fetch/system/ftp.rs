//! Retrieves files over ftp (RFC 959, RFC 1738 §3.2, RFC 2428) with suppaftp: passive mode, whole files only, anonymous unless
//! the URL contains a user name.
//!
//! * Path: each segment except the last becomes a CWD command, the last one RETR (RFC 1738 §3.2.2). The path is split first,
//!   and then each segment is percent-decoded once, so `/%2Fetc/motd` is CWD `/etc` and RETR `motd`. Empty segments are
//!   skipped, because CWD needs an argument.
//! * `;type=a` selects TYPE A, and the content keeps the CRLF line endings of the transfer. `;type=i` and no type select TYPE
//!   I. `;type=d` is refused, because it means a directory.
//! * The data connection uses the address of the control connection, and only the port from the response to PASV: a server
//!   could otherwise direct it to another host. EPSV, whose response contains only a port, is tried first.
//! * A file is complete if the server closed the data connection *and* then sent 226 or 250.
//! * When the time limit ends, a watchdog thread closes both connections, so that even a server that sends single bytes cannot
//!   hold up the run. To the reader this looks like the end of the file, so a body that ends after the time limit is refused.
//! * No TLS: `ftps:` is not supported, and AUTH TLS is never sent.

use std::io::{self, Error, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use percent_encoding::percent_decode_str;
use suppaftp::{Encoding, FtpError, FtpStream, Mode, Status};

use super::whole::read_whole;
use crate::detail::{QUOTED, excerpt};
use crate::engine::policy::{Policy, Target};
use crate::engine::report::{Reason, Refusal};
use crate::fetch::allowance::{FetchFailure, RequestAllowance, UnresponsiveScope};

/// User name and password of an anonymous login (RFC 1635 §3).
const ANONYMOUS: (&str, &str) = ("anonymous", "embody@");

pub(super) fn retrieve(
    policy: &Policy,
    target: &Target,
    socket: TcpStream,
    allowance: RequestAllowance,
) -> Result<Vec<u8>, Refusal> {
    let place = RemotePath::of(target)?;
    let watchdog = Watchdog::over(&socket, allowance)?;
    let outcome = converse(policy, target, &place, socket, &watchdog, allowance);
    outcome.map_err(|refusal| match refusal.reason {
        // At the time limit, the watchdog thread closes the connections, which causes all kinds of errors. So any error
        // after the limit is reported as a time-out.
        reason if allowance.is_over() && reason != Reason::TooLarge => allowance.overrun(),
        _ => refusal,
    })
}

struct RemotePath {
    folders: Vec<Vec<u8>>,
    file: Vec<u8>,
    transfer: &'static str,
}

impl RemotePath {
    fn of(target: &Target) -> Result<Self, Refusal> {
        let nothing = |why: &str| Refusal::lasting(Reason::UnsupportedScheme, why.to_owned());
        let path = target.server_path();
        let (before, parameter) = path.rsplit_once(';').unwrap_or((path, ""));
        let (path, transfer) = match parameter.to_ascii_lowercase().as_str() {
            "type=i" => (before, "TYPE I"),
            "type=a" => (before, "TYPE A"),
            "type=d" => return Err(nothing("the URL names a directory (;type=d), not a file")),
            _ => (path, "TYPE I"),
        };
        let mut folders: Vec<Vec<u8>> = path
            .split('/')
            .map(|segment| percent_decode_str(segment).collect())
            .collect();
        let file = folders.pop().unwrap_or_default();
        if file.is_empty() {
            return Err(nothing("the URL names a directory, not a file"));
        }
        folders.retain(|folder| !folder.is_empty());
        Ok(Self {
            folders,
            file,
            transfer,
        })
    }
}

pub(super) fn connect(
    target: &Target,
    addresses: &[SocketAddr],
    allowance: RequestAllowance,
) -> Result<TcpStream, FetchFailure> {
    RemotePath::of(target)?;
    let mut last = None;
    for (tried, address) in addresses.iter().enumerate() {
        // Each address gets an equal share of the remaining time, so that an address that does not respond leaves time for the
        // others.
        let left = u32::try_from(addresses.len() - tried)
            .unwrap_or(u32::MAX)
            .max(1);
        match TcpStream::connect_timeout(address, allowance.remaining()? / left) {
            Ok(socket) => return Ok(socket),
            Err(why) => last = Some(why),
        }
    }
    allowance.remaining()?;
    let is_refused = |why: &Error| why.kind() == ErrorKind::ConnectionRefused;
    let unresponsive = last.as_ref().is_some_and(is_refused);
    let why = last.map_or_else(|| "no address".to_owned(), |why| why.to_string());
    Err(FetchFailure {
        refusal: Refusal::temporary(Reason::ConnectionFailed, why),
        unresponsive: unresponsive.then_some(UnresponsiveScope::Port),
    })
}

fn converse(
    policy: &Policy,
    target: &Target,
    place: &RemotePath,
    socket: TcpStream,
    watchdog: &Watchdog,
    allowance: RequestAllowance,
) -> Result<Vec<u8>, Refusal> {
    let peer = socket.peer_addr().map_err(|why| broken(&why))?.ip();
    let mut ftp = FtpStream::connect_with_stream(socket)?;
    ftp.set_encoding(ByteChars);
    let sockets = Arc::clone(&watchdog.sockets);
    let mut ftp = ftp.passive_stream_builder(move |said| {
        data_connection(peer, said, &sockets, allowance).map_err(FtpError::ConnectionError)
    });
    let (user, password) = match target.userinfo() {
        Some((user, password)) => (ByteChars.decode(&user), ByteChars.decode(&password)),
        None => (ANONYMOUS.0.to_owned(), ANONYMOUS.1.to_owned()),
    };
    ftp.login(user, password)?;
    for folder in &place.folders {
        ftp.cwd(ByteChars.decode(folder))?;
    }
    // suppaftp's own `transfer_type` sends "A N", which some servers, such as pyftpdlib, reject.
    ftp.custom_command(place.transfer, &[Status::CommandOk])?;
    ftp.set_mode(Mode::ExtendedPassive);
    let file = ByteChars.decode(&place.file);
    let mut transfer = match ftp.retr_as_stream(&file) {
        Err(FtpError::UnexpectedResponse(response)) if does_not_know(response.status) => {
            ftp.set_mode(Mode::Passive);
            ftp.set_passive_nat_workaround(true);
            ftp.retr_as_stream(&file)
        }
        other => other,
    }?;
    let broke = |why| {
        let detail = format!("the data connection was interrupted: {why}");
        Refusal::lasting(Reason::IncompleteBody, detail)
    };
    let whole = read_whole(&mut transfer, 0, |octets| policy.judge_size(octets), broke);
    let ended = match whole {
        // The time limit is over, and the watchdog thread has closed the connection. That looks like the end of the
        // body, which may be incomplete.
        Ok(_) if allowance.is_over() => Err(allowance.overrun()),
        Ok(body) => transfer.finish().map(|_| body).map_err(|error| {
            let detail = match error {
                FtpError::UnexpectedResponse(response) => {
                    format!("the server ended the transfer with {response}")
                }
                _ => "the server did not confirm that the transfer was complete".to_owned(),
            };
            Refusal::lasting(Reason::IncompleteBody, detail)
        }),
        refused => refused,
    };
    // Dropping the transfer would wait for the final response of the server, so the connections are closed first.
    shut(&watchdog.sockets);
    ended
}

/// Returns whether the status means that the server does not support a command (RFC 959 §4.2.1, RFC 2428 §4).
fn does_not_know(status: Status) -> bool {
    matches!(status.code(), 500..=504 | 522 | 202)
}

fn data_connection(
    peer: IpAddr,
    said: SocketAddr,
    sockets: &Mutex<Vec<TcpStream>>,
    allowance: RequestAllowance,
) -> io::Result<TcpStream> {
    let late = |_| Error::from(ErrorKind::TimedOut);
    let remaining = allowance.remaining().map_err(late)?;
    let socket = TcpStream::connect_timeout(&SocketAddr::new(peer, said.port()), remaining)?;
    let twin = socket.try_clone()?;
    if let Ok(mut sockets) = sockets.lock() {
        sockets.push(twin);
    }
    // If the limit ended before the socket was listed, the watchdog thread did not close it, so the time is checked
    // again.
    allowance.remaining().map_err(late)?;
    Ok(socket)
}

impl From<FtpError> for Refusal {
    fn from(error: FtpError) -> Self {
        match error {
            FtpError::ConnectionError(why) => broken(&why),
            FtpError::UnexpectedResponse(response) => {
                let said = response.to_string();
                let detail = format!("the server responded with {}", excerpt(&said, QUOTED));
                let refusal = match response.status.code() {
                    // RFC 959 §4.2.1: codes from 400 to 499 are temporary failures.
                    400..500 => Self::temporary(Reason::FtpStatus, detail),
                    _ => Self::lasting(Reason::FtpStatus, detail),
                };
                let status = u16::try_from(response.status.code()).ok();
                Self { status, ..refusal }
            }
            other => {
                let said = other.to_string();
                Self::lasting(Reason::BadResponse, excerpt(&said, QUOTED).into_owned())
            }
        }
    }
}

fn broken(why: &Error) -> Refusal {
    match why.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            Refusal::lasting(Reason::BadResponse, why.to_string())
        }
        _ => Refusal::temporary(Reason::ConnectionFailed, why.to_string()),
    }
}

struct Watchdog {
    sockets: Arc<Mutex<Vec<TcpStream>>>,
    /// Keeps the watchdog thread running: the thread ends when this sender is dropped.
    _leash: mpsc::Sender<()>,
}

impl Watchdog {
    fn over(control: &TcpStream, allowance: RequestAllowance) -> Result<Self, Refusal> {
        let twin = control.try_clone().map_err(|why| broken(&why))?;
        let remaining = allowance.remaining()?;
        let sockets = Arc::new(Mutex::new(vec![twin]));
        let (leash, called_off) = mpsc::channel::<()>();
        let watched = Arc::clone(&sockets);
        thread::Builder::new()
            .name("ftp watchdog".to_owned())
            .spawn(move || {
                if called_off.recv_timeout(remaining) == Err(mpsc::RecvTimeoutError::Timeout) {
                    shut(&watched);
                }
            })
            .map_err(|why| broken(&why))?;
        Ok(Self {
            sockets,
            _leash: leash,
        })
    }
}

fn shut(sockets: &Mutex<Vec<TcpStream>>) {
    for socket in sockets.lock().iter().flat_map(|sockets| sockets.iter()) {
        let _ = socket.shutdown(Shutdown::Both);
    }
}

/// Converts between bytes and text: each byte becomes the character with the same number. suppaftp uses text, and the server
/// must receive exactly the bytes of the URL.
#[derive(Clone, Copy, Debug)]
struct ByteChars;

impl Encoding for ByteChars {
    fn decode(&self, bytes: &[u8]) -> String {
        bytes.iter().map(|byte| char::from(*byte)).collect()
    }

    fn encode(&self, text: &str) -> io::Result<Vec<u8>> {
        let octet = |character| u8::try_from(character).map_err(|_| ErrorKind::InvalidInput.into());
        text.chars().map(octet).collect()
    }
}
