//! Reads metadata of messages with pipelined FETCH commands.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;

use super::command::{ImapCommand, batches, sequence_set};
use super::exchange::{Exchange, PendingCommand};
use super::failure::ImapFailure;
use super::response::{Response, Value, fetch_items, is_flag};
use super::structure::BodyPart;

/// Number of messages in one command for metadata.
const MANY: usize = 1000;
/// Number of messages in one command after the server refused a command with [`MANY`] messages. If the server refuses this
/// command too, the messages are requested one by one.
const FEW: usize = 30;
/// Number of consecutive temporary refusals after which the server is assumed to have a problem. Fewer refusals are attributed
/// to the messages, which are then skipped.
const REFUSED_IN_A_ROW: u32 = 3;
/// Maximum number of pending commands.
pub(super) const AHEAD: usize = 3;

/// INTERNALDATE: the time at which the server received the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InternalDate {
    /// Text of the date as the server wrote it, without quotation marks, because APPEND accepts it unchanged: ` 1-Jan-2020
    /// 10:00:00 +0100`. Empty if the server does not return a date.
    pub(crate) text: String,
    /// Seconds since 1970-01-01 00:00 UTC. 0 if the text is not a date.
    pub(crate) seconds: i64,
}

/// Metadata of a message from FETCH: everything except its content.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    pub(crate) uid: u32,
    /// Flags in the spelling and the order of the server, without `\Recent`.
    pub(crate) flags: Vec<String>,
    /// Keywords that are not valid in IMAP, escaped as ASCII. The server would reject them in STORE or APPEND.
    pub(crate) odd_flags: Vec<String>,
    pub(crate) internal_date: InternalDate,
    /// RFC822.SIZE in bytes, which may be wrong. 0 if the server does not return it.
    pub(crate) size: u64,
    /// MIME structure of the message. `None` if BODYSTRUCTURE was not requested or cannot be parsed: the message
    /// can then contain anything, so only reading it shows whether it must be changed.
    pub(crate) structure: Option<BodyPart>,
}

impl Metadata {
    /// Returns empty metadata for a message about which the server returned nothing.
    pub(crate) fn unknown(uid: u32) -> Self {
        Self {
            uid,
            flags: Vec::new(),
            odd_flags: Vec::new(),
            internal_date: InternalDate::of(""),
            size: 0,
            structure: None,
        }
    }
}

/// Choice of the metadata to request: with or without BODYSTRUCTURE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    Wanted,
    NotWanted,
}

/// Metadata that only Gmail returns: the number of the message (X-GM-MSGID) and its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GmailMetadata {
    pub(crate) uid: u32,
    pub(crate) message_id: u64,
    /// Labels in the spelling of the server, without quotation marks.
    pub(crate) labels: Vec<String>,
}

/// The metadata of one message that have arrived so far. A server may send the items of one message in several responses.
#[derive(Default)]
struct Heard {
    flags: Option<Flags>,
    date: Option<InternalDate>,
    size: Option<u64>,
    modseq: Option<u64>,
    structure: Option<Option<BodyPart>>,
}

/// Returns the items of a FETCH response as pairs of a name and a value. Returns `None` for any other response.
pub(super) fn items<'r>(read: &Response<'r>) -> Result<Option<Vec<[Value<'r>; 2]>>, ImapFailure> {
    let Response::Numbered(_, name, rest) = read else {
        return Ok(None);
    };
    if name != "FETCH" {
        return Ok(None);
    }
    fetch_items(rest).map(Some).map_err(ImapFailure::Unreadable)
}

pub(super) fn item<'i, 'r>(items: &'i [[Value<'r>; 2]], name: &str) -> Option<&'i Value<'r>> {
    let is_meant = |[key, _]: &&[Value<'_>; 2]| matches!(key, Value::Atom(key) if key.eq_ignore_ascii_case(name.as_bytes()));
    items.iter().find(is_meant).map(|[_, value]| value)
}

pub(super) fn uid(items: &[[Value<'_>; 2]]) -> Option<u32> {
    let number = item(items, "UID")?.number()?;
    u32::try_from(number).ok().filter(|uid| *uid > 0)
}

/// Flags of a message or of a folder.
#[derive(Default)]
pub(super) struct Flags {
    pub(super) words: Vec<String>,
    /// Keywords that are not atoms. They are kept apart, because a STORE with them would be rejected or would set other
    /// keywords.
    pub(super) odd: Vec<String>,
}

impl Flags {
    /// Parses a list of flags. Returns `None` if the value is not a list.
    pub(super) fn of(value: &Value<'_>) -> Option<Self> {
        let mut flags = Self::default();
        for flag in value.list()? {
            let word = match flag {
                // In PERMANENTFLAGS, `\*` means that new keywords can be created in the folder, so it is accepted as a flag.
                Value::Atom(flag) => std::str::from_utf8(flag)
                    .ok()
                    .filter(|flag| is_flag(flag) || *flag == "\\*"),
                _ => None,
            };
            match (word, flag) {
                (Some(word), _) if word.eq_ignore_ascii_case("\\Recent") => {}
                (Some(word), _) => flags.words.push(word.to_owned()),
                (None, Value::Atom(flag)) => flags.odd.push(flag.escape_ascii().to_string()),
                (None, Value::Text(flag)) => flags.odd.push(format!("\"{}\"", flag.escape_ascii())),
                (None, _) => flags.odd.push("()".to_owned()),
            }
        }
        Some(flags)
    }
}

/// Requests the metadata of messages, and passes each message to `each` when its metadata is complete. Items that the server
/// does not return are left empty. A message is skipped if the server does not return its flags.
pub(super) fn metadata(
    exchange: &mut Exchange,
    uids: &[u32],
    with: Structure,
    has_modseq: bool,
    each: &mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
) -> Result<(), ImapFailure> {
    let simple = format!(
        "(UID FLAGS INTERNALDATE RFC822.SIZE{})",
        if has_modseq { " MODSEQ" } else { "" }
    );
    let wanted = match with {
        Structure::Wanted => simple.replace(')', " BODYSTRUCTURE)"),
        Structure::NotWanted => simple.clone(),
    };
    let simpler: &[&str] = match with {
        Structure::Wanted => &[&simple, "(UID INTERNALDATE RFC822.SIZE)", "(UID FLAGS)"],
        Structure::NotWanted => &["(UID INTERNALDATE RFC822.SIZE)", "(UID FLAGS)"],
    };
    let missing = uids.iter().map(|uid| (*uid, Heard::default())).collect();
    let mut listener = MetadataListener {
        missing,
        with,
        has_modseq,
        each,
    };
    ask(exchange, uids, &wanted, simpler, &mut listener)?;
    let MetadataListener { missing, each, .. } = listener;
    let mut late: Vec<(u32, Heard)> = missing.into_iter().collect();
    late.sort_unstable_by_key(|(uid, _)| *uid);
    for (uid, heard) in late {
        if let Some(found) = heard.told(uid) {
            each(found)?;
        }
    }
    Ok(())
}

struct MetadataListener<'e> {
    /// Messages with incomplete metadata. All messages of all commands are in one map, because a server may return the items of
    /// a later command during an earlier one, as Dovecot does.
    missing: HashMap<u32, Heard>,
    with: Structure,
    has_modseq: bool,
    each: &'e mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
}

impl Listener for MetadataListener<'_> {
    fn hear(
        &mut self,
        uid: u32,
        items: &[[Value<'_>; 2]],
        is_simple: bool,
    ) -> Result<bool, ImapFailure> {
        let Some(heard) = self.missing.get_mut(&uid) else {
            return Ok(false);
        };
        let is_new = heard.hear(items);
        let is_all = if is_simple {
            heard.is_all(Structure::NotWanted, false)
        } else {
            heard.is_all(self.with, self.has_modseq)
        };
        if is_all && let Some(found) = self.missing.remove(&uid).and_then(|heard| heard.told(uid)) {
            (self.each)(found)?;
        }
        Ok(is_new)
    }

    fn lacks(&self, uid: u32) -> bool {
        self.missing.contains_key(&uid)
    }
}

/// Receiver of the items in FETCH responses.
trait Listener {
    /// Stores the items of a message. Returns true if they were requested and at least one is new. `is_simple` is true
    /// if the command requests fewer items than the first command, because the server could not answer that one.
    fn hear(
        &mut self,
        uid: u32,
        items: &[[Value<'_>; 2]],
        is_simple: bool,
    ) -> Result<bool, ImapFailure>;

    /// Returns whether the server has not yet returned all requested items of a message.
    fn lacks(&self, uid: u32) -> bool;
}

/// Requests the metadata of messages, many at a time. If the server refuses a command or sends an unreadable
/// response, the incomplete messages are requested again: in small batches, then one by one, and finally with
/// fewer items. One damaged message can make a whole command fail, but must not affect the metadata of the
/// other messages.
fn ask(
    exchange: &mut Exchange,
    uids: &[u32],
    wanted: &str,
    simpler: &[&str],
    listener: &mut dyn Listener,
) -> Result<(), ImapFailure> {
    let odd = exchange.odd();
    let mut is_refused = false;
    pipelined(exchange, uids, wanted, &mut |exchange, pending| {
        let done = exchange.finish(pending, &mut |read| listen(read, listener, false));
        is_refused |= tolerated(exchange, done)?;
        Ok(())
    })?;
    if !is_refused && exchange.odd() == odd {
        return Ok(());
    }
    let mut rest: Vec<u32> = uids.to_vec();
    if is_refused {
        rest.retain(|uid| listener.lacks(*uid));
        for batch in batches(&rest, FEW) {
            let text = format!("UID FETCH {} {wanted}", sequence_set(batch));
            let command = ImapCommand::new("FETCH", &text);
            let done = exchange.run(command, &mut |read| listen(read, listener, false));
            tolerated(exchange, done)?;
        }
    }
    rest.retain(|uid| listener.lacks(*uid));
    // Messages that the server refuses temporarily. Requesting fewer items would not help, so no simpler FETCH is tried for
    // them.
    let mut refused = HashSet::new();
    for uid in &rest {
        let done = alone(exchange, *uid, wanted, &mut |read| {
            listen(read, listener, false)
        })?;
        if done == Alone::NotNow {
            refused.insert(*uid);
        }
    }
    for wanted in simpler {
        rest.retain(|uid| listener.lacks(*uid) && !refused.contains(uid));
        for uid in &rest {
            let command = ImapCommand::new("FETCH", &format!("UID FETCH {uid} {wanted}"));
            let done = exchange.run(command, &mut |read| listen(read, listener, true));
            tolerated(exchange, done)?;
        }
    }
    Ok(())
}

fn listen(
    read: &Response<'_>,
    listener: &mut dyn Listener,
    is_simple: bool,
) -> Result<bool, ImapFailure> {
    let Some(items) = items(read)? else {
        return Ok(false);
    };
    match uid(&items) {
        Some(uid) => listener.hear(uid, &items, is_simple),
        None => Ok(false),
    }
}

/// Result of a FETCH of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alone {
    Told,
    Refused,
    /// The server refused the message twice with UNAVAILABLE, which means that the error is temporary.
    NotNow,
}

/// Requests one message. If the server refuses it temporarily, waits for a moment and requests it again.
///
/// # Errors
/// [`ImapFailure::Refused`] if the server refuses several messages in a row temporarily. The caller can wait longer and repeat.
pub(super) fn alone(
    exchange: &mut Exchange,
    uid: u32,
    wanted: &str,
    each: &mut dyn FnMut(&Response<'_>) -> Result<bool, ImapFailure>,
) -> Result<Alone, ImapFailure> {
    let text = format!("UID FETCH {uid} {wanted}");
    let mut is_again = false;
    loop {
        let done = exchange.run(ImapCommand::new("FETCH", &text), each);
        match given(exchange, done, is_again)? {
            Some(done) => return Ok(done),
            None => is_again = true,
        }
    }
}

/// Decides how to continue after a FETCH of one message. Returns `None` if the server refused it temporarily: the
/// caller must then repeat the FETCH. If `is_again` is true, it was already repeated, and is not repeated a second
/// time.
pub(super) fn given<D>(
    exchange: &mut Exchange,
    done: Result<D, ImapFailure>,
    is_again: bool,
) -> Result<Option<Alone>, ImapFailure> {
    match done {
        Err(why) if is_unavailable(&why) => {
            if !is_again && !exchange.habits.is_resigned {
                exchange.wait_a_moment()?;
                return Ok(None);
            }
            exchange.habits.refused_in_a_row += 1;
            let is_of_server = exchange.habits.refused_in_a_row >= REFUSED_IN_A_ROW;
            if is_of_server && !exchange.habits.is_resigned {
                Err(why)
            } else {
                Ok(Some(Alone::NotNow))
            }
        }
        done => {
            let is_refused = tolerated(exchange, done)?;
            exchange.habits.refused_in_a_row = 0;
            Ok(Some(if is_refused {
                Alone::Refused
            } else {
                Alone::Told
            }))
        }
    }
}

/// Returns whether the server refused a command with UNAVAILABLE, a temporary error.
pub(super) fn is_unavailable(why: &ImapFailure) -> bool {
    matches!(why, ImapFailure::Refused { code, .. } if code.as_deref() == Some("UNAVAILABLE"))
}

impl Heard {
    /// Stores the items. Returns whether an item is new.
    fn hear(&mut self, items: &[[Value<'_>; 2]]) -> bool {
        let mut is_new = false;
        if let Some(flags) = item(items, "FLAGS").and_then(Flags::of) {
            is_new |= self.flags.is_none();
            self.flags = Some(flags);
        }
        if let Some(text) = item(items, "INTERNALDATE").and_then(Value::text) {
            is_new |= self.date.is_none();
            self.date = Some(InternalDate::of(&text));
        }
        if let Some(size) = item(items, "RFC822.SIZE").and_then(Value::size) {
            is_new |= self.size.is_none();
            self.size = Some(size);
        }
        if let Some(value) = item(items, "MODSEQ") {
            is_new |= self.modseq.is_none();
            self.modseq = value.list().and_then(|list| list.first()?.number());
        }
        if let Some(value) = item(items, "BODYSTRUCTURE") {
            is_new |= self.structure.is_none();
            self.structure = Some(BodyPart::read(value));
        }
        is_new
    }

    fn is_all(&self, with: Structure, has_modseq: bool) -> bool {
        self.flags.is_some()
            && self.date.is_some()
            && self.size.is_some()
            && (!has_modseq || self.modseq.is_some())
            && (with == Structure::NotWanted || self.structure.is_some())
    }

    fn told(self, uid: u32) -> Option<Metadata> {
        let flags = self.flags?;
        Some(Metadata {
            uid,
            flags: flags.words,
            odd_flags: flags.odd,
            internal_date: self.date.unwrap_or_else(|| InternalDate::of("")),
            size: self.size.unwrap_or(0),
            structure: self.structure.flatten(),
        })
    }
}

/// Flags, date and modification sequence of a message, as far as a FETCH returned them. A value that the server left out is
/// `None`.
#[derive(Default)]
pub(super) struct Glimpse {
    pub(super) flags: Option<Vec<String>>,
    pub(super) date: Option<InternalDate>,
    pub(super) modseq: Option<u64>,
}

/// Metadata of messages by UID, and the result of the command that requested them: `Err` if the server refused it.
pub(super) type Glimpses = (BTreeMap<u32, Glimpse>, Result<(), ImapFailure>);

/// Requests flags and dates of a few messages. Also returns messages of which the server returned only a part
/// of the metadata, which [`metadata`] would skip, and whether the server refused the command. With both, the
/// caller can tell a message that does not exist from a message whose metadata is missing.
pub(super) fn look(
    exchange: &mut Exchange,
    uids: &[u32],
    has_modseq: bool,
) -> Result<Glimpses, ImapFailure> {
    let text = format!(
        "UID FETCH {} (UID FLAGS INTERNALDATE{})",
        sequence_set(uids),
        if has_modseq { " MODSEQ" } else { "" }
    );
    let pending = exchange.send(ImapCommand::new("FETCH", &text))?;
    let mut found: BTreeMap<u32, Glimpse> = BTreeMap::new();
    let done = exchange.finish(&pending, &mut |read| {
        let Some(items) = items(read)? else {
            return Ok(false);
        };
        let Some(uid) = uid(&items).filter(|uid| uids.contains(uid)) else {
            return Ok(false);
        };
        let mut heard = Heard::default();
        heard.hear(&items);
        let glimpse = found.entry(uid).or_default();
        // Flags that are not atoms cannot be set on another message. A list with such a flag counts as missing, so that no flag
        // is lost silently.
        let flags = heard
            .flags
            .filter(|flags| flags.odd.is_empty())
            .map(|flags| flags.words);
        glimpse.flags = flags.or(glimpse.flags.take());
        glimpse.date = heard.date.or(glimpse.date.take());
        glimpse.modseq = heard.modseq.or(glimpse.modseq);
        Ok(true)
    });
    match done {
        Err(why @ ImapFailure::Refused { .. }) => Ok((found, Err(why))),
        done => done.map(|_| (found, Ok(()))),
    }
}

/// Requests the RFC822.SIZE of messages, as pairs of a UID and a size in bytes.
pub(super) fn sizes(exchange: &mut Exchange, uids: &[u32]) -> Result<Vec<(u32, u64)>, ImapFailure> {
    let mut found = Found::of(uids, |items| item(items, "RFC822.SIZE")?.size());
    ask(exchange, uids, "(UID RFC822.SIZE)", &[], &mut found)?;
    Ok(found.told.into_iter().collect())
}

/// Returns the labels (X-GM-LABELS) in the items of a FETCH response.
pub(super) fn labels(items: &[[Value<'_>; 2]]) -> Option<Vec<String>> {
    let list = item(items, "X-GM-LABELS").and_then(Value::list)?;
    let labels = list.iter().filter_map(Value::text);
    Some(labels.map(|label| label.into_owned()).collect())
}

/// Requests X-GM-MSGID and X-GM-LABELS of messages.
pub(super) fn gmail(
    exchange: &mut Exchange,
    uids: &[u32],
) -> Result<Vec<GmailMetadata>, ImapFailure> {
    let mut found = Found::of(uids, |items| {
        let message_id = item(items, "X-GM-MSGID")?.number()?;
        Some((message_id, labels(items)?))
    });
    let wanted = "(UID X-GM-MSGID X-GM-LABELS)";
    ask(exchange, uids, wanted, &[], &mut found)?;
    Ok(found
        .told
        .into_iter()
        .map(|(uid, (message_id, labels))| GmailMetadata {
            uid,
            message_id,
            labels,
        })
        .collect())
}

/// Metadata of the messages that were requested. Responses about other messages are dropped, because a server could fill the
/// memory with them.
struct Found<'u, T, R> {
    uids: &'u [u32],
    told: BTreeMap<u32, T>,
    read: R,
}

impl<'u, T, R: Fn(&[[Value<'_>; 2]]) -> Option<T>> Found<'u, T, R> {
    fn of(uids: &'u [u32], read: R) -> Self {
        Self {
            uids,
            told: BTreeMap::new(),
            read,
        }
    }
}

impl<T, R: Fn(&[[Value<'_>; 2]]) -> Option<T>> Listener for Found<'_, T, R> {
    fn hear(
        &mut self,
        uid: u32,
        items: &[[Value<'_>; 2]],
        _is_simple: bool,
    ) -> Result<bool, ImapFailure> {
        if self.uids.binary_search(&uid).is_err() {
            return Ok(false);
        }
        let found = (self.read)(items);
        Ok(found.is_some_and(|found| self.told.insert(uid, found).is_none()))
    }

    fn lacks(&self, uid: u32) -> bool {
        !self.told.contains_key(&uid)
    }
}

/// Returns whether the server refused a FETCH in a way that the run tolerates. A NO to a FETCH means that some messages
/// no longer exist (RFC 2180 §4.1) or are damaged. The responses about other messages may be missing, too.
///
/// # Errors
/// Errors that end the session, and refusals with a request to try again later.
pub(super) fn tolerated<D>(
    exchange: &Exchange,
    done: Result<D, ImapFailure>,
) -> Result<bool, ImapFailure> {
    match done {
        Ok(_) | Err(ImapFailure::Unreadable(_)) => Ok(false),
        Err(ImapFailure::Refused { code, .. })
            if exchange.habits.is_resigned
                || !matches!(code.as_deref(), Some("INUSE" | "THROTTLED" | "LIMIT")) =>
        {
            Ok(true)
        }
        Err(why) => Err(why),
    }
}

/// A function that reads the responses of one batch until the end of its command.
type BatchEnd<'f> = dyn FnMut(&mut Exchange, &PendingCommand) -> Result<(), ImapFailure> + 'f;

/// Sends UID FETCH for [`MANY`] messages at a time. Up to [`AHEAD`] commands are pending, so the server can work without
/// pauses.
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
            under_way.push_back(exchange.send(ImapCommand::new("FETCH", &text))?);
        }
        let Some(pending) = under_way.pop_front() else {
            return Ok(());
        };
        finish(exchange, &pending)?;
    }
}

/// Parses a set of UIDs in a response code, such as `3:5,9`. Returns `None` if the set is malformed or has more than `most`
/// UIDs.
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
    /// Parses the date of a server (RFC 3501, `date-time`). The space before a one-digit day may be missing.
    pub(crate) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            seconds: seconds(text).unwrap_or(0),
        }
    }

    /// Returns whether the text is a valid date.
    pub(crate) fn is_date(&self) -> bool {
        seconds(&self.text).is_some()
    }

    /// Returns whether both dates are the same moment. Two dates that cannot be parsed are the same only if their texts are
    /// equal.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (seconds(&self.text), seconds(&other.text)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.text.trim() == other.text.trim(),
            _ => false,
        }
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
    let at = months
        .find(&month.to_ascii_lowercase())
        .filter(|at| at % 3 == 0)?;
    let month = i64::try_from(at / 3).ok()? + 1;
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
    let hours_and_minutes = number(digits).filter(|_| digits.len() == 4)?;
    let zone = sign * (hours_and_minutes / 100 * 3600 + hours_and_minutes % 100 * 60);
    // Number of days since 1970-01-01. The year starts in March, so that the leap day is its last day.
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
    fn dates_that_cannot_be_read_are_the_same_only_with_the_same_text() {
        for (one, other, is_same) in [
            (
                "01-Jan-1970 01:00:00 +0100",
                " 1-Jan-1970 00:00:00 +0000",
                true,
            ),
            (
                " 1-Jan-1970 00:00:01 +0000",
                " 1-Jan-1970 00:00:00 +0000",
                false,
            ),
            (
                "03-Jan-2020 10:00:00 GMT",
                "25-Nov-2026 18:00:00 GMT",
                false,
            ),
            ("03-Jan-2020 10:00:00 GMT", "03-Jan-2020 10:00:00 GMT", true),
            ("", " 1-Jan-1970 00:00:00 +0000", false),
            ("", "", true),
        ] {
            let (first, second) = (InternalDate::of(one), InternalDate::of(other));
            assert_eq!(first.is_same(&second), is_same, "{one:?} {other:?}");
            assert_eq!(second.is_same(&first), is_same, "{other:?} {one:?}");
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
