//! Mail and folders that a command names and the server does not have, and mail that moves during a backup.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::accounts::{Account, Mail, Place, mail, texts};
use super::scripted::CLOSE;
use crate::common::programs::stderr;

fn account() -> Account {
    Account::of(&[
        ("Archive", vec![mail(1, 9, 0)]),
        ("INBOX", vec![mail(1, 1, 0), mail(2, 2, 0)]),
    ])
}

#[test]
fn uid_or_folder_that_does_not_exist_is_named_by_each_command() {
    for verb in ["convert", "inspect", "detach", "merge", "compare"] {
        for (url, more, named) in [
            ("INBOX/;UID=99", &[][..], "99"),
            ("INBOX;UIDVALIDITY=7/;UID=99", &[], "99"),
            ("INBOX;UIDVALIDITY=3/;UID=2", &[], ";UIDVALIDITY=3"),
            (
                "",
                &["--folder", "INBOX", "--folder", "Archiv"],
                "folder Archiv ",
            ),
            ("", &["--folder", "Archiv"], "folder Archiv "),
            (
                "",
                &[
                    "--folder", "INBOX", "--folder", "Archive", "--folder", "B/C",
                ],
                "folder B/C ",
            ),
        ] {
            let place = Place::new();
            fs::create_dir(place.out()).unwrap();
            if verb == "compare" {
                fs::write(place.out().join("a.eml"), mail(1, 1, 0).text).unwrap();
                fs::write(place.out().join("b.eml"), mail(1, 2, 0).text).unwrap();
                fs::write(place.out().join("c.eml"), mail(1, 9, 0).text).unwrap();
            }
            let run = place.run(verb, &account().server.url(url), more);
            let about = format!("{verb} {url} {more:?}: {} {}", run.said, run.printed);
            assert!(matches!(run.code, Some(1 | 2)), "{about}");
            assert!(run.said.contains(named), "{about}");
            assert!(!run.said.contains("during the run"), "{about}");
            assert!(!run.printed.contains("No message is missing"), "{about}");
            assert!(
                url.is_empty() || !run.said.contains("2 messages read"),
                "{about}"
            );
        }
    }
}

#[test]
fn message_that_compare_misses_is_named_by_its_url() {
    let folders = [
        ("Archive/Old", vec![mail(5, 9, 0)]),
        ("INBOX", vec![mail(1, 1, 0), mail(2, 2, 0), mail(3, 3, 0)]),
    ];
    let account = Account::of(&folders);
    let place = Place::new();
    fs::create_dir(place.out()).unwrap();
    fs::write(place.out().join("a.eml"), mail(1, 1, 0).text).unwrap();
    let changed = mail(1, 3, 0).text.replace("Mail 0003", "Mail 0004");
    fs::write(place.out().join("b.eml"), changed).unwrap();
    let run = place.run("compare", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    let named: Vec<&str> = run
        .printed
        .lines()
        .filter(|line| line.contains(";UID="))
        .collect();
    assert_eq!(named.len(), 3, "{}", run.printed);
    for (start, place) in [
        ("missing: ", "/Archive/Old;UIDVALIDITY=7/;UID=5, message 1"),
        ("missing: ", "/INBOX;UIDVALIDITY=7/;UID=2, message 2"),
        ("altered: ", "/INBOX;UIDVALIDITY=7/;UID=3, message 3"),
    ] {
        let end = format!("127.0.0.1:{}{place}", account.server.port);
        let is_named = |line: &&str| line.starts_with(start) && line.ends_with(&end);
        assert!(named.iter().any(is_named), "{end}: {}", run.printed);
    }
}

#[test]
fn folder_pattern_without_a_match_and_folders_outside_the_url_are_not_named() {
    for (url, more) in [
        ("", &["--folder", "INBOX", "--folder", "Lists/*"][..]),
        ("", &["--folder", "inbox"]),
        ("INBOX", &["--folder", "INBOX", "--folder", "Archive"]),
        ("", &["--not-folder", "Archiv"]),
    ] {
        let run = Place::new().run("convert", &account().server.url(url), more);
        assert_eq!(run.code, Some(0), "{url} {more:?}: {}", run.said);
    }
}

#[test]
fn folder_that_is_listed_only_by_its_name_is_found_with_the_option() {
    let account = Account::answering(
        &[
            ("INBOX", vec![mail(1, 1, 0)]),
            ("Shared/x", vec![mail(1, 2, 0)]),
        ],
        |command, _| {
            (command == "LIST \"\" \"*\"")
                .then(|| "* LIST () \"/\" INBOX\r\nTAG OK done\r\n".into())
        },
    );
    let place = Place::new();
    let more = ["--folder", "INBOX", "--folder", "Shared/x"];
    let run = place.run("convert", &account.server.url(""), &more);
    assert_eq!(run.code, Some(0), "{}", run.said);
    assert_eq!(place.texts(), texts([&mail(1, 1, 0), &mail(1, 2, 0)]));
}

#[test]
fn mail_that_moves_into_a_folder_that_was_read_is_saved() {
    // With STATUS, without UIDNEXT in it, and without STATUS.
    for status in ["", "UIDNEXT 4 ", "NO"] {
        let has_moved = AtomicBool::new(false);
        let all = [
            ("A", vec![mail(1, 1, 0), mail(2, 2, 0)]),
            ("B", vec![mail(1, 11, 0), mail(2, 12, 0)]),
            ("INBOX", vec![mail(1, 21, 0)]),
        ];
        let account = Account::answering(&all, move |command, folders| {
            if command.starts_with("EXAMINE \"B\"") && !has_moved.swap(true, Ordering::SeqCst) {
                let mut moved = folders.of("B").pop().unwrap();
                moved.uid = 3;
                folders.of("A").push(moved);
            }
            let is_status = command.starts_with("STATUS");
            match status {
                "NO" if is_status => Some("TAG NO not now\r\n".to_owned()),
                _ if is_status => {
                    let answer = folders.answer(command)?;
                    Some(if status.is_empty() {
                        answer
                    } else {
                        answer.replace(status, "")
                    })
                }
                _ => None,
            }
        });
        let place = Place::new();
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{status}: {}", run.said);
        let mut all: Vec<_> = Vec::new();
        for name in ["A", "B", "INBOX"] {
            all.extend(account.folders().of(name).clone());
        }
        assert_eq!(all.len(), 5);
        assert_eq!(place.texts(), texts(&all), "{status}: {}", run.said);
        assert!(
            run.said.contains("5 messages read in 3 mailboxes"),
            "{}",
            run.said
        );
    }
}

#[test]
fn mail_that_gets_a_new_uid_in_the_last_folder_is_saved() {
    // The mail moves before its metadata is read, or before its content is read.
    for at in ["FLAGS", "BODY.PEEK[]<"] {
        let has_moved = AtomicBool::new(false);
        let all = [
            ("A", vec![mail(1, 1, 0)]),
            ("B", vec![mail(1, 11, 0), mail(2, 12, 0)]),
        ];
        let account = Account::answering(&all, move |command, folders| {
            if folders.selected() == "B"
                && command.starts_with("UID FETCH")
                && command.contains(at)
                && !has_moved.swap(true, Ordering::SeqCst)
            {
                let mut moved = folders.of("B").remove(0);
                moved.uid = 3;
                folders.of("B").push(moved);
            }
            None
        });
        let place = Place::new();
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{at}: {}", run.said);
        for (_, mails) in &all {
            for mail in mails {
                assert!(place.texts().contains(&mail.text), "{at}: {}", run.said);
            }
        }
    }
}

#[test]
fn folder_that_loses_messages_each_time_it_is_read_is_named() {
    let all = [("A", vec![mail(1, 1, 0), mail(2, 2, 0)])];
    let account = Account::answering(&all, |command, folders| {
        if command.contains("BODY.PEEK[]<") {
            for mail in folders.of("A") {
                mail.uid += 2;
            }
        }
        None
    });
    let run = Place::new().run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(
        run.said.contains("run the same command again"),
        "{}",
        run.said
    );
}

#[test]
fn folder_whose_messages_were_not_announced_when_it_was_opened_is_read_again() {
    let is_told = AtomicBool::new(false);
    let all = [
        ("A", vec![mail(1, 1, 0), mail(2, 2, 0)]),
        ("B", vec![mail(1, 11, 0)]),
    ];
    let account = Account::answering(&all, move |command, folders| {
        let is_first =
            command.starts_with("EXAMINE \"A\"") && !is_told.swap(true, Ordering::SeqCst);
        is_first.then(|| folders.answer(command).unwrap().replace("* 2 E", "* 0 E"))
    });
    let place = Place::new();
    let run = place.run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
    let mails = all.iter().flat_map(|(_, mails)| mails);
    assert_eq!(place.texts(), texts(mails), "{}", run.said);
}

#[test]
fn inbox_that_the_server_spells_differently_later_is_the_same_folder() {
    for (first, then) in [("INBOX", "Inbox"), ("inbox", "INBOX")] {
        let place = Place::new();
        for name in [first, then] {
            let account = Account::answering(
                &[("INBOX", vec![mail(1, 1, 0), mail(2, 2, 0)])],
                move |command, _| {
                    let listed = format!("* LIST () \"/\" \"{name}\"\r\nTAG OK done\r\n");
                    command.starts_with("LIST").then_some(listed)
                },
            );
            let run = place.run("convert", &account.server.url(""), &[]);
            assert_eq!(run.code, Some(0), "{name}: {}", run.said);
            assert_eq!(place.saved().len(), 2, "{name}: {}", run.said);
        }
    }
}

#[test]
fn folder_with_new_mail_all_the_time_does_not_keep_the_backup_from_ending() {
    let all = [("A", vec![mail(1, 1, 0)]), ("B", vec![mail(1, 2, 0)])];
    let account = Account::answering(&all, |command, folders| {
        if command.starts_with("STATUS") || command.starts_with("EXAMINE") {
            let uid = u32::try_from(folders.of("A").len()).unwrap() + 1;
            folders.of("A").push(mail(uid, 100 + uid, 0));
        }
        None
    });
    let run = Place::new().run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
    let heard = account.server.heard();
    let opened = heard
        .iter()
        .filter(|it| it.starts_with("EXAMINE \"A\""))
        .count();
    assert!(opened <= 6, "{opened}");
}

#[test]
fn url_of_an_old_report_is_explained_unlike_a_folder_that_is_made_anew() {
    let account = Account::answering(&[("INBOX", vec![mail(1, 1, 0)])], |command, folders| {
        let is_body = command.contains("BODY.PEEK") && folders.uidvalidity == 7;
        is_body.then(|| {
            folders.uidvalidity = 8;
            CLOSE.to_owned()
        })
    });
    let run = Place::new().run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(run.said.contains("during the run"), "{}", run.said);
}

#[test]
fn name_of_a_file_is_refused_as_the_output_of_an_account() {
    for (name, url) in [
        ("one.eml", "INBOX/;UID=2"),
        ("all.mbox", ""),
        ("all.mbox.gz", ""),
    ] {
        let place = Place::new();
        let out = place.folder.path().join(name);
        let convert = |is_there: bool| {
            if is_there {
                fs::create_dir(&out).unwrap();
            }
            let output = crate::common::programs::embody()
                .args([
                    "convert",
                    "--allow-plaintext",
                    "--password-command",
                    "echo secret",
                ])
                .arg(account().server.url(url))
                .arg("--output")
                .arg(&out)
                .output()
                .unwrap();
            (output.status.code(), stderr(&output))
        };
        let (code, said) = convert(false);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.contains("is the name of a file"), "{said}");
        assert!(!out.exists(), "{name}");
        // An earlier version made a directory with this name.
        let (code, said) = convert(true);
        assert_eq!(code, Some(0), "{name}: {said}");
    }
}

#[test]
fn backup_that_cannot_write_a_message_counts_those_that_were_saved() {
    let mails = [
        mail(1, 1, 0),
        mail(2, 2, 0),
        mail(3, 3, 200_000),
        mail(4, 4, 300_000),
    ];
    let account = Account::of(&[("INBOX", mails.to_vec())]);
    let place = Place::new();
    // A limit on the size of files has the same effect as a full disk: the larger messages cannot be written.
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 100; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_embody"))
        .args([
            "convert",
            "--allow-plaintext",
            "--password-command",
            "echo secret",
        ])
        .args(["--connections", "1", "-j", "1"])
        .arg(account.server.url(""))
        .arg("--output")
        .arg(place.out())
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write"), "{said}");
    assert!(said.contains("2 messages read"), "{said}");
    assert_eq!(place.saved().len(), 2, "{said}");
    let run = place.run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
    assert_eq!(place.texts(), texts(&mails));
}

/// Returns a message with an attachment.
fn with_attachment(number: u32) -> String {
    let attachment = ("QUJD".repeat(18) + "\r\n").repeat(100);
    format!(
        "From: a@example.org\r\nSubject: {number}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhello\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a{number}.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n{attachment}--b--\r\n"
    )
}

#[test]
fn store_that_cannot_be_written_gives_status_1_and_a_line_also_with_quiet() {
    let mails = [1, 2].map(|number| Mail {
        text: with_attachment(number),
        ..mail(number, number, 0)
    });
    let structure = "((\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1)(\"application\" \"pdf\" (\"name\" \"a.pdf\") NIL NIL \"base64\" 7400 NIL (\"attachment\" NIL)) \"mixed\")";
    let account = Account::answering(&[("INBOX", mails.to_vec())], move |command, folders| {
        let answer = command
            .contains("BODYSTRUCTURE")
            .then(|| folders.answer(command))??;
        Some(answer.replace("(\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1)", structure))
    });
    let url = account.server.url("");
    for (source, options) in [
        ("in.mbox", &["--output", "out.mbox"][..]),
        ("in.mbox", &["-q", "--output", "out.mbox"]),
        ("in.mbox", &["-q", "--in-place"]),
        (&url, &["-q", "--in-place", "--state", "state"]),
    ] {
        let place = Place::new();
        let path = |name: &str| place.folder.path().join(name);
        let mbox = mails.clone().map(|mail| {
            let text = mail.text.replace("\r\n", "\n");
            format!("From a Fri Jan  3 10:00:00 2020\n{text}\n")
        });
        fs::write(path("in.mbox"), mbox.concat()).unwrap();
        // A limit on the size of files has the same effect as a full disk.
        let limit = "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command
            .args(["-c", limit])
            .arg(env!("CARGO_BIN_EXE_embody"));
        command.args(["detach", "--store", "store", "--larger-than", "1k"]);
        if source == url {
            command.args(["--allow-plaintext", "--password-command", "echo secret"]);
        }
        if options.contains(&"out.mbox") {
            // The output is larger than the limit, so it goes to a pipe.
            command.args(
                options
                    .iter()
                    .map(|it| if *it == "out.mbox" { "-" } else { *it }),
            );
        } else {
            command.args(options);
        }
        let output = command
            .arg(source)
            .current_dir(place.folder.path())
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {said}");
        assert!(
            said.contains("2 attachments could not be written to the store"),
            "{options:?}: {said}"
        );
        if options.contains(&"out.mbox") {
            assert_eq!(output.stdout, mbox.concat().into_bytes());
        } else {
            assert_eq!(fs::read_to_string(path("in.mbox")).unwrap(), mbox.concat());
        }
    }
}

#[test]
fn content_whose_uid_is_outside_of_the_list_is_read_one_message_at_a_time() {
    for form in ["UID outside", "items outside", "no UID at all"] {
        let all = [(
            "INBOX",
            vec![mail(1, 1, 0), mail(2, 2, 50), mail(3, 3, 1_500_000)],
        )];
        let account = Account::answering(&all, move |command, folders| {
            let answer = command
                .contains("BODY.PEEK")
                .then(|| folders.answer(command))??;
            let mut says = String::new();
            for line in answer.split_inclusive(")\r\n") {
                let Some((start, rest)) = line.split_once("(UID ") else {
                    says.push_str(line);
                    continue;
                };
                let (uid, rest) = rest.split_once(' ').unwrap();
                says += &match form {
                    "UID outside" => format!("{start}({rest} UID {uid} FLAGS (\\Seen))\r\n"),
                    "items outside" => format!("{start}(UID {uid} {rest} FLAGS (\\Seen))\r\n"),
                    _ => format!("{start}({rest}"),
                };
            }
            Some(says)
        });
        let place = Place::new();
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{form}: {}", run.said);
        assert!(
            place.texts() == texts(&*account.folders().of("INBOX")),
            "{form}"
        );
    }
}

#[test]
fn content_without_a_uid_that_has_another_length_is_not_taken_for_the_message() {
    let all = [("INBOX", vec![mail(1, 1, 0), mail(2, 2, 50)])];
    let account = Account::answering(&all, |command, folders| {
        // The content of the other message is sent.
        let is_body = command.contains("BODY.PEEK");
        let other = command
            .replace("FETCH 1 ", "FETCH 9 ")
            .replace("FETCH 2 ", "FETCH 1 ")
            .replace("FETCH 9 ", "FETCH 2 ");
        let answer = is_body.then(|| folders.answer(&other))??;
        Some(answer.replace("(UID 1 ", "(").replace("(UID 2 ", "("))
    });
    let place = Place::new();
    let run = place.run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(place.saved().is_empty(), "{:?}", place.saved());
}
