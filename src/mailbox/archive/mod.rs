//! Reads archives as sources: zip and tar, compressed or not (docs/mailbox-internals.md, "Archives"). The mboxes in an
//! archive are read as one mbox, in the order of the archive.
//!
//! No files are unpacked: the name of a member is never used as a path, and only a small part of a member is in memory
//! at a time. Members that could not be read are reported as [`Damage`] after all other members were read.

#[cfg_attr(not(feature = "archives"), allow(dead_code))]
mod ahead;
mod entries;
#[cfg_attr(not(feature = "archives"), allow(dead_code))]
mod joined;
#[cfg_attr(not(feature = "archives"), allow(dead_code))]
mod members;
#[cfg(feature = "archives")]
mod names;
#[cfg(feature = "archives")]
mod nested;
#[cfg(feature = "archives")]
mod opened;
#[cfg_attr(not(feature = "archives"), allow(dead_code))]
mod places;
#[cfg_attr(not(feature = "archives"), allow(dead_code))]
mod skipped;
mod spooled;
#[cfg(feature = "archives")]
mod tar;
#[cfg(feature = "archives")]
mod unpack;
#[cfg(feature = "archives")]
mod zip;

#[cfg(not(feature = "archives"))]
use std::io::{self, Read};
#[cfg(not(feature = "archives"))]
use std::sync::{Arc, Mutex};

pub(crate) use self::entries::{EntryMaker, MOST_KEYWORDS, MboxEntry};
pub(crate) use self::joined::{MemberRules, MemberVerdict};
#[cfg(feature = "archives")]
pub(crate) use self::names::has_member_of_document;
pub(crate) use self::skipped::SkippedMember;
pub(crate) use self::spooled::{InnerMailboxes, SpooledFile, spool_in};
#[cfg(feature = "cli")]
pub(crate) use self::unpack::names_psts;
#[cfg(feature = "archives")]
pub(crate) use self::unpack::{unpacked, untarred};
#[cfg(not(feature = "archives"))]
use crate::mailbox::compressed::{Method, unsupported};
#[cfg(not(feature = "archives"))]
use crate::mailbox::file::{PackedFile, octets_at};
#[cfg(not(feature = "archives"))]
use crate::mailbox::forms::archive::{BLOCK, is_archive};

/// Without the feature `archives`, the members of a zip archive cannot be listed, so its first member decides.
#[cfg(not(feature = "archives"))]
pub(crate) fn has_member_of_document(_: std::fs::File) -> bool {
    true
}

/// Returns `None` if the file is neither an archive nor compressed, as `unpack::unpacked` does.
///
/// # Errors
/// Returns an error if the file is an archive or compressed, because this build lacks the feature `archives`.
#[cfg(not(feature = "archives"))]
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
