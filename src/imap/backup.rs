//! A Maildir for a folder of a server, which later runs go on with.
//!
//! * A message is a file in `cur`: `1577872800.V3U20.embody,S=1234:2,FS`: when it came, UIDVALIDITY and UID, its size, and its
//!   flags as letters, behind `;2,` where the file system refuses colons. So the names say what is there already: nothing else is kept, and nothing can disagree with them.
//! * A message that is shorter than the server says, and not whole by its own structure either, is `.embody-short,`: it is read
//!   again in the next run.
//! * The file's time is INTERNALDATE. Keywords are the letters a to z, which `dovecot-keywords` names, as Dovecot's Maildirs have
//!   it; a keyword behind the 26th has no letter. `$Forwarded` is P besides, as other programs have it.
//! * Files are written in `tmp`, synced some at a time, and then get their names: what is in `cur` is whole, whatever was killed.
//! * What is gone from the server stays. Flags of what is there become those of the server.

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

/// Files, and octets, that are synced at a time.
const SYNCED_FILES: usize = 1000;
const SYNCED_OCTETS: u64 = 64 << 20;
/// Keywords that have a letter.
const LETTERS: usize = 26;
/// The middle of the name of a message of which the server gave too little.
const SHORT: &str = ".embody-short";

/// A Maildir at work.
pub(crate) struct Backup {
    folder: PathBuf,
    uidvalidity: u32,
    /// The messages that are there, by UID: their names in `cur`.
    there: HashMap<u32, String>,
    /// The same for messages of which the server gave too little: they are read again.
    short: HashMap<u32, String>,
    keywords: Vec<String>,
    before_flags: char,
    /// Whether some of the messages may be those of another folder: then a UID alone does not say that a message is there.
    is_mixed: bool,
    /// Messages in `tmp` that are to get their names in `cur`.
    unnamed: Vec<(PathBuf, u32, String)>,
    unsynced: u64,
    /// Messages with a keyword that has no letter.
    pub(crate) without_letter: u64,
}

impl Backup {
    /// Opens the Maildir of a folder, which is made if it is not there.
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
                    "the file {OWNER} says that this directory contains the mail of a different folder, {name}"
                );
                return Err(io::Error::other(why));
            }
            None => self.replace_file(OWNER, &directory.owner())?,
        }
        self.before_flags = platform::before_flags(&self.folder.join("tmp"))?;
        for entry in fs::read_dir(self.folder.join("cur"))? {
            // Names that are no text are none of ours.
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            if let Some((uidvalidity, uid)) = numbers(&name)
                && uidvalidity == self.uidvalidity
            {
                match name.contains(SHORT) {
                    true => self.short.insert(uid, name),
                    false => self.there.insert(uid, name),
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

    /// Whether a message with this UID is there.
    pub(crate) fn has_uid(&self, uid: u32) -> bool {
        !self.is_mixed && self.there.contains_key(&uid)
    }

    /// The size of a message that is there.
    pub(crate) fn size_of(&self, uid: u32) -> Option<u64> {
        size_in(self.there.get(&uid)?)
    }

    /// Whether a message is there. Its flags become the ones that it has now.
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
                // Somebody took it away, or gave it other flags meanwhile.
                Err(why) if why.kind() == io::ErrorKind::NotFound => {
                    self.there.remove(&message.uid);
                    return Ok(false);
                }
                Err(why) => return Err(cannot_write(&cur.join(&new))(why)),
            };
        }
        Ok(true)
    }

    /// Writes a message. It may get its name later: [`finish`](Self::finish). A message without INTERNALDATE has the date of
    /// `original`: of its newest Received field, or else of its Date.
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
            // An earlier run got as much of the message.
            return Ok(());
        }
        let letters = self.letters(message)?;
        let seconds = match message.internal_date.is_date() {
            true => Some(message.internal_date.seconds),
            false => date_of(original),
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
                // The time of the backup is wrong, and a better one is not known.
                None => Ok(()),
            }
        };
        write().map_err(cannot_write(&path))?;
        self.unnamed.push((path, message.uid, name.clone()));
        self.there.insert(message.uid, name);
        self.unsynced += content.len() as u64;
        match self.unnamed.len() >= SYNCED_FILES || self.unsynced >= SYNCED_OCTETS {
            true => self.name_all(),
            false => Ok(()),
        }
    }

    /// All messages that were written get their names.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.name_all()
    }

    /// Marks a message that is there as one of which the server gave too little, so that the next run reads it again.
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
            // Another program gave it other flags or took it away.
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
        // What has no name yet, and nothing else, is there.
        platform::sync_tree(&self.folder.join("tmp")).map_err(&failed)?;
        for (path, uid, name) in self.unnamed.drain(..) {
            fs::rename(&path, cur.join(&name)).map_err(&failed)?;
            // What an earlier run saved of the message is replaced by more.
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

    /// The letters of a message's flags, in their order. A keyword that is new gets the next one.
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
                // Systems' flags that no document knows.
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

    /// A letter means something before any name has it.
    fn save_keywords(&self) -> Result<(), Error> {
        let path = self.folder.join(KEYWORDS);
        let text: String = (0..)
            .zip(&self.keywords)
            .map(|(at, keyword): (usize, _)| format!("{at} {keyword}\n"))
            .collect();
        let saved = self.replace_file(KEYWORDS, text.as_bytes());
        saved.map_err(cannot_write(&path))
    }

    /// Writes a file of the Maildir, whole or not at all.
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

/// UIDVALIDITY and UID in the name of a message of ours.
fn numbers(name: &str) -> Option<(u32, u32)> {
    let mut parts = name.split('.');
    let (_time, numbers, ours) = (parts.next()?, parts.next()?, parts.next()?);
    if !ours.starts_with("embody") {
        return None;
    }
    let (uidvalidity, uid) = numbers.strip_prefix('V')?.split_once('U')?;
    Some((uidvalidity.parse().ok()?, uid.parse().ok()?))
}

/// The size in the name of a message of ours.
fn size_in(name: &str) -> Option<u64> {
    let (_, size) = name.split_once(",S=")?;
    let end = size.find(|symbol: char| !symbol.is_ascii_digit());
    size[..end.unwrap_or(size.len())].parse().ok()
}

/// When a message came, by its own header.
fn date_of(message: &[u8]) -> Option<i64> {
    let date = crate::engine::date::of(message, SystemTime::now())?;
    i64::try_from(date.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()
}

/// The keywords of a file of Dovecot's, in the order of their letters.
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
    let time = match seconds < 0 {
        true => UNIX_EPOCH.checked_sub(duration),
        false => UNIX_EPOCH.checked_add(duration),
    };
    time.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_messages_say_what_is_there() {
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
    fn flags_are_found_behind_what_another_file_system_has_in_place_of_the_colon() {
        let folder = tempfile::tempdir().unwrap();
        let message = |uid, flags: &[&str]| Metadata {
            uid,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            odd_flags: Vec::new(),
            internal_date: crate::imap::fetch::InternalDate {
                text: " 1-Jan-1970 00:00:01 +0000".to_owned(),
                seconds: 1,
            },
            size: 4,
            modseq: None,
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
            internal_date: crate::imap::fetch::InternalDate::of(""),
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
