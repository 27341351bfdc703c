//! Reads the sender, the date and the labels of a message. A mailbox of another format needs them, because it stores
//! them outside of the message: in a separator line, a file name or a folder.

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::gmail::{GmailFolders, sorted};
use crate::engine::date;
use crate::mailbox::Envelope;
use crate::mime::date::seconds;
use crate::mime::encoded_words::decoded_words;
use crate::mime::header::{Header, unfold};
use crate::mime::labels::labels;
use crate::span::front;

const MOST: usize = 1 << 20;
/// Maximum length of the labels in one field, in bytes: room for a few hundred of the longest labels of Gmail.
const LABELS: usize = 64 << 10;
const LONGEST: usize = 1000;

/// Returns the data of one message. `separator` is the text after `From ` in an mbox.
///
/// The sender is from the separator, otherwise from Return-Path, otherwise from From. The date is from the separator
/// (in UTC if it has no time zone, RFC 4155), otherwise from the newest Received field, otherwise from Date. Folders
/// and states are from the labels of a Google Takeout.
pub(crate) fn of(separator: &[u8], message: &[u8]) -> Envelope {
    let fields = Header::of_message(message, MOST).fields;
    // This sender only marks the file as mboxrd, and the date next to it is always the same.
    let (sender, date) = if separator.starts_with(b"mboxrd@z ") {
        (String::new(), None)
    } else {
        separated(front(separator, LONGEST))
    };
    let addressed = |name: &str| {
        let value = fields.value(message, name)?;
        address(&unfold(front(value, LONGEST)))
    };
    let sender = if sender.is_empty() {
        addressed("Return-Path").or_else(|| addressed("From"))
    } else {
        Some(sender)
    };
    let mut known = HashSet::new();
    let all = fields.iter(message);
    let labels = all
        .filter(|field| field.is(message, "X-Gmail-Labels"))
        .flat_map(|field| labels_in(field.value.of(message)))
        .filter(|label| known.insert(label.clone()))
        .collect();
    let GmailFolders { folders, states } = sorted(labels);
    Envelope {
        sender: sender.unwrap_or_default(),
        date: date.or_else(|| date::of(message, SystemTime::now())),
        labels: folders,
        states,
    }
}

/// Parses the text of a separator line after `From `: `a@b Thu Jan 1 00:00:00 1970` and the variants that programs
/// write. To find the date, the last time of day in the line is located. The date starts at the name of the month
/// before this time, or at the day of the week if it is directly before the month. The words before the date are the
/// sender.
fn separated(line: &[u8]) -> (String, Option<SystemTime>) {
    let text = String::from_utf8_lossy(line);
    let words: Vec<&str> = text.split_whitespace().collect();
    if let Some(day) = words.iter().position(|word| iso_day(word).is_some()) {
        let (sender, date) = words.split_at(day);
        return (one_word(sender), iso(date).and_then(since_epoch));
    }
    let time = words.iter().rposition(|word| {
        word.starts_with(|symbol: char| symbol.is_ascii_digit()) && word.contains(':')
    });
    let before = &words[..time.unwrap_or(0)];
    let Some(month) = before.iter().rposition(|word| starts_as(word, &MONTHS)) else {
        return (one_word(&words), None);
    };
    let day = month.checked_sub(1).and_then(|at| words.get(at));
    let start = month - usize::from(day.is_some_and(|word| starts_as(word, &DAYS)));
    let (sender, date) = words.split_at(start);
    let date = seconds(date.join(" ").as_bytes()).and_then(since_epoch);
    (one_word(sender), date)
}

fn since_epoch(seconds: i64) -> Option<SystemTime> {
    let seconds = u64::try_from(seconds).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// Splits a word that begins with an ISO 8601 day: `2023-10-16T23:18:56Z` gives `16 oct 2023`, the form that the date
/// parser accepts, and `T23:18:56Z`.
fn iso_day(word: &str) -> Option<(String, &str)> {
    let (day, behind) = word.split_at_checked("0000-00-00".len())?;
    let [year, month, day]: [&str; 3] = day.split('-').collect::<Vec<_>>().try_into().ok()?;
    let is_number =
        |word: &str, length| word.len() == length && word.bytes().all(|byte| byte.is_ascii_digit());
    if !(is_number(year, 4) && is_number(month, 2) && is_number(day, 2)) {
        return None;
    }
    let month_number: usize = month.parse().ok()?;
    let month = MONTHS.get(month_number.checked_sub(1)?)?;
    Some((format!("{day} {month} {year}"), behind))
}

/// Returns the seconds since 1970 of an ISO 8601 date: `2023-10-16 23:18:56`, `2023-10-16T23:18:56.5+02:00`, or with a
/// time of a 12-hour clock.
fn iso(words: &[&str]) -> Option<i64> {
    let (first, others) = words.split_first()?;
    let (day, behind) = iso_day(first)?;
    let time = match (behind.trim_start_matches(['T', 't']), others) {
        ("", others) => others.join(" "),
        (start, others) => [&[start], others].concat().join(" "),
    };
    // Splits the time into clock and zone. The zone may follow without a blank, and may contain a colon.
    let clock = time
        .find(|symbol: char| !symbol.is_ascii_digit() && !matches!(symbol, ':' | '.'))
        .unwrap_or(time.len());
    let (clock, behind) = time.split_at_checked(clock)?;
    let behind = behind.trim();
    let zone = match behind.strip_prefix(['+', '-']) {
        Some(_) => behind.replace(':', ""),
        None => behind.to_owned(),
    };
    seconds(format!("{day} {clock} {zone}").as_bytes())
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

fn starts_as(word: &str, names: &[&str]) -> bool {
    let start = word.split_at_checked(3).map(|(start, _)| start);
    start.is_some_and(|start| names.iter().any(|name| name.eq_ignore_ascii_case(start)))
}

/// Returns the sender if it is a single word. Several words (`a at b`) are dropped, because other programs could not
/// parse them in the separator line of an mbox.
fn one_word(words: &[&str]) -> String {
    match words {
        // Thunderbird, Eudora and other programs write these words if they do not know the sender.
        ["-" | "???" | "???@???"] => String::new(),
        [sender] => (*sender).to_owned(),
        _ => String::new(),
    }
}

fn address(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(value);
    let address = match text.rsplit_once('<') {
        Some((_, behind)) => behind.split_once('>')?.0,
        None => text
            .split_once('(')
            .map_or(text.as_ref(), |(before, _)| before),
    }
    .trim();
    let is_one = !address.is_empty() && !address.contains([' ', '\t', '"', ',']);
    is_one.then(|| address.to_owned())
}

/// Returns the labels in a value of the field `X-Gmail-Labels`.
fn labels_in(value: &[u8]) -> Vec<String> {
    let text = decoded_words(&unfold(front(value, LABELS)));
    labels(&text, value.len() > LABELS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_with_any_usual_date_gives_sender_and_time() {
        let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        // 16 October 2023, 23:18:56 UTC.
        let evening = 1_697_498_336;
        for (line, sender, date) in [
            ("a@b Mon Oct 16 23:18:56 2023", "a@b", Some(evening)),
            ("a@b Mon Oct 16 11:18:56 PM 2023", "a@b", Some(evening)),
            ("a@b Mon Oct 16 2023 11:18:56 PM", "a@b", Some(evening)),
            ("a@b 2023-10-16 23:18:56", "a@b", Some(evening)),
            ("a@b 2023-10-16T23:18:56Z", "a@b", Some(evening)),
            ("a@b 2023-10-17T01:18:56+02:00", "a@b", Some(evening)),
            ("- 2023-10-16 16:18:56.25 -0700", "", Some(evening)),
            ("a@b 2023-10-16 11:18:56 PM", "a@b", Some(evening)),
            ("a@b 2023-13-16 23:18:56", "", None),
            ("a@b 2023-10-16", "a@b", None),
            ("a@b", "a@b", None),
            ("-", "", None),
            ("", "", None),
        ] {
            let expected = (sender.to_owned(), date.map(time));
            assert_eq!(separated(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn labels_of_all_fields_become_folders_each_once() {
        let folders =
            |fields: &str| of(b"", format!("{fields}\nSubject: a\n\nx").as_bytes()).labels;
        for (fields, expected) in [
            ("X-Gmail-Labels: b, a ,b,,B", &["b", "a", "B"][..]),
            (
                "X-Gmail-Labels: 12\" vinyl,Play\nX-Gmail-Labels: Play,\"a,b\"",
                &["12\" vinyl", "Play", "a,b"],
            ),
            (
                "X-Gmail-Labels: =?UTF-8?Q?=22a,_b=22,=C3=BC?=\r\n =?UTF-8?Q?x/y,z?=",
                &["a, b", "\u{fc}x/y", "z"],
            ),
            (
                "X-Gmail-Labels: =?UTF-8?Q?7=22_single,z?=",
                &["7\" single", "z"],
            ),
        ] {
            assert_eq!(folders(fields), expected, "{fields}");
        }
        let long = format!("X-Gmail-Labels: a,b,{}", "c".repeat(LABELS));
        assert_eq!(folders(&long), ["a", "b"]);
    }
}
