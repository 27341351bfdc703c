//! `--output-format thunderbird`: a directory of mail folders that Thunderbird shows below Local Folders, with the state of
//! each mail (docs/thunderbird.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::archives::zip;
use crate::common::programs::{done, embody, embody_in, fed};
use crate::common::thunderbird;

fn mail(number: usize, fields: &str) -> String {
    format!(
        "From 180000000000000{number:04}@xxx Sat Jun 01 10:00:00 +0000 2024\n{fields}From: dan@example.org\nSubject: m{number}\nDate: Sat, 1 Jun 2024 10:00:00 +0000\nMessage-ID: <m{number}@example.org>\n\nText {number}\n>From here on\n\n"
    )
}

fn labelled(number: usize, labels: &str) -> String {
    mail(number, &format!("X-Gmail-Labels: {labels}\n"))
}

/// Returns the files in a directory, and their sizes.
fn files(directory: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(at) = directories.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path)
            } else {
                let name = path.strip_prefix(directory).unwrap();
                let size = fs::metadata(&path).unwrap().len();
                found.insert(name.to_str().unwrap().to_owned(), size);
            }
        }
    }
    found
}

fn names(directory: &Path) -> Vec<String> {
    files(directory).into_keys().collect()
}

fn convert(at: &Path, arguments: &[&str]) -> String {
    done(&embody_in(at, &[&["convert"], arguments].concat()), 0)
}

#[test]
fn one_mailbox_becomes_one_folder_with_fields_of_thunderbird_in_front() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let text = mail(1, "Status: RO\nX-Status: A\n")
        + &mail(
            2,
            "X-Mozilla-Status: 8005\nX-Mozilla-Status2: 10210000\nX-Mozilla-Keys: work \nX-UIDL: 7\n",
        )
        + &mail(3, "");
    fs::write(at.join("old.mbox"), &text).unwrap();
    convert(
        at,
        &[
            "old.mbox",
            "--output-format",
            "thunderbird",
            "--output",
            "new",
        ],
    );
    assert_eq!(names(&at.join("new")), ["old"]);
    let made = fs::read_to_string(at.join("new/old")).unwrap();
    let tags = |tags: &str| format!("X-Mozilla-Keys: {tags:80}\n");
    for start in [
        format!(
            "X-Mozilla-Status: 0003\nX-Mozilla-Status2: 00000000\n{}Status: RO\nX-Status: A\nFrom: dan",
            tags("")
        ),
        // Earlier flags of Thunderbird are kept, except the flag for new mail.
        format!(
            "X-Mozilla-Status: 8005\nX-Mozilla-Status2: 10200000\n{}X-UIDL: 7\nFrom: dan",
            tags("work")
        ),
        format!(
            "X-Mozilla-Status: 0000\nX-Mozilla-Status2: 00000000\n{}From: dan",
            tags("")
        ),
    ] {
        assert!(
            made.contains(&format!("+0000 2024\n{start}"))
                || made.contains(&format!("2024\n{start}")),
            "{start}: {made}"
        );
    }
    assert!(made.contains("\n>From here on\n"), "{made}");
    let same = embody_in(at, &["compare", "old.mbox", "new"]);
    assert_eq!(done(&same, 0), "");
    // A second run over its own result changes only the name of the topmost folder.
    convert(
        at,
        &[
            "new/old",
            "--output-format",
            "thunderbird",
            "--output",
            "again",
        ],
    );
    assert_eq!(fs::read_to_string(at.join("again/old")).unwrap(), made);
}

#[test]
fn flags_of_a_maildir_survive_the_way_to_thunderbird_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(at.join("md").join(part)).unwrap();
    }
    let letters = ["", "S", "F", "R", "P", "D", "T", "DFPRST"];
    for (number, letters) in letters.iter().enumerate() {
        let text = mail(number, "X-Status: F\n");
        let (_, text) = text.split_once('\n').unwrap();
        let name = format!("md/cur/170000000{number}.host:2,{letters}");
        fs::write(at.join(name), text.replace(">From", "From")).unwrap();
    }
    fs::write(at.join("md/new/1.host"), "Subject: new\n\nx\n").unwrap();
    convert(
        at,
        &["md", "--output-format", "thunderbird", "--output", "tb"],
    );
    convert(
        at,
        &["tb/md", "--output-format", "maildir", "--output", "back"],
    );
    for (old, new) in [("md", "tb"), ("tb", "back"), ("md", "back"), ("back", "md")] {
        let compared = embody_in(at, &["compare", old, new]);
        let text = String::from_utf8_lossy(&compared.stdout).into_owned();
        assert_eq!(compared.status.code(), Some(0), "{old} {new}: {text}");
        assert!(text.contains("9 identical."), "{text}");
    }
    let mut found: Vec<String> = fs::read_dir(at.join("back/cur"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.split_once(":2,").unwrap().1.to_owned())
        .collect();
    found.sort();
    let mut expected = [&letters[..], &[""]].concat();
    expected.sort_unstable();
    assert_eq!(found, expected);
    // Thunderbird hides mails with this bit, and removes them when it compacts the folder.
    let made = fs::read_to_string(at.join("tb/md")).unwrap();
    let status = made
        .lines()
        .filter_map(|line| line.strip_prefix("X-Mozilla-Status: "));
    for status in status {
        assert_eq!(u32::from_str_radix(status, 16).unwrap() & 8, 0, "{status}");
    }
}

#[test]
fn nested_folders_of_every_program_become_directories_of_subfolders() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // A directory of Thunderbird itself, with an index and filter rules.
    for (name, content) in [
        ("tb/Inbox", mail(1, "")),
        (
            "tb/Inbox.msf",
            "// <!-- <mdb:mork:z v=\"1.4\"/> -->\n".to_owned(),
        ),
        ("tb/msgFilterRules.dat", "version=\"9\"\n".to_owned()),
        ("tb/Inbox.sbd/Work", String::new()),
        ("tb/Inbox.sbd/Work.sbd/2023", mail(2, "")),
        ("mboxes/lists/rust.mbox", mail(3, "")),
        ("mboxes/Sent", mail(4, "")),
        ("pp/cur/1.host:2,S", "Subject: a\n\nx\n".to_owned()),
        (
            "pp/.Work.2023/cur/1.host:2,S",
            "Subject: b\n\nx\n".to_owned(),
        ),
        ("pp/.Work.2023/new/2.host", "Subject: c\n\nx\n".to_owned()),
    ] {
        let path = at.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for part in ["pp/new", "pp/tmp", "pp/.Work.2023/tmp"] {
        fs::create_dir_all(at.join(part)).unwrap();
    }
    let expected: [(&str, &[&str]); 3] = [
        (
            "tb",
            &[
                "tb",
                "tb.sbd/Inbox",
                "tb.sbd/Inbox.sbd/Work",
                "tb.sbd/Inbox.sbd/Work.sbd/2023",
            ],
        ),
        (
            "mboxes",
            &[
                "mboxes",
                "mboxes.sbd/Sent",
                "mboxes.sbd/lists",
                "mboxes.sbd/lists.sbd/rust",
            ],
        ),
        (
            "pp",
            &["pp", "pp.sbd/Inbox", "pp.sbd/Work", "pp.sbd/Work.sbd/2023"],
        ),
    ];
    for (source, expected) in expected {
        let out = format!("{source}.out");
        convert(
            at,
            &[source, "--output-format", "thunderbird", "--output", &out],
        );
        assert_eq!(names(&at.join(&out)), expected, "{source}");
        let compared = embody_in(at, &["compare", source, &out]);
        assert_eq!(compared.status.code(), Some(0), "{source}");
        let back = format!("{source}.back");
        convert(at, &[&out, "--output-format", "maildir", "--output", &back]);
        let compared = embody_in(at, &["compare", source, &back]);
        assert_eq!(compared.status.code(), Some(0), "{source}");
    }
    // Several sources are written to one directory.
    convert(
        at,
        &[
            "tb",
            "mboxes",
            "mboxes/Sent",
            "--output-format",
            "thunderbird",
            "--output",
            "all",
        ],
    );
    let all = names(&at.join("all"));
    assert!(
        all.contains(&"mboxes.sbd/lists.sbd/rust".to_owned()),
        "{all:?}"
    );
    // A top folder with the name Sent would be the one of Thunderbird itself.
    assert!(all.contains(&"Sent (2)".to_owned()), "{all:?}");
    assert_eq!(all.len(), 9, "{all:?}");
}

#[test]
fn names_that_thunderbird_would_not_find_are_changed_and_no_two_are_one() {
    let labels = [
        "a;b",
        "a#b",
        "Work",
        "work",
        "WORK",
        "x.msf",
        "old~",
        "popstate.dat",
        ".hidden",
        "..",
        "../../etc",
        "CON",
        "*",
        "tmp",
        "100% sure?",
        "Inbox.sbd",
    ];
    let long = ["x".repeat(120), "x".repeat(121), "\u{fc}".repeat(60)];
    let all: Vec<&str> = labels
        .iter()
        .copied()
        .chain(long.iter().map(String::as_str))
        .collect();
    let text: String = all
        .iter()
        .enumerate()
        .map(|(number, label)| labelled(number, &format!("Inbox,Opened,{label}")))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("1/2/3");
    fs::create_dir_all(&at).unwrap();
    fs::write(at.join("all.mbox"), text).unwrap();
    convert(
        &at,
        &[
            "all.mbox",
            "--by-label",
            "--output-format",
            "thunderbird",
            "--output",
            "out",
        ],
    );
    let made = files(&at.join("out"));
    let with_mail = made.values().filter(|size| **size > 0).count();
    assert_eq!(with_mail, all.len(), "{made:?}");
    let mut folded: Vec<String> = made.keys().map(|name| name.to_lowercase()).collect();
    folded.dedup();
    assert_eq!(folded.len(), made.len(), "{made:?}");
    for path in made.keys() {
        for (at, name) in path.split('/').enumerate() {
            let name = name.strip_suffix(".sbd").unwrap_or(name);
            assert!(name.len() <= 55 && !name.is_empty(), "{name}");
            assert!(
                at == 0 || !name.contains([';', '#', '?', '*', '\\']),
                "{name}"
            );
            assert!(!name.starts_with('.') && !name.ends_with('~'), "{name}");
        }
    }
    for above in ["1/2", "1", "."] {
        assert_eq!(fs::read_dir(folder.path().join(above)).unwrap().count(), 1);
    }
}

#[test]
fn result_is_never_mixed_with_what_is_there_and_needs_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in.mbox"), mail(1, "")).unwrap();
    fs::create_dir(at.join("there")).unwrap();
    fs::write(at.join("there/in"), "mine\n").unwrap();
    let form = [
        "convert",
        "in.mbox",
        "--output-format",
        "thunderbird",
        "--output",
    ];
    let said = done(&embody_in(at, &[&form[..], &["there"]].concat()), 1);
    assert!(
        said.contains("there/in") && said.contains("exists"),
        "{said}"
    );
    assert_eq!(names(&at.join("there")), ["in"]);
    assert_eq!(fs::read_to_string(at.join("there/in")).unwrap(), "mine\n");
    let said = done(&embody_in(at, &[&form[..], &["x.mbox"]].concat()), 2);
    assert!(said.contains("name a new directory"), "{said}");
    assert!(!at.join("x.mbox").exists());
    done(&embody_in(at, &[&form[..], &["-"]].concat()), 2);
    // A directory with other folders keeps them.
    fs::create_dir(at.join("others")).unwrap();
    fs::write(at.join("others/Inbox"), "mine\n").unwrap();
    done(&embody_in(at, &[&form[..], &["others"]].concat()), 0);
    assert_eq!(names(&at.join("others")), ["Inbox", "in"]);
    // A dry run writes nothing.
    done(
        &embody_in(at, &[&form[..], &["dry", "--dry-run"]].concat()),
        0,
    );
    assert!(!at.join("dry").exists());
    // A pipe has no name for a folder.
    let mut piped = embody();
    piped.current_dir(at).args([
        "convert",
        "-",
        "--output-format",
        "thunderbird",
        "--output",
        "piped",
    ]);
    done(&fed(&mut piped, mail(1, "").as_bytes()), 0);
    assert_eq!(names(&at.join("piped")), ["Mail"]);
}

/// Local folders, and no account.
pub(super) const PREFERENCES: &str = r#"
user_pref("mail.accountmanager.accounts", "account1");
user_pref("mail.accountmanager.localfoldersserver", "server1");
user_pref("mail.account.account1.server", "server1");
user_pref("mail.server.server1.type", "none");
user_pref("mail.server.server1.hostname", "Local Folders");
user_pref("mail.server.server1.userName", "nobody");
user_pref("mail.server.server1.name", "Local Folders");
user_pref("mail.server.server1.directory-rel", "[ProfD]Mail/Local Folders");
"#;

#[test]
fn real_thunderbird_shows_the_folders_counts_flags_and_tags_of_a_takeout() {
    let test = "real_thunderbird_shows_the_folders_counts_flags_and_tags_of_a_takeout";
    if !thunderbird::is_installed(test, "EMBODY_REQUIRE_THUNDERBIRD") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let labels = [
        "Inbox,Opened,Starred",
        "Inbox,Unread",
        "Sent,Opened",
        "Drafts",
        "Trash,Opened",
        "Inbox,Important,Unread",
        "Archived,Work/2023,IMAP_$Forwarded",
        "Archived,Opened,a;b",
        "Archived,Opened,work/2023",
    ];
    let text: String = labels
        .iter()
        .enumerate()
        .map(|(number, labels)| labelled(number, labels))
        .collect();
    let long = format!("Archived,Opened,{}", "l".repeat(90));
    let text = text + &labelled(labels.len(), &long);
    fs::write(
        at.join("takeout.zip"),
        zip(&[("Takeout/Mail/All mail.mbox", text.as_bytes())]),
    )
    .unwrap();
    convert(
        at,
        &[
            "takeout.zip",
            "--by-label",
            "--output-format",
            "thunderbird",
            "--output",
            "new",
        ],
    );
    let local = at.join("profile/Mail/Local Folders");
    fs::create_dir_all(local.parent().unwrap()).unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(at.join("new"))
        .arg(&local)
        .status();
    assert!(copied.unwrap().success());
    let program = thunderbird::installed(at, PREFERENCES, include_str!("thunderbird.js"));
    let (rows, errors) = thunderbird::said(&program, at);
    let folders: BTreeMap<&str, (u64, u64)> = rows
        .iter()
        .filter_map(|row| {
            let count = |name: &str| row[name].as_u64();
            Some((row["folder"].as_str()?, (count("mails")?, count("unread")?)))
        })
        .collect();
    let found = folders.keys().find(|name| name.contains("llll"));
    let long = (*found.unwrap_or_else(|| panic!("{rows:?}: {errors}"))).to_owned();
    let expected = BTreeMap::from([
        ("takeout", (0, 0)),
        ("takeout/Inbox", (3, 2)),
        ("takeout/Sent", (1, 0)),
        ("takeout/Drafts", (1, 0)),
        ("takeout/Trash", (1, 0)),
        ("takeout/Work", (0, 0)),
        ("takeout/Work/2023", (1, 0)),
        ("takeout/work (2)", (0, 0)),
        ("takeout/work (2)/2023", (1, 0)),
        ("takeout/a_b", (1, 0)),
        (long.as_str(), (1, 0)),
        // Folders of Thunderbird itself.
        ("Trash", (0, 0)),
        ("Unsent Messages", (0, 0)),
    ]);
    assert_eq!(folders, expected);
    let of = |number: usize| -> &Value {
        let subject = format!("m{number}");
        let mut mails = rows.iter().filter(|row| row["subject"] == subject.as_str());
        let found = mails.next().unwrap_or_else(|| panic!("{number}: {rows:?}"));
        assert!(mails.next().is_none(), "{number} twice");
        found
    };
    // The bits are: read 1, replied 2, starred 4, forwarded 0x1000.
    let flags = [5, 0, 1, 1, 1, 0, 0x1001, 1, 1, 1];
    for (number, flags) in flags.into_iter().enumerate() {
        assert_eq!(of(number)["flags"], flags, "{number}: {}", of(number));
        let text = format!("Text {number}\nFrom here on");
        let shown = of(number)["text"]
            .as_str()
            .unwrap()
            .replace('\r', "")
            .replace(">From", "From");
        assert_eq!(shown, text);
    }
    assert_eq!(of(5)["tags"], "$label1");
    assert_eq!(of(1)["tags"], "");
    // After Thunderbird wrote to the directory, it still contains the same mail.
    let compared = embody_in(
        at,
        &["compare", "takeout.zip", "profile/Mail/Local Folders"],
    );
    let text = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert_eq!(compared.status.code(), Some(0), "{text}");
}
