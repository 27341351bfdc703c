//! INTERNALDATE: the date of receipt that a server keeps for each message, and its text form (RFC 3501, `date-time`).

/// INTERNALDATE: the time at which the server received the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InternalDate {
    /// Text of the date as the server wrote it, without quotation marks, because APPEND accepts it unchanged: ` 1-Jan-2020
    /// 10:00:00 +0100`. If the server wrote a year of two digits or a day of one digit, the text is in the form that APPEND
    /// requires. Empty if the server does not return a date.
    pub(crate) text: String,
    /// Seconds since 1970-01-01 00:00 UTC. 0 if the text is not a date.
    pub(crate) seconds: i64,
}

impl InternalDate {
    /// Parses the date of a server (RFC 3501, `date-time`). The space before a one-digit day may be missing.
    pub(crate) fn of(text: &str) -> Self {
        let seconds = seconds(text);
        Self {
            text: seconds
                .and_then(|_| whole(text))
                .unwrap_or_else(|| text.to_owned()),
            seconds: seconds.unwrap_or(0),
        }
    }

    /// Returns whether the text is a valid date.
    pub(crate) fn is_date(&self) -> bool {
        seconds(&self.text).is_some()
    }

    /// Returns whether both dates are the same moment. Two dates that cannot be parsed are the same only if their texts are
    /// equal.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (seconds(&self.text), seconds(&other.text)) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.text.trim() == other.text.trim(),
            _ => false,
        }
    }
}

/// Rewrites a date with a one-digit day or a two-digit year in the form that APPEND requires (RFC 3501, `date-time`),
/// because servers may reject it otherwise. Returns `None` if the date already has this form.
fn whole(text: &str) -> Option<String> {
    let (date, time) = text.trim_start().split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let has_blank = text.starts_with(' ');
    if year.len() == 4 && (day.len() == 2 || has_blank) {
        return None;
    }
    let year = whole_year(year.parse::<i64>().ok()?, year.len());
    Some(format!("{day:>2}-{month}-{year:04} {time}"))
}

fn seconds(text: &str) -> Option<i64> {
    let mut words = text.split_ascii_whitespace();
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    let number = |text: &str| {
        let are_digits = text.bytes().all(|octet| octet.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| are_digits)
    };
    let mut date = date.split('-');
    let (day, month) = (number(date.next()?)?, date.next()?);
    let digits = date.next()?;
    let year = whole_year(number(digits)?, digits.len());
    let months = "janfebmaraprmayjunjulaugsepoctnovdec";
    let at = months
        .find(&month.to_ascii_lowercase())
        .filter(|at| at % 3 == 0)?;
    let month = i64::try_from(at / 3).ok()? + 1;
    let mut time = time.split(':');
    let (hour, minute, second) = (
        number(time.next()?)?,
        number(time.next()?)?,
        number(time.next()?)?,
    );
    // No mail has a year such as 0001 or 0020: the server's value is wrong.
    let is_day = (1..=31).contains(&day) && (1900..=9999).contains(&year);
    if !is_day || hour > 24 || minute > 60 || second > 60 {
        return None;
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let hours_and_minutes = number(digits).filter(|_| digits.len() == 4)?;
    let zone = sign * (hours_and_minutes / 100 * 3600 + hours_and_minutes % 100 * 60);
    // Number of days since 1970-01-01. The year starts in March, so that the leap day is its last day.
    let (year, month) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 306 + 5) / 10
        + day
        - 1
        - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second - zone)
}

/// Returns the year that `digits` digits mean (RFC 5322 §4.3): two digits below 50 are in this century, other years of two
/// or three digits are counted from 1900. Some servers send such years, although IMAP requires four digits.
pub(super) fn whole_year<N: From<u16> + PartialOrd + std::ops::Add<Output = N>>(
    year: N,
    digits: usize,
) -> N {
    match digits {
        2 if year < N::from(50) => year + N::from(2000),
        2 | 3 => year + N::from(1900),
        _ => year,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_seconds_they_mean() {
        for (text, seconds) in [
            (" 1-Jan-1970 00:00:00 +0000", 0),
            ("01-Jan-1970 01:00:00 +0100", 0),
            ("1-jan-1970 00:00:00 -0030", 1800),
            ("29-Feb-2020 12:34:56 +0530", 1_582_959_896),
            ("31-Dec-1969 23:59:59 +0000", -1),
            ("17-Jul-1996 02:44:25 -0700", 837_596_665),
            ("1-Mar-2100 00:00:00 +0000", 4_107_542_400),
            ("03-Jan-20 10:00:00 +0100", 1_578_042_000),
            (" 3-Jan-96 10:00:00 +0000", 820_663_200),
            ("31-Dec-49 23:59:59 +0000", 2_524_607_999),
            (" 1-Jan-50 00:00:00 +0000", -631_152_000),
            (" 3-Jan-120 10:00:00 +0100", 1_578_042_000),
            ("yesterday", 0),
            ("32-Jan-1970 00:00:00 +0000", 0),
            ("01-Jan-0001 00:00:00 +0000", 0),
            ("03-Jan-0020 10:00:00 +0100", 0),
            ("1-anf-1970 00:00:00 +0000", 0),
            ("1-Jan-1970 00:00:00 GMT", 0),
        ] {
            let date = InternalDate::of(text);
            assert_eq!(date.seconds, seconds, "{text}");
        }
    }

    #[test]
    fn text_of_a_date_is_the_form_that_append_requires() {
        for (text, canonical) in [
            (" 3-Jan-2020 10:00:00 +0100", " 3-Jan-2020 10:00:00 +0100"),
            ("03-Jan-2020 10:00:00 +0100", "03-Jan-2020 10:00:00 +0100"),
            ("3-Jan-2020 10:00:00 +0100", " 3-Jan-2020 10:00:00 +0100"),
            ("14-Jan-20 10:00:00 +0100", "14-Jan-2020 10:00:00 +0100"),
            (" 3-Jan-96 10:00:00 +0000", " 3-Jan-1996 10:00:00 +0000"),
            (" 3-Jan-120 10:00:00 +0100", " 3-Jan-2020 10:00:00 +0100"),
            ("yesterday", "yesterday"),
            ("3-Jan-20 10:00:00 GMT", "3-Jan-20 10:00:00 GMT"),
            ("", ""),
        ] {
            let date = InternalDate::of(text);
            assert_eq!(date.text, canonical, "{text}");
            assert!(InternalDate::of(canonical).is_same(&date), "{text}");
        }
    }

    #[test]
    fn dates_that_cannot_be_read_are_the_same_only_with_the_same_text() {
        for (one, other, is_same) in [
            (
                "01-Jan-1970 01:00:00 +0100",
                " 1-Jan-1970 00:00:00 +0000",
                true,
            ),
            (
                " 1-Jan-1970 00:00:01 +0000",
                " 1-Jan-1970 00:00:00 +0000",
                false,
            ),
            (
                "03-Jan-2020 10:00:00 GMT",
                "25-Nov-2026 18:00:00 GMT",
                false,
            ),
            ("03-Jan-2020 10:00:00 GMT", "03-Jan-2020 10:00:00 GMT", true),
            ("", " 1-Jan-1970 00:00:00 +0000", false),
            ("", "", true),
        ] {
            let (first, second) = (InternalDate::of(one), InternalDate::of(other));
            assert_eq!(first.is_same(&second), is_same, "{one:?} {other:?}");
            assert_eq!(second.is_same(&first), is_same, "{other:?} {one:?}");
        }
    }
}
