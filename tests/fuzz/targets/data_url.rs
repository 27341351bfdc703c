//! See `tests/common/checks/data_url.rs`.
#![no_main]

#[path = "../../common/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::data_url::check(data));
