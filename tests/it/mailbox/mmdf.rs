//! MMDF mailboxes: a line of four Control-A characters before and after each message (docs/mailbox-internals.md, "What is
//! mail").

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::mailboxes::{Expand, Look, in_place, to};
use crate::common::programs::{embody, embody_in, program, skipped, stderr};

const LINE: &str = "\x01\x01\x01\x01\n";
const NEW: Expand = Expand("what was\nfetched\n\nFrom far away at 10:00");

fn message(number: usize, body: &str) -> String {
    format!("From: a@example.org\nSubject: {number}\n\n{body}")
}

fn framed(messages: &[String]) -> String {
    let framed = messages.iter().map(|text| format!("{LINE}{text}{LINE}"));
    framed.collect()
}

/// Returns the result, which must be the same in a new file and in place.
fn converted(text: &str, with: &Expand) -> String {
    let folder = TempDir::new().unwrap();
    let (source, out) = (folder.path().join("box"), folder.path().join("out"));
    fs::write(&source, text).unwrap();
    to(&source, &out, with).unwrap();
    in_place(&source, with).unwrap();
    let out = fs::read_to_string(out).unwrap();
    assert_eq!(fs::read_to_string(&source).unwrap(), out);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no lock stays"
    );
    out
}

#[test]
fn mmdf_without_references_is_unchanged_and_a_change_stays_in_its_message() {
    let plain = framed(&[
        message(1, "one\n"),
        format!(
            "From a@b Thu Jan  1 00:00:00 1970\n{}",
            message(2, "two\n\n")
        ),
        String::new(),
        message(
            4,
            "From here\n\nFrom a@b Thu Jan  1 00:00:00 1970\nSubject: text\n",
        ),
    ]);
    for text in [
        plain.clone(),
        plain.replace('\n', "\r\n"),
        plain.clone() + "\n",
        plain.strip_suffix(LINE).unwrap().to_owned(),
    ] {
        let folder = TempDir::new().unwrap();
        let (source, out) = (folder.path().join("box"), folder.path().join("out"));
        fs::write(&source, &text).unwrap();
        let summary = to(&source, &out, &Look).unwrap();
        assert_eq!((summary.messages, summary.changed), (4, 0), "{text:?}");
        assert!(fs::read_to_string(&out).unwrap() == text);
        in_place(&source, &Look).unwrap();
        assert!(fs::read_to_string(&source).unwrap() == text);
    }
    let of = |mark: &str| {
        framed(&[
            message(1, &format!("{mark}\n")),
            message(2, "two\n"),
            message(3, &format!("a\n{mark}\n\n")),
        ])
    };
    // No lines are quoted, because a `From ` line is not a separator here.
    assert_eq!(converted(&of("EXPAND-ME"), &NEW), of(NEW.0));
    // New text does not remove the closing line.
    let cut = format!("{LINE}{}", message(1, "EXPAND-ME"));
    assert_eq!(converted(&cut, &NEW), cut.replace("EXPAND-ME", NEW.0));
}

#[test]
fn separator_line_inside_an_mmdf_message_leaves_that_message_unchanged() {
    let text = framed(&[
        message(1, &format!("EXPAND-ME\n{LINE}inside\n")),
        message(2, "EXPAND-ME\n"),
        message(3, &format!("EXPAND-ME\n{LINE}")),
        message(4, "EXPAND-ME\n"),
        message(5, "EXPAND-ME\n"),
    ]);
    let out = converted(&text, &NEW);
    for (number, changes) in [(1, false), (2, true), (3, true), (4, false), (5, true)] {
        let of = |text: &str| message(number, text);
        assert_eq!(out.contains(&of(NEW.0)), changes, "{number}: {out:?}");
        assert_eq!(out.contains(&of("EXPAND-ME")), !changes, "{number}");
    }
    // New text with such a line is rejected.
    let text = framed(&[message(1, "EXPAND-ME\n")]);
    let forged = Expand("a\n\x01\x01\x01\x01\n\x01\x01\x01\x01\nSubject: forged\n\nb");
    assert_eq!(converted(&text, &forged), text);
}

const COUNT: &str = "\
import mailbox, sys
box = mailbox.MMDF(sys.argv[1], create=False)
for message in box:
    print(message['Subject'], repr(message.get_payload()))
";

fn seen_by_python(path: &Path) -> String {
    let output = Command::new("python3")
        .args(["-c", COUNT])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn python_reads_what_was_written_and_writes_what_is_read() {
    if program("python3").is_none() {
        return skipped("mmdf", "python3");
    }
    let folder = TempDir::new().unwrap();
    let (source, out) = (folder.path().join("box"), folder.path().join("out"));
    let write = "\
import mailbox, sys
box = mailbox.MMDF(sys.argv[1])
for number in range(1, 41):
    body = ('line of %d\\n' % number) * (number * 7) + ('EXPAND-ME\\n' if number % 3 == 0 else '')
    box.add('From: a@example.org\\nSubject: %d\\n\\n%s' % (number, body))
box.flush()
";
    let made = Command::new("python3")
        .args(["-c", write])
        .arg(&source)
        .status();
    assert!(made.unwrap().success());
    let before = seen_by_python(&source);
    assert_eq!(before.lines().count(), 40);
    let new = Expand("what was\nfetched");
    let summary = to(&source, &out, &new).unwrap();
    assert_eq!((summary.messages, summary.changed), (40, 13));
    let expected = before.replace("EXPAND-ME", "what was\\nfetched");
    assert_eq!(seen_by_python(&out), expected);
    in_place(&source, &new).unwrap();
    assert_eq!(seen_by_python(&source), expected);
}

#[test]
fn mmdf_is_read_from_a_file_a_folder_and_a_stream() {
    let folder = TempDir::new().unwrap();
    let body = |what: &str| {
        format!(
            "From: a@example.org\nSubject: 1\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
             {what}\n--b--\n"
        )
    };
    let external = "Content-Type: message/external-body; access-type=local-file; name=\"/x\"\n\n\
                    Content-Type: text/plain\n\n";
    let text = framed(&[body(external), message(2, "two\n")]);
    fs::write(folder.path().join("box"), &text).unwrap();
    let run = |arguments: &[&str]| {
        let output = embody()
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["inspect", "box"]).starts_with("1 mailbox, 2 messages"));
    assert!(run(&["inspect", "."]).starts_with("1 mailbox, 2 messages"));
    assert_eq!(run(&["convert", "box", "--output", "-"]), text);
    run(&["convert", "--format", "mmdf", "box", "--output", "out.gz"]);
    run(&["convert", "out.gz", "--output", "back"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("back")).unwrap(),
        text
    );
    let refused = embody()
        .args(["convert", "--format", "mbox", "--in-place", "box"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--format auto or mmdf"));
}

#[test]
fn mmdf_with_one_line_between_two_messages_is_named_and_its_advice_makes_it_readable() {
    let header = |number: usize| {
        format!(
            "From: a@example.org\nSubject: m{number}\nDate: Mon, 6 Jan 2020 10:00:00 +0000\nMessage-ID: <{number}@x>\n"
        )
    };
    let hosts = [
        "\ntext\n".to_owned(),
        "Content-Type: application/octet-stream; name=a\nContent-Transfer-Encoding: 8bit\n\nx\n".to_owned(),
        "Content-Disposition: attachment; filename=x.box\n\nx\n".to_owned(),
        "Content-Type: multipart/mixed; boundary=q\n\n--q\nContent-Type: application/octet-stream\n\nx\n".to_owned(),
        format!("\n{}", "long line\n".repeat(200_000)),
    ];
    for host in &hosts {
        for before in ["", "From a@b Mon Jan  6 10:00:00 2020\n"] {
            for ending in ["\n", "\r\n"] {
                let message = |number: usize| format!("{before}{}{host}", header(number));
                let joined = [1, 2, 3].map(message).join(LINE);
                let text = format!("{LINE}{joined}{LINE}").replace('\n', ending);
                let folder = tempfile::tempdir().unwrap();
                let at = folder.path();
                fs::write(at.join("box"), &text).unwrap();
                let arguments = [
                    "convert",
                    "box",
                    "--output-format",
                    "maildir",
                    "--output",
                    "new",
                ];
                let done = embody_in(at, &arguments);
                let said = stderr(&done);
                assert_eq!(done.status.code(), Some(1), "{said}");
                // With separators, the messages after the line can also be an mbox that was appended.
                if said.contains(": an mbox, from byte") && !before.is_empty() {
                    continue;
                }
                let (_, advice) = said
                    .split_once("for example with sed ")
                    .unwrap_or_else(|| panic!("{said}"));
                let (options, _) = advice.split_once(", and read").unwrap();
                let mended = Command::new("sh")
                    .current_dir(at)
                    .args(["-c", &format!("sed {options} box > mended")])
                    .status();
                assert!(mended.unwrap().success(), "{options}");
                let done = embody_in(
                    at,
                    &[
                        "convert",
                        "mended",
                        "--output-format",
                        "maildir",
                        "--output",
                        "all",
                    ],
                );
                let said = stderr(&done);
                assert!(done.status.success(), "{said}");
                assert_eq!(
                    fs::read_dir(at.join("all/new")).unwrap().count(),
                    3,
                    "{said}"
                );
            }
        }
    }
}
