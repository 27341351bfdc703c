//! Opens an archive or a compressed file that is inside an archive. The reader of zip archives needs a file, because
//! the list of members is at the end of the archive. So the nested archive is first copied to an unnamed temporary
//! file.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::ahead::LookAhead;
use super::members::Members;
use super::names::is_packed_document;
use super::opened::opened;
use crate::mailbox::Stop;
use crate::mailbox::file::{PackedFile, octets_at};
use crate::mailbox::forms::archive::{BLOCK, is_zip};

/// An archive inside an archive. A compressed file is an archive with one member.
pub(super) struct NestedArchive {
    /// Path of the archive in the archives around it.
    pub(super) name: String,
    pub(super) members: Box<dyn Members + Send>,
    pub(super) ahead: LookAhead,
    /// Whether this is an archive, and not a compressed file.
    pub(super) is_archive: bool,
}

impl NestedArchive {
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
        if is_zip(&start) && is_packed_document(packed.file.try_clone()?) {
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
