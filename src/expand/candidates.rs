//! Whether bytes can hold anything that embody works on, told without parsing.

use memchr::memchr2_iter;

use crate::policy::{Links, Policy};

/// A search for the few words that any work needs, in any case.
///
/// A message in which [`Candidates::any`] finds nothing comes out of [`Expander`](super::Expander)
/// as it went in. The search runs at memory speed; finding something proves nothing.
#[derive(Clone, Debug)]
pub struct Candidates {
    links: Links,
}

/// A word, and where in it the rare byte stands that the search looks for.
struct Word {
    text: &'static [u8],
    anchor: usize,
}

const EXTERNAL_BODY: Word = Word {
    text: b"external-body",
    anchor: 8,
};

/// The subtypes of documents, with the slash in front.
const DOCUMENTS: [Word; 3] = [
    Word {
        text: b"/html",
        anchor: 0,
    },
    Word {
        text: b"/xhtml+xml",
        anchor: 0,
    },
    Word {
        text: b"/css",
        anchor: 0,
    },
];

impl Candidates {
    /// How many bytes of one window a search of the next one has to see again.
    pub const OVERLAP: usize = 64;

    /// The search for what this policy works on.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            links: policy.links,
        }
    }

    /// Whether any of the words is there.
    #[must_use]
    pub fn any(&self, bytes: &[u8]) -> bool {
        self.first(bytes).is_some()
    }

    /// Where the first of the words is.
    #[must_use]
    pub fn first(&self, bytes: &[u8]) -> Option<usize> {
        memchr2_iter(b'-', b'/', bytes).find_map(|at| match bytes.get(at) {
            Some(b'-') => around(bytes, at, &EXTERNAL_BODY),
            _ if self.links == Links::Keep => None,
            _ => DOCUMENTS.iter().find_map(|word| around(bytes, at, word)),
        })
    }

    /// Whether there may be external bodies.
    #[must_use]
    pub fn external_bodies(&self, bytes: &[u8]) -> bool {
        memchr::memchr_iter(b'-', bytes).any(|at| around(bytes, at, &EXTERNAL_BODY).is_some())
    }

    /// Whether there may be HTML or CSS whose links are to be resolved.
    #[must_use]
    pub fn documents(&self, bytes: &[u8]) -> bool {
        self.links == Links::Resolve
            && memchr::memchr_iter(b'/', bytes).any(|at| {
                DOCUMENTS
                    .iter()
                    .any(|word| around(bytes, at, word).is_some())
            })
    }
}

/// Where the word stands, in any case, if its anchor is the byte at `at`.
fn around(bytes: &[u8], at: usize, word: &Word) -> Option<usize> {
    let start = at.checked_sub(word.anchor)?;
    bytes
        .get(start..start + word.text.len())?
        .eq_ignore_ascii_case(word.text)
        .then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_in_any_case() {
        let candidates = Candidates::new(&Policy::default());
        assert_eq!(candidates.first(b"x message/eXternal-BODY"), Some(10));
        assert_eq!(
            candidates.first(b"-body External-body external-Body"),
            Some(6)
        );
        assert_eq!(candidates.first(b"Content-Type: TEXT/HTML"), Some(18));
        assert!(!candidates.any(b"external-bod y -body text/plain"));
    }

    #[test]
    fn documents_do_not_matter_when_links_are_kept() {
        let policy = Policy {
            links: Links::Keep,
            ..Policy::default()
        };
        assert!(!Candidates::new(&policy).any(b"text/html"));
    }
}
