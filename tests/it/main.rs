//! All tests of what is public and of the program, a folder a subject and a file a document, mail system or promise,
//! as one program: it is linked once, and tests that wait for a server run beside tests that compute.
//!
//! `cargo test postfix::` runs one file, `cargo test mta::` one folder. A file that is in no list is not tested;
//! `docs/house.rs` sees to it that none is forgotten.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod cli;
mod copies;
mod docs;
mod fetch;
mod imap;
mod library;
mod mail;
mod mailbox;
mod mta;
mod record;
mod store;
