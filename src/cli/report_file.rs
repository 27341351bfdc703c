//! `--report FILE`: a report in JSON Lines, with one line for each reference.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::ser::{Error as _, SerializeMap as _};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::origin::{OriginEntry, RunOrigin, RunStart};
use super::streams::{self, is_standard};
use super::wording;
use crate::engine::policy::Policy;
use crate::engine::report::Row;
use crate::error::{Error, unpoisoned};
use crate::mailbox::folder_of;
use crate::platform::{self, DirEntryExt as _, MetadataExt as _, Stream};

/// Maximum time to wait until the reader of a pipe accepts report lines. By then the mail has been written, but the
/// calling program still waits for this process to end.
const PATIENCE: Duration = Duration::from_secs(2);
const RETRY_EVERY: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) enum ReportFile {
    Stderr,
    Stdout,
    /// The file that `--report` names. Each line is appended in one write, so that several runs can share the file.
    File {
        file: File,
        /// Read handle of the same file. Before the first row is written, it is used to check whether an earlier run
        /// left an incomplete last line. `None` after this check.
        before: Option<File>,
    },
}

impl ReportFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stderr);
        }
        let waited = Instant::now();
        loop {
            match platform::append_without_waiting(path) {
                Ok(file) => {
                    let is_file = file.metadata().is_ok_and(|found| found.is_file());
                    let before = is_file.then(|| File::open(path).ok()).flatten();
                    return Ok(Self::File { file, before });
                }
                Err(error) if platform::is_unread_pipe(&error) => {
                    wait(waited, "no program reads from this pipe")?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn write<T: Serialize>(
        &mut self,
        start: &RunStart,
        origin: &RunOrigin,
        rows: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        for row in rows {
            self.write_line(json(&OriginEntry {
                time: &start.time,
                origin,
                piece: start.piece.as_ref(),
                row,
            })?)?;
        }
        Ok(())
    }

    /// Writes a line about a file or message that was not read completely.
    pub(super) fn write_not_read(
        &mut self,
        start: &RunStart,
        path: &Path,
        why: &str,
    ) -> io::Result<()> {
        let line = ReportFields::default()
            .with("time", &start.time)
            .with_all(not_read(path, why));
        self.write_line(json(&line)?)
    }

    fn write_line(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Stderr => platform::stream_or_null(io::stderr())?.write_all(&line),
            Self::Stdout => platform::stream_or_null(io::stdout())?.write_all(&line),
            Self::File { file, before } => {
                // An earlier run may have left an incomplete last line, because it was killed or the disk was full. A
                // line ending is then written first, so that the new row starts on a line of its own.
                if before.take().is_some_and(|before| is_torn(&before)) {
                    line.insert(0, b'\n');
                }
                write_all(file, &line)
            }
        }
    }
}

/// Report of a service. The file is opened for the first row, and reopened after an error.
pub(super) struct ReportLog {
    path: PathBuf,
    file: Mutex<Option<ReportFile>>,
}

impl ReportLog {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: Mutex::default(),
        }
    }

    /// Writes the rows of one message.
    ///
    /// # Errors
    /// The sentence says why the rows could not be written.
    pub(super) fn write(
        &self,
        origin: &RunOrigin,
        rows: &[Row],
        policy: Option<&Policy>,
    ) -> Result<(), String> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut file = unpoisoned(self.file.lock());
        let written = match &mut *file {
            Some(file) => Ok(file),
            none => ReportFile::open(&self.path).map(|opened| none.insert(opened)),
        }
        .and_then(|file| file.write(&RunStart::now(None), origin, wording::rows(rows, policy)));
        written.map_err(|error| {
            *file = None;
            format!("cannot write the report {}: {error}", self.path.display())
        })
    }
}

/// Returns the fields of a JSON line about a file or message that was not read completely.
pub(super) fn not_read(path: &Path, why: &str) -> ReportFields {
    ReportFields::default()
        .with("source", &path.display().to_string())
        .with("kind", &"file")
        .with("outcome", &"not-read")
        .with("detail", &why)
}

fn is_torn(mut file: &File) -> bool {
    let mut last = [0];
    let found = file.seek(SeekFrom::End(-1));
    found.and_then(|_| file.read_exact(&mut last)).is_ok() && last != *b"\n"
}

/// Checks whether rows can be appended to the report file: it must not be a source, the output, or a file with other
/// data. The check neither creates a file nor opens one for writing, so it changes nothing.
pub(super) fn check(
    report: Option<&Path>,
    sources: &[impl AsRef<Path>],
    outputs: &[impl AsRef<Path>],
) -> Result<(), Error> {
    let Some(path) = report.filter(|path| !is_standard(path)) else {
        return Ok(());
    };
    check_apart("--report", path, sources, outputs)?;
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut first = [0];
    let starts = is_file.then(|| File::open(path).ok()?.read(&mut first).ok());
    if starts.flatten() == Some(1) && first != *b"{" {
        let what = "this file contains data that is not a report; name another file".to_owned();
        return Err(wrong("--report", path, what));
    }
    Ok(())
}

fn wrong(option: &str, path: &Path, what: String) -> Error {
    Error::Usage(format!("{option} {}: {what}", path.display()).into())
}

pub(super) fn check_apart(
    option: &str,
    path: &Path,
    sources: &[impl AsRef<Path>],
    outputs: &[impl AsRef<Path>],
) -> Result<(), Error> {
    let wrong = |what: String| Err(wrong(option, path, what));
    let Some(place) = identity(path) else {
        return Ok(());
    };
    let is_place = |path: &Path, standard: fn() -> Result<Stream, Error>| {
        let identity = if is_standard(path) {
            standard().ok().and_then(|it| there(&it.metadata().ok()?))
        } else {
            identity(path)
        };
        identity.as_ref() == Some(&place)
    };
    let mut outputs = outputs.iter().map(AsRef::as_ref);
    if outputs.any(|output| is_place(output, streams::output)) {
        return wrong("this file is also the output; name another file".to_owned());
    }
    for source in sources.iter().map(AsRef::as_ref) {
        if is_place(source, streams::input) {
            return wrong("this file is also a source; name another file".to_owned());
        }
        if let Some(member) = member(&place, source) {
            let what = "a source is a directory of messages, and a run would read this file as one of its messages";
            return wrong(format!(
                "{what}; name a file outside of {}",
                member.display()
            ));
        }
    }
    Ok(())
}

/// Identity of a file, equal for all paths to the file. It is the device and inode of an existing file, or the device
/// and inode of the directory together with the name of a file that does not exist yet.
type Identity = (u64, u64, Option<OsString>);

/// Returns the identity of a file. Returns `None` for a terminal or the null device, which several outputs may share.
fn identity(path: &Path) -> Option<Identity> {
    if let Ok(found) = fs::metadata(path) {
        return there(&found);
    }
    let found = fs::metadata(folder_of(path)).ok()?;
    Some((found.dev(), found.ino(), Some(path.file_name()?.into())))
}

fn there(found: &Metadata) -> Option<Identity> {
    (!platform::is_character_device(found)).then(|| (found.dev(), found.ino(), None))
}

/// Searches a source for a file by its identity, and returns its path in the source. Unreadable directories are
/// skipped, because the run reports them.
fn member(place: &Identity, source: &Path) -> Option<PathBuf> {
    let (_, inode, new) = place;
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        if let Some(name) = new.as_deref().filter(|_| may_be_message(place, &folder)) {
            return Some(folder.join(name));
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().ok();
            if kind.is_some_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
                continue;
            }
            // The directory listing already contains inode numbers. Comparing them rules out most files without a
            // system call each.
            let may_be = kind.is_none_or(|kind| !kind.is_file() || entry.ino() == *inode);
            if new.is_none() && may_be && identity(&entry.path()).as_ref() == Some(place) {
                return Some(entry.path());
            }
        }
    }
    None
}

fn may_be_message((device, inode, name): &Identity, folder: &Path) -> bool {
    let name = name.as_deref().and_then(OsStr::to_str);
    let is_number = name.is_some_and(|it| it.parse::<u64>().is_ok());
    let is_of_maildir = folder.ends_with("cur") || folder.ends_with("new");
    let is_there = |it: Metadata| it.is_dir() && (it.dev(), it.ino()) == (*device, *inode);
    (is_number || is_of_maildir) && fs::metadata(folder).is_ok_and(is_there)
}

/// Writes all bytes. Waits if the reader of a pipe is slow, and fails if it reads nothing for [`PATIENCE`].
fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    let mut moved = Instant::now();
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                moved = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(moved, "the program that reads the pipe has ended")?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait(since: Instant, what: &'static str) -> io::Result<()> {
    if since.elapsed() >= PATIENCE {
        return Err(io::Error::new(io::ErrorKind::TimedOut, what));
    }
    std::thread::sleep(RETRY_EVERY);
    Ok(())
}

/// Returns a JSON line in ASCII, so that readers of a log need not know its encoding.
pub(super) fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(value).map_err(io::Error::other)?;
    let mut line = Vec::with_capacity(text.len() + 1);
    for symbol in text.chars() {
        if symbol.is_ascii() && symbol != '\x7f' {
            line.push(symbol as u8);
        } else {
            for unit in symbol.encode_utf16(&mut [0; 2]) {
                line.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
    }
    line.push(b'\n');
    Ok(line)
}

#[derive(Default)]
pub(super) struct ReportFields(Vec<(&'static str, serde_json::Result<Box<RawValue>>)>);

impl ReportFields {
    pub(super) fn with(mut self, name: &'static str, value: &impl Serialize) -> Self {
        self.0.push((name, to_raw_value(value)));
        self
    }

    /// Adds the fields of `others`.
    pub(super) fn with_all(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub(super) fn with_some(self, name: &'static str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, &value),
            None => self,
        }
    }
}

impl Serialize for ReportFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value.as_ref().map_err(S::Error::custom)?)?;
        }
        map.end()
    }
}
