//! Options of an `image-set()` that point nowhere any more are taken out.
//!
//! An option that was not embedded would be asked for by the reader that prefers it, though the mail holds
//! another. So it goes, with its resolution and type: what is left is true (CSS Images Level 4 §2.4).

use std::ops::Range;

use crate::link::value::{Grammar, LinkValue};

/// Bytes of the resolution and the type of an option, at most: no media type is as long.
const LONGEST: usize = 200;

/// The extents of these options of one `image-set()`, with their resolutions and types. None where anything at them is
/// not understood: comments, character references, options that are no URLs.
pub(super) fn extents(text: &[u8], options: &[(usize, LinkValue)]) -> Option<Vec<Range<usize>>> {
    let mut extents: Vec<Range<usize>> = Vec::new();
    for (_, link) in options {
        let start = start(text, link)?;
        if let Some(before) = extents.last() {
            let between = text.get(before.end..start)?;
            if between.trim_ascii() != b"," {
                return None;
            }
        }
        extents.push(start..end(text, link)?);
    }
    Some(extents)
}

fn start(text: &[u8], link: &LinkValue) -> Option<usize> {
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

fn end(text: &[u8], link: &LinkValue) -> Option<usize> {
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
    for (at, &byte) in described.iter().enumerate().take(LONGEST) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            // Escapes, line ends, and what ends a style sheet or an attribute.
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
