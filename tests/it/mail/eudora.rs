//! Messages that Eudora took apart are converted back to MIME (docs/references.md, "Eudora"): marked text, and lines that name
//! files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::browser::{chromium, shown};
use crate::common::mail::{Leaf, crlf, python_leaves};
use crate::common::programs::{done, embody, embody_in, fed, stderr};
use crate::common::reports;

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n and so on\0\xff";
const SCAN: &[u8] = b"%PDF-1.4\n\xff\xfe\r\n and so on\0";

/// A directory with Eudora mailboxes.
struct Folder(TempDir);

/// The result of a run: the messages, and its rows.
struct Made {
    messages: Vec<String>,
    rows: Vec<Value>,
    said: String,
}

impl Folder {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = Self(TempDir::new().unwrap());
        for (name, octets) in files {
            folder.write(name, octets);
        }
        folder
    }

    fn write(&self, name: &str, octets: &[u8]) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, octets).unwrap();
    }

    /// Writes a mailbox of Eudora for Windows with these messages, and converts it with these options to a directory of
    /// messages.
    fn windows(&self, messages: &[&str], options: &[&str]) -> Made {
        let text = mailbox(messages).replace('\n', "\r\n");
        self.write("In.mbx", text.as_bytes());
        let made = self.convert("In.mbx", options);
        Made {
            messages: made
                .messages
                .iter()
                .map(|it| it.replace("\r\n", "\n"))
                .collect(),
            ..made
        }
    }

    fn convert(&self, source: &str, options: &[&str]) -> Made {
        let out = TempDir::new().unwrap();
        let (to, rows) = (out.path().join("out"), out.path().join("rows"));
        let (to, rows) = (to.to_str().unwrap(), rows.to_str().unwrap());
        let arguments = [
            "convert",
            source,
            "--output",
            to,
            "--output-format",
            "eml",
            "--report",
            rows,
        ];
        let said = done(
            &embody_in(self.0.path(), &[&arguments, options].concat()),
            0,
        );
        let mut paths: Vec<_> = fs::read_dir(to)
            .unwrap()
            .map(|it| it.unwrap().path())
            .collect();
        paths.sort();
        let read = |path| fs::read(path).unwrap();
        let rows = fs::read_to_string(rows).unwrap();
        Made {
            // Each byte becomes a character.
            messages: paths
                .iter()
                .map(read)
                .map(|it| it.iter().map(|&it| char::from(it)).collect())
                .collect(),
            rows: rows.lines().map(reports::object).collect(),
            said,
        }
    }
}

impl Made {
    /// Returns the outcome of each reference, or the reason why it was left.
    fn outcomes(&self) -> Vec<&str> {
        let outcome = |row: &'_ Value| row["reason"].as_str().is_none();
        let word = |row| if outcome(row) { "outcome" } else { "reason" };
        self.rows
            .iter()
            .map(|row| row[word(row)].as_str().unwrap())
            .collect()
    }

    /// Returns the leaves of each message, as Python parses them.
    fn leaves(&self) -> Vec<Vec<Leaf>> {
        let octets = |text: &String| text.chars().map(|it| u8::try_from(it).unwrap()).collect();
        let messages: Vec<Vec<u8>> = self.messages.iter().map(octets).collect();
        python_leaves(&messages).unwrap_or_default()
    }
}

fn mailbox(messages: &[&str]) -> String {
    let opening = "From ???@??? Tue May 14 12:00:00 2024\n";
    messages
        .iter()
        .map(|text| format!("{opening}{text}"))
        .collect()
}

/// Returns a message whose header declares a multipart.
fn flattened(subtype: &str, body: &str) -> String {
    format!(
        "From: ann@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/{subtype}; boundary=\"gone\"\n\n{body}"
    )
}

/// Returns the header and the body of a converted message.
fn halves(message: &str) -> (&str, &str) {
    message.split_once("\n\n").unwrap()
}

#[test]
fn windows_texts_and_files_become_parts() {
    let folder = Folder::with(&[
        ("attach/coast.png", PICTURE),
        ("attach/Coast1.PNG", PICTURE),
        ("attach/REPORT.PDF", SCAN),
        ("attach/notes.txt", b"one\r\nFrom here\r\n"),
        ("Embedded/coast.png", SCAN),
        ("Embedded/style.css", b"a {}\r\n"),
    ]);
    let texts = [
        flattened("mixed", "<x-flowed>\nSee \nthe files.\n</x-flowed>\n\n\nAttachment Converted: \"C:\\Eudora\\attach\\coast.png\"\n\nAttachment Converted: \"D:\\other\\coast1.png\"\n"),
        flattened("related", "<x-html>\n<p>Hi <img src=\"cid:part1.01020304@example.org\"></p>\n</x-html>\n\n\nEmbedded Content: coast.png: 00000001,52cef2c6,00000000,00000000\n"),
        "From: ann@example.org\nContent-Type: text/plain\n\nold\n\n\nAttachment Converted: C:\\EUDORA\\ATTACH\\REPORT.PDF\nA footer\n\nAttachment Converted: \"notes.txt\"\n".to_owned(),
        flattened("alternative", "<x-rich>\n<bold>rich</bold>\n</x-rich>\n"),
    ];
    let made = folder.windows(&texts.each_ref().map(String::as_str), &[]);
    assert_eq!(
        made.outcomes(),
        [
            "expanded",
            "expanded",
            "expanded",
            "expanded",
            "expanded",
            "rewritten"
        ]
    );
    assert!(made.rows.iter().all(|row| row["kind"] == "eudora"));
    assert_eq!(made.rows[0]["bytes"], PICTURE.len());
    assert_eq!(made.rows[0]["from"], "file");
    assert!(
        made.rows[0]["final_url"]
            .as_str()
            .unwrap()
            .ends_with("/attach/coast.png")
    );
    let proved = |row: &Value| {
        row["detail"]
            .as_str()
            .unwrap()
            .contains("verified: the text refers")
            && row["proved"] == true
    };
    assert_eq!(made.rows.iter().filter(|row| proved(row)).count(), 1);
    let leaf = Leaf::new;
    let leaves = made.leaves();
    if !leaves.is_empty() {
        assert_eq!(
            leaves,
            [
                vec![
                    leaf("text/plain", b"See \nthe files."),
                    leaf("image/png", PICTURE),
                    leaf("image/png", PICTURE)
                ],
                vec![
                    leaf(
                        "text/html",
                        b"<p>Hi <img src=\"cid:part1.01020304@example.org\"></p>"
                    ),
                    leaf("image/png", SCAN),
                ],
                vec![
                    leaf("text/plain", b"old\n"),
                    leaf("application/pdf", SCAN),
                    leaf("text/plain", b"A footer"),
                    leaf("text/plain", b"one\nFrom here\n"),
                ],
                vec![leaf("text/enriched", b"<bold>rich</bold>")],
            ]
        );
    }
    let (header, body) = halves(&made.messages[0]);
    assert!(
        header.contains("MIME-Version: 1.0\nContent-Type: multipart/mixed;"),
        "{header}"
    );
    assert_eq!(header.matches("MIME-Version").count(), 1);
    assert!(
        body.contains(
            "format=\"flowed\"\nContent-Transfer-Encoding: 7bit\n\nSee \nthe files.\n\n--="
        ),
        "{body}"
    );
    let (header, body) = halves(&made.messages[1]);
    assert!(
        header.contains("multipart/related;") && header.contains("type=\"text/html\""),
        "{header}"
    );
    assert!(
        body.contains("Content-ID: <part1.01020304@example.org>"),
        "{body}"
    );
    let (header, body) = halves(&made.messages[2]);
    assert!(header.contains("MIME-Version: 1.0\n"), "{header}");
    // Unmarked text is unchanged. The empty line before a file name was added by Eudora.
    assert!(
        body.contains("Content-Type: text/plain\n\nold\n\n--=")
            || body.contains("Content-Type: text/plain\n\nold\n\n\n--="),
        "{body}"
    );
    let (header, body) = halves(&made.messages[3]);
    assert!(
        header.ends_with("Content-Type: text/enriched\nContent-Transfer-Encoding: 7bit"),
        "{header}"
    );
    assert_eq!(body, "<bold>rich</bold>\n");
}

#[test]
fn mailboxes_of_the_mac_are_read_with_their_own_names_types_and_charsets() {
    let decomposed = "Re\u{301}sume\u{301}.pdf";
    let folder = Folder::with(&[
        ("Attachments Folder/coast", PICTURE),
        ("Attachments Folder/a:b.txt", b"one\rtwo\r"),
        (&format!("Attachments Folder/{decomposed}"), SCAN),
        ("Parts Folder/Untitled", PICTURE),
    ]);
    let comment = "<!x-stuff-for-pete base=\"http://www.example.org/a/\" src=\"\" id=\"1\" charset=\"iso-8859-1/macintosh\">";
    let text = mailbox(&[
        &flattened(
            "mixed",
            "<x-flowed>Two files.\n</x-flowed>\nAttachment converted: Macintosh HD:coast (PNGf/ogle) (0022466D)\nAttachment converted: Macintosh HD:a/b.txt (TEXT/ttxt) (0022466E)\nAttachment converted: HD:R@sum@.pdf (Type: 'PDF ' Creator: 'CARO')\n",
        ),
        &flattened(
            "related",
            &format!(
                "<x-html>{comment}<p>caf@ <a href=\"b.html\">b</a><img src=\"cid:part1.01020304@example.org\"></p>\n</x-html>\nRelated: :Macintosh HD:Untitled:0022466F:52CEF2C6:00000000:00000000\n"
            ),
        ),
        "Subject: plain\n\nNothing to do.\n\n",
    ]);
    // In MacRoman, an e with an acute accent is 0x8e.
    let with_cr: Vec<u8> = text
        .bytes()
        .map(|it| if it == b'\n' { b'\r' } else { it })
        .collect();
    let octets: Vec<u8> = String::from_utf8(with_cr)
        .unwrap()
        .split("caf@")
        .collect::<Vec<_>>()
        .join("caf\u{1}")
        .replace("R@sum@", "R\u{1}sum\u{1}")
        .bytes()
        .map(|it| if it == 1 { 0x8e } else { it })
        .collect();
    folder.write("Mail Folder/Old/In", &octets);
    fs::rename(
        folder.0.path().join("Mail Folder/Old/In"),
        folder.0.path().join("Mail Folder/In"),
    )
    .unwrap();
    let made = folder.convert("Mail Folder/In", &[]);
    assert_eq!(
        made.outcomes(),
        ["expanded", "expanded", "expanded", "expanded", "rewritten"],
        "{:?}",
        made.rows
    );
    assert_eq!(made.rows[4]["kind"], "link");
    assert!(made.messages.iter().all(|message| !message.contains('\r')));
    let leaves = made.leaves();
    if !leaves.is_empty() {
        let html: Vec<u8> = b"<p>caf\x8e <a href=\"http://www.example.org/a/b.html\">b</a><img src=\"cid:part1.01020304@example.org\"></p>".to_vec();
        assert_eq!(
            leaves,
            [
                vec![
                    Leaf::new("text/plain", b"Two files."),
                    Leaf::new("image/png", PICTURE),
                    Leaf::new("text/plain", b"one\ntwo"),
                    Leaf::new("application/pdf", SCAN),
                ],
                vec![
                    Leaf::new("text/html", &html),
                    Leaf::new("image/png", PICTURE)
                ],
                vec![Leaf::new("text/plain", b"Nothing to do.")],
            ]
        );
    }
    assert!(
        made.messages[0].contains("filename=\"a:b.txt\""),
        "{}",
        made.messages[0]
    );
    assert!(
        made.messages[1].contains("text/html; charset=\"macintosh\""),
        "{}",
        made.messages[1]
    );
    assert!(!made.messages[1].contains("x-stuff-for-pete"));
    assert_eq!(made.messages[2], "Subject: plain\n\nNothing to do.\n\n");
}

#[test]
fn charsets_are_those_of_the_header_or_what_the_text_shows() {
    let folder = Folder::with(&[]);
    let of = |charset: &str, text: &str| {
        let message = format!("Content-Type: text/html{charset}\n\n<x-html>\n{text}\n</x-html>\n");
        // Each character becomes a byte.
        let octets: Vec<u8> = mailbox(&[&message])
            .chars()
            .map(|it| u8::try_from(it).unwrap())
            .collect();
        folder.write("In.mbx", &octets);
        let made = folder.convert("In.mbx", &[]);
        let (header, body) = halves(&made.messages[0]);
        assert_eq!(body, format!("{text}\n"));
        let behind = header.split("Content-Type: ").nth(1).unwrap();
        let value = behind.lines().next().unwrap().to_owned();
        assert_eq!(header.contains("8bit"), !text.is_ascii(), "{header}");
        value.replace("text/html", "")
    };
    assert_eq!(of("", "a"), "");
    assert_eq!(
        of("; charset=iso-2022-jp", "\u{1b}$B"),
        "; charset=\"iso-2022-jp\""
    );
    assert_eq!(
        of("; charset=iso-8859-2", "\u{e9}"),
        "; charset=\"iso-8859-2\""
    );
    assert_eq!(
        of("; charset=us-ascii", "\u{e9}"),
        "; charset=\"unknown-8bit\""
    );
    assert_eq!(
        of("; charset=utf-8", "\u{e9}"),
        "; charset=\"unknown-8bit\""
    );
    assert_eq!(of("; charset=utf-8", "\u{c3}\u{a9}"), "; charset=\"utf-8\"");
    assert_eq!(of("", "\u{c3}\u{a9}"), "; charset=\"utf-8\"");
    assert_eq!(of("", "\u{e9}"), "; charset=\"unknown-8bit\"");
}

#[test]
fn header_fields_that_no_longer_match_a_eudora_body_are_corrected() {
    let folder = Folder::with(&[("attach/a.pdf", SCAN)]);
    let cases = [
        // A declared multipart without boundary lines is empty for every mail client.
        (flattened("alternative", "text\n"), "From: ann@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: text/plain\n\ntext\n".to_owned()),
        ("Content-Type: text/plain; charset=x\nContent-Transfer-Encoding: quoted-printable\nLines: 7\n\na = b\n".to_owned(), "Content-Type: text/plain; charset=x\nMIME-Version: 1.0\n\na = b\n".to_owned()),
        ("Content-Transfer-Encoding: base64\nMIME-Version: 1.0\n\ntext, \u{e9}\n".to_owned(), "Content-Transfer-Encoding: 8bit\nMIME-Version: 1.0\n\ntext, \u{e9}\n".to_owned()),
        ("MIME-Version: 1.0\nMime-version: 1.0\nContent-Type: multipart/x; boundary=gone\nContent-Disposition: attachment\nContent-MD5: x\nContent-Transfer-Encoding: 7bit\n\n\n".to_owned(), "MIME-Version: 1.0\nContent-Type: text/plain\n\n\n".to_owned()),
    ];
    let octets: Vec<u8> = mailbox(&cases.iter().map(|it| it.0.as_str()).collect::<Vec<_>>())
        .chars()
        .map(|it| u8::try_from(it).unwrap())
        .collect();
    folder.write("In.mbx", &octets);
    let made = folder.convert("In.mbx", &[]);
    let expected: Vec<String> = cases.iter().map(|it| it.1.clone()).collect();
    assert_eq!(made.messages, expected);
    assert_eq!(made.outcomes(), ["rewritten"; 4]);
    // Correct headers are unchanged.
    let same = [
        "Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\nLines: 7\n\na =3D b=\n\n",
        "Content-Transfer-Encoding: 8bit\n\ntext\n",
        "Content-Type: multipart/mixed; boundary=there\n\n--there\n\n<x-html>\nAttachment Converted: \"a.pdf\"\n--there--\n",
        "Subject: no body",
    ];
    let made = folder.windows(&same, &[]);
    assert_eq!(made.messages, same);
    assert!(made.rows.is_empty(), "{:?}", made.rows);
}

#[test]
fn look_alikes_stay_octet_for_octet_and_missing_files_are_told_of() {
    let folder = Folder::with(&[("attach/a.png", PICTURE), ("Embedded/b.png", PICTURE)]);
    let plain = "Subject: x\n\n>Attachment Converted: \"a.png\"\n#Attachment Converted: \"C:\\a.png\"\nHe wrote Attachment Converted: \"a.png\" here.\n Attachment Converted: \"a.png\"\nAttachment converted: see a.png\nAttachment Converted&#058; \"a.png\"\n<x-html> is a tag\n\n";
    let within = "Subject: x\n\n<x-html>\nAttachment Converted: \"a.png\"\n</x-html>\n";
    let missing = flattened(
        "mixed",
        "<x-html>\n<b>a</b>\n</x-html>\n\nAttachment Converted: \"C:\\gone\\c.png\"\n\nEmbedded Content: a.png: 00000001,52cef2c6,00000000,00000000\n",
    );
    let made = folder.windows(
        &[
            &plain.replace("<x-html> is", "< x-html> is"),
            within,
            &missing,
        ],
        &[],
    );
    assert_eq!(
        made.messages[0],
        plain.replace("<x-html> is", "< x-html> is")
    );
    assert!(
        made.messages[1].ends_with("\n\nAttachment Converted: \"a.png\"\n"),
        "{}",
        made.messages[1]
    );
    assert_eq!(
        made.outcomes(),
        ["rewritten", "file-not-readable", "file-not-readable"]
    );
    assert!(made.said.contains("2 could not be: "), "{}", made.said);
    let detail = made.rows[1]["detail"].as_str().unwrap();
    assert!(
        detail.contains("'c.png' is not in ") && detail.contains("--attachments"),
        "{detail}"
    );
    let (_, body) = halves(&made.messages[2]);
    assert!(
        body.contains("text/html\nContent-Transfer-Encoding: 7bit\n\n<b>a</b>\n\n--="),
        "{body}"
    );
    assert!(body.contains("Content-Type: text/plain\n\n\nAttachment Converted: \"C:\\gone\\c.png\"\n\nEmbedded Content: a.png: 00000001,52cef2c6,00000000,00000000\n"), "{body}");
}

#[test]
fn links_special_files_and_ambiguous_names_are_not_taken_as_attachments() {
    let folder = Folder::with(&[
        ("secret.txt", b"secret"),
        ("attach/Twin.txt", b"1"),
        ("attach/TWIN.txt", b"2"),
        ("attach/exact.txt", b"exact"),
        ("attach/EXACT.txt", b"2"),
        ("attach/caf\u{e9}.txt", b"1"),
        ("attach/cafe\u{301}.txt", b"2"),
        ("attach/NUL.txt", b"1"),
        ("attach/folder.txt/x", b"1"),
    ]);
    let attach = folder.0.path().join("attach");
    symlink("../secret.txt", attach.join("link.txt")).unwrap();
    symlink("exact.txt", attach.join("inner.txt")).unwrap();
    symlink("../attach", attach.join("around")).unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(attach.join("fifo.txt"))
        .status();
    assert!(fifo.unwrap().success());
    let names = [
        ("C:\\attach\\twin.txt", "ambiguous-file"),
        ("C:\\attach\\exact.txt", "expanded"),
        ("caf\u{e9}.txt", "ambiguous-file"),
        ("..\\secret.txt", "file-not-readable"),
        ("..\\..", "file-not-readable"),
        ("../secret.txt", "file-not-readable"),
        ("/etc/passwd", "file-not-readable"),
        ("around/exact.txt", "file-not-readable"),
        ("attach\\..", "file-not-readable"),
        ("NUL.txt", "file-not-readable"),
        ("exact.txt\0", "file-not-readable"),
        ("folder.txt", "file-not-readable"),
        ("around", "not-a-regular-file"),
        ("link.txt", "not-a-regular-file"),
        ("inner.txt", "not-a-regular-file"),
        ("fifo.txt", "not-a-regular-file"),
    ];
    let notes: String = names
        .iter()
        .map(|(name, _)| format!("Attachment Converted: \"{name}\"\n"))
        .collect();
    folder.write(
        "In.mbx",
        mailbox(&[&format!("Subject: x\n\n{notes}")]).as_bytes(),
    );
    let made = folder.convert("In.mbx", &[]);
    assert_eq!(
        made.outcomes(),
        names.map(|(_, outcome)| outcome),
        "{:?}",
        made.rows
    );
    assert!(!made.messages[0].contains("secret\n") && !made.messages[0].contains("c2VjcmV0"));
    // A directory of attachments that is a symbolic link is not used.
    fs::rename(&attach, folder.0.path().join("elsewhere")).unwrap();
    symlink("elsewhere", &attach).unwrap();
    let made = folder.convert("In.mbx", &[]);
    assert!(made.outcomes().iter().all(|it| *it == "file-not-readable"));
}

#[test]
fn a_file_belongs_to_the_first_mail_that_names_it_however_many_threads_there_are() {
    let names: Vec<String> = (0..40).map(|number| format!("{number}.txt")).collect();
    let folder = Folder::with(&[]);
    for name in &names {
        folder.write(&format!("attach/{name}"), b"content");
    }
    // The first messages are the longest, so that they are completed last.
    let messages: Vec<String> = (0..400)
        .map(|number| {
            let long = "<p>x</p>\n".repeat(if number < 20 { 3000 } else { 1 });
            let of = |name: &String| format!("Attachment Converted: \"{name}\"\n");
            let notes: String = names.iter().skip(number % 40).take(3).map(of).collect();
            format!("Subject: {number}\n\n<x-html>\n{long}</x-html>\n{notes}")
        })
        .collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    let one = folder.windows(&messages, &["--jobs", "1"]);
    let many = folder.windows(&messages, &["--jobs", "8"]);
    assert!(one.messages == many.messages);
    assert_eq!(one.outcomes(), many.outcomes());
    assert_eq!(
        one.outcomes()
            .iter()
            .filter(|it| **it == "expanded")
            .count(),
        40
    );
    let taken = one
        .rows
        .iter()
        .find(|row| row["reason"] == "file-taken")
        .unwrap();
    let detail = taken["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("message 1, an earlier message in the mailbox, already names"),
        "{detail}"
    );
    let twice = "Subject: x\n\nAttachment Converted: \"1.txt\"\nAttachment Converted: \"1.txt\"\n";
    let made = folder.windows(&[twice], &[]);
    assert_eq!(made.outcomes(), ["expanded", "file-taken"]);
    // Each mailbox is independent of the others.
    let made = folder.windows(&[twice], &[]);
    assert_eq!(made.outcomes(), ["expanded", "file-taken"]);
}

#[test]
fn folders_are_looked_for_up_to_that_of_eudora_and_where_an_option_says() {
    let note = |name: &str| format!("Subject: x\n\nAttachment Converted: \"C:\\x\\{name}\"\n");
    let folder = Folder::with(&[
        ("eudora/attach/a.txt", b"a"),
        (
            "eudora/Old.fol/Older.fol/In.mbx",
            mailbox(&[&note("A.TXT"), &note("b.txt")]).as_bytes(),
        ),
        ("eudora/plain/In.mbx", mailbox(&[&note("a.txt")]).as_bytes()),
        ("mac/Attachments Folder/a.txt", b"a"),
        (
            "mac/Mail Folder/Old/In",
            mailbox(&[&note("a.txt")]).as_bytes(),
        ),
        ("more/b.txt", b"b"),
        ("more/a.txt", b"other"),
    ]);
    let of = |source: &str, options: &[&str]| folder.convert(source, options).outcomes().join(" ");
    assert_eq!(
        of("eudora/Old.fol/Older.fol/In.mbx", &[]),
        "expanded file-not-readable"
    );
    let made = folder.convert(
        "eudora/Old.fol/Older.fol/In.mbx",
        &["--attachments", "more"],
    );
    assert_eq!(made.outcomes(), ["expanded", "expanded"]);
    assert!(made.messages[0].contains("\na\n") && !made.messages[0].contains("other"));
    assert_eq!(of("eudora/plain/In.mbx", &[]), "file-not-readable");
    assert_eq!(
        of("eudora/plain/In.mbx", &["--attachments", "eudora/attach"]),
        "expanded"
    );
    assert_eq!(of("mac/Mail Folder/Old/In", &[]), "expanded");
}

#[test]
fn mail_that_was_sent_names_its_files_in_the_header() {
    let folder = Folder::with(&[
        ("attach/a.pdf", SCAN),
        ("Attachments Folder/b.pdf", SCAN),
        ("Embedded/c.png", PICTURE),
    ]);
    let sent = "X-Attachments: C:\\Docs\\a.pdf; C:\\Docs\\not there.doc; :HD:2543:b.pdf:;\nX-EmbeddedContent: <part1@example.org=C:\\Docs\\c.png>\nSubject: x\n\n<x-html>\n<img src=\"cid:part1@example.org\">\n</x-html>\n";
    let made = folder.windows(&[sent], &[]);
    assert_eq!(
        made.outcomes(),
        ["expanded", "expanded", "expanded"],
        "{:?}",
        made.rows
    );
    assert!(
        made.messages[0].contains("Content-ID: <part1@example.org>"),
        "{}",
        made.messages[0]
    );
    assert!(made.messages[0].starts_with("X-Attachments: C:\\Docs\\a.pdf;"));
    // The sender could forge these fields, too.
    let made = folder.windows(&[&format!("Received: by x\n{sent}")], &[]);
    assert_eq!(made.outcomes(), ["rewritten"]);
}

#[test]
fn policy_applies_to_eudora_attachments_and_other_mailboxes_stay_unchanged() {
    let folder = Folder::with(&[("attach/a.png", PICTURE), ("attach/b.pdf", &[0xff; 5000])]);
    let text = "Subject: x\n\n<x-html>\n<p>a</p>\n</x-html>\nAttachment Converted: \"a.png\"\nAttachment Converted: \"b.pdf\"\n";
    let of = |options: &[&str]| folder.windows(&[text], options).outcomes().join(" ");
    assert_eq!(of(&[]), "expanded expanded");
    assert_eq!(of(&["--max-body", "4000"]), "expanded too-large");
    assert_eq!(of(&["--max-growth", "4000"]), "expanded growth-limit");
    assert_eq!(
        of(&["--deny-type", "application/pdf"]),
        "expanded type-not-allowed"
    );
    assert_eq!(of(&["--follow", "none"]), "");
    let made = folder.windows(&[text], &["--follow=-eudora"]);
    assert_eq!(made.messages, [text]);
    assert!(made.rows.is_empty());
    // A dry run reports the same. References in forms that are not followed are counted.
    let inspect = |options: &[&str]| {
        let output = embody_in(folder.0.path(), &[&["inspect", "In.mbx"], options].concat());
        done(&output, 0);
        String::from_utf8(output.stdout).unwrap()
    };
    let said = inspect(&["--verbose"]);
    assert!(
        said.contains("would-expand") && said.contains("eudora"),
        "{said}"
    );
    let said = inspect(&["--verbose", "--follow=-eudora"]);
    assert!(said.contains("--follow eudora"), "{said}");
    let rows = inspect(&["--json"]);
    let outcomes: Vec<Value> = rows
        .lines()
        .map(|row| reports::object(row)["outcome"].clone())
        .filter(Value::is_string)
        .collect();
    assert_eq!(outcomes, ["would-expand", "would-expand"]);
    // The file is not converted as a message for a filter, from a pipe, or among other files.
    let plain = text.as_bytes();
    let output = fed(embody().current_dir(folder.0.path()).arg("filter"), plain);
    assert_eq!(output.stdout, plain);
    let mbox = mailbox(&[text]);
    let output = fed(
        embody()
            .current_dir(folder.0.path())
            .args(["convert", "-", "--output", "-"]),
        mbox.as_bytes(),
    );
    assert_eq!(output.stdout, mbox.as_bytes(), "{}", stderr(&output));
    let ordinary = mbox.replace("???@???", "ann@example.org");
    folder.write("plain.mbox", ordinary.as_bytes());
    done(
        &embody_in(
            folder.0.path(),
            &["convert", "plain.mbox", "--output", "same"],
        ),
        0,
    );
    assert_eq!(
        fs::read_to_string(folder.0.path().join("same")).unwrap(),
        ordinary
    );
}

#[test]
fn running_it_again_changes_nothing_and_maildirs_hold_the_same() {
    let folder = Folder::with(&[("attach/a.png", PICTURE), ("attach/b.txt", b"From x\r\n")]);
    let text = flattened(
        "mixed",
        "<x-html>\n<p>a</p>\n</x-html>\nAttachment Converted: \"a.png\"\nAttachment Converted: \"b.txt\"\nAttachment Converted: \"gone.txt\"\n",
    );
    folder.write(
        "In.mbx",
        mailbox(&[&text, &text]).replace('\n', "\r\n").as_bytes(),
    );
    let run = |arguments: &[&str]| done(&embody_in(folder.0.path(), arguments), 0);
    let read = |name: &str| fs::read(folder.0.path().join(name)).unwrap();
    run(&["convert", "In.mbx", "--output", "in.mbox"]);
    run(&["convert", "in.mbox", "--output", "again.mbox"]);
    assert_eq!(read("in.mbox"), read("again.mbox"));
    run(&[
        "convert",
        "In.mbx",
        "--output",
        "dir",
        "--output-format",
        "maildir",
    ]);
    let mut messages = Vec::new();
    for part in ["cur", "new"] {
        for entry in fs::read_dir(folder.0.path().join("dir").join(part)).unwrap() {
            messages.push(fs::read(entry.unwrap().path()).unwrap());
        }
    }
    assert_eq!(messages.len(), 2);
    let mbox = String::from_utf8_lossy(&read("in.mbox")).into_owned();
    assert!(
        messages
            .iter()
            .all(|message| mbox.contains(&*String::from_utf8_lossy(message)))
    );
    assert!(Path::new(&folder.0.path().join("In.mbx")).exists());
}

#[test]
fn html_is_not_blank_in_a_browser() {
    let Some(chromium) = chromium("html_is_not_blank_in_a_browser") else {
        return;
    };
    let folder = Folder::with(&[("Embedded/a.svg", b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"99\" height=\"99\"><rect width=\"99\" height=\"99\" fill=\"#00f\"/></svg>")]);
    let page = "<html><body bgcolor=\"#00ff00\"><p>Hi <img src=\"cid:part1.01020304@example.org\"></p></body></html>";
    let note = "Embedded Content: a.svg: 00000001,52cef2c6,00000000,00000000\n";
    let text = |note: &str| {
        flattened(
            "related",
            &format!("<x-html>\n{page}\n</x-html>\n\n\n{note}"),
        )
    };
    let made = folder.windows(&[&text(""), &text(note)], &[]);
    let messages = made
        .messages
        .iter()
        .enumerate()
        .map(|(number, text)| (number.to_string(), crlf(text.as_bytes())))
        .collect();
    let pictures = shown(&chromium, messages);
    assert!(pictures["0"].count([0, 255, 0]) > 10_000);
    assert!(pictures["1"].count([0, 255, 0]) > 10_000);
    assert!(pictures["1"].count([0, 0, 255]) > 9_000);
}

#[test]
fn sixty_thousand_eudora_notes_are_read_in_bounded_time() {
    let folder = Folder::with(&[("attach/a.png", PICTURE), ("Embedded/a.png", PICTURE)]);
    let begun = std::time::Instant::now();
    for unit in [
        "Attachment Converted: \"a.png\"\n",
        "Attachment Converted: \"gone\"\n",
        "<x-html><img src=\"cid:part1.01020304@example.org\"></x-html>\n",
        "<x-html>\n",
        "Embedded Content: a.png: 00000001,52cef2c6,00000000,00000000\n",
        "<x-html><img src=cid:a></x-html>\nEmbedded Content: a.png: 00000001,52cef2c6,00000000,00000000\n",
    ] {
        let text = format!("Subject: x\n\n{}", unit.repeat(60_000));
        let made = folder.windows(&[&text], &["--quiet"]);
        assert!(made.rows.len() <= 10_002);
        let is_cut = made.outcomes().contains(&"too-many-parts");
        assert_eq!(is_cut, unit != "<x-html>\n", "{unit}");
    }
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
}
