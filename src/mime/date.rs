//! Parsing of dates in header fields.
//!
//! The parser accepts the syntax of RFC 5322 §3.3 with its obsolete forms (§4.3), and in addition the dates that
//! Python's `email.utils.parsedate_tz` accepts (the tests compare the two). Where they differ, the RFC is followed:
//! comments are allowed everywhere, spaces are allowed around the colons, years of two digits are 1950 to 2049, and
//! 1900 is added to years of three digits.
//!
//! Times on a 12-hour clock (`11:18:56 PM`) are also accepted; Python reads `PM` as a time zone. The day of the week
//! can be any word. An unknown time zone counts as UTC, as in Python.

use crate::span::front;
use mail_parser::DateTime;

/// Maximum length of a value that is parsed, in bytes. A date has about 40 bytes, but it can contain comments and folds.
const LONGEST: usize = 500;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Parses a date, which may be folded, and returns the seconds since 1970 in UTC. Returns `None` if the date or time
/// does not exist. The 31st of a shorter month counts as the first of the next month, as in Python.
pub fn seconds(value: &[u8]) -> Option<i64> {
    let value = front(value, LONGEST);
    usual_seconds(value)
        .or_else(|| asctime_seconds(value))
        .or_else(|| in_any_form(value))
}

/// Fast path for the usual form, `Tue, 17 Nov 2009 09:08:32 -0500 (EST)`, which takes a tenth of the time of
/// [`seconds`]. The time zone can be a name of RFC 5322 §4.3, and comments of one word may follow. Returns `None` for
/// any other form.
pub fn usual_seconds(value: &[u8]) -> Option<i64> {
    let mut words = str::from_utf8(value).ok()?.split_ascii_whitespace();
    let mut word = words.next()?;
    if let Some(day) = word.strip_suffix(',') {
        let is_day = day.len() == 3 && day.bytes().all(|it| it.is_ascii_alphabetic());
        word = words.next().filter(|_| is_day)?;
    }
    let month = month(words.next()?)?;
    let (year, time) = (words.next()?, words.next()?);
    let zone = words.next().filter(|zone| {
        let digits = zone.strip_prefix(['+', '-']).unwrap_or_default();
        let is_number = digits.len() == 4 && digits.bytes().all(|it| it.is_ascii_digit());
        is_number || named_offset(zone).is_some()
    })?;
    let is_comment = |word: &str| {
        let inside = word.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        inside.is_some_and(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()))
    };
    let moment = moment(year, month, word, time, zone);
    moment.filter(|_| words.all(is_comment))
}

/// Returns whether a text is a date in the form of asctime(3) and nothing else.
pub(crate) fn is_asctime(value: &[u8]) -> bool {
    value.len() <= LONGEST && asctime_seconds(value).is_some()
}

/// Parses a date in the form of asctime(3), `Tue Nov 17 09:08:32 2009`, which separators of mboxes contain. This also
/// takes a tenth of the time that other forms need. Returns `None` for any other form.
fn asctime_seconds(value: &[u8]) -> Option<i64> {
    let mut words = str::from_utf8(value).ok()?.split_ascii_whitespace();
    let weekday = words.next()?;
    let is_weekday = weekday.len() == 3 && weekday.bytes().all(|it| it.is_ascii_alphabetic());
    if !is_weekday || month(weekday).is_some() {
        return None;
    }
    let month = month(words.next()?)?;
    let (day, time, year) = (words.next()?, words.next()?, words.next()?);
    let is_whole = words.next().is_none() && time.contains(':');
    is_whole.then(|| moment(year, month, day, time, ""))?
}

fn in_any_form(value: &[u8]) -> Option<i64> {
    let text = without_comments(value);
    let all = words(&text);
    let mut words = all.iter().map(String::as_str);
    let mut rest = Vec::new();
    let first = first(&mut words)?;
    let (first, second) = match first.split('-').collect::<Vec<_>>()[..] {
        [day, month, year] => {
            rest.push(year);
            (day, month)
        }
        _ => (first, words.next()?),
    };
    let (day, month) = match month(second) {
        Some(month) => (first, month),
        None => (second, month(first)?),
    };
    for word in words {
        match word.find(['+', '-']) {
            // In `12:43:22+0200`, the time zone follows without a space.
            Some(at) if starts_with_digit(word) => rest.extend([&word[..at], &word[at..]]),
            _ => rest.push(word),
        }
    }
    rest.retain(|word| !word.is_empty());

    // The time, the year and the zone can be in any order: `2003 12:43:22 EST`, `12:43:22 EST 2003`. A time with dots,
    // `12.43.22`, has no mark by which it differs from a year, so it is recognised only if the year is before it.
    let mut take = |wanted: fn(&str) -> bool| {
        let at = rest.iter().position(|word| wanted(word))?;
        Some(rest.remove(at).trim_end_matches(','))
    };
    let with_colons = take(|word| starts_with_digit(word) && word.contains(':'));
    let year = take(starts_with_digit)?;
    let word = with_colons.or_else(|| take(starts_with_digit))?;
    let digits = word.trim_end_matches(|symbol: char| symbol.is_ascii_alphabetic());
    let attached = word.strip_prefix(digits).and_then(DayHalf::of);
    let time = if attached.is_some() { digits } else { word };
    let half = attached.or_else(|| {
        let at = rest.iter().position(|word| DayHalf::of(word).is_some())?;
        DayHalf::of(rest.remove(at))
    });
    let zone = rest.first().copied().unwrap_or_default();

    let seconds = moment(year, month, day.trim_end_matches(','), time, zone)?;
    Some(seconds + half.map_or(0, |half| half.offset(time)))
}

/// Half of the day on a 12-hour clock: `11:18:56 PM`.
#[derive(Clone, Copy)]
enum DayHalf {
    Am,
    Pm,
}

impl DayHalf {
    fn of(word: &str) -> Option<Self> {
        let word = word.trim_end_matches(',').to_ascii_lowercase();
        match word.as_str() {
            "am" | "a.m." => Some(Self::Am),
            "pm" | "p.m." => Some(Self::Pm),
            _ => None,
        }
    }

    /// Returns the number of seconds to add to a time that was read as a time on a 24-hour clock: 12 hours for PM, and
    /// minus 12 hours for 12 AM. Returns zero if `time` is not possible on a 12-hour clock.
    fn offset(self, time: &str) -> i64 {
        const HALF: i64 = 12 * 3600;
        let hour = time.split([':', '.']).next().and_then(number::<u8>);
        match (self, hour) {
            (Self::Am, Some(12)) => -HALF,
            (Self::Pm, Some(1..12)) => HALF,
            _ => 0,
        }
    }
}

/// Returns the seconds since 1970 in UTC. Fractions of a second are ignored.
fn moment(year: &str, month: u8, day: &str, time: &str, zone: &str) -> Option<i64> {
    let separator = if time.contains(':') { ':' } else { '.' };
    let mut parts = time.splitn(3, separator);
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().unwrap_or("0");
    let whole = seconds.split_once('.').map_or(seconds, |(whole, _)| whole);
    let second: u8 = number(whole).filter(|second| *second <= 60)?;
    let date = DateTime {
        year: full_year(year)?,
        month,
        day: number(day)?,
        hour,
        minute,
        // DateTime does not support leap seconds, so second 60 is added below.
        second: second.min(59),
        ..DateTime::default()
    };
    let local = date.is_valid().then(|| date.to_timestamp())?;
    Some(local + i64::from(second == 60) - offset(zone)?)
}

/// Removes comments. They can be nested (RFC 5322 §3.2.2). An unclosed comment extends to the end.
fn without_comments(value: &[u8]) -> String {
    let mut text = Vec::with_capacity(value.len());
    let mut depth = 0_usize;
    let mut octets = value.iter();
    while let Some(&octet) = octets.next() {
        match octet {
            b'\\' if depth > 0 => drop(octets.next()),
            b'(' => {
                depth += 1;
                text.push(b' ');
            }
            b')' if depth > 0 => depth -= 1,
            _ if depth == 0 => text.push(octet),
            _ => {}
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match words.last_mut() {
            Some(last)
                if starts_with_digit(last) && (last.ends_with(':') || word.starts_with(':')) =>
            {
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Returns the first word of the date itself, after a day of the week. The day may have a comma after it, with or
/// without a space.
fn first<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<&'w str> {
    words
        .map(|word| match word.rsplit_once(',') {
            Some((_, behind)) if !behind.is_empty() => behind,
            _ => word,
        })
        .find(|word| word.contains(|symbol: char| symbol.is_ascii_digit()) || month(word).is_some())
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|symbol: char| symbol.is_ascii_digit())
}

fn month(word: &str) -> Option<u8> {
    let is_word = |name: &str| name.eq_ignore_ascii_case(word);
    let is_month = |name: &&str| is_word(name) || name.get(..3).is_some_and(is_word);
    u8::try_from(MONTHS.iter().position(is_month)? + 1).ok()
}

fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    let digits = word.bytes().all(|octet| octet.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten()
}

fn full_year(word: &str) -> Option<u16> {
    let year: u16 = number(word)?;
    match (year, word.len()) {
        (0..50, _) => Some(2000 + year),
        (50..100, _) | (_, 3) => Some(1900 + year),
        _ => Some(year),
    }
}

/// Returns the offset of a time zone from UTC, in seconds. Returns `None` if it has more than four digits.
fn offset(zone: &str) -> Option<i64> {
    let digits = named_offset(zone).unwrap_or_else(|| zone.parse().unwrap_or(0));
    let is_zone = (-9999..=9999).contains(&digits);
    is_zone.then_some(digits / 100 * 3600 + digits % 100 * 60)
}

/// Returns the offset of a time zone with a name of RFC 5322 §4.3, as four digits: -500 is five hours west of UTC. Names of
/// one letter count as UTC, because RFC 822 defined them with the wrong signs. `UTC` is not in the RFC, but in many mails.
fn named_offset(zone: &str) -> Option<i64> {
    let zone = zone.to_ascii_uppercase();
    match zone.as_str() {
        "UT" | "GMT" | "UTC" => Some(0),
        "ADT" => Some(-300),
        "AST" | "EDT" => Some(-400),
        "EST" | "CDT" => Some(-500),
        "CST" | "MDT" => Some(-600),
        "MST" | "PDT" => Some(-700),
        "PST" => Some(-800),
        // There is no zone J.
        _ => matches!(zone.as_bytes(), [b'A'..=b'I' | b'K'..=b'Z']).then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fast_and_full_date_parsers_agree(
            day in "([A-Z][a-z]{2}, {1,2}|[a-z]{2,4},? |)",
            date in "[0-3]?[0-9] (Jan|feb|MAR|Apr|May|june|Jul|Nov|Dec) (19|20|00|1)[0-9]{2}",
            time in "[0-2][0-9]:[0-6][0-9](:[0-6][0-9])?",
            zone in "( [+-]?[01][0-9]{3}| EST| GMT| [A-Za-z]| [A-Z]{2,3}|)(\\([A-Z]{3}\\))?( \\([A-Z0-9]{0,4}\\)| \\(a b\\)| x)?",
        ) {
            let value = format!(" {day}{date} {time}{zone}");
            let read = usual_seconds(value.as_bytes());
            prop_assert!(read.is_none() || read == in_any_form(value.as_bytes()), "{value}");
        }
    }

    proptest! {
        #[test]
        fn fast_and_full_asctime_parsers_agree(
            day in "([A-Z][a-z]{2}|mar|May|[a-z]{2,4},?) {1,2}",
            date in "(Jan|feb|MAR|Apr|May|june|Jul|Nov|Dec|Mon) [0-3]?[0-9],?",
            time in "[0-2]?[0-9][:.][0-6][0-9]([:.][0-6][0-9])?(PM|\\.5|\\+0200)?",
            year in "( (19|20|00|1)[0-9]{2}| [0-9]{1,2}|)( PM| EST| \\+0200)?( 20[0-9]{2})?",
        ) {
            let value = format!("{day}{date} {time}{year}");
            let read = asctime_seconds(value.as_bytes());
            prop_assert!(read.is_none() || read == in_any_form(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn clock_of_12_hours_with_each_half_gives_the_hour_that_is_meant() {
        for (time, hour) in [
            ("11:18:56 PM", 23),
            ("11:18:56 pm", 23),
            ("11:18:56PM", 23),
            ("11:18:56 p.m.", 23),
            ("11:18:56 AM", 11),
            ("12:18:56 AM", 0),
            ("12:18:56 PM", 12),
            ("1:18:56 PM", 13),
            ("13:18:56 PM", 13),
            ("0:18:56 PM", 0),
        ] {
            let wanted = 1_697_414_400 + hour * 3600 + 18 * 60 + 56;
            for value in [
                format!("Mon Oct 16 {time} 2023"),
                format!("Mon, 16 Oct 2023 {time} +0000"),
                format!("Mon, 16 Oct 2023 {time}"),
            ] {
                assert_eq!(seconds(value.as_bytes()), Some(wanted), "{value}");
            }
        }
        let zone = seconds(b"Mon, 16 Oct 2023 11:18:56 PM -0700");
        assert_eq!(zone, Some(1_697_414_400 + 30 * 3600 + 18 * 60 + 56));
    }

    #[test]
    fn usual_dates_are_read_fast() {
        for value in [
            " Tue, 17 Nov 2009 09:08:32 -0500 (EST)",
            "\tTue,  7 Nov 2009\r\n 09:08:32 +0000",
            "7 Nov 2009 09:08:32 +0530",
            "Tue, 17 Nov 2009 09:08:32 GMT",
            "Tue, 17 Nov 2009 09:08 EST (EST)",
            "Tue, 17 Nov 2009 09:08:32 z",
        ] {
            let read = usual_seconds(value.as_bytes());
            assert!(
                read.is_some() && read == in_any_form(value.as_bytes()),
                "{value}"
            );
        }
        let value = b"Tue Nov 17 09:08:32 2009";
        assert_eq!(asctime_seconds(value), Some(1_258_448_912));
        assert_eq!(in_any_form(value), Some(1_258_448_912));
    }
}
