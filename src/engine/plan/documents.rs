//! The HTML and CSS documents of a message: the targets of their links, and the new links.
//!
//! First the base of a document is found, from the innermost part outwards. Then every relative link becomes absolute, or
//! refers to the part with the Content-Location that it means (RFC 2557 §8). A document stays unchanged, with a reason, if its
//! bytes may not mean what they look like, for example because of its charset. Attached documents are files, so they are not
//! changed and get no row.

mod candidates;
mod changed;
mod document;
mod link_text;
mod new_links;
mod referred;
mod shown;
mod siblings;
mod unwrapping;

use std::borrow::Cow;
use std::collections::HashMap;

pub(crate) use self::candidates::Fallbacks;
pub(crate) use self::document::subtypes;
use self::document::{DocumentLanguage, LinkedDocument, unsupported};
pub(crate) use self::link_text::cid_escaped;
use self::link_text::mentions_base;
pub(crate) use self::link_text::mentions_original_source;
#[cfg(feature = "cli")]
pub(crate) use self::referred::DisplayState;
pub(crate) use self::referred::shown_inline;
pub(crate) use self::shown::{
    DocumentText, WrittenLink, absolute_sheet, sheet_values, sheet_with_urls,
};
pub(crate) use self::siblings::is_made_id;
pub(crate) use self::unwrapping::UnwrappedLinks;
use super::bases::Bases;
use crate::edit::{Edit, Group};
use crate::engine::ledger::Ledger;
use crate::engine::policy::Policy;
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal};
use crate::mime::charset::Charset;
use crate::mime::mapped::{MappedBody, TextChanges};
use crate::mime::{MediaType, MessageTree, PartId, PartKind, TransferEncoding};

/// Maximum length of a link in bytes. Servers do not accept longer ones, and a link is in memory several times.
const LONGEST: usize = 1 << 20;

/// A multipart that contains a root document and the parts to which it refers (RFC 2387).
pub(crate) const RELATED: &str = "multipart/related";

#[derive(Clone, Debug)]
pub(crate) struct DocumentIdentity {
    pub(crate) content_id: String,
    pub(crate) is_made: bool,
}

type Bearers = HashMap<(PartId, String), usize>;

/// Result of reading a document: the value that the caller's function returned, the edits, and a remark for the report
/// if Content-MD5 was changed or removed.
type Edited<T> = (T, Group, Option<&'static str>);

/// The documents of a message. Facts that several documents need, such as the Content-Location of each part, are collected
/// only once, because a message can contain ten thousand documents.
pub(crate) struct Documents<'p> {
    tree: &'p MessageTree<'p>,
    policy: &'p Policy,
    bases: Bases,
    /// Whether a multipart/related has parts to which a link can refer, or the refusal if this cannot be decided.
    have_targets: HashMap<PartId, Result<bool, Refusal>>,
    /// Parts by the URL in their Content-Location: for each URL, the part in each multipart/related. Documents can be
    /// nested in 64 multiparts, and one look-up of a long URL then finds the parts in all of them.
    located: HashMap<String, HashMap<PartId, PartId>>,
    /// The same parts as in `located`, but by normalised URL, so that all spellings which a browser treats as the same URL
    /// have the same key.
    located_in_browser: HashMap<String, HashMap<PartId, PartId>>,
    /// Total length of the URLs in `located` and `located_in_browser`, in bytes. It is limited, because ten thousand
    /// locations can be relative to one long base.
    held: usize,
    bearers: Option<Bearers>,
    /// The Content-ID of each part. Computing it again for every link would read the whole part each time.
    identities: HashMap<PartId, DocumentIdentity>,
    /// Content-IDs that an earlier run gave to parts. Only `compare` sets them, to repeat this run.
    given_ids: HashMap<PartId, String>,
}

impl<'p> Documents<'p> {
    pub(crate) fn new(tree: &'p MessageTree<'p>, policy: &'p Policy) -> Self {
        Self {
            tree,
            policy,
            bases: Bases::default(),
            have_targets: HashMap::new(),
            located: HashMap::new(),
            located_in_browser: HashMap::new(),
            held: 0,
            bearers: None,
            identities: HashMap::new(),
            given_ids: HashMap::new(),
        }
    }

    /// Sets the Content-IDs that the parts get if links refer to them. They are used only if no part has them already.
    pub(crate) fn giving_ids(self, given_ids: HashMap<PartId, String>) -> Self {
        Self { given_ids, ..self }
    }

    /// Reads a document, and lets `decide` choose the changes. Returns `None` if nothing changes. Without a base, and
    /// without parts to which links can refer, links cannot change: such a document is read only if `always` is set.
    fn looked_at<T>(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
        always: bool,
        decide: impl FnOnce(
            &mut Self,
            &mut Ledger,
            &MappedBody<'_>,
            &mut LinkedDocument<'_>,
        ) -> Result<(TextChanges, T), Refusal>,
    ) -> Result<Option<Edited<T>>, Refusal> {
        let Some(language) = self.language(part) else {
            return Ok(None);
        };
        let base = self.base_of(part);
        let related = self.around(part, ledger)?;
        let is_hopeless = !always && base.is_none() && related.is_empty();
        let label = self.label(part);
        let charset = match self.charset(part) {
            Err(_) if is_hopeless => return Ok(None),
            charset => charset?,
        };
        let encoding = self.tree.part(part).encoding;
        let body = self.tree.part(part).body;
        // The message has no base for this document, and no part to which its links could refer. So links can change
        // only if the document itself has a `<base href>`, or pictures without `src`. Most documents have neither and
        // are skipped here.
        if is_hopeless {
            let decoded = || encoding.decode(body.of(self.tree.original));
            let may_help = language != DocumentLanguage::Css
                && decoded().is_some_and(|octets| {
                    mentions_base(&octets) || mentions_original_source(&octets)
                });
            if !may_help {
                return Ok(None);
            }
        }
        // The document is decoded, searched, and read again if its charset is found only in the document itself. So
        // three times its length counts as work.
        ledger.work(body.len() * 3)?;
        let Some(mapped) = MappedBody::decode(self.tree.original, body, encoding) else {
            if is_hopeless {
                return Ok(None);
            }
            let word = self.tree.encoding_word(part);
            let detail = match encoding {
                TransferEncoding::Unknown => {
                    format!("the Content-Transfer-Encoding '{word}' of the part is not supported")
                }
                _ => format!("the {word} encoding of the part is damaged"),
            };
            return Err(Refusal::lasting(Reason::UndecodableBody, detail));
        };
        let mut document =
            LinkedDocument::read(part, language, mapped.octets(), (charset, label.as_deref()));
        document.related = related;
        document.base = document.base_within(base);
        let (changes, decided) = decide(self, ledger, &mapped, &mut document)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let refusal =
            protection(self.tree, part, self.policy).or_else(|| document.refusal(encoding));
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        let Some(changes) = self.lines_kept(&document, encoding, changes) else {
            let detail = format!(
                "with the change, a line of the {} body would be longer than 998 bytes, and no tag in this line has a blank at which the line could be broken",
                encoding.as_str()
            );
            return Err(Refusal::lasting(Reason::LineTooLong, detail));
        };
        let digest = changed::digest_renewed(self.tree, part, document.octets, |piece| {
            mapped.changed(&changes, piece);
        });
        // The text is not needed any more. It can be a copy of the whole document, so its memory is released.
        drop(document);
        let (digest, edits) = digest.unzip();
        let mut edits: Group = edits.unwrap_or_default();
        let correction = changed::encoding_corrected(self.tree, part);
        let corrected = correction
            .as_ref()
            .map(|_| "the wrong Content-Transfer-Encoding of the part was corrected");
        let digest = digest.or(corrected);
        edits.extend(correction);
        let replacements = mapped.replacements(changes, self.tree.newline).into_iter();
        edits.extend(replacements.map(|(span, bytes)| Edit::replace(span, bytes)));
        ledger.grow(edits.iter().map(Edit::growth).sum())?;
        Ok(Some((decided, edits, digest)))
    }

    fn language(&self, part: PartId) -> Option<DocumentLanguage> {
        let entity = self.tree.part(part);
        let language = DocumentLanguage::of(&entity.essence)?;
        // Content-Disposition: attachment usually marks a file. Some programs set it on every part of a multipart/related, so
        // it is ignored there.
        let is_in_related = |above| self.tree.part(above).essence == RELATED;
        let is_the_mails = entity.parent.is_some_and(is_in_related)
            || !self.tree.has_disposition(part, "attachment");
        (is_the_mails && entity.content == PartKind::Leaf).then_some(language)
    }

    pub(crate) fn tree(&self) -> &'p MessageTree<'p> {
        self.tree
    }

    pub(crate) fn is_document(&self, part: PartId) -> bool {
        self.language(part).is_some()
    }

    /// Returns the declared charset. Returns `None` for US-ASCII, which programs also write if they do not know the charset.
    fn label(&self, part: PartId) -> Option<Cow<'p, [u8]>> {
        let value = self.tree.value(part, "Content-Type")?;
        let label = MediaType::parse(value).parameter("charset")?;
        (!is_ascii(&label)).then_some(label)
    }

    fn charset(&self, part: PartId) -> Result<Option<Charset>, Refusal> {
        let Some(label) = self.label(part) else {
            return Ok(None);
        };
        match Charset::of_label(&label) {
            Some(Charset::Other) => Err(unsupported(&label)),
            known => Ok(known),
        }
    }

    fn lines_kept(
        &self,
        document: &LinkedDocument<'_>,
        encoding: TransferEncoding,
        changes: TextChanges,
    ) -> Option<TextChanges> {
        let markup = document
            .language
            .markup()
            .map(|syntax| (document.text.as_ref(), syntax));
        match encoding {
            TransferEncoding::SevenBit | TransferEncoding::EightBit => {
                changed::lines_broken(document.octets, markup, changes, self.tree.newline)
            }
            _ => Some(changes),
        }
    }
}

fn is_ascii(label: &[u8]) -> bool {
    let label = label.trim_ascii();
    label.eq_ignore_ascii_case(b"us-ascii") || label.eq_ignore_ascii_case(b"ascii")
}
