//! Finds the links of HTML and CSS documents, for the survey of `embody inspect`. The options `--embed` and `--links`
//! have no effect here. Nothing is retrieved or changed.

use super::expander::Expander;
use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::{DocumentText, Documents};
use crate::engine::policy::{Policy, countable};
use crate::link::url::UrlReference;
use crate::link::value::LinkRole;
use crate::mime::{MessageTree, scan};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LookTarget<'d> {
    /// Another part of the message, to which the link refers by a Content-Location or by a `cid:` URL.
    Part,
    /// A `data:` URL, with its length in bytes.
    Data(usize),
    /// An http or https URL.
    Web { scheme: &'static str, host: String },
    /// A URL with another scheme.
    Scheme(&'d str),
    /// A relative link without a base URL, or a URL without a usable host.
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

fn look(
    policy: &Policy,
    tree: &MessageTree<'_>,
    mut see: impl FnMut(&DocumentText<'_>, LookTarget<'_>),
) -> (u64, u64) {
    let mut unread = 0;
    let mut ledger = Ledger::new(&policy.limits, tree.original.len());
    let mut documents = Documents::new(tree, policy);
    let mut count = 0;
    for part in tree.ids() {
        if documents.is_document(part) {
            let shown = documents.shown(part, &mut ledger, |shown| see(&shown, target(&shown)));
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

fn target<'d>(shown: &'d DocumentText<'_>) -> LookTarget<'d> {
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
        Some(_) if is("cid") => LookTarget::Part,
        Some(scheme) => LookTarget::Scheme(scheme),
        None => LookTarget::Nowhere,
    }
}
