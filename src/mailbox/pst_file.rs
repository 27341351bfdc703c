//! Open Outlook mailboxes (`.pst`) and the folders in them.
//!
//! Folder names are untrusted input: each one becomes a single component of a path, and no two paths are the same.

#[cfg(feature = "outlook")]
pub(crate) use opened::{OpenPst, PstFolder, open, opened};

/// A folder of an Outlook mailbox. Without the feature `outlook` no such mailbox can be opened, so the type has no
/// values.
#[cfg(not(feature = "outlook"))]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PstFolder {}

#[cfg(feature = "outlook")]
mod opened;
