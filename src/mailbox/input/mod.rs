//! The bytes of a mailbox and their division into messages: files and streams (`source`), windows of complete messages
//! (`window`), and the checks that each byte belongs to one of them (`accounts`).

pub(super) mod accounts;
mod background;
pub(super) mod content;
mod message_check;
#[cfg(all(unix, feature = "serve"))]
pub(crate) mod other;
pub(super) mod quoted_twice;
pub(super) mod second;
pub(super) mod source;
pub(super) mod window;

pub(crate) use background::Background;
