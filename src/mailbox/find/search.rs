//! Searches a directory for mail. Each file gets one verdict: it is a mailbox to be read, a part of a mailbox, contains no mail,
//! cannot be read, or is ignored because the options name it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File, FileType};
use std::io;
use std::path::{Path, PathBuf};

use super::recognise::{
    FileVerdict, is_empty_mailbox, is_empty_message, look_at, look_in_directory,
};
use crate::error::Error;
use crate::mailbox::failure::{cannot_read, unread};
use crate::mailbox::finds::{Finds, SourceFind};
use crate::mailbox::forms::flags::MessageFlags;
use crate::mailbox::forms::keywords::DOVECOT;
use crate::mailbox::forms::kind::StartKind;
use crate::mailbox::forms::state_files::{
    is_state_directory, is_state_file, mailbox_of_copies, state_beside,
};
use crate::mailbox::forms::suffixes::SuffixClass;
use crate::mailbox::forms::{Format, emlx_files, eudora_files, mh};
use crate::mailbox::not_mail::{ContentVerdict, NotMail, not_a_mailbox};
use crate::mailbox::partial::{self, is_litter};
use crate::mailbox::temporary;
use crate::mailbox::{IgnorePatterns, ReadOptions, Stop};
use crate::platform::disk::layout::is_object;
use crate::platform::{FileExt as _, OsStrExt as _};
use crate::span::front;

/// Maximum number of entries that are checked in the target directory of a symbolic link, to decide whether the link
/// leads to mail.
const MOST_ENTRIES: usize = 1000;

/// Recursive search of a directory.
pub(super) struct TreeSearch<'s> {
    source: &'s Path,
    /// Absolute path of the source without symbolic links.
    whole: PathBuf,
    format: Format,
    ignore: &'s IgnorePatterns,
    stop: &'s Stop,
    finds: Finds,
    /// Directories that are still to be searched, relative to the source. The flag is true for `cur`, `new` and `tmp`
    /// of a Maildir.
    directories: BTreeSet<(PathBuf, bool)>,
}

/// A directory that is being searched.
struct DirectorySearch {
    path: PathBuf,
    relative: PathBuf,
    is_maildir: bool,
    is_mh: bool,
    /// Name of the directory if it is `cur`, `new` or `tmp` of a Maildir.
    part: Option<OsString>,
    eudora: Option<eudora_files::EudoraFolder>,
}

impl<'s> TreeSearch<'s> {
    pub(super) fn of(source: &'s Path, options: &'s ReadOptions, stop: &'s Stop) -> Self {
        Self {
            source,
            whole: source.canonicalize().unwrap_or_else(|_| source.to_owned()),
            format: options.format,
            ignore: &options.ignore,
            stop,
            finds: Finds::default(),
            directories: BTreeSet::from([(PathBuf::new(), false)]),
        }
    }

    pub(super) fn run(mut self) -> Result<Finds, Error> {
        if let Some(what) = NotMail::of_folder(self.source) {
            let why = format!(
                "the directory is {}, where embody does not search for mail",
                what.name()
            );
            return Err(not_a_mailbox(self.source, why));
        }
        while let Some((relative, is_part)) = self.directories.pop_first() {
            self.directory(relative, is_part)?;
        }
        let what = "a partial message, whose complete version is next to it";
        self.finds
            .pass_over(what, |found| emlx_files::whole_name(&found.path));
        let selects_directories = self.format.facts().selects_directories;
        if self.finds.mailboxes.is_empty() && (self.finds.unread.is_empty() || selects_directories)
        {
            return Err(not_a_mailbox(self.source, self.nothing_found()));
        }
        self.finds.sort();
        Ok(self.finds)
    }

    fn nothing_found(&self) -> &'static str {
        self.format.facts().nothing_found
    }

    fn directory(&mut self, relative: PathBuf, is_part: bool) -> Result<(), Error> {
        let path = self.source.join(&relative);
        let part = relative
            .file_name()
            .filter(|_| is_part)
            .map(OsStr::to_owned);
        let is_maildir = part.is_none() && is_maildir(&path, self.format);
        let listed = fs::metadata(&path).and_then(|metadata| {
            let entries = fs::read_dir(&path)?;
            self.finds.seen.add_place(&path, &metadata);
            let is_mh = part.is_none() && !is_maildir && is_mh(&path, self.format)?;
            Ok((entries, is_mh))
        });
        let (entries, is_mh) = match listed {
            Ok(listed) => listed,
            Err(error) if relative.as_os_str().is_empty() => return Err(cannot_read(&path)(error)),
            // An unreadable `cur` or `new` is not reported here. The reader of the Maildir reports it.
            Err(_) if part.as_deref().is_some_and(|part| part != "tmp") => return Ok(()),
            Err(error) => {
                self.not_read(path, unread(&error));
                return Ok(());
            }
        };
        let kind = match self.format {
            Format::Auto | Format::Maildir if is_maildir => Some(StartKind::Maildir),
            _ => is_mh.then_some(StartKind::Mh),
        };
        if let Some(kind) = kind {
            self.finds.mailboxes.push(SourceFind {
                path: path.clone(),
                relative: relative.clone(),
                kind,
                method: None,
                length: 0,
                pst: None,
            });
        }
        let may_be_eudora = kind.is_none() && self.format == Format::Auto;
        let directory = DirectorySearch {
            eudora: may_be_eudora
                .then(|| eudora_files::EudoraFolder::of(&path))
                .flatten(),
            path,
            relative,
            // With the option --format mbox, for example, `cur` and `new` are ordinary directories, and their files are looked at.
            is_maildir: kind == Some(StartKind::Maildir),
            is_mh,
            part,
        };
        for entry in entries {
            self.stop.check()?;
            match entry.and_then(|entry| Ok((entry.file_type()?, entry))) {
                Ok((kind, entry)) => self.entry(&directory, kind, &entry)?,
                Err(error) => self.not_read(directory.path.clone(), unread(&error)),
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        within: &DirectorySearch,
        kind: FileType,
        entry: &DirEntry,
    ) -> Result<(), Error> {
        let name = entry.file_name();
        let relative = within.relative.join(&name);
        if self.ignore.matches(&relative) {
            self.finds.files.ignored += if kind.is_dir() {
                files_below(&entry.path(), self.stop)?
            } else {
                1
            };
            return Ok(());
        }
        if kind.is_dir() {
            return self.subdirectory(within, relative, &name, &entry.path());
        }
        if within.is_message(&name) {
            // Messages of a Maildir or an MH folder are counted when they are read. Counting them now could be wrong,
            // because other programs may rename them until then.
            return Ok(());
        }
        if temporary::is_next_to_mailbox(&name) {
            self.finds.files.parts += 1;
            return Ok(());
        }
        let path = entry.path();
        let mut length = 0;
        if kind.is_file() {
            match fs::metadata(&path) {
                Ok(metadata) => {
                    length = metadata.len();
                    self.finds.seen.add_file(&path, &metadata);
                }
                Err(error) => {
                    self.not_read(path, unread(&error));
                    return Ok(());
                }
            }
        }
        match self.kind_of(within, (kind, &relative), (&name, length), &path) {
            Ok(Ok((kind, method))) => self.finds.mailboxes.push(SourceFind {
                path,
                relative,
                kind,
                method,
                length,
                pst: None,
            }),
            Ok(Err(other)) => self.other(path, other),
            Err(Error::Read { source, .. }) => self.not_read(path, unread(&source)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn subdirectory(
        &mut self,
        within: &DirectorySearch,
        relative: PathBuf,
        name: &OsStr,
        path: &Path,
    ) -> Result<(), Error> {
        if temporary::is_own_directory(path) {
            // The directory is not searched. It is incomplete: another run is filling it now, or was killed before.
            self.finds.files.parts += files_below(path, self.stop)?;
            return Ok(());
        }
        let beside = emlx_files::aside(&within.path, name)
            .or_else(|| within.eudora.and_then(|it| it.aside(name, true, false)))
            .or_else(|| is_state_directory(name, within.is_maildir));
        let other = beside.map(NotMail::Beside);
        let copies = || {
            let mailbox = within.path.join(mailbox_of_copies(name)?);
            let what = "copies of messages that Thunderbird writes for the desktop search of the operating system";
            mailbox.exists().then_some(NotMail::SetAside(what))
        };
        match other.or_else(copies).or_else(|| NotMail::of_folder(path)) {
            Some(other) => {
                self.finds.files.parts += files_below(path, self.stop)?;
                self.finds.skipped.push((path.to_owned(), other));
            }
            None => {
                let is_part =
                    within.is_maildir && (name == "cur" || name == "new" || name == "tmp");
                self.directories.insert((relative, is_part));
            }
        }
        Ok(())
    }

    /// Returns the kind of mailbox in a file, or the reason why the file is not a mailbox.
    fn kind_of(
        &self,
        within: &DirectorySearch,
        (kind, relative): (FileType, &Path),
        (name, length): (&OsStr, u64),
        path: &Path,
    ) -> Result<FileVerdict, Error> {
        if kind.is_symlink() {
            return Ok(Err(self.link(path)));
        }
        if !kind.is_file() {
            return Ok(Err(NotMail::Special));
        }
        let is_empty = length == 0;
        if let Some(other) = NotMail::of_file(&self.whole.join(relative)) {
            return Ok(Err(other));
        }
        let beside = within
            .eudora
            .and_then(|it| it.aside(name, false, is_empty))
            .or_else(|| within.own_file(name))
            .or_else(|| state_beside(name, &|wanted, is_whole| has_file(path, wanted, is_whole)));
        if let Some(what) = beside {
            let other = NotMail::Beside(what);
            if is_empty {
                return Ok(Err(other));
            }
            if within.is_aside_by_name(name) {
                return Ok(Err(NotMail::SetAside(what)));
            }
            match look_at(path, Format::Auto) {
                Ok(Ok((StartKind::Eml, None))) if within.is_tmp() => {
                    return Ok(Err(NotMail::UNDELIVERED));
                }
                Ok(Ok(_)) if within.is_tmp() => return Ok(Err(NotMail::MAILBOX_IN_TMP)),
                Ok(Ok(_)) if name == mh::SEQUENCES && holds_sequences(path) => {
                    return Ok(Err(other));
                }
                Ok(Ok(_)) if within.is_ignored_by_programs(name) => {
                    return Ok(Err(NotMail::NAMED_LIKE_STATE));
                }
                Ok(Err(refused @ NotMail::Format(..))) => return Ok(Err(refused)),
                // The name alone does not make a file with mail a part of a mailbox.
                Ok(Ok(_)) => {}
                _ => return Ok(Err(other)),
            }
        }
        // The formats Maildir and MH only select directories. Files are therefore recognised in all formats, so that
        // other mail is reported and not skipped silently.
        let selects_directories = self.format.facts().selects_directories;
        let format = if selects_directories {
            Format::Auto
        } else {
            self.format
        };
        let (found, is_document) = look_in_directory(path, format)?;
        let is_without_mail = matches!(found, Err(NotMail::Text | NotMail::Binary));
        if (is_without_mail || is_empty)
            && let Some(what) = is_state_file(name, is_empty)
        {
            return Ok(Err(NotMail::Beside(what)));
        }
        let Ok((kind, _)) = found else {
            return Ok(found);
        };
        if is_object(&self.whole.join(relative)).map_err(cannot_read(path))? {
            return Ok(Err(NotMail::Object));
        }
        Ok(match kind {
            StartKind::Mbox if is_empty_message(path, length) => Err(NotMail::NO_MESSAGE),
            StartKind::Mbox
                if is_empty
                    && format == Format::Auto
                    && !is_empty_mailbox(path, |wanted| has_file(path, wanted, true)) =>
            {
                Err(NotMail::EMPTY)
            }
            StartKind::Archive if is_document => Err(NotMail::DOCUMENT),
            // A copy of the Maildir contains this file as it is, so a result with the same name cannot be written.
            _ if path.file_name() == Some(OsStr::new(DOVECOT))
                && path.with_file_name("cur").is_dir() =>
            {
                Err(NotMail::NAMED_LIKE_KEYWORDS)
            }
            _ if selects_directories => Err(NotMail::NEXT_TO_FOLDER),
            _ => found,
        })
    }

    /// Returns the verdict on a symbolic link. The link is not followed. It is reported if it leads to mail outside of
    /// the source.
    fn link(&self, path: &Path) -> NotMail {
        let Ok(target) = path.canonicalize() else {
            return if is_named_as_mail(path) {
                NotMail::DeadLink
            } else {
                NotMail::Link
            };
        };
        let is_mail = match fs::metadata(&target) {
            _ if target.starts_with(&self.whole) => false,
            Ok(found) if found.is_file() => {
                found.len() > 0 && matches!(look_at(&target, Format::Auto), Ok(Ok(_)))
            }
            // The target is a directory that contains the source, so the link would lead back into the source.
            Ok(found) if found.is_dir() => {
                !self.whole.starts_with(&target) && is_directory_of_mail(&target)
            }
            _ => false,
        };
        if is_mail {
            NotMail::LinkToMail
        } else {
            NotMail::Link
        }
    }

    fn other(&mut self, path: PathBuf, other: NotMail) {
        match other.verdict() {
            ContentVerdict::NotRead => {
                self.finds.files.not_read += 1;
                self.finds.unread.push((path, other.detail()));
                return;
            }
            ContentVerdict::Part => self.finds.files.parts += 1,
            ContentVerdict::NotMail => self.finds.files.not_mail += 1,
        }
        self.finds.skipped.push((path, other));
    }

    fn not_read(&mut self, path: PathBuf, why: String) {
        self.finds.files.not_read += 1;
        self.finds.unread.push((path, why.into()));
    }
}

impl DirectorySearch {
    /// Returns whether the directory is `tmp` of a Maildir, where single messages were never delivered.
    fn is_tmp(&self) -> bool {
        self.part.as_deref() == Some(OsStr::new("tmp"))
    }

    fn is_message(&self, name: &OsStr) -> bool {
        match self.part.as_deref() {
            Some(part) => part != "tmp" && !name.as_bytes().starts_with(b".") && !is_litter(name),
            None => self.is_mh && mh::number(name).is_some(),
        }
    }

    /// Returns whether the name of a file alone shows that its content is not read: it can contain a copy of a message.
    fn is_aside_by_name(&self, name: &OsStr) -> bool {
        match self.part.as_deref() {
            Some(_) => is_deleted_on_nfs(name),
            None => self.is_mh && mh::is_removed(name),
        }
    }

    /// Returns whether programs expect no mail in a file with this name next to a mailbox. The copy of the mailbox can get a
    /// file with the same name, so the file is not read as mail.
    fn is_ignored_by_programs(&self, name: &OsStr) -> bool {
        self.part.is_some() || !is_litter(name)
    }

    /// Returns a description if a mail program keeps a file with this name in such a directory.
    fn own_file(&self, name: &OsStr) -> Option<&'static str> {
        match self.part.as_deref() {
            Some(_) if is_deleted_on_nfs(name) => {
                Some("a message that was deleted while another computer read it (NFS)")
            }
            Some(part) if part == "tmp" => {
                Some("a file in tmp of a Maildir, which is not a message")
            }
            Some(_) => Some("a file that programs keep next to the messages of a Maildir"),
            None if is_litter(name) => Some("a file of an operating system or cloud drive"),
            None if is_of_embody(name) => Some("a temporary file of embody"),
            None if self.is_mh => mh::own_file(name),
            None => None,
        }
    }
}

/// Returns whether a file contains sequences of an MH folder, as far as its start shows.
fn holds_sequences(path: &Path) -> bool {
    let mut start = vec![0; 64 << 10];
    let read = File::open(path).and_then(|file| file.read_at(&mut start, 0));
    read.is_ok_and(|read| mh::is_sequences(front(&start, read)))
}

/// Returns whether a file has the name that NFS gives to a file that was deleted while another computer read it.
fn is_deleted_on_nfs(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".nfs")
}

/// Returns whether a file has the name of a temporary file of embody that is not next to a mailbox.
fn is_of_embody(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".embody-")
}

/// Returns whether a file of this name usually contains mail. A suffix of a compression may follow.
fn is_named_as_mail(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut suffixes = name.split('.').skip(1);
    suffixes.any(|suffix| SuffixClass::of(OsStr::new(suffix)).is_some_and(SuffixClass::is_mail))
}

/// Returns whether the directory of `path` contains a file with the name `wanted`. If `is_whole` is false, `wanted` is
/// only the end of the name.
fn has_file(path: &Path, wanted: &str, is_whole: bool) -> bool {
    if is_whole {
        return path.with_file_name(wanted).is_file();
    }
    let entries = fs::read_dir(temporary::folder_of(path))
        .into_iter()
        .flatten();
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.any(|name| name.as_bytes().ends_with(wanted.as_bytes()))
}

/// Returns whether the file is a message in a Maildir of SeaMonkey, judging by its name (a number) and its first line
/// (`From - `).
fn is_of_seamonkey(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut start = [0; 1024];
    let is_number = name.iter().all(u8::is_ascii_digit);
    let read = File::open(path).and_then(|file| file.read_at(&mut start, 0));
    let bytes = start.get(..read.unwrap_or_default()).unwrap_or_default();
    is_number && bytes.starts_with(b"From - ") && MessageFlags::has_fields_of_thunderbird(bytes)
}

pub(crate) fn is_maildir(folder: &Path, format: Format) -> bool {
    let is_message = |path: &Path| {
        matches!(look_at(path, Format::Auto), Ok(Ok((StartKind::Eml, _)))) || is_of_seamonkey(path)
    };
    partial::is_maildir(folder, format, &is_message)
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

/// Returns whether a directory contains mail: as a Maildir, as an MH folder, or as a file directly in the directory.
/// Subdirectories are not searched.
fn is_directory_of_mail(folder: &Path) -> bool {
    if is_maildir(folder, Format::Auto) || mh::is_marked(folder) {
        return true;
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let is_mail = |entry: DirEntry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_full = || entry.metadata().is_ok_and(|found| found.len() > 0);
        let kind = || look_at(&entry.path(), Format::Auto);
        is_file && is_full() && matches!(kind(), Ok(Ok((kind, _))) if kind != StartKind::Archive)
    };
    entries.take(MOST_ENTRIES).flatten().any(is_mail)
}

/// Returns the number of files in a directory and in all directories below it. Directories that cannot be read count as
/// empty.
fn files_below(folder: &Path, stop: &Stop) -> Result<u64, Error> {
    let mut count = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        stop.check()?;
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => count += 1,
            }
        }
    }
    Ok(count)
}
