//! http and https (RFC 9110, 9112) by ureq and rustls; only this file, `agent`, which connects,
//! `http_body`, which reads what is whole, and `direct` know either.
//!
//! * What is asked is [`Target::request_url`]: the host that was judged. ureq finds the addresses
//!   of every connection through [`Judged`], which judges them; a pooled connection was judged
//!   when it was made.
//! * No cookies, no Referer, no environment proxies, no `.netrc`. `Authorization` only when
//!   `--allow-userinfo` let credentials through, and never to where a redirect leads.
//! * Redirects (301, 302, 303, 307, 308) are followed here, one judged request each.
//! * Whole means: 200, and the end is *marked*, by Content-Length or by the last chunk. A body that
//!   ends only because the connection does may have been cut anywhere and is refused; so is any
//!   Transfer-Encoding but one `chunked` under HTTP/1.1, which RFC 9112 §6.1 allows and ureq does not
//!   undo.
//! * gzip is the only content coding asked for and understood, once; `--max-body` counts what comes
//!   out of it, while it comes.
//! * One time-out runs from before the lookup to the last octet.
//! * With a proxy, every URL, http ones too, goes through CONNECT; names are then resolved by
//!   the proxy, so only addresses that stand in the URL itself can be judged.
//! * A connection that breaks before the answer is tried once more: servers close idle
//!   connections at any time, also at the moment when they are used again.

use std::io;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use ureq::http::{HeaderMap, Response, Uri, header};
use ureq::tls::Certificate;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::{Agent, Body};

use super::http_body::{Coding, content_coding, whole_body};
use crate::error::Error;
use crate::fetch::Probed;
use crate::fetch::agent::{agent, broke, certificates, proxy, system_roots};
use crate::fetch::allowance::Allowance;
use crate::fetch::names::{self, Names};
use crate::policy::{Host, Policy, Scheme, Target};
use crate::report::{Reason, Refusal};

/// Connections, made when they are first needed: reading the system's certificates costs
/// milliseconds that a run without https does not pay.
#[derive(Debug)]
pub(super) struct Client {
    policy: Arc<Policy>,
    names: Arc<dyn Names>,
    extra_roots: Vec<Certificate<'static>>,
    plain: OnceLock<Agent>,
    secure: OnceLock<Agent>,
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Method {
    Get,
    Head,
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) url: String,
    pub(super) media_type: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Client {
    /// Reads `--ca-file` and checks the proxy; nothing else is touched yet.
    pub(super) fn new(policy: Arc<Policy>, names: Arc<dyn Names>) -> Result<Self, Error> {
        let extra_roots = match &policy.ca_file {
            Some(path) => certificates(path)?,
            None => Vec::new(),
        };
        // Checked now, so that a mistake stops the run and not only the first retrieval.
        proxy(&policy)?;
        Ok(Self {
            policy,
            names,
            extra_roots,
            plain: OnceLock::new(),
            secure: OnceLock::new(),
        })
    }

    /// The whole body, after redirects, or why not.
    pub(super) fn retrieve(
        &self,
        target: Target,
        accept: Option<&str>,
        allowance: Allowance,
    ) -> Result<Answer, Refusal> {
        let (target, response) = self.follow(target, accept, Method::Get, allowance)?;
        let media_type = text(response.headers(), header::CONTENT_TYPE);
        let body = whole_body(&self.policy, response, allowance)?;
        Ok(Answer {
            url: target.public_url(),
            media_type,
            body,
        })
    }

    /// What the server says of the content: HEAD, and GET where a server has no answer to that. The
    /// content of a GET is not read; its connection is closed.
    pub(super) fn probe(
        &self,
        target: &Target,
        accept: Option<&str>,
        allowance: Allowance,
    ) -> Result<Probed, Refusal> {
        let (method, answer) = match self.follow(target.clone(), accept, Method::Head, allowance) {
            Err(refusal) if matches!(refusal.reason, Reason::HttpStatus | Reason::BadResponse) => {
                let answer = self.follow(target.clone(), accept, Method::Get, allowance);
                ("GET", answer)
            }
            answer => ("HEAD", answer),
        };
        let (target, response) = answer?;
        let headers = response.headers();
        let is_plain = matches!(content_coding(headers)?, Coding::Identity);
        let length = text(headers, header::CONTENT_LENGTH)
            .filter(|_| is_plain)
            .and_then(|length| length.parse().ok());
        self.policy.judge_size(length.unwrap_or(0))?;
        Ok(Probed {
            method,
            url: target.public_url(),
            media_type: text(headers, header::CONTENT_TYPE),
            length,
        })
    }

    /// The head of the answer that is a 200, and who gave it after redirects.
    fn follow(
        &self,
        target: Target,
        accept: Option<&str>,
        method: Method,
        allowance: Allowance,
    ) -> Result<(Target, Response<Body>), Refusal> {
        let mut target = target;
        let mut asked = vec![target.request_url()];
        loop {
            let response = self.ask(&target, accept, method, allowance)?;
            let status = response.status().as_u16();
            match status {
                200 => return Ok((target, response)),
                301 | 302 | 303 | 307 | 308 => {
                    let location = text(response.headers(), header::LOCATION).ok_or_else(|| {
                        Refusal::lasting(
                            Reason::RedirectRefused,
                            format!("{status} without a Location that can be read"),
                        )
                    })?;
                    target = self.policy.judge_redirect(&target, &location)?;
                    let next = target.request_url();
                    let allowed = self.policy.limits.redirects as usize;
                    if asked.len() > allowed {
                        return Err(Refusal::lasting(
                            Reason::TooManyRedirects,
                            format!("more than {allowed} redirects"),
                        ));
                    }
                    if asked.contains(&next) {
                        return Err(Refusal::lasting(
                            Reason::TooManyRedirects,
                            "the redirects lead in a circle",
                        ));
                    }
                    asked.push(next);
                }
                _ => return Err(not_200(status)),
            }
        }
    }

    /// One request, one answer's head.
    fn ask(
        &self,
        target: &Target,
        accept: Option<&str>,
        method: Method,
        allowance: Allowance,
    ) -> Result<Response<Body>, Refusal> {
        let agent = self.agent(target.scheme());
        let url = target.request_url();
        let mut tries = 0;
        loop {
            tries += 1;
            let request = match method {
                Method::Get => agent.get(&url),
                Method::Head => agent.head(&url),
            };
            let mut request = request
                .config()
                .timeout_global(Some(allowance.remaining()?))
                .build()
                .header(header::ACCEPT, acceptable(accept))
                .header(header::ACCEPT_ENCODING, "gzip");
            if let Some(credentials) = basic(target) {
                request = request.header(header::AUTHORIZATION, credentials);
            }
            match request.call() {
                Ok(response) => return Ok(response),
                Err(ureq::Error::Io(why)) if tries == 1 && broke(&why) => {}
                Err(error) => return Err(failed(error, allowance)),
            }
        }
    }

    fn agent(&self, scheme: Scheme) -> &Agent {
        if scheme == Scheme::Https || self.policy.proxy.is_some() {
            self.secure.get_or_init(|| {
                let mut roots = system_roots();
                roots.extend_from_slice(&self.extra_roots);
                self.make_agent(&roots)
            })
        } else {
            self.plain.get_or_init(|| self.make_agent(&[]))
        }
    }

    fn make_agent(&self, roots: &[Certificate<'static>]) -> Agent {
        let resolver = Judged {
            policy: Arc::clone(&self.policy),
            names: Arc::clone(&self.names),
        };
        agent(&self.policy, roots, resolver)
    }
}

/// Finds the addresses of each connection and judges every one.
#[derive(Debug)]
struct Judged {
    policy: Arc<Policy>,
    names: Arc<dyn Names>,
}

impl Resolver for Judged {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let refused = |refusal| ureq::Error::Other(Box::new(Carried(refusal)));
        let (host, port) = host_and_port(uri).ok_or(ureq::Error::HostNotFound)?;
        let allowance = Allowance::of(*timeout.after);
        // ureq asks for the proxy's own addresses here, and never for what lies behind it.
        let addresses = if config.proxy().is_some() {
            names::unjudged(&self.names, &host, port, allowance)
        } else {
            names::judged(&self.policy, &self.names, &host, port, allowance)
        }
        .map_err(refused)?;
        let mut resolved = self.empty();
        // ureq keeps sixteen; its array panics at the seventeenth.
        for address in addresses.into_iter().take(16) {
            resolved.push(address);
        }
        Ok(resolved)
    }
}

/// The host of the URI that ureq is about to connect to, understood as the policy understood it.
fn host_and_port(uri: &Uri) -> Option<(Host, u16)> {
    let scheme = Scheme::from_name(uri.scheme_str()?.as_bytes())?;
    let port = uri.port_u16().or(scheme.default_port())?;
    Some((Host::parse(uri.host()?)?, port))
}

/// A refusal on its way through ureq.
#[derive(Debug)]
struct Carried(Refusal);

impl std::fmt::Display for Carried {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.detail)
    }
}

impl std::error::Error for Carried {}

/// The declared type, if it can stand in a header field; else anything.
fn acceptable(accept: Option<&str>) -> &str {
    accept
        .filter(|wanted| wanted.contains('/') && wanted.bytes().all(|byte| byte.is_ascii_graphic()))
        .unwrap_or("*/*")
}

fn basic(target: &Target) -> Option<String> {
    let (user, password) = target.userinfo()?;
    let pair = [user.as_slice(), b":", password.as_slice()].concat();
    Some(format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode(pair)
    ))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    // Not to_str(): a Location in raw UTF-8 is common, and no reason to give up.
    let value = std::str::from_utf8(headers.get(name)?.as_bytes()).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn not_200(status: u16) -> Refusal {
    let detail = format!("the server answered {status}");
    if matches!(status, 408 | 429 | 500..=599) {
        Refusal::temporary(Reason::HttpStatus, detail)
    } else {
        Refusal::lasting(Reason::HttpStatus, detail)
    }
}

/// Why there is no answer.
fn failed(error: ureq::Error, allowance: Allowance) -> Refusal {
    use ureq::Error as Trouble;
    let detail = error.to_string();
    match error {
        Trouble::Other(inner) => match inner.downcast::<Carried>() {
            Ok(carried) => match carried.0.reason {
                // The resolver knows how long it had, not which limit that was.
                Reason::Timeout | Reason::Deadline => allowance.overrun(),
                _ => carried.0,
            },
            Err(_) => Refusal::lasting(Reason::BadResponse, detail),
        },
        Trouble::Timeout(_) => allowance.overrun(),
        Trouble::HostNotFound => Refusal::lasting(Reason::NameNotFound, detail),
        Trouble::Tls(_) | Trouble::Rustls(_) | Trouble::Pem(_) | Trouble::TlsRequired => {
            Refusal::lasting(Reason::TlsFailed, detail)
        }
        Trouble::Io(why) => {
            let tls = why
                .get_ref()
                .is_some_and(|inner| inner.is::<rustls::Error>());
            match why.kind() {
                _ if tls => Refusal::lasting(Reason::TlsFailed, why.to_string()),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => allowance.overrun(),
                _ => Refusal::temporary(Reason::ConnectionFailed, why.to_string()),
            }
        }
        Trouble::ConnectionFailed | Trouble::ConnectProxyFailed(_) => {
            Refusal::temporary(Reason::ConnectionFailed, detail)
        }
        Trouble::BadUri(_) | Trouble::Http(_) => Refusal::lasting(Reason::BadUrl, detail),
        _ => Refusal::lasting(Reason::BadResponse, detail),
    }
}
