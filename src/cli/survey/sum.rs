//! Survey of one message, or the sum of the surveys of many messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use mail_parser::DateTime;
use serde::{Serialize, Serializer};

use super::super::tally::{Amount, RowTally, TallyCounts as _, TallyNames};
use super::at_risk::{self, AtRisk};
use super::broken::{Large, UnreadableMessage, merge};
use super::missing::Missing;
use super::tally::{
    Answers, CopyTally, Hash, Host, Links, MESSAGES, Mail, Pictures, Probe, Type, Year, add,
};
use crate::fetch::store::Key;
use crate::link::value::LinkRole;
use crate::mailbox::{FileCounts, Summary};

/// Maximum number of distinct attachments that are compared. Their hashes take 48 MB.
const OBJECTS: usize = 1 << 20;

/// Lower limits of the size classes of attachments, in bytes.
pub(super) const SIZES: [u64; 6] = [0, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

#[derive(Default, Debug)]
pub(crate) struct Survey {
    pub mail: Mail,
    pub dates: Dates,
    pub attachments: Amount,
    pub sizes: [Amount; SIZES.len()],
    pub inline: [Amount; SIZES.len()],
    pub detach: Detach,
    pub pictures: Pictures,
    pub links: Links,
    pub link_schemes: TallyNames<u64>,
    pub link_roles: BTreeMap<LinkRole, u64>,
    /// Links that a mail filter or a picture proxy wrapped, by service. Only links whose wrapped URL contains the
    /// original URL are counted.
    pub wrapped: BTreeMap<&'static str, u64>,
    pub references: u64,
    pub kinds: BTreeMap<&'static str, TallyNames<u64>>,
    pub probe: Probe,
    pub outcomes: RowTally<String>,
    pub years: TallyNames<Year>,
    pub senders: TallyNames<Amount>,
    /// Domain of the sender in the survey of a single message. It is added to `senders` only when the survey is added
    /// to the sum: thousands of single surveys can be in memory, and a string needs less memory than a map.
    pub sender: Option<Box<str>>,
    pub copies: CopyTally<Hash, MESSAGES>,
    pub hosts: TallyNames<Host>,
    pub types: TallyNames<Type>,
    pub answers: AnswersByWhat,
    pub missing: Missing,
    /// Missing attachments on servers that can also be in a directory of the user.
    pub in_directories: u64,
    pub largest: Vec<Large>,
    pub at_risk: Vec<AtRisk>,
    /// Messages by label, in mail of a Google Takeout. Gmail's own labels, such as `Inbox` in any language, are counted
    /// under the name of the standard folder.
    pub labels: TallyNames<u64>,
    pub broken: UnreadableMessage,
    /// Files of the sources, by verdict.
    pub files: FileCounts,
}

#[derive(Default, Debug, Serialize)]
pub(crate) struct AnswersByWhat {
    pub pictures: Answers,
    /// Probe results for external content other than pictures.
    pub attachments: Answers,
    /// Probe results for pictures, by the year of the mail.
    pub years: TallyNames<Answers>,
}

/// The earliest and latest date of the mail, in seconds since 1970.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(crate) struct Dates {
    #[serde(serialize_with = "in_words")]
    pub first: Option<i64>,
    #[serde(serialize_with = "in_words")]
    pub last: Option<i64>,
    pub missing: u64,
    /// Number of messages with an implausible date: malformed, before 1971, or in the future.
    pub implausible: u64,
}

#[derive(Default, Debug)]
pub(crate) struct Detach {
    pub large: Amount,
    pub leave: Amount,
    pub content_octets: u64,
    /// Attachments that the HTML of the mail displays. They are moved only by `detach --inline`.
    pub shown_inline: Amount,
    /// Number of attachments that `detach` does not move, by reason, including those in `shown_inline`.
    pub stay: BTreeMap<&'static str, u64>,
    pub saves: i64,
    pub contents: CopyTally<Key, OBJECTS>,
}

impl Survey {
    pub(crate) fn add(&mut self, mut other: Self) {
        for (sender, year, counts, answers) in [self.alone(), other.alone()].into_iter().flatten() {
            self.senders.of(&sender).count(counts.octets);
            self.years.of(&year).add(&counts);
            if answers != Answers::default() {
                self.answers.years.of(&year).add(&answers);
            }
        }
        self.mail.add(&other.mail);
        self.dates.add(other.dates);
        self.attachments.add(&other.attachments);
        let sums = self.sizes.iter_mut().chain(&mut self.inline);
        for (sum, more) in sums.zip(other.sizes.iter().chain(&other.inline)) {
            sum.add(more);
        }
        self.detach.add(other.detach);
        self.pictures.add(&other.pictures);
        self.links.add(&other.links);
        self.link_schemes.add(other.link_schemes);
        add(&mut self.link_roles, other.link_roles);
        add(&mut self.wrapped, other.wrapped);
        self.references += other.references;
        for (kind, schemes) in other.kinds {
            self.kinds.entry(kind).or_default().add(schemes);
        }
        self.probe.add(&other.probe);
        self.outcomes.add(other.outcomes);
        self.years.add(other.years);
        self.senders.add(other.senders);
        self.copies.add(other.copies);
        self.hosts.add(other.hosts);
        self.types.add(other.types);
        self.answers.pictures.add(&other.answers.pictures);
        self.answers.attachments.add(&other.answers.attachments);
        self.answers.years.add(other.answers.years);
        self.missing.add(other.missing);
        self.in_directories += other.in_directories;
        merge(&mut self.largest, other.largest);
        at_risk::merge(&mut self.at_risk, other.at_risk);
        self.files.add(&other.files);
        self.labels.add(other.labels);
        self.broken.add(other.broken);
    }

    /// Fills in the mailbox path of all message places. In a mailbox of separate files, the file identifies the
    /// message, so its number is removed.
    pub(crate) fn locate(&mut self, mailbox: &Path) {
        let largest = self.largest.iter_mut().map(|it| &mut it.place);
        let at_risk = self.at_risk.iter_mut().map(|it| &mut it.message.place);
        for place in largest.chain(at_risk).chain(self.broken.places_mut()) {
            if Path::new(&place.source) != mailbox {
                place.index = None;
            }
        }
    }

    fn alone(&mut self) -> Option<(Box<str>, Cow<'static, str>, Year, Answers)> {
        let sender = self.sender.take()?;
        let year = match self.dates.first {
            Some(date) => format!("{:04}", DateTime::from_timestamp(date).year).into(),
            None if self.dates.implausible > 0 => "implausible".into(),
            None => "none".into(),
        };
        let counts = Year {
            messages: 1,
            octets: self.mail.octets,
            attachments: self.detach.large.count,
            attachment_octets: self.detach.large.octets,
            pictures: self.pictures.remote,
            references: self.references,
        };
        Some((sender, year, counts, self.answers.pictures))
    }

    /// Finishes the counts of a probe. If no server responded in the whole run, no content counts as gone, and no
    /// reference or host as dead.
    pub(crate) fn settle(&mut self, has_no_response: bool) {
        let answers = &mut self.answers;
        answers.pictures.settle(has_no_response);
        answers.attachments.settle(has_no_response);
        answers.years.each_mut(|it| it.settle(has_no_response));
        if has_no_response {
            self.probe.unasked += std::mem::take(&mut self.probe.dead);
            self.hosts.each_mut(|it| it.dead = 0);
        }
    }

    pub(crate) fn shown(&self) -> Amount {
        let mut sum = Amount::default();
        self.inline.iter().for_each(|it| sum.add(it));
        sum
    }

    /// Adds the counts of the whole run. The survey computes the edits that `detach` would make, and the run counts the
    /// sizes before and after these edits but writes nothing. The difference is the space that `detach` would save.
    pub(crate) fn walked(&mut self, summary: &Summary) {
        self.mail.mailboxes = summary.mailboxes;
        self.mail.oversized = summary.oversized;
        self.broken.files = summary.damaged;
        self.files = summary.files;
        let [before, after] = [summary.bytes_in, summary.bytes_out]
            .map(|octets| i64::try_from(octets).unwrap_or(i64::MAX));
        self.detach.saves = before.saturating_sub(after);
    }
}

fn time(seconds: i64) -> String {
    DateTime::from_timestamp(seconds).to_rfc3339()
}

pub(super) fn day(seconds: i64) -> String {
    time(seconds).chars().take(10).collect()
}

fn in_words<S: Serializer>(date: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    date.map(time).serialize(serializer)
}

impl Dates {
    pub(crate) fn count(&mut self, date: i64) {
        self.first = Some(self.first.map_or(date, |first| first.min(date)));
        self.last = Some(self.last.map_or(date, |last| last.max(date)));
    }

    fn add(&mut self, other: Self) {
        for date in [other.first, other.last].into_iter().flatten() {
            self.count(date);
        }
        self.missing += other.missing;
        self.implausible += other.implausible;
    }
}

impl Detach {
    /// Returns the number and size of the objects that `detach` would store. Equal contents are stored as one object.
    /// Contents beyond the limit on comparisons count as different.
    pub(crate) fn objects(&self) -> Amount {
        let repeated = self.contents.repeated;
        Amount {
            count: self.leave.count.saturating_sub(repeated.count),
            octets: self.content_octets.saturating_sub(repeated.octets),
        }
    }

    fn add(&mut self, other: Self) {
        self.large.add(&other.large);
        self.leave.add(&other.leave);
        self.shown_inline.add(&other.shown_inline);
        self.content_octets += other.content_octets;
        add(&mut self.stay, other.stay);
        self.saves += other.saves;
        self.contents.add(other.contents);
    }
}
