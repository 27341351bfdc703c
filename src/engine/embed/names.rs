//! Content-IDs of new parts. An id is a hash of the content. If the message already contains the id, a number is appended, so
//! that mail clients that search the whole message for an id find the right part.

use std::collections::HashMap;

use crate::engine::external_body::{holds_blank, identifier};
use crate::engine::guide::digits_of;
use crate::engine::plan::documents::RELATED;
use crate::mime::{MessageTree, PartId};

pub(super) use crate::engine::guide::{DIGITS, DOMAIN};

#[derive(Default)]
pub(super) struct PictureNames {
    bearers: HashMap<(PartId, String), usize>,
    ours: HashMap<(PartId, String), Vec<(PartId, String)>>,
    made: HashMap<(PartId, String), u32>,
}

impl PictureNames {
    pub(super) fn of(tree: &MessageTree<'_>) -> Self {
        let mut names = Self::default();
        for part in tree.ids() {
            let Some(value) = tree.value(part, "Content-ID") else {
                continue;
            };
            let content_id = identifier(value);
            let mut around = tree.ancestors(part);
            // Mail clients treat a Content-ID with blanks in different ways. A part with such an id is therefore not
            // used in place of a new part with the same picture.
            if !holds_blank(value)
                && let Some(digits) = digits_of(&content_id)
                && let Some(related) = around.find(|above| tree.part(*above).essence == RELATED)
            {
                let key = (related, digits.to_owned());
                let known = names.ours.entry(key).or_default();
                known.push((part, content_id.clone()));
            }
            let key = (tree.message_of(part), content_id);
            *names.bearers.entry(key).or_default() += 1;
        }
        names
    }

    pub(super) fn of_ours(
        &self,
        (message, related): (PartId, PartId),
        digits: &str,
    ) -> impl Iterator<Item = (PartId, &str)> {
        self.ours
            .get(&(related, digits.to_owned()))
            .map_or(&[] as &[_], Vec::as_slice)
            .iter()
            .filter(move |(_, content_id)| {
                self.bearers.get(&(message, content_id.clone())) == Some(&1)
            })
            .map(|(part, content_id)| (*part, content_id.as_str()))
    }

    pub(super) fn new_id(&mut self, message: PartId, digits: &str) -> String {
        let made = self.made.entry((message, digits.to_owned())).or_default();
        loop {
            let content_id = match *made {
                0 => format!("{digits}{DOMAIN}"),
                further => format!("{digits}.{further}{DOMAIN}"),
            };
            *made += 1;
            let key = (message, content_id);
            if !self.bearers.contains_key(&key) {
                return key.1;
            }
        }
    }
}

pub(super) fn is_ours(content_id: &str) -> bool {
    digits_of(content_id).is_some()
}
