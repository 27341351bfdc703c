//! Formats numbers, sizes, shares and media types, for the page and the text of a survey.

use super::sum::SIZES;

pub(in crate::cli) use super::super::sizes::{option_size, size};

pub(super) fn class(number: usize) -> String {
    let from = SIZES.get(number).copied().unwrap_or_default();
    match SIZES.get(number + 1) {
        Some(to) if from == 0 => format!("less than {}", size(*to)),
        Some(to) => format!("{} to {}", size(from), size(*to)),
        None => format!("{} or more", size(from)),
    }
}

pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{} {word}", grouped(count))
}

pub(super) fn either<'w>(count: u64, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

/// Joins words for a sentence: `a, b and c`.
pub(super) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Describes a share in words: `a quarter of the`, `27% of the`. Returns `None` if the share is below one percent or
/// above the whole.
pub(super) fn share(part: u64, whole: u64) -> Option<String> {
    const FRACTIONS: [(u128, &str); 6] = [
        (100, "a tenth of the"),
        (250, "a quarter of the"),
        (333, "a third of the"),
        (500, "half of the"),
        (667, "two thirds of the"),
        (750, "three quarters of the"),
    ];
    if part > whole || whole == 0 {
        return None;
    }
    let thousandths = u128::from(part) * 1000 / u128::from(whole);
    match thousandths {
        0..10 => None,
        1000 => Some("all".to_owned()),
        960.. => Some("nearly all".to_owned()),
        _ => {
            let near = |it: &&(u128, &str)| thousandths.abs_diff(it.0) <= 20;
            Some(match FRACTIONS.iter().find(near) {
                Some((_, words)) => (*words).to_owned(),
                None => format!("{}% of the", thousandths / 10),
            })
        }
    }
}

pub(super) fn capitalized(text: &str) -> String {
    let mut symbols = text.chars();
    match symbols.next() {
        Some(first) => first.to_uppercase().chain(symbols).collect(),
        None => String::new(),
    }
}

/// Returns a plural noun for a media type, or the media type itself.
pub(super) fn type_words(essence: &str) -> &str {
    const TYPES: [(&str, &[&str]); 24] = [
        ("JPEG pictures", &["image/jpeg", "image/jpg", "image/pjpeg"]),
        ("PNG pictures", &["image/png", "image/x-png"]),
        ("GIF pictures", &["image/gif"]),
        ("other pictures", &["image/*"]),
        ("PDF documents", &["application/pdf", "application/x-pdf"]),
        (
            "Word documents",
            &[
                "application/msword",
                "application/vnd.ms-word*",
                "application/vnd.openxmlformats-officedocument.wordprocessingml*",
            ],
        ),
        (
            "Excel sheets",
            &[
                "application/vnd.ms-excel*",
                "application/vnd.openxmlformats-officedocument.spreadsheetml*",
            ],
        ),
        (
            "PowerPoint slides",
            &[
                "application/vnd.ms-powerpoint*",
                "application/vnd.openxmlformats-officedocument.presentationml*",
            ],
        ),
        (
            "OpenDocument files",
            &["application/vnd.oasis.opendocument*"],
        ),
        (
            "packed files (zip and others)",
            &[
                "application/zip",
                "application/x-zip*",
                "application/x-7z*",
                "application/x-rar*",
                "application/vnd.rar",
                "application/gzip",
                "application/x-gzip",
                "application/x-tar",
                "application/x-bzip*",
                "application/x-xz",
                "application/x-compressed*",
            ],
        ),
        ("calendar entries", &["text/calendar", "application/ics"]),
        (
            "address cards",
            &["text/vcard", "text/x-vcard", "text/directory"],
        ),
        ("web pages", &["text/html", "application/xhtml+xml"]),
        (
            "patches",
            &["text/x-patch", "text/x-diff", "application/x-patch"],
        ),
        ("tables (CSV)", &["text/csv", "text/comma-separated-values"]),
        ("RTF documents", &["application/rtf", "text/rtf"]),
        ("text files", &["text/*"]),
        ("sound", &["audio/*"]),
        ("videos", &["video/*"]),
        (
            "signatures and keys",
            &[
                "application/pgp-signature",
                "application/pgp-keys",
                "application/pkcs7-signature",
                "application/x-pkcs7-signature",
            ],
        ),
        (
            "encrypted mail",
            &[
                "application/pgp-encrypted",
                "application/pkcs7-mime",
                "application/x-pkcs7-mime",
            ],
        ),
        (
            "winmail.dat (Outlook)",
            &["application/ms-tnef", "application/vnd.ms-tnef"],
        ),
        ("forwarded mail", &["message/*"]),
        ("files without a type", &["application/octet-stream"]),
    ];
    let is_of = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => essence.starts_with(start),
        None => essence == *pattern,
    };
    let row = TYPES.iter().find(|row| row.1.iter().any(is_of));
    row.map_or(essence, |row| row.0)
}

/// Quotes a file name for a shell. A name with a leading hyphen gets the prefix `./`, so that it is not parsed as an
/// option.
pub(crate) fn quoted(name: &str) -> String {
    let name = if name.starts_with('-') {
        format!("./{name}")
    } else {
        name.to_owned()
    };
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || "/._-+:@,=".contains(symbol);
    if !name.is_empty() && name.chars().all(is_plain) {
        name
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_name_is_one_word_of_a_shell_and_no_option() {
        assert_eq!(quoted("/srv/mail/a.mbox"), "/srv/mail/a.mbox");
        assert_eq!(quoted("a b; rm -rf ~"), "'a b; rm -rf ~'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted("-rf"), "./-rf");
        assert_eq!(quoted("- x"), "'./- x'");
    }

    #[test]
    fn sizes_are_rounded_and_wrong_by_less_than_five_percent() {
        for (octets, said) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1 kB"),
            (1049, "1 kB"),
            (1050, "1.1 kB"),
            (1999, "2 kB"),
            (9949, "9.9 kB"),
            (9950, "10 kB"),
            (10_000, "10 kB"),
            (10_990, "11 kB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (999_999, "1 MB"),
            (1_000_000, "1 MB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(size(octets), said);
        }
        let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
        for octets in (2..63).flat_map(|bits| {
            [
                1_u64 << bits,
                (1 << bits) + (1 << (bits - 2)),
                (1 << bits) - 1,
            ]
        }) {
            let text = size(octets);
            let (number, unit) = text.split_once(' ').unwrap_or_default();
            let power = units.iter().position(|it| *it == unit).unwrap_or(0);
            let said = number.parse::<f64>().unwrap_or(0.0)
                * 1000_f64.powi(i32::try_from(power).unwrap_or(0));
            let error = (said - octets as f64).abs() / octets as f64;
            assert!(error < 0.05, "{octets}: {text}");
        }
        assert_eq!(option_size(100 << 10), "100k");
        assert_eq!(option_size(1000), "1000");
        assert_eq!(class(0), "less than 10 kB");
        assert_eq!(class(1), "10 kB to 100 kB");
        assert_eq!(class(5), "100 MB or more");
    }

    #[test]
    fn numbers_have_commas_and_words_their_plural() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "message", "messages"), "1 message");
        assert_eq!(counted(1000, "message", "messages"), "1,000 messages");
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&words), "a, b and c");
        assert_eq!(listed(&words[..1]), "a");
    }

    #[test]
    fn shares_are_said_as_a_person_says_them() {
        for (part, whole, said) in [
            (0, 0, None),
            (0, 10, None),
            (2, 1, None),
            (1, 1000, None),
            (26, 100, Some("a quarter of the")),
            (1, 3, Some("a third of the")),
            (2, 3, Some("two thirds of the")),
            (41, 100, Some("41% of the")),
            (99, 100, Some("nearly all")),
            (7, 7, Some("all")),
        ] {
            assert_eq!(share(part, whole).as_deref(), said, "{part} of {whole}");
        }
    }

    #[test]
    fn known_types_are_described_in_words_and_unknown_types_by_name() {
        for (essence, words) in [
            ("image/jpeg", "JPEG pictures"),
            ("image/heic", "other pictures"),
            ("text/x-python", "text files"),
            ("application/zip", "packed files (zip and others)"),
            (
                "application/x-zip-compressed",
                "packed files (zip and others)",
            ),
            ("application/x-unheard", "application/x-unheard"),
        ] {
            assert_eq!(type_words(essence), words);
        }
    }
}
