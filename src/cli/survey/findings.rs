//! Conclusions of a survey for the owner of the mail: one statement, the three most important numbers, and the possible
//! next steps, the most useful one first. The HTML page and the terminal show the same findings.

use super::context::SurveyContext;
use super::missing::{self, RecoveryWay};
use super::numbers::{companies, pictured_hosts};
use super::steps::{self, NextStep};
use super::sum::Survey;
use super::words::{capitalized, counted, either, grouped, share, size};

/// A number with the words that explain it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tile {
    pub number: String,
    pub words: String,
}

pub(super) struct Findings {
    pub statement: String,
    pub tiles: Vec<Tile>,
    /// Possible next steps, the most useful one first.
    pub steps: Vec<NextStep>,
}

/// A fact that may be shown as one of the three numbers. Facts about content that the mail will lose have the largest
/// weights.
struct Fact {
    weight: u64,
    statement: String,
    tile: Tile,
    step: Option<NextStep>,
}

const TILES: usize = 3;

pub(super) fn findings(survey: &Survey, context: &SurveyContext<'_>) -> Findings {
    let mut facts = facts(survey, context);
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.weight));
    let steps = ranked(
        facts.iter_mut().filter_map(|fact| fact.step.take()),
        survey,
        context,
    );
    let first = facts.first().filter(|fact| fact.weight > 0);
    let statement = match first {
        _ if context.has_no_response => {
            Some("No server responded, so it is not known which pictures and files the servers still have.".to_owned())
        }
        first => first.map(|fact| fact.statement.clone()),
    };
    let unread = survey.broken.files + survey.mail.oversized + survey.links.unread;
    let nothing = match (survey.mail.messages, unread) {
        (0, 0) => "There is no mail here.",
        (0, _) => "No mail could be read here.",
        (_, 0) => "Nothing is missing from this mail.",
        (_, _) => "Nothing is missing from the mail that embody could read completely.",
    };
    Findings {
        statement: statement.unwrap_or_else(|| nothing.to_owned()),
        tiles: facts.into_iter().take(TILES).map(|it| it.tile).collect(),
        steps,
    }
}

/// Returns all possible next steps, the most useful one first. `of_facts` are the steps of the most important facts.
fn ranked(
    of_facts: impl Iterator<Item = NextStep>,
    survey: &Survey,
    context: &SurveyContext<'_>,
) -> Vec<NextStep> {
    let again = context
        .has_no_response
        .then(|| steps::probe(survey, context));
    let more = [
        steps::allow(survey, context),
        steps::archive(survey, context),
        steps::restore(survey, context),
        steps::cloud_links(survey, context),
        steps::probe(survey, context),
        steps::blank(survey, context),
        steps::data(survey, context),
        steps::links(survey, context),
    ];
    let mut ranked: Vec<NextStep> = Vec::new();
    for step in again
        .flatten()
        .into_iter()
        .chain(of_facts)
        .chain(more.into_iter().flatten())
    {
        if !ranked.contains(&step) {
            ranked.push(step);
        }
    }
    ranked
}

/// Returns the size of the mail as text: `41,203 messages from 2004 to 2024, 3.9 GB in 2 mailboxes`.
pub(super) fn contents(survey: &Survey) -> String {
    let mail = &survey.mail;
    let mut text = counted(mail.messages, "message", "messages");
    if let (Some(first), Some(last)) = (survey.dates.first, survey.dates.last) {
        let [first, last] = [first, last].map(|time| format!("{:.4}", super::sum::day(time)));
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
        linked(survey, context),
        pieces(survey),
        packed(survey, context),
        linked_in_text(survey),
        doubtful(survey),
        without_part(survey),
        elsewhere(survey),
        large(survey, context),
        trackers(survey),
        repeated(survey),
        broken(survey),
    ];
    let mut facts: Vec<Fact> = findings.into_iter().flatten().collect();
    // Plain counts have weight 0, so they are shown only if there are fewer than three other facts.
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
            step: steps::fill_in(survey, context).or_else(|| steps::archive(survey, context)),
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
        step: steps::fill_in(survey, context),
    })
}

fn attachments(survey: &Survey, context: &SurveyContext<'_>) -> Option<Fact> {
    let count = missing::sum(
        &survey.missing,
        &[
            RecoveryWay::Here,
            RecoveryWay::Web,
            RecoveryWay::Ftp,
            RecoveryWay::Directory,
            RecoveryWay::Store,
            RecoveryWay::Never,
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
        step: steps::fill_in(survey, context).or_else(|| steps::archive(survey, context)),
    })
}

/// Returns the fact about files that the sender only linked to.
fn linked(survey: &Survey, context: &SurveyContext<'_>) -> Option<Fact> {
    let count = missing::sum(&survey.missing, &[RecoveryWay::Link, RecoveryWay::Shortcut]);
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(5),
        statement: format!(
            "{} that this mail links to {} not in the mail.",
            counted(count, "file", "files"),
            either(count, "is", "are")
        ),
        tile: Tile {
            number: grouped(count),
            words: format!(
                "linked {} not in the mail",
                either(count, "file is", "files are")
            ),
        },
        step: steps::cloud_links(survey, context),
    })
}

/// Returns the fact about parts that most mail programs cannot open.
fn packed(survey: &Survey, context: &SurveyContext<'_>) -> Option<Fact> {
    let ways = [RecoveryWay::Packed, RecoveryWay::Unopened];
    let count = missing::sum(&survey.missing, &ways);
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(5),
        statement: format!(
            "{} of this mail {} in a form that most mail programs cannot open.",
            counted(count, "part", "parts"),
            either(count, "is", "are")
        ),
        tile: Tile {
            number: grouped(count),
            words: format!(
                "{} that most mail programs cannot open",
                either(count, "part", "parts")
            ),
        },
        step: steps::unpack(survey, context),
    })
}

/// Returns the fact about cloud storage links in plain text, which embody does not follow.
fn linked_in_text(survey: &Survey) -> Option<Fact> {
    let count = survey.links.cloud_in_text;
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(5),
        statement: format!(
            "{} to which a plain text links {} not in the mail, and embody does not attach {}.",
            counted(count, "file", "files"),
            either(count, "is", "are"),
            either(count, "it", "them")
        ),
        tile: Tile {
            number: grouped(count),
            words: format!(
                "linked {} not in the mail (plain text)",
                either(count, "file is", "files are")
            ),
        },
        step: None,
    })
}

/// Returns a sentence about notes of Mailman with the hash of another mail.
pub(crate) fn doubtful_notes(count: u64) -> String {
    format!(
        "{} of Mailman {} an attachment of another mail, or the Message-ID of this mail was changed; embody does not follow {}",
        counted(count, "note", "notes"),
        either(count, "names", "name"),
        either(count, "it", "them")
    )
}

/// Returns the fact about notes of Mailman that may belong to another mail.
fn doubtful(survey: &Survey) -> Option<Fact> {
    let count = missing::sum(&survey.missing, &[RecoveryWay::Doubtful]);
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(5),
        statement: doubtful_notes(count) + ".",
        tile: Tile {
            number: grouped(count),
            words: format!(
                "{} of Mailman that may be of other mails",
                either(count, "note", "notes")
            ),
        },
        step: None,
    })
}

fn pieces(survey: &Survey) -> Option<Fact> {
    let count = missing::sum(&survey.missing, &[RecoveryWay::Piece]);
    (count > 0).then(|| Fact {
        weight: count.saturating_mul(20),
        statement: match count {
            1 => "1 message is a piece of a divided mail (message/partial), which embody does not join.".to_owned(),
            _ => format!(
                "{} messages are pieces of divided mails (message/partial), which embody does not join.",
                grouped(count)
            ),
        },
        tile: Tile {
            number: grouped(count),
            words: format!("{} of divided mails", either(count, "piece", "pieces")),
        },
        step: None,
    })
}

/// Returns the fact about pictures whose part was removed from the mail by another program.
fn without_part(survey: &Survey) -> Option<Fact> {
    let count = survey.pictures.missing;
    (count > 0).then(|| Fact {
        weight: count,
        statement: format!(
            "{} {} missing: no part of the mail has the Content-ID in the HTML.",
            counted(count, "picture", "pictures"),
            either(count, "is", "are")
        ),
        tile: Tile {
            number: grouped(count),
            words: format!(
                "{} part is not in the mail",
                either(count, "picture, whose", "pictures, whose")
            ),
        },
        step: None,
    })
}

fn elsewhere(survey: &Survey) -> Option<Fact> {
    let count = survey.pictures.elsewhere;
    (count > 0).then(|| Fact {
        weight: count,
        statement: format!(
            "{} a URL that cannot be retrieved, such as a file: URL or a relative URL without a base URL.",
            counted(
                count,
                "picture of this mail has",
                "pictures of this mail have"
            )
        ),
        tile: Tile {
            number: grouped(count),
            words: format!(
                "{} a URL that cannot be retrieved",
                either(count, "picture has", "pictures have")
            ),
        },
        step: None,
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
        step: steps::detach(survey, context),
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
                "{} of other messages in this mail, {}",
                either(repeated.count, "duplicate", "duplicates"),
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
