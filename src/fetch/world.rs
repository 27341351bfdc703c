//! The real world: http, https, ftp and file, each behind the policy (docs/design.md, "Retrieval").

use std::sync::Arc;
use std::time::Instant;

use super::allowance::Allowance;
use super::file::Roots;
use super::http::Client;
use super::names::{self, Names, SystemNames};
use super::{Fetch, Probed, Request, Retrieved, ftp};
use crate::error::Error;
use crate::policy::{Policy, Scheme};
use crate::report::{Reason, Refusal};

/// Retrieves what the policy allows. Making one opens the file roots and reads `--ca-file`;
/// everything about networks waits for the first retrieval that needs it.
#[derive(Debug)]
pub struct World {
    policy: Arc<Policy>,
    names: Arc<dyn Names>,
    roots: Roots,
    http: Client,
}

impl World {
    /// The world with the system's name resolver.
    ///
    /// # Errors
    /// [`Error::Read`] for a file root or a CA file that cannot be opened, [`Error::Usage`] for a
    /// CA file without certificates or a proxy that cannot be used.
    pub fn new(policy: &Policy) -> Result<Self, Error> {
        Self::with_names(policy, Arc::new(SystemNames))
    }

    /// The world with another idea of what names resolve to.
    ///
    /// # Errors
    /// As [`World::new`].
    pub fn with_names(policy: &Policy, names: Arc<dyn Names>) -> Result<Self, Error> {
        let policy = Arc::new(policy.clone());
        Ok(Self {
            roots: Roots::open(&policy)?,
            http: Client::new(Arc::clone(&policy), Arc::clone(&names))?,
            names,
            policy,
        })
    }
}

impl Fetch for World {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        let begun = Instant::now();
        let target = self.policy.judge_url(&request.url)?;
        let allowance = Allowance::starting_now(self.policy.limits.timeout, request.deadline);
        allowance.remaining()?;
        let (url, media_type, mut body) = match target.scheme() {
            Scheme::Http | Scheme::Https => {
                let answer = self
                    .http
                    .retrieve(target, request.accept.as_deref(), allowance)?;
                (answer.url, answer.media_type, answer.body)
            }
            Scheme::Ftp => {
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
                let body = ftp::retrieve(&self.policy, &target, &addresses, allowance)?;
                (target.public_url(), None, body)
            }
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
        let target = self.policy.judge_url(&request.url)?;
        if !matches!(target.scheme(), Scheme::Http | Scheme::Https) {
            return self.fetch(request).map(Probed::from);
        }
        let allowance = Allowance::starting_now(self.policy.limits.timeout, request.deadline);
        allowance.remaining()?;
        self.http
            .probe(&target, request.accept.as_deref(), allowance)
    }
}
