//! The users of a store are in a list, and a garbage collection removes nothing if the mail of one of them was not read
//! (docs/store.md).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use super::folders::{ended, stdout};
use crate::common::mail::assert_bytes;
use crate::common::programs::{embody, fed, stderr, unprivileged};

/// Returns a mail with an attachment that depends on `seed`.
fn mail(seed: u8) -> String {
    let base64 = STANDARD.encode(vec![seed; 3000]);
    let lines: String = base64
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line) + "\n")
        .collect();
    format!(
        "From: a@example.org\nSubject: {seed}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n\
         --b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n{lines}--b--\n"
    )
}

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        // The list contains absolute paths without symbolic links.
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Creates a Maildir with one mail.
    fn maildir(&self, name: impl AsRef<Path>, seed: u8) -> PathBuf {
        let path = self.path(name);
        for folder in ["cur", "new", "tmp"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        fs::write(path.join("cur/1.host:2,S"), mail(seed)).unwrap();
        path
    }

    fn detach(&self) -> Command {
        let mut command = embody();
        command.args([
            "detach",
            "--quiet",
            "--larger-than",
            "1k",
            "--store",
            "store",
        ]);
        command.current_dir(self.path(""));
        command
    }

    fn gc(&self, arguments: &[&str]) -> Output {
        let mut command = embody();
        command
            .args(["store", "gc", "--delete", "store"])
            .args(arguments);
        command.current_dir(self.path("")).output().unwrap()
    }

    /// Returns the objects, after making all of them older than a day.
    fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("store")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true if path.ends_with(".users") || path.ends_with(".tmp") => {}
                    true => folders.push(path),
                    false if path.ends_with(".lock") => {}
                    false => found.push(path),
                }
            }
        }
        for object in &found {
            let old = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
            fs::set_permissions(object, fs::Permissions::from_mode(0o640)).unwrap();
            let file = File::options().write(true).open(object).unwrap();
            file.set_modified(old).unwrap();
        }
        found
    }

    /// Returns the entries of the list, sorted.
    fn users(&self) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(self.path("store/.users")).unwrap();
        let mut users: Vec<Vec<u8>> = entries
            .map(|entry| fs::read(entry.unwrap().path()).unwrap())
            .collect();
        users.sort();
        users
    }
}

/// Returns an entry of the list.
fn entry(path: &Path) -> Vec<u8> {
    let uid = rustix::process::geteuid().as_raw();
    let path = path.as_os_str().as_bytes();
    [format!("uid {uid}\n").as_bytes(), path, b"\n"].concat()
}

#[test]
fn nothing_is_removed_before_the_mail_of_each_user_was_read() {
    let place = Place::new();
    let (one, two) = (place.maildir("one", 1), place.maildir("two", 2));
    for name in ["one", "two"] {
        let output = place.detach().args(["--in-place", name]).output().unwrap();
        ended(&output, 0);
    }
    assert_eq!(place.users(), [entry(&one), entry(&two)]);
    assert_eq!(place.objects().len(), 2);
    let output = place.gc(&["one"]);
    ended(&output, 1);
    let said = stderr(&output);
    let uid = rustix::process::geteuid().as_raw();
    let named = format!(
        "{} (user id {uid}) put objects into the store: this mailbox was not named",
        two.display()
    );
    assert!(said.contains(&named), "{said}");
    assert!(said.contains("nothing was removed"), "{said}");
    assert_eq!(place.objects().len(), 2);
    // The parent directory, a symbolic link, and another path to the mailbox count as that mailbox.
    fs::create_dir(place.path("links")).unwrap();
    symlink(&two, place.path("links/there")).unwrap();
    fs::rename(&one, place.path("links/one")).unwrap();
    symlink(place.path("links/one"), &one).unwrap();
    for sources in [
        &["one", "two"][..],
        &["links/../two", "./one"],
        &["links", "one"],
    ] {
        let output = place.gc(sources);
        ended(&output, 0);
        assert_eq!(place.objects().len(), 2, "{}", stderr(&output));
    }
    fs::remove_file(&one).unwrap();
    fs::rename(place.path("links/one"), &one).unwrap();
    // Only objects without a reference are removed.
    fs::remove_file(two.join("cur/1.host:2,S")).unwrap();
    ended(&place.gc(&["one", "two"]), 0);
    assert_eq!(place.objects().len(), 1);
    // With --all-mail-is-here, the list is ignored.
    ended(&place.gc(&["--all-mail-is-here", "two"]), 0);
    assert_eq!(place.objects().len(), 0);
    // Without --delete, objects are only listed, and the message names the mailboxes that were not read.
    place.maildir("one", 3);
    let output = place.detach().args(["--in-place", "one"]).output().unwrap();
    ended(&output, 0);
    place.objects();
    let mut command = embody();
    command.args(["store", "gc", "store", "two"]);
    let output = command.current_dir(place.path("")).output().unwrap();
    ended(&output, 0);
    assert_eq!(stdout(&output).lines().count(), 1);
    assert!(
        stderr(&output).contains("this mailbox was not named"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn gc_is_refused_if_filtered_mail_may_lie_elsewhere() {
    let place = Place::new();
    place.maildir("one", 1);
    let output = fed(&mut place.detach(), mail(7).as_bytes());
    ended(&output, 0);
    fs::write(place.path("one/cur/2.host:2,S"), &output.stdout).unwrap();
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(
        place.users(),
        [format!("uid {uid}\nstandard input\n").into_bytes()]
    );
    assert_eq!(place.objects().len(), 1);
    let output = place.gc(&["one"]);
    ended(&output, 1);
    let said = stderr(&output);
    assert!(
        said.contains(&format!("standard input (user id {uid})")),
        "{said}"
    );
    assert!(said.contains("--all-mail-is-here"), "{said}");
    ended(&place.gc(&["--all-mail-is-here", "one"]), 0);
    assert_eq!(place.objects().len(), 1, "it is used");
    // If mail from a file is written to standard output, its location is unknown, too.
    fs::write(place.path("a.eml"), mail(8)).unwrap();
    ended(&place.detach().arg("a.eml").output().unwrap(), 0);
    assert_eq!(place.users().len(), 1);
}

/// The list contains the mailbox with the references under a single name, however its path is written.
#[test]
fn a_mailbox_is_listed_once_under_its_whole_name() {
    let place = Place::new();
    let mailbox = place.maildir("box", 1);
    symlink(&mailbox, place.path("link")).unwrap();
    let absolute = mailbox.display().to_string();
    for (seed, name) in ["box", "./box/", "link", "link/../box", &absolute]
        .iter()
        .enumerate()
    {
        fs::write(mailbox.join(format!("new/{seed}")), mail(10 + seed as u8)).unwrap();
        let output = place.detach().args(["--in-place", name]).output().unwrap();
        ended(&output, 0);
        assert_eq!(place.users(), [entry(&mailbox)], "{name}");
    }
    // The result refers to the store. The source is unchanged, so it is not in the list.
    place.maildir("source", 2);
    let output = place
        .detach()
        .args(["source", "--output", "result"])
        .output()
        .unwrap();
    ended(&output, 0);
    assert_eq!(
        place.users(),
        [entry(&mailbox), entry(&place.path("result"))]
    );
    // Two results in a directory have an entry each. Mail on standard output has an unknown location.
    place.maildir("a", 3);
    place.maildir("b", 4);
    ended(
        &place
            .detach()
            .args(["a", "b", "--output", "both"])
            .output()
            .unwrap(),
        0,
    );
    assert_eq!(place.users().len(), 4);
    assert!(place.users().contains(&entry(&place.path("both/b"))));
}

#[test]
fn dry_run_and_unchanged_mail_add_no_mailbox_to_the_user_list() {
    let place = Place::new();
    place.maildir("one", 1);
    let output = place.detach().args(["--dry-run", "one"]).output().unwrap();
    ended(&output, 0);
    assert!(!place.path("store").exists());
    let small = "From: a@example.org\n\nhello\n";
    ended(&fed(&mut place.detach(), small.as_bytes()), 0);
    assert!(place.path("store").exists() && !place.path("store/.users").exists());
}

#[test]
fn a_path_of_any_octets_is_listed_and_found() {
    let place = Place::new();
    for (seed, name) in [&b"a\nuid 0\nb"[..], b"\xff\xfe", b"new line\n", b"\x1b[31m"]
        .iter()
        .enumerate()
    {
        let name = Path::new("mail").join(OsStr::from_bytes(name));
        let path = place.maildir(&name, seed as u8);
        let output = place
            .detach()
            .arg("--in-place")
            .arg(&name)
            .output()
            .unwrap();
        ended(&output, 0);
        assert!(place.users().contains(&entry(&path)));
        let output = place.gc(&["nothing"]);
        ended(&output, 1);
        let said = stderr(&output);
        assert!(!said.contains('\x1b'), "{said}");
        assert!(said.contains("put objects into the store"), "{said}");
        ended(&place.gc(&["mail"]), 0);
    }
    assert_eq!(place.objects().len(), 4);
}

/// A mailbox that was renamed or removed cannot be read, and neither can one on an unmounted file system.
#[test]
fn a_mailbox_that_is_not_there_stops_a_collection_until_its_entry_goes() {
    let place = Place::new();
    let (one, two) = (place.maildir("mail/one", 1), place.maildir("mail/two", 2));
    ended(
        &place
            .detach()
            .args(["--in-place", "mail/one", "mail/two"])
            .output()
            .unwrap(),
        0,
    );
    assert_eq!(place.objects().len(), 2);
    let aside = place.path("mail/three");
    fs::rename(&two, &aside).unwrap();
    for empty in [false, true] {
        if empty {
            fs::create_dir(&two).unwrap();
        }
        let output = place.gc(&["mail"]);
        ended(&output, 1);
        assert!(
            stderr(&output).contains(two.to_str().unwrap()),
            "{}",
            stderr(&output)
        );
        assert_eq!(place.objects().len(), 2);
    }
    fs::remove_dir(&two).unwrap();
    let said = stderr(&place.gc(&["mail"]));
    let entry = said
        .split("then remove ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(
        entry.starts_with(place.path("store/.users").to_str().unwrap()),
        "{said}"
    );
    fs::remove_file(entry).unwrap();
    ended(&place.gc(&["mail"]), 0);
    assert_eq!(place.objects().len(), 2, "it is used under its new name");
    fs::remove_dir_all(&aside).unwrap();
    ended(&place.gc(&[one.to_str().unwrap()]), 0);
    assert_eq!(place.objects().len(), 1);
}

#[test]
fn a_store_without_a_list_is_collected_as_before_with_a_warning() {
    let place = Place::new();
    place.maildir("one", 1);
    place.maildir("two", 2);
    ended(
        &place
            .detach()
            .args(["--in-place", "one", "two"])
            .output()
            .unwrap(),
        0,
    );
    fs::remove_dir_all(place.path("store/.users")).unwrap();
    assert_eq!(place.objects().len(), 2);
    let output = place.gc(&["one"]);
    ended(&output, 0);
    assert!(
        stderr(&output).contains("the store has no list of its mailboxes"),
        "{}",
        stderr(&output)
    );
    assert_eq!(place.objects().len(), 1);
    let output = place.gc(&["--all-mail-is-here", "one"]);
    assert!(!stderr(&output).contains("no list"), "{}", stderr(&output));
    let mut command = embody();
    command.args(["store", "check", "--all-mail-is-here", "store"]);
    ended(&command.current_dir(place.path("")).output().unwrap(), 2);
}

/// If the user cannot be added to the list, a garbage collection could remove the object, so the attachment stays in the mail.
#[test]
fn mail_keeps_its_attachments_if_its_user_cannot_be_added_to_the_list() {
    let place = Place::new();
    let before = mail(1);
    let elsewhere = place.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for planted in ["link", "file", "entry"] {
        let _ = fs::remove_dir_all(place.path("store"));
        fs::create_dir(place.path("store")).unwrap();
        let users = place.path("store/.users");
        match planted {
            "link" => symlink(&elsewhere, &users).unwrap(),
            "file" => fs::write(&users, "").unwrap(),
            _ => {
                ended(&fed(&mut place.detach(), before.as_bytes()), 0);
                let entry = fs::read_dir(&users)
                    .unwrap()
                    .next()
                    .unwrap()
                    .unwrap()
                    .path();
                fs::set_permissions(&entry, fs::Permissions::from_mode(0o640)).unwrap();
                fs::write(entry, "uid 0\n/elsewhere\n").unwrap();
            }
        }
        let mut verbose = embody();
        verbose.args(["detach", "--larger-than", "1k", "--store", "store"]);
        let output = fed(verbose.current_dir(place.path("")), before.as_bytes());
        ended(&output, 0);
        assert_bytes(&output.stdout, before.as_bytes(), planted);
        let said = stderr(&output);
        assert!(
            said.contains("store-failed") && said.contains(".users"),
            "{planted}: {said}"
        );
        // A file that is not a valid entry is reported, and nothing is removed.
        if planted != "link" {
            place.maildir("one", 1);
            ended(&place.gc(&["one"]), 1);
        }
    }
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn mail_keeps_its_attachments_if_the_user_list_is_read_only() {
    const TEST: &str = "mail_keeps_its_attachments_if_the_user_list_is_read_only";
    let place = Place::new();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(mut command) = unprivileged(TEST, &place.path("")) else {
        return;
    };
    let (store, users) = (place.path("store"), place.path("store/.users"));
    for folder in [&store, &users] {
        fs::create_dir(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::set_permissions(&users, fs::Permissions::from_mode(0o555)).unwrap();
    command.args([
        "detach",
        "--quiet",
        "--larger-than",
        "1k",
        "--store",
        "store",
    ]);
    command.current_dir(place.path(""));
    let before = mail(1);
    let output = fed(&mut command, before.as_bytes());
    ended(&output, 0);
    assert_bytes(&output.stdout, before.as_bytes(), "it stays");
    fs::set_permissions(&users, fs::Permissions::from_mode(0o777)).unwrap();
    let output = fed(&mut command, before.as_bytes());
    assert!(output.stdout.len() < before.len() / 2);
}

#[test]
fn concurrent_runs_add_every_mailbox_to_the_user_list() {
    let place = Place::new();
    let children: Vec<_> = (0..12)
        .map(|number| {
            let name = format!("mail/box{}", number % 4);
            if number < 4 {
                place.maildir(&name, number);
            }
            let mut command = place.detach();
            match number % 3 {
                0 => command.args(["--in-place", &name]),
                _ => command.args(["--output", &format!("mail/out{number}"), &name]),
            };
            command.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        // A Maildir on which another process works may be left unchanged.
        child.wait().unwrap();
    }
    let entries = fs::read_dir(place.path("store/.users")).unwrap().count();
    assert_eq!(entries, place.users().len());
    // There is at least one entry for each mailbox. A run that starts late may find that all of it was detached, and adds no
    // object.
    assert!(entries >= 4, "{entries}");
    assert_eq!(fs::read_dir(place.path("store/.tmp")).unwrap().count(), 0);
    ended(&place.gc(&["mail"]), 0);
}

#[test]
fn a_list_has_a_bound_and_what_is_beyond_it_stops_a_collection() {
    let place = Place::new();
    let one = place.maildir("one", 1);
    ended(
        &place.detach().args(["--in-place", "one"]).output().unwrap(),
        0,
    );
    let users = place.path("store/.users");
    for number in 0..10_000 {
        fs::write(users.join(format!("{number:064}")), "").unwrap();
    }
    for number in 0..3 {
        let name = format!("mail/more{number}");
        place.maildir(&name, 5);
        ended(
            &place.detach().args(["--in-place", &name]).output().unwrap(),
            0,
        );
    }
    assert_eq!(fs::read_dir(&users).unwrap().count(), 10_002);
    for number in 0..10_000 {
        fs::remove_file(users.join(format!("{number:064}"))).unwrap();
    }
    let listed = place.users();
    assert!(
        listed.contains(&entry(&one)) && listed.len() == 2,
        "{listed:?}"
    );
    place.objects();
    let output = place.gc(&["mail"]);
    ended(&output, 1);
    assert!(
        stderr(&output).contains("at most 10000"),
        "{}",
        stderr(&output)
    );
    ended(&place.gc(&["--all-mail-is-here", "mail"]), 0);
}
