//! HTML page of a survey: first the most important findings, then the possible steps (the most useful one first), the
//! messages at risk, and folded sections with all numbers that are not zero.

mod attachments;
mod messages;
mod outcomes;
mod pictures;

use super::super::tally::{TallyCounts, TallyNames};
use super::context::SurveyContext;
use super::findings;
use super::json::bound;
use super::sheet::{ROWS, Sheet, SheetTable, escaped, foreign};
use super::sum::Survey;
use super::tally::Answers;
use super::words::{counted, either, grouped, listed};

/// Maximum number of sources in the title of a page.
const NAMED: usize = 3;

/// Maximum length of the name of a host or media type on the page, in characters. Such names are untrusted text.
const LONG: usize = 60;

pub(crate) fn page(survey: &Survey, context: &SurveyContext<'_>) -> String {
    let title = named(context);
    let mut page = ReportPage {
        sheet: Sheet::new(&format!("Survey of {title}")),
        survey,
        context,
    };
    page.head(&title);
    page.more_steps();
    page.at_risk();
    page.missing();
    page.pictures();
    page.trackers();
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
        "Written by embody {} on {}. 1 kB is 1000 bytes. This page is complete: it loads nothing and sends nothing. <code>embody inspect --json</code> prints all numbers for programs.",
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

struct ReportPage<'p> {
    sheet: Sheet,
    survey: &'p Survey,
    context: &'p SurveyContext<'p>,
}

impl ReportPage<'_> {
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
        if let Some(step) = found.steps.first() {
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

    /// Lists the steps after the first, which is shown as the recommended one.
    fn more_steps(&mut self) {
        let steps = findings::findings(self.survey, self.context).steps;
        if let Some(others) = steps.get(1..).filter(|it| !it.is_empty()) {
            self.sheet.heading("More steps");
            self.sheet.steps(2, others);
        }
    }

    fn named<C: TallyCounts>(
        &mut self,
        heads: &[&str],
        named: &TallyNames<C>,
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
        self.sheet.table(&SheetTable {
            heads,
            rows,
            more: names.len().saturating_sub(ROWS),
        });
    }
}

fn tail(text: &str) -> &str {
    text.split_once(' ').map_or(text, |it| it.1)
}

/// Describes the results of a probe in a sentence.
fn told(answers: &Answers, one: &str, many: &str) -> String {
    let mut said = Vec::new();
    for (count, word, words) in [
        (answers.alive, "is still there", "are still there"),
        (answers.gone, "is gone", "are gone"),
        (
            answers.silent,
            "could not be checked, because the server did not respond",
            "could not be checked, because the server did not respond",
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
            "was not requested, because of a limit such as `--max-fetches`",
            "were not requested, because of a limit such as `--max-fetches`",
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
