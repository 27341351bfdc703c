//! Requests for http: URLs through a proxy, as curl and browsers send them: in absolute form (RFC 9112 §3.2.2). Many
//! proxies, Squid as it comes among them, let nobody CONNECT to port 80, and ureq sends the absolute form nowhere.
//!
//! * [`Forward`] stands in front of all that connects. It takes connections for http: if there is a proxy, and makes
//!   them to the proxy; the address of the source is looked up by the proxy alone. What is for https: goes on to ureq,
//!   which asks the proxy to CONNECT.
//! * The pool of ureq keeps a connection for one scheme, host and port, so that all requests on it name the same.
//! * User name and password of the proxy stand in a Proxy-Authorization that is written here, on a connection to the
//!   proxy and nowhere else. A CONNECT has its own, from ureq. What is sent within a tunnel has none.
//!
//! It does not preserve the name of the proxy in errors: `wire` says it.

use std::fmt;
use std::io;

use base64::Engine as _;
use ureq::Proxy;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::http::uri::Scheme;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// A connector that makes connections for http: to the proxy, if there is one.
#[derive(Debug)]
pub(super) struct Forward<C> {
    connector: C,
    /// With which the proxy itself is connected to.
    without_proxy: Config,
}

impl<C> Forward<C> {
    pub(super) fn new(connector: C, without_proxy: Config) -> Self {
        Self {
            connector,
            without_proxy,
        }
    }
}

impl<C: Connector> Connector for Forward<C> {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let proxy = details.config.proxy();
        let proxy = proxy.filter(|_| details.uri.scheme() == Some(&Scheme::HTTP));
        let Some(proxy) = proxy else {
            let transport = self.connector.connect(details, chained)?;
            return Ok(transport.map(|transport| Box::new(transport) as Box<dyn Transport>));
        };
        let to_proxy = ConnectionDetails {
            uri: proxy.uri(),
            addrs: details
                .resolver
                .resolve(proxy.uri(), details.config, details.timeout)?,
            config: &self.without_proxy,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: details.current_time.clone(),
            run_connector: details.run_connector.clone(),
            register_shutdown: details.register_shutdown.clone(),
        };
        let transport = self.connector.connect(&to_proxy, chained)?;
        Ok(transport.map(|transport| {
            Box::new(AbsoluteForm {
                transport,
                origin: origin(details.uri),
                authorization: authorization(proxy),
                is_answered: true,
            }) as Box<dyn Transport>
        }))
    }
}

/// What stands in front of the path: `http://www.example.org:8080`.
fn origin(uri: &Uri) -> String {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("http://{authority}")
}

fn authorization(proxy: &Proxy) -> Option<String> {
    let (user, password) = (proxy.username(), proxy.password());
    user.or(password)?;
    let pair = format!(
        "{}:{}",
        user.unwrap_or_default(),
        password.unwrap_or_default()
    );
    let pair = base64::engine::general_purpose::STANDARD.encode(pair);
    Some(format!("Proxy-Authorization: Basic {pair}\r\n"))
}

/// A connection to a proxy, on which each request gets its absolute form.
struct AbsoluteForm<T> {
    transport: T,
    origin: String,
    /// Stands behind the first line.
    authorization: Option<String>,
    /// Whether what is sent next begins a request: nothing was sent yet, or an answer has been read since.
    is_answered: bool,
}

impl<T: Transport> AbsoluteForm<T> {
    /// The beginning of a request, these octets of the output, as a proxy takes it; none of what begins with no request
    /// line in origin form (RFC 9112 §3.2.1).
    fn begin(&mut self, amount: usize) -> Option<Vec<u8>> {
        let sent: &[u8] = self.transport.buffers().output().get(..amount)?;
        let target = memchr::memchr(b' ', sent)? + 1;
        let fields = memchr::memmem::find(sent, b"\r\n")? + 2;
        let (method, line) = sent.get(..fields)?.split_at_checked(target)?;
        if !line.starts_with(b"/") {
            return None;
        }
        let authorization = self.authorization.as_deref().unwrap_or_default();
        Some(
            [
                method,
                self.origin.as_bytes(),
                line,
                authorization.as_bytes(),
                sent.get(fields..)?,
            ]
            .concat(),
        )
    }
}

impl<T: Transport> Transport for AbsoluteForm<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        if !std::mem::take(&mut self.is_answered) {
            return self.transport.transmit_output(amount, timeout);
        }
        // ureq writes the request line whole. What begins otherwise is not sent.
        let sent = self.begin(amount);
        let sent = sent.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut rest = sent.as_slice();
        while !rest.is_empty() {
            let output = self.transport.buffers().output();
            let amount = rest.len().min(output.len());
            let (piece, behind) = rest.split_at(amount);
            for (to, from) in output.iter_mut().zip(piece) {
                *to = *from;
            }
            self.transport.transmit_output(amount, timeout)?;
            rest = behind;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.is_answered = true;
        self.transport.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }
}

impl<T: fmt::Debug> fmt::Debug for AbsoluteForm<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Derived, this would print the password.
        let mut shown = formatter.debug_struct("AbsoluteForm");
        shown.field("origin", &self.origin).finish_non_exhaustive()
    }
}
