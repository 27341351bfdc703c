//! `t.mbox.gz` and `all.mbox.gz` as public-inbox (lore.kernel.org) sends them: a gzip stream of an mboxrd in which all
//! separators are the same line (docs/mailbox-internals.md).

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::programs::{embody, fed, stderr};

/// A mail before it is written to the mailbox: header, line ending, body.
struct Mail {
    header: String,
    newline: &'static str,
    body: String,
}

impl Mail {
    fn new(number: usize, fields: &str, body: &str) -> Self {
        Self {
            header: format!(
                "From: a@example.org\nSubject: [PATCH {number}/9] net: x\nMessage-Id: <{number}@example.org>\n\
                 List-Id: <netdev.vger.kernel.org>\n{fields}"
            ),
            newline: "\n",
            body: body.to_owned(),
        }
    }

    fn with_crlf(mut self) -> Self {
        self.header = self.header.replace('\n', "\r\n");
        self.body = self.body.replace('\n', "\r\n");
        self.newline = "\r\n";
        self
    }

    /// Returns the mail as public-inbox writes it: the separator has the line ending of the mail, the body is quoted with
    /// `s/^(>*From )/>$1/gm`, and a line feed follows.
    fn written(&self) -> String {
        let Self {
            header,
            newline,
            body,
        } = self;
        let quoted: String = body
            .split_inclusive('\n')
            .map(|line| {
                if line.trim_start_matches('>').starts_with("From ") {
                    format!(">{line}")
                } else {
                    line.to_owned()
                }
            })
            .collect();
        format!("From mboxrd@z Thu Jan  1 00:00:00 1970{newline}{header}{newline}{quoted}\n")
    }
}

const SEPARATOR: &str = "From mboxrd@z Thu Jan  1 00:00:00 1970";

const FROM_LINES: &str =
    "From here on\n>From an answer\n>>From an answer to it\nFrom: no such line\n From me\n";

/// Returns mails without references.
fn plain() -> Vec<Mail> {
    let patch = "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n\
                 From: A <a@example.org>\nDate: Thu, 1 Jan 1970 00:00:00 +0000\n\n---\n x | 2 +-\n\n-- \n2.39.2\n";
    vec![
        Mail::new(1, "", "text\n"),
        Mail::new(2, "", patch),
        Mail::new(3, "", FROM_LINES).with_crlf(),
        Mail::new(4, "", ""),
        Mail::new(5, "", "\n\n"),
        // A separator in the text of a reply.
        Mail::new(6, "", &format!("text\n\n{SEPARATOR}\nSubject: x\n\ntext\n")),
        Mail::new(7, "", "the last line has no end"),
    ]
}

/// Returns a mail whose part is a `data:` URL, or the text of it.
fn fetched(number: usize, came_in: bool) -> Mail {
    if !came_in {
        let url: String = FROM_LINES
            .bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect();
        let fields = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n";
        let body = format!(
            "--b\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:text/plain,{url}\"\n\n\
             Content-Type: text/plain\n\n--b\n\n{FROM_LINES}--b--\n"
        );
        Mail::new(number, fields, &body)
    } else {
        let fields = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n";
        let body = format!(
            "--b\nContent-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\n{FROM_LINES}\n--b\n\n{FROM_LINES}--b--\n"
        );
        Mail::new(number, fields, &body)
    }
}

fn mailbox(mails: &[Mail]) -> Vec<u8> {
    mails.iter().map(Mail::written).collect::<String>().into()
}

fn gzip(direction: &str, bytes: &[u8]) -> Vec<u8> {
    let program = format!(
        "import sys, gzip; sys.stdout.buffer.write(gzip.{direction}(sys.stdin.buffer.read()))"
    );
    let output = fed(Command::new("python3").args(["-c", &program]), bytes);
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let output = fed(embody().args(arguments).current_dir(folder), b"");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

#[test]
fn every_mail_is_counted_and_every_octet_kept() {
    let mails = plain();
    let octets = mailbox(&mails);
    let folder = tempfile::tempdir().unwrap();
    let before = gzip("compress", &octets);
    fs::write(folder.path().join("t.mbox.gz"), &before).unwrap();
    let counted = format!("{} messages read, 0 changed", mails.len());
    for out in ["out.mbox", "out.mbox.gz"] {
        let output = run(folder.path(), &["convert", "t.mbox.gz", "--output", out]);
        assert!(stderr(&output).contains(&counted), "{}", stderr(&output));
        let mut written = fs::read(folder.path().join(out)).unwrap();
        if out.ends_with("gz") {
            written = gzip("decompress", &written);
        }
        assert!(written == octets, "{}", written.escape_ascii());
    }
    let output = run(folder.path(), &["convert", "--in-place", "t.mbox.gz"]);
    assert!(stderr(&output).contains(&counted), "{}", stderr(&output));
    assert!(fs::read(folder.path().join("t.mbox.gz")).unwrap() == before);
}

#[test]
fn what_comes_in_is_quoted_as_the_rest_of_the_mailbox() {
    let mails = |came_in| {
        let mut mails = plain();
        mails.insert(1, fetched(8, came_in));
        mails.insert(4, fetched(9, came_in).with_crlf());
        mails
    };
    let folder = tempfile::tempdir().unwrap();
    let before = gzip("compress", &mailbox(&mails(false)));
    fs::write(folder.path().join("t.mbox.gz"), before).unwrap();
    let output = run(folder.path(), &["convert", "--in-place", "t.mbox.gz"]);
    let counted = format!("{} messages read, 2 changed", mails(false).len());
    assert!(stderr(&output).contains(&counted), "{}", stderr(&output));
    let after = fs::read(folder.path().join("t.mbox.gz")).unwrap();
    let (after, expected) = (gzip("decompress", &after), mailbox(&mails(true)));
    assert!(
        after == expected,
        "{}\n{}",
        after.escape_ascii(),
        expected.escape_ascii()
    );
}
