//! Searches for several words at once, in upper or lower case.
//!
//! A vector search finds a fragment of each word, and then the whole word is compared. A fragment has three bytes, because
//! shorter ones occur too often by chance in prose, headers and base64. Fragments contain few letters: each letter doubles the
//! number of patterns, and more than 32 patterns take twice the time. The middle byte of each fragment is the anchor, which is
//! searched for alone first. It is a byte such as `-`, which base64 does not contain, so base64 is skipped quickly.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::packed;
use memchr::{memchr, memchr_iter};

/// A word of the prefilter, matched case-insensitively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrefilterWord {
    pub(super) text: &'static [u8],
    /// Position in the word of the anchor, a non-letter such as `-` that all words of one search share.
    anchor: usize,
    /// Condition for the bytes after the word: the word counts only if this returns true.
    behind: fn(&[u8]) -> bool,
}

/// Creates a word to search for. `anchor` is the position of a non-letter in the word, for which the search looks
/// first. All forms of references are searched for together, so their words share one anchor byte: `-`.
pub(in crate::engine) const fn word(text: &'static str, anchor: usize) -> PrefilterWord {
    PrefilterWord {
        text: text.as_bytes(),
        anchor,
        behind: |_| true,
    }
}

impl PrefilterWord {
    pub(in crate::engine) const fn before(self, behind: fn(&[u8]) -> bool) -> Self {
        Self { behind, ..self }
    }

    const fn lead(&self) -> usize {
        if self.anchor < LEAD {
            self.anchor
        } else {
            LEAD
        }
    }

    fn fragment(&self) -> &'static [u8] {
        let start = self.anchor - self.lead();
        let fragment = self.text.get(start..start + FRAGMENT);
        fragment.unwrap_or(self.text)
    }
}

const FRAGMENT: usize = 3;

const LEAD: usize = 1;

/// Number of bytes after an anchor (the byte that all fragments share, such as `-`) that are searched for fragments.
/// Then only the next anchor is searched for: base64 does not contain it, so that single-byte search skips base64
/// quickly.
const BLOCK: usize = 8 << 10;

/// Minimum number of bytes for which building the tables of the vector search pays off.
pub(super) const SHORT: usize = 16 << 10;

/// Tables of a vector search, built when enough bytes have been searched. Absent on processors without vector
/// instructions.
#[derive(Debug)]
pub(super) struct VectorTables {
    tables: OnceLock<Option<packed::Searcher>>,
    /// Number of bytes searched without tables so far. Many short messages reach the threshold just as one long message
    /// does.
    searched: AtomicUsize,
}

impl VectorTables {
    pub(super) const fn new() -> Self {
        Self {
            tables: OnceLock::new(),
            searched: AtomicUsize::new(0),
        }
    }

    /// Returns the tables. Returns `None` if they do not exist yet and too few bytes were searched to build them.
    fn over<I: IntoIterator<Item = Vec<u8>>>(
        &self,
        length: usize,
        patterns: impl FnOnce() -> I,
    ) -> Option<&packed::Searcher> {
        if let Some(tables) = self.tables.get() {
            return tables.as_ref();
        }
        if self.searched.fetch_add(length, Ordering::Relaxed) + length < SHORT {
            return None;
        }
        let tables = self
            .tables
            .get_or_init(|| packed::Searcher::new(patterns()));
        tables.as_ref()
    }

    /// Returns whether the vector search has a match that `holds` accepts. Returns `None` if the tables do not exist
    /// yet and too few bytes were searched to build them.
    pub(super) fn any_in<I: IntoIterator<Item = Vec<u8>>>(
        &self,
        bytes: &[u8],
        patterns: impl FnOnce() -> I,
        holds: impl Fn(usize) -> bool,
    ) -> Option<bool> {
        let packed = self.over(bytes.len(), patterns)?;
        let mut from = 0;
        while from < bytes.len()
            && let Some(hit) = packed.find_in(bytes, (from..bytes.len()).into())
        {
            if holds(hit.start()) {
                return Some(true);
            }
            from = hit.start() + 1;
        }
        Some(false)
    }
}

#[derive(Debug)]
pub(super) struct PrefilterWords {
    pub(super) words: Vec<PrefilterWord>,
    anchor: u8,
    packed: VectorTables,
}

impl PrefilterWords {
    pub(super) fn new(words: impl IntoIterator<Item = PrefilterWord>, anchor: u8) -> Self {
        Self {
            words: words.into_iter().collect(),
            anchor,
            packed: VectorTables::new(),
        }
    }

    pub(super) fn first(&self, bytes: &[u8]) -> Option<usize> {
        self.find_from(bytes, 0).map(|(at, _)| at)
    }

    pub(super) fn find_from(&self, bytes: &[u8], mut from: usize) -> Option<(usize, usize)> {
        let Some(packed) = self.packed.over(bytes.len(), || patterns(&self.words)) else {
            return memchr_iter(self.anchor, bytes.get(from..)?)
                .find_map(|at| self.around(bytes, from + at, |word| word.anchor));
        };
        loop {
            let anchor = from + memchr(self.anchor, bytes.get(from..)?)?;
            from = bytes.len().min(anchor + BLOCK);
            // The block can end with an anchor, which is the middle byte of a fragment, so the rest of the fragment is
            // included.
            let end = bytes.len().min(from + FRAGMENT);
            let mut start = anchor.saturating_sub(LEAD);
            while start < from
                && let Some(hit) = packed.find_in(bytes, (start..end).into())
            {
                let offset = |word: &PrefilterWord| word.anchor - word.lead();
                let found = self.around(bytes, hit.start(), offset);
                if found.is_some() {
                    return found;
                }
                start = hit.start() + 1;
            }
        }
    }

    fn around(
        &self,
        bytes: &[u8],
        at: usize,
        offset: fn(&PrefilterWord) -> usize,
    ) -> Option<(usize, usize)> {
        self.words.iter().enumerate().find_map(|(number, word)| {
            let start = at.checked_sub(offset(word))?;
            let (there, behind) = bytes.get(start..)?.split_at_checked(word.text.len())?;
            // Comparing the first byte excludes most words cheaply.
            (there.first().map(u8::to_ascii_lowercase) == word.text.first().copied()
                && there.eq_ignore_ascii_case(word.text)
                && (word.behind)(behind))
            .then_some((start, number))
        })
    }
}

fn patterns(words: &[PrefilterWord]) -> BTreeSet<Vec<u8>> {
    let mut patterns = BTreeSet::new();
    for word in words {
        for_each_case(word.fragment(), |pattern| {
            patterns.insert(pattern);
        });
    }
    patterns
}

pub(super) fn for_each_case(text: &[u8], mut give: impl FnMut(Vec<u8>)) {
    for upper in 0..1_u32 << text.len() {
        let mut pattern = text.to_vec();
        for (place, byte) in pattern.iter_mut().enumerate() {
            if upper & 1 << place != 0 {
                byte.make_ascii_uppercase();
            }
        }
        give(pattern);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_search_has_more_patterns_than_the_narrow_vectors_take() {
        for words in crate::engine::prefilter::all_searches() {
            let patterns = patterns(&words.words);
            assert!(patterns.len() <= 32, "{}", patterns.len());
            let shortest = patterns.iter().map(Vec::len).min();
            assert_eq!(shortest, Some(FRAGMENT));
        }
    }

    #[test]
    fn both_searches_find_every_word_at_every_place_in_every_case() {
        for words in crate::engine::prefilter::all_searches() {
            for word in &words.words {
                for (place, upper) in (0..70)
                    .step_by(3)
                    .flat_map(|place| [(place, false), (place, true)])
                {
                    let mut text = word.text.to_vec();
                    if upper {
                        text.make_ascii_uppercase();
                    }
                    for filler in ["-", "/", "l-", "t-l", "/h", "l-bo", "e6", "x"] {
                        let mut bytes = filler.repeat(SHORT + 70).into_bytes();
                        bytes.truncate(SHORT + place);
                        bytes.extend_from_slice(&text);
                        bytes.push(b':');
                        let found = words.first(&bytes);
                        assert_eq!(
                            found,
                            Some(SHORT + place),
                            "{filler} {}",
                            text.escape_ascii()
                        );
                        let further = words.find_from(&bytes, SHORT).map(|(at, _)| at);
                        assert_eq!(further, found);
                        let behind = SHORT + place + text.len();
                        assert_eq!(words.find_from(&bytes, behind), None);
                        let short = &bytes[SHORT - 5..];
                        // The result must be the same with and without the tables.
                        let without =
                            PrefilterWords::new(words.words.iter().copied(), words.anchor);
                        assert_eq!(words.first(short), Some(place + 5));
                        assert_eq!(without.first(short), Some(place + 5));
                    }
                }
            }
        }
    }

    #[test]
    fn a_word_on_the_edge_of_a_block_is_found() {
        for words in crate::engine::prefilter::all_searches() {
            for word in &words.words {
                for place in BLOCK - 40..BLOCK + 4 {
                    let mut bytes = [&[words.anchor], vec![b'x'; place].as_slice()].concat();
                    bytes.extend_from_slice(word.text);
                    bytes.push(b':');
                    bytes.resize(2 * SHORT, b'x');
                    let found = words.first(&bytes);
                    let text = word.text.escape_ascii();
                    assert_eq!(found, Some(place + 1), "{text} at {place}");
                }
            }
        }
    }
}
