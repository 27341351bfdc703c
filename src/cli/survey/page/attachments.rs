//! Sections about attachments that are missing in the mail, and about those that are in it.

use super::super::super::tally::TallyCounts as _;
use super::super::json::bound;
use super::super::missing::{self, RecoveryWay};
use super::super::sheet::{BARS, Bar, ROWS, SheetTable};
use super::super::tally::Type;
use super::super::words::{capitalized, class, counted, either, grouped, size, type_words};
use super::{ReportPage, short, told};

impl ReportPage<'_> {
    pub(super) fn missing(&mut self) {
        let (survey, context) = (self.survey, self.context);
        if survey.missing.is_empty() {
            return;
        }
        let all: u64 = survey.missing.classes().map(|(_, count)| count).sum();
        let packed = missing::sum(
            &survey.missing,
            &[RecoveryWay::Packed, RecoveryWay::Unopened],
        );
        let title = match packed {
            0 => "Attachments that are not in the mail",
            _ if packed == all => "Parts that most mail programs cannot open",
            _ => "Attachments that are not in the mail, or that most mail programs cannot open",
        };
        self.sheet.fold(title, &grouped(all));
        let ways: [(RecoveryWay, &str); 14] = [
            (
                RecoveryWay::Here,
                "in a file next to the mailbox, or in the mail",
            ),
            (RecoveryWay::Web, "on a server"),
            (RecoveryWay::Ftp, "on an FTP server"),
            (RecoveryWay::Directory, "in a directory of a computer"),
            (RecoveryWay::Store, "in a store of embody"),
            (RecoveryWay::Link, "in cloud storage, linked in the text"),
            (RecoveryWay::Shortcut, "at a web address, linked by a file"),
            (
                RecoveryWay::Text,
                "in cloud storage, linked in a plain text, which embody does not follow",
            ),
            (
                RecoveryWay::Doubtful,
                "on a server, if the note belongs to this mail",
            ),
            (
                RecoveryWay::Packed,
                "in the mail, in a format that most mail programs cannot open",
            ),
            (
                RecoveryWay::Unopened,
                "in the mail, in a part that embody cannot open, such as a damaged part",
            ),
            (RecoveryWay::Piece, "in other mails"),
            (
                RecoveryWay::Protected,
                "referred to in a signed or encrypted part, which embody leaves unchanged",
            ),
            (RecoveryWay::Never, "nowhere"),
        ];
        let mut rows: Vec<(u64, String, Vec<String>)> = Vec::new();
        for (way, place) in ways {
            let of = survey.missing.classes().filter(|(key, _)| key.0 == way);
            for ((_, names), count) in of {
                let name = capitalized(names.many);
                rows.push((count, name, vec![grouped(count), place.to_owned()]));
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        self.sheet.table(&SheetTable {
            heads: &["attachments", "count", "place"],
            rows: rows.into_iter().map(|(_, name, it)| (name, it)).collect(),
            more: 0,
        });
        let answers = &survey.answers.attachments;
        if context.is_probed && answers.asked() > 0 {
            self.sheet.say(&told(answers, "file", "files"));
        }
        let directory = missing::sum(&survey.missing, &[RecoveryWay::Directory]);
        if directory > 0 {
            self.sheet.say(&format!(
                "If you have the {} that {} saved to, add `--attachments DIRECTORY` to `embody recover`.",
                either(directory, "directory", "directories"),
                either(directory, "the file was", "the files were"),
            ));
        }
        if directory == 0 && survey.in_directories > 0 {
            self.sheet.say("If you have files of these attachments, add `--attachments DIRECTORY` to `embody recover`.");
        }
        self.servers_of_attachments();
    }

    fn servers_of_attachments(&mut self) {
        let hosts = self.survey.hosts.heaviest(|it| it.references);
        let bars: Vec<Bar> = hosts
            .into_iter()
            .filter(|(_, it)| it.references > 0)
            .take(BARS)
            .map(|(name, it)| Bar {
                name: short(name),
                value: it.references,
                part: 0,
                words: grouped(it.references),
            })
            .collect();
        if !bars.is_empty() {
            self.sheet.add("<h3>Servers of these attachments</h3>");
        }
        self.sheet.bars("Missing attachments by server", &bars);
    }

    pub(super) fn attachments(&mut self) {
        let survey = self.survey;
        let shown = survey.shown();
        let all = survey.attachments;
        if all.count == 0 {
            return;
        }
        let facts = format!("{}, {}", grouped(all.count), size(all.octets));
        self.sheet.fold("Attachments in the mail", &facts);
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
        self.sheet.table(&SheetTable {
            heads: &["type", "attachments", "size", &large, "shown in the text"],
            rows,
            more,
        });
    }
}
