//! Files and directories that mail programs keep next to messages: indexes, locks, lists of flags and of folders. They contain
//! no mail and are parts of the mailbox.

use std::ffi::OsStr;

use crate::mailbox::forms::proton::{LABELS, METADATA};
use crate::platform::OsStrExt as _;

const OF_SERVER: &str = "a file in which a mail server keeps the state of a mailbox";
const OF_CLIENT: &str = "a file in which a mail program keeps the state of a mailbox";

/// The start and the end of the names of files in which programs keep the state of mailboxes. One of both may be empty.
const FILES: &[(&str, &str, &str)] = &[
    ("dovecot.index", "", OF_SERVER),
    ("dovecot.list.index", "", OF_SERVER),
    ("dovecot.map.index", "", OF_SERVER),
    ("dovecot.mailbox.log", "", OF_SERVER),
    ("dovecot-", "", OF_SERVER),
    ("courierimap", "", OF_SERVER),
    ("courierpop3", "", OF_SERVER),
    ("cyrus.", "", OF_SERVER),
    ("maildirsize", "", OF_SERVER),
    ("maildirfolder", "", OF_SERVER),
    ("subscriptions", "", OF_SERVER),
    (".mh_sequences", "", OF_CLIENT),
    (".xmhcache", "", OF_CLIENT),
    (".mew_cache", "", OF_CLIENT),
    (".mew-cache", "", OF_CLIENT),
    (".sylpheed_", "", OF_CLIENT),
    (".claws_", "", OF_CLIENT),
    (".overview", "", OF_CLIENT),
    (".isyncuidmap", "", OF_CLIENT),
    (".mbsyncstate", "", OF_CLIENT),
    (".uidvalidity", "", OF_CLIENT),
    ("", ".msf", OF_CLIENT),
    ("", ".cmeta", OF_CLIENT),
    ("", ".ibex.index", OF_CLIENT),
    ("", ".ibex.index.data", OF_CLIENT),
    ("", ".index.ids", OF_CLIENT),
    ("", ".index.sorted", OF_CLIENT),
    ("table_of_contents", "", OF_CLIENT),
    (
        "embody-folder",
        "",
        "a file of embody about a folder of a server",
    ),
];

/// Returns a description if a mail program keeps a file with this name next to messages. The caller must know that the file
/// contains no mail, because a folder of mail can have such a name, too. An empty file whose name begins with a dot is a mark.
pub(crate) fn is_state_file(name: &OsStr, is_empty: bool) -> Option<&'static str> {
    let name = name.as_bytes();
    let is_of = |(start, end, _): &&(&str, &str, &str)| {
        name.starts_with(start.as_bytes()) && name.ends_with(end.as_bytes())
    };
    let known = FILES.iter().find(is_of).map(|(.., what)| *what);
    let is_lock = name.ends_with(b".lock") || name.ends_with(b".lck");
    let is_mark = is_empty && name.starts_with(b".") || is_lock;
    known.or(is_mark.then_some("a lock or a mark that programs keep next to mail"))
}

/// Returns a description of a file that is a part of a mailbox, for the report. Returns `None` for all other files.
/// `has` returns whether the directory contains a file whose name ends like the given text, or is the given text if the
/// flag is true.
pub(crate) fn state_beside(name: &OsStr, has: &dyn Fn(&str, bool) -> bool) -> Option<&'static str> {
    let name = name.to_str()?;
    let of = |suffix: &str| name.strip_suffix(suffix).filter(|stem| !stem.is_empty());
    if of(".imap").is_some_and(|stem| has(&format!("{stem}.mbox"), true)) {
        return Some("an index of imap-backup");
    }
    if of(METADATA).is_some_and(|stem| has(&format!("{stem}.eml"), true)) {
        return Some("the state of a message that Proton exported");
    }
    (name == LABELS && has(METADATA, false)).then_some("the labels of mail that Proton exported")
}

/// Returns a description if a mail server keeps its state in a directory with this name next to `cur` and `new`.
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
        ] {
            let found = is_state_file(OsStr::new(name), is_empty);
            assert_eq!(found.is_some(), expected, "{name}");
        }
    }

    #[test]
    fn state_file_is_a_part_of_a_mailbox_only_next_to_its_mail() {
        for (name, neighbours, is_part) in [
            ("INBOX.imap", &["INBOX.mbox"][..], true),
            ("INBOX.imap", &["Sent.mbox"], false),
            (".imap", &[".mbox"], false),
            ("a==.metadata.json", &["a==.eml"], true),
            ("a==.metadata.json", &["b==.eml"], false),
            ("labels.json", &["a==.metadata.json"], true),
            ("labels.json", &["a==.eml"], false),
            ("x.json", &["x.eml"], false),
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
