//! The wrapped links of a mail: links that a mail filter or a picture proxy replaced with URLs of its own server.

use std::collections::HashMap;

use crate::engine::ledger::Ledger;
use crate::engine::plan::documents::Documents;
use crate::engine::policy::Policy;
use crate::mime::{MessageTree, PartId};

/// A link that a mail filter or a picture proxy wrapped in a URL of its own server.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[non_exhaustive]
pub struct LinkView {
    /// Number of the first part with the link, as in IMAP.
    pub part: String,
    /// The service that wrapped the link, as in the reports of `--unwrap`, for example `safelinks`.
    pub service: String,
    /// The URL in the mail, which leads to the service.
    pub url: String,
    /// The original URL, to which the service redirects. It comes from the sender, so it can lead anywhere.
    pub target: String,
    /// Number of times that the link occurs in the texts of the mail.
    pub count: u64,
}

/// Maximum number of different links that are listed. A newsletter has at most some hundred.
const MOST_LINKS: usize = 1000;

/// Returns the wrapped links in the documents and texts of the mail, each once. Links of mails inside the mail are not
/// included.
pub(super) fn wrapped_links(tree: &MessageTree<'_>) -> Vec<LinkView> {
    let policy = Policy::default();
    let mut ledger = Ledger::new(&policy.limits, tree.original.len());
    let mut documents = Documents::new(tree, &policy);
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut found: Vec<LinkView> = Vec::new();
    for part in tree.ids() {
        if tree.message_of(part) != PartId::ROOT {
            continue;
        }
        documents.wrapped_links(part, &mut ledger, &mut |url, original, count| {
            if let Some(link) = known.get(url).and_then(|at| found.get_mut(*at)) {
                link.count += count;
            } else if found.len() < MOST_LINKS {
                known.insert(url.to_owned(), found.len());
                found.push(LinkView {
                    part: tree.number(part),
                    service: original.service.to_owned(),
                    url: url.to_owned(),
                    target: original.original.clone(),
                    count,
                });
            }
        });
    }
    found
}
