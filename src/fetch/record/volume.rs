//! A file of records (ISO 28500:2017, annex A and D). It is scanned once to its end; later, single records are read at their
//! offsets.
//!
//! * In a compressed file, each record is a gzip member. A member with several records ends the scan: reaching its second
//!   record would mean decompressing everything before it again at each access.
//! * Truncated or damaged data ends the scan. The records before it are used.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::GzDecoder;

use super::header::RecordHeader;
use crate::platform::FileExt as _;

/// Number of bytes at the beginning of each block that a scan returns. This is enough for the status line and the header fields
/// that the index needs.
const SHOWN: usize = 4096;
/// Limit of the decompressed size of a file: this number of bytes, plus [`RATIO`] times the size of the file.
const FLOOR: u64 = 1 << 30;
const RATIO: u64 = 200;
/// Maximum number of line ending bytes that are skipped between records.
const BLANKS: usize = 16;

/// A file of WARC records, or the part of a larger file (WACZ) that contains them.
#[derive(Clone, Debug)]
pub(super) struct WarcVolume {
    pub(super) name: String,
    file: Arc<File>,
    start: u64,
    end: u64,
    is_gzip: bool,
}

impl WarcVolume {
    /// Opens a range of a file. Returns `None` if it does not start like a file of records. An empty range is valid.
    pub(super) fn of(
        name: String,
        file: Arc<File>,
        (start, end): (u64, u64),
    ) -> io::Result<Option<Self>> {
        let mut first = [0; 5];
        let there = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let first = first.get_mut(..there.min(5)).unwrap_or_default();
        file.read_exact_at(first, start)?;
        let is_gzip = first.first() == Some(&0x1f);
        if !is_gzip && !b"WARC/".starts_with(first) {
            return Ok(None);
        }
        Ok(Some(Self {
            name,
            file,
            start,
            end,
            is_gzip,
        }))
    }

    /// Returns an iterator over all complete records in their order.
    pub(super) fn scan(&self) -> Scan<'_> {
        Scan {
            volume: self,
            from: self.start,
            source: self.counted(self.start),
            inflated: 0,
            shown: Vec::new(),
        }
    }

    fn counted(&self, at: u64) -> CountingReader<BufReader<VolumeWindow>> {
        CountingReader {
            source: BufReader::with_capacity(64 << 10, self.window(at)),
            taken: 0,
        }
    }

    /// Returns the record at an offset: its header, and its block, which may be shorter than the header says.
    ///
    /// # Errors
    /// The errors of [`RecordHeader::read`], also if the file was changed and no longer contains a record there.
    pub(super) fn record(&self, offset: u64) -> io::Result<(RecordHeader, Box<dyn Read>)> {
        let window = BufReader::new(self.window(offset));
        if self.is_gzip {
            return begun(BufReader::new(GzDecoder::new(window)));
        }
        begun(window)
    }

    fn window(&self, at: u64) -> VolumeWindow {
        VolumeWindow {
            file: Arc::clone(&self.file),
            at,
            end: self.end,
        }
    }
}

fn begun(mut source: impl BufRead + 'static) -> io::Result<(RecordHeader, Box<dyn Read>)> {
    let header = RecordHeader::read(&mut source)?.ok_or_else(cut)?;
    let length = header.length().ok_or_else(no_length)?;
    Ok((header, Box::new(source.take(length))))
}

/// A range of a file with its own position, because several readers share the file.
struct VolumeWindow {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for VolumeWindow {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = into.len().min(left);
        let read = self
            .file
            .read_at(into.get_mut(..length).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A reader that counts the bytes that were read from its source.
struct CountingReader<R> {
    source: R,
    taken: u64,
}

impl<R: BufRead> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        self.taken += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.source.consume(amount);
        self.taken += amount as u64;
    }
}

/// A complete record.
pub(super) struct ScannedRecord<'s> {
    pub(super) offset: u64,
    pub(super) header: RecordHeader,
    /// First bytes of the block.
    pub(super) start: &'s [u8],
}

/// An iterator over the records of a volume (a file of records), from its start.
pub(super) struct Scan<'v> {
    volume: &'v WarcVolume,
    /// Offset in the file at which the bytes of `source` begin.
    from: u64,
    source: CountingReader<BufReader<VolumeWindow>>,
    inflated: u64,
    shown: Vec<u8>,
}

impl Scan<'_> {
    /// Returns the next complete record, or `None` at the end.
    ///
    /// # Errors
    /// The file is truncated or damaged, or is too large when decompressed. Nothing after the error is read.
    pub(super) fn next(&mut self) -> io::Result<Option<ScannedRecord<'_>>> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let found = if self.volume.is_gzip {
            self.member()?
        } else {
            self.plain()?
        };
        Ok(found.map(|(offset, header)| ScannedRecord {
            offset,
            header,
            start: &self.shown,
        }))
    }

    /// Returns the offset in the file that the scan has reached.
    pub(super) fn at(&self) -> u64 {
        self.from + self.source.taken
    }

    fn plain(&mut self) -> io::Result<Option<(u64, RecordHeader)>> {
        skip_blanks(&mut self.source)?;
        let offset = self.at();
        let Some(header) = RecordHeader::read(&mut self.source)? else {
            return Ok(None);
        };
        let length = header.length().ok_or_else(no_length)?;
        let end = self
            .at()
            .checked_add(length)
            .filter(|end| *end <= self.volume.end)
            .ok_or_else(cut)?;
        show(&mut self.source, length, &mut self.shown)?;
        let rest = end - self.at();
        match usize::try_from(rest) {
            Ok(rest) if rest <= self.source.source.buffer().len() => self.source.consume(rest),
            _ => (self.from, self.source) = (end, self.volume.counted(end)),
        }
        Ok(Some((offset, header)))
    }

    fn member(&mut self) -> io::Result<Option<(u64, RecordHeader)>> {
        let offset = self.at();
        let mut inside = BufReader::new(GzDecoder::new(&mut self.source));
        skip_blanks(&mut inside)?;
        let header = RecordHeader::read(&mut inside)?
            .ok_or_else(|| damaged("a gzip member contains no record"))?;
        let length = header.length().ok_or_else(no_length)?;
        let size = self.volume.end - self.volume.start;
        let most = FLOOR.saturating_add(size.saturating_mul(RATIO));
        let rest = length - show(&mut inside, length, &mut self.shown)?;
        // The length in the header may be wrong, so the limit counts only the bytes that actually arrive.
        let allowed = rest.min(most.saturating_sub(self.inflated));
        let skipped = io::copy(&mut (&mut inside).take(allowed), &mut io::sink())?;
        if skipped < rest {
            let is_bomb = skipped == allowed;
            return Err(if is_bomb {
                damaged("the decompressed records are too large")
            } else {
                cut()
            });
        }
        self.inflated = self.inflated.saturating_add(length);
        skip_blanks(&mut inside)?;
        // The member must end here. Reading up to its end also verifies its checksum.
        if !inside.fill_buf()?.is_empty() {
            return Err(damaged("a gzip member contains several records"));
        }
        Ok(Some((offset, header)))
    }
}

/// Decompresses a file of `size` bytes as far as possible. Returns a temporary file with the content, its length, and the error
/// that ended the decompression early.
///
/// # Errors
/// The temporary file cannot be created.
pub(super) fn unpacked(source: impl Read, size: u64) -> io::Result<(File, u64, Option<io::Error>)> {
    let most = FLOOR.saturating_add(size.saturating_mul(RATIO));
    let mut file = tempfile::tempfile()?;
    let copied = io::copy(&mut source.take(most), &mut file);
    let length = file.metadata()?.len();
    let why = match copied {
        Ok(copied) if copied == most => {
            Some(damaged("the decompressed record is larger than the limit"))
        }
        copied => copied.err(),
    };
    Ok((file, length, why))
}

fn show(source: &mut impl Read, length: u64, shown: &mut Vec<u8>) -> io::Result<u64> {
    shown.clear();
    let read = source.take(length.min(SHOWN as u64)).read_to_end(shown)?;
    Ok(read as u64)
}

/// Returns whether a file name is that of a WARC file.
pub(super) fn is_warc(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = [".warc", ".warc.gz", ".warc.zst"];
    ends.iter().any(|end| name.ends_with(end))
}

/// Skips the empty lines between two records, at most [`BLANKS`] bytes.
fn skip_blanks(source: &mut impl BufRead) -> io::Result<()> {
    for _ in 0..BLANKS {
        match source.fill_buf()?.first() {
            Some(b'\r' | b'\n') => source.consume(1),
            _ => break,
        }
    }
    Ok(())
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the last record is cut off")
}

fn no_length() -> io::Error {
    damaged("the header of a record gives no length")
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
