//! `--allow-net`: IP networks.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// An IP network, such as `10.1.0.0/16`. A single address, such as `127.0.0.1`, is a network with one address.
///
/// ```
/// use embody::policy::IpNet;
///
/// let network: IpNet = "10.1.0.0/16".parse()?;
/// assert!(network.contains(&"10.1.2.3".parse().unwrap()));
/// let address: IpNet = "127.0.0.1".parse()?;
/// assert_eq!(address.to_string(), "127.0.0.1/32");
/// # Ok::<(), embody::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IpNet(ipnet::IpNet);

impl IpNet {
    /// Returns whether the network contains the address.
    pub fn contains(&self, address: &IpAddr) -> bool {
        self.0.contains(address)
    }
}

/// Parses a network or an address. An address with bits after its prefix (`10.1.2.3/8`) is an error, because the user may
/// have meant only this address.
impl FromStr for IpNet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |what: String| Error::Usage(what.into());
        let trimmed = text.trim();
        let network = trimmed
            .parse::<ipnet::IpNet>()
            .or_else(|_| trimmed.parse::<IpAddr>().map(ipnet::IpNet::from))
            .map_err(|_| {
                refused(format!(
                    "'{text}' is not a network such as 10.1.0.0/16 or fd00::/8, and not an address such as 127.0.0.1"
                ))
            })?;
        match network.trunc() {
            whole if whole == network => Ok(Self(network)),
            whole => Err(refused(format!(
                "'{text}' has bits set after its prefix; write {whole} for the network"
            ))),
        }
    }
}

impl From<IpAddr> for IpNet {
    fn from(address: IpAddr) -> Self {
        Self(address.into())
    }
}

impl fmt::Display for IpNet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_malformed_network_names_the_input() {
        for text in ["127.1", "10.0.0.0/33", "10.1.2.3/8", "localhost"] {
            let why = text.parse::<IpNet>().unwrap_err().to_string();
            assert!(why.contains(text), "{why}");
        }
    }
}
