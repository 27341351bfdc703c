//! Parses the values of options.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use clap::builder::{BoolValueParser, PathBufValueParser, PossibleValuesParser, TypedValueParser};

use super::streams::is_standard;
use crate::engine::detach::base_url_problem;
use crate::engine::policy::{HostPattern, Scheme};
use crate::fetch::archive::ArchiveWindow;
use crate::link::url::masked;
use crate::mailbox::{Format, MboxVariant};

pub(super) fn scheme(text: &str) -> Result<Scheme, String> {
    Scheme::from_name(text.trim().as_bytes())
        .ok_or_else(|| format!("'{text}' is not one of {}", Scheme::names()))
}

/// Parses a size in bytes: `25M`, `1.5M`, `512k`, `1e6`, `1000`. `M` and `MiB` are powers of 1024, `MB` is a power of
/// 1000.
pub(super) fn size(text: &str) -> Result<u64, String> {
    octets(&text.trim().to_ascii_lowercase())
        .ok_or_else(|| format!("'{text}' is not a size such as 25M, 1.5M, 512k or 1000"))
}

fn octets(lower: &str) -> Option<u64> {
    let (number, step, needs_unit) = match (lower.strip_suffix("ib"), lower.strip_suffix('b')) {
        (Some(number), _) => (number, 1024_u128, true),
        (None, Some(number)) => (number, 1000, false),
        (None, None) => (lower, 1024, false),
    };
    let mut units = [('k', 1), ('m', 2), ('g', 3), ('t', 4)].into_iter();
    let unit = units.find_map(|(letter, power)| Some((number.strip_suffix(letter)?, power)));
    let (number, power) = unit.or((!needs_unit).then_some((number, 0)))?;
    let number = number.trim();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || ![whole, fraction, exponent].into_iter().all(is_number) {
        return None;
    }
    let decimal = |power: u32| 10_u128.checked_pow(power);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let raised = digits.checked_mul(decimal(exponent.parse().ok()?)?)?;
    let scaled = raised.checked_mul(step.pow(power))?;
    u64::try_from(scaled / decimal(u32::try_from(fraction.len()).ok()?)?).ok()
}

/// Parses a duration: `20s`, `500ms`, `2m`, `1h`, `1m30s`. A number without a unit means seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration such as 20s, 500ms, 2m or 1m30s");
    let lower = text.trim().to_ascii_lowercase();
    let mut rest = lower.as_str();
    let mut sum = Duration::ZERO;
    loop {
        let is_of_number = |symbol: char| symbol.is_ascii_digit() || symbol == '.';
        let (number, behind) =
            rest.split_at(rest.find(|it| !is_of_number(it)).unwrap_or(rest.len()));
        let (unit, behind) = behind.split_at(behind.find(is_of_number).unwrap_or(behind.len()));
        let seconds = match unit.trim() {
            // After another unit, a number without a unit is ambiguous and therefore an error (`1m30`).
            "" if rest.len() != lower.len() => return Err(wrong()),
            "ms" => 0.001,
            "" | "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
        sum = sum.checked_add(part).ok_or_else(wrong)?;
        rest = behind;
        if rest.is_empty() {
            break;
        }
    }
    Ok(sum)
}

/// Parses a duration; 0 means no limit. A duration that only rounds to zero, such as 0.0000000001s, is a very short limit.
pub(super) fn duration_or_none(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    let is_zero = duration.is_zero() && !text.contains(|digit| matches!(digit, '1'..='9'));
    Ok(if is_zero { Duration::MAX } else { duration })
}

pub(super) fn window(text: &str) -> Result<ArchiveWindow, String> {
    let wrong = || format!("'{text}' does not consist of two durations such as 90d,400d");
    let (before, after) = text.split_once(',').ok_or_else(wrong)?;
    let has_minutes = |text: &str| text.trim().to_ascii_lowercase().ends_with('m');
    if has_minutes(before) || has_minutes(after) {
        return Err(format!(
            "'{text}' ends with m, which means minutes; write months as days, such as 180d"
        ));
    }
    let side = |text: &str| match text.trim().strip_suffix(['d', 'D']) {
        Some(days) => {
            let seconds = days.parse::<u64>().ok()?.checked_mul(24 * 60 * 60)?;
            Some(Duration::from_secs(seconds))
        }
        None => duration(text).ok(),
    };
    let (before, after) = side(before).zip(side(after)).ok_or_else(wrong)?;
    Ok(ArchiveWindow { before, after })
}

pub(super) fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("'{text}' is not a range of bytes such as 0-8388608 or 8388608-");
    let (start, end) = text.split_once('-').ok_or_else(wrong)?;
    let end = match end {
        "" => Some(u64::MAX),
        end => number(end),
    };
    match number(start).zip(end).ok_or_else(wrong)? {
        (start, end) if start <= end => Ok(start..end),
        _ => Err(format!("the range '{text}' ends before its start")),
    }
}

pub(super) fn expected(text: &str) -> Result<(u64, Option<SystemTime>), String> {
    let read = || {
        let Some((length, modified)) = text.split_once(':') else {
            return Some((number(text)?, None));
        };
        let (seconds, parts) = modified.split_once('.')?;
        let whole = match seconds.strip_prefix('-') {
            Some(before) => UNIX_EPOCH.checked_sub(Duration::from_secs(number(before)?))?,
            None => UNIX_EPOCH.checked_add(Duration::from_secs(number(seconds)?))?,
        };
        let parts = number(parts).filter(|_| parts.len() == 9)?;
        let modified = whole.checked_add(Duration::from_nanos(parts))?;
        Some((number(length)?, Some(modified)))
    };
    read().ok_or_else(|| {
        format!("'{text}' is neither a length in bytes, such as 1000, nor a length with a modification time in seconds, such as 1000:1700000000.000000000")
    })
}

fn number(text: &str) -> Option<u64> {
    let text = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text?.parse().ok()
}

/// Returns a parser for the values of an enum. clap's own parser would print the doc comments of the variants as help,
/// but these are for programmers. The help of the option itself explains the values.
pub(super) fn word<T: ValueEnum + Clone + Send + Sync + 'static>()
-> impl TypedValueParser<Value = T> {
    let words = T::value_variants()
        .iter()
        .filter_map(|value| Some(value.to_possible_value()?.help(None::<&str>)));
    PossibleValuesParser::new(words).try_map(|word| T::from_str(&word, false))
}

pub(super) fn choice<T: Copy + Send + Sync + 'static>(
    values: [T; 2],
) -> impl TypedValueParser<Value = T> {
    BoolValueParser::new().map(move |is_given| values[usize::from(is_given)])
}

/// Maximum size of the cache, in bytes. `None` means no limit.
pub(super) type CacheMax = Option<u64>;

pub(super) fn cache_max(text: &str) -> Result<CacheMax, String> {
    match text {
        "none" => Ok(None),
        _ => size(text).map(Some),
    }
}

/// Value of `--output-format`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct OutputFormat {
    pub(super) format: Format,
    /// Mbox variant, if the value is one, such as `mboxrd`.
    pub(super) variant: Option<MboxVariant>,
}

/// Returns the values of `--output-format` with their words.
fn output_formats() -> impl Iterator<Item = (&'static str, OutputFormat)> {
    let formats = Format::ALL.into_iter();
    let written = formats.filter(|it| *it == Format::Auto || it.written().is_some());
    written.flat_map(|format| {
        let value = move |variant| OutputFormat { format, variant };
        let variants = format.written().map_or(&[][..], |it| it.variants);
        let of_variants = variants
            .iter()
            .map(move |&(word, variant)| (word, value(Some(variant))));
        std::iter::once((format.facts().word, value(None))).chain(of_variants)
    })
}

/// Returns the words of `--output-format`.
pub(super) fn output_format_words() -> Vec<&'static str> {
    output_formats().map(|(word, _)| word).collect()
}

/// Returns the words as a list, such as "auto, mbox or maildir".
fn listed_output_formats(conjunction: &str) -> String {
    let words = output_format_words();
    match words.split_last() {
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the help of `--output-format`.
pub(super) fn output_format_help() -> String {
    format!(
        "Format of the result: {} [default: auto]",
        listed_output_formats("or")
    )
}

/// Returns the sentences about the formats in the help of `--output-format`.
pub(super) fn output_format_details() -> String {
    let sentences = Format::ALL.map(|it| it.facts().help);
    let given: Vec<&str> = sentences.into_iter().filter(|it| !it.is_empty()).collect();
    given.join(" ")
}

pub(super) fn output_format(text: &str) -> Result<OutputFormat, String> {
    output_formats()
        .find_map(|(word, value)| (word == text).then_some(value))
        .ok_or_else(|| format!("the format must be one of {}", listed_output_formats("and")))
}

#[cfg(all(unix, feature = "milter"))]
pub(super) fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text.trim().trim_start_matches("0o"), 8)
        .ok()
        .filter(|&mode| mode <= 0o777)
        .ok_or_else(|| format!("'{text}' is not a mode such as 0660"))
}

#[cfg(all(unix, any(feature = "milter", feature = "serve")))]
pub(super) fn group(text: &str) -> Result<u32, String> {
    let text = text.trim();
    // In system calls, the largest number means "do not change the group", so it cannot be a group id.
    if let Some(number) = text.parse().ok().filter(|number| *number != u32::MAX) {
        return Ok(number);
    }
    let file = std::fs::read("/etc/group").unwrap_or_default();
    let groups = String::from_utf8_lossy(&file);
    let mut numbers = groups.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let is_named = fields.next() == Some(text) && !text.is_empty();
        fields.nth(1).filter(|_| is_named)?.parse().ok()
    });
    numbers.next().ok_or_else(|| {
        format!("/etc/group does not contain the group '{text}'; name an existing group, or the number of a group")
    })
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| format!("'{text}' is not a number greater than 0"))
}

#[cfg(all(unix, feature = "imap"))]
pub(super) fn day(text: &str) -> Result<String, String> {
    let day = crate::imap::account::day(text);
    day.ok_or_else(|| format!("'{text}' is not a day such as 2020-12-31"))
}

pub(super) fn base_url(text: &str) -> Result<String, String> {
    const LONGEST: usize = 500;
    let wrong = |what: &str| Err(format!("'{}' {what}", masked(text)));
    if text.len() > LONGEST {
        return wrong("is too long for a header field of a mail");
    }
    if let Some(problem) = base_url_problem(text) {
        return wrong(&problem);
    }
    Ok(if text.ends_with('/') {
        text.to_owned()
    } else {
        format!("{text}/")
    })
}

pub(super) type HostList = Vec<HostPattern>;

pub(super) fn file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(named)
}

fn named(path: PathBuf) -> Result<PathBuf, &'static str> {
    if is_standard(&path) {
        Err("standard input contains the mail; name a file (./- if the file has the name -)")
    } else {
        Ok(path)
    }
}

pub(super) fn host_list(path: &str) -> Result<HostList, String> {
    let text = std::fs::read_to_string(named(path.into())?).map_err(|error| error.to_string())?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let hosts = lines.zip(1_u64..).filter(|(line, _)| !line.is_empty());
    hosts
        .map(|(line, number)| line.parse().map_err(|why| format!("line {number}: {why}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_base_url_is_refused_without_showing_its_password() {
        for (text, expected) in [
            ("https://files.example.org", "https://files.example.org/"),
            ("http://h:8080/a/", "http://h:8080/a/"),
            ("ftp://h/a", "ftp://h/a/"),
            ("file:///srv/store", "file:///srv/store/"),
            ("file:/srv/store/", "file:/srv/store/"),
        ] {
            assert_eq!(base_url(text).as_deref(), Ok(expected));
        }
        for (text, word) in [
            ("http://u:sekret@127.0.0.1/", "password"),
            ("https://u@h/", "user name"),
            ("https://:sekret@h/", "password"),
            ("ftp://u:sekret@h/a/", "password"),
            ("https://u:sekret@h/?x", "without ? and #"),
            ("https://u:sekret\"@h/", "quotes"),
            ("https:u:sekret@h/", "no host"),
            ("data:,x", "retrieved"),
            ("mailto:u:sekret@h", "retrieved"),
            ("cid:x", "retrieved"),
            ("s3://bucket/", "retrieved"),
            ("https:///x", "no host"),
            ("https:x", "no host"),
            ("file:x", "not a directory"),
            ("file://elsewhere/x", "not a directory"),
            ("https://h/?a", "without ? and #"),
            ("https://h/#a", "without ? and #"),
            ("h/x", "absolute"),
        ] {
            let said = base_url(text).expect_err(text);
            assert!(said.contains(word), "{text}: {said}");
            let is_hidden = !said.contains("sekret") || text.starts_with("mailto:");
            assert!(is_hidden, "{text}: {said}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024_and_those_of_1000_say_so() {
        assert_eq!(size("25MB"), Ok(25_000_000));
        assert_eq!(size("1.5 kB"), Ok(1500));
        assert_eq!(size("2 GB"), Ok(2_000_000_000));
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("0.5 mib"), Ok(1 << 19));
        assert_eq!(size("7B"), Ok(7));
        assert_eq!(size("25M"), Ok(25 << 20));
        assert_eq!(size("512k"), Ok(512 << 10));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("7"), Ok(7));
        assert_eq!(size("1.5M"), Ok(3 << 19));
        assert_eq!(size("1e6"), Ok(1_000_000));
        assert_eq!(size("1.5e3k"), Ok(1500 << 10));
        assert_eq!(size("0.3"), Ok(0));
        assert_eq!(size("18446744073709551615"), Ok(u64::MAX));
        for wrong in [
            "",
            "M",
            "-1",
            "+1",
            ".5M",
            "1.5.M",
            "1x",
            "1iB",
            "1bb",
            "1MBiB",
            "1kM",
            "1e",
            "1e-3",
            "1e99",
            "1e99999999999",
            "99999999999T",
            "18446744073709551616",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_seconds_unless_said() {
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(
            duration("1h 1.5m 500ms"),
            Ok(Duration::from_millis(3_690_500))
        );
        for unlimited in ["0", "0s", "0m0s"] {
            assert_eq!(duration_or_none(unlimited), Ok(Duration::MAX), "no limit");
        }
        assert_eq!(duration_or_none("0.000000001ms"), Ok(Duration::ZERO));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["", "s", "-1s", "1d", "1e99h", "1m30", "1m s", "1..5s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_is_two_offsets_in_order() {
        assert_eq!(range("0-10"), Ok(0..10));
        assert_eq!(range("7-7"), Ok(7..7));
        assert_eq!(range("8-"), Ok(8..u64::MAX));
        for wrong in [
            "",
            "-",
            "8",
            "-8",
            "9-8",
            "0-1M",
            "0-+1",
            "0 - 1",
            "0-99999999999999999999",
        ] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn value_of_expect_is_a_length_and_an_optional_time() {
        assert_eq!(expected("5"), Ok((5, None)));
        let (second, part) = (Duration::from_secs(17), Duration::from_millis(100));
        let after = UNIX_EPOCH + second + Duration::from_nanos(1);
        assert_eq!(expected("5:17.000000001"), Ok((5, Some(after))));
        let before = UNIX_EPOCH - second + part;
        assert_eq!(expected("5:-17.100000000"), Ok((5, Some(before))));
        for wrong in [
            "",
            "x",
            "5:",
            "5:17",
            "5:17.1",
            ":17.000000000",
            "5:a.000000000",
        ] {
            assert!(expected(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_window_is_two_durations() {
        let narrow = window("0, 1h").unwrap();
        assert_eq!(
            (narrow.before, narrow.after),
            (Duration::ZERO, Duration::from_secs(3600))
        );
        for wrong in [
            "",
            "90d",
            "90d,",
            ",1d",
            "-1d,1d",
            "1d,2d,3d",
            "1.5d,2d",
            "99999999999999999d,1d",
        ] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cache_max_is_a_size_or_none() {
        assert_eq!(cache_max("1k"), Ok(Some(1024)));
        assert_eq!(cache_max("none"), Ok(None));
        assert!(cache_max("much").is_err());
    }
}
