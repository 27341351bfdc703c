//! MAPI properties (MS-OXPROPS), and the table that maps each property to its place in mail.

mod table;

use std::borrow::Cow;

use super::codepage;

pub use self::table::PropertyUse;

/// The value of a property. Bytes are slices of the file where possible, so that large values are not copied.
#[derive(Clone, PartialEq, Debug)]
pub enum PropertyValue<'a> {
    Null,
    Integer(i64),
    Bool(bool),
    Float(f64),
    /// A time in units of 100 nanoseconds since 1601-01-01.
    Time(i64),
    /// Text in bytes of a code page. The item declares the code page.
    Narrow(Cow<'a, [u8]>),
    Text(String),
    Bytes(Cow<'a, [u8]>),
    Many(Vec<Self>),
}

impl PropertyValue<'_> {
    fn first(&self) -> &Self {
        match self {
            Self::Many(values) => values.first().unwrap_or(&Self::Null),
            value => value,
        }
    }
}

/// The id of a set of named properties.
pub type Guid = [u8; 16];

/// Name of a named property. Its number is assigned by each file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PropertyName {
    Number(u32),
    Text(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Property<'a> {
    pub id: u16,
    pub name: Option<(Guid, PropertyName)>,
    pub value: PropertyValue<'a>,
}

/// A list of properties. If an id occurs more than once, the first value is used.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Properties<'a>(pub Vec<Property<'a>>);

impl<'a> Properties<'a> {
    pub fn push(&mut self, id: u16, value: PropertyValue<'a>) {
        let name = None;
        self.0.push(Property { id, name, value });
    }

    pub fn value(&self, id: u16) -> Option<&PropertyValue<'a>> {
        let is = |it: &&Property<'a>| it.id == id && it.name.is_none();
        Some(&self.0.iter().find(is)?.value)
    }

    pub fn named(&self, set: &Guid, number: u32) -> Option<&PropertyValue<'a>> {
        let is = |it: &&Property<'a>| match &it.name {
            Some((guid, PropertyName::Number(other))) => guid == set && *other == number,
            _ => false,
        };
        Some(&self.0.iter().find(is)?.value)
    }

    pub fn integer(&self, id: u16) -> Option<i64> {
        integer(self.value(id)?)
    }

    pub fn time(&self, id: u16) -> Option<i64> {
        match self.value(id)?.first() {
            PropertyValue::Time(time) => Some(*time),
            _ => None,
        }
    }

    /// Returns the bytes of a binary value, or of text that is stored in a code page.
    pub fn bytes(&self, id: u16) -> Option<&[u8]> {
        match self.value(id)?.first() {
            PropertyValue::Bytes(bytes) | PropertyValue::Narrow(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns text without trailing NULs, or `None` if it is empty.
    pub fn text(&self, id: u16, page: u32) -> Option<String> {
        text(self.value(id)?, page)
    }
}

pub fn integer(value: &PropertyValue<'_>) -> Option<i64> {
    match value.first() {
        PropertyValue::Integer(number) => Some(*number),
        PropertyValue::Bool(is) => Some(i64::from(*is)),
        _ => None,
    }
}

pub fn text(value: &PropertyValue<'_>, page: u32) -> Option<String> {
    let text = match value.first() {
        PropertyValue::Text(text) => text.as_str().into(),
        PropertyValue::Narrow(bytes) => codepage::decode(page, without_end(bytes)).0,
        _ => return None,
    };
    let trimmed = text.trim_end_matches('\0');
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Removes trailing NULs. C strings end with a NUL, and some programs include it in the length.
pub fn without_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    bytes.get(..end.map_or(0, |end| end + 1)).unwrap_or(bytes)
}

/// An item of a mailbox: a message, an appointment, a contact, or any other kind.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct OutlookItem<'a> {
    pub properties: Properties<'a>,
    pub recipients: Vec<Properties<'a>>,
    pub attachments: Vec<OutlookAttachment<'a>>,
    /// Code page of text that is not Unicode.
    pub page: u32,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct OutlookAttachment<'a> {
    pub properties: Properties<'a>,
    pub content: AttachmentContent<'a>,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub enum AttachmentContent<'a> {
    #[default]
    None,
    File(Cow<'a, [u8]>),
    Item(Box<OutlookItem<'a>>),
    /// An OLE object, as a compound file.
    Storage(Cow<'a, [u8]>),
}

impl OutlookItem<'_> {
    pub fn text(&self, id: u16) -> Option<String> {
        self.properties.text(id, self.page)
    }

    /// Returns the message class in lower case, such as `ipm.note`. Classes of the older Microsoft Mail are converted.
    pub fn class(&self) -> String {
        let class = self
            .text(id::MESSAGE_CLASS)
            .unwrap_or_default()
            .to_ascii_lowercase();
        match class.strip_prefix("ipm.microsoft mail.") {
            Some("note") => "ipm.note".to_owned(),
            Some("read receipt") => "report.ipm.note.ipnrn".to_owned(),
            Some("non-delivery") => "report.ipm.note.ndr".to_owned(),
            Some(rest) => format!("ipm.{rest}"),
            None => class.replace("ipm.microsoft schedule.mtg", "ipm.schedule.meeting."),
        }
    }
}

/// Ids of properties, with their names in MS-OXPROPS.
pub mod id {
    pub const MESSAGE_CLASS: u16 = 0x001a;
    pub const IMPORTANCE: u16 = 0x0017;
    pub const SENSITIVITY: u16 = 0x0036;
    pub const SUBJECT: u16 = 0x0037;
    pub const SUBMIT_TIME: u16 = 0x0039;
    pub const REPRESENTING_NAME: u16 = 0x0042;
    pub const START: u16 = 0x0060;
    pub const END: u16 = 0x0061;
    pub const REPRESENTING_ADDRESS: u16 = 0x0065;
    pub const TRANSPORT_HEADERS: u16 = 0x007d;
    pub const RECIPIENT_TYPE: u16 = 0x0c15;
    pub const SENDER_NAME: u16 = 0x0c1a;
    pub const SENDER_ADDRESS: u16 = 0x0c1f;
    pub const DELIVERY_TIME: u16 = 0x0e06;
    pub const FLAGS: u16 = 0x0e07;
    pub const HAS_ATTACHMENTS: u16 = 0x0e1b;
    pub const BODY: u16 = 0x1000;
    pub const RTF: u16 = 0x1009;
    pub const HTML: u16 = 0x1013;
    pub const MESSAGE_ID: u16 = 0x1035;
    pub const REFERENCES: u16 = 0x1039;
    pub const IN_REPLY_TO: u16 = 0x1042;
    pub const LAST_ACTION: u16 = 0x1081;
    pub const FLAG_STATUS: u16 = 0x1090;
    pub const DISPLAY_NAME: u16 = 0x3001;
    pub const ADDRESS: u16 = 0x3003;
    pub const CREATION_TIME: u16 = 0x3007;
    pub const MODIFICATION_TIME: u16 = 0x3008;
    pub const DATA: u16 = 0x3701;
    pub const EXTENSION: u16 = 0x3703;
    pub const FILE_NAME: u16 = 0x3704;
    pub const METHOD: u16 = 0x3705;
    pub const LONG_FILE_NAME: u16 = 0x3707;
    pub const PATH_NAME: u16 = 0x3708;
    pub const LONG_PATH_NAME: u16 = 0x370d;
    pub const MIME_TAG: u16 = 0x370e;
    pub const CONTENT_ID: u16 = 0x3712;
    pub const CONTENT_LOCATION: u16 = 0x3713;
    pub const SMTP_ADDRESS: u16 = 0x39fe;
    pub const INTERNET_CODEPAGE: u16 = 0x3fde;
    pub const LOCALE: u16 = 0x3ff1;
    pub const MESSAGE_CODEPAGE: u16 = 0x3ffd;
    pub const SENDER_SMTP: u16 = 0x5d01;
    pub const REPRESENTING_SMTP: u16 = 0x5d02;
}

/// `{00062002-0000-0000-C000-000000000046}`, the set of properties of appointments.
pub const APPOINTMENT: Guid = *b"\x02\x20\x06\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
/// `{6ED8DA90-450B-101B-98DA-00AA003F1305}`, the set of properties of meetings.
pub const MEETING: Guid = *b"\x90\xda\xd8\x6e\x0b\x45\x1b\x10\x98\xda\0\xaa\0\x3f\x13\x05";
/// `{00020329-0000-0000-C000-000000000046}`, the set of properties whose names are text.
pub const STRINGS: Guid = *b"\x29\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
/// `{00062008-0000-0000-C000-000000000046}`, the set of properties that every kind of item can have.
const COMMON: Guid = *b"\x08\x20\x06\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
