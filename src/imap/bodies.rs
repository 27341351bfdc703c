//! FETCH of whole messages, in pieces; several commands are under way at a time.
//!
//! A body is always asked for in pieces (`BODY.PEEK[]<0.1048576>`), also a small one: RFC822.SIZE is no promise, and so a
//! literal is not longer than was asked for. Some servers give the whole message nevertheless (Exchange): it is taken, within the
//! size that the server told, and then one piece is asked for at a time. A piece that is shorter than it and ends before RFC822.SIZE is no end: what is
//! behind it is asked for, until nothing comes.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::command::{ImapCommand, sequence_set};
use super::exchange::{Exchange, PendingCommand};
use super::failure::ImapFailure;
use super::fetch::{AHEAD, given, is_unavailable, tolerated, uid};
use super::response::{Response, Value, number, unclosed_fetch_items};

/// Octets that are asked for at a time.
const PIECE: usize = 1 << 20;
/// Octets and messages that one command asks for.
const BATCH_OCTETS: u64 = 512 << 10;
const BATCH_MESSAGES: usize = 100;
/// Octets that a response has besides a whole message, and that RFC822.SIZE may lack of it.
const MORE: usize = 1 << 20;
/// Octets of a response with a whole message in it: larger ones must come in pieces.
const MOST_WHOLE: usize = 256 << 20;

/// What comes of a message's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyPiece<'p> {
    Octets(&'p [u8]),
    /// All was given.
    Whole,
    /// The server does not give it, or not to its end: what was given is nothing. It is there no more, or damaged.
    Gone,
}

/// Takes what comes of messages' content.
pub(crate) type BodySink<'s> = dyn FnMut(u32, BodyPiece<'_>) -> Result<(), ImapFailure> + 's;

/// The whole of each message.
///
/// A server may give what a later command asks for while it does an earlier one, as Dovecot does.
pub(super) fn bodies(
    exchange: &mut Exchange,
    messages: &[(u32, u64)],
    sink: &mut BodySink<'_>,
) -> Result<(), ImapFailure> {
    let (small, mut alone): (Vec<_>, Vec<_>) = messages
        .iter()
        .copied()
        .partition(|(_, size)| (1..PIECE as u64).contains(size));
    let mut rest = small.as_slice();
    let mut missing: BTreeMap<u32, u64> = BTreeMap::new();
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
            let size = match told.from {
                0 => missing.remove(&told.uid),
                _ => None,
            };
            let Some(size) = size else {
                return Ok(true);
            };
            match told.octets {
                Some(octets)
                    if octets.len() < PIECE
                        && (octets.len() as u64 == size
                            || octets.len() as u64 > size && told.is_closed) =>
                {
                    sink(told.uid, BodyPiece::Octets(&octets))?;
                    sink(told.uid, BodyPiece::Whole)?;
                }
                _ => alone.push((told.uid, size)),
            }
            Ok(true)
        });
        for uid in uids {
            alone.extend(missing.remove(&uid).map(|size| (uid, size)));
        }
        if !tolerated(exchange, done)? {
            exchange.habits.refused_in_a_row = 0;
        }
    }
    for (uid, size) in alone {
        let whole = match size {
            // The server does not tell it.
            0 => MOST_WHOLE,
            size => usize::try_from(size).unwrap_or(usize::MAX),
        };
        exchange.allow(whole.saturating_add(MORE).min(MOST_WHOLE));
        let done = body_alone(exchange, uid, size, sink);
        exchange.allow(0);
        done?;
    }
    Ok(())
}

/// How many of the messages are asked for at a time.
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

/// A body, or a piece of it, in a response.
struct ToldBody<'r> {
    uid: u32,
    /// Where it begins.
    from: u64,
    /// None: NIL.
    octets: Option<Cow<'r, [u8]>>,
    /// The server takes no notice of how much was asked for.
    is_whole: bool,
    /// False: the response ends before its list does, so the length may be wrong. It counts if it is RFC822.SIZE.
    is_closed: bool,
}

/// The body in a response; None for another response.
fn body<'r>(read: &Response<'r>) -> Result<Option<ToldBody<'r>>, ImapFailure> {
    let Response::Numbered(_, word, rest) = read else {
        return Ok(None);
    };
    if word != "FETCH" {
        return Ok(None);
    }
    let (items, is_closed) = unclosed_fetch_items(rest).map_err(ImapFailure::Unreadable)?;
    let Some(uid) = uid(&items) else {
        return Ok(None);
    };
    for [name, value] in items {
        let Value::Atom(name) = name else {
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
            // A server that takes no notice of how much was asked for gives the whole.
            None if origin.is_empty() => 0,
            inner => inner.and_then(number).ok_or(ImapFailure::Unreadable(
                "part of a message was sent without its position in the message",
            ))?,
        };
        let octets = match value {
            Value::Text(octets) => Some(octets),
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

/// What came of a message that is read alone.
struct Alone {
    size: u64,
    /// Octets that were given.
    given: u64,
    /// Pieces that came before their turn: no more than were asked for.
    early: BTreeMap<u64, Vec<u8>>,
    end: Option<BodyPiece<'static>>,
}

impl Alone {
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
            // A message of which nothing comes, and that has a size, is not there.
            let is_nothing = self.given == 0 && self.size > 0;
            self.end = Some(match is_nothing {
                true => BodyPiece::Gone,
                false => BodyPiece::Whole,
            });
        }
        Ok(())
    }
}

/// One message, piece by piece.
fn body_alone(
    exchange: &mut Exchange,
    uid: u32,
    size: u64,
    sink: &mut BodySink<'_>,
) -> Result<(), ImapFailure> {
    let mut alone = Alone {
        size,
        given: 0,
        early: BTreeMap::new(),
        end: None,
    };
    // What is asked for next.
    let mut next = 0;
    let mut under_way: VecDeque<(PendingCommand, u64)> = VecDeque::new();
    let mut is_again = false;
    loop {
        let ahead = match exchange.habits.gives_all {
            true => 1,
            false => AHEAD,
        };
        while alone.end.is_none()
            && under_way.len() < ahead
            && (under_way.is_empty() || next < size)
        {
            // What was asked for behind a short piece is not what comes next.
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
            if told.uid != uid || alone.end.is_some() {
                return Ok(true);
            }
            gives_all |= told.is_whole;
            match told.octets {
                // It begins at the beginning, whatever the server says: it would be there twice.
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
            // The others that are under way are refused as this one was.
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
        // It was all there was to say of this piece.
        if alone.end.is_none() && alone.given == from {
            alone.end = Some(BodyPiece::Gone);
        }
    }
    sink(uid, alone.end.unwrap_or(BodyPiece::Gone))
}
