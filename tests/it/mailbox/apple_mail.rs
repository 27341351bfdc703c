//! Attachments that Apple Mail stores in separate files (docs/references.md, "Apple Mail"). Their structure is that of the
//! samples in github.com/qqilihq/partial-emlx-converter.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tempfile::TempDir;

use super::maildir::dovecot_says;
use super::separators::counted_by_mutt_in;
use crate::common::programs::{done, embody, embody_in, fed, has_python, program, skipped, stderr};
use crate::common::reports;

const DATA: &str = "INBOX.mbox/0A0A/Data";
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n and so on\0\xff";

/// Read, answered, flagged and forwarded, with an attachment and a priority.
const FLAGS: u64 = 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 10 | 3 << 16;

fn list(flags: u64) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n\t<key>date-received</key>\n\t<integer>1391457223</integer>\n\t<key>flags</key>\n\t\
         <integer>{flags}</integer>\n\t<key>remote-id</key>\n\t<string>30</string>\n</dict>\n</plist>\n"
    )
}

fn emlx(mail: &str) -> String {
    format!("{:<10}\n{mail}{}", mail.len(), list(FLAGS))
}

fn in_lines(octets: &[u8], width: usize) -> String {
    let encoded = STANDARD.encode(octets);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(width)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

/// Returns a mail of these parts, each a header and a body.
fn mail(parts: &[(String, String)]) -> String {
    let mut mail = "From: ann@example.org\nTo: bob@example.org\nSubject: the files\nDate: Tue, 14 May 2024 12:00:00 +0200\n\
                    Message-ID: <1@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b=_1\"\n\n"
        .to_owned();
    for (header, body) in parts {
        mail += &format!("--b=_1\n{header}\n{body}\n");
    }
    mail + "--b=_1--\n"
}

fn text() -> (String, String) {
    ("Content-Type: text/plain\n".into(), "The files.\n".into())
}

/// Returns the header of a part, and its original body.
fn part(essence: &str, name: &str, encoding: &str, body: &str) -> (String, String) {
    let header = format!(
        "Content-Transfer-Encoding: {encoding}\nContent-Disposition: attachment;\n\tfilename=\"{name}\"\nContent-Type: {essence}\n"
    );
    (header, body.to_owned())
}

/// Returns the part as Apple Mail stores it, without its content.
fn stub((header, body): &(String, String)) -> (String, String) {
    let field = format!("{header}X-Apple-Content-Length: {}\n", body.len());
    (field, String::new())
}

/// The directories of Apple Mail.
struct Library(TempDir);

impl Library {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(&format!("{DATA}/{name}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn message(&self, name: &str, mail: &str) -> &Self {
        self.put(&format!("Messages/{name}.emlx"), emlx(mail))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        embody_in(self.0.path(), arguments)
    }

    /// Converts the mail to the directory `out`. Returns the rows, and the text on standard error.
    fn convert(&self, more: &[&str]) -> (Vec<Value>, String) {
        let _ = fs::remove_dir_all(self.at("out"));
        let arguments = [
            &[
                "convert",
                "INBOX.mbox",
                "--output",
                "out",
                "--report",
                "rows",
            ],
            more,
        ];
        let output = self.run(&arguments.concat());
        let said = done(&output, 0);
        (self.rows(), said)
    }

    fn rows(&self) -> Vec<Value> {
        let rows = fs::read_to_string(self.at("rows")).unwrap();
        let _ = fs::remove_file(self.at("rows"));
        rows.lines().map(reports::object).collect()
    }

    fn result(&self, name: &str) -> String {
        let path = self.at(&format!("out/0A0A/Data/Messages/{name}.emlx"));
        fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    fn has(&self, name: &str) -> bool {
        self.at(&format!("out/0A0A/Data/Messages/{name}.emlx"))
            .exists()
    }
}

/// Returns the reason why a mail with a picture as its only missing part was left, or `None` if it was filled.
fn reason_of(library: &Library, filename: &str) -> Option<String> {
    let body = in_lines(PICTURE, 76);
    let picture = part("image/png", filename, "base64", &body);
    library.message("7.partial", &mail(&[text(), stub(&picture)]));
    let (rows, _) = library.convert(&[]);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (row["kind"].as_str(), row["part"].as_str()),
        (Some("apple"), Some("2"))
    );
    match row["outcome"].as_str() {
        Some("expanded") => {
            assert_eq!(library.result("7"), emlx(&mail(&[text(), picture])));
            None
        }
        _ => {
            assert_eq!(
                library.result("7.partial"),
                emlx(&mail(&[text(), stub(&picture)]))
            );
            Some(row["reason"].as_str().unwrap().to_owned())
        }
    }
}

/// Text as Apple Mail wrote it: the first paragraph of `text.txt` in the samples.
const QUOTED: &str = "\
Damit Ihr indess erkennt, woher dieser ganze Irrthum gekommen ist, und =
weshalb man die Lust anklagt und den Schmerz lobet, so will ich Euch =
Alles er=C3=B6ffnen und auseinander setzen, was jener Begr=C3=BCnder der =
Wahrheit und gleichsam Baumeister des gl=C3=BCcklichen Lebens selbst =
dar=C3=BCber gesagt hat.=20
> von <Cicero>
Und ohne Ende=
";

#[test]
fn parts_come_back_octet_for_octet_in_the_lines_that_their_length_proves() {
    let long: Vec<u8> = (0..20_000_u32).map(|number| (number % 251) as u8).collect();
    let quoted = "Damit Ihr indess erkennt, woher dieser ganze Irrthum gekommen ist, und weshalb man die Lust anklagt und den \
                  Schmerz lobet, so will ich Euch Alles eröffnen und auseinander setzen, was jener Begründer der Wahrheit und \
                  gleichsam Baumeister des glücklichen Lebens selbst darüber gesagt hat. \n> von <Cicero>\nUnd ohne Ende";
    let forwarded = "From: a@example.org\nSubject: inner\n\nhello\n";
    let utf8 = "Content-Type: text/plain; charset=utf-8";
    let parts: Vec<((String, String), &[u8])> = vec![
        (
            part("application/pdf", "a", "base64", &in_lines(&long, 76)),
            &long,
        ),
        (
            part(
                "application/pdf",
                "b",
                "BASE64",
                &(in_lines(&long, 76) + "\n"),
            ),
            &long,
        ),
        (
            part("application/pdf", "c", "base64", &in_lines(&long, 72)),
            &long,
        ),
        (
            part(
                "application/pdf",
                "d",
                "base64",
                &(in_lines(&long, 60) + "\n"),
            ),
            &long,
        ),
        (
            part("application/pdf", "e", "base64", &in_lines(&long, 99_999)),
            &long,
        ),
        (
            part("text/plain; charset=utf-8", "f", "quoted-printable", QUOTED),
            quoted.as_bytes(),
        ),
        (
            part("text/plain", "g", "7bit", "Short text.\n"),
            b"Short text.\n",
        ),
        (
            part("text/plain", "h", "7bit", "Short text."),
            b"Short text.\n",
        ),
        (
            part("text/plain", "i", "7bit", "Short text.\n"),
            b"Short text.\r\n",
        ),
        (
            part("text/plain; charset=utf-8", "j", "8bit", "Grüße\n"),
            "Grüße\n".as_bytes(),
        ),
        (
            part("message/rfc822", "k", "7bit", forwarded),
            forwarded.as_bytes(),
        ),
        (
            (format!("{utf8}\n"), "no encoding\n".into()),
            b"no encoding\n",
        ),
        (part("application/pdf", "l", "base64", ""), b""),
    ];
    let library = Library::new();
    let mut whole = vec![text()];
    for (number, (header_and_body, content)) in parts.iter().enumerate() {
        whole.push(header_and_body.clone());
        let name = format!("Attachments/1/{}/file", number + 2);
        library.put(&name, content);
    }
    let partial: Vec<_> = whole
        .iter()
        .enumerate()
        .map(|(at, part)| if at == 0 { part.clone() } else { stub(part) })
        .collect();
    library.message("1.partial", &mail(&partial));
    let (rows, said) = library.convert(&[]);
    assert_eq!(library.result("1"), emlx(&mail(&whole)));
    assert!(!library.has("1.partial"));
    assert_eq!(rows.len(), parts.len());
    for row in &rows {
        assert_eq!(row["outcome"], "expanded", "{row}");
        assert_eq!(row["proved"], true, "{row}");
        assert_eq!(row["from"], "file", "{row}");
    }
    assert!(
        said.contains(&format!("{} attachments put into the mail.\n", parts.len())),
        "{said}"
    );
    // A second run changes nothing.
    let again = library.run(&["convert", "out", "--output", "again", "--report", "rows"]);
    done(&again, 0);
    assert!(library.rows().is_empty());
    let again = library.at("again/0A0A/Data/Messages/1.emlx");
    assert_eq!(fs::read_to_string(again).unwrap(), emlx(&mail(&whole)));
}

#[test]
fn part_is_filled_without_proof_if_its_recorded_length_differs() {
    let library = Library::new();
    let content: Vec<u8> = PICTURE.repeat(1000);
    let real = part("image/png", "a.png", "base64", &in_lines(&content, 76));
    for (encoding, length) in [
        ("base64", "999999"),
        ("base64", "1"),
        ("base64", "18446744073709551615"),
        ("base64", "-1"),
        ("base64", "many"),
        ("base64", ""),
        ("x-uuencode", "999999"),
        // The bytes require an encoding.
        ("7bit", "999999"),
        ("8bit", "999999"),
        ("binary", "999999"),
    ] {
        let mut torn = stub(&part("image/png", "a.png", encoding, ""));
        torn.0 = torn.0.replace("Length: 0", &format!("Length: {length}"));
        library.put("Attachments/1/2/a.png", &content);
        library.message("1.partial", &mail(&[text(), torn]));
        let (rows, _) = library.convert(&[]);
        assert_eq!(rows[0]["outcome"], "expanded", "{rows:?}");
        assert_eq!(rows[0]["proved"], Value::Null, "{rows:?}");
        assert_eq!(
            library.result("1"),
            emlx(&mail(&[text(), real.clone()])),
            "{encoding} {length}"
        );
    }
    // Without a Content-Transfer-Encoding field, binary content gets one. The recorded length shows that it was base64.
    let no_field = "Content-Type: image/png\n".to_owned();
    let body = in_lines(&content, 72);
    let field = format!("{no_field}X-Apple-Content-Length: {}\n", body.len());
    library.message("1.partial", &mail(&[text(), (field, String::new())]));
    let (rows, _) = library.convert(&[]);
    assert_eq!(rows[0]["proved"], true, "{rows:?}");
    let header = format!("{no_field}Content-Transfer-Encoding: base64\n");
    assert_eq!(library.result("1"), emlx(&mail(&[text(), (header, body)])));
}

#[test]
fn parts_are_found_by_their_imap_part_numbers() {
    let library = Library::new();
    let header =
        "From: a@example.org\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n";
    let body = in_lines(PICTURE, 76) + "\n";
    let field = format!("X-Apple-Content-Length: {}\n", body.len());
    library.message("1.partial", &format!("{header}{field}\n\n"));
    library.put("Attachments/1/1/x.png", PICTURE);
    let inner = |part: &(String, String)| {
        let (header, body) = part;
        let related = "Content-Type: multipart/related; boundary=\"b=_2\"\n";
        let nested = format!(
            "--b=_2\n{}\n{}\n--b=_2\n{header}\n{body}\n--b=_2--\n",
            text().0,
            text().1
        );
        mail(&[text(), (related.into(), nested)])
    };
    let picture = part("image/png", "y.png", "base64", &body);
    library.message("2.partial", &inner(&stub(&picture)));
    library.put("Attachments/2/2.2/y.png", PICTURE);
    let forwarded = |part: &(String, String)| {
        mail(&[
            text(),
            (
                "Content-Type: message/rfc822\n".into(),
                mail(&[text(), part.clone()]).replace("b=_1", "b=_3"),
            ),
        ])
    };
    library.message("3.partial", &forwarded(&stub(&picture)));
    library.put("Attachments/3/2.2/y.png", PICTURE);
    let (rows, _) = library.convert(&[]);
    let parts: Vec<&str> = rows
        .iter()
        .map(|row| row["part"].as_str().unwrap())
        .collect();
    assert_eq!(parts, ["1", "2.2", "2.2"], "{rows:?}");
    assert_eq!(library.result("1"), emlx(&format!("{header}\n{body}")));
    assert_eq!(library.result("2"), emlx(&inner(&picture)));
    assert_eq!(library.result("3"), emlx(&forwarded(&picture)));
}

#[test]
fn a_missing_file_leaves_its_part_and_the_name_and_is_listed_with_subject_and_date() {
    let library = Library::new();
    let picture = part("image/png", "a.png", "base64", &in_lines(PICTURE, 76));
    let partial = mail(&[text(), stub(&picture), stub(&picture)]);
    library.message("1.partial", &partial);
    let (rows, said) = library.convert(&[]);
    assert_eq!(library.result("1.partial"), emlx(&partial));
    assert!(
        rows.iter().all(|row| row["reason"] == "file-not-readable"),
        "{rows:?}"
    );
    assert!(
        said.contains("missing         2  \"the files\" (2024-05-14)"),
        "{said}"
    );
    // One of the files exists: it is filled in, and the other one still counts as missing.
    library.put("Attachments/1/3/a.png", PICTURE);
    let (_, said) = library.convert(&[]);
    assert_eq!(
        library.result("1.partial"),
        emlx(&mail(&[text(), stub(&picture), picture]))
    );
    assert!(said.contains("missing         1  \"the files\""), "{said}");
    let inspected = |more: &[&str]| {
        let output = library.run(&[&["inspect", "INBOX.mbox"], more].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let told = inspected(&["--verbose"]);
    for line in [
        "kind            2  apple",
        "missing         1  \"the files\" (2024-05-14)",
        "outcome         1  unchanged: file-not-readable",
        "outcome         1  would-expand",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let told = inspected(&["--verbose", "--follow=-apple"]);
    assert!(
        told.contains("outcome         2  unchanged: not-followed (--follow apple)"),
        "{told}"
    );
    let one = library.run(&["inspect", &format!("{DATA}/Messages/1.partial.emlx")]);
    assert!(
        String::from_utf8(one.stdout)
            .unwrap()
            .contains("would-expand")
    );
    library.convert(&["--follow=-apple"]);
    assert_eq!(library.result("1.partial"), emlx(&partial));
}

#[test]
fn a_file_is_known_by_its_name_or_is_the_only_one() {
    let decomposed = "Tu\u{308}bingen.png";
    for (filename, files, expected) in [
        ("a.png", vec![("a.png", PICTURE)], None),
        // A default name in the language of the user.
        ("a.png", vec![("Mail-Anhang.png", PICTURE)], None),
        (
            "a",
            vec![("a.png", PICTURE), (".DS_Store", b"x"), ("._a.png", b"x")],
            None,
        ),
        ("a.png", vec![("a.png", PICTURE), ("b.png", b"x")], None),
        ("a/b.png", vec![("a:b.png", PICTURE), ("b.png", b"x")], None),
        (
            "T\u{fc}bingen.png",
            vec![(decomposed, PICTURE), ("x", b"x")],
            None,
        ),
        (
            "=?utf-8?q?T=C3=BCbingen.png?=",
            vec![(decomposed, PICTURE), ("x", b"x")],
            None,
        ),
        // Two names that differ only in Unicode normalization: the exact bytes decide.
        (
            "T\u{fc}bingen.png",
            vec![(decomposed, b"x"), ("T\u{fc}bingen.png", PICTURE)],
            None,
        ),
        (
            "c.png",
            vec![("a.png", PICTURE), ("b.png", PICTURE)],
            Some("ambiguous-file"),
        ),
        (
            "A.PNG",
            vec![("a.png", PICTURE), ("b.png", PICTURE)],
            Some("ambiguous-file"),
        ),
        (
            "a.png",
            vec![(".DS_Store", b"x")],
            Some("file-not-readable"),
        ),
        (
            "a.png",
            vec![("folder/a.png", PICTURE)],
            Some("file-not-readable"),
        ),
        (
            "a.png",
            vec![("folder/a.png", b"x"), ("x.png", PICTURE)],
            None,
        ),
    ] as [(&str, Vec<(&str, &[u8])>, Option<&str>); 13]
    {
        let library = Library::new();
        for (name, content) in &files {
            library.put(&format!("Attachments/7/2/{name}"), content);
        }
        let reason = reason_of(&library, filename);
        assert_eq!(reason.as_deref(), expected, "{filename} {files:?}");
    }
}

#[test]
fn untrusted_names_and_symbolic_links_are_not_followed() {
    const SECRET: &[u8] = b"a secret of this machine";
    for filename in [
        "../../../../../secret",
        "/etc/passwd",
        "a\\0.png",
        "..",
        ".",
        "%2e%2e/secret",
        "../3/a.png",
    ] {
        let library = Library::new();
        fs::write(library.at("secret"), SECRET).unwrap();
        library.put("Attachments/7/3/a.png", SECRET);
        assert_eq!(
            reason_of(&library, filename).as_deref(),
            Some("file-not-readable"),
            "{filename}"
        );
        // The name in the mail is only compared with the names in the directory, and no file is opened by it.
        library
            .put("Attachments/7/2/a", SECRET)
            .put("Attachments/7/2/b", SECRET);
        assert_eq!(
            reason_of(&library, filename).as_deref(),
            Some("ambiguous-file"),
            "{filename}"
        );
    }
    type Make = fn(&Library);
    let made: [(&str, Make); 7] = [
        ("a link to a file", |library| {
            library.put("Attachments/7/2/x", b"");
            fs::remove_file(library.at(&format!("{DATA}/Attachments/7/2/x"))).unwrap();
            symlink(
                "../../../../../../secret",
                library.at(&format!("{DATA}/Attachments/7/2/a.png")),
            )
            .unwrap();
        }),
        ("a link to a file beside it", |library| {
            library
                .put("Attachments/7/3/a.png", SECRET)
                .put("Attachments/7/2/x/y", b"");
            symlink(
                "../3/a.png",
                library.at(&format!("{DATA}/Attachments/7/2/a.png")),
            )
            .unwrap();
        }),
        ("a link to a part", |library| {
            library.put("Attachments/7/3/a.png", SECRET);
            symlink("3", library.at(&format!("{DATA}/Attachments/7/2"))).unwrap();
        }),
        ("a link to a message's folder", |library| {
            library.put("Attachments/8/2/a.png", SECRET);
            symlink("8", library.at(&format!("{DATA}/Attachments/7"))).unwrap();
        }),
        ("a link to all attachments", |library| {
            library.put("Others/7/2/a.png", SECRET);
            symlink("Others", library.at(&format!("{DATA}/Attachments"))).unwrap();
        }),
        ("a fifo", |library| {
            library.put("Attachments/7/2/x/y", b"");
            let fifo = library.at(&format!("{DATA}/Attachments/7/2/a.png"));
            assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        }),
        ("a device", |library| {
            library.put("Attachments/7/2/x/y", b"");
            symlink(
                "/dev/zero",
                library.at(&format!("{DATA}/Attachments/7/2/a.png")),
            )
            .unwrap();
        }),
    ];
    for (what, make) in made {
        let library = Library::new();
        fs::write(library.at("secret"), SECRET).unwrap();
        library.put("Messages/x", b"");
        make(&library);
        assert_eq!(
            reason_of(&library, "a.png").as_deref(),
            Some("not-a-regular-file"),
            "{what}"
        );
    }
}

#[test]
fn nothing_is_read_for_mail_that_lies_elsewhere() {
    let library = Library::new();
    let picture = part("image/png", "a.png", "base64", &in_lines(PICTURE, 76));
    let partial = mail(&[text(), stub(&picture)]);
    library.put("Attachments/1/2/a.png", PICTURE);
    library.message("1.partial", &partial);
    let file = format!("{DATA}/Messages/1.partial.emlx");
    let framed = emlx(&partial);
    // The message on standard input, in a filter, in an mbox, as a separate file, with another name, or in another directory.
    let at = library.0.path();
    let mut command = embody();
    command.current_dir(at.join(DATA).join("Messages"));
    let output = fed(
        command.args(["convert", "-", "--output", "-"]),
        framed.as_bytes(),
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), partial);
    let mut command = embody();
    let output = fed(
        command
            .arg("filter")
            .current_dir(at.join(DATA).join("Messages")),
        partial.as_bytes(),
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), partial);
    let filtered = library.run(&["filter", &file]);
    assert!(!String::from_utf8_lossy(&filtered.stdout).contains("iVBO"));
    let mbox = format!("From a@b Thu Jan  1 00:00:00 1970\n{partial}\n");
    for (name, content) in [
        ("Messages/1.mbox", mbox.as_str()),
        ("Messages/1.eml", &partial),
        ("Messages/x1.emlx", &framed),
        ("Messages/1.x.emlx", &framed),
        ("Message/1.partial.emlx", &framed),
        ("Messages/1/1.partial.emlx", &framed),
        // The `.emlx` format shows that the file belongs to Apple Mail.
        ("Messages/2.partial.emlx", &partial),
    ] {
        library.put(name, content);
        let named = format!("{DATA}/{name}");
        let copy = if name.ends_with(".mbox") {
            "copy.mbox"
        } else {
            "copy.emlx"
        };
        let output = library.run(&["convert", &named, "--output", copy, "--report", "rows"]);
        done(&output, 0);
        assert!(library.rows().is_empty(), "{name}");
        assert_eq!(
            fs::read_to_string(library.at(copy)).unwrap(),
            content,
            "{name}"
        );
        fs::remove_file(library.at(copy)).unwrap();
    }
    // The file itself, with different paths.
    for (folder, named) in [
        ("", file.as_str()),
        (DATA, "Messages/1.partial.emlx"),
        (&format!("{DATA}/Messages"), "1.partial.emlx"),
    ] {
        let output = embody_in(&at.join(folder), &["convert", named, "--output", "-"]);
        let given = String::from_utf8(output.stdout).unwrap();
        assert_eq!(given, mail(&[text(), picture.clone()]), "{folder} {named}");
    }
}

#[test]
fn non_empty_and_signed_parts_and_parts_above_limits_are_unchanged() {
    let library = Library::new();
    let mut full = stub(&part("text/plain", "a.txt", "7bit", "0123456789"));
    full.1 = "here\n".into();
    library.put("Attachments/1/2/a.txt", b"0123456789");
    library.message("1.partial", &mail(&[text(), full.clone()]));
    let (rows, _) = library.convert(&[]);
    assert!(rows.is_empty(), "{rows:?}");
    assert_eq!(library.result("1.partial"), emlx(&mail(&[text(), full])));
    let picture = stub(&part("text/plain", "a.txt", "7bit", "0123456789"));
    library.put("Attachments/1/2/a.txt", b"0123456789".repeat(9));
    let signed = mail(&[text(), picture.clone()]).replace("multipart/mixed;", "multipart/signed;");
    library.message("1.partial", &signed);
    let (rows, _) = library.convert(&[]);
    assert_eq!(rows[0]["reason"], "signed");
    assert_eq!(library.result("1.partial"), emlx(&signed));
    library.message("1.partial", &mail(&[text(), picture.clone()]));
    for (option, reason) in [
        ("--max-body=5", "too-large"),
        ("--max-growth=1", "growth-limit"),
        ("--deny-type=text/*", "type-not-allowed"),
    ] {
        let (rows, _) = library.convert(&[option]);
        assert_eq!(rows[0]["reason"], reason);
        assert!(library.has("1.partial"));
    }
    let digest = "Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n";
    let other = (format!("{digest}{}", picture.0), String::new());
    library.message("1.partial", &mail(&[text(), other]));
    assert_eq!(library.convert(&[]).0[0]["reason"], "digest-mismatch");
}

#[test]
fn wrong_byte_count_of_an_emlx_is_corrected_by_its_property_list() {
    let library = Library::new();
    let body = in_lines(&PICTURE.repeat(9), 76);
    let picture = part("image/png", "a.png", "base64", &body);
    let partial = mail(&[text(), stub(&picture)]);
    library.put("Attachments/1/2/a.png", PICTURE.repeat(9));
    let list = list(FLAGS);
    for count in [
        0,
        17,
        partial.len() - 2,
        partial.len() + 7,
        partial.len() + list.len(),
        99_999_999,
    ] {
        library.put(
            "Messages/1.partial.emlx",
            format!("{count:<10}\n{partial}{list}"),
        );
        library.convert(&[]);
        assert_eq!(
            library.result("1"),
            emlx(&mail(&[text(), picture.clone()])),
            "{count}"
        );
    }
    // A file whose end may have another meaning is left unchanged, and reported.
    for behind in [
        "<?xml version=\"1.0\"?>\n<html/>\n".to_owned(),
        "<?xml version=\"1.0\"?>\n<plist><dict/></plist>\n".to_owned(),
        format!("{list}x\n"),
        format!("{list}{list}").replace("\n<?xml", "\n <?xml"),
        list.replace("</plist>", ""),
    ] {
        let file = format!("9         \n{partial}{behind}");
        library.put("Messages/1.partial.emlx", &file);
        let output = library.run(&["convert", "INBOX.mbox", "--output", "left"]);
        let said = done(&output, 1);
        assert!(said.contains("first line"), "{said}");
        let left = library.at("left/0A0A/Data/Messages/1.partial.emlx");
        assert_eq!(fs::read_to_string(left).unwrap(), file);
        fs::remove_dir_all(library.at("left")).unwrap();
    }
    // The last `-` of the message is missing, and the property list follows immediately.
    let close = "--b=_1--\n";
    let torn = partial.strip_suffix(close).unwrap().to_owned() + "--b=_1-";
    library.message("1.partial", &torn);
    library.convert(&[]);
    let lines = mail(&[text(), picture]);
    let whole = lines.strip_suffix('\n').unwrap();
    assert_eq!(library.result("1"), emlx(whole));
}

#[test]
fn a_whole_message_beside_a_partial_one_wins() {
    let library = Library::new();
    let partial = mail(&[text(), stub(&part("image/png", "a", "base64", ""))]);
    library
        .message("1.partial", &partial)
        .message("1", &mail(&[text()]));
    library.put("Attachments/1/2/a", PICTURE);
    let (rows, said) = library.convert(&["--verbose"]);
    assert!(rows.is_empty());
    assert_eq!(library.result("1"), emlx(&mail(&[text()])));
    assert!(!library.has("1.partial"));
    assert!(
        said.contains(
            "1.partial.emlx: skipped: a partial message, whose complete version is next to it"
        ),
        "{said}"
    );
    assert!(!library.at("out/0A0A/Data/Attachments").exists());
}

#[test]
fn in_place_is_refused_because_apple_mail_keeps_an_index() {
    let library = Library::new();
    let picture = part("image/png", "a.png", "base64", &in_lines(PICTURE, 76));
    let partial = mail(&[text(), stub(&picture)]);
    library
        .message("1.partial", &partial)
        .message("2", &mail(&[text()]));
    library.put("Attachments/1/2/a.png", PICTURE);
    for command in [
        vec!["convert"],
        vec!["embed"],
        vec!["detach", "--store", "store", "--larger-than", "1"],
        vec!["restore", "--store", "store"],
    ] {
        for source in ["INBOX.mbox", &format!("{DATA}/Messages/2.emlx"), "."] {
            let _ = fs::create_dir(library.at("store"));
            let arguments = [command.as_slice(), &["--in-place", source]].concat();
            let said = done(&library.run(&arguments), 2);
            assert!(said.contains("Apple Mail keeps an index"), "{said}");
            assert!(said.contains("--output"), "{said}");
        }
    }
    let read =
        |name: &str| fs::read_to_string(library.at(&format!("{DATA}/Messages/{name}"))).unwrap();
    assert_eq!(read("1.partial.emlx"), emlx(&partial));
    assert_eq!(read("2.emlx"), emlx(&mail(&[text()])));
}

/// Returns a library with two mails in nested directories, as Apple Mail creates them for many mails, and one mail without a
/// readable property list.
fn divided() -> Library {
    let library = Library::new();
    let picture = part("image/png", "a.png", "base64", &in_lines(PICTURE, 76));
    let partial = mail(&[text(), stub(&picture)]);
    library
        .put("Attachments/1/2/a.png", PICTURE)
        .message("1.partial", &partial);
    library.put("3/1/Attachments/13001/2/a.png", PICTURE);
    library.put(
        "3/1/Messages/13001.partial.emlx",
        emlx(&partial.replace("<1@", "<2@")).replace(&FLAGS.to_string(), "0"),
    );
    let third = mail(&[text()]).replace("<1@", "<3@");
    library.put(
        "4/Messages/4000.emlx",
        format!("{:<10}\n{third}bplist00\u{1}\u{2}", third.len()),
    );
    library
}

#[test]
fn a_mailbox_becomes_one_maildir_or_mbox_with_flags_and_dates_of_the_list() {
    let library = divided();
    let source = library.at(&format!("{DATA}/4/Messages/4000.emlx"));
    let file = fs::File::options().write(true).open(source).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(60))
        .unwrap();
    let (rows, _) = library.convert(&["--output-format", "maildir"]);
    assert_eq!(rows.len(), 2);
    let names = |part: &str| {
        let entries = fs::read_dir(library.at("out").join(part)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|name| {
                let (front, rest) = name.split_once('.').unwrap();
                format!(
                    "{front} {}",
                    rest.split_once(":2,").map_or("", |(_, letters)| letters)
                )
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("cur"), ["1391457223 ", "1391457223 FPRS"]);
    assert_eq!(names("new"), ["0000000060 "]);
    if program("doveadm").is_some() {
        let copy = library.at("dovecot");
        fs::create_dir(&copy).unwrap();
        let status = Command::new("cp")
            .arg("-a")
            .arg(library.at("out"))
            .arg(copy.join("md"))
            .status();
        assert!(status.unwrap().success());
        let said = dovecot_says(
            &copy,
            &format!("maildir:{}", copy.join("md").display()),
            "flags date.received.unixtime body",
        )
        .unwrap()
        .join("\n");
        assert!(said.contains("\\Answered \\Flagged \\Seen"), "{said}");
        assert!(said.contains("1391457223"), "{said}");
        assert!(said.contains(&in_lines(PICTURE, 76)), "{said}");
    } else {
        skipped("a_mailbox_becomes_one_maildir", "doveadm");
    }
    let output = library.run(&[
        "convert",
        "INBOX.mbox",
        "--output-format",
        "mbox",
        "--output",
        "box",
    ]);
    done(&output, 0);
    let mbox = fs::read_to_string(library.at("box")).unwrap();
    assert!(mbox.contains("Mon Feb  3 19:53:43 2014\n"), "{mbox}");
    assert_eq!(mbox.matches("\nStatus: RO\n").count(), 1, "{mbox}");
    assert_eq!(mbox.matches("\nX-Status: AF\n").count(), 1, "{mbox}");
    assert_eq!(mbox.matches("\nStatus: O\n").count(), 1, "{mbox}");
    if program("mutt").is_some() && program("script").is_some() {
        assert_eq!(counted_by_mutt_in(library.0.path()), 3);
    } else {
        skipped("a_mailbox_becomes_one_maildir", "mutt");
    }
    if has_python("a_mailbox_becomes_one_maildir", "mailbox", "python3") {
        let code = "import mailbox, hashlib\n\
                    for box in (mailbox.Maildir('out'), mailbox.mbox('box')):\n  \
                      for mail in sorted(box, key=lambda mail: mail['Message-ID']):\n    \
                        parts = [hashlib.sha1(part.get_payload(decode=True)).hexdigest() for part in mail.walk() if part.get_filename()]\n    \
                        print(mail['Message-ID'], mail.get_flags(), *parts)";
        let output = Command::new("python3")
            .args(["-c", code])
            .current_dir(library.0.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines.len(),
            6,
            "{said}{}",
            stderr(&Output {
                stdout: Vec::new(),
                ..output
            })
        );
        assert!(lines[0].starts_with("<1@example.org> FPRS "), "{said}");
        assert_eq!(lines[0].rsplit(' ').next(), lines[1].rsplit(' ').next());
        assert_eq!(lines[2], "<3@example.org> ");
    }
    // If the parent directory is named, the mailbox keeps its name.
    fs::create_dir(library.at("V10")).unwrap();
    fs::rename(library.at("INBOX.mbox"), library.at("V10/INBOX.mbox")).unwrap();
    done(
        &library.run(&[
            "convert",
            "V10",
            "--output-format",
            "maildir",
            "--output",
            "all",
        ]),
        0,
    );
    assert_eq!(
        fs::read_dir(library.at("all/INBOX/cur")).unwrap().count(),
        2
    );
}

#[test]
fn thousands_of_parts_are_filled_in_one_go() {
    const PARTS: usize = 3_000;
    let library = Library::new();
    let short = part("text/plain", "a.txt", "7bit", "short\n");
    let mut parts = vec![text()];
    for number in 0..PARTS {
        library.put(&format!("Attachments/1/{}/a.txt", number + 2), b"short\n");
        parts.push(stub(&short));
    }
    library.message("1.partial", &mail(&parts));
    let begun = std::time::Instant::now();
    let (rows, _) = library.convert(&[]);
    assert_eq!(
        rows.iter()
            .filter(|row| row["outcome"] == "expanded")
            .count(),
        PARTS
    );
    assert!(library.has("1"));
    let took = begun.elapsed();
    assert!(took.as_secs() < 20, "{took:?}");
}

#[test]
fn completed_mail_is_written_under_the_file_name_that_output_gives() {
    let library = Library::new();
    let picture = part("image/png", "a.png", "base64", &in_lines(PICTURE, 76));
    library.put("Attachments/1/2/a.png", PICTURE);
    library.message("1.partial", &mail(&[text(), stub(&picture)]));
    let source = format!("{DATA}/Messages/1.partial.emlx");
    let whole = mail(&[text(), picture]);
    for (name, expected) in [
        ("1.partial.emlx", emlx(&whole)),
        ("x.emlx", emlx(&whole)),
        ("x.eml", whole.clone()),
    ] {
        done(&library.run(&["convert", &source, "--output", name]), 0);
        assert_eq!(fs::read_to_string(library.at(name)).unwrap(), expected);
    }
}
