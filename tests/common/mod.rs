//! What several test files need. Each uses a part of it.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

pub mod filter;
pub mod imap;
pub mod mta;
pub mod postfix;
pub mod programs;
pub mod raw;
pub mod smtp;
pub mod world;
