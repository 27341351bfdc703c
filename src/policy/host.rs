//! Hosts, and patterns of hosts for `--allow-host` and `--deny-host`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// What `localhost` means, without asking anybody (RFC 6761 §6.3).
pub(super) const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Whether a name (lower case) is `localhost` or beneath it.
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// A host as the URL parser understood it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Host {
    /// A name, lower case and in ASCII (IDNA).
    Name(String),
    /// An address, whatever its spelling was: `127.1`, `0x7f.1` and `2130706433` are one.
    Address(IpAddr),
}

impl Host {
    /// The addresses that are known without a lookup: the address itself, or the two of
    /// `localhost`; none for any other name.
    #[must_use]
    pub fn known_addresses(&self) -> Option<Vec<IpAddr>> {
        match self {
            Self::Address(address) => Some(vec![*address]),
            Self::Name(name) if is_localhost(name) => Some(LOOPBACK.to_vec()),
            Self::Name(_) => None,
        }
    }

    /// Understands a host as it stands in a URL, IPv6 addresses in brackets.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match url::Host::parse(text).ok()? {
            url::Host::Domain(name) => Self::Name(name),
            url::Host::Ipv4(address) => Self::Address(address.into()),
            url::Host::Ipv6(address) => Self::Address(address.into()),
        })
    }

    pub(super) fn from_url(host: url::Host<&str>) -> Self {
        match host {
            url::Host::Domain(name) => Self::Name(name.to_ascii_lowercase()),
            url::Host::Ipv4(address) => Self::Address(address.into()),
            url::Host::Ipv6(address) => Self::Address(address.into()),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

/// An exact host, or `*.example.org`: every name beneath example.org, itself not included.
///
/// Case and a trailing dot are ignored; names may be given in Unicode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPattern {
    host: Host,
    reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    Exact,
    Beneath,
}

impl HostPattern {
    /// Whether the host falls under the pattern.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (&self.host, host) {
            (Host::Address(own), Host::Address(other)) => {
                own.to_canonical() == other.to_canonical()
            }
            (Host::Name(own), Host::Name(other)) => {
                let other = other.strip_suffix('.').unwrap_or(other);
                match self.reach {
                    Reach::Exact => own == other,
                    Reach::Beneath => other
                        .strip_suffix(own.as_str())
                        .and_then(|rest| rest.strip_suffix('.'))
                        .is_some_and(|label| !label.is_empty()),
                }
            }
            _ => false,
        }
    }
}

impl FromStr for HostPattern {
    type Err = String;

    /// Reads a pattern.
    ///
    /// # Errors
    /// A sentence when the text is no host and no `*.` with a name behind it.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a host such as www.example.org or *.example.org");
        let trimmed = text.trim();
        let (reach, name) = match trimmed.strip_prefix("*.") {
            Some(name) => (Reach::Beneath, name),
            None => (Reach::Exact, trimmed),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        // An address may come without its brackets.
        let host = match name.parse::<IpAddr>() {
            Ok(address) => Host::Address(address),
            Err(_) => Host::parse(name).ok_or_else(wrong)?,
        };
        match (&host, reach) {
            (Host::Address(_), Reach::Beneath) => Err(wrong()),
            (Host::Name(name), _) if name.is_empty() || name.contains('*') => Err(wrong()),
            _ => Ok(Self { host, reach }),
        }
    }
}
