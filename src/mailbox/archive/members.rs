//! The members of an archive, as the reader of each archive format returns them.

use std::io::{self, Read};

pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) closed: Option<&'static str>,
}

/// The members of an archive, in order. An error is an I/O error of the system, or contains a [`Damage`]. If
/// [`Damage::goes_on`] is true, only one member is damaged, and the next members can still be read.
pub(super) trait Members: Read {
    /// Skips the unread bytes of the current member, and returns the next member.
    fn next(&mut self) -> io::Result<Option<Member>>;
}
