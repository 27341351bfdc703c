//! Kinds of files that embody does not convert as mail, with their names for reports and the advice for error messages.
//!
//! Attachment stores and caches of embody may be in the same directories as mail, and their files may look like mail.
//! They must not be changed: the name of each object in a store is the hash of its content, so a changed object would
//! no longer match its name. A directory that only resembles a store is searched for mail, but a file in it is skipped
//! if its name is the hash of its content.

use std::path::Path;

use crate::detail::{Detail, Setting};
use crate::error::Error;
use crate::platform::disk::layout;
use crate::span::rest_or_empty;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum NotMail {
    /// A format that embody recognises but does not convert here: its name, and advice on how to read the file.
    Format(&'static str, &'static str),
    Binary,
    Text,
    /// A file that a mail program keeps next to messages, such as an index. The text names the file in reports.
    Beside(&'static str),
    /// A store or a cache of embody. The text names it in reports.
    Ours(&'static str),
    /// An empty file with the name of a message. The text names it in reports.
    Empty(&'static str),
    /// An object of a store: it looks like mail, and its file name is the hash of its content.
    Object,
    /// A symbolic link in a directory. It is not followed, because its target may belong to another user.
    Link,
    Special,
    OtherFormat(&'static str),
    /// Mail in a format that differs from the one that the user requested with `--format`. The first text describes the
    /// mail, and the second one lists the formats to request instead.
    ReadAs(&'static str, &'static str),
}

impl NotMail {
    pub(crate) const ARCHIVE: Self = Self::Format(
        "an archive",
        "to read the mboxes in the archive, name the archive as a source",
    );

    pub(crate) const STREAMED_ZIP: Self = Self::Format(
        "a zip archive",
        "a zip archive cannot be read from a pipe, because the table of contents is at the end of the file; name the file as a source, and decompress the file first if it is compressed",
    );

    pub(crate) const PACKED_ZIP: Self = Self::Format(
        "a zip archive that was compressed again",
        "decompress the file first, because the table of contents of a zip archive is at its end",
    );

    pub(crate) const PACKED_PST: Self = Self::Format(
        "a compressed mailbox of Outlook",
        "to read this mailbox, name the file as a source",
    );

    pub(crate) const NO_MESSAGE: Self = Self::Empty("an empty file without a message");

    pub(crate) const DATABASE: Self =
        Self::Format("an SQLite database", "embody reads no databases");

    /// Returns whether the directory is a store or a cache of embody, which a search for mail must skip.
    pub(crate) fn of_folder(path: &Path) -> Option<Self> {
        match path {
            _ if layout::is_store(path) => Some(Self::Ours("a store of detached attachments")),
            _ if layout::is_cache(path) => Some(Self::Ours("a cache of embody")),
            _ => None,
        }
    }

    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        let what = "a lock, a list or a temporary file of an attachment store";
        layout::is_of_store(path).then_some(Self::Beside(what))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Format(name, _) => name,
            Self::Binary => "binary data",
            Self::Text => "text without a mail header",
            Self::Beside(what) | Self::Ours(what) | Self::Empty(what) => what,
            Self::Object => "an object of a store of detached attachments",
            Self::Link => {
                "a symbolic link, which embody does not follow; name the link as a source to read the target"
            }
            Self::Special => "neither a file nor a folder",
            Self::OtherFormat(_) | Self::ReadAs(..) => "mail of another format",
        }
    }

    pub(crate) fn error(self, path: &Path) -> Error {
        let why = match self {
            Self::Format(name, advice) => format!("{name}; {advice}").into(),
            Self::Binary => "the file contains binary data, not mail: the file starts neither with a \"From \" line nor with a mail header".into(),
            Self::Text => {
                "the file is not a mailbox: the file starts neither with a \"From \" line nor with a mail header"
                    .into()
            }
            Self::Beside(_)
            | Self::Ours(_)
            | Self::Empty(_)
            | Self::Object
            | Self::Link
            | Self::Special => self.name().into(),
            Self::OtherFormat(why) => why.into(),
            Self::ReadAs(what, formats) => Detail::from(what).naming(Setting::Format).then(formats),
        };
        not_a_mailbox(path, why)
    }
}

/// Returns whether a zip archive is an office document or a software package, by the name of its first member. Such a
/// file contains no mail and is skipped. A Takeout can contain thousands of them, so the check reads only the start of
/// the file.
pub(crate) fn is_document(start: &[u8]) -> bool {
    let first = rest_or_empty(start, 30);
    let known: [&[u8]; 8] = [
        b"mimetype",
        b"[Content_Types].xml",
        b"_rels/",
        b"docProps/",
        b"word/",
        b"xl/",
        b"ppt/",
        b"META-INF/",
    ];
    known.iter().any(|name| first.starts_with(name))
}

pub(crate) fn not_in_place(path: &Path) -> Error {
    let why = Detail::from("embody cannot change an archive in place; name a new mailbox with ");
    not_a_mailbox(path, why.naming(Setting::Output))
}

pub(crate) fn not_a_mailbox(path: &Path, why: impl Into<Detail>) -> Error {
    Error::NotAMailbox {
        path: path.into(),
        why: why.into(),
    }
}
