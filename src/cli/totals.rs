//! Counts over many messages, and the tables of these counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use url::Url;

use super::forecast::Forecast;
use super::outcomes::Outcomes;
use super::say::{NOT_KEPT, harmless, shown};
use super::survey::Survey;
use super::tally::{CountedRow, NAMES, RowTally, TallyNames, distinct_rows};
use super::wording::{Advice, counted, follow, outcome_and_reason, remedy};
use crate::engine::policy::Policy;
use crate::engine::report::{Kind, Outcome, Reason, Report, Row, Setting};
use crate::mailbox::{FileCounts, Summary};

/// Title of each table, with its maximum number of rows in the complete output and in the summary of a run. The whole
/// summary has at most 60 lines.
const TABLES: [(&str, [usize; 2]); 9] = [
    ("kind", [99, 99]),
    // Cloud services that keep files to which mail only links.
    ("kept by", [99, 99]),
    ("scheme", [99, 6]),
    ("host", [40, 10]),
    // Missing files of attachments that a mail program keeps next to the mailbox. Each row has the subject and the date
    // of a mail, and the number of its missing attachments.
    ("missing", [40, 10]),
    ("outcome", [99, 12]),
    ("not from", [0, 5]),
    ("skipped", [99, 6]),
    (NOT_KEPT, [99, 12]),
];

const REMEDIES: &str = "remedy";

/// Classes of rows in the progress line and at the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TotalClass {
    FilledIn,
    Embedded,
    Detached,
    Restored,
    Left,
    /// Attachments whose files were found in a directory of `--attachments`.
    FoundBelow,
    /// Attachments whose files were found neither in a directory of `--attachments` nor elsewhere.
    MissingBelow,
}

impl TotalClass {
    fn of(row: &Row) -> Option<Self> {
        match row.outcome {
            Outcome::Left => Some(Self::Left),
            Outcome::Expanded | Outcome::WouldExpand | Outcome::Blanked | Outcome::WouldBlank => {
                Some(match row.kind {
                    Kind::Embed => Self::Embedded,
                    _ => Self::FilledIn,
                })
            }
            Outcome::Detached | Outcome::WouldDetach => Some(Self::Detached),
            Outcome::Restored | Outcome::WouldRestore => Some(Self::Restored),
            _ => None,
        }
    }
}

#[derive(Default, Debug)]
pub(super) struct Totals {
    pub(super) rows: RowTally<TotalClass>,
    pub(super) outcomes: Outcomes,
    pub(super) forecast: Forecast,
    pub(super) survey: Survey,
    advice: BTreeMap<Advice, u64>,
    tables: BTreeMap<&'static str, TallyNames<u64>>,
}

impl Totals {
    pub(super) fn count(&mut self, report: &Report, policy: &Policy) {
        let mut has_open_content = false;
        for row in distinct_rows(&report.rows) {
            let counted = CountedRow::of(row);
            has_open_content |= self.forecast.count(&counted);
            self.outcomes.count(row, policy);
            if let Some(class) = TotalClass::of(row) {
                self.rows.count(class, counted.octets());
            }
            self.tally("kind", row.kind.as_str(), 1);
            if let Some(hosted) = &row.hosted {
                self.tally("kept by", hosted.provider, 1);
            }
            let told = outcome(row);
            let option = follow(row).map(|option| format!(" ({option})"));
            self.tally("outcome", told + &option.unwrap_or_default(), 1);
            if row.url.is_some() && !row.kind.is_of_links() {
                self.count_url(counted);
            }
        }
        self.forecast.count_message(report, has_open_content);
    }

    fn count_url(&mut self, counted: CountedRow<'_>) {
        if let Some(scheme) = counted.reference.scheme {
            self.tally("scheme", scheme.to_ascii_lowercase(), 1);
        }
        if let Some(host) = counted.host {
            self.tally("host", host.as_str(), 1);
            if counted.row.outcome == Outcome::Left {
                self.tally("not from", host, 1);
            }
        }
    }

    pub(super) fn tally(&mut self, title: &'static str, name: impl Into<String>, count: u64) {
        *self.tables.entry(title).or_default().exactly(name.into()) += count;
    }

    pub(super) fn count_remedies(&mut self, report: &Report, policy: &Policy) {
        // Trackers are left on purpose, so no option for them is recommended.
        let is_tracker = |row: &&Row| row.reason == Some(Reason::Tracker);
        let rows = report.rows.iter().filter(|row| !is_tracker(row));
        for row in rows {
            if let Some(remedy) = remedy(row, policy) {
                self.tally(REMEDIES, remedy, 1);
            } else if let Some(advice) = Advice::of(row, policy) {
                *self.advice.entry(advice).or_default() += 1;
            }
        }
    }

    /// Returns the lines with advice, each with the number of references. `names_archive` is false if another line is about the
    /// archive, or if the archive could not be reached either.
    pub(super) fn advice(&self, names_archive: bool) -> String {
        let mut texts: BTreeMap<String, u64> = BTreeMap::new();
        for (advice, count) in &self.advice {
            let given = if names_archive {
                Some(*advice)
            } else {
                advice.without_archive()
            };
            if let Some(advice) = given {
                *texts.entry(advice.text()).or_default() += count;
            }
        }
        texts.iter().fold(String::new(), |lines, (text, count)| {
            let references = counted(*count, "reference");
            lines + &format!("the content of {references}: {text}\n")
        })
    }

    pub(super) fn count_missing(&mut self, report: &Report, called: impl Fn() -> String) {
        let is_missing =
            |row: &&Row| row.kind.is_beside() && row.reason == Some(Reason::FileNotReadable);
        let count = report.rows.iter().filter(is_missing).count();
        if count > 0 {
            self.tally("missing", called(), count as u64);
        }
    }

    /// Counts references to files: those found in the directories of `--attachments`, and those found neither there nor
    /// elsewhere.
    pub(super) fn count_attachments(&mut self, report: &Report, policy: &Policy) {
        if policy.attachments.is_empty() {
            return;
        }
        let folders: Vec<Url> = policy
            .attachments
            .iter()
            .filter_map(|it| Url::from_directory_path(it).ok())
            .collect();
        for row in &report.rows {
            let url = row
                .final_url
                .as_deref()
                .or(row.url.as_deref())
                .unwrap_or_default();
            let is_below = || folders.iter().any(|it| url.starts_with(it.as_str()));
            match row.outcome {
                // The URL shows whether the file is below one of the directories. A file that was searched by name has
                // no URL and always counts as found there.
                Outcome::Expanded if row.kind.is_found_by_name() || is_below() => {
                    self.rows.count(TotalClass::FoundBelow, 0);
                }
                Outcome::Left if row.detail.settings().any(|it| it == Setting::Attachments) => {
                    self.rows.count(TotalClass::MissingBelow, 0);
                }
                _ => {}
            }
        }
    }

    /// Returns the line about files that are missing in the directories of `--attachments`.
    pub(super) fn missing_below(&self, policy: &Policy) -> Option<String> {
        let folders = policy
            .attachments
            .iter()
            .map(|it| shown(it))
            .collect::<Vec<_>>()
            .join(", ");
        match self.rows.of(&TotalClass::MissingBelow) {
            0 => None,
            1 => Some(format!("1 file was not found below {folders}.")),
            count => Some(format!("{count} files were not found below {folders}.")),
        }
    }

    pub(super) fn has_found_nothing_below(&self) -> bool {
        self.rows.has(&TotalClass::MissingBelow) && !self.rows.has(&TotalClass::FoundBelow)
    }

    /// Returns whether the run found an attachment that it moved, or would have moved.
    pub(super) fn has_large_attachments(&self) -> bool {
        self.rows.has(&TotalClass::Detached) || self.has_left_some()
    }

    pub(super) fn has_left_some(&self) -> bool {
        self.rows.has(&TotalClass::Left)
    }

    /// Returns the counts so far, each preceded by a comma.
    pub(super) fn so_far(of: [&Self; 2]) -> Vec<String> {
        let counts = [
            (TotalClass::FilledIn, "filled in"),
            (TotalClass::Embedded, "pictures"),
            (TotalClass::Detached, "moved"),
            (TotalClass::Restored, "put back"),
            (TotalClass::Left, "unchanged"),
        ]
        .map(|(class, what)| (of.map(|it| it.rows.of(&class)).iter().sum::<u64>(), what));
        counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(", {count} {what}"))
            .collect()
    }

    pub(super) fn add(&mut self, other: Self) {
        self.rows.add(other.rows);
        self.outcomes.add(other.outcomes);
        self.forecast.add(other.forecast);
        self.survey.add(other.survey);
        for (advice, count) in other.advice {
            *self.advice.entry(advice).or_default() += count;
        }
        for (title, names) in other.tables {
            self.tables.entry(title).or_default().add(names);
        }
    }

    /// Returns the options that would allow the largest number of refused references, and this number. Schemes, ports
    /// and networks are named together, because the next run would refuse the references again if only one of them were
    /// allowed.
    pub(super) fn best_remedy(&self) -> Option<(String, u64)> {
        let mut opening = (OpeningOptions::default(), 0);
        let mut best: Option<(&str, u64)> = None;
        for (remedy, count) in self.tables.get(REMEDIES)?.names() {
            if opening.0.add(remedy) {
                opening.1 += count;
            } else if best.is_none_or(|best| *count >= best.1) {
                best = Some((remedy, *count));
            }
        }
        let (options, count) = opening;
        match best {
            Some((remedy, more)) if more > count => Some((remedy.to_owned(), more)),
            _ => (count > 0).then(|| (options.text(), count)),
        }
    }

    /// Returns the tables of attachments that are missing next to the mailbox, of skipped files, and of lost flags.
    pub(super) fn missing_and_skipped(&self) -> String {
        let text = self.table(true);
        let lines = text.lines().filter(|line| {
            ["missing ", "skipped ", NOT_KEPT]
                .iter()
                .any(|title| line.starts_with(title))
        });
        lines.fold(String::new(), |text, line| text + line + "\n")
    }

    /// Returns a line with the number of files without mail, by description.
    pub(super) fn skipped(&self) -> String {
        let names = self
            .tables
            .get("skipped")
            .map(|it| it.heaviest(|count| *count));
        let kinds = names.into_iter().flatten();
        let words: Vec<String> = kinds
            .map(|(name, count)| format!("{count} {}", harmless(name)))
            .collect();
        words.join("; ")
    }

    pub(super) fn table(&self, is_of_sum: bool) -> String {
        self.tables(is_of_sum, |_| true)
    }

    /// Returns only the tables with these titles, in full.
    pub(super) fn table_of(&self, titles: &[&str]) -> String {
        self.tables(false, |title| titles.contains(&title))
    }

    fn tables(&self, is_of_sum: bool, wants: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        for (title, [in_full, in_sum]) in TABLES.into_iter().filter(|it| wants(it.0)) {
            let most = if is_of_sum { in_sum } else { in_full };
            let Some(names) = self.tables.get(title).filter(|_| most > 0) else {
                continue;
            };
            let hosts = self
                .tables
                .get("host")
                .into_iter()
                .flat_map(TallyNames::names);
            if title == "not from" && hosts.count() < 2 {
                continue;
            }
            let entries = names.heaviest(|count| *count);
            for (name, count) in entries.iter().take(most) {
                let _ = writeln!(text, "{title:<8} {count:>8}  {}", harmless(name));
            }
            if entries.len() > most {
                let rest: u64 = entries.iter().skip(most).map(|entry| entry.1).sum();
                let others = entries.len() - most;
                let _ = writeln!(text, "{title:<8} {rest:>8}  in {others} more rows");
            }
            if let Some(count) = names.others() {
                let what = format!("under other names (only {NAMES} names are counted separately)");
                let _ = writeln!(text, "{title:<8} {count:>8}  {what}");
            }
        }
        text
    }
}

/// Options that allow requests, with the values that the remedies need.
#[derive(Default)]
struct OpeningOptions<'r>([BTreeSet<&'r str>; 3]);

impl<'r> OpeningOptions<'r> {
    const NAMES: [&'static str; 3] = ["--fetch", "--allow-net", "--allow-port"];

    /// Maximum number of values that are printed for each option.
    const VALUES: usize = 12;

    /// Adds the values of a remedy, such as `--allow-net 10.0.0.7/32 --allow-port 8080`. Returns false if the remedy
    /// contains any other option.
    fn add(&mut self, remedy: &'r str) -> bool {
        let words: Vec<&str> = remedy.split(' ').collect();
        let mut values = Vec::new();
        for pair in words.chunks(2) {
            let &[name, value] = pair else {
                return false;
            };
            let Some(place) = Self::NAMES.iter().position(|it| *it == name) else {
                return false;
            };
            values.push((place, value));
        }
        for (place, value) in values {
            if let Some(values) = self.0.get_mut(place) {
                values.extend(value.split(','));
            }
        }
        true
    }

    fn text(&self) -> String {
        let options = Self::NAMES.iter().zip(&self.0);
        let named = options.filter(|(_, values)| !values.is_empty());
        let texts = named.map(|(name, values)| {
            // A value in upper case, such as CIDR, is a placeholder. It is printed only if no real value is known.
            let is_known = |value: &&&str| !value.starts_with(|it: char| it.is_ascii_uppercase());
            let known: Vec<&str> = values.iter().filter(is_known).copied().collect();
            let named = if known.is_empty() {
                values.iter().copied().collect()
            } else {
                known
            };
            let shown = named.get(..Self::VALUES).unwrap_or(&named);
            format!("{name} {}", shown.join(","))
        });
        texts.collect::<Vec<String>>().join(" ")
    }
}

fn outcome(row: &Row) -> String {
    let words = outcome_and_reason(row);
    let is_status = matches!(row.reason, Some(Reason::HttpStatus | Reason::FtpStatus));
    match row.status.filter(|_| is_status) {
        Some(status) => format!("{words} {status}"),
        None => words,
    }
}

/// Returns a line with the number of files by verdict, or an empty text if no file with mail was left out.
pub(super) fn files(counts: &FileCounts) -> String {
    if counts.not_read + counts.ignored == 0 {
        String::new()
    } else {
        files_by_verdict(counts)
    }
}

/// Returns a line with the number of files by verdict.
pub(super) fn files_by_verdict(counts: &FileCounts) -> String {
    let by_number = |count, one, many| if count == 1 { one } else { many };
    let parts = by_number(counts.parts, "part of a mailbox", "parts of mailboxes");
    let named = [
        (counts.parts, parts),
        (counts.not_mail, "without mail"),
        (counts.not_read, "not read"),
        (counts.ignored, "ignored"),
    ];
    let files = by_number(counts.total(), "file", "files");
    let mut text = format!("{} {files}: {} read", counts.total(), counts.read);
    for (count, what) in named.iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, ", {count} {what}");
    }
    text + ".\n"
}

pub(super) fn read(summary: &Summary) -> String {
    let counted = |count, one, many| format!("{count} {}", if count == 1 { one } else { many });
    let mailboxes = counted(summary.mailboxes, "mailbox", "mailboxes");
    let messages = counted(summary.messages, "message", "messages");
    format!("{mailboxes}, {messages}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_for_schemes_ports_and_networks_are_named_together() {
        let of = |remedies: &[(&str, u64)]| {
            let mut totals = Totals::default();
            for (remedy, count) in remedies {
                totals.tally(REMEDIES, *remedy, *count);
            }
            totals.best_remedy().unwrap_or_default()
        };
        for (remedies, text, count) in [
            (&[][..], "", 0),
            (&[("--fetch https", 3)], "--fetch https", 3),
            (
                &[
                    ("--allow-port 8081", 1),
                    ("--allow-net 10.0.0.7/32 --allow-port 8080", 2),
                    ("--allow-net CIDR", 4),
                    ("--fetch http", 5),
                    ("--max-body SIZE", 9),
                ],
                "--fetch http --allow-net 10.0.0.7/32 --allow-port 8080,8081",
                12,
            ),
            (&[("--allow-net CIDR", 4)], "--allow-net CIDR", 4),
            (
                &[
                    ("--fetch ftp,http,https", 1),
                    ("--fetch file,http,https", 1),
                ],
                "--fetch file,ftp,http,https",
                2,
            ),
            (
                &[("--fetch http", 5), ("--trackers fetch", 6)],
                "--trackers fetch",
                6,
            ),
            (
                &[("--allow-userinfo", 2), ("--allow-host a.example", 1)],
                "--allow-userinfo",
                2,
            ),
        ] {
            assert_eq!(of(remedies), (text.to_owned(), count));
        }
    }
}
