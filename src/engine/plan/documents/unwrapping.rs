//! Restores original links (`--unwrap`) that a mail filter or a picture proxy wrapped in URLs of its own server.

use std::collections::HashMap;
use std::ops::Range;

use super::document::LinkedDocument;
use super::link_text::{cleaned, is_data};
use super::{Documents, changed};
use crate::edit::{Edit, Group};
use crate::engine::ledger::Ledger;
use crate::engine::policy::Protected;
use crate::engine::protection::protection;
use crate::engine::report::{Reason, Refusal};
use crate::link::wrapper::{
    OriginalUrl, WrappedInText, may_hold_wrapped, unwrapped_link, wrapped_between_tags,
    wrapped_in_text,
};
use crate::mime::charset::Charset;
use crate::mime::mapped::{MappedBody, TextChanges};
use crate::mime::{PartId, PartKind, TransferEncoding};

/// Maximum number of different links of one document that get a row of their own in the report.
const MOST_ROWS: usize = 1_000;

/// The wrapped links of one document or text.
#[derive(Default)]
pub(crate) struct UnwrappedLinks {
    pub(crate) edits: Group,
    /// Each different link, in the order of the document, and how often it occurs.
    pub(crate) links: Vec<(String, OriginalUrl, u64)>,
    /// Number of different links without a row, because there are more than [`MOST_ROWS`].
    pub(crate) further: u64,
    /// Number of links that are not unwrapped, because they may continue on the next line of the text.
    pub(crate) cut: u64,
    pub(crate) digest: Option<&'static str>,
    known: HashMap<String, usize>,
}

impl UnwrappedLinks {
    fn add(&mut self, wrapped: &str, unwrapped: OriginalUrl) {
        if let Some((_, _, count)) = self
            .known
            .get(wrapped)
            .and_then(|&at| self.links.get_mut(at))
        {
            *count += 1;
        } else if self.links.len() < MOST_ROWS {
            self.known.insert(wrapped.to_owned(), self.links.len());
            self.links.push((wrapped.to_owned(), unwrapped, 1));
        } else {
            self.further += 1;
        }
    }
}

impl Documents<'_> {
    /// Returns the edits that unwrap the links of a document or of a text of the mail. Returns `None` if it has no wrapped
    /// link.
    pub(crate) fn unwrapped(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
    ) -> Result<Option<UnwrappedLinks>, Refusal> {
        if self.is_plain_text(part) {
            return self.unwrapped_text(part, ledger);
        }
        let found = self.looked_at(part, ledger, true, |_, _, _, document| {
            Ok(unwrapped_document(document))
        })?;
        Ok(found.map(|(links, edits, digest)| UnwrappedLinks {
            edits,
            digest,
            ..links
        }))
    }

    /// Returns true if the part is a text that the mail displays, and not a file.
    pub(crate) fn is_plain_text(&self, part: PartId) -> bool {
        let entity = self.tree.part(part);
        entity.essence == "text/plain"
            && entity.content == PartKind::Leaf
            && !self.tree.has_disposition(part, "attachment")
    }

    /// Calls `see` for each wrapped link of a document or text whose original is certain: with the wrapped URL, the original,
    /// and how often the link occurs. A link of a text is passed once for each place.
    #[cfg(any(feature = "cli", feature = "view"))]
    pub(crate) fn wrapped_links(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
        see: &mut impl FnMut(&str, &OriginalUrl, u64),
    ) {
        let entity = self.tree.part(part);
        let is_text = self.is_plain_text(part);
        if !is_text && self.language(part).is_none() {
            return;
        }
        let octets = entity.encoding.decode(entity.body.of(self.tree.original));
        let Some(octets) = octets.filter(|octets| may_hold_wrapped(octets)) else {
            return;
        };
        if is_text {
            wrapped_in_text(&octets, |found| {
                let wrapped = octets.get(found.place).unwrap_or_default();
                if found.is_complete {
                    see(&String::from_utf8_lossy(wrapped), &found.unwrapped, 1);
                }
            });
            return;
        }
        let _ = self.looked_at(part, ledger, true, |_, _, _, document| {
            for (wrapped, unwrapped, count) in unwrapped_document(document).1.links {
                see(&wrapped, &unwrapped, count);
            }
            Ok((TextChanges::default(), ()))
        });
    }

    fn unwrapped_text(
        &self,
        part: PartId,
        ledger: &mut Ledger,
    ) -> Result<Option<UnwrappedLinks>, Refusal> {
        let entity = self.tree.part(part);
        ledger.work(entity.body.len() * 2)?;
        let mapped = MappedBody::decode(self.tree.original, entity.body, entity.encoding);
        let Some(mapped) = mapped.filter(|mapped| may_hold_wrapped(mapped.octets())) else {
            return Ok(None);
        };
        let octets = mapped.octets();
        let mut found = UnwrappedLinks::default();
        let mut changes = TextChanges::default();
        wrapped_in_text(
            octets,
            |WrappedInText {
                 place,
                 unwrapped,
                 is_complete,
             }| {
                if !is_complete {
                    found.cut += 1;
                    return;
                }
                changes.push(place.clone(), unwrapped.original.as_bytes());
                let wrapped = String::from_utf8_lossy(octets.get(place).unwrap_or_default());
                found.add(&wrapped, unwrapped);
            },
        );
        if changes.is_empty() {
            return Ok((found.cut > 0).then_some(found));
        }
        self.judge_text(part, octets)?;
        let newline = self.tree.newline;
        let changes = match entity.encoding {
            TransferEncoding::SevenBit | TransferEncoding::EightBit => changed::lines_broken(
                octets, None, changes, newline,
            )
            .ok_or_else(|| {
                let detail =
                    "with the original links, a line of the text would be longer than 998 bytes";
                Refusal::lasting(Reason::LineTooLong, detail)
            })?,
            _ => changes,
        };
        let digest = changed::digest_renewed(self.tree, part, octets, |piece| {
            mapped.changed(&changes, piece);
        });
        let (digest, edits) = digest.unzip();
        found.digest = digest;
        found.edits = edits.unwrap_or_default();
        found
            .edits
            .extend(changed::encoding_corrected(self.tree, part));
        let replacements = mapped.replacements(changes, newline).into_iter();
        found
            .edits
            .extend(replacements.map(|(span, bytes)| Edit::replace(span, bytes)));
        ledger.grow(found.edits.iter().map(Edit::growth).sum())?;
        Ok(Some(found))
    }

    fn judge_text(&self, part: PartId, text: &[u8]) -> Result<(), Refusal> {
        if let Some(refusal) = protection(self.tree, part, self.policy) {
            return Err(refusal);
        }
        let is_signed = memchr::memmem::find(text, b"-----BEGIN PGP SIGNED MESSAGE-----").is_some();
        if is_signed && self.policy.protected != Protected::Rewrite {
            let detail = "the text contains a PGP signature, which would become invalid";
            return Err(Refusal::lasting(Reason::Signed, detail));
        }
        match self.charset(part)? {
            None if memchr::memmem::find(text, b"\x1b$").is_some() => {
                Err(super::document::unsupported(b"iso-2022-jp"))
            }
            Some(Charset::Other) => Err(super::document::unsupported(b"of the text")),
            _ => Ok(()),
        }
    }
}

fn unwrapped_document(document: &LinkedDocument<'_>) -> (TextChanges, UnwrappedLinks) {
    let mut found = UnwrappedLinks::default();
    let mut changes = TextChanges::default();
    if !may_hold_wrapped(document.octets) {
        return (changes, found);
    }
    let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
    let mut until = 0;
    for link in document.links.iter() {
        let Some(value) = document.value(&link).filter(|_| link.span.start >= until) else {
            continue;
        };
        let url = cleaned(value.trim_ascii());
        if is_data(&url) {
            continue;
        }
        // Mail has no page whose scheme a scheme-relative link could inherit.
        let absolute = match url.strip_prefix("//") {
            Some(_) => format!("https:{url}"),
            None => url.into_owned(),
        };
        if let Some(unwrapped) = unwrapped_link(&absolute) {
            let new = link.encoded(&unwrapped.original);
            edits.push((link.span.start..link.span.end, new));
            until = link.span.end;
            found.add(&absolute, unwrapped);
        }
    }
    if document.language.markup().is_some() {
        wrapped_between_tags(&document.text, |place, unwrapped, written| {
            let wrapped =
                String::from_utf8_lossy(document.octets.get(place.clone()).unwrap_or_default());
            found.add(&wrapped.replace("&amp;", "&"), unwrapped);
            edits.push((place, written.into_bytes()));
        });
    }
    edits.sort_by_key(|(place, _)| place.start);
    let mut until = 0;
    for (place, new) in edits {
        if place.start >= until {
            until = place.end;
            changes.push(place, &new);
        }
    }
    (changes, found)
}
