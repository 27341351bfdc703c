//! Digests of texts that ignore line endings. A text that contains Eudora notes is compared in pieces.

use super::plain::{Digest, hash};
use crate::engine::forms::eudora::notes::{EudoraPiece, eudora_pieces};
use crate::engine::forms::mailman::separator_at_end;
use crate::span::Span;

/// Maximum number of notes and marked texts that divide a Eudora message into pieces. Everything after them is one
/// piece. The limit bounds the memory for a hostile message.
pub(super) const MOST_PIECES: usize = 10_000;

/// The pieces into which Eudora notes divide a text. A note is a line that names an attached file.
pub(super) struct EudoraTexts {
    pub(super) pieces: Vec<u64>,
    /// Number of notes.
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

/// Returns the digest of a text with LF as line ending and without line endings at its end. Returns `None` if the content
/// already has this form.
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

/// Returns the digest of a piece of text, or `None` for an empty text. Trailing white space of lines and empty lines are
/// ignored, because embody changes the line endings at the start and the end of a piece.
pub(super) fn piece(text: Option<&[u8]>) -> Option<u64> {
    let mut words = Vec::new();
    for line in text?.split(|byte| matches!(byte, b'\r' | b'\n')) {
        let trimmed = line.trim_ascii_end();
        // A separator can precede a Eudora note on the same line as the text. Embody removes it together with the note, so
        // it is ignored.
        let text = separator_at_end(trimmed)
            .and_then(|at| trimmed.get(..at))
            .unwrap_or(trimmed);
        if !text.is_empty() {
            words.extend_from_slice(text);
            words.push(b'\n');
        }
    }
    (!words.is_empty()).then(|| hash(&words))
}
