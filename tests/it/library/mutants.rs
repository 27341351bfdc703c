//! Mutated files in the npm package: none causes a trap, and none takes long.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::module::{root, run};
use super::web::{built, samples};
use crate::common::programs::stderr;
use crate::common::pst::{Form, Message, Pst, text};
use crate::common::tnef::{Tnef, usual};

/// Number of mutants in `cargo test`. `.ci/peers` sets `EMBODY_MUTANTS` to 5000.
const FEW: &str = "150";

/// Writes Outlook files, of which the directories of samples contain only a few. Returns their paths.
fn files_of_outlook(folder: &Path) -> Vec<PathBuf> {
    let mut written = Vec::new();
    let mut write = |name: &str, bytes: Vec<u8>| {
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        written.push(path);
    };
    write("winmail-usual.dat", usual());
    let note = Tnef::new()
        .class("IPM.Note")
        .file("note.txt", b"hello")
        .bytes();
    write("winmail-note.dat", note);
    for (name, version, encoding) in [
        ("unicode.pst", 23, 0),
        ("ansi.pst", 15, 0),
        ("permuted.pst", 23, 1),
    ] {
        let mut pst = Pst::in_memory(Form { version, encoding });
        let inner = Message::mail("inner", "four\n").with_file("b.txt", b"five");
        let html = "<p>Hello <img src=\"cid:a\"><a href=\"https://www.example.org/\">x</a>";
        let whole = Message::mail("whole", "three\n")
            .with(0x1013, text(html))
            .with_file("a.bin", &[5; 20_000])
            .with_message(inner);
        let inbox = pst.folder(None, "Inbox", &[Message::mail("first", "one\n"), whole]);
        pst.folder(Some(inbox), "Sent", &[Message::mail("second", "two\n")]);
        write(name, pst.bytes());
    }
    written
}

#[test]
fn mutated_files_in_the_package_cause_no_trap_and_take_less_than_five_seconds() {
    let test = "mutated_files_in_the_package_cause_no_trap_and_take_less_than_five_seconds";
    let Some(folder) = built(test) else { return };
    let asked = std::env::var("EMBODY_MUTANTS").ok();
    // The module of `built` is not optimised, so thousands of mutants use the one that `web/build` has written before.
    let package = match &asked {
        Some(_) => root().join("target/web/embody-mail"),
        None => folder.path().join("embody-mail"),
    };
    let mut files = samples();
    files.extend(files_of_outlook(folder.path()));
    let count = asked.as_deref().unwrap_or(FEW);
    let mut node = Command::new("node");
    node.arg(root().join("tests/peers/mutants.js"))
        .arg(package)
        .args(["0", count])
        .args(files);
    let output = run(&mut node);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", stderr(&output));
    // Most of the mutants are still mails, so they reach what is behind the recognition of the format.
    let opened = said.split_once(" opened").and_then(|(before, _)| {
        let (_, number) = before.rsplit_once(' ')?;
        number.parse::<usize>().ok()
    });
    let all: usize = count.parse().unwrap();
    assert!(opened.is_some_and(|it| it * 2 > all), "{said}");
    assert!(said.contains(&format!("{count} mutants of ")), "{said}");
    print!("{said}");
}
