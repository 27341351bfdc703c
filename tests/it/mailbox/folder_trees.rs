//! Names of the folders in a result, for the folder trees of several programs (docs/mailboxes.md, "Names of folders").

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::archives::zip;
use crate::common::programs::{done, embody_in};
use crate::common::pst::{Form, Message, Pst};

/// Returns a message that no other file of the test contains.
fn message(name: &str) -> String {
    format!(
        "From: ann@example.org\nSubject: {name}\nMessage-ID: <{name}@example.org>\n\nText of {name}\n"
    )
}

fn mbox(name: &str) -> Vec<u8> {
    format!(
        "From ann@example.org Mon Jan  1 00:00:00 2024\n{}\n",
        message(name)
    )
    .into_bytes()
}

fn zipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Writes one message to each of these paths. A path that ends in a slash is a Maildir. Other paths are the files of a
/// message, an index of Apple Mail or an mbox.
fn tree(at: &Path, paths: &[&str]) {
    for path in paths {
        let file = at.join(path);
        let name = path.replace(|symbol: char| !symbol.is_ascii_alphanumeric(), "-");
        if path.ends_with('/') {
            for part in ["cur", "new", "tmp"] {
                fs::create_dir_all(file.join(part)).unwrap();
            }
            fs::write(file.join("cur/1700000000.M1P1.host:2,S"), message(&name)).unwrap();
            continue;
        }
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let content = match path.rsplit('.').next() {
            Some("eml") => message(&name).into_bytes(),
            Some("emlx") => {
                let message = message(&name);
                let list = "<?xml version=\"1.0\"?>\n<plist><dict><key>flags</key><integer>1</integer></dict></plist>\n";
                format!("{:<10}\n{message}{list}", message.len()).into_bytes()
            }
            Some("gz") => zipped(&mbox(&name)),
            _ if path.ends_with("table_of_contents") => vec![0; 64],
            _ => mbox(&name),
        };
        fs::write(file, content).unwrap();
    }
}

/// Returns the mailboxes below a directory, each with its number of messages. A mailbox is an mbox without the suffix
/// `.mbox`, a Maildir, or a directory of messages.
fn mailboxes(directory: &Path) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(at) = directories.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let within = path.strip_prefix(directory).unwrap();
            let above = within.parent().unwrap();
            let (name, count) = match above.file_name().and_then(|it| it.to_str()) {
                Some("cur" | "new") => (above.parent().unwrap().to_owned(), 1),
                _ if path.extension().is_some_and(|it| it == "eml") => (above.to_owned(), 1),
                _ => {
                    let content = fs::read(&path).unwrap();
                    let text = String::from_utf8_lossy(&content);
                    let count = text.matches("\nMessage-ID:").count();
                    if count == 0 {
                        continue;
                    }
                    let name = within.to_str().unwrap();
                    (name.strip_suffix(".mbox").unwrap_or(name).into(), count)
                }
            };
            *found.entry(name.to_str().unwrap().to_owned()).or_default() += count;
        }
    }
    found
}

/// Asserts that a conversion of `source` to each format gives these mailboxes with all of its mail. In Thunderbird, the
/// names are those of the folders below the top folder.
fn assert_folders(paths: &[&str], forms: &[&str], expected: &[&str]) {
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    tree(&at.join("source"), paths);
    for form in forms {
        let out = format!("out-{form}");
        let convert = [
            "convert",
            "source",
            "--output-format",
            form,
            "--output",
            &out,
        ];
        done(&embody_in(at, &convert), 0);
        let made = mailboxes(&at.join(&out));
        let names: Vec<String> = made
            .keys()
            .map(|name| match *form {
                "thunderbird" => name.replacen("source.sbd/", "", 1).replace(".sbd/", "/"),
                _ => name.clone(),
            })
            .collect();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{form}: {paths:?}");
        let messages: usize = made.values().sum();
        let sources = paths
            .iter()
            .filter(|path| !path.ends_with("table_of_contents"))
            .count();
        assert_eq!(messages, sources, "{form}: {paths:?}");
        done(&embody_in(at, &["compare", "source", &out]), 0);
    }
}

const ALL: &[&str] = &["mbox", "maildir", "eml", "thunderbird"];

#[test]
fn subfolders_of_an_apple_mail_library_get_the_names_of_their_folders() {
    let v10 = [
        "A/INBOX.mbox/U/Data/Messages/1.emlx",
        "A/INBOX.mbox/U/Data/3/Messages/3001.emlx",
        "A/Work.mbox/U/Data/Messages/2.emlx",
        "A/Work.mbox/Sub.mbox/U/Data/Messages/4.emlx",
        "A/Work.mbox/Sub.mbox/Old.mbox/U/Data/Messages/5.emlx",
    ];
    let folders = |inbox| [inbox, "A/Work", "A/Work/Sub", "A/Work/Sub/Old"];
    assert_folders(&v10, &["mbox", "maildir", "eml"], &folders("A/INBOX"));
    assert_folders(&v10, &["thunderbird"], &folders("A/Inbox"));
    let v2 = [
        "Mailboxes/Work.mbox/Messages/1.emlx",
        "Mailboxes/Work/Sub.mbox/Messages/2.emlx",
        "IMAP-ann@host/Sent.imapmbox/Messages/3.emlx",
    ];
    let folders = ["IMAP-ann@host/Sent", "Mailboxes/Work", "Mailboxes/Work/Sub"];
    assert_folders(&v2, ALL, &folders);
    // The mailbox itself as the source.
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    tree(
        at,
        &[
            "Work.mbox/Messages/1.emlx",
            "Work.mbox/Sub.mbox/Messages/2.emlx",
        ],
    );
    let convert = [
        "convert",
        "Work.mbox",
        "--output-format",
        "mbox",
        "--output",
        "out",
    ];
    done(&embody_in(at, &convert), 0);
    let made = mailboxes(&at.join("out"));
    assert!(made.keys().eq(["Sub", "Work"]), "{made:?}");
    // Mail of three programs in directories of one name.
    let mixed = ["Work.mbox/Messages/1.emlx", "Work.mbox/mbox", "Work/2.eml"];
    let folders = ["Work", "Work (2)", "Work (3)"];
    assert_folders(&mixed, &["mbox", "maildir"], &folders);
}

#[test]
fn exported_mailbox_of_apple_mail_has_the_name_of_its_directory() {
    let export = [
        "Work.mbox/mbox",
        "Work.mbox/table_of_contents",
        "Work/Projects.mbox/mbox",
        "Work/Projects.mbox/table_of_contents",
    ];
    assert_folders(&export, ALL, &["Work", "Work/Projects"]);
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    tree(
        at,
        &[
            "one/Work.mbox/mbox",
            "one/Work.mbox/table_of_contents",
            "two/Work.mbox/mbox.gz",
        ],
    );
    // The directory itself as the source is one mailbox.
    let convert = [
        "convert",
        "one/Work.mbox",
        "--output-format",
        "mbox",
        "--output",
        "one.mbox",
    ];
    done(&embody_in(at, &convert), 0);
    assert_eq!(
        fs::read(at.join("one.mbox")).unwrap(),
        fs::read(at.join("one/Work.mbox/mbox")).unwrap()
    );
    // A compressed mbox stays compressed, and a copy without --output-format keeps the files.
    let convert = [
        "convert",
        "two",
        "--output-format",
        "mbox",
        "--output",
        "two.out",
    ];
    done(&embody_in(at, &convert), 0);
    assert!(
        fs::read(at.join("two.out/Work.mbox.gz"))
            .unwrap()
            .starts_with(b"\x1f\x8b")
    );
    let said = done(
        &embody_in(at, &["convert", "one", "--verbose", "--output", "copy"]),
        0,
    );
    assert!(at.join("copy/Work.mbox/mbox").is_file());
    assert!(
        said.contains("table_of_contents: skipped: a file in which a mail program"),
        "{said}"
    );
}

#[test]
fn subfolders_of_kmail_are_visible_and_nested() {
    let expected = [
        "inbox",
        "inbox/Work",
        "inbox/Work/Deep-er",
        "sent",
        "sent/2004",
    ];
    let maildirs = [
        "inbox/",
        ".inbox.directory/Work/",
        ".inbox.directory/.Work.directory/Deep-er/",
        "sent/",
        ".sent.directory/2004",
    ];
    assert_folders(&maildirs, ALL, &expected);
    let mboxes = [
        "inbox",
        ".inbox.directory/Work",
        ".inbox.directory/.Work.directory/Deep-er",
        "sent",
        ".sent.directory/2004/",
    ];
    assert_folders(&mboxes, ALL, &expected);
    // A folder without mail of its own.
    assert_folders(&["a", ".b.directory/c"], ALL, &["a", "b/c"]);
}

#[test]
fn maildir_names_in_modified_utf7_are_decoded_unless_the_layout_stays() {
    let encoded = [
        "./",
        ".Entw&APw-rfe/",
        ".R&-D.&U,BTFw-/",
        ".Müll &- x/",
        ".Q&A/",
        "Sub&AOk-/",
    ];
    let flat = ["INBOX", "Entwürfe", "R&D.台北", "Müll &- x", "Q&A", "Subé"];
    assert_folders(&encoded, &["mbox", "eml"], &flat);
    let nested = ["Inbox", "Entwürfe", "R&D/台北", "Müll &- x", "Q&A", "Subé"];
    assert_folders(&encoded, &["thunderbird"], &nested);
    let same = [
        "",
        ".Entw&APw-rfe",
        ".R&-D.&U,BTFw-",
        ".Müll &- x",
        ".Q&A",
        "Sub&AOk-",
    ];
    assert_folders(&encoded, &["maildir"], &same);
    // A decoded name is never a path, and two names that become the same stay apart.
    let hostile = [
        "./",
        ".&AC8-etc&AC8-x/",
        ".&AC4-&AC4-.&AC8-/",
        ".R&-D/",
        ".R&D/",
        ".&AAoACg-/",
    ];
    let safe = ["INBOX", "_etc_x", "_", "R&D", "R&D (2)", "__"];
    assert_folders(&hostile, &["eml"], &safe);
}

#[test]
fn folders_of_equal_names_stay_apart_in_every_format() {
    let eml = ["nice/1.eml", "nice/2.eml", "nice.mbox"];
    assert_folders(
        &eml,
        &["eml", "maildir", "thunderbird"],
        &["nice", "nice (2)"],
    );
    let inbox = ["./", ".INBOX/", ".INBOX.Sent/"];
    assert_folders(&inbox, &["mbox"], &["INBOX", "INBOX (2)", "INBOX.Sent"]);
    assert_folders(
        &inbox,
        &["thunderbird"],
        &["INBOX (2)", "Inbox", "Inbox/Sent"],
    );
    let suffixes = ["x", "x.mbox/y/", "x.mbox.mbox/z/"];
    assert_folders(&suffixes, &["eml"], &["x", "x/y", "x.mbox/z"]);
    assert_folders(&suffixes, &["mbox"], &["x", "x (2)/y", "x.mbox/z"]);
    let thunderbird = ["Inbox", "Inbox.sbd/Work", "Inbox.sbd/Work.sbd/2023/"];
    assert_folders(
        &thunderbird,
        &["thunderbird"],
        &["Inbox", "Inbox/Work", "Inbox/Work/2023"],
    );
    let kept = ["Inbox", "Inbox.sbd/Work", "Inbox.sbd/Work.sbd/2023"];
    assert_folders(&thunderbird, &["mbox", "maildir", "eml"], &kept);
    let parts = ["cur", "new", "tmp.mbox"];
    assert_folders(&parts, &["maildir", "eml"], &["cur_", "new_", "tmp_"]);
}

#[test]
fn label_folder_never_meets_the_folder_of_another_mailbox() {
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    tree(&at.join("source"), &["Work/", "Work/Sub/"]);
    let labelled = format!("X-Gmail-Labels: Sub\n{}", message("labelled"));
    fs::write(at.join("source/Work/new/2.host"), labelled).unwrap();
    let convert = ["convert", "source", "--by-label", "--output", "out"];
    done(&embody_in(at, &convert), 0);
    let made = mailboxes(&at.join("out"));
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    assert_eq!(names, ["Work.Sub/No label", "Work/No label", "Work/Sub"]);
}

#[test]
fn merged_folders_have_the_names_of_the_folders() {
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    tree(&at.join("kmail"), &["inbox", ".inbox.directory/Work"]);
    tree(
        &at.join("apple"),
        &["inbox.mbox/mbox", "inbox/Work.mbox/mbox"],
    );
    tree(&at.join("md"), &[".R&-D/", "lists/"]);
    let merge = ["merge", "kmail", "apple", "md", "--output", "all"];
    done(&embody_in(at, &merge), 0);
    let all = mailboxes(&at.join("all"));
    let made: Vec<(&str, usize)> = all
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(
        made,
        [("R&D", 1), ("inbox", 2), ("inbox.Work", 2), ("lists", 1)]
    );
}

#[test]
fn several_archives_become_mboxes_in_one_directory_with_every_command() {
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    for name in ["one", "two"] {
        let content = zip(&[("Takeout/Mail/All mail.mbox", &mbox(name))]);
        fs::write(at.join(format!("{name}.zip")), content).unwrap();
    }
    fs::write(at.join("box"), mbox("box")).unwrap();
    for (number, command) in [
        &["convert"][..],
        &["embed"],
        &["recover"],
        &["detach", "--store", "store"],
        &["restore", "--store", "store"],
    ]
    .iter()
    .enumerate()
    {
        let out = format!("out{number}");
        done(
            &embody_in(
                at,
                &[*command, &["one.zip", "two.zip", "box", "--output", &out]].concat(),
            ),
            0,
        );
        for (name, file) in [("one", "one.mbox"), ("two", "two.mbox"), ("box", "box")] {
            let path = at.join(&out).join(file);
            assert_eq!(fs::read(path).unwrap(), mbox(name), "{command:?}");
        }
    }
    // Archives whose results would have the same name are refused before the first one is read.
    fs::create_dir(at.join("old")).unwrap();
    fs::copy(at.join("one.zip"), at.join("old/one.zip")).unwrap();
    let said = done(
        &embody_in(
            at,
            &["convert", "one.zip", "old/one.zip", "--output", "both"],
        ),
        2,
    );
    assert!(
        said.contains("one.zip and old/one.zip would both be both/one.mbox"),
        "{said}"
    );
    assert!(!at.join("both").exists());
}

/// Returns an Outlook mailbox with one message in the inbox.
fn pst() -> Vec<u8> {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    pst.folder(None, "Inbox", &[Message::mail("subject", "text\n")]);
    pst.bytes()
}

#[test]
fn several_outlook_mailboxes_become_directories_in_one_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let at = temporary.path();
    fs::write(at.join("a.pst"), pst()).unwrap();
    fs::write(at.join("b.pst"), pst()).unwrap();
    let content = zip(&[("mail/c.pst", &pst()), ("mail/d.mbox", &mbox("d"))]);
    fs::write(at.join("c.zip"), content).unwrap();
    let convert = ["convert", "a.pst", "b.pst", "c.zip", "--output", "all"];
    done(&embody_in(at, &convert), 0);
    for file in [
        "a/Inbox.mbox",
        "b/Inbox.mbox",
        "c/c (2)/Inbox.mbox",
        "c/c.mbox",
    ] {
        assert!(at.join("all").join(file).is_file(), "{file}");
    }
}

#[test]
fn mbox_with_the_name_of_a_part_of_a_maildir_is_read_and_copied() {
    for (directories, mboxes) in [
        (&["cur", "new"][..], &["tmp"][..]),
        (&["cur"], &["new", "tmp"]),
        (&["new"], &["cur"]),
        (&[], &["cur", "new", "tmp", "Inbox"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for (place, count) in [("mail", 1), ("mail/Work", 2)] {
            let source = at.join(place);
            for part in directories {
                fs::create_dir_all(source.join(part)).unwrap();
                let name = format!("{count}{part}");
                let path = source.join(part).join("1700000000.M1P1.host");
                fs::write(path, message(&name)).unwrap();
            }
            fs::create_dir_all(&source).unwrap();
            for name in mboxes {
                fs::write(source.join(name), mbox(&format!("{count}{name}"))).unwrap();
            }
        }
        let messages = 2 * (directories.len() + mboxes.len());
        let case = format!("{directories:?} {mboxes:?}");
        let inspected = embody_in(at, &["inspect", "--json", "mail"]);
        let said = String::from_utf8(inspected.stdout).unwrap();
        let files = format!("\"files\":{{\"read\":{messages},\"parts\":0,\"not_mail\":0,");
        assert!(said.contains(&files), "{case}: {said}");
        for format in ["auto", "maildir", "mbox", "eml", "thunderbird"] {
            let mut convert = vec!["convert", "mail", "--output", "out"];
            if format != "auto" {
                convert.extend(["--output-format", format]);
            }
            for words in [&convert[..], &["compare", "mail", "out"]] {
                let output = embody_in(at, words);
                let said = String::from_utf8_lossy(&output.stderr);
                let flags = words[0] == "compare" && format == "eml";
                let status = output.status.code();
                assert!(status == Some(0) || flags, "{case} {words:?}: {said}");
                assert!(!said.contains("not read"), "{case} {words:?}: {said}");
            }
            fs::remove_dir_all(at.join("out")).unwrap();
        }
        done(&embody_in(at, &["merge", "mail", "--output", "merged"]), 0);
        done(
            &embody_in(at, &["compare", "--merged", "mail", "merged"]),
            0,
        );
    }
}
