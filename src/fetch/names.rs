//! Resolves host names to addresses, and checks the addresses against the policy.
//!
//! If one address of a name is not allowed, the whole name is refused. A name with a public and a private address is probably
//! an attempt to reach the private one. Connections are made only to the addresses that were checked, and a name is resolved
//! only once per connection: a second lookup could return a different, unchecked address.

use std::collections::HashSet;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;

use super::allowance::RequestAllowance;
use crate::engine::policy::{Host, Policy};
use crate::engine::report::{Detail, Reason, Refusal};

/// Resolves host names. Threads share an implementation, and a lookup may block.
pub trait Names: Debug + Send + Sync + 'static {
    /// Returns all addresses of a name, in the order in which they should be tried.
    ///
    /// # Errors
    /// [`Reason::NameNotFound`], marked as temporary if a later lookup may succeed.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Refusal>;
}

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SystemNames;

impl Names for SystemNames {
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
        use dns_lookup::{AddrInfoHints, LookupErrorKind, SockType, getaddrinfo};
        let hints = AddrInfoHints {
            socktype: SockType::Stream.into(),
            ..AddrInfoHints::default()
        };
        let found = getaddrinfo(Some(name), None, Some(hints)).map_err(|error| {
            let detail = format!("the host name {name} cannot be resolved");
            match error.kind() {
                // getaddrinfo(3) returns EAI_AGAIN if the name server failed temporarily.
                LookupErrorKind::Again => Refusal::temporary(Reason::NameNotFound, detail),
                _ => Refusal::lasting(Reason::NameNotFound, detail),
            }
        })?;
        // A set removes the duplicates. The number of addresses is chosen by an untrusted name server, so comparing each
        // address with all others could take quadratic time.
        let mut known = HashSet::new();
        let addresses = found.flatten().map(|info| info.sockaddr.ip());
        Ok(addresses.filter(|address| known.insert(*address)).collect())
    }
}

/// Returns the addresses of a host. If `policy` is `None`, the host is the proxy that the user configured, and its addresses
/// are not checked. `localhost` is not looked up (RFC 6761 §6.3): its addresses are 127.0.0.1 and ::1, as far as `--allow-net`
/// permits them.
pub(super) fn addresses(
    policy: Option<&Policy>,
    names: &Arc<dyn Names>,
    host: &Host,
    port: u16,
    allowance: RequestAllowance,
) -> Result<Vec<SocketAddr>, Refusal> {
    let judge = |address: &IpAddr| policy.map_or(Ok(()), |policy| policy.judge_address(*address));
    let addresses = match host.known_addresses() {
        Some(mut known) => {
            let refused = known.iter().rev().find_map(|address| judge(address).err());
            known.retain(|address| judge(address).is_ok());
            match refused {
                Some(refusal) if known.is_empty() => return Err(refusal),
                _ => known,
            }
        }
        None => {
            let found = looked_up(names, host, allowance)?;
            for address in &found {
                judge(address).map_err(|refusal| Refusal {
                    detail: Detail::from(format!("the host {host} has the address {address}: "))
                        .then(refusal.detail),
                    ..refusal
                })?;
            }
            found
        }
    };
    if addresses.is_empty() {
        let detail = format!("the host {host} has no IP address");
        return Err(Refusal::lasting(Reason::NameNotFound, detail));
    }
    let at_port = |address| SocketAddr::new(address, port);
    Ok(addresses.into_iter().map(at_port).collect())
}

/// Resolves a name in another thread, because getaddrinfo(3) has no time limit. If the time is over, the thread is abandoned
/// and ends by itself.
fn looked_up(
    names: &Arc<dyn Names>,
    host: &Host,
    allowance: RequestAllowance,
) -> Result<Vec<IpAddr>, Refusal> {
    let remaining = allowance.remaining()?;
    let (answer, answers) = mpsc::sync_channel(1);
    let names = Arc::clone(names);
    let name = host.to_string();
    thread::Builder::new()
        .name("lookup".to_owned())
        .spawn(move || {
            let _ = answer.send(names.addresses(&name));
        })
        .map_err(|why| {
            Refusal::temporary(
                Reason::NameNotFound,
                format!("cannot start the lookup of the host name {host}: {why}"),
            )
        })?;
    answers
        .recv_timeout(remaining)
        .unwrap_or_else(|_| Err(allowance.overrun()))
}
