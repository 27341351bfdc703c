//! Whom a run trusts, as records say it: a server's certificate that one run believes may be a stranger's to another.

use std::fs;

use crate::disk::Key;
use crate::error::Error;
use crate::policy::Policy;

/// The system's certificates, wherever the environment says that they are, or those and a file with this hash; and the
/// proxy, without its password.
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
