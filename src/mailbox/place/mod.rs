//! Locks, replaces and creates mailboxes, so that no mail is lost if a run is killed, the disk is full, or another
//! program changes the mailbox.
//!
//! `lock`, `latecomers` and `replace` belong to an mbox, `supersede` to the messages of Maildirs and MH folders. `delivery`
//! creates new mailboxes in another format, and `tree` creates Thunderbird's folders. `listing` lists and opens messages while
//! other programs rename them. `output_stream` writes to standard output, devices and pipes.
//! `journal` records the results of a run, and `existing` compares a result with a file that exists under its name.

pub(super) mod delivery;
mod existing;
pub(super) mod folder;
#[cfg_attr(not(feature = "cli"), allow(dead_code))] // which opens a journal
pub(super) mod journal;
pub(super) mod keyword_files;
pub(super) mod latecomers;
pub(super) mod listing;
pub(super) mod lock;
#[cfg(feature = "cli")]
pub(super) mod message_flags;
#[cfg_attr(not(feature = "cli"), allow(dead_code))] // which opens a journal
pub(super) mod origin;
pub(super) mod output_stream;
pub(super) mod replace;
pub(super) mod supersede;
pub(super) mod tree;
