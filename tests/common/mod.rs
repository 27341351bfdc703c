//! Functions that several test files use.
#![allow(unreachable_pub)]

pub mod archives;
pub mod bounded;
pub mod browser;
pub mod browser_process;
pub mod devtools;
pub mod filter;
pub mod folder;
pub mod imap;
pub mod mail;
pub mod mail_system;
pub mod mailboxes;
pub mod marionette;
pub mod milter;
pub mod moto;
pub mod mta;
pub mod objects;
#[cfg(unix)]
pub mod ordinary;
pub mod page_driver;
pub mod postfix;
pub mod programs;
pub mod pst;
pub mod pywb;
pub mod raw;
pub mod reports;
#[cfg(all(unix, feature = "serve"))]
pub mod serve;
pub mod smtp;
#[cfg(unix)]
pub mod thunderbird;
pub mod tnef;
pub mod warc;
pub mod world;
