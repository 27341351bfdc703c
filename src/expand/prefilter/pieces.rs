//! Whether a message that comes in pieces may have to be changed, as far as each piece tells alone.
//!
//! More may be said to matter than [`Prefilter::in_message`] would say of the whole, never less: where a document does
//! not end in the first piece, or stands in another, it matters.

use super::bases::Documents;
use super::{ALL, Embeds, OF_REFERENCES, Prefilter, declares_base};

impl Prefilter {
    /// Whether a message may have to be changed that starts with `bytes`: because of what is in them, or of what is
    /// behind them that only they tell how to read.
    #[must_use]
    pub(crate) fn in_first_piece(&self, bytes: &[u8]) -> bool {
        let words = match self.looks_at_documents() {
            true => &ALL,
            false => self.references,
        };
        let mut documents = Documents::default();
        let (mut from, mut has_document) = (0, false);
        while let Some((at, word)) = words.find_from(bytes, from) {
            if word < OF_REFERENCES
                || self.embeds == Embeds::Remote
                || documents.matters(bytes, at, self.sought())
                || !documents.end_within(bytes)
            {
                return true;
            }
            has_document = true;
            from = at + words.words.get(word).map_or(1, |word| word.text.len());
        }
        has_document && declares_base(bytes)
    }

    /// The same of a message with `bytes` in it, in which what stands before does not matter.
    ///
    /// What may stand in two pieces is to be looked at again where they meet, with [`OVERLAP`](Self::OVERLAP) bytes of both.
    #[must_use]
    pub(crate) fn in_further_piece(&self, bytes: &[u8]) -> bool {
        self.first(bytes).is_some() || self.looks_at_documents() && declares_base(bytes)
    }
}
