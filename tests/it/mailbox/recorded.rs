//! Recorded sessions with several messages: each verb names them, wherever they are, and reads a session with one message.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::archives::{tar, zip};
use crate::common::programs::{embody, embody_in, fed, stderr};

/// Length of a text that is longer than the part of a file that shows its format.
const LONG: usize = 80 << 10;

fn mail(name: &str, text: &str) -> String {
    format!(
        "Received: from a by b\nFrom: Ann <ann@example.org>\nTo: bob@example.org\nSubject: {name}\n\
         Date: Mon, 6 Jan 2020 10:00:00 +0000\nMessage-ID: <{name}@example.org>\n\n{text}\n"
    )
}

/// Returns a session of each kind with these messages.
fn sessions(mails: &[String]) -> Vec<(&'static str, String)> {
    let joined = |entry: &dyn Fn(&String) -> String| mails.iter().map(entry).collect::<String>();
    vec![
        (
            "POP3",
            joined(&|mail| format!("+OK {} octets\n{mail}.\n", mail.len())),
        ),
        (
            "IMAP",
            joined(&|mail| format!("* 1 FETCH (UID 7 BODY[] {{{}}}\n{mail})\n", mail.len())),
        ),
        (
            "NNTP",
            joined(&|mail| format!("220 7 <7@example.org> article\n{mail}.\n")),
        ),
        (
            "news reader",
            joined(&|mail| format!("Article 7 of comp.mail.mime:\n{mail}\n")),
        ),
        (
            "SMTP",
            joined(&|mail| format!("HELO x\nMAIL FROM:<a@b>\nRCPT TO:<c@d>\nDATA\n{mail}.\n")),
        ),
        (
            "Usenet news",
            joined(&|mail| format!("#! rnews {}\n{mail}", mail.len())),
        ),
    ]
}

fn check(output: &Output, expected: &str, what: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{what}: {said}");
    assert!(said.contains(expected), "{what}: {said}");
    assert!(said.contains("file of its own"), "{what}: {said}");
}

#[test]
fn recorded_session_with_several_messages_is_named_in_every_place_and_by_every_verb() {
    for text in ["hello", &"long line\n".repeat(LONG / 10)] {
        for (kind, session) in sessions(&[mail("a", text), mail("b", text)]) {
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            let other = format!(
                "From ann@example.org Mon Jan  6 10:00:00 2020\n{}\n",
                mail("c", "x")
            );
            for (folder, name) in [
                (".", "x"),
                (".", "x.eml"),
                ("dir", "x"),
                ("md/cur", "1578304801.M1P1.h:2,S"),
                ("mh", "1"),
            ] {
                fs::create_dir_all(place.join(folder)).unwrap();
                fs::write(place.join(folder).join(name), &session).unwrap();
            }
            fs::write(place.join("dir/box"), &other).unwrap();
            fs::write(place.join("mh/.mh_sequences"), "").unwrap();
            fs::create_dir_all(place.join("md/new")).unwrap();
            fs::write(place.join("old"), &other).unwrap();
            let archived = session.as_bytes();
            fs::write(
                place.join("a.zip"),
                zip(&[("box", other.as_bytes()), ("x.eml", archived)]),
            )
            .unwrap();
            fs::write(
                place.join("a.tar"),
                tar(&[("box", b'0', other.as_bytes()), ("x", b'0', archived)]),
            )
            .unwrap();
            for source in ["x", "x.eml", "dir", "md", "mh", "a.zip", "a.tar"] {
                for arguments in [
                    &["inspect", source][..],
                    &["convert", source, "--output", "new"],
                    &[
                        "convert",
                        source,
                        "--output-format",
                        "mbox",
                        "--output",
                        "single",
                    ],
                    &["merge", "old", source, "--output", "all"],
                    &["compare", source, "old"],
                ] {
                    let what = format!("{kind} {arguments:?}");
                    check(&embody_in(place, arguments), kind, &what);
                }
                remove(place, "new");
                remove(place, "single");
                remove(place, "all");
            }
            let before = fs::read(place.join("x")).unwrap();
            let arguments = ["embed", "--in-place", "x"];
            check(&embody_in(place, &arguments), kind, kind);
            assert_eq!(fs::read(place.join("x")).unwrap(), before, "{kind}");
            let mut streamed = embody();
            streamed
                .current_dir(place)
                .args(["convert", "-", "--output", "streamed"]);
            let output = fed(&mut streamed, session.as_bytes());
            check(&output, kind, kind);
        }
    }
}

fn remove(place: &Path, name: &str) {
    let path = place.join(name);
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir_all(&path);
}

#[test]
fn recorded_session_with_one_message_is_read() {
    for text in [
        "hello".to_owned(),
        // A session in the text of the message is a part of it.
        format!(
            "+OK 10 octets\n{0}\n* 1 FETCH (BODY[] {{5}}\n{0}",
            mail("quoted", "x")
        ),
        // The message is longer than the part of the file that shows its format.
        format!(
            "+OK 10 octets\n{0}\n* 1 FETCH (BODY[] {{5}}\n{0}{1}",
            mail("quoted", "x"),
            "long line\n".repeat(LONG / 10)
        ),
    ] {
        for (kind, session) in sessions(&[mail("a", &text)]) {
            // A news reader does not mark the end of an article.
            if text.contains("FETCH") && kind == "news reader" {
                continue;
            }
            let temporary = tempfile::tempdir().unwrap();
            let place = temporary.path();
            fs::write(place.join("x"), &session).unwrap();
            let output = embody_in(
                place,
                &[
                    "convert",
                    "x",
                    "--output-format",
                    "maildir",
                    "--output",
                    "new",
                ],
            );
            assert!(output.status.success(), "{kind}: {}", stderr(&output));
        }
    }
}

#[test]
fn mail_that_quotes_a_session_in_its_text_is_one_mail() {
    for (kind, session) in sessions(&[mail("a", "hello"), mail("b", "hello")]) {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::write(place.join("x.eml"), mail("report", &session)).unwrap();
        let output = embody_in(
            place,
            &[
                "convert",
                "x.eml",
                "--output-format",
                "maildir",
                "--output",
                "new",
            ],
        );
        assert!(output.status.success(), "{kind}: {}", stderr(&output));
    }
}

/// Runs each verb over `old`, an mbox in which the second message is `message`, and returns what it says.
fn over_second_message(message: &str, arguments: &[&str]) -> (Output, String) {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let entry =
        |content: &str| format!("From ann@example.org Mon Jan  6 10:00:00 2020\n{content}\n");
    let (one, three) = (mail("one", "x"), mail("three", "x"));
    let mbox: String = [one.as_str(), message, &three].map(entry).concat();
    fs::write(place.join("old"), &mbox).unwrap();
    fs::write(place.join("other"), entry(&one)).unwrap();
    fs::write(place.join("a.zip"), zip(&[("box", mbox.as_bytes())])).unwrap();
    let output = embody_in(place, arguments);
    let said = stderr(&output);
    if arguments.contains(&"--in-place") {
        assert_eq!(fs::read_to_string(place.join("old")).unwrap(), mbox);
    }
    (output, said)
}

const OF_MBOX: [&[&str]; 9] = [
    &["inspect", "old"],
    &["convert", "old", "--output", "new"],
    &["convert", "--in-place", "old"],
    &[
        "convert",
        "old",
        "--output-format",
        "maildir",
        "--output",
        "new",
    ],
    &["convert", "a.zip", "--output", "new"],
    &["detach", "--store", "s", "--in-place", "old"],
    &["recover", "--offline", "old", "--output", "new"],
    &["merge", "other", "old", "--output", "new"],
    &["compare", "old", "other"],
];

#[test]
fn session_that_is_one_message_of_an_mbox_is_named_by_every_verb() {
    for (kind, session) in sessions(&[mail("a", "hello"), mail("b", "hello")]) {
        for arguments in OF_MBOX {
            let (output, said) = over_second_message(&session, arguments);
            check(&output, kind, &format!("{kind} {arguments:?}"));
            assert!(said.contains("message 2 consists of"), "{said}");
        }
    }
}

#[test]
fn message_of_an_mbox_that_quotes_a_session_or_contains_one_message_is_not_named() {
    let long = "long line\n".repeat(LONG / 10);
    for text in ["hello", &long] {
        let one = sessions(&[mail("a", text)]);
        let two = sessions(&[mail("a", text), mail("b", text)]);
        let quoting = two.iter().map(|(_, session)| mail("report", session));
        for message in one
            .iter()
            .map(|(_, session)| session.clone())
            .chain(quoting)
        {
            let (output, said) = over_second_message(&message, &["inspect", "old"]);
            assert!(output.status.success(), "{message}: {said}");
        }
    }
}

#[test]
fn separator_with_a_tab_in_an_mbox_is_named_by_every_verb() {
    let tab = "From\tbob@example.org Mon Jan  6 10:00:00 2020\n";
    let tabs = tab.replace(' ', "\t").replace("\t\t6", "\t 6");
    let multipart =
        "From: a@b\nSubject: m\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b--\n";
    for host in [mail("host", "text"), mail("host", ""), multipart.to_owned()] {
        for separator in [tab, &tabs] {
            for ending in ["\n", "\r\n"] {
                let joined = format!("{host}\n{separator}{}", mail("joined", "x"));
                let message = joined.replace('\n', ending);
                for arguments in OF_MBOX {
                    let (output, said) = over_second_message(&message, arguments);
                    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
                    assert!(said.contains("a tab instead of the space"), "{said}");
                    assert!(said.contains("message 2"), "{said}");
                }
            }
        }
    }
    let joined = mail("joined", "x");
    for message in [
        // Text, a quoted mailbox, and an attached one.
        mail("a", "From\there on, walk\n"),
        mail(
            "a",
            &format!("From\tbob Mon Jan  6 10:00:00 2020\n\n{joined}"),
        ),
        mail("a", &format!("> {tab}> {joined}")),
        format!(
            "From: a@b\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\n\n{tab}{joined}--b--\n"
        ),
    ] {
        let (output, said) = over_second_message(&message, &["inspect", "old"]);
        assert!(output.status.success(), "{message}: {said}");
    }
}
