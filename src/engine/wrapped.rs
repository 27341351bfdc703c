//! Wraps a message in a new multipart. The Content-* fields of the message move to the first part, and all other bytes stay
//! the same.

use bytes::Bytes;

use crate::edit::{Edit, Group};
use crate::engine::lengths::is_length;
use crate::mime::entity::{self, push_field};
use crate::mime::transfer::with_newlines;
use crate::mime::{Field, MessageTree, PartId, TransferEncoding};
use crate::span::{Newline, Span};

/// Returns the edits that wrap a part in a multipart. `own` are other edits of the part, and `parts` are added after
/// it. `field` returns the Content-Type field of the multipart for a boundary, with CRLF line endings.
pub(super) fn around<'s, W: FnOnce(&mut Vec<u8>)>(
    tree: &MessageTree<'_>,
    part: PartId,
    mut own: Group,
    field: impl FnOnce(&str) -> Vec<u8>,
    seeds: impl Iterator<Item = &'s [u8]>,
    parts: impl Iterator<Item = (usize, W)>,
) -> Group {
    let boundary = boundary(tree, part, seeds);
    let mut fields = with_newlines(field(&boundary), tree.newline);
    // If a part is 8bit or binary, the multipart around it must declare this too (RFC 2045 §6.4).
    let encoding = tree.part(part).encoding;
    if let TransferEncoding::EightBit | TransferEncoding::Binary = encoding {
        let name = "Content-Transfer-Encoding";
        push_field(&mut fields, name, encoding.as_str(), tree.newline);
    }
    if tree.is_message(part) {
        return message(tree, part, own, fields, &boundary, parts);
    }
    let newline = tree.newline.bytes();
    fields.extend([newline, b"--", boundary.as_bytes(), newline].concat());
    own.push(Edit::insert(tree.part(part).span.start, fields));
    let abuts = tree.abuts_boundary(part);
    own.extend(behind(tree, part, &boundary, abuts, parts));
    own
}

/// Wraps a whole message. The Content-* fields move to the first part, with the changes that `own` makes to them.
fn message<W: FnOnce(&mut Vec<u8>)>(
    tree: &MessageTree<'_>,
    message: PartId,
    own: Group,
    mut fields: Vec<u8>,
    boundary: &str,
    parts: impl Iterator<Item = (usize, W)>,
) -> Group {
    let newline = tree.newline.bytes();
    let entity = tree.part(message);
    let is_content =
        |field: &Field| field.is_content(tree.original) && !is_length(tree.original, field);
    let old = tree.fields(message);
    if old.first(tree.original, "MIME-Version").is_none() {
        fields.splice(..0, [b"MIME-Version: 1.0", newline].concat());
    }
    let mut new = Some(fields);
    let mut inner = [b"--", boundary.as_bytes(), newline].concat();
    let is_of_header = |edit: &Edit| entity.header.contains(edit.span);
    let (mut of_header, mut group): (Group, Group) = own.into_iter().partition(is_of_header);
    of_header.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut of_header = of_header.into_iter().peekable();
    for field in old.iter(tree.original).filter(is_content) {
        let mut at = field.whole.start;
        while let Some(edit) = of_header.next_if(|edit| edit.span.start < field.whole.end) {
            if edit.span.start < at {
                group.push(edit);
                continue;
            }
            inner.extend_from_slice(Span::new(at, edit.span.start).of(tree.original));
            inner.extend_from_slice(&edit.replacement);
            at = edit.span.end;
        }
        inner.extend_from_slice(Span::new(at, field.whole.end).of(tree.original));
        group.push(Edit::replace(field.whole, new.take().unwrap_or_default()));
    }
    // The message has no Content-* fields, so the new ones are inserted at the end of the header.
    group.extend(new.map(|new| Edit::insert(entity.agreed_end, new)));
    group.extend(of_header);
    inner.extend_from_slice(newline);
    group.push(Edit::insert(entity.body.start, inner));
    let ends_line = ends_line(tree, message);
    group.extend(behind(tree, message, boundary, ends_line, parts));
    group
}

pub(super) fn parts<W: FnOnce(&mut Vec<u8>)>(
    at: usize,
    boundary: &[u8],
    newline: Newline,
    is_made: bool,
    parts: impl Iterator<Item = (usize, W)>,
) -> Group {
    let newline = newline.bytes();
    let before: &[u8] = if is_made { newline } else { b"" };
    let behind: &[u8] = if is_made { b"" } else { newline };
    // A boundary can be as long as a whole message, so all edits share one copy of the boundary line. Each part is
    // dropped as soon as it was copied, to limit the memory.
    let line = Bytes::from([before, b"--", boundary, newline].concat());
    let edits = parts.flat_map(|(length, write)| {
        let mut part = Vec::with_capacity(length + behind.len());
        write(&mut part);
        part.extend_from_slice(behind);
        let line = Edit {
            span: Span::empty_at(at),
            replacement: line.clone(),
        };
        [line, Edit::insert(at, part)]
    });
    edits.collect()
}

/// Returns the part number of a multipart that takes the place of `part`. The part of a message that is not a multipart has
/// the number of the message with `.1` (RFC 9051 §6.4.5), and the multipart has the number of the message itself.
pub(super) fn number(tree: &MessageTree<'_>, part: PartId) -> String {
    let number = tree.number(part);
    if tree.is_under_multipart(part) {
        number
    } else {
        above(&number).to_owned()
    }
}

pub(super) fn above(number: &str) -> &str {
    number.rsplit_once('.').map_or("", |(above, _)| above)
}

/// Returns the position of the `--` of a closing boundary line. `close` can begin with the line ending before it, which
/// belongs to the boundary.
pub(super) fn before_close(original: &[u8], close: Span) -> usize {
    close.end - close.of(original).trim_ascii_start().len()
}

/// Returns the edits after the wrapped part: the new parts and the closing boundary line. If no line ending follows, the
/// closing line gets its own.
fn behind<W: FnOnce(&mut Vec<u8>)>(
    tree: &MessageTree<'_>,
    part: PartId,
    boundary: &str,
    ends_line: bool,
    new: impl Iterator<Item = (usize, W)>,
) -> Group {
    let (end, newline) = (tree.part(part).span.end, tree.newline.bytes());
    let mut group = parts(end, boundary.as_bytes(), tree.newline, true, new);
    let after: &[u8] = if ends_line { newline } else { b"" };
    let close = [newline, b"--", boundary.as_bytes(), b"--", after].concat();
    group.push(Edit::insert(end, close));
    group
}

fn boundary<'s>(
    tree: &MessageTree<'_>,
    part: PartId,
    new: impl Iterator<Item = &'s [u8]>,
) -> String {
    let mut seed = tree.number(part).into_bytes();
    new.for_each(|octets| seed.extend_from_slice(octets));
    let octets = tree.part(part).span.of(tree.original);
    entity::boundary(&seed, octets, &tree.boundaries_around(part))
}

pub(super) fn ends_line(tree: &MessageTree<'_>, message: PartId) -> bool {
    let is_last = tree.part(message).span.end >= tree.original.len();
    is_last || tree.abuts_boundary(message)
}
