//! Converting an mbox in place while other programs deliver to it: each kind of lock, mail that arrives while the lock is not
//! held, and programs that rewrite the mailbox (docs/mailbox-internals.md).
#![cfg(unix)]

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::bounded::ended;
use crate::common::mailboxes::{Expand, in_place, mbox};
use crate::common::programs::again;
use embody::mailbox::{Conversion, Message, Options, ReadOptions, Transform};
use embody::{Edits, Error};

const ROLE: &str = "EMBODY_TEST_ROLE";
const PATH: &str = "EMBODY_TEST_PATH";
/// Time limit, sufficient for a large number in EMBODY_RUNS.
const PATIENCE: Duration = Duration::from_secs(12 * 3600);
const NEW: Expand = Expand("what was fetched");

fn mail(deliverer: &str, number: usize) -> String {
    let mark = if number.is_multiple_of(3) {
        "EXPAND-ME\n"
    } else {
        ""
    };
    format!("From d@e Thu Jan  1 00:00:00 1970\nSubject: x\n\nX {deliverer} {number}.\n{mark}\n")
}

/// Appends with a dotlock only, as procmail without other locks and older programs do.
fn under_dotlock(path: &Path, append: impl Fn()) {
    let lock = PathBuf::from(format!("{}.lock", path.display()));
    let begun = Instant::now();
    while let Err(error) = OpenOptions::new().write(true).create_new(true).open(&lock) {
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(begun.elapsed() < PATIENCE, "the lock stays");
        sleep(Duration::from_micros(300));
    }
    append();
    fs::remove_file(&lock).unwrap();
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Not a test, but a child process that delivers mail with one kind of lock, until a file tells it to stop.
#[test]
fn a_deliverer_in_a_process_of_its_own() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(PATH)) else {
        return;
    };
    let path = PathBuf::from(path);
    let mut count = 0;
    let begun = Instant::now();
    while !path.with_extension("enough").exists() {
        // The parent process may have failed.
        assert!(begun.elapsed() < PATIENCE, "nobody says that it is enough");
        let mail = mail(&role, count);
        if role == "dotlock" {
            under_dotlock(&path, || append(&path, &mail));
        } else {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
            file.write_all(mail.as_bytes()).unwrap();
        }
        count += 1;
        sleep(Duration::from_millis(count as u64 % 20));
    }
    fs::write(path.with_extension(role), count.to_string()).unwrap();
}

fn deliverer(role: &str, path: &Path) -> Child {
    let mut command: Command = again("mailbox::deliverers::a_deliverer_in_a_process_of_its_own");
    command.env(ROLE, role).env(PATH, path);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// `EMBODY_RUNS=1000` runs the test for a night.
#[test]
fn deliverers_with_one_kind_of_lock_only_lose_no_message() {
    let runs: usize = std::env::var("EMBODY_RUNS").map_or(40, |runs| runs.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(20)).unwrap();
    let roles = ["fcntl", "dotlock"];
    let mut deliverers = roles.map(|role| deliverer(role, &path));
    let mut changed = 0;
    for run in 0..runs {
        let options = Options {
            waits: run % 2 == 1,
            ..Options::default()
        };
        changed += Conversion::of(&path)
            .in_place()
            .options(&options)
            .run(&NEW, &())
            .unwrap()
            .changed;
        sleep(Duration::from_millis(5));
    }
    fs::write(path.with_extension("enough"), "").unwrap();
    for deliverer in &mut deliverers {
        assert!(ended(deliverer).success());
    }
    in_place(&path, &NEW).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for role in roles {
        let digits = fs::read_to_string(path.with_extension(role)).unwrap();
        let count: usize = digits.parse().unwrap();
        assert!(count > runs, "{role} delivered {count} only");
        for number in 0..count {
            let mark = format!("X {role} {number}.\n");
            assert_eq!(text.matches(&mark).count(), 1, "{mark} of {count}");
        }
        println!("{role}: {count} beside {runs} runs");
    }
    assert!(changed > runs as u64 / 2 && !text.contains("EXPAND-ME"));
}

/// Calls a function each time a message is processed, with the number of earlier calls.
struct Meanwhile<F: Fn(usize) + Sync>(F, AtomicUsize);

impl<F: Fn(usize) + Sync> Meanwhile<F> {
    fn new(happens: F) -> Self {
        Self(happens, AtomicUsize::new(0))
    }
}

impl<F: Fn(usize) + Sync> Transform for Meanwhile<F> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        NEW.next_touch(bytes)
    }

    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        (self.0)(self.1.fetch_add(1, Ordering::SeqCst));
        NEW.transform(message)
    }
}

/// Returns options with which one message is processed at a time, and no other program is locked out.
fn patiently() -> Options {
    Options {
        read: ReadOptions {
            jobs: 1,
            max_in_flight: 1,
            ..ReadOptions::default()
        },
        waits: true,
        lock_timeout: Duration::from_secs(30),
        ..Options::default()
    }
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn mail_that_comes_while_a_slow_transform_works_is_let_in_and_worked_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(9)).unwrap();
    let began = Instant::now();
    let slow = Meanwhile::new(|before| {
        sleep(Duration::from_millis(50));
        if before < 2 {
            under_dotlock(&path, || append(&path, &mail("late", before * 3)));
        }
    });
    let summary = Conversion::of(&path)
        .in_place()
        .options(&patiently())
        .run(&slow, &())
        .unwrap();
    assert_eq!(
        (summary.messages, summary.changed, summary.late),
        (11, 5, 0)
    );
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "the deliverer was kept out"
    );
    let all = [
        mbox(9),
        mail("late", 0).into_bytes(),
        mail("late", 3).into_bytes(),
    ]
    .concat();
    let expected = String::from_utf8(all)
        .unwrap()
        .replace("EXPAND-ME", "what was fetched");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    assert_eq!(
        (summary.bytes_out, names(folder.path())),
        (expected.len() as u64, 1)
    );
}

#[test]
fn mail_delivered_without_pause_is_converted_by_a_later_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    fs::write(&path, mbox(3)).unwrap();
    let ever = Meanwhile::new(|before| append(&path, &mail("late", before * 3)));
    let summary = Conversion::of(&path)
        .in_place()
        .options(&patiently())
        .run(&ever, &())
        .unwrap();
    assert_eq!(summary.late, 1, "{summary:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("EXPAND-ME").count(), 1);
    let late = summary.messages - 3;
    for number in 0..late {
        assert_eq!(
            text.matches(&format!("X late {}.\n", number * 3)).count(),
            1
        );
    }
    in_place(&path, &NEW).unwrap();
    assert!(!fs::read_to_string(&path).unwrap().contains("EXPAND-ME"));
}

#[test]
fn a_mailbox_that_another_program_rewrites_meanwhile_is_read_again_or_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box");
    // The length is unchanged, so it does not show the change. The first variant writes to the same file, the second one
    // replaces it.
    let rewritten = |number: usize| {
        let old = String::from_utf8(mbox(9)).unwrap();
        old.replacen(
            "Subject: message",
            &format!("Subject: massag{}", number % 10),
            1,
        )
    };
    let in_the_same_file = |number: usize| {
        let mut file = File::options().write(true).open(&path).unwrap();
        file.write_all(rewritten(number).as_bytes()).unwrap();
    };
    let in_another_file = |number: usize| {
        let other = folder.path().join("other");
        fs::write(&other, rewritten(number)).unwrap();
        fs::rename(&other, &path).unwrap();
    };
    for rewrite in [
        &in_the_same_file as &(dyn Fn(usize) + Sync),
        &in_another_file,
    ] {
        fs::write(&path, mbox(9)).unwrap();
        let once = Meanwhile::new(|before| {
            if before == 1 {
                rewrite(1);
            }
        });
        let summary = Conversion::of(&path)
            .in_place()
            .options(&patiently())
            .run(&once, &())
            .unwrap();
        assert_eq!((summary.messages, summary.changed), (9, 3));
        let expected = rewritten(1).replace("EXPAND-ME", "what was fetched");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);

        fs::write(&path, mbox(9)).unwrap();
        let always = Meanwhile::new(rewrite);
        let outcome = Conversion::of(&path)
            .in_place()
            .options(&patiently())
            .run(&always, &());
        assert!(matches!(outcome, Err(Error::Changed { .. })), "{outcome:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), rewritten(8));
        assert_eq!(names(folder.path()), 1);
    }
}
