use std::io::{self, BufRead, Read};

use crate::mailbox::read::file::uninterrupted;

const BUFFER: usize = 64 << 10;

/// Reads a stream or a frame; its end is no octets.
pub(super) type Member<R> = Box<dyn FnMut(&mut Octets<R>, &mut [u8]) -> io::Result<usize> + Send>;

pub(crate) struct Octets<R> {
    inner: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    pub(super) taken: u64,
    /// Then the decoder's error is the reader's, not one of its data.
    pub(super) failed: bool,
}

impl<R: Read> Octets<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            taken: 0,
            failed: false,
        }
    }

    pub(super) fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        while self.end - self.start < length {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.more()? == 0 {
                break;
            }
        }
        let end = self.end.min(self.start + length);
        Ok(self.buffer.get(self.start..end).unwrap_or_default())
    }

    fn more(&mut self) -> io::Result<usize> {
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let read = uninterrupted(|| self.inner.read(room));
        match &read {
            Ok(read) => self.end += read,
            Err(_) => self.failed = true,
        }
        read
    }
}

impl<R: Read> Read for Octets<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: Read> BufRead for Octets<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.more()?;
        }
        Ok(self.buffer.get(self.start..self.end).unwrap_or_default())
    }

    fn consume(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
        self.taken += length as u64;
    }
}
