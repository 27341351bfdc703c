//! What the new parts of a document are put into.

use crate::expand::wrapped::before_close;
use crate::mime::{Content, PartId, Tree};
use crate::plan::documents::RELATED;
use crate::report::{Reason, Refusal};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Container {
    /// This multipart/related, in front of its last boundary line, which begins at `end`.
    Extended { related: PartId, end: usize },
    /// One around this document.
    Wrapped(PartId),
}

impl Container {
    /// Where the parts of a document go: into the nearest multipart/related around it that is not outside
    /// of the alternative, or the message, that the document is a branch of.
    pub(super) fn of(tree: &Tree<'_>, document: PartId) -> Result<Self, Refusal> {
        let refuse = |reason, detail: &str| Err(Refusal::lasting(reason, detail));
        for above in tree.ancestors(document) {
            let entity = tree.part(above);
            let Content::Multipart(multipart) = &entity.content else {
                break;
            };
            if entity.essence == RELATED {
                let Some(close) = multipart.close else {
                    let detail = "no boundary line ends its multipart";
                    return refuse(Reason::IncompleteBody, detail);
                };
                return Ok(Self::Extended {
                    related: above,
                    end: before_close(tree.original, close),
                });
            }
            if entity.essence == "multipart/alternative" {
                break;
            }
        }
        let entity = tree.part(document);
        if !entity.essence.ends_with("html") && !entity.essence.ends_with("xhtml+xml") {
            return refuse(
                Reason::NoBase,
                "the style sheet is in no multipart/related that could hold its pictures",
            );
        }
        if entity.separator.is_empty() || tree.is_cut_off(document) {
            return refuse(Reason::IncompleteBody, "its header or its end is missing");
        }
        Ok(Self::Wrapped(document))
    }
}
