//! `--report FILE`: JSON lines, one per reference.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirEntryExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::input::is_standard;
use super::origin::{Entry, Origin, Start};
use crate::error::Error;

/// How long a pipe's reader is waited for: mail is out by then, and who handed it over waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries.
const RETRY_EVERY: Duration = Duration::from_millis(10);

/// Where rows go.
#[derive(Debug)]
pub(super) enum ReportFile {
    /// `-`.
    Stderr,
    /// Of `inspect --json`.
    Stdout,
    /// A file; lines are appended, each in one write, so that several runs may share it.
    File {
        /// Where they are appended.
        file: File,
        /// What is there, until the first is written; none if it is no file, or may not be read.
        before: Option<File>,
    },
}

impl ReportFile {
    /// Opens or creates the file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stderr);
        }
        let waited = Instant::now();
        loop {
            match open(path) {
                Ok(file) => {
                    let is_file = file.metadata().is_ok_and(|found| found.is_file());
                    let before = is_file.then(|| File::open(path).ok()).flatten();
                    return Ok(Self::File { file, before });
                }
                Err(error) if is_without_reader(&error) => {
                    if waited.elapsed() >= PATIENCE {
                        let what = "it is a pipe that nobody reads";
                        return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                    }
                    std::thread::sleep(RETRY_EVERY);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes the rows of one message, or what is listed of it.
    pub(super) fn write<T: Serialize>(
        &mut self,
        start: &Start,
        origin: &Origin,
        rows: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        for row in rows {
            let mut line = json(&Entry::new(start, origin, row))?;
            match self {
                Self::Stderr => io::stderr().write_all(&line)?,
                Self::Stdout => io::stdout().write_all(&line)?,
                Self::File { file, before } => {
                    // A run that was killed, or a full disk, may have left a line without its end.
                    if before.take().is_some_and(|before| is_torn(&before)) {
                        line.insert(0, b'\n');
                    }
                    write_all(file, &line)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether what a file holds does not end with a line end.
fn is_torn(mut file: &File) -> bool {
    let mut last = [0];
    let read = file
        .seek(SeekFrom::End(-1))
        .and_then(|_| file.read_exact(&mut last));
    read.is_ok() && last != *b"\n"
}

/// Refuses a report that is mail as well, or something else that is no report: lines are appended to what is there.
/// Nothing is opened for writing, or made. `-` is standard input and standard output.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn check(
    report: Option<&Path>,
    sources: &[impl AsRef<Path>],
    outputs: &[impl AsRef<Path>],
) -> Result<(), Error> {
    let Some(path) = report.filter(|path| !is_standard(path)) else {
        return Ok(());
    };
    let wrong = |what: String| {
        Err(Error::Usage(
            format!("--report {}: {what}", path.display()).into(),
        ))
    };
    let Some(place) = FileIdentity::of(path) else {
        return Ok(());
    };
    for output in outputs.iter().map(AsRef::as_ref) {
        let written = match is_standard(output) {
            true => FileIdentity::of_stream(io::stdout()),
            false => FileIdentity::of(output),
        };
        if written.as_ref() == Some(&place) {
            return wrong("is the output as well; name another file".to_owned());
        }
    }
    for source in sources.iter().map(AsRef::as_ref) {
        let is_read = match is_standard(source) {
            true => FileIdentity::of_stream(io::stdin()).as_ref() == Some(&place),
            false => FileIdentity::of(source).as_ref() == Some(&place),
        };
        if is_read {
            return wrong("is a source as well; name another file".to_owned());
        }
        if let Some(member) = place.within(source) {
            let what = "is, or would be, a message among the sources; name another file";
            return wrong(format!("{what} than {}", member.display()));
        }
    }
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let mut first = [0];
    // What may only be appended to is not looked at.
    let starts = is_file.then(|| File::open(path).ok()?.read(&mut first).ok());
    if starts.flatten() == Some(1) && first != *b"{" {
        return wrong("holds something else than a report; name another file".to_owned());
    }
    Ok(())
}

/// What tells whether two names are one file.
#[derive(PartialEq, Eq, Debug)]
enum FileIdentity {
    /// The device and inode of what is there.
    There(u64, u64),
    /// The device and inode of the folder, and the name that would be new in it.
    New(u64, u64, OsString),
}

impl FileIdentity {
    /// None for a terminal or the null device, which many may write to, and where nothing can be.
    fn of(path: &Path) -> Option<Self> {
        if let Ok(found) = fs::metadata(path) {
            return (!found.file_type().is_char_device()).then(|| Self::there(&found));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let found = fs::metadata(folder).ok()?;
        Some(Self::New(
            found.dev(),
            found.ino(),
            path.file_name()?.into(),
        ))
    }

    fn of_stream(stream: impl AsFd) -> Option<Self> {
        let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
        let found = file.metadata().ok()?;
        (!found.file_type().is_char_device()).then(|| Self::there(&found))
    }

    fn there(found: &Metadata) -> Self {
        Self::There(found.dev(), found.ino())
    }

    /// The member of a folder of mail that this is, or would be. What cannot be looked at the run will say.
    fn within(&self, source: &Path) -> Option<PathBuf> {
        let mut folders = vec![source.to_owned()];
        while let Some(folder) = folders.pop() {
            if let Some(message) = self.new_message_in(&folder) {
                return Some(message);
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let kind = entry.file_type().ok();
                let is_equal = match (self, kind) {
                    (_, Some(kind)) if kind.is_dir() => {
                        folders.push(entry.path());
                        false
                    }
                    // The number that the folder has is enough for most.
                    (Self::There(_, inode), Some(kind)) if kind.is_file() => {
                        entry.ino() == *inode && Self::of(&entry.path()).as_ref() == Some(self)
                    }
                    (Self::There(..), _) => Self::of(&entry.path()).as_ref() == Some(self),
                    (Self::New(..), _) => false,
                };
                if is_equal {
                    return Some(entry.path());
                }
            }
        }
        None
    }

    /// What would be a message in a Maildir or an MH folder once it is there.
    fn new_message_in(&self, folder: &Path) -> Option<PathBuf> {
        let Self::New(device, inode, name) = self else {
            return None;
        };
        let is_number = name.to_str().is_some_and(|it| it.parse::<u64>().is_ok());
        let is_of_maildir = folder.ends_with("cur") || folder.ends_with("new");
        if !is_number && !is_of_maildir {
            return None;
        }
        let found = fs::metadata(folder).ok()?;
        (found.is_dir() && (found.dev(), found.ino()) == (*device, *inode))
            .then(|| folder.join(name))
    }
}

/// Opened so that a pipe neither waits for a reader nor, when it is full, for ever.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(unix)]
fn is_without_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

#[cfg(not(unix))]
fn is_without_reader(_error: &io::Error) -> bool {
    false
}

/// As [`Write::write_all`], into a pipe too whose reader is slow, not into one whose reader sleeps.
fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    let mut moved = Instant::now();
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).unwrap_or_default();
                moved = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if moved.elapsed() >= PATIENCE {
                    let what = "it is a pipe that nobody reads from any more";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, what));
                }
                std::thread::sleep(RETRY_EVERY);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A row, or what is said of all of them, as a line of JSON. In ASCII: a log's reader should not have to guess at
/// encodings.
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
