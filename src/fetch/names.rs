//! Resolves host names to addresses, and checks the addresses against the policy.
//!
//! If one address of a name is not allowed, the whole name is refused. A name with a public and a private address is probably
//! an attempt to reach the private one. Connections are made only to the addresses that were checked, and a name is resolved
//! only once per connection: a second lookup could return a different, unchecked address.
//!
//! [`NameLookups`] remembers failed lookups for a short time. A mailbox can name thousands of pictures on a host that no longer
//! exists, and each failed lookup can take half a minute if the name server does not respond.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::allowance::RequestAllowance;
use crate::detail::{QUOTED, excerpt};
use crate::engine::policy::{Host, Policy};
use crate::engine::report::{Detail, Reason, Refusal, Retry};
use crate::error::unpoisoned;

/// Age at which a failed lookup is forgotten.
#[derive(Clone, Copy, Debug)]
struct FailureAges {
    /// Age for a name that does not exist. Name servers themselves keep such an answer for minutes to hours (RFC 2308 §5).
    unknown_name: Duration,
    /// Age for a failure of the name server, which may respond again soon.
    name_server: Duration,
}

const AGES: FailureAges = FailureAges {
    unknown_name: Duration::from_secs(5 * 60),
    name_server: Duration::from_secs(60),
};

/// Maximum number of remembered failures. Further ones are not remembered, so those names are looked up for each request.
const MOST_FAILURES: usize = 10_000;

/// Maximum length of a remembered name, in bytes. It is the maximum of DNS (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 255;

/// Resolves host names. Threads share an implementation, and a lookup may block.
pub trait Names: Debug + Send + Sync + 'static {
    /// Returns all addresses of a name, in the order in which they should be tried.
    ///
    /// # Errors
    /// [`Reason::NameNotFound`] if the name does not exist. [`Reason::NameServerFailed`], marked as temporary, if the lookup
    /// failed for another reason and a later lookup may succeed.
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
            let name = excerpt(name, QUOTED);
            match error.kind() {
                // getaddrinfo(3) returns EAI_AGAIN if no name server responded or the name server failed (SERVFAIL), and
                // EAI_FAIL if it refused the query. None of them shows that the name does not exist.
                LookupErrorKind::Again | LookupErrorKind::Fail => {
                    let detail = format!(
                        "the host name {name} could not be looked up: the name server failed or did not respond"
                    );
                    Refusal::temporary(Reason::NameServerFailed, detail)
                }
                _ => {
                    let detail = format!("the host name {name} cannot be resolved");
                    Refusal::lasting(Reason::NameNotFound, detail)
                }
            }
        })?;
        // A set removes the duplicates. The number of addresses is chosen by an untrusted name server, so comparing each
        // address with all others could take quadratic time.
        let mut known = HashSet::new();
        let addresses = found.flatten().map(|info| info.sockaddr.ip());
        Ok(addresses.filter(|address| known.insert(*address)).collect())
    }
}

/// Resolves host names, and remembers which lookups failed. Threads share the value.
///
/// Only results of completed lookups are remembered, and only for exactly the name that was looked up. A lookup that ran out of
/// time shows nothing about the name: the mail that needs it can have used up its time for something else. So one mail cannot
/// make the hosts of other mails unresolvable.
#[derive(Debug)]
pub(crate) struct NameLookups {
    names: Arc<dyn Names>,
    ages: FailureAges,
    failures: Mutex<HashMap<String, FailedLookup>>,
}

#[derive(Debug)]
struct FailedLookup {
    refusal: Refusal,
    until: Instant,
}

impl NameLookups {
    pub(super) fn new(names: Arc<dyn Names>) -> Self {
        Self {
            names,
            ages: AGES,
            failures: Mutex::default(),
        }
    }

    /// Returns the addresses of a host. If `policy` is `None`, the host is the proxy that the user configured, and its
    /// addresses are not checked. `localhost` is not looked up (RFC 6761 §6.3): its addresses are 127.0.0.1 and ::1, as far as
    /// `--allow-net` permits them.
    pub(super) fn addresses(
        self: &Arc<Self>,
        policy: Option<&Policy>,
        host: &Host,
        port: u16,
        allowance: RequestAllowance,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let judge =
            |address: &IpAddr| policy.map_or(Ok(()), |policy| policy.judge_address(*address));
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
                let found = self.looked_up(host, allowance)?;
                for address in &found {
                    judge(address).map_err(|refusal| Refusal {
                        detail: Detail::from(format!(
                            "the host {host} has the address {address}: "
                        ))
                        .then(refusal.detail),
                        ..refusal
                    })?;
                }
                found
            }
        };
        let at_port = |address| SocketAddr::new(address, port);
        Ok(addresses.into_iter().map(at_port).collect())
    }

    /// Resolves a name in another thread, because getaddrinfo(3) has no time limit. If the time is over, the thread is abandoned
    /// and ends by itself. If its lookup fails after all, the failure is remembered for the next message.
    fn looked_up(
        self: &Arc<Self>,
        host: &Host,
        allowance: RequestAllowance,
    ) -> Result<Vec<IpAddr>, Refusal> {
        let remaining = allowance.remaining()?;
        let name = host.to_string();
        if let Some(refusal) = self.failure(&name) {
            return Err(refusal);
        }
        let (answer, answers) = mpsc::sync_channel(1);
        let lookups = Arc::clone(self);
        thread::Builder::new()
            .name("lookup".to_owned())
            .spawn(move || {
                let found = lookups.names.addresses(&name).and_then(|found| {
                    let detail = || format!("the host {name} has no IP address");
                    let has_address = !found.is_empty();
                    has_address
                        .then_some(found)
                        .ok_or_else(|| Refusal::lasting(Reason::NameNotFound, detail()))
                });
                if let Err(refusal) = &found {
                    lookups.remember(name, refusal);
                }
                let _ = answer.send(found);
            })
            .map_err(|why| {
                Refusal::temporary(
                    Reason::NameServerFailed,
                    format!("cannot start the lookup of the host name {host}: {why}"),
                )
            })?;
        answers
            .recv_timeout(remaining)
            .unwrap_or_else(|_| Err(allowance.overrun()))
    }

    fn failure(&self, name: &str) -> Option<Refusal> {
        let mut failures = unpoisoned(self.failures.lock());
        let failed = failures.get(name)?;
        if failed.until <= Instant::now() {
            failures.remove(name);
            return None;
        }
        Some(failed.refusal.clone())
    }

    fn remember(&self, name: String, refusal: &Refusal) {
        let age = match refusal.retry {
            Retry::Never => self.ages.unknown_name,
            Retry::Later => self.ages.name_server,
        };
        let now = Instant::now();
        let mut failures = unpoisoned(self.failures.lock());
        if failures.len() >= MOST_FAILURES && !failures.contains_key(&name) {
            failures.retain(|_, failed| failed.until > now);
        }
        let is_known = failures.contains_key(&name);
        if name.len() > LONGEST_NAME || failures.len() >= MOST_FAILURES && !is_known {
            return;
        }
        let failed = FailedLookup {
            refusal: refusal.clone(),
            until: now + age,
        };
        failures.insert(name, failed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Fails for names that begin with "no" (unknown) or "busy" (failure of the name server), and counts the lookups.
    #[derive(Debug, Default)]
    struct CountedNames {
        lookups: AtomicUsize,
        pause: Duration,
    }

    impl Names for CountedNames {
        fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Refusal> {
            self.lookups.fetch_add(1, Ordering::SeqCst);
            thread::sleep(self.pause);
            match name {
                _ if name.starts_with("none") => Ok(Vec::new()),
                _ if name.starts_with("no") => Err(Refusal::lasting(Reason::NameNotFound, name)),
                _ if name.starts_with("busy") => {
                    Err(Refusal::temporary(Reason::NameServerFailed, name))
                }
                _ => Ok(vec![IpAddr::from([192, 0, 2, 1])]),
            }
        }
    }

    fn lookups(ages: FailureAges, pause: Duration) -> (Arc<CountedNames>, Arc<NameLookups>) {
        let names = Arc::new(CountedNames {
            pause,
            ..CountedNames::default()
        });
        let lookups = NameLookups {
            ages,
            ..NameLookups::new(Arc::clone(&names) as Arc<dyn Names>)
        };
        (names, Arc::new(lookups))
    }

    fn ask(lookups: &Arc<NameLookups>, name: &str, time: Duration) -> Result<usize, Refusal> {
        let host = Host::parse(name).unwrap();
        let found = lookups.addresses(None, &host, 80, RequestAllowance::of(time));
        found.map(|addresses| addresses.len())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn failed_lookup_is_not_repeated_and_has_the_same_reason() {
        for name in ["no.example", "none.example", "busy.example"] {
            let (names, lookups) = lookups(AGES, Duration::ZERO);
            let first = ask(&lookups, name, LONG).unwrap_err();
            for _ in 0..50 {
                assert_eq!(ask(&lookups, name, LONG).unwrap_err(), first);
            }
            assert_eq!(names.lookups.load(Ordering::SeqCst), 1, "{name}");
            assert_eq!(ask(&lookups, &format!("a.{name}"), LONG), Ok(1));
            assert_eq!(ask(&lookups, "b.example", LONG), Ok(1));
        }
    }

    #[test]
    fn failed_lookup_is_repeated_after_its_age() {
        let ages = FailureAges {
            unknown_name: Duration::ZERO,
            name_server: LONG,
        };
        let (names, lookups) = lookups(ages, Duration::ZERO);
        for name in ["no.example", "busy.example"] {
            for _ in 0..3 {
                ask(&lookups, name, LONG).unwrap_err();
            }
        }
        assert_eq!(names.lookups.load(Ordering::SeqCst), 3 + 1);
    }

    #[test]
    fn lookup_that_ran_out_of_time_is_not_a_failure_of_the_name() {
        let (_, lookups) = lookups(AGES, Duration::from_millis(200));
        let late = ask(&lookups, "b.example", Duration::from_millis(1)).unwrap_err();
        assert_eq!(late.reason, Reason::Timeout);
        assert!(unpoisoned(lookups.failures.lock()).is_empty());
        assert_eq!(ask(&lookups, "b.example", LONG), Ok(1));
    }

    #[test]
    fn failures_beyond_the_maximum_are_not_remembered_until_others_expire() {
        let (_, lookups) = lookups(AGES, Duration::ZERO);
        let refusal = Refusal::lasting(Reason::NameNotFound, "no");
        for number in 0..MOST_FAILURES + 5 {
            lookups.remember(format!("{number}.example"), &refusal);
        }
        let last = format!("{}.example", MOST_FAILURES + 4);
        assert_eq!(lookups.failure("0.example"), Some(refusal.clone()));
        assert_eq!(lookups.failure(&last), None);
        for failed in unpoisoned(lookups.failures.lock()).values_mut() {
            failed.until = Instant::now();
        }
        lookups.remember(last.clone(), &refusal);
        lookups.remember("x".repeat(LONGEST_NAME + 1), &refusal);
        assert_eq!(lookups.failure(&last), Some(refusal));
        assert_eq!(unpoisoned(lookups.failures.lock()).len(), 1);
    }
}
