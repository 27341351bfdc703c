//! `embody inspect --duplicates` counts what `embody merge` and `embody recover --copies` would do, and writes nothing.

use std::fs;

use serde_json::Value;

use super::merge::{
    MergeFolder as _, base64, deleted, file, text, three_copies, tree, whole, with_part,
};
use crate::common::folder::Folder;
use crate::common::programs::stderr;
use crate::common::reports;

fn duplicates(folder: &Folder, sources: &str) -> Value {
    let line = format!("inspect --duplicates --json {sources}");
    let output = folder.output(&line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{line}");
    let mut value = reports::object(&output.stdout);
    value["duplicates"].take()
}

/// Returns the number of missing parts that `recover --copies` fills in each of the sources, with all of them as copies.
fn filled(folder: &Folder, sources: &[&str]) -> u64 {
    let copies: Vec<String> = sources.iter().map(|it| format!("--copies {it}")).collect();
    let count = sources.iter().enumerate().map(|(number, source)| {
        let line = format!(
            "recover --offline --quiet {source} --output filled-{number} --report rows-{number} {}",
            copies.join(" ")
        );
        let output = folder.output(&line);
        assert!(
            output.status.code().is_some_and(|status| status < 2),
            "{line}: {}",
            stderr(&output)
        );
        let report = folder.read(&format!("rows-{number}"));
        let rows = report.lines().map(reports::object);
        rows.filter(|row| row["from"] == "copy" && row["outcome"] == "expanded")
            .count() as u64
    });
    count.sum()
}

fn forged(number: usize) -> String {
    with_part(
        number,
        &format!(
            "Content-Type: application/pdf; name=a{number}.pdf\nContent-Transfer-Encoding: base64\n\n{}",
            base64(&file(number + 1))
        ),
    )
}

/// Returns directories of mailboxes with copies of different kinds, and the names of the mailboxes.
fn cases() -> Vec<(Folder, Vec<&'static str>)> {
    let several = Folder::new();
    several.write_mbox("a.mbox", &[deleted(1), whole(2), text(3, "a")]);
    several.write_mbox(
        "b.mbox",
        &[deleted(1), deleted(2), text(3, "b"), text(4, "c")],
    );
    several.write_mbox(
        "c.mbox",
        &[whole(1), format!("Received: x\n{}", whole(2)), deleted(1)],
    );
    let ambiguous = Folder::new();
    ambiguous.write_mbox("a.mbox", &[deleted(1)]);
    ambiguous.write_mbox("b.mbox", &[whole(1)]);
    ambiguous.write_mbox("c.mbox", &[forged(1)]);
    let alone = Folder::new();
    alone.write_mbox("a.mbox", &[text(1, "a"), text(1, "a"), text(2, "b")]);
    vec![
        (
            three_copies(),
            vec!["takeout.mbox", "thunderbird.mbox", "maildir"],
        ),
        (several, vec!["a.mbox", "b.mbox", "c.mbox"]),
        (ambiguous, vec!["a.mbox", "b.mbox", "c.mbox"]),
        (alone, vec!["a.mbox"]),
    ]
}

#[test]
fn duplicates_of_several_sources_are_counted_as_by_merge_and_by_its_dry_run() {
    for (folder, sources) in cases() {
        let sources = sources.join(" ");
        let before = tree(folder.path());
        let mut counts = duplicates(&folder, &sources);
        assert_eq!(tree(folder.path()), before);
        let line = format!("merge {sources} --output all");
        assert_eq!(folder.counts(&format!("{line} --dry-run")), counts);
        counts.as_object_mut().unwrap().remove("fillable").unwrap();
        assert_eq!(folder.counts(&line), counts, "{sources}");
        assert_eq!(
            counts["bytes"].as_u64().unwrap() - counts["kept_bytes"].as_u64().unwrap(),
            counts["saved_bytes"].as_u64().unwrap()
        );
    }
}

#[test]
fn parts_that_copies_would_fill_are_those_that_recover_fills() {
    let expected = [4, 4, 0, 0];
    for ((folder, sources), expected) in cases().into_iter().zip(expected) {
        let counts = duplicates(&folder, &sources.join(" "));
        assert_eq!(counts["fillable"], expected, "{counts}");
        assert_eq!(filled(&folder, &sources), expected, "{counts}");
    }
}

#[test]
fn mails_in_several_sources_are_counted_once_and_for_each_pair() {
    let folder = Folder::new();
    folder.write_mbox("a.mbox", &[whole(1), whole(2), whole(3), whole(3)]);
    folder.write_mbox("b.mbox", &[whole(1), whole(2), whole(4)]);
    folder.write_mbox("c.mbox", &[whole(1), whole(5)]);
    let counts = duplicates(&folder, "a.mbox b.mbox c.mbox");
    assert_eq!(
        (counts["messages"].as_u64(), counts["kept"].as_u64()),
        (Some(9), Some(5))
    );
    assert_eq!(counts["shared"], 2);
    let pairs: Vec<(&str, &str, u64)> = counts["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let name = |at: usize| pair["sources"][at].as_str().unwrap();
            (name(0), name(1), pair["mails"].as_u64().unwrap())
        })
        .collect();
    let expected = [
        ("a.mbox", "b.mbox", 2),
        ("a.mbox", "c.mbox", 1),
        ("b.mbox", "c.mbox", 1),
    ];
    assert_eq!(pairs, expected);
    // Copies 1, 1, 2 and 3 are identical, so exactly their lengths are saved.
    let saved: usize = [1, 1, 2, 3].iter().map(|number| whole(*number).len()).sum();
    assert_eq!(counts["saved_bytes"], saved as u64);

    let output = folder.output("inspect --duplicates a.mbox b.mbox c.mbox");
    let said = String::from_utf8(output.stdout).unwrap();
    for line in [
        "9 messages in 3 sources, 5 different mails.\n",
        "4 additional copies (",
        ") that embody merge would leave out: 4 identical to another copy, 0 different but not more complete.\n",
        "2 mails are in more than one source.\n",
        "2 mails are in both a.mbox and b.mbox.\n",
        "1 mail is in both b.mbox and c.mbox.\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
}

#[test]
fn source_that_cannot_be_read_is_named_and_the_others_are_counted() {
    let folder = Folder::new();
    folder.write_mbox("a.mbox", &[whole(1)]);
    folder.write_mbox("b.mbox", &[whole(1), whole(2)]);
    folder.write("text", "no mail\n");
    folder.run("convert b.mbox --output b.mbox.gz");
    let mut packed = fs::read(folder.at("b.mbox.gz")).unwrap();
    packed.truncate(packed.len() - 9);
    fs::write(folder.at("torn.mbox.gz"), packed).unwrap();
    for missing in ["missing.mbox", "text", "torn.mbox.gz"] {
        let output = folder.output(&format!(
            "inspect --duplicates --json {missing} a.mbox b.mbox"
        ));
        assert_eq!(output.status.code(), Some(1), "{missing}");
        assert!(stderr(&output).contains(missing), "{}", stderr(&output));
        // The lines before the last one name the files that were not read.
        let value = reports::objects(&output.stdout).pop().unwrap();
        let counts = &value["duplicates"];
        assert!(counts["kept"].as_u64() >= Some(2), "{counts}");
        let pairs = counts["pairs"].as_array().unwrap();
        let pair = pairs
            .iter()
            .find(|it| it["sources"][0] == "a.mbox")
            .unwrap();
        assert_eq!(
            (&pair["sources"][1], &pair["mails"]),
            (&"b.mbox".into(), &1.into())
        );
    }
}

#[test]
fn options_that_duplicates_would_ignore_are_refused() {
    let folder = Folder::new();
    folder.write_mbox("a.mbox", &[whole(1)]);
    for line in [
        "inspect --duplicates",
        "inspect --duplicates -",
        "inspect --duplicates a.mbox --html page.html",
        "inspect --duplicates a.mbox --by year",
        "inspect --duplicates a.mbox --messages",
        "inspect --duplicates a.mbox --probe",
        "inspect --duplicates a.mbox --folder x",
    ] {
        let output = folder.output(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}");
    }
}
