//! Finds the base for relative links in a part: from its own fields, otherwise from the parts around it
//! (draft-fielding-url-syntax-05 §5.1).

use std::rc::Rc;

use crate::link::base::Base;
use crate::mime::{MessageTree, PartId};

/// Bases of parts. If parts are looked up in the order of the message, each base is computed once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bases {
    /// The bases of the current part and of the parts around it, the outermost first. Storing the bases of all parts could
    /// need many times the memory of the message, because ten thousand of them can be relative to one long base.
    chain: Vec<(PartId, Option<Rc<Base>>)>,
    around: Option<Rc<Base>>,
}

impl Bases {
    pub(crate) fn within(around: Option<Rc<Base>>) -> Self {
        Self {
            chain: Vec::new(),
            around,
        }
    }

    pub(crate) fn of(&mut self, tree: &MessageTree<'_>, part: PartId) -> Option<Rc<Base>> {
        let mut wanted: Vec<PartId> = std::iter::once(part).chain(tree.ancestors(part)).collect();
        wanted.reverse();
        let known = self
            .chain
            .iter()
            .zip(&wanted)
            .take_while(|((known, _), wanted)| known == *wanted)
            .count();
        self.chain.truncate(known);
        for entity in wanted.into_iter().skip(self.chain.len()) {
            let enclosing = self.innermost();
            let content_base = tree.value(entity, "Content-Base");
            let content_location = tree.value(entity, "Content-Location");
            let base = if content_base.is_none() && content_location.is_none() {
                enclosing
            } else {
                let own = Base::of_entity(
                    enclosing.as_deref(),
                    content_base,
                    content_location,
                    &tree.number(entity),
                );
                match enclosing {
                    Some(enclosing) if own.as_ref() == Some(&*enclosing) => Some(enclosing),
                    _ => own.map(Rc::new),
                }
            };
            self.chain.push((entity, base));
        }
        self.innermost()
    }

    fn innermost(&self) -> Option<Rc<Base>> {
        match self.chain.last() {
            Some((_, base)) => base.clone(),
            None => self.around.clone(),
        }
    }
}
