//! The kinds of mailboxes that embody reads, and one table of their properties.

use crate::mailbox::forms::format::Format;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartKind {
    /// An mbox or an MMDF file. The reader distinguishes them by their separators.
    Mbox,
    Eudora,
    Maildir,
    Mh,
    Archive,
    Eml,
    /// A file with one Outlook message (`.msg`, `.oft`, `winmail.dat`), which is converted to an internet message.
    Msg,
    /// An Outlook mailbox, which contains folders.
    Pst,
}

/// Properties of a kind: one row of the table.
pub(crate) struct KindFacts {
    pub(crate) holds: KindContent,
    /// The format in which a mailbox of this kind is written if the output format is not given.
    pub(crate) own_form: Format,
    /// Whether messages are always converted, because embody does not write the format of the source.
    pub(crate) is_converted: bool,
    pub(crate) in_place: InPlaceWay,
    /// For a kind that embody does not write: two parts of an error message about a result with the file name of this kind. The
    /// first says what the name is, and the second which other name to choose.
    pub(crate) unwritten_name: Option<(&'static str, &'static str)>,
}

/// The content of a file or a directory, as far as the kind determines it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KindContent {
    /// The file is one message.
    Message,
    /// The file contains messages, one after the other.
    Sequence,
    /// Each message is a file of the directory.
    Directory,
    /// The file contains mailboxes and messages with names.
    Members,
    /// The file contains folders, which are read one by one. Each of them is a mailbox of the result.
    Folders,
}

/// How a mailbox of a kind is changed in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InPlaceWay {
    /// The changed messages replace their files.
    Directory,
    /// A new file replaces the mailbox, which is locked meanwhile.
    Mbox,
    /// A new file replaces the message.
    Message,
    /// The mailbox is not changed. In a directory, it is named, and the others are changed.
    Left,
    /// The command is refused for this reason.
    Refused(&'static str),
}

impl StartKind {
    /// Returns the row of the table.
    pub(crate) fn facts(self) -> &'static KindFacts {
        match self {
            Self::Mbox => &KindFacts {
                holds: KindContent::Sequence,
                own_form: Format::Mbox,
                is_converted: false,
                in_place: InPlaceWay::Mbox,
                unwritten_name: None,
            },
            Self::Eudora => &KindFacts {
                holds: KindContent::Sequence,
                own_form: Format::Mbox,
                is_converted: true,
                in_place: InPlaceWay::Refused(
                    "cannot change a Eudora mailbox in place, because the index of Eudora contains the position of \
                     each message; name a new mailbox",
                ),
                unwritten_name: None,
            },
            Self::Maildir => &KindFacts {
                holds: KindContent::Directory,
                own_form: Format::Maildir,
                is_converted: false,
                in_place: InPlaceWay::Directory,
                unwritten_name: None,
            },
            Self::Mh => &KindFacts {
                holds: KindContent::Directory,
                own_form: Format::Mh,
                is_converted: false,
                in_place: InPlaceWay::Directory,
                unwritten_name: None,
            },
            Self::Archive => &KindFacts {
                holds: KindContent::Members,
                own_form: Format::Mbox,
                is_converted: false,
                in_place: InPlaceWay::Left,
                unwritten_name: Some((
                    "the name of an archive",
                    "name an mbox, because embody does not write archives",
                )),
            },
            Self::Eml => &KindFacts {
                holds: KindContent::Message,
                own_form: Format::Eml,
                is_converted: false,
                in_place: InPlaceWay::Message,
                unwritten_name: None,
            },
            Self::Msg => &KindFacts {
                holds: KindContent::Message,
                own_form: Format::Eml,
                is_converted: false,
                in_place: InPlaceWay::Refused(OUTLOOK_IN_PLACE),
                unwritten_name: Some(OUTLOOK_NAME),
            },
            Self::Pst => &KindFacts {
                holds: KindContent::Folders,
                own_form: Format::Mbox,
                is_converted: true,
                in_place: InPlaceWay::Refused(OUTLOOK_IN_PLACE),
                unwritten_name: Some(OUTLOOK_NAME),
            },
        }
    }

    /// Returns whether a file contains only one message.
    pub(crate) fn is_message(self) -> bool {
        self.facts().holds == KindContent::Message
    }

    /// Returns whether a mailbox is a directory with a file for each message.
    pub(crate) fn is_folder(self) -> bool {
        self.facts().holds == KindContent::Directory
    }

    /// Returns whether a file contains messages, one after the other.
    pub(crate) fn is_sequence(self) -> bool {
        self.facts().holds == KindContent::Sequence
    }

    /// Returns whether a file contains folders, each of which becomes a mailbox.
    pub(crate) fn has_folders(self) -> bool {
        self.facts().holds == KindContent::Folders
    }

    /// Returns the format of a mailbox, or the format in which it is written if the output format is not given.
    pub(crate) fn own_form(self) -> Format {
        self.facts().own_form
    }
}

const OUTLOOK_IN_PLACE: &str =
    "embody does not write Outlook files, so it cannot change one in place; name a new file";

const OUTLOOK_NAME: (&str, &str) = (
    "the name of an Outlook file",
    "choose another name, because embody does not write Outlook files",
);
