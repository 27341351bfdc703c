//! The client: ureq with rustls. The resolver that it is given says to which addresses it may connect.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::DefaultConnector;

use super::connection::Connections;
use crate::error::Error;
use crate::policy::Policy;

pub(crate) const USER_AGENT: &str = concat!("embody/", env!("CARGO_PKG_VERSION"));

/// The server may be silent so long; without that, requests have their own limits.
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
            // Its default comes from the environment.
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
            .max_idle_connections_per_host(policy.limits.in_flight)
            .max_idle_connections(policy.limits.in_flight.saturating_mul(2))
            .build()
    };
    let connector = Connections {
        connector: DefaultConnector::default(),
        without_proxy: config(None),
    };
    // `certificates` has checked the proxy.
    Agent::with_parts(config(proxy(policy).ok().flatten()), connector, resolver)
}

pub(super) fn system_roots(more: &[Certificate<'static>]) -> Vec<Certificate<'static>> {
    let system = rustls_native_certs::load_native_certs().certs;
    let system = system.iter().map(|it| Certificate::from_der(it).to_owned());
    system.chain(more.iter().cloned()).collect()
}

/// The proxy is checked besides, so that a mistake stops the run and not only the first retrieval.
pub(super) fn certificates(policy: &Policy) -> Result<Vec<Certificate<'static>>, Error> {
    let mut found = Vec::new();
    if let Some(path) = &policy.ca_file {
        let wrong = || Error::Usage(format!("{} holds no PEM certificate", path.display()).into());
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
    policy
        .proxy
        .as_ref()
        .map(|proxy| ureq::Proxy::new(proxy.as_str()))
        .transpose()
        .map_err(|_| Error::Usage("the proxy is not one that can be used".into()))
}

pub(super) fn is_of_tls(why: &io::Error) -> bool {
    why.get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>())
}

/// `Basic` and the coded pair (RFC 7617).
pub(crate) fn basic(user: &[u8], password: &[u8]) -> String {
    let pair = [user, b":", password].concat();
    format!("Basic {}", STANDARD.encode(pair))
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
