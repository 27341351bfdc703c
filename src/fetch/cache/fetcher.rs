//! A fetcher with a cache, for users of the library, and the identity of the servers that a run trusts.

use std::fs;
use std::sync::Arc;

use super::folder::CacheFolder;
use super::kept::KeptResponses;
use super::semantics::IgnoredDirectives;
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::fetch::{Fetcher, Servers, SystemNames};
use crate::key::Key;

impl CacheFolder {
    /// Creates a fetcher that sends a request only if this cache has no fresh response. It stores the responses that a shared
    /// cache may store (RFC 9111), including 404 and 410. The policy is applied to stored responses, too.
    ///
    /// # Errors
    /// The errors of [`Fetcher::new`].
    pub fn fetcher(self: &Arc<Self>, policy: impl Into<Arc<Policy>>) -> Result<Fetcher, Error> {
        let policy = policy.into();
        let kept = KeptResponses {
            folder: Arc::clone(self),
            trust: trust(&policy)?,
            policy: Arc::clone(&policy),
            ignoring: IgnoredDirectives::Nothing,
            is_offline: false,
            behind: None,
        };
        let mut servers = Servers::new(&policy, Arc::new(SystemNames), None)?;
        servers.disk = Some(Box::new(kept));
        Fetcher::over(policy, Arc::new(servers))
    }
}

/// Returns a string that identifies the CA certificates, by hash, and the proxy, without its password. It is part of the key of
/// each entry, because one run may trust a server that another run does not.
pub(crate) fn trust(policy: &Policy) -> Result<String, Error> {
    let mut roots = match &policy.ca_file {
        Some(path) => {
            let file = format!("the CA file {}", path.display());
            let octets = fs::read(path).map_err(Error::cannot_read(file))?;
            Key::of(&octets).to_string()
        }
        None => "system".to_owned(),
    };
    // If these variables are set, rustls-native-certs reads the files that they name instead of the system's certificates. So
    // the paths and the files are part of the identity.
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        if let Some(path) = std::env::var_os(name) {
            let octets = fs::read(&path).unwrap_or_default();
            let named = [path.as_encoded_bytes(), b"\0", &octets].concat();
            roots.push_str(&format!(" {name}={}", Key::of(&named)));
        }
    }
    let way = policy.proxy.as_ref().map(|proxy| proxy.public_url());
    Ok(format!("{roots} {}", way.as_deref().unwrap_or("direct")))
}
