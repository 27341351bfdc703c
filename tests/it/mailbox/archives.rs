//! Archives as sources: zip, and tar with every compression (docs/mailbox-internals.md, "Archives").

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::common::archives::{tar, zip};
use crate::common::programs::{embody, embody_in, fed, program, skipped, stderr};

/// A separator as Takeout writes it, with the time zone before the year.
const FROM: &str = "From 1786543210987654321@xxx Mon Jan 02 15:04:05 +0000 2023\r\n";

fn message(subject: &str) -> String {
    format!(
        "{FROM}X-GM-THRID: 1786\r\nFrom: a@example.org\r\nSubject: {subject}\r\n\r\n>From here\r\n"
    )
}

fn mbox(subjects: &[&str]) -> String {
    let messages: Vec<String> = subjects.iter().map(|subject| message(subject)).collect();
    messages.join("\r\n")
}

/// Returns the members of an archive: names and texts. The names must not be used as paths.
fn members() -> Vec<(&'static str, String)> {
    vec![
        (
            "Takeout/archive_browser.html",
            "<!DOCTYPE html>\n<p>x\n".to_owned(),
        ),
        ("Takeout/Mail/All mail.mbox", mbox(&["1", "2"]) + "\r\n"),
        ("../../evil.mbox", mbox(&["3"])),
        ("/tmp/embody-evil.mbox", mbox(&["4", "5"])),
        (
            "Takeout/Mail/User Settings/Filters.json",
            "{\"a\": 1}\n".to_owned(),
        ),
    ]
}

/// Returns all mboxes of the archive in one text, each after an empty line.
fn joined() -> String {
    mbox(&["1", "2"]) + "\r\n" + &mbox(&["3"]) + "\n" + &mbox(&["4", "5"])
}

const MAKE: &str = "\
import io, sys, tarfile, zipfile
folder, form = sys.argv[1], sys.argv[2]
names = open(folder + '/names').read().split('\\n')
texts = [open('%s/%d' % (folder, at), 'rb').read() for at in range(len(names))]
kind, _, how = form.partition(':')
if kind == 'zip':
    method = zipfile.ZIP_STORED if how == 'stored' else zipfile.ZIP_BZIP2 if how == 'bzip2' else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(folder + '/archive', 'w', method) as archive:
        for name, text in zip(names, texts):
            with archive.open(name, 'w', force_zip64=how == 'zip64') as member:
                member.write(text)
else:
    forms = dict(gnu=tarfile.GNU_FORMAT, pax=tarfile.PAX_FORMAT, ustar=tarfile.USTAR_FORMAT)
    with tarfile.open(folder + '/archive', 'w:' + kind[4:], format=forms[how]) as archive:
        archive.addfile(tarfile.TarInfo('Takeout')) if how == 'gnu' else None
        for name, text in zip(names, texts):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            if how == 'pax':
                member.pax_headers = dict(comment='x' * 3000)
            archive.addfile(member, io.BytesIO(text))
";

/// Creates an archive of a format with Python. Returns its directory, or `None` without Python.
fn archive(form: &str, members: &[(&str, String)]) -> Option<TempDir> {
    program("python3")?;
    let folder = TempDir::new().unwrap();
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let made = folder.path().join("make");
    fs::create_dir(&made).unwrap();
    fs::write(made.join("names"), names.join("\n")).unwrap();
    for (at, (_, text)) in members.iter().enumerate() {
        fs::write(made.join(at.to_string()), text).unwrap();
    }
    let status = Command::new("python3")
        .args(["-c", MAKE])
        .arg(&made)
        .arg(form)
        .status();
    assert!(status.unwrap().success(), "{form}");
    fs::rename(made.join("archive"), folder.path().join("archive")).unwrap();
    fs::remove_dir_all(made).unwrap();
    Some(folder)
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const FORMS: [&str; 9] = [
    "zip:deflated",
    "zip:stored",
    "zip:zip64",
    "tar:gnu",
    "tar:ustar",
    "tar:gz:gnu",
    "tar:gz:pax",
    "tar:xz:pax",
    "tar:bz2:gnu",
];

/// Returns the modes for Python, such as `tar:gz` for `tar:gz:pax`.
fn form(name: &str) -> String {
    match name.strip_prefix("tar:") {
        Some(rest) => match rest.split_once(':') {
            Some((method, how)) => format!("tar:{method}").replace(':', "_") + ":" + how,
            None => format!("tar_:{rest}"),
        },
        None => name.to_owned(),
    }
}

#[test]
fn the_mboxes_of_every_archive_come_out_as_one_and_no_name_becomes_a_path() {
    for name in FORMS {
        let Some(folder) = archive(&form(name), &members()) else {
            return skipped("archives", "python3");
        };
        let path = folder.path();
        let done = embody_in(
            path,
            &["convert", "--verbose", "archive", "--output", "out"],
        );
        let said = stderr(&done);
        assert!(done.status.success(), "{name}: {said}");
        assert_eq!(
            fs::read_to_string(path.join("out")).unwrap(),
            joined(),
            "{name}"
        );
        assert!(
            said.contains("Filters.json: skipped: text"),
            "{name}: {said}"
        );
        assert!(said.contains("2 "), "{said}");
        let shown = embody_in(path, &["inspect", "archive"]);
        assert!(
            text(&shown).starts_with("1 mailbox, 5 messages"),
            "{name}: {}",
            text(&shown)
        );
        let printed = embody_in(path, &["convert", "archive", "--output", "-"]);
        assert_eq!(text(&printed), joined(), "{name}");
        let names: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{name}: {names:?}");
        assert!(
            !path.join("../../evil.mbox").exists() && !Path::new("/tmp/embody-evil.mbox").exists()
        );
    }
}

#[test]
fn python_counts_as_many_messages_in_what_was_written() {
    let Some(folder) = archive("zip:deflated", &members()) else {
        return skipped("archives", "python3");
    };
    assert!(
        embody_in(folder.path(), &["convert", "archive", "--output", "out"])
            .status
            .success()
    );
    let code = "import mailbox, sys\nfor m in mailbox.mbox(sys.argv[1]): print(m['Subject'])";
    let seen = Command::new("python3")
        .args(["-c", code])
        .arg(folder.path().join("out"))
        .output()
        .unwrap();
    assert_eq!(text(&seen), "1\n2\n3\n4\n5\n");
}

#[test]
fn archive_in_a_directory_is_not_changed_in_place_and_named() {
    for name in ["zip:deflated", "tar:gz:gnu", "tar:gnu"] {
        let Some(folder) = archive(&form(name), &members()) else {
            return skipped("archives", "python3");
        };
        let path = folder.path();
        let before = fs::read(path.join("archive")).unwrap();
        // The error is detected before any source is converted.
        fs::write(path.join("first"), message("1")).unwrap();
        let refused = embody_in(
            path,
            &[
                "convert",
                "--in-place",
                "--backup",
                ".old",
                "first",
                "archive",
            ],
        );
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(!path.join("first.old").exists());
        fs::remove_file(path.join("first")).unwrap();
        assert!(
            stderr(&refused)
                .contains("cannot change an archive in place; name a new mailbox with --output"),
            "{}",
            stderr(&refused)
        );
        let refused = embody_in(path, &["convert", "--in-place", "--dry-run", "archive"]);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        let dry = embody_in(path, &["convert", "--dry-run", "archive", "--output", "x"]);
        assert!(
            dry.status.success() && stderr(&dry).contains("5 messages"),
            "{}",
            stderr(&dry)
        );
        fs::write(path.join("mbox"), message("1")).unwrap();
        let folder = embody_in(path, &["convert", "--verbose", "--in-place", "."]);
        assert_eq!(folder.status.code(), Some(1), "{}", stderr(&folder));
        assert!(
            stderr(&folder)
                .contains("archive: an archive; embody cannot change an archive in place"),
            "{}",
            stderr(&folder)
        );
        assert!(fs::read(path.join("archive")).unwrap() == before);
        for format in ["eml", "mmdf", "maildir", "mh"] {
            let refused = embody_in(
                path,
                &["convert", "--format", format, "archive", "--output", "out"],
            );
            assert_eq!(refused.status.code(), Some(1), "{name} as {format}");
        }
    }
}

#[test]
fn a_tar_archive_comes_in_a_stream_and_a_zip_archive_does_not() {
    for (name, can) in [
        ("tar:gz:gnu", true),
        ("tar:pax", true),
        ("zip:stored", false),
    ] {
        let Some(folder) = archive(&form(name), &members()) else {
            return skipped("archives", "python3");
        };
        let bytes = fs::read(folder.path().join("archive")).unwrap();
        let done = fed(embody().args(["convert", "-", "--output", "-"]), &bytes);
        assert_eq!(done.status.success(), can, "{name}: {}", stderr(&done));
        if can {
            assert_eq!(text(&done), joined())
        } else {
            assert!(
            stderr(&done).contains("cannot be read from a pipe, because the table of contents is at the end of the file; name the file"),
            "{}",
            stderr(&done)
        )
        }
    }
}

#[test]
fn mail_that_is_not_read_is_named_and_the_rest_comes_out() {
    let mut with = members();
    with.push(("a/one", "\x01\x01\x01\x01\nSubject: x\n\nx\n".to_owned()));
    with.push(("a/two", "BABYL OPTIONS: x\n".to_owned()));
    with.push(("c.mbox.bz2", "BZh91AY&SY".to_owned()));
    for name in FORMS {
        let Some(folder) = archive(&form(name), &with) else {
            return skipped("archives", "python3");
        };
        let done = embody_in(folder.path(), &["convert", "archive", "--output", "out"]);
        assert_eq!(done.status.code(), Some(1), "{name}");
        let said = stderr(&done);
        assert!(
            said.contains("3 files in the archive were not read: a/one (an MMDF mailbox), a/two (a Babyl mailbox; embody does not read this format; ")
                && said.contains("), c.mbox.bz2 (the end of the bzip2 data is missing"),
            "{name}: {said}"
        );
        assert_eq!(
            fs::read_to_string(folder.path().join("out")).unwrap(),
            joined()
        );
    }
    let none = [("a.txt", "text\n".to_owned())];
    for name in FORMS {
        let Some(folder) = archive(&form(name), &none) else {
            return;
        };
        let done = embody_in(folder.path(), &["convert", "archive", "--output", "out"]);
        assert_eq!(done.status.code(), Some(1), "{name}");
        assert!(
            stderr(&done).contains("the archive contains no mbox"),
            "{}",
            stderr(&done)
        );
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn what_is_encrypted_or_packed_otherwise_is_refused() {
    let with = [("one.mbox", mbox(&["1"])), ("two.mbox", mbox(&["2"]))];
    let Some(folder) = archive("zip:stored", &with) else {
        return skipped("archives", "python3");
    };
    let path = folder.path().join("archive");
    let plain = fs::read(&path).unwrap();
    // Sets the flag for encryption in both headers of the first member.
    let mut encrypted = plain.clone();
    encrypted[6] |= 1;
    let entry = plain
        .windows(4)
        .position(|four| four == b"PK\x01\x02")
        .unwrap();
    encrypted[entry + 8] |= 1;
    fs::write(&path, &encrypted).unwrap();
    let done = embody_in(folder.path(), &["convert", "archive", "--output", "out"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        stderr(&done).contains("a file in the archive was not read: one.mbox (encrypted)"),
        "{}",
        stderr(&done)
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("out")).unwrap(),
        mbox(&["2"])
    );
    let Some(folder) = archive("zip:bzip2", &with) else {
        return;
    };
    let done = embody_in(folder.path(), &["convert", "archive", "--output", "out"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        stderr(&done).contains("compressed with a method that embody cannot read"),
        "{}",
        stderr(&done)
    );
    assert!(!folder.path().join("out").exists());
}

#[test]
fn an_archive_that_is_cut_off_anywhere_gives_whole_messages_and_says_so() {
    for name in FORMS {
        let Some(folder) = archive(&form(name), &members()) else {
            return skipped("archives", "python3");
        };
        let path = folder.path().join("archive");
        let whole = fs::read(&path).unwrap();
        let step = (whole.len() / 23).max(1);
        for length in (20..whole.len() - 1).step_by(step) {
            fs::write(&path, &whole[..length]).unwrap();
            let out = folder.path().join("out");
            let done = embody_in(folder.path(), &["convert", "archive", "--output", "out"]);
            let read = fs::read_to_string(&out).unwrap_or_default();
            let said = stderr(&done);
            // Zeros after the last member do not belong to the content of a tar archive.
            let is_whole = read == joined() && name.starts_with("tar");
            assert!(
                done.status.code() == Some(1) || is_whole,
                "{name}, {length}: {said}"
            );
            assert!(joined().starts_with(&read), "{name}, {length}: {read}");
            let rest = &joined()[read.len()..];
            assert!(
                read.is_empty()
                    || rest.trim_start().is_empty()
                    || rest.trim_start().starts_with("From "),
                "{name}, {length}: {read}"
            );
            if out.exists() {
                fs::remove_file(out).unwrap();
            }
        }
    }
}

#[test]
fn bombs_are_cut_off() {
    let long = format!("{}{}\n", message("1"), "x".repeat(300_000));
    for name in ["zip:deflated", "tar:gz:gnu"] {
        let Some(folder) = archive(
            &form(name),
            &[("a.mbox", long.clone() + "\n" + &message("2"))],
        ) else {
            return skipped("archives", "python3");
        };
        let arguments = [
            "convert",
            "archive",
            "--output",
            "out",
            "--max-expanded",
            "200K",
        ];
        let done = embody_in(folder.path(), &arguments);
        assert_eq!(done.status.code(), Some(1), "{name}");
        assert!(
            stderr(&done).contains("--max-expanded"),
            "{}",
            stderr(&done)
        );
    }
    // Two entries of the directory that lead to the same member.
    let Some(folder) = archive(
        "zip:stored",
        &[("a.mbox", mbox(&["1"])), ("b.mbox", mbox(&["2"]))],
    ) else {
        return;
    };
    let path = folder.path().join("archive");
    let mut bytes = fs::read(&path).unwrap();
    let entries: Vec<usize> = (0..bytes.len() - 4)
        .filter(|&at| bytes[at..].starts_with(b"PK\x01\x02"))
        .collect();
    let (first, second) = (entries[0] + 42, entries[1] + 42);
    bytes.copy_within(first..first + 4, second);
    fs::write(&path, bytes).unwrap();
    let done = embody_in(folder.path(), &["convert", "archive", "--output", "out"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        stderr(&done).contains("files in the archive overlap"),
        "{}",
        stderr(&done)
    );
}

#[test]
fn detach_moves_what_is_in_an_archive_and_gc_sees_what_refers_to_the_store() {
    let attachment =
        "JVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBERi0xLjQKJVBE\n".repeat(40);
    let mail = format!(
        "From a@b Mon Jan 02 15:04:05 +0000 2023\nFrom: a@example.org\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\n\
         Content-Type: application/pdf; name=x.pdf\nContent-Disposition: attachment; filename=x.pdf\n\
         Content-Transfer-Encoding: base64\n\n{attachment}--b--\n"
    );
    for name in ["zip:deflated", "tar:gz:gnu", "tar:gnu"] {
        let Some(folder) = archive(&form(name), &[("a.mbox", mail.clone())]) else {
            return skipped("archives", "python3");
        };
        let path = folder.path();
        let store = ["--store", "store"];
        let detach = [
            "detach",
            "--larger-than",
            "1K",
            "archive",
            "--output",
            "small",
        ];
        let done = embody_in(path, &[detach.as_slice(), &store].concat());
        assert!(done.status.success(), "{name}: {}", stderr(&done));
        let small = fs::read_to_string(path.join("small")).unwrap();
        assert!(small.len() < mail.len() / 2 && small.contains("X-Embody-Detached"));
        let done = embody_in(
            path,
            &[["restore", "small", "--output", "back"].as_slice(), &store].concat(),
        );
        assert!(done.status.success(), "{}", stderr(&done));
        assert_eq!(fs::read_to_string(path.join("back")).unwrap(), mail);
        let unused = |sources: &str| {
            let done = embody_in(path, &["store", "gc", "store", sources]);
            (stderr(&done), done.status.success())
        };
        let with = [("b/small", small), ("x.eml", "Subject: x\n\n".to_owned())];
        let nested = [("a.mbox", mail.clone()), ("b.bz2", "BZh91AY&SY".to_owned())];
        for (members, count, is_whole) in [(&with, 0, true), (&nested, 1, false)] {
            let Some(packed) = archive(&form(name), members) else {
                return;
            };
            fs::copy(packed.path().join("archive"), path.join("packed")).unwrap();
            let (said, done) = unused("packed");
            assert_eq!(done, is_whole, "{name}: {said}");
            assert!(
                said.contains(&format!("unused but younger than a day: {count}")),
                "{name}: {said}"
            );
            // A compressed file inside an archive is not searched, so it is reported.
            assert_eq!(
                said.contains("b.bz2 (compressed within the archive)"),
                !is_whole,
                "{said}"
            );
        }
    }
}

#[test]
fn progress_says_how_much_of_an_archive_or_a_compressed_file_was_read() {
    let mut octets = Vec::new();
    let mut numbers = crate::common::mailboxes::Numbers(9);
    for number in 0..300 {
        octets.extend_from_slice(
            b"From a@b Sat Jan  3 01:05:34 1996\nSubject: x\nContent-Type: text/html\n\n",
        );
        octets.extend_from_slice(format!("<img src=\"data:image/gif;base64,R0lGODlhAgABAIAAAAAAAP///ywAAAAAAgABAAACAkQBADs=\">{number}\n").as_bytes());
        for _ in 0..2000 {
            octets.extend_from_slice(format!("{:x}\n", numbers.below(u64::MAX >> 33)).as_bytes());
        }
        octets.push(b'\n');
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("box"), &octets).unwrap();
    let script = "import zipfile, tarfile, gzip, shutil\n\
        z = zipfile.ZipFile('a.zip', 'w', zipfile.ZIP_DEFLATED)\n\
        z.write('box', 'Takeout/Mail/a.mbox'); z.close()\n\
        t = tarfile.open('a.tar', 'w'); t.add('box', 'a.mbox'); t.close()\n\
        g = gzip.open('a.gz', 'wb', 6); g.write(open('box', 'rb').read()); g.close()\n";
    let made = std::process::Command::new("python3")
        .args(["-c", script])
        .current_dir(path)
        .status();
    if !made.is_ok_and(|made| made.success()) {
        return skipped("archives", "python3");
    }
    for source in ["box", "a.zip", "a.tar", "a.gz"] {
        let length = fs::metadata(path.join(source)).unwrap().len();
        let ran = embody_in(
            path,
            &[
                "embed",
                "--progress",
                "always",
                "--embed",
                "data",
                source,
                "--output",
                "out",
            ],
        );
        let said = stderr(&ran);
        assert!(ran.status.success(), "{source}: {said}");
        let unit = match length {
            0x40_0000.. => format!("{:.1} MiB, ", length as f64 / f64::from(1 << 20)),
            _ => format!("{:.1} KiB, ", length as f64 / f64::from(1 << 10)),
        };
        let first = said.lines().next().unwrap();
        assert!(first.contains(&format!(" of {unit}")), "{source}: {said}");
        let words = [" %, ", " messages, ", " pictures"];
        assert!(
            words.iter().all(|word| first.contains(word)),
            "{source}: {said}"
        );
        assert!(!first.contains("expanded"), "{source}: {said}");
        fs::remove_file(path.join("out")).unwrap();
    }
}

/// A message with lines that an mbox must quote, and its content in an mbox that is quoted as mboxrd.
const WITH_FROM_LINES: &str = "Subject: plan\nFrom: a@example.org\n\nFrom here on\n>From there\n>>From a@b Thu Jan  1 00:00:00 1970\n";

#[test]
fn single_messages_in_an_archive_are_read_byte_for_byte_with_their_flags() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let plain = WITH_FROM_LINES.as_bytes();
    let emlx = [format!("{}\n", plain.len()).as_bytes(), plain].concat();
    let first = message("1");
    let members: [(&str, &[u8]); 6] = [
        ("box.mbox", first.as_bytes()),
        ("a.eml", plain),
        ("Maildir/cur/1578304800.M1P1.host:2,FS", plain),
        ("Maildir/dovecot-uidlist", b"3 V1 N3\n"),
        ("Work.mbox/Messages/1.emlx", &emlx),
        ("MH/12", plain),
    ];
    fs::write(at.join("a.zip"), zip(&members)).unwrap();
    let done = embody_in(
        at,
        &[
            "convert",
            "a.zip",
            "--output-format",
            "maildir",
            "--output",
            "md",
        ],
    );
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let mut copies = 0;
    let mut flagged = 0;
    for part in ["cur", "new"] {
        for entry in fs::read_dir(at.join("md").join(part)).unwrap() {
            let path = entry.unwrap().path();
            let content = fs::read(&path).unwrap();
            let is_flagged = path.to_string_lossy().contains(":2,FS");
            flagged += u32::from(is_flagged);
            copies += u32::from(content == plain);
        }
    }
    // The flags of the message in the Maildir are also in its Status fields.
    assert_eq!((copies, flagged), (3, 1));
    let compared = embody_in(at, &["compare", "a.zip", "md"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared));
    let inspected = embody_in(at, &["inspect", "--json", "a.zip"]);
    let counts = r#""files":{"read":6,"parts":1,"not_mail":0,"not_read":0,"ignored":0}"#;
    assert!(text(&inspected).contains(counts), "{}", text(&inspected));
}

/// A zip file with a member of a document can still contain mail, for example a Takeout to which a file was added.
#[test]
fn zip_with_a_member_of_a_document_and_a_mailbox_is_read_as_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("in")).unwrap();
    for (index, document) in ["[Content_Types].xml", "mimetype", "META-INF/MANIFEST.MF"]
        .iter()
        .enumerate()
    {
        for (number, mail) in ["Takeout/Mail/All mail.MBOX", "a/one.eml"]
            .iter()
            .enumerate()
        {
            let content = message(&format!("{index}{number}"));
            let packed = zip(&[(*document, b"x".as_slice()), (mail, content.as_bytes())]);
            fs::write(at.join(format!("in/{index}{number}.zip")), &packed).unwrap();
            let outer = zip(&[("inner.zip", packed.as_slice())]);
            fs::write(at.join(format!("in/{index}{number}-outer.zip")), outer).unwrap();
        }
    }
    let inspected = embody_in(at, &["inspect", "--json", "in"]);
    let said = text(&inspected);
    assert_eq!(inspected.status.code(), Some(0), "{said}");
    assert!(said.contains(r#""messages":12"#), "{said}");
    assert!(said.contains(r#""not_read":0"#), "{said}");
}

#[test]
fn archives_and_compressed_files_in_an_archive_are_read_down_to_the_third_level() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let gzip = |content: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, content).unwrap();
        encoder.finish().unwrap()
    };
    let [one, two, three, four, five] = ["1", "2", "3", "4", "5"].map(message);
    let fourth = zip(&[("five.mbox", five.as_bytes())]);
    let third = zip(&[("three.mbox", three.as_bytes()), ("fourth.zip", &fourth)]);
    let second = gzip(&tar(&[
        ("two.mbox", b'0', two.as_bytes()),
        ("third.zip", b'0', &third),
    ]));
    let packed = gzip(four.as_bytes());
    let document = zip(&[
        ("[Content_Types].xml", b"<Types/>".as_slice()),
        (
            "word/document.xml",
            b"From a@b Thu Jan  1 00:00:00 1970\nSubject: x\n\n",
        ),
    ]);
    let members: [(&str, &[u8]); 4] = [
        ("one.mbox", one.as_bytes()),
        ("second.tgz", &second),
        ("four.mbox.gz", &packed),
        ("letter.bin", &document),
    ];
    fs::write(at.join("first.zip"), zip(&members)).unwrap();
    let done = embody_in(at, &["convert", "first.zip", "--output", "out.mbox"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let named = "second.tgz/third.zip/fourth.zip (an archive in too many other archives";
    assert!(said.contains(named), "{said}");
    let out = fs::read_to_string(at.join("out.mbox")).unwrap();
    assert_eq!(out, [one, two.clone(), three, four].join("\n"));

    // The damage of an archive inside the archive costs only the members after the damage.
    let cut = gzip(&tar(&[("two.mbox", b'0', &two.as_bytes().repeat(3000))]));
    let members: [(&str, &[u8]); 2] = [
        ("cut.tgz", &cut[..cut.len() / 2]),
        ("last.mbox", five.as_bytes()),
    ];
    fs::write(at.join("cut.zip"), zip(&members)).unwrap();
    let done = embody_in(at, &["convert", "cut.zip", "--output", "cut.mbox"]);
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("cut.tgz"), "{said}");
    let out = fs::read_to_string(at.join("cut.mbox")).unwrap();
    assert!(out.ends_with(&five) && out.starts_with(&two), "{said}");
    let rest = out.replace(&two, "").replace(&five, "");
    assert_eq!(rest.trim(), "", "only complete messages");
}
