//! Finds the mailboxes at a path. The content of a file decides about its format, not the name alone.
//! * A directory with `cur` and `new` is a Maildir. A directory with the files that programs keep in MH folders is an
//!   MH folder. Nested directories are searched as well.
//! * The format of a file is recognised by its first bytes (`recognise`, `start`). A compressed file is decompressed once and
//!   recognised by its content. The names `.eml` and `.mht` (written by web browsers) count in two cases: if the start
//!   of the file shows no other format, and if a `From ` line at the start is not followed by a second message.
//! * An archive (`archive`) is read if it is named as the source. An archive inside a directory is skipped.
//! * In a directory, all other files are skipped and reported: also the files that Apple Mail and Eudora keep next to
//!   messages, stores and caches of embody, and symbolic links. If such a file is named as the source, the error says
//!   what it is and how to read it.
//! * The start of a pipe is not read here, because the bytes could not be read again. The reader of the pipe calls
//!   [`kind_of`] with the start.

mod recognise;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::mailbox::compressed::Method;
use crate::mailbox::failure::{cannot_read, unread};
use crate::mailbox::forms::{Format, emlx, eudora, mh};
pub(crate) use crate::mailbox::not_mail::NotMail;
use crate::mailbox::not_mail::not_a_mailbox;
#[cfg(feature = "cli")]
pub(crate) use crate::mailbox::not_mail::not_in_place;
use crate::mailbox::place::partial::{Members, maildir};
use crate::mailbox::place::temporary;
use crate::mailbox::read::pst_file::PstFolder;
pub(crate) use crate::mailbox::start::Kind;
use crate::platform::disk::layout::is_object;
use crate::stop::Stop;
pub(crate) use recognise::{
    LOOKED_AT, as_named, is_empty_message, judged, judged_with_psts, kind_of, look_at,
};

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
    pub unread: Vec<(PathBuf, String)>,
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
        let beside = found.extract_if(.., is_beside);
        let what = NotMail::Beside(what);
        self.skipped.extend(beside.map(|found| (found.path, what)));
        self.skipped.sort();
    }
}

pub(crate) fn find(source: &Path, format: Format, stop: &Stop) -> Result<Finds, Error> {
    let metadata = fs::metadata(source).map_err(cannot_read(source))?;
    if metadata.is_dir() {
        return in_folder(source, format, stop);
    }
    if !metadata.is_file() {
        return Err(not_a_mailbox(source, "neither a file nor a folder"));
    }
    let (mut kind, method) = look_at(source, format)?.map_err(|other| other.error(source))?;
    if kind == Kind::Mbox && is_empty_message(source) {
        kind = Kind::Eml;
    }
    Ok(Finds::of_source(source, kind, method))
}

fn in_folder(source: &Path, format: Format, stop: &Stop) -> Result<Finds, Error> {
    if let Some(what) = NotMail::of_folder(source) {
        return Err(not_a_mailbox(
            source,
            format!(
                "the directory is {}, where embody does not search for mail",
                what.name()
            ),
        ));
    }
    let whole = source.canonicalize().unwrap_or_else(|_| source.to_owned());
    let mut finds = Finds::default();
    let mut folders = BTreeSet::from([PathBuf::new()]);
    while let Some(relative) = folders.pop_first() {
        let path = source.join(&relative);
        let maildir = maildir_at(&path, format);
        let is_maildir = maildir.is_some();
        let listed = fs::read_dir(&path)
            .and_then(|entries| Ok((entries, !is_maildir && is_mh(&path, format)?)));
        let (entries, is_mh) = match listed {
            Ok(listed) => listed,
            Err(error) if relative.as_os_str().is_empty() => return Err(cannot_read(&path)(error)),
            Err(error) => {
                finds.unread.push((path, unread(&error)));
                continue;
            }
        };
        let kind = match format {
            Format::Auto | Format::Maildir if is_maildir => Some(Kind::Maildir),
            _ => is_mh.then_some(Kind::Mh),
        };
        if let Some(kind) = kind {
            finds.mailboxes.push(Found {
                path: path.clone(),
                relative: relative.clone(),
                kind,
                method: None,
                pst: None,
            });
        }
        let is_other = kind.is_none() && format == Format::Auto;
        let of_eudora = is_other.then(|| eudora::EudoraFolder::of(&path)).flatten();
        for entry in entries {
            stop.check()?;
            let found = entry.and_then(|entry| Ok((entry.file_type()?, entry)));
            let (kind, entry) = match found {
                Ok(found) => found,
                Err(error) => {
                    finds.unread.push((path.clone(), unread(&error)));
                    continue;
                }
            };
            let name = entry.file_name();
            let relative = relative.join(&name);
            let own = name == "cur" || name == "new" || name == "tmp";
            if kind.is_dir() {
                if temporary::is_temporary(&name) {
                    // A temporary directory of embody is skipped: another run is filling it at this moment, or was
                    // killed before the directory was complete.
                    continue;
                }
                let beside = emlx::aside(&path, &name)
                    .or_else(|| of_eudora.and_then(|it| it.aside(&name, true, false)));
                let other = beside.map(NotMail::Beside);
                match other.or_else(|| NotMail::of_folder(&entry.path())) {
                    Some(other) => finds.skipped.push((entry.path(), other)),
                    None if is_maildir && own => {}
                    None => _ = folders.insert(relative),
                }
                continue;
            }
            if is_mh && mh::number(&name).is_some() {
                continue;
            }
            let path = entry.path();
            let is_empty = || entry.metadata().is_ok_and(|metadata| metadata.len() == 0);
            let beside = || of_eudora.and_then(|it| it.aside(&name, false, is_empty()));
            let other =
                || NotMail::of_file(&whole.join(&relative)).or(beside().map(NotMail::Beside));
            let kind = if kind.is_symlink() {
                Err(NotMail::Link)
            } else if !kind.is_file() {
                Err(NotMail::Special)
            } else if temporary::is_temporary(&name) {
                continue;
            } else if let Some(other) = other() {
                Err(other)
            } else if maildir == Some(Members::All) || format == Format::Maildir {
                Err(NotMail::Beside(
                    "a file next to the directories cur and new of a Maildir",
                ))
            } else if is_mh || format == Format::Mh {
                Err(NotMail::Beside(
                    "a file next to the messages of an MH folder",
                ))
            } else {
                let looked = look_at(&path, format).and_then(|kind| {
                    let is_object = kind.is_ok()
                        && is_object(&whole.join(&relative)).map_err(cannot_read(&path))?;
                    Ok(if is_object {
                        Err(NotMail::Object)
                    } else {
                        kind
                    })
                });
                match looked {
                    Ok(kind) => kind,
                    Err(Error::Read { source, .. }) => {
                        finds.unread.push((path, unread(&source)));
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            };
            match kind {
                Ok((Kind::Mbox, _)) if is_empty_message(&path) => {
                    finds.skipped.push((path, NotMail::NO_MESSAGE));
                }
                Ok((Kind::Archive, _)) => finds.skipped.push((path, NotMail::ARCHIVE)),
                Ok((Kind::Pst, Some(_))) => finds.skipped.push((path, NotMail::PACKED_PST)),
                Ok((kind, method)) => finds.mailboxes.push(Found {
                    path,
                    relative,
                    kind,
                    method,
                    pst: None,
                }),
                Err(other) => finds.skipped.push((path, other)),
            }
        }
    }
    if finds.mailboxes.is_empty() && finds.unread.is_empty() {
        let why = match format {
            Format::Maildir => {
                "the directory is not a Maildir: neither this directory nor a subdirectory contains cur or new"
            }
            Format::Mbox => "the folder contains no mbox file",
            Format::Eml => "the folder contains no message file",
            Format::Mmdf => "the folder contains no MMDF mailbox",
            Format::Mh => "the directory is not an MH folder: no file name is a number",
            Format::Auto | Format::Thunderbird => {
                "the folder contains no mail: no Maildir, MH folder, mbox file or message"
            }
        };
        return Err(not_a_mailbox(source, why));
    }
    let what = "a partial message, whose complete version is next to it";
    finds.pass_over(what, |found| emlx::whole_name(&found.path));
    finds.unread.sort();
    Ok(finds)
}

pub(crate) fn is_maildir(folder: &Path, format: Format) -> bool {
    maildir_at(folder, format).is_some()
}

fn maildir_at(folder: &Path, format: Format) -> Option<Members> {
    let is_message = |path: &Path| matches!(look_at(path, Format::Auto), Ok(Ok((Kind::Eml, _))));
    maildir(folder, format, &is_message)
}

fn is_mh(folder: &Path, format: Format) -> io::Result<bool> {
    match format {
        Format::Auto => Ok(mh::is_marked(folder)),
        Format::Mh => {
            for entry in fs::read_dir(folder)? {
                if mh::number(&entry?.file_name()).is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}
