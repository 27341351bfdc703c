//! Looks for members of an archive by their names.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::members::Members;
use super::zip::Zip;
use crate::mailbox::Stop;
use crate::mailbox::file::PackedFile;

/// Returns whether any member's name satisfies `is`.
pub(super) fn any_name(mut members: impl Members, is: impl Fn(&[u8]) -> bool) -> io::Result<bool> {
    while let Some(member) = members.next()? {
        if is(&member.name) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a zip archive has a member that only occurs in documents and software packages, such as in a docx or
/// jar file. If the list of members cannot be read, returns false, so that the file is read as an archive and its
/// damage is reported.
pub(crate) fn has_member_of_document(file: File) -> bool {
    const NAMES: [&[u8]; 6] = [
        b"[Content_Types].xml",
        b"mimetype",
        b"META-INF/MANIFEST.MF",
        b"META-INF/container.xml",
        b"META-INF/manifest.xml",
        b"AndroidManifest.xml",
    ];
    let packed = PackedFile::new(&Arc::new(file), &Stop::default());
    let members = Zip::new(&packed, u64::MAX);
    any_name(members, |name| NAMES.contains(&name)).unwrap_or(false)
}
