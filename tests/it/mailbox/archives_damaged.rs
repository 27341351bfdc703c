//! Damaged and unread parts of an archive are reported, and the rest is converted (docs/mailbox-internals.md, "Archives").

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::common::archives::{sum_up, tar, tar_member, zip};
use crate::common::programs::{embody, fed, stderr};

fn message(number: usize) -> String {
    format!(
        "From a@b Thu Jan  1 00:00:00 1970\nFrom: a@example.org\nSubject: {number}\n\n{number} {}\n\n",
        "x".repeat(300)
    )
}

/// A mailbox that embody does not read in an archive.
const MMDF: &[u8] = b"\x01\x01\x01\x01\nSubject: x\n\nx\n\x01\x01\x01\x01\n";

fn mbox(numbers: std::ops::Range<usize>) -> String {
    numbers.map(message).collect()
}

/// Returns a directory with the archive.
fn place(archive: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("archive"), archive).unwrap();
    folder
}

/// Returns the output of `convert`, and the converted mailbox.
fn converted(folder: &Path) -> (Output, String) {
    let done = embody()
        .args(["convert", "--verbose", "archive", "--output", "out"])
        .current_dir(folder)
        .output()
        .unwrap();
    let mut out = folder.join("out");
    // Another mailbox in the archive, which cannot be read, makes the result a directory with one mailbox.
    if out.is_dir() {
        let mut entries = fs::read_dir(&out).unwrap();
        out = entries.next().unwrap().unwrap().path();
    }
    let out = fs::read_to_string(out).unwrap_or_default();
    (done, out)
}

fn ends_with_trouble(archive: &[u8], expected: &str, why: &str) {
    let folder = place(archive);
    let (done, out) = converted(folder.path());
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1), "{why}: {said}");
    assert!(said.contains(why), "{why}: {said}");
    assert!(out == expected, "{why}: {} octets, {said}", out.len());
}

#[test]
fn one_damaged_member_of_a_zip_keeps_no_other_from_being_read() {
    let (first, last) = (mbox(0..2), mbox(5000..5002));
    let middle = mbox(2..5000);
    let members = [
        ("a.mbox", first.as_bytes()),
        ("b.mbox", middle.as_bytes()),
        ("c.mbox", last.as_bytes()),
    ];
    let whole = zip(&members);
    let at = |name: &[u8]| {
        let found = whole.windows(name.len()).position(|there| there == name);
        found.unwrap()
    };
    // A wrong byte in its last message is detected by the checksum.
    let mut spoiled = whole.clone();
    spoiled[at(b"c.mbox") - 60] ^= 1;
    let folder = place(&spoiled);
    let (done, out) = converted(folder.path());
    assert_eq!(done.status.code(), Some(1));
    let said = stderr(&done);
    assert!(
        said.contains("a file in the archive was not read: b.mbox (damaged: "),
        "{said}"
    );
    let rest = out.strip_prefix(&first).unwrap();
    let part = rest.strip_suffix(&last).unwrap();
    assert!(middle.starts_with(part) && part.len() > middle.len() / 2);
    assert!(middle[part.len()..].starts_with("From a@b"), "no half one");
    assert!(
        said.contains(&format!(
            "{} messages were read",
            out.matches("Subject").count()
        )),
        "{said}"
    );
    assert!(
        said.contains("2 files or messages could not be processed completely"),
        "{said}"
    );
    let shown = embody()
        .arg("inspect")
        .arg(folder.path().join("archive"))
        .output();
    assert_eq!(shown.unwrap().status.code(), Some(1));
    // There is no member at the offset in the directory.
    let mut lost = whole.clone();
    lost[at(b"b.mbox") - 30] = b'x';
    let expected = format!("{first}{last}");
    ends_with_trouble(
        &lost,
        &expected,
        "b.mbox (damaged: the file is not at the position that the directory of the archive declares)",
    );
    // With small members, the damage is detected before anything is written.
    let mut small = zip(&[("a", first.as_bytes()), ("b", last.as_bytes())]);
    small[200] ^= 1;
    ends_with_trouble(
        &small,
        &last,
        "a file in the archive was not read: a (damaged: ",
    );
}

/// Changes any byte. The output must consist of complete messages, and the status must show whether some are missing.
#[test]
fn a_wrong_octet_anywhere_costs_no_more_than_it_must_and_is_told() {
    let texts: Vec<String> = (0..3).map(|n| mbox(2 * n..2 * n + 2)).collect();
    let names = ["a.mbox", "b.mbox", "c.mbox"];
    let members: Vec<(&str, &[u8])> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (*name, text.as_bytes()))
        .collect();
    let whole = zip(&members);
    let mut less = 0;
    for at in (0..whole.len())
        .step_by(53)
        .chain(whole.len() - 22..whole.len())
    {
        let mut archive = whole.clone();
        archive[at] ^= 0x11;
        let folder = place(&archive);
        let (done, out) = converted(folder.path());
        let read: Vec<&String> = texts.iter().filter(|text| out.contains(*text)).collect();
        let joined: String = read.into_iter().cloned().collect();
        assert!(out == joined, "{at}: {out}");
        less += usize::from(out.len() < 6 * message(0).len());
        match done.status.code() {
            Some(0) => assert!(out == texts.concat(), "{at}: {}", stderr(&done)),
            status => assert_eq!(status, Some(1), "{at}: {}", stderr(&done)),
        }
    }
    assert!(less > 20, "{less}");
}

#[test]
fn many_damaged_members_are_passed_with_a_file_at_a_time() {
    let large = mbox(0..400);
    let names: Vec<String> = (0..300).map(|number| format!("{number:04}")).collect();
    let members: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), large.as_bytes()))
        .collect();
    let mut archive = zip(&members);
    // Changes the last bytes of every second member.
    let step = 30 + 4 + large.len();
    for number in (0..300).step_by(2) {
        archive[number * step + step - 2] ^= 1;
    }
    let folder = place(&archive);
    let (done, out) = converted(folder.path());
    let said = stderr(&done);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        said.contains("150 files in the archive were not read; the first 100 of them are 0000"),
        "{said}"
    );
    let count = out.matches("Subject").count();
    assert!((150 * 400..300 * 400).contains(&count), "{count}");
    // Every message in the output is complete.
    let ends = format!(" {}\n\n", "x".repeat(300));
    assert_eq!(out.matches(&ends).count(), count);
}

#[test]
fn octets_around_a_zip_archive_are_named() {
    let (one, two) = (mbox(0..2), mbox(2..5));
    let archive = zip(&[("a.mbox", one.as_bytes())]);
    let other = zip(&[("b.mbox", two.as_bytes())]);
    let mut long = archive.clone();
    long.extend(b"x".repeat(110_000));
    ends_with_trouble(
        &long,
        &one,
        "the file contains other data after the zip archive; 2 messages",
    );
    let both = [archive.clone(), other].concat();
    ends_with_trouble(
        &both,
        &two,
        "the file contains other data before the zip archive",
    );
    // The signature for split archives is not part of the archive.
    let mut marked = zip(&[("a.mbox", one.as_bytes())]);
    let directory = u32::try_from(30 + 6 + one.len()).unwrap();
    marked.splice(..0, *b"PK00");
    let length = marked.len();
    marked[length - 6..length - 2].copy_from_slice(&(directory + 4).to_le_bytes());
    let entry = directory as usize + 4;
    marked[entry + 42] = 4;
    let folder = place(&marked);
    let (done, out) = converted(folder.path());
    assert!(done.status.success() && out == one, "{}", stderr(&done));
    // A file that is skipped is reported together with the extra byte.
    let mut with = zip(&[("a.mbox", one.as_bytes()), ("b", MMDF)]);
    with.push(0);
    ends_with_trouble(
        &with,
        &one,
        "the file contains other data after the zip archive; a file in the archive was not read: b (an MMDF mailbox)",
    );
}

#[test]
fn zip_member_named_like_a_folder_is_read_if_it_has_content() {
    let (one, two) = (mbox(0..2), mbox(2..4));
    let archive = zip(&[("a/", one.as_bytes()), ("b/", b""), ("c", two.as_bytes())]);
    let folder = place(&archive);
    let (done, out) = converted(folder.path());
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(out == one + &two);
}

#[test]
fn members_of_a_tar_archive_are_files_whatever_their_type() {
    let (one, two) = (mbox(0..2), mbox(2..4));
    for kind in [b'Z', b'7', 0, b'1', b'A'] {
        let folder = place(&tar(&[
            ("a.mbox", kind, one.as_bytes()),
            ("folder", b'5', b""),
            ("link", b'2', b""),
            ("link", b'1', b""),
            ("b.mbox", b'0', two.as_bytes()),
        ]));
        let (done, out) = converted(folder.path());
        assert!(done.status.success(), "{kind}: {}", stderr(&done));
        assert!(out == format!("{one}{two}"), "{kind}");
    }
    let volume = tar(&[
        ("a.mbox", b'M', one.as_bytes()),
        ("b.mbox", b'0', two.as_bytes()),
    ]);
    let why = "a file in the archive was not read: a.mbox (the file is continued from another volume; join the volumes with tar -M)";
    ends_with_trouble(&volume, &two, why);
    let pax = b"27 GNU.volume.offset=10240\n";
    assert_eq!(pax.len(), 27);
    let volume = tar(&[
        ("g", b'g', pax),
        ("a.mbox", b'0', one.as_bytes()),
        ("b.mbox", b'0', two.as_bytes()),
    ]);
    ends_with_trouble(&volume, &two, why);
    // The first volume of an archive in several volumes.
    let cut = tar_member("a.mbox", b'0', (one.clone() + &two).as_bytes());
    ends_with_trouble(
        &cut[..1024],
        &message(0),
        "several volumes (join them with tar -M); 1 message was read",
    );
}

/// In GNU's old format, blocks with the rest of the map of a sparse file follow the header.
#[test]
fn members_after_a_sparse_file_with_a_long_map_are_read() {
    let one = mbox(0..2);
    let mut archive = tar_member("sparse", b'S', &[b'x'; 1024]);
    archive[482] = 1;
    sum_up(&mut archive);
    let mut map = vec![0; 1024];
    map[504] = 1;
    archive.splice(512..512, map);
    archive.extend(tar(&[("a.mbox", b'0', one.as_bytes())]));
    ends_with_trouble(
        &archive,
        &one,
        "a file in the archive was not read: sparse (a sparse file)",
    );
}

#[test]
fn mail_of_formats_that_are_not_read_is_named() {
    let one = mbox(0..2);
    for (content, why) in [
        (
            &b"BABYL OPTIONS: x\n"[..],
            "was not read: other (a Babyl mailbox; ",
        ),
        (b"!BDN....", "/other: the file ends within its header"),
        (
            b"\x04\x22\x4d\x18....",
            "was not read: other (compressed (lz4); ",
        ),
    ] {
        let members = [("a.mbox", b'0', one.as_bytes()), ("other", b'0', content)];
        ends_with_trouble(&tar(&members), &one, why);
        let members = [("a.mbox", one.as_bytes()), ("other", content)];
        ends_with_trouble(&zip(&members), &one, why);
    }
}

#[test]
fn what_is_skipped_is_named_and_counted_once_also_of_a_stream() {
    let one = mbox(0..2);
    let archive = tar(&[("a.mbox", b'0', one.as_bytes()), ("b.txt", b'0', b"text\n")]);
    let folder = place(&archive);
    let (done, _) = converted(folder.path());
    let convert = ["convert", "--verbose", "-", "--output", "-"];
    let streamed = fed(embody().args(convert), &archive);
    for done in [done, streamed] {
        assert!(done.status.success(), "{}", stderr(&done));
        let said = stderr(&done);
        assert!(said.contains("b.txt: skipped: text without"), "{said}");
        assert!(said.contains("\n1 file contains no mail"), "{said}");
    }
}

#[test]
fn control_characters_in_member_names_are_not_printed() {
    let one = mbox(0..2);
    let evil = "evil\x1b[31m\nembody: all is well";
    let archive = tar(&[("a.mbox", b'0', one.as_bytes()), (evil, b'0', MMDF)]);
    let folder = place(&archive);
    let (done, _) = converted(folder.path());
    let shown = embody()
        .arg("inspect")
        .arg(folder.path().join("archive"))
        .output();
    for done in [done, shown.unwrap()] {
        let said = stderr(&done);
        assert!(said.contains("evil"), "{said}");
        assert!(
            !said.contains('\x1b') && !said.contains("\nembody: all"),
            "{said}"
        );
    }
}

#[test]
fn what_was_left_is_named_when_the_archive_ends_in_damage() {
    let one = mbox(0..2);
    let mut archive = tar(&[("a.mbox", b'0', one.as_bytes()), ("b", b'0', MMDF)]);
    archive.truncate(archive.len() - 1024);
    let why = "so files at the end may be missing; a file in the archive was not read: b (an MMDF mailbox)";
    ends_with_trouble(&archive, &one, why);
}

#[test]
fn a_zip_archive_in_compressed_data_is_refused_with_advice() {
    let one = mbox(0..2);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed
        .write_all(&zip(&[("a.mbox", one.as_bytes())]))
        .unwrap();
    ends_with_trouble(&packed.finish().unwrap(), "", "decompress the file first");
}

#[test]
fn error_about_truncated_data_advises_a_new_download() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(mbox(0..200).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let folder = place(&packed[..packed.len() - 9]);
    let (done, _) = converted(folder.path());
    let said = stderr(&done);
    assert!(
        said.contains("; download the file again, or compare its length"),
        "{said}"
    );
    ends_with_trouble(
        &packed[..12],
        "",
        "; no message was read; download the file again",
    );
}

/// The content of a skipped member is not read.
#[test]
fn content_of_a_skipped_archive_member_is_not_read() {
    let one = mbox(0..2);
    let folder = TempDir::new().unwrap();
    let mut header = tar_member("hole", b'0', b"");
    // A number of 8 bytes, in GNU's format: 1 TiB.
    header[124..136].fill(0);
    (header[124], header[124 + 6]) = (0x80, 1);
    sum_up(&mut header);
    let path = folder.path().join("archive");
    fs::write(&path, header).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    let behind = 512 + (1_u64 << 40);
    if let Err(why) = file.set_len(behind) {
        return crate::common::programs::skipped(
            "content_of_a_skipped_archive_member_is_not_read",
            &why.to_string(),
        );
    }
    std::os::unix::fs::FileExt::write_all_at(
        &file,
        &tar(&[("a.mbox", b'0', one.as_bytes())]),
        behind,
    )
    .unwrap();
    let (done, out) = converted(folder.path());
    // The member consists of NUL bytes, so it may be mail of which a crash left nothing.
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    assert!(stderr(&done).contains("hole"), "{}", stderr(&done));
    assert!(out == one);
}
