//! A single error has a single effect: an unusual response, a refused command or a damaged message is reported, and everything
//! else is done.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::Client;
use super::mails::{command, rows};
use super::rig::{Kind, Server};
use super::scripted::{MESSAGES, Scripted, metadata, plain};
use crate::common::bounded::finished;
use crate::common::programs::{embody, stderr};

struct Run {
    output: Output,
    said: String,
    mails: Vec<String>,
    took: Duration,
}

impl Run {
    fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }
}

fn run(verb: &str, url: &str, more: &[&str]) -> Run {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let begun = Instant::now();
    let mut program = embody();
    program
        .args([verb, url, "--allow-plaintext", "--timeout", "2s"])
        .args(["--password-command", "echo secret"])
        .args(more);
    if verb == "convert" {
        program.arg("--output").arg(&out);
    }
    let child = program
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finished(child);
    let took = begun.elapsed();
    Run {
        said: stderr(&output),
        mails: mails(&out),
        output,
        took,
    }
}

/// Returns the messages in all Maildirs, in order.
fn mails(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(mails(&path)),
            false if folder.ends_with("cur") => found.push(fs::read_to_string(path).unwrap()),
            false => {}
        }
    }
    found.sort();
    found
}

fn convert(server: &Scripted) -> Run {
    run("convert", &server.url(""), &[])
}

/// Returns a simple server whose responses to certain commands are changed.
fn changed(
    first: &'static str,
    change: impl Fn(String) -> String + Send + Sync + 'static,
) -> Scripted {
    Scripted::answering(move |command| command.starts_with(first).then(|| change(plain(command))))
}

#[test]
fn backup_with_small_faults_of_a_server_is_whole() {
    let refusing = |first: &'static str, capabilities: &'static str, says: &'static str| {
        Scripted::answering(move |command| match command {
            "greeting" => Some(format!("* OK [CAPABILITY IMAP4rev1 {capabilities}] hi\r\n")),
            "CAPABILITY" => Some(format!(
                "* CAPABILITY IMAP4rev1 {capabilities}\r\nTAG OK x\r\n"
            )),
            command if command.starts_with(first) || command.ends_with(first) => {
                Some(says.to_owned())
            }
            _ => None,
        })
    };
    for (what, server) in [
        (
            "empty line",
            changed("LIST", |says| says.replace("TAG", "\r\n  \r\nTAG")),
        ),
        (
            "empty lines in FETCH",
            changed("UID FETCH", |says| {
                says.replace("* 2 FETCH", "\r\n* 2 FETCH")
            }),
        ),
        (
            "number alone",
            changed("EXAMINE", |says| {
                format!("* 3\r\n* 99999999999 EXISTS\r\n{says}")
            }),
        ),
        (
            "not a response",
            changed("UID SEARCH", |says| format!("what is this\r\n{says}")),
        ),
        (
            "literal in a text",
            changed("UID SEARCH", |says| format!("* OK found {{3}}\r\n{says}")),
        ),
        (
            "PERMANENTFLAGS NIL",
            changed("EXAMINE", |says| {
                format!("* OK [PERMANENTFLAGS NIL] x\r\n{says}")
            }),
        ),
        (
            "PERMANENTFLAGS (",
            changed("EXAMINE", |says| {
                format!("* OK [PERMANENTFLAGS (a \"b] x\r\n{says}")
            }),
        ),
        (
            "UIDNEXT x",
            changed("EXAMINE", |says| says.replace("UIDNEXT 3", "UIDNEXT x")),
        ),
        (
            "HIGHESTMODSEQ",
            changed("EXAMINE", |says| {
                format!("* OK [HIGHESTMODSEQ] x\r\n{says}")
            }),
        ),
        (
            "CRLF before )",
            changed("UID FETCH", |says| {
                says.replace("again\r\n)", "again\r\n\r\n)")
            }),
        ),
        (
            "ID BAD",
            refusing("ID", "AUTH=PLAIN SASL-IR ID", "TAG BAD what\r\n"),
        ),
        (
            "ID NO",
            refusing("ID", "AUTH=PLAIN SASL-IR ID", "TAG NO not now\r\n"),
        ),
        (
            "CONDSTORE",
            refusing(
                "(CONDSTORE)",
                "AUTH=PLAIN SASL-IR CONDSTORE",
                "TAG BAD parse error\r\n",
            ),
        ),
    ] {
        let run = convert(&server);
        assert_eq!(run.code(), Some(0), "{what}: {}", run.said);
        assert_eq!(run.mails, MESSAGES, "{what}");
        assert!(run.took < Duration::from_secs(20), "{what}: {:?}", run.took);
    }
}

#[test]
fn backup_with_keywords_that_are_no_words_keeps_the_messages_and_names_them() {
    for (keywords, named) in [
        ("\\Seen foo(bar good", "foo(bar"),
        ("\\Seen )x \"q uo\" \"te {3} good", "{3}"),
        ("\\Seen good a\"b", "a\\\"b"),
        ("\\Seen {3}\r\na b good", "\\\"a b\\\""),
    ] {
        let server = changed("UID FETCH", move |says| {
            says.replacen("FLAGS (\\Seen)", &format!("FLAGS ({keywords})"), 1)
        });
        let run = convert(&server);
        assert_eq!(run.code(), Some(1), "{keywords}: {}", run.said);
        assert_eq!(run.mails, MESSAGES, "{keywords}");
        let said = run.said.replace('\\', "");
        let named = named.replace('\\', "");
        assert!(
            said.contains(&named) && run.said.contains("UID 1)"),
            "{}",
            run.said
        );
    }
}

/// Returns a server with the folders Bad and INBOX.
fn two_folders(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Scripted {
    Scripted::answering(move |command| {
        if command.starts_with("LIST") {
            Some("* LIST () \"/\" Bad\r\n* LIST () \"/\" INBOX\r\nTAG OK x\r\n".into())
        } else {
            answer(command)
        }
    })
}

#[test]
fn folder_that_cannot_be_opened_costs_that_folder() {
    for (what, says) in [
        ("without UIDVALIDITY", "* 2 EXISTS\r\nTAG OK done\r\n"),
        (
            "without UIDVALIDITY",
            "* 2 EXISTS\r\n* OK [UIDVALIDITY 0] x\r\nTAG OK done\r\n",
        ),
        (
            "did not send the number of messages in the folder (EXISTS)",
            "* OK [UIDVALIDITY 7] x\r\nTAG OK done\r\n",
        ),
        ("already complete", "+ go on\r\n"),
        ("refused EXAMINE", "TAG NO cannot\r\n"),
    ] {
        let server = two_folders(move |command| {
            (command.contains("Bad") && command.starts_with("EXAMINE")).then(|| says.to_owned())
        });
        let backup = convert(&server);
        assert_eq!(backup.code(), Some(1), "{what}: {}", backup.said);
        assert_eq!(backup.mails, MESSAGES, "{what}: {}", backup.said);
        assert!(
            backup.said.contains("/Bad") && backup.said.contains(what),
            "{}",
            backup.said
        );
        let seen = run("inspect", &server.url(""), &[]);
        assert_eq!(seen.code(), Some(1), "{what}: {}", seen.said);
        assert!(
            seen.stdout().contains("INBOX: 2 messages"),
            "{}",
            seen.stdout()
        );
        assert!(seen.said.contains("/Bad"), "{}", seen.said);
    }
    // STATUS contains the numbers that EXAMINE omitted.
    let server = two_folders(|command| match command {
        _ if command.starts_with("EXAMINE") => Some("* 2 EXISTS\r\nTAG OK done\r\n".into()),
        _ if command.starts_with("STATUS") => {
            Some("* STATUS \"x\" (UIDVALIDITY 9)\r\nTAG OK done\r\n".into())
        }
        _ => None,
    });
    let backup = convert(&server);
    assert_eq!(backup.code(), Some(0), "{}", backup.said);
    assert_eq!(backup.mails.len(), 4);
}

#[test]
fn message_that_is_always_unavailable_costs_one_retry() {
    for (code, what) in [
        ("[UNAVAILABLE]", "BODY.PEEK"),
        ("[UNAVAILABLE]", "RFC822.SIZE"),
        ("[SERVERBUG]", "RFC822.SIZE"),
        ("", "FLAGS"),
    ] {
        let server = Scripted::answering(move |command| {
            let set = command.split(' ').nth(2).unwrap_or_default();
            let is_meant = command.starts_with("UID FETCH") && command.contains(what);
            (is_meant && set.starts_with('1')).then(|| format!("TAG NO {code} it is damaged\r\n"))
        });
        let run = convert(&server);
        // The flags also arrive with the date, which is fetched in a separate command, so nothing is missing.
        if matches!((code, what), ("[SERVERBUG]", _) | (_, "FLAGS")) {
            assert_eq!(run.code(), Some(0), "{code} {what}: {}", run.said);
            assert_eq!(run.mails, MESSAGES, "{code} {what}");
            continue;
        }
        assert_eq!(run.code(), Some(1), "{code} {what}: {}", run.said);
        // Without metadata, the body of the message is requested anyway.
        match what {
            "BODY.PEEK" => assert_eq!(run.mails, MESSAGES[1..], "{code} {what}"),
            _ => assert_eq!(run.mails, MESSAGES, "{code} {what}"),
        }
        assert!(run.said.contains(";UID=1: the server "), "{}", run.said);
        assert!(
            run.took < Duration::from_secs(15),
            "{code} {what}: {:?}",
            run.took
        );
    }
}

const STRUCTURE: &str = "BODYSTRUCTURE (\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1)";

#[test]
fn inspect_with_an_unreadable_structure_reads_all_others() {
    for broken in [
        "BODYSTRUCTURE (\"text\" \"a 12\" disk\" NIL NIL NIL \"7bit\" 7 1)",
        "BODYSTRUCTURE (\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1",
        "BODYSTRUCTURE (\"text\" \"plain\") NIL) NIL NIL \"7bit\" 7 1)",
        "BODYSTRUCTURE (\"text\" \"pl\r\nain\" NIL NIL NIL \"7bit\" 7 1)",
        "BODYSTRUCTURE (\"text\" \"\"\"\" NIL \"7bit\" 7 1)",
    ] {
        let server = changed("UID FETCH", move |says| says.replacen(STRUCTURE, broken, 1));
        let seen = run(
            "inspect",
            &server.url(""),
            &["--larger-than", "1", "--json"],
        );
        let json = seen.stdout();
        assert!(
            json.contains("\"messages\":2"),
            "{broken}: {json} {}",
            seen.said
        );
        assert!(
            json.contains("\"unknown\":1"),
            "{broken}: {json} {}",
            seen.said
        );
    }
}

#[test]
fn inspect_with_one_garbled_response_says_the_truth_or_fails() {
    /// Changes the response with this number once, and counts all of them.
    fn garbled(says: &str, at: usize, how: usize, count: &AtomicUsize) -> String {
        let mut lines: Vec<String> = says.split_inclusive("\r\n").map(str::to_owned).collect();
        for line in &mut lines {
            if count.fetch_add(1, Ordering::SeqCst) != at {
                continue;
            }
            let text = line.trim_end().to_owned();
            *line = match how {
                0 => format!("{}\r\n", &text[..text.len() / 2]),
                1 => format!("{}\r\n", text.replace(['S', 'E', 'O'], "%")),
                2 => format!("{}\r\n", text.replace('(', "((")),
                _ => format!("\u{1}{text}\r\n"),
            };
        }
        lines.concat()
    }
    let answer = |command: &str| match command {
        "greeting" => "* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR QUOTA] hi\r\n".to_owned(),
        _ if command.starts_with("LIST") => {
            "* LIST () \"/\" INBOX\r\n* LIST () \"/\" Other\r\nTAG OK done\r\n".to_owned()
        }
        _ => plain(command),
    };
    let truth = run(
        "inspect",
        &Scripted::answering(move |command| Some(answer(command))).url(""),
        &["--larger-than", "1", "--connections", "1"],
    );
    assert_eq!(truth.code(), Some(0), "{}", truth.said);
    let truth = truth.stdout();
    for how in 0..4 {
        for at in 0.. {
            let count = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&count);
            let server = Scripted::answering(move |command| {
                Some(garbled(&answer(command), at, how, &counts))
            });
            let seen = run(
                "inspect",
                &server.url(""),
                &["--larger-than", "1", "--connections", "1"],
            );
            let told = seen.stdout();
            match seen.code() {
                Some(0) => assert_eq!(told, truth, "{how} {at}: {}", seen.said),
                code => {
                    assert_eq!(code, Some(1), "{how} {at}: {}", seen.said);
                    assert!(!seen.said.trim().is_empty(), "{how} {at}");
                }
            }
            if at >= count.load(Ordering::SeqCst) {
                break;
            }
        }
    }
}

#[test]
fn whole_body_in_place_of_a_piece_is_used() {
    let long = format!(
        "Subject: long\r\n\r\n{}",
        "0123456789\r\n".repeat(1_600_000)
    );
    for form in ["BODY[]", "BODY[]<0>", "BODY[]<from>"] {
        let text = long.clone();
        let server = Scripted::answering(move |command| {
            if command.starts_with("UID SEARCH") {
                return Some("* SEARCH 1\r\nTAG OK done\r\n".into());
            }
            if command.starts_with("EXAMINE") {
                return Some(plain(command).replace("2 EXISTS", "1 EXISTS"));
            }
            if !command.contains("BODY.PEEK") {
                let size = format!("RFC822.SIZE {}", MESSAGES[0].len());
                let says = metadata(&[1]).replace(&size, &format!("RFC822.SIZE {}", text.len()));
                return command
                    .starts_with("UID FETCH")
                    .then(|| says + "TAG OK done\r\n");
            }
            let range = command.split_once("[]<").unwrap().1;
            let from = range.split_once('.').unwrap().0;
            let form = form.replace("from", from);
            let size = text.len();
            Some(format!(
                "* 1 FETCH (UID 1 {form} {{{size}}}\r\n{text})\r\nTAG OK done\r\n"
            ))
        });
        let run = run("convert", &server.url(""), &["--timeout", "20s"]);
        assert_eq!(run.code(), Some(0), "{form}: {}", run.said);
        assert!(
            run.mails == [long.clone()],
            "{form}: {} mails",
            run.mails.len()
        );
    }
}

#[test]
fn server_that_never_ends_is_given_up_in_time() {
    let endless = "* OK still here\r\n".repeat(20_000_000 / 17);
    for (first, says, named) in [
        (
            "AUTHENTICATE",
            "+ \r\n+ \r\n+ \r\n+ \r\n+ \r\n+ \r\n".to_owned(),
            "during the login",
        ),
        (
            "greeting",
            "* BYE too many connections\r\n".to_owned(),
            "too many connections",
        ),
    ] {
        let seen = run("inspect", &Scripted::instead(first, says).url(""), &[]);
        assert_eq!(seen.code(), Some(1), "{}", seen.said);
        assert!(seen.said.contains(named), "{}", seen.said);
        assert!(
            seen.took < Duration::from_secs(10),
            "{named}: {:?}",
            seen.took
        );
    }
    // Any number of untagged lines before a response is skipped.
    let server = changed("UID SEARCH", move |says| format!("{endless}{says}"));
    let seen = run("inspect", &server.url(""), &["--timeout", "30s"]);
    assert_eq!(seen.code(), Some(0), "{}", seen.said);
}

#[test]
fn lines_that_drip_for_ever_end_after_four_times_the_silence() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let mut stream = stream;
                stream
                    .write_all(b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR] hi\r\n")
                    .unwrap();
                let _login = lines.next();
                while stream.write_all(b"* OK still here\r\n").is_ok() {
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    let url = format!("imap://me@127.0.0.1:{port}/");
    let seen = run("inspect", &url, &["--timeout", "1s"]);
    assert_eq!(seen.code(), Some(1), "{}", seen.said);
    assert!(seen.said.contains("keeps sending data"), "{}", seen.said);
    assert!(seen.took < Duration::from_secs(12), "{:?}", seen.took);
}

#[test]
fn unsolicited_responses_are_not_kept() {
    // 60 MB of responses. They needed 1.7 GB when they were stored.
    let flags = "a ".repeat(60_000);
    let flood: String = (1..500)
        .map(|uid| format!("* {uid} FETCH (FLAGS ({flags}) UID {uid})\r\n"))
        .collect();
    let server = changed("UID SEARCH", move |says| format!("{flood}{says}"));
    let mut limited = std::process::Command::new("sh");
    let program = embody();
    limited
        .args(["-c", "ulimit -v 900000; exec \"$@\"", "sh"])
        .arg(program.get_program())
        .args(["inspect", &server.url(""), "--allow-plaintext"])
        .args(["--password-command", "echo secret"]);
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Dovecot sends keywords as they are in its file, which an older version or another program may have written.
#[test]
fn dovecot_with_an_old_file_of_keywords_has_all_its_messages_saved_and_odd_ones_left() {
    let test = "dovecot_with_an_old_file_of_keywords_has_all_its_messages_saved_and_odd_ones_left";
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let message = |name: &str| {
        format!(
            "Subject: {name}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\
             Content-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\n{}\r\n--b--\r\n",
            "0123456789\r\n".repeat(2000)
        )
    };
    server.client().append(
        "INBOX",
        "",
        "01-Feb-2003 04:05:06 +0000",
        message("first").as_bytes(),
    );
    let keywords: [&[u8]; 8] = [
        b"caf\xe9",
        b"foo(bar",
        b"a)b",
        b"\"quoted\"",
        b"ctl\x01",
        b"NIL",
        b"{3}",
        b"plain",
    ];
    let mut file = Vec::new();
    for (at, keyword) in keywords.iter().enumerate() {
        file.extend_from_slice(format!("{at} ").as_bytes());
        file.extend_from_slice(keyword);
        file.push(b'\n');
    }
    let maildir = server.maildir();
    fs::write(maildir.join("dovecot-keywords"), file).unwrap();
    for at in 0..keywords.len() {
        let letter = char::from(b'a' + u8::try_from(at).unwrap());
        let path = maildir.join(format!("cur/15{at}0000000.m{at}.host:2,S{letter}"));
        fs::write(&path, message(&format!("keyword {at}"))).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
    }
    std::os::unix::fs::chown(maildir.join("dovecot-keywords"), Some(65534), Some(65534)).unwrap();
    let backup = run("convert", &server.url("INBOX"), &[]);
    assert_eq!(backup.code(), Some(1), "{}", backup.said);
    assert_eq!(backup.mails.len(), 9, "{}", backup.said);
    assert!(
        backup.said.contains("because IMAP does not allow keywords"),
        "{}",
        backup.said
    );
    let folder = TempDir::new().unwrap();
    let detached = command(folder.path(), "detach", &server.url("INBOX"))
        .output()
        .unwrap();
    let said = stderr(&detached);
    assert_eq!(detached.status.code(), Some(1), "{said}");
    assert_eq!(
        Client::login(server.port, "me").all("INBOX").len(),
        9,
        "{said}"
    );
    let outcomes = rows(folder.path());
    let detached = outcomes
        .iter()
        .filter(|row| row["outcome"] == "detached")
        .count();
    assert!(detached >= 2, "{said} {outcomes:?}");
}
