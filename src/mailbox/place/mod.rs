//! Locking, replacing and creating mailboxes so that neither a kill, a full disk nor another program causes the loss of
//! mail.
//!
//! `in_place` replaces an mbox, `maildir` the messages of Maildirs and MH folders. `delivery` creates new mailboxes in
//! another format, and `tree` creates Thunderbird's folders. `listing` lists and opens messages while other programs
//! rename them. `partial` recognises Maildirs, including those that lost some of their directories.

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
