//! Converts a single message in an archive to an entry of an mbox, because the mail of an archive is read as one mbox.
//!
//! The sender `mboxrd@z` in the separator, which public-inbox introduced, says that the entry is quoted as mboxrd. The quoting
//! can therefore be undone exactly.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use crate::mailbox::appended::AppendedData;
use crate::mailbox::archive::{EntryMaker, MOST_KEYWORDS, MboxEntry, MemberRules};
use crate::mailbox::find;
use crate::mailbox::flag_losses::FlagLosses;
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::{DOVECOT, unexplained, unwritable};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::recorded::refused_session;
use crate::mailbox::forms::rewrite::{MBOXRD_SEPARATOR, for_mbox};
use crate::mailbox::forms::separator::next_in_message;
use crate::mailbox::forms::state_files::unused_flags;
use crate::mailbox::forms::{MboxVariant, emlx, emlx_files, eudora, outlook};
use crate::mailbox::place::folder::noted_in_name;
use crate::mailbox::place::keyword_files::{COURIER, FolderKeywords};
use crate::prologue;

/// How the members of an archive are read: the mboxes and messages as one mbox, and the Outlook mailboxes later.
pub(crate) const ALL_MAIL: MemberRules = MemberRules {
    judge: find::judged_with_psts,
    entries,
};

/// How the members of an archive are read if Outlook mailboxes in it are only named.
#[cfg(feature = "cli")]
pub(crate) const WITHOUT_PSTS: MemberRules = MemberRules {
    judge: find::judged,
    entries,
};

/// Creates a converter of messages to mbox entries. It writes flags (from Maildir file names and the data of Apple
/// Mail) to Status fields, and Maildir keywords to X-Keywords.
fn entries() -> Box<dyn EntryMaker> {
    Box::new(ArchiveEntries::default())
}

/// Reason why a member is not read: its path is that of a single message, but it contains several messages.
const MBOX_IN_MAILDIR: &str = "an mbox in a directory of single messages, where embody reads no mbox; unpack the archive, and move the mbox to another directory";

/// Maximum number of Maildirs in a stream of which it is remembered that they contain messages.
const MOST_MAILDIRS: usize = 10_000;

#[derive(Default)]
struct ArchiveEntries {
    /// Size of the files with keywords that were used, in bytes.
    used: u64,
    /// The Maildirs in the archive, by path.
    maildirs: HashMap<String, ArchivedMaildir>,
}

#[derive(Default)]
struct ArchivedMaildir {
    keywords: FolderKeywords,
    has_messages: bool,
}

impl EntryMaker for ArchiveEntries {
    fn entry(&mut self, name: &str, content: &[u8], kind: StartKind) -> Result<MboxEntry, String> {
        if kind == StartKind::Msg {
            let mail = outlook::message(content)?;
            return Ok(MboxEntry {
                bytes: entry(&mail.content, Some(&mail.flags.into())),
                missing: mail.missing,
                lost: Vec::new(),
                had_prologue: false,
            });
        }
        // The first 64 KiB of a member show this only if the first message is short.
        if let Some(session) = refused_session(content) {
            return Err(session.detail().to_string());
        }
        let (mut lost, mut missing) = (Vec::new(), Vec::new());
        let (message, flags) = match emlx::message(content) {
            Some(Ok(range)) => (
                content.get(range).unwrap_or(content),
                emlx::noted(content).0,
            ),
            Some(Err(why)) => return Err(why.to_owned()),
            None if content.starts_with(b"From ") && next_in_message(content).is_some() => {
                return Err(MBOX_IN_MAILDIR.to_owned());
            }
            None => (content, self.flags(name, content, &mut lost)),
        };
        if emlx_files::whole_name(Path::new(name)).is_some() && emlx::is_partial(message) {
            let what =
                "its attachments are in other files of the archive, so unpack the archive first";
            missing.push(what.to_owned());
        }
        // The reader of the mbox finds data of other formats in the entry. It does not find an mbox, whose separators are quoted
        // in the entry, and data after a property list, which are not part of the entry.
        let unseen = AppendedData::behind_list(content).or_else(|| {
            let data = AppendedData::in_file(content);
            data.filter(|data| data.is_mbox())
        });
        missing.extend(unseen.map(|data| data.detail("the message", None).to_string()));
        // Most programs read no header after lines that are before it, also in an mbox.
        let plain = prologue::without_prologue(message);
        Ok(MboxEntry {
            bytes: entry(plain.as_deref().unwrap_or(message), flags.as_ref()),
            missing,
            lost,
            had_prologue: plain.is_some(),
        })
    }

    fn uses_keyword_files(&self, name: &str) -> bool {
        maildir_of(name).is_some()
    }

    fn is_keyword_file(&self, name: &str) -> bool {
        keyword_file(name).is_some()
    }

    fn add_keyword_file(&mut self, name: &str, content: &[u8], lost: &mut FlagLosses) {
        let Some((folder, file)) = keyword_file(name) else {
            return;
        };
        let used = self.used.saturating_add(content.len() as u64);
        if used > MOST_KEYWORDS {
            let what =
                "file with keywords, because such files are larger than 16 MiB in the archive";
            lost.count(what.to_owned());
            return;
        }
        self.used = used;
        let file = Path::new(file);
        let maildir = self.maildirs.entry(folder.to_owned()).or_default();
        maildir.keywords.add_file(file, content);
        if maildir.has_messages {
            // The letters of messages that were converted without `dovecot-keywords` are counted one by one.
            let mut late = FolderKeywords::default();
            late.add_file(file, content);
            let what = "keywords, because they come after their messages in the stream";
            lost.count_all(what.to_owned(), late.messages_of_courier());
        }
    }

    fn unused_flags(&self, name: &str, start: &[u8]) -> Option<&'static str> {
        const EUDORA: &str = "flags and attachments of a Eudora mailbox, which are used only if the archive is unpacked";
        let of_eudora = eudora::starts(start).then_some(EUDORA);
        of_eudora.or_else(|| unused_flags(OsStr::new(divided(name).1), start))
    }
}

impl ArchiveEntries {
    /// Returns the flags and keywords of a message in `cur` or `new` of a Maildir. Letters whose meaning is unknown are
    /// added to `lost`.
    fn flags(
        &mut self,
        name: &str,
        content: &[u8],
        lost: &mut Vec<String>,
    ) -> Option<MessageFlags> {
        let (folder, short) = maildir_of(name)?;
        let system = noted_in_name(short, content)?;
        if self.maildirs.len() < MOST_MAILDIRS {
            let maildir = self.maildirs.entry(folder.to_owned()).or_default();
            maildir.has_messages = true;
        }
        let none = FolderKeywords::default();
        let maildir = self.maildirs.get(folder);
        let known = maildir.map_or(&none, |maildir| &maildir.keywords);
        let (keywords, unknown) = known.of_message(short);
        lost.extend(unknown.into_iter().map(unexplained));
        let flags = MessageFlags::new(system, keywords);
        lost.extend(flags.unwritable().map(unwritable));
        Some(flags)
    }
}

/// Divides the path of a member into the path of its directory and its name.
fn divided(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

/// Returns the path of the Maildir of a message, and the path of the message in it. Returns `None` for files that are
/// not in `cur` or `new`.
fn maildir_of(name: &str) -> Option<(&str, &Path)> {
    let (part, _) = divided(name);
    let (folder, last) = divided(part);
    let short = name.get(part.len() - last.len()..)?;
    matches!(last, "cur" | "new").then(|| (folder, Path::new(short)))
}

/// Returns the path of the Maildir whose keywords a file contains, and the path of the file in it.
fn keyword_file(name: &str) -> Option<(&str, &str)> {
    let (folder, file) = divided(name);
    if file == DOVECOT {
        return Some((folder, file));
    }
    let (above, last) = divided(folder);
    let short = name.get(folder.len() - last.len()..)?;
    (last == COURIER).then_some((above, short))
}

fn entry(message: &[u8], flags: Option<&MessageFlags>) -> Vec<u8> {
    let content = match flags {
        Some(flags) => flags.put_into(message),
        None => message.into(),
    };
    [
        MBOXRD_SEPARATOR,
        b"\n",
        &for_mbox(&content, MboxVariant::Rd),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maildirs_in_an_archive_are_found_by_the_paths_of_their_files() {
        for (name, folder, short) in [
            ("cur/1.h:2,S", "", "cur/1.h:2,S"),
            ("./new/1.h", ".", "new/1.h"),
            ("a/b/cur/1.h", "a/b", "cur/1.h"),
            ("x.tar/cur/1", "x.tar", "cur/1"),
        ] {
            assert_eq!(maildir_of(name), Some((folder, Path::new(short))), "{name}");
        }
        for name in ["cur", "1.h", "a/1.h", "a/xcur/1.h", "cur/a/1.h"] {
            assert_eq!(maildir_of(name), None, "{name}");
        }
        for (name, found) in [
            ("dovecot-keywords", Some(("", "dovecot-keywords"))),
            ("a/dovecot-keywords", Some(("a", "dovecot-keywords"))),
            (
                "a/courierimapkeywords/:list",
                Some(("a", "courierimapkeywords/:list")),
            ),
            (
                "courierimapkeywords/.1.x.y",
                Some(("", "courierimapkeywords/.1.x.y")),
            ),
            ("a/courierimapkeywords", None),
            ("a/dovecot-keywords/x", None),
        ] {
            assert_eq!(keyword_file(name), found, "{name}");
        }
    }
}
