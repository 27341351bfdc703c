//! What `filter` does, inside a mail system: the milter protocol and its server (docs/milter.md).
//!
//! `codec` is the protocol's packets; `draft` a message as it comes; `session` one connection without its socket;
//! `service` what is done to a message, and the result in the protocol's words. These read and write nothing.
//! `server` has the sockets and threads, `listen` the addresses, `counters` what Prometheus asks for.
//!
//! What never lives here: options, printing, signals.

pub mod codec;
mod counters;
mod draft;
mod listen;
mod server;
mod service;
mod session;

pub use self::counters::{Counters, bind_metrics};
pub use self::draft::{Incoming, Left};
pub use self::listen::{Address, Listener};
pub use self::server::{Journal, Server, Work};
pub use self::service::Verdict;
#[cfg(any(test, feature = "internals"))]
pub use self::service::judge;
#[cfg(any(test, feature = "internals"))]
pub use self::session::{Session, Step};
