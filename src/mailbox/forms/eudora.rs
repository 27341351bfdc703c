//! Mailboxes of Eudora on Windows (`In.mbx`, CR LF) and on the Mac (`In`, bare CR). The format is not
//! documented, so these rules follow the files that Eudora writes. `eudora_files` reads the files next to a mailbox.
//! * A line `From ???@??? ` with the date of asctime(3) starts each message, whatever line precedes it. All other lines
//!   that start with `From ` are text. No lines are quoted, and Content-Length has no meaning.
//! * On the Mac, a bare CR ends a line. It is read as an LF, so that offsets are the same as in the file.

use std::sync::LazyLock;

use memchr::memchr2;
use memchr::memmem::Finder;

use crate::mailbox::forms::separator::is_plausible;
use crate::span::front;

const OPENING: &[u8] = b"From ???@??? ";
static SEPARATOR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPENING));

pub(crate) const LOOK_AHEAD: usize = 64;

pub(crate) fn starts(bytes: &[u8]) -> bool {
    let line = front(bytes, LOOK_AHEAD);
    let end = memchr2(b'\r', b'\n', line).unwrap_or(line.len());
    line.starts_with(OPENING) && is_plausible(&line[..end])
}

pub(crate) fn ends_lines_with_cr(start: &[u8]) -> bool {
    let end = memchr2(b'\r', b'\n', start).and_then(|end| start.get(end..));
    end.is_some_and(|end| end.starts_with(b"\r") && !end.starts_with(b"\r\n"))
}

/// Replaces each bare CR by an LF. `next` is the byte after `bytes`, if it is known: a CR before an LF is not bare.
pub(crate) fn with_line_feeds(bytes: &mut [u8], next: Option<u8>) {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\r', &bytes[at..]) {
        at += found;
        if bytes.get(at + 1).copied().or(next) != Some(b'\n') {
            bytes[at] = b'\n';
        }
        at += 1;
    }
}

/// Returns the start of the next message. The line ending before it (an LF or CR) is at `from` or later. A message that
/// starts in the last bytes is found only if no more bytes follow (`whole`), because its first line may be incomplete.
pub(crate) fn next_message(bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
    let searched = &bytes[from..];
    let hits = SEPARATOR.find_iter(searched).filter(|&hit| hit > 0);
    let mut places = hits.map(|hit| from + hit);
    let is_next = |&start: &usize| {
        let (before, rest) = bytes.split_at(start);
        matches!(before.last(), Some(b'\n' | b'\r'))
            && (whole || rest.len() >= LOOK_AHEAD)
            && starts(rest)
    };
    places.find(is_next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eudora_message_starts_only_at_a_eudora_separator_line() {
        let opening = "From ???@??? Tue May 14 12:00:00 2024";
        for (behind, is_next) in [
            ("\r\nA: b\r\n\r\nx\r\n", true),
            ("\nx\n>From ???@??? Tue May 14 12:00:00 2024\n", true),
            ("\nx\nFrom a@b Tue May 14 12:00:00 2024\n", false),
            ("\nx\nFrom ???@??? here on\n", false),
        ] {
            let text = format!("{opening}{behind}");
            let next = if is_next { opening } else { "" };
            let found = next_message(format!("{text}{next}").as_bytes(), 0, true);
            assert_eq!(found, is_next.then_some(text.len()), "{text}");
            assert!(starts(text.as_bytes()));
        }
        assert!(!starts(b"From ???@???"));
        assert!(starts(b"From ???@??? Tue May 14 12:00:00 2024\rA: b\r"));
    }

    #[test]
    fn a_bare_cr_is_a_line_end_wherever_a_window_ends() {
        let text = b"a\rb\r\r\nc\r\r";
        for cut in 0..=text.len() {
            let mut read = text.to_vec();
            let (front, back) = read.split_at_mut(cut);
            with_line_feeds(front, back.first().copied());
            with_line_feeds(back, None);
            assert_eq!(read, b"a\nb\n\r\nc\n\n", "{cut}");
        }
        assert!(ends_lines_with_cr(b"a\rb\n") && !ends_lines_with_cr(b"a\r\nb\r"));
    }
}
