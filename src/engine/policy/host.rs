//! Hosts, and the host patterns of `--allow-host` and `--deny-host`.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
pub(crate) use crate::link::server_url::Host;

/// Addresses of the name `localhost`, which is not looked up in the DNS (RFC 6761 §6.3).
pub(super) const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// Domains of local networks (RFC 6761, RFC 6762, RFC 8375, and `internal`, which ICANN reserved).
const OWN: [&str; 3] = [".local", ".home.arpa", ".internal"];

impl Host {
    /// Returns whether the name is valid only in a local network: it has no dot, or it is in a domain of local networks.
    pub(crate) fn is_own_name(&self) -> bool {
        let Self::Name(name) = self else { return false };
        let name = name.trim_end_matches('.');
        let is_own = !name.contains('.') || OWN.iter().any(|own| name.ends_with(own));
        is_own && !is_localhost(name)
    }

    #[cfg(any(feature = "cli", feature = "http", feature = "ftp", test))]
    pub(crate) fn known_addresses(&self) -> Option<Vec<IpAddr>> {
        match self {
            Self::Address(address) => Some(vec![*address]),
            Self::Name(name) if is_localhost(name) => Some(LOOPBACK.to_vec()),
            Self::Name(_) => None,
        }
    }
}

/// Returns the host, to count it in the statistics of a survey. Returns `None` if the text cannot be a host on the web: it is
/// empty, has spaces or other symbols, or is a name without a dot.
#[cfg(feature = "cli")]
pub(crate) fn countable(text: &str) -> Option<String> {
    let host = Host::parse(text)?;
    let is_named = match &host {
        Host::Address(_) => true,
        Host::Name(name) => {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            let has_dot = name.trim_end_matches('.').contains('.') && !name.starts_with('.');
            (has_dot || is_localhost(name)) && name.bytes().all(is_allowed)
        }
    };
    is_named.then(|| host.to_string())
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

/// Returns the IPv4 address to which an IPv6 address leads, if it is IPv4-mapped (RFC 4291 §2.5.5.2) or uses NAT64
/// (RFC 6052 §2.1). Returns other addresses unchanged.
fn reached(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => match six.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
            }
            _ => address.to_canonical(),
        },
        IpAddr::V4(_) => address,
    }
}

/// A pattern for hosts: an exact host, or `*.example.org` (also `.example.org`) for all names below example.org, but
/// not example.org itself.
///
/// Case and trailing dots are ignored. An IPv6 address that leads to an IPv4 address equals that address. With the
/// feature `url`, names may contain Unicode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HostPattern {
    host: Host,
    is_beneath: bool,
}

impl HostPattern {
    fn exactly(host: &Host) -> Self {
        let host = match host {
            Host::Address(address) => Host::Address(reached(*address)),
            Host::Name(name) => Host::Name(name.trim_end_matches('.').to_owned()),
        };
        let is_beneath = false;
        Self { host, is_beneath }
    }
}

impl FromStr for HostPattern {
    type Err = Error;

    /// # Errors
    /// [`Error::Usage`] if the text is neither a host nor `*.` followed by a name.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            let what = format!("'{text}' is not a host such as www.example.org or *.example.org");
            Error::Usage(what.into())
        };
        let trimmed = text.trim();
        let behind_star = trimmed.strip_prefix('*').unwrap_or(trimmed);
        let beneath = behind_star.strip_prefix('.');
        let is_beneath = beneath.is_some();
        let name = beneath.unwrap_or(trimmed).trim_end_matches('.');
        let host = match name.parse::<IpAddr>() {
            Ok(address) => Host::Address(address),
            Err(_) => Host::parse(name).ok_or_else(wrong)?,
        };
        let is_wrong = match &host {
            Host::Address(_) => is_beneath,
            Host::Name(name) => name.is_empty() || name.contains('*') || name.starts_with('.'),
        };
        if is_wrong {
            return Err(wrong());
        }
        Ok(Self { host, is_beneath })
    }
}

/// A set of patterns that is fast for large lists: a list of denied hosts can have a hundred thousand lines, and a
/// mail can link to as many hosts. Copies share the patterns.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct HostPatterns {
    patterns: Arc<HashSet<HostPattern>>,
    longest: usize,
}

/// Equal sets have the same text, although the order of a hash set differs from run to run.
impl fmt::Debug for HostPatterns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.patterns.iter().map(|pattern| format!("{pattern:?}"));
        let mut texts: Vec<String> = each.collect();
        texts.sort_unstable();
        formatter.debug_list().entries(texts).finish()
    }
}

impl HostPatterns {
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    #[cfg(feature = "cli")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &HostPattern> {
        self.patterns.iter()
    }

    pub(crate) fn matches(&self, host: &Host) -> bool {
        if self.patterns.contains(&HostPattern::exactly(host)) {
            return true;
        }
        let Host::Name(name) = host else {
            return false;
        };
        let name = name.trim_end_matches('.');
        // A name in untrusted mail can have any number of labels. Only suffixes that are not longer than the longest
        // pattern are looked up, because no longer suffix can match.
        let from = name.len().saturating_sub(self.longest + 1);
        let dots = name.bytes().enumerate().skip(from.max(1));
        dots.filter(|(_, byte)| *byte == b'.').any(|(dot, _)| {
            let above = &name[dot + 1..];
            self.patterns.contains(&HostPattern {
                host: Host::Name(above.to_owned()),
                is_beneath: true,
            })
        })
    }
}

impl Extend<HostPattern> for HostPatterns {
    fn extend<P: IntoIterator<Item = HostPattern>>(&mut self, patterns: P) {
        let known = Arc::make_mut(&mut self.patterns);
        for pattern in patterns {
            known.insert(match &pattern.host {
                Host::Address(_) => HostPattern::exactly(&pattern.host),
                Host::Name(name) => {
                    self.longest = self.longest.max(name.len());
                    pattern
                }
            });
        }
    }
}

impl FromIterator<HostPattern> for HostPatterns {
    fn from_iter<P: IntoIterator<Item = HostPattern>>(patterns: P) -> Self {
        let mut all = Self::default();
        all.extend(patterns);
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &HostPattern, host: &Host) -> bool {
        match (&pattern.host, host) {
            (Host::Address(own), Host::Address(other)) => reached(*own) == reached(*other),
            (Host::Name(own), Host::Name(other)) => {
                let other = other.trim_end_matches('.');
                let front = other.strip_suffix(own.as_str());
                if !pattern.is_beneath {
                    own == other
                } else {
                    front
                        .and_then(|front| front.strip_suffix('.'))
                        .is_some_and(|label| !label.is_empty())
                }
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn a_set_matches_what_one_of_its_patterns_matches(
            patterns in proptest::collection::vec(r"(\*\.)?[ab](\.[ab]){0,3}\.?|127\.0\.0\.[12]|::ffff:127\.0\.0\.1", 0..6),
            hosts in proptest::collection::vec(r"[ab](\.[ab]){0,4}\.{0,2}|127\.0\.0\.[12]|\[::ffff:127\.0\.0\.1\]|\[64:ff9b::7f00:1\]", 1..12),
        ) {
            let patterns: Vec<HostPattern> =
                patterns.iter().map(|pattern| pattern.parse().expect("a pattern")).collect();
            let set = HostPatterns::from_iter(patterns.clone());
            for host in hosts.iter().filter_map(|host| Host::parse(host)) {
                let expected = patterns.iter().any(|pattern| matches(pattern, &host));
                prop_assert_eq!(set.matches(&host), expected, "{}", host);
            }
        }
    }
}
