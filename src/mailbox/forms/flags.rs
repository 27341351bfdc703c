//! What mail programs note about a message: in an mbox in fields of its header, in a Maildir in letters of its name.
//! Pure, and one pass over the header.
//!
//! Mutt and Dovecot unite what several Status fields say, and so do we. What Thunderbird noted counts more; it writes
//! its fields in front of those of the mail: further down a stranger may have written them.

use std::borrow::Cow;

use crate::mailbox::forms::mbox::{self, Header};
use crate::span::{Lines, Newline, Span};

/// A message with any flag is not new.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags(u8);

const DRAFT: u8 = 1;
const FLAGGED: u8 = 1 << 1;
const PASSED: u8 = 1 << 2;
const REPLIED: u8 = 1 << 3;
const SEEN: u8 = 1 << 4;
const TRASHED: u8 = 1 << 5;
const OLD: u8 = 1 << 6;

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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Noted {
    Status,
    MoreStatus,
    Mozilla,
    MoreMozilla,
}

const NAMES: [(&[u8], Noted); 4] = [
    (b"status", Noted::Status),
    (b"x-status", Noted::MoreStatus),
    (b"x-mozilla-status", Noted::Mozilla),
    (b"x-mozilla-status2", Noted::MoreMozilla),
];

impl Flags {
    fn of_bits(bits: u8) -> Self {
        Self(if bits == 0 { 0 } else { bits | OLD })
    }

    /// Other letters mean nothing here.
    pub(crate) fn of_letters(letters: &[u8], is_in_cur: bool) -> Self {
        let old = if is_in_cur { OLD } else { 0 };
        Self::of_bits(old | lettered(&LETTERS, letters))
    }

    /// A message that Apple's Mail keeps is not new.
    pub(crate) fn of_apple_mail(noted: u64) -> Self {
        // All of them are among the lower ones.
        Self(OLD | masked(&APPLE, noted as u32))
    }

    /// From an index of Eudora for Windows; priorities 1 and 2 are high.
    pub(crate) fn of_eudora(state: u8, priority: u8) -> Self {
        let bits = match state {
            1 | 8 => SEEN,
            2 => SEEN | REPLIED,
            // Forwarded, and redirected.
            3 | 4 => SEEN | PASSED,
            // Not sent yet: to be sent, queued, kept back, queued for a time.
            6 | 7 | 9 | 10 => SEEN | DRAFT,
            // Unread; or the index was made anew.
            _ => 0,
        };
        let is_high = (1..=2).contains(&priority);
        Self::of_bits(bits | if is_high { FLAGGED } else { 0 })
    }

    pub(crate) fn is_in_cur(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn letters(self) -> String {
        text(&LETTERS, self.0)
    }

    pub(crate) fn of_fields(content: &[u8]) -> Self {
        let mut bits = 0;
        let (mut mozilla, mut more_mozilla) = (None, None);
        for (noted, value) in fields(content) {
            let value = value.of(content);
            match noted {
                Noted::Status | Noted::MoreStatus => {
                    bits |= lettered(&STATUS, value) | lettered(&MORE_STATUS, value);
                }
                Noted::Mozilla => mozilla = mozilla.or(hexadecimal(value)),
                Noted::MoreMozilla => more_mozilla = more_mozilla.or(hexadecimal(value)),
            }
        }
        if let Some(mozilla) = mozilla {
            let more = more_mozilla.unwrap_or(0);
            // Thunderbird notes nothing of drafts.
            bits = bits & DRAFT | masked(&MOZILLA, mozilla);
            if more & MOZILLA_DELETED != 0 {
                bits |= TRASHED;
            }
            if more & MOZILLA_NEW == 0 {
                bits |= OLD;
            }
        }
        Self::of_bits(bits)
    }

    /// Where the fields do not say so yet, the first Status and X-Status get the value, or are put behind the other
    /// fields; further ones go, because readers unite them.
    pub(crate) fn put_into(self, content: &[u8]) -> Cow<'_, [u8]> {
        if Self::of_fields(content) == self {
            return Cow::Borrowed(content);
        }
        let newline = Newline::of_first_line(content).bytes();
        let mut out = Vec::with_capacity(content.len() + 80);
        let mut fields = fields(content).peekable();
        let mut missing = [
            (&b"Status: "[..], text(&STATUS, self.0)),
            (b"X-Status: ", text(&MORE_STATUS, self.0)),
        ];
        let is_mozilla = self::fields(content).any(|(noted, _)| noted == Noted::Mozilla);
        if self.0 & PASSED != 0 && !is_mozilla {
            let value = self.mozilla(0);
            out.extend([b"X-Mozilla-Status: ", value.as_bytes(), newline].concat());
        }
        let end = header_end(content);
        let mut is_dropped = false;
        for line in Lines::new(content, Span::new(0, end)) {
            let whole = line.whole.of(content);
            if is_folded(whole) {
                if !is_dropped {
                    out.extend_from_slice(whole);
                }
                continue;
            }
            is_dropped = false;
            let here = fields.next_if(|(_, value)| line.whole.contains(*value));
            let Some((noted, value)) = here else {
                out.extend_from_slice(whole);
                continue;
            };
            let old = value.of(content);
            let new = match noted {
                Noted::Status | Noted::MoreStatus => {
                    let which = usize::from(noted == Noted::MoreStatus);
                    std::mem::take(&mut missing[which].1)
                }
                Noted::Mozilla => self.mozilla(hexadecimal(old).unwrap_or(0)),
                Noted::MoreMozilla => self.more_mozilla(hexadecimal(old).unwrap_or(0)),
            };
            if new.is_empty() {
                is_dropped = true;
                continue;
            }
            out.extend_from_slice(&content[line.whole.start..value.start]);
            if out.ends_with(b":") {
                out.push(b' ');
            }
            out.extend_from_slice(new.as_bytes());
            out.extend_from_slice(&content[value.end..line.whole.end]);
        }
        if !out.is_empty() && !out.ends_with(b"\n") {
            out.extend_from_slice(newline);
        }
        for (name, value) in missing.iter().filter(|(_, value)| !value.is_empty()) {
            out.extend([name, value.as_bytes(), newline].concat());
        }
        out.extend_from_slice(&content[end..]);
        Cow::Owned(out)
    }

    fn mozilla(self, before: u32) -> String {
        let noted = MOZILLA
            .iter()
            .fold(before, |value, (mask, bit)| match self.0 & bit {
                0 => value & !mask,
                _ => value | mask,
            });
        format!("{noted:04x}")
    }

    fn more_mozilla(self, before: u32) -> String {
        let deleted = if self.0 & TRASHED == 0 {
            MOZILLA_DELETED
        } else {
            0
        };
        let new = if self.0 & OLD == 0 { MOZILLA_NEW } else { 0 };
        format!("{:08x}", before & !(deleted | MOZILLA_NEW) | new)
    }
}

fn lettered(table: &[(u8, u8)], letters: &[u8]) -> u8 {
    let known = table.iter().filter(|(letter, _)| letters.contains(letter));
    known.fold(0, |bits, (_, bit)| bits | bit)
}

fn masked(table: &[(u32, u8)], noted: u32) -> u8 {
    let set = table.iter().filter(|(mask, _)| noted & mask != 0);
    set.fold(0, |bits, (_, bit)| bits | bit)
}

fn text(letters: &[(u8, u8)], bits: u8) -> String {
    let known = letters.iter().filter(|(_, bit)| bits & bit != 0);
    known.map(|&(letter, _)| char::from(letter)).collect()
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

fn fields(content: &[u8]) -> impl Iterator<Item = (Noted, Span)> {
    let mut is_in_front = true;
    Lines::new(content, Span::new(0, header_end(content))).filter_map(move |line| {
        let text = line.content.of(content);
        if is_folded(text) {
            return None;
        }
        let found = NAMES.iter().find_map(|(name, noted)| {
            let value = mbox::field(text, name)?;
            Some((*noted, value.shifted(line.content.start)))
        });
        is_in_front &= text
            .get(..2)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"x-"));
        found.filter(|(noted, _)| matches!(noted, Noted::Status | Noted::MoreStatus) || is_in_front)
    })
}
