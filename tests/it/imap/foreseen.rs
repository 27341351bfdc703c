//! The part of an account that a dry run downloads is sufficient: its prediction is the same as for the same mail in files.

use std::path::Path;

use super::mails::{command, mail, rows};
use super::proxy::Proxy;
use super::rig::{Kind, Server, url};
use crate::common::programs::embody;

/// Returns the mails of all samples with CRLF, mails of four kinds, and both forms of notes of `detach`.
fn mails(folder: &Path) -> Vec<Vec<u8>> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "eml") {
            let text = std::fs::read(path).unwrap();
            // Some servers reject a NUL, and some treat a bare LF as a line ending.
            if text.contains(&0) {
                continue;
            }
            let text: Vec<u8> = text.into_iter().filter(|octet| *octet != b'\r').collect();
            let lines = text.split_inclusive(|octet| *octet == b'\n');
            let octets = lines.flat_map(|line| match line.strip_suffix(b"\n") {
                Some(line) => [line, b"\r\n"].concat(),
                None => line.to_vec(),
            });
            all.push(octets.collect());
        }
    }
    assert!(all.len() > 10);
    for number in 0..8 {
        all.push(mail(number, 8000).octets);
        for form in ["external-body", "thunderbird"] {
            let file = folder.join("mail.eml");
            std::fs::write(&file, mail(number, 8000).octets).unwrap();
            let detached = embody()
                .args([
                    "detach",
                    "--quiet",
                    "--larger-than",
                    "5k",
                    "--note-format",
                    form,
                    "--store",
                ])
                .arg(folder.join("store"))
                .arg(&file)
                .output()
                .unwrap();
            assert!(detached.status.success());
            all.push(detached.stdout);
        }
    }
    all
}

/// Returns the content of rows, without the names of messages.
fn said(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = rows(folder)
        .iter()
        .map(|row| {
            let words = [
                "part",
                "kind",
                "url",
                "outcome",
                "reason",
                "media_type",
                "bytes",
                "subject",
            ];
            words.map(|word| row[word].to_string()).join(" ")
        })
        .filter(|row| !row.contains("\"left\""))
        .collect();
    all.sort();
    let _ = std::fs::remove_file(folder.join("report"));
    all
}

#[test]
fn a_dry_run_over_an_account_says_what_it_says_of_the_same_mail_in_files() {
    let test = "a_dry_run_over_an_account_says_what_it_says_of_the_same_mail_in_files";
    for kind in Kind::ALL {
        let Some(server) = Server::start(test, kind) else {
            continue;
        };
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let mut client = server.client();
        let maildir = folder.join("Maildir");
        for part in ["cur", "new", "tmp"] {
            std::fs::create_dir_all(maildir.join(part)).unwrap();
        }
        for (number, octets) in mails(folder).iter().enumerate() {
            let date = "03-Jan-2020 10:00:00 +0000";
            let answer = client.try_append("INBOX", "", date, octets);
            // Cyrus and pymap reject some mails.
            if answer.starts_with("OK") {
                std::fs::write(maildir.join("cur").join(format!("{number}:2,")), octets).unwrap();
            }
        }
        for verb in ["detach", "restore", "embed"] {
            let url = server.url("INBOX");
            let there = command(folder, verb, &url)
                .arg("--dry-run")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&there.stderr);
            assert!(there.status.success(), "{kind:?}: {verb}: {text}");
            let of_account = said(folder);
            let mut local = embody();
            local
                .arg(verb)
                .args(["--in-place", "--dry-run", "--report"])
                .arg(folder.join("report"));
            if verb != "embed" {
                local.arg("--store").arg(folder.join("store"));
            }
            if verb == "detach" {
                local.args(["--larger-than", "5k"]);
            }
            let here = local.arg(&maildir).output().unwrap();
            let text = String::from_utf8_lossy(&here.stderr);
            assert!(here.status.success(), "{verb}: {text}");
            let of_files = said(folder);
            assert!(!of_files.is_empty(), "{verb}");
            assert_eq!(of_account, of_files, "{kind:?}: {verb}");
        }
    }
}

#[test]
fn a_dry_run_downloads_no_small_mail_of_plain_text() {
    let test = "a_dry_run_downloads_no_small_mail_of_plain_text";
    let Some(server) = Server::start(test, Kind::Dovecot) else {
        return;
    };
    let mut client = server.client();
    for number in 0..200 {
        let text = format!("Subject: {number}\r\n\r\n{}\r\n", "a line\r\n".repeat(100));
        client.append("INBOX", "", "03-Jan-2020 10:00:00 +0000", text.as_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("store")).unwrap();
    for verb in ["detach", "restore", "embed"] {
        let proxy = Proxy::to(server.port);
        let done = command(folder.path(), verb, &url(proxy.port, "INBOX"))
            .arg("--dry-run")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{verb}: {text}");
        let (there, back) = proxy.traffic();
        // Some structures are fetched to check whether the server's search for header fields is reliable.
        let most = if verb == "detach" { 10_000 } else { 60_000 };
        assert!(there + back < most, "{verb}: {there} and {back} octets");
    }
}

/// A real quota without room for a copy.
#[test]
fn a_full_quota_leaves_each_message_as_it_is_and_room_for_one_suffices() {
    let test = "a_full_quota_leaves_each_message_as_it_is_and_room_for_one_suffices";
    let Some(server) = Server::start(test, Kind::DovecotWithQuota(300)) else {
        return;
    };
    let date = "03-Jan-2020 10:00:00 +0000";
    let mut client = server.client();
    let mut number = 1;
    while client
        .try_append("INBOX", "", date, &mail(number, 40_000).octets)
        .starts_with("OK")
    {
        number += 4;
    }
    let filler = format!("Subject: filler\r\n\r\n{}\r\n", "x".repeat(300));
    while client
        .try_append("INBOX", "", date, filler.as_bytes())
        .starts_with("OK")
    {}
    let before = client.all("INBOX");
    let folder = tempfile::tempdir().unwrap();
    let detach = || {
        let url = server.url("INBOX");
        let done = command(folder.path(), "detach", &url).output().unwrap();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let (status, said) = detach();
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(client.all("INBOX"), before);
    assert!(
        said.contains("7 kept: 7 above the quota") && said.contains("0 changed"),
        "{said}"
    );
    // After a few small mails were deleted, there is room for a copy, and each replacement makes room for the next one.
    client.say("SELECT INBOX");
    let small = before.iter().filter(|held| held.size < 1000).take(12);
    for held in small {
        client.say(&format!("UID STORE {} +FLAGS (\\Deleted)", held.uid));
    }
    client.say("EXPUNGE");
    let (status, said) = detach();
    assert_eq!(status, Some(0), "{said}");
    assert!(!said.contains("above the quota"), "{said}");
    assert!(
        said.contains("of its quota") && said.contains("less than before"),
        "{said}"
    );
    let all = client.all("INBOX");
    assert_eq!(
        all.len(),
        before.len() - before.iter().filter(|it| it.size < 1000).count().min(12)
    );
    assert!(all.iter().all(|held| held.size < 5000));
}
