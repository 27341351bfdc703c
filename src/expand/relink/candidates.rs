//! Candidates of a `srcset` that point nowhere any more: what is left is true and valid.
//!
//! A candidate that was not embedded goes to the picture of its `src`. That picture has one density and one
//! width, so it is one candidate: it stands there once, or not at all where others stand, which a reader
//! chooses from together with `src` (HTML standard §4.8.4.2.2).

use std::collections::HashMap;
use std::ops::Range;

use crate::link::value::LinkValue;

/// Candidates that are looked at together, at most; of more, each is pointed at the picture.
pub(super) const MOST: usize = 100;

/// What stands instead of candidates: their numbers among the links, the URL of the picture of `src`, and how
/// wide it is.
pub(in crate::expand) type Fallbacks = HashMap<usize, Option<u32>>;

/// The changes of one `srcset`: its candidates with their numbers, those of `urls` at their places. None where
/// something stands between them that is not understood; then nothing is said of what they describe.
pub(super) fn changes(
    text: &[u8],
    candidates: &[(usize, LinkValue)],
    urls: &HashMap<usize, String>,
    fallbacks: &Fallbacks,
) -> Option<Vec<(Range<usize>, Vec<u8>)>> {
    if candidates.len() > MOST {
        return None;
    }
    let mut ends = Vec::new();
    for (at, (_, link)) in candidates.iter().enumerate() {
        let next = candidates.get(at + 1).map(|(_, next)| next.span.start);
        ends.push(end(text, link.span.end, next)?);
    }
    let is_gone = |(ordinal, _): &(usize, LinkValue)| fallbacks.contains_key(ordinal);
    if candidates.iter().all(is_gone) {
        let (ordinal, first) = candidates.first()?;
        let described = text.get(first.span.end..*ends.first()?)?;
        let width = fallbacks
            .get(ordinal)?
            .filter(|_| described.ends_with(b"w"));
        let mut written = first.encoded(urls.get(ordinal)?);
        if let Some(width) = width {
            written.extend(format!(" {width}w").bytes());
        }
        return Some(vec![(first.span.start..*ends.last()?, written)]);
    }
    let mut changes: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
    let mut from = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let (ordinal, link) = candidate;
        if is_gone(candidate) {
            // With the comma in front of it, where nothing follows: the end is where that is known.
            let before = at.checked_sub(1).and_then(|before| ends.get(before));
            from.get_or_insert((link.span.start, before.copied()));
            if at + 1 == candidates.len() {
                let (start, before) = from?;
                changes.push((before.unwrap_or(start)..*ends.get(at)?, Vec::new()));
            }
            continue;
        }
        if let Some((start, _)) = from.take() {
            changes.push((start..link.span.start, Vec::new()));
        }
        if let Some(url) = urls.get(ordinal) {
            changes.push((link.span.start..link.span.end, link.encoded(url)));
        }
    }
    Some(changes)
}

/// Where a candidate ends, behind its descriptors. `next` is where the next one begins; behind the last one
/// stands the end of the attribute.
fn end(text: &[u8], from: usize, next: Option<usize>) -> Option<usize> {
    let rest = text.get(from..next.unwrap_or(text.len()))?;
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" \t\r\n\x0c.+-".contains(byte);
    let length = rest.iter().take_while(|byte| is_plain(byte)).count();
    let (described, behind) = rest.split_at(length);
    let is_whole = match next {
        Some(_) => {
            let is_between = |byte: &u8| b" \t\r\n\x0c,".contains(byte);
            behind.first() == Some(&b',') && behind.iter().all(is_between)
        }
        None => matches!(behind.first(), Some(b'"' | b'\'')),
    };
    is_whole.then(|| from + described.trim_ascii_end().len())
}
