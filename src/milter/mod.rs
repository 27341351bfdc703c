//! The milter protocol and its server, with which a mail system filters mail through embody (docs/milter.md).
//!
//! `codec` contains the packets of the protocol. `draft` collects a message from the packets. `session` handles one
//! connection without its socket. `service` processes a message, and converts the result to replies of the protocol.
//! These modules do no I/O. `server` contains the sockets and threads, `listen` the addresses, and `counters` the
//! metrics for Prometheus.
//!
//! This module never reads options, prints, or handles signals.

pub mod codec;
mod counters;
mod draft;
mod listen;
mod server;
mod service;
mod session;

pub use self::counters::{Counters, bind_metrics};
pub use self::draft::{HandoverResult, IncomingMail};
pub use self::listen::{Address, MilterListener};
pub use self::server::{MilterServer, MilterWork, ServerLog};
pub use self::service::FilterVerdict;
#[cfg(any(test, feature = "internals"))]
pub use self::service::judge;
#[cfg(any(test, feature = "internals"))]
pub use self::session::{MilterSession, SessionStep};
