//! The state of a mail (read, draft and so on), independent of the header fields and file names that store it.

/// A state of a mail, such as read or starred, that one of its labels shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MailState {
    /// The mail was read.
    Read,
    /// The mail has a star.
    Flagged,
    /// The mail is a draft.
    Draft,
    /// The mail was answered.
    Replied,
    /// The mail was forwarded.
    Forwarded,
    /// Gmail marked the mail as important.
    Important,
    /// The mail is in the trash.
    Trashed,
}
