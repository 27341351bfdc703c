//! Every file below a source is accounted for: the counts by verdict add up to the number of files, and mail is read or named
//! (docs/mailboxes.md, "Every file is accounted for").

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::common::archives::{sum_up, tar, tar_member, zip};
use crate::common::programs::embody_in;
use crate::common::pst::{Form, Message, Pst};
use crate::common::reports;

/// A tree of files in which mail is planted. Each planted mail has a number, which is in its reference.
#[derive(Default)]
struct Tree {
    files: Vec<(String, Vec<u8>)>,
    planted: usize,
    /// Members of archives, which count as files, too.
    members: u64,
}

impl Tree {
    fn mail(&mut self) -> Vec<u8> {
        self.planted += 1;
        format!(
            "From: Ann <ann@example.org>\nSubject: plan {0}\nDate: Mon, 6 Jan 2020 10:00:00 +0000\nMIME-Version: 1.0\n\
             Content-Type: message/external-body; access-type=URL; URL=\"https://a.example/plant-{0}-\"\n\n\
             Content-Type: text/plain\n\n",
            self.planted
        )
        .into_bytes()
    }

    fn mbox(&mut self, count: usize) -> Vec<u8> {
        let mut mbox = Vec::new();
        for _ in 0..count {
            mbox.extend_from_slice(b"From ann@example.org Mon Jan  6 10:00:00 2020\n");
            mbox.extend(self.mail());
            mbox.push(b'\n');
        }
        mbox
    }

    fn add(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.files.push((path.to_owned(), content.into()));
    }

    /// Adds an archive with these members.
    fn add_archive(&mut self, path: &str, members: &[(&str, Vec<u8>)]) {
        self.members += members.len() as u64;
        let content = archive(path, members);
        self.add(path, content);
    }

    fn write(&self, place: &Path) {
        for (path, content) in &self.files {
            let path = place.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }
}

/// Returns a zip or tar archive, and compresses it if the suffix of `path` says so.
fn archive(path: &str, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    if path.ends_with(".zip") || path.ends_with(".docx") {
        let members: Vec<_> = members.iter().map(|(name, it)| (*name, &it[..])).collect();
        return zip(&members);
    }
    let members: Vec<_> = members
        .iter()
        .map(|(name, it)| (*name, b'0', &it[..]))
        .collect();
    let tar = tar(&members);
    if path.ends_with("gz") {
        gzipped(&tar)
    } else {
        tar
    }
}

pub(super) fn gzipped(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn files_below(place: &Path) -> u64 {
    let entries = fs::read_dir(place).unwrap();
    let count = |path: PathBuf| {
        if path.is_dir() && !path.is_symlink() {
            files_below(&path)
        } else {
            1
        }
    };
    entries.map(|entry| count(entry.unwrap().path())).sum()
}

/// The result of `inspect --json`.
struct Inspected {
    status: i32,
    files: Value,
    total: u64,
    /// Numbers of the planted mails that were read.
    read: BTreeSet<usize>,
    /// Text of all lines about files that were not read.
    not_read: String,
    /// Paths of the files that were not read.
    unread: BTreeSet<String>,
    stderr: String,
}

/// Inspects the source. `store gc` names each file that `inspect` names.
#[track_caller]
fn inspected(place: &Path, source: &str) -> Inspected {
    let found = inspected_alone(place, source);
    if !found.unread.is_empty() {
        let store = tempfile::tempdir().unwrap();
        let words = [
            "store",
            "gc",
            "--delete",
            store.path().to_str().unwrap(),
            source,
        ];
        let output = embody_in(place, &words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        // `gc` prints the first 20 lines.
        let is_named = |path: &&String| {
            said.contains(&format!("{path}: ")) || said.contains(&format!("read {path}"))
        };
        let named = found.unread.iter().filter(is_named).count();
        assert!(
            named >= found.unread.len().min(20),
            "{:?}: {said}",
            found.unread
        );
    }
    found
}

fn inspected_alone(place: &Path, source: &str) -> Inspected {
    let Output {
        status,
        stdout,
        stderr,
    } = embody_in(place, &["inspect", "--json", source]);
    let mut found = Inspected {
        status: status.code().unwrap(),
        files: Value::Null,
        total: 0,
        read: BTreeSet::new(),
        not_read: String::new(),
        unread: BTreeSet::new(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    };
    for line in String::from_utf8(stdout).unwrap().lines() {
        let row = reports::object(line);
        if let Some(survey) = row.get("survey") {
            found.files = survey["files"].clone();
            let counts = found.files.as_object().unwrap().values();
            found.total = counts.map(|count| count.as_u64().unwrap()).sum();
        } else if row["outcome"] == "not-read" {
            found.not_read += line;
            found
                .unread
                .insert(row["source"].as_str().unwrap().to_owned());
        } else if let Some(url) = row["url"].as_str() {
            let number = url.split('-').nth(1).unwrap();
            found.read.insert(number.parse().unwrap());
        }
    }
    found
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";

/// Adds the files of a desktop user that are neither mail nor near mail.
fn without_mail(tree: &mut Tree) {
    for (path, content) in [
        (".cache/thumbnails/a.png", PNG),
        ("Pictures/2020/beach.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0"),
        (
            "Pictures/Thumbs.db",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0",
        ),
        ("Documents/report.pdf", b"%PDF-1.4\n1 0 obj\n"),
        ("Documents/notes.txt", b"Dear all,\n\nthis is no mail.\n"),
        (
            "Documents/title.md",
            b"title: a page\nlayout: post\n\ntext\n",
        ),
        (".config/app/state.json", b"{\"a\": 1}\n"),
        (".local/bin/tool", b"\x7fELF\x02\x01\x01\0\0\0"),
        ("bin/script.sh", b"#!/bin/sh\necho \"From: x\"\n"),
        ("Downloads/page.html", b"<!doctype html>\n<p>From: x\n"),
        (".mozilla/places.sqlite", b"SQLite format 3\0\x10\0"),
        ("Desktop/empty", b""),
    ] {
        tree.add(path, content);
    }
    tree.add_archive(
        "Downloads/photos.zip",
        &[("1.png", PNG.to_vec()), ("2.png", PNG.to_vec())],
    );
    let document = archive(
        "x.zip",
        &[
            ("[Content_Types].xml", b"<Types/>".to_vec()),
            ("word/document.xml", b"<w:document/>".to_vec()),
        ],
    );
    tree.add("Documents/letter.docx", document);
    tree.add(
        "Downloads/log.gz",
        gzipped(b"Jan  6 10:00:00 host kernel: up\n"),
    );
}

#[test]
fn home_directory_of_a_desktop_user_is_accounted_for() {
    let temporary = tempfile::tempdir().unwrap();
    let mut tree = Tree::default();
    without_mail(&mut tree);
    let profile = ".thunderbird/abc.default/Mail/Local Folders";
    let (inbox, old) = (tree.mbox(2), tree.mbox(1));
    tree.add(&format!("{profile}/Inbox"), inbox);
    tree.add(
        &format!("{profile}/Inbox.msf"),
        "// <!-- <mdb:mork:z v=\"1.4\"/> -->\n",
    );
    tree.add(&format!("{profile}/Inbox.sbd/Old"), old);
    tree.add(&format!("{profile}/Trash"), "");
    tree.add(
        ".thunderbird/abc.default/global-messages-db.sqlite",
        "SQLite format 3\0",
    );
    tree.add(
        ".thunderbird/abc.default/prefs.js",
        "user_pref(\"a\", 1);\n",
    );
    let evolution = ".local/share/evolution/mail/local";
    for (name, flags) in [
        ("1578304800.M1P1.host", ":2,S"),
        ("1578304801.M2P1.host", ":2,"),
    ] {
        let mail = tree.mail();
        tree.add(&format!("{evolution}/cur/{name}{flags}"), mail);
    }
    tree.add(&format!("{evolution}/new/.keep"), "");
    tree.add(
        &format!("{evolution}/tmp/1578304802.M3P1.host"),
        "Subject: half a ma",
    );
    tree.add(&format!("{evolution}/..maildir++"), "maildir++ 1");
    tree.add(
        &format!("{evolution}/.#evolution/Inbox.ibex.index"),
        "ibex\0\x01",
    );
    let saved = tree.mail();
    tree.add("Documents/saved.eml", saved);
    let takeout = tree.mbox(2);
    tree.add_archive(
        "Downloads/takeout.zip",
        &[
            ("Takeout/Mail/All.mbox", takeout),
            ("Takeout/index.html", b"<p>".to_vec()),
        ],
    );
    let (one, two) = (tree.mail(), tree.mail());
    tree.add_archive(
        "Downloads/maildir.tar.gz",
        &[
            ("Maildir/cur/1578304800.M1P1.host:2,S", one),
            ("Maildir/new/1578304801.M2P1.host", two),
            ("Maildir/dovecot-uidlist", b"3 V1 N3\n".to_vec()),
        ],
    );
    tree.add("Downloads/old.7z", b"7z\xbc\xaf\x27\x1c\0\x04".as_slice());
    tree.add("Downloads/mail.rar", b"Rar!\x1a\x07\x01\0".as_slice());
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    pst.folder(None, "Inbox", &[Message::mail("a", "b")]);
    tree.add("Documents/archive.pst", pst.bytes());
    let home = temporary.path().join("home");
    tree.write(&home);
    std::os::unix::fs::symlink(
        "127.0.1.1:+4711",
        home.join(".thunderbird/abc.default/lock"),
    )
    .unwrap();
    std::os::unix::fs::symlink(&home, home.join("Desktop/home")).unwrap();

    let found = inspected(temporary.path(), "home");
    assert_eq!(found.status, 1, "{}", found.stderr);
    assert_eq!(found.read, (1..=tree.planted).collect(), "{}", found.stderr);
    for name in ["Downloads/old.7z", "Downloads/mail.rar"] {
        assert!(found.not_read.contains(name), "{}", found.not_read);
        assert!(found.stderr.contains(name), "{}", found.stderr);
    }
    assert_eq!(found.files["not_read"], 2, "{}", found.stderr);
    // Two symbolic links are files, too.
    assert_eq!(
        found.total,
        files_below(&home) + tree.members,
        "{}",
        found.files
    );
    counts_agree(temporary.path(), "home", &found);
    // Without the files that cannot be read, the run is complete.
    let ignoring = [
        "inspect",
        "--ignore",
        "*.7z",
        "--ignore",
        "Downloads/mail.rar",
        "home",
    ];
    let output = embody_in(temporary.path(), &ignoring);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("2 ignored"), "{said}");
}

/// Converts, merges and compares the source. The counts of all commands are those of `inspect`, and each command ends with
/// status 1 if a file was not read.
#[track_caller]
fn counts_agree(place: &Path, source: &str, found: &Inspected) {
    let counts = |words: &[&str]| {
        let output = embody_in(place, words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.code(),
            Some(found.status),
            "{words:?}: {said}"
        );
        let last = String::from_utf8(output.stdout).unwrap();
        last.lines().last().map_or(Value::Null, reports::object)
    };
    let row = counts(&["merge", "--json", source, "--output", "merged"]);
    assert_eq!(row["merge"]["files"], found.files);
    for format in ["mbox", "maildir"] {
        let (to, report) = (format!("to-{format}"), format!("{format}.json"));
        let words = ["convert", source, "--output", &to, "--report", &report];
        counts(&[&words[..], &["--output-format", format]].concat());
        let row = counts(&["compare", "--json", source, &to]);
        assert_eq!(row["compare"]["files"]["old"], found.files);
        for count in ["missing", "altered"] {
            assert_eq!(row["compare"][count], 0, "{row}");
        }
        let report = fs::read_to_string(place.join(report)).unwrap();
        let not_read = report.matches("\"not-read\"").count();
        assert_eq!(not_read > 0, found.status == 1, "{report}");
    }
}

/// A generator of pseudorandom numbers (xorshift), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// Adds a file of a random format, with or without mail, to a directory.
fn add_random(tree: &mut Tree, random: &mut Random, within: &str, number: usize) {
    let at = |name: &str| format!("{within}{number}{name}");
    match random.below(22) {
        0 => {
            let mbox = tree.mbox(2);
            tree.add(&at(""), mbox);
        }
        1 => {
            let mail = tree.mail();
            tree.add(&at(".eml"), mail);
        }
        2 => {
            let mbox = tree.mbox(1);
            tree.add(&at(".mbox.gz"), gzipped(&mbox));
        }
        3 => {
            let mail = tree.mail();
            tree.add(&at(".gz"), gzipped(&mail));
        }
        4 => {
            let (mbox, mail) = (tree.mbox(1), tree.mail());
            tree.add_archive(
                &at(".zip"),
                &[("a/Inbox", mbox), ("b.eml", mail), ("c.png", PNG.to_vec())],
            );
        }
        5 => {
            let mail = tree.mail();
            let inner = archive("x.tar.gz", &[("cur/1578304800.M1P1.h:2,S", mail)]);
            tree.members += 1;
            tree.add_archive(
                &at(".zip"),
                &[("inner.tar.gz", inner), ("text", b"Dear all,\n".to_vec())],
            );
        }
        6 => {
            let mbox = gzipped(&tree.mbox(1));
            tree.add_archive(&at(".tar"), &[("Sent.mbox.gz", mbox)]);
        }
        7 => {
            let mail = tree.mail();
            let file = [format!("{}\n", mail.len()).into_bytes(), mail].concat();
            tree.add(&at(".emlx"), file);
        }
        8 => {
            let mail = tree.mail();
            let text = String::from_utf8(mail).unwrap();
            tree.add(
                &at(".mmdf"),
                format!("\x01\x01\x01\x01\n{text}\x01\x01\x01\x01\n"),
            );
        }
        9 => {
            let (one, two, beside) = (tree.mail(), tree.mail(), tree.mail());
            tree.add(&at("/cur/1578304800.M1P1.h:2,S"), one);
            tree.add(&at("/new/1578304801.M2P1.h"), two);
            tree.add(&at("/dovecot-uidlist"), "3 V1 N3\n");
            tree.add(&at("/saved.eml"), beside);
        }
        10 => {
            let (one, two, beside) = (tree.mail(), tree.mail(), tree.mbox(1));
            tree.add(&at("/.mh_sequences"), "unseen: 2\n");
            tree.add(&at("/1"), one);
            tree.add(&at("/2.gz"), gzipped(&two));
            tree.add(&at("/old.mbox"), beside);
        }
        11 => {
            let (deep, mail) = (tree.mail(), tree.mail());
            tree.add(&at("/cur/1578304800.M1P1.h:2,S"), mail);
            tree.add(&at("/new/.keep"), "");
            tree.add(&at("/cur/folder/x.eml"), deep);
        }
        12 => tree.add(&at(".7z"), b"7z\xbc\xaf\x27\x1c\0\x04".as_slice()),
        13 => tree.add(&at(".dbx"), b"\xcf\xad\x12\xfe\xc5\xfd\x74\x6f".as_slice()),
        14 => tree.add(
            &at("/u.1"),
            "2 M1e C6b0aeacf\n\x01\x02N          000000000000007E\nFrom: a@b\n\nx\n",
        ),
        15 => tree.add(
            &format!("{within}._{number}.eml"),
            b"\0\x05\x16\x07\0\x02\0\0".as_slice(),
        ),
        16 => tree.add(&at(".png"), PNG),
        17 => tree.add(&at(".txt"), "Dear all,\nno mail\n"),
        18 => tree.add(&at(".pdf"), "%PDF-1.4\n"),
        19 => tree.add(&at(""), ""),
        20 => tree.add(
            &at(".zip"),
            &archive("x.zip", &[("a", b"From x".to_vec())])[..40],
        ),
        _ => {
            let mail = tree.mail();
            let folder = format!("{within}{number}/");
            tree.add(&format!("{folder}mail.eml"), mail);
            if within.len() < 12 {
                add_random(tree, random, &folder, number);
            }
        }
    }
}

#[test]
fn random_trees_of_all_formats_are_accounted_for_and_planted_mail_is_read() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for round in 0..500 {
        let temporary = tempfile::tempdir().unwrap();
        let mut tree = Tree::default();
        let first = tree.mail();
        tree.add("first.eml", first);
        for number in 0..1 + random.below(5) {
            add_random(&mut tree, &mut random, "", number);
        }
        tree.write(&temporary.path().join("tree"));
        let found = inspected(temporary.path(), "tree");
        let names: Vec<&str> = tree.files.iter().map(|(name, _)| name.as_str()).collect();
        let context = format!(
            "round {round}: {names:?}\n{}\n{}",
            found.files, found.stderr
        );
        assert_eq!(found.read, (1..=tree.planted).collect(), "{context}");
        let expected = files_below(&temporary.path().join("tree")) + tree.members;
        assert_eq!(found.total, expected, "{context}");
        assert_eq!(
            found.status,
            i32::from(found.files["not_read"] != 0),
            "{context}"
        );
        if round % 20 == 0 {
            counts_agree(temporary.path(), "tree", &found);
        }
    }
}

/// Returns directories with many kinds of files: those of this repository, and the public corpora that EMBODY_CORPORA contains
/// as plain directories.
fn corpora() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = ["samples", "tests", "docs", "src"]
        .map(|name| root.join(name))
        .to_vec();
    if let Some(cache) = std::env::var_os("EMBODY_CORPORA") {
        let entries = fs::read_dir(cache).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()));
        found.retain(|path| path.is_dir() && !path.join("HEAD").exists());
    }
    found
}

#[test]
fn verdicts_on_the_files_of_each_corpus_add_up() {
    for corpus in corpora() {
        let output = embody_in(&corpus, &["inspect", "--json", "."]);
        let said = String::from_utf8_lossy(&output.stderr);
        let Some(row) = String::from_utf8_lossy(&output.stdout)
            .lines()
            .last()
            .map(reports::object)
        else {
            // A directory without mail has no counts, and the message says so.
            assert!(
                said.contains("contains no mail"),
                "{}: {said}",
                corpus.display()
            );
            continue;
        };
        let counts = row["survey"]["files"].as_object().unwrap().values();
        let total: u64 = counts.map(|count| count.as_u64().unwrap()).sum();
        let expected = files_below(&corpus);
        // The members of archives count, too.
        assert!(total >= expected, "{}: {expected} {row}", corpus.display());
        let not_read = row["survey"]["files"]["not_read"].as_u64().unwrap();
        assert_eq!(output.status.code() == Some(0), not_read == 0, "{said}");
    }
}

/// Returns a member of a tar archive that is a link to `target`.
fn link(name: &str, kind: u8, target: &str) -> Vec<u8> {
    let mut block = tar_member(name, kind, b"");
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    sum_up(&mut block);
    block
}

#[test]
fn links_in_a_tar_archive_are_counted_and_a_link_without_its_file_is_named() {
    let mail = Tree::default().mail();
    for (members, counts, named) in [
        (vec![link("b.eml", b'1', "a.eml")], (1, 0), ""),
        (vec![link("./b.eml", b'1', "./a.eml")], (1, 0), ""),
        (
            vec![link("b.eml", b'1', "a.eml"), link("c.eml", b'1', "b.eml")],
            (2, 0),
            "",
        ),
        (vec![link("b.eml", b'2', "/var/mail/ann")], (1, 0), ""),
        (vec![tar_member("pipe", b'6', b"")], (1, 0), ""),
        (vec![tar_member("folder/", b'5', b"")], (0, 0), ""),
        (
            vec![link("b.eml", b'1', "x.eml")],
            (0, 1),
            "b.eml (a hard link to a file that is not in the archive",
        ),
    ] {
        let first = tar_member("a.eml", b'0', &mail);
        let archive = [first, members.concat(), vec![0; 1024]].concat();
        for (name, content) in [("in.tar", archive.clone()), ("in.tgz", gzipped(&archive))] {
            let temporary = tempfile::tempdir().unwrap();
            fs::write(temporary.path().join(name), content).unwrap();
            let found = inspected(temporary.path(), name);
            // The archive and its first member were read. If another member was not read, the archive was not read completely.
            let (not_mail, not_read) = counts;
            assert_eq!(found.files["read"], 2 - not_read, "{}", found.files);
            assert_eq!(found.files["not_mail"], not_mail, "{}", found.files);
            assert_eq!(found.files["not_read"], 2 * not_read, "{}", found.files);
            assert_eq!(found.status, not_read, "{}", found.stderr);
            assert!(found.stderr.contains(named), "{}", found.stderr);
        }
    }
}

#[test]
fn files_of_other_programs_that_may_contain_mail_are_named() {
    let body = "From: a@b\nSubject: x\n\nx\n";
    let queued = format!("C\x1f{:>15} {:>15}T\x111578304800 123456A", 1234, 200);
    for (name, content, is_named) in [
        (
            "1hBx3y-0001Qa-Ab-H",
            "1hBx3y-0001Qa-Ab-H\nDebian-exim 101 103\n".to_owned(),
            true,
        ),
        (
            "1hBx3y-0001Qa-Ab-D",
            format!("1hBx3y-0001Qa-Ab-D\n{body}"),
            true,
        ),
        (
            "x",
            "1rlmnv-00000001Abc-2xYz-H\nmail 8 8\n".to_owned(),
            true,
        ),
        (
            "qfx06A0001",
            "V8\nT1578304800\nK0\nN0\nHSubject: a\n.\n".to_owned(),
            true,
        ),
        ("ABCDEF", queued, true),
        ("x_1.olk15MsgSource", "\u{1}\0\0Mess".to_owned(), true),
        ("x_1.olk15Contact", "\u{1}\0\0Cont".to_owned(), false),
        ("mail_data.dat", "SQLite format 3\0".to_owned(), true),
        ("other.dat", "SQLite format 3\0".to_owned(), false),
        ("Inbox.mbox.gpg", "\u{1}\u{2}\0".to_owned(), true),
        ("photo.jpg.gpg", "\u{1}\u{2}\0".to_owned(), false),
        (
            "Inbox",
            format!(
                "{}From a@b Mon Jan  6 10:00:00 2020\n{body}",
                "\0".repeat(4096)
            ),
            true,
        ),
        ("V8", "V8\nText\n".to_owned(), false),
        ("C", "C is a language\n".to_owned(), false),
        ("a-b-H", "a-b-H\n".to_owned(), false),
    ] {
        let mut tree = Tree::default();
        let mail = tree.mail();
        tree.add("first.eml", mail);
        tree.add(name, content);
        let temporary = tempfile::tempdir().unwrap();
        tree.write(&temporary.path().join("tree"));
        let found = inspected(temporary.path(), "tree");
        let named = found.stderr.contains(&format!("tree/{name}: "));
        assert_eq!(
            (named, found.status),
            (is_named, i32::from(is_named)),
            "{name}: {}",
            found.stderr
        );
        assert_eq!(found.total, 2, "{name}: {}", found.files);
    }
}

#[test]
fn copies_of_messages_for_a_search_are_parts_of_their_mailbox() {
    let mut tree = Tree::default();
    let mbox = tree.mbox(1);
    tree.add("Inbox", mbox);
    let copy = Tree::default().mail();
    tree.add("Inbox.mozmsgs/12.wdseml", copy.clone());
    // Without the mailbox, they are the only messages.
    let mail = tree.mail();
    tree.add("Sent.mozmsgs/13.wdseml", mail);
    let temporary = tempfile::tempdir().unwrap();
    tree.write(&temporary.path().join("tree"));
    let found = inspected(temporary.path(), "tree");
    assert_eq!(found.files["parts"], 1, "{}", found.files);
    assert_eq!(found.files["read"], 2, "{}", found.files);
    assert_eq!(found.read, (1..=2).collect(), "{}", found.stderr);
}

#[test]
fn archive_or_file_of_outlook_among_the_messages_of_a_folder_is_named() {
    let archives = ["x.zip", "x.tar"].map(|name| archive(name, &[("a", b"From x".to_vec())]));
    let [zip, tar] = archives;
    let ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0".to_vec();
    for content in [zip.clone(), tar, ole, gzipped(&zip)] {
        for (messages, other) in [("cur/1578304800.M1P1.h:2,S", "cur/x.msg"), ("1", "2")] {
            let mut tree = Tree::default();
            let mail = tree.mail();
            tree.add(messages, mail);
            tree.add(other, content.clone());
            tree.add(
                if other == "2" {
                    ".mh_sequences"
                } else {
                    "new/.keep"
                },
                "",
            );
            let temporary = tempfile::tempdir().unwrap();
            tree.write(&temporary.path().join("tree"));
            let found = inspected(temporary.path(), "tree");
            assert_eq!(found.files["not_read"], 1, "{other}: {}", found.stderr);
            assert!(
                found.stderr.contains(&format!("tree/{other}: ")),
                "{}",
                found.stderr
            );
            counts_agree(temporary.path(), "tree", &found);
        }
    }
}

#[test]
fn link_with_the_name_of_mail_and_without_a_target_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    std::fs::create_dir(at("mail")).unwrap();
    let mail = "From: a@example.org\nSubject: x\nMessage-ID: <1@example.org>\n\ntext\n";
    std::fs::write(at("mail/1.eml"), mail).unwrap();
    std::fs::write(at("new.eml"), mail).unwrap();
    let link = |name: &str| std::os::unix::fs::symlink("/nowhere/mail", at("mail").join(name));
    // Programs use links without a target as locks.
    for name in [".#notes", "lock", "notes.txt"] {
        link(name).unwrap();
        let output = embody_in(temporary.path(), &["compare", "mail", "new.eml"]);
        assert_eq!(output.status.code(), Some(0), "{name}");
        std::fs::remove_file(at("mail").join(name)).unwrap();
    }
    for name in ["2020.mbox", "2.EML", "old.mbox.gz", "archive.pst"] {
        link(name).unwrap();
        for arguments in [
            ["compare", "mail", "new.eml"],
            ["inspect", "--json", "mail"],
        ] {
            let output = embody_in(temporary.path(), &arguments);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{name}: {said}");
            assert!(said.contains(name), "{said}");
        }
        std::fs::remove_file(at("mail").join(name)).unwrap();
    }
}

#[test]
fn compressed_message_with_data_after_it_is_read_by_every_command() {
    let temporary = tempfile::tempdir().unwrap();
    let at = |name: &str| temporary.path().join(name);
    let mail = "From: a@example.org\nSubject: x\nMessage-ID: <1@example.org>\n\ntext\n";
    fs::write(at("new.eml"), mail).unwrap();
    let content = [&gzipped(mail.as_bytes())[..], b"other data"].concat();
    fs::write(at("mail.eml.gz"), &content).unwrap();
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("folder/mail.eml.gz"), &content).unwrap();
    for source in ["mail.eml.gz", "folder"] {
        let compared = embody_in(temporary.path(), &["compare", source, "new.eml"]);
        let said = String::from_utf8_lossy(&compared.stderr).into_owned();
        let counts = String::from_utf8_lossy(&compared.stdout).into_owned();
        assert_eq!(compared.status.code(), Some(1), "{said}");
        assert!(counts.contains("1 identical."), "{source}: {counts}");
        assert!(said.contains("contains other data after"), "{said}");
        for form in ["mbox", "auto"] {
            let arguments = [
                "convert",
                source,
                "--output-format",
                form,
                "--output",
                "out",
            ];
            let converted = embody_in(temporary.path(), &arguments);
            let said = String::from_utf8_lossy(&converted.stderr).into_owned();
            assert_eq!(converted.status.code(), Some(1), "{said}");
            assert!(said.contains("1 message read"), "{source} {form}: {said}");
            assert!(said.contains("contains other data after"), "{said}");
            let place = at("out");
            if place.is_dir() {
                fs::remove_dir_all(place).unwrap();
            } else {
                fs::remove_file(place).unwrap();
            }
        }
        // The data would be lost in place.
        let changed = embody_in(temporary.path(), &["convert", "--in-place", source]);
        assert_eq!(changed.status.code(), Some(1));
    }
    assert_eq!(fs::read(at("mail.eml.gz")).unwrap(), content);
    assert_eq!(fs::read(at("folder/mail.eml.gz")).unwrap(), content);
}
