//! Runs the check in `tests/common/checks/scan.rs` on the input of libFuzzer.
#![no_main]

#[path = "../../common/checks/mod.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::scan::check(data));
