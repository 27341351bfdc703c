//! Where the new parts stand: in the multipart/related around their document, or in one made for it.
//!
//! Only insertions, and Content-* fields that move inwards where a message is only HTML: all other
//! octets stay.

use std::collections::{BTreeMap, HashSet};

use super::pictures::Pictures;
use crate::edit::{Edit, Group};
use crate::lengths::is_length;
use crate::mime::entity::boundary;
use crate::mime::transfer::append_base64;
use crate::mime::{Content, Field, PartId, TransferEncoding, Tree};
use crate::report::{Detail, Reason, Refusal, Setting};
use crate::span::Newline;

const RELATED: &str = "multipart/related";

/// Octets of a boundary line and its line ends, at most: ours, or that of a multipart that is extended, which
/// RFC 2046 §5.1.1 bounds.
const BOUNDARY_LINE: usize = 80;

/// Octets of the fields and lines around a document, at most.
const WRAPPING: usize = 300;

/// What the parts of a document are put into.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Container {
    /// This multipart/related.
    Extended(PartId),
    /// One around this document.
    Wrapped(PartId),
}

/// A new part. Its body is only written where it is to stand.
pub(super) struct New {
    content_id: String,
    picture: usize,
    /// The content that stands in it.
    shown: usize,
    header: Vec<u8>,
    /// Octets of the body.
    body: usize,
}

impl New {
    pub(super) fn of(content_id: String, picture: usize, header: Vec<u8>, body: usize) -> Self {
        Self {
            content_id,
            picture,
            shown: picture,
            header,
            body,
        }
    }

    /// The same part with another content in it.
    pub(super) fn showing(self, shown: usize) -> Self {
        Self { shown, ..self }
    }

    /// Octets of header and body.
    pub(super) fn len(&self) -> usize {
        self.header.len() + self.body
    }

    fn append_to(&self, bytes: &mut Vec<u8>, pictures: &Pictures<'_>, newline: Newline) {
        bytes.extend_from_slice(&self.header);
        append_base64(pictures.octets(self.shown), newline, bytes);
    }
}

/// Everything that is put anywhere.
pub(super) struct Shapes<'p> {
    original: &'p [u8],
    tree: &'p Tree,
    parts: BTreeMap<Container, Vec<New>>,
    /// In the order in which they were put, with what each costs.
    log: Vec<(Container, (PartId, usize), usize)>,
    /// Contents, by the message that holds them.
    held: HashSet<(PartId, usize)>,
    /// How many parts the message has.
    present: usize,
    /// How many multiparts are made.
    wraps: usize,
}

/// A point to which everything can be taken back.
pub(super) struct Mark(usize);

impl<'p> Shapes<'p> {
    pub(super) fn new(original: &'p [u8], tree: &'p Tree) -> Self {
        Self {
            original,
            tree,
            parts: BTreeMap::new(),
            log: Vec::new(),
            held: HashSet::new(),
            present: tree.ids().count(),
            wraps: 0,
        }
    }

    /// Where the parts of a document go: into the nearest multipart/related around it that is not outside
    /// of the alternative, or the message, that the document is a branch of.
    pub(super) fn container(&self, document: PartId) -> Result<Container, Refusal> {
        let refuse = |reason, detail: &str| Err(Refusal::lasting(reason, detail));
        for above in self.tree.ancestors(document) {
            let entity = self.tree.part(above);
            let Content::Multipart(multipart) = &entity.content else {
                break;
            };
            if entity.essence == RELATED {
                return match multipart.close {
                    Some(_) => Ok(Container::Extended(above)),
                    None => refuse(
                        Reason::IncompleteBody,
                        "no boundary line ends its multipart",
                    ),
                };
            }
            if entity.essence == "multipart/alternative" {
                break;
            }
        }
        let entity = self.tree.part(document);
        if !entity.essence.ends_with("html") && !entity.essence.ends_with("xhtml+xml") {
            return refuse(
                Reason::NoBase,
                "the style sheet is in no multipart/related that could hold its pictures",
            );
        }
        if entity.separator.is_empty() || self.tree.is_cut_off(document) {
            return refuse(Reason::IncompleteBody, "its header or its end is missing");
        }
        Ok(Container::Wrapped(document))
    }

    pub(super) fn holds(&self, message: PartId, picture: usize) -> bool {
        self.held.contains(&(message, picture))
    }

    pub(super) fn put(&mut self, (message, container): (PartId, Container), new: New) {
        let cost = self.cost(container, new.len());
        let picture = new.picture;
        let parts = self.parts.entry(container).or_default();
        self.wraps += usize::from(parts.is_empty() && matches!(container, Container::Wrapped(_)));
        parts.push(new);
        self.log.push((container, (message, picture), cost));
        self.held.insert((message, picture));
    }

    /// Whether the message may have one more part: what stands behind the limit would not be read the next time.
    ///
    /// # Errors
    /// [`Reason::TooManyParts`].
    pub(super) fn judge_parts(&self, container: Container, most: usize) -> Result<(), Refusal> {
        let is_first = self.parts.get(&container).is_none_or(Vec::is_empty);
        // A multipart that is made for a document is a part as well.
        let made = self.wraps + usize::from(is_first && matches!(container, Container::Wrapped(_)));
        if self.present + self.log.len() + made < most {
            return Ok(());
        }
        let detail = Detail::from("the message would have more parts than ").naming(Setting::Parts);
        Err(Refusal::lasting(Reason::TooManyParts, detail))
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Takes everything back that was put since.
    pub(super) fn reset(&mut self, mark: &Mark) {
        while self.log.len() > mark.0 {
            let Some((container, picture, _)) = self.log.pop() else {
                return;
            };
            self.held.remove(&picture);
            if let Some(parts) = self.parts.get_mut(&container) {
                parts.pop();
                let is_wrapped = matches!(container, Container::Wrapped(_));
                self.wraps -= usize::from(parts.is_empty() && is_wrapped);
            }
        }
    }

    /// Octets that the message gains at most by one more part.
    pub(super) fn cost(&self, container: Container, octets: usize) -> usize {
        let is_first = self.parts.get(&container).is_none_or(Vec::is_empty);
        let around = match container {
            Container::Wrapped(_) if is_first => WRAPPING,
            _ => 0,
        };
        octets + BOUNDARY_LINE + around
    }

    /// Octets of everything that was put since: the same, added up.
    pub(super) fn octets_since(&self, mark: &Mark) -> i64 {
        let since = self.log.get(mark.0..).unwrap_or_default();
        let octets: usize = since.iter().map(|(_, _, cost)| cost).sum();
        octets as i64
    }

    /// The documents around which a multipart is made.
    pub(super) fn wrapped_documents(&self) -> Vec<PartId> {
        let made = self.parts.iter().filter(|(_, parts)| !parts.is_empty());
        made.filter_map(|(container, _)| match container {
            Container::Wrapped(document) => Some(*document),
            Container::Extended(_) => None,
        })
        .collect()
    }

    /// The edits of all containers.
    pub(super) fn edits(&mut self, pictures: &Pictures<'_>) -> Vec<Group> {
        let mut groups = Vec::new();
        let parts = std::mem::take(&mut self.parts);
        // Two may end at one place: what is further inside comes first.
        for (container, parts) in parts.into_iter().rev() {
            if parts.is_empty() {
                continue;
            }
            groups.push(match container {
                Container::Extended(related) => self.extended(related, &parts, pictures),
                Container::Wrapped(document) if self.tree.is_message(document) => {
                    self.wrapped_message(document, &parts, pictures)
                }
                Container::Wrapped(document) => self.wrapped(document, &parts, pictures),
            });
        }
        groups
    }

    fn extended(&self, related: PartId, parts: &[New], pictures: &Pictures<'_>) -> Group {
        let newline = self.tree.newline.bytes();
        let Content::Multipart(multipart) = &self.tree.part(related).content else {
            return Group::new();
        };
        let Some(close) = multipart.close else {
            return Group::new();
        };
        let has_break = matches!(self.original.get(close.start), Some(b'\r' | b'\n'));
        let mut inserted = Vec::with_capacity(octets(parts));
        for part in parts {
            if has_break {
                inserted.extend_from_slice(newline);
            }
            push_line(&mut inserted, &[b"--", &multipart.boundary], newline);
            part.append_to(&mut inserted, pictures, self.tree.newline);
            if !has_break {
                inserted.extend_from_slice(newline);
            }
        }
        vec![Edit::insert(close.start, inserted)]
    }

    fn wrapped(&self, document: PartId, parts: &[New], pictures: &Pictures<'_>) -> Group {
        let newline = self.tree.newline.bytes();
        let entity = self.tree.part(document);
        let boundary = self.boundary(document, parts);
        let mut front = self.fields(document, &boundary);
        front.extend_from_slice(newline);
        push_line(&mut front, &[b"--", boundary.as_bytes()], newline);
        let mut behind = self.behind(parts, &boundary, pictures);
        if self.tree.abuts_boundary(self.original, document) {
            behind.extend_from_slice(newline);
        }
        vec![
            Edit::insert(entity.span.start, front),
            Edit::insert(entity.span.end, behind),
        ]
    }

    /// A message that is only HTML: its Content-* fields move into the new part.
    fn wrapped_message(&self, document: PartId, parts: &[New], pictures: &Pictures<'_>) -> Group {
        let newline = self.tree.newline.bytes();
        let entity = self.tree.part(document);
        let fields = self.tree.fields(document);
        let boundary = self.boundary(document, parts);
        let is_content =
            |field: &Field| field.is_content(self.original) && !is_length(self.original, field);
        let mut new = self.fields(document, &boundary);
        if fields.first(self.original, "MIME-Version").is_none() {
            new.splice(..0, [b"MIME-Version: 1.0", newline].concat());
        }
        let mut inner = Vec::new();
        push_line(&mut inner, &[b"--", boundary.as_bytes()], newline);
        let mut group = Group::new();
        for field in fields.iter(self.original).filter(is_content) {
            inner.extend_from_slice(field.whole.of(self.original));
            group.push(Edit::replace(field.whole, std::mem::take(&mut new)));
        }
        inner.extend_from_slice(newline);
        group.push(Edit::insert(entity.body.start, inner));
        let mut behind = self.behind(parts, &boundary, pictures);
        let is_last = entity.span.end >= self.original.len();
        if is_last || self.tree.abuts_boundary(self.original, document) {
            behind.extend_from_slice(newline);
        }
        group.push(Edit::insert(entity.span.end, behind));
        group
    }

    /// The fields of a new multipart/related.
    fn fields(&self, document: PartId, boundary: &str) -> Vec<u8> {
        let newline = self.tree.newline.bytes();
        let entity = self.tree.part(document);
        let mut fields = Vec::new();
        push_line(
            &mut fields,
            &[
                b"Content-Type: multipart/related; type=\"",
                entity.essence.as_bytes(),
                b"\";",
            ],
            newline,
        );
        push_line(
            &mut fields,
            &[b" boundary=\"", boundary.as_bytes(), b"\""],
            newline,
        );
        // A multipart says what is in it (RFC 2045 §6.4).
        let encoding = match entity.encoding {
            TransferEncoding::EightBit => Some("8bit"),
            TransferEncoding::Binary => Some("binary"),
            _ => None,
        };
        if let Some(encoding) = encoding {
            let name = b"Content-Transfer-Encoding: ";
            push_line(&mut fields, &[name, encoding.as_bytes()], newline);
        }
        fields
    }

    fn behind(&self, parts: &[New], boundary: &str, pictures: &Pictures<'_>) -> Vec<u8> {
        let newline = self.tree.newline.bytes();
        // A line end of the caller's may follow.
        let mut behind = Vec::with_capacity(octets(parts) + BOUNDARY_LINE);
        for part in parts {
            behind.extend_from_slice(newline);
            push_line(&mut behind, &[b"--", boundary.as_bytes()], newline);
            part.append_to(&mut behind, pictures, self.tree.newline);
        }
        behind.extend_from_slice(newline);
        behind.extend_from_slice(b"--");
        behind.extend_from_slice(boundary.as_bytes());
        behind.extend_from_slice(b"--");
        behind
    }

    fn boundary(&self, document: PartId, parts: &[New]) -> String {
        let mut seed = self.tree.number(document).into_bytes();
        for part in parts {
            // It is the hash of what is in the part.
            seed.extend_from_slice(part.content_id.as_bytes());
        }
        let around = self.tree.boundaries_around(document);
        boundary(
            &seed,
            self.tree.part(document).span.of(self.original),
            &around,
        )
    }
}

/// Octets of parts with a boundary line each.
fn octets(parts: &[New]) -> usize {
    let octets = parts.iter().map(|part| part.len() + BOUNDARY_LINE);
    octets.sum()
}

fn push_line(bytes: &mut Vec<u8>, pieces: &[&[u8]], newline: &[u8]) {
    for piece in pieces {
        bytes.extend_from_slice(piece);
    }
    bytes.extend_from_slice(newline);
}
