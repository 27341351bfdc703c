//! Reads rules in their binary form and compares the rules of RFC 5545 that are written for them.

use super::super::clock::{DAY, days, time_text};
use super::super::sample::{SERIES, hex};
use super::{Recurrence, RecurrenceError, read};

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

    assert_eq!(read(&hex(HEBREW), 1252), Err(RecurrenceError::Calendar));
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
        (0, 1441, vec![], RecurrenceError::Damaged),
        (0, 0, vec![], RecurrenceError::Damaged),
        (1, 1, vec![0], RecurrenceError::Damaged),
        (1, 1, vec![0x80], RecurrenceError::Damaged),
        (2, 1, vec![32], RecurrenceError::Damaged),
        (3, 1, vec![2, 6], RecurrenceError::Damaged),
        (7, 1, vec![], RecurrenceError::Damaged),
        (10, 12, vec![3], RecurrenceError::Calendar),
        (1, 1, vec![4], RecurrenceError::First),
        (2, 1, vec![16], RecurrenceError::First),
        (3, 1, vec![2, 2], RecurrenceError::First),
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
