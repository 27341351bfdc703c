//! Reads archives as sources: zip and tar, compressed or not (docs/mailbox-internals.md, "Archives"). The mboxes in an
//! archive are read as one mbox, in the order of the archive.
//!
//! No files are unpacked: the name of a member is never used as a path, and only a small part of a member is in memory
//! at a time. Members that could not be read are reported as [`Damage`] after all other members were read.

mod joined;
mod spooled;
mod tar;
mod zip;

#[cfg(feature = "cli")]
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use self::joined::Joined;
#[cfg(feature = "cli")]
use self::joined::Members;
pub(crate) use self::joined::{Judge, Judged, Skipped};
pub(crate) use self::spooled::{Inner, Spooled};
use self::tar::{Passing, Tar};
use self::zip::Zip;
#[cfg(feature = "cli")]
use crate::mailbox::Stop;
use crate::mailbox::compressed::{Damage, Method, decompressed};
use crate::mailbox::read::file::{PackedFile, PackedReader, octets_at};

pub(super) const LOOKED_AT: usize = tar::BLOCK;

pub(super) fn is_zip(start: &[u8]) -> bool {
    let is_member = |start: &[u8]| start.starts_with(b"PK\x03\x04");
    start.starts_with(b"PK\x05\x06")
        || zip::MARKS
            .iter()
            .any(|mark| start.strip_prefix(*mark).is_some_and(is_member))
}

pub(super) fn is_archive(start: &[u8]) -> bool {
    is_zip(start) || tar::is_header(start)
}

impl Passing for PackedReader {
    fn pass(&mut self, length: u64) -> io::Result<u64> {
        let left = (self.packed.file.metadata()?.len()).saturating_sub(self.at);
        let passed = length.min(left);
        self.at += passed;
        self.packed.passed(passed);
        Ok(passed)
    }
}

/// Returns a reader for the mail in an archive or a compressed file. Returns `None` if the file is neither an archive
/// nor compressed. `most` is the limit of the decompressed size, in bytes.
pub(crate) fn unpacked(
    packed: &Arc<PackedFile>,
    most: u64,
    judge: Judge,
    skipped: &Arc<Mutex<Skipped>>,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    let start = octets_at(&packed.file, 0, LOOKED_AT)?;
    let whole = PackedReader::new(packed);
    Ok(if is_zip(&start) {
        let zip = Zip::new(packed, most);
        Some(Box::new(Joined::new(zip, judge, skipped)))
    } else if tar::is_header(&start) {
        Some(Box::new(Joined::new(Tar::new(whole), judge, skipped)))
    } else if Method::of_start(&start).is_some() {
        Some(untarred(whole, most, judge, skipped)?)
    } else {
        None
    })
}

/// Returns whether an archive contains a file whose name ends in `.pst`, which is an Outlook mailbox with several
/// folders. For a compressed archive, the answer is always false: listing its members takes as long as reading it.
#[cfg(feature = "cli")]
pub(crate) fn names_psts(file: File, most: u64, stop: &Stop) -> io::Result<bool> {
    fn any(mut members: impl Members) -> io::Result<bool> {
        while let Some(member) = members.next()? {
            if member.name.to_ascii_lowercase().ends_with(b".pst") {
                return Ok(true);
            }
        }
        Ok(false)
    }
    let packed = PackedFile::new(&Arc::new(file), stop);
    let start = octets_at(&packed.file, 0, LOOKED_AT)?;
    if is_zip(&start) {
        any(Zip::new(&packed, most))
    } else if tar::is_header(&start) {
        any(Tar::new(PackedReader::new(&packed)))
    } else {
        Ok(false)
    }
}

pub(crate) fn untarred<R: Read + Send + 'static>(
    reader: R,
    most: u64,
    judge: Judge,
    skipped: &Arc<Mutex<Skipped>>,
) -> io::Result<Box<dyn Read + Send>> {
    let mut reader = decompressed(reader, most)?;
    let mut start = Vec::with_capacity(LOOKED_AT);
    let read = (&mut reader).take(LOOKED_AT as u64).read_to_end(&mut start);
    // If the data are damaged, the bytes before the damage are used. The error is ignored here, because the reader
    // returns it again on the next read.
    if let Err(error) = read {
        error.downcast::<Damage>()?;
    }
    let is_tar = tar::is_header(&start);
    let all = io::Cursor::new(start).chain(reader);
    Ok(match is_tar {
        true => Box::new(Joined::new(Tar::new(all), judge, skipped)),
        false => Box::new(all),
    })
}

impl<R: Read> Passing for io::Chain<io::Cursor<Vec<u8>>, R> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::Stop;
    use crate::platform::FileExt as _;

    #[test]
    fn a_file_is_passed_over_without_reading_and_read_until_it_is_not_wanted() {
        let file = tempfile::tempfile().unwrap();
        let hole = 1 << 38;
        file.write_all_at(b"behind", hole).unwrap();
        let (file, stop) = (Arc::new(file), Stop::default());
        let mut reader = PackedReader::new(&PackedFile::new(&file, &stop.of_part()));
        assert_eq!(reader.pass(hole + 1).unwrap(), hole + 1);
        let mut rest = [0; 9];
        assert_eq!(reader.read(&mut rest).unwrap(), 5);
        assert_eq!(&rest[..5], b"ehind");
        assert_eq!(reader.pass(3).unwrap(), 0);
        stop.request();
        assert!(reader.read(&mut rest).is_err());
    }
}
