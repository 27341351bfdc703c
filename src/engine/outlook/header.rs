//! Writes the header of a message that is created from an Outlook item.

use std::borrow::Cow;

use mail_builder::headers::{Header as _, address::Address};
use mail_parser::DateTime;

use super::properties::{
    OutlookItem, Properties, Property, PropertyName, PropertyValue, STRINGS, id, text,
};
use crate::mime::header::Header;
use crate::mime::media_type;

/// Seconds from 1601-01-01 to 1970-01-01.
const EPOCH: i64 = 11_644_473_600;

/// Converts units of 100 nanoseconds since 1601 to seconds since 1970. Returns `None` for years in which mail cannot have been
/// sent.
pub(super) fn seconds(time: i64) -> Option<i64> {
    let seconds = time.div_euclid(10_000_000) - EPOCH;
    // The years 1970 to 9999. No mail is older, and a Date field cannot contain later years.
    (0..253_402_300_800).contains(&seconds).then_some(seconds)
}

/// Converts minutes since 1601 to seconds since 1970.
pub(super) fn from_1601(minutes: i64) -> i64 {
    minutes * 60 - EPOCH
}

pub(super) fn date(seconds: i64) -> String {
    DateTime::from_timestamp(seconds).to_rfc822()
}

/// Name and address of the sender or of a recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Person {
    pub(super) name: Option<String>,
    pub(super) address: String,
}

/// Returns the header fields of the message, except the fields that describe its body. Line endings are CRLF.
pub(super) fn of(item: &OutlookItem<'_>) -> Vec<u8> {
    if let Some(mut fields) = transported(item) {
        additions(item, &mut fields);
        return fields;
    }
    let mut header = Vec::new();
    let by = sender(item, false);
    // An item can be sent on behalf of another person, of whom sometimes only the name is known. If that name is the
    // name of the sender, both are the same person, and the sender's address is used.
    let is_sender = |from: &Person| {
        let same = |by: &Person| by.name.is_some() && by.name == from.name;
        from.address.starts_with(NAME_ALONE) && by.as_ref().is_some_and(same)
    };
    let from = sender(item, true).filter(|from| !is_sender(from));
    if let Some(person) = from.as_ref().or(by.as_ref()) {
        people(&mut header, "From", std::slice::from_ref(person));
    }
    if let Some(person) =
        by.filter(|by| from.as_ref().is_some_and(|from| from.address != by.address))
    {
        people(&mut header, "Sender", &[person]);
    }
    for (name, kind, display) in [("To", 1, 0x0e04), ("Cc", 2, 0x0e03), ("Bcc", 3, 0x0e02)] {
        people(&mut header, name, &recipients(item, kind, display));
    }
    let date_of = |id| item.properties.time(id).and_then(seconds);
    if let Some(time) = date_of(id::SUBMIT_TIME).or_else(|| date_of(id::DELIVERY_TIME)) {
        header.extend_from_slice(format!("Date: {}\r\n", date(time)).as_bytes());
    }
    for (name, id) in [
        ("Message-ID", id::MESSAGE_ID),
        ("In-Reply-To", id::IN_REPLY_TO),
        ("References", id::REFERENCES),
    ] {
        if let Some(text) = item.text(id) {
            ids_field(&mut header, name, &text);
        }
    }
    for (name, id) in [("Subject", id::SUBJECT), ("Thread-Topic", 0x0070)] {
        if let Some(text) = item.text(id) {
            text_field(&mut header, name, subject(&text));
        }
    }
    additions(item, &mut header);
    header
}

/// Adds fields for the importance, sensitivity and categories in Outlook, unless the header already contains them.
fn additions(item: &OutlookItem<'_>, header: &mut Vec<u8>) {
    let importance = match item.properties.integer(id::IMPORTANCE) {
        Some(0) => Some("low"),
        Some(2) => Some("high"),
        _ => None,
    };
    let sensitivity = match item.properties.integer(id::SENSITIVITY) {
        Some(1) => Some("Personal"),
        Some(2) => Some("Private"),
        Some(3) => Some("Company-Confidential"),
        _ => None,
    };
    let keywords = Some(keywords(item).join(", ")).filter(|joined| !joined.is_empty());
    let read = Header::of_message(header, header.len());
    for (name, value) in [
        ("Importance", importance),
        ("Sensitivity", sensitivity),
        ("Keywords", keywords.as_deref()),
    ] {
        if let (Some(value), None) = (value, read.fields.first(header, name)) {
            text_field(header, name, value);
        }
    }
}

/// Returns the categories that the user assigned to the item.
fn keywords(item: &OutlookItem<'_>) -> Vec<String> {
    let is = |property: &&Property<'_>| match &property.name {
        Some((STRINGS, PropertyName::Text(name))) => name.eq_ignore_ascii_case("Keywords"),
        _ => false,
    };
    let found = item.properties.0.iter().find(is);
    let values = match found.map(|property| &property.value) {
        Some(PropertyValue::Many(values)) => values.as_slice(),
        Some(value) => std::slice::from_ref(value),
        None => &[],
    };
    values.iter().filter_map(|it| text(it, item.page)).collect()
}

/// Returns a subject without the two characters that Outlook writes before some subjects: U+0001, and a character whose code is
/// the length of a prefix such as `Re: `.
pub fn subject(text: &str) -> &str {
    let mut letters = text.chars();
    match letters.next() {
        Some('\u{1}') => {
            letters.next();
            letters.as_str()
        }
        _ => text,
    }
}

fn text_field(header: &mut Vec<u8>, name: &str, text: &str) {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    header.extend_from_slice(&media_type::write_text(name, text.trim()));
}

/// Appends a field with message ids, folded between the ids. Ids cannot be written as encoded words, so ids that are not ASCII
/// are left out.
fn ids_field(header: &mut Vec<u8>, name: &str, text: &str) {
    const LINE: usize = 76;
    let is_id = |word: &&str| word.bytes().all(|byte| byte.is_ascii_graphic()) && word.len() < 900;
    let mut words = text.split_whitespace().filter(is_id).peekable();
    if words.peek().is_none() {
        return;
    }
    let mut field = format!("{name}:");
    let mut column = field.len();
    for word in words {
        if column + 1 + word.len() > LINE && column > 1 {
            field.push_str("\r\n");
            column = 0;
        }
        field.push(' ');
        field.push_str(word);
        column += 1 + word.len();
    }
    field.push_str("\r\n");
    header.extend_from_slice(field.as_bytes());
}

/// Returns the header without the title line that Exchange servers until 2003 write before the fields.
pub(super) fn without_title(header: &str) -> &str {
    header
        .strip_prefix("Microsoft Mail Internet Headers Version")
        .and_then(|rest| rest.split_once('\n'))
        .map_or(header, |(_, fields)| fields.trim_start())
}

/// Returns the header fields that the message had during transport, if the item still contains them.
fn transported(item: &OutlookItem<'_>) -> Option<Vec<u8>> {
    let stored = item.text(id::TRANSPORT_HEADERS)?;
    let text = without_title(stored.trim_start()).as_bytes();
    let read = Header::of_message(text, text.len());
    let mut fields = Vec::new();
    for field in read.fields.iter(text) {
        let is = |name: &str| field.is(text, name);
        if is("MIME-Version") || field.is_content(text) {
            continue;
        }
        let name = str::from_utf8(field.name.of(text)).ok()?;
        let unfolded = crate::mime::header::unfold(field.value.of(text));
        let value = String::from_utf8_lossy(&unfolded).into_owned();
        if name.is_ascii() && value.is_ascii() {
            let whole = crate::mime::transfer::with_newlines(
                field.whole.of(text).to_vec(),
                crate::span::Newline::CrLf,
            );
            let is_odd = |byte: &u8| *byte == 0 || *byte == b'\r';
            let odd = whole.split(|byte| *byte == b'\n').any(|line| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                line.iter().any(is_odd) || line.len() > 998
            });
            if !odd {
                fields.extend_from_slice(&whole);
                if !fields.ends_with(b"\n") {
                    fields.extend_from_slice(b"\r\n");
                }
                continue;
            }
        }
        if name.is_ascii() {
            text_field(&mut fields, name, &value);
        } else {
            // A damaged field name can contain non-ASCII bytes, which a header must not contain. So the field is
            // preserved in the value of `X-Damaged-Field`.
            text_field(&mut fields, "X-Damaged-Field", &format!("{name}: {value}"));
        }
    }
    let has = |name: &str| read.fields.first(text, name).is_some();
    (has("From") || has("Date")).then_some(fields)
}

pub(super) fn sender(item: &OutlookItem<'_>, is_represented: bool) -> Option<Person> {
    let (name, smtp, address) = if is_represented {
        (
            id::REPRESENTING_NAME,
            id::REPRESENTING_SMTP,
            id::REPRESENTING_ADDRESS,
        )
    } else {
        (id::SENDER_NAME, id::SENDER_SMTP, id::SENDER_ADDRESS)
    };
    let smtp = item.text(smtp);
    person(item.text(name), smtp, item.text(address))
}

/// Returns the recipients of one kind: 1 is To, 2 is Cc, 3 is Bcc. If the item has no recipient table, they are taken
/// from the text that Outlook displays (the property `display`), which contains only names.
pub(super) fn recipients(item: &OutlookItem<'_>, kind: i64, display: u16) -> Vec<Person> {
    let is = |it: &&Properties<'_>| {
        // The low bits contain the kind of the recipient. The high bits describe how a server processed the address, and are
        // ignored.
        it.integer(id::RECIPIENT_TYPE).unwrap_or(1) & 15 == kind
    };
    let people: Vec<Person> = item
        .recipients
        .iter()
        .filter(is)
        .filter_map(|it| recipient(it, item.page))
        .collect();
    if !people.is_empty() || !item.recipients.is_empty() {
        return people;
    }
    let names = item.text(display).unwrap_or_default();
    names
        .split(';')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .filter_map(|name| person(Some(name.to_owned()), None, None))
        .collect()
}

pub(super) fn recipient(properties: &Properties<'_>, page: u32) -> Option<Person> {
    let text = |id| properties.text(id, page);
    let smtp = text(id::SMTP_ADDRESS);
    person(text(id::DISPLAY_NAME), smtp, text(id::ADDRESS))
}

fn person(name: Option<String>, smtp: Option<String>, address: Option<String>) -> Option<Person> {
    let clean = |text: String| -> Option<String> {
        let printable: String = text.chars().filter(|it| !it.is_control()).collect();
        let cleaned = printable.trim().trim_matches('\'');
        (!cleaned.is_empty()).then(|| cleaned.to_owned())
    };
    let (name, smtp) = (name.and_then(clean), smtp.and_then(clean));
    let address = address.and_then(clean);
    let is_mail = |text: &String| {
        let is_plain = |it: char| it.is_ascii_graphic() && !"<>()[],;:\\\"".contains(it);
        text.matches('@').count() == 1 && text.chars().all(is_plain)
    };
    let known = [&smtp, &address, &name]
        .into_iter()
        .flatten()
        .find(|it| is_mail(it))
        .cloned();
    let encapsulated = || {
        let text = address.as_ref().or(name.as_ref())?;
        let kind = if address.is_some() { "EX" } else { "X" };
        Some(encapsulated(kind, text))
    };
    let address = known.or_else(encapsulated)?;
    let name = name.filter(|name| *name != address);
    Some(Person { name, address })
}

/// Prefix of the address that embody makes up for a person without a known address.
const NAME_ALONE: &str = "IMCEAX-";

/// Encodes a non-internet address, such as an Exchange address, as an internet address, in the way that Exchange itself
/// does.
fn encapsulated(kind: &str, text: &str) -> String {
    let mut local = format!("IMCEA{kind}-");
    for byte in text.bytes() {
        match byte {
            b'/' => local.push('_'),
            b'-' | b'.' => local.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => local.push(byte.into()),
            _ => local.push_str(&format!("+{byte:02X}")),
        }
    }
    format!("{local}@exchange.invalid")
}

fn people(header: &mut Vec<u8>, name: &str, people: &[Person]) {
    if people.is_empty() {
        return;
    }
    let addresses = people.iter().map(|person| {
        let name = person.name.as_deref().map(Cow::Borrowed);
        Address::new_address(name, person.address.as_str())
    });
    let mut written = format!("{name}: ").into_bytes();
    let length = written.len();
    Address::new_list(addresses.collect()).write_header(&mut written, length);
    header.extend_from_slice(&written);
}
