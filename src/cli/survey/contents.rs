//! What the page of a survey says of attachments and pictures, and what to do with them.

use super::sheet::{Bar, Page, escaped, grouped, lying};
use super::tally::{Counts, Host, Named, Type};
use super::text::{class, option_size, size};

const BARS: usize = 12;

impl Page<'_> {
    pub(super) fn attachments(&mut self) {
        let survey = self.survey;
        let detach = &survey.detach;
        let large = option_size(self.looked.larger_than);
        let shown = survey.shown();
        self.add("<h2>Attachments</h2>");
        self.add(&format!(
            "<p>{} attachments have {} in the mail, as they are encoded there. {} more, with {}, are pictures and the like that the mail itself shows; they are counted apart below. Of all of these, those of {large} and more are {}, with {}.</p>",
            grouped(survey.attachments.count.saturating_sub(shown.count)),
            size(survey.attachments.octets.saturating_sub(shown.octets)),
            grouped(shown.count), size(shown.octets),
            grouped(detach.large.count), size(detach.large.octets)
        ));
        let classes = survey.sizes.iter().zip(&survey.inline).enumerate();
        let sizes = classes.map(|(number, (all, inline))| {
            let octets = all.octets.saturating_sub(inline.octets);
            let count = grouped(all.count.saturating_sub(inline.count));
            Bar {
                name: class(number),
                value: octets,
                said: format!("{} in {count}", size(octets)),
            }
        });
        self.add(&lying("Attachments by size", &sizes.collect::<Vec<Bar>>()));
        if detach.leave.count > 0 {
            let (objects, duplicates) = (detach.objects(), detach.contents.repeated);
            let saves = u64::try_from(detach.saves).unwrap_or(0);
            let store = self.looked.storing();
            let command = format!("embody detach --larger-than {large} {store}");
            let command = self.looked.commands(&command, "detach");
            self.act(
                &format!(
                    "This moves {} attachments into a store, and the mail is {} smaller. The store holds {} objects of {}; {} duplicates of {} are stored once. Mail and store together are {} less than the mail now. <code>--dry-run</code> besides tries it, <code>embody restore</code> puts every byte back.",
                    grouped(detach.leave.count), size(saves),
                    grouped(objects.count), size(objects.octets), grouped(duplicates.count), size(duplicates.octets),
                    size(saves.saturating_sub(objects.octets))
                ),
                &command,
            );
        } else {
            self.add("<p>None of them would leave: there is nothing for <code>embody detach</code> to do.</p>");
        }
        if detach.shown_inline.count > 0 {
            self.add(&format!(
                "<p>{} more are shown by the mail itself, with {}: its HTML refers to them, or they stand beside it. They stay, because a reader would miss them; <code>--inline</code> moves them as well.</p>",
                grouped(detach.shown_inline.count), size(detach.shown_inline.octets)
            ));
        }
        if !detach.stay.is_empty() {
            let said = |(why, count): (&&str, &u64)| {
                format!("{} <code>{}</code>", grouped(*count), escaped(why))
            };
            let stay: Vec<String> = detach.stay.iter().map(said).collect();
            self.add(&format!("<p>The others stay in the mail: {}. docs/reasons.md says what these words mean.</p>", stay.join(", ")));
        }
        let apart = |it: &Type| it.octets.saturating_sub(it.inline_octets);
        let bars = bars(&survey.types, apart, |it| size(apart(it)));
        if !bars.is_empty() {
            self.add("<h2>Attachments by type</h2>");
            self.add("<p>By what the mail calls them. With <code>--type</code>, <code>detach</code> takes only some: <code>--type 'video/*'</code>.</p>");
            self.add(&lying("Attachments by type", &bars));
        }
        let heads = "type, attachments, size, of these shown by the mail, their size, large ones, their size, would leave";
        let row = |it: &Type| {
            vec![
                grouped(it.attachments),
                size(it.octets),
                grouped(it.inline),
                size(it.inline_octets),
                grouped(it.large),
                size(it.large_octets),
                grouped(it.leave),
            ]
        };
        self.table(heads, &survey.types, |it| it.octets, row);
    }

    pub(super) fn pictures(&mut self) {
        let survey = self.survey;
        let pictures = &survey.pictures;
        self.add("<h2>Pictures</h2>");
        self.add(&format!(
            "<p>HTML in the mail shows {} pictures from the web, {} from the mail itself, {} in data: URLs of {}, and {} from nowhere that can be reached. {} more are trackers, which are never asked for unless one says so. A picture that is shown twice counts twice.</p>",
            grouped(pictures.remote), grouped(pictures.in_mail), grouped(pictures.data), size(pictures.data_octets), grouped(pictures.elsewhere), grouped(pictures.trackers)
        ));
        if pictures.remote > 0 {
            self.act(
                "This retrieves the pictures from the web and makes them part of the mail, and those of data: URLs too, as long as their servers are there. Add <code>--probe</code> to <code>embody inspect</code> to ask first which are alive.",
                &self.looked.commands("embody embed", "embed"),
            );
        }
        if pictures.data > 0 {
            self.act(
                "This makes the pictures of data: URLs attachments, which every mail program shows. It asks nobody.",
                &self.looked.commands("embody convert --embed data", "embed-data"),
            );
        }
        if pictures.trackers > 0 {
            let command = "embody convert --embed remote --trackers blank";
            self.act(
                "This puts one empty picture in the place of all trackers, so that none of them is told when the mail is opened. It needs no network.",
                &self.looked.commands(command, "blank"),
            );
        }
        let bars = bars(&survey.hosts, |it| it.pictures, |it| grouped(it.pictures));
        if survey.hosts.names().next().is_some() {
            self.add("<h2>Hosts</h2>");
            self.add("<p>Whom the mail refers to. <code>--deny-host NAME</code> asks one of them never, <code>--allow-host NAME</code> only that one.</p>");
            if !bars.is_empty() {
                self.add(&lying("Pictures by host", &bars));
            }
        }
        let mut heads = "host, pictures, trackers, references".to_owned();
        if self.looked.is_probed {
            heads += ", alive, dead, refused";
            if self.looked.has_archive {
                heads += ", in the archive, lost";
            }
        }
        let columns = heads.matches(", ").count();
        let row = |it: &Host| it.probed().into_iter().take(columns).map(grouped).collect();
        self.table(&heads, &survey.hosts, Host::weight, row);
    }
}

pub(super) fn bars<C: Counts>(
    counts: &Named<C>,
    weight: impl Fn(&C) -> u64,
    said: impl Fn(&C) -> String,
) -> Vec<Bar> {
    let heaviest = counts.heaviest(&weight);
    let bar = |(name, it): &(&str, &C)| Bar {
        name: (*name).to_owned(),
        value: weight(it),
        said: said(it),
    };
    heaviest.iter().take(BARS).map(bar).collect()
}
