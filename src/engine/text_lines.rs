//! Divides the text of a mail into lines, whatever its line endings and the quoting of its mailbox.

use crate::prologue::BYTE_ORDER_MARK;
use crate::span::split_while;

/// Returns the lines of `text` without their line endings. A line ends with LF or CRLF, and several CRs before the LF also
/// belong to the line ending.
///
/// A bare CR is a line ending only if the mail contains no LF, as on an old Macintosh. In other mails a bare CR is content: two
/// files that differ in it are different.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let is_old = memchr::memchr(b'\n', text).is_none();
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if is_old {
            memchr::memchr(b'\r', rest)
        } else {
            memchr::memchr(b'\n', rest)
        };
        let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = match behind {
            [b'\r', b'\n', next @ ..] | [_, next @ ..] => next,
            // The last line has no line ending.
            [] => &[],
        };
        Some(if is_old { line } else { without_returns(line) })
    })
}

/// Removes all CRs at the end of a line, because some programs write several before the LF.
fn without_returns(mut line: &[u8]) -> &[u8] {
    while let [before @ .., b'\r'] = line {
        line = before;
    }
    line
}

/// Divides a line of a body into the byte order mark at its start (empty if the line has none) and the rest. If the rest
/// is a quoted `From ` line, all `>` before `From ` are left out, because mailbox formats and programs add different
/// numbers of `>`.
pub(crate) fn unquoted(line: &[u8]) -> (&[u8], &[u8]) {
    let text = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let (mark, _) = line.split_at(line.len() - text.len());
    let (_, behind) = split_while(text, |byte| *byte == b'>');
    if behind.starts_with(b"From ") {
        (mark, behind)
    } else {
        (mark, text)
    }
}

/// Returns the text with LF line endings, without `>` before `From ` lines, and without empty lines at its end.
pub(crate) fn unquoted_text(content: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(content.len() + 1);
    for line in lines(content) {
        let (mark, line) = unquoted(line);
        text.extend_from_slice(mark);
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let end = text.iter().rposition(|byte| *byte != b'\n');
    text.truncate(end.map_or(0, |end| end + 1));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_lf_and_with_cr_only_in_an_old_mail() {
        let of = |text: &'static str| -> Vec<String> {
            let lines = lines(text.as_bytes());
            lines
                .map(|line| String::from_utf8_lossy(line).into_owned())
                .collect()
        };
        assert_eq!(of("a\nb\r\n\nc"), ["a", "b", "", "c"]);
        assert_eq!(of("a\rb\r\rc"), ["a", "b", "", "c"]);
        assert_eq!(of("a\rb\nc"), ["a\rb", "c"]);
        assert_eq!(of("a\nb\rc\r\r\nd"), ["a", "b\rc", "d"]);
        assert_eq!(of("a\r\nb\rc"), ["a", "b\rc"]);
        assert!(of("").is_empty());
    }
}
