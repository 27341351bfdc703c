//! Builds WebAssembly modules and runs them in Node.js.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use crate::common::bounded::finished;
use crate::common::programs::{program, skipped, stderr};

const TARGET: &str = "wasm32-unknown-unknown";

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finished(command.spawn().unwrap())
}

/// Returns whether the compiler has the standard library for the target.
fn has_target() -> bool {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let asked = run(rustc.args(["--print", "target-libdir", "--target", TARGET]));
    let folder = String::from_utf8(asked.stdout).unwrap();
    asked.status.success() && Path::new(folder.trim()).is_dir()
}

/// Returns the module of the crate in `folder`, which is built only once. Returns `None` and prints a message if a program for
/// the build is missing.
pub(super) fn module(test: &str, folder: &str) -> Option<PathBuf> {
    static BUILT: Mutex<Vec<(String, PathBuf)>> = Mutex::new(Vec::new());
    if program("node").is_none() {
        skipped(test, "node");
        return None;
    }
    if !has_target() {
        skipped(test, "the Rust target wasm32-unknown-unknown");
        return None;
    }
    let mut built = BUILT
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((_, module)) = built.iter().find(|(name, _)| name == folder) {
        return Some(module.clone());
    }
    // A separate build directory, because that of the tests may be locked by another build.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target)
        .arg("--manifest-path")
        .arg(root().join(folder).join("Cargo.toml"));
    let output = run(&mut cargo);
    let said = stderr(&output);
    if said.contains("failed to download") || said.contains("failed to get") {
        skipped(
            test,
            &format!("a network, from which cargo gets the crates of {folder}"),
        );
        return None;
    }
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let name = match folder {
        "examples/wasm" => "embody_wasm.wasm",
        _ => "embody_web.wasm",
    };
    let module = target.join(TARGET).join("debug").join(name);
    built.push((folder.to_owned(), module.clone()));
    Some(module)
}
