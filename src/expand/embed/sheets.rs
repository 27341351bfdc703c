//! What style sheets show that are no parts of the mail yet.

use std::collections::{HashMap, HashSet};

use super::container::Container;
use super::pictures::Pictures;
use super::places::{Beside, Place, Places, TooMany};
use crate::expand::session::Session;
use crate::mime::Tree;
use crate::plan::documents::Documents;
use crate::report::Refusal;

/// What style sheets show, by what their parts are put into and their numbers in [`Pictures`].
#[derive(Default)]
pub(super) struct Sheets {
    known: HashMap<(Container, usize), Vec<Place>>,
    /// Those that cannot be looked into, and why.
    refused: HashMap<(Container, usize), Refusal>,
    numbers: HashSet<usize>,
}

impl Sheets {
    /// Whether a content is a style sheet.
    pub(super) fn holds(&self, number: usize) -> bool {
        self.numbers.contains(&number)
    }

    /// What one shows of what is to be embedded.
    pub(super) fn places(&self, container: Container, number: usize) -> Result<&[Place], Refusal> {
        let key = (container, number);
        match self.refused.get(&key) {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(self.known.get(&key).map_or(&[], Vec::as_slice)),
        }
    }

    /// Looks into one, once for each container: the parts of the mail that it means are those of the documents there.
    pub(super) fn look_into(
        &mut self,
        session: &mut Session<'_>,
        (original, tree): (&[u8], &Tree),
        documents: &mut Documents<'_>,
        (beside, number): (&Beside, usize),
        (places, pictures): (&mut Places, &mut Pictures<'_>),
    ) {
        self.numbers.insert(number);
        let Ok(container) = Container::of(original, tree, beside.document) else {
            return;
        };
        let key = (container, number);
        if self.known.contains_key(&key) || self.refused.contains_key(&key) {
            return;
        }
        let Some((octets, charset)) = pictures.text(number) else {
            return;
        };
        let policy = session.policy();
        places.most_nested = session.ledger.room_for_nested();
        let mut found = Vec::new();
        let from = (beside.document, beside.steps + 1, 0);
        let mut too_many = TooMany::default();
        let looked = documents.shown_in_sheet(
            beside.document,
            &mut session.ledger,
            (octets.bytes(), charset.as_deref()),
            |shown| {
                if too_many.ends_here(places, &shown, policy) {
                    return;
                }
                found.extend(places.place(shown, from, policy, pictures));
            },
        );
        found.extend(too_many.place(0));
        match looked {
            Ok(()) => drop(self.known.insert(key, found)),
            Err(refusal) => drop(self.refused.insert(key, refusal)),
        }
    }
}
