//! Backup and inspection of an account, with Dovecot, which also reads the result.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use super::proxy::Proxy;
use super::rig::{Kind, Server, url};
use crate::common::programs::{embody, signalled, stderr};
use crate::common::reports;

const DATE: &str = "03-Jan-2020 10:00:00 +0100";
/// The same date in seconds.
const SECONDS: i64 = 1_578_042_000;

fn mail(number: usize) -> Vec<u8> {
    format!("From: me@example.org\r\nSubject: {number}\r\nMessage-ID: <{number}@example.org>\r\n\r\nMail {number}\r\n")
        .into_bytes()
}

/// Returns a mail with an attachment of this encoded size in bytes.
fn with_attachment(number: usize, size: usize) -> Vec<u8> {
    let line = "QUJD".repeat(18) + "\r\n";
    let body = line.repeat(size / line.len());
    format!(
        "From: me@example.org\r\nSubject: {number}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
         --b\r\n\r\nhello\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}\r\n--b--\r\n"
    )
    .into_bytes()
}

fn run(port: u16, folder: &str, arguments: &[&str], out: Option<&Path>) -> Output {
    let mut command = embody();
    command
        .arg(arguments[0])
        .arg(url(port, folder))
        .args(["--allow-plaintext", "--password-command", "echo secret"])
        .args(&arguments[1..]);
    if let Some(out) = out {
        command.arg("--output").arg(out);
    }
    command.output().unwrap()
}

/// Returns the content and time of each message of a Maildir, by name.
fn messages(folder: &Path) -> BTreeMap<String, (Vec<u8>, i64)> {
    let entries = fs::read_dir(folder.join("cur")).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (
                name,
                (fs::read(&path).unwrap(), path.metadata().unwrap().mtime()),
            )
        })
        .collect()
}

#[test]
fn an_account_becomes_maildirs_with_flags_keywords_and_dates() {
    let test = "an_account_becomes_maildirs_with_flags_keywords_and_dates";
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let mut client = server.client();
    client.say("CREATE \"Archive/2020\"");
    client.say("CREATE \"Entw&APw-rfe\"");
    client.append("INBOX", "\\Seen \\Flagged Work $Forwarded", DATE, &mail(1));
    client.append("INBOX", "", DATE, &mail(2));
    client.append("INBOX", "\\Deleted Work Other", DATE, &mail(3));
    client.append(
        "Archive/2020",
        "\\Answered \\Draft",
        DATE,
        &with_attachment(4, 3_000_000),
    );
    client.append("Entw&APw-rfe", "", DATE, &mail(6));
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let output = run(server.port, "", &["convert"], Some(&out));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let inbox = messages(&out.join("INBOX"));
    let letters: Vec<&str> = inbox
        .keys()
        .map(|name| name.rsplit(',').next().unwrap())
        .collect();
    assert_eq!(letters, ["FPSab", "", "Tac"]);
    for (number, (content, time)) in (1..).zip(inbox.values()) {
        assert_eq!(content, &mail(number), "octet for octet");
        assert_eq!(*time, SECONDS);
    }
    let keywords = fs::read_to_string(out.join("INBOX/dovecot-keywords")).unwrap();
    assert_eq!(keywords, "0 Work\n1 $Forwarded\n2 Other\n");
    let archive = messages(&out.join("Archive/2020"));
    assert!(
        archive
            .values()
            .eq([&(with_attachment(4, 3_000_000), SECONDS)])
    );
    assert!(archive.keys().all(|name| name.ends_with(":2,DR")));
    assert!(out.join("Entwürfe/cur").is_dir());
    // The run changed nothing on the server, not even the flag \Seen.
    let flags = server.client().all("INBOX");
    assert!(!flags[1].flags.contains("\\seen"));

    // A later run downloads new mail, and the current flags.
    client.say("SELECT INBOX");
    client.say("UID STORE 2 +FLAGS (\\Seen Other)");
    client.append("INBOX", "", DATE, &mail(5));
    let again = run(server.port, "", &["convert"], Some(&out));
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let later = messages(&out.join("INBOX"));
    let letters: Vec<&str> = later
        .keys()
        .map(|name| name.rsplit(',').next().unwrap())
        .collect();
    assert_eq!(letters, ["FPSab", "Sc", "Tac", ""]);
    assert!(stderr(&again).contains("1 message"), "{}", stderr(&again));
    // embody reads its own result, like any other program.
    let seen = embody().arg("inspect").arg(&out).output().unwrap();
    assert!(
        String::from_utf8_lossy(&seen.stdout).contains("6 messages"),
        "{seen:?}"
    );
}

#[test]
fn options_select_folders_and_days() {
    let test = "options_select_folders_and_days";
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let mut client = server.client();
    for name in ["Archive", "Archive/2020", "Archive/2021", "Sp&AOQ-t"] {
        client.say(&format!("CREATE \"{name}\""));
        client.append(name, "", DATE, &mail(1));
        client.append(name, "", "03-Jan-2021 10:00:00 +0000", &mail(2));
    }
    client.append("INBOX", "", DATE, &mail(3));
    for (url, more, folders, count) in [
        ("Archive", "", "Archive", 2),
        ("Archive/*", "", "Archive/2020 Archive/2021", 4),
        ("%", "", "Archive INBOX Spät", 5),
        ("Sp%C3%A4t", "", "Spät", 2),
        ("Sp&AOQ-t", "", "Spät", 2),
        ("inbox", "", "INBOX", 1),
        ("", "--folder Archive/*", "Archive/2020 Archive/2021", 4),
        (
            "",
            "--not-folder Archive* --not-folder Trash",
            "INBOX Spät",
            3,
        ),
        ("Archive", "--since 2020-06-01", "Archive", 1),
        ("Archive", "--before 2020-06-01", "Archive", 1),
        (
            "Archive",
            "--since 2020-01-03 --before 2021-01-03",
            "Archive",
            1,
        ),
        ("Archive;UID=2", "", "Archive", 1),
    ] {
        let folder = TempDir::new().unwrap();
        let out = folder.path().join("out");
        let mut arguments = vec!["convert"];
        arguments.extend(more.split_whitespace());
        let output = run(server.port, url, &arguments, Some(&out));
        assert_eq!(
            output.status.code(),
            Some(0),
            "{url} {more}: {}",
            stderr(&output)
        );
        let mut found = Vec::new();
        let mut messages_found = 0;
        for name in ["Archive", "Archive/2020", "Archive/2021", "INBOX", "Spät"] {
            if out.join(name).join("cur").is_dir() {
                found.push(name);
                messages_found += messages(&out.join(name)).len();
            }
        }
        assert_eq!(
            (found.join(" ").as_str(), messages_found),
            (folders, count),
            "{url} {more}"
        );
    }
    for (url, arguments, named) in [
        ("Nowhere", vec!["convert"], "not have a folder Nowhere"),
        ("", vec!["convert", "--since", "yesterday"], "not a day"),
        ("", vec!["convert", "--output-format", "mbox"], "Maildirs"),
        (
            "",
            vec!["inspect", "--html", "x"],
            "work only with mail in files",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        let new = folder.path().join("out");
        let out = (arguments[0] == "convert").then_some(new.as_path());
        let output = run(server.port, url, &arguments, out);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(named),
            "{named}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn imap_message_is_converted_like_a_local_message() {
    let test = "imap_message_is_converted_like_a_local_message";
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let reference = b"Subject: a card\r\nMIME-Version: 1.0\r\nContent-Type: message/external-body;\r\n access-type=URL; \
        URL=\"data:text/plain,A%20brief%20note\"\r\n\r\nContent-Type: text/plain\r\n\r\n"
        .as_slice();
    server.client().append("INBOX", "\\Seen", DATE, reference);
    let folder = TempDir::new().unwrap();
    let (out, report) = (folder.path().join("out"), folder.path().join("report"));
    let arguments = ["convert", "--report", report.to_str().unwrap()];
    let output = run(server.port, "INBOX", &arguments, Some(&out));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let source = folder.path().join("card.eml");
    fs::write(&source, reference).unwrap();
    let filtered = embody().arg("filter").arg(&source).output().unwrap();
    let all = messages(&out.join("INBOX"));
    assert!(all.values().all(|(content, _)| *content == filtered.stdout));
    assert!(
        all.keys()
            .all(|name| name.contains(&format!(",S={}:2,S", filtered.stdout.len())))
    );
    let rows = fs::read_to_string(report).unwrap();
    let row = reports::object(rows.lines().next().unwrap());
    assert_eq!(row["outcome"], "expanded");
    assert_eq!((&row["folder"], &row["uid"]), (&"INBOX".into(), &1.into()));
    let examined = server.client().say("EXAMINE INBOX").concat();
    let uidvalidity = String::from_utf8(examined)
        .unwrap()
        .split_once("UIDVALIDITY ")
        .unwrap()
        .1
        .split_once(']')
        .unwrap()
        .0
        .to_owned();
    assert_eq!(
        row["source"],
        format!("{};UIDVALIDITY={uidvalidity}/;UID=1", server.url("INBOX"))
    );
}

#[test]
fn killed_conversion_of_an_account_resumes_without_cut_or_doubled_mail() {
    let test = "killed_conversion_of_an_account_resumes_without_cut_or_doubled_mail";
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let mut client = server.client();
    for number in 1..=400 {
        client.append("INBOX", "", DATE, &mail(number));
    }
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("out");
    let proxy = Proxy::to(server.port);
    for round in 0..12 {
        if round % 2 == 0 {
            // The connection breaks, and is made again.
            proxy.cut_after(2000 + round * 3000);
        }
        let mut child = embody()
            .arg("convert")
            .arg(url(proxy.port, "INBOX"))
            .args([
                "--allow-plaintext",
                "--password-command",
                "echo secret",
                "--quiet",
                "--output",
            ])
            .arg(&out)
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10 + 25 * round));
        signalled(child.id(), "KILL");
        child.wait().unwrap();
        if out.join("INBOX/cur").is_dir() {
            for (content, _) in messages(&out.join("INBOX")).values() {
                assert!(content.starts_with(b"From: me@") && content.ends_with(b"\r\n"));
            }
        }
    }
    let output = run(proxy.port, "INBOX", &["convert"], Some(&out));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut all: Vec<_> = messages(&out.join("INBOX"))
        .into_values()
        .map(|(content, _)| content)
        .collect();
    let mut wanted: Vec<_> = (1..=400).map(mail).collect();
    all.sort();
    wanted.sort();
    assert!(all == wanted, "{} messages", all.len());
    let left: Vec<_> = fs::read_dir(out.join("INBOX/tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn inspect_downloads_no_mail_and_changes_nothing() {
    let test = "inspect_downloads_no_mail_and_changes_nothing";
    let Some(server) = Server::start(test, Kind::DovecotWithQuota(100_000)) else {
        return;
    };
    let mut client = server.client();
    for number in 1..=500 {
        client.append("INBOX", "", DATE, &mail(number));
    }
    for number in 1..=5 {
        client.append("INBOX", "", DATE, &with_attachment(number, 1_000_000));
    }
    client.append("INBOX", "\\Deleted", DATE, &with_attachment(9, 1_000_000));
    let proxy = Proxy::to(server.port);
    let output = run(proxy.port, "", &["inspect", "--larger-than", "500k"], None);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said
        .lines()
        .find(|line| line.starts_with("INBOX: "))
        .unwrap();
    assert!(
        line.contains("506 messages")
            && line.contains("5 attachments")
            && line.contains("from 5 messages"),
        "{said}"
    );
    assert!(said.contains("of the quota are used"), "{said}");
    let (to, from) = proxy.traffic();
    assert!(
        to + from < 506 * 100,
        "{to} and {from} bytes for 506 messages"
    );
    let json = run(server.port, "INBOX", &["inspect", "--json"], None);
    let row = reports::object(&json.stdout);
    assert_eq!(row["folder"], "INBOX");
    assert_eq!(row["messages"], 506);
    assert_eq!(row["detachable_messages"], 5);
    assert!(
        server
            .client()
            .all("INBOX")
            .iter()
            .all(|held| !held.flags.contains("\\seen"))
    );
}
