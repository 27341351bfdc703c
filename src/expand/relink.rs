//! What becomes of the links of one document: absolute, or `cid:` of the part that they mean.
//!
//! The base that holds is found, innermost first; then every relative link becomes absolute, or is pointed
//! at the part whose Content-Location it means (RFC 2557 §8). A document is left as a whole, with a reason,
//! where its bytes may not be what they look like. Attachments are somebody's files: nothing is done or said.

mod candidates;
mod document;
mod options;
pub(super) mod sheet;
mod shown;

use std::collections::BTreeSet;
use std::rc::Rc;

pub(super) use self::candidates::Fallbacks;
use self::document::{Document, Language, unsupported};
pub(super) use self::shown::Shown;
#[cfg(feature = "cli")]
pub(super) use self::shown::Written;
use super::document_digest::{self, Digest};
use super::ledger::Ledger;
use super::link_text::{ascii, cid_escaped, mentions_base, raw, readable};
use super::long_lines;
use super::resolved::{Memory, Resolved, Stage};
use super::siblings::{Identity, RELATED, Siblings};
use crate::edit::{Edit, Group};
use crate::link::base::Base;
use crate::link::html::Syntax;
use crate::link::url::{Relation, relation, resolve_as_browser, without_fragment};
use crate::link::value::LinkValue;
use crate::mime::charset::Charset;
use crate::mime::mapped::{Changes, MappedBody};
use crate::mime::{Content, MediaType, PartId, TransferEncoding, Tree};
use crate::plan::protection;
use crate::policy::Policy;
use crate::report::{Reason, Refusal};

/// What the links of one document become.
#[derive(Clone, Debug)]
pub(super) struct Rewriting {
    changes: Changes,
    pub(super) absolute: u64,
    pub(super) to_parts: u64,
    pub(super) base: Option<Rc<Base>>,
    /// Parts that must get a Content-ID.
    pub(super) named: BTreeSet<PartId>,
    /// What became of the document's Content-MD5, if it has one.
    pub(super) digest: Option<Digest>,
}

impl Rewriting {
    /// No change yet.
    fn of(base: Option<Rc<Base>>) -> Self {
        Self {
            changes: Changes::default(),
            absolute: 0,
            to_parts: 0,
            base,
            named: BTreeSet::new(),
            digest: None,
        }
    }
}

/// Octets of a link, at most: no server takes as many, and it would be held several times.
const LONGEST: usize = 1 << 20;

/// A document's new links and their edits, or why it is left.
pub(super) type Rewritten = Result<(Rewriting, Group), Refusal>;

/// Works on one document of a message after the other.
pub(super) struct Relinker<'p> {
    original: &'p [u8],
    tree: &'p Tree,
    policy: &'p Policy,
    siblings: Siblings<'p>,
    ledger: &'p mut Ledger,
}

impl<'p> Relinker<'p> {
    /// `ledger` holds what the message may still cost.
    pub(super) fn new(
        original: &'p [u8],
        tree: &'p Tree,
        policy: &'p Policy,
        ledger: &'p mut Ledger,
    ) -> Self {
        Self {
            original,
            tree,
            policy,
            siblings: Siblings::new(original, tree, policy),
            ledger,
        }
    }

    /// The Content-ID that a part has or will have.
    pub(super) fn identity(&mut self, part: PartId) -> &Identity {
        self.siblings.identity(part)
    }

    /// What becomes of a part's links; none if it is no document or nothing in it would change.
    pub(super) fn document(&mut self, part: PartId) -> Option<Rewritten> {
        self.looked_at(part, false, |relinker, mapped, document, base, related| {
            relinker.resolve(mapped, document, base, related)
        })
    }

    /// Decodes and reads a document, and makes the changes that `decide` wants; none if the part is no
    /// document, or nothing changes. Unless `always`, a document without any base or sibling is not looked at.
    fn looked_at(
        &mut self,
        part: PartId,
        always: bool,
        decide: impl FnOnce(
            &mut Self,
            &MappedBody<'_>,
            &mut Document<'_>,
            Option<Rc<Base>>,
            &[PartId],
        ) -> Result<Rewriting, Refusal>,
    ) -> Option<Rewritten> {
        let language = self.language(part)?;
        let base = self.siblings.base_of(part);
        let related = self.siblings.around(part);
        let is_hopeless = !always && base.is_none() && related.is_empty();
        let charset = match self.charset(part) {
            Ok(charset) => charset,
            Err(_) if is_hopeless => return None,
            Err(refusal) => return Some(Err(refusal)),
        };
        let encoding = self.tree.part(part).encoding;
        let body = self.tree.part(part).body;
        // Without a base around, only <base href> in the document or a sibling can help; most
        // documents are done with here.
        if is_hopeless {
            if language == Language::Css {
                return None;
            }
            let octets = encoding.decode(body.of(self.original))?;
            if !mentions_base(&octets) {
                return None;
            }
        }
        // Decoded, searched, and looked at again where the charset is only known then.
        if let Err(refusal) = self.ledger.work(body.len() * 3) {
            return Some(Err(refusal));
        }
        let Some(mapped) = MappedBody::decode(self.original, body, encoding) else {
            let refusal = Refusal::lasting(
                Reason::UndecodableBody,
                format!("its {} is damaged", encoding.as_str()),
            );
            return (!is_hopeless).then_some(Err(refusal));
        };
        let mut document = Document::read(part, language, mapped.octets(), charset);
        let base = match &document.base_href {
            Some(href) => {
                let href = readable(&href.decoded(&document.text));
                Base::of_document(base.as_deref(), &href).map(Rc::new)
            }
            None => base,
        };
        let mut rewriting = match decide(self, &mapped, &mut document, base, &related) {
            Ok(rewriting) => rewriting,
            Err(refusal) => return Some(Err(refusal)),
        };
        if rewriting.changes.is_empty() {
            return None;
        }
        let refusal =
            protection(self.tree, part, self.policy).or_else(|| document.refusal(encoding));
        if let Some(refusal) = refusal {
            return Some(Err(refusal));
        }
        let changes = std::mem::take(&mut rewriting.changes);
        let Some(changes) = self.lines_kept(&document, encoding, changes) else {
            return Some(Err(Refusal::lasting(
                Reason::LineTooLong,
                format!(
                    "a line of its {} body would be longer than 998 octets, and there is no blank in a tag to break it at",
                    encoding.as_str()
                ),
            )));
        };
        let digest =
            document_digest::renewed(self.original, self.tree, part, document.octets, |piece| {
                mapped.changed(&changes, piece);
            });
        // The text has done its work, and may be a copy of the document.
        drop(document);
        let mut group = Group::new();
        if let Some((digest, edits)) = digest {
            rewriting.digest = Some(digest);
            group = edits;
        }
        let replacements = mapped.replacements(changes, self.tree.newline);
        group.extend(
            replacements
                .into_iter()
                .map(|(span, bytes)| Edit::replace(span, bytes)),
        );
        let growth = group.iter().map(Edit::growth).sum();
        if let Err(refusal) = self.ledger.grow(growth) {
            return Some(Err(refusal));
        }
        Some(Ok((rewriting, group)))
    }

    /// What kind of document a part is; none if it is none, or an attachment.
    fn language(&self, part: PartId) -> Option<Language> {
        let language = match self.tree.part(part).essence.as_str() {
            "text/html" => Language::Html(Syntax::Html),
            "application/xhtml+xml" => Language::Html(Syntax::Xhtml),
            "text/css" => Language::Css,
            _ => return None,
        };
        let is_leaf = self.tree.part(part).content == Content::Leaf;
        (is_leaf && !self.is_somebodys_file(part)).then_some(language)
    }

    /// Whether a part is a document that is looked at.
    #[cfg(feature = "cli")]
    pub(super) fn is_document(&self, part: PartId) -> bool {
        self.language(part).is_some()
    }

    /// Whether a document is an attachment, and no part of an aggregate, where some programs call
    /// everything one.
    fn is_somebodys_file(&self, part: PartId) -> bool {
        let value = self.tree.value(self.original, part, "Content-Disposition");
        let word = value.unwrap_or_default().trim_ascii();
        let end = word
            .iter()
            .position(|&byte| byte.is_ascii_whitespace() || matches!(byte, b';' | b'('));
        let word = word.get(..end.unwrap_or(word.len())).unwrap_or_default();
        let parent = self.tree.part(part).parent;
        word.eq_ignore_ascii_case(b"attachment")
            && parent.is_none_or(|parent| self.tree.part(parent).essence != RELATED)
    }

    /// The charset that the part's header names; none if it names none that is known. US-ASCII counts as
    /// none: it is what programs write that do not know.
    fn charset(&self, part: PartId) -> Result<Option<Charset>, Refusal> {
        let value = self.tree.value(self.original, part, "Content-Type");
        let label = value.and_then(|value| MediaType::parse(value).parameter("charset"));
        let Some(label) = label.filter(|label| !is_ascii(label)) else {
            return Ok(None);
        };
        match Charset::of_label(&label) {
            Some(Charset::Other) => Err(unsupported(&label)),
            known => Ok(known),
        }
    }

    fn resolve(
        &mut self,
        mapped: &MappedBody<'_>,
        document: &mut Document<'_>,
        base: Option<Rc<Base>>,
        related: &[PartId],
    ) -> Result<Rewriting, Refusal> {
        let links = std::mem::take(&mut document.links);
        let inside = Base::this_message();
        let base_url = ascii(&base.as_deref().unwrap_or(&inside).url);
        let is_within_message = base.as_deref().is_none_or(Base::is_within_message);
        let mut rewriting = Rewriting::of(base);
        let room = i64::try_from(self.ledger.room()).unwrap_or(i64::MAX);
        let mut gained = -i64::try_from(mapped.spare()).unwrap_or(i64::MAX);
        let mut memory = Memory::default();
        let mut links = links.iter();
        // What gains more than the document has octets is only counted at first: it may be too much, and
        // nothing shall be held for that.
        for stage in [Stage::Begun, Stage::Counted, Stage::Made] {
            let from = links.clone();
            loop {
                if stage == Stage::Begun && gained > document.octets.len() as i64 {
                    break;
                }
                let Some(link) = links.next() else { break };
                if link.span.len() > LONGEST {
                    continue;
                }
                let Some(value) = document.value(&link).filter(|value| value.len() <= LONGEST)
                else {
                    continue;
                };
                let new;
                let resolved = match memory.get(&value, link.context) {
                    Some(known) => known,
                    None => {
                        new = self.reference(
                            document,
                            &link,
                            &value,
                            &base_url,
                            related,
                            is_within_message,
                        )?;
                        memory.keep(&value, &new);
                        &new
                    }
                };
                if resolved.is_relative && stage != Stage::Made {
                    // Growth does not bound `/y` or `../y` times a long base: they stay short.
                    self.ledger.work(base_url.len())?;
                }
                let Some(replacement) = &resolved.replacement else {
                    continue;
                };
                if stage != Stage::Made {
                    gained += mapped.least_gain(link.span.len(), replacement).max(0);
                    if gained > room {
                        // Hostile: a long base times many links.
                        return Err(self.ledger.too_much_growth("its links"));
                    }
                }
                if stage == Stage::Counted {
                    continue;
                }
                match resolved.part {
                    Some(sibling) => {
                        rewriting.to_parts += 1;
                        if self.siblings.identity(sibling).is_made {
                            rewriting.named.insert(sibling);
                        }
                    }
                    None => rewriting.absolute += 1,
                }
                let octets = link.span.start..link.span.end;
                rewriting.changes.push(octets, replacement);
            }
            if stage == Stage::Counted {
                links = from;
            }
        }
        Ok(rewriting)
    }

    /// What becomes of one link.
    fn reference(
        &mut self,
        document: &Document<'_>,
        link: &LinkValue,
        value: &[u8],
        base_url: &str,
        related: &[PartId],
        is_within_message: bool,
    ) -> Result<Resolved, Refusal> {
        let mut resolved = Resolved {
            context: link.context,
            is_relative: false,
            replacement: None,
            part: None,
        };
        let reference = readable(value);
        // All of the base that counts for whether a reference is relative, `http:`.
        let scheme = base_url.split_inclusive(':').next();
        if relation(scheme, &reference) != Relation::Relative {
            return Ok(resolved);
        }
        resolved.is_relative = true;
        let Ok(absolute) = resolve_as_browser(base_url, &reference) else {
            return Ok(resolved);
        };
        // `a_b:c` is no scheme, and resolving gives it back under bases that are no browser's.
        if absolute == reference {
            return Ok(resolved);
        }
        let fragment = absolute.get(without_fragment(&absolute).len()..);
        let fragment = fragment.unwrap_or_default();
        let sibling = self.siblings.meant(document.part, related, &absolute);
        let essence = sibling.map_or("", |sibling| self.tree.part(sibling).essence.as_str());
        // Browsers find no `cid:` URL with a fragment. Of an SVG it may mean one picture of several, of others
        // nothing.
        let is_part_of_svg = essence == "image/svg+xml" && fragment.len() > 1;
        let fragment = match essence.starts_with("image/") {
            true => "",
            false => fragment,
        };
        resolved.part = sibling.filter(|_| !is_part_of_svg);
        let new = match resolved.part {
            Some(sibling) => {
                // Parts in one another are hashed anew for each of them that is meant.
                self.ledger.work(self.siblings.cost_of_identity(sibling))?;
                let content_id = cid_escaped(&self.siblings.identity(sibling).content_id);
                format!("cid:{content_id}{fragment}")
            }
            None if is_within_message => return Ok(resolved),
            None => absolute,
        };
        resolved.replacement = Some(link.encoded(raw(new)));
        Ok(resolved)
    }

    /// The changes, with line ends where a body that has lines would get too long ones.
    fn lines_kept(
        &self,
        document: &Document<'_>,
        encoding: TransferEncoding,
        changes: Changes,
    ) -> Option<Changes> {
        let has_lines = matches!(
            encoding,
            TransferEncoding::SevenBit | TransferEncoding::EightBit
        );
        if !has_lines {
            return Some(changes);
        }
        let html = match document.language {
            Language::Html(syntax) => Some((document.text.as_ref(), syntax)),
            Language::Css => None,
        };
        long_lines::broken(document.octets, html, changes, self.tree.newline)
    }
}

fn is_ascii(label: &[u8]) -> bool {
    let label = label.trim_ascii();
    label.eq_ignore_ascii_case(b"us-ascii") || label.eq_ignore_ascii_case(b"ascii")
}
