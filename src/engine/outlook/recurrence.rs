//! Recurrence rules of meetings (MS-OXOCAL 2.2.1.44), converted to RFC 5545 (MS-OXCICAL 2.1.3.2).

use std::collections::HashSet;

use super::clock::{DAY, WEEKDAYS, date, days, length, weekday};
use super::codepage::{self, wide};
use super::cursor::Cursor;
use super::properties::without_end;

/// The last minute that a rule can contain, in minutes since 1601. It is on 4500-08-31.
const LAST: i64 = 0x5ae9_80df;

/// A recurrence rule. Times are local, in minutes since 1601-01-01.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Recurrence {
    pattern: Pattern,
    /// Interval between two dates of the series, in days, weeks or months.
    interval: i64,
    end: End,
    /// First day of the week. 0 is Sunday.
    week_begins: usize,
    /// Start of the first meeting.
    pub(super) begins: i64,
    pub(super) ends: i64,
    /// Starts of the meetings that were cancelled.
    pub(super) deleted: Vec<i64>,
    pub(super) exceptions: Vec<Exception>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    Daily,
    /// Every week. The value has one bit for each day of the week.
    Weekly(u32),
    /// Every month, on this day. In a month without this day, the meeting is on the last day.
    Monthly(i64),
    /// Every month, on a weekday. The first value has one bit for each day of the week, the second one is the number of the
    /// day in the month. 5 means the last one.
    Nth(u32, i64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Never,
    After(u32),
    /// The series ends with the meeting on this day.
    On(i64),
}

/// A meeting of the series with a changed time, subject, location or status.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Exception {
    /// Start of the meeting according to the rule.
    pub(super) original: i64,
    pub(super) begins: i64,
    pub(super) ends: i64,
    pub(super) subject: Option<String>,
    pub(super) location: Option<String>,
    pub(super) busy: Option<i64>,
}

/// Reason why a rule cannot be converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unmapped {
    Damaged,
    /// The rule uses a calendar that RFC 5545 does not support, such as the Hebrew one.
    Calendar,
    /// The first meeting is not on a day of the rule.
    First,
}

/// Reads a recurrence rule. `page` is the code page of text that is not Unicode.
///
/// # Errors
/// Returns the reason why the rule cannot be converted.
pub(super) fn read(bytes: &[u8], page: u32) -> Result<Recurrence, Unmapped> {
    let mut cursor = Cursor { rest: bytes };
    let recurrence = parse(&mut cursor, page).ok_or(Unmapped::Damaged)??;
    if recurrence.is_on_rule(recurrence.begins.div_euclid(DAY)) {
        Ok(recurrence)
    } else {
        Err(Unmapped::First)
    }
}

fn parse(cursor: &mut Cursor<'_>, page: u32) -> Option<Result<Recurrence, Unmapped>> {
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
        0x2021 => End::On(last),
        0x2022 => End::After(count),
        0x2023 | 0xffff_ffff => End::Never,
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
        && end != End::After(0)
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
        return Some(Err(Unmapped::Calendar));
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
/// Flags of an exception. Each flag means that the file contains a certain field of four bytes. Three fields are before
/// the location: the type of the meeting and two fields for the reminder. Four fields are after it: the busy status, an
/// attachment, the subtype and the colour.
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
    // This block repeats the texts in Unicode. Some programs omit it, so an error is ignored.
    let _ = wide_texts(cursor, &flags, &mut exceptions);
    Some(exceptions)
}

fn narrow(cursor: &mut Cursor<'_>, page: u32) -> Option<String> {
    // Two lengths precede the text. The first one includes a final NUL that is not stored, so the second one is the number of
    // bytes to read.
    cursor.u16()?;
    let length = cursor.u16()?;
    let bytes = without_end(cursor.take(length.into())?);
    Some(codepage::decode(page, bytes).0.into_owned())
}

/// Reads a number of four bytes if the flag `has` is set. Returns `Some(None)` if it is not set, and `None` if bytes are
/// missing.
fn number(cursor: &mut Cursor<'_>, has: u16) -> Option<Option<i64>> {
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

impl Recurrence {
    /// Returns true if a day matches the pattern of the rule. The interval is not checked.
    fn is_on_rule(&self, day: i64) -> bool {
        let has = |mask: u32, day: i64| mask >> weekday(day) & 1 == 1;
        let (year, month, of_month) = date(day);
        match self.pattern {
            Pattern::Daily => true,
            Pattern::Weekly(mask) => has(mask, day),
            Pattern::Monthly(day) => of_month == day.min(length(year, month)),
            Pattern::Nth(mask, nth) => {
                let first = days(year, month, 1);
                let last = first + length(year, month) - 1;
                let count = |from: i64, to: i64| (from..=to).filter(|it| has(mask, *it)).count();
                let is_nth = match nth {
                    5 => count(day, last) == 1,
                    nth => i64::try_from(count(first, day)) == Ok(nth),
                };
                has(mask, day) && is_nth
            }
        }
    }

    /// Writes the value of RRULE. `until` formats the time of the last meeting.
    pub(super) fn rule(&self, until: impl FnOnce(i64) -> String) -> String {
        let (_, month, _) = date(self.begins.div_euclid(DAY));
        let is_yearly = self.interval % 12 == 0;
        let (frequency, interval) = match self.pattern {
            Pattern::Daily => ("DAILY", self.interval),
            Pattern::Weekly(_) => ("WEEKLY", self.interval),
            _ if is_yearly => ("YEARLY", self.interval / 12),
            _ => ("MONTHLY", self.interval),
        };
        let mut rule = format!("FREQ={frequency}");
        if interval != 1 {
            rule.push_str(&format!(";INTERVAL={interval}"));
        }
        match self.end {
            End::Never => {}
            End::After(count) => rule.push_str(&format!(";COUNT={count}")),
            End::On(day) => {
                let time = self.begins.rem_euclid(DAY);
                rule.push_str(&format!(
                    ";UNTIL={}",
                    until(day.div_euclid(DAY) * DAY + time)
                ));
            }
        }
        match self.pattern {
            Pattern::Daily => {}
            Pattern::Weekly(mask) => {
                let begins = WEEKDAYS.get(self.week_begins).copied().unwrap_or("SU");
                rule.push_str(&format!(";BYDAY={};WKST={begins}", weekdays(mask)));
            }
            Pattern::Monthly(day) => {
                // Number of days of the shortest month in which the meeting can take place. Every month of the series
                // has the days up to this number, so BYMONTHDAY alone is enough for them. A meeting on a later day
                // takes place on the last day of each month that is shorter.
                let shortest = if is_yearly { length(1601, month) } else { 28 };
                rule.push_str(&match day {
                    _ if day <= shortest => format!(";BYMONTHDAY={day}"),
                    31 => ";BYMONTHDAY=-1".to_owned(),
                    _ => {
                        let days: Vec<String> = (28..=day).map(|day| day.to_string()).collect();
                        format!(";BYMONTHDAY={};BYSETPOS=-1", days.join(","))
                    }
                });
            }
            Pattern::Nth(mask, nth) => {
                let nth = if nth == 5 { -1 } else { nth };
                rule.push_str(&format!(";BYDAY={};BYSETPOS={nth}", weekdays(mask)));
            }
        }
        if frequency == "YEARLY" {
            rule.push_str(&format!(";BYMONTH={month}"));
        }
        rule
    }
}

fn weekdays(mask: u32) -> String {
    let names: Vec<&str> = WEEKDAYS
        .iter()
        .enumerate()
        .filter(|(index, _)| mask >> index & 1 == 1)
        .map(|(_, name)| *name)
        .collect();
    names.join(",")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::clock::time_text;
    use super::super::sample::{SERIES, hex};
    use super::*;

    fn rule(recurrence: &Recurrence) -> String {
        recurrence.rule(time_text)
    }

    /// Example of MS-OXOCAL 4.1.1.1: a weekly meeting.
    const WEEKLY: &str = "043004300B2001000000C0210000010000000000000032000000222000000C00000000000000\
        00000000000000008020BC0C20ADBC0C0630000009300000580200007602000000000000000000000000";
    /// Example of MS-OXOCAL 4.1.1.3: a meeting every third day.
    const DAILY: &str = "043004300A2000000000A0050000E010000000000000212000000A0000000000000002000000\
        A0C1DC0C80D2DC0C00000000207EDC0C0016DD0C0630000009300000E0010000FE01000000000000000000000000";
    /// Example of MS-OXOCAL 4.1.1.6: a meeting in months of the Hebrew calendar.
    const HEBREW: &str = "043004300D200200080080750A000C0000000000000003000000232000000A00000000000000\
        01000000207EDC0C01000000207EDC0C6074C40CDF80E95A0630000009300000E0010000FE01000001000080DC0C1E80DC0C\
        0080DC0C24023C000000010000000000000004000000000000000000000000000000";
    /// Rule that Outlook wrote and displays as "every Monday and Thursday from 10:30 PM to 11:00 PM".
    const REAL: &str = "043004300b2001000000c0210000010000000000000012000000232000000a00000000000000\
        000000000000000060f10a0ddf80e95a0630000009300000460500006405000000000000000000000000";

    #[test]
    fn rules_of_the_standard_become_those_of_rfc_5545() {
        let weekly = read(&hex(WEEKLY), 1252).unwrap();
        assert_eq!(rule(&weekly), "FREQ=WEEKLY;COUNT=12;BYDAY=MO,TH,FR;WKST=SU");
        assert_eq!(time_text(weekly.begins), "20070326T100000");
        assert_eq!(time_text(weekly.ends), "20070326T103000");
        assert!(weekly.deleted.is_empty() && weekly.exceptions.is_empty());

        let changed = read(&hex(SERIES), 1252).unwrap();
        assert!(changed.deleted.is_empty());
        let [exception] = changed.exceptions.as_slice() else {
            panic!("{changed:?}")
        };
        assert_eq!(time_text(exception.original), "20070416T100000");
        assert_eq!(time_text(exception.begins), "20070416T110000");
        assert_eq!(time_text(exception.ends), "20070416T113000");
        let texts = (exception.subject.as_deref(), exception.location.as_deref());
        let subject = "Simple Recurrence with exceptions";
        assert_eq!(texts, (Some(subject), Some("34/4141")));
        // The block with the Unicode texts is truncated. The other texts must still give the same result.
        let cut = hex(SERIES).split_at(0x98).0.to_vec();
        let narrow = read(&cut, 1252).unwrap();
        assert_eq!(narrow.exceptions, changed.exceptions);

        let daily = read(&hex(DAILY), 1252).unwrap();
        let until = "FREQ=DAILY;INTERVAL=3;UNTIL=20110504T080000";
        assert_eq!(rule(&daily), until);
        let deleted: Vec<String> = daily.deleted.iter().map(|it| time_text(*it)).collect();
        assert_eq!(deleted, ["20110419T080000", "20110422T080000"]);

        assert_eq!(read(&hex(HEBREW), 1252), Err(Unmapped::Calendar));
        let real = read(&hex(REAL), 1252).unwrap();
        assert_eq!(rule(&real), "FREQ=WEEKLY;BYDAY=MO,TH;WKST=SU");
        assert_eq!(time_text(real.begins), "20170119T223000");
    }

    /// Creates a rule without an end. The first meeting is at 9:00 on `day`.
    fn made(kind: u16, interval: u32, specific: &[u32], day: i64) -> Vec<u8> {
        let mut bytes = hex("043004300c20");
        bytes.extend(kind.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(interval.to_le_bytes());
        bytes.extend([0; 4]);
        let day = u32::try_from(day * DAY).unwrap();
        let rest = [
            0x2023,
            10,
            1,
            0,
            0,
            day,
            0x5ae9_80df,
            0x3006,
            0x3009,
            540,
            600,
        ];
        let numbers = specific.iter().chain(&rest);
        bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
        bytes.extend([0; 10]);
        bytes
    }

    #[test]
    fn rules_of_months_and_years_keep_the_days_of_outlook() {
        let june = days(2026, 6, 15); // a Monday
        for (kind, interval, specific, first, expected) in [
            (0, 1440, vec![], june, "FREQ=DAILY"),
            (
                1,
                2,
                vec![0x3e],
                june,
                "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,WE,TH,FR;WKST=MO",
            ),
            (2, 1, vec![15], june, "FREQ=MONTHLY;BYMONTHDAY=15"),
            (
                2,
                5,
                vec![15],
                june,
                "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=15",
            ),
            (2, 12, vec![15], june, "FREQ=YEARLY;BYMONTHDAY=15;BYMONTH=6"),
            (
                2,
                24,
                vec![15],
                june,
                "FREQ=YEARLY;INTERVAL=2;BYMONTHDAY=15;BYMONTH=6",
            ),
            // In months without this day, the meeting is on the last day.
            (
                2,
                1,
                vec![30],
                days(2026, 2, 28),
                "FREQ=MONTHLY;BYMONTHDAY=28,29,30;BYSETPOS=-1",
            ),
            (
                4,
                1,
                vec![31],
                days(2026, 4, 30),
                "FREQ=MONTHLY;BYMONTHDAY=-1",
            ),
            (
                2,
                12,
                vec![30],
                days(2026, 6, 30),
                "FREQ=YEARLY;BYMONTHDAY=30;BYMONTH=6",
            ),
            (
                2,
                12,
                vec![29],
                days(2024, 2, 29),
                "FREQ=YEARLY;BYMONTHDAY=28,29;BYSETPOS=-1;BYMONTH=2",
            ),
            (3, 1, vec![2, 3], june, "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=3"),
            (
                3,
                1,
                vec![0x3e, 5],
                days(2026, 5, 29),
                "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            ),
            (
                3,
                12,
                vec![0x7f, 5],
                days(2026, 12, 31),
                "FREQ=YEARLY;BYDAY=SU,MO,TU,WE,TH,FR,SA;BYSETPOS=-1;BYMONTH=12",
            ),
        ] {
            let read = read(&made(kind, interval, &specific, first), 1252)
                .unwrap_or_else(|why| panic!("{expected}: {why:?}"));
            assert_eq!(rule(&read), expected);
        }
    }

    #[test]
    fn rules_that_cannot_be_mapped_are_refused() {
        let june = days(2026, 6, 15);
        for (kind, interval, specific, why) in [
            (0, 1441, vec![], Unmapped::Damaged),
            (0, 0, vec![], Unmapped::Damaged),
            (1, 1, vec![0], Unmapped::Damaged),
            (1, 1, vec![0x80], Unmapped::Damaged),
            (2, 1, vec![32], Unmapped::Damaged),
            (3, 1, vec![2, 6], Unmapped::Damaged),
            (7, 1, vec![], Unmapped::Damaged),
            (10, 12, vec![3], Unmapped::Calendar),
            (1, 1, vec![4], Unmapped::First),
            (2, 1, vec![16], Unmapped::First),
            (3, 1, vec![2, 2], Unmapped::First),
        ] {
            let read = read(&made(kind, interval, &specific, june), 1252);
            assert_eq!(read, Err(why), "{kind} {interval} {specific:?}");
        }
    }

    #[test]
    fn rules_with_any_four_bytes_changed_are_bounded() {
        for digits in [WEEKLY, SERIES, DAILY, HEBREW, REAL] {
            let whole = hex(digits);
            for at in 0..whole.len() - 4 {
                for value in [0, 1, 0x7fff_ffff, u32::MAX, 0x5ae9_80df] {
                    let mut bytes = whole.clone();
                    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
                    if let Ok(read) = read(&bytes, 1252) {
                        let _ = rule(&read);
                        let times = read.deleted.len() + read.exceptions.len();
                        assert!(times < whole.len(), "{at}");
                    }
                    let _ = super::read(&whole[..at], 1252);
                }
            }
        }
    }
}
