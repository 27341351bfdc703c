//! Rewrites the candidates of a `srcset` and the options of an `image-set()` whose pictures no server has. The result stays
//! valid. Candidates that were not requested, or whose server did not respond, stay unchanged.
//!
//! A candidate that no server has is removed if another candidate was embedded. If no server has any candidate, the whole list
//! is replaced by one candidate with the picture of `src` and its width. More candidates would not help: mail clients choose
//! from the candidates and `src` by density and width (HTML standard §4.8.4.2.2), and the picture has only one of each. An
//! option that no server has is removed with its resolution and type, because a mail client that prefers it would request
//! it (CSS Images Level 4 §2.4).

use std::collections::HashMap;
use std::ops::Range;

use super::link_text::raw;
use crate::link::value::{Grammar, ImageSet, LinkList, LinkValue};

/// Maximum number of candidates of one attribute. If an attribute has more, no candidate is removed: candidates that were not
/// embedded get the URL of another picture. The limit bounds the memory for a hostile attribute.
const MOST: usize = 100;

/// Links that get the URL of another picture, because their own was not embedded. Maps the ordinal of the link in the
/// document to the width of the other picture in pixels, if it is known.
pub(crate) type Fallbacks = HashMap<usize, Option<u32>>;

/// Calls `give` for each replacement in the text. Links in `fallbacks`, whose own picture was not embedded, are removed
/// if other candidates of their list remain. Otherwise `urls` contains the URL of another picture for them.
pub(super) fn replacements(
    text: &[u8],
    links: &LinkList,
    urls: &HashMap<usize, String>,
    fallbacks: &Fallbacks,
    mut give: impl FnMut(Range<usize>, &[u8]),
) {
    let mut links = links.iter().enumerate().peekable();
    while let Some((ordinal, link)) = links.next() {
        let mut together = vec![(ordinal, link)];
        if !fallbacks.is_empty() {
            while together.len() <= MOST
                && let Some(next) = links.next_if(|(_, next)| belongs_to(&link, next))
            {
                together.push(next);
            }
        }
        let has_fallback = together.iter().any(|(at, _)| fallbacks.contains_key(at));
        if has_fallback && let Some(changes) = changes(text, &together, urls, fallbacks) {
            for (octets, replacement) in changes {
                give(octets, &replacement);
            }
            continue;
        }
        for (ordinal, link) in together {
            if let Some(url) = urls.get(&ordinal) {
                let new = link.encoded(raw(url.clone()));
                give(link.span.start..link.span.end, &new);
            }
        }
    }
}

fn belongs_to(first: &LinkValue, next: &LinkValue) -> bool {
    match first.grammar {
        Grammar::Srcset => next.grammar == Grammar::Srcset && !next.opens_tag,
        _ => first.image_set != ImageSet::Outside && next.image_set == ImageSet::Further,
    }
}

/// Returns the changes for the candidates of one attribute, in which candidates can be removed. Returns `None` if the
/// text between the candidates has an unusual syntax. Then only the URLs are replaced, and the descriptors (such as
/// `2x`) stay unchanged.
fn changes(
    text: &[u8],
    candidates: &[(usize, LinkValue)],
    urls: &HashMap<usize, String>,
    fallbacks: &Fallbacks,
) -> Option<Vec<(Range<usize>, Vec<u8>)>> {
    if candidates.len() > MOST {
        return None;
    }
    let (ordinal, first) = candidates.first()?;
    let is_srcset = first.grammar == Grammar::Srcset;
    let extents = if is_srcset {
        extents(text, candidates)?
    } else {
        option_extents(text, candidates)?
    };
    let is_gone = |(ordinal, _): &(usize, LinkValue)| fallbacks.contains_key(ordinal);
    if candidates.iter().all(is_gone) {
        // Only a `srcset` is replaced as a whole by one candidate. The options of an `image-set()` are kept, because
        // `candidates` may contain only some of them, and a later one may be embedded.
        let described = text.get(first.span.end..extents.first()?.end)?;
        let width = fallbacks.get(ordinal).filter(|_| is_srcset)?;
        let mut written = first.encoded(urls.get(ordinal)?);
        if let Some(width) = width.filter(|_| described.ends_with(b"w")) {
            written.extend(format!(" {width}w").bytes());
        }
        return Some(vec![(first.span.start..extents.last()?.end, written)]);
    }
    let mut changes: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
    let mut from = None;
    for (at, (candidate, extent)) in candidates.iter().zip(&extents).enumerate() {
        let (ordinal, link) = candidate;
        if is_gone(candidate) {
            // Without a following candidate, the comma before the removed one must go, too.
            let before = at.checked_sub(1).and_then(|before| extents.get(before));
            from.get_or_insert((extent.start, before.map(|before| before.end)));
            if at + 1 == candidates.len() {
                let (start, before) = from?;
                changes.push((before.unwrap_or(start)..extent.end, Vec::new()));
            }
            continue;
        }
        if let Some((start, _)) = from.take() {
            changes.push((start..extent.start, Vec::new()));
        }
        if let Some(url) = urls.get(ordinal) {
            changes.push((link.span.start..link.span.end, link.encoded(url)));
        }
    }
    Some(changes)
}

fn extents(text: &[u8], candidates: &[(usize, LinkValue)]) -> Option<Vec<Range<usize>>> {
    let extent = |(at, (_, link)): (usize, &(usize, LinkValue))| {
        let next = candidates.get(at + 1).map(|(_, next)| next.span.start);
        Some(link.span.start..end(text, link.span.end, next)?)
    };
    candidates.iter().enumerate().map(extent).collect()
}

/// Returns the position after the descriptors (such as `2x`) of a candidate. `next` is the start of the next candidate,
/// or `None` for the last one. Returns `None` if anything other than descriptors precedes the comma before the next
/// candidate, or the quotation mark that ends the attribute.
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

/// Maximum length in bytes of the resolution and the type. Media types are shorter.
const LONGEST_OPTION: usize = 200;

/// Returns the positions of the options. Returns `None` if the text contains comments, character references, or options that
/// are not URLs.
fn option_extents(text: &[u8], options: &[(usize, LinkValue)]) -> Option<Vec<Range<usize>>> {
    let mut extents: Vec<Range<usize>> = Vec::new();
    for (_, link) in options {
        let start = option_start(text, link)?;
        if let Some(before) = extents.last() {
            let between = text.get(before.end..start)?;
            if between.trim_ascii() != b"," {
                return None;
            }
        }
        extents.push(start..option_end(text, link)?);
    }
    Some(extents)
}

fn option_start(text: &[u8], link: &LinkValue) -> Option<usize> {
    let mut front = text.get(..link.span.start)?;
    if let Grammar::CssString(quote) = link.grammar {
        front = front.strip_suffix(&[quote])?;
    }
    if link.place == "image-set()" {
        return Some(front.len());
    }
    let front = front.trim_ascii_end().strip_suffix(b"(")?;
    let start = front.len().checked_sub(b"url".len())?;
    let name = front.get(start..)?;
    (name.eq_ignore_ascii_case(b"url") || name.eq_ignore_ascii_case(b"src")).then_some(start)
}

fn option_end(text: &[u8], link: &LinkValue) -> Option<usize> {
    let mut from = link.span.end;
    if let Grammar::CssString(quote) = link.grammar {
        from += usize::from(text.get(from) == Some(&quote));
    }
    if link.place != "image-set()" {
        let rest = text.get(from..)?;
        let behind = rest.trim_ascii_start().strip_prefix(b")")?;
        from += rest.len() - behind.len();
    }
    let described = text.get(from..)?;
    let (mut depth, mut quote) = (0_usize, None);
    for (at, &byte) in described.iter().enumerate().take(LONGEST_OPTION) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            // Options with escapes or line endings, and those that end the style sheet or attribute, are too
            // complicated to rewrite.
            (_, b'\\' | b'\n' | b'\r' | b'<' | b'&') => return None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') if depth > 0 => depth -= 1,
            (None, b')' | b',') if depth == 0 => {
                let described = described.get(..at)?.trim_ascii_end();
                return Some(from + described.len());
            }
            (None, b' ' | b'\t' | b'.' | b'+' | b'-') => {}
            (None, _) if byte.is_ascii_alphanumeric() => {}
            _ => return None,
        }
    }
    None
}
