//! Finds the mailboxes at a path. The content of a file decides about its format, not the name alone.
//! * A directory with `cur` and `new` is a Maildir. A directory with the files that programs keep in MH folders is an
//!   MH folder. Nested directories are searched as well.
//! * The format of a file is recognised by its first bytes (`recognise`, `start`). A compressed file is decompressed once and
//!   recognised by its content. The names `.eml` and `.mht` (written by web browsers) count in two cases: if the start
//!   of the file shows no other format, and if a `From ` line at the start is not followed by a second message.
//! * An archive (`archive`) is read, also in a directory. A document that is a zip file is not.
//! * In a directory, every other file gets a verdict (`search`): part of a mailbox, such as the files that Apple Mail and Eudora
//!   keep next to messages, and stores and caches of embody; no mail; or not read. If such a file is named as the source, the
//!   error says what it is and how to read it.
//! * The start of a pipe is not read here, because the bytes could not be read again. The reader of the pipe calls
//!   [`kind_of`] with the start.

mod recognise;
mod search;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::detail::Detail;
use crate::error::Error;
use crate::mailbox::compressed::Method;
use crate::mailbox::failure::cannot_read;
pub(crate) use crate::mailbox::not_mail::NotMail;
use crate::mailbox::not_mail::not_a_mailbox;
#[cfg(feature = "cli")]
pub(crate) use crate::mailbox::not_mail::not_in_place;
use crate::mailbox::read::pst_file::PstFolder;
pub(crate) use crate::mailbox::start::Kind;
use crate::mailbox::{FileCounts, Options};
use crate::stop::Stop;
pub(crate) use recognise::{
    LOOKED_AT, as_named, check_outlook, is_empty_message, judged, judged_with_psts, kind_of,
    look_at,
};
use search::Search;
pub(crate) use search::is_maildir;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub path: PathBuf,
    /// Path relative to the source. Empty for the source itself.
    pub relative: PathBuf,
    pub kind: Kind,
    /// Compression of the file. `None` for a directory, although its messages may be compressed.
    pub method: Option<Method>,
    /// The folder of an Outlook mailbox, if the entry is one. Each folder of an Outlook mailbox is an entry of its own.
    pub pst: Option<PstFolder>,
}

/// The mailboxes and other files that a search found. Each list is sorted by path.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Finds {
    pub mailboxes: Vec<Found>,
    pub skipped: Vec<(PathBuf, NotMail)>,
    /// Files that are mail or may be mail and are not read, with the reason and advice.
    pub unread: Vec<(PathBuf, Detail)>,
    /// The other files by verdict. Mailboxes, the messages of Maildirs and MH folders and the members of archives are counted
    /// when they are read.
    pub files: FileCounts,
}

impl Found {
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
    pub(crate) fn of_source(source: &Path, kind: Kind, method: Option<Method>) -> Self {
        Self {
            mailboxes: vec![Found {
                path: source.into(),
                relative: PathBuf::new(),
                kind,
                method,
                pst: None,
            }],
            ..Self::default()
        }
    }

    /// Sorts the lists by path.
    pub(crate) fn sort(&mut self) {
        self.mailboxes
            .sort_by(|one, other| one.path.cmp(&other.path));
        self.skipped.sort();
        self.unread.sort_by(|(one, _), (other, _)| one.cmp(other));
    }

    /// Skips mailboxes that were made from another mailbox, such as backups, if this original was found too.
    /// `original_of` returns the path of the original. Also sorts the lists.
    pub(crate) fn pass_over(
        &mut self,
        what: &'static str,
        original_of: impl Fn(&Found) -> Option<PathBuf>,
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
        let is_beside = |found: &mut Found| {
            let original = original_of(found);
            original.is_some_and(|original| originals.contains(&original))
        };
        let beside: Vec<Found> = found.extract_if(.., is_beside).collect();
        let count = beside.len() as u64;
        self.files.parts += count;
        let what = NotMail::Beside(what);
        let skipped = beside.into_iter().map(|found| (found.path, what));
        self.skipped.extend(skipped);
        self.skipped.sort();
    }
}

/// Finds the mailboxes in `source`, a file or a directory.
///
/// # Errors
/// Returns [`Error::NotAMailbox`] if the source contains no mail, [`Error::Read`], or [`Error::Interrupted`].
pub(crate) fn find(source: &Path, options: &Options, stop: &Stop) -> Result<Finds, Error> {
    let metadata = fs::metadata(source).map_err(cannot_read(source))?;
    if metadata.is_dir() {
        return Search::of(source, options, stop).run();
    }
    if !metadata.is_file() {
        return Err(not_a_mailbox(source, "neither a file nor a folder"));
    }
    let (mut kind, method) =
        look_at(source, options.format)?.map_err(|other| other.error(source))?;
    if kind == Kind::Mbox && is_empty_message(source) {
        kind = Kind::Eml;
    }
    Ok(Finds::of_source(source, kind, method))
}
