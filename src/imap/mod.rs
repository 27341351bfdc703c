//! IMAP: mail on a server (RFC 3501, RFC 9051).
//!
//! A room beside `mailbox`, and below `cli`: nothing else knows the protocol.
//!
//! * `account` is what a URL (RFC 5092) and the options say: which server, which folders, how to log in; `names` are the names
//!   of folders, `secret` is where a password comes from.
//! * `wire` reads and writes octets, in clear or by TLS, within limits; `response` reads what a server says into values.
//! * `command` is what is sent, `exchange` commands and their answers, several of which may be under way; `login` is how a
//!   connection gets to know us.
//! * `search` reads what SEARCH finds, `fetch` metadata, `structure` BODYSTRUCTURE, and `bodies` whole messages, in pieces; all pipelined.
//! * `session` is a connection that is logged in, with the commands as methods, those of
//!   `folders`, `listing` and `changes` among them; `reading` reads with several of them.
//! * `download` brings what an account has into Maildirs, which `backup` writes, and `directories` says where; `overview` tells
//!   what it has.
//! * `in_place` is a verb over an account that changes it, `batch` its work in one folder. `candidates` says which messages are
//!   read, `machine` decides how one takes the place of another, also after a kill, `replace` carries that out, `journal` keeps
//!   how far it came, and `model` tests it.
//! * `place` is where a message is, for rows; `failure` is what goes wrong, and `retry` what is tried again then; `canned` is a server for fuzzing.

pub(crate) mod account;
mod backup;
mod batch;
mod bodies;
pub(crate) mod candidates;
#[cfg(any(test, feature = "internals"))]
pub mod canned;
mod changes;
mod command;
mod directories;
pub(crate) mod download;
mod exchange;
pub(crate) mod failure;
mod fetch;
mod folders;
pub(crate) mod in_place;
mod journal;
mod listing;
mod login;
mod machine;
#[cfg(test)]
mod model;
mod names;
pub(crate) mod overview;
pub(crate) mod place;
mod reading;
pub(crate) mod replace;
mod response;
mod retry;
mod search;
pub(crate) mod secret;
pub(crate) mod session;
mod structure;
mod wire;
