//! Recognises the Mailman notes, in every version and every language: a first line, fields, and a field with a URL. Mailman
//! has sentences in 38 languages, but this module contains none of them. A note is recognised by its position in the text, by
//! the number of its fields, and by the hash of the message in its URL.
//!
//! A URL can be split into several lines, because digests were wrapped at any byte. Only a limited number of lines around a
//! URL is read.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::{self, Finder};
use memchr::{memchr, memrchr};

use super::separator;
use crate::engine::external_body::Scrap;
use crate::engine::external_body::reference::number;
use crate::span::{Span, SpanLine, SpanLines, front};

const LONGEST_LINE: usize = 1 << 10;
/// Maximum length in bytes of the label of a URL: the words before the URL on the same line.
const LONGEST_LABEL: usize = 200;
/// Maximum number of lines of a note above its URL: a sentence of two lines, and four fields, each of which can be
/// folded.
const MOST_LINES: usize = 16;
/// Maximum number of lines into which a URL can be split.
const MOST_PIECES: usize = 4;

pub(super) struct MailmanNote<'t> {
    pub(super) span: Span,
    pub(super) scrap: Scrap,
    pub(super) url: String,
    pub(super) name: &'t [u8],
    pub(super) media_type: &'t [u8],
    pub(super) description: &'t [u8],
    pub(super) size: Option<u64>,
}

impl MailmanNote<'_> {
    pub(super) fn bare(span: Span, scrap: Scrap, url: String) -> Self {
        Self {
            span,
            scrap,
            url,
            name: b"",
            media_type: b"",
            description: b"",
            size: None,
        }
    }
}

// The search for `://` is prepared only once: most texts are short, and preparing the search takes longer than the
// search itself.
static URLS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("://"));

/// Returns up to `most` Mailman notes. `proves` returns true if the hash in the URL is that of the message.
pub(super) fn notes(
    text: &[u8],
    most: usize,
    proves: impl Fn(usize, &str) -> bool,
) -> Vec<MailmanNote<'_>> {
    let mut from = 0;
    let notes = URLS.find_iter(text).filter_map(|at| {
        let note = (at >= from).then(|| note_at(text, from, at, &proves))??;
        from = note.span.end;
        Some(note)
    });
    notes.take(most).collect()
}

fn note_at<'t>(
    text: &'t [u8],
    from: usize,
    at: usize,
    proves: &impl Fn(usize, &str) -> bool,
) -> Option<MailmanNote<'t>> {
    let scheme = [b"https".as_slice(), b"http"].into_iter().find(|scheme| {
        let start = at.checked_sub(scheme.len());
        let before = start.and_then(|start| text.get(start..at));
        before.is_some_and(|before| before.eq_ignore_ascii_case(scheme))
    })?;
    let start = at - scheme.len();
    let line_start = line_start(text, from, start, LONGEST_LABEL)?;
    let before = text.get(line_start..start)?;
    let is_bracketed = before.ends_with(b"<");
    let front = before.strip_suffix(b"<").unwrap_or(before);
    // The label is the words before the URL, on the same line. A mail program may have moved the URL to the next line; then the
    // label is the line above it.
    let (label_start, label) = match front {
        [] => {
            let above = line_above(text, from, line_start)?;
            (above.start, above.of(text))
        }
        front => (line_start, front),
    };
    if !is_label(label) {
        return None;
    }
    let (url, end) = url(text, start, is_bracketed)?;
    let (hash, _) = stored_name(&url)?;
    if !proves(at, hash) {
        return None;
    }
    let (note_start, fields) = note_above(text, from, Span::new(label_start, start))?;
    let note = MailmanNote::bare(Span::new(note_start, end), Scrap::Html, url);
    let (scrap, name, media_type, description, size): (_, &[u8], &[u8], &[u8], _) = match fields[..]
    {
        [] => return Some(note),
        [name] => (Scrap::Text, name, b"", b"", None),
        // A note with four fields describes a file (name, type, size, description) or an enclosed message (sender, subject,
        // date, size).
        [name, second, third, fourth] => match number_of(third).filter(|_| is_type(second)) {
            Some(size) => (Scrap::File, name, second, fourth, Some(size)),
            None => (Scrap::Message, b"", b"", b"", Some(number_of(fourth)?)),
        },
        _ => return None,
    };
    Some(MailmanNote {
        scrap,
        name,
        media_type,
        description,
        size,
        ..note
    })
}

/// Reads a size in bytes. At most one word, the unit, may follow the number.
fn number_of(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit());
    let (digits, unit) = value.split_at_checked(digits.count())?;
    let unit = unit.trim_ascii();
    let is_unit = unit.len() <= 40 && !unit.iter().any(|byte| matches!(byte, b' ' | b':' | b'/'));
    number(digits).filter(|_| is_unit)
}

/// Returns true if the value is a media type. A type without a subtype is also accepted, because one note in a hundred contains
/// such a value.
fn is_type(value: &[u8]) -> bool {
    let token = |part: &[u8]| {
        let is_token = |&byte: &u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+'".contains(&byte);
        !part.is_empty() && part.iter().all(is_token)
    };
    let mut parts = value.splitn(2, |&byte| byte == b'/');
    parts.all(token)
}

#[derive(Clone, Copy)]
enum Top {
    /// The lines reach the start of the text, the end of another note, or a separator line. A note can begin here.
    Edge,
    Blank(usize),
    Text,
}

/// Returns the lines above `at`, the nearest first, and what is above the last of these lines. Text before `from`
/// belongs to an earlier note and is not read.
fn lines_above(text: &[u8], from: usize, mut at: usize) -> (Vec<Span>, Top) {
    let mut lines: Vec<Span> = Vec::new();
    while lines.len() < MOST_LINES {
        if at == from {
            return (lines, Top::Edge);
        }
        let Some(line) = line_above(text, from, at) else {
            break;
        };
        let content = line.of(text);
        if content.trim_ascii().is_empty() {
            return (lines, Top::Blank(line.start));
        }
        if separator::at_end(content).is_some() {
            return (lines, Top::Edge);
        }
        lines.push(line);
        at = line.start;
    }
    (lines, Top::Text)
}

/// Reads the fields and the sentence above the label of a URL. Returns the start of the note and the values of its fields. A
/// note has no field, one field or four fields.
fn note_above(text: &[u8], from: usize, label: Span) -> Option<(usize, Vec<&[u8]>)> {
    let (lines, top) = lines_above(text, from, label.start);
    let mut fields: Vec<&[u8]> = Vec::new();
    let mut end = label.start;
    let mut used = 0;
    for (count, line) in lines.iter().enumerate() {
        let content = line.of(text);
        if matches!(content.first(), Some(b' ' | b'\t')) {
            continue;
        }
        let Some(value) = value(content).filter(|_| fields.len() < 4) else {
            break;
        };
        let value = Span::new(line.start + value, end);
        fields.push(value.of(text).trim_ascii());
        end = line.start;
        used = count + 1;
    }
    fields.reverse();
    let above = &lines[used..];
    let start = match (above, top) {
        // The note has no sentence above its fields. Four fields are enough to recognise it. Fewer fields could be
        // ordinary text, so then the words before the URL must be such a sentence.
        ([], Top::Edge) if fields.len() == 4 || is_sentence(label.of(text)) => end,
        // The English sentence is always one line, so the note begins with this line, even if other text precedes it.
        ([first, ..], _) if first.of(text).ends_with(b"was scrubbed...") => first.start,
        ([.., first], Top::Edge) if above.len() <= 2 => first.start,
        ([first, ..], _) if is_sentence(first.of(text)) => first.start,
        // One translation has an empty line between the sentence and the fields, so the line above the empty line is
        // checked, too.
        ([], Top::Blank(at)) if !fields.is_empty() => {
            let (above, top) = lines_above(text, from, at);
            let [first] = above.as_slice() else {
                return None;
            };
            let is_first = matches!(top, Top::Edge) && first.of(text).ends_with(b".");
            is_first.then_some(first.start)?
        }
        _ => return None,
    };
    Some((start, fields))
}

/// Returns true if the line can be the sentence of a note, which ends with an ellipsis. The ellipsis is at the end of the line,
/// or a blank follows it.
fn is_sentence(line: &[u8]) -> bool {
    const ENDS: [&[u8]; 4] = [b"...", b"..", b"&hellip;", "\u{2026}".as_bytes()];
    // In Arabic, the URL follows on the same line, so the ellipsis can also be inside the line.
    let line = line.trim_ascii_end();
    ENDS.iter().any(|end| line.ends_with(end)) || memmem::find(line, b"... ").is_some()
}

fn value(line: &[u8]) -> Option<usize> {
    const LONGEST: usize = 60;
    let front = front(line, LONGEST);
    let is_plain = !matches!(front.first(), Some(b' ' | b'\t' | b'>' | b':') | None);
    let colon = memchr(b':', front).map(|at| at + 1);
    let wide = WIDE_COLONS
        .iter()
        .filter(|_| !front.is_ascii())
        .filter_map(|colon| Some(memmem::find(front, colon)? + colon.len()));
    colon.into_iter().chain(wide).min().filter(|_| is_plain)
}

fn is_label(front: &[u8]) -> bool {
    let front = front.trim_ascii_end();
    let is_plain = !matches!(front.first(), Some(b' ' | b'\t' | b'>' | b':') | None);
    let ends = front.ends_with(b":") || WIDE_COLONS.iter().any(|colon| front.ends_with(colon));
    is_plain && ends && front.len() <= LONGEST_LABEL
}

/// The wide colon of Chinese and Japanese, in UTF-8, GB 2312, Big5 and EUC-JP.
const WIDE_COLONS: [&[u8]; 4] = ["\u{ff1a}".as_bytes(), b"\xa3\xba", b"\xa1\x47", b"\xa1\xa7"];

fn url(text: &[u8], start: usize, is_bracketed: bool) -> Option<(String, usize)> {
    let mut url = String::new();
    let mut at = start;
    for piece in 0..MOST_PIECES {
        let line = line_at(text, at)?;
        let content = std::str::from_utf8(line.content.of(text))
            .ok()?
            .trim_ascii_end();
        if content.is_empty() || (piece > 0 && content.starts_with([' ', '\t', '>'])) {
            return None;
        }
        at = line.whole.end;
        if is_bracketed {
            let Some((before, behind)) = content.split_once('>') else {
                url.push_str(content);
                continue;
            };
            url.push_str(before);
            return behind
                .trim()
                .is_empty()
                .then(|| (plain(&url).into_owned(), at));
        }
        url.push_str(content);
        let whole = plain(&url);
        let name = stored_name(&whole).map(|(_, name)| name.contains('.'));
        let next = || line_at(text, at).map(|line| line.content.of(text));
        let goes_on = |next: &[u8]| !next.is_empty() && next.iter().all(is_of_name);
        match name {
            Some(true) => return Some((whole.into_owned(), at)),
            Some(false) if !next().is_some_and(goes_on) => return Some((whole.into_owned(), at)),
            _ => {}
        }
    }
    None
}

/// Restores an `@` in a URL. The archiver replaces it by ` at ` in the language of the list, to hide addresses.
fn plain(url: &str) -> Cow<'_, str> {
    let mut words = url.split_ascii_whitespace();
    let [user, word, host, more] = [(); 4].map(|()| words.next());
    match (user, word, host, more) {
        (Some(user), Some(word), Some(host), None) if word.len() <= 12 => {
            Cow::Owned(format!("{user}@{host}"))
        }
        _ => Cow::Borrowed(url),
    }
}

fn is_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Returns the hash and the name in a URL that ends with `attachments/YYYYMMDD/HHHHHHHH/NAME`.
pub(super) fn stored_name(url: &str) -> Option<(&str, &str)> {
    let (front, name) = url.rsplit_once('/')?;
    let (front, hash) = front.rsplit_once('/')?;
    let (front, date) = front.rsplit_once('/')?;
    let is_hash = hash.len() == 8
        && hash
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = !name.is_empty() && name.bytes().all(|byte| is_of_name(&byte));
    let is_stored = is_hash && is_date && is_name && front.ends_with("/attachments");
    (is_stored && !url.contains(char::is_whitespace)).then_some((hash, name))
}

fn line_at(text: &[u8], start: usize) -> Option<SpanLine> {
    let end = text.len().min(start + LONGEST_LINE);
    let line = SpanLines::new(text, Span::new(start, end)).next()?;
    let is_whole = end == text.len() || line.content.end < line.whole.end;
    is_whole.then_some(line)
}

fn line_start(text: &[u8], from: usize, at: usize, most: usize) -> Option<usize> {
    let low = from.max(at.saturating_sub(most));
    match memrchr(b'\n', text.get(low..at)?) {
        Some(end) => Some(low + end + 1),
        None => (low == from).then_some(from),
    }
}

fn line_above(text: &[u8], from: usize, at: usize) -> Option<Span> {
    let end = at.checked_sub(1).filter(|&end| end >= from)?;
    let start = line_start(text, from, end, LONGEST_LINE)?;
    let line = text.get(start..end)?;
    let content = line.strip_suffix(b"\r").unwrap_or(line);
    Some(Span::new(start, start + content.len()))
}
