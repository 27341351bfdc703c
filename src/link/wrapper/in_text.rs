//! Finds wrapped links in plain text and in the text of HTML. A plain text has no markup that shows where a link ends,
//! and programs break long lines inside of links, so a link counts only if its end is certain.

use std::ops::Range;

use super::{LONGEST, OriginalUrl, unwrapped_link};
use crate::span::{front, starts_like, until};

/// A wrapped link in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WrappedInText {
    pub place: Range<usize>,
    pub unwrapped: OriginalUrl,
    /// Whether the link is complete. If it ends at the end of a line, it may continue on the next line.
    pub is_complete: bool,
}

/// Marks that end a sentence or a quotation, and not a URL.
const MARKS: &[u8] = b".,;:!?'*";

/// Maximum number of marks and brackets after a URL.
const MOST_MARKS: usize = 16;

/// Maximum number of bytes after a URL that are searched for the end of its line.
const LONGEST_REST: usize = 400;

/// Length from which a line may have been broken inside of a link, in bytes. Programs break lines at 72 bytes or later.
const SHORTEST_BROKEN: usize = 60;

/// Calls `see` for each wrapped link of a text, in order.
pub(crate) fn wrapped_in_text(text: &[u8], mut see: impl FnMut(WrappedInText)) {
    each_url(text, |place, url| {
        if let Some(unwrapped) = unwrapped_link(url) {
            see(WrappedInText {
                is_complete: is_complete(text, place.clone(), url),
                place,
                unwrapped,
            });
        }
    });
}

/// Calls `see` with each URL of a text and its position, in order.
pub(crate) fn each_url(text: &[u8], mut see: impl FnMut(Range<usize>, &str)) {
    let mut from = 0;
    for at in memchr::memmem::find_iter(text, b"://") {
        let Some(start) = start_of_url(text, from, at) else {
            continue;
        };
        let end = end_of_url(text, start);
        // A URL inside of another URL, such as the original in the URL of a picture proxy, is not a link of its own.
        from = end;
        let url = text.get(start..end).map(std::str::from_utf8);
        if let Some(Ok(url)) = url {
            see(start..end, url);
        }
    }
}

/// Calls `see` for each wrapped link in the text between the tags of an HTML document, with the original as markup. Programs
/// that wrap links also replace the text of a link if the text is the URL.
pub(crate) fn wrapped_between_tags(
    document: &[u8],
    mut see: impl FnMut(Range<usize>, OriginalUrl, String),
) {
    each_text(document, |text| {
        let mut from = text.start;
        let Some(content) = document.get(..text.end) else {
            return;
        };
        let inside = content.get(text.start..).unwrap_or_default();
        for at in memchr::memmem::find_iter(inside, b"://") {
            let Some(start) = start_of_url(content, from, text.start + at) else {
                continue;
            };
            let end = end_of_markup_url(content, start);
            from = end;
            let is_continued = document
                .get(end..)
                .is_some_and(|rest| starts_like(rest, b"<wbr"));
            let url = content
                .get(start..end)
                .and_then(|url| std::str::from_utf8(url).ok());
            let Some(url) = url.filter(|_| !is_continued) else {
                continue;
            };
            if let Some(unwrapped) = unwrapped_link(&url.replace("&amp;", "&")) {
                let written = unwrapped.original.replace('&', "&amp;");
                if is_complete(content, start..end, url) {
                    see(start..end, unwrapped, written);
                }
            }
        }
    });
}

/// Returns the end of a URL in markup. A character reference other than that of the ampersand ends it.
fn end_of_markup_url(content: &[u8], start: usize) -> usize {
    let end = end_of_url(content, start);
    let url = content.get(start..end).unwrap_or_default();
    let references = memchr::memchr_iter(b'&', url).find(|&at| {
        let rest = url.get(at + 1..).unwrap_or_default();
        let name = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#')
            .count();
        // A parameter of a query, such as `&data=`, has no semicolon after its name.
        let is_reference = content.get(start + at + 1 + name) == Some(&b';') && name > 0;
        is_reference && !rest.starts_with(b"amp;")
    });
    references.map_or(end, |at| {
        end_of_url(content.get(..start + at).unwrap_or_default(), start)
    })
}

/// Calls `see` for each text between the tags of an HTML document: without comments, and without the content of
/// elements that is no text.
fn each_text(document: &[u8], mut see: impl FnMut(Range<usize>)) {
    const RAW: [&[u8]; 6] = [
        b"script",
        b"style",
        b"title",
        b"textarea",
        b"xmp",
        b"noembed",
    ];
    let mut at = 0;
    while let Some(rest) = document.get(at..) {
        let length = memchr::memchr(b'<', rest).unwrap_or(rest.len());
        if length > 0 {
            see(at..at + length);
        }
        let Some(tag) = rest.get(length + 1..) else {
            break;
        };
        let start = at + length + 1;
        let skipped = |end: &[u8]| {
            let found = memchr::memmem::find(tag, end);
            found.map_or(tag.len(), |found| found + end.len())
        };
        let raw = RAW.iter().find(|name| {
            let is_end = |byte: &u8| !byte.is_ascii_alphanumeric();
            starts_like(tag, name) && tag.get(name.len()).is_some_and(is_end)
        });
        at = start
            + match raw {
                _ if tag.starts_with(b"!--") => skipped(b"-->"),
                Some(name) => end_of_raw(tag, name),
                None => end_of_tag(tag),
            };
    }
}

fn end_of_raw(tag: &[u8], name: &[u8]) -> usize {
    let mut ends = memchr::memmem::find_iter(tag, b"</");
    let end = ends.find(|&at| {
        tag.get(at + 2..)
            .is_some_and(|rest| starts_like(rest, name))
    });
    end.unwrap_or(tag.len())
}

/// Returns the length of a tag, with its `>`. A `>` inside of quotation marks does not end it.
fn end_of_tag(tag: &[u8]) -> usize {
    let mut quote = None;
    for (at, &byte) in tag.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') if at > 0 && tag.get(..at).is_some_and(ends_with_equals) => {
                quote = Some(byte)
            }
            (Some(open), byte) if byte == open => quote = None,
            _ => {}
        }
    }
    tag.len()
}

fn ends_with_equals(before: &[u8]) -> bool {
    let last = before
        .iter()
        .rev()
        .take(16)
        .find(|byte| !byte.is_ascii_whitespace());
    last == Some(&b'=')
}

fn start_of_url(text: &[u8], from: usize, colon: usize) -> Option<usize> {
    let before = text.get(from..colon)?;
    ["https", "http"].into_iter().find_map(|scheme| {
        let start = before.len().checked_sub(scheme.len())?;
        let (outside, word) = before.split_at(start);
        let is_inside_word = outside.last().is_some_and(u8::is_ascii_alphanumeric);
        (word.eq_ignore_ascii_case(scheme.as_bytes()) && !is_inside_word).then_some(from + start)
    })
}

/// Returns the end of a URL: the first byte that cannot be in a URL, minus trailing punctuation of the sentence.
fn end_of_url(text: &[u8], start: usize) -> usize {
    let rest = front(text.get(start..).unwrap_or_default(), LONGEST + 1);
    let is_outside = |byte: &u8| !byte.is_ascii_graphic() || b"<>\"".contains(byte);
    let length = rest.iter().position(is_outside).unwrap_or(rest.len());
    let mut url = rest.get(..length).unwrap_or_default();
    // A link of Proofpoint, version 3, ends with a dollar sign.
    if let Some(bytes) = memchr::memmem::find(url, b"__;")
        && memchr::memmem::find(url, b"/v3/__").is_some()
        && let Some(end) = url.get(bytes..).and_then(|end| memchr::memchr(b'$', end))
    {
        return start + bytes + end + 1;
    }
    for _ in 0..MOST_MARKS {
        let Some((last, before)) = url.split_last() else {
            break;
        };
        let count = |sought: u8| url.iter().filter(|&&byte| byte == sought).count();
        let is_outer = match last {
            mark if MARKS.contains(mark) => true,
            b')' => count(b')') > count(b'('),
            b']' => count(b']') > count(b'['),
            b'}' => count(b'}') > count(b'{'),
            _ => false,
        };
        if !is_outer {
            break;
        }
        url = before;
    }
    start + url.len()
}

/// Whether the link certainly ends here and does not continue on the next line: something follows on the same line, the
/// line is too short to have been broken, the next line is empty, or the URL has its last parameter.
fn is_complete(text: &[u8], place: Range<usize>, url: &str) -> bool {
    let ends = ["reserved=0", "&e=", "$", "&typo=1", "&typo=0"];
    if ends.iter().any(|end| url.ends_with(end)) {
        return true;
    }
    let rest = text.get(place.end..).unwrap_or_default();
    // At the end of a line, a punctuation mark can belong to a link that continues on the next line.
    let is_nothing = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r') || MARKS.contains(byte);
    let nothing = front(rest, LONGEST_REST);
    let length = nothing.iter().take_while(|byte| is_nothing(byte)).count();
    let next = match rest.get(length..).and_then(<[u8]>::split_first) {
        None => None,
        Some((b'\n', next)) => Some(next),
        Some(_) => return true,
    };
    let before = text.get(..place.start).unwrap_or_default();
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let is_short = place.end - line_start < SHORTEST_BROKEN;
    let next = until(b'\n', next.unwrap_or_default());
    // A next line that contains only quotation marks (`> `) counts as empty.
    let is_empty = next
        .iter()
        .all(|&byte| byte.is_ascii_whitespace() || byte == b'>');
    is_short || is_empty
}
