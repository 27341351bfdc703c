//! What must hold for any bytes, one function for each fuzz target.
//!
//! `tests/fuzz` calls them with what libFuzzer makes up, `tests/unit/fuzz_replay.rs` with the seeds and
//! with everything found so far, on stable Rust: so the targets cannot rot, and what was found once
//! is tested for ever. The oracles (other crates that read the same thing) are shared with the
//! property tests.
// Each fuzz target uses one of them.
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

/// A check panics if something does not hold for these bytes.
pub type Check = fn(&[u8]);

/// Every target: its name, and what it checks.
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
