//! Content-Length and Lines fields of changed messages: a message is the same from `filter` and in each format of mailbox, and
//! the sizes in its file name are correct.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::common::mail::{assert_bytes, crlf};
use crate::common::programs::{embody, stderr};

/// Mails with correct lengths, and how many lengths are correct after the change.
const MAILS: [(&str, &str, usize); 6] = [
    (
        "a message that is a reference",
        "From: a@b\nMIME-Version: 1.0\nContent-Length: 26\nLines: 2\n\
         Content-Type: message/external-body; access-type=URL; URL=\"data:,hi%0Athere%0A\"\n\n\
         Content-Type: text/plain\n\n",
        2,
    ),
    (
        "a message that is a reference and says it wrongly",
        "From: a@b\nMIME-Version: 1.0\nContent-Length: 2600\nLines: 20\nLines: many\n\
         Content-Type: message/external-body; access-type=URL; URL=\"data:,hi%0Athere%0A\"\n\n\
         Content-Type: text/plain\n\n",
        3,
    ),
    (
        "a part with a link",
        "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\
         Content-Base: https://a.example/very/long/path/\n\n--B\nContent-Type: text/html\n\
         Content-Length: 18\nLines: 1\n\n<a href=\"x\">y</a>\n--B--\n",
        2,
    ),
    (
        "a part with a link, of which the lengths are wrong",
        "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\
         Content-Base: https://a.example/very/long/path/\n\n--B\nContent-Type: text/html\n\
         Content-Length: 180\nLines: 10\n\n<a href=\"x\">y</a>\n--B--\n",
        0,
    ),
    (
        "a message in a message",
        "From: a@b\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\nFrom: c@d\nMIME-Version: 1.0\n\
         Content-Type: text/html\nContent-Base: https://a.example/very/long/path/\n\
         Content-Length: 18\nLines: 1\n\n<a href=\"x\">y</a>\n",
        2,
    ),
    (
        "a message that is HTML with a picture",
        "From: a@b\nMIME-Version: 1.0\nContent-Type: text/html\nContent-Length: 91\nLines: 1\n\n\
         <img src=\"data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7\">\n",
        2,
    ),
];

/// Returns the same mail with CRLF, and with the lengths for CRLF.
fn with_crlf(mail: &str) -> String {
    let mail = mail
        .replace("th: 26\n", "th: 28\n")
        .replace("th: 18\n", "th: 19\n")
        .replace("th: 91\n", "th: 92\n");
    String::from_utf8(crlf(mail.as_bytes())).unwrap()
}

struct Work(TempDir);

impl Work {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Vec<u8> {
        let output = embody()
            .args(arguments)
            .args(["--embed", "data", "--quiet"])
            .current_dir(self.0.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    }
}

/// Returns the name and the content of the only file in a directory.
fn only(folder: &Path) -> (String, Vec<u8>) {
    let mut entries = fs::read_dir(folder).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    (name, fs::read(path).unwrap())
}

/// Returns the number of fields with the correct length of the body after their header. The body extends to the end or the next
/// boundary line, with or without the line ending before it.
fn true_lengths(mail: &str, name: &str) -> usize {
    let mail = mail.replace("\r\n", "\u{1}\n");
    let mut count = 0;
    for (at, _) in mail
        .match_indices("Content-Length:")
        .chain(mail.match_indices("\nLines:"))
    {
        let field = mail[at..].trim_start();
        let (field_name, rest) = field.split_once(':').unwrap();
        let value: usize = rest
            .split('\n')
            .next()
            .unwrap()
            .replace('\u{1}', "")
            .trim()
            .parse()
            .unwrap();
        let blank = ["\n\n", "\n\u{1}\n"]
            .map(|blank| mail[at..].find(blank).map(|to| at + to + blank.len()));
        let body = &mail[blank.into_iter().flatten().min().unwrap()..];
        // The body of the message itself may be a multipart, which ends with the message.
        let header = &mail[..at];
        let body = if header.contains("--B") {
            &body[..body.find("--B").unwrap()]
        } else {
            body
        };
        let unended = body.strip_suffix('\n').unwrap_or(body);
        let without = unended.strip_suffix('\u{1}').unwrap_or(unended);
        let is_true = [body, without].into_iter().any(|body| match field_name {
            "Lines" => body.matches('\n').count() == value,
            _ => body.len() == value,
        });
        assert!(is_true, "{name}: {field_name}: {value} in {mail}");
        count += 1;
    }
    count
}

#[test]
fn a_message_is_the_same_out_of_a_filter_and_out_of_every_form_of_mailbox() {
    for (name, mail, lengths) in MAILS {
        for mail in [mail.to_owned(), with_crlf(mail)] {
            let work = Work(tempfile::tempdir().unwrap());
            let mail = mail.as_bytes();
            work.write("one.eml", mail);
            let wanted = work.run(&["filter", "one.eml"]);
            assert_ne!(wanted, mail, "{name}");
            assert_eq!(
                true_lengths(str::from_utf8(&wanted).unwrap(), name),
                lengths,
                "{name}"
            );

            work.run(&["convert", "one.eml", "--output", "two.eml"]);
            assert_bytes(&fs::read(work.path("two.eml")).unwrap(), &wanted, name);
            assert_bytes(
                &work.run(&["convert", "one.eml", "--output", "-"]),
                &wanted,
                name,
            );

            work.write("folder/a.eml", mail);
            work.run(&["convert", "folder", "--output", "beside"]);
            assert_bytes(&only(&work.path("beside")).1, &wanted, name);
            work.run(&["convert", "folder", "--in-place"]);
            assert_bytes(&only(&work.path("folder")).1, &wanted, name);

            work.write("mh/1", mail);
            work.write("mh/.mh_sequences", b"cur: 1\n");
            work.run(&["convert", "mh", "--in-place"]);
            assert_bytes(&fs::read(work.path("mh/1")).unwrap(), &wanted, name);

            let wire = |mail: &[u8]| crlf(mail).len();
            let named = |mail: &[u8]| format!("1.h,S={},W={}:2,S", mail.len(), wire(mail));
            for folder in ["new", "tmp"] {
                fs::create_dir_all(work.path("maildir").join(folder)).unwrap();
            }
            work.write(&format!("maildir/cur/{}", named(mail)), mail);
            work.run(&["convert", "maildir", "--output", "maildir2"]);
            work.run(&["convert", "maildir", "--in-place"]);
            for maildir in ["maildir", "maildir2"] {
                let (file, content) = only(&work.path(maildir).join("cur"));
                assert_bytes(&content, &wanted, name);
                assert_eq!(file, named(&wanted), "{name}");
            }

            // The results are equal if no line is quoted and no line ending is missing.
            let newline = if mail.contains(&b'\r') { "\r\n" } else { "\n" };
            let mbox = |mail: &[u8]| {
                let end = if mail.ends_with(b"\n") { newline } else { "" };
                let from = format!("From a@b Thu Jan  1 00:00:00 1970{newline}");
                [from.as_bytes(), mail, end.as_bytes()].concat()
            };
            if wanted.ends_with(b"\n") {
                work.write("mbox", &mbox(mail));
                work.run(&["convert", "mbox", "--in-place"]);
                assert_bytes(&fs::read(work.path("mbox")).unwrap(), &mbox(&wanted), name);
            }
            // The milter is compared with the filter in its own tests.
        }
    }
}

/// Bytes that a mailbox adds are counted, too.
#[test]
fn content_length_in_an_mbox_counts_the_quoting() {
    let mail = "From: a@b\nMIME-Version: 1.0\nContent-Length: 26\nLines: 3\n\
        Content-Type: message/external-body; access-type=URL; URL=\"data:,hi%0AFrom%20me\"\n\n\
        Content-Type: text/plain\n\n";
    let work = Work(tempfile::tempdir().unwrap());
    let from = "From a@b Thu Jan  1 00:00:00 1970\n";
    work.write(
        "mbox",
        format!("{from}{mail}\n{from}Subject: x\n\nx\n").as_bytes(),
    );
    work.run(&["convert", "mbox", "--in-place"]);
    let converted = fs::read_to_string(work.path("mbox")).unwrap();
    let body = "hi\n>From me\n";
    // Some programs count the empty line after the message. In that case, it is still counted.
    let wanted = mail
        .split_once("Content-Type: message")
        .unwrap()
        .0
        .replace("26", &body.len().to_string());
    let (header, behind) = converted
        .strip_prefix(from)
        .unwrap()
        .split_once("Content-Type")
        .unwrap();
    assert_eq!(header, wanted);
    assert!(
        behind.contains(&format!("\n\n{body}\n{from}")),
        "{converted}"
    );
}
