//! An open `.pst` file, and the search in its two indexes, which are trees of pages: one finds nodes, the other finds blocks.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

use super::super::encoding::PstEncoding;
use super::allowance::{Fault, ReadAllowance};
use super::bytes::{RandomAccess, Width, checksum, exact, u32_at};
use super::header::HeaderValues;
use super::page::{BLOCKS, Leaves, NODES, PAGE, PstTree, TreePage};
use crate::error::unpoisoned;

/// Maximum number of pages in memory, which is 2 MB.
const MOST_PAGES: usize = 4096;

/// Maximum number of levels of a tree. In an intact file, each level has at least two entries, and usually twenty.
const DEEPEST: u8 = 16;

const WRONG_PAGE: &str =
    "a page of the index in the file has a wrong checksum; items may be missing or wrong";

/// Advice for the user, appended if content cannot be found in the file.
const REPAIR: &str =
    "; to get the items back, repair a copy of the file with scanpst, which comes with Outlook";

/// A node: an object in the file, such as a folder or a message. `data` is the id of the block with its data, and
/// `subnodes` is the id of the block with the tree of its subnodes. The id 0 means that there is no such block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine::outlook) struct Node {
    pub id: u32,
    pub data: u64,
    pub subnodes: u64,
    pub parent: u32,
}

/// An open `.pst` file, with a cache of its pages.
pub(in crate::engine::outlook) struct PstIndex {
    pub(super) bytes: Box<dyn RandomAccess>,
    pub start: HeaderValues,
    pages: Mutex<HashMap<u64, Arc<TreePage>>>,
    /// Leaf pages of the node index and of the block index. They are collected only if a page above them is damaged,
    /// because entries can then be found only by searching all leaf pages.
    leaves: [OnceLock<Leaves>; 2],
    /// The encoding of the data, guessed from the data itself. It is set only if the header names an unknown encoding.
    pub(super) guessed: OnceLock<PstEncoding>,
}

impl PstIndex {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Returns a clause that follows the name of the file.
    pub(in crate::engine::outlook) fn open(bytes: Box<dyn RandomAccess>) -> Result<Self, Fault> {
        let start = HeaderValues::read(&*bytes)?;
        Ok(Self {
            bytes,
            start,
            pages: Mutex::default(),
            leaves: Default::default(),
            guessed: OnceLock::new(),
        })
    }

    pub(in crate::engine::outlook) fn length(&self) -> u64 {
        self.bytes.length()
    }

    /// Reads `length` bytes. `what` names them in an error.
    pub(super) fn exact(&self, offset: u64, length: usize, what: &str) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; length];
        let read = exact(&*self.bytes, offset, &mut bytes);
        if read.map_err(|why| format!("{what} cannot be read: {why}"))? == length {
            Ok(bytes)
        } else {
            Err(format!("{what} is after the end of the file"))
        }
    }

    fn page(&self, tree: PstTree, offset: u64) -> Result<Arc<TreePage>, Fault> {
        if let Some(page) = unpoisoned(self.pages.lock()).get(&offset) {
            return Ok(Arc::clone(page));
        }
        let width = self.start.width;
        if offset > self.length() {
            return Err("a page of the index is after the end of the file".to_owned());
        }
        let bytes: [u8; PAGE] = self
            .exact(offset, PAGE, "a page of the index")?
            .try_into()
            .map_err(|_| "a page of the index is cut off")?;
        let (content, trailer) = bytes.split_at(PAGE - width.of_trailer());
        let kind = match tree {
            PstTree::Blocks => BLOCKS,
            PstTree::Nodes => NODES,
        };
        // The type is stored twice in a page, and one undamaged copy is enough.
        let kinds = &trailer[..2];
        if !kinds.contains(&kind) {
            return Err("a page of the index was overwritten with other data".to_owned());
        }
        let (counts, sum) = match width {
            Width::Ansi => (496, 508),
            Width::Unicode => (488, 500),
        };
        let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let (level, step) = (byte(counts + 3), usize::from(byte(counts + 2)));
        let least = match (level, tree) {
            (0, PstTree::Nodes) => 4 * width.of_id(),
            (0, PstTree::Blocks) => 2 * width.of_id() + 4,
            _ => 3 * width.of_id(),
        };
        // In version 23, node index entries have padding, so the entry length is only required to be large enough for
        // the fields.
        if step < least || level > DEEPEST {
            return Err("a page of the index is damaged".to_owned());
        }
        let page = Arc::new(TreePage {
            level,
            count: usize::from(byte(counts)).min(counts / step),
            step,
            is_right: kinds == [kind, kind] && u32_at(&bytes, sum) == Some(checksum(content)),
            bytes,
        });
        let mut pages = unpoisoned(self.pages.lock());
        if pages.len() >= MOST_PAGES {
            pages.clear();
        }
        pages.insert(offset, Arc::clone(&page));
        Ok(page)
    }

    fn topmost(&self, tree: PstTree) -> u64 {
        match tree {
            PstTree::Nodes => self.start.nodes,
            PstTree::Blocks => self.start.blocks,
        }
    }

    fn key_of(&self, tree: PstTree, entry: &[u8]) -> Option<u64> {
        Some(tree.key(self.start.width.id(entry, 0)?))
    }

    fn entry_in(&self, tree: PstTree, page: &TreePage, key: u64) -> Option<Vec<u8>> {
        let mut entries = page.entries();
        let found = entries.find(|entry| self.key_of(tree, entry) == Some(key));
        found.map(<[u8]>::to_vec)
    }

    /// Returns the entry of a leaf page with this key.
    pub(super) fn entry(
        &self,
        tree: PstTree,
        key: u64,
        damage: &mut ReadAllowance,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let key = tree.key(key);
        let mut is_right = true;
        let found = self.descend(tree, key, &mut is_right);
        if !is_right {
            damage.tell(WRONG_PAGE.to_owned());
        }
        match found {
            Ok(Some(entry)) => Ok(Some(entry)),
            Ok(None) if is_right => Ok(None),
            found => match self.entry_of_leaves(tree, key) {
                Some(entry) => Ok(Some(entry)),
                None => found,
            },
        }
    }

    /// Descends from the root page to the leaf entry with this key. Clears `is_right` if a page on the way has a wrong
    /// checksum.
    fn descend(
        &self,
        tree: PstTree,
        key: u64,
        is_right: &mut bool,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let width = self.start.width;
        let mut offset = self.topmost(tree);
        let mut above = None;
        loop {
            let page = self.page(tree, offset)?;
            if above.is_some_and(|above: u8| above != page.level + 1) {
                return Err("a page of the index was overwritten with another page".to_owned());
            }
            *is_right &= page.is_right;
            if page.level == 0 {
                return Ok(self.entry_in(tree, &page, key));
            }
            let entries = page.entries();
            let within =
                entries.take_while(|entry| self.key_of(tree, entry).is_some_and(|it| it <= key));
            let Some(entry) = within.last() else {
                return Ok(None);
            };
            offset = width
                .id(entry, 2 * width.of_id())
                .ok_or("a page of the index is damaged")?;
            above = Some(page.level);
        }
    }

    /// Searches all leaf pages for an entry. This is needed if an upper page is damaged, because one wrong key in it
    /// hides all entries below.
    fn entry_of_leaves(&self, tree: PstTree, key: u64) -> Option<Vec<u8>> {
        // Maximum number of leaves with a wrong checksum that are searched for one key. Otherwise a hostile file could cause a
        // search of all its leaves for each key.
        const MOST_WRONG: usize = 64;
        let kept = match tree {
            PstTree::Nodes => &self.leaves[0],
            PstTree::Blocks => &self.leaves[1],
        };
        let leaves = kept.get_or_init(|| {
            let mut leaves = Leaves::default();
            self.leaves(tree, &mut ReadAllowance::new(0), |offset, page| {
                let first = page
                    .entries()
                    .next()
                    .and_then(|entry| self.key_of(tree, entry));
                leaves.all.extend(first.map(|key| (key, offset)));
                if !page.is_right && leaves.wrong.len() < MOST_WRONG {
                    leaves.wrong.push(offset);
                }
            });
            leaves.all.sort_unstable();
            leaves
        });
        let after = leaves.all.partition_point(|leaf| leaf.0 <= key);
        let nearest = after
            .checked_sub(1)
            .and_then(|at| leaves.all.get(at))
            .map(|leaf| leaf.1);
        let mut offsets = nearest.into_iter().chain(leaves.wrong.iter().copied());
        offsets.find_map(|offset| {
            let page = self.page(tree, offset).ok()?;
            self.entry_in(tree, &page, key)
        })
    }

    fn node_of(&self, entry: &[u8]) -> Option<Node> {
        let width = self.start.width;
        let step = width.of_id();
        Some(Node {
            id: u32_at(entry, 0)?,
            data: width.id(entry, step)?,
            subnodes: width.id(entry, 2 * step)?,
            parent: u32_at(entry, 3 * step)?,
        })
    }

    /// Returns the node with this id.
    pub(in crate::engine::outlook) fn node(
        &self,
        id: u32,
        allowance: &mut ReadAllowance,
    ) -> Result<Node, Fault> {
        let entry = self.entry(PstTree::Nodes, id.into(), allowance)?;
        let node = entry.and_then(|entry| self.node_of(&entry));
        node.ok_or_else(|| "the index of the file does not contain the item".to_owned())
    }

    /// Calls `take` for every node, in the order of their ids. Pages that cannot be read count as damage.
    pub(in crate::engine::outlook) fn nodes(
        &self,
        allowance: &mut ReadAllowance,
        mut take: impl FnMut(Node),
    ) {
        if let Some(damage) = &self.start.damage {
            allowance.tell(damage.clone());
        }
        self.leaves(PstTree::Nodes, allowance, |_, page| {
            let nodes = page.entries().filter_map(|it| self.node_of(it));
            nodes.for_each(&mut take);
        });
    }

    /// Calls `take` for every leaf page of a tree, in the order of their keys, with its offset.
    fn leaves(
        &self,
        tree: PstTree,
        allowance: &mut ReadAllowance,
        mut take: impl FnMut(u64, &TreePage),
    ) {
        let mut seen = HashSet::new();
        // Pages to visit, each with the level that it must have. Any level is accepted for the topmost page, because
        // nothing in the file states its level.
        let mut open = vec![(self.topmost(tree), None::<u8>)];
        while let Some((offset, level)) = open.pop() {
            if !seen.insert(offset) {
                allowance.tell(format!(
                    "the index refers to one page twice; items may be missing{REPAIR}"
                ));
                continue;
            }
            let page = match self.page(tree, offset) {
                Ok(page) if level.is_none_or(|level| level == page.level) => page,
                Ok(_) => {
                    allowance.tell(format!(
                        "a page of the index was overwritten with another page; the items in the lost page are missing{REPAIR}"
                    ));
                    continue;
                }
                Err(why) => {
                    allowance.tell(format!("{why}; the items in this page are missing{REPAIR}"));
                    continue;
                }
            };
            if !page.is_right {
                allowance.tell(WRONG_PAGE.to_owned());
            }
            match page.level.checked_sub(1) {
                None => take(offset, &page),
                Some(below) => {
                    let width = self.start.width;
                    let mut offsets: Vec<_> = page
                        .entries()
                        .filter_map(|it| width.id(it, 2 * width.of_id()))
                        .map(|offset| (offset, Some(below)))
                        .collect();
                    offsets.reverse();
                    open.append(&mut offsets);
                }
            }
        }
    }
}
