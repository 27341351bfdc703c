//! Stores and caches in directories with mail: they are skipped and reported, and mail is never mistaken for one
//! (docs/mailbox-internals.md, "What is mail").

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::common::objects::{beneath, digits};
use crate::common::programs::{done, embody_in};

/// A message with a reference.
const TO_DO: &str = "From: a@b\nSubject: inner\nMIME-Version: 1.0\n\
    Content-Type: message/external-body; access-type=URL; URL=\"data:,x\"\n\n\
    Content-Type: text/plain\n\n\n";

/// Returns a message with an attached mbox of messages with references.
fn message_with_mbox() -> String {
    let inner = format!("From x@y Mon Jan  1 00:00:00 2024\n{TO_DO}").repeat(1000);
    let encoded = BASE64.encode(inner);
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=z\n\n--z\n\
         Content-Type: application/octet-stream; name=x.mbox\n\
         Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{}\n--z--\n",
        lines.join("\n")
    )
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Returns all files in a directory.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found
}

#[test]
fn a_store_among_the_mail_is_no_mail() {
    for (store, message) in [
        ("mail/store", "mail/1.eml"),
        ("mail/.store", "mail/cur/1"),
        ("mail/store", "mail/new/1"),
        ("mail", "mail/1.eml"),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let original = message_with_mbox();
        if !message.ends_with(".eml") {
            for part in ["cur", "new", "tmp"] {
                fs::create_dir_all(place.join("mail").join(part)).unwrap();
            }
        }
        write(&place.join(message), original.as_bytes());
        let detach = [
            "detach",
            "--store",
            store,
            "--in-place",
            "--verbose",
            "mail",
        ];
        done(&embody_in(place, &detach), 0);
        assert!(fs::metadata(place.join(message)).unwrap().len() < original.len() as u64 / 2);
        // The store is reported once, unless --quiet is given.
        for volume in [&["--verbose"][..], &[]] {
            let convert = [&["convert", "--in-place"], volume, &["mail"]].concat();
            let said = done(&embody_in(place, &convert), 0);
            let named = said
                .lines()
                .filter(|line| line.contains(": skipped: ") && line.contains("of detached attach"));
            assert_eq!(named.count(), 1, "{store}: {said}");
            assert!(said.contains(store), "{said}");
        }
        let quiet = embody_in(place, &["convert", "--in-place", "--quiet", "mail"]);
        assert_eq!(done(&quiet, 0), "");
        let said = done(&embody_in(place, &["inspect", "mail"]), 0);
        assert!(
            said.contains(&format!("embody: {store}: skipped: ")),
            "{said}"
        );
        done(&embody_in(place, &detach), 0);
        done(&embody_in(place, &["store", "check", store]), 0);
        let back = embody_in(place, &["restore", "--store", store, message]);
        done(&back, 0);
        assert_eq!(back.stdout, original.as_bytes(), "{store}");
    }
}

#[test]
fn a_store_that_is_named_as_a_source_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::write(place.join("1.eml"), message_with_mbox()).unwrap();
    done(
        &embody_in(place, &["detach", "--store", "s", "--in-place", "1.eml"]),
        0,
    );
    let said = done(&embody_in(place, &["convert", "--in-place", "s"]), 1);
    assert!(said.contains("store"), "{said}");
}

/// Creates a cache as a run leaves it, with a response that looks like mail.
fn cache(place: &Path) -> PathBuf {
    write(&place.join("mail/1.eml"), b"From: a@b\n\nx\n");
    let convert = [
        "convert",
        "--in-place",
        "--fetch",
        "http",
        "--cache",
        "mail/cache",
        "mail",
    ];
    done(&embody_in(place, &convert), 0);
    let cache = place.join("mail/cache");
    let body = cache.join("bodies").join(beneath(TO_DO.as_bytes()));
    write(&body, TO_DO.as_bytes());
    let key = digits(b"http://example.org/");
    write(&cache.join("keys").join(&key[..2]).join(&key), b"{}");
    write(&cache.join("hosts").join(&key[..2]).join(&key), b"{}");
    write(&cache.join("tmp/1-2"), b"");
    write(&cache.join("size"), b"1 2");
    body
}

#[test]
fn a_cache_among_the_mail_is_no_mail() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let body = cache(place);
    for volume in [&["--verbose"][..], &[]] {
        let convert = [&["convert", "--in-place"], volume, &["mail"]].concat();
        let said = done(&embody_in(place, &convert), 0);
        let named = "mail/cache: skipped: a cache of embody\n";
        assert_eq!(said.matches(named).count(), 1, "{said}");
        assert!(said.contains("1 message"), "{said}");
    }
    assert_eq!(fs::read_to_string(body).unwrap(), TO_DO);
}

#[test]
fn mail_that_somebody_put_into_a_cache_is_mail() {
    for file in [
        "2.eml",
        "mail/2.eml",
        "keys/2.eml",
        "keys/ab/2.eml",
        "hosts/ab/cd/2.eml",
        "bodies/ab/2.eml",
        "bodies/ab/cd/2.eml",
        "tmp/2.eml",
        "tmp/a/2.eml",
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let body = cache(place);
        let mail = place.join("mail/cache").join(file);
        write(&mail, TO_DO.as_bytes());
        done(&embody_in(place, &["convert", "--in-place", "mail"]), 0);
        assert_ne!(fs::read_to_string(mail).unwrap(), TO_DO, "{file}");
        assert_eq!(fs::read_to_string(body).unwrap(), TO_DO, "{file}");
    }
}

/// Creates a store with an object that looks like mail.
fn store(folder: &Path) -> PathBuf {
    write(&folder.join(".lock"), b"");
    write(&folder.join(".tmp/embody-12-3"), TO_DO.as_bytes());
    let object = folder.join(beneath(TO_DO.as_bytes()));
    write(&object, TO_DO.as_bytes());
    object
}

/// A mail anywhere inside a store is mail. The object next to it is not.
#[test]
fn mail_that_somebody_put_into_a_store_is_mail() {
    let other = digits(b"other");
    let places = [
        "1.eml".to_owned(),
        ".hidden".to_owned(),
        "mail/1.eml".to_owned(),
        ".tmp/1.eml".to_owned(),
        ".tmp/embody-a".to_owned(),
        ".tmp/a/1".to_owned(),
        "ab/1.eml".to_owned(),
        "ab/cd".to_owned(),
        "AB/cd/1.eml".to_owned(),
        "ab/cd/1.eml".to_owned(),
        "ab/cd/ef/1.eml".to_owned(),
        format!("ab/cd/{other}"),
        format!("{}/cd/{other}", &other[..2]),
        format!("{}/{}/{}", &other[..2], &other[2..4], other.to_uppercase()),
        format!("{}/{}/{}", &other[..2], &other[2..4], &other[..63]),
        format!("{}/{}/{other}.eml", &other[..2], &other[2..4]),
        format!("{}/{}/{other}/1", &other[..2], &other[2..4]),
    ];
    for file in places {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let object = store(&place.join("mail"));
        let mail = place.join("mail").join(&file);
        write(&mail, TO_DO.as_bytes());
        done(&embody_in(place, &["convert", "mail", "--output", "to"]), 0);
        let copies: Vec<PathBuf> = files(&place.join("to"));
        assert_eq!(copies, [place.join("to").join(&file)]);
        let said = done(&embody_in(place, &["convert", "--in-place", "mail"]), 0);
        assert_ne!(fs::read_to_string(mail).unwrap(), TO_DO, "{file}: {said}");
        assert_eq!(fs::read_to_string(object).unwrap(), TO_DO, "{file}");
        assert!(said.contains("1 message"), "{file}: {said}");
        let named = "mail: skipped: 1 files that belong to a store of detached attachments\n";
        assert!(said.contains(named), "{file}: {said}");
    }
}

/// Directories with the layout of a store, but with other content.
#[test]
fn a_folder_of_mail_is_not_taken_for_a_store() {
    let (id, other) = (digits(b"Message-ID"), digits(b"other"));
    let of_id = format!("{}/{}/{id}", &id[..2], &id[2..4]);
    for files in [
        // A missing or additional file shows that the directory is not a store.
        &[".lock", "ab/cd/1.eml"][..],
        &[".lock", ".tmp/x", "1.eml", "ab/1.eml"],
        &[".lock", ".tmp/x", "ab/1.eml"],
        &[".lock", ".tmp/x", "AB/cd/1.eml"],
        &[".tmp/x", "ab/cd/1.eml"],
        // All files exist, but their names are not the hashes of their contents.
        &[".lock", ".tmp/embody-1-2", "ab/cd/1.eml"],
        &[".lock", ".tmp/embody-1-2", &of_id],
        &[".tmp/embody-1-2", &of_id],
        &[&of_id],
        &[".lock", ".tmp/embody-1-2", &format!("ab/cd/{other}")],
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        for file in files {
            let is_mail = !file.starts_with('.');
            let content = if is_mail { TO_DO } else { "" };
            write(&place.join("f").join(file), content.as_bytes());
        }
        let said = done(&embody_in(place, &["convert", "f", "--output", "to"]), 0);
        for file in files.iter().filter(|file| !file.starts_with('.')) {
            assert!(place.join("to").join(file).is_file(), "{file}: {said}");
        }
    }
    // A lock file with content belongs to another program.
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let object = store(&place.join("f"));
    fs::write(place.join("f/.lock"), TO_DO).unwrap();
    done(&embody_in(place, &["convert", "f", "--output", "to"]), 0);
    let mut copies = files(&place.join("to"));
    copies.sort();
    assert_eq!(
        copies,
        [".lock", ".tmp/embody-12-3"].map(|file| place.join("to").join(file))
    );
    assert!(object.is_file());
    // An empty directory is not a store, either.
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    write(&place.join("f/1.eml"), TO_DO.as_bytes());
    fs::create_dir_all(place.join("f/s/.tmp")).unwrap();
    fs::write(place.join("f/s/.lock"), "").unwrap();
    fs::create_dir(place.join("f/empty")).unwrap();
    let said = done(
        &embody_in(place, &["convert", "--in-place", "--verbose", "f"]),
        0,
    );
    assert!(!said.contains("f/s: skipped"), "{said}");
}

/// A store that was copied as described in docs/store.md has no lock and no temporary files. A damaged object is not
/// recognized.
#[test]
fn objects_are_known_by_their_content_where_no_lock_is() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let object = store(&place.join("mail/copy"));
    fs::remove_file(place.join("mail/copy/.lock")).unwrap();
    fs::remove_dir_all(place.join("mail/copy/.tmp")).unwrap();
    write(&place.join("mail/1.eml"), TO_DO.as_bytes());
    let said = done(&embody_in(place, &["convert", "--in-place", "mail"]), 0);
    assert!(said.contains("1 message read, 1 changed"), "{said}");
    let named = "mail/copy: skipped: 1 files that belong to a store of detached attachments\n";
    assert!(said.contains(named), "{said}");
    assert_eq!(fs::read_to_string(object).unwrap(), TO_DO);
}
