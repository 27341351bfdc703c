use std::io::{self, BufRead, Read};

use crate::mailbox::file::uninterrupted;
use crate::span::front;

const BUFFER: usize = 64 << 10;

/// Decompresses the next bytes of one member (a stream or frame) into a buffer. Returns the number of bytes, which is 0
/// at the end of the member.
pub(super) type Member<R> = Box<dyn FnMut(&mut Octets<R>, &mut [u8]) -> io::Result<usize> + Send>;

pub(crate) struct Octets<R> {
    inner: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    pub(super) taken: u64,
    /// Set if reading the compressed data failed. An error of the decoder is then an I/O error of the system; otherwise
    /// it means that the data are damaged.
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
                (self.start, self.end) = (0, self.end - self.start);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let read = uninterrupted(|| self.inner.read(room));
            self.failed |= read.is_err();
            match read? {
                0 => break,
                more => self.end += more,
            }
        }
        Ok(front(&self.buffer[self.start..self.end], length))
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
        self.peek(1)?;
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
        self.taken += length as u64;
    }
}
