//! Lock and replace: mail in place, so that neither a kill, a full disk nor another program loses any.
//!
//! * `lock`: the lock on an mbox, dotlock and fcntl; `process`: whether the one who holds it is alive;
//! * `in_place`: an mbox, read, locked and replaced; `latecomers`: mail that came to the old file meanwhile;
//! * `replace`: a file written beside another, and put in its place whole; `temporary`: what such files are called, and how those
//!   of killed runs go away;
//! * `delivery`: new mailboxes, filled with messages of another form;
//! * `maildir`: a Maildir, and other folders with a message a file; `folder`: what such a folder consists of;
//! * `supersede`: a changed message of one takes the place of the old one among readers that move it; `sizes`: the sizes and
//!   flags in the name of one.

pub(super) mod delivery;
pub(super) mod folder;
mod in_place;
mod latecomers;
mod lock;
mod maildir;
pub(super) mod process;
pub(super) mod replace;
pub(super) mod sizes;
mod supersede;
pub(super) mod temporary;
