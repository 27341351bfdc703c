//! Whether bytes can hold anything that embody works on, told without parsing.

use memchr::memmem::Finder;

use crate::policy::Policy;

/// A search for the few words that any work needs, in any case.
///
/// A message in which [`Candidates::any`] finds nothing comes out of [`Expander`](super::Expander)
/// as it went in. The search runs at memory speed; finding something proves nothing.
#[derive(Debug)]
pub struct Candidates {
    hyphen_b: [Finder<'static>; 2],
}

impl Candidates {
    /// How many bytes of one window a search of the next one has to see again.
    pub const OVERLAP: usize = 64;

    /// The search for what this policy works on.
    #[must_use]
    pub fn new(_policy: &Policy) -> Self {
        Self {
            hyphen_b: [Finder::new("-b"), Finder::new("-B")],
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
        self.hyphen_b
            .iter()
            .filter_map(|finder| {
                finder
                    .find_iter(bytes)
                    .find_map(|at| external_body_around(bytes, at))
            })
            .min()
    }
}

/// `external-body` around the hyphen at `at`, in any case.
fn external_body_around(bytes: &[u8], at: usize) -> Option<usize> {
    const WORD: &[u8] = b"external-body";
    const HYPHEN: usize = 8;
    let start = at.checked_sub(HYPHEN)?;
    bytes
        .get(start..start + WORD.len())?
        .eq_ignore_ascii_case(WORD)
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
        assert!(!candidates.any(b"external-bod y -body"));
    }
}
