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
mod whole;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "file")]
use self::file::Roots;
#[cfg(feature = "http")]
pub(crate) use self::servers::Servers;
use super::allowance::RequestAllowance;
#[cfg(feature = "ftp")]
use super::allowance::{FetchFailure, UnresponsiveScope, is_long};
#[cfg(feature = "http")]
use super::exchange::FetchMethod;
#[cfg(feature = "ftp")]
use super::names::NameLookups;
#[cfg(all(feature = "ftp", not(feature = "http")))]
use super::names::Names;
use super::request::{Fetch, Request, answer_by_fetching, just_now};
#[cfg(feature = "ftp")]
use crate::engine::policy::Host;
use crate::engine::policy::{Policy, Scheme, Target};
use crate::engine::report::{Detail, Provenance, Reason, Refusal, Setting};
use crate::engine::{Answer, Content, Mode, Need};
use crate::error::Error;

pub(super) struct System {
    policy: Arc<Policy>,
    #[cfg(feature = "file")]
    roots: Roots,
    #[cfg(feature = "ftp")]
    lookups: Arc<NameLookups>,
    #[cfg(feature = "http")]
    servers: Arc<Servers>,
}

impl System {
    pub(super) fn new(
        policy: Arc<Policy>,
        #[cfg(all(feature = "ftp", not(feature = "http")))] names: Arc<dyn Names>,
        #[cfg(feature = "http")] servers: Arc<Servers>,
    ) -> Result<Self, Error> {
        Ok(Self {
            #[cfg(feature = "file")]
            roots: Roots::open(&policy.file_roots)?,
            policy,
            #[cfg(all(feature = "ftp", feature = "http"))]
            lookups: Arc::clone(&servers.lookups),
            #[cfg(all(feature = "ftp", not(feature = "http")))]
            lookups: Arc::new(NameLookups::new(names)),
            #[cfg(feature = "http")]
            servers,
        })
    }

    fn allowance(&self, request: &Request) -> Result<RequestAllowance, Refusal> {
        let allowance =
            RequestAllowance::starting_now(self.policy.limits.timeout, request.deadline);
        allowance.remaining()?;
        Ok(allowance)
    }

    #[cfg(feature = "ftp")]
    fn over_ftp(
        &self,
        target: &Target,
        allowance: RequestAllowance,
        begun: Instant,
    ) -> Result<Content, Refusal> {
        if self.policy.proxy.is_some() {
            let detail =
                Detail::from("ftp: URLs cannot be retrieved through ").naming(Setting::Proxy);
            let detail = detail.then(", and a request without the proxy is not allowed");
            return Err(Refusal::lasting(Reason::UnsupportedScheme, detail));
        }
        let (Some(host), Some(port)) = (target.host(), target.port()) else {
            return Err(Refusal::lasting(
                Reason::BadUrl,
                "the URL contains no host name",
            ));
        };
        #[cfg(feature = "http")]
        if let Some(disk) = &self.servers.disk {
            disk.may_ask(&host, port)?;
        }
        #[cfg(feature = "http")]
        if let Some(hosts) = &self.servers.unresponsive {
            hosts.judge(&host.to_string(), port)?;
        }
        let policy = Some(&*self.policy);
        let found = self.lookups.addresses(policy, &host, port, allowance);
        let socket = found
            .map_err(FetchFailure::from)
            .and_then(|addresses| ftp::connect(target, &addresses, allowance))
            .map_err(|mut failed| {
                let is_late = matches!(failed.refusal.reason, Reason::Timeout | Reason::Deadline);
                if is_late && is_long(begun.elapsed(), self.policy.limits.timeout) {
                    failed.unresponsive = Some(UnresponsiveScope::Port);
                }
                #[cfg(feature = "http")]
                if let Some(disk) = &self.servers.disk {
                    disk.store_unresponsive(&host, port, &failed);
                }
                self.heed_host(&host, port, Some(&failed.refusal), begun);
                failed.into_refusal()
            })?;
        let peer = socket.peer_addr().ok().map(|peer| peer.ip());
        let body = ftp::retrieve(&self.policy, target, socket, allowance);
        self.heed_host(&host, port, body.as_ref().err(), begun);
        let body = body?;
        let url = target.public_url();
        let retrieved = just_now(url, Provenance::Network, body, begun);
        Ok(self.recorded(retrieved, peer))
    }

    /// Records the result of a retrieval over ftp, so that a host with too many time-outs gets no further requests.
    #[cfg(feature = "ftp")]
    #[cfg_attr(not(feature = "http"), allow(unused))]
    fn heed_host(&self, host: &Host, port: u16, refusal: Option<&Refusal>, begun: Instant) {
        #[cfg(feature = "http")]
        if let Some(hosts) = &self.servers.unresponsive {
            let failure = refusal.map(|refusal| refusal.reason);
            hosts.heed(&host.to_string(), port, failure, begun.elapsed());
        }
    }

    #[cfg_attr(not(feature = "http"), allow(unused))]
    fn recorded(&self, mut answer: Content, address: Option<IpAddr>) -> Content {
        #[cfg(feature = "http")]
        if let Some(recorder) = &self.servers.recorder {
            answer.origin.record = recorder.content(&answer, address);
        }
        answer
    }
}

#[cfg_attr(not(feature = "http"), allow(unused))]
impl Fetch for System {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        #[cfg(feature = "cli")]
        if let Need::Question {
            provider,
            name,
            url,
        } = &request.need
        {
            let question = (*provider, name.as_deref(), &**url);
            let answer = resolver::ask(&self.policy, question, self.allowance(request)?)?;
            return Ok(self.recorded(answer, None));
        }
        let begun = Instant::now();
        let target = self.policy.judge_url(request.url())?;
        let allowance = self.allowance(request)?;
        match target.scheme() {
            #[cfg(feature = "http")]
            Scheme::Http | Scheme::Https => {
                let found = self
                    .servers
                    .follow(request, target, FetchMethod::Whole, allowance);
                let (target, answer) = found?;
                let mut retrieved = answer.into_content(&target);
                retrieved.origin.elapsed = begun.elapsed();
                Ok(retrieved)
            }
            #[cfg(feature = "ftp")]
            Scheme::Ftp => self.over_ftp(&target, allowance, begun),
            #[cfg(feature = "file")]
            Scheme::File => {
                let path = target.path().unwrap_or(std::path::Path::new(""));
                let body = self.roots.read(&self.policy, path, allowance)?;
                let url = target.public_url();
                let retrieved = just_now(url, Provenance::File, body, begun);
                Ok(self.recorded(retrieved, None))
            }
            #[cfg(not(all(feature = "file", feature = "http", feature = "ftp")))]
            scheme => {
                let detail = format!(
                    "this program was built without support for {}: URLs",
                    scheme.as_str()
                );
                Err(Refusal::lasting(Reason::UnsupportedScheme, detail))
            }
        }
    }

    fn answer(&self, request: &Request, mode: Mode) -> Result<Answer, Refusal> {
        #[cfg(feature = "http")]
        if mode == Mode::Probe {
            let target = self.policy.judge_url(request.url())?;
            if target.scheme().is_http() {
                let allowance = self.allowance(request)?;
                let announced = self.servers.probe(request, &target, allowance);
                return announced.map(Answer::Announced);
            }
        }
        answer_by_fetching(self, request, mode)
    }
}
