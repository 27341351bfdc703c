//! Searches and lists of a server that omit some messages and folders: all of them are read or reported.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::accounts::{Account, Place, mail, texts};
use super::hostile::{Run, converted, converted_with, mails};
use super::scripted::{MESSAGES, Scripted, body, metadata, plain};
use crate::common::programs::{embody, stderr};
use crate::common::reports;

fn assert_all(run: &Run, about: &str) {
    assert_eq!(run.output.status.code(), Some(0), "{about}: {}", run.said);
    assert_eq!(run.mails, MESSAGES, "{about}");
}

#[test]
fn search_with_fewer_messages_than_exists_is_completed_by_number() {
    for says in [
        "* SEARCH 2\r\nTAG OK done\r\n",
        "* SEARCH\r\nTAG OK done\r\n",
        "TAG OK done\r\n",
        "* SEARCH 2\r\nTAG OK [MESSAGELIMIT 1 2] done\r\n",
        "* ESEARCH (TAG \"TAG\") UID ALL 1:2\r\nTAG OK done\r\n",
        "* ESEARCH (TAG \"TAG\") UID ALL 2\r\nTAG OK done\r\n",
        "* ESEARCH (TAG \"TAG\") UID\r\nTAG OK done\r\n",
        "* SEARCH 1 x\r\nTAG OK done\r\n",
        "* SEARCH 99999999999\r\nTAG OK done\r\n",
        "TAG NO [SERVERBUG] later\r\n",
        "TAG BAD what\r\n",
    ] {
        let server = Scripted::instead("UID SEARCH", says);
        assert_all(&converted(&server), says);
        let options = ["--since", "2020-01-03", "--before", "2020-01-04"];
        assert_all(&converted_with(&server.url(""), &options), says);
        let inspected = embody()
            .args(["inspect", &server.url(""), "--allow-plaintext", "--json"])
            .args(["--password-command", "echo secret"])
            .output()
            .unwrap();
        let row = reports::object(&inspected.stdout);
        assert_eq!(row["messages"], 2, "{says}: {}", stderr(&inspected));
        assert_eq!(inspected.status.code(), Some(0), "{says}");
    }
    // For a server with complete results, one command is sufficient.
    let server = Scripted::answering(|_| None);
    assert_all(&converted(&server), "plain");
    let heard = server.heard();
    let searches = heard.iter().filter(|it| it.starts_with("UID SEARCH"));
    assert_eq!(searches.count(), 1, "{heard:?}");
    assert!(
        !heard
            .iter()
            .any(|it| it.starts_with("FETCH") || it == "NOOP")
    );
}

#[test]
fn ranges_of_esearch_list_all_messages_and_wrong_ones_are_not_trusted() {
    for (says, searches) in [
        ("* ESEARCH (TAG \"TAG\") UID ALL 1:2\r\nTAG OK done\r\n", 1),
        ("* SEARCH 1 2\r\nTAG OK done\r\n", 1),
        ("* ESEARCH (TAG \"TAG\") UID ALL 2\r\nTAG OK done\r\n", 1),
        ("* ESEARCH (TAG \"TAG\") UID\r\nTAG OK done\r\n", 1),
        // A range over UIDs that do not exist.
        ("* ESEARCH (TAG \"TAG\") UID ALL 1:7\r\nTAG OK done\r\n", 2),
        ("TAG BAD what\r\n", 2),
        ("TAG NO no\r\n", 2),
    ] {
        let server = Scripted::answering(move |command| match command {
            "greeting" => {
                Some("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR ESEARCH] hi\r\n".into())
            }
            "CAPABILITY" => {
                Some("* CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR ESEARCH\r\nTAG OK done\r\n".into())
            }
            "UID SEARCH RETURN (ALL) ALL" => Some(says.into()),
            _ => None,
        });
        assert_all(&converted(&server), says);
        let heard = server.heard();
        let sent = heard.iter().filter(|it| it.starts_with("UID SEARCH"));
        assert_eq!(sent.count(), searches, "{says}: {heard:?}");
    }
}

#[test]
fn search_by_day_without_a_result_is_repeated_once() {
    let searches = AtomicUsize::new(0);
    let server = Scripted::answering(move |command| {
        let is_search = command.starts_with("UID SEARCH");
        let is_first = is_search && searches.fetch_add(1, Ordering::SeqCst) == 0;
        is_first.then(|| "TAG OK done\r\n".into())
    });
    let options = ["--since", "2020-01-03", "--before", "2020-01-04"];
    assert_all(&converted_with(&server.url(""), &options), "no result");
}

#[test]
fn number_of_messages_that_falls_without_expunge_is_not_believed() {
    let server = Scripted::answering(|command| {
        let is_opened = command.starts_with("EXAMINE");
        is_opened.then(|| plain(command).replace("TAG OK", "* 0 EXISTS\r\nTAG OK"))
    });
    assert_all(&converted(&server), "EXISTS falls");
}

#[test]
fn messages_that_a_server_counts_and_never_shows_are_counted_and_the_status_is_1() {
    for numbers in ["TAG OK done\r\n", "TAG NO no\r\n", "TAG BAD no\r\n"] {
        let server = Scripted::answering(move |command| match command {
            it if it.starts_with("UID SEARCH") => Some("* SEARCH 2\r\nTAG OK done\r\n".into()),
            it if it.starts_with("FETCH") => Some(numbers.into()),
            _ => None,
        });
        let run = converted(&server);
        assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
        assert!(
            run.said
                .contains("/INBOX: the server announced 1 message more"),
            "{}",
            run.said
        );
        assert_eq!(run.mails, MESSAGES[1..]);
        let inspected = embody()
            .args(["inspect", &server.url(""), "--allow-plaintext"])
            .args(["--password-command", "echo secret"])
            .output()
            .unwrap();
        assert_eq!(inspected.status.code(), Some(1), "{}", stderr(&inspected));
        assert!(stderr(&inspected).contains("announced 1 message more"));
        let changed = embody()
            .args(["embed", "--in-place", "--dry-run", &server.url("")])
            .args(["--allow-plaintext", "--password-command", "echo secret"])
            .output()
            .unwrap();
        assert_eq!(changed.status.code(), Some(1), "{}", stderr(&changed));
        assert!(stderr(&changed).contains("announced 1 message more"));
    }
}

#[test]
fn count_of_a_hostile_server_costs_a_bounded_number_of_commands() {
    let server = Scripted::answering(|command| {
        let is_opened = command.starts_with("EXAMINE");
        is_opened.then(|| plain(command).replace("* 2 EXISTS", "* 4294967295 EXISTS"))
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
    assert!(
        run.said.contains("announced 4294967293 messages more"),
        "{}",
        run.said
    );
    assert_eq!(run.mails, MESSAGES);
    assert!(server.heard().len() < 1000, "{}", server.heard().len());
}

#[test]
fn messages_that_are_expunged_between_select_and_search_are_no_trouble() {
    for (search, noop) in [
        ("* SEARCH 1\r\n* 2 EXPUNGE\r\nTAG OK done\r\n", ""),
        ("* 2 EXPUNGE\r\n* SEARCH 1\r\nTAG OK done\r\n", ""),
        ("* SEARCH 1\r\nTAG OK done\r\n", "* 2 EXPUNGE\r\n"),
    ] {
        let server = Scripted::answering(move |command| match command {
            it if it.starts_with("UID SEARCH") => Some(search.into()),
            it if it.starts_with("FETCH") => Some("* 1 FETCH (UID 1)\r\nTAG OK done\r\n".into()),
            "NOOP" => Some(format!("{noop}TAG OK done\r\n")),
            _ => None,
        });
        let run = converted(&server);
        assert_eq!(run.output.status.code(), Some(0), "{search}: {}", run.said);
        assert_eq!(run.mails, MESSAGES[..1]);
    }
}

#[test]
fn header_search_that_finds_nothing_is_checked_by_structure() {
    for (structure, is_read) in [("html", true), ("plain", false)] {
        let server = Scripted::answering(move |command| {
            if command.starts_with("UID SEARCH") && command.contains("HEADER") {
                return Some("* SEARCH\r\nTAG OK done\r\n".into());
            }
            let is_structure = command.contains("BODYSTRUCTURE");
            is_structure.then(|| plain(command).replace("\"plain\"", &format!("\"{structure}\"")))
        });
        let run = embody()
            .args(["embed", "--in-place", "--dry-run", &server.url("")])
            .args(["--allow-plaintext", "--password-command", "echo secret"])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
        let heard = server.heard();
        let is_asked = heard.iter().any(|it| it.contains("BODY.PEEK[]"));
        assert_eq!(is_asked, is_read, "{structure}: {heard:?}");
    }
}

#[test]
fn messages_without_a_date_or_a_size_are_saved_with_the_date_of_their_header() {
    const RECEIVED: &str = "Received: by b; Fri, 02 May 2003 10:11:12 +0000\r\nReceived: by a; Fri, 02 May 2003 09:00:00 +0000\r\n\
        Date: Thu, 1 May 2003 10:11:12 +0000\r\n\r\nhello\r\n";
    let date = "INTERNALDATE \" 3-Jan-2020 10:00:00 +0100\" ";
    for (from, to) in [
        (date, "INTERNALDATE NIL "),
        (date, "INTERNALDATE \"\" "),
        (date, "INTERNALDATE \"00-Jan-0000 00:00:00 +0000\" "),
        (date, ""),
    ] {
        let told = format!("RFC822.SIZE {}", RECEIVED.len());
        for size in [told.as_str(), "RFC822.SIZE NIL", "", "RFC822.SIZE 0"] {
            let (told, size) = (told.clone(), size.to_owned());
            let server = Scripted::answering(move |command| {
                if command.contains("BODY.PEEK[]<0.") {
                    let length = RECEIVED.len();
                    let dated =
                        format!("* 1 FETCH (UID 1 BODY[]<0> {{{length}}}\r\n{RECEIVED})\r\n");
                    return Some(format!("{dated}{}TAG OK done\r\n", body(2)));
                }
                let says = metadata(&[1]).replace(from, to);
                let says =
                    says.replace(&MESSAGES[0].len().to_string(), &RECEIVED.len().to_string());
                let says = says.replace(&told, &size) + &metadata(&[2]);
                let is_asked = command.starts_with("UID FETCH") && !command.contains("BODY.PEEK");
                is_asked.then(|| says + "TAG OK done\r\n")
            });
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out");
            for _ in 0..2 {
                let output = saved(&server, &out);
                assert_eq!(output.status.code(), Some(0), "{to:?}: {}", stderr(&output));
                let names: Vec<_> = mails(&out)
                    .iter()
                    .map(|it| it.file_name().unwrap().to_str().unwrap().to_owned())
                    .collect();
                assert_eq!(names.len(), 2, "{names:?}");
                assert!(
                    names[0].starts_with("1051870272.V7U1.embody,"),
                    "{to:?}: {names:?}"
                );
                assert_eq!(fs::read_to_string(&mails(&out)[0]).unwrap(), RECEIVED);
            }
        }
    }
}

fn saved(server: &Scripted, out: &Path) -> std::process::Output {
    embody()
        .args(["convert", &server.url(""), "--allow-plaintext"])
        .args(["--password-command", "echo secret", "--output"])
        .arg(out)
        .output()
        .unwrap()
}

#[test]
fn body_shorter_than_its_size_is_named_and_read_again_in_the_next_run() {
    let bodies = AtomicUsize::new(0);
    let server = Scripted::answering(move |command| {
        let size = |command: &str| {
            let says = plain(command);
            says.replace(
                &format!("RFC822.SIZE {}", MESSAGES[0].len()),
                "RFC822.SIZE 200",
            )
        };
        if !command.contains("BODY.PEEK[]") {
            return command.starts_with("UID FETCH").then(|| size(command));
        }
        // The second run gets the complete body.
        let long = format!("{}{}", MESSAGES[0], "x".repeat(200 - MESSAGES[0].len()));
        let is_later = bodies.fetch_add(1, Ordering::SeqCst) >= 3;
        let is_first = command.contains("FETCH 1") && command.contains("<0.");
        let more = if command.contains("1:2") {
            body(2)
        } else {
            String::new()
        };
        (is_later && is_first).then(|| {
            format!("* 1 FETCH (UID 1 BODY[]<0> {{200}}\r\n{long})\r\n{more}TAG OK done\r\n")
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let first = saved(&server, &out);
    assert_eq!(first.status.code(), Some(1), "{}", stderr(&first));
    let named = format!(
        ";UID=1: the server announced 200 bytes for the message but sent {}",
        MESSAGES[0].len()
    );
    assert!(stderr(&first).contains(&named), "{}", stderr(&first));
    let names = mails(&out);
    assert!(
        names[0].to_str().unwrap().contains(".embody-short,"),
        "{names:?}"
    );
    assert_eq!(fs::read_to_string(&names[0]).unwrap(), MESSAGES[0]);
    let second = saved(&server, &out);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    let names = mails(&out);
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::read_to_string(&names[0]).unwrap().len(), 200);
    assert!(!names[0].to_str().unwrap().contains("short"), "{names:?}");
}

#[test]
fn message_of_which_the_server_tells_nothing_is_saved_and_named() {
    let server = Scripted::answering(|command| {
        let is_asked = command.starts_with("UID FETCH") && !command.contains("BODY.PEEK");
        is_asked.then(|| metadata(&[2]) + "TAG NO some are damaged\r\n")
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(1), "{}", run.said);
    assert_eq!(run.mails, MESSAGES);
    assert!(
        run.said
            .contains(";UID=1: the server did not send the flags"),
        "{}",
        run.said
    );
    assert!(!run.said.contains(";UID=2"), "{}", run.said);
}

#[test]
fn folders_whose_names_differ_only_in_case_have_directories_of_their_own_in_each_run() {
    let server = Scripted::answering(|command| {
        let names = ["A", "a", "a-ca978112", "e\u{301}", "\u{e9}"];
        let list = names.map(|name| format!("* LIST () \"/\" \"{name}\"\r\n"));
        command
            .starts_with("LIST")
            .then(|| list.concat() + "TAG OK done\r\n")
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let first = saved(&server, &out);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let all = mails(&out);
    assert_eq!(all.len(), 10, "{all:?}");
    let second = saved(&server, &out);
    assert!(
        stderr(&second).contains("0 messages"),
        "{}",
        stderr(&second)
    );
    assert_eq!(mails(&out), all);
}

#[test]
fn folders_whose_names_are_spelt_wrongly_are_asked_for_as_the_server_spells_them() {
    let server = Scripted::answering(|command| {
        command.starts_with("LIST").then(|| {
            "* LIST () \"/\" INBOX/Da\tOggetto\r\n* LIST () \"\\\" Folder Subfolder 1\r\n* LIST () \"/\" NIL\r\n\
             * LIST () \"/\" \"ab\"cd\"\r\n* LIST () \"/\" {3}\r\na\tb\r\nTAG OK done\r\n"
                .into()
        })
    });
    let run = converted(&server);
    assert_eq!(run.output.status.code(), Some(0), "{}", run.said);
    assert_eq!(run.mails.len(), 10);
    let heard = server.heard().join("\n");
    for name in [
        "INBOX/Da\tOggetto",
        "\"Folder Subfolder 1\"",
        "\"NIL\"",
        "ab\"cd",
        "a\tb",
    ] {
        assert!(heard.contains(name), "{name:?}: {heard}");
    }
}

#[test]
fn sizes_that_are_wrong_for_most_messages_are_reported_once_and_the_status_is_0() {
    let mail = |uid: usize| {
        let part = if uid == 4 { "" } else { "--b--\r\n" };
        format!(
            "Subject: {uid}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhello\r\n{part}"
        )
    };
    // The server adds this number to the sizes, except for messages below a UID.
    for (more, exact_below, status) in [(1000, 0, 0), (1000, 4, 1), (0, 0, 0)] {
        let server = Scripted::answering(move |command| {
            let set = command.split(' ').nth(2).unwrap_or_default().to_owned();
            let is_in = |uid: usize| {
                set.split(',').any(|range| {
                    let (first, last) = range.split_once(':').unwrap_or((range, range));
                    (first.parse().unwrap_or(0)..=last.parse().unwrap_or(0)).contains(&uid)
                })
            };
            let each = |says: &dyn Fn(usize) -> String| {
                let all: String = (1..=4).filter(|uid| is_in(*uid)).map(says).collect();
                Some(all + "TAG OK done\r\n")
            };
            match command {
                it if it.starts_with("EXAMINE") => {
                    Some(plain(it).replace("* 2 EXISTS", "* 4 EXISTS"))
                }
                it if it.starts_with("UID SEARCH") => {
                    Some("* SEARCH 1 2 3 4\r\nTAG OK done\r\n".into())
                }
                it if it.contains("BODY.PEEK[]") => {
                    let digits = it.split_once("[]<").unwrap().1.split_once('.').unwrap().0;
                    let from: usize = digits.parse().unwrap();
                    each(&|uid| {
                        let text = mail(uid);
                        let rest = text.get(from..).unwrap_or_default();
                        format!(
                            "* {uid} FETCH (UID {uid} BODY[]<{from}> {{{}}}\r\n{rest})\r\n",
                            rest.len()
                        )
                    })
                }
                it if it.starts_with("UID FETCH") => each(&|uid| {
                    let more = if uid < exact_below { 0 } else { more };
                    format!(
                        "* {uid} FETCH (UID {uid} FLAGS () INTERNALDATE \" 3-Jan-2020 10:00:00 +0100\" RFC822.SIZE {})\r\n",
                        mail(uid).len() + more
                    )
                }),
                _ => None,
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        for _ in 0..2 {
            let run = saved(&server, &out);
            assert_eq!(
                run.status.code(),
                Some(status),
                "{more} {exact_below}: {}",
                stderr(&run)
            );
            assert_eq!(mails(&out).len(), 4);
        }
        let is_short = |path: &std::path::PathBuf| path.to_str().unwrap().contains("embody-short");
        assert_eq!(mails(&out).iter().any(is_short), status == 1);
    }
}

/// RFC 9738: the server returns one message per command, the last one first.
#[test]
fn server_that_tells_of_one_message_at_a_time_is_asked_again() {
    let server = Scripted::answering(|command| {
        let set = command.split(' ').nth(2).unwrap_or_default();
        let has_both = set == "1:2" || set == "1,2";
        match command {
            it if it.starts_with("UID SEARCH") => {
                Some("* SEARCH 2\r\nTAG OK [MESSAGELIMIT 1 2] done\r\n".into())
            }
            it if it.starts_with("FETCH 1:2") => {
                Some("* 2 FETCH (UID 2)\r\nTAG OK [MESSAGELIMIT 1 2] done\r\n".into())
            }
            it if it.starts_with("UID FETCH") && has_both => {
                let says = plain(&it.replace(set, "2"));
                Some(says.replace("OK done", "OK [MESSAGELIMIT 1 2] done"))
            }
            _ => None,
        }
    });
    assert_all(&converted(&server), "backup");
    let inspected = embody()
        .args(["inspect", &server.url(""), "--allow-plaintext", "--json"])
        .args(["--password-command", "echo secret"])
        .output()
        .unwrap();
    let row = reports::object(&inspected.stdout);
    let bytes = MESSAGES.map(str::len).iter().sum::<usize>();
    assert_eq!(
        (&row["messages"], &row["bytes"]),
        (&2.into(), &bytes.into())
    );
    assert_eq!(inspected.status.code(), Some(0), "{}", stderr(&inspected));
}

/// The results of the first searches have as many UIDs as the folder has messages, but some of them belong to no message. Other
/// messages are missing in the results.
#[test]
fn search_with_wrong_uids_and_the_right_number_of_them_leaves_out_no_message() {
    for (wrong, verb, searches) in [
        ("1 2 4", "convert", 1),
        ("7 8 9", "convert", 1),
        ("7 8 9", "embed", 2),
        ("7 8 9", "inspect", 1),
    ] {
        let mails = [mail(1, 1, 0), mail(2, 2, 30), mail(3, 3, 60)];
        let told = AtomicUsize::new(0);
        let account = Account::answering(&[("INBOX", mails.to_vec())], move |command, folders| {
            let is_wrong =
                command.starts_with("UID SEARCH") && told.fetch_add(1, Ordering::SeqCst) < searches;
            if is_wrong {
                return Some(format!("* SEARCH {wrong}\r\nTAG OK done\r\n"));
            }
            // embed downloads messages with HTML.
            let answer = folders.answer(command)?;
            Some(answer.replace("(\"text\" \"plain\"", "(\"text\" \"html\""))
        });
        let place = Place::new();
        let options: &[&str] = match verb {
            "embed" => &["--in-place", "--dry-run"],
            _ => &[],
        };
        let run = place.run(verb, &account.server.url(""), options);
        let about = format!("{verb} {wrong}: {} {}", run.said, run.printed);
        assert_eq!(run.code, Some(0), "{about}");
        match verb {
            "convert" => assert_eq!(place.texts(), texts(&mails), "{about}"),
            "embed" => {
                let heard = account.server.heard();
                let is_read =
                    |command: &String| command.starts_with("UID FETCH 1:3 (UID BODY.PEEK[]");
                assert!(heard.iter().any(is_read), "{about} {heard:?}");
            }
            _ => assert!(run.printed.contains("INBOX: 3 messages"), "{about}"),
        }
    }
}
