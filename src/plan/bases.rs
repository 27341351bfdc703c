//! Which base holds for a part: its own fields, else those of what it stands in (the draft, 5.1).

use std::collections::HashMap;
use std::rc::Rc;

use crate::link::base::Base;
use crate::mime::{PartId, Tree};

/// The bases that hold for the parts of one message, each found once.
#[derive(Clone, Debug, Default)]
pub struct Bases {
    /// One base may hold for ten thousand parts.
    known: HashMap<PartId, Option<Rc<Base>>>,
    /// What holds around the message itself.
    around: Option<Rc<Base>>,
}

impl Bases {
    /// The bases of content that is to be put where `around` holds.
    #[must_use]
    pub fn within(around: Option<Rc<Base>>) -> Self {
        Self {
            known: HashMap::new(),
            around,
        }
    }

    /// The base that holds for a part: its own Content-Base or Content-Location, else that of what
    /// it stands in, outwards (the draft, 5.1.2 and 5.1.3).
    pub fn of(&mut self, original: &[u8], tree: &Tree, part: PartId) -> Option<Rc<Base>> {
        let mut chain = vec![part];
        for above in tree.ancestors(part) {
            if self.known.contains_key(&above) {
                break;
            }
            chain.push(above);
        }
        for &entity in chain.iter().rev() {
            if self.known.contains_key(&entity) {
                continue;
            }
            let enclosing = tree.part(entity).parent;
            let enclosing = match enclosing {
                Some(above) => self.known.get(&above).cloned().flatten(),
                None => self.around.clone(),
            };
            let content_base = tree.value(original, entity, "Content-Base");
            let content_location = tree.value(original, entity, "Content-Location");
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
            self.known.insert(entity, base);
        }
        self.known.get(&part).cloned().flatten()
    }
}
