//! What several test files need.
#![allow(unreachable_pub)]

pub mod browser;
pub mod checks;
pub mod filter;
pub mod hostile;
pub mod imap;
pub mod mail;
pub mod mailboxes;
pub mod mta;
pub mod postfix;
pub mod programs;
pub mod raw;
pub mod seeds;
pub mod smtp;
pub mod trees;
pub mod world;
