//! Converts Outlook meetings to text/calendar (RFC 5545, RFC 5546, MS-OXCICAL).

use mail_parser::DateTime;

use super::clock::{self, DAY, Zone};
use super::header::{self, Person};
use super::properties::{
    APPOINTMENT, Guid, MEETING, OutlookItem, PropertyValue, id, integer, text,
};
use super::recurrence::{self, Exception, Recurrence, RecurrenceError};
use crate::span::until;

/// A meeting as text/calendar. `missing` lists the values of the Outlook item that the calendar cannot contain.
pub(super) struct Calendar {
    pub(super) text: String,
    pub(super) method: &'static str,
    pub(super) missing: Vec<&'static str>,
}

/// Returns the calendar method and the reply status for a message class, or `None` if the item is not a meeting.
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

/// Converts an item to a calendar. `description` is the text of the item. Returns `Ok(None)` if the item is not a meeting.
///
/// # Errors
/// Returns `Err(())` if the meeting has no start time.
pub(super) fn of(
    item: &OutlookItem<'_>,
    description: Option<&str>,
) -> Result<Option<Calendar>, ()> {
    let Some((method, reply)) = method(&item.class()) else {
        return Ok(None);
    };
    let start =
        time_of(item, APPOINTMENT, 0x820d).or_else(|| time(item.properties.value(id::START)));
    let end = time_of(item, APPOINTMENT, 0x820e).or_else(|| time(item.properties.value(id::END)));
    let Some(start) = start else {
        return Err(());
    };
    let mut missing = Vec::new();
    let series = if is_exception(item) {
        None
    } else {
        series(item, start).unwrap_or_else(|why| {
            missing.push(why);
            None
        })
    };
    let meeting = MeetingValues {
        item,
        uid: uid(item, start),
        // The time stamp is a time stored in the item and not the current time, so that the same item always gives the same
        // calendar.
        stamp: time_of(item, MEETING, 0x001a)
            .or_else(|| time(item.properties.value(id::SUBMIT_TIME)))
            .unwrap_or(start),
        method,
        reply,
        description,
    };
    let mut lines = CalendarLines::default();
    lines.push("BEGIN:VCALENDAR");
    lines.push("PRODID:-//embody//EN");
    lines.push("VERSION:2.0");
    lines.push(&format!("METHOD:{method}"));
    let zone = series.as_ref().and_then(|series| series.zone.as_ref());
    for line in zone.iter().flat_map(|zone| zone.lines()) {
        lines.push(&line);
    }
    match &series {
        Some(series) => missing.extend(meeting.series(&mut lines, series)),
        None => {
            let mut times = vec![format!("DTSTART:{}", utc(start))];
            if let Some(end) = end.filter(|end| *end >= start) {
                times.push(format!("DTEND:{}", utc(end)));
            }
            if is_exception(item) {
                match time_of(item, APPOINTMENT, REPLACED) {
                    Some(replaced) => times.push(format!("RECURRENCE-ID:{}", utc(replaced))),
                    None => missing.push("the original date of this changed meeting of a series (RECURRENCE-ID), which the file does not contain"),
                }
            }
            meeting.event(&mut lines, &times, &Exception::default());
        }
    }
    lines.push("END:VCALENDAR");
    Ok(Some(Calendar {
        text: lines.0,
        method,
        missing,
    }))
}

/// Property that holds the original start of a changed meeting.
const REPLACED: u32 = 0x8228;

fn time(value: Option<&PropertyValue<'_>>) -> Option<i64> {
    match value {
        Some(PropertyValue::Time(time)) => header::seconds(*time),
        _ => None,
    }
}

fn time_of(item: &OutlookItem<'_>, set: Guid, number: u32) -> Option<i64> {
    time(item.properties.named(&set, number))
}

fn is_set(item: &OutlookItem<'_>, set: Guid, number: u32) -> bool {
    item.properties.named(&set, number).and_then(integer) == Some(1)
}

/// Whether the item is one meeting of a series, whose values differ from those of the series.
fn is_exception(item: &OutlookItem<'_>) -> bool {
    is_set(item, MEETING, 0x000a) || time_of(item, APPOINTMENT, REPLACED).is_some()
}

/// The recurrence rule of a meeting, and its time zone. Meetings that last whole days have no time zone (`None`).
struct Series {
    recurrence: Recurrence,
    zone: Option<Zone>,
    /// Length of the rule in the file, in bytes.
    size: usize,
}

/// Reads the recurrence rule of a meeting. Returns `None` if the meeting does not recur.
///
/// # Errors
/// Returns a description of the values that cannot be converted.
fn series(item: &OutlookItem<'_>, start: i64) -> Result<Option<Series>, &'static str> {
    let Some(PropertyValue::Bytes(rule)) = item.properties.named(&APPOINTMENT, 0x8216) else {
        return if is_set(item, APPOINTMENT, 0x8223) || is_set(item, MEETING, 0x0005) {
            Err("the recurrence rule of the meeting, which the file does not contain")
        } else {
            Ok(None)
        };
    };
    let recurrence = recurrence::read(rule, item.page).map_err(|why| match why {
        RecurrenceError::Damaged => "the recurrence rule of the meeting, which is damaged",
        RecurrenceError::Calendar => {
            "the recurrence rule of the meeting, because it counts months of a calendar other than the Gregorian"
        }
        RecurrenceError::First => {
            "the recurrence rule of the meeting, because the rule does not include the day of the first meeting"
        }
    })?;
    let is_days = |begins: i64, ends: i64| {
        let is_midnight = |minutes: i64| minutes.rem_euclid(DAY) == 0;
        is_midnight(begins) && is_midnight(ends) && begins < ends
    };
    let mut exceptions = recurrence.exceptions.iter();
    let is_whole_day = is_set(item, APPOINTMENT, WHOLE_DAY)
        && is_days(recurrence.begins, recurrence.ends)
        && exceptions.all(|it| is_days(it.begins, it.ends));
    if is_whole_day {
        return Ok(Some(Series {
            recurrence,
            zone: None,
            size: rule.len(),
        }));
    }
    let Some(zone) = Zone::of(item) else {
        return Err(
            "the recurrence rule of the meeting, because the time zone of the meeting is not known",
        );
    };
    if header::from_1601(zone.utc(recurrence.begins)) == start - start.rem_euclid(60) {
        Ok(Some(Series {
            recurrence,
            zone: Some(zone),
            size: rule.len(),
        }))
    } else {
        Err(
            "the recurrence rule of the meeting, because the rule and the meeting have different start times",
        )
    }
}

const WHOLE_DAY: u32 = 0x8215;

/// Values that all events of one calendar have in common.
struct MeetingValues<'m> {
    item: &'m OutlookItem<'m>,
    uid: String,
    stamp: i64,
    method: &'static str,
    reply: Option<&'static str>,
    description: Option<&'m str>,
}

impl MeetingValues<'_> {
    /// Writes the series, followed by one event for each changed meeting. Returns `None` if everything was written, otherwise a
    /// description of the values that are left out.
    fn series(&self, lines: &mut CalendarLines, series: &Series) -> Option<&'static str> {
        let Series {
            recurrence, zone, ..
        } = series;
        let field = |name: &str, minutes: i64| match zone {
            Some(zone) => format!("{name};TZID={}:{}", zone.name, clock::time_text(minutes)),
            None => format!("{name};VALUE=DATE:{}", clock::date_text(minutes)),
        };
        let until = |minutes: i64| match zone {
            Some(zone) => clock::time_text(zone.utc(minutes)) + "Z",
            None => clock::date_text(minutes),
        };
        let mut times = vec![
            field("DTSTART", recurrence.begins),
            field("DTEND", recurrence.ends),
            format!("RRULE:{}", recurrence.rule(until)),
        ];
        times.extend(recurrence.deleted.iter().map(|it| field("EXDATE", *it)));
        let before = lines.0.len();
        self.event(lines, &times, &Exception::default());
        let event = lines.0.len() - before;
        // Each changed meeting repeats the participants and the text of the series, so a short rule could create a huge
        // calendar. The limit, 16 times the size of the rule plus 4 times the size of the main event, is generous for
        // real calendars. Beyond the limit, changed meetings are first written without the text, and then left out.
        let most = (series.size.saturating_mul(16)).saturating_add(event.saturating_mul(4));
        let without_text = Self {
            description: None,
            uid: self.uid.clone(),
            ..*self
        };
        for meeting in [self, &without_text] {
            let mut changed = CalendarLines::default();
            for exception in &recurrence.exceptions {
                let mut times = vec![
                    field("RECURRENCE-ID", exception.original),
                    field("DTSTART", exception.begins),
                ];
                if exception.ends > exception.begins {
                    times.push(field("DTEND", exception.ends));
                }
                meeting.event(&mut changed, &times, exception);
                if changed.0.len() > most {
                    break;
                }
            }
            if changed.0.len() <= most {
                lines.0.push_str(&changed.0);
                return None;
            }
        }
        Some(
            "the changed meetings of the series, because the calendar would be too large with all of them",
        )
    }

    /// Writes one event. Values in `changed` replace the values of the item.
    fn event(&self, lines: &mut CalendarLines, times: &[String], changed: &Exception) {
        let item = self.item;
        let named = |set, number| item.properties.named(set, number);
        lines.push("BEGIN:VEVENT");
        lines.push(&format!("UID:{}", self.uid));
        lines.push(&format!("DTSTAMP:{}", utc(self.stamp)));
        for line in times {
            lines.push(line);
        }
        let sequence = named(&APPOINTMENT, 0x8201).and_then(integer).unwrap_or(0);
        lines.push(&format!("SEQUENCE:{}", sequence.max(0)));
        let subject = changed.subject.clone().or_else(|| item.text(id::SUBJECT));
        if let Some(subject) = subject {
            lines.text("SUMMARY", header::subject(&subject));
        }
        let location = || named(&APPOINTMENT, 0x8208).and_then(|value| text(value, item.page));
        if let Some(location) = changed.location.clone().or_else(location) {
            lines.text("LOCATION", &location);
        }
        if let Some(description) = self.description {
            lines.text("DESCRIPTION", description.trim_end());
        }
        self.people(lines);
        let busy = named(&APPOINTMENT, 0x8205).and_then(integer);
        match changed.busy.or(busy) {
            Some(0) => lines.push("TRANSP:TRANSPARENT"),
            Some(_) => lines.push("TRANSP:OPAQUE"),
            None => {}
        }
        if is_set(item, APPOINTMENT, WHOLE_DAY) {
            lines.push("X-MICROSOFT-CDO-ALLDAYEVENT:TRUE");
        }
        if self.method == "CANCEL" {
            lines.push("STATUS:CANCELLED");
        }
        lines.push("END:VEVENT");
    }

    fn people(&self, lines: &mut CalendarLines) {
        let item = self.item;
        let sender = header::sender(item, true).or_else(|| header::sender(item, false));
        match (self.reply, sender) {
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
    }
}

/// Returns the UID of a meeting (MS-OXCICAL 2.1.3.1.1.20.26). If another program created the meeting, the id that Outlook
/// stores contains the UID of that program, which is returned. Otherwise the UID is Outlook's id in hexadecimal digits. An item
/// without an id gets a UID that is computed from its start and subject.
fn uid(item: &OutlookItem<'_>, start: i64) -> String {
    let bytes = [0x0023, 0x0003]
        .into_iter()
        .filter_map(|number| item.properties.named(&MEETING, number))
        .find_map(|value| match value {
            PropertyValue::Bytes(bytes) if !bytes.is_empty() => Some(bytes),
            _ => None,
        });
    let Some(bytes) = bytes else {
        let seed = format!("{start} {}", item.text(id::SUBJECT).unwrap_or_default());
        let hash = crate::mime::entity::sha256(seed.as_bytes());
        return format!("{hash:.24}@embody.invalid");
    };
    const FOREIGN: &[u8] = b"vCal-Uid\x01\0\0\0";
    if let Some(at) = memchr::memmem::find(bytes, FOREIGN) {
        let foreign = until(0, &bytes[at + FOREIGN.len()..]);
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

/// Escapes a text value (RFC 5545 §3.3.11).
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

/// Content lines of a calendar, folded at 75 bytes (RFC 5545 §3.1), with CRLF line endings.
#[derive(Default)]
struct CalendarLines(String);

impl CalendarLines {
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
        let address = &person.address;
        // The name is written as a quoted parameter, which cannot contain double quotes (RFC 5545 §3.2). They are replaced by
        // single quotes.
        let called = person.name.as_deref().unwrap_or(address).replace('"', "'");
        self.push(&format!(
            "{name}{parameters};CN=\"{called}\":mailto:{address}"
        ));
    }
}
