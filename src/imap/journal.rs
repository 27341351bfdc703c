//! Journal of an account: the replacements that were begun, and the last step of each. After a crash, the next run reads it and
//! finishes or undoes unfinished replacements.
//!
//! * Each account has one file, in a directory that only this user can write to. It contains names of folders, UIDs, dates,
//!   flags and hashes, but no passwords and no mail.
//! * A line is synced to disk before the step that it announces is taken. So if a crash leaves incomplete lines at the end of
//!   the file, the steps in these lines were not taken, and the lines are ignored.
//! * Each line contains a checksum and the identity of the account: host, port, user, and the name of the server software. The
//!   replacement in the line contains UIDVALIDITY. Nothing is deleted because of a line that does not match. Journals of
//!   version 0.3.0 have neither checksum nor identity, and are still read.
//! * While REPLACE may have removed a message from the server, the message is in a file next to the journal.
//! * A run locks the file. A second run for the same account ends with an error.
//! * If a replacement ended and the message may exist twice, a line with the report is kept until a run has named the
//!   message and has ended. A run that is killed before its end has no exit status, so the report must not be lost.
//! * If no replacement is unfinished, the file is emptied.
//!
//! Unfinished replacements in another journal, on another computer or with another `--state`, are unknown to this run. Their
//! new messages are kept.

mod lines;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

pub(super) use self::lines::JournalAccount;
use self::lines::{
    CHECKSUM_DIGITS, JournalLine, NotedReplacement, account_of, unfinished, with_checksum,
};
pub(super) use self::step::{Replacement, ReplacementStep};
use crate::error::{Error, unpoisoned};
use crate::key::Key;
use crate::platform::disk::sync;

/// Size from which a journal without unfinished replacements is emptied during the run, in bytes.
const LONG: u64 = 1 << 20;

/// An unfinished replacement of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenReplacement {
    pub(super) id: u64,
    pub(super) replacement: Replacement,
    /// Reason why the entry cannot be trusted. `None` if it can be trusted.
    pub(super) doubt: Option<String>,
}

/// A message that may exist twice, and that a run must name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NamedMessage {
    pub(super) folder: String,
    pub(super) uid: u32,
    pub(super) why: String,
}

/// The locked journal of one account. Several threads can use it.
#[derive(Debug)]
pub(super) struct ReplaceJournal {
    file: File,
    path: PathBuf,
    account: JournalAccount,
    noted: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    open: BTreeMap<u64, NotedReplacement>,
    /// Messages that may exist twice, until the run that named them has ended.
    named: BTreeMap<u64, NamedMessage>,
    /// UIDs of the new messages of replacements that ended in this run, by the name and the UIDVALIDITY of the folder.
    finished: BTreeMap<(String, u32), BTreeSet<u32>>,
    next: u64,
    length: u64,
    /// Name of the server software in this run. It is written into each line.
    server: Option<String>,
}

impl ReplaceJournal {
    /// Opens and locks the journal of an account.
    ///
    /// # Errors
    /// Fails if the directory belongs to another user or is writable by others, if another run holds the lock, or if a
    /// system call fails.
    pub(super) fn open(folder: &Path, account: JournalAccount) -> Result<Self, Error> {
        let failed = Error::cannot_write(folder.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(&failed)?;
        let opened = File::open(folder).map_err(&failed)?;
        is_of_this_user(&opened).map_err(&failed)?;
        // The name is the same as in version 0.3.0, so that its journals are found.
        let whose = format!("{} {} {}", account.user, account.host, account.port);
        let name = format!("imap-{}.journal", Key::of(whose.as_bytes()));
        let path = folder.join(&name);
        let failed = Error::cannot_write(path.display().to_string());
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(&opened, &name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|why| failed(why.into()))?;
        let file = File::from(descriptor);
        is_of_this_user(&file).map_err(&failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let lock = path.clone();
                return Err(Error::Locked { path, lock });
            }
            done => done.map_err(|why| failed(why.into()))?,
        }
        sync(&opened).map_err(&failed)?;
        Self::read(file, path, Some(account))
    }

    /// Opens and locks the journals of other accounts in the same directory. One of them may belong to the same account,
    /// under another name of the server or of the user. Journals without unfinished replacements, journals of version 0.3.0,
    /// and journals that another run uses are left out.
    pub(super) fn others(&self) -> Vec<Self> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let Ok(entries) = std::fs::read_dir(directory) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|it| it.starts_with("imap-") && it.ends_with(".journal"))
                    && *path != self.path
            })
            .collect();
        paths.sort();
        let others = paths.into_iter().filter_map(Self::other);
        others.filter(|it| !it.noted().open.is_empty()).collect()
    }

    fn other(path: PathBuf) -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty()).ok()?);
        is_of_this_user(&file).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Self::read(file, path, None).ok()
    }

    /// Reads a journal that is locked. If `account` is `None`, the journal belongs to the account in its lines.
    fn read(mut file: File, path: PathBuf, account: Option<JournalAccount>) -> Result<Self, Error> {
        let failed = Error::cannot_write(path.display().to_string());
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(&failed)?;
        let account = account.or_else(|| account_of(&text)).ok_or_else(|| {
            let what = format!("{}: the journal does not name its account", path.display());
            Error::Usage(what.into())
        })?;
        let (lines, whole) = unfinished(&text, &account);
        // An incomplete line at the end is removed. Otherwise the next line would be appended to it and become unreadable.
        if whole < text.len() as u64 {
            file.set_len(whole).map_err(&failed)?;
        }
        let next = lines.last_key_value().map_or(0, |(id, _)| id + 1);
        let (mut open, mut named) = (BTreeMap::new(), BTreeMap::new());
        for (id, line) in lines {
            match line.named.clone() {
                None => drop(open.insert(id, line)),
                Some(why) => drop(named.insert(id, NamedMessage::of(line.replacement, why))),
            }
        }
        let noted = Mutex::new(JournalState {
            next,
            open,
            named,
            finished: BTreeMap::new(),
            length: whole,
            server: None,
        });
        Ok(Self {
            file,
            path,
            account,
            noted,
        })
    }

    fn noted(&self) -> MutexGuard<'_, JournalState> {
        unpoisoned(self.noted.lock())
    }

    /// Sets the name of the server software.
    pub(super) fn set_server(&self, name: Option<&str>) {
        self.noted().server = name.map(str::to_owned);
    }

    /// Returns the unfinished replacements, in the order in which they were begun.
    pub(super) fn open_ones(&self) -> Vec<OpenReplacement> {
        let noted = self.noted();
        let open = noted.open.iter().map(|(id, it)| {
            let doubt = match (&it.server, &noted.server) {
                _ if it.doubt.is_some() => it.doubt.clone(),
                (Some(before), Some(now)) if before != now => Some(format!(
                    "the journal was written for the server software {before}, and the server now runs {now}; nothing was deleted, so the folder may contain the message twice"
                )),
                _ => None,
            };
            OpenReplacement {
                id: *id,
                replacement: it.replacement.clone(),
                doubt,
            }
        });
        open.collect()
    }

    /// Returns whether a replacement of this message is unfinished.
    pub(super) fn is_open(&self, folder: &str, uidvalidity: u32, uid: u32) -> bool {
        self.noted().open.values().any(|noted| {
            let it = &noted.replacement;
            (it.folder.as_str(), it.uidvalidity, it.uid) == (folder, uidvalidity, uid)
        })
    }

    /// Whether the message with this UID is the new message of another replacement in the same folder: one of this run,
    /// or an unfinished one. The replacement `of` must then not claim the message.
    pub(super) fn is_known_copy(&self, of: &Replacement, uid: u32) -> bool {
        let noted = self.noted();
        let of_folder = noted.finished.get(&(of.folder.clone(), of.uidvalidity));
        of_folder.is_some_and(|uids| uids.contains(&uid))
            || noted.open.values().any(|noted| {
                let other = &noted.replacement;
                (&other.folder, other.uidvalidity) == (&of.folder, of.uidvalidity)
                    && other.uid != of.uid
                    && other.step.copy() == Some(uid)
            })
    }

    /// Whether another unfinished replacement may already have written a new message with the same content under a UID
    /// that is not yet known.
    pub(super) fn has_unplaced_copy(&self, of: &Replacement) -> bool {
        self.noted().open.values().any(|noted| {
            let other = &noted.replacement;
            (&other.folder, other.uidvalidity, &other.sha256)
                == (&of.folder, of.uidvalidity, &of.sha256)
                && other.uid != of.uid
                && other.step == ReplacementStep::Begun
        })
    }

    /// Whether another replacement in the same folder has begun. The UID of its new message is still unknown.
    pub(super) fn has_begun_others(&self, of: &Replacement) -> bool {
        self.noted().open.values().any(|noted| {
            let other = &noted.replacement;
            (&other.folder, other.uidvalidity) == (&of.folder, of.uidvalidity)
                && other.uid != of.uid
                && other.step == ReplacementStep::Begun
        })
    }

    /// Returns the number of a new replacement.
    pub(super) fn next_id(&self) -> u64 {
        let mut noted = self.noted();
        noted.next += 1;
        noted.next - 1
    }

    /// Records the current step of a replacement and syncs it to disk.
    pub(super) fn note(&self, id: u64, replacement: Replacement) -> Result<(), Error> {
        {
            let mut noted = self.noted();
            self.write(id, Some(replacement.clone()), None, &mut noted)?;
            let server = noted.server.clone();
            let it = NotedReplacement {
                replacement,
                server,
                doubt: None,
                named: None,
            };
            noted.open.insert(id, it);
        }
        crate::platform::sync(&self.file).map_err(self.failed())
    }

    /// Records that a replacement is finished or undone. Without sync: if the record is lost, the next run merely finds
    /// nothing left to do.
    pub(super) fn end(&self, id: u64) -> Result<(), Error> {
        let mut noted = self.noted();
        let Some(ended) = noted.open.remove(&id) else {
            return Ok(());
        };
        noted.add_finished(&ended.replacement);
        self.write(id, None, None, &mut noted)?;
        if noted.is_done() && noted.length > LONG {
            self.empty(&mut noted)?;
        }
        Ok(())
    }

    /// Records that a replacement ended, but that the message may exist twice, for the reason `why`. The record is
    /// synced to disk, and is kept until [`forget_named`](Self::forget_named).
    pub(super) fn name(&self, id: u64, why: String) -> Result<(), Error> {
        {
            let mut noted = self.noted();
            let Some(NotedReplacement { replacement, .. }) = noted.open.remove(&id) else {
                return Ok(());
            };
            noted.add_finished(&replacement);
            self.write(id, Some(replacement.clone()), Some(why.clone()), &mut noted)?;
            noted.named.insert(id, NamedMessage::of(replacement, why));
        }
        crate::platform::sync(&self.file).map_err(self.failed())
    }

    /// Returns the messages that may exist twice, and that earlier runs named before they were killed.
    pub(super) fn named_ones(&self) -> Vec<NamedMessage> {
        self.noted().named.values().cloned().collect()
    }

    /// Removes the records of messages that may exist twice, because this run has named them and ends with exit status
    /// 1.
    pub(super) fn forget_named(&self) -> Result<(), Error> {
        let mut noted = self.noted();
        for id in std::mem::take(&mut noted.named).into_keys() {
            self.write(id, None, None, &mut noted)?;
        }
        Ok(())
    }

    /// Returns the path of the file in which the old message is kept during a REPLACE, until it is certain whether the
    /// server removed it. The name contains the digest of the content, so that a file from an earlier run is never
    /// overwritten with another message.
    pub(super) fn kept(&self, of: &Replacement) -> PathBuf {
        let digest = of.original.as_deref().unwrap_or_default();
        let start = digest.get(..CHECKSUM_DIGITS).unwrap_or(digest);
        self.path.with_extension(format!("{}.{start}.eml", of.uid))
    }

    /// Writes the file with the old message and syncs it to disk.
    pub(super) fn keep(&self, of: &Replacement, original: &[u8]) -> Result<(), Error> {
        let path = self.kept(of);
        let failed = Error::cannot_write(path.display().to_string());
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(original)?;
            file.sync_all()?;
            sync(&File::open(path.parent().unwrap_or(Path::new(".")))?)
        });
        written.map_err(failed)
    }

    /// Removes the file with the old message, if it exists.
    pub(super) fn drop_kept(&self, of: &Replacement) -> Result<(), Error> {
        let path = self.kept(of);
        match std::fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(Error::cannot_write(path.display().to_string())(why))
            }
            _ => Ok(()),
        }
    }

    /// Empties the file if no replacement is unfinished.
    pub(super) fn close(self) -> Result<(), Error> {
        let mut noted = self.noted();
        if noted.is_done() && noted.length > 0 {
            self.empty(&mut noted)
        } else {
            Ok(())
        }
    }

    fn empty(&self, noted: &mut JournalState) -> Result<(), Error> {
        self.file.set_len(0).map_err(self.failed())?;
        noted.length = 0;
        Ok(())
    }

    fn write(
        &self,
        id: u64,
        open: Option<Replacement>,
        named: Option<String>,
        noted: &mut JournalState,
    ) -> Result<(), Error> {
        let line = JournalLine {
            id,
            open,
            named,
            account: Some(self.account.clone()),
            server: noted.server.clone(),
        };
        let json = serde_json::to_string(&line).map_err(|why| self.failed()(why.into()))?;
        let text = with_checksum(&json);
        (&self.file).write_all(&text).map_err(self.failed())?;
        noted.length += text.len() as u64;
        Ok(())
    }

    fn failed(&self) -> impl Fn(io::Error) -> Error {
        Error::cannot_write(self.path.display().to_string())
    }
}

impl NamedMessage {
    fn of(replacement: Replacement, why: String) -> Self {
        Self {
            folder: replacement.folder,
            uid: replacement.uid,
            why,
        }
    }
}

impl JournalState {
    /// Whether no line of the file is needed any more.
    fn is_done(&self) -> bool {
        self.open.is_empty() && self.named.is_empty()
    }

    fn add_finished(&mut self, ended: &Replacement) {
        if let Some(uid) = ended.step.copy() {
            let folder = (ended.folder.clone(), ended.uidvalidity);
            self.finished.entry(folder).or_default().insert(uid);
        }
    }
}

/// Checks that only this user can write to the file. Otherwise another user could choose which messages are deleted.
fn is_of_this_user(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_own && metadata.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the journal belongs to another user or can be changed by other users; remove their write permission (chmod go-w), or name another directory",
        ))
    }
}

#[cfg(test)]
mod tests;
