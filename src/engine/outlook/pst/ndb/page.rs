//! Pages of the two B-trees of a `.pst` file: the index of nodes (NBT) and the index of blocks (BBT).

pub(super) const PAGE: usize = 512;

/// Leaf pages of a tree with damaged upper pages, found by scanning.
#[derive(Default)]
pub(super) struct Leaves {
    /// First key and offset of each leaf, in the order of the keys.
    pub(super) all: Vec<(u64, u64)>,
    /// Offsets of leaves with a wrong checksum, whose first key may be wrong.
    pub(super) wrong: Vec<u64>,
}

/// One page of a tree.
pub(super) struct TreePage {
    pub(super) bytes: [u8; PAGE],
    pub(super) level: u8,
    pub(super) count: usize,
    pub(super) step: usize,
    pub(super) is_right: bool,
}

impl TreePage {
    pub(super) fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.step).take(self.count)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PstTree {
    Nodes,
    Blocks,
}

/// Types of pages.
pub(super) const BLOCKS: u8 = 0x80;

pub(super) const NODES: u8 = 0x81;

impl PstTree {
    /// Returns the index key for an id: the id without the bits that do not identify a block or a node.
    pub(super) fn key(self, id: u64) -> u64 {
        match self {
            // The lowest bit of a block's id is a private mark of the program that writes the file. References to the
            // same block may differ in it, so it is ignored.
            Self::Blocks => id & !1,
            Self::Nodes => id & 0xffff_ffff,
        }
    }
}
