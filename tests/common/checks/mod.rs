//! Properties that must be true for any bytes, with one function for each fuzz target.
//!
//! `tests/fuzz` calls these functions with the input of libFuzzer. `tests/unit/fuzz_replay.rs` calls them on stable
//! Rust with the seeds and with all inputs that ever caused a failure, so the targets always compile, and each failure
//! has a regression test. The property tests use the same comparisons with other crates.
// Each fuzz target uses only one of these modules.
#![allow(dead_code, unreachable_pub)]

pub mod cost;
pub mod css;
pub mod data_url;
pub mod filter;
pub mod html;
pub mod imap;
pub mod mbox;
pub mod milter;
pub mod outlook;
pub mod resolve;
pub mod rtf;
pub mod scan;
pub mod tnef;
pub mod warc;

/// A check. It panics if a property is not true for these bytes.
pub type Check = fn(&[u8]);

/// All targets: the name, and the check.
pub const TARGETS: [(&str, Check); 14] = [
    ("cost", |data| {
        cost::check(data);
    }),
    ("css", css::check),
    ("data_url", data_url::check),
    ("filter", filter::check),
    ("html", html::check),
    ("imap", imap::check),
    ("mbox", mbox::check),
    ("milter", milter::check),
    ("outlook", outlook::check),
    ("resolve", resolve::check),
    ("rtf", rtf::check),
    ("scan", scan::check),
    ("tnef", tnef::check),
    ("warc", warc::check),
];
