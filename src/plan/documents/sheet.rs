//! Style sheets that come from elsewhere, and are to stand in the mail as parts.

use std::borrow::Cow;
use std::collections::HashMap;

use super::candidates::{self, Fallbacks};
use super::document::{Document, Language, unsupported};
use super::link_text::{ascii, raw, scheme};
use super::shown::{Shown, cleaned, is_data};
use super::{Documents, LONGEST};
use crate::ledger::Ledger;
use crate::link::url::{Relation, absolute_as_browser, relation, resolve_as_browser};
use crate::mime::charset::Charset;
use crate::mime::{PartId, TransferEncoding};
use crate::report::{Detail, Reason, Refusal, Setting};

/// Each is held with its meaning. The largest sheets that are in use have a few hundred.
const MOST_LINKS: usize = 10_000;

/// A sheet without a URL of its own, as one in a `data:` URL, may hold no relative one: in the mail it would get the
/// base of the mail.
pub(crate) fn absolute<'s>(
    octets: &'s [u8],
    label: Option<&str>,
    base: Option<&str>,
    most: u64,
) -> Result<Cow<'s, [u8]>, Refusal> {
    let document = read(octets, label)?;
    let base = base.map(ascii);
    let scheme = base.as_deref().and_then(scheme);
    let mut written = Vec::new();
    let mut until = 0;
    for (count, link) in document.links.iter().enumerate() {
        if count == MOST_LINKS {
            let detail = format!("the style sheet has more than {MOST_LINKS} links");
            return Err(Refusal::lasting(Reason::TooMuchWork, detail));
        }
        let Some(value) = document.value(&link) else {
            continue;
        };
        let reference = cleaned(value.trim_ascii());
        if is_data(&reference) || relation(scheme, &reference) != Relation::Relative {
            continue;
        }
        let Some(base) = base.as_deref() else {
            let detail =
                "the style sheet has no URL of its own, and refers to others by relative ones";
            return Err(Refusal::lasting(Reason::NoBase, detail));
        };
        let Ok(absolute) = resolve_as_browser(base, &reference) else {
            continue;
        };
        written.extend_from_slice(octets.get(until..link.span.start).unwrap_or_default());
        written.extend(link.encoded(raw(absolute)));
        until = link.span.end;
        if written.len() as u64 > most {
            let detail = Detail::from("the style sheet with absolute URLs is above ");
            let detail = detail
                .naming(Setting::Body)
                .measuring(most, written.len() as u64);
            return Err(Refusal::lasting(Reason::TooLarge, detail));
        }
    }
    if until == 0 {
        return Ok(Cow::Borrowed(octets));
    }
    written.extend_from_slice(octets.get(until..).unwrap_or_default());
    Ok(Cow::Owned(written))
}

/// URLs come by the numbers of their links; of `fallbacks` those that are needed.
pub(crate) fn with_urls(
    octets: &[u8],
    label: Option<&str>,
    urls: &HashMap<usize, String>,
    fallbacks: &Fallbacks,
) -> Vec<u8> {
    let mut written = Vec::with_capacity(octets.len());
    let mut until = 0;
    if let Ok(document) = read(octets, label) {
        let links = &document.links;
        candidates::replacements(octets, links, urls, fallbacks, |place, new| {
            written.extend_from_slice(octets.get(until..place.start).unwrap_or_default());
            written.extend_from_slice(new);
            until = place.end;
        });
    }
    written.extend_from_slice(octets.get(until..).unwrap_or_default());
    written
}

fn read<'s>(octets: &'s [u8], label: Option<&str>) -> Result<Document<'s>, Refusal> {
    let named = label.map(str::as_bytes).and_then(Charset::of_label);
    if let (Some(Charset::Other), Some(label)) = (named, label) {
        return Err(unsupported(label.as_bytes()));
    }
    let document = Document::read(PartId::ROOT, Language::Css, octets, named);
    match document.refusal(TransferEncoding::Binary) {
        Some(refusal) => Err(refusal),
        None => Ok(document),
    }
}

impl Documents<'_> {
    /// The sheet was made [`absolute`].
    pub(crate) fn shown_in_sheet(
        &mut self,
        beside: PartId,
        ledger: &mut Ledger,
        (octets, label): (&[u8], Option<&str>),
        mut show: impl FnMut(Shown<'_>),
    ) -> Result<(), Refusal> {
        ledger.work(octets.len() * 3)?;
        let document = read(octets, label)?;
        let related = self.around(beside, ledger)?;
        for (ordinal, link) in document.links.iter().enumerate() {
            let Some(value) = document.value(&link) else {
                continue;
            };
            let absolute = absolute_as_browser(cleaned(value.trim_ascii()));
            let is_data = is_data(&absolute);
            if !is_data && absolute.len() > LONGEST
                || relation(None, &absolute) != Relation::Absolute
            {
                continue;
            }
            let sibling = match is_data {
                true => None,
                false => self.located(beside, &related, &absolute).next(),
            };
            show(self.shown_as(ledger, (ordinal, link), absolute, sibling)?);
        }
        Ok(())
    }
}
