//! One member of gzip (RFC 1952).

use std::io::{self, Read};

use flate2::{Crc, Decompress};

use super::octets::Octets;
use super::stepwise::{Member, Stepwise};
use super::streams::inflate;

/// RFC 1952 §2.3.1.
const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;

/// A member.
pub(super) struct Gzip {
    data: Stepwise<Decompress>,
    has_header: bool,
    is_over: bool,
    sum: Crc,
}

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            data: inflate(),
            has_header: false,
            is_over: false,
            sum: Crc::new(),
        }
    }

    fn header(&mut self, octets: &mut impl Read) -> io::Result<()> {
        let [_, _, method, flags, ..] = take::<10>(octets)?;
        if method != 8 {
            let what = "not deflated";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if flags & FEXTRA != 0 {
            let length = u16::from_le_bytes(take(octets)?);
            for _ in 0..length {
                take::<1>(octets)?;
            }
        }
        for text in [FNAME, FCOMMENT] {
            while flags & text != 0 && take::<1>(octets)? != [0] {}
        }
        if flags & FHCRC != 0 {
            take::<2>(octets)?;
        }
        self.has_header = true;
        Ok(())
    }

    fn trailer(&mut self, octets: &mut impl Read) -> io::Result<()> {
        let sum = u32::from_le_bytes(take(octets)?);
        let length = u32::from_le_bytes(take(octets)?);
        self.is_over = true;
        if (sum, length) == (self.sum.sum(), self.sum.amount()) {
            return Ok(());
        }
        let what = "the checksum is wrong";
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

fn take<const N: usize>(octets: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    octets.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl<R: Read> Member<R> for Gzip {
    fn read(&mut self, octets: &mut Octets<R>, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        if !self.has_header {
            self.header(octets)?;
        }
        let read = self.data.read(octets, into)?;
        self.sum.update(into.get(..read).unwrap_or_default());
        if read == 0 {
            self.trailer(octets)?;
        }
        Ok(read)
    }
}
