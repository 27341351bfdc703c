//! Compact list of changes to a body. A body can consist of millions of links of two bytes each, so a change must need
//! only a few bytes of memory in addition to its replacement.

use std::collections::VecDeque;
use std::ops::Range;

use crate::mime::packed;

/// Size of a block, in bytes. Each block is freed after it was read, so that its memory is available for the result.
const BLOCK: usize = 64 << 10;
/// Size of the first block, in bytes. It is sufficient for a document with few links.
const FIRST_BLOCK: usize = 1 << 10;
/// Maximum length in bytes of the three numbers before a replacement (10 bytes for each number of 64 bits).
const NUMBERS: usize = 30;

/// Changes in ascending order, which do not overlap. For each change, a block contains its distance from the change
/// before, the number of bytes that are removed, and the replacement.
#[derive(Clone, Default, Debug)]
pub struct TextChanges {
    blocks: VecDeque<Vec<u8>>,
    end: usize,
}

impl TextChanges {
    pub fn push(&mut self, octets: Range<usize>, replacement: &[u8]) {
        let needed = NUMBERS + replacement.len();
        let last = self.blocks.back();
        if last.is_none_or(|block| block.capacity() - block.len() < needed) {
            let least = if last.is_none() { FIRST_BLOCK } else { BLOCK };
            self.blocks.push_back(Vec::with_capacity(needed.max(least)));
        }
        if let Some(block) = self.blocks.back_mut() {
            for number in [
                octets.start.saturating_sub(self.end),
                octets.len(),
                replacement.len(),
            ] {
                packed::write(block, number as u64);
            }
            block.extend_from_slice(replacement);
        }
        self.end = octets.end;
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn first(&self) -> Option<usize> {
        Some(self.iter().next()?.0.start)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Range<usize>, &[u8])> + Clone {
        let mut blocks = self.blocks.iter();
        let (mut block, mut end): (&[u8], usize) = (&[], 0);
        std::iter::from_fn(move || {
            while block.is_empty() {
                block = blocks.next()?;
            }
            read_change(&mut block, &mut end)
        })
    }

    pub fn for_each(mut self, mut made: impl FnMut(Range<usize>, &[u8])) {
        let mut end = 0;
        while let Some(block) = self.blocks.pop_front() {
            let mut block = block.as_slice();
            while let Some((octets, replacement)) = read_change(&mut block, &mut end) {
                made(octets, replacement);
            }
        }
    }

    /// Adds a replacement of one byte by `bytes` at each of `places`, which must be in ascending order and outside of
    /// the other changes.
    pub fn with(self, places: &[usize], bytes: &[u8]) -> Self {
        let mut all = Self::default();
        let mut places = places.iter().copied().peekable();
        self.for_each(|octets, replacement| {
            while let Some(at) = places.next_if(|&at| at < octets.start) {
                all.push(at..at + 1, bytes);
            }
            all.push(octets, replacement);
        });
        places.for_each(|at| all.push(at..at + 1, bytes));
        all
    }
}

fn read_change<'b>(block: &mut &'b [u8], end: &mut usize) -> Option<(Range<usize>, &'b [u8])> {
    let start = *end + packed::read(block)? as usize;
    *end = start + packed::read(block)? as usize;
    let length = packed::read(block)? as usize;
    let (replacement, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some((start..*end, replacement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Unpacked = Vec<(Range<usize>, Vec<u8>)>;

    fn some_changes() -> impl Strategy<Value = Unpacked> {
        let change = (0..1_usize << 20, 0..1_usize << 20, 0..20_000_usize);
        prop::collection::vec(change, 0..20).prop_map(|changes| {
            let mut end = 0;
            let placed = changes.into_iter().map(|(distance, lost, gained)| {
                let start = end + distance;
                end = start + lost;
                (start..end, vec![gained as u8; gained])
            });
            placed.collect()
        })
    }

    fn packed(changes: &Unpacked) -> TextChanges {
        let mut packed = TextChanges::default();
        for (octets, replacement) in changes {
            packed.push(octets.clone(), replacement);
        }
        packed
    }

    proptest! {
        #[test]
        fn unpacked_changes_equal_the_packed_ones(changes in some_changes()) {
            let packed = packed(&changes);
            let back: Unpacked = packed.iter().map(|(octets, new)| (octets, new.to_vec())).collect();
            prop_assert_eq!(&back, &changes);
            prop_assert_eq!(packed.is_empty(), changes.is_empty());
            let mut used = Unpacked::new();
            packed.for_each(|octets, new| used.push((octets, new.to_vec())));
            prop_assert_eq!(used, changes);
        }

        #[test]
        fn further_changes_are_merged_with_the_packed_ones_in_order(changes in some_changes(), mut places in prop::collection::vec(0..1_usize << 22, 0..9)) {
            places.sort_unstable();
            places.dedup();
            places.retain(|at| !changes.iter().any(|(octets, _)| octets.start <= *at && *at <= octets.end));
            let mut expected = changes.clone();
            expected.extend(places.iter().map(|&at| (at..at + 1, b"\r\n".to_vec())));
            expected.sort_by_key(|(octets, _)| octets.start);
            let together = packed(&changes).with(&places, b"\r\n");
            let all: Unpacked = together.iter().map(|(octets, new)| (octets, new.to_vec())).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
