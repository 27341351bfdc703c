//! The folders of the messages in an archive, by their position in the stream of all members.

use std::path::Path;
use std::sync::Arc;

use crate::mailbox::forms::suffixes::SuffixClass;

/// Maximum number of folders in an archive. Messages in further folders are treated as having no folder.
const MOST: usize = 100_000;

#[derive(Default, Debug)]
pub(crate) struct MemberPlaces {
    /// Number of bytes that were read from the archive so far.
    pub(crate) read: u64,
    /// Position of the first message of each folder, in ascending order.
    folders: Vec<(u64, Arc<[String]>)>,
}

impl MemberPlaces {
    /// Records the folder of a member that begins at the offset `at`.
    pub(super) fn begin(&mut self, at: u64, name: &str, is_message: bool) {
        let folder = match self.folders.len() {
            MOST => Vec::new(),
            length if length > MOST => return,
            _ => levels(name, is_message),
        };
        if self
            .folders
            .last()
            .is_none_or(|(_, last)| **last != *folder)
        {
            self.folders.push((at, folder.into()));
        }
    }

    /// Returns the folder of the message at a position.
    pub(crate) fn folder(&self, at: u64) -> Option<Arc<[String]>> {
        let after = self.folders.partition_point(|(start, _)| *start <= at);
        let (_, folder) = self.folders.get(after.checked_sub(1)?)?;
        Some(Arc::clone(folder))
    }
}

/// Returns the names of the folders of a member, from the outermost to the innermost.
fn levels(name: &str, is_message: bool) -> Vec<String> {
    let named = |step: &&str| !step.is_empty() && *step != ".";
    let mut steps: Vec<&str> = name.split('/').filter(named).collect();
    if is_message {
        steps.pop();
    }
    // Some directories are not folders themselves, so their names are dropped: `cur`, `new` and `tmp` of a Maildir,
    // `Messages` of Apple Mail, and the last `mbox` of a path `NAME.mbox/mbox`.
    let of_messages = ["cur", "new", "tmp", "Messages"];
    let is_inner = |last: &&str| {
        if is_message {
            of_messages.contains(last)
        } else {
            *last == "mbox"
        }
    };
    if steps.len() > 1 && steps.last().is_some_and(is_inner) {
        steps.pop();
    }
    // Suffixes of files and directories that contain mail are not part of the name of a folder.
    let without_suffix = |step: &str| {
        let path = Path::new(step);
        let is_of_mail = path.extension().is_some_and(|suffix| {
            suffix == "sbd" || SuffixClass::of(suffix).is_some_and(SuffixClass::is_mail)
        });
        let stem = path.file_stem().filter(|_| is_of_mail);
        stem.and_then(|stem| stem.to_str())
            .unwrap_or(step)
            .to_owned()
    };
    steps.into_iter().map(without_suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_members_are_found_by_the_position_of_a_message() {
        let mut places = MemberPlaces::default();
        for (at, name, is_message) in [
            (10, "Takeout/Mail/All mail.mbox", false),
            (50, "./Mail/Inbox.sbd/Work", false),
            (70, "Maildir/.Sent/cur/1:2,S", true),
            (80, "Maildir/.Sent/cur/2:2,S", true),
            (90, "INBOX.mbox/mbox", false),
            (95, "mbox", false),
            (99, "one.eml", true),
        ] {
            places.begin(at, name, is_message);
        }
        let found = |at| places.folder(at).map(|folder| folder.join("|"));
        assert_eq!(found(9), None);
        for (at, expected) in [
            (10, "Takeout|Mail|All mail"),
            (49, "Takeout|Mail|All mail"),
            (50, "Mail|Inbox|Work"),
            (85, "Maildir|.Sent"),
            (90, "INBOX"),
            (95, "mbox"),
            (u64::MAX, ""),
        ] {
            assert_eq!(found(at).as_deref(), Some(expected), "{at}");
        }
        assert_eq!(places.folders.len(), 6);
    }
}
