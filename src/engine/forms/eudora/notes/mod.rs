//! Messages as Eudora for Windows and for the Mac stores them. No document describes this form, so the following is what the
//! programs write.
//! * Eudora takes MIME apart: it keeps one of several alternatives and decodes transfer encodings, but the header keeps the
//!   original Content-Type. The boundary in it does not occur in the body any more.
//! * Text that is not plain text begins with [`<x-html>`, `<x-rich>` or `<x-flowed>`](Wrapper) and ends with the matching end
//!   tag. On the Mac, a comment `<!x-stuff-for-pete base="" src="" id="" charset="">` follows the first tag.
//! * An attachment is a separate [file](EudoraNote) and a line that names it, outside of these texts. The line is `Attachment
//!   Converted: "C:\Eudora\attach\a.png"` on Windows, without quotes where names have at most eight letters, and `Attachment
//!   converted: Macintosh HD:a.png (PNGf/ogle) (0022466D)` on the Mac. On Windows, an empty line precedes it.
//! * Parts of a multipart/related are named `Embedded Content: a.png: M,C,L,H` or `Related: :Macintosh HD:a.png:ID:C:L:H`. C
//!   is the [hash] of the Content-ID, and L is the hash of the Content-Location.
//! * Eudora changes lines of received mail that look like this: `#Attachment Converted`, `Attachment Converted&#058;`.
//!
//! This module does not access files. The name of a file is the last component of its path, on all systems.

mod files;

use self::files::decoded;
pub(crate) use self::files::{decoded as decoded_name, is_file_name};
use crate::mime::header::unfold;
use crate::mime::{Fields, file_type};
use crate::span::{Span, SpanLines, front, starts_like};

pub(crate) enum EudoraPiece {
    Text(EudoraText),
    Note(EudoraNote),
}

#[derive(Clone, Default)]
pub(crate) struct EudoraText {
    pub span: Span,
    pub wrapper: Option<Wrapper>,
    pub charset: Option<Span>,
    pub base: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrapper {
    Html,
    Rich,
    Flowed,
}

impl Wrapper {
    const ALL: [(Self, &'static [u8], &'static [u8]); 3] = [
        (Self::Html, b"<x-html>", b"</x-html>"),
        (Self::Rich, b"<x-rich>", b"</x-rich>"),
        (Self::Flowed, b"<x-flowed>", b"</x-flowed>"),
    ];

    pub(crate) fn essence(self) -> &'static str {
        match self {
            Self::Html => "text/html",
            Self::Rich => "text/enriched",
            Self::Flowed => "text/plain",
        }
    }
}

#[derive(PartialEq, Eq, Debug)]
pub(crate) struct EudoraNote {
    /// The note: the line that names the attached file, with its line ending. On Windows, Eudora writes an empty line before
    /// this line, which is included. The span is empty if a header field names the file.
    pub whole: Span,
    /// Last component of the file's path in the note, decoded but not validated: it can be an unsafe file name.
    pub name: String,
    pub is_embedded: bool,
    pub macintosh: Option<[u8; 4]>,
    /// Hashes of the part's Content-ID and Content-Location, as Eudora recorded them. A hash is 0 if the part had no such
    /// field.
    pub hashes: (u32, u32),
}

/// Divides a body into texts and notes (lines that name attached files). After `most` notes and marked texts, the rest
/// becomes a single text, and the boolean is true.
pub(crate) fn eudora_pieces(original: &[u8], body: Span, most: usize) -> (Vec<EudoraPiece>, bool) {
    let mut pieces = Vec::new();
    let mut lines = SpanLines::new(original, body);
    let (mut start, mut room) = (body.start, most);
    // The previous line, if it was empty. On Windows, Eudora writes an empty line before each note, so this line then
    // belongs to the note.
    let mut empty: Option<Span> = None;
    let push_text = |pieces: &mut Vec<EudoraPiece>, from: usize, to: usize| {
        if from < to {
            pieces.push(EudoraPiece::Text(EudoraText::plain(Span::new(from, to))));
        }
    };
    while let Some(line) = lines.next() {
        let text = line.content.of(original);
        if room > 0
            && let Some((wrapper, opening, closing)) = opened(text)
        {
            room -= 1;
            push_text(&mut pieces, start, line.whole.start);
            // The text begins after the start tag. It ends at the first line that ends with the end tag, or otherwise at the
            // end of the body.
            let from = line.whole.start + opening.len();
            let closed = std::iter::once(line)
                .chain(lines.by_ref())
                .find_map(|line| {
                    let text = line.content.of(original).trim_ascii_end();
                    let (front, tail) = text.split_at(text.len().checked_sub(closing.len())?);
                    let at = line.whole.start + front.len();
                    let is_end = at >= from && tail.eq_ignore_ascii_case(closing);
                    is_end.then(|| Span::new(at, line.whole.end))
                });
            let end = closed.unwrap_or(Span::empty_at(body.end));
            // On Windows, the start tag is on a line of its own, so the text begins after the line ending.
            let behind = match original.get(from..end.start) {
                Some([b'\r', b'\n', ..]) => from + 2,
                Some([b'\n', ..]) => from + 1,
                _ => from,
            };
            let text = EudoraText::wrapped(original, Span::new(behind, end.start), wrapper);
            pieces.push(EudoraPiece::Text(text));
            (start, empty) = (end.end, None);
            continue;
        }
        if room > 0
            && let Some(note) = EudoraNote::of_line(text)
        {
            room -= 1;
            let whole = match empty {
                Some(blank) if note.macintosh.is_none() && blank.start >= start => {
                    Span::new(blank.start, line.whole.end)
                }
                _ => line.whole,
            };
            push_text(&mut pieces, start, whole.start);
            pieces.push(EudoraPiece::Note(EudoraNote { whole, ..note }));
            (start, empty) = (line.whole.end, None);
            continue;
        }
        empty = text.is_empty().then_some(line.whole);
    }
    push_text(&mut pieces, start, body.end);
    (pieces, room == 0)
}

fn opened(line: &[u8]) -> Option<(Wrapper, &'static [u8], &'static [u8])> {
    let mut all = Wrapper::ALL.into_iter().filter(|_| line.starts_with(b"<x"));
    all.find(|(_, opening, _)| starts_like(line, opening))
}

impl EudoraText {
    pub(crate) fn plain(span: Span) -> Self {
        Self {
            span,
            ..Self::default()
        }
    }

    fn wrapped(original: &[u8], within: Span, wrapper: Wrapper) -> Self {
        const COMMENT: &[u8] = b"<!x-stuff-for-pete";
        /// Maximum length in bytes of the comment `<!x-stuff-for-pete ...>`, with which Eudora for the Mac starts a
        /// marked text. The comment contains two URLs.
        const LONGEST: usize = 16 << 10;
        let text = within.of(original);
        let plain = Self {
            wrapper: Some(wrapper),
            ..Self::plain(within)
        };
        let start = front(text, LONGEST);
        let Some(end) = memchr::memchr(b'>', start).filter(|_| start.starts_with(COMMENT)) else {
            return plain;
        };
        let value = |name: &[u8]| {
            let comment = start.get(..end)?;
            let at = memchr::memmem::find(comment, name)? + name.len();
            let length = memchr::memchr(b'"', comment.get(at..)?)?;
            Some(Span::new(at, at + length).shifted(within.start))
        };
        Self {
            span: Span::new(within.start + end + 1, within.end),
            charset: value(b" charset=\""),
            base: value(b" base=\""),
            ..plain
        }
    }
}

impl EudoraNote {
    fn of_line(line: &[u8]) -> Option<Self> {
        const LABELS: [&[u8]; 3] = [b"attachment converted:", b"embedded content:", b"related:"];
        if !matches!(line.first()?, b'A' | b'a' | b'E' | b'e' | b'R' | b'r') {
            return None;
        }
        let which = LABELS.iter().position(|label| starts_like(line, label))?;
        let value = line.get(LABELS.get(which)?.len()..)?.trim_ascii();
        match which {
            0 => attached(value).or_else(|| embedded(value)),
            1 => embedded(value),
            _ => related(value),
        }
    }

    pub(crate) fn essence(&self) -> Option<&'static str> {
        file_type::of_name(&self.name).or_else(|| file_type::of_macintosh(self.macintosh?))
    }

    fn new(path: &[u8], is_of_mac: bool) -> Option<Self> {
        let mut components = path.rsplit(|octet| matches!(octet, b'\\' | b':'));
        let name = decoded(components.next().unwrap_or_default(), is_of_mac);
        (!name.is_empty()).then_some(Self {
            whole: Span::empty_at(0),
            name,
            is_embedded: false,
            macintosh: None,
            hashes: (0, 0),
        })
    }

    /// Returns the files that header fields name. Eudora writes these fields into outgoing mail. In received mail (with
    /// a Received field) the sender could have forged them, so they are ignored.
    pub(crate) fn of_header(original: &[u8], fields: &Fields, most: usize) -> Vec<Self> {
        if fields.first(original, "Received").is_some() {
            return Vec::new();
        }
        let value = |name| unfold(fields.value(original, name).unwrap_or_default());
        let (attached, embedded) = (value("X-Attachments"), value("X-EmbeddedContent"));
        let files = attached.split(|&octet| octet == b';').filter_map(|path| {
            let path = path.trim_ascii();
            // On the Mac, the path begins with a colon. The field has another colon after the path, which is removed.
            Self::new(
                path.strip_suffix(b":").unwrap_or(path),
                path.starts_with(b":"),
            )
        });
        let parts = embedded.split(|&octet| octet == b'<').filter_map(|part| {
            let part = part.split(|&octet| octet == b'>').next()?;
            let at = memchr::memchr(b'=', part)?;
            let (id, path) = (part.get(..at)?, part.get(at + 1..)?);
            Some(Self {
                is_embedded: true,
                hashes: (hash(id.trim_ascii()), 0),
                ..Self::new(path.trim_ascii(), false)?
            })
        });
        files.chain(parts).take(most).collect()
    }
}

/// Reads the path in a note about an attachment, with or without quotation marks. The forms are `"PATH"` and `C:\PATH` on
/// Windows, `VOLUME:NAME (TYPE/CREA) (HEXID)` and `VOLUME:NAME (Type: 'TYPE' Creator: 'CREA')` on the Mac.
fn attached(value: &[u8]) -> Option<EudoraNote> {
    const TAIL: usize = " (TYPE/CREA) (HEXIDHEX)".len();
    const OLD_TAIL: usize = " (Type: 'TYPE' Creator: 'CREA')".len();
    if let [b'"', path @ .., b'"'] = value {
        return EudoraNote::new(path, false);
    }
    let of_mac = |path: &[u8], kind: [u8; 4]| {
        let note = EudoraNote::new(path, true).filter(|_| path.contains(&b':'))?;
        let macintosh = Some(kind);
        Some(EudoraNote { macintosh, ..note })
    };
    if let Some((path, tail)) = value.split_last_chunk::<TAIL>()
        && let Some((kind, tail)) = after(tail, b" (")
        && let Some((_, tail)) = after(tail, b"/")
        && let Some(id) = tail
            .strip_prefix(b") (")
            .and_then(|id| id.strip_suffix(b")"))
        && hexadecimal(id).is_some()
    {
        return of_mac(path, kind);
    }
    if let Some((path, tail)) = value.split_last_chunk::<OLD_TAIL>()
        && let Some((kind, tail)) = after(tail, b" (Type: '")
        && let Some((_, b"')")) = after(tail, b"' Creator: '")
    {
        return of_mac(path, kind);
    }
    // An unquoted path contains only short (8.3) file names, which have no blanks. A value with blanks is a sentence
    // that a person wrote.
    let is_path = match value {
        [drive, b':', b'\\', ..] => drive.is_ascii_alphabetic(),
        [b'\\', b'\\', ..] => true,
        _ => false,
    };
    let is_short = |octet: &u8| !octet.is_ascii_whitespace() && *octet != b'"';
    EudoraNote::new(value, false).filter(|_| is_path && value.iter().all(is_short))
}

fn after<'t>(text: &'t [u8], mark: &[u8]) -> Option<([u8; 4], &'t [u8])> {
    let (four, rest) = text.strip_prefix(mark)?.split_first_chunk::<4>()?;
    Some((*four, rest))
}

fn embedded(value: &[u8]) -> Option<EudoraNote> {
    const TAIL: usize = ": MMMMMMMM,CCCCCCCC,LLLLLLLL,HHHHHHHH".len();
    let (name, tail) = value.split_last_chunk::<TAIL>()?;
    Some(EudoraNote {
        is_embedded: true,
        hashes: hashes(tail.strip_prefix(b": ")?, b',')?,
        ..EudoraNote::new(name, false)?
    })
}

/// Reads a note about a part of a multipart/related, as Eudora for the Mac writes it:
/// `:VOLUME:NAME:HEXIDHEX:CCCCCCCC:LLLLLLLL:HHHHHHHH`, with the hashes of the part's fields at the end.
fn related(value: &[u8]) -> Option<EudoraNote> {
    const TAIL: usize = ":HEXIDHEX:CCCCCCCC:LLLLLLLL:HHHHHHHH".len();
    let (path, tail) = value.split_last_chunk::<TAIL>()?;
    Some(EudoraNote {
        is_embedded: true,
        macintosh: Some(*b"    "),
        hashes: hashes(tail.strip_prefix(b":")?, b':')?,
        ..EudoraNote::new(path, true).filter(|_| path.starts_with(b":"))?
    })
}

fn hashes(numbers: &[u8], between: u8) -> Option<(u32, u32)> {
    let numbers = numbers.split(|&octet| octet == between).map(hexadecimal);
    match numbers.collect::<Option<Vec<u32>>>()?.as_slice() {
        &[_, id, location, _] => Some((id, location)),
        _ => None,
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let is_number = digits.len() == 8 && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Returns the hash of Karp and Rabin: the bytes as one number modulo a prime, plus 1. An id is hashed without angle brackets.
pub(crate) fn hash(text: &[u8]) -> u32 {
    const PRIME: u64 = 2_147_483_629;
    let sum = text
        .iter()
        .fold(0, |sum, &octet| (sum << 8 | u64::from(octet)) % PRIME);
    u32::try_from(sum + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
