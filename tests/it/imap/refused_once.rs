//! A server refuses each command of a replacement once, with each response code and without one. No mail may be lost, no mail
//! may be duplicated after the next run, and a run with status 0 must not leave an unreported problem. Also tests incomplete
//! states: copies that another client marked, and journals of earlier versions.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sha2::{Digest as _, Sha256};

use super::mails::{command, rows};
use super::refusing::{DATE, Model, Nature, Stored};
use super::scripted::{CLOSE, Scripted};

/// Response codes of RFC 5530, and of other documents about these commands; no code, and BAD.
const CODES: [&str; 24] = [
    "",
    "BAD",
    "UNAVAILABLE",
    "AUTHENTICATIONFAILED",
    "AUTHORIZATIONFAILED",
    "EXPIRED",
    "PRIVACYREQUIRED",
    "CONTACTADMIN",
    "NOPERM",
    "INUSE",
    "EXPUNGEISSUED",
    "CORRUPTION",
    "SERVERBUG",
    "CLIENTBUG",
    "CANNOT",
    "LIMIT",
    "OVERQUOTA",
    "ALREADYEXISTS",
    "NONEXISTENT",
    "TRYCREATE",
    "READ-ONLY",
    "TOOBIG",
    "MODIFIED",
    "THROTTLED",
];

/// The fault of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The command is refused and not executed.
    Refused(&'static str),
    /// The command is refused, but executed.
    Done(&'static str),
    /// The connection breaks before the command is executed, or after it.
    BreakBefore,
    BreakAfter,
}

/// A run with a server that has this fault in the command with this number, counted from the first APPEND, and the run after
/// it.
struct Faulty {
    model: Arc<Mutex<Model>>,
    counted: Arc<AtomicUsize>,
    first: (i32, String),
    second: (i32, String),
    reported: bool,
}

fn detached(folder: &Path, server: &Scripted) -> (i32, String) {
    let output = command(folder, "detach", &server.url("INBOX"))
        .args(["--connections", "1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

fn faulty(nature: Nature, number: usize, fault: Fault) -> Faulty {
    let model = Arc::new(Mutex::new(Model::new(nature)));
    let counted = Arc::new(AtomicUsize::new(0));
    let (answering, counting) = (Arc::clone(&model), Arc::clone(&counted));
    let server = Scripted::answering(move |command| {
        let mut model = answering.lock().unwrap();
        let is_begun = counting.load(Ordering::SeqCst) > 0 || command.starts_with("APPEND");
        // The logins of new connections are not steps of a replacement.
        let is_step = ["APPEND", "UID", "NOOP"]
            .iter()
            .any(|verb| command.starts_with(verb));
        let is_hit = is_begun && is_step && counting.fetch_add(1, Ordering::SeqCst) + 1 == number;
        if !is_hit {
            return model.answer(command);
        }
        let code = match fault {
            Fault::BreakBefore => return Some(CLOSE.into()),
            Fault::BreakAfter => {
                model.answer(command);
                return Some(CLOSE.into());
            }
            Fault::Refused(code) => code,
            Fault::Done(code) => {
                model.answer(command);
                code
            }
        };
        Some(match code {
            "" => "TAG NO not now\r\n".into(),
            "BAD" => "TAG BAD not now\r\n".into(),
            code => format!("TAG NO [{code}] not now\r\n"),
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let first = detached(folder.path(), &server);
    let reported = !rows(folder.path()).is_empty();
    let between = counted.load(Ordering::SeqCst);
    let second = if between < number {
        // The command does not exist.
        first.clone()
    } else {
        detached(folder.path(), &server)
    };
    counted.store(between, Ordering::SeqCst);
    Faulty {
        model,
        counted,
        first,
        second,
        reported,
    }
}

/// Returns the error after both runs, if there is one.
fn trouble(nature: Nature, run: &Faulty) -> Option<String> {
    let model = run.model.lock().unwrap();
    let is_marked = |it: &&Stored| it.flags.iter().any(|flag| flag == "\\Deleted");
    let there: Vec<&Stored> = model.inbox.iter().filter(|it| !is_marked(it)).collect();
    let before = Model::new(nature);
    let old = &before.inbox[0];
    let [one] = there.as_slice() else {
        return Some(format!("{} messages", there.len()));
    };
    let is_whole = one.text == old.text || one.text.contains("X-Embody-Detached");
    if !is_whole || one.date != DATE {
        return Some(format!("another message, of {}", one.date));
    }
    let mut flags = (one.flags.clone(), old.flags.clone());
    flags.0.sort();
    flags.1.sort();
    if flags.0 != flags.1 {
        return Some(format!("flags {:?}", one.flags));
    }
    let labels = |it: &Stored| it.labels.contains("Work") && it.labels.contains("Important");
    if matches!(nature, Nature::Gmail { .. }) && !labels(one) {
        return Some(format!("labels {:?}", one.labels));
    }
    if model.inbox.len() > 1 {
        return Some("a message with \\Deleted stays".into());
    }
    if run.first.0 == 0 && !run.reported {
        return Some("status 0, and no row".into());
    }
    (run.second.0 != 0).then(|| "the second run fails".into())
}

fn all_faults() -> Vec<Fault> {
    let refused = CODES.into_iter().map(Fault::Refused);
    // MODIFIED means that the command was not executed, so a mark is that of another client.
    let done = ["", "UNAVAILABLE", "BAD"].map(Fault::Done);
    let breaks = [Fault::BreakBefore, Fault::BreakAfter];
    refused.chain(done).chain(breaks).collect()
}

fn refuses_each(nature: Nature) {
    let whole = faulty(nature, usize::MAX, Fault::BreakBefore);
    assert_eq!(whole.first.0, 0, "{}", whole.first.1);
    let commands = whole.counted.load(Ordering::SeqCst);
    assert!(commands >= 6, "{commands}");
    let cases: Vec<(usize, Fault)> = (1..=commands)
        .flat_map(|number| all_faults().into_iter().map(move |fault| (number, fault)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some((number, fault)) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let run = faulty(nature, *number, *fault);
                    if let Some(why) = trouble(nature, &run) {
                        let said = format!(
                            "command {number}, {fault:?}: {why}; {:?}, {:?}",
                            run.first, run.second
                        );
                        found.lock().unwrap().push(said);
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    eprintln!("{nature:?}: {} runs", cases.len());
    assert!(found.is_empty(), "{nature:?}:\n{}", found.join("\n"));
}

#[test]
fn a_command_that_is_refused_once_loses_and_doubles_nothing() {
    refuses_each(Nature::Honest);
}

#[test]
fn a_command_that_is_refused_once_at_gmail_loses_and_doubles_nothing() {
    refuses_each(Nature::Gmail { gives_back: false });
}

/// Returns a server that responds with `answer`, which can access the model, and otherwise as the model does.
pub(super) fn server(
    model: &Arc<Mutex<Model>>,
    answer: impl Fn(&mut Model, &str) -> Option<String> + Send + Sync + 'static,
) -> Scripted {
    let answering = Arc::clone(model);
    Scripted::answering(move |command| {
        let mut model = answering.lock().unwrap();
        answer(&mut model, command).or_else(|| model.answer(command))
    })
}

/// Writes a journal in the format of version 0.3.0.
fn journal(folder: &Path, server: &Scripted, step: &str, sha256: &str, size: usize) {
    let digest = Sha256::digest(format!("me 127.0.0.1 {}", server.port));
    let name: String = digest.iter().map(|octet| format!("{octet:02x}")).collect();
    let state = folder.join("state");
    std::fs::create_dir(&state).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).unwrap();
    let line = format!(
        "{{\"id\":0,\"open\":{{\"folder\":\"INBOX\",\"uidvalidity\":7,\"uid\":5,\"least\":6,\"sha256\":\"{sha256}\",\
         \"size\":{size},\"flags\":[\"\\\\Seen\",\"Keyword\"],\"date\":[\"{DATE}\",1578042000],\"step\":{step}}}}}\n"
    );
    std::fs::write(state.join(format!("imap-{name}.journal")), line).unwrap();
}

fn digest(text: &str) -> String {
    let digits = Sha256::digest(text.as_bytes());
    digits.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// According to the journal, the copy has UID 6, but new mail has this UID: the server was restored from a snapshot.
#[test]
fn different_message_at_the_uid_of_the_copy_is_kept() {
    for step in ["{\"appended\":6}", "{\"deleting\":6}", "{\"appended\":5}"] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let new = Stored {
            uid: 6,
            text: "Subject: new mail of today\r\n\r\nimportant\r\n".into(),
            ..model.lock().unwrap().inbox[0].clone()
        };
        {
            let mut model = model.lock().unwrap();
            model.inbox.push(new.clone());
            model.next = 7;
        }
        let server = server(&model, |_, _| None);
        let folder = tempfile::tempdir().unwrap();
        journal(folder.path(), &server, step, &digest("the copy"), 8);
        let (status, said) = detached(folder.path(), &server);
        assert_eq!(status, 1, "{step}: {said}");
        assert!(
            said.contains("belongs to a different message"),
            "{step}: {said}"
        );
        let model = model.lock().unwrap();
        assert_eq!(model.inbox.len(), 2, "{step}: {said}");
        let kept = model.inbox.iter().find(|it| it.uid == 6).unwrap();
        assert_eq!((&kept.text, &kept.flags), (&new.text, &new.flags), "{step}");
    }
}

/// A run of version 0.3.0 was killed, and then the user marked one of the two messages.
#[test]
fn of_original_and_copy_the_one_not_marked_deleted_is_kept() {
    for (marked, stays, status) in [(6, "old", 0), (5, "copy", 0)] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let copy = "Subject: the copy\r\nX-Embody-Detached: as a run made it\r\n\r\nhello\r\n";
        {
            let mut model = model.lock().unwrap();
            let copy = Stored {
                uid: 6,
                text: copy.into(),
                ..model.inbox[0].clone()
            };
            model.inbox.push(copy);
            model.next = 7;
            let it = model.inbox.iter_mut().find(|it| it.uid == marked).unwrap();
            it.flags.push("\\Deleted".into());
        }
        let server = server(&model, |_, _| None);
        let folder = tempfile::tempdir().unwrap();
        journal(
            folder.path(),
            &server,
            "{\"appended\":6}",
            &digest(copy),
            copy.len(),
        );
        let (found, said) = detached(folder.path(), &server);
        assert_eq!(found, status, "{marked}: {said}");
        let model = model.lock().unwrap();
        let unmarked = |it: &&Stored| !it.flags.contains(&"\\Deleted".to_owned());
        let there: Vec<&Stored> = model.inbox.iter().filter(unmarked).collect();
        assert_eq!(there.len(), 1, "{marked}: {:?}", model.inbox);
        // The original may have been replaced again.
        assert_eq!(there[0].text == copy, stays == "copy", "{marked}: {said}");
    }
}

/// The server refuses to mark the original, so the copy is marked. Then the connection breaks, or the server refuses again.
#[test]
fn a_copy_whose_removal_is_cut_short_does_not_take_the_original_with_it() {
    for says in [CLOSE, "TAG NO [INUSE] locked\r\n", "TAG NO locked\r\n"] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        let said = Mutex::new((false, false));
        let server = server(&model, move |_, command| {
            let (store, expunge) = &mut *said.lock().unwrap();
            if command.starts_with("UID STORE 5 +FLAGS") && !std::mem::replace(store, true) {
                return Some("TAG NO [INUSE] mailbox is locked\r\n".into());
            }
            let is_first =
                command.starts_with("UID EXPUNGE 6") && !std::mem::replace(expunge, true);
            is_first.then(|| says.to_owned())
        });
        let folder = tempfile::tempdir().unwrap();
        let first = detached(folder.path(), &server);
        let second = detached(folder.path(), &server);
        let model = model.lock().unwrap();
        assert_eq!(model.inbox.len(), 1, "{says:?}: {first:?} {second:?}");
        assert_eq!(model.inbox[0].flags, ["\\Seen", "Keyword"], "{says:?}");
    }
}

/// If the date of a message is invalid, the server gives the copy the current time.
#[test]
fn a_date_that_cannot_be_read_is_compared_as_it_stands() {
    for (date, now) in [
        ("03-Jan-2020 10:00:00 GMT", "25-Nov-2026 18:00:00 GMT"),
        ("03-Jan-2020 10:00:00", "25-Nov-2026 18:00:00"),
    ] {
        let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
        model.lock().unwrap().inbox[0].date = date.into();
        let server = server(&model, move |model, command| {
            if !command.starts_with("APPEND") {
                return None;
            }
            let said = model.answer(command);
            model.inbox.last_mut().unwrap().date = now.into();
            said
        });
        let folder = tempfile::tempdir().unwrap();
        let (status, said) = detached(folder.path(), &server);
        let row = rows(folder.path()).into_iter().next().unwrap_or_default();
        assert_eq!(row["reason"], "altered-by-server", "{date}: {said} {row}");
        assert_eq!(status, 0, "{date}: {said}");
        let model = model.lock().unwrap();
        assert_eq!(model.inbox.len(), 1, "{date}");
        assert_eq!((model.inbox[0].uid, &*model.inbox[0].date), (5, date));
    }
}

/// The server alters the new message, and the response to REPLACE does not arrive: the original is appended again, from a file.
/// If the server alters that, too, the file is kept.
#[test]
fn an_original_that_replace_took_away_is_put_back_or_kept_in_a_file() {
    for (alters_all, breaks) in [(false, false), (false, true), (true, false), (true, true)] {
        let model = Arc::new(Mutex::new(Model::new(Nature::QuotaFullWithReplace)));
        let original = model.lock().unwrap().inbox[0].text.clone();
        let server = server(&model, move |model, command| {
            let is_replace = command.starts_with("UID REPLACE");
            if !is_replace && !command.starts_with("APPEND") {
                return None;
            }
            let before = model.next;
            let said = model.answer(command);
            // The first APPEND exceeds the quota.
            let new = model.inbox.last_mut().filter(|it| it.uid >= before);
            if let Some(new) = new.filter(|_| is_replace || alters_all) {
                new.text.truncate(100);
            }
            if is_replace && breaks {
                Some(CLOSE.into())
            } else {
                said
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let output = command(folder.path(), "detach", &server.url("INBOX"))
            .arg("--replace")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let case = (alters_all, breaks);
        assert_eq!(output.status.code(), Some(1), "{case:?}: {said}");
        let row = rows(folder.path()).into_iter().next().unwrap_or_default();
        assert_eq!(row["reason"], "altered-by-server", "{case:?}: {said}");
        let files = std::fs::read_dir(folder.path().join("state")).unwrap();
        let kept: Vec<_> = files
            .map(|file| file.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "eml"))
            .collect();
        let model = model.lock().unwrap();
        let is_back = model.inbox.iter().any(|it| it.text == original);
        assert_eq!(is_back, !alters_all, "{case:?}: {said}");
        if !alters_all {
            assert!(kept.is_empty(), "{case:?}: {kept:?}")
        } else {
            assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), original);
            let name = kept[0].file_name().unwrap().to_string_lossy().into_owned();
            assert!(said.contains(&name), "{case:?}: {said}");
        }
    }
}

/// The server refuses to return the copy for longer than a run waits. After the next run, the message must not be duplicated.
#[test]
#[ignore = "a minute of pauses"]
fn replacement_with_an_unreadable_new_message_is_finished_by_the_next_run() {
    let model = Arc::new(Mutex::new(Model::new(Nature::Honest)));
    let refuses = Arc::new(Mutex::new(true));
    let refusing = Arc::clone(&refuses);
    let server = server(&model, move |_, command| {
        let is_copy = command.starts_with("UID FETCH 6 ") || command.starts_with("UID FETCH 5:6 ");
        (*refusing.lock().unwrap() && is_copy).then(|| "TAG NO [LIMIT] too fast\r\n".into())
    });
    let folder = tempfile::tempdir().unwrap();
    let (status, said) = detached(folder.path(), &server);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("the journal lists the unfinished changes"),
        "{said}"
    );
    *refuses.lock().unwrap() = false;
    let (status, said) = detached(folder.path(), &server);
    assert_eq!(status, 0, "{said}");
    let model = model.lock().unwrap();
    assert_eq!(model.inbox.len(), 1);
    assert_eq!(model.inbox[0].uid, 6);
}
