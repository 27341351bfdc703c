//! Whether bytes can hold anything that embody works on, told without parsing.

use memchr::memchr2_iter;

use crate::policy::{Links, Policy, Shortcuts};

/// A search for the few words that any work needs, in any case.
///
/// A message in which [`Candidates::any`] finds nothing comes out of [`Expander`](super::Expander)
/// as it went in. The search runs at memory speed; finding something proves nothing.
#[derive(Clone, Debug)]
pub struct Candidates {
    links: Links,
    shortcuts: Shortcuts,
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

/// What else makes a part a reference, and what says that one was deleted. All begin alike.
const RELATIVES: [Word; 4] = [
    Word {
        text: b"x-mozilla-external-attachment-url",
        anchor: 1,
    },
    Word {
        text: b"x-mozilla-altered",
        anchor: 1,
    },
    Word {
        text: b"x-mozilla-cloud-part",
        anchor: 1,
    },
    Word {
        text: b"x-moz-deleted",
        anchor: 1,
    },
];

/// The end of the media types of attached shortcuts.
const SHORTCUT: Word = Word {
    text: b"internet-shortcut",
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
            shortcuts: policy.shortcuts,
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
            Some(b'-') => self.reference(bytes, at),
            _ if self.links == Links::Keep => None,
            _ => DOCUMENTS.iter().find_map(|word| around(bytes, at, word)),
        })
    }

    /// Whether there may be external bodies, or their relatives.
    #[must_use]
    pub fn external_bodies(&self, bytes: &[u8]) -> bool {
        memchr::memchr_iter(b'-', bytes).any(|at| self.reference(bytes, at).is_some())
    }

    /// Where the word of a reference begins whose anchor is the hyphen at `at`.
    fn reference(&self, bytes: &[u8], at: usize) -> Option<usize> {
        // Hyphens are many: one more byte rules nearly all of them out.
        match bytes.get(at + 1)? {
            b'b' | b'B' => around(bytes, at, &EXTERNAL_BODY),
            b'm' | b'M' => RELATIVES.iter().find_map(|word| around(bytes, at, word)),
            b's' | b'S' if self.shortcuts == Shortcuts::All => around(bytes, at, &SHORTCUT),
            _ => None,
        }
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
    fn the_words_of_the_relatives_are_found_in_any_case() {
        let candidates = Candidates::new(&Policy::default());
        for text in [
            "X-Mozilla-External-Attachment-URL: file:///x",
            "x-mozilla-altered: AttachmentDeleted",
            "X-MOZILLA-CLOUD-PART: cloudFile",
            "text/X-Moz-Deleted",
        ] {
            assert!(candidates.any(text.as_bytes()), "{text}");
            assert!(candidates.external_bodies(text.as_bytes()), "{text}");
        }
        for text in [
            "X-Mozilla-Status: 0001",
            "x-mozilla-external",
            "-m",
            "-",
            "application/internet-shortcut",
        ] {
            assert!(!candidates.external_bodies(text.as_bytes()), "{text}");
        }
        let all = Candidates::new(&Policy {
            shortcuts: Shortcuts::All,
            ..Policy::default()
        });
        assert_eq!(all.first(b"application/Internet-Shortcut"), Some(12));
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
