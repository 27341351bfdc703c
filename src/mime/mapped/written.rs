//! Builds the replacements for an encoded body: replacements that are close together are merged, and base64 is
//! encoded in pieces.

use crate::mime::transfer::encode_base64;
use crate::span::{Newline, Span};

/// Maximum distance in bytes of two replacements that are merged into one. The merged replacement copies the bytes
/// between them, but needs about a hundred bytes less memory than two replacements.
const NEAR: usize = 64;
/// Size in bytes from which a replacement is not merged with the next one, because growing a large buffer copies it
/// repeatedly and takes a long time.
const LARGE: usize = 64 << 10;

pub(super) fn push_joined(
    replacements: &mut Vec<(Span, Vec<u8>)>,
    original: &[u8],
    span: Span,
    bytes: &[u8],
) {
    if let Some((last, joined)) = replacements.last_mut() {
        let between = Span::new(last.end, span.start);
        if between.len() <= NEAR && joined.len() < LARGE {
            joined.extend_from_slice(between.of(original));
            joined.extend_from_slice(bytes);
            last.end = span.end;
            return;
        }
        joined.shrink_to_fit();
    }
    replacements.push((span, bytes.to_vec()));
}

/// Number of bytes that are encoded at once. It corresponds to a whole number of lines of 76 columns.
const STAGE: usize = 57 << 10;

pub(super) struct Base64Lines {
    newline: Newline,
    stage: Vec<u8>,
    pieces: Vec<Vec<u8>>,
}

impl Base64Lines {
    pub(super) fn new(newline: Newline) -> Self {
        Self {
            newline,
            stage: Vec::new(),
            pieces: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            if self.stage.len() == STAGE {
                self.write();
            }
            let taken = octets.len().min(STAGE - self.stage.len());
            let (front, rest) = octets.split_at(taken);
            self.stage.extend_from_slice(front);
            octets = rest;
        }
    }

    fn write(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.extend_from_slice(self.newline.bytes());
        }
        self.pieces
            .push(encode_base64(&self.stage, self.newline).body);
        self.stage.clear();
    }

    pub(super) fn finish(mut self) -> Vec<Vec<u8>> {
        if !self.stage.is_empty() || self.pieces.is_empty() {
            self.write();
        }
        self.pieces
    }
}
