//! The survey as one page that opens offline: numbers first, then tables and plots, each with what one would type.
//!
//! Nothing comes from elsewhere, and its own policy forbids it. The one script, which copies commands, is allowed by its
//! hash.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::contents::bars;
use super::file::BEGIN;
use super::json::bound;
use super::looked::Looked;
use super::plot::{Column, escaped, grouped, lying, standing};
use super::sheet::{Page, ROWS};
use super::sum::{Survey, day};
use super::text::{option_size, size};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn page(survey: &Survey, looked: &Looked<'_>) -> String {
    let mut page = Page {
        html: String::from(BEGIN),
        survey,
        looked,
    };
    page.head();
    page.numbers();
    page.years();
    page.senders();
    page.attachments();
    page.pictures();
    page.links();
    page.references();
    page.outcomes();
    page.foot();
    page.html
}

impl Page<'_> {
    fn head(&mut self) {
        let sources = self.looked.sources.iter();
        let names: Vec<String> = sources.map(|source| escaped(&source.name)).collect();
        let shown = names.get(..3).filter(|_| names.len() > 4).unwrap_or(&names);
        let mut title = shown.join(", ");
        if shown.len() < names.len() {
            title.push_str(&format!(" and {} more", names.len() - shown.len()));
        }
        let survey = self.survey;
        let dates = match (survey.dates.first, survey.dates.last) {
            (Some(first), Some(last)) => format!(", dated {} to {}", day(first), day(last)),
            _ => String::new(),
        };
        let asked = match self.looked.is_probed {
            true => "Servers were asked whether they answer, as the options allow.",
            false => "Nothing was changed; no network requests were made.",
        };
        self.add(
            &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">", STANDARD.encode(Sha256::digest(SCRIPT)))
        );
        self.add(&format!(
            "<title>What is in {title}</title>\n<style>\n{STYLE}</style>\n<body>"
        ));
        self.add(&format!("<h1>What is in {title}</h1>"));
        self.add(&format!(
            "<p class=\"soft\">{} in {}, {}{dates}. Looked at on {} by <code>embody inspect</code> {}. {asked}</p>",
            counted(survey.messages, "message", "messages"),
            counted(survey.mailboxes, "mailbox", "mailboxes"),
            size(survey.octets),
            escaped(self.looked.start),
            env!("CARGO_PKG_VERSION"),
        ));
        self.add("<p class=\"soft\">The commands below name the mail as it was named here: run them in the same folder. A file that is replaced stays beside the new one as a backup; of an archive or a folder the result is new, and the old one stays as it is.</p>");
        if survey.oversized > 0 {
            self.add(&format!(
                "<p>{} messages are too large to be looked at, and are not counted below.</p>",
                grouped(survey.oversized)
            ));
        }
    }

    fn numbers(&mut self) {
        let survey = self.survey;
        let detach = &survey.detach;
        let large = option_size(self.looked.larger_than);
        let duplicates = detach.duplicates();
        let saves = u64::try_from(detach.saves).unwrap_or(0);
        let share = (u128::from(saves) * 100)
            .checked_div(u128::from(survey.octets))
            .unwrap_or(0);
        let links = &survey.links;
        let mut tiles = vec![
            (
                "",
                size(survey.octets),
                format!("in {} messages", grouped(survey.messages)),
            ),
            (
                "good",
                size(saves),
                format!("less mail after <code>embody detach</code>: {share}&nbsp;%"),
            ),
            (
                "",
                grouped(detach.large.count),
                format!(
                    "attachments of {large} and more, {}",
                    size(detach.large.octets)
                ),
            ),
            (
                "",
                grouped(duplicates.count),
                format!(
                    "of them are duplicates: {} that the store need not hold",
                    size(duplicates.octets)
                ),
            ),
            (
                "",
                grouped(survey.pictures.remote),
                "pictures from the web; they go when their servers go".to_owned(),
            ),
            (
                "",
                grouped(survey.pictures.trackers),
                "trackers: pictures nobody is meant to see".to_owned(),
            ),
            (
                "",
                grouped(links.relative),
                format!(
                    "relative links, of which {} can be made to work",
                    grouped(links.with_base + links.to_parts)
                ),
            ),
            (
                "",
                grouped(survey.references),
                "attachments that are elsewhere, only referred to".to_owned(),
            ),
        ];
        let repeated = survey.copies.repeated;
        if repeated.count > 0 {
            tiles.push((
                "",
                grouped(repeated.count),
                format!(
                    "messages stand more than once, as under several labels: {}",
                    size(repeated.octets)
                ),
            ));
        }
        if self.looked.is_probed {
            let probe = survey.probe;
            tiles.push((
                "",
                grouped(probe.dead),
                format!(
                    "sources are dead{}, {} are alive, {} refused by the options",
                    match self.looked.has_archive {
                        false => String::new(),
                        true => format!(
                            " ({} in the archive, {} lost)",
                            grouped(probe.archived),
                            grouped(probe.lost)
                        ),
                    },
                    grouped(probe.alive),
                    grouped(probe.refused)
                ),
            ));
        }
        self.add("<div class=\"big\">");
        for (class, number, words) in tiles {
            self.add(&format!(
                "<div class=\"{class}\"><b>{number}</b><span>{words}</span></div>"
            ));
        }
        self.add("</div>");
    }

    fn years(&mut self) {
        let survey = self.survey;
        let numbers: Vec<i64> = survey
            .years
            .names()
            .filter_map(|(name, _)| name.parse().ok())
            .collect();
        self.add("<h2>Mail by year</h2>");
        let dates = &survey.dates;
        self.add(&format!(
            "<p>By the Date field. {} messages have none, and {} have an unusable one: it cannot be read, or is before 1971 or in the future. embody changes no date; <code>embody inspect --by year</code> prints these numbers.</p>",
            grouped(dates.missing), grouped(dates.insane)
        ));
        if let (Some(&first), Some(&last)) = (numbers.iter().min(), numbers.iter().max()) {
            let of: std::collections::BTreeMap<&str, _> = survey.years.names().collect();
            let columns: Vec<Column> = (first..=last)
                .map(|year| {
                    let name = year.to_string();
                    let year = of.get(&*name).copied().copied().unwrap_or_default();
                    Column {
                        said: format!(
                            "{name}: {} messages, {}, of which {} in large attachments",
                            year.messages,
                            size(year.octets),
                            size(year.attachment_octets)
                        ),
                        name,
                        all: year.octets,
                        part: year.attachment_octets,
                    }
                })
                .collect();
            self.add(&format!(
                "<p class=\"soft\"><span class=\"key all\"></span>all mail &nbsp; <span class=\"key some\"></span>attachments of {} and more</p>",
                option_size(self.looked.larger_than)
            ));
            self.add(&standing("Bytes of mail by year", &columns));
        }
        self.table(
            &[
                "year",
                "messages",
                "size",
                "large attachments",
                "their size",
                "pictures from the web",
                "references",
            ],
            &survey.years.names().collect::<Vec<_>>(),
            survey.years.others(),
            |it| {
                vec![
                    grouped(it.messages),
                    size(it.octets),
                    grouped(it.attachments),
                    size(it.attachment_octets),
                    grouped(it.pictures),
                    grouped(it.references),
                ]
            },
        );
    }

    fn senders(&mut self) {
        let senders = &self.survey.senders;
        let bars = bars(
            senders,
            |it| it.octets,
            |it| format!("{} in {}", size(it.octets), grouped(it.count)),
        );
        self.add("<h2>Mail by sender</h2>");
        self.add("<p>By the domain of the From field, which anybody may write.</p>");
        self.add(&lying("Mail by domain of the sender", &bars));
        self.table(
            &["sender", "messages", "size"],
            &senders.heaviest(|it| it.octets),
            senders.others(),
            |it| vec![grouped(it.count), size(it.octets)],
        );
    }

    fn links(&mut self) {
        let survey = self.survey;
        let links = &survey.links;
        self.add("<h2>Links</h2>");
        let unread = match links.unread {
            0 => String::new(),
            unread => format!(
                " {} documents could not be read, or not wholly: a charset, a damaged encoding, a limit.",
                grouped(unread)
            ),
        };
        self.add(&format!(
            "<p>{} links stand in {} documents of HTML and CSS, {} of them relative. Of these a base makes {} absolute, {} mean a part of the mail, and {} have nothing that they are relative to: those stay. With <code>--links keep</code> all stay.{unread}</p>",
            grouped(links.count), grouped(links.documents), grouped(links.relative), grouped(links.with_base), grouped(links.to_parts),
            grouped(links.relative.saturating_sub(links.with_base + links.to_parts))
        ));
        if links.with_base + links.to_parts > 0 {
            self.act(
                "This makes relative links work. It asks nobody.",
                &self.looked.commands("embody convert", "links"),
            );
        }
        self.table(
            &["scheme of the others", "links"],
            &survey.link_schemes.heaviest(|it| *it),
            survey.link_schemes.others(),
            |it| vec![grouped(*it)],
        );
    }

    fn references(&mut self) {
        let survey = self.survey;
        self.add("<h2>Attachments that are elsewhere</h2>");
        if survey.references == 0 {
            self.add("<p>The mail has none: no message/external-body, nothing that a mail program detached.</p>");
            return;
        }
        self.add("<p>Parts of the mail that only refer to their content. What is in the mail itself, by cid: and data:, needs no network.</p>");
        self.act(
            "This puts the content where the references are, as far as it is still there.",
            &self
                .looked
                .commands("embody convert --fetch http,https,ftp", "filling"),
        );
        self.add("<table><tr><th>kind<th>scheme<th>references");
        let kinds = &survey.kinds;
        for (kind, schemes) in kinds {
            for (scheme, count) in schemes.heaviest(|it| *it).into_iter().take(ROWS) {
                self.add(&format!(
                    "<tr><td>{}<td>{}<td>{}",
                    escaped(kind),
                    escaped(scheme),
                    grouped(*count)
                ));
            }
            if let Some(count) = schemes.others() {
                self.add(&format!(
                    "<tr><td>{}<td>others, {}<td>{}",
                    escaped(kind),
                    bound(),
                    grouped(*count)
                ));
            }
        }
        self.add("</table>");
    }

    fn outcomes(&mut self) {
        let survey = self.survey;
        if survey.outcomes.is_empty() {
            return;
        }
        self.add("<h2>What the same options would do</h2>");
        self.add("<p>One row for each reference and each document. The word behind <code>left</code> is the reason; docs/reasons.md says which option would allow it.</p>");
        self.act(
            "This prints every row, with its message and its part.",
            &self.looked.reading("embody inspect --json"),
        );
        self.add("<table><tr><th>outcome<th>rows");
        for (outcome, count) in &survey.outcomes {
            self.add(&format!(
                "<tr><td>{}<td>{}",
                escaped(outcome),
                grouped(*count)
            ));
        }
        self.add("</table>");
    }

    fn foot(&mut self) {
        self.add("<footer>Sizes are in powers of 1024, cut and not rounded. docs/survey.md of embody says how each number is counted; <code>embody inspect --json</code> prints them for programs.</footer>");
        self.add(&format!("<script>{SCRIPT}</script>"));
    }
}

/// `1 message`, `2 messages`.
fn counted(count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{} {word}", grouped(count))
}
