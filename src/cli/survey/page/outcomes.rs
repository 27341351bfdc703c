//! The sections about links, and about the outcome of each reference.

use super::super::sheet::SheetTable;
use super::super::steps::NextStep;
use super::super::words::{counted, either, grouped};
use super::ReportPage;
use crate::engine::report::Reason;

impl ReportPage<'_> {
    pub(super) fn links(&mut self) {
        let links = &self.survey.links;
        if links.unread == 0 {
            return;
        }
        self.sheet.fold("Links", "");
        self.sheet.say(&format!(
            "{} not be examined for links completely, because of {} charset, a damaged encoding or a limit.",
            counted(links.unread, "document could", "documents could"),
            either(links.unread, "its", "their"),
        ));
    }

    pub(super) fn outcomes(&mut self) {
        let survey = self.survey;
        if survey.outcomes.is_empty() {
            return;
        }
        self.sheet.fold("Each reference, for experts", "");
        self.sheet
            .say("This table counts what `embody convert` would do with each reference, with the options of this survey.");
        let rows: Vec<(String, Vec<String>)> = survey
            .outcomes
            .classes()
            .map(|(outcome, count)| (explained(outcome), vec![grouped(count)]))
            .collect();
        self.sheet.table(&SheetTable {
            heads: &["outcome", "count"],
            rows,
            more: 0,
        });
        self.sheet.step(&NextStep {
            title: "List them".to_owned(),
            words:
                "This step prints a line for each reference, with the message, the part and the reason."
                    .to_owned(),
            commands: self.context.reading("embody inspect --json"),
        });
    }
}

/// Returns the name of an outcome with an explanation of its reason.
fn explained(outcome: &str) -> String {
    let word = outcome.split_once(": ").map(|it| it.1);
    match word.and_then(|word| Reason::ALL.iter().find(|it| it.as_str() == word)) {
        Some(reason) => format!("{outcome} ({})", reason.meaning()),
        None => outcome.to_owned(),
    }
}
