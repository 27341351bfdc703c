//! Collects one message from the packets in which the mail system sends it.
//!
//! Mail systems send the lines of folded header fields with LF, and bodies with CRLF. For the engine, all line endings
//! are converted to LF, as they are for a filter in a pipe, and its output is converted back to CRLF. If a body
//! contains an LF without CR, this conversion cannot be undone. In this case the header gets CRLF, and the body is not
//! converted at all.
//!
//! The conversion and the search of the prefilter run while the packets arrive, so the mail system does not wait for
//! them at the end.

use crate::engine::report::{Detail, Setting};
use crate::engine::{Kinds, Prefilter};
use crate::mime::Header;
use crate::span::{Newline, Span, split_once};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HandoverResult {
    AsItIs,
    TooLarge(Detail),
    /// The message stays unchanged, because its header is malformed or because of a bug in embody. Contains the reason.
    Trouble(String),
}

#[derive(Default, Debug)]
pub struct MilterDraft {
    pub(super) message: IncomingMail,
    size: usize,
    body_start: Option<usize>,
    /// Whether the last byte so far was a CR, which is held back: only the next byte shows whether it is part of a line
    /// ending.
    holds_return: bool,
    pub(super) left: Option<HandoverResult>,
}

#[derive(Default, Debug)]
pub struct IncomingMail {
    pub bytes: Vec<u8>,
    pub fields: Span,
    pub count: usize,
    pub separator: Span,
    pub newline: Newline,
    pub(super) searched: usize,
    pub(super) kinds: Kinds,
    /// The queue id of the message. Empty if the mail system did not send it.
    pub queue_id: String,
}

const SEARCHED_AT_ONCE: usize = 128 << 10;

const LONGEST_ID: usize = 64;

impl MilterDraft {
    pub fn name(&mut self, queue_id: &[u8]) {
        let shown = |&octet: &u8| {
            if octet.is_ascii_graphic() {
                char::from(octet)
            } else {
                '?'
            }
        };
        self.message.queue_id = queue_id.iter().take(LONGEST_ID).map(shown).collect();
    }

    pub fn has_header(&self) -> bool {
        self.body_start.is_some()
    }

    /// Appends a header field. `value` includes the blank after the colon.
    pub fn field(&mut self, name: &[u8], value: &[u8], most: usize) {
        if self.left.is_some() || !self.has_space(name.len() + value.len() + 2, most) {
            return;
        }
        let is_name = |octet: &u8| *octet > b' ' && *octet != b':' && *octet != 0x7f;
        if !name.iter().all(is_name) {
            return self.leave(odd_header("a header field has an invalid name"));
        }
        self.message.bytes.extend_from_slice(name);
        self.message.bytes.push(b':');
        let mut lines = value.split(|&octet| octet == b'\n').peekable();
        while let Some(text) = lines.next() {
            let next = lines.peek();
            // Mail systems separate the lines of a folded field with LF. If a line ends with CR, the CR belongs to this
            // line ending and is removed.
            let folded = text.strip_suffix(b"\r").filter(|_| next.is_some());
            self.message.bytes.extend_from_slice(folded.unwrap_or(text));
            self.message.bytes.push(b'\n');
            if next.is_some_and(|next| !matches!(next.first(), Some(b' ' | b'\t'))) {
                return self.leave(odd_header(
                    "a line inside a header field does not begin with a blank or a tab",
                ));
            }
        }
        self.message.count += 1;
    }

    pub fn end_header(&mut self, matters: impl FnOnce(&[u8]) -> bool) {
        if self.body_start.is_some() {
            return;
        }
        self.message.bytes.push(b'\n');
        self.body_start = Some(self.message.bytes.len());
        if self.left.is_none() && !matters(&self.message.bytes) {
            self.leave(HandoverResult::AsItIs);
        }
    }

    pub fn body(&mut self, octets: &[u8], most: usize) {
        if self.left.is_some() || !self.has_space(octets.len(), most) {
            return;
        }
        match self.message.newline {
            Newline::Lf => self.lines(octets),
            Newline::CrLf => self.message.bytes.extend_from_slice(octets),
        }
    }

    pub fn search(&mut self, prefilter: &Prefilter) {
        let message = &mut self.message;
        let (bytes, searched) = (&message.bytes, message.searched);
        if bytes.len() - searched >= SEARCHED_AT_ONCE {
            message.kinds = prefilter.kinds_so_far(bytes, searched, message.kinds);
            message.searched = bytes.len();
        }
    }

    fn lines(&mut self, octets: &[u8]) {
        let mut rest = octets;
        if !rest.is_empty() && std::mem::take(&mut self.holds_return) {
            match rest.strip_prefix(b"\n") {
                Some(behind) => {
                    self.message.bytes.push(b'\n');
                    rest = behind;
                }
                None => self.message.bytes.push(b'\r'),
            }
        }
        while let Some((line, behind)) = split_once(b'\n', rest) {
            let Some(line) = line.strip_suffix(b"\r") else {
                self.take_returns_back();
                return self.message.bytes.extend_from_slice(rest);
            };
            self.message.bytes.extend_from_slice(line);
            self.message.bytes.push(b'\n');
            rest = behind;
        }
        let held = rest.strip_suffix(b"\r");
        self.holds_return |= held.is_some();
        self.message.bytes.extend_from_slice(held.unwrap_or(rest));
    }

    fn take_returns_back(&mut self) {
        let old = &self.message.bytes;
        let body_start = self.body_start.unwrap_or(old.len());
        let (header, body) = old.split_at(body_start.min(old.len()));
        let mut bytes = Vec::with_capacity(old.len() + old.len() / 16);
        push_with_returns(header, &mut bytes);
        self.body_start = Some(bytes.len());
        push_with_returns(body, &mut bytes);
        self.message.bytes = bytes;
        self.message.newline = Newline::CrLf;
        (self.message.searched, self.message.kinds) = (0, Kinds::default());
    }

    fn has_space(&mut self, octets: usize, most: usize) -> bool {
        self.size = self.size.saturating_add(octets);
        let fits = self.size <= most;
        if !fits {
            self.leave(HandoverResult::TooLarge(
                Detail::from(format!("the message has more than {most} bytes, which is "))
                    .naming(Setting::Message),
            ));
        }
        fits
    }

    fn leave(&mut self, why: HandoverResult) {
        self.left = Some(why);
        self.message.bytes = Vec::new();
        self.message.searched = 0;
    }

    pub fn finish(self) -> Result<IncomingMail, HandoverResult> {
        if let Some(why) = self.left {
            return Err(why);
        }
        let mut message = self.message;
        if self.body_start.is_none() {
            message.bytes.push(b'\n');
        }
        if self.holds_return {
            message.bytes.push(b'\r');
        }
        let header = Header::of_message(&message.bytes, usize::MAX);
        // Changes are sent to the mail system by the number of the field. If embody and the mail system divided the
        // header into different fields, a change would be applied to the wrong field, so the message is left unchanged.
        let is_same = header.fields.len() == message.count
            && header.envelope.is_empty()
            && !header.separator.is_empty();
        if !is_same {
            return Err(odd_header(
                "the mail server sent header fields that embody would divide differently, so a change could affect the wrong field",
            ));
        }
        (message.fields, message.separator) = (header.span, header.separator);
        Ok(message)
    }
}

fn odd_header(what: &str) -> HandoverResult {
    HandoverResult::Trouble(what.to_owned())
}

fn push_with_returns(text: &[u8], to: &mut Vec<u8>) {
    for line in text.split_inclusive(|&octet| octet == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                to.extend_from_slice(line);
                to.extend_from_slice(b"\r\n");
            }
            None => to.extend_from_slice(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn draft(fields: &[(&str, &str)], body: &[u8]) -> MilterDraft {
        let mut draft = MilterDraft::default();
        for (name, value) in fields {
            draft.field(name.as_bytes(), value.as_bytes(), 1000);
        }
        draft.end_header(|_| true);
        draft.body(body, 1000);
        draft
    }

    #[test]
    fn the_engine_sees_what_a_pipe_would() {
        let fields = [("Subject", " a\r\n\tb\n c"), ("X", "")];
        let incoming = draft(&fields, b"one\r\n\r\ntwo\r\n")
            .finish()
            .expect("a message");
        assert_eq!(incoming.bytes, b"Subject: a\n\tb\n c\nX:\n\none\n\ntwo\n");
        assert_eq!(incoming.newline, Newline::Lf);
        assert_eq!(incoming.count, 2);
    }

    #[test]
    fn a_bare_line_feed_keeps_the_body_as_it_is() {
        let incoming = draft(&[("X", " a\n b")], b"one\ntwo\r\n")
            .finish()
            .expect("a message");
        assert_eq!(incoming.bytes, b"X: a\r\n b\r\n\r\none\ntwo\r\n");
        assert_eq!(incoming.newline, Newline::CrLf);
    }

    #[test]
    fn message_with_an_ambiguous_header_field_is_left_unchanged() {
        for fields in [
            [("X", " a\nY: b")],
            [("X", " a\n")],
            [("X Y", " a")],
            [("X\n", " a")],
        ] {
            let why = draft(&fields, b"").finish().expect_err("it is odd");
            assert!(matches!(why, HandoverResult::Trouble(_)), "{fields:?}");
        }
    }

    #[test]
    fn message_above_the_limit_is_not_held_in_memory() {
        let mut draft = draft(&[("X", " a")], &[b'x'; 900]);
        draft.body(&[b'x'; 200], 1000);
        draft.body(b"x", 1000);
        assert!(draft.message.bytes.is_empty());
        assert!(matches!(draft.finish(), Err(HandoverResult::TooLarge(_))));
    }

    proptest! {
        #[test]
        fn line_ends_of_the_body_are_restored_from_the_chosen_newline(
            body in prop_oneof!["[a\r\n]{0,30}", "(a|\r\n){0,30}"],
            pieces in proptest::collection::vec(0_usize..9, 0..9),
        ) {
            let mut draft = draft(&[("X", " a\n b")], b"");
            let mut rest = body.as_bytes();
            for length in pieces {
                let (piece, behind) = rest.split_at(length.min(rest.len()));
                draft.body(piece, 1000);
                rest = behind;
            }
            draft.body(rest, 1000);
            let incoming = draft.finish().expect("a message");
            let header: &[u8] = match incoming.newline {
                Newline::Lf => b"X: a\n b\n\n",
                Newline::CrLf => b"X: a\r\n b\r\n\r\n",
            };
            prop_assert!(incoming.bytes.starts_with(header));
            let has_bare = body.replace("\r\n", "").contains('\n');
            prop_assert_eq!(incoming.newline == Newline::CrLf, has_bare);
            let found = &incoming.bytes[incoming.separator.end..];
            let back = match incoming.newline {
                Newline::CrLf => String::from_utf8_lossy(found).into_owned(),
                Newline::Lf => String::from_utf8_lossy(found).replace('\n', "\r\n"),
            };
            prop_assert_eq!(back, body);
        }
    }
}
