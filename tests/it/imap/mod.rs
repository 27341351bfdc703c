//! Mail on servers that speak IMAP (docs/imap.md).

mod client;
mod proxy;
mod rig;
mod rigs;
