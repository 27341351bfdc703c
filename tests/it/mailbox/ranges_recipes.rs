//! The recipes in docs/recipes.md that process ranges in parallel.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::programs::{embody, program, skipped};
use crate::common::reports;

/// Messages that change, and a file name that a shell must not split.
const NAME: &str = "it's a $box";

fn mailbox(folder: &Path) {
    let message = |number: usize| {
        format!(
            "From a@b Thu Jan  1 00:00:00 1970\nMessage-ID: <{number}@x>\nMIME-Version: 1.0\nContent-Type: \
             message/external-body; access-type=URL;\n URL=\"data:text/plain,{number}%0AFrom here\"\n\n\
             Content-Type: text/plain\n\n{}\n",
            "a line\n".repeat(number % 97)
        )
    };
    let all: String = (0..400).map(message).collect();
    fs::write(folder.join(NAME), all).unwrap();
}

/// Runs a recipe on the mailbox, in a directory of its own.
fn run(recipe: &str, folder: &Path) -> Output {
    let built = Path::new(env!("CARGO_BIN_EXE_embody")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "{}/samples/recipes/ranges/{recipe}",
        env!("CARGO_MANIFEST_DIR")
    );
    let here = folder.join("here");
    fs::create_dir_all(&here).unwrap();
    Command::new("sh")
        .arg(script)
        .args([folder.join(NAME).as_os_str(), "10000".as_ref()])
        .current_dir(here)
        .env(
            "PATH",
            format!(
                "{}:{}:{path}",
                folder.join("bin").display(),
                built.display()
            ),
        )
        .env("HOME", folder)
        .output()
        .unwrap()
}

fn whole(folder: &Path) -> Vec<u8> {
    let whole = folder.join("whole");
    let output = embody()
        .args(["convert", "--quiet", "--output"])
        .args([&whole, &folder.join(NAME)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::read(whole).unwrap()
}

#[test]
fn with_xargs_the_parts_are_what_one_run_writes() {
    const TEST: &str = "with_xargs_the_parts_are_what_one_run_writes";
    for name in ["jq", "xargs"] {
        if program(name).is_none() {
            return skipped(TEST, name);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    mailbox(folder.path());
    let output = run("xargs", folder.path());
    assert!(output.status.success(), "{output:?}");
    let here = folder.path().join("here");
    assert!(fs::read_dir(here.join("parts")).unwrap().count() > 8);
    assert!(fs::read(here.join("new.mbox")).unwrap() == whole(folder.path()));
    // If only some ranges are processed, no result is written.
    let (bin, jq) = (folder.path().join("bin"), program("jq").unwrap());
    fs::create_dir(&bin).unwrap();
    let script = format!("#!/bin/sh\n{} \"$@\" | head -n 2\n", jq.display());
    fs::write(bin.join("jq"), script).unwrap();
    fs::set_permissions(bin.join("jq"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(&here).unwrap();
    assert!(!run("xargs", folder.path()).status.success());
    assert!(!here.join("new.mbox").exists());
    // The file does not exist.
    let failed = run("xargs", &folder.path().join("nowhere"));
    assert!(!failed.status.success());
    assert!(!folder.path().join("nowhere/here/new.mbox").exists());
}

#[test]
fn with_gnu_parallel_a_second_run_does_what_failed() {
    const TEST: &str = "with_gnu_parallel_a_second_run_does_what_failed";
    for name in ["jq", "parallel"] {
        if program(name).is_none() {
            return skipped(TEST, name);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    mailbox(folder.path());
    let here = folder.path().join("here");
    assert!(run("parallel", folder.path()).status.success());
    let ranges = fs::read_to_string(here.join("ranges.jsonl")).unwrap();
    let first = reports::object(ranges.lines().next().unwrap());
    let part = here.join(format!("parts/{}-{}", first["from"], first["to"]));
    // In another run, a part cannot be written, because a directory has its name.
    for name in ["jobs", "new.mbox"] {
        fs::remove_file(here.join(name)).unwrap();
    }
    fs::remove_dir_all(here.join("parts")).unwrap();
    fs::create_dir_all(&part).unwrap();
    let failed = run("parallel", folder.path());
    assert!(!failed.status.success(), "{failed:?}");
    assert!(!here.join("new.mbox").exists());
    fs::remove_dir(&part).unwrap();
    let written = |name: &Path| fs::metadata(name).unwrap().modified().unwrap();
    let other = fs::read_dir(here.join("parts"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let before = written(&other);
    let again = run("parallel", folder.path());
    assert!(again.status.success(), "{again:?}");
    assert_eq!(written(&other), before);
    assert!(fs::read(here.join("new.mbox")).unwrap() == whole(folder.path()));
    // A mail arrived during the run: it must not be missing from an old result that looks new.
    let source = folder.path().join(NAME);
    let grown = [
        &fs::read(&source).unwrap()[..],
        b"From a@b 10:00\nSubject: latest\n\n\n",
    ]
    .concat();
    fs::write(&source, grown).unwrap();
    assert!(!run("parallel", folder.path()).status.success());
}
