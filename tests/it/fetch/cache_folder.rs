//! The directory of `--cache`: truncated, changed or planted files are never used as content. Also tests access by other users,
//! and eviction (docs/cache.md).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use proptest::prelude::*;

use crate::common::bounded::finished;
use crate::common::filter::{filled, filter, mail, open, reference};
use crate::common::programs::{embody, stderr, unprivileged};
use crate::common::raw::{Raw, ok, redirect};

const LONG: &str = "Cache-Control: max-age=3600\r\n";

/// Returns a server that responds with the path, fresh for an hour.
fn server() -> Raw {
    Raw::http(|path, stream| {
        let answer = match path.strip_prefix("/to/") {
            Some(to) => redirect(&format!("/{to}")),
            None => ok("image/gif", &body(path)),
        };
        let end = answer.iter().position(|&octet| octet == b'\n').unwrap() + 1;
        let _ = stream.write_all(&answer[..end]);
        let _ = stream.write_all(LONG.as_bytes());
        let _ = stream.write_all(&answer[end..]);
    })
}

fn body(path: &str) -> Vec<u8> {
    [b"GIF89a ", path.as_bytes()].concat()
}

fn options(server: &Raw, cache: &Path) -> String {
    format!(
        "{} --cache {}",
        open(&[server.address.port()]),
        cache.display()
    )
}

fn parts(server: &Raw, paths: &[&str]) -> (Vec<u8>, Vec<u8>) {
    let before: Vec<_> = paths
        .iter()
        .map(|path| reference(&server.url(path), "image/gif"))
        .collect();
    let after: Vec<_> = paths
        .iter()
        .map(|path| {
            let path = path.replacen("/to/", "/", 1);
            filled(Some(&server.url(&path)), "image/gif", &body(&path))
        })
        .collect();
    (mail(&before), mail(&after))
}

/// Returns all files in a directory, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found.sort();
    found
}

#[test]
fn only_its_owner_may_read_it() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("new/cache");
    let (before, after) = parts(&server, &["/a", "/to/b"]);
    filter(&options(&server, &cache), &before).gives(&after);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    let all = files(&cache);
    assert!(all.len() >= 6, "{all:?}");
    for file in &all {
        assert_eq!(mode(file), 0o600, "{}", file.display());
        for around in file
            .ancestors()
            .skip(1)
            .take_while(|it| it.starts_with(&cache))
        {
            assert_eq!(mode(around), 0o700, "{}", around.display());
        }
    }
    // An existing empty directory is closed to other users.
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o777)).unwrap();
    filter(&options(&server, &empty), &before).gives(&after);
    assert_eq!(mode(&empty), 0o700);
    // A directory that was opened to other users since may contain anything.
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o770)).unwrap();
    let ran = filter(&options(&server, &empty), &before);
    assert_eq!(ran.code, Some(75));
    assert!(ran.stderr.contains("chmod 700"), "{}", ran.stderr);
}

#[test]
fn the_folder_of_another_user_is_not_believed() {
    const TEST: &str = "the_folder_of_another_user_is_not_believed";
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let Some(mut other) = unprivileged(TEST, folder.path()) else {
        return;
    };
    if fs::read("/etc/shadow").is_err() {
        // Another user is available only to the superuser.
        return;
    }
    let ran = other
        .args(["filter", "--cache"])
        .arg(&cache)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(75));
    assert!(
        stderr(&ran).contains("belongs to another user"),
        "{}",
        stderr(&ran)
    );
}

#[test]
fn a_store_is_no_cache_and_a_cache_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let (store, cache) = (folder.path().join("s"), folder.path().join("c"));
    let attachment = fs::read("samples/detach/attachment.in.eml").unwrap();
    fs::write(folder.path().join("m.eml"), &attachment).unwrap();
    let detach = |store: &Path| {
        embody()
            .args(["detach", "--larger-than", "1", "--store"])
            .arg(store)
            .arg(folder.path().join("m.eml"))
            .output()
            .unwrap()
    };
    let ran = detach(&store);
    assert!(ran.status.success() && ran.stdout != attachment);
    let held = files(&store);
    for more in ["", " --cache-max 1M"] {
        let ran = filter(&format!("--cache {}{more}", store.display()), &attachment);
        assert_eq!(ran.code, Some(75), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("not a cache of embody"),
            "{}",
            ran.stderr
        );
    }
    let convert = embody()
        .args(["convert", "m.eml", "--output", "x", "--cache"])
        .arg(&store)
        .output()
        .unwrap();
    assert_eq!(convert.status.code(), Some(2), "{}", stderr(&convert));
    assert_eq!(files(&store), held);

    filter(&format!("--cache {}", cache.display()), &attachment).gives(&attachment);
    let ran = detach(&cache);
    assert!(!ran.status.success() && ran.stdout.is_empty());
    assert!(
        stderr(&ran).contains("is a cache of embody"),
        "{}",
        stderr(&ran)
    );
    for action in ["check", "gc"] {
        let ran = embody()
            .args(["store", action])
            .arg(&cache)
            .arg(folder.path().join("m.eml"))
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
        assert!(stderr(&ran).contains("is not a store"), "{}", stderr(&ran));
    }
    // A directory with other files is not made a cache, even if one of them has the name of the tag.
    let foreign = folder.path().join("f");
    fs::create_dir(&foreign).unwrap();
    fs::write(
        foreign.join("CACHEDIR.TAG"),
        "Signature: 8a477f597d28d172789f6886806bc55\n",
    )
    .unwrap();
    let ran = filter(&format!("--cache {}", foreign.display()), &attachment);
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
}

/// A change of a file.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Add(Vec<u8>),
    /// The file replaces another one.
    Move(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => (any::<prop::sample::Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..9).prop_map(Damage::Add),
        2 => any::<prop::sample::Index>().prop_map(Damage::Move),
    ]
}

#[test]
fn a_damaged_entry_is_a_miss_and_never_content() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let (pristine, cache) = (folder.path().join("p"), folder.path().join("c"));
    let paths = ["/a", "/to/b", "/c"];
    let (before, after) = parts(&server, &paths);
    filter(&options(&server, &pristine), &before).gives(&after);
    let is_entry = |file: &PathBuf| !file.ends_with("size") && !file.ends_with("CACHEDIR.TAG");
    let entries: Vec<PathBuf> = files(&pristine).into_iter().filter(is_entry).collect();
    assert_eq!(entries.len(), 7);
    let online = options(&server, &cache);
    let offline = format!("{online} --offline");
    // The possible results without a network: each part is filled or left.
    let [here, there] = [&before, &after].map(|mail| {
        let text = String::from_utf8(mail.clone()).unwrap();
        let parts: Vec<String> = text.split("--b").map(str::to_owned).collect();
        parts
    });
    let config = ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let changed = std::cell::Cell::new(0);
    let strategy = (any::<prop::sample::Index>(), damage());
    let done = runner.run(&strategy, |(which, damage)| {
        let _ = fs::remove_dir_all(&cache);
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .args([&pristine, &cache])
            .status();
        prop_assert!(copied.unwrap().success());
        let file = |entry: &PathBuf| cache.join(entry.strip_prefix(&pristine).unwrap());
        let victim = file(which.get(&entries));
        let mut octets = fs::read(&victim).unwrap();
        match &damage {
            Damage::Flip(at, bit) => *at.get_mut(&mut octets) ^= 1 << bit,
            Damage::Cut(at) => octets.truncate(at.index(octets.len())),
            Damage::Add(more) => octets.extend_from_slice(more),
            Damage::Move(from) => octets = fs::read(file(from.get(&entries))).unwrap(),
        }
        fs::write(&victim, octets).unwrap();
        let ran = filter(&offline, &before);
        prop_assert_eq!(ran.code, Some(0));
        let stdout = String::from_utf8(ran.stdout).unwrap();
        let out: Vec<&str> = stdout.split("--b").collect();
        prop_assert_eq!(out.len(), here.len());
        for ((out, here), there) in out.iter().zip(&here).zip(&there) {
            prop_assert!(out == here || out == there, "{}", out);
            if out != there {
                changed.set(changed.get() + 1);
            }
        }
        // With the server, the damaged entry is replaced.
        let ran = filter(&online, &before);
        prop_assert!(ran.stdout == after, "{}", ran.stderr);
        let ran = filter(&offline, &before);
        prop_assert!(ran.stdout == after, "{}", ran.stderr);
        Ok(())
    });
    done.unwrap();
    assert!(changed.get() > 50, "{} misses", changed.get());
}

#[test]
fn planted_symbolic_links_are_not_followed() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let precious = folder.path().join("precious");
    fs::create_dir(&precious).unwrap();
    let (before, after) = parts(&server, &["/a"]);
    let online = options(&server, &cache);
    filter(&online, &before).gives(&after);
    // A valid file, but behind a symbolic link.
    for area in ["keys", "bodies"] {
        let held = files(&cache.join(area));
        let [file] = held.as_slice() else {
            panic!("{held:?}")
        };
        let elsewhere = precious.join(area);
        fs::rename(file, &elsewhere).unwrap();
        symlink(&elsewhere, file).unwrap();
        filter(&format!("{online} --offline"), &before).leaves(&before, &["offline"]);
        let kept = fs::read(&elsewhere).unwrap();
        filter(&online, &before).gives(&after);
        assert!(!fs::symlink_metadata(file).unwrap().is_symlink());
        assert!(fs::read(&elsewhere).unwrap() == kept);
        filter(&format!("{online} --offline"), &before).gives(&after);
    }
    // Directories that are symbolic links are neither read nor written.
    for area in ["keys", "bodies", "tmp"] {
        let there = precious.join(format!("{area}-folder"));
        fs::rename(cache.join(area), &there).unwrap();
        symlink(&there, cache.join(area)).unwrap();
        let held = files(&there);
        let (other, filled) = parts(&server, &["/b"]);
        let ran = filter(&online, &other);
        ran.gives(&filled);
        assert!(ran.stderr.contains("cannot be written"), "{}", ran.stderr);
        assert_eq!(files(&there), held, "{area}");
        fs::remove_file(cache.join(area)).unwrap();
        fs::rename(&there, cache.join(area)).unwrap();
    }
    // A named pipe in place of a file does not block the run.
    for file in files(&cache.join("keys")) {
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
    }
    filter(&format!("{online} --offline"), &before).leaves(&before, &["offline"]);
}

#[test]
fn a_cache_that_cannot_be_written_costs_no_mail() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let (before, after) = parts(&server, &["/a", "/b"]);
    let online = options(&server, &cache);
    filter(&format!("--cache {}", cache.display()), &before);
    fs::write(cache.join("keys"), "not a directory").unwrap();
    let ran = filter(&online, &before);
    ran.gives(&after);
    assert_eq!(
        ran.stderr.matches("cannot be written").count(),
        1,
        "{}",
        ran.stderr
    );
    let ran = filter(&format!("{online} --quiet"), &before);
    ran.gives(&after);
    assert_eq!(ran.stderr, "");
}

fn on_disk(cache: &Path) -> u64 {
    files(cache)
        .iter()
        .map(|file| fs::metadata(file).unwrap().len().max(1).div_ceil(4096) * 4096)
        .sum()
}

#[test]
fn least_recently_used_cache_entry_is_evicted() {
    let server = Raw::http(|path, stream| {
        let body = [body(path), vec![b'.'; 50_000]].concat();
        let answer = String::from_utf8(ok("image/gif", &body)).unwrap().replacen(
            "\r\n",
            &format!("\r\n{LONG}"),
            1,
        );
        let _ = stream.write_all(answer.as_bytes());
    });
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let online = format!("{} --cache-max 200k", options(&server, &cache));
    let get = |path: &str| {
        let count = server.count();
        let ran = filter(&online, &mail(&[reference(&server.url(path), "image/gif")]));
        assert_eq!(ran.column("outcome"), ["expanded"]);
        server.count() > count
    };
    // Three entries fit, four do not: each has a body of 52k and a key of 4k.
    assert!(get("/a") && get("/b") && get("/c"));
    assert!(!get("/a"), "it was used");
    assert!(get("/d"));
    assert!(on_disk(&cache) <= 210 << 10, "{}", on_disk(&cache));
    assert!(!get("/a") && !get("/d"));
    assert!(get("/b"), "it was the oldest");
    for number in 0..20 {
        get(&format!("/more/{number}"));
        assert!(on_disk(&cache) <= 210 << 10, "{}", on_disk(&cache));
    }
    // A response that is larger than the whole cache is not stored.
    let small = format!(
        "{} --cache-max 20k",
        options(&server, &folder.path().join("s"))
    );
    let before = mail(&[reference(&server.url("/a"), "image/gif")]);
    for _ in 0..2 {
        let count = server.count();
        filter(&small, &before);
        assert!(server.count() > count);
    }
}

#[test]
fn several_processes_use_one_cache_and_get_correct_content() {
    let server = server();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("c");
    let paths: Vec<String> = (0..60).map(|number| format!("/{number}")).collect();
    let mut mailbox = Vec::new();
    let mut expected = Vec::new();
    for path in paths.iter().chain(&paths).chain(&paths) {
        let (before, after) = parts(&server, &[path]);
        for (mbox, message) in [(&mut mailbox, before), (&mut expected, after)] {
            mbox.extend_from_slice(b"From a@example.org Sat Jan  3 01:05:34 1996\n");
            mbox.extend_from_slice(&message);
            mbox.extend_from_slice(b"\n\n");
        }
    }
    fs::write(folder.path().join("in.mbox"), &mailbox).unwrap();
    // Not everything fits, so each process evicts entries that the others read.
    let online = format!("{} --cache-max 300k", options(&server, &cache));
    let running: Vec<_> = (0..4)
        .map(|number| {
            let to = folder.path().join(format!("{number}.mbox"));
            let child = embody()
                .args(["convert", "--quiet"])
                .arg(folder.path().join("in.mbox"))
                .arg("--output")
                .arg(&to)
                .args(online.split(' '))
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            (child, to)
        })
        .collect();
    for (child, to) in running {
        let ended = finished(child);
        assert!(ended.status.success(), "{}", stderr(&ended));
        assert!(fs::read(to).unwrap() == expected);
    }
    assert!(files(&cache.join("tmp")).is_empty());
    // Each process may have written a file that it had not added to the total yet.
    assert!(on_disk(&cache) <= 340 << 10, "{}", on_disk(&cache));
    assert!(server.count() >= 60);
}
