//! Lock and replace: mail in place, so that neither a kill, a full disk nor another program loses any.
//!
//! `in_place` is for an mbox, `maildir` for a Maildir and other folders with a message a file, `delivery` for new mailboxes,
//! filled with messages of another form. The others are what these need.

pub(super) mod delivery;
pub(super) mod folder;
mod in_place;
mod latecomers;
mod lock;
mod maildir;
pub(super) mod replace;
pub(super) mod sizes;
mod supersede;
pub(super) mod temporary;
