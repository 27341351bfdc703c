//! `inspect --messages` prints mailboxes for other programs. Each message is printed byte for byte, and no content can be
//! mistaken for the next message.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::archives::{tar, zip};
use crate::common::mailboxes::Numbers;
use crate::common::programs::{done, embody, embody_in, fed};
use crate::common::reports;

/// The facts in a line, and the bytes after it.
struct Printed {
    source: String,
    index: u64,
    content: Vec<u8>,
}

/// Parses the output to its end.
fn printed(mut output: &[u8]) -> Vec<Printed> {
    let mut all = Vec::new();
    while !output.is_empty() {
        let end = memchr::memchr(b'\n', output).expect("a line has an end");
        let head = reports::object(&output[..end]);
        let octets = usize::try_from(head["bytes"].as_u64().unwrap()).unwrap();
        let (content, rest) = output[end + 1..].split_at(octets);
        assert_eq!(head.as_object().unwrap().len(), 4, "{head}");
        all.push(Printed {
            source: head["source"].as_str().unwrap().to_owned(),
            index: head["index"].as_u64().unwrap(),
            content: content.to_owned(),
        });
        output = rest.strip_prefix(b"\n").expect("a line end");
    }
    all
}

fn messages(folder: &Path, sources: &[&str]) -> (Vec<Printed>, Output) {
    let output = embody_in(folder, &[&["inspect", "--messages"], sources].concat());
    (printed(&output.stdout), output)
}

/// Returns mails with text that is special in some format: separators, lines of this output format, line endings, NULs.
fn mails() -> Vec<Vec<u8>> {
    let bodies: [&[u8]; 9] = [
        b"hello\n",
        b"",
        b"\nFrom a@example.org Sat Jan  3 01:05:34 1996\n\n>From him\n>>From her\n>>>From them\n",
        b"{\"source\":\"m\",\"index\":9,\"bytes\":5}\nhello\n\n{\"source\":\"m\",\"index\":10,\"bytes\":0}\n\n",
        b"\x01\x01\x01\nnul \0 and \xff\xfe 8-bit\nbare \r in a line\n",
        b"--b\nContent-Type: message/external-body; access-type=URL; URL=\"data:,put%20in\"\n\nContent-Type: text/plain\n\n--b--\n",
        b"\n\n\n",
        b"line\nFrom \nFrom\n>From\n",
        b"last\n",
    ];
    let mut numbers = Numbers(7);
    let mut mails: Vec<Vec<u8>> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| {
            let header = format!("From: a@example.org\nSubject: mail {number}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n");
            [header.as_bytes(), body].concat()
        })
        .collect();
    // The message is larger than a window and a pipe.
    let mut large = b"From: a@example.org\nSubject: large\n\n".to_vec();
    for _ in 0..20_000 {
        large.extend(format!("{} From here\n", numbers.below(1 << 60)).bytes());
    }
    mails.push(large);
    let crlf = String::from_utf8(mails[2].clone()).unwrap();
    mails.push(crlf.replace('\n', "\r\n").into_bytes());
    mails
}

#[test]
fn every_form_gives_the_octets_of_its_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mails = mails();
    fs::create_dir(path.join("messages")).unwrap();
    for (number, mail) in mails.iter().enumerate() {
        fs::write(path.join(format!("messages/{number:04}.eml")), mail).unwrap();
    }
    // A mailbox without embody: a separator, mboxrd quoting, and an empty line.
    let mut mbox = Vec::new();
    let mut mmdf = Vec::new();
    fs::create_dir_all(path.join("Maildir/cur")).unwrap();
    fs::create_dir_all(path.join("Maildir/new")).unwrap();
    for (number, mail) in mails.iter().enumerate() {
        let end: &[u8] = if mail.ends_with(b"\r\n") {
            b"\r\n"
        } else {
            b"\n"
        };
        mbox.extend([b"From a@example.org Sat Jan  3 01:05:34 1996", end].concat());
        for line in mail.split_inclusive(|octet| *octet == b'\n') {
            let bare = line.iter().position(|octet| *octet != b'>').unwrap_or(0);
            if line[bare..].starts_with(b"From ") {
                mbox.push(b'>');
            }
            mbox.extend(line);
        }
        mbox.extend(end);
        mmdf.extend([b"\x01\x01\x01\x01\n", &mail[..], b"\x01\x01\x01\x01\n"].concat());
        let name = format!("Maildir/cur/{:010}.{number}.x:2,S", 1000 + number);
        fs::write(path.join(name), mail).unwrap();
    }
    fs::write(path.join("m.mbox"), &mbox).unwrap();
    fs::write(path.join("m.mmdf"), &mmdf).unwrap();
    fs::write(path.join("m.zip"), zip(&[("Takeout/Mail/m.mbox", &mbox)])).unwrap();
    fs::write(path.join("m.tar"), tar(&[("Mail/m.mbox", b'0', &mbox)])).unwrap();
    for (name, method) in [
        ("m.mbox.gz", "gz"),
        ("m.mbox.zst", "zst"),
        ("m.mbox.xz", "xz"),
    ] {
        let made = embody_in(path, &["convert", "m.mbox", "--output", name]);
        done(&made, 0);
        // The conversion changes the messages.
        assert_ne!(fs::read(path.join(name)).unwrap().len(), 0, "{method}");
    }

    let names = ["messages", "m.mbox", "m.mmdf", "m.zip", "m.tar", "Maildir"];
    for name in names {
        let (found, output) = messages(path, &[name]);
        assert_eq!(done(&output, 0), "", "{name}");
        assert_eq!(found.len(), mails.len(), "{name}");
        for (number, (found, mail)) in found.iter().zip(&mails).enumerate() {
            let shown = String::from_utf8_lossy(&found.content);
            assert!(found.content == *mail, "{name} {number}: {shown}");
            assert!(found.source.starts_with(name), "{}", found.source);
            let index = if name == "messages" {
                1
            } else {
                number as u64 + 1
            };
            assert_eq!(found.index, index, "{name}");
        }
    }
    // The same with compression: the data: URL was filled in, and nothing else changed.
    for name in ["m.mbox.gz", "m.mbox.zst", "m.mbox.xz"] {
        let (found, output) = messages(path, &[name]);
        done(&output, 0);
        let same = found
            .iter()
            .zip(&mails)
            .filter(|(found, mail)| found.content == **mail);
        assert_eq!(
            (found.len(), same.count()),
            (mails.len(), mails.len() - 1),
            "{name}"
        );
    }
    // Several sources, in order. After --, the name of an option is a source.
    fs::write(path.join("--json"), &mails[0]).unwrap();
    let (found, output) = messages(
        path,
        &["m.mmdf", "--format=auto", "--", "--json", "messages"],
    );
    done(&output, 0);
    assert_eq!(found.len(), 2 * mails.len() + 1);
    assert_eq!(found[mails.len()].source, "--json");
}

/// The quoted line is after the part that embody searches for it, as with `--output-format`.
#[test]
fn mboxrd_quoting_is_detected_at_any_offset() {
    let folder = tempfile::tempdir().unwrap();
    let separator = "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: x\n\n";
    let filler = "0123456789\n".repeat(60_000);
    let mbox = format!("{separator}>From one\n{filler}\n{separator}>>From two\n\n");
    fs::write(folder.path().join("m.mbox"), mbox).unwrap();
    let (found, output) = messages(folder.path(), &["m.mbox"]);
    done(&output, 0);
    let bodies = ["Subject: x\n\nFrom one\n", "Subject: x\n\n>From two\n"];
    for (found, start) in found.iter().zip(bodies) {
        assert!(found.content.starts_with(start.as_bytes()));
    }
    let made = embody_in(
        folder.path(),
        &[
            "convert",
            "m.mbox",
            "--output-format",
            "eml",
            "--output",
            "out",
        ],
    );
    done(&made, 0);
    for (found, name) in found.iter().zip(["00000001.eml", "00000002.eml"]) {
        let file = fs::read(folder.path().join("out").join(name)).unwrap();
        assert!(found.content == file, "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_named_behind_the_messages_in_front_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut numbers = Numbers(11);
    let mut mbox = String::new();
    for number in 0..50 {
        mbox.push_str(&format!(
            "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: {number}\n\n"
        ));
        for _ in 0..1000 {
            mbox.push_str(&format!("{}\n", numbers.below(1 << 60)));
        }
        mbox.push('\n');
    }
    fs::write(path.join("whole.mbox"), &mbox).unwrap();
    done(
        &embody_in(path, &["convert", "whole.mbox", "--output", "m.mbox.gz"]),
        0,
    );
    let packed = fs::read(path.join("m.mbox.gz")).unwrap();
    fs::write(path.join("cut.mbox.gz"), &packed[..packed.len() / 2]).unwrap();
    let (found, output) = messages(path, &["cut.mbox.gz", "missing.mbox", "whole.mbox"]);
    let said = done(&output, 1);
    assert!(
        said.contains("cut.mbox.gz") && said.contains("missing.mbox"),
        "{said}"
    );
    let (cut, whole): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.source.starts_with("cut"));
    assert!(cut.len() > 10 && cut.len() < 40, "{}", cut.len());
    assert_eq!(whole.len(), 50);
    for (cut, whole) in cut.iter().zip(&whole) {
        assert!(cut.content == whole.content && cut.index == whole.index);
    }
}

#[test]
fn a_name_is_one_line_whatever_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\n{\"bytes\":0}\n\"\u{202e}ä.eml";
    fs::write(folder.path().join(name), "Subject: x\n\nbody\n").unwrap();
    let (found, output) = messages(folder.path(), &["."]);
    done(&output, 0);
    assert_eq!(found.len(), 1);
    assert!(found[0].source.ends_with(name), "{}", found[0].source);
    assert_eq!(found[0].content, b"Subject: x\n\nbody\n");
}

#[test]
fn wrong_command_lines_and_outputs_that_fail_are_no_success() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.eml"), "Subject: x\n\nbody\n").unwrap();
    for arguments in [
        &["m.eml", "--json"][..],
        &["m.eml", "--html", "page.html"],
        &["m.eml", "--probe"],
        &["-"],
        &[],
    ] {
        let (found, output) = messages(folder.path(), arguments);
        assert!(
            !done(&output, 2).is_empty() && found.is_empty(),
            "{arguments:?}"
        );
    }
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = embody();
    command
        .current_dir(folder.path())
        .args(["inspect", "--messages", "m.eml"]);
    let said = done(&command.stdout(full).output().unwrap(), 1);
    assert!(said.contains("standard output"), "{said}");
    // The reader exits early.
    let script = "\"$0\" inspect --messages m.eml m.eml | head -c 5; echo";
    let output = fed(
        std::process::Command::new("sh")
            .current_dir(folder.path())
            .args(["-c", script, env!("CARGO_BIN_EXE_embody")]),
        b"",
    );
    assert_eq!(output.stdout, b"{\"kin\n");
}
