//! All tests of what is public and of the program, one file per document, mail system or promise, as one program: it is linked once, and tests
//! that wait for a server run beside tests that compute.
//!
//! `cargo test --test all rfc2017::` runs one of them. A file that is not in the list below is not
//! tested; `house.rs` sees to it that none is forgotten.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../benches/figure/mod.rs"]
mod figure;

mod bounds;
mod chromium;
mod cli;
mod composites;
mod config_file;
mod convert_cli;
mod convert_safety;
mod cut_off;
mod deliverers;
mod detach;
mod detach_hostile;
mod detach_recipes;
mod docs;
mod dry_run;
mod embed_chromium;
mod embed_forecast;
mod embed_hostile;
mod exim;
mod faults;
mod faults_memory;
mod fetch_bomb;
mod fetch_budget;
mod fetch_cache;
mod fetch_cli;
mod fetch_cli_hostile;
mod fetch_file;
mod fetch_ftp;
mod fetch_hostile;
mod fetch_http;
mod fetchers;
mod figures;
mod house;
mod maildir;
mod maildrop;
mod manual;
mod mbox;
mod postfix;
mod procmail;
mod public_types;
mod rfc1864;
mod rfc1873;
mod rfc2017;
mod rows;
mod separators;
mod sieve;
mod signals;
mod standard_streams;
mod stopped;
mod store;
mod store_faults;
mod store_peers;
mod wild;
mod wild_hostile;
