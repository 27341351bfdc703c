//! Counts of the references of a run: which content was saved, is lost, or may be available later.

use std::collections::BTreeMap;

use super::super::super::tally::{Amount, CountedRow, RowTally, TallyNames, distinct_rows};
use super::super::answer::ProbeAnswer;
use super::super::steps::pictures_and_attachments;
use super::super::tally::Fates;
use crate::engine::report::{Kind, Outcome, Reason, Row};

/// Maximum number of attachments in each list.
const LISTED: usize = 50;

/// Why the content of a reference is not in the mail after the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LossClass {
    Lost,
    /// The content may be retrieved by another run.
    Again,
    /// The host name could not be resolved. At the end of the run, [`RunTally::settle`] changes this to `Lost` or
    /// `Again`.
    Unresolved,
    Denied,
    Refused,
    /// The reference was left unchanged for any other reason.
    Left,
}

/// Classes in which the page about a run counts references.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RunClass {
    Picture,
    Attachment,
    Moved,
    Restored,
    Blanked,
    /// Relative links that were made absolute.
    Link,
    Tracker,
    PictureLoss(LossClass),
    AttachmentLoss(LossClass),
}

/// References of a run, counted by their outcome.
#[derive(Default, Debug)]
pub(crate) struct RunTally {
    rows: RowTally<RunClass>,
    /// References by cause, for each class of loss. The cause is the reason, or the option that would have allowed a
    /// refused reference.
    causes: BTreeMap<LossClass, TallyNames<u64>>,
    pub(super) hosts: TallyNames<Fates>,
    /// Attachments that are lost.
    pub(super) listed: Vec<LossTally>,
    /// Attachments that need a sign-in.
    pub(super) listed_denied: Vec<LossTally>,
    /// Whether requests were sent, but no server responded in the whole run.
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
    /// Counts the rows of a message. `called` returns the name of the message.
    pub(crate) fn count(
        &mut self,
        rows: &[Row],
        called: impl Fn() -> String,
        remedy: impl Fn(&Row) -> Option<String>,
    ) {
        for row in distinct_rows(rows) {
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

    /// Returns the references of a class of loss, by cause.
    pub(super) fn causes(&self, loss: LossClass) -> Option<&TallyNames<u64>> {
        self.causes.get(&loss)
    }

    pub(super) fn amount(&self, class: RunClass) -> Amount {
        self.rows.amount(&class)
    }

    /// Returns the number of references in a class. For `Link`, a row can contain several links.
    pub(super) fn number(&self, class: RunClass) -> u64 {
        self.rows.of(&class)
    }

    pub(super) fn loss(&self, loss: LossClass) -> LossCounts {
        LossCounts {
            pictures: self.rows.of(&RunClass::PictureLoss(loss)),
            others: self.rows.of(&RunClass::AttachmentLoss(loss)),
        }
    }

    /// Moves all counts of the class `from`, including the causes, to the class `to`.
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

    /// Decides at the end of the run whether content on unresolvable hosts is lost. If no server responded at all, the
    /// network was probably down, so a later run may still find the content.
    pub(crate) fn settle(&mut self, has_no_response: bool) {
        self.has_no_response = has_no_response;
        let unresolved = self.loss(LossClass::Unresolved).sum();
        // The cause is added again below, because its text depends on `has_no_response`.
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
        // No server responded, so a status such as 403 came from a proxy. Another run may succeed.
        self.reclassify(LossClass::Denied, LossClass::Again);
        // Content that counted as lost without any request, such as an expired link, may still exist.
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

const UNRESOLVED: &str = "the host name does not exist any more";

/// Explains the reason of a row, including the HTTP status.
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
            "the server returned a web page or other content instead of the picture or file"
                .to_owned()
        }
        (reason, _) => reason.meaning().to_owned(),
    }
}
