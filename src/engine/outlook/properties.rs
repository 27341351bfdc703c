//! MAPI properties (MS-OXPROPS), and the table that maps each property to its place in mail.

use std::borrow::Cow;

use super::codepage;

/// The value of a property. Bytes are slices of the file where possible, so that large values are not copied.
#[derive(Clone, PartialEq, Debug)]
pub enum Value<'a> {
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

impl Value<'_> {
    fn first(&self) -> &Self {
        match self {
            Self::Many(values) => values.first().unwrap_or(&Self::Null),
            value => value,
        }
    }
}

/// The id of a set of named properties.
pub type Guid = [u8; 16];

/// The name of a property whose number is different in each file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Name {
    Number(u32),
    Text(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Property<'a> {
    pub id: u16,
    pub name: Option<(Guid, Name)>,
    pub value: Value<'a>,
}

/// A list of properties. If an id occurs more than once, the first value is used.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Properties<'a>(pub Vec<Property<'a>>);

impl<'a> Properties<'a> {
    pub fn push(&mut self, id: u16, value: Value<'a>) {
        let name = None;
        self.0.push(Property { id, name, value });
    }

    pub fn value(&self, id: u16) -> Option<&Value<'a>> {
        let is = |it: &&Property<'a>| it.id == id && it.name.is_none();
        Some(&self.0.iter().find(is)?.value)
    }

    pub fn named(&self, set: &Guid, number: u32) -> Option<&Value<'a>> {
        let is = |it: &&Property<'a>| match &it.name {
            Some((guid, Name::Number(other))) => guid == set && *other == number,
            _ => false,
        };
        Some(&self.0.iter().find(is)?.value)
    }

    pub fn integer(&self, id: u16) -> Option<i64> {
        integer(self.value(id)?)
    }

    pub fn time(&self, id: u16) -> Option<i64> {
        match self.value(id)?.first() {
            Value::Time(time) => Some(*time),
            _ => None,
        }
    }

    /// Returns the bytes of a binary value, or of text that is stored in a code page.
    pub fn bytes(&self, id: u16) -> Option<&[u8]> {
        match self.value(id)?.first() {
            Value::Bytes(bytes) | Value::Narrow(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns text without trailing NULs, or `None` if it is empty.
    pub fn text(&self, id: u16, page: u32) -> Option<String> {
        text(self.value(id)?, page)
    }
}

pub fn integer(value: &Value<'_>) -> Option<i64> {
    match value.first() {
        Value::Integer(number) => Some(*number),
        Value::Bool(is) => Some(i64::from(*is)),
        _ => None,
    }
}

pub fn text(value: &Value<'_>, page: u32) -> Option<String> {
    let text = match value.first() {
        Value::Text(text) => text.as_str().into(),
        Value::Narrow(bytes) => codepage::decode(page, without_end(bytes)).0,
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
pub struct Item<'a> {
    pub properties: Properties<'a>,
    pub recipients: Vec<Properties<'a>>,
    pub attachments: Vec<Attachment<'a>>,
    /// Code page of text that is not Unicode.
    pub page: u32,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub struct Attachment<'a> {
    pub properties: Properties<'a>,
    pub content: Content<'a>,
}

#[derive(Clone, PartialEq, Default, Debug)]
pub enum Content<'a> {
    #[default]
    None,
    File(Cow<'a, [u8]>),
    Item(Box<Item<'a>>),
    /// An OLE object, as a compound file.
    Storage(Cow<'a, [u8]>),
}

impl Item<'_> {
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

/// The part or header field of a mail that contains the value of a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Becomes {
    /// A header field.
    Field(&'static str),
    /// The text of the mail.
    Body,
    /// An attachment: its content, name, type, id or dates.
    Attachment,
    /// A property of a `text/calendar` part.
    Calendar(&'static str),
    /// Not converted, because the property describes the item in its mailbox or repeats another property.
    Housekeeping,
    /// Not converted, because mail has no field for the value. The report contains this name of the property.
    Unmapped(&'static str),
}

use Becomes::{Attachment as File, Body, Calendar, Field, Housekeeping, Unmapped};

/// Properties with a fixed number, each with its place in mail.
#[rustfmt::skip]
const TABLE: &[(u16, Becomes)] = &[
    (0x0002, Housekeeping), // alternate recipient allowed
    (0x000f, Unmapped("deferred delivery")),
    (0x0015, Unmapped("expiry time")),
    (id::IMPORTANCE, Field("Importance")),
    (id::MESSAGE_CLASS, Housekeeping),
    (0x0023, Field("Return-Receipt-To")),
    (0x0026, Field("Priority")),
    (0x0029, Field("Disposition-Notification-To")),
    (0x002b, Housekeeping), // recipient reassignment prohibited
    (0x0031, Housekeeping), // identifier of the message that a report concerns
    (0x0032, Body), // time of a report
    (id::SENSITIVITY, Field("Sensitivity")),
    (id::SUBJECT, Field("Subject")),
    (id::SUBMIT_TIME, Field("Date")),
    (0x003b, Housekeeping), // search key of the sender
    (0x003d, Housekeeping), // prefix of the subject
    (id::REPRESENTING_NAME, Field("From")),
    (0x0041, Housekeeping), // entry id of the sender
    (0x0063, Housekeeping), // response requested
    (0x0064, Housekeeping), // address type of the sender
    (id::REPRESENTING_ADDRESS, Field("From")),
    (id::START, Calendar("DTSTART")),
    (id::END, Calendar("DTEND")),
    (0x0049, Body), // subject of the message that a report concerns
    (0x004c, Housekeeping), // entry id of its author
    (0x004e, Body), // its date
    (0x0055, Housekeeping), // its delivery
    (0x0062, Housekeeping), // appointment id of the owner
    (0x0070, Field("Thread-Topic")),
    (0x0071, Field("Thread-Index")),
    (0x0072, Housekeeping), // recipients of the original message
    (0x0073, Housekeeping),
    (0x0074, Body),
    (id::TRANSPORT_HEADERS, Field("all fields")),
    (0x007f, Housekeeping), // identifier of the file
    (0x0080, Field("Disposition")),
    (0x0081, Field("Disposition")),
    (0x0c04, Housekeeping), // codes of a report, of which the status is the newer one
    (0x0c05, Housekeeping),
    (0x0c06, Housekeeping), // non-receipt notification
    (0x0c08, Housekeeping), // originator delivery report requested
    (0x0c17, Housekeeping), // reply requested
    (0x0c19, Housekeeping), // entry id of the sender
    (id::SENDER_NAME, Field("Sender")),
    (0x0c1d, Housekeeping), // search key of the sender
    (0x0c1e, Housekeeping), // address type of the sender
    (0x0c1b, Field("Diagnostic-Code")),
    (id::SENDER_ADDRESS, Field("Sender")),
    (0x0c20, Field("Status")),
    (0x0c21, Field("Remote-MTA")),
    (0x0e01, Housekeeping), // delete after submit
    (0x0e02, Field("Bcc")),
    (0x0e03, Field("Cc")),
    (0x0e04, Field("To")),
    (id::DELIVERY_TIME, Field("Date")),
    (id::FLAGS, Housekeeping),
    (0x0e08, Housekeeping), // size
    (0x0e1d, Housekeeping), // subject without its prefix
    (0x0e1f, Housekeeping), // RTF is in sync
    (0x0e20, Housekeeping), // attachment size
    (0x0e14, Housekeeping), // status of sending
    (0x0e21, Housekeeping), // attachment number
    (0x0e23, Housekeeping), // article number
    (0x0e28, Housekeeping), // account
    (0x0e29, Housekeeping),
    (0x0ff4, Housekeeping), // access
    (0x0ff8, Housekeeping), // mapping signature
    (0x0ff9, Housekeeping), // record key
    (0x0ffa, Housekeeping), // store record key
    (0x0ffb, Housekeeping), // store entry id
    (0x0ffe, Housekeeping), // object type
    (0x0fff, Housekeeping), // entry id
    (id::BODY, Body),
    (0x1001, Body), // report text
    (0x1006, Housekeeping), // RTF synchronisation
    (0x1007, Housekeeping),
    (0x1008, Housekeeping),
    (id::RTF, Body),
    (0x1010, Housekeeping),
    (0x1011, Housekeeping),
    (id::HTML, Body),
    (0x1014, Housekeeping), // location of the HTML
    (0x1016, Housekeeping), // native body
    (id::MESSAGE_ID, Field("Message-ID")),
    (id::REFERENCES, Field("References")),
    (id::IN_REPLY_TO, Field("In-Reply-To")),
    (0x1046, Field("Original-Message-ID")),
    (0x1080, Housekeeping), // icon
    (id::LAST_ACTION, Unmapped("last action")),
    (0x1082, Unmapped("time of the last action")),
    (id::FLAG_STATUS, Unmapped("follow-up flag")),
    (0x1091, Unmapped("follow-up flag")),
    (0x1095, Unmapped("colour of the flag")),
    (0x1096, Unmapped("block status")),
    (0x10c3, Calendar("DTSTART")),
    (0x10f4, Housekeeping), // hidden
    (0x10f5, Housekeeping), // system
    (0x10f6, Housekeeping), // read only
    (0x3000, Housekeeping), // row id
    (id::DISPLAY_NAME, File),
    (0x3002, Housekeeping), // address type
    (id::ADDRESS, Housekeeping),
    (id::CREATION_TIME, File),
    (id::MODIFICATION_TIME, File),
    (0x300b, Housekeeping), // search key
    (0x340d, Housekeeping), // store support mask
    (0x3414, Housekeeping), // provider of the store
    (id::DATA, File),
    (0x3702, Housekeeping), // encoding
    (id::EXTENSION, File),
    (id::FILE_NAME, File),
    (id::METHOD, File),
    (id::LONG_FILE_NAME, File),
    (id::PATH_NAME, File),
    (0x3709, Unmapped("picture of the attachment's icon")),
    (0x370a, Housekeeping), // tag
    (0x370b, Housekeeping), // position in the RTF
    (id::LONG_PATH_NAME, File),
    (id::MIME_TAG, File),
    (0x370f, Housekeeping), // additional information
    (id::CONTENT_ID, File),
    (id::CONTENT_LOCATION, File),
    (0x3714, Housekeeping), // flags
    (0x3716, Housekeeping), // disposition
    (id::INTERNET_CODEPAGE, Housekeeping),
    (id::LOCALE, Housekeeping),
    (0x3ff8, Unmapped("name of the last author")),
    (0x3ff9, Housekeeping),
    (0x3ffa, Unmapped("name of the last author")),
    (0x3ffb, Housekeeping),
    (id::MESSAGE_CODEPAGE, Housekeeping),
    (0x4019, Housekeeping), // flags of the addresses
    (0x401a, Housekeeping),
    (0x5902, Housekeeping), // internet mail override format
    (0x5909, Housekeeping), // message editor format
    (id::SENDER_SMTP, Field("Sender")),
    (id::REPRESENTING_SMTP, Field("From")),
    (0x65c6, Housekeeping), // secure submit flags
    (0x65e2, Housekeeping), // change key
    (0x6820, Field("Reporting-MTA")),
    (0x7ffa, Housekeeping), // link id
    (0x7ffb, Housekeeping), // exception start
    (0x7ffc, Housekeeping), // exception end
    (0x7ffd, Housekeeping), // attachment flags
    (0x7ffe, Housekeeping), // hidden
    (0x7fff, Housekeeping), // picture of a contact
];

/// Named properties, each with its set, its number and its place in mail.
#[rustfmt::skip]
const NAMED: &[(Guid, u32, Becomes)] = &[
    (APPOINTMENT, 0x8201, Calendar("SEQUENCE")),
    (APPOINTMENT, 0x8205, Calendar("TRANSP")),
    (APPOINTMENT, 0x8208, Calendar("LOCATION")),
    (APPOINTMENT, 0x820d, Calendar("DTSTART")),
    (APPOINTMENT, 0x820e, Calendar("DTEND")),
    (APPOINTMENT, 0x8215, Calendar("DTSTART")),
    (APPOINTMENT, 0x8216, Calendar("RRULE")),
    (APPOINTMENT, 0x8214, Unmapped("colour of the appointment")),
    (APPOINTMENT, 0x8223, Calendar("RRULE")),
    (APPOINTMENT, 0x8228, Calendar("RECURRENCE-ID")),
    (APPOINTMENT, 0x8231, Housekeeping), // kind of the rule
    (APPOINTMENT, 0x8232, Housekeeping), // the rule in words
    (APPOINTMENT, 0x8233, Calendar("VTIMEZONE")),
    (APPOINTMENT, 0x8234, Calendar("VTIMEZONE")),
    (APPOINTMENT, 0x8235, Housekeeping), // begin of the series
    (APPOINTMENT, 0x8236, Housekeeping), // end of the series
    (APPOINTMENT, 0x825e, Calendar("VTIMEZONE")),
    (APPOINTMENT, 0x825f, Calendar("VTIMEZONE")),
    (APPOINTMENT, 0x8260, Calendar("VTIMEZONE")),
    (MEETING, 0x0003, Calendar("UID")),
    (MEETING, 0x0005, Calendar("RRULE")),
    (MEETING, 0x000a, Calendar("RECURRENCE-ID")),
    (MEETING, 0x0023, Calendar("UID")),
    (COMMON, 0x8501, Unmapped("reminder")),
    (COMMON, 0x8502, Unmapped("reminder")),
    (COMMON, 0x8503, Unmapped("reminder")),
    (COMMON, 0x8506, Unmapped("private mark")),
    (COMMON, 0x8516, Housekeeping),
    (COMMON, 0x8517, Housekeeping),
    (COMMON, 0x8520, Unmapped("voting buttons")),
    (COMMON, 0x8524, Unmapped("voting response")),
    (COMMON, 0x8530, Unmapped("text of the follow-up flag")),
    (COMMON, 0x8535, Unmapped("billing information")),
    (COMMON, 0x8539, Unmapped("companies")),
    (COMMON, 0x853a, Unmapped("contacts")),
];

impl Property<'_> {
    /// Returns the place of the property in mail, or `None` if the property is not in the table.
    pub fn becomes(&self) -> Option<Becomes> {
        match &self.name {
            None => {
                let mut rows = TABLE.iter();
                Some(rows.find(|(id, _)| *id == self.id)?.1)
            }
            Some((set, Name::Number(number))) => {
                let mut rows = NAMED.iter();
                let is = |row: &&(Guid, u32, Becomes)| row.0 == *set && row.1 == *number;
                Some(rows.find(is)?.2)
            }
            Some((STRINGS, Name::Text(name))) if name.eq_ignore_ascii_case("Keywords") => {
                Some(Unmapped("categories"))
            }
            Some((_, Name::Text(_))) => None,
        }
    }

    /// Returns true if the value is empty or zero, as in most properties of most items. Such a property needs no place in
    /// mail.
    pub fn is_empty(&self) -> bool {
        match self.value.first() {
            Value::Null => true,
            Value::Integer(number) => *number == 0,
            Value::Bool(is) => !is,
            Value::Text(text) => text.trim_end_matches('\0').is_empty(),
            Value::Narrow(bytes) => without_end(bytes).is_empty(),
            Value::Bytes(bytes) => bytes.is_empty(),
            Value::Float(_) | Value::Time(_) | Value::Many(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_each_property_once_in_order() {
        let mut named: Vec<(Guid, u32)> = NAMED.iter().map(|row| (row.0, row.1)).collect();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), NAMED.len());
        let mut ids: Vec<u16> = TABLE.iter().map(|row| row.0).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }
}
