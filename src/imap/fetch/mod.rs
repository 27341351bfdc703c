//! Reads metadata of messages with pipelined FETCH commands. `pipeline` sends the commands, and this file parses the items.

mod items;
mod pipeline;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use super::command::{ImapCommand, sequence_set};
use super::exchange::Exchange;
use super::failure::ImapFailure;
use super::internal_date::InternalDate;
use super::response::{ResponseValue, ServerResponse, is_flag};
use super::structure::BodyPart;
use crate::mime::Header;
pub(super) use items::{item, items, uid};
pub(super) use pipeline::{AHEAD, given, is_unavailable, tolerated};
use pipeline::{FetchListener, ask};

/// Maximum size of a header section in which the Message-ID is looked for, in bytes.
const MOST_HEADER: usize = 1 << 20;

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
struct FetchData {
    flags: Option<ImapFlags>,
    date: Option<InternalDate>,
    size: Option<u64>,
    modseq: Option<u64>,
    structure: Option<Option<BodyPart>>,
}

/// Flags of a message or of a folder.
#[derive(Default)]
pub(super) struct ImapFlags {
    pub(super) words: Vec<String>,
    /// Keywords that are not atoms. They are kept apart, because a STORE with them would be rejected or would set other
    /// keywords.
    pub(super) odd: Vec<String>,
}

impl ImapFlags {
    /// Parses a list of flags. Returns `None` if the value is not a list.
    pub(super) fn of(value: &ResponseValue<'_>) -> Option<Self> {
        let mut flags = Self::default();
        for flag in value.list()? {
            let word = match flag {
                // In PERMANENTFLAGS, `\*` means that new keywords can be created in the folder, so it is accepted as a flag.
                ResponseValue::Atom(flag) => std::str::from_utf8(flag)
                    .ok()
                    .filter(|flag| is_flag(flag) || *flag == "\\*"),
                _ => None,
            };
            match (word, flag) {
                (Some(word), _) if word.eq_ignore_ascii_case("\\Recent") => {}
                (Some(word), _) => flags.words.push(word.to_owned()),
                (None, ResponseValue::Atom(flag)) => {
                    flags.odd.push(flag.escape_ascii().to_string())
                }
                (None, ResponseValue::Text(flag)) => {
                    flags.odd.push(format!("\"{}\"", flag.escape_ascii()))
                }
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
    let missing = uids
        .iter()
        .map(|uid| (*uid, FetchData::default()))
        .collect();
    let mut listener = MetadataListener {
        missing,
        with,
        has_modseq,
        each,
    };
    ask(exchange, uids, &wanted, simpler, &mut listener)?;
    let MetadataListener { missing, each, .. } = listener;
    let mut late: Vec<(u32, FetchData)> = missing.into_iter().collect();
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
    missing: HashMap<u32, FetchData>,
    with: Structure,
    has_modseq: bool,
    each: &'e mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
}

impl FetchListener for MetadataListener<'_> {
    fn hear(
        &mut self,
        uid: u32,
        items: &[[ResponseValue<'_>; 2]],
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

impl FetchData {
    /// Stores the items. Returns whether an item is new.
    fn hear(&mut self, items: &[[ResponseValue<'_>; 2]]) -> bool {
        let mut is_new = false;
        if let Some(flags) = item(items, "FLAGS").and_then(ImapFlags::of) {
            is_new |= self.flags.is_none();
            self.flags = Some(flags);
        }
        if let Some(text) = item(items, "INTERNALDATE").and_then(ResponseValue::text) {
            is_new |= self.date.is_none();
            self.date = Some(InternalDate::of(&text));
        }
        if let Some(size) = item(items, "RFC822.SIZE").and_then(ResponseValue::size) {
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

/// Number of bytes at the beginning of a message that show whether a UID still belongs to the message. They contain the
/// fields Received and Message-ID, which differ in each message.
pub(super) const START: usize = 4096;

/// Metadata of a message, as far as a FETCH returned it. A value that the server left out is `None`.
#[derive(Default)]
pub(super) struct Glimpse {
    pub(super) flags: Option<Vec<String>>,
    pub(super) date: Option<InternalDate>,
    pub(super) size: Option<u64>,
    pub(super) modseq: Option<u64>,
    /// First bytes of the message: at least [`START`] bytes, or the whole message if it is shorter. `None` if the server
    /// sent none, or different ones for the same message.
    pub(super) start: Option<Vec<u8>>,
    has_different_starts: bool,
}

/// Metadata of messages by UID, and the result of the command that requested them: `Err` if the server refused it or if a
/// response cannot be read. A message that is not listed then may still exist.
pub(super) type Glimpses = (BTreeMap<u32, Glimpse>, Result<(), ImapFailure>);

/// Requests flags, dates and sizes of a few messages, and the first bytes of those in `starts`. Unlike [`metadata`],
/// includes messages with partial metadata, and returns whether the server refused the command. So the caller can tell
/// a message that does not exist from one whose metadata is missing.
pub(super) fn look(
    exchange: &mut Exchange,
    uids: &[u32],
    starts: &[u32],
    has_modseq: bool,
) -> Result<Glimpses, ImapFailure> {
    let odd = exchange.odd();
    let mut found: BTreeMap<u32, Glimpse> = BTreeMap::new();
    let mut hear = |read: &ServerResponse<'_>| {
        let Some(items) = items(read)? else {
            return Ok(false);
        };
        let Some(uid) = uid(&items).filter(|uid| uids.contains(uid)) else {
            return Ok(false);
        };
        found.entry(uid).or_default().hear(&items);
        Ok(true)
    };
    // Both commands are sent together. The one for metadata is last, so that the metadata is as recent as possible.
    let start = (!starts.is_empty()).then(|| {
        let text = format!(
            "UID FETCH {} (UID BODY.PEEK[]<0.{START}>)",
            sequence_set(starts)
        );
        exchange.hold("FETCH", &text)
    });
    let text = format!(
        "UID FETCH {} (UID FLAGS INTERNALDATE RFC822.SIZE{})",
        sequence_set(uids),
        if has_modseq { " MODSEQ" } else { "" }
    );
    let metadata = exchange.send(ImapCommand::new("FETCH", &text))?;
    let mut done = Ok(());
    for pending in start.iter().chain([&metadata]) {
        match exchange.finish(pending, &mut hear) {
            Ok(_) => {}
            Err(why @ (ImapFailure::Refused { .. } | ImapFailure::Unreadable(_))) => {
                done = done.and(Err(why));
            }
            Err(why) => return Err(why),
        }
    }
    // An unreadable response may have been the one about a message that now seems to be missing.
    if done.is_ok() && exchange.odd() > odd {
        done = Err(ImapFailure::Unreadable("a line is malformed"));
    }
    Ok((found, done))
}

impl Glimpse {
    fn hear(&mut self, items: &[[ResponseValue<'_>; 2]]) {
        let mut heard = FetchData::default();
        heard.hear(items);
        // Flags that are not atoms cannot be set on another message. A list with such a flag counts as missing, so that no flag
        // is lost silently.
        let flags = heard
            .flags
            .filter(|flags| flags.odd.is_empty())
            .map(|flags| flags.words);
        self.flags = flags.or(self.flags.take());
        self.date = heard.date.or(self.date.take());
        self.size = heard.size.or(self.size);
        self.modseq = heard.modseq.or(self.modseq);
        let is_start = |name: &[u8]| {
            [&b"BODY[]<0>"[..], b"BODY[]"]
                .iter()
                .any(|it| name.eq_ignore_ascii_case(it))
        };
        for [name, value] in items {
            let (ResponseValue::Atom(name), ResponseValue::Text(octets)) = (name, value) else {
                continue;
            };
            if !is_start(name) {
                continue;
            }
            let octets = octets.get(..=START).unwrap_or(octets);
            self.has_different_starts |= self.start.as_deref().is_some_and(|it| it != octets);
            self.start = Some(octets.to_vec()).filter(|_| !self.has_different_starts);
        }
    }
}

/// Requests the RFC822.SIZE of messages, as pairs of a UID and a size in bytes.
pub(super) fn sizes(exchange: &mut Exchange, uids: &[u32]) -> Result<Vec<(u32, u64)>, ImapFailure> {
    let mut found = MetadataFinder::of(uids, |items| item(items, "RFC822.SIZE")?.size());
    ask(exchange, uids, "(UID RFC822.SIZE)", &[], &mut found)?;
    Ok(found.told.into_iter().collect())
}

/// Requests the field Message-ID of messages. The value is empty if the message has no such field.
pub(super) fn message_ids(
    exchange: &mut Exchange,
    uids: &[u32],
) -> Result<BTreeMap<u32, Vec<u8>>, ImapFailure> {
    let mut found = MetadataFinder::of(uids, |items| {
        items.iter().find_map(|[name, value]| match (name, value) {
            (ResponseValue::Atom(name), ResponseValue::Text(octets))
                if name.len() > 5 && name[..5].eq_ignore_ascii_case(b"BODY[") =>
            {
                Some(message_id(octets).unwrap_or_default())
            }
            _ => None,
        })
    });
    let wanted = "(UID BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])";
    ask(exchange, uids, wanted, &[], &mut found)?;
    Ok(found.told)
}

/// Returns the value of the field Message-ID without white space, or `None` if the message has no such field.
pub(super) fn message_id(message: &[u8]) -> Option<Vec<u8>> {
    let header = Header::of_message(message, MOST_HEADER);
    let value = header.fields.value(message, "Message-ID")?;
    let letters = value.iter().copied().filter(|it| !it.is_ascii_whitespace());
    Some(letters.collect()).filter(|id: &Vec<u8>| !id.is_empty())
}

/// Returns the labels (X-GM-LABELS) in the items of a FETCH response.
pub(super) fn labels(items: &[[ResponseValue<'_>; 2]]) -> Option<Vec<String>> {
    let list = item(items, "X-GM-LABELS").and_then(ResponseValue::list)?;
    let labels = list.iter().filter_map(ResponseValue::text);
    Some(labels.map(|label| label.into_owned()).collect())
}

/// Requests X-GM-MSGID and X-GM-LABELS of messages.
pub(super) fn gmail(
    exchange: &mut Exchange,
    uids: &[u32],
) -> Result<Vec<GmailMetadata>, ImapFailure> {
    let mut found = MetadataFinder::of(uids, |items| {
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

/// Collects the metadata of the requested messages. Responses about other messages are dropped, because a server could
/// fill the memory with them.
struct MetadataFinder<'u, T, R> {
    uids: &'u [u32],
    told: BTreeMap<u32, T>,
    read: R,
}

impl<'u, T, R: Fn(&[[ResponseValue<'_>; 2]]) -> Option<T>> MetadataFinder<'u, T, R> {
    fn of(uids: &'u [u32], read: R) -> Self {
        Self {
            uids,
            told: BTreeMap::new(),
            read,
        }
    }
}

impl<T, R: Fn(&[[ResponseValue<'_>; 2]]) -> Option<T>> FetchListener for MetadataFinder<'_, T, R> {
    fn hear(
        &mut self,
        uid: u32,
        items: &[[ResponseValue<'_>; 2]],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_or_too_large_uid_set_of_a_response_is_rejected() {
        assert_eq!(uids_of("3:5,9", 100), Some(vec![3, 4, 5, 9]));
        assert_eq!(uids_of("5:3", 100), Some(vec![3, 4, 5]));
        for wrong in ["", "0", "1:*", "x", "1:4294967295"] {
            assert_eq!(uids_of(wrong, 100), None, "{wrong}");
        }
    }
}
