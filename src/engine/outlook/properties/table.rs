//! The table that maps each property to its place in mail.

use PropertyUse::{Attachment as File, Body, Calendar, Field, Housekeeping, Unmapped};

use super::{
    APPOINTMENT, COMMON, Guid, MEETING, Property, PropertyName, PropertyValue, STRINGS, id,
    without_end,
};

/// The part or header field of a mail that contains the value of a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PropertyUse {
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
    /// Not converted, because mail has no field for the value. Reports list it under this name.
    Unmapped(&'static str),
}

/// Properties with a fixed number, each with its place in mail.
#[rustfmt::skip]
const TABLE: &[(u16, PropertyUse)] = &[
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
    (0x003f, Housekeeping), // entry id of the account that received the mail
    (id::REPRESENTING_NAME, Field("From")),
    (0x0043, Housekeeping), // entry id of the recipient for whom the account received the mail
    (0x0041, Housekeeping), // entry id of the sender
    (0x0063, Housekeeping), // response requested
    (0x0064, Housekeeping), // address type of the sender
    (id::REPRESENTING_ADDRESS, Field("From")),
    (id::START, Calendar("DTSTART")),
    (id::END, Calendar("DTEND")),
    (0x0049, Body), // subject of the message that a report concerns
    (0x004c, Housekeeping), // entry id of its author
    (0x004e, Body), // its date
    (0x004f, Housekeeping), // entry ids of the addresses for replies
    (0x0051, Housekeeping), // search keys of the account and of the recipient
    (0x0052, Housekeeping),
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
    (id::HAS_ATTACHMENTS, Housekeeping),
    (0x0e27, Housekeeping), // permissions
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
    (0x3fd9, Housekeeping), // preview of the body
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
    (0x65e3, Housekeeping), // earlier change keys
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
const NAMED: &[(Guid, u32, PropertyUse)] = &[
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
    pub fn becomes(&self) -> Option<PropertyUse> {
        match &self.name {
            None => {
                let mut rows = TABLE.iter();
                Some(rows.find(|(id, _)| *id == self.id)?.1)
            }
            Some((set, PropertyName::Number(number))) => {
                let mut rows = NAMED.iter();
                let is = |row: &&(Guid, u32, PropertyUse)| row.0 == *set && row.1 == *number;
                Some(rows.find(is)?.2)
            }
            Some((STRINGS, PropertyName::Text(name))) if name.eq_ignore_ascii_case("Keywords") => {
                Some(Unmapped("categories"))
            }
            Some((_, PropertyName::Text(_))) => None,
        }
    }

    /// Returns true if the value is empty or zero, as in most properties of most items. Such a property needs no place in
    /// mail.
    pub fn is_empty(&self) -> bool {
        match self.value.first() {
            PropertyValue::Null => true,
            PropertyValue::Integer(number) => *number == 0,
            PropertyValue::Bool(is) => !is,
            PropertyValue::Text(text) => text.trim_end_matches('\0').is_empty(),
            PropertyValue::Narrow(bytes) => without_end(bytes).is_empty(),
            PropertyValue::Bytes(bytes) => bytes.is_empty(),
            PropertyValue::Float(_) | PropertyValue::Time(_) | PropertyValue::Many(_) => false,
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
