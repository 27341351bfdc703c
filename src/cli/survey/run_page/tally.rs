//! Counts of the references of a run: which content was saved, is lost, or may be available later.

use std::collections::BTreeMap;

use super::super::super::tally::{Amount, CountedRow, RowTally, TallyNames};
use super::super::answer::ProbeAnswer;
use super::super::steps::pictures_and_attachments;
use super::super::tally::Fates;
use crate::engine::report::{Kind, Outcome, Reason, Row};

/// Maximum number of attachments in each list.
const LISTED: usize = 50;

/// Outcome of a reference whose content the run did not put into the mail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LossClass {
    Lost,
    /// Another run may retrieve it.
    Again,
    /// Content of hosts that could not be resolved. It becomes `Lost` or `Again` in [`RunTally::settle`].
    Unresolved,
    Denied,
    Refused,
    /// Left unchanged for a reason that belongs to none of the other classes.
    Left,
}

/// The classes of references on the page about a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RunClass {
    Picture,
    Attachment,
    Moved,
    Restored,
    Blanked,
    /// Links that were made absolute.
    Link,
    Tracker,
    PictureLoss(LossClass),
    AttachmentLoss(LossClass),
}

/// Counts of the references of a run, by their outcome.
#[derive(Default, Debug)]
pub(crate) struct RunTally {
    rows: RowTally<RunClass>,
    /// Number of references by the reason of the loss, or, if the policy refused them, by the option that would allow
    /// them.
    causes: BTreeMap<LossClass, TallyNames<u64>>,
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
    pictures: u64,
    pub(super) others: u64,
}

#[derive(Debug)]
pub(super) struct LossTally {
    pub(super) mail: String,
    pub(super) what: String,
    pub(super) cause: String,
}

impl LossCounts {
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
            let counted = CountedRow::of(row);
            let links = row.links.unwrap_or(0);
            self.rows.count_several(RunClass::Link, links);
            if row.kind.is_of_links() {
                continue;
            }
            let (class, fate) = match (row.outcome, row.kind) {
                (Outcome::Expanded, Kind::Embed) => {
                    (Some(RunClass::Picture), Some(ProbeAnswer::Alive))
                }
                (Outcome::Expanded, _) => (Some(RunClass::Attachment), Some(ProbeAnswer::Alive)),
                (Outcome::Detached, _) => (Some(RunClass::Moved), None),
                (Outcome::Restored, _) => (Some(RunClass::Restored), None),
                (Outcome::Blanked, _) => (Some(RunClass::Blanked), None),
                (Outcome::Left, _) => (None, self.left(row, &called, &remedy)),
                _ => (None, None),
            };
            if let Some(class) = class {
                self.rows.count(class, counted.octets());
            }
            if let (Some(host), Some(fate)) = (&counted.host, fate) {
                let fates = self.hosts.of(host);
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
            self.rows.count(RunClass::Tracker, 0);
            return None;
        }
        let answer = ProbeAnswer::of(row);
        let cause = cause(row);
        let loss = match answer {
            ProbeAnswer::Gone => LossClass::Lost,
            ProbeAnswer::Unresolved => LossClass::Unresolved,
            ProbeAnswer::Silent | ProbeAnswer::Limited => LossClass::Again,
            ProbeAnswer::Denied => LossClass::Denied,
            ProbeAnswer::Refused => LossClass::Refused,
            ProbeAnswer::Alive | ProbeAnswer::Unasked => LossClass::Left,
        };
        let class = match row.kind {
            Kind::Embed => RunClass::PictureLoss(loss),
            _ => RunClass::AttachmentLoss(loss),
        };
        self.rows.count(class, 0);
        let named = match loss {
            LossClass::Refused => remedy(row).unwrap_or_else(|| cause.clone()),
            _ => cause.clone(),
        };
        self.count_cause(loss, named, 1);
        if loss == LossClass::Left {
            return None;
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

    fn count_cause(&mut self, loss: LossClass, cause: String, count: u64) {
        *self.causes.entry(loss).or_default().exactly(cause) += count;
    }

    /// Returns the number of references of a class by their causes.
    pub(super) fn causes(&self, loss: LossClass) -> Option<&TallyNames<u64>> {
        self.causes.get(&loss)
    }

    pub(super) fn amount(&self, class: RunClass) -> Amount {
        self.rows.amount(&class)
    }

    /// Returns the number of references of a class, or of links.
    pub(super) fn number(&self, class: RunClass) -> u64 {
        self.rows.of(&class)
    }

    pub(super) fn loss(&self, loss: LossClass) -> LossCounts {
        LossCounts {
            pictures: self.rows.of(&RunClass::PictureLoss(loss)),
            others: self.rows.of(&RunClass::AttachmentLoss(loss)),
        }
    }

    /// Counts all references of the class `from`, whose causes are known, in the class `to`.
    fn reclassify(&mut self, from: LossClass, to: LossClass) {
        self.rows
            .reclassify(&RunClass::PictureLoss(from), RunClass::PictureLoss(to));
        self.rows.reclassify(
            &RunClass::AttachmentLoss(from),
            RunClass::AttachmentLoss(to),
        );
        if let Some(causes) = self.causes.remove(&from) {
            self.causes.entry(to).or_default().add(causes);
        }
    }

    /// Decides about hosts that could not be resolved. If no server responded in the whole run, the network was probably
    /// down, so nothing is lost: a later run may find it.
    pub(crate) fn settle(&mut self, has_no_response: bool) {
        self.has_no_response = has_no_response;
        let unresolved = self.loss(LossClass::Unresolved).sum();
        // The cause depends on the responses of the whole run.
        self.causes.remove(&LossClass::Unresolved);
        if !has_no_response {
            self.reclassify(LossClass::Unresolved, LossClass::Lost);
            if unresolved > 0 {
                self.count_cause(LossClass::Lost, UNRESOLVED.to_owned(), unresolved);
            }
            self.hosts
                .each_mut(|it| it.lost += std::mem::take(&mut it.unresolved));
            return;
        }
        self.reclassify(LossClass::Unresolved, LossClass::Again);
        if unresolved > 0 {
            let cause = "the host name could not be resolved, and no other server responded";
            self.count_cause(LossClass::Again, cause.to_owned(), unresolved);
        }
        // A status such as 403 was from the proxy.
        self.reclassify(LossClass::Denied, LossClass::Again);
        // Content without a request, such as a link that has expired by its date.
        self.reclassify(LossClass::Lost, LossClass::Left);
        self.listed.clear();
        self.listed_denied.clear();
        self.hosts.each_mut(|it| {
            it.again += std::mem::take(&mut it.unresolved);
            it.left += std::mem::take(&mut it.lost);
        });
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.rows.add(other.rows);
        for (loss, causes) in other.causes {
            self.causes.entry(loss).or_default().add(causes);
        }
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
