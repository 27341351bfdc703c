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
//! * If no replacement is unfinished, the file is emptied.
//!
//! Unfinished replacements in another journal, on another computer or with another `--state`, are unknown to this run. Their
//! new messages are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, unpoisoned};
use crate::key::Key;
use crate::platform::disk::sync;

/// Size from which a journal without unfinished replacements is emptied during the run, in bytes.
const LONG: u64 = 1 << 20;

/// The latest step of a replacement that the journal has recorded. After a crash, it determines how the next run finishes
/// or undoes the replacement.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReplacementStep {
    /// The new message may already be in the folder, under an unknown UID.
    Begun,
    /// The new message was appended and has this UID.
    Appended(u32),
    /// The new message with this UID was compared and is correct. The old message may already be marked as `\Deleted` by
    /// embody, or be gone.
    Deleting(u32),
    /// The replacement is being undone: the new message with this UID and this SHA-256 may be marked as `\Deleted`, or be gone.
    TakingBack(u32, String),
    /// The command REPLACE may have removed the old message from the server. Its content is in a file: [`ReplaceJournal::kept`].
    Replacing,
    /// The command REPLACE removed the old message without storing the right new one. The old message may have been appended
    /// again.
    PuttingBack,
}

impl ReplacementStep {
    /// Returns the UID of the new message, if it is known.
    pub(super) fn copy(&self) -> Option<u32> {
        match self {
            Self::Appended(uid) | Self::Deleting(uid) | Self::TakingBack(uid, _) => Some(*uid),
            Self::Begun | Self::Replacing | Self::PuttingBack => None,
        }
    }
}

/// A message and the new message that replaces it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Replacement {
    /// Name of the folder, in the spelling of the server.
    pub(super) folder: String,
    pub(super) uidvalidity: u32,
    pub(super) uid: u32,
    /// Smallest UID that the new message can have. A message with a smaller UID existed before, so it is never
    /// taken for the new message.
    pub(super) least: u32,
    /// SHA-256 of the new content, and its size in bytes.
    pub(super) sha256: String,
    pub(super) size: u64,
    /// SHA-256 of the old content. `None` in a journal of version 0.3.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) original: Option<String>,
    /// Size of the old content in bytes. 0 in a journal of version 0.3.0.
    #[serde(default)]
    pub(super) original_size: u64,
    /// Flags of the new message, which were copied from the old message at the last comparison.
    pub(super) flags: Vec<String>,
    /// Gmail labels of the new message, which were copied from the old message at the last comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) labels: Vec<String>,
    /// INTERNALDATE as the server wrote it, and in seconds since 1970.
    pub(super) date: (String, i64),
    pub(super) step: ReplacementStep,
}

/// Account to which a journal belongs. Each line contains it, so that a copied or renamed journal cannot delete messages of
/// another account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct JournalAccount {
    pub(super) user: String,
    pub(super) host: String,
    pub(super) port: u16,
}

/// One line of the journal: the current state of the replacement with the number `id`.
#[derive(Serialize, Deserialize, Debug)]
struct JournalLine {
    id: u64,
    /// The replacement with its last step, as long as it is unfinished. `None` means that it was finished or undone.
    open: Option<Replacement>,
    /// Account to which the journal belongs. `None` in a journal of version 0.3.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<JournalAccount>,
    /// Name of the server software (RFC 2971), if the server sends one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

/// Start of the checksum at the end of a line. The checksum consists of the first digits of the SHA-256 of the line without it.
const CHECKSUM: &str = ",\"sum\":\"";
const CHECKSUM_DIGITS: usize = 16;

/// An unfinished replacement that the journal contains, and whether its entry can be trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenReplacement {
    pub(super) id: u64,
    pub(super) replacement: Replacement,
    /// Reason why the entry cannot be trusted. `None` if it can be trusted.
    pub(super) doubt: Option<String>,
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
    /// UIDs of the new messages of replacements that ended in this run, by the name and the UIDVALIDITY of the folder.
    finished: BTreeMap<(String, u32), BTreeSet<u32>>,
    next: u64,
    length: u64,
    /// Name of the server software in this run. It is written into each line.
    server: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct NotedReplacement {
    replacement: Replacement,
    server: Option<String>,
    doubt: Option<String>,
}

impl ReplaceJournal {
    /// Opens and locks the journal of an account.
    ///
    /// # Errors
    /// The directory belongs to another user or can be changed by other users, another run holds the lock, or a system call
    /// failed.
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
        let (open, whole) = read(&text, &account);
        // An incomplete line at the end is removed. Otherwise the next line would be appended to it and become unreadable.
        if whole < text.len() as u64 {
            file.set_len(whole).map_err(&failed)?;
        }
        let noted = Mutex::new(JournalState {
            next: open.last_key_value().map_or(0, |(id, _)| id + 1),
            open,
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

    /// Returns whether the message with this UID is the new message of another replacement of this run, or of another
    /// unfinished replacement, in the same folder. The replacement `of` must then not treat the message as its own new
    /// message.
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

    /// Returns whether the new message of another unfinished replacement with the same content may exist, although its UID
    /// is not known yet.
    pub(super) fn has_unplaced_copy(&self, of: &Replacement) -> bool {
        self.noted().open.values().any(|noted| {
            let other = &noted.replacement;
            (&other.folder, other.uidvalidity, &other.sha256)
                == (&of.folder, of.uidvalidity, &of.sha256)
                && other.uid != of.uid
                && other.step == ReplacementStep::Begun
        })
    }

    /// Returns whether another replacement in the same folder was begun, so that the UID of its new message is unknown.
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
            self.write(id, Some(replacement.clone()), &mut noted)?;
            let server = noted.server.clone();
            let it = NotedReplacement {
                replacement,
                server,
                doubt: None,
            };
            noted.open.insert(id, it);
        }
        crate::platform::sync(&self.file).map_err(self.failed())
    }

    /// Records that a replacement was finished or undone. The record is not synced: if it is lost, the next run finds nothing
    /// left to do.
    pub(super) fn end(&self, id: u64) -> Result<(), Error> {
        let mut noted = self.noted();
        let Some(ended) = noted.open.remove(&id) else {
            return Ok(());
        };
        let Replacement {
            folder,
            uidvalidity,
            step,
            ..
        } = ended.replacement;
        if let Some(uid) = step.copy() {
            let of_folder = noted.finished.entry((folder, uidvalidity)).or_default();
            of_folder.insert(uid);
        }
        self.write(id, None, &mut noted)?;
        if noted.open.is_empty() && noted.length > LONG {
            self.empty(&mut noted)?;
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
        if noted.open.is_empty() && noted.length > 0 {
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
        noted: &mut JournalState,
    ) -> Result<(), Error> {
        let line = JournalLine {
            id,
            open,
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

fn checksum(line: &[u8]) -> String {
    let mut digits = Key::of(line).to_string();
    digits.truncate(CHECKSUM_DIGITS);
    digits
}

/// Appends the checksum and the line ending to a line.
fn with_checksum(line: &str) -> Vec<u8> {
    let sum = checksum(line.as_bytes());
    let inner = line.strip_suffix('}').unwrap_or(line);
    format!("{inner}{CHECKSUM}{sum}\"}}\n").into_bytes()
}

/// Parses a line without its line ending. Returns `None` if the line is malformed or its checksum is wrong. Lines of version
/// 0.3.0 have no checksum.
fn line(text: &[u8]) -> Option<JournalLine> {
    let sum_length = CHECKSUM.len() + CHECKSUM_DIGITS + "\"}".len();
    let split = text.len().checked_sub(sum_length);
    if let Some((inner, sum)) = split.and_then(|at| text.split_at_checked(at))
        && let Some(sum) = sum.strip_prefix(CHECKSUM.as_bytes())
    {
        let whole = [inner, b"}"].concat();
        let is_right = sum.strip_suffix(b"\"}") == Some(checksum(&whole).as_bytes());
        return is_right.then(|| serde_json::from_slice(&whole).ok())?;
    }
    let line: JournalLine = serde_json::from_slice(text).ok()?;
    // Only lines of version 0.3.0 have no checksum, and they contain no account. A line with an account but without a
    // checksum is damaged, so it counts as unreadable.
    line.account.is_none().then_some(line)
}

/// Returns the account in the last readable line of a journal that has one.
fn account_of(text: &[u8]) -> Option<JournalAccount> {
    let lines = text.split(|octet| *octet == b'\n').rev();
    lines.filter_map(|text| line(text)?.account).next()
}

/// Returns the unfinished replacements, and the length of the readable part in bytes.
///
/// Unreadable lines at the end are the result of a crash: the steps that they announce were not taken. An unreadable line
/// before a readable one means that the file is damaged, so no entry in the file is trusted.
fn read(text: &[u8], account: &JournalAccount) -> (BTreeMap<u64, NotedReplacement>, u64) {
    let mut open = BTreeMap::new();
    let (mut whole, mut at) = (0, 0);
    let (mut unreadable, mut damaged) = (None, None);
    for (number, read) in text.split_inclusive(|octet| *octet == b'\n').enumerate() {
        at += read.len() as u64;
        let Some(line) = read.strip_suffix(b"\n").and_then(line) else {
            unreadable = unreadable.or(Some(number + 1));
            continue;
        };
        damaged = damaged.or(unreadable);
        whole = at;
        let Some(replacement) = line.open else {
            open.remove(&line.id);
            continue;
        };
        let doubt = line.account.filter(|of| of != account).map(|of| {
            format!(
                "the journal belongs to a different account, {} on {}, port {}; nothing was deleted, so the folder may contain the message twice",
                of.user, of.host, of.port
            )
        });
        let noted = NotedReplacement {
            replacement,
            server: line.server,
            doubt,
        };
        open.insert(line.id, noted);
    }
    if let Some(number) = damaged {
        for noted in open.values_mut() {
            noted.doubt = Some(format!(
                "line {number} of the journal is damaged; nothing was deleted, so the folder may contain the message twice"
            ));
        }
    }
    (open, whole)
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
mod tests {
    use super::*;

    fn replacement(uid: u32) -> Replacement {
        Replacement {
            folder: "INBOX".into(),
            uidvalidity: 7,
            uid,
            least: uid + 1,
            sha256: "00".into(),
            size: 3,
            original: Some("11".into()),
            original_size: 4,
            flags: vec!["\\Seen".into(), "na\"me\n".into()],
            labels: Vec::new(),
            date: (" 1-Jan-2020 10:00:00 +0100".into(), 1_577_869_200),
            step: ReplacementStep::Begun,
        }
    }

    fn account(user: &str) -> JournalAccount {
        JournalAccount {
            user: user.into(),
            host: "imap.example.org".into(),
            port: 993,
        }
    }

    fn begun(journal: &ReplaceJournal, replacement: Replacement) -> u64 {
        let id = journal.next_id();
        journal.note(id, replacement).unwrap();
        id
    }

    fn open_of(journal: &ReplaceJournal) -> Vec<(u64, Replacement)> {
        let open = journal.open_ones().into_iter();
        open.map(|it| {
            assert_eq!(it.doubt, None);
            (it.id, it.replacement)
        })
        .collect()
    }

    /// Opens a journal. If it is locked, waits: a process that another test starts inherits the open file, and can hold
    /// the lock for a moment.
    fn reopened(folder: &Path, user: &str) -> ReplaceJournal {
        for _ in 0..1000 {
            match ReplaceJournal::open(folder, account(user)) {
                Err(Error::Locked { .. }) => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                opened => return opened.unwrap(),
            }
        }
        panic!("locked for long");
    }

    #[test]
    fn a_journal_tells_what_was_begun_and_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("a/b");
        let journal = reopened(&state, "me");
        let first = begun(&journal, replacement(1));
        let second = begun(&journal, replacement(2));
        let third = begun(&journal, replacement(3));
        journal.end(first).unwrap();
        let appended = Replacement {
            step: ReplacementStep::Appended(9),
            ..replacement(3)
        };
        journal.note(third, appended.clone()).unwrap();
        assert!(journal.is_known_copy(&replacement(2), 9));
        assert!(!journal.is_known_copy(&replacement(3), 9));
        assert!(journal.is_open("INBOX", 7, 2) && !journal.is_open("INBOX", 8, 2));
        assert!(matches!(
            ReplaceJournal::open(&state, account("me")),
            Err(Error::Locked { .. })
        ));
        drop(journal);
        let journal = reopened(&state, "me");
        let open = [(second, replacement(2)), (third, appended)];
        assert_eq!(open_of(&journal), open);
        assert_eq!(open_of(&reopened(&state, "you")), []);
        let mode = std::fs::metadata(&state).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_line_that_was_cut_off_tells_nothing_and_harms_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let journal = reopened(folder.path(), "me");
        begun(&journal, replacement(1));
        let (path, whole) = (journal.path.clone(), journal.noted().length);
        begun(&journal, replacement(2));
        drop(journal);
        let text = std::fs::read(&path).unwrap();
        for cut in usize::try_from(whole).unwrap()..text.len() {
            for tail in [&b""[..], b"\0\0\0", b"\0\n"] {
                std::fs::write(&path, [&text[..cut], tail].concat()).unwrap();
                let journal = reopened(folder.path(), "me");
                assert_eq!(open_of(&journal), [(0, replacement(1))]);
                let next = begun(&journal, replacement(3));
                drop(journal);
                let journal = reopened(folder.path(), "me");
                let both = [(0, replacement(1)), (next, replacement(3))];
                assert_eq!(open_of(&journal), both);
            }
        }
    }

    #[test]
    fn a_byte_that_changed_in_a_line_is_noticed_and_nothing_is_believed_then() {
        let folder = tempfile::tempdir().unwrap();
        let journal = reopened(folder.path(), "me");
        begun(&journal, replacement(1));
        let (path, whole) = (journal.path.clone(), journal.noted().length);
        begun(&journal, replacement(2));
        drop(journal);
        let text = std::fs::read(&path).unwrap();
        // Each byte of the first line is changed in turn, except the line feed at its end. If that byte changes, the
        // two lines become one, which looks like the result of a crash and not like damage.
        for at in 0..usize::try_from(whole).unwrap() - 1 {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let open = reopened(folder.path(), "me").open_ones();
            assert_eq!(
                open.last().unwrap().replacement,
                replacement(2),
                "byte {at}"
            );
            let is_doubted =
                |it: &OpenReplacement| it.doubt.as_ref().is_some_and(|why| why.contains("line 1 "));
            assert!(open.iter().all(is_doubted), "byte {at}: {open:?}");
        }
    }

    #[test]
    fn a_journal_of_another_account_or_server_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let journal = reopened(folder.path(), "me");
        journal.set_server(Some("Dovecot"));
        begun(&journal, replacement(1));
        let path = journal.path.clone();
        drop(journal);
        let doubt = |user: &str, server: Option<&str>| {
            let journal = reopened(folder.path(), user);
            journal.set_server(server);
            journal.open_ones().remove(0).doubt
        };
        assert_eq!(doubt("me", Some("Dovecot")), None);
        assert_eq!(doubt("me", None), None);
        assert!(doubt("me", Some("Cyrus")).unwrap().contains("Cyrus"));
        let other = reopened(folder.path(), "you").path;
        std::fs::copy(&path, &other).unwrap();
        let doubt = doubt("you", Some("Dovecot")).unwrap();
        assert!(
            doubt.contains("a different account, me on imap.example.org"),
            "{doubt}"
        );
    }

    #[test]
    fn a_journal_of_version_0_3_0_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = reopened(folder.path(), "me").path;
        let lines = concat!(
            r#"{"id":0,"open":{"folder":"INBOX","uidvalidity":7,"uid":1,"least":3,"sha256":"00","size":3,"flags":["\\Seen"],"#,
            r#""date":["01-Feb-2019 11:00:07 +0000",1549018807],"step":{"appended":3}}}"#,
            "\n",
            r#"{"id":1,"open":{"folder":"INBOX","uidvalidity":7,"uid":2,"least":3,"sha256":"00","size":3,"flags":[],"#,
            r#""date":["01-Feb-2019 11:00:07 +0000",1549018807],"step":"begun"}}"#,
            "\n",
            r#"{"id":1,"open":null}"#,
            "\n",
        );
        std::fs::write(&path, lines).unwrap();
        let journal = reopened(folder.path(), "me");
        let open = open_of(&journal);
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].1.step, ReplacementStep::Appended(3));
        assert_eq!(open[0].1.original, None);
        // After this line, the file contains lines of version 0.3.0 and of this version.
        let next = begun(&journal, replacement(5));
        drop(journal);
        let open = open_of(&reopened(folder.path(), "me"));
        let ids: Vec<u64> = open.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [0, next]);
    }

    #[test]
    fn journal_directory_writable_by_other_users_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), all).unwrap();
        assert!(ReplaceJournal::open(folder.path(), account("me")).is_err());
    }
}
