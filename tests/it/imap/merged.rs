//! `merge` and `inspect --duplicates` with an account on a server (Dovecot) as a source.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::rig::{Kind, Server};
use crate::common::folder::Folder;
use crate::common::programs::{embody, stderr};
use crate::common::reports;

const DATE: &str = "03-Jan-2020 10:00:00 +0100";

fn mail(number: usize) -> String {
    format!(
        "From: me@example.org\nSubject: {number}\nDate: Fri, {number} Jan 2020 10:00:00 +0100\n\
         Message-ID: <{number}@example.org>\n\nMail {number}\n"
    )
}

fn run(folder: &Folder, words: &[&str], password: &str) -> Output {
    embody()
        .current_dir(folder.path())
        .args(words)
        .args(["--allow-plaintext", "--password-command", password])
        .output()
        .unwrap()
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn counts(output: &Output, name: &str) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let mut value = reports::object(&output.stdout);
    value[name].take()
}

/// Returns a server with four mails in two folders, and a directory with two other copies of the first mail and one more
/// mail.
fn server(test: &str) -> Option<(Server, Folder)> {
    let server = Server::start(test, Kind::Dovecot)?;
    let mut client = server.client();
    client.say("CREATE Archive");
    for (number, flags, folder) in [
        (1, "\\Flagged Work", "INBOX"),
        (2, "", "INBOX"),
        (3, "\\Seen", "Archive"),
        (4, "\\Answered", "Archive"),
    ] {
        let mail = mail(number).replace('\n', "\r\n");
        client.append(folder, flags, DATE, mail.as_bytes());
    }
    let folder = Folder::new();
    let read = format!("Status: RO\n{}", mail(1));
    folder.write_mbox(
        "local.mbox",
        &[format!("Received: x\n{read}"), read, mail(7)],
    );
    Some((server, folder))
}

#[test]
fn account_and_mailbox_become_one_mailbox_with_the_flags_of_both() {
    let Some((server, folder)) =
        server("account_and_mailbox_become_one_mailbox_with_the_flags_of_both")
    else {
        return;
    };
    let before = server.client().all("INBOX");
    let url = server.url("");
    let words = ["merge", &url, "local.mbox", "--json", "--flat"];
    let foretold = run(
        &folder,
        &[
            &words[..],
            &[
                "--output",
                "none",
                "--output-format",
                "maildir",
                "--dry-run",
            ],
        ]
        .concat(),
        "echo secret",
    );
    let mut forecast = counts(&foretold, "merge");
    assert_eq!(names(&folder), ["local.mbox"]);
    let survey = run(
        &folder,
        &["inspect", "--duplicates", "--json", &url, "local.mbox"],
        "echo secret",
    );
    assert_eq!(counts(&survey, "duplicates"), forecast);
    forecast.as_object_mut().unwrap().remove("fillable");

    let output = run(
        &folder,
        &[
            &words[..],
            &["--output", "all", "--output-format", "maildir"],
        ]
        .concat(),
        "echo secret",
    );
    let made = counts(&output, "merge");
    assert_eq!(made, forecast);
    assert_eq!(
        (made["messages"].as_u64(), made["kept"].as_u64()),
        (Some(7), Some(5))
    );
    let pairs = serde_json::json!([{"sources": [url, "local.mbox"], "mails": 1}]);
    assert_eq!(made["pairs"], pairs);
    assert_eq!(names(&folder), ["all", "local.mbox"]);
    let mut flags: Vec<(String, String)> = ["cur", "new"]
        .iter()
        .flat_map(|part| fs::read_dir(folder.at("all").join(part)).unwrap())
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let subject = text.split("Subject: ").nth(1).unwrap()[..1].to_owned();
            let name = path.file_name().unwrap().to_str().unwrap();
            (
                subject,
                name.split(":2,").nth(1).unwrap_or_default().to_owned(),
            )
        })
        .collect();
    flags.sort();
    let expected = [("1", "FSa"), ("2", ""), ("3", "S"), ("4", "R"), ("7", "")]
        .map(|(subject, flags)| (subject.to_owned(), flags.to_owned()));
    assert_eq!(flags, expected);
    // The run changed nothing on the server.
    assert_eq!(
        format!("{:?}", server.client().all("INBOX")),
        format!("{before:?}")
    );
}

#[test]
fn folders_of_an_account_are_those_of_the_result() {
    let Some((server, folder)) = server("folders_of_an_account_are_those_of_the_result") else {
        return;
    };
    let url = server.url("");
    let output = run(
        &folder,
        &[
            "merge",
            "local.mbox",
            &url,
            "--output",
            "all",
            "--output-format",
            "mbox",
        ],
        "echo secret",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains("7 messages in 2 sources, 5 mails in the result"),
        "{said}"
    );
    let subjects = |name: &str| {
        let text = folder.read(name);
        let subjects = text.split("Subject: ").skip(1).map(|it| it[..1].to_owned());
        subjects.collect::<String>()
    };
    assert_eq!(subjects("all/INBOX.mbox"), "12");
    assert_eq!(subjects("all/Archive.mbox"), "34");
    assert_eq!(subjects("all/local.mbox"), "17");
}

#[test]
fn account_that_cannot_be_read_leaves_no_result_and_no_temporary_files() {
    let Some((server, folder)) =
        server("account_that_cannot_be_read_leaves_no_result_and_no_temporary_files")
    else {
        return;
    };
    let url = server.url("");
    let output = run(
        &folder,
        &["merge", "local.mbox", &url, "--output", "all"],
        "echo wrong",
    );
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("127.0.0.1"), "{}", stderr(&output));
    assert_eq!(names(&folder), ["local.mbox"]);
    let output = run(
        &folder,
        &["inspect", "--duplicates", "--json", "local.mbox", &url],
        "echo wrong",
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("127.0.0.1"), "{}", stderr(&output));
    let value = reports::object(&output.stdout);
    assert_eq!(value["duplicates"]["kept"], 2);
}

#[test]
fn mail_that_a_killed_merge_has_downloaded_is_removed_by_the_next_one() {
    let Some((server, folder)) =
        server("mail_that_a_killed_merge_has_downloaded_is_removed_by_the_next_one")
    else {
        return;
    };
    let url = server.url("");
    let words = ["merge", &url, "local.mbox", "--flat", "--output", "all"];
    let mut child = embody()
        .current_dir(folder.path())
        .args(words)
        .args(["--allow-plaintext", "--password-command", "echo secret"])
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !names(&folder)
        .iter()
        .any(|name| name.starts_with(".embody-"))
    {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        names(&folder)
            .iter()
            .any(|name| name.starts_with(".embody-"))
    );
    let output = run(&folder, &words, "echo secret");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(names(&folder), ["all", "local.mbox"]);
}
