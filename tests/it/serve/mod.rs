//! `embody serve`: an HTTP service for other programs.
#![cfg(all(unix, feature = "serve"))]

mod access;
mod clients;
mod contract;
mod hostile;
mod mailboxes;
mod objects;
mod single;
