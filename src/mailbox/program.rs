//! Programs that keep parts of their messages in files next to the mailbox.

/// A program that keeps attachments in separate files, in directories next to its mailboxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Program {
    /// Apple Mail: the attachments of `N.emlx` and `N.partial.emlx` are in `../Attachments/N/`.
    AppleMail,
    /// Eudora: the attachments are in `attach` and `Embedded`, or in `Attachments Folder` and `Parts Folder`. These directories
    /// are next to the mailbox, or next to a directory that contains it.
    Eudora,
}
