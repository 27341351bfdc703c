//! The mailboxes and other files that a search found.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::detail::Detail;
use crate::mailbox::FileCounts;
use crate::mailbox::compressed::Method;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::not_mail::NotMail;
use crate::mailbox::pst_file::PstFolder;
use crate::mailbox::seen::SeenFiles;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SourceFind {
    pub path: PathBuf,
    /// Path relative to the source. Empty for the source itself.
    pub relative: PathBuf,
    pub kind: StartKind,
    /// Compression of the file. `None` for a directory, although its messages may be compressed.
    pub method: Option<Method>,
    /// Length of the file in bytes. 0 for a directory.
    pub length: u64,
    /// Folder of an Outlook mailbox. Each folder of an Outlook mailbox is an entry of its own. `None` for other
    /// mailboxes.
    pub pst: Option<PstFolder>,
}

/// The mailboxes and other files that a search found. Each list is sorted by path.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Finds {
    pub mailboxes: Vec<SourceFind>,
    pub skipped: Vec<(PathBuf, NotMail)>,
    /// Files that are not read although they are or may be mail, with the reason and advice.
    pub unread: Vec<(PathBuf, Detail)>,
    /// Counts of the other files by verdict. Mailboxes, messages of Maildirs and MH folders, and members of archives
    /// are not included; they are counted when they are read.
    pub files: FileCounts,
    pub seen: SeenFiles,
}

impl SourceFind {
    /// Returns whether the folders of the source are only known after it was read, because it is an archive or a
    /// compressed Outlook mailbox.
    pub(crate) fn is_packed(&self) -> bool {
        self.kind == StartKind::Archive || self.kind.has_folders() && self.pst.is_none()
    }

    /// Returns whether the file contains a single message.
    pub(crate) fn is_message(&self) -> bool {
        self.kind.is_message()
    }

    /// Returns the path of the file to be read. For a folder inside an Outlook mailbox, this is the mailbox file.
    pub(crate) fn file(&self) -> &Path {
        #[cfg(feature = "outlook")]
        if let Some(folder) = &self.pst {
            return folder.file();
        }
        &self.path
    }
}

impl Finds {
    pub(crate) fn of_source(
        source: &Path,
        kind: StartKind,
        method: Option<Method>,
        length: u64,
    ) -> Self {
        Self {
            mailboxes: vec![SourceFind {
                path: source.into(),
                relative: PathBuf::new(),
                kind,
                method,
                length,
                pst: None,
            }],
            ..Self::default()
        }
    }

    /// Returns whether a file or directory has changed since the search. Messages of Maildirs and MH folders are not
    /// checked, because these directories are listed again when they are read.
    pub(crate) fn has_changed(&self) -> bool {
        let mailboxes = self.mailboxes.iter().map(|found| found.path.as_path());
        let skipped = self.skipped.iter().map(|(path, _)| path.as_path());
        let unread = self.unread.iter().map(|(path, _)| path.as_path());
        self.seen
            .has_changed(mailboxes.chain(skipped).chain(unread))
    }

    /// Sorts the lists by path.
    pub(crate) fn sort(&mut self) {
        self.mailboxes
            .sort_by(|one, other| one.path.cmp(&other.path));
        self.skipped.sort();
        self.unread.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    /// Skips copies of other mailboxes, such as backups, if the search also found the original. `original_of` returns
    /// the path of the original, or `None` if the mailbox is not a copy. Also sorts the lists.
    pub(crate) fn pass_over(
        &mut self,
        what: &'static str,
        original_of: impl Fn(&SourceFind) -> Option<PathBuf>,
    ) {
        let found = &mut self.mailboxes;
        found.sort_by(|one, other| one.path.cmp(&other.path));
        let is_there = |path: &PathBuf| {
            let at = found.binary_search_by(|found| found.path.cmp(path));
            at.is_ok_and(|at| !found[at].kind.is_folder())
        };
        let originals: HashSet<PathBuf> = found
            .iter()
            .filter_map(&original_of)
            .filter(is_there)
            .collect();
        let is_beside = |found: &mut SourceFind| {
            let original = original_of(found);
            original.is_some_and(|original| originals.contains(&original))
        };
        let beside: Vec<SourceFind> = found.extract_if(.., is_beside).collect();
        let count = beside.len() as u64;
        self.files.parts += count;
        let what = NotMail::SetAside(what);
        let skipped = beside.into_iter().map(|found| (found.path, what));
        self.skipped.extend(skipped);
        self.skipped.sort();
    }
}
