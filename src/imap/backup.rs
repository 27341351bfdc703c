//! A Maildir for a folder of a server, which later runs go on with.
//!
//! * A message is a file in `cur`: `1577872800.V3U20.embody,S=1234:2,FS`: when it came, UIDVALIDITY and UID, its size, and its
//!   flags as letters, behind `;2,` where the file system refuses colons. So the names say what is there already: nothing else is kept, and nothing can disagree with them.
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

use sha2::{Digest as _, Sha256};

use super::names::shown;
use super::session::{Metadata, RemoteFolder};
use crate::error::Error;
use crate::platform::{self, BEFORE_FLAGS};

/// Files, and octets, that are synced at a time.
const SYNCED_FILES: usize = 1000;
const SYNCED_OCTETS: u64 = 64 << 20;
/// Keywords that have a letter.
const LETTERS: usize = 26;
/// Octets of a name of a folder that a file system takes for sure, besides what makes it unique.
const LONGEST_NAME: usize = 120;
const KEYWORDS: &str = "dovecot-keywords";
/// What the name of an unfinished message ends with.
const UNFINISHED: &str = ".embody-unfinished";

/// A Maildir at work.
pub(crate) struct Backup {
    folder: PathBuf,
    uidvalidity: u32,
    /// The messages that are there, by UID: their names in `cur`.
    there: HashMap<u32, String>,
    keywords: Vec<String>,
    before_flags: char,
    /// Messages in `tmp` that are to get their names in `cur`.
    unnamed: Vec<(PathBuf, String)>,
    unsynced: u64,
    /// Messages with a keyword that has no letter.
    pub(crate) without_letter: u64,
}

impl Backup {
    /// Opens the Maildir of a folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn open(folder: PathBuf, uidvalidity: u32) -> Result<Self, Error> {
        let mut backup = Self {
            uidvalidity,
            there: HashMap::new(),
            keywords: Vec::new(),
            before_flags: ':',
            unnamed: Vec::new(),
            unsynced: 0,
            without_letter: 0,
            folder,
        };
        backup.prepare().map_err(cannot_write(&backup.folder))?;
        Ok(backup)
    }

    fn prepare(&mut self) -> io::Result<()> {
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
        self.before_flags = platform::before_flags(&self.folder.join("tmp"))?;
        for entry in fs::read_dir(self.folder.join("cur"))? {
            // Names that are no text are none of ours.
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            if let Some((uidvalidity, uid)) = numbers(&name)
                && uidvalidity == self.uidvalidity
            {
                self.there.insert(uid, name);
            }
        }
        match fs::read_to_string(self.folder.join(KEYWORDS)) {
            Ok(text) => self.keywords = keywords(&text),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Whether a message is there. Its flags become the ones that it has now.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn has(&mut self, message: &Metadata) -> Result<bool, Error> {
        let Some(name) = self.there.get(&message.uid).cloned() else {
            return Ok(false);
        };
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

    /// Writes a message. It may get its name later: [`finish`](Self::finish).
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn put(&mut self, message: &Metadata, content: &[u8]) -> Result<(), Error> {
        let letters = self.letters(message)?;
        let seconds = message.internal_date.seconds;
        let name = format!(
            "{:010}.V{}U{}.embody,S={}{}2,{letters}",
            seconds.max(0),
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
            let date = time(seconds);
            file.set_times(FileTimes::new().set_modified(date).set_accessed(date))
        };
        write().map_err(cannot_write(&path))?;
        self.unnamed.push((path, name.clone()));
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

    fn name_all(&mut self) -> Result<(), Error> {
        if self.unnamed.is_empty() {
            return Ok(());
        }
        let cur = self.folder.join("cur");
        let failed = cannot_write(&cur);
        // What has no name yet, and nothing else, is there.
        platform::sync_tree(&self.folder.join("tmp")).map_err(&failed)?;
        for (path, name) in self.unnamed.drain(..) {
            fs::rename(&path, cur.join(&name)).map_err(&failed)?;
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
        let save = || {
            let mut file = tempfile::Builder::new()
                .suffix(UNFINISHED)
                .tempfile_in(self.folder.join("tmp"))?;
            file.write_all(text.as_bytes())?;
            platform::sync(file.as_file())?;
            file.persist(&path)?;
            Ok(())
        };
        let saved: io::Result<()> = save();
        saved.map_err(cannot_write(&path))
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

/// The path of a folder's Maildir in the output: a folder for each level of its name. A name that no path can have, or that
/// would mean another one, gets a piece of its SHA-256 behind it; a server could otherwise write anywhere.
pub(crate) fn place(folder: &RemoteFolder) -> PathBuf {
    let name = shown(&folder.name);
    let levels: Vec<&str> = match folder.delimiter {
        Some(delimiter) => name.split(delimiter).collect(),
        None => vec![name.as_str()],
    };
    let mut is_exact = levels.len() <= 30;
    let mut path = PathBuf::new();
    for level in levels.iter().take(30) {
        let mut safe: String = level
            .chars()
            .map(|symbol| match symbol {
                '/' | '\\' | ':' => '_',
                symbol if symbol.is_control() => '_',
                symbol => symbol,
            })
            .collect();
        let is_taken = matches!(
            safe.to_ascii_lowercase().as_str(),
            "" | "." | ".." | "cur" | "new" | "tmp" | KEYWORDS
        );
        if is_taken || safe.starts_with('.') || safe.ends_with(UNFINISHED) {
            safe.insert(0, '_');
        }
        while safe.len() > LONGEST_NAME {
            safe.pop();
        }
        is_exact &= safe == *level;
        path.push(safe);
    }
    if !is_exact {
        path.as_mut_os_string()
            .push(format!("-{}", short(&folder.name)));
    }
    path
}

/// The same for a folder whose path another one has, but for the case of its letters.
pub(crate) fn place_beside(folder: &RemoteFolder) -> PathBuf {
    let mut path = place(folder);
    path.as_mut_os_string()
        .push(format!("-{}", short(&folder.name)));
    path
}

fn short(name: &str) -> String {
    let hash = Sha256::digest(name.as_bytes());
    hash.iter()
        .take(4)
        .map(|octet| format!("{octet:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, delimiter: char) -> RemoteFolder {
        RemoteFolder {
            name: name.to_owned(),
            delimiter: Some(delimiter),
            attributes: Vec::new(),
            is_shared: false,
        }
    }

    #[test]
    fn no_name_of_a_folder_leads_out_or_into_a_maildir() {
        for (name, delimiter, exactly) in [
            ("INBOX", '/', Some("INBOX")),
            ("Archive/2020", '/', Some("Archive/2020")),
            ("Archive.2020", '.', Some("Archive/2020")),
            ("Entw&APw-rfe", '/', Some("Entwürfe")),
            ("../../etc/passwd", '/', None),
            ("/etc", '/', None),
            ("a/cur", '/', None),
            ("a/CUR", '/', None),
            ("a/b", '.', None),
            (".hidden", '/', None),
            ("", '/', None),
            ("a//b", '/', None),
            ("a\u{1}b", '/', None),
        ] {
            let path = place(&folder(name, delimiter));
            assert!(
                path.components()
                    .all(|part| matches!(part, std::path::Component::Normal(_))),
                "{path:?}"
            );
            let ends = |end: &str| path.iter().any(|part| part.eq_ignore_ascii_case(end));
            assert!(!ends("cur") && !ends("new") && !ends("tmp"), "{path:?}");
            match exactly {
                Some(exactly) => assert_eq!(path, Path::new(exactly)),
                None => assert!(path.to_string_lossy().contains('-'), "{path:?}"),
            }
        }
        let long = place(&folder(&"ü".repeat(3000), '/'));
        assert!(long.as_os_str().len() < 200);
        assert_ne!(place(&folder("a/cur", '/')), place(&folder("a/_cur", '/')));
    }

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
            internal_date: crate::imap::fetch::InternalDate {
                text: String::new(),
                seconds: 1,
            },
            size: 4,
            modseq: None,
            structure: None,
        };
        let open = || Backup::open(folder.path().to_owned(), 3).unwrap();
        let cur = folder.path().join("cur");
        let mut backup = open();
        backup.put(&message(1, &["\\Seen"]), b"mail").unwrap();
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
}
