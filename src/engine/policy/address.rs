//! IP addresses that are not globally reachable (docs/design.md, "Retrieval").
//!
//! The source is IANA's two special-purpose address registries (RFC 6890 and later additions). An address for which a
//! registry does not state whether it is reachable counts as not reachable. This module is stricter than the
//! registries: it refuses all of 192.0.0.0/24, 192.88.99.0/24, 2001::/23 and 2002::/16, including the exceptions for
//! relays and anycast services.
//!
//! A network can have its own NAT64 prefix (RFC 6052 §2.2), and such addresses cannot be distinguished from public
//! ones. In such a network, restrict requests to named hosts (`--allow-host`).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Returns why the address is not globally reachable, as the end of a sentence that starts with "it is". Returns
/// `None` if the address is globally reachable.
pub(super) fn why_not_global(address: IpAddr) -> Option<String> {
    match address {
        IpAddr::V4(address) => why_not_global_v4(address).map(str::to_owned),
        IpAddr::V6(address) => why_not_global_v6(address),
    }
}

fn why_not_global_v4(address: Ipv4Addr) -> Option<&'static str> {
    const SPECIAL: [(Ipv4Net, &str); 18] = [
        (v4([0; 4], 32), "the unspecified address"),
        (
            v4([0; 4], 8),
            "in the network 0.0.0.0/8, which means this machine",
        ),
        (v4([10, 0, 0, 0], 8), "a private address (RFC 1918)"),
        (
            v4([100, 64, 0, 0], 10),
            "reserved for carrier-grade NAT (RFC 6598)",
        ),
        (v4([127, 0, 0, 0], 8), "a loopback address"),
        (v4([169, 254, 0, 0], 16), "a link-local address"),
        (v4([172, 16, 0, 0], 12), "a private address (RFC 1918)"),
        (v4([192, 0, 0, 0], 24), "reserved for protocols of the IETF"),
        (v4([192, 0, 2, 0], 24), "reserved for documentation"),
        (v4([192, 88, 99, 0], 24), "a 6to4 relay"),
        (v4([192, 168, 0, 0], 16), "a private address (RFC 1918)"),
        (v4([198, 18, 0, 0], 15), "reserved for benchmarks"),
        (v4([198, 51, 100, 0], 24), "reserved for documentation"),
        (v4([203, 0, 113, 0], 24), "reserved for documentation"),
        (v4([233, 252, 0, 0], 24), "reserved for documentation"),
        (v4([224, 0, 0, 0], 4), "a multicast address"),
        (v4([255; 4], 32), "the broadcast address"),
        (v4([240, 0, 0, 0], 4), "a reserved address"),
    ];
    let is_in = |(network, _): &&(Ipv4Net, &str)| network.contains(&address);
    SPECIAL.iter().find(is_in).map(|(_, why)| *why)
}

fn why_not_global_v6(address: Ipv6Addr) -> Option<String> {
    let bits = u128::from(address);
    let low = Ipv4Addr::from(u32::try_from(bits & u128::from(u32::MAX)).unwrap_or(0));
    let embedded = |form: &str, inner: Ipv4Addr| {
        let form = format!("an IPv6 address ({form}) that contains the IPv4 address {inner}");
        match why_not_global_v4(inner) {
            Some(why) => format!("{form}, which is {why}"),
            None => format!("{form}; addresses of this form are not treated as public"),
        }
    };
    if address.is_unspecified() {
        return Some("the unspecified address".to_owned());
    }
    if address.is_loopback() {
        return Some("the loopback address".to_owned());
    }
    let within = |segments, prefix| v6(segments, prefix).contains(&address);
    if within([0, 0, 0, 0, 0, 0xffff, 0, 0], 96) {
        // The operating system connects to the IPv4 address that an IPv4-mapped address contains, so only that IPv4 address is
        // checked.
        return why_not_global_v4(low).map(|_| embedded("IPv4-mapped", low));
    }
    if within([0; 8], 96) {
        return Some(embedded("IPv4-compatible", low));
    }
    if within([0, 0, 0, 0, 0xffff, 0, 0, 0], 96) {
        return Some(embedded("IPv4-translated", low));
    }
    if within([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96) {
        // A network without IPv4 reaches each public IPv4 host through a NAT64 address. So a NAT64 address is allowed if the
        // IPv4 address in it is.
        return why_not_global_v4(low).map(|_| embedded("NAT64", low));
    }
    if within([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48) {
        return Some("reserved for local NAT64 (RFC 8215)".to_owned());
    }
    if within([0x2002, 0, 0, 0, 0, 0, 0, 0], 16) {
        let inner = u32::try_from((bits >> 80) & u128::from(u32::MAX)).unwrap_or(0);
        return Some(embedded("6to4", Ipv4Addr::from(inner)));
    }
    if within([0x2001, 0, 0, 0, 0, 0, 0, 0], 32) {
        return Some(embedded("Teredo", Ipv4Addr::from(!u32::from(low))));
    }
    // ISATAP addresses (RFC 5214 §6.1) have the interface identifier ::0:5efe:a.b.c.d or ::200:5efe:a.b.c.d, which
    // contains an IPv4 address.
    if matches!((bits >> 32) & 0xffff_ffff, 0x0000_5efe | 0x0200_5efe)
        && why_not_global_v4(low).is_some()
    {
        return Some(embedded("ISATAP", low));
    }
    const SPECIAL: [(Ipv6Net, &str); 10] = [
        (
            v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64),
            "reserved for traffic that is discarded",
        ),
        (
            v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
            "reserved for protocols of the IETF",
        ),
        (
            v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
            "reserved for documentation",
        ),
        (
            v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
            "reserved for documentation",
        ),
        (
            v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
            "reserved for segment routing",
        ),
        (
            v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
            "a unique-local address (RFC 4193)",
        ),
        (
            v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
            "a link-local address",
        ),
        (
            v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
            "a site-local address",
        ),
        (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
        (
            v6([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16),
            "in the 6bone, a former test network",
        ),
    ];
    let is_in = |(network, _): &&(Ipv6Net, &str)| network.contains(&address);
    let special = SPECIAL.iter().find(is_in).map(|(_, why)| *why);
    // IANA has allocated global unicast addresses only in 2000::/3. All other addresses are reserved.
    let is_reserved = !within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
    let why = special.or(is_reserved.then_some("a reserved address"));
    why.map(str::to_owned)
}

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}
