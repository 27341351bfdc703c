//! Texts as digests, in which line ends do not count, and in which notes divide pieces.

use super::plain::{Digest, hash};
use crate::external_body::{EudoraPiece, eudora_pieces, separator_at_end};
use crate::span::Span;

/// Number of texts and files of a message of Eudora that are told apart.
pub(super) const MOST_PIECES: usize = 10_000;

/// What Eudora's lines divide a text into.
pub(super) struct EudoraTexts {
    pub(super) pieces: Vec<u64>,
    /// Number of lines that name files.
    pub(super) notes: usize,
    /// Whether Eudora marked one of the texts as HTML, rich or flowed.
    pub(super) is_marked: bool,
}

impl EudoraTexts {
    pub(super) fn of(original: &[u8], within: Span) -> Self {
        let mut texts = Self {
            pieces: Vec::new(),
            notes: 0,
            is_marked: false,
        };
        let (pieces, _) = eudora_pieces(original, within, MOST_PIECES);
        for it in &pieces {
            match it {
                EudoraPiece::Text(text) => {
                    texts.is_marked |= text.wrapper.is_some();
                    texts.pieces.extend(piece(Some(text.span.of(original))));
                }
                EudoraPiece::Note(_) => texts.notes += 1,
            }
        }
        texts
    }
}

/// The digest of a text with a line feed at the end of each line but the last. Returns `None` if that is the content itself.
pub(super) fn text_digest(content: &[u8]) -> Option<Digest> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let ends = content.last().is_some_and(is_end);
    if !ends && memchr::memchr(b'\r', content).is_none() {
        return None;
    }
    let length = content.iter().rposition(|byte| !is_end(byte));
    let content = content.get(..length.map_or(0, |last| last + 1))?;
    let mut text = Vec::with_capacity(content.len());
    for (at, byte) in content.iter().enumerate() {
        match byte {
            b'\r' if content.get(at + 1) == Some(&b'\n') => {}
            b'\r' => text.push(b'\n'),
            byte => text.push(*byte),
        }
    }
    Some(Digest::of(&text))
}

/// Texts that embody divides get other line ends at their edges. Returns `None` for an empty text.
pub(super) fn piece(text: Option<&[u8]>) -> Option<u64> {
    let mut words = Vec::new();
    for line in text?.split(|byte| matches!(byte, b'\r' | b'\n')) {
        let line = line.trim_ascii_end();
        // A note takes the separator before it along, which may follow the text in the same line.
        let line = separator_at_end(line).map_or(line, |at| line.get(..at).unwrap_or(line));
        if !line.is_empty() {
            words.extend_from_slice(line);
            words.push(b'\n');
        }
    }
    (!words.is_empty()).then(|| hash(&words))
}
