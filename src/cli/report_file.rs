//! `--report FILE`: JSON lines, one per reference.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::origin::{Entry, Origin, Start};
use crate::report::Row;

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
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self::File(file))
    }

    /// Writes the rows of one message.
    pub(super) fn write(&mut self, start: &Start, origin: &Origin, rows: &[Row]) -> io::Result<()> {
        for row in rows {
            let mut line = json(&Entry::new(start, origin, row))?;
            line.push(b'\n');
            match self {
                Self::Stderr => io::stderr().write_all(&line)?,
                Self::File(file) => file.write_all(&line)?,
            }
        }
        Ok(())
    }
}

/// One row as JSON, in ASCII: a log's reader should not have to guess at encodings.
pub(super) fn json(entry: &Entry<'_>) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(entry).map_err(io::Error::other)?;
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
