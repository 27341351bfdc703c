//! Ranges of mboxes: their results together are the result of a single run.

use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::bounded::finished;
use crate::common::mailboxes::Expand;
use crate::common::programs::embody;
use crate::common::reports;
use embody::mailbox::{Conversion, Options, ReadOptions, Summary};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

const DATE: &str = "Thu Jan  1 00:00:00 1970";

/// Returns lines of mailboxes, including everything that may look like the start of a message or like its length.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => Just(format!("From a@b {DATE}\nSubject: EXPAND-ME\n")),
        2 => Just(format!("\nFrom a@b {DATE}\r\nSubject: x\r\n\r\nEXPAND-ME\r\n")),
        1 => Just(format!("From a@b {DATE}\nFrom : 10:00\nFrom x {DATE}\n")),
        1 => Just("From here on\nwe walk\n".to_owned()),
        1 => Just(">From z 10:00\n>>From z\n".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        2 => Just("EXPAND-ME\n".to_owned()),
        1 => (0_usize..900).prop_map(|n| format!("Content-Length: {n}\n")),
        3 => (0_usize..3, 0_usize..400).prop_map(|(hidden, n)| {
            let line = format!("\nFrom a@b {DATE}\nSubject: s\n");
            let body = format!("EXPAND-ME {}{}\n", line.repeat(hidden), "x".repeat(n));
            let length = body.len();
            format!("From a@b {DATE}\nContent-Length: {length}\n\n{body}\n")
        }),
        1 => (1_usize..3000).prop_map(|n| "y".repeat(n)),
    ];
    let lines = proptest::collection::vec(line, 0..40);
    // Messages with correct lengths, first or alone. The next messages may be found by lengths, until one is wrong.
    let counted = |number: usize| {
        let body = format!("EXPAND-ME\n\nFrom a@b {DATE}\nSubject: {number}\n");
        let length = body.len();
        format!("From a@b {DATE}\nContent-Length: {length}\n\n{body}\n")
    };
    (lines, 0_usize..9, 0_usize..4)
        .prop_map(move |(lines, before, kind)| match kind {
            0 => (0..before)
                .map(counted)
                .chain([format!("From a@b {DATE}\n")])
                .chain(lines)
                .collect(),
            1 => (0..before + 2).map(counted).collect(),
            _ => format!("From a@b {DATE}\n{}", lines.concat()),
        })
        .prop_map(String::into_bytes)
}

fn converted(source: &Path, target: &Path, range: Option<Range<u64>>) -> Result<Summary, String> {
    let options = Options {
        read: ReadOptions {
            range,
            window: 2048,
            jobs: 2,
            ..ReadOptions::default()
        },
        ..Options::default()
    };
    let with = Expand("expanded\nFrom here\n");
    Conversion::of(source)
        .to(target)
        .options(&options)
        .run(&with, &())
        .map_err(|error| error.to_string())
}

#[test]
fn concatenated_ranges_equal_one_run_for_any_cuts_and_their_counts_add_up() {
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut refused, mut without_start) = (0, 0, 0);
    for _ in 0..150 {
        let mailbox = lines().new_tree(&mut runner).unwrap().current();
        let offsets = proptest::collection::vec(0..=mailbox.len() as u64, 0..9);
        let mut cuts = offsets.new_tree(&mut runner).unwrap().current();
        cuts.extend([0, mailbox.len() as u64]);
        cuts.sort_unstable();
        let folder = tempfile::tempdir().unwrap();
        let (source, whole) = (folder.path().join("in"), folder.path().join("whole"));
        fs::write(&source, &mailbox).unwrap();
        let all = converted(&source, &whole, None).unwrap();
        let (mut joined, mut sum) = (Vec::new(), Summary::default());
        let mut no = 0;
        let parts = cuts.windows(2).count();
        for (number, cut) in cuts.windows(2).enumerate() {
            let part = folder.path().join(format!("part-{number}"));
            match converted(&source, &part, Some(cut[0]..cut[1])) {
                Ok(summary) => {
                    let octets = fs::read(&part).unwrap();
                    without_start += usize::from(octets.is_empty());
                    joined.extend(octets);
                    sum.add(&summary);
                }
                Err(why) => {
                    assert!(why.contains("the Content-Length fields decide"), "{why}");
                    assert!(!part.exists());
                    no += 1;
                }
            }
        }
        if no > 0 {
            // A mailbox is divided everywhere or not at all.
            let is_all = |cut: &&[u64]| cut[0] == 0 && cut[1] >= mailbox.len() as u64;
            let whole = cuts.windows(2).filter(is_all).count();
            assert_eq!(no + whole, parts);
            refused += 1;
            continue;
        }
        assert_eq!(
            String::from_utf8_lossy(&joined),
            String::from_utf8_lossy(&fs::read(&whole).unwrap())
        );
        let counts = |it: &Summary| (it.messages, it.changed, it.bytes_in, it.bytes_out);
        assert_eq!(counts(&sum), counts(&all));
        compared += 1;
    }
    assert!(
        compared > 80 && refused > 15 && without_start > 50,
        "{compared} {refused} {without_start}"
    );
}

fn mailbox(messages: usize) -> String {
    let message = |number| {
        format!(
            "From a@b {DATE}\nMessage-ID: <{number}@x>\nSubject: s\nMIME-Version: 1.0\nContent-Type: \
             message/external-body; access-type=URL;\n URL=\"data:text/plain,{number}%0AFrom here\"\n\n\
             Content-Type: text/plain\n\n{}\n",
            ">From x\n".repeat(number % 17)
        )
    };
    (0..messages).map(message).collect()
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    embody()
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the output of `split` for files in a directory.
fn split(arguments: &[&str], folder: &Path) -> Vec<serde_json::Value> {
    let output = run(&[&["split"], arguments].concat(), folder);
    assert!(output.status.success(), "{output:?}");
    let lines = text(&output.stdout);
    lines.lines().map(reports::object).collect()
}

#[test]
fn converting_the_ranges_of_split_gives_the_result_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("box"), mailbox(300)).unwrap();
    let whole = [
        "convert", "--quiet", "--report", "rows", "--output", "whole", "box",
    ];
    assert!(run(&whole, path).status.success());
    let ranges = split(&["--size", "5000", "--count", "box"], path);
    assert!(ranges.len() > 10);
    let (mut joined, mut messages, mut end) = (Vec::new(), 0, 0);
    for (number, range) in ranges.iter().enumerate() {
        let octets = |name: &str| range[name].as_u64().unwrap();
        assert_eq!(octets("from"), end);
        end = octets("to");
        // The Message-ID in the range is that of its first message.
        let start = &mailbox(300)[octets("from") as usize..];
        let id = range["message_id"].as_str().unwrap();
        assert!(start.lines().nth(1).unwrap().contains(id), "{id}");
        assert_eq!(range["quoting"], "mboxo");
        messages += octets("messages");
        let (part, of) = (
            format!("part-{number}"),
            format!("{}-{end}", octets("from")),
        );
        let expect = format!("{}:{}", octets("length"), range["mtime"].as_str().unwrap());
        let rest = ["--report", "rows.parts", "--output", &part, "box"];
        let arguments = [
            &["convert", "--quiet", "--range", &of, "--expect", &expect],
            &rest[..],
        ];
        let output = run(&arguments.concat(), path);
        assert!(output.status.success(), "{output:?}");
        joined.extend(fs::read(path.join(part)).unwrap());
    }
    assert_eq!((messages, end), (300, mailbox(300).len() as u64));
    assert!(joined == fs::read(path.join("whole")).unwrap());
    let rows = |name: &str| -> Vec<serde_json::Value> {
        let text = fs::read_to_string(path.join(name)).unwrap();
        text.lines().map(reports::object).collect()
    };
    let (all, parts) = (rows("rows"), rows("rows.parts"));
    assert_eq!(all.len(), 300);
    assert_eq!(all.len(), parts.len());
    for (one, part) in all.iter().zip(&parts) {
        assert_eq!(one["message_id"], part["message_id"]);
        assert_eq!(one["outcome"], part["outcome"]);
        assert!(one.get("range").is_none());
        assert_eq!(part["length"], ranges[0]["length"]);
        assert_eq!(part["mtime"], ranges[0]["mtime"]);
    }
    // Messages are counted from 1 in each range.
    let first: Vec<_> = parts.iter().filter(|row| row["index"] == 1).collect();
    assert_eq!(first.len(), ranges.len());
    assert_eq!(
        first[1]["range"],
        format!("{}-{}", ranges[1]["from"], ranges[1]["to"])
    );
}

#[test]
fn a_range_without_a_start_is_an_empty_file_and_a_dry_run_writes_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mailbox(3)).unwrap();
    let args = |more: [&'static str; 4]| [&["convert"], &more[..], &["box"]].concat();
    let output = run(&args(["--range", "5-9", "--output", "part"]), folder.path());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(folder.path().join("part")).unwrap(), b"");
    let output = run(&args(["--range", "0-9", "--output", "-"]), folder.path());
    let first = mailbox(3).find("\nFrom a@b").unwrap() + 1;
    let one = text(&output.stdout);
    assert!(
        output.status.success() && one.contains("<0@x>") && !one.contains("<1@x>"),
        "{one}"
    );
    let dry = [
        "convert",
        "--range",
        &format!("{first}-"),
        "--dry-run",
        "--output",
        "none",
        "box",
    ];
    let output = run(&dry, folder.path());
    let said = text(&output.stderr);
    assert!(
        said.contains("2 messages") && !folder.path().join("none").exists(),
        "{said}"
    );
}

#[test]
fn unsplittable_source_is_one_range_and_any_other_range_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let body = format!("one\n\nFrom a@b {DATE}\nSubject: inside\n");
    let counted = format!(
        "From a@b {DATE}\nSubject: x\nContent-Length: {}\n\n{body}\n",
        body.len()
    );
    fs::write(path.join("mboxcl2"), counted.repeat(4)).unwrap();
    fs::write(path.join("one.eml"), "Subject: x\nMessage-ID: <0@x>\n\nx\n").unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(mailbox(5).as_bytes()).unwrap();
    fs::write(path.join("box.gz"), encoder.finish().unwrap()).unwrap();
    for (name, quoting, why, messages, id) in [
        ("mboxcl2", Some("mboxcl2"), "Content-Length", 4, None),
        ("one.eml", None, "single message", 1, Some("<0@x>")),
        ("box.gz", Some("mboxo"), "compressed", 5, Some("<0@x>")),
    ] {
        let ranges = split(&["--size", "50", "--count", name], path);
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        assert_eq!(ranges[0]["quoting"].as_str(), quoting);
        assert_eq!(ranges[0]["messages"], messages);
        assert_eq!(ranges[0]["message_id"].as_str(), id);
        assert!(ranges[0]["whole"].as_str().unwrap().contains(why));
        let length = ranges[0]["length"].as_u64().unwrap();
        for (range, is_all) in [
            ("0-".to_owned(), true),
            (format!("0-{length}"), true),
            (format!("0-{}", length - 1), false),
            ("10-".to_owned(), false),
        ] {
            let part = format!("{name}.{range}");
            let whole = format!("{name}.whole");
            let output = run(
                &["convert", "--range", &range, "--output", &part, name],
                path,
            );
            assert_eq!(
                output.status.code(),
                Some(if is_all { 0 } else { 2 }),
                "{output:?}"
            );
            let _ = fs::remove_file(path.join(&whole));
            run(&["convert", "--output", &whole, name], path);
            let written = fs::read(path.join(part)).ok();
            assert_eq!(written, is_all.then(|| fs::read(path.join(whole)).unwrap()));
            assert!(is_all || text(&output.stderr).contains(why), "{output:?}");
        }
    }
}

#[test]
fn split_names_skipped_files_and_fails_on_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("mail/box.d/cur")).unwrap();
    fs::create_dir_all(path.join("mail/box.d/new")).unwrap();
    fs::write(path.join("mail/box"), mailbox(3)).unwrap();
    fs::write(path.join("mail/notes"), "Dear all,\n").unwrap();
    let output = run(&["split", "mail"], path);
    assert_eq!(text(&output.stdout).lines().count(), 1);
    let said = text(&output.stderr);
    assert!(said.contains("mail/notes: skipped: text without mail in its first 64 KiB"));
    assert!(
        said.contains("mail/box.d: a folder of messages cannot be divided into ranges"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(2));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(mailbox(50).as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    fs::write(path.join("half.gz"), &packed[..packed.len() / 2]).unwrap();
    let output = run(&["split", "--count", "half.gz"], path);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("of the compressed data"));
}

#[test]
fn ranges_of_folders_streams_and_several_files_and_in_place_are_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for name in ["cur", "new", "tmp"] {
        fs::create_dir_all(path.join("Maildir").join(name)).unwrap();
    }
    fs::create_dir(path.join("folder")).unwrap();
    for name in ["box", "folder/box"] {
        fs::write(path.join(name), mailbox(3)).unwrap();
    }
    let to = ["convert", "--range", "0-100", "--output", "none"];
    for (arguments, why) in [
        ([&to[..], &["Maildir"]].concat(), "for one mbox"),
        ([&to[..], &["folder"]].concat(), "for one mbox"),
        ([&to[..], &["box", "box"]].concat(), "for one mbox"),
        (
            vec!["convert", "--range", "0-100", "--in-place", "box"],
            "--in-place",
        ),
        (
            vec!["convert", "--range", "9-1", "--output", "none", "box"],
            "ends before its start",
        ),
        (
            vec!["convert", "--range", "0-1k", "--output", "none", "box"],
            "is not a range",
        ),
        (
            vec!["convert", "--expect", "5", "--output", "none", "box"],
            "--range",
        ),
        (vec!["split", "Maildir"], "cannot be divided into ranges"),
        (vec!["split", "-"], "standard input"),
        (vec!["split", "--size", "0", "box"], "--size"),
    ] {
        let output = run(&arguments, path);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {output:?}");
        assert!(text(&output.stderr).contains(why), "{output:?}");
        assert!(!path.join("none").exists());
        assert_eq!(fs::read_to_string(path.join("box")).unwrap(), mailbox(3));
    }
    let mut child = embody()
        .args([&to[..], &["-"]].concat())
        .current_dir(path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(mailbox(3).as_bytes())
        .unwrap();
    let output = finished(child);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).contains("standard input"),
        "{output:?}"
    );
}

#[test]
fn a_source_that_changed_since_it_was_split_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("box"), mailbox(9)).unwrap();
    let line = &split(&["box"], path)[0];
    let (length, mtime) = (
        line["length"].as_u64().unwrap(),
        line["mtime"].as_str().unwrap(),
    );
    let with = |expect: String| {
        let _ = fs::remove_file(path.join("part"));
        let of = [
            "convert", "--range", "0-100", "--expect", &expect, "--output", "part", "box",
        ];
        let output = run(&of, path);
        let is_refused = text(&output.stderr).contains("changed after embody split it");
        assert_eq!(is_refused, output.status.code() == Some(1), "{output:?}");
        assert_eq!(is_refused, !path.join("part").exists());
        is_refused
    };
    assert!(!with(length.to_string()) && !with(format!("{length}:{mtime}")));
    assert!(with(format!("{}", length + 1)));
    assert!(with(format!("{length}:17.000000000")));
    // The file has the same length, but another modification time.
    let other = mailbox(9).replace("Subject: s", "Subject: t");
    fs::write(path.join("box"), other).unwrap();
    let touched = Command::new("touch")
        .args(["-d", "2001-02-03"])
        .arg(path.join("box"))
        .status();
    assert!(touched.unwrap().success());
    assert!(with(format!("{length}:{mtime}")) && !with(length.to_string()));
}
