//! Reads the lowest layer of a `.pst` file (MS-PST 2.2): pages, two trees of pages, blocks, and nodes with subnodes.
//!
//! The file is untrusted input. A page must be exactly one level below the page that refers to it, so that no tree contains a
//! cycle. The bytes of a node are limited by the caller, whatever the file declares. A wrong checksum is reported and does not
//! stop the reading, because most of the bytes are usually right.

mod allowance;
mod block;
mod bytes;
mod header;
mod index;
mod page;

pub(super) use self::allowance::ReadAllowance;
pub use self::allowance::{Fault, TOO_LARGE};
pub use self::bytes::RandomAccess;
#[cfg(test)]
pub(super) use self::bytes::u64_at;
pub(super) use self::bytes::{Width, u16_at, u32_at};
pub use self::header::{SIGNATURE, header, version};
pub(super) use self::index::{Node, PstIndex};
