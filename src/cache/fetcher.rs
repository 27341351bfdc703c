//! What retrieves with a cache in front of its servers, for programs that use the library.

use std::sync::Arc;

use super::{CacheFolder, Ignoring, Kept, trust};
use crate::error::Error;
use crate::fetch::{Fetcher, Servers, SystemNames};
use crate::policy::Policy;

impl CacheFolder {
    /// A fetcher that asks the servers only for what this cache does not have, and keeps what they allow a shared cache
    /// to keep (RFC 9111), refusals that last included. The policy is asked again of each answer that was kept.
    ///
    /// # Errors
    /// As [`Fetcher::new`].
    pub fn fetcher(self: &Arc<Self>, policy: impl Into<Arc<Policy>>) -> Result<Fetcher, Error> {
        let policy = policy.into();
        let kept = Kept {
            folder: Arc::clone(self),
            trust: trust(&policy)?,
            policy: Arc::clone(&policy),
            ignoring: Ignoring::Nothing,
            is_offline: false,
            behind: None,
        };
        let mut servers = Servers::new(&policy, Arc::new(SystemNames), None)?;
        servers.disk = Some(Box::new(kept));
        Fetcher::over(policy, Arc::new(servers))
    }
}
