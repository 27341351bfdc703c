//! Files and directories that mail programs keep next to messages: indexes, locks, lists of flags and of folders. They contain
//! no mail and are parts of the mailbox.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::mailbox::forms::mh::SEQUENCES;
use crate::mailbox::forms::proton::{LABELS, METADATA};
use crate::platform::OsStrExt as _;

const OF_SERVER: &str = "a file in which a mail server keeps the state of a mailbox";
const OF_CLIENT: &str = "a file in which a mail program keeps the state of a mailbox";

/// Names of files in which programs keep the state of mailboxes, each as a prefix, a suffix and a description. The
/// prefix or the suffix may be empty.
const FILES: &[(&str, &str, &str)] = &[
    ("dovecot.index", "", OF_SERVER),
    ("dovecot.list.index", "", OF_SERVER),
    ("dovecot.map.index", "", OF_SERVER),
    ("dovecot.mailbox.log", "", OF_SERVER),
    ("dovecot-", "", OF_SERVER),
    ("courierimap", "", OF_SERVER),
    ("courierpop3", "", OF_SERVER),
    ("cyrus.", "", OF_SERVER),
    (".sylpheed_", "", OF_CLIENT),
    (".claws_", "", OF_CLIENT),
    (".", ".index", OF_CLIENT),
    (".isyncuidmap", "", OF_CLIENT),
    (".mbsyncstate", "", OF_CLIENT),
    ("", ".msf", OF_CLIENT),
    ("", ".cmeta", OF_CLIENT),
    ("", ".ibex.index", OF_CLIENT),
    ("", ".ibex.index.data", OF_CLIENT),
    ("", ".index.ids", OF_CLIENT),
    ("", ".index.sorted", OF_CLIENT),
    ("", ".ev-summary", OF_CLIENT),
    ("", ".ev-summary-meta", OF_CLIENT),
    ("", ".snm", OF_CLIENT),
    ("", ".oeaccount", OF_CLIENT),
    ("", ".fld", OF_SERVER),
    ("", ".mrk", OF_SERVER),
];

/// Names of files in which programs keep the state of mailboxes, each with a description. A folder of mail can have a similar
/// name, such as `subscriptions.2020`, so the whole name must be the same.
const WHOLE_NAMES: &[(&str, &str)] = &[
    ("maildirsize", OF_SERVER),
    ("maildirfolder", OF_SERVER),
    ("subscriptions", OF_SERVER),
    (".mh_sequences", OF_CLIENT),
    (".xmhcache", OF_CLIENT),
    (".mew_cache", OF_CLIENT),
    (".mew-cache", OF_CLIENT),
    (".marks", OF_CLIENT),
    (".overview", OF_CLIENT),
    (".uidvalidity", OF_CLIENT),
    ("table_of_contents", OF_CLIENT),
    ("winmail.fol", OF_CLIENT),
    (
        "embody-folder",
        "a file of embody about a folder of a server",
    ),
];

/// Files with flags of the messages in a directory that embody does not read, each with a description of the flags.
const FLAG_FILES: [(&str, &str); 4] = [
    (".claws_mark", "flags of Claws Mail"),
    (".sylpheed_mark", "flags of Sylpheed"),
    (".marks", "marks of Gnus"),
    (".notmuch", "tags of notmuch"),
];

/// Files with flags of an MH folder by message number. A copy of the folder keeps the numbers, so these files are
/// copied with it.
pub(crate) const FILES_BY_NUMBER: [&str; 4] =
    [SEQUENCES, ".claws_mark", ".sylpheed_mark", ".marks"];

fn unused(flags: &str, file: &str) -> String {
    format!("{flags}, because embody does not read {file}")
}

/// Describes the flags of a directory's messages that embody does not read, for the report. `exists` returns whether a
/// file or directory exists.
pub(crate) fn unused_beside(folder: &Path, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let known = FLAG_FILES
        .iter()
        .filter(|(file, _)| exists(&folder.join(file)));
    let mut found: Vec<String> = known.map(|(file, flags)| unused(flags, file)).collect();
    // notmuch has one database for a tree of Maildirs, so it can also be in the parent directory.
    let above = folder
        .parent()
        .filter(|_| !exists(&folder.join(".notmuch")));
    if above.is_some_and(|above| exists(&above.join(".notmuch"))) {
        found.push(unused("tags of notmuch", ".notmuch"));
    }
    if let Some(name) = folder.file_name() {
        let index = [OsStr::new("."), name, OsStr::new(".index")];
        if exists(&folder.with_file_name(OsString::from_iter(index))) {
            found.push(unused("flags of KMail", "its index"));
        }
    }
    found
}

/// Returns whether a member of an archive is an index of imap-backup, or the state of a message that Proton, Gmvault or
/// Zimbra exported. Outside of archives, the file next to it would show this. The members next to a member are not
/// known, so its content decides.
fn is_state_with_flags(name: &[u8], start: &[u8]) -> bool {
    let holds = |text: &[u8]| memchr::memmem::find(start, text).is_some();
    let is_json = start.trim_ascii_start().starts_with(b"{");
    let is_of_export = name.ends_with(b".meta") && holds(b"\"flags\"");
    let is_of_proton = name.ends_with(METADATA.as_bytes()) || name == LABELS.as_bytes();
    is_json
        && (is_of_export
            || name.ends_with(b".imap") && holds(b"\"uid_validity\"")
            || is_of_proton && holds(b"\"Payload\""))
}

/// Returns a description if a member of an archive contains flags that embody only uses after the archive is unpacked.
pub(crate) fn unused_flags(name: &OsStr, start: &[u8]) -> Option<&'static str> {
    const IN_ARCHIVE: &str = "flags in a file of another program (imap-backup, Proton, Gmvault, Zimbra, MH, Claws Mail, Gnus), which embody does not use in an archive";
    let is_known = name == SEQUENCES || FLAG_FILES.iter().any(|(file, _)| name == *file);
    (is_known || is_state_with_flags(name.as_bytes(), start)).then_some(IN_ARCHIVE)
}

/// Returns a description if a member of an archive is a file that programs keep next to mail and contains no mail
/// itself.
pub(crate) fn archived_state(path: &Path, start: &[u8]) -> Option<&'static str> {
    let name = path.file_name()?;
    let folder = path.parent().and_then(Path::file_name);
    is_state_file(name, start.is_empty())
        .or_else(|| is_state_directory(folder?, true))
        .or_else(|| is_state_with_flags(name.as_bytes(), start).then_some(OF_CLIENT))
}

/// Returns a description if mail programs keep a file with this name next to messages. A folder of mail can have the
/// same name, so the caller must have checked that the file contains no mail. An empty file with a leading dot is a
/// marker file.
pub(crate) fn is_state_file(name: &OsStr, is_empty: bool) -> Option<&'static str> {
    let name = name.as_bytes();
    let is_of = |(start, end, _): &&(&str, &str, &str)| {
        name.starts_with(start.as_bytes()) && name.ends_with(end.as_bytes())
    };
    let named = WHOLE_NAMES
        .iter()
        .find(|(whole, _)| name == whole.as_bytes());
    let similar = FILES.iter().find(is_of).map(|(.., what)| *what);
    let known = similar.or(named.map(|(_, what)| *what));
    let is_lock = name.ends_with(b".lock") || name.ends_with(b".lck");
    let is_mark = is_empty && name.starts_with(b".") || is_lock;
    known.or(is_mark.then_some("a lock or a mark that programs keep next to mail"))
}

/// Returns a description if the file belongs to a mailbox next to it, such as an index or the state of an exported
/// message. `has(name, is_whole)` returns whether the directory contains a file with this name, or with a name that
/// ends like this if `is_whole` is false.
pub(crate) fn state_beside(name: &OsStr, has: &dyn Fn(&str, bool) -> bool) -> Option<&'static str> {
    let name = name.to_str()?;
    let of = |suffix: &str| name.strip_suffix(suffix).filter(|stem| !stem.is_empty());
    if of(".imap").is_some_and(|stem| has(&format!("{stem}.mbox"), true)) {
        return Some("an index of imap-backup");
    }
    let is_compressed = |stem: &str| {
        let suffixes = ["gz", "zst", "bz2", "xz"];
        suffixes
            .iter()
            .any(|suffix| has(&format!("{stem}.mbox.{suffix}"), true))
    };
    if of(".imap").is_some_and(is_compressed) {
        return Some(
            "an index of imap-backup, whose flags are used only if its mbox is not compressed",
        );
    }
    if of(METADATA).is_some_and(|stem| has(&format!("{stem}.eml"), true)) {
        return Some("the state of a message that Proton exported");
    }
    // Zimbra appends `.meta` to the full name of the message.
    let is_export = |stem: &str| {
        let messages = [
            stem.to_owned(),
            format!("{stem}.eml"),
            format!("{stem}.eml.gz"),
        ];
        messages
            .iter()
            .any(|message| message.contains(".eml") && has(message, true))
    };
    if of(".meta").is_some_and(is_export) {
        return Some(
            "the state of a message that Gmvault or Zimbra exported, which embody does not read",
        );
    }
    (name == LABELS && has(METADATA, false)).then_some("the labels of mail that Proton exported")
}

/// Returns the name of the mailbox if this is a `.mozmsgs` directory of Thunderbird, which contains copies of its
/// messages for the search of the operating system.
pub(crate) fn mailbox_of_copies(directory: &OsStr) -> Option<&OsStr> {
    let name = directory.as_bytes().strip_suffix(b".mozmsgs")?;
    (!name.is_empty()).then(|| OsStr::from_bytes(name))
}

/// Returns a description if a mail server keeps state in a directory with this name next to `cur` and `new`.
pub(crate) fn is_state_directory(name: &OsStr, is_in_maildir: bool) -> Option<&'static str> {
    const NAMES: [&[u8]; 3] = [
        b"courierimapkeywords",
        b"courierimaphieracl",
        b"dovecot.index.log",
    ];
    let is_known = is_in_maildir && NAMES.contains(&name.as_bytes());
    is_known.then_some("a directory in which a mail server keeps the state of a mailbox")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_which_programs_keep_the_state_of_mail_are_recognised_by_name() {
        for (name, is_empty, expected) in [
            ("dovecot-uidlist", false, true),
            ("dovecot-uidvalidity.6b0aeacf", true, true),
            ("courierimapuiddb", false, true),
            ("Inbox.msf", false, true),
            (".keep", true, true),
            (".keep", false, false),
            ("INBOX.lock", true, true),
            ("Inbox", true, false),
            ("subscriptions", false, true),
            ("Subscriptions", true, false),
            ("dovecot", false, false),
            ("Inbox.msf", true, true),
            ("table_of_contents", false, true),
            ("table_of_contents.2020", false, false),
            ("subscriptions of 2020", false, false),
        ] {
            let found = is_state_file(OsStr::new(name), is_empty);
            assert_eq!(found.is_some(), expected, "{name}");
        }
    }

    #[test]
    fn state_file_is_a_part_of_a_mailbox_only_next_to_its_mail() {
        for (name, neighbours, is_part) in [
            ("INBOX.imap", &["INBOX.mbox"][..], true),
            ("INBOX.imap", &["INBOX.mbox.gz"], true),
            ("INBOX.imap", &["Sent.mbox"], false),
            (".imap", &[".mbox"], false),
            ("a==.metadata.json", &["a==.eml"], true),
            ("a==.metadata.json", &["b==.eml"], false),
            ("labels.json", &["a==.metadata.json"], true),
            ("labels.json", &["a==.eml"], false),
            ("x.json", &["x.eml"], false),
            ("12.meta", &["12.eml.gz"], true),
            ("12.eml.meta", &["12.eml"], true),
            ("12.meta", &["12"], false),
        ] {
            let has = |wanted: &str, is_whole: bool| {
                let is_one = |it: &&str| {
                    if is_whole {
                        *it == wanted
                    } else {
                        it.ends_with(wanted)
                    }
                };
                neighbours.iter().any(is_one)
            };
            let found = state_beside(OsStr::new(name), &has);
            assert_eq!(found.is_some(), is_part, "{name} {neighbours:?}");
        }
    }
}
