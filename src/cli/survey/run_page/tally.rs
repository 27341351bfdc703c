//! Counts of the references of a run: which content was saved, is lost, or may be available later.

use super::super::answer::ProbeAnswer;
use super::super::steps::pictures_and_attachments;
use super::super::tally::{Amount, Fates, TallyCounts as _, TallyNames};

use crate::engine::policy::countable;
use crate::engine::report::{Kind, Outcome, Reason, Row};
use crate::link::url::UrlReference;

/// Maximum number of attachments in each list.
const LISTED: usize = 50;

/// Counts of the references of a run, by their outcome.
#[derive(Default, Debug)]
pub(crate) struct RunTally {
    pub(super) pictures: Amount,
    pub(super) attachments: Amount,
    pub(super) moved: Amount,
    pub(super) restored: Amount,
    pub(super) blanked: u64,
    pub(super) links: u64,
    pub(super) lost: LossCounts,
    pub(super) again: LossCounts,
    /// Content of hosts that could not be resolved. It becomes part of `lost` or `again` in [`RunTally::settle`].
    unresolved: LossCounts,
    pub(super) denied: LossCounts,
    pub(super) refused: LossCounts,
    pub(super) trackers: u64,
    /// Number of references that were left unchanged for reasons that are in none of the other counts. The key is the
    /// reason.
    pub(super) left: TallyNames<u64>,
    pub(super) lost_causes: TallyNames<u64>,
    pub(super) again_causes: TallyNames<u64>,
    pub(super) denied_causes: TallyNames<u64>,
    /// Number of references that the policy refused, by the option that would allow them.
    pub(super) remedies: TallyNames<u64>,
    pub(super) hosts: TallyNames<Fates>,
    /// Attachments that are gone.
    pub(super) listed: Vec<LossTally>,
    /// Attachments that need a sign-in.
    pub(super) listed_denied: Vec<LossTally>,
    /// Whether requests were sent, and no server responded in the whole run.
    pub(super) has_no_response: bool,
}

#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LossCounts {
    pub(super) pictures: u64,
    pub(super) others: u64,
}

#[derive(Debug)]
pub(super) struct LossTally {
    pub(super) mail: String,
    pub(super) what: String,
    pub(super) cause: String,
}

impl LossCounts {
    fn count(&mut self, row: &Row) {
        match row.kind {
            Kind::Embed => self.pictures += 1,
            _ => self.others += 1,
        }
    }

    fn add(&mut self, other: Self) {
        self.pictures += other.pictures;
        self.others += other.others;
    }

    pub(super) fn sum(&self) -> u64 {
        self.pictures + self.others
    }

    /// Returns the counts as text: `3 pictures and 1 attachment`.
    pub(super) fn words(&self) -> String {
        pictures_and_attachments(self.pictures, self.others)
    }
}

impl RunTally {
    /// Counts the rows of one message. `called` returns the name of the message.
    pub(crate) fn count(
        &mut self,
        rows: &[Row],
        called: impl Fn() -> String,
        remedy: impl Fn(&Row) -> Option<String>,
    ) {
        for row in rows {
            self.links += row.links.unwrap_or(0);
            if row.kind.is_of_links() {
                continue;
            }
            let octets = row.bytes.unwrap_or(0);
            let fate = match (row.outcome, row.kind) {
                (Outcome::Expanded, Kind::Embed) => {
                    self.pictures.count(octets);
                    Some(ProbeAnswer::Alive)
                }
                (Outcome::Expanded, _) => {
                    self.attachments.count(octets);
                    Some(ProbeAnswer::Alive)
                }
                (Outcome::Detached, _) => {
                    self.moved.count(octets);
                    None
                }
                (Outcome::Restored, _) => {
                    self.restored.count(octets);
                    None
                }
                (Outcome::Blanked, _) => {
                    self.blanked += 1;
                    None
                }
                (Outcome::Left, _) => self.left(row, &called, &remedy),
                _ => None,
            };
            let reference = UrlReference::split(row.url.as_deref().unwrap_or_default());
            let host = reference.site().and_then(|it| countable(it.host));
            if let (Some(host), Some(fate)) = (host, fate) {
                let fates = self.hosts.of(&host);
                match fate {
                    ProbeAnswer::Alive => fates.saved += 1,
                    ProbeAnswer::Gone => fates.lost += 1,
                    ProbeAnswer::Unresolved => fates.unresolved += 1,
                    ProbeAnswer::Silent | ProbeAnswer::Limited => fates.again += 1,
                    _ => fates.left += 1,
                }
            }
        }
    }

    fn left(
        &mut self,
        row: &Row,
        called: impl Fn() -> String,
        remedy: impl Fn(&Row) -> Option<String>,
    ) -> Option<ProbeAnswer> {
        if row.reason == Some(Reason::Tracker) {
            self.trackers += 1;
            return None;
        }
        let answer = ProbeAnswer::of(row);
        let cause = cause(row);
        match answer {
            ProbeAnswer::Gone => {
                self.lost.count(row);
                *self.lost_causes.exactly(cause.clone()) += 1;
            }
            ProbeAnswer::Unresolved => self.unresolved.count(row),
            ProbeAnswer::Silent | ProbeAnswer::Limited => {
                self.again.count(row);
                *self.again_causes.exactly(cause.clone()) += 1;
            }
            ProbeAnswer::Denied => {
                self.denied.count(row);
                *self.denied_causes.exactly(cause.clone()) += 1;
            }
            ProbeAnswer::Refused => {
                self.refused.count(row);
                let remedy = remedy(row).unwrap_or_else(|| cause.clone());
                *self.remedies.exactly(remedy) += 1;
            }
            ProbeAnswer::Alive | ProbeAnswer::Unasked => {
                *self.left.exactly(cause.clone()) += 1;
                return None;
            }
        }
        let list = match answer {
            ProbeAnswer::Gone | ProbeAnswer::Unresolved => Some(&mut self.listed),
            ProbeAnswer::Denied => Some(&mut self.listed_denied),
            _ => None,
        };
        let has_room = |list: &&mut Vec<LossTally>| list.len() < LISTED;
        if let Some(list) = list.filter(has_room).filter(|_| row.kind != Kind::Embed) {
            let named = row.hosted.as_deref().and_then(|it| it.name.clone());
            list.push(LossTally {
                mail: called(),
                what: named.or_else(|| row.url.clone()).unwrap_or_default(),
                cause,
            });
        }
        Some(answer)
    }

    /// Decides about hosts that could not be resolved. If no server responded in the whole run, the network was probably
    /// down, so nothing is lost: a later run may find it.
    pub(crate) fn settle(&mut self, has_no_response: bool) {
        let unresolved = std::mem::take(&mut self.unresolved);
        self.has_no_response = has_no_response;
        if !has_no_response {
            self.lost.add(unresolved);
            if unresolved.sum() > 0 {
                *self.lost_causes.exactly(UNRESOLVED.to_owned()) += unresolved.sum();
            }
            self.hosts
                .each_mut(|it| it.lost += std::mem::take(&mut it.unresolved));
            return;
        }
        self.again.add(unresolved);
        if unresolved.sum() > 0 {
            let cause = "the host name could not be resolved, and no other server responded";
            *self.again_causes.exactly(cause.to_owned()) += unresolved.sum();
        }
        // A status such as 403 was from the proxy.
        self.again.add(std::mem::take(&mut self.denied));
        self.again_causes
            .add(std::mem::take(&mut self.denied_causes));
        // Content without a request, such as a link that has expired by its date.
        self.lost = LossCounts::default();
        self.left.add(std::mem::take(&mut self.lost_causes));
        self.listed.clear();
        self.listed_denied.clear();
        self.hosts.each_mut(|it| {
            it.again += std::mem::take(&mut it.unresolved);
            it.left += std::mem::take(&mut it.lost);
        });
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.pictures.add(&other.pictures);
        self.attachments.add(&other.attachments);
        self.moved.add(&other.moved);
        self.restored.add(&other.restored);
        self.blanked += other.blanked;
        self.links += other.links;
        self.trackers += other.trackers;
        self.lost.add(other.lost);
        self.unresolved.add(other.unresolved);
        self.again.add(other.again);
        self.denied.add(other.denied);
        self.refused.add(other.refused);
        self.left.add(other.left);
        self.lost_causes.add(other.lost_causes);
        self.again_causes.add(other.again_causes);
        self.denied_causes.add(other.denied_causes);
        self.remedies.add(other.remedies);
        self.hosts.add(other.hosts);
        for (list, more) in [
            (&mut self.listed, other.listed),
            (&mut self.listed_denied, other.listed_denied),
        ] {
            let room = LISTED.saturating_sub(list.len());
            list.extend(more.into_iter().take(room));
        }
    }
}

const UNRESOLVED: &str = "the server does not exist any more";

/// Explains the reason of a row, with the status of the server.
fn cause(row: &Row) -> String {
    let Some(reason) = row.reason else {
        return "the content was not retrieved in this run".to_owned();
    };
    match (reason, row.status) {
        (Reason::HttpStatus, Some(404)) => {
            "the server does not have the file any more (404)".to_owned()
        }
        (Reason::HttpStatus, Some(410)) => "the server removed the file (410)".to_owned(),
        (Reason::HttpStatus | Reason::FtpStatus, Some(status)) => {
            format!("the server answered with status {status}")
        }
        (Reason::NameNotFound, _) => UNRESOLVED.to_owned(),
        (Reason::NotAnImage | Reason::WebPage, _) => {
            "the server has a web page or something else in its place".to_owned()
        }
        (reason, _) => reason.meaning().to_owned(),
    }
}
