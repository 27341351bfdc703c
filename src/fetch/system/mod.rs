//! http, https, ftp and file as this system reaches them, each behind the policy.

mod file;
#[cfg(feature = "ftp")]
mod ftp;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_body;
#[cfg(feature = "http")]
mod wire;

use std::sync::Arc;
use std::time::Instant;

use self::file::Roots;
#[cfg(feature = "http")]
use self::http::Client;
#[cfg(feature = "http")]
use self::wire::Wire;
use super::allowance::Allowance;
#[cfg(feature = "cache")]
use super::exchange::Exchange;
#[cfg(all(feature = "http", feature = "ftp"))]
use super::exchange::{Failed, Nobody, is_long};
#[cfg(feature = "ftp")]
use super::names;
#[cfg(any(feature = "http", feature = "ftp"))]
use super::names::{Names, SystemNames};
use super::{Fetch, Probed, Request, Retrieved};
use bytes::Bytes;

use crate::error::Error;
#[cfg(all(feature = "http", feature = "ftp"))]
use crate::policy::Host;
use crate::policy::{Policy, Scheme, Target};
#[cfg(feature = "ftp")]
use crate::report::{Detail, Retry, Setting};
use crate::report::{Reason, Refusal};

/// Retrieves what the policy allows. Making one opens the file roots and reads
/// [`Policy::ca_file`]; everything about networks waits for the first retrieval that needs it.
///
/// http: and https: need the feature `http`, ftp: needs `ftp`; without them these are refused with
/// [`Reason::UnsupportedScheme`].
#[derive(Debug)]
pub struct SystemFetcher {
    policy: Arc<Policy>,
    #[cfg(feature = "ftp")]
    names: Arc<dyn Names>,
    roots: Roots,
    #[cfg(feature = "http")]
    http: Client,
}

impl SystemFetcher {
    /// A fetcher that asks the system's name resolver.
    ///
    /// An [`Expander`](crate::Expander) makes its own from its policy; this is for a [`Fetch`] of one's own that hands
    /// requests on.
    ///
    /// # Errors
    /// [`Error::Read`] for a file root or a CA file that cannot be opened, [`Error::Usage`] for a
    /// CA file without certificates or a proxy that cannot be used.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Result<Self, Error> {
        #[cfg(any(feature = "http", feature = "ftp"))]
        return Self::with_names(policy, Arc::new(SystemNames));
        #[cfg(not(any(feature = "http", feature = "ftp")))]
        {
            let policy = policy.into();
            Ok(Self {
                roots: Roots::open(&policy)?,
                policy,
            })
        }
    }

    /// A fetcher that asks another resolver.
    ///
    /// # Errors
    /// As [`SystemFetcher::new`].
    #[cfg(any(feature = "http", feature = "ftp"))]
    pub fn with_names(
        policy: impl Into<Arc<Policy>>,
        names: Arc<dyn Names>,
    ) -> Result<Self, Error> {
        let policy = policy.into();
        Ok(Self {
            roots: Roots::open(&policy)?,
            #[cfg(feature = "http")]
            http: {
                let wire = Wire::new(Arc::clone(&policy), Arc::clone(&names))?;
                Client::new(Arc::clone(&policy), Arc::new(wire))
            },
            #[cfg(feature = "ftp")]
            names,
            policy,
        })
    }

    /// A fetcher between whose steps and the servers stands what `wrap` makes: a cache.
    ///
    /// # Errors
    /// As [`SystemFetcher::new`].
    #[cfg(feature = "cache")]
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) fn through(
        policy: Arc<Policy>,
        wrap: impl FnOnce(Arc<dyn Exchange>) -> Arc<dyn Exchange>,
    ) -> Result<Self, Error> {
        let names: Arc<dyn Names> = Arc::new(SystemNames);
        let wire = Arc::new(Wire::new(Arc::clone(&policy), Arc::clone(&names))?);
        Ok(Self {
            roots: Roots::open(&policy)?,
            http: Client::new(Arc::clone(&policy), wrap(wire)),
            #[cfg(feature = "ftp")]
            names,
            policy,
        })
    }

    #[cfg(feature = "http")]
    fn over_http(
        &self,
        target: Target,
        request: &Request,
        allowance: Allowance,
    ) -> Result<Answer, Refusal> {
        let answer = self
            .http
            .retrieve(target, request.accept.as_deref(), allowance)?;
        Ok((answer.url, answer.media_type, answer.body))
    }

    #[cfg(not(feature = "http"))]
    fn over_http(
        &self,
        target: Target,
        _request: &Request,
        _allowance: Allowance,
    ) -> Result<Answer, Refusal> {
        Err(not_built_in(&target))
    }

    #[cfg(feature = "ftp")]
    fn over_ftp(&self, target: &Target, allowance: Allowance) -> Result<Answer, Refusal> {
        if self.policy.proxy.is_some() {
            return Err(Refusal::lasting(
                Reason::UnsupportedScheme,
                Detail::from("ftp does not go through ")
                    .naming(Setting::Proxy)
                    .then(", and must not go around it"),
            ));
        }
        let (Some(host), Some(port)) = (target.host(), target.port()) else {
            return Err(Refusal::lasting(Reason::BadUrl, "the URL names no host"));
        };
        #[cfg(feature = "http")]
        self.http.exchange().may_ask(&host, port)?;
        let begun = Instant::now();
        let connected = names::judged(&self.policy, &self.names, &host, port, allowance)
            .map_err(|refusal| (refusal, false))
            .and_then(|addresses| ftp::connect(target, &addresses, allowance));
        let socket = match connected {
            Ok(socket) => socket,
            Err((refusal, is_refused)) => {
                #[cfg(feature = "http")]
                self.not_connected(&host, port, &refusal, is_refused, begun);
                #[cfg(not(feature = "http"))]
                let _ = begun;
                let is_gone = is_refused
                    || (refusal.reason, refusal.retry) == (Reason::NameNotFound, Retry::Never);
                return Err(Refusal { is_gone, ..refusal });
            }
        };
        let body = ftp::retrieve(&self.policy, target, socket, allowance)?;
        Ok((target.public_url(), None, compact(body)))
    }

    /// Tells the cache of a host where nobody is.
    #[cfg(all(feature = "http", feature = "ftp"))]
    fn not_connected(
        &self,
        host: &Host,
        port: u16,
        refusal: &Refusal,
        is_refused: bool,
        begun: Instant,
    ) {
        let is_late = matches!(refusal.reason, Reason::Timeout | Reason::Deadline)
            && is_long(begun.elapsed(), self.policy.limits.timeout);
        let mut failed = Failed::from(refusal.clone());
        if is_refused || is_late {
            failed.nobody = Some(Nobody::Port);
        }
        if failed.nobody.is_some() {
            self.http.exchange().found_nobody(host, port, &failed);
        }
    }

    #[cfg(not(feature = "ftp"))]
    fn over_ftp(&self, target: &Target, _allowance: Allowance) -> Result<Answer, Refusal> {
        Err(not_built_in(target))
    }
}

/// A cache counts the octets of a body, not what was allocated to read it.
fn compact(mut body: Vec<u8>) -> Bytes {
    body.shrink_to_fit();
    body.into()
}

/// The URL that answered, its Content-Type and the body.
type Answer = (String, Option<String>, Bytes);

#[cfg(not(all(feature = "http", feature = "ftp")))]
fn not_built_in(target: &Target) -> Refusal {
    let scheme = target.scheme().as_str();
    let detail = format!("this program was built without {scheme}:");
    Refusal::lasting(Reason::UnsupportedScheme, detail)
}

impl Fetch for SystemFetcher {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let begun = Instant::now();
        let target = self.policy.judge_url(&request.url)?;
        let allowance = Allowance::starting_now(self.policy.limits.timeout, request.deadline);
        allowance.remaining()?;
        let (url, media_type, body) = match target.scheme() {
            Scheme::Http | Scheme::Https => self.over_http(target, request, allowance)?,
            Scheme::Ftp => self.over_ftp(&target, allowance)?,
            Scheme::File => {
                let path = target.path().unwrap_or(std::path::Path::new(""));
                let body = self.roots.read(&self.policy, path, allowance)?;
                (target.public_url(), None, compact(body))
            }
        };
        Ok(Retrieved {
            url,
            media_type,
            body,
            elapsed: begun.elapsed(),
            captured: None,
        })
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        #[cfg(feature = "http")]
        {
            let target = self.policy.judge_url(&request.url)?;
            if target.scheme().is_http() {
                let allowance =
                    Allowance::starting_now(self.policy.limits.timeout, request.deadline);
                allowance.remaining()?;
                let accept = request.accept.as_deref();
                return self.http.probe(&target, accept, allowance);
            }
        }
        self.fetch(request).map(Probed::from)
    }
}
