//! Folders in which no message can be replaced: read-only ones, and those without rights. If one of their messages may need a
//! change, the run did not do all that it was started for, so the exit status is 1.

use super::accounts::{Account, Mail, Place, mail};

/// Structure of a message with an attachment of 7,400 bytes.
const WITH_ATTACHMENT: &str = "((\"text\" \"plain\" NIL NIL NIL \"7bit\" 2 1)(\"application\" \"pdf\" (\"name\" \"a.pdf\") NIL NIL \"base64\" 7400 NIL (\"attachment\" NIL)) \"mixed\")";
const PLAIN: &str = "(\"text\" \"plain\" NIL NIL NIL \"7bit\" 2 1)";

/// Folders of an account. The messages of those whose names begin with `Large` have attachments, and those whose names end with
/// `RO` are read-only.
fn account(names: &[&str], rights: Option<&'static str>) -> Account {
    let mails: Vec<Mail> = (1..=2).map(|number| mail(number, number, 0)).collect();
    let folders: Vec<(&str, Vec<Mail>)> = names.iter().map(|name| (*name, mails.clone())).collect();
    Account::answering(&folders, move |command, folders| {
        match command.split(' ').next().unwrap_or_default() {
            "greeting" | "CAPABILITY" if rights.is_some() => {
                let known = "CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR UIDPLUS ACL";
                Some(match command {
                    "greeting" => format!("* OK [{known}] hi\r\n"),
                    _ => format!("* {known}\r\nTAG OK done\r\n"),
                })
            }
            "MYRIGHTS" => Some(format!(
                "* MYRIGHTS x {}\r\nTAG OK done\r\n",
                rights.unwrap_or("lrswite")
            )),
            "SELECT" => {
                let answer = folders.answer(command)?;
                if folders.selected().ends_with("RO") {
                    Some(answer.replace("TAG OK done", "TAG OK [READ-ONLY] done"))
                } else {
                    Some(answer)
                }
            }
            _ if command.contains("BODYSTRUCTURE") => {
                let answer = folders.answer(command)?;
                let structure = if folders.selected().starts_with("Large") {
                    WITH_ATTACHMENT
                } else {
                    PLAIN
                };
                let plain = "(\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1)";
                Some(answer.replace(plain, structure))
            }
            _ => None,
        }
    })
}

const MAY_NEED: &str = "2 messages that may need a change were not changed";
const NEEDS_NONE: &str = "no message in it needs a change";
const NO_FOLDER: &str = "no selected folder allows embody to replace messages";

#[test]
fn read_only_folder_with_messages_that_may_need_a_change_gives_status_1() {
    for (names, code, says, says_not) in [
        (&["LargeRO"][..], 1, &[MAY_NEED][..], NO_FOLDER),
        (&["LargeRO", "LargeRO2RO"], 1, &[MAY_NEED], NO_FOLDER),
        (&["SmallRO"], 1, &[NEEDS_NONE, NO_FOLDER], MAY_NEED),
        (&["OneRO", "TwoRO"], 1, &[NEEDS_NONE, NO_FOLDER], MAY_NEED),
        (&["Small", "LargeRO"], 1, &[MAY_NEED], NO_FOLDER),
        (&["Small", "SmallRO"], 0, &[NEEDS_NONE], NO_FOLDER),
        (&["Small"], 0, &[], "read-only"),
    ] {
        let account = account(names, None);
        let place = Place::new();
        let run = place.run("detach", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(code), "{names:?}: {}", run.said);
        for text in says {
            assert!(run.said.contains(text), "{names:?}: {}", run.said);
        }
        assert!(!run.said.contains(says_not), "{names:?}: {}", run.said);
        let changes = |command: &String| {
            let verbs = ["APPEND", "UID STORE", "UID EXPUNGE"];
            verbs.iter().any(|verb| command.starts_with(verb))
        };
        assert!(!account.server.heard().iter().any(changes), "{names:?}");
    }
}

#[test]
fn read_only_folder_is_named_by_its_url_and_by_the_option() {
    let account = account(&["Large", "LargeRO", "Small"], None);
    for (path, options) in [("LargeRO", &[][..]), ("", &["--folder", "LargeRO"])] {
        let run = Place::new().run("detach", &account.server.url(path), options);
        assert_eq!(run.code, Some(1), "{}", run.said);
        let line = format!("/LargeRO: the folder is read-only; {MAY_NEED}");
        assert!(run.said.contains(&line), "{}", run.said);
    }
    let run = Place::new().run(
        "detach",
        &account.server.url(""),
        &["--not-folder", "Large*"],
    );
    assert_eq!(run.code, Some(0), "{}", run.said);
}

#[test]
fn folder_without_rights_and_with_messages_that_may_need_a_change_gives_status_1() {
    for (names, code) in [(&["Large", "Small"][..], 1), (&["Small", "Other"], 1)] {
        let account = account(names, Some("lrs"));
        let run = Place::new().run("detach", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(code), "{names:?}: {}", run.said);
        assert!(run.said.contains("missing: wite"), "{}", run.said);
    }
    let account = account(&["Small"], Some("lrswite"));
    let run = Place::new().run("detach", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
}

#[test]
fn message_whose_size_the_server_does_not_report_stays_and_gives_status_1() {
    let account = account(&["Large"], None);
    let attachment = ("QUJD".repeat(18) + "\r\n").repeat(100);
    let text = format!(
        "From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhello\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n{attachment}--b--\r\n"
    );
    for mail in account.folders().of("Large") {
        text.clone_into(&mut mail.text);
        mail.size = Some(0);
    }
    let run = Place::new().run("detach", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(
        run.said.contains("refused by the mail server"),
        "{}",
        run.said
    );
    assert_eq!(account.folders().of("Large").len(), 2);
}

#[test]
fn folder_whose_name_cannot_be_read_gives_status_1_also_in_place() {
    let mails: Vec<Mail> = vec![mail(1, 1, 0)];
    for listed in ["* LIST () \"/\" INBOX\r\n", ""] {
        let account = Account::answering(&[("INBOX", mails.clone())], move |command, _| {
            let answer = format!("{listed}* LIST \"/\" Lost\r\nTAG OK done\r\n");
            command.starts_with("LIST").then_some(answer)
        });
        for verb in ["detach", "convert"] {
            let run = Place::new().run(verb, &account.server.url(""), &[]);
            assert_eq!(run.code, Some(1), "{verb} {listed}: {}", run.said);
            let is_named = run.said.contains("LIST \\\"/\\\" Lost");
            assert!(is_named, "{verb} {listed}: {}", run.said);
        }
    }
}

#[test]
fn long_text_of_a_server_says_how_much_is_left_out_and_keeps_the_advice() {
    let text = "word ".repeat(200);
    let answer = format!("TAG NO {text}\r\n");
    let mails: Vec<Mail> = vec![mail(1, 1, 0)];
    let account = Account::answering(&[("INBOX", mails)], move |command, _| {
        command.starts_with("EXAMINE").then(|| answer.clone())
    });
    let run = Place::new().run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(run.said.contains("… (699 more characters)"), "{}", run.said);
}

#[test]
fn shortened_message_that_needs_no_change_is_named_in_place() {
    let cut = |count: usize| {
        let mails: Vec<Mail> = (1..=4)
            .map(|number| {
                let text = mail(number, number, 0);
                let more = if usize::try_from(number).unwrap() <= count {
                    40
                } else {
                    0
                };
                Mail {
                    size: Some(text.text.len() + more),
                    ..text
                }
            })
            .collect();
        let account = Account::of(&[("INBOX", mails)]);
        Place::new().run("detach", &account.server.url(""), &[])
    };
    let run = cut(1);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(
        run.said.contains("/;UID=1: the server announced"),
        "{}",
        run.said
    );
    assert!(!run.said.contains("UID=2"), "{}", run.said);
    let run = cut(0);
    assert_eq!(run.code, Some(0), "{}", run.said);
}

#[test]
fn message_larger_than_the_limit_is_named_in_place_and_gives_status_1() {
    let account = account(&["Large"], None);
    if let [first, ..] = account.folders().of("Large").as_mut_slice() {
        first.size = Some(600_000_000);
    }
    for verb in ["detach", "embed"] {
        let options: &[&str] = match verb {
            "embed" => &["--in-place", "--state", "state"],
            _ => &[],
        };
        let run = Place::new().run(verb, &account.server.url(""), options);
        assert_eq!(run.code, Some(1), "{verb}: {}", run.said);
        let line = "/;UID=1: the message has 600000000 bytes, more than the 536870912 bytes";
        assert!(run.said.contains(line), "{verb}: {}", run.said);
        for text in ["UID=2", "No attachment"] {
            assert!(!run.said.contains(text), "{verb}: {}", run.said);
        }
    }
}

#[test]
fn message_that_the_server_refuses_to_replace_is_named_with_its_folder_and_uid() {
    let attachment = ("QUJD".repeat(18) + "\r\n").repeat(100);
    for (count, code) in [(1, "CANNOT"), (1, "OVERQUOTA"), (12, "CANNOT")] {
        let mails: Vec<Mail> = (1..=count)
            .map(|number| Mail {
                text: format!(
                    "From: a@example.org\r\nMessage-ID: <{number}@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nhello\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n{attachment}--b--\r\n"
                ),
                ..mail(number, number, 0)
            })
            .collect();
        let account = Account::answering(&[("Large", mails)], move |command, folders| {
            if command.starts_with("APPEND") {
                return Some(format!("TAG NO [{code}] not this one\r\n"));
            }
            // No message is a copy.
            if command.starts_with("UID SEARCH") && command.contains("UID ") {
                let answer = folders.answer(command)?;
                return Some(match command.split_once(" UID ") {
                    Some((_, range)) if range.ends_with(":*") => {
                        "* SEARCH\r\nTAG OK done\r\n".into()
                    }
                    _ => answer,
                });
            }
            command.contains("BODYSTRUCTURE").then(|| {
                let answer = folders.answer(command).unwrap();
                let plain = "(\"text\" \"plain\" NIL NIL NIL \"7bit\" 7 1)";
                answer.replace(plain, WITH_ATTACHMENT)
            })
        });
        for option in ["--quiet", "--verbose"] {
            let run = Place::new().run("detach", &account.server.url(""), &[option]);
            let about = format!("{count} {code} {option}: {}", run.said);
            assert_eq!(run.code, Some(1), "{about}");
            let named = |uid: u32| {
                let lines = run.said.lines();
                lines
                    .filter(|line| {
                        line.contains(&format!("Large, UID {uid}: the message was not changed: "))
                            && line.contains("not this one")
                    })
                    .count()
            };
            let named: Vec<usize> = (1..=count).map(named).collect();
            let is_cut = run.said.contains("the server refused more messages");
            assert_eq!(is_cut, count > 10, "{about}");
            let expected: Vec<usize> = (1..=count).map(|uid| usize::from(uid <= 10)).collect();
            assert_eq!(named, expected, "{about}");
        }
    }
}
