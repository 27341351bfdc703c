//! The time at which a message was sent: its newest plausible Received field (RFC 5322 §3.6.7), otherwise its Date field.
//!
//! Each server inserts its Received field above the others (RFC 5321 §4.4), so the first one is from the reader's own server.
//! The sender can forge everything below it, and the Date. Because clocks can also be wrong, dates before the first email and
//! dates later than tomorrow are ignored.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::mime::date;
use crate::mime::header::{self, Fields, Header};

/// Earliest plausible date, in seconds since 1970. The first mail between two machines was sent in 1971.
const FIRST: i64 = 365 * DAY;
const DAY: i64 = 24 * 60 * 60;

const LONGEST: usize = 10_000;

const MOST: usize = 4 << 20;

/// Returns a date in seconds since 1970, or `None` if it is not plausible. A date up to one day in the future is accepted,
/// because a clock that shows local time as UTC can be ahead by that much.
pub(crate) fn sane(value: &[u8], now: SystemTime) -> Option<i64> {
    let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let latest = i64::try_from(now).ok()?.saturating_add(DAY);
    date::seconds(value).filter(|date| (FIRST..=latest).contains(date))
}

pub(crate) fn of(message: &[u8], now: SystemTime) -> Option<SystemTime> {
    of_fields(message, &Header::of_message(message, MOST).fields, now)
}

pub(crate) fn of_fields(message: &[u8], fields: &Fields, now: SystemTime) -> Option<SystemTime> {
    let received = fields
        .iter(message)
        .filter(|field| field.is(message, "Received"))
        .find_map(|field| {
            let value = field.value.of(message);
            if value.len() > LONGEST {
                return None;
            }
            // The date follows the last semicolon. Comments before it can contain semicolons, and a comment may follow the
            // date.
            let value = header::unfold(value);
            let at = memchr::memrchr(b';', &value)?;
            sane(value.get(at + 1..)?, now)
        });
    let date = received.or_else(|| sane(fields.value(message, "Date")?, now))?;
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(date).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(message: &str) -> Option<u64> {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let date = of(message.as_bytes(), now)?;
        Some(date.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn the_newest_sane_received_counts_and_else_the_date() {
        let rows: &[(&str, Option<u64>)] = &[
            (
                "Date: Fri, 02 May 2003 10:11:12 +0000\n\nx",
                Some(1_051_870_272),
            ),
            (
                "From a@b Fri May  2 10:11:12 2003\nReceived: from a by b;\n\tFri, 2 May 2003\n 12:11:12 +0200 (CEST)\nDate: Sat, 03 May 2003 10:11:12 +0000\n\nx",
                Some(1_051_870_272),
            ),
            (
                "Received: by b; Fri, 02 May 2003 10:11:12 +0000\nReceived: by a; Fri, 02 May 1997 10:11:12 +0000\n\n",
                Some(1_051_870_272),
            ),
            (
                "Received: by b; Fri, 02 May 2003 10:11:12 +0000\nReceived: by a; Fri, 02 May 2020 10:11:12 +0000\n\n",
                Some(1_051_870_272),
            ),
            (
                "Date: Wed, 15 Nov 2023 12:00:00 +0000\n\n",
                Some(1_700_049_600),
            ),
            ("Date: Fri, 17 Nov 2023 12:00:00 +0000\n\n", None),
            (
                "Received: by b; Fri, 02 May 2033 10:11:12 +0000\nReceived: by a; Fri, 02 May 2003 10:11:12 +0000\n\n",
                Some(1_051_870_272),
            ),
            (
                "Received: by b; Thu, 01 Jan 1970 00:00:00 +0000\nReceived: by b\nReceived: by c; soon\nDate: Fri, 02 May 2003 10:11:12 +0000\n\n",
                Some(1_051_870_272),
            ),
            (
                "Received: by b; Fri, 02 May 2033 10:11:12 +0000\nDate: Fri, 02 May 2033 10:11:12 +0000\n\n",
                None,
            ),
            (
                "Subject: no date\n\nDate: Fri, 02 May 2003 10:11:12 +0000\n",
                None,
            ),
            ("Date: Mon Apr  7 12:43:22 2003\n\n", Some(1_049_719_402)),
            (
                "Received: by b; Mon Apr  7 12:43:22 1903\nReceived: by a;\n Mon Apr  7 12:43:22 2003\n\n",
                Some(1_049_719_402),
            ),
            ("", None),
        ];
        for (message, expected) in rows {
            assert_eq!(date(message), *expected, "{message}");
        }
    }
}
