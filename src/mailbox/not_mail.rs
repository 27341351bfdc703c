//! Kinds of files that embody does not convert as mail, with their verdicts, their names for reports and the advice for error
//! messages.
//!
//! Attachment stores and caches of embody may be in the same directories as mail, and their files may look like mail.
//! They must not be changed: the name of each object in a store is the hash of its content, so a changed object would
//! no longer match its name. A directory that only resembles a store is searched for mail, but a file in it is skipped
//! if its name is the hash of its content.

use std::path::Path;

use crate::detail::{Detail, Setting};
use crate::error::Error;
#[cfg(any(unix, windows))]
use crate::platform::disk::layout;
use crate::span::rest_or_empty;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum NotMail {
    /// A format that contains or may contain mail, and that embody recognises but does not read here: its name, and advice
    /// on how to read the file.
    Format(&'static str, &'static str),
    /// A format that contains no mail. The text is its name.
    Other(&'static str),
    Binary,
    Text,
    /// A file that a mail program keeps next to messages, such as an index. The text names the file in reports.
    Beside(&'static str),
    /// A file with mail that does not belong to its mailbox: mail that the mailbox treats as deleted or as not delivered, or a
    /// copy of other mail. The text names the file in reports.
    SetAside(&'static str),
    /// A store or a cache of embody. The text names it in reports.
    Ours(&'static str),
    /// An empty file with the name of a message. The text names it in reports.
    Empty(&'static str),
    /// An object of a store: it looks like mail, and its file name is the hash of its content.
    Object,
    /// A symbolic link in a directory. It is not followed, because its target may belong to another user. The target is
    /// in the same source, does not exist, or contains no mail.
    Link,
    /// A symbolic link in a directory whose target does not exist, with the name of a mailbox or a message. The target may be
    /// on a disk that is not mounted.
    DeadLink,
    /// A symbolic link in a directory whose target outside of the source contains mail.
    LinkToMail,
    Special,
    OtherFormat(&'static str),
    /// Mail in a format that differs from the one that the user requested with `--format`. The first text describes the
    /// mail, and the second one lists the formats to request instead.
    ReadAs(&'static str, &'static str),
}

/// The verdict on a file that embody does not convert as mail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ContentVerdict {
    /// A mail program or embody itself keeps the file next to mail.
    Part,
    NotMail,
    /// The file contains mail or may contain mail. The run names it, and its exit status is 1.
    NotRead,
}

impl NotMail {
    pub(crate) fn verdict(self) -> ContentVerdict {
        match self {
            Self::Format(..)
            | Self::OtherFormat(_)
            | Self::ReadAs(..)
            | Self::LinkToMail
            | Self::DeadLink => ContentVerdict::NotRead,
            Self::Beside(_) | Self::SetAside(_) | Self::Ours(_) | Self::Object => {
                ContentVerdict::Part
            }
            Self::Other(_)
            | Self::Binary
            | Self::Text
            | Self::Empty(_)
            | Self::Link
            | Self::Special => ContentVerdict::NotMail,
        }
    }

    pub(crate) const STREAMED_ZIP: Self = Self::Format(
        "a zip archive",
        "a zip archive cannot be read from a pipe, because the table of contents is at the end of the file; name the file as a source, and decompress the file first if it is compressed",
    );

    pub(crate) const PACKED_ZIP: Self = Self::Format(
        "a zip archive that was compressed again",
        "decompress the file first: embody cannot read a zip archive while it decompresses it, because the table of contents is at the end of the archive",
    );

    pub(crate) const MBOX_AFTER_TEXT: Self = Self::Format(
        "an mbox with lines of another program before its first message",
        "remove the lines before the first \"From \" line",
    );

    pub(crate) const MBOX_WITH_TABS: Self = Self::Format(
        "an mbox with a tab instead of the space after \"From\" in its separators",
        "other programs find no message at such a line either; replace the tabs, for example with sed 's/^From\\t/From /'",
    );

    pub(crate) const QUOTED_MBOX: Self = Self::Format(
        "an mbox whose separators are quoted with \">\"",
        "no program divides the mails at such lines; remove the \">\" from them, for example with sed -E 's/^>+(From .* [0-9]+:[0-9]{2})/\\1/', and read the new file",
    );

    /// Mail in UTF-16 in a place from which it is not decoded: an archive, a compressed file or a pipe.
    pub(crate) const UTF16: Self = Self::Format(
        "mail in UTF-16",
        "embody reads mail in UTF-16 only from a file that is neither compressed nor in an archive; unpack the file, or save the stream to a file",
    );

    pub(crate) const UTF32: Self = Self::Format(
        "mail in UTF-32",
        "embody does not read this encoding; convert the file first, for example with iconv",
    );

    pub(crate) const EBCDIC: Self = Self::Format(
        "mail in EBCDIC",
        "embody does not read this encoding; convert the file first, for example with iconv",
    );

    pub(crate) const FILE_AMONG_MESSAGES: Self = Self::Format(
        "a picture, a document or other data among messages",
        "the file is not a message; move it to another directory, or get another copy of it",
    );

    pub(crate) const SELF_EXTRACTING: Self = Self::Format(
        "a program with a zip archive that contains mail (a self-extracting archive)",
        "unpack it, and name the directory with its files",
    );

    pub(crate) const ZIP_AT_END: Self = Self::Format(
        "a file with a zip archive that contains mail after other data",
        "unpack it, for example with unzip, and name the directory with its files",
    );

    pub(crate) const SCRIPT_WITH_MAIL: Self = Self::Format(
        "a shell script with an archive that contains mail (a self-extracting archive)",
        "unpack it, for example with sh FILE --noexec --target DIRECTORY, and name the directory with its files",
    );

    pub(crate) const SCRIPT_WITH_ARCHIVE: Self = Self::Format(
        "a shell script with an archive that may contain mail (a self-extracting archive of which embody cannot list all files)",
        "list the files, for example with sh FILE --list; if they contain mail, unpack them and name their directory",
    );

    pub(crate) const NAMED_LIKE_KEYWORDS: Self = Self::Format(
        "a file with mail whose name is that of the file in which Dovecot stores keywords",
        "rename the file, so that embody reads its mail",
    );

    pub(crate) const NAMED_LIKE_STATE: Self = Self::Format(
        "a file with mail whose name is that of a file in which a program keeps its state",
        "rename the file, so that embody reads its mail, or remove the file if the mail is also elsewhere",
    );

    pub(crate) const MAILBOX_IN_TMP: Self = Self::Format(
        "a mailbox in tmp of a Maildir, where programs keep only messages that they have not delivered yet",
        "move the file out of tmp, so that embody reads its mail, or remove it if the mail is also elsewhere",
    );

    pub(crate) const EMPTY_WITH_INDEX: Self = Self::Format(
        "an empty mailbox whose Eudora index lists messages, so the messages are missing",
        "get another copy of the mailbox",
    );

    pub(crate) const UNDELIVERED: Self = Self::SetAside(
        "a message in tmp of a Maildir, whose delivery has not ended or was abandoned",
    );

    pub(crate) const NO_MESSAGE: Self = Self::Empty("an empty file without a message");

    pub(crate) const EMPTY: Self = Self::Other("an empty file");

    pub(crate) const DATABASE: Self = Self::Other("an SQLite database");

    pub(crate) const DOCUMENT: Self = Self::Other("a document or a software package");

    /// Mail in a file next to Maildirs or MH folders, if the options select only these.
    pub(crate) const NEXT_TO_FOLDER: Self = Self::ReadAs(
        "a file with mail that was not read because of ",
        " maildir or mh; without this option, the file is read",
    );

    pub(crate) const APPLE_DOUBLE: Self =
        Self::Beside("an AppleDouble file, in which macOS stores attributes of another file");

    /// An AppleDouble file whose name does not say to which file it belongs.
    pub(crate) const LONE_APPLE_DOUBLE: Self =
        Self::Other("an AppleDouble file without the name of one");

    pub(crate) const ARCHIVE_IN_PLACE: Self = Self::Format(
        "an archive",
        "embody cannot change an archive in place; convert the archive to a new mailbox",
    );

    /// Returns whether the directory is a store or a cache of embody, which a search for mail must skip.
    #[cfg(any(unix, windows))]
    pub(crate) fn of_folder(path: &Path) -> Option<Self> {
        match path {
            _ if layout::is_store(path) => Some(Self::Ours("a store of detached attachments")),
            _ if layout::is_cache(path) => Some(Self::Ours("a cache of embody")),
            _ => None,
        }
    }

    #[cfg(any(unix, windows))]
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        let what = "a lock, a list or a temporary file of an attachment store";
        layout::is_of_store(path).then_some(Self::Beside(what))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Format(name, _) => name,
            Self::Binary => "binary data",
            Self::Text => "text without mail in its first 64 KiB",
            Self::Other(what)
            | Self::Beside(what)
            | Self::SetAside(what)
            | Self::Ours(what)
            | Self::Empty(what) => what,
            Self::Object => "an object of a store of detached attachments",
            Self::Link => {
                "a symbolic link, which embody does not follow; name the link as a source to read the target"
            }
            Self::DeadLink => {
                "a symbolic link that is named like a mail file, but whose target does not exist; make the target available, or remove the link"
            }
            Self::LinkToMail => {
                "a symbolic link to mail outside of the source, which embody does not follow; name the link as a source to read the target"
            }
            Self::Special => "neither a file nor a folder",
            Self::OtherFormat(_) | Self::ReadAs(..) => "mail of another format",
        }
    }

    /// Returns the reason why the file is not read, and what to do.
    pub(crate) fn detail(self) -> Detail {
        match self {
            Self::Format(name, advice) => format!("{name}; {advice}").into(),
            Self::Other(name) => format!("{name}, which contains no mail").into(),
            Self::Binary => "the file contains binary data, not mail: the file starts neither with a \"From \" line nor with a mail header".into(),
            Self::Text => {
                "the file is not a mailbox: the file starts neither with a \"From \" line nor with a mail header"
                    .into()
            }
            Self::Beside(_)
            | Self::SetAside(_)
            | Self::Ours(_)
            | Self::Empty(_)
            | Self::Object
            | Self::Link
            | Self::LinkToMail
            | Self::DeadLink
            | Self::Special => self.name().into(),
            Self::OtherFormat(why) => why.into(),
            Self::ReadAs(what, formats) => Detail::from(what).naming(Setting::Format).then(formats),
        }
    }

    pub(crate) fn error(self, path: &Path) -> Error {
        not_a_mailbox(path, self.detail())
    }
}

/// Returns whether a zip archive may be an office document or a software package, by the name of its first member. A
/// Takeout can contain thousands of them, so this check reads only the start of the file.
pub(crate) fn starts_like_document(start: &[u8]) -> bool {
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
