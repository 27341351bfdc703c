//! Opens an archive or a compressed file inside an archive. It is copied to a temporary file without a name first, because the
//! list of the members of a zip archive is at its end.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use super::ahead::LookAhead;
use super::members::{Member, Members};
use super::names::has_member_of_document;
use super::tar::Tar;
use super::zip::Zip;
use crate::mailbox::Stop;
use crate::mailbox::compressed::{Method, decompressed};
use crate::mailbox::forms::archive::{BLOCK, is_tar, is_zip};
use crate::mailbox::read::file::{PackedFile, PackedReader, octets_at};

/// An archive inside an archive. A compressed file is an archive with one member.
pub(super) struct Nested {
    /// Path of the archive in the archives around it.
    pub(super) name: String,
    pub(super) members: Box<dyn Members + Send>,
    pub(super) ahead: LookAhead,
    /// Whether this is an archive, and not a compressed file.
    pub(super) is_archive: bool,
}

/// A compressed file that is not an archive.
struct Single {
    reader: Box<dyn Read + Send>,
    is_read: bool,
}

impl Nested {
    /// Opens a temporary copy. `most` is the limit of its decompressed size, in bytes. Returns `None` if the file is a document
    /// or a software package.
    pub(super) fn open(
        name: String,
        file: File,
        most: u64,
        stop: &Stop,
    ) -> io::Result<Option<Self>> {
        let packed = PackedFile::new(&Arc::new(file), stop);
        let start = octets_at(&packed.file, 0, BLOCK)?;
        if is_zip(&start) && has_member_of_document(packed.file.try_clone()?) {
            return Ok(None);
        }
        let (members, is_archive) = opened(&packed, most)?;
        let ahead = if is_archive {
            LookAhead::of(&packed, most)
        } else {
            LookAhead::Done
        };
        Ok(Some(Self {
            name,
            members,
            ahead,
            is_archive,
        }))
    }
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
    debug_assert!(Method::of_start(&start).is_some());
    let mut reader = decompressed(PackedReader::new(packed), most)?;
    let mut start = Vec::with_capacity(BLOCK);
    // An error is returned again by the next read, after the bytes before it were used.
    let _ = (&mut reader).take(BLOCK as u64).read_to_end(&mut start);
    let is_archive = is_tar(&start);
    let all = io::Cursor::new(start).chain(reader);
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
