//! Servers and runs that can make one message of two, or two of one: servers that take messages with the same Message-ID for
//! the same message, change UIDs, report wrong UIDs or send wrong contents, and other runs of embody. No mail may be lost, and
//! a message that exists twice is named, with status 1.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::mails::{command, started};
use super::refused_once::server;
use super::refusing::{Model, Nature, Stored};
use super::scripted::{CLOSE, Scripted};
use crate::common::mta::eventually;

/// Text of the message in the model, without its attachment.
const DETACHED: &str = "X-Embody-Detached";

fn run_with(folder: &Path, verb: &str, url: &str, more: &[&str]) -> (i32, String) {
    let mut command = command(folder, verb, url);
    command.args(["--connections", "1"]).args(more);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

fn run(folder: &Path, verb: &str, server: &Scripted) -> (i32, String) {
    run_with(folder, verb, &server.url("INBOX"), &[])
}

/// Returns a folder with messages of the same size, date and flags, whose subjects contain `number 1`, `number 2` and so on.
fn several(count: u32) -> Arc<Mutex<Model>> {
    let mut model = Model::new(Nature::Honest);
    let one = model.inbox[0].clone();
    let numbered = (1..=count).map(|number| Stored {
        uid: number,
        text: one
            .text
            .replace("number 1 ", &format!("number {number} "))
            .replace("Message-ID: <1@", &format!("Message-ID: <{number}@")),
        ..one.clone()
    });
    model.inbox = numbered.collect();
    model.next = count + 1;
    Arc::new(Mutex::new(model))
}

/// Returns the messages without `\Deleted` whose subject contains this number.
fn of_number(model: &Model, number: u32) -> Vec<String> {
    let is_it = |it: &&Stored| {
        it.text.contains(&format!("number {number} ")) && !it.flags.contains(&"\\Deleted".into())
    };
    let found = model.inbox.iter().filter(is_it);
    found.map(|it| it.text.clone()).collect()
}

/// Changes the response to an APPEND, after the model executed it.
fn after_append(
    model: &mut Model,
    command: &str,
    change: impl FnOnce(&mut Model),
) -> Option<String> {
    if !command.starts_with("APPEND") {
        return None;
    }
    let said = model.answer(command);
    change(model);
    said
}

#[test]
fn server_that_takes_the_new_message_for_the_old_one_keeps_one_of_them() {
    for keeps_new in [false, true] {
        for is_announced in [false, true] {
            let case = format!("keeps new {keeps_new}, EXPUNGE {is_announced}");
            let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
            let server = server(&model, move |model, command| {
                let said = after_append(model, command, |model| {
                    let old = model.inbox.remove(0);
                    if !keeps_new {
                        model.inbox[0].text = old.text;
                    }
                })?;
                let expunge = if is_announced { "* 1 EXPUNGE\r\n" } else { "" };
                Some(format!("{expunge}{said}"))
            });
            let folder = tempfile::tempdir().unwrap();
            let (status, said) = run(folder.path(), "detach", &server);
            let model = model.lock().unwrap();
            assert_eq!(model.inbox.len(), 1, "{case}: {said}");
            let one = &model.inbox[0];
            assert_eq!(one.flags, ["\\Seen", "Keyword"], "{case}");
            assert_eq!(one.text.contains(DETACHED), keeps_new, "{case}: {said}");
            // The message may have been moved by another program.
            assert_eq!(status, 1, "{case}: {said}");
            assert!(said.contains("UID 5: "), "{case}: {said}");
        }
    }
}

#[test]
fn server_whose_uids_are_places_loses_no_message_of_equal_size() {
    for place in ["first", "before its twin", "after its twin", "last"] {
        let model = several(4);
        let server = server(&model, move |model, command| {
            let is_append = command.starts_with("APPEND");
            if !is_append && !command.starts_with("UID EXPUNGE") {
                return None;
            }
            let mut said = model.answer(command)?;
            if is_append {
                let new = model.inbox.pop().unwrap();
                let number = (1..=4).find(|number| new.text.contains(&format!("number {number} ")));
                let is_twin =
                    |it: &Stored| it.text.contains(&format!("number {} ", number.unwrap()));
                let twin = model.inbox.iter().position(is_twin).unwrap();
                let at = match place {
                    "first" => 0,
                    "before its twin" => twin,
                    "after its twin" => twin + 1,
                    _ => model.inbox.len(),
                };
                said = format!("TAG OK [APPENDUID 7 {}] done\r\n", at + 1);
                model.inbox.insert(at, new);
            }
            for (at, it) in (1..).zip(&mut model.inbox) {
                it.uid = at;
            }
            model.next = u32::try_from(model.inbox.len()).unwrap() + 1;
            Some(said)
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        assert_ne!(status, 0, "{place}: {said}");
        let model = model.lock().unwrap();
        for number in 1..=4 {
            assert!(
                !of_number(&model, number).is_empty(),
                "{place}: {number} is lost: {said}"
            );
        }
    }
}

#[test]
fn two_contents_for_one_uid_are_requested_again() {
    for (what, uid, instead) in [
        ("the first for both", "UID 1 ", "UID 2 "),
        ("the second for both", "UID 2 ", "UID 1 "),
    ] {
        let model = several(2);
        let is_told = AtomicBool::new(false);
        let server = server(&model, move |model, command| {
            let is_first = command.contains("BODY.PEEK[]") && !is_told.swap(true, Ordering::SeqCst);
            is_first.then(|| model.answer(command).unwrap().replace(uid, instead))
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        assert_eq!(status, 0, "{what}: {said}");
        let model = model.lock().unwrap();
        for number in [1, 2] {
            let found = of_number(&model, number);
            assert_eq!(found.len(), 1, "{what}: {number}: {said}");
            assert!(found[0].contains(DETACHED), "{what}: {said}");
        }
    }
}

/// The contents of two messages are exchanged when they are downloaded, which nothing in this response shows.
#[test]
fn content_of_another_message_removes_no_message() {
    let model = several(2);
    let is_told = AtomicBool::new(false);
    let server = server(&model, move |model, command| {
        let is_first = command.contains("BODY.PEEK[]") && !is_told.swap(true, Ordering::SeqCst);
        is_first.then(|| {
            let said = model.answer(command).unwrap();
            said.replace("UID 1 ", "UID x ")
                .replace("UID 2 ", "UID 1 ")
                .replace("UID x ", "UID 2 ")
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let (status, said) = run(folder.path(), "detach", &server);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("UID 1: ") && said.contains("UID 2: "),
        "{said}"
    );
    let model = model.lock().unwrap();
    let is_original = |text: &String| !text.contains(DETACHED);
    assert!(of_number(&model, 1).iter().any(is_original));
    assert!(of_number(&model, 2).iter().any(is_original));
}

#[test]
fn unreadable_response_before_the_removal_doubles_nothing() {
    let garbled = [
        r#"* 1 FETCH (UID 5 FLAGS (\Seen "x) INTERNALDATE "x")"#,
        "* 1 FETCH (UID 5 FLAGS (\\Seen {3}\r\n\"x) INTERNALDATE \"x\")",
        "* 1 FETCH (UID 5 FLAGS (\\Seen {1}\r\n\"xyz) INTERNALDATE \"x\")",
        "* 1 FETCH (UID 5 FLAGS ",
    ];
    // Each FETCH, STORE and SEARCH after APPEND.
    for number in 1..=6 {
        for line in garbled {
            let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
            let count = Mutex::new(None);
            let server = server(&model, move |model, command| {
                let count = &mut *count.lock().unwrap();
                if command.starts_with("APPEND") {
                    *count = Some(0);
                } else if let Some(count) = count.as_mut().filter(|_| command.starts_with("UID ")) {
                    *count += 1;
                    if *count == number {
                        model.answer(command);
                        return Some(format!("{line}\r\nTAG OK done\r\n"));
                    }
                }
                None
            });
            let folder = tempfile::tempdir().unwrap();
            let case = format!("command {number}, {line:?}");
            let (first, said) = run(folder.path(), "detach", &server);
            let count = model.lock().unwrap().inbox.len();
            assert!(count == 1 || first == 1, "{case}: {said}");
            let (_, again) = run(folder.path(), "detach", &server);
            let count = model.lock().unwrap().inbox.len();
            assert_eq!(count, 1, "{case}: {said}\n{again}");
        }
    }
}

#[test]
fn wrong_uid_of_the_new_message_doubles_nothing_and_removes_no_other_message() {
    for code in [
        "APPENDUID 9 7",
        "APPENDUID 7 99",
        "APPENDUID 7 6",
        "APPENDUID 7 5",
        "",
    ] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let server = server(&model, move |model, command| {
            if !command.starts_with("APPEND") {
                return None;
            }
            // Another message arrives at the same time.
            let foreign = Stored {
                uid: model.next,
                text: "Message-ID: <foreign@x>\r\nSubject: important\r\n\r\nhello\r\n".into(),
                ..model.inbox[0].clone()
            };
            model.next += 1;
            model.inbox.push(foreign);
            model.answer(command);
            Some(format!("TAG OK [{code}] done\r\n").replace("[] ", ""))
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        assert_eq!(status, 0, "{code}: {said}");
        let model = model.lock().unwrap();
        let uids: Vec<u32> = model.inbox.iter().map(|it| it.uid).collect();
        assert_eq!(uids, [6, 7], "{code}: {said}");
        assert!(model.inbox[1].text.contains(DETACHED), "{code}: {said}");
    }
}

/// The server alters the new message and reports a wrong UID, so the new message cannot be found.
#[test]
fn altered_new_message_under_an_unknown_uid_is_named() {
    let model = Arc::new(Mutex::new(Model::new(Nature::OtherOctets)));
    let server = server(&model, |model, command| {
        let said = after_append(model, command, |_| {})?;
        Some(said.replace("APPENDUID 7 6", "APPENDUID 7 99"))
    });
    let folder = tempfile::tempdir().unwrap();
    let (status, said) = run(folder.path(), "detach", &server);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("UID 5: ") && said.contains("UID 6"), "{said}");
    assert_eq!(model.lock().unwrap().inbox.len(), 2);
}

/// Kills a run after it appended the new message and noted its UID.
fn killed_after_append(folder: &Path, model: &Arc<Mutex<Model>>) -> Scripted {
    let is_noted = Arc::new(AtomicBool::new(false));
    let is_killed = Arc::new(AtomicBool::new(false));
    let (noted, killed) = (Arc::clone(&is_noted), Arc::clone(&is_killed));
    let is_appended = AtomicBool::new(false);
    let server = server(model, move |_, command| {
        if killed.load(Ordering::SeqCst) {
            return None;
        }
        if is_appended.load(Ordering::SeqCst) {
            noted.store(true, Ordering::SeqCst);
            return Some(CLOSE.into());
        }
        if command.starts_with("APPEND") {
            is_appended.store(true, Ordering::SeqCst);
        }
        None
    });
    let mut child = started(folder, "detach", &server.url("INBOX"));
    eventually(30, "the new message is appended", || {
        is_noted.load(Ordering::SeqCst)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    is_killed.store(true, Ordering::SeqCst);
    server
}

/// A server on which runs are killed.
struct KillingServer {
    server: Scripted,
    /// Start of the command at which the next run is killed, and whether the server executes this command.
    at: Arc<Mutex<Option<(&'static str, bool)>>>,
    is_sent: Arc<AtomicBool>,
}

impl KillingServer {
    fn of(model: &Arc<Mutex<Model>>) -> Self {
        let at = Arc::new(Mutex::new(None::<(&str, bool)>));
        let is_sent = Arc::new(AtomicBool::new(false));
        let (begin, sent) = (Arc::clone(&at), Arc::clone(&is_sent));
        let server = server(model, move |model, command| {
            if let Some((first, is_executed)) = *begin.lock().unwrap()
                && command.starts_with(first)
                && !sent.swap(true, Ordering::SeqCst)
                && is_executed
            {
                model.answer(command);
            }
            // No connection of the killed run gets another response.
            sent.load(Ordering::SeqCst).then(|| CLOSE.into())
        });
        Self {
            server,
            at,
            is_sent,
        }
    }

    /// Kills a run when it sends a command that begins with `first`.
    fn kill(&self, folder: &Path, first: &'static str, is_executed: bool) {
        *self.at.lock().unwrap() = Some((first, is_executed));
        let mut child = started(folder, "detach", &self.server.url("INBOX"));
        eventually(30, "the command is sent", || {
            self.is_sent.load(Ordering::SeqCst)
        });
        child.kill().unwrap();
        child.wait().unwrap();
        *self.at.lock().unwrap() = None;
        self.is_sent.store(false, Ordering::SeqCst);
    }
}

/// Another program, such as a Sieve script of the server, moves the new message to another folder.
#[test]
fn new_message_that_leaves_the_folder_is_named() {
    for number in 0..8 {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let count = Mutex::new(None);
        let server = server(&model, move |model, command| {
            let count = &mut *count.lock().unwrap();
            let is_hit = *count == Some(number);
            *count = count.map(|count| count + 1);
            let said = model.answer(command);
            if command.starts_with("APPEND") {
                *count = Some(1);
            }
            if is_hit || number == 0 && command.starts_with("APPEND") {
                model.inbox.retain(|it| it.uid == 5);
            }
            said
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        assert_eq!(status, 1, "{number}: {said}");
        assert!(said.contains("UID 5: "), "{number}: {said}");
        assert!(said.contains("folder"), "{number}: {said}");
    }
}

#[test]
fn new_message_that_leaves_the_folder_between_two_runs_is_named() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let folder = tempfile::tempdir().unwrap();
    let server = killed_after_append(folder.path(), &model);
    model.lock().unwrap().inbox.retain(|it| it.uid == 5);
    for expected in [1, 0] {
        let (status, said) = run(folder.path(), "detach", &server);
        assert_eq!(status, expected, "{said}");
        let is_named = said.contains("UID 5: ") && said.contains("exists twice");
        assert_eq!(is_named, expected == 1, "{said}");
        let model = model.lock().unwrap();
        assert_eq!(model.inbox.len(), 1, "{said}");
        assert!(model.inbox[0].text.contains(DETACHED), "{said}");
    }
}

/// Dovecot executes FETCH and UID EXPUNGE together, and reports the removal before the end of FETCH. pymap does the same if
/// another program removed the message, and adds a response code.
#[test]
fn removal_by_another_program_during_the_last_fetch_is_named() {
    for (report, code, expected) in [
        ("* 1 EXPUNGE", "", 0),
        ("* 1 EXPUNGE", "[EXPUNGEISSUED] ", 1),
        ("* VANISHED 5", "", 0),
        ("* VANISHED 5", "[EXPUNGEISSUED] ", 1),
    ] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let server = server(&model, move |model, command| {
            if command.starts_with("UID EXPUNGE 5") {
                return Some("TAG OK done\r\n".into());
            }
            let said = model.answer(command)?;
            if command != "UID FETCH 5 (UID FLAGS)" {
                return Some(said);
            }
            model.inbox.retain(|it| it.uid != 5);
            Some(said.replace("TAG OK ", &format!("{report}\r\nTAG OK {code}")))
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        assert_eq!(status, expected, "{report} {code}: {said}");
        assert_eq!(said.contains("UID 5: "), expected == 1, "{said}");
        assert_eq!(model.lock().unwrap().inbox.len(), 1, "{said}");
    }
}

/// pymap accepts STORE and FETCH for a message that another program has removed, adds a response code, and reports the removal
/// during UID EXPUNGE.
#[test]
fn removal_by_another_program_that_the_server_reports_late_is_named() {
    for (stored, fetched) in [(true, true), (false, true), (true, false), (false, false)] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let server = server(&model, move |model, command| {
            let said = model.answer(command)?;
            let is_mark = command.starts_with("UID STORE 5 ") && command.contains("\\Deleted");
            let is_fetch = command == "UID FETCH 5 (UID FLAGS)";
            if command.starts_with("UID EXPUNGE 5") {
                return Some("* 1 EXPUNGE\r\nTAG OK done\r\n".into());
            }
            if stored && is_mark || fetched && is_fetch {
                return Some(said.replace("TAG OK ", "TAG OK [EXPUNGEISSUED] "));
            }
            Some(said)
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        let is_named = fetched;
        assert_eq!(status, i32::from(is_named), "{stored} {fetched}: {said}");
        assert_eq!(said.contains("UID 5: "), is_named, "{said}");
        assert_eq!(model.lock().unwrap().inbox.len(), 1, "{said}");
    }
}

/// The first search after the replacement lists a message whose Message-ID the server does not send, or not yet.
#[test]
fn message_that_disappears_after_the_search_for_other_copies_is_not_named_as_a_copy() {
    for (is_there, is_sent_later, expected) in
        [(true, false, 1), (true, true, 0), (false, false, 0)]
    {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let server = server(&model, move |model, command| {
            let said = model.answer(command);
            if is_sent_later && command.starts_with("UID FETCH 9 ") {
                let field = "BODY[HEADER.FIELDS (MESSAGE-ID)] {23}\r\nMessage-ID: <other@x>\r\n";
                return Some(format!("* 9 FETCH (UID 9 {field})\r\nTAG OK done\r\n"));
            }
            let is_of_range = command.ends_with(":* UNDELETED");
            let is_again = command == "UID SEARCH UID 9 UNDELETED";
            if is_again {
                let found = if is_there { " 9" } else { "" };
                return Some(format!("* SEARCH{found}\r\nTAG OK done\r\n"));
            }
            if is_of_range && command.starts_with("UID SEARCH UID 6") {
                return Some("* SEARCH 6 9\r\nTAG OK done\r\n".into());
            }
            said
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = run(folder.path(), "detach", &server);
        assert_eq!(status, expected, "{is_there} {is_sent_later}: {said}");
        assert_eq!(said.contains("UID 6, 9"), expected == 1, "{said}");
        assert_eq!(model.lock().unwrap().inbox.len(), 1, "{said}");
    }
}

#[test]
fn flag_that_the_new_message_loses_after_the_last_check_stays_lost() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let server = server(&model, |model, command| {
        let said = model.answer(command);
        if command.starts_with("UID EXPUNGE 5") {
            model.inbox[0].flags = vec!["Keyword".into()];
        }
        said
    });
    let folder = tempfile::tempdir().unwrap();
    let (status, said) = run(folder.path(), "detach", &server);
    assert_eq!(status, 0, "{said}");
    let model = model.lock().unwrap();
    assert!(model.inbox[0].text.contains(DETACHED), "{said}");
    assert_eq!(model.inbox[0].flags, ["Keyword"], "{said}");
}

#[test]
fn replacement_of_a_killed_run_is_finished_under_another_name_of_the_server() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let folder = tempfile::tempdir().unwrap();
    let server = killed_after_append(folder.path(), &model);
    let other = server.url("INBOX").replace("127.0.0.1", "localhost");
    for url in [other, server.url("INBOX")] {
        let (status, said) = run_with(folder.path(), "detach", &url, &[]);
        assert_eq!(status, 0, "{url}: {said}");
        let model = model.lock().unwrap();
        assert_eq!(model.inbox.len(), 1, "{url}: {said}");
        assert!(model.inbox[0].text.contains(DETACHED));
    }
}

/// The store is lost after the new message was appended. The old message then contains the attachment, and no run may
/// delete it.
#[test]
fn original_of_a_killed_run_is_kept_until_the_store_contains_its_attachment() {
    for verb in ["detach", "restore", "embed"] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let folder = tempfile::tempdir().unwrap();
        let server = killed_after_append(folder.path(), &model);
        let store = folder.path().join("store");
        std::fs::remove_dir_all(&store).unwrap();
        if verb == "restore" {
            std::fs::create_dir(&store).unwrap();
        }
        let (status, said) = run_with(folder.path(), verb, &server.url("INBOX"), &[]);
        assert_eq!(status, 1, "{verb}: {said}");
        let is_named = said.contains("UID 5: ") && said.contains("(UID 6)");
        assert!(
            is_named && said.contains("with the store of the interrupted run"),
            "{verb}: {said}"
        );
        assert_eq!(model.lock().unwrap().inbox.len(), 2, "{verb}: {said}");
        // `detach` stores the attachments of the old message again.
        let mut statuses = Vec::new();
        for _ in 0..2 {
            let (again, text) = run(folder.path(), "detach", &server);
            statuses.push(again);
            eprintln!("{verb}: {text}");
        }
        assert_eq!(statuses[1], 0, "{verb}: {statuses:?}");
        let left = model.lock().unwrap();
        assert_eq!(left.inbox.len(), 1, "{verb}");
        assert!(left.inbox[0].text.contains(DETACHED), "{verb}");
    }
}

/// The run is killed before or after the original is marked, and another program moves the original to another folder.
#[test]
fn original_that_is_moved_before_the_killed_run_deleted_it_is_named() {
    for is_marked in [false, true] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let folder = tempfile::tempdir().unwrap();
        let killing = KillingServer::of(&model);
        killing.kill(folder.path(), "UID STORE 5 +FLAGS", is_marked);
        model.lock().unwrap().inbox.retain(|it| it.uid != 5);
        for expected in [1, 0] {
            let (status, said) = run(folder.path(), "detach", &killing.server);
            assert_eq!(status, expected, "{is_marked}: {said}");
            let is_named = said.contains("UID 5: ") && said.contains("exists twice");
            assert_eq!(is_named, expected == 1, "{is_marked}: {said}");
            assert_eq!(model.lock().unwrap().inbox.len(), 1, "{is_marked}: {said}");
        }
    }
}

/// Between two runs, the folder gets another UIDVALIDITY, and the new message disappears. The only copy of the message has
/// the `\Deleted` of the killed run.
#[test]
fn original_with_the_mark_of_a_killed_run_is_unmarked_or_named_if_its_folder_is_created_again() {
    for is_found in [true, false] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let folder = tempfile::tempdir().unwrap();
        let killing = KillingServer::of(&model);
        killing.kill(folder.path(), "UID STORE 5 +FLAGS", true);
        {
            let mut changed = model.lock().unwrap();
            changed.uidvalidity = 8;
            changed.inbox.retain(|it| it.uid == 5);
            if !is_found {
                changed.inbox.clear();
            }
        }
        let mut runs = Vec::new();
        for _ in 0..2 {
            runs.push(run(folder.path(), "detach", &killing.server));
        }
        let left = model.lock().unwrap();
        let (status, said) = &runs[0];
        assert_eq!(*status, 1, "{said}");
        assert!(said.contains("UID 5: "), "{said}");
        if is_found {
            assert!(said.contains("not marked as deleted any more"), "{said}");
            assert_eq!(left.inbox.len(), 1, "{runs:?}");
            assert!(!left.inbox[0].flags.contains(&"\\Deleted".into()));
            assert_eq!(runs[1].0, 0, "{runs:?}");
        } else {
            assert!(said.contains("remove the mark"), "{said}");
            assert!(said.contains("delete the journal"), "{said}");
            assert!(
                runs[1].0 == 1 && runs[1].1.contains("remove the mark"),
                "{runs:?}"
            );
        }
    }
}

/// A run names a doubled message, and is killed before it ends: it has no exit status, so the next run names the message
/// again.
#[test]
fn doubled_message_of_a_run_that_is_killed_later_is_named_again() {
    let model = several(2);
    let folder = tempfile::tempdir().unwrap();
    let killing = KillingServer::of(&model);
    killing.kill(folder.path(), "UID STORE 1 +FLAGS", true);
    model.lock().unwrap().inbox.retain(|it| it.uid != 1);
    // The second run names message 1, and is killed at the replacement of message 2.
    killing.kill(folder.path(), "APPEND", false);
    for expected in [1, 0] {
        let (status, said) = run(folder.path(), "detach", &killing.server);
        assert_eq!(status, expected, "{said}");
        let is_named = said.contains("UID 1: ") && said.contains("exists twice");
        assert_eq!(is_named, expected == 1, "{said}");
    }
}

/// Another account with the same UIDVALIDITY and UIDs, and a message that differs.
#[test]
fn journal_of_another_account_is_left_alone() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let folder = tempfile::tempdir().unwrap();
    let first = killed_after_append(folder.path(), &model);
    let other = several(1);
    other.lock().unwrap().inbox[0].uid = 5;
    other.lock().unwrap().next = 6;
    let second = server(&other, |_, _| None);
    let (status, said) = run(folder.path(), "detach", &second);
    assert_eq!(status, 0, "{said}");
    assert!(!said.contains("an earlier run"), "{said}");
    let (status, said) = run(folder.path(), "detach", &first);
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("an earlier run"), "{said}");
    assert_eq!(model.lock().unwrap().inbox.len(), 1, "{said}");
}

#[test]
fn new_message_of_a_killed_run_with_another_state_directory_is_named() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let folder = tempfile::tempdir().unwrap();
    let server = killed_after_append(folder.path(), &model);
    let state = folder.path().join("other");
    let more = ["--state", state.to_str().unwrap()];
    let (status, said) = run_with(folder.path(), "detach", &server.url("INBOX"), &more);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("UID 5: ") && said.contains("UID 6, 7"),
        "{said}"
    );
}

/// Both runs have appended their new messages and marked the old one. One of them removes it, and the other one removes
/// nothing.
#[test]
fn message_that_two_runs_replace_at_the_same_time_is_named() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let folder = tempfile::tempdir().unwrap();
    let folders = ["a", "b"].map(|name| {
        let path = folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    });
    // The steps at which the first run waits for the second one, and the second one for the first.
    let is_looking = Arc::new(AtomicBool::new(false));
    let is_removing = Arc::new(AtomicBool::new(false));
    let is_over = Arc::new(AtomicBool::new(false));
    let [looking, removing, over] = [&is_looking, &is_removing, &is_over].map(Arc::clone);
    let answering = Arc::clone(&model);
    let server = Scripted::answering(move |command| {
        let is_first = command.starts_with("UID FETCH 5:6 (UID FLAGS");
        let said = || answering.lock().unwrap().answer(command);
        if is_first && !looking.swap(true, Ordering::SeqCst) {
            let said = said();
            eventually(30, "the second run removes the old message", || {
                removing.load(Ordering::SeqCst)
            });
            return said;
        }
        if command.starts_with("UID EXPUNGE 5") && !removing.swap(true, Ordering::SeqCst) {
            eventually(30, "the first run ends", || over.load(Ordering::SeqCst));
            return Some("TAG OK done\r\n".into());
        }
        said()
    });
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&folders[0], "detach", &server));
        eventually(30, "the first run has appended", || {
            is_looking.load(Ordering::SeqCst)
        });
        let second = scope.spawn(|| run(&folders[1], "detach", &server));
        let first = first.join().unwrap();
        std::thread::sleep(Duration::from_millis(10));
        is_over.store(true, Ordering::SeqCst);
        (first, second.join().unwrap())
    });
    assert_eq!(model.lock().unwrap().inbox.len(), 2, "{first:?} {second:?}");
    for (status, said) in [first, second] {
        assert_eq!(status, 1, "{said}");
        assert!(said.contains("UID 5: "), "{said}");
    }
}
