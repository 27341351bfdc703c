//! The source of a mailbox: a file, parts of which can be read besides, or a stream. Both are read in the same way, once and
//! from start to end. Damage of compressed data ends them.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use crate::mailbox::compressed::Damage;
use crate::mailbox::forms::quoting::Quoting;
use crate::mailbox::read::consumed::Consumed;
use crate::mailbox::read::full::filled_by;
use crate::platform::FileExt as _;

/// How much of an mbox is read to see how it quotes.
const SAMPLE: usize = 1 << 20;
/// Octets of a stream that are held in memory when they are looked at ahead; further ones go to a file without a name.
const HELD: usize = 4 << 20;
/// Octets that are read at a time by looking ahead.
const STEP: usize = 64 << 10;

/// A file or a stream.
#[derive(Debug)]
pub(crate) enum Source {
    /// The octets of a file between two places.
    File { file: Arc<File>, at: u64, end: u64 },
    /// A pipe, or the content of something compressed: it can be read once.
    Stream(Box<Stream>),
}

impl Source {
    /// All of a file.
    pub(crate) fn file(file: &Arc<File>) -> Self {
        Self::section(file, 0, u64::MAX)
    }

    pub(crate) fn section(file: &Arc<File>, at: u64, end: u64) -> Self {
        let file = Arc::clone(file);
        Self::File { file, at, end }
    }

    pub(crate) fn stream(reader: impl Read + Send + 'static) -> Self {
        Self::Stream(Box::new(Stream::new(Box::new(reader))))
    }

    /// What is in a file, of which so much was read.
    pub(crate) fn content(reader: impl Read + Send + 'static, of: Arc<Consumed>) -> Self {
        let stream = Stream::new(Box::new(reader));
        Self::Stream(Box::new(Stream {
            consumed: Some(of),
            ..stream
        }))
    }

    /// How far the file was read, where the mail is not what lies on the disk.
    pub(crate) fn consumed(&self) -> Option<Arc<Consumed>> {
        match self {
            Self::File { .. } => None,
            Self::Stream(stream) => stream.consumed.clone(),
        }
    }

    /// The file, parts of which can be read besides.
    pub(crate) fn as_file(&self) -> Option<&Arc<File>> {
        match self {
            Self::File { file, .. } => Some(file),
            Self::Stream(_) => None,
        }
    }

    /// Fills `into`; fewer octets come at the end only.
    ///
    /// # Errors
    /// The reader's, but damage is none: it is the end.
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

    /// The octets that stand so many behind those that come next, which stay to be read; fewer at the end only.
    ///
    /// # Errors
    /// A stream's error is told in full by [`fill`](Self::fill), when it comes to that place.
    pub(crate) fn look(&mut self, distance: u64, into: &mut [u8]) -> io::Result<usize> {
        match self {
            // An offset may be a stranger's number, which the system takes for an error.
            Self::File { file, at, end } => match at.checked_add(distance) {
                Some(from) if from <= i64::MAX as u64 => read_between(file, from, *end, into),
                _ => Ok(0),
            },
            Self::Stream(stream) => stream.look(distance, into),
        }
    }

    /// So many octets of what comes next, or all there are.
    pub(crate) fn start(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; length];
        let filled = self.look(0, &mut octets).map_err(|error| match self {
            Self::Stream(stream) => stream.failed.take().unwrap_or(error),
            Self::File { .. } => error,
        })?;
        octets.truncate(filled);
        Ok(octets)
    }

    /// How the mbox quotes, as far as its start tells.
    pub(crate) fn quoting(&mut self) -> io::Result<Quoting> {
        let sample = self.start(SAMPLE)?;
        Ok(Quoting::of_sample(&sample, sample.len() < SAMPLE))
    }

    /// Goes on at a place, which only a file can.
    pub(crate) fn seek(&mut self, to: u64) {
        if let Self::File { at, .. } = self {
            *at = to;
        }
    }

    /// What is wrong with the compressed data, once it was read up to there.
    pub(crate) fn damage(&self) -> Option<&Damage> {
        match self {
            Self::File { .. } => None,
            Self::Stream(stream) => stream.damage.as_ref(),
        }
    }

    /// Goes on behind damage that does not concern what follows. False if there is none such.
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

/// As [`Source::fill`] of what comes next.
impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.fill(into)
    }
}

/// What of a file stands between two places.
fn read_between(file: &File, from: u64, end: u64, into: &mut [u8]) -> io::Result<usize> {
    let left = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
    let wanted = left.min(into.len());
    let into = into.get_mut(..wanted).unwrap_or_default();
    filled_by(into, |rest, before| file.read_at(rest, from + before))
}

/// A stream, and what was read of it before it was taken.
pub(crate) struct Stream {
    reader: Box<dyn Read + Send>,
    consumed: Option<Arc<Consumed>>,
    held: VecDeque<u8>,
    /// What comes behind what is held.
    spilled: Option<Spilled>,
    ended: bool,
    damage: Option<Damage>,
    /// What comes behind all that.
    failed: Option<io::Error>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// A file without a name, of which the octets between two places were not taken yet.
struct Spilled {
    file: File,
    at: u64,
    end: u64,
}

impl Stream {
    fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            consumed: None,
            held: VecDeque::new(),
            spilled: None,
            ended: false,
            damage: None,
            failed: None,
        }
    }

    /// What comes next; nothing at the end.
    fn next(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            self.unspill()?;
        }
        match self.held.read(into)? {
            0 => self.more(into),
            read => Ok(read),
        }
    }

    /// What the reader gives behind all that was read before.
    fn more(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while !self.ended {
            match self.reader.read(into) {
                Ok(read) => {
                    self.ended = read == 0;
                    return Ok(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.damage = Some(error.downcast()?);
                    self.ended = true;
                }
            }
        }
        Ok(0)
    }

    /// Takes octets back from the file.
    fn unspill(&mut self) -> io::Result<()> {
        let Some(spilled) = &mut self.spilled else {
            return Ok(());
        };
        let mut octets = vec![0; STEP];
        let read = read_between(&spilled.file, spilled.at, spilled.end, &mut octets)?;
        spilled.at += read as u64;
        if read == 0 && spilled.at < spilled.end {
            let what = "a temporary file lost what was written to it";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        if spilled.at == spilled.end {
            self.spilled = None;
        }
        self.held.extend(octets.get(..read).unwrap_or_default());
        Ok(())
    }

    fn look(&mut self, distance: u64, into: &mut [u8]) -> io::Result<usize> {
        let wanted = distance.saturating_add(into.len() as u64);
        let mut octets = Vec::new();
        while self.there() < wanted {
            octets.resize(STEP, 0);
            match self.more(&mut octets) {
                Ok(0) => break,
                Ok(read) => self.keep(octets.get(..read).unwrap_or_default())?,
                Err(error) => {
                    // It comes where it stands.
                    self.failed = Some(error);
                    return Err(io::ErrorKind::Other.into());
                }
            }
        }
        let held = self.held.len();
        let from = usize::try_from(distance).unwrap_or(usize::MAX).min(held);
        let mut filled = 0;
        let (front, back) = self.held.as_slices();
        for part in [
            front.get(from.min(front.len())..),
            back.get(from.saturating_sub(front.len())..),
        ] {
            let part = part.unwrap_or_default();
            let length = part.len().min(into.len() - filled);
            into[filled..filled + length].copy_from_slice(&part[..length]);
            filled += length;
        }
        if let (Some(spilled), Some(rest)) = (&self.spilled, into.get_mut(filled..)) {
            let from = spilled.at + (distance + filled as u64).saturating_sub(held as u64);
            filled += read_between(&spilled.file, from, spilled.end, rest)?;
        }
        Ok(filled)
    }

    /// How much was read and not taken.
    fn there(&self) -> u64 {
        let spilled = self.spilled.as_ref();
        self.held.len() as u64 + spilled.map_or(0, |spilled| spilled.end - spilled.at)
    }

    fn keep(&mut self, octets: &[u8]) -> io::Result<()> {
        if self.spilled.is_none() && self.held.len() + octets.len() <= HELD {
            self.held.extend(octets);
            return Ok(());
        }
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(Spilled {
                file: tempfile::tempfile()?,
                at: 0,
                end: 0,
            }),
        };
        spilled.file.write_all_at(octets, spilled.end)?;
        spilled.end += octets.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(length: u32) -> Vec<u8> {
        (0..length / 4).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn what_is_looked_at_ahead_is_there_and_comes_in_its_turn() {
        let octets = numbers(40 << 20);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&octets, 0).unwrap();
        let stream = Source::stream(io::Cursor::new(octets.clone()));
        for mut source in [Source::file(&Arc::new(file)), stream] {
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

    /// Gives an octet, is interrupted, then fails.
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
            let mut source = Source::stream(Broken(0));
            if looks {
                assert!(source.look(0, &mut [0; 20]).is_err());
                assert_eq!(source.look(0, &mut [0; 10]).unwrap(), 10);
            }
            let error = source.fill(&mut [0; 20]).unwrap_err();
            assert_eq!(error.to_string(), "the line is dead");
        }
    }
}
