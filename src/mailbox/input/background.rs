//! Reads a stream in a separate thread, because a blocked read cannot be interrupted, and because decompression can
//! then run in parallel.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::error::Error;
use crate::mailbox::Stop;
use crate::mailbox::compressed::CompressionDamage;
use crate::mailbox::failure::unreadable;
use crate::mailbox::file::uninterrupted;

const PIECE: usize = 256 << 10;
const PIECES: usize = 16;
const LOOK_UP: Duration = Duration::from_millis(50);

/// Reader of the stream that the thread reads ahead. Its errors contain an [`Error`] or a [`CompressionDamage`].
pub(crate) struct Background {
    /// Pieces of the stream. An empty piece is the end of the stream.
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: io::Cursor<Vec<u8>>,
    ended: bool,
    /// Request to stop the thread, made if the run is stopped or this reader is dropped.
    ending: Stop,
}

impl Background {
    /// Starts a thread that calls `open` and reads the returned stream, because both may block. Errors contain `name`
    /// as the name of the stream. When the reader is dropped, the thread ends after its current read.
    pub(crate) fn start<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        name: PathBuf,
        ending: Stop,
    ) -> Self {
        let (sender, pieces) = mpsc::sync_channel(PIECES);
        let stop = ending.clone();
        std::thread::spawn(move || {
            let in_full = |error: io::Error| {
                // If a stop was requested while archive members were skipped, the error is an I/O error. It is returned
                // as [`Error::Interrupted`].
                let stopped = |error| stop.check().err().ok_or(error);
                let error = error.downcast::<Error>().or_else(stopped);
                io::Error::other(error.unwrap_or_else(unreadable(&name)))
            };
            let mut reader = match open() {
                Ok(reader) => reader,
                // If the reader was dropped, the error is not needed, so a failed `send` is ignored.
                Err(error) => return drop(sender.send(Err(in_full(error)))),
            };
            let mut buffer = vec![0; PIECE];
            loop {
                let (piece, goes_on) = match uninterrupted(|| reader.read(&mut buffer)) {
                    Ok(read) => (Ok(buffer[..read].to_vec()), read > 0),
                    Err(error) => match error.downcast::<CompressionDamage>() {
                        Ok(damage) => (Err(damage.clone().into()), damage.goes_on),
                        Err(error) => (Err(in_full(error)), false),
                    },
                };
                if sender.send(piece).is_err() || !goes_on {
                    return;
                }
            }
        });
        Self {
            pieces,
            piece: io::Cursor::default(),
            ended: false,
            ending,
        }
    }
}

impl Read for Background {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() || self.ended {
                return Ok(read);
            }
            match self.pieces.recv_timeout(LOOK_UP) {
                Ok(piece) => {
                    self.piece = io::Cursor::new(piece?);
                    self.ended = self.piece.get_ref().is_empty();
                }
                Err(RecvTimeoutError::Timeout) => self.ending.check().map_err(io::Error::other)?,
                // The thread ended without an empty piece, for example by a panic. The data may be incomplete, so this
                // is an error.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other(Error::Interrupted));
                }
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.ending.request();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started<R: Read + Send + 'static>(reader: R, stop: &Stop) -> Background {
        Background::start(|| Ok(reader), "stream".into(), stop.of_part())
    }

    struct Passing(Stop);

    impl Read for Passing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            while self.0.check().is_ok() {
                std::thread::yield_now();
            }
            Err(io::Error::other("not wanted"))
        }
    }

    #[test]
    fn stop_interrupts_a_reader_that_delivers_nothing_without_reporting_damage() {
        let stop = Stop::default();
        let mut reader = started(Passing(stop.clone()), &stop);
        stop.request();
        let error = reader.read(&mut [0; 9]).unwrap_err().downcast::<Error>();
        assert!(matches!(error, Ok(Error::Interrupted)), "{error:?}");
    }

    #[test]
    fn background_reader_delivers_all_bytes_and_a_panic_is_not_end_of_file() {
        let mut octets = Vec::new();
        let reader = io::repeat(b'x').take(40 << 20);
        started(reader, &Stop::default())
            .read_to_end(&mut octets)
            .unwrap();
        assert_eq!(octets.len(), 40 << 20);

        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("a test of panics");
            }
        }
        assert!(started(Panics, &Stop::default()).read(&mut [0; 9]).is_err());
    }

    struct Spoiled(u8);

    impl Read for Spoiled {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            match self.0 {
                10 => Ok(0),
                count if count % 2 == 0 => Err(io::Error::other(CompressionDamage::of_member(
                    "wrong".to_owned(),
                ))),
                count => {
                    into[0] = count;
                    Ok(1)
                }
            }
        }
    }

    #[test]
    fn background_reading_continues_after_each_damaged_place() {
        let mut reader = started(Spoiled(0), &Stop::default());
        for count in [1, 3, 5, 7] {
            let mut octets = [0; 9];
            assert_eq!(reader.read(&mut octets).unwrap(), 1);
            assert_eq!(octets[0], count);
            let damage = reader
                .read(&mut octets)
                .unwrap_err()
                .downcast::<CompressionDamage>();
            assert!(damage.unwrap().goes_on);
        }
        assert_eq!(reader.read(&mut [0; 9]).unwrap(), 1);
        assert_eq!(reader.read(&mut [0; 9]).unwrap(), 0);
    }
}
