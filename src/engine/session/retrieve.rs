//! Looks up the answers for the references of a pass. If an answer is missing, the round stops, and the driver retrieves the
//! content for the next round.

use super::Session;
use crate::engine::needs::{Found, Needs, too_much};
use crate::engine::plan::{PlanItem, PlanStep};
use crate::engine::{Content, Need, Neighbour};

impl Session<'_> {
    /// Returns the content of a file next to the mailbox. This does not count as a retrieval, because no request is sent, and
    /// each file is read for one reference only.
    pub(in crate::engine) fn read(&mut self, file: Need) -> Found<Content> {
        match (self.answers.get(&file), &self.last) {
            (Some(found), _) => found.clone(),
            (None, Some(refusal)) => Err(refusal.clone()),
            (None, None) => {
                self.lack(vec![file]);
                Ok(None)
            }
        }
    }

    /// Looks up the files next to the mailbox for these items. If the driver has not read a file yet, the round stops,
    /// and the next round finds the file.
    pub(in crate::engine) fn read_beside(&mut self, items: &[&PlanItem<'_>]) {
        if self.context.beside.is_none() || self.last.is_some() {
            return;
        }
        let files = items.iter().filter_map(|item| match &item.step {
            PlanStep::Read { folder, name } => Some(Need::Neighbour(Neighbour::OfMessage {
                folder: folder.clone(),
                name: name.clone(),
            })),
            _ => None,
        });
        let missing: Vec<Need> = files
            .filter(|file| self.answers.get(file).is_none())
            .collect();
        self.lack(missing);
    }

    /// Stops the round because content is missing, and tells the driver to retrieve it. Does nothing if `missing` is
    /// empty, or if the round has already stopped.
    pub(in crate::engine) fn lack(&mut self, missing: Vec<Need>) {
        if !missing.is_empty() {
            let room = self.ledger.room_for_bodies();
            self.needs.get_or_insert(Needs {
                batch: missing,
                room,
            });
        }
    }

    pub(in crate::engine) fn retrieve(&mut self, items: &[&PlanItem<'_>]) {
        self.ask(items.iter().filter_map(|item| match &item.step {
            PlanStep::Retrieve(need) => Some(need.clone()),
            _ => None,
        }));
    }

    /// Looks up the answers for a batch of needs, each of them once per round. If an answer is missing, the round
    /// stops, and the driver retrieves the content for the next round.
    ///
    /// Needs beyond the limit on retrievals get no answer.
    pub(in crate::engine) fn ask(&mut self, wanted: impl IntoIterator<Item = Need>) {
        let mut batch: Vec<Need> = Vec::new();
        for need in wanted {
            if self.retrieved.contains_key(&need) {
                continue;
            }
            // A message can have ten thousand needs beyond the limit, so they are not stored.
            if self.ledger.retrieve().is_ok() {
                // A dry run does not retrieve this content. But if the caller has provided it already, it is used.
                if !self.is_left_open(&need) || self.answers.get(&need).is_some() {
                    batch.push(need.clone());
                }
                self.retrieved.insert(need, Ok(None));
            }
        }
        self.look_up(batch);
    }

    /// Looks up the answers to these needs and adds them to [`Session::retrieved`]. If an answer is missing, the round
    /// stops, and the driver retrieves the content for the next round.
    pub(in crate::engine) fn look_up(&mut self, batch: Vec<Need>) {
        let room = self.ledger.room_for_bodies();
        if self.last.is_none() {
            let missing: Vec<Need> = batch
                .iter()
                .filter(|need| self.answers.get(need).is_none())
                .cloned()
                .collect();
            if !missing.is_empty() {
                self.lack(missing);
                return;
            }
        }
        let mut left = Some(room);
        for need in batch {
            let found = match (self.answers.get(&need), &self.last) {
                (Some(found), _) => found.clone(),
                (None, Some(refusal)) => Err(refusal.clone()),
                (None, None) => continue,
            };
            let octets = match &found {
                Ok(Some(answer)) => answer.len() as u64,
                _ => 0,
            };
            left = left.and_then(|left| left.checked_sub(octets));
            let found = match left {
                Some(_) => found,
                None => Err(too_much(room)),
            };
            if let Ok(Some(answer)) = &found {
                self.ledger.hold(answer.len());
            }
            self.retrieved.insert(need, found);
        }
    }
}
