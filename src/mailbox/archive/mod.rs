//! Reads archives as sources: zip and tar, compressed or not (docs/mailbox-internals.md, "Archives"). The mboxes in an
//! archive are read as one mbox, in the order of the archive.
//!
//! No files are unpacked: the name of a member is never used as a path, and only a small part of a member is in memory
//! at a time. Members that could not be read are reported as damage after all other members were read.

#[cfg_attr(not(feature = "archives"), allow(dead_code))]
mod ahead;
#[cfg(feature = "archives")]
mod embedded;
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
#[cfg(not(feature = "archives"))]
mod without;
#[cfg(feature = "archives")]
mod zip;

#[cfg(feature = "archives")]
pub(crate) use self::embedded::{has_zipped_mail, is_zip_with_mail_at_end, mail_in_script};
pub(crate) use self::entries::{EntryMaker, MOST_KEYWORDS, MboxEntry};
pub(crate) use self::joined::{MemberRules, MemberVerdict};
#[cfg(feature = "archives")]
pub(crate) use self::names::is_packed_document;
pub(crate) use self::skipped::SkippedMember;
pub(crate) use self::spooled::{InnerMailboxes, SpooledFile, spool_in};
#[cfg(feature = "cli")]
pub(crate) use self::unpack::names_psts;
#[cfg(feature = "archives")]
pub(crate) use self::unpack::{unpacked, untarred};
#[cfg(not(feature = "archives"))]
pub(crate) use self::without::{
    has_zipped_mail, is_packed_document, is_zip_with_mail_at_end, mail_in_script, unpacked,
};
