//! The forms of mailboxes. `mbox`, `separator` and `quoting` say where a message of an mbox ends and what is hidden in
//! it, and `rewrite` puts a changed one back; `carriage` does what lines that end with CR need. For mail that goes to a mailbox of another form, `flags` is what programs
//! note about it, and `names` are those of folders. A form that is known but not read has a row in [`OTHERS`].

pub(super) mod carriage;
pub(super) mod cost;
pub(super) mod emlx;
pub(super) mod eudora;
pub(super) mod flags;
#[cfg(test)]
pub(super) mod lie;
pub(super) mod mbox;
pub(super) mod mh;
pub(super) mod mmdf;
pub(super) mod names;
pub(super) mod outlook;
pub(super) mod quoting;
pub(super) mod rewrite;
pub(super) mod separator;

use std::path::Path;

use crate::mailbox::not_mail::NotMail;
#[cfg(feature = "cli")]
use crate::mailbox::program::Program;

/// What the sources are said to be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// Recognised for each source.
    #[default]
    Auto,
    /// mbox files.
    Mbox,
    /// Files with lines of four Control-A around messages.
    Mmdf,
    /// Directories with cur and new.
    Maildir,
    /// Directories of messages in numbered files.
    Mh,
    /// Files with one message each.
    Eml,
    /// A tree of mboxes, as Thunderbird keeps its folders. It is only written: its files are mboxes.
    #[cfg_attr(feature = "cli", value(skip))]
    Thunderbird,
}

impl Format {
    /// Whether messages are written between `From ` lines.
    pub(super) fn has_separators(self) -> bool {
        matches!(self, Self::Mbox | Self::Thunderbird)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Division {
    /// `From ` lines, or what Content-Lengths say.
    Mbox,
    /// Lines of four Control-A. Nothing is quoted, and Content-Length is a field like any other.
    Mmdf,
    /// `has_cr`: a bare CR ends a line. Nothing is quoted or counted.
    Eudora { has_cr: bool },
    /// A form that is wrong about where a message is, for tests of the check (`read::accounts`).
    #[cfg(test)]
    Lying(lie::Lie),
}

/// Known by their first octets, and not read.
pub(super) const OTHERS: &[(&[u8], NotMail)] = {
    use NotMail::Format;
    const BABYL: &str =
        "embody does not read this format; save the mail as an mbox first, with unrmail in Emacs";
    const MBX: &str =
        "embody does not read this format; convert the file to an mbox first, with mailutil";
    const PST: &str =
        "embody does not read this format; convert the file to an mbox first, with readpst";
    const DBX: &str =
        "embody does not read this format; convert the file to an mbox first, with readdbx";
    const UNPACK: &str = "decompress it first";
    // Data that are compressed once were looked into before this is asked.
    &[
        (b"BABYL OPTIONS", Format("a Babyl mailbox", BABYL)),
        (b"*mbx*", Format("an MBX mailbox", MBX)),
        (b"!BDN", Format("an Outlook PST file", PST)),
        (b"\xcf\xad\x12\xfe", Format("an Outlook Express file", DBX)),
        (b"\x1f\x8b", Format("compressed (gzip)", UNPACK)),
        (b"\x28\xb5\x2f\xfd", Format("compressed (zstd)", UNPACK)),
        (b"BZh", Format("compressed (bzip2)", UNPACK)),
        (b"\xfd7zXZ\0", Format("compressed (xz)", UNPACK)),
        (b"\x04\x22\x4d\x18", Format("compressed (lz4)", UNPACK)),
        (
            b"Dovecot-LZ4\x0d",
            Format("compressed by Dovecot (lz4)", UNPACK),
        ),
        (b"SQLite format 3\0", NotMail::DATABASE),
    ]
};

/// The message alone, unless the result is named as of the same form; all of a file where nobody knows its place.
pub(super) fn as_named<'f>(file: &'f [u8], result: Option<&Path>) -> &'f [u8] {
    match emlx::message(file) {
        Some(Ok(range)) if !result.is_some_and(emlx::is_named) => file.get(range).unwrap_or(file),
        _ => file,
    }
}

/// The message, or all of a plain file; why nobody knows where it stands; and whose files lie beside it.
#[cfg(feature = "cli")]
pub(crate) fn shown<'f>(
    file: &'f [u8],
    path: &Path,
) -> (&'f [u8], Option<&'static str>, Option<Program>) {
    match emlx::message(file) {
        None => (file, None, None),
        Some(Ok(range)) => {
            let message = file.get(range).unwrap_or_default();
            (message, None, emlx::beside(path))
        }
        Some(Err(why)) => {
            let message = emlx::behind_count(file).unwrap_or_default();
            (message, Some(why), None)
        }
    }
}
