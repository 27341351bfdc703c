//! http, https, ftp and file as this system reaches them, each behind the policy.

mod file;
#[cfg(feature = "ftp")]
mod ftp;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_body;

use std::sync::Arc;
use std::time::Instant;

use self::file::Roots;
#[cfg(feature = "http")]
use self::http::Client;
use super::allowance::Allowance;
#[cfg(feature = "ftp")]
use super::names;
#[cfg(any(feature = "http", feature = "ftp"))]
use super::names::{Names, SystemNames};
use super::{Fetch, Probed, Request, Retrieved};
use crate::error::Error;
use crate::policy::{Policy, Scheme, Target};
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
            http: Client::new(Arc::clone(&policy), Arc::clone(&names))?,
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
                "ftp does not go through --proxy, and must not go around it",
            ));
        }
        let (Some(host), Some(port)) = (target.host(), target.port()) else {
            return Err(Refusal::lasting(Reason::BadUrl, "the URL names no host"));
        };
        let addresses = names::judged(&self.policy, &self.names, &host, port, allowance)?;
        let body = ftp::retrieve(&self.policy, target, &addresses, allowance)?;
        Ok((target.public_url(), None, body))
    }

    #[cfg(not(feature = "ftp"))]
    fn over_ftp(&self, target: &Target, _allowance: Allowance) -> Result<Answer, Refusal> {
        Err(not_built_in(target))
    }
}

/// The URL that answered, its Content-Type and the body.
type Answer = (String, Option<String>, Vec<u8>);

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
        let (url, media_type, mut body) = match target.scheme() {
            Scheme::Http | Scheme::Https => self.over_http(target, request, allowance)?,
            Scheme::Ftp => self.over_ftp(&target, allowance)?,
            Scheme::File => {
                let path = target.path().unwrap_or(std::path::Path::new(""));
                let body = self.roots.read(&self.policy, path, allowance)?;
                (target.public_url(), None, body)
            }
        };
        // A cache counts the octets of a body, not what was allocated to read it.
        body.shrink_to_fit();
        Ok(Retrieved {
            url,
            media_type,
            body: body.into(),
            elapsed: begun.elapsed(),
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
