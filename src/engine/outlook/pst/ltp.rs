//! The middle layer of a `.pst` (MS-PST 2.3): heaps in nodes, small trees in heaps, lists of properties, and tables.

use std::borrow::Cow;
use std::collections::HashMap;

use super::ndb::{Fault, Node, PstIndex, ReadAllowance, TOO_LARGE, Width, u16_at, u32_at};
use crate::engine::outlook::properties::{Properties, PropertyValue, id};
use crate::engine::outlook::values::{PropertyIds, fixed, kind, stored, width};
use crate::span::rest_or_empty;

/// Maximum nesting depth of a tree in a heap.
const DEEPEST: u8 = 8;
/// Maximum number of values in one node. Ordinary items have some hundred.
const MOST_VALUES: usize = 50_000;

/// The data of a node, read as a heap: a list of byte strings with ids.
pub(super) struct Heap<'f> {
    file: &'f PstIndex,
    blocks: Vec<Vec<u8>>,
    pub subnodes: HashMap<u32, Node>,
    kind: u8,
    root: u32,
}

/// Type numbers of heaps: a heap contains a list of properties or a table.
const PROPERTIES: u8 = 0xbc;
const TABLE: u8 = 0x7c;

impl<'f> Heap<'f> {
    fn open(file: &'f PstIndex, node: Node, allowance: &mut ReadAllowance) -> Result<Self, Fault> {
        let blocks = file.blocks(node.data, allowance)?;
        let first = blocks.first().map(Vec::as_slice).unwrap_or_default();
        let (Some(&[signature, kind]), Some(root)) = (first.get(2..4), u32_at(first, 4)) else {
            return Err("the data is missing".to_owned());
        };
        if signature != 0xec {
            return Err("the data was overwritten with other data".to_owned());
        }
        let subnodes = file.subnodes(node.subnodes, allowance);
        Ok(Self {
            file,
            blocks,
            subnodes,
            kind,
            root,
        })
    }

    /// Returns the byte string with this id from the heap.
    fn piece(&self, id: u32) -> Option<&[u8]> {
        let block = self.blocks.get(usize::try_from(id >> 16).ok()?)?;
        let index = usize::try_from(id >> 5 & 0x7ff).ok()?.checked_sub(1)?;
        let map = usize::from(u16_at(block, 0)?);
        let count = usize::from(u16_at(block, map)?);
        if index >= count {
            return None;
        }
        let at = map + 4 + 2 * index;
        let (start, end) = (u16_at(block, at)?, u16_at(block, at + 2)?);
        block.get(start.into()..end.into())
    }

    /// Returns the bytes of a value: short values are in the heap, longer ones are the data of a subnode.
    fn value(&self, id: u32, allowance: &mut ReadAllowance) -> Result<Cow<'_, [u8]>, Fault> {
        match id & 0x1f {
            _ if id == 0 => Ok(Cow::Borrowed(&[])),
            0 => {
                let piece = self.piece(id).ok_or("the value is not in the file")?;
                Ok(Cow::Borrowed(piece))
            }
            _ => {
                let node = self
                    .subnodes
                    .get(&id)
                    .ok_or("the value is not in the file")?;
                Ok(Cow::Owned(self.file.data(node.data, allowance)?))
            }
        }
    }

    /// Returns the records of a tree, each with its key. The header of the tree is the byte string with the id `header`
    /// in the heap.
    fn records(&self, header: u32, allowance: &mut ReadAllowance) -> Result<Vec<&[u8]>, Fault> {
        let header = self
            .piece(header)
            .ok_or("the list of properties is missing")?;
        let (Some(&[0xb5, key, entry, levels]), Some(root)) = (header.get(..4), u32_at(header, 4))
        else {
            return Err("the list of properties is damaged".to_owned());
        };
        let (key, entry) = (usize::from(key), usize::from(entry));
        if levels > DEEPEST || key == 0 || entry == 0 {
            return Err("the list of properties is damaged".to_owned());
        }
        let mut open = vec![(root, levels)];
        let mut records = Vec::new();
        let mut looks = 0;
        while let Some((id, level)) = open.pop() {
            looks += 1;
            if id == 0 {
                continue;
            }
            let piece = self
                .piece(id)
                .filter(|_| looks < MOST_VALUES && records.len() < 1 << 22);
            let Some(piece) = piece else {
                allowance.tell("a part of the list of properties is missing".to_owned());
                continue;
            };
            match level.checked_sub(1) {
                None => records.extend(piece.chunks_exact(key + entry)),
                Some(below) => {
                    let mut ids: Vec<_> = piece
                        .chunks_exact(key + 4)
                        .filter_map(|it| Some((u32_at(it, key)?, below)))
                        .collect();
                    ids.reverse();
                    open.append(&mut ids);
                }
            }
        }
        Ok(records)
    }
}

/// Reads one value of a list of properties or of a table.
fn read_value(
    heap: &Heap<'_>,
    kind: u16,
    id: u32,
    allowance: &mut ReadAllowance,
) -> Result<Option<PropertyValue<'static>>, Fault> {
    if let Some(value) = width(kind)
        .filter(|width| *width <= 4)
        .and(fixed(kind, &id.to_le_bytes()))
    {
        return Ok(Some(value));
    }
    let bytes = heap.value(id, allowance)?;
    if kind & kind::MANY != 0 {
        return Ok(many(kind & !kind::MANY, &bytes));
    }
    Ok(stored(kind, Cow::Owned(bytes.into_owned())))
}

/// Reads a property with several values. Values of a fixed length follow each other. Other values are found by a list of their
/// offsets.
fn many(single: u16, bytes: &[u8]) -> Option<PropertyValue<'static>> {
    if let Some(width) = width(single) {
        let values = bytes
            .chunks_exact(width)
            .filter_map(|it| stored(single, Cow::Owned(it.to_vec())));
        return Some(PropertyValue::Many(values.take(MOST_VALUES).collect()));
    }
    let count = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let mut values = Vec::new();
    let mut room = bytes.len();
    for index in 0..count.min(MOST_VALUES) {
        let offset = |index: usize| usize::try_from(u32_at(bytes, 4 + 4 * index)?).ok();
        let Some(start) = offset(index) else { break };
        let end = if index + 1 < count {
            offset(index + 1)
        } else {
            Some(bytes.len())
        };
        let Some(value) = end.and_then(|end| bytes.get(start..end)) else {
            continue;
        };
        // Overlapping values could together be much larger than the file, so their total length is limited to that of
        // the list.
        let Some(rest) = room.checked_sub(value.len()) else {
            break;
        };
        room = rest;
        values.extend(stored(single, Cow::Owned(value.to_vec())));
    }
    Some(PropertyValue::Many(values))
}

/// The properties of one node.
pub(super) struct PropertyList<'f> {
    pub heap: Heap<'f>,
    records: Vec<(u16, u16, u32)>,
}

impl<'f> PropertyList<'f> {
    pub(super) fn open(
        file: &'f PstIndex,
        node: Node,
        allowance: &mut ReadAllowance,
    ) -> Result<Self, Fault> {
        let heap = Heap::open(file, node, allowance)?;
        if heap.kind != PROPERTIES {
            return Err("the data is not a list of properties".to_owned());
        }
        let records = heap.records(heap.root, allowance)?;
        let read =
            |record: &&[u8]| Some((u16_at(record, 0)?, u16_at(record, 2)?, u32_at(record, 4)?));
        Ok(Self {
            records: records.iter().filter_map(read).take(MOST_VALUES).collect(),
            heap,
        })
    }

    /// Returns one property, or `None` if it is missing or cannot be read.
    pub(super) fn value(
        &self,
        id: u16,
        allowance: &mut ReadAllowance,
    ) -> Option<PropertyValue<'static>> {
        match self.read(id, allowance) {
            Ok(value) => value,
            Err(why) => {
                allowance.tell(format!("{} cannot be read: {why}", called(id)));
                None
            }
        }
    }

    /// Returns one property, or the reason why it cannot be read.
    pub(super) fn read(
        &self,
        id: u16,
        allowance: &mut ReadAllowance,
    ) -> Result<Option<PropertyValue<'static>>, Fault> {
        match self.records.iter().find(|record| record.0 == id) {
            Some((_, kind, value)) => read_value(&self.heap, *kind, *value, allowance),
            None => Ok(None),
        }
    }

    /// Returns the id of the node that contains the object in the property `id`, such as the content of an attachment.
    pub(super) fn object(&self, id: u16) -> Option<u32> {
        let (_, kind, value) = self.records.iter().find(|record| record.0 == id)?;
        let is_piece = *kind == kind::OBJECT && value & 0x1f == 0;
        is_piece
            .then(|| u32_at(self.heap.piece(*value)?, 0))
            .flatten()
    }

    /// Returns all properties except `without`. Properties that cannot be read count as damage.
    pub(super) fn all(
        &self,
        names: &PropertyIds,
        without: &[u16],
        allowance: &mut ReadAllowance,
    ) -> Result<Properties<'static>, Fault> {
        let mut properties = Properties::default();
        for (id, kind, value) in &self.records {
            if without.contains(id) {
                continue;
            }
            match read_value(&self.heap, *kind, *value, allowance) {
                Ok(value) => properties.0.extend(value.map(|it| names.property(*id, it))),
                Err(why) if why == TOO_LARGE => return Err(why),
                Err(why) => allowance.tell(format!("{} cannot be read: {why}", called(*id))),
            }
        }
        Ok(properties)
    }
}

/// Returns the name of a property for reports.
fn called(property: u16) -> Cow<'static, str> {
    Cow::Borrowed(match property {
        id::SUBJECT => "the subject",
        id::BODY => "the text",
        id::HTML => "the HTML",
        id::RTF => "the formatted text (RTF)",
        id::TRANSPORT_HEADERS => "the header",
        id::DATA => "the content",
        id::DISPLAY_NAME => "the name",
        id::ADDRESS | id::SMTP_ADDRESS => "the address",
        _ => return Cow::Owned(format!("the property {property:04x}")),
    })
}

/// A table, with the ids and the positions of its rows.
pub(super) struct PropertyTable<'f> {
    heap: Heap<'f>,
    columns: Vec<Column>,
    /// Whether the table has fewer columns than its header declares.
    is_cut: bool,
    /// Id and position of each row.
    pub rows: Vec<(u32, usize)>,
    cells: u32,
    /// Length of a row, in bytes.
    step: usize,
    /// Byte offset of the presence bitmap in a row: the bits that say which cells have a value.
    bits: usize,
}

struct Column {
    kind: u16,
    id: u16,
    at: usize,
    length: usize,
    bit: usize,
}

impl<'f> PropertyTable<'f> {
    pub(super) fn open(
        file: &'f PstIndex,
        node: Node,
        allowance: &mut ReadAllowance,
    ) -> Result<Self, Fault> {
        let heap = Heap::open(file, node, allowance)?;
        if heap.kind != TABLE {
            return Err("the data is not a table".to_owned());
        }
        let header = heap
            .piece(heap.root)
            .ok_or("the columns of the table are missing")?;
        let damaged = || "the columns of the table are damaged".to_owned();
        let count = usize::from(*header.get(1).ok_or_else(damaged)?);
        let number = |at| u16_at(header, at).map(usize::from).ok_or_else(damaged);
        let (bits, step) = (number(6)?, number(8)?);
        let long = |at| u32_at(header, at).ok_or_else(damaged);
        let (index, cells) = (long(10)?, long(14)?);
        let descriptions = rest_or_empty(header, 22).chunks_exact(8);
        let is_cut = descriptions.len() < count;
        let columns = descriptions
            .take(count)
            .filter_map(|column| {
                Some(Column {
                    kind: u16_at(column, 0)?,
                    id: u16_at(column, 2)?,
                    at: u16_at(column, 4)?.into(),
                    length: usize::from(*column.get(6)?),
                    bit: usize::from(*column.get(7)?),
                })
            })
            .collect();
        let records = match index {
            0 => Vec::new(),
            index => heap.records(index, allowance)?,
        };
        let width = file.start.width;
        let row = |record: &&[u8]| {
            let place = match width {
                Width::Ansi => u16_at(record, 4)?.into(),
                Width::Unicode => u32_at(record, 4)?,
            };
            Some((u32_at(record, 0)?, usize::try_from(place).ok()?))
        };
        let mut rows: Vec<(u32, usize)> = records.iter().filter_map(row).collect();
        rows.sort_by_key(|row| row.1);
        Ok(Self {
            columns,
            is_cut,
            rows,
            cells,
            step,
            bits,
            heap,
        })
    }

    /// Returns the cells of all rows.
    pub(super) fn all(
        &self,
        names: &PropertyIds,
        allowance: &mut ReadAllowance,
    ) -> Result<Vec<Properties<'static>>, Fault> {
        let file = self.heap.file;
        let blocks = match self.cells & 0x1f {
            _ if self.cells == 0 => Vec::new(),
            0 => {
                let piece = self
                    .heap
                    .piece(self.cells)
                    .ok_or("the rows of the table are missing")?;
                vec![piece.to_vec()]
            }
            _ => {
                let node = self
                    .heap
                    .subnodes
                    .get(&self.cells)
                    .ok_or("the rows of the table are missing")?;
                file.blocks(node.data, allowance)?
            }
        };
        if self.step == 0 {
            return Err("the columns of the table are damaged".to_owned());
        }
        if self.is_cut {
            allowance.tell(
                "the table of recipients lacks columns; names or addresses may be missing"
                    .to_owned(),
            );
        }
        // Rows are not split across blocks, so the block size determines the number of rows per block, and in which
        // block a row is.
        let in_block = (file.start.width.of_block() / self.step).max(1);
        let mut all = Vec::new();
        let mut values = 0;
        for (_, place) in &self.rows {
            let start = place % in_block * self.step;
            let block = blocks.get(place / in_block);
            let row = block.and_then(|block| block.get(start..start + self.step));
            let Some(row) = row else {
                allowance.tell("a recipient is not in the file".to_owned());
                continue;
            };
            let mut properties = Properties::default();
            for column in &self.columns {
                let bits = row
                    .get(self.bits + column.bit / 8)
                    .copied()
                    .unwrap_or_default();
                if bits & 0x80 >> (column.bit % 8) == 0 {
                    continue;
                }
                values += 1;
                if values > MOST_VALUES {
                    allowance.tell(format!(
                        "the table of recipients has more than {MOST_VALUES} values; the others were not read"
                    ));
                    return Ok(all);
                }
                let Some(cell) = row.get(column.at..column.at + column.length) else {
                    continue;
                };
                let value = match fixed(column.kind, cell) {
                    Some(value) => Some(value),
                    None => match u32_at(cell, 0) {
                        Some(id) => match read_value(&self.heap, column.kind, id, allowance) {
                            Ok(value) => value,
                            Err(why) if why == TOO_LARGE => return Err(why),
                            Err(why) => {
                                let what = called(column.id);
                                allowance
                                    .tell(format!("{what} of a recipient cannot be read: {why}"));
                                None
                            }
                        },
                        None => None,
                    },
                };
                properties
                    .0
                    .extend(value.map(|it| names.property(column.id, it)));
            }
            all.push(properties);
        }
        Ok(all)
    }
}
