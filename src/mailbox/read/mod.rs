//! Reads a source in batches of complete messages (`window`), transforms them in order (by the worker pool of the crate), and writes them to
//! a sink.

pub(super) mod accounts;
mod background;
pub(super) mod cut;
pub(crate) mod entry;
pub(super) mod file;
mod message_check;
pub(super) mod messages;
pub(super) mod opened;
pub(super) mod packed;
#[cfg(feature = "outlook")]
pub(super) mod pst;
pub(super) mod pst_file;
pub(super) mod second;
pub(super) mod sink;
pub(super) mod source;
pub(super) mod touch;
pub(super) mod window;

pub(crate) use background::Background;
