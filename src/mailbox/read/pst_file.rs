//! Opened mailboxes of Outlook (`.pst`), and the folders in them.
//!
//! Names of folders may be anyone's words: each one becomes a single component of a path, and no two are the same.

#[cfg(feature = "outlook")]
pub(crate) use opened::{Opened, PstFolder, open, opened};

/// A version of the program that reads no mailboxes of Outlook finds no folders in them.
#[cfg(not(feature = "outlook"))]
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PstFolder {}

#[cfg(feature = "outlook")]
mod opened;
