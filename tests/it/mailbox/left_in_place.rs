//! Mailboxes that cannot be changed in place: each is named and stays as it is, and all others are changed.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::ordinary::{OTHER, OrdinaryUser, USER};
use crate::common::programs::{embody_in, stderr};

/// Returns a message that `convert`, `embed`, `recover` and `detach` change.
fn mail(number: u32) -> String {
    let line = "QUJD".repeat(18);
    let body = format!("{line}\n").repeat(40);
    format!(
        "From: a@example.org\nSubject: {number}\nMessage-ID: <{number}@example.org>\nDate: Mon, 2 Jan 2023 10:00:00 +0000\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
         Content-Type: message/external-body; access-type=URL; URL=\"data:,one\"\n\nContent-Type: text/plain\n\n\n--b\n\
         Content-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\n\
         Content-Transfer-Encoding: base64\n\n{body}--b--\n"
    )
}

fn mbox(mails: &[String]) -> String {
    let framed = mails
        .iter()
        .map(|mail| format!("From a@example.org Mon Jan  2 10:00:00 2023\n{mail}\n"));
    framed.collect()
}

/// The mailboxes of the test: their paths, and whether the user can change them.
const PLACES: [(&str, bool); 10] = [
    ("a", true),
    ("b-readonly", false),
    ("c/locked", false),
    ("d/1.eml", true),
    ("d/2-readonly.eml", false),
    ("e/1.eml", false),
    ("f/cur/1.a.b:2,S", false),
    ("g/cur/1.a.b:2,S", false),
    ("h/1", false),
    ("z", true),
];

/// Writes the mailboxes. `message` returns the message with a number.
fn write_mailboxes(user: &OrdinaryUser, place: &Path, message: &dyn Fn(u32) -> String) {
    let mine = rustix::process::geteuid().as_raw();
    let owner = if user.has_root() {
        (USER, USER)
    } else {
        (mine, mine)
    };
    for (number, (path, _)) in (1..).zip(PLACES) {
        let is_single = path.contains(".eml") || path.contains('/') && !path.starts_with('c');
        let content = if is_single {
            message(number)
        } else {
            mbox(&[message(number), message(number + 100)])
        };
        let mode = if path.contains("readonly") {
            0o400
        } else {
            0o600
        };
        user.write(&place.join(path), content, owner, mode);
    }
    for part in ["f/new", "f/tmp", "g/new", "g/tmp"] {
        fs::create_dir_all(place.join(part)).unwrap();
    }
    user.write(&place.join("h/.mh_sequences"), "", owner, 0o600);
    give_all(user, place);
    for closed in ["c", "e", "f", "g/tmp", "h"] {
        fs::set_permissions(place.join(closed), Permissions::from_mode(0o555)).unwrap();
    }
}

fn give_all(user: &OrdinaryUser, place: &Path) {
    user.give(place);
    for entry in fs::read_dir(place).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            give_all(user, &path);
        }
    }
}

fn remove_all(place: &Path) {
    for closed in ["c", "e", "f", "g/tmp", "h"] {
        fs::set_permissions(place.join(closed), Permissions::from_mode(0o755)).unwrap();
    }
    fs::remove_dir_all(place).unwrap();
}

fn contents(place: &Path) -> BTreeMap<&'static str, String> {
    let read = |path| fs::read_to_string(place.join(path)).unwrap();
    PLACES.iter().map(|(path, _)| (*path, read(path))).collect()
}

/// Returns the words by which a message must name the mailbox at a path.
fn named(path: &str) -> PathBuf {
    let path = Path::new(path);
    let first = path.components().next().unwrap();
    match path.components().count() {
        3.. => first.as_os_str().into(),
        _ if first.as_os_str() == "h" => "h".into(),
        _ => path.to_owned(),
    }
}

#[test]
fn mailbox_that_the_user_cannot_change_is_named_and_all_others_are_changed() {
    const TEST: &str = "mailbox_that_the_user_cannot_change_is_named_and_all_others_are_changed";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    user.write(&user.at("one"), mbox(&[mail(1)]), (USER, USER), 0o644);
    let place = user.at("mail");
    for verb in [
        "convert",
        "embed --embed data",
        "recover --offline",
        "detach --larger-than 1k --store store",
        "restore --store store",
    ] {
        let detached = |number: u32| {
            if !verb.starts_with("restore") {
                return mail(number);
            }
            let path = user.at("one.eml");
            user.write(&path, mail(number), (USER, USER), 0o644);
            user.run(
                "detach --quiet --larger-than 1k --store store one.eml --output new.eml",
                0,
            );
            let new = fs::read_to_string(user.at("new.eml")).unwrap();
            fs::remove_file(user.at("new.eml")).unwrap();
            new
        };
        write_mailboxes(&user, &place, &detached);
        let before = contents(&place);
        let said = user.run(&format!("{verb} --in-place mail"), 1);
        let after = contents(&place);
        for (path, is_changed) in PLACES {
            assert_eq!(
                before[path] != after[path],
                is_changed,
                "{verb} {path}: {said}"
            );
            let words = format!("mail/{}: ", named(path).display());
            assert_eq!(said.contains(&words), !is_changed, "{verb} {path}: {said}");
        }
        let summary = "7 files or messages could not be processed completely";
        assert!(said.contains(summary), "{verb}: {said}");
        assert!(
            said.contains("11 files: 3 read, 1 part of a mailbox, 7 not read"),
            "{verb}: {said}"
        );
        // The same mailboxes as sources of their own.
        remove_all(&place);
        write_mailboxes(&user, &place, &detached);
        let names = ["a", "b-readonly", "c/locked", "d", "e", "f", "g", "h", "z"];
        let sources = names.map(|name| format!("mail/{name}")).join(" ");
        let said = user.run(&format!("{verb} --in-place {sources}"), 1);
        for (path, content) in contents(&place) {
            assert_eq!(content, after[path], "{verb} {path}: {said}");
        }
        remove_all(&place);
        let _ = fs::remove_dir_all(user.at("store"));
    }
}

#[test]
fn message_of_another_owner_in_a_maildir_does_not_end_the_run() {
    const TEST: &str = "message_of_another_owner_in_a_maildir_does_not_end_the_run";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    if !user.has_root() {
        return;
    }
    let place = user.at("Maildir");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(place.join(part)).unwrap();
    }
    for number in 1..=9 {
        let owner = if number == 3 {
            (USER, OTHER)
        } else {
            (USER, USER)
        };
        let path = place.join(format!("cur/{number}.a.b:2,S"));
        user.write(&path, mail(number), owner, 0o660);
    }
    give_all(&user, &place);
    let said = user.run("convert --in-place Maildir", 1);
    for number in 1..=9 {
        let content = fs::read_to_string(place.join(format!("cur/{number}.a.b:2,S"))).unwrap();
        assert_eq!(content == mail(number), number == 3, "{number}: {said}");
    }
    assert!(said.contains("Maildir/cur/3.a.b:2,S: "), "{said}");
    assert!(said.contains("belongs to another user or group"), "{said}");
    assert!(said.contains("9 messages read, 8 changed"), "{said}");
    assert!(said.contains("9 files: 8 read, 1 not read"), "{said}");
}

#[test]
fn mailbox_with_two_names_or_an_old_backup_does_not_end_the_run() {
    for options in [&["--in-place"][..], &["--in-place", "--backup", ".old"]] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        fs::create_dir(place.join("mail")).unwrap();
        let names = ["a", "b", "c.eml", "d"];
        for (number, name) in (1..).zip(names) {
            let single = name.ends_with(".eml");
            let content = if single {
                mail(number)
            } else {
                mbox(&[mail(number)])
            };
            fs::write(place.join("mail").join(name), content).unwrap();
        }
        for left in ["b", "c.eml"] {
            let path = place.join("mail").join(left);
            if options.len() == 1 {
                fs::hard_link(&path, place.join(format!("second-{left}"))).unwrap();
            } else {
                fs::write(path.with_file_name(format!("{left}.old")), "x").unwrap();
            }
        }
        let before = names.map(|name| fs::read(place.join("mail").join(name)).unwrap());
        let arguments = [&["convert"], options, &["mail"]].concat();
        let output = embody_in(place, &arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for (name, before) in names.iter().zip(before) {
            let after = fs::read(place.join("mail").join(name)).unwrap();
            let is_left = ["b", "c.eml"].contains(name);
            assert_eq!(after == before, is_left, "{name}: {said}");
            assert_eq!(
                said.contains(&format!("mail/{name}: ")),
                is_left,
                "{name}: {said}"
            );
        }
    }
}

#[test]
fn message_whose_keywords_of_courier_cannot_be_written_is_named_and_stays() {
    const TEST: &str = "message_whose_keywords_of_courier_cannot_be_written_is_named_and_stays";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    let place = user.at("Maildir");
    for part in ["cur", "new", "tmp", "courierimapkeywords"] {
        fs::create_dir_all(place.join(part)).unwrap();
    }
    let name = |number: u32| format!("157830480{number}.M1P1.h,S={}", mail(number).len());
    for number in [1, 2] {
        let path = place.join(format!("cur/{}:2,S", name(number)));
        user.write(&path, mail(number), (USER, USER), 0o600);
    }
    let keywords = place.join("courierimapkeywords");
    let list = format!("work\n\n{}:0\n", name(1));
    user.write(&keywords.join(":list"), list, (USER, USER), 0o600);
    give_all(&user, &place);
    fs::set_permissions(&keywords, Permissions::from_mode(0o555)).unwrap();
    let said = user.run("convert --in-place Maildir", 1);
    let kept = place.join(format!("cur/{}:2,S", name(1)));
    assert_eq!(fs::read_to_string(&kept).unwrap(), mail(1), "{said}");
    let line = format!(
        "Maildir/cur/{}:2,S: cannot write Maildir/courierimapkeywords: ",
        name(1)
    );
    assert!(said.contains(&line), "{said}");
    assert!(said.contains("; the message was not changed\n"), "{said}");
    assert!(
        said.contains("2 messages read, 1 changed") || said.contains("2 messages, 1 changed"),
        "{said}"
    );
    // The same command finishes the work when it can.
    fs::set_permissions(&keywords, Permissions::from_mode(0o755)).unwrap();
    user.run("convert --in-place Maildir", 0);
    assert!(!kept.exists());
    let said = user.run("convert Maildir --output-format mbox --output out.mbox", 0);
    let mbox = fs::read_to_string(user.at("out.mbox")).unwrap();
    assert!(mbox.contains("\nX-Keywords: work\n"), "{said}{mbox}");
    assert!(!mbox.contains("external-body"), "{mbox}");
    fs::remove_dir_all(&place).unwrap();
}

/// Many mailboxes can be locked, for example by a mail server that was killed. The run waits once and not for each of them.
#[test]
fn run_over_many_locked_mailboxes_waits_for_one_timeout() {
    use embody::mailbox::{Conversion, MailboxEvent, MailboxFact, Options};
    use embody::{Expander, Policy};

    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path().join("mail");
    fs::create_dir(&place).unwrap();
    for number in 0..8 {
        fs::write(place.join(format!("{number}.mbox")), mbox(&[mail(number)])).unwrap();
        if number != 4 {
            fs::write(
                place.join(format!("{number}.mbox.lock")),
                "1:another.example\n",
            )
            .unwrap();
        }
    }
    let options = Options {
        lock_timeout: std::time::Duration::from_secs(3),
        ..Options::default()
    };
    let named = std::sync::Mutex::new(Vec::new());
    let observer = |event: MailboxEvent<_>| {
        if let MailboxEvent::Fact(MailboxFact::Damaged(path, why)) = event {
            named
                .lock()
                .unwrap()
                .push(format!("{}: {why}", path.display()));
        }
    };
    let expander = Expander::new(Policy::default()).unwrap();
    let began = std::time::Instant::now();
    let conversion = Conversion::of(&place).in_place().options(&options);
    let summary = conversion.run(&expander, &observer).unwrap();
    let waited = began.elapsed().as_secs_f32();
    assert!((3.0..12.0).contains(&waited), "{waited}");
    let named = named.into_inner().unwrap();
    assert_eq!(
        (named.len(), summary.damaged, summary.changed),
        (7, 7, 1),
        "{named:?}"
    );
    for line in named {
        assert!(
            line.contains(".mbox.lock; the file was not changed"),
            "{line}"
        );
    }
}
