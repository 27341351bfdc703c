//! The links of a document with what they mean, and other URLs in their places.

use std::collections::HashMap;

use super::super::link_text::{ascii, raw, readable};
use super::super::siblings::Identity;
use super::{Relinker, Rewriting};
use crate::edit::Group;
use crate::link::base::Base;
use crate::link::url::{Relation, relation, resolve_as_browser};
use crate::link::value::LinkValue;
use crate::mime::PartId;
use crate::report::Refusal;

/// A link, and what it means.
pub(in crate::expand) struct Shown {
    /// Its number among the links of the document.
    pub(in crate::expand) ordinal: usize,
    pub(in crate::expand) link: LinkValue,
    /// The URL; absolute, if there is any base.
    pub(in crate::expand) absolute: String,
    /// What stands behind the `//` of a reference that names no scheme.
    host: Option<String>,
    /// The part of the mail that it names, and the Content-ID that the part has or will have.
    pub(in crate::expand) sibling: Option<(PartId, Identity)>,
}

impl Shown {
    /// The URL with each scheme that may be tried: `//host` is https, then http.
    pub(in crate::expand) fn candidates(&self) -> Vec<String> {
        match &self.host {
            Some(host) => vec![format!("https://{host}"), format!("http://{host}")],
            None => vec![self.absolute.clone()],
        }
    }
}

impl Relinker<'_> {
    /// Shows every link of a document with what it means; none if the part is no document.
    pub(in crate::expand) fn shown(
        &mut self,
        part: PartId,
        mut show: impl FnMut(Shown),
    ) -> Option<Result<(), Refusal>> {
        let mut refusal = None;
        let looked = self.looked_at(part, true, |relinker, _, document, base, related| {
            let inside = Base::this_message();
            let base_url = ascii(&base.as_deref().unwrap_or(&inside).url);
            let scheme = base_url.split_inclusive(':').next();
            let mut meant = 0_usize;
            for (ordinal, link) in document.links.iter().enumerate() {
                let Some(value) = document.value(&link) else {
                    continue;
                };
                let reference = readable(&value);
                let relation = relation(scheme, &reference);
                let host = reference.trim_start().strip_prefix("//").map(str::to_owned);
                let host = host.as_deref();
                let absolute = match relation {
                    Relation::Absolute => reference,
                    Relation::Relative => {
                        relinker.ledger.work(base_url.len())?;
                        match resolve_as_browser(&base_url, &reference) {
                            Ok(absolute) => absolute,
                            Err(_) => continue,
                        }
                    }
                    Relation::Empty | Relation::SameDocument => continue,
                };
                let sibling = relinker
                    .siblings
                    .meant(document.part, related, &absolute)
                    .map(|part| (part, relinker.siblings.identity(part).clone()));
                meant += 1;
                show(Shown {
                    ordinal,
                    link,
                    host: host.map(str::to_owned),
                    absolute,
                    sibling,
                });
            }
            if meant > 0 {
                refusal = document.refusal(relinker.tree.part(part).encoding);
            }
            Ok(Rewriting::of(base))
        });
        match (looked, refusal) {
            (Some(Err(refusal)), _) | (_, Some(refusal)) => Some(Err(refusal)),
            _ => Some(Ok(())),
        }
    }

    /// Puts these URLs in the places of links, by their numbers.
    pub(in crate::expand) fn embedded(
        &mut self,
        part: PartId,
        urls: &HashMap<usize, String>,
    ) -> Option<Result<Group, Refusal>> {
        let rewritten = self.looked_at(part, true, |_, _, document, base, _| {
            let mut rewriting = Rewriting::of(base);
            for (ordinal, link) in document.links.iter().enumerate() {
                if let Some(url) = urls.get(&ordinal) {
                    let octets = link.span.start..link.span.end;
                    let replacement = link.encoded(raw(url.clone()));
                    rewriting.changes.push(octets, &replacement);
                }
            }
            Ok(rewriting)
        })?;
        Some(rewritten.map(|(_, group)| group))
    }
}
