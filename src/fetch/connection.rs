//! Makes connections for ureq, to the server or, for http: URLs, to the proxy if there is one. While an exchange
//! is recorded, each connection passes its bytes to the recording of its thread ([`tap`]).
//!
//! With a proxy, a request for an http: URL is sent in absolute form (RFC 9112 §3.2.2), as curl and browsers do. ureq would use
//! CONNECT instead, but many proxies, for example Squid by default, reject CONNECT to port 80.
//!
//! * Only the proxy resolves the name of the server. For https: URLs, ureq sends CONNECT to the proxy.
//! * ureq reuses a connection only for the same scheme, host and port, so all requests on it are for the same server.
//! * User name and password of the proxy are sent in a Proxy-Authorization field, which this module adds only on a connection
//!   to the proxy. ureq adds the field of a CONNECT. Requests inside a tunnel do not contain it.
//! * A recording contains requests as the server receives them, without Proxy-Authorization. A CONNECT is not part of a
//!   recording: the connection inside the tunnel replaces that of the CONNECT.
//! * Errors do not contain the address of the proxy: `servers` adds it.

use std::fmt;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::Proxy;
use ureq::config::Config;
use ureq::http::uri::Scheme;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};

use super::response_head::HeadTransport;
use super::tap::{self, Current};

#[derive(Debug)]
pub(super) struct HttpConnections {
    pub(super) connector: DefaultConnector,
    pub(super) without_proxy: Config,
}

/// A time-out while a connection was being made. The server did not respond at all, so requests for other URLs on this
/// port would fail, too. A time-out of an established connection is a different error, because it shows only that this
/// URL is slow.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(super) struct NoConnection {
    pub(super) elapsed: Duration,
    pub(super) why: ureq::Error,
}

type Connected = Result<Option<Box<dyn Transport>>, ureq::Error>;

impl Connector for HttpConnections {
    type Out = Box<dyn Transport>;

    fn connect(&self, details: &ConnectionDetails<'_>, _chained: Option<()>) -> Connected {
        let proxy = details.config.proxy();
        let forwarding = proxy.filter(|_| details.uri.scheme() == Some(&Scheme::HTTP));
        let is_recorded = tap::is_recorded();
        let (transport, address) = match forwarding {
            Some(proxy) => (self.to_proxy(details, proxy)?, None),
            None if proxy.is_none() && is_recorded => self.one_by_one(details)?,
            None => (self.boxed(details)?, None),
        };
        let tapped = is_recorded.then(|| (tap::connected(address), address));
        if forwarding.is_none() && tapped.is_none() {
            return Ok(normalizing(transport));
        }
        let authority = details.uri.authority().map_or("", |it| it.as_str());
        let absolute = forwarding.map(|proxy| AbsoluteForm {
            origin: format!("http://{authority}"),
            authorization: authorization(proxy),
            is_answered: true,
        });
        Ok(normalizing(transport.map(|transport| {
            Box::new(HttpConnection {
                transport,
                tapped,
                absolute,
            }) as Box<dyn Transport>
        })))
    }
}

fn normalizing(transport: Option<Box<dyn Transport>>) -> Option<Box<dyn Transport>> {
    transport.map(|transport| Box::new(HeadTransport::new(transport)) as Box<dyn Transport>)
}

impl HttpConnections {
    fn boxed(&self, details: &ConnectionDetails<'_>) -> Connected {
        let begun = Instant::now();
        let connected = self.connector.connect(details, None);
        connected.map_err(|why| match why {
            ureq::Error::Timeout(_) => {
                let elapsed = begun.elapsed();
                ureq::Error::Other(Box::new(NoConnection { elapsed, why }))
            }
            why => why,
        })
    }

    fn to_proxy(&self, details: &ConnectionDetails<'_>, proxy: &Proxy) -> Connected {
        let (resolver, uri) = (details.resolver, proxy.uri());
        self.boxed(&ConnectionDetails {
            uri,
            addrs: resolver.resolve(uri, details.config, details.timeout)?,
            config: &self.without_proxy,
            ..again(details)
        })
    }

    /// Tries one address after the other, so that the recording contains the address that was used. Each attempt has half of
    /// the remaining time, the last one has all of it.
    #[allow(clippy::type_complexity)]
    fn one_by_one(
        &self,
        details: &ConnectionDetails<'_>,
    ) -> Result<(Option<Box<dyn Transport>>, Option<IpAddr>), ureq::Error> {
        let begun = Instant::now();
        let mut addresses = details.addrs.iter().peekable();
        while let Some(address) = addresses.next() {
            let is_last = addresses.peek().is_none();
            let mut one = again(details);
            one.addrs = details.resolver.empty();
            one.addrs.push(*address);
            if !one.timeout.after.is_not_happening() {
                let left = one.timeout.after.saturating_sub(begun.elapsed());
                let part = if is_last { left } else { left / 2 };
                one.timeout.after = part.max(Duration::from_millis(10)).into();
            }
            match self.boxed(&one) {
                Err(_) if !is_last => {}
                connected => return Ok((connected?, Some(address.ip()))),
            }
        }
        Ok((self.boxed(details)?, None))
    }
}

fn again<'d>(details: &ConnectionDetails<'d>) -> ConnectionDetails<'d> {
    ConnectionDetails {
        uri: details.uri,
        addrs: details.addrs.clone(),
        config: details.config,
        request_level: details.request_level,
        resolver: details.resolver,
        now: details.now,
        timeout: details.timeout,
        current_time: details.current_time.clone(),
        run_connector: details.run_connector.clone(),
        register_shutdown: details.register_shutdown.clone(),
    }
}

/// Returns the value of an Authorization field: `Basic`, and user name and password in base64 (RFC 7617).
pub(crate) fn basic(user: &[u8], password: &[u8]) -> String {
    let pair = [user, b":", password].concat();
    format!("Basic {}", STANDARD.encode(pair))
}

fn authorization(proxy: &Proxy) -> String {
    let (user, password) = (proxy.username(), proxy.password());
    if user.or(password).is_none() {
        return String::new();
    }
    let (user, password) = (user.unwrap_or_default(), password.unwrap_or_default());
    let credentials = basic(user.as_bytes(), password.as_bytes());
    format!("Proxy-Authorization: {credentials}\r\n")
}

struct HttpConnection {
    transport: Box<dyn Transport>,
    tapped: Option<(u64, Option<IpAddr>)>,
    absolute: Option<AbsoluteForm>,
}

struct AbsoluteForm {
    origin: String,
    authorization: String,
    /// True if the next bytes that are sent begin a new request: nothing was sent on the connection yet, or a response was read
    /// after the last request.
    is_answered: bool,
}

impl AbsoluteForm {
    /// Returns the request in absolute form. Returns `None` if the bytes do not begin with a request line in origin form (RFC
    /// 9112 §3.2.1).
    fn of(&self, sent: &[u8]) -> Option<Vec<u8>> {
        let target = memchr::memchr(b' ', sent)? + 1;
        let fields = memchr::memmem::find(sent, b"\r\n")? + 2;
        let (head, behind) = sent.split_at_checked(fields)?;
        let (method, line) = head.split_at_checked(target)?;
        let (origin, authorization) = (self.origin.as_bytes(), self.authorization.as_bytes());
        let whole = || [method, origin, line, authorization, behind].concat();
        line.starts_with(b"/").then(whole)
    }
}

impl HttpConnection {
    /// Calls `act` if this thread is recording an exchange over this connection. An exchange without a connection gets
    /// this one, and bytes that are already buffered are recorded first.
    fn if_heard(&mut self, act: impl FnOnce(&mut Current, &mut dyn Transport)) {
        let Some((number, address)) = self.tapped else {
            return;
        };
        tap::with_current(|current| {
            if current.connection.is_none() {
                current.connection = Some(number);
                current.recording.connected(address);
                let early = self.transport.buffers().input();
                current.recording.received(early);
            }
            if current.connection == Some(number) {
                act(current, &mut *self.transport);
            }
        });
    }
}

impl Transport for HttpConnection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.if_heard(|current, transport| {
            let sent = transport.buffers().output().get(..amount);
            current.recording.sent(sent.unwrap_or_default());
        });
        let form = self.absolute.as_mut();
        let Some(form) = form.filter(|form| form.is_answered) else {
            return self.transport.transmit_output(amount, timeout);
        };
        form.is_answered = false;
        // Only a complete request line can be rewritten. ureq sends the whole line at once; if it ever did not, the request
        // would fail here.
        let output: &[u8] = self.transport.buffers().output();
        let sent = output
            .get(..amount)
            .and_then(|sent| form.of(sent))
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut rest = sent.as_slice();
        while !rest.is_empty() {
            let amount = rest.read(self.transport.buffers().output())?;
            self.transport.transmit_output(amount, timeout)?;
        }
        Ok(())
    }

    fn await_input(&mut self, mut timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.if_heard(|current, _| timeout.per_read = current.patience().or(timeout.per_read));
        if let Some(form) = &mut self.absolute {
            form.is_answered = true;
        }
        let known = self.transport.buffers().input().len();
        let came = self.transport.await_input(timeout);
        self.if_heard(|current, transport| {
            let new = transport.buffers().input().get(known..);
            current.recording.received(new.unwrap_or_default());
            if !matches!(came, Ok(true) | Err(ureq::Error::Timeout(_))) {
                current.recording.closed();
            }
        });
        came
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

impl fmt::Debug for HttpConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Prints no fields, because a derived implementation would print the password of the proxy.
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}
