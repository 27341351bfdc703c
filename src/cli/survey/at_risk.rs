//! The messages that would lose most if the servers of their pictures and attachments disappeared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;

use super::broken::Large;
use crate::error::unpoisoned;

/// Maximum number of messages that are listed.
pub(super) const LISTED: usize = 20;

/// Weight of an attachment. A picture has the weight 1.
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

/// Keeps only the messages with the largest weight. Of messages with the same weight, the first ones are kept.
pub(super) fn merge(listed: &mut Vec<AtRisk>, others: Vec<AtRisk>) {
    if others.is_empty() {
        return;
    }
    listed.extend(others);
    listed.sort_by_key(|it| Reverse(weight(it.pictures, it.attachments)));
    listed.truncate(LISTED);
}

/// The largest weights that any thread has seen. A message with a smaller weight cannot be among the first ones of a list,
/// so its subject is not parsed.
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

    /// Returns whether a message with this weight may be among the first ones of the list.
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
        // A message of equal weight is also a candidate: of several messages with the same weight, the list must contain
        // the first one of the mailbox, and threads do not finish in the order of the mailbox.
        weight >= least
    }
}
