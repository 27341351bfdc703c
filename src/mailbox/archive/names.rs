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

/// Returns whether a zip archive is a document or a software package, such as a docx or jar file: it has a member that only
/// occurs in them, and no member with the name of a mailbox or a message. If the list of members cannot be read, returns
/// false, so that the file is read as an archive and its damage is reported.
pub(crate) fn is_packed_document(file: File) -> bool {
    const NAMES: [&[u8]; 6] = [
        b"[Content_Types].xml",
        b"mimetype",
        b"META-INF/MANIFEST.MF",
        b"META-INF/container.xml",
        b"META-INF/manifest.xml",
        b"AndroidManifest.xml",
    ];
    const SUFFIXES: [&[u8]; 9] = [
        b".mbox", b".mbx", b".mbs", b".mmdf", b".eml", b".emlx", b".msg", b".pst", b".ost",
    ];
    let packed = PackedFile::new(&Arc::new(file), &Stop::default());
    let has = |is: &dyn Fn(&[u8]) -> bool| any_name(Zip::new(&packed, u64::MAX), is);
    let is_mail = |name: &[u8]| {
        let lower = name.to_ascii_lowercase();
        SUFFIXES.iter().any(|suffix| lower.ends_with(suffix))
    };
    has(&|name| NAMES.contains(&name)).unwrap_or(false) && !has(&is_mail).unwrap_or(true)
}
