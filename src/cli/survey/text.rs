//! The survey as text for the terminal. It contains the same findings as the start of the page. `--by` adds tables.

use std::fmt::Write as _;

use super::super::args::SurveyGroup;
use super::super::say::{harmless, harmless_within};
use super::super::tally::{Amount, TallyCounts, TallyNames};
use super::context::SurveyContext;
use super::findings::{self, Findings};
use super::json::bound;
use super::missing::{self, RecoveryWay};
use super::numbers;
use super::sum::Survey;
use super::tally::{Host, Type};
use super::words::{counted, either, grouped, listed, size};

const LINES: usize = 40;

/// Returns the survey as text. `skipped` describes the files that contain no mail.
pub(crate) fn lines(survey: &Survey, context: &SurveyContext<'_>, skipped: String) -> String {
    let Findings {
        statement, steps, ..
    } = findings::findings(survey, context);
    let mut text = format!("{statement}\n");
    for (name, words) in [
        ("pictures", pictures(survey)),
        ("trackers", trackers(survey)),
        ("missing", missing(survey)),
        ("packed", packed(survey)),
        ("attachments", attachments(survey)),
        ("copies", copies(survey)),
        ("damaged", damaged(survey)),
        ("too large", too_large(survey)),
        ("dates", dates(survey)),
        ("links", linked(survey)),
        ("links", linked_in_text(survey)),
        ("links", links(survey)),
        ("answers", answers(survey, context)),
        ("skipped", skipped),
    ] {
        if !words.is_empty() {
            text += &format!("{name:<12} {words}\n");
        }
    }
    for group in context.by {
        text.push('\n');
        table(&mut text, survey, *group, context.has_archive);
    }
    if let Some(step) = steps.into_iter().next() {
        text += &format!("\nNext step: {}\n", in_words(&step.title));
        for command in step.commands {
            text += &format!("  {}\n", harmless_within(&command));
        }
    }
    text
}

fn in_words(title: &str) -> String {
    let mut symbols = title.chars();
    let first = symbols.next().map(|it| it.to_lowercase().to_string());
    first.unwrap_or_default() + symbols.as_str()
}

/// Returns all counts that are not zero, each with its words.
fn told(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().filter(|it| it.0 > 0);
    let words = counts.map(|(count, words)| format!("{} {words}", grouped(*count)));
    words.collect::<Vec<String>>().join(", ")
}

fn pictures(survey: &Survey) -> String {
    let pictures = &survey.pictures;
    let servers = numbers::pictured_hosts(survey);
    let mut on = format!("on {}", counted(servers, "server", "servers"));
    if pictures.trackers > 0 {
        on += " (trackers are not counted here)";
    }
    told(&[
        (pictures.remote, &on),
        (pictures.in_mail, "in the mail"),
        (
            pictures.missing,
            "missing, because the mail does not contain the part with the picture",
        ),
        (pictures.data, "written into the HTML (data: URLs)"),
        (
            pictures.elsewhere,
            "with a URL that cannot be retrieved (such as file: or a relative URL without a base URL)",
        ),
    ])
}

fn trackers(survey: &Survey) -> String {
    let count = survey.pictures.trackers;
    if count == 0 {
        return String::new();
    }
    const NAMED: usize = 3;
    let companies = numbers::companies(survey);
    let mut names: Vec<String> = companies
        .iter()
        .take(NAMED)
        .map(|(name, count)| format!("{} from {}", grouped(*count), harmless(name)))
        .collect();
    if companies.len() > NAMED {
        let more = (companies.len() - NAMED) as u64;
        names.push(counted(more, "more company", "more companies"));
    }
    format!("{}: {}", grouped(count), listed(&names))
}

/// Ways to get files that the text of the mail only links to. They do not count as missing, because the sender sent
/// links.
const LINKED: [RecoveryWay; 2] = [RecoveryWay::Link, RecoveryWay::Shortcut];

fn missing(survey: &Survey) -> String {
    let is_other = |way| {
        LINKED.contains(&way)
            || matches!(
                way,
                RecoveryWay::Text | RecoveryWay::Packed | RecoveryWay::Unopened
            )
    };
    let mut text = kinds(survey, |way| !is_other(way));
    if missing::sum(&survey.missing, &[RecoveryWay::Directory]) > 0 {
        text += " (name their directory with --attachments)";
    } else if survey.in_directories > 0 {
        text += " (if you have the files, name their directory with --attachments)";
    }
    if missing::sum(&survey.missing, &[RecoveryWay::Protected]) > 0 {
        text += " (--signed rewrite changes such parts, and makes their signatures invalid)";
    }
    text
}

fn packed(survey: &Survey) -> String {
    let mut text = kinds(survey, |way| way == RecoveryWay::Packed);
    if !text.is_empty() {
        text += &format!(" (embody convert --follow {} opens them)", missing::PACKED);
    }
    let unopened = kinds(survey, |way| way == RecoveryWay::Unopened);
    if !unopened.is_empty() {
        let separator = if text.is_empty() { "" } else { "; " };
        text += &format!("{separator}{unopened} (embody cannot open them)");
    }
    text
}

fn linked_in_text(survey: &Survey) -> String {
    let mut text = kinds(survey, |way| way == RecoveryWay::Text);
    if !text.is_empty() {
        text += ", linked in plain texts, which embody does not follow";
    }
    text
}

fn linked(survey: &Survey) -> String {
    let mut text = kinds(survey, |way| LINKED.contains(&way));
    if !text.is_empty() {
        let follow = missing::follow_words(&survey.missing);
        let them = either(missing::sum(&survey.missing, &LINKED), "it", "them");
        let _ = write!(text, " (embody recover --follow {follow} attaches {them})");
    }
    text
}

/// Returns the kinds of content outside of the mail, the most frequent one first.
fn kinds(survey: &Survey, is_wanted: impl Fn(RecoveryWay) -> bool) -> String {
    let found = survey
        .missing
        .classes()
        .filter(|((way, _), _)| is_wanted(*way));
    let mut kinds: Vec<(u64, String)> = found
        .map(|((way, names), count)| {
            let nowhere = match way {
                RecoveryWay::Never => ", which cannot come back",
                RecoveryWay::Protected => {
                    ", in a signed or encrypted part that embody leaves unchanged"
                }
                _ => "",
            };
            (count, counted(count, names.one, names.many) + nowhere)
        })
        .collect();
    kinds.sort_by_key(|it| std::cmp::Reverse(it.0));
    let kinds: Vec<String> = kinds.into_iter().map(|it| it.1).collect();
    kinds.join("; ")
}

fn attachments(survey: &Survey) -> String {
    let all = survey.attachments;
    if all.count == 0 {
        return String::new();
    }
    let mut text = format!("{}, {}", grouped(all.count), size(all.octets));
    let shown = survey.shown();
    if shown.count > 0 {
        text += &format!("; the text shows {} of them", grouped(shown.count));
    }
    let detach = &survey.detach;
    if detach.leave.count > 0 {
        let saves = u64::try_from(detach.saves).unwrap_or(0);
        text += &format!(
            "; embody detach would move {} and make the mail {} smaller",
            grouped(detach.leave.count),
            size(saves)
        );
    }
    text
}

fn copies(survey: &Survey) -> String {
    let repeated = survey.copies.repeated;
    match repeated.count {
        0 => String::new(),
        count => format!(
            "{} of other messages in this mail, {}",
            counted(count, "duplicate", "duplicates"),
            size(repeated.octets)
        ),
    }
}

fn damaged(survey: &Survey) -> String {
    let broken = &survey.broken;
    let found = broken.kinds().into_iter().filter(|it| it.2.count > 0);
    let kinds = found.map(|(one, many, places)| {
        let first: Vec<String> = places
            .first
            .iter()
            .filter_map(|it| it.index)
            .map(|it| it.to_string())
            .collect();
        let numbers = match first.is_empty() {
            true => String::new(),
            false if first.len() as u64 == places.count => {
                format!(
                    " ({} {})",
                    either(places.count, "number", "numbers"),
                    listed(&first)
                )
            }
            false => format!(" (numbers {}, ...)", first.join(", ")),
        };
        format!(
            "{} {}{numbers}",
            grouped(places.count),
            either(places.count, one, many)
        )
    });
    kinds.collect::<Vec<String>>().join("; ")
}

fn too_large(survey: &Survey) -> String {
    match survey.mail.oversized {
        0 => String::new(),
        count => format!(
            "{} more than 512 MiB, and {} not counted above",
            counted(count, "message has", "messages have"),
            either(count, "is", "are")
        ),
    }
}

fn dates(survey: &Survey) -> String {
    let dates = &survey.dates;
    let mut text = match (dates.first, dates.last) {
        (Some(first), Some(last)) => {
            let [first, last] = [first, last].map(super::sum::day);
            if first == last {
                first
            } else {
                format!("{first} to {last}")
            }
        }
        _ => String::new(),
    };
    let odd = told(&[
        (
            dates.missing,
            either(
                dates.missing,
                "message has no date",
                "messages have no date",
            ),
        ),
        (
            dates.implausible,
            either(
                dates.implausible,
                "message has an impossible date",
                "messages have an impossible date",
            ),
        ),
    ]);
    if !odd.is_empty() && !text.is_empty() {
        text += "; ";
    }
    text + &odd
}

fn links(survey: &Survey) -> String {
    let links = &survey.links;
    let works = links.with_base + links.to_parts;
    let mut said = Vec::new();
    if works > 0 {
        said.push(format!(
            "{} relative or {} to a part of the mail, and embody convert makes {} work",
            counted(works, "is", "are"),
            either(works, "leads", "lead"),
            either(works, "it", "them")
        ));
    }
    if !survey.wrapped.is_empty() {
        let sum: u64 = survey.wrapped.values().sum();
        let services: Vec<String> = survey
            .wrapped
            .iter()
            .map(|(service, count)| format!("{service} {}", grouped(*count)))
            .collect();
        said.push(format!(
            "{} wrapped by a mail filter or a picture proxy ({}), and --unwrap restores {}",
            counted(sum, "is", "are"),
            services.join(", "),
            either(sum, "its original", "their originals")
        ));
    }
    if links.unread > 0 {
        said.push(format!(
            "{} not be read as a whole",
            counted(links.unread, "document could", "documents could")
        ));
    }
    said.join("; ")
}

fn answers(survey: &Survey, context: &SurveyContext<'_>) -> String {
    if !context.is_probed {
        return String::new();
    }
    let (pictures, attachments) = (&survey.answers.pictures, &survey.answers.attachments);
    let of = |count: fn(&super::tally::Answers) -> u64| count(pictures) + count(attachments);
    let refused = match &context.remedy {
        Some(remedy) => format!(
            "not allowed by the options ({} would allow more)",
            harmless(remedy)
        ),
        None => "not allowed by the options".to_owned(),
    };
    let mut text = told(&[
        (of(|it| it.alive), "still there"),
        (of(|it| it.gone), "gone"),
        (of(|it| it.silent), "without a response from the server"),
        (of(|it| it.denied), "behind a sign-in"),
        (of(|it| it.refused), &refused),
        (of(|it| it.unasked), "not asked for"),
    ]);
    if context.has_archive && survey.probe.dead > 0 {
        text += &format!(
            "; the archive has {} and lacks {}",
            grouped(survey.probe.archived),
            grouped(survey.probe.lost)
        );
    }
    text
}

fn table(text: &mut String, survey: &Survey, group: SurveyGroup, has_archive: bool) {
    match group {
        SurveyGroup::Host => {
            let head = if has_archive {
                "pictures trackers references alive dead refused archived lost"
            } else {
                "pictures trackers references alive dead refused"
            };
            let columns = head.split(' ').count();
            let row = |it: &Host| it.probed().into_iter().take(columns).collect();
            named(text, ("host", head), &survey.hosts, Host::weight, row)
        }
        SurveyGroup::Type => {
            let head = "attachments bytes large large_bytes detachable detachable_bytes";
            let weight = |it: &Type| it.octets.max(1);
            let row = |it: &Type| it.columns().into_iter().take(6).collect();
            named(text, ("type", head), &survey.types, weight, row)
        }
        SurveyGroup::Sender => {
            let head = ("sender", "messages bytes");
            named(text, head, &survey.senders, |it| it.count, Amount::columns)
        }
        SurveyGroup::Year => {
            let head = "messages bytes attachments bytes pictures references";
            heading(text, "year", head);
            for (name, it) in survey.years.names() {
                line(text, &it.columns(), name);
            }
        }
        SurveyGroup::Outcome => {
            heading(text, "outcome", "rows");
            for (name, count) in survey.outcomes.classes() {
                line(text, &[count], name);
            }
        }
    }
}

fn named<C: TallyCounts>(
    text: &mut String,
    (group, head): (&str, &str),
    counts: &TallyNames<C>,
    weight: impl Fn(&C) -> u64,
    row: impl Fn(&C) -> Vec<u64>,
) {
    heading(text, group, head);
    let names = counts.heaviest(weight);
    for (name, counts) in names.iter().take(LINES) {
        line(text, &row(counts), name);
    }
    if let Some(more) = names.len().checked_sub(LINES).filter(|more| *more > 0) {
        *text += &format!("There are {more} more, which --json and --html list.\n");
    }
    if let Some(others) = counts.others() {
        line(text, &row(others), &format!("others, {}", bound()));
    }
}

fn heading(text: &mut String, group: &str, head: &str) {
    for word in head.split(' ') {
        *text += &format!("{word:>13}");
    }
    *text += &format!("  {group}\n");
}

fn line(text: &mut String, row: &[u64], name: &str) {
    for count in row {
        *text += &format!("{count:>13}");
    }
    *text += &format!("  {}\n", harmless(name));
}
