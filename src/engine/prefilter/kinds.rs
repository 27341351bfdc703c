use super::{ALL, BESIDE, DOCUMENTS, Prefilter};
use crate::engine::forms::reference_form::Needles;
use crate::engine::forms::references::TABLE;
use crate::engine::policy::Follow;
use crate::engine::search_words::PrefilterWords;

/// Result of the prefilter: whether a message contains words of references, and media types of documents.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Kinds {
    pub(in crate::engine) references: bool,
    pub(in crate::engine) documents: bool,
}

impl Prefilter {
    pub(in crate::engine) fn matters(&self, message: &[u8], kinds: Kinds) -> bool {
        let embeds_any = self.unwrap || self.embed.is_on() && !self.embed.is_only_data();
        kinds.references || kinds.documents && (embeds_any || self.has_document(message))
    }

    pub(crate) fn kinds(&self, bytes: &[u8]) -> Kinds {
        self.further(bytes, Kinds::default())
    }

    pub(crate) fn kinds_beside(&self, bytes: &[u8], beside: Option<Follow>) -> Kinds {
        let mut kinds = self.kinds(bytes);
        let is_read = |kind| beside == Some(kind) && self.forms.contains(kind);
        for (kind, words) in BESIDE.iter() {
            kinds.references |= is_read(*kind) && words.first(bytes).is_some();
        }
        kinds
    }

    fn further(&self, bytes: &[u8], known: Kinds) -> Kinds {
        let mut kinds = self.kinds_of_words(bytes, known);
        kinds.references = kinds.references || self.first_note(bytes).is_some();
        kinds
    }

    /// Whether words in the headers of references, or a document with relative links, show that a complete message may
    /// have to be changed. Notes in texts and marks of forms are not searched for.
    #[cfg(any(test, feature = "mailbox", feature = "internals"))]
    pub(super) fn has_word_that_matters(&self, message: &[u8]) -> bool {
        self.matters(message, self.kinds_of_words(message, Kinds::default()))
    }

    /// Searches for words, but not for notes. Also sets [`Kinds::references`] if the message contains a document and the
    /// policy follows a form of reference that occurs in documents.
    fn kinds_of_words(&self, bytes: &[u8], known: Kinds) -> Kinds {
        let mut kinds = self.of_words(bytes, known);
        kinds.documents |= self.unwrap;
        let is_in_documents = |needles| match needles {
            Needles::Documents(kinds, _) => self.reads_any(kinds),
            _ => false,
        };
        let in_documents =
            || kinds.documents && TABLE.iter().any(|form| is_in_documents(form.needles()));
        kinds.references = kinds.references || in_documents();
        kinds
    }

    fn of_words(&self, bytes: &[u8], known: Kinds) -> Kinds {
        let mut from = 0;
        let looks_at_documents = self.looks_at_documents();
        if looks_at_documents && known == Kinds::default() {
            // Most messages contain no word at all, so one search for all words comes first, and the separate searches
            // for references and documents follow only after a match.
            let Some((at, _)) = ALL.find_from(bytes, 0) else {
                return known;
            };
            from = at;
        }
        let holds = |words: &PrefilterWords| words.find_from(bytes, from).is_some();
        Kinds {
            references: known.references || holds(self.references),
            documents: known.documents || looks_at_documents && holds(&DOCUMENTS),
        }
    }

    /// Searches a message that arrives in pieces. `known` is the result for its first `searched` bytes, which are not searched
    /// again.
    #[cfg(feature = "milter")]
    pub(crate) fn kinds_so_far(&self, bytes: &[u8], searched: usize, known: Kinds) -> Kinds {
        let from = searched.saturating_sub(Self::OVERLAP);
        self.further(&bytes[from..], known)
    }

    /// Completes the search of a message that arrived in pieces. A media type that was cut at the end of a piece was
    /// counted as a document; now it is complete, so the search for documents is repeated.
    #[cfg(feature = "milter")]
    pub(crate) fn kinds_in_all(&self, bytes: &[u8], searched: usize, known: Kinds) -> Kinds {
        let mut kinds = self.kinds_so_far(bytes, searched, known);
        kinds.documents = kinds.documents && (self.unwrap || DOCUMENTS.first(bytes).is_some());
        kinds
    }
}

#[cfg(all(test, feature = "milter"))]
mod tests {
    use super::*;
    use crate::engine::policy::{Links, Policy};
    use proptest::prelude::*;

    const PIECES: [&str; 8] = [
        "external-body",
        "X-Mozilla-Altered: ",
        "\nContent-Type: text/html\n",
        "\ncontent-type: ",
        "multipart/mixed",
        "\nContent-Type",
        ":\n text / css",
        "A line of text.\n",
    ];

    proptest! {
        #[test]
        fn kinds_are_the_same_for_every_division_of_the_message(
            pieces in proptest::collection::vec((0..PIECES.len(), 0_usize..90), 0..6),
            cuts in proptest::collection::vec(0_usize..200, 0..9),
            resolve: bool,
        ) {
            let links = if resolve { Links::Resolve } else { Links::Keep };
            let prefilter = Prefilter::new(&Policy { links, ..Policy::default() });
            let message: String = pieces.iter().map(|&(which, dashes)| PIECES[which].to_owned() + &"-".repeat(dashes)).collect();
            let bytes = message.as_bytes();
            let expected = Kinds {
                references: prefilter.external_bodies(bytes),
                documents: prefilter.documents(bytes),
            };
            prop_assert_eq!(prefilter.kinds(bytes), expected);
            let (mut searched, mut kinds) = (0, Kinds::default());
            for cut in cuts {
                let end = (searched + cut).min(bytes.len());
                kinds = prefilter.kinds_so_far(&bytes[..end], searched, kinds);
                searched = end;
            }
            prop_assert_eq!(prefilter.kinds_in_all(bytes, searched, kinds), expected);
        }
    }
}
