//! WARC files contain complete records, however a run ends, and errors of such a file affect no mail.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::filter::{Ran, filter, mail, open, reference};
use crate::common::programs::{embody, skipped, stderr};
use crate::common::raw::{Raw, ok};
use crate::common::warc::{check, records};

/// Returns a text that is unique for each path and cannot be compressed.
fn text(path: &str) -> Vec<u8> {
    let mut state = path
        .bytes()
        .fold(7_u64, |state, octet| state * 31 + u64::from(octet));
    let letters = (0..20_000).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        b'a' + (state >> 40) as u8 % 26
    });
    path.bytes().chain(letters).collect()
}

fn server() -> Raw {
    Raw::http(|path, stream| {
        let _ = stream.write_all(&ok("text/plain", &text(path)));
    })
}

fn letter(server: &Raw, names: &[&str]) -> Vec<u8> {
    let parts: Vec<String> = names
        .iter()
        .map(|name| reference(&server.url(&format!("/{name}")), "text/plain"))
        .collect();
    mail(&parts)
}

fn recorded(server: &Raw, file: &Path, names: &[&str], more: &str) -> Ran {
    let options = format!(
        "{} --record {} {more}",
        open(&[server.address.port()]),
        file.display()
    );
    filter(&options, &letter(server, names))
}

/// Asserts that the mail contains the content.
#[track_caller]
fn is_done(ran: &Ran, count: usize) {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let reasons = ran.column("reason");
    assert_eq!(reasons, vec!["-"; count], "{}", ran.stderr);
}

#[test]
fn each_run_appends_to_a_record_file_that_only_its_owner_can_read() {
    const TEST: &str = "each_run_appends_to_a_record_file_that_only_its_owner_can_read";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.warc.gz");
    // Without a retrieval, no file is created.
    is_done(&recorded(&server, &file, &[], ""), 0);
    assert!(!file.exists());
    for name in ["one", "two", "three"] {
        let ran = recorded(&server, &file, &[name], "");
        is_done(&ran, 1);
        assert!(!ran.stderr.contains("the record"), "{}", ran.stderr);
    }
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let Some(found) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let count = |kind: &str| found.iter().filter(|record| record.kind == kind).count();
    assert_eq!(
        (count("warcinfo"), count("response"), count("request")),
        (3, 3, 3)
    );
}

#[test]
fn record_name_may_contain_the_pid_or_be_a_folder_and_file_size_is_limited() {
    const TEST: &str = "record_name_may_contain_the_pid_or_be_a_folder_and_file_size_is_limited";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    for _ in 0..2 {
        is_done(
            &recorded(&server, &folder.path().join("p-{pid}.warc.gz"), &["a"], ""),
            1,
        );
        is_done(&recorded(&server, folder.path(), &["a"], ""), 1);
    }
    let names = || -> Vec<PathBuf> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    assert_eq!(names().len(), 4, "{:?}", names());
    for name in names() {
        check_if_there(TEST, &name);
        fs::remove_file(name).unwrap();
    }
    let file = folder.path().join("r.warc.gz");
    for _ in 0..2 {
        let ran = recorded(
            &server,
            &file,
            &["a", "b", "c", "d", "e", "f"],
            "--record-max 30k --max-in-flight 1",
        );
        is_done(&ran, 6);
    }
    let names = names();
    assert!(
        names.len() > 4 && names.contains(&folder.path().join("r-1.warc.gz")),
        "{names:?}"
    );
    for name in &names {
        let length = fs::metadata(name).unwrap().len();
        assert!(length < 60_000, "{}: {length}", name.display());
        check_if_there(TEST, name);
    }
}

#[track_caller]
fn check_if_there(test: &str, file: &Path) {
    if let Some(found) = records(test, file) {
        assert_eq!(found[0].kind, "warcinfo");
        check(file);
    }
}

#[test]
fn many_processes_share_a_file() {
    const TEST: &str = "many_processes_share_a_file";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.warc.gz");
    std::thread::scope(|scope| {
        for process in 0..12 {
            let (server, file) = (&server, &file);
            scope.spawn(move || {
                let paths = [0, 1, 2].map(|name| format!("{process}-{name}"));
                let names = paths.each_ref().map(|name| name.as_str());
                let ran = recorded(server, file, &names, "");
                is_done(&ran, 3);
                assert!(!ran.stderr.contains("the record"), "{}", ran.stderr);
            });
        }
    });
    let Some(found) = records(TEST, &file) else {
        return;
    };
    check(&file);
    let responses = found.iter().filter(|record| record.kind == "response");
    assert_eq!(responses.count(), 36);
}

#[test]
fn a_file_that_ends_within_a_record_or_is_another_one_is_left_and_the_mail_goes_on() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join("a.warc.gz");
    is_done(&recorded(&server, &file, &["a", "b"], ""), 2);
    let whole = fs::read(&file).unwrap();
    for length in [1, 9, 200, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        let ran = recorded(&server, &file, &["c"], "");
        is_done(&ran, 1);
        assert!(
            ran.stderr.contains("1 response is missing: "),
            "{length}: {}",
            ran.stderr
        );
        assert!(fs::read(&file).unwrap() == whole[..length], "{length}");
        let said = converted(&server, folder.path(), &file);
        assert_eq!(said.status.code(), Some(1), "{said:?}");
        assert!(
            stderr(&said).contains("cannot write the record "),
            "{said:?}"
        );
        assert!(!folder.path().join("out").exists());
        if let Some((_, end)) = ran.stderr.split_once("truncate -s ") {
            let end: u64 = end.split(' ').next().unwrap().parse().unwrap();
            let cut = fs::OpenOptions::new().write(true).open(&file).unwrap();
            cut.set_len(end).unwrap();
            let ran = recorded(&server, &file, &["c"], "");
            assert!(!ran.stderr.contains("the record"), "{}", ran.stderr);
        } else {
            assert!(length <= 200, "{}", ran.stderr);
        }
    }
    for (name, content) in [("b.warc.gz", "no record"), ("c.warc.gz", "\x1f")] {
        let other = folder.path().join(name);
        fs::write(&other, content).unwrap();
        let ran = recorded(&server, &other, &["c"], "");
        is_done(&ran, 1);
        assert!(ran.stderr.contains("is incomplete"), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&other).unwrap(), content);
    }
    // With an invalid name, a filter exits with "try again" before any request is sent.
    let asked = server.count();
    let ran = recorded(&server, &folder.path().join("mail.mbox"), &["c"], "");
    assert_eq!(ran.code, Some(75));
    assert!(ran.stderr.contains("ends with .warc.gz"), "{}", ran.stderr);
    assert_eq!(server.count(), asked);
}

/// Runs `convert` on a mail with a record.
fn converted(server: &Raw, folder: &Path, file: &Path) -> Output {
    fs::write(folder.join("in.eml"), letter(server, &["x"])).unwrap();
    let mut command = embody();
    command
        .arg("convert")
        .arg(folder.join("in.eml"))
        .args(["--output"])
        .arg(folder.join("out"))
        .args(open(&[server.address.port()]).split_whitespace())
        .arg("--record")
        .arg(file)
        .stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn a_record_that_is_a_source_or_the_output_is_refused() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    fs::create_dir(folder.path().join("cur")).unwrap();
    let place = folder.path().join("out.warc.gz");
    let mut command = embody();
    fs::write(folder.path().join("in.eml"), letter(&server, &["x"])).unwrap();
    command
        .arg("convert")
        .arg(folder.path().join("in.eml"))
        .arg("--output")
        .arg(&place)
        .args(open(&[server.address.port()]).split_whitespace())
        .arg("--record")
        .arg(&place);
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(
        stderr(&ran).contains("this file is also the output"),
        "{ran:?}"
    );
}

/// Returns a mailbox in which every mail refers to different texts.
fn mailbox(server: &Raw, mails: usize) -> Vec<u8> {
    (0..mails)
        .flat_map(|number| {
            let paths = [0, 1, 2].map(|name| format!("{number}-{name}"));
            let names = paths.each_ref().map(|name| name.as_str());
            let from = b"From a@example.org Sat Jan  3 01:05:34 1996\n".to_vec();
            [from, letter(server, &names), b"\n\n".to_vec()].concat()
        })
        .collect()
}

#[test]
fn a_run_that_is_killed_leaves_whole_records_and_at_most_a_part_of_one() {
    const TEST: &str = "a_run_that_is_killed_leaves_whole_records_and_at_most_a_part_of_one";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let source = folder.path().join("in.mbox");
    fs::write(&source, mailbox(&server, 100)).unwrap();
    let (mut partial, mut killed) = (0, 0);
    // EMBODY_KILLS=50 kills the run at 50 different moments.
    let kills = std::env::var("EMBODY_KILLS").map_or(10, |kills| kills.parse().unwrap());
    for kill in 0..kills {
        let file = folder.path().join(format!("{kill}.warc.gz"));
        let mut child = embody()
            .arg("convert")
            .arg(&source)
            .args(["--quiet", "--no-resume", "--output"])
            .arg(folder.path().join(format!("{kill}.out")))
            .args(open(&[server.address.port()]).split_whitespace())
            .arg("--record")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(20 + 1500 / kills * kill));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        if !file.exists() || fs::metadata(&file).unwrap().len() == 0 {
            continue;
        }
        // Reads all complete gzip members.
        let octets = fs::read(&file).unwrap();
        let mut rest = octets.as_slice();
        let mut count = 0;
        while !rest.is_empty() {
            let mut decoder = flate2::bufread::GzDecoder::new(rest);
            let mut record = Vec::new();
            if decoder.read_to_end(&mut record).is_err() {
                break;
            }
            assert!(record.starts_with(b"WARC/1.1\r\n") && record.ends_with(b"\r\n\r\n"));
            rest = decoder.into_inner();
            count += 1;
        }
        partial += usize::from(!rest.is_empty());
        let Some(found) = records(TEST, &file) else {
            return;
        };
        assert!(found.len() >= count, "{} of {count}", found.len());
        // The next run appends to the file, or refuses it with a message about what to do.
        let ran = recorded(&server, &file, &["more"], "");
        is_done(&ran, 1);
        assert_eq!(
            ran.stderr.contains("truncate -s "),
            !rest.is_empty(),
            "{}",
            ran.stderr
        );
    }
    assert!(killed > 0, "no run was killed");
    println!("{killed} runs were killed, {partial} of their files end with a part of a record");
}

#[test]
fn a_full_disk_costs_answers_of_the_record_and_no_mail() {
    const TEST: &str = "a_full_disk_costs_answers_of_the_record_and_no_mail";
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("in.mbox"), mailbox(&server, 10)).unwrap();
    fs::create_dir(folder.path().join("small")).unwrap();
    for command in [
        "convert in.mbox --output out.mbox --no-resume",
        "filter in.mbox",
    ] {
        let script = format!(
            "mount -t tmpfs -o size=100k none small || exit; \"$0\" {command} {} --max-fetches 100 --record small/a.warc.gz > stdout; \
             echo status $? >&2; cp small/a.warc.gz a.warc.gz",
            open(&[server.address.port()])
        );
        if command.starts_with("filter") {
            let paths: Vec<String> = (0..20).map(|name| name.to_string()).collect();
            let names: Vec<&str> = paths.iter().map(String::as_str).collect();
            fs::write(folder.path().join("in.mbox"), letter(&server, &names)).unwrap();
        }
        let ran = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_embody")])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output();
        let Ok(ran) = ran else {
            return skipped(TEST, "unshare");
        };
        let said = stderr(&ran);
        if !said.contains("status ") || said.contains("mount:") || said.contains("unshare:") {
            return skipped(TEST, "unshare --mount with the right to mount");
        }
        let is_filter = command.starts_with("filter");
        let status = if is_filter { "status 0" } else { "status 1" };
        assert!(said.contains(status), "{said}");
        assert!(
            said.contains("a.warc.gz is incomplete, ") && said.contains("No space left on device"),
            "{said}"
        );
        let path = folder
            .path()
            .join(if is_filter { "stdout" } else { "out.mbox" });
        let result = fs::read_to_string(path).unwrap();
        assert!(
            !result.contains("message/external-body"),
            "a mail is not done"
        );
        let file = folder.path().join("a.warc.gz");
        let Some(found) = records(TEST, &file) else {
            return;
        };
        check(&file);
        let missing = found
            .iter()
            .find(|record| record.url == "urn:x-embody:missing")
            .map(|record| record.text())
            .unwrap_or_default();
        assert!(
            missing.contains("No space left") && missing.contains("url: http://127.0.0.1:"),
            "{said}: {missing}"
        );
    }
}
