//! Builds the HTTP client: ureq with rustls. The resolver that is passed in decides to which addresses the client may connect.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::Request;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, Resolver};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, AsSendBody};

use super::connection::{HttpConnections, NoConnection};
use super::response_head::LONGEST_HEAD;
use crate::engine::policy::Policy;
use crate::engine::report::{Reason, Refusal};
use crate::error::Error;

pub(crate) const USER_AGENT: &str = concat!("embody/", env!("CARGO_PKG_VERSION"));

/// Maximum time that an unused connection is kept open. Many servers close idle connections after 15 seconds.
const MOST_IDLE: Duration = Duration::from_secs(15);

/// Builds a client. `silence` limits each step of a request: the name lookup, connecting, and every read and write. If it is
/// `None`, the steps have no limit, and the caller limits the request as a whole.
pub(super) fn agent(
    policy: &Policy,
    roots: &[Certificate<'static>],
    silence: Option<Duration>,
    resolver: impl Resolver,
) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = |proxy| {
        Agent::config_builder()
            .tls_config(tls.clone())
            // "No proxy" must be set explicitly, because ureq would otherwise use a proxy from environment variables.
            .proxy(proxy)
            .user_agent(USER_AGENT)
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_resolve(silence)
            .timeout_connect(silence)
            .timeout_recv_response(silence)
            .timeout_per_read(silence)
            .timeout_per_write(silence)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // `HeadTransport` enforces the real limit. This one is larger, because normalising a head can add a few
            // bytes.
            .max_response_header_size(LONGEST_HEAD.saturating_mul(2))
            .max_idle_age(MOST_IDLE)
            .max_idle_connections_per_host(policy.limits.in_flight)
            .max_idle_connections(policy.limits.in_flight.saturating_mul(2))
            .build()
    };
    let connector = HttpConnections {
        connector: DefaultConnector::default(),
        without_proxy: config(None),
    };
    // An invalid proxy is ignored here, because `certificates` has already reported it.
    Agent::with_parts(config(proxy(policy).ok().flatten()), connector, resolver)
}

pub(super) fn system_roots(more: &[Certificate<'static>]) -> Vec<Certificate<'static>> {
    let system = rustls_native_certs::load_native_certs().certs;
    system
        .iter()
        .map(|it| Certificate::from_der(it).to_owned())
        .chain(more.iter().cloned())
        .collect()
}

/// Reads the certificates of `--ca-file`, and checks that the proxy of the policy is supported. The proxy is checked here
/// because this function is called at the start of the run: an invalid proxy then ends the run before the first retrieval.
pub(super) fn certificates(policy: &Policy) -> Result<Vec<Certificate<'static>>, Error> {
    let mut found = Vec::new();
    if let Some(path) = &policy.ca_file {
        let wrong =
            || Error::Usage(format!("{} contains no PEM certificate", path.display()).into());
        let file = format!("the CA file {}", path.display());
        let pem = std::fs::read(path).map_err(Error::cannot_read(file))?;
        for item in ureq::tls::parse_pem(&pem) {
            if let PemItem::Certificate(certificate) = item.map_err(|_| wrong())? {
                found.push(certificate);
            }
        }
        if found.is_empty() {
            return Err(wrong());
        }
    }
    proxy(policy)?;
    Ok(found)
}

fn proxy(policy: &Policy) -> Result<Option<ureq::Proxy>, Error> {
    let proxy = policy
        .proxy
        .as_ref()
        .map(|proxy| ureq::Proxy::new(proxy.as_str()));
    let unusable = |_| {
        Error::Usage(
            "embody does not support this kind of proxy; use an http or https proxy".into(),
        )
    };
    proxy.transpose().map_err(unusable)
}

pub(super) fn is_of_tls(why: &io::Error) -> bool {
    why.get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>())
}

/// Returns the longest idle time of a connection that may be used for this try of a request. The first try has the number 1.
///
/// A second try needs a new connection, so its limit is zero. If a load balancer dropped one idle connection, it has probably
/// dropped the others, too, and a client notices this only when it sends something. ureq closes the connections to this server
/// that exceed the limit, so no later request uses them either.
pub(super) fn idle_age(tries: u32) -> Duration {
    match tries {
        1 => MOST_IDLE,
        _ => Duration::ZERO,
    }
}

pub(super) fn broke(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

/// A client for servers that the user configured. No part of a mail decides where it connects, so addresses are not checked.
/// Redirects are not followed.
#[derive(Debug)]
pub(crate) struct Direct(Agent);

#[derive(Debug)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Direct {
    /// Creates the client. The time limit of the policy applies to each single wait for the server, not to the whole request.
    pub(crate) fn new(policy: &Policy) -> Result<Self, Error> {
        let roots = system_roots(&certificates(policy)?);
        let (silence, resolver) = (policy.limits.timeout, DefaultResolver::default());
        Ok(Self(agent(policy, &roots, Some(silence), resolver)))
    }

    pub(crate) fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<&[u8]>,
        at_most: u64,
    ) -> Result<HttpReply, Refusal> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = Request::builder().method(method).uri(url);
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let answer = match body {
                Some(body) => request.body(body).map(|request| self.run(request, tries)),
                None => request.body(()).map(|request| self.run(request, tries)),
            };
            match answer.unwrap_or_else(|why| Err(why.into())) {
                Ok(answer) => return whole(answer, at_most),
                // The server closed an idle connection, so the request is sent once more. That is safe even if it was
                // received: these requests are idempotent.
                Err(ureq::Error::Io(why)) if tries == 1 && broke(&why) => {}
                Err(why) => return Err(failed(&why)),
            }
        }
    }
}

impl Direct {
    fn run(
        &self,
        request: Request<impl AsSendBody>,
        tries: u32,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let request = self.0.configure_request(request);
        self.0.run(request.max_idle_age(idle_age(tries)).build())
    }
}

fn whole(answer: ureq::http::Response<ureq::Body>, at_most: u64) -> Result<HttpReply, Refusal> {
    let status = answer.status().as_u16();
    let reader = answer.into_body().into_with_config();
    match reader.limit(at_most.saturating_add(1)).read_to_vec() {
        Ok(body) if body.len() as u64 <= at_most => Ok(HttpReply { status, body }),
        Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
            let detail = format!("the response is larger than the limit of {at_most} bytes");
            Err(Refusal::lasting(Reason::TooLarge, detail))
        }
        Err(why) => Err(failed(&why)),
    }
}

fn failed(why: &ureq::Error) -> Refusal {
    use ureq::Error as Trouble;
    let why = match why {
        Trouble::Other(inner) => inner
            .downcast_ref()
            .map_or(why, |never: &NoConnection| &never.why),
        why => why,
    };
    let is_temporary = match why {
        Trouble::Io(why) => !is_of_tls(why),
        Trouble::Timeout(_)
        | Trouble::HostNotFound
        | Trouble::ConnectionFailed
        | Trouble::ConnectProxyFailed(_)
        | Trouble::Protocol(_) => true,
        _ => false,
    };
    // The error text of ureq for an invalid URL may contain the URL. A signed URL is secret, so a text without it is used.
    let what = match why {
        Trouble::BadUri(_) | Trouble::Http(_) => "the HTTP client rejected the URL".to_owned(),
        why => why.to_string(),
    };
    if is_temporary {
        Refusal::temporary(Reason::ConnectionFailed, what)
    } else {
        Refusal::lasting(Reason::ConnectionFailed, what)
    }
}
