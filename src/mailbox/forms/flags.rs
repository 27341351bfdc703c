//! Flags of messages, as mail programs store them: in header fields of an mbox message, or in letters of a Maildir file
//! name. The header is read once, and no I/O is performed.
//!
//! If several Status fields exist, their flags are combined, as in mutt and Dovecot. Fields of Thunderbird take
//! precedence, but only at the start of the header, where Thunderbird writes them: further down, the sender may have
//! written them.

use std::borrow::Cow;

use crate::engine::outlook::source::ItemState;
use crate::mailbox::forms::mbox::{self, Header};
use crate::mailbox::forms::quoting::replaced;
use crate::mailbox::state::MailState;
use crate::span::{Lines, Newline, Span, is_from_line, starts_like};

/// The flags of a message. A message without any flag is new. Each other flag implies [`OLD`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags(u8);

const DRAFT: u8 = 1;
const FLAGGED: u8 = 1 << 1;
const PASSED: u8 = 1 << 2;
const REPLIED: u8 = 1 << 3;
const SEEN: u8 = 1 << 4;
const TRASHED: u8 = 1 << 5;
const OLD: u8 = 1 << 6;
/// The flag for important mail. It has no letter: formats store it as the keyword [`IMPORTANT_KEYWORD`].
const IMPORTANT: u8 = 1 << 7;

/// The keyword for important mail (RFC 8457).
pub(crate) const IMPORTANT_KEYWORD: &str = "$Important";

const LETTERS: [(u8, u8); 6] = [
    (b'D', DRAFT),
    (b'F', FLAGGED),
    (b'P', PASSED),
    (b'R', REPLIED),
    (b'S', SEEN),
    (b'T', TRASHED),
];

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
const MOZILLA_EXPUNGED: u32 = 0x0008;
const MOZILLA_NEW: u32 = 0x0001_0000;
const MOZILLA_DELETED: u32 = 0x0020_0000;

const APPLE: [(u32, u8); 6] = [
    (1, SEEN),
    (1 << 1, TRASHED),
    (1 << 2, REPLIED),
    (1 << 4, FLAGGED),
    (1 << 6, DRAFT),
    (1 << 8, PASSED),
];

const OF_THUNDERBIRD: [&[u8]; 3] = [b"x-mozilla-status", b"x-mozilla-status2", b"x-mozilla-keys"];
/// The name of the tag that Thunderbird shows as "Important" in its standard settings.
const IMPORTANT_TAG: &str = "$label1";
/// Length of a new X-Mozilla-Keys field, in characters. Thunderbird later writes tags over the spaces in it, without
/// moving the rest of the mailbox.
const TAGS: usize = 80;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Noted {
    Status,
    MoreStatus,
    Mozilla,
    MoreMozilla,
    Keywords,
}

const NAMES: [(&[u8], Noted); 5] = [
    (b"x-keywords", Noted::Keywords),
    (b"status", Noted::Status),
    (b"x-status", Noted::MoreStatus),
    (b"x-mozilla-status", Noted::Mozilla),
    (b"x-mozilla-status2", Noted::MoreMozilla),
];

impl Flags {
    fn of_bits(bits: u8) -> Self {
        Self(if bits == 0 { 0 } else { bits | OLD })
    }

    /// Returns the flags for the letters in a Maildir file name. Unknown letters are ignored. A file in the directory
    /// `cur` is not new, even if it has no letters.
    pub(crate) fn of_letters(letters: &[u8], is_in_cur: bool) -> Self {
        let old = if is_in_cur { OLD } else { 0 };
        Self::of_bits(old | bits(&LETTERS, |letter| letters.contains(&letter)))
    }

    /// Returns the flags that Apple Mail stores. A message in Apple Mail is never new.
    pub(crate) fn of_apple_mail(noted: u64) -> Self {
        // All known flags are in the lower 32 bits, so the upper bits are ignored.
        Self(OLD | bits(&APPLE, |mask| noted as u32 & mask != 0))
    }

    /// Returns the flags from the state and the priority in an index of Eudora for Windows. The priorities 1 and 2 are
    /// high, and become the flag [`FLAGGED`].
    pub(crate) fn of_eudora(state: u8, priority: u8) -> Self {
        let bits = match state {
            1 | 8 => SEEN,
            2 => SEEN | REPLIED,
            // Forwarded or redirected.
            3 | 4 => SEEN | PASSED,
            // States of a message that was not sent yet: to be sent, queued, held back, or queued for a certain time.
            6 | 7 | 9 | 10 => SEEN | DRAFT,
            // The message is unread, or its state is unknown because Eudora rebuilt the index.
            _ => 0,
        };
        let is_high = (1..=2).contains(&priority);
        Self::of_bits(bits | if is_high { FLAGGED } else { 0 })
    }

    /// Returns the flags that Outlook stores. A message in Outlook is never new.
    #[cfg_attr(not(feature = "outlook"), allow(dead_code))]
    pub(crate) fn of_outlook(state: &ItemState) -> Self {
        let bits = [
            (state.is_read, SEEN),
            (state.is_draft, DRAFT),
            (state.is_replied, REPLIED),
            (state.is_forwarded, PASSED),
            (state.is_flagged, FLAGGED),
        ];
        let set = bits.into_iter().filter(|(is_set, _)| *is_set);
        Self(set.fold(OLD, |bits, (_, bit)| bits | bit))
    }

    pub(crate) fn of_states(states: &[MailState]) -> Self {
        let bit = |state: &MailState| match state {
            MailState::Read => SEEN,
            MailState::Flagged => FLAGGED,
            MailState::Draft => DRAFT,
            MailState::Forwarded => PASSED,
            MailState::Important => IMPORTANT,
            MailState::Trashed => TRASHED,
        };
        Self::of_bits(states.iter().map(bit).fold(0, |bits, bit| bits | bit))
    }

    /// Returns whether the mail has the keyword [`IMPORTANT_KEYWORD`].
    pub(crate) fn is_important(self) -> bool {
        self.0 & IMPORTANT != 0
    }

    /// Returns the flags that are set in `self` or in `other`.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Combines the flags of two copies of a message. The result is marked as deleted only if both copies are.
    #[cfg(feature = "cli")]
    pub(crate) fn united(self, other: Self) -> Self {
        let deleted = self.0 & other.0 & TRASHED;
        Self((self.0 | other.0) & !TRASHED | deleted)
    }

    #[cfg(feature = "cli")]
    pub(crate) fn to_byte(self) -> u8 {
        self.0
    }

    #[cfg(feature = "cli")]
    pub(crate) fn of_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns the Maildir letters of the flags that `self` has and `other` lacks. The flag [`OLD`] has no letter, so
    /// it is ignored.
    #[cfg(feature = "cli")]
    pub(crate) fn without(self, other: Self) -> String {
        text(&LETTERS, self.0 & !other.0)
    }

    pub(crate) fn is_in_cur(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn letters(self) -> String {
        text(&LETTERS, self.0)
    }

    /// Returns whether the header contains a field for flags, such as Status. X-Keywords does not count, because most
    /// keywords are no flags.
    pub(crate) fn has_fields(content: &[u8]) -> bool {
        fields(content).any(|(noted, ..)| noted != Noted::Keywords)
    }

    pub(crate) fn of_fields(content: &[u8]) -> Self {
        let mut flags = 0;
        let (mut mozilla, mut more_mozilla) = (None, None);
        let mut is_important = false;
        for (noted, _, value) in fields(content) {
            let value = value.of(content);
            match noted {
                Noted::Status | Noted::MoreStatus => {
                    let is_noted = |letter| value.contains(&letter);
                    flags |= bits(&STATUS, is_noted) | bits(&MORE_STATUS, is_noted);
                }
                Noted::Mozilla => mozilla = mozilla.or(hexadecimal(value)),
                Noted::MoreMozilla => more_mozilla = more_mozilla.or(hexadecimal(value)),
                Noted::Keywords => is_important |= has_important(value),
            }
        }
        if let Some(mozilla) = mozilla {
            let more = more_mozilla.unwrap_or(0);
            // X-Mozilla-Status replaces the flags of Status fields. Only the flag for drafts is kept, because
            // Thunderbird does not store it in this field.
            flags = flags & DRAFT | bits(&MOZILLA, |mask| mozilla & mask != 0);
            if more & MOZILLA_DELETED != 0 {
                flags |= TRASHED;
            }
            if more & MOZILLA_NEW == 0 {
                flags |= OLD;
            }
        }
        if is_important {
            flags |= IMPORTANT;
        }
        Self::of_bits(flags)
    }

    /// Writes the flags to the header, if the fields do not already contain them. The first Status and X-Status fields
    /// get the new values, and missing ones are added after the other fields. Further Status fields are removed,
    /// because programs combine them. If a line is not a header field, some programs do not see the fields after it, so
    /// both fields are added before this line. A keyword is added to X-Keywords, but none is removed, because other
    /// keywords are unknown here.
    pub(crate) fn put_into(self, content: &[u8]) -> Cow<'_, [u8]> {
        let noted = Self::of_fields(content);
        let keeps_status = (noted.0 | IMPORTANT) == (self.0 | IMPORTANT);
        let adds_keyword = self.is_important() && !noted.is_important();
        if keeps_status && !adds_keyword {
            return Cow::Borrowed(content);
        }
        let newline = Newline::of_first_line(content).bytes();
        let field = |name: &[u8], value: &str| [name, b": ", value.as_bytes(), newline].concat();
        let agreed = agreed_end(content);
        let is_seen = |line: Span| line.start < agreed;
        let has = |wanted: Noted| {
            let mut fields = fields(content);
            fields.any(|(noted, line, _)| noted == wanted && is_seen(line))
        };
        let mut out = Vec::with_capacity(content.len() + 80);
        if !keeps_status && self.0 & PASSED != 0 && !has(Noted::Mozilla) {
            out.extend(field(b"X-Mozilla-Status", &self.mozilla(0)));
        }
        let mut status = text(&STATUS, self.0);
        let mut more_status = text(&MORE_STATUS, self.0);
        let mut missing = Vec::new();
        if !keeps_status && !status.is_empty() && !has(Noted::Status) {
            missing.extend(field(b"Status", &status));
        }
        if !keeps_status && !more_status.is_empty() && !has(Noted::MoreStatus) {
            missing.extend(field(b"X-Status", &more_status));
        }
        let mut keyword = adds_keyword.then_some(IMPORTANT_KEYWORD);
        if let Some(keyword) = keyword.filter(|_| !has(Noted::Keywords)) {
            missing.extend(field(b"X-Keywords", keyword));
        }
        let end = header_end(content);
        let header = &content[..end];
        let edited = fields(content).filter(|(noted, line, _)| match noted {
            Noted::Keywords => adds_keyword && is_seen(*line),
            _ => !keeps_status,
        });
        let changes = edited.map(|(noted, line, value)| {
            if noted == Noted::Keywords {
                let more = keyword.take().map(|keyword| format!(" {keyword}"));
                return (Span::empty_at(value.end), more.unwrap_or_default());
            }
            let old = hexadecimal(value.of(content)).unwrap_or(0);
            let new = match noted {
                Noted::Status | Noted::MoreStatus if !is_seen(line) => String::new(),
                Noted::Status => std::mem::take(&mut status),
                Noted::MoreStatus => std::mem::take(&mut more_status),
                Noted::Mozilla => self.mozilla(old),
                Noted::MoreMozilla => self.more_mozilla(old),
                Noted::Keywords => String::new(),
            };
            if new.is_empty() {
                let behind = Lines::new(content, Span::new(line.end, end));
                let folded = behind.take_while(|line| is_folded(line.whole.of(content)));
                let end = folded.last().map_or(line.end, |line| line.whole.end);
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
        Cow::Owned(out)
    }

    /// Returns the message as Thunderbird stores it: with its own fields before those of the mail, and with space for
    /// tags.
    ///
    /// Thunderbird hides a message that is marked as expunged, and later removes it permanently. For this reason, a
    /// deleted message gets the flag that Thunderbird uses for deleted messages in IMAP folders. A draft is marked in
    /// X-Status, because Thunderbird recognises drafts only by their folder.
    pub(crate) fn put_for_thunderbird(self, content: &[u8]) -> Vec<u8> {
        let content = match (Self::of_fields(content).0 ^ self.0) & DRAFT {
            0 => Cow::Borrowed(content),
            _ => self.put_into(content),
        };
        let newline = Newline::of_first_line(&content).bytes();
        let mut noted: [Option<Vec<u8>>; 3] = Default::default();
        let mut kept: Vec<u8> = Vec::with_capacity(content.len() + 160);
        let end = header_end(&content);
        let (mut at, mut is_dropped) = (0, false);
        for line in Lines::new(&content, Span::new(0, end)) {
            let text = line.content.of(&content);
            if !is_folded(text) {
                if !text
                    .get(..2)
                    .is_some_and(|start| start.eq_ignore_ascii_case(b"x-"))
                {
                    break;
                }
                is_dropped = false;
                if let Some((name, value)) = mbox::field(text) {
                    let mut fields = OF_THUNDERBIRD.iter().zip(&mut noted);
                    let own = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
                    if let Some((_, place)) = own {
                        is_dropped = true;
                        place.get_or_insert_with(|| value.of(text).to_owned());
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
            |value, (mask, bit)| match self.0 & bit {
                0 => value & !mask,
                _ => value | mask,
            },
        );
        let deleted = if self.0 & TRASHED == 0 {
            0
        } else {
            MOZILLA_DELETED
        };
        let more = old(&more_status) & !(MOZILLA_NEW | MOZILLA_DELETED) | deleted;
        let mut tags = String::from_utf8_lossy(&tags.unwrap_or_default()).into_owned();
        if self.is_important() && !tags.split_whitespace().any(|tag| tag == IMPORTANT_TAG) {
            tags = format!("{tags} {IMPORTANT_TAG}");
        }
        let tags = tags.trim();
        let mut out = Vec::with_capacity(content.len() + 200);
        for field in [
            format!("X-Mozilla-Status: {value:04x}"),
            format!("X-Mozilla-Status2: {more:08x}"),
            format!("X-Mozilla-Keys: {tags:TAGS$}"),
        ] {
            out.extend_from_slice(field.as_bytes());
            out.extend_from_slice(newline);
        }
        out.extend_from_slice(&kept);
        out.extend_from_slice(&content[at..]);
        out
    }

    fn mozilla(self, before: u32) -> String {
        let mut value = before;
        for (mask, bit) in MOZILLA {
            value = match self.0 & bit {
                0 => value & !mask,
                _ => value | mask,
            };
        }
        format!("{value:04x}")
    }

    fn more_mozilla(self, before: u32) -> String {
        let mut value = before & !MOZILLA_NEW;
        if self.0 & TRASHED == 0 {
            value &= !MOZILLA_DELETED;
        }
        if self.0 & OLD == 0 {
            value |= MOZILLA_NEW;
        }
        format!("{value:08x}")
    }
}

/// Returns the flags of `table` that are set. `is_noted` returns whether the letter or the mask of a flag is set.
fn bits<T: Copy>(table: &[(T, u8)], is_noted: impl Fn(T) -> bool) -> u8 {
    let noted = table.iter().filter(|(sign, _)| is_noted(*sign));
    noted.fold(0, |bits, (_, bit)| bits | bit)
}

fn text(letters: &[(u8, u8)], bits: u8) -> String {
    let known = letters.iter().filter(|(_, bit)| bits & bit != 0);
    known.map(|&(letter, _)| char::from(letter)).collect()
}

fn has_important(value: &[u8]) -> bool {
    let mut words = value.split(u8::is_ascii_whitespace);
    words.any(|word| word.eq_ignore_ascii_case(IMPORTANT_KEYWORD.as_bytes()))
}

fn hexadecimal(value: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(value).ok()?, 16).ok()
}

fn is_folded(line: &[u8]) -> bool {
    line.starts_with(b" ") || line.starts_with(b"\t")
}

fn header_end(content: &[u8]) -> usize {
    match Header::of(content).body {
        None => content.len(),
        Some(body) if content[..body].ends_with(b"\r\n") => body - 2,
        Some(body) => body - 1,
    }
}

/// Returns the offset at which some programs stop reading the header: the first line that is not a field, or the end of
/// the header. New fields are written before this offset. A `From ` line may be the first line.
fn agreed_end(content: &[u8]) -> usize {
    let end = header_end(content);
    let mut lines = Lines::new(content, Span::new(0, end));
    let stray = lines.find(|line| {
        let text = line.content.of(content);
        let is_field = || mbox::field(text).is_some_and(|(name, _)| !name.is_empty());
        let is_first = line.whole.start == 0 && is_from_line(text);
        !is_first && !is_folded(text) && !is_field()
    });
    stray.map_or(end, |line| line.whole.start)
}

/// Returns the header fields that store flags. For each field: its meaning, the span of its line, and the span of its
/// value.
fn fields(content: &[u8]) -> impl Iterator<Item = (Noted, Span, Span)> {
    let mut is_in_front = true;
    Lines::new(content, Span::new(0, header_end(content))).filter_map(move |line| {
        let text = line.content.of(content);
        if is_folded(text) {
            return None;
        }
        // Fields of Thunderbird count only at the start of the header, because the sender may have written one further
        // down. A `From ` line between them is accepted: programs that copy mailboxes leave one there.
        is_in_front &= starts_like(text, b"x-") || is_from_line(text);
        let (name, value) = mbox::field(text)?;
        let (_, noted) = NAMES.iter().find(|row| row.0.eq_ignore_ascii_case(name))?;
        let is_of_thunderbird = matches!(noted, Noted::Mozilla | Noted::MoreMozilla);
        let counts = is_in_front || !is_of_thunderbird;
        counts.then(|| (*noted, line.whole, value.shifted(line.content.start)))
    })
}
