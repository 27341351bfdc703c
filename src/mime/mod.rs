//! Parsing of MIME: header fields, media types, charsets, transfer encodings and the tree of parts. The code performs
//! no I/O and accepts any bytes. No body is copied or decoded while scanning, unless its transfer encoding is
//! misspelt.

mod base64;
pub mod charset;
pub mod date;
pub mod encoded_words;
pub mod entity;
// Only the program detaches attachments, and only this needs the description of how a body was encoded. The library
// without the program does not use this module.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub mod exact;
pub mod fields;
pub mod file_type;
pub mod header;
#[cfg(feature = "mailbox")]
pub(crate) mod labels;
pub mod mapped;
pub mod media_type;
pub mod message;
pub(crate) mod packed;
pub mod parameters;
pub mod picture;
#[cfg_attr(not(feature = "http"), allow(dead_code))]
pub mod picture_end;
pub mod quoted_printable;
mod scan;
pub mod transfer;

pub use fields::{Field, Fields};
pub use header::Header;
pub use media_type::MediaType;
pub use message::{Limit, MessageTree, Part, PartId, PartKind, ScanLimits};
pub use scan::scan;
pub use transfer::TransferEncoding;
