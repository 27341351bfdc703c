//! Looks for members of an archive by their names.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::members::Members;
use super::zip::Zip;
use crate::mailbox::Stop;
use crate::mailbox::file::PackedFile;
use crate::mailbox::forms::suffixes::SuffixClass;

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
    let packed = PackedFile::new(&Arc::new(file), &Stop::default());
    let has = |is: &dyn Fn(&[u8]) -> bool| any_name(Zip::new(&packed, u64::MAX), is);
    has(&|name| NAMES.contains(&name)).unwrap_or(false) && !has(&is_name_of_mail).unwrap_or(true)
}

/// Returns whether the name of a member is that of a mailbox or a message, which can be compressed.
pub(super) fn is_name_of_mail(name: &[u8]) -> bool {
    let text = String::from_utf8_lossy(name);
    let path = Path::new(&*text);
    let class_of = |path: &Path| path.extension().and_then(SuffixClass::of);
    let class = match class_of(path) {
        Some(SuffixClass::Compressed) => path.file_stem().map(Path::new).and_then(class_of),
        class => class,
    };
    class.is_some_and(SuffixClass::is_mail)
}
