//! What comes in a stream, read while more of it comes.
//!
//! Who reads waits for what is not there yet; who writes waits while [`MEMORY`] lies in memory before the reader. A
//! reader that looks further ahead gets what it asks for: what lies in between goes to a file without a name. What lies
//! behind the reader is forgotten, and given back to the file system, where that can make holes. So of a stream of any
//! length that is read once, from its start to its end, little is in memory at a time, and seldom anything on the disk.
//!
//! Where compressed data are damaged the stream ends, and says so.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::FallocateFlags;

use super::Stop;
use super::compressed::Damage;
use super::failure::{cannot_read, cannot_write, unreadable};
use super::full::filled_by;
use crate::error::Error;

/// How much of the stream is in memory.
const MEMORY: usize = 4 << 20;
/// What lies behind the reader is given back in pieces of this.
const BEHIND: u64 = 16 << 20;
/// How long it takes at most until a stop is seen.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Pieces in memory at most: of a stream that comes octet by octet.
const PIECES: usize = 512;
/// Bytes read at a time.
const PIECE: usize = 256 << 10;

/// A stream that grows, in memory and into a file.
#[derive(Debug)]
pub(crate) struct Growing {
    file: File,
    stop: Stop,
    state: Mutex<State>,
    /// The state is another one.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// So many bytes are there, or were.
    written: u64,
    /// The last of them; those before are in the file.
    pieces: VecDeque<Arc<Vec<u8>>>,
    /// What they take.
    held: usize,
    /// Where the pieces start.
    in_memory: u64,
    /// Memory for others.
    spare: Vec<Vec<u8>>,
    /// Somebody waits for bytes up to here.
    wanted: u64,
    /// Nobody reads bytes before.
    passed: u64,
    /// Up to here they were written to the file, if they were.
    spilled: u64,
    /// Up to here they are given back.
    given_back: u64,
    end: Option<End>,
    /// Nobody reads it any more.
    abandoned: bool,
}

impl State {
    /// The first piece is not needed in memory any more.
    fn forget_the_first(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.in_memory += piece.len() as u64;
            self.held -= piece.len();
            if let Some(piece) = Arc::into_inner(piece)
                && piece.len() == PIECE
            {
                self.spare.push(piece);
            }
        }
    }
}

/// How a stream ended.
#[derive(Debug)]
enum End {
    Whole,
    /// What was compressed is damaged.
    Damaged(Damage),
    /// With this trouble, until it was told.
    Failed(Option<Error>),
}

impl Growing {
    /// Of nothing so far. Who waits for more heeds `stop`.
    ///
    /// # Errors
    /// [`Error::Write`] about the folder for temporary files.
    pub(crate) fn new(stop: &Stop) -> Result<Self, Error> {
        let folder = std::env::temp_dir();
        Ok(Self {
            file: tempfile::tempfile_in(&folder).map_err(cannot_write(&folder))?,
            stop: stop.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// What lies before the part that is in memory.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// All of it as a file, once it ended.
    ///
    /// # Errors
    /// What went wrong with the stream, or with the file.
    pub(super) fn whole(&self) -> Result<&File, Error> {
        self.wait_for(u64::MAX)?;
        let mut state = self.lock();
        while let Some(piece) = state.pieces.front().map(Arc::clone) {
            self.spill(&piece, state.in_memory)?;
            state.forget_the_first();
            state.spilled = state.in_memory;
        }
        Ok(&self.file)
    }

    fn spill(&self, piece: &[u8], at: u64) -> Result<(), Error> {
        let written = self.file.write_all_at(piece, at);
        written.map_err(|error| cannot_write(&std::env::temp_dir())(error))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let woken = self.changed.wait_timeout(state, LOOK_UP);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes what `reader` gives until it ends, or a stop is requested; on a thread of its own, because a read that
    /// waits is not interrupted by a signal. `reader` may be what went wrong before it could be read. Trouble is told
    /// to who waits, about `name`.
    pub(crate) fn fill(&self, reader: Result<impl io::Read, Error>, name: &std::path::Path) {
        // Whatever happens: nobody waits for ever.
        let ending = Ending(self);
        let filled = reader.and_then(|reader| self.filled(reader, name));
        self.lock().end = Some(match filled {
            Ok(None) => End::Whole,
            Ok(Some(damage)) => End::Damaged(damage),
            Err(error) => End::Failed(Some(error)),
        });
        drop(ending);
    }

    fn filled(
        &self,
        mut reader: impl io::Read,
        name: &std::path::Path,
    ) -> Result<Option<Damage>, Error> {
        loop {
            let mut buffer = self.room()?;
            let read = match reader.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => {
                    // Who reads what is passed over is stopped within it.
                    self.stop.check()?;
                    let damage = error.downcast::<Damage>();
                    return damage.map(Some).map_err(unreadable(name));
                }
            };
            let mut state = self.lock();
            if read == 0 {
                state.spare.push(buffer);
                continue;
            }
            state.written += read as u64;
            state.held += read;
            let piece = if read == buffer.len() {
                buffer
            } else {
                let piece = buffer.get(..read).unwrap_or_default().to_vec();
                state.spare.push(buffer);
                piece
            };
            state.pieces.push_back(Arc::new(piece));
            drop(state);
            self.changed.notify_all();
        }
    }

    /// A buffer for what comes next, once there is room in memory.
    fn room(&self) -> Result<Vec<u8>, Error> {
        let mut state = self.lock();
        loop {
            self.stop.check()?;
            if state.abandoned {
                return Err(Error::Interrupted);
            }
            if state.held < MEMORY && state.pieces.len() < PIECES {
                return Ok(state.spare.pop().unwrap_or_else(|| vec![0; PIECE]));
            }
            match state.pieces.front().map(Arc::clone) {
                Some(piece) if state.written < state.wanted => {
                    let at = state.in_memory;
                    drop(state);
                    self.spill(&piece, at)?;
                    drop(piece);
                    state = self.lock();
                    // Unless the reader has passed it meanwhile.
                    if state.in_memory == at {
                        state.forget_the_first();
                        state.spilled = state.in_memory;
                    }
                }
                _ => state = self.wait(state),
            }
        }
    }

    /// Waits until so many bytes are there, or all that come; how many there are.
    ///
    /// # Errors
    /// What went wrong with the stream; to the first who asks in full. [`Error::Interrupted`].
    pub(crate) fn wait_for(&self, length: u64) -> Result<u64, Error> {
        let mut state = self.lock();
        loop {
            if state.written >= length {
                return Ok(state.written);
            }
            match &mut state.end {
                Some(End::Whole | End::Damaged(_)) => return Ok(state.written),
                Some(End::Failed(error)) => {
                    return Err(error.take().unwrap_or(Error::Interrupted));
                }
                None => {}
            }
            self.stop.check()?;
            if state.wanted < length {
                state.wanted = length;
                self.changed.notify_all();
            }
            state = self.wait(state);
        }
    }

    /// What is wrong with the compressed data it comes from; only once it ended.
    pub(crate) fn damage(&self) -> Option<Damage> {
        match &self.lock().end {
            Some(End::Damaged(damage)) => Some(damage.clone()),
            _ => None,
        }
    }

    /// Whether it ends here, and nobody knows what should follow.
    pub(super) fn is_cut_at(&self, offset: u64) -> bool {
        let state = self.lock();
        matches!(&state.end, Some(End::Damaged(damage)) if !damage.whole) && offset >= state.written
    }

    /// Nobody reads it any more: who fills it ends.
    pub(super) fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }

    /// As [`FileExt::read_at`]; waits for what is not there yet.
    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, Error> {
        let there = self.wait_for(offset.saturating_add(bytes.len() as u64))?;
        // An offset may be a stranger's number, which the system takes for an error.
        if offset >= there {
            return Ok(0);
        }
        let state = self.lock();
        let mut start = state.in_memory;
        if offset < start {
            drop(state);
            return self.read_spilled(bytes, offset, start);
        }
        let mut pieces = state.pieces.iter();
        let piece = pieces.find(|piece| {
            start += piece.len() as u64;
            offset < start
        });
        let piece = piece.map(Arc::clone);
        drop(state);
        let Some(piece) = piece else { return Ok(0) };
        let behind = usize::try_from(start - offset).unwrap_or(usize::MAX);
        let there = piece.get(piece.len() - behind..).unwrap_or_default();
        let length = there.len().min(bytes.len());
        bytes[..length].copy_from_slice(&there[..length]);
        Ok(length)
    }

    /// Of what is in the file, up to `end`.
    fn read_spilled(&self, bytes: &mut [u8], offset: u64, end: u64) -> Result<usize, Error> {
        let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let wanted = left.min(bytes.len());
        let bytes = bytes.get_mut(..wanted).unwrap_or_default();
        filled_by(bytes, |rest, before| {
            self.file.read_at(rest, offset + before)
        })
        .map_err(cannot_read(&std::env::temp_dir()))
    }

    /// Nothing before `offset` is read any more.
    pub(super) fn pass(&self, offset: u64) {
        let mut state = self.lock();
        state.passed = state.passed.max(offset);
        while let Some(first) = state.pieces.front()
            && state.in_memory + first.len() as u64 <= state.passed
        {
            state.forget_the_first();
        }
        let (start, end) = (state.given_back, state.passed.min(state.spilled));
        if end.saturating_sub(start) >= BEHIND {
            state.given_back = end;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where no holes can be made, the file is as long as the stream.
            let _ = rustix::fs::fallocate(&self.file, flags, start, end - start);
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Ends the stream if its thread did not.
struct Ending<'g>(&'g Growing);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.lock().end.get_or_insert(End::Failed(None));
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_stream_is_read_while_it_comes_and_takes_little_of_the_disk() {
        let growing = Arc::new(Growing::new(&Stop::default()).unwrap());
        let filling = Arc::clone(&growing);
        let length = 300_u64 << 20;
        let filler = std::thread::spawn(move || {
            filling.fill(Ok(io::repeat(b'x').take(length)), Path::new("stream"));
        });
        let mut buffer = vec![0; 1 << 20];
        let (mut at, mut most) = (0, 0);
        loop {
            let read = growing.read_at(&mut buffer, at).unwrap();
            if read == 0 {
                break;
            }
            assert!(buffer[..read].iter().all(|&byte| byte == b'x'));
            at += read as u64;
            growing.pass(at);
            most = most.max(growing.file.metadata().unwrap().blocks() * 512);
        }
        filler.join().unwrap();
        assert_eq!(at, length);
        assert!(most < length / 2, "{most} bytes of the disk");
        assert_eq!(growing.read_at(&mut buffer, u64::MAX).unwrap(), 0);
    }

    #[test]
    fn a_reader_that_looks_ahead_or_back_gets_what_it_asks_for() {
        let bytes: Vec<u8> = (0..40_u32 << 18).flat_map(|n| n.to_le_bytes()).collect();
        let growing = Arc::new(Growing::new(&Stop::default()).unwrap());
        let (filling, source) = (Arc::clone(&growing), bytes.clone());
        let filler = std::thread::spawn(move || {
            filling.fill(Ok(source.as_slice()), Path::new("stream"));
        });
        let is_there = |at: usize, length: usize| {
            let mut buffer = vec![0; length];
            let mut filled = 0;
            while filled < length {
                let read = growing.read_at(&mut buffer[filled..], (at + filled) as u64);
                match read.unwrap() {
                    0 => break,
                    read => filled += read,
                }
            }
            assert!(buffer[..filled] == bytes[at..(at + length).min(bytes.len())]);
        };
        for at in [0, 3 << 20, 30 << 20, 1, 9 << 20, (30 << 20) - 7, 17] {
            is_there(at, 100_000);
        }
        growing.pass(8 << 20);
        for at in [31 << 20, 8 << 20, (39 << 20) + 5, 32 << 20] {
            is_there(at, 2 << 20);
        }
        filler.join().unwrap();
        assert_eq!(growing.whole().unwrap().metadata().unwrap().len(), 40 << 20);
        is_there(35 << 20, 1 << 20);
    }

    #[test]
    fn the_trouble_of_a_stream_and_a_stop_end_the_waiting() {
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
        let growing = Growing::new(&Stop::default()).unwrap();
        growing.fill(Ok(Broken(0)), Path::new("stream"));
        assert_eq!(growing.wait_for(10).unwrap(), 10);
        let error = growing.wait_for(11).unwrap_err();
        assert!(
            format!("{error:?}").contains("the line is dead"),
            "{error:?}"
        );
        assert!(growing.wait_for(11).is_err(), "it is no end");

        let stop = Stop::default();
        let growing = Growing::new(&stop).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| growing.wait_for(1));
            stop.request();
            assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted)));
        });
    }
}
