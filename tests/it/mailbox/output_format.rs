//! `--output-format`: conversions between mbox, Maildir and files of messages (docs/mailboxes.md, "Convert between formats").

use std::collections::BTreeMap;
use std::fs::{self, FileTimes};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use tempfile::TempDir;

use super::maildir::dovecot_says;
use super::separators::counted_by_mutt_in;
use crate::common::archives::zip;
use crate::common::bounded::ended;
use crate::common::mailboxes::{Expand, Look, Numbers};
use crate::common::programs::{done, embody, embody_in, fed, program, signalled, skipped, stderr};
use embody::Error;
use embody::mailbox::{Conversion, Format, Options, ReadOptions, Summary, Transform};

fn to(
    source: &Path,
    destination: &Path,
    output_format: Format,
    with: &dyn Transform,
) -> Result<Summary, Error> {
    let options = Options {
        output_format,
        ..Options::default()
    };
    Conversion::of(source)
        .to(destination)
        .options(&options)
        .run(with, &())
}

/// Returns every file in a directory by its relative path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn modified(path: &Path) -> u64 {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    modified.duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Runs `embody convert` with these arguments, which contain no blanks.
fn convert(at: &Path, arguments: &str) -> Output {
    let words = std::iter::once("convert").chain(arguments.split_whitespace());
    embody_in(at, &words.collect::<Vec<_>>())
}

/// Runs `embody convert`, which must succeed. Returns the text on standard error.
#[track_caller]
fn converted(at: &Path, arguments: &str) -> String {
    done(&convert(at, arguments), 0)
}

/// Converts `in.mbox` to the Maildir `md`, and `md` to `out.mbox`.
fn there_and_back(at: &Path) {
    converted(at, "in.mbox --output-format maildir --output md");
    converted(at, "md --output-format mbox --output out.mbox");
}

/// Creates a directory with the file `in.mbox`.
fn folder_with(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.mbox"), text).unwrap();
    folder
}

/// Fields of a mail in an mbox, and the resulting directory and letters in a Maildir.
const NOTED: &[(&str, &str)] = &[
    ("", "new/"),
    ("Status: O\n", "cur/:2,"),
    ("Status: RO\n", "cur/:2,S"),
    ("Status: R\nX-Status: AFTD\n", "cur/:2,DFRST"),
    ("status:\tro\nX-STATUS : F\n", "cur/:2,F"),
    ("Status: RO\nStatus: \nX-Status:\n", "cur/:2,S"),
    (
        "X-Mozilla-Status: 0000\nX-Mozilla-Status2: 00000000\n",
        "cur/:2,",
    ),
    (
        "X-Mozilla-Status: 0000\nX-Mozilla-Status2: 00010000\n",
        "new/",
    ),
    ("X-Mozilla-Status: 1007\nStatus: O\n", "cur/:2,FPRS"),
    ("X-Account-Key: 1\nX-Mozilla-Status: 0008\n", "cur/:2,T"),
    (
        "X-Mozilla-Status: 0001\nX-Mozilla-Status2: 00200000\n",
        "cur/:2,ST",
    ),
    // Fields of Thunderbird count if they are before the fields of the mail. Thunderbird did not write those after them.
    ("X-Mozilla-Status: 0000\nStatus: RO\n", "cur/:2,"),
    ("To: x\nX-Mozilla-Status: 0009\n", "new/"),
];

fn noted() -> String {
    let mails = NOTED.iter().enumerate().map(|(number, (fields, _))| {
        format!(
            "From a@b.example Thu Jan  1 00:{number:02}:00 1970\n{fields}Subject: {number}\nMessage-ID: <{number}@b.example>\n\nbody {number}\n\n"
        )
    });
    mails.collect()
}

#[test]
fn flags_are_letters_in_a_maildir_and_the_mails_keep_their_octets_on_both_ways() {
    let text = noted();
    let folder = folder_with(&text);
    let at = folder.path();
    converted(at, "in.mbox --output-format maildir --output md");
    let made = files(&at.join("md"));
    assert_eq!(made.len(), NOTED.len());
    for (number, (fields, place)) in NOTED.iter().enumerate() {
        let ends = format!("\n\nbody {number}\n");
        let (name, content) = made
            .iter()
            .find(|(_, content)| content.ends_with(ends.as_bytes()))
            .unwrap();
        let seconds = number * 60;
        let size = content.len();
        let (part, letters) = place.split_at(4);
        let expected = format!(
            "{part}{seconds:010}.{:08}.embody,S={size}{letters}",
            number + 1
        );
        assert_eq!(*name, expected, "{fields}");
        assert!(content.starts_with(format!("{fields}Subject").as_bytes()));
        assert_eq!(modified(&at.join("md").join(name)), seconds as u64);
    }
    converted(at, "md --output-format=mbox --output out.mbox");
    // No field contained the sender in the separator.
    let back = text.replace("From a@b.example", "From MAILER-DAEMON");
    assert_eq!(fs::read_to_string(at.join("out.mbox")).unwrap(), back);
}

#[test]
fn maildir_flags_override_contradicting_status_fields() {
    let rows: &[(&str, &str, &str)] = &[
        // Name of the file, its content, and the resulting text in the mbox.
        ("new/1", "Subject: x\n\nb\n", "Subject: x\n\nb\n"),
        (
            "cur/1:2,",
            "Subject: x\n\nb\n",
            "Subject: x\nStatus: O\n\nb\n",
        ),
        (
            "cur/1:2,S",
            "Status: RO\nSubject: x\n\nb\n",
            "Status: RO\nSubject: x\n\nb\n",
        ),
        (
            "cur/1:2,S",
            "Status: R\nSubject: x\n\nb\n",
            "Status: R\nSubject: x\n\nb\n",
        ),
        (
            "cur/1:2,FRS",
            "Subject: x\r\n\r\nb\r\n",
            "Subject: x\r\nStatus: RO\r\nX-Status: AF\r\n\r\nb\r\n",
        ),
        (
            "cur/1:2,DT",
            "Status: RO\nX: y\nStatus: R\n O\nX-Status: A\n\nb\n",
            "Status: O\nX: y\nX-Status: TD\n\nb\n",
        ),
        (
            "new/1",
            "Status: RO\nX-Status: F\nX: y\n\nb\n",
            "X: y\n\nb\n",
        ),
        (
            "cur/1:2,P",
            "Subject: x\n\nb\n",
            "X-Mozilla-Status: 1000\nSubject: x\nStatus: O\n\nb\n",
        ),
        (
            "cur/1:2,S",
            "X-Mozilla-Status: 8000\nX-Mozilla-Status2: 00210000\nX: y\n\nb\n",
            "X-Mozilla-Status: 8001\nX-Mozilla-Status2: 00000000\nX: y\nStatus: RO\n\nb\n",
        ),
        (
            "cur/1:2,S",
            "Status:\nX: y\n\nb\n",
            "Status: RO\nX: y\n\nb\n",
        ),
        // Some programs find no header before the field, and all find one after it.
        ("cur/1:2,S", "no header", "Status: RO\nno header\n"),
    ];
    for (name, content, expected) in rows {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(at.join("md").join(part)).unwrap();
        }
        fs::write(at.join("md").join(name), content).unwrap();
        to(&at.join("md"), &at.join("out.mbox"), Format::Mbox, &Look).unwrap();
        let out = fs::read_to_string(at.join("out.mbox")).unwrap();
        let (separator, mail) = out.split_once('\n').unwrap();
        assert!(separator.starts_with("From MAILER-DAEMON "), "{out}");
        let newline = if content.contains('\r') { "\r\n" } else { "\n" };
        assert_eq!(mail, format!("{expected}{newline}"), "{name} {content:?}");
        // The content of single files never changes.
        to(&at.join("md"), &at.join("eml"), Format::Eml, &Look).unwrap();
        assert_eq!(
            fs::read_to_string(at.join("eml/00000001.eml")).unwrap(),
            *content
        );
        // The mbox contains the facts of the Maildir.
        to(
            &at.join("out.mbox"),
            &at.join("md2"),
            Format::Maildir,
            &Look,
        )
        .unwrap();
        let again = files(&at.join("md2")).into_keys().next().unwrap();
        let letters = |name: &str| {
            name.split_once(":2,")
                .map(|(_, letters)| letters.to_owned())
        };
        assert_eq!(
            (&again[..3], letters(&again)),
            (&name[..3], letters(name)),
            "{content:?}"
        );
    }
}

#[test]
fn sender_and_date_are_those_of_the_separator_or_of_the_fields_and_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // The text of a separator, and the resulting modification time of the file in a Maildir.
    let separators = [
        ("a@b.example Thu Jan  1 00:00:07 1970", 7),
        ("a@b.example Thu Jan  1 01:00:00 +0100 1970", 0),
        (
            "1786543210987654321@xxx Mon Jan 02 15:04:05 +0000 2023",
            1_672_671_845,
        ),
        ("- Mon Jan 02 15:04:05 2023", 1_672_671_845),
        ("a at b.example  Mon Jan  2 15:04 2023", 1_672_671_840),
        ("a@b Thu Nov 29 22:33:52 EST 2001", 1_007_091_232),
        ("jan@b.example Fri Feb 29 10:00:00 2008", 1_204_279_200),
        // This is not a valid date, so the Date field is used.
        ("a@b Mon Jan 99 15:04:05 2023", 1_000_000_000),
    ];
    let text: String = separators
        .iter()
        .map(|(line, _)| format!("From {line}\nDate: Sun, 09 Sep 2001 01:46:40 +0000\n\nx\n\n"))
        .collect();
    fs::write(at.join("in.mbox"), text).unwrap();
    for (format, out) in [("maildir", "md"), ("eml", "eml")] {
        converted(
            at,
            &format!("in.mbox --output-format {format} --output {out}"),
        );
        let mut times: Vec<u64> = files(&at.join(out))
            .keys()
            .map(|name| modified(&at.join(out).join(name)))
            .collect();
        let mut expected: Vec<u64> = separators.iter().map(|(_, seconds)| *seconds).collect();
        times.sort_unstable();
        expected.sort_unstable();
        assert_eq!(times, expected, "{format}");
    }
    // In the other direction, the sender is taken from the fields.
    let senders = [
        (
            "Return-Path: <a@b.example>\nFrom: c@d.example\n",
            "a@b.example",
        ),
        ("From: \"C, D\" <c@d.example> (x)\n", "c@d.example"),
        (
            "From: c@d.example (C <x)\nReturn-Path: <>\n",
            "MAILER-DAEMON",
        ),
        ("From: c@d.example\n", "c@d.example"),
        ("From: a b\n", "MAILER-DAEMON"),
        ("From: <a@b\n\tc>\n", "MAILER-DAEMON"),
        ("Subject: x\n", "MAILER-DAEMON"),
    ];
    for (fields, sender) in senders {
        let path = at.join("one.eml");
        fs::write(&path, format!("{fields}To: x\n\nbody\n")).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let then = UNIX_EPOCH + Duration::from_secs(1_672_671_845);
        file.set_times(FileTimes::new().set_modified(then)).unwrap();
        let output = convert(at, "one.eml --output-format mbox --output -");
        let out = String::from_utf8(output.stdout).unwrap();
        let line = out.lines().next().unwrap_or_default();
        assert_eq!(
            line,
            format!("From {sender} Mon Jan  2 15:04:05 2023"),
            "{fields}"
        );
    }
}

/// Returns random mails that are difficult for an mbox. Their headers contain no `From ` lines, which an mbox cannot preserve.
fn mails(numbers: &mut Numbers, count: usize) -> Vec<Vec<u8>> {
    const LINES: [&str; 12] = [
        "From here on",
        "From a@b.example Thu Jan  1 00:00:00 1970",
        ">From a",
        ">>From b",
        ">>>>From ",
        "Subject: x",
        "",
        "",
        " From",
        "text",
        "> From",
        "--b",
    ];
    let pick =
        |numbers: &mut Numbers, most: usize| usize::try_from(numbers.below(most as u64)).unwrap();
    (0..count)
        .map(|number| {
            let newline = if pick(numbers, 3) == 0 { "\r\n" } else { "\n" };
            let mut mail = String::new();
            for field in 0..pick(numbers, 3) {
                mail += &format!("X-{field}: y{newline}");
            }
            mail += ["", "", "Status: RO", "Status: O", "X-Mozilla-Status: 0001"][pick(numbers, 5)];
            if !mail.is_empty() && !mail.ends_with('\n') {
                mail += newline;
            }
            mail += &format!("Subject: {number}{newline}{newline}");
            for _ in 0..pick(numbers, 14) {
                mail += LINES[pick(numbers, LINES.len())];
                mail += newline;
            }
            mail.into_bytes()
        })
        .collect()
}

/// Returns the contents of the converted messages, in order.
fn contents(made: BTreeMap<String, Vec<u8>>) -> Vec<Vec<u8>> {
    made.into_values().collect()
}

#[test]
fn every_way_through_the_forms_and_back_gives_each_octet_of_each_mail() {
    let mut numbers = Numbers(7);
    let mut quoted = 0;
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let before = mails(&mut numbers, 30);
        fs::create_dir(path("eml")).unwrap();
        for (number, mail) in before.iter().enumerate() {
            fs::write(path("eml").join(format!("{number:03}.eml")), mail).unwrap();
        }
        let chain: [(&str, &str, Format); 6] = [
            ("eml", "1.mbox", Format::Mbox),
            ("1.mbox", "2", Format::Maildir),
            ("2", "3.mbox", Format::Mbox),
            ("3.mbox", "4", Format::Eml),
            ("4", "5", Format::Maildir),
            ("5", "6", Format::Eml),
        ];
        for (from, into, format) in chain {
            let summary = to(&path(from), &path(into), format, &Look).unwrap();
            assert_eq!(
                (summary.messages, summary.damaged),
                (30, 0),
                "round {round}, {into}"
            );
            let of_folder = || {
                let mut found = contents(files(&path(into)));
                found.sort();
                found
            };
            let mut sorted = before.clone();
            sorted.sort();
            if path(into).is_dir() {
                assert!(of_folder() == sorted, "round {round}, {into}");
            }
        }
        let mbox = fs::read(path("1.mbox")).unwrap();
        quoted += memchr::memmem::find_iter(&mbox, b"\n>>From ").count();
        // The names of the files are in the order of the mails.
        assert!(contents(files(&path("4"))) == before, "round {round}");
        let again = to(&path("1.mbox"), &path("again.mbox"), Format::Mbox, &Look).unwrap();
        assert_eq!(again.changed, 0);
        assert!(
            fs::read(path("again.mbox")).unwrap() == mbox,
            "the same form is the same octets"
        );
    }
    assert!(quoted > 100, "{quoted}");
}

#[test]
fn mbox_quoting_is_removed_and_ambiguous_lines_are_counted() {
    let body = ">From a\n>>From b\nFrom c\n";
    let mail = |body: &str| format!("From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\n{body}\n");
    let plain = "x\n".repeat(600_000);
    for (name, text, expected, unsure) in [
        // mboxo: no line shows another variant.
        ("mboxo", mail(">From a\n"), "From a\n".to_owned(), 1),
        (
            "mboxrd",
            mail(body),
            "From a\n>From b\nFrom c\n".to_owned(),
            0,
        ),
        // The line that shows the variant is after the part that is searched.
        (
            "late",
            mail(&format!("{plain}>>From b\n")),
            format!("{plain}>From b\n"),
            0,
        ),
        (
            "mboxcl2",
            [
                "a\n\nFrom q@b Thu Jan  1 00:00:00 1970\nX: y\n",
                ">From a\n",
            ]
            .map(|body| {
                format!(
                    "From a@b Thu Jan  1 00:00:00 1970\nContent-Length: {}\n\n{body}\n",
                    body.len()
                )
            })
            .concat(),
            "a\n\nFrom q@b Thu Jan  1 00:00:00 1970\nX: y\n".to_owned(),
            0,
        ),
        (
            "mmdf",
            format!("\x01\x01\x01\x01\nSubject: x\n\n{body}\x01\x01\x01\x01\n"),
            body.to_owned(),
            0,
        ),
    ] {
        let folder = folder_with(&text);
        let at = folder.path();
        let said = converted(at, "in.mbox --output-format eml --output out");
        let first = fs::read_to_string(at.join("out/00000001.eml")).unwrap();
        assert!(first.split_once("\n\n").unwrap().1 == expected, "{name}");
        assert_eq!(
            said.contains("1 line started with >From "),
            unsure == 1,
            "{name}: {said}"
        );
    }
}

#[test]
fn inserted_text_like_a_separator_never_divides_a_message() {
    const NEW: Expand = Expand("From me\n>From you\nx");
    let mail = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\n>From a\nEXPAND-ME\n\n";
    let folder = folder_with(mail);
    let path = |name: &str| folder.path().join(name);
    let plain = "Subject: x\n\nFrom a\nFrom me\n>From you\nx\n";
    to(&path("in.mbox"), &path("eml"), Format::Eml, &NEW).unwrap();
    assert_eq!(fs::read_to_string(path("eml/00000001.eml")).unwrap(), plain);
    fs::create_dir(path("one")).unwrap();
    fs::write(path("one/1.eml"), "Subject: x\n\nFrom a\nEXPAND-ME\n").unwrap();
    to(&path("one"), &path("out.mbox"), Format::Mbox, &NEW).unwrap();
    let out = fs::read_to_string(path("out.mbox")).unwrap();
    assert!(
        out.ends_with("\n\n>From a\n>From me\n>>From you\nx\n\n"),
        "{out}"
    );

    // A line that some programs treat as a separator is not removed.
    struct All;
    impl Transform for All {
        fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
            (!bytes.is_empty()).then_some(0)
        }
        fn transform(
            &self,
            message: &embody::mailbox::Message<'_>,
        ) -> Result<(embody::Edits, ()), Error> {
            let all = embody::Span::new(0, message.content.len());
            let edits = embody::Edits::of([embody::Edit::replace(all, "Subject: gone\n\n")]);
            Ok((edits.unwrap(), ()))
        }
    }
    let held = "Subject: x\n\ntext\nFrom b@c Thu Jan  1 00:00:00 1970\nmore\n";
    fs::write(
        path("in.mbox"),
        format!("From a@b Thu Jan  1 00:00:00 1970\n{held}\n"),
    )
    .unwrap();
    let summary = to(&path("in.mbox"), &path("held"), Format::Maildir, &All).unwrap();
    assert_eq!((summary.messages, summary.changed), (1, 0));
    assert_eq!(contents(files(&path("held"))), [held.as_bytes()]);
}

#[test]
fn wrong_content_length_that_could_hide_mail_is_corrected_in_an_mbox() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("in")).unwrap();
    for (name, length) in [("1.eml", "40000"), ("2.eml", "7"), ("3.eml", "")] {
        let text = format!("Subject: {name}\nContent-Length: {length}\n\nFrom a\n");
        fs::write(at.join("in").join(name), text).unwrap();
    }
    to(&at.join("in"), &at.join("out.mbox"), Format::Mbox, &Look).unwrap();
    let out = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert_eq!(
        out.matches("Content-Length: 8\n\n>From a\n\n").count(),
        3,
        "{out}"
    );
    to(&at.join("out.mbox"), &at.join("back"), Format::Eml, &Look).unwrap();
    assert_eq!(files(&at.join("back")).len(), 3);
}

#[test]
fn result_name_that_contradicts_the_format_is_refused_with_a_remedy() {
    let folder = folder_with(&noted());
    let at = folder.path();
    converted(at, "in.mbox --output-format maildir --output md");
    fs::write(at.join("one.eml"), "From: a@b\nSubject: x\n\nbody\n").unwrap();
    fs::write(
        at.join("takeout.zip"),
        zip(&[("All.mbox", noted().as_bytes())]),
    )
    .unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    let before = files(at).len();
    let rows: &[(&str, &str)] = &[
        ("md --output new.mbox", "--output-format mbox"),
        ("md --output new.mbox.gz", "--output-format mbox"),
        ("md --output new.gz", "--output-format mbox"),
        ("md --output new.eml", "name a folder"),
        ("in.mbox --output empty", "--output-format maildir"),
        ("in.mbox --output new/", "--output-format maildir"),
        ("in.mbox --output new.eml", "an mbox"),
        ("one.eml --output new.mbox", "--output-format mbox"),
        ("takeout.zip --output new.zip", "archive"),
        ("takeout.zip --output empty", "--output-format maildir"),
        (
            "in.mbox --output-format maildir --output new.mbox",
            "--output-format mbox",
        ),
        (
            "in.mbox --output-format eml --output new.mbox",
            "--output-format mbox",
        ),
        ("in.mbox --by-label --output new.mbox", "for each label"),
        (
            "md --output-format mbox --output new/",
            "--output-format maildir",
        ),
        (
            "md --output-format mbox --by-label --output -",
            "name a directory",
        ),
        (
            "in.mbox --output-format maildir --output -",
            "name a directory",
        ),
        ("md --output -", "--output-format mbox"),
        (
            "in.mbox --output-format maildir --range 0-10 --output new",
            "--range",
        ),
        ("in.mbox --by-label --range 0-10 --output new", "--range"),
        ("in.mbox --output-format maildir --in-place", "--in-place"),
        ("in.mbox --by-label --in-place", "--in-place"),
        (
            "in.mbox --output-format mmdf --output new",
            "maildir, mh, eml",
        ),
    ];
    for (arguments, way_out) in rows {
        let output = convert(at, &format!("--report rows {arguments}"));
        let said = done(&output, 2);
        assert!(said.contains(way_out), "{arguments}: {said}");
        assert_eq!(files(at).len(), before, "{arguments}");
    }
    // A value must follow `=`. Otherwise the word is a source.
    let said = done(&convert(at, "in.mbox --by-label first --output new"), 1);
    assert!(said.contains("cannot read first"), "{said}");
    // The other commands for mailboxes have these options, and refuse the same arguments. No store is created.
    let refused = ["detach", "--store", "store", "md", "--output", "new.mbox"];
    done(&embody_in(at, &refused), 2);
    assert!(!at.join("store").exists());
    done(
        &embody_in(at, &["restore", "--store", "x", "--output-format", "mbox"]),
        75,
    );
}

#[test]
fn nothing_that_is_there_is_overwritten_and_what_is_made_appears_whole() {
    let folder = folder_with(&noted());
    let at = folder.path();
    let maildir = |name: &str| {
        convert(
            at,
            &format!("in.mbox --output-format maildir --output {name}"),
        )
    };
    fs::create_dir_all(at.join("there/x")).unwrap();
    fs::create_dir(at.join("empty")).unwrap();
    std::os::unix::fs::symlink("empty", at.join("link")).unwrap();
    for name in ["there", "in.mbox", "link"] {
        let said = done(&maildir(name), if name == "in.mbox" { 2 } else { 1 });
        assert!(
            said.contains("already exists") || name == "in.mbox",
            "{said}"
        );
    }
    done(&maildir("empty"), 0);
    assert!(at.join("empty/cur").is_dir() && !at.join("there/cur").exists());
    // After a failed write, no file remains, complete or hidden.
    let before: Vec<String> = files(at).into_keys().collect();
    for format in ["maildir", "eml", "mbox"] {
        let mut limited = Command::new("sh");
        let line = "ulimit -f 1; exec \"$0\" convert in.mbox large.eml --by-label --output-format $1 --output new";
        fs::write(
            at.join("large.eml"),
            format!("Subject: x\n\n{}", "x".repeat(4096)),
        )
        .unwrap();
        limited
            .args(["-c", line])
            .arg(embody().get_program())
            .arg(format)
            .current_dir(at);
        let output = limited.output().unwrap();
        let said = stderr(&output);
        assert_ne!(output.status.code(), Some(0), "{said}");
        fs::remove_file(at.join("large.eml")).unwrap();
        assert!(!at.join("new/large").exists() && !at.join("new/large.eml").exists());
        let _ = fs::remove_dir_all(at.join("new"));
        // If a source was converted completely, the next run would continue after it.
        let kept = at.join("new.embody-resume");
        let advice = "new.embody-resume lists the files that are complete";
        assert_eq!(said.contains(advice), kept.exists(), "{said}");
        let _ = fs::remove_dir_all(kept);
        assert!(files(at).into_keys().eq(before.iter().cloned()), "{format}");
    }
    let hidden = fs::read_dir(at).unwrap().filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".embody-")
    });
    assert_eq!(hidden.count(), 0);
}

#[test]
fn mailboxes_stay_separate_and_those_already_in_the_format_are_copied() {
    let folder = folder_with("");
    let at = folder.path();
    let text = "From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\n>From x\n\n";
    for name in [
        "all/a.mbox",
        "all/sub/b",
        "all/sub/1.eml",
        "all/2.eml",
        "all/md/.Sent.old/cur/1:2,S",
    ] {
        fs::create_dir_all(at.join(name).parent().unwrap()).unwrap();
        let is_mail = name.contains(".eml") || name.contains("cur");
        fs::write(
            at.join(name),
            if is_mail { "Subject: y\n\nb\n" } else { text },
        )
        .unwrap();
    }
    for part in ["cur", "new", "tmp", ".Sent.old/new"] {
        fs::create_dir_all(at.join("all/md").join(part)).unwrap();
    }
    let to = |format: &str| {
        converted(
            at,
            &format!("all --output-format {format} --output {format}"),
        );
        files(&at.join(format))
    };
    let mbox = to("mbox");
    let names: Vec<&str> = mbox.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "INBOX.mbox",
            "a.mbox",
            "md.mbox",
            "md/Sent.old.mbox",
            "sub.mbox",
            "sub/b"
        ]
    );
    assert_eq!(
        (&mbox["a.mbox"][..], &mbox["md.mbox"][..]),
        (text.as_bytes(), &b""[..])
    );
    let maildir = to("maildir");
    assert_eq!(maildir["md/.Sent.old/cur/1:2,S"], b"Subject: y\n\nb\n");
    assert!(at.join("maildir/a/new").is_dir() && at.join("maildir/sub/b/cur").is_dir());
    let eml = to("eml");
    assert_eq!(eml["2.eml"], b"Subject: y\n\nb\n");
    assert_eq!(eml["a/00000001.eml"], b"Subject: x\n\nFrom x\n");
    assert!(eml.contains_key("md/Sent.old/00000001.eml"));
    // Several sources, and one from a pipe.
    fs::create_dir(at.join("several")).unwrap();
    converted(
        at,
        "all/a.mbox all/sub --output-format maildir --output several",
    );
    assert!(at.join("several/a/new").is_dir() && at.join("several/sub/b/new").is_dir());
    let mut piped = embody();
    piped.current_dir(at).args([
        "convert",
        "-",
        "--output-format",
        "eml",
        "--output",
        "piped",
    ]);
    done(&fed(&mut piped, text.as_bytes()), 0);
    assert_eq!(
        files(&at.join("piped"))["00000001.eml"],
        b"Subject: x\n\nFrom x\n"
    );
    // A directory of messages as one mbox, to standard output, compressed, and in a dry run.
    let out = convert(at, "all/md/.Sent.old --output-format mbox --output -");
    assert!(
        out.stdout.ends_with(b"\nSubject: y\nStatus: RO\n\nb\n\n"),
        "{}",
        stderr(&out)
    );
    converted(
        at,
        "all/md/.Sent.old --output-format mbox --output x.mbox.gz",
    );
    assert!(
        fs::read(at.join("x.mbox.gz"))
            .unwrap()
            .starts_with(b"\x1f\x8b")
    );
    let said = converted(at, "all --output-format eml --dry-run --output dry");
    assert!(
        said.contains("5 messages") && !at.join("dry").exists(),
        "{said}"
    );
}

#[test]
fn a_message_that_cannot_come_along_is_named_and_the_others_do() {
    let folder = folder_with("");
    let at = folder.path();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(at.join("md").join(part)).unwrap();
    }
    fs::write(at.join("md/cur/1:2,S"), "Subject: a\n\nb\n").unwrap();
    fs::write(
        at.join("md/cur/2:2,S"),
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03damaged",
    )
    .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at.join("md/cur/3:2,S")).unwrap();
    let said = done(&convert(at, "md --output-format mbox --output out.mbox"), 1);
    assert!(
        said.contains("md/cur/2:2,S")
            && said.contains("the message was not written")
            && said.contains("md/cur/3"),
        "{said}"
    );
    let out = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert!(
        out.matches("\nSubject: ").count() == 1 && !out.contains("root:"),
        "{out}"
    );

    let large = format!(
        "From a@b Thu Jan  1 00:00:00 1970\nSubject: l\n\n{}\n\n",
        "x\n".repeat(300_000)
    );
    let small = "From a@b Thu Jan  1 00:00:00 1970\nSubject: s\n\nb\n\n";
    fs::write(at.join("in.mbox"), [small, &large, small].concat()).unwrap();
    let options = Options {
        read: ReadOptions {
            max_message: 256 << 10,
            ..ReadOptions::default()
        },
        output_format: Format::Eml,
        ..Options::default()
    };
    let made = Conversion::of(&at.join("in.mbox"))
        .to(&at.join("eml"))
        .options(&options)
        .run(&Look, &())
        .unwrap();
    assert_eq!((made.messages, made.oversized, made.damaged), (3, 1, 1));
    assert_eq!(contents(files(&at.join("eml"))), [b"Subject: s\n\nb\n"; 2]);
}

#[test]
fn mmdf_as_the_format_of_a_result_is_refused_before_mail_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in.mbox"), "From a@b x\nSubject: s\n\nb\n").unwrap();
    let error = to(&at.join("in.mbox"), &at.join("out"), Format::Mmdf, &Look);
    assert!(matches!(error, Err(Error::Usage(_))), "{error:?}");
    assert_eq!(files(at).len(), 1);
}

#[test]
fn a_run_that_is_stopped_leaves_nothing_and_what_another_is_filling_is_no_mail() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut child = embody()
        .current_dir(at)
        .args([
            "convert",
            "-",
            "--output-format",
            "maildir",
            "--output",
            "md",
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // The input is larger than the buffers of the program.
    input.write_all(noted().repeat(800).as_bytes()).unwrap();
    let filling = || {
        let entry = fs::read_dir(at).unwrap().next()?.unwrap();
        Some(entry.file_name().into_string().unwrap())
    };
    let begun = Instant::now();
    let hidden = loop {
        if let Some(name) = filling() {
            break name;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "nothing was begun"
        );
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(hidden.starts_with(".embody-"), "{hidden}");
    // The directory contains mail, but is skipped.
    fs::write(at.join("1.eml"), "Subject: x\nFrom: a@b\n\nb\n").unwrap();
    let copied = convert(at, ". --output ../copied --dry-run");
    assert!(
        done(&copied, 0).contains(" 1 message"),
        "{}",
        stderr(&copied)
    );
    fs::remove_file(at.join("1.eml")).unwrap();
    signalled(child.id(), "INT");
    assert_eq!(ended(&mut child).code(), Some(130));
    drop(input);
    assert_eq!(fs::read_dir(at).unwrap().count(), 0);
}

const PYTHON: &str = "
import mailbox, sys
kind, path = sys.argv[1:]
box = mailbox.Maildir(path, create=False) if kind == 'maildir' else mailbox.mbox(path, create=False)
rows = []
for message in box:
    flags = set(message.get_flags())
    if kind == 'maildir':
        seen, old = 'S' in flags, message.get_subdir() == 'cur'
        flagged, replied, trashed = 'F' in flags, 'R' in flags, 'T' in flags
    else:
        seen, old = 'R' in flags, 'O' in flags
        flagged, replied, trashed = 'F' in flags, 'A' in flags, 'D' in flags
    rows.append((int(message['Subject']), seen, flagged, replied, trashed, message.get_payload().strip()))
for row in sorted(rows):
    print(row)
";

fn seen_by_python(kind: &str, path: &Path) -> String {
    let output = Command::new("python3")
        .args(["-c", PYTHON, kind])
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns mails whose flags are only in Status fields, which Python supports.
fn of_others() -> (TempDir, String) {
    let text: String = NOTED[..4]
        .iter()
        .enumerate()
        .map(|(number, (fields, _))| {
            format!(
                "From a@b.example Thu Jan  1 00:{number:02}:00 1970\n{fields}Subject: {number}\nMessage-ID: <{number}@b.example>\n\nbody {number}\n>From {number}\n\n"
            )
        })
        .collect();
    (folder_with(&text), text)
}

#[test]
fn python_sees_the_same_mails_and_flags_in_mbox_and_maildir() {
    if program("python3").is_none() {
        return skipped(
            "python_sees_the_same_mails_and_flags_in_mbox_and_maildir",
            "python3",
        );
    }
    let (folder, _) = of_others();
    let at = folder.path();
    there_and_back(at);
    let before = seen_by_python("mbox", &at.join("in.mbox"));
    assert_eq!(before.lines().count(), 4);
    let plain = before.replace(">From", "From");
    assert_eq!(seen_by_python("maildir", &at.join("md")), plain);
    assert_eq!(seen_by_python("mbox", &at.join("out.mbox")), before);
}

#[test]
fn dovecot_sees_the_same_mails_flags_and_dates_in_mbox_and_maildir() {
    let test = "dovecot_sees_the_same_mails_flags_and_dates_in_mbox_and_maildir";
    if program("doveadm").is_none() {
        return skipped(test, "doveadm");
    }
    let (folder, _) = of_others();
    let at: PathBuf = folder.path().into();
    there_and_back(&at);
    let says = |location: String| {
        let said = dovecot_says(
            &at,
            &location,
            "hdr.message-id flags date.received.unixtime",
        )
        .unwrap();
        // The flag \Recent is not a property of the mail.
        let lasting: Vec<String> = said
            .iter()
            .map(|line| line.replace("\\Recent", "").trim().to_owned())
            .collect();
        let mut mails: Vec<Vec<String>> = lasting.chunks(3).map(<[String]>::to_vec).collect();
        mails.sort();
        mails
    };
    let root = at.join("root");
    fs::create_dir(&root).unwrap();
    let maildir = says(format!("maildir:{}", at.join("md").display()));
    assert_eq!(maildir.len(), 4, "{maildir:?}");
    assert_eq!(
        maildir[3][1],
        "flags: \\Answered \\Flagged \\Deleted \\Seen \\Draft"
    );
    let mbox = says(format!(
        "mbox:{}:INBOX={}",
        root.display(),
        at.join("out.mbox").display()
    ));
    let without_date = |mails: &[Vec<String>]| {
        mails
            .iter()
            .map(|mail| mail[..2].to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(without_date(&mbox), without_date(&maildir));
    let dates: Vec<&str> = maildir
        .iter()
        .map(|mail| mail[2].rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(dates, ["0", "60", "120", "180"]);
}

#[test]
fn mutt_sees_every_mail_in_mbox_and_maildir() {
    let test = "mutt_sees_every_mail_in_mbox_and_maildir";
    if program("mutt").is_none() || program("script").is_none() {
        return skipped(test, "mutt");
    }
    for format in ["maildir", "mbox"] {
        let folder = folder_with(&noted());
        let at = folder.path();
        converted(at, "in.mbox --output-format maildir --output md");
        converted(at, &format!("md --output-format {format} --output box"));
        assert_eq!(counted_by_mutt_in(at), NOTED.len(), "{format}");
    }
}
