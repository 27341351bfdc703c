//! Converting a mailbox in place is safe: kills, full disks, deliveries, changes by other programs (docs/mailbox-internals.md).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::bounded::ended;
use crate::common::folder::Folder;
use crate::common::mailboxes::{Expand, Numbers, in_place, mbox, skipped, to};
use crate::common::programs::{again, stderr};
use embody::mailbox::{Conversion, Message, Options, Stop, Transform};
use embody::{Edits, Error};

/// Environment variables for a child process: its task in a test, and its file.
const ROLE: &str = "EMBODY_TEST_ROLE";
const PATH: &str = "EMBODY_TEST_PATH";
const DELIVERIES: usize = 1000;

const NEW: Expand = Expand("what was\nfetched\n\nFrom far away at 10:00\n");

fn new_of(old: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, old).unwrap();
    to(&path, &folder.path().join("out"), &NEW).unwrap();
    let new = fs::read(folder.path().join("out")).unwrap();
    assert_ne!(new, old);
    new
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns a command that runs this program again, with [`a_part_played_in_a_child_process`] only.
fn child(role: &str, path: &Path) -> Command {
    let mut command = again("mailbox::convert_safety::a_part_played_in_a_child_process");
    command
        .env(ROLE, role)
        .env(PATH, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Not a test, but the task of a child process that other tests start and kill.
#[test]
fn a_part_played_in_a_child_process() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(PATH)) else {
        return;
    };
    let path = PathBuf::from(path);
    let outcome = match role.as_str() {
        "convert" => in_place(&path, &NEW).map(|_| ()).map_err(io::Error::other),
        "backup" => {
            let options = Options {
                backup: Some(".old".into()),
                ..Options::default()
            };
            Conversion::of(&path)
                .in_place()
                .options(&options)
                .run(&NEW, &())
                .map(|_| ())
                .map_err(io::Error::other)
        }
        "deliver" => deliver(&path),
        _ => panic!("{role}?"),
    };
    if let Err(error) = outcome {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        eprintln!("{error}: {cause:?}");
        std::process::exit(1);
    }
}

/// Delivers as procmail or Dovecot do: dotlock, open, fcntl lock, append.
fn deliver(path: &Path) -> io::Result<()> {
    let lock = path.with_extension("lock");
    for number in 0..DELIVERIES {
        while let Err(error) = OpenOptions::new().write(true).create_new(true).open(&lock) {
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            std::thread::sleep(Duration::from_micros(300));
        }
        let mut file = OpenOptions::new().append(true).open(path)?;
        rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive)?;
        let mark = if number % 10 == 0 { "EXPAND-ME\n" } else { "" };
        file.write_all(
            format!(
                "From d@e Thu Jan  1 00:00:00 1970\nSubject: x\n\nX delivery {number}.\n{mark}\n"
            )
            .as_bytes(),
        )?;
        drop(file);
        fs::remove_file(&lock)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Returns a directory in memory, if possible: 200 kills need many writes and syncs.
fn fast_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

#[test]
fn after_200_kills_at_random_instants_the_file_is_the_old_or_the_new_one() {
    let folder = fast_folder();
    let path = folder.path().join("box");
    let old = mbox(600);
    let new = new_of(&old);
    fs::write(&path, &old).unwrap();
    let mut whole = u64::MAX;
    for _ in 0..5 {
        fs::write(&path, &old).unwrap();
        let start = Instant::now();
        assert!(child("convert", &path).status().unwrap().success());
        whole = whole.min(start.elapsed().as_micros() as u64);
    }
    let mut numbers = Numbers(7);
    let (mut was_old, mut was_new, mut killed) = (0, 0, 0);
    for round in 0..1000 {
        if killed == 200 {
            break;
        }
        fs::write(&path, &old).unwrap();
        let backup = round % 4 < 2;
        let mut run = child(if backup { "backup" } else { "convert" }, &path)
            .spawn()
            .unwrap();
        // Most of the time is spent after the exchange, when the run waits for late deliveries.
        let span = [whole * 3 / 2, whole / 4][round % 2];
        std::thread::sleep(Duration::from_micros(numbers.below(span)));
        run.kill().unwrap();
        killed += u32::from(!ended(&mut run).success());
        let found = fs::read(&path).unwrap();
        if found == old {
            was_old += 1;
        } else {
            assert!(
                found == new,
                "round {round}: neither the old nor the new file"
            );
            was_new += 1;
        }
        let backup_path = folder.path().join("box.old");
        if backup_path.exists() {
            assert!(fs::read(&backup_path).unwrap() == old);
        }
        let options = Options {
            backup: (backup && found == old).then(|| ".old".into()),
            ..Options::default()
        };
        Conversion::of(&path)
            .in_place()
            .options(&options)
            .run(&NEW, &())
            .unwrap();
        assert!(fs::read(&path).unwrap() == new, "the second run finishes");
        let _ = fs::remove_file(backup_path);
        assert_eq!(
            names(folder.path()),
            ["box"],
            "and takes away what was left"
        );
    }
    println!("{killed} killed, {was_old} old, {was_new} new");
    assert!(killed == 200 && was_old > 20 && was_new > 0);
}

#[test]
fn a_concurrent_deliverer_loses_no_message() {
    let folder = fast_folder();
    let path = folder.path().join("box");
    fs::write(&path, mbox(50)).unwrap();
    let mut deliverer = child("deliver", &path).spawn().unwrap();
    let mut runs = 0;
    let until = Instant::now() + Duration::from_secs(50);
    while deliverer.try_wait().unwrap().is_none() {
        in_place(&path, &NEW).unwrap();
        runs += 1;
        assert!(Instant::now() < until, "the deliverer starves");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(ended(&mut deliverer).success());
    let summary = in_place(&path, &NEW).unwrap();
    assert_eq!(summary.messages, 50 + DELIVERIES as u64);
    let text = fs::read_to_string(&path).unwrap();
    for number in 0..DELIVERIES {
        let mark = format!("X delivery {number}.\n");
        assert_eq!(text.matches(&mark).count(), 1, "{mark}");
    }
    assert!(!text.contains("EXPAND-ME"));
    assert!(runs > 3, "{runs} runs");
    assert_eq!(names(folder.path()), ["box"]);
}

#[test]
fn a_full_disk_leaves_the_source_and_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=600k", "tmpfs"])
        .arg(folder.path())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        skipped("mounting a small tmpfs needs root");
        return;
    }
    let path = folder.path().join("box");
    let old = mbox(700);
    assert!((300_000..600_000).contains(&old.len()), "{}", old.len());
    let outcomes = fs::write(&path, &old).map(|()| {
        (
            in_place(&path, &NEW),
            to(&path, &folder.path().join("out"), &NEW),
            fs::read(&path),
            names(folder.path()),
        )
    });
    // Unmounts lazily: a program that another test is starting may have inherited open files until it is executed.
    let unmounted = Command::new("umount").arg("-l").arg(folder.path()).status();
    assert!(unmounted.unwrap().success());
    let (in_place, to, left, names) = outcomes.unwrap();
    assert!(matches!(in_place, Err(Error::Write { .. })), "{in_place:?}");
    assert!(matches!(to, Err(Error::Write { .. })), "{to:?}");
    assert!(left.unwrap() == old);
    assert_eq!(names, ["box"]);
}

#[test]
fn a_file_size_limit_leaves_the_source_and_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    let old = mbox(500);
    fs::write(&path, &old).unwrap();
    // `ulimit -f` counts blocks of 512 bytes. The signal is ignored, so the write fails instead.
    let limited = child("convert", &path);
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\""])
        .arg(limited.get_program())
        .args(limited.get_args())
        .envs(
            limited
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(stderr(&output).contains("File too large"), "{output:?}");
    assert!(!stderr(&output).contains(".embody-"), "{output:?}");
    assert!(fs::read(&path).unwrap() == old);
    assert_eq!(names(folder.path()), ["box"]);
}

#[test]
fn a_full_device_is_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(3)).unwrap();
    let outcome = to(&path, Path::new("/dev/full"), &NEW);
    assert!(matches!(outcome, Err(Error::Write { .. })), "{outcome:?}");
}

/// Calls a function when the first message is processed.
struct Meanwhile<F: Fn() + Sync>(F);

impl<F: Fn() + Sync> Transform for Meanwhile<F> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        NEW.next_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        if message.number <= 3 {
            (self.0)();
        }
        NEW.transform(message)
    }
}

#[test]
fn a_source_that_changes_meanwhile_stops_the_run_and_keeps_the_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    let append = Meanwhile(|| {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"From late 10:00\n\nlate\n").unwrap();
    });
    for outcome in [
        in_place(&path, &append),
        to(&path, &folder.path().join("out"), &append),
    ] {
        assert!(matches!(outcome, Err(Error::Changed { .. })), "{outcome:?}");
    }
    let late = b"From late 10:00\n\nlate\n";
    assert!(fs::read(&path).unwrap() == [&mbox(9), late.as_slice(), late].concat());
    assert_eq!(names(folder.path()), ["box"]);

    let replace = Meanwhile(|| {
        fs::write(folder.path().join("other"), mbox(9)).unwrap();
        fs::rename(folder.path().join("other"), &path).unwrap();
    });
    let outcome = in_place(&path, &replace);
    assert!(matches!(outcome, Err(Error::Changed { .. })), "{outcome:?}");
    assert!(fs::read(&path).unwrap() == mbox(9));
}

#[test]
fn a_vanished_folder_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("box");
    fs::write(&path, mbox(9)).unwrap();
    let vanish = Meanwhile(|| {
        let _ = fs::rename(&inner, folder.path().join("elsewhere"));
    });
    assert!(in_place(&path, &vanish).is_err());
    assert!(fs::read(folder.path().join("elsewhere/box")).unwrap() == mbox(9));
}

#[test]
fn a_stop_leaves_the_source_and_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(900)).unwrap();
    let stop = Stop::default();
    let asked = Meanwhile(|| stop.request());
    let options = Options::default();
    for outcome in [
        Conversion::of(&path)
            .in_place()
            .options(&options)
            .stop(&stop)
            .run(&asked, &()),
        Conversion::of(&path)
            .to(&folder.path().join("out"))
            .options(&options)
            .stop(&stop)
            .run(&asked, &()),
    ] {
        assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
    }
    assert!(fs::read(&path).unwrap() == mbox(900));
    assert_eq!(names(folder.path()), ["box"]);
}

#[test]
fn what_is_replaced_keeps_its_mode_owner_time_attributes_and_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let time = std::time::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_000);
    file.set_modified(time).unwrap();
    // Only root can change the owner of a file. For other users there is no owner to keep.
    let given = rustix::fs::fchown(&file, Some(rustix::fs::Uid::from_raw(12345)), None).is_ok();
    let flags = rustix::fs::XattrFlags::empty();
    let attribute = rustix::fs::fsetxattr(&file, "user.embody", b"kept", flags).is_ok();
    let link = folder.path().join("link");
    symlink("box", &link).unwrap();

    in_place(&link, &NEW).unwrap();
    assert!(fs::read(&path).unwrap() == new_of(&mbox(9)));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o640);
    assert_eq!(metadata.modified().unwrap(), time);
    assert!(!given || metadata.uid() == 12345);
    if attribute {
        let mut value = [0; 9];
        let length = rustix::fs::getxattr(&path, "user.embody", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept");
    }
    assert_eq!(names(folder.path()), ["box", "link"]);
}

#[test]
fn a_file_with_several_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    fs::hard_link(&path, folder.path().join("other")).unwrap();
    assert!(matches!(in_place(&path, &NEW), Err(Error::Write { .. })));
    assert!(fs::read(&path).unwrap() == mbox(9));
    assert_eq!(names(folder.path()), ["box", "other"]);
}

#[test]
fn a_backup_is_made_once_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    let options = Options {
        backup: Some(".old".into()),
        ..Options::default()
    };
    let run = |path: &Path| {
        Conversion::of(path)
            .in_place()
            .options(&options)
            .run(&NEW, &())
    };
    run(&path).unwrap();
    assert!(fs::read(folder.path().join("box.old")).unwrap() == mbox(9));
    assert!(fs::read(&path).unwrap() == new_of(&mbox(9)));
    run(&path).unwrap();
    fs::write(&path, mbox(12)).unwrap();
    assert!(run(&path).is_err());
    assert!(fs::read(folder.path().join("box.old")).unwrap() == mbox(9));
    assert!(fs::read(&path).unwrap() == mbox(12));
    assert_eq!(names(folder.path()), ["box", "box.old"]);
}

#[test]
fn a_lock_held_by_another_is_waited_for_and_then_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    fs::write(folder.path().join("box.lock"), "0").unwrap();
    let options = Options {
        lock_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let outcome = Conversion::of(&path)
        .in_place()
        .options(&options)
        .run(&NEW, &());
    assert!(matches!(outcome, Err(Error::Locked { .. })), "{outcome:?}");
    assert_eq!(names(folder.path()), ["box", "box.lock"]);
}

#[test]
fn nothing_that_exists_is_overwritten_by_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    fs::write(folder.path().join("out"), "mine").unwrap();
    assert!(to(&path, &folder.path().join("out"), &NEW).is_err());
    assert!(to(&path, &path, &NEW).is_err());
    assert_eq!(fs::read(folder.path().join("out")).unwrap(), b"mine");
    assert!(fs::read(&path).unwrap() == mbox(9));
}

#[test]
fn new_mailbox_is_readable_only_for_its_owner() {
    let folder = Folder::new();
    let mail = |name: &str| {
        format!("From: a@example.org\nSubject: {name}\nMessage-ID: <{name}@example.org>\n\nx\n")
    };
    folder.write_mbox("one.mbox", &[mail("1")]);
    folder.write("messages/1.eml", mail("2"));
    folder.write("Maildir/cur/1.M1P1.h:2,S", mail("3"));
    fs::create_dir(folder.at("Maildir/new")).unwrap();
    for line in [
        "convert Maildir --output-format mbox",
        "convert messages --output-format mbox",
        "convert one.mbox --output-format mboxrd",
        "merge one.mbox",
        "merge one.mbox messages",
    ] {
        folder.run(&format!("{line} --output new.mbox"));
        let mode = fs::metadata(folder.at("new.mbox"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{line}");
        fs::remove_file(folder.at("new.mbox")).unwrap();
    }
}
