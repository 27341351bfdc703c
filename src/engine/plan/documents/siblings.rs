//! Finds the part to which a link refers, and the Content-ID of that part (RFC 2557 §5 and §8, RFC 2392).
//!
//! A link can refer to a part with a Content-Location in the same multipart/related. The part must contain its content, and
//! its Content-ID must be unique: if two parts have the same id, a mail client may show the wrong one.

use std::collections::HashMap;
use std::rc::Rc;

use md5::{Digest as _, Md5};

use super::{Bearers, DocumentIdentity, Documents, RELATED};
use crate::engine::external_body::{holds_blank, own_identifier};
use crate::engine::forms::references;
use crate::engine::ledger::Ledger;
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal};
use crate::link::base::{Base, location};
use crate::link::url::{browser_key, equivalence_key, without_fragment};
use crate::mime::{MessageTree, PartId, PartKind};

impl Documents<'_> {
    pub(super) fn base_of(&mut self, part: PartId) -> Option<Rc<Base>> {
        self.bases.of(self.tree, part)
    }

    /// Returns the multipart/related entities around a part with possible targets for its links, innermost first. The
    /// search ends at the message that contains the part.
    pub(super) fn around(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
    ) -> Result<Vec<PartId>, Refusal> {
        let tree = self.tree;
        let mut related = Vec::new();
        for above in tree.ancestors(part) {
            let entity = tree.part(above);
            if entity.content == PartKind::Message {
                break;
            }
            if entity.essence != RELATED {
                continue;
            }
            // Cached, because many documents can be in the same multipart.
            if !self.have_targets.contains_key(&above) {
                let any = self.locate(above, ledger);
                self.have_targets.insert(above, any);
            }
            if self.have_targets[&above].clone()? {
                related.push(above);
            }
        }
        Ok(related)
    }

    pub(super) fn meant(
        &self,
        document: PartId,
        related: &[PartId],
        absolute: &str,
    ) -> Option<PartId> {
        // A link to the document itself, or to a part that contains it, does not refer to another part.
        let span = self.tree.part(document).span;
        self.located(document, related, absolute)
            .find(|&sibling| sibling != document && !self.tree.part(sibling).span.contains(span))
    }

    /// Returns the parts with this Content-Location, innermost first: exact matches, then those that match only after a
    /// browser's normalisation. Parts in another branch of a multipart/alternative are left out.
    pub(super) fn located<'s>(
        &'s self,
        document: PartId,
        related: &'s [PartId],
        absolute: &str,
    ) -> impl Iterator<Item = PartId> + 's {
        let url = without_fragment(absolute);
        let [exact, in_browser] = if related.is_empty() {
            [None, None]
        } else {
            [
                self.located.get(&equivalence_key(url)),
                self.located_in_browser.get(&browser_key(url)),
            ]
        };
        let of = |located: Option<&'s HashMap<PartId, PartId>>| {
            related
                .iter()
                .filter_map(move |above| located?.get(above).copied())
        };
        of(exact)
            .chain(of(in_browser))
            .filter(move |&part| !self.tree.are_alternatives(document, part))
    }

    /// Returns the work for computing the Content-ID of a part, which hashes the whole part once.
    pub(super) fn cost_of_identity(&self, part: PartId) -> usize {
        if self.identities.contains_key(&part) {
            0
        } else {
            self.tree.part(part).span.len()
        }
    }

    pub(crate) fn identity(&mut self, part: PartId) -> &DocumentIdentity {
        if !self.identities.contains_key(&part) {
            let written = content_id(self.tree, part);
            let is_made = written.is_none();
            let identity = DocumentIdentity {
                content_id: written.unwrap_or_else(|| self.made_id(part)),
                is_made,
            };
            self.identities.insert(part, identity);
        }
        &self.identities[&part]
    }

    /// Collects the locations of the parts in a multipart/related. Parts inside an inner multipart/related are left out,
    /// because only its own documents can refer to them (RFC 2557 §9.6). The location of the inner multipart itself is
    /// included.
    fn locate(&mut self, related: PartId, ledger: &mut Ledger) -> Result<bool, Refusal> {
        let mut any = false;
        let mut waiting: Vec<PartId> = self.tree.part(related).children.clone();
        waiting.reverse();
        while let Some(part) = waiting.pop() {
            let is_aggregate = self.tree.part(part).essence == RELATED;
            if matches!(self.tree.part(part).content, PartKind::Multipart(_)) && !is_aggregate {
                waiting.extend(self.tree.part(part).children.iter().rev());
            }
            if let Some(url) = self.location_of(part)
                && protection(self.tree, part, self.policy).is_none()
                && self.can_be_named(part)
                && references::read(self.tree, part, &self.policy.reading()).is_none()
            {
                ledger.work(url.len())?;
                self.held += url.len();
                if self.held > ledger.room_for_urls() {
                    let detail = "the absolute URLs of all Content-Location fields would together be much longer than the message and would need too much memory";
                    return Err(Refusal::lasting(Reason::TooMuchWork, detail));
                }
                let located = self.located.entry(equivalence_key(&url)).or_default();
                located.entry(related).or_insert(part);
                for url in self.spaced_location_of(part).into_iter().chain([url]) {
                    let key = browser_key(&url);
                    ledger.work(key.len())?;
                    self.held += key.len();
                    let located = self.located_in_browser.entry(key).or_default();
                    located.entry(related).or_insert(part);
                }
                any = true;
            }
        }
        Ok(any)
    }

    /// Returns the location of a part. It is relative to the Content-Base of the part, otherwise to the base of the
    /// surrounding part, otherwise to the message itself.
    pub(super) fn location_of(&mut self, part: PartId) -> Option<String> {
        self.location_in(part, self.tree.value(part, "Content-Location")?)
    }

    /// Returns the location of a part whose Content-Location contains blanks that are not folds. RFC 2557 §4.4.2 removes them,
    /// but programs write file names such as `my picture.png` into the field, and browsers escape the blanks.
    fn spaced_location_of(&mut self, part: PartId) -> Option<String> {
        let value = self.tree.value(part, "Content-Location")?.trim_ascii();
        let is_escaped = value.contains(&b' ') && memchr::memmem::find(value, b"=?").is_none();
        let mut escaped = Vec::with_capacity(value.len());
        let mut is_fold = false;
        for &octet in value.iter().filter(|_| is_escaped) {
            is_fold = matches!(octet, b'\r' | b'\n') || (is_fold && matches!(octet, b' ' | b'\t'));
            match octet {
                b' ' if !is_fold => escaped.extend_from_slice(b"%20"),
                _ => escaped.push(octet),
            }
        }
        is_escaped
            .then(|| self.location_in(part, &escaped))
            .flatten()
    }

    fn location_in(&mut self, part: PartId, value: &[u8]) -> Option<String> {
        let parent = self.tree.part(part).parent;
        let around = parent.and_then(|parent| self.base_of(parent));
        let content_base = self.tree.value(part, "Content-Base");
        let own = Base::of_entity(around.as_deref(), content_base, None, "");
        location(own.as_ref(), value)
    }

    fn can_be_named(&mut self, part: PartId) -> bool {
        let written = self.tree.value(part, "Content-ID");
        if written.is_some_and(holds_blank) {
            return false;
        }
        if let Some(content_id) = content_id(self.tree, part) {
            let key = (self.tree.message_of(part), content_id);
            return self.bearers().get(&key) == Some(&1);
        }
        let entity = self.tree.part(part);
        written.is_none() && entity.header.of(self.tree.original).ends_with(b"\n")
    }

    /// Returns true if exactly one other part of the same message has this Content-ID.
    pub(super) fn is_only_id(&mut self, document: PartId, content_id: String) -> bool {
        let key = (self.tree.message_of(document), content_id);
        self.bearers().get(&key) == Some(&1)
    }

    fn bearers(&mut self) -> &Bearers {
        let tree = self.tree;
        self.bearers.get_or_insert_with(|| {
            let mut bearers = Bearers::new();
            for part in tree.ids() {
                if let Some(content_id) = content_id(tree, part) {
                    let key = (tree.message_of(part), content_id);
                    *bearers.entry(key).or_default() += 1;
                }
            }
            bearers
        })
    }

    /// Returns a new Content-ID for a part. It is the same whether the message has LF or CRLF line endings, and no other part
    /// of the message has it.
    fn made_id(&mut self, part: PartId) -> String {
        let message = self.tree.message_of(part);
        if let Some(given) = self.given_ids.get(&part).cloned()
            && !self.bearers().contains_key(&(message, given.clone()))
        {
            return given;
        }
        let mut digest = Md5::new();
        digest.update(self.tree.number(part));
        digest.update([0]);
        let octets = self.tree.part(part).span.of(self.tree.original);
        let mut from = 0;
        for at in memchr::memmem::find_iter(octets, b"\r\n") {
            digest.update(&octets[from..at]);
            from = at + 1;
        }
        digest.update(&octets[from..]);
        let hex = format!("{:x}", digest.finalize());
        let bearers = self.bearers();
        // The sender could have predicted this id and used it in another part. In this case, further ids are tried.
        let mut content_id = format!("{hex}{MADE}");
        let mut further = 0u32;
        while bearers.contains_key(&(message, content_id.clone())) {
            further += 1;
            content_id = format!("{hex}.{further}{MADE}");
        }
        content_id
    }
}

/// End of the ids that embody gives to parts of the mail.
const MADE: &str = "@embody.invalid";

/// Returns whether a Content-ID has the form of the ids that embody gives to parts of the mail.
pub(crate) fn is_made_id(content_id: &str) -> bool {
    const DIGITS_OF_MD5: usize = 32;

    let Some(hex) = content_id.strip_suffix(MADE) else {
        return false;
    };
    let (hex, further) = hex.split_once('.').unwrap_or((hex, "1"));
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hex.len() == DIGITS_OF_MD5
        && hex.bytes().all(is_hex)
        && !further.is_empty()
        && further.bytes().all(|byte| byte.is_ascii_digit())
}

fn content_id(tree: &MessageTree<'_>, part: PartId) -> Option<String> {
    own_identifier(tree.value(part, "Content-ID")?)
}
