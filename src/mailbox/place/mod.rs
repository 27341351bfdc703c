//! Lock and replace: mail in place, so that neither a kill, a full disk nor another program loses any.
//!
//! `in_place` is for an mbox, `maildir` for folders with a message a file, `delivery` for new mailboxes of another form,
//! and `tree` for the folders that Thunderbird keeps.
//! `listing` lists and opens the messages of such folders while other programs rename them.
//! `partial` says what a Maildir is, also one that lost some of its folders.

pub(super) mod delivery;
pub(super) mod folder;
mod in_place;
mod latecomers;
pub(super) mod listing;
mod lock;
mod maildir;
pub(super) mod partial;
pub(super) mod replace;
mod supersede;
pub(super) mod temporary;
pub(super) mod tree;
