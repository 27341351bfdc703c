//! Finds the part to which a Content-ID refers (RFC 2392, RFC 1873). The nearest enclosing message is searched first, then the
//! messages around it. Messages in a digest and forwarded messages were written independently, so several can contain the same
//! id.

use std::collections::HashMap;

use crate::engine::external_body::{ESSENCE, identifier};
use crate::engine::report::{Reason, Refusal};
use crate::mime::media_type::is_composite;
use crate::mime::{MessageTree, PartId};

/// Parts with the same Content-ID: first those with content, then those that are references, because RFC 1873 puts the
/// id on the reference, too.
type Bearers = (Vec<PartId>, Vec<PartId>);

pub(super) struct ContentIds {
    bearers: HashMap<PartId, HashMap<String, Bearers>>,
    /// Message-IDs of the messages in the mail. They are read only when a reference first contains a Message-ID.
    message_ids: Option<HashMap<PartId, String>>,
}

impl ContentIds {
    pub(super) fn read(tree: &MessageTree<'_>, is_reference: impl Fn(PartId) -> bool) -> Self {
        let mut read = Self {
            bearers: HashMap::new(),
            message_ids: None,
        };
        for part in tree.ids() {
            if let Some(value) = tree.value(part, "Content-ID") {
                let bearers = read.bearers.entry(tree.message_of(part)).or_default();
                let (contents, references) = bearers.entry(identifier(value)).or_default();
                if is_reference(part) {
                    references.push(part)
                } else {
                    contents.push(part)
                }
            }
        }
        read
    }

    /// Finds the part with the Content-ID to which the reference `part` refers. `message_id` is the Message-ID in a
    /// `mid:` URL (RFC 2392). `cites_its_own_id` is true for access-type=CONTENT-ID (RFC 1873), where the reference has
    /// the same Content-ID as the part that it refers to.
    pub(super) fn target(
        &mut self,
        tree: &MessageTree<'_>,
        part: PartId,
        content_id: &str,
        message_id: Option<&str>,
        cites_its_own_id: bool,
    ) -> Result<PartId, Refusal> {
        let not_found = |detail| Refusal::lasting(Reason::ContentIdNotFound, detail);
        let mut messages = tree.messages_around(part);
        let found = match message_id {
            None => messages.find_map(|message| self.bearer(message, part, content_id)),
            Some(wanted) => {
                let message_ids = self.message_ids.get_or_insert_with(|| message_ids(tree));
                let found = messages.find(|it| message_ids.get(it).is_some_and(|id| id == wanted));
                let another = || {
                    not_found(format!(
                        "the mid: URL refers to the message <{wanted}>, which is not part of this message"
                    ))
                };
                self.bearer(found.ok_or_else(another)?, part, content_id)
            }
        };
        let bearer = match found {
            Some(bearer) => bearer?,
            None if self.bears(tree, part, content_id) && !cites_its_own_id => {
                return Err(leads_back(content_id));
            }
            None => {
                let detail =
                    format!("no other part of the message has the Content-ID <{content_id}>");
                return Err(not_found(detail));
            }
        };
        if tree.ancestors(part).any(|above| above == bearer) {
            return Err(leads_back(content_id));
        }
        let essence = &tree.part(bearer).essence;
        // A message or a multipart cannot be the target. The only exception is message/external-body, because its
        // content will replace it.
        if essence != ESSENCE && is_composite(essence) {
            let detail = format!(
                "the part with the Content-ID <{content_id}> is a {essence}, and embody copies neither multiparts nor messages"
            );
            return Err(Refusal::lasting(Reason::CompositeTarget, detail));
        }
        if tree.is_cut_off(bearer) {
            let number = tree.number(bearer);
            let detail =
                format!("part {number} is incomplete: the boundary line after it is missing");
            return Err(Refusal::lasting(Reason::IncompleteBody, detail));
        }
        Ok(bearer)
    }

    fn bearer(
        &self,
        message: PartId,
        part: PartId,
        content_id: &str,
    ) -> Option<Result<PartId, Refusal>> {
        let (contents, references) = self.bearers.get(&message)?.get(content_id)?;
        match contents.as_slice() {
            [] => Some(Ok(*references.iter().find(|other| **other != part)?)),
            [content] => Some(Ok(*content)),
            several => {
                let several = several.len();
                let detail = format!(
                    "{several} parts have the Content-ID <{content_id}>, so it is not known which part the reference means"
                );
                Some(Err(Refusal::lasting(Reason::ContentIdNotFound, detail)))
            }
        }
    }

    fn bears(&self, tree: &MessageTree<'_>, part: PartId, content_id: &str) -> bool {
        let of_message = self.bearers.get(&tree.message_of(part));
        let bearers = of_message.and_then(|ids| ids.get(content_id));
        bearers.is_some_and(|(_, references)| references.first() == Some(&part))
    }
}

fn message_ids(tree: &MessageTree<'_>) -> HashMap<PartId, String> {
    let messages = tree.ids().filter(|part| tree.is_message(*part));
    let read = |message| {
        let value = tree.value(message, "Message-ID")?;
        Some((message, identifier(value)))
    };
    messages.filter_map(read).collect()
}

fn leads_back(content_id: &str) -> Refusal {
    let detail = format!(
        "the Content-ID <{content_id}> belongs to the part itself, or to a part that contains it"
    );
    Refusal::lasting(Reason::ReferenceLoop, detail)
}
