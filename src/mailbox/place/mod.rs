//! Locks, replaces and creates mailboxes, so that no mail is lost if a run is killed, the disk is full, or another
//! program changes the mailbox.
//!
//! `in_place` replaces an mbox. `maildir` replaces the messages of Maildirs and MH folders. `delivery` creates new
//! mailboxes in another format, and `tree` creates Thunderbird's folders. `listing` lists and opens messages while
//! other programs rename them. `partial` recognises Maildirs, including those that lost some of their directories.

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
