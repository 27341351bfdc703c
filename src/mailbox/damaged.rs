//! Recognises damaged mail: files that do not start like any mail format, but have the name of a mailbox or contain an
//! mbox further on.

use std::path::Path;

use crate::mailbox::forms::outlook::is_named_tnef;
use crate::mailbox::forms::separator::is_separator_in_text;
use crate::mailbox::forms::state_files::is_state_file;
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::start::{begins_like_header, starts_with_mail_header};
use crate::platform::OsStrExt as _;
use crate::span::{rest_or_empty, split_while};

const DAMAGED: NotMail = NotMail::Format(
    "a file with the file name extension of a mailbox or an archive, but with other content",
    "the file is damaged, is one part of a split archive, or has another format; get another copy of the file, or join the parts of the archive",
);

const DIVIDED: NotMail = NotMail::Format(
    "one part of a file that was split into several files",
    "join all parts in order, and name the joined file as the source",
);

const COMPRESSED: NotMail = NotMail::Format(
    "a compressed file with the file name extension of a mailbox or an archive, in a compression format that embody does not read",
    "decompress the file first",
);

const HEADER: NotMail = NotMail::Format(
    "a text that begins like a mail, but whose header has lines that are not header fields",
    "if the file is a mail, rename the file so that its name ends in .eml, and embody reads the file",
);

const ENCRYPTED: NotMail = NotMail::Format(
    "an encrypted file with the file name extension of a mailbox or an archive",
    "decrypt the file first",
);

const BEHIND: NotMail = NotMail::Format(
    "a file that does not begin with mail, but contains the messages of an mbox",
    "remove the bytes before the first line that starts with \"From \", and read the file again",
);

const EMPTIED: NotMail = NotMail::Format(
    "a file that consists of NUL bytes, as after a crash of the system",
    "get another copy of the file",
);

const AFTER_ZEROS: NotMail = NotMail::Format(
    "a message after NUL bytes, as after a crash of the system",
    "remove the NUL bytes at the start of the file, and read the file again",
);

/// Minimum length, in bytes, of a file of NUL bytes that counts as mail emptied by a crash. Some programs keep shorter
/// files of NUL bytes for their own purposes.
const LEAST_EMPTIED: usize = 64;

/// Suffixes that encryption programs append to the name of a file.
const OF_ENCRYPTED: [&str; 9] = [
    "gpg", "pgp", "asc", "age", "enc", "aes", "axx", "cpt", "crypt",
];
/// Suffixes of compression formats that have no magic number, or that embody does not recognise.
const OF_COMPRESSED: [&str; 7] = ["br", "lzo", "lz", "lrz", "rz", "sz", "zpaq"];

/// Decides by the name and the first bytes whether a file without a mail format may be damaged mail. `name` no longer
/// has the suffix of a compression that was removed.
pub(crate) fn damaged(name: &Path, start: &[u8], other: NotMail) -> Option<NotMail> {
    let is_binary = match other {
        NotMail::Binary | NotMail::LONE_APPLE_DOUBLE => true,
        NotMail::Text => false,
        _ => return None,
    };
    let suffix = name.extension();
    let is_one_of = |suffixes: &[&str]| {
        let mut suffixes = suffixes.iter();
        suffix.is_some_and(|suffix| suffixes.any(|it| suffix.eq_ignore_ascii_case(it)))
    };
    let inner = Path::new(name.file_stem().unwrap_or_default()).extension();
    let class = suffix.and_then(SuffixClass::of);
    let inner = inner.and_then(SuffixClass::of);
    // A detached signature can have the name of an encrypted mailbox (`mail.mbox.asc`), but it contains no mail.
    let is_signature = memchr::memmem::find(start, b"-----BEGIN PGP SIGNATURE-----").is_some();
    let is_of_mail = inner.is_some_and(|it| is_suspicious(it) || it == SuffixClass::Message);
    if is_one_of(&OF_ENCRYPTED) && is_of_mail && !is_signature {
        return Some(ENCRYPTED);
    }
    if is_binary && is_of_mail && is_one_of(&OF_COMPRESSED) {
        return Some(COMPRESSED);
    }
    let is_divided = || {
        let is_of_archive = is_of_mail || inner == Some(SuffixClass::OtherArchive);
        suffix.is_some_and(|suffix| is_part(suffix.as_bytes(), is_of_archive, is_binary))
    };
    if !start.is_empty() && is_divided() {
        return Some(DIVIDED);
    }
    // Text files use suffixes such as `.mbx` and `.msg` too.
    let is_named = class.is_some_and(is_suspicious)
        || is_binary && (class.is_some_and(is_of_binary) || is_named_tnef(name));
    if !start.is_empty() && is_named {
        return Some(DAMAGED);
    }
    // A script can contain an mbox as test data or an example, so files that start with `#!` are not suspicious.
    if holds_mbox(start) && !start.starts_with(b"#!") {
        return Some(BEHIND);
    }
    if let Some(AFTER_ZEROS) = after_zeros(start) {
        return Some(AFTER_ZEROS);
    }
    if !is_binary && begins_like_header(start) {
        return Some(HEADER);
    }
    let is_of_zeros = start.len() >= LEAST_EMPTIED && start.iter().all(|&byte| byte == 0);
    let file_name = name.file_name();
    let is_state = file_name.is_some_and(|name| is_state_file(name, false).is_some());
    if matches!(class, Some(SuffixClass::Message | SuffixClass::SavedPage))
        && start.starts_with(b"\0")
    {
        let is_empty = start.iter().all(|&byte| byte == 0);
        return Some(if is_empty { EMPTIED } else { DAMAGED });
    }
    (is_of_zeros && suffix.is_none() && !is_state).then_some(EMPTIED)
}

/// Returns whether any file with the suffix is suspicious if it does not have the format of mail.
fn is_suspicious(class: SuffixClass) -> bool {
    use SuffixClass::{AppleMessage, Archive, Compressed, Mbox, OutlookMailbox};
    matches!(
        class,
        Mbox | AppleMessage | OutlookMailbox | Archive | Compressed
    )
}

/// Returns whether a file of binary data with the suffix is suspicious.
fn is_of_binary(class: SuffixClass) -> bool {
    use SuffixClass::{Mbx, OutlookExpress, OutlookMessage};
    matches!(class, Mbx | OutlookMessage | OutlookExpress)
}

/// Returns the damage of a message that begins with NUL bytes: only NUL bytes, or a mail after them.
pub(crate) fn after_zeros(start: &[u8]) -> Option<NotMail> {
    let (zeros, text) = split_while(start, |byte| matches!(byte, 0 | b'\r' | b'\n'));
    if !zeros.starts_with(b"\0") {
        return None;
    }
    if text.is_empty() {
        return Some(EMPTIED);
    }
    let is_mail = starts_with_mail_header(text, true) || holds_mbox(start);
    is_mail.then_some(AFTER_ZEROS)
}

/// Returns whether a suffix is the part number of a split file: `.001`, `.aa` (split), `.z01` (zip) or `.r00` (RAR).
/// The first two count only after the suffix of an archive or a mailbox.
fn is_part(suffix: &[u8], is_of_archive: bool, is_binary: bool) -> bool {
    let is_number =
        |digits: &[u8]| (1..=4).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    match suffix {
        [b'z' | b'Z' | b'r' | b'R', digits @ ..] if digits.len() > 1 && is_number(digits) => {
            is_binary
        }
        [one, other] if one.is_ascii_lowercase() && other.is_ascii_lowercase() => is_of_archive,
        digits => is_of_archive && is_number(digits),
    }
}

/// Returns whether `start` contains a separator with a date, followed by a mail header. The time is linear in the
/// length of `start`, because a header is parsed only after a complete separator.
fn holds_mbox(start: &[u8]) -> bool {
    let mut hits = memchr::memmem::find_iter(start, b"From ");
    hits.any(|at| {
        let is_line = at.checked_sub(1).and_then(|before| start.get(before));
        let text = rest_or_empty(start, at);
        let end = memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1);
        // After a crash, NUL bytes can replace the line ending before a message.
        matches!(is_line, Some(b'\n' | b'\r' | 0))
            && is_separator_in_text(text)
            && starts_with_mail_header(rest_or_empty(text, end), false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_mail_is_told_from_files_without_mail() {
        let mbox = b"\0\0\0\nFrom a@b Mon Jan  6 10:00:00 2020\nFrom: a@b\nSubject: x\n\nx\n";
        let zeros = [&[0; 100][..], &mbox[4..]].concat();
        let text = b"Dear all,\nFrom here on, nothing.\n";
        let script = &[&b"#!/bin/sh\ncat <<E\n"[..], &mbox[4..]].concat();
        let zeroed = b"\0\0\0\nReceived: x\nFrom: a@b\nSubject: s\n\nx\n";
        let broken = b"Subject: s\nThis is broken\nX-Id: 1\n\nx\n";
        for (name, start, other, expected) in [
            ("old", &mbox[..], NotMail::Binary, true),
            ("Inbox", &zeros[..], NotMail::Binary, true),
            ("old.txt", mbox, NotMail::Text, true),
            ("old.mbox", text, NotMail::Text, true),
            ("a.pst", &[0; 100][..], NotMail::Binary, true),
            ("Inbox", &[0; 100], NotMail::Binary, true),
            ("table_of_contents", &[0; 100], NotMail::Binary, false),
            ("flags", &[0; 8], NotMail::Binary, false),
            ("core.bin", &[0; 100], NotMail::Binary, false),
            ("Inbox.mbox.gpg", b"\x85\x01", NotMail::Binary, true),
            ("mail.tar.asc", text, NotMail::Text, true),
            (
                "mail.tar.asc",
                b"-----BEGIN PGP SIGNATURE-----\n",
                NotMail::Text,
                false,
            ),
            ("letter.asc", text, NotMail::Text, false),
            ("notes", text, NotMail::Text, false),
            ("de.msg", text, NotMail::Text, false),
            ("winmail.dat", &[1; 100], NotMail::Binary, true),
            ("Winmail (1).DAT", &[1; 100], NotMail::Binary, true),
            ("game.dat", &[1; 100], NotMail::Binary, false),
            ("x.png", b"\x89PNG\r\n", NotMail::Binary, false),
            ("a.zip.002", &[1; 100], NotMail::Binary, true),
            ("a.tar.gz.ab", &[1; 100], NotMail::Binary, true),
            ("old.mbox.2", text, NotMail::Text, true),
            ("a.7z.002", &[1; 100], NotMail::Binary, true),
            ("a.z01", &[1; 100], NotMail::Binary, true),
            ("a.r00", &[1; 100], NotMail::Binary, true),
            ("chapter.z1", text, NotMail::Text, false),
            ("photo.002", &[1; 100], NotMail::Binary, false),
            ("a.zip.md5", text, NotMail::Text, false),
            ("Inbox.mbox.br", &[1; 100], NotMail::Binary, true),
            ("page.br", &[1; 100], NotMail::Binary, false),
            ("mail.tar.gz.enc", b"Salted__", NotMail::Text, true),
            ("test.sh", script, NotMail::Text, false),
            ("old", zeroed, NotMail::Binary, true),
            ("game.bin", b"\0\0level: 1\n", NotMail::Binary, false),
            ("letter", broken, NotMail::Text, true),
            ("note", b"Subject: x\nDear all,\n", NotMail::Text, false),
            ("x.mbox", text, NotMail::Special, false),
        ] {
            let found = damaged(Path::new(name), start, other);
            assert_eq!(found.is_some(), expected, "{name}");
        }
    }
}
