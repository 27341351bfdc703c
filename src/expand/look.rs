//! Finds the links of HTML and CSS documents, for the survey of `embody inspect`. The options `--embed` and `--links`
//! have no effect here. Nothing is retrieved or changed.

use std::cell::OnceCell;
use std::collections::HashSet;

use percent_encoding::percent_decode_str;

use super::expander::Expander;
use crate::engine::external_body::identifier;
use crate::engine::forms::{TextLink, cloud_links_in_text, notes_without_proof};
use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::{DocumentText, Documents};
use crate::engine::policy::{Policy, countable};
use crate::link::url::{UrlReference, without_fragment};
use crate::link::value::LinkRole;
use crate::mime::{MessageTree, PartId, scan};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LookTarget<'d> {
    /// Another part of the message, to which the link refers by a Content-Location or by a `cid:` URL.
    Part,
    /// A part that the message does not contain: no part has the Content-ID of the `cid:` URL.
    MissingPart,
    /// A `data:` URL, with its length in bytes.
    Data(usize),
    /// An http or https URL.
    Web { scheme: &'static str, host: String },
    /// A URL with another scheme.
    Scheme(&'d str),
    /// Leads nowhere: a relative link without a base URL, or a URL without a usable host.
    Nowhere,
}

impl Expander {
    /// Calls `see` for each link of each document that the mail displays. Attached documents are files and are not
    /// read. Returns the number of documents, and how many of them could not be read to the end because of their
    /// charset, a damaged encoding or the work limit.
    pub(crate) fn look(
        &self,
        tree: &MessageTree<'_>,
        see: impl FnMut(&DocumentText<'_>, LookTarget<'_>),
    ) -> (u64, u64) {
        look(self.policy(), tree, see)
    }
}

impl Expander {
    /// Calls `see` with the service of each wrapped link whose URL contains the original, in documents and in texts.
    pub(crate) fn look_for_wrapped(
        &self,
        tree: &MessageTree<'_>,
        mut see: impl FnMut(&'static str),
    ) {
        let mut ledger = Ledger::new(&self.policy().limits, tree.original.len());
        let mut documents = Documents::new(tree, self.policy());
        for part in tree.ids() {
            documents.wrapped_links(part, &mut ledger, &mut |_, original, count| {
                (0..count).for_each(|_| see(original.service));
            });
        }
    }
}

impl Expander {
    /// Returns the links of plain texts to files in cloud storage, each with its part, in a mail without HTML. In a mail with
    /// HTML, the HTML contains the same links as the text.
    pub(crate) fn cloud_links_in_texts(&self, tree: &MessageTree<'_>) -> Vec<(PartId, TextLink)> {
        let documents = Documents::new(tree, self.policy());
        if tree.ids().any(|part| documents.is_document(part)) {
            return Vec::new();
        }
        let texts = tree.ids().filter(|part| documents.is_plain_text(*part));
        let links = texts.filter_map(|part| {
            let entity = tree.part(part);
            let text = entity.encoding.decode(entity.body.of(tree.original))?;
            let links = cloud_links_in_text(&text).into_iter();
            Some(links.map(move |link| (part, link)))
        });
        links.flatten().collect()
    }

    /// Returns the number of notes of Mailman that do not prove that they belong to the mail.
    pub(crate) fn notes_without_proof(&self, tree: &MessageTree<'_>) -> usize {
        let most = self.policy().limits.parts;
        let parts = tree.ids().map(|part| notes_without_proof(tree, part, most));
        parts.sum()
    }
}

fn look(
    policy: &Policy,
    tree: &MessageTree<'_>,
    mut see: impl FnMut(&DocumentText<'_>, LookTarget<'_>),
) -> (u64, u64) {
    let mut unread = 0;
    let mut ledger = Ledger::new(&policy.limits, tree.original.len());
    let mut documents = Documents::new(tree, policy);
    let mut count = 0;
    let names = PartNames::new(tree);
    for part in tree.ids() {
        if documents.is_document(part) {
            let shown = documents.shown(part, &mut ledger, |shown| {
                see(&shown, target(&shown, &names));
            });
            (count, unread) = (count + 1, unread + u64::from(shown.is_err()));
        }
    }
    (count, unread)
}

/// Returns whether the mail displays a picture that is only on the web. Trackers do not count.
pub(crate) fn shows_remote_pictures(policy: &Policy, message: &[u8]) -> bool {
    let tree = scan(message, &policy.limits.scan());
    let mut is_found = false;
    look(policy, &tree, |shown, target| {
        let is_picture = shown.link.role == LinkRole::Picture && !shown.link.hidden;
        is_found |= is_picture && matches!(target, LookTarget::Web { .. });
    });
    is_found
}

/// Content-IDs of all parts of a mail, in lower case. Collected when the first `cid:` URL occurs, because most mails
/// have none.
///
/// Parts of enclosed messages are included. Mail programs would not find these, but a picture that is in the mail must
/// not be counted as missing.
struct PartNames<'t> {
    tree: &'t MessageTree<'t>,
    ids: OnceCell<HashSet<String>>,
}

impl<'t> PartNames<'t> {
    fn new(tree: &'t MessageTree<'t>) -> Self {
        Self {
            tree,
            ids: OnceCell::new(),
        }
    }

    fn has(&self, url: &str) -> bool {
        let ids = self.ids.get_or_init(|| {
            let values = self
                .tree
                .ids()
                .filter_map(|part| self.tree.value(part, "Content-ID"));
            values.map(folded).collect()
        });
        let Some((_, id)) = url.split_once(':') else {
            return false;
        };
        // Some programs do not escape `#` in an id, so the id is looked up with and without the text after it.
        [id, without_fragment(id)].into_iter().any(|id| {
            let decoded: Vec<u8> = percent_decode_str(id).collect();
            ids.contains(&folded(id.as_bytes())) || ids.contains(&folded(&decoded))
        })
    }
}

fn folded(id: &[u8]) -> String {
    identifier(id).to_lowercase()
}

fn target<'d>(shown: &'d DocumentText<'_>, names: &PartNames<'_>) -> LookTarget<'d> {
    if shown.sibling.is_some() {
        return LookTarget::Part;
    }
    let web = |url: &str, scheme| {
        let site = UrlReference::split(url).site();
        match site.and_then(|site| countable(site.host)) {
            Some(host) => LookTarget::Web { scheme, host },
            None => LookTarget::Nowhere,
        }
    };
    // A link `//host` has no scheme. `--embed` tries https first and then http, so the link is counted as https.
    if let Some(host) = &shown.host {
        return web(&format!("//{host}"), "https");
    }
    let url = &*shown.absolute;
    let reference = UrlReference::split(url);
    let is = |name| reference.has_scheme(name);
    match reference.scheme {
        _ if shown.relative == Some(false) => LookTarget::Nowhere,
        Some(_) if is("data") => LookTarget::Data(url.len()),
        Some(_) if is("https") => web(url, "https"),
        Some(_) if is("http") => web(url, "http"),
        Some(_) if is("cid") && names.has(url) => LookTarget::Part,
        Some(_) if is("cid") => LookTarget::MissingPart,
        Some(scheme) => LookTarget::Scheme(scheme),
        None => LookTarget::Nowhere,
    }
}
