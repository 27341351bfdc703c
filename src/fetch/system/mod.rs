//! http, https, ftp and file as this system reaches them, each behind the policy; and the resolver.

#[cfg(feature = "file")]
pub(super) mod file;
#[cfg(feature = "ftp")]
mod ftp;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_body;
#[cfg(feature = "cli")]
mod resolver;
#[cfg(feature = "http")]
mod servers;
#[cfg(any(feature = "file", feature = "ftp", feature = "http"))]
mod whole;
#[cfg(feature = "http")]
mod wire;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
#[cfg(any(feature = "file", feature = "ftp"))]
use std::time::SystemTime;

#[cfg(feature = "file")]
use self::file::Roots;
#[cfg(feature = "http")]
use self::http::Http;
#[cfg(feature = "http")]
pub(crate) use self::servers::Servers;
use super::allowance::Allowance;
#[cfg(all(feature = "http", feature = "ftp"))]
use super::exchange::{Failed, Nobody, is_long};
#[cfg(feature = "ftp")]
use super::names::{self, Names};
use super::request::{Fetch, Probed, Request, Retrieved};
use crate::error::Error;
#[cfg(all(feature = "http", feature = "ftp"))]
use crate::policy::Host;
#[cfg(feature = "cli")]
use crate::policy::resolver::question_of;
use crate::policy::{Policy, Scheme, Target};
#[cfg(feature = "file")]
use crate::report::Provenance;
#[cfg(feature = "ftp")]
use crate::report::{Detail, Retry, Setting};
use crate::report::{Reason, Refusal};

/// Retrieves what the policy allows: judges the URL, and asks by its scheme. What needs a feature that is not built in
/// is refused with [`Reason::UnsupportedScheme`].
pub(super) struct System {
    policy: Arc<Policy>,
    #[cfg(feature = "file")]
    roots: Roots,
    #[cfg(feature = "ftp")]
    names: Arc<dyn Names>,
    #[cfg(feature = "http")]
    servers: Arc<Servers>,
}

impl System {
    pub(super) fn new(
        policy: Arc<Policy>,
        #[cfg(feature = "ftp")] names: Arc<dyn Names>,
        #[cfg(feature = "http")] servers: Arc<Servers>,
    ) -> Result<Self, Error> {
        Ok(Self {
            #[cfg(feature = "file")]
            roots: Roots::open(&policy.file_roots)?,
            policy,
            #[cfg(feature = "ftp")]
            names,
            #[cfg(feature = "http")]
            servers,
        })
    }

    #[cfg(feature = "http")]
    fn http<'r>(&'r self, request: &'r Request, allowance: Allowance) -> Http<'r> {
        Http {
            policy: &self.policy,
            servers: &self.servers,
            request,
            allowance,
        }
    }

    fn allowance(&self, request: &Request) -> Result<Allowance, Refusal> {
        let allowance = Allowance::starting_now(self.policy.limits.timeout, request.deadline);
        allowance.remaining()?;
        Ok(allowance)
    }

    #[cfg(feature = "ftp")]
    fn over_ftp(
        &self,
        target: &Target,
        allowance: Allowance,
    ) -> Result<(Retrieved, Option<IpAddr>), Refusal> {
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
        self.servers.may_ask(&host, port)?;
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
        let peer = socket.peer_addr().ok().map(|peer| peer.ip());
        let body = ftp::retrieve(&self.policy, target, socket, allowance)?;
        Ok((retrieved(target, body), peer))
    }

    /// Notes what came otherwise than by http.
    #[cfg(feature = "http")]
    #[cfg_attr(not(any(feature = "ftp", feature = "file")), allow(unused))]
    fn record(&self, answer: &mut Retrieved, address: Option<IpAddr>) {
        if let Some(recorder) = self.servers.recorder() {
            answer.record = recorder.content(answer, address);
        }
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
            self.servers.found_nobody(host, port, &failed);
        }
    }

    #[cfg(not(feature = "ftp"))]
    fn over_ftp(
        &self,
        target: &Target,
        _allowance: Allowance,
    ) -> Result<(Retrieved, Option<IpAddr>), Refusal> {
        Err(not_built_in(target))
    }
}

/// What came from a source that knows no media types. A cache counts the octets of a body, not what was allocated to
/// read it.
#[cfg(any(feature = "file", feature = "ftp"))]
fn retrieved(target: &Target, mut body: Vec<u8>) -> Retrieved {
    body.shrink_to_fit();
    let mut retrieved = Retrieved::new(target.public_url(), None, body);
    retrieved.at = Some(SystemTime::now());
    retrieved
}

#[cfg(not(all(feature = "file", feature = "http", feature = "ftp")))]
fn not_built_in(target: &Target) -> Refusal {
    let scheme = target.scheme().as_str();
    let detail = format!("this program was built without {scheme}:");
    Refusal::lasting(Reason::UnsupportedScheme, detail)
}

impl Fetch for System {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        #[cfg(feature = "cli")]
        if let Some(question) = question_of(&request.url) {
            let mut answer = resolver::ask(&self.policy, question, self.allowance(request)?)?;
            self.record(&mut answer, None);
            return Ok(answer);
        }
        let begun = Instant::now();
        let target = self.policy.judge_url(&request.url)?;
        let allowance = self.allowance(request)?;
        #[cfg_attr(not(feature = "http"), allow(unused))]
        let is_http = target.scheme().is_http();
        #[cfg_attr(not(feature = "http"), allow(unused))]
        let (mut answer, address) = match target.scheme() {
            #[cfg(feature = "http")]
            Scheme::Http | Scheme::Https => (self.http(request, allowance).retrieve(target)?, None),
            #[cfg(not(feature = "http"))]
            Scheme::Http | Scheme::Https => return Err(not_built_in(&target)),
            Scheme::Ftp => self.over_ftp(&target, allowance)?,
            #[cfg(not(feature = "file"))]
            Scheme::File => return Err(not_built_in(&target)),
            #[cfg(feature = "file")]
            Scheme::File => {
                let path = target.path().unwrap_or(std::path::Path::new(""));
                let body = self.roots.read(&self.policy, path, allowance)?;
                let mut answer = retrieved(&target, body);
                answer.from = Provenance::File;
                (answer, None)
            }
        };
        answer.elapsed = begun.elapsed();
        #[cfg(feature = "http")]
        if !is_http {
            self.record(&mut answer, address);
        }
        Ok(answer)
    }

    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        #[cfg(feature = "http")]
        {
            let target = self.policy.judge_url(&request.url)?;
            if target.scheme().is_http() {
                let allowance = self.allowance(request)?;
                return self.http(request, allowance).probe(&target);
            }
        }
        self.fetch(request).map(Probed::from)
    }
}
