//! Opens an archive of any format, or a compressed file as an archive with one member.

use std::io::{self, Read};
use std::sync::Arc;

use super::members::{Member, Members};
use super::tar::Tar;
use super::zip::Zip;
use crate::mailbox::compressed::decompressed;
use crate::mailbox::file::{PackedFile, PackedReader, octets_at};
use crate::mailbox::forms::archive::{BLOCK, is_tar, is_zip};

/// A compressed file that is not an archive.
struct Single {
    reader: Box<dyn Read + Send>,
    is_read: bool,
}

/// Opens an archive or a compressed file. Returns its members, and whether it is an archive. `most` is the limit of the
/// decompressed size, in bytes.
pub(super) fn opened(
    packed: &Arc<PackedFile>,
    most: u64,
) -> io::Result<(Box<dyn Members + Send>, bool)> {
    let start = octets_at(&packed.file, 0, BLOCK)?;
    if is_zip(&start) {
        return Ok((Box::new(Zip::new(packed, most)), true));
    }
    if is_tar(&start) {
        return Ok((Box::new(Tar::new(PackedReader::new(packed))), true));
    }
    let mut reader = decompressed(PackedReader::new(packed), most)?;
    let mut first = Vec::with_capacity(BLOCK);
    // A read error can be ignored here: after the bytes before it were used, the next read returns the error again.
    let _ = (&mut reader).take(BLOCK as u64).read_to_end(&mut first);
    let is_archive = is_tar(&first);
    let all = io::Cursor::new(first).chain(reader);
    let members: Box<dyn Members + Send> = if is_archive {
        Box::new(Tar::new(all))
    } else {
        Box::new(Single {
            reader: Box::new(all),
            is_read: false,
        })
    };
    Ok((members, is_archive))
}

impl Members for Single {
    fn next(&mut self) -> io::Result<Option<Member>> {
        let is_first = !std::mem::replace(&mut self.is_read, true);
        Ok(is_first.then(|| Member {
            name: Vec::new(),
            closed: None,
            without_mail: None,
        }))
    }
}

impl Read for Single {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reader.read(into)
    }
}
