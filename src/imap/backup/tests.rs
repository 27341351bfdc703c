use super::*;
use crate::imap::session::InternalDate;

fn account() -> AccountName {
    AccountName {
        user: "me".to_owned(),
        host: "mail.example.org:993".to_owned(),
    }
}

fn directory() -> FolderDirectory {
    FolderDirectory {
        path: PathBuf::new(),
        name: "INBOX".to_owned(),
        is_mixed: false,
        account: None,
        state: None,
    }
}

fn opened(folder: &Path) -> Backup {
    Backup::open(folder, &directory(), &account(), 3).unwrap()
}

/// Returns the names of the files in `cur`, without the flags, and with the flags.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("cur")).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn dated(uid: u32, date: &str, size: u64, flags: &[&str]) -> Metadata {
    Metadata {
        internal_date: InternalDate::of(date),
        size,
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..Metadata::unknown(uid)
    }
}

/// Saves a message unless it was already saved. Returns whether it was already saved.
fn updated(folder: &Path, message: &Metadata, content: &[u8]) -> bool {
    let mut backup = opened(folder);
    let is_there = backup.has(message).unwrap();
    if !is_there {
        backup.put(message, content, content).unwrap();
    }
    backup.finish().unwrap();
    is_there
}

const JANUARY: &str = " 1-Jan-2020 10:00:00 +0000";
const MAY: &str = " 1-May-2020 10:00:00 +0000";

#[test]
fn message_with_a_reused_uid_is_saved_next_to_the_old_one_and_keeps_its_flags() {
    for (date, size) in [(MAY, 5), (JANUARY, 6), (MAY, 6)] {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        let old = dated(7, JANUARY, 5, &["\\Seen"]);
        assert!(!updated(folder, &old, b"old 5"));
        let content = &b"new 56"[..usize::try_from(size).unwrap()];
        let new = dated(7, date, size, &["\\Flagged"]);
        assert!(!updated(folder, &new, content));
        for message in [&new, &old, &new] {
            assert!(updated(folder, message, b"unused"));
        }
        let kept = names(folder);
        assert_eq!(kept.len(), 2, "{kept:?}");
        for name in kept {
            let is_old = fs::read(folder.join("cur").join(&name)).unwrap() == b"old 5";
            assert_eq!(name.ends_with(":2,S"), is_old, "{name}");
            assert_eq!(name.ends_with(":2,F"), !is_old, "{name}");
        }
    }
}

/// The server permuted its UIDs, so a message is downloaded although the UID, the date and the size are those of a saved one.
#[test]
fn message_with_the_uid_date_and_size_of_another_one_gets_a_name_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let message = dated(7, JANUARY, 5, &["\\Seen"]);
    assert!(!updated(folder, &message, b"first"));
    for content in [b"other", b"third"] {
        let mut backup = opened(folder);
        backup.put(&message, content, content).unwrap();
        backup.finish().unwrap();
    }
    let answered = dated(7, JANUARY, 5, &["\\Seen", "\\Answered"]);
    assert!(updated(folder, &answered, b"unused"));
    let mut contents: Vec<Vec<u8>> = names(folder)
        .iter()
        .map(|name| fs::read(folder.join("cur").join(name)).unwrap())
        .collect();
    contents.sort();
    assert_eq!(contents, [b"first", b"other", b"third"]);
    let mut backup = opened(folder);
    backup.put(&message, b"other", b"other").unwrap();
    backup.finish().unwrap();
    assert_eq!(
        names(folder).len(),
        3,
        "the same content is not saved again"
    );
}

#[test]
fn message_whose_announced_date_or_size_changed_is_compared_and_not_doubled() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    // The announced size is wrong, but constant.
    let message = dated(7, JANUARY, 900, &[]);
    assert!(!updated(folder, &message, b"mail"));
    assert!(updated(folder, &message, b"unused"));
    assert_eq!(names(folder), ["1577872800.V3U7.embody,A=900,S=4:2,"]);
    for (date, size, name) in [
        (JANUARY, 901, "1577872800.V3U7.embody,A=901,S=4:2,"),
        (MAY, 901, "1588327200.V3U7.embody,A=901,S=4:2,"),
        (MAY, 4, "1588327200.V3U7.embody,A=4,S=4:2,"),
    ] {
        let changed = dated(7, date, size, &[]);
        assert!(!updated(folder, &changed, b"mail"));
        assert_eq!(names(folder), [name]);
        assert!(updated(folder, &changed, b"unused"));
    }
}

#[test]
fn backup_of_an_older_version_gets_announced_sizes_and_the_account_and_saves_nothing_again() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::write(folder.join("cur/1577872800.V3U7.embody,S=4:2,S"), "mail").unwrap();
    // The file has the announced size, so its content is not compared. Only after a change of the size, it is compared
    // once.
    assert!(updated(
        folder,
        &dated(7, JANUARY, 4, &["\\Seen"]),
        b"unused"
    ));
    assert_eq!(names(folder), ["1577872800.V3U7.embody,A=4,S=4:2,S"]);
    let old = folder.join("cur/1577872800.V3U7.embody,S=4:2,S");
    fs::rename(folder.join("cur").join(&names(folder)[0]), old).unwrap();
    let message = dated(7, JANUARY, 900, &["\\Seen"]);
    assert!(!updated(folder, &message, b"mail"));
    assert_eq!(names(folder), ["1577872800.V3U7.embody,A=900,S=4:2,S"]);
    let recorded = fs::read_to_string(folder.join(OWNER)).unwrap();
    assert_eq!(recorded, "INBOX\nuser me\nhost mail.example.org:993\n");
    assert!(updated(folder, &message, b"unused"));
    // The size is recorded now, so a message with another size is a different one.
    assert!(!updated(folder, &dated(7, JANUARY, 3, &[]), b"new"));
    assert_eq!(names(folder).len(), 2);
}

#[test]
fn substitute_is_marked_and_replaced_by_the_message() {
    let text =
        b"From: Microsoft Exchange Server 2010\r\nSubject: IMAP4: 7\r\n\r\nThe server failed\r\n";
    let mail = b"From: a@example.org\r\nDate: Fri, 3 Jan 2020 10:00:00 +0000\r\n\r\nhello\r\n";
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    let message = dated(7, JANUARY, 900, &[]);
    for _ in 0..2 {
        assert!(!updated(folder, &message, text));
        let size = text.len();
        let name = format!("1577872800.V3U7.embody-substitute,A=900,S={size}:2,");
        assert_eq!(names(folder), [name]);
    }
    assert!(!updated(folder, &message, mail));
    let size = mail.len();
    let saved = format!("1577872800.V3U7.embody,A=900,S={size}:2,");
    assert_eq!(names(folder), [saved.as_str()]);
    // The server sends the error text again. The saved message must not be replaced by it.
    let changed = dated(7, JANUARY, 901, &[]);
    assert!(!updated(folder, &changed, text));
    assert_eq!(names(folder), [saved.as_str()]);
    // An earlier version saved the error text as if it were the message.
    fs::remove_file(folder.join("cur").join(saved)).unwrap();
    fs::remove_file(folder.join(OWNER)).unwrap();
    let old = format!("1577872800.V3U7.embody,S={}:2,", text.len());
    fs::write(folder.join("cur").join(old), text).unwrap();
    assert!(!updated(folder, &message, mail));
    assert_eq!(names(folder).len(), 1);
    assert!(updated(folder, &message, b"unused"));
}

#[test]
fn keywords_are_read_from_their_file() {
    assert_eq!(keywords("0 a\n2 c\nx\n99 z\n"), ["a", "", "c"]);
}

#[test]
fn flags_are_found_after_each_substitute_for_the_colon() {
    let folder = tempfile::tempdir().unwrap();
    let message = |uid, flags: &[&str]| Metadata {
        uid,
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        odd_flags: Vec::new(),
        internal_date: crate::imap::internal_date::InternalDate {
            text: " 1-Jan-1970 00:00:01 +0000".to_owned(),
            seconds: 1,
        },
        size: 4,
        structure: None,
    };
    let open = || opened(folder.path());
    let cur = folder.path().join("cur");
    let mut backup = open();
    backup
        .put(&message(1, &["\\Seen"]), b"mail", b"mail")
        .unwrap();
    backup.finish().unwrap();
    let there = cur.join("0000000001.V3U1.embody,A=4,S=4:2,S");
    fs::rename(&there, cur.join("0000000001.V3U1.embody,A=4,S=4;2,S")).unwrap();
    let names = || -> Vec<_> {
        let entries = fs::read_dir(&cur).unwrap().flatten();
        entries.map(|entry| entry.file_name()).collect()
    };
    assert!(open().has(&message(1, &["\\Seen"])).unwrap());
    assert_eq!(names(), ["0000000001.V3U1.embody,A=4,S=4;2,S"]);
    assert!(open().has(&message(1, &["\\Answered"])).unwrap());
    assert_eq!(names(), ["0000000001.V3U1.embody,A=4,S=4:2,R"]);
    assert!(!open().has(&message(2, &[])).unwrap());
}

#[test]
fn a_message_that_was_too_short_is_read_again_and_replaced_by_a_longer_one() {
    let folder = tempfile::tempdir().unwrap();
    let message = Metadata {
        internal_date: crate::imap::internal_date::InternalDate::of(""),
        ..Metadata::unknown(7)
    };
    let open = || opened(folder.path());
    let names = || -> Vec<_> {
        let entries = fs::read_dir(folder.path().join("cur")).unwrap().flatten();
        let mut names: Vec<_> = entries
            .map(|it| it.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let text = b"Received: by b; Fri, 02 May 2003 10:11:12 +0000\r\nDate: Thu, 1 May 2003 10:11:12 +0000\r\n\r\nmore";
    for (content, kept) in [
        (&text[..20], 20),
        (&text[..10], 20),
        (&text[..], text.len()),
    ] {
        let mut backup = open();
        assert!(!backup.has(&message).unwrap());
        backup.put(&message, content, content).unwrap();
        backup.finish().unwrap();
        if content.len() < text.len() {
            backup.mark_short(7).unwrap();
        }
        assert!(
            names()
                .iter()
                .any(|name| size_in(name) == Some(kept as u64)),
            "{:?}",
            names()
        );
    }
    let last = names();
    assert!(
        last[last.len() - 1].starts_with("1051870272.V3U7.embody,S="),
        "{last:?}"
    );
    assert!(open().has(&message).unwrap());
}
