//! Mutants of the results of `merge` and `recover`: `compare` names all of them, except those that differ only in what
//! docs/compare.md and docs/merge.md do not count.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::policy::{Followed, Policy, Scheme};
use embody::report::Refusal;
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::common::folder::Folder;
use crate::common::mail::expander;
use crate::common::programs::{embody, stderr};
use crate::common::reports;

/// Number of mutants of each side in `cargo test`. `EMBODY_MUTANTS` sets another number.
const FEW: usize = 500;

/// A mail of OLD, and the mail of NEW that proves it.
struct Pair {
    name: String,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Pair {
    fn new(name: &str, old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Self {
        Self {
            name: name.to_owned(),
            old: old.as_ref().to_vec(),
            new: new.as_ref().to_vec(),
        }
    }

    /// Returns both mails with a Message-ID of their own, so that one run can compare many pairs.
    fn numbered(&self, number: usize) -> [Vec<u8>; 2] {
        [&self.old, &self.new].map(|mail| with_id(mail, number))
    }
}

/// Returns the mail with another Message-ID. Mailman names the directory of an attachment after the SHA-1 of the Message-ID.
fn with_id(mail: &[u8], number: usize) -> Vec<u8> {
    let lower = mail.to_ascii_lowercase();
    let at = memchr::memmem::find(&lower, b"message-id:").unwrap() + "message-id:".len();
    let end = at + memchr::memchr(b'\n', &mail[at..]).unwrap();
    let id = format!("<{number}@mutants.example.org>");
    let [old, new] = [mail[at..end].trim_ascii(), id.as_bytes()].map(|id| {
        let hex = format!("{:x}", Sha1::digest(id));
        format!("/{}{}/", &hex[..4], &hex[hex.len() - 4..])
    });
    let mut mail = [&mail[..at], b" ", id.as_bytes(), &mail[end..]].concat();
    let found: Vec<usize> = memchr::memmem::find_iter(&mail, old.as_bytes()).collect();
    for at in found {
        mail[at..at + old.len()].copy_from_slice(new.as_bytes());
    }
    mail
}

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }

    fn of<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }
}

/// Words that a mutation replaces with each other.
const WORDS: [(&str, &str); 12] = [
    ("multipart/mixed", "multipart/alternative"),
    ("multipart/mixed", "multipart/related"),
    ("attachment", "inline"),
    ("base64", "7bit"),
    ("quoted-printable", "8bit"),
    ("utf-8", "iso-8859-1"),
    ("application/", "text/"),
    ("image/", "application/"),
    ("text/plain", "text/html"),
    ("message/rfc822", "text/plain"),
    ("filename=", "filenames="),
    ("example.org", "example.com"),
];

/// Fields that a mutation adds to a header.
const FIELDS: [&str; 8] = [
    "Content-Description: added",
    "Content-Disposition: attachment; filename=added.exe",
    "Content-Type: text/html",
    "Bcc: added@example.org",
    "Subject: added",
    " added by folding",
    "Content-Language: de",
    "Comments: added",
];

/// Changes a mail at one place.
fn mutated(mail: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut mail = mail.to_vec();
    let at = numbers.below(mail.len());
    let mut lines: Vec<Vec<u8>> = mail
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let line = numbers.below(lines.len());
    let boundaries: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with(b"--") && line.len() > 3)
        .map(|(number, _)| number)
        .collect();
    match numbers.below(16) {
        0 => mail[at] = b"aZ0 =\n<:;-"[numbers.below(10)],
        1 => drop(mail.remove(at)),
        2 => mail.insert(at, b"x9\"= "[numbers.below(5)]),
        3 => mail[at] ^= 0x20,
        4 => drop(mail.drain(at..)),
        5 => mail.extend_from_slice(b"added at the end\n"),
        6 => return replaced(&mail, numbers),
        kind => {
            match kind {
                7 => drop(lines.remove(line)),
                8 => lines.insert(line, lines[line].clone()),
                9 if line > 0 => lines.swap(line, line - 1),
                10 => lines.insert(line, format!("{}\n", numbers.of(&FIELDS)).into_bytes()),
                11 => lines.insert(line, b"added text\n".to_vec()),
                _ if boundaries.len() < 3 => drop(lines.remove(line)),
                _ => {
                    let at = numbers.below(boundaries.len() - 2);
                    let [first, second, third] = [0, 1, 2].map(|next| boundaries[at + next]);
                    let part: Vec<_> = lines[first..second].to_vec();
                    match kind {
                        12 => drop(lines.drain(first..second)),
                        13 => drop(lines.splice(first..first, part)),
                        14 => lines[first..third].rotate_left(second - first),
                        _ => drop(lines.drain(first + 1..second)),
                    }
                }
            }
            return lines.concat();
        }
    }
    mail
}

fn replaced(mail: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let (one, other) = *numbers.of(&WORDS);
    let (from, to) = if numbers.below(2) == 0 {
        (one, other)
    } else {
        (other, one)
    };
    let found: Vec<usize> = memchr::memmem::find_iter(mail, from).collect();
    if found.is_empty() {
        return mail.to_vec();
    }
    let at = *numbers.of(&found);
    [&mail[..at], to.as_bytes(), &mail[at + from.len()..]].concat()
}

/// Whether two mails differ only in line endings and in empty lines at the end, which mailboxes change.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let bare = |mail: &[u8]| {
        let mut mail = mail.to_vec();
        mail.retain(|byte| *byte != b'\r');
        mail.trim_ascii_end().to_vec()
    };
    bare(one) == bare(other)
}

/// Returns the range of bytes of `mail` that another mail does not have at this place.
fn changed(mail: &[u8], other: &[u8]) -> (usize, usize) {
    let start = mail
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count();
    let rest = mail[start..].iter().rev().zip(other[start..].iter().rev());
    let end = rest.take_while(|(one, other)| one == other).count();
    (start, mail.len() - end)
}

/// Returns the part of `new` that contains the range, with its header, and the length of this header, if `old` does not contain
/// its content. A server, a file or a copy had this content.
fn new_part<'n>(
    (start, end): (usize, usize),
    new: &'n [u8],
    old: &[u8],
) -> Option<(&'n [u8], usize)> {
    let ends = memchr::memchr_iter(b'\n', new).map(|at| at + 1);
    let mut begin = 0;
    for next in ends.chain([new.len()]) {
        if new[next..].starts_with(b"--") || next == new.len() {
            let part = &new[begin..next];
            let empty_line =
                [b"\n\n".as_slice(), b"\n\r\n"].map(|line| memchr::memmem::find(part, line));
            let header = empty_line
                .into_iter()
                .flatten()
                .min()
                .map_or(part.len(), |at| at + 1);
            let body = part[header..].trim_ascii();
            let is_new = body.is_empty() || memchr::memmem::find(old, body).is_none();
            if is_new && start >= begin && end <= next {
                return Some((part, header));
            }
            begin = next;
        }
    }
    None
}

/// Whether a change is in content that `recover` inserted, or in what only a server or a copy says about it.
fn is_of_inserted(unnamed: &Unnamed<'_>) -> bool {
    let is_here = |one: &[u8], other: &[u8]| {
        let range = changed(one, other);
        let Some((part, header)) = new_part(range, one, unnamed.other) else {
            return false;
        };
        let start = range.0 - (part.as_ptr() as usize - one.as_ptr() as usize);
        let line = memchr::memrchr(b'\n', &part[..start.min(part.len())]).map_or(0, |at| at + 1);
        let is_named = [b"Content-Type:".as_slice(), b"Content-Location:"]
            .iter()
            .any(|name| part[line..].starts_with(name));
        // Only the copy has the fields of a part that replaces a note in a text.
        let is_note = matches!(unnamed.pair, "Mailman" | "sympa-urlized");
        start >= header || is_named || is_note
    };
    // A text from a server can end with empty lines.
    let without_empty = |mail: &[u8]| -> Vec<Vec<u8>> {
        let lines = mail.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        lines
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    };
    let is_empty_line =
        unnamed.pair == "Mailman" && without_empty(unnamed.mutant) == without_empty(unnamed.right);
    is_empty_line
        || is_here(unnamed.mutant, unnamed.right) && is_here(unnamed.right, unnamed.mutant)
}

/// A change of one side that `compare` did not name.
struct Unnamed<'u> {
    right: &'u [u8],
    mutant: &'u [u8],
    /// The other mail of the pair, and the name of the pair.
    other: &'u [u8],
    pair: &'u str,
    is_new: bool,
}

impl Unnamed<'_> {
    /// Returns the text that was there, and the text that is there now.
    fn words(&self) -> String {
        let (start, end) = changed(self.right, self.mutant);
        let (_, end_of_mutant) = changed(self.mutant, self.right);
        let line = memchr::memrchr(b'\n', &self.right[..start]).map_or(0, |at| at + 1);
        let of = |mail: &[u8], end: usize| {
            let end = (end + 20).min(mail.len());
            String::from_utf8_lossy(&mail[line.min(end)..end]).into_owned()
        };
        let (right, mutant) = (of(self.right, end), of(self.mutant, end_of_mutant));
        format!("{right:?} became {mutant:?}")
    }
}

/// Compares mutants of NEW (`true`) and of OLD (`false`) with the other side. Panics if `compare` does not name one of them, and `is_allowed` is false.
fn attack(
    seed: u64,
    options: &str,
    (pairs, sides): (&[Pair], &[bool]),
    is_allowed: impl Fn(&Unnamed<'_>) -> bool,
) {
    let asked = std::env::var("EMBODY_MUTANTS").ok();
    let count = asked.map_or(FEW, |count| count.parse().unwrap());
    let mut numbers = Numbers(seed);
    assert_eq!(
        named(
            options,
            pairs.iter().enumerate().map(|(at, pair)| pair.numbered(at))
        ),
        HashSet::new()
    );
    for &is_new in sides {
        let mut mutants = Vec::new();
        while mutants.len() < count {
            let pair = numbers.of(pairs);
            let [old, new] = pair.numbered(mutants.len());
            let (right, other) = if is_new { (new, old) } else { (old, new) };
            let mutant = mutated(&right, &mut numbers);
            if !is_same(&mutant, &right) && !is_same(&mutant, &other) {
                mutants.push((pair, right, mutant, other));
            }
        }
        let compared = mutants.iter().map(|(_, _, mutant, other)| {
            if is_new {
                [other.clone(), mutant.clone()]
            } else {
                [mutant.clone(), other.clone()]
            }
        });
        let named = named(options, compared);
        let mut failed = Vec::new();
        for (number, (pair, right, mutant, other)) in mutants.iter().enumerate() {
            let unnamed = Unnamed {
                right,
                mutant,
                other,
                pair: &pair.name,
                is_new,
            };
            if !named.contains(&number) && !is_allowed(&unnamed) {
                let side = if is_new { "NEW" } else { "OLD" };
                failed.push(format!("{}, {side}: {}", pair.name, unnamed.words()));
            }
        }
        assert!(
            failed.is_empty(),
            "{} of {count}:\n{}",
            failed.len(),
            failed.join("\n")
        );
    }
}

/// Runs `compare` once with these messages of OLD and NEW. Returns the numbers of the messages that it names.
fn named(options: &str, pairs: impl Iterator<Item = [Vec<u8>; 2]>) -> HashSet<usize> {
    let folder = Folder::new();
    let mut count = 0;
    for (number, [old, new]) in pairs.enumerate() {
        folder.write(&format!("old/{number}.eml"), old);
        folder.write(&format!("new/{number}.eml"), new);
        count += 1;
    }
    let output = embody()
        .current_dir(folder.path())
        .args(["compare", "--json"])
        .args(options.split_whitespace())
        .args(["old", "new"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let rows: Vec<Value> = text.lines().map(reports::object).collect();
    let counts = &rows.last().unwrap()["compare"];
    let of = |name: &str| counts[name].as_u64().unwrap();
    let sum = of("identical") + of("changed") + of("altered") + of("missing");
    assert_eq!(
        (of("old"), sum),
        (count, count),
        "{counts}\n{}",
        stderr(&output)
    );
    let differences = rows.iter().filter(|row| row["kind"] == "difference");
    let numbers = differences.map(|row| {
        let path = Path::new(row["source"].as_str().unwrap());
        path.file_stem().unwrap().to_str().unwrap().parse().unwrap()
    });
    numbers.collect()
}

fn messages(mbox: &[u8]) -> Vec<Vec<u8>> {
    let separators = memchr::memmem::find_iter(mbox, b"\nFrom ").map(|at| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(separators).collect();
    let mails = starts.iter().enumerate().map(|(number, start)| {
        let end = starts.get(number + 1).copied().unwrap_or(mbox.len());
        let mail = &mbox[*start..end];
        let header = memchr::memchr(b'\n', mail).unwrap() + 1;
        // The empty line before the next separator is not a part of the mail.
        mail[header..]
            .strip_suffix(b"\n")
            .unwrap_or_default()
            .to_vec()
    });
    mails.collect()
}

/// Sends a file for each URL.
struct Files;

impl Fetch for Files {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let content = [b"%PDF-1.4\n\0".as_slice(), request.url().as_bytes()].concat();
        let essence = Some("application/octet-stream".to_owned());
        Ok(Content::new(request.url(), essence, content))
    }
}

/// Returns results of `recover` with notes of Mailman, Apple Mail and Eudora, and with links to files in clouds.
fn recovered() -> Vec<Pair> {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mail/recover");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&root, &folder.at("mail")])
        .status();
    assert!(copied.unwrap().success());
    let mut pairs = Vec::new();
    let mut add = |name: &str, old: Vec<u8>, new: Vec<u8>| {
        let is_changed = !is_same(&old, &new);
        pairs.extend(is_changed.then(|| Pair::new(name, old, new)));
    };
    let run = |line: &str| folder.output(line);
    for (name, options, source) in [
        (
            "Mailman",
            "--attachments mail/mailman/private/team",
            "mail/mailman/2024-May.txt",
        ),
        ("Eudora", "", "mail/eudora-win/In.mbx"),
    ] {
        run(&format!(
            "recover {source} {options} --offline --output new.mbox --output-format mbox"
        ));
        let old = messages(&fs::read(folder.at(source)).unwrap());
        let new = messages(&fs::read(folder.at("new.mbox")).unwrap());
        assert_eq!(old.len(), new.len(), "{name}");
        for (old, new) in old.into_iter().zip(new) {
            add(name, old, new);
        }
        fs::remove_file(folder.at("new.mbox")).unwrap();
    }
    let apple = "INBOX.mbox/0A0A/Data/Messages";
    run("recover mail/apple --offline --output apple");
    let of_file = |path: &Path| {
        let file = fs::read(path).unwrap();
        let start = memchr::memchr(b'\n', &file).unwrap() + 1;
        let length: usize = std::str::from_utf8(&file[..start])
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        file[start..start + length].to_vec()
    };
    for entry in fs::read_dir(folder.at("mail/apple").join(apple)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let whole = name.replace(".partial", "");
        let found = [name, whole].map(|name| folder.at("apple").join(apple).join(name));
        let new = found.iter().find(|path| path.exists());
        add("Apple Mail", of_file(&path), of_file(new.unwrap()));
    }
    let policy = Policy::default()
        .with_fetch([Scheme::Http, Scheme::Https])
        .with_follow(Followed::all());
    for entry in fs::read_dir(root.join("hosted")).unwrap() {
        let path = entry.unwrap().path();
        let old = fs::read(&path).unwrap();
        let expander = expander(policy.clone(), Files);
        let expansion = expander.expand(&old, "test").unwrap();
        let new = expansion.output().into_bytes().into_owned();
        add(&path.file_stem().unwrap().to_string_lossy(), old, new);
    }
    for (name, copy, whole) in copies() {
        folder.write("copy.eml", &copy);
        folder.write("whole.eml", &whole);
        run("recover copy.eml --copies whole.eml --offline --output filled.eml");
        add(
            name,
            copy.into_bytes(),
            fs::read(folder.at("filled.eml")).unwrap(),
        );
        fs::remove_file(folder.at("filled.eml")).unwrap();
    }
    for name in [
        "Mailman",
        "Eudora",
        "Apple Mail",
        "dropbox-link",
        "gmail-drive-chip",
        "mutt",
        "Thunderbird",
    ] {
        assert!(pairs.iter().any(|pair| pair.name == name), "{name}");
    }
    pairs
}

#[test]
fn mutants_of_recovered_mail_are_named_except_content_that_only_servers_and_files_had() {
    attack(11, "", (&recovered(), &[true]), is_of_inserted);
}

/// Returns the lines of a mail that contain a range of bytes, and the numbers of all lines that NEW does not contain.
fn lines_of(mail: &[u8], (start, end): (usize, usize), new: &[u8]) -> (Vec<usize>, Vec<usize>) {
    let known: HashSet<&[u8]> = new
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    let (mut touched, mut replaced, mut at) = (Vec::new(), Vec::new(), 0);
    for (number, line) in mail.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if at < end && at + line.len() > start {
            touched.push(number);
        }
        if !known.contains(line.trim_ascii()) {
            replaced.push(number);
        }
        at += line.len();
    }
    (touched, replaced)
}

/// Whether a change of OLD is in a note or a reference that `recover` replaced by content, or next to it. NEW depends on it only
/// as far as the content, its place and its name do. Apart from this, only fields that `recover` writes again may be different.
fn is_of_note(unnamed: &Unnamed<'_>) -> bool {
    let range = changed(unnamed.right, unnamed.mutant);
    let (touched, replaced) = lines_of(unnamed.right, range, unnamed.other);
    let lines: Vec<&[u8]> = unnamed
        .right
        .split_inclusive(|byte| *byte == b'\n')
        .collect();
    let is_replaced = |number: usize| replaced.contains(&number);
    let is_next_to_replaced =
        |number: usize| is_replaced(number + 1) || number.checked_sub(1).is_some_and(is_replaced);
    let is_written_again = |number: &usize| {
        let line = lines[*number];
        line.starts_with(b"MIME-Version:")
            || unnamed.pair == "Apple Mail" && line.starts_with(b"Content-Transfer-Encoding:")
    };
    let is_free = |number: &usize| {
        let is_empty = lines[*number].trim_ascii().is_empty();
        is_replaced(*number) || is_empty && is_next_to_replaced(*number) || is_written_again(number)
    };
    // If a field occurs twice, embody keeps one of the two.
    let is_doubled = || {
        let mutant: Vec<&[u8]> = unnamed
            .mutant
            .split_inclusive(|byte| *byte == b'\n')
            .collect();
        let same = mutant
            .iter()
            .zip(&lines)
            .take_while(|(one, other)| one == other);
        let at = same.count();
        let Some((doubled, rest)) = mutant[at..].split_first() else {
            return false;
        };
        let names = [b"MIME-Version:".as_slice(), b"Content-Type:"];
        rest == &lines[at..]
            && lines.contains(doubled)
            && names.iter().any(|name| doubled.starts_with(name))
    };
    // The note for an enclosed message contains its fields, which NEW has, too.
    let front = &unnamed.right[..range.0];
    let last = |words: &str| memchr::memmem::rfind(front, words.as_bytes());
    let is_of_message = last("was scrubbed...") > last("http");
    // Empty lines at the end of a deleted part.
    let is_blank = || {
        let part = &front[last("\n--").unwrap_or_default()..];
        let marks = ["x-mutt-deleted", "x-moz-deleted", "X-Apple-Content-Length"];
        let (start, end) = changed(unnamed.mutant, unnamed.right);
        let texts = [
            &unnamed.right[range.0..range.1],
            &unnamed.mutant[start..end],
        ];
        texts.iter().all(|text| text.trim_ascii().is_empty())
            && marks
                .iter()
                .any(|mark| memchr::memmem::find(part, mark.as_bytes()).is_some())
    };
    let is_in_other_order = || {
        let [own, other] = [unnamed.right, unnamed.mutant].map(|mail| {
            let kept = mail.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            kept.collect::<Vec<_>>()
        });
        let mut sorted = [own.clone(), other.clone()];
        sorted.iter_mut().for_each(|lines| lines.sort());
        // A run writes the fields that describe the text again.
        let is_description = |number: &usize| lines[*number].starts_with(b"Content-T");
        let is_kept = |line: &&&[u8]| memchr::memmem::find(unnamed.other, line).is_some();
        sorted[0] == sorted[1]
            && (own.iter().filter(is_kept).eq(other.iter().filter(is_kept))
                || touched.iter().all(is_description))
    };
    let before = memchr::memchr_iter(b'\n', &unnamed.right[..range.0]).count();
    let is_inserted = range.0 == range.1;
    is_doubled()
        || is_of_message
        || is_blank()
        || is_in_other_order()
        || is_inserted && (is_replaced(before) || is_next_to_replaced(before))
        || !is_inserted && touched.iter().all(is_free)
}

#[test]
fn mutants_of_mail_before_recover_are_named_except_in_replaced_notes() {
    attack(14, "", (&recovered(), &[false]), is_of_note);
}

const HEADER: &str = "From: Ann B <ann@example.org>\nTo: dev@lists.example.org\nSubject: a test\n\
    Date: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\nMIME-Version: 1.0\n";

const PDF: &[u8] = b"%PDF-1.4 a file of some bytes, and one more line of them\n\0\x01\x02";

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Returns a mail with two texts, an enclosed message, and a part that is a file or a note.
fn mixed(fields: &str, part: &str) -> String {
    format!(
        "{fields}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative; boundary=c\n\n\
         --c\nContent-Type: text/plain; charset=utf-8\n\nhello caf\u{e9}\n-- \nAnn\n\n--c\nContent-Type: text/html; charset=utf-8\n\n<p>hello</p>\n\n--c--\n\n\
         --b\n{part}\n--b\nContent-Type: message/rfc822\n\nFrom: Bob <bob@example.org>\nSubject: inner\n\nan inner text\n\n--b--\n"
    )
}

/// Returns pairs of copies of a mail, with the kind of the first copy. The second one is at least as complete.
fn copies() -> Vec<(&'static str, String, String)> {
    let file = format!(
        "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\n{}\n",
        base64(PDF)
    );
    let whole = mixed(HEADER, &file);
    let quoted =
        "Content-Type: application/pdf;\n name=\"a.pdf\"\nContent-Transfer-Encoding: base64\n";
    let digest = format!("{:x}", Sha256::digest(PDF));
    let size = PDF.len();
    let deleted = "You deleted an attachment from this message. The original MIME headers for the attachment were:";
    let list = format!("List-Id: <dev.lists.example.org>\n{HEADER}");
    let text = format!("{HEADER}\nhello\nand more\n");
    let footer = format!(
        "{}\ndev mailing list\ndev@lists.example.org\nhttps://lists.example.org/mailman/listinfo/dev\n",
        "_".repeat(47)
    );
    let scrubbed = format!(
        "{HEADER}\nhello\n-------------- next part --------------\nA non-text attachment was scrubbed...\nName: a.pdf\nType: application/pdf\nSize: {size} bytes\n\
         Desc: not available\nURL: <http://lists.example.org/pipermail/dev/attachments/20240506/50f524a0/attachment.pdf>\n"
    );
    let simple = format!(
        "{HEADER}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nhello\n\n--b\n{file}--b--\n"
    );
    vec![
        (
            "servers",
            format!(
                "Received: from a by b; Mon, 6 May 2024 10:00:01 +0200\nDelivered-To: me@example.com\n{whole}"
            ),
            whole.clone(),
        ),
        (
            "list",
            format!("List-Id: <dev.lists.example.org>\nPrecedence: list\n{text}{footer}"),
            format!("{list}{}", &text[HEADER.len()..]),
        ),
        (
            "embody",
            mixed(
                HEADER,
                &format!(
                    "Content-Type: message/external-body; access-type=URL;\n URL=\"https://example.org/o/{digest}\"\n\nContent-Type: application/pdf; name=a.pdf\nX-Embody-Detached: sha256={digest};\n size={size}; encoding=base64; line=76\n\n"
                ),
            ),
            whole.clone(),
        ),
        (
            "Thunderbird",
            mixed(
                HEADER,
                &format!(
                    "Content-Type: text/x-moz-deleted; name=\"Deleted: a.pdf\"\nX-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n\n{deleted}\n{quoted}\n"
                ),
            ),
            whole.clone(),
        ),
        (
            "mutt",
            mixed(
                HEADER,
                &format!(
                    "Content-Type: message/external-body; access-type=x-mutt-deleted;\n expiration=\"Mon, 6 May 2024 10:00:00 +0200\"; length={size}\n\n{quoted}\n"
                ),
            ),
            whole.clone(),
        ),
        (
            "Apple Mail",
            mixed(
                HEADER,
                &format!(
                    "Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\nX-Apple-Content-Length: {}\n\n",
                    base64(PDF).len() + 1
                ),
            ),
            whole.clone(),
        ),
        ("Mailman", scrubbed, simple.clone()),
        (
            "cut off",
            simple[..simple.len() - 50].to_owned(),
            simple.clone(),
        ),
        (
            "spelling",
            whole
                .replace("Ann B", "Ann\n \"B\"")
                .replace("10:00:00 +0200", "08:00:00 +0000 (UTC)"),
            whole,
        ),
    ]
}

/// Returns results of `merge`: for each kind of copy, a pair of the copy that was left out and the result.
fn merged() -> Vec<Pair> {
    let folder = Folder::new();
    let pairs = copies().into_iter().map(|(name, copy, kept)| {
        folder.write("one.eml", &copy);
        folder.write("other.eml", &kept);
        folder.run("merge one.eml other.eml --output all.mbox");
        let merged = messages(&fs::read(folder.at("all.mbox")).unwrap());
        assert_eq!(
            merged.len(),
            1,
            "{name}: {}",
            String::from_utf8_lossy(&merged.concat())
        );
        fs::remove_file(folder.at("all.mbox")).unwrap();
        Pair::new(name, copy, &merged[0])
    });
    pairs.collect()
}

/// Returns the lines of a mail without what docs/merge.md does not count: blanks, the spelling of fields, and fields of servers
/// and lists.
fn counted(mail: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(mail);
    let mut lines: Vec<String> = Vec::new();
    let mut was_dropped = true;
    for line in text.lines() {
        let mut bare: String = line.split_whitespace().collect();
        if line.starts_with(' ') && !bare.is_empty() {
            if let Some(last) = lines.last_mut().filter(|_| !was_dropped) {
                last.push_str(&bare.to_lowercase());
            }
            continue;
        }
        let is_field = bare.split_once(':').is_some_and(|(name, _)| {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            name.bytes().all(is_of_name)
        });
        if is_field {
            bare = bare.to_lowercase();
        }
        // A time can have one digit, and its colons can be missing.
        if bare.starts_with("date:") {
            bare.retain(|letter| !matches!(letter, ':' | '0'));
        }
        let dropped = [
            "received:",
            "delivered-to:",
            "list-id:",
            "precedence:",
            "mime-version:",
            "message-id:",
        ];
        // A multipart also ends before the next part of the multipart around it.
        was_dropped = dropped.iter().any(|name| bare.starts_with(name)) || bare == "--c--";
        if !bare.is_empty() && !was_dropped {
            lines.push(bare);
        }
    }
    lines
}

/// Whether the mails differ only in the part of the file and after it. Most notes say nothing about the content of a part.
fn differ_only_in_file(one: &[u8], other: &[u8]) -> bool {
    let around = |mail: &[u8]| {
        let lines = counted(mail);
        let is_type = |line: &String| {
            line.contains("application/pdf")
                || line.contains("x-moz")
                || line.contains("external-body")
        };
        let start = lines.iter().position(is_type).unwrap_or(lines.len());
        let end = lines.iter().skip(start).position(|line| line == "--b");
        let rest = end.map_or_else(Vec::new, |end| lines[start + end..].to_vec());
        let before = start.saturating_sub(1);
        (lines[..before].to_vec(), rest)
    };
    around(one) == around(other)
}

/// Whether the changed copy of OLD still has nothing that counts and is not in NEW: a note, a footer or a missing end may be
/// different.
fn is_covered(unnamed: &Unnamed<'_>) -> bool {
    let Unnamed {
        right,
        mutant,
        pair,
        ..
    } = *unnamed;
    let (of_right, of_mutant) = (counted(right), counted(mutant));
    let mut sorted = [of_right.clone(), of_mutant.clone()];
    sorted.iter_mut().for_each(|lines| lines.sort());
    let (start, end) = changed(right, mutant);
    let lines = String::from_utf8_lossy(&right[start..end]);
    let are_fields = lines.lines().skip(1).all(|line| line.contains(": "));
    // The mail was cut off, also in the boundary line at its end.
    let last = mutant.iter().rposition(|byte| !b"-\r\n ".contains(byte));
    let is_cut = right.starts_with(&mutant[..last.map_or(0, |last| last + 1)]);
    let is_of_footer = || {
        let at = memchr::memmem::find(right, b"_____").unwrap_or(right.len());
        start + 1 >= at
    };
    let is_of_note = || {
        let at = memchr::memmem::find(right, b"\n-------------- next part").unwrap_or(right.len());
        start >= at
    };
    // The type of a part without a field, and the fields of a text from which Mailman removed the structure.
    let is_default = |line: &String| {
        line == "content-type:text/plain" || pair == "Mailman" && line.starts_with("content-d")
    };
    let [one, other] = [&of_right, &of_mutant].map(|lines| {
        let lines = lines.iter().filter(|line| !is_default(line));
        lines.collect::<Vec<_>>()
    });
    one == other
        || are_fields && sorted[0] == sorted[1]
        || is_cut
        || pair == "list" && is_of_footer()
        || pair == "Mailman" && is_of_note()
        || matches!(pair, "embody" | "Thunderbird" | "mutt" | "Apple Mail")
            && differ_only_in_file(right, mutant)
}

#[test]
fn mutants_of_merged_mail_are_named_except_differences_that_merge_does_not_count() {
    let pairs = merged();
    // Notes, footers and ends that are missing in OLD need not be in NEW.
    attack(12, "--merged", (&pairs, &[true]), |unnamed| {
        let Unnamed {
            right,
            mutant,
            pair,
            ..
        } = *unnamed;
        let (of_right, of_mutant) = (counted(right), counted(mutant));
        let mut sorted = [of_right.clone(), of_mutant.clone()];
        sorted.iter_mut().for_each(|lines| lines.sort());
        // The order of fields does not count.
        let (start, end) = changed(right, mutant);
        let lines = String::from_utf8_lossy(&right[start..end]);
        let are_fields = lines.lines().skip(1).all(|line| line.contains(": "));
        of_right == of_mutant
            || are_fields && sorted[0] == sorted[1]
            || pair != "embody" && differ_only_in_file(right, mutant)
            || pair == "cut off"
            || matches!(pair, "Mailman" | "list") && unnamed.is_new
    });
    attack(15, "--merged", (&pairs, &[false]), is_covered);
    let kept: Vec<Pair> = pairs
        .iter()
        .map(|pair| Pair::new(&pair.name, &pair.new, &pair.new))
        .collect();
    attack(13, "", (&kept, &[true, false]), |_| false);
}
