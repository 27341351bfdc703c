//! Recognises Maildirs, including those that lost their empty directories: git, zip, `rsync -m` and cloud drives do not
//! keep empty directories, and Thunderbird's own Maildirs have no `new`.
//!
//! A directory with both `cur` and `new` is a Maildir. A directory with only one of them is a Maildir if that one
//! contains only messages. Otherwise, it may belong to another program that uses the name `cur` or `new` for other
//! files. A directory with only `tmp` is not a Maildir, because the messages in `tmp` were never delivered.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::mailbox::forms::{Format, mh};
use crate::platform::OsStrExt as _;

/// Maximum number of files whose content is checked because their names do not look like those of a Maildir. The
/// remaining files of a large directory are assumed to be messages too.
const LOOKED_INTO: usize = 64;

/// Returns whether the directory is a Maildir. `is_message` returns whether the content of a file is a message.
pub(crate) fn is_maildir(
    folder: &Path,
    format: Format,
    is_message: &dyn Fn(&Path) -> bool,
) -> bool {
    let has = |part: &str| folder.join(part).is_dir();
    let part = match (has("cur"), has("new")) {
        (true, true) => return true,
        (true, false) => folder.join("cur"),
        (false, true) => folder.join("new"),
        (false, false) => return false,
    };
    match (format, holds_messages_only(&part, is_message)) {
        // The user selected the format Maildir, so the content is not checked.
        (Format::Maildir, _) | (Format::Auto, PartialContent::Messages) => true,
        (Format::Auto, PartialContent::Nothing) => has("tmp") && holds_no_others(folder),
        _ => false,
    }
}

enum PartialContent {
    Messages,
    Nothing,
    Others,
}

fn holds_messages_only(part: &Path, is_message: &dyn Fn(&Path) -> bool) -> PartialContent {
    // A directory that cannot be read may contain files that are not messages, so it does not count as a part of a
    // Maildir.
    let Ok(entries) = fs::read_dir(part) else {
        return PartialContent::Others;
    };
    let (mut messages, mut looked_into) = (0_usize, 0_usize);
    for entry in entries {
        let Ok(entry) = entry else {
            return PartialContent::Others;
        };
        let name = entry.file_name();
        if name.as_bytes().starts_with(b".") || is_litter(&name) {
            continue;
        }
        // A directory `cur` or `new` may also be an MH folder or contain saved messages. The file names that are common
        // there, such as `1` or `x.eml`, show that it is not a part of a Maildir.
        let is_other = mh::number(&name).is_some()
            || part.ends_with("new") && has_suffix(&name)
            || !entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_other {
            return PartialContent::Others;
        }
        if !is_named_as_message(&name) && looked_into < LOOKED_INTO {
            looked_into += 1;
            // An empty file, which a stopped download left, shows nothing about the directory.
            if entry.metadata().is_ok_and(|found| found.len() == 0) {
                continue;
            }
            if !is_message(&entry.path()) {
                return PartialContent::Others;
            }
        }
        messages += 1;
    }
    match messages {
        0 => PartialContent::Nothing,
        _ => PartialContent::Messages,
    }
}

/// Returns whether the operating system or a cloud drive creates files of this name in any directory. They are not mail
/// and are ignored.
pub(crate) fn is_litter(name: &OsStr) -> bool {
    const NAMES: [&[u8]; 3] = [b"desktop.ini", b"thumbs.db", b"icon\r"];
    let is_name = |other: &&[u8]| name.as_bytes().eq_ignore_ascii_case(other);
    NAMES.iter().any(is_name)
}

fn has_suffix(name: &OsStr) -> bool {
    name.as_bytes().to_ascii_lowercase().ends_with(b".eml")
}

/// Returns whether the path is that of a message in `cur` or `new` of a Maildir, by the names of the file and its directory.
pub(crate) fn is_path_of_message(path: &Path) -> bool {
    let part = path.parent().and_then(Path::file_name);
    let name = path.file_name().unwrap_or_default();
    let has_flags = memchr::memmem::find(name.as_bytes(), b"2,").is_some();
    part.is_some_and(|part| part == "cur" || part == "new")
        && (is_named_as_message(name) || has_flags)
}

/// Returns whether a file name looks like `1700000000.M1P2.host`, which is how programs name messages in a Maildir.
/// Flags may follow.
fn is_named_as_message(name: &OsStr) -> bool {
    let mut parts = name.as_bytes().splitn(3, |&byte| byte == b'.');
    let seconds = parts.next().unwrap_or_default();
    let digits = seconds
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    // OfflineIMAP writes names whose first part looks like `1700000000_0`, so underscores are allowed.
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
    let is_number = digits >= 9 && seconds.iter().all(is_part);
    let has_unique = parts.next().is_some_and(|part| !part.is_empty());
    is_number && has_unique && parts.next().is_some_and(|host| !host.is_empty())
}

/// Returns whether a directory contains only parts of a Maildir and files of mail servers. This decides whether a
/// directory whose `cur` or `new` is empty is a Maildir: other files could be mail, or belong to another program.
fn holds_no_others(folder: &Path) -> bool {
    const OF_SERVERS: [&[u8]; 4] = [b"dovecot", b"courier", b"maildir", b"subscriptions"];
    let Ok(mut entries) = fs::read_dir(folder) else {
        return false;
    };
    entries.all(|entry| {
        let name = entry.map(|entry| entry.file_name()).unwrap_or_default();
        let is_part = ["cur", "new", "tmp"].iter().any(|part| name == *part);
        let bytes = name.as_bytes();
        is_part
            || bytes.starts_with(b".")
            || is_litter(&name)
            || OF_SERVERS.iter().any(|start| bytes.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_maildir_message_is_told_from_others() {
        for (name, is_message) in [
            ("1700000000.M1P2.host", true),
            ("1700000000.M1P2.host,S=10:2,S", true),
            ("1700000000.1_0.host.example!2,FS", true),
            ("1700000000_0.17000.host,U=1,FMD5=x:2,S", true),
            ("1700000000000.eml", false),
            ("2024.01.report", false),
            ("main.c", false),
            ("1700000000..x", false),
        ] {
            assert_eq!(is_named_as_message(OsStr::new(name)), is_message, "{name}");
        }
    }
}
