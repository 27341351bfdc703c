//! `embody compare` names every loss, and nothing that was not lost.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;

use crate::common::archives::zip;
use crate::common::folder::Folder;
use crate::common::mail::{samples_folder, samples_in};
use crate::common::programs::{embody, fed, stderr};

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}

fn base64(bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

const GIF: &[u8] =
    b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Returns a message of one of seven kinds. Each message has a different subject.
fn message(number: usize, numbers: &mut Numbers) -> String {
    let kind = numbers.below(7);
    let picture = base64(&[GIF, &[number as u8 % 3]].concat()).replace('\n', "");
    let html = format!(
        "<html><body><p>Hello {number}</p>\n<img src=\"data:image/gif;base64,{picture}\">\n<a href=\"rel/{number}\">x</a></body></html>\n"
    );
    let size = 1000 + numbers.below(2000);
    let file = base64(&numbers.bytes(size));
    let attached = format!(
        "Content-Type: application/pdf; name=\"a{number}.pdf\"\nContent-Disposition: attachment;\n filename=\"a{number}.pdf\"\nContent-Transfer-Encoding: base64\n\n{file}\n"
    );
    let mixed = |text: &str, part: &str| {
        format!(
            "Content-Type: multipart/mixed; boundary=\"b{number}\"\n\nA preamble.\n--b{number}\n\n{text}\n--b{number}\n{part}\n--b{number}--\n"
        )
    };
    let (more, body) = match kind {
        0 => (
            "",
            format!("\ntext {number}\n>From here\nand\n>>From there\n"),
        ),
        1 => ("", format!("Content-Type: text/html\n\n{html}")),
        2 => ("", mixed("see the file", &attached)),
        3 => (
            "Content-Base: http://example.org/x/\n",
            format!(
                "Content-Type: multipart/alternative; boundary=\"b{number}\"\n\n--b{number}\n\nplain\n--b{number}\nContent-Type: text/html\n\n{html}\n--b{number}--\n"
            ),
        ),
        4 => {
            let inner = format!(
                "Content-Type: message/rfc822\n\nSubject: inner {number}\nMIME-Version: 1.0\n{}",
                mixed("in it", &attached).replace(&format!("b{number}"), &format!("i{number}"))
            );
            ("", mixed("forwarded", &inner))
        }
        5 => (
            "",
            format!(
                "Content-Type: message/external-body; access-type=URL;\n URL=\"data:text/plain,note%20{number}\"\n\nContent-Type: text/plain\n\n"
            ),
        ),
        _ => (
            "",
            format!(
                "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nä {number}\n"
            ),
        ),
    };
    let id = match number % 7 {
        0 => String::new(),
        _ => format!("Message-ID: <m{number}@example.org>\n"),
    };
    let status = match number % 3 {
        0 => "Status: RO\nX-Status: F\n",
        _ => "",
    };
    format!(
        "From: a{number}@example.org\nSubject: Mail {number}.\n{id}Date: Sat, 03 Jan 2015 01:{:02}:34 +0000\n{status}{more}MIME-Version: 1.0\n{body}",
        number % 60
    )
}

fn messages(seed: u64) -> Vec<String> {
    let mut numbers = Numbers(seed * 2 + 1);
    let count = 5 + numbers.below(12);
    (0..count)
        .map(|number| message(number, &mut numbers))
        .collect()
}

fn mbox(messages: &[String]) -> String {
    let line = "From a@example.org Sat Jan  3 01:05:34 2015\n";
    let messages = messages.iter();
    messages
        .map(|message| format!("{line}{message}\n"))
        .collect()
}

struct Compared {
    status: Option<i32>,
    lines: Vec<String>,
}

/// Returns the output of `compare --json`.
fn compared(old: &Path, new: &Path) -> Compared {
    let output = embody()
        .args(["compare", "--json"])
        .args([old, new])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    Compared {
        status: output.status.code(),
        lines: text.lines().map(str::to_owned).collect(),
    }
}

#[track_caller]
fn assert_whole(old: &Path, new: &Path) -> String {
    let compared = compared(old, new);
    assert_eq!(compared.lines.len(), 1, "{:#?}", compared.lines);
    assert_eq!(compared.status, Some(0), "{:?}", compared.lines);
    compared.lines[0].clone()
}

/// Returns the numbers of the generated mailboxes. The environment variable EMBODY_MAILBOXES sets how many there are.
fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("EMBODY_MAILBOXES").ok();
    0..count.and_then(|count| count.parse().ok()).unwrap_or(8)
}

#[test]
fn results_of_each_command_lose_nothing() {
    for seed in seeds() {
        let folder = Folder::new();
        let old = folder.write("old.mbox", mbox(&messages(seed)));
        folder.run("convert old.mbox --output same.mbox --links keep --follow none");
        folder.run("convert --embed data old.mbox --output embedded.mbox");
        folder.run("convert old.mbox --output maildir --output-format maildir");
        folder.run("convert old.mbox --output folder.mbox.gz");
        folder.run("detach --store store --larger-than 1k old.mbox --output detached.mbox");
        folder.run(
            "detach --store store --larger-than 1k --note-format thunderbird old.mbox --output moved.mbox",
        );
        folder.run("restore --store store detached.mbox --output restored.mbox");
        folder.run("convert --mark old.mbox --output marked.mbox");
        folder.run("convert maildir --output back.mbox --output-format mbox");
        for new in [
            "same.mbox",
            "embedded.mbox",
            "maildir",
            "folder.mbox.gz",
            "detached.mbox",
            "moved.mbox",
            "restored.mbox",
            "marked.mbox",
            "back.mbox",
        ] {
            assert_whole(&old, &folder.at(new));
        }
        assert_whole(&folder.at("detached.mbox"), &folder.at("restored.mbox"));
        assert_whole(&folder.at("maildir"), &folder.at("back.mbox"));
        let said = assert_whole(&old, &folder.at("restored.mbox"));
        assert!(said.contains("\"changed\":0,"), "{said}");
    }
}

/// Returns the lines of one mailbox that the other one lacks, so that a failure shows what was not found.
fn lines_only_in(old: &Path, new: &Path) -> String {
    let [old, new] = [old, new].map(|path| fs::read(path).unwrap_or_default());
    let [old, new] = [&old, &new].map(|text| String::from_utf8_lossy(text));
    let only = |one: &str, other: &str| {
        let other: HashSet<&str> = other.lines().collect();
        let lines = one.lines().filter(|line| !other.contains(line));
        lines.take(20).collect::<Vec<_>>().join("\n")
    };
    format!("\nold:\n{}\nnew:\n{}", only(&old, &new), only(&new, &old))
}

/// Asserts that `compare` names each message of `planted` once, by its subject, and no other message.
#[track_caller]
fn assert_named(old: &Path, new: &Path, outcome: &str, planted: &[usize]) {
    let compared = compared(old, new);
    let named: Vec<&String> = compared.lines.iter().rev().skip(1).rev().collect();
    let told = |status: Option<i32>| format!("{status:?} {}", lines_only_in(old, new));
    assert_eq!(
        compared.status,
        Some(1),
        "{planted:?} {named:#?} {}",
        told(compared.status)
    );
    assert_eq!(named.len(), planted.len(), "{planted:?} {named:#?}");
    for number in planted {
        let subject = format!("\\\"Mail {number}.\\\"");
        let is_named = |line: &&&String| line.contains(&subject) && line.contains(outcome);
        assert_eq!(
            named.iter().filter(is_named).count(),
            1,
            "{number} {named:#?}"
        );
    }
}

#[test]
fn planted_losses_are_named_and_nothing_else_is() {
    for seed in seeds() {
        let (folder, whole) = (Folder::new(), messages(seed));
        let mut numbers = Numbers(seed + 1000);
        let old = folder.write("old.mbox", mbox(&whole));
        let all = whole.len();

        let mut new = whole.clone();
        let dropped = numbers.below(all);
        new.remove(dropped);
        let path = folder.write("dropped.mbox", mbox(&new));
        assert_named(&old, &path, "missing", &[dropped]);

        // Changes one byte of a body, before and after pictures were embedded.
        let changed = numbers.below(all);
        let mut new = whole.clone();
        let body = whole[changed].find("\n\n").unwrap() + 2;
        let letters: Vec<usize> = (body..whole[changed].len())
            .filter(|at| whole[changed].as_bytes()[*at].is_ascii_alphabetic())
            .filter(|at| !whole[changed][*at..].starts_with("From "))
            .collect();
        if !letters.is_empty() {
            let at = letters[numbers.below(letters.len())];
            let letter = match &whole[changed][at..=at] {
                "Q" => "R",
                _ => "Q",
            };
            new[changed].replace_range(at..=at, letter);
            let path = folder.write("byte.mbox", mbox(&new));
            assert_named(&old, &path, "altered", &[changed]);
            folder.run("convert --embed data byte.mbox --output byte.embedded.mbox");
            folder.run("convert --embed data old.mbox --output old.embedded.mbox");
            let embedded = folder.at("byte.embedded.mbox");
            // In a message header, only fields that describe content are copied from a reference, so a changed name of another
            // field has no effect.
            if fs::read(&embedded).unwrap() == fs::read(folder.at("old.embedded.mbox")).unwrap() {
                drop(assert_whole(&old, &embedded))
            } else {
                assert_named(&old, &embedded, "altered", &[changed])
            }
        }

        let (one, other) = (numbers.below(all), numbers.below(all));
        if one != other {
            let mut new = whole.clone();
            let halves = |at: usize| whole[at].split_once("MIME-Version").unwrap();
            new[one] = format!("{}MIME-Version{}", halves(one).0, halves(other).1);
            new[other] = format!("{}MIME-Version{}", halves(other).0, halves(one).1);
            let path = folder.write("exchanged.mbox", mbox(&new));
            assert_named(&old, &path, "", &[one, other]);
        }

        let mut new = whole.clone();
        let flagged = 3 * numbers.below(all.div_ceil(3));
        new[flagged] = new[flagged].replace("X-Status: F\n", "");
        let path = folder.write("flags.mbox", mbox(&new));
        assert_named(&old, &path, "lost-flags", &[flagged]);

        let large = (0..all).find(|at| whole[*at].contains("application/pdf"));
        if let Some(large) = large {
            let mut new = whole.clone();
            let lines: Vec<&str> = whole[large].lines().collect();
            let cut = lines.iter().rposition(|line| line.len() == 76).unwrap();
            let kept = [&lines[..cut], &lines[cut + 1..]].concat();
            new[large] = kept.join("\n") + "\n";
            let path = folder.write("truncated.mbox", mbox(&new));
            assert_named(&old, &path, "altered", &[large]);
            new[large] = lines[..cut].join("\n") + "\n";
            let path = folder.write("cut.mbox", mbox(&new));
            assert_named(&old, &path, "altered", &[large]);
            // Removes the attachment with its boundary line.
            let mut new = whole.clone();
            let start = whole[large].find("Content-Type: application/pdf").unwrap();
            let end = start + whole[large][start..].find("\n--").unwrap() + 1;
            new[large].replace_range(start..end, "");
            let path = folder.write("gone.mbox", mbox(&new));
            assert_named(&old, &path, "altered", &[large]);
        }
    }
}

/// The format in which a mailbox is stored.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kept {
    Mbox,
    Gzip,
    Maildir,
    /// A file for each message, in nested directories. This format stores no flags.
    Files,
    /// mboxes in nested directories.
    Nested,
    Zip,
}

const KEPT: [Kept; 6] = [
    Kept::Mbox,
    Kept::Gzip,
    Kept::Maildir,
    Kept::Files,
    Kept::Nested,
    Kept::Zip,
];

impl Kept {
    /// Writes the mailbox without embody, in an order that depends on the format.
    fn write(
        self,
        folder: &Folder,
        name: &str,
        messages: &[String],
        numbers: &mut Numbers,
    ) -> PathBuf {
        let mut messages = messages.to_vec();
        for at in (1..messages.len()).rev() {
            messages.swap(at, numbers.below(at + 1));
        }
        let quoted: Vec<String> = messages.iter().map(|message| quoted(message)).collect();
        let path = folder.at(name);
        match self {
            Self::Mbox => fs::write(&path, mbox(&quoted)).unwrap(),
            Self::Gzip => {
                let level = flate2::Compression::fast();
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), level);
                packed.write_all(mbox(&quoted).as_bytes()).unwrap();
                fs::write(&path, packed.finish().unwrap()).unwrap();
            }
            Self::Zip => {
                let half = quoted.len() / 2;
                let mboxes = [mbox(&quoted[..half]), mbox(&quoted[half..])];
                let members = [
                    ("Takeout/Mail/a.mbox", mboxes[0].as_bytes()),
                    ("Takeout/Mail/b.mbox", mboxes[1].as_bytes()),
                ];
                fs::write(&path, zip(&members)).unwrap();
            }
            Self::Maildir => {
                for part in ["cur", "new", "tmp"] {
                    fs::create_dir_all(path.join(part)).unwrap();
                }
                for (number, message) in messages.iter().enumerate() {
                    let letters = letters(message);
                    let name = format!("cur/17{number:08}.host:2,{letters}");
                    fs::write(path.join(name), without_flags(message)).unwrap();
                }
            }
            Self::Files => {
                for (number, message) in messages.iter().enumerate() {
                    let within = path.join(["", "a", "a/b", "c"][numbers.below(4)]);
                    fs::create_dir_all(&within).unwrap();
                    let file = within.join(format!("{number}.eml"));
                    fs::write(file, without_flags(message)).unwrap();
                }
            }
            Self::Nested => {
                for (number, some) in quoted.chunks(quoted.len().div_ceil(3)).enumerate() {
                    let within = path.join(["Inbox.sbd/Work.sbd", "Inbox.sbd", "x"][number]);
                    fs::create_dir_all(&within).unwrap();
                    fs::write(within.join("box"), mbox(some)).unwrap();
                }
                fs::write(path.join("Inbox"), "").unwrap();
            }
        }
        path
    }

    fn holds_flags(self) -> bool {
        self != Self::Files
    }
}

/// Quotes a message as in an mbox (mboxrd).
fn quoted(message: &str) -> String {
    let lines = message.split_inclusive('\n').map(|line| {
        let quote = line.trim_start_matches('>').starts_with("From ");
        format!("{}{line}", if quote { ">" } else { "" })
    });
    lines.collect()
}

fn without_flags(message: &str) -> String {
    message.replacen("Status: RO\nX-Status: F\n", "", 1)
}

fn letters(message: &str) -> &'static str {
    let header = message.split_once("\n\n").unwrap().0;
    if header.contains("X-Status: F") {
        "FS"
    } else {
        ""
    }
}

/// Returns a generated mail for any format. It has flags, in fields that every format can store.
fn plain_message(number: usize, numbers: &mut Numbers) -> String {
    let text = message(number, numbers)
        .replacen("Status: RO\n", "", 1)
        .replacen("X-Status: F\n", "", 1);
    match numbers.below(2) {
        0 => text,
        _ => format!("Status: RO\nX-Status: F\n{text}"),
    }
}

#[test]
fn losses_between_mailboxes_of_any_kind_are_named_and_nothing_else_is() {
    let mut planted = BTreeMap::new();
    let mut kinds = HashSet::new();
    for seed in seeds() {
        let mut numbers = Numbers(seed * 2 + 77);
        let folder = Folder::new();
        let count = 4 + numbers.below(10);
        let mut whole: Vec<String> = (0..count)
            .map(|it| plain_message(it, &mut numbers))
            .collect();
        // Some messages occur several times, as in an export with a mailbox for each label.
        for _ in 0..numbers.below(4) {
            whole.push(whole[numbers.below(count)].clone());
        }
        let copies =
            |whole: &[String], at: usize| whole.iter().filter(|it| **it == whole[at]).count();
        let (one, other) = (KEPT[numbers.below(6)], KEPT[numbers.below(6)]);
        kinds.insert((one as u8, other as u8));
        let old = one.write(&folder, "old", &whole, &mut numbers);
        let same = other.write(&folder, "same", &whole, &mut numbers);
        assert_whole(&old, &same);
        let mut check = |what: &'static str, new: &[String], outcome: &str, at: &[usize]| {
            *planted.entry(what).or_insert(0) += 1;
            let path = other.write(&folder, &format!("new-{what}"), new, &mut numbers);
            assert_named(&old, &path, outcome, at);
        };
        let single: Vec<usize> = (0..count).filter(|at| copies(&whole, *at) == 1).collect();
        let Some(&lost) = single.get(seed as usize % single.len().max(1)) else {
            continue;
        };

        let mut new = whole.clone();
        new.remove(lost);
        check("dropped", &new, "missing", &[lost]);

        // Removes one of several copies.
        if let Some(at) = (0..count).find(|at| copies(&whole, *at) > 1) {
            let mut new = whole.clone();
            new.remove(at);
            check("copy", &new, "missing", &[at]);
        }

        let body = whole[lost].find("\n\n").unwrap() + 2;
        let digits: Vec<usize> = (body..whole[lost].len())
            .filter(|at| whole[lost].as_bytes()[*at].is_ascii_digit())
            .collect();
        if let Some(&at) = digits.get(seed as usize * 7 % digits.len().max(1)) {
            let mut new = whole.clone();
            let digit = if &whole[lost][at..=at] == "7" {
                "8"
            } else {
                "7"
            };
            new[lost].replace_range(at..=at, digit);
            check("byte", &new, "altered", &[lost]);
        }

        if let Some(&next) = single.iter().find(|at| **at != lost) {
            let halves = |at: usize| whole[at].split_once("MIME-Version").unwrap();
            let mut new = whole.clone();
            new[lost] = format!("{}MIME-Version{}", halves(lost).0, halves(next).1);
            new[next] = format!("{}MIME-Version{}", halves(next).0, halves(lost).1);
            check("exchanged", &new, "", &[lost, next]);
        }

        let large = single
            .iter()
            .find(|at| whole[**at].contains("application/pdf"));
        if let Some(&large) = large {
            let lines: Vec<&str> = whole[large].lines().collect();
            let cut = lines.iter().rposition(|line| line.len() == 76).unwrap();
            let mut new = whole.clone();
            new[large] = lines[..cut].join("\n") + "\n";
            check("truncated", &new, "altered", &[large]);
        }

        let flagged = single.iter().find(|at| !letters(&whole[**at]).is_empty());
        if let Some(&flagged) = flagged.filter(|_| one.holds_flags() && other.holds_flags()) {
            let mut new = whole.clone();
            new[flagged] = without_flags(&whole[flagged]);
            check("flag", &new, "lost-flags", &[flagged]);
        }
    }
    println!("planted: {planted:?}, in {} pairs of kinds", kinds.len());
    if seeds().end >= 100 {
        assert_eq!((planted.len(), kinds.len()), (6, 36), "{planted:?}");
    }
}

#[test]
fn picture_that_is_not_the_one_of_the_data_url_is_an_alteration() {
    let (folder, mut numbers) = (Folder::new(), Numbers(5));
    let html = loop {
        let message = message(1, &mut numbers);
        if message.contains("Content-Type: text/html\n\n<html>") && !message.contains("--b1") {
            break message;
        }
    };
    let old = folder.write("old.mbox", mbox(&[html]));
    folder.run("convert --embed data old.mbox --output new.mbox");
    assert_whole(&old, &folder.at("new.mbox"));
    let new = fs::read_to_string(folder.at("new.mbox")).unwrap();
    let start = new.find("R0lGODlh").unwrap();
    let mut other = new.clone();
    other.replace_range(start + 40..start + 41, "Q");
    assert_ne!(new, other);
    let path = folder.write("other.mbox", other);
    assert_named(&old, &path, "altered", &[1]);
    // Removes the part, so that the link leads nowhere.
    let part = new[..start].rfind("\n--").unwrap();
    let end = start + new[start..].find("\n--").unwrap();
    let path = folder.write("gone.mbox", [&new[..part], &new[end..]].concat());
    assert_named(&old, &path, "altered", &[1]);
}

#[test]
fn samples_with_inserted_content_count_as_the_same_mail() {
    for name in [".", "wild", "mhtml", "embed"] {
        let samples = samples_in(&samples_folder().join(name));
        for sample in samples {
            let folder = Folder::new();
            let old = folder.write("old.eml", &sample.before);
            let new = folder.write("new.eml", &sample.after);
            let compared = compared(&old, &new);
            assert_eq!(
                (compared.status, compared.lines.len()),
                (Some(0), 1),
                "{}: {:#?}",
                sample.name,
                compared.lines
            );
        }
    }
}

const NOTE_FILLED: &str = "Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:text/plain,note%201\"\nX-Kept: outer\nContent-Description: a note\n\nContent-Type: text/plain; charset=utf-8\nContent-Language: en\nX-Inner: 7\n\n--b--\n";

#[test]
fn changed_field_of_a_reference_is_found_after_its_content_came_in() {
    let folder = Folder::new();
    let line = "From a@b Sat Jan  3 01:05:34 2015\n";
    let old = folder.write("old.mbox", [line, NOTE_FILLED, "\n"].concat());
    folder.run("convert old.mbox --output new.mbox");
    assert_whole(&old, &folder.at("new.mbox"));
    for (from, to) in [
        ("\n\nContent-Type: text", "\n\nQontent-Type: text"),
        ("\n\nContent-Type: text", "\n\nContent-TypQ: text"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-7"),
        ("Content-Language: en", "Content-Language: de"),
        ("Content-Language: en\n", ""),
        ("X-Inner: 7", "X-Inner: 8"),
        ("X-Inner: 7\n", ""),
        ("X-Kept: outer", "X-Kept: otter"),
        ("Content-Description: a note", "Content-Description: a nose"),
        ("note%201", "note%202"),
    ] {
        let changed = NOTE_FILLED.replace(from, to);
        assert_ne!(changed, NOTE_FILLED);
        let folder = Folder::new();
        let old = folder.write("old.mbox", [line, NOTE_FILLED, "\n"].concat());
        folder.write("changed.mbox", [line, &changed, "\n"].concat());
        folder.run("convert changed.mbox --output filled.mbox");
        let compared = compared(&old, &folder.at("filled.mbox"));
        assert_eq!(compared.status, Some(1), "{to}: {:?}", compared.lines);
        assert!(compared.lines[0].contains("altered"), "{to}");
    }
}

#[test]
fn one_of_two_references_with_the_same_header_may_be_filled() {
    let reference = |url: &str| {
        format!(
            "--b\nContent-Type: message/external-body; access-type=URL; URL=\"{url}\"\n\nContent-Type: text/plain\n\n"
        )
    };
    let (gone, here) = (
        reference("ftp://example.org/x"),
        reference("data:text/plain,x"),
    );
    for parts in [
        [&gone, &here],
        [&here, &gone],
        [&here, &here],
        [&gone, &gone],
    ] {
        let mail = format!(
            "Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{}--b--\n",
            parts.map(String::as_str).concat()
        );
        let folder = Folder::new();
        let old = folder.write("old.eml", &mail);
        folder.run("convert old.eml --output new.eml --output-format eml");
        let new = folder.at("new.eml");
        assert_whole(&old, &new);
        // A reference to another URL is not the reference of the old mail.
        let text = fs::read_to_string(&new).unwrap();
        let changed_text = text
            .replace("example.org/x", "example.org/y")
            .replace("\n\nx\n", "\n\nQ\n");
        let changed = folder.write("changed.eml", &changed_text);
        assert_eq!(compared(&old, &changed).status, Some(1), "{mail}");
    }
}

/// Converts each changed old mailbox with `recover`, and compares the original one with the result.
fn assert_changes_are_found_after_recovery(
    (source, file): (&str, &str),
    mail: &str,
    files: &[(&str, &[u8])],
    changes: &[(&str, &str)],
) {
    let recovered = |mail: &str| {
        let folder = Folder::new();
        for (path, content) in files.iter().chain([&(file, mail.as_bytes())]) {
            fs::create_dir_all(folder.at(path).parent().unwrap()).unwrap();
            folder.write(path, content);
        }
        folder.run(&format!(
            "recover {source} --offline --output new.mbox --output-format mbox"
        ));
        folder
    };
    let whole = recovered(mail);
    let old = whole.at(source);
    let said = assert_whole(&old, &whole.at("new.mbox"));
    assert!(said.contains("\"changed\":1,"), "{said}");
    for (from, to) in changes {
        let changed = mail.replace(from, to);
        assert_ne!(changed, mail, "{from}");
        let changed = recovered(&changed);
        let compared = compared(&old, &changed.at("new.mbox"));
        assert_eq!(compared.status, Some(1), "{to}: {:?}", compared.lines);
    }
    // Removes a file that the old mail had.
    let text = fs::read_to_string(whole.at("new.mbox")).unwrap();
    let last = text.rfind("\n--").unwrap();
    let start = text[..last].rfind("\n--").unwrap() + 1;
    let end = start + text[start + 2..].find("\n--").unwrap() + 3;
    let rest = [&text[..start], &text[end..]].concat();
    let gone = whole.write("gone.mbox", &rest);
    assert_eq!(compared(&old, &gone).status, Some(1), "{text}");
}

#[test]
fn attachments_that_apple_mail_kept_elsewhere_may_come_in() {
    let mail = "From: ann@example.org\nSubject: flat\nMessage-Id: <a101@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed;\n\tboundary=x\n\n--x\nContent-Type: text/plain\n\nTwo files.\n--x\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment;\n\tfilename=report.pdf\nContent-Type: application/pdf;\n\tname=report.pdf\nX-Apple-Content-Length: 1061\n\n\n--x\nContent-Transfer-Encoding: 7bit\nContent-Disposition: attachment;\n\tfilename=short.txt\nContent-Type: text/plain;\n\tname=short.txt\nX-Apple-Content-Length: 12\n\n\n--x--\n";
    let plist = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\"><dict><key>flags</key><integer>1</integer></dict></plist>\n";
    let emlx = |mail: &str| format!("{:<10}\n{mail}{plist}", mail.len());
    let files: &[(&str, &[u8])] = &[
        (
            "In.mbox/0A0A/Data/Attachments/101/2/report.pdf",
            b"%PDF-1.1\n",
        ),
        (
            "In.mbox/0A0A/Data/Attachments/101/3/short.txt",
            b"twelve bytes",
        ),
    ];
    // The changes keep the length of the message, because the file begins with it.
    assert_changes_are_found_after_recovery(
        ("In.mbox", "In.mbox/0A0A/Data/Messages/101.partial.emlx"),
        &emlx(mail),
        files,
        &[
            ("Two files.", "Ten files."),
            ("name=report.pdf\nX-", "name=resort.pdf\nX-"),
            (
                "Content-Type: application/pdf",
                "Content-Type: application/pdq",
            ),
            ("Subject: flat", "Subject: flag"),
        ],
    );
}

#[test]
fn messages_of_eudora_may_become_mime_again() {
    let mail = "From ???@??? Tue May 14 12:00:00 2024\nFrom: ann@example.org\nSubject: two files\nMessage-ID: <e1@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"gone\"\n\n<x-html>\n<p>See the <b>files</b>.</p>\n</x-html>\n\nAttachment Converted: \"C:\\Eudora\\attach\\a.txt\"\nand the end\n\nAttachment Converted: \"C:\\Eudora\\attach\\b.txt\"\n";
    let files: &[(&str, &[u8])] = &[
        ("box/attach/a.txt", b"first\n"),
        ("box/attach/b.txt", b"second\n"),
    ];
    let changes = [
        ("<b>files</b>", "<b>piles</b>"),
        ("and the end", "and the ends"),
        ("and the end\n", ""),
        ("Subject: two files", "Subject: ten files"),
        ("Attachment Converted: \"C:\\Eudora\\attach\\b.txt\"\n", ""),
    ];
    assert_changes_are_found_after_recovery(("box/In.mbx", "box/In.mbx"), mail, files, &changes);
    // If one of the files is missing, its line is still in the mail.
    let only_first: &[(&str, &[u8])] = &files[..1];
    let folder = Folder::new();
    for (path, content) in only_first.iter().chain([&("box/In.mbx", mail.as_bytes())]) {
        fs::create_dir_all(folder.at(path).parent().unwrap()).unwrap();
        folder.write(path, content);
    }
    embody()
        .current_dir(folder.path())
        .args("recover box/In.mbx --offline --output new.mbox".split(' '))
        .output()
        .unwrap();
    assert_whole(&folder.at("box/In.mbx"), &folder.at("new.mbox"));
}

#[test]
fn many_messages_with_one_message_id_take_linear_time_and_are_told_apart() {
    let folder = Folder::new();
    let many = |count: usize, text: &str| {
        let message = |number| {
            format!(
                "From a@b Sat Jan  3 01:05:34 2015\nMessage-ID: <one@example.org>\n\n{text} {number}\n\n"
            )
        };
        (0..count).map(message).collect::<String>()
    };
    // Many times more than the program compares with each message. With quadratic time, the test would take an hour.
    let count = 1000;
    let old = folder.write("old.mbox", many(count, "old"));
    let same = folder.write("same.mbox", many(count, "old"));
    assert_whole(&old, &same);
    let new = folder.write("new.mbox", many(count, "new"));
    let compared = compared(&old, &new);
    assert_eq!(
        (compared.status, compared.lines.len()),
        (Some(1), count + 1)
    );
}

#[test]
fn flags_come_from_header_fields_if_the_file_name_has_no_flag_letters() {
    let folder = Folder::new();
    let mail =
        "From a@b Sat Jan  3 01:05:34 2015\nStatus: RO\nX-Status: F\nSubject: Mail 1.\n\nx\n\n";
    let old = folder.write("old.mbox", mail);
    // An mbox in a directory whose name is that of a part of a Maildir.
    for name in ["a/cur", "b/new"] {
        fs::create_dir_all(folder.at(name)).unwrap();
        folder.write(&format!("{name}/box"), mail);
        assert_whole(&old, &folder.at(name));
        assert_whole(&folder.at(name), &old);
    }
    // A Maildir of Thunderbird.
    fs::create_dir_all(folder.at("Inbox/cur")).unwrap();
    let fields = "X-Mozilla-Status: 0005\nX-Mozilla-Status2: 00000000\nSubject: Mail 1.\n\nx\n";
    folder.write("Inbox/cur/1.eml", fields);
    assert_whole(&old, &folder.at("Inbox"));
    folder.write("Inbox/cur/1.eml", fields.replace("0005", "0001"));
    assert_named(&old, &folder.at("Inbox"), "lost-flags", &[1]);
}

/// Writes one mail into a mailbox of each kind. The flags in the names of Maildir files and in Status fields are the same in
/// all of them.
fn in_each_mailbox(folder: &Folder, name: &str, mail: &str) -> Vec<PathBuf> {
    let files = [
        (
            format!("{name}.mbox"),
            format!("From a@b Sat Jan  3 01:05:34 2015\n{mail}\n"),
        ),
        (
            format!("{name}.maildir/cur/1700000000.host:2,"),
            mail.to_owned(),
        ),
        (format!("{name}.files/1.eml"), mail.to_owned()),
        (format!("{name}.mh/1"), mail.to_owned()),
    ];
    let mut paths = Vec::new();
    for (file, content) in files {
        let top = folder.at(file.split('/').next().unwrap());
        fs::create_dir_all(folder.at(&file).parent().unwrap()).unwrap();
        folder.write(&file, content);
        paths.push(top);
    }
    for part in ["new", "tmp"] {
        fs::create_dir_all(folder.at(&format!("{name}.maildir/{part}"))).unwrap();
    }
    folder.write(&format!("{name}.mh/.mh_sequences"), "");
    paths
}

/// Changes of Thunderbird's fields: OLD, NEW, and the lost flag. The flag is empty if nothing is lost.
const OF_THUNDERBIRD: [(&str, &str, &str); 17] = [
    (
        "X-Mozilla-Keys: $label1 work\n",
        "X-Mozilla-Keys: work\n",
        "keyword $label1",
    ),
    ("X-Mozilla-Keys: $label1\n", "", "keyword $label1"),
    (
        "X-Mozilla-Keys:\n $label1\n",
        "X-Mozilla-Keys:\n",
        "keyword $label1",
    ),
    (
        "X-Mozilla-Keys: $label1\n",
        "X-Mozilla-Keys: $label2\n",
        "keyword $label1",
    ),
    (
        "X-Mozilla-Status: 0001\n",
        "X-Mozilla-Status: 0000\n",
        "read",
    ),
    (
        "X-Mozilla-Status:\n 0002\n",
        "X-Mozilla-Status: 0000\n",
        "replied",
    ),
    (
        "x-mozilla-status: 1005\n",
        "x-mozilla-status: 0005\n",
        "forwarded",
    ),
    (
        "X-Mozilla-Status: 0101\n",
        "X-Mozilla-Status: 0001\n",
        "mark watched thread",
    ),
    (
        "X-Mozilla-Status2: 00040000\n",
        "X-Mozilla-Status2: 00000000\n",
        "mark ignored thread",
    ),
    (
        "X-Mozilla-Status2: 04000000\n",
        "X-Mozilla-Status2: 00000000\n",
        "keyword $label2",
    ),
    (
        "X-Mozilla-Status2: 00800000\n",
        "X-Mozilla-Status2: 00000000\n",
        "keyword $MDNSent",
    ),
    (
        "X-Mozilla-Status: 0004\nX-Mozilla-Status: 0001\n",
        "X-Mozilla-Status: 0000\n",
        "flagged",
    ),
    ("X-Mozilla-Status: 0000\n", "X-Mozilla-Status: 0001\n", ""),
    ("X-Mozilla-Keys:      \n", "", ""),
    (
        "X-Mozilla-Keys: work\n",
        "X-Mozilla-Keys: $label1 work          \n",
        "",
    ),
    (
        "X-Mozilla-Keys: a b\n",
        "X-Mozilla-Keys: b\nX-Mozilla-Keys: A\n",
        "",
    ),
    (
        "X-Mozilla-Status: 0001\nX-Mozilla-Status: 0001\n",
        "X-Mozilla-Status: 0001\n",
        "",
    ),
];

#[test]
fn flags_and_tags_of_thunderbird_are_compared_wherever_they_are_in_the_header() {
    for (number, (old_fields, new_fields, lost)) in OF_THUNDERBIRD.into_iter().enumerate() {
        for place in 0..3 {
            let folder = Folder::new();
            let mail = |fields: &str| {
                let mut places = [""; 3];
                places[place] = fields;
                let [first, second, last] = places;
                format!(
                    "{first}Return-Path: <a@b>\nFrom: a@b\n{second}Subject: Mail 1.\nMIME-Version: 1.0\n{last}\nx\n"
                )
            };
            let olds = in_each_mailbox(&folder, "old", &mail(old_fields));
            let news = in_each_mailbox(&folder, "new", &mail(new_fields));
            for (of_old, old) in olds.iter().enumerate() {
                // At the start of the header, the names of files in a Maildir replace these flags.
                let is_replaced = |of: usize| {
                    place == 0 && of == 1 && old_fields.to_lowercase().contains("status:")
                };
                let other = (of_old + number) % olds.len();
                let is_comparable = !is_replaced(other) || is_replaced(of_old);
                if other != of_old && is_comparable {
                    assert_whole(old, &olds[other]);
                }
                // Each pair of mailboxes occurs in several tests.
                let pairs = news.iter().enumerate().skip((of_old + number + place) % 3);
                for (of_new, new) in pairs.step_by(3) {
                    if is_replaced(of_new) && !is_replaced(of_old) {
                        continue;
                    }
                    let is_flag = ["read", "replied", "forwarded", "flagged"].contains(&lost);
                    let is_stale = is_replaced(of_old) && is_flag;
                    if lost.is_empty() || is_stale {
                        assert_whole(old, new);
                        continue;
                    }
                    assert_named(old, new, "lost-flags", &[1]);
                    let text = compared(old, new).lines.join("\n");
                    let detail = format!("{lost}\"");
                    assert!(text.contains(&detail), "{of_old} {of_new} {detail}: {text}");
                }
            }
        }
    }
}

#[test]
fn conversions_keep_flags_and_tags_of_thunderbird_wherever_they_are_in_the_header() {
    let formats = ["mbox", "maildir", "eml", "mh", "mboxcl2", "thunderbird"];
    for (number, (fields, ..)) in OF_THUNDERBIRD.into_iter().enumerate() {
        for front in [
            "",
            "From: a@b\n",
            "Status: RO\n",
            "X-Mozilla-Status: 0000\nX-Mozilla-Keys: other\nStatus: O\n",
            "X-Mozilla-Status:\nX-Mozilla-Status: 0106\nX-Mozilla-Status2: 00040000\nX-Mozilla-Keys: a\nX-Mozilla-Keys: b\n",
        ] {
            let folder = Folder::new();
            let mail = format!("{front}{fields}Subject: Mail 1.\nMIME-Version: 1.0\n\nx\n");
            // Each mail is in one of the mailboxes in turn.
            let olds = in_each_mailbox(&folder, "old", &mail);
            for old in olds.into_iter().skip((number + front.len()) % 4).take(1) {
                let name = old.file_name().unwrap().to_str().unwrap();
                let mut before = old.clone();
                // Each format follows each other one in one of the tests.
                for step in 0..3 {
                    let format = formats[(number + step * (1 + number % 4)) % formats.len()];
                    let new = folder.at(&format!("{name}.{step}-{format}"));
                    let output = embody()
                        .args(["convert", "--quiet", "--output-format", format, "--output"])
                        .args([&new, &before])
                        .output()
                        .unwrap();
                    assert!(output.status.success(), "{}", stderr(&output));
                    if step == 0 {
                        let found = compared(&before, &new);
                        let told = format!("{name} {format} {step} {mail}\n{:?}", found.lines);
                        assert_eq!(found.status, Some(0), "{told}");
                    }
                    before = new;
                }
                assert_whole(&old, &before);
            }
        }
    }
}

#[test]
fn merged_copies_keep_flags_and_tags_of_thunderbird_after_other_fields() {
    let folder = Folder::new();
    let mail = |fields: &str| {
        format!(
            "From a@b Sat Jan  3 01:05:34 2015\nFrom: a@b\nMessage-ID: <1@b>\nSubject: Mail 1.\n{fields}MIME-Version: 1.0\n\nx\n\n"
        )
    };
    let one = mail("X-Mozilla-Keys: a\n");
    let other = mail("X-Mozilla-Status: 0003\nX-Mozilla-Status2: 04000000\nX-Mozilla-Keys: b\n");
    folder.write("one.mbox", &one);
    folder.write("other.mbox", &other);
    for (first, second) in [("one.mbox", "other.mbox"), ("other.mbox", "one.mbox")] {
        for format in ["mbox", "maildir", "thunderbird"] {
            let new = folder.at(&format!("{first}.{format}"));
            let output = embody()
                .args(["merge", "--quiet", "--output-format", format, "--output"])
                .args([&new, &folder.at(first), &folder.at(second)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            for old in [first, second] {
                let compared = embody()
                    .args(["compare", "--merged"])
                    .args([&folder.at(old), &new])
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&compared.stdout);
                assert_eq!(
                    compared.status.code(),
                    Some(0),
                    "{first} {format} {old}: {text}"
                );
            }
        }
    }
}

/// Runs a command in a shell, and then the comparison that the last line of its output suggests, which must succeed. Returns
/// the suggested command.
fn proved(folder: &Folder, line: &str) -> String {
    let program = embody().get_program().to_owned();
    let shell = |line: &str| {
        let line = line.replace("embody ", &format!("'{}' ", program.display()));
        let mut shell = std::process::Command::new("sh");
        let ran = shell.args(["-c", &line]).current_dir(folder.path());
        ran.output().unwrap()
    };
    let output = shell(line);
    let said = stderr(&output);
    assert!(output.status.success(), "{line}: {said}");
    let last = said.lines().last().unwrap();
    let (_, command) = last
        .split_once("to check that no mail was lost: ")
        .unwrap_or_else(|| panic!("{line}: {said}"));
    let compared = shell(command);
    assert!(compared.status.success(), "{command}: {compared:?}");
    command.to_owned()
}

#[test]
fn summary_of_each_command_ends_with_the_comparison_and_that_succeeds() {
    let folder = Folder::new();
    let whole = messages(3);
    assert!(whole.iter().any(|mail| mail.contains("application/pdf")));
    folder.write("it's old.mbox", mbox(&whole));
    folder.write("-a.mbox", mbox(&whole));
    for (line, expected) in [
        (
            "embody convert \"it's old.mbox\" --output 'new box.mbox'",
            "embody compare 'it'\\''s old.mbox' 'new box.mbox'",
        ),
        (
            "embody embed ./-a.mbox --output embedded.mbox",
            "embody compare ./-a.mbox embedded.mbox",
        ),
        (
            "embody recover ./-a.mbox --output recovered.mbox",
            "embody compare ./-a.mbox recovered.mbox",
        ),
        (
            "embody detach --store store --larger-than 1k ./-a.mbox --output detached.mbox",
            "embody compare ./-a.mbox detached.mbox",
        ),
        (
            "embody restore --store store detached.mbox --output restored.mbox",
            "embody compare detached.mbox restored.mbox",
        ),
        (
            "embody convert ./-a.mbox --links keep --output-format maildir --output md",
            "embody compare ./-a.mbox md",
        ),
        (
            "embody convert ./-a.mbox --output-format thunderbird --output tb",
            "embody compare ./-a.mbox tb",
        ),
    ] {
        assert_eq!(proved(&folder, line), expected);
    }
    // In these cases nothing differs, nothing is written, or no summary is printed, so no comparison is suggested.
    for line in [
        "convert detached.mbox --links keep --follow none --output same.mbox",
        "convert ./-a.mbox --output dry.mbox --dry-run",
        "convert ./-a.mbox --output quiet.mbox --quiet",
        "convert --in-place restored.mbox",
        "convert ./-a.mbox --output -",
    ] {
        let output = embody()
            .current_dir(folder.path())
            .args(line.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        assert!(
            !stderr(&output).contains("compare"),
            "{line}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn compare_refuses_standard_input_and_missing_files() {
    let folder = Folder::new();
    let old = folder.write("old.mbox", mbox(&messages(1)));
    let output = fed(embody().arg("compare").arg(&old).arg("-"), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("name a file or a folder"));
    let missing = folder.at("missing.mbox");
    let output = embody()
        .arg("compare")
        .args([&old, &missing])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn mail_that_cannot_be_read_is_never_called_whole() {
    let folder = Folder::new();
    folder.write("old.mbox", mbox(&messages(2)));
    folder.run("convert old.mbox --output new.mbox.gz --links keep");
    let mut packed = fs::read(folder.at("new.mbox.gz")).unwrap();
    packed.truncate(packed.len() - 9);
    let new = folder.write("torn.mbox.gz", packed);
    let output = embody()
        .arg("compare")
        .args([&folder.at("old.mbox"), &new])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("torn.mbox.gz"),
        "{}",
        stderr(&output)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("could not be read"), "{text}");
}

#[test]
fn mailbox_is_not_compared_with_itself_or_with_a_part_of_itself() {
    let folder = Folder::new();
    let at = |name: &str| folder.at(name);
    for name in [
        "mail", "mail/old", "other", "box", "box/cur", "box/new", "box/tmp", "copy",
    ] {
        fs::create_dir(at(name)).unwrap();
    }
    let mail = mbox(&messages(1));
    for name in ["mail/Inbox", "mail/old/Archive", "copy/Inbox", "one.mbox"] {
        folder.write(name, &mail);
    }
    folder.write("box/cur/1578304800.M1P1.h:2,S", "Subject: a\n\nx\n");
    fs::hard_link(at("one.mbox"), at("hard.mbox")).unwrap();
    #[cfg(unix)]
    for (target, link) in [
        ("one.mbox", "soft.mbox"),
        ("mail", "linked"),
        ("mail/old", "other/old"),
        ("mail/Inbox", "other/Inbox"),
    ] {
        std::os::unix::fs::symlink(at(target), at(link)).unwrap();
    }
    let compared = |words: &[&str]| {
        let output = embody()
            .current_dir(folder.path())
            .arg("compare")
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
        (output.status.code(), said)
    };
    for (old, new, named) in [
        (
            "one.mbox",
            "one.mbox",
            "one.mbox: OLD and NEW are the same file",
        ),
        (
            "one.mbox",
            "./mail/../one.mbox",
            "one.mbox: OLD and NEW are the same file",
        ),
        (
            "one.mbox",
            "hard.mbox",
            "hard.mbox: OLD and NEW are the same file",
        ),
        (
            "hard.mbox",
            "soft.mbox",
            "soft.mbox: OLD and NEW are the same file",
        ),
        ("mail", "mail/", "mail/: OLD and NEW are the same directory"),
        (
            "linked",
            "mail/old/..",
            "OLD and NEW are the same directory",
        ),
        (
            "mail",
            "linked/old",
            "linked/old: NEW is a part of OLD (mail)",
        ),
        ("mail/old", "mail", "mail/old: OLD is a part of NEW (mail)"),
        ("mail/Inbox", ".", "mail/Inbox: OLD is a part of NEW (.)"),
        (
            "mail",
            "other/old/Archive",
            "other/old/Archive: NEW is a part of OLD (mail)",
        ),
        ("box", "box/cur", "box/cur: NEW is a part of OLD (box)"),
    ] {
        let (status, said) = compared(&[old, new]);
        assert_eq!(status, Some(2), "{old} {new}: {said}");
        assert!(said.contains(named), "{old} {new}: {said}");
    }
    let (status, said) = compared(&["copy", "mail", "--ignore", "old"]);
    assert_eq!(status, Some(0), "{said}");
    // The advice about a part works when it is typed.
    let (_, said) = compared(&["mail", "mail/old"]);
    let advice = "; move it to another directory, or leave it out of OLD with --ignore ./old\n";
    assert!(said.ends_with(advice), "{said}");
    let (status, said) = compared(&["mail", "mail/old", "--ignore", "./old"]);
    assert_eq!(status, Some(0), "{said}");
    // A copy of hard links is a copy: it stays when OLD is deleted.
    fs::create_dir(at("links")).unwrap();
    fs::hard_link(at("copy/Inbox"), at("links/Inbox")).unwrap();
    let (status, said) = compared(&["copy", "links"]);
    assert_eq!(status, Some(0), "{said}");
}

#[cfg(unix)]
#[test]
fn maildir_whose_directories_are_links_to_those_of_old_is_no_copy() {
    let folder = Folder::new();
    let at = |name: &str| folder.at(name);
    for name in [
        "box", "box/cur", "box/new", "box/tmp", "fake", "fake/new", "fake/tmp",
    ] {
        fs::create_dir(at(name)).unwrap();
    }
    folder.write("box/cur/1578304800.M1P1.h:2,S", "Subject: a\n\nx\n");
    std::os::unix::fs::symlink(at("box/cur"), at("fake/cur")).unwrap();
    for (old, new) in [("box", "fake"), ("fake", "box")] {
        let output = embody()
            .arg("compare")
            .args([at(old), at(new)])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("fake/cur: this link makes OLD and NEW the same mailbox"),
            "{said}"
        );
    }
}

#[cfg(all(unix, feature = "imap"))]
#[test]
fn folder_of_a_server_is_not_compared_with_itself() {
    for (old, new) in [
        (
            "imaps://ann@example.invalid/",
            "imaps://ann@EXAMPLE.invalid",
        ),
        (
            "imaps://ann@example.invalid/INBOX",
            "imaps://ann@example.invalid/inbox",
        ),
        (
            "imaps://ann@example.invalid/Sent",
            "imaps://ann@example.invalid",
        ),
    ] {
        let output = embody().args(["compare", old, new]).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("OLD and NEW are mail of the same folder of ann at "),
            "{said}"
        );
    }
}

/// Messages that consist of their header, or of lines that are no header.
#[test]
fn mail_without_a_body_or_a_header_is_proved_in_each_format() {
    const SEPARATOR: &str = "From a@b.example Mon Jan  6 10:00:00 2020\n";
    let folder = Folder::new();
    let banner = "Microsoft Mail Internet Headers Version 2.0\n";
    let messages = [
        "From: a@b.example\nSubject: only a header\n".to_owned(),
        "From: a@b.example\nSubject: no line ending".to_owned(),
        SEPARATOR.to_owned(),
        format!(">{SEPARATOR}"),
        "\u{feff}".to_owned(),
        banner.to_owned(),
        format!("{banner}a text\n"),
        format!("a text\n{banner}"),
        ">From x\n".to_owned(),
        "From here on\n".to_owned(),
        "Subject: a\n\n>From x\n".to_owned(),
        "Subject: b\n\n>>From x\nFrom y\n".to_owned(),
        "\n>From x\n".to_owned(),
    ];
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.at("old").join(part)).unwrap();
    }
    for (number, message) in messages.iter().enumerate() {
        folder.write(&format!("old/cur/15783048{number:02}.M1P1.h:2,S"), message);
    }
    let formats = ["mboxrd", "mboxo", "maildir", "mh", "thunderbird"];
    for first in formats {
        folder.run(&format!(
            "convert old --output-format {first} --output {first}"
        ));
        assert_whole(&folder.at("old"), &folder.at(first));
        for second in formats {
            let target = format!("{first}-{second}");
            folder.run(&format!(
                "convert {first} --output-format {second} --output {target}"
            ));
            assert_whole(&folder.at("old"), &folder.at(&target));
        }
    }
}
