//! The sections about messages: the largest ones, their years, senders and labels, repeated and damaged ones.

use super::super::broken::Large;
use super::super::numbers;
use super::super::sheet::{BARS, Bar, SheetTable, escaped, foreign};
use super::super::steps::pictures_and_attachments;
use super::super::words::{counted, either, grouped, listed, size};
use super::{ReportPage, short};

/// Minimum size of the largest message, in bytes. If it is smaller, the list of the largest messages is not shown.
const LARGE: u64 = 100_000;

/// Number of messages at risk that are visible before the list is unfolded.
const FIRST_AT_RISK: usize = 5;

impl ReportPage<'_> {
    pub(super) fn largest(&mut self) {
        let largest = &self.survey.largest;
        // Without large messages, removing the largest ones would save little space, so they are not listed.
        let is_large = largest.first().is_some_and(|it| it.octets >= LARGE);
        if largest.len() < 2 || !is_large {
            return;
        }
        self.sheet.fold("The largest messages", "");
        let rows: Vec<(&Large, String)> = largest.iter().map(|it| (it, size(it.octets))).collect();
        self.list(&rows);
    }

    /// Lists the messages that would lose most if their servers disappeared.
    pub(super) fn at_risk(&mut self) {
        let at_risk = &self.survey.at_risk;
        if at_risk.len() < 2 {
            return;
        }
        self.sheet
            .heading("Mails with the most content that exists only on servers");
        self.sheet.note(
            "If these servers disappear, the pictures and attachments of these mails are lost.",
        );
        let rows: Vec<(&Large, String)> = at_risk
            .iter()
            .map(|it| {
                (
                    &it.message,
                    pictures_and_attachments(it.pictures, it.attachments),
                )
            })
            .collect();
        let (first, others) = rows.split_at(rows.len().min(FIRST_AT_RISK));
        self.list(first);
        if !others.is_empty() {
            self.sheet.add(&format!(
                "<details><summary>{} more</summary>",
                grouped(others.len() as u64)
            ));
            self.list(others);
            self.sheet.add("</details>");
        }
    }

    /// Adds a list of messages, each with a fact such as its size.
    fn list(&mut self, rows: &[(&Large, String)]) {
        let mut html = String::from("<ul class=\"list\">");
        for (it, fact) in rows {
            let subject = match &it.subject {
                Some(subject) => foreign(subject),
                None => "(no subject)".to_owned(),
            };
            let mut about = Vec::new();
            about.extend(it.sender.as_deref().map(foreign));
            about.extend(it.date.as_deref().map(escaped));
            html += &format!(
                "\n<li><div><b>{subject}</b><span>{}</span></div><span class=\"right\">{fact}</span></li>",
                about.join(", "),
            );
        }
        html += "</ul>";
        self.sheet.add(&html);
    }

    pub(super) fn years(&mut self) {
        let survey = self.survey;
        let years = numbers::years(survey);
        let dates = &survey.dates;
        let mut odd = Vec::new();
        if dates.missing > 0 {
            let count = counted(dates.missing, "message has", "messages have");
            odd.push(format!("{count} no date"));
        }
        if dates.implausible > 0 {
            let count = counted(dates.implausible, "message has", "messages have");
            odd.push(format!("{count} an impossible date"));
        }
        if years.len() < 2 && odd.is_empty() {
            return;
        }
        self.sheet.fold("Mail by year", "");
        if !odd.is_empty() {
            self.sheet.say(&format!("{}.", listed(&odd)));
        }
        let columns: Vec<Bar> = years
            .iter()
            .map(|(name, year)| Bar {
                name: name.to_string(),
                value: year.octets,
                part: year.attachment_octets,
                words: format!(
                    "{name}: {}, {}",
                    counted(year.messages, "message", "messages"),
                    size(year.octets)
                ),
            })
            .collect();
        if columns.len() > 1 {
            if columns.iter().any(|it| it.part > 0) {
                self.sheet
                    .key("size of the mail", "large attachments in the mail")
            } else {
                self.sheet.note("By size.")
            }
        }
        let most = columns.iter().map(|it| it.value).max().unwrap_or(0);
        self.sheet
            .columns("Size of the mail by year", &size(most), &columns);
        if years.len() > 1 {
            let rows: Vec<(String, Vec<String>)> = years
                .into_iter()
                .filter(|(_, it)| it.messages > 0)
                .map(|(name, it)| {
                    let cells = vec![
                        grouped(it.messages),
                        size(it.octets),
                        grouped(it.attachments),
                        grouped(it.pictures),
                        grouped(it.references),
                    ];
                    (name.to_string(), cells)
                })
                .collect();
            let large = format!("attachments over {}", size(self.context.larger_than));
            self.sheet
                .add("<details><summary>The same in numbers</summary>");
            self.sheet.table(&SheetTable {
                heads: &[
                    "year",
                    "messages",
                    "size",
                    &large,
                    "pictures on the web",
                    "attachments elsewhere",
                ],
                rows,
                more: 0,
            });
            self.sheet.add("</details>");
        }
    }

    pub(super) fn senders(&mut self) {
        let senders = &self.survey.senders;
        let known = senders
            .heaviest(|it| it.octets)
            .into_iter()
            .filter(|(name, _)| *name != "none");
        let bars: Vec<Bar> = known
            .take(BARS)
            .map(|(name, it)| Bar {
                name: short(name),
                value: it.octets,
                part: 0,
                words: format!(
                    "{}, {}",
                    counted(it.count, "message", "messages"),
                    size(it.octets)
                ),
            })
            .collect();
        if bars.len() > 1 {
            self.sheet.fold("Mail by sender", "");
            self.sheet.bars("Mail by domain of the sender", &bars);
        }
    }

    pub(super) fn labels(&mut self) {
        let labels = &self.survey.labels;
        if labels.names().next().is_none() {
            return;
        }
        self.sheet.fold("Labels of Gmail", "");
        self.named(
            &["label", "messages"],
            labels,
            |it| *it,
            |it| vec![grouped(*it)],
        );
    }

    pub(super) fn repeated(&mut self) {
        let repeated = self.survey.copies.repeated;
        if repeated.count == 0 {
            return;
        }
        self.sheet.fold(
            "Messages that occur more than once",
            &grouped(repeated.count),
        );
        self.sheet.say(&format!(
            "{} of other messages in this mail, {}. An export with a mailbox for each label contains a message once for each of its labels.",
            counted(repeated.count, "duplicate", "duplicates"),
            size(repeated.octets)
        ));
    }

    pub(super) fn broken(&mut self) {
        let broken = &self.survey.broken;
        if broken.kinds().iter().all(|it| it.2.count == 0) && broken.files == 0 {
            return;
        }
        self.sheet.fold("Damaged mail", "");
        for (one, many, places) in broken.kinds() {
            if places.count == 0 {
                continue;
            }
            let several = self.context.sources.len() > 1;
            let first: Vec<String> = places
                .first
                .iter()
                .map(|place| {
                    let path = std::path::Path::new(&place.source);
                    let file_name = path.file_name().map(|it| it.to_string_lossy());
                    let name = foreign(&short(file_name.as_deref().unwrap_or(&place.source)));
                    match place.index {
                        None => name,
                        Some(index) if several => format!("number {index} of {name}"),
                        Some(index) => format!("number {index}"),
                    }
                })
                .collect();
            let more = match places.count.saturating_sub(first.len() as u64) {
                0 => String::new(),
                more => format!(" and {} more", grouped(more)),
            };
            let first = if more.is_empty() {
                listed(&first)
            } else {
                first.join(", ")
            };
            self.sheet.add(&format!(
                "<p>{} {}: {first}{more}.</p>",
                grouped(places.count),
                either(places.count, one, many)
            ));
        }
        if broken.files > 0 {
            self.sheet.say(&format!(
                "{} not be read to {} end.",
                counted(broken.files, "file could", "files could"),
                either(broken.files, "its", "their")
            ));
        }
        self.sheet
            .note("embody keeps damaged messages as they are, byte for byte.");
    }
}
