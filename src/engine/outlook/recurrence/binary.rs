//! Reads the recurrence rule of a meeting from its binary form (MS-OXOCAL 2.2.1.44).

use std::collections::HashSet;

use super::super::clock::DAY;
use super::super::codepage::{self, wide};
use super::super::cursor::Cursor;
use super::super::properties::without_end;
use super::{Exception, Pattern, Recurrence, RecurrenceEnd, RecurrenceError};

/// The last minute that a rule can contain, in minutes since 1601. It is on 4500-08-31.
const LAST: i64 = 0x5ae9_80df;

/// Reads a recurrence rule. `page` is the code page of text that is not Unicode.
///
/// # Errors
/// Returns the reason why the rule cannot be converted.
pub(in crate::engine::outlook) fn read(
    bytes: &[u8],
    page: u32,
) -> Result<Recurrence, RecurrenceError> {
    let mut cursor = Cursor { rest: bytes };
    let recurrence = parse(&mut cursor, page).ok_or(RecurrenceError::Damaged)??;
    if recurrence.is_on_rule(recurrence.begins.div_euclid(DAY)) {
        Ok(recurrence)
    } else {
        Err(RecurrenceError::First)
    }
}

fn parse(cursor: &mut Cursor<'_>, page: u32) -> Option<Result<Recurrence, RecurrenceError>> {
    const VERSION: u16 = 0x3004;
    if cursor.u16()? != VERSION {
        return None;
    }
    // Skips two fields: the version of the program that wrote the rule, and the frequency. The pattern and the interval
    // below contain the frequency again.
    cursor.take(4)?;
    let kind = cursor.u16()?;
    let calendar = cursor.u16()?;
    cursor.u32()?;
    let interval = i64::from(cursor.u32()?);
    let is_sliding = cursor.u32()? != 0;
    let pattern = match kind {
        0 => Pattern::Daily,
        1 => Pattern::Weekly(cursor.u32()?),
        2 | 4 | 0xa | 0xc => Pattern::Monthly(cursor.u32()?.into()),
        3 | 0xb => Pattern::Nth(cursor.u32()?, cursor.u32()?.into()),
        _ => return None,
    };
    let is_gregorian = kind < 0xa && matches!(calendar, 0..=2 | 9..=12) || kind < 2;
    let interval = match pattern {
        Pattern::Daily if interval % DAY == 0 => interval / DAY,
        Pattern::Daily => return None,
        _ => interval,
    };
    let end_type = cursor.u32()?;
    let count = cursor.u32()?;
    let week_begins = usize::try_from(cursor.u32()?).ok()?;
    let deleted = dates(cursor)?;
    dates(cursor)?;
    let (first, last) = (minutes(cursor)?, minutes(cursor)?);
    let end = match end_type {
        0x2021 => RecurrenceEnd::On(last),
        0x2022 => RecurrenceEnd::After(count),
        0x2023 | 0xffff_ffff => RecurrenceEnd::Never,
        _ => return None,
    };
    // Skips the version numbers of the second half.
    cursor.take(8)?;
    let (begins, ends) = (i64::from(cursor.u32()?), i64::from(cursor.u32()?));
    let exceptions = exceptions(cursor, page)?;
    let is_right = interval > 0
        && week_begins < 7
        && !is_sliding
        && begins < DAY
        && (begins..=begins + 366 * DAY).contains(&ends)
        && first % DAY == 0
        && first + ends <= LAST
        && end != RecurrenceEnd::After(0)
        && match pattern {
            Pattern::Daily => true,
            Pattern::Weekly(mask) => (1..128).contains(&mask),
            Pattern::Monthly(day) => (1..=31).contains(&day),
            Pattern::Nth(mask, nth) => (1..128).contains(&mask) && (1..=5).contains(&nth),
        };
    if !is_right {
        return None;
    }
    if !is_gregorian {
        return Some(Err(RecurrenceError::Calendar));
    }
    let moved: HashSet<i64> = exceptions
        .iter()
        .map(|it: &Exception| it.original.div_euclid(DAY) * DAY)
        .collect();
    Some(Ok(Recurrence {
        deleted: deleted
            .into_iter()
            .filter(|day| !moved.contains(day))
            .map(|day| day + begins)
            .collect(),
        begins: first + begins,
        ends: first + ends,
        pattern,
        interval,
        end,
        week_begins,
        exceptions,
    }))
}

fn minutes(cursor: &mut Cursor<'_>) -> Option<i64> {
    Some(i64::from(cursor.u32()?)).filter(|it| *it <= LAST)
}

fn dates(cursor: &mut Cursor<'_>) -> Option<Vec<i64>> {
    let count = cursor.u32()?;
    let mut dates = Vec::new();
    for _ in 0..count {
        dates.push(minutes(cursor)?);
    }
    Some(dates)
}

const SUBJECT: u16 = 0x0001;

const LOCATION: u16 = 0x0010;

const BUSY: u16 = 0x0020;

/// Flags of an exception: each one says that a certain field of four bytes is present. Three fields precede the
/// location (the type of the meeting and two reminder fields), and four follow it (busy status, attachment, subtype and
/// colour).
const BEFORE_LOCATION: [u16; 3] = [0x0002, 0x0004, 0x0008];

const AFTER_LOCATION: [u16; 4] = [BUSY, 0x0040, 0x0080, 0x0100];

fn exceptions(cursor: &mut Cursor<'_>, page: u32) -> Option<Vec<Exception>> {
    let count = cursor.u16()?;
    let mut flags = Vec::new();
    let mut exceptions = Vec::new();
    for _ in 0..count {
        let (begins, ends, original) = (minutes(cursor)?, minutes(cursor)?, minutes(cursor)?);
        let mut exception = Exception {
            original,
            begins,
            ends,
            ..Exception::default()
        };
        let has = cursor.u16()?;
        if has & SUBJECT != 0 {
            exception.subject = Some(narrow(cursor, page)?);
        }
        for bit in BEFORE_LOCATION {
            number(cursor, has & bit)?;
        }
        if has & LOCATION != 0 {
            exception.location = Some(narrow(cursor, page)?);
        }
        for bit in AFTER_LOCATION {
            let value = number(cursor, has & bit)?;
            if bit == BUSY {
                exception.busy = value;
            }
        }
        flags.push(has);
        exceptions.push(exception);
    }
    // This block only repeats the texts in Unicode, and some programs omit it, so its errors are ignored.
    let _ = wide_texts(cursor, &flags, &mut exceptions);
    Some(exceptions)
}

pub(super) fn narrow(cursor: &mut Cursor<'_>, page: u32) -> Option<String> {
    // Two lengths precede the text. The first counts a terminating NUL that is not stored, so the second one is used.
    cursor.u16()?;
    let length = cursor.u16()?;
    let bytes = without_end(cursor.take(length.into())?);
    Some(codepage::decode(page, bytes).0.into_owned())
}

/// Reads a number of four bytes if the flag `has` is set. Returns `Some(None)` if it is not set, and `None` if bytes are
/// missing.
pub(super) fn number(cursor: &mut Cursor<'_>, has: u16) -> Option<Option<i64>> {
    Some(match has {
        0 => None,
        _ => Some(cursor.u32()?.into()),
    })
}

fn block<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(cursor.u32()?).ok()?;
    cursor.take(length)
}

fn wide_texts(cursor: &mut Cursor<'_>, flags: &[u16], exceptions: &mut [Exception]) -> Option<()> {
    block(cursor)?;
    for (has, exception) in flags.iter().zip(exceptions) {
        // Skips the block with highlighted changes, and a reserved block.
        block(cursor)?;
        block(cursor)?;
        if has & (SUBJECT | LOCATION) == 0 {
            continue;
        }
        cursor.take(12)?;
        let mut text = || {
            let letters = usize::from(cursor.u16()?);
            Some(wide(cursor.take(letters * 2)?))
        };
        if has & SUBJECT != 0 {
            exception.subject = Some(text()?);
        }
        if has & LOCATION != 0 {
            exception.location = Some(text()?);
        }
        block(cursor)?;
    }
    Some(())
}
