//! The three shapes of formats: a file of messages that something divides, a message with something around it, a folder with
//! a message a file. Each shape is an enum with a variant for each format. The code that reads and writes mail asks the enum
//! and names no format.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{emlx, mh, mmdf};
#[cfg(test)]
use tests as counted;

/// What a mailbox of the form starts with that the tests add.
#[cfg(test)]
pub(super) const MAGIC: &[u8] = b"!counted\n";

/// How a file of messages is divided that is no mbox.
///
/// Nothing in its messages is quoted, and their Content-Length is a field like any other. All methods are total: any
/// octets are divided, and the messages tile what is behind the preamble. Each starts with what `content_start` knows,
/// in [`LOOK_AHEAD`] octets, and never with `From `, as those of an mbox do; so what stands behind a message and starts
/// none closes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Division {
    Mmdf,
    /// With a number in front of each message, which none of the others has.
    #[cfg(test)]
    Counted,
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

impl Division {
    pub(super) const ALL: &[Self] = &[
        Self::Mmdf,
        #[cfg(test)]
        Self::Counted,
    ];

    /// Its name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mmdf => "an MMDF mailbox",
            #[cfg(test)]
            Self::Counted => "a counted mailbox",
        }
    }

    /// Why such a mailbox has one piece only.
    pub(crate) fn one_piece(self) -> &'static str {
        match self {
            Self::Mmdf => "it is an MMDF mailbox",
            #[cfg(test)]
            Self::Counted => "it is a counted mailbox",
        }
    }

    /// What is said of such a file that is said to be another one: what it is, and the formats that read it.
    pub(crate) fn read_as(self) -> (&'static str, &'static str) {
        match self {
            Self::Mmdf => (
                "an MMDF mailbox (^A^A^A^A lines), which is read with ",
                " auto or mmdf",
            ),
            #[cfg(test)]
            Self::Counted => ("a counted mailbox, which is read with ", " auto"),
        }
    }

    /// Whether octets start a mailbox, or a message of one: what was appended to a mailbox is looked at alone.
    pub(crate) fn starts(self, bytes: &[u8]) -> bool {
        match self {
            Self::Mmdf => mmdf::starts(bytes),
            #[cfg(test)]
            Self::Counted => counted::starts(bytes),
        }
    }

    /// How many octets stand in front of the first message, if these start a mailbox.
    #[cfg_attr(not(test), allow(unused_variables))] // nothing stands there in those that there are
    pub(crate) fn preamble(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Mmdf => 0,
            #[cfg(test)]
            Self::Counted => counted::preamble(bytes),
        }
    }

    /// Where the content of a message starts, if octets are one: behind what opens it.
    pub(crate) fn content_start(self, message: &[u8]) -> Option<usize> {
        match self {
            Self::Mmdf => mmdf::content_start(message),
            #[cfg(test)]
            Self::Counted => counted::content_start(message),
        }
    }

    /// Where the message ends that starts at an offset; nothing follows the octets if `whole`, and then the end is in
    /// sight.
    pub(crate) fn end_of_message(self, bytes: &[u8], start: usize, whole: bool) -> Ending {
        match self {
            Self::Mmdf => match mmdf::end_of_message(bytes, start, whole) {
                Some((content, end)) => Ending::At { content, end },
                None => Ending::NotInSight(None),
            },
            #[cfg(test)]
            Self::Counted => counted::end_of_message(bytes, start, whole),
        }
    }

    /// How far octets within a message that is too large can be passed on, and whether that is its end; nothing follows
    /// them if `whole`. Asked where no [`Ending`] said how long the message is.
    pub(crate) fn passed(self, bytes: &[u8], whole: bool) -> (usize, bool) {
        match self {
            Self::Mmdf => mmdf::passed(bytes, whole),
            #[cfg(test)]
            Self::Counted => (bytes.len(), false),
        }
    }

    /// What opens a message once it has another content: `opening`, or what of it says how long the content is made true.
    /// `None` if there is no opening for that content.
    #[cfg_attr(not(test), allow(unused_variables))] // those that there are count nothing
    pub(crate) fn opening<'o>(self, opening: &'o [u8], content: &[u8]) -> Option<Cow<'o, [u8]>> {
        match self {
            Self::Mmdf => Some(opening.into()),
            #[cfg(test)]
            Self::Counted => counted::opening(content),
        }
    }

    /// Whether some program may divide a message of this content elsewhere: then it is never changed, and no change
    /// makes such a one.
    pub(crate) fn may_divide(self, content: &[u8]) -> bool {
        match self {
            Self::Mmdf => mmdf::holds_line(content),
            #[cfg(test)]
            Self::Counted => false,
        }
    }
}

/// What stands around a message in a file of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrapping {
    Emlx,
}

impl Wrapping {
    pub(super) const ALL: [Self; 1] = [Self::Emlx];

    /// What is behind the front of it, if octets start as such a file: the header of a message.
    pub(super) fn behind_front(self, start: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Emlx => emlx::behind_count(start),
        }
    }

    /// Where the message stands in a whole file; `None` if it is no such file. An error says why nobody knows where.
    pub(super) fn message(self, file: &[u8]) -> Option<Result<Range<usize>, &'static str>> {
        match self {
            Self::Emlx => emlx::message(file),
        }
    }

    /// The file with another message in that place.
    pub(crate) fn with_message(self, file: &[u8], range: Range<usize>, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Emlx => emlx::with_message(file, range, message),
        }
    }

    /// Whether a result of this name is such a file; any other is the message alone.
    pub(super) fn is_named(self, path: &Path) -> bool {
        match self {
            Self::Emlx => emlx::is_named(path),
        }
    }

    /// What a folder of this name in a folder of such files holds, if it is none of the mail.
    pub(super) fn aside(self, folder: &Path, name: &OsStr) -> Option<&'static str> {
        match self {
            Self::Emlx => emlx::aside(folder, name),
        }
    }
}

/// A folder with a message a file, beside which nothing is a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FolderForm {
    Mh,
}

impl FolderForm {
    pub(super) const ALL: [Self; 1] = [Self::Mh];

    /// Whether a folder shows that it is one.
    pub(super) fn is_marked(self, folder: &Path) -> bool {
        match self {
            Self::Mh => mh::is_marked(folder),
        }
    }

    /// Whether a file of this name is a message.
    pub(crate) fn is_message(self, name: &OsStr) -> bool {
        match self {
            Self::Mh => mh::number(name).is_some(),
        }
    }

    /// Puts messages in the order in which programs list them.
    pub(crate) fn sort(self, names: &mut [PathBuf]) {
        match self {
            Self::Mh => mh::sort(names),
        }
    }

    /// Files that go with the messages to a new folder.
    pub(crate) fn copied(self) -> &'static [&'static str] {
        match self {
            Self::Mh => &[mh::SEQUENCES],
        }
    }

    /// What any other file in it is.
    pub(crate) fn beside(self) -> &'static str {
        match self {
            Self::Mh => "a file beside the messages of an MH folder",
        }
    }
}

#[cfg(test)]
mod tests {
    //! [`MAGIC`], then messages behind a line with the number of their octets.

    use super::*;

    pub(super) fn starts(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC) || count(bytes).is_some()
    }

    pub(super) fn preamble(bytes: &[u8]) -> u64 {
        match bytes.starts_with(MAGIC) {
            true => MAGIC.len() as u64,
            false => 0,
        }
    }

    pub(super) fn content_start(message: &[u8]) -> Option<usize> {
        Some(count(message)?.1)
    }

    pub(super) fn end_of_message(bytes: &[u8], start: usize, whole: bool) -> Ending {
        let end = count(&bytes[start..]).map(|(octets, line)| start + line + octets);
        match end.filter(|&end| end <= bytes.len()) {
            Some(end) => Ending::At { content: end, end },
            None if whole => Ending::At {
                content: bytes.len(),
                end: bytes.len(),
            },
            None => Ending::NotInSight(end.map(|end| end as u64)),
        }
    }

    pub(super) fn opening(content: &[u8]) -> Option<Cow<'static, [u8]>> {
        match content.len() {
            0..1000 => Some(format!("#{:03}\n", content.len()).into_bytes().into()),
            _ => None,
        }
    }

    /// The number, and the length of its line.
    fn count(bytes: &[u8]) -> Option<(usize, usize)> {
        let digits = bytes.get(..5)?.strip_prefix(b"#")?.strip_suffix(b"\n")?;
        let octets = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some((octets, 5))
    }
}
