//! The formats of mailboxes, as pure functions. `mbox`, `separator` and `quoting` find the ends of the messages of an
//! mbox and remove quoting. `format` is the table of the formats, and `kind` that of the kinds of sources. `rewrite` puts a
//! changed message back, and `carriage` handles lines that end with CR. For mail that is converted to another format, `flags` converts the flags of messages, `layout` and `modified_utf7` read the
//! names of folders from their paths, and `names` creates the names of folders. `archive` recognises zip and tar archives, and
//! `refused` lists formats that are recognised but not read, and `recorded` finds recorded sessions with several messages.
//!
//! On a system without files, only the formats that `embody::view` opens exist.

pub(super) mod archive;
pub(super) mod carriage;
pub(super) mod cost;
pub(super) mod emlx;
#[cfg(any(unix, windows))]
pub(super) mod emlx_files;
pub(super) mod eudora;
#[cfg(any(unix, windows))]
pub(super) mod eudora_files;
pub(super) mod flag_fields;
pub(super) mod flags;
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(super) mod format;
#[cfg(any(unix, windows))]
pub(super) mod imap_backup;
pub(super) mod keywords;
#[cfg_attr(not(any(unix, windows)), allow(dead_code))]
pub(crate) mod kind;
#[cfg(any(unix, windows))]
pub(super) mod layout;
#[cfg(test)]
pub(super) mod lie;
pub(super) mod mbox;
#[cfg(any(unix, windows))]
pub(super) mod mh;
pub(super) mod mmdf;
pub(crate) mod modified_utf7;
#[cfg(any(unix, windows))]
pub(crate) mod names;
pub(super) mod outlook;
#[cfg(any(unix, windows))]
pub(super) mod proton;
pub(super) mod quoting;
pub(super) mod recorded;
pub(super) mod refused;
pub(super) mod rewrite;
pub(super) mod separator;
#[cfg(any(unix, windows))]
pub(super) mod state_files;
pub(super) mod suffixes;
pub(crate) mod uw_imap;

use std::path::Path;

pub use self::format::{Format, MboxVariant};
use self::mbox::{End, Frame, MboxReadState, MessageEndSearch, Peek};
#[cfg(feature = "cli")]
use crate::mailbox::program::Program;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Division {
    /// Separator lines that start with `From `. In an mboxcl2 mailbox, Content-Length is used instead.
    Mbox,
    /// Lines of four Control-A characters. No lines are quoted, and Content-Length has no meaning.
    Mmdf,
    /// Separator lines of Eudora (`From ???@??? `). With `has_cr`, a bare CR ends a line. No lines are quoted, and
    /// Content-Length has no meaning.
    Eudora { has_cr: bool },
    /// A test format that finds wrong ends of messages on purpose, to check that a run notices lost bytes
    /// (`input::accounts`).
    #[cfg(test)]
    Lying(lie::Lie),
}

impl Division {
    /// Returns whether messages start at `From ` lines. Otherwise, an mbox can be appended to the last message.
    pub(super) fn is_at_from_lines(self) -> bool {
        !matches!(self, Self::Mmdf | Self::Eudora { .. })
    }

    /// Finds the end of the message that starts at `at`. The search continues where `progress` says. `whole` is true if
    /// `bytes` extends to the end of the file.
    pub(super) fn end_of_message(
        self,
        bytes: &[u8],
        (at, whole): (usize, bool),
        counted: &mut MboxReadState,
        progress: &mut MessageEndSearch,
        peek: &mut Peek<'_>,
    ) -> End {
        let from = at + progress.searched;
        match self {
            Self::Mmdf => mmdf::end_of_message(bytes, at, from, whole)
                .map(|(content, end)| Frame::counted(at, content, end))
                .ok_or(None),
            Self::Eudora { .. } => eudora::next_message(bytes, from, whole)
                .or(whole.then_some(bytes.len()))
                .map(|end| Frame::counted(at, end, end))
                .ok_or(None),
            #[cfg(test)]
            Self::Lying(lie) => Ok(lie.frame(bytes, at)),
            Self::Mbox if counted.is_settled => mbox::end_by_separator(bytes, at, progress, whole),
            Self::Mbox => mbox::end_of_message(bytes, at, whole, counted, progress, peek),
        }
    }
}

/// Returns the message in an `.emlx` file, without the data of Apple Mail around it. Returns the complete file if it
/// has another format, if the result is also named `.emlx`, or if the position of the message is unknown.
pub(super) fn as_named<'f>(file: &'f [u8], result: Option<&Path>) -> &'f [u8] {
    match emlx::message(file) {
        Some(Ok(range)) if !result.is_some_and(emlx::is_named) => file.get(range).unwrap_or(file),
        _ => file,
    }
}

/// Returns the message in a file, the reason why its end is unknown (`None` if the end is known), and the program that
/// keeps attachments next to the file. The message is the whole file, except in an `.emlx` file.
#[cfg(feature = "cli")]
pub(crate) fn shown<'f>(
    file: &'f [u8],
    path: &Path,
) -> (&'f [u8], Option<&'static str>, Option<Program>) {
    match emlx::message(file) {
        None => (file, None, None),
        Some(Ok(range)) => {
            let message = file.get(range).unwrap_or_default();
            (message, None, emlx_files::beside(path))
        }
        Some(Err(why)) => {
            let message = emlx::behind_count(file).unwrap_or_default();
            (message, Some(why), None)
        }
    }
}
