//! Relative links in HTML and CSS made to work (the contract's §5).
//!
//! For every document the base that holds is found, innermost first; every relative link becomes
//! absolute, or `cid:` of the part in the same multipart/related whose Content-Location it means
//! (RFC 2557 §8). Only the bytes of the values change.

use std::collections::HashMap;
use std::rc::Rc;

use md5::{Digest as _, Md5};

use super::link_text::{ascii, cid_escaped, has_ascii_trail_bytes, mentions_base, raw, readable};
use crate::edit::{Edit, Edits, Group};
use crate::external_body::identifier;
use crate::link::base::{Base, location};
use crate::link::css;
use crate::link::html::{self, Syntax};
use crate::link::links::Links;
use crate::link::url::{
    Dialect, Relation, equivalence_key, masked, relation, resolve_as_browser, without_fragment,
};
use crate::mime::mapped::{Change, MappedBody};
use crate::mime::media_type::is_ascii_compatible;
use crate::mime::{Content, MediaType, PartId, Tree};
use crate::plan::{Bases, protection};
use crate::policy::Policy;
use crate::report::{Kind, Outcome, Reason, Refusal, Row};

/// The type of an aggregate: a root and what it refers to (RFC 2387).
const RELATED: &str = "multipart/related";

/// How many octets of bases may be read for each that the message has or may gain. Growth does not
/// bound `/y` or `../y` times a long base: they stay short.
const BASE_READINGS: u64 = 8;

/// What the links of one document become.
#[derive(Clone, Debug)]
struct Rewriting {
    changes: Vec<Change>,
    absolute: u64,
    to_parts: u64,
    base: Option<Rc<Base>>,
    /// Parts that must get a Content-ID.
    named: Vec<PartId>,
}

/// A document's new links and their edits, or why it is left.
type Rewritten = Result<(Rewriting, Group), Refusal>;

/// Edits and rows for all documents of a message.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) edits: Edits,
    pub(super) rows: Vec<Row>,
    /// What the message gains, in octets.
    pub(super) growth: u64,
}

/// Works on every document of a message.
///
/// `room` is how many octets the message may gain; beyond, no document is touched.
pub(super) fn rewrite(
    original: &[u8],
    tree: &Tree,
    policy: &Policy,
    name: &str,
    room: u64,
) -> Documents {
    let mut rewriter = Rewriter {
        original,
        tree,
        policy,
        siblings: HashMap::new(),
        identities: HashMap::new(),
        bases: Bases::default(),
        room,
        work: 0,
        work_limit: BASE_READINGS
            .saturating_mul(policy.limits.growth.saturating_add(original.len() as u64)),
    };
    let over = Refusal::lasting(
        Reason::GrowthLimit,
        format!(
            "absolute links would add more than --max-growth, {}",
            policy.limits.growth
        ),
    );
    let mut outcomes: Vec<(PartId, Rewritten)> = Vec::new();
    let mut total = 0;
    for part in tree.ids() {
        let Some(mut outcome) = rewriter.document(part) else {
            continue;
        };
        let within = total <= room;
        total += growth_of(&outcome);
        if total > room {
            // No document that gains anything is touched. What was made is dropped at once: each of
            // many documents may be as large as all may be together.
            let before = if within {
                outcomes.as_mut_slice()
            } else {
                &mut []
            };
            let made = before.iter_mut().map(|(_, outcome)| outcome);
            for outcome in made.chain([&mut outcome]) {
                if growth_of(outcome) > 0 {
                    *outcome = Err(over.clone());
                }
            }
        }
        outcomes.push((part, outcome));
    }
    if let Err(refusal) = rewriter.worked(0) {
        // None of them: else a second run, which has less to do, would go on where this one ended.
        for (_, outcome) in &mut outcomes {
            *outcome = Err(refusal.clone());
        }
    }
    let mut documents = Documents::default();
    let mut identified: Vec<PartId> = Vec::new();
    for (part, outcome) in outcomes {
        let outcome = outcome.map(|(rewriting, group)| {
            documents.growth += gained(&group);
            identified.extend(&rewriting.named);
            // Documents are different parts: their edits cannot meet.
            let _ = documents.edits.add(group);
            rewriting
        });
        documents.rows.push(row(tree, part, name, outcome));
    }
    identified.sort_unstable();
    identified.dedup();
    for part in identified {
        let field = [
            b"Content-ID: <",
            rewriter.identity(part).content_id.as_bytes(),
            b">",
            tree.newline.bytes(),
        ]
        .concat();
        let _ = documents
            .edits
            .add(vec![Edit::insert(tree.part(part).header.end, field)]);
    }
    documents
}

/// What the message would gain by a document, in octets.
fn growth_of(outcome: &Rewritten) -> u64 {
    outcome.as_ref().map_or(0, |(_, group)| gained(group))
}

fn gained(group: &Group) -> u64 {
    group.iter().map(Edit::growth).sum::<i64>().max(0) as u64
}

fn row(tree: &Tree, part: PartId, name: &str, outcome: Result<Rewriting, Refusal>) -> Row {
    let mut row = Row {
        message: name.to_owned(),
        part: tree.number(part),
        kind: Kind::Link,
        url: None,
        outcome: Outcome::Left,
        reason: None,
        detail: String::new(),
        media_type: Some(tree.part(part).essence.clone()),
        bytes: Some(tree.part(part).body.len() as u64),
        ms: None,
        links: None,
    };
    match outcome {
        Ok(rewriting) => {
            row.outcome = Outcome::Rewritten;
            row.links = Some(rewriting.absolute + rewriting.to_parts);
            let base = rewriting
                .base
                .filter(|base| !base.is_within_message())
                .map_or_else(String::new, |base| {
                    row.url = Some(masked(&base.url).into_owned());
                    format!(", base from {}", base.origin)
                });
            row.detail = format!(
                "{} links made absolute, {} pointed at parts{base}",
                rewriting.absolute, rewriting.to_parts
            );
        }
        Err(refusal) => {
            row.reason = Some(refusal.reason);
            row.detail = refusal.detail;
        }
    }
    row
}

struct Rewriter<'p> {
    original: &'p [u8],
    tree: &'p Tree,
    policy: &'p Policy,
    /// For every multipart/related: the locations of its parts.
    siblings: HashMap<PartId, HashMap<String, PartId>>,
    /// The Content-ID of every part that a link means: reading or making one for each link would
    /// cost the part's size times their number.
    identities: HashMap<PartId, Identity>,
    bases: Bases,
    room: u64,
    /// Octets of bases that were read for links so far.
    work: u64,
    work_limit: u64,
}

/// The Content-ID of a part that a link means.
#[derive(Clone, Debug)]
struct Identity {
    content_id: String,
    /// Whether the part has none yet.
    is_made: bool,
}

/// What kind of document a part is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Html(Syntax),
    Css,
}

impl Rewriter<'_> {
    /// What becomes of a part's links; none if it is no document or nothing in it would change.
    fn document(&mut self, part: PartId) -> Option<Rewritten> {
        let language = match self.tree.part(part).essence.as_str() {
            "text/html" => Language::Html(Syntax::Html),
            "application/xhtml+xml" => Language::Html(Syntax::Xhtml),
            "text/css" => Language::Css,
            _ => return None,
        };
        if self.tree.part(part).content != Content::Leaf {
            return None;
        }
        let base = self.bases.of(self.original, self.tree, part);
        let related: Vec<PartId> = self
            .tree
            .ancestors(part)
            .filter(|&above| self.tree.part(above).essence == RELATED)
            .collect();
        for &above in &related {
            self.learn(above);
        }
        let has_siblings = related.iter().any(|above| {
            self.siblings
                .get(above)
                .is_some_and(|known| !known.is_empty())
        });
        if base.is_none() && !has_siblings && language == Language::Css {
            return None;
        }
        let charset = self.charset(part);
        if !is_ascii_compatible(&charset) {
            let refusal = Refusal::lasting(
                Reason::CharsetNotSupported,
                format!("links in {charset} are not looked at"),
            );
            return (base.is_some() || has_siblings).then_some(Err(refusal));
        }
        let encoding = self.tree.part(part).encoding;
        let body = self.tree.part(part).body;
        // Without a base around, only <base href> in the document or a sibling can help; most
        // documents are done with here.
        if base.is_none() && !has_siblings {
            let octets = encoding.decode(body.of(self.original))?;
            if !mentions_base(&octets) {
                return None;
            }
        }
        let Some(mapped) = MappedBody::decode(self.original, body, encoding) else {
            let refusal = Refusal::lasting(
                Reason::UndecodableBody,
                format!("its {} is damaged", encoding.as_str()),
            );
            return (base.is_some() || has_siblings).then_some(Err(refusal));
        };
        let document = mapped.octets();
        let (links, base) = match language {
            Language::Css => (css::locate(document), base),
            Language::Html(syntax) => {
                let found = html::locate_in(document, syntax);
                let href = found
                    .base_href
                    .map(|link| readable(&link.decoded(document)));
                let base = match href {
                    Some(href) => Base::of_document(base.as_deref(), &href).map(Rc::new),
                    None => base,
                };
                (found.links, base)
            }
        };
        let found = Found {
            part,
            base,
            related,
            ascii_only: has_ascii_trail_bytes(&charset),
        };
        match self.resolve(document, &links, found) {
            Ok(rewriting) if rewriting.changes.is_empty() => None,
            Err(refusal) => Some(Err(refusal)),
            Ok(mut rewriting) => {
                if let Some(refusal) = protection(self.tree, part, self.policy) {
                    return Some(Err(refusal));
                }
                let changes = std::mem::take(&mut rewriting.changes);
                let group = mapped
                    .replacements(changes, self.tree.newline)
                    .into_iter()
                    .map(|(span, bytes)| Edit::replace(span, bytes))
                    .collect();
                Some(Ok((rewriting, group)))
            }
        }
    }

    fn resolve(
        &mut self,
        document: &[u8],
        links: &Links,
        found: Found,
    ) -> Result<Rewriting, Refusal> {
        let inside = Base::this_message();
        let base = found.base.as_deref().unwrap_or(&inside);
        let base_url = ascii(&base.url);
        // All of the base that counts for whether a reference is relative, `http:`.
        let scheme = base_url.split_inclusive(':').next();
        let mut rewriting = Rewriting {
            changes: Vec::new(),
            absolute: 0,
            to_parts: 0,
            base: found.base.clone(),
            named: Vec::new(),
        };
        let mut gained = 0u64;
        for link in links.iter() {
            let value = link.decoded(document);
            if found.ascii_only && !value.is_ascii() {
                continue;
            }
            let reference = readable(&value);
            if relation(scheme, &reference) != Relation::Relative {
                continue;
            }
            self.worked(base_url.len())?;
            let Ok(absolute) = resolve_as_browser(&base_url, &reference) else {
                continue;
            };
            // `a_b:c` is no scheme, and resolving gives it back under bases that are no browser's.
            if absolute == reference {
                continue;
            }
            let new = match self.sibling(&found, &absolute) {
                Some(sibling) => {
                    rewriting.to_parts += 1;
                    let identity = self.identity(sibling);
                    if identity.is_made {
                        rewriting.named.push(sibling);
                    }
                    let fragment = absolute.get(without_fragment(&absolute).len()..);
                    format!(
                        "cid:{}{}",
                        cid_escaped(&identity.content_id),
                        fragment.unwrap_or_default()
                    )
                }
                None if base.is_within_message() => continue,
                None => {
                    rewriting.absolute += 1;
                    absolute
                }
            };
            let replacement = link.encoded(raw(&new));
            let gain = replacement.len().saturating_sub(link.span.len()) as u64;
            gained += gain;
            if gained > self.room {
                // Hostile: a long base times many links. Stop before memory is spent.
                return Err(Refusal::lasting(
                    Reason::GrowthLimit,
                    format!(
                        "absolute links would add more than --max-growth, {}",
                        self.policy.limits.growth
                    ),
                ));
            }
            rewriting.changes.push(Change {
                octets: link.span.start..link.span.end,
                replacement,
            });
        }
        Ok(rewriting)
    }

    /// Counts the octets of a base that are read for one link.
    fn worked(&mut self, octets: usize) -> Result<(), Refusal> {
        self.work = self.work.saturating_add(octets as u64);
        if self.work <= self.work_limit {
            return Ok(());
        }
        Err(Refusal::lasting(
            Reason::GrowthLimit,
            format!(
                "its links and the length of their base are out of proportion to --max-growth, {}",
                self.policy.limits.growth
            ),
        ))
    }

    /// The part that an absolute URL means, in the nearest multipart/related that has one.
    fn sibling(&self, found: &Found, absolute: &str) -> Option<PartId> {
        if found.related.is_empty() {
            return None;
        }
        let key = equivalence_key(without_fragment(absolute));
        found
            .related
            .iter()
            .filter_map(|above| self.siblings.get(above)?.get(&key).copied())
            .find(|&sibling| {
                // What a document stands in, as the document itself, is no other part.
                sibling != found.part && self.tree.ancestors(found.part).all(|up| up != sibling)
            })
    }

    /// Remembers which part of a multipart/related has which Content-Location.
    ///
    /// Of a multipart/related inside, only its own location counts: what is in it can be meant by
    /// its own documents only (RFC 2557 §9.6).
    fn learn(&mut self, related: PartId) {
        if self.siblings.contains_key(&related) {
            return;
        }
        let mut known = HashMap::new();
        let mut waiting: Vec<PartId> = self.tree.part(related).children.clone();
        waiting.reverse();
        while let Some(part) = waiting.pop() {
            let is_aggregate = self.tree.part(part).essence == RELATED;
            if matches!(self.tree.part(part).content, Content::Multipart(_)) && !is_aggregate {
                waiting.extend(self.tree.part(part).children.iter().rev());
            }
            if let Some(url) = self.location_of(part)
                && protection(self.tree, part, self.policy).is_none()
                && self.can_be_named(part)
            {
                known.entry(equivalence_key(&url)).or_insert(part);
            }
        }
        self.siblings.insert(related, known);
    }

    /// The absolute Content-Location of a part: against its own Content-Base, else against the
    /// base of what it stands in, else within the message.
    fn location_of(&mut self, part: PartId) -> Option<String> {
        let value = self.tree.value(self.original, part, "Content-Location")?;
        let parent = self.tree.part(part).parent;
        let around = parent.and_then(|parent| self.bases.of(self.original, self.tree, parent));
        let own = Base::of_entity(
            around.as_deref(),
            self.tree.value(self.original, part, "Content-Base"),
            None,
            "",
            Dialect::default(),
        );
        location(own.as_ref(), value, Dialect::default())
    }

    fn content_id(&self, part: PartId) -> Option<String> {
        let value = self.tree.value(self.original, part, "Content-ID")?;
        Some(identifier(value)).filter(|id| !id.is_empty())
    }

    /// The Content-ID that the part has or will have.
    fn identity(&mut self, part: PartId) -> &Identity {
        let identity = match self.identities.remove(&part) {
            Some(known) => known,
            None => {
                let written = self.content_id(part);
                Identity {
                    is_made: written.is_none(),
                    content_id: written.unwrap_or_else(|| self.made_id(part)),
                }
            }
        };
        self.identities.entry(part).or_insert(identity)
    }

    /// Whether the part has a Content-ID, or a header that can take one.
    fn can_be_named(&self, part: PartId) -> bool {
        self.content_id(part).is_some()
            || (self.tree.value(self.original, part, "Content-ID").is_none()
                && self
                    .tree
                    .part(part)
                    .header
                    .of(self.original)
                    .ends_with(b"\n"))
    }

    /// A Content-ID made from the part's bytes: the same message always gets the same one, with LF
    /// and with CRLF.
    fn made_id(&self, part: PartId) -> String {
        let mut digest = Md5::new();
        digest.update(self.tree.number(part));
        digest.update([0]);
        let mut rest = self.tree.part(part).span.of(self.original);
        while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
            let (line, behind) = rest.split_at(at);
            digest.update(line);
            rest = behind.get(1..).unwrap_or_default();
        }
        digest.update(rest);
        let hex: String = digest
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{hex}@embody.invalid")
    }

    fn charset(&self, part: PartId) -> String {
        let value = self.tree.value(self.original, part, "Content-Type");
        value
            .and_then(|value| MediaType::parse(value).parameter("charset"))
            .map(|charset| {
                String::from_utf8_lossy(&charset)
                    .trim()
                    .to_ascii_lowercase()
            })
            .unwrap_or_default()
    }
}

/// What is known about a document when its links are resolved.
struct Found {
    part: PartId,
    base: Option<Rc<Base>>,
    /// The multipart/related around it, nearest first.
    related: Vec<PartId>,
    /// Whether values with other than ASCII bytes must be left: see `link::value` on charsets.
    ascii_only: bool,
}
