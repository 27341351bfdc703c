//! Computes the new links of one document: absolute URLs, or `cid:` URLs of the parts to which the links refer (RFC 2557 §8).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use percent_encoding::percent_decode;

use super::document::LinkedDocument;
use super::link_text::{ascii, base_url, cid_escaped, raw, readable, scheme};
use super::{Documents, LONGEST};
use crate::edit::Group;
use crate::engine::ledger::Ledger;
use crate::engine::report::{Outcome, Reason, Refusal, Row};
use crate::link::base::Base;
use crate::link::url::{Relation, masked, relation, resolve_as_browser, without_fragment};
use crate::link::value::{Grammar, LinkValue, Markup};
use crate::mime::PartId;
use crate::mime::mapped::{MappedBody, TextChanges};

#[derive(Default)]
pub(crate) struct NewLinks {
    pub(crate) edits: Group,
    pub(crate) absolute: u64,
    pub(crate) to_parts: u64,
    /// Number of relative links that were left unchanged because they cannot be read byte by byte: a byte may be the
    /// second half of a Shift_JIS character.
    pub(crate) unclear: u64,
    pub(crate) base: Option<Rc<Base>>,
    pub(crate) named: BTreeSet<PartId>,
    pub(crate) digest: Option<&'static str>,
}

#[derive(Clone)]
struct ResolvedLink {
    wrapping: (Markup, Grammar),
    is_relative: bool,
    replacement: Option<Vec<u8>>,
    part: Option<PartId>,
}

/// Cache of resolved references. Most documents contain the same reference several times.
#[derive(Default)]
struct ResolvedCache {
    known: HashMap<Vec<u8>, ResolvedLink>,
    octets: usize,
}

impl ResolvedCache {
    /// Maximum number of bytes in the cache, for references and their new forms.
    const MOST: usize = 256 << 10;

    fn get(&self, value: &[u8], wrapping: (Markup, Grammar)) -> Option<&ResolvedLink> {
        let known = self.known.get(value);
        known.filter(|known| known.wrapping == wrapping)
    }

    fn keep(&mut self, value: &[u8], resolved: &ResolvedLink) {
        // The counted size is an estimate: an entry of the map needs a few more bytes than its texts.
        let taken = resolved.replacement.as_ref().map_or(0, Vec::len);
        let octets = size_of::<(Vec<u8>, ResolvedLink)>() + value.len() + taken;
        if self.octets + octets <= Self::MOST && !self.known.contains_key(value) {
            self.octets += octets;
            self.known.insert(value.to_vec(), resolved.clone());
        }
    }
}

impl NewLinks {
    pub(crate) fn tell(&self, row: &mut Row) {
        row.outcome = Outcome::Rewritten;
        row.links = Some(self.absolute + self.to_parts);
        let base = self.base.as_ref().filter(|base| !base.is_within_message());
        let from = base.map_or_else(String::new, |base| format!(", base from {}", base.origin));
        row.url = base.map(|base| masked(&base.url).into_owned());
        let (absolute, to_parts) = (self.absolute, self.to_parts);
        row.detail = format!(
            "{absolute} links made absolute, {to_parts} links changed to cid: URLs of parts of the mail{from}"
        )
        .into();
        if self.unclear > 0 {
            row.remark(&unclear(self.unclear));
        }
        if let Some(digest) = self.digest {
            row.remark(digest);
        }
    }
}

impl Documents<'_> {
    pub(crate) fn new_links(
        &mut self,
        part: PartId,
        ledger: &mut Ledger,
    ) -> Result<Option<NewLinks>, Refusal> {
        let new = self.looked_at(part, ledger, false, Self::resolve)?;
        Ok(new.map(|(new, edits, digest)| NewLinks {
            edits,
            digest,
            ..new
        }))
    }

    fn resolve(
        &mut self,
        ledger: &mut Ledger,
        mapped: &MappedBody<'_>,
        document: &mut LinkedDocument<'_>,
    ) -> Result<(TextChanges, NewLinks), Refusal> {
        let links = std::mem::take(&mut document.links);
        let base = document.base.take();
        let base_url = base_url(base.as_deref());
        let is_within_message = base.as_deref().is_none_or(Base::is_within_message);
        let mut changes = TextChanges::default();
        let mut made = NewLinks {
            base,
            ..NewLinks::default()
        };
        let room = i64::try_from(ledger.room()).unwrap_or(i64::MAX);
        let mut gained = -i64::try_from(mapped.spare()).unwrap_or(i64::MAX);
        let mut memory = ResolvedCache::default();
        let mut originals = std::mem::take(&mut document.originals)
            .into_iter()
            .peekable();
        let mut changed_to = 0;
        let mut links = links.iter();
        // Links are processed in up to three passes, so that excessive growth is refused before it needs memory. The
        // first pass changes links until the document has doubled in size. The second pass only counts the growth by
        // the remaining links, and the third one changes them if the growth is allowed.
        for (is_counted, is_made) in [(true, true), (true, false), (false, true)] {
            let from = links.clone();
            loop {
                if is_counted && is_made && gained > document.octets.len() as i64 {
                    break;
                }
                let next = links.next();
                if is_made {
                    let before = next.as_ref().map_or(usize::MAX, |link| link.span.start);
                    while let Some(original) = originals.next_if(|it| it.range.end <= before) {
                        if original.range.start >= changed_to
                            && self.is_shown_by_id(document, &original.url)
                        {
                            changed_to = original.range.end;
                            let range = original.range.start..original.range.end;
                            changes.push(range, &original.replacement);
                            made.to_parts += 1;
                        }
                    }
                }
                let Some(link) = next else { break };
                if link.span.len() > LONGEST {
                    continue;
                }
                let value = document.value(&link);
                // A new link normally reuses the bytes of the old one, which mean the same there. In two cases the new
                // link is made from the URL that browsers request: if the query contains a character reference (copied
                // as UTF-8, but browsers use the charset of the document), and if a byte may be the second half of a
                // Shift_JIS character.
                let written = link.span.of(document.octets);
                let escapes = |text: &[u8]| memchr::memchr_iter(b'%', text).count();
                let is_read = match &value {
                    Some(value) => written.is_ascii() || escapes(value) > escapes(written),
                    None => true,
                };
                let named = is_read
                    .then(|| document.characters(&link))
                    .flatten()
                    .filter(|named| value.is_some() || self.is_certain(document, &base_url, named));
                let Some(value) = named
                    .map(|named| Cow::Owned(ascii(&named).into_bytes()))
                    .or(value)
                else {
                    let is_left = is_made && !is_within_message && {
                        let reference = document.unclear(&link);
                        relation(scheme(&base_url), &reference) == Relation::Relative
                    };
                    made.unclear += u64::from(is_left);
                    continue;
                };
                if value.len() > LONGEST {
                    continue;
                }
                let base = (&*base_url, is_within_message);
                let new;
                let resolved = match memory.get(&value, (link.markup, link.grammar)) {
                    Some(known) => known,
                    None => {
                        new = self.reference(ledger, document, &link, &value, base)?;
                        memory.keep(&value, &new);
                        &new
                    }
                };
                if resolved.is_relative && is_counted {
                    // Resolving `/y` or `../y` against a long base is slow although the result is short, so it counts as work.
                    ledger.work(base_url.len())?;
                }
                let Some(replacement) = &resolved.replacement else {
                    continue;
                };
                if is_counted {
                    gained += mapped.least_gain(link.span.len(), replacement).max(0);
                    if gained > room {
                        // A hostile message can combine a long base with many links, so that the new links would need
                        // far more memory than the message. The document is left unchanged.
                        return Err(ledger.too_much_growth("its links"));
                    }
                }
                if !is_made {
                    continue;
                }
                match resolved.part {
                    Some(sibling) => {
                        made.to_parts += 1;
                        made.named.insert(sibling);
                    }
                    None => made.absolute += 1,
                }
                changed_to = link.span.end;
                changes.push(link.span.start..link.span.end, replacement);
            }
            if !is_made {
                links = from;
            }
        }
        if changes.is_empty() && made.unclear > 0 {
            let detail = unclear(made.unclear);
            return Err(Refusal::lasting(Reason::CharsetNotSupported, detail));
        }
        Ok((changes, made))
    }

    /// Returns true if exactly one part of the message has the Content-ID of this `cid:` URL.
    fn is_shown_by_id(&mut self, document: &LinkedDocument<'_>, url: &[u8]) -> bool {
        let id: Vec<u8> = percent_decode(url.get(4..).unwrap_or_default()).collect();
        String::from_utf8(id).is_ok_and(|id| self.is_only_id(document.part, id))
    }

    /// Whether a link that cannot be read byte by byte may be resolved from its decoded characters instead. If a part
    /// of the message could be the target, its Content-Location may contain the same undecoded bytes, which the decoded
    /// and percent-encoded link would not match. So in this case the decoded link must match a part.
    fn is_certain(&self, document: &LinkedDocument<'_>, base_url: &str, reference: &str) -> bool {
        document.related.is_empty()
            || resolve_as_browser(base_url, &ascii(reference)).is_ok_and(|absolute| {
                let meant = self.meant(document.part, &document.related, &absolute);
                meant.is_some()
            })
    }

    fn reference(
        &mut self,
        ledger: &mut Ledger,
        document: &LinkedDocument<'_>,
        link: &LinkValue,
        value: &[u8],
        (base_url, is_within_message): (&str, bool),
    ) -> Result<ResolvedLink, Refusal> {
        let mut resolved = ResolvedLink {
            wrapping: (link.markup, link.grammar),
            is_relative: false,
            replacement: None,
            part: None,
        };
        let reference = readable(value);
        if relation(scheme(base_url), &reference) != Relation::Relative {
            return Ok(resolved);
        }
        resolved.is_relative = true;
        let Ok(absolute) = resolve_as_browser(base_url, &reference) else {
            return Ok(resolved);
        };
        // `a_b:c` has no valid scheme, because of the `_`, so it looks like a relative link. With some bases, resolving
        // it returns the same text. Such a link needs no change.
        if absolute == reference {
            return Ok(resolved);
        }
        let (_, fragment) = absolute.split_at(without_fragment(&absolute).len());
        let sibling = self.meant(document.part, &document.related, &absolute);
        let essence = sibling.map_or("", |sibling| self.tree.part(sibling).essence.as_str());
        // Browsers do not find the part of a `cid:` URL with a fragment (the text after `#`). The fragment of a picture
        // has no meaning and is removed, except in an SVG, where it can select one of several pictures. A link to such
        // a picture does not become a `cid:` URL.
        let is_part_of_svg = essence == "image/svg+xml" && fragment.len() > 1;
        let fragment = if essence.starts_with("image/") {
            ""
        } else {
            fragment
        };
        resolved.part = sibling.filter(|_| !is_part_of_svg);
        let new = match resolved.part {
            Some(sibling) => {
                // Computing the Content-ID of a part reads the whole part. If messages are nested, inner parts are read
                // again for each part around them, so this counts as work, which is limited.
                ledger.work(self.cost_of_identity(sibling))?;
                let content_id = cid_escaped(&self.identity(sibling).content_id);
                format!("cid:{content_id}{fragment}")
            }
            None if is_within_message => return Ok(resolved),
            None => absolute,
        };
        resolved.replacement = Some(link.encoded(raw(new)));
        Ok(resolved)
    }
}

fn unclear(links: u64) -> String {
    format!(
        "{links} relative links were not changed, because the links are not ASCII and embody cannot decode the charset of the document safely"
    )
}
