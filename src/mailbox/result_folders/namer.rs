//! Chooses unique paths for the folders of a result.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::groups::MailboxGroup;
use crate::mailbox::compressed::Method;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::layout::{self, FolderLayout};
use crate::mailbox::forms::names::folded;
use crate::mailbox::forms::{Format, emlx};
use crate::mailbox::result_form::form;
use crate::mailbox::{ByLabel, Options};
use crate::platform::OsStrExt as _;

/// Maximum length of a file name in bytes: the limit of all common file systems.
const LONGEST: usize = 255;
/// Length to which a name is cut if it is too long, in bytes. It leaves room for a number and a suffix.
const CUT: usize = 200;

/// Record of the paths that are already in use in the result.
pub(super) struct FolderNamer {
    form: Format,
    by_label: Option<ByLabel>,
    pub(super) nesting: FolderLayout,
    folds: bool,
    /// Directory of each folder, by its parent directory and the name of the folder.
    directories: HashMap<(PathBuf, OsString), PathBuf>,
    /// All paths in use. They are case-folded if the file system ignores case.
    used: HashSet<PathBuf>,
    /// Directories that already are or contain a mailbox, so no other mailbox can be written to them.
    taken: HashSet<PathBuf>,
    /// Last number that was appended to each path. Without it, many equal names would each search from 2.
    numbers: HashMap<PathBuf, u64>,
}

impl FolderNamer {
    pub(super) fn new(options: &Options, nesting: FolderLayout, folds: bool) -> Self {
        Self {
            form: options.output_format,
            by_label: options.by_label,
            nesting,
            folds,
            directories: HashMap::new(),
            used: HashSet::new(),
            taken: HashSet::new(),
            numbers: HashMap::new(),
        }
    }

    /// Adds a mailbox that keeps the path that it has in the source. Returns this path.
    pub(super) fn keep(&mut self, group: &MailboxGroup<'_>) -> PathBuf {
        let (key, kind) = (group.key, group.kind);
        let Some(name) = key.file_name() else {
            self.taken.insert(PathBuf::new());
            self.reserve_parts(kind, Path::new(""));
            return PathBuf::new();
        };
        let mut at = PathBuf::new();
        for above in key.parent().unwrap_or(Path::new("")) {
            at = self.directory(&at, above, above);
        }
        if kind.is_folder() {
            at = self.directory(&at, name, name);
            self.taken.insert(at.clone());
            self.reserve_parts(kind, &at);
            return at;
        }
        let plain = self.visible(layout::archive_stem(Path::new(name)).as_ref());
        let (stem, suffix) = match kind {
            StartKind::Archive => (plain.as_os_str(), OsString::from(".mbox")),
            StartKind::Msg | StartKind::Eml => self.message(name, kind),
            _ => divided(name),
        };
        let file = self.unique(&at, stem, &suffix);
        if kind.is_message() {
            self.taken.insert(at);
        }
        file
    }

    /// Reserves the names `cur`, `new` and `tmp` in a Maildir. A folder of this name next to them gets another name.
    fn reserve_parts(&mut self, kind: StartKind, at: &Path) {
        for part in ["cur", "new", "tmp"]
            .into_iter()
            .filter(|_| kind == StartKind::Maildir)
        {
            let path = at.join(part);
            self.used.insert(self.folded(&path));
            // A directory with mail inside `cur` or `new` keeps its path.
            self.taken.insert(path.clone());
            self.directories.insert((at.to_owned(), part.into()), path);
        }
    }

    /// Returns a unique path for a folder. `levels` are the names of its parent folders and its own name. Messages
    /// without a folder are put into the folder `inbox`.
    pub(super) fn give(
        &mut self,
        levels: &[OsString],
        inbox: &OsString,
        group: &MailboxGroup<'_>,
    ) -> PathBuf {
        let levels = match levels {
            [] if self.nesting == FolderLayout::Folders && self.taken.insert(PathBuf::new()) => {
                return PathBuf::new();
            }
            [] => std::slice::from_ref(inbox),
            levels => levels,
        };
        let mut at = PathBuf::new();
        // A single message becomes a file in the directory of its folder.
        let is_message = !group.is_moved && group.kind.is_message();
        let Some((last, above)) = levels.split_last() else {
            return at;
        };
        for level in above {
            let name = self.visible(level);
            at = self.directory(&at, level, &name);
        }
        if is_message && self.nesting == FolderLayout::Directories {
            let name = group.key.file_name().unwrap_or(last);
            let (stem, suffix) = self.message(name, group.kind);
            let file = self.unique(&at, stem, &suffix);
            self.taken.insert(at);
            return file;
        }
        let name = self.visible(last);
        let key = (at, last.clone());
        let suffix = self.suffix(group);
        if suffix.is_empty() {
            let known = self.directories.get(&key);
            if let Some(known) = known.filter(|known| !self.taken.contains(*known)) {
                self.taken.insert(known.clone());
                return known.clone();
            }
            let (parent, name) = self.beside_labels(&key.0, &name);
            let directory = self.unique(&parent, &name, OsStr::new(""));
            self.directories
                .entry(key)
                .or_insert_with(|| directory.clone());
            self.taken.insert(directory.clone());
            return directory;
        }
        self.unique(&key.0, &name, &suffix)
    }

    /// Returns the stem and the suffix of the file name of a single message.
    fn message<'n>(&self, name: &'n OsStr, kind: StartKind) -> (&'n OsStr, OsString) {
        let path = Path::new(name);
        match kind {
            StartKind::Msg => (path.file_stem().unwrap_or(name), OsString::from(".eml")),
            // An `.emlx` file becomes an `.eml` file, because the data that Apple Mail adds are not written.
            _ if self.form.has_message_files() && emlx::is_named(path) => {
                let (stem, suffix) = divided(name);
                let compressed = Path::new(&suffix)
                    .extension()
                    .filter(|_| Method::of_name(path).is_some());
                let mut suffix = OsString::from(".eml");
                if let Some(end) = compressed {
                    suffix.push(".");
                    suffix.push(end);
                }
                (stem, suffix)
            }
            _ => divided(name),
        }
    }

    /// Returns a directory next to the mbox of an archive, named like the mbox without its suffix. If the result is a
    /// directory, returns this directory.
    pub(super) fn directory_beside(&mut self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default();
        let stem = name.as_bytes().strip_suffix(b".mbox");
        match (stem, path.parent()) {
            (Some(stem), Some(at)) if !self.taken.contains(path) => {
                self.unique(at, OsStr::from_bytes(stem), OsStr::new(""))
            }
            _ => path.to_owned(),
        }
    }

    /// Returns the suffix of the mbox for a group, or an empty suffix if the group becomes a directory.
    fn suffix(&self, group: &MailboxGroup<'_>) -> OsString {
        let mut suffix = OsString::new();
        let form = if group.is_moved {
            form_of(self.form)
        } else {
            group.kind.own_form()
        };
        let Some(written) = form.written().filter(|_| form.is_file()) else {
            return suffix;
        };
        if self.nesting == FolderLayout::Folders || self.by_label.is_some() {
            return suffix;
        }
        suffix.push(written.suffix);
        // A compressed mbox that is only copied keeps the suffix of its compression.
        let file = group.founds.first().map(|found| found.path.as_path());
        if let Some(end) = file
            .filter(|file| {
                !group.is_moved
                    && group.kind != StartKind::Archive
                    && Method::of_name(file).is_some()
            })
            .and_then(Path::extension)
        {
            suffix.push(".");
            suffix.push(end);
        }
        suffix
    }

    /// Returns the directory of a folder. A new folder gets a new path with the name `wanted`.
    fn directory(&mut self, at: &Path, level: &OsStr, wanted: &OsStr) -> PathBuf {
        let key = (at.to_owned(), level.to_owned());
        if let Some(known) = self.directories.get(&key) {
            return known.clone();
        }
        let (parent, name) = self.beside_labels(at, wanted);
        let made = self.unique(&parent, &name, OsStr::new(""));
        self.directories.insert(key, made.clone());
        made
    }

    /// Returns the parent directory and the name of a folder in `at`. With mailboxes by label, `at` will contain one
    /// mailbox for each label, whose names are not known yet. A subfolder could collide with them, so it is put next to
    /// `at`.
    fn beside_labels(&self, at: &Path, name: &OsStr) -> (PathBuf, OsString) {
        let (mut at, mut name) = (at, name.to_owned());
        while self.by_label.is_some()
            && self.taken.contains(at)
            && let (Some(parent), Some(above)) = (at.parent(), at.file_name())
        {
            name = [above, OsStr::new("."), &name].into_iter().collect();
            at = parent;
        }
        (at.to_owned(), name)
    }

    /// Makes a folder name safe for a directory with mail, for example by removing the leading dot of a hidden name.
    fn visible(&self, level: &OsStr) -> OsString {
        let bytes = level.as_bytes();
        let dots = match self.nesting {
            FolderLayout::Folders if bytes.iter().any(|&byte| byte != b'.') => 0,
            _ => bytes.iter().take_while(|&&byte| byte == b'.').count(),
        };
        let mut name = OsStr::from_bytes(bytes.get(dots..).unwrap_or_default()).to_owned();
        let compared = if self.folds {
            folded(&name.to_string_lossy()).into()
        } else {
            name.clone()
        };
        let is_part = |part: &str| compared == part;
        let is_directory = self.by_label.is_some() || !form_of(self.form).is_file();
        // These names have a meaning of their own: `cur`, `new` and `tmp` are parts of a Maildir, and a number is the
        // name of a message.
        let is_of_mail = self.nesting == FolderLayout::Directories
            && (is_directory && ["cur", "new", "tmp"].into_iter().any(is_part)
                || self
                    .form
                    .written()
                    .is_some_and(|it| (it.is_name_of_message)(name.as_bytes())));
        if name.is_empty() || is_of_mail {
            name.push("_");
        }
        name
    }

    /// Returns the first unused path in `at`: `stem` and `suffix`, with a number between them if the path without a
    /// number is taken.
    fn unique(&mut self, at: &Path, stem: &OsStr, suffix: &OsStr) -> PathBuf {
        let wanted = at.join(joined(stem, "", suffix));
        let first = self.folded(&wanted);
        if self.used.insert(first.clone()) {
            return wanted;
        }
        loop {
            let number = self.numbers.entry(first.clone()).or_insert(1);
            *number += 1;
            let number = format!(" ({number})");
            let path = at.join(joined(stem, &number, suffix));
            let folded = self.folded(&path);
            if self.used.insert(folded) {
                return path;
            }
        }
    }

    fn folded(&self, path: &Path) -> PathBuf {
        if self.folds {
            PathBuf::from(folded(&path.to_string_lossy()))
        } else {
            path.to_owned()
        }
    }
}

/// Returns the format of converted mailboxes: mbox, unless the options set another format.
fn form_of(wanted: Format) -> Format {
    form(
        StartKind::Mbox,
        &Options {
            output_format: wanted,
            ..Options::default()
        },
    )
}

/// Splits a file name into stem and suffix, so that a number can be put between them.
fn divided(name: &OsStr) -> (&OsStr, OsString) {
    let stem = layout::plain(name);
    let suffix = name.as_bytes().strip_prefix(stem.as_bytes());
    (
        stem,
        OsStr::from_bytes(suffix.unwrap_or_default()).to_owned(),
    )
}

/// Joins a file name. If the name would be too long, the stem is cut.
fn joined(stem: &OsStr, number: &str, suffix: &OsStr) -> OsString {
    let bytes = stem.as_bytes();
    let mut name = if bytes.len() + number.len() + suffix.len() <= LONGEST {
        stem.to_owned()
    } else {
        match stem.to_str() {
            Some(text) => {
                let kept = text
                    .char_indices()
                    .take_while(|(at, symbol)| at + symbol.len_utf8() <= CUT);
                kept.map(|(_, symbol)| symbol).collect::<String>().into()
            }
            None => OsStr::from_bytes(bytes.get(..CUT).unwrap_or(bytes)).to_owned(),
        }
    };
    name.push(number);
    name.push(suffix);
    name
}
