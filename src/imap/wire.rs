//! Reads and writes the bytes of a connection, in clear text or over TLS, and finds the end of each response.
//!
//! The server is untrusted, so its output has limits. A response has at most [`LONGEST`] bytes. A response that does not end,
//! and a server that sends nothing for a long time, are errors. Unread input is kept in one buffer, which grows at most to the
//! size of one response.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};

use super::failure::ImapFailure;
use super::response::{announced, is_status};
use crate::error::Error;
use crate::mailbox::Stop;

/// Maximum size of one response with its literals, in bytes. A SEARCH that lists a million messages needs 8 MB, and one piece
/// of a body needs 1 MB.
pub(crate) const LONGEST: usize = 16 << 20;
/// Number of bytes to read at a time.
const READ: usize = 128 << 10;
/// Interval at which a waiting read checks whether the run was interrupted.
const TICK: Duration = Duration::from_millis(200);
/// Maximum total waiting time for one command, as a multiple of the time limit for a server that sends nothing. A long
/// answer gets more time: one second for each [`SLOWEST`] bytes.
const PATIENCE: u32 = 4;
/// Minimum speed of a long answer, in bytes per second. The connection to a slower server is closed.
const SLOWEST: u64 = 500;
/// Maximum size of responses that a command did not request and that arrive before its result, in bytes. Without a
/// limit, a server could delay the command forever.
const MOST_UNAWAITED: usize = 1 << 30;
/// Maximum number of bytes that the buffer grows at a time for a literal. The full size is not allocated at once, because a
/// server may announce a large literal and never send it.
const STEP: usize = 1 << 20;
/// Time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(30);
/// Number of bytes of a literal that are written at once.
const WRITE: usize = 256 << 10;

/// A socket that acknowledges received data at once. This makes some servers faster.
struct ImapSocket {
    stream: TcpStream,
}

impl Read for ImapSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Some servers, for example Courier, send the end of a response only after its beginning was acknowledged (RFC
        // 896). The operating system delays this by up to 40 ms, so the delay is switched off.
        #[cfg(target_os = "linux")]
        let _ = rustix::net::sockopt::set_tcp_quickack(&self.stream, true);
        self.stream.read(into)
    }
}

impl Write for ImapSocket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.stream.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Byte stream of a connection: a socket, TLS over a socket, or a fuzzing stub.
trait ImapChannel: Read + Write + Send {}

impl<C: Read + Write + Send> ImapChannel for C {}

/// A connection and its input buffer.
pub(crate) struct Wire {
    channel: Box<dyn ImapChannel>,
    /// Second handle of the socket, for starting TLS later. `None` after TLS was started.
    socket: Option<TcpStream>,
    buffer: Vec<u8>,
    /// Number of bytes at the start of the buffer that belong to responses already returned.
    taken: usize,
    /// Number of bytes at the start of the buffer that were received.
    filled: usize,
    silence: Duration,
    /// Longest time after which the server sent data.
    slowest: Duration,
    stop: Stop,
    /// Maximum size of a response, in bytes.
    longest: usize,
    /// Time spent in reads for the pending command.
    waited: Duration,
    /// Number of bytes in the responses to the pending command.
    answered: usize,
    /// Number of bytes in responses that the pending command did not request, but that arrived before its result. If
    /// the number exceeds [`MOST_UNAWAITED`], the command fails.
    unawaited: usize,
}

impl Wire {
    /// Opens a connection in clear text. Sends and reads nothing.
    ///
    /// # Errors
    /// [`ImapFailure::Connect`].
    pub(crate) fn connect(
        host: &str,
        port: u16,
        silence: Duration,
        stop: &Stop,
    ) -> Result<Self, ImapFailure> {
        let failed = |source| ImapFailure::Connect {
            host: host.to_owned(),
            source,
        };
        let addresses = (host, port).to_socket_addrs().map_err(failed)?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            stop.check()?;
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    let set = || {
                        stream.set_nodelay(true)?;
                        stream.set_read_timeout(Some(TICK))?;
                        stream.set_write_timeout(Some(silence))?;
                        stream.try_clone()
                    };
                    let socket = set().map_err(failed)?;
                    let channel = ImapSocket { stream };
                    return Ok(Self {
                        socket: Some(socket),
                        silence,
                        ..Self::over(channel, stop)
                    });
                }
                Err(why) => last = why,
            }
        }
        Err(failed(last))
    }

    /// Returns a connection over any byte stream.
    pub(crate) fn over(channel: impl Read + Write + Send + 'static, stop: &Stop) -> Self {
        Self {
            channel: Box::new(channel),
            socket: None,
            buffer: Vec::new(),
            taken: 0,
            filled: 0,
            silence: Duration::from_secs(60),
            slowest: Duration::ZERO,
            stop: stop.clone(),
            longest: LONGEST,
            waited: Duration::ZERO,
            answered: 0,
            unawaited: 0,
        }
    }

    /// Sets the counters of time and bytes to zero, before a command waits for its answer.
    pub(crate) fn begin(&mut self) {
        (self.waited, self.answered, self.unawaited) = (Duration::ZERO, 0, 0);
    }

    /// Counts the bytes of a response. `is_answer` is true if the response belongs to the pending command. The server
    /// may send other responses before the answer, but their total size is limited.
    ///
    /// # Errors
    /// [`ImapFailure::Endless`] if the other responses exceed the limit.
    pub(crate) fn count(&mut self, octets: usize, is_answer: bool) -> Result<(), ImapFailure> {
        if is_answer {
            self.answered = self.answered.saturating_add(octets)
        } else {
            self.unawaited = self.unawaited.saturating_add(octets)
        }
        if self.unawaited > MOST_UNAWAITED {
            Err(ImapFailure::Endless(format!("{} bytes", self.unawaited)))
        } else {
            Ok(())
        }
    }

    /// Sets the maximum size of a response, in bytes. The limit is never lower than [`LONGEST`].
    pub(crate) fn allow(&mut self, octets: usize) {
        self.longest = octets.max(LONGEST);
    }

    /// Sets the idle timeout: after this time without any data from the server, the connection is given up.
    pub(crate) fn set_silence(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Returns the longest time after which the server sent data.
    pub(crate) fn slowest(&self) -> Duration {
        self.slowest
    }

    /// Sleeps for `time`. Returns early with an error if the run is interrupted.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), ImapFailure> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.stop.check()?;
            std::thread::sleep(TICK.min(time));
        }
        Ok(())
    }

    /// Starts TLS on the connection. Returns an error if unread input exists: the server sent it unencrypted, so an attacker
    /// could have inserted it, and it would be parsed as if it had been sent over TLS.
    ///
    /// # Errors
    /// [`ImapFailure::Tls`], [`ImapFailure::Protocol`].
    pub(crate) fn start_tls(
        &mut self,
        host: &str,
        config: &Arc<ClientConfig>,
    ) -> Result<(), ImapFailure> {
        if self.taken < self.filled {
            return Err(ImapFailure::Protocol(
                "the server sent more than one response before TLS started",
            ));
        }
        let failed = |why: String| ImapFailure::Tls {
            host: host.to_owned(),
            why,
        };
        let Some(stream) = self.socket.take() else {
            return Err(failed("TLS was already started".to_owned()));
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|why| failed(why.to_string()))?;
        let connection = ClientConnection::new(Arc::clone(config), name)
            .map_err(|why| failed(why.to_string()))?;
        let socket = ImapSocket { stream };
        let mut stream = StreamOwned::new(connection, socket);
        let start = Instant::now();
        while stream.conn.is_handshaking() {
            self.stop.check()?;
            match stream.conn.complete_io(&mut stream.sock) {
                // Data arrived, but the handshake as a whole has a time limit too. Otherwise, a server could send one
                // byte at a time and delay the run forever.
                Ok(_) if start.elapsed() < self.silence * PATIENCE => {}
                Ok(_) => return Err(ImapFailure::Silent(start.elapsed().as_secs())),
                Err(why) if is_tick(&why) && start.elapsed() < self.silence => {}
                Err(why) if is_tick(&why) => {
                    return Err(ImapFailure::Silent(self.silence.as_secs()));
                }
                Err(why)
                    if why
                        .get_ref()
                        .is_some_and(|inner| inner.is::<rustls::Error>()) =>
                {
                    return Err(failed(why.to_string()));
                }
                Err(why) => return Err(ImapFailure::Cut(why)),
            }
        }
        self.channel = Box::new(stream);
        Ok(())
    }

    /// Reads one response with its literals and its line ending. The returned slice is valid until the next call.
    ///
    /// # Errors
    /// Returns [`ImapFailure::Protocol`] if the response is too long, [`ImapFailure::Cut`] if the connection ends, and
    /// [`ImapFailure::Silent`] if the server sends nothing in time.
    pub(crate) fn response(&mut self) -> Result<&[u8], ImapFailure> {
        // `line` is the start of the current line. The bytes before `seen` were already searched or belong to a literal,
        // so the search for the line ending starts there.
        let (mut line, mut seen) = (0, 0);
        let length = loop {
            let here = &self.buffer[self.taken..self.filled];
            let found = here
                .get(seen..)
                .and_then(|rest| memchr::memchr(b'\n', rest));
            let Some(end) = found.map(|at| seen + at) else {
                seen = seen.max(here.len());
                if seen > self.longest {
                    return Err(ImapFailure::Protocol(
                        "the server sent a line without an end",
                    ));
                }
                self.fill(0)?;
                continue;
            };
            let text = here[line..end]
                .strip_suffix(b"\r")
                .unwrap_or(&here[line..end]);
            let literal = match here.first() {
                // Continuation requests (`+`) and status responses end in text for people. If this text ends like
                // `{310}`, it announces no literal.
                Some(b'+') => None,
                _ if line == 0 && is_status(text) => None,
                _ => announced(text),
            };
            let Some(octets) = literal else {
                break end + 1;
            };
            let octets = usize::try_from(octets).unwrap_or(usize::MAX);
            line = (end + 1).saturating_add(octets);
            if line > self.longest {
                return Err(ImapFailure::Protocol(
                    "the server sent a literal that is too long",
                ));
            }
            seen = line;
            while line > self.filled - self.taken {
                let missing = line - (self.filled - self.taken);
                self.fill(missing.min(STEP))?;
            }
        };
        let from = self.taken;
        self.taken += length;
        Ok(&self.buffer[from..from + length])
    }

    /// Reads from the channel until the buffer contains at least `wanted` more bytes.
    fn fill(&mut self, wanted: usize) -> Result<(), ImapFailure> {
        if self.taken == self.filled {
            (self.taken, self.filled) = (0, 0);
            // Frees the memory after an unusually large response. Otherwise the buffer would keep this size until the
            // connection ends.
            if self.buffer.len() > LONGEST / 2 {
                self.buffer.truncate(READ);
                self.buffer.shrink_to_fit();
            }
        }
        let room = wanted.max(READ);
        if self.filled + room > self.buffer.len() {
            if self.taken > 0 {
                self.buffer.copy_within(self.taken..self.filled, 0);
                self.filled -= self.taken;
                self.taken = 0;
            }
            let needed = self.filled + room;
            if needed > self.buffer.len() {
                self.buffer.resize(needed.next_multiple_of(READ), 0);
            }
        }
        let mut missing = wanted.max(1);
        let mut since = Instant::now();
        while missing > 0 {
            self.stop.check()?;
            let of_answer = self.answered.saturating_add(self.filled - self.taken) as u64;
            if self.waited > self.silence * PATIENCE + Duration::from_secs(of_answer / SLOWEST) {
                let seconds = format!("{} seconds", self.waited.as_secs());
                return Err(ImapFailure::Endless(seconds));
            }
            let begun = Instant::now();
            let read = self.channel.read(&mut self.buffer[self.filled..]);
            self.waited += begun.elapsed();
            match read {
                Ok(0) => return Err(ImapFailure::Cut(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => {
                    self.filled += read;
                    missing = missing.saturating_sub(read);
                    self.slowest = self.slowest.max(since.elapsed());
                    since = Instant::now();
                }
                Err(why) if is_tick(&why) => {
                    if since.elapsed() >= self.silence {
                        return Err(ImapFailure::Silent(self.silence.as_secs()));
                    }
                }
                Err(why) => return Err(ImapFailure::Cut(why)),
            }
        }
        Ok(())
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// [`ImapFailure::Cut`]; [`ImapFailure::Run`] if the run is to stop.
    pub(crate) fn send(&mut self, octets: &[u8]) -> Result<(), ImapFailure> {
        for piece in octets.chunks(WRITE) {
            self.stop.check()?;
            self.channel.write_all(piece).map_err(ImapFailure::Cut)?;
        }
        self.channel.flush().map_err(ImapFailure::Cut)
    }
}

/// Returns whether a read ended only because no data arrived within one [`TICK`]. The caller then checks whether the
/// run was interrupted, and reads again.
fn is_tick(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Builds a TLS configuration that trusts the certificates of the system and those in `file`. A certificate in `file` may be
/// that of a certificate authority or that of the server itself.
///
/// # Errors
/// [`Error::Read`], [`Error::Usage`].
pub(crate) fn trust(file: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let mut named = Vec::new();
    if let Some(path) = file {
        let wrong =
            || Error::Usage(format!("{} contains no PEM certificate", path.display()).into());
        let pem = std::fs::read(path).map_err(Error::cannot_read(format!(
            "the CA file {}",
            path.display()
        )))?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        named = found.map_err(|_| wrong())?;
        let (added, _) = roots.add_parsable_certificates(named.iter().cloned());
        if added == 0 || added < named.len() {
            return Err(wrong());
        }
    }
    let unusable = |why: String| Error::Usage(why.into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|why| unusable(why.to_string()))?;
    let config = if named.is_empty() {
        builder.with_root_certificates(roots)
    } else {
        let authorities = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .map_err(|why| unusable(why.to_string()))?;
        let verifier = NamedCertificates { authorities, named };
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
    };
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Certificate verifier for the certificates that the user named. It accepts a server that webpki accepts, and also a server
/// whose own certificate is one of the named certificates. `openssl req -x509` and Proton Mail Bridge create self-signed
/// certificates, which webpki rejects as server certificates.
#[derive(Debug)]
struct NamedCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        // `UnknownIssuer` and `CaUsedAsEndEntity` mean that no trusted authority issued the certificate. webpki checks the
        // dates before the issuer, so a certificate with one of these errors has not expired. Such a certificate is
        // accepted if the user named it.
        let lacks_authority = match &verified {
            Err(rustls::Error::InvalidCertificate(why)) => match why {
                CertificateError::UnknownIssuer => true,
                CertificateError::Other(why) => format!("{:?}", why.0) == "CaUsedAsEndEntity",
                _ => false,
            },
            _ => false,
        };
        if !lacks_authority || !self.named.iter().any(|named| named == end_entity) {
            return verified;
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
