//! No line of a 7bit or 8bit body is made longer than 998 octets (RFC 2045 §2.7 and §2.8): where changes
//! would, a blank between two attributes becomes a line end.

use crate::mime::mapped::Change;
use crate::mime::transfer::LINE_LIMIT;
use crate::span::Newline;

/// Changes (in order) and the line ends that they need; none if a line would be too long nevertheless.
///
/// `blanks` gives, in order, where a blank may become a line end; it is asked only if a line has to be
/// broken. A line that was too long before is none of our making, and stays one line.
pub(super) fn broken(
    document: &[u8],
    changes: Vec<Change>,
    newline: Newline,
    blanks: impl FnOnce(&[Change]) -> Vec<usize>,
) -> Option<Vec<Change>> {
    let long = long_stretches(document, &changes);
    if long.is_empty() {
        return Some(changes);
    }
    let blanks = blanks(&changes);
    let mut breaks = Vec::new();
    for stretch in long {
        let from = blanks.partition_point(|&at| at < stretch.start);
        let until = blanks.partition_point(|&at| at < stretch.end);
        let within = blanks.get(from..until).unwrap_or_default();
        let changes = changes.get(stretch.changes.clone()).unwrap_or_default();
        breaks.extend(stretch.breaks(changes, within)?);
    }
    let mut all = changes;
    all.extend(breaks.into_iter().map(|at| Change {
        octets: at..at + 1,
        replacement: newline.bytes().to_vec(),
    }));
    all.sort_by_key(|change| change.octets.start);
    Some(all)
}

/// Lines that become one line, or the one line that changes stand in.
struct Stretch {
    start: usize,
    /// Where its line feed stands, or the end of the document.
    end: usize,
    /// Its octets afterwards, a CR at its end not counted.
    length: usize,
    /// Which changes stand in it.
    changes: std::ops::Range<usize>,
}

/// The stretches that were no longer than the limit and will be.
fn long_stretches(document: &[u8], changes: &[Change]) -> Vec<Stretch> {
    let mut long = Vec::new();
    let mut index = 0;
    let mut searched = 0;
    while let Some(first) = changes.get(index) {
        let between = document
            .get(searched..first.octets.start)
            .unwrap_or_default();
        let start = memchr::memrchr(b'\n', between).map_or(searched, |at| searched + at + 1);
        let from = index;
        let mut end = start;
        let mut length = 0;
        let mut gained = 0;
        let mut lost = 0;
        while let Some(change) = changes.get(index)
            && (index == from || change.octets.start <= end)
        {
            // A change that covers line ends joins their lines.
            if end < change.octets.end || index == from {
                end = line_end(document, change.octets.end);
            }
            gained += change.replacement.len();
            lost += change.octets.len();
            index += 1;
        }
        let text = document.get(start..end).unwrap_or_default();
        length += text.strip_suffix(b"\r").unwrap_or(text).len() + gained;
        length = length.saturating_sub(lost);
        let was_long = || {
            text.split(|&byte| byte == b'\n')
                .any(|line| line.strip_suffix(b"\r").unwrap_or(line).len() > LINE_LIMIT)
        };
        if length > LINE_LIMIT && !was_long() {
            long.push(Stretch {
                start,
                end,
                length,
                changes: from..index,
            });
        }
        searched = (end + 1).min(document.len());
    }
    long
}

fn line_end(document: &[u8], from: usize) -> usize {
    let rest = document.get(from..).unwrap_or_default();
    from + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
}

impl Stretch {
    /// The blanks that have to become line ends: each time the last one that is not too far.
    fn breaks(&self, changes: &[Change], blanks: &[usize]) -> Option<Vec<usize>> {
        // Where each blank will stand, counted from the start of the stretch.
        let mut changes = changes.iter().peekable();
        let (mut gained, mut lost) = (0, 0);
        let places: Vec<usize> = blanks
            .iter()
            .map(|&blank| {
                while let Some(change) = changes.next_if(|change| change.octets.end <= blank) {
                    gained += change.replacement.len();
                    lost += change.octets.len();
                }
                (blank - self.start + gained).saturating_sub(lost)
            })
            .collect();
        let mut breaks = Vec::new();
        let mut line = 0;
        let mut waiting = blanks.iter().zip(&places).peekable();
        while self.length.saturating_sub(line) > LINE_LIMIT {
            let mut last = None;
            while let Some(next) = waiting.next_if(|(_, place)| **place - line <= LINE_LIMIT) {
                last = Some(next);
            }
            let (&blank, &place) = last?;
            breaks.push(blank);
            line = place + 1;
        }
        Some(breaks)
    }
}
