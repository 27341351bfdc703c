//! samples/spark/merge.py: its parts together contain the mails of `embody merge`. Without PySpark, the stages run in one process.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::spark::is_there;
use crate::common::folder::Folder;
use crate::common::programs::{embody, program, stderr};
use crate::common::reports;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/spark/merge.py");

fn mail(number: usize, source: usize) -> String {
    let header = format!(
        "From: a@example.org\nSubject: {number}\nDate: Mon, {} May 2024 10:00:00 +0200\n\
         Message-ID: <{}@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n\
         Hello {number}\n>From the start\n\nFrom here on, or not\n--b\n",
        1 + number % 28,
        // Some mails have the Message-ID of another one.
        number - usize::from(number % 50 == 49),
    );
    let lost = "Content-Type: text/x-moz-deleted; name=\"Deleted: a.txt\"\nContent-Transfer-Encoding: 8bit\n\
        X-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n\n\
        You deleted an attachment from this message. The original MIME headers for the attachment were:\n\
        Content-Type: application/pdf; name=a.txt\nContent-Transfer-Encoding: 7bit\n";
    let whole = format!(
        "Content-Type: application/pdf; name=a.txt\nContent-Transfer-Encoding: 7bit\n\n{}",
        "line\n".repeat(number % 40)
    );
    let part = if (number + source).is_multiple_of(3) {
        lost
    } else {
        &whole
    };
    let flags = if (number + source).is_multiple_of(2) {
        "Status: RO\n"
    } else {
        "X-Status: F\n"
    };
    format!("{flags}{header}{part}\n--b--\n")
}

/// Returns a directory with three mboxes that have mails in common, and their names.
fn sources() -> (Folder, [&'static str; 3]) {
    let folder = Folder::new();
    let names = ["one.mbox", "two.mbox", "three.mbox"];
    for (source, (name, numbers)) in names.iter().zip([0..200, 100..300, 50..150]).enumerate() {
        let mails: Vec<String> = numbers.map(|number| mail(number, source)).collect();
        folder.write_mbox(name, &mails);
    }
    (folder, names)
}

fn local(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.args([SCRIPT, "--local", "--embody", env!("CARGO_BIN_EXE_embody")]);
    command
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

/// Merges the sources with `embody merge`, and returns the result and the counts.
fn merged(folder: &Folder, names: &[&str]) -> (Vec<u8>, Value) {
    let output = embody()
        .args(["merge", "--json", "--quiet", "--output", "all.mbox"])
        .args(names)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let counts = reports::object(&output.stdout);
    (fs::read(folder.at("all.mbox")).unwrap(), counts)
}

fn parts(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn mails_in(mbox: &[u8]) -> Vec<String> {
    let text = String::from_utf8(mbox.to_vec()).unwrap();
    let mut mails: Vec<String> = text
        .split("From a@example.org Mon May  6 08:00:00 2024\n")
        .skip(1)
        .map(str::to_owned)
        .collect();
    mails.sort();
    mails
}

#[track_caller]
fn assert_same(output: &Output, folder: &Folder, all: &[u8], counts: &Value, count: usize) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let line = output.stdout.split(|byte| *byte == b'\n').next().unwrap();
    let found = reports::object(line);
    // The script cannot count the files of the sources.
    let mut expected = counts.clone();
    let files = expected["merge"].as_object_mut().unwrap().remove("files");
    assert!(files.is_some_and(|it| it["read"].as_u64() > Some(0)));
    assert_eq!(found, expected);
    let parts = parts(&folder.at("out/parts"));
    assert_eq!(parts.len(), count);
    assert!(mails_in(&parts.concat()) == mails_in(all));
    assert!(!folder.at("out/groups").exists());
}

#[test]
fn groups_of_a_merge_are_together_what_embody_merges() {
    let test = "groups_of_a_merge_are_together_what_embody_merges";
    if program("python3").is_none() {
        assert!(
            std::env::var_os("EMBODY_REQUIRE_ALL").is_none(),
            "{test}: there is no python3"
        );
        println!("{test}: skipped, there is no python3");
        return;
    }
    let (folder, names) = sources();
    let (all, counts) = merged(&folder, &names);
    assert_eq!(counts["merge"]["kept"], 300);
    assert!(counts["merge"]["filled"].as_u64() > Some(20), "{counts}");
    assert!(
        !counts["merge"]["different"].as_array().unwrap().is_empty(),
        "{counts}"
    );
    let output = local(
        &folder,
        &[
            &["--output", "out", "--size", "5k", "--groups", "7"],
            &names[..],
        ]
        .concat(),
    );
    assert_same(&output, &folder, &all, &counts, 7);
    fs::remove_dir_all(folder.at("out")).unwrap();
    // With one group, all mails are in one part, and in the same order.
    let output = local(
        &folder,
        &[
            &["--output", "out", "--size", "5k", "--groups", "1"],
            &names[..],
        ]
        .concat(),
    );
    assert_same(&output, &folder, &all, &counts, 1);
    assert!(parts(&folder.at("out/parts")).concat() == all);
}

#[test]
fn group_with_a_source_that_is_not_read_completely_is_not_merged() {
    if program("python3").is_none() {
        return;
    }
    let (folder, names) = sources();
    folder.run("convert two.mbox --output two.mbox.gz");
    folder.run("convert one.mbox --output-format maildir --output maildir");
    for (other, why) in [
        ("two.mbox.gz", "two.mbox.gz"),
        ("missing.mbox", "missing.mbox"),
        ("maildir", "maildir"),
    ] {
        let output = local(&folder, &["--output", "out", names[0], other]);
        assert_eq!(output.status.code(), Some(1), "{other}: {output:?}");
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(parts(&folder.at("out/parts")).is_empty(), "{other}");
        fs::remove_dir_all(folder.at("out")).unwrap();
    }
}

#[test]
fn merge_on_spark_writes_what_embody_merges() {
    if !is_there("merge_on_spark_writes_what_embody_merges") {
        return;
    }
    let (folder, names) = sources();
    let (all, counts) = merged(&folder, &names);
    let output = Command::new("spark-submit")
        .args(["--master", "local[2,4]", "--conf", "spark.ui.enabled=false"])
        .args(["--conf", "spark.ui.showConsoleProgress=false", SCRIPT])
        .args([
            "--output", "out", "--size", "20k", "--groups", "4", "--embody",
        ])
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args(names)
        .current_dir(folder.path())
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("HOME", folder.path())
        .output()
        .unwrap();
    assert_same(&output, &folder, &all, &counts, 4);
}
