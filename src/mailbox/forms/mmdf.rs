//! MMDF mailboxes: a line of four Control-A characters opens each message, and another one closes it. To recognise such
//! a line, at most [`LOOK_AHEAD`] bytes from its start are read.
//!
//! A `From ` line may follow the opening line. No lines are quoted, and Content-Length has no meaning.
//!
//! **A closing line** is followed directly by an opening line, or by the end of the file, with at most two line endings
//! before the end. Any other line of four Control-A characters is text: programs disagree about such lines, and one of
//! them must not shift the ends of all later messages. Other programs start a message at such a line. For this reason,
//! a message with such a line is never changed, and a change must not add such a line.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::mailbox::forms::cost;
use crate::mailbox::forms::separator::{field, from_line_length};
use crate::span::{front, rest_or_empty};

const MARK: &[u8] = b"\x01\x01\x01\x01";

/// Number of bytes from the start of a line of four Control-A characters that show whether it closes a message. Two
/// such lines have 12 bytes, and one such line with two more line endings has 10 bytes, so 16 bytes are enough.
pub(crate) const LOOK_AHEAD: usize = 16;

/// Maximum length, in bytes, of the name of a header field.
const LONGEST_FIELD: usize = 256;

static LINE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\n\x01\x01\x01\x01"));

fn line(bytes: &[u8]) -> Option<usize> {
    let behind = bytes.strip_prefix(MARK)?;
    match behind {
        [b'\n', ..] => Some(MARK.len() + 1),
        [b'\r', b'\n', ..] => Some(MARK.len() + 2),
        _ => None,
    }
}

pub(crate) fn starts(bytes: &[u8]) -> bool {
    line(bytes).is_some()
}

pub(crate) fn content_start(message: &[u8]) -> Option<usize> {
    let opening = line(message)?;
    let from_line = from_line_length(&message[opening..]);
    Some(opening + from_line.unwrap_or(0))
}

/// Returns the text after `From ` in the `From ` line of a message in MMDF or in an mbox. Returns an empty
/// slice if there is no such line.
pub(crate) fn from_line(opening: &[u8]) -> &[u8] {
    let behind = &opening[line(opening).unwrap_or(0)..];
    behind.strip_prefix(b"From ").unwrap_or_default()
}

/// Returns the offset of a line of four Control-A characters in a message after which another message starts: with a `From `
/// line or a header field. Some programs write one line between two messages, instead of a closing and an opening line.
pub(crate) fn next_in_message(message: &[u8]) -> Option<usize> {
    LINE.find_iter(message).map(|hit| hit + 1).find(|&start| {
        let rest = rest_or_empty(message, start);
        line(rest).is_some_and(|length| {
            let behind = front(rest_or_empty(rest, length), LONGEST_FIELD);
            let is_field = field(behind)
                .is_some_and(|(name, value)| !name.is_empty() && !value.starts_with(b"//"));
            from_line_length(behind).is_some() || is_field
        })
    })
}

pub(crate) fn holds_line(content: &[u8]) -> bool {
    content.starts_with(MARK) || LINE.find(content).is_some()
}

/// Returns the end of the content and the end of the message. Returns `None` if more bytes are needed. The line ending
/// before the closing line is at `from` or later. `whole` is true if no more bytes follow.
pub(crate) fn end_of_message(
    bytes: &[u8],
    start: usize,
    from: usize,
    whole: bool,
) -> Option<(usize, usize)> {
    let opening = line(&bytes[start..]).unwrap_or(0);
    // In an empty message, the closing line directly follows the opening line. So the search includes the line ending
    // of the opening line.
    let from = (start + opening).saturating_sub(1).max(from);
    let cut_off = whole.then_some((bytes.len(), bytes.len()));
    closing(bytes, from, whole).or(cut_off)
}

/// Returns the start and the end of the first closing line whose preceding LF is at `from` or later. Returns `None` if
/// no such line exists, or if the last bytes may be the start of one.
pub(crate) fn closing(bytes: &[u8], from: usize, whole: bool) -> Option<(usize, usize)> {
    let searched = &bytes[from..];
    cost::count(searched.len());
    for hit in LINE.find_iter(searched) {
        let start = from + hit + 1;
        let rest = &bytes[start..];
        if rest.len() < LOOK_AHEAD && !whole {
            return None;
        }
        let Some(length) = line(rest) else { continue };
        let behind = &rest[length..];
        if starts(behind) {
            return Some((start, start + length));
        }
        if whole && matches!(behind, b"" | b"\n" | b"\r\n" | b"\n\n" | b"\r\n\r\n") {
            return Some((start, bytes.len()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mailbox::input::window::tests::divided;

    const LINE: &str = "\x01\x01\x01\x01\n";

    fn contents(text: &str) -> Vec<String> {
        let (mut at, mut found) = (0, Vec::new());
        while at < text.len() {
            let (content_end, end) = end_of_message(text.as_bytes(), at, at, true).unwrap();
            let start = at + content_start(&text.as_bytes()[at..]).unwrap();
            found.push(text[start..content_end].to_owned());
            at = end;
        }
        found
    }

    #[test]
    fn a_message_ends_where_another_is_opened_or_the_file_ends() {
        let message = |text: &str| format!("{LINE}{text}{LINE}");
        for (text, expected) in [
            (message("a\n") + &message("b\n"), vec!["a\n", "b\n"]),
            (message("") + &message("From x\nb\n"), vec!["", "b\n"]),
            (message("a\n") + "\n", vec!["a\n"]),
            (format!("{LINE}cut off"), vec!["cut off"]),
            (message("a\n").replace('\n', "\r\n"), vec!["a\r\n"]),
            (
                message(&format!("a\n{LINE}more\n")) + &message("b\n"),
                vec!["a\n\x01\x01\x01\x01\nmore\n", "b\n"],
            ),
            (
                message(&format!("a\n{LINE}")) + &message("b\n") + &message("c\n"),
                vec!["a\n", "\x01\x01\x01\x01\nb\n", "c\n"],
            ),
        ] {
            assert_eq!(contents(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn chunk_that_ends_with_a_closing_line_waits_for_the_next_line() {
        let text = format!("{LINE}a\n{LINE}{LINE}b\n{LINE}");
        for length in 5..text.len() {
            let found = end_of_message(&text.as_bytes()[..length], 0, 0, false);
            match found {
                Some(ends) => assert_eq!(ends, (7, 12)),
                None => assert!(length < 23, "{length}"),
            }
        }
        assert!(
            ![b"".as_slice(), b"\n", b"From a\n", b"From: a@b\n\n"]
                .into_iter()
                .any(starts)
        );
        assert!(holds_line(b"\x01\x01\x01\x01") && holds_line(b"a\n\x01\x01\x01\x01"));
        assert!(!holds_line(b" \x01\x01\x01\x01\n\x01\x01\x01"));
    }

    fn mmdf_pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            3 => Just(b"\x01\x01\x01\x01\n".to_vec()),
            2 => Just(b"\x01\x01\x01\x01\n\x01\x01\x01\x01\n".to_vec()),
            1 => Just(b"\x01\x01\x01\x01\r\n".to_vec()),
            1 => Just(b"\x01\x01\x01\x01".to_vec()),
            1 => Just(b"From a@b Thu Jan  1 00:00:00 1970\n".to_vec()),
            2 => (0_usize..900).prop_map(|length| vec![b'x'; length]),
            2 => Just(b"\n".to_vec()),
        ];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| {
            let start = b"\x01\x01\x01\x01\n".to_vec();
            [vec![start], pieces].concat().concat()
        })
    }

    proptest! {
        #[test]
        fn mmdf_is_divided_alike_whatever_the_window_and_loses_nothing(
            bytes in mmdf_pieces(), window in 1_usize..6000
        ) {
            let (joined, messages, oversized) = divided(&bytes, window, 1 << 20);
            prop_assert_eq!(&joined, &bytes);
            prop_assert_eq!(oversized, 0);
            let (_, at_once, _) = divided(&bytes, 1 << 20, 1 << 20);
            prop_assert_eq!(&messages, &at_once);
            let (joined, messages, oversized) = divided(&bytes, window, 1100);
            prop_assert_eq!(&joined, &bytes);
            prop_assert_eq!(messages.len() as u64 + oversized, at_once.len() as u64);
        }
    }
}
