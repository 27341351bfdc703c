//! Counts of the survey, and counts of messages and attachments that occur several times, as in an export with a mailbox
//! for each label. Memory is limited, whatever the mail contains.

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
        /// Documents in which links may be missing from the counts, because they were not read or not read to the end.
        unread,
        count,
        relative,
        with_base,
        to_parts,
        /// Files in cloud storage to which the text of a mail without HTML links.
        cloud_in_text,
    }

    /// Responses of the sources to a probe.
    Answers {
        alive,
        /// Lost content: status 404 or 410, the host does not exist, or other content has taken its place.
        gone,
        /// No usable response this time.
        silent,
        /// A login or a permission is required.
        denied,
        /// The policy does not allow the request or the response.
        refused,
        unasked,
        /// The host name could not be resolved. [`Survey::settle`](super::sum::Survey::settle) decides at the end of the
        /// run whether such content is gone.
        #[serde(skip)]
        unresolved,
    }

    /// Outcomes of the references to one host: the content was saved, is lost, may be available in another run
    /// (`again`), or was denied by the server or the policy (`left`). `unresolved` becomes `lost` or `again` at the end of the
    /// run.
    Fates { saved, lost, again, left, unresolved, }

    Probe {
        alive,
        dead,
        /// The policy does not allow the request, or does not accept the response.
        refused,
        /// No request was made, because of a limit or because the picture is a tracker.
        unasked,
        /// The content is in an archive of the web. The counts `archived` and `lost` are printed only if an archive was
        /// used.
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

    /// Decides about hosts that could not be resolved. If no server responded in the whole run, the network was probably
    /// down, so a later run may find them.
    pub(super) fn settle(&mut self, has_no_response: bool) {
        let unresolved = std::mem::take(&mut self.unresolved);
        if has_no_response {
            // The status of a response, such as 403, was then from the proxy. Content counts as gone only if a server said so.
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

/// Maximum number of messages that are compared. A hash table with a million buckets (18 MB) can contain this number,
/// and one more would double its size.
pub(super) const MESSAGES: usize = (1 << 20) / 8 * 7;

/// Header fields that can be different in copies of one message, so they are not part of its hash.
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

/// A hash of a message. An attacker could create two messages with the same hash, which would only change a count.
/// SHA-256 would take a quarter of the time of a survey.
pub(super) type Hash = u64;

#[derive(Debug, Serialize)]
pub(crate) struct CopyTally<K, const MOST: usize> {
    #[serde(flatten)]
    pub repeated: Amount,
    pub uncompared: Amount,
    /// Size in bytes of each known message or attachment, by hash.
    #[serde(skip)]
    known: HashMap<K, u64>,
    /// The first message and its size are stored here and not in `known`, because a survey of a single message needs no
    /// hash table.
    #[serde(skip)]
    alone: Option<(K, u64)>,
}

/// `Default` is written by hand, because deriving it would require that the type of the hash has a default value.
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
            // Two copies of a mail must have the same hash, even if one has a field that its mailbox added. Such a field
            // is not hashed. It also divides the header into two pieces, and even an empty piece changes the hash, so
            // empty pieces are not hashed either.
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
            // The elements are added in a fixed order. If the limit is reached, the same elements are then left out in
            // each run.
            let mut known: Vec<(K, u64)> = other.known.into_iter().collect();
            known.sort_unstable();
            known.into_iter().for_each(|message| self.compare(message));
        }
        if let Some(message) = other.alone {
            self.compare(message);
        }
    }

    pub(crate) fn compare(&mut self, (hash, octets): (K, u64)) {
        // `HashMap::entry` is not used, because it reserves space for one more element even if the key is present, and
        // so could double the table.
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
