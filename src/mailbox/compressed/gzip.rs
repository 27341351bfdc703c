//! One member of gzip (RFC 1952).

use std::io::{self, Read};

use flate2::{Crc, FlushDecompress, Status};

use super::octets::Octets;
use super::stepwise::{Decompress, Step, Stepwise};

/// RFC 1952 §2.3.1.
const FHCRC: u8 = 1 << 1;
const FEXTRA: u8 = 1 << 2;
const FNAME: u8 = 1 << 3;
const FCOMMENT: u8 = 1 << 4;

/// The deflated data of a member.
pub(crate) struct Inflate(flate2::Decompress);

impl Decompress for Inflate {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let before = (self.0.total_in(), self.0.total_out());
        let ended = self.0.decompress(input, output, FlushDecompress::None);
        Step {
            taken: self.0.total_in() - before.0,
            written: self.0.total_out() - before.1,
            ended: ended
                .map(|status| status == Status::StreamEnd)
                .map_err(io::Error::other),
        }
    }
}

/// A member.
pub(crate) struct Gzip<R> {
    pub(super) data: Stepwise<R, Inflate>,
    has_header: bool,
    is_over: bool,
    sum: Crc,
}

impl<R: Read> Gzip<R> {
    pub(super) fn new(octets: Octets<R>) -> Self {
        let inflate = Inflate(flate2::Decompress::new(false));
        Self {
            data: Stepwise::new(octets, inflate),
            has_header: false,
            is_over: false,
            sum: Crc::new(),
        }
    }

    fn octets(&mut self) -> &mut Octets<R> {
        &mut self.data.octets
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.octets().read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn skip_text(&mut self) -> io::Result<()> {
        while self.take::<1>()? != [0] {}
        Ok(())
    }

    fn header(&mut self) -> io::Result<()> {
        let [_, _, method, flags, ..] = self.take::<10>()?;
        if method != 8 {
            let what = "not deflated";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if flags & FEXTRA != 0 {
            let length = u16::from_le_bytes(self.take()?);
            for _ in 0..length {
                self.take::<1>()?;
            }
        }
        if flags & FNAME != 0 {
            self.skip_text()?;
        }
        if flags & FCOMMENT != 0 {
            self.skip_text()?;
        }
        if flags & FHCRC != 0 {
            self.take::<2>()?;
        }
        self.has_header = true;
        Ok(())
    }

    fn trailer(&mut self) -> io::Result<()> {
        let sum = u32::from_le_bytes(self.take()?);
        let length = u32::from_le_bytes(self.take()?);
        self.is_over = true;
        if (sum, length) == (self.sum.sum(), self.sum.amount()) {
            return Ok(());
        }
        let what = "the checksum is wrong";
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }
}

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        if !self.has_header {
            self.header()?;
        }
        let read = self.data.read(into)?;
        self.sum.update(into.get(..read).unwrap_or_default());
        if read == 0 {
            self.trailer()?;
        }
        Ok(read)
    }
}
