//! [`embody::mailbox::Messages`] reads the messages of a mailbox, and writes nothing.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use embody::mailbox::{Messages, Quoting, ReadOptions};
use tempfile::TempDir;

use crate::common::programs::skipped;

const FROM: &str = "From a@example.org Sat Jan  3 01:05:34 1996\n";

fn mail(number: usize) -> String {
    format!("Subject: {number}\n\n{}\n", "text ".repeat(number % 50))
}

fn mbox(count: usize) -> String {
    (1..=count)
        .map(|at| format!("{FROM}{}\n", mail(at)))
        .collect()
}

fn gzipped(content: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(content.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Returns the messages that were read, and the errors.
fn read(source: &Path, options: ReadOptions) -> (Vec<(u64, String)>, Vec<String>) {
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    for message in Messages::new(source, options) {
        match message {
            Ok(message) => {
                let content = String::from_utf8(message.content).unwrap();
                messages.push((message.number, content));
            }
            Err(error) => errors.push(error.to_string()),
        }
    }
    (messages, errors)
}

fn numbered(count: usize) -> Vec<(u64, String)> {
    (1..=count).map(|at| (at as u64, mail(at))).collect()
}

#[test]
fn every_form_gives_its_messages_in_order() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let holds = |name: &str, count: usize| {
        let found = read(&path(name), ReadOptions::default());
        assert_eq!(found, (numbered(count), vec![]), "{name}");
    };
    fs::write(path("in.mbox"), mbox(3000)).unwrap();
    holds("in.mbox", 3000);
    fs::write(path("in.mbox.gz"), gzipped(&mbox(300))).unwrap();
    holds("in.mbox.gz", 300);
    fs::write(path("one.eml"), mail(1)).unwrap();
    holds("one.eml", 1);
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(path("Maildir").join(part)).unwrap();
    }
    for at in 1..=3 {
        fs::write(path(&format!("Maildir/cur/{at}.x:2,S")), mail(at)).unwrap();
    }
    holds("Maildir", 3);

    // All mailboxes in one directory; each has its own numbers.
    let (messages, errors) = read(folder.path(), ReadOptions::default());
    assert_eq!((messages.len(), errors.len()), (3000 + 300 + 1 + 3, 0));
    for message in Messages::new(path("in.mbox"), ReadOptions::default()) {
        let message = message.unwrap();
        assert_eq!(message.source, path("in.mbox"));
        assert_eq!(message.quoting, Quoting::O);
    }
}

#[test]
fn damage_is_an_error_behind_what_was_read_and_the_next_mailbox_follows() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let whole = gzipped(&mbox(20_000));
    fs::write(path("a.mbox.gz"), &whole[..whole.len() / 2]).unwrap();
    fs::write(path("b.mbox"), mbox(2)).unwrap();
    let (messages, errors) = read(folder.path(), ReadOptions::default());
    assert!(messages.len() > 100, "{}", messages.len());
    assert_eq!(messages[messages.len() - 2..], numbered(2));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("a.mbox.gz"), "{errors:?}");

    // The same for messages that are too large, and a source that does not exist.
    let large = format!(
        "{FROM}Subject: large\n\n{}\n{}",
        "x\n".repeat(1 << 20),
        mbox(1)
    );
    fs::write(path("large.mbox"), large).unwrap();
    let options = ReadOptions {
        max_message: 1 << 20,
        ..ReadOptions::default()
    };
    let (messages, errors) = read(&path("large.mbox"), options);
    assert_eq!((messages.len(), errors.len()), (1, 1));
    let mut none = Messages::new(path("none"), ReadOptions::default());
    assert!(none.next().is_some_and(|message| message.is_err()));
    assert!(none.next().is_none() && none.next().is_none());
}

#[test]
fn message_iterator_can_be_dropped_before_the_mailbox_ends() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.mbox");
    fs::write(&path, mbox(200_000)).unwrap();
    let begun = Instant::now();
    let mut messages = Messages::new(&path, ReadOptions::default());
    assert_eq!(messages.next().unwrap().unwrap().number, 1);
    drop(messages);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Runs the programs of examples/ unchanged.
#[test]
fn programs_in_examples_give_the_expected_results() {
    let examples = Path::new(env!("CARGO_BIN_EXE_embody")).with_file_name("examples");
    let names = ["fill", "fetch", "senders", "detach"];
    if !names.iter().all(|name| examples.join(name).is_file()) {
        return skipped(
            "programs_in_examples_give_the_expected_results",
            "examples/ (cargo build --examples)",
        );
    }
    let run = |name: &str, arguments: &[&str], input: &[u8]| {
        let mut child = Command::new(examples.join(name))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{name} {arguments:?}");
        output.stdout
    };
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();

    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let card = fs::read(samples.join("postcard.in.eml")).unwrap();
    let filled = fs::read(samples.join("postcard.out.eml")).unwrap();
    assert!(run("fill", &[], &card) == filled);

    fs::create_dir_all(path("www.example.org")).unwrap();
    fs::write(path("www.example.org/note.txt"), "a note\n").unwrap();
    let mail = "MIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n \
        URL=\"https://www.example.org/a/note.txt\"\n\nContent-Type: text/plain\n\n";
    let filled = run("fetch", &[&path("")], mail.as_bytes());
    let shown = String::from_utf8_lossy(&filled);
    assert!(shown.ends_with("\n\na note\n"), "{shown}");

    let body = "QUJD".repeat(19) + "\n";
    let large = format!(
        "{FROM}From: Ann <ann@example.org>\nMIME-Version: 1.0\nContent-Type: application/pdf\n\
        Content-Transfer-Encoding: base64\n\n{}\n",
        body.repeat(2000)
    );
    let [whole, small, again, store] = ["in.mbox", "small.mbox", "again.mbox", "store"].map(path);
    fs::write(&whole, &large).unwrap();
    let senders = run("senders", &[&whole], b"");
    assert_eq!(
        String::from_utf8_lossy(&senders).trim(),
        "1 ann@example.org"
    );
    run("detach", &[&whole, &small, &store], b"");
    assert!(fs::read(&small).unwrap().len() < 2000);
    run("detach", &["--restore", &small, &again, &store], b"");
    assert!(fs::read(&again).unwrap() == large.as_bytes());
}
