//! A run over mailboxes that is stopped or killed continues where it was: responses are stored next to the output until the
//! output is complete (docs/cache.md).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::bounded::finished;
use crate::common::mailboxes::Numbers;
use crate::common::programs::{embody, skipped, stderr};
use crate::common::raw::{Raw, ok, redirect};

/// Returns a picture that is unique for each path.
fn picture(path: &str) -> Vec<u8> {
    let gif =
        b"GIF89a\x09\0\x09\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let more = usize::from(path.starts_with("/large/")) * 90_000;
    [gif.as_slice(), path.as_bytes(), &vec![b'.'; more]].concat()
}

/// Number of requests for each path.
type Counts = Arc<Mutex<HashMap<String, usize>>>;

/// A server whose response depends on the first word of the path, with a short delay.
struct Pictures {
    raw: Raw,
    counts: Counts,
    /// File that is created when `/block/...` is requested.
    blocks: Arc<Mutex<Option<PathBuf>>>,
}

impl Pictures {
    fn new(takes: Duration) -> Self {
        let counts = Counts::default();
        let blocks: Arc<Mutex<Option<PathBuf>>> = Arc::default();
        let (counted, blocked) = (Arc::clone(&counts), Arc::clone(&blocks));
        let seen = Mutex::new(HashSet::new());
        let raw = Raw::http(move |path, stream| {
            *counted.lock().unwrap().entry(path.to_owned()).or_default() += 1;
            let is_new = seen.lock().unwrap().insert(path.to_owned());
            sleep(takes);
            let say = |status: &str| {
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .into_bytes()
            };
            let with = |field: &str| {
                let answer = ok("image/gif", &picture(path));
                let (line, rest) = answer.split_at(b"HTTP/1.1 200 OK\r\n".len());
                [line, field.as_bytes(), b"\r\n", rest].concat()
            };
            let answer = match path.split('/').nth(1).unwrap() {
                "to" => redirect(&path.replacen("/to/", "/via/", 1)),
                "gone" => say("404 Not Found"),
                "forbidden" => say("403 Forbidden"),
                "busy" if is_new => say("503 Service Unavailable"),
                "private" => with("Cache-Control: no-store, private"),
                "old" => with("Cache-Control: max-age=0, must-revalidate"),
                "block" => {
                    if let Some(file) = blocked.lock().unwrap().take() {
                        fs::write(file, "in the way").unwrap();
                    }
                    ok("image/gif", &picture(path))
                }
                _ => ok("image/gif", &picture(path)),
            };
            let _ = stream.write_all(&answer);
        });
        Self {
            raw,
            counts,
            blocks,
        }
    }

    /// Returns the number of requests for each path since the last call.
    fn taken(&self) -> HashMap<String, usize> {
        std::mem::take(&mut *self.counts.lock().unwrap())
    }

    /// Returns a mail that shows these pictures.
    fn mail(&self, paths: &[String]) -> String {
        let shown = paths.iter().map(|path| {
            let url = self.raw.url(path);
            format!("<img src=\"{url}\" width=9 height=9>\n")
        });
        let shown: String = shown.collect();
        format!("Subject: pictures\nMIME-Version: 1.0\nContent-Type: text/html\n\n{shown}")
    }

    fn mbox(&self, mails: &[Vec<String>]) -> String {
        let from = "From a@example.org Sat Jan  3 01:05:34 1996\n";
        let mails = mails
            .iter()
            .map(|paths| format!("{from}{}\n", self.mail(paths)));
        mails.collect()
    }

    /// Returns the command, without source and output.
    fn command(&self, folder: &Path, line: &str) -> std::process::Command {
        let mut command = embody();
        command
            .current_dir(folder)
            .args(line.split_whitespace())
            .args(["--allow-net", "127.0.0.0/8", "--allow-port"])
            .arg(self.raw.address.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, folder: &Path, line: &str) -> Output {
        self.command(folder, line).output().unwrap()
    }

    /// Runs the command until the responses are stored. Then the output fails, because a file with its name was created during
    /// the run. The file is removed afterwards.
    fn fail(&self, folder: &Path, line: &str) -> String {
        let output = folder.join("out");
        *self.blocks.lock().unwrap() = Some(output.clone());
        let ran = self.run(folder, line);
        let said = stderr(&ran);
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert_eq!(fs::read(&output).unwrap(), b"in the way");
        fs::remove_file(&output).unwrap();
        said
    }
}

fn paths(words: &[&str]) -> Vec<String> {
    words.iter().map(|&path| path.to_owned()).collect()
}

/// Returns some hundred mails with pictures of all kinds. Some pictures are in several mails.
fn many() -> Vec<Vec<String>> {
    let mail = |number: usize| {
        let mut paths = vec![format!("/one/{number}"), format!("/several/{}", number / 3)];
        paths.push(match number % 6 {
            0 => format!("/to/{number}"),
            1 => format!("/gone/{number}"),
            2 => format!("/private/{number}"),
            3 => format!("/old/{number}"),
            4 => format!("/forbidden/{number}"),
            _ => format!("/again/{}", number % 7),
        });
        paths
    };
    (0..300).map(mail).collect()
}

/// Returns the names in a directory.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

const LINE: &str = "embed in --output out";
const KEPT: &str = "out.embody-resume";

/// Stops the same command twenty times: each time after a random number of further requests and a random delay. Returns how
/// often it was stopped.
fn stopped_again_and_again(
    server: &Pictures,
    folder: &Path,
    line: &str,
    seed: u64,
    stop: impl Fn(&mut Child),
) -> usize {
    let asked = || server.counts.lock().unwrap().values().sum::<usize>();
    let mut numbers = Numbers(seed);
    let mut stopped = 0;
    for _ in 0..20 {
        let until = asked() + usize::try_from(numbers.below(40)).unwrap();
        let mut child = server.command(folder, line).spawn().unwrap();
        while asked() < until && child.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_micros(numbers.below(30_000)));
        stop(&mut child);
        if finished(child).status.code() == Some(0) {
            break;
        }
        stopped += 1;
    }
    stopped
}

#[test]
fn a_run_that_is_killed_twenty_times_gives_what_one_run_gives_and_asks_for_no_answer_twice() {
    let server = Pictures::new(Duration::from_millis(20));
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    fs::write(folder.join("in"), server.mbox(&many())).unwrap();
    let ran = server.run(folder, "embed in --output whole");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let once = server.taken();
    assert!(once.values().all(|&count| count == 1), "{once:?}");
    assert!(once.len() > 600);

    let kills = stopped_again_and_again(&server, folder, LINE, 6, |child| child.kill().unwrap());
    // On a slow machine, a run may be complete before it is killed.
    assert!(kills >= 10, "{kills}");
    if kills == 20 {
        let mode = fs::metadata(folder.join(KEPT)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o700);
        let ran = server.run(folder, LINE);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        assert!(
            stderr(&ran).contains("continuing an earlier run"),
            "{}",
            stderr(&ran)
        );
    }
    assert!(fs::read(folder.join("out")).unwrap() == fs::read(folder.join("whole")).unwrap());
    assert_eq!(names(folder), ["in", "out", "whole"]);
    // Responses that were on their way at a kill are lost: at most eight, the number of parallel requests.
    let asked = server.taken();
    assert_eq!(asked.len(), once.len());
    let more: usize = asked.values().map(|count| count - 1).sum();
    assert!(
        more <= kills * 8,
        "{more} were asked for again after {kills} kills"
    );
}

#[test]
fn a_run_that_is_stopped_by_ctrl_c_asks_each_url_once() {
    let server = Pictures::new(Duration::from_millis(20));
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    fs::write(folder.join("in"), server.mbox(&many())).unwrap();
    let ran = server.run(folder, "embed in --output whole");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let once = server.taken();
    let interrupt = |child: &mut Child| kill_process(Pid::from_child(child), Signal::INT).unwrap();
    let stops = stopped_again_and_again(&server, folder, LINE, 7, interrupt);
    assert!(stops >= 10, "{stops}");
    if stops == 20 {
        let ran = server.run(folder, LINE);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    }
    assert!(fs::read(folder.join("out")).unwrap() == fs::read(folder.join("whole")).unwrap());
    assert_eq!(names(folder), ["in", "out", "whole"]);
    // The run waited for the responses that were on their way, and stored them.
    assert_eq!(server.taken(), once);
}

/// Returns a directory with a mail that shows these pictures, and their server.
fn of(shown: &[&str]) -> (Pictures, tempfile::TempDir) {
    let server = Pictures::new(Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in"), server.mbox(&[paths(shown)])).unwrap();
    (server, folder)
}

#[test]
fn failed_run_keeps_its_responses_and_the_next_run_continues_with_them() {
    for line in [LINE, "convert --embed remote --fetch http in --output out"] {
        let (server, folder) = of(&[
            "/one",
            "/old/1",
            "/private/1",
            "/gone/1",
            "/busy/1",
            "/block/1",
        ]);
        let folder = folder.path();
        let said = server.fail(folder, line);
        let end = "embody: run the same command again to continue; 5 responses are stored in out.embody-resume\n";
        assert!(said.ends_with(end), "{said}");
        assert!(server.taken().values().all(|&count| count == 1));
        // Stored responses that are stale, private or 404 are used without a request. A busy server gets a new request.
        let ran = server.run(folder, line);
        let said = stderr(&ran);
        assert_eq!(ran.status.code(), Some(0), "{said}");
        let start = "embody: continuing an earlier run, with 5 responses that it stored in out.embody-resume\n";
        assert!(said.starts_with(start), "{said}");
        assert!(!said.contains("run the same command"), "{said}");
        let asked = server.taken();
        assert_eq!(asked, HashMap::from([("/busy/1".to_owned(), 1)]));
        let out = fs::read_to_string(folder.join("out")).unwrap();
        assert_eq!(out.matches("cid:").count(), 5, "{out}");
        assert_eq!(names(folder), ["in", "out"]);
    }
}

#[test]
fn resumed_run_checks_policy_and_certificates_again() {
    let (server, folder) = of(&["/one", "/to/2", "/block/1"]);
    let folder = folder.path();
    server.fail(folder, LINE);
    let ca = folder.join("ca.pem");
    let signed = rcgen::generate_simple_self_signed(["example.org".to_owned()]).unwrap();
    fs::write(ca, signed.cert.pem()).unwrap();
    server.taken();
    // A run without stored responses, whose policy denies the server, for comparison: with this policy, stored responses must
    // not be used, either.
    let ran = server.run(
        folder,
        "embed in --output other --deny-host 127.0.0.1 --no-resume",
    );
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    for (more, asked) in [
        ("--deny-host 127.0.0.1", 0),
        ("--ca-file ca.pem", 4),
        ("", 0),
    ] {
        let ran = server.run(folder, &format!("{LINE} {more} --progress never"));
        let said = stderr(&ran);
        assert_eq!(ran.status.code(), Some(0), "{more}: {said}");
        assert_eq!(server.taken().len(), asked, "{more}: {said}");
        let is_left = fs::read(folder.join("out")).unwrap() == fs::read(folder.join("in")).unwrap();
        assert_eq!(is_left, more.contains("deny"), "{more}: {said}");
        fs::remove_file(folder.join("out")).unwrap();
        server.fail(folder, LINE);
        server.taken();
    }
}

#[test]
fn only_a_run_that_retrieves_for_a_new_file_or_folder_keeps_anything() {
    let (server, folder) = of(&["/one", "/block/1"]);
    let folder = folder.path();
    fs::copy(folder.join("in"), folder.join("again")).unwrap();
    fs::create_dir(folder.join("cache")).unwrap();
    fs::set_permissions(folder.join("cache"), fs::Permissions::from_mode(0o700)).unwrap();
    let before = ["again", "cache", "in"];
    // The directory for the responses cannot be created, because a file has its name.
    fs::write(folder.join("again.embody-resume"), "x").unwrap();
    fs::write(folder.join(KEPT), "x").unwrap();
    for (line, out) in [
        ("embed in --output out --dry-run", false),
        ("embed in --output -", false),
        ("embed in --output /dev/null", false),
        ("embed again --in-place", false),
        ("embed in", false),
        ("convert in --output out", true),
        ("convert --embed data in --output out", true),
        ("embed in --output out --no-resume", true),
        ("embed in --output out --cache cache --offline", true),
        ("inspect --embed remote --fetch http in", false),
        ("restore --store cache in --output out", true),
    ] {
        if line.contains("restore") {
            fs::remove_dir_all(folder.join("cache")).unwrap();
            fs::create_dir(folder.join("cache")).unwrap();
        }
        let ran = match line {
            // A message, as a filter reads it.
            "embed in" => {
                fs::write(folder.join("one"), server.mail(&paths(&["/one"]))).unwrap();
                let ran = server.run(folder, "embed one");
                fs::remove_file(folder.join("one")).unwrap();
                ran
            }
            _ => server.run(folder, line),
        };
        assert_eq!(ran.status.code(), Some(0), "{line}: {}", stderr(&ran));
        assert_eq!(out, folder.join("out").exists(), "{line}");
        let _ = fs::remove_file(folder.join("out"));
        let all = names(folder);
        let found: Vec<_> = all.iter().filter(|name| !name.contains("resume")).collect();
        assert_eq!(found, before, "{line}");
    }
    for name in [KEPT, "again.embody-resume"] {
        assert_eq!(fs::read(folder.join(name)).unwrap(), b"x");
    }
}

#[test]
fn foreign_file_in_place_of_the_resume_cache_is_neither_used_nor_removed() {
    let (server, folder) = of(&["/one", "/block/1"]);
    let folder = folder.path();
    // The files that an interrupted run leaves.
    server.fail(folder, LINE);
    let left = folder.join("left");
    fs::rename(folder.join(KEPT), &left).unwrap();
    let kept = folder.join(KEPT);
    let open = |mode| fs::set_permissions(&kept, fs::Permissions::from_mode(mode)).unwrap();
    let is_root = fs::read("/etc/shadow").is_ok();
    type Plant<'p> = (&'p str, Box<dyn Fn() + 'p>);
    let plants: Vec<Plant<'_>> = vec![
        (
            "a link to a folder of ours",
            Box::new(|| symlink("left", &kept).unwrap()),
        ),
        ("a file", Box::new(|| fs::write(&kept, "x").unwrap())),
        ("a folder with something in it", {
            Box::new(|| {
                fs::create_dir(&kept).unwrap();
                fs::write(
                    kept.join("CACHEDIR.TAG"),
                    "Signature: 8a477f597d28d172789f06886806bc55\n",
                )
                .unwrap();
                open(0o700);
            })
        }),
        ("an empty folder that others may write", {
            Box::new(|| {
                fs::create_dir(&kept).unwrap();
                open(0o777);
            })
        }),
        ("one of ours that others may enter", {
            Box::new(|| {
                let copied = std::process::Command::new("cp")
                    .arg("-a")
                    .arg(&left)
                    .arg(&kept)
                    .status();
                assert!(copied.unwrap().success());
                open(0o750);
            })
        }),
        ("one of a user that others", {
            Box::new(|| {
                fs::create_dir(&kept).unwrap();
                open(0o700);
                if is_root {
                    std::os::unix::fs::chown(&kept, Some(65534), Some(65534)).unwrap();
                } else {
                    open(0o755);
                }
            })
        }),
        ("a cache of --cache", {
            Box::new(|| {
                let ran = server.run(folder, "embed --cache out.embody-resume in --output other");
                assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
                fs::remove_file(folder.join("other")).unwrap();
            })
        }),
    ];
    for (what, plant) in plants {
        plant();
        let listed = || {
            let list = std::process::Command::new("find")
                .arg(folder)
                .args(["-ls"])
                .output();
            String::from_utf8(list.unwrap().stdout).unwrap()
        };
        server.taken();
        let before = listed();
        let ran = server.run(folder, LINE);
        let said = stderr(&ran);
        assert_eq!(ran.status.code(), Some(2), "{what}: {said}");
        assert!(said.contains("was not created by embody"), "{what}: {said}");
        assert!(said.contains("--no-resume"), "{what}: {said}");
        assert_eq!(listed(), before, "{what}");
        assert_eq!(server.taken(), HashMap::new(), "{what}");
        let ran = server.run(folder, &format!("{LINE} --no-resume"));
        assert_eq!(ran.status.code(), Some(0), "{what}: {}", stderr(&ran));
        fs::remove_file(folder.join("out")).unwrap();
        if fs::symlink_metadata(&kept).unwrap().is_dir() {
            fs::remove_dir_all(&kept).unwrap()
        } else {
            fs::remove_file(&kept).unwrap()
        }
    }
    // Other files in the directory are kept, and so is the directory.
    fs::rename(&left, &kept).unwrap();
    for place in ["mine", "keys/mine", "bodies/mine", "tmp/mine"] {
        fs::write(kept.join(place), "x").unwrap();
    }
    symlink("../in", kept.join("hosts")).unwrap();
    let ran = server.run(folder, LINE);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(
        stderr(&ran).contains("contains files that embody did not create"),
        "{}",
        stderr(&ran)
    );
    for place in ["mine", "keys/mine", "bodies/mine", "tmp/mine"] {
        assert_eq!(fs::read(kept.join(place)).unwrap(), b"x");
    }
    assert_eq!(
        names(&kept),
        ["CACHEDIR.TAG", "bodies", "hosts", "keys", "mine", "tmp"]
    );
    // An empty directory was left by a run that was killed while it created it.
    fs::remove_dir_all(&kept).unwrap();
    fs::remove_file(folder.join("out")).unwrap();
    fs::create_dir(&kept).unwrap();
    open(0o700);
    let ran = server.run(folder, LINE);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert_eq!(names(folder), ["in", "out"]);
}

#[test]
fn of_two_runs_with_one_output_the_second_is_refused() {
    let server = Pictures::new(Duration::from_millis(1500));
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    fs::write(folder.join("in"), server.mbox(&[paths(&["/one"])])).unwrap();
    let first = server.command(folder, LINE).spawn().unwrap();
    while server.counts.lock().unwrap().is_empty() {
        sleep(Duration::from_millis(5));
    }
    let second = server.run(folder, LINE);
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert!(stderr(&second).contains("out.embody-resume: locked by another program"));
    assert!(folder.join(KEPT).is_dir());
    let ended = finished(first);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert_eq!(names(folder), ["in", "out"]);
    assert_eq!(server.taken().values().sum::<usize>(), 1);
}

#[test]
fn resumed_run_uses_its_own_cache_before_that_of_the_user() {
    let (server, folder) = of(&["/one", "/private/1", "/old/1", "/block/1"]);
    let folder = folder.path();
    let line = &format!("{LINE} --cache cache");
    server.fail(folder, line);
    assert_eq!(server.taken().len(), 4);
    // Responses that --cache must not store, or that are stale there, are used from the run's own cache.
    let ran = server.run(folder, line);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert_eq!(server.taken().len(), 0);
    assert_eq!(names(folder), ["cache", "in", "out"]);
    // The next run does not use the responses of the completed one.
    fs::remove_file(folder.join("out")).unwrap();
    let ran = server.run(folder, line);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(server.taken().len() >= 2);
}

/// Runs a script in which `$@` is the command. The script can mount a file system at `small`.
fn on_a_small_disk(test: &str, server: &Pictures, folder: &Path, script: &str) -> Option<Output> {
    let command = server.command(folder, "embed in --output small/out");
    fs::create_dir_all(folder.join("small")).unwrap();
    let ran = std::process::Command::new("unshare")
        .current_dir(folder)
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .output();
    match ran {
        Ok(ran) if stderr(&ran).contains("status ") => Some(ran),
        _ => {
            skipped(test, "unshare --mount with the right to mount");
            None
        }
    }
}

#[test]
fn full_disk_for_the_resume_cache_does_not_end_the_run() {
    const TEST: &str = "full_disk_for_the_resume_cache_does_not_end_the_run";
    let (server, folder) = of(&["/one", "/two", "/block/1"]);
    // The file system has room for the mail, but not for the stored responses.
    for options in [
        "size=64k,nr_inodes=3",
        "size=64k,nr_inodes=5",
        "size=64k,nr_inodes=20",
    ] {
        let script = format!(
            "mount -t tmpfs -o {options} none small || exit; head -c 20k /dev/zero > small/fill; \"$@\"; echo status $? >&2; \
             ls -A small >&2; cat small/out"
        );
        let Some(ran) = on_a_small_disk(TEST, &server, folder.path(), &script) else {
            return;
        };
        let said = stderr(&ran);
        assert!(said.contains("status 0"), "{options}: {said}");
        assert!(said.ends_with("\nfill\nout\n"), "{options}: {said}");
        assert_eq!(
            memchr::memmem::find_iter(&ran.stdout, "cid:").count(),
            3,
            "{said}"
        );
    }
}

#[test]
fn a_run_whose_output_filled_the_disk_goes_on_once_there_is_room() {
    const TEST: &str = "a_run_whose_output_filled_the_disk_goes_on_once_there_is_room";
    let (server, folder) = of(&["/large/1", "/large/2", "/large/3", "/large/4"]);
    let script = "mount -t tmpfs -o size=500k none small || exit; \"$@\"; echo status $? >&2; ls -A small >&2; \
        mount -o remount,size=2m small; \"$@\"; echo status $? >&2; ls -A small >&2; cat small/out";
    let Some(ran) = on_a_small_disk(TEST, &server, folder.path(), script) else {
        return;
    };
    let said = stderr(&ran);
    let (first, second) = said
        .split_once("status 1\n")
        .unwrap_or_else(|| panic!("{said}"));
    assert!(first.contains("No space left on device"), "{said}");
    let kept = "again to continue; 4 responses are stored in small/out.embody-resume\n";
    assert!(first.ends_with(kept), "{said}");
    assert!(
        second
            .starts_with("out.embody-resume\nembody: continuing an earlier run, with 4 responses"),
        "{said}"
    );
    assert!(second.ends_with("status 0\nout\n"), "{said}");
    assert_eq!(
        memchr::memmem::find_iter(&ran.stdout, "cid:").count(),
        4,
        "{said}"
    );
    assert!(server.taken().values().all(|&count| count == 1));
}

/// Returns all files in a directory, with their relative paths.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                let content = fs::read(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), content);
            }
        }
    }
    found
}

/// Creates mboxes, a Maildir with sizes in its file names, an MH folder, and messages.
fn folder_of_mail(server: &Pictures, folder: &Path) {
    let mails = many();
    for (number, mails) in mails[..120].chunks(40).enumerate() {
        fs::write(folder.join(format!("{number}.mbox")), server.mbox(mails)).unwrap();
    }
    for part in ["Maildir/cur", "Maildir/new", "Maildir/tmp", "mh"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    for (number, mail) in mails[120..].iter().enumerate() {
        let mail = server.mail(mail);
        let name = match number % 3 {
            0 => format!("mh/{number}"),
            1 => format!("Maildir/new/8{number}.a.b,S={}", mail.len()),
            _ => format!("Maildir/cur/8{number}.a.b,S={}:2,S", mail.len()),
        };
        fs::write(folder.join(name), mail).unwrap();
    }
    fs::write(folder.join("mh/.mh_sequences"), "unseen: 3\n").unwrap();
    fs::write(folder.join("z.eml"), server.mail(&paths(&["/one/z"]))).unwrap();
}

#[test]
fn an_output_of_many_files_goes_on_with_those_that_are_missing() {
    let server = Pictures::new(Duration::from_millis(15));
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    fs::create_dir(folder.join("in")).unwrap();
    folder_of_mail(&server, &folder.join("in"));
    let ran = server.run(folder, "embed in --output whole");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let once = server.taken();
    let whole = tree(&folder.join("whole"));
    assert!(whole.len() > 180);

    let kills = stopped_again_and_again(&server, folder, LINE, 8, |child| child.kill().unwrap());
    assert_eq!(kills, 20);
    let ran = server.run(folder, LINE);
    let said = stderr(&ran);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert!(said.contains("were written by the previous run"), "{said}");
    let out = tree(&folder.join("out"));
    let listed: Vec<_> = out.keys().collect();
    assert_eq!(listed, whole.keys().collect::<Vec<_>>());
    assert!(out == whole);
    assert_eq!(names(folder), ["in", "out", "whole"]);
    let more: usize = server.taken().values().sum::<usize>() - once.len();
    assert!(
        more <= kills * 8,
        "{more} were asked for again after {kills} kills"
    );
}

#[test]
fn a_file_that_is_not_as_the_run_made_it_is_never_taken_for_it_or_replaced() {
    let (server, folder) = of(&["/one"]);
    let folder = folder.path();
    fs::create_dir(folder.join("box")).unwrap();
    fs::write(
        folder.join("box/a"),
        server.mbox(&[paths(&["/one", "/to/1"])]),
    )
    .unwrap();
    fs::write(folder.join("box/b"), server.mbox(&[paths(&["/block/1"])])).unwrap();
    let line = "embed box --output new";
    let fail = || {
        let blocked = folder.join("new/b");
        *server.blocks.lock().unwrap() = Some(blocked.clone());
        // Otherwise the stored responses of an earlier run would be used.
        let _ = fs::remove_dir_all(folder.join("new.embody-resume"));
        let _ = fs::remove_dir_all(folder.join("new"));
        let ran = server.run(folder, line);
        assert_eq!(ran.status.code(), Some(1), "{}", stderr(&ran));
        fs::remove_file(blocked).unwrap();
    };
    let goes_on = |more: &str| server.run(folder, &format!("{line} {more}"));
    fail();
    let made = fs::read(folder.join("new/a")).unwrap();
    let ran = goes_on("--verbose");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(fs::read(folder.join("new/a")).unwrap() == made);
    assert_eq!(names(folder), ["box", "in", "new"]);

    let other = |path: &str| fs::write(folder.join(path), "somebody's").unwrap();
    let touched = |path: &str| {
        let now = std::time::SystemTime::now();
        fs::File::options()
            .write(true)
            .open(folder.join(path))
            .unwrap()
            .set_modified(now)
            .unwrap();
    };
    type Change<'c> = (&'c str, &'c str, Box<dyn Fn() + 'c>);
    let changes: Vec<Change<'_>> = vec![
        ("another file", "", Box::new(|| other("new/a"))),
        ("another source", "", Box::new(|| touched("box/a"))),
        ("another command", "--links keep", Box::new(|| {})),
    ];
    for (what, more, change) in changes {
        fail();
        change();
        let before = fs::read(folder.join("new/a")).unwrap();
        let ran = goes_on(more);
        assert_eq!(ran.status.code(), Some(1), "{what}: {}", stderr(&ran));
        assert!(
            stderr(&ran).contains("new/a: the file already exists"),
            "{what}: {}",
            stderr(&ran)
        );
        assert!(fs::read(folder.join("new/a")).unwrap() == before, "{what}");
    }
    // A missing file is written again.
    fail();
    fs::remove_file(folder.join("new/a")).unwrap();
    let ran = goes_on("");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(fs::read(folder.join("new/a")).unwrap() == made);
}
