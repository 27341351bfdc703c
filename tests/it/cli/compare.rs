//! `embody compare`: nothing is lost without being named, and nothing is named that is not lost.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;

use crate::common::mail::{samples_folder, samples_in};
use crate::common::programs::{embody, fed, stderr};

/// Numbers that are the same in each run.
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

/// A message of one of seven kinds. Each has a subject of its own.
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

/// What `compare --json` says.
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

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.at(name), text).unwrap();
        self.at(name)
    }

    fn run(&self, line: &str) {
        let output = embody()
            .current_dir(self.0.path())
            .args(line.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
}

/// More with EMBODY_MAILBOXES=500.
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

/// The subjects of `planted` are named, each once, and no other message is.
#[track_caller]
fn assert_named(old: &Path, new: &Path, outcome: &str, planted: &[usize]) {
    let compared = compared(old, new);
    let named: Vec<&String> = compared.lines.iter().rev().skip(1).rev().collect();
    assert_eq!(compared.status, Some(1), "{planted:?} {named:#?}");
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

        // One byte of a body, in the mailbox as it is and after pictures were embedded.
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
            assert_named(
                &old,
                &folder.at("byte.embedded.mbox"),
                "altered",
                &[changed],
            );
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
            // The attachment is gone, with its boundary line.
            let mut new = whole.clone();
            let start = whole[large].find("Content-Type: application/pdf").unwrap();
            let end = start + whole[large][start..].find("\n--").unwrap() + 1;
            new[large].replace_range(start..end, "");
            let path = folder.write("gone.mbox", mbox(&new));
            assert_named(&old, &path, "altered", &[large]);
        }
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
    // The part is gone, and the link leads nowhere.
    let part = new[..start].rfind("\n--").unwrap();
    let end = start + new[start..].find("\n--").unwrap();
    let path = folder.write("gone.mbox", [&new[..part], &new[end..]].concat());
    assert_named(&old, &path, "altered", &[1]);
}

#[test]
fn samples_with_their_content_in_are_the_same_mail() {
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
    let old = folder.write("old.mbox", many(3000, "old"));
    let same = folder.write("same.mbox", many(3000, "old"));
    assert_whole(&old, &same);
    let new = folder.write("new.mbox", many(3000, "new"));
    let compared = compared(&old, &new);
    assert_eq!((compared.status, compared.lines.len()), (Some(1), 3001));
}

#[test]
fn standard_input_and_what_is_not_there_are_refused() {
    let folder = Folder::new();
    let old = folder.write("old.mbox", mbox(&messages(1)));
    let output = fed(embody().arg("compare").arg(&old).arg("-"), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("name a file or a folder"));
    let missing = folder.at("missing.mbox");
    let output = embody().arg("compare").args([&old, &missing]).output();
    let output = output.unwrap();
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
