//! mboxes with CR line endings, as Entourage and old programs of the Mac wrote them, and mailboxes in which only some messages
//! have them. docs/mailboxes.md, "Supported formats".

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::common::programs::{done, embody, embody_in, fed, has_python};

const FIRST: &str = "From anna@example.org Mon Mar 12 10:00:00 2007\r";
const ONE: &str = "From: anna@example.org\rTo: ben@example.org\rSubject: one\rDate: Mon, 12 Mar 2007 10:00:00 +0000\rMIME-Version: 1.0\rContent-Type: text/plain\r\rHello\r";
const SECOND: &str = "From anna@example.org Tue Mar 13 10:00:00 2007\r";
const TWO: &str = "From: anna@example.org\rSubject: two\rDate: Tue, 13 Mar 2007 10:00:00 +0000\r\r>From here on\rSecond\r";
const LF: &str =
    "From - Mon Mar 12 10:00:00 2007\nFrom: anna@example.org\nSubject: lf\n\nHello\n\n";

fn entourage() -> String {
    [FIRST, ONE, "\r", SECOND, TWO, "\r"].concat()
}

/// Returns mailboxes, and their messages in other formats.
fn mailboxes() -> Vec<(&'static str, String, Vec<String>)> {
    let plain = |text: &str| text.replace('\r', "\n").replace("\n>From", "\nFrom");
    let (one, two) = (plain(ONE), plain(TWO));
    let lf = "From: anna@example.org\nSubject: lf\n\nHello\n".to_owned();
    let crlf_first = entourage().replacen('\r', "\r\n", 1);
    let without_empty_line = [FIRST, ONE, SECOND, TWO].concat();
    let cut_off = [
        FIRST,
        ONE,
        "\r",
        SECOND,
        "From: anna@example.org\rSubject: two",
    ]
    .concat();
    let cut = "From: anna@example.org\nSubject: two".to_owned();
    let both = vec![one.clone(), two.clone()];
    vec![
        ("cr", entourage(), both.clone()),
        ("crlf first", crlf_first, both.clone()),
        ("no empty line", without_empty_line, both.clone()),
        (
            "empty lines first",
            "\r\r".to_owned() + &entourage(),
            both.clone(),
        ),
        ("marked", "\u{feff}".to_owned() + &entourage(), both.clone()),
        ("no end", cut_off, vec![one.clone(), cut]),
        (
            "mixed",
            [LF, &entourage(), LF].concat(),
            vec![lf.clone(), one, two, lf.clone()],
        ),
        (
            "lf in a cr message",
            [FIRST, "A: b\r\rtext\nmore\r\r", LF].concat(),
            vec!["A: b\n\ntext\nmore\n".to_owned(), lf],
        ),
    ]
}

fn files(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    read.collect()
}

const PACK: &str = "\
import gzip, sys, zipfile
folder = sys.argv[1]
octets = open(folder + '/box', 'rb').read()
open(folder + '/box.gz', 'wb').write(gzip.compress(octets))
with zipfile.ZipFile(folder + '/box.zip', 'w') as archive:
    archive.writestr('Takeout/box.mbox', octets)
";

#[test]
fn cr_mailboxes_in_any_packing_become_the_same_messages() {
    if !has_python("cr_mailboxes", "zipfile", "python3") {
        return;
    }
    for (name, text, expected) in mailboxes() {
        let folder = TempDir::new().unwrap();
        let run = |arguments: &[&str]| done(&embody_in(folder.path(), arguments), 0);
        fs::write(folder.path().join("box"), &text).unwrap();
        let packed = Command::new("python3")
            .args(["-c", PACK])
            .arg(folder.path())
            .status();
        assert!(packed.unwrap().success());
        // A member of an archive with this mark is skipped, because it would continue another mailbox.
        let sources: &[&str] = match name {
            "marked" => &["box", "box.gz"],
            _ => &["box", "box.gz", "box.zip"],
        };
        for source in sources {
            let out = folder.path().join("eml");
            run(&[
                "convert",
                source,
                "--output-format",
                "eml",
                "--output",
                "eml",
            ]);
            assert_eq!(files(&out), expected, "{name} {source}");
            fs::remove_dir_all(out).unwrap();
            let out = folder.path().join("maildir");
            run(&[
                "convert",
                source,
                "--output-format",
                "maildir",
                "--output",
                "maildir",
            ]);
            let mut found = [files(&out.join("cur")), files(&out.join("new"))].concat();
            let mut wanted = expected.clone();
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{name} {source}");
            fs::remove_dir_all(out).unwrap();
            run(&["convert", source, "--output", "same.mbox"]);
            let same = fs::read(folder.path().join("same.mbox")).unwrap();
            assert!(same.starts_with(text.as_bytes()), "{name} {source}");
            fs::remove_file(folder.path().join("same.mbox")).unwrap();
            let output = embody_in(folder.path(), &["inspect", source]);
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            let count = format!("{} message", expected.len());
            assert!(seen.contains(&count), "{name} {source}: {seen}");
        }
        let mut command = embody();
        command.current_dir(folder.path());
        command.args([
            "convert",
            "-",
            "--output-format",
            "eml",
            "--output",
            "streamed",
        ]);
        done(&fed(&mut command, text.as_bytes()), 0);
        assert_eq!(files(&folder.path().join("streamed")), expected, "{name}");
        let output = fed(
            embody().args(["convert", "-", "--output", "-"]),
            text.as_bytes(),
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{name}");
    }
}

/// Returns a message with an attachment and CR line endings.
fn with_attachment(number: usize) -> String {
    let data = ("QUJD".repeat(19) + "\r").repeat(200 + number);
    format!(
        "From: anna@example.org\rSubject: {number}\rMIME-Version: 1.0\rContent-Type: multipart/mixed; boundary=b\r\r\
         --b\rContent-Type: text/plain\r\rtext {number}\r--b\rContent-Type: application/pdf; name=\"{number}.pdf\"\r\
         Content-Disposition: attachment; filename=\"{number}.pdf\"\rContent-Transfer-Encoding: base64\r\r{data}--b--\r"
    )
}

#[test]
fn detach_and_restore_in_place_see_each_message_and_keep_its_line_endings() {
    for between in ["", LF] {
        let text = [
            FIRST,
            &with_attachment(1),
            "\r",
            between,
            SECOND,
            &with_attachment(2),
            "\r",
        ]
        .concat();
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("box");
        let run = |arguments: &[&str]| done(&embody_in(folder.path(), arguments), 0);
        fs::write(&path, &text).unwrap();
        run(&[
            "detach",
            "--store",
            "store",
            "--larger-than",
            "100",
            "--in-place",
            "box",
        ]);
        let small = fs::read_to_string(&path).unwrap();
        assert!(small.len() < text.len() / 3, "{small}");
        assert_eq!(
            small.matches("Subject: ").count(),
            text.matches("Subject: ").count()
        );
        assert_eq!(
            small.matches('\n').count(),
            between.matches('\n').count(),
            "{small:?}"
        );
        assert!(small.contains("text 1\r--b\r") && small.contains("text 2\r--b\r"));
        run(&["restore", "--store", "store", "--in-place", "box"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn external_body_in_a_cr_message_is_filled_in_with_cr() {
    let reference = "MIME-Version: 1.0\rContent-Type: message/external-body; access-type=URL; URL=\"data:text/plain,From%20x%0Aline\"\r\rContent-Type: text/plain\r\r";
    let text = [FIRST, ONE, "\r", SECOND, "Subject: x\r", reference].concat();
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("box"), &text).unwrap();
    done(
        &embody_in(folder.path(), &["convert", "--in-place", "box"]),
        0,
    );
    let new = fs::read_to_string(folder.path().join("box")).unwrap();
    assert!(
        new.starts_with(&[FIRST, ONE, "\r", SECOND, "Subject: x\r"].concat()),
        "{new:?}"
    );
    assert!(new.contains("\r>From x\rline"), "{new:?}");
    assert!(!new.contains('\n'), "{new:?}");
    done(
        &embody_in(folder.path(), &["convert", "--in-place", "box"]),
        0,
    );
    assert_eq!(fs::read_to_string(folder.path().join("box")).unwrap(), new);
}

/// After a bare CR, a date and a header field are necessary for a separator. Other text belongs to the message.
#[test]
fn bare_cr_in_a_message_with_lf_divides_nothing_without_date_and_field() {
    for line in [
        "From here on\rwe walk",
        "From 12:30 on we meet\rFrom: a@example.org",
        "From a@b Mon Mar 12 10:00:00 2007\rno field",
        "xFrom a@b Mon Mar 12 10:00:00 2007\rA: b",
    ] {
        let text =
            format!("From a@b Mon Mar 12 10:00:00 2007\nSubject: x\n\ntext\r{line}\rmore\n\n");
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("box"), &text).unwrap();
        let arguments = [
            "convert",
            "box",
            "--output-format",
            "eml",
            "--output",
            "eml",
        ];
        done(&embody_in(folder.path(), &arguments), 0);
        let expected = format!("Subject: x\n\ntext\r{line}\rmore\n");
        assert_eq!(files(&folder.path().join("eml")), [expected]);
    }
}

/// A line that could be a separator is quoted in an mbox, also after a bare CR.
#[test]
fn line_that_divides_after_a_cr_survives_the_way_through_an_mbox() {
    let mail =
        "From: a@example.org\nSubject: x\n\ntext\rFrom a@b Mon Mar 12 10:00:00 2007\rA: b\rmore\n";
    let folder = TempDir::new().unwrap();
    let run = |arguments: &[&str]| done(&embody_in(folder.path(), arguments), 0);
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::write(folder.path().join("in/1.eml"), mail).unwrap();
    run(&[
        "convert",
        "in",
        "--output-format",
        "mbox",
        "--output",
        "box",
    ]);
    run(&[
        "convert",
        "box",
        "--output-format",
        "eml",
        "--output",
        "back",
    ]);
    assert_eq!(files(&folder.path().join("back")), [mail]);
}
