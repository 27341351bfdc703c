//! Matches messages with the same Message-ID: which message of OLD became which message of NEW.
//!
//! If OLD contains an incomplete and a complete copy of a mail, one message of NEW can be the result of either. Each
//! message of NEW may be used only once, so the pairs are selected after all of them are known, as a maximum bipartite
//! matching (Kuhn's algorithm): as many messages of OLD as possible are found.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::engine::prove::Proof;
use crate::engine::same::Digest;

/// A message of NEW that is proved to be the result of a message of OLD.
pub(super) struct ProvedPair {
    /// Position of the message in NEW.
    pub(super) number: u64,
    /// Digest of the message of NEW.
    pub(super) identity: Digest,
    /// Number of the message of OLD.
    pub(super) candidate: u32,
    pub(super) proof: Proof,
    /// Flags and keywords that the message of NEW lacks, described in words.
    pub(super) lost_flags: Vec<String>,
}

/// Selects pairs in which each message occurs only once. `surplus` limits how often a digest of NEW can be used if OLD
/// has identical messages too. Pairs without lost flags are preferred: copies of a mail can have different flags.
pub(super) fn matched(
    pairs: Vec<ProvedPair>,
    surplus: &mut HashMap<Digest, u32>,
) -> Vec<ProvedPair> {
    let mut of_new: BTreeMap<u64, Vec<ProvedPair>> = BTreeMap::new();
    for pair in pairs {
        of_new.entry(pair.number).or_default().push(pair);
    }
    let news: Vec<Vec<ProvedPair>> = of_new
        .into_values()
        .map(|mut pairs| {
            pairs.sort_unstable_by_key(|pair| pair.candidate);
            pairs
        })
        .collect();
    let mut taken: HashMap<u32, (usize, usize)> = HashMap::new();
    let mut placed = vec![false; news.len()];
    for may_lose in [false, true] {
        for (at, is_done) in placed.iter_mut().enumerate().filter(|(_, done)| !**done) {
            let identity = news.get(at).and_then(|pairs| pairs.first());
            let left = identity.and_then(|pair| surplus.get_mut(&pair.identity));
            if left.as_deref() == Some(&0) {
                continue;
            }
            *is_done = is_placed((at, may_lose), &news, &mut taken, &mut HashSet::new());
            if let Some(left) = left.filter(|_| *is_done) {
                *left -= 1;
            }
        }
    }
    let chosen: HashSet<(usize, usize)> = taken.into_values().collect();
    let numbered = news.into_iter().enumerate().flat_map(|(at, pairs)| {
        let pairs = pairs.into_iter().enumerate();
        pairs.map(move |(index, pair)| ((at, index), pair))
    });
    numbered
        .filter(|(place, _)| chosen.contains(place))
        .map(|(_, pair)| pair)
        .collect()
}

/// Finds a message of OLD for a message of NEW. Unless `may_lose` is true, no pair may have lost flags. If all of its candidates are already matched, another message of NEW
/// may have to give one up (an augmenting path). The recursion depth is limited, because only a few messages with one
/// Message-ID are compared with each other.
fn is_placed(
    (at, may_lose): (usize, bool),
    news: &[Vec<ProvedPair>],
    taken: &mut HashMap<u32, (usize, usize)>,
    seen: &mut HashSet<u32>,
) -> bool {
    let Some(pairs) = news.get(at) else {
        return false;
    };
    for (index, pair) in pairs.iter().enumerate() {
        if !may_lose && !pair.lost_flags.is_empty() || !seen.insert(pair.candidate) {
            continue;
        }
        let owner = taken.get(&pair.candidate).map(|(owner, _)| *owner);
        if owner.is_none_or(|owner| is_placed((owner, may_lose), news, taken, seen)) {
            taken.insert(pair.candidate, (at, index));
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(u64, u32)], surplus: &mut HashMap<Digest, u32>) -> Vec<(u64, u32)> {
        found_with_flags(pairs, surplus, |_| false)
    }

    fn found_with_flags(
        pairs: &[(u64, u32)],
        surplus: &mut HashMap<Digest, u32>,
        loses: impl Fn((u64, u32)) -> bool,
    ) -> Vec<(u64, u32)> {
        let pairs = pairs.iter().map(|&(number, candidate)| ProvedPair {
            number,
            identity: Digest::of(&number.to_be_bytes()),
            candidate,
            proof: Proof::default(),
            lost_flags: if loses((number, candidate)) {
                vec!["flag read".to_owned()]
            } else {
                Vec::new()
            },
        });
        let matched = matched(pairs.collect(), surplus);
        matched
            .iter()
            .map(|pair| (pair.number, pair.candidate))
            .collect()
    }

    #[test]
    fn message_that_two_copies_can_become_leaves_the_other_copy_its_only_result() {
        for pairs in [
            [(1, 0), (1, 1), (2, 0)].as_slice(),
            &[(2, 0), (1, 1), (1, 0)],
        ] {
            assert_eq!(found(pairs, &mut HashMap::new()), [(1, 1), (2, 0)]);
        }
        assert_eq!(found(&[(1, 0), (2, 0)], &mut HashMap::new()), [(1, 0)]);
        let chain = [(1, 0), (1, 1), (2, 1), (2, 2), (3, 0)];
        assert_eq!(found(&chain, &mut HashMap::new()), [(1, 1), (2, 2), (3, 0)]);
    }

    #[test]
    fn pairs_without_lost_flags_are_preferred_to_others() {
        let all = [(1, 0), (1, 1), (2, 0), (2, 1)];
        for right in [[(1, 0), (2, 1)], [(1, 1), (2, 0)]] {
            let loses = |pair| !right.contains(&pair);
            assert_eq!(found_with_flags(&all, &mut HashMap::new(), loses), right);
        }
        // A message with lost flags is found, too.
        let loses = |pair| pair != (1, 1);
        assert_eq!(
            found_with_flags(&all, &mut HashMap::new(), loses),
            [(1, 1), (2, 0)]
        );
    }

    #[test]
    fn identical_messages_of_new_count_as_often_as_old_lacks_them() {
        let digest = |number: u64| Digest::of(&number.to_be_bytes());
        let mut surplus = HashMap::from([(digest(1), 0), (digest(2), 1)]);
        assert_eq!(found(&[(1, 0), (2, 1)], &mut surplus), [(2, 1)]);
        assert_eq!(surplus[&digest(2)], 0);
    }
}
