//! From a host to addresses that were judged.
//!
//! One address that may not be asked refuses the name: a name with a public and a private address is there to have the
//! second one reached. Only judged addresses are connected to; nothing is looked up twice for one connection.

use std::collections::HashSet;
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread;

use super::allowance::Allowance;
use crate::policy::{Host, Policy};
use crate::report::{Detail, Reason, Refusal};

/// Finds the addresses of names; threads share it, and a lookup may block.
pub trait Names: Debug + Send + Sync + 'static {
    /// Every address of a name, in the order in which they should be tried.
    ///
    /// # Errors
    /// [`Reason::NameNotFound`]; temporary if trying again may help.
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
            let detail = format!("{name} does not resolve");
            match error.kind() {
                // getaddrinfo(3): EAI_AGAIN is the name server's "try again later".
                LookupErrorKind::Again => Refusal::temporary(Reason::NameNotFound, detail),
                _ => Refusal::lasting(Reason::NameNotFound, detail),
            }
        })?;
        // A stranger's name server says how many there are.
        let mut known = HashSet::new();
        let addresses = found.flatten().map(|info| info.sockaddr.ip());
        Ok(addresses.filter(|address| known.insert(*address)).collect())
    }
}

/// Without a policy no address is judged: the user named the proxy. `localhost` is not looked up (RFC 6761 §6.3): it has
/// those of 127.0.0.1 and ::1 that `--allow-net` opens.
pub(super) fn addresses(
    policy: Option<&Policy>,
    names: &Arc<dyn Names>,
    host: &Host,
    port: u16,
    allowance: Allowance,
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
                    detail: Detail::from(format!("{host} is {address}: ")).then(refusal.detail),
                    ..refusal
                })?;
            }
            found
        }
    };
    if addresses.is_empty() {
        let detail = format!("{host} has no address");
        return Err(Refusal::lasting(Reason::NameNotFound, detail));
    }
    let at_port = |address| SocketAddr::new(address, port);
    Ok(addresses.into_iter().map(at_port).collect())
}

/// getaddrinfo(3) has no time-out of its own, so it runs in another thread and is left behind when it is late.
fn looked_up(
    names: &Arc<dyn Names>,
    host: &Host,
    allowance: Allowance,
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
            Refusal::temporary(Reason::NameNotFound, format!("no lookup of {host}: {why}"))
        })?;
    answers
        .recv_timeout(remaining)
        .unwrap_or_else(|_| Err(allowance.overrun()))
}
