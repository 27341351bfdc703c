//! See `tests/common/checks/filter.rs`.
#![no_main]

#[path = "../../common/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::filter::check(data));
