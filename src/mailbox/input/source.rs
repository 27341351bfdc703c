//! The bytes of a mailbox, from a file or from a stream. Both are read once from start to end. A file can also be read
//! at any offset. If compressed data are damaged, the source ends at the damage.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::sync::{Arc, Mutex};

use tempfile::SpooledTempFile;

use crate::error::unpoisoned;
use crate::mailbox::archive::SkippedMember;
use crate::mailbox::compressed::CompressionDamage;
use crate::mailbox::file::{PackedFile, filled_by, uninterrupted};
use crate::mailbox::forms::carriage;
use crate::mailbox::forms::quoting::Quoting;
use crate::platform::FileExt as _;

const SAMPLE: usize = 1 << 20;
/// Number of bytes that are read ahead of a stream and kept in memory. Further bytes are kept in an unnamed file.
const HELD: usize = 4 << 20;
const STEP: usize = 64 << 10;

pub(crate) enum InputSource {
    /// The bytes of a file between two offsets.
    File { file: Arc<File>, at: u64, end: u64 },
    /// A pipe, or the decompressed content of a file.
    Stream(Box<InputStream>),
}

impl InputSource {
    pub(crate) fn file(file: &Arc<File>) -> Self {
        Self::section(file, 0, u64::MAX)
    }

    pub(crate) fn section(file: &Arc<File>, at: u64, end: u64) -> Self {
        let file = Arc::clone(file);
        Self::File { file, at, end }
    }

    /// Creates a source that reads a stream. `skipped` receives the members of an archive that are not mail.
    pub(crate) fn stream(
        reader: impl Read + Send + 'static,
        of: Option<Arc<PackedFile>>,
        skipped: Arc<Mutex<SkippedMember>>,
    ) -> Self {
        Self::Stream(Box::new(InputStream {
            reader: Box::new(reader),
            of,
            skipped,
            ahead: SpooledTempFile::new(HELD),
            at: 0,
            end: 0,
            ended: false,
            damage: None,
            failed: None,
            is_utf16: false,
        }))
    }

    /// Marks the source as decoded from UTF-16. Its text is in UTF-8, not in the charsets that the parts declare.
    pub(crate) fn of_utf16(mut self) -> Self {
        if let Self::Stream(stream) = &mut self {
            stream.is_utf16 = true;
        }
        self
    }

    pub(crate) fn is_utf16(&self) -> bool {
        self.as_stream().is_some_and(|stream| stream.is_utf16)
    }

    fn as_stream(&self) -> Option<&InputStream> {
        match self {
            Self::File { .. } => None,
            Self::Stream(stream) => Some(stream),
        }
    }

    pub(crate) fn packed(&self) -> Option<&Arc<PackedFile>> {
        self.as_stream()?.of.as_ref()
    }

    pub(crate) fn as_file(&self) -> Option<&Arc<File>> {
        match self {
            Self::File { file, .. } => Some(file),
            Self::Stream(_) => None,
        }
    }

    /// Returns the file and the offset of the next byte. Returns `None` for a stream, whose bytes cannot be read again.
    pub(crate) fn place(&self) -> Option<(&Arc<File>, u64)> {
        match self {
            Self::File { file, at, .. } => Some((file, *at)),
            Self::Stream(_) => None,
        }
    }

    /// Returns the file whose owner, mode and time the result gets.
    pub(crate) fn original(&self) -> Option<&Arc<File>> {
        self.as_file()
            .or_else(|| self.packed().map(|packed| &packed.file))
    }

    /// Returns whether the archive contained Outlook mailboxes, as far as it was read.
    #[cfg(feature = "cli")]
    pub(crate) fn has_spooled(&self) -> bool {
        let has_some = |it: &InputStream| !unpoisoned(it.skipped.lock()).spooled.is_empty();
        self.as_stream().is_some_and(has_some)
    }

    /// Returns the members of an archive that were read so far, with their folders, and the archive offset of the next
    /// byte of this source.
    pub(crate) fn members(&self) -> Option<(Arc<Mutex<SkippedMember>>, u64)> {
        let stream = self.as_stream()?;
        let ahead = stream.end - stream.at;
        let read = unpoisoned(stream.skipped.lock()).places.read;
        Some((Arc::clone(&stream.skipped), read.saturating_sub(ahead)))
    }

    pub(crate) fn skipped(&self) -> SkippedMember {
        let stream = self.as_stream();
        stream.map_or_else(SkippedMember::default, |stream| {
            std::mem::take(&mut *unpoisoned(stream.skipped.lock()))
        })
    }

    /// Fills `into`. Returns fewer bytes only at the end of the source. Damage is not an error: the source ends there.
    pub(crate) fn fill(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File { file, at, end } => {
                let filled = read_between(file, *at, *end, into)?;
                *at += filled as u64;
                Ok(filled)
            }
            Self::Stream(stream) => filled_by(into, |rest, _| stream.next(rest)),
        }
    }

    /// Returns the bytes at `distance` from the next one, without consuming them. Returns fewer bytes only at the end
    /// of the source. If a stream fails, [`fill`](Self::fill) returns the error when it reaches that position.
    pub(crate) fn look(&mut self, distance: u64, into: &mut [u8]) -> io::Result<usize> {
        match self {
            // The distance may come from untrusted input, and the system rejects offsets above `i64::MAX`. Such an
            // offset is after the end of any file, so nothing is read.
            Self::File { file, at, end } => match at.checked_add(distance) {
                Some(from) if from <= i64::MAX as u64 => read_between(file, from, *end, into),
                _ => Ok(0),
            },
            Self::Stream(stream) => stream.look(distance, into),
        }
    }

    pub(crate) fn start(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; length];
        let filled = self.look(0, &mut octets).map_err(|error| match self {
            Self::Stream(stream) => stream.failed.take().unwrap_or(error),
            Self::File { .. } => error,
        })?;
        octets.truncate(filled);
        Ok(octets)
    }

    pub(crate) fn quoting(&mut self) -> io::Result<Quoting> {
        let sample = self.start(SAMPLE)?;
        let whole = sample.len() < SAMPLE;
        Ok(if carriage::ends_lines_with_cr(&sample) {
            Quoting::of_sample(&carriage::in_line_feeds(&sample), whole)
        } else {
            Quoting::of_sample(&sample, whole)
        })
    }

    /// Returns the damage of the compressed data. It is known only after the data before it were read.
    pub(crate) fn damage(&self) -> Option<&CompressionDamage> {
        self.as_stream()?.damage.as_ref()
    }

    /// Continues to read after damage that does not affect the following data. Returns false if there is no such
    /// damage.
    pub(crate) fn go_on(&mut self) -> bool {
        match self {
            Self::Stream(stream) if stream.damage.as_ref().is_some_and(|it| it.goes_on) => {
                (stream.damage, stream.ended) = (None, false);
                true
            }
            _ => false,
        }
    }
}

impl Read for InputSource {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.fill(into)
    }
}

pub(super) fn read_between(file: &File, from: u64, end: u64, into: &mut [u8]) -> io::Result<usize> {
    let left = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
    let wanted = left.min(into.len());
    let into = into.get_mut(..wanted).unwrap_or_default();
    filled_by(into, |rest, before| file.read_at(rest, from + before))
}

pub(crate) struct InputStream {
    reader: Box<dyn Read + Send>,
    of: Option<Arc<PackedFile>>,
    skipped: Arc<Mutex<SkippedMember>>,
    /// Bytes that were read ahead. The bytes between `at` and `end` are not consumed yet.
    ahead: SpooledTempFile,
    at: u64,
    end: u64,
    ended: bool,
    damage: Option<CompressionDamage>,
    failed: Option<io::Error>,
    is_utf16: bool,
}

impl InputStream {
    fn next(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.seen(self.at, into)?;
        self.at += read as u64;
        if self.end > 0 && self.at == self.end {
            self.ahead = SpooledTempFile::new(HELD);
            (self.at, self.end) = (0, 0);
        }
        match read {
            0 => self.more(into),
            read => Ok(read),
        }
    }

    fn more(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.ended {
            return Ok(0);
        }
        let read = match uninterrupted(|| self.reader.read(into)) {
            Ok(read) => read,
            Err(error) => {
                self.damage = Some(error.downcast()?);
                0
            }
        };
        self.ended = read == 0;
        Ok(read)
    }

    fn look(&mut self, distance: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = self.at.saturating_add(distance);
        let mut octets = Vec::new();
        while self.end < from.saturating_add(into.len() as u64) {
            octets.resize(STEP, 0);
            match self.more(&mut octets) {
                Ok(0) => break,
                Ok(read) => {
                    self.ahead.seek(SeekFrom::Start(self.end))?;
                    self.ahead.write_all(&octets[..read])?;
                    self.end += read as u64;
                }
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::ErrorKind::Other.into());
                }
            }
        }
        self.seen(from, into)
    }

    fn seen(&mut self, from: u64, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(from)).unwrap_or(usize::MAX);
        let length = left.min(into.len());
        if length > 0 {
            self.ahead.seek(SeekFrom::Start(from))?;
            self.ahead.read_exact(&mut into[..length])?;
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(length: u32) -> Vec<u8> {
        (0..length / 4).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn peeked_bytes_match_the_file_and_are_read_later_in_order() {
        let octets = numbers(40 << 20);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&octets, 0).unwrap();
        let stream = InputSource::stream(io::Cursor::new(octets.clone()), None, Arc::default());
        for mut source in [InputSource::file(&Arc::new(file)), stream] {
            let mut at = 0;
            for (step, distance) in [
                (0, 0),
                (10, 3 << 20),
                (100_000, 30 << 20),
                (1, 1),
                (9 << 20, 30 << 20),
                (0, (31 << 20) - 7),
                (17, 100 << 20),
                (25 << 20, 0),
                (1, 7 << 20),
            ] {
                let mut taken = vec![0; step];
                assert_eq!(source.fill(&mut taken).unwrap(), step);
                assert!(taken == octets[at..at + step]);
                at += step;
                let mut seen = vec![0; 100_000];
                let length = source.look(distance as u64, &mut seen).unwrap();
                let from = (at + distance).min(octets.len());
                let end = (from + seen.len()).min(octets.len());
                assert!(seen[..length] == octets[from..end], "{at} {distance}");
            }
            let mut rest = Vec::new();
            source.read_to_end(&mut rest).unwrap();
            assert!(rest == octets[at..]);
            assert_eq!(source.look(u64::MAX, &mut [0]).unwrap(), 0);
        }
    }

    struct Broken(u8);

    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                1 => Ok(into.len().min(10)),
                2 => Err(io::ErrorKind::Interrupted.into()),
                _ => Err(io::Error::other("the line is dead")),
            }
        }
    }

    #[test]
    fn an_error_is_no_end_also_where_it_was_seen_ahead() {
        for looks in [false, true] {
            let mut source = InputSource::stream(Broken(0), None, Arc::default());
            if looks {
                assert!(source.look(0, &mut [0; 20]).is_err());
                assert_eq!(source.look(0, &mut [0; 10]).unwrap(), 10);
            }
            let error = source.fill(&mut [0; 20]).unwrap_err();
            assert_eq!(error.to_string(), "the line is dead");
        }
    }
}
