//! What stands behind an option: schemes, sizes, durations and numbers, from text.

use std::ffi::OsString;
use std::time::Duration;

use crate::error::Error;
use crate::mailbox::check_backup_suffix;
use crate::policy::Scheme;

pub(super) fn scheme(text: &str) -> Result<Scheme, String> {
    Scheme::from_name(text.trim().as_bytes())
        .ok_or_else(|| format!("'{text}' is none of http, https, ftp, file"))
}

/// `25M`, `512k`, `1G`, `1000`: octets, in powers of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a size such as 25M, 512k or 1000");
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.trim_end_matches("ib").trim_end_matches('b');
    let (digits, shift) = match number.char_indices().next_back() {
        Some((at, 'k')) => (number.get(..at), 10),
        Some((at, 'm')) => (number.get(..at), 20),
        Some((at, 'g')) => (number.get(..at), 30),
        Some((at, 't')) => (number.get(..at), 40),
        _ => (Some(number), 0),
    };
    let value: u64 = digits
        .and_then(|digits| digits.trim().parse().ok())
        .ok_or_else(wrong)?;
    value.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `20s`, `500ms`, `2m`, `1h`, `20`: seconds if nothing is said.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration such as 20s, 500ms or 2m");
    let lower = text.trim().to_ascii_lowercase();
    let digits_end = lower
        .find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.')
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits_end);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" | "sec" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// What may stand behind a mailbox's name to make its backup's.
pub(super) fn backup_suffix(suffix: OsString) -> Result<OsString, Error> {
    check_backup_suffix(&suffix).map(|()| suffix)
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("'{text}' is not a number from 1 on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("25M"), Ok(25 << 20));
        assert_eq!(size("512k"), Ok(512 << 10));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("7"), Ok(7));
        for wrong in ["", "M", "-1", "1.5M", "1x", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_said() {
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "s", "-1s", "1d", "1e99h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
