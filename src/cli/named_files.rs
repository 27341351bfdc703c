//! Writes attachments as files with readable names such as `2020-03-01 Anna - report.pdf`, and lists them in
//! `index.csv` (`detach --files`, `inspect --save-attachments`).
//!
//! Senders choose the names of attachments, so every name is made valid for all systems. An existing file is never
//! overwritten: if it has the same content, the attachment counts as written, and otherwise the new file gets a number.
//! So a second run over the same mail writes nothing.
//!
//! Several threads decode attachments in parallel and write each content to a temporary directory. The files get their
//! names later, in the order of the mails, so the numbers do not depend on the speed of the threads.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mail_parser::parsers::MessageStream;
use tempfile::TempDir;

use super::say;
use super::wording::counted;
use crate::engine::date;
use crate::engine::external_body::shown_name;
use crate::engine::report::rfc3339;
use crate::error::{Error, unpoisoned};
use crate::fetch::store::Key;
use crate::mailbox::Message;
use crate::mailbox::folder_names::{composed, folded, safe};
use crate::mime::{MessageTree, PartId};
use crate::platform;
use crate::span::front;

/// Maximum length of a name without its number and extension, in bytes.
const LONGEST_STEM: usize = 180;

/// Maximum length of the sender in a name, in characters.
const LONGEST_SENDER: usize = 60;

/// Maximum length of an extension, in bytes. A longer suffix is treated as part of the name.
const LONGEST_EXTENSION: usize = 10;

/// Maximum length of a From field that is parsed, in bytes.
const LONGEST_FROM: usize = 4 << 10;

const INDEX: &str = "index";

const COLUMNS: &str = "mail,source,number,part,name,file,bytes,digest\n";

/// A directory with attachments as named files.
pub(crate) struct NamedFiles {
    directory: PathBuf,
    /// Temporary directory of contents that have no final name yet. Each file is named by its SHA-256.
    unnamed: TempDir,
    state: Mutex<FilesState>,
}

struct FilesState {
    index: File,
    /// Rows of the index, including those of earlier runs.
    rows: HashSet<Key>,
    /// By file name: the content of each file that this run has written or compared. `None` if the name is in use for
    /// something other than an attachment.
    taken: HashMap<String, Option<Key>>,
    /// File name that was given to a content, by the name without a number and the content.
    given: HashMap<(String, Key), String>,
    /// Next number to append, by name.
    next: HashMap<String, u64>,
    /// Path of one file for each key of a content. If the content is needed under another name, this file is copied.
    copies: HashMap<Key, PathBuf>,
    written: u64,
    present: u64,
    failed: u64,
    first_failure: Option<String>,
}

/// An attachment whose content was written to the temporary directory. It gets its name when its mail is reported.
pub(crate) struct SavedAttachment {
    key: Key,
    octets: u64,
    mail: String,
    source: String,
    number: u64,
    part: String,
    /// The name in the mail.
    name: Option<String>,
    stem: String,
    extension: Option<String>,
}

impl SavedAttachment {
    /// Returns the memory that the entry needs, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let name = self.name.as_ref().map_or(0, String::len);
        size_of_val(self) + self.mail.len() + self.source.len() + name + 2 * self.stem.len()
    }
}

impl NamedFiles {
    /// Opens the directory, and creates it if it does not exist.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let failed = Error::cannot_write(directory.display());
        if !directory.is_dir() {
            platform::private_folder(directory).map_err(&failed)?;
        }
        let unnamed = tempfile::Builder::new()
            .prefix(".embody-")
            .tempdir_in(directory);
        let (index, rows) = open_index(directory).map_err(&failed)?;
        Ok(Self {
            directory: directory.to_owned(),
            unnamed: unnamed.map_err(&failed)?,
            state: Mutex::new(FilesState {
                index,
                rows,
                taken: HashMap::new(),
                given: HashMap::new(),
                next: HashMap::new(),
                copies: HashMap::new(),
                written: 0,
                present: 0,
                failed: 0,
                first_failure: None,
            }),
        })
    }

    /// Writes the content of a part to the temporary directory: `write` gets an empty file.
    pub(crate) fn keep(
        &self,
        message: &Message<'_>,
        (tree, part): (&MessageTree<'_>, PartId),
        (key, octets): (Key, u64),
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Option<SavedAttachment> {
        if let Err(why) = self.write_unnamed(&key, write) {
            self.fail(&tree.number(part), &why.to_string());
            return None;
        }
        let name = shown_name(tree.original, tree.fields(part));
        let number = tree.number(part);
        let (stem, extension) = named(tree, &number, name.as_deref());
        let id = tree.value(PartId::ROOT, "Message-ID").unwrap_or_default();
        let mail = String::from_utf8_lossy(front(id, 998));
        Some(SavedAttachment {
            key,
            octets,
            mail: mail.trim().trim_matches(['<', '>']).to_owned(),
            source: message.source.display().to_string(),
            number: message.number,
            part: number,
            name,
            stem,
            extension,
        })
    }

    fn write_unnamed(
        &self,
        key: &Key,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.unnamed.path().join(key.to_string());
        if path.exists() {
            return Ok(());
        }
        // Another thread may be writing the same content, so this file is renamed only when it is complete.
        let mut file = tempfile::NamedTempFile::new_in(self.unnamed.path())?;
        write(file.as_file_mut())?;
        file.persist(path)?;
        Ok(())
    }

    /// Counts an attachment whose content could not be written.
    pub(crate) fn fail(&self, part: &str, why: &str) {
        let mut state = unpoisoned(self.state.lock());
        state.failed += 1;
        state
            .first_failure
            .get_or_insert_with(|| format!("part {part}: {why}"));
    }

    /// Gives the files of one mail their names. The mails must be passed in order.
    pub(crate) fn place(&self, files: &[SavedAttachment]) {
        for file in files {
            let mut state = unpoisoned(self.state.lock());
            let placed = self
                .name_of(&mut state, file)
                .and_then(|name| state.list(file, &name));
            drop(state);
            if let Err(why) = placed {
                self.fail(&file.part, &why.to_string());
            }
        }
        for file in files {
            let _ = fs::remove_file(self.unnamed.path().join(file.key.to_string()));
        }
    }

    /// Writes a file, and returns the name that it got.
    fn name_of(&self, state: &mut FilesState, file: &SavedAttachment) -> io::Result<String> {
        let whole = |stem: &str| match &file.extension {
            Some(extension) => format!("{stem}.{extension}"),
            None => stem.to_owned(),
        };
        let base = folded(&whole(&file.stem));
        if let Some(name) = state.given.get(&(base.clone(), file.key)) {
            return Ok(name.clone());
        }
        loop {
            let number = state.next.entry(base.clone()).or_insert(0);
            *number += 1;
            let name = match *number {
                1 => whole(&file.stem),
                number => whole(&format!("{} ({number})", file.stem)),
            };
            let path = self.directory.join(&name);
            let is_same = match state.taken.get(&folded(&name)) {
                Some(known) => *known == Some(file.key),
                None => {
                    let found = self.write_file(state, file, &path)?;
                    state.taken.insert(folded(&name), found);
                    found == Some(file.key)
                }
            };
            if is_same {
                state.copies.entry(file.key).or_insert(path);
                state.given.insert((base, file.key), name.clone());
                return Ok(name);
            }
        }
    }

    /// Writes a file, unless a file with its name exists. Returns the key of the content that has the name afterwards.
    /// Returns `None` if the existing file is not a regular file, or if its length is not that of the new content.
    fn write_file(
        &self,
        state: &mut FilesState,
        file: &SavedAttachment,
        path: &Path,
    ) -> io::Result<Option<Key>> {
        if let Some(found) = platform::absent(fs::symlink_metadata(path))? {
            if !found.is_file() || found.len() != file.octets {
                return Ok(None);
            }
            let key = Key::of_file(&File::open(path)?)?;
            state.present += u64::from(key == file.key);
            return Ok(Some(key));
        }
        let unnamed = self.unnamed.path().join(file.key.to_string());
        let moved = match fs::hard_link(&unnamed, path) {
            Ok(()) => {
                fs::remove_file(&unnamed)?;
                true
            }
            // Another program has created the file.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            // Either the content was already renamed to another file, or the file system has no hard links. The content
            // is copied instead.
            Err(_) => false,
        };
        if !moved {
            let other = state.copies.get(&file.key).filter(|_| !unnamed.exists());
            let mut from = File::open(other.unwrap_or(&unnamed))?;
            let options = &mut File::options();
            let mut to = match platform::private(options.write(true).create_new(true)).open(path) {
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
                made => made?,
            };
            // `io::copy` shares the blocks of both files if the file system supports it (`copy_file_range`).
            if let Err(why) = io::copy(&mut from, &mut to) {
                drop(to);
                let _ = fs::remove_file(path);
                return Err(why);
            }
        }
        state.written += 1;
        Ok(Some(file.key))
    }

    /// Returns a sentence for the summary, and whether every attachment was written.
    pub(crate) fn ended(&self) -> (String, bool) {
        let state = unpoisoned(self.state.lock());
        let directory = say::shown(&self.directory);
        let were = |count: u64| if count == 1 { "was" } else { "were" };
        let mut text = format!(
            "{} {} written to {directory}, and {} {} already there.",
            counted(state.written, "file"),
            were(state.written),
            state.present,
            were(state.present)
        );
        if let Some(why) = &state.first_failure {
            text += &format!(
                " {} could not be written: {}; solve this problem, and run the same command again.",
                counted(state.failed, "attachment"),
                say::harmless_sentence(why)
            );
        }
        (text, state.failed == 0)
    }
}

impl FilesState {
    fn list(&mut self, file: &SavedAttachment, name: &str) -> io::Result<()> {
        let (number, octets, key) = (
            file.number.to_string(),
            file.octets.to_string(),
            file.key.to_string(),
        );
        let original = file.name.as_deref().unwrap_or_default();
        let cells = [
            &file.mail,
            &file.source,
            &*number,
            &file.part,
            original,
            name,
            &octets,
            &key,
        ];
        let row = cells.map(cell).join(",") + "\n";
        if self.rows.insert(Key::of(row.as_bytes())) {
            self.index.write_all(row.as_bytes())?;
        }
        Ok(())
    }
}

/// Opens the index to append rows. If `index.csv` belongs to another program, it is kept, and this index gets a number.
fn open_index(directory: &Path) -> io::Result<(File, HashSet<Key>)> {
    for number in 1..1000 {
        let name = match number {
            1 => format!("{INDEX}.csv"),
            number => format!("{INDEX} ({number}).csv"),
        };
        let path = directory.join(name);
        match platform::absent(fs::symlink_metadata(&path))? {
            Some(found) if !found.is_file() => continue,
            Some(_) => {}
            None => {
                let options = &mut File::options();
                let mut file =
                    platform::private(options.write(true).create_new(true)).open(&path)?;
                file.write_all(COLUMNS.as_bytes())?;
                return Ok((file, HashSet::new()));
            }
        }
        let mut file = File::options().read(true).write(true).open(&path)?;
        let mut first = vec![0; COLUMNS.len()];
        if file.read_exact(&mut first).is_err() || first != COLUMNS.as_bytes() {
            continue;
        }
        let mut rest = Vec::new();
        file.read_to_end(&mut rest)?;
        file.seek(SeekFrom::End(0))?;
        // An interrupted run may have left an incomplete last row.
        if !rest.is_empty() && !rest.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
        let rows = rest.split_inclusive(|&byte| byte == b'\n').map(Key::of);
        return Ok((file, rows.collect()));
    }
    Err(io::Error::other(
        "there are too many files called index.csv",
    ))
}

/// Returns a CSV cell. Spreadsheets run a cell as a formula if it starts with one of a few characters, so such a cell
/// gets a leading apostrophe. All cells are quoted, because some spreadsheets also split at semicolons.
fn cell(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|symbol| if symbol.is_control() { ' ' } else { symbol })
        .collect();
    let first = text.trim_start().chars().next();
    let is_formula =
        first.is_some_and(|first| "=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(first));
    let mark = if is_formula { "'" } else { "" };
    format!("\"{mark}{}\"", text.replace('"', "\"\""))
}

/// Returns the name of a file without its extension, and the extension.
fn named(tree: &MessageTree<'_>, part: &str, name: Option<&str>) -> (String, Option<String>) {
    let now = SystemTime::now();
    let date = tree
        .value(PartId::ROOT, "Date")
        .and_then(|value| date::sane(value, now))
        .and_then(|seconds| u64::try_from(seconds).ok())
        .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
        .or_else(|| date::of_fields(tree.original, tree.fields(PartId::ROOT), now));
    let day = date.map_or_else(
        || "undated".to_owned(),
        |date| rfc3339(date).chars().take(10).collect(),
    );
    let sender: String = sender(tree).chars().take(LONGEST_SENDER).collect();
    let plain = name.unwrap_or_default().replace(['/', '\\'], "_");
    let name = plain
        .trim()
        .trim_end_matches(|symbol: char| symbol == '.' || symbol.is_whitespace());
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension)
        .filter(|extension| {
            (1..=LONGEST_EXTENSION).contains(&extension.len())
                && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    let without = match extension {
        Some(extension) => &name[..name.len() - extension.len() - 1],
        None => name,
    };
    let stem = match without.trim() {
        "" => format!("part {}", if part.is_empty() { "1" } else { part }),
        stem => stem.to_owned(),
    };
    let mut whole = composed(&format!("{day} {sender} - {stem}"));
    if whole.len() > LONGEST_STEM {
        let end = (0..=LONGEST_STEM)
            .rev()
            .find(|&end| whole.is_char_boundary(end));
        whole.truncate(end.unwrap_or_default());
    }
    (safe(&whole), extension.map(str::to_owned))
}

/// Returns the display name of the sender, or the address if there is no name.
fn sender(tree: &MessageTree<'_>) -> String {
    let value = front(
        tree.value(PartId::ROOT, "From").unwrap_or_default(),
        LONGEST_FROM,
    );
    let line = [value, b"\n"].concat();
    let address = MessageStream::new(&line).parse_address();
    let first = address.as_address().and_then(|it| it.first());
    let name = first.and_then(|it| it.name.as_deref());
    let address = first.and_then(|it| it.address.as_deref());
    let usable = |text: &&str| !text.trim().is_empty();
    let text = name
        .filter(usable)
        .or(address.filter(usable))
        .unwrap_or("unknown");
    // Slashes are replaced here, because `safe` also handles the names of labels, in which a slash separates levels.
    text.trim().replace(['/', '\\'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::{ScanLimits, scan};

    fn named_in(from: &str, name: &str) -> String {
        let mail = format!("From: {from}\nDate: Sun, 1 Mar 2020 10:00:00 +0000\n\nx");
        let tree = scan(mail.as_bytes(), &ScanLimits::default());
        let (stem, extension) = named(&tree, "2", Some(name));
        extension.map_or(stem.clone(), |extension| format!("{stem}.{extension}"))
    }

    #[test]
    fn name_of_an_attachment_is_valid_on_every_system() {
        for (from, name, expected) in [
            (
                "Anna <a@x.example>",
                "report.pdf",
                "2020-03-01 Anna - report.pdf",
            ),
            (
                "a@x.example",
                "a.tar.gz",
                "2020-03-01 a@x.example - a.tar.gz",
            ),
            (
                "Anna <a@x.example>",
                "../../etc/passwd",
                "2020-03-01 Anna - .._.._etc_passwd",
            ),
            ("Anna <a@x.example>", "..", "2020-03-01 Anna - part 2"),
            ("Anna <a@x.example>", "", "2020-03-01 Anna - part 2"),
            ("Anna <a@x.example>", "CON", "2020-03-01 Anna - CON"),
            ("Anna <a@x.example>", "x.pdf. . ", "2020-03-01 Anna - x.pdf"),
            (
                "Anna <a@x.example>",
                "a\0b\nc:d*.txt",
                "2020-03-01 Anna - a_b_c_d_.txt",
            ),
            (
                "Anna <a@x.example>",
                "x\u{202e}fdp.exe",
                "2020-03-01 Anna - x_fdp.exe",
            ),
            (
                "Anna <a@x.example>",
                "x\u{2067}\u{61c}.\u{202e}exe",
                "2020-03-01 Anna - x__._exe",
            ),
            ("\"../x\" <a@x.example>", "y", "2020-03-01 .._x - y"),
            ("", "y", "2020-03-01 unknown - y"),
        ] {
            assert_eq!(named_in(from, name), expected, "{name:?}");
        }
        let long = named_in(
            "Anna <a@x.example>",
            &format!("{}.pdf", "\u{fc}".repeat(300)),
        );
        assert!(
            long.len() <= LONGEST_STEM + 4 && long.ends_with("\u{fc}.pdf"),
            "{long}"
        );
    }

    #[test]
    fn cell_of_the_index_is_never_a_formula() {
        for (text, expected) in [
            ("a", "\"a\""),
            ("=1+1", "\"'=1+1\""),
            ("  @x", "\"'  @x\""),
            ("\t=x\n", "\"' =x \""),
            ("a\"b;=c", "\"a\"\"b;=c\""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }
}
