//! Gives a complete directory, or a folder of Thunderbird, its final name.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::mailbox::place::existing::{ExistingResult, compared, is_same_result};
use crate::mailbox::place::journal::{JournalRecord, ResultPart};
use crate::mailbox::place::replace::exists;
use crate::mailbox::place::tree::subfolders_of;
use crate::platform;

/// A complete file or directory: its temporary name and its final name.
pub(crate) struct NamedResult {
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) temporary: PathBuf,
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) target: PathBuf,
}

impl NamedResult {
    pub(super) fn new(temporary: &Path, target: &Path) -> Self {
        Self {
            temporary: temporary.to_owned(),
            target: target.to_owned(),
        }
    }
}

/// Renames a directory to its final name. An empty directory of this name is replaced, and any other file is an error,
/// unless it is the same result of an interrupted run. Returns whether the directory was renamed.
pub(super) fn appear_as_folder(
    made: &Path,
    target: &Path,
    record: Option<&JournalRecord<'_>>,
) -> io::Result<bool> {
    if let Some(record) = record {
        record.tree(record.part, target, made);
    }
    let Err(why) = platform::rename_folder(made, target) else {
        return Ok(true);
    };
    match record {
        Some(record) if record.journal.may_exist(target) && is_same_result(made, target)? => {
            record.tree(record.part, target, target);
            Ok(false)
        }
        _ => Err(match why.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                exists(target, record.map(|record| record.journal))
            }
            _ => why,
        }),
    }
}

/// Moves a folder tree to its place. Thunderbird looks for subfolders when it finds the mbox, so the mbox is renamed
/// last. A run that is killed between the two is continued: the directory of the subfolders is then the same as that of
/// the next run.
pub(super) fn appear_as_tree(
    made: &Path,
    target: &Path,
    record: Option<&JournalRecord<'_>>,
    note: &mut dyn FnMut(&[NamedResult]),
) -> io::Result<()> {
    platform::sync_tree(made)?;
    let mbox = made.join(target.file_name().unwrap_or_default());
    let subfolders = subfolders_of(&mbox);
    let mut named = vec![NamedResult::new(&mbox, target)];
    if subfolders.exists() {
        named.insert(0, NamedResult::new(&subfolders, &subfolders_of(target)));
    }
    note(&named);
    if let Some(record) = record {
        record.file(target, &File::open(&mbox)?, true);
    }
    if subfolders.exists() {
        let place = subfolders_of(target);
        let part = ResultPart::Subfolders;
        let record = record.map(|record| JournalRecord {
            part,
            ..record.clone()
        });
        if let Some(record) = &record {
            record.compare(&place);
        }
        appear_as_folder(&subfolders, &place, record.as_ref())?;
    }
    let Err(why) = platform::rename_to_new(&mbox, target) else {
        return Ok(());
    };
    let new = File::open(&mbox)?;
    match record {
        Some(record) if record.journal.may_exist(target) => match compared(target, &new)? {
            ExistingResult::Same(file) => {
                record.file(target, &file, true);
                Ok(())
            }
            _ => Err(why),
        },
        _ => Err(why),
    }
}
