//! The HTTP service of `embody serve` (docs/serve.md): other programs send messages and mailboxes, and get them back
//! changed. docs/serve/openapi.yaml is the contract.
//!
//! `server` accepts connections and `connection` bounds how long a client may take. `access` decides which requests are
//! accepted at all, and `route` which function answers. `message`, `mailbox` and `objects` contain one kind of request
//! each. hyper parses requests in one thread, which never waits for a disk. [`Backend`] does all work on mail, in the
//! threads of `workers`.
//!
//! This module never reads options, prints, or handles signals, and knows nothing about policies.

mod accept;
mod access;
mod backend;
mod body;
mod connection;
mod counters;
mod listen;
mod mailbox;
mod message;
mod objects;
mod problem;
mod route;
mod server;
mod shared;
mod workers;

pub(crate) use self::access::{AccessToken, HostNames};
pub(crate) use self::backend::{
    Backend, BackendResult, MailboxMessage, ObjectContent, Parameters, SharedSink, Verb, start_of,
};
pub(crate) use self::listen::{Listener, ServeAddress};
pub(crate) use self::problem::Problem;
pub(crate) use self::server::Server;
pub(crate) use self::shared::ServeLimits;
