//! The members of an archive, as the reader of each archive format returns them.

use std::io::{self, Read};

pub(super) struct Member {
    pub(super) name: Vec<u8>,
    /// Reason why the content of the member cannot be read, for example encryption. `None` if it can be read.
    pub(super) closed: Option<&'static str>,
    /// Description of a member that is not a regular file (a link, a device or a pipe) and therefore contains no mail.
    /// `None` for a regular file.
    pub(super) without_mail: Option<&'static str>,
}

/// The members of an archive, in order. An error is an I/O error of the system, or contains a [`CompressionDamage`]. If
/// [`CompressionDamage::goes_on`] is true, only one member is damaged, and the members after it can still be read.
///
/// [`CompressionDamage`]: crate::mailbox::compressed::CompressionDamage
/// [`CompressionDamage::goes_on`]: crate::mailbox::compressed::CompressionDamage::goes_on
pub(super) trait Members: Read {
    /// Skips the unread bytes of the current member, and returns the next member.
    fn next(&mut self) -> io::Result<Option<Member>>;
}
