//! Converts times to and from the form in the URLs of archives: 14 digits, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use mail_parser::DateTime;

pub(super) fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}

pub(super) fn time(seconds: i64) -> SystemTime {
    crate::fetch::time(u64::try_from(seconds).unwrap_or(0))
}

pub(super) fn stamp(seconds: i64) -> String {
    let date = DateTime::from_timestamp(seconds);
    format!(
        "{:04}{:02}{:02}{:02}{:02}{:02}",
        date.year, date.month, date.day, date.hour, date.minute, date.second
    )
}

pub(super) fn of_stamp(stamp: &str) -> Option<i64> {
    if stamp.len() != 14 || !stamp.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| stamp.get(from..to)?.parse::<u16>().ok();
    let byte = |from: usize| u8::try_from(number(from, from + 2)?).ok();
    let date = DateTime {
        year: number(0, 4)?,
        month: byte(4)?,
        day: byte(6)?,
        hour: byte(8)?,
        minute: byte(10)?,
        second: byte(12)?,
        tz_before_gmt: false,
        tz_hour: 0,
        tz_minute: 0,
    };
    date.is_valid().then(|| date.to_timestamp())
}

pub(super) fn words(seconds: i64) -> String {
    DateTime::from_timestamp(seconds).to_rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_go_there_and_back() {
        assert_eq!(stamp(1_051_870_272), "20030502101112");
        assert_eq!(of_stamp("20030502101112"), Some(1_051_870_272));
        for wrong in [
            "2003",
            "20030502101112x",
            "20031302101112",
            "",
            "+0030502101112",
        ] {
            assert_eq!(of_stamp(wrong), None, "{wrong}");
        }
        for seconds in (0..4_000_000_000).step_by(86_399_777) {
            assert_eq!(of_stamp(&stamp(seconds)), Some(seconds));
        }
    }
}
