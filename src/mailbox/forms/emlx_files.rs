//! The files of Apple Mail around an `.emlx` file: its mailbox, and the attachments next to its messages.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::mailbox::program::Program;
use crate::mailbox::temporary::folder_of;

pub(crate) fn whole_name(partial: &Path) -> Option<PathBuf> {
    let name = partial
        .file_name()?
        .to_str()?
        .strip_suffix(".partial.emlx")?;
    Some(partial.with_file_name(format!("{name}.emlx")))
}

/// Returns [`Program::AppleMail`] if the file is a message of Apple Mail: it has a number as its name and is in a
/// directory named `Messages`. Apple Mail keeps the attachments of such a message in files next to it.
pub(crate) fn beside(path: &Path) -> Option<Program> {
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".emlx")?;
    let number = stem.strip_suffix(".partial").unwrap_or(stem);
    let is_number = !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit());
    let folder = path.parent().filter(|_| is_number)?;
    let is_messages = match folder.file_name() {
        Some(name) => name == "Messages",
        // The source may be given as a relative path without a directory, which has no name to compare. So the path is
        // resolved first.
        None => folder_of(path).canonicalize().ok()?.ends_with("Messages"),
    };
    is_messages.then_some(Program::AppleMail)
}

fn is_mbox(folder: &Path) -> bool {
    folder.extension().is_some_and(|suffix| suffix == "mbox")
}

/// Returns the directory of the mailbox that contains a message, relative to the source. This is `NAME.mbox`, or
/// without one the directory that contains `Messages`. Directories named by one digit are skipped, because Apple Mail
/// only distributes many messages over them.
pub(crate) fn mailbox_of<'r>(path: &Path, relative: &'r Path) -> Option<&'r Path> {
    beside(path)?;
    let above = || relative.ancestors().skip(1).zip(path.ancestors().skip(1));
    if let Some((key, _)) = above().find(|(_, path)| is_mbox(path)) {
        return Some(key);
    }
    if path.ancestors().any(is_mbox) {
        return Some(Path::new(""));
    }
    let is_no_digit = |above: &&Path| {
        let name = above.file_name().unwrap_or_default().as_encoded_bytes();
        !matches!(name, [digit] if digit.is_ascii_digit())
    };
    relative
        .ancestors()
        .skip(2)
        .find(is_no_digit)
        .or(relative.parent())
}

pub(crate) fn aside(folder: &Path, name: &OsStr) -> Option<&'static str> {
    // The directory is resolved first, because a relative path can lack the directory `NAME.mbox` above it.
    let is_beneath = |folder: PathBuf| folder.ancestors().any(is_mbox);
    let messages = folder.join("Messages");
    let is_message = |entry: &fs::DirEntry| beside(&entry.path()).is_some();
    // The directory may have been copied without the `NAME.mbox` around it. It still belongs to Apple Mail if messages
    // of Apple Mail are next to it.
    let holds_some = || {
        fs::read_dir(&messages).is_ok_and(|mut it| it.any(|it| it.is_ok_and(|it| is_message(&it))))
    };
    let is_aside = name == "Attachments"
        && messages.is_dir()
        && (folder.canonicalize().is_ok_and(is_beneath) || holds_some());
    is_aside.then_some("attachments that Apple Mail stores next to the messages")
}
