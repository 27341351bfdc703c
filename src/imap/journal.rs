//! The journal of an account: which replacements were begun, and how far each has come. With it the next run finishes or takes
//! back what a kill left half-made.
//!
//! * One file for each account in a folder that is this user's alone. It holds names of folders, UIDs, dates, flags and hashes;
//!   neither passwords nor mail.
//! * A line is synced before the step that it announces is taken. So what a crash leaves of a line, and all behind it, tells of
//!   steps that were not taken, and is passed over.
//! * A run locks the file; a second run over the same account ends.
//! * Once nothing is half-made, the file is emptied.
//!
//! Another journal, on another machine or with another `--state`, knows nothing of this one's copies. They stay.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::session::InternalDate;
use crate::disk::{Key, sync};
use crate::error::{Error, unpoisoned};

/// Octets from which on a journal in which nothing is open is emptied during a run.
const LONG: u64 = 1 << 20;

/// How far a replacement has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReplacementStep {
    /// A copy may be in the folder; nobody knows under which UID.
    Begun,
    /// The copy has this UID, as the server says.
    Appended(u32),
    /// The copy holds what it should, and the old message may bear our `\Deleted`, or be gone.
    Deleting(u32),
}

/// One message, and what is to stand in its place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Replacement {
    /// As the server spells it.
    pub(super) folder: String,
    pub(super) uidvalidity: u32,
    pub(super) uid: u32,
    /// The copy has no smaller UID.
    pub(super) least: u32,
    /// SHA-256 of the new octets, and how many they are.
    pub(super) sha256: String,
    pub(super) size: u64,
    /// What the copy was given, and has: those that the old message had when they were compared last.
    pub(super) flags: Vec<String>,
    /// INTERNALDATE as the server writes it, and in seconds since 1970.
    pub(super) date: (String, i64),
    pub(super) step: ReplacementStep,
}

impl Replacement {
    pub(super) fn internal_date(&self) -> InternalDate {
        InternalDate {
            text: self.date.0.clone(),
            seconds: self.date.1,
        }
    }
}

/// A line: what became of the replacement with this number.
#[derive(Serialize, Deserialize, Debug)]
struct JournalLine {
    id: u64,
    /// None: it is done, or taken back.
    open: Option<Replacement>,
}

/// The journal of one account, locked; for several threads.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    noted: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    open: BTreeMap<u64, Replacement>,
    next: u64,
    length: u64,
}

impl Journal {
    /// Opens the journal of an account; `whose` says which one, for ever in the same words.
    ///
    /// # Errors
    /// The folder is somebody else's, or others may write to it; another run holds the lock; what the system says.
    pub(super) fn open(folder: &Path, whose: &str) -> Result<Self, Error> {
        let failed = Error::cannot_write(folder.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(&failed)?;
        let opened = File::open(folder).map_err(&failed)?;
        is_of_this_user(&opened).map_err(&failed)?;
        let name = format!("imap-{}.journal", Key::of(whose.as_bytes()));
        let path = folder.join(&name);
        let failed = Error::cannot_write(path.display().to_string());
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&opened, &name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|why| failed(why.into()))?;
        let mut file = File::from(file);
        is_of_this_user(&file).map_err(&failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let lock = path.clone();
                return Err(Error::Locked { path, lock });
            }
            done => done.map_err(|why| failed(why.into()))?,
        }
        sync(&opened).map_err(&failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(&failed)?;
        let (open, whole) = read(&text);
        // What was cut off would make the next line unreadable.
        if whole < text.len() as u64 {
            file.set_len(whole).map_err(&failed)?;
        }
        let noted = Mutex::new(JournalState {
            next: open.last_key_value().map_or(0, |(id, _)| id + 1),
            open,
            length: whole,
        });
        Ok(Self { file, path, noted })
    }

    fn noted(&self) -> MutexGuard<'_, JournalState> {
        unpoisoned(self.noted.lock())
    }

    /// What is half-made, in the order in which it was begun.
    pub(super) fn open_ones(&self) -> Vec<(u64, Replacement)> {
        let noted = self.noted();
        let open = noted.open.iter();
        open.map(|(id, it)| (*id, it.clone())).collect()
    }

    /// UIDs in a folder that are known to be those of copies of other replacements.
    pub(super) fn is_known_copy(&self, of: &Replacement, uid: u32) -> bool {
        self.noted().open.values().any(|other| {
            let copy = match other.step {
                ReplacementStep::Begun => None,
                ReplacementStep::Appended(uid) | ReplacementStep::Deleting(uid) => Some(uid),
            };
            (&other.folder, other.uidvalidity) == (&of.folder, of.uidvalidity)
                && other.uid != of.uid
                && copy == Some(uid)
        })
    }

    /// Notes a replacement, durably, before its copy is made.
    pub(super) fn begin(&self, replacement: Replacement) -> Result<u64, Error> {
        let id = {
            let mut noted = self.noted();
            noted.next += 1;
            noted.next - 1
        };
        self.note(id, replacement)?;
        Ok(id)
    }

    /// Notes how far a replacement has come, durably.
    pub(super) fn note(&self, id: u64, replacement: Replacement) -> Result<(), Error> {
        let line = JournalLine {
            id,
            open: Some(replacement.clone()),
        };
        {
            let mut noted = self.noted();
            self.write(&line, &mut noted)?;
            noted.open.insert(id, replacement);
        }
        crate::platform::sync(&self.file).map_err(self.failed())
    }

    /// A replacement is done, or taken back. If that does not come to the disk, the next run sees that there is nothing to do.
    pub(super) fn end(&self, id: u64) -> Result<(), Error> {
        let mut noted = self.noted();
        if noted.open.remove(&id).is_none() {
            return Ok(());
        }
        self.write(&JournalLine { id, open: None }, &mut noted)?;
        if noted.open.is_empty() && noted.length > LONG {
            self.empty(&mut noted)?;
        }
        Ok(())
    }

    /// Empties the file if nothing is half-made.
    pub(super) fn close(self) -> Result<(), Error> {
        let mut noted = self.noted();
        match noted.open.is_empty() && noted.length > 0 {
            true => self.empty(&mut noted),
            false => Ok(()),
        }
    }

    fn empty(&self, noted: &mut JournalState) -> Result<(), Error> {
        self.file.set_len(0).map_err(self.failed())?;
        noted.length = 0;
        Ok(())
    }

    fn write(&self, line: &JournalLine, noted: &mut JournalState) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line).map_err(|why| self.failed()(why.into()))?;
        text.push(b'\n');
        (&self.file).write_all(&text).map_err(self.failed())?;
        noted.length += text.len() as u64;
        Ok(())
    }

    fn failed(&self) -> impl Fn(io::Error) -> Error {
        Error::cannot_write(self.path.display().to_string())
    }
}

/// What is open, and how many octets were read of it.
fn read(text: &[u8]) -> (BTreeMap<u64, Replacement>, u64) {
    let mut open = BTreeMap::new();
    let mut whole = 0;
    for line in text.split_inclusive(|octet| *octet == b'\n') {
        let Some(line_end) = line.strip_suffix(b"\n") else {
            break;
        };
        let Ok(read) = serde_json::from_slice::<JournalLine>(line_end) else {
            break;
        };
        match read.open {
            Some(replacement) => open.insert(read.id, replacement),
            None => open.remove(&read.id),
        };
        whole += line.len() as u64;
    }
    (open, whole)
}

/// Somebody else's journal would let that one choose what is deleted.
fn is_of_this_user(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    match is_own && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "others may write there; take write permission from them (chmod go-w), or name another folder",
        )),
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
            flags: vec!["\\Seen".into(), "na\"me\n".into()],
            date: (" 1-Jan-2020 10:00:00 +0100".into(), 1_577_869_200),
            step: ReplacementStep::Begun,
        }
    }

    /// A process that another test just starts has the lock, too, for a moment.
    fn reopened(folder: &Path, whose: &str) -> Journal {
        for _ in 0..1000 {
            match Journal::open(folder, whose) {
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
        let first = journal.begin(replacement(1)).unwrap();
        let second = journal.begin(replacement(2)).unwrap();
        let third = journal.begin(replacement(3)).unwrap();
        journal.end(first).unwrap();
        let appended = Replacement {
            step: ReplacementStep::Appended(9),
            ..replacement(3)
        };
        journal.note(third, appended.clone()).unwrap();
        assert!(journal.is_known_copy(&replacement(2), 9));
        assert!(!journal.is_known_copy(&replacement(3), 9));
        assert!(matches!(
            Journal::open(&state, "me"),
            Err(Error::Locked { .. })
        ));
        drop(journal);
        let journal = reopened(&state, "me");
        let open = [(second, replacement(2)), (third, appended)];
        assert_eq!(journal.open_ones(), open);
        assert_eq!(reopened(&state, "you").open_ones(), []);
        let mode = std::fs::metadata(&state).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_line_that_was_cut_off_tells_nothing_and_harms_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let journal = reopened(folder.path(), "me");
        journal.begin(replacement(1)).unwrap();
        let (path, whole) = (journal.path.clone(), journal.noted().length);
        journal.begin(replacement(2)).unwrap();
        drop(journal);
        let text = std::fs::read(&path).unwrap();
        for cut in usize::try_from(whole).unwrap()..text.len() {
            for tail in [&b""[..], b"\0\0\0", b"\0\n"] {
                std::fs::write(&path, [&text[..cut], tail].concat()).unwrap();
                let journal = reopened(folder.path(), "me");
                assert_eq!(journal.open_ones(), [(0, replacement(1))]);
                let next = journal.begin(replacement(3)).unwrap();
                drop(journal);
                let journal = reopened(folder.path(), "me");
                let both = [(0, replacement(1)), (next, replacement(3))];
                assert_eq!(journal.open_ones(), both);
            }
        }
    }

    #[test]
    fn a_folder_of_others_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), all).unwrap();
        assert!(Journal::open(folder.path(), "me").is_err());
    }
}
