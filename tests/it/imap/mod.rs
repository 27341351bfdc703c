//! Mail on servers that speak IMAP (docs/imap.md).

mod client;
mod hostile;
mod proxy;
mod reading;
mod rig;
mod rigs;
mod scripted;
mod secrets;
