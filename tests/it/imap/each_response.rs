//! Each response of a session is refused, omitted or garbled once: the backup or inspection must report what it misses, and
//! must contain everything else.
//!
//! The sessions are generated: a first run counts the commands and the responses, and each of the other runs changes one of
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::scripted::Scripted;
use crate::common::bounded::finished;
use crate::common::programs::{embody, stderr};
use crate::common::reports;

/// Folders, and the UIDs of their messages.
const FOLDERS: [(&str, &[u32]); 2] = [("Archive", &[4, 9]), ("INBOX", &[1, 2, 5])];

fn mail(folder: &str, uid: u32) -> String {
    format!(
        "From: a@example.org\r\nSubject: {uid} in {folder}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\n\r\nhello\r\n--b\r\nContent-Type: application/pdf\r\n\r\n{}\r\n--b--\r\n",
        "x".repeat(200)
    )
}

/// A change of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    /// A command, counted from 0 (the greeting), gets only this status response.
    Refuse(usize, &'static str),
    /// A response, counted from 0, is changed.
    Garble(usize, Garbling),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Garbling {
    /// The response is omitted.
    Dropped,
    /// The response has an additional parenthesis.
    Opened,
    /// The response has an additional quotation mark.
    Quoted,
    /// The response is truncated, except for the line ending.
    Cut,
    /// The response is replaced by other words.
    Nonsense,
}

const GARBLINGS: [Garbling; 5] = [
    Garbling::Dropped,
    Garbling::Opened,
    Garbling::Quoted,
    Garbling::Cut,
    Garbling::Nonsense,
];

impl Garbling {
    /// Line endings and literals with their lengths are kept, so that the stream stays in step.
    fn of(self, response: &str) -> String {
        let (line, end) = match response.split_once('{') {
            Some((before, literal)) => (before.to_owned(), format!("{{{literal}")),
            None => (response.trim_end().to_owned(), "\r\n".to_owned()),
        };
        match self {
            Self::Dropped => String::new(),
            Self::Opened => format!("{line} ({end}"),
            Self::Quoted => format!("{line} \"{end}"),
            Self::Cut if end.starts_with('{') => format!("{}{end}", &line[..line.len() / 2]),
            Self::Cut => format!("{}\r\n", &line[..line.len() / 2]),
            Self::Nonsense if end.starts_with('{') => format!("* WHAT {end}"),
            Self::Nonsense => "* WHAT (is) \"this\"\r\n".to_owned(),
        }
    }
}

/// Returns the responses to a command. The last one is tagged.
fn responses(command: &str, selected: &Mutex<String>) -> Vec<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let folder = selected.lock().unwrap().clone();
    let entry = FOLDERS.iter().find(|(name, _)| *name == folder);
    let uids = entry.map(|(_, uids)| *uids).unwrap_or_default();
    let is_in = |number: u32, set: &str| {
        set.split(',').any(|range| {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            (first.parse().unwrap_or(0)..=last.parse().unwrap_or(0)).contains(&number)
        })
    };
    let mut all: Vec<String> = match words.as_slice() {
        ["greeting"] => {
            return vec!["* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR NAMESPACE] hi\r\n".into()];
        }
        ["CAPABILITY"] => vec!["* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR NAMESPACE\r\n".into()],
        ["NAMESPACE"] => vec!["* NAMESPACE ((\"\" \"/\")) NIL NIL\r\n".into()],
        ["LIST", ..] => FOLDERS
            .iter()
            .map(|(name, _)| format!("* LIST (\\HasNoChildren) \"/\" \"{name}\"\r\n"))
            .collect(),
        ["EXAMINE", ..] => {
            let name = command.trim_start_matches("EXAMINE ").trim_matches('"');
            *selected.lock().unwrap() = name.to_owned();
            let Some((_, uids)) = FOLDERS.iter().find(|(it, _)| *it == name) else {
                return vec!["TAG NO no such folder\r\n".to_owned()];
            };
            vec![
                format!("* {} EXISTS\r\n", uids.len()),
                "* OK [UIDVALIDITY 7] valid\r\n".into(),
                "* OK [UIDNEXT 10] next\r\n".into(),
            ]
        }
        ["UID", "SEARCH", ..] => {
            let found: String = uids.iter().map(|uid| format!(" {uid}")).collect();
            vec![format!("* SEARCH{found}\r\n")]
        }
        ["FETCH", set, ..] => (1..)
            .zip(uids)
            .filter(|(number, _)| is_in(*number, set))
            .map(|(number, uid)| format!("* {number} FETCH (UID {uid})\r\n"))
            .collect(),
        ["UID", "FETCH", set, ..] => (1..)
            .zip(uids)
            .filter(|(_, uid)| is_in(**uid, set))
            .map(|(number, uid): (u32, &u32)| fetched(command, &folder, number, *uid))
            .collect(),
        ["LOGOUT"] => vec!["* BYE\r\n".into()],
        _ => Vec::new(),
    };
    all.push("TAG OK done\r\n".to_owned());
    all
}

fn fetched(command: &str, folder: &str, number: u32, uid: u32) -> String {
    let text = mail(folder, uid);
    let Some((_, range)) = command.split_once("BODY.PEEK[]<") else {
        let structure = if command.contains("BODYSTRUCTURE") {
            " BODYSTRUCTURE ((\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1)(\"application\" \"pdf\" NIL NIL NIL \"7bit\" 200) \"mixed\")"
        } else {
            ""
        };
        return format!(
            "* {number} FETCH (UID {uid} FLAGS (\\Seen) INTERNALDATE \" 3-Jan-2020 10:00:00 +0100\" RFC822.SIZE {}{structure})\r\n",
            text.len()
        );
    };
    let from: usize = range.split_once('.').unwrap().0.parse().unwrap();
    let piece = text.get(from..).unwrap_or_default();
    format!(
        "* {number} FETCH (UID {uid} BODY[]<{from}> {{{}}}\r\n{piece})\r\n",
        piece.len()
    )
}

/// A server, with the number of commands that it got and of responses that it sent.
struct Changed {
    server: Scripted,
    commands: Arc<AtomicUsize>,
    responses: Arc<AtomicUsize>,
    /// The response that was changed.
    was: Arc<Mutex<String>>,
}

fn changed(change: Change) -> Changed {
    let commands: Arc<AtomicUsize> = Arc::default();
    let count: Arc<AtomicUsize> = Arc::default();
    let was: Arc<Mutex<String>> = Arc::default();
    let (heard, said, changes) = (Arc::clone(&commands), Arc::clone(&count), Arc::clone(&was));
    let selected = Mutex::new(String::new());
    let server = Scripted::answering(move |command| {
        let number = heard.fetch_add(1, Ordering::SeqCst);
        let all = responses(command, &selected);
        if let Change::Refuse(wanted, condition) = change
            && wanted == number
        {
            *changes.lock().unwrap() = command.to_owned();
            let tag = if command == "greeting" { "*" } else { "TAG" };
            return Some(format!("{tag} {condition} not now\r\n"));
        }
        let mut text = String::new();
        for response in all {
            let number = said.fetch_add(1, Ordering::SeqCst);
            match change {
                // A response without an end is covered by another test.
                Change::Garble(wanted, garbling)
                    if wanted == number && response.starts_with("* ") =>
                {
                    *changes.lock().unwrap() = format!("{command}: {response}");
                    text.push_str(&garbling.of(&response));
                }
                _ => text.push_str(&response),
            }
        }
        Some(text)
    });
    Changed {
        server,
        commands,
        responses: count,
        was,
    }
}

struct Run {
    status: Option<i32>,
    said: String,
    /// Backup: the messages of each folder. Inspection: the number of messages.
    found: BTreeMap<String, Vec<String>>,
}

fn backup(server: &Scripted) -> Run {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let child = embody()
        .args(["convert", &server.url(""), "--allow-plaintext"])
        .args(["--timeout", "2s", "--connections", "1"])
        .args(["--password-command", "echo secret", "--output"])
        .arg(&out)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finished(child);
    Run {
        status: output.status.code(),
        said: stderr(&output),
        found: maildirs(&out),
    }
}

fn maildirs(out: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(out).into_iter().flatten() {
        let path = entry.unwrap().path();
        let entries = std::fs::read_dir(path.join("cur")).into_iter().flatten();
        let mails = entries.map(|mail| std::fs::read_to_string(mail.unwrap().path()).unwrap());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        found.insert(name, mails.collect());
    }
    found
}

fn inspection(server: &Scripted) -> Run {
    let child = embody()
        .args(["inspect", &server.url(""), "--allow-plaintext", "--json"])
        .args([
            "--timeout",
            "2s",
            "--connections",
            "1",
            "--larger-than",
            "10",
        ])
        .args(["--password-command", "echo secret"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finished(child);
    let written = String::from_utf8(output.stdout.clone()).unwrap();
    let rows = written.lines().map(|row| {
        let row = reports::object(row);
        let folder = row["folder"].as_str().unwrap().to_owned();
        let count = row["messages"].as_u64().unwrap();
        (folder, vec![String::new(); count as usize])
    });
    Run {
        status: output.status.code(),
        said: stderr(&output),
        found: rows.collect(),
    }
}

/// Returns whether no response shows that something is missing: LIST omits a folder, or reports it with another name.
fn is_hidden(change: Change, was: &str) -> bool {
    let hides = matches!(
        change,
        Change::Garble(_, Garbling::Dropped | Garbling::Nonsense)
    );
    hides && was.starts_with("LIST")
}

/// Returns whether a run reports that a folder cannot be read, or does not exist under the name in LIST.
fn is_list_named(said: &str) -> bool {
    said.contains("cannot read") || said.contains("the server refused EXAMINE")
}

/// Returns whether a change affects the whole account, so that no folder is found.
fn is_of_account(was: &str) -> bool {
    ["greeting", "AUTHENTICATE", "CAPABILITY"]
        .iter()
        .any(|it| was.starts_with(it))
}

/// Compares the result of a run with the content of the server. Everything that is missing must be reported, with status 1.
///
/// # Errors
/// The error of the run.
fn check(
    run: &Run,
    was: &str,
    is_named: impl Fn(&str, u32) -> bool,
    has: impl Fn(&str, u32) -> bool,
) -> Result<(), String> {
    let mut missing = Vec::new();
    for (folder, uids) in FOLDERS {
        for uid in uids {
            if !has(folder, *uid) {
                missing.push((folder, *uid));
            }
        }
    }
    if missing.is_empty() {
        return match run.status {
            Some(0 | 1) => Ok(()),
            _ => Err("it ended otherwise".into()),
        };
    }
    if run.status != Some(1) {
        return Err(format!("{missing:?} are missing, and the status is not 1"));
    }
    if is_of_account(was) {
        return if run.said.is_empty() {
            Err("it says nothing".into())
        } else {
            Ok(())
        };
    }
    for (folder, uid) in &missing {
        if !is_named(folder, *uid) {
            return Err(format!(
                "{uid} of {folder} is not named; {missing:?} are missing"
            ));
        }
    }
    // One bad response may affect only a message, or a folder if it belongs to a folder.
    let folders: BTreeSet<_> = missing.iter().map(|(folder, _)| folder).collect();
    let most = if was.contains("FETCH") && was.contains("* ") {
        1
    } else {
        3
    };
    if folders.len() > 1 || missing.len() > most {
        Err(format!("{missing:?} are missing"))
    } else {
        Ok(())
    }
}

/// Runs a session for each change, and reports all runs with errors.
fn each_change(
    run: impl Fn(&Scripted) -> Run + Sync,
    judge: impl Fn(&Run, &str) -> Result<(), String> + Sync,
) {
    let counts = changed(Change::Nothing);
    run(&counts.server);
    let commands = counts.commands.load(Ordering::SeqCst);
    let responses = counts.responses.load(Ordering::SeqCst);
    assert!(commands > 8 && responses > 30, "{commands} {responses}");
    let refused = (1..commands).flat_map(|at| ["NO", "BAD"].map(|it| Change::Refuse(at, it)));
    let garbled = (1..responses).flat_map(|at| GARBLINGS.map(|it| Change::Garble(at, it)));
    let changes: Vec<Change> = refused.chain(garbled).collect();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // Several runs at the same time, because they mostly wait.
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(change) = changes.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let changed = changed(*change);
                    let run = run(&changed.server);
                    let was = changed.was.lock().unwrap().clone();
                    if is_hidden(*change, &was) {
                        continue;
                    }
                    if let Err(why) = judge(&run, &was) {
                        let about = format!("{change:?}, {was:?}: {why}: {}", run.said);
                        wrong.lock().unwrap().push(about);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {}: {}",
        wrong.len(),
        changes.len(),
        wrong.join("\n")
    );
}

#[test]
fn backup_with_one_bad_response_saves_the_rest_and_names_what_is_missing() {
    each_change(backup, |run, was| {
        for (folder, mails) in &run.found {
            let entry = FOLDERS.iter().find(|(name, _)| name == folder);
            let uids = entry.map(|(_, uids)| *uids).unwrap_or_default();
            let is_one = |text: &String| uids.iter().any(|uid| mail(folder, *uid) == *text);
            if !mails.iter().all(is_one) {
                return Err(format!("{folder} has what the server has not: {mails:?}"));
            }
            let different: BTreeSet<_> = mails.iter().collect();
            if different.len() < mails.len() {
                return Err(format!("{folder} has a message twice"));
            }
        }
        let has = |folder: &str, uid: u32| {
            let mails = run.found.get(folder);
            mails.is_some_and(|mails| mails.contains(&mail(folder, uid)))
        };
        let is_named = |folder: &str, uid: u32| {
            let message = format!("/{folder};UIDVALIDITY=7/;UID={uid}: ");
            run.said.contains(&message)
                || run.said.contains(&format!("/{folder}: "))
                || was.starts_with("LIST") && is_list_named(&run.said)
        };
        check(run, was, is_named, has)
    });
}

#[test]
fn inspection_with_one_bad_response_counts_the_rest_and_names_what_is_missing() {
    each_change(inspection, |run, was| {
        let has = |folder: &str, uid: u32| {
            let (_, uids) = FOLDERS.iter().find(|(name, _)| *name == folder).unwrap();
            let at = uids.iter().position(|it| *it == uid).unwrap();
            run.found.get(folder).is_some_and(|mails| at < mails.len())
        };
        let is_named = |folder: &str, _| {
            run.said.contains(&format!("/{folder}: "))
                || was.starts_with("LIST") && is_list_named(&run.said)
        };
        check(run, was, is_named, has)
    });
}
