//! Parts that Mailman 2 removed from mails and replaced with notes: `--follow mailman` and `--attachments`.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::common::filter::{Ran, filter, open};
use crate::common::mail::{crlf, python_leaves};
use crate::common::programs::{done, embody, embody_in, fed, program, skipped};
use crate::common::pywb::{Capture, Nearest, archive as pywb_archive, pywb};
use crate::common::raw::{Raw, ok};
use crate::mailbox::maildir::dovecot_says;

/// Hashes of `<1.team@mail.example.org>` to `<5.team@mail.example.org>`: the first four and the last four digits of SHA-1.
const HASHES: [&str; 5] = ["5a579ce7", "5eb89bd7", "39febf53", "a351f036", "8a24f584"];
const SEPARATOR: &str = "-------------- next part --------------\n";
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n and so on\0\xff";

/// Returns a mail from the archive of a list. `number` selects the hash of its Message-ID.
fn mail(number: usize, body: &str) -> Vec<u8> {
    let header = "From: ann at example.org (Ann Example)\n\
        Date: Tue, 14 May 2024 12:00:01 +0200\n\
        Subject: [team] a mail\n";
    format!(
        "{header}Message-ID: <{}.team@mail.example.org>\n\n{body}",
        number + 1
    )
    .into_bytes()
}

fn url(number: usize, name: &str) -> String {
    let hash = HASHES[number];
    format!("http://lists.example.org/pipermail/team/attachments/20240514/{hash}/{name}")
}

/// Returns the note for a file of this size in bytes.
fn file_note(number: usize, name: &str, essence: &str, size: usize, stored: &str) -> String {
    let url = url(number, stored);
    format!(
        "A non-text attachment was scrubbed...\nName: {name}\nType: {essence}\nSize: {size} bytes\nDesc: not available\nURL: <{url}>\n"
    )
}

fn text_note(number: usize, stored: &str) -> String {
    let url = url(number, stored);
    format!(
        "An embedded and charset-unspecified text was scrubbed...\nName: not available\nURL: <{url}>\n"
    )
}

/// The directory of an archive with the files of its mails.
struct Archive(TempDir);

impl Archive {
    fn with(files: &[(usize, &str, &[u8])]) -> Self {
        let archive = Self(tempfile::tempdir().unwrap());
        for (number, name, octets) in files {
            let folder = archive
                .path()
                .join("attachments/20240514")
                .join(HASHES[*number]);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(name), octets).unwrap();
        }
        archive
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn options(&self) -> String {
        format!("--follow mailman --attachments {}", self.path().display())
    }

    fn run(&self, mail: &[u8]) -> Ran {
        filter(&self.options(), mail)
    }

    /// Returns the filled mail. Asserts that a second run leaves it unchanged.
    #[track_caller]
    fn filled(&self, mail: &[u8]) -> String {
        let ran = self.run(mail);
        assert!(
            ran.column("outcome").iter().all(|it| it == "expanded"),
            "{}",
            ran.stderr
        );
        assert!(!ran.rows.is_empty());
        self.run(&ran.stdout).gives(&ran.stdout);
        String::from_utf8(ran.stdout).unwrap()
    }

    #[track_caller]
    fn leaves(&self, mail: &[u8], reasons: &[&str]) {
        self.run(mail).leaves(mail, reasons);
    }
}

/// Returns the parts of a multipart, each with its header and body.
fn parts(mail: &str) -> Vec<(&str, &str)> {
    let boundary = mail
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let delimiter = format!("\n--{boundary}");
    let (_, parts) = mail.split_once("\n\n").unwrap();
    let parts: Vec<&str> = parts.split(delimiter.as_str()).collect();
    let (last, parts) = parts.split_last().unwrap();
    assert!(last.starts_with("--"), "{last}");
    let start = &delimiter[1..];
    let parts = parts
        .iter()
        .map(|part| part.strip_prefix(start).unwrap_or(part));
    parts
        .map(|part| {
            let part = part.strip_prefix('\n').unwrap();
            part.split_once("\n\n")
                .unwrap_or_else(|| ("", part.strip_prefix('\n').unwrap()))
        })
        .collect()
}

#[test]
fn each_part_comes_back_where_its_note_stood_and_no_other_octet_changes() {
    let page = b"<tt>\n&lt;p&gt;a&nbsp;&amp;amp;&nbsp;b&lt;/p&gt;<br>\n\n</tt>\n";
    let message = b"From nobody Tue May 14 09:00:00 2024\nFrom: bob@example.org\nSubject: in it\n\n1 &lt; 2\n";
    let archive = Archive::with(&[
        (0, "attachment.png", PICTURE),
        (0, "attachment.html", page),
        (0, "attachment.mht", message),
        (0, "attachment.pl", b"x <- 1\n"),
    ]);
    let texts = ["The picture.  \n\nAnd more:\n", "A footer\n"];
    let mail = mail(
        0,
        &[
            texts[0],
            SEPARATOR,
            &file_note(0, "coast 1.png", "image/png", PICTURE.len(), "attachment.png"),
            SEPARATOR,
            &format!("An HTML attachment was scrubbed...\nURL: <{}>\n", url(0, "attachment.html")),
            SEPARATOR,
            &format!("An embedded message was scrubbed...\nFrom: bob at example.org\nSubject: in\n\tit\nDate: Mon, 13 May 2024 08:00:00 +0000\nSize: {}\nURL: <{}>\n", message.len() - 3, url(0, "attachment.mht")),
            SEPARATOR,
            &text_note(0, "attachment.pl"),
            SEPARATOR,
            texts[1],
        ]
        .concat(),
    );
    let filled = archive.filled(&mail);
    let (before, _) = std::str::from_utf8(&mail)
        .unwrap()
        .split_once("\n\n")
        .unwrap();
    assert!(
        filled.starts_with(&format!(
            "{before}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="
        )),
        "{filled}"
    );
    let parts = parts(&filled);
    let found: Vec<&str> = parts
        .iter()
        .map(|(header, _)| header.lines().next().unwrap())
        .collect();
    assert_eq!(
        found,
        [
            "Content-Type: text/plain",
            "Content-Type: image/png",
            "Content-Type: text/html",
            "Content-Type: message/rfc822",
            "Content-Type: text/plain",
            "Content-Type: text/plain"
        ]
    );
    assert!(
        parts[1].0.contains("filename=\"coast 1.png\""),
        "{}",
        parts[1].0
    );
    assert_eq!(parts[0].1, texts[0]);
    assert_eq!(parts[2].1, "<p>a &amp; b</p>\n");
    assert_eq!(
        parts[3].1,
        "From: bob@example.org\nSubject: in it\n\n1 < 2\n"
    );
    assert_eq!(parts[4].1, "x <- 1\n");
    assert_eq!(parts[5].1, texts[1]);
    let Some(leaves) = python_leaves(&[filled.clone().into_bytes()]) else {
        return;
    };
    assert_eq!(leaves[0].len(), 6, "{filled}");
    // The same mail with CRLF, as a server transfers it.
    let ran = archive.run(&crlf(&mail));
    assert_eq!(ran.column("outcome"), ["expanded"; 4], "{}", ran.stderr);
    archive.run(&ran.stdout).gives(&ran.stdout);
}

#[test]
fn scrubbed_text_of_a_single_part_mail_becomes_its_body_again() {
    let archive = Archive::with(&[
        (3, "attachment.pl", b"Dear all,\n\nbye\n"),
        (4, "attachment.ksh", "Gr\u{fc}\u{df}e\n".as_bytes()),
        (2, "attachment.txt", b"Gr\xfc\xdfe\n"),
    ]);
    let filled = archive.filled(&mail(3, &text_note(3, "attachment.pl")));
    assert!(
        filled.ends_with("MIME-Version: 1.0\nContent-Type: text/plain\n\nDear all,\n\nbye\n"),
        "{filled}"
    );
    let filled = archive.filled(&mail(4, &text_note(4, "attachment.ksh")));
    assert!(
        filled.contains("Content-Type: text/plain; charset=\"utf-8\"\n"),
        "{filled}"
    );
    let filled = archive.filled(&mail(2, &text_note(2, "attachment.txt")));
    assert!(filled.contains("charset=\"unknown-8bit\""), "{filled}");
    // An empty line after the note does not belong to the text.
    let filled = archive.filled(&mail(3, &(text_note(3, "attachment.pl") + "\n")));
    assert!(
        filled.ends_with("base64\n\nRGVhciBhbGwsCgpieWUK\n"),
        "{filled}"
    );
}

#[test]
fn text_without_a_charset_gets_the_charset_of_its_bytes() {
    let archive = Archive::with(&[(0, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    for (text, charset) in [
        (b"Gr\xc3\xbc\xc3\x9fe\n".as_slice(), "utf-8"),
        (b"Gr\xfc\xdfe\n", "unknown-8bit"),
    ] {
        let mail = mail(0, &format!("TEXT{SEPARATOR}{note}{SEPARATOR}ASCII\n"));
        let at = memchr::memmem::find(&mail, b"TEXT").unwrap();
        let mail = [&mail[..at], text, &mail[at + 4..]].concat();
        let ran = archive.run(&mail);
        let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(shown.contains("multipart/mixed; boundary"), "{shown}");
        let fields = format!(
            "Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
        );
        assert!(shown.contains(&fields), "{shown}");
        assert!(
            shown.contains("\"\nContent-Transfer-Encoding: 8bit\n\n--"),
            "{shown}"
        );
        assert!(
            shown.contains("Content-Type: text/plain\n\nASCII\n"),
            "{shown}"
        );
        assert!(memchr::memmem::find(&ran.stdout, text).is_some());
        archive.run(&ran.stdout).gives(&ran.stdout);
    }
    // The charset of the mail also applies to the pieces of its text.
    let untyped = String::from_utf8(mail(0, &format!("one\n{SEPARATOR}{note}"))).unwrap();
    let typed = untyped.replace("\n\none", "\nMIME-Version: 1.0\nContent-Type: text/plain; charset=\"us-ascii\";\n format=flowed\nContent-Transfer-Encoding: 7bit\nX-Last: 1\n\none");
    let filled = archive.filled(typed.as_bytes());
    assert!(
        filled.contains("MIME-Version: 1.0\nContent-Type: multipart/mixed;"),
        "{filled}"
    );
    assert!(filled.contains("Content-Type: text/plain; charset=\"us-ascii\";\n format=flowed\nContent-Transfer-Encoding: 7bit\n\none\n"), "{filled}");
    assert_eq!(filled.matches("MIME-Version").count(), 1);
    assert_eq!(filled.matches("Content-Transfer-Encoding: 7bit").count(), 1);
}

#[test]
fn all_versions_and_languages_are_known_by_their_shape() {
    let archive = Archive::with(&[
        (0, "a.png", PICTURE),
        (0, "a.html", b"<p>"),
        (0, "a.pl", b"x\n"),
    ]);
    let (png, html, pl) = (url(0, "a.png"), url(0, "a.html"), url(0, "a.pl"));
    let size = PICTURE.len();
    let cut = |at: usize| format!("URL: \n<{}\n{}>\n", &png[..at], &png[at..]);
    let of_english = |end: &str| {
        format!(
            "A non-text attachment was scrubbed...\nName: a.png\nType: image/png\nSize: {size} bytes\nDesc: not available\n{end}"
        )
    };
    let mut notes = vec![
        // Notes of the versions up to 2.1.6 and up to 2.1.9.
        of_english(&format!("Url : {png}\n")),
        of_english(&format!("Url : {png} \n")),
        format!(
            "Ein Dateianhang mit Bin\u{e4}rdaten wurde abgetrennt...\nDateiname   : a.png\nDateityp    : image/png\nDateigr\u{f6}\u{df}e  : {size} bytes\nBeschreibung: nicht verf\u{fc}gbar\nURL         : <{png}>\n"
        ),
        format!(
            "\u{30c6}...\n\u{30d5}: a.png\n\u{578b}:         image/png\n\u{30b5}:     {size} \u{30d0}\u{30a4}\u{30c8}\n\u{8aac}:       \u{7121}\u{3057}\nURL:        <{png}>\n"
        ),
        format!(
            "\u{d7}...\n\u{d7}: a.png\n\u{d7}: image/png\n\u{d7}: {size}\u{b7}\u{d7}\n\u{d7}: \u{d7}\n\u{d7}: <{png}>\n"
        ),
        format!(
            "\u{4e00}...\n\u{53d1}: %(who)s\n\u{4e3b}: %(subject)s\n\u{65e5}: %(date)s\n\u{5927}: {size}\nUrl: <{png}>\n"
        ),
        format!("\u{62a}... \u{627}:  <{html}>\n"),
        format!("HTML \u{43f}..\n\u{410}: {html}\n"),
        format!("Un ata\u{15f}ament   \nURL: {html}\n"),
        format!(
            "\u{c8} stato filtrato un testo allegato il cui set di caratteri non era\nindicato...\nNome: non disponibile\nURL: <{pl}>\n"
        ),
        format!("Kirjale eemaldati.\n\nNimi: pole teada\nUrl: <{pl}>\n"),
        format!("\u{5d4c}...\n\u{540d}\u{ff1a}\u{4e0d}\nUrl\u{ff1a} <{pl}>\n"),
        // The name of the list contains an @, which the archive program replaced.
        of_english(&format!(
            "URL: <{}>\n",
            png.replace("lists.", "team at lists.")
        )),
    ];
    // Digests were wrapped at any byte. Mails are found by a word that must not be interrupted, so it is excluded.
    let word = png.find("/attachments/").unwrap();
    let cuts = (7..png.len()).filter(|at| !(word + 1..word + 13).contains(at));
    notes.extend(cuts.map(|at| of_english(&cut(at))));
    for note in notes {
        for body in [
            note.clone(),
            format!("Text.\n{SEPARATOR}{note}{SEPARATOR}More.\n"),
            format!("Text.\n-------------- n\u{e4}chster Teil --------------\n{note}"),
            format!("Text.\n------------ pr\u{f3}xima parte ------------ \n{note}"),
            format!(
                "Text.\n\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}ph\u{1ea7}n k\u{1ebf}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\u{2501}\n{note}\n"
            ),
            format!(
                "Text.\n{SEPARATOR}Skipped content of type message/delivery-status{SEPARATOR}{note}"
            ),
        ] {
            let mail = mail(0, &body);
            let ran = archive.run(&mail);
            assert_eq!(
                ran.column("outcome"),
                ["expanded"],
                "{body}\n{}",
                ran.stderr
            );
            let output = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert!(
                !output.contains("/attachments/") && !output.contains("next part"),
                "{output}"
            );
            assert!(
                !output.contains("Teil ---") && !output.contains("parte ---"),
                "{output}"
            );
            archive.run(&ran.stdout).gives(&ran.stdout);
        }
    }
}

#[test]
fn what_is_not_a_note_of_this_mail_stays() {
    let archive = Archive::with(&[(0, "a.png", PICTURE), (1, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let other = file_note(1, "a.png", "image/png", PICTURE.len(), "a.png");
    let indented = |by: &str| {
        note.lines()
            .map(|line| format!("{by}{line}\n"))
            .collect::<String>()
    };
    let lines: Vec<&str> = note.lines().collect();
    for body in [
        indented("> "),
        indented(">"),
        indented(" "),
        other.clone(),
        format!("Text.\n{SEPARATOR}{other}"),
        "A non-text attachment was scrubbed...\nThat line, I mean.\n".to_owned(),
        format!("See {} there.\n", url(0, "a.png")),
        format!("{}\n", url(0, "a.png")),
        format!("URL: <{}>\n", url(0, "a.png")),
        // The note lacks a line, or has an additional one.
        [&lines[..2], &lines[3..]].concat().join("\n"),
        [&lines[..2], &lines[1..]].concat().join("\n") + "\nX: y\n",
        lines[..5].join("\n"),
        note.replace("20240514/", "2024051/"),
        note.replace("a.png>", ">"),
        note.replace("a.png>", "a/b.png>"),
    ] {
        archive.leaves(&mail(0, &format!("Hello.\n\n{body}")), &[]);
    }
    // Without `--follow mailman`, the mail is unchanged and has no rows.
    let mail = mail(0, &note);
    let options = format!("--attachments {}", archive.path().display());
    filter(&options, &mail).leaves(&mail, &[]);
}

#[test]
fn notes_in_html_in_what_is_signed_or_another_message_are_not_taken() {
    let archive = Archive::with(&[(0, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let with = |fields: &str, body: &str| {
        let mail = String::from_utf8(mail(0, body)).unwrap();
        mail.replacen("\n\n", &format!("\nMIME-Version: 1.0\n{fields}\n\n"), 1)
            .into_bytes()
    };
    archive.leaves(&with("Content-Type: text/html", &note), &[]);
    archive.leaves(&with("Content-Disposition: attachment", &note), &[]);
    archive.leaves(
        &with(
            "Content-Type: message/rfc822",
            &format!("Message-ID: <1.team@mail.example.org>\n\n{note}"),
        ),
        &[],
    );
    let part = format!("--b\n\n{note}--b--\n");
    archive.leaves(
        &with("Content-Type: multipart/signed; boundary=b", &part),
        &["signed"],
    );
    archive.leaves(
        &with("Content-Type: multipart/report; boundary=b", &part),
        &["inside-report"],
    );
    // A text in a multipart other than multipart/mixed becomes a multipart/mixed itself.
    let filled = archive.filled(&with(
        "Content-Type: multipart/alternative; boundary=b",
        &format!("--b\n\nText.\n{SEPARATOR}{note}--b\nContent-Type: text/html\n\n<p>\n--b--\n"),
    ));
    assert_eq!(filled.matches("multipart/mixed").count(), 1, "{filled}");
    assert!(
        filled.ends_with("--\n--b\nContent-Type: text/html\n\n<p>\n--b--\n"),
        "{filled}"
    );
}

/// Returns a mail that Mailman delivered. Its text is encoded as the charset of the list requires.
fn delivered(encoding: &str, text: &str) -> Vec<u8> {
    let body = match encoding {
        "base64" => encode_base64(text.as_bytes()),
        _ => text
            .replace('=', "=3D")
            .replace('ä', "=C3=A4")
            .replace("/attachments/", "/attach=\nments/"),
    };
    let mail = String::from_utf8(mail(0, &body)).unwrap();
    let fields = format!(
        "\nMIME-Version: 1.0\nContent-Type: text/plain; charset=\"utf-8\"\nContent-Transfer-Encoding: {encoding}\n\n"
    );
    mail.replacen("\n\n", &fields, 1).into_bytes()
}

fn encode_base64(text: &[u8]) -> String {
    let letters = STANDARD.encode(text);
    let lines = letters.as_bytes().chunks(76);
    lines
        .map(|line| format!("{}\n", std::str::from_utf8(line).unwrap()))
        .collect()
}

/// Returns a mail with a multipart/mixed of these parts as its body.
fn mixed(boundary: &str, parts: &str) -> Vec<u8> {
    let mail = String::from_utf8(mail(0, "")).unwrap();
    let fields = format!(
        "\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{boundary}\"\n\n{parts}"
    );
    mail.replacen("\n\n", &fields, 1).into_bytes()
}

#[test]
fn a_text_that_is_encoded_is_looked_into_and_says_the_same_afterwards() {
    let archive = Archive::with(&[(0, "a.png", PICTURE), (0, "a.pl", b"x <- 1\n")]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let text = format!("Gräte = all.\n{SEPARATOR}{note}{SEPARATOR}The list\n");
    let fields = "Content-Type: text/plain; charset=\"utf-8\"";
    let eight_bit = format!("{fields}\nContent-Transfer-Encoding: 8bit");
    let mut mails = Vec::new();
    for encoding in ["base64", "quoted-printable"] {
        let alone = delivered(encoding, &text);
        let filled = archive.filled(&alone);
        let found = parts(&filled);
        assert_eq!(found[0], (&*eight_bit, "Gräte = all.\n"), "{filled}");
        assert!(
            found[1].0.starts_with("Content-Type: image/png"),
            "{filled}"
        );
        assert_eq!(found[2], (fields, "The list\n"), "{filled}");
        // In a multipart/mixed, the text is divided into parts of that multipart.
        let (_, part) = std::str::from_utf8(&alone)
            .unwrap()
            .split_once("MIME-Version: 1.0\n")
            .unwrap();
        let nested = archive.filled(&mixed("b", &format!("--b\n{part}--b--\n")));
        assert_eq!(parts(&nested)[..2], found[..2], "{nested}");
        mails.extend([filled.into_bytes(), nested.into_bytes()]);
        // A text that was the whole mail.
        let filled = archive.filled(&delivered(encoding, &text_note(0, "a.pl")));
        assert!(filled.ends_with("\n\nx <- 1\n"), "{filled}");
    }
    for leaves in python_leaves(&mails).into_iter().flatten() {
        assert_eq!(leaves[1].octets, PICTURE);
    }
}

#[test]
fn an_encoded_text_that_cannot_stand_in_a_mail_as_it_is_stays() {
    let archive = Archive::with(&[(0, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    for hostile in ["\0", "a\rb", &"x".repeat(999)] {
        let text = format!("{hostile}\n{SEPARATOR}{note}");
        archive.leaves(&delivered("base64", &text), &[]);
    }
    // The decoded text would end the multipart around it.
    let text = encode_base64(format!("--outer--\n\n{SEPARATOR}{note}").as_bytes());
    let inner = format!(
        "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Transfer-Encoding: base64\n\n{text}--b--\n"
    );
    archive.leaves(
        &mixed("outer", &format!("--outer\n{inner}--outer--\n")),
        &[],
    );
    // A text that is left unchanged stays encoded.
    let wrong = file_note(0, "a.png", "image/png", 5, "a.png");
    let text = format!("Text.\n{SEPARATOR}{wrong}");
    archive.leaves(&delivered("base64", &text), &["size-mismatch"]);
}

#[test]
fn a_url_that_was_cut_anywhere_is_put_together() {
    let archive = Archive::with(&[(0, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let (front, url) = note.split_once("URL: <").unwrap();
    for at in 10..url.len() - 2 {
        let (start, end) = url.split_at(at);
        let cut = format!("Text.\n{SEPARATOR}{front}URL: <{start}\n{end}");
        archive.filled(&mail(0, &cut));
    }
}

#[test]
fn what_a_list_no_longer_has_comes_from_a_web_archive_by_the_date_of_the_mail() {
    let test = "what_a_list_no_longer_has_comes_from_a_web_archive_by_the_date_of_the_mail";
    let stored = url(0, "a.png");
    let old = vec![b'x'; PICTURE.len()];
    let octets: &[(&str, &str)] = &[("Content-Type", "application/octet-stream")];
    let captures = [
        Capture::of(&stored, "20230601000000", octets, &old),
        Capture::of(&stored, "20240601000000", octets, PICTURE),
    ];
    let Some(server) = pywb(test, &captures, Nearest::AtOnce) else {
        return;
    };
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let options = format!("--follow mailman --archive-first {}", pywb_archive(&server));
    let ran = filter(&options, &mail(0, &format!("Text.\n{SEPARATOR}{note}")));
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    assert_eq!(ran.column("from"), ["archive"]);
    for leaves in python_leaves(&[ran.stdout]).into_iter().flatten() {
        assert_eq!(leaves[1].octets, PICTURE);
    }
}

#[test]
fn dovecot_reads_what_came_back() {
    if program("doveadm").is_none() {
        return skipped("dovecot_reads_what_came_back", "doveadm");
    }
    let archive = Archive::with(&[(0, "a.png", PICTURE), (1, "a.pl", b"x <- 1\n")]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let one = mail(
        0,
        &format!("Hello.\n{SEPARATOR}{note}{SEPARATOR}-- \nlist\n"),
    );
    let two = mail(1, &text_note(1, "a.pl"));
    let folder = tempfile::tempdir().unwrap();
    let separator = b"From ann at example.org  Tue May 14 12:00:01 2024\n".as_slice();
    let mbox = [separator, &one, b"\n", separator, &two, b"\n"].concat();
    fs::write(folder.path().join("in.mbox"), mbox).unwrap();
    let options = archive.options();
    let mut arguments = vec!["convert", "in.mbox", "--output", "md"];
    arguments.extend(["--output-format", "maildir"]);
    arguments.extend(options.split(' '));
    done(&embody_in(folder.path(), &arguments), 0);
    let location = format!("maildir:{}", folder.path().join("md").display());
    let said = dovecot_says(folder.path(), &location, "imap.bodystructure body")
        .unwrap()
        .join("\n");
    assert_eq!(said.matches("(\"text\" \"plain\"").count(), 2, "{said}");
    assert!(said.contains("(\"image\" \"png\""), "{said}");
    assert!(said.contains("\nx <- 1"), "{said}");
}

#[test]
fn what_is_left_is_filled_by_a_later_run_as_if_at_once() {
    let (png, text) = (
        file_note(0, "a.png", "image/png", PICTURE.len(), "a.png"),
        text_note(0, "a.pl"),
    );
    let pdf = file_note(0, "b.pdf", "application/pdf", 3, "b.pdf");
    let body = format!("One.\n{SEPARATOR}{png}{SEPARATOR}{text}{SEPARATOR}{pdf}{SEPARATOR}Two.\n");
    let files: [(usize, &str, &[u8]); 3] = [
        (0, "a.png", PICTURE),
        (0, "a.pl", b"x <- 1\n"),
        (0, "b.pdf", b"pdf"),
    ];
    let at_once = Archive::with(&files).filled(&mail(0, &body));
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let mut current = mail(0, &body);
        for count in 1..=3 {
            let there: Vec<_> = order[..count].iter().map(|&which| files[which]).collect();
            let archive = Archive::with(&there);
            let ran = archive.run(&current);
            let expanded = ran
                .column("outcome")
                .iter()
                .filter(|it| *it == "expanded")
                .count();
            assert_eq!(expanded, 1, "{}", ran.stderr);
            let left = ran
                .column("reason")
                .iter()
                .filter(|it| *it == "scheme-not-allowed")
                .count();
            assert_eq!(left, 3 - count, "{}", ran.stderr);
            assert!(
                count == 3 || ran.stderr.contains("the file is not in --attachments"),
                "{}",
                ran.stderr
            );
            current = ran.stdout;
            archive.run(&current).gives(&current);
        }
        assert_eq!(String::from_utf8(current).unwrap(), at_once);
    }
}

#[test]
fn content_of_another_size_and_sign_in_forms_are_not_taken_for_the_file() {
    let png = mail(
        0,
        &file_note(0, "a.png", "image/png", PICTURE.len() + 1, "a.png"),
    );
    Archive::with(&[(0, "a.png", PICTURE)]).leaves(&png, &["size-mismatch"]);
    let form = b"<html><FORM METHOD=POST ACTION=\"../mailman/private/team/\">Password: <input type=password></form>";
    let server = Raw::http(move |_, stream| {
        use std::io::Write as _;
        stream.write_all(&ok("text/html", form)).unwrap();
    });
    let options = format!(
        "--follow mailman {} --map http://lists.example.org={}",
        open(&[server
            .url("")
            .rsplit(':')
            .next()
            .unwrap()
            .trim_end_matches('/')
            .parse()
            .unwrap()]),
        server.url("").trim_end_matches('/')
    );
    let html = format!(
        "An HTML attachment was scrubbed...\nURL: <{}>\n",
        url(0, "a.html")
    );
    for body in [
        text_note(0, "a.pl"),
        html,
        file_note(0, "a.png", "image/png", 9, "a.png"),
    ] {
        let mail = mail(0, &body);
        filter(&options, &mail).leaves(&mail, &["type-mismatch"]);
    }
}

/// Returns the note for an HTML attachment.
fn html_note(number: usize, stored: &str) -> String {
    let url = url(number, stored);
    format!("An HTML attachment was scrubbed...\nURL: <{url}>\n")
}

#[test]
fn file_that_is_not_text_is_not_taken_for_html_or_for_a_text() {
    let wide: Vec<u8> = "<html><body>Hi</body></html>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let marked = [b"\xff\xfe", &wide[..]].concat();
    let pdf = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n";
    let others: [&[u8]; 6] = [
        pdf,
        PICTURE,
        b"PK\x03\x04\x14\0\0\0\x08\0word/document.xml",
        b"\x1f\x8b\x08\0\0\0\0\0",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        b"\0\x01\x02\x03 unknown",
    ];
    for (note, name) in [
        (html_note(0, "a.htm"), "a.htm"),
        (text_note(0, "a.pl"), "a.pl"),
    ] {
        let mail = mail(0, &note);
        for other in others {
            // From a directory, and from a server with any media type.
            let archive = Archive::with(&[(0, name, other)]);
            archive.leaves(&mail, &["type-mismatch"]);
            for essence in ["application/pdf", "text/html", "text/plain"] {
                let answer = ok(essence, other);
                let server = Raw::http(move |_, stream| {
                    use std::io::Write as _;
                    stream.write_all(&answer).unwrap();
                });
                let url = server.url("");
                let address = url.trim_end_matches('/');
                let port = address.rsplit(':').next().unwrap().parse().unwrap();
                let options = format!(
                    "--follow mailman {} --map http://lists.example.org={address}",
                    open(&[port])
                );
                filter(&options, &mail).leaves(&mail, &["type-mismatch"]);
            }
            let accepted = format!("{} --accept-mismatch", archive.options());
            let text = String::from_utf8(filter(&accepted, &mail).stdout).unwrap();
            assert!(
                !text.contains("text/html")
                    && !text.contains("Content-Type: text/plain\nContent-Transfer"),
                "{text}"
            );
        }
        let texts: [&[u8]; 6] = [
            b"<html><body>Hi</body></html>\n",
            b"<p>a fragment",
            b"<!-- a comment -->\n\n<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\"/>\n",
            b"Text first, then <b>HTML</b> in Latin-1: caf\xe9\n",
            &wide,
            &marked,
        ];
        for text in texts {
            let archive = Archive::with(&[(0, name, text)]);
            let ran = archive.run(&mail);
            assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
        }
    }
}

/// The server guesses a media type from the file name, but the type in the note is used.
#[test]
fn the_type_is_that_of_the_note_also_from_a_server() {
    let server = Raw::http(|_, stream| {
        use std::io::Write as _;
        stream
            .write_all(&ok("application/x-perl", b"print\n"))
            .unwrap();
    });
    let url_of_server = server.url("");
    let address = url_of_server.trim_end_matches('/');
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let options = format!(
        "--follow mailman {} --map http://lists.example.org={address}",
        open(&[port])
    );
    let ran = filter(&options, &mail(0, &text_note(0, "a.pl")));
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.ends_with("\nContent-Type: text/plain\n\nprint\n"),
        "{text}"
    );
    let ran = filter(&options, &mail(0, &file_note(0, "a", "text", 6, "a.bin")));
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.contains("\nContent-Type: application/octet-stream\n"),
        "{text}"
    );
    assert!(!text.contains("Content-Location"), "{text}");
}

#[test]
fn irreversibly_escaped_content_is_attached_unchanged() {
    let page = b"<tt>\n&eacute;&nbsp;&nbsp;\n</tt>\n";
    let message = b"From nobody Tue\nSubject: &eacute;\n\nx\n";
    let archive = Archive::with(&[(0, "a.html", page), (0, "a.mht", message)]);
    let html = format!(
        "An HTML attachment was scrubbed...\nURL: <{}>\n",
        url(0, "a.html")
    );
    let embedded = format!(
        "An embedded message was scrubbed...\nFrom: x\nSubject: y\nDate: z\nSize: 30\nURL: <{}>\n",
        url(0, "a.mht")
    );
    let ran = archive.run(&mail(0, &format!("{html}{SEPARATOR}{embedded}")));
    assert_eq!(ran.column("outcome"), ["expanded"; 2], "{}", ran.stderr);
    assert!(
        ran.column("detail")
            .iter()
            .all(|detail| detail.contains("; escaped: ")),
        "{}",
        ran.stderr
    );
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(
        text.contains(
            "Content-Type: text/html\nContent-Disposition: attachment; filename=\"a.html\""
        ) || text
            .contains("Content-Disposition: attachment;\n filename=\"a.html\"\n\n<tt>\n&eacute;"),
        "{text}"
    );
    // A file that was stored unchanged is not an escaped page.
    let archive = Archive::with(&[(0, "a.html", b"<p>&eacute;</p>\n")]);
    let filled = archive.filled(&mail(0, &html));
    assert!(
        filled.ends_with("Content-Type: text/html\n\n<p>&eacute;</p>\n"),
        "{filled}"
    );
}

#[test]
fn html_that_was_not_stored_is_counted() {
    let archive = Archive::with(&[]);
    let gone = "HTML attachment scrubbed and removed\n";
    archive.leaves(&mail(0, gone), &["deleted"]);
    archive.leaves(&mail(0, &format!("Text.\n{SEPARATOR}{gone}")), &["deleted"]);
    archive.leaves(&mail(0, &format!("Text.\n\n{gone}")), &[]);
    archive.leaves(&mail(0, &format!("> {gone}")), &[]);
}

#[test]
fn each_mail_of_a_digest_counts_for_itself_where_digests_are_followed() {
    let archive = Archive::with(&[(0, "a.png", PICTURE), (1, "b.png", PICTURE)]);
    let block = |id: usize, note: &str| {
        format!(
            "------------------------------\n\nMessage: {id}\nDate: Tue, 14 May 2024 12:00:01 +0200\nMessage-ID: <{id}.team at mail.example.org>\n\nHello.\n{SEPARATOR}{note}\n"
        )
    };
    let [one, two] = [(0, "a.png"), (1, "b.png")]
        .map(|(number, name)| file_note(number, name, "image/png", PICTURE.len(), name));
    let body = format!(
        "Topics\n\n{}{}{}------------------------------\n\nEnd of team Digest\n{two}",
        block(1, &one),
        block(2, &two),
        block(2, &one)
    );
    let digest = mail(4, &body);
    archive.leaves(&digest, &[]);
    let options = archive
        .options()
        .replace("mailman ", "mailman,mailman-digests ");
    let ran = filter(&options, &digest);
    assert_eq!(ran.column("outcome"), ["expanded"; 2], "{}", ran.stderr);
    filter(&options, &ran.stdout).gives(&ran.stdout);
    let text = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(text.matches("Content-Type: image/png").count(), 2, "{text}");
    // The third block quotes the note of the first mail. Text after all blocks belongs to no mail.
    assert_eq!(text.matches("A non-text attachment").count(), 2, "{text}");
}

#[test]
fn folders_of_attachments_give_the_longest_end_of_a_path_and_nothing_from_elsewhere() {
    let note = mail(0, &text_note(0, "a.pl"));
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let run = |folders: &[&str]| {
        let folders: String = folders
            .iter()
            .map(|name| format!(" --attachments {}", folder.path().join(name).display()))
            .collect();
        let ran = filter(&format!("--follow mailman{folders}"), &note);
        let text = String::from_utf8(ran.stdout.clone()).unwrap();
        match ran.column("reason")[0].as_str() {
            "-" => text.rsplit("\n\n").next().unwrap().to_owned(),
            reason => format!("{reason}: {}", ran.column("detail")[0]),
        }
    };
    for empty in ["one", "two", "both", "alone", "links"] {
        fs::create_dir_all(folder.path().join(empty)).unwrap();
    }
    // Names of attachments are often the same, so a name alone is not sufficient.
    write("alone/a.pl", "of somebody\n");
    assert!(
        run(&["alone"]).starts_with("scheme-not-allowed: "),
        "{}",
        run(&["alone"])
    );
    write("one/5a579ce7/a.pl", "short\n");
    assert_eq!(run(&["alone", "one"]), "short\n");
    write("two/attachments/20240514/5a579ce7/a.pl", "long\n");
    assert_eq!(run(&["one", "two"]), "long\n");
    assert_eq!(run(&["two", "two"]), "long\n");
    write("both/5a579ce7/a.pl", "other\n");
    let said = run(&["one", "both"]);
    assert!(
        said.starts_with("ambiguous-file: ")
            && said.contains("one/5a579ce7")
            && said.contains("both/5a579ce7"),
        "{said}"
    );
    // A symbolic link cannot lead out of the directory, and a directory is not a file.
    write("elsewhere/a.pl", "secret\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        folder.path().join("elsewhere"),
        folder.path().join("links/5a579ce7"),
    )
    .unwrap();
    fs::create_dir_all(folder.path().join("links/20240514/5a579ce7/a.pl")).unwrap();
    assert!(run(&["links"]).starts_with("scheme-not-allowed: "));
    let missing = format!("--attachments {}", folder.path().join("missing").display());
    assert_eq!(filter(&missing, &note).code, Some(75));
}

#[test]
fn files_detached_by_thunderbird_are_found_in_the_attachments_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a b.txt"), "detached\n").unwrap();
    let mail = |url: &str| {
        format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\nX-Mozilla-External-Attachment-URL: {url}\nX-Mozilla-Altered: AttachmentDetached; date=\"Thu Jan 01 00:00:00 1970\"\n\nYou deleted an attachment from this message. The original MIME headers for the attachment were:\nContent-Type: text/plain; name=\"a b.txt\"\n\n--b--\n"
        )
    };
    let options = format!("--attachments {}", folder.path().display());
    for url in [
        "file:///C:/Users/me/a%20b.txt",
        "file:///home/me/../me/a%20b.txt",
    ] {
        let ran = filter(&options, mail(url).as_bytes());
        assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
        filter(&options, &ran.stdout).gives(&ran.stdout);
    }
    for url in [
        "file:///C:/Users/me/a.txt",
        "file:///C:/..%2fa%20b.txt",
        "file:///x/%2e%2e",
    ] {
        filter(&options, mail(url).as_bytes())
            .leaves(mail(url).as_bytes(), &["scheme-not-allowed"]);
    }
}

#[test]
fn names_of_a_stranger_lead_nowhere() {
    let archive = Archive::with(&[(0, "a.bin", b"abc")]);
    for (name, filename) in [
        ("../../etc/passwd", "filename=\"passwd\""),
        ("C:\\Windows\\a.exe", "filename=\"a.exe\""),
        (
            "a\"; filename=\"b.exe",
            "filename=\"a\\\"; filename=\\\"b.exe\"",
        ),
        ("..", ""),
    ] {
        let filled = archive.filled(&mail(0, &file_note(0, name, "application/x", 3, "a.bin")));
        assert_eq!(
            filled.matches("filename").count(),
            filename.matches("filename").count(),
            "{filled}"
        );
        assert!(filled.contains(filename), "{filled}");
    }
    // The type in a note cannot add parts or references, either.
    for essence in ["multipart/mixed", "message/external-body", "message/rfc822"] {
        let filled = archive.filled(&mail(0, &file_note(0, "a", essence, 3, "a.bin")));
        assert!(
            filled.contains("\nContent-Type: application/octet-stream\n"),
            "{filled}"
        );
    }
}

/// A sender knows the Message-ID of the mail, and can therefore compute its hash.
#[test]
fn what_comes_in_is_not_looked_at_for_more() {
    let inner = text_note(0, "b.pl");
    let archive = Archive::with(&[(0, "a.pl", inner.as_bytes()), (0, "b.pl", b"deep\n")]);
    for body in [
        text_note(0, "a.pl"),
        format!("Text.\n{SEPARATOR}{}", text_note(0, "a.pl")),
    ] {
        let filled = archive.filled(&mail(0, &body));
        assert!(
            !filled.contains("ZGVlcAo") && !filled.contains("deep"),
            "{filled}"
        );
    }
    // A note in an enclosed message is not followed, either. Other references in it are followed, but cannot form a cycle.
    let external = format!(
        "From nobody\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\n{inner}--c\nContent-Type: message/external-body; access-type=URL; URL=\"data:,one\"\n\nContent-Type: text/plain\n\n--c--\n"
    );
    let stored = external
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;");
    let archive = Archive::with(&[(0, "a.mht", stored.as_bytes()), (0, "b.pl", b"deep\n")]);
    let embedded = format!(
        "An embedded message was scrubbed...\nFrom: x\nSubject: y\nDate: z\nSize: {}\nURL: <{}>\n",
        external.len(),
        url(0, "a.mht")
    );
    let filled = archive.filled(&mail(0, &format!("Text.\n{SEPARATOR}{embedded}")));
    assert!(
        filled.contains("\none\n--c--") && !filled.contains("deep"),
        "{filled}"
    );
}

/// Content of another reference becomes text of this mail, so a second run would find the note in it.
#[test]
fn notes_that_another_reference_brings_are_filled_in_the_same_run() {
    let archive = Archive::with(&[(0, "a.pl", b"deep\n")]);
    let note = text_note(0, "a.pl")
        .replace('\n', "%0A")
        .replace(' ', "%20");
    let brings = |content: &str| {
        let mail = String::from_utf8(mail(0, "Content-Type: text/plain\n\n")).unwrap();
        mail.replacen("\n\n", &format!("\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"data:{content}\"\n\n"), 1)
    };
    let filled = archive.filled(brings(&format!("text/plain,{note}")).as_bytes());
    assert!(filled.ends_with("\n\ndeep\n"), "{filled}");
    // A note in an enclosed message that another reference brings is not followed.
    let message = format!("Message-ID:%20%3C1.team@mail.example.org%3E%0A%0A{note}");
    let mail = brings(&format!("message/rfc822,{message}")).replace(
        "\n\nContent-Type: text/plain",
        "\n\nContent-Type: message/rfc822",
    );
    let filled = archive.filled(mail.as_bytes());
    assert!(!filled.contains("deep"), "{filled}");
}

#[test]
fn a_text_of_more_pieces_than_parts_are_looked_at_is_left() {
    let archive = Archive::with(&[(0, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let body = format!("{}{note}", format!("x\n{SEPARATOR}").repeat(50));
    let mail = mail(0, &body);
    let options = |parts: usize| format!("{} --max-parts {parts}", archive.options());
    filter(&options(40), &mail).leaves(&mail, &["too-many-parts"]);
    let ran = filter(&options(60), &mail);
    assert_eq!(ran.column("outcome"), ["expanded"], "{}", ran.stderr);
    // The boundaries that are added to a text count as growth, too.
    let small = format!("{} --max-growth 500", archive.options());
    filter(&small, &mail).leaves(&mail, &["growth-limit"]);
}

#[test]
fn predicted_boundary_is_not_used_for_the_new_multipart() {
    let archive = Archive::with(&[(0, "a.png", PICTURE)]);
    let note = file_note(0, "a.png", "image/png", PICTURE.len(), "a.png");
    let filled = archive.filled(&mail(0, &format!("Text.\n{SEPARATOR}{note}")));
    let boundary = filled
        .split("boundary=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    // The boundary contains a hash of the whole text, so no text can contain its own. A line that only begins like the boundary
    // has no effect.
    let filled = archive.filled(&mail(0, &format!("--{boundary}\nText.\n{SEPARATOR}{note}")));
    assert_eq!(parts(&filled).len(), 2, "{filled}");
}

#[test]
fn inspect_counts_notes_whether_they_are_followed_or_not() {
    let mail = mail(0, &format!("Text.\n{SEPARATOR}{}", text_note(0, "a.pl")));
    let inspect = |options: &[&str]| {
        let mut program = embody();
        let output = fed(program.arg("inspect").args(options), &mail);
        String::from_utf8(output.stdout).unwrap()
    };
    let text = inspect(&[]);
    assert!(
        text.contains("mailman") && text.contains("unchanged: not-followed"),
        "{text}"
    );
    assert!(text.contains("--follow mailman"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let mbox = folder.path().join("a.mbox");
    let envelope = b"From ann at example.org  Tue May 14 10:00:01 2024\n";
    fs::write(&mbox, [envelope.as_slice(), &mail].concat()).unwrap();
    let text = inspect(&["--verbose", mbox.to_str().unwrap()]);
    assert!(
        text.contains("1  unchanged: not-followed (--follow mailman)\n"),
        "{text}"
    );
    let text = inspect(&["--follow", "mailman", "--fetch", "http"]);
    assert!(
        text.contains("would-fetch") || text.contains("would retrieve"),
        "{text}"
    );
}
