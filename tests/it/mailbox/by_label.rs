//! `--by-label`: a mailbox for each label of a Takeout. Labels are untrusted text (docs/takeout.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::archives::zip;
use crate::common::folder::Folder;
use crate::common::programs::{done, embody, embody_in, fed, stderr};

/// Returns the mailboxes in a directory, and the number of messages in each.
fn mailboxes(folder: &Path) -> BTreeMap<String, usize> {
    let count = |path: &Path| {
        if path.is_file() {
            return fs::read_to_string(path)
                .unwrap()
                .matches("From MAILER-DAEMON ")
                .count();
        }
        let parts = if path.join("cur").is_dir() {
            vec![path.join("cur"), path.join("new")]
        } else {
            vec![path.to_owned()]
        };
        parts
            .iter()
            .map(|part| fs::read_dir(part).unwrap().count())
            .sum()
    };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                count(&entry.path()),
            )
        })
        .collect()
}

fn mail(number: usize, labels: Option<&str>) -> String {
    let labels = labels.map_or_else(String::new, |labels| format!("X-Gmail-Labels: {labels}\n"));
    format!(
        "From - Mon Jan  2 15:04:05 2023\nX-GM-THRID: 1\n{labels}Subject: {number}\n\nbody {number}\n\n"
    )
}

fn expected(rows: &[(&str, usize)]) -> BTreeMap<String, usize> {
    rows.iter()
        .map(|&(name, count)| (name.to_owned(), count))
        .collect()
}

#[test]
fn two_labels_with_one_mailbox_put_the_message_there_once() {
    for format in ["mbox", "maildir", "eml", "mh", "thunderbird"] {
        let folder = Folder::new();
        let mails = [
            mail(1, Some("Inbox,INBOX")),
            mail(2, Some("Spam,Junk,Work")),
        ]
        .concat();
        folder.write("t.mbox", mails);
        folder.run(&format!(
            "convert t.mbox --by-label=all --output out --output-format {format}"
        ));
        folder.run("compare --merged t.mbox out");
        let mut count = 0;
        let mut rest = vec![folder.at("out")];
        while let Some(path) = rest.pop() {
            if path.is_dir() {
                rest.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
            } else {
                count += fs::read_to_string(path).unwrap().matches("body 1").count();
            }
        }
        assert_eq!(count, 1, "{format}");
    }
}

#[test]
fn label_with_a_quotation_mark_is_a_label_of_its_own_and_survives_merge() {
    let folder = Folder::new();
    let labelled = |labels: &str| {
        mail(1, Some(labels)).replace("X-GM-THRID: 1\n", "Message-ID: <1@example.org>\n")
    };
    for (name, labels) in [
        ("a.mbox", "Work"),
        ("b.mbox", "12\" vinyl,Play"),
        ("c.mbox", "7\" single,=?UTF-8?Q?B=C3=BCcher,=22x,y=22?="),
    ] {
        folder.write(name, labelled(labels));
    }
    folder.run("merge a.mbox b.mbox c.mbox --output abc.mbox");
    folder.run("merge c.mbox b.mbox a.mbox --output cba.mbox");
    let all = [
        ("12_ vinyl.mbox", 1),
        ("7_ single.mbox", 1),
        ("B\u{fc}cher.mbox", 1),
        ("Play.mbox", 1),
        ("Work.mbox", 1),
        ("x,y.mbox", 1),
    ];
    for source in ["abc.mbox", "cba.mbox"] {
        let labels = source.replace(".mbox", "-labels");
        folder.run(&format!(
            "convert {source} --by-label=all --output {labels}"
        ));
        let found = mailboxes(&folder.at(&labels));
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected(&all).keys().collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_mail_stands_once_in_the_mailbox_of_each_of_its_labels() {
    let mbox = [
        mail(1, Some("Inbox,Opened,Work/2023")),
        mail(
            2,
            Some("=?UTF-8?Q?Arch=C3=ADvado,\"Foo,_Bar\",Inbox,Inbox?="),
        ),
        mail(3, Some("\"Foo, Bar\",\n =?utf-8?B?w7xiZXI=?=")),
        mail(4, None),
        mail(5, Some("")),
    ]
    .concat();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(
        at.join("takeout.zip"),
        zip(&[("Takeout/Mail/All mail.mbox", mbox.as_bytes())]),
    )
    .unwrap();
    fs::write(at.join("all.mbox"), &mbox).unwrap();
    let names = [
        ("Archívado", 1),
        ("Foo, Bar", 2),
        ("INBOX", 2),
        ("No label", 2),
        ("Work.2023", 1),
        ("über", 1),
    ];
    let owned: Vec<(String, usize)> = names
        .iter()
        .map(|(name, count)| (format!("{name}.mbox"), *count))
        .collect();
    let with_suffix: Vec<(&str, usize)> = owned
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    for (source, format, out) in [
        ("takeout.zip", "auto", "a"),
        ("all.mbox", "mbox", "b"),
        ("takeout.zip", "maildir", "c"),
        ("all.mbox", "eml", "d"),
    ] {
        let arguments = [
            "convert",
            source,
            "--by-label=all",
            "--output-format",
            format,
            "--output",
            out,
        ];
        let said = done(&embody_in(at, &arguments), 0);
        assert!(said.contains("5 messages"), "{said}");
        let rows = match format {
            "auto" | "mbox" => &with_suffix[..],
            _ => &names[..],
        };
        assert_eq!(
            mailboxes(&at.join(out)),
            expected(rows),
            "{source} {format}"
        );
    }
    // The file of a mail has the same name in every directory.
    let one = fs::read_to_string(at.join("d/INBOX/00000002.eml")).unwrap();
    assert_eq!(
        one,
        fs::read_to_string(at.join("d/Foo, Bar/00000002.eml")).unwrap()
    );
    done(
        &embody_in(
            at,
            &[
                "convert",
                "all.mbox",
                "--by-label=first",
                "--output",
                "first",
            ],
        ),
        0,
    );
    let first = [
        ("Archívado.mbox", 1),
        ("Foo, Bar.mbox", 1),
        ("No label.mbox", 2),
        ("Work.2023.mbox", 1),
    ];
    assert_eq!(mailboxes(&at.join("first")), expected(&first));
    let bare = ["convert", "all.mbox", "--by-label", "--output", "bare"];
    done(&embody_in(at, &bare), 0);
    assert_eq!(mailboxes(&at.join("bare")), expected(&first));
    // From a pipe, and merged back into one mailbox.
    let mut piped = embody();
    piped.current_dir(at).args([
        "convert",
        "-",
        "--by-label=all",
        "--output-format=maildir",
        "--output",
        "piped",
    ]);
    done(&fed(&mut piped, mbox.as_bytes()), 0);
    assert_eq!(mailboxes(&at.join("piped")), expected(&names));
    // `embed`, `detach` and `restore` have the option, too.
    let detach = [
        "detach",
        "--store",
        "store",
        "all.mbox",
        "--by-label=all",
        "--output",
        "detached",
    ];
    done(&embody_in(at, &detach), 0);
    assert_eq!(mailboxes(&at.join("detached")), expected(&with_suffix));
}

/// A Takeout of selected labels has an mbox for each. A mail is in the mbox of each of its labels.
#[test]
fn repeated_mail_is_written_once_and_a_differing_copy_is_kept() {
    let (one, two) = (mail(1, Some("a,b")), mail(2, Some("b")));
    let later = one.replace("15:04:05", "15:04:06");
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (a, b) = (one.clone() + &later, [one, two].concat());
    let members = [("Mail/a.mbox", a.as_bytes()), ("Mail/b.mbox", b.as_bytes())];
    fs::write(at.join("takeout.zip"), zip(&members)).unwrap();
    let said = done(
        &embody_in(
            at,
            &[
                "convert",
                "takeout.zip",
                "--by-label=all",
                "--output",
                "out",
            ],
        ),
        0,
    );
    assert!(said.contains("1 message occurs twice"), "{said}");
    assert_eq!(
        mailboxes(&at.join("out")),
        expected(&[("a.mbox", 2), ("b.mbox", 3)])
    );
    // A conversion to another format keeps all copies in a single mailbox.
    done(
        &embody_in(
            at,
            &[
                "convert",
                "takeout.zip",
                "--output-format",
                "eml",
                "--output",
                "eml",
            ],
        ),
        0,
    );
    assert_eq!(fs::read_dir(at.join("eml")).unwrap().count(), 4);
}

#[test]
fn no_label_leads_out_of_the_folder_or_into_another_mailbox() {
    let labels = [
        "..",
        ".",
        "../../x",
        "/etc/x",
        "a\\b",
        "CON",
        "nul.mbox",
        "cur",
        "new",
        "tmp",
        "work",
        "Work",
        "WORK",
        "Work (2)",
        "caf\u{e9}",
        "cafe\u{301}",
        ".hidden",
        "dot.",
        "blank ",
        "=?utf-8?Q?a=00b=0Ac?=",
        "No label",
        "a.mbox/b",
        "a",
        "=?utf-8?Q?=E2=80=AEx?=",
        ".embody-x-1-y",
        "*",
        "\"\"",
        "-rf",
        "~",
    ];
    let long = "x".repeat(400);
    let mut mbox: String = labels
        .iter()
        .enumerate()
        .map(|(number, label)| mail(number, Some(label)))
        .collect();
    mbox += &mail(90, Some(&format!("{long}1")));
    mbox += &mail(91, Some(&format!("{long}2")));
    mbox += &mail(92, Some(&"x".repeat(2000)));
    mbox += &mail(93, None);
    let count = labels.len() + 4;
    for format in ["mbox", "maildir", "eml"] {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("1/2/3");
        fs::create_dir_all(&at).unwrap();
        fs::write(at.join("all.mbox"), &mbox).unwrap();
        let arguments = [
            "convert",
            "all.mbox",
            "--by-label",
            "--output-format",
            format,
            "--output",
            "out",
        ];
        let said = done(&embody_in(&at, &arguments), 0);
        assert!(
            said.contains("1 message has too many or too long labels"),
            "{said}"
        );
        let made = mailboxes(&at.join("out"));
        assert_eq!(made.values().sum::<usize>(), count, "{made:?}");
        // Each label has a separate mailbox. Mails without a label share one.
        let shared = made.values().filter(|count| **count > 1).count();
        assert_eq!((made.len(), shared), (count - 1 - 1, 1), "{made:?}");
        let mut folded: Vec<String> = made.keys().map(|name| name.to_lowercase()).collect();
        folded.sort();
        folded.dedup();
        assert_eq!(folded.len(), made.len(), "{made:?}");
        for name in made.keys() {
            assert!(!name.starts_with('.') && name.len() <= 255, "{name}");
            assert!(
                !name.contains(|symbol: char| symbol.is_control() || "\\*\"".contains(symbol)),
                "{name}"
            );
        }
        for above in ["1/2/3", "1/2", "1", "."] {
            let entries = fs::read_dir(folder.path().join(above)).unwrap().count();
            assert_eq!(entries, if above == "1/2/3" { 2 } else { 1 }, "{above}");
        }
    }
}

#[test]
fn thousands_of_labels_cost_no_open_files_and_are_bounded_in_each_mail() {
    let mut mbox = String::new();
    for number in 0..60 {
        let labels: Vec<String> = (0..50)
            .map(|label| format!("label {}", number * 50 + label))
            .collect();
        mbox += &mail(number, Some(&labels.join(",")));
    }
    let labels: Vec<String> = (0..5000).map(|label| format!("l{label}")).collect();
    mbox += &mail(60, Some(&labels.join(",")));
    // Each of the mboxes is reopened many times.
    for number in 0..40 {
        mbox += &mail(100 + number, Some("label 0,label 2999,label 7,label 1500"));
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("all.mbox"), mbox).unwrap();
    for format in ["mbox", "maildir"] {
        let line = "ulimit -n 64; exec \"$0\" convert all.mbox --jobs 2 --by-label=all --output-format $1 --output $1";
        let mut limited = Command::new("sh");
        limited
            .args(["-c", line])
            .arg(embody().get_program())
            .arg(format)
            .current_dir(at);
        let output = limited.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("1 message has too many or too long labels"),
            "{}",
            stderr(&output)
        );
        let made = mailboxes(&at.join(format));
        assert_eq!(made.len(), 3000 + 100, "{format}");
        let suffix = if format == "mbox" { ".mbox" } else { "" };
        assert_eq!(made[&format!("label 2999{suffix}")], 41);
        assert_eq!(made[&format!("l99{suffix}")], 1);
    }
}
