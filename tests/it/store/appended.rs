//! If data of another format were appended to a message, `store gc --delete` removes nothing (docs/store.md).

use std::fs;

use super::folders::{Place, ended};
use crate::common::archives::{tar, zip};
use crate::common::programs::stderr;
use crate::mailbox::appended::{FROM, emlx, gzip, kinds, mail, mbox, messages};

/// Returns files with `message` and, after it, `data`: the name of each file, and its content.
fn hosts(message: &[u8], data: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let first = mbox(&["first"]);
    let later = mbox(&["later"]);
    let single = [message, data].concat();
    let entry = [FROM.as_bytes(), message].concat();
    let last = [first.as_bytes(), &entry, data].concat();
    let between = [first.as_bytes(), &entry, data, b"\n\n", later.as_bytes()];
    let of_mac = [emlx("kept").as_bytes(), data].concat();
    let mmdf = [b"\x01\x01\x01\x01\n", &single[..], b"\n\x01\x01\x01\x01\n"];
    let eudora = [b"From ???@??? Tue May 14 12:00:00 2024\n", message].concat();
    let members = [
        ("first.mbox", b'0', first.as_bytes()),
        ("x.eml", b'0', &single[..]),
        ("later.mbox", b'0', later.as_bytes()),
    ];
    vec![
        ("Inbox", last.clone()),
        ("Between", between.concat()),
        ("x.eml", single.clone()),
        ("Maildir/cur/1578304800.M1P1.h:2,S", single.clone()),
        ("MH/7", single.clone()),
        ("1.emlx", of_mac.clone()),
        ("MMDF", mmdf.concat()),
        ("In.mbx", [&eudora, data].concat()),
        ("Inbox.gz", gzip(&last)),
        ("x.eml.gz", gzip(&single)),
        (
            "mboxes.zip",
            zip(&[("Inbox", &last), ("later", later.as_bytes())]),
        ),
        (
            "messages.zip",
            zip(&[("x.eml", &single), ("y.eml", mail("y").as_bytes())]),
        ),
        ("apple.zip", zip(&[("1.emlx", &of_mac)])),
        (
            "mmdf.zip",
            zip(&[("first", first.as_bytes()), ("MMDF", &mmdf.concat())]),
        ),
        ("all.tar", tar(&members)),
        ("all.tar.gz", gzip(&tar(&members))),
        ("y.msg", [OUTLOOK, data].concat()),
    ]
}

/// First bytes of a message of Outlook.
const OUTLOOK: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0";

/// Returns a store with an object, and a directory with mail that does not refer to the object.
fn place_with(name: &str, content: &[u8]) -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let object = place.object(b"abc");
    for part in ["cur", "new", "tmp"] {
        fs::create_dir_all(place.path("mail/Maildir").join(part)).unwrap();
    }
    place.mail("mail/MH/.mh_sequences", b"cur: 1\n");
    place.mail("mail/MH/1", mail("other").as_bytes());
    place.mail(&format!("mail/{name}"), content);
    (place, object)
}

#[test]
fn gc_deletes_nothing_if_data_of_another_format_were_appended() {
    let messages = messages();
    for (turn, (format, data)) in kinds().into_iter().enumerate() {
        let message = &messages[turn % messages.len()];
        let is_tested_in_all = ["gzip", "zip archive", ".emlx", "MMDF mailbox"].contains(&format);
        for (number, (name, content)) in hosts(message.as_bytes(), &data).into_iter().enumerate() {
            // All formats are recognised in the same way, so most of them are tested in some of the files.
            if number >= 3 && number % 3 != turn % 3 && !is_tested_in_all {
                continue;
            }
            // An MMDF mailbox can follow another one, and its messages are then read.
            if format == "MMDF mailbox" && ["MMDF", "mmdf.zip"].contains(&name) {
                continue;
            }
            let (place, object) = place_with(name, &content);
            let output = place.store(&["gc", "--delete"], &["mail"]);
            let said = stderr(&output);
            let what = format!("{format} in {name} after {message:?}: {said}");
            assert_eq!(output.status.code(), Some(1), "{what}");
            assert!(object.exists(), "{what}");
            assert!(said.contains("nothing was removed"), "{what}");
            assert!(said.contains(name), "{what}");
            if name != "y.msg" {
                assert!(said.contains(format), "{what}");
                assert!(said.contains("their content was not searched; "), "{what}");
            }
        }
    }
}

#[test]
fn gc_names_appended_data_once_and_the_advice_works() {
    let old = gzip(mbox(&["old"]).as_bytes());
    let host = mbox(&["first", "last"]);
    let content = [host.as_bytes(), &old].concat();
    let (place, object) = place_with("Inbox", &content);
    let output = place.store(&["gc"], &["mail"]);
    ended(&output, 1);
    let said = stderr(&output);
    assert_eq!(said.matches("gzip").count(), 1, "{said}");
    let advice = format!(
        "compressed data (gzip), from byte {} on; their content was not searched; move these bytes to a file of their own \
         (tail -c +{} prints the file from there on)",
        host.len(),
        host.len() + 1
    );
    assert!(said.contains(&advice), "{said}");
    ended(&place.store(&["check"], &["mail"]), 1);
    place.mail("mail/rest", &content[host.len()..]);
    place.mail("mail/Inbox", host.as_bytes());
    ended(&place.store(&["gc", "--delete"], &["mail"]), 0);
    assert!(!object.exists());
}

#[test]
fn gc_deletes_objects_if_messages_declare_or_describe_data() {
    let packed = gzip(mbox(&["old"]).as_bytes());
    let head = "From: a@example.org\nSubject: s\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n\
                text\n--b\nContent-Type: application/gzip\nContent-Transfer-Encoding: binary\n\n";
    let message = [head.as_bytes(), &packed, b"\n--b--\n"].concat();
    let text = b"From: a@example.org\nSubject: s\n\nA gzip file begins with 1f 8b 08.\n\x01\x01\n";
    for message in [&message[..], text] {
        for (name, content) in hosts(message, b"") {
            // Other commands do not read these files, so they stop the deletion.
            if ["y.msg", "mmdf.zip"].contains(&name) {
                continue;
            }
            let (place, object) = place_with(name, &content);
            ended(&place.store(&["gc", "--delete"], &["mail"]), 0);
            assert!(!object.exists(), "{name}");
        }
    }
    // Pictures in an archive contain no messages.
    let picture = [b"\xff\xd8\xff\0", &packed[..], b"\0\0"].concat();
    let archive = zip(&[("first", mbox(&["first"]).as_bytes()), ("p.jpg", &picture)]);
    let (place, object) = place_with("all.zip", &archive);
    ended(&place.store(&["gc", "--delete"], &["mail"]), 0);
    assert!(!object.exists());
}
