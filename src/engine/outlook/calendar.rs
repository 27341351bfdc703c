//! Meetings become text/calendar (RFC 5545, RFC 5546, MS-OXCICAL).

use mail_parser::DateTime;

use super::header::{self, Person};
use super::properties::{APPOINTMENT, Item, MEETING, Value, id, integer, text};

/// A meeting, and what of it the calendar does not contain.
pub(super) struct Calendar {
    pub(super) text: String,
    pub(super) method: &'static str,
    pub(super) missing: Vec<&'static str>,
}

/// `None`: the item is not a meeting.
fn method(class: &str) -> Option<(&'static str, Option<&'static str>)> {
    let kind = class.strip_prefix("ipm.schedule.meeting.");
    Some(match kind {
        Some("req" | "request") => ("REQUEST", None),
        Some("canceled" | "cncl" | "cancelled") => ("CANCEL", None),
        Some("resp.pos" | "respp") => ("REPLY", Some("ACCEPTED")),
        Some("resp.neg" | "respn") => ("REPLY", Some("DECLINED")),
        Some("resp.tent" | "respa") => ("REPLY", Some("TENTATIVE")),
        None if class == "ipm.appointment" => ("PUBLISH", None),
        _ => return None,
    })
}

pub(super) fn is_meeting(class: &str) -> bool {
    method(class).is_some()
}

/// Makes a calendar of an item; `description` is its text.
///
/// # Errors
/// `Err(())` if the meeting does not say when it begins; `Ok(None)` if the item is not a meeting.
pub(super) fn of(item: &Item<'_>, description: Option<&str>) -> Result<Option<Calendar>, ()> {
    let Some((method, reply)) = method(&item.class()) else {
        return Ok(None);
    };
    let properties = &item.properties;
    let named = |set, number| properties.named(set, number);
    let time = |value: Option<&Value<'_>>| match value {
        Some(Value::Time(time)) => header::seconds(*time),
        _ => None,
    };
    let start = time(named(&APPOINTMENT, 0x820d)).or_else(|| time(properties.value(id::START)));
    let end = time(named(&APPOINTMENT, 0x820e)).or_else(|| time(properties.value(id::END)));
    let Some(start) = start else {
        return Err(());
    };
    let mut lines = Lines::default();
    lines.push("BEGIN:VCALENDAR");
    lines.push("PRODID:-//embody//EN");
    lines.push("VERSION:2.0");
    lines.push(&format!("METHOD:{method}"));
    lines.push("BEGIN:VEVENT");
    lines.push(&format!("UID:{}", uid(item, start)));
    // The calendar is made from the item alone, so it has the item's time.
    let stamp = time(named(&MEETING, 0x001a))
        .or_else(|| time(properties.value(id::SUBMIT_TIME)))
        .unwrap_or(start);
    lines.push(&format!("DTSTAMP:{}", utc(stamp)));
    lines.push(&format!("DTSTART:{}", utc(start)));
    if let Some(end) = end.filter(|end| *end >= start) {
        lines.push(&format!("DTEND:{}", utc(end)));
    }
    let sequence = named(&APPOINTMENT, 0x8201).and_then(integer).unwrap_or(0);
    lines.push(&format!("SEQUENCE:{}", sequence.max(0)));
    if let Some(subject) = item.text(id::SUBJECT) {
        lines.text("SUMMARY", header::subject(&subject));
    }
    let location = named(&APPOINTMENT, 0x8208).and_then(|value| text(value, item.page));
    if let Some(location) = location {
        lines.text("LOCATION", &location);
    }
    if let Some(description) = description {
        lines.text("DESCRIPTION", description.trim_end());
    }
    let sender = header::sender(item, true).or_else(|| header::sender(item, false));
    match (reply, sender) {
        (Some(status), Some(sender)) => {
            lines.person("ATTENDEE", &format!(";PARTSTAT={status}"), &sender);
            if let [organizer] = header::recipients(item, 1, 0x0e04).as_slice() {
                lines.person("ORGANIZER", "", organizer);
            }
        }
        (None, sender) => {
            if let Some(sender) = sender {
                lines.person("ORGANIZER", "", &sender);
            }
            let roles = [
                (1, 0x0e04, "REQ-PARTICIPANT"),
                (2, 0x0e03, "OPT-PARTICIPANT"),
                (3, 0x0e02, "NON-PARTICIPANT"),
            ];
            for (kind, display, role) in roles {
                for person in header::recipients(item, kind, display) {
                    let parameters = format!(";ROLE={role};PARTSTAT=NEEDS-ACTION;RSVP=TRUE");
                    lines.person("ATTENDEE", &parameters, &person);
                }
            }
        }
        (Some(_), None) => {}
    }
    match named(&APPOINTMENT, 0x8205).and_then(integer) {
        Some(0) => lines.push("TRANSP:TRANSPARENT"),
        Some(_) => lines.push("TRANSP:OPAQUE"),
        None => {}
    }
    let is_whole_day = named(&APPOINTMENT, 0x8215).and_then(integer) == Some(1);
    if is_whole_day {
        lines.push("X-MICROSOFT-CDO-ALLDAYEVENT:TRUE");
    }
    if method == "CANCEL" {
        lines.push("STATUS:CANCELLED");
    }
    lines.push("END:VEVENT");
    lines.push("END:VCALENDAR");
    let is_recurring = named(&APPOINTMENT, 0x8223).and_then(integer) == Some(1)
        || named(&APPOINTMENT, 0x8216).is_some();
    Ok(Some(Calendar {
        text: lines.0,
        method,
        missing: match is_recurring {
            true => vec!["the rule by which the meeting recurs"],
            false => Vec::new(),
        },
    }))
}

/// MS-OXCICAL 2.1.3.1.1.20.26: the id of another program within the id, or the id in hexadecimal digits.
fn uid(item: &Item<'_>, start: i64) -> String {
    let ids = [0x0023, 0x0003].into_iter();
    let mut ids = ids.filter_map(|number| item.properties.named(&MEETING, number));
    let bytes = ids.find_map(|value| match value {
        Value::Bytes(bytes) if !bytes.is_empty() => Some(bytes),
        _ => None,
    });
    let Some(bytes) = bytes else {
        let seed = format!("{start} {}", item.text(id::SUBJECT).unwrap_or_default());
        let hash = crate::mime::entity::sha256(seed.as_bytes());
        return format!("{}@embody.invalid", hash.get(..24).unwrap_or_default());
    };
    const FOREIGN: &[u8] = b"vCal-Uid\x01\0\0\0";
    if let Some(at) = memchr::memmem::find(bytes, FOREIGN) {
        let foreign = bytes.get(at + FOREIGN.len()..).unwrap_or_default();
        let end = memchr::memchr(0, foreign).unwrap_or(foreign.len());
        let foreign = foreign.get(..end).unwrap_or_default();
        let is_plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        if !foreign.is_empty() && foreign.iter().all(is_plain) {
            return escaped(&String::from_utf8_lossy(foreign));
        }
    }
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    digits.collect()
}

fn utc(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds);
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        time.year, time.month, time.day, time.hour, time.minute, time.second
    )
}

/// RFC 5545 §3.3.11
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | ';' | ',' => escaped.extend(['\\', letter]),
            '\n' => escaped.push_str("\\n"),
            letter if letter.is_control() && letter != '\t' => {}
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Content lines, folded at 75 bytes (RFC 5545 §3.1). Line ends are CRLF.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, line: &str) {
        const OCTETS: usize = 75;
        let mut column = 0;
        for letter in line.chars() {
            if column + letter.len_utf8() > OCTETS {
                self.0.push_str("\r\n ");
                column = 1;
            }
            self.0.push(letter);
            column += letter.len_utf8();
        }
        self.0.push_str("\r\n");
    }

    fn text(&mut self, name: &str, text: &str) {
        self.push(&format!("{name}:{}", escaped(text)));
    }

    fn person(&mut self, name: &str, parameters: &str, person: &Person) {
        // A quoted parameter contains no quotes (RFC 5545 §3.2).
        let called = person.name.as_deref().unwrap_or(&person.address);
        let called = called.replace('"', "'");
        let address = &person.address;
        self.push(&format!(
            "{name}{parameters};CN=\"{called}\":mailto:{address}"
        ));
    }
}
