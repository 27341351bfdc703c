//! The survey for a program: `{"survey": {...}}`. docs/survey.md has every field.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::forecast::Embed;
use super::copies::CopyCounts;
use super::looked::{Group, Looked};
use super::sum::{Dates, Detach, SIZES, Survey};
use super::tally::{
    Amount, Counts, Host, LONGEST_NAME, Links, NAMES, Named, Pictures, Probe, Type, Year,
};

/// What `inspect --json` says last, of all sources together.
#[derive(Serialize)]
pub struct Line<'s> {
    survey: Whole<'s>,
}

#[derive(Serialize)]
struct Whole<'s> {
    mailboxes: u64,
    messages: u64,
    octets: u64,
    oversized: u64,
    dates: Dates,
    attachments: Attachments,
    detach: Detached<'s>,
    pictures: Shown<'s>,
    links: Linked<'s>,
    references: References<'s>,
    repeated: CopyCounts,
    outcomes: &'s BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<Probed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<By<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embed: Option<Embed<'s>>,
}

#[derive(Serialize)]
struct Probed {
    #[serde(flatten)]
    of_sources: Probe,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
}

#[derive(Serialize)]
struct Attachments {
    #[serde(flatten)]
    all: Amount,
    inline: Amount,
    sizes: Vec<Size>,
}

#[derive(Serialize)]
struct Size {
    from: u64,
    #[serde(flatten)]
    amount: Amount,
}

#[derive(Serialize)]
struct Detached<'s> {
    larger_than: u64,
    base_url: &'s str,
    #[serde(flatten)]
    large: Amount,
    leave: Amount,
    shown_inline: Amount,
    stay: &'s BTreeMap<&'static str, u64>,
    content_octets: u64,
    objects: Amount,
    duplicates: Amount,
    uncompared: Amount,
    saves: i64,
}

#[derive(Serialize)]
struct Shown<'s> {
    #[serde(flatten)]
    places: Pictures,
    hosts: BTreeMap<&'s str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_hosts: Option<u64>,
}

#[derive(Serialize)]
struct Linked<'s> {
    #[serde(flatten)]
    counts: Links,
    schemes: &'s Named<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_schemes: Option<u64>,
    roles: &'s BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct References<'s> {
    count: u64,
    kinds: &'s BTreeMap<&'static str, Named<u64>>,
}

/// The groups that were asked for.
#[derive(Serialize, Default)]
struct By<'s> {
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Table<'s, Host>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<Table<'s, Type>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    year: Option<Table<'s, Year>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Table<'s, Amount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'s BTreeMap<String, u64>>,
}

/// A group; what is beyond the bound is one sum.
#[derive(Serialize)]
struct Table<'s, C: Serialize> {
    names: &'s Named<C>,
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<&'s C>,
}

impl<'s, C: Counts + Serialize> Table<'s, C> {
    fn of(named: &'s Named<C>) -> Self {
        Self {
            names: named,
            others: named.others(),
        }
    }
}

impl<'s> Line<'s> {
    pub fn new(survey: &'s Survey, looked: &'s Looked<'s>, embed: Option<Embed<'s>>) -> Self {
        Self {
            survey: Whole {
                mailboxes: survey.mailboxes,
                messages: survey.messages,
                octets: survey.octets,
                oversized: survey.oversized,
                dates: survey.dates,
                attachments: Attachments::of(survey),
                detach: Detached::of(&survey.detach, looked),
                pictures: Shown::of(survey),
                links: Linked::of(survey),
                references: References {
                    count: survey.references,
                    kinds: &survey.kinds,
                },
                repeated: survey.copies.counts(),
                outcomes: &survey.outcomes,
                probe: looked.is_probed.then(|| Probed {
                    of_sources: survey.probe,
                    archived: looked.has_archive.then_some(survey.probe.archived),
                    lost: looked.has_archive.then_some(survey.probe.lost),
                }),
                by: By::of(survey, looked.by),
                embed,
            },
        }
    }
}

impl Attachments {
    fn of(survey: &Survey) -> Self {
        let sizes = SIZES.iter().zip(survey.sizes);
        Self {
            all: survey.attachments,
            inline: survey.shown(),
            sizes: sizes.map(|(&from, amount)| Size { from, amount }).collect(),
        }
    }
}

impl<'s> Detached<'s> {
    fn of(detach: &'s Detach, looked: &'s Looked<'s>) -> Self {
        Self {
            larger_than: looked.larger_than,
            base_url: looked.base_url,
            large: detach.large,
            leave: detach.leave,
            shown_inline: detach.shown_inline,
            stay: &detach.stay,
            content_octets: detach.content_octets,
            objects: detach.objects(),
            duplicates: detach.duplicates(),
            uncompared: detach.uncompared,
            saves: detach.saves,
        }
    }
}

impl<'s> Shown<'s> {
    fn of(survey: &'s Survey) -> Self {
        let hosts = survey
            .hosts
            .names()
            .map(|(name, host)| (name, host.pictures));
        Self {
            places: survey.pictures,
            hosts: hosts.filter(|(_, pictures)| *pictures > 0).collect(),
            other_hosts: survey.hosts.others().map(|others| others.pictures),
        }
    }
}

impl<'s> Linked<'s> {
    fn of(survey: &'s Survey) -> Self {
        Self {
            counts: survey.links,
            schemes: &survey.link_schemes,
            other_schemes: survey.link_schemes.others().copied(),
            roles: &survey.link_roles,
        }
    }
}

impl<'s> By<'s> {
    fn of(survey: &'s Survey, groups: &[Group]) -> Option<Self> {
        let wants = |group| groups.contains(&group);
        (!groups.is_empty()).then(|| Self {
            host: wants(Group::Host).then(|| Table::of(&survey.hosts)),
            r#type: wants(Group::Type).then(|| Table::of(&survey.types)),
            year: wants(Group::Year).then(|| Table::of(&survey.years)),
            sender: wants(Group::Sender).then(|| Table::of(&survey.senders)),
            outcome: wants(Group::Outcome).then_some(&survey.outcomes),
        })
    }
}

/// What is said of names beyond the bound.
pub(super) fn bound() -> String {
    format!("beyond {NAMES} names, or of more than {LONGEST_NAME} bytes")
}
