//! The state of a mail (read, draft and so on), independent of the header fields and file names that store it.

/// The state of a mail, as its labels describe it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MailState {
    /// The mail was read.
    Read,
    /// The mail has a star.
    Flagged,
    /// The mail is a draft.
    Draft,
    /// The mail was forwarded.
    Forwarded,
    /// Gmail marked the mail as important.
    Important,
    /// The mail is in the trash.
    Trashed,
}
