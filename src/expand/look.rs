//! What documents refer to, for a survey, whatever `--embed` and `--links` say. Nothing is retrieved or changed.

use super::expander::Expander;
use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::{Documents, Shown};
use crate::link::url::Reference;
use crate::mime::Tree;
use crate::policy::countable;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target<'d> {
    /// By its location or by `cid:`.
    Part,
    /// Octets.
    Data(usize),
    /// By http or https.
    Web { scheme: &'static str, host: String },
    /// Another scheme.
    Scheme(&'d str),
    /// A relative link without a base, or one without a host that could be asked.
    Nowhere,
}

impl Expander {
    /// Gives the number of documents, of which attached ones are somebody's files and do not count; and of those not
    /// read to the end: a charset, a damaged encoding, too much work.
    pub(crate) fn look(
        &self,
        tree: &Tree<'_>,
        mut see: impl FnMut(&Shown<'_>, Target<'_>),
    ) -> (u64, u64) {
        let mut unread = 0;
        let mut ledger = Ledger::new(&self.policy().limits, tree.original.len());
        let mut documents = Documents::new(tree, self.policy());
        let mut count = 0;
        for part in tree.ids() {
            if documents.is_document(part) {
                let shown = documents.shown(part, &mut ledger, |shown| see(&shown, target(&shown)));
                (count, unread) = (count + 1, unread + u64::from(shown.is_err()));
            }
        }
        (count, unread)
    }
}

fn target<'d>(shown: &'d Shown<'_>) -> Target<'d> {
    if shown.sibling.is_some() {
        return Target::Part;
    }
    let web = |url: &str, scheme| {
        let site = Reference::split(url).site();
        match site.and_then(|site| countable(site.host)) {
            Some(host) => Target::Web { scheme, host },
            None => Target::Nowhere,
        }
    };
    // `//host` is https, then http, as for `--embed`.
    if let Some(host) = &shown.host {
        return web(&format!("//{host}"), "https");
    }
    let url = &*shown.absolute;
    let reference = Reference::split(url);
    let is = |name| reference.has_scheme(name);
    match reference.scheme {
        _ if shown.relative == Some(false) => Target::Nowhere,
        Some(_) if is("data") => Target::Data(url.len()),
        Some(_) if is("https") => web(url, "https"),
        Some(_) if is("http") => web(url, "http"),
        Some(_) if is("cid") => Target::Part,
        Some(scheme) => Target::Scheme(scheme),
        None => Target::Nowhere,
    }
}
