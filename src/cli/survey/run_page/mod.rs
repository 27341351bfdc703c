//! The HTML page about a run: the content that was saved, the content that is lost, and the content that another run
//! may get.

mod context;
mod tally;

pub(crate) use self::context::{RunContext, further_name};
pub(crate) use self::tally::RunTally;
use self::tally::{LossClass, LossTally, RunClass};
use super::super::tally::Amount;
use super::findings::Tile;
use super::json::bound;
use super::sheet::{BARS, Bar, ROWS, Sheet, SheetTable, escaped, foreign};
use super::steps::NextStep;
use super::tally::Fates;
use super::words::{capitalized, counted, either, grouped, listed, size};
use crate::mailbox::Summary;

pub(crate) fn run_page(tally: &RunTally, summary: &Summary, context: &RunContext<'_>) -> String {
    let mut page = RunPage {
        sheet: Sheet::new(&format!("Results of embody {}", context.verb)),
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
        let to_retry = tally.loss(LossClass::Again);
        let pictures = tally.amount(RunClass::Picture);
        let attachments = tally.amount(RunClass::Attachment);
        let restored = tally.amount(RunClass::Restored);
        let moved = tally.amount(RunClass::Moved);
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
        if let Some(url) = context.thumbnail.as_ref().filter(|_| pictures.count > 0) {
            self.sheet.picture(url, "A picture that this run saved");
        }
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
        let saved = pictures.count + attachments.count + restored.count;
        let octets = pictures.octets + attachments.octets + restored.octets;
        let mut tiles = Vec::new();
        for (count, words) in [
            (saved, format!("saved, {}", size(octets))),
            (
                moved.count,
                format!("moved into the store, {}", size(moved.octets)),
            ),
            (
                tally.number(RunClass::Blanked),
                "trackers removed".to_owned(),
            ),
            (
                tally.loss(LossClass::Lost).sum(),
                "no longer available".to_owned(),
            ),
            (to_retry.sum(), "to try again".to_owned()),
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
        let again = context.again().filter(|_| to_retry.sum() > 0);
        let step = match (again, context.proofs) {
            (Some(command), _) => Some(NextStep {
                title: "Try again later".to_owned(),
                words: if tally.has_no_response {
                    "No server responded, so the network was probably down. Check the network connection and the option `--proxy`. This command retrieves only content that is still missing.".to_owned()
                } else {
                    format!(
                        "{} had no usable response this time. This command retrieves only content that is still missing.",
                        capitalized(&to_retry.words())
                    )
                },
                commands: vec![command],
            }),
            (None, []) => None,
            (None, proofs) => Some(NextStep {
                title: "Prove that nothing was lost".to_owned(),
                words: "This step checks that the new mailbox contains every message of the old mailbox. Keep the old mailbox until the check succeeds."
                    .to_owned(),
                commands: proofs.to_vec(),
            }),
        };
        if let Some(step) = step {
            self.sheet.next_step(&step);
        }
    }

    fn statement(&self) -> String {
        let tally = self.tally;
        let lost = tally.loss(LossClass::Lost);
        let blanked = tally.number(RunClass::Blanked);
        let links = tally.number(RunClass::Link);
        let now = |amount: Amount, one: &str, many: &str, where_to: &str| {
            let words = counted(amount.count, one, many);
            format!("{words} {} {where_to}", either(amount.count, "is", "are"))
        };
        let mut said = Vec::new();
        for (amount, one, many, place) in [
            (
                tally.amount(RunClass::Attachment),
                "attachment",
                "attachments",
                "back in the mail",
            ),
            (
                tally.amount(RunClass::Restored),
                "attachment",
                "attachments",
                "back in the mail",
            ),
            (
                tally.amount(RunClass::Picture),
                "picture",
                "pictures",
                "now part of the mail",
            ),
            (
                tally.amount(RunClass::Moved),
                "attachment",
                "attachments",
                "now in the store",
            ),
        ] {
            if amount.count > 0 {
                said.push(now(amount, one, many, place));
            }
        }
        if blanked > 0 && said.is_empty() {
            let words = counted(blanked, "tracker", "trackers");
            said.push(format!("{words} {} removed", either(blanked, "is", "are")));
        }
        if links > 0 && said.is_empty() {
            let words = counted(links, "link", "links");
            said.push(format!("{words} {} now", either(links, "works", "work")));
        }
        if lost.sum() > 0 {
            let words = if said.is_empty() {
                lost.words()
            } else {
                grouped(lost.sum())
            };
            said.push(format!(
                "{words} {} no longer available",
                either(lost.sum(), "is", "are")
            ));
        }
        match (tally.has_no_response, said.is_empty()) {
            (true, true) => "No server responded, so nothing was changed.".to_owned(),
            (true, false) => format!("No server responded. {}.", listed(&said)),
            (false, true) => "Nothing was changed.".to_owned(),
            (false, false) => format!("{}.", listed(&said)),
        }
    }

    fn saved(&mut self) {
        let tally = self.tally;
        let trackers = tally.number(RunClass::Tracker);
        let mut rows = Vec::new();
        for (amount, what) in [
            (
                tally.amount(RunClass::Picture),
                "Pictures that are part of the mail now",
            ),
            (
                tally.amount(RunClass::Attachment),
                "Attachments that are back in the mail",
            ),
            (
                tally.amount(RunClass::Restored),
                "Attachments that came back from the store",
            ),
            (
                tally.amount(RunClass::Moved),
                "Attachments that were moved into the store",
            ),
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
                tally.number(RunClass::Blanked),
                "Trackers that were replaced by an empty picture",
            ),
            (tally.number(RunClass::Link), "Links that work now"),
        ] {
            if count > 0 {
                rows.push((what.to_owned(), vec![grouped(count), String::new()]));
            }
        }
        if rows.is_empty() {
            return;
        }
        self.sheet.heading("Changes");
        self.sheet.table(&SheetTable {
            heads: &["change", "count", "size"],
            rows,
            more: 0,
        });
        if trackers > 0 {
            self.sheet.note(&format!(
                "{} not retrieved: a request for {} would tell the sender that the mail was read.",
                counted(trackers, "tracker was", "trackers were"),
                either(trackers, "it", "them"),
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
                    (it.lost, "gone"),
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
            if bars.iter().any(|bar| bar.part > 0) {
                self.sheet.key("saved", "not saved");
            }
            self.sheet.bars("Pictures and attachments by server", &bars);
        }
    }

    fn causes(&mut self, head: &str, loss: LossClass) {
        let Some(causes) = self.tally.causes(loss) else {
            return;
        };
        let names = causes.heaviest(|it| *it);
        let mut rows: Vec<(String, Vec<String>)> = names
            .iter()
            .take(ROWS)
            .map(|(name, count)| (capitalized(name), vec![grouped(**count)]))
            .collect();
        if let Some(count) = causes.others() {
            rows.push((format!("Others, {}", bound()), vec![grouped(*count)]));
        }
        self.sheet.table(&SheetTable {
            heads: &[head, "count"],
            rows,
            more: names.len().saturating_sub(ROWS),
        });
    }

    fn lost(&mut self) {
        let tally = self.tally;
        let lost = tally.loss(LossClass::Lost);
        if lost.sum() == 0 {
            return;
        }
        self.sheet.heading("No longer available");
        self.sheet.say(&format!(
            "{} {} no longer available: the server or file does not exist any more, or has other content. The mail keeps the reference.",
            capitalized(&lost.words()),
            either(lost.sum(), "is", "are"),
        ));
        self.causes("why", LossClass::Lost);
        if let Some(step) = self.archive() {
            self.sheet.step(&step);
        }
        self.attachments(&tally.listed, lost.others);
    }

    /// Lists missing attachments. `all` is their total number, which can be larger than the list.
    fn attachments(&mut self, listed: &[LossTally], all: u64) {
        if listed.is_empty() {
            return;
        }
        self.sheet.add("<h3>Attachments</h3>");
        let mut html = String::from("<ul class=\"list\">");
        for it in listed {
            html += &format!(
                "\n<li><div><b>{}</b><span>{}; {}</span></div></li>",
                foreign(&it.what),
                foreign(&it.mail),
                escaped(&it.cause)
            );
        }
        html += "</ul>";
        self.sheet.add(&html);
        let more = all.saturating_sub(listed.len() as u64);
        if more > 0 {
            self.sheet.note(&format!(
                "There are {} more attachments. `--report FILE` lists all of them.",
                grouped(more)
            ));
        }
    }

    /// Returns the step that recommends a web archive for lost content, if the run used none.
    fn archive(&self) -> Option<NextStep> {
        let lost = self.tally.loss(LossClass::Lost);
        let command = self.context.archived().filter(|_| lost.sum() > 0)?;
        Some(NextStep {
            title: "Look in a web archive for the content that is gone".to_owned(),
            words: format!(
                "The servers no longer have {}. This step asks the Wayback Machine, which learns the URLs of this content.",
                lost.words()
            ),
            commands: vec![command],
        })
    }

    fn again(&mut self) {
        let tally = self.tally;
        if tally.loss(LossClass::Again).sum() > 0 {
            self.sheet.heading("To try again");
            self.causes("why", LossClass::Again);
        }
    }

    fn denied(&mut self) {
        let tally = self.tally;
        let denied = tally.loss(LossClass::Denied);
        if denied.sum() > 0 {
            self.sheet.heading("Behind a sign-in");
            self.sheet.say(&format!(
                "{} can be retrieved only with a login. Open {} in a browser in which you are signed in. `--resolver` names a program that retrieves files with your login.",
                capitalized(&denied.words()),
                either(denied.sum(), "its link", "their links"),
            ));
            self.causes("why", LossClass::Denied);
            self.attachments(&tally.listed_denied, denied.others);
        }
    }

    fn refused(&mut self) {
        let tally = self.tally;
        let refused = tally.loss(LossClass::Refused);
        if refused.sum() > 0 {
            self.sheet.heading("Not allowed by the options");
            self.sheet.say(&format!(
                "{} {} not changed because of the options of this run.",
                capitalized(&refused.words()),
                either(refused.sum(), "was", "were"),
            ));
            self.causes("what would allow it", LossClass::Refused);
        }
    }

    fn left(&mut self) {
        if self.tally.loss(LossClass::Left).sum() > 0 {
            self.sheet.heading("Left as it was");
            self.causes("why", LossClass::Left);
        }
    }
}
