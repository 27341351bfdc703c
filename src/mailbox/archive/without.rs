//! Substitutes for a build without the feature `archives`, which recognises archives and compressed files but cannot read
//! them.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::{MemberRules, SkippedMember};
use crate::mailbox::compressed::{Method, unsupported};
use crate::mailbox::file::{PackedFile, octets_at};
use crate::mailbox::forms::archive::{BLOCK, EmbeddedMail, is_archive};

/// Without the feature `archives`, the members of a zip archive cannot be listed, so its first member decides.
pub(crate) fn is_packed_document(_: std::fs::File) -> bool {
    true
}

/// Without the feature `archives`, the members of an archive after other data cannot be listed.
pub(crate) fn is_zip_with_mail_at_end(
    _: &std::fs::File,
    _: &[u8],
    _: fn(&[u8], &[u8]) -> bool,
) -> bool {
    false
}

pub(crate) fn has_zipped_mail(_: &[u8], _: fn(&[u8], &[u8]) -> bool) -> bool {
    false
}

pub(crate) fn mail_in_script(
    _: Option<&std::fs::File>,
    _: &[u8],
    _: fn(&[u8], &[u8]) -> bool,
) -> Option<EmbeddedMail> {
    None
}

/// Returns `None` if the file is neither an archive nor compressed, as `unpack::unpacked` does.
///
/// # Errors
/// Returns an error if the file is an archive or compressed, because this build lacks the feature `archives`.
pub(crate) fn unpacked(
    packed: &PackedFile,
    _: u64,
    _: MemberRules,
    _: &Arc<Mutex<SkippedMember>>,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    let first = octets_at(&packed.file, 0, BLOCK)?;
    match Method::of_start(&first) {
        None if is_archive(&first) => Err(unsupported("archives")),
        None => Ok(None),
        Some(method) => Err(unsupported(method.name())),
    }
}
