//! Reads the lowest layer of a `.pst` file (MS-PST 2.2): pages, two trees of pages, blocks, and nodes with subnodes.
//!
//! The file is untrusted input. A page must be exactly one level below the page that refers to it, so that no tree contains a
//! cycle. The bytes of a node are limited by the caller, whatever the file declares. A wrong checksum is reported and does not
//! stop the reading, because most of the bytes are usually right.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};

use super::encoding::Encoding;
use crate::error::unpoisoned;

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
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(into.len());
        let (front, _) = into.split_at_mut(length);
        front.copy_from_slice(rest.get(..length).unwrap_or_default());
        Ok(length)
    }
}

/// Reason why something cannot be read: a clause that follows its name in a sentence.
pub type Fault = String;

const PAGE: usize = 512;
/// Maximum number of pages in memory, which is 2 MB.
const MOST_PAGES: usize = 4096;
/// Maximum number of levels of a tree. In an intact file, each level has at least two entries, and usually twenty.
const DEEPEST: u8 = 16;
/// Maximum number of entries in the trees of subnodes of one node.
const MOST_SUBNODES: usize = 100_000;

/// The width of numbers in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// Numbers of 4 bytes, in the versions 14 and 15.
    Ansi,
    /// Numbers of 8 bytes, in version 23.
    Unicode,
}

impl Width {
    /// Returns the length of an id or an offset, in bytes.
    pub fn of_id(self) -> usize {
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
    pub fn of_block(self) -> usize {
        8192 - self.of_trailer()
    }
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Computes the checksum of MS-PST 5.3: CRC-32 without the two inversions.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
    hasher.update(bytes);
    !hasher.finalize()
}

/// Values from the header of a file (MS-PST 2.2.2.6).
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub width: Width,
    encoding: Encoding,
    nodes: u64,
    blocks: u64,
}

/// Length of the header in bytes.
pub const HEADER: usize = 564;

/// The first bytes of every `.pst` file.
pub const SIGNATURE: &[u8] = b"!BDN";

/// Returns the version of a file, or `None` if it is not a `.pst` file.
pub fn version(start: &[u8]) -> Option<u16> {
    start.strip_prefix(SIGNATURE)?;
    u16_at(start, 10)
}

impl Start {
    fn read(header: &[u8]) -> Result<Self, Fault> {
        let width = match version(header) {
            None => return Err("is not a mailbox of Outlook".to_owned()),
            Some(14 | 15) => Width::Ansi,
            Some(23) => Width::Unicode,
            Some(other) => {
                return Err(format!("has the version {other}, which embody cannot read"));
            }
        };
        let (nodes, blocks, encoding) = match width {
            Width::Ansi => (188, 196, 461),
            Width::Unicode => (224, 240, 513),
        };
        let number = |at| width.id(header, at).ok_or("ends within its header");
        let encoding = header
            .get(encoding)
            .copied()
            .ok_or("ends within its header")?;
        Ok(Self {
            width,
            encoding: Encoding::of(encoding)
                .ok_or_else(|| format!("has the unknown encoding {encoding}"))?,
            nodes: number(nodes)?,
            blocks: number(blocks)?,
        })
    }
}

/// A node, with the ids of its data and of the tree of its subnodes. The id 0 means that there is no such block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    pub id: u32,
    pub data: u64,
    pub subnodes: u64,
    pub parent: u32,
}

/// Number of bytes that a caller may still read, and the damage that was found so far.
#[derive(Debug)]
pub struct Allowance {
    pub room: u64,
    pub damage: Vec<String>,
}

impl Allowance {
    pub fn new(room: u64) -> Self {
        Self {
            room,
            damage: Vec::new(),
        }
    }

    pub fn tell(&mut self, what: String) {
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

/// End of a sentence about content that exceeds the limit of the caller.
pub const TOO_LARGE: &str = "has more bytes than the limit";

/// An open `.pst` file, with a cache of its pages.
pub struct File {
    bytes: Box<dyn Bytes>,
    pub start: Start,
    pages: Mutex<HashMap<u64, Arc<Page>>>,
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

impl File {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Returns a clause that follows the name of the file.
    pub fn open(bytes: Box<dyn Bytes>) -> Result<Self, Fault> {
        let mut header = [0; HEADER];
        let read = bytes
            .read_at(0, &mut header)
            .map_err(|why| format!("cannot be read: {why}"))?;
        let start = Start::read(header.get(..read).unwrap_or_default())?;
        Ok(Self {
            bytes,
            start,
            pages: Mutex::default(),
        })
    }

    pub fn length(&self) -> u64 {
        self.bytes.length()
    }

    fn exact(&self, offset: u64, length: usize) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let rest = bytes.get_mut(filled..).unwrap_or_default();
            let read = self.bytes.read_at(offset + filled as u64, rest);
            match read.map_err(|why| format!("cannot be read: {why}"))? {
                0 => return Err("is after the end of the file".to_owned()),
                read => filled += read,
            }
        }
        Ok(bytes)
    }

    fn page(&self, tree: Tree, offset: u64) -> Result<Arc<Page>, Fault> {
        if let Some(page) = unpoisoned(self.pages.lock()).get(&offset) {
            return Ok(Arc::clone(page));
        }
        let width = self.start.width;
        if offset > self.length() {
            return Err("is after the end of the file".to_owned());
        }
        let bytes = self.exact(offset, PAGE)?;
        let bytes: [u8; PAGE] = bytes.try_into().map_err(|_| "is too short")?;
        let trailer = PAGE - width.of_trailer();
        let kind = match tree {
            Tree::Blocks => 0x80,
            Tree::Nodes => 0x81,
        };
        // A page contains its type twice. One correct copy is enough.
        let kinds = bytes.get(trailer..trailer + 2).unwrap_or_default();
        if !kinds.contains(&kind) {
            return Err("is no page of this tree".to_owned());
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
        // In version 23, entries of nodes are longer than their fields, so only a minimum is required.
        if step < least || level > DEEPEST {
            return Err("has entries of an unknown length".to_owned());
        }
        let page = Arc::new(Page {
            level,
            count: usize::from(byte(counts)).min(counts / step),
            step,
            is_right: kinds == [kind, kind]
                && u32_at(&bytes, sum) == Some(checksum(bytes.get(..trailer).unwrap_or_default())),
            bytes,
        });
        let mut pages = unpoisoned(self.pages.lock());
        if pages.len() >= MOST_PAGES {
            pages.clear();
        }
        pages.insert(offset, Arc::clone(&page));
        Ok(page)
    }

    /// Returns the entry of a leaf page with this key.
    fn entry(
        &self,
        tree: Tree,
        key: u64,
        damage: &mut Allowance,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let width = self.start.width;
        let mut offset = match tree {
            Tree::Nodes => self.start.nodes,
            Tree::Blocks => self.start.blocks,
        };
        let mut above = None;
        loop {
            let page = self.page(tree, offset);
            let page = page.map_err(|why| format!("a page of an index {why}"))?;
            if above.is_some_and(|above: u8| above != page.level + 1) {
                return Err("a page of an index is of the wrong level".to_owned());
            }
            if !page.is_right {
                damage.tell("a page of an index has a wrong checksum".to_owned());
            }
            let clean = |id: u64| match tree {
                // Only the program that writes the file uses this bit of an id, so it is ignored.
                Tree::Blocks => id & !1,
                Tree::Nodes => id & 0xffff_ffff,
            };
            let key_of = |entry: &[u8]| width.id(entry, 0).map(clean);
            if page.level == 0 {
                let mut entries = page.entries();
                let found = entries.find(|entry| key_of(entry) == Some(clean(key)));
                return Ok(found.map(<[u8]>::to_vec));
            }
            let entries = page.entries();
            let within =
                entries.take_while(|entry| key_of(entry).is_some_and(|it| it <= clean(key)));
            let Some(entry) = within.last() else {
                return Ok(None);
            };
            offset = width
                .id(entry, 2 * width.of_id())
                .ok_or("a page of an index is cut")?;
            above = Some(page.level);
        }
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
    pub fn node(&self, id: u32, allowance: &mut Allowance) -> Result<Node, Fault> {
        let entry = self.entry(Tree::Nodes, id.into(), allowance)?;
        let node = entry.and_then(|entry| self.node_of(&entry));
        node.ok_or_else(|| "is not in the file".to_owned())
    }

    /// Calls `take` for every node, in the order of their ids. Pages that cannot be read count as damage.
    pub fn nodes(&self, allowance: &mut Allowance, mut take: impl FnMut(Node)) {
        let mut seen = HashSet::new();
        // The level of the topmost page is not known in advance.
        let mut open = vec![(self.start.nodes, None::<u8>)];
        while let Some((offset, level)) = open.pop() {
            if !seen.insert(offset) {
                allowance.tell("two parts of the index of items are the same".to_owned());
                continue;
            }
            let page = match self.page(Tree::Nodes, offset) {
                Ok(page) if level.is_none_or(|level| level == page.level) => page,
                Ok(_) => {
                    allowance.tell("a page of the index of items is of the wrong level".to_owned());
                    continue;
                }
                Err(why) => {
                    allowance.tell(format!(
                        "a page of the index of items {why}, so that items are missing"
                    ));
                    continue;
                }
            };
            if !page.is_right {
                allowance.tell("a page of the index of items has a wrong checksum".to_owned());
            }
            match page.level.checked_sub(1) {
                None => page
                    .entries()
                    .filter_map(|it| self.node_of(it))
                    .for_each(&mut take),
                Some(below) => {
                    let width = self.start.width;
                    let offsets = page
                        .entries()
                        .filter_map(|it| width.id(it, 2 * width.of_id()));
                    let mut offsets: Vec<_> = offsets.map(|offset| (offset, Some(below))).collect();
                    offsets.reverse();
                    open.append(&mut offsets);
                }
            }
        }
    }

    /// Returns the decoded bytes of one block.
    fn block(&self, id: u64, allowance: &mut Allowance) -> Result<Vec<u8>, Fault> {
        let width = self.start.width;
        let entry = self.entry(Tree::Blocks, id, allowance)?;
        let entry = entry.ok_or("a block is not in the file")?;
        let step = width.of_id();
        let offset = width.id(&entry, step).ok_or("a page of an index is cut")?;
        let length = u16_at(&entry, 2 * step).ok_or("a page of an index is cut")?;
        let length = usize::from(length);
        if length > width.of_block() {
            return Err("a block is longer than blocks can be".to_owned());
        }
        allowance.take(length)?;
        let padded = (length + width.of_trailer()).div_ceil(64) * 64;
        let in_block = |why: Fault| format!("a block {why}");
        if offset > self.length() {
            return Err("a block is after the end of the file".to_owned());
        }
        let mut bytes = match self.exact(offset, padded) {
            Ok(bytes) => bytes,
            // If the end of the file is missing, the data of the block may still be complete, without its trailer.
            Err(_) => {
                allowance.tell("a block is cut".to_owned());
                self.exact(offset, length).map_err(in_block)?
            }
        };
        if let Some(trailer) = bytes.get(padded - width.of_trailer()..) {
            let sum = match width {
                Width::Ansi => u32_at(trailer, 8),
                Width::Unicode => u32_at(trailer, 4),
            };
            let data = bytes.get(..length).unwrap_or_default();
            if sum != Some(checksum(data)) {
                allowance.tell("a block has a wrong checksum".to_owned());
            }
        }
        bytes.truncate(length);
        if id & INTERNAL == 0 {
            self.start.encoding.decode(&mut bytes, id);
        }
        Ok(bytes)
    }

    /// Returns the blocks with the data of a node. A block that cannot be read counts as damage, and is empty.
    pub fn blocks(&self, id: u64, allowance: &mut Allowance) -> Result<Vec<Vec<u8>>, Fault> {
        if id == 0 {
            return Ok(Vec::new());
        }
        if id & INTERNAL == 0 {
            return Ok(vec![self.block(id, allowance)?]);
        }
        let list = self.block(id, allowance)?;
        let mut ids = Vec::new();
        match list.get(..2) {
            Some([1, 1]) => self.ids(&list, &mut ids),
            Some([1, 2]) => {
                let mut lists = Vec::new();
                self.ids(&list, &mut lists);
                for id in lists {
                    let list = self.block(id, allowance)?;
                    match list.get(..2) {
                        Some([1, 1]) => self.ids(&list, &mut ids),
                        _ => return Err("a list of blocks is damaged".to_owned()),
                    }
                }
            }
            _ => return Err("a list of blocks is damaged".to_owned()),
        }
        let mut blocks = Vec::new();
        for id in ids {
            if id & INTERNAL != 0 {
                return Err("a list of blocks is damaged".to_owned());
            }
            match self.block(id, allowance) {
                Ok(block) => blocks.push(block),
                Err(why) if why == TOO_LARGE => return Err(why),
                Err(why) => {
                    allowance.tell(format!("{why}, so that bytes are missing"));
                    blocks.push(Vec::new());
                }
            }
        }
        Ok(blocks)
    }

    /// Returns the data of a node in one piece.
    pub fn data(&self, id: u64, allowance: &mut Allowance) -> Result<Vec<u8>, Fault> {
        let mut blocks = self.blocks(id, allowance)?;
        Ok(match blocks.len() {
            0 | 1 => blocks.pop().unwrap_or_default(),
            _ => blocks.concat(),
        })
    }

    fn ids(&self, list: &[u8], ids: &mut Vec<u64>) {
        let width = self.start.width;
        let count = u16_at(list, 2).unwrap_or_default();
        let found = list
            .get(8..)
            .unwrap_or_default()
            .chunks_exact(width.of_id());
        ids.extend(found.take(count.into()).filter_map(|id| width.id(id, 0)));
    }

    /// Returns the subnodes of a node, by their ids. Subnodes that cannot be read count as damage.
    pub fn subnodes(&self, id: u64, allowance: &mut Allowance) -> HashMap<u32, Node> {
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
                    allowance.tell(format!("a list of parts: {why}"));
                    continue;
                }
            };
            let width = self.start.width;
            let step = width.of_id();
            let begins = if width == Width::Unicode { 8 } else { 4 };
            let entries = list.get(begins..).unwrap_or_default();
            let count = usize::from(u16_at(&list, 2).unwrap_or_default());
            match (list.get(..2), levels) {
                (Some([2, 0]), _) => {
                    for entry in entries.chunks_exact(3 * step).take(count) {
                        let read = || {
                            Some(Node {
                                id: u32_at(entry, 0)?,
                                data: width.id(entry, step)?,
                                subnodes: width.id(entry, 2 * step)?,
                                parent: 0,
                            })
                        };
                        if subnodes.len() >= MOST_SUBNODES {
                            allowance.tell("a list of parts has too many entries".to_owned());
                            return subnodes;
                        }
                        if let Some(node) = read() {
                            subnodes.entry(node.id).or_insert(node);
                        }
                    }
                }
                (Some([2, 1]), 1) => {
                    let lists = entries.chunks_exact(2 * step).take(count);
                    open.extend(lists.filter_map(|entry| Some((width.id(entry, step)?, 0))));
                }
                _ => allowance.tell("a list of parts is damaged".to_owned()),
            }
        }
        subnodes
    }
}

/// Bit in the id of a block that contains ids of other blocks instead of data.
const INTERNAL: u64 = 2;
