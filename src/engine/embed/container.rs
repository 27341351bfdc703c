//! Finds the multipart to which the pictures of a document are added.

use crate::engine::plan::documents::RELATED;
use crate::engine::report::{Reason, Refusal};
use crate::engine::wrapped;
use crate::mime::{MessageTree, PartId, PartKind};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Container {
    /// The document is in an existing multipart/related. New parts are inserted before its last boundary line, which begins at
    /// `end`.
    Extended {
        related: PartId,
        end: usize,
    },
    Wrapped(PartId),
}

impl Container {
    /// Finds the multipart/related that new parts of `document` are added to. The search ends at the nearest alternative or
    /// message that contains the document: parts outside of it would not belong to the document.
    pub(super) fn of(tree: &MessageTree<'_>, document: PartId) -> Result<Self, Refusal> {
        let refuse = |reason, detail: &str| Err(Refusal::lasting(reason, detail));
        for above in tree.ancestors(document) {
            let entity = tree.part(above);
            let PartKind::Multipart(multipart) = &entity.content else {
                break;
            };
            if entity.essence == RELATED {
                let Some(close) = multipart.close else {
                    let detail = "the multipart/related part that contains the document has no closing boundary line";
                    return refuse(Reason::IncompleteBody, detail);
                };
                return Ok(Self::Extended {
                    related: above,
                    end: wrapped::before_close(tree.original, close),
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
                "the style sheet is not inside a multipart/related, where its pictures could be inserted",
            );
        }
        if entity.separator.is_empty() || tree.is_cut_off(document) {
            return refuse(
                Reason::IncompleteBody,
                "the header or the end of the document is missing",
            );
        }
        Ok(Self::Wrapped(document))
    }
}
