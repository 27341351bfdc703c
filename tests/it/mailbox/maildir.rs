//! Maildirs: names, flags, sizes, renamed files, and Dovecot as the reader (docs/mailboxes.md).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::bounded::ended;
use crate::common::mailboxes::{Expand, Look, Numbers, in_place, mbox, skipped, to};
use crate::common::programs::{again, embody, stderr};
use embody::mailbox::{Conversion, Message, Options, ReadOptions, Stop, Transform};
use embody::{Edits, Error};

const PATH: &str = "EMBODY_TEST_PATH";
const NEW: Expand = Expand("what was\nfetched");

fn message(number: usize) -> String {
    let mark = if number.is_multiple_of(3) {
        "EXPAND-ME\n"
    } else {
        ""
    };
    format!(
        "From: a@example.org\nSubject: {number}\nMessage-ID: <{number}@example.org>\n\nFrom x\n{mark}"
    )
}

fn sized(base: &str, content: &str, flags: &str) -> String {
    let wire = content.len() + content.matches('\n').count();
    format!("{base},S={},W={wire}{flags}", content.len())
}

/// Creates a Maildir of `count` messages, some with sizes in their names, and with a subfolder.
fn make(folder: &Path, count: usize) {
    for part in ["cur", "new", "tmp", ".Sent/cur", ".Sent/new", ".Sent/tmp"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::write(folder.join("dovecot.index.log"), "From: nobody\n\n").unwrap();
    for number in 0..count {
        let base = format!("10000{number:05}.M1P2.host");
        let content = message(number);
        let (part, name) = match number % 4 {
            0 => ("cur", sized(&base, &content, ":2,FS")),
            1 => ("cur", format!("{base}:2,S")),
            2 => ("new", sized(&base, &content, "")),
            _ => (".Sent/cur", format!("{base}:2,")),
        };
        fs::write(folder.join(part).join(name), content).unwrap();
    }
}

/// Returns every message by its directory and the unique part of its name.
fn messages(folder: &Path) -> BTreeMap<String, Vec<(String, String)>> {
    let mut all: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for part in ["cur", "new", ".Sent/cur", ".Sent/new"] {
        for entry in fs::read_dir(folder.join(part)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let base = name.split([',', ':']).next().unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            all.entry(format!("{part}/{base}"))
                .or_default()
                .push((name, text));
        }
    }
    all
}

fn expected(
    before: &BTreeMap<String, Vec<(String, String)>>,
) -> BTreeMap<String, Vec<(String, String)>> {
    let mut after = before.clone();
    for (name, text) in after.values_mut().flatten() {
        *text = text.replace("EXPAND-ME", NEW.0);
        if name.contains(",S=") {
            let base = name.split(',').next().unwrap().to_owned();
            let flags = name.find(':').map_or("", |at| &name[at..]).to_owned();
            *name = sized(&base, text, &flags);
        }
    }
    after
}

#[test]
fn changed_messages_keep_flags_mode_and_time_and_their_sizes_are_corrected() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 24);
    let old = messages(folder.path());
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (key, files) in &old {
        let path = folder.path().join(key).with_file_name(&files[0].0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let out = tempfile::tempdir().unwrap();
    let copy = to(folder.path(), &out.path().join("copy"), &NEW).unwrap();
    let summary = in_place(folder.path(), &NEW).unwrap();
    assert_eq!(copy, summary);
    // The file next to cur and new is read as a message, too.
    assert_eq!((summary.messages, summary.changed), (25, 8));
    assert_eq!((summary.mailboxes, summary.skipped_files), (3, 0));
    for root in [folder.path().to_owned(), out.path().join("copy")] {
        let new = messages(&root);
        assert_eq!(new, expected(&old));
        for (key, files) in &new {
            let path = root.join(key).with_file_name(&files[0].0);
            let metadata = fs::metadata(path).unwrap();
            assert_eq!(metadata.mode() & 0o777, 0o640);
            assert_eq!(metadata.modified().unwrap(), time);
        }
        assert_eq!(fs::read_dir(root.join("tmp")).unwrap().count(), 0);
    }
    let again = in_place(folder.path(), &NEW).unwrap();
    assert_eq!((again.messages, again.changed), (25, 0));
    in_place(folder.path(), &Look).unwrap();
    assert_eq!(messages(folder.path()), expected(&old));
}

/// Calls a function for each message while it is transformed.
struct Meanwhile<F>(F);

impl<F: Fn(&Path) + Sync> Transform for Meanwhile<F> {
    fn next_touch(&self, bytes: &[u8]) -> Option<usize> {
        NEW.next_touch(bytes)
    }
    fn transform(&self, message: &Message<'_>) -> Result<(Edits, ()), Error> {
        (self.0)(message.source);
        NEW.transform(message)
    }
}

#[test]
fn message_that_another_program_renames_before_it_is_replaced_is_replaced_under_its_new_name() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 7);
    let before = messages(folder.path());
    let rename = Meanwhile(|source: &Path| {
        let cur = source.parent().unwrap().with_file_name("cur");
        let name = source.file_name().unwrap().to_str().unwrap();
        let base = name.split(':').next().unwrap();
        fs::rename(source, cur.join(format!("{base}:2,R"))).unwrap();
    });
    let summary = in_place(folder.path(), &rename).unwrap();
    assert_eq!((summary.changed, summary.moved), (3, 0));
    let done = messages(folder.path());
    assert_eq!(done.len(), 7);
    for (key, files) in done {
        let [(name, text)] = files.as_slice() else {
            panic!("{key}: {files:?}");
        };
        assert!(!text.contains("EXPAND-ME"), "{name}");
        let is_changed = text.contains(NEW.0);
        assert_eq!(name.ends_with(":2,R"), is_changed, "{name}");
        let stays = before.get(&key).is_some_and(|files| files[0].1 == *text);
        assert!(stays || is_changed, "{name}");
        if is_changed && name.contains(",S=") {
            assert!(name.contains(&format!(",S={},", text.len())), "{name}");
        }
    }
}

#[test]
fn message_that_another_program_moves_to_another_folder_is_left_there_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 3);
    let other = folder.path().join("elsewhere");
    fs::create_dir(&other).unwrap();
    let refile = Meanwhile(|source: &Path| {
        fs::rename(source, other.join(source.file_name().unwrap())).unwrap();
    });
    let summary = in_place(folder.path(), &refile).unwrap();
    assert_eq!((summary.changed, summary.moved), (0, 1));
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    let left = messages(folder.path());
    assert_eq!(left.len(), 2);
}

/// A client that opens a mailbox moves its messages from `new` to `cur`.
#[test]
fn messages_that_are_renamed_while_a_maildir_is_converted_are_all_in_the_result() {
    const COUNT: usize = 300;
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("box");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(root.join(part)).unwrap();
    }
    let name = |number: usize| format!("10000{number:05}.M1P2.host");
    for number in 0..COUNT {
        fs::write(root.join("new").join(name(number)), message(number)).unwrap();
    }
    for (round, format) in ["maildir", "mbox", "thunderbird"].into_iter().enumerate() {
        let output = work.path().join(format!("out{round}"));
        let options = Options {
            output_format: match format {
                "maildir" => embody::mailbox::Format::Maildir,
                "mbox" => embody::mailbox::Format::Mbox,
                _ => embody::mailbox::Format::Thunderbird,
            },
            read: ReadOptions {
                jobs: 1,
                max_in_flight: 1,
                ..ReadOptions::default()
            },
            ..Options::default()
        };
        // When the first message is converted, all others are renamed.
        let once = std::sync::Once::new();
        let open_mailbox = Meanwhile(|_: &Path| {
            once.call_once(|| {
                for part in ["new", "cur"] {
                    for entry in fs::read_dir(root.join(part)).unwrap() {
                        let entry = entry.unwrap();
                        let name = entry.file_name().into_string().unwrap();
                        let base = name.split(':').next().unwrap();
                        let flags = ["", "R", "RS"][round];
                        let to = format!("{base}:2,{flags}");
                        fs::rename(entry.path(), root.join("cur").join(to)).unwrap();
                    }
                }
            });
        });
        let stop = Stop::default();
        let summary = embody::mailbox::Conversion::of(&root)
            .to(&output)
            .options(&options)
            .stop(&stop)
            .run(&open_mailbox, &())
            .unwrap();
        assert_eq!((summary.messages, summary.damaged), (COUNT as u64, 0));
        let read: Vec<String> = embody::mailbox::Messages::new(&output, ReadOptions::default())
            .map(|message| String::from_utf8(message.unwrap().content).unwrap())
            .collect();
        for number in 0..COUNT {
            let id = format!("Message-ID: <{number}@example.org>\n");
            let copies = read.iter().filter(|text| text.contains(&id)).count();
            assert_eq!(copies, 1, "{format}: message {number}");
        }
    }
}

#[test]
fn message_that_is_deleted_during_the_run_is_named_by_every_reader() {
    let folder = tempfile::tempdir().unwrap();
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(folder.path().join("box").join(part)).unwrap();
    }
    let root = folder.path().join("box");
    let last = root.join("cur/2.host:2,");
    for output in [None, Some("maildir"), Some("mbox")] {
        fs::write(root.join("cur/1.host:2,"), message(3)).unwrap();
        fs::write(&last, message(4)).unwrap();
        let delete = Meanwhile(|source: &Path| {
            if source.ends_with("1.host:2,") {
                fs::remove_file(&last).unwrap();
            }
        });
        let options = Options {
            output_format: match output {
                Some("mbox") => embody::mailbox::Format::Mbox,
                _ => embody::mailbox::Format::Auto,
            },
            read: ReadOptions {
                jobs: 1,
                max_in_flight: 1,
                window: 1,
                ..ReadOptions::default()
            },
            ..Options::default()
        };
        let stop = Stop::default();
        let summary = match output {
            None => Conversion::of(&root)
                .in_place()
                .options(&options)
                .stop(&stop)
                .run(&delete, &()),
            Some(name) => {
                let output = folder.path().join(name);
                embody::mailbox::Conversion::of(&root)
                    .to(&output)
                    .options(&options)
                    .stop(&stop)
                    .run(&delete, &())
            }
        };
        let summary = summary.unwrap();
        assert_eq!((summary.messages, summary.damaged), (1, 1), "{output:?}");
    }
}

#[test]
fn next_run_removes_the_second_name_that_a_killed_run_left() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 4);
    let once = messages(folder.path());
    in_place(folder.path(), &NEW).unwrap();
    let done = messages(folder.path());
    let (key, files) = once
        .iter()
        .find(|(_, files)| files[0].0.contains(",S=") && files[0].1.contains("EXPAND-ME"))
        .unwrap();
    let old = folder.path().join(key).with_file_name(&files[0].0);
    fs::write(&old, &files[0].1).unwrap();
    assert_eq!(messages(folder.path())[key].len(), 2);
    in_place(folder.path(), &NEW).unwrap();
    assert_eq!(messages(folder.path()), done);
}

/// Not a test, but the task of a child process that the next test starts and kills.
#[test]
fn a_part_played_in_a_child_process() {
    if let Some(path) = std::env::var_os(PATH) {
        in_place(&PathBuf::from(path), &NEW).unwrap();
    }
}

#[test]
fn after_kills_at_random_instants_every_message_is_the_old_or_the_new_one() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let child = |path: &Path| {
        again("mailbox::maildir::a_part_played_in_a_child_process")
            .env(PATH, path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut numbers = Numbers(3);
    let mut whole = 50_000;
    let (mut partly, mut rounds) = (0, 0);
    for round in 0..40 {
        let path = folder.path().join(round.to_string());
        make(&path, 120);
        let old = messages(&path);
        let new = expected(&old);
        let start = Instant::now();
        let mut run = child(&path);
        if round > 0 {
            std::thread::sleep(Duration::from_micros(numbers.below(whole)));
            run.kill().unwrap();
        }
        ended(&mut run);
        if round == 0 {
            whole = start.elapsed().as_micros() as u64;
        }
        let found = messages(&path);
        assert!(found.keys().eq(old.keys()), "round {round}");
        for (key, files) in &found {
            for file in files {
                assert!(
                    old[key].contains(file) || new[key].contains(file),
                    "{file:?}"
                );
            }
        }
        partly += usize::from(found != old && found != new);
        in_place(&path, &NEW).unwrap();
        assert_eq!(messages(&path), new, "round {round}");
        assert_eq!(fs::read_dir(path.join("tmp")).unwrap().count(), 0);
        assert!(!path.join("embody.lock").exists());
        fs::remove_dir_all(&path).unwrap();
        rounds += 1;
    }
    println!("{rounds} rounds, {partly} of them killed in the middle");
    assert!(partly > 0);
}

#[test]
fn a_link_in_the_place_of_a_message_is_named_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    make(&path("Mail/inbox"), 2);
    fs::create_dir(path("Mail/mh")).unwrap();
    for (name, text) in [
        ("mh/1", &*message(1)),
        ("mh/.mh_sequences", ""),
        ("elsewhere", &*message(3)),
    ] {
        fs::write(path("Mail").join(name), text).unwrap();
    }
    for name in ["inbox/cur/9.link:2,S", "mh/9", "box"] {
        std::os::unix::fs::symlink(path("Mail/elsewhere"), path("Mail").join(name)).unwrap();
    }
    for way in [
        &["--output", "new"][..],
        &["--in-place"],
        &["--in-place", "--dry-run"],
    ] {
        let mut command = embody();
        command.args(["convert", "--verbose", "Mail"]).args(way);
        let output = command.current_dir(folder.path()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for line in [
            "Mail/inbox/cur/9.link:2,S: the file was not read, because it is a symbolic link or not a regular file",
            "Mail/mh/9: the file was not read, because it is a symbolic link or not a regular file",
            "Mail/box: skipped: a symbolic link",
        ] {
            assert!(said.contains(line), "{said}");
        }
    }
    assert_eq!(
        fs::read_to_string(path("Mail/elsewhere")).unwrap(),
        message(3)
    );
}

#[test]
fn a_backup_of_a_maildir_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 4);
    let options = Options {
        backup: Some(".old".into()),
        ..Options::default()
    };
    let outcome = Conversion::of(folder.path())
        .in_place()
        .options(&options)
        .run(&NEW, &());
    assert!(matches!(outcome, Err(Error::Usage(_))));
}

#[test]
fn a_folder_of_everything_keeps_its_shape() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("mail");
    make(&root.join("deep/maildir"), 8);
    fs::write(root.join("box"), mbox(9)).unwrap();
    fs::write(root.join("deep/one.eml"), message(3)).unwrap();
    fs::write(root.join("notes.txt"), "Dear diary,\n").unwrap();
    let out = folder.path().join("out");
    let summary = to(&root, &out, &NEW).unwrap();
    assert_eq!((summary.mailboxes, summary.messages), (5, 19));
    assert_eq!(summary.skipped_files, 1);
    let eml = fs::read_to_string(out.join("deep/one.eml")).unwrap();
    assert_eq!(eml, message(3).replace("EXPAND-ME", NEW.0));
    in_place(&root, &NEW).unwrap();
    assert_eq!(
        fs::read(root.join("box")).unwrap(),
        fs::read(out.join("box")).unwrap()
    );
    assert_eq!(
        messages(&root.join("deep/maildir")),
        messages(&out.join("deep/maildir"))
    );
    assert_eq!(fs::read_to_string(root.join("deep/one.eml")).unwrap(), eml);
    assert!(root.join("notes.txt").exists() && !out.join("notes.txt").exists());

    let nothing = folder.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    fs::write(nothing.join("notes.txt"), "Dear diary,\n").unwrap();
    assert!(matches!(
        to(&nothing, &out, &NEW),
        Err(Error::NotAMailbox { .. })
    ));
}

/// Returns the UIDs and Message-IDs that Dovecot finds, in order. `None` if Dovecot is not installed.
fn dovecot(folder: &Path, location: &str) -> Option<Vec<String>> {
    dovecot_says(folder, location, "uid hdr.message-id size.physical")
}

/// Returns the fields that doveadm fetches of each message, one per line. `None` if doveadm is not installed.
pub(crate) fn dovecot_says(folder: &Path, location: &str, fields: &str) -> Option<Vec<String>> {
    let inbox = format!("mail_location = {location}\nnamespace inbox {{\n  inbox = yes\n}}\n");
    doveadm(
        folder,
        &inbox,
        &["fetch", fields, "mailbox", "INBOX", "all"],
    )
}

/// Returns the lines that doveadm prints. `mail` is the part of its configuration with the location of the mail, in `folder`.
pub(crate) fn doveadm(folder: &Path, mail: &str, arguments: &[&str]) -> Option<Vec<String>> {
    // Dovecot does not read mail as root, so it runs as nobody.
    let (mut user, mut group) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if user == 0 {
        (user, group) = (65534, 65534);
        let owner = format!("{user}:{group}");
        let given = Command::new("chown")
            .args(["-R", &owner])
            .arg(folder)
            .status();
        assert!(given.unwrap().success());
    }
    let log = folder.join("dovecot.log");
    let _ = fs::remove_file(&log);
    let configuration = folder.join("dovecot.conf");
    fs::write(
        &configuration,
        format!(
            "{mail}log_path = {}\nfirst_valid_uid = 0\nfirst_valid_gid = 0\nbase_dir = {}\nssl = no\n\
             mail_uid = {}\nmail_gid = {}\nmbox_write_locks = fcntl\nprotocols = imap\nmail_privileged_group =\n",
            log.display(),
            folder.join("run").display(),
            user,
            group,
        ),
    )
    .unwrap();
    let output = Command::new("doveadm")
        .arg("-c")
        .arg(&configuration)
        .args(arguments)
        .uid(user)
        .gid(group)
        .env("HOME", folder)
        .env("USER", "tester")
        .output()
        .ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("Error"), "{errors}");
    let logged = fs::read_to_string(&log).unwrap_or_default();
    assert!(
        !logged.contains("Error") && !logged.contains("Panic"),
        "{logged}"
    );
    let text = String::from_utf8(output.stdout).unwrap();
    Some(
        text.lines()
            .filter(|line| !line.starts_with("size.") && !line.starts_with('\x0c'))
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn dovecot_reads_what_was_converted_without_an_error_and_sees_every_message() {
    let folder = tempfile::tempdir().unwrap();
    let maildir = folder.path().join("Maildir");
    make(&maildir, 40);
    fs::remove_file(maildir.join("dovecot.index.log")).unwrap();
    let location = format!("maildir:{}", maildir.display());
    let Some(before) = dovecot(folder.path(), &location) else {
        skipped("no doveadm (Debian's dovecot-core and dovecot-imapd)");
        return;
    };
    assert_eq!(
        before.iter().filter(|line| line.starts_with("uid")).count(),
        30
    );
    let summary = in_place(&maildir, &NEW).unwrap();
    assert!(summary.changed > 10);
    // A message with a new name is a new one to Dovecot, with a new UID, so clients that have the old content fetch the new
    // one.
    let identities = |lines: &[String]| {
        let mut all: Vec<String> = lines
            .iter()
            .filter(|line| line.starts_with("hdr."))
            .cloned()
            .collect();
        all.sort();
        all
    };
    let after = dovecot(folder.path(), &location).unwrap();
    assert_eq!(after.len(), before.len());
    assert_eq!(identities(&after), identities(&before));

    let spool = folder.path().join("box");
    fs::write(&spool, mbox(60)).unwrap();
    let location = format!(
        "mbox:{}/mboxes:INBOX={}",
        folder.path().display(),
        spool.display()
    );
    let before = dovecot(folder.path(), &location).unwrap();
    assert_eq!(
        before.iter().filter(|line| line.starts_with("uid")).count(),
        60
    );
    let summary = in_place(&spool, &Expand("a\n\nFrom b Thu Jan  1 00:00:00 1970\nc")).unwrap();
    assert_eq!((summary.messages, summary.changed), (60, 20));
    let after = dovecot(folder.path(), &location).unwrap();
    assert_eq!(after, before);
}
