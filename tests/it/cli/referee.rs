//! `tests/referee/run --check` runs the program on generated mails, and compares the outcomes with `expected.txt`.
//! `tests/referee/run --prove` runs changed programs, and checks that the referee finds each change.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::programs::{has_python, signals_act};

fn referee(arguments: &[&str]) -> Output {
    signals_act();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new("python3")
        .arg(root.join("tests/referee/run"))
        .args(arguments)
        .arg(env!("CARGO_BIN_EXE_embody"))
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    let streams = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&streams).into_owned()
}

/// The referee compares the output, the rows of the report without their sentences, the exit statuses and the requests. After an
/// intended change of these, run `tests/referee/run --record PROGRAM`, which rewrites `expected.txt`.
#[test]
fn referee_with_recorded_outcomes_finds_no_difference() {
    let test = "referee_with_recorded_outcomes_finds_no_difference";
    if has_python(test, "asyncio, multiprocessing", "python3") {
        let output = referee(&["--check"]);
        assert!(output.status.success(), "{}", printed(&output));
    }
}

#[test]
fn referee_with_spoilt_programs_finds_each_difference() {
    let test = "referee_with_spoilt_programs_finds_each_difference";
    if has_python(test, "asyncio, multiprocessing", "python3") {
        let output = referee(&["--prove", "--count", "16"]);
        assert!(output.status.success(), "{}", printed(&output));
    }
}
