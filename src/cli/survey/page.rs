//! The survey as one page that opens offline: numbers, tables and plots, each with what one would type.
//!
//! Its own policy forbids what comes from elsewhere; the one script, which copies commands, is allowed by its hash.
//! It takes the place of an earlier page, and of nothing else.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::contents::bars;
use super::json::bound;
use super::looked::Looked;
use super::sheet::{Bar, Page, ROWS, cells, escaped, grouped, lying, standing};
use super::sum::{Survey, day};
use super::tally::{Amount, Year};
use super::text::{option_size, size};
use crate::error::Error;
use crate::mailbox::folder_of;

/// Only a file that begins so may be replaced.
const BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"embody inspect\">\n";

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

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
    page.add("<footer>Sizes are in powers of 1024, cut and not rounded. docs/survey.md of embody says how each number is counted; <code>embody inspect --json</code> prints them for programs.</footer>");
    page.add(&format!("<script>{SCRIPT}</script>"));
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
            counted(survey.mail.messages, "message", "messages"),
            counted(survey.mail.mailboxes, "mailbox", "mailboxes"),
            size(survey.mail.octets),
            escaped(self.looked.start),
            env!("CARGO_PKG_VERSION"),
        ));
        self.add("<p class=\"soft\">The commands below name the mail as it was named here: run them in the same folder. A file that is replaced stays beside the new one as a backup; of an archive or a folder the result is new, and the old one stays as it is.</p>");
        if survey.mail.oversized > 0 {
            self.add(&format!(
                "<p>{} messages are too large to be looked at, and are not counted below.</p>",
                grouped(survey.mail.oversized)
            ));
        }
    }

    fn numbers(&mut self) {
        let survey = self.survey;
        let detach = &survey.detach;
        let large = option_size(self.looked.larger_than);
        let duplicates = detach.contents.repeated;
        let saves = u64::try_from(detach.saves).unwrap_or(0);
        let share = u128::from(saves) * 100;
        let share = share.checked_div(survey.mail.octets.into()).unwrap_or(0);
        let (links, pictures) = (&survey.links, &survey.pictures);
        self.add(&format!(
            "<div class=\"big\">\n\
             <div class=\"\"><b>{}</b><span>in {} messages</span></div>\n\
             <div class=\"good\"><b>{}</b><span>less mail after <code>embody detach</code>: {share}&nbsp;%</span></div>\n\
             <div class=\"\"><b>{}</b><span>attachments of {large} and more, {}</span></div>\n\
             <div class=\"\"><b>{}</b><span>of them are duplicates: {} that the store need not hold</span></div>\n\
             <div class=\"\"><b>{}</b><span>pictures from the web; they go when their servers go</span></div>\n\
             <div class=\"\"><b>{}</b><span>trackers: pictures nobody is meant to see</span></div>\n\
             <div class=\"\"><b>{}</b><span>relative links, of which {} can be made to work</span></div>\n\
             <div class=\"\"><b>{}</b><span>attachments that are elsewhere, only referred to</span></div>",
            size(survey.mail.octets), grouped(survey.mail.messages),
            size(saves),
            grouped(detach.large.count), size(detach.large.octets),
            grouped(duplicates.count), size(duplicates.octets),
            grouped(pictures.remote),
            grouped(pictures.trackers),
            grouped(links.relative), grouped(links.with_base + links.to_parts),
            grouped(survey.references),
        ));
        let repeated = survey.copies.repeated;
        if repeated.count > 0 {
            self.add(&format!(
                "<div class=\"\"><b>{}</b><span>messages stand more than once, as under several labels: {}</span></div>",
                grouped(repeated.count), size(repeated.octets)
            ));
        }
        if self.looked.is_probed {
            let probe = survey.probe;
            let [archived, lost] = [probe.archived, probe.lost].map(grouped);
            let of_dead = match self.looked.has_archive {
                false => String::new(),
                true => format!(" ({archived} in the archive, {lost} lost)"),
            };
            self.add(&format!(
                "<div class=\"\"><b>{}</b><span>sources are dead{of_dead}, {} are alive, {} refused by the options</span></div>",
                grouped(probe.dead), grouped(probe.alive), grouped(probe.refused)
            ));
        }
        self.add("</div>");
    }

    fn years(&mut self) {
        let survey = self.survey;
        self.add("<h2>Mail by year</h2>");
        let dates = &survey.dates;
        self.add(&format!(
            "<p>By the Date field. {} messages have none, and {} have an unusable one: it cannot be read, or is before 1971 or in the future. embody changes no date; <code>embody inspect --by year</code> prints these numbers.</p>",
            grouped(dates.missing), grouped(dates.insane)
        ));
        let years = survey.years.names();
        let years = years.filter_map(|(name, year)| Some((name.parse::<i64>().ok()?, *year)));
        let years: BTreeMap<i64, Year> = years.collect();
        if let Some((&first, &last)) = years.keys().next().zip(years.keys().next_back()) {
            let column = |name: i64| {
                let year = years.get(&name).copied().unwrap_or_default();
                let (all, part) = (year.octets, year.attachment_octets);
                let (messages, all_in_units, large) = (year.messages, size(all), size(part));
                let bar = Bar {
                    name: name.to_string(),
                    value: all,
                    said: format!(
                        "{name}: {messages} messages, {all_in_units}, of which {large} in large attachments"
                    ),
                };
                (bar, part)
            };
            let columns: Vec<(Bar, u64)> = (first..=last).map(column).collect();
            self.add(&format!(
                "<p class=\"soft\"><span class=\"key all\"></span>all mail &nbsp; <span class=\"key some\"></span>attachments of {} and more</p>",
                option_size(self.looked.larger_than)
            ));
            self.add(&standing("Bytes of mail by year", &columns));
        }
        let heads = "year, messages, size, large attachments, their size, pictures from the web, references";
        self.table(heads, &survey.years, |_| 1, cells);
    }

    fn senders(&mut self) {
        let senders = &self.survey.senders;
        let said = |it: &Amount| format!("{} in {}", size(it.octets), grouped(it.count));
        let bars = bars(senders, |it| it.octets, said);
        self.add("<h2>Mail by sender</h2>");
        self.add("<p>By the domain of the From field, which anybody may write.</p>");
        self.add(&lying("Mail by domain of the sender", &bars));
        self.table("sender, messages, size", senders, |it| it.octets, cells);
    }

    fn links(&mut self) {
        let survey = self.survey;
        let links = &survey.links;
        self.add("<h2>Links</h2>");
        let mut unread = String::new();
        if links.unread > 0 {
            let count = grouped(links.unread);
            unread = format!(
                " {count} documents could not be read, or not wholly: a charset, a damaged encoding, a limit."
            );
        }
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
        let (heads, schemes) = ("scheme of the others, links", &survey.link_schemes);
        self.table(heads, schemes, |it| *it, cells);
    }

    fn references(&mut self) {
        let survey = self.survey;
        self.add("<h2>Attachments that are elsewhere</h2>");
        if survey.references == 0 {
            self.add("<p>The mail has none: no message/external-body, nothing that a mail program detached.</p>");
            return;
        }
        self.add("<p>Parts of the mail that only refer to their content. What is in the mail itself, by cid: and data:, needs no network.</p>");
        let command = "embody convert --fetch http,https,ftp";
        self.act(
            "This puts the content where the references are, as far as it is still there.",
            &self.looked.commands(command, "filling"),
        );
        self.add("<table><tr><th>kind<th>scheme<th>references");
        for (kind, schemes) in &survey.kinds {
            let others = format!("others, {}", bound());
            let heaviest = schemes.heaviest(|it| *it).into_iter().take(ROWS);
            for (scheme, count) in heaviest.chain(schemes.others().map(|it| (&*others, it))) {
                let (kind, scheme) = (escaped(kind), escaped(scheme));
                let count = grouped(*count);
                self.add(&format!("<tr><td>{kind}<td>{scheme}<td>{count}"));
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
            let (outcome, count) = (escaped(outcome), grouped(*count));
            self.add(&format!("<tr><td>{outcome}<td>{count}"));
        }
        self.add("</table>");
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{} {word}", grouped(count))
}

pub fn write_page(path: &Path, page: &str) -> Result<(), Error> {
    replace(path, page).map_err(Error::cannot_write(path.display()))
}

fn replace(path: &Path, page: &str) -> io::Result<()> {
    let refused = |why| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    match fs::metadata(path) {
        // Opening a pipe would wait.
        Ok(metadata) if !metadata.is_file() => return refused("it is no file"),
        Ok(_) => {
            let (file, mut begin) = (File::open(path)?, Vec::new());
            file.take(BEGIN.len() as u64).read_to_end(&mut begin)?;
            if begin != BEGIN.as_bytes() {
                let why =
                    "it is there, and not a page of embody inspect: --html does not replace it";
                return refused(why);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut builder = tempfile::Builder::new();
    // Others may read it as any file of the user. Errors of `tempfile_in` would name this file; people know the page.
    let new = |path: &Path| File::options().write(true).create_new(true).open(path);
    let beside = builder
        .prefix(".embody-survey-")
        .make_in(folder_of(path), new)?;
    beside.as_file().write_all(page.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mailbox = folder.path().join("box");
        fs::write(&mailbox, "From a@b\n\nx\n").expect("a file can be written");
        let error = write_page(&mailbox, BEGIN).expect_err("it is a mailbox");
        assert!(error.to_string().contains("box"), "{error}");
        assert_eq!(fs::read(&mailbox).expect("it is there"), b"From a@b\n\nx\n");
        let page = folder.path().join("page.html");
        for text in ["one", "two"] {
            let text = format!("{BEGIN}{text}");
            write_page(&page, &text).expect("a page may be replaced");
            assert_eq!(fs::read_to_string(&page).expect("it is there"), text);
        }
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2);
    }
}
