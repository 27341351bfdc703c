//! Writes a file next to another one, and puts the complete file in its place.
//!
//! To replace a file, the new content is written to a temporary file in the same directory. The temporary file gets the
//! owner, mode, extended attributes and modification time of the old file, is synced, and is renamed over it. Then the
//! directory is synced. After a kill, either the old or the new file is complete.
//!
//! If the path is a symbolic link, its target is replaced. A file with several hard links is refused, because the old
//! mail would remain under the other names. If a file that replaces another one cannot get its owner, group, access list
//! or `user.` attributes, an error is returned, because other programs might no longer be able to deliver mail to it. A
//! copy gets them if the system allows it (`platform::dress`). A backup is never overwritten, because it may be the only
//! copy of the original.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::Error;
use crate::mailbox::compressed::{Encoder, Method};
use crate::mailbox::failure::{cannot_read, cannot_write, changed, unreadable};
use crate::mailbox::file::filled_by;
use crate::mailbox::forms::mh;
use crate::mailbox::identity::FileIdentity;
use crate::mailbox::place::existing::{ExistingResult, compared};
use crate::mailbox::place::journal::{JournalRecord, ResultJournal};
use crate::mailbox::temporary::{folder_of, temporary_in};
use crate::platform::{self, FileExt as _, MetadataExt as _, NewFile, absent, exchange};

const BUFFER: usize = 128 << 10;

pub(crate) struct AtomicWriter {
    pub(crate) target: PathBuf,
    /// Writer to the temporary file. It is separate from `temporary`, so that errors name the target file, which the
    /// user knows, and not the temporary one.
    writer: Box<Encoder<BufWriter<File>>>,
    temporary: NamedTempFile,
}

impl AtomicWriter {
    pub(crate) fn start(
        folder: &Path,
        target: &Path,
        method: Option<Method>,
    ) -> Result<Self, Error> {
        let temporary = temporary_in(folder).map_err(cannot_write(target))?;
        let file = temporary.as_file().try_clone();
        let writer = file.map(|file| BufWriter::with_capacity(BUFFER, file));
        let encoder = writer.and_then(|writer| Encoder::new(method, writer));
        Ok(Self {
            target: target.into(),
            writer: Box::new(encoder.map_err(cannot_write(target))?),
            temporary,
        })
    }

    pub(crate) fn of(
        bytes: &[u8],
        folder: &Path,
        target: &Path,
        method: Option<Method>,
    ) -> Result<Self, Error> {
        let mut beside = Self::start(folder, target, method)?;
        beside.write(bytes)?;
        Ok(beside)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.writer.write_all(bytes);
        written.map_err(cannot_write(&self.target))
    }

    pub(crate) fn copy(
        source: &File,
        length: u64,
        name: &Path,
        folder: &Path,
        target: &Path,
    ) -> Result<CompleteFile, Error> {
        let mut copy = Self::start(folder, target, None)?;
        start_of(source, length, name, &mut |bytes| copy.write(bytes))?;
        copy.finished(source, NewFile::Copy)
    }

    /// Starts a file that will replace its target. Returns an error if it could not get the owner and the group of the
    /// target.
    pub(crate) fn replacing(target: &Path, method: Option<Method>) -> Result<Self, Error> {
        let beside = Self::start(folder_of(target), target, method)?;
        let old = fs::metadata(target).map_err(cannot_read(target))?;
        let checked = platform::check_ownership(beside.temporary.as_file(), &old);
        checked.map_err(cannot_write(target))?;
        Ok(beside)
    }

    pub(crate) fn finished_as_new(self) -> Result<CompleteFile, Error> {
        let new =
            tempfile::tempfile_in(folder_of(&self.target)).map_err(cannot_write(&self.target))?;
        self.dressed(&new, NewFile::Copy)
    }

    /// Completes a file that only its owner can read.
    pub(crate) fn finished_privately(self) -> Result<CompleteFile, Error> {
        let (target, temporary) = (self.target, self.temporary);
        let written = self.writer.finish().and_then(|mut writer| writer.flush());
        written.map_err(cannot_write(&target))?;
        Ok(CompleteFile { target, temporary })
    }

    /// Completes the file with the owner, mode, attributes and time of `like`. The time is copied because the new file
    /// contains the same mail as `like`, and mail programs show the time of a message file as the date of the message.
    pub(crate) fn finished(self, like: &File, purpose: NewFile) -> Result<CompleteFile, Error> {
        let finished = self.dressed(like, purpose)?;
        let dated = date(finished.temporary.as_file(), like);
        dated.map_err(cannot_write(&finished.target))?;
        Ok(finished)
    }

    /// Completes a copy with the owner, mode and attributes of `like`, but not its time, because it is a new file.
    pub(crate) fn finished_now(self, like: &File) -> Result<CompleteFile, Error> {
        self.dressed(like, NewFile::Copy)
    }

    fn dressed(self, like: &File, purpose: NewFile) -> Result<CompleteFile, Error> {
        let (target, temporary) = (self.target, self.temporary);
        let written = self.writer.finish().and_then(|mut writer| writer.flush());
        let dressed = written.and_then(|()| platform::dress(temporary.as_file(), like, purpose));
        dressed.map_err(cannot_write(&target))?;
        Ok(CompleteFile { target, temporary })
    }
}

/// Passes the first `length` bytes of `source` to `take`. Returns [`Error::Changed`] if the file is shorter. `source`
/// is the locked handle of the mailbox: closing another handle of the file would release the lock. Errors call the file
/// `name`.
pub(crate) fn start_of(
    source: &File,
    length: u64,
    name: &Path,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = vec![0; 1 << 20];
    let mut copied = 0;
    while copied < length {
        let left = usize::try_from(length - copied).unwrap_or(usize::MAX);
        let wanted = left.min(buffer.len());
        let filled = filled_by(&mut buffer[..wanted], |rest, before| {
            source.read_at(rest, copied + before)
        })
        .map_err(unreadable(name))?;
        if filled == 0 {
            return Err(changed(name));
        }
        take(&buffer[..filled])?;
        copied += filled as u64;
    }
    Ok(())
}

pub(crate) struct CompleteFile {
    pub(crate) target: PathBuf,
    pub(crate) temporary: NamedTempFile,
}

impl CompleteFile {
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let synced = platform::sync(self.temporary.as_file());
        synced.map_err(cannot_write(&self.target))
    }

    /// Replaces the target by the new file, if the target is still the file that was read. If the file system can
    /// exchange two files, returns the old file under its temporary name, because other programs may still append mail
    /// to it.
    pub(crate) fn replace(
        self,
        before: &FileIdentity,
        backup: Option<&OsStr>,
    ) -> Result<Option<NamedTempFile>, Error> {
        self.sync()?;
        before.check(&self.target)?;
        let backup = backup
            .map(|suffix| back_up(&self.target, suffix))
            .transpose()?
            .flatten();
        let replaced = self.exchanged(before);
        if let (Err(_), Some(backup)) = (&replaced, backup) {
            // The target was not replaced. The backup is removed, because the next run would refuse to overwrite it.
            let _ = fs::remove_file(backup);
        }
        let (old, target) = replaced?;
        sync_folder(folder_of(&target))?;
        Ok(old)
    }

    fn exchanged(self, before: &FileIdentity) -> Result<(Option<NamedTempFile>, PathBuf), Error> {
        if exchange(self.temporary.path(), &self.target).is_err() {
            let Self { target, temporary } = self;
            let replaced = temporary.persist(&target);
            replaced.map_err(|failed| cannot_write(&target)(failed.error))?;
            return Ok((None, target));
        }
        match fs::symlink_metadata(self.temporary.path()) {
            Ok(old) if (old.dev(), old.ino()) == (before.device, before.inode) => {
                Ok((Some(self.temporary), self.target))
            }
            // Another program replaced the file between the check and the exchange, so the files are exchanged back.
            _ => match exchange(self.temporary.path(), &self.target) {
                Ok(()) => Err(changed(&self.target)),
                Err(error) => Err(self.kept(Some(error))),
            },
        }
    }

    /// Keeps the version of the file that another program wrote. This version now has the temporary name, so it
    /// gets a name that the user can see. The returned error contains this name.
    pub(crate) fn kept(self, error: Option<io::Error>) -> Error {
        let Self { target, temporary } = self;
        let kept = keep_before(temporary, &target);
        let why = error.map_or_else(String::new, |error| format!(": {error}"));
        cannot_write(&target)(io::Error::other(format!(
            "another program changed the file while embody replaced it{why}; the version of the other program is in {}",
            kept.display()
        )))
    }

    /// Moves the new file to its target. Before that, records it in the journal, so that a continued run does not make
    /// it again. `is_synced` is whether the file is already on the disk.
    pub(crate) fn appear_as(
        self,
        record: Option<&JournalRecord<'_>>,
        is_synced: bool,
    ) -> Result<(), Error> {
        let Some(record) = record else {
            return self.appear();
        };
        // A result that another run completed is not recorded, so no journal is left for a run that cannot be continued.
        if !record.journal.may_exist(&self.target) && self.target.symlink_metadata().is_ok() {
            return Err(not_appeared(
                &self.target,
                exists(&self.target, Some(record.journal)),
            ));
        }
        record.file(&self.target, self.temporary.as_file(), is_synced);
        let Self { target, temporary } = self;
        let Err(failed) = temporary.persist_noclobber(&target) else {
            return Ok(());
        };
        let is_taken = failed.error.kind() == io::ErrorKind::AlreadyExists;
        if !is_taken {
            return Err(not_appeared(&target, failed.error));
        }
        if !record.journal.may_exist(&target) {
            return Err(not_appeared(&target, exists(&target, Some(record.journal))));
        }
        let temporary = failed.file;
        match compared(&target, temporary.as_file()).map_err(cannot_read(&target))? {
            ExistingResult::Same(file) => {
                record.file(&target, &file, false);
                Ok(())
            }
            ExistingResult::Part(before) if record.journal.may_complete() => {
                Self { target, temporary }.replace(&before, None).map(drop)
            }
            _ => Err(not_appeared(&target, exists(&target, Some(record.journal)))),
        }
    }

    pub(crate) fn appear(self) -> Result<(), Error> {
        let Self { target, temporary } = self;
        let appeared = temporary.persist_noclobber(&target);
        appeared.map_or_else(
            |failed| Err(not_appeared(&target, failed.error)),
            |_| Ok(()),
        )
    }
}

fn not_appeared(target: &Path, error: io::Error) -> Error {
    let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
    let error = match platform::taken_for(target).filter(|_| is_taken) {
        Some(other) => differs_in_case(&other),
        None => error,
    };
    cannot_write(target)(error)
}

pub(crate) fn keep_before(old: NamedTempFile, target: &Path) -> PathBuf {
    let name = with_suffix(target, ".before".as_ref());
    match old.persist_noclobber(&name) {
        Ok(_) => name,
        Err(failed) => match failed.file.keep() {
            Ok((_, name)) => name,
            Err(failed) => failed.file.path().to_owned(),
        },
    }
}

/// Opens the target if it is a device or a pipe, which is written to directly. Returns `None` if it does not exist, and
/// an error if it is an existing file or directory, unless it can be a result of an interrupted run.
pub(crate) fn device(
    target: &Path,
    journal: Option<&ResultJournal>,
) -> Result<Option<File>, Error> {
    match fs::metadata(target) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let device = File::options().write(true).open(target);
            Ok(Some(device.map_err(cannot_write(target))?))
        }
        Ok(found) if !may_be_result(target, &found, journal) => {
            Err(cannot_write(target)(exists(target, journal)))
        }
        _ => Ok(None),
    }
}

/// Returns whether an existing file or directory can be a result of an interrupted run. It is compared with the new
/// result, and not replaced if it has another content.
pub(crate) fn may_be_result(
    target: &Path,
    found: &Metadata,
    journal: Option<&ResultJournal>,
) -> bool {
    journal.is_some_and(|journal| {
        journal.may_exist(target) || found.is_dir() && journal.has_results_in(target)
    })
}

/// Returns the error for a result whose name is taken.
pub(crate) fn exists(target: &Path, journal: Option<&ResultJournal>) -> io::Error {
    // Only the names are known here. A directory of mboxes can have such names, too, so the text must be right for both.
    let folder = target.parent().and_then(Path::file_name);
    let is_in_maildir = folder.is_some_and(|folder| folder == "cur" || folder == "new");
    let may_be_message = is_in_maildir
        || target
            .file_name()
            .is_some_and(|it| mh::number(it).is_some());
    let what = match journal {
        Some(journal) if journal.before() > 0 => {
            "the file already exists, and the stopped run did not write it like this: the file, its source or the options have changed since then; remove the file, or choose another name"
        }
        _ if may_be_message => {
            "the file already exists, as after an earlier run that was complete; remove the whole result of that run, or choose another name"
        }
        _ => "the file already exists; remove the file, or choose another name",
    };
    io::Error::new(io::ErrorKind::AlreadyExists, what)
}

pub(crate) fn differs_in_case(other: &OsStr) -> io::Error {
    let what = format!(
        "the file system of the destination treats this name and {} as the same name; convert to another folder, or rename one of the sources",
        Path::new(other).display()
    );
    io::Error::new(io::ErrorKind::AlreadyExists, what)
}

pub(crate) fn check_replaceable(target: &Path, backup: Option<&OsStr>) -> Result<(), Error> {
    let metadata = fs::metadata(target).map_err(cannot_read(target))?;
    let mut names = metadata.nlink();
    if let Some(suffix) = backup {
        let backup = with_suffix(target, suffix);
        match absent(fs::symlink_metadata(&backup)).map_err(cannot_read(&backup))? {
            // The backup is a second name (a hard link) of the mailbox file itself. An earlier run was killed after it
            // created the link, or the user created it. The link keeps the old mail, as a backup should, so it is not
            // counted as a further name.
            Some(found) if is_same(&found, &metadata) => names -= 1,
            Some(_) => {
                let why = "the backup already exists, and may be the only copy of the original; move the backup away, or choose another suffix";
                let error = io::Error::new(io::ErrorKind::AlreadyExists, why);
                return Err(cannot_write(&backup)(error));
            }
            None => {}
        }
    }
    // A rename needs no write permission for the file. But if the owner removed the permission, the file must not
    // change.
    platform::check_writable(target).map_err(cannot_write(target))?;
    if names > 1 {
        return Err(cannot_write(target)(io::Error::other(format!(
            "the file has {names} names (hard links), and the old mail would remain under the other names; convert the file to a new file"
        ))));
    }
    Ok(())
}

pub(crate) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn back_up(target: &Path, suffix: &OsStr) -> Result<Option<PathBuf>, Error> {
    let backup = with_suffix(target, suffix);
    let Err(error) = fs::hard_link(target, &backup) else {
        return Ok(Some(backup));
    };
    if error.kind() == io::ErrorKind::AlreadyExists {
        let metadata = fs::metadata(target).map_err(cannot_read(target))?;
        return match fs::symlink_metadata(&backup) {
            Ok(found) if is_same(&found, &metadata) => Ok(None),
            _ => Err(cannot_write(&backup)(error)),
        };
    }
    // The file system has no hard links, so the file is copied. This opens the source a second time, and closing the
    // second handle releases the fcntl lock of the run. The dotlock is still held, and file systems without hard links
    // usually have no fcntl locks.
    let source = File::open(target).map_err(cannot_read(target))?;
    let length = source.metadata().map_err(cannot_read(target))?.len();
    let copy = AtomicWriter::copy(&source, length, target, folder_of(&backup), &backup)?;
    copy.sync()?;
    copy.appear()?;
    Ok(Some(backup))
}

pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    platform::sync_folder(folder).map_err(cannot_write(folder))
}

fn date(new: &File, like: &File) -> io::Result<()> {
    let wanted = like.metadata()?;
    let times = FileTimes::new().set_modified(wanted.modified()?);
    new.set_times(times.set_accessed(wanted.accessed()?))
}

pub(crate) fn with_suffix(path: &Path, suffix: &OsStr) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
