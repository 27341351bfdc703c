//! Parses dates of header fields. The results are compared with Python's `email.utils`, and with mail-parser for the
//! syntax of RFC 5322.

use std::io::Write as _;
use std::process::{Command, Stdio};

use mail_parser::DateTime;
use proptest::prelude::*;

use crate::mime::date::seconds;

/// Reads one date in each line. Prints seconds since 1970, or `null` for an unreadable or impossible date.
const PYTHON: &str = r"
import sys, json
from email.utils import parsedate_tz, mktime_tz
def read(line):
    date = parsedate_tz(line)
    if date is None:
        return None
    year, month, day, hour, minute, second = date[:6]
    if not (year >= 1900 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
        return None
    return mktime_tz(date)
sys.stdin.reconfigure(newline='\n')
json.dump([read(line[:-1]) for line in sys.stdin], sys.stdout)
";

fn python(dates: &[String]) -> Option<Vec<Option<i64>>> {
    let started = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = started else {
        let is_required = std::env::var_os("EMBODY_REQUIRE_ALL").is_some();
        assert!(!is_required, "python3 is required");
        println!("skipped: no python3 to read dates with");
        return None;
    };
    let mut stdin = python.stdin.take().unwrap();
    let lines = dates.join("\n") + "\n";
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "python3 failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

const DAYS: [&str; 6] = ["", "Mon ", "Mon, ", "Mon,", "mon ", "Monday, "];

const TIMES: [&str; 6] = [
    "12:43:22", "12:43", "2:03:04", "00:00:60", "12.43.22", "24:00:00",
];

const ZONES: [&str; 22] = [
    "", "+0000", "-0000", "+0200", "-0730", "0200", "+1400", "GMT", "UT", "utc", "Z", "EST", "edt",
    "PDT", "AST", "ADT", "MET", "MET DST", "CEST", "A", "(CEST)", "GMT+0200",
];

/// Returns the dates that programs write, in every combination.
fn variants() -> Vec<String> {
    let mut dates = Vec::new();
    for day in DAYS {
        for time in TIMES {
            for zone in ZONES {
                for date in ["7 Apr 2003", "07 April 03", "Apr 7 2003", "APR 07, 99"] {
                    dates.push(format!("{day}{date} {time} {zone}"));
                }
                // In the format of asctime, with the time zone before or after the year.
                let is_word = !zone.contains(' ') && !time.contains('.');
                if is_word {
                    dates.push(format!("{day}Apr  7 {time} {zone} 2003"));
                    dates.push(format!("{day}7 Apr {time} 2003 {zone}"));
                }
                // In the format of RFC 850.
                if !zone.is_empty() && !zone.contains(' ') {
                    dates.push(format!("{day}07-Apr-03 {time} {zone}"));
                }
            }
        }
        for glued in ["12:43:22+0200", "12:43-0730"] {
            dates.push(format!("{day}7 Apr 2003 {glued}"));
        }
        for wrong in [
            "",
            "7 Apr",
            "7 Apr 2003",
            "31 Feb 2003 12:43:22 +0000",
            "29 Feb 2003 1:02 +0000",
            "29 Feb 2004 1:02 +0000",
            "0 Apr 2003 12:43:22 +0000",
            "32 Apr 2003 12:43:22 +0000",
            "7 Foo 2003 12:43:22 +0000",
            "7 Apr 2003 12:60:22 +0000",
            "7 Apr 2003 12:43:61 +0000",
            "7 Apr 2003 12 +0000",
            "7 Apr 2003 12:43:22:01 +0000",
            "07 04 2003 12:43:22 +0000",
            "2003-04-07 12:43:22 +0000",
            "2003-04-07T12:43:22Z",
        ] {
            dates.push(format!("{day}{wrong}"));
        }
    }
    // Python misreads words after a date in RFC 850 format, and a comment after a time zone without a blank before it.
    let spread: Vec<String> = dates
        .iter()
        .filter(|date| {
            !["07-Apr-03", "22+", "43-"]
                .iter()
                .any(|form| date.contains(form))
        })
        .step_by(7)
        .map(|date| format!(" {}\t (a comment)", date.replace(' ', "  ")))
        .collect();
    dates.extend(spread);
    dates
}

#[test]
fn dates_are_read_as_python_reads_them() {
    let dates = variants();
    assert!(dates.len() > 3000);
    let Some(expected) = python(&dates) else {
        return;
    };
    let read = expected.iter().flatten().count();
    assert!(read > dates.len() / 2, "Python reads {read}");
    for (date, expected) in dates.iter().zip(expected) {
        assert_eq!(seconds(date.as_bytes()), expected, "{date:?}");
        let folded = date.replacen(' ', "\r\n ", 2);
        assert_eq!(seconds(folded.as_bytes()), expected, "{folded:?}");
    }
}

/// The time of 7 April 2003, 12:43:22 UTC.
const THEN: i64 = 1_049_719_402;

#[test]
fn obsolete_and_odd_dates_are_read_and_malformed_dates_are_rejected() {
    const HOUR: i64 = 3600;
    for (date, expected) in [
        // Comments and blanks of the obsolete syntax (§4.3), and a comment without a blank after the time zone (§3.3).
        (
            "(a) Mon (b), 7 (c) Apr (d (e\\)) f) 2003 12 : 43 : 22 (g) +0200 (h)",
            THEN - 2 * HOUR,
        ),
        ("Mon , 7 Apr 2003 12:43 :22 +0000", THEN),
        ("Mon, 7 Apr 2003 12:43:22 +0200(CEST)", THEN - 2 * HOUR),
        (
            "Mon, 7 Apr 2003 12:43:22 +0200 (never closed",
            THEN - 2 * HOUR,
        ),
        // Years of three digits.
        ("Mon, 7 Apr 103 12:43:22 +0000", THEN),
        // Days in other languages, fractions of seconds, and a time zone of two words before the year.
        ("Mo., 7 Apr 2003 12:43:22 +0000", THEN),
        ("lundi 7 Apr 2003 12:43:22 +0000", THEN),
        ("Mon, 7 Apr 2003 12:43:22.789 +0000", THEN),
        ("Mon Apr  7 12:43:22 MET DST 2003", THEN),
        ("7-Apr-2003 12:43:22", THEN),
        ("Mon, 7 Apr 2003 12:43:22+0200 CEST", THEN - 2 * HOUR),
    ] {
        assert_eq!(seconds(date.as_bytes()), Some(expected), "{date}");
    }
    for date in [
        "Mon, 7 Apr 2003 12:43:22 +99999",
        "Mon, 7 Apr 20030407 12:43:22 +0000",
        "Mon, 7 Apr 2003 999999999999:43:22 +0000",
        "(Mon, 7 Apr 2003 12:43:22 +0000)",
        "7 7 7 7 7",
        "Apr Apr Apr Apr Apr",
    ] {
        assert_eq!(seconds(date.as_bytes()), None, "{date}");
    }
    // Text after the first 500 bytes is not read.
    let long = format!("{}{}", " ".repeat(500), "Mon, 7 Apr 2003 12:43:22 +0000");
    assert_eq!(seconds(long.as_bytes()), None);
}

/// Returns white space and comments between two words. If `must` is true, the result is not empty.
fn blanks(must: bool) -> impl Strategy<Value = String> {
    let all = ["", " ", "  ", "\r\n ", " (a (nested\\) one))\t", "\t"];
    let pieces = if must { &all[1..] } else { &all[..] };
    prop::sample::select(pieces.to_vec()).prop_map(str::to_owned)
}

fn rfc_5322() -> impl Strategy<Value = String> {
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let days = ["", "Mon,", "Tue,", "Sun,"];
    let zones = [
        "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "GMT", "UT",
    ];
    let zone = prop_oneof![
        3 => (any::<bool>(), 0..15_u8, 0..60_u8).prop_map(|(is_ahead, hours, minutes)| {
            format!("{}{hours:02}{minutes:02}", if is_ahead { '+' } else { '-' })
        }),
        1 => prop::sample::select(zones.to_vec()).prop_map(str::to_owned),
    ];
    let day = (
        prop::sample::select(days.to_vec()),
        blanks(false),
        1..32_u8,
        any::<bool>(),
    );
    let year = prop_oneof![
        1900..2999_u16,
        Just(0_u16),
        Just(49_u16),
        Just(50_u16),
        Just(99_u16)
    ];
    let time = (0..24_u8, 0..60_u8, prop::option::of(0..60_u8));
    // Without seconds, mail-parser does not accept a time zone with a name.
    let date = (day, prop::sample::select(months.to_vec()), year);
    let between = prop::array::uniform4(blanks(true));
    (date, time, zone, between, blanks(false)).prop_map(
        |(((name, space, day, is_padded), month, year), (hour, minute, second), zone, [a, b, c, d], end)| {
            let day = if is_padded { format!("{day:02}") } else { day.to_string() };
            let written = second.or((!zone.starts_with(['+', '-'])).then_some(1));
            let second = written.map_or(String::new(), |second| format!(":{second:02}"));
            format!("{name}{space}{day}{a}{month}{b}{year:02}{c}{hour:02}:{minute:02}{second}{d}{zone}{end}")
        },
    )
}

proptest! {
    #[test]
    fn valid_rfc_5322_dates_are_read_as_by_mail_parser(date in rfc_5322()) {
        let expected = DateTime::parse_rfc822(&date).filter(DateTime::is_valid);
        prop_assume!(expected.is_some());
        prop_assert_eq!(seconds(date.as_bytes()), expected.map(|date| date.to_timestamp()));
    }

    #[test]
    fn parsing_any_words_as_a_date_does_not_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..9)) {
        let _ = seconds(words.join(" ").as_bytes());
        let _ = seconds(words.concat().as_bytes());
    }

    #[test]
    fn parsing_any_octets_as_a_date_does_not_panic(octets: Vec<u8>) {
        let _ = seconds(&octets);
    }
}

const WORDS: &[&str] = &[
    "Mon", ",", "-", "+", ":", ".", "7", "Apr", "2003", "12:43", "(", ")", "\\", "+0200", "99999",
    "é", "7-Apr-03", "12.43",
];
