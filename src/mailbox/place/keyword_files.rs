//! The files in which mail servers store the keywords of a Maildir: `dovecot-keywords` and the directory
//! `courierimapkeywords`. A copy of a Maildir contains them, so that its messages keep their keywords.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::mailbox::forms::keywords::{
    CourierKeywords, DOVECOT, KeywordLetters, Keywords, courier_list,
};
use crate::mailbox::place::folder::{FileName, base_of};
use crate::mailbox::temporary::{folder_of, temporary_in};
use crate::platform::{self, OsStrExt as _, absent};

/// Directory in which Courier stores the keywords of messages.
pub(crate) const COURIER: &str = "courierimapkeywords";

/// Maximum size of a file that is read, in bytes. Courier's list of a folder with a million messages is smaller.
const LONGEST: u64 = 256 << 20;
/// Maximum number of files of single messages. Courier moves their content to its list from time to time.
const MOST_FILES: usize = 100_000;

/// The keywords of the messages in one folder of a Maildir.
#[derive(Default)]
pub(crate) struct FolderKeywords {
    letters: KeywordLetters,
    courier: CourierKeywords,
}

impl FolderKeywords {
    /// Reads the files of a Maildir. A file that does not exist or cannot be read is treated as empty.
    pub(crate) fn of(folder: &Path) -> Self {
        let letters = read(&folder.join(DOVECOT));
        Self {
            letters: letters
                .map_or_else(KeywordLetters::default, |it| KeywordLetters::of_file(&it)),
            courier: courier(&folder.join(COURIER)),
        }
    }

    /// Adds a file of an archive, by its path below the Maildir. Returns whether it is a file with keywords.
    pub(crate) fn add_file(&mut self, path: &Path, content: &[u8]) -> bool {
        let name = path.file_name().unwrap_or_default();
        if path == Path::new(DOVECOT) {
            self.letters = KeywordLetters::of_file(content);
        } else if path.parent() == Some(Path::new(COURIER)) {
            self.courier.add_file(name.as_bytes(), content);
        } else {
            return false;
        }
        true
    }

    /// Returns the number of messages with keywords of Courier.
    pub(crate) fn messages_of_courier(&self) -> u64 {
        self.courier.messages().count() as u64
    }

    /// Reads the files of a Maildir that is copied to `to`. A stopped run may have added letters to the file in the copy.
    pub(crate) fn of_copy(folder: &Path, to: &Path) -> Self {
        let keywords = Self::of(folder);
        match read(&to.join(DOVECOT)) {
            Some(letters) => Self {
                letters: KeywordLetters::of_file(&letters),
                ..keywords
            },
            None => keywords,
        }
    }

    /// Returns the keywords of the message with this path, and the letters in its name that no file explains.
    pub(crate) fn of_message(&self, path: &Path) -> (Keywords, Vec<char>) {
        let name = FileName::of_path(path);
        let letters = name.letters().iter().filter(|it| it.is_ascii_lowercase());
        let named = letters
            .clone()
            .filter_map(|letter| self.letters.name(*letter));
        let of_dovecot = Keywords::of_names(named);
        let keywords = match self.courier.of_message(name.base) {
            Some(of_courier) => of_dovecot.with(of_courier),
            None => of_dovecot,
        };
        let unknown = letters.filter(|letter| self.letters.name(**letter).is_none());
        (
            keywords,
            unknown.map(|letter| char::from(*letter)).collect(),
        )
    }

    /// Writes Courier's list for the copy of the Maildir. The sizes in the names of changed messages are different there,
    /// so messages are found by the unique parts of their names.
    pub(crate) fn write_courier(&self, to: &Path, colon: char) -> io::Result<()> {
        let entries = self.courier.messages();
        let known: HashMap<&[u8], &Keywords> =
            entries.map(|(name, own)| (base_of(name), own)).collect();
        if known.is_empty() {
            return Ok(());
        }
        let mut messages = Vec::new();
        for part in ["cur", "new"] {
            let Some(entries) = absent(fs::read_dir(to.join(part)))? else {
                continue;
            };
            for entry in entries {
                let file = entry?.file_name();
                let name = FileName::of(file.as_bytes()).base;
                if let Some(own) = known.get(base_of(name)) {
                    messages.push((name.to_owned(), (*own).clone()));
                }
            }
        }
        messages.sort_by(|one, other| one.0.cmp(&other.0));
        let folder = to.join(COURIER);
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{colon}list"));
        replace_file(&path, &courier_list(&messages))
    }

    /// Stores the keywords of a message under its new name, so that Courier finds them. Returns the new file, or `None` if no
    /// file is needed.
    pub(crate) fn follow(
        &self,
        folder: &Path,
        (old, new): (&Path, &Path),
    ) -> io::Result<Option<PathBuf>> {
        let (before, after) = (base(old), base(new));
        let own = self.courier.of_message(before);
        let Some(own) = own.filter(|_| before != after) else {
            return Ok(None);
        };
        let content: String = own.names().map(|name| format!("{name}\n")).collect();
        let file = folder.join(COURIER).join(OsStr::from_bytes(after));
        replace_file(&file, content.as_bytes())?;
        Ok(Some(file))
    }

    /// Returns the letters of the keywords, and adds new letters to those of the folder. Also returns the keywords that get no
    /// letter.
    pub(crate) fn letters_of(&mut self, keywords: &Keywords) -> (String, Vec<String>) {
        letters_of(&mut self.letters, keywords)
    }

    /// Returns the content of `dovecot-keywords`.
    pub(crate) fn dovecot_file(&self) -> String {
        self.letters.file()
    }
}

/// Returns the letters of the keywords in alphabetical order, and adds new ones to `letters`. Also returns the keywords
/// that get no letter.
pub(crate) fn letters_of(
    letters: &mut KeywordLetters,
    keywords: &Keywords,
) -> (String, Vec<String>) {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    for name in keywords.names() {
        match letters.letter(name) {
            Some(letter) => found.push(letter),
            None => lost.push(name.to_owned()),
        }
    }
    found.sort_unstable();
    (found.into_iter().collect(), lost)
}

/// Returns the name of a message by which Courier knows it: without flags.
pub(crate) fn base(path: &Path) -> &[u8] {
    FileName::of(path.file_name().unwrap_or_default().as_bytes()).base
}

/// Creates or replaces a file in one step. If root runs the program, the new file gets the owner of its directory.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    let mut file = temporary_in(folder)?;
    file.write_all(content)?;
    let owner = platform::owner_of_results(Some(&fs::metadata(folder)?));
    platform::own(file.as_file(), owner)?;
    file.persist(path)?;
    Ok(())
}

fn read(path: &Path) -> Option<Vec<u8>> {
    // A link or a pipe is not read, because it could lead to a file outside the source or never end.
    let metadata = fs::symlink_metadata(path).ok()?;
    let is_read = metadata.is_file() && metadata.len() <= LONGEST;
    is_read.then(|| fs::read(path).ok()).flatten()
}

/// Reads Courier's list, and the files of single messages.
fn courier(folder: &Path) -> CourierKeywords {
    let mut keywords = CourierKeywords::default();
    let Ok(entries) = fs::read_dir(folder) else {
        return keywords;
    };
    let listed = entries.flatten().map(|entry| entry.file_name());
    for name in listed.take(MOST_FILES) {
        if let Some(content) = read(&folder.join(&name)) {
            keywords.add_file(name.as_bytes(), &content);
        }
    }
    keywords
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_of_a_folder_come_from_the_files_of_dovecot_and_courier() {
        let folder = tempfile::tempdir().unwrap();
        let courier = folder.path().join(COURIER);
        fs::create_dir(&courier).unwrap();
        fs::write(folder.path().join(DOVECOT), "0 $Forwarded\n1 Invoices\n").unwrap();
        for (name, content) in [
            (":list", "old\nwork\n\n1.a.h:0\n2.b.h:0\n3.c.h:1\n"),
            ("1.a.h", "new\nother\n"),
            ("2.b.h", ""),
            (".5.3.c.h", "five\n"),
            (".40.3.c.h", "forty\n"),
        ] {
            fs::write(courier.join(name), content).unwrap();
        }
        let keywords = FolderKeywords::of(folder.path());
        let of = |path: &str| {
            let (keywords, unknown) = keywords.of_message(Path::new(path));
            let names: Vec<String> = keywords.names().map(str::to_owned).collect();
            (names.join(" "), unknown.into_iter().collect::<String>())
        };
        for (path, names, unknown) in [
            ("cur/1.a.h:2,FSab", "$Forwarded Invoices new other", ""),
            ("cur/2.b.h:2,Sbc", "Invoices", "c"),
            ("cur/3.c.h_2,S", "forty", ""),
            ("new/4.d.h", "", ""),
        ] {
            assert_eq!(of(path), (names.to_owned(), unknown.to_owned()), "{path}");
        }
        let (before, after) = ("cur/1.a.h:2,S", "cur/1.a.h,S=5:2,S");
        let names = (Path::new(before), Path::new(after));
        let file = keywords.follow(folder.path(), names).unwrap();
        assert_eq!(file, Some(courier.join("1.a.h,S=5")));
        let again = FolderKeywords::of(folder.path());
        let (own, _) = again.of_message(Path::new("new/1.a.h,S=5"));
        assert_eq!(own.names().collect::<Vec<_>>(), ["new", "other"]);
    }
}
