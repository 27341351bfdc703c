//! Base64 that is written as its octets come: they stand nowhere as a whole.

use crate::mime::transfer::encode_base64;
use crate::span::Newline;

/// Octets that are encoded at a time: so many full lines.
const STAGE: usize = 57 << 10;

/// Lines of base64.
pub(super) struct Base64Lines {
    newline: Newline,
    stage: Vec<u8>,
    written: Vec<u8>,
}

impl Base64Lines {
    /// `length` octets will come.
    pub(super) fn new(length: usize, newline: Newline) -> Self {
        let symbols = length.div_ceil(3) * 4;
        let ends = length.div_ceil(57) * newline.bytes().len();
        Self {
            newline,
            stage: Vec::with_capacity(STAGE.min(length)),
            written: Vec::with_capacity(symbols + ends),
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
        if !self.written.is_empty() {
            self.written.extend_from_slice(self.newline.bytes());
        }
        let lines = encode_base64(&self.stage, self.newline);
        self.written.extend_from_slice(&lines.body);
        self.stage.clear();
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        if !self.stage.is_empty() {
            self.write();
        }
        self.written
    }
}
