//! Reads Outlook message files: `.msg`, and `.oft` for templates (MS-OXMSG).
//!
//! A message file is a compound file (MS-CFB) with a storage for each recipient and attachment, and a stream for each value.
//! Any input is accepted: values that cannot be read are left out, and [`Message::damage`] lists them. All streams together
//! can have at most as many bytes as the file, so streams that share sectors need no more memory than the file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Cursor, Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use cfb::CompoundFile;

use super::compound::Compound;
use super::properties::{Attachment, Content, Item, Properties, Value, id};
use super::values::{Names, fixed, kind, set_page, stored, width};

/// The first bytes of a compound file. Office documents begin with the same bytes.
pub const SIGNATURE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

const PROPERTIES: &str = "__properties_version1.0";
/// Start of the name of a stream that contains one value. The id and the type of the property follow.
const VALUE: &str = "__substg1.0_";

/// Maximum number of values in a file.
const MOST_VALUES: usize = 100_000;

/// A message, and a sentence for each value in the file that cannot be read.
#[derive(Debug)]
pub struct Message {
    pub item: Item<'static>,
    pub damage: Vec<String>,
}

/// Returns true if a compound file is a message. This reads only the directory of the file.
pub fn is_message(file: impl Read + Seek) -> bool {
    CompoundFile::open(file).is_ok_and(|file| file.is_stream(Path::new("/").join(PROPERTIES)))
}

/// Reads a message file. Attached messages that are nested more than `depth` levels deep are not read.
///
/// # Errors
/// Returns the reason if the file is not a message, or if it is too damaged to be recognised.
pub fn read(bytes: &[u8], depth: usize) -> Result<Message, String> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(
            "the file is not a compound file, which is the format of .msg files".to_owned(),
        );
    }
    let file = Compound::open(bytes)?;
    let root = PathBuf::from("/");
    let contents = Contents::of(&file, &root);
    if !contents.has_values() {
        return Err("the file contains no message of Outlook".to_owned());
    }
    let mut reading = Reading {
        file,
        names: Names::default(),
        room: bytes.len(),
        values: 0,
        damage: Vec::new(),
        lost: 0,
        first_lost: None,
    };
    let of_file = reading.file.damage();
    reading.names = reading.names();
    let item = reading.item(&root, 32, depth);
    let mut damage: Vec<String> = of_file.into_iter().chain(reading.damage).collect();
    if let Some(first) = reading.first_lost {
        let values = match reading.lost {
            1 => "a value of the message is lost or incomplete".to_owned(),
            lost => {
                format!("{lost} values of the message are lost or incomplete, the first of them")
            }
        };
        damage.push(format!(
            "{values}: {first}; get an undamaged copy of the file"
        ));
    }
    if reading.values > MOST_VALUES {
        damage.push(format!(
            "the message has more than {MOST_VALUES} properties; the others were not read"
        ));
    }
    Ok(Message { item, damage })
}

struct Reading<'a> {
    file: Compound<'a>,
    names: Names,
    /// Number of bytes of streams that may still be read. At the start, it is the size of the file.
    room: usize,
    values: usize,
    damage: Vec<String>,
    /// Number of values that are missing or incomplete.
    lost: usize,
    /// Name of the first missing or incomplete value, with the reason.
    first_lost: Option<String>,
}

/// The content of a storage: its streams and storages, with their names in lower case.
#[derive(Default)]
struct Contents {
    streams: HashMap<String, PathBuf>,
    storages: Vec<(String, PathBuf)>,
}

impl Contents {
    fn of(file: &Compound<'_>, storage: &Path) -> Self {
        let mut contents = Self::default();
        for listed in file.list(storage) {
            // Names that differ only in case refer to the same entry.
            let name = listed.name.to_ascii_lowercase();
            if listed.is_stream {
                _ = contents.streams.insert(name, listed.path)
            } else {
                contents.storages.push((name, listed.path))
            }
        }
        contents.storages.sort();
        contents
    }

    /// Returns true if the storage is a message, a recipient or an attachment.
    fn has_values(&self) -> bool {
        self.streams.contains_key(PROPERTIES) || self.values().next().is_some()
    }

    /// Creates a list of properties from the names of the streams. It is used for a storage whose own list is missing
    /// or cannot be read, so that at least the values with separate streams are read.
    fn list(&self) -> Vec<[u8; 16]> {
        let mut values: Vec<(u16, u16)> = self.values().collect();
        values.sort_unstable();
        let entry = |(kind, id): &(u16, u16)| {
            let [[a, b], [c, d]] = [kind.to_le_bytes(), id.to_le_bytes()];
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        };
        values.iter().map(entry).collect()
    }

    /// Returns the type and the id of every value that has its own stream.
    fn values(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.streams.keys().filter_map(|name| {
            let digits = name.strip_prefix(VALUE).filter(|it| it.len() == 8)?;
            let (id, kind) = digits.split_at_checked(4)?;
            let number = |digits| u16::from_str_radix(digits, 16).ok();
            Some((number(kind)?, number(id)?))
        })
    }
}

impl Reading<'_> {
    fn contents(&self, storage: &Path) -> Contents {
        Contents::of(&self.file, storage)
    }

    fn stream(&mut self, path: &Path) -> Option<Vec<u8>> {
        let (bytes, fault) = self.file.read(path, self.room.saturating_add(1));
        let name = || path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(why) = fault {
            self.lose(format!("{} ({why})", name()));
            // If bytes were read before the fault, they are used, because an incomplete text is better than no text.
            if bytes.is_empty() {
                return None;
            }
        }
        match self.room.checked_sub(bytes.len()) {
            Some(room) => {
                self.room = room;
                Some(bytes)
            }
            None => {
                // The stream is too large to be in this file together with the others, so it is damaged and shares sectors with
                // other streams. Thousands of such streams may follow, and each one is read up to `room`. Halving `room` limits
                // the total work.
                self.room /= 2;
                self.lose(format!(
                    "{} (the declared size of this value exceeds the size of the file)",
                    name()
                ));
                None
            }
        }
    }

    fn lose(&mut self, value: String) {
        self.lost += 1;
        self.first_lost.get_or_insert(value);
    }

    fn tell(&mut self, what: String) {
        // Maximum number of faults in the list. A hostile file can have thousands.
        const MOST: usize = 20;
        if self.damage.len() < MOST {
            self.damage.push(what);
        }
    }

    fn names(&mut self) -> Names {
        let storage = Path::new("/__nameid_version1.0");
        if !self.file.is_storage(storage) {
            return Names::default();
        }
        let mut stream = |number: &str| {
            let path = storage.join(format!("__substg1.0_{number}0102"));
            if self.file.is_stream(&path) {
                self.stream(&path).unwrap_or_default()
            } else {
                Vec::new()
            }
        };
        let [guids, entries, strings] = ["0002", "0003", "0004"].map(&mut stream);
        Names::read(&guids, &entries, &strings)
    }

    /// Reads an item. `header` is the length in bytes of the header of its list of properties. This length is different
    /// for the outermost message and for a message that is attached to another one.
    fn item(&mut self, storage: &Path, header: usize, depth: usize) -> Item<'static> {
        let contents = self.contents(storage);
        let mut item = Item {
            properties: self.properties(&contents, header),
            ..Item::default()
        };
        for (name, path) in &contents.storages {
            if name.starts_with("__recip_version1.0_#") {
                let contents = self.contents(path);
                let recipient = self.properties(&contents, 8);
                item.recipients.push(recipient);
            } else if name.starts_with("__attach_version1.0_#") {
                let attachment = self.attachment(path, depth);
                item.attachments.push(attachment);
            }
        }
        set_page(&mut item);
        item
    }

    fn attachment(&mut self, storage: &Path, depth: usize) -> Attachment<'static> {
        let contents = self.contents(storage);
        let mut properties = self.properties(&contents, 8);
        let data = properties
            .0
            .extract_if(.., |it| it.id == id::DATA && it.name.is_none())
            .next();
        let object = contents
            .storages
            .iter()
            .find(|(name, _)| name == "__substg1.0_3701000d");
        let method = properties.integer(id::METHOD);
        let content = match (object, data.map(|data| data.value)) {
            (Some((_, path)), _) if method != Some(6) && self.is_item(path) => match depth {
                0 => {
                    self.tell("the message has too many levels of messages within messages; the innermost messages are missing".to_owned());
                    Content::None
                }
                _ => Content::Item(Box::new(self.item(path, 24, depth - 1))),
            },
            (Some((_, path)), _) => match self.copy(path) {
                Some(storage) => Content::Storage(Cow::Owned(storage)),
                None => Content::None,
            },
            (None, Some(Value::Bytes(bytes))) => {
                if bytes.starts_with(SIGNATURE) && method == Some(6) {
                    Content::Storage(bytes)
                } else {
                    Content::File(bytes)
                }
            }
            (None, _) => Content::None,
        };
        Attachment {
            properties,
            content,
        }
    }

    fn is_item(&self, storage: &Path) -> bool {
        self.file.is_stream(&storage.join(PROPERTIES))
    }

    fn properties(&mut self, contents: &Contents, header: usize) -> Properties<'static> {
        let mut properties = Properties::default();
        let stream = contents
            .streams
            .get(PROPERTIES)
            .and_then(|path| self.stream(path));
        // A list that ends within its header counts as one that cannot be read.
        let list = match stream.as_ref().and_then(|bytes| bytes.get(header..)) {
            Some(entries) => entries.as_chunks::<16>().0,
            None => {
                self.tell("a list of properties is missing or cannot be read; only values with streams of their own were used"
                        .to_owned());
                &contents.list()
            }
        };
        for entry in list {
            self.values += 1;
            if self.values > MOST_VALUES {
                break;
            }
            let [a, b, c, d, _, _, _, _, inline @ ..] = *entry;
            let (kind, id) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
            let name = format!("{VALUE}{id:04x}{kind:04x}");
            let value = match fixed(kind, &inline) {
                Some(value) => Some(value),
                None if kind & kind::MANY != 0 => self.many(contents, &name, kind & !kind::MANY),
                None => match contents.streams.get(&name) {
                    Some(path) => {
                        let bytes = self.stream(path);
                        bytes.and_then(|bytes| stored(kind, Cow::Owned(bytes)))
                    }
                    None => {
                        self.tell_missing(&name, kind, inline);
                        None
                    }
                },
            };
            properties
                .0
                .extend(value.map(|value| self.names.property(id, value)));
        }
        properties
    }

    /// Records that the stream of a value is missing from the file. Two kinds of values have no stream in an intact
    /// file and are ignored: objects, which are stored in storages, and empty texts.
    fn tell_missing(&mut self, name: &str, kind: u16, inline: [u8; 8]) {
        let [a, b, c, d, ..] = inline;
        if kind != kind::OBJECT && u32::from_le_bytes([a, b, c, d]) > 2 {
            self.lose(format!("{name} (the stream of this value is missing)"));
        }
    }

    /// Reads a property with several values. Values of a fixed length are together in one stream. Other values have one stream
    /// each.
    fn many(&mut self, contents: &Contents, name: &str, single: u16) -> Option<Value<'static>> {
        let bytes = self.stream(contents.streams.get(name)?)?;
        let mut values = Vec::new();
        if let Some(width) = width(single) {
            let values = bytes
                .chunks_exact(width)
                .filter_map(|it| stored(single, Cow::Owned(it.to_vec())));
            return Some(Value::Many(values.collect()));
        }
        let step = if single == kind::BYTES { 8 } else { 4 };
        for index in 0..bytes.len() / step {
            let Some(path) = contents.streams.get(&format!("{name}-{index:08x}")) else {
                break;
            };
            self.values += 1;
            if self.values > MOST_VALUES {
                break;
            }
            let bytes = self.stream(path)?;
            values.extend(stored(single, Cow::Owned(bytes)));
        }
        Some(Value::Many(values))
    }

    /// Copies an OLE object into a separate compound file. Time stamps are left out, so that the same input always gives the
    /// same bytes.
    fn copy(&mut self, storage: &Path) -> Option<Vec<u8>> {
        let entries = self.file.walk(storage);
        let mut copy = CompoundFile::create(Cursor::new(Vec::new())).ok()?;
        let root = Path::new("/");
        let first = entries.first().and_then(|first| first.entry.as_ref());
        if let Some(first) = first {
            copy.set_storage_clsid(root, *first.clsid()).ok()?;
        }
        for listed in entries.iter().skip(1) {
            let target = root.join(listed.path.strip_prefix(storage).ok()?);
            if listed.is_stream {
                let bytes = self.stream(&listed.path)?;
                copy.create_stream(&target).ok()?.write_all(&bytes).ok()?;
            } else {
                copy.create_storage(&target).ok()?;
                if let Some(entry) = &listed.entry {
                    copy.set_storage_clsid(&target, *entry.clsid()).ok()?;
                }
                copy.set_created_time(&target, UNIX_EPOCH).ok()?;
                copy.set_modified_time(&target, UNIX_EPOCH).ok()?;
            }
        }
        copy.set_modified_time(root, UNIX_EPOCH).ok()?;
        copy.flush().ok()?;
        Some(copy.into_inner().into_inner())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::engine::outlook::source::mail;

    const SIMPLE: &[u8] = include_bytes!("../../../tests/it/mailbox/outlook/simple.msg");
    const EMBEDDED: &[u8] = include_bytes!("../../../tests/it/mailbox/outlook/embedded.msg");

    #[test]
    fn msg_that_is_cut_or_changed_at_any_place_is_read_without_a_panic() {
        let mut read_at_all = 0;
        for whole in [SIMPLE, EMBEDDED] {
            for at in (0..whole.len()).step_by(61) {
                _ = read(&whole[..at], 4);
                for byte in [0xff, 0x00, 0x01] {
                    let mut bytes = whole.to_vec();
                    bytes[at] ^= byte;
                    bytes[at] = bytes[at].wrapping_add(byte);
                    if let Ok(message) = read(&bytes, 4) {
                        read_at_all += 1;
                        let written = mail(&message.item).content;
                        assert!(written.len() < 4 * whole.len(), "{at}");
                    }
                }
            }
        }
        assert!(read_at_all > 600, "{read_at_all}");
    }

    /// Creates a compound file with these streams.
    fn compound(streams: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut file = CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        for (path, bytes) in streams {
            let path = Path::new(path);
            file.create_storage_all(path.parent().unwrap()).unwrap();
            file.create_stream(path).unwrap().write_all(bytes).unwrap();
        }
        file.flush().unwrap();
        file.into_inner().into_inner()
    }

    /// Creates a list of properties whose values are in other streams.
    fn list(header: usize, properties: &[(u16, u16)]) -> Vec<u8> {
        let mut list = vec![0; header];
        for (id, kind) in properties {
            list.extend_from_slice(&kind.to_le_bytes());
            list.extend_from_slice(&id.to_le_bytes());
            list.extend_from_slice(&[0; 12]);
        }
        list
    }

    #[test]
    fn msg_with_messages_within_messages_is_read_to_the_limit() {
        let mut path = String::new();
        let mut streams = vec![("/__properties_version1.0".to_owned(), list(32, &[]))];
        for _ in 0..8 {
            path += "/__attach_version1.0_#00000000";
            streams.push((format!("{path}/__properties_version1.0"), list(8, &[])));
            path += "/__substg1.0_3701000D";
            streams.push((format!("{path}/__properties_version1.0"), list(24, &[])));
        }
        let streams: Vec<(&str, Vec<u8>)> = streams
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.clone()))
            .collect();
        let bytes = compound(&streams);
        let message = read(&bytes, 5).unwrap();
        assert_eq!(
            message.damage,
            [
                "the message has too many levels of messages within messages; the innermost messages are missing"
            ]
        );
        assert!(read(&bytes, 8).unwrap().damage.is_empty());
    }

    /// Creates a message with these numeric properties, and with a subject in these bytes.
    fn narrow(numbers: &[(u16, u32)], subject: &[u8]) -> Item<'static> {
        let mut list = list(32, &[(id::SUBJECT, kind::NARROW)]);
        for (id, number) in numbers {
            list.extend_from_slice(&3_u16.to_le_bytes());
            list.extend_from_slice(&id.to_le_bytes());
            list.extend_from_slice(&[0; 4]);
            list.extend_from_slice(&number.to_le_bytes());
            list.extend_from_slice(&[0; 4]);
        }
        let bytes = compound(&[
            ("/__properties_version1.0", list),
            ("/__substg1.0_0037001E", subject.to_vec()),
        ]);
        read(&bytes, 1).unwrap().item
    }

    #[test]
    fn msg_with_a_title_above_its_transport_header_keeps_the_header() {
        let header = b"Microsoft Mail Internet Headers Version 2.0\r\n\
            Received: from a by b; Fri, 12 Sep 2008 07:28:29 -0700\r\nFrom: \"Ann\" <ann@example.org>\r\n\
            Content-Type: text/plain; charset=\"koi8-r\"\r\nX-Own: 1\r\n\r\n\r\n";
        let properties = [
            (0x007d, kind::NARROW),
            (id::SUBJECT, kind::NARROW),
            (id::SENDER_NAME, kind::NARROW),
        ];
        let bytes = compound(&[
            ("/__properties_version1.0", list(32, &properties)),
            ("/__substg1.0_007D001E", header.to_vec()),
            ("/__substg1.0_0037001E", b"\xf0\xd2\xc9".to_vec()),
            ("/__substg1.0_0C1A001E", b"/O=ANN".to_vec()),
        ]);
        let item = read(&bytes, 1).unwrap().item;
        let text = String::from_utf8(mail(&item).content).unwrap();
        assert!(
            text.starts_with(
                "Received: from a by b; Fri, 12 Sep 2008 07:28:29 -0700\nFrom: \"Ann\" <ann@example.org>\nX-Own: 1\n"
            ),
            "{text}"
        );
        assert!(!text.contains("exchange.invalid"), "{text}");
        // The header declares koi8-r, and no property declares a code page. So the code page of the item is that of
        // koi8-r (20866).
        assert_eq!(item.page, 20866);
    }

    #[test]
    fn msg_in_its_own_code_page_is_read_in_it() {
        for (number, subject, expected) in [
            (1251, &b"\xcf\xf0\xe8"[..], "\u{41f}\u{440}\u{438}"),
            (932, b"\x93\xfa\x96\x7b\0", "\u{65e5}\u{672c}"),
            (1252, b"\xc3\xa9\0", "\u{e9}"),
        ] {
            let pages = [
                (id::INTERNET_CODEPAGE, 65001),
                (id::MESSAGE_CODEPAGE, number),
            ];
            let item = narrow(&pages, subject);
            assert_eq!(item.text(id::SUBJECT).as_deref(), Some(expected));
        }
    }

    #[test]
    fn msg_without_its_code_page_is_read_in_that_of_its_language() {
        let japanese = "\u{65e5}\u{672c}";
        for (numbers, subject, expected) in [
            // The mail was sent in ISO-2022-JP, but Outlook stored its texts in the code page of the system.
            (
                &[(id::INTERNET_CODEPAGE, 50220), (id::LOCALE, 0x0411)][..],
                &b"\x93\xfa\x96\x7b"[..],
                japanese,
            ),
            (
                &[(id::INTERNET_CODEPAGE, 50220)],
                b"\x93\xfa\x96\x7b",
                japanese,
            ),
            (&[(id::LOCALE, 0x0411)], b"\x93\xfa\x96\x7b", japanese),
            (
                &[(id::LOCALE, 0x0419)],
                b"\xcf\xf0\xe8",
                "\u{41f}\u{440}\u{438}",
            ),
            (&[(id::LOCALE, 0x0404)], b"\xa4\xa4", "\u{4e2d}"),
            (&[(id::LOCALE, 0x0804)], b"\xd6\xd0", "\u{4e2d}"),
            (&[(id::LOCALE, 0x0415)], b"\xb3", "\u{142}"),
            (&[(id::LOCALE, 0x0407)], b"\xe9", "\u{e9}"),
            (&[(id::LOCALE, u32::MAX)], b"\xe9", "\u{e9}"),
            // Text that is not valid in the Japanese code page is read as Western European.
            (&[(id::LOCALE, 0x0411)], b"caf\xe9", "caf\u{e9}"),
        ] {
            let item = narrow(numbers, subject);
            assert_eq!(
                item.text(id::SUBJECT).as_deref(),
                Some(expected),
                "{numbers:x?}"
            );
        }
    }

    #[test]
    fn msg_with_streams_that_are_too_large_is_read_within_twice_its_length() {
        let bytes = compound(&[("/large", vec![7; 10_000]), ("/small", vec![8; 100])]);
        let mut reading = Reading {
            file: Compound::open(&bytes).unwrap(),
            names: Names::default(),
            room: 6000,
            values: 0,
            damage: Vec::new(),
            lost: 0,
            first_lost: None,
        };
        assert!(reading.stream(Path::new("/large")).is_none());
        assert_eq!(reading.room, 3000);
        assert!(reading.stream(Path::new("/large")).is_none());
        assert_eq!(reading.room, 1500);
        // The large stream was rejected twice and halved `room` each time. What is left must still be enough for a small
        // stream.
        assert_eq!(reading.stream(Path::new("/small")).unwrap().len(), 100);
        assert_eq!(reading.room, 1400);
    }

    /// Returns the position of a directory entry with this name.
    fn entry_of(file: &[u8], name: &str) -> usize {
        let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        memchr::memmem::find(file, &name).unwrap()
    }

    #[test]
    fn msg_with_a_damaged_name_of_a_value_keeps_the_other_values() {
        let mut bytes = SIMPLE.to_vec();
        let at = entry_of(&bytes, "__substg1.0_1000");
        // The length of the name in the directory entry of this stream is overwritten with an invalid number. Only this
        // stream may be lost.
        bytes[at + 65] = 0x80;
        assert!(CompoundFile::open(Cursor::new(&bytes[..])).is_err());
        let message = read(&bytes, 4).unwrap();
        let whole = read(SIMPLE, 4).unwrap().item;
        assert_eq!(message.item.text(id::BODY), None);
        let others = [id::SUBJECT, id::SENDER_ADDRESS, id::MESSAGE_CLASS];
        for id in others {
            assert_eq!(message.item.text(id), whole.text(id));
        }
        let damage = message.damage.join("\n");
        assert!(damage.starts_with("the file is damaged ("), "{damage}");
        assert!(
            damage.contains("__substg1.0_1000")
                && damage.contains("(the stream of this value is missing)"),
            "{damage}"
        );
    }

    #[test]
    fn msg_without_its_list_of_properties_keeps_the_values_with_streams() {
        let mut bytes = SIMPLE.to_vec();
        let at = entry_of(&bytes, PROPERTIES);
        bytes[at] = b'W';
        let message = read(&bytes, 4).unwrap();
        let whole = read(SIMPLE, 4).unwrap().item;
        assert_eq!(message.item.text(id::BODY), whole.text(id::BODY));
        assert_eq!(message.item.text(id::SUBJECT), whole.text(id::SUBJECT));
        let damage = message.damage.join("\n");
        assert!(
            damage.contains("a list of properties is missing or cannot be read"),
            "{damage}"
        );
    }

    #[test]
    fn msg_with_a_list_of_properties_that_ends_within_its_header_keeps_the_values_with_streams() {
        let bytes = |list: Vec<u8>| {
            compound(&[
                ("/__properties_version1.0", list),
                ("/__substg1.0_0037001E", b"subject".to_vec()),
                ("/__substg1.0_1000001E", b"text".to_vec()),
            ])
        };
        let properties = [(id::SUBJECT, kind::NARROW), (id::BODY, kind::NARROW)];
        let whole = read(&bytes(list(32, &properties)), 1).unwrap();
        assert!(whole.damage.is_empty(), "{:?}", whole.damage);
        for length in [1, 8, 31] {
            let message = read(&bytes(vec![0; length]), 1).unwrap();
            assert_eq!(message.item.text(id::SUBJECT).as_deref(), Some("subject"));
            assert_eq!(message.item.text(id::BODY).as_deref(), Some("text"));
            let damage = message.damage.join("\n");
            assert!(
                damage.contains("a list of properties is missing or cannot be read"),
                "{length}: {damage}"
            );
        }
        // A list without properties is not damaged.
        assert!(read(&bytes(list(32, &[])), 1).unwrap().damage.is_empty());
    }

    #[test]
    fn msg_with_wrong_tables_of_sectors_is_read_as_far_as_they_lead() {
        // The table of sectors gets an entry for a sector after the end of the file. The mail must still be read
        // completely.
        let mut bytes = SIMPLE.to_vec();
        let sector = u32::from_le_bytes(bytes[76..80].try_into().unwrap());
        let table = 512 * (usize::try_from(sector).unwrap() + 1);
        bytes[table + 508..table + 512].copy_from_slice(&0x1000_u32.to_le_bytes());
        assert!(CompoundFile::open(Cursor::new(&bytes[..])).is_err());
        let message = read(&bytes, 4).unwrap();
        let whole = read(SIMPLE, 4).unwrap();
        assert!(whole.damage.is_empty(), "{:?}", whole.damage);
        assert_eq!(mail(&message.item).content, mail(&whole.item).content);
        assert_eq!(message.damage.len(), 1, "{:?}", message.damage);

        // The directory contains a cycle, and so does a chain of sectors. Reading must still end.
        let mut bytes = SIMPLE.to_vec();
        let at = entry_of(&bytes, PROPERTIES);
        bytes[at + 68..at + 72].copy_from_slice(&0_u32.to_le_bytes());
        bytes[at + 72..at + 76].copy_from_slice(&1_u32.to_le_bytes());
        for place in (table..table + 512).step_by(4) {
            bytes[place..place + 4].copy_from_slice(&1_u32.to_le_bytes());
        }
        _ = read(&bytes, 4);
    }

    #[test]
    fn ole_object_in_a_damaged_msg_is_read() {
        let bytes = compound(&[
            ("/__properties_version1.0", list(32, &[])),
            ("/__attach_version1.0_#00000000/__properties_version1.0", {
                let mut list = list(8, &[]);
                list.extend_from_slice(&[3, 0, 5, 0x37, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
                list
            }),
            (
                "/__attach_version1.0_#00000000/__substg1.0_3701000D/Inner/data",
                b"object".to_vec(),
            ),
            ("/zzz", Vec::new()),
        ]);
        let mut damaged = bytes.clone();
        let at = entry_of(&bytes, "zzz");
        damaged[at + 66] = 9;
        assert!(CompoundFile::open(Cursor::new(&damaged[..])).is_err());
        let message = read(&damaged, 1).unwrap();
        match &message.item.attachments[0].content {
            Content::Storage(object) => {
                let mut file = CompoundFile::open(Cursor::new(&object[..])).unwrap();
                let mut text = String::new();
                let mut stream = file.open_stream("/Inner/data").unwrap();
                stream.read_to_string(&mut text).unwrap();
                assert_eq!(text, "object");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ole_object_in_a_msg_becomes_the_same_bytes_each_time() {
        let streams = [
            ("/__properties_version1.0", list(32, &[])),
            ("/__attach_version1.0_#00000000/__properties_version1.0", {
                let mut list = list(8, &[]);
                list.extend_from_slice(&[3, 0, 5, 0x37, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
                list
            }),
            (
                "/__attach_version1.0_#00000000/__substg1.0_3701000D/Inner/data",
                b"object".to_vec(),
            ),
        ];
        let bytes = compound(&streams);
        let object = || match read(&bytes, 1).unwrap().item.attachments.remove(0).content {
            Content::Storage(bytes) => bytes.into_owned(),
            other => panic!("{other:?}"),
        };
        let first = object();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(first == object());
        let mut file = CompoundFile::open(Cursor::new(first)).unwrap();
        let mut text = String::new();
        file.open_stream("/Inner/data")
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "object");
    }
}
