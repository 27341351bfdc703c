//! Messages that stand several times, as in an export with a mailbox for each label, and attachments that do; hashes bound
//! the memory.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::FixedState;
use serde::Serialize;

use super::tally::{Amount, Counts as _};
use crate::mime::{Field, PartId, Tree};
use crate::span::Span;

/// As many as a table of a million buckets holds, 18 MB: one more would double it.
pub const MESSAGES: usize = (1 << 20) / 8 * 7;

/// Copies of one message differ in these.
const OF_MAILBOXES: [&str; 12] = [
    "Status",
    "X-Status",
    "X-UID",
    "X-UIDL",
    "X-Keywords",
    "X-Mozilla-Status",
    "X-Mozilla-Status2",
    "X-Mozilla-Keys",
    "X-Gmail-Labels",
    "X-GM-THRID",
    "Content-Length",
    "Lines",
];

/// Two messages share one by chance once in fifty million mailboxes. A stranger may make two that do; that changes a
/// count, and no mail. SHA-256 took a quarter of the time of a survey.
pub type Hash = u64;

#[derive(Debug, Serialize)]
pub struct Copies<K, const MOST: usize> {
    #[serde(flatten)]
    pub repeated: Amount,
    pub uncompared: Amount,
    /// Octets by hash.
    #[serde(skip)]
    known: HashMap<K, u64>,
    /// The first message waits here: one alone needs no table.
    #[serde(skip)]
    alone: Option<(K, u64)>,
}

/// Also of a hash that has no default.
impl<K, const MOST: usize> Default for Copies<K, MOST> {
    fn default() -> Self {
        Self {
            repeated: Amount::default(),
            uncompared: Amount::default(),
            known: HashMap::new(),
            alone: None,
        }
    }
}

impl Copies<Hash, MESSAGES> {
    pub fn of(tree: &Tree<'_>) -> Self {
        let mut hash = FixedState::default().build_hasher();
        let mut from = tree.root().envelope.end;
        for whole in tree.fields(PartId::ROOT).wholes() {
            // Two pieces have another hash than both as one.
            let before = Span::new(from, whole.start.max(from)).of(tree.original);
            if !before.is_empty() {
                hash.write(before);
            }
            if !is_of_mailbox(tree.original, whole) {
                hash.write(whole.of(tree.original));
            }
            from = whole.end;
        }
        hash.write(Span::new(from, tree.original.len()).of(tree.original));
        Self {
            alone: Some((hash.finish(), tree.original.len() as u64)),
            ..Self::default()
        }
    }
}

impl<K: Ord + std::hash::Hash, const MOST: usize> Copies<K, MOST> {
    pub fn add(&mut self, other: Self) {
        self.repeated.add(&other.repeated);
        self.uncompared.add(&other.uncompared);
        if let Some(message) = self.alone.take() {
            self.compare(message);
        }
        if self.known.is_empty() {
            self.known = other.known;
        } else {
            // Sorted, so that the same mail always gives the same survey, at the bound too.
            let mut known: Vec<(K, u64)> = other.known.into_iter().collect();
            known.sort_unstable();
            known.into_iter().for_each(|message| self.compare(message));
        }
        if let Some(message) = other.alone {
            self.compare(message);
        }
    }

    pub fn compare(&mut self, (hash, octets): (K, u64)) {
        // The `entry` of the table would make room for one more.
        if self.known.contains_key(&hash) {
            self.repeated.count(octets);
        } else if self.known.len() >= MOST {
            self.uncompared.count(octets);
        } else {
            self.known.insert(hash, octets);
        }
    }
}

fn is_of_mailbox(message: &[u8], whole: Span) -> bool {
    let first = whole.of(message).first().map(u8::to_ascii_uppercase);
    let is_named = || {
        let field = Field::of(message, whole);
        OF_MAILBOXES.iter().any(|name| field.is(message, name))
    };
    matches!(first, Some(b'C' | b'L' | b'S' | b'X')) && is_named()
}
