//! Header fields that contain the flags and keywords of a message: Status, X-Status and X-Keywords of mboxes, and the
//! fields of Thunderbird and Evolution. The header is read once, and no I/O is performed.
//!
//! If several Status fields exist, their flags are combined, as in mutt and Dovecot. Fields of Thunderbird take
//! precedence, but only at the start of the header, where Thunderbird writes them: further down, the sender may have
//! written them. A field whose value no program writes, such as `Status: order shipped`, is content of the sender, and is kept.

use std::borrow::Cow;

use crate::mailbox::forms::flags::{
    DRAFT, FLAGGED, Flags, MessageFlags, OLD, PASSED, REPLIED, SEEN, TRASHED, bits, text,
};
use crate::mailbox::forms::keywords::{
    FORWARDED, IMPORTANT, IMPORTANT_TAG, Keywords, RECEIPT_SENT, is_writable, words,
};
#[cfg(feature = "cli")]
use crate::mailbox::forms::keywords::{IGNORED_THREAD, WATCHED_THREAD};
use crate::mailbox::forms::mbox::{self, MboxHeader};
use crate::mailbox::forms::quoting::replaced;
use crate::mailbox_field::is_of_mailbox;
use crate::prologue::BYTE_ORDER_MARK;
use crate::span::{Newline, Span, SpanLine, SpanLines, is_from_line, split_while, starts_like};

const STATUS: [(u8, u8); 2] = [(b'R', SEEN), (b'O', OLD)];
const MORE_STATUS: [(u8, u8); 4] = [
    (b'A', REPLIED),
    (b'F', FLAGGED),
    (b'T', DRAFT),
    (b'D', TRASHED),
];
const MOZILLA: [(u32, u8); 5] = [
    (0x0001, SEEN),
    (0x0002, REPLIED),
    (0x0004, FLAGGED),
    (0x0008, TRASHED),
    (0x1000, PASSED),
];
const EVOLUTION: [(u32, u8); 5] = [
    (0x01, REPLIED),
    (0x02, TRASHED),
    (0x04, DRAFT),
    (0x08, FLAGGED),
    (0x10, SEEN),
];
const MOZILLA_EXPUNGED: u32 = 0x0008;
const MOZILLA_NEW: u32 = 0x0001_0000;
const MOZILLA_DELETED: u32 = 0x0020_0000;
/// Bit of X-Mozilla-Status2 for the keyword [`RECEIPT_SENT`].
const MOZILLA_RECEIPT_SENT: u32 = 0x0080_0000;
/// Bits for the marks of watched and ignored threads. Thunderbird stores the first in X-Mozilla-Status and the second in
/// X-Mozilla-Status2. Marks have names with a blank, which no keyword can have.
#[cfg(feature = "cli")]
const MOZILLA_MARKS: [(u32, &str); 2] =
    [(0x0000_0100, WATCHED_THREAD), (0x0004_0000, IGNORED_THREAD)];
/// Position and mask of the label in X-Mozilla-Status2. Old versions of Thunderbird, which had no X-Mozilla-Keys, stored
/// the number of a label from 1 to 5 there.
const MOZILLA_LABEL: (u32, u32) = (25, 7);
const LABELS: [&str; 5] = ["$label1", "$label2", "$label3", "$label4", "$label5"];

const TAG_FIELD: &[u8] = b"x-mozilla-keys";
const OF_THUNDERBIRD: [&[u8]; 3] = [b"x-mozilla-status", b"x-mozilla-status2", TAG_FIELD];
/// Length of a new X-Mozilla-Keys field, in characters. Thunderbird later writes tags over the spaces in it, without
/// moving the rest of the mailbox.
const TAGS: usize = 80;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FlagField {
    Status,
    MoreStatus,
    Mozilla,
    MoreMozilla,
    Tags,
    Keywords,
    Evolution,
}

const NAMES: [(&[u8], FlagField); 7] = [
    (b"x-keywords", FlagField::Keywords),
    (b"x-evolution", FlagField::Evolution),
    (b"status", FlagField::Status),
    (b"x-status", FlagField::MoreStatus),
    (b"x-mozilla-status", FlagField::Mozilla),
    (b"x-mozilla-status2", FlagField::MoreMozilla),
    (b"x-mozilla-keys", FlagField::Tags),
];

impl MessageFlags {
    /// Returns whether the header contains a field for flags, such as Status. Fields for keywords do not count, because
    /// most keywords are no flags.
    pub(crate) fn has_fields(content: &[u8]) -> bool {
        let mut fields = fields(content);
        fields.any(|(noted, ..)| {
            !matches!(
                noted,
                FlagField::Keywords | FlagField::Tags | FlagField::Evolution
            )
        })
    }

    /// Returns whether the header starts with a field in which Thunderbird stores flags. A `From ` line may precede it.
    pub(crate) fn has_fields_of_thunderbird(content: &[u8]) -> bool {
        fields(content).any(|(noted, ..)| noted == FlagField::Mozilla)
    }

    pub(crate) fn of_fields(content: &[u8]) -> Self {
        let mut flags = 0;
        let (mut mozilla, mut more_mozilla, mut evolution) = (None, None, None);
        let (mut names, mut tags): (Vec<Cow<'_, str>>, Vec<Cow<'_, str>>) = Default::default();
        for (noted, _, value) in fields(content) {
            let value = value.of(content);
            match noted {
                FlagField::Status | FlagField::MoreStatus => {
                    let is_noted = |letter| value.contains(&letter);
                    flags |= bits(&STATUS, is_noted) | bits(&MORE_STATUS, is_noted);
                }
                FlagField::Mozilla => mozilla = mozilla.or(hexadecimal(value)),
                FlagField::MoreMozilla => more_mozilla = more_mozilla.or(hexadecimal(value)),
                FlagField::Evolution => evolution = evolution.or(of_evolution(value)),
                FlagField::Keywords => names.push(String::from_utf8_lossy(value)),
                FlagField::Tags => tags.push(String::from_utf8_lossy(value)),
            }
        }
        let more = more_mozilla.unwrap_or(0);
        // Programs that write Status fields leave the field of Evolution as it is, so it is older.
        if let (0, None, Some(noted)) = (flags, mozilla, evolution) {
            flags = OLD | bits(&EVOLUTION, |mask| noted & mask != 0);
        }
        if let Some(mozilla) = mozilla {
            // X-Mozilla-Status replaces the flags of Status fields. Only the flag for drafts is kept, because
            // Thunderbird does not store it in this field.
            flags = flags & DRAFT | of_mozilla(mozilla, more);
            if more & MOZILLA_NEW == 0 {
                flags |= OLD;
            }
        }
        let tags = tags.iter().flat_map(|value| value.split_whitespace());
        let names = names.iter().flat_map(|value| words(value)).chain(tags);
        let noted: Vec<&str> = keywords_of_mozilla(more);
        let keywords = Keywords::of_names(names.chain(noted));
        Self::new(Flags::of_bits(flags), keywords)
    }

    /// Returns the flags, tags and marks in all fields of Thunderbird. No program reads those fields that follow other fields,
    /// but they may be all that is left of the flags. If `counts_start` is false, the flags of the fields at the start of the
    /// header do not count, because the mailbox stores newer ones.
    #[cfg(feature = "cli")]
    pub(crate) fn of_all_fields(content: &[u8], counts_start: bool) -> Self {
        // If a field occurs several times at the start of the header, its first occurrence counts.
        let (mut first_status, mut first_more) = (None, None);
        let (mut flags, mut names) = (0, Vec::<String>::new());
        for field in all_fields(content) {
            let value = field.value.of(content);
            let (first, values) = match (field.kind, hexadecimal(value)) {
                (FlagField::Tags, _) => {
                    let tags = String::from_utf8_lossy(value);
                    names.extend(tags.split_whitespace().map(str::to_owned));
                    continue;
                }
                (FlagField::Mozilla, Some(status)) => (&mut first_status, (status, 0)),
                (FlagField::MoreMozilla, Some(more)) => (&mut first_more, (0, more)),
                _ => continue,
            };
            if field.is_in_front {
                first.get_or_insert(values);
            } else {
                flags |= of_mozilla(values.0, values.1);
                names.extend(names_of_mozilla(values.0, values.1));
            }
        }
        let (status, _) = first_status.unwrap_or_default();
        let (_, more) = first_more.unwrap_or_default();
        names.extend(names_of_mozilla(status, more));
        if counts_start {
            flags |= of_mozilla(status, more);
        }
        let names = names.iter().map(String::as_str);
        Self::new(Flags::of_bits(flags), Keywords::of_names(names))
    }

    /// Returns the keywords that an mbox cannot store, because a header field cannot contain their names.
    pub(crate) fn unwritable(&self) -> impl Iterator<Item = &str> {
        self.keywords.names().filter(|name| !is_writable(name))
    }

    /// Writes the flags and keywords to the header, if the fields do not already contain them. The first Status and
    /// X-Status fields get the new values, and missing ones are added after the other fields. Further Status fields are
    /// removed, because programs combine them. If a line is not a header field, some programs do not see the fields
    /// after it, so new fields are added before this line. Keywords are added to X-Keywords, but none is removed, because
    /// other programs also store labels in this field.
    pub(crate) fn put_into<'c>(&self, content: &'c [u8]) -> Cow<'c, [u8]> {
        let noted = Self::of_fields(content);
        let missing = self.keywords.without(&noted.keywords);
        let new: Vec<&str> = missing.names().filter(|name| is_writable(name)).collect();
        put(self.system, &noted, &new.join(" "), content)
    }

    /// Returns the message as Thunderbird stores it: with its own fields before those of the mail, and with space for
    /// tags.
    ///
    /// Thunderbird hides a message that is marked as expunged, and later removes it permanently. For this reason, a
    /// deleted message gets the flag that Thunderbird uses for deleted messages in IMAP folders. A draft is marked in
    /// X-Status, because Thunderbird recognises drafts only by their folder.
    pub(crate) fn put_for_thunderbird(&self, content: &[u8]) -> Vec<u8> {
        let there = Self::of_fields(content);
        let flags = self.system;
        let content = match (there.system.0 ^ flags.0) & DRAFT {
            0 => Cow::Borrowed(content),
            _ => put(flags, &there, "", content),
        };
        let newline = Newline::of_first_line(&content).bytes();
        let mut noted: [Option<Vec<u8>>; 3] = Default::default();
        let mut kept: Vec<u8> = Vec::with_capacity(content.len() + 160);
        let end = header_end(&content);
        let (mut at, mut is_dropped) = (0, false);
        for line in SpanLines::new(&content, Span::new(0, end)) {
            let text = line.content.of(&content);
            if !is_folded(text) {
                if !text
                    .get(..2)
                    .is_some_and(|start| start.eq_ignore_ascii_case(b"x-"))
                {
                    break;
                }
                is_dropped = false;
                if let Some((name, value)) = mbox::field(text)
                    && let value = value.shifted(line.content.start)
                    && let value = whole_value(&content, value, &line, end).of(&content)
                    && is_of_mailbox(name, || value.into())
                {
                    let mut fields = OF_THUNDERBIRD.iter().zip(&mut noted);
                    let own = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
                    if let Some((_, place)) = own {
                        is_dropped = true;
                        match place {
                            Some(known) if name.eq_ignore_ascii_case(TAG_FIELD) => {
                                known.push(b' ');
                                known.extend_from_slice(value);
                            }
                            Some(known) if !known.is_empty() => {}
                            _ => *place = Some(value.to_owned()),
                        }
                    }
                }
            }
            if !is_dropped {
                kept.extend_from_slice(line.whole.of(&content));
            }
            at = line.whole.end;
        }
        let [status, more_status, tags] = noted;
        let old = |value: &Option<Vec<u8>>| value.as_deref().and_then(hexadecimal).unwrap_or(0);
        let bits = MOZILLA.iter().filter(|(_, bit)| *bit != TRASHED);
        let value = bits.fold(
            old(&status) & !MOZILLA_EXPUNGED,
            |value, (mask, bit)| match flags.0 & bit {
                0 => value & !mask,
                _ => value | mask,
            },
        );
        let mut more = old(&more_status) & !(MOZILLA_NEW | MOZILLA_DELETED);
        if flags.0 & TRASHED != 0 {
            more |= MOZILLA_DELETED;
        }
        if self.keywords.has(RECEIPT_SENT) {
            more |= MOZILLA_RECEIPT_SENT;
        }
        let listed = tags.unwrap_or_default();
        let mut tags = String::from_utf8_lossy(&listed).replace(['\r', '\n'], " ");
        let known = Keywords::of_names(tags.split_whitespace());
        // Thunderbird has flags for two of the keywords, and its own tag for important mail.
        let has_flag = |name: &str| {
            [FORWARDED, RECEIPT_SENT]
                .iter()
                .any(|it| it.eq_ignore_ascii_case(name))
        };
        let own = self.keywords.names().map(|name| match name {
            name if name.eq_ignore_ascii_case(IMPORTANT) => IMPORTANT_TAG,
            name => name,
        });
        let writable = Keywords::of_names(own.filter(|name| is_writable(name) && !has_flag(name)));
        for tag in writable.without(&known).names() {
            tags = format!("{tags} {tag}");
        }
        let tags = tags.trim();
        // A folded line before the first field would become a part of a new field before it.
        let (first, kept) = kept.split_at(leading_folded(&kept, kept.len()));
        let mut out = Vec::with_capacity(content.len() + 200);
        out.extend_from_slice(first);
        for field in [
            format!("X-Mozilla-Status: {value:04x}"),
            format!("X-Mozilla-Status2: {more:08x}"),
            format!("X-Mozilla-Keys: {tags:TAGS$}"),
        ] {
            out.extend_from_slice(field.as_bytes());
            out.extend_from_slice(newline);
        }
        out.extend_from_slice(kept);
        out.extend_from_slice(&content[at..]);
        out
    }
}

/// Returns the message with these flags in its Status fields, and with these keywords in addition to those of the header.
/// `noted` contains the flags of the header.
fn put<'c>(flags: Flags, noted: &MessageFlags, keywords: &str, content: &'c [u8]) -> Cow<'c, [u8]> {
    // Only Evolution reads its field, so the flags are also written to Status.
    let is_of_evolution = || {
        let mut fields = fields(content);
        fields.any(|(noted, ..)| noted == FlagField::Evolution)
            && !MessageFlags::has_fields(content)
    };
    let keeps_status = noted.system == flags && !is_of_evolution();
    if keeps_status && keywords.is_empty() {
        return Cow::Borrowed(content);
    }
    let newline = Newline::of_first_line(content).bytes();
    let field = |name: &[u8], value: &str| [name, b": ", value.as_bytes(), newline].concat();
    let agreed = agreed_end(content);
    let is_seen = |line: Span| line.start < agreed;
    let has = |wanted: FlagField| {
        let mut fields = fields(content);
        fields.any(|(noted, line, _)| noted == wanted && is_seen(line))
    };
    let mut out = Vec::with_capacity(content.len() + 80);
    let mut status = text(&STATUS, flags.0);
    let mut more_status = text(&MORE_STATUS, flags.0);
    let mut missing = Vec::new();
    if !keeps_status && !status.is_empty() && !has(FlagField::Status) {
        missing.extend(field(b"Status", &status));
    }
    if !keeps_status && !more_status.is_empty() && !has(FlagField::MoreStatus) {
        missing.extend(field(b"X-Status", &more_status));
    }
    let mut keywords = Some(keywords).filter(|keywords| !keywords.is_empty());
    if let Some(keywords) = keywords.filter(|_| !has(FlagField::Keywords)) {
        missing.extend(field(b"X-Keywords", keywords));
    }
    let end = header_end(content);
    let header = &content[..end];
    let adds_keywords = keywords.is_some();
    let edited = fields(content).filter(|(noted, line, _)| match noted {
        FlagField::Keywords => adds_keywords && is_seen(*line),
        FlagField::Tags | FlagField::Evolution => false,
        _ => !keeps_status,
    });
    let changes = edited.map(|(noted, line, value)| {
        if noted == FlagField::Keywords {
            let more = keywords.take().map(|keywords| format!(" {keywords}"));
            return (Span::empty_at(value.end), more.unwrap_or_default());
        }
        // If a field of Thunderbird occurs several times, the first occurrence with a value counts. An empty occurrence
        // before it gets the same value.
        let old = hexadecimal(value.of(content)).or_else(|| {
            fields(content).find_map(|(other, _, value)| {
                let value = (other == noted).then(|| value.of(content))?;
                hexadecimal(value)
            })
        });
        let old = old.unwrap_or(0);
        let new = match noted {
            FlagField::Status | FlagField::MoreStatus if !is_seen(line) => String::new(),
            FlagField::Status => std::mem::take(&mut status),
            FlagField::MoreStatus => std::mem::take(&mut more_status),
            FlagField::Mozilla => mozilla(flags, old),
            FlagField::MoreMozilla => more_mozilla(flags, old),
            FlagField::Keywords | FlagField::Tags | FlagField::Evolution => String::new(),
        };
        if new.is_empty() {
            let end = folded_end(content, line.end, end);
            return (Span::new(line.start, end), new);
        }
        if header[..value.start].ends_with(b":") {
            (value, format!(" {new}"))
        } else {
            (value, new)
        }
    });
    let (seen, unseen): (Vec<_>, Vec<_>) =
        changes.partition(|(span, _): &(Span, String)| is_seen(*span));
    let (front, rest) = header.split_at(agreed);
    let changed = replaced(front, 0, seen.into_iter());
    out.extend_from_slice(changed.as_deref().unwrap_or(front));
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.extend_from_slice(newline);
    }
    out.extend(missing);
    let unseen = unseen.into_iter().map(|(span, new)| {
        let span = Span::new(span.start - agreed, span.end - agreed);
        (span, new)
    });
    let changed = replaced(rest, 0, unseen);
    out.extend_from_slice(changed.as_deref().unwrap_or(rest));
    out.extend_from_slice(&content[end..]);
    if !keeps_status && flags.0 & PASSED != 0 && !has(FlagField::Mozilla) {
        let first = leading_folded(content, end);
        let mozilla = field(b"X-Mozilla-Status", &mozilla(flags, 0));
        out.splice(first..first, mozilla);
    }
    Cow::Owned(out)
}

fn mozilla(flags: Flags, before: u32) -> String {
    let value = MOZILLA
        .iter()
        .fold(before, |value, (mask, bit)| match flags.0 & bit {
            0 => value & !mask,
            _ => value | mask,
        });
    format!("{value:04x}")
}

fn more_mozilla(flags: Flags, before: u32) -> String {
    let mut value = before & !MOZILLA_NEW;
    if flags.0 & TRASHED == 0 {
        value &= !MOZILLA_DELETED;
    }
    if flags.0 & OLD == 0 {
        value |= MOZILLA_NEW;
    }
    format!("{value:08x}")
}

/// Returns the flags in the values of X-Mozilla-Status and X-Mozilla-Status2.
fn of_mozilla(status: u32, more: u32) -> u8 {
    let deleted = if more & MOZILLA_DELETED != 0 {
        TRASHED
    } else {
        0
    };
    deleted | bits(&MOZILLA, |mask| status & mask != 0)
}

/// Returns the keywords in the value of X-Mozilla-Status2: the label, and that a receipt was sent.
fn keywords_of_mozilla(more: u32) -> Vec<&'static str> {
    let number = (more >> MOZILLA_LABEL.0 & MOZILLA_LABEL.1).checked_sub(1);
    let label = number.and_then(|number| LABELS.get(number as usize).copied());
    let receipt = (more & MOZILLA_RECEIPT_SENT != 0).then_some(RECEIPT_SENT);
    label.into_iter().chain(receipt).collect()
}

/// Returns the keywords and marks in the values of X-Mozilla-Status and X-Mozilla-Status2.
#[cfg(feature = "cli")]
fn names_of_mozilla(status: u32, more: u32) -> Vec<String> {
    let marks = MOZILLA_MARKS
        .iter()
        .filter(|(mask, _)| (status | more) & mask != 0)
        .map(|mark| mark.1);
    let keywords = keywords_of_mozilla(more).into_iter().chain(marks);
    keywords.map(str::to_owned).collect()
}

/// Returns the flags in a field X-Evolution: `UID-FLAGS`, two hexadecimal numbers.
fn of_evolution(value: &[u8]) -> Option<u32> {
    let (uid, behind) = split_while(value, u8::is_ascii_hexdigit);
    let digits = behind.strip_prefix(b"-")?;
    hexadecimal(uid)?;
    hexadecimal(split_while(digits, u8::is_ascii_hexdigit).0)
}

fn hexadecimal(value: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(value).ok()?, 16).ok()
}

/// Returns the end of the header field whose first line ends at `end`, with the folded lines that follow. The header ends
/// at `header_end`.
fn folded_end(content: &[u8], end: usize, header_end: usize) -> usize {
    let behind = SpanLines::new(content, Span::new(end, header_end));
    let folded = behind.take_while(|line| is_folded(line.whole.of(content)));
    folded.last().map_or(end, |line| line.whole.end)
}

fn is_folded(line: &[u8]) -> bool {
    line.starts_with(b" ") || line.starts_with(b"\t")
}

/// Returns the value of a header field with its folded lines, without the blanks around it. `value` is the value in the
/// first line.
fn whole_value(content: &[u8], value: Span, line: &SpanLine, header_end: usize) -> Span {
    let whole = Span::new(value.start, folded_end(content, line.whole.end, header_end));
    let text = whole.of(content);
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() {
        return value;
    }
    let start = whole.start + text.len() - text.trim_ascii_start().len();
    Span::new(start, start + trimmed.len())
}

/// Returns the length of the lines at the start of the header that begin with a blank. They belong to no field.
fn leading_folded(content: &[u8], header_end: usize) -> usize {
    folded_end(content, 0, header_end)
}

fn header_end(content: &[u8]) -> usize {
    match MboxHeader::of(content).body {
        None => content.len(),
        Some(body) if content[..body].ends_with(b"\r\n") => body - 2,
        Some(body) => body - 1,
    }
}

/// Returns the offset at which some programs stop reading the header: the first line that is not a field, or the end of
/// the header. New fields are written before this offset. A `From ` line may be the first line, if a field follows.
pub(super) fn agreed_end(content: &[u8]) -> usize {
    let end = header_end(content);
    let mut lines = SpanLines::new(content, Span::new(0, end));
    let is_field = |text| mbox::field(text).is_some_and(|(name, _)| !name.is_empty());
    let follows = |line: &SpanLine| {
        let mut next = SpanLines::new(content, Span::new(line.whole.end, end));
        next.next()
            .is_some_and(|next| is_field(next.content.of(content)))
    };
    let stray = lines.find(|line| {
        let text = line.content.of(content);
        let is_first = line.whole.start == 0 && is_from_line(text) && follows(line);
        !is_first && !is_folded(text) && !is_field(text)
    });
    stray.map_or(end, |line| line.whole.start)
}

/// A header field that stores flags.
struct FoundField {
    kind: FlagField,
    line: Span,
    /// The value with its folded lines, without the blanks around it.
    value: Span,
    /// Whether only fields whose names start with `X-` precede the field.
    is_in_front: bool,
}

/// Returns the header fields that store flags. For each field: its meaning, the span of its line, and the span of its
/// value. Fields of Thunderbird count only at the start of the header, because the sender may have written one further
/// down.
fn fields(content: &[u8]) -> impl Iterator<Item = (FlagField, Span, Span)> {
    all_fields(content).filter_map(|field| {
        let is_of_thunderbird = matches!(
            field.kind,
            FlagField::Mozilla | FlagField::MoreMozilla | FlagField::Tags
        );
        let counts = field.is_in_front || !is_of_thunderbird;
        counts.then_some((field.kind, field.line, field.value))
    })
}

fn all_fields(content: &[u8]) -> impl Iterator<Item = FoundField> {
    let mut is_in_front = true;
    let mark = content.strip_prefix(BYTE_ORDER_MARK);
    let start = mark.map_or(0, |behind| content.len() - behind.len());
    let end = header_end(content);
    SpanLines::new(content, Span::new(start, end)).filter_map(move |line| {
        let text = line.content.of(content);
        if is_folded(text) {
            return None;
        }
        // A `From ` line between fields of Thunderbird is accepted: programs that copy mailboxes leave one there.
        is_in_front &= starts_like(text, b"x-") || is_from_line(text);
        // The names of the fields start with one of two letters. Most lines need not be read further.
        if !matches!(text.first(), Some(b's' | b'S' | b'x' | b'X')) {
            return None;
        }
        let (name, value) = mbox::field(text)?;
        let (_, kind) = NAMES.iter().find(|row| row.0.eq_ignore_ascii_case(name))?;
        let value = whole_value(content, value.shifted(line.content.start), &line, end);
        is_of_mailbox(name, || value.of(content).into()).then_some(FoundField {
            kind: *kind,
            line: line.whole,
            value,
            is_in_front,
        })
    })
}
