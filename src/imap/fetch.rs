//! FETCH: what messages are like; several commands are under way at a time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU32;

use super::command::{ImapCommand, batches, sequence_set};
use super::exchange::{Exchange, PendingCommand};
use super::failure::ImapFailure;
use super::response::{Response, Value, values};
use super::structure::BodyPart;

/// Messages whose metadata one command asks for.
const MANY: usize = 1000;
/// Commands that are under way.
pub(super) const AHEAD: usize = 3;

/// When a message came, as the server says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InternalDate {
    /// The server's own text without quotation marks, which APPEND takes back: ` 1-Jan-2020 10:00:00 +0100`. Empty if the server
    /// does not tell it.
    pub(crate) text: String,
    /// Seconds since 1970 began; 0 if the text is no date.
    pub(crate) seconds: i64,
}

/// What FETCH says of a message besides its content.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    pub(crate) uid: u32,
    /// As the server spells them, in its order; `\Recent` is not among them.
    pub(crate) flags: Vec<String>,
    pub(crate) internal_date: InternalDate,
    /// RFC822.SIZE: no promise. 0 if the server does not tell it.
    pub(crate) size: u64,
    pub(crate) modseq: Option<u64>,
    /// None if it was not asked for, or cannot be read: such a message may have anything in it.
    pub(crate) structure: Option<BodyPart>,
}

impl Metadata {
    /// A message of which the server tells nothing.
    pub(crate) fn unknown(uid: u32) -> Self {
        Self {
            uid,
            flags: Vec::new(),
            internal_date: InternalDate::of(""),
            size: 0,
            modseq: None,
            structure: None,
        }
    }
}

/// Whether BODYSTRUCTURE is asked for, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    Wanted,
    NotWanted,
}

/// What only Gmail has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GmailMetadata {
    pub(crate) uid: u32,
    pub(crate) message_id: u64,
    /// As the server spells them, without quotation marks.
    pub(crate) labels: Vec<String>,
}

/// What came of a message's metadata so far: servers may tell it bit by bit.
#[derive(Default)]
struct Heard {
    flags: Option<Vec<String>>,
    date: Option<InternalDate>,
    size: Option<u64>,
    modseq: Option<u64>,
    structure: Option<Option<BodyPart>>,
}

/// The items of a FETCH response, each with its value; None for another response.
pub(super) fn items<'r>(read: &Response<'r>) -> Result<Option<Vec<[Value<'r>; 2]>>, ImapFailure> {
    let Response::Numbered(_, name, rest) = read else {
        return Ok(None);
    };
    if name != "FETCH" {
        return Ok(None);
    }
    let values = values(rest).map_err(ImapFailure::Protocol)?;
    let Some(Value::List(items)) = values.into_iter().next() else {
        return Err(ImapFailure::Protocol("FETCH without a list"));
    };
    let mut items = items.into_iter();
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (items.next(), items.next()) {
        pairs.push([name, value]);
    }
    Ok(Some(pairs))
}

pub(super) fn item<'i, 'r>(items: &'i [[Value<'r>; 2]], name: &str) -> Option<&'i Value<'r>> {
    let is_meant = |[key, _]: &&[Value<'_>; 2]| matches!(key, Value::Atom(key) if key.eq_ignore_ascii_case(name.as_bytes()));
    items.iter().find(is_meant).map(|[_, value]| value)
}

pub(super) fn uid(items: &[[Value<'_>; 2]]) -> Option<u32> {
    let number = item(items, "UID")?.number()?;
    u32::try_from(number).ok().filter(|uid| *uid > 0)
}

/// Flags are words; what is none would not come back to the server as it was.
pub(super) fn flags(value: &Value<'_>) -> Result<Vec<String>, ImapFailure> {
    const NOT: ImapFailure = ImapFailure::Protocol("flags that are no words");
    let mut flags = Vec::new();
    for flag in value.list().ok_or(NOT)? {
        let Value::Atom(flag) = flag else {
            return Err(NOT);
        };
        let flag = std::str::from_utf8(flag).map_err(|_| NOT)?;
        if !flag.eq_ignore_ascii_case("\\Recent") {
            flags.push(flag.to_owned());
        }
    }
    Ok(flags)
}

/// What the messages are like; each is handed on as soon as all of it came. What the server does not tell is left out.
pub(super) fn metadata(
    exchange: &mut Exchange,
    uids: &[u32],
    with: Structure,
    has_modseq: bool,
    each: &mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
) -> Result<(), ImapFailure> {
    let wanted = format!(
        "(UID FLAGS INTERNALDATE RFC822.SIZE{}{})",
        if has_modseq { " MODSEQ" } else { "" },
        if with == Structure::Wanted {
            " BODYSTRUCTURE"
        } else {
            ""
        },
    );
    // A server may tell of what a later command asks for while it does an earlier one, as Dovecot does.
    let mut missing: HashMap<u32, Heard> =
        uids.iter().map(|uid| (*uid, Heard::default())).collect();
    pipelined(exchange, uids, &wanted, &mut |exchange, pending, batch| {
        let done = exchange.finish(pending, &mut |read| {
            let Some(items) = items(read)? else {
                return Ok(false);
            };
            let Some(uid) = uid(&items) else {
                return Ok(false);
            };
            let Some(heard) = missing.get_mut(&uid) else {
                return Ok(false);
            };
            heard.hear(&items)?;
            if heard.is_all(with, has_modseq)
                && let Some(found) = missing.remove(&uid).and_then(|heard| heard.told(uid))
            {
                each(found)?;
            }
            Ok(true)
        });
        for uid in batch {
            let late = missing.remove(uid).and_then(|heard| heard.told(*uid));
            if let Some(found) = late {
                each(found)?;
            }
        }
        tolerated(done)
    })
}

impl Heard {
    fn hear(&mut self, items: &[[Value<'_>; 2]]) -> Result<(), ImapFailure> {
        if let Some(value) = item(items, "FLAGS") {
            self.flags = Some(flags(value)?);
        }
        if let Some(text) = item(items, "INTERNALDATE").and_then(Value::text) {
            self.date = Some(InternalDate::of(&text));
        }
        if let Some(size) = item(items, "RFC822.SIZE").and_then(Value::number) {
            self.size = Some(size);
        }
        if let Some(value) = item(items, "MODSEQ") {
            self.modseq = value.list().and_then(|list| list.first()?.number());
        }
        if let Some(value) = item(items, "BODYSTRUCTURE") {
            self.structure = Some(BodyPart::read(value));
        }
        Ok(())
    }

    fn is_all(&self, with: Structure, has_modseq: bool) -> bool {
        self.flags.is_some()
            && self.date.is_some()
            && self.size.is_some()
            && (!has_modseq || self.modseq.is_some())
            && (with == Structure::NotWanted || self.structure.is_some())
    }

    fn told(self, uid: u32) -> Option<Metadata> {
        Some(Metadata {
            uid,
            flags: self.flags?,
            internal_date: self.date.unwrap_or_else(|| InternalDate::of("")),
            size: self.size.unwrap_or(0),
            modseq: self.modseq,
            structure: self.structure.flatten(),
        })
    }
}

/// UIDs and RFC822.SIZE alone.
pub(super) fn sizes(exchange: &mut Exchange, uids: &[u32]) -> Result<Vec<(u32, u64)>, ImapFailure> {
    let mut found = BTreeMap::new();
    pipelined(
        exchange,
        uids,
        "(UID RFC822.SIZE)",
        &mut |exchange, pending, _| {
            let done = exchange.finish(pending, &mut |read| {
                let Some(items) = items(read)? else {
                    return Ok(false);
                };
                match (
                    uid(&items),
                    item(&items, "RFC822.SIZE").and_then(Value::number),
                ) {
                    (Some(uid), Some(size)) => {
                        // What nobody asked for would fill the memory.
                        if uids.binary_search(&uid).is_ok() {
                            found.insert(uid, size);
                        }
                        Ok(true)
                    }
                    _ => Ok(false),
                }
            });
            tolerated(done)
        },
    )?;
    Ok(found.into_iter().collect())
}

/// X-GM-MSGID and X-GM-LABELS.
pub(super) fn gmail(
    exchange: &mut Exchange,
    uids: &[u32],
) -> Result<Vec<GmailMetadata>, ImapFailure> {
    let mut found = BTreeMap::new();
    let wanted = "(UID X-GM-MSGID X-GM-LABELS)";
    pipelined(exchange, uids, wanted, &mut |exchange, pending, _| {
        let done = exchange.finish(pending, &mut |read| {
            let Some(items) = items(read)? else {
                return Ok(false);
            };
            let message_id = item(&items, "X-GM-MSGID").and_then(Value::number);
            let labels = item(&items, "X-GM-LABELS").and_then(Value::list);
            let (Some(uid), Some(message_id), Some(labels)) = (uid(&items), message_id, labels)
            else {
                return Ok(false);
            };
            if uids.binary_search(&uid).is_ok() {
                let labels = labels.iter().filter_map(Value::text);
                let labels = labels.map(|label| label.into_owned()).collect();
                found.insert(
                    uid,
                    GmailMetadata {
                        uid,
                        message_id,
                        labels,
                    },
                );
            }
            Ok(true)
        });
        tolerated(done)
    })?;
    Ok(found.into_values().collect())
}

/// NO to a FETCH means that some messages are gone (RFC 2180 §4.1), and the rest was told.
pub(super) fn tolerated<D>(done: Result<D, ImapFailure>) -> Result<(), ImapFailure> {
    match done {
        Ok(_) => Ok(()),
        Err(ImapFailure::Refused { code, .. }) if code.as_deref() != Some("UNAVAILABLE") => Ok(()),
        Err(why) => Err(why),
    }
}

/// Reads up to the end of a command, and says what became of its batch.
type BatchEnd<'f> =
    dyn FnMut(&mut Exchange, &PendingCommand, &[u32]) -> Result<(), ImapFailure> + 'f;

/// UID FETCH of so many messages at a time, the next ones asked for before the first ones came.
fn pipelined(
    exchange: &mut Exchange,
    uids: &[u32],
    wanted: &str,
    finish: &mut BatchEnd<'_>,
) -> Result<(), ImapFailure> {
    let mut batches = batches(uids, MANY).into_iter();
    let mut under_way = VecDeque::new();
    loop {
        while under_way.len() < AHEAD
            && let Some(batch) = batches.next()
        {
            let text = format!("UID FETCH {} {wanted}", sequence_set(batch));
            under_way.push_back((exchange.send(ImapCommand::new("FETCH", &text))?, batch));
        }
        let Some((pending, batch)) = under_way.pop_front() else {
            return Ok(());
        };
        finish(exchange, &pending, batch)?;
    }
}

/// UIDs of a set in a response code: `3:5,9`; at most so many.
pub(super) fn uids_of(set: &str, most: usize) -> Option<Vec<u32>> {
    let mut uids = Vec::new();
    for range in set.split(',') {
        let (first, last) = range.split_once(':').unwrap_or((range, range));
        let (first, last): (NonZeroU32, NonZeroU32) = (first.parse().ok()?, last.parse().ok()?);
        let (first, last) = (first.min(last).get(), first.max(last).get());
        if uids.len() + (last - first) as usize >= most {
            return None;
        }
        uids.extend(first..=last);
    }
    Some(uids)
}

impl InternalDate {
    /// Reads a server's text (RFC 3501, `date-time`); days of one digit may have no blank before them.
    pub(crate) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            seconds: seconds(text).unwrap_or(0),
        }
    }

    /// Whether the text is a date.
    pub(crate) fn is_date(&self) -> bool {
        seconds(&self.text).is_some()
    }
}

fn seconds(text: &str) -> Option<i64> {
    let mut words = text.split_ascii_whitespace();
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    let number = |text: &str| {
        let are_digits = text.bytes().all(|octet| octet.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| are_digits)
    };
    let mut date = date.split('-');
    let (day, month, year) = (number(date.next()?)?, date.next()?, number(date.next()?)?);
    let months = "janfebmaraprmayjunjulaugsepoctnovdec";
    let month = months
        .find(&month.to_ascii_lowercase())
        .filter(|at| at % 3 == 0)?;
    let month = i64::try_from(month / 3).ok()? + 1;
    let mut time = time.split(':');
    let (hour, minute, second) = (
        number(time.next()?)?,
        number(time.next()?)?,
        number(time.next()?)?,
    );
    if !(1..=31).contains(&day) || year > 9999 || hour > 24 || minute > 60 || second > 60 {
        return None;
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let zone = number(digits).filter(|_| digits.len() == 4)?;
    let zone = sign * (zone / 100 * 3600 + zone % 100 * 60);
    // Days since 1970-01-01 of a day in the calendar; March begins the year, so that the leap day ends it.
    let (year, month) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 306 + 5) / 10
        + day
        - 1
        - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_seconds_they_mean() {
        for (text, seconds) in [
            (" 1-Jan-1970 00:00:00 +0000", 0),
            ("01-Jan-1970 01:00:00 +0100", 0),
            ("1-jan-1970 00:00:00 -0030", 1800),
            ("29-Feb-2020 12:34:56 +0530", 1_582_959_896),
            ("31-Dec-1969 23:59:59 +0000", -1),
            ("17-Jul-1996 02:44:25 -0700", 837_596_665),
            ("1-Mar-2100 00:00:00 +0000", 4_107_542_400),
            ("yesterday", 0),
            ("32-Jan-1970 00:00:00 +0000", 0),
            ("1-anf-1970 00:00:00 +0000", 0),
            ("1-Jan-1970 00:00:00 GMT", 0),
        ] {
            let date = InternalDate::of(text);
            assert_eq!((date.seconds, &*date.text), (seconds, text));
        }
    }

    #[test]
    fn sets_of_codes_are_read_within_a_bound() {
        assert_eq!(uids_of("3:5,9", 100), Some(vec![3, 4, 5, 9]));
        assert_eq!(uids_of("5:3", 100), Some(vec![3, 4, 5]));
        for wrong in ["", "0", "1:*", "x", "1:4294967295"] {
            assert_eq!(uids_of(wrong, 100), None, "{wrong}");
        }
    }
}
