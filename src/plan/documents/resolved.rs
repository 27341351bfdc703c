//! What references become, remembered: the same few stand in a document again and again.

use std::collections::HashMap;

use crate::link::value::{Grammar, Markup};
use crate::mime::PartId;

/// What a reference becomes; none if it stays.
#[derive(Clone)]
pub(super) struct Resolved {
    /// How the reference is written.
    pub(super) wrapping: (Markup, Grammar),
    /// Whether it was resolved against the base.
    pub(super) is_relative: bool,
    pub(super) replacement: Option<Vec<u8>>,
    /// The part that it is pointed at.
    pub(super) part: Option<PartId>,
}

/// What the references of a document become: most stand in it several times.
#[derive(Default)]
pub(super) struct Memory {
    known: HashMap<Vec<u8>, Resolved>,
    octets: usize,
}

impl Memory {
    /// Octets of references and of what they become, at most.
    const MOST: usize = 256 << 10;

    pub(super) fn get(&self, value: &[u8], wrapping: (Markup, Grammar)) -> Option<&Resolved> {
        self.known
            .get(value)
            .filter(|known| known.wrapping == wrapping)
    }

    pub(super) fn keep(&mut self, value: &[u8], resolved: &Resolved) {
        // An estimate: a map takes some octets more for an entry.
        let taken = resolved.replacement.as_ref().map_or(0, Vec::len);
        let octets = size_of::<(Vec<u8>, Resolved)>() + value.len() + taken;
        if self.octets + octets <= Self::MOST && !self.known.contains_key(value) {
            self.octets += octets;
            self.known.insert(value.to_vec(), resolved.clone());
        }
    }
}
