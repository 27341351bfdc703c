//! A backup takes no other mail for the mail that it has already saved: of another account, of a server that was restored from a
//! snapshot, or a text of the server in place of a message.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::accounts::{Account, JANUARY, MAY, Mail, Place, mail, texts};

fn inbox(mails: &[Mail]) -> Account {
    Account::of(&[("INBOX", mails.to_vec())])
}

fn with_user(account: &Account, user: &str, host: &str) -> String {
    format!("imap://{user}@{host}:{}/", account.server.port)
}

#[test]
fn backup_into_the_directory_of_another_account_is_refused_and_changes_nothing() {
    let first = [mail(1, 1, 0), mail(2, 2, 0)];
    for (other, what) in [
        (vec![mail(1, 71, 9), mail(2, 72, 50)], "other sizes"),
        (
            vec![mail(1, 71, 0), mail(2, 72, 0)],
            "the same sizes and dates",
        ),
        (vec![mail(1, 1, 0), mail(2, 72, 0)], "one mail is the same"),
        (vec![mail(8, 1, 0)], "no UID is the same"),
        (vec![], "no mail"),
    ] {
        for (user, host) in [("bob", "127.0.0.1"), ("me", "localhost")] {
            let place = Place::new();
            let (one, two) = (inbox(&first), inbox(&other));
            let run = place.run("convert", &one.server.url(""), &[]);
            assert_eq!(run.code, Some(0), "{}", run.said);
            let before = place.saved();
            let run = place.run("convert", &with_user(&two, user, host), &[]);
            assert_eq!(run.code, Some(2), "{what}: {}", run.said);
            assert!(run.said.contains("of me at 127.0.0.1:"), "{}", run.said);
            assert!(run.said.contains("name another directory"), "{}", run.said);
            assert_eq!(place.saved(), before, "{what}");
            // The first account goes on.
            let run = place.run("convert", &one.server.url(""), &[]);
            assert_eq!(run.code, Some(0), "{}", run.said);
            assert_eq!(place.saved(), before, "{what}");
        }
    }
}

#[test]
fn backup_of_a_renamed_host_is_continued_and_says_so_once() {
    let mut mails = vec![mail(1, 1, 0), mail(2, 2, 30)];
    let place = Place::new();
    let account = Account::of(&[("Empty", vec![]), ("INBOX", mails.clone())]);
    place.run("convert", &account.server.url(""), &[]);
    mails.push(mail(3, 3, 0));
    *account.folders().of("INBOX") = mails.clone();
    let url = with_user(&account, "me", "localhost");
    for is_first in [true, false] {
        let run = place.run("convert", &url, &[]);
        assert_eq!(run.code, Some(0), "{}", run.said);
        let is_said = run.said.contains("so embody continues the backup");
        assert_eq!(is_said, is_first, "{}", run.said);
        assert_eq!(place.texts(), texts(&mails));
    }
    let owner = fs::read_to_string(place.out().join("INBOX/embody-folder")).unwrap();
    assert!(owner.contains("host localhost:"), "{owner}");
}

#[test]
fn backup_without_the_name_of_an_account_is_continued_and_gets_it() {
    let mut mails = vec![mail(1, 1, 0), mail(2, 2, 30)];
    mails[1].size = Some(60);
    let place = Place::new();
    let account = inbox(&mails);
    place.run("convert", &account.server.url(""), &[]);
    let before = place.texts();
    // As version 0.3.0 wrote it.
    let owner = place.out().join("INBOX/embody-folder");
    fs::remove_file(&owner).unwrap();
    for (name, _) in place.saved() {
        let cur = place.out().join("INBOX/cur");
        let (start, rest) = name.split_once(",A=").unwrap();
        let old = format!("{start},{}", rest.split_once(',').unwrap().1);
        fs::rename(cur.join(&name), cur.join(old)).unwrap();
    }
    let run = place.run("convert", &with_user(&account, "me", "localhost"), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
    // The message whose announced size is wrong is compared once.
    assert!(run.said.contains("1 message read"), "{}", run.said);
    assert_eq!(place.texts(), before);
    let owner = fs::read_to_string(owner).unwrap();
    assert!(owner.contains("user me\nhost localhost:"), "{owner}");
    assert!(place.saved().iter().any(|(name, _)| name.contains(",A=60")));
}

/// The server sends each content under the UID of the message before it, once.
#[test]
fn content_of_another_message_is_not_saved_if_its_size_differs() {
    for sizes in [[10, 20, 30], [30, 20, 10], [10, 30, 20]] {
        let all = [
            mail(1, 1, sizes[0]),
            mail(2, 2, sizes[1]),
            mail(3, 3, sizes[2]),
        ];
        let is_told = AtomicBool::new(false);
        let account = Account::answering(&[("INBOX", all.to_vec())], move |command, folders| {
            let is_first =
                command.contains("BODY.PEEK[]<") && !is_told.swap(true, Ordering::SeqCst);
            is_first.then(|| {
                let said = folders.answer(command).unwrap();
                let first_two = said.replace("UID 1 ", "UID x ").replace("UID 2 ", "UID 1 ");
                first_two
                    .replace("UID 3 ", "UID 2 ")
                    .replace("UID x ", "UID 3 ")
            })
        });
        let place = Place::new();
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{sizes:?}: {}", run.said);
        for (name, text) in place.saved() {
            let found = all.iter().find(|mail| mail.text == text).unwrap();
            assert!(
                name.contains(&format!("U{}.", found.uid)),
                "{sizes:?}: {name}"
            );
        }
        assert_eq!(place.texts(), texts(&all), "{sizes:?}: {}", run.said);
    }
}

#[test]
fn server_that_announces_too_small_sizes_is_read_twice_only_at_first() {
    let mut all: Vec<Mail> = (1..=900).map(|number| mail(number, number, 0)).collect();
    for mail in &mut all {
        mail.size = Some(mail.text.len() - 10);
    }
    let place = Place::new();
    let account = inbox(&all);
    let run = place.run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
    assert_eq!(place.texts(), texts(&all));
    let heard = account.server.heard();
    let bodies = heard.iter().filter(|it| it.contains("BODY.PEEK[]<"));
    let alone = bodies.filter(|it| !it.contains([',', ':'])).count();
    assert!(
        (3..=500).contains(&alone),
        "{alone} messages were requested alone"
    );
}

#[test]
fn restored_server_that_uses_uids_again_has_its_new_mail_saved_next_to_the_old() {
    for (date, more) in [(MAY, 0), (JANUARY, 9), (MAY, 9)] {
        let old = [mail(1, 1, 0), mail(2, 2, 0), mail(3, 3, 0)];
        let place = Place::new();
        let account = inbox(&old);
        place.run("convert", &account.server.url(""), &[]);
        let mut new = mail(2, 82, more);
        (new.date, new.flags) = (date, "\\Flagged");
        account.folders().of("INBOX")[1] = new.clone();
        for read in ["1 message read", "0 messages read"] {
            let run = place.run("convert", &account.server.url(""), &[]);
            assert_eq!(run.code, Some(0), "{}", run.said);
            assert!(run.said.contains(read), "{date} {more}: {}", run.said);
            assert_eq!(place.texts(), texts(old.iter().chain([&new])));
            for (name, text) in place.saved() {
                let flags = if text == new.text { ":2,F" } else { ":2,S" };
                assert!(name.ends_with(flags), "{name}");
            }
        }
        // The old state is back: nothing is read or doubled.
        account.folders().of("INBOX")[1] = old[1].clone();
        let run = place.run("convert", &account.server.url(""), &[]);
        assert!(run.said.contains("0 messages read"), "{}", run.said);
        assert_eq!(place.saved().len(), 4);
    }
}

#[test]
fn announced_sizes_and_dates_that_are_wrong_or_missing_save_nothing_again() {
    let mut mails = vec![mail(1, 1, 0), mail(2, 2, 0), mail(3, 3, 0), mail(4, 4, 0)];
    for mail in &mut mails {
        mail.size = Some(mail.text.len() - 30);
    }
    mails[1].date = "";
    mails[2].date = "no date";
    let place = Place::new();
    let account = inbox(&mails);
    for read in ["4 messages read", "0 messages read", "0 messages read"] {
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{}", run.said);
        assert!(run.said.contains(read), "{}", run.said);
        assert_eq!(place.texts(), texts(&mails));
    }
    // All sizes change: the messages are read and compared, but not saved a second time.
    for mail in account.folders().of("INBOX") {
        mail.size = Some(mail.text.len() - 40);
    }
    for read in ["4 messages read", "0 messages read"] {
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{}", run.said);
        assert!(run.said.contains(read), "{}", run.said);
        assert_eq!(place.texts(), texts(&mails));
    }
}

#[test]
fn message_whose_file_was_changed_on_this_computer_is_not_saved_again() {
    let mails = [mail(1, 1, 0), mail(2, 2, 0)];
    let place = Place::new();
    let account = inbox(&mails);
    place.run("convert", &account.server.url(""), &[]);
    // As embody detach --in-place changes the file.
    let (name, text) = place.saved()[0].clone();
    let (start, rest) = name.split_once(",S=").unwrap();
    let rest = rest.trim_start_matches(|it: char| it.is_ascii_digit());
    let cur = place.out().join("INBOX/cur");
    fs::write(cur.join(&name), "changed\r\n").unwrap();
    fs::rename(cur.join(&name), cur.join(format!("{start},S=9{rest}"))).unwrap();
    let run = place.run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(0), "{}", run.said);
    assert!(run.said.contains("0 messages read"), "{}", run.said);
    assert!(!place.texts().contains(&text));
}

#[test]
fn text_of_exchange_in_place_of_a_message_is_named_and_replaced_in_a_later_run() {
    let real = mail(2, 2, 400);
    for error in [0, 300] {
        let mut text = real.clone();
        text.text = "MIME-Version: 1.0\r\nFrom: Microsoft Exchange Server 2010\r\nTo: b@example.org\r\nSubject: Retrieval using the IMAP4 protocol failed for the following\r\n message: 77\r\n\r\nThe server couldn't retrieve the following message:\r\n".to_owned();
        text.size = Some(text.text.len() + error);
        let quoting = Mail {
            text: format!(
                "Subject: Fwd\r\nFrom: b@example.org\r\nDate: Fri, 3 Jan 2020 10:00:00 +0100\r\n\r\n{}",
                text.text
            ),
            ..mail(3, 3, 0)
        };
        let place = Place::new();
        let all = [mail(1, 1, 0), text, quoting.clone()];
        let account = inbox(&all);
        for _ in 0..2 {
            let run = place.run("convert", &account.server.url(""), &[]);
            assert_eq!(run.code, Some(1), "{}", run.said);
            assert!(
                run.said.contains("/;UID=2: the server cannot convert"),
                "{}",
                run.said
            );
            let saved = place.saved();
            let marked = |name: &str| name.contains(".embody-substitute,");
            assert_eq!(saved.iter().filter(|(name, _)| marked(name)).count(), 1);
            assert_eq!(saved.len(), 3);
            // The comparison of the account with its backup does not succeed either.
            let run = place.run("compare", &account.server.url(""), &[]);
            assert_eq!(run.code, Some(1), "{} {}", run.said, run.printed);
        }
        let run = Place::new().run(
            "embed",
            &inbox(&all).server.url(""),
            &["--in-place", "--state", "state", "--mark"],
        );
        assert_eq!(run.code, Some(1), "{}", run.said);
        let named = "/;UID=2: the server cannot convert";
        assert!(run.said.contains(named), "{}", run.said);
        account.folders().of("INBOX")[1] = real.clone();
        for _ in 0..2 {
            let run = place.run("convert", &account.server.url(""), &[]);
            assert_eq!(run.code, Some(0), "{}", run.said);
            assert_eq!(place.texts(), texts([&mail(1, 1, 0), &real, &quoting]));
        }
    }
}

/// Counts the messages whose sizes were requested since `from` commands, and returns the new number of commands.
fn compared(account: &Account, from: usize) -> (usize, usize) {
    let heard = account.server.heard();
    let sets = heard[from..].iter().filter(|it| it.contains("RFC822.SIZE"));
    let count = sets
        .flat_map(|command| command.split(' ').nth(2).unwrap().split(','))
        .map(|range| {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            last.parse::<usize>().unwrap() + 1 - first.parse::<usize>().unwrap()
        })
        .sum();
    (count, heard.len())
}

#[test]
fn update_with_modification_sequences_compares_all_messages_if_a_number_fell_or_a_message_is_different()
 {
    const COUNT: u32 = 1500;
    let mails: Vec<Mail> = (1..=COUNT).map(|uid| mail(uid, uid, 0)).collect();
    let modseq = Arc::new(AtomicU64::new(50));
    let changed: Arc<Mutex<Vec<u32>>> = Arc::default();
    let (highest, since) = (Arc::clone(&modseq), Arc::clone(&changed));
    let account = Account::answering(&[("INBOX", mails)], move |command, folders| match command {
        "greeting" => {
            Some("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN SASL-IR CONDSTORE] hi\r\n".into())
        }
        _ if command.starts_with("EXAMINE") => {
            let highest = highest.load(Ordering::SeqCst);
            let answer = folders.answer(command)?;
            Some(format!("* OK [HIGHESTMODSEQ {highest}] x\r\n{answer}"))
        }
        _ if command.contains("CHANGEDSINCE") => {
            let since = since.lock().unwrap();
            let lines = since
                .iter()
                .map(|uid| format!("* {uid} FETCH (UID {uid} FLAGS (\\Flagged) MODSEQ (51))\r\n"));
            Some(lines.collect::<String>() + "TAG OK done\r\n")
        }
        _ => None,
    });
    let place = Place::new();
    let mut heard = 0;
    let mut update = |expected: usize, what: &str| {
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{what}: {}", run.said);
        let (count, now) = compared(&account, heard);
        heard = now;
        assert_eq!(count, expected, "{what}");
    };
    update(1500, "the first run");
    update(1000, "nothing changed");
    modseq.store(51, Ordering::SeqCst);
    changed.lock().unwrap().push(5);
    account.folders().of("INBOX")[4].flags = "\\Flagged";
    update(1001, "flags changed");
    let flagged = |name: &str| name.contains("V7U5.") && name.ends_with(":2,F");
    assert!(place.saved().iter().any(|(name, _)| flagged(name)));
    changed.lock().unwrap().clear();
    let (first, _) = place.saved()[0].clone();
    fs::remove_file(place.out().join("INBOX/cur").join(first)).unwrap();
    update(1500, "a file was removed");
    update(1000, "nothing changed again");
    modseq.store(40, Ordering::SeqCst);
    update(1500, "HIGHESTMODSEQ fell");
    update(1000, "after that");
    // The server was restored, and new mail has raised both numbers.
    modseq.store(60, Ordering::SeqCst);
    for uid in [3, COUNT] {
        let at = usize::try_from(uid).unwrap() - 1;
        account.folders().of("INBOX")[at] = Mail {
            date: MAY,
            ..mail(uid, 9000 + uid % 100, 7)
        };
    }
    update(1500, "restored");
    assert_eq!(place.saved().len(), 1502);
}
