//! Reads a source in batches of complete messages (`input`), transforms them in order (by the worker pool of the crate), and
//! writes them to a sink.

pub(super) mod cut;
pub(crate) mod entry;
pub(super) mod folder_message;
pub(super) mod messages;
pub(super) mod opened;
pub(super) mod packed;
#[cfg(feature = "outlook")]
pub(super) mod pst;
pub(super) mod single_message;
pub(super) mod sink;
pub(super) mod touch;
#[cfg(feature = "cli")]
pub(crate) mod whole_file;
