//! Finds the pictures, style sheets and other content that documents show, and reads external style sheets that will become
//! parts.

use std::borrow::Cow;
use std::collections::HashMap;

use encoding_rs::Encoding;

use super::candidates::{self, Fallbacks};
use super::document::{DocumentLanguage, LinkedDocument, unsupported};
use super::link_text::{ascii, base_url, cleaned, holds_carried, is_data, raw, readable, scheme};
use super::{DocumentIdentity, Documents, LONGEST};
use crate::edit::Group;
use crate::engine::ledger::Ledger;
use crate::engine::report::{Detail, Reason, Refusal, Setting};
use crate::link::base::Base;
use crate::link::url::{
    Relation, absolute_as_browser, behind_slashes, relation, resolve_as_browser,
    with_blanks_escaped, with_octets_escaped,
};
use crate::link::value::{LinkRole, LinkValue};
use crate::mime::charset::Charset;
use crate::mime::mapped::TextChanges;
use crate::mime::{PartId, TransferEncoding};
use crate::span::front;

/// Maximum number of links in a style sheet. Each one is stored, and the largest sheets in use have a few hundred.
const MOST_LINKS: usize = 10_000;

pub(crate) struct DocumentText<'d> {
    pub(crate) ordinal: usize,
    pub(crate) link: LinkValue,
    /// The URL, absolute if there is a base.
    pub(crate) absolute: Cow<'d, str>,
    /// For a scheme-relative URL (`//host/path`), the text after the slashes.
    pub(crate) host: Option<String>,
    pub(crate) sibling: Option<(PartId, DocumentIdentity)>,
    /// For a relative URL, whether a base is declared. `None` for a URL with a scheme, which needs no base.
    pub(crate) relative: Option<bool>,
    /// Charset of the document, if it is declared.
    pub(crate) charset: Option<&'static str>,
}

impl DocumentText<'_> {
    /// Whether the URL contains bytes that could not be decoded, because the document declares no charset or a wrong
    /// one.
    pub(crate) fn holds_octets(&self) -> bool {
        holds_carried(&self.absolute)
    }

    /// Returns the URLs to try. A reference that begins with `//host` is tried with https, then with http.
    pub(crate) fn candidates(&self) -> Vec<String> {
        let url = self.host.as_deref().unwrap_or(&self.absolute);
        let octets;
        let url = if self.holds_octets() {
            octets = raw(url.to_owned());
            with_octets_escaped(&octets)
        } else {
            with_blanks_escaped(url)
        };
        match self.host {
            Some(_) => vec![format!("https://{url}"), format!("http://{url}")],
            None => vec![url.into_owned()],
        }
    }
}

/// A link as it is written in a document. `compare` pairs the links of two versions of a document.
#[derive(Debug)]
pub(crate) struct WrittenLink {
    pub(crate) link: LinkValue,
    /// Start of the URL, without character references. A `data:` URL can be very long.
    pub(crate) value: Vec<u8>,
    /// Text after the URL, such as the descriptor `2x` of a candidate.
    pub(crate) behind: Vec<u8>,
}

/// Maximum length of [`WrittenLink::value`] and [`WrittenLink::behind`], in bytes.
const LONGEST_VALUE: usize = 400;
const LONGEST_DESCRIPTOR: usize = 40;

impl Documents<'_> {
    /// Calls `show` for each link of a document to content that it shows. A part that is not a document has no such links.
    pub(crate) fn shown(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
        mut show: impl FnMut(DocumentText<'_>),
    ) -> Result<(), Refusal> {
        let mut refusal = None;
        self.looked_at(part, ledger, true, |documents, ledger, _, document| {
            let base = document.base.as_deref();
            let base_url = base_url(base);
            let scheme = scheme(&base_url);
            let has_base = !base.is_none_or(Base::is_within_message);
            let mut meant = 0_usize;
            for (ordinal, link) in document.links.iter().enumerate() {
                let value = document.value(&link);
                let written = document.characters(&link);
                let reference = match (&written, &value) {
                    (Some(written), _) => Cow::Borrowed(written.as_str()),
                    (None, Some(value)) => cleaned(value.trim_ascii()),
                    (None, None) => Cow::Owned(document.unclear(&link)),
                };
                let relation = relation(scheme, &reference);
                let host = behind_slashes(&reference).map(Cow::into_owned);
                let absolute = match relation {
                    Relation::Absolute => absolute_as_browser(reference),
                    Relation::Relative => {
                        ledger.work(base_url.len())?;
                        match resolve_as_browser(&base_url, &reference) {
                            Ok(absolute) => Cow::Owned(document.of_base(absolute)),
                            Err(_) => continue,
                        }
                    }
                    Relation::SameDocument => continue,
                };
                meant += 1;
                let sibling = match is_data(&absolute) {
                    // A `data:` URL contains its own content and can be very long, so no part is searched for it.
                    true => None,
                    false if value.is_none() && written.is_none() => None,
                    false => documents
                        .meant(document.part, &document.related, &absolute)
                        .or_else(|| {
                            // The decoded link matches no part. The Content-Location of a part may contain the link's
                            // undecoded bytes, in the same unknown charset as the document, so the bytes are compared,
                            // too.
                            let value = written.as_ref().and(value.as_deref())?;
                            let located = resolve_as_browser(&base_url, &readable(value)).ok()?;
                            documents.meant(document.part, &document.related, &located)
                        }),
                };
                let relative = (relation != Relation::Absolute).then_some(has_base);
                let shown = documents.shown_as(ledger, (ordinal, link), absolute, sibling)?;
                show(DocumentText {
                    host,
                    relative,
                    charset: document.encoding.map(Encoding::name),
                    ..shown
                });
            }
            if meant > 0 {
                refusal = document.refusal(documents.tree.part(part).encoding);
            }
            Ok((TextChanges::default(), ()))
        })?;
        refusal.map_or(Ok(()), Err)
    }

    /// Returns a link with the part to which it refers, if that part is of the right kind.
    pub(super) fn shown_as<'d>(
        &mut self,
        ledger: &mut Ledger,
        (ordinal, link): (usize, LinkValue),
        absolute: Cow<'d, str>,
        meant: Option<PartId>,
    ) -> Result<DocumentText<'d>, Refusal> {
        // A style sheet link must refer to CSS, and a picture must not refer to a document.
        let is_fit = |part: &PartId| {
            let language = DocumentLanguage::of(&self.tree.part(*part).essence);
            match link.role {
                LinkRole::StyleSheet => language == Some(DocumentLanguage::Css),
                LinkRole::Picture | LinkRole::Font | LinkRole::Media => language.is_none(),
                _ => language != Some(DocumentLanguage::Css),
            }
        };
        let fit = meant.filter(is_fit);
        if let Some(part) = meant {
            ledger.work(self.cost_of_identity(part))?;
        }
        Ok(DocumentText {
            ordinal,
            link,
            absolute,
            host: None,
            sibling: fit.map(|part| (part, self.identity(part).clone())),
            relative: None,
            charset: None,
        })
    }

    /// Returns all links of a document. Returns `None` if the part is not a document or cannot be read.
    pub(crate) fn written(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
    ) -> Option<Vec<WrittenLink>> {
        let mut written = Vec::new();
        self.language(part)?;
        let read = self.looked_at(part, ledger, true, |_, _, _, document| {
            for link in document.links.iter() {
                let decoded = link.decoded(document.octets);
                let behind = document.octets.get(link.span.end..).unwrap_or_default();
                written.push(WrittenLink {
                    link,
                    value: front(decoded.trim_ascii(), LONGEST_VALUE).to_vec(),
                    behind: descriptor(front(behind, LONGEST_DESCRIPTOR)),
                });
            }
            Ok((TextChanges::default(), ()))
        });
        read.is_ok().then_some(written)
    }

    /// Calls `show` for each link of a style sheet whose URLs were made [absolute](absolute_sheet) before.
    pub(crate) fn shown_in_sheet(
        &mut self,
        beside: PartId,
        ledger: &mut Ledger,
        (octets, label): (&[u8], Option<&str>),
        mut show: impl FnMut(DocumentText<'_>),
    ) -> Result<(), Refusal> {
        ledger.work(octets.len() * 3)?;
        let document = read_sheet(octets, label)?;
        let related = self.around(beside, ledger)?;
        for (ordinal, link) in document.links.iter().enumerate() {
            let Some(value) = document.value(&link) else {
                continue;
            };
            let written = document.characters(&link).map(Cow::Owned);
            let absolute =
                absolute_as_browser(written.unwrap_or_else(|| cleaned(value.trim_ascii())));
            let is_data = is_data(&absolute);
            if !is_data && absolute.len() > LONGEST
                || relation(None, &absolute) != Relation::Absolute
            {
                continue;
            }
            let sibling = if is_data {
                None
            } else {
                self.located(beside, &related, &absolute).next()
            };
            show(self.shown_as(ledger, (ordinal, link), absolute, sibling)?);
        }
        Ok(())
    }

    /// Returns the edits that write new URLs into a document. `urls` maps the ordinal of each link to its new URL.
    /// `fallbacks` contains the candidates (of a `srcset`, for example) whose own picture was not embedded. They are
    /// removed if other candidates of their list remain. Otherwise their URL in `urls` is that of another picture.
    pub(crate) fn embedded(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
        urls: &HashMap<usize, String>,
        fallbacks: &Fallbacks,
    ) -> Result<Group, Refusal> {
        let rewritten = self.looked_at(part, ledger, true, |_, _, _, document| {
            let mut changes = TextChanges::default();
            let links = &document.links;
            candidates::replacements(document.octets, links, urls, fallbacks, |octets, new| {
                changes.push(octets, new);
            });
            Ok((changes, ()))
        })?;
        let Some((_, edits, _)) = rewritten else {
            let detail = "the style sheet contains nothing that embedding would change";
            return Err(Refusal::lasting(Reason::UnsupportedDocument, detail));
        };
        Ok(edits)
    }
}

/// Makes the URLs of a style sheet absolute. A sheet in a `data:` URL has no URL of its own, so relative URLs in it are
/// an error: mail clients would resolve them against the base of the mail.
pub(crate) fn absolute_sheet<'s>(
    octets: &'s [u8],
    label: Option<&str>,
    base: Option<&str>,
    most: u64,
) -> Result<Cow<'s, [u8]>, Refusal> {
    let document = read_sheet(octets, label)?;
    let base = base.map(ascii);
    let scheme = base.as_deref().and_then(scheme);
    let mut written = Vec::new();
    let mut until = 0;
    for (count, link) in document.links.iter().enumerate() {
        if count == MOST_LINKS {
            let detail = format!("the style sheet has more than {MOST_LINKS} links");
            return Err(Refusal::lasting(Reason::TooMuchWork, detail));
        }
        let value = document.value(&link);
        let characters = || document.characters(&link).map(|written| ascii(&written));
        // The new URL keeps the bytes of the sheet. If a byte may be the second half of a Shift_JIS character, the
        // decoded characters are used instead.
        let reference = match &value {
            Some(value) => cleaned(value.trim_ascii()),
            None => match characters() {
                Some(written) => Cow::Owned(written),
                None => continue,
            },
        };
        if is_data(&reference) || relation(scheme, &reference) != Relation::Relative {
            continue;
        }
        let Some(base) = base.as_deref() else {
            let detail = "the style sheet contains relative URLs, but has no URL of its own that could complete the relative URLs";
            return Err(Refusal::lasting(Reason::NoBase, detail));
        };
        let Ok(absolute) = resolve_as_browser(base, &reference) else {
            continue;
        };
        written.extend_from_slice(&octets[until..link.span.start]);
        written.extend(link.encoded(raw(absolute)));
        until = link.span.end;
        if written.len() as u64 > most {
            let detail = Detail::from("with absolute URLs, the style sheet is larger than ")
                .naming(Setting::Body)
                .measuring(most, written.len() as u64);
            return Err(Refusal::lasting(Reason::TooLarge, detail));
        }
    }
    if until == 0 {
        return Ok(Cow::Borrowed(octets));
    }
    written.extend_from_slice(&octets[until..]);
    Ok(Cow::Owned(written))
}

/// Returns the descriptor (such as `2x`) after a URL. The text can start with the end of a `url()`.
fn descriptor(behind: &[u8]) -> Vec<u8> {
    let ends: [&[u8]; 3] = [b"\")", b"')", b")"];
    let after_end = ends.iter().find_map(|end| behind.strip_prefix(*end));
    let is_inside = |byte: &&u8| !b",\"'<>);}".contains(byte);
    let described = after_end.unwrap_or(behind).iter().take_while(is_inside);
    let descriptor: Vec<u8> = described.copied().collect();
    descriptor.trim_ascii().to_vec()
}

/// Returns the value of each link of a style sheet.
pub(crate) fn sheet_values(octets: &[u8], label: Option<&str>) -> Vec<Vec<u8>> {
    let Ok(document) = read_sheet(octets, label) else {
        return Vec::new();
    };
    let value = |link: LinkValue| link.decoded(octets).trim_ascii().to_vec();
    document.links.iter().map(value).collect()
}

/// Writes new URLs into a style sheet. `urls` maps the ordinal of each link to its new URL. Links in `fallbacks`, whose
/// own picture was not embedded, get the URL of another picture, or are removed if other options remain.
pub(crate) fn sheet_with_urls(
    octets: &[u8],
    label: Option<&str>,
    urls: &HashMap<usize, String>,
    fallbacks: &Fallbacks,
) -> Vec<u8> {
    let mut written = Vec::with_capacity(octets.len());
    let mut until = 0;
    if let Ok(document) = read_sheet(octets, label) {
        let links = &document.links;
        candidates::replacements(octets, links, urls, fallbacks, |place, new| {
            written.extend_from_slice(&octets[until..place.start]);
            written.extend_from_slice(new);
            until = place.end;
        });
    }
    written.extend_from_slice(&octets[until..]);
    written
}

fn read_sheet<'s>(octets: &'s [u8], label: Option<&str>) -> Result<LinkedDocument<'s>, Refusal> {
    let named = label.map(str::as_bytes).and_then(Charset::of_label);
    if let (Some(Charset::Other), Some(label)) = (named, label) {
        return Err(unsupported(label.as_bytes()));
    }
    let document = LinkedDocument::read(
        PartId::ROOT,
        DocumentLanguage::Css,
        octets,
        (named, label.map(str::as_bytes)),
    );
    match document.refusal(TransferEncoding::Binary) {
        Some(refusal) => Err(refusal),
        None => Ok(document),
    }
}
