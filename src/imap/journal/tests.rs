use super::*;

fn replacement(uid: u32) -> Replacement {
    Replacement {
        folder: "INBOX".into(),
        uidvalidity: 7,
        uid,
        least: uid + 1,
        sha256: "00".into(),
        size: 3,
        original: Some("11".into()),
        original_size: 4,
        flags: vec!["\\Seen".into(), "na\"me\n".into()],
        labels: Vec::new(),
        date: (" 1-Jan-2020 10:00:00 +0100".into(), 1_577_869_200),
        step: ReplacementStep::Begun,
    }
}

fn account(user: &str) -> JournalAccount {
    JournalAccount {
        user: user.into(),
        host: "imap.example.org".into(),
        port: 993,
    }
}

fn begun(journal: &ReplaceJournal, replacement: Replacement) -> u64 {
    let id = journal.next_id();
    journal.note(id, replacement).unwrap();
    id
}

fn open_of(journal: &ReplaceJournal) -> Vec<(u64, Replacement)> {
    let open = journal.open_ones().into_iter();
    open.map(|it| {
        assert_eq!(it.doubt, None);
        (it.id, it.replacement)
    })
    .collect()
}

/// Opens a journal. If it is locked, waits: a process that another test starts inherits the open file, and can hold
/// the lock for a moment.
fn reopened(folder: &Path, user: &str) -> ReplaceJournal {
    for _ in 0..1000 {
        match ReplaceJournal::open(folder, account(user)) {
            Err(Error::Locked { .. }) => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("locked for long");
}

#[test]
fn a_journal_tells_what_was_begun_and_not_ended() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a/b");
    let journal = reopened(&state, "me");
    let first = begun(&journal, replacement(1));
    let second = begun(&journal, replacement(2));
    let third = begun(&journal, replacement(3));
    journal.end(first).unwrap();
    let appended = Replacement {
        step: ReplacementStep::Appended(9),
        ..replacement(3)
    };
    journal.note(third, appended.clone()).unwrap();
    assert!(journal.is_known_copy(&replacement(2), 9));
    assert!(!journal.is_known_copy(&replacement(3), 9));
    assert!(journal.is_open("INBOX", 7, 2) && !journal.is_open("INBOX", 8, 2));
    assert!(matches!(
        ReplaceJournal::open(&state, account("me")),
        Err(Error::Locked { .. })
    ));
    drop(journal);
    let journal = reopened(&state, "me");
    let open = [(second, replacement(2)), (third, appended)];
    assert_eq!(open_of(&journal), open);
    assert_eq!(open_of(&reopened(&state, "you")), []);
    let mode = std::fs::metadata(&state).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_line_that_was_cut_off_tells_nothing_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let journal = reopened(folder.path(), "me");
    begun(&journal, replacement(1));
    let (path, whole) = (journal.path.clone(), journal.noted().length);
    begun(&journal, replacement(2));
    drop(journal);
    let text = std::fs::read(&path).unwrap();
    for cut in usize::try_from(whole).unwrap()..text.len() {
        for tail in [&b""[..], b"\0\0\0", b"\0\n"] {
            std::fs::write(&path, [&text[..cut], tail].concat()).unwrap();
            let journal = reopened(folder.path(), "me");
            assert_eq!(open_of(&journal), [(0, replacement(1))]);
            let next = begun(&journal, replacement(3));
            drop(journal);
            let journal = reopened(folder.path(), "me");
            let both = [(0, replacement(1)), (next, replacement(3))];
            assert_eq!(open_of(&journal), both);
        }
    }
}

#[test]
fn a_byte_that_changed_in_a_line_is_noticed_and_nothing_is_believed_then() {
    let folder = tempfile::tempdir().unwrap();
    let journal = reopened(folder.path(), "me");
    begun(&journal, replacement(1));
    let (path, whole) = (journal.path.clone(), journal.noted().length);
    begun(&journal, replacement(2));
    drop(journal);
    let text = std::fs::read(&path).unwrap();
    // Each byte of the first line is changed in turn, except the line feed at its end. If that byte changes, the
    // two lines become one, which looks like the result of a crash and not like damage.
    for at in 0..usize::try_from(whole).unwrap() - 1 {
        let mut damaged = text.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let open = reopened(folder.path(), "me").open_ones();
        assert_eq!(
            open.last().unwrap().replacement,
            replacement(2),
            "byte {at}"
        );
        let is_doubted =
            |it: &OpenReplacement| it.doubt.as_ref().is_some_and(|why| why.contains("line 1 "));
        assert!(open.iter().all(is_doubted), "byte {at}: {open:?}");
    }
}

#[test]
fn a_journal_of_another_account_or_server_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = reopened(folder.path(), "me");
    journal.set_server(Some("Dovecot"));
    begun(&journal, replacement(1));
    let path = journal.path.clone();
    drop(journal);
    let doubt = |user: &str, server: Option<&str>| {
        let journal = reopened(folder.path(), user);
        journal.set_server(server);
        journal.open_ones().remove(0).doubt
    };
    assert_eq!(doubt("me", Some("Dovecot")), None);
    assert_eq!(doubt("me", None), None);
    assert!(doubt("me", Some("Cyrus")).unwrap().contains("Cyrus"));
    let other = reopened(folder.path(), "you").path;
    std::fs::copy(&path, &other).unwrap();
    let doubt = doubt("you", Some("Dovecot")).unwrap();
    assert!(
        doubt.contains("a different account, me on imap.example.org"),
        "{doubt}"
    );
}

#[test]
fn a_journal_of_version_0_3_0_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = reopened(folder.path(), "me").path;
    let lines = concat!(
        r#"{"id":0,"open":{"folder":"INBOX","uidvalidity":7,"uid":1,"least":3,"sha256":"00","size":3,"flags":["\\Seen"],"#,
        r#""date":["01-Feb-2019 11:00:07 +0000",1549018807],"step":{"appended":3}}}"#,
        "\n",
        r#"{"id":1,"open":{"folder":"INBOX","uidvalidity":7,"uid":2,"least":3,"sha256":"00","size":3,"flags":[],"#,
        r#""date":["01-Feb-2019 11:00:07 +0000",1549018807],"step":"begun"}}"#,
        "\n",
        r#"{"id":1,"open":null}"#,
        "\n",
    );
    std::fs::write(&path, lines).unwrap();
    let journal = reopened(folder.path(), "me");
    let open = open_of(&journal);
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].1.step, ReplacementStep::Appended(3));
    assert_eq!(open[0].1.original, None);
    // After this line, the file contains lines of version 0.3.0 and of this version.
    let next = begun(&journal, replacement(5));
    drop(journal);
    let open = open_of(&reopened(folder.path(), "me"));
    let ids: Vec<u64> = open.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, next]);
}

#[test]
fn journal_directory_writable_by_other_users_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).unwrap();
    assert!(ReplaceJournal::open(folder.path(), account("me")).is_err());
}

#[test]
fn message_that_may_exist_twice_is_kept_until_a_run_has_named_it() {
    let folder = tempfile::tempdir().unwrap();
    let journal = reopened(folder.path(), "me");
    let id = begun(&journal, replacement(1));
    journal.name(id, "it exists twice".to_owned()).unwrap();
    let named = [NamedMessage::of(
        replacement(1),
        "it exists twice".to_owned(),
    )];
    assert_eq!(journal.named_ones(), named);
    journal.close().unwrap();
    let again = reopened(folder.path(), "me");
    assert_eq!(open_of(&again), []);
    assert_eq!(again.named_ones(), named);
    assert_eq!(again.next_id(), id + 1);
    again.forget_named().unwrap();
    let path = again.path.clone();
    again.close().unwrap();
    assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
}
