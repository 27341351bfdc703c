//! Servers that lie, break off, and send too much (docs/imap.md): each run ends in time, with little memory, and never writes a
//! mail that differs from that of the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::scripted::{CLOSE, MESSAGES, Scripted, body, metadata, plain};
use crate::common::bounded::finished;
use crate::common::programs::{embody, stderr};

/// Time limit of a run with a server that responds immediately, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct Run {
    pub(super) output: Output,
    pub(super) said: String,
    /// The messages that were written, in the order of their names.
    pub(super) mails: Vec<String>,
    _folder: TempDir,
}

pub(super) fn mails(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if folder.ends_with("cur") || folder.ends_with("new") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(super) fn converted_with(url: &str, more: &[&str]) -> Run {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let begun = Instant::now();
    let child = embody()
        .args(["convert", url, "--allow-plaintext", "--timeout", "2s"])
        .args(["--password-command", "echo secret", "--output"])
        .arg(&out)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finished(child);
    assert!(begun.elapsed() < PATIENCE, "it took {:?}", begun.elapsed());
    let mails = mails(&out)
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    Run {
        said: stderr(&output),
        mails,
        output,
        _folder: folder,
    }
}

pub(super) fn converted(server: &Scripted) -> Run {
    converted_with(&server.url(""), &[])
}

#[test]
fn a_plain_server_gives_all_its_mail() {
    let run = converted(&Scripted::answering(|_| None));
    assert_eq!(run.output.status.code(), Some(0), "{}", run.said);
    assert_eq!(run.mails, MESSAGES);
}

/// Tests rows of a command, the response of the server, and the error message of the run. Only mails of the server may be
/// written.
#[test]
fn what_no_server_may_say_ends_the_run_and_is_named() {
    let endless = "x".repeat(17 << 20);
    let deep = "(".repeat(1 << 20);
    let many = "x ".repeat(1 << 20);
    let ok = "TAG OK done\r\n";
    for (command, says, named) in [
        // Literals and lines that are too long.
        (
            "UID FETCH",
            "* 1 FETCH (UID 1 BODY[] {9223372036854775808}\r\n".to_owned(),
            "literal that is too long",
        ),
        (
            "UID FETCH",
            "* 1 FETCH (UID 1 BODY[] {99999999999999999999999}\r\n".to_owned(),
            "literal that is too long",
        ),
        (
            "UID FETCH",
            "* 1 FETCH (UID 1 BODY[] {18446744073709551615}\r\n".to_owned(),
            "literal that is too long",
        ),
        (
            "UID SEARCH",
            format!("* SEARCH {endless}"),
            "a line without an end",
        ),
        ("greeting", endless.clone(), "a line without an end"),
        (
            "UID FETCH",
            format!("* 1 FETCH {deep}\r\n{ok}"),
            "does not send it",
        ),
        (
            "UID FETCH",
            format!("* 1 FETCH ({many})\r\n{ok}"),
            "does not send it",
        ),
        // Text that is not a response.
        (
            "greeting",
            "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned(),
            "violated the IMAP protocol",
        ),
        (
            "LIST",
            "* LIST\r\nTAG OK done\r\n".to_owned(),
            "in a response that embody cannot read",
        ),
        (
            "EXAMINE",
            format!("* 2 EXISTS\r\n{ok}"),
            "without UIDVALIDITY",
        ),
        (
            "EXAMINE",
            format!("* 2 EXISTS\r\n* OK [UIDVALIDITY x]\r\n{ok}"),
            "without UIDVALIDITY",
        ),
        (
            "UID SEARCH",
            "e999 OK of another command\r\n".to_owned(),
            "that embody did not send",
        ),
        ("UID SEARCH", "TAG BYE\r\n".to_owned(), "OK, NO or BAD"),
        (
            "UID FETCH",
            format!("* 1 FETCH (UID 1 FLAGS (\"a b\"))\r\n{ok}"),
            "does not send it",
        ),
        (
            "UID FETCH",
            "+ more, please\r\n".to_owned(),
            "the server requested more data",
        ),
        // Responses to the login.
        (
            "AUTHENTICATE",
            "TAG NO [AUTHENTICATIONFAILED] wrong\r\n".to_owned(),
            "cannot log in: wrong",
        ),
        (
            "greeting",
            "* OK [CAPABILITY IMAP4rev1 LOGINDISABLED] hi\r\n".to_owned(),
            "does not accept passwords",
        ),
    ] {
        let run = converted(&Scripted::instead(command, says));
        let status = run.output.status.code();
        assert_eq!(status, Some(1), "{command} {named}: {}", run.said);
        assert!(run.said.contains(named), "{named}: {}", run.said);
        assert!(!run.said.contains("secret"), "{}", run.said);
        assert!(
            run.mails
                .iter()
                .all(|mail| MESSAGES.contains(&mail.as_str()))
        );
    }
}

#[test]
fn unsolicited_imap_responses_do_not_change_the_converted_mail() {
    let noise = "* 5 EXISTS\r\n* 3 RECENT\r\n* 4 EXPUNGE\r\n* VANISHED 9:12\r\n* OK [ALERT] hello\r\n* NO low on space\r\n\
        * FLAGS (\\Seen)\r\n* XUNKNOWN (((a) \"b\") {2}\r\nxx)\r\n* 9 FETCH (FLAGS (\\Deleted) UID 77)\r\n\
        * 1 FETCH (FLAGS (\\Seen))\r\n* SEARCH 99\r\n* 12 FETCH (UID 99 BODY[]<0> {3}\r\nxyz)\r\n* BAD what\r\n* LIST () NIL x\r\n";
    let server = Scripted::answering(move |command| {
        let is_login = command == "greeting" || command.starts_with("AUTH");
        // Responses that could belong to the command are removed from the noise.
        let noise = match command.split(' ').next().unwrap_or_default() {
            "LIST" => noise.replace("* LIST () NIL x\r\n", ""),
            "EXAMINE" => noise.replace("* 5 EXISTS\r\n", ""),
            _ if command.starts_with("UID SEARCH") => noise
                .replace("* SEARCH 99\r\n", "")
                .replace("* 5 EXISTS\r\n", ""),
            _ => noise.to_owned(),
        };
        (!is_login).then(|| noise.clone() + &plain(command))
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.said);
    assert_eq!(run.mails, MESSAGES);
}

#[test]
fn a_message_that_is_expunged_meanwhile_is_left_out_and_no_trouble() {
    let searches = AtomicUsize::new(0);
    let opened = AtomicUsize::new(0);
    let server = Scripted::answering(move |command| {
        if command.starts_with("UID SEARCH") && searches.fetch_add(1, Ordering::SeqCst) > 0 {
            return Some("* SEARCH 1\r\nTAG OK done\r\n".into());
        }
        // The folder is opened earlier, too: for the list, the metadata and the bodies.
        if command.starts_with("EXAMINE") && opened.fetch_add(1, Ordering::SeqCst) > 1 {
            return Some(plain(command).replace("* 2 EXISTS", "* 1 EXISTS"));
        }
        let is_body = command.contains("BODY.PEEK");
        is_body.then(|| {
            if command.contains("FETCH 1") {
                format!(
                    "* 2 EXPUNGE\r\n{}TAG NO [EXPUNGEISSUED] some are gone\r\n",
                    body(1)
                )
            } else {
                "TAG OK done\r\n".into()
            }
        })
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.said);
    assert_eq!(run.mails, MESSAGES[..1]);
}

#[test]
fn a_message_that_is_listed_and_never_given_is_named() {
    for says in [
        "TAG OK done\r\n",
        "* 1 FETCH (UID 1 BODY[]<0> NIL)\r\nTAG OK done\r\n",
        "TAG NO damaged\r\n",
    ] {
        let server = Scripted::answering(move |command| {
            let is_body = command.contains("BODY.PEEK");
            is_body.then(|| {
                if command.contains("FETCH 2") {
                    body(2) + "TAG OK done\r\n"
                } else {
                    says.to_owned()
                }
            })
        });
        let run = converted(&server);
        assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
        assert!(
            run.said
                .contains(";UID=1: the server lists the message but does not send it"),
            "{}",
            run.said
        );
    }
}

#[test]
fn a_size_that_is_a_lie_cuts_nothing_short() {
    let long = format!("Subject: long\r\n\r\n{}", "0123456789\r\n".repeat(200_000));
    // With a server that sends shorter pieces than requested.
    for (told, most) in [
        (10, 1 << 20),
        (5_000_000, 1 << 20),
        (5_000_000, 300_000),
        (long.len(), 100_000),
    ] {
        let text = long.clone();
        let server = Scripted::answering(move |command| {
            if command.starts_with("UID SEARCH") {
                return Some("* SEARCH 1\r\nTAG OK done\r\n".into());
            }
            if command.starts_with("EXAMINE") {
                return Some(plain(command).replace("* 2 EXISTS", "* 1 EXISTS"));
            }
            if !command.contains("BODY.PEEK") {
                let is_fetch = command.starts_with("UID FETCH");
                let size = format!("RFC822.SIZE {}", MESSAGES[0].len());
                let says = metadata(&[1]).replace(&size, &format!("RFC822.SIZE {told}"));
                return is_fetch.then(|| says + "TAG OK done\r\n");
            }
            let range = command
                .split_once("[]<")
                .unwrap()
                .1
                .split_once('>')
                .unwrap()
                .0;
            let (from, count) = range.split_once('.').unwrap();
            let (from, count): (usize, usize) = (from.parse().unwrap(), count.parse().unwrap());
            let rest = text.get(from..).unwrap_or_default();
            let piece = &rest[..rest.len().min(count).min(most)];
            Some(format!(
                "* 1 FETCH (UID 1 BODY[]<{from}> {{{}}}\r\n{piece})\r\nTAG OK done\r\n",
                piece.len()
            ))
        });
        let run = converted(&server);
        // A message that is shorter than its size is reported.
        let status = i32::from(told > long.len());
        assert_eq!(
            run.output.status.code(),
            Some(status),
            "{told} {most}: {}",
            run.said
        );
        assert_eq!(run.mails.len(), 1);
        assert!(
            run.mails[0] == long,
            "{told} {most}: {} of {} bytes",
            run.mails[0].len(),
            long.len()
        );
    }
}

/// As with Dovecot: responses to later commands arrive before the first command ends.
#[test]
fn responses_in_another_order_are_combined() {
    let text = format!("Subject: long\r\n\r\n{}", "0123456789\r\n".repeat(250_000));
    let long = text.clone();
    let waiting = std::sync::Mutex::new(Vec::new());
    let server = Scripted::answering(move |command| {
        if command.starts_with("UID SEARCH") {
            return Some("* SEARCH 1\r\nTAG OK done\r\n".into());
        }
        if command.starts_with("EXAMINE") {
            return Some(plain(command).replace("* 2 EXISTS", "* 1 EXISTS"));
        }
        if !command.contains("BODY.PEEK") {
            let is_fetch = command.starts_with("UID FETCH");
            let size = format!("RFC822.SIZE {}", MESSAGES[0].len());
            let says = metadata(&[1]).replace(&size, &format!("RFC822.SIZE {}", text.len()));
            return is_fetch.then(|| says + "TAG OK done\r\n");
        }
        let range = command
            .split_once("[]<")
            .unwrap()
            .1
            .split_once('>')
            .unwrap()
            .0;
        let (from, count) = range.split_once('.').unwrap();
        let (from, count): (usize, usize) = (from.parse().unwrap(), count.parse().unwrap());
        let piece = &text[from..text.len().min(from + count)];
        let mut waiting = waiting.lock().unwrap();
        waiting.push(format!(
            "* 1 FETCH (UID 1 BODY[]<{from}> {{{}}}\r\n{piece})\r\n",
            piece.len()
        ));
        // The responses to the last of three commands, including its end, arrive first.
        Some(match waiting.len() {
            3 => {
                waiting.iter().rev().cloned().collect::<String>()
                    + "TAG OK done\r\nTAG-1 OK done\r\nTAG-2 OK done\r\n"
            }
            _ => String::new(),
        })
    });
    let run = converted(&server);
    let tags: Vec<_> = server.heard();
    assert_eq!(run.output.status.code(), Some(0), "{}: {tags:?}", run.said);
    assert!(run.mails == [long]);
}

#[test]
fn connections_that_break_anywhere_are_made_again_and_nothing_is_doubled() {
    // Each of the first connections breaks at a different place.
    for (at, says) in [
        ("greeting", CLOSE.to_owned()),
        ("greeting", format!("* BYE later\r\n{CLOSE}")),
        ("AUTHENTICATE", CLOSE.to_owned()),
        ("LIST", format!("* LIST () \"/\" INB{CLOSE}")),
        ("EXAMINE", format!("* BYE\r\n{CLOSE}")),
        ("UID SEARCH", format!("* SEARCH 1{CLOSE}")),
        ("UID FETCH", format!("* 1 FETCH (UID 1 FLAGS{CLOSE}")),
        ("UID FETCH", format!("{}{CLOSE}", body(1))),
        (
            "UID FETCH",
            format!(
                "{}* 2 FETCH (UID 2 BODY[]<0> {{20}}\r\nFrom: b@{CLOSE}",
                body(1)
            ),
        ),
    ] {
        let count = AtomicUsize::new(0);
        let server = Scripted::answering(move |command| {
            let is_meant = command.starts_with(at);
            (is_meant && count.fetch_add(1, Ordering::SeqCst) < 2).then(|| says.clone())
        });
        let run = converted(&server);
        assert_eq!(run.output.status.code(), Some(0), "{at}: {}", run.said);
        assert_eq!(run.mails, MESSAGES, "{at}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let server = Scripted::instead("UID SEARCH", "");
    let begun = Instant::now();
    // Six more attempts with their pauses would take two minutes, so the run is stopped.
    let folder = TempDir::new().unwrap();
    let mut child = embody()
        .args([
            "inspect",
            &server.url(""),
            "--allow-plaintext",
            "--timeout",
            "1s",
        ])
        .args(["--password-command", "echo secret"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while server
        .heard()
        .iter()
        .filter(|said| said.starts_with("UID SEARCH"))
        .count()
        < 3
    {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    crate::common::programs::signalled(child.id(), "TERM");
    let ended = crate::common::bounded::ended_within(PATIENCE, &mut child);
    assert_eq!(ended.unwrap().code(), Some(143));
}

#[test]
fn a_folder_that_is_made_anew_meanwhile_is_not_mixed_with_the_old_one() {
    let count = AtomicUsize::new(0);
    let server = Scripted::answering(move |command| {
        let is_later = command.starts_with("EXAMINE") && count.fetch_add(1, Ordering::SeqCst) > 0;
        is_later.then(|| plain(command).replace("UIDVALIDITY 7", "UIDVALIDITY 8"))
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
    assert!(run.said.contains("UIDVALIDITY 7, now 8"), "{}", run.said);
    assert!(run.mails.is_empty());
    // The UIDVALIDITY in the URL must be that of the folder.
    let server = Scripted::answering(|_| None);
    let run = converted_with(&server.url("INBOX;UIDVALIDITY=9"), &[]);
    assert_eq!(run.output.status.code(), Some(1));
    assert!(run.said.contains(";UIDVALIDITY=9"), "{}", run.said);
    assert!(run.said.contains("the UIDVALIDITY 7"), "{}", run.said);
    assert!(!run.said.contains("during the run"), "{}", run.said);
}

#[test]
fn password_is_not_sent_if_starttls_is_stripped_or_tampered_with() {
    for (greeting, starttls, named) in [
        (
            "* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] hi\r\n",
            "TAG BAD no\r\n",
            "--allow-plaintext",
        ),
        (
            "* PREAUTH [CAPABILITY IMAP4rev1] you are me\r\n",
            "TAG OK go on\r\n",
            "before the connection was encrypted",
        ),
        // Text after the response must not be treated as if it had arrived over TLS.
        (
            "* OK [CAPABILITY IMAP4rev1 STARTTLS] hi\r\n",
            "TAG OK go on\r\n* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n",
            "before TLS started",
        ),
        (
            "* OK [CAPABILITY IMAP4rev1 STARTTLS] hi\r\n",
            "TAG OK go on\r\n\0",
            "connection",
        ),
    ] {
        let server = Scripted::answering(move |command| match command {
            "greeting" => Some(greeting.to_owned()),
            "STARTTLS" => Some(starttls.to_owned()),
            _ => None,
        });
        let folder = TempDir::new().unwrap();
        let mut child = embody()
            .args([
                "convert",
                &server.url(""),
                "--timeout",
                "1s",
                "--password-command",
                "echo secret",
            ])
            .arg("--output")
            .arg(folder.path().join("out"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if named == "connection" {
            // The run would retry for a minute.
            std::thread::sleep(Duration::from_secs(2));
            crate::common::programs::signalled(child.id(), "TERM");
            crate::common::bounded::ended(&mut child);
        } else {
            let output = finished(child);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(named), "{named}: {said}");
        }
        let heard = server.heard().join("\n");
        assert!(
            !heard.contains("AUTH") && !heard.contains("LOGIN"),
            "{heard}"
        );
    }
}

#[test]
fn names_of_folders_lead_nowhere_else() {
    let server = Scripted::answering(|command| {
        command.starts_with("LIST").then(|| {
            "* LIST () \"/\" \"../../up\"\r\n* LIST () \"/\" \"/etc/embody\"\r\n* LIST () \"/\" \"a/cur\"\r\n\
             * LIST () \"/\" \"a\"\r\n* LIST () \"/\" \"A\"\r\n* LIST () \".\" {6}\r\na/../b\r\n\
             * LIST () \"/\" {4}\r\na\r\nb\r\n* LIST (\\Noselect) \"/\" \"no\"\r\n* LIST () \"/\" \"\"\r\nTAG OK done\r\n"
                .into()
        })
    });
    let run = converted(&server);
    // A name with a line ending and an empty name are never used in a command.
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
    assert!(run.said.contains("{4}\\r\\na\\r\\nb"), "{}", run.said);
    assert!(run.said.contains(r#"LIST () \"/\" \"\""#), "{}", run.said);
    let around = run._folder.path();
    let names: Vec<_> = fs::read_dir(around)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    assert_eq!(names, ["out"], "{names:?}");
    // Six folders of two messages each.
    assert_eq!(run.mails.len(), 12, "{:?}", mails(&around.join("out")));
    assert!(!server.heard().iter().any(|said| said.contains('\n')));
}

#[test]
fn messages_with_sizes_that_overflow_in_a_sum_are_named() {
    let largest = u64::MAX.to_string();
    let server = Scripted::answering(move |command| {
        let is_listing = command.starts_with("UID FETCH") && command.contains("RFC822.SIZE");
        is_listing.then(|| {
            let mut says = metadata(&[1, 2]);
            for message in MESSAGES {
                let size = format!("RFC822.SIZE {} ", message.len());
                says = says.replace(&size, &format!("RFC822.SIZE {largest} "));
            }
            says = says.replace("7 1))", &format!("{largest} 1))"));
            format!("{says}TAG OK done\r\n")
        })
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
    for uid in [1, 2] {
        let named = format!(";UID={uid}: the message has more than 536870912 bytes");
        assert!(run.said.contains(&named), "{}", run.said);
    }
}
