//! Locks, replaces and creates mailboxes, so that no mail is lost if a run is killed, the disk is full, or another
//! program changes the mailbox.
//!
//! `in_place` replaces an mbox. `maildir` replaces the messages of Maildirs and MH folders. `delivery` creates new
//! mailboxes in another format, and `tree` creates Thunderbird's folders. `listing` lists and opens messages while
//! other programs rename them. `partial` recognises Maildirs, including those that lost some of their directories.
//! `journal` records the results of a run, and `existing` compares a result with a file that exists under its name.

pub(super) mod delivery;
mod existing;
pub(super) mod flag_losses;
pub(super) mod folder;
pub(super) mod identity;
mod in_place;
#[cfg_attr(not(feature = "cli"), allow(dead_code))] // which opens a journal
pub(super) mod journal;
pub(super) mod keyword_files;
mod latecomers;
pub(super) mod listing;
mod lock;
mod maildir;
#[cfg(feature = "cli")]
pub(super) mod message_flags;
#[cfg_attr(not(feature = "cli"), allow(dead_code))] // which opens a journal
pub(super) mod origin;
pub(super) mod partial;
pub(super) mod replace;
mod supersede;
pub(super) mod temporary;
pub(super) mod tree;
