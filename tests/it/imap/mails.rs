//! Mails of four kinds, and runs of embody on an account with them.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::client::Client;
use crate::common::programs::embody;
use crate::common::reports;

/// A mail, with the facts that a server stores with it.
pub(super) struct Mail {
    pub(super) flags: String,
    pub(super) date: String,
    pub(super) octets: Vec<u8>,
}

/// Returns the same bytes for the same number. No two lines are equal.
fn noise(number: usize, size: usize) -> Vec<u8> {
    let mut state = number as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..size).map(|_| next()).collect()
}

fn base64(number: usize, size: usize) -> String {
    let coded = BASE64_STANDARD.encode(noise(number, size));
    let lines = coded.as_bytes().chunks(76);
    lines
        .map(|line| format!("{}\r\n", std::str::from_utf8(line).unwrap()))
        .collect()
}

/// Returns plain text, an attachment, HTML with a picture and an attachment, or a forwarded message with an attachment.
/// Attachments have about `size` bytes.
pub(super) fn mail(number: usize, size: usize) -> Mail {
    let header = format!(
        "Return-Path: <a@example.org>\r\nFrom: =?utf-8?q?M=C3=BCller?= <a@example.org>\r\n\
         Subject: number {number} \r\nMessage-ID: <{number}@example.org>\r\n\
         References: <{}@example.org>\r\n <0@example.org>\r\nMIME-Version: 1.0\r\n",
        number / 2
    );
    let attachment = |name: &str| {
        format!(
            "Content-Type: application/pdf; name=\"{name}\"\r\nContent-Transfer-Encoding: base64\r\n\
             Content-Disposition: attachment;\r\n\tfilename=\"{name}\"\r\n\r\n{}",
            base64(number, size * 3 / 4)
        )
    };
    let text = "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
        Gr\u{fc}\u{df}e  \t\r\n.\r\n\r\n";
    let body = match number % 4 {
        0 => format!("{text}From here on, {number}\r\n--b\r\n"),
        1 => format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\npreamble\r\n--b\r\n{text}\r\n--b\r\n{}--b--\r\n\r\nepilogue",
            attachment("a.pdf")
        ),
        2 => format!(
            "Content-Type: multipart/mixed; boundary=\"b b\"\r\n\r\n--b b\r\nContent-Type: multipart/related; boundary=r\r\n\r\n\
             --r\r\nContent-Type: text/html\r\n\r\n<p><img src=\"cid:p{number}\"></p>\r\n\
             --r\r\nContent-Type: image/png\r\nContent-ID: <p{number}>\r\nContent-Transfer-Encoding: base64\r\n\r\n{}--r--\r\n\
             --b b\r\n{}--b b--\r\n",
            base64(number + 1, 300),
            attachment("b.pdf")
        ),
        _ => format!(
            "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n{text}\r\n--b\r\n\
             Content-Type: message/rfc822\r\n\r\nSubject: inner\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/mixed; boundary=inner\r\n\r\n--inner\r\n{}--inner--\r\n--b--\r\n",
            attachment("c.pdf")
        ),
    };
    let flags = [
        "",
        "\\Seen",
        "\\Flagged \\Answered",
        "\\Seen \\Draft",
        "\\Answered \\Seen \\Flagged",
    ];
    let zone = ["+0000", "+0100", "-0730", "+1245"][number % 4];
    Mail {
        flags: flags[number % 5].to_owned(),
        date: format!(
            "{:02}-Feb-20{:02} {:02}:{:02}:{:02} {zone}",
            number % 28 + 1,
            number / 28 % 24,
            number % 24,
            number % 60,
            (number / 7) % 60
        ),
        octets: (header + &body).into_bytes(),
    }
}

/// Fills a folder. If `keywords` is set, every third message has keywords.
pub(super) fn fill(client: &mut Client, folder: &str, count: usize, size: usize, keywords: bool) {
    for number in 0..count {
        let mail = mail(number, size);
        let more = match number % 3 {
            1 if keywords => " $Forwarded",
            2 if keywords => " Urgent $Label1",
            _ => "",
        };
        client.append(
            folder,
            format!("{}{more}", mail.flags).trim(),
            &mail.date,
            &mail.octets,
        );
    }
}

/// Returns a command with the directories `store` and `state` of a run.
pub(super) fn command(folder: &Path, verb: &str, url: &str) -> Command {
    let mut command = embody();
    command
        .arg(verb)
        .args([
            "--in-place",
            "--allow-plaintext",
            "--password-command",
            "echo secret",
        ])
        .arg("--state")
        .arg(folder.join("state"))
        .arg("--report")
        .arg(folder.join("report"))
        .stdin(Stdio::null());
    if verb != "embed" {
        command.arg("--store").arg(folder.join("store"));
    }
    if verb == "detach" {
        command.args(["--larger-than", "5k"]);
    }
    command.arg(url);
    command
}

#[track_caller]
pub(super) fn run(folder: &Path, verb: &str, url: &str) -> Output {
    let output = command(folder, verb, url).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{verb} {url}: {said}");
    output
}

pub(super) fn started(folder: &Path, verb: &str, url: &str) -> Child {
    command(folder, verb, url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the rows of all runs so far.
pub(super) fn rows(folder: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(folder.join("report")).unwrap_or_default();
    text.lines().map(reports::object).collect()
}
