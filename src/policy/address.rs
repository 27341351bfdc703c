//! Which addresses are globally reachable, and networks of addresses (spec §7).
//!
//! The source is IANA's two special-purpose address registries (RFC 6890 and what was added
//! since); what they mark as not globally reachable is not, and what they leave open is not
//! either. Stricter than they are: all of 192.0.0.0/24, 192.88.99.0/24, 2001::/23 and 2002::/16
//! is refused, exceptions for relays and anycast services included.
//!
//! What cannot be known: a NAT64 gateway with a prefix of its own (RFC 6052 §2.2) looks like any
//! other global network. Behind one, allow named hosts only (`--allow-host`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: `10.1.0.0/16`, `fd00::/8`, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Whether the address is in the network. IPv4 and IPv6 never match each other.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_prefix_v4(network, address, self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_prefix_v6(network, address, self.prefix)
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = String;

    /// Reads `ADDRESS/PREFIX` or an address alone.
    ///
    /// # Errors
    /// A sentence, also when the address has bits set beyond the prefix: whoever writes
    /// 10.1.2.3/8 may have meant 10.1.2.3 alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a network such as 10.1.0.0/16 or fd00::/8");
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let network: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|prefix| *prefix <= width)
                .ok_or_else(wrong)?,
            Some(_) => return Err(wrong()),
        };
        let masked = match network {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from(
                u32::from(address) & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0),
            )),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(
                u128::from(address) & u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0),
            )),
        };
        if masked != network {
            return Err(format!(
                "'{text}' has bits set beyond its prefix; the network is {masked}/{prefix}"
            ));
        }
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix)
    }
}

/// Why an address is not globally reachable, as the end of a sentence that starts with "it is";
/// none if it is.
pub(super) fn why_not_global(address: IpAddr) -> Option<String> {
    match address {
        IpAddr::V4(address) => why_not_global_v4(address).map(str::to_owned),
        IpAddr::V6(address) => why_not_global_v6(address),
    }
}

fn why_not_global_v4(address: Ipv4Addr) -> Option<&'static str> {
    const BROADCAST: Ipv4Addr = Ipv4Addr::BROADCAST;
    let special: [(Ipv4Addr, u8, &str); 18] = [
        (Ipv4Addr::UNSPECIFIED, 32, "the unspecified address"),
        (Ipv4Addr::UNSPECIFIED, 8, "in this-network (0.0.0.0/8)"),
        (Ipv4Addr::new(10, 0, 0, 0), 8, "private (RFC 1918)"),
        (
            Ipv4Addr::new(100, 64, 0, 0),
            10,
            "carrier-grade NAT space (RFC 6598)",
        ),
        (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
        (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
        (Ipv4Addr::new(172, 16, 0, 0), 12, "private (RFC 1918)"),
        (Ipv4Addr::new(192, 0, 0, 0), 24, "for IETF protocols"),
        (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
        (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay"),
        (Ipv4Addr::new(192, 168, 0, 0), 16, "private (RFC 1918)"),
        (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarking"),
        (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
        (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
        (Ipv4Addr::new(233, 252, 0, 0), 24, "for documentation"),
        (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
        (BROADCAST, 32, "the broadcast address"),
        (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
    ];
    special
        .into_iter()
        .find(|(network, prefix, _)| same_prefix_v4(*network, address, *prefix))
        .map(|(_, _, why)| why)
}

fn why_not_global_v6(address: Ipv6Addr) -> Option<String> {
    let bits = u128::from(address);
    let low = Ipv4Addr::from(u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(0));
    let embedded = |how: &str, inner: Ipv4Addr| {
        let why = why_not_global_v4(inner).unwrap_or("an IPv4 address");
        format!("{how} of {inner}, which is {why}")
    };
    if address.is_unspecified() {
        return Some("the unspecified address".to_owned());
    }
    if address.is_loopback() {
        return Some("the loopback address".to_owned());
    }
    let within = |network: [u16; 8], prefix| same_prefix_v6(network.into(), address, prefix);
    if within([0, 0, 0, 0, 0, 0xffff, 0, 0], 96) {
        // The system connects to the IPv4 address itself.
        return why_not_global_v4(low).map(|_| embedded("the IPv4-mapped form", low));
    }
    if within([0; 8], 96) {
        return Some(embedded("the IPv4-compatible form", low));
    }
    if within([0, 0, 0, 0, 0xffff, 0, 0, 0], 96) {
        return Some(embedded("the IPv4-translated form", low));
    }
    if within([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96) {
        // On a network with IPv6 only, every public IPv4 host has such an address.
        return why_not_global_v4(low).map(|_| embedded("the NAT64 form", low));
    }
    if within([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48) {
        return Some("for local NAT64 (RFC 8215)".to_owned());
    }
    if within([0x2002, 0, 0, 0, 0, 0, 0, 0], 16) {
        let inner = u32::try_from((bits >> 80) & u128::from(u32::MAX)).unwrap_or(0);
        return Some(embedded("the 6to4 form", Ipv4Addr::from(inner)));
    }
    if within([0x2001, 0, 0, 0, 0, 0, 0, 0], 32) {
        return Some(embedded("a Teredo form", Ipv4Addr::from(!u32::from(low))));
    }
    // RFC 5214 §6.1: the interface identifier ::0:5efe:a.b.c.d or ::200:5efe:a.b.c.d.
    if matches!((bits >> 32) & 0xffff_ffff, 0x0000_5efe | 0x0200_5efe)
        && why_not_global_v4(low).is_some()
    {
        return Some(embedded("an ISATAP form", low));
    }
    let special: [([u16; 8], u8, &str); 10] = [
        ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "for discarding"),
        ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "for IETF protocols"),
        ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "for documentation"),
        ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "for documentation"),
        ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "for segment routing"),
        ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique-local (RFC 4193)"),
        ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
        ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site-local"),
        ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
        ([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16, "from the old 6bone"),
    ];
    special
        .into_iter()
        .find(|(network, prefix, _)| within(*network, *prefix))
        .map(|(_, _, why)| why)
        // Nothing outside 2000::/3 was ever given out as global unicast.
        .or((!within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3)).then_some("reserved"))
        .map(str::to_owned)
}

fn same_prefix_v4(left: Ipv4Addr, right: Ipv4Addr, prefix: u8) -> bool {
    let differing = u32::from(left) ^ u32::from(right);
    differing.leading_zeros() >= u32::from(prefix)
}

fn same_prefix_v6(left: Ipv6Addr, right: Ipv6Addr, prefix: u8) -> bool {
    let differing = u128::from(left) ^ u128::from(right);
    differing.leading_zeros() >= u32::from(prefix)
}
