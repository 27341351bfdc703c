//! If an archive or a file of an unknown format may contain a reference, `store gc --delete` removes nothing (docs/store.md).

use std::fs;
use std::io::Write as _;

use super::folders::{Place, beneath, detached, ended, stdout};
use crate::common::archives::{tar, tar_member, zip};
use crate::common::programs::stderr;

/// Creates a store, a mailbox that does not refer to its object, and a file next to the mailbox.
fn with(name: &str, content: &[u8]) -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let object = place.object(b"abc");
    place.mail(
        "mail/x.mbox",
        b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n",
    );
    place.mail(&format!("mail/{name}"), content);
    (place, object)
}

fn stops(name: &str, content: &[u8], why: &str) {
    let (place, object) = with(name, content);
    let output = place.store(&["gc", "--delete"], &["mail"]);
    ended(&output, 1);
    let said = stderr(&output);
    assert!(object.exists(), "{why}: {said}");
    assert!(said.contains(why), "{why}: {said}");
    assert!(said.contains("nothing was removed"), "{why}: {said}");
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

/// Returns bytes that look encrypted: all values except NUL.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    (0..300)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            u8::try_from(state >> 24).unwrap().max(1)
        })
        .collect()
}

#[test]
fn gc_reads_mail_in_utf_16_and_deletes_nothing_if_it_is_damaged() {
    let mail = String::from_utf8(detached(b"abc")).unwrap();
    let mbox = format!("From a Sat Jan  3 01:05:34 1996\n{mail}\n");
    let wide = |mark: &str| -> Vec<u8> {
        let units = mark.encode_utf16().chain(mbox.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    for content in [wide(""), wide("\u{feff}")] {
        let (place, object) = with("w.mbox", &content);
        let output = place.store(&["gc", "--delete"], &["mail"]);
        ended(&output, 0);
        assert!(object.exists(), "{}", stderr(&output));
        stops("w.mbox", &content[..content.len() - 1], "UTF-16");
    }
}

#[test]
fn gc_deletes_nothing_if_an_archive_cannot_be_fully_read() {
    let mail = detached(b"abc");
    let mbox = [b"From a Sat Jan  3 01:05:34 1996\n", &mail[..], b"\n"].concat();
    let archive = zip(&[("m.mbox", &mbox)]);
    stops(
        "z.zip.gz",
        &packed(&archive),
        "z.zip.gz: a zip archive that was compressed again",
    );
    let other = zip(&[("n.mbox", b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n")]);
    stops(
        "z.zip",
        &[&other[..], &packed(&mbox)].concat(),
        "other data after",
    );
    stops(
        "z.zip",
        &[&archive[..], &other].concat(),
        "other data before",
    );
    let volume = tar(&[("m.mbox", b'M', &mbox[40..])]);
    stops("v.tar", &volume, "continued from another volume");
    stops(
        "v.tar",
        &tar_member("m.mbox", b'0', &mbox)[..512],
        "the end of the tar archive is missing",
    );
    for archive in [tar(&[("m", b'0', &noise())]), zip(&[("m", &noise())])] {
        stops("n", &archive, "m (binary data that cannot be read");
    }
    let inner = tar(&[("z.zip", b'0', &archive)]);
    stops(
        "i.tgz",
        &packed(&inner),
        "z.zip (an archive within an archive)",
    );
    // Archives in these formats are read, also if a message contains a NUL.
    let with_zero = [
        &b"From a Sat Jan  3 01:05:34 1996\nSubject: x\n\n\0\n\n"[..],
        &mbox,
    ]
    .concat();
    for (name, content) in [
        ("n.zip", zip(&[("m.mbox", &with_zero)])),
        ("d.zip", zip(&[("m/", &mbox)])),
        ("t.tar", tar(&[("m", b'Z', &mbox)])),
        ("t.tgz", packed(&tar(&[("m", b'1', &mbox)]))),
        ("s.zip", [b"PK00", &archive[..]].concat()),
    ] {
        let (place, object) = with(name, &content);
        let output = place.store(&["gc", "--delete"], &["mail"]);
        assert!(object.exists(), "{name}");
        assert!(!stdout(&output).contains(&beneath(b"abc")), "{name}");
    }
}

#[test]
fn a_binary_file_of_no_known_format_stops_a_deletion_wherever_it_lies() {
    for (content, why) in [
        (&b"\x5d\0\0\x80\0\xff\xff\xff"[..], "compressed (lzma)"),
        (b"LZIP\x01....", "compressed (lzip)"),
        (b"Rar!\x1a\x07\x01\0", "a RAR archive"),
        (b"-----BEGIN PGP MESSAGE-----\n\nhQ\n", "encrypted by PGP"),
        (&noise(), "binary data that cannot be read"),
        (
            b"name: x\n\0\x01\x02\xff",
            "binary data that cannot be read",
        ),
    ] {
        for name in ["saved", "Maildir/saved", "Maildir/cur/1:2,S"] {
            stops(name, content, why);
        }
    }
}

#[test]
fn indexes_and_pictures_beside_mails_stop_no_deletion() {
    let names = [
        "dovecot.index",
        "dovecot.index.cache",
        "dovecot.index.log.2",
        "dovecot.list.index",
        "dovecot-uidlist",
        "dovecot.mailbox.log",
        "cyrus.cache",
        ".xmhcache",
        ".notmuch/xapian/postlist.glass",
        ".notmuch/xapian/iamglass",
        "mail.ibex.index",
        ".inbox.index",
        ".DS_Store",
    ];
    let files: Vec<(&str, Vec<u8>)> = names
        .iter()
        .map(|&name| (name, [b"\0\x01\x02".to_vec(), noise()].concat()))
        .chain([
            ("photo.jpg", [b"\xff\xd8\xff\0".to_vec(), noise()].concat()),
            ("paper.pdf", [b"%PDF-1.7\n\0".to_vec(), noise()].concat()),
            ("notes.txt", b"\xff\xfen\0o\0t\0e\0".to_vec()),
            ("latin.txt", b"\xe4\xf6\xfc \xe4\xf6\xfc\n".to_vec()),
        ])
        .collect();
    let (place, object) = with("Maildir/new/1", b"Subject: x\n\n");
    for folder in ["cur", "tmp"] {
        fs::create_dir_all(place.path("mail/Maildir").join(folder)).unwrap();
    }
    for (name, content) in &files {
        place.mail(&format!("mail/Maildir/{name}"), content);
    }
    let members: Vec<(&str, u8, &[u8])> = files
        .iter()
        .map(|(name, content)| (*name, b'0', content.as_slice()))
        .collect();
    place.mail("mail/all.tar", &tar(&members));
    let output = place.store(&["gc", "--delete"], &["mail"]);
    ended(&output, 0);
    assert!(!object.exists());
}
