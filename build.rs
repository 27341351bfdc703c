//! Puts the unwinder into the program, where the C compiler has it as an archive.
//!
//! `filter` is started once for each message, and a shared libgcc_s is one more file that is looked for, mapped and
//! adjusted then: a twentieth of that time. A linker that does not take it from the archive takes the shared one as before.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    if let Some(folder) = unwinder().as_deref().and_then(|file| file.parent()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// The archive. None for a library without the program, for another machine, and where all is linked statically.
fn unwinder() -> Option<PathBuf> {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let is_program = env::var_os("CARGO_FEATURE_CLI").is_some();
    let is_gnu = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    let is_static = of("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if !is_program || !is_gnu || is_static || of("HOST") != of("TARGET") {
        return None;
    }
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    let file = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    // Of one that it does not have it says the name alone.
    (file.is_absolute() && file.is_file()).then_some(file)
}
