//! What a Maildir, or another folder with a message a file, consists of: its messages, where they are written before, and
//! what is synced.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::failure::cannot_read;
use super::find::{self, Kind};
use super::forms::FolderForm;
use crate::error::Error;

/// Where results go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destination<'a> {
    /// Over the old files.
    InPlace,
    /// Into a Maildir of its own.
    Folder(&'a Path),
}

/// A Maildir, or what was named of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    /// What it is if it is no Maildir.
    pub(super) form: Option<&'static FolderForm>,
    /// Its `cur` or `new`, if only that was named.
    pub(super) part: Option<OsString>,
    /// The one message in there that was named.
    name: Option<OsString>,
}

impl Place {
    /// A Maildir's `cur` or `new`, or a message in one of them, as `path` names it.
    pub(super) fn within(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let last = path.file_name()?.to_owned();
        let folder = path.parent()?;
        if path.is_dir() {
            return Self::part_of(folder, last, None);
        }
        Self::part_of(folder.parent()?, folder.file_name()?.to_owned(), Some(last))
    }

    fn part_of(folder: &Path, part: OsString, name: Option<OsString>) -> Option<Self> {
        let is_part = (part == "cur" || part == "new") && find::is_maildir(folder);
        is_part.then(|| Self {
            folder: folder.to_owned(),
            form: None,
            part: Some(part),
            name,
        })
    }

    /// What is found at `path`: a folder of some form, or a Maildir, or what is named of one.
    pub(super) fn of(path: &Path, kind: Kind) -> Self {
        let (form, part) = match kind {
            Kind::Folder(form) => (Some(form), None),
            _ => (None, Self::within(path)),
        };
        part.unwrap_or_else(|| Self {
            folder: path.to_owned(),
            form,
            part: None,
            name: None,
        })
    }

    /// Whether it is more than one message.
    pub(super) fn is_folder(&self) -> bool {
        self.name.is_none()
    }

    /// Where we make files of our own.
    pub(super) fn folders_of_ours(&self) -> [PathBuf; 2] {
        [self.folder.clone(), self.writing_in(&self.folder)]
    }

    /// Where messages that go to `folder`, of this form, are written before.
    pub(super) fn writing_in(&self, folder: &Path) -> PathBuf {
        match self.form {
            Some(_) => folder.to_owned(),
            None => folder.join("tmp"),
        }
    }

    /// The folders in which names change, of this form.
    pub(super) fn synced_in(&self, folder: &Path) -> Vec<PathBuf> {
        match self.form {
            Some(_) => vec![folder.to_owned()],
            None => ["cur", "new"].map(|part| folder.join(part)).into(),
        }
    }

    /// The messages' names, `cur/...` and `new/...`, sorted; those of another form in its order. And the paths of what
    /// has such a name and is no file, such as a symbolic link. This list is the one thing here that grows with the
    /// mailbox: some hundred bytes a message.
    pub(super) fn messages(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Error> {
        let (mut names, mut others) = (Vec::new(), Vec::new());
        if let Some(form) = self.form {
            let entries = fs::read_dir(&self.folder).map_err(cannot_read(&self.folder))?;
            for entry in entries {
                let entry = entry.map_err(cannot_read(&self.folder))?;
                let name = entry.file_name();
                if !(form.is_message)(&name) {
                    continue;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_file() => names.push(PathBuf::from(name)),
                    Ok(kind) if kind.is_dir() => {}
                    _ => others.push(entry.path()),
                }
            }
            (form.sort)(&mut names);
            return Ok((names, others));
        }
        for part in ["cur", "new"] {
            if self.part.as_ref().is_some_and(|only| only != part) {
                continue;
            }
            if let Some(name) = &self.name {
                names.push(Path::new(part).join(name));
                continue;
            }
            let path = self.folder.join(part);
            for entry in fs::read_dir(&path).map_err(cannot_read(&path))? {
                let entry = entry.map_err(cannot_read(&path))?;
                let name = entry.file_name();
                if name.as_bytes().starts_with(b".") {
                    continue;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_file() => names.push(Path::new(part).join(name)),
                    Ok(kind) if kind.is_dir() => {}
                    _ => others.push(entry.path()),
                }
            }
        }
        names.sort();
        others.sort();
        Ok((names, others))
    }
}

/// Where in the folder `to` a message goes, and where it is written before: a Maildir becomes a
/// Maildir, its `cur` alone a folder of the messages.
pub(super) fn target(to: &Path, name: &Path, place: &Place) -> (PathBuf, PathBuf) {
    match (&place.part, name.file_name()) {
        (Some(_), Some(name)) => (to.join(name), to.to_owned()),
        _ => (to.join(name), place.writing_in(to)),
    }
}
