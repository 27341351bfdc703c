//! Archives as sources: zip, and tar, compressed or not (docs/mailboxes.md, "Archives"). Their mboxes come out one behind
//! the other, as one.
//!
//! Nothing is unpacked: no path is ever made of the name of a member, and no more of one is in memory than what is read
//! at a time. `zip` and `tar` find the members, `joined` puts those together that are wanted. What could not be read is
//! [`Damage`](super::compressed::Damage) once all else was.

mod joined;
mod tar;
mod zip;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use self::joined::Joined;
pub(crate) use self::joined::{Judged, Skipped};
use self::tar::Tar;
use self::zip::Zip;
use super::compressed::{Damage, Decoder, Limits, Method};

/// So many octets tell whether something is an archive.
pub(super) const LOOKED_AT: usize = tar::BLOCK;

/// What is to become of a member that starts so.
pub(crate) type Judge = fn(&[u8]) -> Judged;

/// Whether what starts so is a zip archive.
pub(super) fn is_zip(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06")
}

/// Whether what starts so is an archive.
pub(super) fn is_archive(start: &[u8]) -> bool {
    is_zip(start) || tar::is_header(start)
}

/// A file read from its start, whatever others read of it.
pub(super) struct FromStart(pub(super) Arc<File>, pub(super) u64);

impl Read for FromStart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(into, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

/// What is in `file`, which is compressed so: of an archive the members that `judge` takes, which names the others to
/// `skipped`. `None` if it is neither compressed nor an archive.
///
/// # Errors
/// The system's.
pub(crate) fn unpacked(
    file: &Arc<File>,
    method: Option<Method>,
    limits: Limits,
    judge: Judge,
    skipped: &Skipped,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    let whole = FromStart(Arc::clone(file), 0);
    if let Some(method) = method {
        let decoder = Decoder::new(method, whole, limits);
        return Ok(Some(Box::new(Sensing::new(decoder, judge, skipped))));
    }
    let start = start_of(&mut FromStart(Arc::clone(file), 0), LOOKED_AT)?;
    Ok(if is_zip(&start) {
        let zip = Zip::new(Arc::clone(file), limits);
        Some(Box::new(Joined::new(zip, judge, skipped)))
    } else if tar::is_header(&start) {
        Some(Box::new(Joined::new(Tar::new(whole), judge, skipped)))
    } else {
        None
    })
}

/// So many octets, or all there are.
fn start_of(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(length);
    reader.take(length as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// What a reader gives, or the members of the tar archive that it gives.
pub(crate) struct Sensing<R> {
    judge: Judge,
    skipped: Skipped,
    state: State<R>,
}

enum State<R> {
    Fresh(Option<R>),
    Plain(Whole<R>),
    Archive(Box<Joined<Tar<Whole<R>>>>),
}

/// What was looked at, and the rest.
type Whole<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

impl<R: Read> Sensing<R> {
    pub(crate) fn new(reader: R, judge: Judge, skipped: &Skipped) -> Self {
        Self {
            judge,
            skipped: Arc::clone(skipped),
            state: State::Fresh(Some(reader)),
        }
    }
}

impl<R: Read> Read for Sensing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.state {
                State::Plain(reader) => return reader.read(into),
                State::Archive(joined) => return joined.read(into),
                State::Fresh(reader) => {
                    let Some(mut reader) = reader.take() else {
                        return Ok(0);
                    };
                    let mut start = Vec::with_capacity(LOOKED_AT);
                    let read = (&mut reader).take(LOOKED_AT as u64).read_to_end(&mut start);
                    let is_tar = tar::is_header(&start);
                    let all = io::Cursor::new(start).chain(reader);
                    self.state = match is_tar {
                        true => State::Archive(Box::new(Joined::new(
                            Tar::new(all),
                            self.judge,
                            &self.skipped,
                        ))),
                        false => State::Plain(all),
                    };
                    // Data that are damaged there give what came before, and tell it again.
                    if let Err(error) = read
                        && !error.get_ref().is_some_and(|inner| inner.is::<Damage>())
                    {
                        return Err(error);
                    }
                }
            }
        }
    }
}
