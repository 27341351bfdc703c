//! Flags and keywords of the messages in an archive are kept, or named (docs/mailboxes.md, "Google Takeout and other
//! archives").

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use crate::common::archives::{tar, zip};
use crate::common::folder::Folder;
use crate::common::programs::{embody, stderr};

const DOVECOT: &str = "0 $Forwarded\n1 Invoices\n";

fn mail(subject: &str) -> String {
    format!(
        "From: Ann <a@example.org>\nSubject: {subject}\nMessage-ID: <{subject}@example.org>\n\nText.\n"
    )
}

/// Returns the paths of all files in `cur` and `new` of a Maildir.
fn names(maildir: &Path) -> Vec<String> {
    let entries = ["cur", "new"].map(|part| (part, fs::read_dir(maildir.join(part)).unwrap()));
    let names = entries.into_iter().flat_map(|(part, entries)| {
        entries.map(move |entry| format!("{part}/{}", entry.unwrap().file_name().display()))
    });
    names.collect()
}

/// The members of an archive with a Maildir, in order.
type Members = Vec<(String, String)>;

/// Returns the files of a Maildir at `place`. The file with keywords is the last one if `is_last` is true.
fn maildir(place: &str, state: &[(&str, &str)], is_last: bool) -> Members {
    let mails = [
        ("cur/1578304801.M1P1.h,S=90:2,FSab", mail("one")),
        ("cur/1578304802.M2P1.h:2,S", mail("two")),
        ("new/1578304803.M3P1.h", mail("three")),
    ];
    let messages = mails.map(|(name, content)| (format!("{place}{name}"), content));
    let state = state
        .iter()
        .map(|(name, content)| (format!("{place}{name}"), (*content).to_owned()));
    if is_last {
        messages.into_iter().chain(state).collect()
    } else {
        state.chain(messages).collect()
    }
}

fn tarred(members: &Members) -> Vec<u8> {
    let members: Vec<_> = members
        .iter()
        .map(|(name, content)| (name.as_str(), b'0', content.as_bytes()))
        .collect();
    tar(&members)
}

fn zipped(members: &Members) -> Vec<u8> {
    let members: Vec<_> = members
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_bytes()))
        .collect();
    zip(&members)
}

fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn keywords_of_maildirs_in_archives_are_kept_wherever_their_file_is() {
    let courier = "$Forwarded\nInvoices\n\n1578304801.M1P1.h,S=90:0 1\n";
    for (state, letters) in [
        (("dovecot-keywords", DOVECOT), "ab"),
        (("courierimapkeywords/:list", courier), ""),
        (
            (
                "courierimapkeywords/1578304801.M1P1.h,S=90",
                "$Forwarded\nInvoices\n",
            ),
            "",
        ),
    ] {
        for (place, is_last) in [
            ("", true),
            ("", false),
            ("./Maildir/", true),
            ("Maildir/.Sub/", false),
        ] {
            let mut members = maildir(place, &[state], is_last);
            for (name, _) in &mut members {
                *name = name.replace("FSab", &format!("FS{letters}"));
            }
            let (zip_file, tar_file) = (zipped(&members), tarred(&members));
            let nested = zip(&[("text", b"Dear all,\n"), ("inner.tar", &tar_file)]);
            for (name, archive) in [
                ("in.tar.gz", gzipped(&tar_file)),
                ("in.zip", zip_file),
                ("in.tar", tar_file),
                ("nested.zip", nested),
            ] {
                let folder = Folder::new();
                folder.write(name, archive);
                let said = folder.run(&format!("convert {name} --output out.mbox"));
                let mbox = folder.read("out.mbox");
                let case = format!("{name} {state:?} {place}: {said}{mbox}");
                assert!(
                    mbox.contains("\nX-Keywords: $Forwarded Invoices\n"),
                    "{case}"
                );
                assert_eq!(mbox.matches("X-Keywords").count(), 1, "{case}");
                assert!(!said.contains("not kept"), "{case}");
                let line = format!("convert {name} --output-format maildir --output md");
                folder.run(&line);
                assert_eq!(folder.read("md/dovecot-keywords"), DOVECOT, "{case}");
                folder.run(&format!("merge {name} --output merged.mbox"));
                let merged = folder.read("merged.mbox");
                assert!(
                    merged.contains("X-Keywords: $Forwarded Invoices\n"),
                    "{case}"
                );
                folder.run(&format!("compare {name} out.mbox"));
            }
        }
    }
}

#[test]
fn each_maildir_in_an_archive_has_its_own_keywords() {
    let mut members = maildir("a/", &[("dovecot-keywords", DOVECOT)], true);
    members.extend(maildir("b/", &[("dovecot-keywords", "0 Other\n")], false));
    let folder = Folder::new();
    folder.write("in.tar", tarred(&members));
    let said = folder.run("convert in.tar --output out.mbox");
    let mbox = folder.read("out.mbox");
    for keywords in ["$Forwarded Invoices\n", "Other\n"] {
        assert!(
            mbox.contains(&format!("\nX-Keywords: {keywords}")),
            "{mbox}"
        );
    }
    let lost = "not kept        1  keyword letter b, because the file dovecot-keywords does not explain it";
    assert!(said.contains(lost), "{said}");
}

#[test]
fn flags_of_a_message_with_a_separator_in_an_archive_are_kept() {
    for first in [
        "From - Mon Jan  6 10:00:00 2020\n",
        ">From a@b Mon Jan  6 10:00:00 2020\n",
    ] {
        let message = format!("{first}{}>From here on, quoted.\n", mail("one"));
        let members = vec![
            ("M/cur/1578304801.M1P1.h:2,FSb".to_owned(), message),
            ("M/dovecot-keywords".to_owned(), DOVECOT.to_owned()),
        ];
        let folder = Folder::new();
        folder.write("in.zip", zipped(&members));
        folder.run("convert in.zip --output-format maildir --output md");
        let maildir = names(&folder.at("md"));
        let name = maildir.iter().find(|name| name.ends_with(":2,FSa"));
        let content = folder.read(&format!("md/{}", name.unwrap()));
        assert!(content.starts_with("From: Ann"), "{content}");
        assert!(content.ends_with("\n>From here on, quoted.\n"), "{content}");
        folder.run("compare in.zip md");
    }
}

#[test]
fn attachments_that_other_files_of_an_archive_contain_are_named() {
    let part = format!("{}--b\nX-Apple-Content-Length: 7\n\n--b--\n", mail("one"));
    let emlx = format!("{}\n{part}", part.len());
    let eudora = format!("From ???@??? Mon Jan 06 10:00:00 2020\n{}\n", mail("two"));
    for (name, content, status, named) in [
        (
            "Messages/1.partial.emlx",
            &emlx,
            1,
            "Messages/1.partial.emlx (its attachments are in other files of the archive",
        ),
        ("Messages/1.emlx", &emlx, 0, ""),
        (
            "In.mbx",
            &eudora,
            0,
            "not kept        1  flags and attachments of a Eudora mailbox",
        ),
    ] {
        let folder = Folder::new();
        let members = vec![(name.to_owned(), content.clone())];
        folder.write("in.zip", zipped(&members));
        let output = folder.output("convert in.zip --output out.mbox");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{name}: {said}");
        assert!(said.contains(named), "{name}: {said}");
        assert!(folder.read("out.mbox").contains("Subject: "), "{name}");
    }
}

#[test]
fn keywords_of_compressed_messages_in_an_archive_are_kept() {
    let message = gzipped(mail("one").as_bytes());
    let folder = Folder::new();
    let members: [(&str, &[u8]); 2] = [
        ("Maildir/cur/1578304801.M1P1.h:2,Sb", &message),
        ("Maildir/dovecot-keywords", DOVECOT.as_bytes()),
    ];
    folder.write("in.zip", zip(&members));
    folder.run("convert in.zip --output out.mbox");
    let mbox = folder.read("out.mbox");
    assert!(mbox.contains("X-Keywords: Invoices\n"), "{mbox}");
}

#[test]
fn keywords_that_come_too_late_in_a_stream_are_named_with_their_number() {
    let courier = "work\n\n1578304801.M1P1.h,S=90:0\n1578304802.M2P1.h:0\n";
    let late = "keywords, because they come after their messages in the stream";
    for (state, is_last, expected) in [
        (("dovecot-keywords", DOVECOT), false, ""),
        (("dovecot-keywords", DOVECOT), true, "1  keyword letter a"),
        (("courierimapkeywords/:list", courier), true, late),
    ] {
        let folder = Folder::new();
        let archive = folder.write("in.tar", tarred(&maildir("Maildir/", &[state], is_last)));
        let output = embody()
            .args(["convert", "-", "--output", "out.mbox"])
            .current_dir(folder.path())
            .stdin(File::open(archive).unwrap())
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.contains("not kept"), !expected.is_empty(), "{said}");
    }
}

#[test]
fn flags_in_the_path_of_a_member_are_kept_if_it_is_long_or_has_backslashes() {
    let place = format!("{}/", "a long name of a folder".repeat(12));
    let members = maildir(&place, &[("dovecot-keywords", DOVECOT)], false);
    // Some programs for Windows write backslashes.
    let mut others = maildir("Maildir/", &[("dovecot-keywords", DOVECOT)], false);
    for (name, _) in &mut others {
        *name = name.replace('/', "\\").replace(':', ";");
    }
    let folder = Folder::new();
    for (name, members) in [("long", members), ("backslashes", others)] {
        folder.write(&format!("{name}.zip"), zipped(&members));
        folder.run(&format!("convert {name}.zip --output {name}.mbox"));
        let mbox = folder.read(&format!("{name}.mbox"));
        assert!(mbox.contains("Status: RO\n"), "{mbox}");
        assert!(mbox.contains("X-Keywords: $Forwarded Invoices\n"), "{mbox}");
    }
}

#[test]
fn files_of_other_programs_with_flags_are_named_in_an_archive() {
    let index = "{\"version\": 3.1, \"uid_validity\": 1, \"messages\": []}";
    let state = "{\"Version\": 1, \"Payload\": {\"LabelIDs\": []}}";
    for (name, content) in [
        ("INBOX.imap", index),
        ("a==.metadata.json", state),
        ("labels.json", state),
        ("12.meta", "{\"labels\": [], \"flags\": [\"Seen\"]}"),
        (".mh_sequences", "unseen: 1\n"),
        (".claws_mark", "\u{2}\0\0\0\u{1}\0\0\0"),
    ] {
        let members = vec![
            ("1".to_owned(), mail("one")),
            (name.to_owned(), content.to_owned()),
        ];
        let folder = Folder::new();
        folder.write("in.zip", zipped(&members));
        let said = folder.run("convert in.zip --output out.mbox");
        let named = "not kept        1  flags in a file of another program";
        assert!(said.contains(named), "{name}: {said}");
        let output = folder.output("inspect --json in.zip");
        let counts = String::from_utf8(output.stdout).unwrap();
        // The archive and its message were read.
        let expected = "\"files\":{\"read\":2,\"parts\":1,\"not_mail\":0,";
        assert!(counts.contains(expected), "{name}: {counts}");
    }
}

#[test]
fn flags_of_other_programs_next_to_messages_are_named_once_with_their_number() {
    for (file, place, program) in [
        ("list/.claws_mark", "list/", "flags of Claws Mail"),
        ("list/.sylpheed_mark", "list/", "flags of Sylpheed"),
        ("list/.marks", "list/", "marks of Gnus"),
        (".list.index", "list/cur/", "flags of KMail"),
        (".notmuch/xapian/flintlock", "list/cur/", "tags of notmuch"),
        (
            "list/.notmuch/xapian/flintlock",
            "list/cur/",
            "tags of notmuch",
        ),
    ] {
        let folder = Folder::new();
        for number in 1..4 {
            folder.write(&format!("mail/{place}{number}"), mail("x"));
        }
        if place == "list/" {
            folder.write("mail/list/.mh_sequences", "cur: 1\n");
        } else {
            folder.write("mail/list/new/.keep", "");
        }
        folder.write(&format!("mail/{file}"), "\u{2}\0\0\0");
        let said = folder.run("convert mail --output-format mbox --output out");
        let named = format!("not kept        3  {program}, because");
        assert_eq!(said.matches(&named).count(), 1, "{file}: {said}");
        // A copy of an MH folder keeps the file, because it keeps the numbers of the messages.
        let said = folder.run("convert mail/list --output copy");
        let is_mh = place == "list/";
        assert_eq!(said.contains(&named), !is_mh, "{file}: {said}");
        if is_mh {
            let name = file.rsplit('/').next().unwrap();
            assert!(folder.at(&format!("copy/{name}")).exists(), "{file}");
        }
    }
}
