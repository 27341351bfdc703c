//! Appends records to files under a lock, and selects the file to write to.
//!
//! * Several processes may append to one file. A process holds the lock while it writes. If the file has grown since its last
//!   write, it checks that the file ends with a complete record.
//! * A record is a gzip member. If it cannot be written completely, it is removed again, so a full disk leaves only complete
//!   records.
//! * A file that ends with an incomplete record of a killed process is refused. Nothing is removed automatically.
//! * Files are created readable for their owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flate2::bufread::GzDecoder;

use super::write::RecordMember;
use crate::platform::{FileExt as _, private, try_lock_handle, unlock_handle};

/// Suffix of the names of WARC files.
const SUFFIX: &str = ".warc.gz";

/// Maximum time to wait for another process that is writing to the file. The processing of a mail can be delayed by this time.
const PATIENCE: Duration = Duration::from_secs(5);
const RETRY_EVERY: Duration = Duration::from_millis(10);

/// Limits of the search for the last record: bytes at the end of the file that are searched, and candidates that are tried. If
/// the search fails, all records are read from the start, unless the file has more than `WALKED` bytes.
const NEAR: u64 = 64 << 20;
const TRIES: usize = 10_000;
const WALKED: u64 = 1 << 30;

/// The first bytes of a gzip member with the method deflate (RFC 1952 §2.3.1).
const MAGIC: &[u8] = b"\x1f\x8b\x08";

/// The WARC file to which records are appended, and the size at which the next file is begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordPlace {
    /// Path of the file. If the option contains `{pid}` or names a directory, each process has its own file.
    path: PathBuf,
    /// When the file has at least this many bytes, records are written to the next file. `None` means no limit.
    most: Option<u64>,
}

impl RecordPlace {
    /// Creates the destination from the path in the option.
    ///
    /// # Errors
    /// A message if the path cannot be that of a WARC file.
    pub(crate) fn new(path: &Path, most: Option<u64>) -> Result<Self, String> {
        let pid = std::process::id();
        let text = path
            .as_os_str()
            .to_str()
            .ok_or_else(|| "the name is not UTF-8".to_owned())?;
        let path = if path.is_dir() {
            path.join(format!("embody-{pid}{SUFFIX}"))
        } else {
            PathBuf::from(text.replace("{pid}", &pid.to_string()))
        };
        if path.to_str().is_some_and(|text| text.ends_with(SUFFIX)) {
            Ok(Self { path, most })
        } else {
            Err(format!(
                "name a file that ends with {SUFFIX}, or an existing folder"
            ))
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file with this number. The first file has no number in its name.
    fn numbered(&self, number: u64) -> PathBuf {
        let text = self.path.to_string_lossy();
        let stem = text.strip_suffix(SUFFIX).unwrap_or(&text);
        match number {
            0 => self.path.clone(),
            number => format!("{stem}-{number}{SUFFIX}").into(),
        }
    }

    fn is_full(&self, length: u64) -> bool {
        self.most.is_some_and(|most| length >= most)
    }
}

/// An open file of records.
#[derive(Debug)]
pub(super) struct RecordFile {
    pub(super) path: PathBuf,
    number: u64,
    file: File,
    /// Offset of the end of the file after the last write of this process. There the last complete record ends. `None` if the
    /// file was not checked yet.
    end: Option<u64>,
    /// Whether this process has written its `warcinfo` record to the file.
    pub(super) is_begun: bool,
}

impl RecordFile {
    /// Opens the first file of the destination that is not full, or creates it.
    pub(super) fn open(place: &RecordPlace) -> io::Result<Self> {
        Self::open_from(place, 0)
    }

    fn open_from(place: &RecordPlace, first: u64) -> io::Result<Self> {
        let mut number = first;
        loop {
            let path = place.numbered(number);
            let length = fs::metadata(&path).map_or(0, |found| found.len());
            if place.is_full(length) {
                number += 1;
                continue;
            }
            // Opening a named pipe would block until another process reads from it.
            if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
                return Err(io::Error::other(
                    "the path leads to a device, a pipe or a directory; name a file",
                ));
            }
            let mut options = OpenOptions::new();
            let file = private(options.read(true).append(true).create(true)).open(&path)?;
            return Ok(Self {
                path,
                number,
                file,
                end: None,
                is_begun: false,
            });
        }
    }

    /// Opens the next file of the destination if this one is full. Otherwise returns `None`.
    pub(super) fn succeeded(&self, place: &RecordPlace) -> io::Result<Option<Self>> {
        let is_full = match place.most {
            Some(most) => self.file.metadata()?.len() >= most,
            None => false,
        };
        is_full
            .then(|| Self::open_from(place, self.number + 1))
            .transpose()
    }

    /// Returns the length of the file, or an error if it does not end with a complete record.
    fn checked_end(&self) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        if self.end != Some(length) && length > 0 {
            match whole(&self.file, length)? {
                Some(end) if end == length => {}
                Some(0) => {
                    return Err(invalid(
                        "the file is not a gzip-compressed WARC file with one gzip member per record",
                    ));
                }
                Some(end) => {
                    let path = self.path.display();
                    return Err(invalid(&format!(
                        "the file ends with an incomplete record; name another file, or remove the incomplete record: truncate -s {end} {path}"
                    )));
                }
                None => return Err(invalid("the file ends with an incomplete record")),
            }
        }
        Ok(length)
    }

    /// Appends all of the records, or none if an error occurs.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the file does not end with a complete record, and errors of writing.
    pub(super) fn append(&mut self, members: &mut [RecordMember]) -> io::Result<()> {
        let _lock = FileLock::of(&self.file)?;
        let end = self.checked_end()?;
        let mut written = end;
        for member in members {
            match member.copy_to(&mut &self.file) {
                Ok(octets) => written += octets,
                Err(why) => {
                    // Because of the lock, only this process can have written after the old end, so those bytes can be
                    // removed.
                    self.file.set_len(end)?;
                    return Err(why);
                }
            }
        }
        self.end = Some(written);
        Ok(())
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// A lock on a file, released when the value is dropped.
struct FileLock<'f>(&'f File);

impl<'f> FileLock<'f> {
    fn of(file: &'f File) -> io::Result<Self> {
        let begun = Instant::now();
        loop {
            if try_lock_handle(file)? {
                return Ok(Self(file));
            }
            if begun.elapsed() >= PATIENCE {
                let what = "another process is writing to this file; put {pid} into the name of the file to get a separate file for each process";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, what));
            }
            std::thread::sleep(RETRY_EVERY);
        }
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        // Closing the file would release the lock as well, but the file stays open for later records.
        let _ = unlock_handle(self.0);
    }
}

/// Returns the end of the last complete record in a file of `length` bytes: `length` if the file ends with it, 0 if the file
/// contains no record. Returns `None` if the file does not end with a complete record and is too large to find its end.
fn whole(file: &File, length: u64) -> io::Result<Option<u64>> {
    // The last record is usually short. A gzip member that contains a record and ends at the end of the file is the last one,
    // so the search runs backwards from the end. Recorded content from a server may contain many bytes that look like the start
    // of a member, or expand to a large size, so the number of tries and the decompressed size are limited.
    let near = length.saturating_sub(NEAR);
    let (mut tries, mut budget) = (TRIES, NEAR);
    let mut window = 256 << 10;
    let mut behind = length;
    while behind > near {
        let from = behind.saturating_sub(window).max(near);
        // The file is searched backwards in windows. Each window overlaps the next one by two bytes, because the three
        // first bytes of a gzip member may be divided between two windows.
        let size = usize::try_from((behind + 2).min(length) - from).unwrap_or(0);
        let mut octets = vec![0; size];
        file.read_exact_at(&mut octets, from)?;
        for at in memchr::memmem::rfind_iter(&octets, MAGIC).take(tries) {
            tries -= 1;
            if member_at(file, from + at as u64, &mut budget)? == Some(length) {
                return Ok(Some(length));
            }
        }
        behind = from;
        window *= 4;
    }
    if length > WALKED {
        return Ok(None);
    }
    let mut end = 0;
    while end < length {
        match member_at(file, end, &mut u64::MAX.clone())? {
            Some(next) => end = next,
            None => break,
        }
    }
    Ok(Some(end))
}

/// Returns the end of the gzip member that begins at `at`. Returns `None` if there is no member, if it does not contain a
/// record, or if it expands to more than `budget` bytes. The decompressed size is subtracted from `budget`.
fn member_at(file: &File, at: u64, budget: &mut u64) -> io::Result<Option<u64>> {
    let mut source = file.try_clone()?;
    source.seek(SeekFrom::Start(at))?;
    let mut decoder = GzDecoder::new(io::BufReader::with_capacity(16 << 10, source));
    let mut start = [0; 5];
    let is_record = decoder.read_exact(&mut start).is_ok() && start == *b"WARC/";
    if !is_record {
        return Ok(None);
    }
    let copied = io::copy(&mut (&mut decoder).take(*budget), &mut io::sink());
    *budget = budget.saturating_sub(*copied.as_ref().unwrap_or(budget));
    if *budget == 0 || copied.is_err() {
        return Ok(None);
    }
    decoder.into_inner().stream_position().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, most: Option<u64>) -> Result<RecordPlace, String> {
        RecordPlace::new(Path::new(name), most)
    }

    #[test]
    fn record_path_must_be_a_directory_or_end_in_warc_gz() {
        let pid = std::process::id();
        let folder = tempfile::tempdir().unwrap();
        let inside = RecordPlace::new(folder.path(), None).unwrap();
        assert_eq!(
            inside.path(),
            folder.path().join(format!("embody-{pid}.warc.gz"))
        );
        let named = place("/x/a-{pid}.warc.gz", Some(10)).unwrap();
        assert_eq!(named.path(), Path::new(&format!("/x/a-{pid}.warc.gz")));
        assert_eq!(
            named.numbered(2),
            Path::new(&format!("/x/a-{pid}-2.warc.gz"))
        );
        assert!(place("/x/a.mbox", None).is_err());
        assert!(place("-", None).is_err());
    }
}
