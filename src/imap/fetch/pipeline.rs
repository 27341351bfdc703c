//! Sends FETCH commands for many messages, several at a time, and requests messages again, in smaller groups, if the server
//! refuses a command.

use std::collections::{HashSet, VecDeque};

use super::items::{items, uid};
use crate::imap::command::{ImapCommand, batches, sequence_set};
use crate::imap::exchange::{Exchange, PendingCommand};
use crate::imap::failure::ImapFailure;
use crate::imap::response::{ResponseValue, ServerResponse};

/// Number of messages in one command for metadata.
const MANY: usize = 1000;
/// Number of messages per command after a command for [`MANY`] messages was refused. If this is refused too, messages
/// are requested one by one.
const FEW: usize = 30;
/// Number of consecutive temporary refusals after which the server is assumed to have a problem. Fewer refusals are attributed
/// to the messages, which are then skipped.
const REFUSED_IN_A_ROW: u32 = 3;
/// Maximum number of pending commands.
pub(in crate::imap) const AHEAD: usize = 3;

/// Receiver of the items in FETCH responses.
pub(super) trait FetchListener {
    /// Stores the items of a message. Returns true if any of them was requested and is new. `is_simple` is true for a
    /// command that requests fewer items, after the server failed on the full request.
    fn hear(
        &mut self,
        uid: u32,
        items: &[[ResponseValue<'_>; 2]],
        is_simple: bool,
    ) -> Result<bool, ImapFailure>;

    /// Returns whether the server has not yet returned all requested items of a message.
    fn lacks(&self, uid: u32) -> bool;
}

/// Requests the metadata of messages, many at a time. If the server refuses a command or sends an unreadable
/// response, the incomplete messages are requested again: in small batches, then one by one, and finally with
/// fewer items. One damaged message can make a whole command fail, but must not affect the metadata of the
/// other messages.
pub(super) fn ask(
    exchange: &mut Exchange,
    uids: &[u32],
    wanted: &str,
    simpler: &[&str],
    listener: &mut dyn FetchListener,
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
        if done == SingleFetch::NotNow {
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
    read: &ServerResponse<'_>,
    listener: &mut dyn FetchListener,
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
pub(in crate::imap) enum SingleFetch {
    Told,
    Refused,
    /// The server refused the message twice with UNAVAILABLE, which means that the error is temporary.
    NotNow,
}

/// Requests one message. If the server refuses it temporarily, waits for a moment and requests it again.
///
/// # Errors
/// [`ImapFailure::Refused`] if the server refuses several messages in a row temporarily. The caller can wait longer and repeat.
pub(in crate::imap) fn alone(
    exchange: &mut Exchange,
    uid: u32,
    wanted: &str,
    each: &mut dyn FnMut(&ServerResponse<'_>) -> Result<bool, ImapFailure>,
) -> Result<SingleFetch, ImapFailure> {
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

/// Decides how to continue after a FETCH of one message. After a temporary refusal, returns `None`: the caller must
/// repeat the FETCH, with `is_again` set, so that it is repeated only once.
pub(in crate::imap) fn given<D>(
    exchange: &mut Exchange,
    done: Result<D, ImapFailure>,
    is_again: bool,
) -> Result<Option<SingleFetch>, ImapFailure> {
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
                Ok(Some(SingleFetch::NotNow))
            }
        }
        done => {
            let is_refused = tolerated(exchange, done)?;
            exchange.habits.refused_in_a_row = 0;
            Ok(Some(if is_refused {
                SingleFetch::Refused
            } else {
                SingleFetch::Told
            }))
        }
    }
}

/// Returns whether the server refused a command with UNAVAILABLE, a temporary error.
pub(in crate::imap) fn is_unavailable(why: &ImapFailure) -> bool {
    matches!(why, ImapFailure::Refused { code, .. } if code.as_deref() == Some("UNAVAILABLE"))
}

/// Returns whether the server refused a FETCH in a way that the run tolerates. A NO to a FETCH means that some messages
/// no longer exist (RFC 2180 §4.1) or are damaged. The responses about other messages may be missing, too.
///
/// # Errors
/// Errors that end the session, and refusals with a request to try again later.
pub(in crate::imap) fn tolerated<D>(
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

/// Function that reads the responses of one batch, up to the end of its command.
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
