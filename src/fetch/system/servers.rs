//! One step of a retrieval over http: the cache, the request rate of archives, and one request with ureq and rustls.
//!
//! * ureq gets the addresses of every new connection from [`JudgedAddresses`], which checks them against the policy. A
//!   reused connection needs no check: its address was checked when it was made.
//! * Cookies, Referer, proxies from environment variables and `.netrc` are never used. `Authorization` is sent only for a URL
//!   that `--allow-userinfo` permits.
//! * A body is complete if the status is 200 or 203 and its end is *marked*, by Content-Length or by the last chunk. A body that ends
//!   only because the connection was closed may be truncated. It is refused, unless it is a picture that marks its own end
//!   (`mime::picture_end`). A Transfer-Encoding other than a single `chunked` with HTTP/1.1 is refused: RFC 9112 §6.1 allows
//!   others, but ureq does not decode them.
//! * `fetch::response_head` normalises odd header fields before ureq parses them.
//! * Only gzip is requested as content coding. `fetch::coding` describes how others are handled. `--max-body` limits the
//!   decoded content, while it is being read.
//! * With a proxy, https uses CONNECT, and http requests are sent in absolute form (`fetch::connection`). The proxy resolves
//!   names, so only addresses in the URL itself can be checked.
//! * If a connection breaks before the response, the request is sent once more on a new connection, because servers close idle
//!   connections at any time.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ureq::http::{self, Uri, header};
use ureq::tls::Certificate;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Agent, Body};

use super::http_body::{read_to_end, whole_body};
use crate::engine::policy::{Host, Policy, Scheme, Target};
use crate::engine::report::{Reason, Refusal};
use crate::error::{Error, unpoisoned};
use crate::fetch::agent::{agent, broke, certificates, idle_age, is_of_tls, system_roots};
use crate::fetch::allowance::{FetchFailure, RequestAllowance, UnresponsiveScope, is_long};
use crate::fetch::connection::{NoConnection, basic};
use crate::fetch::exchange::{
    ExchangeRequest, FetchMethod, FetchResponse, RequestPurpose, ResponseCache, ResponseSource,
    is_success, now,
};
use crate::fetch::gate::IsStopped;
use crate::fetch::names::{NameLookups, Names};
use crate::fetch::pace::Pace;
use crate::fetch::tap::{self, ExchangeTap, Recorder};
use crate::fetch::unresponsive::Unresponsive;

/// Maximum number of hosts whose addresses are remembered. If there are more, the addresses of all hosts are forgotten, to
/// limit the memory.
const MOST_HOSTS: usize = 10_000;

/// Maximum number of addresses remembered for a host: one more than a cache stores, so that the cache can detect an excess.
const MOST_ADDRESSES: usize = 65;

/// Limits for the body of a redirect or an error, in bytes and time. The content is not used; it is read only to record it.
const LINGERING: (u64, Duration) = (1 << 20, Duration::from_secs(5));

type Resolved = Arc<Mutex<HashMap<(String, u16), Vec<IpAddr>>>>;

pub(crate) struct Servers {
    pub(crate) disk: Option<Box<dyn ResponseCache>>,
    pub(crate) pace: Pace,
    pub(crate) is_stopped: IsStopped,
    /// Counts time-outs of hosts in a run that ends, so that a host that does not respond gets no further requests. `None` in a
    /// service, which runs for months and must try such a host again.
    pub(crate) unresponsive: Option<Unresponsive>,
    pub(super) policy: Arc<Policy>,
    pub(super) recorder: Option<Arc<dyn Recorder>>,
    pub(super) lookups: Arc<NameLookups>,
    resolver: JudgedAddresses,
    extra_roots: Vec<Certificate<'static>>,
    /// Clients without and with TLS certificates. Each is built at its first use, because reading the system's certificates
    /// takes milliseconds.
    plain: OnceLock<Agent>,
    secure: OnceLock<Agent>,
}

impl Servers {
    pub(crate) fn new(
        policy: &Arc<Policy>,
        names: Arc<dyn Names>,
        recorder: Option<Arc<dyn Recorder>>,
    ) -> Result<Self, Error> {
        let lookups = Arc::new(NameLookups::new(names));
        Ok(Self {
            disk: None,
            pace: Pace::default(),
            is_stopped: Arc::new(|| false),
            unresponsive: None,
            policy: Arc::clone(policy),
            recorder,
            lookups: Arc::clone(&lookups),
            resolver: JudgedAddresses {
                policy: Arc::clone(policy),
                lookups,
                found: Arc::default(),
            },
            extra_roots: certificates(policy)?,
            plain: OnceLock::new(),
            secure: OnceLock::new(),
        })
    }

    pub(crate) fn exchange(
        &self,
        asked: &ExchangeRequest<'_>,
    ) -> Result<FetchResponse, FetchFailure> {
        let Some(disk) = &self.disk else {
            return self.ask(asked);
        };
        let mut answer = disk.answer(asked, &|asked| self.ask(asked))?;
        if let (Some(recorder), ResponseSource::Kept { .. }) = (&self.recorder, &answer.source) {
            answer.recorded = recorder.kept(asked, &answer);
        }
        Ok(answer)
    }

    fn ask(&self, asked: &ExchangeRequest<'_>) -> Result<FetchResponse, FetchFailure> {
        if asked.whose != RequestPurpose::Source {
            self.pace
                .turn(asked.whose, asked.allowance, &*self.is_stopped)?;
            // The request has waited until the rate limit of the archive allowed it. The time limit begins now, so that waiting
            // does not count.
            let timeout = self.policy.limits.timeout;
            let begun = Instant::now();
            let given = self.over_wire(&ExchangeRequest {
                allowance: asked.allowance.at_most(timeout),
                ..*asked
            });
            let patience = timeout.min(self.policy.limits.deadline);
            self.pace.heed(&given, begun.elapsed(), patience);
            return given;
        }
        let (Some(hosts), Some(host)) = (&self.unresponsive, asked.target.host()) else {
            return self.over_wire(asked);
        };
        let (host, port) = (host.to_string(), asked.target.port().unwrap_or_default());
        hosts.judge(&host, port)?;
        let begun = Instant::now();
        let given = self.over_wire(asked);
        let failure = given.as_ref().err().map(|failed| failed.refusal.reason);
        hosts.heed(&host, port, failure, begun.elapsed());
        given
    }

    fn over_wire(&self, asked: &ExchangeRequest<'_>) -> Result<FetchResponse, FetchFailure> {
        let (response, listening) = self.request(asked)?;
        let status = response.status().as_u16();
        if let (407, Some(proxy)) = (status, &self.policy.proxy) {
            // The status 407 comes from the proxy and not from the server (RFC 9110 §15.5.8). It is therefore not
            // recorded, and is reported as a failed connection. For https, a CONNECT with a 407 fails with the same
            // error.
            listening.forget();
            let place = proxy.place();
            let what =
                "requires a login (status 407); check the user name and password of the proxy";
            let detail = format!("the proxy {place} {what}");
            return Err(Refusal::temporary(Reason::ConnectionFailed, detail).into());
        }
        let headers = response.headers().clone();
        let body = match asked.how {
            FetchMethod::Whole if is_success(status) => {
                match whole_body(&self.policy, response, asked.allowance) {
                    Ok(body) => Bytes::from(body),
                    Err(refusal) => {
                        listening.finish(Some(refusal.reason));
                        return Err(refusal.into());
                    }
                }
            }
            // The recording of a redirect or an error contains its body, too, because it is evidence.
            FetchMethod::Whole if tap::is_recorded() => {
                let (longest, time) = LINGERING;
                listening.linger(time);
                read_to_end(response, longest, asked.allowance.at_most(time));
                Bytes::new()
            }
            _ => Bytes::new(),
        };
        Ok(FetchResponse {
            status,
            at: now(),
            headers,
            body,
            source: self.source(asked.target),
            recorded: listening.finish(None),
        })
    }

    fn request(
        &self,
        asked: &ExchangeRequest<'_>,
    ) -> Result<(http::Response<Body>, ExchangeTap), FetchFailure> {
        let (target, allowance) = (asked.target, asked.allowance);
        let agent = self.agent(target.scheme());
        let url = target.request_url();
        let mut tries = 0;
        loop {
            tries += 1;
            let builder = match asked.how {
                FetchMethod::Whole | FetchMethod::Unread => agent.get(&url),
                FetchMethod::Head => agent.head(&url),
            };
            let mut request = builder
                .config()
                .timeout_global(Some(allowance.remaining()?))
                .max_idle_age(idle_age(tries))
                .build()
                .header(header::ACCEPT, asked.accept)
                .header(header::ACCEPT_ENCODING, "gzip");
            for (name, value) in asked.more {
                request = request.header(name, value);
            }
            if let Some((user, password)) = target.userinfo() {
                request = request.header(header::AUTHORIZATION, basic(&user, &password));
            }
            let listening = ExchangeTap::begin(self.recorder.as_deref(), asked);
            match request.call() {
                Ok(response) => return Ok((response, listening)),
                Err(ureq::Error::Io(why)) if tries == 1 && broke(&why) => {}
                Err(error) => {
                    let failed = failed(error, &self.policy, allowance);
                    listening.finish(Some(failed.refusal.reason));
                    return Err(failed);
                }
            }
        }
    }

    fn agent(&self, scheme: Scheme) -> &Agent {
        let made = |roots: &[_]| agent(&self.policy, roots, None, self.resolver.clone());
        if scheme == Scheme::Https || self.policy.proxy.is_some() {
            let roots = || system_roots(&self.extra_roots);
            return self.secure.get_or_init(|| made(&roots()));
        }
        self.plain.get_or_init(|| made(&[]))
    }

    fn source(&self, target: &Target) -> ResponseSource {
        if self.policy.proxy.is_some() {
            return ResponseSource::Proxy;
        }
        let (Some(host), Some(port)) = (target.host(), target.port()) else {
            return ResponseSource::Server(Vec::new());
        };
        let found = unpoisoned(self.resolver.found.lock());
        let addresses = found.get(&(host.to_string(), port));
        ResponseSource::Server(addresses.cloned().unwrap_or_default())
    }
}

#[derive(Clone, Debug)]
struct JudgedAddresses {
    policy: Arc<Policy>,
    lookups: Arc<NameLookups>,
    found: Resolved,
}

impl Resolver for JudgedAddresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let refused = |refusal: Refusal| ureq::Error::Other(Box::new(refusal));
        let (host, port) = host_and_port(uri).ok_or(ureq::Error::HostNotFound)?;
        let allowance = RequestAllowance::of(*timeout.after);
        // If a proxy is configured, ureq resolves only the name of the proxy here, never that of the server. The policy does
        // not restrict the address of the proxy.
        let policy = config.proxy().is_none().then_some(&*self.policy);
        let addresses = self
            .lookups
            .addresses(policy, &host, port, allowance)
            .map_err(refused)?;
        let mut found = unpoisoned(self.found.lock());
        if found.len() >= MOST_HOSTS {
            found.clear();
        }
        // Remembers from which addresses a response of this host can come. Addresses of earlier lookups are kept,
        // because a connection to one of them may still be in use.
        let those = found.entry((host.to_string(), port)).or_default();
        for address in addresses.iter().map(SocketAddr::ip) {
            if those.len() < MOST_ADDRESSES && !those.contains(&address) {
                those.push(address);
            }
        }
        drop(found);
        let mut resolved = self.empty();
        // ureq's array has 16 places and panics if more addresses are added.
        for address in addresses.into_iter().take(16) {
            resolved.push(address);
        }
        Ok(resolved)
    }
}

fn host_and_port(uri: &Uri) -> Option<(Host, u16)> {
    let scheme = Scheme::from_name(uri.scheme_str()?.as_bytes())?;
    let port = uri.port_u16().or(scheme.default_port())?;
    Some((Host::parse(uri.host()?)?, port))
}

fn failed(error: ureq::Error, policy: &Policy, allowance: RequestAllowance) -> FetchFailure {
    // With a proxy, a time-out can be a failure on the way to the proxy. It does not show that the server is unreachable.
    let is_direct = policy.proxy.is_none();
    if let ureq::Error::Other(inner) = &error
        && let Some(NoConnection { elapsed, .. }) = inner.downcast_ref()
    {
        let is_long = is_long(*elapsed, policy.limits.timeout);
        return FetchFailure {
            refusal: allowance.overrun(),
            unresponsive: (is_direct && is_long).then_some(UnresponsiveScope::Port),
        };
    }
    let is_refused =
        matches!(&error, ureq::Error::Io(why) if why.kind() == io::ErrorKind::ConnectionRefused);
    let mut failed = FetchFailure::from(refusal_of(error, allowance));
    if is_refused {
        failed.unresponsive = Some(UnresponsiveScope::Port);
    }
    if let Some(proxy) = &policy.proxy {
        failed.unresponsive = None;
        // With a proxy, ureq resolves only the name of the proxy and connects only to it. So the proxy caused the failure, and
        // the message names it.
        let reason = failed.refusal.reason;
        if matches!(
            reason,
            Reason::ConnectionFailed | Reason::NameNotFound | Reason::NameServerFailed
        ) {
            let detail = format!("the proxy {}: {}", proxy.place(), failed.refusal.detail);
            failed.refusal = Refusal::temporary(Reason::ConnectionFailed, detail);
        }
    }
    failed
}

fn refusal_of(error: ureq::Error, allowance: RequestAllowance) -> Refusal {
    use ureq::Error as Trouble;
    let detail = error.to_string();
    match error {
        Trouble::Other(inner) => match inner.downcast::<Refusal>() {
            Ok(refusal) => match refusal.reason {
                // Name resolution only had the remaining time, so its error does not show which limit has ended.
                // `overrun` determines whether it was `--timeout` or the deadline of the message.
                Reason::Timeout | Reason::Deadline => allowance.overrun(),
                _ => *refusal,
            },
            Err(_) => Refusal::lasting(Reason::BadResponse, detail),
        },
        Trouble::Timeout(_) => allowance.overrun(),
        Trouble::HostNotFound => Refusal::lasting(Reason::NameNotFound, detail),
        Trouble::Tls(_) | Trouble::Rustls(_) | Trouble::Pem(_) | Trouble::TlsRequired => {
            Refusal::lasting(Reason::TlsFailed, detail)
        }
        Trouble::Io(why) => match why.kind() {
            _ if is_of_tls(&why) => Refusal::lasting(Reason::TlsFailed, why.to_string()),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => allowance.overrun(),
            _ => Refusal::temporary(Reason::ConnectionFailed, why.to_string()),
        },
        Trouble::ConnectionFailed | Trouble::ConnectProxyFailed(_) => {
            Refusal::temporary(Reason::ConnectionFailed, detail)
        }
        Trouble::BadUri(_) | Trouble::Http(_) => Refusal::lasting(Reason::BadUrl, detail),
        _ => Refusal::lasting(Reason::BadResponse, detail),
    }
}
