//! `.msg` and `.oft` files of Outlook as sources, and as attachments (docs/outlook.md).

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::common::archives::tar;
use crate::common::filter::filter;
use crate::common::programs::{embody_in, stderr};

const SIMPLE: &[u8] = include_bytes!("outlook/simple.msg");
const RTF: &[u8] = include_bytes!("outlook/rtf.msg");
const EMBEDDED: &[u8] = include_bytes!("outlook/embedded.msg");

const TEXT: &str = "Date: Sat, 12 Aug 2006 14:25:25 -0400\nFrom: John Doe <jdoes@someserver.com>\n\
                    Subject: BitDaddys Software\nTo: sales@bitdaddys.com\nMIME-Version: 1.0\nContent-Type: text/plain\n\n\
                    Dear BitDaddys Corp.,\n\nWe have added your software to our approved list.\n\n\
                    Thank you for your efforts,\nSincerely,\nJohn Doe\nSome Server Company\n";

fn in_folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// Runs the program in the directory, and returns its status, standard output and standard error.
fn run(folder: &Path, command: &str) -> (i32, Vec<u8>, String) {
    let words: Vec<&str> = command.split(' ').collect();
    let done = embody_in(folder, &words);
    let said = stderr(&done);
    (done.status.code().unwrap(), done.stdout, said)
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

/// Returns a mail with an attached file.
fn attached(essence: &str, name: &str, file: &[u8]) -> String {
    format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nSee the file.\n--b\n\
         Content-Type: {essence}\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"{name}\"\n\n\
         {}\n--b--\n",
        base64(file)
    )
}

#[test]
fn msg_becomes_a_message_in_each_command_that_reads_one() {
    let folder = in_folder(&[("a.msg", SIMPLE)]);
    let at = folder.path();
    let (status, out, said) = run(at, "filter a.msg");
    assert_eq!((status, said.as_str()), (0, ""));
    assert_eq!(String::from_utf8(out).unwrap(), TEXT);
    let (status, _, said) = run(at, "convert a.msg --output a.eml");
    assert_eq!(status, 0, "{said}");
    assert_eq!(fs::read_to_string(at.join("a.eml")).unwrap(), TEXT);
    let (status, out, _) = run(at, "inspect a.msg");
    assert_eq!(status, 0);
    assert!(String::from_utf8(out).unwrap().contains("text/plain"));
    let (status, out, said) = run(
        at,
        "detach a.msg --store store --base-url https://x.example/ --larger-than 10",
    );
    assert_eq!(status, 0, "{said}");
    assert!(out.starts_with(b"Date: Sat, 12 Aug 2006"));
    let (status, out, _) = run(at, "convert a.msg --output -");
    assert_eq!(
        (status, String::from_utf8(out).unwrap().as_str()),
        (0, TEXT)
    );
    // The source is unchanged.
    assert!(fs::read(at.join("a.msg")).unwrap() == SIMPLE);
}

#[test]
fn msg_on_standard_input_is_read_like_one_in_a_file() {
    let ran = filter("", SIMPLE);
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), TEXT);
}

#[test]
fn folder_of_msg_files_becomes_a_mailbox_of_any_format_and_twice_the_same() {
    let folder = in_folder(&[
        ("a.msg", SIMPLE),
        ("b.oft", RTF),
        ("c.msg", EMBEDDED),
        ("d.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0"),
    ]);
    let at = folder.path();
    fs::create_dir(at.join("in")).unwrap();
    for name in ["a.msg", "b.oft", "c.msg", "d.doc"] {
        fs::rename(at.join(name), at.join("in").join(name)).unwrap();
    }
    for (format, name) in [("mbox", "one"), ("mbox", "two"), ("maildir", "dir")] {
        let (status, _, said) = run(
            at,
            &format!("convert in --output {name} --output-format {format}"),
        );
        assert_eq!(status, 0, "{said}");
    }
    let mbox = fs::read(at.join("one")).unwrap();
    assert!(mbox == fs::read(at.join("two")).unwrap());
    let text = String::from_utf8_lossy(&mbox);
    assert_eq!(text.matches("\nSubject: BitDaddys Software\n").count(), 1);
    let separators = text.lines().filter(|line| line.starts_with("From "));
    assert_eq!(separators.count(), 3, "{text}");
    // The message was received and read.
    let cur: Vec<_> = fs::read_dir(at.join("dir/cur")).unwrap().collect();
    assert_eq!(cur.len(), 3);
    let (status, _, said) = run(at, "convert in --output files");
    assert_eq!(status, 0, "{said}");
    let mut names: Vec<String> = fs::read_dir(at.join("files"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.eml", "b.eml", "c.eml"]);
    assert_eq!(fs::read_to_string(at.join("files/a.eml")).unwrap(), TEXT);
}

#[test]
fn msg_within_a_msg_becomes_a_message_within_a_message() {
    let folder = in_folder(&[("a.msg", EMBEDDED)]);
    let (status, out, said) = run(folder.path(), "filter a.msg");
    assert_eq!((status, said.as_str()), (0, ""));
    let text = String::from_utf8(out).unwrap();
    let (_, inner) = text.split_once("Content-Type: message/rfc822\n").unwrap();
    assert!(
        inner.contains("\n\nX-Unsent: 1\nFrom: from@domain.com\nTo: to@domain.com\n"),
        "{text}"
    );
    assert!(
        inner.contains("\n\nThis message is created by Aspose.Email"),
        "{text}"
    );
}

#[test]
fn in_place_on_msg_and_a_result_named_msg_are_refused() {
    let folder = in_folder(&[("a.msg", SIMPLE)]);
    let at = folder.path();
    let (status, _, said) = run(at, "convert a.msg --in-place");
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("does not write Outlook files"), "{said}");
    let (status, _, said) = run(at, "convert a.msg --output b.msg");
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("does not write Outlook files"), "{said}");
    assert!(fs::read(at.join("a.msg")).unwrap() == SIMPLE);
    assert!(!at.join("b.msg").exists());
}

#[test]
fn damaged_msg_is_named_and_gives_no_message() {
    let cut = &SIMPLE[..2000];
    let folder = in_folder(&[("a.msg", cut)]);
    let at = folder.path();
    for command in [
        "filter a.msg",
        "convert a.msg --output out",
        "inspect a.msg",
    ] {
        let (status, out, said) = run(at, command);
        assert_ne!(status, 0, "{command}");
        assert!(out.is_empty(), "{command}");
        assert!(
            said.contains("a.msg") && said.contains("damaged"),
            "{command}: {said}"
        );
    }
    assert!(!at.join("out").exists());
    // In a directory, the other files are converted.
    fs::create_dir(at.join("in")).unwrap();
    fs::write(at.join("in/a.msg"), cut).unwrap();
    fs::write(at.join("in/b.msg"), SIMPLE).unwrap();
    let (status, _, said) = run(at, "convert in --output mail --output-format maildir");
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("in/a.msg"), "{said}");
    assert_eq!(fs::read_dir(at.join("mail/cur")).unwrap().count(), 1);
}

#[test]
fn compound_file_that_is_not_a_message_is_passed_on_by_filter() {
    let other = [&SIMPLE[..8], b"no directory"].concat();
    filter("", &other).gives(&other);
}

#[test]
fn attached_msg_becomes_an_attached_mail_only_if_asked() {
    for (essence, name) in [
        ("application/vnd.ms-outlook", "a.msg"),
        ("application/octet-stream", "Some mail.MSG"),
    ] {
        let mail = attached(essence, name, SIMPLE);
        filter("", mail.as_bytes()).gives(mail.as_bytes());
        let ran = filter("--follow msg", mail.as_bytes());
        assert_eq!(ran.column("kind"), ["msg"], "{}", ran.stderr);
        assert_eq!(ran.column("outcome"), ["expanded"]);
        let text = String::from_utf8(ran.stdout.clone()).unwrap();
        let stem = &name[..name.len() - 4];
        let part = format!(
            "--b\nContent-Type: message/rfc822\nContent-Disposition: attachment;\n filename=\"{stem}.eml\"\n\n{TEXT}--b--\n"
        );
        assert!(text.ends_with(&part), "{text}");
        assert!(text.starts_with("Subject: x\nMIME-Version: 1.0\n"));
        let again = filter("--follow msg", &ran.stdout);
        assert!(again.stdout == ran.stdout);
    }
}

#[test]
fn attached_file_that_is_no_msg_stays_and_a_damaged_one_says_why() {
    let mail = attached("application/vnd.ms-outlook", "a.pst", b"!BDNabcdef");
    filter("--follow msg", mail.as_bytes()).gives(mail.as_bytes());
    let mail = attached("application/vnd.ms-outlook", "a.msg", &SIMPLE[..3000]);
    filter("--follow msg", mail.as_bytes()).leaves(mail.as_bytes(), &["damaged-file"]);
}

#[test]
fn msg_with_a_damaged_name_is_named_by_every_command_and_gives_its_attachment() {
    let name: Vec<u8> = "__attach_version1.0_#00000000"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let at = memchr::memmem::find(EMBEDDED, &name).unwrap();
    let mut damaged = EMBEDDED.to_vec();
    damaged[at + 30] ^= 1;
    let folder = in_folder(&[("a.msg", &damaged), ("b.oft", &damaged)]);
    let at = folder.path();
    fs::create_dir(at.join("in")).unwrap();
    fs::write(at.join("in/c.msg"), &damaged).unwrap();
    for (command, result) in [
        ("convert a.msg --output a.eml", "a.eml"),
        ("convert b.oft --output b.eml", "b.eml"),
        ("convert in --output-format mbox --output c.mbox", "c.mbox"),
        ("merge in --output d.mbox", "d.mbox"),
        ("inspect a.msg", ""),
        ("inspect in", ""),
        ("compare in c.mbox", ""),
    ] {
        let (status, _, said) = run(at, command);
        assert_eq!(status, 1, "{command}: {said}");
        assert!(said.contains("has a damaged name"), "{command}: {said}");
        if !result.is_empty() {
            let text = fs::read_to_string(at.join(result)).unwrap();
            assert!(
                text.contains("Content-Type: message/rfc822"),
                "{command}: {text}"
            );
        }
    }
    let (_, out, said) = run(at, "filter a.msg");
    assert!(said.contains("has a damaged name"), "{said}");
    assert!(String::from_utf8(out).unwrap().contains("message/rfc822"));
}

#[test]
fn empty_files_of_outlook_are_named_and_an_empty_mbox_is_not() {
    const MBOX: &str = "From a@b Mon Jan  6 10:00:00 2020\nFrom: a@b\nSubject: x\n\nhi\n";
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("in")).unwrap();
    fs::write(at.join("in/ok.mbox"), MBOX).unwrap();
    fs::write(at.join("empty.mbox"), "").unwrap();
    fs::write(at.join("empty.eml"), "").unwrap();
    let mut names: Vec<String> = ["a.pst", "b.ost", "c.msg", "D.OFT", "e.dbx"]
        .map(str::to_owned)
        .to_vec();
    for name in &names {
        fs::write(at.join(name), "").unwrap();
    }
    for name in names.clone() {
        let packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        fs::write(at.join(format!("{name}.gz")), packed.finish().unwrap()).unwrap();
        names.push(format!("{name}.gz"));
    }
    for name in &names {
        for command in [
            "convert @ --output out",
            "inspect @",
            "merge @ --output out",
            "compare @ empty.mbox",
        ] {
            let command = command.replace('@', name);
            let (status, _, said) = run(at, &command);
            assert_eq!(status, 1, "{command}: {said}");
            assert!(
                said.contains(name) && said.contains("the file is empty"),
                "{command}: {said}"
            );
        }
        fs::rename(at.join(name), at.join("in").join(name)).unwrap();
    }
    for command in [
        "convert in --output-format mbox --output o",
        "inspect in",
        "merge in --output m",
        "compare in o",
    ] {
        let (status, _, said) = run(at, command);
        assert_eq!(status, 1, "{command}: {said}");
        for name in &names {
            assert!(said.contains(&format!("in/{name}: ")), "{command}: {said}");
        }
    }
    assert_eq!(
        fs::read_to_string(at.join("o/ok.mbox"))
            .unwrap()
            .matches("Subject: x")
            .count(),
        1
    );
    for command in [
        "convert empty.mbox --output e",
        "inspect empty.mbox",
        "inspect empty.eml",
        "compare empty.mbox e",
    ] {
        let (status, _, said) = run(at, command);
        assert_eq!(status, 0, "{command}: {said}");
    }
    // Members of archives.
    let members: [(&str, u8, &[u8]); 3] = [
        ("ok.mbox", b'0', MBOX.as_bytes()),
        ("x/a.pst", b'0', b""),
        ("c.msg", b'0', b""),
    ];
    fs::write(at.join("t.tar"), tar(&members)).unwrap();
    for command in [
        "convert t.tar --output t.mbox",
        "inspect t.tar",
        "merge t.tar --output tm",
        "compare t.tar t.mbox",
    ] {
        let (status, _, said) = run(at, command);
        assert_eq!(status, 1, "{command}: {said}");
        assert!(
            said.contains("2 files in the archive were not read") && said.contains("x/a.pst"),
            "{command}: {said}"
        );
    }
    assert_eq!(fs::read_to_string(at.join("t.mbox")).unwrap(), MBOX);
}
