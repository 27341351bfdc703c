//! `--report FILE`: JSON lines, one per reference.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::origin::{Entry, Origin, Start};
use super::told::Row;

/// How long a pipe's reader is waited for: mail is out by then, and who handed it over waits.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries.
const RETRY_EVERY: Duration = Duration::from_millis(10);

/// Where rows go.
#[derive(Debug)]
pub(super) enum ReportFile {
    /// `-`.
    Stderr,
    /// A file; lines are appended, each in one write, so that several runs may share it.
    File(File),
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
                Ok(file) => return Ok(Self::File(file)),
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

    /// Writes the rows of one message.
    pub(super) fn write(&mut self, start: &Start, origin: &Origin, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            let mut line = json(&Entry::new(start, origin, row))?;
            line.push(b'\n');
            match self {
                Self::Stderr => io::stderr().write_all(&line)?,
                Self::File(file) => write_all(file, &line)?,
            }
        }
        Ok(())
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

/// A row, or what is said of all of them, as JSON in ASCII: a log's reader should not have to guess at encodings.
pub(super) fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(value).map_err(io::Error::other)?;
    let mut line = Vec::with_capacity(text.len());
    for symbol in text.chars() {
        if symbol.is_ascii() && symbol != '\x7f' {
            line.push(symbol as u8);
        } else {
            for unit in symbol.encode_utf16(&mut [0; 2]) {
                line.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
    }
    Ok(line)
}
