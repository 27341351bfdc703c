//! Where the new parts stand. Only insertions, and Content-* fields that move inwards where a message is only HTML: all
//! other octets stay.

use super::super::wrapped;
use super::Pending;
use super::pictures::{Container, New};
use crate::edit::{Edit, Group};
use crate::mime::PartId;
use crate::mime::transfer::with_newlines;
use crate::report::{Detail, Reason, Refusal, Setting};

const BOUNDARY_LINE: usize = 80;

const WRAPPING: usize = 300;

impl Pending<'_> {
    pub(super) fn put_part(&mut self, container: Container, new: New) {
        let cost = self.cost(container, new.len());
        self.held.insert((container, new.picture));
        self.new.push((new, cost));
    }

    /// What stands behind the limit would not be read the next time.
    pub(super) fn judge_parts(&self, container: Container, most: usize) -> Result<(), Refusal> {
        // A multipart that is made for a document is a part as well.
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
                // RFC 2046 §5.1.1 bounds it; a mail may not.
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
            self.wrapped.push(document);
            self.present += 1;
        }
        self.present += self.new.len();
        self.new.clear();
    }

    pub(super) fn with_parts(&self, container: Container, mut own: Group) -> Group {
        match container {
            _ if self.new.is_empty() => own,
            Container::Extended { related, end } => {
                let boundary = self.tree.part(related).content.boundary();
                let boundary = boundary.unwrap_or_default();
                let newline = self.tree.newline;
                own.extend(wrapped::parts(
                    end,
                    boundary,
                    newline,
                    false,
                    self.new_parts(),
                ));
                own
            }
            Container::Wrapped(document) => self.wrapped(document, own),
        }
    }

    fn new_parts(&self) -> impl Iterator<Item = (usize, impl FnOnce(&mut Vec<u8>))> {
        let newline = self.tree.newline;
        self.new.iter().map(move |(part, _)| {
            let write = move |bytes: &mut Vec<u8>| part.append_to(bytes, &self.pictures, newline);
            (part.len(), write)
        })
    }

    fn wrapped(&self, document: PartId, mut own: Group) -> Group {
        let entity = self.tree.part(document);
        let seeds = self.new.iter().map(|(part, _)| part.content_id.as_bytes());
        let boundary = wrapped::boundary(self.tree, document, seeds);
        let field = format!(
            "Content-Type: multipart/related; type=\"{}\";\r\n boundary=\"{boundary}\"\r\n",
            entity.essence
        );
        let mut fields = with_newlines(field.into_bytes(), self.tree.newline);
        fields.extend(wrapped::encoding_field(self.tree, document));
        let new = self.new_parts();
        if self.tree.is_message(document) {
            return wrapped::message(self.tree, document, own, fields, &boundary, new);
        }
        let newline = self.tree.newline.bytes();
        fields.extend([newline, b"--", boundary.as_bytes(), newline].concat());
        own.push(Edit::insert(entity.span.start, fields));
        let abuts = self.tree.abuts_boundary(document);
        own.extend(wrapped::behind(self.tree, document, &boundary, abuts, new));
        own
    }
}
