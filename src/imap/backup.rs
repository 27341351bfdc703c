//! Writes the mail of a server folder into a Maildir, and continues an earlier backup.
//!
//! * A message is a file in `cur`, such as `1577872800.V3U20.embody,S=1234:2,FS`: the date of receipt, UIDVALIDITY and UID, the
//!   size, and the flags as letters. The separator before the flags is `;2,` on file systems that do not allow colons. These
//!   names are the only record of the messages that were already saved, so no second record can contradict them.
//! * The name of an incomplete message contains `.embody-short,`. A message is incomplete if it is shorter than the server
//!   announced and its MIME structure has no end. The next run downloads it again.
//! * The modification time of the file is INTERNALDATE. Keywords are stored as the letters a to z, which the file
//!   `dovecot-keywords` explains, as in the Maildirs of Dovecot. Only the first 26 keywords get a letter. `$Forwarded` is also
//!   stored as P, as other programs do.
//! * Files are written in `tmp`, synced in groups, and then renamed into `cur`. So a file in `cur` is complete even after a
//!   crash.
//! * A message that was deleted on the server is kept. The flags of all other messages are updated from the server.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, FileTimes};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::directories::{FolderDirectory, KEYWORDS, OWNER, UNFINISHED, owner};
use super::names::shown;
use super::session::Metadata;
use crate::error::Error;
use crate::platform::{self, BEFORE_FLAGS};

/// Maximum number and total size, in bytes, of the files that are synced to disk together. One sync of many
/// files is faster than many syncs. After a crash, the files that were not synced yet are downloaded again.
const SYNCED_FILES: usize = 1000;
const SYNCED_OCTETS: u64 = 64 << 20;
/// Number of keywords that can have a letter: the file names of a Maildir use the letters a to z for keywords.
const LETTERS: usize = 26;
/// Part of a file name that marks the message as incomplete, so that the next run downloads it again.
const SHORT: &str = ".embody-short";

/// A Maildir that is being updated.
pub(crate) struct Backup {
    folder: PathBuf,
    uidvalidity: u32,
    /// File names of the complete messages in `cur`, by UID.
    there: HashMap<u32, String>,
    /// File names of the incomplete messages in `cur`, by UID. They are downloaded again.
    short: HashMap<u32, String>,
    keywords: Vec<String>,
    before_flags: char,
    /// Whether the directory may also contain messages of another folder. If so, two messages in it can have the
    /// same UID, and a UID does not show that a message was already saved.
    is_mixed: bool,
    /// Complete files in `tmp` that are not yet renamed into `cur`: path, UID and future name.
    unnamed: Vec<(PathBuf, u32, String)>,
    unsynced: u64,
    /// Number of messages with keywords that the file name does not contain. A Maildir has letters for 26 keywords, so
    /// further keywords are not saved.
    pub(crate) without_letter: u64,
}

impl Backup {
    /// Opens the Maildir of a folder. Creates it if it does not exist.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn open(
        output: &Path,
        directory: &FolderDirectory,
        uidvalidity: u32,
    ) -> Result<Self, Error> {
        let folder = output.join(&directory.path);
        let mut backup = Self {
            uidvalidity,
            is_mixed: directory.is_mixed,
            there: HashMap::new(),
            short: HashMap::new(),
            keywords: Vec::new(),
            before_flags: ':',
            unnamed: Vec::new(),
            unsynced: 0,
            without_letter: 0,
            folder,
        };
        let prepared = backup.prepare(directory);
        prepared.map_err(cannot_write(&backup.folder))?;
        Ok(backup)
    }

    fn prepare(&mut self, directory: &FolderDirectory) -> io::Result<()> {
        for part in ["cur", "new", "tmp"] {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(self.folder.join(part))?;
        }
        for entry in fs::read_dir(self.folder.join("tmp"))? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().ends_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            }
        }
        match owner(&self.folder)? {
            Some(owner) if owner.name == directory.name => {}
            Some(owner) => {
                let name = shown(&owner.name);
                let why = format!(
                    "the directory contains the mail of a different folder, {name} (recorded in the file {OWNER}); name another directory"
                );
                return Err(io::Error::other(why));
            }
            None => self.replace_file(OWNER, &directory.owner())?,
        }
        self.before_flags = platform::before_flags(&self.folder.join("tmp"))?;
        for entry in fs::read_dir(self.folder.join("cur"))? {
            // A name that is not UTF-8 was not created by embody.
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            if let Some((uidvalidity, uid)) = numbers(&name)
                && uidvalidity == self.uidvalidity
            {
                if name.contains(SHORT) {
                    self.short.insert(uid, name)
                } else {
                    self.there.insert(uid, name)
                };
            }
        }
        match fs::read_to_string(self.folder.join(KEYWORDS)) {
            Ok(text) => self.keywords = keywords(&text),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Returns whether a message with this UID was saved.
    pub(crate) fn has_uid(&self, uid: u32) -> bool {
        !self.is_mixed && self.there.contains_key(&uid)
    }

    /// Returns the size of a saved message in bytes.
    pub(crate) fn size_of(&self, uid: u32) -> Option<u64> {
        size_in(self.there.get(&uid)?)
    }

    /// Returns whether the message was already saved. If so, renames its file if the flags on the server are different now.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn has(&mut self, message: &Metadata) -> Result<bool, Error> {
        let Some(name) = self.there.get(&message.uid).cloned() else {
            return Ok(false);
        };
        let is_of_date =
            name.starts_with(&format!("{:010}.", message.internal_date.seconds.max(0)));
        if self.is_mixed && !is_of_date {
            return Ok(false);
        }
        let (base, before) = name
            .rsplit_once(|symbol| BEFORE_FLAGS.map(char::from).contains(&symbol))
            .and_then(|(base, flags)| Some((base, flags.strip_prefix("2,")?)))
            .unwrap_or((&name, ""));
        let letters = self.letters(message)?;
        if before != letters {
            let new = format!("{base}{}2,{letters}", self.before_flags);
            let cur = self.folder.join("cur");
            match fs::rename(cur.join(&name), cur.join(&new)) {
                Ok(()) => self.there.insert(message.uid, new),
                // Another program removed or renamed the file since the directory was read. The message counts as not saved and
                // is downloaded again.
                Err(why) if why.kind() == io::ErrorKind::NotFound => {
                    self.there.remove(&message.uid);
                    return Ok(false);
                }
                Err(why) => return Err(cannot_write(&cur.join(&new))(why)),
            };
        }
        Ok(true)
    }

    /// Writes a message into `tmp`. It is renamed into `cur` later, at the latest by [`finish`](Self::finish). If the server
    /// returned no INTERNALDATE, the date comes from `original`: from its newest Received field, otherwise from its Date field.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn put(
        &mut self,
        message: &Metadata,
        original: &[u8],
        content: &[u8],
    ) -> Result<(), Error> {
        let before = self.short.get(&message.uid).and_then(|name| size_in(name));
        if before.is_some_and(|before| before >= content.len() as u64) {
            // The server returned the message incompletely again. The file of an earlier run is at least as long, so this
            // file is kept and the new content is dropped.
            return Ok(());
        }
        let letters = self.letters(message)?;
        let seconds = if message.internal_date.is_date() {
            Some(message.internal_date.seconds)
        } else {
            date_of(original)
        };
        let name = format!(
            "{:010}.V{}U{}.embody,S={}{}2,{letters}",
            seconds.unwrap_or(0).max(0),
            self.uidvalidity,
            message.uid,
            content.len(),
            self.before_flags
        );
        let unfinished = format!("V{}U{}{UNFINISHED}", self.uidvalidity, message.uid);
        let path = self.folder.join("tmp").join(unfinished);
        let write = || {
            let mut options = File::options();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(content)?;
            match seconds.map(time) {
                Some(date) => {
                    file.set_times(FileTimes::new().set_modified(date).set_accessed(date))
                }
                // Neither the server nor the header contains a date. The file keeps the current time as its modification time.
                None => Ok(()),
            }
        };
        write().map_err(cannot_write(&path))?;
        self.unnamed.push((path, message.uid, name.clone()));
        self.there.insert(message.uid, name);
        self.unsynced += content.len() as u64;
        if self.unnamed.len() >= SYNCED_FILES || self.unsynced >= SYNCED_OCTETS {
            self.name_all()
        } else {
            Ok(())
        }
    }

    /// Renames all messages in `tmp` into `cur`.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.name_all()
    }

    /// Renames a message, so that its name marks it as incomplete and the next run downloads it again.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn mark_short(&mut self, uid: u32) -> Result<(), Error> {
        self.name_all()?;
        let Some(name) = self.there.remove(&uid) else {
            return Ok(());
        };
        let new = name.replacen(".embody,", &format!("{SHORT},"), 1);
        let cur = self.folder.join("cur");
        match fs::rename(cur.join(&name), cur.join(&new)) {
            // If the file is missing, another program removed or renamed it. Then there is no file to mark, which is
            // not an error.
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(cannot_write(&cur.join(&new))(why))
            }
            _ => Ok(()),
        }
    }

    fn name_all(&mut self) -> Result<(), Error> {
        if self.unnamed.is_empty() {
            return Ok(());
        }
        let cur = self.folder.join("cur");
        let failed = cannot_write(&cur);
        // `tmp` contains exactly the files that must be synced, so the whole directory is synced.
        platform::sync_tree(&self.folder.join("tmp")).map_err(&failed)?;
        for (path, uid, name) in self.unnamed.drain(..) {
            fs::rename(&path, cur.join(&name)).map_err(&failed)?;
            // The new file contains more of the message than the incomplete file of an earlier run, which is removed.
            if let Some(old) = self.short.remove(&uid) {
                match fs::remove_file(cur.join(old)) {
                    Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(failed(why)),
                    _ => {}
                }
            }
        }
        self.unsynced = 0;
        platform::sync_folder(&cur).map_err(failed)
    }

    /// Returns the letters for the flags of a message in alphabetical order. A new keyword gets the next free letter.
    fn letters(&mut self, message: &Metadata) -> Result<String, Error> {
        let mut letters = String::new();
        let mut is_without = false;
        for flag in &message.flags {
            let lower = flag.to_ascii_lowercase();
            let letter = match lower.as_str() {
                "\\draft" => Some('D'),
                "\\flagged" => Some('F'),
                "\\answered" => Some('R'),
                "\\seen" => Some('S'),
                "\\deleted" => Some('T'),
                "$forwarded" => {
                    letters.push('P');
                    self.letter(flag)?
                }
                // System flags that no RFC defines have no fixed letter in a Maildir, so they are stored like keywords.
                _ => self.letter(flag)?,
            };
            match letter {
                Some(letter) => letters.push(letter),
                None => is_without = true,
            }
        }
        self.without_letter += u64::from(is_without);
        let mut letters: Vec<char> = letters.chars().collect();
        letters.sort_unstable();
        letters.dedup();
        Ok(letters.into_iter().collect())
    }

    fn letter(&mut self, keyword: &str) -> Result<Option<char>, Error> {
        let is_same = |known: &String| known.eq_ignore_ascii_case(keyword);
        let at = match self.keywords.iter().position(is_same) {
            Some(at) => at,
            None if self.keywords.len() >= LETTERS => return Ok(None),
            None => {
                self.keywords.push(keyword.to_owned());
                self.save_keywords()?;
                self.keywords.len() - 1
            }
        };
        Ok(u8::try_from(at).ok().map(|at| char::from(b'a' + at)))
    }

    /// Saves the list of keywords. This happens before a file name contains a new letter, so that every letter has a meaning.
    fn save_keywords(&self) -> Result<(), Error> {
        let path = self.folder.join(KEYWORDS);
        let text: String = (0..)
            .zip(&self.keywords)
            .map(|(at, keyword): (usize, _)| format!("{at} {keyword}\n"))
            .collect();
        let saved = self.replace_file(KEYWORDS, text.as_bytes());
        saved.map_err(cannot_write(&path))
    }

    /// Replaces a file of the Maildir atomically.
    fn replace_file(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .suffix(UNFINISHED)
            .tempfile_in(self.folder.join("tmp"))?;
        file.write_all(content)?;
        platform::sync(file.as_file())?;
        file.persist(self.folder.join(name))?;
        Ok(())
    }
}

fn cannot_write(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let what = path.display().to_string();
    move |source| Error::Write {
        what: what.clone(),
        source,
    }
}

/// Returns UIDVALIDITY and UID in the file name of a message. Returns `None` if embody did not create the file.
fn numbers(name: &str) -> Option<(u32, u32)> {
    let mut parts = name.split('.');
    let (_time, numbers, ours) = (parts.next()?, parts.next()?, parts.next()?);
    if !ours.starts_with("embody") {
        return None;
    }
    let (uidvalidity, uid) = numbers.strip_prefix('V')?.split_once('U')?;
    Some((uidvalidity.parse().ok()?, uid.parse().ok()?))
}

/// Returns the size of a message in bytes according to its file name.
fn size_in(name: &str) -> Option<u64> {
    let (_, size) = name.split_once(",S=")?;
    let end = size.find(|symbol: char| !symbol.is_ascii_digit());
    size[..end.unwrap_or(size.len())].parse().ok()
}

/// Returns the date of a message according to its header fields, in seconds since 1970.
fn date_of(message: &[u8]) -> Option<i64> {
    let date = crate::engine::date::of(message, SystemTime::now())?;
    i64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// Parses the file `dovecot-keywords`. Returns the keywords in the order of their letters.
fn keywords(text: &str) -> Vec<String> {
    let mut keywords = Vec::new();
    for line in text.lines() {
        let Some((number, keyword)) = line.split_once(' ') else {
            continue;
        };
        if let Ok(number) = number.parse::<usize>()
            && number < LETTERS
        {
            if keywords.len() <= number {
                keywords.resize(number + 1, String::new());
            }
            keywords[number] = keyword.to_owned();
        }
    }
    keywords
}

fn time(seconds: i64) -> SystemTime {
    let duration = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds < 0 {
        UNIX_EPOCH.checked_sub(duration)
    } else {
        UNIX_EPOCH.checked_add(duration)
    };
    time.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_is_read_from_a_backup_file_name_and_keywords_from_their_file() {
        assert_eq!(numbers("1577872800.V3U20.embody,S=12:2,S"), Some((3, 20)));
        for other in [
            "1577872800.V3U20.host,S=12:2,S",
            "x",
            "1.V3.embody",
            "1.VxU1.embody",
        ] {
            assert_eq!(numbers(other), None);
        }
        assert_eq!(keywords("0 a\n2 c\nx\n99 z\n"), ["a", "", "c"]);
    }

    #[test]
    fn flags_are_found_after_each_substitute_for_the_colon() {
        let folder = tempfile::tempdir().unwrap();
        let message = |uid, flags: &[&str]| Metadata {
            uid,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            odd_flags: Vec::new(),
            internal_date: crate::imap::internal_date::InternalDate {
                text: " 1-Jan-1970 00:00:01 +0000".to_owned(),
                seconds: 1,
            },
            size: 4,
            structure: None,
        };
        let directory = FolderDirectory {
            path: PathBuf::new(),
            name: "INBOX".to_owned(),
            is_mixed: false,
        };
        let open = || Backup::open(folder.path(), &directory, 3).unwrap();
        let cur = folder.path().join("cur");
        let mut backup = open();
        backup
            .put(&message(1, &["\\Seen"]), b"mail", b"mail")
            .unwrap();
        backup.finish().unwrap();
        let there = cur.join("0000000001.V3U1.embody,S=4:2,S");
        fs::rename(&there, cur.join("0000000001.V3U1.embody,S=4;2,S")).unwrap();
        let names = || -> Vec<_> {
            let entries = fs::read_dir(&cur).unwrap().flatten();
            entries.map(|entry| entry.file_name()).collect()
        };
        assert!(open().has(&message(1, &["\\Seen"])).unwrap());
        assert_eq!(names(), ["0000000001.V3U1.embody,S=4;2,S"]);
        assert!(open().has(&message(1, &["\\Answered"])).unwrap());
        assert_eq!(names(), ["0000000001.V3U1.embody,S=4:2,R"]);
        assert!(!open().has(&message(2, &[])).unwrap());
    }

    #[test]
    fn a_message_that_was_too_short_is_read_again_and_replaced_by_a_longer_one() {
        let folder = tempfile::tempdir().unwrap();
        let directory = FolderDirectory {
            path: PathBuf::new(),
            name: "INBOX".to_owned(),
            is_mixed: false,
        };
        let message = Metadata {
            internal_date: crate::imap::internal_date::InternalDate::of(""),
            ..Metadata::unknown(7)
        };
        let open = || Backup::open(folder.path(), &directory, 3).unwrap();
        let names = || -> Vec<_> {
            let entries = fs::read_dir(folder.path().join("cur")).unwrap().flatten();
            let mut names: Vec<_> = entries
                .map(|it| it.file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let text = b"Received: by b; Fri, 02 May 2003 10:11:12 +0000\r\nDate: Thu, 1 May 2003 10:11:12 +0000\r\n\r\nmore";
        for (content, kept) in [
            (&text[..20], 20),
            (&text[..10], 20),
            (&text[..], text.len()),
        ] {
            let mut backup = open();
            assert!(!backup.has(&message).unwrap());
            backup.put(&message, content, content).unwrap();
            backup.finish().unwrap();
            if content.len() < text.len() {
                backup.mark_short(7).unwrap();
            }
            assert!(
                names()
                    .iter()
                    .any(|name| size_in(name) == Some(kept as u64)),
                "{:?}",
                names()
            );
        }
        let last = names();
        assert!(
            last[last.len() - 1].starts_with("1051870272.V3U7.embody,S="),
            "{last:?}"
        );
        assert!(open().has(&message).unwrap());
    }
}
