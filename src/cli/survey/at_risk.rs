//! Messages at risk: those that would lose most if the servers of their pictures and attachments disappeared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;

use super::broken::Large;
use crate::error::unpoisoned;

/// Maximum number of messages that are listed.
pub(super) const LISTED: usize = 20;

/// Weight of an attachment, relative to a picture, which has the weight 1.
const ATTACHMENT: u64 = 20;

/// A message with content on servers.
#[derive(Clone, Debug)]
pub(crate) struct AtRisk {
    /// Number of pictures on the web.
    pub pictures: u64,
    /// Number of missing attachments that a server may still have.
    pub attachments: u64,
    pub message: Large,
}

pub(super) fn weight(pictures: u64, attachments: u64) -> u64 {
    pictures.saturating_add(attachments.saturating_mul(ATTACHMENT))
}

/// Keeps only the messages with the largest weights. Among equal weights, the first messages are kept.
pub(super) fn merge(listed: &mut Vec<AtRisk>, others: Vec<AtRisk>) {
    if others.is_empty() {
        return;
    }
    listed.extend(others);
    listed.sort_by_key(|it| Reverse(weight(it.pictures, it.attachments)));
    listed.truncate(LISTED);
}

/// The largest weights so far, shared by all threads. A message with a smaller weight cannot get into the list, so its
/// subject need not be parsed.
#[derive(Debug)]
pub(super) struct LargestWeights {
    most: usize,
    seen: Mutex<BinaryHeap<Reverse<u64>>>,
}

impl LargestWeights {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            seen: Mutex::default(),
        }
    }

    /// Returns whether a message with this weight can still get into the list.
    pub(super) fn may_contain(&self, weight: u64) -> bool {
        let mut seen = unpoisoned(self.seen.lock());
        if seen.len() < self.most {
            seen.push(Reverse(weight));
            return true;
        }
        let least = seen.peek().map_or(0, |it| it.0);
        if weight > least {
            seen.pop();
            seen.push(Reverse(weight));
        }
        // Equal weights count too: among them, the first message of the mailbox must be listed, and threads do not
        // finish in the order of the mailbox.
        weight >= least
    }
}
