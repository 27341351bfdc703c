//! Creates a tree of folders as Thunderbird stores them: the mail of a folder is in the mbox `NAME`, and its subfolders
//! are in the directory `NAME.sbd` next to it. Thunderbird finds subfolders only next to an mbox, so a folder without
//! mail gets an empty mbox.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::mailbox::forms::names::{FolderNames, thunderbird_name};
use crate::platform::{self, Owner};

/// Suffix of the directory that contains the subfolders of a folder.
pub(crate) const SUBFOLDERS: &str = ".sbd";

/// Maximum depth of folders. If a label has more levels, the remaining names are joined to one name with dots.
const MOST_LEVELS: usize = 10;

pub(crate) struct FolderTree {
    owner: Option<Owner>,
    /// The mbox of each folder, by the names of its levels. The top folder has no levels.
    mboxes: HashMap<Vec<String>, PathBuf>,
    /// The names that are already used in each directory, so that two folders never get the same name.
    names: HashMap<PathBuf, FolderNames>,
}

impl FolderTree {
    /// Creates the tree in `directory`, with a top folder of this name.
    pub(crate) fn start(directory: &Path, name: &OsStr, owner: Option<Owner>) -> io::Result<Self> {
        let mbox = directory.join(name);
        platform::own(&new_file(&mbox)?, owner)?;
        Ok(Self {
            owner,
            mboxes: HashMap::from([(Vec::new(), mbox)]),
            names: HashMap::new(),
        })
    }

    /// Returns the mbox of a folder. Creates the folder and the folders above it if they do not exist.
    pub(crate) fn folder(&mut self, levels: &[String]) -> io::Result<PathBuf> {
        if let Some(known) = self.mboxes.get(levels) {
            return Ok(known.clone());
        }
        let Some((last, above)) = levels.split_last() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let directory = subfolders_of(&self.folder(above)?);
        if !self.names.contains_key(&directory) {
            platform::private_folder(&directory)?;
            platform::own_folder(&directory, self.owner)?;
        }
        let names = self.names.entry(directory.clone()).or_default();
        let name = names.give_safe(&thunderbird_name(last), "", |name| {
            match new_file(&directory.join(name)) {
                Ok(file) => platform::own(&file, self.owner).map(|()| true),
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(why) => Err(why),
            }
        });
        let mbox = directory.join(name?);
        self.mboxes.insert(levels.to_vec(), mbox.clone());
        Ok(mbox)
    }
}

/// Creates a file that only its owner can read. Returns an error if it exists.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    platform::private(File::options().write(true).create_new(true)).open(path)
}

/// Returns the directory of the subfolders of the folder with this mbox.
pub(crate) fn subfolders_of(mbox: &Path) -> PathBuf {
    let mut name = OsString::from(mbox);
    name.push(SUBFOLDERS);
    name.into()
}

/// Returns the names of the nested folders for a label. Gmail separates them by slashes, as in `Work/2023`.
pub(crate) fn levels_of_label(label: &str) -> Vec<String> {
    let names: Vec<&str> = label
        .split('/')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    match names.split_at_checked(MOST_LEVELS - 1) {
        Some((levels, rest @ [_, _, ..])) => {
            let mut levels: Vec<String> = levels.iter().map(|&it| it.to_owned()).collect();
            levels.push(rest.join("."));
            levels
        }
        _ if names.is_empty() => vec![label.to_owned()],
        _ => names.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_and_those_above_it_are_made_once_with_names_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let mut tree = FolderTree::start(directory.path(), "Mail".as_ref(), None).unwrap();
        let mut folder = |label: &str| {
            let path = tree.folder(&levels_of_label(label)).unwrap();
            let relative = path.strip_prefix(directory.path()).unwrap();
            relative.to_str().unwrap().to_owned()
        };
        assert_eq!(folder("Work/2023"), "Mail.sbd/Work.sbd/2023");
        assert_eq!(folder("Work"), "Mail.sbd/Work");
        assert_eq!(folder("Work/2023"), "Mail.sbd/Work.sbd/2023");
        assert_eq!(folder("work/2023"), "Mail.sbd/work (2).sbd/2023");
        assert_eq!(folder("/Work//2024/"), "Mail.sbd/Work.sbd/2024");
        assert_eq!(folder("//"), "Mail.sbd/_");
        assert_eq!(folder(".."), "Mail.sbd/_ (2)");
        assert_eq!(folder("../x"), "Mail.sbd/_ (2).sbd/x");
        let deep = folder(&["a"; 40].join("/"));
        assert_eq!(deep.matches(".sbd/").count(), MOST_LEVELS);
        let made = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(made, 2);
    }
}
