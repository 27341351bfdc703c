//! Programs whose files beside a mailbox belong to its messages.

/// A program that keeps attachments in files of their own, in folders beside its mailboxes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Program {
    /// Apple's Mail: `../Attachments/N/` is of `N.emlx` and `N.partial.emlx`.
    AppleMail,
    /// Eudora: `attach` and `Embedded`, or `Attachments Folder` and `Parts Folder`, beside the mailbox or the folders it is in.
    Eudora,
}
