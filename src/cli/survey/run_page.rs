//! The HTML page about a run: the content that was saved, the content that is lost, and the content that another run
//! may get.

use std::path::{Path, PathBuf};

use super::answer::Answer;
use super::findings::{Step, Tile};
use super::json::bound;
use super::repeated::Repeated;
use super::sheet::{BARS, Bar, ROWS, Sheet, Table, escaped, foreign};
use super::tally::{Amount, Counts as _, Fates, Named};
use super::words::{capitalized, counted, either, grouped, listed, quoted, size};
use crate::engine::policy::countable;
use crate::engine::report::{Kind, Outcome, Reason, Row};
use crate::link::url::Reference;
use crate::mailbox::Summary;

/// Maximum number of lost attachments that are listed.
const LISTED: usize = 50;

/// Counts of the references of a run, by their outcome.
#[derive(Default, Debug)]
pub(crate) struct RunTally {
    pictures: Amount,
    attachments: Amount,
    moved: Amount,
    restored: Amount,
    blanked: u64,
    links: u64,
    lost: What,
    again: What,
    denied: What,
    refused: What,
    trackers: u64,
    /// Number of references that were left unchanged for reasons that are in none of the other counts. The key is the
    /// reason.
    left: Named<u64>,
    lost_causes: Named<u64>,
    again_causes: Named<u64>,
    denied_causes: Named<u64>,
    /// Number of references that the policy refused, by the option that would allow them.
    remedies: Named<u64>,
    hosts: Named<Fates>,
    listed: Vec<Lost>,
}

#[derive(Clone, Copy, Default, Debug)]
struct What {
    pictures: u64,
    others: u64,
}

#[derive(Debug)]
struct Lost {
    mail: String,
    what: String,
    cause: String,
}

impl What {
    fn count(&mut self, row: &Row) {
        match row.kind {
            Kind::Embed => self.pictures += 1,
            _ => self.others += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.pictures += other.pictures;
        self.others += other.others;
    }

    fn sum(&self) -> u64 {
        self.pictures + self.others
    }

    /// Returns the counts as text: `3 pictures and 1 attachment`.
    fn words(&self) -> String {
        let mut words = Vec::new();
        if self.pictures > 0 {
            words.push(counted(self.pictures, "picture", "pictures"));
        }
        if self.others > 0 {
            words.push(counted(self.others, "attachment", "attachments"));
        }
        listed(&words)
    }
}

impl RunTally {
    /// Counts the rows of one message. `called` returns the name of the message.
    pub(crate) fn count(
        &mut self,
        rows: &[Row],
        called: impl Fn() -> String,
        remedy: impl Fn(&Row) -> Option<String>,
    ) {
        for row in rows {
            self.links += row.links.unwrap_or(0);
            if row.kind == Kind::Link {
                continue;
            }
            let octets = row.bytes.unwrap_or(0);
            let fate = match (row.outcome, row.kind) {
                (Outcome::Expanded, Kind::Embed) => {
                    self.pictures.count(octets);
                    Some(Answer::Alive)
                }
                (Outcome::Expanded, _) => {
                    self.attachments.count(octets);
                    Some(Answer::Alive)
                }
                (Outcome::Detached, _) => {
                    self.moved.count(octets);
                    None
                }
                (Outcome::Restored, _) => {
                    self.restored.count(octets);
                    None
                }
                (Outcome::Blanked, _) => {
                    self.blanked += 1;
                    None
                }
                (Outcome::Left, _) => self.left(row, &called, &remedy),
                _ => None,
            };
            let reference = Reference::split(row.url.as_deref().unwrap_or_default());
            let host = reference.site().and_then(|it| countable(it.host));
            if let (Some(host), Some(fate)) = (host, fate) {
                let fates = self.hosts.of(&host);
                match fate {
                    Answer::Alive => fates.saved += 1,
                    Answer::Gone => fates.lost += 1,
                    Answer::Silent | Answer::Limited => fates.again += 1,
                    _ => fates.left += 1,
                }
            }
        }
    }

    fn left(
        &mut self,
        row: &Row,
        called: impl Fn() -> String,
        remedy: impl Fn(&Row) -> Option<String>,
    ) -> Option<Answer> {
        if row.reason == Some(Reason::Tracker) {
            self.trackers += 1;
            return None;
        }
        let answer = Answer::of(row);
        let cause = cause(row);
        match answer {
            Answer::Gone => {
                self.lost.count(row);
                *self.lost_causes.exactly(cause.clone()) += 1;
            }
            Answer::Silent | Answer::Limited => {
                self.again.count(row);
                *self.again_causes.exactly(cause.clone()) += 1;
            }
            Answer::Denied => {
                self.denied.count(row);
                *self.denied_causes.exactly(cause.clone()) += 1;
            }
            Answer::Refused => {
                self.refused.count(row);
                let remedy = remedy(row).unwrap_or_else(|| cause.clone());
                *self.remedies.exactly(remedy) += 1;
            }
            Answer::Alive | Answer::Unasked => {
                *self.left.exactly(cause.clone()) += 1;
                return None;
            }
        }
        let is_lost = matches!(answer, Answer::Gone | Answer::Denied);
        if is_lost && row.kind != Kind::Embed && self.listed.len() < LISTED {
            let named = row.hosted.as_deref().and_then(|it| it.name.clone());
            self.listed.push(Lost {
                mail: called(),
                what: named.or_else(|| row.url.clone()).unwrap_or_default(),
                cause,
            });
        }
        Some(answer)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.pictures.add(&other.pictures);
        self.attachments.add(&other.attachments);
        self.moved.add(&other.moved);
        self.restored.add(&other.restored);
        self.blanked += other.blanked;
        self.links += other.links;
        self.trackers += other.trackers;
        self.lost.add(other.lost);
        self.again.add(other.again);
        self.denied.add(other.denied);
        self.refused.add(other.refused);
        self.left.add(other.left);
        self.lost_causes.add(other.lost_causes);
        self.again_causes.add(other.again_causes);
        self.denied_causes.add(other.denied_causes);
        self.remedies.add(other.remedies);
        self.hosts.add(other.hosts);
        let room = LISTED.saturating_sub(self.listed.len());
        self.listed.extend(other.listed.into_iter().take(room));
    }
}

/// Explains the reason of a row, with the status of the server.
fn cause(row: &Row) -> String {
    let Some(reason) = row.reason else {
        return "the content was not retrieved in this run".to_owned();
    };
    match (reason, row.status) {
        (Reason::HttpStatus, Some(404)) => {
            "the server does not have the file any more (404)".to_owned()
        }
        (Reason::HttpStatus, Some(410)) => "the server removed the file (410)".to_owned(),
        (Reason::HttpStatus | Reason::FtpStatus, Some(status)) => {
            format!("the server answered with status {status}")
        }
        (Reason::NameNotFound, _) => "the server does not exist any more".to_owned(),
        (Reason::NotAnImage | Reason::WebPage, _) => {
            "the server has a web page or something else in its place".to_owned()
        }
        (reason, _) => reason.meaning().to_owned(),
    }
}

/// Data about the run that is not in the rows of its report.
pub(crate) struct RunContext<'r> {
    /// The command: `embed`, `recover`, `convert`, `detach` or `restore`.
    pub verb: &'r str,
    pub sources: &'r [PathBuf],
    pub output: Option<&'r Path>,
    /// Options of the run, for the command that repeats it.
    pub repeated: Repeated,
    pub start: &'r str,
    pub is_stopped: bool,
}

impl RunContext<'_> {
    /// Returns the paths of the mailboxes that the run wrote. `None` if a path cannot be part of a command.
    fn results(&self) -> Option<Vec<String>> {
        let paths = match self.output {
            Some(output) => vec![output],
            None => self.sources.iter().map(PathBuf::as_path).collect(),
        };
        let names = paths.into_iter().map(|path| {
            let name = path.to_str().filter(|name| *name != "-")?;
            let is_harmless = crate::cli::say::harmless_within(name) == name;
            is_harmless.then(|| name.to_owned())
        });
        names.collect()
    }

    /// Returns the command that repeats the run, with the result of this run as its source.
    fn again(&self) -> Option<String> {
        let results = self.results()?;
        let names: Vec<String> = results.iter().map(|name| quoted(name)).collect();
        let (verb, options) = (self.verb, self.repeated.all());
        let names = names.join(" ");
        let to = match (self.output, results.as_slice()) {
            (Some(_), [name]) => format!("--output {}", quoted(&further(name))),
            _ => "--in-place".to_owned(),
        };
        Some(format!("embody {verb} {names} {to}{options}"))
    }

    /// Returns the command that compares the source with the result. Returns `None` for commands other than `embed`,
    /// because `compare` does not support each form of attachment that `recover` adds.
    fn compare(&self) -> Option<String> {
        if self.verb != "embed" {
            return None;
        }
        let output = self.output?.to_str().filter(|name| *name != "-")?;
        let [source] = self.sources else {
            return None;
        };
        let source = source.to_str().filter(|name| *name != "-")?;
        Some(format!(
            "embody compare {} {}",
            quoted(source),
            quoted(output)
        ))
    }
}

/// Returns the name for a further result: `kept.mbox` becomes `kept-2.mbox`.
fn further(name: &str) -> String {
    let path = Path::new(name);
    let file_name = path.file_name().map(|it| it.to_string_lossy());
    let file = file_name.as_deref().unwrap_or("mail");
    // All extensions are kept, so that the result is compressed like its source.
    let (stem, endings) = match file.split_once('.') {
        Some((stem, endings)) if !stem.is_empty() => (stem, format!(".{endings}")),
        _ => (file, String::new()),
    };
    let further = match stem
        .rsplit_once('-')
        .map(|(name, number)| (name, number.parse::<u32>()))
    {
        Some((name, Ok(number))) => format!("{name}-{}{endings}", number.saturating_add(1)),
        _ => format!("{stem}-2{endings}"),
    };
    path.with_file_name(further).display().to_string()
}

pub(crate) fn run_page(tally: &RunTally, summary: &Summary, context: &RunContext<'_>) -> String {
    let mut page = RunPage {
        sheet: Sheet::new(&format!("What embody {} did", context.verb)),
        tally,
        summary,
        context,
    };
    page.head();
    page.saved();
    page.lost();
    page.again();
    page.denied();
    page.refused();
    page.left();
    let made = &format!(
        "Written by embody {} on {}. 1 kB is 1000 bytes. <code>--report FILE</code> writes a line for each reference.",
        env!("CARGO_PKG_VERSION"),
        escaped(context.start.get(..10).unwrap_or(context.start)),
    );
    page.sheet.finish(made)
}

struct RunPage<'p> {
    sheet: Sheet,
    tally: &'p RunTally,
    summary: &'p Summary,
    context: &'p RunContext<'p>,
}

impl RunPage<'_> {
    fn head(&mut self) {
        let (tally, summary, context) = (self.tally, self.summary, self.context);
        let names = context.sources.iter().map(|source| {
            let name = source
                .file_name()
                .map(|it| it.to_string_lossy().into_owned());
            name.unwrap_or_else(|| source.display().to_string())
        });
        let names: Vec<String> = names.take(4).collect();
        let verb = format!("embody {}: {}", context.verb, listed(&names));
        self.sheet
            .add(&format!("<p class=\"over\">{}</p>", foreign(&verb)));
        self.sheet.add(&format!("<h1>{}</h1>", self.statement()));
        let mut facts = format!(
            "{}, {} changed.",
            counted(summary.messages, "message", "messages"),
            grouped(summary.changed)
        );
        let [before, after] = [summary.bytes_in, summary.bytes_out].map(size);
        if before != after {
            facts += &format!(" The mail had {before} and now has {after}.");
        }
        if context.is_stopped {
            facts += " The run was stopped before its end.";
        }
        self.sheet.note(&facts);
        let saved = tally.pictures.count + tally.attachments.count + tally.restored.count;
        let octets = tally.pictures.octets + tally.attachments.octets + tally.restored.octets;
        let mut tiles = Vec::new();
        for (count, words) in [
            (saved, format!("saved, {}", size(octets))),
            (
                tally.moved.count,
                format!("moved into the store, {}", size(tally.moved.octets)),
            ),
            (tally.blanked, "trackers removed".to_owned()),
            (tally.lost.sum(), "lost for good".to_owned()),
            (tally.again.sum(), "to try again".to_owned()),
        ] {
            if count > 0 {
                tiles.push(Tile {
                    number: grouped(count),
                    words,
                });
            }
        }
        tiles.truncate(3);
        self.sheet.tiles(&tiles);
        let again = context.again().filter(|_| tally.again.sum() > 0);
        let step = match (again, context.compare()) {
            (Some(command), _) => Some(Step {
                title: "Try again later".to_owned(),
                words: format!(
                    "{} had no usable response this time. This command retrieves only content that is still missing.",
                    capitalized(&tally.again.words())
                ),
                commands: vec![command],
            }),
            (None, Some(command)) => Some(Step {
                title: "Prove that nothing was lost".to_owned(),
                words: "This command checks that the new mailbox contains every message of the old mailbox. Keep the old mailbox until the check succeeds."
                    .to_owned(),
                commands: vec![command],
            }),
            (None, None) => None,
        };
        if let Some(step) = step {
            self.sheet.next_step(&step);
        }
    }

    fn statement(&self) -> String {
        let tally = self.tally;
        let now = |amount: Amount, one: &str, many: &str, where_to: &str| {
            let words = counted(amount.count, one, many);
            format!("{words} {} {where_to}", either(amount.count, "is", "are"))
        };
        let mut said = Vec::new();
        for (amount, one, many, place) in [
            (
                tally.attachments,
                "attachment",
                "attachments",
                "back in the mail",
            ),
            (
                tally.restored,
                "attachment",
                "attachments",
                "back in the mail",
            ),
            (
                tally.pictures,
                "picture",
                "pictures",
                "now part of the mail",
            ),
            (tally.moved, "attachment", "attachments", "now in the store"),
        ] {
            if amount.count > 0 {
                said.push(now(amount, one, many, place));
            }
        }
        if tally.blanked > 0 && said.is_empty() {
            let words = counted(tally.blanked, "tracker", "trackers");
            said.push(format!(
                "{words} {} removed",
                either(tally.blanked, "is", "are")
            ));
        }
        if tally.links > 0 && said.is_empty() {
            let words = counted(tally.links, "link", "links");
            said.push(format!(
                "{words} {} now",
                either(tally.links, "works", "work")
            ));
        }
        if tally.lost.sum() > 0 {
            let words = if said.is_empty() {
                tally.lost.words()
            } else {
                grouped(tally.lost.sum())
            };
            said.push(format!(
                "{words} {} lost for good",
                either(tally.lost.sum(), "is", "are")
            ));
        }
        if said.is_empty() {
            "Nothing was changed.".to_owned()
        } else {
            format!("{}.", listed(&said))
        }
    }

    fn saved(&mut self) {
        let tally = self.tally;
        let mut rows = Vec::new();
        for (amount, what) in [
            (tally.pictures, "Pictures that are part of the mail now"),
            (tally.attachments, "Attachments that are back in the mail"),
            (tally.restored, "Attachments that came back from the store"),
            (tally.moved, "Attachments that were moved into the store"),
        ] {
            if amount.count > 0 {
                rows.push((
                    what.to_owned(),
                    vec![grouped(amount.count), size(amount.octets)],
                ));
            }
        }
        for (count, what) in [
            (
                tally.blanked,
                "Trackers that were replaced by an empty picture",
            ),
            (tally.links, "Links that work now"),
        ] {
            if count > 0 {
                rows.push((what.to_owned(), vec![grouped(count), String::new()]));
            }
        }
        if rows.is_empty() {
            return;
        }
        self.sheet.heading("What was done");
        self.sheet.table(&Table {
            heads: &["what", "how many", "size"],
            rows,
            more: 0,
        });
        if tally.trackers > 0 {
            self.sheet.note(&format!(
                "{} not retrieved: a request for {} would tell the sender that the mail was read.",
                counted(tally.trackers, "tracker was", "trackers were"),
                either(tally.trackers, "it", "them"),
            ));
        }
        self.hosts();
    }

    fn hosts(&mut self) {
        let hosts = &self.tally.hosts;
        let bars: Vec<Bar> = hosts
            .heaviest(Fates::sum)
            .into_iter()
            .take(BARS)
            .map(|(name, it)| {
                let mut words = Vec::new();
                for (count, word) in [
                    (it.saved, "saved"),
                    (it.lost, "lost"),
                    (it.again, "to try again"),
                    (it.left, "unchanged"),
                ] {
                    if count > 0 {
                        words.push(format!("{} {word}", grouped(count)));
                    }
                }
                Bar {
                    name: name.to_owned(),
                    value: it.sum(),
                    part: it.sum() - it.saved,
                    words: words.join(", "),
                }
            })
            .collect();
        if !bars.is_empty() {
            self.sheet.add("<h3>Servers</h3>");
            self.sheet.bars("Pictures and attachments by server", &bars);
        }
    }

    fn causes(&mut self, head: &str, causes: &Named<u64>) {
        let names = causes.heaviest(|it| *it);
        let mut rows: Vec<(String, Vec<String>)> = names
            .iter()
            .take(ROWS)
            .map(|(name, count)| (capitalized(name), vec![grouped(**count)]))
            .collect();
        if let Some(count) = causes.others() {
            rows.push((format!("Others, {}", bound()), vec![grouped(*count)]));
        }
        self.sheet.table(&Table {
            heads: &[head, "how many"],
            rows,
            more: names.len().saturating_sub(ROWS),
        });
    }

    fn lost(&mut self) {
        let tally = self.tally;
        if tally.lost.sum() == 0 {
            return;
        }
        self.sheet.heading("Lost for good");
        self.sheet.say(&format!(
            "{} {} not on the web any more. The mail keeps the address, and `--archive` looks in a web archive.",
            capitalized(&tally.lost.words()),
            either(tally.lost.sum(), "is", "are"),
        ));
        self.causes("why", &tally.lost_causes);
        if tally.listed.is_empty() {
            return;
        }
        self.sheet.add("<h3>Attachments</h3>");
        let mut html = String::from("<ul class=\"list\">");
        for it in &tally.listed {
            html += &format!(
                "\n<li><div><b>{}</b><span>{}; {}</span></div></li>",
                foreign(&it.what),
                foreign(&it.mail),
                escaped(&it.cause)
            );
        }
        html += "</ul>";
        self.sheet.add(&html);
        let more =
            (tally.lost.others + tally.denied.others).saturating_sub(tally.listed.len() as u64);
        if more > 0 {
            self.sheet.note(&format!(
                "There are {} more. `--report FILE` lists all of them.",
                grouped(more)
            ));
        }
    }

    fn again(&mut self) {
        let tally = self.tally;
        if tally.again.sum() > 0 {
            self.sheet.heading("To try again");
            self.causes("why", &tally.again_causes);
        }
    }

    fn denied(&mut self) {
        let tally = self.tally;
        if tally.denied.sum() > 0 {
            self.sheet.heading("Behind a sign-in");
            self.sheet.say(&format!(
                "{} can be retrieved only with a login. `--resolver` names a program that retrieves files with your login.",
                capitalized(&tally.denied.words())
            ));
            self.causes("why", &tally.denied_causes);
        }
    }

    fn refused(&mut self) {
        let tally = self.tally;
        if tally.refused.sum() > 0 {
            self.sheet.heading("Not allowed by the options");
            self.sheet.say(&format!(
                "{} {} not changed because of the options of this run.",
                capitalized(&tally.refused.words()),
                either(tally.refused.sum(), "was", "were"),
            ));
            self.causes("what would allow it", &tally.remedies);
        }
    }

    fn left(&mut self) {
        if self.tally.left.names().next().is_some() {
            self.sheet.heading("Left as it was");
            self.causes("why", &self.tally.left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_another_run_has_a_name_of_its_own() {
        for (name, expected) in [
            ("kept.mbox", "kept-2.mbox"),
            ("/a/kept-2.mbox.gz", "/a/kept-3.mbox.gz"),
            ("Mail", "Mail-2"),
            (".mail", ".mail-2"),
            ("a-b", "a-b-2"),
        ] {
            assert_eq!(further(name), expected);
        }
    }
}
