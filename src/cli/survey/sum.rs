//! The survey: what one message holds, or the sum of many.

use std::collections::{BTreeMap, HashMap};

use super::tally::{Amount, Counts, Host, Named, Type, Year};
use crate::mailbox::Summary;
use crate::store::Key;

/// Most contents of attachments that are compared: 48 MB of hashes.
const OBJECTS: usize = 1 << 20;

/// Where the classes of sizes begin that attachments are sorted into, in octets.
pub const SIZES: [u64; 6] = [0, 10 << 10, 100 << 10, 1 << 20, 10 << 20, 100 << 20];

/// What is in one message, or in many.
#[derive(Default, Debug)]
pub struct Survey {
    pub mailboxes: u64,
    pub messages: u64,
    pub octets: u64,
    /// Messages too large to be looked at.
    pub oversized: u64,
    pub dates: Dates,
    /// Attachments of any size, with the octets of their bodies in the mail.
    pub attachments: Amount,
    pub sizes: [Amount; SIZES.len()],
    pub detach: Detach,
    pub pictures: Pictures,
    pub links: Links,
    pub references: u64,
    /// Of each kind, how many there are of each scheme.
    pub kinds: BTreeMap<&'static str, Named<u64>>,
    pub probe: Probe,
    /// Outcomes of rows, with their reasons.
    pub outcomes: BTreeMap<String, u64>,
    pub years: Named<Year>,
    pub hosts: Named<Host>,
    pub types: Named<Type>,
}

/// Date fields, in seconds since 1970.
#[derive(Clone, Copy, Default, Debug)]
pub struct Dates {
    pub first: Option<i64>,
    pub last: Option<i64>,
    pub missing: u64,
    /// Those that no clock showed: not readable, before 1971, or in the future.
    pub insane: u64,
}

/// What `detach` would do.
#[derive(Default, Debug)]
pub struct Detach {
    /// Attachments that are large enough, as they are in the mail.
    pub large: Amount,
    /// Those of them that would leave.
    pub leave: Amount,
    /// Octets of their contents, decoded.
    pub content_octets: u64,
    /// Why the others stay.
    pub stay: BTreeMap<&'static str, u64>,
    /// Octets by which the mail would shrink.
    pub saves: i64,
    /// Octets of each content.
    objects: HashMap<Key, u64>,
    /// Contents that were not compared, because there are too many.
    pub uncompared: Amount,
}

/// Places of documents that show a picture.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Pictures {
    /// From the web, trackers not counted.
    pub remote: u64,
    pub trackers: u64,
    /// From the mail itself.
    pub in_mail: u64,
    pub data: u64,
    /// Octets of the `data:` URLs.
    pub data_octets: u64,
    /// By other schemes, or relative to nothing.
    pub elsewhere: u64,
}

/// Links of all kinds, in HTML and CSS.
#[derive(Default, Debug)]
pub struct Links {
    pub documents: u64,
    /// Documents that were not read, or not wholly.
    pub unread: u64,
    pub count: u64,
    pub relative: u64,
    /// Relative ones that a base makes absolute.
    pub with_base: u64,
    /// Relative ones that mean a part of the mail.
    pub to_parts: u64,
    /// The schemes of the others.
    pub schemes: Named<u64>,
    /// What readers do with them.
    pub roles: BTreeMap<&'static str, u64>,
}

/// What was asked, and what came of it.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Probe {
    pub alive: u64,
    pub dead: u64,
    /// Of the dead, those that an archive has; told where one was asked, as is the next.
    #[serde(skip)]
    pub archived: u64,
    /// Of the dead, those that it does not have.
    #[serde(skip)]
    pub lost: u64,
    /// The policy does not allow to ask, or to take the answer.
    pub refused: u64,
    /// A limit, or a tracker.
    pub unasked: u64,
}

impl Survey {
    /// Adds the counts of others.
    pub fn add(&mut self, other: Self) {
        self.mailboxes += other.mailboxes;
        self.messages += other.messages;
        self.octets += other.octets;
        self.oversized += other.oversized;
        self.dates.add(other.dates);
        self.attachments.add(&other.attachments);
        for (sum, more) in self.sizes.iter_mut().zip(&other.sizes) {
            sum.add(more);
        }
        self.detach.add(other.detach);
        self.pictures.add(other.pictures);
        self.links.add(other.links);
        self.references += other.references;
        for (kind, schemes) in other.kinds {
            self.kinds.entry(kind).or_default().add(schemes);
        }
        self.probe.add(other.probe);
        add(&mut self.outcomes, other.outcomes);
        self.years.add(other.years);
        self.hosts.add(other.hosts);
        self.types.add(other.types);
    }

    /// Takes what the walk over mailboxes counted. What `detach` would save is what their sizes say: it is
    /// exactly the difference that a run of it makes.
    pub fn walked(&mut self, summary: &Summary) {
        self.mailboxes = summary.mailboxes;
        self.oversized = summary.oversized;
        let [before, after] = [summary.bytes_in, summary.bytes_out]
            .map(|octets| i64::try_from(octets).unwrap_or(i64::MAX));
        self.detach.saves = before.saturating_sub(after);
    }
}

fn add<N: Ord>(one: &mut BTreeMap<N, u64>, other: BTreeMap<N, u64>) {
    for (name, count) in other {
        *one.entry(name).or_default() += count;
    }
}

impl Dates {
    /// One more message with this date.
    pub fn count(&mut self, date: i64) {
        self.first = Some(self.first.map_or(date, |first| first.min(date)));
        self.last = Some(self.last.map_or(date, |last| last.max(date)));
    }

    fn add(&mut self, other: Self) {
        for date in [other.first, other.last].into_iter().flatten() {
            self.count(date);
        }
        self.missing += other.missing;
        self.insane += other.insane;
    }
}

impl Detach {
    /// One more attachment that would leave: its body, its content and the hash of that.
    pub fn leaves(&mut self, body: u64, content: u64, key: Key) {
        self.leave.count(body);
        self.content_octets += content;
        self.object(key, content);
    }

    fn object(&mut self, key: Key, octets: u64) {
        if self.objects.len() < OBJECTS || self.objects.contains_key(&key) {
            self.objects.insert(key, octets);
        } else {
            self.uncompared.count(octets);
        }
    }

    /// The objects of the store; what was not compared is taken for different.
    pub fn objects(&self) -> Amount {
        let octets: u64 = self.objects.values().sum();
        Amount {
            count: self.objects.len() as u64 + self.uncompared.count,
            octets: octets + self.uncompared.octets,
        }
    }

    /// Attachments whose content an earlier one has, too.
    pub fn duplicates(&self) -> Amount {
        let objects = self.objects();
        Amount {
            count: self.leave.count.saturating_sub(objects.count),
            octets: self.content_octets.saturating_sub(objects.octets),
        }
    }

    fn add(&mut self, other: Self) {
        self.large.add(&other.large);
        self.leave.add(&other.leave);
        self.content_octets += other.content_octets;
        add(&mut self.stay, other.stay);
        self.saves += other.saves;
        self.uncompared.add(&other.uncompared);
        if self.objects.is_empty() {
            self.objects = other.objects;
            return;
        }
        // In an order of their own, so that the same mail always gives the same survey, at the bound too.
        let mut objects: Vec<(Key, u64)> = other.objects.into_iter().collect();
        objects.sort_unstable();
        for (key, octets) in objects {
            self.object(key, octets);
        }
    }
}

impl Pictures {
    fn add(&mut self, other: Self) {
        self.remote += other.remote;
        self.trackers += other.trackers;
        self.in_mail += other.in_mail;
        self.data += other.data;
        self.data_octets += other.data_octets;
        self.elsewhere += other.elsewhere;
    }
}

impl Links {
    fn add(&mut self, other: Self) {
        self.documents += other.documents;
        self.unread += other.unread;
        self.count += other.count;
        self.relative += other.relative;
        self.with_base += other.with_base;
        self.to_parts += other.to_parts;
        self.schemes.add(other.schemes);
        add(&mut self.roles, other.roles);
    }
}

impl Probe {
    fn add(&mut self, other: Self) {
        self.alive += other.alive;
        self.dead += other.dead;
        self.archived += other.archived;
        self.lost += other.lost;
        self.refused += other.refused;
        self.unasked += other.unasked;
    }
}
