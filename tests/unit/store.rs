//! A store in a directory (docs/store.md): stored objects are complete and durable, and never replace other files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use embody::store::{Folder, Key, Store as _, StoreError};
use proptest::prelude::*;

use super::common::bounded::ended;

/// Returns all paths in a directory, with the content of the files.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                folders.push(path)
            } else {
                found.push((path.clone(), fs::read(&path).unwrap_or_default()))
            }
        }
    }
    found.sort();
    found.retain(|(path, _)| path.file_name() != Some(".lock".as_ref()));
    found
}

fn stored(store: &Folder, octets: &[u8]) -> Result<Key, StoreError> {
    let key = store.put(octets)?;
    store.flush(&[key])?;
    Ok(key)
}

#[test]
fn an_object_lies_under_its_hash_and_may_be_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/store");
    let store = Folder::open(&path).unwrap();
    let key = stored(&store, b"abc").unwrap();
    assert_eq!(key, Key::of(b"abc"));
    let file = path.join(key.path());
    assert_eq!(files(&path), [(file.clone(), b"abc".to_vec())]);
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o7777, 0o440);
    assert_eq!(store.get(&key, 3).unwrap().unwrap(), b"abc");
    assert_eq!(store.get(&Key::of(b""), 3).unwrap(), None);
    assert!(
        store
            .get(&key, 2)
            .unwrap_err()
            .to_string()
            .contains("at most 2 are allowed")
    );
    let reader = Folder::open_to_read(&path).unwrap();
    assert_eq!(reader.get(&key, u64::MAX).unwrap().unwrap(), b"abc");
    assert!(reader.put(b"abc").is_err());
}

#[test]
fn the_base_url_is_that_of_the_folder_without_links() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().canonicalize().unwrap();
    let path = folder.join("a store#1");
    let store = Folder::open(&path).unwrap();
    assert_eq!(
        store.base_url(),
        format!("file://{}/a%20store%231/", folder.display())
    );
    symlink(&path, folder.join("link")).unwrap();
    let linked = Folder::open(&folder.join("link")).unwrap();
    assert_eq!(linked.base_url(), store.base_url());
}

#[test]
fn equal_content_is_one_file_and_touched() {
    let folder = tempfile::tempdir().unwrap();
    let store = Folder::open(folder.path()).unwrap();
    let key = stored(&store, b"abc").unwrap();
    let path = folder.path().join(key.path());
    let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
    File::open(&path).unwrap().set_modified(long_ago).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    assert_eq!(stored(&store, b"abc").unwrap(), key);
    let found = fs::metadata(&path).unwrap();
    assert_eq!(found.ino(), inode);
    assert!(found.modified().unwrap() > SystemTime::now() - Duration::from_secs(100));
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn unflushed_object_cannot_be_read_and_is_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let store = Folder::open(folder.path()).unwrap();
    let key = store.put(b"abc").unwrap();
    assert_eq!(store.get(&key, 3).unwrap(), None);
    drop(store);
    assert_eq!(files(folder.path()), []);
}

#[test]
fn a_planted_file_is_neither_taken_nor_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let store = Folder::open(folder.path()).unwrap();
    let key = Key::of(b"abc");
    let path = folder.path().join(key.path());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // A file that exists before the object is stored. Its content is different.
    for content in [&b"other"[..], b"ab", b"abc\n", b""] {
        fs::write(&path, content).unwrap();
        let why = stored(&store, b"abc").unwrap_err();
        assert!(
            why.to_string()
                .contains("does not match the SHA-256 in its name"),
            "{why}"
        );
        assert!(!why.is_temporary());
        assert!(store.get(&key, 100).is_err());
        assert_eq!(fs::read(&path).unwrap(), content);
        fs::remove_file(&path).unwrap();
        store.put(b"abc").unwrap();
        fs::write(&path, content).unwrap();
        let why = store.flush(&[key]).unwrap_err();
        assert!(
            why.to_string()
                .contains("does not match the SHA-256 in its name"),
            "{why}"
        );
        // Other objects can still be stored.
        store.flush(&[Key::of(b"def")]).unwrap();
        assert_eq!(files(folder.path()), [(path.clone(), content.to_vec())]);
        fs::remove_file(&path).unwrap();
    }
    // After the file was removed, the object can be stored.
    assert_eq!(stored(&store, b"abc").unwrap(), key);
    assert_eq!(store.get(&key, 3).unwrap().unwrap(), b"abc");
}

#[test]
fn no_symbolic_link_in_a_store_is_followed() {
    let key = Key::of(b"abc");
    let path = key.path();
    for (place, is_file) in [(&path[..2], false), (&path[..5], false), (&path[..], true)] {
        for there in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let elsewhere = folder.path().join("elsewhere");
            let target = folder.path().join("store").join(place);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            match (is_file, there) {
                (true, true) => fs::write(&elsewhere, b"abc").unwrap(),
                (false, true) => {
                    let inner = elsewhere.join(path.strip_prefix(place).unwrap().trim_matches('/'));
                    fs::create_dir_all(inner.parent().unwrap()).unwrap();
                    fs::write(inner, b"abc").unwrap();
                }
                (_, false) => {}
            }
            symlink(&elsewhere, &target).unwrap();
            let before = there.then(|| fs::metadata(&elsewhere).unwrap().modified().unwrap());
            let store = Folder::open(&folder.path().join("store")).unwrap();
            let why = stored(&store, b"abc").unwrap_err();
            assert!(!why.is_temporary(), "{place}: {why}");
            assert!(store.get(&key, 3).is_err(), "{place}");
            drop(store);
            assert_eq!(elsewhere.exists(), there);
            let after = there.then(|| fs::metadata(&elsewhere).unwrap().modified().unwrap());
            assert_eq!(before, after);
            assert!(fs::symlink_metadata(&target).unwrap().is_symlink());
        }
    }
}

#[test]
fn a_link_or_a_file_in_the_place_of_lock_or_temporary_files_is_trouble() {
    for name in [".lock", ".tmp"] {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let target = elsewhere.path().join("x");
        symlink(&target, folder.path().join(name)).unwrap();
        let why = Folder::open(folder.path()).unwrap_err();
        assert!(!why.is_temporary(), "{why}");
        assert!(!target.exists());
        fs::create_dir(&target).unwrap();
        assert!(Folder::open(folder.path()).is_err());
        assert_eq!(files(&target), []);
    }
}

#[test]
fn what_is_no_regular_file_is_no_object() {
    let folder = tempfile::tempdir().unwrap();
    let store = Folder::open(folder.path()).unwrap();
    let path = folder.path().join(Key::of(b"abc").path());
    fs::create_dir_all(&path).unwrap();
    assert!(!stored(&store, b"abc").unwrap_err().is_temporary());
    assert!(store.get(&Key::of(b"abc"), 3).is_err());
    fs::remove_dir(&path).unwrap();
    if Command::new("mkfifo")
        .arg(&path)
        .status()
        .is_ok_and(|made| made.success())
    {
        // The store does not wait for a writer of the pipe.
        assert!(stored(&store, b"abc").is_err());
    }
}

#[test]
fn vanished_or_replaced_store_refuses_reads_and_writes() {
    for replaced in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Folder::open(&path).unwrap();
        let key = stored(&store, b"abc").unwrap();
        store.put(b"def").unwrap();
        fs::rename(&path, folder.path().join("away")).unwrap();
        if replaced {
            fs::create_dir(&path).unwrap();
        }
        let why = store.flush(&[Key::of(b"def")]).unwrap_err();
        assert!(why.is_temporary(), "{why}");
        assert!(stored(&store, b"abc").unwrap_err().is_temporary());
        assert!(store.get(&Key::of(b"x"), 3).unwrap_err().is_temporary());
        fs::remove_dir_all(folder.path().join("away")).unwrap();
        assert!(stored(&store, b"ghi").unwrap_err().is_temporary());
        assert!(store.get(&key, 3).is_err());
        assert_eq!(path.exists(), replaced);
    }
}

#[test]
fn folders_in_a_store_get_the_permissions_of_the_store() {
    for mode in [0o700, 0o750, 0o2750, 0o755] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let store = Folder::open(folder.path()).unwrap();
        let key = stored(&store, b"abc").unwrap();
        let file = folder.path().join(key.path());
        for made in file.ancestors().skip(1).take(2) {
            assert_eq!(
                fs::metadata(made).unwrap().mode() & 0o7777,
                mode,
                "{made:?}"
            );
        }
    }
}

#[test]
fn temporary_files_of_killed_runs_go_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    drop(Folder::open(folder.path()).unwrap());
    let hours = Duration::from_secs(2 * 60 * 60);
    let make = |name: &str, age: Duration| {
        let path = folder.path().join(".tmp").join(name);
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        (path, file)
    };
    let (old, _) = make("embody-1-1", hours);
    let (young, _) = make("embody-1-2", Duration::ZERO);
    let (held, file) = make("embody-1-3", hours);
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (strange, _) = make("mine", hours);
    drop(Folder::open(folder.path()).unwrap());
    assert!(!old.exists());
    assert!(young.exists() && held.exists() && strange.exists());
}

#[test]
fn garbage_collection_excludes_writers_and_writers_share_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let first = Folder::open(folder.path()).unwrap();
    let second = Folder::open(folder.path()).unwrap();
    let lock = File::open(folder.path().join(".lock")).unwrap();
    let alone = || rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    drop(first);
    assert!(alone().is_err());
    drop(second);
    alone().unwrap();
    drop(lock);
    let collection = Folder::open_alone(folder.path()).unwrap();
    let waiting = std::thread::spawn({
        let path = folder.path().to_owned();
        move || Folder::open(&path).map(|_| SystemTime::now())
    });
    std::thread::sleep(Duration::from_millis(100));
    let released = SystemTime::now();
    drop(collection);
    assert!(waiting.join().unwrap().unwrap() >= released);
}

/// Returns the content of the object with this number.
fn numbered(number: usize) -> Vec<u8> {
    format!("{number}\n")
        .repeat(100 + number % 7 * 1000)
        .into_bytes()
}

#[test]
fn many_threads_put_and_flush() {
    let folder = tempfile::tempdir().unwrap();
    let store = Folder::open(folder.path()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..60 {
                    // Several threads store most of the objects.
                    let octets = numbered(number * (1 + thread % 3));
                    let key = store.put(&octets).unwrap();
                    store.flush(&[key]).unwrap();
                    assert_eq!(store.get(&key, u64::MAX).unwrap().unwrap(), octets);
                }
            });
        }
    });
    for (path, content) in files(folder.path()) {
        assert!(path.ends_with(Key::of(&content).path()), "{path:?}");
    }
}

/// Returns a command that runs this test program again, with one test of this file.
fn again(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("unit::store::{test}"), "--nocapture"])
        .env("EMBODY_TEST_STORE", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Returns the store of the parent process, in a process that `again` started.
fn given() -> Option<PathBuf> {
    std::env::var_os("EMBODY_TEST_STORE").map(|folder: OsString| folder.into())
}

#[test]
fn two_processes_put_the_same_content() {
    if let Some(folder) = given() {
        let store = Folder::open(&folder).unwrap();
        for number in 0..100 {
            assert_eq!(
                stored(&store, &numbered(number)).unwrap(),
                Key::of(&numbered(number))
            );
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "two_processes_put_the_same_content";
    let mut children = [(); 2].map(|()| again(test, folder.path()).spawn().unwrap());
    for child in &mut children {
        assert!(ended(child).success());
    }
    let files = files(folder.path());
    assert_eq!(files.len(), 100);
    for (path, content) in files {
        assert!(path.ends_with(Key::of(&content).path()), "{path:?}");
    }
}

/// After a process was killed at any moment, every object has the name of its content, and flushed objects exist.
#[test]
fn a_killed_process_leaves_whole_objects() {
    if let Some(folder) = given() {
        let store = Folder::open(&folder).unwrap();
        let done = folder.with_extension("done");
        fs::create_dir_all(&done).unwrap();
        for number in 0.. {
            let key = stored(&store, &numbered(number)).unwrap();
            File::create(done.join(key.to_string())).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut whole = 0;
    // If starting a process takes long, only the later and longer rounds find objects.
    for round in 0..200 {
        if round >= 20 && whole > 20 {
            break;
        }
        let test = "a_killed_process_leaves_whole_objects";
        let mut child = again(test, &path).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(20 + round * 7));
        child.kill().unwrap();
        ended(&mut child);
        let store = Folder::open(&path).unwrap();
        for entry in fs::read_dir(path.with_extension("done"))
            .into_iter()
            .flatten()
        {
            let name = entry.unwrap().file_name();
            let key = Key::parse(name.to_str().unwrap()).unwrap();
            assert!(store.get(&key, u64::MAX).unwrap().is_some());
            whole += 1;
        }
        for (file, content) in files(&path) {
            let is_temporary = file
                .parent()
                .is_some_and(|folder| folder.file_name().is_some_and(|name| name == ".tmp"));
            assert!(
                is_temporary || file.ends_with(Key::of(&content).path()),
                "{file:?}"
            );
        }
        // Files that the killed process left do not delay the next one.
        stored(&store, &numbered(100_000)).unwrap();
    }
    assert!(whole > 20, "{whole} objects");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn stored_object_is_read_back_unchanged(objects in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..80)) {
        let folder = tempfile::tempdir().unwrap();
        let store = Folder::open(folder.path()).unwrap();
        let keys: Vec<Key> = objects.iter().map(|octets| store.put(octets).unwrap()).collect();
        store.flush(&keys).unwrap();
        for (key, octets) in keys.iter().zip(&objects) {
            prop_assert_eq!(&store.get(key, 2000).unwrap().unwrap(), octets);
        }
    }
}
