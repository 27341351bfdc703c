//! The separator that embody writes before a message in an mbox.

use mail_parser::DateTime;

/// Sender in the separator of a mail whose sender is unknown. Programs accept this name without a domain.
const NOBODY: &str = "MAILER-DAEMON";

/// Maximum length of the sender in a separator, in bytes: 64 for the local part, 255 for the domain (RFC 5321
/// §4.5.3.1), and the `@`. After a longer sender, some programs do not find the date.
pub(super) const LONGEST: usize = 320;

/// Days of the week. The first one is Thursday, the day of 1 January 1970, because dates are counted from that day.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

const MONTHS_OF_ASCTIME: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Last second of the year 9999, in seconds since 1970. A date of asctime(3) has only four digits for the year.
const LATEST: i64 = 253_402_300_799;

/// Returns a separator line without its line ending (RFC 4155, appendix A): `From `, the envelope sender, and the date
/// of asctime(3) in UTC.
pub(crate) fn from_line(sender: &[u8], seconds: i64) -> String {
    let is_word =
        !sender.is_empty() && sender.len() <= LONGEST && sender.iter().all(u8::is_ascii_graphic);
    let sender = std::str::from_utf8(sender)
        .ok()
        .filter(|_| is_word)
        .unwrap_or(NOBODY);
    let seconds = seconds.clamp(0, LATEST);
    let date = DateTime::from_timestamp(seconds);
    let day_of_week = (seconds / (24 * 60 * 60) % 7) as usize;
    let weekday = WEEKDAYS.get(day_of_week).copied().unwrap_or_default();
    let month_of_year = usize::from(date.month.saturating_sub(1));
    let month = MONTHS_OF_ASCTIME
        .get(month_of_year)
        .copied()
        .unwrap_or_default();
    let time = format_args!("{:02}:{:02}:{:02}", date.hour, date.minute, date.second);
    format!(
        "From {sender} {weekday} {month} {:>2} {time} {:04}",
        date.day, date.year
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_line_has_the_sender_and_the_date_as_asctime_in_utc() {
        for (sender, seconds, line) in [
            (
                "a@b.example",
                0,
                "From a@b.example Thu Jan  1 00:00:00 1970",
            ),
            (
                "",
                1_718_000_000,
                "From MAILER-DAEMON Mon Jun 10 06:13:20 2024",
            ),
            ("a b", -5, "From MAILER-DAEMON Thu Jan  1 00:00:00 1970"),
            (
                "a\nb",
                i64::MAX,
                "From MAILER-DAEMON Fri Dec 31 23:59:59 9999",
            ),
            (
                "\u{fc}@b",
                951_782_400,
                "From MAILER-DAEMON Tue Feb 29 00:00:00 2000",
            ),
        ] {
            assert_eq!(from_line(sender.as_bytes(), seconds), line);
        }
    }
}
