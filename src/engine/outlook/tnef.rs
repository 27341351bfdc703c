//! Reads TNEF (MS-OXTNEF), the format of the `winmail.dat` files that Outlook sends.
//!
//! Any input is accepted. Lengths and counts are untrusted, so no memory is reserved for them. Values are slices of the file,
//! and the number of properties and the depth of embedded items are limited. Damaged files are read as far as possible, and
//! [`TnefStream::damage`] lists the faults, and content that the reader does not use.

mod damage;
mod unread;
mod whole;

use std::borrow::Cow;

pub use self::damage::TnefDamage;
pub use self::whole::read_whole;
use super::clock;
use super::codepage;
pub use super::codepage::wide;
use super::cursor::Cursor;
use super::properties::{
    AttachmentContent, Guid, OutlookAttachment, OutlookItem, Properties, Property, PropertyName,
    PropertyValue, id,
};

/// The first bytes of each TNEF stream.
pub const SIGNATURE: &[u8] = b"\x78\x9f\x3e\x22";

/// Maximum number of values in a file. Ordinary files have some hundred. Without this limit, a file of empty properties could
/// need thirty times its size in memory.
const MOST_VALUES: usize = 50_000;

#[derive(Clone, PartialEq, Default, Debug)]
pub struct TnefStream<'a> {
    pub item: OutlookItem<'a>,
    /// The faults of the stream, each listed once.
    pub damage: Vec<TnefDamage>,
}

/// Reads a stream. Items that are nested more than `depth` levels deep are not read.
pub fn read(bytes: &[u8], depth: usize) -> TnefStream<'_> {
    let mut reading = TnefReader {
        damage: Vec::new(),
        values: 0,
    };
    let item = reading.item(bytes, depth);
    let mut damage = reading.damage;
    damage.sort_unstable();
    damage.dedup();
    TnefStream { item, damage }
}

/// Attribute numbers. The file stores each one in a four-byte field together with the type of the attribute, which is
/// ignored because some programs do not write it.
mod attribute {
    pub(super) const FROM: u16 = 0x8000;
    pub(super) const SUBJECT: u16 = 0x8004;
    pub(super) const DATE_SENT: u16 = 0x8005;
    pub(super) const DATE_RECEIVED: u16 = 0x8006;
    pub(super) const MESSAGE_STATUS: u16 = 0x8007;
    pub(super) const MESSAGE_CLASS: u16 = 0x8008;
    pub(super) const BODY: u16 = 0x800c;
    pub(super) const PRIORITY: u16 = 0x800d;
    pub(super) const ATTACH_DATA: u16 = 0x800f;
    pub(super) const ATTACH_TITLE: u16 = 0x8010;
    pub(super) const ATTACH_CREATED: u16 = 0x8012;
    pub(super) const ATTACH_MODIFIED: u16 = 0x8013;
    pub(super) const DATE_START: u16 = 0x0006;
    pub(super) const DATE_END: u16 = 0x0007;
    pub(super) const ATTACH_FILE_NAME: u16 = 0x9001;
    pub(super) const ATTACH_RENDERING: u16 = 0x9002;
    pub(super) const PROPERTIES: u16 = 0x9003;
    pub(super) const RECIPIENTS: u16 = 0x9004;
    pub(super) const ATTACH_PROPERTIES: u16 = 0x9005;
    pub(super) const CODEPAGE: u16 = 0x9007;
}

/// `{00020307-0000-0000-C000-000000000046}`, the interface id of a value that is a message.
const MESSAGE: Guid = *b"\x07\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
/// `{0000000B-0000-0000-C000-000000000046}`, the interface id of a value that is a compound file.
const STORAGE: Guid = *b"\x0b\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
/// `{0000000C-0000-0000-C000-000000000046}`, the interface id of a value that is a file.
const FILE: Guid = *b"\x0c\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";

const COMPOUND_FILE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";

struct TnefReader {
    damage: Vec<TnefDamage>,
    values: usize,
}

/// Reads one attribute. Returns its number, its content, and true if the checksum is right.
fn attribute<'a>(cursor: &mut Cursor<'a>) -> Option<(u16, &'a [u8], bool)> {
    let number = cursor.u32()?;
    let length = usize::try_from(cursor.u32()?).ok()?;
    let content = cursor.take(length)?;
    let sum = content
        .iter()
        .fold(0_u16, |sum, byte| sum.wrapping_add(u16::from(*byte)));
    let is_right = cursor.u16()? == sum;
    Some((number as u16, content, is_right))
}

impl TnefReader {
    fn item<'a>(&mut self, bytes: &'a [u8], depth: usize) -> OutlookItem<'a> {
        let mut item = OutlookItem {
            page: codepage::WESTERN,
            ..OutlookItem::default()
        };
        let Some(rest) = bytes.strip_prefix(SIGNATURE) else {
            self.damage.push(TnefDamage::NoSignature);
            return item;
        };
        let mut cursor = Cursor { rest };
        if cursor.u16().is_none() {
            self.damage.push(TnefDamage::Truncated);
        }
        // The same value can occur as a MAPI property and as an older Microsoft Mail attribute. The first value of a
        // list wins and MAPI is more precise, so the older values are collected separately and appended at the end.
        let mut older = Properties::default();
        let mut attachments: Vec<AttachmentDraft<'a>> = Vec::new();
        while !cursor.rest.is_empty() {
            // Only line endings and NULs are left. Programs that treat the file as text append a line ending, and others append
            // padding. Neither is damage.
            if cursor.rest.iter().all(|it| matches!(it, 0 | b'\r' | b'\n')) {
                break;
            }
            if !matches!(cursor.u8(), Some(1 | 2)) {
                self.damage.push(TnefDamage::Trailing);
                break;
            }
            let rest = cursor.rest;
            let Some((number, content, is_right)) = attribute(&mut cursor) else {
                self.damage.push(TnefDamage::Truncated);
                self.cut(rest, &mut item, &mut attachments);
                break;
            };
            if !is_right {
                self.damage.push(TnefDamage::Checksum);
            }
            self.values += 1;
            if self.values > MOST_VALUES {
                self.damage.push(TnefDamage::TooMany);
                break;
            }
            self.attribute(number, content, &mut item, &mut older, &mut attachments);
        }
        let has_list = !item.properties.0.is_empty();
        item.properties.0.append(&mut older.0);
        if attachments.is_empty() && unread::says_attachments(&item.properties) {
            self.damage.push(TnefDamage::NoAttachments);
        }
        // Programs that write a property list for the item also end each attachment with one. If the last attachment
        // has none, the stream was cut off after another attribute, which loses the attachment's name or content.
        if has_list && attachments.last().is_some_and(|last| !last.has_list) {
            self.damage.push(TnefDamage::Truncated);
        }
        let page = item
            .properties
            .integer(id::MESSAGE_CODEPAGE)
            .and_then(|page| u32::try_from(page).ok());
        if item.page == codepage::WESTERN
            && let Some(page) = page.filter(|page| *page != 1200)
        {
            item.page = page;
        }
        let finish = |draft| self.finished(draft, depth);
        item.attachments = attachments.into_iter().map(finish).collect();
        item
    }

    /// Reads the last attribute of a truncated stream, as far as it is there: incomplete content is better than none.
    /// The stream counts as damaged, so the original file also stays in the mail.
    fn cut<'a>(
        &mut self,
        rest: &'a [u8],
        item: &mut OutlookItem<'a>,
        attachments: &mut Vec<AttachmentDraft<'a>>,
    ) {
        let mut cursor = Cursor { rest };
        if let (Some(number), Some(_)) = (cursor.u32(), cursor.u32()) {
            let content = cursor.rest;
            if !content.is_empty() {
                let mut older = Properties::default();
                self.attribute(number as u16, content, item, &mut older, attachments);
                item.properties.0.append(&mut older.0);
            }
        }
    }

    fn attribute<'a>(
        &mut self,
        number: u16,
        content: &'a [u8],
        item: &mut OutlookItem<'a>,
        older: &mut Properties<'a>,
        attachments: &mut Vec<AttachmentDraft<'a>>,
    ) {
        if unread::longest(number).is_some_and(|longest| content.len() > longest) {
            self.damage.push(TnefDamage::TooLong);
        }
        let narrow = || PropertyValue::Narrow(Cow::Borrowed(content));
        match number {
            attribute::SUBJECT => older.push(id::SUBJECT, narrow()),
            attribute::MESSAGE_CLASS => older.push(id::MESSAGE_CLASS, narrow()),
            attribute::BODY => older.push(id::BODY, narrow()),
            attribute::PRIORITY => {
                let priority = Cursor { rest: content }.u16();
                // Maps the priority (1 to 3, 1 is the highest) to the importance of MAPI (2 to 0).
                let importance = priority.map(|it| 3_i64.saturating_sub(i64::from(it)));
                if let Some(importance) = importance.filter(|it| (0..3).contains(it)) {
                    older.push(id::IMPORTANCE, PropertyValue::Integer(importance));
                }
            }
            attribute::FROM => from(content, older),
            attribute::DATE_SENT => date(content, id::SUBMIT_TIME, older),
            attribute::DATE_RECEIVED => date(content, id::DELIVERY_TIME, older),
            attribute::DATE_START => date(content, id::START, older),
            attribute::DATE_END => date(content, id::END, older),
            attribute::MESSAGE_STATUS => {
                const HAS_ATTACHMENTS: u8 = 0x80;
                let says = content.first().is_some_and(|it| it & HAS_ATTACHMENTS != 0);
                older.push(id::HAS_ATTACHMENTS, PropertyValue::Bool(says));
            }
            attribute::CODEPAGE => {
                if let Some(page) = (Cursor { rest: content }).u32().filter(|page| *page > 0) {
                    item.page = page;
                }
            }
            attribute::PROPERTIES => {
                let mut cursor = Cursor { rest: content };
                if self.properties(&mut cursor, &mut item.properties) {
                    self.check_rest(cursor.rest);
                }
                self.check_content(&item.properties);
            }
            attribute::RECIPIENTS => {
                let mut cursor = Cursor { rest: content };
                let count = cursor.u32().unwrap_or(0);
                for _ in 0..count {
                    let mut recipient = Properties::default();
                    let is_whole = self.properties(&mut cursor, &mut recipient);
                    if !recipient.0.is_empty() {
                        item.recipients.push(recipient);
                    }
                    if !is_whole {
                        return;
                    }
                }
                self.check_rest(cursor.rest);
            }
            attribute::ATTACH_RENDERING => attachments.push(AttachmentDraft::default()),
            attribute::ATTACH_DATA => {
                if let Some(last) = last(attachments)
                    && *last.data.get_or_insert(content) != content
                {
                    self.damage.push(TnefDamage::Repeated);
                }
            }
            attribute::ATTACH_TITLE | attribute::ATTACH_FILE_NAME => {
                if let Some(last) = last(attachments) {
                    last.older.push(id::FILE_NAME, narrow());
                }
            }
            attribute::ATTACH_CREATED => {
                if let Some(last) = last(attachments) {
                    date(content, id::CREATION_TIME, &mut last.older);
                }
            }
            attribute::ATTACH_MODIFIED => {
                if let Some(last) = last(attachments) {
                    date(content, id::MODIFICATION_TIME, &mut last.older);
                }
            }
            attribute::ATTACH_PROPERTIES => {
                let mut cursor = Cursor { rest: content };
                if let Some(last) = last(attachments) {
                    last.has_list = true;
                    if self.properties(&mut cursor, &mut last.properties) {
                        self.check_rest(cursor.rest);
                    }
                    self.check_content(&last.properties);
                }
            }
            _ if unread::is_housekeeping(number) => {}
            _ if content.iter().all(|byte| *byte == 0) => {}
            _ => self.damage.push(TnefDamage::UnknownAttribute),
        }
    }

    /// Records damage if a property list contains content that the conversion would lose.
    fn check_content(&mut self, properties: &Properties<'_>) {
        if properties.0.iter().any(unread::is_large_and_unknown) {
            self.damage.push(TnefDamage::UnknownProperty);
        }
        if unread::has_second_content(properties) {
            self.damage.push(TnefDamage::Repeated);
        }
    }

    /// Records trailing bytes after the last entry of a list: its declared length is wrong. Padding is not damage.
    fn check_rest(&mut self, rest: &[u8]) {
        if rest.iter().any(|byte| *byte != 0) {
            self.damage.push(TnefDamage::Properties);
        }
    }

    fn finished<'a>(&mut self, draft: AttachmentDraft<'a>, depth: usize) -> OutlookAttachment<'a> {
        let AttachmentDraft {
            mut properties,
            mut older,
            data,
            has_list: _,
        } = draft;
        properties.0.append(&mut older.0);
        let object = match properties.value(id::DATA) {
            Some(PropertyValue::Bytes(Cow::Borrowed(bytes))) => Some(*bytes),
            _ => None,
        };
        // If `DATA` is an embedded object, the ordinary data of the attachment is only a placeholder for programs that
        // do not support objects. So the object wins.
        let embedded = |object: &'a [u8]| {
            let (interface, content) = object.split_first_chunk::<16>()?;
            match *interface {
                MESSAGE if content.starts_with(SIGNATURE) => Some((content, true)),
                STORAGE => Some((content, false)),
                FILE => Some((content, false)),
                _ if content.starts_with(COMPOUND_FILE) => Some((content, false)),
                _ if content.starts_with(SIGNATURE) => Some((content, true)),
                _ => None,
            }
        };
        let file = |content: &'a [u8]| {
            if content.starts_with(COMPOUND_FILE) && properties.integer(id::METHOD) == Some(6) {
                AttachmentContent::Storage(Cow::Borrowed(content))
            } else {
                AttachmentContent::File(Cow::Borrowed(content))
            }
        };
        let content = match (object.and_then(embedded), data, object) {
            (Some((_, true)), _, _) if depth == 0 => {
                self.damage.push(TnefDamage::TooDeep);
                AttachmentContent::None
            }
            (Some((content, true)), _, _) => {
                AttachmentContent::Item(Box::new(self.item(content, depth - 1)))
            }
            (Some((content, false)), _, _) => file(content),
            (None, Some(data), other) => {
                if other.is_some_and(|other| !other.is_empty() && other != data) {
                    self.damage.push(TnefDamage::Repeated);
                }
                file(data)
            }
            (None, None, Some(object)) => file(object),
            (None, None, None) => AttachmentContent::None,
        };
        OutlookAttachment {
            properties,
            content,
        }
    }

    /// Reads a list of properties. Returns true if the list was complete.
    fn properties<'a>(&mut self, cursor: &mut Cursor<'a>, properties: &mut Properties<'a>) -> bool {
        let Some(count) = cursor.u32() else {
            self.damage.push(TnefDamage::Properties);
            return false;
        };
        for _ in 0..count {
            match self.property(cursor) {
                Some(property) => properties.0.push(property),
                None => {
                    let damage = if self.values > MOST_VALUES {
                        TnefDamage::TooMany
                    } else {
                        TnefDamage::Properties
                    };
                    self.damage.push(damage);
                    return false;
                }
            }
        }
        true
    }

    fn property<'a>(&mut self, cursor: &mut Cursor<'a>) -> Option<Property<'a>> {
        let kind = cursor.u16()?;
        let id = cursor.u16()?;
        let mut name = None;
        if id >= 0x8000 {
            let set: Guid = cursor.take(16)?.try_into().ok()?;
            name = Some((
                set,
                match cursor.u32()? {
                    0 => PropertyName::Number(cursor.u32()?),
                    _ => {
                        let text = wide(cursor.sized()?);
                        PropertyName::Text(text.trim_end_matches('\0').to_owned())
                    }
                },
            ));
        }
        let single = kind & 0x0fff;
        let has_count = kind & 0x1000 != 0 || matches!(single, 0x0d | 0x1e | 0x1f | 0x102);
        let value = if !has_count {
            self.values += 1;
            value(single, cursor)?
        } else {
            let count = cursor.u32()?;
            let mut values = Vec::new();
            for _ in 0..count {
                self.values += 1;
                if self.values > MOST_VALUES {
                    return None;
                }
                values.push(value(single, cursor)?);
            }
            match values.len() {
                1 => values.pop()?,
                _ => PropertyValue::Many(values),
            }
        };
        (self.values <= MOST_VALUES).then_some(Property { id, name, value })
    }
}

/// Returns the current attachment. If an attribute of an attachment comes before any attachment, creates one.
fn last<'d, 'a>(
    attachments: &'d mut Vec<AttachmentDraft<'a>>,
) -> Option<&'d mut AttachmentDraft<'a>> {
    if attachments.is_empty() {
        attachments.push(AttachmentDraft::default());
    }
    attachments.last_mut()
}

/// An attachment whose attributes are still being read.
#[derive(Default)]
struct AttachmentDraft<'a> {
    properties: Properties<'a>,
    older: Properties<'a>,
    data: Option<&'a [u8]>,
    /// Whether the attachment has an attribute with a list of properties.
    has_list: bool,
}

fn value<'a>(kind: u16, cursor: &mut Cursor<'a>) -> Option<PropertyValue<'a>> {
    Some(match kind {
        0x00 | 0x01 => PropertyValue::Null,
        0x02 => {
            let number = cursor.u16()? as i16;
            cursor.u16()?;
            PropertyValue::Integer(number.into())
        }
        0x03 | 0x0a => PropertyValue::Integer((cursor.u32()? as i32).into()),
        0x04 => PropertyValue::Float(f32::from_bits(cursor.u32()?).into()),
        0x05 | 0x07 => PropertyValue::Float(f64::from_bits(cursor.u64()?)),
        0x06 | 0x14 => PropertyValue::Integer(cursor.u64()? as i64),
        0x0b => PropertyValue::Bool(cursor.u32()? & 0xffff != 0),
        0x40 => PropertyValue::Time(cursor.u64()? as i64),
        0x48 => PropertyValue::Bytes(Cow::Borrowed(cursor.take(16)?)),
        0x1e => PropertyValue::Narrow(Cow::Borrowed(cursor.sized()?)),
        0x1f => PropertyValue::Text(wide(cursor.sized()?)),
        0x0d | 0x102 => PropertyValue::Bytes(Cow::Borrowed(cursor.sized()?)),
        _ => return None,
    })
}

/// Reads the sender: a name and an address, each with its length. The type of the address, such as `SMTP:`, is removed.
fn from<'a>(content: &'a [u8], older: &mut Properties<'a>) {
    let mut cursor = Cursor { rest: content };
    let mut read = || {
        cursor.take(4)?;
        let (name, address) = (cursor.u16()?, cursor.u16()?);
        Some((cursor.take(name.into())?, cursor.take(address.into())?))
    };
    if let Some((name, address)) = read() {
        older.push(id::SENDER_NAME, PropertyValue::Narrow(Cow::Borrowed(name)));
        let typed = memchr::memchr(b':', address);
        let without_type = address
            .get(typed.map_or(0, |at| at + 1)..)
            .unwrap_or_default();
        older.push(
            id::SENDER_ADDRESS,
            PropertyValue::Narrow(Cow::Borrowed(without_type)),
        );
    }
}

/// Reads a date: year, month, day, hour, minute and second, in an unknown time zone.
fn date(content: &[u8], id: u16, older: &mut Properties<'_>) {
    let mut cursor = Cursor { rest: content };
    let mut fields = [0_i64; 6];
    for field in &mut fields {
        let Some(number) = cursor.u16() else { return };
        *field = number.into();
    }
    let [year, month, day, hour, minute, second] = fields;
    if !(1601..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return;
    }
    let days = clock::days(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    older.push(id, PropertyValue::Time(seconds * 10_000_000));
}
