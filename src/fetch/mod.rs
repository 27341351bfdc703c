//! The world behind one trait: [`Fetch`] retrieves what a URL names.
//!
//! The planner and the expander know nothing but this trait; tests bring their own
//! ([`canned::Canned`]). An implementation retrieves the *whole* body or fails; it never returns
//! a part of one, an error page, or a body above the limit.

mod allowance;
pub mod cache;
pub mod canned;
mod file;
mod ftp;
mod http;
mod http_body;
mod in_flight;
mod names;
mod probe;
mod several;
pub mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::report::{Reason, Refusal};

pub use bytes::Bytes;
pub use cache::Cached;
pub use in_flight::AtMost;
pub use names::{Names, SystemNames};
pub use probe::{Probed, Probing, Unasked};
pub use several::fetch_all;
pub use world::World;

/// One retrieval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Absolute URL without white space, already rewritten by `--map`, fragment included.
    pub url: String,
    /// The `type/subtype` that the phantom header declares; http asks for it with `Accept`.
    pub accept: Option<String>,
    /// When the whole message's retrievals must be over, whatever the per-retrieval time-out.
    pub deadline: Instant,
}

/// A whole body, and what its source said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retrieved {
    /// The URL that finally answered: after redirects, without fragment, without password.
    pub url: String,
    /// The source's own Content-Type value, unparsed; none for ftp and file.
    pub media_type: Option<String>,
    /// The octets, after decompression; a clone shares them.
    pub body: Bytes,
    /// How long it took; of an answer from the cache, how long it took the first time.
    pub elapsed: Duration,
}

/// The world. Implementations are shared between threads.
pub trait Fetch: Sync {
    /// Retrieves the whole body or says why not.
    ///
    /// # Errors
    /// A [`Refusal`] with its reason; temporary ones are marked so.
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal>;

    /// Whether [`Fetch::fetch`] would be answered, with as little transferred as the source allows.
    ///
    /// # Errors
    /// As [`Fetch::fetch`], as far as that shows without the content.
    fn probe(&self, request: &Request) -> Result<Probed, Refusal> {
        self.fetch(request).map(Probed::from)
    }
}

/// A world in which nothing can be retrieved: what the default policy amounts to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Nowhere;

impl Fetch for Nowhere {
    fn fetch(&self, request: &Request) -> Result<Retrieved, Refusal> {
        Err(Refusal::lasting(
            Reason::SchemeNotAllowed,
            format!("{} was not retrieved", request.url),
        ))
    }
}

fn late() -> Refusal {
    Refusal::temporary(
        Reason::Deadline,
        "not whole within --deadline, which holds for the whole message",
    )
}

/// A lock that another thread's panic does not spoil: every state here is whole between steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
