//! Files in the directories of `--file-root`, and no others (RFC 8089).
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::world::{fetch, refused, request};
use embody::Error;
use embody::fetch::{Fetch as _, Fetcher};
use embody::policy::{Policy, Scheme};
use embody::report::Reason;
use tempfile::TempDir;

/// Returns a directory with `root/`, which contains files and traps, and with `secret` next to it.
fn ground() -> (TempDir, Policy) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    fs::write(root.join("a b%c"), "hello").unwrap();
    fs::write(root.join("sub/deep"), "deep").unwrap();
    fs::write(root.join("empty"), "").unwrap();
    symlink("sub/deep", root.join("inside")).unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink(folder.path().join("secret"), root.join("absolute")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    symlink("/dev/zero", root.join("device")).unwrap();
    let policy = policy_of(&root);
    (folder, policy)
}

fn policy_of(root: &Path) -> Policy {
    Policy::default()
        .with_fetch([Scheme::File])
        .with_file_roots([root.to_owned()])
}

fn url(folder: &TempDir, path: &str) -> String {
    format!("file://{}/root/{path}", folder.path().display())
}

#[test]
fn files_beneath_the_root_are_read_in_every_spelling() {
    let (folder, policy) = ground();
    let here = folder.path().display();
    for (url, body) in [
        (format!("file://{here}/root/a%20b%25c"), "hello"),
        (format!("file:{here}/root/a%20b%25c"), "hello"),
        (format!("FILE://LocalHost{here}/root/%61%20b%25c"), "hello"),
        (format!("file://{here}/root/sub/deep#part"), "deep"),
        (format!("file://{here}/root//sub/./deep"), "deep"),
        (format!("file://{here}/root/sub%2Fdeep"), "deep"),
        (format!("file://{here}/root/inside"), "deep"),
        (format!("file://{here}/root/empty"), ""),
    ] {
        let got = fetch(&policy, &url).expect(&url);
        assert_eq!(String::from_utf8_lossy(got.bytes()), body, "{url}");
        assert_eq!(got.media_type, None);
        assert!(!got.origin.url.contains('#'));
    }
}

#[test]
fn nothing_outside_the_root_is_read() {
    let (folder, policy) = ground();
    let here = folder.path().display();
    for url in [
        format!("file://{here}/secret"),
        format!("file://{here}/root/../secret"),
        format!("file://{here}/root/%2e%2e/secret"),
        format!("file://{here}/root/sub%2f..%2f..%2fsecret"),
        format!("file://{here}/rooted"),
        url(&folder, "out"),
        url(&folder, "absolute"),
        url(&folder, "up/secret"),
        url(&folder, "magic/etc/passwd"),
        url(&folder, "device"),
        "file:///etc/passwd".to_owned(),
    ] {
        assert_eq!(
            refused(&policy, &url).reason,
            Reason::OutsideFileRoot,
            "{url}"
        );
    }
}

#[test]
fn only_regular_files_are_read_and_a_pipe_does_not_hang() {
    let (folder, policy) = ground();
    let root = folder.path().join("root");
    let made = Command::new("mkfifo").arg(root.join("pipe")).status();
    assert!(made.unwrap().success());
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let begun = Instant::now();
    for path in ["pipe", "socket", "sub", "sub/", "", "."] {
        let refusal = refused(&policy, &url(&folder, path));
        assert_eq!(refusal.reason, Reason::NotARegularFile, "{path}");
    }
    for path in ["nothing", "nothing/at/all", "empty/x", "loop", "x%20y"] {
        let refusal = refused(&policy, &url(&folder, path));
        assert_eq!(
            refusal.reason,
            Reason::FileNotReadable,
            "{path}: {refusal:?}"
        );
    }
    assert_eq!(
        refused(&policy, &url(&folder, "a%00b")).reason,
        Reason::BadUrl
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    // A device in a root is neither read nor written.
    let devices = policy_of(Path::new("/dev"));
    assert_eq!(
        refused(&devices, "file:///dev/zero").reason,
        Reason::NotARegularFile
    );
}

#[test]
fn the_limit_holds_for_files() {
    let (folder, mut policy) = ground();
    fs::write(folder.path().join("root/big"), vec![1; 1000]).unwrap();
    policy = policy.map_limits(|limits| limits.with_body(1000));
    assert_eq!(
        fetch(&policy, &url(&folder, "big")).unwrap().bytes().len(),
        1000
    );
    policy = policy.map_limits(|limits| limits.with_body(999));
    assert_eq!(
        refused(&policy, &url(&folder, "big")).reason,
        Reason::TooLarge
    );
}

#[test]
fn replacing_a_folder_by_a_symlink_does_not_escape_the_root() {
    let (folder, policy) = ground();
    let root = folder.path().join("root");
    fs::create_dir(root.join("real")).unwrap();
    fs::write(root.join("real/secret"), "harmless").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (root, stop) = (root.clone(), Arc::clone(&stop));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::remove_file(root.join("swapped"));
                let _ = symlink("real", root.join("swapped"));
                let _ = fs::remove_file(root.join("swapped"));
                // Through the symbolic link, the path leads to ../secret.
                let _ = symlink("..", root.join("swapped"));
            }
        })
    };
    let world = Fetcher::new(policy.clone()).unwrap();
    let asked = request(&url(&folder, "swapped/secret"));
    let mut harmless = 0;
    let start = Instant::now();
    // On a busy machine the other thread may start late.
    for round in 0.. {
        if round >= 5000 && (harmless > 0 || start.elapsed() > Duration::from_secs(30)) {
            break;
        }
        if let Ok(got) = world.fetch(&asked) {
            assert_eq!(got.bytes(), b"harmless".as_slice());
            harmless += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(harmless > 0, "the race was never run");
}

#[test]
fn a_root_that_is_moved_stays_the_root_it_was() {
    let (folder, policy) = ground();
    let world = Fetcher::new(policy.clone()).unwrap();
    let root = folder.path().join("root");
    fs::rename(&root, folder.path().join("moved")).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a b%c"), "another").unwrap();
    let got = world.fetch(&request(&url(&folder, "a%20b%25c"))).unwrap();
    assert_eq!(got.bytes(), b"hello".as_slice());
}

#[test]
fn a_root_that_does_not_exist_stops_the_run() {
    let error = Fetcher::new(policy_of(Path::new("/nonexistent/root"))).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
