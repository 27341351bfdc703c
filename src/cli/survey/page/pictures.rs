//! The sections about pictures and trackers.

use super::super::super::args::SurveyGroup;
use super::super::numbers;
use super::super::sheet::{BARS, Bar};
use super::super::tally::{Answers, Host};
use super::super::words::{counted, either, grouped, listed};
use super::{ReportPage, short, tail, told};

impl ReportPage<'_> {
    pub(super) fn pictures(&mut self) {
        let (survey, context) = (self.survey, self.context);
        let pictures = &survey.pictures;
        let mut kinds = Vec::new();
        for (count, one, many) in [
            (pictures.remote, "is on the web", "are on the web"),
            (pictures.in_mail, "is in the mail", "are in the mail"),
            (
                pictures.missing,
                "is missing, because the mail does not contain the part with this picture",
                "are missing, because the mail does not contain the parts with these pictures",
            ),
            (
                pictures.data,
                "is written into the HTML",
                "are written into the HTML",
            ),
            (
                pictures.elsewhere,
                "has a URL that cannot be retrieved, such as a file: URL or a relative URL without a base URL",
                "have URLs that cannot be retrieved, such as file: URLs or relative URLs without a base URL",
            ),
        ] {
            if count > 0 {
                kinds.push(format!("{} {}", grouped(count), either(count, one, many)));
            }
        }
        if kinds.is_empty() {
            return;
        }
        let all = pictures.remote
            + pictures.in_mail
            + pictures.missing
            + pictures.data
            + pictures.elsewhere;
        self.sheet.fold("Pictures", &grouped(all));
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
        let bars: Vec<Bar> = numbers::heaviest_hosts(survey)
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
                        _ => format!(
                            "{}, {} not available",
                            grouped(host.pictures),
                            grouped(gone)
                        ),
                    },
                }
            })
            .collect();
        if !bars.is_empty() {
            self.sheet.add("<h3>Servers of pictures</h3>");
        }
        self.sheet.bars("Pictures by server", &bars);
        if context.by.contains(&SurveyGroup::Host) || context.is_probed {
            self.hosts();
        }
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
                let dead = answers.gone;
                Bar {
                    name: year.to_string(),
                    value: answers.asked(),
                    part: dead,
                    words: format!(
                        "{year}: {}, {} of them not available",
                        counted(answers.asked(), "picture", "pictures"),
                        grouped(dead)
                    ),
                }
            })
            .collect();
        let most = columns.iter().map(|it| it.value).max().unwrap_or(0);
        if columns.len() > 1 {
            self.sheet
                .key("requested pictures", "pictures that are not available");
        }
        let most = grouped(most);
        self.sheet
            .columns("Existing and missing pictures by year", &most, &columns);
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

    pub(super) fn trackers(&mut self) {
        let survey = self.survey;
        let count = survey.pictures.trackers;
        if count == 0 {
            return;
        }
        let companies = numbers::companies(survey);
        self.sheet.fold("Trackers", &grouped(count));
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
    }
}
