//! The survey in lines, for a person at a terminal.

use super::super::say::harmless;
use super::json::bound;
use super::looked::{Group, Looked};
use super::sum::{SIZES, Survey, day};
use super::tally::{Amount, Counts, Host, Named, Type};

const LINES: usize = 40;

/// Octets in the units that options take, powers of 1024.
pub fn size(octets: u64) -> String {
    for (power, name) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let (whole, rest) = (octets >> power, octets % (1 << power));
        if whole > 0 {
            // One digit behind the point, cut and not rounded: it is never more than there is.
            return format!("{whole}.{} {name}", (rest * 10) >> power);
        }
    }
    format!("{octets} bytes")
}

pub(super) fn option_size(octets: u64) -> String {
    for (unit, letter) in [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")] {
        if octets > 0 && octets.is_multiple_of(unit) {
            return format!("{}{letter}", octets / unit);
        }
    }
    octets.to_string()
}

pub(super) fn class(number: usize) -> String {
    let from = SIZES.get(number).copied().unwrap_or_default();
    let short = |octets| size(octets).replace(".0 ", " ");
    match SIZES.get(number + 1) {
        Some(to) if from == 0 => format!("less than {}", short(*to)),
        Some(to) => format!("{} to {}", short(from), short(*to)),
        None => format!("{} and more", short(from)),
    }
}

pub fn lines(survey: &Survey, looked: &Looked<'_>) -> String {
    let mut text = String::new();
    let dates = &survey.dates;
    let [first, last] = [dates.first, dates.last].map(|date| date.map_or("-".to_owned(), day));
    text += &format!(
        "dates        {first} to {last}; {} messages without a date, {} with an unusable one\n",
        dates.missing, dates.insane
    );
    if survey.attachments.count > 0 {
        attachments(&mut text, survey, looked);
    }
    let repeated = survey.copies.repeated;
    if repeated.count > 0 {
        let (count, octets) = (repeated.count, size(repeated.octets));
        text += &format!(
            "repeated     {count} messages, with {octets}, of which an equal one stands elsewhere\n"
        );
    }
    let pictures = &survey.pictures;
    let shown = pictures.remote + pictures.in_mail + pictures.data + pictures.elsewhere;
    if shown + pictures.trackers > 0 {
        text += &format!(
            "pictures     {} from the web, {} in the mail, {} in data: URLs of {} bytes, {} elsewhere; {} trackers\n",
            pictures.remote,
            pictures.in_mail,
            pictures.data,
            pictures.data_octets,
            pictures.elsewhere,
            pictures.trackers
        );
    }
    let links = &survey.links;
    if links.documents > 0 {
        text += &format!(
            "links        {} in {} documents; {} are relative: {} have a base, {} mean a part of the mail\n",
            links.count, links.documents, links.relative, links.with_base, links.to_parts
        );
    }
    if links.unread > 0 {
        text += &format!(
            "             {} documents could not be read, or not wholly\n",
            links.unread
        );
    }
    if survey.references > 0 {
        references(&mut text, survey);
    }
    if looked.is_probed {
        let probe = &survey.probe;
        text += &format!(
            "probe        {} alive, {} dead, {} refused by the policy, {} not asked\n",
            probe.alive, probe.dead, probe.refused, probe.unasked
        );
        if looked.has_archive {
            text += &format!(
                "             of the dead, {} are in the archive and {} are lost\n",
                probe.archived, probe.lost
            );
        }
    }
    for group in looked.by {
        table(&mut text, survey, *group, looked.has_archive);
    }
    text
}

fn attachments(text: &mut String, survey: &Survey, looked: &Looked<'_>) {
    let all = survey.attachments;
    let (shown, octets) = (survey.shown(), size(all.octets));
    *text += &format!("attachments  {} of {octets}", all.count);
    if shown.count > 0 {
        let octets = size(shown.octets);
        *text += &format!("; the mail itself shows {}, with {octets}", shown.count);
    }
    text.push('\n');
    let detach = &survey.detach;
    let larger_than = option_size(looked.larger_than);
    if detach.large.count == 0 {
        *text += &format!("detach       none of at least {larger_than}\n");
        return;
    }
    *text += &format!(
        "detach       {} of at least {larger_than}, with {}; {} would leave the mail, with {}\n",
        detach.large.count,
        size(detach.large.octets),
        detach.leave.count,
        size(detach.leave.octets)
    );
    let (objects, duplicates) = (detach.objects(), detach.contents.repeated);
    *text += &format!(
        "             the store would hold {} objects of {} bytes; {} are duplicates, {} bytes; the mail would be {} bytes smaller\n",
        objects.count, objects.octets, duplicates.count, duplicates.octets, detach.saves
    );
    if detach.shown_inline.count > 0 {
        let (count, octets) = (detach.shown_inline.count, size(detach.shown_inline.octets));
        *text += &format!(
            "             the mail shows {count} more, with {octets}, which stay: --inline moves them as well\n"
        );
    }
    let stay = detach.stay.iter();
    let stay: Vec<String> = stay.map(|(why, count)| format!("{count} {why}")).collect();
    if !stay.is_empty() {
        *text += &format!("             the others stay: {}\n", stay.join(", "));
    }
}

fn references(text: &mut String, survey: &Survey) {
    let mut kinds = Vec::new();
    for (kind, schemes) in &survey.kinds {
        for (scheme, count) in schemes.heaviest(|it| *it).into_iter().take(LINES) {
            kinds.push(match scheme {
                "none" => format!("{count} {kind} without a URL"),
                scheme => format!("{count} {kind} by {}", harmless(scheme)),
            });
        }
        if let Some(count) = schemes.others() {
            kinds.push(format!("{count} {kind} by others"));
        }
    }
    *text += &format!("references   {}: {}\n", survey.references, kinds.join(", "));
}

fn table(text: &mut String, survey: &Survey, group: Group, has_archive: bool) {
    match group {
        Group::Host => {
            let head = match has_archive {
                true => "pictures trackers references alive dead refused archived lost",
                false => "pictures trackers references alive dead refused",
            };
            let columns = head.split(' ').count();
            let row = |it: &Host| it.probed().into_iter().take(columns).collect();
            named(text, ("host", head), &survey.hosts, Host::weight, row)
        }
        Group::Type => {
            let head = "attachments octets large large_octets leave leave_octets";
            let weight = |it: &Type| it.octets.max(1);
            let row = |it: &Type| it.columns().into_iter().take(6).collect();
            named(text, ("type", head), &survey.types, weight, row)
        }
        Group::Sender => {
            let head = ("sender", "messages bytes");
            named(text, head, &survey.senders, |it| it.count, Amount::columns)
        }
        Group::Year => {
            let head = "messages octets attachments octets pictures references";
            heading(text, "year", head);
            for (name, it) in survey.years.names() {
                line(text, &it.columns(), name);
            }
        }
        Group::Outcome => {
            heading(text, "outcome", "rows");
            for (name, count) in &survey.outcomes {
                line(text, &[*count], name);
            }
        }
    }
}

fn named<C: Counts>(
    text: &mut String,
    (group, head): (&str, &str),
    counts: &Named<C>,
    weight: impl Fn(&C) -> u64,
    row: impl Fn(&C) -> Vec<u64>,
) {
    heading(text, group, head);
    let names = counts.heaviest(weight);
    for (name, counts) in names.iter().take(LINES) {
        line(text, &row(counts), name);
    }
    if let Some(more) = names.len().checked_sub(LINES).filter(|more| *more > 0) {
        *text += &format!("and {more} more, which --json and --html have\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_never_more_than_there_is() {
        for (octets, said) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(size(octets), said);
        }
        assert_eq!(option_size(100 << 10), "100k");
        assert_eq!(option_size(1000), "1000");
        assert_eq!(class(0), "less than 10 KiB");
        assert_eq!(class(2), "100 KiB to 1 MiB");
        assert_eq!(class(SIZES.len() - 1), "100 MiB and more");
    }
}
