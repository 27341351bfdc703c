//! Errors of a store affect no mail: full disks, directories that vanish or are read-only, symbolic links and foreign files in
//! the store, and several programs at the same time.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use crate::common::bounded::ended;
use crate::common::mail::assert_bytes;
use crate::common::programs::{embody, fed, program, skipped, stderr};

/// Returns a mail with an attachment of this size in bytes, whose content depends on `seed`.
fn mail(seed: u32, size: usize) -> Vec<u8> {
    let text = base64::engine::general_purpose::STANDARD.encode(octets(seed, size));
    let mut mail = format!(
        "From: a@example.org\nSubject: {seed}\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\n"
    )
    .into_bytes();
    for line in text.as_bytes().chunks(76) {
        mail.extend(line);
        mail.push(b'\n');
    }
    mail.extend(b"--b--\n");
    mail
}

fn octets(seed: u32, size: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..size).map(|_| next()).collect()
}

fn place_of(content: &[u8]) -> PathBuf {
    let digits: String = Sha256::digest(content)
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect();
    Path::new(&digits[..2]).join(&digits[2..4]).join(&digits)
}

fn detach(store: &Path) -> Command {
    let mut command = embody();
    command.arg("detach").arg("--store").arg(store);
    command
}

/// Returns the files in a directory, except the lock and the list of users.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    let is_object = |path: &PathBuf| {
        !path.ends_with(".lock") && !path.parent().is_some_and(|it| it.ends_with(".users"))
    };
    found.retain(is_object);
    found.sort();
    found
}

/// Asserts that the mail is unchanged, and that the program prints the reason.
fn is_left(output: &Output, mail: &[u8], why: &str) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    assert_bytes(&output.stdout, mail, why);
    assert!(stderr(output).contains(why), "{why}: {}", stderr(output));
}

#[test]
fn a_file_that_may_not_grow_leaves_the_part_and_no_trace() {
    const TEST: &str = "a_file_that_may_not_grow_leaves_the_part_and_no_trace";
    if program("sh").is_none() {
        return skipped(TEST, "sh");
    }
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mail = mail(1, 300_000);
    for (more, status) in [("", 0), (" --on-failure defer", 75)] {
        let script = format!("ulimit -f 200; exec \"$0\" detach --store \"$1\"{more}");
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_embody")])
            .arg(&store);
        let output = fed(&mut shell, &mail);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        match status {
            0 => assert_bytes(&output.stdout, &mail, "left"),
            _ => assert!(output.stdout.is_empty()),
        }
        assert_eq!(files(&store), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_full_disk_leaves_the_parts_that_do_not_fit() {
    const TEST: &str = "a_full_disk_leaves_the_parts_that_do_not_fit";
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=600k", "tmpfs"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return skipped(TEST, "the right to mount a small tmpfs");
    }
    let store = disk.join("store");
    let run = || {
        let mut taken = Vec::new();
        let mails: Vec<Vec<u8>> = (0..6).map(|seed| mail(seed, 250_000)).collect();
        for mail in &mails {
            let output = fed(&mut detach(&store), mail);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let mut restore = embody();
            restore.arg("restore").arg("--store").arg(&store);
            let restored = fed(&mut restore, &output.stdout);
            assert_bytes(&restored.stdout, mail, "restored");
            taken.push(output.stdout.len() < mail.len());
        }
        (taken, files(&store).len())
    };
    let outcome = std::panic::catch_unwind(run);
    let _ = Command::new("umount").arg(&disk).status();
    let (taken, objects) = outcome.unwrap();
    assert_eq!(taken, [true, true, false, false, false, false]);
    // No temporary file remains.
    assert_eq!(objects, 2);
}

#[test]
fn detach_defers_and_writes_nothing_if_the_store_path_is_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    File::create(&file).unwrap();
    let dangling = folder.path().join("dangling");
    symlink(folder.path().join("nowhere"), &dangling).unwrap();
    for store in [&file, &file.join("in"), &dangling] {
        let output = fed(&mut detach(store), &mail(1, 200_000));
        assert_eq!(output.status.code(), Some(75), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    assert!(!folder.path().join("nowhere").exists());
}

#[test]
fn links_and_other_content_in_a_store_leave_the_part() {
    let content = octets(1, 200_000);
    let mail = mail(1, 200_000);
    let place = place_of(&content);
    let outer = place.iter().next().unwrap();
    let inner = place.parent().unwrap();
    for at in [Path::new(outer), inner, &place] {
        let folder = tempfile::tempdir().unwrap();
        let (store, elsewhere) = (folder.path().join("store"), folder.path().join("elsewhere"));
        fs::create_dir_all(store.join(at).parent().unwrap()).unwrap();
        if at == place {
            fs::write(&elsewhere, &content).unwrap()
        } else {
            fs::create_dir(&elsewhere).unwrap()
        }
        symlink(&elsewhere, store.join(at)).unwrap();
        is_left(&fed(&mut detach(&store), &mail), &mail, "store");
        assert!(elsewhere.is_file() || files(&elsewhere).is_empty());
    }
    let folder = tempfile::tempdir().unwrap();
    let planted = folder.path().join(&place);
    fs::create_dir_all(planted.parent().unwrap()).unwrap();
    fs::write(&planted, b"planted").unwrap();
    is_left(
        &fed(&mut detach(folder.path()), &mail),
        &mail,
        "does not match the SHA-256 in its name",
    );
    assert_eq!(fs::read(planted).unwrap(), b"planted");
}

#[test]
fn two_programs_detach_the_same_mails_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut before = Vec::new();
    for seed in 0..100 {
        before.extend(b"From a@example.org Sat Jan  3 01:05:34 1996\n");
        before.extend(mail(seed, 10_000));
        before.push(b'\n');
    }
    let names = ["one.mbox", "two.mbox"].map(|name| folder.path().join(name));
    for name in &names {
        fs::write(name, &before).unwrap();
    }
    let mut children = names.clone().map(|name| {
        let mut command = detach(&store);
        command.args(["--larger-than", "5k", "--quiet", "--in-place"]);
        command.arg(name).spawn().unwrap()
    });
    for child in &mut children {
        assert!(ended(child).success());
    }
    assert_eq!(files(&store).len(), 100);
    for name in &names {
        assert!(fs::metadata(name).unwrap().len() < before.len() as u64 / 5);
        let mut restore = embody();
        restore.arg("restore").arg("--store").arg(&store);
        let output = restore
            .args(["--quiet", "--in-place"])
            .arg(name)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_bytes(&fs::read(name).unwrap(), &before, "restored");
    }
    let check = embody()
        .args(["store", "check"])
        .arg(&store)
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", stderr(&check));
}

/// `check` and `gc` find the references that `detach` writes.
#[test]
fn check_and_gc_find_what_detach_left_in_each_form() {
    for more in [&[][..], &["--note"], &["--note-format", "thunderbird"]] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let mut command = detach(&store);
        command
            .args(["--base-url", "https://www.example.org/store/"])
            .args(more);
        let output = fed(&mut command, &mail(1, 200_000));
        assert!(output.stdout.len() < 5_000);
        let left = folder.path().join("left.eml");
        fs::write(&left, &output.stdout).unwrap();
        let store_command = |verb: &str| {
            let mut command = embody();
            command.args(["store", verb]).arg(&store).arg(&left);
            command
        };
        let check = store_command("check").output().unwrap();
        assert!(check.status.success(), "{}", stderr(&check));
        let said = String::from_utf8_lossy(&check.stdout);
        assert!(
            said.contains("references to 1 object found, 0 of these missing"),
            "{said}"
        );
        let object = store.join(place_of(&octets(1, 200_000)));
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(1_000_000);
        File::open(&object).unwrap().set_modified(old).unwrap();
        // The mail came from standard input, so its current location is unknown.
        let gc = store_command("gc").arg("--delete").output().unwrap();
        assert_eq!(gc.status.code(), Some(1), "{}", stderr(&gc));
        let all = ["--delete", "--all-mail-is-here"];
        let gc = store_command("gc").args(all).output().unwrap();
        assert!(
            gc.status.success() && gc.stdout.is_empty(),
            "{}",
            stderr(&gc)
        );
        fs::remove_file(&object).unwrap();
        let check = store_command("check").output().unwrap();
        assert_eq!(check.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&check.stdout).starts_with("missing "));
    }
}
