//! Eudora mailboxes: converts messages that Eudora took apart back to MIME.
//!
//! `notes` finds the texts and the notes in a message (a note is a line that names an attached file), `flattened`
//! decides whether Eudora took the message apart, `compose` writes the parts. `engine/unflatten.rs` obtains the files. If
//! several messages name the same file, it belongs to the first of them. Only the driver has seen the earlier messages
//! of the mailbox, so it assigns the files to the notes.

#[cfg(all(feature = "file", feature = "mailbox"))]
pub(in crate::engine) mod compose;
#[cfg(all(feature = "file", feature = "mailbox"))]
pub(in crate::engine) mod flattened;
pub(crate) mod notes;

#[cfg(all(feature = "file", feature = "mailbox"))]
pub(crate) use self::flattened::FlattenedMessage;
use crate::engine::policy::Follow;
use crate::engine::report::Kind;

/// The word of `--follow` that selects the form.
pub(crate) const FOLLOW: Follow = Follow::Eudora;

/// Kind of the report rows about files that Eudora stored, and about texts that Eudora marked.
pub(crate) const KIND: Kind = Kind::Eudora;
