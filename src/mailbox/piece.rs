//! A piece of a message that is too large for a window.

use super::{OVERLAP, Transform};

/// Which piece of its message a chunk is.
#[derive(Debug)]
pub(super) struct Piece {
    /// Where in the file the message starts.
    pub(super) start: u64,
    /// So many bytes of it come before.
    pub(super) before: u64,
    pub(super) is_last: bool,
    /// The last of these.
    pub(super) overlap: Vec<u8>,
}

impl Piece {
    pub(super) fn is_first(&self) -> bool {
        self.before == 0
    }

    /// Where in the file a piece of this length ends.
    pub(super) fn end(&self, length: usize) -> u64 {
        self.start + self.before + length as u64
    }

    /// Whether the piece, not the first, which holds `bytes`, might matter to a transform, or where it meets the one before.
    pub(super) fn is_touched(&self, bytes: &[u8], transform: &dyn Transform) -> bool {
        let start = bytes.get(..OVERLAP).unwrap_or(bytes);
        let border = [self.overlap.as_slice(), start].concat();
        transform.may_touch(bytes, false) || transform.may_touch(&border, false)
    }
}
