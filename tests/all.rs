//! All tests, one file per document, mail system or promise, as one program: it is linked once, and tests
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
mod css_links;
mod cut_off;
mod deliverers;
mod docs;
mod draft1997;
mod dry_run;
mod embed;
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
mod fuzz_replay;
mod house;
mod html_links;
mod html_links_properties;
mod link_svg;
mod link_usage;
mod links;
mod links_bodies;
mod links_charsets;
mod links_hostile;
mod links_siblings;
mod maildir;
mod maildrop;
mod manual;
mod mbox;
mod pictures;
mod policy_table;
mod postfix;
mod procmail;
mod properties;
mod rfc1864;
mod rfc1873;
mod rfc2017;
mod rfc2046;
mod rfc2231;
mod rfc2397;
mod rfc2557;
mod rfc3986;
mod rows;
mod samples;
mod scanner;
mod schemes;
mod second_opinions;
mod separators;
mod sieve;
mod signals;
mod standard_streams;
mod stopped;
mod url_property;
mod whatwg_data_urls;
mod wild;
mod wild_hostile;
