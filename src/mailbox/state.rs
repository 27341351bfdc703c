//! The state of a mail, apart from the fields and names in which mailboxes note flags.

/// The state of a mail, as far as its labels say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MailState {
    /// It was read.
    Read,
    /// It has a star.
    Flagged,
    /// It is a draft.
    Draft,
    /// It was forwarded.
    Forwarded,
    /// Gmail takes it for important.
    Important,
    /// It is in the trash.
    Trashed,
}
