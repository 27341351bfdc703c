//! Writes Outlook mailboxes (MS-PST) in all versions and encodings, for tests. It shares only the tables of the
//! encodings with the reader.

#![allow(dead_code)]

use std::io::{Seek, SeekFrom, Write};

// These tables are from the standard.
#[allow(clippy::duplicate_mod)]
#[path = "../../src/engine/outlook/pst/encoding.rs"]
mod encoding;

/// The version of the format, and the number of its encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    pub version: u16,
    pub encoding: u8,
}

#[derive(Clone, Debug)]
pub enum Value {
    Long(i32),
    Bool(bool),
    Time(i64),
    Text(String),
    Narrow(Vec<u8>),
    Bytes(Vec<u8>),
    Texts(Vec<String>),
}

pub type List = Vec<(u16, Value)>;

#[derive(Clone, Default, Debug)]
pub struct Message {
    pub properties: List,
    pub recipients: Vec<List>,
    pub attachments: Vec<Attachment>,
}

#[derive(Clone, Debug)]
pub enum Attachment {
    File(List, Vec<u8>),
    Message(List, Box<Message>),
}

pub fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Converts seconds since 1970 to a time.
pub fn time(seconds: i64) -> Value {
    Value::Time((seconds + 11_644_473_600) * 10_000_000)
}

impl Message {
    /// Returns a mail that is marked as read, with one recipient.
    pub fn mail(subject: &str, body: &str) -> Self {
        let recipient = vec![
            (0x0c15, Value::Long(1)),
            (0x3001, text("Ann")),
            (0x3003, text("ann@example.org")),
        ];
        Self {
            properties: vec![
                (0x001a, text("IPM.Note")),
                (0x0037, Value::Text(format!("\u{1}\u{1}{subject}"))),
                (0x0039, time(1_600_000_000)),
                (0x0c1a, text("Bob")),
                (0x0c1f, text("bob@example.org")),
                (0x0e06, time(1_600_000_100)),
                (0x0e07, Value::Long(1)),
                (0x1000, text(body)),
            ],
            recipients: vec![recipient],
            attachments: Vec::new(),
        }
    }

    pub fn with(mut self, id: u16, value: Value) -> Self {
        self.properties.retain(|it| it.0 != id);
        self.properties.push((id, value));
        self
    }

    pub fn with_file(mut self, name: &str, content: &[u8]) -> Self {
        let list = vec![(0x3705, Value::Long(1)), (0x3707, text(name))];
        self.attachments
            .push(Attachment::File(list, content.to_vec()));
        self
    }

    pub fn with_message(mut self, message: Self) -> Self {
        let list = vec![(0x3705, Value::Long(5)), (0x3001, text("attached"))];
        self.attachments
            .push(Attachment::Message(list, Box::new(message)));
        self
    }
}

/// A mailbox that is being written.
pub struct Pst<W> {
    out: W,
    form: Form,
    at: u64,
    next: u64,
    next_node: u32,
    blocks: Vec<(u64, u64, usize)>,
    nodes: Vec<[u64; 4]>,
}

pub const ROOT: u32 = 0x122;
const TOP: u32 = 0x8022;

impl Pst<std::io::Cursor<Vec<u8>>> {
    pub fn in_memory(form: Form) -> Self {
        Self::new(std::io::Cursor::new(Vec::new()), form)
    }

    pub fn bytes(self) -> Vec<u8> {
        self.finish().into_inner()
    }
}

impl<W: Write + Seek> Pst<W> {
    pub fn new(out: W, form: Form) -> Self {
        let mut pst = Self {
            out,
            form,
            at: 0x4600,
            next: 4,
            next_node: 0x10_000,
            blocks: Vec::new(),
            nodes: Vec::new(),
        };
        let mut entry = vec![0; 20];
        entry.extend_from_slice(&TOP.to_le_bytes());
        pst.node(0x21, 0, &vec![(0x35e0, Value::Bytes(entry))], &[]);
        pst.names();
        pst.folder_node(ROOT, ROOT, "");
        pst.folder_node(TOP, ROOT, "Top of the file");
        pst
    }

    /// Writes the named properties. The categories have the id 0x8000.
    fn names(&mut self) {
        let name: Vec<u8> = "Keywords"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut strings = (name.len() as u32).to_le_bytes().to_vec();
        strings.extend_from_slice(&name);
        let entries = vec![0, 0, 0, 0, 5, 0, 0, 0];
        let list = vec![
            (0x0001, Value::Long(251)),
            (0x0002, Value::Bytes(Vec::new())),
            (0x0003, Value::Bytes(entries)),
            (0x0004, Value::Bytes(strings)),
        ];
        self.node(0x61, 0, &list, &[]);
    }

    fn is_ansi(&self) -> bool {
        self.form.version < 23
    }

    fn width(&self) -> usize {
        if self.is_ansi() { 4 } else { 8 }
    }

    fn trailer(&self) -> usize {
        if self.is_ansi() { 12 } else { 16 }
    }

    fn number(&self, into: &mut Vec<u8>, number: u64) {
        into.extend_from_slice(&number.to_le_bytes()[..self.width()]);
    }

    fn seek(&mut self, at: u64) {
        // A seek would write what is buffered.
        if self.out.stream_position().unwrap() != at {
            self.out.seek(SeekFrom::Start(at)).unwrap();
        }
    }

    /// Leaves a gap in the file, so that the next block is at this position.
    pub fn skip_to(&mut self, at: u64) {
        self.at = self.at.max(at.next_multiple_of(512));
    }

    fn block(&mut self, data: &[u8], is_internal: bool) -> u64 {
        let id = self.next | if is_internal { 2 } else { 0 };
        self.next += 4;
        let mut bytes = data.to_vec();
        if !is_internal {
            match self.form.encoding {
                2 => encoding::PstEncoding::of(2).unwrap().decode(&mut bytes, id),
                1 => {
                    let table = inverse();
                    bytes
                        .iter_mut()
                        .for_each(|byte| *byte = table[usize::from(*byte)]);
                }
                _ => {}
            }
        }
        let sum = crc(&bytes);
        bytes.resize(
            (data.len() + self.trailer()).next_multiple_of(64) - self.trailer(),
            0,
        );
        bytes.extend_from_slice(&(data.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&signature(self.at, id).to_le_bytes());
        if self.is_ansi() {
            bytes.extend_from_slice(&(id as u32).to_le_bytes());
            bytes.extend_from_slice(&sum.to_le_bytes());
        } else {
            bytes.extend_from_slice(&sum.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        self.seek(self.at);
        self.out.write_all(&bytes).unwrap();
        self.blocks.push((id, self.at, data.len()));
        self.at += bytes.len() as u64;
        id
    }

    fn data(&mut self, bytes: &[u8]) -> u64 {
        let most = 8192 - self.trailer();
        if bytes.is_empty() {
            return 0;
        }
        if bytes.len() <= most {
            return self.block(bytes, false);
        }
        let ids: Vec<u64> = bytes.chunks(most).map(|it| self.block(it, false)).collect();
        let within = (most - 8) / self.width();
        let lists: Vec<(u64, usize)> = ids
            .chunks(within)
            .enumerate()
            .map(|(index, ids)| {
                let rest = bytes.len() - index * within * most;
                let length = rest.min(within * most);
                (self.list(1, length, ids), length)
            })
            .collect();
        match lists.as_slice() {
            [(one, _)] => *one,
            _ => {
                let ids: Vec<u64> = lists.iter().map(|it| it.0).collect();
                self.list(2, bytes.len(), &ids)
            }
        }
    }

    fn list(&mut self, level: u8, length: usize, ids: &[u64]) -> u64 {
        let mut list = vec![1, level];
        list.extend_from_slice(&(ids.len() as u16).to_le_bytes());
        list.extend_from_slice(&(length as u32).to_le_bytes());
        ids.iter().for_each(|id| self.number(&mut list, *id));
        self.block(&list, true)
    }

    fn subnodes(&mut self, nodes: &[[u64; 3]]) -> u64 {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        if nodes.is_empty() {
            return 0;
        }
        let padding = if self.is_ansi() { 0 } else { 4 };
        let mut leaves = Vec::new();
        for nodes in nodes.chunks(300) {
            let mut list = vec![2, 0];
            list.extend_from_slice(&(nodes.len() as u16).to_le_bytes());
            list.resize(4 + padding, 0);
            nodes
                .iter()
                .flatten()
                .for_each(|it| self.number(&mut list, *it));
            leaves.push((nodes[0][0], self.block(&list, true)));
        }
        if let [(_, one)] = leaves.as_slice() {
            return *one;
        }
        let mut list = vec![2, 1];
        list.extend_from_slice(&(leaves.len() as u16).to_le_bytes());
        list.resize(4 + padding, 0);
        for (id, block) in leaves {
            self.number(&mut list, id);
            self.number(&mut list, block);
        }
        self.block(&list, true)
    }

    fn kind_and_bytes(&self, value: &Value) -> (u16, Vec<u8>) {
        let wide =
            |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        let ansi = |text: &str| -> Vec<u8> { text.chars().map(|it| it as u8).collect() };
        match value {
            Value::Long(number) => (0x03, number.to_le_bytes().to_vec()),
            Value::Bool(is) => (0x0b, vec![u8::from(*is), 0, 0, 0]),
            Value::Time(time) => (0x40, time.to_le_bytes().to_vec()),
            Value::Text(text) if self.is_ansi() => (0x1e, ansi(text)),
            Value::Text(text) => (0x1f, wide(text)),
            Value::Narrow(bytes) => (0x1e, bytes.clone()),
            Value::Bytes(bytes) => (0x102, bytes.clone()),
            Value::Texts(texts) => {
                let texts: Vec<Vec<u8>> = texts.iter().map(|it| wide(it)).collect();
                let mut bytes = (texts.len() as u32).to_le_bytes().to_vec();
                let mut at = 4 + 4 * texts.len();
                for text in &texts {
                    bytes.extend_from_slice(&(at as u32).to_le_bytes());
                    at += text.len();
                }
                bytes.extend(texts.concat());
                (0x101f, bytes)
            }
        }
    }

    /// Stores a value, and returns the id of its piece of the heap or of its subnode.
    fn value(
        &mut self,
        value: &Value,
        pieces: &mut Vec<Vec<u8>>,
        nodes: &mut Vec<[u64; 3]>,
    ) -> (u16, u32) {
        let (kind, bytes) = self.kind_and_bytes(value);
        if matches!(kind, 0x03 | 0x0b) {
            return (kind, u32::from_le_bytes(bytes.try_into().unwrap()));
        }
        if bytes.is_empty() {
            return (kind, 0);
        }
        if bytes.len() <= 300 {
            pieces.push(bytes);
            return (kind, (pieces.len() as u32) << 5);
        }
        let id = ((nodes.len() as u32 + 1) << 5) | 0x1f;
        let data = self.data(&bytes);
        nodes.push([id.into(), data, 0]);
        (kind, id)
    }

    /// Writes a list of properties, and returns its block and the block of its subnodes. `object` is the subnode of an
    /// attached message.
    fn properties(&mut self, list: &List, object: Option<u32>, more: &[[u64; 3]]) -> (u64, u64) {
        let mut list: Vec<&(u16, Value)> = list.iter().collect();
        list.sort_by_key(|it| it.0);
        let mut pieces = vec![Vec::new(), Vec::new()];
        let mut nodes = more.to_vec();
        let mut records = Vec::new();
        let mut push = |id: u16, kind: u16, value: u32| {
            records.push((id, kind, value));
        };
        for (id, value) in list {
            let (kind, value) = self.value(value, &mut pieces, &mut nodes);
            push(*id, kind, value);
        }
        if let Some(id) = object {
            let mut bytes = id.to_le_bytes().to_vec();
            bytes.extend_from_slice(&100_u32.to_le_bytes());
            pieces.push(bytes);
            push(0x3701, 0x0d, (pieces.len() as u32) << 5);
        }
        records.sort_unstable();
        pieces[0] = vec![0xb5, 2, 6, 0, 0x40, 0, 0, 0];
        for (id, kind, value) in records {
            pieces[1].extend_from_slice(&id.to_le_bytes());
            pieces[1].extend_from_slice(&kind.to_le_bytes());
            pieces[1].extend_from_slice(&value.to_le_bytes());
        }
        let heap = heap(0xbc, 1, &pieces);
        (self.block(&heap, false), self.subnodes(&nodes))
    }

    /// Writes a table of rows that all have the same properties.
    fn table(&mut self, rows: &[(u32, List)]) -> (u64, u64) {
        let mut pieces = vec![Vec::new(), Vec::new(), Vec::new()];
        let mut nodes = Vec::new();
        let columns: Vec<u16> = rows
            .iter()
            .take(1)
            .flat_map(|row| row.1.iter().map(|it| it.0))
            .collect();
        let mut kinds = vec![3; columns.len()];
        let mut cells = Vec::new();
        let step = 4 * (columns.len() + 1) + 1 + columns.len() / 8;
        for (id, list) in rows {
            let start = cells.len();
            cells.extend_from_slice(&id.to_le_bytes());
            for (index, (_, value)) in list.iter().enumerate() {
                let (kind, value) = self.value(value, &mut pieces, &mut nodes);
                kinds[index] = kind;
                cells.extend_from_slice(&value.to_le_bytes());
            }
            cells.resize(start + step, 0xff);
        }
        let mut header = vec![0x7c, (columns.len() + 1) as u8];
        let whole = 4 * (columns.len() + 1);
        for end in [whole, whole, whole, step] {
            header.extend_from_slice(&(end as u16).to_le_bytes());
        }
        header.extend_from_slice(&0x40_u32.to_le_bytes());
        let has_rows = !rows.is_empty();
        let place = if has_rows {
            ((pieces.len() as u32) + 1) << 5
        } else {
            0
        };
        header.extend_from_slice(&place.to_le_bytes());
        header.extend_from_slice(&[0; 4]);
        let mut describe = |kind: u16, id: u16, index: usize| {
            header.extend_from_slice(&kind.to_le_bytes());
            header.extend_from_slice(&id.to_le_bytes());
            header.extend_from_slice(&((4 * index) as u16).to_le_bytes());
            header.extend_from_slice(&[4, index as u8]);
        };
        describe(3, 0x67f2, 0);
        for (index, id) in columns.iter().enumerate() {
            describe(kinds[index], *id, index + 1);
        }
        let entry = if self.is_ansi() { 2 } else { 4 };
        pieces[0] = header;
        let records = if has_rows { 0x60_u32 } else { 0 };
        pieces[1] = vec![0xb5, 4, entry, 0];
        pieces[1].extend_from_slice(&records.to_le_bytes());
        for (index, (id, _)) in rows.iter().enumerate() {
            pieces[2].extend_from_slice(&id.to_le_bytes());
            pieces[2].extend_from_slice(&(index as u32).to_le_bytes()[..entry.into()]);
        }
        if has_rows {
            pieces.push(cells);
        }
        let heap = heap(0x7c, 1, &pieces);
        (self.block(&heap, false), self.subnodes(&nodes))
    }

    fn node(&mut self, id: u32, parent: u32, list: &List, more: &[[u64; 3]]) {
        let (data, subnodes) = self.properties(list, None, more);
        self.nodes.push([id.into(), data, subnodes, parent.into()]);
    }

    fn folder_node(&mut self, id: u32, parent: u32, name: &str) {
        let list = vec![
            (0x3001, text(name)),
            (0x3602, Value::Long(0)),
            (0x3603, Value::Long(0)),
            (0x360a, Value::Bool(true)),
        ];
        self.node(id, parent, &list, &[]);
    }

    /// Adds a folder, at the top level if `above` is `None`.
    pub fn folder(&mut self, above: Option<u32>, name: &str, messages: &[Message]) -> u32 {
        let id = self.next_node | 2;
        self.next_node += 0x20;
        self.folder_node(id, above.unwrap_or(TOP), name);
        let ids: Vec<u32> = messages.iter().map(|it| self.message(id, it)).collect();
        // A heap with one block has room for 60 rows.
        let rows: Vec<(u32, List)> = ids
            .iter()
            .zip(messages)
            .take(60)
            .map(|(id, message)| {
                let property = message.properties.iter().find(|it| it.0 == 0x37);
                let subject = property.map_or(text(""), |it| it.1.clone());
                (*id, vec![(0x0037, subject)])
            })
            .collect();
        self.contents(id, &rows);
        id
    }

    /// Adds the table of the messages in a folder.
    pub fn contents(&mut self, folder: u32, rows: &[(u32, List)]) {
        let (data, subnodes) = self.table(rows);
        let id = folder & !0x1f | 0x0e;
        self.nodes.push([id.into(), data, subnodes, folder.into()]);
    }

    /// Adds a message to a folder, and returns its id.
    pub fn message(&mut self, folder: u32, message: &Message) -> u32 {
        let id = self.next_node | 4;
        self.next_node += 0x20;
        let (data, subnodes) = self.item(message);
        self.nodes.push([id.into(), data, subnodes, folder.into()]);
        id
    }

    fn item(&mut self, message: &Message) -> (u64, u64) {
        let mut more = Vec::new();
        let rows: Vec<(u32, List)> = (0_u32..).zip(message.recipients.iter().cloned()).collect();
        let (data, subnodes) = self.table(&rows);
        more.push([0x692, data, subnodes]);
        let mut rows = Vec::new();
        for (index, attachment) in message.attachments.iter().enumerate() {
            let id = ((index as u32 + 0x400) << 5) | 5;
            let (data, subnodes) = match attachment {
                Attachment::File(list, content) => {
                    let mut list = list.clone();
                    list.push((0x3701, Value::Bytes(content.clone())));
                    self.properties(&list, None, &[])
                }
                Attachment::Message(list, message) => {
                    let (data, subnodes) = self.item(message);
                    let inner = 0x0020_0024;
                    self.properties(list, Some(inner), &[[inner.into(), data, subnodes]])
                }
            };
            more.push([id.into(), data, subnodes]);
            rows.push((id, vec![(0x0e21, Value::Long(index as i32))]));
        }
        if rows.len() <= 100 && !rows.is_empty() {
            let (data, subnodes) = self.table(&rows);
            more.push([0x671, data, subnodes]);
        }
        self.properties(&message.properties, None, &more)
    }

    fn page(&mut self, kind: u8, level: u8, entries: &[Vec<u8>]) -> (u64, u64) {
        let id = self.next;
        self.next += 4;
        self.at = self.at.next_multiple_of(512);
        let step = entries.first().map_or(24, Vec::len);
        let room = if self.is_ansi() { 496 } else { 488 };
        let mut page = entries.concat();
        page.resize(room, 0);
        page.extend_from_slice(&[entries.len() as u8, (room / step) as u8, step as u8, level]);
        page.resize(512 - self.trailer(), 0);
        let sum = crc(&page);
        page.extend_from_slice(&[kind, kind]);
        page.extend_from_slice(&signature(self.at, id).to_le_bytes());
        if self.is_ansi() {
            page.extend_from_slice(&(id as u32).to_le_bytes());
            page.extend_from_slice(&sum.to_le_bytes());
        } else {
            page.extend_from_slice(&sum.to_le_bytes());
            page.extend_from_slice(&id.to_le_bytes());
        }
        self.seek(self.at);
        self.out.write_all(&page).unwrap();
        let at = self.at;
        self.at += 512;
        (id, at)
    }

    fn tree(&mut self, kind: u8, leaves: Vec<(u64, Vec<u8>)>) -> (u64, u64) {
        let room = if self.is_ansi() { 496 } else { 488 };
        let mut entries = leaves;
        for level in 0.. {
            let step = entries.first().map_or(24, |it| it.1.len());
            let mut above = Vec::new();
            for entries in entries.chunks(room / step) {
                let bytes: Vec<Vec<u8>> = entries.iter().map(|it| it.1.clone()).collect();
                let (id, at) = self.page(kind, level, &bytes);
                let key = entries.first().map_or(0, |it| it.0);
                let mut entry = Vec::new();
                for number in [key, id, at] {
                    self.number(&mut entry, number);
                }
                above.push((key, entry, id, at));
            }
            if let [(_, _, id, at)] = above.as_slice() {
                return (*id, *at);
            }
            entries = above.into_iter().map(|it| (it.0, it.1)).collect();
        }
        unreachable!("each level has fewer pages than the one below")
    }

    pub fn finish(mut self) -> W {
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.sort_unstable();
        let leaves = nodes.iter().map(|node| {
            let mut entry = Vec::new();
            node.iter().for_each(|it| self.number(&mut entry, *it));
            (node[0], entry)
        });
        let leaves = leaves.collect();
        let nodes = self.tree(0x81, leaves);
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.sort_unstable();
        let leaves = blocks.iter().map(|(id, at, length)| {
            let mut entry = Vec::new();
            self.number(&mut entry, *id);
            self.number(&mut entry, *at);
            entry.extend_from_slice(&(*length as u16).to_le_bytes());
            entry.extend_from_slice(&[2, 0]);
            if !self.is_ansi() {
                entry.extend_from_slice(&[0; 4]);
            }
            (*id, entry)
        });
        let leaves = leaves.collect();
        let blocks = self.tree(0x80, leaves);
        let end = self.at;
        let mut header = vec![0; 0x4600];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"!BDN");
        put(8, b"SM");
        put(10, &self.form.version.to_le_bytes());
        put(12, &19_u16.to_le_bytes());
        put(14, &[1, 1]);
        if self.form.version < 23 {
            put(168, &(end as u32).to_le_bytes());
            for (at, (id, place)) in [(184, nodes), (192, blocks)] {
                put(at, &(id as u32).to_le_bytes());
                put(at + 4, &(place as u32).to_le_bytes());
            }
            put(460, &[0x80, self.form.encoding]);
        } else {
            put(184, &end.to_le_bytes());
            for (at, (id, place)) in [(216, nodes), (232, blocks)] {
                put(at, &id.to_le_bytes());
                put(at + 8, &place.to_le_bytes());
            }
            put(512, &[0x80, self.form.encoding]);
        }
        self.seek(0);
        self.out.write_all(&header).unwrap();
        self.out.flush().unwrap();
        self.out
    }
}

/// Returns a heap that consists of one block.
fn heap(kind: u8, root: u32, pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut block = vec![0, 0, 0xec, kind];
    block.extend_from_slice(&(root << 5).to_le_bytes());
    block.extend_from_slice(&[0; 4]);
    let mut places = Vec::new();
    for piece in pieces {
        places.push(block.len() as u16);
        block.extend_from_slice(piece);
    }
    places.push(block.len() as u16);
    let map = block.len().next_multiple_of(2);
    block.resize(map, 0);
    block.extend_from_slice(&(pieces.len() as u16).to_le_bytes());
    block.extend_from_slice(&[0, 0]);
    places
        .iter()
        .for_each(|it| block.extend_from_slice(&it.to_le_bytes()));
    block[..2].copy_from_slice(&(map as u16).to_le_bytes());
    assert!(block.len() <= 8176, "{}", block.len());
    block
}

fn signature(at: u64, id: u64) -> u16 {
    let both = (at ^ id) as u32;
    (both >> 16) as u16 ^ both as u16
}

/// Computes the checksum of MS-PST 5.3.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        let mut rest = (sum ^ u32::from(*byte)) & 0xff;
        for _ in 0..8 {
            rest = match rest & 1 {
                1 => 0xedb8_8320 ^ (rest >> 1),
                _ => rest >> 1,
            };
        }
        rest ^ (sum >> 8)
    })
}

/// Returns the encoding table, which is the inverse of the reader's decoding table.
fn inverse() -> [u8; 256] {
    let mut table = [0; 256];
    for byte in 0..=255_u8 {
        let mut one = [byte];
        encoding::PstEncoding::of(1).unwrap().decode(&mut one, 0);
        table[usize::from(one[0])] = byte;
    }
    table
}
