//! Ordinary work of an ordinary user, on files of other users: the owner of a result, and who can read it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{XattrFlags, setxattr};

use crate::common::archives::zip;
use crate::common::ordinary::{ALSO, OTHER, OrdinaryUser, USER};
use crate::common::pst::{Form, Message, Pst};

const ROOT: (u32, u32) = (0, 0);

/// Returns a message that `convert` leaves unchanged.
fn plain(number: u32) -> String {
    format!(
        "From: a@example.org\nSubject: {number}\nMessage-ID: <{number}@example.org>\nDate: Mon, 2 Jan 2023 10:00:00 +0000\n\nbody\n"
    )
}

/// Returns a message whose attachment `detach` moves.
fn with_attachment(number: u32) -> String {
    let (head, _) = plain(number)
        .split_once("\n\n")
        .map(|(head, body)| (head.to_owned(), body.to_owned()))
        .unwrap();
    let line = "QUJD".repeat(18);
    let body = format!("{line}\n").repeat(40);
    format!(
        "{head}\nContent-Type: application/pdf; name=a.pdf\nContent-Disposition: attachment; filename=a.pdf\nContent-Transfer-Encoding: base64\n\n{body}"
    )
}

/// Returns a message with a reference that `convert` replaces by its content.
fn with_reference(number: u32) -> String {
    let (head, _) = plain(number)
        .split_once("\n\n")
        .map(|(head, body)| (head.to_owned(), body.to_owned()))
        .unwrap();
    format!(
        "{head}\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL; URL=\"data:,one\"\n\nContent-Type: text/plain\n\n"
    )
}

fn mbox(mails: &[String]) -> String {
    let framed = mails
        .iter()
        .map(|mail| format!("From a@example.org Mon Jan  2 10:00:00 2023\n{mail}\n"));
    framed.collect()
}

fn pst() -> Vec<u8> {
    let mut pst = Pst::in_memory(Form {
        version: 23,
        encoding: 1,
    });
    pst.folder(None, "Inbox", &[Message::mail("one", "two\n")]);
    pst.bytes()
}

/// Writes mail of all kinds that belongs to root, and that the user can read.
fn write_sources(user: &OrdinaryUser, place: &Path) {
    let mails: Vec<String> = (0..3).map(with_attachment).collect();
    let write = |name: &str, content: &[u8]| user.write(&place.join(name), content, ROOT, 0o644);
    write("box", mbox(&mails).as_bytes());
    write("one.eml", mails[0].as_bytes());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(mbox(&mails).as_bytes()).unwrap();
    write("box.gz", &packed.finish().unwrap());
    write("box.zip", &zip(&[("a.mbox", mbox(&mails).as_bytes())]));
    write("a.pst", &pst());
    for (number, mail) in mails.iter().enumerate() {
        write(&format!("Maildir/cur/{number}.a.b:2,S"), mail.as_bytes());
        write(&format!("mh/{}", number + 1), mail.as_bytes());
        write(
            &format!("boxes/{number}.mbox"),
            mbox(std::slice::from_ref(mail)).as_bytes(),
        );
        write(&format!("boxes/in/{number}.eml"), mail.as_bytes());
    }
    write("mh/.mh_sequences", b"unseen: 3\n");
    for part in ["new", "tmp"] {
        fs::create_dir(place.join("Maildir").join(part)).unwrap();
    }
}

/// Returns all files in a directory, with their relative paths. `path` can also be a file.
fn tree(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![path.to_owned()];
    while let Some(next) = left.pop() {
        if next.is_dir() {
            left.extend(
                fs::read_dir(next)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            let relative = next.strip_prefix(path).unwrap().to_owned();
            found.insert(relative, fs::read(next).unwrap());
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn every_command_converts_mail_of_another_owner_to_files_of_the_user() {
    const TEST: &str = "every_command_converts_mail_of_another_owner_to_files_of_the_user";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    let sources = user.beside("sources");
    write_sources(&user, &sources);
    let names = [
        "box", "one.eml", "box.gz", "box.zip", "a.pst", "Maildir", "mh", "boxes",
    ];
    for verb in [
        "convert",
        "convert --output-format mbox",
        "convert --output-format maildir",
        "convert --output-format eml",
        "convert --output-format thunderbird",
        "convert --by-label",
        "embed --embed data",
        "recover --offline",
        "detach --larger-than 1k --store store",
        "restore --store store",
    ] {
        for name in names {
            let source = sources.join(name);
            let output = user.at("out");
            let line = format!("{verb} --quiet {} --output out", source.display());
            user.run(&line, 0);
            let made = tree(&output);
            assert!(!made.is_empty(), "{line}");
            for path in made.keys() {
                let made = if path.as_os_str().is_empty() {
                    output.clone()
                } else {
                    output.join(path)
                };
                assert!(user.owns(&made), "{line}: {}", made.display());
            }
            let is_copy =
                !verb.contains("--") || verb.starts_with("recover") || verb.starts_with("embed");
            if is_copy && !["a.pst", "box.zip", "box.gz", "mh"].contains(&name) {
                assert!(made == tree(&source), "{line}");
            }
            if output.is_dir() {
                fs::remove_dir_all(&output).unwrap();
            } else {
                fs::remove_file(&output).unwrap();
            }
        }
    }
    let at = |name: &str| sources.join(name).display().to_string();
    let (one, boxes) = (at("box"), at("boxes"));
    for line in [
        format!("merge --quiet {one} {} --output merged", at("Maildir")),
        format!("compare --quiet {one} merged"),
        format!("inspect {boxes}"),
        format!("split {one}"),
        "store check store".to_owned(),
        format!("convert --quiet {one} {} --output several", at("one.eml")),
        format!("convert --quiet --range 0-10 {one} --output range"),
        format!("convert --quiet --report report {one} --output reported"),
    ] {
        user.run(&line, 0);
    }
    for made in [
        "merged",
        "several/box",
        "several/one.eml",
        "range",
        "report",
    ] {
        assert!(user.owns(&user.at(made)), "{made}");
    }
}

#[test]
fn copy_of_a_file_of_another_owner_is_accessible_to_no_more_people() {
    const TEST: &str = "copy_of_a_file_of_another_owner_is_accessible_to_no_more_people";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    if !user.has_root() {
        return;
    }
    for (owner, before, after) in [
        (ROOT, 0o644, 0o644),
        (ROOT, 0o444, 0o444),
        (ROOT, 0o664, 0o644),
        (ROOT, 0o666, 0o666),
        // The group of root has no access, and its members are among the others of the copy.
        (ROOT, 0o604, 0o600),
        ((0, ALSO), 0o640, 0o640),
        ((0, ALSO), 0o040, 0o440),
        ((USER, OTHER), 0o660, 0o600),
        ((USER, OTHER), 0o664, 0o644),
        ((USER, OTHER), 0o2664, 0o644),
        ((USER, ALSO), 0o2660, 0o2660),
        ((0, USER), 0o4664, 0o664),
        ((USER, USER), 0o640, 0o640),
    ] {
        let path = user.beside("box");
        user.write(&path, mbox(&[plain(1)]), owner, before);
        let folder = user.beside("Maildir/cur");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(user.beside("Maildir/new")).unwrap();
        user.write(&folder.join("1"), plain(1), owner, before);
        user.run(
            &format!("convert --quiet {} --output out", path.display()),
            0,
        );
        user.run(
            &format!(
                "convert --quiet {} --output Maildir",
                user.beside("Maildir").display()
            ),
            0,
        );
        for made in ["out", "Maildir/cur/1"] {
            let made = user.at(made);
            assert_eq!(
                mode(&made),
                after,
                "{owner:?} {before:o}: {:o}",
                mode(&made)
            );
            let group = fs::metadata(&made).unwrap().gid();
            let expected = if owner.1 == ALSO { ALSO } else { USER };
            assert_eq!(group, expected, "{owner:?} {before:o}");
        }
        fs::remove_file(user.at("out")).unwrap();
        fs::remove_dir_all(user.at("Maildir")).unwrap();
    }
}

/// Returns an access control list (acl(5)) of the owner, the user 4003, the group, the mask and all others.
fn access_list(bits: [u16; 5]) -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    let kinds = [
        (1_u16, u32::MAX),
        (2, 4003),
        (4, u32::MAX),
        (0x10, u32::MAX),
        (0x20, u32::MAX),
    ];
    for ((kind, number), bits) in kinds.into_iter().zip(bits) {
        list.extend(kind.to_le_bytes());
        list.extend(bits.to_le_bytes());
        list.extend(number.to_le_bytes());
    }
    list
}

#[test]
#[cfg(target_os = "linux")]
fn access_list_is_copied_with_its_group_or_narrowed_without_it() {
    const TEST: &str = "access_list_is_copied_with_its_group_or_narrowed_without_it";
    const ACL: &str = "system.posix_acl_access";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    let path = user.beside("box");
    user.write(&path, mbox(&[plain(1)]), (0, OTHER), 0o644);
    let set = |path: &Path, name: &str, bits| {
        setxattr(path, name, &access_list(bits), XattrFlags::empty()).is_ok()
    };
    if !user.has_root() || !set(&path, ACL, [6, 4, 0, 4, 4]) {
        return;
    }
    let has_list = |path: &Path| rustix::fs::getxattr(path, ACL, &mut [0; 100]).is_ok();
    let convert = format!("convert --quiet {} --output out", path.display());
    // The mode of this file is 0644, but its group has no access.
    user.run(&convert, 0);
    assert!(!has_list(&user.at("out")));
    assert_eq!(mode(&user.at("out")), 0o600);
    fs::remove_file(user.at("out")).unwrap();
    assert!(set(&path, ACL, [6, 6, 4, 6, 4]));
    chown(&path, Some(0), Some(ALSO)).unwrap();
    user.run(&convert, 0);
    assert!(has_list(&user.at("out")));
    assert_eq!(mode(&user.at("out")), 0o664);
    fs::remove_file(user.at("out")).unwrap();
    // The directory has a list for new files, which must not add a reader to the copy.
    fs::remove_file(&path).unwrap();
    user.write(&path, mbox(&[plain(1)]), (0, ALSO), 0o640);
    assert!(set(
        &user.home(),
        "system.posix_acl_default",
        [7, 7, 5, 7, 5]
    ));
    for line in [
        &convert,
        &convert.replace("convert", "convert --output-format maildir"),
    ] {
        user.run(line, 0);
        let made = tree(&user.at("out"));
        for name in made.keys() {
            let made = user.at("out").join(name);
            let made = if name.as_os_str().is_empty() {
                user.at("out")
            } else {
                made
            };
            assert_eq!(mode(&made) & 0o007, 0, "{line}");
            assert!(
                !has_list(&made) || mode(&made) & 0o070 == 0,
                "{line}: {}",
                made.display()
            );
        }
        let _ = fs::remove_file(user.at("out"));
    }
}

#[test]
fn mailbox_whose_owner_cannot_be_kept_stays_unchanged_in_place() {
    const TEST: &str = "mailbox_whose_owner_cannot_be_kept_stays_unchanged_in_place";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    if !user.has_root() {
        return;
    }
    let old = mbox(&[with_reference(1), with_reference(2)]);
    let path = user.at("spool");
    for (owner, file_mode, is_kept) in [
        ((USER, OTHER), 0o660, false),
        ((USER, ALSO), 0o660, true),
        ((0, ALSO), 0o660, false),
        ((0, 0), 0o666, false),
        ((USER, USER), 0o600, true),
    ] {
        for verb in [
            "convert",
            "detach --larger-than 1k --store store",
            "embed --embed data",
        ] {
            let old = if verb.starts_with("detach") {
                mbox(&[with_attachment(1)])
            } else {
                old.clone()
            };
            user.write(&path, &old, owner, file_mode);
            let said = user.run(&format!("{verb} --in-place spool"), i32::from(!is_kept));
            let is_same = fs::read_to_string(&path).unwrap() == old;
            let found = fs::metadata(&path).unwrap();
            assert_eq!(is_same, !is_kept, "{owner:?}: {said}");
            assert_eq!((found.uid(), found.gid()), owner);
            assert_eq!(mode(&path), file_mode);
            if !is_kept {
                assert!(said.contains("belongs to another user or group"), "{said}");
                assert!(
                    said.contains("run the command as root, or write the result to a new file"),
                    "{said}"
                );
            }
            let entries = fs::read_dir(user.home()).unwrap();
            let names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name())
                .filter(|name| name != "store")
                .collect();
            assert_eq!(names, ["spool"], "{owner:?}: {said}");
        }
    }
    // A mailbox of another owner that needs no change is left as it is.
    user.write(&path, mbox(&[plain(1)]), (USER, OTHER), 0o660);
    user.run("convert --in-place spool", 0);
    // The same holds for the messages of a Maildir.
    for part in ["cur", "new", "tmp"] {
        let part = user.at("Maildir").join(part);
        fs::create_dir_all(&part).unwrap();
        user.give(&part);
    }
    user.give(&user.at("Maildir"));
    let message = user.at("Maildir/cur/1.a.b:2,S");
    user.write(&message, with_reference(1), (USER, OTHER), 0o660);
    let said = user.run("convert --in-place Maildir", 1);
    assert!(said.contains("belongs to another user or group"), "{said}");
    assert_eq!(fs::read_to_string(&message).unwrap(), with_reference(1));
    chown(&message, Some(USER), Some(ALSO)).unwrap();
    user.run("convert --in-place Maildir", 0);
    assert_ne!(fs::read_to_string(&message).unwrap(), with_reference(1));
    assert_eq!(fs::metadata(&message).unwrap().gid(), ALSO);
}

#[test]
fn directory_without_write_permission_is_named_and_nothing_changes() {
    const TEST: &str = "directory_without_write_permission_is_named_and_nothing_changes";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    let (old, spool) = (mbox(&[with_reference(1)]), user.beside("spool"));
    let mine = rustix::process::geteuid().as_raw();
    let owner = if user.has_root() {
        (USER, USER)
    } else {
        (mine, mine)
    };
    user.write(&spool.join("me"), &old, owner, 0o600);
    fs::set_permissions(&spool, Permissions::from_mode(0o555)).unwrap();
    user.write(&user.at("box"), &old, owner, 0o600);
    let (shown, file) = (spool.display(), spool.join("me"));
    let file = file.display();
    for line in [
        format!("convert --in-place {file}"),
        format!("detach --larger-than 1 --store s --in-place {file}"),
        format!("convert box --output {shown}/out"),
        format!("convert box --output-format maildir --output {shown}/out"),
        format!("convert box --output-format thunderbird --output {shown}/out"),
        format!("convert box {file} --output {shown}/out"),
        format!("detach --larger-than 1 --store s box --output {shown}/out"),
        format!("merge box {file} --output {shown}/out"),
        format!("embed --embed data box --output {shown}/out"),
    ] {
        let said = user.run(&line, 1);
        assert!(said.contains("Permission denied"), "{line}: {said}");
        assert!(said.contains("spool"), "{line}: {said}");
        let listed = fs::read_dir(&spool).unwrap().count();
        assert_eq!(listed, 1, "{line}");
        assert_eq!(fs::read_to_string(spool.join("me")).unwrap(), old, "{line}");
    }
    // The directory around an output directory need not be writable.
    let out = spool.join("out");
    fs::set_permissions(&spool, Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&out).unwrap();
    user.give(&out);
    fs::set_permissions(&spool, Permissions::from_mode(0o555)).unwrap();
    user.write(&user.at("Mail/a"), &old, owner, 0o600);
    user.write(&user.at("Mail/b"), &old, owner, 0o600);
    user.give(&user.at("Mail"));
    let said = user.run(&format!("convert Mail --output {}", out.display()), 0);
    assert!(!said.contains("cannot"), "{said}");
    let made: Vec<_> = tree(&out).into_keys().collect();
    assert_eq!(made, [Path::new("a"), Path::new("b")]);
    fs::set_permissions(&spool, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn unreadable_files_and_directories_are_named_by_every_command() {
    const TEST: &str = "unreadable_files_and_directories_are_named_by_every_command";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    let mail = user.beside("mail");
    let write = |name: &str, content: &str, mode| user.write(&mail.join(name), content, ROOT, mode);
    write("a", &mbox(&[with_attachment(1)]), 0o644);
    write("closed.mbox", &mbox(&[plain(2)]), 0o000);
    write("closed/b.eml", &plain(3), 0o644);
    fs::set_permissions(mail.join("closed"), Permissions::from_mode(0o000)).unwrap();
    write("box", &mbox(&[plain(1)]), 0o644);
    let shown = mail.display();
    for line in [
        format!("convert {shown} --output out"),
        format!("convert --output-format maildir {shown} --output maildirs"),
        format!("convert --output-format thunderbird {shown} --output thunderbird"),
        format!("embed --embed data {shown} --output embedded"),
        format!("recover --offline {shown} --output recovered"),
        format!("detach --larger-than 1k --store store {shown} --output detached"),
        format!("restore --store store {shown} --output restored"),
        format!("inspect {shown}"),
        format!("merge {shown} --output merged"),
        format!("split {shown}"),
        format!("compare {shown} out"),
        format!("store gc store {shown}"),
    ] {
        let said = user.run(&line, 1);
        assert!(said.contains("mail/closed: "), "{line}: {said}");
        // The comparison ends with the first directory that cannot be read.
        let is_named = said.contains("mail/closed.mbox");
        assert!(is_named || line.starts_with("compare"), "{line}: {said}");
    }
    for line in [
        format!("convert {shown}/closed.mbox --output one"),
        format!("inspect {shown}/closed.mbox"),
        format!("convert {shown}/closed --output two"),
        format!("merge {shown}/closed.mbox --output three"),
        format!("compare {shown}/closed.mbox {shown}/a"),
    ] {
        let said = user.run(&line, 1);
        assert!(said.contains("Permission denied"), "{line}: {said}");
    }
    // Otherwise the directory could not be removed.
    fs::set_permissions(mail.join("closed"), Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn mail_in_a_sticky_directory_is_converted_and_changed_without_a_home() {
    const TEST: &str = "mail_in_a_sticky_directory_is_converted_and_changed_without_a_home";
    let Some(user) = OrdinaryUser::new(TEST) else {
        return;
    };
    let common = user.beside("common");
    fs::create_dir(&common).unwrap();
    fs::set_permissions(&common, Permissions::from_mode(0o1777)).unwrap();
    let mine = rustix::process::geteuid().as_raw();
    let owner = if user.has_root() {
        (USER, USER)
    } else {
        (mine, mine)
    };
    user.write(
        &common.join("mine"),
        mbox(&[with_reference(1)]),
        owner,
        0o600,
    );
    user.write(
        &common.join("theirs"),
        mbox(&[with_reference(2)]),
        ROOT,
        0o666,
    );
    // The lock and the temporary file of another user, which this user cannot remove.
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    user.write(
        &common.join(format!(".embody-{host}-1-x-y")),
        "x",
        ROOT,
        0o600,
    );
    let line = |words: &[&str]| {
        let mut command = user.command();
        command.current_dir(&common).env_remove("HOME").args(words);
        let done = command.output().unwrap();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    for words in [
        &["convert", "mine", "--output", "new"][..],
        &["convert", "theirs", "--output", "other"],
        &["convert", "--in-place", "mine"],
        &["detach", "--store", "store", "mine", "--output", "detached"],
        &["merge", "mine", "theirs", "--output", "merged"],
        &["inspect", "mine"],
        &["embed", "--embed", "data", "theirs", "--output", "embedded"],
    ] {
        let (status, said) = line(words);
        assert_eq!(status, Some(0), "{words:?}: {said}");
    }
    assert!(
        !fs::read_to_string(common.join("mine"))
            .unwrap()
            .contains("external-body")
    );
    if user.has_root() {
        let (status, said) = line(&["convert", "--in-place", "theirs"]);
        assert_eq!(status, Some(1), "{said}");
        let theirs = fs::read_to_string(common.join("theirs")).unwrap();
        assert_eq!(theirs, mbox(&[with_reference(2)]));
    }
    let names = fs::read_dir(&common)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names
        .filter(|name| name.to_string_lossy().contains(".lock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
