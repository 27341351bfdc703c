//! Counts of a survey, and counts of repeated messages and attachments, as in an export with one mailbox for each
//! label. Mail is untrusted, so memory is limited.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::FixedState;
use serde::Serialize;

use super::super::tally::{Amount, TallyCounts, counts};
use crate::mime::{Field, MessageTree, PartId};
use crate::span::Span;

counts! {
    Mail { mailboxes, messages, octets, oversized, }

    Year { messages, octets, attachments, attachment_octets, pictures, references, }

    Host { pictures, trackers, references, alive, dead, archived, lost, refused, }

    Type {
        attachments, octets, large, large_octets, leave, leave_octets,
        inline, inline_octets,
    }

    Pictures {
        /// Pictures on the web, without trackers.
        remote,
        trackers,
        in_mail,
        /// Pictures whose part is not in the mail.
        missing,
        data,
        data_octets,
        elsewhere,
    }

    Links {
        documents,
        /// Documents that were not read completely, so that some of their links may be missing in the counts.
        unread,
        count,
        relative,
        with_base,
        to_parts,
        /// Cloud storage links in plain text, in mail without HTML.
        cloud_in_text,
    }

    /// Results of a probe for external content.
    Answers {
        alive,
        /// Content that no longer exists: status 404 or 410, an unknown host, or other content in its place.
        gone,
        /// No usable response in this run.
        silent,
        /// The server requires a login or denies access.
        denied,
        /// The policy does not allow the request or the response.
        refused,
        unasked,
        /// The host name could not be resolved. At the end of the run, [`Survey::settle`](super::sum::Survey::settle)
        /// decides whether such content counts as gone.
        #[serde(skip)]
        unresolved,
    }

    /// Outcomes of the references to one host: the content was saved, is lost, may be available in another run
    /// (`again`), or was denied by the server or the policy (`left`). At the end of the run, `unresolved` is added to
    /// `lost` or `again`.
    Fates { saved, lost, again, left, unresolved, }

    Probe {
        alive,
        dead,
        /// The policy does not allow the request or the response.
        refused,
        /// No request was made, because of a limit or because the picture is a tracker.
        unasked,
        /// A web archive has the content. `archived` and `lost` are printed only if an archive was used.
        archived,
        lost,
    }
}

impl Fates {
    pub(super) fn sum(&self) -> u64 {
        self.saved + self.lost + self.again + self.left + self.unresolved
    }
}

impl Answers {
    /// Returns the number of references for which a request was made.
    pub(crate) fn asked(&self) -> u64 {
        self.alive + self.gone + self.silent + self.denied + self.unresolved
    }

    /// Decides at the end of the run whether content on unresolvable hosts is gone. If no server responded at all, the
    /// network was probably down, so a later run may still find the content.
    pub(super) fn settle(&mut self, has_no_response: bool) {
        let unresolved = std::mem::take(&mut self.unresolved);
        if has_no_response {
            // No server responded, so a status such as 403 came from a proxy. Content counts as gone only if its own
            // server said so.
            self.silent += unresolved + std::mem::take(&mut self.denied);
            self.unasked += std::mem::take(&mut self.gone);
        } else {
            self.gone += unresolved;
        }
    }
}

pub(super) fn add<N: Ord>(one: &mut BTreeMap<N, u64>, other: BTreeMap<N, u64>) {
    for (name, count) in other {
        *one.entry(name).or_default() += count;
    }
}

impl Host {
    pub(crate) fn weight(&self) -> u64 {
        self.pictures + self.trackers + self.references
    }

    pub(crate) fn answered(&mut self, answer: &Probe) {
        self.alive += answer.alive;
        self.dead += answer.dead;
        self.archived += answer.archived;
        self.lost += answer.lost;
        self.refused += answer.refused;
    }

    pub(crate) fn probed(&self) -> [u64; 8] {
        [
            self.pictures,
            self.trackers,
            self.references,
            self.alive,
            self.dead,
            self.refused,
            self.archived,
            self.lost,
        ]
    }
}

/// Maximum number of messages that are compared. This is the capacity of a hash table with a million buckets (18 MB);
/// one more message would double the table.
pub(super) const MESSAGES: usize = (1 << 20) / 8 * 7;

/// Header fields that mailboxes and mail systems add to a copy. They are not hashed, because they differ between the
/// copies of a message.
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

/// Non-cryptographic hash of a message. An attacker could construct a collision, but would only change a count. SHA-256
/// would take a quarter of the time of a survey.
pub(super) type Hash = u64;

#[derive(Debug, Serialize)]
pub(crate) struct CopyTally<K, const MOST: usize> {
    #[serde(flatten)]
    pub repeated: Amount,
    pub uncompared: Amount,
    /// Size in bytes of each known message or attachment, by hash.
    #[serde(skip)]
    known: HashMap<K, u64>,
    /// The first message and its size. It is not in `known`, because the survey of a single message then needs no hash
    /// table.
    #[serde(skip)]
    alone: Option<(K, u64)>,
}

/// A derived `Default` would require `K: Default`.
impl<K, const MOST: usize> Default for CopyTally<K, MOST> {
    fn default() -> Self {
        Self {
            repeated: Amount::default(),
            uncompared: Amount::default(),
            known: HashMap::new(),
            alone: None,
        }
    }
}

impl CopyTally<Hash, MESSAGES> {
    pub(crate) fn of(tree: &MessageTree<'_>) -> Self {
        let mut hash = FixedState::default().build_hasher();
        let mut from = tree.root().envelope.end;
        for whole in tree.fields(PartId::ROOT).wholes() {
            // Two copies of a mail must have the same hash, even if one has a field that its mailbox added. Leaving out
            // the field splits the header into two pieces. Empty pieces are not hashed, because hashing even an empty
            // piece changes the hash.
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

impl<K: Ord + std::hash::Hash, const MOST: usize> CopyTally<K, MOST> {
    pub(crate) fn add(&mut self, other: Self) {
        self.repeated.add(&other.repeated);
        self.uncompared.add(&other.uncompared);
        if let Some(message) = self.alone.take() {
            self.compare(message);
        }
        if self.known.is_empty() {
            self.known = other.known;
        } else {
            // The order is fixed, so that each run leaves out the same elements if the limit is reached.
            let mut known: Vec<(K, u64)> = other.known.into_iter().collect();
            known.sort_unstable();
            known.into_iter().for_each(|message| self.compare(message));
        }
        if let Some(message) = other.alone {
            self.compare(message);
        }
    }

    pub(crate) fn compare(&mut self, (hash, octets): (K, u64)) {
        // `HashMap::entry` reserves space for one more element even if the key exists, which could double the table. So
        // it is not used here.
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
