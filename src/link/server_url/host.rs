//! A host of a URL.

use core::net::IpAddr;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Host {
    /// A name in lower case.
    Name(String),
    /// An IP address. It can be written in several notations: `127.1`, `0x7f.1` and `2130706433` are the same address.
    Address(IpAddr),
}
