//! Base64 that is written as its octets come: they stand nowhere as a whole.

use crate::mime::transfer::encode_base64;
use crate::span::Newline;

/// Octets that are encoded at a time: so many full lines.
const STAGE: usize = 57 << 10;

/// Lines of base64, in pieces that take the place of what they are made of.
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
