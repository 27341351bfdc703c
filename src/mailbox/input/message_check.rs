//! Checks that a single message loses no byte when it is divided into separator, content and the empty lines after it
//! (see `accounts`).

use std::io;

use crate::mailbox::forms::mbox::Frame;
use crate::prologue::BYTE_ORDER_MARK;

/// Checks that the separator before the message is one line, and that only line endings, and the byte order mark of the
/// next message, follow the message. In MMDF,
/// each side may also have a line of four Control-A characters.
pub(crate) fn check_message(
    frame: &Frame,
    (from_line, content, behind): (&[u8], &[u8], &[u8]),
    offset: u64,
) -> io::Result<()> {
    let length = frame.end.saturating_sub(frame.start);
    if from_line.len() + content.len() + behind.len() != length {
        return Err(imbalance(
            offset,
            "bytes of the message are missing after the division into parts",
        ));
    }
    let separator = without_mark(from_line);
    let endings = separator
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'));
    let line = &separator[..separator.len() - endings.count()];
    let ending = &separator[line.len()..];
    let is_one_line = line.iter().all(|byte| !matches!(byte, b'\r' | b'\n'));
    let is_mmdf = separator.len() < from_line.len();
    if from_line.is_empty() {
        return Err(imbalance(offset, "a message has no separator line"));
    }
    let is_separator = is_mmdf && line.is_empty() || line.starts_with(b"From ");
    if !is_one_line || !is_separator || line_endings(ending) > 1 {
        return Err(imbalance(
            offset,
            "the separator of the message is not exactly one line",
        ));
    }
    let blanks = behind.strip_suffix(BYTE_ORDER_MARK).unwrap_or(behind);
    if !is_blank(without_mark(blanks)) {
        let at = offset + (from_line.len() + content.len()) as u64;
        return Err(imbalance(
            at,
            "text after the message is not part of any message",
        ));
    }
    Ok(())
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    let behind = bytes.strip_prefix(b"\x01\x01\x01\x01");
    let ended = behind.and_then(|it| it.strip_prefix(b"\r\n").or(it.strip_prefix(b"\n")));
    // The line of four Control-A characters may be the last line of the file and have no line ending.
    ended.or(behind.filter(|it| it.is_empty())).unwrap_or(bytes)
}

pub(crate) fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
}

/// Returns the number of line endings. An LF and all CRs before it are one line ending. Each CR at the end of `bytes`
/// counts as another one, because no LF follows it.
fn line_endings(bytes: &[u8]) -> usize {
    let line_feeds = memchr::memchr_iter(b'\n', bytes).count();
    let last = bytes.iter().rev().take_while(|&&byte| byte == b'\r');
    line_feeds + last.count()
}

pub(crate) fn imbalance(at: u64, what: &str) -> io::Error {
    io::Error::other(format!(
        "byte {at}: {what}, so mail could be lost; no result was written. This is a defect of embody; please report it"
    ))
}
