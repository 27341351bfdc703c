//! Collects edits part by part. A part can need Content-IDs in other parts; if its edits are refused, these Content-IDs
//! are not added either.

use std::collections::HashSet;

use crate::edit::{Edit, Edits, Group, Overlap};
use crate::engine::report::{Reason, Refusal};
use crate::mime::{MessageTree, PartId};
use crate::span::Span;

pub(super) struct PartEdits<'t> {
    tree: &'t MessageTree<'t>,
    pub(super) edits: Edits,
    named: HashSet<PartId>,
}

impl<'t> PartEdits<'t> {
    pub(super) fn new(tree: &'t MessageTree<'t>) -> Self {
        Self {
            tree,
            edits: Edits::new(),
            named: HashSet::new(),
        }
    }

    /// Adds the edits of one part, and the Content-IDs of the parts it refers to. Returns [`Reason::BoundaryCollision`] and
    /// adds nothing if an edit overlaps another one.
    pub(super) fn change<'n>(
        &mut self,
        mut group: Group,
        named: impl IntoIterator<Item = (PartId, &'n str)>,
    ) -> Result<(), Refusal> {
        let newline = self.tree.newline.bytes();
        let mut now_named = HashSet::new();
        for (part, content_id) in named {
            if !self.named.contains(&part) && now_named.insert(part) {
                let field = [b"Content-ID: <", content_id.as_bytes(), b">", newline].concat();
                group.push(Edit::insert(self.tree.part(part).agreed_end, field));
            }
        }
        self.edits.add(group).map_err(overlapping)?;
        self.named.extend(now_named);
        Ok(())
    }
}

pub(super) fn overlapping(_: Overlap) -> Refusal {
    let detail = "the replacement overlaps another change in the same message";
    Refusal::lasting(Reason::BoundaryCollision, detail)
}

pub(super) fn removal(tree: &MessageTree<'_>, part: PartId, removed_to: usize) -> Span {
    tree.removal(part, removed_to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mime::{ScanLimits, scan};

    const MAIL: &[u8] =
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b\n\ntwo\n--b--\n";

    #[test]
    fn overlapping_edits_are_refused_without_recording_their_content_id() {
        let tree = scan(MAIL, &ScanLimits::default());
        let parts: Vec<PartId> = tree.ids().skip(1).collect();
        let body = |at: usize| tree.part(parts[at]).body;
        let mut edits = PartEdits::new(&tree);
        edits
            .change(vec![Edit::remove(body(0))], [])
            .expect("the first one");
        let taken = vec![
            Edit::remove(body(1)),
            Edit::remove(Span::new(body(0).start + 1, body(1).start)),
        ];
        let refusal = edits.change(taken, [(parts[1], "a@b")]);
        assert_eq!(
            refusal.map_err(|refusal| refusal.reason),
            Err(Reason::BoundaryCollision)
        );
        // The first attempt failed because its edits overlap, so it must not have added the Content-ID. The next
        // attempt must therefore add it.
        edits
            .change(vec![Edit::remove(body(1))], [(parts[1], "a@b")])
            .expect("it meets nothing");
        let output = edits.edits.splice(MAIL).into_bytes();
        let expected = "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n\n--b\nContent-ID: <a@b>\n\n\n--b--\n";
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }
}
