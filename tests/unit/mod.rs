//! Tests of private functions, which are compiled as a part of the crate. `cargo test --lib unit::rfc3986::` runs one
//! file. Tests of the public interface and of the program are in `tests/`.
#![allow(clippy::unwrap_used, dead_code)]

mod common;

mod css_links;
mod dates;
mod detach;
mod detach_line_ends;
mod detach_refused;
mod detach_shown;
mod draft1997;
mod embed;
mod embed_branches;
mod embed_charsets;
mod embed_digests;
mod embed_shapes;
mod embed_spellings;
mod embed_styles;
mod embed_twice;
mod forecasts;
mod fuzz_replay;
mod html_links;
mod html_links_properties;
mod lengths;
mod link_svg;
mod link_usage;
mod links;
mod links_bodies;
mod links_charsets;
mod links_hostile;
mod links_siblings;
mod milter;
mod names;
mod pictures;
mod plan;
mod planning;
mod policy_table;
mod prefilter_documents;
mod properties;
#[cfg(feature = "cli")]
mod prove;
#[cfg(feature = "cli")]
mod prove_runs;
mod rfc2046;
mod rfc2231;
mod rfc2397;
mod rfc2557;
mod rfc3986;
mod rounds;
mod samples;
mod scanner;
mod schemes;
mod second_opinions;
mod store;
mod store_web;
mod transfer_encodings;
mod url_property;
mod whatwg_data_urls;
mod wrapped;
