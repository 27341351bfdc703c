//! What a format says of itself, in one of three shapes: a file of messages that something divides, a message with
//! something around it, a folder with a message a file. Who reads and writes mail asks this, and names no format.
//!
//! A shape is a struct of functions: one call for a message, a window or a file, and never one for a line of it.

#![allow(clippy::type_complexity)] // a field's type says what its function takes and gives

use std::borrow::Cow;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How a file of messages is divided that is no mbox.
///
/// Nothing in its messages is quoted, and their Content-Length is a field like any other. All functions are total: any
/// octets are divided, and the messages tile what is behind the preamble. Each starts with what `content_start` knows,
/// in [`LOOK_AHEAD`] octets, and never with `From `, as those of an mbox do; so what stands behind a message and starts
/// none closes it.
#[derive(Debug)]
pub(crate) struct Division {
    /// Its name in a sentence.
    pub(crate) name: &'static str,
    /// Why such a mailbox has one piece only.
    pub(crate) one_piece: &'static str,
    /// What is said of such a file that is said to be another one: what it is, and the formats that read it.
    pub(crate) read_as: (&'static str, &'static str),
    /// Whether octets start a mailbox, or a message of one: what was appended to a mailbox is looked at alone.
    pub(crate) starts: fn(&[u8]) -> bool,
    /// How many octets stand in front of the first message, if these start a mailbox.
    pub(crate) preamble: fn(&[u8]) -> u64,
    /// Where the content of a message starts, if octets are one: behind what opens it.
    pub(crate) content_start: fn(&[u8]) -> Option<usize>,
    /// Where the message ends that starts at an offset; nothing follows the octets if the third argument says so, and
    /// then the end is in sight.
    pub(crate) end_of_message: fn(&[u8], usize, bool) -> Ending,
    /// How far octets within a message that is too large can be passed on, and whether that is its end; nothing follows
    /// them if the second argument says so. Asked where no [`Ending`] said how long the message is.
    pub(crate) passed: fn(&[u8], bool) -> (usize, bool),
    /// What opens a message once it has another content: the first argument, or what of it says how long the content is
    /// made true. `None` if there is no opening for that content.
    pub(crate) opening: for<'o> fn(&'o [u8], &[u8]) -> Option<Cow<'o, [u8]>>,
    /// Whether some program may divide a message of this content elsewhere: then it is never changed, and no change
    /// makes such a one.
    pub(crate) may_divide: fn(&[u8]) -> bool,
}

/// Octets in which the start of a message, or of a mailbox, shows.
pub(crate) const LOOK_AHEAD: usize = 64;

/// Where a message of a divided file ends, as far as can be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Its content, and what closes it.
    At { content: usize, end: usize },
    /// Further octets are needed; if it is known, up to this offset.
    NotInSight(Option<u64>),
}

/// What stands around a message in a file of its own.
#[derive(Debug)]
pub(crate) struct Wrapping {
    /// What is behind the front of it, if octets start as such a file: the header of a message.
    pub(crate) behind_front: fn(&[u8]) -> Option<&[u8]>,
    /// Where the message stands in a whole file; `None` if it is no such file. An error says why nobody knows where.
    pub(crate) message: fn(&[u8]) -> Option<Result<Range<usize>, &'static str>>,
    /// The file with another message in that place.
    pub(crate) with_message: fn(&[u8], Range<usize>, &[u8]) -> Vec<u8>,
    /// Whether a result of this name is such a file; any other is the message alone.
    pub(crate) is_named: fn(&Path) -> bool,
    /// What a folder of this name in a folder of such files holds, if it is none of the mail.
    pub(crate) aside: fn(&Path, &OsStr) -> Option<&'static str>,
}

/// A folder with a message a file, beside which nothing is a message.
#[derive(Debug)]
pub(crate) struct FolderForm {
    /// Whether a folder shows that it is one.
    pub(crate) is_marked: fn(&Path) -> bool,
    /// Whether a file of this name is a message.
    pub(crate) is_message: fn(&OsStr) -> bool,
    /// Puts messages in the order in which programs list them.
    pub(crate) sort: fn(&mut [PathBuf]),
    /// Files that go with the messages to a new folder.
    pub(crate) copied: &'static [&'static str],
    /// What any other file in it is.
    pub(crate) beside: &'static str,
}

impl PartialEq for FolderForm {
    /// Each is a static.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for FolderForm {}
