//! Reads whole messages in pieces with pipelined FETCH commands.
//!
//! Even a small message is requested in pieces (`BODY.PEEK[]<0.1048576>`): RFC822.SIZE may be wrong, and a piece limits
//! the length of the literal. Some servers (Exchange) return the whole message nevertheless. That is accepted up to the
//! announced size, and later pieces are then requested one at a time. A short piece before RFC822.SIZE is not the end
//! of the message: pieces are requested until one is empty.
//!
//! A server that closes the list of items too early sends content without a UID. It is accepted only if a single
//! message was requested, and if it has exactly the announced size.
//!
//! Some servers and proxies send the content of one message under the UID of another one. So content is passed on only
//! after its command has ended. If a different content for the same UID arrives before that, the message is requested
//! again alone, and must match one of the two. A message that is longer than announced is also requested once more,
//! unless this server's sizes are usually wrong.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hasher as _;

use super::command::{ImapCommand, sequence_set};
use super::exchange::{Exchange, PendingCommand};
use super::failure::ImapFailure;
use super::fetch::{AHEAD, given, is_unavailable, tolerated, uid};
use super::response::{ResponseValue, ServerResponse, number, unclosed_fetch_items};

/// Size of a piece, in bytes.
const PIECE: usize = 1 << 20;
/// Maximum total size in bytes, and maximum number, of the messages that one command requests. The limits keep the
/// responses small.
const BATCH_OCTETS: u64 = 512 << 10;
const BATCH_MESSAGES: usize = 100;
/// Maximum number of different contents that are remembered for one UID. A server could send any number.
const MOST_CONTENTS: usize = 8;
/// Number of bytes that a response may have in addition to the announced size of the message (RFC822.SIZE). The
/// response also contains other items, and the announced size may be too small.
const MORE: usize = 1 << 20;
/// Maximum size of a response that contains a whole message, in bytes. A server must return larger messages in pieces.
const MOST_WHOLE: usize = 256 << 20;

/// A piece of a message, in the order of the message: some bytes of its content, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyPiece<'p> {
    Octets(&'p [u8]),
    /// The end of the message: all pieces before it form its complete content.
    Whole,
    /// The server does not return the message, or not all of it. The pieces so far must be discarded. The message was deleted
    /// or is damaged.
    Gone,
}

/// Callback that receives the pieces. The number is the UID of the message.
pub(crate) type BodySink<'s> = dyn FnMut(u32, BodyPiece<'_>) -> Result<(), ImapFailure> + 's;

/// Content received for one UID while its command is still running.
enum BodyPieces {
    Content(Vec<u8>),
    /// Several different contents arrived. Only their hashes are kept.
    Different(Vec<u64>),
    /// The size differs from the announced one, so the message is requested again in pieces.
    Odd,
}

impl BodyPieces {
    fn and(self, octets: Vec<u8>) -> Self {
        match self {
            Self::Content(first) if first == octets => Self::Content(first),
            Self::Content(first) => Self::Different(vec![hash(&first), hash(&octets)]),
            Self::Different(mut hashes) if hashes.len() < MOST_CONTENTS => {
                hashes.push(hash(&octets));
                Self::Different(hashes)
            }
            other => other,
        }
    }
}

fn hash(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(octets);
    hasher.finish()
}

/// Requests the complete content of each message, given as a UID and a size.
///
/// A server may return messages of a later command during an earlier one, as Dovecot does. So a response is accepted for any
/// message that is still missing.
pub(super) fn bodies(
    exchange: &mut Exchange,
    messages: &[(u32, u64)],
    sink: &mut BodySink<'_>,
) -> Result<(), ImapFailure> {
    let (small, large): (Vec<_>, Vec<_>) = messages
        .iter()
        .copied()
        .partition(|(_, size)| !is_large(*size));
    let mut alone: Vec<(u32, u64, Vec<u64>)> = large
        .into_iter()
        .map(|(uid, size)| (uid, size, Vec::new()))
        .collect();
    let mut rest = small.as_slice();
    // Messages that were requested, and the contents that arrived for them.
    let mut missing: BTreeMap<u32, u64> = BTreeMap::new();
    let mut arrived: BTreeMap<u32, BodyPieces> = BTreeMap::new();
    let mut under_way: VecDeque<(PendingCommand, Vec<u32>)> = VecDeque::new();
    exchange.allow(0);
    loop {
        while under_way.len() < AHEAD && !rest.is_empty() {
            let (batch, behind) = rest.split_at(batch(rest));
            rest = behind;
            missing.extend(batch.iter().copied());
            let mut uids: Vec<u32> = batch.iter().map(|(uid, _)| *uid).collect();
            uids.sort_unstable();
            let set = sequence_set(&uids);
            let text = format!("UID FETCH {set} (UID BODY.PEEK[]<0.{PIECE}>)");
            under_way.push_back((exchange.send(ImapCommand::new("FETCH", &text))?, uids));
        }
        let Some((pending, uids)) = under_way.pop_front() else {
            break;
        };
        let done = exchange.finish(&pending, &mut |read| {
            let Some(told) = body(read)? else {
                return Ok(false);
            };
            // Content without a UID may belong to any of the requested messages. Each of them is requested again, alone.
            let Some(uid) = told.uid else {
                return Ok(false);
            };
            let size = match told.from {
                0 => missing.get(&uid).copied(),
                _ => None,
            };
            let Some(size) = size else {
                return Ok(true);
            };
            let now = match (arrived.remove(&uid), told.octets) {
                (before, Some(octets))
                    if octets.len() < PIECE
                        && (octets.len() as u64 == size
                            || octets.len() as u64 > size && told.is_closed) =>
                {
                    let octets = octets.into_owned();
                    match before {
                        Some(before) => before.and(octets),
                        None => BodyPieces::Content(octets),
                    }
                }
                _ => BodyPieces::Odd,
            };
            arrived.insert(uid, now);
            Ok(true)
        });
        for uid in uids {
            let Some(size) = missing.remove(&uid) else {
                continue;
            };
            match arrived.remove(&uid) {
                Some(BodyPieces::Content(octets))
                    if octets.len() as u64 > size && !exchange.habits.sizes_are_wrong() =>
                {
                    alone.push((uid, size, vec![hash(&octets)]));
                }
                Some(BodyPieces::Content(octets)) => {
                    exchange.habits.exact_sizes += u64::from(octets.len() as u64 == size);
                    sink(uid, BodyPiece::Octets(&octets))?;
                    sink(uid, BodyPiece::Whole)?;
                }
                Some(BodyPieces::Different(hashes)) => alone.push((uid, size, hashes)),
                Some(BodyPieces::Odd) | None => alone.push((uid, size, Vec::new())),
            }
        }
        if !tolerated(exchange, done)? {
            exchange.habits.refused_in_a_row = 0;
        }
    }
    for (uid, size, hashes) in alone {
        let whole = match size {
            // A size of 0 means that the server did not return RFC822.SIZE. The message can then have any size up to the
            // maximum.
            0 => MOST_WHOLE,
            size => usize::try_from(size).unwrap_or(usize::MAX),
        };
        exchange.allow(whole.saturating_add(MORE).min(MOST_WHOLE));
        let done = match hashes.as_slice() {
            [] => body_alone(exchange, uid, size, sink),
            hashes => one_of(exchange, uid, size, hashes, sink),
        };
        exchange.allow(0);
        done?;
    }
    Ok(())
}

/// Returns whether a message of this size is requested on its own, after the small ones. The size 0 is unknown.
pub(super) fn is_large(size: u64) -> bool {
    !(1..PIECE as u64).contains(&size)
}

/// Requests a message once more, because different contents arrived for it, or one that is longer than announced. The
/// result is accepted if it is one of these contents. If there was only one, any content of the announced size is
/// accepted, too.
fn one_of(
    exchange: &mut Exchange,
    uid: u32,
    size: u64,
    hashes: &[u64],
    sink: &mut BodySink<'_>,
) -> Result<(), ImapFailure> {
    let (mut content, mut is_whole) = (Vec::new(), false);
    body_alone(exchange, uid, size, &mut |_, piece| {
        match piece {
            BodyPiece::Octets(octets) => content.extend_from_slice(octets),
            BodyPiece::Whole => is_whole = true,
            BodyPiece::Gone => {}
        }
        Ok(())
    })?;
    let is_confirmed = hashes.contains(&hash(&content));
    let is_of_size = content.len() as u64 == size;
    let is_right = is_confirmed || is_of_size && hashes.len() == 1;
    if !is_whole || !is_right {
        return sink(uid, BodyPiece::Gone);
    }
    exchange.habits.wrong_sizes += u64::from(is_confirmed && !is_of_size);
    exchange.habits.exact_sizes += u64::from(is_of_size);
    sink(uid, BodyPiece::Octets(&content))?;
    sink(uid, BodyPiece::Whole)
}

/// Returns the number of messages at the start of `messages` that are requested with one command.
fn batch(messages: &[(u32, u64)]) -> usize {
    let mut octets = 0;
    let fits = |(_, size): &&(u32, u64)| {
        let fits = octets < BATCH_OCTETS;
        octets += size;
        fits
    };
    messages
        .iter()
        .take(BATCH_MESSAGES)
        .take_while(fits)
        .count()
}

/// The content in a FETCH response: a whole message or a piece of it.
struct ToldBody<'r> {
    /// `None` if the response has no UID.
    uid: Option<u32>,
    /// Position of the content in the message: the number of bytes of the message before it.
    from: u64,
    /// Bytes of the content. `None` if the server returned NIL instead of the content.
    octets: Option<Cow<'r, [u8]>>,
    /// Whether the server ignored the range in the request and returned the whole message.
    is_whole: bool,
    /// Whether the response has its closing parenthesis. If not, the content may be cut off, so it is accepted only if
    /// its length is the announced size (RFC822.SIZE).
    is_closed: bool,
}

/// Returns the content in a response, or `None` if the response contains no content.
fn body<'r>(read: &ServerResponse<'r>) -> Result<Option<ToldBody<'r>>, ImapFailure> {
    let ServerResponse::Numbered(_, word, rest) = read else {
        return Ok(None);
    };
    if word != "FETCH" {
        return Ok(None);
    }
    let (items, is_closed) = unclosed_fetch_items(rest).map_err(ImapFailure::Unreadable)?;
    let uid = uid(&items);
    for [name, value] in items {
        let ResponseValue::Atom(name) = name else {
            continue;
        };
        let Some(origin) = name
            .get(..6)
            .filter(|it| it.eq_ignore_ascii_case(b"BODY[]"))
        else {
            continue;
        };
        let origin = &name[origin.len()..];
        let inner = origin
            .strip_prefix(b"<")
            .and_then(|it| it.strip_suffix(b">"));
        let from = match inner {
            // No position in the response: the server ignored the requested range, and sent the whole message.
            None if origin.is_empty() => 0,
            inner => inner.and_then(number).ok_or(ImapFailure::Unreadable(
                "the server sent a part of a message without the position of the part",
            ))?,
        };
        let octets = match value {
            ResponseValue::Text(octets) => Some(octets),
            _ => None,
        };
        let is_whole = origin.is_empty() || octets.as_ref().is_some_and(|it| it.len() > PIECE);
        return Ok(Some(ToldBody {
            uid,
            from,
            octets,
            is_whole,
            is_closed,
        }));
    }
    Ok(None)
}

/// Progress of one large message, whose pieces are requested with separate commands.
struct PieceProgress {
    size: u64,
    /// Number of bytes of the message that were passed to the sink, the callback that receives pieces in their order.
    given: u64,
    /// Pieces that arrived before an earlier piece, by their position. At most [`AHEAD`] pieces are kept.
    early: BTreeMap<u64, Vec<u8>>,
    /// Whether a response had no UID, so that only the length shows that its content belongs to the message.
    lacks_uid: bool,
    /// Hashes of the pieces that arrived, by their position.
    hashes: BTreeMap<u64, u64>,
    /// Whether two different pieces arrived for the same position, so that the content is not certain.
    is_torn: bool,
    end: Option<BodyPiece<'static>>,
}

impl PieceProgress {
    fn take(
        &mut self,
        uid: u32,
        octets: &[u8],
        sink: &mut BodySink<'_>,
    ) -> Result<(), ImapFailure> {
        if !octets.is_empty() {
            sink(uid, BodyPiece::Octets(octets))?;
        }
        self.given += octets.len() as u64;
        if octets.is_empty() || octets.len() != PIECE && self.given >= self.size {
            // Nothing arrived although the message should have a size, so it no longer exists.
            let is_nothing = self.given == 0 && self.size > 0;
            let may_be_other = self.lacks_uid && self.given != self.size;
            self.end = Some(if is_nothing || may_be_other {
                BodyPiece::Gone
            } else {
                BodyPiece::Whole
            });
        }
        Ok(())
    }
}

/// Requests one message piece by piece.
fn body_alone(
    exchange: &mut Exchange,
    uid: u32,
    size: u64,
    sink: &mut BodySink<'_>,
) -> Result<(), ImapFailure> {
    let mut alone = PieceProgress {
        size,
        given: 0,
        early: BTreeMap::new(),
        lacks_uid: false,
        hashes: BTreeMap::new(),
        is_torn: false,
        end: None,
    };
    let accepts_no_uid = exchange.habits.accepts_no_uid;
    // Position in the message, in bytes, of the next piece to request.
    let mut next = 0;
    let mut under_way: VecDeque<(PendingCommand, u64)> = VecDeque::new();
    let mut is_again = false;
    loop {
        let ahead = if exchange.habits.gives_all { 1 } else { AHEAD };
        while alone.end.is_none()
            && under_way.len() < ahead
            && (under_way.is_empty() || next < size)
        {
            // If a piece was shorter than requested, the positions of later requests are wrong. The next request starts after
            // the bytes received so far.
            if under_way.is_empty() {
                next = alone.given;
                alone.early.clear();
            }
            let from = u32::try_from(next).map_err(|_| ImapFailure::TooLarge(u32::MAX as usize))?;
            let text = format!("UID FETCH {uid} (UID BODY.PEEK[]<{from}.{PIECE}>)");
            under_way.push_back((exchange.send(ImapCommand::new("FETCH", &text))?, next));
            next += PIECE as u64;
        }
        let Some((pending, from)) = under_way.pop_front() else {
            break;
        };
        let mut gives_all = exchange.habits.gives_all;
        let done = exchange.finish(&pending, &mut |read| {
            let Some(told) = body(read)? else {
                return Ok(false);
            };
            let is_meant = told.uid.map_or(accepts_no_uid, |it| it == uid);
            if !is_meant {
                return Ok(told.uid.is_some());
            }
            if let Some(octets) = told.octets.as_ref().filter(|_| told.is_closed) {
                let now = hash(octets);
                let before = *alone.hashes.entry(told.from).or_insert(now);
                alone.is_torn |= before != now;
            }
            if alone.end.is_some() {
                return Ok(told.uid.is_some());
            }
            alone.lacks_uid |= told.uid.is_none();
            gives_all |= told.is_whole;
            match told.octets {
                // The server ignores the position and sends the message from its beginning. This content is skipped,
                // because the beginning is already stored.
                Some(_) if gives_all && told.from > 0 => {}
                Some(octets) if !told.is_closed && octets.len() as u64 != size => {}
                None => alone.end = Some(BodyPiece::Gone),
                Some(octets) if told.from == alone.given => {
                    alone.take(uid, &octets, sink)?;
                    while alone.end.is_none()
                        && let Some(octets) = alone.early.remove(&alone.given)
                    {
                        alone.take(uid, &octets, sink)?;
                    }
                }
                Some(octets) if told.from > alone.given && alone.early.len() < AHEAD => {
                    alone.early.insert(told.from, octets.into_owned());
                }
                Some(_) => {}
            }
            Ok(true)
        });
        exchange.habits.gives_all |= gives_all;
        if alone.end.is_none() && done.as_ref().is_err_and(is_unavailable) {
            // The other pending commands for this message will be refused for the same reason, so their results are
            // read and dropped.
            for (pending, _) in under_way.drain(..) {
                match exchange.finish(&pending, &mut |read| Ok(body(read)?.is_some())) {
                    Ok(_) | Err(ImapFailure::Refused { .. } | ImapFailure::Unreadable(_)) => {}
                    Err(why) => return Err(why),
                }
            }
            match given(exchange, done, is_again)? {
                None => is_again = true,
                Some(_) => alone.end = Some(BodyPiece::Gone),
            }
            continue;
        }
        if !tolerated(exchange, done)? {
            exchange.habits.refused_in_a_row = 0;
        }
        // The command for this piece returned no content, so the message cannot be completed and is given up.
        if alone.end.is_none() && alone.given == from {
            alone.end = Some(BodyPiece::Gone);
        }
    }
    match alone.end {
        Some(end) if !alone.is_torn => sink(uid, end),
        _ => sink(uid, BodyPiece::Gone),
    }
}
