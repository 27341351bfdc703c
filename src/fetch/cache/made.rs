//! Records which files a run has written, so that the same command continues after an interruption without writing them again.
//!
//! A line is written before the temporary file is renamed. It counts only if the source and the file are unchanged, so a file
//! that the user put there since is never mistaken for one of embody.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::error::unpoisoned;
use crate::key::Key;
use crate::platform::{MetadataExt as _, OsStrExt as _, OsStringExt as _};

/// Maximum length of a line in bytes. A path has at most 4096 bytes, and each byte is written as two hexadecimal digits, so
/// this leaves room for the other values.
const LONGEST: u64 = 16 << 10;

type Identity = (u64, u64, u64, i128);

pub(crate) struct Made {
    command: String,
    before: HashMap<Key, (PathBuf, Identity)>,
    file: Mutex<Option<File>>,
}

impl Made {
    /// Reads the record of an earlier run from `before`. New lines are written to `to_append`, or nowhere if it is `None`.
    pub(super) fn new(command: &str, before: Option<File>, to_append: Option<File>) -> Self {
        Self {
            command: command.to_owned(),
            before: before.map(read).unwrap_or_default(),
            file: Mutex::new(to_append),
        }
    }

    pub(crate) fn before(&self) -> usize {
        self.before.len()
    }

    pub(crate) fn is_any(&self) -> bool {
        let file = unpoisoned(self.file.lock());
        let written = file.as_ref().and_then(|file| file.metadata().ok());
        !self.before.is_empty() || written.is_some_and(|written| written.len() > 0)
    }

    pub(crate) fn is_made(&self, source: &Path) -> bool {
        let known = || {
            let (target, made) = self.before.get(&self.key(source)?)?;
            let found = fs::symlink_metadata(target).ok()?;
            Some(found.is_file() && identity(&found) == *made)
        };
        !self.before.is_empty() && known().unwrap_or(false)
    }

    pub(crate) fn makes(&self, source: &Path, target: &Path, file: &File) {
        let line = || {
            let (device, inode, length, modified) = identity(&file.metadata().ok()?);
            let target = std::path::absolute(target).ok()?;
            let key = self.key(source)?;
            let mut line = format!("{key} {device} {inode} {length} {modified} ");
            for octet in target.as_os_str().as_bytes() {
                let _ = write!(line, "{octet:02x}");
            }
            let hash = Key::of(line.as_bytes());
            // The new line begins with a line feed. Otherwise it would continue an incomplete line, which an earlier run left
            // if it was killed while it wrote.
            Some(format!("\n{line} {hash}\n"))
        };
        let mut to = unpoisoned(self.file.lock());
        let written = match (&mut *to, line()) {
            (Some(file), Some(line)) => file.write_all(line.as_bytes()),
            _ => Ok(()),
        };
        if written.is_err() {
            // A full disk does not stop the run. Only the recording ends, so the files that follow are written again after an
            // interruption.
            *to = None;
        }
    }

    fn key(&self, source: &Path) -> Option<Key> {
        let found = identity(&fs::metadata(source).ok()?);
        let path = source.as_os_str().as_bytes();
        let known = format!("{} {found:?} ", self.command);
        Some(Key::of(&[known.as_bytes(), path].concat()))
    }
}

fn identity(found: &Metadata) -> Identity {
    let modified = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    (found.dev(), found.ino(), found.len(), modified)
}

fn read(file: File) -> HashMap<Key, (PathBuf, Identity)> {
    let mut made = HashMap::new();
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::Read::take(&mut lines, LONGEST).read_until(b'\n', &mut line);
        if !read.is_ok_and(|read| read > 0) {
            return made;
        }
        if let Some((key, file)) = std::str::from_utf8(&line).ok().and_then(parsed) {
            made.insert(key, file);
        }
    }
}

fn parsed(line: &str) -> Option<(Key, (PathBuf, Identity))> {
    let (line, hash) = line.trim_end_matches('\n').rsplit_once(' ')?;
    if Key::parse(hash)? != Key::of(line.as_bytes()) {
        return None;
    }
    let mut fields = line.split(' ');
    let key = Key::parse(fields.next()?)?;
    let mut number = || fields.next()?.parse().ok();
    let (device, inode, length) = (number()?, number()?, number()?);
    let modified = fields.next()?.parse().ok()?;
    let digits = fields.next()?;
    let octet = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let octets = (0..digits.len())
        .step_by(2)
        .map(octet)
        .collect::<Option<Vec<u8>>>()?;
    let target = PathBuf::from(std::ffi::OsString::from_vec(octets));
    Some((key, (target, (device, inode, length, modified))))
}
