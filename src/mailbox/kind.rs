//! The kinds of mailboxes that embody reads.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartKind {
    /// An mbox or an MMDF file. The reader distinguishes them by their separators.
    Mbox,
    /// A Eudora mailbox. Never changed in place.
    Eudora,
    Maildir,
    Mh,
    Archive,
    Eml,
    /// A file with one Outlook message (`.msg`, `.oft`, `winmail.dat`), which is converted to an internet message. Never
    /// changed in place.
    Msg,
    /// An Outlook mailbox, which contains folders. Never changed in place.
    Pst,
}

impl StartKind {
    /// Whether a file contains only one message.
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Self::Eml | Self::Msg)
    }

    pub(crate) fn is_folder(self) -> bool {
        matches!(self, Self::Maildir | Self::Mh)
    }
}
