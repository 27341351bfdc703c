//! No reader of a mailbox loses a message, in whatever way it divides the mailbox: docs/mailbox-internals.md.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::bounded::ended;
use crate::common::mailboxes::{Look, MARK, in_place, to};
use crate::common::programs::{embody, fed, program, skipped};
use embody::mailbox::{Message, Transform};
use embody::{Edit, Edits, Error, Span};
use memchr::memmem;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

const DATE: &str = "Mon Jan  1 10:00:00 2024";

/// Returns the mailbox after `embody convert --in-place`, and the text on standard error.
fn converted(bytes: &[u8]) -> (Vec<u8>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, bytes).unwrap();
    let output = embody()
        .args(["convert", "--verbose", "--in-place"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (fs::read(&path).unwrap(), said)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const REFERENCE: &str =
    "Content-Type: message/external-body; access-type=URL;\n URL=\"data:text/plain,hello%0A\"\n";
const EXPANDED: &str = "Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n";

#[test]
fn a_from_field_with_a_blank_before_its_colon_is_no_separator() {
    let mail = |id: u8| {
        format!(
            "Message-ID: <{id}@b>\nFrom : Ann <ann@example.org>\nTo: b\nSubject: {id}\n\ntext\n"
        )
    };
    let first = "From : Ann <ann@example.org>\nTo: b\nSubject: 3\n\ntext\n";
    let folder = tempfile::tempdir().unwrap();
    let mbox = [1, 2]
        .map(|id| format!("From a@b {DATE}\n{}\n", mail(id)))
        .concat();
    for (name, content) in [("two.mbox", mbox.as_str()), ("first.eml", first)] {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let to = folder.path().join(format!("{name}.d"));
        let output = embody()
            .args(["convert", "--output-format", "eml", "--output"])
            .args([&to, &path])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let files = if to.is_dir() {
            fs::read_dir(&to)
                .unwrap()
                .map(|it| it.unwrap().path())
                .collect()
        } else {
            vec![to]
        };
        let mut mails: Vec<String> = files
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        mails.sort_by_key(|mail| mail.split("Subject: ").nth(1).unwrap().to_owned());
        match name {
            "two.mbox" => assert_eq!(mails, [mail(1), mail(2)]),
            _ => assert_eq!(mails, [first]),
        }
    }
    assert_eq!(text(&converted(mbox.as_bytes()).0), mbox);
    assert_eq!(text(&converted(first.as_bytes()).0), first);
}

#[test]
fn a_separator_without_an_empty_line_before_it_ends_the_message() {
    let message = |subject: &str, behind: &str| {
        format!("From - {DATE}\nSubject: {subject}\nMIME-Version: 1.0\n{behind}")
    };
    let others = format!(
        "{}{}",
        message("two", "\nan important one\n"),
        message("three", "\nand another\n")
    );
    let before = format!(
        "{}\nContent-Type: text/plain\n\nphantom\n{others}",
        message("one", REFERENCE)
    );
    let expected = format!("{}\nhello\n{others}", message("one", EXPANDED));
    assert_eq!(text(&converted(before.as_bytes()).0), expected);
}

#[test]
fn message_with_an_ambiguous_from_line_is_unchanged_and_reported() {
    // No header field follows, so the line is text to embody. Dovecot, mutt and Python treat it as a separator.
    for line in [
        format!("From - {DATE}\nplain text\n"),
        "From here on\n".to_owned(),
    ] {
        let before = format!(
            "From - {DATE}\nSubject: one\n{REFERENCE}\nContent-Type: text/plain\n\nphantom\n{line}"
        );
        let (after, said) = converted(before.as_bytes());
        assert_eq!(text(&after), before);
        assert!(said.contains("the message was not changed"), "{said}");
        assert!(
            said.contains("0 changed.\n0 attachments put into the mail. 1 could not be: "),
            "{said}"
        );
        assert!(said.contains("unchanged: holds-separator"), "{said}");
    }
}

#[test]
fn messages_after_a_first_message_without_a_separator_are_not_lost() {
    let others = format!("From - {DATE}\nSubject: two\n\nwhat nobody may lose\n");
    // The remains of a first separator.
    for front in ["", ">From - x\n", "\u{feff}", " - x\n", "- x\n"] {
        let message = |behind: &str| {
            format!(
                "{front}Subject: one\nFrom: a@b\nMIME-Version: 1.0\n{REFERENCE}\nContent-Type: text/plain\n\nphantom\n{behind}"
            )
        };
        let before = message(&others);
        let (after, said) = converted(before.as_bytes());
        assert_eq!(text(&after), before, "{said}");
        assert!(
            said.contains("1 message read, 0 changed"),
            "{front:?}: {said}"
        );
        let output = fed(
            embody().args(["convert", "-", "--output", "-"]),
            before.as_bytes(),
        );
        assert_eq!(text(&output.stdout), before);
        // Text that only begins like a separator belongs to the message.
        let (after, said) = converted(message("From here on\n").as_bytes());
        let has_header = front != "- x\n";
        assert_eq!(
            text(&after).ends_with("\n\nhello\n"),
            has_header,
            "{front:?}: {said}"
        );
    }
}

#[test]
fn a_dry_run_says_what_is_left_for_a_separator() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    let mail = format!(
        "From - {DATE}\nSubject: one\n{REFERENCE}\nContent-Type: text/plain\n\nphantom\nFrom here on\n"
    );
    fs::write(&path, mail).unwrap();
    let output = embody()
        .args(["convert", "--in-place", "--dry-run"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("1 where a \"From \" line may be the start of another message"),
        "{said}"
    );
    assert!(said.contains("0 attachments would be put"), "{said}");
}

#[test]
fn a_guessed_content_length_takes_in_no_other_message() {
    let hostile = |length: usize| {
        format!(
            "From a@x {DATE}\nSubject: hi\nContent-Length: {length:08}\nContent-Type: \
             message/external-body; access-type=URL; URL=\"data:,hi\"\n\nContent-Type: text/plain\n\nx\n\n"
        )
    };
    let victim =
        format!("From v@x {DATE}\nFrom: v@x\nSubject: precious\n\nwhat nobody may lose\n\n");
    let body = hostile(0).find("\n\n").unwrap() + 2;
    let counted =
        |subject: &str| format!("From a@x {DATE}\nSubject: {subject}\nContent-Length: 2\n\nx\n\n");
    for (before, last) in [
        (
            String::new(),
            format!("From a@x {DATE}\nSubject: last\n\nlast\n\n"),
        ),
        // The same if all lengths in the mailbox look correct.
        (String::new(), counted("last")),
        (counted("first"), counted("last")),
        (counted("first"), String::new()),
    ] {
        let length = hostile(0).len() - body + victim.len() - 1;
        let mailbox = format!("{before}{}{victim}{last}", hostile(length));
        let (after, said) = converted(mailbox.as_bytes());
        let after = text(&after);
        assert!(after.contains(&victim), "{said}\n{after}");
        assert!(after.ends_with(&last) && after.starts_with(&before));
    }
}

#[test]
fn mboxcl2_is_detected_by_unquoted_separators_inside_a_content_length() {
    for quoted in [
        ">From the archive",
        "> From the archive",
        ">>From the archive",
    ] {
        let body = format!("> quoted:\n{quoted}\n\nFrom x@y.example {DATE}\nthis is body text\n");
        let first = format!(
            "From u@example.org {DATE}\nSubject: 1\nContent-Length: {}\n\n{body}\n",
            body.len()
        );
        let second = |fields: &str, body: &str| {
            let length = body.len();
            format!(
                "From u@example.org {DATE}\nSubject: 2\nMIME-Version: 1.0\n{fields}Content-Length: {length}\n\n{body}\n"
            )
        };
        let reference = REFERENCE.replace("hello", "From%20here%20on");
        let before = first.clone() + &second(&reference, "Content-Type: text/plain\n\n");
        let expected = first + &second(EXPANDED, "From here on\n");
        let (after, said) = converted(before.as_bytes());
        assert_eq!(text(&after), expected, "{said}");
        assert_eq!(converted(&after).0, after);
    }
}

#[test]
fn header_of_repeated_length_fields_takes_linear_time() {
    for field in ["Lines: 3\n", "Content-Length: 3\n"] {
        let many = field.repeat(4_000_000 / field.len());
        let mailbox = format!(
            "From a@b {DATE}\n{many}{REFERENCE}\nContent-Type: text/plain\n\n{}",
            "x\n".repeat(500_000)
        );
        let start = Instant::now();
        let (after, said) = converted(mailbox.as_bytes());
        assert!(start.elapsed() < Duration::from_secs(30), "{field}");
        assert!(said.contains("1 attachment put into the mail"), "{said}");
        assert_ne!(after, mailbox.as_bytes());
    }
}

/// A transformation that replaces the text between two marks, or only the mark if it is the last one.
struct Swallow(String);

impl Transform for Swallow {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        memmem::find(bytes, MARK)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        let marks: Vec<usize> = memmem::find_iter(message.content, MARK).collect();
        let edits = marks.chunks(2).map(|pair| {
            let span = Span::new(pair[0], pair[pair.len() - 1] + MARK.len());
            Edit::replace(span, self.0.as_bytes())
        });
        let edits = Edits::of(edits).expect("marks do not overlap");
        Ok((edits, ()))
    }
}

/// Returns a mailbox with `From ` lines, false lengths and marks at any position, and the text to insert.
fn mailboxes() -> impl Strategy<Value = (Vec<u8>, String)> {
    let piece = prop_oneof![
        4 => Just(format!("From a@b {DATE}\n")),
        4 => Just(format!("\nFrom a@b {DATE}\nSubject: x\n\n")),
        2 => Just(format!("From - {DATE}\nSubject: y\n")),
        1 => Just("From here on\nwe walk\n".to_owned()),
        1 => Just("From x\nSubject: y\n".to_owned()),
        1 => Just(format!(">From z {DATE}\n")),
        1 => Just(">>From z\n".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        2 => Just("text\n".to_owned()),
        4 => Just("EXPAND-ME".to_owned()),
        4 => Just("EXPAND-ME\n".to_owned()),
        3 => (0_usize..400).prop_map(|n| format!("Content-Length: {n}\n\n")),
        3 => "[a-z]{0,20}\n".prop_map(|body| format!(
            "\nFrom c@d {DATE}\nContent-Length: {}\n\n{body}", body.len()
        )),
    ];
    let new = "(a|>|From |\n|\r\n|From a@b Thu Jan  1 00:00:00 2024\n|Subject: x\n){0,6}";
    (
        proptest::collection::vec(piece, 1..40)
            .prop_map(|all| format!("From a@b {DATE}\n{}", all.concat()).into_bytes()),
        new,
    )
}

/// Returns the messages as Python divides the mailbox, without the fields for lengths.
fn as_python_divides(mailbox: &[u8]) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for line in mailbox.split_inclusive(|&byte| byte == b'\n') {
        if line.starts_with(b"From ") || messages.is_empty() {
            messages.push(Vec::new());
        }
        let counts = line.starts_with(b"Content-Length:");
        if let Some(message) = messages.last_mut().filter(|_| !counts) {
            message.extend_from_slice(line);
        }
    }
    messages
}

/// Returns the number of messages that embody finds.
fn messages_in(mailbox: &[u8]) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mailbox).unwrap();
    in_place(&path, &Look).unwrap().messages
}

/// Returns the mailbox after a run.
fn swallowed(mailbox: &[u8], with: &Swallow) -> Vec<u8> {
    // A run in place would wait for the disk each time.
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&source, mailbox).unwrap();
    to(&source, &out, with).unwrap();
    fs::read(out).unwrap()
}

#[test]
fn message_that_gains_a_header_after_an_empty_one_stays_separate() {
    let line = format!("From a@b {DATE}\n");
    let before = format!("{line}{line}>From z {DATE}\nEXPAND-ME");
    assert_eq!(messages_in(before.as_bytes()), 2);
    let after = swallowed(before.as_bytes(), &Swallow("Subject: x\n".to_owned()));
    assert_eq!(messages_in(&after), 2, "{}", after.escape_ascii());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn other_messages_survive_however_a_reader_divides_the_mailbox((mailbox, new) in mailboxes()) {
        let after = swallowed(&mailbox, &Swallow(new));
        let after_messages = as_python_divides(&after);
        let mut rest = after_messages.iter();
        for message in as_python_divides(&mailbox) {
            if memmem::find(&message, MARK).is_none() {
                prop_assert!(
                    rest.any(|other| *other == message),
                    "{:?}\nis gone from\n{:?}\nin\n{:?}",
                    message.escape_ascii().to_string(),
                    mailbox.escape_ascii().to_string(),
                    after.escape_ascii().to_string()
                );
            }
        }
        // For embody, the inserted text adds no separator. (The wrong length of an earlier message may become correct by
        // chance.)
        if memmem::find(&mailbox, b"Content-Length").is_none() {
            prop_assert_eq!(messages_in(&mailbox), messages_in(&after), "{}", mailbox.escape_ascii());
        }
    }
}

/// Python itself finds all messages without a mark in the same order before and after the run.
#[test]
fn python_sees_the_same_other_messages_before_and_after() {
    const CHECK: &str = r#"
import mailbox, pathlib, re, sys
def messages(path):
    return [re.sub(rb"(?m)^Content-Length:.*\n", b"", box.get_bytes(key, from_=True))
            for box in [mailbox.mbox(path)] for key in box.keys()]
checked = 0
for before in sorted(pathlib.Path(sys.argv[1]).glob("*.before")):
    rest = iter(messages(before.with_suffix(".after")))
    for message in messages(before):
        if b"EXPAND-ME" not in message:
            if not any(message == other for other in rest):
                sys.exit(f"{before.read_bytes()!r}: {message!r} is gone from {before.with_suffix('.after').read_bytes()!r}")
            checked += 1
print(checked)
"#;
    if program("python3").is_none() {
        return skipped(
            "python_sees_the_same_other_messages_before_and_after",
            "python3",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let mut runner = TestRunner::deterministic();
    let strategy = mailboxes();
    for number in 0..300 {
        let (mailbox, new) = strategy.new_tree(&mut runner).unwrap().current();
        let after = swallowed(&mailbox, &Swallow(new));
        fs::write(folder.path().join(format!("{number}.before")), mailbox).unwrap();
        fs::write(folder.path().join(format!("{number}.after")), after).unwrap();
    }
    let output = Command::new("python3")
        .args(["-c", CHECK])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let checked: usize = text(&output.stdout).trim().parse().unwrap();
    assert!(checked > 1000, "only {checked} messages");
}

/// Returns three messages with attachments as Thunderbird writes them, without empty lines between them.
fn with_separators(separator: &str, between: &str) -> String {
    let message = |number: usize| {
        format!(
            "{separator}\nDelivered-To: sue@example.org\nFrom: tom@example.org\nSubject: m{number}\n\
             Date: Mon, {number} Jan 2024 10:00:00 +0000\nMIME-Version: 1.0\n\
             Content-Type: multipart/mixed; boundary=b\n\n--b\n\nText {number}\n--b\n\
             Content-Type: application/pdf\nContent-Disposition: attachment; filename=a{number}.pdf\n\
             Content-Transfer-Encoding: base64\n\n{}--b--\n",
            "AAAA\n".repeat(1000 + number)
        )
    };
    (1..4).map(|number| message(number) + between).collect()
}

#[test]
fn odd_separators_between_mails_divide_in_every_command() {
    let own = format!("From tom@example.org {DATE}");
    let twice = format!("{own}\nFrom - {DATE}");
    let thrice = format!("{own}\nFrom - \n>From sue@example.org {DATE}");
    for separator in [
        twice.as_str(),
        thrice.as_str(),
        "From ",
        "From - ",
        "From tom@example.org",
        "From tom@example.org 2024-01-01T10:00:00Z",
        "From Mo Okt 16 23:18:56 2023",
    ] {
        for between in ["", "\n"] {
            for newline in ["\n", "\r\n"] {
                let mailbox = with_separators(separator, between).replace('\n', newline);
                let folder = tempfile::tempdir().unwrap();
                let at = folder.path();
                fs::write(at.join("box"), &mailbox).unwrap();
                let run = |arguments: &[&str]| {
                    let output = embody().args(arguments).current_dir(at).output().unwrap();
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    assert!(output.status.success(), "{separator:?}: {said}");
                    said
                };
                run(&[
                    "convert",
                    "box",
                    "--output-format",
                    "eml",
                    "--output",
                    "eml",
                ]);
                let mut texts: Vec<String> = fs::read_dir(at.join("eml"))
                    .unwrap()
                    .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
                    .collect();
                texts.sort_by_key(|text| text.find("m1").is_none());
                assert_eq!(texts.len(), 3, "{separator:?}");
                let whole: usize = texts.iter().map(String::len).sum();
                let separator_lines = format!("{separator}\n{between}").replace('\n', newline);
                let lines = 3 * separator_lines.len();
                assert_eq!(whole + lines, mailbox.len(), "{separator:?}");
                let said = run(&[
                    "detach",
                    "--larger-than",
                    "1k",
                    "--store",
                    "store",
                    "box",
                    "--in-place",
                ]);
                assert!(
                    said.contains("3 attachments moved"),
                    "{separator:?}: {said}"
                );
                run(&["restore", "--store", "store", "box", "--in-place"]);
                assert_eq!(fs::read_to_string(at.join("box")).unwrap(), mailbox);
            }
        }
    }
}

/// Some programs import a mailbox and write their own separator before messages that already have one.
#[test]
fn second_separator_before_a_header_belongs_to_the_message_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run = |arguments: &[&str]| {
        let output = embody().args(arguments).current_dir(at).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
    };
    let message = |number: usize| {
        format!(
            "X-Mozilla-Status: 0003\nX-Mozilla-Status2: 00000000\nFrom: lea@example.org\n\
             Subject: m{number}\n{REFERENCE}\nContent-Type: text/plain\n\nphantom\n"
        )
    };
    let first = format!("From lea@example.org {DATE}\n");
    for second in [
        format!("From - {DATE}\n"),
        "From - \n".to_owned(),
        "From \n".to_owned(),
        "From the desk of Lea\n".to_owned(),
        format!("From - {DATE}\nFrom max@example.org {DATE}\n"),
        format!(">From - {DATE}\nFrom - \n"),
    ] {
        for between in ["", "\n"] {
            for newline in ["\n", "\r\n", "\r"] {
                let messages = [1, 2].map(|number| {
                    let message = message(number);
                    format!("{first}{second}{message}{between}").replace('\n', newline)
                });
                let mailbox = messages.concat();
                let case = format!("{second:?} {between:?} {newline:?}");
                fs::write(at.join("box"), &mailbox).unwrap();
                assert_eq!(messages_in(mailbox.as_bytes()), 2, "{case}");

                // From mbox to mbox, each byte is kept, for any division into ranges.
                let reference = REFERENCE.replace('\n', newline);
                let plain = mailbox.replace(&reference, "");
                fs::write(at.join("plain"), &plain).unwrap();
                let second_line = newline.len() + first.len() - 1;
                let one = plain.len() / 2;
                for cut in [second_line, one, one + second_line, one + second_line + 1] {
                    let (until, from) = (format!("0-{cut}"), format!("{cut}-"));
                    run(&["convert", "plain", "--range", &until, "--output", "a"]);
                    run(&["convert", "plain", "--range", &from, "--output", "b"]);
                    let read = |name: &str| fs::read_to_string(at.join(name)).unwrap();
                    let (front, rest) = (read("a"), read("b"));
                    assert_eq!(front.clone() + &rest, plain, "{case}");
                    let whole = if cut > one { plain.len() } else { one };
                    assert_eq!(front.len(), whole, "{case}");
                    for part in ["a", "b"] {
                        fs::remove_file(at.join(part)).unwrap();
                    }
                }

                // In place, the lines are kept.
                let (after, said) = converted(mailbox.as_bytes());
                let after = text(&after);
                assert!(
                    said.contains("2 attachments put into the mail"),
                    "{case}: {said}"
                );
                for number in [1, 2] {
                    let start =
                        format!("{first}{second}X-Mozilla-Status: 0003\n").replace('\n', newline);
                    let places: Vec<usize> = after.match_indices(&start).map(|it| it.0).collect();
                    assert_eq!(places.len(), 2, "{case}: {after}");
                    assert!(after[places[number - 1]..].contains(&format!("Subject: m{number}")));
                }
                assert_eq!(messages_in(after.as_bytes()), 2, "{case}");

                // In a Maildir, both lines are removed, and the flags are those in the fields after them.
                run(&[
                    "convert",
                    "box",
                    "--output-format",
                    "maildir",
                    "--output",
                    "dir",
                ]);
                let entries = fs::read_dir(at.join("dir/cur")).unwrap();
                let mut files = 0;
                for entry in entries {
                    let path = entry.unwrap().path();
                    assert!(
                        path.to_str().unwrap().ends_with(":2,RS"),
                        "{case}: {path:?}"
                    );
                    let mail = fs::read_to_string(path).unwrap();
                    assert!(mail.starts_with("X-Mozilla-Status: 0003"), "{case}: {mail}");
                    files += 1;
                }
                assert_eq!(files, 2, "{case}");
                assert_eq!(fs::read_dir(at.join("dir/new")).unwrap().count(), 0);
                fs::remove_dir_all(at.join("dir")).unwrap();
            }
        }
    }
}

#[test]
fn text_that_starts_with_from_stays_in_its_message_with_its_line() {
    for text in [
        "From the minutes of our last meeting\nPresent: Anna\nExcused: Dan\n",
        "From 10:30 on we meet in the hall,\nplease be there.\n",
        "From 10:30 on we meet in the hall.\nNote: bring tea\n",
        "From Fri 10:30 the shop is closed.\n",
        "From 49.5 EUR\nWeb: www.example.org\n",
        "From a reader:<br>\nQ: how?\n",
        "From now on you can reach your page at\nhttps://www.example.org/page\n",
        "From home\nTel: 1234\n",
        "From Monday, 9:00, Mark decides\nwho comes\n",
        "From Subject to object:\nSubject: I\nObject: me\n",
    ] {
        for before in ["", "\n"] {
            for newline in ["\n", "\r\n"] {
                let body = format!("Hello,\n{before}{text}\nBye\n").replace('\n', newline);
                let second = format!("From c@d {DATE}\nSubject: 2\n\nx\n").replace('\n', newline);
                let header = format!("From a@b {DATE}\nSubject: 1\nDate: x\n\n");
                let first = header.replace('\n', newline) + &body;
                let mailbox = format!("{first}{newline}{second}");
                assert_eq!(messages_in(mailbox.as_bytes()), 2, "{text:?}");
                let folder = tempfile::tempdir().unwrap();
                fs::write(folder.path().join("box"), &mailbox).unwrap();
                let output = embody()
                    .args([
                        "convert",
                        "box",
                        "--output-format",
                        "eml",
                        "--output",
                        "eml",
                    ])
                    .current_dir(folder.path())
                    .output()
                    .unwrap();
                assert!(output.status.success());
                let mail = fs::read_to_string(folder.path().join("eml/00000001.eml")).unwrap();
                assert!(mail.ends_with(&body), "{mail:?}");
            }
        }
    }
}

#[test]
fn separator_before_an_overlong_header_starts_a_message() {
    let long = format!("X-Long: {}\n", "x".repeat(100)).repeat(40);
    for behind in [long.clone(), format!("X-Long: {}\n", "x\n ".repeat(2000))] {
        let first = format!("From a@b {DATE}\nSubject: 1\n\nbody\n");
        let mailbox = format!("{first}From \nX-First: 1\n{behind}From: a@b\n\nbody\n");
        assert_eq!(messages_in(mailbox.as_bytes()), 2);
    }
}

/// Returns the rows in docs/mailbox-internals.md: a name, and the text after a first message. After `=`, it is the whole
/// mailbox.
fn odd_boxes() -> Vec<(&'static str, String)> {
    let first = format!("From a@example.org {DATE}\nSubject: 1\n\nbody\n");
    let second = format!("From b@example.org {DATE}\nSubject: 2\n\nbody\n");
    let counted = |length: usize, body: &str| {
        format!("From a@example.org {DATE}\nSubject: 1\nContent-Length: {length}\n\n{body}\n")
    };
    let hidden = format!("a\n\nFrom c@example.org {DATE}\nSubject: c\n\nx\n");
    let full = hidden.len();
    let behind = |text: &str| format!("{first}{text}");
    vec![
        (
            "an empty line, a date, a header field",
            behind(&format!("\n{second}")),
        ),
        (
            "an empty line, the zone before the year",
            behind(&format!(
                "\n{}",
                second.replace(DATE, "Mon Jan 01 10:00:00 +0000 2024")
            )),
        ),
        ("no empty line", behind(&second)),
        (
            "no empty line, `From -`",
            behind(&second.replace("b@example.org", "-")),
        ),
        (
            "no empty line, CR LF",
            behind(&second).replace('\n', "\r\n"),
        ),
        (
            "no empty line, no header field after it",
            behind(&format!("From b@example.org {DATE}\nmore text\n")),
        ),
        (
            "an empty line, no header field after it",
            behind(&format!("\nFrom b@example.org {DATE}\nmore text\n")),
        ),
        (
            "an empty line, a time of day, no date",
            behind("\nFrom 10:30 on we meet\nhere\n"),
        ),
        (
            "no empty line, a time of day, no date, a header field",
            behind("From 10:30 on we meet\nNote: here\n"),
        ),
        (
            "an empty line, no date, a header field",
            behind("\nFrom b\nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, no date, a header field",
            behind("From b\nSubject: 2\n\nbody\n"),
        ),
        (
            "an empty line, a time of day, no date, a header field",
            behind("\nFrom 10:30 on we meet\nNote: here\n"),
        ),
        (
            "an empty line, words, any header fields",
            behind("\nFrom the minutes of our meeting\nPresent: Anna\nExcused: Dan\n"),
        ),
        (
            "an empty line, words, two header fields, one of them From",
            behind("\nFrom the archive\nFrom: b@example.org\nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, `From ` alone, two header fields, one of them From",
            behind("From \nFrom: b@example.org\nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, `From - `, two header fields, one of them X-Mozilla-Status",
            behind("From - \nX-Mozilla-Status: 0001\nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, no date, two header fields, one of them Date",
            behind(
                "From b@example.org\nSubject: 2\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n\nbody\n",
            ),
        ),
        (
            "no empty line, no date, From and no second header field",
            behind("From b@example.org\nFrom: b@example.org\n\nbody\n"),
        ),
        (
            "no empty line, a date of ISO 8601, a header field",
            behind("From b@example.org 2024-01-01T10:00:00Z\nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, a clock of 12 hours, a header field",
            behind("From b@example.org Mon Jan  1 11:18:56 PM 2024\nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, a date in German, a header field",
            behind("From b@example.org Mo Okt 16 23:18:56 2023\nX-Foo: 2\n\nbody\n"),
        ),
        (
            "no empty line, `From ` alone, Subject",
            behind("From \nSubject: 2\n\nbody\n"),
        ),
        (
            "no empty line, an address alone, Subject and To",
            behind("From b@example.org\nSubject: 2\nTo: c@example.org\n\nbody\n"),
        ),
        (
            "an empty line, an address and a year, Subject and To",
            behind("\nFrom b@example.org 2024\nSubject: 2\nTo: c@example.org\n\nbody\n"),
        ),
        (
            "an empty line, a day of ISO 8601 in running text, a header field",
            behind("\nFrom 2024-01-31 10:30 on we are closed\nNote: here\n"),
        ),
        (
            "an empty line, seconds and a year in running text",
            behind("\nFrom what I saw at 10:15:30 in 2023, all is well\n"),
        ),
        (
            "no empty line, a month and a time of day in running text, a header field",
            behind("From May 3, 10:30 on\nPresent: Anna\n"),
        ),
        (
            "an empty line, a date without the day of the week in running text",
            behind("\nFrom May 5 at 10:00 2020 the server\nis down\n"),
        ),
        (
            "an empty line, a date without the day of the week, a header field",
            behind("\nFrom b@example.org Jan  6 10:00 2020\nX-Foo: 2\n\nbody\n"),
        ),
        (
            "an empty line, a date with the day of the week in running text",
            behind("\nFrom Mon Jan  6 10:00 2020 until now\nthe server is down\n"),
        ),
        (
            "an empty line, a date in German, no header field after it",
            behind("\nFrom b@example.org Mo Okt 16 23:18:56 2023\nmore text\n"),
        ),
        (
            "an empty line, a day and a time of day in running text",
            behind("\nFrom Monday 9:00 Mark will decide\nwho comes\n"),
        ),
        (
            "an empty line, `From here on, walk`",
            behind("\nFrom here on, walk\nto town\n"),
        ),
        (
            "a date without seconds",
            behind("\nFrom b Mon Jan  1 10:00 2024\nSubject: 2\n\nbody\n"),
        ),
        (
            "an address in words, `b at example.org`",
            behind(&format!(
                "\nFrom b at example.org  {DATE}\nSubject: 2\n\nbody\n"
            )),
        ),
        (
            "two dated lines, a header field",
            behind(&format!("\nFrom c@example.org {DATE}\n{second}")),
        ),
        (
            "no empty line, two dated lines, a header field",
            behind(&format!("From c@example.org {DATE}\n{second}")),
        ),
        (
            "a dated line, `From - `, a header field",
            behind(&format!(
                "\nFrom c@example.org {DATE}\nFrom - \nSubject: 2\n\nbody\n"
            )),
        ),
        (
            "three dated lines, a header field",
            behind(&format!(
                "\nFrom c@example.org {DATE}\nFrom - {DATE}\n{second}"
            )),
        ),
        (
            "two dated lines, no header field after it",
            behind(&format!(
                "\nFrom c@example.org {DATE}\nFrom - {DATE}\nmore text\n"
            )),
        ),
        (
            "two dated lines, an empty line between",
            behind(&format!("\nFrom c@example.org {DATE}\n\n{second}")),
        ),
        (
            "`>From ` after it",
            behind(&format!(
                "\nFrom b@example.org {DATE}\n>From b@example.org {DATE}\nSubject: 2\n\nbody\n"
            )),
        ),
        (
            "in the header of the first",
            format!("From a@example.org {DATE}\nSubject: 1\n{second}"),
        ),
        (
            "inside a right Content-Length, the next message has a right one",
            counted(full, &hidden) + &counted(5, "body\n"),
        ),
        (
            "inside a right Content-Length, the next message has none",
            counted(full, &hidden) + &second,
        ),
        (
            "inside a Content-Length that ends anywhere",
            counted(7, &hidden) + &second,
        ),
        (
            "inside a Content-Length that ends after the end of the file",
            counted(99_999, &hidden) + &second,
        ),
    ]
}

/// Returns the number of messages that formail finds. It starts a program for each.
fn counted_by_formail(mailbox: &[u8]) -> usize {
    let mut command = Command::new("formail");
    command
        .args(["-s", "sh", "-c", "cat > /dev/null; echo x >&2"])
        .stdout(Stdio::null());
    fed(&mut command, mailbox)
        .stderr
        .iter()
        .filter(|&&byte| byte == b'x')
        .count()
}

/// Returns the number of messages in the status line of mutt. `script` provides the terminal that mutt needs.
fn counted_by_mutt(mailbox: &[u8]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("box"), mailbox).unwrap();
    counted_by_mutt_in(folder.path())
}

/// Returns the number of messages that mutt finds in the mailbox `box` in a directory, an mbox or a Maildir.
pub(super) fn counted_by_mutt_in(folder: &Path) -> usize {
    // Without this directory, mutt asks whether to create it.
    let _ = fs::create_dir(folder.join("Mail"));
    let mutt = r#"timeout --foreground 20 mutt -n -F /dev/null -R -f box -e 'set status_format="<%m>"' -e 'push "<refresh><exit>"'"#;
    let mut command = Command::new("script");
    command
        .args(["-qec", mutt, "/dev/null"])
        .current_dir(folder)
        .env("HOME", folder)
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The input stays open until the end, because mutt treats the end of input as a key.
    let input = child.stdin.take();
    let mut screen = Vec::new();
    let mut output = child.stdout.take().unwrap();
    output.read_to_end(&mut screen).unwrap();
    ended(&mut child);
    drop(input);
    let screen = String::from_utf8_lossy(&screen);
    let mut counts = screen.split('<').filter_map(|rest| {
        let (count, _) = rest.split_once('>')?;
        count.parse().ok()
    });
    counts
        .next_back()
        .unwrap_or_else(|| panic!("no status line in {screen:?}"))
}

#[test]
fn documented_message_counts_of_odd_mboxes_match_the_programs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mailbox-internals.md");
    let page = fs::read_to_string(path).unwrap();
    let has_formail = program("formail").is_some();
    let has_mutt = program("mutt").is_some() && program("script").is_some();
    let mut rows = 0;
    for (name, mailbox) in odd_boxes() {
        let row = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| {name} | ")))
            .unwrap_or_else(|| panic!("no row '{name}'"));
        let columns: Vec<usize> = row
            .trim_end_matches(" |")
            .split(" | ")
            .map(|column| column.parse().unwrap())
            .collect();
        let ours = messages_in(mailbox.as_bytes());
        assert_eq!(columns[0] as u64, ours, "{name}");
        assert_eq!(
            columns[1],
            mailbox
                .lines()
                .filter(|line| line.starts_with("From "))
                .count(),
            "{name}"
        );
        if has_formail {
            assert_eq!(
                columns[4],
                counted_by_formail(mailbox.as_bytes()),
                "{name}: formail"
            );
        }
        if has_mutt {
            assert_eq!(
                columns[3],
                counted_by_mutt(mailbox.as_bytes()),
                "{name}: mutt"
            );
        }
        rows += 1;
    }
    let (_, section) = page
        .split_once("### Comparison with other programs")
        .unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let table = section
        .lines()
        .filter(|line| line.starts_with("| "))
        .count();
    assert_eq!(rows, table - 1, "a row that is not tested");
    if !has_formail {
        skipped(
            "documented_message_counts_of_odd_mboxes_match_the_programs",
            "formail",
        );
    }
    if !has_mutt {
        skipped(
            "documented_message_counts_of_odd_mboxes_match_the_programs",
            "mutt",
        );
    }
}
