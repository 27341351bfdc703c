//! A Maildir, or another folder with a message a file: its messages, where they are written first, and what is synced.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::detail::Detail;
use crate::mailbox::failure::unread;
use crate::mailbox::find::{self, Kind};
use crate::mailbox::forms::mh;
use crate::platform::OsStrExt as _;

pub(crate) struct MessageFolder {
    pub(crate) folder: PathBuf,
    pub(crate) is_mh: bool,
    pub(crate) part: Option<OsString>,
    name: Option<OsString>,
}

impl MessageFolder {
    pub(crate) fn within(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let (part, name) = match path.is_dir() {
            true => (path.as_path(), None),
            false => (path.parent()?, path.file_name()),
        };
        let (folder, part) = (part.parent()?, part.file_name()?);
        let is_part = (part == "cur" || part == "new") && find::is_maildir(folder);
        is_part.then(|| Self {
            folder: folder.to_owned(),
            is_mh: false,
            part: Some(part.to_owned()),
            name: name.map(OsStr::to_owned),
        })
    }

    pub(crate) fn of(path: &Path, kind: Kind) -> Self {
        let is_mh = kind == Kind::Mh;
        let part = (!is_mh).then(|| Self::within(path)).flatten();
        part.unwrap_or_else(|| Self {
            folder: path.to_owned(),
            is_mh,
            part: None,
            name: None,
        })
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.name.is_none()
    }

    /// Messages are written there before they go to `folder`.
    pub(crate) fn writing_in(&self, folder: &Path) -> PathBuf {
        match self.is_mh {
            true => folder.to_owned(),
            false => folder.join("tmp"),
        }
    }

    /// A Maildir becomes a Maildir, its `cur` alone a folder of the messages.
    pub(crate) fn target(&self, to: &Path, name: &Path) -> (PathBuf, PathBuf) {
        match (&self.part, name.file_name()) {
            (Some(_), Some(name)) => (to.join(name), to.to_owned()),
            _ => (to.join(name), self.writing_in(to)),
        }
    }

    pub(crate) fn synced_in(&self, folder: &Path) -> Vec<PathBuf> {
        match self.is_mh {
            true => vec![folder.to_owned()],
            false => ["cur", "new"].map(|part| folder.join(part)).into(),
        }
    }

    /// Also gives paths with such a name that are no files or cannot be read. The names are the one thing here that
    /// grows with the mailbox: some hundred bytes a message.
    pub(crate) fn messages(&self) -> (Vec<PathBuf>, Vec<(PathBuf, Detail)>) {
        let (mut names, mut others) = (Vec::new(), Vec::new());
        let parts: &[&str] = match self.is_mh {
            true => &[""],
            false => &["cur", "new"],
        };
        let is_message = |name: &OsStr| match self.is_mh {
            true => mh::number(name).is_some(),
            false => !name.as_bytes().starts_with(b"."),
        };
        for &part in parts {
            if self.part.as_ref().is_some_and(|only| only != part) {
                continue;
            }
            let part = Path::new(part);
            match &self.name {
                Some(name) => names.push(part.join(name)),
                None => listed(&self.folder, part, is_message, &mut names, &mut others),
            }
        }
        match self.is_mh {
            true => mh::sort(&mut names),
            false => names.sort(),
        }
        others.sort_by(|(one, _), (other, _)| one.cmp(other));
        (names, others)
    }
}

fn listed(
    folder: &Path,
    part: &Path,
    is_message: impl Fn(&OsStr) -> bool,
    names: &mut Vec<PathBuf>,
    others: &mut Vec<(PathBuf, Detail)>,
) {
    const OTHER: &str = "a link, or no file at all, in the place of a message, which was not read; name what it leads to";
    let path = folder.join(part);
    let entries = match fs::read_dir(&path) {
        Ok(entries) => entries,
        Err(error) => return others.push((path, unread(&error).into())),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            // Nobody knows what else is in the folder.
            Err(error) => return others.push((path, unread(&error).into())),
        };
        let name = entry.file_name();
        if !is_message(&name) {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_file() => names.push(part.join(name)),
            Ok(kind) if kind.is_dir() => {}
            Ok(_) => others.push((entry.path(), OTHER.into())),
            Err(error) => others.push((entry.path(), unread(&error).into())),
        }
    }
}
