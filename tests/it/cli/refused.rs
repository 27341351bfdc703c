//! Input that is not a message for a filter, invalid URLs and invalid options are refused with a message and the status in
//! docs/reasons.md.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::mail::{assert_bytes, expanding, mailboxes_of_two, singles_with_from_lines};
use crate::common::programs::{embody, fed, stderr};
use tempfile::TempDir;

fn run(folder: &Path, line: &str, input: &[u8]) -> Output {
    let mut command = embody();
    fed(command.args(line.split(' ')).current_dir(folder), input)
}

/// Commands that work as filters, without the argument FILE.
const FILTERS: [&str; 3] = ["filter", "detach --store store", "restore --store store"];

/// Creates one message in every format that is not a plain message.
fn forms() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let message = expanding();
    let separator = b"\x01\x01\x01\x01\n";
    let one = [separator, &*message, b"\n", separator].concat();
    let mbox = [b"From a@b Sat Jan  3 01:05:34 1996\n", &*message, b"\n"].concat();
    fs::create_dir(at("store")).unwrap();
    fs::write(at("plain.eml"), &message).unwrap();
    fs::write(at("one.mbox"), &mbox).unwrap();
    fs::write(at("two.mbox"), mbox.repeat(2)).unwrap();
    fs::write(at("one.mmdf"), &one).unwrap();
    fs::write(at("two.mmdf"), one.repeat(2)).unwrap();
    let made = Command::new("python3")
        .args([
            "-c",
            "import bz2, gzip, lzma, tarfile, zipfile\n\
             mail, mbox = open('plain.eml', 'rb').read(), open('two.mbox', 'rb').read()\n\
             for name, pack in ('gz', gzip.compress), ('bz2', bz2.compress), ('xz', lzma.compress):\n\
             \x20 with open('a.eml.' + name, 'wb') as file: file.write(pack(mail))\n\
             \x20 with open('a.mbox.' + name, 'wb') as file: file.write(pack(mbox))\n\
             with zipfile.ZipFile('a.zip', 'w') as file: file.write('two.mbox')\n\
             with tarfile.open('a.tar', 'w') as file: file.add('two.mbox')\n\
             with tarfile.open('a.tgz', 'w:gz') as file: file.add('two.mbox')\n\
             with open('old.mbx', 'wb') as file: file.write(b'*mbx*\\r\\n' + mail)\n",
        ])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    folder
}

#[test]
fn a_file_that_is_no_plain_message_is_refused_by_filters() {
    let folder = forms();
    for filter in FILTERS {
        let name = filter.split(' ').next().unwrap();
        let mailbox = format!("{name} reads only one message");
        for (file, word) in [
            ("two.mbox", &*mailbox),
            ("one.mmdf", &mailbox),
            ("two.mmdf", &mailbox),
            ("a.mbox.gz", &mailbox),
            ("a.mbox.bz2", &mailbox),
            ("a.mbox.xz", &mailbox),
            ("a.zip", &mailbox),
            ("a.tar", &mailbox),
            ("a.tgz", &mailbox),
            ("old.mbx", "an MBX mailbox"),
            (
                "a.eml.gz",
                "reads only uncompressed messages; decompress it first",
            ),
            (
                "a.eml.bz2",
                "reads only uncompressed messages; decompress it first",
            ),
            (
                "a.eml.xz",
                "reads only uncompressed messages; decompress it first",
            ),
        ] {
            let output = run(folder.path(), &format!("{filter} {file}"), b"");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(75), "{filter} {file}: {said}");
            assert!(output.stdout.is_empty(), "{filter} {file}");
            assert!(said.contains(word), "{filter} {file}: {said}");
            let instead = match name {
                "filter" => "embody convert",
                _ => "--output or --in-place",
            };
            assert!(
                said.contains(instead) || file == "old.mbx",
                "{filter} {file}: {said}"
            );
        }
        // On standard input, the sender may have chosen the content, so the input is passed on unchanged.
        for file in ["two.mbox", "two.mmdf", "a.mbox.gz", "a.zip", "a.eml.gz"] {
            let bytes = fs::read(folder.path().join(file)).unwrap();
            for line in [filter.to_owned(), format!("{filter} /dev/stdin")] {
                let output = run(folder.path(), &line, &bytes);
                assert_eq!(output.status.code(), Some(0), "{line} < {file}");
                assert_bytes(&output.stdout, &bytes, &format!("{line} < {file}"));
            }
        }
        for file in ["plain.eml", "one.mbox"] {
            let output = run(folder.path(), &format!("{filter} {file}"), b"");
            assert_eq!(output.status.code(), Some(0), "{filter} {file}");
            assert!(!output.stdout.is_empty(), "{filter} {file}");
        }
    }
}

#[test]
fn mailbox_on_standard_input_is_passed_on_unchanged_by_commands_for_one_message() {
    let folder = forms();
    let filters = FILTERS.into_iter().chain([
        "detach --larger-than 1 --store store",
        "embed --embed data",
        "recover",
    ]);
    for filter in filters {
        let name = filter.split(' ').next().unwrap();
        for (kind, bytes) in mailboxes_of_two() {
            let output = run(folder.path(), filter, &bytes);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{filter}, {kind}: {said}");
            assert_bytes(&output.stdout, &bytes, &format!("{filter}, {kind}"));
            let line = format!(
                "looks like a mailbox with several messages, but {name} reads only one message; the mail was passed on unchanged"
            );
            assert!(said.contains(&line), "{filter}, {kind}: {said}");
            let output = run(folder.path(), &format!("{filter} --quiet"), &bytes);
            assert_bytes(&output.stdout, &bytes, &format!("{filter} --quiet, {kind}"));
            assert_eq!(stderr(&output), "", "{filter}, {kind}");
        }
    }
    let stored = fs::read_dir(folder.path().join("store/sha256"));
    assert!(stored.is_err(), "detach stored attachments of a mailbox");
    for (kind, bytes) in singles_with_from_lines() {
        let output = run(folder.path(), "filter", &bytes);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{kind}: {said}");
        assert!(!said.contains("looks like a mailbox"), "{kind}: {said}");
        assert_ne!(output.stdout, bytes, "{kind}");
    }
}

#[test]
fn what_is_no_mail_is_not_read_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    // A file with the name `-` exists, but is not used.
    fs::write(folder.path().join("-"), "").unwrap();
    for option in ["--config", "--deny-host-file", "--ca-file"] {
        for (command, status) in [("filter", 75), ("convert - --output o", 2)] {
            let line = format!("{command} {option} -");
            let output = run(folder.path(), &line, &expanding());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(status), "{line}: {said}");
            assert!(said.contains(&format!("'-' for '{option} ")), "{said}");
            assert!(said.contains("standard input contains the mail"), "{said}");
        }
    }
    for option in ["--config", "--deny-host-file"] {
        let line = format!("filter {option} ./-");
        let output = run(folder.path(), &line, &expanding());
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    }
}

#[test]
fn a_full_standard_output_is_no_success_for_help_either() {
    for (line, status) in [
        ("filter --help", 75),
        ("filter -h", 75),
        ("filter --version", 75),
        ("detach --help", 75),
        ("restore --version", 75),
        ("help filter", 1),
        ("--help", 1),
        ("--version", 1),
        ("convert --help", 1),
        ("inspect -h", 1),
    ] {
        for (to, expected) in [
            (">/dev/full", status),
            (">/dev/null", 0),
            ("1<>/dev/null", 0),
        ] {
            let script = format!("\"$1\" {line} {to}");
            let output = Command::new("sh")
                .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_embody")])
                .output()
                .unwrap();
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(expected), "{script}: {said}");
            let is_said = said.contains("standard output");
            assert_eq!(is_said, expected != 0, "{script}: {said}");
        }
    }
}

#[test]
fn standard_input_is_inspected_once() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["inspect - -", "inspect --json - -"] {
        let output = run(folder.path(), line, &expanding());
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(stderr(&output).contains("read only once"), "{line}");
    }
}

#[test]
fn inspect_is_told_what_its_sources_are_as_convert_is() {
    let folder = forms();
    let count = |line: &str| {
        let output = run(folder.path(), line, b"");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(count("inspect two.mbox").contains("1 mailbox, 2 messages"));
    assert!(!count("inspect --format eml two.mbox").contains("mailboxes"));
    for line in [
        "inspect --format mbox plain.eml",
        "inspect --format maildir two.mbox",
        "inspect --format eml two.mmdf",
    ] {
        let output = run(folder.path(), line, b"");
        assert_eq!(output.status.code(), Some(1), "{line}");
    }
}

/// Every reader of the mail could see the password.
#[test]
fn a_base_url_that_cannot_stand_in_mail_is_refused_and_its_password_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("old")).unwrap();
    fs::write(folder.path().join("m.eml"), expanding()).unwrap();
    for (line, status) in [
        ("detach --larger-than 1 --store st --report - m.eml", 2),
        (
            "detach --larger-than 1 --store st --report - --dry-run m.eml",
            2,
        ),
        ("detach --larger-than 1 --store st --output new m.eml", 2),
        ("filter --store old m.eml", 75),
        ("convert --store old m.eml --output new", 2),
        ("inspect --store old m.eml", 2),
    ] {
        for (url, word) in [
            ("http://u:sekret@127.0.0.1/", "password"),
            ("https://sekret@127.0.0.1/", "user name"),
            ("data:,x", "retrieved"),
            ("https://127.0.0.1/?q", "?"),
        ] {
            let line = format!("{line} --base-url {url}");
            let output = run(folder.path(), &line, b"");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(status), "{line}: {said}");
            assert!(output.stdout.is_empty(), "{line}");
            assert!(said.contains(word), "{line}: {said}");
            assert!(!said.contains(":sekret"), "{line}: {said}");
            assert!(!folder.path().join("st").exists(), "{line}");
        }
    }
}

#[test]
fn what_may_be_a_misspelt_url_of_a_store_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.eml"), expanding()).unwrap();
    for store in [
        "http:/x",
        "https:x/y",
        "s3:bucket",
        "sftp:/h/x",
        "http:/u:sekret@h/",
        "ftp://h/x",
        "ftp://u:sekret@h/x",
        "s3://u:sekret@h/",
    ] {
        for (verb, more, status) in [
            ("detach", "", 2),
            ("detach", " --dry-run", 2),
            ("detach", " --output new", 2),
            ("restore", "", 2),
        ] {
            let line = format!("{verb} --store {store} m.eml{more}");
            let output = run(folder.path(), &line, b"");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(status), "{line}: {said}");
            let word = if store.contains("://") {
                "store"
            } else {
                "looks like a URL"
            };
            assert!(said.contains(word), "{line}: {said}");
            assert!(!said.contains("sekret"), "{line}: {said}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{line}");
        }
    }
    // The name of a directory may contain a colon.
    for store in ["./http:", "a:b"] {
        let line = format!("detach --store {store} m.eml");
        let output = run(folder.path(), &line, b"");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(folder.path().join(store).is_dir());
    }
}

/// A dry run of a filter reads the same input as the filter.
#[test]
fn a_dry_run_of_detach_takes_standard_input_too() {
    let folder = tempfile::tempdir().unwrap();
    let mail = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
         --b\nContent-Type: text/plain\n\nhello\n--b\nContent-Type: image/png\n\
         Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{}--b--\n",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA\n".repeat(40)
    );
    fs::write(folder.path().join("m.eml"), &mail).unwrap();
    let options = "--store st --larger-than 1 --dry-run --report -";
    for source in ["", " -", " m.eml"] {
        let line = format!("detach {options}{source}");
        let output = run(folder.path(), &line, mail.as_bytes());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(said.contains("\"outcome\":\"would-detach\""), "{said}");
        assert!(
            said.contains("1 attachment would be moved into the store"),
            "{line}: {said}"
        );
    }
    for (line, word) in [
        ("detach --store st --dry-run - m.eml", "the only source"),
        ("detach --store st --in-place -", "instead of --in-place"),
    ] {
        let output = run(folder.path(), line, mail.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
}

#[test]
fn cache_or_store_that_is_no_local_folder_is_refused_with_an_explanation() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for (line, status, word) in [
        (
            "filter --cache file",
            75,
            "the path does not lead to a directory",
        ),
        (
            "inspect --cache file --offline -",
            1,
            "the path does not lead to a directory",
        ),
        ("detach --store file", 75, "does not lead to a directory"),
        (
            "store check https://h/store",
            2,
            "a folder of this computer",
        ),
        (
            "store gc s3://bucket/x file",
            2,
            "a folder of this computer",
        ),
    ] {
        let output = run(folder.path(), line, &expanding());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{line}: {said}");
        assert!(said.contains(word), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}");
    }
    let output = run(folder.path(), "split file", b"");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\"whole\":\"the source is empty\""), "{said}");
}
