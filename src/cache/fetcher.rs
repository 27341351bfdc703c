//! A cache in front of servers for users of the library, and whom it trusts.

use std::fs;
use std::sync::Arc;

use super::folder::CacheFolder;
use super::kept::Kept;
use super::semantics::Ignoring;
use crate::error::Error;
use crate::fetch::{Fetcher, Servers, SystemNames};
use crate::key::Key;
use crate::policy::Policy;

impl CacheFolder {
    /// A fetcher that asks the servers only for what this cache does not have, and keeps what a shared cache may keep
    /// (RFC 9111), lasting refusals included. The policy judges each kept answer again.
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

/// One run may believe what another does not: certificates, by hash, and the proxy, without its password.
pub(crate) fn trust(policy: &Policy) -> Result<String, Error> {
    let mut roots = match &policy.ca_file {
        Some(path) => {
            let file = format!("the CA file {}", path.display());
            let octets = fs::read(path).map_err(Error::cannot_read(file))?;
            Key::of(&octets).to_string()
        }
        None => "system".to_owned(),
    };
    // rustls-native-certs reads what these name in place of the system's.
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
