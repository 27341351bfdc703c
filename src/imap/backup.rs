//! Writes the mail of a server folder into a Maildir, and continues an earlier backup.
//!
//! * A message is a file in `cur`, such as `1577872800.V3U20.embody,A=1300,S=1234:2,FS`
//!   ([`saved_name`](super::saved_name)). The separator before the flags is `;2,` on file systems that do not allow
//!   colons. These names are the only record of the messages that were already saved, so no second record can
//!   contradict them.
//! * A UID alone does not show that a message was saved: a server that was restored from a backup gives UIDs again. The date
//!   and the announced size of the message must be those of the file. Otherwise the message is downloaded again. If it is a
//!   different one, both files are kept.
//! * The name of an incomplete message contains `.embody-short,`. A message is incomplete if it is shorter than the server
//!   announced and its MIME structure has no end. The next run downloads it again. The name of a text that the server sent in
//!   place of a message contains `.embody-substitute,`, and the next run requests the message again.
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

use super::directories::{AccountName, FolderDirectory, KEYWORDS, OWNER, UNFINISHED, owner};
use super::names::shown;
use super::same_mail::is_same_mail;
use super::saved_name::{
    self, FileFit, SHORT, SUBSTITUTE, announced_in, numbers, size_in, split_flags,
};
use super::session::{Metadata, SelectResponse};
use super::substitute::{LONGEST_SUBSTITUTE, is_substitute};
use super::unchanged::{FolderState, digest};
use crate::error::Error;
use crate::platform;

/// Maximum number and total size, in bytes, of the files that are synced to disk together. One sync of many
/// files is faster than many syncs. After a crash, the files that were not synced yet are downloaded again.
const SYNCED_FILES: usize = 1000;
const SYNCED_OCTETS: u64 = 64 << 20;
/// Number of keywords that can have a letter: the file names of a Maildir use the letters a to z for keywords.
const LETTERS: usize = 26;

/// Maximum number of different messages with the same UID, date and sizes.
const MOST_ALIKE: u32 = 1000;

/// A Maildir that is being updated.
pub(crate) struct Backup {
    folder: PathBuf,
    uidvalidity: u32,
    /// File names of the complete messages in `cur`, by UID.
    there: HashMap<u32, String>,
    /// File names of further complete messages with the same UID, which the server has used for several messages.
    others: HashMap<u32, Vec<String>>,
    /// File names of the incomplete messages in `cur`, by UID. They are downloaded again.
    short: HashMap<u32, String>,
    /// File names of the texts in `cur` that the server sent in place of messages, by UID.
    substitutes: HashMap<u32, String>,
    /// State of the folder after the last complete update, if it was recorded.
    state: Option<FolderState>,
    keywords: Vec<String>,
    before_flags: char,
    /// Whether the directory may also contain messages of another folder. If so, two messages in it can have the
    /// same UID, and a UID does not show that a message was already saved.
    is_mixed: bool,
    /// Complete files in `tmp` that are not yet renamed into `cur`.
    unnamed: Vec<UnnamedFile>,
    unsynced: u64,
    /// Number of messages with keywords that the file name does not contain. A Maildir has letters for 26 keywords, so
    /// further keywords are not saved.
    pub(crate) without_letter: u64,
}

/// A complete file in `tmp` and its future name in `cur`.
struct UnnamedFile {
    path: PathBuf,
    name: String,
    /// Files in `cur` that the new file supersedes: an incomplete message, or a text sent in place of the message.
    replaced: Vec<String>,
}

impl Backup {
    /// Opens the Maildir of a folder. Creates it if it does not exist.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn open(
        output: &Path,
        directory: &FolderDirectory,
        account: &AccountName,
        uidvalidity: u32,
    ) -> Result<Self, Error> {
        let folder = output.join(&directory.path);
        let mut backup = Self {
            uidvalidity,
            is_mixed: directory.is_mixed,
            there: HashMap::new(),
            others: HashMap::new(),
            short: HashMap::new(),
            substitutes: HashMap::new(),
            state: None,
            keywords: Vec::new(),
            before_flags: ':',
            unnamed: Vec::new(),
            unsynced: 0,
            without_letter: 0,
            folder,
        };
        let prepared = backup.prepare(directory, account);
        prepared.map_err(cannot_write(&backup.folder))?;
        Ok(backup)
    }

    fn prepare(&mut self, directory: &FolderDirectory, account: &AccountName) -> io::Result<()> {
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
        let recorded = owner(&self.folder)?;
        if let Some(owner) = &recorded
            && owner.name != directory.name
        {
            let name = shown(&owner.name);
            let why = format!(
                "the directory contains the mail of a different folder, {name} (recorded in the file {OWNER}); name another directory"
            );
            return Err(io::Error::other(why));
        }
        self.before_flags = platform::before_flags(&self.folder.join("tmp"))?;
        for entry in fs::read_dir(self.folder.join("cur"))? {
            // A name that is not UTF-8 was not created by embody.
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            let Some((uidvalidity, uid)) = numbers(&name) else {
                continue;
            };
            if uidvalidity != self.uidvalidity {
                continue;
            }
            if name.contains(SHORT) {
                self.short.insert(uid, name);
            } else if name.contains(SUBSTITUTE) {
                self.substitutes.insert(uid, name);
            } else {
                self.add(uid, name);
            }
        }
        match recorded {
            Some(owner) if owner.account.as_ref() == Some(account) => self.state = owner.state,
            _ => self.replace_file(OWNER, &directory.owner(account, None))?,
        }
        match fs::read_to_string(self.folder.join(KEYWORDS)) {
            Ok(text) => self.keywords = keywords(&text),
            Err(why) if why.kind() == io::ErrorKind::NotFound => {}
            Err(why) => return Err(why),
        }
        Ok(())
    }

    /// Returns the HIGHESTMODSEQ of the last complete update. Messages that did not change since then need not be
    /// compared. `None` if all messages must be compared.
    pub(crate) fn modseq_before(&self, selected: &SelectResponse) -> Option<u64> {
        if self.is_mixed {
            return None;
        }
        let now = FolderState::of(selected, self.digest())?;
        self.state.as_ref()?.modseq_before(&now)
    }

    /// Records the state of the folder after a complete update.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn record_state(
        &mut self,
        directory: &FolderDirectory,
        account: &AccountName,
        selected: &SelectResponse,
    ) -> Result<(), Error> {
        let state = FolderState::of(selected, self.digest());
        if state.is_some() && state != self.state {
            let recorded = self.replace_file(OWNER, &directory.owner(account, state.as_ref()));
            recorded.map_err(cannot_write(&self.folder.join(OWNER)))?;
            self.state = state;
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let others = self.others.values().flatten();
        let all = self.there.values().chain(others);
        digest(
            all.chain(self.short.values())
                .chain(self.substitutes.values()),
        )
    }

    fn add(&mut self, uid: u32, name: String) {
        if let Some(before) = self.there.insert(uid, name) {
            self.others.entry(uid).or_default().push(before);
        }
    }

    /// Returns whether a message with this UID was saved.
    pub(crate) fn has_uid(&self, uid: u32) -> bool {
        !self.is_mixed && self.there.contains_key(&uid)
    }

    /// Returns the size of a saved message in bytes.
    pub(crate) fn size_of(&self, uid: u32) -> Option<u64> {
        size_in(self.there.get(&uid)?)
    }

    /// Whether the message was already saved. If so, and if its flags on the server have changed, its file is renamed.
    /// A file whose date or size differs from what the server announces is not this message.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn has(&mut self, message: &Metadata) -> Result<bool, Error> {
        let uid = message.uid;
        let Some(name) = self.there.get(&uid) else {
            return Ok(false);
        };
        let fit = |name: &str| match saved_name::fit(name, message) {
            // The directory mixes messages of several folders, so only an exact date and size show that this one is
            // from the right folder.
            FileFit::SizeUnknown if self.is_mixed => FileFit::Other,
            FileFit::Same if self.is_mixed && !message.internal_date.is_date() => FileFit::Other,
            fit => fit,
        };
        let mut found = fit(name);
        if found == FileFit::Other
            && let Some(others) = self.others.get_mut(&uid)
            && let Some(other) = others.iter_mut().find(|it| fit(it) != FileFit::Other)
            && let Some(name) = self.there.get_mut(&uid)
        {
            std::mem::swap(name, other);
            found = fit(name);
        }
        if self.was_substitute(uid) || found == FileFit::Other {
            return Ok(false);
        }
        let letters = self.letters(message)?;
        let Some(name) = self.there.get(&uid) else {
            return Ok(false);
        };
        let (base, before) = split_flags(name);
        let new = match found {
            FileFit::SizeUnknown => {
                let base = saved_name::with_announced(base, message.size);
                format!("{base}{}2,{letters}", self.before_flags)
            }
            _ if before == letters => return Ok(true),
            _ => format!("{base}{}2,{letters}", self.before_flags),
        };
        self.rename(uid, new)
    }

    /// Whether the saved file is really a text that the server sent in place of the message, saved by an earlier
    /// version. Such a file is no longer treated as the message.
    fn was_substitute(&mut self, uid: u32) -> bool {
        let Some(name) = self
            .there
            .get(&uid)
            .filter(|name| announced_in(name).is_none())
        else {
            return false;
        };
        let is_small = size_in(name).is_some_and(|size| size <= LONGEST_SUBSTITUTE as u64);
        let content = is_small.then(|| fs::read(self.folder.join("cur").join(name)));
        let is_substitute = content.is_some_and(|it| it.is_ok_and(|it| is_substitute(&it, 0)));
        if is_substitute && let Some(name) = self.there.remove(&uid) {
            self.substitutes.insert(uid, name);
        }
        is_substitute
    }

    /// Renames the file of a message. Returns false if the file does not exist: another program removed or renamed it since the
    /// directory was read, and the message counts as not saved.
    fn rename(&mut self, uid: u32, new: String) -> Result<bool, Error> {
        let Some(name) = self.there.get(&uid) else {
            return Ok(false);
        };
        let cur = self.folder.join("cur");
        if *name == new {
            return Ok(true);
        }
        match named_anew(&cur.join(name), &cur, &new) {
            Ok(new) => {
                self.there.insert(uid, new);
                Ok(true)
            }
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                self.there.remove(&uid);
                Ok(false)
            }
            Err(why) => Err(cannot_write(&cur.join(&new))(why)),
        }
    }

    /// Writes a message into `tmp`, from where it is renamed into `cur` later, at the latest by
    /// [`finish`](Self::finish). Without INTERNALDATE, the date comes from `original`: from its newest Received field,
    /// otherwise from its Date field. If an earlier run saved the same content, that file is only renamed.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn put(
        &mut self,
        message: &Metadata,
        original: &[u8],
        content: &[u8],
    ) -> Result<(), Error> {
        let uid = message.uid;
        let is_substitute = is_substitute(original, message.size);
        let is_known = self.there.contains_key(&uid) || self.substitutes.contains_key(&uid);
        if is_substitute && is_known {
            return Ok(());
        }
        let replaced = match (is_substitute, self.substitutes.remove(&uid)) {
            (true, _) => Vec::new(),
            (false, substitute) => {
                let Some(short) = self.replaced_short(uid, content)? else {
                    return Ok(());
                };
                substitute.into_iter().chain(short).collect()
            }
        };
        let letters = self.letters(message)?;
        let seconds = if message.internal_date.is_date() {
            Some(message.internal_date.seconds)
        } else {
            date_of(original)
        };
        let mark = if is_substitute { SUBSTITUTE } else { ".embody" };
        let sizes = (content.len() as u64, message.size);
        let place = (self.uidvalidity, uid);
        let base = saved_name::base(seconds.unwrap_or(0), place, mark, sizes);
        let name = format!("{base}{}2,{letters}", self.before_flags);
        if !is_substitute && self.select_same(uid, original, content)? {
            let is_renamed = self.rename(uid, name.clone())?;
            if let (true, Some(seconds)) = (is_renamed, seconds) {
                let path = self.folder.join("cur").join(&name);
                let set = File::open(&path).and_then(|file| set_date(&file, seconds));
                set.map_err(cannot_write(&path))?;
            }
            if is_renamed {
                return Ok(());
            }
        }
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
            match seconds {
                Some(seconds) => set_date(&file, seconds),
                // Neither the server nor the header has a date, so the modification time stays the time of writing.
                None => Ok(()),
            }
        };
        write().map_err(cannot_write(&path))?;
        self.unnamed.push(UnnamedFile {
            path,
            name: name.clone(),
            replaced,
        });
        if is_substitute {
            self.substitutes.insert(uid, name);
        } else {
            self.add(uid, name);
        }
        self.unsynced += content.len() as u64;
        if self.unnamed.len() >= SYNCED_FILES || self.unsynced >= SYNCED_OCTETS {
            self.name_all()
        } else {
            Ok(())
        }
    }

    /// Looks for the same content in the file of an earlier run, because the server announces another date or size than
    /// before. If it is found, that file is kept instead of the new one.
    fn select_same(&mut self, uid: u32, original: &[u8], content: &[u8]) -> Result<bool, Error> {
        let cur = self.folder.join("cur");
        let is_same = |name: &String| {
            // Files of version 0.3.0 do not record the announced size. They can differ from the message, because that
            // version converted it with other options.
            let is_old = announced_in(name).is_none();
            let lengths = [original.len() as u64, content.len() as u64];
            let may_be_same = is_old || size_in(name).is_some_and(|it| lengths.contains(&it));
            may_be_same
                && fs::read(cur.join(name)).is_ok_and(|saved| {
                    saved == content
                        || saved == original
                        || is_old && is_same_mail(&saved, original)
                })
        };
        let Some(name) = self.there.get_mut(&uid) else {
            return Ok(false);
        };
        if is_same(name) {
            return Ok(true);
        }
        let others = self.others.get_mut(&uid);
        let Some(other) = others.and_then(|it| it.iter_mut().find(|it| is_same(it))) else {
            return Ok(false);
        };
        std::mem::swap(name, other);
        Ok(true)
    }

    /// Returns the incomplete file of an earlier run that the new content replaces. Returns `None` if that file
    /// contains at least as much: the server sent the message incompletely again, so the new content is dropped. The
    /// file of a different message is kept.
    fn replaced_short(
        &mut self,
        uid: u32,
        content: &[u8],
    ) -> Result<Option<Option<String>>, Error> {
        let Some(name) = self.short.get(&uid) else {
            return Ok(Some(None));
        };
        let saved = match fs::read(self.folder.join("cur").join(name)) {
            Ok(saved) => saved,
            Err(_) => return Ok(Some(None)),
        };
        if saved.starts_with(content) {
            return Ok(None);
        }
        if !content.starts_with(&saved) && !is_same_mail(&saved, content) {
            return Ok(Some(None));
        }
        if saved.len() >= content.len() {
            return Ok(None);
        }
        Ok(Some(self.short.remove(&uid)))
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
        match named_anew(&cur.join(&name), &cur, &new) {
            // The file was removed or renamed by another program, so there is nothing to mark. That is not an error.
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
        for file in self.unnamed.drain(..) {
            let name = named_anew(&file.path, &cur, &file.name).map_err(&failed)?;
            if name != file.name {
                let of_uid = self.there.values_mut().chain(self.substitutes.values_mut());
                of_uid
                    .filter(|it| **it == file.name)
                    .for_each(|it| it.clone_from(&name));
            }
            for old in file.replaced {
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

    /// Saves the list of keywords before any file name uses a new letter, so that every letter in use has a meaning.
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

/// Sets the modification time of a file to the date of its message.
fn set_date(file: &File, seconds: i64) -> io::Result<()> {
    let date = time(seconds);
    file.set_times(FileTimes::new().set_modified(date).set_accessed(date))
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

/// Renames a file to a name in the directory `cur`. If another file has this name, it stays, and the name gets a number.
/// Returns the name.
fn named_anew(old: &Path, cur: &Path, name: &str) -> io::Result<String> {
    let mut free = name.to_owned();
    let mut number = 1;
    loop {
        match platform::rename_to_new(old, &cur.join(&free)) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists && number < MOST_ALIKE => {
                number += 1;
                free = saved_name::numbered(name, number);
            }
            done => return done.map(|()| free),
        }
    }
}

#[cfg(test)]
mod tests;
