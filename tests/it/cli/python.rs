//! Tests the Python module `python/embody` with the program under test. tests/packages/wheel tests the module from the wheel.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::programs::{has_python, signals_act, stderr};

fn python(folder: &str) -> Command {
    signals_act();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_BIN_EXE_embody")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [program.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let mut python = Command::new("python3");
    python
        .current_dir(root.join(folder))
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("PYTHONPATH", root.join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[test]
fn the_modules_own_tests_pass() {
    if !has_python(
        "the_modules_own_tests_pass",
        "sysconfig, unittest",
        "python3",
    ) {
        return;
    }
    let output = python("tests/python")
        .args(["-W", "error", "-m", "unittest", "-v"])
        .output()
        .unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.matches(" ... ok\n").count() >= 14, "{said}");
}

#[test]
fn python_example_of_the_packages_page_runs_and_prints_messages_and_rows() {
    let test = "python_example_of_the_packages_page_runs_and_prints_messages_and_rows";
    if !has_python(test, "sysconfig", "python3") {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/packages.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, block) = page.split_once("```python\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let output = python(".").args(["-c", block]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    let of_messages = printed.lines().filter(|line| line.contains(" b'")).count();
    assert_eq!(of_messages, 8, "{printed}");
    assert!(
        printed.contains("external-body would-expand data:"),
        "{printed}"
    );
}

#[test]
fn mypy_finds_nothing() {
    if !has_python("mypy_finds_nothing", "mypy", "mypy") {
        return;
    }
    // The options of mypy are in pyproject.toml.
    let output = python(".")
        .args(["-m", "mypy", "--cache-dir", "/dev/null"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("no issues found in 3 source files"), "{said}");
}
