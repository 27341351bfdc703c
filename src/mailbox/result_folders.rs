//! Chooses the paths of all folders of a result, before the first of them is written.
//!
//! A mailbox that is copied in its own format keeps its path. A mailbox that is converted gets the path of its folder
//! (`forms::layout`), with the suffix `.mbox` for an mbox. No two mailboxes get the same path, and no mailbox gets the
//! path of a directory or file of another mailbox: if a name is already taken, a number is added to it. If the file
//! system of the result ignores case, or the difference between composed and decomposed characters, so does this
//! comparison of names.

pub(crate) mod groups;
mod namer;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use self::groups::{MailboxGroup, groups, name_of};
use self::namer::FolderNamer;
use crate::mailbox::Options;
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::layout::{self, FolderLayout, SourcePath};
use crate::mailbox::forms::names::folded;

/// A folder of the result, with the mailboxes whose messages are written to it.
#[derive(Clone, Debug)]
pub(crate) struct ResultFolder<'f> {
    /// Path relative to the result. Empty if the messages are written to the top level of the result.
    pub(crate) path: PathBuf,
    /// Directory for the folders of Outlook mailboxes in an archive. These folders become known only when the archive
    /// is read.
    pub(crate) directory: PathBuf,
    /// Whether the messages change their place: they are converted to another format, or added to another mailbox.
    /// False if the mailbox is copied as it is.
    pub(crate) is_moved: bool,
    pub(crate) founds: Vec<&'f SourceFind>,
}

impl<'f> ResultFolder<'f> {
    /// Returns the message if this folder is a single message that is copied as a file. Otherwise returns `None`.
    pub(crate) fn copied_message(&self) -> Option<&'f SourceFind> {
        match self.founds.as_slice() {
            [found] if !self.is_moved && found.is_message() => Some(found),
            _ => None,
        }
    }

    /// Returns the names of the folder and its parent folders, from the outermost to the innermost.
    pub(crate) fn levels(&self) -> Vec<String> {
        let names = self.path.iter().map(OsStr::to_string_lossy);
        names.map(|name| name.into_owned()).collect()
    }
}

/// Returns the name of the folder for messages that are directly in the source, if the source also contains folders.
fn inbox(finds: &Finds) -> OsString {
    let source = finds.mailboxes.first().and_then(|found| {
        let mut above = found.path.ancestors();
        name_of(above.nth(found.relative.iter().count())?)
    });
    let of_apple_mail = source.as_deref().and_then(layout::apple_mailbox);
    of_apple_mail.unwrap_or(OsStr::new("INBOX")).to_owned()
}

/// Returns the folders of the result, parent folders first. All paths are different. `folds` returns whether the file
/// system of the result ignores case or composed characters in names. Answering may need the disk, so `folds` is called
/// only if two names differ only in this way.
pub(crate) fn result_folders<'f>(
    finds: &'f Finds,
    options: &Options,
    folds: impl FnOnce() -> bool,
) -> Vec<ResultFolder<'f>> {
    let groups = groups(finds, options);
    let nesting = if options.output_format.is_tree() {
        FolderLayout::Folders
    } else {
        FolderLayout::Directories
    };
    let folders = named(finds, &groups, FolderNamer::new(options, nesting, false));
    if has_folded_twins(&folders) && folds() {
        named(finds, &groups, FolderNamer::new(options, nesting, true))
    } else {
        folders
    }
}

/// Returns the folders of the source, each with a unique path of folder names. For callers that deliver folder by
/// folder and create no files here, such as an upload to a server.
pub(crate) fn source_folders<'f>(finds: &'f Finds, options: &Options) -> Vec<ResultFolder<'f>> {
    let namer = FolderNamer::new(options, FolderLayout::Folders, false);
    named(finds, &groups(finds, options), namer)
}

fn has_folded_twins(folders: &[ResultFolder<'_>]) -> bool {
    let mut known: HashMap<String, &Path> = HashMap::new();
    let mut paths = folders.iter().flat_map(|folder| folder.path.ancestors());
    paths.any(|path| {
        let other = known.insert(folded(&path.to_string_lossy()), path);
        other.is_some_and(|other| other != path)
    })
}

fn named<'f>(
    finds: &Finds,
    groups: &[MailboxGroup<'f>],
    mut namer: FolderNamer,
) -> Vec<ResultFolder<'f>> {
    let folder = |group: &MailboxGroup<'f>, path: PathBuf| ResultFolder {
        directory: path.clone(),
        path,
        is_moved: group.is_moved,
        founds: group.founds.clone(),
    };
    if let [group] = groups
        && group.key.as_os_str().is_empty()
    {
        return vec![folder(group, PathBuf::new())];
    }
    let is_maildir = |found: &&SourceFind| found.kind == StartKind::Maildir;
    let maildirs: HashSet<&Path> = finds
        .mailboxes
        .iter()
        .filter(is_maildir)
        .map(|found| found.relative.as_path())
        .collect();
    let mut renamed = Vec::new();
    let mut folders = Vec::new();
    for group in groups {
        if group.is_renamed || namer.nesting == FolderLayout::Folders {
            let mut above = group.key.ancestors().skip(1);
            let source = SourcePath {
                path: group.key,
                kind: group.kind_of_name(),
                maildir: above
                    .find(|above| group.kind == StartKind::Maildir && maildirs.contains(above))
                    .map(|above| above.iter().count()),
            };
            renamed.push((source.levels(namer.nesting), group));
        } else {
            folders.push(folder(group, namer.keep(group)));
        }
    }
    // A folder gets its name before its subfolders, because their directory must have the same name.
    renamed.sort_by(|one, other| one.0.cmp(&other.0));
    let inbox = inbox(finds);
    for (levels, group) in renamed {
        folders.push(folder(group, namer.give(&levels, &inbox, group)));
    }
    folders.sort_by(|one, other| one.path.cmp(&other.path));
    for folder in &mut folders {
        let is_packed = |found: &&SourceFind| found.is_packed();
        if folder.founds.iter().any(is_packed) && !folder.path.as_os_str().is_empty() {
            folder.directory = namer.directory_beside(&folder.path);
        }
    }
    folders
}

#[cfg(test)]
mod tests;
