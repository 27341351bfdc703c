//! Flags of messages: the flags of the mail system, such as "read", and keywords. They are stored in letters of a
//! Maildir file name, in the indexes of mail programs, or in header fields (`flag_fields`). No I/O is performed.

use std::collections::HashMap;

use crate::engine::outlook::source::ItemFlags;
use crate::mailbox::forms::keywords::{
    FORWARDED, IGNORED_THREAD, IMPORTANT, IMPORTANT_TAG, Keywords, WATCHED_THREAD,
};
use crate::mailbox::state::MailState;

/// The flags of the mail system. A message without any flag is new. Each other flag implies [`OLD`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags(pub(super) u8);

pub(super) const DRAFT: u8 = 1;
pub(super) const FLAGGED: u8 = 1 << 1;
pub(super) const PASSED: u8 = 1 << 2;
pub(super) const REPLIED: u8 = 1 << 3;
pub(super) const SEEN: u8 = 1 << 4;
pub(super) const TRASHED: u8 = 1 << 5;
pub(super) const OLD: u8 = 1 << 6;

const LETTERS: [(u8, u8); 6] = [
    (b'D', DRAFT),
    (b'F', FLAGGED),
    (b'P', PASSED),
    (b'R', REPLIED),
    (b'S', SEEN),
    (b'T', TRASHED),
];

const APPLE: [(u32, u8); 6] = [
    (1, SEEN),
    (1 << 1, TRASHED),
    (1 << 2, REPLIED),
    (1 << 4, FLAGGED),
    (1 << 6, DRAFT),
    (1 << 8, PASSED),
];

impl Flags {
    pub(super) fn of_bits(bits: u8) -> Self {
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
    pub(crate) fn of_outlook(flags: ItemFlags) -> Self {
        let bits = [
            (flags.is_read, SEEN),
            (flags.is_draft, DRAFT),
            (flags.is_replied, REPLIED),
            (flags.is_forwarded, PASSED),
            (flags.is_flagged, FLAGGED),
        ];
        let set = bits.into_iter().filter(|(is_set, _)| *is_set);
        Self(set.fold(OLD, |bits, (_, bit)| bits | bit))
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
    pub(crate) fn without_deleted(self) -> Self {
        Self(self.0 & !TRASHED)
    }

    #[cfg(feature = "cli")]
    pub(crate) fn to_byte(self) -> u8 {
        self.0
    }

    #[cfg(feature = "cli")]
    pub(crate) fn of_byte(byte: u8) -> Self {
        Self(byte)
    }

    pub(crate) fn is_deleted(self) -> bool {
        self.0 & TRASHED != 0
    }

    pub(crate) fn is_in_cur(self) -> bool {
        self.0 != 0
    }

    pub(crate) fn letters(self) -> String {
        text(&LETTERS, self.0)
    }
}

/// Flags of a mailbox, by the offset of each message's separator.
pub(crate) type FlagIndex = HashMap<u64, MessageFlags>;

/// The flags and the keywords of a message. [`FORWARDED`] is a keyword and a flag of the mail system: the keyword implies
/// the flag.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct MessageFlags {
    pub(crate) system: Flags,
    pub(crate) keywords: Keywords,
}

impl From<Flags> for MessageFlags {
    fn from(system: Flags) -> Self {
        Self {
            system,
            keywords: Keywords::default(),
        }
    }
}

impl MessageFlags {
    pub(crate) fn new(system: Flags, keywords: Keywords) -> Self {
        let passed = if keywords.has(FORWARDED) { PASSED } else { 0 };
        // Mail that Gmail marked as important is not new.
        let old = if keywords.has(IMPORTANT) { OLD } else { 0 };
        Self {
            system: system.with(Flags::of_bits(passed | old)),
            keywords,
        }
    }

    pub(crate) fn of_states(states: &[MailState]) -> Self {
        let bit = |state: &MailState| match state {
            MailState::Read => SEEN,
            MailState::Flagged => FLAGGED,
            MailState::Draft => DRAFT,
            MailState::Replied => REPLIED,
            MailState::Forwarded => PASSED,
            MailState::Important => 0,
            MailState::Trashed => TRASHED,
        };
        let bits = states.iter().map(bit).fold(0, |bits, bit| bits | bit);
        let is_important = states.contains(&MailState::Important);
        let keywords = Keywords::of_names(is_important.then_some(IMPORTANT));
        Self::new(Flags::of_bits(bits), keywords)
    }

    /// Returns the flags of a list as in IMAP. The backslash before the names of system flags may be missing. Only a
    /// message with the flag `\\Recent` and no other flag is new.
    pub(crate) fn of_imap<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let (mut bits, mut keywords) = (OLD, Vec::new());
        for name in names {
            let plain = name.strip_prefix('\\').unwrap_or(name);
            match plain.to_ascii_lowercase().as_str() {
                "seen" => bits |= SEEN,
                "answered" => bits |= REPLIED,
                "flagged" => bits |= FLAGGED,
                "deleted" => bits |= TRASHED,
                "draft" => bits |= DRAFT,
                "recent" => bits &= !OLD,
                _ => keywords.push(plain),
            }
        }
        Self::new(Flags::of_bits(bits), Keywords::of_names(keywords))
    }

    /// Returns the flags with or without the flag "read". The message is not new.
    pub(crate) fn with_seen(self, is_seen: bool) -> Self {
        let bits = self.system.0 & !SEEN | OLD;
        let system = Flags(if is_seen { bits | SEEN } else { bits });
        Self { system, ..self }
    }

    /// Returns the flags and keywords that `self` or `other` has.
    pub(crate) fn with(self, other: &Self) -> Self {
        Self {
            system: self.system.with(other.system),
            keywords: self.keywords.with(&other.keywords),
        }
    }

    #[cfg(feature = "cli")]
    pub(crate) fn is_empty(&self) -> bool {
        self.system.0 == 0 && self.keywords.is_empty()
    }

    /// Returns the flags and keywords that `self` has and `other` lacks, in words for a report.
    pub(crate) fn missing_in(&self, other: &Self) -> Vec<String> {
        let bits = self.system.0 & !other.system.0;
        let flags = NAMES.iter().filter(|(bit, _)| bits & bit != 0);
        let keywords = self.keywords.without(&other.keywords);
        let is_flag = |name: &str| name.eq_ignore_ascii_case(FORWARDED);
        // Mail in the format of Thunderbird has its own tag in place of the keyword.
        let has_tag = other.keywords.has(IMPORTANT_TAG);
        let is_tag = |name: &str| has_tag && name.eq_ignore_ascii_case(IMPORTANT);
        let names = keywords
            .names()
            .filter(|name| !is_flag(name) && !is_tag(name));
        flags
            .map(|(_, name)| format!("flag {name}"))
            .chain(names.map(|name| match name {
                WATCHED_THREAD | IGNORED_THREAD => format!("mark {name}"),
                name => format!("keyword {name}"),
            }))
            .collect()
    }
}

/// Names of flags in reports.
const NAMES: [(u8, &str); 6] = [
    (SEEN, "read"),
    (REPLIED, "replied"),
    (PASSED, "forwarded"),
    (FLAGGED, "flagged"),
    (DRAFT, "draft"),
    (TRASHED, "deleted"),
];

/// Returns the flags of `table` that are set. `is_noted` returns whether the letter or the mask of a flag is set.
pub(super) fn bits<T: Copy>(table: &[(T, u8)], is_noted: impl Fn(T) -> bool) -> u8 {
    let noted = table.iter().filter(|(sign, _)| is_noted(*sign));
    noted.fold(0, |bits, (_, bit)| bits | bit)
}

pub(super) fn text(letters: &[(u8, u8)], bits: u8) -> String {
    let known = letters.iter().filter(|(_, bit)| bits & bit != 0);
    known.map(|&(letter, _)| char::from(letter)).collect()
}
