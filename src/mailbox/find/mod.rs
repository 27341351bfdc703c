//! Finds the mailboxes at a path. The content of a file decides about its format, not the name alone.
//! * A directory with `cur` and `new` is a Maildir. A directory with the files that programs keep in MH folders is an
//!   MH folder. Nested directories are searched as well.
//! * The format of a file is recognised by its first bytes (`recognise`, `start`). A compressed file is decompressed once and
//!   recognised by its content. The names `.eml` and `.mht` (written by web browsers) count in two cases: if the start
//!   of the file shows no other format, and if a `From ` line at the start is not followed by a second message.
//! * An archive (`archive`) is read, also in a directory. A document that is a zip file is not.
//! * In a directory, every other file gets a verdict (`search`): part of a mailbox, such as the files that Apple Mail
//!   and Eudora keep next to messages, and stores and caches of embody; no mail; or not read. If such a file is named
//!   as the source, the error says what it is and how to read it.
//! * The start of a pipe is not read here, because the bytes could not be read again. The reader of the pipe calls
//!   [`kind_of`](crate::mailbox::start::kind_of) with the start.

mod recognise;
mod search;

use std::fs::{self, Metadata};
use std::path::Path;

use crate::error::Error;
use crate::mailbox::ReadOptions;
use crate::mailbox::failure::cannot_read;
pub(crate) use crate::mailbox::finds::{Finds, SourceFind};
pub(crate) use crate::mailbox::forms::kind::StartKind;
pub(crate) use crate::mailbox::not_mail::NotMail;
use crate::mailbox::not_mail::not_a_mailbox;
#[cfg(feature = "cli")]
pub(crate) use crate::mailbox::not_mail::not_in_place;
#[cfg(feature = "cli")]
pub(crate) use crate::mailbox::start::kind_of_start;
use crate::stop::Stop;
pub(crate) use recognise::{
    FileVerdict, LOOKED_AT, check_outlook, is_empty_message, judged, judged_with_psts, look_at,
};
use search::TreeSearch;
pub(crate) use search::is_maildir;

/// Finds the mailboxes in `source`, a file or a directory.
///
/// # Errors
/// Returns [`Error::NotAMailbox`] if the source contains no mail, [`Error::Read`], or [`Error::Interrupted`].
pub(crate) fn find(source: &Path, options: &ReadOptions, stop: &Stop) -> Result<Finds, Error> {
    let metadata = fs::metadata(source).map_err(cannot_read(source))?;
    if metadata.is_dir() {
        return TreeSearch::of(source, options, stop).run();
    }
    if !metadata.is_file() {
        return Err(not_a_mailbox(source, "neither a file nor a folder"));
    }
    of_file(source, look_at(source, options.format)?, &metadata)
}

/// Returns a file as a source with one mailbox. `metadata` must have been read before the file was examined for `verdict`.
///
/// # Errors
/// Returns [`Error::NotAMailbox`] if the file is not read.
pub(crate) fn of_file(
    source: &Path,
    verdict: FileVerdict,
    metadata: &Metadata,
) -> Result<Finds, Error> {
    let (mut kind, method) = verdict.map_err(|other| other.error(source))?;
    if kind == StartKind::Mbox && is_empty_message(source, metadata.len()) {
        kind = StartKind::Eml;
    }
    let mut finds = Finds::of_source(source, kind, method, metadata.len());
    finds.seen.add_place(source, metadata);
    Ok(finds)
}
