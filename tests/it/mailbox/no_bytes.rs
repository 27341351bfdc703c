//! A message of no bytes, such as a separator line without a message after it, is one message in every format and for
//! every command.

use std::fs;
use std::path::Path;

use crate::common::folder::Folder;

const SEPARATOR: &str = "From ann@example.org Mon Jan  2 10:00:00 2023\n";

fn mail(number: usize) -> String {
    format!(
        "From: Ann Bee <ann@example.org>\nSubject: plan\nDate: Mon, 2 Jan 2023 10:00:00 +0000\n\
         Message-ID: <{number}@example.org>\n\nx\n\n"
    )
}

/// Returns the number of files of no bytes in a result.
fn empty_files(path: &Path) -> usize {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        return entries.map(|it| empty_files(&it.unwrap().path())).sum();
    }
    usize::from(fs::metadata(path).unwrap().len() == 0)
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else if path.exists() {
        fs::remove_file(path).unwrap();
    }
}

/// Asserts that all commands count these messages in a source, and in the source in every other format.
#[track_caller]
fn assert_counted(folder: &Folder, source: &str, count: usize, distinct: usize) {
    let word = if count == 1 { "message" } else { "messages" };
    let inspected = folder.output(&format!("inspect {source}"));
    let first = String::from_utf8(inspected.stdout).unwrap();
    assert!(
        first.contains(&format!(" {count} {word}, ")),
        "{source}: {first}"
    );
    for form in ["mbox", "thunderbird", "maildir", "eml"] {
        remove(&folder.at("out"));
        let said = folder.run(&format!(
            "convert {source} --output-format {form} --output out"
        ));
        let read = format!("{count} {word} read");
        assert!(said.contains(&read), "{source}, {form}: {said}");
        let compared = folder.output(&format!("compare {source} out"));
        assert_eq!(compared.status.code(), Some(0), "{source}, {form}");
        let text = String::from_utf8(compared.stdout).unwrap();
        let both = format!("{count} {word} in {source}, {count} {word} in out.");
        assert!(text.contains(&both), "{source}, {form}: {text}");
        let inspected = folder.output("inspect out");
        let text = String::from_utf8(inspected.stdout).unwrap();
        assert!(
            text.contains(&format!(" {count} {word}, ")),
            "{source}, {form}: {text}"
        );
        for source in [source, "out"] {
            remove(&folder.at("all.mbox"));
            let line = format!("merge {source} --flat --output-format mbox --output all.mbox");
            let said = folder.run(&line);
            let words = format!("{count} {word} in 1 source, {distinct} mail");
            assert!(said.contains(&words), "{source}, {form}: {said}");
            folder.run(&format!("compare --merged {source} all.mbox"));
        }
    }
}

#[test]
fn separator_without_a_message_is_one_message_in_every_format() {
    let folder = Folder::new();
    let (one, other) = (mail(1), mail(2));
    for (what, text, count, distinct) in [
        ("alone", SEPARATOR.to_owned(), 1, 1),
        (
            "without a line ending",
            SEPARATOR.trim_end().to_owned(),
            1,
            1,
        ),
        ("with CR LF", SEPARATOR.replace('\n', "\r\n"), 1, 1),
        ("with empty lines", format!("{SEPARATOR}\n\n\n"), 1, 1),
        ("twice", format!("{SEPARATOR}\n{SEPARATOR}\n"), 2, 1),
        (
            "at the start",
            format!("{SEPARATOR}\n{SEPARATOR}{one}"),
            2,
            2,
        ),
        ("at the end", format!("{SEPARATOR}{one}{SEPARATOR}"), 2, 2),
        (
            "in the middle",
            format!("{SEPARATOR}{one}{SEPARATOR}\n{SEPARATOR}{other}"),
            3,
            3,
        ),
    ] {
        println!("{what}");
        folder.write("in", text);
        assert_counted(&folder, "in", count, distinct);
        remove(&folder.at("out"));
        folder.run("convert in --output-format maildir --output out");
        assert_eq!(empty_files(&folder.at("out")), 0, "{what}");
    }
}

#[test]
fn mmdf_message_of_no_bytes_is_one_message_in_every_format() {
    let folder = Folder::new();
    let line = "\u{1}\u{1}\u{1}\u{1}\n";
    folder.write("in", format!("{line}{line}{line}{}{line}", mail(1)));
    assert_counted(&folder, "in", 2, 2);
}

#[test]
fn empty_file_in_a_maildir_is_one_message_in_every_format() {
    let folder = Folder::new();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.at("in").join(part)).unwrap();
    }
    folder.write("in/cur/1.a.host:2,S", mail(1));
    folder.write("in/new/2.a.host", "");
    assert_counted(&folder, "in", 2, 2);
}

#[test]
fn empty_file_with_the_name_of_a_message_is_named_and_is_no_message_for_any_command() {
    let folder = Folder::new();
    folder.write("in.eml", "");
    for line in [
        "inspect in.eml",
        "convert in.eml --output-format maildir --output md",
        "convert in.eml --output copy.eml",
        "convert in.eml --in-place",
    ] {
        let said = folder.run(line);
        assert!(
            said.contains("in.eml: skipped: an empty file"),
            "{line}: {said}"
        );
    }
    assert_eq!(folder.read("copy.eml"), "");
    assert_eq!(folder.read("in.eml"), "");
    let compared = folder.output("compare in.eml copy.eml");
    let text = String::from_utf8(compared.stdout).unwrap();
    assert!(
        text.contains("0 messages in in.eml, 0 messages in copy.eml"),
        "{text}"
    );
}
