//! Linker settings that let the program start faster. `filter` is started once for each message, so the time of the loader
//! counts.
//!
//! * The unwinder is linked statically if the C compiler has it as an archive. The loader would otherwise find, map and
//!   relocate libgcc_s.so, which costs a twentieth of the start-up time. If the archive is missing, libgcc_s.so is used.
//! * Relative relocations are packed (`DT_RELR`), which makes them a tenth as large, so fewer pages are read.
//! * In the dev profile, the program has fixed addresses, so that the loader relocates nothing. The tests start it many
//!   thousand times. A program that reads mail of strangers keeps random addresses: the other profiles do.

use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// First version of the GNU C library that loads programs with packed relocations.
const LOADS_PACKED_RELOCATIONS: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    if !builds_program_for_this_machine() {
        return;
    }
    if !is_static()
        && let Some(folder) = unwinder().as_deref().and_then(|file| file.parent())
    {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
    if !is_static() && setting("PROFILE") == "debug" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    } else if c_library_version().is_some_and(|version| version >= LOADS_PACKED_RELOCATIONS) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the value of an environment variable that cargo sets, or an empty text.
fn setting(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Returns true if the program, and not only the library, is built for the GNU C library of this machine. Files and versions
/// of this machine say nothing about another target.
fn builds_program_for_this_machine() -> bool {
    env::var_os("CARGO_FEATURE_CLI").is_some()
        && setting("CARGO_CFG_TARGET_OS") == "linux"
        && setting("CARGO_CFG_TARGET_ENV") == "gnu"
        && setting("HOST") == setting("TARGET")
}

/// Returns true if the C library is linked statically. The linker then finds the unwinder itself.
fn is_static() -> bool {
    setting("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static")
}

fn c_compiler() -> Command {
    Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// Returns the path of the static unwinder, or `None` if the C compiler has none.
fn unwinder() -> Option<PathBuf> {
    let output = c_compiler()
        .arg("-print-file-name=libgcc_eh.a")
        .output()
        .ok()?;
    let file = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    // For a file that does not exist, the compiler prints only its name.
    (file.is_absolute() && file.is_file()).then_some(file)
}

/// Returns the version of the GNU C library against which the C compiler links.
fn c_library_version() -> Option<(u32, u32)> {
    let mut compiler = c_compiler()
        .args(["-E", "-P", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let source = b"#include <features.h>\n__GLIBC__ __GLIBC_MINOR__\n";
    compiler.stdin.take()?.write_all(source).ok()?;
    let output = compiler.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.lines().last()?.split_whitespace();
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
