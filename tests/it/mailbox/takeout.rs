//! The state of Gmail's mail in a Google Takeout: read, starred, draft and trash are kept in every format (docs/takeout.md).

use std::fs;
use std::path::Path;

use super::maildir::dovecot_says;
use crate::common::programs::{done, embody_in, program, skipped};

/// Labels of a mail, the directory and the letters of its file in a Maildir, and its fields in an mbox.
const MAILS: &[(&str, &str, &str)] = &[
    (
        "Inbox,Opened,Starred",
        "cur/:2,FS",
        "Status: RO\nX-Status: F\n",
    ),
    ("Inbox,Unread", "new/", ""),
    ("Sent,Opened", "cur/:2,S", "Status: RO\n"),
    ("Drafts", "cur/:2,DS", "Status: RO\nX-Status: T\n"),
    ("Trash,Opened", "cur/:2,ST", "Status: RO\n"),
    (
        "Inbox,Important,Unread",
        "cur/:2,a",
        "Status: O\nX-Keywords: $Important\n",
    ),
    ("Archived,Work,IMAP_$Forwarded", "cur/:2,PS", "Status: RO\n"),
    (
        "=?UTF-8?Q?Bo=C3=AEte_de_r=C3=A9ception,Ouvert,Cat?=\n =?UTF-8?Q?=C3=A9gorie=C2=A0:_Forums?=",
        "cur/:2,S",
        "Status: RO\n",
    ),
    (
        "=?UTF-8?Q?Posteingang,Ungelesen,Markiert?=",
        "cur/:2,F",
        "Status: O\nX-Status: F\n",
    ),
    // Labels in an unknown language do not show the state.
    ("Lukematon,Saapuneet", "new/", ""),
];

fn mbox(mails: &[(String, &str)]) -> String {
    let mails = mails.iter().enumerate().map(|(number, (labels, fields))| {
        format!(
            "From 18000000000000000{number:02}@xxx Sat Jun 01 10:{number:02}:00 +0000 2024\nX-GM-THRID: 18\nX-Gmail-Labels: {labels}\n{fields}Subject: m{number}\n\nText {number}\n\n"
        )
    });
    mails.collect()
}

fn takeout() -> String {
    let mails = MAILS.iter().map(|(labels, ..)| ((*labels).to_owned(), ""));
    mbox(&mails.collect::<Vec<_>>())
}

/// Returns the directory, the letters, and the number of the mail for each file in a Maildir.
fn letters(maildir: &Path) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for part in ["cur", "new"] {
        for entry in fs::read_dir(maildir.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let flags = name.find(":2,").map_or("", |at| &name[at..]);
            let content = fs::read_to_string(&path).unwrap();
            let (_, text) = content.split_once("Text ").unwrap();
            found.push((text.trim().parse().unwrap(), format!("{part}/{flags}")));
        }
    }
    found.sort();
    found
}

fn convert(at: &Path, arguments: &[&str]) {
    done(&embody_in(at, &[&["convert"], arguments].concat()), 0);
}

#[test]
fn takeout_as_a_maildir_keeps_what_was_read_starred_drafted_and_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("All mail.mbox"), takeout()).unwrap();
    convert(
        at,
        &[
            "All mail.mbox",
            "--output-format",
            "maildir",
            "--output",
            "md",
        ],
    );
    let expected: Vec<(usize, String)> = MAILS
        .iter()
        .enumerate()
        .map(|(number, (_, place, _))| (number, (*place).to_owned()))
        .collect();
    assert_eq!(letters(&at.join("md")), expected);
    assert_eq!(
        fs::read_to_string(at.join("md/dovecot-keywords")).unwrap(),
        "0 $Important\n"
    );
    // The conversion back has the same result, and so has a second Maildir.
    convert(
        at,
        &["md", "--output-format", "mbox", "--output", "back.mbox"],
    );
    convert(
        at,
        &["back.mbox", "--output-format", "maildir", "--output", "md2"],
    );
    assert_eq!(letters(&at.join("md2")), expected);
    let compared = embody_in(at, &["compare", "All mail.mbox", "md2"]);
    assert_eq!(compared.status.code(), Some(0));
}

#[test]
fn mailboxes_of_labels_have_the_state_of_each_mail() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("all.mbox"), takeout()).unwrap();
    convert(at, &["all.mbox", "--by-label", "--output", "boxes"]);
    let mut names: Vec<String> = fs::read_dir(at.join("boxes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "Drafts.mbox",
        "INBOX.mbox",
        "Lukematon.mbox",
        "Sent.mbox",
        "Trash.mbox",
        "Work.mbox",
    ];
    assert_eq!(names, expected);
    let all: String = names
        .iter()
        .map(|name| fs::read_to_string(at.join("boxes").join(name)).unwrap())
        .collect();
    for (number, (_, _, fields)) in MAILS.iter().enumerate() {
        let end = format!("Subject: m{number}\n{fields}\nText {number}\n");
        assert!(all.contains(&end), "{number}: {all}");
    }
    // Only a field of Thunderbird can mark a mail as forwarded.
    assert_eq!(all.matches("X-Mozilla-Status: 1001\nX-GM-THRID").count(), 1);
    // Mail in the folder Trash is not marked as deleted, because programs would remove it permanently.
    convert(
        at,
        &[
            "all.mbox",
            "--by-label",
            "--output-format",
            "maildir",
            "--output",
            "md",
        ],
    );
    assert_eq!(letters(&at.join("md/Trash")), [(4, "cur/:2,S".to_owned())]);
    assert!(at.join("md/INBOX/dovecot-keywords").exists());
    assert!(!at.join("md/Sent/dovecot-keywords").exists());
    // No mail is missing.
    let compared = embody_in(at, &["compare", "all.mbox", "md"]);
    assert_eq!(compared.status.code(), Some(0));
}

#[test]
fn gmail_labels_are_combined_with_status_fields_and_maildir_flags() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let noted = [
        ("Inbox,Opened".to_owned(), "X-Status: F\n"),
        ("Inbox,Unread".to_owned(), "Status: RO\n"),
        (
            "Inbox,Starred,Unread".to_owned(),
            "Status: O\nX-Status: A\n",
        ),
        // The Status field of a program is newer than the labels, so the mail is not in the trash.
        ("Trash,Opened".to_owned(), "Status: RO\n"),
        ("Inbox,Important,Unread".to_owned(), "X-Keywords: work\n"),
    ];
    fs::write(at.join("in.mbox"), mbox(&noted)).unwrap();
    convert(
        at,
        &["in.mbox", "--output-format", "maildir", "--output", "md"],
    );
    let places = [
        "cur/:2,FS",
        "cur/:2,S",
        "cur/:2,FR",
        "cur/:2,S",
        "cur/:2,ab",
    ];
    let expected: Vec<(usize, String)> = (0..).zip(places.map(str::to_owned)).collect();
    assert_eq!(letters(&at.join("md")), expected);
    convert(at, &["in.mbox", "--by-label", "--output", "boxes"]);
    let inbox = fs::read_to_string(at.join("boxes/INBOX.mbox")).unwrap();
    for fields in [
        "X-Status: F\nSubject: m0\nStatus: RO\n\n",
        "Status: RO\nSubject: m1\n\n",
        "Status: O\nX-Status: AF\nSubject: m2\n\n",
        "X-Keywords: work $Important\nSubject: m4\nStatus: O\n\n",
    ] {
        assert!(inbox.contains(fields), "{fields}: {inbox}");
    }
    // The letters of a Maildir are combined with labels, too.
    let opened = mbox(&[("Inbox,Opened".to_owned(), "")]);
    let (_, opened) = opened.split_once('\n').unwrap();
    fs::write(at.join("md/new/1.host"), opened).unwrap();
    convert(
        at,
        &["md", "--output-format", "mbox", "--output", "out.mbox"],
    );
    let out = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert!(out.starts_with("From "), "{out}");
    assert!(
        out.contains("Inbox,Opened\nSubject: m0\nStatus: RO\n\n"),
        "{out}"
    );
}

#[test]
fn mbox_that_stays_an_mbox_keeps_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("all.mbox"), takeout()).unwrap();
    convert(at, &["all.mbox", "--output", "same.mbox"]);
    assert_eq!(fs::read_to_string(at.join("same.mbox")).unwrap(), takeout());
}

#[test]
fn dovecot_sees_the_state_of_a_takeout_in_both_forms() {
    let test = "dovecot_sees_the_state_of_a_takeout_in_both_forms";
    if program("doveadm").is_none() {
        return skipped(test, "doveadm");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("all.mbox"), takeout()).unwrap();
    convert(
        at,
        &["all.mbox", "--output-format", "maildir", "--output", "md"],
    );
    convert(
        at,
        &["md", "--output-format", "mbox", "--output", "out.mbox"],
    );
    fs::create_dir(at.join("root")).unwrap();
    let says = |location: String| {
        let said = dovecot_says(at, &location, "hdr.subject flags").unwrap();
        let lines = said.iter().map(|line| {
            let words = line.split_whitespace().filter(|word| *word != "\\Recent");
            words.collect::<Vec<_>>().join(" ")
        });
        lines.collect::<Vec<String>>()
    };
    let maildir = says(format!("maildir:{}", at.join("md").display()));
    let of = |number: usize| {
        let subject = format!("hdr.subject: m{number}");
        let at = maildir.iter().position(|line| *line == subject).unwrap();
        maildir[at + 1].as_str()
    };
    assert_eq!(of(0), "flags: \\Flagged \\Seen");
    assert_eq!(of(1), "flags:");
    assert_eq!(of(3), "flags: \\Seen \\Draft");
    assert_eq!(of(5), "flags: $Important");
    let mbox = says(format!(
        "mbox:{}:INBOX={}",
        at.join("root").display(),
        at.join("out.mbox").display()
    ));
    // In an mbox, Dovecot only shows keywords that it already knows.
    let known = maildir
        .iter()
        .map(|line| line.replace("flags: $Important", "flags:"));
    assert_eq!(mbox, known.collect::<Vec<_>>());
}
