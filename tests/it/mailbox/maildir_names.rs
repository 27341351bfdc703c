//! File names of messages in a new Maildir, for Maildirs in which other programs changed them (docs/mailboxes.md, "Maildirs of
//! other programs").

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::folder::Folder;
use crate::common::programs::{embody_in, stderr};

fn mail(subject: &str) -> String {
    format!(
        "From: Ann <a@example.org>\nSubject: {subject}\nMessage-ID: <{subject}@example.org>\n\nText.\n"
    )
}

/// Returns a message with the fields that Thunderbird writes before its header.
fn of_thunderbird(status: &str, subject: &str) -> String {
    format!(
        "From - Mon Jan  6 10:00:00 2020\nX-Mozilla-Status: {status}\nX-Mozilla-Status2: 00000000\n{}",
        mail(subject)
    )
}

/// Returns the name of each message of a Maildir, by its subject.
fn names(maildir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in ["cur", "new"] {
        for entry in fs::read_dir(maildir.join(part)).unwrap() {
            let entry = entry.unwrap();
            let content = fs::read_to_string(entry.path())
                .unwrap()
                .replace('\r', "\n");
            let field = content.split("Subject: ").nth(1).unwrap_or("(none)\n");
            let subject = field.lines().next().unwrap();
            let name = format!("{part}/{}", entry.file_name().to_string_lossy());
            assert_eq!(
                found.insert(subject.to_owned(), name),
                None,
                "two messages are the same"
            );
        }
    }
    found
}

/// Converts a Maildir with these files, and returns the names of the messages in the result.
fn converted(files: &[(&str, String)]) -> BTreeMap<String, String> {
    let folder = Folder::new();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.at("Maildir").join(part)).unwrap();
    }
    for (name, content) in files {
        folder.write(&format!("Maildir/{name}"), content);
    }
    let done = folder.output("convert Maildir --output-format maildir --output new");
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let compared = folder.output("compare Maildir new");
    assert_eq!(compared.status.code(), Some(0), "{}", stderr(&compared));
    names(&folder.at("new"))
}

#[test]
fn messages_whose_corrected_names_are_equal_get_a_number() {
    let files = [
        ("cur/1.M1P1.h:2,S", mail("colon")),
        ("cur/1.M1P1.h_2,S", mail("underscore")),
        ("cur/1.M1P1.h%3A2,S", mail("encoded")),
        ("cur/1.M1P1.h=2,F", mail("equals")),
        ("cur/2.h,S=10_2,RS", mail("sized")),
        ("cur/2.h,S=10+2,RS", mail("sized-too")),
        ("cur/x.eml", of_thunderbird("0001", "suffix")),
        ("cur/x:2,S", mail("bare")),
        ("new/y", mail("new")),
        ("new/y.eml", of_thunderbird("0000", "new-suffix")),
    ];
    let found = converted(&files);
    assert_eq!(found.len(), files.len(), "{found:?}");
    let bases: Vec<String> = found
        .values()
        .map(|name| name.split([':', '/']).nth(1).unwrap().to_owned())
        .collect();
    for (at, base) in bases.iter().enumerate() {
        assert!(!bases[..at].contains(base), "{base} twice: {found:?}");
    }
    assert_eq!(found["colon"], "cur/1.M1P1.h:2,S");
    assert_eq!(found["bare"], "cur/x:2,S");
    assert_eq!(found["suffix"], "cur/x.n2:2,S");
    assert_eq!(found["new-suffix"], "cur/y.n2:2,");
    let mut sized = [found["sized"].as_str(), found["sized-too"].as_str()];
    sized.sort_unstable();
    assert_eq!(sized, ["cur/2.h,S=10:2,RS", "cur/2.h.n2,S=10:2,RS"]);
}

#[test]
fn flags_before_a_suffix_and_in_mail_with_other_line_endings_are_kept() {
    let bare_returns = of_thunderbird("0003", "bare-returns").replace('\n', "\r");
    let found = converted(&[
        ("cur/1.host_2,FS.eml", mail("underscore")),
        ("cur/2.host:2,FS.eml", mail("colon")),
        ("cur/3.eml", bare_returns),
        (
            "cur/4.eml",
            format!("\u{feff}{}", of_thunderbird("0005", "mark")),
        ),
        (
            "cur/5.eml",
            of_thunderbird("0007", "crlf").replace('\n', "\r\n"),
        ),
    ]);
    for (subject, name) in [
        ("underscore", "cur/1.host:2,FS"),
        ("colon", "cur/2.host:2,FS"),
        ("bare-returns", "cur/3:2,RS"),
        ("mark", "cur/4:2,FS"),
        ("crlf", "cur/5:2,FRS"),
    ] {
        assert_eq!(found[subject], name);
    }
}

#[test]
fn message_of_thunderbird_in_utf16_is_copied_as_it_is() {
    let folder = Folder::new();
    let wide = |text: &str| -> Vec<u8> {
        let units = format!("\u{feff}{text}");
        units.encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    let content = wide(&of_thunderbird("0001", "wide"));
    folder.write("Inbox/cur/1.eml", of_thunderbird("0005", "one"));
    folder.write("Inbox/cur/2.eml", &content);
    folder.write("Inbox/cur/3.eml", of_thunderbird("0005", "three"));
    folder.run("convert Inbox --output-format maildir --output new");
    assert_eq!(fs::read(folder.at("new/cur/2:2,S")).unwrap(), content);
    assert_eq!(fs::read_dir(folder.at("new/cur")).unwrap().count(), 3);
}

#[test]
fn empty_file_does_not_hide_a_maildir_of_thunderbird() {
    let folder = Folder::new();
    folder.write("Inbox/cur/1.eml", of_thunderbird("0005", "one"));
    folder.write("Inbox/cur/2.eml", "");
    let done = folder.output("convert Inbox --output-format maildir --output new");
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let found = names(&folder.at("new"));
    assert_eq!(found["one"], "cur/1:2,FS");
    // An empty file is a message of no bytes.
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn flags_of_messages_next_to_other_mail_in_cur_are_kept() {
    for part in ["cur", "new"] {
        for other in ["box", "sub/1.eml"] {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            let write = |name: &str, content: &str| {
                let path = place.join("src").join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            };
            write(&format!("md/{part}/1.a.b:2,S"), &mail("one"));
            write(&format!("md/{part}/2.a.b:2,RSa"), &mail("two"));
            let separator = match other {
                "box" => "From a@example.org Mon Jan  6 10:00:00 2020\n",
                _ => "",
            };
            write(
                &format!("md/{part}/{other}"),
                &format!("{separator}{}", mail("other")),
            );
            write("md/dovecot-keywords", "0 Work\n");
            for format in ["mbox", "maildir", "thunderbird", "mh"] {
                let arguments = [
                    "convert",
                    "src",
                    "--output-format",
                    format,
                    "--output",
                    format,
                ];
                let output = embody_in(place, &arguments);
                assert!(
                    output.status.success(),
                    "{part} {other}: {}",
                    stderr(&output)
                );
                let output = embody_in(place, &["compare", "src", format]);
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(output.status.success(), "{part} {other} {format}: {said}");
            }
            let written = fs::read_to_string(place.join(format!("mbox/md/{part}.mbox"))).unwrap();
            assert!(written.contains("X-Keywords: Work\n"), "{written}");
        }
    }
}
