//! Recognises the date in a `From ` line, in the forms that mail programs write.

use super::written::LONGEST;

/// Returns whether a `From ` line is in the form that all programs understand: sender, day of the week, month, day,
/// time, year. The date is that of asctime(3) (RFC 4155).
pub(crate) fn is_asctime(line: &[u8]) -> bool {
    let is_number =
        |word: &[u8], longest: usize| word.len() <= longest && word.iter().all(u8::is_ascii_digit);
    let is_text = line.len() <= LONGEST + 64 && line.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let words: Vec<&[u8]> = words(line).collect();
    let &[_, _, weekday, month, day, time, year] = words.as_slice() else {
        return false;
    };
    is_text
        && weekday.len() == 3
        && weekday.iter().all(u8::is_ascii_alphabetic)
        && month != b"???"
        && MONTHS.iter().any(|it| month.eq_ignore_ascii_case(it))
        && is_number(day, 2)
        && time
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b':')
        && holds_time(time)
        && year.len() == 4
        && is_number(year, 4)
}

pub(super) fn holds_time(line: &[u8]) -> bool {
    line.windows(4).any(|w| {
        w[0].is_ascii_digit() && w[1] == b':' && w[2].is_ascii_digit() && w[3].is_ascii_digit()
    })
}

const MONTHS: [[u8; 3]; 13] = [
    *b"jan", *b"feb", *b"mar", *b"apr", *b"may", *b"jun", *b"jul", *b"aug", *b"sep", *b"oct",
    *b"nov", *b"dec", *b"???",
];

/// Returns whether the line contains a month and a time of day, as Dovecot and mutt require, or a date in ISO 8601 and
/// a time of day, as some programs write. `???` counts as a month, because Dovecot accepts it.
pub(super) fn holds_date(line: &[u8]) -> bool {
    let is_time = |w: &[u8]| w[0].is_ascii_digit() && w[1] == b':' && w[2].is_ascii_digit();
    let is_month = |word: &[u8]| {
        let start = word.first_chunk::<3>();
        start.is_some_and(|start| MONTHS.iter().any(|month| start.eq_ignore_ascii_case(month)))
    };
    line.windows(3).any(is_time) && words(line).any(|word| is_month(word) || is_iso(word))
}

/// Returns whether the word starts with a date like `2024-01-31`.
fn is_iso(word: &[u8]) -> bool {
    let shape = b"0000-00-00";
    let same = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        shape => byte == shape,
    };
    word.len() >= shape.len() && word.iter().zip(shape).all(same)
}

/// Returns whether the line ends with a date that a program wrote: an ISO 8601 date and a time of day, such as
/// `2024-01-31 10:00`, or a time with seconds and a year in any language (`Mo Okt 16 23:18:56 2023`). A time zone may
/// follow. In text such as "From 2024-01-31 10:30 on we are closed", the date is not at the end.
pub(super) fn ends_with_date(line: &[u8]) -> bool {
    const LAST: usize = 4;
    // Only the last words are checked, because a line may have many words.
    let mut last: [&[u8]; LAST] = [b""; LAST];
    let from_end = line
        .rsplit(|byte| byte.is_ascii_whitespace() || *byte == b',')
        .filter(|word| !word.is_empty());
    for (place, word) in last.iter_mut().rev().zip(from_end) {
        *place = word;
    }
    let is_year = |word: &&[u8]| word.len() == 4 && word.iter().all(u8::is_ascii_digit);
    let has_year = || last.iter().any(is_year);
    let has_seconds = || last.iter().any(|word| holds_seconds(word));
    let [_, second, third, fourth] = last;
    let is_day_and_time = |day: &[u8], time: &[u8]| is_iso(day) && holds_time(time);
    is_day_and_time(fourth, fourth)
        || is_day_and_time(third, third)
        || is_day_and_time(third, fourth)
        || is_day_and_time(second, third)
        || has_year() && has_seconds()
}

/// Returns whether the word contains a time of day with seconds, which is rare in ordinary text.
fn holds_seconds(word: &[u8]) -> bool {
    word.windows(8).any(|it| {
        let is_colon = |at: usize| it.get(at) == Some(&b':');
        let digits = it.iter().filter(|byte| byte.is_ascii_digit()).count();
        is_colon(2) && is_colon(5) && digits == 6
    })
}

pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(|byte| byte.is_ascii_whitespace() || *byte == b',');
    words.filter(|word| !word.is_empty())
}

/// Returns whether the line contains a complete date, and the day of the week before it. mutt and Dovecot require it.
pub(super) fn holds_weekday_and_date(line: &[u8]) -> bool {
    const DAYS: [&[u8; 3]; 7] = [b"mon", b"tue", b"wed", b"thu", b"fri", b"sat", b"sun"];
    let is_day = |word: &[u8]| DAYS.iter().any(|day| word.eq_ignore_ascii_case(*day));
    words(line).any(is_day) && holds_whole_date(line)
}

/// Returns whether the line contains a complete date, in any form that Dovecot and mutt accept: the name of a month
/// next to a number, and after it a time of day and a second number. The numbers are the day and the year, in either
/// order. "From Monday 10:30 on we march" contains no complete date.
pub(super) fn holds_whole_date(line: &[u8]) -> bool {
    let all: Vec<&[u8]> = words(line).collect();
    let is_month = |word: &&[u8]| MONTHS.iter().any(|month| word.eq_ignore_ascii_case(month));
    let is_number = |word: &&&[u8]| word.len() <= 4 && word.iter().all(u8::is_ascii_digit);
    let is_time = |word: &[u8]| word.first().is_some_and(u8::is_ascii_digit) && holds_time(word);
    // The last name of a month in the line counts, because the sender may be named `May`, for example.
    let Some(month) = all.iter().rposition(is_month) else {
        return false;
    };
    let (before, behind) = (&all[..month], &all[month + 1..]);
    let before = before.last().filter(is_number);
    let is_adjacent = before.is_some() || behind.first().is_some_and(|word| is_number(&word));
    let numbers = behind.iter().filter(is_number).count() + usize::from(before.is_some());
    is_adjacent && numbers > 1 && behind.iter().any(|word| is_time(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_ends_with_a_date_is_told_from_a_sentence_with_one() {
        for line in [
            "From a@b Mo Okt 16 23:18:56 2023",
            "From a@b lun. 1 janv. 2024 10:00:00",
            "From a@b 1 2024 10:00:00 +0100 (CET)",
            "From a@b 2024-01-31 10:00",
            "From a@b 2024-01-31 10:00:00 +0100",
            "From a@b 2024-01-31T10:00:00Z",
            "From 2024-01-31T10:00:00 GMT",
        ] {
            assert!(ends_with_date(line.as_bytes()), "{line}");
        }
        for line in [
            "From ",
            "From what I saw at 10:15:30 in 2023, all is well",
            "From 2024-01-31 10:30 on we are closed",
            "From 2024-01-31 on",
            "From a@b Mo Okt 16 23:18 2023",
            "From a@b 10:00:00",
        ] {
            assert!(!ends_with_date(line.as_bytes()), "{line}");
        }
    }
}
