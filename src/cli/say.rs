//! Text for users: makes untrusted text safe for a terminal, and formats reports as lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use super::args::OutputVolume;
use super::wording::{self, Advice, counted, remedy};
use crate::detail::excerpt;
use crate::engine::forms::TextLink;
use crate::engine::policy::Policy;
use crate::engine::report::{Report, Row, Setting};
use crate::platform;

/// Maximum number of characters of a name, a URL or another text from outside.
const LONGEST: usize = 300;

/// Maximum number of characters of a sentence. A sentence can quote texts from outside, of which it contains only the start,
/// and ends with the advice for the user, so it must be larger than [`LONGEST`].
const LONGEST_SENTENCE: usize = 2_000;

/// Writes a line to standard error. Errors are ignored, because the reader may have closed the pipe (`2>&1 | head`) and
/// the run must continue.
pub(super) fn tell(line: &str) {
    let line = format!("embody: {line}\n");
    let _ = platform::stream_or_null(io::stderr()).and_then(|mut it| it.write_all(line.as_bytes()));
}

/// Turns text from a mail or a server into a single line without control characters. After [`LONGEST`] characters, the number
/// of the omitted characters follows.
pub(super) fn harmless(text: &str) -> Cow<'_, str> {
    cleaned(text, LONGEST)
}

/// Does the same as [`harmless`] with a sentence of embody that quotes such texts. The sentence has at most
/// [`LONGEST_SENTENCE`] characters.
pub(super) fn harmless_sentence(text: &str) -> Cow<'_, str> {
    cleaned(text, LONGEST_SENTENCE)
}

/// Removes control characters from a text without cutting it. For sentences that contain a short untrusted text.
pub(super) fn harmless_within(text: &str) -> Cow<'_, str> {
    cleaned(text, usize::MAX)
}

pub(super) fn shown(path: &Path) -> String {
    harmless(&path.display().to_string()).into_owned()
}

pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6_000.0 => format!("{:.0} min", seconds / 60.0),
        ..360_000.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

pub(super) fn skipped(path: &Path, what: &str) -> String {
    format!("{}: skipped: {what}", shown(path))
}

/// The error of a run whose sources are all archives without mail.
pub(super) const NO_MAIL: &str =
    "no source contains mail; name the file or directory that contains the mail";

/// Returns a line about lost flags in the layout of the summary's tables.
pub(super) fn lost_flags(what: &str, count: u64) -> String {
    format!("{NOT_KEPT:<8} {count:>8}  {}", harmless(what))
}

/// Title of the rows about flags and keywords that a result cannot store.
pub(super) const NOT_KEPT: &str = "not kept";

pub(super) fn damaged(path: &Path, why: &str) -> String {
    format!("{}: {}", shown(path), harmless_within(why))
}

fn cleaned(text: &str, longest: usize) -> Cow<'_, str> {
    let risky = |symbol: char| {
        symbol.is_control()
            || matches!(symbol, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffd}')
    };
    let text = excerpt(text, longest);
    if !text.contains(risky) {
        return text;
    }
    let mut harmless = String::new();
    for symbol in text.chars() {
        if risky(symbol) {
            let _ = write!(harmless, "\\u{{{:x}}}", u32::from(symbol));
        } else {
            harmless.push(symbol);
        }
    }
    Cow::Owned(harmless)
}

pub(super) fn line(row: &Row, policy: &Policy) -> String {
    let mut line = if row.part.is_empty() {
        "message: ".to_owned()
    } else {
        format!("part {}: ", harmless(&row.part))
    };
    line.push_str(&wording::outcome_and_reason(row));
    if !row.detail.is_empty() {
        let detail = wording::detail(&row.detail);
        let _ = write!(line, ": {}", harmless_sentence(&detail));
    }
    if let Some(url) = &row.url {
        let _ = write!(line, " <{}>", harmless(url));
    }
    if let Some(remedy) = remedy(row, policy) {
        let _ = write!(line, "; {} would allow it", harmless(&remedy));
        if remedy.contains(wording::words(Setting::Protected)) {
            line.push_str(", and makes the signature invalid");
        }
    } else if let Some(advice) = Advice::of(row, policy) {
        let _ = write!(line, "; {}", advice.text());
    }
    line
}

/// Returns a line about a link in a plain text to a file in cloud storage.
pub(super) fn text_link(link: &TextLink) -> String {
    let file = link.name.as_deref().unwrap_or("a file");
    let (file, provider) = (harmless(file), link.provider.word);
    format!(
        "link in plain text, which embody does not follow: {file} at {provider} <{}>",
        harmless(&link.link)
    )
}

pub(super) fn sum(report: &Report) -> String {
    let (expanded, left, links) = (report.expanded(), report.left(), report.links());
    format!(
        "{} expanded, {} unchanged, {} changed",
        counted(expanded as u64, "reference"),
        counted(left as u64, "reference"),
        counted(links, "link"),
    )
}

const MOST_LINES: usize = 20;

pub(super) fn lines(rows: &[Row], policy: &Policy, volume: OutputVolume) -> Vec<String> {
    let shown = match volume {
        OutputVolume::Quiet => return Vec::new(),
        OutputVolume::Normal if rows.len() > MOST_LINES => MOST_LINES - 1,
        OutputVolume::Normal | OutputVolume::Verbose => rows.len(),
    };
    let (shown, others) = rows.split_at_checked(shown).unwrap_or((rows, &[]));
    let mut lines: Vec<String> = shown.iter().map(|row| line(row, policy)).collect();
    if !others.is_empty() {
        let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
        for row in others {
            *outcomes.entry(wording::outcome(row.outcome)).or_default() += 1;
        }
        let more = others.len();
        let counts: Vec<String> = outcomes
            .iter()
            .map(|(outcome, count)| format!("{count} {outcome}"))
            .collect();
        let list = counts.join(", ");
        lines.push(format!("and {more} more: {list}; --verbose shows them"));
    }
    lines
}

pub(super) fn error(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(crate::error::Error::Read { what, source }) = error.downcast_ref()
        && source.kind() == io::ErrorKind::NotFound
        && let Some(why) = wording::not_a_file(what)
    {
        return harmless_sentence(&why).into_owned();
    }
    let causes: Vec<String> = std::iter::successors(Some(error), |error| error.source())
        .map(|error| harmless_sentence(&wording::error(error)).into_owned())
        .collect();
    causes.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\x1b[31m\r\nb"), "a\\u{1b}[31m\\u{d}\\u{a}b");
        assert_eq!(harmless("gpj.\u{202e}exe"), "gpj.\\u{202e}exe");
        assert_eq!(harmless("a\u{61c}b\u{2060}c"), "a\\u{61c}b\\u{2060}c");
        assert!(matches!(harmless("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_cut_and_says_how_much_is_left_out() {
        let text = "x".repeat(1_000_000);
        for (longest, cut) in [
            (LONGEST, harmless(&text)),
            (LONGEST_SENTENCE, harmless_sentence(&text)),
        ] {
            let rest = text.len() - longest;
            let is = format!("{}… ({rest} more characters)", &text[..longest]);
            assert_eq!(cut, is);
        }
    }
}
