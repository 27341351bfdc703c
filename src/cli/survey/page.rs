//! The HTML page of a survey: first the most important findings, then all numbers that are not zero.

use super::context::{Group, SurveyContext};
use super::findings::{self, Step};
use super::json::bound;
use super::missing::{self, Way};
use super::sheet::{BARS, Bar, ROWS, Sheet, Table, escaped, foreign};
use super::sum::Survey;
use super::tally::{Answers, Counts, Host, Named, Type};
use super::words::{capitalized, class, counted, either, grouped, listed, size, type_words};
use crate::engine::report::Reason;

/// Maximum number of sources in the title of a page.
const NAMED: usize = 3;

/// The list of the largest messages is shown only if the largest one has at least this size, in bytes.
const LARGE: u64 = 100_000;

/// Maximum length, in characters, of the name of a host or media type on the page. Such a name is untrusted text.
const LONG: usize = 60;

pub(crate) fn page(survey: &Survey, context: &SurveyContext<'_>) -> String {
    let title = named(context);
    let mut page = Page {
        sheet: Sheet::new(&format!("What is in {title}")),
        survey,
        context,
    };
    page.head(&title);
    page.pictures();
    page.trackers();
    page.missing();
    page.attachments();
    page.largest();
    page.years();
    page.senders();
    page.labels();
    page.repeated();
    page.broken();
    page.links();
    page.outcomes();
    let made = &format!(
        "Written by embody {} on {}. 1 kB is 1000 bytes. docs/survey.md says how each number is counted; <code>embody inspect --json</code> prints all of them for programs.",
        env!("CARGO_PKG_VERSION"),
        escaped(context.start.get(..10).unwrap_or(context.start)),
    );
    page.sheet.finish(made)
}

/// Returns the file names of the sources, without their directories.
fn named(context: &SurveyContext<'_>) -> String {
    let names = context.sources.iter().map(|source| {
        let path = std::path::Path::new(&source.name);
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned());
        match source.name.as_str() {
            "-" => "standard input".to_owned(),
            _ => name.unwrap_or_else(|| source.name.clone()),
        }
    });
    let mut names: Vec<String> = names.collect();
    if names.len() > NAMED + 1 {
        let more = names.split_off(NAMED).len();
        names.push(format!("{more} more"));
    }
    listed(&names)
}

struct Page<'p> {
    sheet: Sheet,
    survey: &'p Survey,
    context: &'p SurveyContext<'p>,
}

impl Page<'_> {
    fn head(&mut self, title: &str) {
        let (survey, context) = (self.survey, self.context);
        let found = findings::findings(survey, context);
        let requests = if context.is_probed {
            "Servers were asked whether they still have the pictures and files."
        } else {
            "No network requests were made for this page."
        };
        self.sheet
            .add(&format!("<p class=\"over\">{}</p>", foreign(title)));
        self.sheet.add(&format!("<h1>{}</h1>", found.statement));
        self.sheet.note(&format!(
            "{}. Nothing was changed. {requests}",
            findings::contents(survey)
        ));
        self.sheet.tiles(&found.tiles);
        if let Some(step) = &found.step {
            self.sheet.next_step(step);
        }
        if survey.mail.oversized > 0 {
            let count = survey.mail.oversized;
            self.sheet.say(&format!(
                "{} larger than 512 MiB, and therefore not counted on this page.",
                counted(count, "message is", "messages are")
            ));
        }
    }

    /// Shows a step, unless it is already shown as the recommended step.
    fn step(&mut self, step: Option<Step>) {
        let recommended = findings::findings(self.survey, self.context).step;
        if let Some(step) = step.filter(|step| Some(step) != recommended.as_ref()) {
            self.sheet.step(&step);
        }
    }

    fn pictures(&mut self) {
        let (survey, context) = (self.survey, self.context);
        let pictures = &survey.pictures;
        let mut kinds = Vec::new();
        for (count, one, many) in [
            (pictures.remote, "is on the web", "are on the web"),
            (pictures.in_mail, "is in the mail", "are in the mail"),
            (
                pictures.data,
                "is written into the HTML",
                "are written into the HTML",
            ),
            (
                pictures.elsewhere,
                "has an address that leads nowhere",
                "have addresses that lead nowhere",
            ),
        ] {
            if count > 0 {
                kinds.push(format!("{} {}", grouped(count), either(count, one, many)));
            }
        }
        if kinds.is_empty() {
            return;
        }
        let all = pictures.remote + pictures.in_mail + pictures.data + pictures.elsewhere;
        self.sheet.heading("Pictures");
        self.sheet.say(&match kinds.as_slice() {
            [one] if all == 1 => format!("The mail shows one picture, which {}.", tail(one)),
            [one] => format!(
                "The mail shows {} pictures, which {}.",
                grouped(all),
                tail(one)
            ),
            _ => format!(
                "The mail shows {} pictures: {}.",
                grouped(all),
                listed(&kinds)
            ),
        });
        let answers = &survey.answers.pictures;
        if context.is_probed && answers.asked() + answers.refused + answers.unasked > 0 {
            self.sheet.say(&told(answers, "picture", "pictures"));
            if context.has_archive && survey.probe.dead > 0 {
                let probe = &survey.probe;
                self.sheet.say(&format!(
                    "The archive has {} of the pictures and files that are gone, and lacks {}.",
                    grouped(probe.archived),
                    grouped(probe.lost)
                ));
            }
            self.answers_by_year();
        }
        let bars: Vec<Bar> = findings::heaviest_hosts(survey)
            .into_iter()
            .take(BARS)
            .map(|(name, host)| {
                let gone = host.dead.min(host.pictures);
                Bar {
                    name: short(name),
                    value: host.pictures,
                    part: gone,
                    words: match gone {
                        0 => grouped(host.pictures),
                        _ => format!("{}, {} gone", grouped(host.pictures), grouped(gone)),
                    },
                }
            })
            .collect();
        if !bars.is_empty() {
            self.sheet.add("<h3>Servers of pictures</h3>");
        }
        self.sheet.bars("Pictures by server", &bars);
        if context.by.contains(&Group::Host) || context.is_probed {
            self.hosts();
        }
        self.step(findings::probe(survey, context));
        self.step(findings::embed(survey, context));
        self.step(findings::data(survey, context));
    }

    fn answers_by_year(&mut self) {
        let named = &self.survey.answers.years;
        let years: Vec<(i64, Answers)> = named
            .names()
            .filter_map(|(name, it)| Some((name.parse().ok()?, *it)))
            .collect();
        let Some((&(first, _), &(last, _))) = years.first().zip(years.last()) else {
            return;
        };
        let columns: Vec<Bar> = (first..=last)
            .map(|year| {
                let found = years.iter().find(|it| it.0 == year);
                let answers = found.map_or_else(Answers::default, |it| it.1);
                let dead = answers.asked() - answers.alive;
                Bar {
                    name: year.to_string(),
                    value: answers.asked(),
                    part: dead,
                    words: format!(
                        "{year}: {}, {} of them dead",
                        counted(answers.asked(), "picture", "pictures"),
                        grouped(dead)
                    ),
                }
            })
            .collect();
        let most = columns.iter().map(|it| it.value).max().unwrap_or(0);
        if columns.len() > 1 {
            self.sheet.key("pictures that were asked for", "dead ones");
        }
        let most = grouped(most);
        self.sheet
            .columns("Living and dead pictures by year", &most, &columns);
    }

    fn hosts(&mut self) {
        let mut heads = vec!["server", "pictures", "trackers", "files"];
        if self.context.is_probed {
            heads.extend(["answer", "dead", "not allowed"]);
            if self.context.has_archive {
                heads.extend(["in the archive", "lost"]);
            }
        }
        let columns = heads.len() - 1;
        let row = |it: &Host| it.probed().into_iter().take(columns).map(grouped).collect();
        let hosts = &self.survey.hosts;
        if hosts.names().count() > 1 {
            self.sheet.add("<details><summary>All servers</summary>");
            self.named(&heads, hosts, Host::weight, row);
            self.sheet.add("</details>");
        }
    }

    fn named<C: Counts>(
        &mut self,
        heads: &[&str],
        named: &Named<C>,
        weight: impl Fn(&C) -> u64,
        row: impl Fn(&C) -> Vec<String>,
    ) {
        let names = named.heaviest(weight);
        let rows = names.iter().take(ROWS);
        let mut rows: Vec<(String, Vec<String>)> =
            rows.map(|(name, it)| (short(name), row(it))).collect();
        if let Some(others) = named.others() {
            rows.push((format!("others, {}", bound()), row(others)));
        }
        self.sheet.table(&Table {
            heads,
            rows,
            more: names.len().saturating_sub(ROWS),
        });
    }

    fn trackers(&mut self) {
        let (survey, context) = (self.survey, self.context);
        let count = survey.pictures.trackers;
        if count == 0 {
            return;
        }
        let companies = findings::companies(survey);
        self.sheet.heading("Trackers");
        self.sheet.say(&format!(
            "{} invisible: {} there to tell the sender when and where you open the mail. Each name below is the domain of a server for such pictures.",
            counted(count, "picture is", "pictures are"),
            either(count, "it is", "they are"),
        ));
        let bars: Vec<Bar> = companies
            .into_iter()
            .take(BARS)
            .map(|(name, count)| Bar {
                name: short(&name),
                value: count,
                part: 0,
                words: grouped(count),
            })
            .collect();
        self.sheet.bars("Trackers by company", &bars);
        self.step(findings::blank(survey, context));
    }

    fn missing(&mut self) {
        let (survey, context) = (self.survey, self.context);
        if survey.missing.is_empty() {
            return;
        }
        self.sheet.heading("Attachments that are not in the mail");
        let ways: [(Way, &str); 6] = [
            (Way::Here, "in a file next to the mailbox, or in the mail"),
            (Way::Web, "on a server"),
            (Way::Ftp, "on an FTP server"),
            (Way::Directory, "in a directory of a computer"),
            (Way::Store, "in a store of embody"),
            (Way::Never, "nowhere"),
        ];
        let mut rows: Vec<(u64, String, Vec<String>)> = Vec::new();
        for (way, place) in ways {
            let of = survey.missing.iter().filter(|(key, _)| key.0 == way);
            for ((_, names), count) in of {
                let name = capitalized(names.many);
                rows.push((*count, name, vec![grouped(*count), place.to_owned()]));
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        self.sheet.table(&Table {
            heads: &["what", "how many", "where"],
            rows: rows.into_iter().map(|(_, name, it)| (name, it)).collect(),
            more: 0,
        });
        let answers = &survey.answers.attachments;
        if context.is_probed && answers.asked() > 0 {
            self.sheet.say(&told(answers, "file", "files"));
        }
        let directory = missing::sum(&survey.missing, &[Way::Directory]);
        if directory > 0 {
            self.sheet.say(&format!(
                "If you have the {} that {} saved to, add `--attachments DIRECTORY` to `embody recover`.",
                either(directory, "directory", "directories"),
                either(directory, "the file was", "the files were"),
            ));
        }
        self.step(findings::recover(survey, context));
        self.step(findings::restore(survey, context));
        self.step(findings::cloud_links(survey, context));
    }

    fn attachments(&mut self) {
        let (survey, context) = (self.survey, self.context);
        let shown = survey.shown();
        let all = survey.attachments;
        if all.count == 0 {
            return;
        }
        self.sheet.heading("Attachments in the mail");
        let mut words = format!(
            "{}, {}.",
            counted(all.count, "attachment", "attachments"),
            size(all.octets)
        );
        if shown.count > 0 {
            words += &if shown.count == all.count {
                " The text of the mail displays all of them.".to_owned()
            } else {
                format!(
                    " The text of the mail displays {} of them, {}.",
                    grouped(shown.count),
                    size(shown.octets)
                )
            };
        }
        self.sheet.say(&words);
        let classes = survey.sizes.iter().enumerate();
        let bars: Vec<Bar> = classes
            .map(|(number, amount)| Bar {
                name: class(number),
                value: amount.octets,
                part: 0,
                words: format!("{} in {}", size(amount.octets), grouped(amount.count)),
            })
            .collect();
        if all.count > 1 {
            self.sheet.bars("Attachments by size", &bars);
            self.types();
        }
        self.step(findings::detach(survey, context));
        let detach = &survey.detach;
        if detach.leave.count > 0 && detach.shown_inline.count > 0 {
            let shown = detach.shown_inline;
            self.sheet.note(&format!(
                "{} of this size, with {}, {} in the mail because the text displays {}; `--inline` moves {} as well.",
                counted(shown.count, "picture", "pictures"),
                size(shown.octets),
                either(shown.count, "stays", "stay"),
                either(shown.count, "it", "them"),
                either(shown.count, "it", "them"),
            ));
        }
    }

    fn types(&mut self) {
        let mut types: Vec<(&str, Type)> = Vec::new();
        for (essence, counts) in self.survey.types.names() {
            let words = type_words(essence);
            match types.iter_mut().find(|it| it.0 == words) {
                Some((_, sum)) => sum.add(counts),
                None => types.push((words, *counts)),
            }
        }
        types.sort_by_key(|(name, it)| (std::cmp::Reverse(it.octets), *name));
        let more = types.len().saturating_sub(ROWS);
        let mut rows: Vec<(String, Vec<String>)> = types
            .into_iter()
            .take(ROWS)
            .map(|(name, it)| {
                let cells = vec![
                    grouped(it.attachments),
                    size(it.octets),
                    grouped(it.leave),
                    grouped(it.inline),
                ];
                (capitalized(&short(name)), cells)
            })
            .collect();
        if let Some(it) = self.survey.types.others() {
            let cells = vec![grouped(it.attachments), size(it.octets)];
            rows.push((format!("others, {}", bound()), cells));
        }
        let large = format!("over {}", size(self.context.larger_than));
        self.sheet.table(&Table {
            heads: &["type", "attachments", "size", &large, "shown in the text"],
            rows,
            more,
        });
    }

    fn largest(&mut self) {
        let largest = &self.survey.largest;
        // If all messages are small, removing the largest ones would save little space, so no list is shown.
        let is_large = largest.first().is_some_and(|it| it.octets >= LARGE);
        if largest.len() < 2 || !is_large {
            return;
        }
        self.sheet.heading("The largest messages");
        let mut html = String::from("<ul class=\"list\">");
        for it in largest {
            let subject = match &it.subject {
                Some(subject) => foreign(subject),
                None => "(no subject)".to_owned(),
            };
            let mut about = Vec::new();
            about.extend(it.sender.as_deref().map(foreign));
            about.extend(it.date.as_deref().map(escaped));
            html += &format!(
                "\n<li><div><b>{subject}</b><span>{}</span></div><span class=\"right\">{}</span></li>",
                about.join(", "),
                size(it.octets)
            );
        }
        html += "</ul>";
        self.sheet.add(&html);
    }

    fn years(&mut self) {
        let survey = self.survey;
        let years = findings::years(survey);
        let dates = &survey.dates;
        let mut odd = Vec::new();
        if dates.missing > 0 {
            let count = counted(dates.missing, "message has", "messages have");
            odd.push(format!("{count} no date"));
        }
        if dates.insane > 0 {
            let count = counted(dates.insane, "message has", "messages have");
            odd.push(format!("{count} an impossible one"));
        }
        if years.len() < 2 && odd.is_empty() {
            return;
        }
        self.sheet.heading("Mail by year");
        if !odd.is_empty() {
            let odd = match odd.as_slice() {
                [one] => one.replace("an impossible one", "an impossible date"),
                _ => listed(&odd),
            };
            self.sheet.say(&format!("{odd}."));
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
            self.sheet.table(&Table {
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

    fn senders(&mut self) {
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
            self.sheet.heading("Mail by sender");
            self.sheet.bars("Mail by domain of the sender", &bars);
        }
    }

    fn labels(&mut self) {
        let labels = &self.survey.labels;
        if labels.names().next().is_none() {
            return;
        }
        self.sheet.heading("Labels of Gmail");
        self.named(
            &["label", "messages"],
            labels,
            |it| *it,
            |it| vec![grouped(*it)],
        );
    }

    fn repeated(&mut self) {
        let repeated = self.survey.copies.repeated;
        if repeated.count == 0 {
            return;
        }
        self.sheet.heading("Messages that are here more than once");
        self.sheet.say(&format!(
            "{} of messages that are here already, {}. An export with a mailbox for each label contains a message once for each of its labels.",
            counted(repeated.count, "copy", "copies"),
            size(repeated.octets)
        ));
    }

    fn broken(&mut self) {
        let broken = &self.survey.broken;
        if broken.kinds().iter().all(|it| it.2.count == 0) && broken.files == 0 {
            return;
        }
        self.sheet.heading("Damaged mail");
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

    fn links(&mut self) {
        let (survey, context) = (self.survey, self.context);
        let links = &survey.links;
        let step = findings::links(survey, context);
        if step.is_none() && links.unread == 0 {
            return;
        }
        self.sheet.heading("Links");
        if links.unread > 0 {
            self.sheet.say(&format!(
                "{} not be examined for links completely, because of {} charset, a damaged encoding or a limit.",
                counted(links.unread, "document could", "documents could"),
                either(links.unread, "its", "their"),
            ));
        }
        self.step(step);
    }

    fn outcomes(&mut self) {
        let survey = self.survey;
        if survey.outcomes.is_empty() {
            return;
        }
        self.sheet
            .add("<details><summary>Each reference, for experts</summary>");
        self.sheet
            .say("This table counts what `embody convert` would do with each reference, with the options of this survey. For each reason, docs/reasons.md names the option that changes the outcome.");
        let rows: Vec<(String, Vec<String>)> = survey
            .outcomes
            .iter()
            .map(|(outcome, count)| (explained(outcome), vec![grouped(*count)]))
            .collect();
        self.sheet.table(&Table {
            heads: &["outcome", "how many"],
            rows,
            more: 0,
        });
        self.sheet.step(&Step {
            title: "List them".to_owned(),
            words:
                "This prints a line for each reference, with its message, its part and the reason."
                    .to_owned(),
            commands: self.context.reading("embody inspect --json"),
        });
        self.sheet.add("</details>");
    }
}

/// Returns the outcome with an explanation of its reason.
fn explained(outcome: &str) -> String {
    let word = outcome.split_once(": ").map(|it| it.1);
    match word.and_then(|word| Reason::ALL.iter().find(|it| it.as_str() == word)) {
        Some(reason) => format!("{outcome} ({})", reason.meaning()),
        None => outcome.to_owned(),
    }
}

fn tail(text: &str) -> &str {
    text.split_once(' ').map_or(text, |it| it.1)
}

/// Describes the responses to a probe in a sentence.
fn told(answers: &Answers, one: &str, many: &str) -> String {
    let mut said = Vec::new();
    for (count, word, words) in [
        (answers.alive, "is still there", "are still there"),
        (answers.gone, "is gone", "are gone"),
        (
            answers.silent,
            "had no server that answered this time",
            "had no server that answered this time",
        ),
        (
            answers.denied,
            "needs a sign-in or a permission",
            "need a sign-in or a permission",
        ),
        (
            answers.refused,
            "is not allowed by the options",
            "are not allowed by the options",
        ),
        (
            answers.unasked,
            "was not asked for, because of a limit",
            "were not asked for, because of a limit",
        ),
    ] {
        if count > 0 {
            said.push(format!("{} {}", grouped(count), either(count, word, words)));
        }
    }
    let all = answers.asked() + answers.refused + answers.unasked;
    if let ([only], true) = (said.as_slice(), all > 1) {
        return format!("All {} {many} {}.", grouped(all), tail(only));
    }
    if let [only] = said.as_slice() {
        return format!("The {one} {}.", tail(only));
    }
    format!("Of {}, {}.", counted(all, one, many), listed(&said))
}

fn short(name: &str) -> String {
    let mut short: String = name.chars().take(LONG).collect();
    if short.len() < name.len() {
        short.push('\u{2026}');
    }
    short
}
