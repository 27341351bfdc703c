//! What is outside the mail, behind one trait: [`Fetch`] retrieves what a URL names.
//!
//! The planner and the expander know nothing but this trait. [`SystemFetcher`] asks servers and reads files,
//! as far as its policy allows; [`NoFetch`] asks nobody; [`Cached`] remembers what another one was answered;
//! [`Canned`] has answers given beforehand, for tests. An implementation retrieves the *whole* body or fails;
//! it never returns a part of one, an error page, or a body above the limit.

#[cfg(feature = "http")]
mod agent;
mod allowance;
mod cache;
mod canned;
#[cfg(feature = "http")]
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
mod direct;
#[cfg(feature = "http")]
mod exchange;
mod in_flight;
#[cfg(any(feature = "http", feature = "ftp"))]
mod names;
#[cfg(feature = "cli")]
mod probe;
mod request;
mod several;
mod system;
mod waiting;

#[cfg(feature = "cache")]
#[cfg_attr(not(feature = "cli"), allow(unused_imports))]
pub(crate) use agent::USER_AGENT;
#[cfg(feature = "cache")]
#[cfg_attr(not(feature = "cli"), allow(unused_imports))]
pub(crate) use allowance::Allowance;
pub use bytes::Bytes;
pub use cache::Cached;
pub use canned::Canned;
#[cfg(feature = "http")]
#[cfg_attr(not(feature = "cli"), allow(unused_imports))]
pub(crate) use direct::{Direct, NoReply, Reply};
#[cfg(feature = "cache")]
#[cfg_attr(not(feature = "cli"), allow(unused_imports))]
pub(crate) use exchange::{
    Answer, Asked, Exchange, Failed, How, LONGEST_PAUSE, MEMENTO_DATETIME, Nobody, Source, Whose,
    agrees, is_redirect, retry_after,
};
pub use in_flight::AtMost;
#[cfg(any(feature = "http", feature = "ftp"))]
pub use names::Names;
#[cfg(feature = "cli")]
pub(crate) use probe::{Probing, Unasked};
pub use request::{Fetch, NoFetch, Probed, Request, Retrieved};
pub use several::fetch_all;
pub use system::SystemFetcher;
