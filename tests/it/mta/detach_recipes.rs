//! samples/recipes/detach with procmail, maildrop and sh: the attachment of a delivered mail is in the store and can be
//! restored. If the store is temporarily unavailable, the mail waits unchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::common::mail::assert_bytes;
use crate::common::mta::{House, Stand, wanted};
use crate::common::programs::{fed, stderr};

/// Returns a mail with an attachment of this size in bytes.
fn mail(octets: usize) -> String {
    let content: Vec<u8> = (0..octets)
        .map(|index| (index * 31 + index / 256) as u8)
        .collect();
    let base64 = BASE64_STANDARD.encode(content);
    let lines: String = base64
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line) + "\n")
        .collect();
    format!(
        "From: alice@example.org\nTo: bob@example.org\nSubject: {octets}\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=b\n\n--b\n\nSee below.\n--b\n\
         Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{lines}--b--\n"
    )
}

/// Writes a recipe with the store of this test, which exists.
fn recipe(house: &House, name: &str, changes: &[(&str, &str)]) -> std::path::PathBuf {
    let store = house.text("store");
    let mut changes = changes.to_vec();
    changes.push(match name {
        "nightly" => ("$HOME/attachments", &store),
        _ => ("/srv/store", &store),
    });
    let path = house.recipe(&format!("detach/{name}"), &changes);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// Asserts that the attachment of the mail is in the store, as its only object.
#[track_caller]
fn has_left(house: &House, delivered: &[u8], mail: &str) {
    assert!(delivered.len() < 2000, "{} octets", delivered.len());
    let mut restore = Command::new(house.path("embody.real"));
    restore
        .args(["restore", "--store"])
        .arg(house.path("store"));
    let back = fed(&mut restore, delivered);
    assert_eq!(back.status.code(), Some(0), "{}", stderr(&back));
    assert!(
        back.stdout.ends_with(mail.as_bytes()),
        "{}",
        String::from_utf8_lossy(&back.stdout)
    );
}

/// Delivers a small mail, a large one, and a large one while the store or embody is unavailable.
fn delivers(run: impl Fn(&House, &str) -> Output) {
    let house = House::new();
    house.maildir_of("Maildir", None);
    let (small, large) = (mail(1000), mail(150_000));
    for letter in [&small, &large] {
        let output = run(&house, letter);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let delivered = house.only("Maildir");
        if letter == &small {
            assert!(delivered.ends_with(small.as_bytes()))
        } else {
            has_left(&house, &delivered, letter)
        }
    }
    // A file replaces the store, so no object can be added.
    fs::rename(house.path("store"), house.path("aside")).unwrap();
    fs::write(house.path("store"), "").unwrap();
    let output = run(&house, &large);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert!(house.delivered("Maildir").is_empty());
    fs::remove_file(house.path("store")).unwrap();
    fs::rename(house.path("aside"), house.path("store")).unwrap();
    for stand in [Stand::Exits(75), Stand::DiesHalfWay, Stand::Missing] {
        house.stands(stand);
        let output = run(&house, &large);
        assert_eq!(output.status.code(), Some(75), "{stand:?}: {output:?}");
        assert!(house.delivered("Maildir").is_empty());
        house.stands(Stand::Works);
    }
    let output = run(&house, &large);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    has_left(&house, &house.only("Maildir"), &large);
}

#[test]
fn procmail_delivers_without_attachments_or_waits() {
    if wanted("detach: procmail", "procmail").is_none() {
        return;
    }
    delivers(|house, mail| {
        let mut command = Command::new("procmail");
        command
            .arg("VERBOSE=on")
            .arg(format!("LOGFILE={}", house.text("log")))
            .arg(format!("DEFAULT={}/", house.text("Maildir")))
            .arg(recipe(house, "procmailrc", &[]));
        fed(&mut command, mail.as_bytes())
    });
}

#[test]
fn maildrop_delivers_without_attachments_or_waits() {
    if wanted("detach: maildrop", "maildrop").is_none() {
        return;
    }
    delivers(|house, mail| {
        let recipe = recipe(house, "mailfilter", &[]);
        let rules = fs::read_to_string(&recipe).unwrap();
        let here = format!("DEFAULT=\"{}\"\n{rules}", house.text("Maildir"));
        fs::write(&recipe, here).unwrap();
        fs::set_permissions(&recipe, fs::Permissions::from_mode(0o600)).unwrap();
        fed(Command::new("maildrop").arg(recipe), mail.as_bytes())
    });
}

/// Runs the script as Postfix's pipe does. tests/postfix.rs uses Postfix itself, and a script that differs in one line.
#[test]
fn the_script_for_postfix_delivers_without_attachments_or_waits() {
    delivers(|house, mail| {
        let script = recipe(house, "embody-then", &[]);
        let deliver = format!("cat > {}/new/1", house.text("Maildir"));
        fed(
            Command::new(script).args(["sh", "-c", &deliver]),
            mail.as_bytes(),
        )
    });
    let [one, other] = ["embody-then", "detach/embody-then"].map(|name| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/recipes");
        fs::read_to_string(folder.join(name)).unwrap()
    });
    let differ = one.lines().zip(other.lines()).filter(|(a, b)| a != b);
    assert_eq!(differ.count(), 1);
    assert_eq!(one.lines().count(), other.lines().count());
}

/// Creates a replacement of `date` that prints this day of the week.
fn day(house: &House, day: u8) {
    house.script("bin/date", &format!("#!/bin/sh\necho {day}\n"));
}

#[test]
fn a_nightly_run_detaches_checks_and_collects_on_sundays() {
    let house = House::new();
    house.maildir_of("Maildir", None);
    let script = recipe(&house, "nightly", &[]);
    let run = || {
        let path = format!("{}:/usr/bin:/bin", house.text("bin"));
        let mut command = Command::new(&script);
        command
            .env("HOME", house.path(""))
            .env("PATH", path)
            .output()
            .unwrap()
    };
    let (kept, deleted) = (mail(150_000), mail(160_000));
    fs::write(house.path("Maildir/cur/1.host:2,S"), &kept).unwrap();
    fs::write(house.path("Maildir/cur/2.host:2,S"), &deleted).unwrap();
    day(&house, 6);
    let output = run();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let one = fs::read(house.path("Maildir/cur/1.host:2,S")).unwrap();
    has_left(&house, &one, &kept);
    // A mail is deleted, and its attachment becomes old.
    let two = fs::read(house.path("Maildir/cur/2.host:2,S")).unwrap();
    has_left(&house, &two, &deleted);
    fs::remove_file(house.path("Maildir/cur/2.host:2,S")).unwrap();
    let objects = || objects(&house);
    let made_old = objects();
    assert_eq!(made_old.len(), 2);
    for object in &made_old {
        let aged = Command::new("touch")
            .args(["-d", "2 days ago"])
            .arg(object)
            .status();
        assert!(aged.unwrap().success());
    }
    assert_eq!(run().status.code(), Some(0));
    assert_eq!(objects().len(), 2, "it is Saturday");
    day(&house, 7);
    let output = run();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(objects().len(), 1);
    has_left(&house, &one, &kept);
    assert_bytes(
        &fs::read(house.path("Maildir/cur/1.host:2,S")).unwrap(),
        &one,
        "twice is once",
    );
    // A missing object is reported, and then no object is removed.
    fs::remove_file(&objects()[0]).unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("missing"));
}

/// The recipes for deliveries and for the nightly run name different stores. If they did not, no attachment would be lost.
#[test]
fn a_nightly_run_takes_nothing_from_the_store_of_a_delivery() {
    let stores = ["embody-then", "procmailrc", "mailfilter", "nightly"].map(|name| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/recipes/detach");
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!(!text.contains("--all-mail-is-here"), "{name}");
        text.contains("/srv/store")
    });
    assert_eq!(stores, [true, true, true, false]);
    let house = House::new();
    house.maildir_of("Maildir", None);
    let script = recipe(&house, "embody-then", &[]);
    let deliver = format!("cat > {}/new/of-somebody-else", house.text(""));
    fs::create_dir_all(house.path("new")).unwrap();
    let letter = mail(150_000);
    let output = fed(
        Command::new(script).args(["sh", "-c", &deliver]),
        letter.as_bytes(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    fs::write(house.path("Maildir/cur/1.host:2,S"), mail(160_000)).unwrap();
    day(&house, 7);
    let night = || {
        let path = format!("{}:/usr/bin:/bin", house.text("bin"));
        let mut command = Command::new(recipe(&house, "nightly", &[]));
        command
            .env("HOME", house.path(""))
            .env("PATH", path)
            .output()
            .unwrap()
    };
    assert_eq!(
        night().status.code(),
        Some(1),
        "the delivery is in the list"
    );
    assert_eq!(objects(&house).len(), 2);
    for object in objects(&house) {
        let aged = Command::new("touch")
            .args(["-d", "2 days ago"])
            .arg(object)
            .status();
        assert!(aged.unwrap().success());
    }
    let output = night();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("standard input (user id"),
        "{}",
        stderr(&output)
    );
    assert_eq!(objects(&house).len(), 2);
    let delivered = fs::read(house.path("new/of-somebody-else")).unwrap();
    has_left(&house, &delivered, &letter);
}

/// Returns the objects in the store.
fn objects(house: &House) -> Vec<String> {
    let mut find = Command::new("find");
    find.arg(house.path("store"))
        .args(["-type", "f", "-size", "+50k"]);
    let found = String::from_utf8(find.output().unwrap().stdout).unwrap();
    found.lines().map(ToOwned::to_owned).collect()
}
