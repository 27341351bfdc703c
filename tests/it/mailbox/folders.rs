//! Searches in directories: files that are skipped, and files that are reported (docs/mailbox-internals.md, "What is mail").

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use crate::common::mailboxes::Look;
use crate::common::programs::{done, embody_in, unprivileged};
use crate::common::reports;

/// Returns a message of an mbox with a reference.
fn of_mbox(number: u32) -> String {
    format!(
        "From a@b Mon Jan  1 00:00:00 2024\nSubject: {number}\nMIME-Version: 1.0\n\
         Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
         Content-Type: text/plain\n\n\n"
    )
}

fn zipped(octets: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn no_message_is_left_out_for_an_odd_header() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("mail")).unwrap();
    let odd = [
        (
            "a.eml",
            b"From: a@b\nSubject: x\n>From a@b Mon Jan  1 00:00:00 2024\nTo: c@d\n\nhello\n"
                .to_vec(),
        ),
        (
            "b.eml",
            b"\xef\xbb\xbfFrom: a@b\nSubject: x\n\nhello\n".to_vec(),
        ),
        ("c.EML", b"Fr\xffm a@b\n\nhello\n".to_vec()),
        ("d.eml", b"\n\nhello\n".to_vec()),
        ("f.eml.gz", zipped(b"Fr\xffm a@b\n\nhello\n")),
        (
            "g",
            b"From: a@b\nS\xffbject: x\nTo: c@d\n\nhello\n".to_vec(),
        ),
        ("h", b"\n\nFrom: a@b\nTo: c@d\n\nhello\n".to_vec()),
    ];
    for (name, content) in &odd {
        fs::write(place.join("mail").join(name), content).unwrap();
    }
    fs::write(place.join("mail/notes.txt"), "Dear all,\nSubject: x\n").unwrap();
    let said = done(&embody_in(place, &["convert", "mail", "--output", "to"]), 0);
    assert!(said.contains("7 messages"), "{said}");
    assert!(said.contains("1 file contains no mail"), "{said}");
    done(&embody_in(place, &["convert", "--in-place", "mail"]), 0);
    for (name, content) in &odd {
        assert_eq!(
            &fs::read(place.join("mail").join(name)).unwrap(),
            content,
            "{name}"
        );
        if !name.ends_with("gz") {
            assert_eq!(
                &fs::read(place.join("to").join(name)).unwrap(),
                content,
                "{name}"
            );
        }
        let named = format!("mail/{name}");
        done(
            &embody_in(place, &["convert", &named, "--output", "/dev/null"]),
            0,
        );
    }
}

#[test]
fn a_byte_order_mark_stays_in_front_of_an_mbox() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("mail")).unwrap();
    let messages = [of_mbox(1), of_mbox(2)].join("\n");
    fs::write(place.join("plain"), &messages).unwrap();
    done(&embody_in(place, &["convert", "--in-place", "plain"]), 0);
    let read = |path: &str| fs::read_to_string(place.join(path)).unwrap();
    let expected = format!("\u{feff}{}", read("plain"));
    assert!(!expected.contains("external-body"), "{expected}");
    fs::write(place.join("mail/box"), format!("\u{feff}{messages}")).unwrap();
    let said = done(&embody_in(place, &["convert", "mail", "--output", "to"]), 0);
    assert!(said.contains("2 messages"), "{said}");
    assert_eq!(read("to/box"), expected);
    done(
        &embody_in(place, &["convert", "mail/box", "--output", "alone"]),
        0,
    );
    assert_eq!(read("alone"), expected);
    let ranges = embody_in(place, &["split", "--size", "100", "mail/box"]);
    done(&ranges, 0);
    let mut joined = Vec::new();
    for line in String::from_utf8(ranges.stdout).unwrap().lines() {
        let line = reports::object(line);
        let range = format!("{}-{}", line["from"], line["to"]);
        let arguments = ["convert", "--range", &range, "mail/box", "--output", "-"];
        let piece = embody_in(place, &arguments);
        done(&piece, 0);
        joined.extend(piece.stdout);
    }
    assert_eq!(String::from_utf8(joined).unwrap(), expected);
    done(&embody_in(place, &["convert", "--in-place", "mail"]), 0);
    assert_eq!(read("mail/box"), expected);
}

fn write(path: &Path, content: impl AsRef<[u8]>, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    // Only root can change the owner, and only root needs to: the program runs as another user here.
    let _ = chown(path, Some(65534), Some(65534));
}

fn everybodys(folder: &Path) {
    fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn a_message_that_cannot_be_read_stops_no_folder_of_messages() {
    let test = "a_message_that_cannot_be_read_stops_no_folder_of_messages";
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    everybodys(place);
    let mailbox = of_mbox(1);
    let message = mailbox.split_once('\n').unwrap().1;
    for (folder, part) in [("maildir", "cur"), ("mh", "")] {
        let parts = match part {
            "" => vec![""],
            _ => vec!["", "cur", "new", "tmp"],
        };
        for part in parts {
            fs::create_dir_all(place.join(folder).join(part)).unwrap();
            everybodys(&place.join(folder).join(part));
        }
        if part.is_empty() {
            write(&place.join("mh/.mh_sequences"), "", 0o644);
        }
        let messages = place.join(folder).join(part);
        for name in ["1", "2", "3"] {
            write(
                &messages.join(name),
                message,
                if name == "2" { 0o000 } else { 0o666 },
            );
        }
        for arguments in [
            ["inspect", folder].as_slice(),
            &["convert", folder, "--output", &format!("{folder}-new")],
            &["detach", "--store", "s", "--dry-run", "--in-place", folder],
            &["convert", "--in-place", folder],
        ] {
            let Some(mut command) = unprivileged(test, place) else {
                return;
            };
            let output = command.current_dir(place).args(arguments).output().unwrap();
            let said = done(&output, 1);
            let whole = format!("{}: cannot be read", messages.join("2").display());
            let named = whole.replace(&format!("{}/", place.display()), "");
            assert_eq!(said.matches(&named).count(), 1, "{arguments:?}: {said}");
        }
        let new = place.join(format!("{folder}-new")).join(part);
        assert!(!new.join("2").exists());
        for name in ["1", "3"] {
            let one = fs::read_to_string(new.join(name)).unwrap();
            assert!(!one.contains("external-body"), "{one}");
            let one = fs::read_to_string(messages.join(name)).unwrap();
            assert!(!one.contains("external-body"), "{one}");
        }
        fs::set_permissions(messages.join("2"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(fs::read_to_string(messages.join("2")).unwrap(), message);
    }
}

#[test]
fn what_cannot_be_read_in_a_folder_is_named_and_the_rest_is_done() {
    let test = "what_cannot_be_read_in_a_folder_is_named_and_the_rest_is_done";
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    everybodys(place);
    write(&place.join("f/box"), of_mbox(1), 0o666);
    write(&place.join("f/closed.eml"), "From: a@b\n\nx\n", 0o000);
    write(&place.join("f/in/1.eml"), "From: a@b\n\nx\n", 0o666);
    write(&place.join("f/sub/2.eml"), "From: a@b\n\nx\n", 0o666);
    write(&place.join("f/m/new/1"), "From: a@b\n\nx\n", 0o666);
    for part in ["cur", "tmp"] {
        fs::create_dir(place.join("f/m").join(part)).unwrap();
    }
    for folder in ["f", "f/in", "f/m", "f/m/new", "f/m/tmp"] {
        everybodys(&place.join(folder));
    }
    for closed in ["f/sub", "f/m/cur"] {
        fs::set_permissions(place.join(closed), Permissions::from_mode(0o000)).unwrap();
    }
    for arguments in [
        &["inspect", "f"][..],
        &["split", "f"],
        &["convert", "f", "--output", "new"],
        &["convert", "--in-place", "f"],
    ] {
        let Some(mut command) = unprivileged(test, place) else {
            return;
        };
        let output = command.current_dir(place).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // A directory of messages cannot be divided into ranges, which is a separate error.
        let status = if arguments[0] == "split" { 2 } else { 1 };
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        for closed in ["f/closed.eml", "f/sub", "f/m/cur"] {
            let named = format!("{closed}: cannot be read");
            let is_said = closed == "f/m/cur" && status == 2 || said.contains(&named);
            assert!(is_said, "{arguments:?}: {closed}: {said}");
        }
    }
    for done in ["new/box", "f/box"] {
        let text = fs::read_to_string(place.join(done)).unwrap();
        assert!(!text.contains("external-body"), "{text}");
    }
    assert!(place.join("new/in/1.eml").is_file());
    assert!(place.join("new/m/new/1").is_file());
    assert!(!place.join("new/closed.eml").exists());
    // Otherwise the directories could not be removed.
    for closed in ["f/sub", "f/m/cur"] {
        fs::set_permissions(place.join(closed), Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn a_backup_beside_its_mailbox_is_no_mailbox() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let mailbox = of_mbox(1);
    let message = mailbox.split_once('\n').unwrap().1;
    write(&place.join("f/a.mbox"), of_mbox(1), 0o666);
    write(&place.join("f/in/b.eml"), message, 0o666);
    // These files are not backups: the mailbox does not exist, or is not mail.
    write(&place.join("f/c.old"), message, 0o666);
    write(&place.join("f/d"), "no mail\n", 0o666);
    write(&place.join("f/d.old"), message, 0o666);
    let convert = [
        "convert",
        "--in-place",
        "--verbose",
        "--backup",
        ".old",
        "f",
    ];
    done(&embody_in(place, &convert), 0);
    let names = |folder: &str| {
        let entries = fs::read_dir(place.join(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let files = [
        "a.mbox",
        "a.mbox.old",
        "c.old",
        "c.old.old",
        "d",
        "d.old",
        "d.old.old",
        "in",
    ];
    assert_eq!(names("f"), files);
    for _ in 0..3 {
        let said = done(&embody_in(place, &convert), 0);
        for backup in ["a.mbox.old", "in/b.eml.old", "c.old.old", "d.old.old"] {
            let named = format!("f/{backup}: skipped: the backup");
            assert!(said.contains(&named), "{backup}: {said}");
        }
        assert_eq!(names("f"), files);
        assert_eq!(names("f/in"), ["b.eml", "b.eml.old"]);
    }
    assert_eq!(
        fs::read_to_string(place.join("f/a.mbox.old")).unwrap(),
        of_mbox(1)
    );
    // A file that is named on the command line is used.
    let said = done(
        &embody_in(
            place,
            &["convert", "--in-place", "--backup", ".old", "f/a.mbox.old"],
        ),
        0,
    );
    assert!(said.contains("1 changed"), "{said}");
}

#[test]
fn two_sources_of_one_name_are_told_before_anything_is_written() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    for folder in ["p1", "p2"] {
        write(&place.join(folder).join("b.mbox"), of_mbox(1), 0o666);
    }
    for sources in [["p1/b.mbox", "p2/b.mbox"], ["p1/b.mbox", "p1/b.mbox"]] {
        let [one, other] = sources;
        let said = done(
            &embody_in(place, &["convert", one, other, "--output", "to"]),
            2,
        );
        let named = format!("{one} and {other} would both be to/b.mbox");
        assert!(said.contains(&named), "{said}");
        assert!(!place.join("to").exists());
    }
}

#[test]
fn inspect_says_of_a_file_without_mail_what_convert_says() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    write(&place.join("notes"), "Dear all,\n\nno mail\n", 0o666);
    write(
        &place.join("notes.gz"),
        zipped(b"Dear all,\n\nno mail\n"),
        0o666,
    );
    write(&place.join("1.eml"), "Dear all,\n\nno header\n", 0o666);
    for file in ["notes", "notes.gz"] {
        let of_inspect = done(&embody_in(place, &["inspect", file]), 1);
        let of_convert = done(
            &embody_in(place, &["convert", file, "--output", "/dev/null"]),
            1,
        );
        let first = of_convert.lines().next().unwrap_or_default();
        assert!(first.contains("not a mailbox"), "{of_convert}");
        assert_eq!(of_inspect.trim_end(), first);
    }
    done(&embody_in(place, &["inspect", "1.eml"]), 0);
}

#[test]
fn lock_error_names_the_maildir_and_its_lock_file() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(place.join("m").join(part)).unwrap();
    }
    write(&place.join("m/embody.lock"), "1:elsewhere", 0o644);
    let options = embody::mailbox::Options {
        lock_timeout: std::time::Duration::ZERO,
        ..embody::mailbox::Options::default()
    };
    let (maildir, stop) = (place.join("m"), embody::mailbox::Stop::default());
    let done = embody::mailbox::Conversion::of(&maildir)
        .in_place()
        .options(&options)
        .stop(&stop)
        .run(&Look, &());
    let Err(embody::Error::Locked { path, lock }) = done else {
        panic!("{done:?}");
    };
    assert_eq!((path, lock), (maildir.clone(), maildir.join("embody.lock")));
}
