//! A server that ends the connection at certain messages: these are named and skipped, and all other mail is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::accounts::{Account, Folders, Mail, Place, mail, texts};
use super::scripted::CLOSE;

/// Maximum number of requests for a message in one run.
const MOST_REQUESTS: u32 = 20;

/// How the server ends the connection.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Close,
    Bye,
    /// Within the literal of the message, after the messages before it.
    Literal,
    /// The literal is longer than the response.
    LongLiteral,
    Silence,
}

/// Starts a server with the folders INBOX and Work, which ends the connection if `what` of a message of INBOX is requested
/// whose UID is one of `bad`, while `is_bad` is true. The number of requests for the first bad message is counted.
fn server(
    ending: Ending,
    what: &'static str,
    bad: &'static [u32],
    count: u32,
) -> (Account, Arc<AtomicBool>, Arc<AtomicU32>) {
    let mails: Vec<Mail> = (1..=count).map(|uid| mail(uid, uid, 0)).collect();
    let (is_bad, hits) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
    let (is_on, counted) = (Arc::clone(&is_bad), Arc::clone(&hits));
    let all = [("INBOX", mails), ("Work", vec![mail(1, 9001, 0)])];
    let account = Account::answering(&all, move |command, folders: &mut Folders| {
        let is_meant = command.starts_with("UID FETCH")
            && command.contains(what)
            && folders.selected() == "INBOX"
            && is_on.load(Ordering::SeqCst);
        let asked = folders.asked(command);
        let first = asked.iter().find(|(_, mail)| bad.contains(&mail.uid));
        let (_, first) = first.filter(|_| is_meant)?;
        if asked.iter().any(|(_, mail)| mail.uid == bad[0]) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Some(match ending {
            Ending::Close => CLOSE.to_owned(),
            Ending::Bye => format!("* BYE FETCH failed: Internal error\r\n{CLOSE}"),
            Ending::Silence => String::new(),
            Ending::Literal | Ending::LongLiteral => {
                let all = folders.answer(command).unwrap();
                let start = format!("(UID {} ", first.uid);
                let at = all.find(&start).unwrap() + start.len();
                match ending {
                    Ending::Literal => format!("{}{CLOSE}", &all[..at + 20]),
                    _ => all.replacen(
                        &format!("{start}BODY[]<0> {{1"),
                        &format!("{start}BODY[]<0> {{43781"),
                        1,
                    ),
                }
            }
        })
    });
    (account, is_bad, hits)
}

fn assert_named(said: &str, uids: &[u32]) {
    for uid in uids {
        let named = format!("/INBOX;UIDVALIDITY=7/;UID={uid}: the connection ends whenever");
        assert!(said.contains(&named), "{uid}: {said}");
    }
    let count = said.matches("the connection ends whenever").count();
    assert_eq!(count, uids.len(), "{said}");
}

#[test]
fn message_that_ends_the_connection_is_named_and_all_others_are_saved() {
    for (ending, what, bad, count) in [
        (Ending::Close, "BODY.PEEK", &[2][..], 5),
        (Ending::Bye, "BODY.PEEK", &[1], 5),
        (Ending::Literal, "BODY.PEEK", &[5], 5),
        (Ending::LongLiteral, "BODY.PEEK", &[3], 5),
        (Ending::Silence, "BODY.PEEK", &[2], 3),
        (Ending::Bye, "RFC822.SIZE", &[2], 5),
        (Ending::Close, "RFC822.SIZE", &[1, 5], 5),
        (Ending::Bye, "UID FETCH", &[2], 5),
        (Ending::Close, "BODY.PEEK", &[1, 2, 3], 3),
        (Ending::Literal, "BODY.PEEK", &[77, 78, 300], 400),
        (Ending::Close, "BODY.PEEK", &[399, 3, 200], 400),
        (Ending::Bye, "RFC822.SIZE", &[1, 400], 400),
    ] {
        let about = format!("{ending:?} {what} {bad:?}");
        let (account, is_bad, hits) = server(ending, what, bad, count);
        let place = Place::new();
        let begun = Instant::now();
        let run = place.run("convert", &account.server.url(""), &["--timeout", "1s"]);
        assert_eq!(run.code, Some(1), "{about}: {}", run.said);
        assert!(begun.elapsed() < Duration::from_secs(60), "{about}");
        assert_named(&run.said, bad);
        assert!(
            hits.load(Ordering::SeqCst) <= MOST_REQUESTS,
            "{about}: {hits:?}"
        );
        let mut all = account.folders().of("INBOX").clone();
        all.retain(|mail| !bad.contains(&mail.uid));
        let work = account.folders().of("Work").clone();
        assert!(
            place.texts() == texts(all.iter().chain(&work)),
            "{about}: {}",
            run.said
        );
        // The next run gets the message when the server sends it.
        is_bad.store(false, Ordering::SeqCst);
        let run = place.run("convert", &account.server.url(""), &[]);
        assert_eq!(run.code, Some(0), "{about}: {}", run.said);
        assert_eq!(place.saved().len(), usize::try_from(count).unwrap() + 1);
    }
}

#[test]
fn message_that_ends_the_connection_is_named_by_each_command() {
    for (verb, what) in [
        ("inspect", "RFC822.SIZE"),
        ("inspect", "BODYSTRUCTURE"),
        ("detach", "RFC822.SIZE"),
        ("detach", "BODYSTRUCTURE"),
        ("embed", "BODY.PEEK"),
        ("merge", "BODY.PEEK"),
        ("compare", "BODY.PEEK"),
    ] {
        let (account, _, hits) = server(Ending::Bye, what, &[2], 5);
        let place = Place::new();
        let more: &[&str] = match verb {
            "inspect" => &["--larger-than", "10"],
            "embed" => &["--in-place", "--state", "state", "--mark"],
            _ => &[],
        };
        if verb == "compare" {
            std::fs::create_dir(place.out()).unwrap();
            std::fs::write(place.out().join("a.eml"), mail(1, 1, 0).text).unwrap();
        }
        let run = place.run(verb, &account.server.url(""), more);
        assert_eq!(run.code, Some(1), "{verb} {what}: {}", run.said);
        let named = "UID=2: the connection ends whenever";
        let is_named = run.said.contains(named) || run.said.contains(&named.replace('=', " "));
        assert!(is_named, "{verb} {what}: {}", run.said);
        assert!(
            hits.load(Ordering::SeqCst) <= MOST_REQUESTS,
            "{verb} {what}: {hits:?}"
        );
        if verb == "inspect" {
            assert!(run.printed.contains("INBOX: 5 messages"), "{}", run.printed);
            assert!(run.printed.contains("Work: 1 messages"), "{}", run.printed);
        }
    }
}

#[test]
fn folder_that_ends_the_connection_costs_that_folder() {
    let all = [("Bad", vec![mail(1, 1, 0)]), ("INBOX", vec![mail(1, 2, 0)])];
    let account = Account::answering(&all, |command, _| {
        let is_bad = command.starts_with("EXAMINE") && command.contains("Bad");
        is_bad.then(|| format!("* BYE cannot open\r\n{CLOSE}"))
    });
    let place = Place::new();
    let run = place.run("convert", &account.server.url(""), &[]);
    assert_eq!(run.code, Some(1), "{}", run.said);
    assert!(
        run.said.contains("/Bad: the server ended the session"),
        "{}",
        run.said
    );
    assert_eq!(place.texts(), texts([&mail(1, 2, 0)]));
}
