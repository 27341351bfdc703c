//! `--copies`: missing parts from other copies of a mail, by the form of the note, and what no copy may contribute.

mod attacks;
mod hostile;
mod mailboxes;
mod mailman;
mod many_notes;
mod notes;
mod yahoo;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::programs::{done, embody_in};
use crate::common::reports;

const PDF: &[u8] = b"%PDF-1.4 a file of some bytes, and one more line of them\n\0\x01\x02";

const FIELDS: &str = "From: Ann B <ann@example.org>\nTo: Otto <otto@example.net>\nSubject: a plan\n\
    Date: Mon, 6 May 2024 10:00:00 +0200\nMessage-ID: <1@example.org>\nMIME-Version: 1.0\n";

/// The attachment of [`whole`], as it was sent.
fn attachment(content: &[u8]) -> String {
    format!(
        "Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\
         Content-Transfer-Encoding: base64\n\n{}",
        STANDARD.encode(content)
    )
}

/// A mail with a text and another part.
fn with_part(text: &str, part: &str) -> String {
    format!(
        "{FIELDS}Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n{text}\n--b\n{part}\n--b--\n"
    )
}

/// The mail with its attachment.
fn whole() -> String {
    with_part("hello", &attachment(PDF))
}

/// The note of Thunderbird for the attachment.
fn deleted() -> String {
    "Content-Type: text/x-moz-deleted; name=\"Deleted: a.pdf\"\nContent-Transfer-Encoding: 8bit\n\
     Content-Disposition: inline; filename=\"Deleted: a.pdf\"\n\
     X-Mozilla-Altered: AttachmentDeleted; date=\"Mon May 06 10:00:00 2024\"\n\n\
     You deleted an attachment from this message. The original MIME headers for the attachment were:\n\
     Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\
     Content-Transfer-Encoding: base64\n"
        .to_owned()
}

/// A directory in which embody runs.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A directory with the mail `in.eml`, and a copy in the directory `mail` for each of `copies`.
    fn with(mail: &str, copies: &[&str]) -> Self {
        let place = Self::new();
        place.write("in.eml", mail);
        fs::create_dir(place.path("mail")).unwrap();
        for (number, copy) in copies.iter().enumerate() {
            place.write(&format!("mail/{}.eml", number + 1), copy);
        }
        place.write(
            "mail/other.eml",
            "Subject: another mail\nMessage-ID: <0@example.org>\n\nhello\n",
        );
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap()).into_owned()
    }

    /// Runs embody, and returns what it said.
    #[track_caller]
    fn run(&self, line: &str, status: i32) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        done(&embody_in(self.0.path(), &words), status)
    }

    /// Recovers `in.eml` with the copies in `mail`, and returns the result and the rows about references.
    #[track_caller]
    fn recovered(&self) -> (String, Vec<Value>) {
        for name in ["out.eml", "rows.jsonl"] {
            fs::remove_file(self.path(name)).ok();
        }
        let line = "recover --offline in.eml --copies mail --output out.eml --report rows.jsonl";
        self.run(line, 0);
        (self.read("out.eml"), self.rows())
    }

    fn rows(&self) -> Vec<Value> {
        let text = self.read("rows.jsonl");
        let rows = text.lines().map(reports::object);
        rows.filter(|row| row["kind"] != "link").collect()
    }

    /// Recovers `in.eml`, in which one part comes back, and returns the result and the row.
    #[track_caller]
    fn filled(&self) -> (String, Value) {
        let (out, rows) = self.recovered();
        let [row] = rows.as_slice() else {
            panic!("{rows:#?}")
        };
        assert!(
            matches!(row["outcome"].as_str(), Some("expanded" | "restored")),
            "{row:#}"
        );
        assert_eq!(row["from"], "copy", "{row:#}");
        // A second run changes nothing.
        let before = self.read("in.eml");
        self.write("in.eml", &out);
        assert_eq!(self.recovered().0, out);
        self.write("in.eml", before);
        (out, row.clone())
    }

    /// Recovers `in.eml`, which stays as it is, and returns the reason and the sentence.
    #[track_caller]
    fn left(&self) -> (String, String) {
        let (out, rows) = self.recovered();
        assert_eq!(out, self.read("in.eml"));
        let [row] = rows.as_slice() else {
            panic!("{rows:#?}")
        };
        assert_eq!(
            (&row["outcome"], &row["from"]),
            (&"left".into(), &"none".into()),
            "{row:#}"
        );
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("reason"), text("detail"))
    }
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}
