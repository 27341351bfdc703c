//! Side effects of new links on the part that contains the document: line lengths and Content-MD5.
//!
//! Lines of a 7bit or 8bit body must not become longer than 998 bytes (RFC 2045 §2.7 and §2.8), so a blank between two
//! attributes becomes a line ending if necessary. A correct Content-MD5 (RFC 1864) is recomputed, and a wrong one is
//! removed.

use std::iter::Peekable;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};

use crate::edit::{Edit, Group};
use crate::link::html::{self, Syntax};
use crate::mime::mapped::TextChanges;
use crate::mime::parameters::without_comments;
use crate::mime::transfer::LINE_LIMIT;
use crate::mime::{Field, MessageTree, PartId};
use crate::span::{Newline, split_once, until};

/// Adds line endings where changes make a line too long. A line that was too long before stays unchanged. Returns
/// `None` if a line has no place for a line ending. `html` is the syntax of an HTML document and the text in which its
/// tags are searched for. It is `None` for a style sheet.
pub(super) fn lines_broken(
    document: &[u8],
    html: Option<(&[u8], Syntax)>,
    changes: TextChanges,
    newline: Newline,
) -> Option<TextChanges> {
    let long = stretches(document, &changes);
    if long.is_empty() {
        return Some(changes);
    }
    // A style sheet has no tags, so there is no place for a line ending.
    let (text, syntax) = html?;
    let values = changes.iter().map(|(octets, _)| octets.start);
    let mut blanks = html::blanks_in_tags(text, syntax, values).peekable();
    let mut replaced = changes.iter().peekable();
    let mut breaks = Vec::new();
    for (lines, length) in long {
        while replaced
            .next_if(|(octets, _)| octets.start < lines.start)
            .is_some()
        {}
        add_breaks(lines, length, &mut replaced, &mut blanks, &mut breaks)?;
    }
    drop((blanks, replaced));
    Some(changes.with(&breaks, newline.bytes()))
}

/// Returns the lines that the changes make too long: their spans and new lengths. Lines that a change joins count as
/// one.
fn stretches(document: &[u8], changes: &TextChanges) -> Vec<(Range<usize>, usize)> {
    let line_end = |from: usize| from + until(b'\n', &document[from..]).len();
    let is_long = |from: usize, to: usize| {
        let lines = &document[from..to];
        // The text between two changes is usually short, so checking its total length first avoids searching it for
        // line endings.
        lines.len() > LINE_LIMIT
            && lines
                .split(|&byte| byte == b'\n')
                .any(|line| line.strip_suffix(b"\r").unwrap_or(line).len() > LINE_LIMIT)
    };
    let mut long = Vec::new();
    let mut searched = 0;
    let mut changes = changes.iter();
    while let Some((first, replacement)) = changes.next() {
        let between = &document[searched..first.start];
        let start = memchr::memrchr(b'\n', between).map_or(searched, |at| searched + at + 1);
        let mut end = line_end(first.end);
        let mut was_long = is_long(start, end);
        let (mut gained, mut lost) = (replacement.len(), first.len());
        let mut further = changes.clone();
        while let Some((octets, replacement)) = further.next()
            && octets.start <= end
        {
            // A change that covers a line ending joins two lines.
            if end < octets.end {
                let joined_from = end + 1;
                end = line_end(octets.end);
                was_long |= is_long(joined_from, end);
            }
            gained += replacement.len();
            lost += octets.len();
            changes = further.clone();
        }
        searched = (end + 1).min(document.len());
        let text = &document[start..end];
        let before = text.strip_suffix(b"\r").unwrap_or(text).len();
        let length = (before + gained).saturating_sub(lost);
        if length > LINE_LIMIT && !was_long {
            long.push((start..end, length));
        }
    }
    long
}

fn add_breaks<'c>(
    lines: Range<usize>,
    length: usize,
    changes: &mut Peekable<impl Iterator<Item = (Range<usize>, &'c [u8])>>,
    blanks: &mut Peekable<impl Iterator<Item = usize>>,
    breaks: &mut Vec<usize>,
) -> Option<()> {
    while blanks.next_if(|&at| at < lines.start).is_some() {}
    let (mut gained, mut lost) = (0, 0);
    let mut place_of = |blank: usize| {
        while let Some((octets, replacement)) = changes.next_if(|(octets, _)| octets.end <= blank) {
            gained += replacement.len();
            lost += octets.len();
        }
        (blank - lines.start + gained).saturating_sub(lost)
    };
    let mut line = 0;
    while length.saturating_sub(line) > LINE_LIMIT {
        let mut last = None;
        while let Some(&blank) = blanks.peek().filter(|&&blank| blank < lines.end) {
            let place = place_of(blank);
            if place.saturating_sub(line) > LINE_LIMIT {
                break;
            }
            last = Some((blank, place));
            blanks.next();
        }
        let (blank, place) = last?;
        breaks.push(blank);
        line = place + 1;
    }
    Some(())
}

/// Computes the MD5. In a text, line endings count as CRLF. The bytes are hashed in pieces, because a copy with CRLF would
/// need as much memory as the document.
fn md5(is_text: bool, pieces: impl FnOnce(&mut dyn FnMut(&[u8]))) -> String {
    let mut md5 = Md5::new();
    let mut last = 0;
    pieces(&mut |octets| {
        let mut rest = octets;
        while is_text && let Some((line, behind)) = split_once(b'\n', rest) {
            md5.update(line);
            if line.last().copied().unwrap_or(last) != b'\r' {
                md5.update(b"\r");
            }
            md5.update(b"\n");
            last = b'\n';
            rest = behind;
        }
        md5.update(rest);
        last = rest.last().copied().unwrap_or(last);
    });
    STANDARD.encode(md5.finalize())
}

pub(super) fn digest_renewed(
    tree: &MessageTree<'_>,
    part: PartId,
    before: &[u8],
    after: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> Option<(&'static str, Group)> {
    let fields = tree.fields(part).iter(tree.original);
    let is_digest = |field: &Field| field.is(tree.original, "Content-MD5");
    let fields: Vec<Field> = fields.filter(is_digest).collect();
    let (first, others) = fields.split_first()?;
    let is_text = tree.part(part).essence.starts_with("text/");
    let mut value = first.value;
    // A comment may follow the digest.
    if let Some(length) = memchr::memchr(b'(', value.of(tree.original)) {
        value.end = value.start + length;
    }
    let value = value.trimmed(tree.original);
    let mut written = value.of(tree.original).to_vec();
    written.retain(|byte| !byte.is_ascii_whitespace());
    // RFC 1864 requires the digest of the text with CRLF, but many programs hash the bytes as they are, so both are accepted.
    let is_of = |is_text| written == md5(is_text, |update| update(before)).as_bytes();
    if !is_of(false) && !is_of(is_text) {
        let remark = "the wrong Content-MD5 field of the part was removed";
        return Some((remark, removed(&fields)));
    }
    let mut group = removed(others);
    group.insert(0, Edit::replace(value, md5(is_text, after)));
    Some(("Content-MD5 was recomputed", group))
}

/// Returns the edit that corrects a misspelt Content-Transfer-Encoding. Programs treat a misspelt name differently, and the
/// changed body must be readable in all of them.
pub(super) fn encoding_corrected(tree: &MessageTree<'_>, part: PartId) -> Option<Edit> {
    let encoding = tree.part(part).encoding;
    let field = tree
        .fields(part)
        .first(tree.original, "Content-Transfer-Encoding")?;
    let value = field.value.of(tree.original);
    let is_right = encoding.is_plainly(without_comments(value));
    let is_written = field.whole.of(tree.original).ends_with(b"\n");
    (!is_right && is_written)
        .then(|| Edit::replace(field.value, format!(" {}", encoding.as_str()).into_bytes()))
}

fn removed(fields: &[Field]) -> Group {
    let removal = |field: &Field| Edit::remove(field.whole);
    fields.iter().map(removal).collect()
}
