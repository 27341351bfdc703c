//! Groups the mailboxes of a source that are written to the same mailbox of the result.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::{emlx_files, layout};
use crate::mailbox::result_form::is_moved;
use crate::mailbox::temporary::folder_of;
use crate::mailbox::{Format, Options};

/// Mailboxes that are written to the same mailbox of the result.
pub(crate) struct MailboxGroup<'f> {
    /// Path of the mailbox in the source, relative to the source. Empty for the source itself.
    pub(crate) key: &'f Path,
    pub(crate) founds: Vec<&'f SourceFind>,
    /// Kind of the first mailbox. Mailboxes of different kinds are only grouped if all of them are converted in the
    /// same way.
    pub(crate) kind: StartKind,
    pub(super) is_moved: bool,
    /// Whether the result is named after the folder instead of keeping its path in the source.
    pub(super) is_renamed: bool,
}

impl MailboxGroup<'_> {
    /// Returns the kind of file that `key` names. An unopened Outlook mailbox counts as an archive here, because `key`
    /// is then the path of a file and not of a folder in it.
    pub(super) fn kind_of_name(&self) -> StartKind {
        if self.founds.iter().any(|found| found.is_packed()) {
            StartKind::Archive
        } else {
            self.kind
        }
    }
}

/// Groups the mailboxes that are written to the same mailbox of the result, such as the single messages of a directory.
/// The groups are sorted by their paths in the source.
pub(crate) fn groups<'f>(finds: &'f Finds, options: &Options) -> Vec<MailboxGroup<'f>> {
    let is_other_layout = options.output_format != Format::Auto || options.by_label.is_some();
    let trees = if is_other_layout {
        kmail_trees(finds)
    } else {
        BTreeSet::new()
    };
    let has_one_folder = is_other_layout && is_one_folder(finds, options);
    let mut groups: BTreeMap<(&Path, usize), MailboxGroup<'_>> = BTreeMap::new();
    for (number, found) in finds.mailboxes.iter().enumerate() {
        let relative = found.relative.as_path();
        let is_moved = is_moved(found.kind, options) || is_numbered(found, options);
        let exported = exported_to(found).filter(|_| is_other_layout);
        let key = match found.kind {
            _ if has_one_folder => Path::new(""),
            kind if is_moved && kind.is_message() => emlx_files::mailbox_of(&found.path, relative)
                .or(relative.parent())
                .unwrap_or(relative),
            _ => exported.unwrap_or(relative),
        };
        // All messages of a directory form one group: those of a Maildir or an MH folder, and those in other files. Any
        // other file is a mailbox of its own.
        let is_of_directory = found.kind.is_folder() || found.kind.is_message();
        let slot = if has_one_folder || is_moved && is_of_directory {
            0
        } else {
            number + 1
        };
        let is_in_tree = || {
            relative
                .ancestors()
                .skip(1)
                .any(|above| trees.contains(above))
        };
        let group = groups.entry((key, slot)).or_insert_with(|| MailboxGroup {
            key,
            founds: Vec::new(),
            kind: found.kind,
            is_moved,
            is_renamed: is_moved || exported.is_some() || is_in_tree(),
        });
        group.founds.push(found);
    }
    groups.into_values().collect()
}

/// Returns whether the source is one folder that is converted to another format: a Maildir or an MH folder, and next to
/// its messages at most files with other mail. All mail then goes to the same mailbox.
fn is_one_folder(finds: &Finds, options: &Options) -> bool {
    let mut founds = finds.mailboxes.iter();
    let is_source = |found: &SourceFind| found.relative.as_os_str().is_empty();
    let is_folder = founds.next().is_some_and(|first| {
        is_source(first) && first.kind.is_folder() && is_moved(first.kind, options)
    });
    let is_beside = |found: &SourceFind| {
        let is_direct = found.relative.iter().count() == 1;
        is_direct && !found.kind.is_folder() && !found.is_packed() && found.pst.is_none()
    };
    is_folder && founds.all(is_beside)
}

/// Returns whether the message becomes a numbered file, because it is in an Apple Mail mailbox that becomes a directory
/// of messages. Other messages keep their file names.
fn is_numbered(found: &SourceFind, options: &Options) -> bool {
    options.output_format.has_message_files()
        && found.kind == StartKind::Eml
        && !found.relative.as_os_str().is_empty()
        && emlx_files::beside(&found.path).is_some()
}

/// Returns the directory `NAME.mbox`, relative to the source, if the file is the mbox in a mailbox that Apple Mail
/// exported (`NAME.mbox/mbox`).
fn exported_to(found: &SourceFind) -> Option<&Path> {
    let name = found.relative.file_name()?;
    let is_mbox = found.kind == StartKind::Mbox && layout::is_exported(name);
    let parent = found.relative.parent().filter(|_| is_mbox)?;
    let directory = folder_of(&found.path);
    layout::apple_mailbox(&name_of(directory)?).map(|_| parent)
}

/// Returns the name of a directory, even if its path has no name, such as `.`.
pub(super) fn name_of(directory: &Path) -> Option<OsString> {
    match directory.file_name() {
        Some(name) => Some(name.to_owned()),
        None => Some(directory.canonicalize().ok()?.file_name()?.to_owned()),
    }
}

/// Returns the directories in which KMail stores a folder tree, relative to the source: those that contain a directory
/// `.NAME.directory`.
fn kmail_trees(finds: &Finds) -> BTreeSet<&Path> {
    let relatives = finds.mailboxes.iter().map(|found| &found.relative);
    let directories = relatives.flat_map(|relative| relative.ancestors().skip(1));
    let trees = directories.filter_map(|directory| {
        layout::kmail_parent(directory.file_name()?)?;
        directory.parent()
    });
    trees.collect()
}
