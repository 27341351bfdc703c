//! When a message was on its way: its newest Received field (RFC 5322 §3.6.7) with a sane date, else its Date.
//!
//! Each server puts its Received field above those that are there (RFC 5321 §4.4), so the first is the newest: the
//! reader's own server wrote it. All below it, and the Date, a stranger may have written. Clocks show anything, so
//! what is from before there were such mails, or later than tomorrow, is no date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mail_parser::DateTime;

use crate::mime::header::{self, Header};

/// The first mail between two machines: 1971.
const FIRST: i64 = 31_536_000;

/// A field with a date has less.
const LONGEST: usize = 10_000;

/// A date in words has 40 octets; comments may stand in it.
const LONGEST_DATE: usize = 500;

/// How far ahead a clock may be, in seconds: one that shows the local time as UTC is by less.
const AHEAD: u64 = 24 * 60 * 60;

/// Octets of a header section that are looked at.
const MOST: usize = 4 << 20;

/// The date of a message; none if no field says one that some clock may have shown.
pub(crate) fn of(message: &[u8], now: SystemTime) -> Option<SystemTime> {
    let fields = Header::of_message(message, MOST).fields;
    let latest = now.duration_since(UNIX_EPOCH).ok()?.as_secs() + AHEAD;
    let sane = |text: &[u8]| {
        let text = String::from_utf8_lossy(text.get(..LONGEST_DATE).unwrap_or(text));
        let date = DateTime::parse_rfc822(text.trim()).filter(DateTime::is_valid)?;
        let seconds = date.to_timestamp();
        let date = u64::try_from(seconds).ok()?;
        (seconds >= FIRST && date <= latest).then_some(date)
    };
    let received = fields
        .iter(message)
        .filter(|field| field.is(message, "Received"))
        .find_map(|field| {
            let value = field.value.of(message);
            if value.len() > LONGEST {
                return None;
            }
            // A semicolon may stand in comments before, and a comment behind.
            let value = header::unfold(value);
            let at = memchr::memrchr(b';', &value)?;
            sane(value.get(at + 1..)?)
        });
    let date = received.or_else(|| {
        let value = fields.value(message, "Date")?;
        let value = value.get(..LONGEST_DATE).unwrap_or(value);
        sane(&header::unfold(value))
    })?;
    UNIX_EPOCH.checked_add(Duration::from_secs(date))
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
            // Behind an envelope line, folded, in another zone, with a comment.
            (
                "From a@b Fri May  2 10:11:12 2003\nReceived: from a by b;\n\tFri, 2 May 2003\n 12:11:12 +0200 (CEST)\nDate: Sat, 03 May 2003 10:11:12 +0000\n\nx",
                Some(1_051_870_272),
            ),
            // That of a stranger is below, whatever it says.
            (
                "Received: by b; Fri, 02 May 2003 10:11:12 +0000\nReceived: by a; Fri, 02 May 1997 10:11:12 +0000\n\n",
                Some(1_051_870_272),
            ),
            (
                "Received: by b; Fri, 02 May 2003 10:11:12 +0000\nReceived: by a; Fri, 02 May 2020 10:11:12 +0000\n\n",
                Some(1_051_870_272),
            ),
            // What is later than tomorrow, from before there was mail, or nonsense is passed over.
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
            ("", None),
        ];
        for (message, expected) in rows {
            assert_eq!(date(message), *expected, "{message}");
        }
    }
}
