//! Blocks, which contain the data of nodes, and the lists of the blocks and subnodes of a node.

use std::collections::{HashMap, HashSet};
use std::iter::Take;
use std::slice::ChunksExact;

use super::super::encoding::PstEncoding;
use super::allowance::{Fault, ReadAllowance, TOO_LARGE};
use super::bytes::{Width, checksum, exact, u16_at, u32_at, u64_at};
use super::index::{Node, PstIndex};
use super::page::PstTree;
use crate::span::rest_or_empty;

/// Bit of a block id: the block contains ids of other blocks, not data.
const INTERNAL: u64 = 2;

/// Maximum number of entries in the trees of subnodes of one node.
const MOST_SUBNODES: usize = 100_000;

/// Second half of the message about a damaged list of subnodes: the consequence for the user.
const PARTS: &str = "attachments, recipients or long texts may be missing";

/// Returns the entries of a list. Its third and fourth byte declare their number. If the list is too short for that
/// number, `cut` is called.
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

impl PstIndex {
    /// Returns the decoded bytes of one block.
    fn block(&self, id: u64, allowance: &mut ReadAllowance) -> Result<Vec<u8>, Fault> {
        let width = self.start.width;
        let entry = self
            .entry(PstTree::Blocks, id, allowance)?
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
    /// decoded block starts like a heap. The encoding that is found this way is then used for all blocks.
    fn encoding(&self, bytes: &[u8], id: u64) -> PstEncoding {
        /// The third byte of a heap (MS-PST 2.3.1.2). The data of every folder and of every item begins with a heap.
        const HEAP: u8 = 0xec;
        let known = self.start.encoding.or_else(|| self.guessed.get().copied());
        known.unwrap_or_else(|| {
            let begins_heap = |encoding: &PstEncoding| {
                let Some(mut start) = bytes.first_chunk::<4>().copied() else {
                    return false;
                };
                encoding.decode(&mut start, id);
                start[2] == HEAP
            };
            // The encodings in the order in which they are tried. Outlook uses Permute by default.
            let all = [PstEncoding::Permute, PstEncoding::None, PstEncoding::Cyclic];
            match all.into_iter().find(begins_heap) {
                Some(found) => *self.guessed.get_or_init(|| found),
                None => PstEncoding::Permute,
            }
        })
    }

    /// Returns a block if its checksum is right. The index and the block's trailer both contain its length; if they
    /// differ, the trailer wins.
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
        // Data can contain bytes that look like a trailer. Up to four candidates are tried, and the right checksum
        // decides. More than four do not occur in practice.
        let (length, _) = candidates
            .take(4)
            .find(|(length, sum)| has_sum(&bytes, *length, *sum))?;
        bytes.truncate(length);
        Some(bytes)
    }

    /// Returns the blocks with the data of a node. A block that cannot be read counts as damage, and is empty.
    pub(in crate::engine::outlook) fn blocks(
        &self,
        id: u64,
        allowance: &mut ReadAllowance,
    ) -> Result<Vec<Vec<u8>>, Fault> {
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
    pub(in crate::engine::outlook) fn data(
        &self,
        id: u64,
        allowance: &mut ReadAllowance,
    ) -> Result<Vec<u8>, Fault> {
        let mut blocks = self.blocks(id, allowance)?;
        Ok(match blocks.len() {
            0 | 1 => blocks.pop().unwrap_or_default(),
            _ => blocks.concat(),
        })
    }

    /// Appends the ids in a list to `ids`. A list with fewer ids than it declares is reported as damage.
    fn ids(&self, list: &[u8], ids: &mut Vec<u64>, allowance: &mut ReadAllowance) {
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
    pub(in crate::engine::outlook) fn subnodes(
        &self,
        id: u64,
        allowance: &mut ReadAllowance,
    ) -> HashMap<u32, Node> {
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
