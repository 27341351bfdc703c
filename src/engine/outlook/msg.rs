//! Reads Outlook message files: `.msg`, and `.oft` for templates (MS-OXMSG).
//!
//! A message file is a compound file (MS-CFB) with a storage for each recipient and attachment, and a stream for each value.
//! Any input is accepted: values that cannot be read are left out, and [`MsgMessage::damage`] lists them. All streams together
//! can have at most as many bytes as the file, so streams that share sectors need no more memory than the file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use cfb::CompoundFile;

use super::compound::{Compound, StorageCopy, StorageEntry};
use super::properties::{
    AttachmentContent, OutlookAttachment, OutlookItem, Properties, PropertyValue, id,
};
use super::values::{PropertyIds, fixed, kind, set_page, stored, width};

/// The first bytes of a compound file. Office documents begin with the same bytes.
pub const SIGNATURE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

const PROPERTIES: &str = "__properties_version1.0";
/// Start of the name of a stream that contains one value. The id and the type of the property follow.
const VALUE: &str = "__substg1.0_";
/// Start of the name of the storage of a recipient. A number follows.
const RECIPIENT: &str = "__recip_version1.0_#";
/// Start of the name of the storage of an attachment. A number follows.
const ATTACHMENT: &str = "__attach_version1.0_#";
/// Name of the storage of the content of an attachment that is a message or an OLE object.
const OBJECT: &str = "__substg1.0_3701000d";
/// Name of the storage with the names of properties.
const NAMES: &str = "__nameid_version1.0";

/// Maximum number of values in a file.
const MOST_VALUES: usize = 100_000;

/// A message, and a sentence for each value in the file that cannot be read.
#[derive(Debug)]
pub struct MsgMessage {
    pub item: OutlookItem<'static>,
    pub damage: Vec<String>,
}

/// Whether a compound file is a message. Only the directory of an intact file is read. A single damaged name must not
/// hide a message, so any entry that only messages have is enough.
pub fn is_message(mut file: impl Read + Seek) -> bool {
    // Maximum number of bytes of a damaged file that are read.
    const MOST: u64 = 64 << 20;
    let root = Path::new("/");
    if let Ok(file) = CompoundFile::open(&mut file) {
        return file
            .read_storage(root)
            .is_ok_and(|mut it| it.any(|entry| is_name(&entry.name().to_ascii_lowercase())));
    }
    let mut bytes = Vec::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MOST).read_to_end(&mut bytes));
    let names = read
        .ok()
        .and_then(|_| Some(Compound::open(&bytes).ok()?.list(root)));
    names.is_some_and(|names| {
        names
            .iter()
            .any(|it| is_name(&it.name.to_ascii_lowercase()))
    })
}

/// Whether only messages have an entry with this name (in lower case).
fn is_name(name: &str) -> bool {
    name == PROPERTIES
        || name == NAMES
        || [VALUE, RECIPIENT, ATTACHMENT]
            .iter()
            .any(|start| name.starts_with(start))
}

/// Reads a message file. Attached messages that are nested more than `depth` levels deep are not read.
///
/// # Errors
/// Returns the reason if the file is not a message, or if it is too damaged to be recognised.
pub fn read(bytes: &[u8], depth: usize) -> Result<MsgMessage, String> {
    if !bytes.starts_with(SIGNATURE) {
        return Err(
            "the file is not a compound file, which is the format of .msg files".to_owned(),
        );
    }
    let file = Compound::open(bytes)?;
    let root = PathBuf::from("/");
    let contents = StorageContents::of(&file, &root);
    if !contents.has_values() {
        return Err("the file contains no Outlook message".to_owned());
    }
    let mut reading = MsgReader {
        file,
        names: PropertyIds::default(),
        has_all_names: true,
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
    Ok(MsgMessage { item, damage })
}

struct MsgReader<'a> {
    file: Compound<'a>,
    names: PropertyIds,
    /// True if none of the lists of property names is missing.
    has_all_names: bool,
    /// Number of stream bytes that may still be read. Starts as the size of the file.
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
struct StorageContents {
    streams: HashMap<String, PathBuf>,
    storages: Vec<(String, PathBuf)>,
}

impl StorageContents {
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

    /// Whether the storage holds properties, as messages, recipients and attachments do.
    fn has_values(&self) -> bool {
        self.streams.contains_key(PROPERTIES) || self.values().next().is_some()
    }

    /// Rebuilds the list of properties from the names of the streams, for a storage whose own list is missing or
    /// unreadable. At least the values with separate streams can then be read.
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

/// Content type of a storage inside a message.
enum StorageRole {
    Recipient,
    Attachment,
    /// Storage with properties, but unknown whether of a recipient or of an attachment.
    Unknown,
    /// Storage without content of the message, such as the names of properties.
    Other,
}

impl MsgReader<'_> {
    fn contents(&self, storage: &Path) -> StorageContents {
        StorageContents::of(&self.file, storage)
    }

    fn stream(&mut self, path: &Path) -> Option<Vec<u8>> {
        let (bytes, fault) = self.file.read(path, self.room.saturating_add(1));
        let name = || path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(why) = fault {
            self.lose(format!("{} ({why})", name()));
            // The bytes before the fault are used, because an incomplete text is better than no text.
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
                // The stream does not fit into this file together with the others, so it is damaged and shares sectors
                // with other streams. Thousands of such streams could follow, each read up to `room` bytes; halving
                // `room` bounds the total work.
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

    fn names(&mut self) -> PropertyIds {
        let storage = Path::new("/").join(NAMES);
        let mut stream = |number: &str| {
            let path = storage.join(format!("__substg1.0_{number}0102"));
            if self.file.is_stream(&path) {
                self.stream(&path).unwrap_or_default()
            } else {
                self.has_all_names = false;
                Vec::new()
            }
        };
        let [guids, entries, strings] = ["0002", "0003", "0004"].map(&mut stream);
        PropertyIds::read(&guids, &entries, &strings)
    }

    /// Reads an item. `header` is the length in bytes of the header of its list of properties. This length is different
    /// for the outermost message and for a message that is attached to another one.
    fn item(&mut self, storage: &Path, header: usize, depth: usize) -> OutlookItem<'static> {
        let contents = self.contents(storage);
        let (properties, counts) = self.properties(&contents, header);
        let mut item = OutlookItem {
            properties,
            ..OutlookItem::default()
        };
        for (name, path) in &contents.storages {
            match self.role(name, path) {
                StorageRole::Recipient => {
                    let contents = self.contents(path);
                    let (recipient, _) = self.properties(&contents, 8);
                    item.recipients.push(recipient);
                }
                StorageRole::Attachment => {
                    let attachment = self.attachment(path, depth);
                    item.attachments.push(attachment);
                }
                StorageRole::Other => {}
                StorageRole::Unknown => {
                    self.tell(format!(
                        "the content of the storage {name}, whose name is unknown"
                    ));
                }
            }
        }
        if let Some([recipients, attachments]) = counts {
            self.check_count(recipients, item.recipients.len(), "recipients");
            self.check_count(attachments, item.attachments.len(), "attachments");
        }
        set_page(&mut item);
        item
    }

    /// Returns the role of a storage in a message. If the name is damaged, the properties show whether it is a
    /// recipient or an attachment.
    fn role(&mut self, name: &str, storage: &Path) -> StorageRole {
        if name.starts_with(RECIPIENT) {
            return StorageRole::Recipient;
        }
        if name.starts_with(ATTACHMENT) {
            return StorageRole::Attachment;
        }
        if name == NAMES {
            return StorageRole::Other;
        }
        let contents = self.contents(storage);
        let is_of_attachment = |(_, id): (u16, u16)| (0x3700..0x3720).contains(&id);
        let is_of_person =
            |(_, id)| matches!(id, id::DISPLAY_NAME | id::ADDRESS | id::SMTP_ADDRESS);
        let has_object = contents.storages.iter().any(|(name, _)| name == OBJECT);
        let (role, what) = if has_object || contents.values().any(is_of_attachment) {
            (StorageRole::Attachment, "an attachment")
        } else if contents.values().any(is_of_person) {
            (StorageRole::Recipient, "a recipient")
        } else if contents.has_values() {
            return StorageRole::Unknown;
        } else {
            // An unrelated storage, such as MsoDataStore, in which Office keeps its own data.
            return StorageRole::Other;
        };
        self.tell(format!(
            "the storage {name} has a damaged name; embody read it as {what}"
        ));
        role
    }

    /// Records missing recipients or attachments. More of them than declared is not a loss.
    fn check_count(&mut self, declared: u32, found: usize, what: &str) {
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        if found < declared {
            self.tell(format!(
                "the message has {declared} {what}, but only {found} of them are in the file; get an undamaged copy of the file"
            ));
        }
    }

    fn attachment(&mut self, storage: &Path, depth: usize) -> OutlookAttachment<'static> {
        let contents = self.contents(storage);
        let (mut properties, _) = self.properties(&contents, 8);
        let data = properties
            .0
            .extract_if(.., |it| it.id == id::DATA && it.name.is_none())
            .next();
        let object = contents.storages.iter().find(|(name, _)| name == OBJECT);
        // The only storage in an attachment is its content, so the content is found even if its name is damaged.
        let renamed = contents
            .storages
            .first()
            .filter(|_| object.is_none() && data.is_none());
        if let Some((name, _)) = renamed {
            self.tell(format!(
                "the storage {name} has a damaged name; embody read it as the content of an attachment"
            ));
        }
        let object = object.or(renamed);
        let method = properties.integer(id::METHOD);
        let content = match (object, data.map(|data| data.value)) {
            (Some((_, path)), _) if method != Some(6) && self.is_item(path) => match depth {
                0 => {
                    self.tell("the message has too many levels of messages within messages; the innermost messages are missing".to_owned());
                    AttachmentContent::None
                }
                _ => AttachmentContent::Item(Box::new(self.item(path, 24, depth - 1))),
            },
            (Some((_, path)), _) => match self.copy(path) {
                Some(storage) => AttachmentContent::Storage(Cow::Owned(storage)),
                None => AttachmentContent::None,
            },
            (None, Some(PropertyValue::Bytes(bytes))) => {
                if bytes.starts_with(SIGNATURE) && method == Some(6) {
                    AttachmentContent::Storage(bytes)
                } else {
                    AttachmentContent::File(bytes)
                }
            }
            (None, _) => AttachmentContent::None,
        };
        OutlookAttachment {
            properties,
            content,
        }
    }

    /// Returns true if the content of an attachment is a message. OLE objects have other names.
    fn is_item(&self, storage: &Path) -> bool {
        self.contents(storage).has_values()
    }

    /// Reads the properties of a storage. The header of the list in a message also contains the number of its recipients and
    /// of its attachments.
    fn properties(
        &mut self,
        contents: &StorageContents,
        header: usize,
    ) -> (Properties<'static>, Option<[u32; 2]>) {
        let mut properties = Properties::default();
        let stream = contents
            .streams
            .get(PROPERTIES)
            .and_then(|path| self.stream(path));
        // A list that ends within its header is treated as unreadable.
        let list = match stream.as_ref().and_then(|bytes| bytes.get(header..)) {
            Some(entries) => entries.as_chunks::<16>().0,
            None => {
                self.tell("the property stream of the message, of a recipient or of an attachment is missing or cannot be read, so only the properties with a stream of their own were used; get an undamaged copy of the file"
                        .to_owned());
                &contents.list()
            }
        };
        let counts = stream
            .as_ref()
            .and_then(|bytes| {
                bytes
                    .get(..header)?
                    .get(16..24)?
                    .as_chunks::<4>()
                    .0
                    .try_into()
                    .ok()
            })
            .map(|counts: [[u8; 4]; 2]| counts.map(u32::from_le_bytes));
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
                None if kind & kind::MANY != 0 && contents.streams.contains_key(&name) => {
                    self.many(contents, &name, kind & !kind::MANY)
                }
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
            if id >= 0x8000 && !self.has_all_names && self.names.of(id).is_none() {
                self.lose(format!("{name} (its name is missing)"));
            }
            properties
                .0
                .extend(value.map(|value| self.names.property(id, value)));
        }
        (properties, counts)
    }

    /// Records that a value's stream is missing. Two kinds of values never have a stream: objects (they are storages)
    /// and empty values. The length of a text includes its terminating NUL.
    fn tell_missing(&mut self, name: &str, kind: u16, inline: [u8; 8]) {
        let [a, b, c, d, ..] = inline;
        let empty = match kind {
            kind::WIDE => 2,
            kind::NARROW => 1,
            _ => 0,
        };
        if kind != kind::OBJECT && u32::from_le_bytes([a, b, c, d]) > empty {
            self.lose(format!("{name} (the stream of this value is missing)"));
        }
    }

    /// Reads a property with several values. Values of a fixed length are together in one stream. Other values have one stream
    /// each.
    fn many(
        &mut self,
        contents: &StorageContents,
        name: &str,
        single: u16,
    ) -> Option<PropertyValue<'static>> {
        let bytes = self.stream(contents.streams.get(name)?)?;
        let mut values = Vec::new();
        if let Some(width) = width(single) {
            let values = bytes
                .chunks_exact(width)
                .filter_map(|it| stored(single, Cow::Owned(it.to_vec())));
            return Some(PropertyValue::Many(values.collect()));
        }
        let step = if single == kind::BYTES { 8 } else { 4 };
        for index in 0..bytes.len() / step {
            let name = format!("{name}-{index:08x}");
            let Some(path) = contents.streams.get(&name) else {
                self.lose(format!("{name} (the stream of this value is missing)"));
                break;
            };
            self.values += 1;
            if self.values > MOST_VALUES {
                break;
            }
            let bytes = self.stream(path)?;
            values.extend(stored(single, Cow::Owned(bytes)));
        }
        Some(PropertyValue::Many(values))
    }

    /// Copies an OLE object into a separate compound file. Time stamps are left out, so that the same input always gives the
    /// same bytes.
    fn copy(&mut self, storage: &Path) -> Option<Vec<u8>> {
        let entries = self.file.walk(storage);
        let class =
            |listed: &StorageEntry| listed.entry.as_ref().map(|it| it.clsid().to_bytes_le());
        let mut copy = StorageCopy::new(entries.first().and_then(class))?;
        let root = Path::new("/");
        for listed in entries.iter().skip(1) {
            let target = root.join(listed.path.strip_prefix(storage).ok()?);
            if listed.is_stream {
                let bytes = self.stream(&listed.path)?;
                copy.add_stream(&target, &bytes)?;
            } else {
                copy.add_storage(&target, class(listed))?;
            }
        }
        copy.finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
