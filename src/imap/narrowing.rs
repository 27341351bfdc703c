//! Finds the messages at which the server ends the connection.
//!
//! Some servers end the session whenever a damaged message is requested: they close the connection, send BYE, break off in a
//! literal, or send nothing until the time limit. Without this module, no message after the damaged one could ever be read.
//! The messages that have not arrived are requested again in smaller groups, until a group has only one message. If the
//! connection ends at this message twice more, the message is given up, and the run continues with the others. A message is
//! requested at most about 5 + log2(n) times, where n is the number of messages in the first group.

use super::retry::RetryPatience;

/// Number of failed requests after which a whole group is split. The first failure may have another cause, such as a network
/// that was interrupted.
const FAILED_GROUP: u32 = 2;
/// Number of failed requests after which a single message is given up.
const FAILED_ALONE: u32 = 2;

/// Maximum number of messages in the first group.
pub(super) const AT_A_TIME: usize = 5000;

/// A message to request: a UID, with its size if that is known.
pub(super) trait RequestedMessage: Copy {
    fn uid(&self) -> u32;

    /// Returns the announced size in bytes, or 0 if only metadata are requested.
    fn size(&self) -> u64;
}

impl RequestedMessage for u32 {
    fn uid(&self) -> u32 {
        *self
    }

    fn size(&self) -> u64 {
        0
    }
}

impl RequestedMessage for (u32, u64) {
    fn uid(&self) -> u32 {
        self.0
    }

    fn size(&self) -> u64 {
        self.1
    }
}

/// Groups of messages that are still to be requested.
pub(super) struct BreakSearch<T> {
    /// The next group is the last element.
    groups: Vec<MessageGroup<T>>,
}

struct MessageGroup<T> {
    messages: Vec<T>,
    /// Number of consecutive failed requests for this group. A failure after the arrival of a message counts as the first one.
    failed: u32,
    /// Whether the group contains a message at which the connection ended, so that it is split after one more failure.
    is_suspect: bool,
}

impl<T: Copy> BreakSearch<T> {
    /// Takes the messages in the order in which the server receives their requests.
    pub(super) fn of(messages: Vec<T>) -> Self {
        let mut narrowing = Self { groups: Vec::new() };
        narrowing.push(messages, 0, false);
        narrowing
    }

    /// Returns the next messages to request, or `None` if no group is left.
    pub(super) fn next(&self) -> Option<&[T]> {
        self.groups.last().map(|group| group.messages.as_slice())
    }

    /// Returns how long the request for the next group may wait for the server.
    pub(super) fn patience(&self) -> RetryPatience
    where
        T: RequestedMessage,
    {
        let Some(group) = self.groups.last() else {
            return RetryPatience::Command;
        };
        let sizes = group.messages.iter().map(RequestedMessage::size);
        let size = sizes.max().unwrap_or(0);
        let is_last = group.messages.len() == 1 && group.failed + 1 >= FAILED_ALONE;
        let is_narrow = group.is_suspect || group.failed > 0;
        if is_narrow && !is_last {
            RetryPatience::Search(size)
        } else {
            RetryPatience::Messages(size)
        }
    }

    /// Removes the group that [`next`](Self::next) returned, after all its messages were requested.
    pub(super) fn done(&mut self) {
        self.groups.pop();
    }

    /// Keeps only `rest` of the group that [`next`](Self::next) returned.
    pub(super) fn keep(&mut self, rest: Vec<T>) {
        let group = self.groups.pop();
        if let Some(MessageGroup {
            failed, is_suspect, ..
        }) = group
        {
            self.push(rest, failed, is_suspect);
        }
    }

    /// Splits the group that [`next`](Self::next) returned, because the connection ended. `rest` contains the messages that did
    /// not arrive. Returns a message that is given up.
    pub(super) fn failed(&mut self, rest: Vec<T>) -> Option<T> {
        let group = self.groups.pop()?;
        let is_progress = rest.len() < group.messages.len();
        let failed = if is_progress { 1 } else { group.failed + 1 };
        match rest.as_slice() {
            [] => None,
            [alone] if failed >= FAILED_ALONE && group.messages.len() == 1 => Some(*alone),
            [_] => {
                // The failure was that of a larger group, so the count for this single message starts at zero.
                let failed = if group.messages.len() == 1 { failed } else { 0 };
                self.push(rest, failed, true);
                None
            }
            [_, _, ..] if group.is_suspect || failed >= FAILED_GROUP => {
                // Servers usually send messages in the order of the requests, so if nothing arrived, the first message
                // is probably the bad one, and is requested alone. If it arrives, the server checks all messages before
                // sending any, so the rest is bisected.
                let middle = if group.is_suspect { rest.len() / 2 } else { 1 };
                let (before, behind) = rest.split_at(middle);
                self.push(behind.to_vec(), 0, true);
                self.push(before.to_vec(), 0, true);
                None
            }
            _ => {
                self.push(rest, failed, false);
                None
            }
        }
    }

    fn push(&mut self, messages: Vec<T>, failed: u32, is_suspect: bool) {
        if !messages.is_empty() {
            self.groups.push(MessageGroup {
                messages,
                failed,
                is_suspect,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Requests the messages 0 to `count` of a server that ends the connection at the messages `bad`. A server that streams
    /// sends the messages before the bad one. Returns the messages that arrived, those that were given up, and how often each
    /// bad message was requested.
    fn requested(
        count: u32,
        bad: &BTreeSet<u32>,
        streams: bool,
    ) -> (Vec<u32>, Vec<u32>, BTreeMap<u32, u32>) {
        let mut narrowing = BreakSearch::of((0..count).collect());
        let (mut arrived, mut given_up, mut requests) = (Vec::new(), Vec::new(), BTreeMap::new());
        while let Some(group) = narrowing.next().map(<[u32]>::to_vec) {
            let hit = group.iter().position(|it| bad.contains(it));
            let Some(hit) = hit else {
                arrived.extend(group);
                narrowing.done();
                continue;
            };
            let known = if streams { hit } else { 0 };
            let seen = if streams { hit + 1 } else { group.len() };
            for uid in group[..seen].iter().filter(|it| bad.contains(it)) {
                *requests.entry(*uid).or_default() += 1;
            }
            arrived.extend(&group[..known]);
            given_up.extend(narrowing.failed(group[known..].to_vec()));
        }
        arrived.sort_unstable();
        given_up.sort_unstable();
        (arrived, given_up, requests)
    }

    #[test]
    fn each_bad_message_is_found_with_few_requests_and_all_others_arrive() {
        for (count, bad) in [
            (1, vec![0]),
            (2, vec![1]),
            (5, vec![1]),
            (5, vec![0, 1, 2, 3, 4]),
            (500, vec![499]),
            (500, vec![0, 250, 251]),
            (5000, vec![1, 2, 4999]),
            (64, vec![]),
        ] {
            let bad: BTreeSet<u32> = bad.into_iter().collect();
            for streams in [true, false] {
                let (arrived, given_up, requests) = requested(count, &bad, streams);
                assert!(given_up.iter().eq(&bad), "{count} {bad:?} {streams}");
                assert!(
                    arrived
                        .iter()
                        .copied()
                        .eq((0..count).filter(|it| !bad.contains(it)))
                );
                assert!(
                    requests.values().all(|requests| *requests <= 18),
                    "{count} {streams}: {requests:?}"
                );
            }
        }
    }

    #[test]
    fn interrupted_network_gives_up_no_message() {
        let mut narrowing = BreakSearch::of((0..100).collect());
        // The connection breaks at random, each time after one more message has arrived.
        for _ in 0..60 {
            let group = narrowing.next().unwrap().to_vec();
            assert_eq!(narrowing.failed(group[1..].to_vec()), None);
        }
        assert_eq!(narrowing.next().unwrap().len(), 40);
    }
}
