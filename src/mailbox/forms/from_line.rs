//! The line that separates messages, as we write it: `From `, the envelope sender, and the date as asctime(3) has it, in
//! UTC (RFC 4155, appendix A).

use mail_parser::DateTime;

/// The sender where nobody knows it: an address that needs no domain.
const NOBODY: &str = "MAILER-DAEMON";

/// Octets of a sender (RFC 5321 §4.5.3.1: 64 and 255, and what is between them), so that no reader looks for the date in
/// vain.
const LONGEST: usize = 320;

/// The last second that has a year of four digits.
const LATEST: i64 = 253_402_300_799;

/// The line, without its end, for a mail that came so many seconds after 1970.
pub(crate) fn from_line(sender: &[u8], seconds: i64) -> String {
    let is_word =
        !sender.is_empty() && sender.len() <= LONGEST && sender.iter().all(u8::is_ascii_graphic);
    let sender = std::str::from_utf8(sender).ok().filter(|_| is_word);
    // `Thu, 1 Jan 1970 00:00:00 +0000`
    let date = DateTime::from_timestamp(seconds.clamp(0, LATEST)).to_rfc822();
    let mut words = date.split([',', ' ']).filter(|word| !word.is_empty());
    let [weekday, day, month, year, time] = [(); 5].map(|()| words.next().unwrap_or_default());
    let sender = sender.unwrap_or(NOBODY);
    format!("From {sender} {weekday} {month} {day:>2} {time} {year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_that_of_asctime_in_utc() {
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
