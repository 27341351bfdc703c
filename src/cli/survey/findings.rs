//! The meaning of a survey for the owner of the mail: one statement, the three most important numbers, and the possible
//! steps. The page and the text in the terminal contain the same findings.

use std::collections::BTreeMap;

use super::context::SurveyContext;
use super::missing::{self, Way};
use super::sum::Survey;
use super::tally::{Host, Year};
use super::words::{
    capitalized, counted, either, grouped, listed, option_size, quoted, share, size,
};

/// A number, and the words that explain it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tile {
    pub number: String,
    pub words: String,
}

/// A step that the user can take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub title: String,
    pub words: String,
    pub commands: Vec<String>,
}

pub(super) struct Findings {
    pub statement: String,
    pub tiles: Vec<Tile>,
    pub step: Option<Step>,
}

/// A fact that can become one of the three numbers. Facts about content that the mail will lose have the largest
/// weight.
struct Fact {
    weight: u64,
    statement: String,
    tile: Tile,
    step: Option<Step>,
}

const TILES: usize = 3;

/// The sources from which `recover` gets content without further options. For any other source, the user must name a
/// directory, a store or a kind of link.
pub(super) const RECOVERED: [Way; 3] = [Way::Here, Way::Web, Way::Ftp];

pub(super) fn findings(survey: &Survey, context: &SurveyContext<'_>) -> Findings {
    let mut facts = facts(survey, context);
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.weight));
    let step = facts.iter_mut().find_map(|fact| fact.step.take());
    let first = facts.first().filter(|fact| fact.weight > 0);
    let statement = first.map(|fact| fact.statement.clone());
    let nothing = match survey.mail.messages {
        0 => "There is no mail here.",
        _ => "Nothing is missing from this mail.",
    };
    Findings {
        statement: statement.unwrap_or_else(|| nothing.to_owned()),
        tiles: facts.into_iter().take(TILES).map(|it| it.tile).collect(),
        step,
    }
}

/// Returns the size of the mail as text: `41,203 messages from 2004 to 2024, 3.9 GB in 2 mailboxes`.
pub(super) fn contents(survey: &Survey) -> String {
    let mail = &survey.mail;
    let mut text = counted(mail.messages, "message", "messages");
    if let (Some(first), Some(last)) = (survey.dates.first, survey.dates.last) {
        let [first, last] = [first, last].map(super::sum::day);
        let [first, last] = [first, last].map(|day| format!("{day:.4}"));
        text += &if first == last {
            format!(" of {first}")
        } else {
            format!(" from {first} to {last}")
        };
    }
    text += &format!(", {}", size(mail.octets));
    if mail.mailboxes > 1 {
        let mailboxes = counted(mail.mailboxes, "mailbox", "mailboxes");
        text += &format!(" in {mailboxes}");
    }
    text
}

fn facts(survey: &Survey, context: &SurveyContext<'_>) -> Vec<Fact> {
    let findings = [
        pictures(survey, context),
        attachments(survey, context),
        large(survey, context),
        trackers(survey),
        repeated(survey),
        broken(survey),
    ];
    let mut facts: Vec<Fact> = findings.into_iter().flatten().collect();
    // The page shows the three facts with the largest weight. These plain counts have weight 0, so they are shown only
    // if there are fewer than three facts.
    let plain = [
        (
            survey.mail.messages,
            grouped(survey.mail.messages),
            format!(
                "{}, {}",
                either(survey.mail.messages, "message", "messages"),
                size(survey.mail.octets)
            ),
        ),
        (
            survey.attachments.count,
            grouped(survey.attachments.count),
            format!(
                "{} in the mail, {}",
                either(survey.attachments.count, "attachment", "attachments"),
                size(survey.attachments.octets)
            ),
        ),
        (
            survey.senders.names().count() as u64,
            grouped(survey.senders.names().count() as u64),
            format!(
                "sender {}",
                either(survey.senders.names().count() as u64, "domain", "domains")
            ),
        ),
    ];
    let found = plain.into_iter().filter(|(count, _, _)| *count > 0);
    facts.extend(found.map(|(_, number, words)| Fact {
        weight: 0,
        statement: String::new(),
        tile: Tile { number, words },
        step: None,
    }));
    facts
}

fn pictures(survey: &Survey, context: &SurveyContext<'_>) -> Option<Fact> {
    let remote = survey.pictures.remote;
    let answers = &survey.answers.pictures;
    let servers = pictured_hosts(survey);
    let on = counted(servers, "server", "servers");
    if answers.gone > 0 {
        let of = grouped(answers.asked());
        let statement = match share(answers.gone, answers.asked()) {
            Some(share) => format!(
                "{} pictures that this mail loads from the web are already gone.",
                capitalized(&share)
            ),
            None => format!(
                "{} that this mail loads from the web {} already gone.",
                counted(answers.gone, "picture", "pictures"),
                either(answers.gone, "is", "are")
            ),
        };
        return Some(Fact {
            weight: answers.gone.saturating_mul(4).saturating_add(remote),
            statement,
            tile: Tile {
                number: grouped(answers.gone),
                words: format!(
                    "of {of} {} on the web {} gone",
                    either(answers.asked(), "picture", "pictures"),
                    either(answers.gone, "is", "are")
                ),
            },
            step: embed(survey, context),
        });
    }
    (remote > 0).then(|| Fact {
        weight: remote,
        statement: format!(
            "{} in this mail {} only on the web.",
            counted(remote, "picture", "pictures"),
            either(remote, "is", "are")
        ),
        tile: Tile {
            number: grouped(remote),
            words: if answers.alive == answers.asked() && answers.alive > 0 {
                format!(
                    "{} on {on}, all still there",
                    either(remote, "picture", "pictures")
                )
            } else {
                format!(
                    "{} only on {on}",
                    either(remote, "picture is", "pictures are")
                )
            },
        },
        step: embed(survey, context),
    })
}

fn attachments(survey: &Survey, context: &SurveyContext<'_>) -> Option<Fact> {
    let count = missing::sum(
        &survey.missing,
        &[
            Way::Here,
            Way::Web,
            Way::Ftp,
            Way::Directory,
            Way::Store,
            Way::Never,
        ],
    );
    let gone = survey.answers.attachments.gone;
    let mut statement = format!(
        "{} {} not in this mail",
        counted(count, "attachment", "attachments"),
        either(count, "is", "are")
    );
    let mut words = format!(
        "{} not in the mail",
        either(count, "attachment is", "attachments are")
    );
    if gone > 0 {
        statement += &format!(", and {} already gone", are(gone));
        words += &format!("; {} gone", are(gone));
    }
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(20),
        statement: statement + ".",
        tile: Tile {
            number: grouped(count),
            words,
        },
        step: recover(survey, context),
    })
}

fn are(count: u64) -> String {
    format!("{} {}", grouped(count), either(count, "is", "are"))
}

fn large(survey: &Survey, context: &SurveyContext<'_>) -> Option<Fact> {
    let detach = &survey.detach;
    let saves = u64::try_from(detach.saves).unwrap_or(0);
    let share = (u128::from(saves) * 100)
        .checked_div(survey.mail.octets.into())
        .unwrap_or(0);
    (detach.leave.count > 0 && share > 0).then(|| Fact {
        weight: saves / 1_000_000 + 1,
        statement: format!(
            "Large attachments take {} of this mail, which is {share}%.",
            size(saves)
        ),
        tile: Tile {
            number: size(saves),
            words: format!(
                "of the mail ({share}%) {} large {}",
                either(detach.leave.count, "is one", "are"),
                either(detach.leave.count, "attachment", "attachments")
            ),
        },
        step: self::detach(survey, context),
    })
}

fn trackers(survey: &Survey) -> Option<Fact> {
    let count = survey.pictures.trackers;
    let companies = companies(survey).len() as u64;
    (count > 0).then(|| Fact {
        weight: count / 4 + 1,
        statement: format!(
            "{} in this mail {} their senders when you read it.",
            counted(count, "tracker", "trackers"),
            either(count, "tells", "tell")
        ),
        tile: Tile {
            number: grouped(count),
            words: format!(
                "{} of {}",
                either(count, "tracker", "trackers"),
                counted(companies, "company", "companies")
            ),
        },
        step: None,
    })
}

fn repeated(survey: &Survey) -> Option<Fact> {
    let repeated = survey.copies.repeated;
    (repeated.count > 0).then(|| Fact {
        weight: repeated.count,
        statement: format!(
            "{} {} in this mail more than once.",
            counted(repeated.count, "message", "messages"),
            either(repeated.count, "is", "are")
        ),
        tile: Tile {
            number: grouped(repeated.count),
            words: format!(
                "{} of messages that are here already, {}",
                either(repeated.count, "copy", "copies"),
                size(repeated.octets)
            ),
        },
        step: None,
    })
}

fn broken(survey: &Survey) -> Option<Fact> {
    let broken = &survey.broken;
    let count = broken.kinds().iter().map(|it| it.2.count).max()?;
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(10),
        statement: format!(
            "{} {} damaged.",
            counted(count, "message", "messages"),
            either(count, "is", "are")
        ),
        tile: Tile {
            number: grouped(count),
            words: format!("damaged {}", either(count, "message", "messages")),
        },
        step: None,
    })
}

/// Returns whether `embed` would find at least one picture. Without a probe, each picture on the web counts as
/// available.
fn has_living_pictures(survey: &Survey, context: &SurveyContext<'_>) -> bool {
    let answers = &survey.answers.pictures;
    let is_known = context.is_probed && answers.asked() > 0;
    let is_archived = context.has_archive && survey.probe.archived > 0;
    survey.pictures.remote > 0 && (!is_known || answers.alive > 0 || is_archived)
}

pub(super) fn embed(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    has_living_pictures(survey, context).then(|| Step {
        title: "Keep the pictures".to_owned(),
        words: format!(
            "This puts the pictures into the mail, as far as their servers still have them. The result is a new mailbox, and your mailbox is not changed.{}",
            compare(context)
        ),
        commands: context.compared("embed", &context.repeated.all(), "embedded"),
    })
}

fn compare(context: &SurveyContext<'_>) -> &'static str {
    match context.named() {
        None => "",
        Some([_]) => " The second command proves that no message was lost.",
        Some(_) => " The last commands prove that no message was lost.",
    }
}

pub(super) fn recover(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let count = missing::sum(&survey.missing, &RECOVERED);
    let answers = &survey.answers.attachments;
    let here = missing::sum(&survey.missing, &[Way::Here]);
    let is_known = context.is_probed && answers.asked() > 0;
    let is_there = count > 0 && (!is_known || answers.alive > 0 || here > 0);
    let mut options = context.repeated.all();
    let ftp = missing::sum(&survey.missing, &[Way::Ftp]);
    if ftp > 0 && !context.repeated.has("fetch") {
        options += " --fetch http,https,ftp";
    }
    let from = if here == count {
        "from the files next to the mailbox and from the mail itself"
    } else {
        "as far as their servers still have them"
    };
    is_there.then(|| Step {
        title: "Put the missing attachments back".to_owned(),
        words: format!(
            "This puts {} back into the mail, {from}. The result is a new mailbox, and your mailbox is not changed.",
            counted(count, "attachment", "attachments")
        ),
        commands: context.commands("recover", &options, "recovered"),
    })
}

pub(super) fn detach(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let detach = &survey.detach;
    let saves = u64::try_from(detach.saves).unwrap_or(0);
    let objects = detach.objects();
    let options = format!(
        "{} --larger-than {}",
        context.storing(),
        option_size(context.larger_than)
    );
    let duplicates = detach.contents.repeated;
    let once = match duplicates.count {
        0 => String::new(),
        count => format!(
            " {} of them {}, which the store keeps only once.",
            grouped(count),
            either(count, "is a duplicate", "are duplicates")
        ),
    };
    (detach.leave.count > 0 && saves > 0).then(|| Step {
        title: "Make the mailbox smaller".to_owned(),
        words: format!(
            "This moves {} into a directory next to the mailbox, {}, and the mail becomes {} smaller.{once} `embody restore` puts every byte back. The result is a new mailbox, and your mailbox is not changed.",
            counted(detach.leave.count, "large attachment", "large attachments"),
            size(objects.octets),
            size(saves),
        ),
        commands: context.commands("detach", &options, "small"),
    })
}

pub(super) fn blank(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    (survey.pictures.trackers > 0).then(|| Step {
        title: "Remove the trackers".to_owned(),
        words: "This puts an empty picture in the place of each tracker, so that the sender does not learn when you open the mail. No network is needed.".to_owned(),
        commands: context.commands("convert", " --embed remote --trackers blank", "untracked"),
    })
}

/// Returns the step for mail that contains pictures only in `data:` URLs. If there are also pictures on the web, the
/// step `embed` includes them.
pub(super) fn data(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let count = survey.pictures.data;
    (count > 0 && survey.pictures.remote == 0).then(|| Step {
        title: "Show pictures everywhere".to_owned(),
        words: format!(
            "{} written into the HTML itself (as data: URLs), which some mail programs do not show. This turns the pictures into attachments, which every program shows. No network is needed.",
            counted(count, "picture is", "pictures are")
        ),
        commands: context.commands("convert", " --embed data", "shown"),
    })
}

pub(super) fn links(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let links = &survey.links;
    let count = links.with_base + links.to_parts;
    (count > 0).then(|| Step {
        title: "Make links work".to_owned(),
        words: format!(
            "{} incomplete, but the mail contains the address that completes {}. This makes the links complete. No network is needed.",
            counted(count, "link is", "links are"),
            either(count, "it", "them")
        ),
        commands: context.commands("convert", "", "linked"),
    })
}

pub(super) fn cloud_links(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let [links, shortcuts] =
        [Way::Link, Way::Shortcut].map(|way| missing::sum(&survey.missing, &[way]));
    let mut what = Vec::new();
    let mut words = Vec::new();
    if links > 0 {
        what.push(counted(
            links,
            "link to a file in a cloud",
            "links to files in clouds",
        ));
        words.push("links");
    }
    if shortcuts > 0 {
        what.push(counted(
            shortcuts,
            "attached shortcut to a web address",
            "attached shortcuts to web addresses",
        ));
        words.push("shortcuts");
    }
    let sum = links + shortcuts;
    (sum > 0 && !context.is_probed).then(|| Step {
        title: "Attach what links lead to".to_owned(),
        words: format!(
            "The text also contains {}. {} part of the sender's text, so embody attaches the files only with `--follow`, and only files that need no login.",
            listed(&what),
            either(sum, "This is", "These are"),
        ),
        commands: context.commands(
            "recover",
            &format!(" --follow {}{}", words.join(","), context.repeated.all()),
            "linked-files",
        ),
    })
}

pub(super) fn restore(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let count = missing::sum(&survey.missing, &[Way::Store]);
    let (store, _) = context.store.as_ref()?;
    let options = format!(" --store {}", quoted(store));
    (count > 0).then(|| Step {
        title: "Put detached attachments back".to_owned(),
        words: format!(
            "embody detached {}. This puts every byte of the attachments back.",
            counted(count, "attachment", "attachments")
        ),
        commands: context.commands("restore", &options, "restored"),
    })
}

pub(super) fn probe(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let is_asked = context.is_probed || context.page.is_none();
    let web = missing::sum(&survey.missing, &[Way::Web]);
    let page = context.page.as_deref().unwrap_or_default();
    (!is_asked && survey.pictures.remote + web > 0).then(|| {
        let fetch = if context.repeated.has("fetch") { "" } else { " --fetch http,https" };
        let command = format!(
            "embody inspect --probe{fetch}{} --html {}",
            context.repeated.all(),
            quoted(page)
        );
        Step {
            title: "Count what is gone".to_owned(),
            words: "This asks each server whether it still has the picture or file, and writes this page again with the answers. The servers of trackers are not asked.".to_owned(),
            commands: context.reading(&command),
        }
    })
}

/// Returns the number of hosts with pictures. It can be too low: if there are more hosts than the limit on names, the
/// others are counted together.
pub(super) fn pictured_hosts(survey: &Survey) -> u64 {
    let hosts = survey.hosts.names();
    hosts.filter(|(_, it)| it.pictures > 0).count() as u64
}

/// Counts trackers by the registered domain of their host, which usually identifies a company.
pub(super) fn companies(survey: &Survey) -> Vec<(String, u64)> {
    let mut companies: BTreeMap<String, u64> = BTreeMap::new();
    for (host, counts) in survey.hosts.names() {
        if counts.trackers > 0 {
            *companies.entry(registered(host)).or_default() += counts.trackers;
        }
    }
    let mut companies: Vec<(String, u64)> = companies.into_iter().collect();
    companies.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    companies
}

/// Returns the registrable domain of a host by the Public Suffix List, and the host itself if it has none.
pub(super) fn registered(host: &str) -> String {
    let is_address = host.contains(':') || host.parse::<std::net::Ipv4Addr>().is_ok();
    let domain = psl::domain_str(host).filter(|_| !is_address);
    domain.unwrap_or(host).to_owned()
}

/// Returns the counts of all years from the first to the last, including years without mail.
pub(super) fn years(survey: &Survey) -> Vec<(i64, Year)> {
    let years: BTreeMap<i64, Year> = survey
        .years
        .names()
        .filter_map(|(name, year)| Some((name.parse::<i64>().ok()?, *year)))
        .collect();
    let ends = years.keys().next().zip(years.keys().next_back());
    let Some((&first, &last)) = ends else {
        return Vec::new();
    };
    let year = |name| (name, years.get(&name).copied().unwrap_or_default());
    (first..=last).map(year).collect()
}

pub(super) fn heaviest_hosts(survey: &Survey) -> Vec<(&str, &Host)> {
    survey.hosts.heaviest(|it| it.pictures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registrable_domain_is_the_company() {
        for (host, company) in [
            ("click.mail.news.example.co.uk", "example.co.uk"),
            ("e.example.com", "example.com"),
            ("example.com", "example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("localhost", "localhost"),
            ("com", "com"),
        ] {
            assert_eq!(registered(host), company);
        }
    }
}
