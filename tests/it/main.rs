//! The tests of the public library and of the program `embody`. Each directory contains the tests of one subject.
//!
//! All these tests are one test program, because one program is linked faster than many. Tests that compute also run
//! while other tests wait for a server.
//!
//! `cargo test postfix::` runs the tests in files with this name, and `cargo test mta::` runs the tests in the directory
//! `mta`. A test file is compiled only if the `mod.rs` of its directory names it; `docs/house.rs` checks that no file is
//! missing there.
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
mod serve;
mod store;
