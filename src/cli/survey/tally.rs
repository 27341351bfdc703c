//! Counters: plain counts, counts by untrusted names, and counts of messages and attachments that occur several times,
//! as in an export with a mailbox for each label. Memory is limited, whatever the mail contains.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::FixedState;
use serde::{Serialize, Serializer};

use crate::mime::{Field, MessageTree, PartId};
use crate::span::Span;

/// Maximum number of different names that are counted. Together they need about a megabyte.
pub(crate) const NAMES: usize = 10_000;
/// Maximum length, in bytes, of a name that is counted separately. Hosts and media types cannot be longer (RFC 1035
/// §2.3.4, RFC 6838 §4.2).
pub(super) const LONGEST_NAME: usize = 255;

pub(crate) trait TallyCounts: Default {
    const NAMES: &'static [&'static str];

    fn add(&mut self, other: &Self);

    fn columns(&self) -> Vec<u64>;
}

impl TallyCounts for u64 {
    const NAMES: &'static [&'static str] = &["count"];

    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn columns(&self) -> Vec<u64> {
        vec![*self]
    }
}

macro_rules! counts {
    ($($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
        pub(crate) struct $name { $($(#[$of])* pub(crate) $field: u64,)* }

        impl TallyCounts for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }

            fn columns(&self) -> Vec<u64> {
                vec![$(self.$field),*]
            }
        }
    )*};
}

counts! {
    Amount { count, octets, }

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

impl Amount {
    pub(crate) fn count(&mut self, octets: u64) {
        self.count += 1;
        self.octets += octets;
    }
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct TallyNames<C> {
    names: BTreeMap<String, C>,
    others: Option<C>,
}

impl<C: TallyCounts> TallyNames<C> {
    pub(crate) fn of(&mut self, name: &str) -> &mut C {
        // Most names are known and in lower case, so no memory is allocated for them.
        if !self.names.contains_key(name) {
            return self.exactly(name.to_ascii_lowercase());
        }
        let known = self.names.get_mut(name);
        known.unwrap_or_else(|| unreachable!("it is among them"))
    }

    pub(crate) fn exactly(&mut self, name: String) -> &mut C {
        let is_known = self.names.contains_key(&name);
        if !is_known && (self.names.len() >= NAMES || name.len() > LONGEST_NAME) {
            return self.others.get_or_insert_default();
        }
        self.names.entry(name).or_default()
    }

    /// Adds the counts of `other` in alphabetical order, so that the result is the same in each run if the limit on
    /// names is reached.
    pub(crate) fn add(&mut self, other: Self) {
        if self.names.is_empty() && self.others.is_none() {
            *self = other;
            return;
        }
        for (name, counts) in other.names {
            self.exactly(name).add(&counts);
        }
        if let Some(counts) = other.others {
            self.others.get_or_insert_default().add(&counts);
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &C)> {
        self.names.iter().map(|(name, counts)| (&**name, counts))
    }

    /// Calls `change` for the counts of each name, and for those of all other names.
    pub(crate) fn each_mut(&mut self, change: impl FnMut(&mut C)) {
        self.names
            .values_mut()
            .chain(&mut self.others)
            .for_each(change);
    }

    pub(crate) fn others(&self) -> Option<&C> {
        self.others.as_ref()
    }

    pub(crate) fn heaviest(&self, weight: impl Fn(&C) -> u64) -> Vec<(&str, &C)> {
        let mut names: Vec<(&str, &C)> = self.names().filter(|(_, it)| weight(it) > 0).collect();
        names.sort_by_key(|(name, counts)| (std::cmp::Reverse(weight(counts)), *name));
        names
    }
}

impl<C: Serialize> Serialize for TallyNames<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(&self.names)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_one_sum_and_nothing_is_lost() {
        let mut named: TallyNames<u64> = TallyNames::default();
        for number in 0..NAMES as u64 + 500 {
            *named.of(&format!("host{number:06}.example")) += 2;
        }
        assert_eq!(named.names().count(), NAMES);
        assert_eq!(named.others(), Some(&1000));
        *named.of("HOST000001.example") += 1;
        let known = named.names().nth(1);
        assert_eq!(known, Some(("host000001.example", &3)));

        let mut sum: TallyNames<u64> = TallyNames::default();
        *sum.of("another.example") += 1;
        sum.add(named);
        assert_eq!(sum.names().count(), NAMES);
        let all: u64 = sum.names().map(|(_, count)| count).sum();
        assert_eq!(all + sum.others().unwrap_or(&0), NAMES as u64 * 2 + 1002);
    }

    #[test]
    fn overlong_name_is_counted_under_others() {
        let mut named: TallyNames<u64> = TallyNames::default();
        *named.of(&"x".repeat(LONGEST_NAME)) += 1;
        *named.of(&"x".repeat(LONGEST_NAME + 1)) += 1;
        assert_eq!(named.names().count(), 1);
        assert_eq!(named.others(), Some(&1));
    }

    #[test]
    fn the_heaviest_stand_first() {
        let mut named: TallyNames<u64> = TallyNames::default();
        for name in ["b", "a", "c", "c", "none"] {
            *named.of(name) += 1;
        }
        *named.of("none") = 0;
        let names: Vec<&str> = named.heaviest(|it| *it).iter().map(|it| it.0).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }
}
