//! Reads the lowest layer of a `.pst` file (MS-PST 2.2): pages, two trees of pages, blocks, and nodes with subnodes.
//!
//! The file is untrusted input. A page must be exactly one level below the page that refers to it, so that no tree contains a
//! cycle. The bytes of a node are limited by the caller, whatever the file declares. A wrong checksum is reported and does not
//! stop the reading, because most of the bytes are usually right.

use std::collections::{HashMap, HashSet};
use std::io;
use std::iter::Take;
use std::slice::ChunksExact;
use std::sync::{Arc, Mutex, OnceLock};

use super::encoding::Encoding;
use crate::error::unpoisoned;
use crate::span::{front, rest_or_empty};

/// A file that can be read at any position.
pub trait Bytes: Send + Sync {
    fn length(&self) -> u64;

    /// Reads bytes at `offset`, up to the end of `into` or of the file.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl Bytes for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..));
        let found = front(rest.unwrap_or_default(), into.len());
        into[..found.len()].copy_from_slice(found);
        Ok(found.len())
    }
}

/// Reason why something cannot be read, as a sentence for the user without a full stop, such as "the list of data blocks
/// is damaged".
pub type Fault = String;

const PAGE: usize = 512;
/// Maximum number of pages in memory, which is 2 MB.
const MOST_PAGES: usize = 4096;
/// Maximum number of levels of a tree. In an intact file, each level has at least two entries, and usually twenty.
const DEEPEST: u8 = 16;
/// Maximum number of entries in the trees of subnodes of one node.
const MOST_SUBNODES: usize = 100_000;

/// The width of the ids and offsets in a file, which depends on its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Width {
    /// Numbers of 4 bytes, in the versions 14 and 15.
    Ansi,
    /// Numbers of 8 bytes, in version 23.
    Unicode,
}

impl Width {
    /// Returns the length of an id or an offset, in bytes.
    pub(super) fn of_id(self) -> usize {
        match self {
            Self::Ansi => 4,
            Self::Unicode => 8,
        }
    }

    fn id(self, bytes: &[u8], at: usize) -> Option<u64> {
        match self {
            Self::Ansi => u32_at(bytes, at).map(u64::from),
            Self::Unicode => u64_at(bytes, at),
        }
    }

    /// Returns the length in bytes of the trailer after the data of a block and after the entries of a page.
    fn of_trailer(self) -> usize {
        match self {
            Self::Ansi => 12,
            Self::Unicode => 16,
        }
    }

    /// Returns the maximum number of bytes in a block.
    pub(super) fn of_block(self) -> usize {
        8192 - self.of_trailer()
    }
}

/// Returns as many entries of a list as the list counts, in its third and fourth byte. Calls `cut` if there are fewer.
fn counted<'l>(
    list: &[u8],
    entries: ChunksExact<'l, u8>,
    cut: impl FnOnce(),
) -> Take<ChunksExact<'l, u8>> {
    let count = u16_at(list, 2).map_or(usize::MAX, usize::from);
    if entries.len() < count {
        cut();
    }
    entries.take(count)
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Computes the checksum of MS-PST 5.3: CRC-32 without the two inversions.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
    hasher.update(bytes);
    !hasher.finalize()
}

/// Values from the header of a file (MS-PST 2.2.2.6).
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub width: Width,
    /// `None` if the header names an unknown encoding.
    encoding: Option<Encoding>,
    nodes: u64,
    blocks: u64,
    damage: Option<String>,
}

/// Length of the header in bytes.
pub(super) const HEADER: usize = 564;

/// The first bytes of every `.pst` file.
pub const SIGNATURE: &[u8] = b"!BDN";

/// Returns the version of a file, or `None` if it is not a `.pst` file.
pub fn version(start: &[u8]) -> Option<u16> {
    start.strip_prefix(SIGNATURE)?;
    u16_at(start, 10)
}

impl Start {
    fn read(bytes: &dyn Bytes) -> Result<Self, Fault> {
        let mut buffer = [0; HEADER];
        let length = exact(bytes, 0, &mut buffer)
            .map_err(|why| format!("the file cannot be read: {why}"))?;
        let header = &buffer[..length];
        match version(header) {
            None if header.starts_with(SIGNATURE) => {
                Err("the file ends within its header; get a complete copy, and convert that".to_owned())
            }
            None => Err("the file is not a mailbox of Outlook".to_owned()),
            Some(14 | 15) => Self::of(Width::Ansi, header),
            Some(23) => Self::of(Width::Unicode, header),
            Some(36) => Err(
                "the file has the version 36 of Outlook 2013 and later, which embody does not read; export the mailbox to a .pst file in Outlook, and convert that file"
                    .to_owned(),
            ),
            Some(other) => {
                // The version in the header is damaged, so both layouts are tried. They have the offsets of the indexes at
                // different positions, and only the right layout leads to valid pages.
                let widths = [Width::Unicode, Width::Ansi].into_iter();
                let mut starts = widths.filter_map(|width| Self::of(width, header).ok());
                let mut start = starts.find(|start| start.has_trees(bytes)).ok_or_else(|| {
                    format!(
                        "the file has the version {other}, and embody reads the versions 14, 15 and 23; export the mailbox to a new .pst file in Outlook, and convert that file"
                    )
                })?;
                start.damage = Some(format!(
                    "the header of the file is damaged: the header gives the unknown version {other}"
                ));
                Ok(start)
            }
        }
    }

    /// Returns true if the offsets in the header lead to a page of each index.
    fn has_trees(&self, bytes: &dyn Bytes) -> bool {
        let trailer = (PAGE - self.width.of_trailer()) as u64;
        let is = |offset: u64, kind| {
            let mut kinds = [0; 2];
            let at = offset.saturating_add(trailer);
            exact(bytes, at, &mut kinds).is_ok_and(|read| read == 2) && kinds == [kind, kind]
        };
        is(self.nodes, NODES) && is(self.blocks, BLOCKS)
    }

    fn of(width: Width, header: &[u8]) -> Result<Self, Fault> {
        let (nodes, blocks, encoding) = match width {
            Width::Ansi => (188, 196, 461),
            Width::Unicode => (224, 240, 513),
        };
        let number = |at| {
            width
                .id(header, at)
                .ok_or("the file ends within its header")
        };
        let encoding = header
            .get(encoding)
            .copied()
            .ok_or("the file ends within its header")?;
        let known = Encoding::of(encoding);
        Ok(Self {
            width,
            encoding: known,
            nodes: number(nodes)?,
            blocks: number(blocks)?,
            damage: known.is_none().then(|| {
                format!("the header of the file is damaged: the header gives the unknown encoding {encoding}")
            }),
        })
    }
}

/// A node: an object in the file, such as a folder or a message. `data` is the id of the block with its data, and
/// `subnodes` is the id of the block with the tree of its subnodes. The id 0 means that there is no such block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub id: u32,
    pub data: u64,
    pub subnodes: u64,
    pub parent: u32,
}

/// Number of bytes that a caller may still read, and the damage that was found so far.
#[derive(Debug)]
pub(super) struct Allowance {
    pub room: u64,
    pub damage: Vec<String>,
}

impl Allowance {
    pub(super) fn new(room: u64) -> Self {
        Self {
            room,
            damage: Vec::new(),
        }
    }

    pub(super) fn tell(&mut self, what: String) {
        // A hostile file can have thousands of faults, so the list is limited.
        const MOST: usize = 20;
        if self.damage.len() < MOST && !self.damage.contains(&what) {
            self.damage.push(what);
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.room = self.room.checked_sub(bytes).ok_or(TOO_LARGE)?;
        Ok(())
    }
}

/// Reason for content that exceeds the limit of the caller.
pub const TOO_LARGE: &str = "the content has more bytes than the limit";

const WRONG_PAGE: &str =
    "a page of the index in the file has a wrong checksum; items may be missing or wrong";
/// Advice for the user if content cannot be found in the file.
pub(super) const REPAIR: &str =
    "; to get the items back, repair a copy of the file with scanpst, which comes with Outlook";
/// Consequence for the user if a list of subnodes is damaged.
const PARTS: &str = "attachments, recipients or long texts may be missing";

/// An open `.pst` file, with a cache of its pages.
pub(super) struct File {
    bytes: Box<dyn Bytes>,
    pub start: Start,
    pages: Mutex<HashMap<u64, Arc<Page>>>,
    /// Leaf pages of the index of nodes and of the index of blocks. They are collected only if a page above them is
    /// damaged, because entries can then be found only by a search of all leaf pages.
    leaves: [OnceLock<Leaves>; 2],
    /// The encoding of the data, guessed from the data itself. It is set only if the header names an unknown encoding.
    guessed: OnceLock<Encoding>,
}

/// Leaf pages of a tree whose upper pages are damaged.
#[derive(Default)]
struct Leaves {
    /// First key and offset of each leaf, in the order of the keys.
    all: Vec<(u64, u64)>,
    /// Offsets of leaves with a wrong checksum, whose first key may be wrong.
    wrong: Vec<u64>,
}

/// Reads bytes at `offset` until `into` is full or the file ends.
fn exact(bytes: &dyn Bytes, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match bytes.read_at(offset.saturating_add(filled as u64), rest)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// One page of a tree.
struct Page {
    bytes: [u8; PAGE],
    level: u8,
    count: usize,
    step: usize,
    is_right: bool,
}

impl Page {
    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.step).take(self.count)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tree {
    Nodes,
    Blocks,
}

/// Types of pages.
const BLOCKS: u8 = 0x80;
const NODES: u8 = 0x81;

impl Tree {
    /// Returns the part of an id by which the index finds the entry of a block or a node.
    fn key(self, id: u64) -> u64 {
        match self {
            // The lowest bit of a block's id is a private mark of the program that writes the file. References to the
            // same block may differ in it, so it is ignored.
            Self::Blocks => id & !1,
            Self::Nodes => id & 0xffff_ffff,
        }
    }
}

impl File {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Returns a clause that follows the name of the file.
    pub(super) fn open(bytes: Box<dyn Bytes>) -> Result<Self, Fault> {
        let start = Start::read(&*bytes)?;
        Ok(Self {
            bytes,
            start,
            pages: Mutex::default(),
            leaves: Default::default(),
            guessed: OnceLock::new(),
        })
    }

    pub(super) fn length(&self) -> u64 {
        self.bytes.length()
    }

    /// Reads `length` bytes. `what` names them in an error.
    fn exact(&self, offset: u64, length: usize, what: &str) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; length];
        let read = exact(&*self.bytes, offset, &mut bytes);
        if read.map_err(|why| format!("{what} cannot be read: {why}"))? == length {
            Ok(bytes)
        } else {
            Err(format!("{what} is after the end of the file"))
        }
    }

    fn page(&self, tree: Tree, offset: u64) -> Result<Arc<Page>, Fault> {
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
            Tree::Blocks => BLOCKS,
            Tree::Nodes => NODES,
        };
        // A page contains its type twice. One correct copy is enough.
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
            (0, Tree::Nodes) => 4 * width.of_id(),
            (0, Tree::Blocks) => 2 * width.of_id() + 4,
            _ => 3 * width.of_id(),
        };
        // In version 23, an entry of the node index is longer than its fields together. So the length of an entry is
        // not compared with the exact sum, and only a minimum is required.
        if step < least || level > DEEPEST {
            return Err("a page of the index is damaged".to_owned());
        }
        let page = Arc::new(Page {
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

    fn topmost(&self, tree: Tree) -> u64 {
        match tree {
            Tree::Nodes => self.start.nodes,
            Tree::Blocks => self.start.blocks,
        }
    }

    fn key_of(&self, tree: Tree, entry: &[u8]) -> Option<u64> {
        Some(tree.key(self.start.width.id(entry, 0)?))
    }

    fn entry_in(&self, tree: Tree, page: &Page, key: u64) -> Option<Vec<u8>> {
        let mut entries = page.entries();
        let found = entries.find(|entry| self.key_of(tree, entry) == Some(key));
        found.map(<[u8]>::to_vec)
    }

    /// Returns the entry of a leaf page with this key.
    fn entry(
        &self,
        tree: Tree,
        key: u64,
        damage: &mut Allowance,
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

    /// Follows the keys from the topmost page to the entry in a leaf. Clears `is_right` if a page has a wrong checksum.
    fn descend(&self, tree: Tree, key: u64, is_right: &mut bool) -> Result<Option<Vec<u8>>, Fault> {
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

    /// Finds an entry by searching all leaf pages. This is used if the pages above the leaves are damaged, because a wrong key
    /// in them hides all entries below it.
    fn entry_of_leaves(&self, tree: Tree, key: u64) -> Option<Vec<u8>> {
        // Maximum number of leaves with a wrong checksum that are searched for one key. Otherwise a hostile file could cause a
        // search of all its leaves for each key.
        const MOST_WRONG: usize = 64;
        let kept = match tree {
            Tree::Nodes => &self.leaves[0],
            Tree::Blocks => &self.leaves[1],
        };
        let leaves = kept.get_or_init(|| {
            let mut leaves = Leaves::default();
            self.leaves(tree, &mut Allowance::new(0), |offset, page| {
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
    pub(super) fn node(&self, id: u32, allowance: &mut Allowance) -> Result<Node, Fault> {
        let entry = self.entry(Tree::Nodes, id.into(), allowance)?;
        let node = entry.and_then(|entry| self.node_of(&entry));
        node.ok_or_else(|| "the index of the file does not contain the item".to_owned())
    }

    /// Calls `take` for every node, in the order of their ids. Pages that cannot be read count as damage.
    pub(super) fn nodes(&self, allowance: &mut Allowance, mut take: impl FnMut(Node)) {
        if let Some(damage) = &self.start.damage {
            allowance.tell(damage.clone());
        }
        self.leaves(Tree::Nodes, allowance, |_, page| {
            let nodes = page.entries().filter_map(|it| self.node_of(it));
            nodes.for_each(&mut take);
        });
    }

    /// Calls `take` for every leaf page of a tree, in the order of their keys, with its offset.
    fn leaves(&self, tree: Tree, allowance: &mut Allowance, mut take: impl FnMut(u64, &Page)) {
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

    /// Returns the decoded bytes of one block.
    fn block(&self, id: u64, allowance: &mut Allowance) -> Result<Vec<u8>, Fault> {
        let width = self.start.width;
        let entry = self
            .entry(Tree::Blocks, id, allowance)?
            .ok_or("a data block is not in the index of the file")?;
        let step = width.of_id();
        let damaged = "a page of the index is damaged";
        let offset = width.id(&entry, step).ok_or(damaged)?;
        let length = usize::from(u16_at(&entry, 2 * step).ok_or(damaged)?);
        if offset > self.length() {
            return Err("a data block is after the end of the file".to_owned());
        }
        let mut bytes = match self.whole_block(offset, id, length) {
            Some(bytes) => bytes,
            None if length > width.of_block() => {
                return Err("the index gives an impossible length for a data block".to_owned());
            }
            None => {
                let wrong = "a data block has a wrong checksum, so some bytes may be wrong";
                let bytes = self.exact(offset, length, "a data block")?;
                let end = offset + (length + width.of_trailer()) as u64;
                allowance.tell(if end > self.length() {
                    "the file ends within a data block".to_owned()
                } else {
                    wrong.to_owned()
                });
                bytes
            }
        };
        allowance.take(bytes.len())?;
        if id & INTERNAL == 0 {
            self.encoding(&bytes, id).decode(&mut bytes, id);
        }
        Ok(bytes)
    }

    /// Returns the encoding of a block. If the header names an unknown encoding, all encodings are tried until the
    /// decoded block begins like a heap. The encoding that is found this way is then used for all blocks.
    fn encoding(&self, bytes: &[u8], id: u64) -> Encoding {
        /// The third byte of a heap (MS-PST 2.3.1.2). The data of every folder and of every item begins with a heap.
        const HEAP: u8 = 0xec;
        let known = self.start.encoding.or_else(|| self.guessed.get().copied());
        known.unwrap_or_else(|| {
            let begins_heap = |encoding: &Encoding| {
                let Some(mut start) = bytes.first_chunk::<4>().copied() else {
                    return false;
                };
                encoding.decode(&mut start, id);
                start[2] == HEAP
            };
            // The encodings in the order in which they are tried. Outlook uses Permute by default.
            let all = [Encoding::Permute, Encoding::None, Encoding::Cyclic];
            match all.into_iter().find(begins_heap) {
                Some(found) => *self.guessed.get_or_init(|| found),
                None => Encoding::Permute,
            }
        })
    }

    /// Returns the bytes of a block, if its checksum is right. The index and the trailer of the block both contain the
    /// length of the block. If they differ, the length in the trailer is used.
    fn whole_block(&self, offset: u64, id: u64, length: usize) -> Option<Vec<u8>> {
        const UNIT: usize = 64;
        let width = self.start.width;
        // Reads the length, the checksum and the id from the trailer of a block that ends at `end`.
        let trailer = |bytes: &[u8], end: usize| {
            let trailer = bytes.get(end - width.of_trailer()..end)?;
            let length = usize::from(u16_at(trailer, 0)?);
            Some(match width {
                Width::Ansi => (length, u32_at(trailer, 8)?, u32_at(trailer, 4)?.into()),
                Width::Unicode => (length, u32_at(trailer, 4)?, u64_at(trailer, 8)?),
            })
        };
        let has_sum = |bytes: &[u8], length: usize, sum: u32| {
            bytes
                .get(..length)
                .is_some_and(|data| checksum(data) == sum)
        };
        let end_of = |length: usize| (length + width.of_trailer()).next_multiple_of(UNIT);
        if length <= width.of_block() {
            let mut bytes = self
                .exact(offset, end_of(length), "a data block")
                .unwrap_or_default();
            if let Some((_, sum, _)) = trailer(&bytes, end_of(length))
                && has_sum(&bytes, length, sum)
            {
                bytes.truncate(length);
                return Some(bytes);
            }
        }
        let most = width.of_block() + width.of_trailer();
        let mut bytes = vec![0; most];
        let read = exact(&*self.bytes, offset, &mut bytes).ok()?;
        bytes.truncate(read);
        let candidates = (UNIT..=read).step_by(UNIT).filter_map(|end| {
            let (length, sum, own) = trailer(&bytes, end)?;
            let is_one = own & !1 == id & !1 && end_of(length) == end;
            is_one.then_some((length, sum))
        });
        // By chance, the data of a block can contain bytes that look like its trailer. So up to four candidates are
        // tried, and the one with the right checksum is used. More than four are not realistic.
        let (length, _) = candidates
            .take(4)
            .find(|(length, sum)| has_sum(&bytes, *length, *sum))?;
        bytes.truncate(length);
        Some(bytes)
    }

    /// Returns the blocks with the data of a node. A block that cannot be read counts as damage, and is empty.
    pub(super) fn blocks(&self, id: u64, allowance: &mut Allowance) -> Result<Vec<Vec<u8>>, Fault> {
        if id == 0 {
            return Ok(Vec::new());
        }
        if id & INTERNAL == 0 {
            return Ok(vec![self.block(id, allowance)?]);
        }
        let list = self.block(id, allowance)?;
        let mut ids = Vec::new();
        match list.get(..2) {
            Some([1, 1]) => self.ids(&list, &mut ids, allowance),
            Some([1, 2]) => {
                let mut lists = Vec::new();
                self.ids(&list, &mut lists, allowance);
                for id in lists {
                    let list = self.block(id, allowance)?;
                    match list.get(..2) {
                        Some([1, 1]) => self.ids(&list, &mut ids, allowance),
                        _ => return Err("the list of data blocks is damaged".to_owned()),
                    }
                }
            }
            _ => return Err("the list of data blocks is damaged".to_owned()),
        }
        let mut blocks = Vec::new();
        for id in ids {
            if id & INTERNAL != 0 {
                return Err("the list of data blocks is damaged".to_owned());
            }
            match self.block(id, allowance) {
                Ok(block) => blocks.push(block),
                Err(why) if why == TOO_LARGE => return Err(why),
                Err(why) => {
                    allowance.tell(format!("{why}; the bytes of the block are missing"));
                    blocks.push(Vec::new());
                }
            }
        }
        Ok(blocks)
    }

    /// Returns the data of a node in one piece.
    pub(super) fn data(&self, id: u64, allowance: &mut Allowance) -> Result<Vec<u8>, Fault> {
        let mut blocks = self.blocks(id, allowance)?;
        Ok(match blocks.len() {
            0 | 1 => blocks.pop().unwrap_or_default(),
            _ => blocks.concat(),
        })
    }

    /// Appends the ids in a list. If the list has fewer ids than it counts, this counts as damage.
    fn ids(&self, list: &[u8], ids: &mut Vec<u64>, allowance: &mut Allowance) {
        let width = self.start.width;
        let stored = rest_or_empty(list, 8).chunks_exact(width.of_id());
        let found = counted(list, stored, || {
            allowance.tell(
                "the list of data blocks is cut off; the bytes of the other blocks are missing"
                    .to_owned(),
            );
        });
        ids.extend(found.filter_map(|id| width.id(id, 0)));
    }

    /// Returns the subnodes of a node, by their ids. Subnodes that cannot be read count as damage.
    pub(super) fn subnodes(&self, id: u64, allowance: &mut Allowance) -> HashMap<u32, Node> {
        let mut subnodes = HashMap::new();
        let mut open = vec![(id, 1_u8)];
        let mut seen = HashSet::new();
        while let Some((id, levels)) = open.pop() {
            if id == 0 || !seen.insert(id) {
                continue;
            }
            let list = match self.block(id | INTERNAL, allowance) {
                Ok(list) => list,
                Err(why) => {
                    allowance.tell(format!(
                        "the list of parts of the item cannot be read: {why}; {PARTS}"
                    ));
                    continue;
                }
            };
            let width = self.start.width;
            let step = width.of_id();
            let begins = if width == Width::Unicode { 8 } else { 4 };
            let entries = rest_or_empty(&list, begins);
            let tell_cut = || {
                allowance.tell(format!("the list of parts of the item is cut off; {PARTS}"));
            };
            match (list.get(..2), levels) {
                (Some([2, 0]), _) => {
                    for entry in counted(&list, entries.chunks_exact(3 * step), tell_cut) {
                        let read = || {
                            Some(Node {
                                id: u32_at(entry, 0)?,
                                data: width.id(entry, step)?,
                                subnodes: width.id(entry, 2 * step)?,
                                parent: 0,
                            })
                        };
                        if subnodes.len() >= MOST_SUBNODES {
                            allowance.tell(format!(
                                "the list of parts of the item has more than {MOST_SUBNODES} entries; the others were not read"
                            ));
                            return subnodes;
                        }
                        if let Some(node) = read() {
                            subnodes.entry(node.id).or_insert(node);
                        }
                    }
                }
                (Some([2, 1]), 1) => {
                    let lists = counted(&list, entries.chunks_exact(2 * step), tell_cut);
                    open.extend(lists.filter_map(|entry| Some((width.id(entry, step)?, 0))));
                }
                _ => allowance.tell(format!("the list of parts of the item is damaged; {PARTS}")),
            }
        }
        subnodes
    }
}

/// Bit in the id of a block that contains ids of other blocks instead of data.
const INTERNAL: u64 = 2;
