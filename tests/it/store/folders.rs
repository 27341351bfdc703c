//! `embody store check` and `embody store gc` (docs/store.md): damaged and missing objects are reported, and no object is
//! removed to which a mail may refer.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::common::programs::{embody, stderr, unprivileged};

/// A store and a mailbox next to it.
pub(super) struct Place {
    folder: TempDir,
}

pub(super) fn digits(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(super) fn beneath(content: &[u8]) -> String {
    let digits = digits(content);
    format!("{}/{}/{digits}", &digits[..2], &digits[2..4])
}

impl Place {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("store")).unwrap();
        let place = Self { folder };
        place.mail(
            "mail.mbox",
            b"From a Sat Jan  3 01:05:34 1996\nSubject: none\n\nx\n",
        );
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates an object that is older than a day.
    pub(super) fn object(&self, content: &[u8]) -> PathBuf {
        let path = self.path("store").join(beneath(content));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let old = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
        path
    }

    pub(super) fn mail(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn store(&self, arguments: &[&str], sources: &[&str]) -> Output {
        let mut command = embody();
        command.arg("store").args(arguments).arg(self.path("store"));
        command.args(sources.iter().map(|name| self.path(name)));
        command.output().unwrap()
    }
}

/// Returns a mail with a detached part.
pub(super) fn detached(content: &[u8]) -> Vec<u8> {
    format!(
        "From: a@example.org\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/store/{}\"\n\nContent-Type: image/png\nX-Embody-Detached: sha256={}; encoding=base64\n\n",
        beneath(content),
        digits(content),
    )
    .into_bytes()
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(super) fn ended(output: &Output, status: i32) {
    assert_eq!(output.status.code(), Some(status), "{}", stderr(output));
}

#[test]
fn check_accepts_intact_referenced_objects() {
    let place = Place::new();
    place.object(b"abc");
    place.mail("one.eml", &detached(b"abc"));
    let output = place.store(&["check"], &["one.eml", "mail.mbox"]);
    ended(&output, 0);
    let said = stdout(&output);
    assert!(
        said.starts_with("1 object, 3 bytes, 0 damaged; 2 files"),
        "{said}"
    );
    assert!(
        said.ends_with("; references to 1 object found, 0 of these missing in the store\n"),
        "{said}"
    );
    assert_eq!(stderr(&output), "");
    let output = place.store(&["check"], &[]);
    ended(&output, 0);
    assert_eq!(stdout(&output), "1 object, 3 bytes, 0 damaged\n");
}

#[test]
fn check_with_quiet_writes_nothing_if_all_is_well() {
    let place = Place::new();
    let object = place.object(b"abc");
    place.mail("one.eml", &detached(b"abc"));
    for sources in [&["one.eml", "mail.mbox"][..], &[]] {
        let output = place.store(&["check", "--quiet"], sources);
        ended(&output, 0);
        assert_eq!((stdout(&output), stderr(&output)), Default::default());
    }
    fs::write(object, b"abd").unwrap();
    let output = place.store(&["check", "--quiet"], &[]);
    ended(&output, 1);
    let said = stdout(&output);
    assert!(
        said.starts_with("damaged ") && said.ends_with("1 damaged\n"),
        "{said}"
    );
    place.object(b"unused");
    let output = place.store(&["gc", "--quiet"], &["mail.mbox"]);
    ended(&output, 0);
    assert_eq!(stdout(&output), format!("{} 6\n", beneath(b"unused")));
    assert!(
        !stderr(&output).contains("bytes read"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_folder_that_is_not_a_store_is_refused_before_anything_is_read() {
    let place = Place::new();
    let at = |name: &str| place.path(name);
    // Directories that exist for other purposes: a repository, mail, a locale, names of two digits, and a file.
    for name in [
        "repository/objects/ab/0123456789",
        "mail/cur/1:2,S",
        "locale/de/x.mo",
        "two/ab/cd/x",
    ] {
        place.mail(name, b"x\n");
    }
    fs::create_dir(at("locked")).unwrap();
    fs::write(at("locked/.lock"), "1234").unwrap();
    fs::create_dir(at("locked/.tmp")).unwrap();
    fs::write(at("locked/x"), "").unwrap();
    let others = [
        "repository/objects",
        "mail",
        "locale",
        "two",
        "locked",
        "mail.mbox",
        ".",
    ];
    for (action, other) in ["check", "gc"]
        .into_iter()
        .flat_map(|it| others.map(|other| (it, other)))
    {
        let mut command = embody();
        command.args(["store", action]).args([at(other), at(".")]);
        let output = command.output().unwrap();
        ended(&output, 2);
        let said = stderr(&output);
        assert!(
            said.contains(" is not a store: ") && said.lines().count() == 1,
            "{other}: {said}"
        );
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_store_is_known_when_it_is_empty_copied_or_holds_other_files() {
    let accepted = |place: &Place| {
        for action in ["check", "gc"] {
            ended(&place.store(&[action], &["mail.mbox"]), 0);
        }
    };
    let place = Place::new();
    accepted(&place);
    // The state in which `detach` leaves a store if it is killed after each step of creating it.
    fs::write(place.path("store/.lock"), "").unwrap();
    accepted(&place);
    fs::create_dir(place.path("store/.tmp")).unwrap();
    accepted(&place);
    fs::write(place.path("store/index.html"), "x").unwrap();
    accepted(&place);
    let object = place.object(b"abc");
    accepted(&place);
    // A copy made with `rsync --exclude=.tmp --exclude=.lock`, with a file of a web server.
    fs::remove_file(place.path("store/.lock")).unwrap();
    fs::remove_dir(place.path("store/.tmp")).unwrap();
    accepted(&place);
    // All objects were removed, and there are no other files.
    fs::remove_file(place.path("store/index.html")).unwrap();
    fs::remove_file(object).unwrap();
    accepted(&place);
}

#[test]
fn the_store_is_no_mailbox_and_what_it_wrote_is_not_read_within_one() {
    let place = Place::new();
    let (used, unused) = (
        place.object(&detached(b"inner")),
        place.object(b"\0\x01unused\xff"),
    );
    place.object(&detached(b"\0\x01unused\xff"));
    place.mail("one.eml", &detached(&detached(b"inner")));
    let output = place.store(&["gc"], &["store"]);
    ended(&output, 2);
    assert!(
        stderr(&output).contains("belongs to the store itself"),
        "{}",
        stderr(&output)
    );
    // A mail in the directory of the objects is still a mail.
    let kept = place.object(b"kept");
    place.mail("store/mail.eml", &detached(b"kept"));
    let output = place.store(&["gc", "--delete"], &["."]);
    ended(&output, 0);
    assert!(
        used.exists() && kept.exists() && !unused.exists(),
        "{}",
        stderr(&output)
    );
}

#[test]
fn trouble_of_a_wrong_source_is_said_in_a_few_lines() {
    let place = Place::new();
    for number in 0..500 {
        place.mail(&format!("wrong/{number}"), b"\0\x01\x02binary\xff");
    }
    for action in ["check", "gc"] {
        let output = place.store(&[action], &["wrong"]);
        ended(&output, 1);
        let said = stderr(&output);
        assert!(said.lines().count() < 24, "{said}");
        assert!(
            said.contains("more problems with files that could not be read"),
            "{said}"
        );
    }
}

#[test]
fn what_is_damaged_or_missing_is_named() {
    let place = Place::new();
    let path = place.object(b"abc");
    fs::write(&path, b"abd").unwrap();
    place.mail("one.eml", &detached(b"other"));
    // A hash without a URL or a header field is not a certain reference.
    place.mail(
        "two.eml",
        format!("Subject: {}\n\n", digits(b"third")).as_bytes(),
    );
    let output = place.store(&["check"], &["one.eml", "two.eml"]);
    ended(&output, 1);
    let lines = stdout(&output);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert!(
        lines.contains(&format!("damaged {}", digits(b"abc"))),
        "{lines}"
    );
    assert!(
        lines.contains(&format!("missing {}", digits(b"other"))),
        "{lines}"
    );
    assert!(lines.contains("one.eml"), "{lines}");
    assert_eq!(fs::read(path).unwrap(), b"abd");
}

#[test]
fn a_collection_lists_what_is_not_used_and_removes_it_when_asked() {
    let place = Place::new();
    let (used, unused) = (place.object(b"abc"), place.object(b"unused"));
    place.mail("one.eml", &detached(b"abc"));
    let line = format!("{} 6\n", beneath(b"unused"));
    let output = place.store(&["gc"], &["one.eml", "mail.mbox"]);
    ended(&output, 0);
    assert_eq!(stdout(&output), line);
    assert!(used.exists() && unused.exists());
    let output = place.store(&["gc", "--delete"], &["one.eml", "mail.mbox"]);
    ended(&output, 0);
    assert_eq!(stdout(&output), line);
    assert!(used.exists() && !unused.exists());
    let output = place.store(&["gc", "--delete"], &["one.eml", "mail.mbox"]);
    ended(&output, 0);
    assert_eq!(stdout(&output), "");
}

#[test]
fn gc_keeps_young_objects_and_files_that_are_not_objects() {
    let place = Place::new();
    let young = place.object(b"young");
    File::options()
        .write(true)
        .open(&young)
        .unwrap()
        .set_modified(SystemTime::now())
        .unwrap();
    let abc = place.object(b"abc");
    let digits = self::digits(b"abc");
    let beside = abc.parent().unwrap();
    let strangers = [
        beside.join("README"),
        beside.join(format!("{digits}.bak")),
        beside.join(digits.to_uppercase()),
        beside.join("x".repeat(64)),
        beside.join(self::digits(b"elsewhere")),
        place.path("store/00").join(&digits),
        place.path("store/README"),
        place.path("store/abc/de").join(&digits),
    ];
    let old = SystemTime::now() - Duration::from_secs(1_000_000);
    for stranger in &strangers {
        fs::create_dir_all(stranger.parent().unwrap()).unwrap();
        File::create(stranger).unwrap().set_modified(old).unwrap();
    }
    // A symbolic link in place of an object, and directories that are symbolic links.
    let link = place.path("store").join(beneath(b"link"));
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&abc, &link).unwrap();
    let elsewhere = place.path("elsewhere");
    fs::create_dir_all(elsewhere.join("00")).unwrap();
    symlink(&elsewhere, place.path("store/ff")).unwrap();
    let output = place.store(&["gc", "--delete"], &["mail.mbox"]);
    ended(&output, 0);
    assert!(!abc.exists());
    assert!(young.exists());
    for stranger in strangers {
        assert!(stranger.exists(), "{stranger:?}");
        let name = stranger.file_name().unwrap().to_str().unwrap().to_owned();
        let is_below = stranger.starts_with(place.path("store/abc"));
        assert!(
            is_below || stderr(&output).contains(&name),
            "{name}: {}",
            stderr(&output)
        );
    }
    assert!(fs::symlink_metadata(&link).is_ok());
    assert!(stderr(&output).contains("unused but younger than a day: 1"));
}

/// In each of these places, a reference keeps the object.
#[test]
fn gc_keeps_an_object_that_any_file_of_the_sources_references() {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(detached(b"abc"));
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let attached = format!(
        "Subject: Fwd\nMIME-Version: 1.0\nContent-Type: application/octet-stream; name=x.eml\nContent-Transfer-Encoding: base64\n\n{}\n",
        lines.join("\n")
    );
    let plain = detached(b"abc");
    let far = [
        b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n".as_slice(),
        &vec![b'y'; 3 << 20],
        b"\n\nFrom b Sat Jan  3 01:05:34 1996\n",
        &plain,
    ]
    .concat();
    for (name, content) in [
        ("one.eml", plain.clone()),
        ("far.mbox", far),
        ("attached.eml", attached.into_bytes()),
        ("Maildir/cur/1:2,S", plain.clone()),
        ("Maildir/new/1", plain.clone()),
        ("Maildir/tmp/1", plain.clone()),
        ("Maildir/.Sent/cur/1:2,S", plain.clone()),
        ("folder/a/b/notes.txt", plain.clone()),
        ("folder/.embody-host-1-2-x", plain),
    ] {
        let place = Place::new();
        let (object, unused) = (place.object(b"abc"), place.object(b"unused"));
        for folder in ["cur", "new", "tmp"] {
            fs::create_dir_all(place.path("Maildir").join(folder)).unwrap();
        }
        place.mail(
            "folder/x.mbox",
            b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n",
        );
        place.mail(name, &content);
        let first = Path::new(name).components().next().unwrap();
        let source = first.as_os_str().to_str().unwrap();
        let output = place.store(&["gc", "--delete"], &[source]);
        ended(&output, 0);
        assert!(
            object.exists() && !unused.exists(),
            "{name}: {}",
            stderr(&output)
        );
    }
}

/// A forwarded mail that was detached may itself refer to objects.
#[test]
fn what_a_used_object_refers_to_is_used() {
    let place = Place::new();
    let (inner, outer) = (place.object(b"abc"), place.object(&detached(b"abc")));
    let outermost = place.object(&detached(&detached(b"abc")));
    place.mail("one.eml", &detached(&detached(&detached(b"abc"))));
    ended(&place.store(&["gc", "--delete"], &["one.eml"]), 0);
    assert!(inner.exists() && outer.exists() && outermost.exists());
    let output = place.store(&["gc"], &["mail.mbox"]);
    assert_eq!(stdout(&output).lines().count(), 3);
    ended(&place.store(&["gc", "--delete"], &["mail.mbox"]), 0);
    assert!(!inner.exists() && !outer.exists() && !outermost.exists());
}

#[test]
fn a_source_that_is_not_read_whole_stops_a_deletion() {
    let gzip: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    let mut twice = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    twice.write_all(gzip).unwrap();
    let twice = twice.finish().unwrap();
    let cases: [(&str, &[u8]); 17] = [
        ("mail/archive.mbox.gz", &gzip[..15]),
        ("mail/twice.mbox.gz", &twice),
        ("mail/archive.zip", b"PK\x03\x04abc"),
        ("mail/archive.pst", b"!BDNabc"),
        ("mail/m.1", b"2 M1e C4d7b3f56\n"),
        ("mail/x.msg", b""),
        ("mail/x.gz", b""),
        ("mail/x.zip", b""),
        ("mail/x.dbx", b""),
        ("mail/x.pst", b""),
        ("mail/x.olm", b""),
        ("mail/x.eml", &[0; 80]),
        ("Maildir/new/6", b"%PDF-1.4\n1 0 obj\n"),
        ("Maildir/cur/1:2,S", &twice),
        ("Maildir/cur/2:2,S", b"CRYPTED\x03\x07\x02\0\0"),
        ("Maildir/cur/3:2,S", b"\0\x01\x02\x03encrypted\0"),
        ("Maildir/new/4", b"Dovecot-LZ4\r*\x9b\xc5\0"),
    ];
    for (name, content) in cases {
        let place = Place::new();
        let object = place.object(b"abc");
        for folder in ["mail", "Maildir/cur", "Maildir/new", "Maildir/tmp"] {
            fs::create_dir_all(place.path(folder)).unwrap();
        }
        place.mail(
            "mail/x.mbox",
            b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n",
        );
        place.mail("Maildir/dovecot.index", b"\0\x01\x02index\0");
        place.mail("Maildir/new/5", b"Subject: x\n\n");
        let source = name.split('/').next().unwrap();
        ended(&place.store(&["gc"], &[source]), 0);
        place.mail(name, content);
        let output = place.store(&["gc", "--delete"], &["mail.mbox", source]);
        ended(&output, 1);
        assert!(object.exists(), "{name}");
        assert!(
            stderr(&output).contains(name.rsplit('/').next().unwrap()),
            "{}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains("nothing was removed"),
            "{}",
            stderr(&output)
        );
        // The list contains the objects without a reference in the files that were read.
        assert_eq!(stdout(&output), format!("{} 3\n", beneath(b"abc")));
    }
}

#[test]
fn what_is_no_mailbox_or_not_there_stops_a_deletion() {
    let place = Place::new();
    let object = place.object(b"abc");
    place.mail("empty/none.bin", b"\0\x01\x02\x03");
    place.mail("binary", b"\0\x01\x02\x03");
    place.mail(
        "linked/x.mbox",
        b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n",
    );
    symlink(place.path("nowhere"), place.path("linked/link")).unwrap();
    for source in ["nothing", "empty", "binary", "linked"] {
        let output = place.store(&["gc", "--delete"], &["mail.mbox", source]);
        ended(&output, 1);
        assert!(object.exists(), "{source}");
    }
    // The target of a symbolic link is read.
    place.mail("nowhere", &detached(b"abc"));
    ended(&place.store(&["gc", "--delete"], &["linked"]), 0);
    assert!(object.exists());
    symlink(place.path("linked"), place.path("linked/again")).unwrap();
    ended(&place.store(&["gc", "--delete"], &["linked"]), 0);
    ended(&place.store(&["gc", "--delete"], &["mail.mbox"]), 0);
    assert!(!object.exists());
}

/// The superuser can read every file, so the program is run as another user for this test.
#[test]
fn what_may_not_be_read_stops_a_deletion() {
    const TEST: &str = "what_may_not_be_read_stops_a_deletion";
    let place = Place::new();
    let Some(mut command) = unprivileged(TEST, &place.path("")) else {
        return;
    };
    let object = place.object(b"abc");
    place.mail(
        "closed/x.mbox",
        b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n",
    );
    place.mail("closed/y", b"");
    let mut folders = vec![place.path("")];
    while let Some(folder) = folders.pop() {
        // This user can read and write the store, so only the unreadable file stops the run.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let entries = fs::read_dir(&folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        folders.extend(paths.filter(|path| path.is_dir()));
    }
    command.args(["store", "gc", "--delete", "store", "mail.mbox", "closed"]);
    command.current_dir(place.path(""));
    fs::set_permissions(place.path("closed/y"), fs::Permissions::from_mode(0o0)).unwrap();
    let output = command.output().unwrap();
    ended(&output, 1);
    assert!(object.exists());
    assert!(stderr(&output).contains("closed/y"), "{}", stderr(&output));
    fs::set_permissions(place.path("closed/y"), fs::Permissions::from_mode(0o644)).unwrap();
    ended(&command.output().unwrap(), 0);
    assert!(!object.exists());
}

/// Broken links and truncated files must not count as read.
#[test]
fn what_is_no_file_of_mail_stops_a_deletion_whoever_runs_it() {
    for name in ["truncated.gz", "loop", "fifo"] {
        let place = Place::new();
        let object = place.object(b"abc");
        place.mail(
            "odd/x.mbox",
            b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n",
        );
        let odd = place.path("odd").join(name);
        match name {
            "loop" => symlink(&odd, &odd).unwrap(),
            "fifo" => {
                let made = Command::new("mkfifo").arg(&odd).status().unwrap();
                assert!(made.success());
            }
            _ => fs::write(&odd, b"\x1f\x8b\x08\0\0").unwrap(),
        }
        let named = format!("odd/{name}");
        for source in ["odd", &named] {
            ended(&place.store(&["gc", "--delete"], &[source]), 1);
            assert!(object.exists(), "{source}");
        }
        let output = place.store(&["gc", "--delete"], &["odd"]);
        ended(&output, 1);
        let said = stderr(&output);
        assert!(said.contains(&format!("odd/{name}")), "{said}");
        fs::remove_file(&odd).unwrap();
        ended(&place.store(&["gc", "--delete"], &["odd"]), 0);
        assert!(!object.exists(), "{name}");
    }
}

#[test]
fn gc_lists_without_waiting_and_deletes_only_under_an_exclusive_lock() {
    let place = Place::new();
    let object = place.object(b"abc");
    let lock = File::create(place.path("store/.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockShared).unwrap();
    ended(&place.store(&["gc"], &["mail.mbox"]), 0);
    let output = std::thread::scope(|scope| {
        let collection = scope.spawn(|| place.store(&["gc", "--delete"], &["mail.mbox"]));
        std::thread::sleep(Duration::from_millis(500));
        // Another program updates the modification time, as `detach` does, and then releases the lock.
        assert!(object.exists());
        File::options()
            .write(true)
            .open(&object)
            .unwrap()
            .set_modified(SystemTime::now())
            .unwrap();
        drop(lock);
        collection.join().unwrap()
    });
    ended(&output, 0);
    assert!(object.exists());
    assert_eq!(stdout(&output), "");
}

#[test]
fn invalid_arguments_of_check_and_gc_are_refused() {
    let place = Place::new();
    let object = place.object(b"abc");
    ended(&place.store(&["gc", "--delete"], &[]), 2);
    ended(&place.store(&["gc"], &[]), 2);
    ended(&place.store(&["check", "--delete"], &["mail.mbox"]), 2);
    ended(&place.store(&["collect"], &["mail.mbox"]), 2);
    let output = embody()
        .args(["store", "gc"])
        .arg(place.path("none"))
        .arg(place.path("mail.mbox"))
        .output()
        .unwrap();
    ended(&output, 2);
    assert!(!place.path("none").exists());
    assert!(object.exists());
    // Standard input cannot be read twice, and `-` does not mean the file with this name.
    place.mail("-", &detached(b"abc"));
    for action in ["check", "gc"] {
        let mut command = embody();
        command.args(["store", action, "store", "-"]);
        let output = command.current_dir(place.path("")).output().unwrap();
        ended(&output, 2);
        assert!(stderr(&output).contains("standard input"));
        let mut command = embody();
        command.args(["store", action, "store", "./-"]);
        let output = command.current_dir(place.path("")).output().unwrap();
        ended(&output, 0);
    }
}

#[test]
fn what_cannot_be_read_is_said_once() {
    let place = Place::new();
    for action in ["check", "gc"] {
        let output = place.store(&[action], &["mail.mbox", "nothing"]);
        ended(&output, 1);
        let said = stderr(&output);
        let named = place.path("nothing").display().to_string();
        assert_eq!(said.matches(&named).count(), 1, "{said}");
    }
}
