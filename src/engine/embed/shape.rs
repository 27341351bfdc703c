//! Writes the new parts into the message. If the message consists only of HTML, it becomes a multipart/related, and its
//! Content-* fields move to the HTML part.

use super::super::wrapped;
use super::PendingPicture;
use super::container::Container;
use super::pictures::NewPicture;
use crate::edit::Group;
use crate::engine::report::{Detail, Reason, Refusal, Setting};

const BOUNDARY_LINE: usize = 80;

const WRAPPING: usize = 300;

impl PendingPicture<'_, '_> {
    pub(super) fn put_part(&mut self, container: Container, new: NewPicture) {
        let cost = self.cost(container, new.len());
        self.held.insert((container, new.picture));
        self.new.push((new, cost));
    }

    /// Checks the limit on the number of parts. A message with more parts must not be written, because the next run would not
    /// read the parts above the limit.
    pub(super) fn judge_parts(&self, container: Container, most: usize) -> Result<(), Refusal> {
        // The multipart that is created around a document counts as a part too.
        let made = self.new.len() + usize::from(matches!(container, Container::Wrapped(_)));
        if self.present + made < most {
            return Ok(());
        }
        let detail = Detail::from("the message would have more parts than ").naming(Setting::Parts);
        Err(Refusal::lasting(Reason::TooManyParts, detail))
    }

    pub(super) fn cost(&self, container: Container, octets: usize) -> usize {
        let around = match container {
            Container::Wrapped(_) if self.new.is_empty() => WRAPPING + BOUNDARY_LINE,
            Container::Wrapped(_) => BOUNDARY_LINE,
            Container::Extended { related, .. } => {
                // The boundary line before the new part counts with its real length. RFC 2046 §5.1.1 limits a boundary to 70
                // characters, but malformed mail can have a longer one, so `BOUNDARY_LINE` would be too small.
                let boundary = self.tree.part(related).content.boundary();
                boundary.unwrap_or_default().len() + b"\r\n--\r\n".len()
            }
        };
        octets + around
    }

    pub(super) fn take_back(&mut self, container: Container) {
        for (new, _) in self.new.drain(..) {
            self.held.remove(&(container, new.picture));
        }
    }

    pub(super) fn keep_parts(&mut self, container: Container) {
        if let Container::Wrapped(document) = container
            && !self.new.is_empty()
        {
            let made = wrapped::number(self.tree, document);
            let number = self.tree.number(document);
            self.embedding.wrapped.insert(made, number);
            self.present += 1;
        }
        self.present += self.new.len();
        self.new.clear();
    }

    pub(super) fn with_parts(&self, container: Container, mut own: Group) -> Group {
        let newline = self.tree.newline;
        let parts = self.new.iter().map(|(part, _)| {
            let write = |bytes: &mut Vec<u8>| part.append_to(bytes, &self.pictures, newline);
            (part.len(), write)
        });
        match container {
            _ if self.new.is_empty() => own,
            Container::Extended { related, end } => {
                let boundary = self
                    .tree
                    .part(related)
                    .content
                    .boundary()
                    .unwrap_or_default();
                own.extend(wrapped::parts(end, boundary, newline, false, parts));
                own
            }
            Container::Wrapped(document) => {
                let essence = &self.tree.part(document).essence;
                let seeds = self.new.iter().map(|(part, _)| part.content_id.as_bytes());
                let field = |boundary: &str| {
                    let essence = format!("multipart/related; type=\"{essence}\"");
                    format!("Content-Type: {essence};\r\n boundary=\"{boundary}\"\r\n").into_bytes()
                };
                wrapped::around(self.tree, document, own, field, seeds, parts)
            }
        }
    }
}
